"""Every fix that is told, applied as code: all is proved then, and numbers are right, or the fix says to check them.

What nobody could try is no fix, but a hint where to look.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof
from layoutproof.core.finding import Finding
from layoutproof.core.message import Template
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge
from layoutproof.pallas.repairs import CHECK
from tests.said import Said, says

pytestmark = pytest.mark.slow

F32 = jnp.float32
ROWS = ((8, 128), lambda i: (i, 0))
FIRST = ((8, 128), lambda i: (0, 0))
ANY = pl.BlockSpec(memory_space=pl.ANY)
Function = Callable[..., Any]


def data(*shape: int) -> Any:
    """Numbers of which sums are exact."""
    rng = np.random.default_rng(0)
    return rng.integers(1, 9, shape).astype(np.float32)


def call(
    body: Any,
    grid: Sequence[int],
    given: Sequence[Any],
    out: Any,
    shape: tuple[int, ...],
    scratch: Sequence[Any] = (),
    semantics: Sequence[str] = (),
    tables: int = 0,
    limit: int | None = None,
) -> Function:
    """A function of arrays, and of how it is interpreted."""

    def spec(block: Any) -> Any:
        return block if isinstance(block, pl.BlockSpec) else pl.BlockSpec(*block)

    def function(*arguments: Any, interpret: Any = False) -> Any:
        grid_spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=tables,
            grid=tuple(grid),
            in_specs=[spec(block) for block in given],
            out_specs=spec(out),
            scratch_shapes=list(scratch),
        )
        params = pltpu.CompilerParams(dimension_semantics=tuple(semantics) or None, vmem_limit_bytes=limit)
        made = jax.ShapeDtypeStruct(shape, F32)
        return pl.pallas_call(body, grid_spec=grid_spec, out_shape=made, compiler_params=params, interpret=interpret)(
            *arguments
        )

    return function


def copy(x: Any, o: Any) -> None:
    o[...] = x[...]


@dataclass(frozen=True, eq=False)
class Repair:
    """What a fix says, and what it makes of the code.

    question, fix: the question that is refuted, and what is part of its fix.  make: (whether the fix is applied) -> the
    function.  arguments, want: of a run.  right: whether the numbers are right then.
    """

    name: str
    question: str
    fix: Said | str
    make: Callable[[bool], Function]
    arguments: tuple[Any, ...]
    want: Any
    right: bool = True
    assume: tuple[str, ...] = ()
    target: str | None = None


X = data(32, 128)
RAGGED = data(30, 128)
WIDE = data(8, 200)


def _offset(fixed: bool) -> Function:
    return call(copy, (4,), [((8, 128), lambda i: (i if fixed else i * 8, 0))], ROWS, (32, 128))


def _grid(fixed: bool) -> Function:
    return call(copy, (4 if fixed else 5,), [ROWS], ROWS, (32, 128))


def _output_behind(fixed: bool) -> Function:
    return call(copy, (4,), [ROWS], ((8, 128), lambda i: (i if fixed else i + 1, 0)), (30, 128))


def _input_before(fixed: bool) -> Function:
    return call(copy, (4,), [((8, 128), lambda i: (i if fixed else i - 1, 0))], ROWS, (32, 128))


def _last_behind(fixed: bool) -> Function:
    def index(i: Any) -> Any:
        at = jnp.where(i == 3, i + 1, i)
        return (jnp.minimum(at, 3) if fixed else at, 0)

    return call(copy, (4,), [((8, 128), index)], ROWS, (32, 128))


def _neighbour(fixed: bool) -> Function:
    """The row block behind, which the last program has not."""

    def body(x: Any, y: Any, o: Any) -> None:
        o[...] = x[...] + jnp.where(pl.program_id(0) < 3, y[...], 0)

    def index(i: Any) -> Any:
        return (jnp.minimum(jnp.where(i < 2, i + 1, i + 1), 3) if fixed else jnp.where(i < 2, i + 1, i + 1), 0)

    return call(body, (4,), [ROWS, ((8, 128), index)], ROWS, (32, 128))


def _floored(fixed: bool) -> Function:
    return call(copy, (pl.cdiv(30, 8) if fixed else 30 // 8,), [ROWS], ROWS, (30, 128))


def _floored_sum(fixed: bool) -> Function:
    def body(x: Any, o: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            o[...] = jnp.zeros_like(o)

        value = x[...]
        if fixed:
            column = pl.program_id(0) * 64 + lax.broadcasted_iota(jnp.int32, (8, 64), 1)
            value = jnp.where(column < 200, value, 0)
        o[...] += jnp.broadcast_to(jnp.sum(value, axis=1, keepdims=True), o.shape)

    windows = [((8, 64), lambda k: (0, k))]
    return call(body, (pl.cdiv(200, 64) if fixed else 200 // 64,), windows, FIRST, (8, 128))


def _clamped_below(fixed: bool) -> Function:
    return call(copy, (4,), [((8, 128), lambda i: (jnp.minimum(i, 3 if fixed else 2), 0))], ROWS, (30, 128))


def _sum_of_blocks(fixed: bool) -> Function:
    """out[i] = the sum over k of x[i, k], with the k dimension outside."""

    def body(x: Any, o: Any) -> None:
        @pl.when(pl.program_id(1 if fixed else 0) == 0)
        def _() -> None:
            o[...] = jnp.zeros_like(o)

        o[...] += x[...]

    if fixed:
        given, out = ((8, 128), lambda i, k: (i, k)), ((8, 128), lambda i, k: (i, 0))
    else:
        given, out = ((8, 128), lambda k, i: (i, k)), ((8, 128), lambda k, i: (i, 0))
    return call(body, (2, 3) if fixed else (3, 2), [given], out, (16, 128))


def _accumulated(semantics: str, guard: Callable[[Any, Any], Any] | None, scratch: bool = False) -> Function:
    """Sums over k, in the window or in scratch; guard: of the zeros."""

    def body(x: Any, o: Any, *more: Any) -> None:
        i, k = pl.program_id(0), pl.program_id(1)
        total = more[0] if scratch else o
        if guard is not None:

            @pl.when(guard(i, k))
            def _() -> None:
                total[...] = jnp.zeros_like(total)

        total[...] += x[...]
        if scratch:

            @pl.when(k == 2)
            def _() -> None:
                o[...] = total[...]

    given, out = ((8, 128), lambda i, k: (i, k)), ((8, 128), lambda i, k: (i, 0))
    memory = [pltpu.VMEM((8, 128), F32)] if scratch else []
    return call(body, (2, 3), [given], out, (16, 128), memory, ("parallel", semantics))


BLOCKS = data(16, 384)
LESS_BEFORE = X - np.concatenate([np.zeros((8, 128), np.float32), X[:-8]])
SUMS = BLOCKS[:, :128] + BLOCKS[:, 128:256] + BLOCKS[:, 256:]


def _largest(fixed: bool) -> Function:
    """A maximum of negative numbers, which starts from zeros after the fix."""

    def body(x: Any, o: Any) -> None:
        if fixed:

            @pl.when(pl.program_id(0) == 0)
            def _() -> None:
                o[...] = jnp.zeros_like(o)

        o[...] = jnp.maximum(o[...], x[...])

    return call(body, (4,), [ROWS], FIRST, (8, 128), semantics=("arbitrary",))


def _running(fixed: bool) -> Function:
    """A sum that goes on from program to program in scratch."""

    def body(x: Any, o: Any, total: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            total[...] = jnp.zeros_like(total)

        total[...] += x[...]
        o[...] = total[...]

    semantics = ("arbitrary" if fixed else "parallel",)
    return call(body, (4,), [ROWS], ROWS, (32, 128), [pltpu.VMEM((8, 128), F32)], semantics)


def _one_place(fixed: bool) -> Function:
    """All programs copy to one block of an array."""

    def body(x: Any, o: Any, buffer: Any) -> None:
        pltpu.sync_copy(x.at[pl.ds(pl.program_id(0) * 8, 8)], buffer)
        pltpu.sync_copy(buffer, o)

    semantics = ("arbitrary" if fixed else "parallel",)
    return call(body, (4,), [ANY], ANY, (8, 128), [pltpu.VMEM((8, 128), F32)], semantics)


def _reduced(reduce: Any, columns: int = 256) -> Callable[[bool], Function]:
    def make(fixed: bool) -> Function:
        def body(x: Any, o: Any) -> None:
            value = x[...]
            if fixed:
                value = jnp.where(lax.broadcasted_iota(jnp.int32, (8, columns), 1) < 200, value, 0)
            o[...] = jnp.broadcast_to(reduce(value, axis=1, keepdims=True), o.shape)

        return call(body, (1,), [((8, columns), lambda i: (0, 0))], FIRST, (8, 128))

    return make


def _masked_twice(fixed: bool) -> Function:
    """A mask that stands in the code, in the wrong order of rows: it drops what is there, whatever else is masked."""

    def body(x: Any, o: Any) -> None:
        value = x[...]
        if fixed:
            value = jnp.where(lax.broadcasted_iota(jnp.int32, (16, 128), 0) < 12, value, 0)
        value = value.reshape(2, 8, 128)
        a, b = (lax.broadcasted_iota(jnp.int32, value.shape, k) for k in (0, 1))
        o[...] = jnp.where(b * 2 + a < 12, value, 0).sum(0)

    return call(body, (1,), [((16, 128), lambda i: (0, 0))], FIRST, (8, 128))


TWELVE = data(12, 128)
FOLDED = TWELVE[:8] + np.concatenate([TWELVE[8:], np.zeros((4, 128), np.float32)])


def _halo(fixed: bool) -> Function:
    """Each row minus the one before, which the first row has not."""

    def body(x: Any, o: Any) -> None:
        value = x[...]
        if fixed:
            row = pl.program_id(0) * 8 - 8 + lax.broadcasted_iota(jnp.int32, (16, 128), 0)
            value = jnp.where(0 <= row, value, 0)  # noqa: SIM300
        o[...] = value[8:] - value[7:15]

    window = pl.BlockSpec((pl.Element(16, (8, 0)), pl.Element(128)), lambda i: (i * 8, 0))
    return call(body, (4,), [window], ROWS, (32, 128))


def _last_step(fixed: bool) -> Function:
    def body(x: Any, o: Any, total: Any) -> None:
        k = pl.program_id(0)

        @pl.when(k == 0)
        def _() -> None:
            total[...] = jnp.zeros_like(total)

        total[...] += x[...]

        @pl.when(k == (3 if fixed else 4))
        def _() -> None:
            o[...] = total[...]

    return call(body, (4,), [ROWS], FIRST, (8, 128), [pltpu.VMEM((8, 128), F32)], ("arbitrary",))


def _turns(fixed: bool) -> Function:
    def body(x: Any, o: Any) -> None:
        def turn(k: Any, total: Any) -> Any:
            return total + x[pl.ds(k * 8, 8), :]

        o[...] = lax.fori_loop(0, 4 if fixed else 5, turn, jnp.zeros((8, 128), F32))

    return call(body, (1,), [((32, 128), lambda i: (0, 0))], FIRST, (8, 128))


def _guarded_store(fixed: bool) -> Function:
    """Stores to rows of scratch, of which the last program has none, and nobody needs them."""

    def body(x: Any, o: Any, kept: Any) -> None:
        i = pl.program_id(0)

        def store() -> None:
            kept[pl.ds(i * 8, 8), :] = x[...]

        if fixed:
            pl.when(i * 8 <= 16)(store)
        else:
            store()
        o[...] = x[...]

    return call(body, (4,), [ROWS], ROWS, (32, 128), [pltpu.VMEM((24, 128), F32)], ("arbitrary",))


def _rows_behind(fixed: bool) -> Function:
    def body(x: Any, o: Any) -> None:
        o[...] = x[pl.ds(pl.program_id(0) * 8 + (0 if fixed else 8), 8), :]

    return call(body, (4,), [((32, 128), lambda i: (0, 0))], ROWS, (32, 128))


def _page_behind(fixed: bool) -> Function:
    """A page of a table, copied by hand from 8 rows too far."""

    def body(t: Any, x: Any, o: Any) -> None:
        pltpu.sync_copy(x.at[pl.ds(t[pl.program_id(0)] * 8 + (0 if fixed else 8), 8)], o)

    return call(body, (4,), [ANY], ((8, 128), lambda i, t: (i, 0)), (32, 128), tables=1)


def _slots(fixed: bool) -> Function:
    def body(x: Any, o: Any, buffer: Any) -> None:
        slot = lax.rem(pl.program_id(0), 2 if fixed else 3)
        buffer[slot] = x[...]
        o[...] = buffer[slot]

    return call(body, (4,), [ROWS], ROWS, (32, 128), [pltpu.VMEM((2, 8, 128), F32)])


def _table_row(fixed: bool) -> Function:
    """Rows by a table, some of which are past the last that there is room for."""

    def body(t: Any, x: Any, o: Any) -> None:
        at = t[pl.program_id(0)]
        o[...] = x[pl.ds(jnp.minimum(at, 24) if fixed else at, 8), :]

    whole = ((32, 128), lambda i, t: (0, 0))
    return call(body, (4,), [whole], ((8, 128), lambda i, t: (i, 0)), (32, 128), tables=1)


def _swapped(fixed: bool) -> Function:
    """A table of (4, 2) whose indices stand in each other's place."""

    def body(t: Any, x: Any, o: Any) -> None:
        i, j = pl.program_id(0), pl.program_id(1)
        at = t[i, j] if fixed else t[j, i]
        o[...] = x[pl.ds(at * 8, 8), :]

    whole = ((32, 128), lambda i, j, t: (0, 0))
    return call(body, (4, 2), [whole], ((8, 128), lambda i, j, t: (i * 2 + j, 0)), (64, 128), tables=1)


