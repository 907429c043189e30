"""Numbers that programs carry on in scratch: right and wrong kernels, held against literal runs."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof as lp
from layoutproof.bodies.carried_on import own_entry
from layoutproof.core.folding import TRUE, linear
from layoutproof.core.numbers import INTS
from layoutproof.core.result import Verdict
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Kernel

pytestmark = pytest.mark.slow

ROWS, GROUPS = 64, 8
SIZES = jax.ShapeDtypeStruct((GROUPS,), jnp.int32)
X = jax.ShapeDtypeStruct((ROWS, 128), jnp.float32)
SUM = f"prefetch0 is group_sizes(total={ROWS - 8})"

Step = Callable[[Any, Any, Any], None]
"""What a program does to scratch: (the table, the scratch, its id)."""


def reading(step: Step, grid: tuple[int, ...] = (GROUPS,), parallel: bool = False) -> Any:
    """Each program reads 8 rows from where its scratch says, and then changes that."""

    def called(t: jax.Array, x: jax.Array) -> jax.Array:
        def body(t_ref: Any, x_ref: Any, o_ref: Any, s_ref: Any) -> None:
            i = pl.program_id(len(grid) - 1)

            @pl.when(i == 0)
            def _() -> None:
                s_ref[0] = 0

            o_ref[...] = x_ref[pl.ds(s_ref[0], 8), :]
            step(t_ref, s_ref, i)

        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=grid,
            in_specs=[pl.BlockSpec((ROWS, 128), lambda *ids: (0, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda *ids: (ids[len(grid) - 1], 0)),
            scratch_shapes=[pltpu.SMEM((1,), jnp.int32)],
        )
        semantics = ("parallel" if parallel else "arbitrary",) * len(grid)
        params = pltpu.CompilerParams(dimension_semantics=semantics)
        return pl.pallas_call(body, grid_spec=spec, out_shape=X, compiler_params=params)(t, x)

    return called


def adding(entry: Callable[[Any, Any], Any]) -> Step:
    """Adds to what is there."""

    def step(t: Any, s: Any, i: Any) -> None:
        s[0] = s[0] + entry(t, i)

    return step


def storing(entry: Callable[[Any, Any, Any], Any]) -> Step:
    """Stores something in place of what is there."""

    def step(t: Any, s: Any, i: Any) -> None:
        s[0] = entry(t, s, i)

    return step


def twice(t: Any, s: Any, i: Any) -> None:
    """Adds the same entry two times."""
    s[0] = s[0] + t[i]
    s[0] = s[0] + t[i]


def sometimes(t: Any, s: Any, i: Any) -> None:
    """Adds in some programs alone."""

    @pl.when(i % 2 == 0)
    def _() -> None:
        s[0] = s[0] + t[i]


def in_a_loop(t: Any, s: Any, i: Any) -> None:
    """Adds an entry as often as a loop runs."""

    def turn(_: Any, none: int) -> int:
        s[0] = s[0] + t[i]
        return none

    jax.lax.fori_loop(0, 2, turn, 0)


RANGE = "0 <= prefetch0 < 57"
CASES: dict[str, tuple[Step, str, bool]] = {
    "the groups before": (adding(lambda t, i: t[i]), SUM, True),
    "in reverse": (adding(lambda t, i: t[GROUPS - 1 - i]), SUM, True),
    "some of the groups before": (sometimes, SUM, True),
    "tiles of them": (adding(lambda t, i: (t[i] + 7) // 8), SUM, True),
    "the first group again and again": (adding(lambda t, i: t[0]), SUM, False),
    "each pair's first": (adding(lambda t, i: t[i // 2]), SUM, False),
    "twice each group": (adding(lambda t, i: 2 * t[i]), SUM, False),
    "twice": (twice, SUM, False),
    "in a loop": (in_a_loop, SUM, False),
    "one row more each time": (adding(lambda t, i: t[i] + 1), SUM, False),
    "groups without a sum": (adding(lambda t, i: t[i]), RANGE, False),
    "seven rows each": (adding(lambda t, i: 7), RANGE, True),
    "nine rows each": (adding(lambda t, i: 9), RANGE, False),
    "the entry of the program before": (storing(lambda t, s, i: t[i]), RANGE, True),
    "an entry that may be larger": (storing(lambda t, s, i: t[i] + 1), RANGE, False),
    "the rest of an entry": (storing(lambda t, s, i: (t[i] + 5) % 57), RANGE, True),
    "the rest by more": (storing(lambda t, s, i: (t[i] + 5) % 58), RANGE, False),
    "the smaller of two": (storing(lambda t, s, i: jnp.minimum(t[i] * 2, 56)), RANGE, True),
    "the larger of two": (storing(lambda t, s, i: jnp.maximum(t[i], 57)), RANGE, False),
    "an entry or what was there": (storing(lambda t, s, i: jnp.where(t[i] > 3, t[i], s[0])), RANGE, True),
    "an entry or one more": (storing(lambda t, s, i: jnp.where(t[i] > 3, t[i], s[0] + 1)), RANGE, False),
    "eighths of a place": (storing(lambda t, s, i: (i * 8 + t[i] // 8) // 2), RANGE, True),
}


def verdict(function: Any, *assume: str) -> Verdict:
    """Of the question whether all that the body reads is there."""
    found = lp.kernels(function, SIZES, X, assume=assume, properties=["body_in_bounds"]).findings
    return min(f.verdict for f in found)


@pytest.mark.parametrize("name", CASES)
def test_where_rows_are_read_is_known_of_what_programs_before_stored(name: str) -> None:
    step, assume, right = CASES[name]
    found = verdict(reading(step), assume)
    assert (found is Verdict.PROVED) is right, found


def test_one_row_more_in_all_and_the_last_ones_are_behind_the_end() -> None:
    step, _, _ = CASES["the groups before"]
    assert verdict(reading(step), f"prefetch0 is group_sizes(total={ROWS - 7})") is not Verdict.PROVED


@pytest.mark.parametrize(
    ("grid", "parallel", "right"),
    [((3, GROUPS), False, True), ((GROUPS + 1,), False, False), ((GROUPS,), True, False)],
    ids=["each row of programs begins anew", "more programs than entries", "some cores begin later"],
)
def test_a_run_of_programs_has_each_entry_once(grid: tuple[int, ...], parallel: bool, right: bool) -> None:
    step, assume, _ = CASES["the groups before"]
    assert (verdict(reading(step, grid, parallel), assume) is Verdict.PROVED) is right


def _tables(assume: str, chance: random.Random) -> list[int]:
    """Entries that are as assumed; all that there are to hand out go to one of them now and then."""
    if chance.random() < 0.5:
        one = chance.randrange(GROUPS)
        return [56 if k == one or assume == RANGE else 0 for k in range(GROUPS)]
    if assume == RANGE:
        return [chance.choice((0, 56, chance.randrange(57))) for _ in range(GROUPS)]
    cuts = sorted(chance.choice((0, ROWS - 8, chance.randrange(ROWS - 7))) for _ in range(GROUPS))
    return [b - a for a, b in itertools.pairwise([0, *cuts])]


@pytest.mark.parametrize("name", [name for name, (step, *_) in CASES.items() if step is not in_a_loop])
def test_which_kernels_are_right_is_so_of_literal_runs(name: str) -> None:
    step, assume, right = CASES[name]
    chance, most = random.Random(name), 0
    for _ in range(60):
        held, table = [0], _tables(assume, chance)
        for i in range(GROUPS):
            most = max(most, int(held[0]))
            step(table, held, i)
    assert (most <= ROWS - 8) is right


def test_what_is_said_of_entries_of_their_own_is_so_of_every_program() -> None:
    chance, said = random.Random(7), set[str]()
    for _ in range(400):
        grid = tuple(chance.choice((1, 2, 3)) for _ in range(chance.choice((1, 2, 3))))
        names = tuple(f"g{k}" for k in range(len(grid)))
        kernel = Kernel("k", grid, names, ())
        varies = tuple(range(chance.randrange(len(grid) + 1), len(grid)))
        steps, first, entries = [chance.choice((0, 1, 1, 2, 3, -1)) for _ in grid], chance.choice((0, 0, 1, 4)), 6
        at = linear([(step, Term("name", name)) for step, name in zip(steps, names, strict=True)], first)
        inside = own_entry(kernel, at, varies, entries)
        said.add("none" if inside is None else "always" if inside is TRUE else "where")
        runs: dict[tuple[int, ...], list[int]] = {}
        for program in itertools.product(*map(range, grid)):
            ids = dict(zip(names, program, strict=True))
            run = runs.setdefault(program[: len(grid) - len(varies)], [])
            run.append(int(at.evaluate(ids, INTS)))
            if inside is not None and inside.evaluate(ids, INTS):
                assert len(set(run)) == len(run)
                assert all(0 <= place < entries for place in run)
    assert said == {"none", "always", "where"}


@pytest.mark.parametrize(("turns", "right"), [(1, True), (2, False)])
def test_what_a_later_turn_loads_has_the_summand_in_it(turns: int, right: bool) -> None:
    def called(t: jax.Array, x: jax.Array) -> jax.Array:
        def body(t_ref: Any, x_ref: Any, o_ref: Any, s_ref: Any) -> None:
            i = pl.program_id(0)

            @pl.when(i == 0)
            def _() -> None:
                s_ref[0] = 0

            first = s_ref[0]

            def turn(_: Any, none: int) -> int:
                o_ref[...] = x_ref[pl.ds(s_ref[0] + t_ref[i], 8), :]
                s_ref[0] = first + t_ref[i]
                return none

            if turns == 1:
                turn(0, 0)
            else:
                jax.lax.fori_loop(0, turns, turn, 0)

        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(GROUPS,),
            in_specs=[pl.BlockSpec((ROWS, 128), lambda *ids: (0, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda *ids: (ids[0], 0)),
            scratch_shapes=[pltpu.SMEM((1,), jnp.int32)],
        )
        return pl.pallas_call(body, grid_spec=spec, out_shape=X)(t, x)

    assert (verdict(called, SUM) is Verdict.PROVED) is right
