"""Kernels of SparseCores run on arrays of this machine: every subcore a thread of steps, in an order drawn by chance.

JAX's interpreter (0.10.2, 0.12.0.1) takes no lists of places and no barriers of subcores. This one is written from what
docs/pallas/tpu/sparsecore.md and the docstrings of `tpu_sc` say, and shares with the tool only what turns a jaxpr into
data. New memory holds NaN, a copy moves when it is started or when it is waited for, loops without order go in any.

`python -m tests.bodies.run_subcores [NAME ..]` prints what it shows of each pair, as words: `equal` or `differs` (from
what is wanted), `nan`, `outside` (an access past an end), `hang` (nobody goes on).
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from layoutproof.ir.program import Indexed, Literal, Other, Program, Span, Transformed, planted
from layoutproof.pallas.from_jax.adapter import device_of
from layoutproof.pallas.from_jax.programs import program_of
from tests.bodies import subcore_pairs
from tests.bodies.subcore_pairs import CASES, TARGET

Steps = Iterator[str]
SEEDS = 6
IGNORED = -(1 << 40)
"""Stands in a list for a place that is ignored."""
MOST_IDLE = 2_000
"""Looks at semaphores, one after the other, in which nobody does anything else."""
SEMAPHORE = "semaphore"


class Outside(Exception):
    """An access past an end."""


class Hang(Exception):
    """Nobody goes on."""


class Memory:
    """Memory that holds nothing yet. pending: of semaphores, what copies have still to move, by place."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, semaphore: bool = False) -> None:
        kind = np.int64 if semaphore else np.dtype(dtype)
        nothing = 0 if semaphore else np.nan if np.dtype(kind).kind == "f" else 1 << 30
        self.array = np.full(shape, nothing, kind)
        self.pending: dict[tuple[int, ...], list[tuple[int, Callable[[], None]]]] = {}


class View:
    """A part of memory: for each dimension an int, or the places of what is seen."""

    def __init__(self, memory: Memory, at: Sequence[Any] | None = None) -> None:
        self.memory = memory
        self.at: list[Any] = [np.arange(n) for n in memory.array.shape] if at is None else list(at)

    def cut(self, entries: Sequence[Any], listed: Callable[[Any], Any]) -> View:
        """The view with an index for each of its dimensions."""
        rest, at = iter(entries), []
        for kept in self.at:
            if isinstance(kept, int):
                at.append(kept)
                continue
            entry = next(rest)
            if isinstance(entry, Span):
                chosen = int(entry.start) + np.arange(int(entry.size)) * int(entry.stride)
            else:
                chosen = listed(entry)
            ignored = np.asarray(chosen) == IGNORED
            inside = np.all(ignored | ((np.asarray(chosen) >= 0) & (np.asarray(chosen) < len(kept))))
            if not inside:
                raise Outside
            if np.ndim(chosen):
                at.append(np.where(ignored, IGNORED, kept[np.where(ignored, 0, chosen)]))
            else:
                at.append(int(kept[int(chosen)]))
        return View(self.memory, at)

    def places(self) -> Any:
        """What NumPy takes as an index for it."""
        lists = [np.atleast_1d(one) for one in self.at]
        grid = list(np.ix_(*lists)) if lists else []
        return tuple(grid)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(one) for one in self.at if not isinstance(one, int))

    def load(self) -> Any:
        return self.memory.array[self.places()].reshape(self.shape) if self.at else self.memory.array[()]

    def store(self, value: Any, add: bool = False) -> None:
        if not self.at:
            self.memory.array[()] = value
            return
        shape = tuple(len(np.atleast_1d(one)) for one in self.at)
        value = np.asarray(value).reshape(shape)
        if add:
            np.add.at(self.memory.array, self.places(), value)
        else:
            self.memory.array[self.places()] = value