PAGES = np.array([2, 0, 3, 1], np.int32)
STARTS = np.array([0, 31, 8, 16], np.int32)
TABLE = np.array([[0, 1], [2, 3], [3, 2], [1, 0]], np.int32)


def _limit(fixed: bool) -> Function:
    return call(
        copy,
        (2,),
        [((2048, 1024), lambda i: (i, 0))],
        ((2048, 1024), lambda i: (i, 0)),
        (4096, 1024),
        limit=33554432 if fixed else None,
    )


SEMAPHORE = pltpu.SemaphoreType.DMA
PACKED = np.arange(10 * 128, dtype=np.int32).reshape(10, 128)


def _missing_rows(fixed: bool) -> Function:
    """A loop fills 6 of the 8 rows of scratch."""

    def body(x: Any, o: Any, rows: Any) -> None:
        def turn(k: Any, _: Any) -> Any:
            rows[pl.ds(k, 1), :] = x[pl.ds(k, 1), :] * 2
            return 0

        lax.fori_loop(0, 8 if fixed else 6, turn, 0)
        o[...] = rows[...]

    return call(body, (4,), [ROWS], ROWS, (32, 128), [pltpu.VMEM((8, 128), F32)])


def _slot_parity(copied: bool) -> Callable[[bool], Function]:
    """One slot is filled, and the other one read."""

    def make(fixed: bool) -> Function:
        def body(x: Any, o: Any, slots: Any, *more: Any) -> None:
            i = pl.program_id(0)
            if copied:
                pltpu.sync_copy(x.at[pl.ds(i * 8, 8)], slots.at[i % 2])
            else:
                slots[i % 2] = x[...]
            o[...] = slots[i % 2] if fixed else slots[(i + 1) % 2]

        given = ANY if copied else ROWS
        return call(body, (4,), [given], ROWS, (32, 128), [pltpu.VMEM((2, 8, 128), F32)], ("arbitrary",))

    return make


