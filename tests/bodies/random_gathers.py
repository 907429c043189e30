"""Random kernels of subcores that gather and scatter by lists: what is said of each, and what runs of it show.

Each subcore reads its part of a list, then rows of HBM by it, elements of a table, or puts them there. Where its part
begins, what is added to the places, what is ignored or masked, what memory held before and where the result goes are
drawn, right or wrong. A question that is proved is contradicted by no run, with no list that is as assumed; what is
refuted goes wrong in every run, with each of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import tpu_sc as plsc

import layoutproof as lp
from layoutproof.core.result import Verdict
from layoutproof.pallas.from_jax.adapter import device_of
from tests.bodies.run_subcores import outcome
from tests.bodies.subcore_pairs import LANES, TARGET, WORKERS, F, I, here, made

KINDS = ("gather rows", "scatter rows", "gather lanes", "scatter lanes")
RANGES = ((0, 64), (0, 64), (0, 64), (-1, 64), (-1, 63), (0, 65), (1, 65))
ENTRIES = 64
"""Rows and entries of everything that is in HBM."""
UNSTORED = -1.0
"""What outputs hold before; nothing that is copied is below 0."""
ORDERS = 3


@dataclass(frozen=True)
class Drawn:
    """low, high: between which the entries of the list are.  permuted: whether no two are equal.

    skips: by how much the part of the list that a subcore reads begins too late.  adds: to each place, of lanes alone.
    ignored: the place of rows that are left out.  mask: which lanes are there.  fills: whether memory is filled before.
    writes: where the result of a subcore goes, in words.
    """

    kind: str
    low: int
    high: int
    permuted: bool
    skips: int
    adds: int
    ignored: int | None
    mask: str
    fills: bool
    writes: str


def drawn(chance: random.Random) -> Drawn:
    """A kernel; about one of three is right."""
    low, high = chance.choice(RANGES)
    return Drawn(
        chance.choice(KINDS), low, high, chance.random() < 0.5, chance.choice((0, 0, 0, 0, 0, 1)),
        chance.choice((0, 0, 0, 1, -1)), chance.choice((None, None, -1, 64)),
        chance.choice(("", "inside", "inside", "half")), chance.random() < 0.6,
        chance.choice(("own", "own", "own", "own", "turned", "next", "half")),
    )  # fmt: skip


def function_of(one: Drawn) -> Callable[[Any, Any], Any]:
    """The kernel of what was drawn: of 64 rows of 16, or 64 numbers, and a list of 64 places."""
    vector, table = pltpu.VMEM((LANES,), I), pltpu.VMEM((ENTRIES,), F)
    rows = pltpu.VMEM((LANES, 16), F)

    def part(x: Any, w: Any, size: int = LANES) -> Any:
        return x.at[pl.ds(w * LANES, size)]

    def goes_to(o: Any, w: Any) -> Any:
        at = {"own": w, "turned": WORKERS - 1 - w, "next": jax.lax.rem(w + 1, WORKERS), "half": w // 2}[one.writes]
        return part(o, at)

    def read(i: Any, listed: Any, w: Any) -> None:
        pltpu.sync_copy(i.at[pl.ds(w * LANES + one.skips, LANES)], listed)

    def by_rows(x: Any, i: Any, o: Any, listed: Any, found: Any) -> None:
        _, _, w = here()
        read(i, listed, w)
        places = listed if one.ignored is None else plsc.Indices(listed, ignored_value=one.ignored)
        if one.kind == "scatter rows":
            pltpu.sync_copy(part(x, w), found)
            pltpu.sync_copy(found, o.at[places])
            return
        if one.fills:
            pltpu.sync_copy(part(x, 0), found)
        pltpu.sync_copy(x.at[places], found)
        pltpu.sync_copy(found, goes_to(o, w))

    def by_lanes(x: Any, i: Any, o: Any, listed: Any, found: Any, own: Any) -> None:
        _, _, w = here()
        read(i, listed, w)
        places = listed[...] + one.adds
        inside = (places >= 0) & (places < ENTRIES)
        mask = {"": None, "inside": inside, "half": jax.lax.iota(I, LANES) < LANES // 2}[one.mask]
        if one.kind == "gather lanes":
            pltpu.sync_copy(x, found)
            given = plsc.load_gather(found, [places], mask=mask)
            own[...] = jnp.where(mask, given, 0.0) if mask is not None and one.fills else given
            pltpu.sync_copy(own, goes_to(o, w))
            return
        if one.fills:
            pltpu.sync_copy(x, found)
        pltpu.sync_copy(part(x, w), own)
        plsc.store_scatter(found, [places], own[...], mask=mask)
        pltpu.sync_copy(part(found, 0), goes_to(o, w))

    if one.kind.endswith("rows"):
        return lambda x, i: made(by_rows, (ENTRIES, 16), [vector, rows])(x, i)
    return lambda x, i: made(by_lanes, (ENTRIES,), [vector, table, pltpu.VMEM((LANES,), F)])(x, i)


def lists(one: Drawn, seed: int) -> Iterator[Any]:
    """Lists that are as assumed: those of the ends of the range, and some by chance."""
    chance = np.random.default_rng(seed)
    every = np.arange(one.low, one.high)
    if one.permuted:
        yield from (ends[:ENTRIES].astype(np.int32) for ends in (every, every[::-1]))
        yield chance.permutation(every)[:ENTRIES].astype(np.int32)
        return
    yield from (np.full(ENTRIES, end, np.int32) for end in (one.low, one.high - 1))
    yield chance.choice(every, ENTRIES).astype(np.int32)


def assumed(one: Drawn) -> list[str]:
    """What is assumed of the list."""
    return [f"{one.low} <= args[1] < {one.high}", *(["args[1] is injective"] if one.permuted else [])]


def meets(one: Drawn, listed: Any) -> bool:
    """Whether two subcores write one row of the output, where the list is this one."""
    if one.kind != "scatter rows":
        return one.writes == "half"
    of_row: dict[int, int] = {}
    for w in range(WORKERS):
        for place in listed[w * LANES + one.skips :][:LANES]:
            if place != one.ignored and of_row.setdefault(int(place), w) != w:
                return True
    return False


def runs(one: Drawn, seed: int) -> list[tuple[bool, list[Any]]]:
    """For each list whether two subcores meet, and what each order gives: its output, a word where it has none."""
    shape = (ENTRIES, 16) if one.kind.endswith("rows") else (ENTRIES,)
    x = np.random.default_rng(seed).uniform(1, 2, shape).astype(np.float32)
    with device_of(TARGET):
        jaxpr = jax.make_jaxpr(function_of(one))(x, np.zeros(ENTRIES, np.int32))
    (equation,) = [e for e in jaxpr.jaxpr.eqns if e.primitive.name == "mpmd_map"]
    (out,) = equation.outvars
    found: list[tuple[bool, list[Any]]] = []
    for listed in lists(one, seed):
        shown: list[Any] = []
        for order in range(ORDERS):
            arrays = [x, listed, np.full(out.aval.shape, UNSTORED, out.aval.dtype)]
            shown.append(outcome(equation, arrays, order) or arrays[-1].copy())
        found.append((meets(one, listed), shown))
    return found


def wrong(one: Drawn, seed: int = 0) -> tuple[str, str]:
    """(What is said, how runs contradict it: "" where none does)."""
    shape = (ENTRIES, 16) if one.kind.endswith("rows") else (ENTRIES,)
    given = jax.ShapeDtypeStruct(shape, F), jax.ShapeDtypeStruct((ENTRIES,), I)
    findings = lp.kernels(function_of(one), *given, target=TARGET, assume=assumed(one)).findings
    asked: dict[str, set[Verdict]] = {}
    for finding in findings:
        if finding.severity == "error":
            asked.setdefault(finding.question, set()).add(finding.verdict)
    proved = {question for question, verdicts in asked.items() if verdicts == {Verdict.PROVED}}
    refuted = {question for question, verdicts in asked.items() if Verdict.REFUTED in verdicts}
    said = ", ".join(sorted(refuted)) or ("proved" if len(proved) == len(asked) else "unknown")
    return said, "; ".join(contradicted(proved, refuted, runs(one, seed)))


def contradicted(proved: set[str], refuted: set[str], shown: list[tuple[bool, list[Any]]]) -> Iterator[str]:
    """Which verdicts runs contradict, in words. shown: as of `runs`."""
    every = [result for _, results in shown for result in results]
    ended = [result for result in every if not isinstance(result, str)]
    outside = [isinstance(result, str) for result in every]
    signs = {
        "outputs_stored": [bool((result == UNSTORED).any()) for result in ended],
        "initialised": [bool(np.isnan(result).any()) for result in ended],
        "body_races": [met for met, _ in shown],
        "body_in_bounds": outside,
    }
    for question, seen in signs.items():
        if question in proved and any(seen) and (question != "initialised" or "undefined_values" in proved):
            yield f"{question} is proved, and a run shows it"
        if question in refuted and not all(seen):
            yield f"{question} is refuted, and a run does not show it"
    orderly = {"body_races", "body_in_bounds", "dma_order", "initialised", "undefined_values"} <= proved
    for _, results in shown:
        alike = not any(isinstance(r, str) for r in results) and all(np.array_equal(r, results[0]) for r in results)
        if orderly and not alike:
            yield "proved, and orders differ"
