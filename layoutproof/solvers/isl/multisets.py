"""Sums of products as relations: for each output element the multiset of operands that meet there, for all sizes.

A `Piece` is a set of (element, places of the operands), each met once; pairs met twice are another piece. Memory that
programs add to holds, for each cell and program, the sum since the last program that did not keep it: found as the
lexicographic maximum of a relation. Every set has the sizes as its first dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import Any

import islpy as isl

from layoutproof.core.errors import Undecided, Unsupported
from layoutproof.core.products import CallMemory, Factor, LexicographicCall, Monomial, Named, Output, Sum
from layoutproof.core.term import Term
from layoutproof.solvers.isl import _smallest
from layoutproof.solvers.isl.quasi import SET, Affine, Condition, Frame, Quasi
from layoutproof.solvers.isl.steps import Steps, steps

OUT, IN = isl.dim_type.out, isl.dim_type.in_
BUDGET, CALL = 3_000_000, 200_000
"""Operations of isl for one output, and of one call, at effort 1: a wrong matmul for all sizes needs above 300,000."""
MOST_PIECES = 256
"""Pieces of one source."""


@dataclass(frozen=True, slots=True)
class Piece:
    """coefficient times the product of elements of `sources`, for each point of `set`: sizes, element, their places.

    widths: how many dimensions the places of each source have.  twice: of these points, those that are met more often.
    """

    coefficient: Fraction
    sources: tuple[str, ...]
    widths: tuple[int, ...]
    set: Any
    twice: Any = None


@dataclass(frozen=True, slots=True)
class _Solved:
    """A source as pieces. undefined: where it is undefined: sizes, element."""

    pieces: tuple[Piece, ...]
    undefined: Any


@dataclass(frozen=True, slots=True)
class SumDifference:
    """Where two sums are not alike.

    sizes, element: the smallest.  sources, places: of the operands; none where an element of `undefined` is the matter:
    "ours" or "theirs".  repeated: whether it is only known that they meet more than once on one side.
    """

    sizes: tuple[int, ...]
    element: tuple[int, ...]
    sources: tuple[str, ...] = ()
    places: tuple[tuple[int, ...], ...] = ()
    undefined: str = ""
    repeated: bool = False


def difference(
    element: Named,
    ours: tuple[Sum, Sequence[LexicographicCall]],
    theirs: tuple[Sum, Sequence[LexicographicCall]],
    sizes: Sequence[str] = (),
    where: Sequence[Term] = (),
    effort: float = 1,
) -> SumDifference | None:
    """The smallest element at which two sums of products are not the same multiset of operands; None where all are.

    element: names of its dimensions.  ours, theirs: the element as a sum, and the calls whose sources it has.  sizes:
    names.  where: their conditions. Raises Undecided when a budget is spent and for terms that are not quasi-affine.
    """
    with steps(int(BUDGET * effort), int(CALL * max(1, effort))) as run:
        sides = []
        for whole, calls in (ours, theirs):
            side = _FunctionSources(run, tuple(sizes), tuple(where))
            for call in calls:
                side.solve(call)
            sides.append(side.element(element, whole))
        return _compared(run, len(sizes), len(element), *sides)


class _FunctionSources:
    """The sources of one function."""

    def __init__(self, run: Steps, sizes: tuple[str, ...], where: tuple[Term, ...]) -> None:
        self.run, self.sizes, self.where = run, sizes, where
        self.solved: dict[str, _Solved] = {}

    # sets

    def frame(self, *labels: str) -> tuple[Affine, dict[str, Quasi], list[Condition]]:
        """Sizes and some names as variables: (numbers, names, the conditions on sizes)."""
        frame = Frame(self.run, (*self.sizes, *labels))
        names = {name: frame.variable(k) for k, name in enumerate(frame.labels)}
        on = Affine(frame, names)
        return on, names, [c.evaluate(names, on) for c in self.where]

    def inside(self, named: Named, on: Affine, names: Mapping[str, Quasi]) -> list[Condition]:
        """That each of some names is within its extent."""
        found = []
        for name, extent in named:
            found += [on.less(-1, names[name]), on.less(names[name], extent.evaluate(names, on))]
        return found

    def all(self, on: Affine, conditions: Sequence[Condition]) -> isl.Set:
        return reduce(on.logical_and, conditions, on.frame.everything)

    def apart(self, monomial: Monomial, on: Affine, whole: isl.Set) -> isl.Set:
        """The part of a set where no point fulfils an `unless` condition of the monomial."""
        first = len(self.sizes)
        for named, condition in monomial.unless:
            wide, names, held = self.frame(*on.frame.labels[first:], *(name for name, _ in named))
            held += [*self.inside(named, wide, names), condition.evaluate(names, wide)]
            some = self.run(self.all(wide, held).project_out, SET, len(on.frame.labels), len(named))
            whole = self.run(whole.subtract, some)
        return whole

    def embedded(self, frame: Frame, some: isl.Set, positions: Sequence[int]) -> isl.Set:
        """A set in the variables of a frame; positions: of each of its own dimensions."""
        run = self.run
        domain = run(isl.Space.set_alloc, run.context, 0, len(frame.labels))
        local = run(isl.LocalSpace.from_space, domain)
        space = run(isl.Space.alloc, run.context, 0, len(frame.labels), len(positions))
        places = run(isl.MultiAff.zero, space)
        for k, position in enumerate(positions):
            places = run(places.set_aff, k, run(isl.Aff.var_on_domain, local, SET, position))
        return run(some.preimage_multi_aff, places)

    def counted(self, some: isl.Set, first: int, count: int) -> tuple[isl.Set, isl.Set | None]:
        """A set without some of its dimensions: (what is left, of that what is met more than once)."""
        run = self.run
        some = run(some.coalesce)
        if not count:
            return some, None
        rest = run(some.dim, SET) - first - count
        m = run(isl.Map.from_range, some)
        m = run(m.move_dims, IN, 0, OUT, 0, first)
        m = run(m.move_dims, IN, first, OUT, count, rest)
        twice = None
        if not run(m.is_single_valued):
            more = run(run(m.subtract, run(m.lexmin)).domain)
            twice = None if run(more.is_empty) else run(more.coalesce)
        return run(run(m.domain).coalesce), twice

    # elements

    def pieces(
        self, at: Named, monomial: Monomial, domain: Sequence[Term] = (), more: isl.Set | None = None
    ) -> Iterator[Piece]:  # fmt: skip
        """A monomial over elements `at`. domain: conditions. more: a set of sizes, elements and bound names."""
        monomial = _without_free(monomial)
        options = [
            self.solved[f.source].pieces if f.source in self.solved else (None,) for f in monomial.factors
        ]  # fmt: skip
        for choice in product(*options):
            found = self._piece(at, monomial, choice, domain, more)
            if found is not None:
                yield found

    def _piece(
        self,
        at: Named,
        monomial: Monomial,
        choice: Sequence[Piece | None],
        domain: Sequence[Term],
        more: isl.Set | None,
    ) -> Piece | None:
        labels = [name for name, _ in (*at, *monomial.bound)]
        start, places = len(self.sizes) + len(labels), []
        through: list[tuple[int, int, Piece]] = []
        coefficient, sources, widths = monomial.coefficient, [], []
        for k, (factor, piece) in enumerate(zip(monomial.factors, choice, strict=True)):
            many = len(factor.index)
            places.append(start)
            labels += [f"{k}.{d}" for d in range(many)]
            start += many
            if piece is None:
                sources.append(factor.source)
                widths.append(many)
                continue
            through.append((start - many, many, piece))
            labels += [f"{k}.of.{d}" for d in range(sum(piece.widths))]
            start += sum(piece.widths)
            coefficient *= piece.coefficient
            sources += piece.sources
            widths += piece.widths
        on, names, held = self.frame(*labels)
        held += self.inside((*at, *monomial.bound), on, names)
        held += [c.evaluate(names, on) for c in (*domain, *monomial.when)]
        whole = self.apart(monomial, on, self.all(on, held))
        if more is not None:
            whole = self.run(whole.intersect, self.embedded(on.frame, more, range(self.run(more.dim, SET))))
        for factor, place in zip(monomial.factors, places, strict=True):
            for d, term in enumerate(factor.index):
                whole = on.logical_and(whole, on.equal(on.frame.variable(place + d), term.evaluate(names, on)))
        if self.run(whole.is_empty):
            return None
        first, count = len(self.sizes) + len(at), len(monomial.bound)

        def finished(some: isl.Set, doubled: bool = False) -> tuple[isl.Set, isl.Set | None]:
            for place, many, _ in reversed(through):
                some = self.run(some.project_out, SET, place, many)
            return self.counted(some, first, count)

        def joined(some: isl.Set, piece: Piece, place: int, many: int, of: isl.Set) -> isl.Set:
            width = sum(piece.widths)
            positions = [*range(len(self.sizes)), *range(place, place + many + width)]
            return self.run(some.intersect, self.embedded(on.frame, of, positions))

        once = whole
        for place, many, piece in through:
            once = joined(once, piece, place, many, piece.set)
        if self.run(once.is_empty):
            return None
        found, twice = finished(once)
        for place, many, piece in through:
            if piece.twice is not None:
                inner, _ = finished(joined(once, piece, place, many, piece.twice))
                twice = inner if twice is None else self.run(twice.union, inner)
        return Piece(coefficient, tuple(sources), tuple(widths), found, twice)

    def undefined(
        self, at: Named, monomial: Monomial, domain: Sequence[Term] = (), more: isl.Set | None = None
    ) -> isl.Set:
        """Where a condition of being undefined holds: sizes, element."""
        found = None
        for factor in monomial.factors or (None,):
            if factor is not None and factor.source not in self.solved:
                continue
            labels = [name for name, _ in (*at, *monomial.bound)]
            place = len(self.sizes) + len(labels)
            index = () if factor is None else factor.index
            labels += [f"of.{d}" for d in range(len(index))]
            on, names, held = self.frame(*labels)
            held += self.inside((*at, *monomial.bound), on, names)
            held += [c.evaluate(names, on) for c in (*domain, *monomial.when)]
            held += [
                on.equal(on.frame.variable(place + d), term.evaluate(names, on)) for d, term in enumerate(index)
            ]  # fmt: skip
            whole = self.apart(monomial, on, self.all(on, held))
            if more is not None:
                whole = self.run(whole.intersect, self.embedded(on.frame, more, range(self.run(more.dim, SET))))
            if factor is not None:
                positions = [*range(len(self.sizes)), *range(place, place + len(index))]
                some = self.embedded(on.frame, self.solved[factor.source].undefined, positions)
                whole = self.run(whole.intersect, some)
            first = len(self.sizes) + len(at)
            whole = self.run(whole.project_out, SET, first, len(on.frame.labels) - first)
            found = whole if found is None else self.run(found.union, whole)
        return found

    def element(self, at: Named, whole: Sum, domain: Sequence[Term] = (), more: isl.Set | None = None) -> _Solved:
        """A sum over elements `at`."""
        pieces = [p for m in whole.numbers for p in self.pieces(at, m, domain, more)]
        if len(pieces) > MOST_PIECES:
            raise Unsupported(f"is a sum of more than {MOST_PIECES} kinds of products")
        on, _, _ = self.frame(*(name for name, _ in at))
        undefined = on.frame.nothing
        for m in whole.undefined:
            some = self.undefined(at, m, domain, more)
            if some is not None:
                undefined = self.run(undefined.union, some)
        return _Solved(tuple(pieces), self.run(undefined.coalesce))

    # memory

    def solve(self, call: LexicographicCall) -> None:
        """Makes the outputs of a call known."""
        wanted = {output.state for output in call.outputs.values()}
        for state in _in_order(call):
            self._solve_state(call, state, state.after in wanted)
        for output in call.outputs.values():
            self.solved[output.source] = self._output(call, output)

    def _solve_state(self, call: LexicographicCall, state: CallMemory, final: bool) -> None:
        at = (*state.cells, *call.programs)
        numbers, kept = _split(state, call, state.sum.numbers, True)
        undefined, kept_undefined = _split(state, call, state.sum.undefined, False)
        breaks = None if state.starts is None else self._breaks(call, state)
        on, names, held = self.frame(*(name for name, _ in at))
        held += self.inside(at, on, names)
        box = self.all(on, held)
        added = self.element(at, Sum(tuple(numbers), tuple(undefined)))
        positions = [*range(len(self.sizes)), *range(len(self.sizes) + len(state.cells), len(on.frame.labels))]
        at_breaks = None if breaks is None else self.embedded(on.frame, breaks, positions)

        def keeping(monomials: Sequence[Monomial], apart: bool) -> isl.Set:
            whole = on.frame.nothing
            for m in monomials:
                one = self.apart(m, on, self.all(on, [box, *(c.evaluate(names, on) for c in m.when)]))
                if apart and not self.run(self.run(whole.intersect, one).is_empty):
                    raise Unsupported("adds memory to itself")
                whole = self.run(whole.union, one)
            return whole

        bad = added.undefined
        keeps = keeping(kept, True)
        keeps_undefined = keeping(kept_undefined, False)
        if at_breaks is not None:
            bad = self.run(bad.union, self.run(keeps_undefined.intersect, at_breaks))
            keeps = self.run(keeps.subtract, at_breaks)
            keeps_undefined = self.run(keeps_undefined.subtract, at_breaks)
        kinds = [(state.before, True)] if self._is_read(call, state) else []
        for source, strict in [*kinds, *([(state.after, False)] if final else [])]:
            last = self._last(call, state, box, keeps, strict)
            pieces = [p for one in added.pieces if (p := self._since(call, state, last, one, strict)) is not None]
            last_undefined = self._last(call, state, box, keeps_undefined, strict)
            lost = self._since_undefined(call, state, last_undefined, bad, strict)
            never = self.run(box.subtract, self._seen(state, call, last_undefined))
            if strict and at_breaks is not None:
                never = self.run(never.union, at_breaks)
                pieces = [
                    replace(p, set=self.run(p.set.subtract, self._wide(at_breaks, p))) for p in pieces
                ]  # fmt: skip
            self.solved[source] = _Solved(tuple(pieces), self.run(self.run(never.union, lost).coalesce))

    def _wide(self, some: isl.Set, piece: Piece) -> isl.Set:
        return self.run(some.add_dims, SET, sum(piece.widths))

    def _is_read(self, call: LexicographicCall, state: CallMemory) -> bool:
        own = state.before
        return any(
            f.source == own
            for other in call.states.values() if other is not state
            for part in (other.sum.numbers, other.sum.undefined) for m in part for f in m.factors
        )  # fmt: skip

    def _lists(self, call: LexicographicCall, state: CallMemory, *more: str) -> tuple[list[str], dict[str, list[str]]]:
        """Labels: cells, programs, and for each of `more` programs again."""
        rows = {key: [f"{key}{name}" for name, _ in call.programs] for key in ("", *more)}
        return [*(name for name, _ in state.cells), *(name for key in ("", *more) for name in rows[key])], rows

    def _before(
        self, on: Affine, names: Mapping[str, Quasi], one: Sequence[str], other: Sequence[str], equal: bool
    ) -> isl.Set:
        """That one program comes before another one."""
        found, same = on.frame.nothing, on.frame.everything
        for a, b in zip(one, other, strict=True):
            found = on.logical_or(found, on.logical_and(same, on.less(names[a], names[b])))
            same = on.logical_and(same, on.equal(names[a], names[b]))
        return on.logical_or(found, same) if equal else found

    def _last(self, call: LexicographicCall, state: CallMemory, box: isl.Set, keeps: isl.Set, strict: bool) -> isl.Set:
        """The last program up to one (before it, if strict) that did not keep a cell: sizes, cell, program, that."""
        labels, rows = self._lists(call, state, "q ")
        on, names, _ = self.frame(*labels)
        count = len(call.programs)
        first, cells = len(self.sizes), len(state.cells)
        inner = [*range(first + cells), *range(first + cells + count, first + cells + 2 * count)]
        resets = self.run(box.subtract, keeps)
        whole = self.embedded(on.frame, resets, inner)
        whole = on.logical_and(whole, self.embedded(on.frame, box, range(first + cells + count)))
        whole = on.logical_and(whole, self._before(on, names, rows["q "], rows[""], not strict))
        return self._largest(whole, first + cells + count)

    def _largest(self, some: isl.Set, first: int) -> isl.Set:
        """The set with the lexicographically largest dimensions from `first` on, for each choice of the others."""
        m = self.run(isl.Map.from_range, some)
        m = self.run(m.move_dims, IN, 0, OUT, 0, first)
        m = self.run(self.run(m.lexmax).coalesce)
        m = self.run(m.move_dims, OUT, 0, IN, 0, first)
        return self.run(m.range)

    def _seen(self, state: CallMemory, call: LexicographicCall, last: isl.Set) -> isl.Set:
        first = len(self.sizes) + len(state.cells) + len(call.programs)
        return self.run(last.project_out, SET, first, len(call.programs))

    def _alive(
        self, call: LexicographicCall, state: CallMemory, last: isl.Set, strict: bool, extra: int
    ) -> tuple[Affine, isl.Set, list[int]]:
        """Programs r since the last one, q, that did not keep a cell: sizes, cell, program, q, r, and `extra` more."""
        labels, rows = self._lists(call, state, "q ", "r ")
        on, names, _ = self.frame(*labels, *(f"of.{d}" for d in range(extra)))
        first, cells, count = len(self.sizes), len(state.cells), len(call.programs)
        whole = self.embedded(on.frame, last, range(first + cells + 2 * count))
        whole = on.logical_and(whole, self._before(on, names, rows["q "], rows["r "], True))
        whole = on.logical_and(whole, self._before(on, names, rows["r "], rows[""], not strict))
        inner = [*range(first + cells), *range(first + cells + 2 * count, first + cells + 3 * count + extra)]
        return on, whole, inner

    def _since(
        self, call: LexicographicCall, state: CallMemory, last: isl.Set, piece: Piece, strict: bool
    ) -> Piece | None:
        """The summands since the last program that did not keep a cell."""
        width, first = sum(piece.widths), len(self.sizes) + len(state.cells) + len(call.programs)
        on, alive, inner = self._alive(call, state, last, strict, width)
        count = len(call.programs)

        def finished(of: isl.Set) -> tuple[isl.Set, isl.Set | None]:
            some = self.run(alive.intersect, self.embedded(on.frame, of, inner))
            return self.counted(self.run(some.project_out, SET, first, count), first, count)

        found, twice = finished(piece.set)
        if self.run(found.is_empty):
            return None
        if piece.twice is not None:
            inner_twice, _ = finished(piece.twice)
            twice = inner_twice if twice is None else self.run(twice.union, inner_twice)
        return replace(piece, set=found, twice=twice)

    def _since_undefined(
        self, call: LexicographicCall, state: CallMemory, last: isl.Set, bad: isl.Set, strict: bool
    ) -> isl.Set:
        on, alive, inner = self._alive(call, state, last, strict, 0)
        first, count = len(self.sizes) + len(state.cells) + len(call.programs), len(call.programs)
        some = self.run(alive.intersect, self.embedded(on.frame, bad, inner))
        return self.run(some.project_out, SET, first, 2 * count)

    def _breaks(self, call: LexicographicCall, state: CallMemory) -> isl.Set:
        """Programs at whose beginning a window shows another block than before: sizes, program."""
        assert state.starts is not None
        rows = [[f"{key}{name}" for name, _ in call.programs] for key in ("", "q ")]
        on, names, held = self.frame(*rows[0], *rows[1])
        held += self.inside(call.programs, on, names)
        here = self.all(on, held)
        before = {**names, **{name: names[f"q {name}"] for name, _ in call.programs}}
        moved = on.frame.nothing
        for start in state.starts:
            moved = on.logical_or(
                moved, on.logical_not(on.equal(start.evaluate(names, on), start.evaluate(before, on)))
            )
        previous = on.frame.nothing
        for d in range(len(call.programs)):
            parts = [on.equal(names[q], names[p]) for p, q in zip(rows[0][:d], rows[1][:d], strict=True)]
            parts.append(on.equal(names[rows[1][d]] + 1, names[rows[0][d]]))
            for (_, extent), p, q in list(zip(call.programs, *rows, strict=True))[d + 1 :]:
                parts += [on.equal(names[p], 0), on.equal(names[q] + 1, extent.evaluate(names, on))]
            # the program before it is one of the grid
            parts.append(on.less(-1, names[rows[1][d]]))
            previous = on.logical_or(previous, self.all(on, parts))
        found = self.all(on, [here, moved, previous])
        count = len(call.programs)
        found = self.run(found.project_out, SET, len(self.sizes) + count, count)
        first_on, first_names, first_held = self.frame(*rows[0])
        first_held += self.inside(call.programs, first_on, first_names)
        first_held += [first_on.equal(first_names[p], 0) for p in rows[0]]
        return self.run(self.run(found.union, self.all(first_on, first_held)).coalesce)

    def _output(self, call: LexicographicCall, output: Output) -> _Solved:
        """The final value of an output: of each element, its window's value in the last program that shows it."""
        on, names, held = self.frame(*(name for name, _ in (*output.element, *call.programs)))
        held += self.inside((*output.element, *call.programs), on, names)
        held += [c.evaluate(names, on) for c in output.shows]
        last = self._largest(self.all(on, held), len(self.sizes) + len(output.element))
        if output.sees is not None:
            self._refuse_rereads(call, output)
        index = (*output.cell, *(Term("name", name) for name, _ in call.programs))
        one = Monomial(factors=(Factor(output.state, index),), bound=call.programs)
        found = self.element(output.element, Sum((one,), (one,)), (), last)
        box_on, box_names, box_held = self.frame(*(name for name, _ in output.element))
        box = self.all(box_on, [*box_held, *self.inside(output.element, box_on, box_names)])
        shown = self.run(last.project_out, SET, len(self.sizes) + len(output.element), len(call.programs))
        never = self.element(output.element, output.otherwise, (), self.run(box.subtract, shown))
        return _Solved((*found.pieces, *never.pieces), self.run(found.undefined.union, never.undefined))

    def _refuse_rereads(self, call: LexicographicCall, output: Output) -> None:
        """Of an output in an input's place: that no program reads what an earlier one has written back there."""
        (state,) = (s for s in call.states.values() if s.after == output.state)
        ids = [name for name, _ in call.programs]
        rows = {key: [f"{key}{name}" for name in ids] for key in ("", "q ", "r ")}
        on, names, held = self.frame(*(name for name, _ in output.element), *(n for row in rows.values() for n in row))
        held += self.inside(output.element, on, names)

        def of(key: str) -> dict[str, Quasi]:
            return {**names, **{name: names[f"{key}{name}"] for name in ids}}

        for key in rows:
            held += self.inside(call.programs, on, of(key))
        assert output.sees is not None
        held += [c.evaluate(of(""), on) for c in output.sees] + [c.evaluate(of("q "), on) for c in output.shows]
        held.append(self._before(on, names, rows["q "], rows["r "], False))
        held.append(self._before(on, names, rows["r "], rows[""], True))
        first = len(self.sizes) + len(output.element) + 2 * len(ids)
        moved = self.embedded(
            on.frame, self._breaks(call, state), [*range(len(self.sizes)), *range(first, first + len(ids))]
        )
        if not self.run(self.run(self.all(on, held).intersect, moved).is_empty):
            raise Unsupported("reads in an output's place what an earlier program wrote back there")


