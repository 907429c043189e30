"""Kernels of Triton, each right and with one error, by which question speaks of the error.

Each error is one by the numbers: `why` has them. JAX's interpreter runs both (`tests/pallas/test_triton.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

F, N = jnp.float32, jnp.int32


@dataclass(frozen=True)
class TritonPair:
    """make: the function, right without arguments.  wrong: the arguments that make it wrong.  why: by the numbers.

    element: of the counterexample, None = none is told.  same: the numbers that the right one gives.  hidden: whether
    JAX's interpreter gives the wrong one the right numbers.
    """

    make: Callable[..., Callable[..., Any]]
    args: tuple[Any, ...]
    wrong: dict[str, Any]
    question: str
    why: str
    element: tuple[int, ...] | None
    same: Callable[..., Any]
    hidden: bool = False


def call(body: Callable[..., None], out: Any, grid: tuple[int, ...] = (), **options: Any) -> Any:
    return pl.pallas_call(body, out_shape=out, grid=grid, compiler_params=plgpu.CompilerParams(), **options)


def array(*shape: int, dtype: Any = F) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def add_one(masked: bool = True, past: int = 0, grid: int = 8, stored: bool = True) -> Any:
    """x + 1 of f32[1000], 128 in each of 8 programs, of whole arrays."""

    def body(x: Any, o: Any) -> None:
        at = pl.program_id(0) * 128 + jnp.arange(128)
        mask = at < 1000 + past if masked else None
        found = plgpu.load(x.at[at], mask=at < 1000)
        plgpu.store(o.at[at], found + 1, mask=mask if stored else at < 872)

    return call(body, array(1000), (grid,))


def blocks(load: bool = True, store: bool = True) -> Any:
    """x + 1 of f32[1000] in blocks of 128, of which the last one has 104 elements."""
    spec = pl.BlockSpec((128,), lambda i: (i,))

    def body(x: Any, o: Any) -> None:
        mask = pl.program_id(0) * 128 + jnp.arange(128) < 1000
        found = plgpu.load(x, mask=mask) if load else x[...]
        plgpu.store(o, found + 1, mask=mask if store else None)

    return call(body, array(1000), (8,), in_specs=[spec], out_specs=spec)


def copied_blocks(step: int = 64) -> Any:
    """2 x of f32[512], 64 in each of 8 programs."""

    def body(x: Any, o: Any) -> None:
        at = pl.ds(pl.program_id(0) * 64, 64)
        o[pl.ds(pl.program_id(0) * step, 64)] = x[at] * 2

    return call(body, array(512), (8,))


def total(atomic: bool = True, kept: bool = True) -> Any:
    """The sums of the columns of f32[512,64] by 8 programs, added to zeros."""

    def body(x: Any, start: Any, o: Any) -> None:
        del start
        mine = jnp.sum(x[pl.ds(pl.program_id(0) * 64, 64), :], axis=0)
        if atomic:
            plgpu.atomic_add(o, (slice(None),), mine)
        else:
            o[...] = o[...] + mine

    made = call(body, array(64), (8,), input_output_aliases={1: 0} if kept else {})
    return lambda x: made(x, jnp.zeros((64,), F))


def row_max(other: bool = True, most: int = 1000) -> Any:
    """The greatest of each row of f32[16,1000], one row in each of 16 programs."""

    def body(x: Any, o: Any) -> None:
        row, at = pl.program_id(0), jnp.arange(1024)
        found = plgpu.load(x.at[row, at], mask=at < most, other=-jnp.inf if other else None)
        o[row] = jnp.max(found)

    return call(body, array(16), (16,))


def row_sum(other: bool = True) -> Any:
    """The sums of the rows of f32[16,1000] in blocks of 1 x 1024, each one block."""

    def body(x: Any, o: Any) -> None:
        at = jnp.arange(1024)
        found = plgpu.load(x, mask=at < 1000, other=0.0 if other else None)
        o[...] = jnp.sum(found)

    specs = {
        "in_specs": [pl.BlockSpec((None, 1024), lambda i: (i, 0))],
        "out_specs": pl.BlockSpec((None,), lambda i: (i,)),
    }
    return call(body, array(16), (16,), **specs)


def in_steps(turns: int = 8) -> Any:
    """The sums of the rows of f32[64,512], 8 rows in each of 8 programs, 64 columns at a time."""

    def body(x: Any, o: Any) -> None:
        rows = pl.ds(pl.program_id(0) * 8, 8)
        step = lambda k, acc: acc + jnp.sum(x[rows, pl.ds(k * 64, 64)], axis=1)  # noqa: E731
        o[rows] = lax.fori_loop(0, turns, step, jnp.zeros((8,), F))

    return call(body, array(64), (8,))


def matmul(turns: int = 4, grid: tuple[int, int] = (4, 2)) -> Any:
    """f32[256,128] @ f32[128,128] in tiles of 64 x 64 x 32."""

    def body(x: Any, y: Any, o: Any) -> None:
        i, j = pl.program_id(0), pl.program_id(1)
        rows, columns = pl.ds(i * 64, 64), pl.ds(j * 64, 64)

        def step(k: Any, acc: Any) -> Any:
            deep = pl.ds(k * 32, 32)
            return acc + plgpu.dot(x[rows, deep], y[deep, columns])

        o[rows, columns] = lax.fori_loop(0, turns, step, jnp.zeros((64, 64), F))

    return call(body, array(256, 128), grid)


def matrix(rows_masked: bool = True) -> Any:
    """x + y of f32[100,60] in blocks of 32 x 64, of which the last ones are partial, by places in both dimensions."""

    def body(x: Any, y: Any, o: Any) -> None:
        row = pl.program_id(0) * 32 + jnp.arange(32)[:, None]
        column = jnp.arange(64)[None, :]
        inside = (column < 60) & (row < 100) if rows_masked else jnp.broadcast_to(column < 60, (32, 64))
        found = plgpu.load(x.at[row, column], mask=inside) + plgpu.load(y.at[row, column], mask=inside)
        plgpu.store(o.at[row, column], found, mask=inside)

    return call(body, array(100, 60), (4,))


def gathered(whole: bool = True) -> Any:
    """x[511 - i] of f32[512]."""

    def body(x: Any, o: Any) -> None:
        at = pl.program_id(0) * 64 + jnp.arange(64)
        o[pl.ds(pl.program_id(0) * 64, 64)] = plgpu.load(x.at[(511 if whole else 510) - at])

    return call(body, array(512), (8,))


def scattered(by: int = 1) -> Any:
    """x of s32[64] with every two elements exchanged, by one program."""

    def body(x: Any, o: Any) -> None:
        at = jnp.arange(64)
        to = at ^ 1 if by == 1 else at // 2
        plgpu.store(o.at[to], x[...])

    return call(body, array(64, dtype=N), (1,))


def counted(step: int = 4) -> Any:
    """How many of s32[512] are in each of 4 parts of 0 .. 15, counted by 8 programs at once."""

    def body(x: Any, start: Any, o: Any) -> None:
        del start
        found = x[pl.ds(pl.program_id(0) * 64, 64)]
        kind = jnp.clip(found, 0, 15) // step
        plgpu.atomic_add(o, (kind,), jnp.ones((64,), F))

    made = call(body, array(4), (8,), input_output_aliases={1: 0})
    return lambda x: made(x, jnp.zeros((4,), F))


def greatest(plain: bool = False) -> Any:
    """The greatest of f32[512], of which 8 programs have 64 each."""

    def body(x: Any, start: Any, o: Any) -> None:
        del start
        mine = jnp.max(x[pl.ds(pl.program_id(0) * 64, 64)])[None]
        if plain:
            o[...] = mine
        else:
            plgpu.atomic_max(o, (slice(None),), mine)

    made = call(body, array(1), (8,), input_output_aliases={1: 0})
    return lambda x: made(x, jnp.full((1,), -jnp.inf, F))


def halves(apart: bool = True, barrier: bool = False) -> Any:
    """Each 64 of f32[512], of which a half is stored before the other one is loaded, in place."""

    def body(x: Any, o: Any) -> None:
        first = pl.program_id(0) * 64
        o[pl.ds(first, 32)] = x[pl.ds(first, 32)] + 1
        if barrier:
            plgpu.debug_barrier()
        o[pl.ds(first + 32, 32)] = x[pl.ds(first + (32 if apart else 0), 32)] + 1

    return call(body, array(512), (8,), input_output_aliases={0: 0})


def tickets(used: bool = True) -> Any:
    """A number for each of 8 programs, in the order in which they come."""

    def body(start: Any, o: Any, n: Any) -> None:
        del start
        i = pl.program_id(0)
        mine = plgpu.atomic_add(n, (i * 0,), jnp.int32(1))
        o[i] = mine if used else i

    out = (array(8, dtype=N), array(1, dtype=N))
    made = call(body, out, (8,), input_output_aliases={0: 1})
    return lambda: made(jnp.zeros((1,), N))


def guarded(last: int = 7) -> Any:
    """2 x of f32[512], 64 in each of 8 programs, but for those that are above `last`."""

    def body(x: Any, o: Any) -> None:
        at = pl.ds(pl.program_id(0) * 64, 64)

        @pl.when(pl.program_id(0) <= last)
        def _() -> None:
            o[at] = x[at] * 2

    return call(body, array(512), (8,))


LONG, ROWS = (array(1000),), (array(16, 1000),)
ADDED, DOUBLED = (lambda x: x + 1), (lambda x: 2 * x)
PAIRS: dict[str, TritonPair] = {
    "mask_missing": TritonPair(
        add_one, LONG, {"masked": False}, "body_in_bounds", "program 7 stores 896 to 1023 of 1000", (1000,), ADDED, True
    ),
    "mask_off_by_one": TritonPair(
        add_one, LONG, {"past": 1}, "body_in_bounds", "program 7 stores element 1000 of 1000", (1000,), ADDED, True
    ),
    "grid_too_small": TritonPair(
        add_one, LONG, {"grid": 7}, "outputs_stored", "7 programs store 896 elements of 1000", (896,), ADDED
    ),
    "rows_never_stored": TritonPair(
        add_one, LONG, {"stored": False}, "outputs_stored", "a mask stops at 872 of 1000", (872,), ADDED
    ),
    "partial_block_loaded": TritonPair(
        blocks, LONG, {"load": False}, "body_in_bounds", "block 7 goes on to 1024 of 1000", (1000,), ADDED, True
    ),
    "partial_block_stored": TritonPair(
        blocks, LONG, {"store": False}, "body_in_bounds", "block 7 goes on to 1024 of 1000", (1000,), ADDED, True
    ),
    "stores_overlap": TritonPair(
        copied_blocks, (array(512),), {"step": 63}, "body_races", "programs 0 and 1 store element 63", (63,), DOUBLED
    ),
    "store_for_atomic_add": TritonPair(
        total,
        (array(512, 64),),
        {"atomic": False},
        "body_races",
        "8 programs store one sum",
        (0,),
        lambda x: jnp.sum(x, axis=0),
        True,
    ),
    "nothing_to_add_to": TritonPair(
        total,
        (array(512, 64),),
        {"kept": False},
        "initialised",
        "an output is added to that nothing filled",
        (0,),
        lambda x: jnp.sum(x, axis=0),
    ),
    "other_missing_in_max": TritonPair(
        row_max,
        ROWS,
        {"other": False},
        "undefined_values",
        "24 elements hold anything",
        (0,),
        lambda x: jnp.max(x, axis=1),
        True,
    ),
    "max_past_the_row": TritonPair(
        row_max,
        ROWS,
        {"most": 1001},
        "body_in_bounds",
        "1000 is the next row",
        (0, 1000),
        lambda x: jnp.max(x, axis=1),
        True,
    ),
    "other_missing_in_sum": TritonPair(
        row_sum,
        ROWS,
        {"other": False},
        "undefined_values",
        "24 elements hold anything",
        (0,),
        lambda x: jnp.sum(x, axis=1),
    ),
    "loop_too_long": TritonPair(
        in_steps,
        (array(64, 512),),
        {"turns": 9},
        "body_in_bounds",
        "a ninth part, of 8",
        (0, 512),
        lambda x: jnp.sum(x, axis=1),
    ),
    "deep_loop_too_long": TritonPair(
        matmul,
        (array(256, 128), array(128, 128)),
        {"turns": 5},
        "body_in_bounds",
        "a fifth part, of 4",
        (0, 128),
        lambda x, y: x @ y,
    ),
    "columns_never_stored": TritonPair(
        matmul,
        (array(256, 128), array(128, 128)),
        {"grid": (4, 1)},
        "outputs_stored",
        "64 of 128 columns",
        (0, 64),
        lambda x, y: x @ y,
    ),
    "rows_not_masked": TritonPair(
        matrix,
        (array(100, 60),) * 2,
        {"rows_masked": False},
        "body_in_bounds",
        "rows 100 to 127 of 100",
        (100, 0),
        lambda x, y: x + y,
        True,
    ),
    "index_below_zero": TritonPair(
        gathered, (array(512),), {"whole": False}, "body_in_bounds", "510 - 511 is -1", (-1,), lambda x: x[::-1]
    ),
    "two_at_one_place": TritonPair(
        scattered,
        (array(64, dtype=N),),
        {"by": 2},
        "body_races",
        "0 and 1 are stored at 0",
        (0,),
        lambda x: x.reshape(32, 2)[:, ::-1].reshape(64),
    ),
    "store_for_atomic_max": TritonPair(
        greatest,
        (array(512),),
        {"plain": True},
        "body_races",
        "8 programs store one number",
        (0,),
        lambda x: jnp.max(x)[None],
        True,
    ),
    "guarded_away": TritonPair(
        guarded, (array(512),), {"last": 6}, "outputs_stored", "program 7 stores nothing", (448,), DOUBLED
    ),
}
"""By what is wrong."""