def _slot_of_turns(fixed: bool) -> Function:
    """The same by a loop's counter, which has no name in the code."""

    def body(x: Any, o: Any, slots: Any) -> None:
        def turn(k: Any, _: Any) -> Any:
            slots[k % 2] = x[pl.ds(k * 8, 8), :]
            o[pl.ds(k * 8, 8), :] = slots[k % 2] if fixed else slots[(k + 1) % 2]
            return 0

        lax.fori_loop(0, 4, turn, 0)

    whole = ((32, 128), lambda i: (0, 0))
    return call(body, (1,), [whole], whole, (32, 128), [pltpu.VMEM((2, 8, 128), F32)])


def _prologue(fixed: bool) -> Function:
    """The first block of each row is fetched ahead of the others, but for the first row only."""

    def body(x: Any, o: Any, slots: Any, arrived: Any) -> None:
        i, k = pl.program_id(0), pl.program_id(1)

        def fetch(block: Any) -> Any:
            source = x.at[pl.ds(i * 8, 8), pl.ds(block * 128, 128)]
            return pltpu.make_async_copy(source, slots.at[block % 2], arrived.at[block % 2])

        @pl.when(k == 0 if fixed else (i == 0) & (k == 0))
        def _() -> None:
            fetch(0).start()

        @pl.when(k + 1 < 3)
        def _() -> None:
            fetch(k + 1).start()

        fetch(k).wait()

        @pl.when(k == 0)
        def _() -> None:
            o[...] = jnp.zeros_like(o)

        o[...] += slots[k % 2]

    scratch = [pltpu.VMEM((2, 8, 128), F32), SEMAPHORE((2,))]
    out = ((8, 128), lambda i, k: (i, 0))
    return call(body, (2, 3), [ANY], out, (16, 128), scratch, ("arbitrary", "arbitrary"))