def _without_free(m: Monomial) -> Monomial:
    """Names that nothing speaks of count only: a sum of equal terms is a multiple."""
    used = {name for term in (*m.terms, *(extent for _, extent in m.bound)) for name in term.names()}
    coefficient, bound = m.coefficient, []
    for name, extent in m.bound:
        if name in used:
            bound.append((name, extent))
        elif extent.op == "int":
            coefficient *= max(extent.args[0], 0)
        else:
            raise Unsupported(f"adds the same product {extent} times, which is no number")
    return replace(m, coefficient=coefficient, bound=tuple(bound))


def _split(
    state: CallMemory, call: LexicographicCall, monomials: Sequence[Monomial], numbers: bool
) -> tuple[list[Monomial], list[Monomial]]:  # fmt: skip
    """The summands that a program adds to memory, and where it keeps the old value."""
    own = (*(name for name, _ in state.cells), *(name for name, _ in call.programs))
    here = Factor(state.before, tuple(Term("name", name) for name in own))
    rest, kept = [], []
    for m in monomials:
        if m.factors == (here,) and not m.bound and (m.coefficient == 1 or not numbers):
            kept.append(m)
        elif any(f.source == state.before for f in m.factors):
            raise Unsupported("is a recurrence that is no sum")
        else:
            rest.append(m)
    return rest, kept


