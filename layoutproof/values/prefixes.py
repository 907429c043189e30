"""Prefixes of a reference: what it gives on the part of its inputs that a kernel has read after some of its steps.

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
from typing import Any

import numpy as np

from layoutproof.values.floats import Real
from layoutproof.values.kernels import overlap
from layoutproof.values.refusals import Ended, NotModelled, OutOfBounds
from layoutproof.values.walk import Prepared, Walk
from layoutproof.values.watch import Early, Program, Store, Watch

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
class Run:
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
        self, numbers: Any, sides: tuple[Any, Any], values: Sequence[Any], prepared: Prepared,
        outputs: Sequence[int] | None, position: int, retrace: Callable[[list[tuple[int, ...]]], Any],
    ) -> None:  # fmt: skip
        self.numbers, self.sides, self.values, self.prepared = numbers, sides, list(values), prepared
        self.position = position if outputs is None else outputs[position]
        self.retrace = retrace
        self._traced: dict[tuple[tuple[int, ...], ...], Any] = {}
        self._placed: dict[int, tuple[int, Array]] | None = None
        self.seen = Watch()
        self.ours = self.output(self.sides[0], self.values, self.seen)
        self.theirs = self.output(self.sides[1], self.values)
        known = np.isfinite(self.theirs)
        self.typical = float(np.median(np.abs(self.theirs[known]))) if known.any() else 0.0
        self.wrong = known & ~self.near(self.ours, self.theirs)

    def output(self, side: Any, values: Sequence[Any], watch: Watch | None = None) -> Array:
        """The output of a side."""
        walk = Walk(self.numbers, self.prepared, watch=watch)
        with np.errstate(all="ignore"):
            return np.asarray(walk.data(walk.run(side, values)[self.position]).array)

    def near(self, a: Array, b: Array) -> Array:
        """Which elements are the same number."""
        with np.errstate(all="ignore"):
            # numbers of the code are rounded to float32, on each side otherwise
            size = np.maximum(np.maximum(np.abs(a), np.abs(b)), self.typical)
            found: Array = np.isfinite(a) & np.isfinite(b) & (np.abs(a - b) <= NEAR * size)
        return found

    def walked(self, last: Mapping[int, int], early: Mapping[int, Sequence[int | None]], values: Any = None) -> Watch:
        """A walk over the kernel some of whose programs end early."""
        watch = Watch(last=last, early=early)
        with suppress(Ended):
            self.output(self.sides[0], self.values if values is None else values, watch)
        return watch

    def with_blocks(self, blocks: Sequence[Array | None], program: Program) -> Array:
        """The output where a program's blocks of the kernel's results are others; None leaves one as it is."""
        changed = []
        windows = [w for w in self.seen.windows if w.output]
        for window, block, at, result in zip(windows, blocks, program.blocks, self.seen.results, strict=True):
            if block is None:
                changed.append(result)
                continue
            whole = np.array(result.array)
            assert at is not None
            array, inside = overlap(at, whole.shape)
            whole[array] = block.reshape(window.extents)[inside]
            changed.append(replace(result, array=whole))
        return self.output(self.sides[0], self.values, Watch(given=changed))

    def runs(self) -> list[Run]:
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
            found.append(Run(group, tuple(reached)))
        return found

    # prefixes

    def cuts(self, run: Run) -> list[dict[Axis, Array]]:
        """After each program of a run the part of the inputs that was read, along the axes that they go along."""
        places = self._places()
        if not places:
            return []
        shapes = [tuple(v.shape) for v in self.values]
        masks = {k: np.zeros(int(np.prod(shapes[k])), bool) for k in range(len(shapes))}
        kept: list[dict[Axis, Array]] = []
        inputs = [w for w in self.seen.windows if not w.output]
        for number in run.numbers:
            for k, (window, at) in enumerate(zip(inputs, self.seen.programs[number].read, strict=True)):
                if at is None or k not in places:
                    continue
                argument, flat = places[k]
                masks[argument][flat[overlap(at, window.whole.shape)[0]].reshape(-1)] = True
            kept.append({})
            for argument, shape in enumerate(shapes):
                mask = masks[argument].reshape(shape)
                for axis in range(len(shape)):
                    others = tuple(d for d in range(len(shape)) if d != axis)
                    kept[-1][argument, axis] = np.asarray(mask.any(others))
        grown = [a for a in kept[0] if kept[-1][a].sum() > kept[0][a].sum() > 0]
        found = []
        for step in kept:
            # equal extents are one dimension
            union: dict[int, Array] = {}
            for a in grown:
                n = len(step[a])
                union[n] = union.get(n, np.zeros(n, bool)) | step[a]
            found.append({a: np.flatnonzero(union[len(step[a])]) for a in grown})
        return found if grown else []

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
        """What the reference gives on a part of its inputs, in each way in which it may be cut, NaN beyond it."""
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
        """What the reference gives where it can be traced at the sizes of a part of its inputs, NaN beyond it."""
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

    def _of(self, side: Any, values: Sequence[Any]) -> Array:
        try:
            return self.output(side, values)
        except (NotModelled, OutOfBounds):
            return np.full(self.theirs.shape, np.nan)

    def agrees(self, early: Early, program: Program, cuts: Sequence[Cut], where: Array) -> Array:
        """Which elements of an output, stored after some store, are a prefix's."""
        ours = self.with_blocks(early.blocks, program)
        found = np.zeros(where.shape, bool)
        for cut in cuts:
            for theirs in self.prefixes(cut):
                found |= where & self.near(ours, theirs)
                if found[where].all():
                    return found
        return found