def _late_write_back(loop: bool) -> Callable[[bool], Function]:
    """What is copied out is overwritten before the copy is waited for."""

    def make(fixed: bool) -> Function:
        def body(x: Any, o: Any, buffer: Any, done: Any) -> None:
            def back(k: Any) -> Any:
                return pltpu.make_async_copy(buffer, o.at[pl.ds(k * 8, 8)], done)

            def step(k: Any, value: Any) -> None:
                def wait() -> None:
                    pl.when(k > 0)(lambda: back(k - 1).wait())

                if fixed:
                    wait()
                buffer[...] = value * 2
                if not fixed:
                    wait()
                back(k).start()

            if loop:
                lax.fori_loop(0, 4, lambda k, _: step(k, x[pl.ds(k * 8, 8), :]) or 0, 0)
                back(3).wait()
            else:
                i = pl.program_id(0)
                step(i, x[...])
                pl.when(i == 3)(lambda: back(3).wait())

        given = ((32, 128), lambda i: (0, 0)) if loop else ROWS
        scratch = [pltpu.VMEM((8, 128), F32), SEMAPHORE(())]
        return call(body, (1 if loop else 4,), [given], ANY, (32, 128), scratch, ("arbitrary",))

    return make


def _guarded_reader(fixed: bool) -> Function:
    """What is in flight is read under a condition, before a wait that has none."""

    def body(x: Any, o: Any, buffer: Any, arrived: Any) -> None:
        fetch = pltpu.make_async_copy(x, buffer, arrived)
        fetch.start()
        if fixed:
            fetch.wait()
        o[...] = jnp.zeros_like(o)

        @pl.when(pl.program_id(0) >= 0)
        def _() -> None:
            o[...] = buffer[...] + 1
            o[...] = buffer[...]

        if not fixed:
            fetch.wait()

    scratch = [pltpu.VMEM((32, 128), F32), SEMAPHORE(())]
    return call(body, (2,), [ANY], ((32, 128), lambda i: (i, 0)), (64, 128), scratch)


def _never_waited(out: bool) -> Callable[[bool], Function]:
    """A copy for which nobody waits: in, before it is read, or out."""

    def make(fixed: bool) -> Function:
        def body(x: Any, o: Any, buffer: Any, done: Any) -> None:
            if out:
                buffer[...] = x[...] * 2
            moved = pltpu.make_async_copy(buffer, o, done) if out else pltpu.make_async_copy(x, buffer, done)
            moved.start()
            if fixed:
                moved.wait()
            if not out:
                o[...] = buffer[...]

        whole = ((32, 128), lambda i: (0, 0))
        given, made = (whole, ANY) if out else (ANY, whole)
        return call(body, (1,), [given], made, (32, 128), [pltpu.VMEM((32, 128), F32), SEMAPHORE(())])

    return make


def _carry_guard(fixed: bool) -> Function:
    """What one program leaves to the next starts at the second one."""

    def body(x: Any, o: Any, last: Any) -> None:
        @pl.when(pl.program_id(0) == (0 if fixed else 1))
        def _() -> None:
            last[...] = jnp.zeros_like(last)

        o[...] = x[...] - last[...]
        last[...] = x[...]

    return call(body, (4,), [ROWS], ROWS, (32, 128), [pltpu.VMEM((8, 128), F32)], ("arbitrary",))


def _kept_late(fixed: bool) -> Function:
    """The first block is added to all, and is kept in the second program only."""

    def body(x: Any, o: Any, first: Any) -> None:
        @pl.when(pl.program_id(0) == (0 if fixed else 1))
        def _() -> None:
            first[...] = x[...]

        o[...] = x[...] + first[...]

    return call(body, (4,), [ROWS], ROWS, (32, 128), [pltpu.VMEM((8, 128), F32)], ("arbitrary",))


def _row_before(fixed: bool) -> Function:
    """The rows before; the first program has none."""

    def body(x: Any, o: Any) -> None:
        start = pl.program_id(0) * 8 - 8
        o[...] = x[pl.ds(jnp.maximum(start, 0) if fixed else start, 8), :]

    return call(body, (5,), [((32, 128), lambda i: (0, 0))], ROWS, (40, 128))


def _one_too_many(fixed: bool) -> Function:
    window = ((None, 8, 128), lambda i: (i, 0, 0))
    return call(copy, (4 if fixed else 5,), [window], window, (4, 8, 128))


