"""Masks that stand in a body and miss the padding: in another dimension, or in another order of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product

from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.effects import Access, Body, Index, Mask, places
from layoutproof.bodies.order import outside, seen, start_of
from layoutproof.bodies.terms import names_in, replaced
from layoutproof.bodies.walk import Origin
from layoutproof.core.budget import budget
from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.folding import FALSE, TRUE, folded
from layoutproof.core.numbers import INTS
from layoutproof.core.term import Term, every
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.pallas import problems

STEPS = 20_000
"""The budget for one mask."""
MOST = 1024
"""Elements of one mask that are looked at."""


@dataclass(frozen=True, slots=True)
class Missed:
    """A mask on what is loaded of an operand, which keeps padding of one of its dimensions.

    line: of the mask.  others: the dimensions that it masks, where it is not that one; else () and the rest is known.
    keeps: a place of padding that it keeps.  leaves_out: one of the array that it leaves out, None where none is found.
    """

    line: str
    dimension: int
    others: tuple[int, ...]
    keeps: int
    leaves_out: int | None

    def words(self) -> str:
        """Its fault, in words."""
        if self.others:
            dims = " and ".join(map(str, self.others))
            return problems.MASKS_OTHER(self.line, dims, self.dimension)
        if self.leaves_out is not None:
            return problems.MASK_KEEPS_ONE(self.line, self.keeps, self.dimension, self.leaves_out)
        return problems.MASK_KEEPS(self.line, self.keeps, self.dimension)

    def doubt(self) -> str:
        """Its remaining fault when the padding is masked elsewhere; "" for none that is known."""
        if self.others or self.leaves_out is None:
            return ""
        return problems.MASK_LEAVES_OUT(self.line, self.leaves_out, self.dimension)


def missed(kernel: Kernel, operand: Operand, k: int, origin: Origin) -> Missed | None:
    """The first mask that is meant for an operand and keeps padding of its dimension k; None for none.

    origin: of the padding, which says in which program and iterations masks are looked at.
    """
    body: Body | None = kernel.body
    if body is None or len(origin.program) != len(kernel.grid_names):
        return None
    loads = {
        e.name: e
        for e in body.effects
        if isinstance(e, Access) and e.kind == "read" and e.view.reference.name == operand.name
    }
    names = {**dict(zip(kernel.grid_names, origin.program, strict=True)), **dict(origin.iterations)}
    for mask in body.masks:
        line = mask.spot.source.rpartition(":")[2]
        if not line or not mask.cases:
            continue
        # a mask of data, of tables or of loops is one that is not looked at here
        with budget(STEPS), suppress(UnsupportedOp, Undecided, LayoutError, ArithmeticError, RecursionError):
            found = _of(mask, operand, k, loads, names)
            if found is not None:
                return Missed(line, k, *found)
    return None


def _of(
    mask: Mask, operand: Operand, k: int, loads: Mapping[str, Access], names: Mapping[str, int]
) -> tuple[tuple[int, ...], int, int | None] | None:
    """The elements of an operand that a mask keeps and leaves out, None where it keeps no padding or is not about
    it."""
    dims = mask.value.dims
    elements = tuple(Term("name", f"element[{d}]") for d in range(len(dims)))
    chosen_by = set(names_in(mask.value.number(elements)))
    used: list[set[str]] = [set() for _ in seen(operand)]
    for _, at in _loaded(mask, elements, loads):
        for d, place in enumerate(at):
            used[d] |= set(names_in(place)) & {str(e) for e in elements}
    if not any(used):
        return None
    axis = seen(operand).index(k)
    keeps: int | None = None
    leaves_out: int | None = None
    from_ = int(start_of(operand, k).evaluate(names, INTS))
    extent = INTS.size(operand.dims[k])
    matter = [str(e) in chosen_by | used[axis] for e in elements]
    each = round(MOST ** (1 / max(1, sum(matter))))
    tried = [_some(n, each, extent - from_) if is_one else (0,) for n, is_one in zip(dims, matter, strict=True)]
    for index in product(*tried):
        point = tuple(Term("int", i) for i in index)
        held = bool(mask.value.number(point).evaluate(names, INTS))
        for taken, at in _loaded(mask, point, loads):
            there = from_ + int(at[axis].evaluate(names, INTS))
            padding = [
                bool(outside(operand, d, Term("int", int(at[a].evaluate(names, INTS)))).evaluate(names, INTS))
                for a, d in enumerate(seen(operand))
            ]
            if held is taken and padding[axis] and _comes_in(mask, taken, point, loads, names):
                keeps = there if keeps is None else keeps
            elif held is not taken and not any(padding):
                leaves_out = there if leaves_out is None else leaves_out
    if keeps is None:
        return None
    others = tuple(d for d, of in zip(seen(operand), used, strict=True) if of & chosen_by)
    return (() if k in others or not others else others), keeps, leaves_out


def _loaded(mask: Mask, index: Index, loads: Mapping[str, Access]) -> Iterator[tuple[bool, Index]]:
    """(whether it is taken where the mask holds, the place in the window) of all that is loaded and chosen among."""
    for taken, case in zip((False, True), mask.cases, strict=True):
        if case is None or case.dims != mask.value.dims:
            continue
        for part in every(case.undefined(index)):
            if part.op == "leaf" and part.args[0] in loads:
                at = places(loads[part.args[0]].view, part.args[1:])
                if at is not None:
                    yield taken, at


def _comes_in(mask: Mask, taken: bool, point: Index, loads: Mapping[str, Access], names: Mapping[str, int]) -> bool:
    """Whether padding reaches a mask at all: another one may have left it out before."""

    def change(part: Term) -> Term | None:
        if part.op == "maybe":
            return TRUE
        if part.op != "leaf":
            return None
        return TRUE if part.args[0] in loads else FALSE

    undefined = folded(replaced(mask.cases[taken].undefined(point), change))
    return bool(undefined.evaluate(names, INTS))


def _some(size: int, count: int, begins: int) -> Sequence[int]:
    """About so many places of one dimension of a mask, the first, the last, and where padding begins among them."""
    if size <= count:
        return range(size)
    there = {0, size - 1, *(at for at in (begins - 1, begins) if 0 <= at < size)}
    return sorted(there | set(range(0, size, -(-size // count))))