def _in_order(call: LexicographicCall) -> list[CallMemory]:
    """The memories of a call, each after those that it takes something from."""
    names = {state.before: state for state in call.states.values()}
    needs = {
        state.before: {
            f.source for part in (state.sum.numbers, state.sum.undefined) for m in part for f in m.factors
        } & names.keys() - {state.before}
        for state in call.states.values()
    }  # fmt: skip
    found: list[CallMemory] = []
    done: set[str] = set()
    while len(found) < len(names):
        ready = [n for n in names if n not in done and needs[n] <= done]
        if not ready:
            raise Unsupported("has memories that take from each other")
        found += [names[n] for n in ready]
        done.update(ready)
    return found


# comparing


def _canonical(run: Steps, lead: int, piece: Piece) -> list[Piece]:
    """The same with the factors in the order of their sources; of two of one source the smaller place first."""
    order = sorted(range(len(piece.sources)), key=lambda k: piece.sources[k])
    starts = [lead + sum(piece.widths[:k]) for k in range(len(piece.widths))]
    total = lead + sum(piece.widths)
    positions = [*range(lead), *(p for k in order for p in range(starts[k], starts[k] + piece.widths[k]))]
    sources = tuple(piece.sources[k] for k in order)
    widths = tuple(piece.widths[k] for k in order)
    same = positions == list(range(total))

    def turned(some: isl.Set, to: Sequence[int]) -> isl.Set:
        # the old dimension to[k] is the new dimension k
        back = [0] * len(to)
        for new, old in enumerate(to):
            back[old] = new
        return _renamed(run, some, back)

    if not same:
        piece = replace(
            piece, set=turned(piece.set, positions),
            twice=None if piece.twice is None else turned(piece.twice, positions),
        )  # fmt: skip
    piece = replace(piece, sources=sources, widths=widths)
    if len(sources) != 2 or sources[0] != sources[1]:
        return [piece]
    frame = Frame(run, [str(k) for k in range(total)])
    on = Affine(frame, {})
    width = widths[0]
    less, equal = frame.nothing, frame.everything
    for d in range(width):
        a, b = frame.variable(lead + d), frame.variable(lead + width + d)
        less = on.logical_or(less, on.logical_and(equal, on.less(b, a)))
        equal = on.logical_and(equal, on.equal(a, b))
    swapped = [*range(lead), *range(lead + width, total), *range(lead, lead + width)]
    found = []
    for turn in (False, True):
        halves: list[Any] = [
            None if some is None else run(some.intersect, less) if turn else run(some.subtract, less)
            for some in (piece.set, piece.twice)
        ]  # fmt: skip
        if turn:
            halves = [None if some is None else turned(some, swapped) for some in halves]
        if not run(halves[0].is_empty):
            found.append(replace(piece, set=halves[0], twice=halves[1]))
    return found


