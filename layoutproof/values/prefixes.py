"""Prefixes of a reference: its results on the part of its inputs that a kernel has read after some of its steps.

The programs that store one block of an output, one after the other, read the inputs along some axes, and keep a state.
After each of them, what the state would be stored as is compared with the reference on the inputs cut to what was read:
cut off along these axes, or 0 or -inf beyond (which a sum, or a maximum, does not see). While the two agree the state
is what it should be. Where they agree after a step and never after a later one, the difference begins there.

That is said only where they agreed somewhere: a mean that is divided by all its terms at once agrees with no mean of a
part. Nothing is a verdict here; the difference itself was found before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations, groupby
from typing import Any, cast

import numpy as np

from layoutproof.ir.program import Equation, Program
from layoutproof.values.floats import Floats, Real, array_of
from layoutproof.values.kernels import overlap
from layoutproof.values.kinds import Shaped
from layoutproof.values.known import Known
from layoutproof.values.pair import Retrace
from layoutproof.values.refusals import Ended, NotModelled, OutOfBounds
from layoutproof.values.walk import Prepared, Walk
from layoutproof.values.watch import Early, Freeze, Looped, ObservedStore, ProgramStores, Read, Watch

Array = np.ndarray[Any, Any]
Axis = tuple[int, int]
"""An argument, and one of its axes."""
Cut = Mapping[Axis, Array]
"""Of axes, the indices that are kept."""

TRIED = 3
"""Blocks in which a difference is looked for."""
NEAR = 1e-6
"""Numbers of float64 that differ relatively by less are the same function of what was drawn."""
MOST = 0.9
"""The part of the elements of a block that have to agree: a maximum with 0 lets some agree by chance."""
MOST_STEPS, MOST_RUNS, MOST_STORES = 32, 64, 32
"""Programs of one block, blocks, and stores of one program: of more nothing is said."""
MOST_KERNELS, MOST_LOOPS = 4, 8
"""Kernels of a function, and loops of a program: of more nothing is said, and no more are looked at."""
MOST_AXES, MOST_MORE = 4, 2
"""Axes that may be cut with those along which a kernel reads, because they are as long, and how many at once."""


@dataclass(frozen=True)
class Begin:
    """Where a difference begins.

    place: `file:line` of the first store after which the state is no prefix of the reference; "" where that is not
    known.  until: where it is one of several stores of a program, the last of them.  program: its ids.
    stored: where the element itself is stored.
    """

    place: str = ""
    until: str = ""
    program: tuple[int, ...] = ()
    stored: str = ""


@dataclass(frozen=True)
class ProgramRun:
    """Programs in a row that store one block of each of the kernel's results. numbers: which programs.

    reaches: of each result, which elements of the output rest on its block.
    """

    numbers: tuple[int, ...]
    reaches: tuple[Array, ...]

    @property
    def reached(self) -> Array:
        """Which elements of the output rest on the run."""
        found: Array = np.logical_or.reduce(self.reaches)
        return found


class _Compared:
    """A kernel beside its reference, on one draw of float64. position: of the output among those that are compared."""

    def __init__(
        self, numbers: Floats, sides: tuple[Program, Program], values: Sequence[Real | Known], prepared: Prepared,
        outputs: Sequence[int] | None, position: int, retrace: Retrace, which: int = 0,
    ) -> None:  # fmt: skip
        self.which = which
        self.numbers, self.sides, self.values, self.prepared = numbers, sides, list(values), prepared
        self.position = position if outputs is None else outputs[position]
        self.retrace = retrace
        self._traced: dict[tuple[tuple[int, ...], ...], Any] = {}
        self._placed: dict[int, tuple[int, Array]] | None = None
        self.seen = Watch(which=which, found=_finder(self.values))
        self.ours = self.output(self.sides[0], self.values, self.seen)
        self.theirs = self.output(self.sides[1], self.values)
        known = np.isfinite(self.theirs)
        self.typical = float(np.median(np.abs(self.theirs[known]))) if known.any() else 0.0
        self.wrong = known & ~self.near(self.ours, self.theirs)

    def numbers_of(self, value: Shaped) -> Array:
        """The results of a kernel, as numbers."""
        return array_of(Walk(self.numbers, self.prepared).data(value))

    def output(self, side: Program, values: Sequence[Real | Known], watch: Watch | None = None) -> Array:
        """The output of a side."""
        walk = Walk(self.numbers, self.prepared, watch=watch)
        with np.errstate(all="ignore"):
            return np.asarray(array_of(walk.data(walk.run(side, values)[self.position])))

    def near(self, a: Array, b: Array) -> Array:
        """Which elements are the same number."""
        with np.errstate(all="ignore"):
            # numbers of the code are rounded to float32, on each side otherwise
            size = np.maximum(np.maximum(np.abs(a), np.abs(b)), self.typical)
            found: Array = np.isfinite(a) & np.isfinite(b) & (np.abs(a - b) <= NEAR * size)
        return found

    def walked(
        self,
        last: Mapping[int, int],
        early: Mapping[int, Sequence[int | None]],
        values: Sequence[Real | Known] | None = None,
    ) -> Watch:
        """A walk over the kernel some of whose programs end early."""
        watch = Watch(last=last, early=early, which=self.which)
        with suppress(Ended):
            self.output(self.sides[0], self.values if values is None else values, watch)
        return watch

    def with_blocks(self, blocks: Sequence[Array | None], program: ProgramStores) -> Array:
        """The output where a program's blocks of the kernel's results are others; None leaves one as it is."""
        changed = []
        windows = [w for w in self.seen.windows if w.output]
        for window, block, at, result in zip(windows, blocks, program.blocks, self.seen.results, strict=True):
            if block is None:
                changed.append(result)
                continue
            whole = np.array(array_of(result))
            assert at is not None
            array, inside = overlap(at, whole.shape)
            whole[array] = block.reshape(window.extents)[inside]
            changed.append(replace(cast(Real, result), array=whole))
        return self.output(self.sides[0], self.values, Watch(given=changed, which=self.which))

    def frozen(self, number: int, loop: Looped, step: int, stores: int = 0) -> Array:
        """The output where a loop's state stays as it is after a step, and some stores of the next one."""
        freeze = Freeze(number, loop.equation, loop.instance, step, stores)
        return self.output(self.sides[0], self.values, Watch(which=self.which, freeze=freeze, keeps=loop.keeps))

    def runs(self) -> list[ProgramRun]:
        """The programs of each block, in order."""
        found, drawn = [], np.random.default_rng(29)
        programs = self.seen.programs
        windows = [w for w in self.seen.windows if w.output]
        groups = [tuple(group) for _, group in groupby(range(len(programs)), key=lambda k: programs[k].blocks)]
        for group in groups[:MOST_RUNS]:
            first = programs[group[0]]
            reached = []
            for k, window in enumerate(windows):
                blocks: list[Array | None] = [None] * len(windows)
                blocks[k] = drawn.standard_normal(window.extents)
                moved = self.with_blocks(blocks, first)
                reached.append(~((moved == self.ours) | (np.isnan(moved) & np.isnan(self.ours))))
            found.append(ProgramRun(group, tuple(reached)))
        return found

    # prefixes

    def cuts(self, run: ProgramRun) -> list[dict[Axis, Array]]:
        """After each program of a run the part of the inputs that was read, along the axes that they go along."""
        places = self._places()
        inputs = [w for w in self.seen.windows if not w.output]
        by_hand = any(not w.windowed for w in inputs)
        if not places and not by_hand:
            return []
        shapes = [tuple(v.shape) for v in self.values]
        masks = {k: np.zeros(int(np.prod(shapes[k])), bool) for k in range(len(shapes))}
        kept: list[dict[Axis, Array]] = []
        for number in run.numbers:
            if by_hand:
                for _, (argument, flat_places) in self.seen.programs[number].reads:
                    masks[argument][flat_places] = True
            for k, (window, at) in enumerate(zip(inputs, self.seen.programs[number].read, strict=True)):
                if at is None or k not in places:
                    continue
                argument, flat = places[k]
                masks[argument][flat[overlap(at, window.whole.shape)[0]].reshape(-1)] = True
            kept.append(_along(masks, shapes))
        return _joined(kept, [0] * len(kept))

    def cuts_of(self, program: ProgramStores, loop: Looped) -> list[dict[Axis, Array]]:
        """After each step of a loop the part of the inputs that was read since its state began, likewise."""
        shapes = [tuple(v.shape) for v in self.values]
        inside = {argument for step in loop.reads for argument, _ in step}
        outside = [read for loops, read in program.reads if loop not in loops and read[0] not in inside]
        kept: list[dict[Axis, Array]] = []
        starts: list[int] = []
        for step in range(len(loop.handed)):
            starts.append(max((s for s in loop.resets if s <= step), default=0))
            masks = {k: np.zeros(int(np.prod(shape)), bool) for k, shape in enumerate(shapes)}
            for argument, flat in (*outside, *(r for part in loop.reads[starts[-1] : step + 1] for r in part)):
                masks[argument][flat] = True
            kept.append(_along(masks, shapes))
        return _joined(kept, starts)

    def _places(self) -> dict[int, tuple[int, Array]]:
        """Of each operand of the kernel whose elements are those of one argument, which they are."""
        if self._placed is not None:
            return self._placed
        found: dict[int, tuple[int, Array]] = {}
        operands = [w.whole.value for w in self.seen.windows if not w.output]
        for k, operand in enumerate(operands):
            if not isinstance(operand, Real) or not operand.array.size:
                continue
            for argument, value in enumerate(self.values):
                if not isinstance(value, Real) or value.span is not None or not value.array.size:
                    continue
                flat = value.array.reshape(-1)
                order = np.argsort(flat)
                at = np.searchsorted(flat, operand.array, sorter=order)
                places = order[np.minimum(at, flat.size - 1)]
                if np.array_equal(flat[places], operand.array):
                    found[k] = argument, places
                    break
        self._placed = found
        return found

    def prefixes(self, cut: Cut) -> Iterator[Array]:
        """The reference's results on a part of its inputs, in each way in which it may be cut, NaN beyond it."""
        shapes = [tuple(v.shape) for v in self.values]
        if all(len(kept) == shapes[k][axis] for (k, axis), kept in cut.items()):
            yield self.theirs
            return
        for beyond in (0.0, -np.inf):
            values = list(self.values)
            for (k, axis), kept in cut.items():
                array = np.array(values[k].array)
                dropped = np.setdiff1d(np.arange(shapes[k][axis]), kept)
                array[(slice(None),) * axis + (dropped,)] = beyond
                values[k] = replace(values[k], array=array)
            yield self._of(self.sides[1], values)
        yield from self.smaller(cut)

    def smaller(self, cut: Cut) -> Iterator[Array]:
        """The reference's results where it can be traced at the sizes of a part of its inputs, NaN beyond it."""
        shapes = [tuple(v.shape) for v in self.values]
        extents = {shapes[k][axis]: kept for (k, axis), kept in cut.items()}
        others = [
            (k, axis) for k, shape in enumerate(shapes) for axis, n in enumerate(shape)
            if n in extents and k not in {a for a, _ in cut} and isinstance(self.values[k].array, np.ndarray)
        ][:MOST_AXES]  # fmt: skip
        for many in range(min(len(others), MOST_MORE) + 1):
            for more in combinations(others, many):
                yield from self._sliced({**cut, **{(k, axis): extents[shapes[k][axis]] for k, axis in more}}, extents)

    def _sliced(self, cut: Cut, extents: Mapping[int, Array]) -> Iterator[Array]:
        """The reference, traced at smaller sizes, where it can be."""
        values = list(self.values)
        for (k, axis), indices in cut.items():
            values[k] = replace(values[k], array=np.take(np.asarray(values[k].array), indices, axis))
        shapes = tuple(tuple(v.shape) for v in values)
        if shapes not in self._traced:
            self._traced[shapes] = self.retrace(list(shapes))
        if self._traced[shapes] is None:
            return
        part = self._of(self._traced[shapes], values)
        full = np.full(self.theirs.shape, np.nan)
        if part.ndim != full.ndim:
            return
        kept: list[Array] = []
        for n, whole in zip(part.shape, full.shape, strict=True):
            if n != whole and len(extents.get(whole, ())) != n:
                return
            kept.append(np.arange(n) if n == whole else extents[whole])
        full[np.ix_(*kept)] = part
        yield full

    def _of(self, side: Program, values: Sequence[Real | Known]) -> Array:
        try:
            return self.output(side, values)
        except (NotModelled, OutOfBounds):
            return np.full(self.theirs.shape, np.nan)

    def agrees(self, early: Early, program: ProgramStores, cuts: Sequence[Cut], where: Array) -> Array:
        """Which elements of an output, stored after some store, are a prefix's."""
        return self.are_prefixes(self.with_blocks(early.blocks, program), cuts, where)

    def are_prefixes(self, ours: Array, cuts: Sequence[Cut], where: Array) -> Array:
        """Which elements of an output are a prefix's."""
        found = np.zeros(where.shape, bool)
        for cut in cuts:
            for theirs in self.prefixes(cut):
                found |= where & self.near(ours, theirs)
                if found[where].all():
                    return found
        return found


