"""Random kernels of subcores that share memory and tell each other: what is said of each, and what runs of it show.

Each subcore puts rows where others read them, in one turn or two. Whom it tells, whether by a signal or a barrier, what
it waits for and which rows it reads are drawn. What is proved whole has to give one result in every order that is
drawn, without anything undefined; where a wait is refuted, every run has to hang.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import tpu_sc as plsc

import layoutproof as lp
from layoutproof.core.result import Verdict
from layoutproof.pallas.from_jax.adapter import device_of
from tests.bodies.run_subcores import outcome
from tests.bodies.subcore_pairs import SUBCORES, TARGET, F, here, made, rows

ORDERS = ("barrier", "signal", "signal", "signal", "no wait", "nothing", "not the first", "twice")
BACK = ("barrier", "signal", "signal", "nothing")
SEEDS = 8


@dataclass(frozen=True)
class Drawn:
    """order: how others learn that rows are there.  back: that they were read.  tells, reads: which subcore, counted
    from its own.  size: of what is read, in rows."""

    order: str
    back: str
    tells: int
    reads: int
    size: int
    turns: int


def drawn(chance: random.Random) -> Drawn:
    """A kernel; of four, two or so tell whom they should."""
    reads = chance.randrange(SUBCORES)
    tells = -reads % SUBCORES if chance.random() < 0.6 else chance.randrange(SUBCORES)
    size = chance.choice((4, 4, 4, 5))
    return Drawn(chance.choice(ORDERS), chance.choice(BACK), tells, reads, size, chance.choice((1, 1, 2)))


def function_of(one: Drawn) -> Callable[[Any], Any]:
    """The kernel of what was drawn."""

    def body(x: Any, o: Any, shared: Any, there: Any, free: Any) -> None:
        core, subcore, w = here()

        def other(by: int) -> Any:
            return jax.lax.rem(subcore + by, SUBCORES)

        def signal(semaphore: Any, by: int, amount: int = 1) -> None:
            pl.semaphore_signal(semaphore, amount, device_id={"core": core, "subcore": other(by)})

        for turn in range(one.turns):
            pltpu.sync_copy(x.at[pl.ds(w * 8 + turn * 4, 4)], shared.at[pl.ds(subcore * 4, 4)])
            if one.order == "barrier":
                plsc.subcore_barrier()
            elif one.order == "not the first":
                pl.when(subcore > 0)(lambda: signal(there, one.tells))
            elif one.order != "nothing":
                signal(there, one.tells, 2 if one.order == "twice" else 1)
            if one.order in ("signal", "not the first", "twice"):
                pl.semaphore_wait(there, 1)
            pltpu.sync_copy(shared.at[pl.ds(other(one.reads) * 4, one.size)], o.at[w, pl.ds(turn * 5, one.size)])
            if turn + 1 < one.turns and one.back == "barrier":
                plsc.subcore_barrier()
            elif turn + 1 < one.turns and one.back == "signal":
                signal(free, one.reads)
                pl.semaphore_wait(free, 1)

    regular = pltpu.SemaphoreType.REGULAR
    return lambda x: made(body, (8, 10, 16), [pltpu.VMEM_SHARED((17, 16), F), regular, regular])(x)


def runs(function: Callable[[Any], Any], x: Any) -> list[Any]:
    """What each run gives: a word where it does not end, else its output."""
    with device_of(TARGET):
        jaxpr = jax.make_jaxpr(function)(x)
    (equation,) = [e for e in jaxpr.jaxpr.eqns if e.primitive.name == "mpmd_map"]
    (out,) = equation.outvars
    found: list[Any] = []
    for seed in range(SEEDS):
        arrays = [x, np.full(out.aval.shape, -1.0, out.aval.dtype)]
        found.append(outcome(equation, arrays, seed) or arrays[-1].copy())
    return found


def wrong(one: Drawn) -> tuple[str, str]:
    """(What is said, how a run contradicts it: "" where none does)."""
    x = rows()
    function = function_of(one)
    findings = lp.kernels(function, x, target=TARGET).findings
    asked = [f for f in findings if f.severity == "error" and f.question != "outputs_stored"]
    refuted = {f.question for f in asked if f.verdict is Verdict.REFUTED}
    said = ", ".join(sorted(refuted)) or (
        "unknown" if any(f.verdict is not Verdict.PROVED for f in asked) else "proved"
    )
    shown = runs(function, x)
    hangs = [isinstance(result, str) and result == "hang" for result in shown]
    if said == "proved":
        alike = not any(isinstance(result, str) for result in shown)
        alike = alike and all(np.array_equal(result, shown[0]) for result in shown)
        return said, "" if alike and not np.isnan(shown[0]).any() else "runs differ, hang or read what is undefined"
    if "device_waits" in refuted:
        return said, "" if all(hangs) else "a run ends"
    return said, "a run hangs" if any(hangs) and "subcore_barrier" not in refuted and said != "unknown" else ""