def _sign(fixed: bool) -> Function:
    """The block before, the last one for the first; `lax.rem` has the sign of what is divided."""

    def body(x: Any, o: Any) -> None:
        block = (jnp.mod if fixed else lax.rem)(pl.program_id(0) - 1, 4)
        o[...] = x[pl.ds(block * 8, 8), :]

    return call(body, (4,), [((32, 128), lambda i: (0, 0))], ROWS, (32, 128))


def _two_behind(fixed: bool) -> Function:
    """A start by a loop's counter, which has no name in the code."""

    def body(x: Any, o: Any) -> None:
        def turn(k: Any, _: Any) -> Any:
            o[pl.ds(k * 8, 8), :] = x[pl.ds(k * 8 if fixed else k * 8 + 8, 8), :]
            return 0

        lax.fori_loop(0, 4, turn, 0)

    whole = ((32, 128), lambda i: (0, 0))
    return call(body, (1,), [whole], whole, (32, 128))


def _packed(fixed: bool) -> Function:
    """Sums of bytes, four to a number: a mask that counts eight to a row keeps bytes of padding."""

    def body(x: Any, o: Any) -> None:
        value = x[...]
        if fixed:
            row = pl.program_id(0) * 8 + lax.broadcasted_iota(jnp.int32, (8, 128), 0)
            value = jnp.where(row < 10, value, 0)
        packed = pltpu.bitcast(value, jnp.int8)
        row = pl.program_id(0) * 8 + lax.broadcasted_iota(jnp.int32, (32, 128), 0) // 8
        packed = jnp.where(row < 10, packed.astype(jnp.int32), 0)
        o[...] = jnp.broadcast_to(jnp.sum(packed, axis=0, keepdims=True), o.shape).astype(F32)

    return call(body, (2,), [ROWS], ROWS, (16, 128))


def _bytes() -> Any:
    """What `_packed` is to compute: of both programs, with 8 and with 2 rows of numbers."""
    rows = PACKED.view(np.int8).reshape(10, 128, 4).astype(np.int32).sum(2)
    return np.repeat(np.stack([rows[:8].sum(0), rows[8:].sum(0)]), 8, 0).astype(np.float32)


def _other_dimension(fixed: bool) -> Function:
    """A mask that stands in the code, over rows, where the padding is in columns."""

    def body(x: Any, o: Any) -> None:
        value = x[...]
        if fixed:
            value = jnp.where(lax.broadcasted_iota(jnp.int32, (8, 256), 1) < 200, value, 0)
        value = jnp.where(lax.broadcasted_iota(jnp.int32, (8, 256), 0) < 200, value, 0)
        o[...] = jnp.broadcast_to(jnp.sum(value, axis=1, keepdims=True), o.shape)

    return call(body, (1,), [((8, 256), lambda i: (0, 0))], FIRST, (8, 128))


def _in_parts(fixed: bool) -> Function:
    """What is loaded is a part of the window."""

    def body(x: Any, o: Any) -> None:
        total = jnp.zeros((8, 1), F32)
        for start in (0, 128):
            value = x[:, pl.ds(start, 128)]
            if fixed:
                value = jnp.where(start + lax.broadcasted_iota(jnp.int32, (8, 128), 1) < 200, value, 0)
            total += jnp.sum(value, axis=1, keepdims=True)
        o[...] = jnp.broadcast_to(total, o.shape)

    return call(body, (1,), [((8, 256), lambda i: (0, 0))], FIRST, (8, 128))