def _finder(values: Sequence[Real | Known]) -> Callable[[Array], list[Read]]:
    """Which elements of the arguments the elements of an array are, by their values: no two are alike."""
    drawn = [k for k, v in enumerate(values) if isinstance(v, Real) and v.span is None and v.array.size]
    flat = np.concatenate([values[k].array.reshape(-1) for k in drawn] or [np.zeros(0)])
    of = np.concatenate([np.full(values[k].array.size, k) for k in drawn] or [np.zeros(0, int)])
    at = np.concatenate([np.arange(values[k].array.size) for k in drawn] or [np.zeros(0, int)])
    order = np.argsort(flat)
    ordered = flat[order]

    def found(array: Array) -> list[Read]:
        if not ordered.size:
            return []
        asked = array.reshape(-1)
        place = np.minimum(np.searchsorted(ordered, asked), ordered.size - 1)
        which = order[place[ordered[place] == asked]]
        return [(int(k), at[which[of[which] == k]]) for k in np.unique(of[which])]

    return found


def _along(masks: Mapping[int, Array], shapes: Sequence[tuple[int, ...]]) -> dict[Axis, Array]:
    """Along each axis of the arguments the indices at which some element is marked."""
    found = {}
    for argument, shape in enumerate(shapes):
        mask = masks[argument].reshape(shape)
        for axis in range(len(shape)):
            found[argument, axis] = np.asarray(mask.any(tuple(d for d in range(len(shape)) if d != axis)))
    return found