class Subcore:
    """One subcore that runs the body. scratch: what it has of its own.  everyone: of all of them, by place."""

    def __init__(
        self, places: dict[str, int], chance: random.Random, scratch: list[Any], everyone: dict[Any, list[Any]]
    ) -> None:
        self.places, self.chance, self.scratch, self.all = places, chance, scratch, everyone
        everyone[tuple(places.values())] = scratch

    def run(self, program: Program, given: Sequence[Any]) -> Iterator[Any]:
        """The steps of a program; what it gives is the value of the generator."""
        known = [*program.consts] if len(given) == len(program.invars) else []
        values = dict(zip((*program.constvars, *program.invars), (*known, *given), strict=True))
        for equation in program.eqns:
            operands = [self.value(atom, values) for atom in equation.invars]
            results = yield from self.equation(equation, operands)
            values.update(zip(equation.outvars, results, strict=True))
        return [self.value(atom, values) for atom in program.outvars]

    def value(self, atom: Any, values: dict[Any, Any]) -> Any:
        return np.asarray(atom.val) if isinstance(atom, Literal) else values[atom]

    def equation(self, equation: Any, operands: list[Any]) -> Iterator[Any]:
        name, params = equation.primitive.name, equation.params
        own = getattr(self, f"on_{name}", None)
        if own is not None:
            yield name
            return own(equation, operands)
        match name:
            case "semaphore_wait":
                return (yield from self.wait(equation, operands))
            case "sc_barrier":
                yield "barrier"
                return []
            case "jit" | "pjit" | "closed_call" | "custom_jvp_call":
                inner = params.get("jaxpr", params.get("call_jaxpr"))
                return (yield from self.run(inner, operands))
            case "cond":
                which = min(max(int(operands[0]), 0), len(params["branches"]) - 1)
                return (yield from self.run(params["branches"][which], operands[1:]))
            case "scan":
                return (yield from self.scan(params, operands))
            case "while":
                return (yield from self.repeat(params, operands))
            case "run_scoped":
                inner = params["jaxpr"]
                fresh = [View(memory_of(v.aval)) for v in inner.invars]
                return (yield from self.run(inner, [*operands, *fresh]))
            case "sc_parallel_loop":
                return (yield from self.in_any_order(params, operands))
        return list(map(np.asarray, equation.compute(operands)))

    def scan(self, params: Any, operands: list[Any]) -> Iterator[Any]:
        consts, carried = int(params["num_consts"]), int(params["num_carry"])
        fixed, carry, rows = operands[:consts], operands[consts : consts + carried], operands[consts + carried :]
        stacked: list[list[Any]] = []
        for k in range(int(params["length"])):
            found = yield from self.run(params["jaxpr"], [*fixed, *carry, *(row[k] for row in rows)])
            carry = found[:carried]
            stacked.append(found[carried:])
        return [*carry, *(np.stack(one) for one in zip(*stacked, strict=True))]

    def repeat(self, params: Any, operands: list[Any]) -> Iterator[Any]:
        first, second = int(params["cond_nconsts"]), int(params["body_nconsts"])
        of_cond, of_body, carry = operands[:first], operands[first : first + second], operands[first + second :]
        while True:
            (more,) = yield from self.run(params["cond_jaxpr"], [*of_cond, *carry])
            if not bool(more):
                return carry
            carry = yield from self.run(params["body_jaxpr"], [*of_body, *carry])

    def in_any_order(self, params: Any, operands: list[Any]) -> Iterator[Any]:
        lower, upper, step, consts, carry = planted(params["tree"], operands)
        turns = list(range(int(lower), int(upper), int(step)))
        carry = list(carry)
        if not carry:
            # all of them at once, each a step at a time
            running = [self.run(params["jaxpr"], [*consts, np.int32(turn)]) for turn in turns]
            while running:
                one = self.chance.choice(running)
                try:
                    yield next(one)
                except StopIteration:
                    running.remove(one)
            return []
        for turn in turns:
            carry = yield from self.run(params["jaxpr"], [*consts, np.int32(turn), *carry])
        return carry

    # memory

    def view(self, value: Any) -> View:
        if isinstance(value, View):
            return value
        assert isinstance(value, Transformed)
        return self.through(self.view(value.ref), value.transforms)

    def through(self, view: View, transforms: Any) -> View:
        for one in transforms if isinstance(transforms, tuple) else (transforms,):
            if one is not None:
                assert isinstance(one, Indexed), one
                view = view.cut(one.indices, self.listed)
        return view

    def listed(self, entry: Any) -> Any:
        """An index, or a list of places as it is in memory now."""
        if isinstance(entry, Other):
            places, ignored = self.listed(entry.parts["values"]).astype(np.int64), entry.parts.get("ignored_value")
            return places if ignored is None else np.where(places == ignored, IGNORED, places)
        return self.view(entry).load() if isinstance(entry, View | Transformed) else np.asarray(entry)

    def on_axis_index(self, equation: Any, operands: list[Any]) -> list[Any]:
        return [np.int32(self.places[equation.params["axis_name"]])]

    def on_get(self, equation: Any, operands: list[Any]) -> list[Any]:
        transforms = planted(equation.params["tree"], operands[1:])
        return [self.through(self.view(operands[0]), transforms).load().copy()]

    def on_swap(self, equation: Any, operands: list[Any]) -> list[Any]:
        view = self.through(self.view(operands[0]), planted(equation.params["tree"], operands[2:]))
        before = view.load().copy()
        view.store(operands[1])
        return [before]

    def on_sc_load(self, equation: Any, operands: list[Any]) -> list[Any]:
        transforms = planted(equation.params["tree"], operands[1 : len(operands) - 1])
        there, mask = self.through(self.view(operands[0]), transforms).load(), operands[-1]
        found = np.full(mask.shape, np.nan, there.dtype)
        found[mask] = there[: int(mask.sum())]
        return [found]

    def on_sc_gather(self, equation: Any, operands: list[Any]) -> list[Any]:
        reference, transforms, indices, mask = planted(equation.params["tree"], operands)
        view = self.through(self.view(reference), transforms)
        mask = np.ones(indices[0].shape, bool) if mask is None else mask
        found = np.full(mask.shape, np.nan, view.memory.array.dtype)
        for k in np.flatnonzero(mask):
            found[k] = view.cut([one[k] for one in indices], np.asarray).load()
        return [found]

    def on_sc_scatter(self, equation: Any, operands: list[Any]) -> list[Any]:
        reference, transforms, indices, value, mask = planted(equation.params["tree"], operands)
        view = self.through(self.view(reference), transforms)
        for k in range(len(value)):
            if mask is None or mask[k]:
                view.cut([one[k] for one in indices], np.asarray).store(value[k], bool(equation.params["add"]))
        return []

    # copies

    def on_dma_start(self, equation: Any, operands: list[Any]) -> list[Any]:
        source, target, semaphore, _, _ = planted(equation.params["tree"], operands)
        add = bool(equation.params.get("add"))

        def move() -> None:
            from_, to = _moved(self.view(source), self.view(target))
            to.store(from_.load().copy(), add)

        slot, place = self.slot(semaphore)
        size = self.size(target)
        if self.chance.random() < 0.5:
            move()
            slot.array[place] += size
        else:
            slot.pending.setdefault(place, []).append((size, move))
        return []

    def on_dma_wait(self, equation: Any, operands: list[Any]) -> list[Any]:
        source, _, semaphore, _, _ = planted(equation.params["tree"], operands)
        slot, place = self.slot(semaphore)
        pending = slot.pending.get(place, [])
        size = self.size(source)
        while slot.array[place] < size:
            if not pending:
                raise Hang
            more, move = pending.pop(self.chance.randrange(len(pending)))
            move()
            slot.array[place] += more
        slot.array[place] -= size
        return []

    def on_semaphore_signal(self, equation: Any, operands: list[Any]) -> list[Any]:
        reference, transforms, amount, device, _ = planted(equation.params["args_tree"], operands)
        place = {**self.places, **{name: int(at) for name, at in device or ()}}
        k = self.scratch.index(reference)
        view = self.through(self.all[tuple(place.values())][k], transforms)
        view.memory.array[tuple(view.at)] += int(amount)
        return []

    def wait(self, equation: Any, operands: list[Any]) -> Iterator[Any]:
        reference, transforms, amount, *_ = planted(equation.params["args_tree"], operands)
        view = self.through(self.view(reference), transforms)
        at = tuple(view.at)
        while view.memory.array[at] < int(amount):
            yield "waits"
        view.memory.array[at] -= int(amount)
        return []

    def slot(self, semaphore: Any) -> tuple[Memory, tuple[int, ...]]:
        view = self.view(semaphore)
        assert all(isinstance(one, int) for one in view.at)
        return view.memory, tuple(view.at)

    def size(self, value: Any) -> int:
        view = self.view(value)
        return int(np.prod(view.shape)) * view.memory.array.itemsize


