"""Whether two jaxprs are equal as sums of products, for all elements, and what differs at the smallest one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.effects import Access, Freed, Signal, StartedCopy, Wait
from layoutproof.bodies.values import Value, extent_term
from layoutproof.core.budget import budget
from layoutproof.core.errors import Undecided, failure, shorten
from layoutproof.core.products import Factor, Monomial, Named, Sum
from layoutproof.core.term import Term
from layoutproof.ir.program import Program
from layoutproof.values.elementwise import kind_of
from layoutproof.values.pair import Input
from layoutproof.values.relations.arrays import FloatArray
from layoutproof.values.relations.calls import CALLS
from layoutproof.values.relations.counts import Count, Counts, Operand, differences
from layoutproof.values.relations.reading import LARGEST, Reading, shape_terms

_OPEN = "InconclusiveDimensionOperation"
"""What JAX raises where names of sizes leave open what Python code, or a shape, asks of them."""
ROUNDED = Fraction(1, 2**20)
"""Of a number of the code in float32, and of a few of them multiplied: how far it may be from what is meant."""
STEPS = 2_000_000
"""The budget for reading and deciding one pair."""


_EFFECTS = {
    Access: "a store",
    StartedCopy: "a copy by hand",
    Wait: "a wait for a copy",
    Signal: "a signal of a semaphore",
    Freed: "memory of a scope",
}
"""Effects that relations do not follow, in words."""


@dataclass(frozen=True)
class Related:
    """The answer of relations on a pair.

    same: None where they do not decide it, and `reason` says why.  output, element: where the two differ first.
    operands: the difference there, in words; counted on plain integers.  conversions: of floats, that change nothing.
    """

    same: bool | None
    reason: str = ""
    output: int = 0
    element: tuple[int, ...] = ()
    operands: str = ""
    conversions: tuple[tuple[str, str], ...] = ()
    sizes: dict[str, int] = field(default_factory=dict)
    grids: tuple[tuple[Term, ...], ...] = ()


class _ReadFunction:
    """One function, read."""

    def __init__(self, program: Program, inputs: Sequence[Input]) -> None:
        self.on = Reading(CALLS)
        self.outputs = self.on.run(program, [_given(i.name, i) for i in inputs])
        # copies, semaphores, and memory that is not followed here
        other = next((e for e in self.on.effects if not isinstance(e, Access) or e.kind != "read"), None)
        if other is not None:
            self.on.refused.setdefault((_EFFECTS[type(other)], other.spot.source))
        if self.on.refused:
            what, place = next(iter(self.on.refused))
            raise UnsupportedOp(f"{what} at {place}" if place and place not in what else what)


def _given(name: str, i: Input) -> Value:
    """An argument: an array of which each element is itself."""
    shape = shape_terms(i.shape)
    if kind_of(i.dtype) != "f":
        return Value(shape, i.dtype, f"what {name} holds")

    def element(index: tuple[Term, ...]) -> Sum:
        return Sum((Monomial(factors=(Factor(name, index),)),))

    return FloatArray(shape, i.dtype, element)


def related(
    sides: tuple[Program, Program],
    inputs: Sequence[Input],
    outputs: Sequence[int] | None,
    sizes: Sequence[str] = (),
    where: Sequence[Term] = (),
) -> Related:
    """Whether two programs of the same inputs have outputs that are the same sums of the same products.

    sides, inputs, outputs: as of `values.compare.compare`.  sizes: names of sizes, from 1 to `reading.LARGEST`.
    where: further conditions on them.
    """
    try:
        with budget(STEPS):
            return _related(sides, inputs, outputs, sizes, where)
    except (UnsupportedOp, Undecided) as problem:
        return Related(None, str(problem))
    except Exception as error:
        if type(error).__name__ == _OPEN:
            said = str(error).strip().partition("\n")[0].partition(" This error")[0]
            return Related(None, f"the code asks of a size that is a name what is not so for all: {shorten(said, 160)}")
        # a form of an operation that is not read: it is not decided, with our own words for it
        return Related(None, failure(error))


def _related(
    sides: tuple[Program, Program],
    inputs: Sequence[Input],
    outputs: Sequence[int] | None,
    sizes: Sequence[str],
    where: Sequence[Term],
) -> Related:
    from layoutproof.solvers.isl.multisets import difference

    ours, theirs = (_ReadFunction(side, inputs) for side in sides)
    names = [Term("name", name) for name in sizes]
    held = [*(Term("<=", Term("int", 1), n) for n in names), *(Term("<=", n, Term("int", LARGEST)) for n in names)]
    held += where
    conversions = tuple(sorted(ours.on.conversions | theirs.on.conversions))
    for k in range(len(ours.outputs)) if outputs is None else outputs:
        one, other = ours.outputs[k], theirs.outputs[k]
        if not isinstance(one, FloatArray) or not isinstance(other, FloatArray):
            raise UnsupportedOp(f"output {k}, which holds no floats")
        if 0 in one.dims:
            continue
        element = tuple((f"element {d}", extent_term(n)) for d, n in enumerate(one.dims))
        index = tuple(Term("name", name) for name, _ in element)
        sums = one.sum(index), other.sum(index)
        found = difference(element, (sums[0], ours.on.calls), (sums[1], theirs.on.calls), sizes, held)
        if found is None:
            continue
        if found.undefined == "theirs":
            raise UnsupportedOp("a reference with an undefined element")
        at_sizes = dict(zip(sizes, found.sizes, strict=True))
        at = dict(zip([name for name, _ in element], found.element, strict=True))
        counts = [
            Counts(side.on.calls, at_sizes).element(whole, at) for side, whole in zip((ours, theirs), sums, strict=True)
        ]  # fmt: skip
        said = _said(counts, tuple(zip(found.sources, found.places, strict=True)))
        if not said:
            raise UnsupportedOp("a difference of relations that plain integers do not show")
        if _rounded(counts):
            raise UnsupportedOp(f"numbers that differ by no more than they are rounded: {said}")
        return Related(False, "", k, found.element, said, conversions, at_sizes)
    return Related(True, conversions=conversions, grids=tuple(_grid(call.programs) for call in ours.on.calls))


def _grid(programs: Named) -> tuple[Term, ...]:
    return tuple(extent for _, extent in programs)


def _said(counts: Sequence[tuple[Count, bool]], asked: tuple[Operand, ...]) -> str:
    """The difference at an element, in words; "" where there is none."""
    (ours, undefined), (theirs, theirs_undefined) = counts
    if theirs_undefined:
        return ""
    if undefined:
        return "it holds what was never written"
    found = differences(ours, theirs)
    if not found:
        return ""
    key, mine, right = next((f for f in found if f[0] == tuple(sorted(asked))), found[0])
    product = " * ".join(f"{source}[{', '.join(map(str, at))}]" if at else source for source, at in key) or "a constant"
    more = f"; {len(found):,} products differ there" if len(found) > 1 else ""
    if not mine:
        return f"{product} is missing, which the reference has {_times(right)}{more}"
    if not right:
        return f"{product} is extra, {_times(mine)}, which the reference has not{more}"
    return f"{product} is there {_times(mine)}, and in the reference {_times(right)}{more}"


def _rounded(counts: Sequence[tuple[Count, bool]]) -> bool:
    """Whether two elements are of the same products, as often but for what numbers of the code are rounded by."""
    (ours, undefined), (theirs, _) = counts
    found = differences(ours, theirs)
    return not undefined and all(m and n and abs(m - n) <= abs(n) * ROUNDED for _, m, n in found)


def _times(count: Fraction) -> str:
    return "once" if count == 1 else "twice" if count == 2 else f"{count} times"