def _joined(kept: Sequence[dict[Axis, Array]], starts: Sequence[int]) -> list[dict[Axis, Array]]:
    """Of each step the indices that are kept along the axes along which more are read than after its first step."""
    grown = [
        a for a in (kept[0] if kept else ())
        if any(step[a].sum() > kept[start][a].sum() > 0 for step, start in zip(kept, starts, strict=True))
    ]  # fmt: skip
    found = []
    for step in kept:
        # equal extents are one dimension
        union: dict[int, Array] = {}
        for a in grown:
            n = len(step[a])
            union[n] = union.get(n, np.zeros(n, bool)) | step[a]
        found.append({a: np.flatnonzero(union[len(step[a])]) for a in grown})
    return found if grown else []


class _FloatsNoted(Walk):
    """A walk that notes the values of float64 that it makes."""

    def __init__(self, numbers: Floats, prepared: Prepared) -> None:
        super().__init__(numbers, prepared)
        self.made: list[Array] = []

    def _results(self, equation: Equation, operands: list[Shaped]) -> Sequence[Shaped]:
        found = super()._results(equation, operands)
        self.made += [v.array for v in found if isinstance(v, Real)]
        return found


def _values_of(on: _Compared) -> list[Array]:
    """The intermediate values of the reference."""
    walk = _FloatsNoted(on.numbers, on.prepared)
    with np.errstate(all="ignore"):
        walk.run(on.sides[1], on.values)
    return [*walk.made, *(v.array for v in on.values if isinstance(v, Real))]


