"""Schedules that a body fills into scalar memory: which tiles of rows each group has, group after group."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof as lp

pytestmark = pytest.mark.slow

GROUPS, ROWS, ALIGN, TILE = 3, 12, 2, 4
SIZES = jax.ShapeDtypeStruct((GROUPS,), jnp.int32)
SPACE = GROUPS + -(-ROWS // TILE) - 1
"""Tiles that groups of so many rows have together at most."""

Tiles = Callable[[Any, Any], Any]
"""(rows of a group, where it starts) -> how many tiles it has."""


def touched(align: int = ALIGN, tile: int = TILE) -> Tiles:
    """Tiles that begin at multiples of `align`."""
    return lambda x, s: (x + s % align + tile - 1) // tile


WAYS: dict[str, tuple[Tiles, int]] = {
    "as many as there are": (touched(), SPACE),
    "one less": (touched(), SPACE - 1),
    "groups without rows have none": (lambda x, s: jnp.where(x > 0, touched()(x, s), 0), SPACE),
    "some groups have none": (lambda x, s: jnp.where(s > 2, touched()(x, s), 0), SPACE),
    "pl.cdiv": (lambda x, s: pl.cdiv(x + s % ALIGN, TILE), SPACE),
    "tiles that are no multiple of what they begin at": (touched(4, 6), GROUPS + 1),
    "the same with room": (touched(4, 6), 3 * GROUPS),
    "one more of each": (lambda x, s: touched()(x, s) + 1, SPACE),
    "rows that are counted twice": (lambda x, s: touched()(2 * x, s), SPACE),
    "from the end of the group": (lambda x, s: touched()(x, s + x), SPACE),
    "to the next tile": (lambda x, s: (x + s % ALIGN) // TILE + 1, SPACE),
}
LOST = {"the same with room", "from the end of the group"}
"""What is right and not shown."""


def schedule(
    tiles: Tiles, space: int, first: int = 0, behind: bool = False, interpret: Any = False
) -> Callable[[jax.Array], jax.Array]:
    """A kernel that fills a schedule of `space` tiles.

    first: the row where the first group starts.  behind: whether what comes after the last tile is read.
    """

    def called(sizes: jax.Array) -> jax.Array:
        def body(t_ref: Any, o_ref: Any, groups: Any) -> None:
            def group(g: Any, at: tuple[Any, Any]) -> tuple[Any, Any]:
                many, start = at
                after = many + tiles(t_ref[g], start)

                def tile(k: Any, none: Any) -> Any:
                    groups[k] = g
                    return none

                jax.lax.fori_loop(many, after, tile, 0)
                return after, start + t_ref[g]

            many, _ = jax.lax.fori_loop(0, GROUPS, group, (jnp.int32(0), jnp.int32(first)))
            o_ref[...] = jnp.zeros_like(o_ref) + (groups[many] if behind else 0)

        return pl.pallas_call(
            body,
            grid_spec=pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=1,
                grid=(),
                out_specs=pl.BlockSpec((8, 128), lambda t: (0, 0)),
                scratch_shapes=[pltpu.SMEM((space,), jnp.int32)],
            ),
            out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
            interpret=interpret,
        )(sizes)

    return called


def tables(rows: int = ROWS) -> Iterator[tuple[int, ...]]:
    """All sizes of groups that together have so many rows at most."""
    return (sizes for sizes in product(range(rows + 1), repeat=GROUPS) if sum(sizes) <= rows)


def most(tiles: Tiles, first: int = 0) -> int:
    """The tiles of the groups that have most."""
    found = 0
    for sizes in tables():
        many, start = 0, first
        for x in sizes:
            many += int(tiles(np.int32(x), np.int32(start)))
            start += x
        found = max(found, many)
    return found


def code(kernel: Any, total: int = ROWS) -> int:
    given = [f"prefetch0 is group_sizes(total={total})"]
    return lp.kernels(kernel, SIZES, assume=given, properties=["body_in_bounds"]).exit_code


@pytest.mark.parametrize("name", WAYS)
def test_tiles_of_rows_are_as_few_as_their_rows_need(name: str) -> None:
    """Proved is what holds of all tables, tried one by one."""
    tiles, space = WAYS[name]
    holds = most(tiles) <= space
    proved = code(schedule(tiles, space)) == 0
    assert holds if proved else (name in LOST or not holds)


def test_a_first_group_that_starts_later_has_more_tiles() -> None:
    for first in (0, 1, 4, 5):
        space = most(touched(), first)
        assert code(schedule(touched(), space - 1, first)) == 3
        # what is shown is as large as if all rows before were some group's
        assert code(schedule(touched(), GROUPS + max(ROWS + first - 1, 0) // TILE, first)) == 0


def test_what_comes_after_the_last_tile_needs_one_place_more() -> None:
    assert code(schedule(touched(), SPACE + 1, behind=True)) == 0
    assert code(schedule(touched(), SPACE, behind=True)) == 3


def test_one_row_more_needs_another_tile() -> None:
    assert code(schedule(touched(), SPACE), ROWS + 1) == 3
    assert code(schedule(touched(), SPACE + 1), ROWS + 1) == 0


def test_the_schedule_that_is_too_short_is_overrun_in_jax() -> None:
    worst = next(t for t in tables() if sum(t) == ROWS and t[0] == t[1] + 4 == 5)
    run = pltpu.InterpretParams(out_of_bounds_reads="raise")
    schedule(touched(), SPACE, interpret=run)(jnp.asarray(worst, jnp.int32))
    with pytest.raises(Exception, match="Out-of-bounds"):
        jax.block_until_ready(schedule(touched(), SPACE - 1, interpret=run)(jnp.asarray(worst, jnp.int32)))


def test_what_a_loop_adds_up_is_offered_as_sizes_of_groups() -> None:
    """The rows that they have together are those of an array."""

    def called(sizes: jax.Array, x: jax.Array) -> jax.Array:
        def body(t_ref: Any, x_ref: Any, o_ref: Any, rows: Any, sem: Any) -> None:
            start = jax.lax.fori_loop(0, GROUPS - 1, lambda g, s: s + t_ref[g], jnp.int32(0))
            many = t_ref[GROUPS - 1]
            copy = pltpu.make_async_copy(x_ref.at[pl.ds(start, many)], rows.at[pl.ds(0, many)], sem)
            copy.start()
            copy.wait()
            o_ref[...] = jnp.zeros_like(o_ref)

        return pl.pallas_call(
            body,
            grid_spec=pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=1,
                grid=(),
                in_specs=[pl.BlockSpec(memory_space=pltpu.HBM)],
                out_specs=pl.BlockSpec((8, 128), lambda t: (0, 0)),
                scratch_shapes=[pltpu.VMEM((ROWS, 128), jnp.float32), pltpu.SemaphoreType.DMA],
            ),
            out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        )(sizes, x)

    x = jax.ShapeDtypeStruct((ROWS, 128), jnp.float32)
    open_ = lp.kernels(called, SIZES, x, properties=["body_in_bounds"])
    assert open_.exit_code == 3
    advised = f"prefetch0 is group_sizes(total={ROWS})"
    assert advised in str(open_)
    assert lp.kernels(called, SIZES, x, properties=["body_in_bounds"], assume=[advised]).exit_code == 0
    assert code_of_one_more(called, x) == 3


def code_of_one_more(called: Any, x: Any) -> int:
    given = [f"prefetch0 is group_sizes(total={ROWS + 1})"]
    return lp.kernels(called, SIZES, x, properties=["body_in_bounds"], assume=given).exit_code
