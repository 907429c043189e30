"""No offset computation overflows a signed 32-bit integer.

Why it matters: index arithmetic in kernels and in JAX is 32-bit by default and wraps silently; our own integers never
overflow, so `proved` elsewhere says nothing about this.
Counted are offsets in elements (0 <= offset < 2**31), the largest number a row-major computation reaches on its way.
Refuted by: the smallest `element` whose offset does not fit; for symbolic sizes with the smallest `sizes` having one.
Example: `f32[65536,65536]{1,0:T(8,128)}` is refuted; `f32[N,128]` from N = 16,777,217 on.
Fix: compute offsets in 64 bits, or split the array.
Incident: offsets of large tensors wrapped in Triton kernels, and read and wrote elsewhere:
https://github.com/triton-lang/triton/issues/832
Refuted:
    layoutproof ask fits_int32 "f32[65536,65536]{1,0:T(8,128)}"
Proved:
    layoutproof ask fits_int32 "f32[4096,4096]{1,0:T(8,128)}"
Limits: Offsets of a row-major computation; a kernel that computes them in another order may overflow earlier
(`index_int32`).
"""

from __future__ import annotations

from layoutproof.core.claim import At, Claim, Outside
from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import IndexMap
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point

LAYOUTS = 1

NO_MEMORY = Template(
    "properties.fits_int32_no_memory", "fits_int{bits} is about memory offsets; this map has no memory"
)
OFFSET = Template(
    "properties.fits_int32_offset", "{element} is at offset {offset}, and a signed {bits}-bit integer ends at {end}"
)


def claims(m: IndexMap) -> tuple[Claim, ...]:
    """One claim: no element with an offset of 2**31 or more, or below 0.

    Args:
        m: The map of one layout.

    Returns:
        The claims, in the order in which they are refuted.

    Raises:
        LayoutError: It has no memory, so offsets say nothing.
    """
    return claims_of_width(m, 32)


def figures(m: IndexMap) -> dict[str, object]:
    """limit: the first offset that does not fit; allotted: elements; fits_when, for symbolic sizes: it surely fits.

    Args:
        m: The map of one layout.

    Returns:
        Exact numbers by name; closed forms as text where sizes are symbolic.
    """
    return figures_of_width(m, 32)


def claims_of_width(m: IndexMap, bits: int) -> tuple[Claim, ...]:
    """`claims` for signed integers of `bits` bits."""
    if m.memory is None:
        raise LayoutError(NO_MEMORY(bits))
    flat = m.flat()

    def explain(at: Point, on: Numbers) -> str:
        (offset,) = flat.place(at["element"], at.get("replica", ()), on)
        return OFFSET(at["element"], offset, bits, 2 ** (bits - 1) - 1)

    points = {"element": m.domain} | ({"replica": m.replicas} if m.replicas.extents else {})
    place = At(flat, "element", "replica" if m.replicas.extents else "")
    return (Claim(points, Outside(place, (2 ** (bits - 1),)), explain),)


def figures_of_width(m: IndexMap, bits: int) -> dict[str, object]:
    """`figures` for signed integers of `bits` bits."""
    allotted = m.memory.allotted if m.memory else 0
    limit = 2 ** (bits - 1)
    if type(allotted) is int:
        return {"limit": limit, "allotted": allotted}
    return {"limit": limit, "allotted": str(allotted), "fits_when": f"{allotted} <= {limit}"}