def _is_one(on: _Compared, result: Array, value: Array) -> bool:
    """Whether a kernel's result is a value, in any shape."""
    if result.size != value.size or not np.isfinite(value).any():
        return False
    typical = float(np.median(np.abs(value[np.isfinite(value)])))
    with np.errstate(all="ignore"):
        near = np.abs(result.reshape(-1) - value.reshape(-1)) <= NEAR * np.maximum(np.abs(value.reshape(-1)), typical)
    return bool(near.all())


def begins(
    numbers: Floats, sides: tuple[Program, Program], values: Sequence[Real | Known], prepared: Prepared,
    outputs: Sequence[int] | None, position: int, retrace: Retrace,
) -> Begin | None:  # fmt: skip
    """Where a difference begins in the kernel of a function; None where it has none, or nothing can be said.

    values: the inputs, of float64.  position: of the output that differs, among those that are compared.  retrace: the
    reference at other shapes of the inputs, None where it cannot be traced there.
    """
    on = _Compared(numbers, sides, values, prepared, outputs, position, retrace)
    many = on.seen.calls
    if not on.wrong.any() or not 0 < many <= MOST_KERNELS:
        return None
    known = _values_of(on) if many > 1 else []
    for which in range(many):
        if which:
            on = _Compared(numbers, sides, values, prepared, outputs, position, retrace, which)
        results = [on.numbers_of(r) for r in on.seen.results]
        if many > 1 and results and all(any(_is_one(on, r, v) for v in known) for r in results):
            # the reference has what this kernel gives
            continue
        given = [on.numbers_of(w.whole.value) for w in on.seen.windows if not w.output]
        fed = many == 1 or all(any(_is_one(on, g, v) for v in known) for g in given)
        found = _in_kernel(on, fed and which == many - 1)
        if found is not None:
            # later values depend on it
            return found
    return None


