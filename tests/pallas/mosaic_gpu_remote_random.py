"""Random kernels over a few GPUs, and what is wrong with them, found by going through every order of their steps.

The search shares nothing with `bodies.gpu_devices` but the meaning of a step: a store to, or a read of, one row of a
buffer of some device, a signal, and a wait. Two steps race where both can come next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

from tests.pallas.mosaic_gpu_pairs import F
from tests.pallas.mosaic_gpu_remote_pairs import SIGNALS, kernel, over

ROWS, COLUMNS = 2, 128


@dataclass(frozen=True)
class Step:
    """What each device does next. kind: "store", "read", "signal" or "wait".

    to: how many devices to the right, of a store or a signal; 0 is the own one.  at: which row, or which semaphore.
    many: of a wait, for how many.  keeps: whether it takes none.  only: the device that does it, None = each.
    """

    kind: str
    to: int = 0
    at: int = 0
    many: int = 1
    keeps: bool = False
    only: int | None = None


@dataclass(frozen=True)
class Program:
    devices: int
    steps: tuple[Step, ...]


def drawn(random: Random) -> Program:
    """A program that has some sense: rows go to neighbours, which are told, and wait. Half of them have an error."""
    devices = random.choice((2, 2, 3))
    steps: list[Step] = []
    kept = random.random() < 0.4
    told = [0, 0, 0]
    for turn in range(random.choice((2, 2, 2, 3))):
        to, semaphore = random.randrange(devices), random.randrange(2)
        told[semaphore] += 1
        if turn >= ROWS and random.random() < 0.7:
            # a row is stored again when all have read it
            steps += [Step("signal", of, 2) for of in range(1, devices)]
            steps.append(Step("wait", 0, 2, devices - 1))
        steps += [
            Step("store", to, turn % ROWS),
            Step("signal", to, semaphore),
            Step("wait", 0, semaphore, told[semaphore] if kept else 1, kept),
            Step("read", 0, turn % ROWS),
        ]
    if random.random() < 0.5:
        steps += [Step("signal", of, 2) for of in range(1, devices)]
        steps.append(Step("wait", 0, 2, devices - 1))
    for _ in range(random.choice((0, 1, 2))):
        k = random.randrange(len(steps) - 1)
        change = random.randrange(5)
        if change == 0:
            del steps[k]
        elif change == 1:
            steps[k : k + 2] = steps[k : k + 2][::-1]
        elif change == 2:
            steps[k] = replace(steps[k], only=random.randrange(devices))
        elif change == 3:
            steps[k] = replace(steps[k], many=steps[k].many + random.choice((-1, 1)))
        else:
            steps[k] = replace(steps[k], to=0 if steps[k].kind in ("wait", "read") else random.randrange(devices))
    return Program(devices, tuple(steps))


def built(program: Program) -> Any:
    """The program as a kernel of Mosaic GPU, and its arguments."""
    reads = sum(step.kind == "read" for step in program.steps)

    def body(x: Any, o: Any, buffer: Any, here: Any) -> None:
        me, many = lax.axis_index("x"), program.devices
        row = 0

        def does(step: Step, row: int) -> None:
            device = lax.rem(me + step.to, jnp.int32(many))
            if step.kind == "store":
                to = buffer if step.to == 0 else plgpu.remote_ref(buffer, device)
                to.at[step.at][...] = x[0]
            elif step.kind == "read":
                o[row] = buffer[step.at]
            elif step.kind == "signal":
                pl.semaphore_signal(here.at[step.at], device_id=device)
            else:
                pl.semaphore_wait(here.at[step.at], step.many, decrement=not step.keeps)

        for step in program.steps:
            if step.only is None:
                does(step, row)
            else:
                pl.when(me == step.only)(lambda step=step, row=row: does(step, row))
            row += step.kind == "read"

    shapes = [jax.ShapeDtypeStruct((max(reads, 1), COLUMNS), F), jax.ShapeDtypeStruct((ROWS, COLUMNS), F)]
    call = over(program.devices, lambda x: kernel(body, shapes, [SIGNALS((3,))])(x)[0])
    return call, (jax.ShapeDtypeStruct((program.devices, COLUMNS), F),)


def faults(program: Program) -> set[str]:
    """What goes wrong in some order: "race", "late", "never", "unwritten" and "unstored"."""
    found: set[str] = set()
    of = [[s for s in program.steps if s.only in (None, d)] for d in range(program.devices)]
    seen: set[Any] = set()
    todo: list[Any] = [((0,) * program.devices, (0,) * (3 * program.devices), frozenset())]
    while todo:
        state = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        at, counts, written = state
        following = [of[d][at[d]] if at[d] < len(of[d]) else None for d in range(program.devices)]
        touched = [(d, t) for d, s in enumerate(following) if s is not None and (t := _touches(program, d, s))]
        for k, (_, (place, writes)) in enumerate(touched):
            if any(place == other and (writes or also) for _, (other, also) in touched[k + 1 :]):
                found.add("race")
        moved = False
        for d, step in enumerate(following):
            if step is None:
                continue
            home = (d + step.to) % program.devices
            if step.kind in ("store", "signal") and home != d and following[home] is None:
                found.add("late")
            for after in _done(program, d, step, counts, written):
                moved = True
                todo.append((tuple(n + (k == d) for k, n in enumerate(at)), *after))
            if step.kind == "read" and (d, step.at) not in written:
                found.add("unwritten")
        if not moved:
            found |= {"never"} if any(step is not None for step in following) else set()
            if all(step is None for step in following):
                every = {(d, row) for d in range(program.devices) for row in range(ROWS)}
                found |= set() if every <= written else {"unstored"}
                # what only some devices read leaves rows of the result out
                found |= {"unstored"} if any(s.kind == "read" and s.only is not None for s in program.steps) else set()
                found |= set() if any(s.kind == "read" for s in program.steps) else {"unstored"}
    return found


def _touches(program: Program, device: int, step: Step) -> tuple[tuple[int, int], bool] | None:
    if step.kind not in ("store", "read"):
        return None
    return ((device + step.to) % program.devices, step.at), step.kind == "store"


def _done(
    program: Program, device: int, step: Step, counts: tuple[int, ...], written: frozenset[tuple[int, int]]
) -> Iterator[tuple[tuple[int, ...], frozenset[tuple[int, int]]]]:
    """What semaphores count, and what is written, after a step; nothing where it has to wait."""
    home = (device + step.to) % program.devices
    place = 3 * home + step.at
    if step.kind == "store":
        yield counts, written | {(home, step.at)}
    elif step.kind == "read":
        yield counts, written
    elif step.kind == "signal":
        yield tuple(n + (k == place) for k, n in enumerate(counts)), written
    elif counts[place] >= step.many:
        takes = 0 if step.keeps else step.many
        yield tuple(n - takes * (k == place) for k, n in enumerate(counts)), written
