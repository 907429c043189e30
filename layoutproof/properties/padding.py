"""How much of what is allotted holds no element, exactly; with `at_most`, that it stays below a bound.

Figures: `elements`, `padded_elements` (allotted), `padding_elements`, `unpadded_bytes` (at the type's natural width, as
XLA's out-of-memory reports count), `bytes` (allotted), `per_dimension` (extent and padded extent of each dimension, or
of dimensions a tile combines). Ints, or closed forms when sizes are symbolic.
`at_most: 2%` means that at most 2 % of what is allotted holds no element; `at_most: 1.02x` that the allotted bytes are
at most 1.02 times the unpadded ones. For symbolic sizes the bound must hold for all of them.
Why it matters: on TPUs a badly chosen minor dimension costs up to 128 times the memory.
Refuted by: the smallest `sizes`, or the numbers themselves when they are known; by what refutes `bijective` when
elements overlap, because then there is no padding to speak of.
Fix: make a long dimension the minor one, or reshape: `layoutproof why SHAPE` computes both.
Incident: 32 GiB for 1 GiB, because a dimension of 4 was the minor one:
https://github.com/DifferentiableUniverseInitiative/flowpm/issues/27
Refuted:
    layoutproof ask padding "f32[1000,5]{1,0:T(8,128)}" --at-most 40%
Proved:
    layoutproof ask padding "f32[1000,5]{0,1:T(8,128)}" --at-most 40%
Limits: One array; the other memory of a program is in `peak_memory`.
"""

from __future__ import annotations

import re
from fractions import Fraction

from layoutproof.core.claim import Claim, SizeCondition
from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import IndexMap, Memory
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point, plain
from layoutproof.core.size import Extent, ceil_div
from layoutproof.core.term import Term, size_term
from layoutproof.properties import bijective

LAYOUTS = 1

AT_MOST_FORM = Template(
    "properties.padding_at_most_form", "at_most is a share such as '2%' or a factor such as '1.02x', not {found!r}"
)
NO_MEMORY = Template("properties.padding_no_memory", "padding is about memory; this map has none")
SHARE = Template(
    "properties.padding_share",
    "{padding} of {allotted} allotted elements are padding: {percent:.4g} % or {times:.4g}x, over {most}",
)

_BOUND = re.compile(r"\s*(?P<number>\d{1,12}(?:\.\d{1,12})?)\s*(?P<unit>%|x)\s*")


def claims(m: IndexMap, at_most: str | None = None) -> tuple[Claim, ...]:
    """Elements do not overlap and stay inside; and, with `at_most`, nothing exceeds the bound.

    Args:
        m: The map of one layout.
        at_most: Bound: "2%" of what is allotted holds no element, or "1.02x" the bytes of the elements are allotted;
            None for none.

    Returns:
        The claims, in the order in which they are refuted.

    Raises:
        LayoutError: The bound cannot be read, or the map has no memory.
    """
    memory = _memory(m)
    if at_most is None:
        return bijective.claims(m)
    number, unit = read_bound(at_most)
    elements, padded = m.domain.count(), memory.allotted
    if unit == "%":
        allowed, found = padded * number.numerator, (padded - elements) * (number.denominator * 100)
    else:
        allowed, found = _unpadded(m, memory) * number.numerator, memory.bytes() * number.denominator

    def explain(at: Point, on: Numbers) -> str:
        held, all_ = on.size(elements), on.size(padded)
        share = 100 * (all_ - held) / all_ if all_ else 0
        times = on.size(memory.bytes()) / max(1, on.size(_unpadded(m, memory)))
        return SHARE(all_ - held, all_, share, times, at_most)

    constant = isinstance(elements, int) and isinstance(padded, int)
    witness: Point = {"elements": (elements,), "padded_elements": (padded,)} if constant else {}  # type: ignore[dict-item]
    bound = Claim({}, SizeCondition(Term("<", size_term(allowed), size_term(found))), explain, witness)
    return (*bijective.claims(m), bound)


def figures(m: IndexMap, at_most: str | None = None) -> dict[str, object]:
    """The exact numbers; see the module's text.

    Args:
        m: The map of one layout.
        at_most: Bound: "2%" of what is allotted holds no element, or "1.02x" the bytes of the elements are allotted;
            None for none.

    Returns:
        Exact numbers by name; closed forms as text where sizes are symbolic.
    """
    memory = _memory(m)
    elements, padded = m.domain.count(), memory.allotted
    numbers: dict[str, object] = {
        "elements": elements,
        "padded_elements": padded,
        "padding_elements": padded - elements,
        "unpadded_bytes": _unpadded(m, memory),
        "bytes": memory.bytes(),
    }
    groups = memory.padded()
    if groups:
        numbers["per_dimension"] = [{"dimensions": [*dims], "extent": e, "padded": room} for dims, e, room in groups]
    if type(elements) is int and type(padded) is int:
        return numbers
    shown: dict[str, object] = plain(numbers)
    return shown


def read_bound(text: str) -> tuple[Fraction, str]:
    """A bound such as `2%` or `1.02x`; LayoutError for anything else.

    >>> read_bound("2.5%")
    (Fraction(5, 2), '%')
    """
    found = _BOUND.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise LayoutError(AT_MOST_FORM(text))
    return Fraction(found["number"]), found["unit"]


def _memory(m: IndexMap) -> Memory:
    if m.memory is None:
        raise LayoutError(NO_MEMORY())
    return m.memory


def _unpadded(m: IndexMap, memory: Memory) -> Extent:
    return ceil_div(m.domain.count() * memory.natural_bits, 8)  # type: ignore[no-any-return]
