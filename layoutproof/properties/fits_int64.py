"""No offset computation overflows a signed 64-bit integer.

Why it matters: XLA's own sizes and indices are 64-bit; a product of extents above 2**63 wraps or aborts there.
Otherwise as `fits_int32`.
Refuted by: the smallest `element` whose offset does not fit.
Fix: no array has as many elements: look for a wrong extent.
Incident: none is known to us in 64 bits; TVM counts in 32, so that a layout of 2^32 elements has none: BUGS-FOUND.md.
Refuted:
    layoutproof ask fits_int64 "f32[4294967296,4294967296]{1,0}"
Proved:
    layoutproof ask fits_int64 "f32[65536,65536]{1,0}"
Limits: as of `fits_int32`.
"""

from __future__ import annotations

from layoutproof.core.claim import Claim
from layoutproof.core.index_map import IndexMap
from layoutproof.properties import fits_int32

LAYOUTS = 1


def claims(m: IndexMap) -> tuple[Claim, ...]:
    """One claim: no element with an offset of 2**63 or more.

    Args:
        m: The map of one layout.

    Returns:
        The claims, in the order in which they are refuted.

    Raises:
        LayoutError: It has no memory, so offsets say nothing.
    """
    return fits_int32.claims_of_width(m, 64)


def figures(m: IndexMap) -> dict[str, object]:
    """As those of fits_int32.

    Args:
        m: The map of one layout.

    Returns:
        Exact numbers by name; closed forms as text where sizes are symbolic.
    """
    return fits_int32.figures_of_width(m, 64)