REPAIRS = [
    Repair("offset", "blocks_in_bounds", "return it divided by 8", _offset, (X,), X),
    Repair("grid", "blocks_in_bounds", "has 5 programs and the array 4 blocks: use pl.cdiv(32, 8) = 4", _grid, (X,), X),
    Repair(
        "output_behind",
        "blocks_in_bounds",
        "return g0 in dimension 0 of the index map of outputs, where g0 + 1",
        _output_behind,
        (RAGGED,),
        RAGGED,
    ),
    Repair(
        "output_behind",
        "outputs_covered",
        "return g0 in dimension 0 of the index map of outputs, where g0 + 1",
        _output_behind,
        (RAGGED,),
        RAGGED,
    ),
    Repair(
        "input_before",
        "blocks_in_bounds",
        "return g0 in dimension 0 of the index map of args[0], where g0 - 1",
        _input_before,
        (X,),
        X,
    ),
    Repair("last_behind", "blocks_in_bounds", "clamp it: return jnp.minimum(", _last_behind, (X,), X),
    Repair(
        "floored",
        "outputs_covered",
        "grid dimension 0 floor-divides 30 by 8: use pl.cdiv(30, 8) = 4",
        _floored,
        (RAGGED,),
        RAGGED,
    ),
    Repair(
        "floored_sum",
        "inputs_read",
        "use pl.cdiv(200, 64) = 4; and x = jnp.where(pl.program_id(0) * 64 + jax.lax.broadcasted_iota(",
        _floored_sum,
        (WIDE,),
        np.broadcast_to(WIDE.sum(1, keepdims=True), (8, 128)),
    ),
    Repair(
        "clamped_below",
        "inputs_read",
        "clamp it to the last block, 3: return jnp.minimum(g0, 3)",
        _clamped_below,
        (RAGGED,),
        RAGGED,
    ),
    Repair("outer_sum", "revisits", "make it the innermost dimension, grid (2, 3)", _sum_of_blocks, (BLOCKS,), SUMS),
    Repair(
        "parallel_sum",
        "parallel_writes",
        'make grid dimension 1 "arbitrary"',
        lambda fixed: _accumulated("arbitrary" if fixed else "parallel", lambda i, k: k == 0),
        (BLOCKS,),
        SUMS,
    ),
    Repair(
        "parallel_sum",
        "initialised",
        'make grid dimension 1 "arbitrary"',
        lambda fixed: _accumulated("arbitrary" if fixed else "parallel", lambda i, k: k == 0),
        (BLOCKS,),
        SUMS,
    ),
    Repair(
        "never_zero",
        "initialised",
        Said("pallas.fix_zeros_first", reference="outputs", condition="pl.program_id(1) == 0"),
        lambda fixed: _accumulated("arbitrary", (lambda i, k: k == 0) if fixed else None),
        (BLOCKS,),
        SUMS,
    ),
    Repair(
        "late_zero",
        "initialised",
        Said(
            "pallas.initialised_fix_happen",
            reference="scratch[0]",
            condition="pl.program_id(1) == 0",
            said="pl.program_id(1) == 1",
        ),
        lambda fixed: _accumulated("arbitrary", lambda i, k: k == (0 if fixed else 1), True),
        (BLOCKS,),
        SUMS,
    ),
    Repair(
        "late_zero",
        "body_races",
        Said(
            "pallas.initialised_fix_happen",
            reference="scratch[0]",
            condition="pl.program_id(1) == 0",
            said="pl.program_id(1) == 1",
        ),
        lambda fixed: _accumulated("arbitrary", lambda i, k: k == (0 if fixed else 1), True),
        (BLOCKS,),
        SUMS,
    ),
    Repair(
        "other_axis",
        "initialised",
        Said(
            "pallas.initialised_fix_happen",
            reference="scratch[0]",
            condition="pl.program_id(1) == 0",
            said="pl.program_id(0) == 0",
        ),
        lambda fixed: _accumulated("arbitrary", lambda i, k: k == 0 if fixed else i == 0, True),
        (BLOCKS,),
        SUMS,
    ),
    Repair(
        "largest",
        "initialised",
        Said("pallas.fix_zeros_first", reference="outputs"),
        _largest,
        (-X,),
        (-X).reshape(4, 8, 128).max(0),
        right=False,
    ),
    Repair(
        "running",
        "body_races",
        'make grid dimension 0 "arbitrary"',
        _running,
        (X,),
        X.reshape(4, 8, 128).cumsum(0).reshape(32, 128),
    ),
    Repair("one_place", "body_races", 'make grid dimension 0 "arbitrary"', _one_place, (X,), X[:8], right=False),
    Repair(
        "sum",
        "undefined_values",
        "x = jnp.where(jax.lax.broadcasted_iota(jnp.int32, (8, 256), 1) < 200, x, 0)",
        _reduced(jnp.sum),
        (WIDE,),
        np.broadcast_to(WIDE.sum(1, keepdims=True), (8, 128)),
    ),
    Repair(
        "smallest",
        "undefined_values",
        "a minimum jnp.inf",
        _reduced(jnp.min),
        (WIDE,),
        np.broadcast_to(WIDE.min(1, keepdims=True), (8, 128)),
        right=False,
    ),
    Repair(
        "masked_twice",
        "undefined_values",
        "jax.lax.broadcasted_iota(jnp.int32, (16, 128), 0) < 12",
        _masked_twice,
        (TWELVE,),
        FOLDED,
        right=False,
    ),
    Repair(
        "halo",
        "undefined_values",
        "jnp.where(0 <= pl.program_id(0) * 8",
        _halo,
        (X,),
        X - np.concatenate([np.zeros((1, 128), np.float32), X[:-1]]),
    ),
    Repair(
        "last_step",
        "outputs_stored",
        Said("pallas.outputs_stored_fix_last_step", step="pl.program_id(0) == 3", said="pl.program_id(0) == 4"),
        _last_step,
        (X,),
        X.reshape(4, 8, 128).sum(0),
    ),
    Repair(
        "turns",
        "body_in_bounds",
        Said("pallas.fix_last_turn", turns=4, said=5),
        _turns,
        (X,),
        X.reshape(4, 8, 128).sum(0),
    ),
    Repair("guarded_store", "body_in_bounds", "under pl.when(pl.program_id(0) * 8 <= 16)", _guarded_store, (X,), X),
    Repair(
        "rows_behind",
        "body_in_bounds",
        Said(
            "pallas.fix_shift",
            which=Said("pallas.first_element", which="start", dimension=0, name="args[0]"),
            new="pl.program_id(0) * 8",
            said="pl.program_id(0) * 8 + 8",
            by=8,
            large="large",
        ),
        _rows_behind,
        (X,),
        X,
    ),
    Repair(
        "page_behind",
        "body_in_bounds",
        Said("pallas.fix_shift", by=8, large="large"),
        _page_behind,
        (PAGES, X),
        X.reshape(4, 8, 128)[PAGES].reshape(32, 128),
        assume=("0 <= prefetch0 < 4",),
    ),
    Repair(
        "slots",
        "body_in_bounds",
        Said(
            "pallas.fix_remainder",
            which=Said("pallas.first_element", which="index", dimension=0, name="scratch[0]"),
            by=2,
            said="3",
        ),
        _slots,
        (X,),
        X,
    ),
    Repair(
        "table_row",
        "body_in_bounds",
        Said(
            "pallas.fix_clamp",
            which=Said("pallas.first_element", which="start", dimension=0, name="args[1]"),
            ends="at most 24",
            call=": jnp.minimum(prefetch0[pl.program_id(0)], 24)",
        ),
        _table_row,
        (STARTS, X),
        np.concatenate([X[s : s + 8] if s < 25 else X[24:] for s in STARTS]),
        assume=("0 <= prefetch0 < 32",),
    ),
    Repair(
        "swapped",
        "body_in_bounds",
        Said("pallas.fix_swap", reference="prefetch0", indices="pl.program_id(0), pl.program_id(1)"),
        _swapped,
        (TABLE, X),
        np.concatenate([X[t * 8 : t * 8 + 8] for t in TABLE.reshape(-1)]),
        assume=("0 <= prefetch0 < 4",),
    ),
    Repair(
        "missing_rows",
        "initialised",
        Said("pallas.fix_turns", needed=8, turns=6, reference="scratch[0]"),
        _missing_rows,
        (X,),
        2 * X,
    ),
    Repair(
        "slot_parity",
        "initialised",
        Said(
            "pallas.fix_slot",
            name="scratch[0]",
            index="pl.program_id(0) % 2",
            dimension=0,
            said="(pl.program_id(0) + 1) % 2",
        ),
        _slot_parity(False),
        (X,),
        X,
    ),
    Repair("slot_copied", "initialised", "index pl.program_id(0) % 2 in dimension 0", _slot_parity(True), (X,), X),
    Repair("slot_of_turns", "initialised", "read scratch[0] at line ", _slot_of_turns, (X,), X),
    Repair(
        "carry_guard", "initialised", "happen under pl.when(pl.program_id(0) == 0)", _carry_guard, (X,), LESS_BEFORE
    ),
    Repair("kept_late", "initialised", "of another step", _kept_late, (X,), X + np.tile(X[:8], (4, 1))),
    Repair(
        "row_before", "body_in_bounds", "to at least 0: jnp.maximum(", _row_before, (X,), np.concatenate([X[:8], X])
    ),
    Repair(
        "one_too_many",
        "blocks_in_bounds",
        "has 5 programs and the array 4 places: let it have 4",
        _one_too_many,
        (X.reshape(4, 8, 128),),
        X.reshape(4, 8, 128),
    ),
    Repair(
        "prologue",
        "dma_order",
        Said(
            "pallas.fix_started",
            condition="pl.program_id(1) == 0",
            said="(pl.program_id(0) == 0) & (pl.program_id(1) == 0)",
        ),
        _prologue,
        (BLOCKS,),
        SUMS,
    ),
    Repair(
        "late_write_back",
        "dma_order",
        Said("pallas.fix_wait", under=" with its condition"),
        _late_write_back(False),
        (X,),
        2 * X,
    ),
    Repair(
        "late_in_a_loop",
        "dma_order",
        Said("pallas.fix_wait", under=" with its condition"),
        _late_write_back(True),
        (X,),
        2 * X,
    ),
    Repair("guarded_reader", "dma_order", Said("pallas.fix_wait"), _guarded_reader, (X,), np.concatenate([X, X])),
    Repair("never_waited", "dma_order", ", before line ", _never_waited(False), (X,), X),
    Repair(
        "never_waited_out",
        "dma_order",
        Said("pallas.fix_no_wait", when="after it is started", semaphore="scratch[1]"),
        _never_waited(True),
        (X,),
        2 * X,
    ),
    Repair(
        "sign",
        "body_in_bounds",
        Said("pallas.fix_mod", which=Said("pallas.first_element", which="start", dimension=0, name="args[0]")),
        _sign,
        (X,),
        np.roll(X, 8, axis=0),
    ),
    Repair(
        "two_behind",
        "body_in_bounds",
        Said(
            "pallas.fix_take",
            by=8,
            off="off",
            which=Said("pallas.first_element", which="start", dimension=0, name="args[0]"),
            large="large",
        ),
        _two_behind,
        (X,),
        X,
    ),
    Repair(
        "packed",
        "undefined_values",
        "x = jnp.where(pl.program_id(0) * 8 + jax.lax.broadcasted_iota(jnp.int32, (8, 128), 0) < 10, x, 0)",
        _packed,
        (PACKED,),
        _bytes(),
    ),
    Repair(
        "other_dimension",
        "undefined_values",
        "jax.lax.broadcasted_iota(jnp.int32, (8, 256), 1) < 200",
        _other_dimension,
        (WIDE,),
        np.broadcast_to(WIDE.sum(1, keepdims=True), (8, 128)),
    ),
    Repair(
        "in_parts",
        "undefined_values",
        Said("pallas.fix_mask_part", inside="at < 200", operand="args[0]", axis=1),
        _in_parts,
        (WIDE,),
        np.broadcast_to(WIDE.sum(1, keepdims=True), (8, 128)),
    ),
    Repair("limit", "memory_budget", "let vmem_limit_bytes be 33554432 or more", _limit, (), None, target="v5e"),
]


