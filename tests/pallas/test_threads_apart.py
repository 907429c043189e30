"""Races between threads of a GPU in global memory, where these are run one by one: held against every element."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

import layoutproof as lp
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.pallas.rules import body_races

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(jax.__version__ != "0.10.2", reason="limits of jax 0.10.2"),
]

ROWS, COLUMNS = 64, 256


@dataclass(frozen=True)
class Placed:
    """A store to some rows and columns, or a load of them, each time from where ids and a turn of a loop say.

    rows, columns: (how many, distance by the program, by the other id, by the warpgroup, by the turn, the first one).
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    writes: bool
    only: int = -1
    """The warpgroup that does it, -1 for all."""

    def at(self, ids: tuple[Any, ...]) -> list[tuple[Any, int]]:
        """Where it begins, and how many, of rows and of columns."""
        return [
            (first + sum(by * id for by, id in zip(apart, ids, strict=True)), many)
            for many, *apart, first in (self.rows, self.columns)
        ]


@dataclass(frozen=True)
class Threads:
    """A kernel of threads that load and store."""

    grid: tuple[int, int, int]
    turns: int
    effects: tuple[Placed, ...]

    def kernel(self) -> Any:
        def body(x_gmem: Any, o_gmem: Any) -> None:
            ids = tuple(map(lax.axis_index, "ijw"))

            def turn(k: Any, carry: Any) -> Any:
                for one in self.effects:

                    def does(one: Placed = one) -> None:
                        there = tuple(pl.ds(start, many) for start, many in one.at((*ids, k)))
                        if one.writes:
                            o_gmem[there] = jnp.zeros((one.rows[0], one.columns[0]), jnp.float32)
                        else:
                            x_gmem[there] = o_gmem[there]

                    if one.only < 0:
                        does()
                    else:
                        pl.when(ids[2] == one.only)(does)
                return carry

            lax.fori_loop(0, self.turns, turn, None)

        return plgpu.kernel(
            lambda x, o, other: body(other, o),
            out_type=[jax.ShapeDtypeStruct((ROWS, COLUMNS), jnp.float32)] * 2,
            grid=self.grid[:2],
            grid_names=("i", "j"),
            num_threads=self.grid[2],
            thread_name="w",
        )

    def meet(self) -> bool:
        """Whether two of them touch one element of the first output, one of them writing: by every element."""
        writers = np.zeros((ROWS, COLUMNS), int)
        touched: dict[tuple[int, ...], Any] = {}
        wrote: dict[tuple[int, ...], Any] = {}
        for ids in product(*map(range, self.grid)):
            touched[ids], wrote[ids] = np.zeros_like(writers, bool), np.zeros_like(writers, bool)
            for k, one in product(range(self.turns), self.effects):
                if one.only in (-1, ids[2]):
                    (r, m), (c, n) = one.at((*ids, k))
                    touched[ids][r : r + m, c : c + n] = True
                    wrote[ids][r : r + m, c : c + n] |= one.writes
        return any((wrote[a] & touched[b]).any() for a in wrote for b in touched if a != b)

    def said(self) -> list[Finding]:
        """What is said of the first output."""
        found = lp.kernels(self.kernel(), jax.ShapeDtypeStruct((ROWS, COLUMNS), jnp.float32)).findings
        return [f for f in found if f.question == "body_races" and f.subject == "outputs[0]"]


def drawn(random: Random) -> Threads:
    """Some tiles of all threads, with a distance that may be too short."""
    grid = random.choice((1, 2, 4)), random.choice((1, 2)), random.choice((1, 2))
    turns = random.choice((1, 2))
    rows = random.choice((2, 4, 8))
    columns = random.choice((8, 16, 32))
    short = random.choice((0, 0, 0, 1))
    apart = random.choice(
        (
            ((rows, rows, 0, 0, 0, 0), (columns, 0, columns * grid[2] * turns, columns * turns, columns, 0)),
            ((rows, rows * grid[2], 0, rows - short, 0, 0), (columns, 0, columns * turns, 0, columns - short, 0)),
            ((rows, rows * grid[1], rows, 0, 0, 0), (columns, 0, 0, columns * turns - short, columns, 0)),
            ((rows, rows - short, 0, 0, 0, 0), (columns, 0, columns, columns * grid[1], columns * 4, 0)),
        )
    )
    half = columns // 2
    first, second = (apart[0], (half, *apart[1][1:])), (apart[0], (half, *apart[1][1:-1], half))
    effects = [Placed(*first, writes=True), Placed(*second, writes=True)]
    if random.random() < 0.4:
        effects.append(Placed(*first, writes=False))
    if random.random() < 0.2:
        effects.append(Placed((1, 0, 0, 0, 0, ROWS - 1), (8, 0, 0, 0, 0, 0), writes=True, only=0))
    return Threads(grid, turns, tuple(effects))


def inside(threads: Threads) -> bool:
    """Whether all lies in the array."""
    last = *(n - 1 for n in threads.grid), threads.turns - 1
    ends = [[start + many for start, many in one.at(last)] for one in threads.effects]
    return all(r <= ROWS and c <= COLUMNS for r, c in ends)


def test_random_threads_meet_where_an_element_says_so() -> None:
    """Proved are just those that keep apart; the others are refuted, or unknown among threads that may wait."""
    random, seen = Random(20261129), Counter[tuple[bool, str]]()
    while seen.total() < 60:
        threads = drawn(random)
        if not inside(threads):
            continue
        found = threads.said()
        if not found:
            # one thread alone
            continue
        worst = min(f.verdict for f in found)
        meets = threads.meet()
        assert (worst is Verdict.PROVED) is not meets, (threads, [f.reason for f in found])
        seen[meets, found[0].decided_by] += 1
    walked = seen[False, "walk"]
    assert walked > 15
    assert sum(many for (meets, _), many in seen.items() if meets) > 10, seen


def test_pairs_of_effects_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of threads that are not run, in more findings."""
    rows, columns = (8, 8, 0, 0, 0, 0), (16, 0, 0, 64, 0, 0)
    effects = Placed(rows, columns, writes=True), Placed(rows, (*columns[:-1], 16), writes=True)
    threads = Threads((4, 1, 2), 1, effects)
    walked = threads.said()
    monkeypatch.setattr(body_races, "FEW_TOUCHES", 1 << 30)
    paired = threads.said()
    assert [f.decided_by for f in walked] == ["walk"]
    assert len(paired) > 1
    assert {f.verdict for f in (*walked, *paired)} == {Verdict.PROVED}


def test_the_fault_that_is_planted_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were every array called apart, two programs that write one element would be proved."""
    effects = (Placed((8, 7, 0, 0, 0, 0), (16, 0, 0, 0, 0, 0), writes=True),) * 2
    threads = Threads((4, 1, 1), 1, effects)
    assert threads.meet()
    assert Verdict.REFUTED in {f.verdict for f in threads.said()}
    monkeypatch.setattr(body_races, "kept_apart", lambda kernel, names: frozenset(names))
    assert {f.verdict for f in threads.said()} == {Verdict.PROVED}