def _in_kernel(on: _Compared, last: bool) -> Begin | None:
    """Where a difference begins in one kernel. last: whether nothing comes after it, and what it is given is right."""
    if not on.seen.fit:
        return _in_copies(on)
    runs = on.runs()
    wrong = [run for run in runs if (run.reached & on.wrong).any()]
    if not wrong:
        return None
    right = [run for run in runs if run.reached.any() and not (run.reached & on.wrong).any()]
    found: list[Begin] = []
    for run in wrong[:TRIED]:
        found.append(_in_run(on, run, right[:1], last))
        if found[-1].place:
            return found[-1]
    return found[0]


def _in_copies(on: _Compared) -> Begin | None:
    """The same of a kernel that copies its results by hand: in the loops of its programs."""
    if not on.seen.programs or len(on.seen.programs) > MOST_STEPS:
        return None
    begins = (_in_loops(on, number, "") for number in range(len(on.seen.programs)))
    return next((b for b in begins if b is not None), Begin())


def _in_run(on: _Compared, run: ProgramRun, right: Sequence[ProgramRun], sole: bool) -> Begin:
    programs = [on.seen.programs[k] for k in run.numbers]
    results = {k for k, reached in enumerate(run.reaches) if (reached & on.wrong).any()}
    ends = {s.output: (k, s) for k, p in enumerate(programs) for s in p.stores if s.output in results}
    if not ends:
        return Begin()
    final, store = ends[min(ends)]
    only = Begin(stored=store.place)
    if sole and final == len(programs) - 1:
        only = _one_store(programs, only)
    if len(programs) == 1:
        return _in_loops(on, run.numbers[0], store.place) or only
    cuts = on.cuts(run)
    if not cuts or len(programs) > MOST_STEPS:
        return only
    last = _at_the_end(on, programs[0], [s for _, s in ends.values()])
    whole: dict[int, Sequence[int | None]] = {k: [None] for k in run.numbers}
    for other in right:
        whole |= {k: [None] for k in other.numbers[:1]}
    tried = on.walked(last, whole)
    where = run.reached & on.wrong
    steps = [
        on.agrees(tried.ended[number, None], program, [cut], where)
        for number, program, cut in zip(run.numbers, programs, cuts, strict=True)
    ]
    here = Begin(store.place, "", programs[final].ids, store.place)
    if steps[-1][where].mean() >= MOST:
        return here
    until = np.max([np.where(ok, k, -1) for k, ok in enumerate(steps)], 0)[where]
    if (until >= 0).mean() < MOST:
        return _from_the_first(on, run, right, last, tried, store.place) or only
    # rounding may keep single elements from agreeing: the majority decides
    step = int(np.argmax(np.bincount(until[until >= 0])))
    if step + 1 == len(programs):
        return only
    if _same_blocks(*(tried.ended[run.numbers[k], None].blocks for k in (step, step + 1))):
        # nothing of the next step is stored
        return here
    elements = np.zeros_like(where)
    elements[where] = until == step
    return _in_step(on, run, last, cuts, step + 1, elements, store.place) or only


