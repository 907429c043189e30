"""Programs of a cluster, and threads, that share an array in global memory, against all interleavings of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from math import prod
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
from jax import lax
from jax import numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

import layoutproof as lp
from layoutproof.core.result import Verdict

pytestmark = pytest.mark.slow

AXES = ("c", "d")
TOUCHES = ("load", "store", "copy")

Step = tuple[str, int, int]
"""What is done, at which slot or barrier, and by which thread alone; -1 = by all."""


@dataclass(frozen=True)
class Drawn:
    """A kernel: its cluster, its threads, the axes of its barriers, and what its threads do in turn.

    A slot below 0 is that of the thread's own number (-1), or of the next one (-2).
    """

    cluster: tuple[int, ...]
    threads: int
    across: tuple[str, ...]
    steps: tuple[Step, ...]

    @property
    def many(self) -> int:
        return prod(self.cluster) * self.threads

    def slot(self, thread: int, at: int) -> int:
        return at if at >= 0 else (thread - 1 - at) % self.many

    @cached_property
    def places(self) -> list[tuple[int, ...]]:
        """Where each thread's program is; threads of one follow each other."""
        return [place for place in product(*map(range, self.cluster)) for _ in range(self.threads)]

    def does(self, thread: int) -> list[tuple[str, int]]:
        return [
            (kind, self.slot(thread, at) if kind in TOUCHES else at)
            for kind, at, who in self.steps
            if who in (-1, thread)
        ]

    def reaches(self, thread: int, program: tuple[int, ...]) -> bool:
        """Whether an arrival of a thread counts for a program: they differ along one axis of the barrier at most."""
        differs = [a for a, m, n in zip(AXES, self.places[thread], program, strict=False) if m != n]
        return len(differs) <= 1 and set(differs) <= set(self.across)

    def wanted(self) -> int:
        along = [n for axis, n in zip(AXES, self.cluster, strict=False) if axis in self.across]
        return self.threads * (sum(along) - len(along) + 1)


def drawn(seed: int) -> Drawn:
    draw = random.Random(seed)
    cluster, threads = draw.choice([((2,), 1), ((1,), 2), ((2,), 2), ((3,), 1), ((2, 2), 1)])
    across = tuple(axis for axis, _ in zip(AXES, cluster, strict=False) if draw.random() < 0.85)
    kinds = ("load", "store", "store") if seed % 2 else ("store", "copy")
    steps: list[Step] = []
    waits: list[Step] = []
    for _ in range(draw.randint(2, 4)):
        who = -1 if draw.random() < 0.3 else draw.randrange(prod(cluster) * threads)
        steps.append((draw.choice(kinds), draw.choice((-1, -1, -2) if who < 0 else (0, 0, 0, 1)), who))
        if steps[-1][0] == "copy" and draw.random() < 0.9:
            steps.append((draw.choice(("drain", "drain reads")), 0, who))
        if draw.random() < 0.9:
            # all arrive before any of them waits, so that none waits for ever
            barrier = draw.randrange(2)
            steps.append(("arrive", barrier, -1))
            waits.append(("wait", barrier, -1 if draw.random() < 0.9 else draw.randrange(prod(cluster) * threads)))
        while waits and draw.random() < 0.9:
            steps.append(waits.pop(0))
    return Drawn(cluster, threads, across, tuple(steps))