BY_CONTENTS = ("page_behind", "table_row")
"""Those that are refuted by what a table holds: unknown, but with strict tables."""


def answers(made: Function, repair: Repair, strict_tables: bool = True) -> list[Finding]:
    """All that is said of the one call."""
    given = repair.arguments or (jax.ShapeDtypeStruct((4096, 1024), F32),)
    (kernel,) = kernels_of(made, given, assume=repair.assume)
    assert isinstance(kernel, Kernel)
    # what a table may hold is the repair's to say: with another table the kernel is wrong before
    return list(judge(kernel, target=repair.target, strict_tables=strict_tables))


@cache
def refuted(repair: Repair) -> Finding:
    """The refutation that a repair is about."""
    found = answers(repair.make(False), repair)
    wrong = [f for f in found if f.verdict is Verdict.REFUTED and f.severity != "info"]
    return next(f for f in wrong if f.question == repair.question)


@pytest.mark.parametrize("repair", REPAIRS, ids=lambda r: f"{r.name}-{r.question}")
def test_a_fix_repairs(repair: Repair) -> None:
    one = refuted(repair)
    assert says(repair.fix, one.fix)
    assert one.hint == ""
    if repair.name in BY_CONTENTS:
        open_ = [f for f in answers(repair.make(False), repair, False) if f.question == repair.question]
        assert {f.verdict for f in open_ if "refuted if prefetch0 can be " in f.reason} == {Verdict.UNKNOWN}
        assert Verdict.REFUTED not in {f.verdict for f in open_}
    left = [f for f in answers(repair.make(True), repair) if f.verdict is not Verdict.PROVED and f.severity != "info"]
    # a bug of JAX's interpreter is none of the kernel, and no edit of it ends it
    assert [f for f in left if f.question != "known_jax_bugs"] == []
    if repair.want is None:
        return
    # the TPU interpreter knows no padding of Element windows
    how = True if repair.name == "halo" else pltpu.InterpretParams()
    run = np.asarray(repair.make(True)(*map(jnp.asarray, repair.arguments), interpret=how))
    assert np.array_equal(run, repair.want) is repair.right
    assert repair.right or CHECK in one.fix