def _renamed(run: Steps, some: isl.Set, positions: Sequence[int]) -> isl.Set:
    """The set whose dimension positions[k] is the dimension k of `some`."""
    count = len(positions)
    domain = run(isl.Space.set_alloc, run.context, 0, count)
    local = run(isl.LocalSpace.from_space, domain)
    places = run(isl.MultiAff.zero, run(isl.Space.alloc, run.context, 0, count, count))
    for k, position in enumerate(positions):
        places = run(places.set_aff, k, run(isl.Aff.var_on_domain, local, SET, position))
    return run(some.preimage_multi_aff, places)


def _compared(run: Steps, sizes: int, rank: int, ours: _Solved, theirs: _Solved) -> SumDifference | None:
    lead = sizes + rank
    lost = None
    for whose, side in (("theirs", theirs), ("ours", ours)):
        if not run(side.undefined.is_empty):
            row = _smallest(side.undefined, run, lead)
            run.context.set_max_operations(run.limit)
            lost = SumDifference(row[:sizes], row[sizes:], undefined=whose)
            if whose == "theirs":
                return lost
    try:
        counted = _counted(run, sizes, lead, ours, theirs)
    except Undecided:
        if lost is None:
            raise
        return lost
    if lost is None or counted is None or counted.repeated:
        return lost or counted
    return min(lost, counted, key=lambda d: (d.sizes, d.element))