def begins(
    numbers: Any, sides: tuple[Any, Any], values: Sequence[Any], prepared: Prepared, outputs: Sequence[int] | None,
    position: int, retrace: Callable[[list[tuple[int, ...]]], Any],
) -> Begin | None:  # fmt: skip
    """Where a difference begins in the kernel of a function; None where it has none, or nothing can be said.

    values: the inputs, of float64.  position: of the output that differs, among those that are compared.  retrace: the
    reference at other shapes of the inputs, None where it cannot be traced there.
    """
    on = _Compared(numbers, sides, values, prepared, outputs, position, retrace)
    if not on.seen.fit or not on.wrong.any():
        return None
    runs = on.runs()
    wrong = [run for run in runs if (run.reached & on.wrong).any()]
    if not wrong:
        return None
    right = [run for run in runs if run.reached.any() and not (run.reached & on.wrong).any()]
    found: list[Begin] = []
    for run in wrong[:TRIED]:
        found.append(_in_run(on, run, right[:1]))
        if found[-1].place:
            return found[-1]
    return found[0]


def _in_run(on: _Compared, run: Run, right: Sequence[Run]) -> Begin:
    programs = [on.seen.programs[k] for k in run.numbers]
    results = {k for k, reached in enumerate(run.reaches) if (reached & on.wrong).any()}
    ends = {s.output: (k, s) for k, p in enumerate(programs) for s in p.stores if s.output in results}
    if not ends:
        return Begin()
    final, store = ends[min(ends)]
    unknown = Begin(stored=store.place)
    here = Begin(store.place, "", programs[final].ids, store.place)
    # all that is computed goes through one store
    computed = [(p.ids, s.place) for p in programs for s in p.stores if s.computed]
    alone = final == len(programs) - 1 and len({place for _, place in computed}) == 1
    only = unknown
    if alone:
        ids = {ids for ids, _ in computed}
        only = replace(unknown, place=computed[0][1], program=computed[0][0] if len(ids) == 1 else ())
    if len(programs) == 1:
        return only
    # the branches that store at the end: not those that begin a block, and none that keeps a state
    early = {key for p in programs[:1] for s in p.stores for key in s.around}
    kept = {key for p in on.seen.programs for s in p.stores if s.output < 0 for key in s.around}
    last = {key: taken for _, s in ends.values() for key, taken in s.around if (key, taken) not in early | kept}
    cuts = on.cuts(run)
    if not cuts or len(programs) > MOST_STEPS:
        return only
    whole: dict[int, Sequence[int | None]] = {k: [None] for k in run.numbers}
    for other in right:
        whole |= {k: [None] for k in other.numbers[:1]}
    tried = on.walked(last, whole)
    where = run.reached & on.wrong

    def agrees(step: int) -> Array:
        return on.agrees(tried.ended[run.numbers[step], None], programs[step], [cuts[step]], where)

    steps = [agrees(k) for k in range(len(programs))]
    if steps[-1][where].mean() >= MOST:
        return here
    until = np.max([np.where(ok, k, -1) for k, ok in enumerate(steps)], 0)[where]
    if (until >= 0).mean() < MOST:
        return _from_the_first(on, run, right, last, tried, store.place) or only
    # rounding may keep single elements from agreeing: what most of them say
    step = int(np.argmax(np.bincount(until[until >= 0])))
    if step + 1 == len(programs):
        return only
    elements = np.zeros_like(where)
    elements[where] = until == step
    same = all(
        np.array_equal(a, b, equal_nan=True)
        for a, b in zip(*(tried.ended[run.numbers[k], None].blocks for k in (step, step + 1)), strict=True)
    )
    if same:
        # nothing of the next step is stored
        return here
    return _in_step(on, run, last, cuts, step + 1, elements, store.place) or only


def _effects(program: Program, last: Mapping[int, int]) -> list[Store]:
    """The stores of a program but for those at the end of its block."""
    return [s for s in program.stores if not any(key in last for key, _ in s.around)]


def _told(stores: Sequence[Store], program: Program, stored: str) -> Begin | None:
    places = list(dict.fromkeys(s.place for s in stores))
    if not places:
        return None
    return Begin(places[0], places[-1] if len(places) > 1 else "", program.ids, stored)


def _from_the_first(
    on: _Compared, run: Run, right: Sequence[Run], last: Mapping[int, int], tried: Watch, stored: str
) -> Begin | None:
    """Of a block that never has a prefix's values, where another block has them after its first step."""
    program = on.seen.programs[run.numbers[0]]
    first = tried.ended[run.numbers[0], None]
    effects = _effects(program, last)
    # what is stored is undefined as a whole, though the state before it was not asked
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
    run: Run,
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
    on: _Compared, run: Run, last: Mapping[int, int], cuts: Sequence[Cut], step: int, stored: str
) -> Begin | None:
    """The first store that keeps a state which depends on the order of two elements, where the reference does not.

    An element that one step reads first, and one that the next step does, are exchanged along all axes.
    """
    for later in (step - 1, step):
        if later < 1:
            continue
        pairs: dict[Axis, tuple[int, int]] = {}
        for axis, kept in cuts[later].items():
            before = cuts[later - 1][axis]
            new = np.setdiff1d(kept, before)
            old = np.setdiff1d(before, cuts[later - 2][axis]) if later > 1 else before
            if not new.size or not old.size:
                return None
            pairs[axis] = int(old[0]), int(new[0])
        values = list(on.values)
        for (argument, along), (a, b) in pairs.items():
            order = np.arange(values[argument].shape[along])
            order[[a, b]] = b, a
            taken = np.take(np.asarray(values[argument].array), order, along)
            values[argument] = replace(values[argument], array=taken)
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