def kernel_of(one: Drawn) -> Any:
    names = AXES[: len(one.cluster)]

    def body(x_gmem: Any, s_gmem: Any, o_gmem: Any, smem: Any, barrier: Any) -> None:
        thread: Any = 0
        for name, extent in zip(names, one.cluster, strict=True):
            thread = thread * extent + lax.axis_index(name)
        if one.threads > 1:
            thread = thread * one.threads + lax.axis_index("wg")

        def do(number: int, kind: str, at: int) -> None:
            slot = at if at >= 0 else lax.rem(thread - 1 - at, one.many)
            match kind:
                case "load":
                    o_gmem[thread, number] = s_gmem[slot]
                case "store":
                    s_gmem[slot] = x_gmem[thread]
                case "copy":
                    plgpu.copy_smem_to_gmem(smem, s_gmem.at[slot])
                case "drain" | "drain reads":
                    plgpu.wait_smem_to_gmem(0, wait_read_only=kind != "drain")
                case "arrive":
                    plgpu.barrier_arrive(barrier.at[at])
                case "wait":
                    plgpu.barrier_wait(barrier.at[at])

        for number, (kind, at, who) in enumerate(one.steps):
            if who < 0:
                do(number, kind, at)
            else:
                pl.when(thread == who)(lambda step=(number, kind, at): do(*step))

    threads: dict[str, Any] = {"num_threads": one.threads, "thread_name": "wg"} if one.threads > 1 else {}
    barrier: Any = plgpu.Barrier(num_arrivals=one.threads, num_barriers=2)
    if one.across:
        barrier = plgpu.ClusterBarrier(collective_axes=one.across, num_arrivals=one.threads, num_barriers=2)
    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((one.many, len(one.steps), 128), jnp.float32),
        cluster=one.cluster,
        cluster_names=names,
        scratch_types=[plgpu.SMEM((128,), jnp.float32), barrier],
        **threads,
    )


State = tuple[tuple[int, ...], frozenset[tuple[int, int]]]


def reachable(one: Drawn) -> Iterator[State]:
    """How far each thread is and which copies run, in all interleavings."""
    does = [one.does(thread) for thread in range(one.many)]
    todo: list[State] = [((0,) * one.many, frozenset())]
    seen = set(todo)

    def goes(thread: int, state: State) -> bool:
        positions, flying = state
        if positions[thread] == len(does[thread]):
            return False
        kind, at = does[thread][positions[thread]]
        if kind == "drain":
            return all(other != thread for other, _ in flying)
        waits = does[thread][: positions[thread] + 1].count(("wait", at))
        arrived = sum(
            own[:position].count(("arrive", at))
            for other, (own, position) in enumerate(zip(does, positions, strict=True))
            if one.reaches(other, one.places[thread])
        )
        return kind != "wait" or arrived >= waits * one.wanted()

    while todo:
        state = todo.pop()
        positions, flying = state
        following: list[State] = [(positions, flying - {copy}) for copy in flying]
        for thread in (thread for thread in range(one.many) if goes(thread, state)):
            started = {(thread, positions[thread])} if does[thread][positions[thread]][0] == "copy" else set()
            moved = (*positions[:thread], positions[thread] + 1, *positions[thread + 1 :])
            following.append((moved, flying | started))
        yield state
        todo += [state for state in dict.fromkeys(following) if state not in seen]
        seen.update(following)


def meet(one: tuple[str, int], other: tuple[str, int]) -> bool:
    return one[0] in TOUCHES and other[0] in TOUCHES and one[1] == other[1] and not one[0] == other[0] == "load"


def shown(one: Drawn) -> tuple[bool, bool]:
    """Whether two threads touch a slot at once in some interleaving, and whether a copy comes after other things there.

    Behind a copy of its own program it may.
    """
    does = [one.does(thread) for thread in range(one.many)]
    races = late = False
    for positions, flying in reachable(one):
        ready = [(k, own[at]) for k, (own, at) in enumerate(zip(does, positions, strict=True)) if at < len(own)]
        touching = [*ready, *((thread, does[thread][at]) for thread, at in flying)]
        races |= any(a != b and meet(x, y) for (a, x), (b, y) in combinations(touching, 2))
        for (a, copy), b in product(ready, range(one.many)):
            before = does[b][: positions[b]] if copy[0] == "copy" and a != b else []
            late |= any(meet(x, copy) and not (x[0] == "copy" and one.places[a] == one.places[b]) for x in before)
    return races, late


@pytest.mark.parametrize("seed", range(60))
def test_what_is_said_of_global_memory_is_what_all_interleavings_show(seed: int) -> None:
    one = drawn(seed)
    args = [jax.ShapeDtypeStruct((one.many, 128), jnp.float32)] * 2
    found = lp.kernels(kernel_of(one), *args, target="mosaic_gpu").findings
    said = min(f.verdict for f in found if f.question == "body_races" and f.severity == "error")
    races, late = shown(one)
    assert said is (Verdict.REFUTED if races else Verdict.UNKNOWN if late else Verdict.PROVED)