def _counted(run: Steps, sizes: int, lead: int, ours: _Solved, theirs: _Solved) -> SumDifference | None:
    """The smallest element at which a product does not stand equally often."""
    kinds: dict[tuple[str, ...], list[tuple[Fraction, Piece]]] = {}
    for sign, side in ((1, ours), (-1, theirs)):
        for piece in side.pieces:
            for one in _canonical(run, lead, piece):
                kinds.setdefault(one.sources, []).append((sign * one.coefficient, one))
    found: list[tuple[tuple[int, ...], tuple[str, ...], tuple[int, ...], bool]] = []
    for sources, pieces in kinds.items():
        widths = pieces[0][1].widths
        count = lead + sum(widths)
        parts: list[tuple[Any, Fraction]] = []
        for coefficient, piece in pieces:
            parts = _refined(run, parts, piece.set, coefficient)
        unequal = [some for some, coefficient in parts if coefficient]
        twice = [piece.twice for _, piece in pieces if piece.twice is not None]
        for some, repeated in [(s, False) for s in unequal] + [(s, True) for s in twice]:
            if not run(some.is_empty):
                row = _smallest(some, run, count)
                run.context.set_max_operations(run.limit)
                found.append((row, sources, widths, repeated))
    if not found:
        return None
    row, sources, widths, repeated = min(found, key=lambda one: (one[3], one[0]))
    places, start = [], lead
    for width in widths:
        places.append(row[start : start + width])
        start += width
    return SumDifference(row[:sizes], row[sizes:lead], sources, tuple(places), repeated=repeated)


def _refined(
    run: Steps, parts: list[tuple[isl.Set, Fraction]], some: isl.Set, coefficient: Fraction
) -> list[tuple[isl.Set, Fraction]]:
    """Disjoint sets with their coefficients, and one more set."""
    result, rest = [], some
    for part, held in parts:
        both = run(part.intersect, some)
        if run(both.is_empty):
            result.append((part, held))
            continue
        result.append((run(both.coalesce), held + coefficient))
        alone = run(run(part.subtract, some).coalesce)
        if not run(alone.is_empty):
            result.append((alone, held))
        rest = run(run(rest.subtract, part).coalesce)
    if not run(rest.is_empty):
        result.append((rest, coefficient))
    return result