def _one_store(programs: Sequence[ProgramStores], unknown: Begin) -> Begin:
    """Where all that is computed goes through one store, that one; else what is known without it."""
    computed = [(p.ids, s.place) for p in programs for s in p.stores if s.computed]
    if len({place for _, place in computed}) != 1:
        return unknown
    ids = {ids for ids, _ in computed}
    return replace(unknown, place=computed[0][1], program=computed[0][0] if len(ids) == 1 else ())


def _at_the_end(on: _Compared, first: ProgramStores, ends: Sequence[ObservedStore]) -> dict[int, int]:
    """The branches that store at the end of a block: not those that begin one, and none that keeps a state."""
    early = {key for s in first.stores for key in s.around}
    kept = {key for p in on.seen.programs for s in p.stores if s.output < 0 for key in s.around}
    return {key: taken for s in ends for key, taken in s.around if (key, taken) not in early | kept}


def _same_blocks(one: Sequence[Array], other: Sequence[Array]) -> bool:
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))


def _effects(program: ProgramStores, last: Mapping[int, int]) -> list[ObservedStore]:
    """The stores of a program but for those at the end of its block."""
    return [s for s in program.stores if not any(key in last for key, _ in s.around)]


def _told(stores: Sequence[ObservedStore], program: ProgramStores, stored: str) -> Begin | None:
    places = list(dict.fromkeys(s.place for s in stores))
    if not places:
        return None
    return Begin(places[0], places[-1] if len(places) > 1 else "", program.ids, stored)


def _from_the_first(
    on: _Compared, run: ProgramRun, right: Sequence[ProgramRun], last: Mapping[int, int], tried: Watch, stored: str
) -> Begin | None:
    """Of a block that never has a prefix's values, where another block has them after its first step."""
    program = on.seen.programs[run.numbers[0]]
    first = tried.ended[run.numbers[0], None]
    effects = _effects(program, last)
    # the stored value is undefined as a whole, though the state before it was not asked
    for effect, (_, held) in zip(effects, first.held, strict=False):
        if held.size and held.dtype.kind == "f" and np.isnan(held).all():
            return _told([effect], program, stored)
    if any(key in on.seen.fed for key in last):
        return None
    for other in right:
        cuts = on.cuts(other)
        if not cuts:
            continue
        early = tried.ended[other.numbers[0], None]
        where = other.reached & np.isfinite(on.theirs)
        beginning = on.seen.programs[other.numbers[0]]
        if on.near(on.with_blocks(early.blocks, beginning), on.theirs)[where].all():
            # it is whole after its first step, so that nothing was cut off: is the other's reference one that can be?
            wrong = run.reached & on.wrong
            own = on.cuts(run)[:1]
            if not any(np.isfinite(part[wrong]).all() for cut in own for part in on.smaller(cut)):
                continue
        if on.agrees(early, beginning, cuts[:1], where)[where].all():
            return _told([s for s in effects if s.computed] or effects, program, stored)
    return None


def _in_step(
    on: _Compared,
    run: ProgramRun,
    last: Mapping[int, int],
    cuts: Sequence[Cut],
    step: int,
    elements: Array,
    stored: str,
) -> Begin | None:
    """Which store of a step it is, before which the state was a prefix's and after which it never is."""
    number = run.numbers[step]
    program = on.seen.programs[number]
    effects = _effects(program, last)
    if not effects or len(effects) > MOST_STORES:
        return _told(effects, program, stored)
    begin, places = 0, {s.place for s in effects}
    if len(places) > 1:
        tried = on.walked(last, {number: [*range(1, len(effects)), None]})
        # what stays as it was until the end says nothing about where it should have changed
        asked = elements & ~on.agrees(tried.ended[number, None], program, cuts[step - 1 : step], elements)
        ends = ((n, tried.ended[number, n]) for n in range(len(effects) - 1, 0, -1) if asked.any())
        seen = cuts[step - 1 : step + 1]
        begin = next((n for n, end in ends if on.agrees(end, program, seen, asked)[asked].all()), 0)
    candidates = effects[begin:]
    if len({s.place for s in candidates}) > 1:
        found = _asymmetric(on, run, last, cuts, step, stored)
        if found is not None:
            return found
    return _told(candidates, program, stored)


