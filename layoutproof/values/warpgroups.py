"""The threads (warpgroups) of the programs of one cluster of a GPU: one at a time, each until it waits for a barrier.

Read from jax/_src/pallas/mosaic_gpu (jax 0.10.2). Memory that a scope allocates is one for the threads of a program,
accumulators are a thread's own, and begin with zeros (`_run_scoped_lowering_rule` in lowering.py). Scopes of several
threads that are one are those of one equation, as often as each has come there.

Named barriers are those of a program: who waits goes on when the phase ends in which it has arrived. The work of
clusters that have not begun goes to the one that asks first (`dynamic_scheduling_loop`): that any order gives the same
is a premise, too.

Arrivals on a barrier add up, and the k-th wait of a thread on it is for the end of its k-th phase: so who goes on first
is nothing to what is computed. That nothing is touched which another thread, a copy or an MMA touches at the same time
is a premise of the answer (`dma_order`, `commit_smem`, `body_races`). The warps of a warpgroup (`WarpMesh`) are threads
of their own between where they part and where they meet.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from math import prod
from typing import cast

import numpy as np

from layoutproof.bodies.effects import WARPS
from layoutproof.ir.gpu_code import NAMED_BARRIERS, WARP
from layoutproof.ir.program import Equation, Program
from layoutproof.values.kinds import Shaped
from layoutproof.values.lockstep import PARTS, Lockstep
from layoutproof.values.memory import ElementView, HeldMemory, PhasedBarrier, Semaphore
from layoutproof.values.references import member, places_of
from layoutproof.values.state import Walking

MOST_PROGRAMS = 100_000
"""Threads of all programs of one kernel."""
Land = Callable[[], None]
"""What a copy that has ended leaves in memory."""


class ClusterThreads(Lockstep):
    """One run of the programs of one cluster.

    mesh: the axes of the grid, then those of the cluster, then that of the threads.  cluster: the names of the second.
    threads: that of the last, "" for none.  number: which cluster of the grid it is.  left: the clusters that have not
    begun, whose work it may take.
    """

    def __init__(
        self, mesh: Sequence[tuple[str, int]], cluster: Sequence[str], threads: str, number: int, left: list[int]
    ) -> None:  # fmt: skip
        extents = dict(mesh)
        self._inside = tuple((name, extents[name]) for name in cluster)
        self._threads = extents[threads] if threads else 1
        self.whole = prod(n for _, n in self._inside)
        """The parts of one arrival: of a copy that the programs of a cluster share each brings some."""
        many = self.whole * self._threads
        super().__init__(mesh, many, many * number, "threads that wait for arrivals")
        self._scopes: dict[tuple[Equation, int], dict[int, list[Shaped]]] = {}
        self._entered: dict[tuple[Equation, int], int] = {}
        self._made: dict[int, tuple[tuple[Equation, int], int]] = {}
        self._groups: dict[tuple[int, int, bool], list[list[Land]]] = {}
        self._products: dict[tuple[int, int], list[Land]] = {}
        self._named: dict[tuple[int, int, int], int] = {}
        self._left = left
        self._given: dict[tuple[int, int], int | None] = {}
        self.inside = {name for name in (*cluster, threads) if name}
        """The axes of what goes together."""

    def own(self, on: Walking) -> int:
        """The number of what runs now among what runs together: a thread, or a warp of one."""
        return super().own(on) if on.warp is None else on.warp[2]

    def thread(self, on: Walking) -> tuple[int, int]:
        """(The thread of the cluster that runs now, which warp of it, -1 where all do the same)."""
        return super().own(on), -1 if on.warp is None else on.warp[1]

    def program(self, on: Walking) -> int:
        """The program of the cluster that runs now."""
        return super().own(on) // self._threads

    def warps(self, on: Walking, axis: str, many: int, compute: Callable[[], object]) -> None:
        """Runs a body on the warps of the thread that runs now, each by itself; they meet before and after it."""
        if on.warp is not None:
            raise on.refuse("warps of a warp")
        first = self.count
        self.count += many
        self._going += [threading.Event() for _ in range(many)]
        self._until += [None] * many
        self._ended += [False] * many
        self._results += [()] * many
        kept = {part: getattr(on, part) for part in PARTS}

        def run(row: list[Shaped]) -> list[Shaped]:
            compute()
            return row

        for warp in range(many):
            self.starts_one(on, run, [], first + warp, {**kept, "warp": (axis, warp, first + warp)})
        self.wait(on, lambda: all(self._ended[first : first + many]))

    # memory

    def allocated(self, on: Walking, equation: Equation, made: Sequence[Shaped]) -> Sequence[Shaped]:
        """The memory of a scope: what another thread of the program has allocated there; accumulators are its own."""
        if on.warp is not None:
            raise on.refuse("memory that a warp allocates")
        of_thread = equation, self.own(on)
        self._entered[of_thread] = self._entered.get(of_thread, 0) + 1
        key = equation, self._entered[of_thread]
        programs = self._scopes.setdefault(key, {})
        shared = programs.setdefault(self.program(on), list(made))
        self._made.update((id(one), (key, k)) for k, one in enumerate(shared))
        return [
            own if variable.aval.memory == "regs" else one
            for own, one, variable in zip(made, shared, equation.params["jaxpr"].invars, strict=True)
        ]

    def of_program(self, on: Walking, view: ElementView, program: int) -> ElementView:
        """The same part of the memory of another program of the cluster."""
        if program == self.program(on):
            return view
        place = getattr(view.memory, "place", None)
        found = self._made.get(id(view.memory if place is None else place.around))
        if found is None:
            raise on.refuse("memory that another program of the cluster has no counterpart of")
        key, k = found
        self.wait(on, lambda: program in self._scopes[key])
        other = self._scopes[key][program][k]
        if place is not None:
            assert isinstance(other, HeldMemory)
            other = member(on, other, place.reference, view.memory.dtype)
        return ElementView(other, view.at, view.shape, box=view.box)

    def along(self, on: Walking, groups: Sequence[Sequence[str]]) -> list[int]:
        """The programs of the cluster that differ along the axes of one group alone, its own among them."""
        own, names = self.program(on), [name for name, _ in self._inside]
        for axis in (axis for group in groups for axis in group):
            if axis not in names:
                raise on.refuse(f"a copy or a barrier over {axis}, which is no axis of the cluster")
        places = [np.unravel_index(k, [n for _, n in self._inside]) for k in range(self.whole)]
        differ = [{name for name, a, b in zip(names, place, places[own], strict=True) if a != b} for place in places]
        return [k for k, axes in enumerate(differ) if any(axes <= set(group) for group in (*groups, ()))]

    # barriers

    def arrives(self, on: Walking, barrier: ElementView, program: int, parts: int, land: Land | None = None) -> None:
        """Counts parts of an arrival on a barrier of a program. land: of a copy, what happens when it is waited for."""
        held, place = _single(on, self.of_program(on, barrier, program))
        held.come[place] = held.come.get(place, 0) + parts
        if land is not None:
            held.landing.setdefault(place, []).append((held.come[place], land))

    def passes(self, on: Walking, barrier: ElementView) -> None:
        """Waits for the next phase of a barrier that this thread has not seen; its copies have landed then."""
        held, place = _single(on, barrier)
        thread, warp = self.thread(on)
        if warp < 0 and any(of == thread and one >= 0 and at == place for of, one, at in held.seen):
            raise on.refuse("a barrier that a warp waits for, and all warps of its warpgroup, too")
        key = thread, warp, place
        held.seen[key] = held.seen.get(key, 0) + 1
        seen = held.seen[key] + (held.seen.get((thread, -1, place), 0) if warp >= 0 else 0)
        many = len(self.along(on, held.across))
        until = seen * held.arrivals * many * self.whole
        self.wait(on, lambda: held.come.get(place, 0) >= until)
        waiting = held.landing.get(place, [])
        for _, land in [one for one in waiting if one[0] <= until]:
            land()
        held.landing[place] = [one for one in waiting if one[0] > until]

    def meets_by_name(self, on: Walking, number: int | str, threads: int, waits: bool) -> None:
        """Arrives on a named barrier of the program, and perhaps waits for the end of the phase that this is in.

        number: which one, "warpgroup + n" where it is another one for each thread.  threads: those of a phase.
        """
        if isinstance(number, str):
            number = int(number.rpartition(" ")[2]) + super().own(on) % self._threads
        program, warps = self.program(on), threads // WARP
        key = program, number, warps
        under_way = any(k[:2] == key[:2] and k != key and come % k[2] for k, come in self._named.items())
        if under_way or not 0 <= number < NAMED_BARRIERS:
            raise on.refuse(f"barrier {number} for {threads} threads")
        before = self._named.get(key, 0)
        end = (before // warps + 1) * warps
        self._named[key] = before + (WARPS if on.warp is None else 1)
        if self._named[key] > end:
            raise on.refuse(f"more than {threads} threads at barrier {number}")
        if waits:
            self.wait(on, lambda: self._named[key] >= end)

    # work that a GPU gives out

    def asks_for_work(self, on: Walking, answer: ElementView, barrier: ElementView) -> None:
        """All threads of a cluster ask for the work of another one, of which each program is told.

        It comes in the order of the grid, one after another to the one that asks: one of the orders that there are.
        Each thread arrives on its barrier; the arrivals of the first ones come with the answer.
        """
        program, whole = self.program(on), self.whole
        if super().own(on) % self._threads:
            self.arrives(on, barrier, program, whole)
            return
        if whole > 1:
            self.arrives(on, barrier, program, whole - 1)
        if program:
            return
        given = self._left.pop(0) if self._left else None
        for other in range(whole):
            key = _first(self.of_program(on, answer, other))
            self._given.pop(key, None)

            def land(key: tuple[int, int] = key) -> None:
                self._given[key] = given

            self.arrives(on, barrier, other, 1, land)

    def work(self, on: Walking, answer: ElementView) -> int | None:
        """The number of the cluster whose work an answer gives; None where there is no more."""
        key = _first(answer)
        if key not in self._given:
            raise on.refuse("an answer about work that is not waited for")
        return self._given[key]

    # products of a tensor core

    def multiplies(self, on: Walking, land: Land) -> None:
        """An MMA of a tensor core is started, which ends after those that this thread has started before."""
        self._products.setdefault(self.thread(on), []).append(land)

    def multiplied(self, on: Walking) -> Land:
        """What the MMAs that this thread has started so far leave in memory, once they have ended."""
        waiting = self._products.setdefault(self.thread(on), [])
        started = list(waiting)

        def land() -> None:
            for one in started:
                if one in waiting:
                    waiting.remove(one)
                    one()

        return land

    # copies that are on no barrier

    def starts(self, on: Walking, land: Land, grouped: bool, inwards: bool = False) -> None:
        """A copy that is on no barrier is started. grouped: whether it ends a group.  inwards: into shared memory."""
        self._group(on, inwards)[-1].append(land)
        if grouped:
            self.commits(on, inwards)

    def _group(self, on: Walking, inwards: bool) -> list[list[Land]]:
        """The groups of copies of what runs now, the last one open."""
        return self._groups.setdefault((*self.thread(on), inwards), [[]])

    def commits(self, on: Walking, inwards: bool = False) -> None:
        """The end of a group of copies."""
        self._group(on, inwards).append([])

    def drains(self, on: Walking, left: int, inwards: bool = False) -> None:
        """Waits until no more than the last groups are on their way."""
        groups = self._group(on, inwards)
        while len(groups) - 1 > left:
            for land in groups.pop(0):
                land()

    def ends(self) -> None:
        """The programs have ended: what they copy out is there, and that they waited for its reads is a premise."""
        for (_, _, inwards), groups in self._groups.items():
            for land in [] if inwards else [land for group in groups for land in group]:
                land()


def _single(on: Walking, view: ElementView) -> tuple[PhasedBarrier, int]:
    """A barrier, with the place in it that is meant."""
    if not isinstance(view.memory, PhasedBarrier):
        raise on.refuse("a barrier that is none of a GPU's")
    places = places_of(view).reshape(-1)
    if places.size != 1:
        raise on.refuse(f"{places.size} barriers at once")
    return view.memory, int(places[0])


def _first(view: ElementView) -> tuple[int, int]:
    """Which memory it is, and the first place in it: what tells one answer about work from another one."""
    return id(view.memory), int(places_of(view).reshape(-1)[0])


def threads_of(on: Walking) -> ClusterThreads:
    """The threads that run a kernel of a GPU."""
    if not isinstance(on.lockstep, ClusterThreads):
        raise on.refuse("a primitive of Mosaic GPU outside of a kernel")
    return on.lockstep


def run_clusters(
    on: Walking, body: Program, axes: tuple[tuple[str, int], ...], together: tuple[Sequence[str], str],
    given: Sequence[HeldMemory | Semaphore],
) -> None:  # fmt: skip
    """Runs a kernel of a GPU: one cluster of the grid after the other.

    axes: of the mesh.  together: the names of those of a cluster, and that of the threads, "" for none.  given: the
    arrays in global memory.
    """
    cluster, threads = together
    inside = [*cluster, *([threads] if threads else [])]
    names, extents = [name for name, _ in axes], tuple(n for _, n in axes)
    if names[len(names) - len(inside) :] != inside or len(body.given) != len(given):
        raise on.refuse("a kernel of a GPU in a form that is not read")
    if prod(extents) > MOST_PROGRAMS:
        raise on.refuse(f"a kernel of {prod(extents):,} threads, more than {MOST_PROGRAMS:,}")
    many = prod(extents[len(names) - len(inside) :])

    def thread(row: list[Shaped]) -> list[Shaped]:
        on.programs, on.flying = None, []
        assert on.device is not None
        on.prepared.tick(extents, tuple(map(int, np.unravel_index(on.device, extents))))
        on.run(body, row)
        return []

    mesh, device = on.mesh, on.device
    on.mesh = axes
    # one order of threads is walked, which shows nothing of others
    on.ordered = False
    try:
        left = list(range(prod(extents) // many))
        while left:
            on.lockstep = lockstep = ClusterThreads(axes, cluster, threads, left.pop(0), left)
            lockstep.run(on, thread, [cast("list[Shaped]", list(given))] * many)
            lockstep.ends()
    finally:
        on.mesh, on.device, on.lockstep = mesh, device, None
