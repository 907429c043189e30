"""Random kernels over a few GPUs, and what is wrong with them, found by going through every order of their steps.

The search shares nothing with `bodies.gpu_devices` but the meaning of a step: a store to, or a read of, one row of a
buffer of some device, a signal, and a wait. Two steps race where both can come next.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    cross: of a store or a read, whether the row is one of the other program.
    """

    kind: str
    to: int = 0
    at: int = 0
    many: int = 1
    keeps: bool = False
    only: int | None = None
    cross: bool = False


@dataclass(frozen=True)
class Program:
    """What all do. programs: of each device, one or two, each with its own rows.

    Of semaphores the first two are a program's own, and the third one is that of the device.
    """

    devices: int
    programs: int
    steps: tuple[Step, ...]

    @property
    def threads(self) -> list[tuple[int, int]]:
        """The programs of all devices."""
        return [(device, k) for device in range(self.devices) for k in range(self.programs)]

    def row(self, step: Step, of: int) -> int:
        """The row that a program stores or reads."""
        return step.at + ROWS * ((self.programs - 1 - of) if step.cross else of)


def drawn(random: Random) -> Program:
    """A program that has some sense: rows go to neighbours, which are told, and wait. Half of them have an error."""
    programs = random.choice((1, 2))
    devices = random.choice((2, 2, 3)) if programs == 1 else 2
    steps: list[Step] = []
    kept = random.random() < 0.4
    told = [0, 0, 0]
    for turn in range(random.choice((2, 2, 2, 3)) if programs == 1 else 2):
        to, semaphore = random.randrange(devices), random.randrange(2)
        cross = programs == 2 and random.random() < 0.4
        # what the other program has sent is told to the device
        semaphore = 2 if cross else semaphore
        told[semaphore] += programs if cross else 1
        if turn >= ROWS and random.random() < 0.7:
            # a row is stored again when all have read it
            steps += _met(devices, programs, told)
        steps += [
            Step("store", to, turn % ROWS),
            Step("signal", to, semaphore),
            Step("wait", 0, semaphore, told[semaphore] if kept or cross else 1, kept or cross),
            Step("read", 0, turn % ROWS, cross=cross),
        ]
    if random.random() < 0.5:
        steps += _met(devices, programs, told)
    if random.random() < 0.2:
        # nothing holds the last ones
        del steps[max(k for k, step in enumerate(steps) if step.kind == "wait")]
    for _ in range(random.choice((0, 0, 1, 2))):
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
    return Program(devices, programs, tuple(steps))


def _met(devices: int, programs: int, told: list[int]) -> list[Step]:
    """Each program tells all other devices, and waits for their programs."""
    told[2] += programs * (devices - 1)
    return [*(Step("signal", of, 2) for of in range(1, devices)), Step("wait", 0, 2, told[2], True)]


def built(program: Program) -> Any:
    """The program as a kernel of Mosaic GPU, and its arguments."""
    reads = max(sum(step.kind == "read" for step in program.steps), 1)

    def body(x: Any, o: Any, buffer: Any, own: Any) -> None:
        me, many, of = lax.axis_index("x"), program.devices, lax.axis_index("i")
        shared = pl.get_global(SIGNALS((1,)))

        def does(step: Step, row: int) -> None:
            device = lax.rem(me + step.to, jnp.int32(many))
            at = step.at + ROWS * ((program.programs - 1 - of) if step.cross else of)
            here = shared.at[0] if step.at == 2 else own.at[step.at]
            if step.kind == "store":
                to = buffer if step.to == 0 else plgpu.remote_ref(buffer, device)
                to.at[at][...] = x[0]
            elif step.kind == "read":
                o[row + reads * of] = buffer[at]
            elif step.kind == "signal":
                pl.semaphore_signal(here, device_id=device)
            else:
                pl.semaphore_wait(here, step.many, decrement=not step.keeps)

        row = 0
        for step in program.steps:
            if step.only is None:
                does(step, row)
            else:
                pl.when(me == step.only)(lambda step=step, row=row: does(step, row))
            row += step.kind == "read"

    shapes = [
        jax.ShapeDtypeStruct((reads * program.programs, COLUMNS), F),
        jax.ShapeDtypeStruct((ROWS * program.programs, COLUMNS), F),
    ]
    call = over(program.devices, lambda x: kernel(body, shapes, [SIGNALS((2,))], program.programs)(x)[0])
    return call, (jax.ShapeDtypeStruct((program.devices, COLUMNS), F),)


def faults(program: Program) -> set[str]:
    """What goes wrong in some order: "race", "late", "never", "unwritten" and "unstored"."""
    found: set[str] = set()
    threads = program.threads
    of = [[s for s in program.steps if s.only in (None, device)] for device, _ in threads]
    seen: set[Any] = set()
    todo: list[Any] = [((0,) * len(threads), frozenset(), frozenset())]
    while todo:
        state = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        at, counts, written = state
        following = [of[t][at[t]] if at[t] < len(of[t]) else None for t in range(len(threads))]
        found |= _seen_now(program, following, written)
        moved = False
        for t, step in enumerate(following):
            after = None if step is None else _done(program, threads[t], step, dict(counts), written)
            if after is not None:
                moved = True
                todo.append((tuple(n + (k == t) for k, n in enumerate(at)), *after))
        if not moved and any(step is not None for step in following):
            found.add("never")
        elif not moved:
            every = {(d, row) for d in range(program.devices) for row in range(ROWS * program.programs)}
            # what only some devices read leaves rows of the result out
            reads = [s for s in program.steps if s.kind == "read"]
            found |= (
                {"unstored"} if not every <= written or not reads or any(s.only is not None for s in reads) else set()
            )
    return found


def _seen_now(program: Program, following: Sequence[Step | None], written: frozenset[tuple[int, int]]) -> set[str]:
    """What goes wrong where each program does what comes next."""
    found: set[str] = set()
    touched: list[tuple[tuple[int, int], bool]] = []
    for (device, of), step in zip(program.threads, following, strict=True):
        if step is None:
            continue
        home = (device + step.to) % program.devices
        ended = all(s is None for (d, _), s in zip(program.threads, following, strict=True) if d == home)
        if step.kind in ("store", "signal") and home != device and ended:
            found.add("late")
        if step.kind in ("store", "read"):
            place = home, program.row(step, of)
            found |= {"unwritten"} if step.kind == "read" and place not in written else set()
            found |= {"race"} if any(other == place and (w or step.kind == "store") for other, w in touched) else set()
            touched.append((place, step.kind == "store"))
    return found


def _done(
    program: Program,
    thread: tuple[int, int],
    step: Step,
    counts: dict[tuple[int, ...], int],
    written: frozenset[tuple[int, int]],
) -> tuple[frozenset[Any], frozenset[tuple[int, int]]] | None:
    """What semaphores count, and what is written, after a step; None where it has to wait."""
    device, of = thread
    home = (device + step.to) % program.devices
    key = (home, 2) if step.at == 2 else (home, step.at, of)
    if step.kind == "store":
        written |= {(home, program.row(step, of))}
    elif step.kind == "signal":
        counts[key] = counts.get(key, 0) + 1
    elif step.kind == "wait":
        if counts.get(key, 0) < step.many:
            return None
        counts[key] = counts.get(key, 0) - (0 if step.keeps else step.many)
    return frozenset(counts.items()), written