def _moved(source: View, target: View) -> tuple[View, View]:
    """What a copy moves: without the rows that either of the two ignores."""
    views, first = (source, target), []
    for view in views:
        first.append(next((k for k, one in enumerate(view.at) if not isinstance(one, int)), None))
    if None in first or not any(IGNORED in view.at[k] for view, k in zip(views, first, strict=True)):
        return views
    moved = np.logical_and(*(view.at[k] != IGNORED for view, k in zip(views, first, strict=True)))
    cut = [[one[moved] if j == k else one for j, one in enumerate(v.at)] for v, k in zip(views, first, strict=True)]
    return View(source.memory, cut[0]), View(target.memory, cut[1])


def memory_of(aval: Any) -> Memory:
    """New memory of a type."""
    return Memory(tuple(aval.shape), aval.dtype if aval.memory != SEMAPHORE else None, aval.memory == SEMAPHORE)


def outcome(equation: Any, arrays: Sequence[Any], seed: int) -> str:
    """What one run shows, "" where it ends; the output is in the last of `arrays`."""
    chance = random.Random(seed)
    program = program_of(equation.params["jaxprs"][0])
    (mesh,) = equation.params["meshes"]
    extents = dict(mesh.shape)
    hbm = [View(Memory(array.shape, array.dtype)) for array in arrays]
    for view, array in zip(hbm, arrays, strict=True):
        view.memory.array[...] = array
    shared: dict[tuple[int, int], View] = {}
    threads: dict[tuple[int, ...], Steps] = {}
    everyone: dict[Any, list[Any]] = {}
    idle = 0
    for place in np.ndindex(*extents.values()):
        scratch = []
        for k, variable in enumerate(program.invars[len(hbm) :]):
            view = View(memory_of(variable.aval))
            if variable.aval.memory == "vmem_shared":
                view = shared.setdefault((place[0], k), view)
            scratch.append(view)
        core = Subcore(dict(zip(extents, place, strict=True)), chance, scratch, everyone)
        threads[place] = core.run(program, [*hbm, *scratch])
    waiting: set[tuple[int, ...]] = set()
    ended: set[tuple[int, ...]] = set()
    try:
        while len(ended) < len(threads):
            ready = [place for place in threads if place not in waiting and place not in ended]
            if not ready:
                raise Hang
            place = chance.choice(ready)
            for _ in range(chance.choice((1, 3, 30))):
                try:
                    said = next(threads[place])
                except StopIteration:
                    ended.add(place)
                    break
                idle = idle + 1 if said == "waits" else 0
                if idle > MOST_IDLE:
                    raise Hang
                if said == "waits":
                    break
                if said == "barrier":
                    waiting.add(place)
                    beside = {other for other in threads if other[0] == place[0]}
                    if beside <= waiting:
                        waiting -= beside
                    break
    except Outside:
        return "outside"
    except Hang:
        return "hang"
    arrays[-1][...] = hbm[-1].memory.array
    return ""


def signs(name: str, wrong: bool, seeds: int = SEEDS) -> set[str]:
    """What runs of a case show."""
    case = CASES[name]
    args = case.args()
    with device_of(TARGET):
        jaxpr = jax.make_jaxpr(subcore_pairs.function_of(case, wrong))(*args)
    (equation,) = [e for e in jaxpr.jaxpr.eqns if e.primitive.name == "mpmd_map"]
    (out,) = equation.outvars
    found = set()
    for seed in range(seeds):
        arrays = [*map(np.asarray, args), np.full(out.aval.shape, np.nan, out.aval.dtype)]
        said = outcome(equation, arrays, seed)
        if not said:
            wanted = case.want(*args).reshape(out.aval.shape)
            near = np.allclose(arrays[-1], wanted, rtol=1e-4, atol=1e-4)
            said = "nan" if np.isnan(arrays[-1]).any() else "equal" if near else "differs"
        found.add(said)
    return found


if __name__ == "__main__":
    for each in sys.argv[1:] or CASES:
        print(each, *(" ".join(sorted(signs(each, wrong))) for wrong in (False, True)), sep=" | ", flush=True)