def _asymmetric(
    on: _Compared, run: ProgramRun, last: Mapping[int, int], cuts: Sequence[Cut], step: int, stored: str
) -> Begin | None:
    """The first store that keeps a state which depends on the order of two elements, where the reference does not.

    An element that one step reads first, and one that the next step does, are exchanged along all axes.
    """
    for later in (step - 1, step):
        if later < 1:
            continue
        values = _exchanged(on, cuts, later, {a: a for a in cuts[later]})
        if values is None:
            return None
        where = run.reached & np.isfinite(on.theirs)
        if not on.near(on.output(on.sides[1], values), on.theirs)[where].all():
            return None
        number = run.numbers[later]
        program = on.seen.programs[number]
        one, other = (on.walked(last, {number: [None]}, v).ended[number, None] for v in (on.values, values))
        effects = _effects(program, last)
        programs = [on.seen.programs[k] for k in run.numbers]
        carried = {at for p in programs for at in p.carried} | {
            at for p in programs for at, key in p.read_in if key in last
        }
        for effect, (memory, x), (_, y) in zip(effects, one.held, other.held, strict=False):
            if memory in carried and x.size and not np.allclose(x, y, rtol=NEAR, atol=0, equal_nan=True):
                return _told([effect], program, stored)
    return None


# loops inside of a program


@dataclass(frozen=True)
class _Effect:
    """What a step of a loop leaves to the next one. place: `file:line`.  value: it.

    stored: the how many-th store of the step, -1 of what is handed on.
    """

    place: str
    stored: int
    value: Array


def _in_loops(on: _Compared, number: int, stored: str) -> Begin | None:
    """Where a difference begins in the loops of a program: after each step it is looked at what comes of a state."""
    program = on.seen.programs[number]
    for at, loop in enumerate(program.loops[:MOST_LOOPS]):
        many = len(loop.handed)
        if not 2 <= many <= MOST_STEPS or not any(_effects_of(loop, step) for step in range(many)):
            continue
        cuts = on.cuts_of(program, loop)
        if not cuts:
            continue
        ours = [on.frozen(number, loop, step) for step in range(many - 1)]
        moved = np.logical_or.reduce([(o != on.ours) & ~(np.isnan(o) & np.isnan(on.ours)) for o in ours])
        where = on.wrong & moved
        if not where.any():
            continue
        steps = [on.are_prefixes(o, [cut], where) for o, cut in zip(ours, cuts, strict=False)]
        until = np.max([np.where(ok, k, -1) for k, ok in enumerate(steps)], 0)[where]
        if (until >= 0).mean() < MOST:
            continue
        step = int(np.argmax(np.bincount(until[until >= 0])))
        elements = np.zeros_like(where)
        elements[where] = until == step
        found = _in_step_of(on, number, at, cuts, step + 1, elements, stored)
        if found is not None:
            return found
    return None


def _effects_of(loop: Looped, step: int) -> list[_Effect]:
    """The outputs of a step for later ones: its stores to memory that they read, and its carried values, as made."""
    body = loop.equation.params.get("body_jaxpr", loop.equation.params.get("jaxpr"))
    stores = [
        _Effect(place, k + 1, value) for k, (place, memory, value) in enumerate(loop.stores[step])
        if memory in loop.keeps
    ]  # fmt: skip
    made = {v: (k, e) for k, e in enumerate(body.eqns) for v in e.outvars}
    handed = [
        (made[v], value) for v, value in zip(body.outvars, loop.handed[step], strict=False)
        if value is not None and v in made
    ]  # fmt: skip
    handed.sort(key=lambda each: each[0][0])
    return [*stores, *(_Effect(str(e.source), -1, value) for (_, e), value in handed)]


