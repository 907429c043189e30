"""One-to-one onto everything that is not padding: injective, and every element in bounds.

Why it matters: this is what makes a layout a layout. Padding is by definition the places of the range that hold no
element; an injective map in bounds reaches exactly as many places as there are elements, and the figures say how many
remain (`padding`). Ask `covers` when no padding is allowed at all.
Refuted by: the counterexample of `injective` (`first`, `second`) or `in_bounds` (`element`).
Fix: as of `injective` or `in_bounds`, whichever refutes it.
Incident: a swizzle of a grid gave some workgroups one tile twice, and left the last tiles without any:
https://github.com/ROCm/aiter/pull/4315
Refuted:
    layoutproof ask bijective "f32[3,5] strides (4,1)"
Proved:
    layoutproof ask bijective "f32[3,5]{1,0:T(2,2)}"
Limits: How many places stay free is in the figures, and no violation.
"""

from __future__ import annotations

from layoutproof.core.claim import Claim
from layoutproof.core.index_map import IndexMap
from layoutproof.core.result import plain
from layoutproof.core.size import Extent
from layoutproof.properties import in_bounds, injective

LAYOUTS = 1


def claims(m: IndexMap) -> tuple[Claim, ...]:
    """The claims of injective and of in_bounds.

    Args:
        m: The map of one layout.

    Returns:
        The claims, in the order in which they are refuted.
    """
    return (*injective.claims(m), *in_bounds.claims(m))


def figures(m: IndexMap) -> dict[str, object]:
    """places = elements + padding.

    Args:
        m: The map of one layout.

    Returns:
        elements, places and padding, in elements.
    """
    elements: Extent = m.domain.count()
    places: Extent = m.memory.allotted if m.memory else m.range.count()
    numbers: dict[str, object] = plain({"elements": elements, "places": places, "padding": places - elements})
    return numbers