def test_a_mask_that_misses_is_named() -> None:
    told = {r.name: refuted(r) for r in REPAIRS if r.name in ("other_dimension", "masked_twice", "packed", "sum")}
    assert Said("pallas.masks_other", dimensions="0", dimension=1).of(told["other_dimension"].reason)
    # the mask of `masked_twice` leaves out what is there, whatever else is masked
    assert Said("pallas.mask_keeps_one", keeps=12, dimension=0, place=6).of(told["masked_twice"].reason)
    assert "leaves out place 6 of dimension 0, which is there" in told["masked_twice"].fix.partition(CHECK)[2]
    assert Said("pallas.mask_keeps", keeps=10, dimension=0).of(told["packed"].reason)
    assert "line" not in told["sum"].reason


def test_a_mask_is_not_blamed_for_what_another_one_lets_in() -> None:
    def body(x: Any, y: Any, o: Any) -> None:
        column = lax.broadcasted_iota(jnp.int32, (8, 256), 1)
        mine = jnp.where(column < 200, x[...], 0)
        mine = jnp.where(lax.broadcasted_iota(jnp.int32, (8, 256), 0) < 4, mine, 0)
        o[...] = jnp.broadcast_to(jnp.sum(mine + y[...], axis=1, keepdims=True), o.shape)

    whole = ((8, 256), lambda i: (0, 0))
    made = call(body, (1,), [whole, whole], FIRST, (8, 128))
    (kernel,) = kernels_of(made, (WIDE, WIDE))
    assert isinstance(kernel, Kernel)
    (found,) = [f for f in judge(kernel) if f.question == "undefined_values"]
    assert found.verdict is Verdict.REFUTED
    assert "padding of args[1]" in found.reason
    assert "mask" not in found.reason


# each text that a fix may have is one that was applied above

WORDS = 3
"""A part of a text with as many words is looked for."""
SOURCES = Path(layoutproof.__file__).parent
NOT_APPLIED: Mapping[str, str] = {}
"""Texts that no repair applies, and why."""


def fix_texts(source: str) -> Iterator[str]:
    """The longest constant part of every text in the functions of a source that make a `KernelFix`."""
    tree = ast.parse(source)
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        makes = [n for n in ast.walk(function) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "KernelFix"]
        if not makes:
            continue
        inside = {id(part) for n in ast.walk(function) if isinstance(n, ast.JoinedStr) for part in n.values}
        for node in ast.walk(function):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            if isinstance(node, ast.Constant) and (
                id(node) in inside or node.value == ast.get_docstring(function, False)
            ):
                continue
            texts = [p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)]
            longest = max(texts, key=len, default="").strip()
            if len(longest.split()) >= WORDS:
                yield longest


def fix_templates(path: Path) -> Iterator[str]:
    """The longest constant part of every template that a function of a module names, if it makes a `KernelFix`."""
    module = importlib.import_module(".".join(path.relative_to(SOURCES.parent).with_suffix("").parts))
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, ast.FunctionDef) and "KernelFix(" in ast.unparse(function):
            for node in ast.walk(function):
                of = module if isinstance(node, ast.Name) else getattr(module, "problems", None)
                name = getattr(node, "id", "") or getattr(node, "attr", "")
                if isinstance(made := getattr(of, name, None), Template):
                    yield max((part for part, *_ in Formatter().parse(made.words)), key=len).strip()


def test_every_text_of_a_fix_is_one_that_was_applied() -> None:
    told = "\n".join(refuted(repair).fix for repair in REPAIRS)
    files = [path for path in SOURCES.rglob("*.py") if "KernelFix(" in path.read_text() and path.name != "repairs.py"]
    assert len(files) >= 4
    texts = {text: path.name for path in files for text in chain(fix_texts(path.read_text()), fix_templates(path))}
    assert len(texts) > 30
    assert {t: of for t, of in texts.items() if t not in told and t not in NOT_APPLIED} == {}
    assert [t for t in NOT_APPLIED if t not in texts or t in told] == []


def test_a_text_that_nobody_applies_is_found() -> None:
    planted = (
        'def f(k):\n    """A b c d."""\n    words = f"let {k} be another one at last"\n    yield KernelFix(words, k)\n'
    )
    assert list(fix_texts(planted)) == ["be another one at last"]