def _in_step_of(
    on: _Compared, number: int, at: int, cuts: Sequence[Cut], step: int, elements: Array, stored: str
) -> Begin | None:
    """Which effect of a step it is: as `_in_step`, of a loop."""
    program = on.seen.programs[number]
    loop = program.loops[at]
    effects = _effects_of(loop, step)
    stores = [e for e in effects if e.stored > 0]
    if len(effects) > MOST_STORES:
        return None
    if len({e.place for e in effects}) > 1 and stores:
        # what stays as it was until the end says nothing about where it should have changed
        whole = on.ours if step + 1 == len(loop.handed) else on.frozen(number, loop, step)
        asked = elements & ~on.are_prefixes(whole, cuts[step - 1 : step], elements)
        for effect in reversed(stores[:-1] if len(stores) == len(effects) else stores):
            if not asked.any():
                break
            early = on.frozen(number, loop, step - 1, effect.stored)
            if on.are_prefixes(early, cuts[step - 1 : step + 1], asked)[asked].all():
                effects = effects[effects.index(effect) + 1 :]
                break
    if len({e.place for e in effects}) > 1:
        odd = _first_asymmetric(on, number, at, cuts, step, effects)
        effects = [odd] if odd is not None else effects
    places = list(dict.fromkeys(e.place for e in effects if e.place))
    if not places:
        return None
    return Begin(places[0], places[-1] if len(places) > 1 else "", program.ids, stored)


def _first_asymmetric(
    on: _Compared, number: int, at: int, cuts: Sequence[Cut], step: int, effects: Sequence[_Effect]
) -> _Effect | None:
    """The first of these that depends on the order of two elements, where the reference does not: as `_asymmetric`."""
    along = dict(cuts[step])
    extents = {on.values[k].shape[axis]: (k, axis) for k, axis in along}
    # what stays where it is may be what is wrong
    every = {
        (k, axis): extents[n] for k, v in enumerate(on.values) for axis, n in enumerate(v.shape)
        if n in extents and isinstance(v, Real) and v.span is None
    }  # fmt: skip
    ways = [{a: a for a in along}] + ([every] if len(every) > len(along) else [])
    turned = (_first_other(on, number, at, cuts, step, effects, way, end) for way in ways for end in (0, -1))
    return next((effect for effect in turned if effect is not None), None)


def _first_other(
    on: _Compared, number: int, at: int, cuts: Sequence[Cut], step: int, effects: Sequence[_Effect],
    way: Mapping[Axis, Axis], end: int,
) -> _Effect | None:  # fmt: skip
    """The first that is another one where two elements are exchanged. way, end: as of `_exchanged`."""
    values = _exchanged(on, cuts, step, way, end)
    where = np.isfinite(on.theirs)
    if values is None or not on.near(on.output(on.sides[1], values), on.theirs)[where].all():
        return None
    seen = Watch(which=on.which)
    on.output(on.sides[0], values, seen)
    loops = seen.programs[number].loops
    if at >= len(loops):
        return None
    other = _effects_of(loops[at], step)
    values_of = {(e.place, e.stored): e.value for e in other}
    for effect in effects:
        turned = values_of.get((effect.place, effect.stored))
        if turned is None or turned.shape != effect.value.shape:
            return None
        if not np.allclose(effect.value, turned, rtol=NEAR, atol=0, equal_nan=True):
            return effect
    return None


def _exchanged(
    on: _Compared, cuts: Sequence[Cut], step: int, way: Mapping[Axis, Axis], end: int = 0
) -> list[Real | Known] | None:
    """The inputs where an element that one step reads, and one that the next does, are exchanged.

    way: the axes along which they are, each with the one of the cuts that says what is read.  end: which ones of their
    steps, 0 the first and -1 the last.
    """
    values = list(on.values)
    for axis, said in way.items():
        before = cuts[step - 1][said]
        new = np.setdiff1d(cuts[step][said], before)
        old = np.setdiff1d(before, cuts[step - 2][said]) if step > 1 else before
        if not new.size or not old.size:
            return None
        argument, along = axis
        order = np.arange(values[argument].shape[along])
        order[[old[end], new[end]]] = new[end], old[end]
        values[argument] = replace(values[argument], array=np.take(np.asarray(values[argument].array), order, along))
    return values
