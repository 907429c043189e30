# ruff: noqa
"""More kernels with one error each, and the right twin of each, in the forms in which kernels are called.

Batched, in loops and on meshes, with bounds that data decide, with numbers that wrap, with tables that the body stores
to, with copies by hand, pipelines, scopes, semaphores, dynamic grids and shared buffers. `CASES` as in `pitfalls`.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from tests.bodies.pitfalls import ANY, Built, Case, F, I, call, data, iota, zero_at

CASES: dict[str, Case] = {}


def case(kind, assume=(), note="", also=()):
    def deco(build):
        CASES[build.__name__] = Case(build.__name__, kind, build, 1, tuple(assume), note, tuple(also))
        return build

    return deco


ROWS = ((8, 128), lambda i, *t: (i, 0))
FIRST = ((8, 128), lambda *i: (0, 0))
VM, SM, DMA = pltpu.VMEM, pltpu.SMEM, pltpu.SemaphoreType.DMA


def of(f, *args, want=None):
    return Built(f, args, want)


# ---------------------------------------------------------------- batched
def _total(wrong, first=0):
    """Sums the blocks of rows; wrong: zeroed in the second program."""

    def body(xr, o):
        zero_at(pl.program_id(0) == (1 if wrong else 0), o)
        o[...] += xr[...]

    return call(body, (4,), [ROWS], FIRST, (8, 128))


@case("initialised", note="vmap over axis 1", also=("body_races",))
def vmap_axis_1(wrong):
    return of(jax.vmap(_total(wrong), in_axes=1, out_axes=1), data(32, 3, 128))


@case("initialised", note="vmap of vmap", also=("body_races",))
def vmap_of_vmap(wrong):
    return of(jax.vmap(jax.vmap(_total(wrong))), data(2, 3, 32, 128))


@case("body_in_bounds", note="vmap, one operand is shared (in_axes None): rows of the shared one by program id")
def vmap_none_shared(wrong):
    def body(xr, wr, o):
        k = pl.program_id(0)
        o[...] = xr[...] * wr[pl.ds(k * 8 + (8 if wrong else 0), 8), :]

    f = call(body, (4,), [ROWS, ((32, 128), lambda i: (0, 0))], ROWS, (32, 128))
    return of(jax.vmap(f, in_axes=(0, None)), data(3, 32, 128), data(32, 128))


@case("outputs_stored", note="vmap; the last block of rows is skipped by num_programs - 1")
def vmap_num_programs(wrong):
    def body(xr, o):
        last = pl.num_programs(0) - 1

        @pl.when(pl.program_id(0) < last if wrong else pl.program_id(0) <= last)
        def _():
            o[...] = xr[...]

    return of(jax.vmap(call(body, (4,), [ROWS], ROWS, (32, 128))), data(3, 32, 128))


@case("body_in_bounds", assume=("0 <= prefetch0 <= 3",), note="vmap over the table: a loop around the call")
def vmap_over_table(wrong):
    def body(t, xr, o):
        o[...] = xr[pl.ds(t[pl.program_id(0)] * 8 + (8 if wrong else 0), 8), :]

    f = call(body, (4,), [((32, 128), lambda i, t: (0, 0))], ROWS, (32, 128), prefetch=1)
    return of(jax.vmap(f, in_axes=(0, None)), np.tile(np.arange(4, dtype=np.int32), (3, 1)), data(32, 128))


@case("undefined_values", note="custom_vmap whose rule batches by vmap; ragged tail")
def in_custom_vmap(wrong):
    def body(xr, o):
        k = pl.program_id(0)
        held = k * 128 + iota((8, 128), 1) < (208 if wrong else 200)
        zero_at(k == 0, o)
        o[...] += jnp.where(held, xr[...], 0).sum(1, keepdims=True)

    f = call(body, (2,), [((8, 128), lambda k: (0, k))], ((8, 1), lambda k: (0, 0)), (8, 1))
    g = jax.custom_batching.custom_vmap(lambda x: f(x))
    g.def_vmap(lambda size, batched, x: (jax.vmap(f)(x), True))
    return of(jax.vmap(g), data(3, 8, 200))


# ---------------------------------------------------------------- around the call
@case("outputs_stored", note="inside of scan")
def in_scan(wrong):
    def body(xr, o):
        @pl.when(pl.program_id(0) != (2 if wrong else 9))
        def _():
            o[...] = xr[...] + 1

    f = call(body, (4,), [ROWS], ROWS, (32, 128))
    return of(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0], data(32, 128))


@case("body_in_bounds", note="jit in jit, and a cond around")
def in_jit_and_cond(wrong):
    def body(xr, o):
        o[...] = xr[pl.ds(pl.program_id(0) * (9 if wrong else 8), 8), :]

    f = jax.jit(call(body, (4,), [((32, 128), lambda i: (0, 0))], ROWS, (32, 128)))
    return of(jax.jit(lambda x: lax.cond(x[0, 0] > 0, f, lambda v: v, x)), data(32, 128))


@case("undefined_values", note="under shard_map: the local array has 100 columns")
def in_shard_map_tail(wrong):
    from jax.sharding import Mesh, PartitionSpec as P

    def body(xr, o):
        held = iota((8, 128), 1) < (128 if wrong else 100)
        o[...] = jnp.broadcast_to(jnp.where(held, xr[...], 0).sum(1, keepdims=True), (8, 128))

    f = call(body, (1,), [FIRST], FIRST, (8, 128))
    mesh = Mesh(np.array(jax.devices()[:1]), ("d",))
    return of(
        lambda x: jax.shard_map(f, mesh=mesh, in_specs=P(None, "d"), out_specs=P(None, "d"), check_vma=False)(x),
        data(8, 100),
    )


# ---------------------------------------------------------------- what decides how often a loop runs
@case("initialised", note="the bound of a loop is read from SMEM that only later programs have written")
def bound_from_scratch(wrong):
    def body(xr, o, n):
        @pl.when(pl.program_id(0) == (1 if wrong else 0))
        def _():
            n[0] = 3

        o[...] = lax.fori_loop(0, n[0], lambda j, a: a + 1.0, xr[...])

    return of(call(body, (4,), [ROWS], ROWS, (32, 128), [SM((1,), I)], ("arbitrary",)), data(32, 128))


@case("undefined_values", note="bisection until the padding has converged, too")
def until_padding_converges(wrong):
    def body(xr, o):
        x = xr[...]
        held = iota(x.shape, 1) < 200

        def far(v):
            gap = jnp.abs(v[1] - v[0])
            return jnp.max(gap if wrong else jnp.where(held, gap, 0)) > 1e-3

        def step(v):
            low, high = v
            middle = (low + high) * 0.5
            over = middle * middle > x
            return jnp.where(over, low, middle), jnp.where(over, middle, high)

        o[...] = lax.while_loop(far, step, (jnp.zeros_like(x), x + 1))[0]

    whole = ((8, 256), lambda i: (0, 0))
    return of(call(body, (1,), [whole], whole, (8, 200)), data(8, 200))


@case("initialised", note="pl.when on a carry that starts as scratch nobody wrote")
def when_on_a_carry(wrong):
    def body(xr, o, s):
        o[...] = jnp.zeros_like(o)
        if not wrong:
            s[0] = 0

        def step(j, c):
            @pl.when(c >= 0)
            def _():
                o[pl.ds(j, 1), :] = xr[pl.ds(j, 1), :]

            return c + 1

        lax.fori_loop(0, 8, step, s[0])

    return of(call(body, (4,), [ROWS], ROWS, (32, 128), [SM((1,), I)], ("arbitrary",)), data(32, 128))


@case("undefined_values", note="the number of rows that are summed is counted over the padding, too")
def count_over_padding(wrong):
    def body(xr, o):
        x = xr[...]
        some = (x > 0) if wrong else (x > 0) & (iota(x.shape, 1) < 200)
        n = jnp.minimum(jnp.sum(some.astype(I)), 7)
        o[...] = jnp.zeros_like(o) + lax.fori_loop(0, n, lambda j, a: a + 1.0, 0.0)

    return of(call(body, (1,), [((8, 256), lambda i: (0, 0))], FIRST, (8, 128)), data(8, 200))


# ---------------------------------------------------------------- integers that wrap
@case("body_in_bounds", note="int32: a row offset in elements wraps")
def offset_wraps(wrong):
    def body(xr, o):
        i = pl.program_id(0)
        flat = i * (1 << (30 if wrong else 20))
        row = flat // (1 << (30 if wrong else 20))
        o[...] = xr[pl.ds(row * 8, 8), :]

    return of(call(body, (4,), [((32, 128), lambda i: (0, 0))], ROWS, (32, 128)), data(32, 128))


@case("outputs_stored", note="int16: the counter of rows turns negative")
def short_counter(wrong):
    def body(xr, o):
        i = pl.program_id(0).astype(jnp.int16 if wrong else jnp.int32) * 16384

        @pl.when(i >= 0)
        def _():
            o[...] = xr[...]

    return of(call(body, (4,), [ROWS], ROWS, (32, 128)), data(32, 128))


@case("undefined_values", note="uint8 iota: column 256 is 0 again, and passes the mask")
def byte_mask(wrong):
    def body(xr, o):
        column = iota((8, 384), 1)
        column = column.astype(jnp.uint8).astype(I) if wrong else column
        o[...] = jnp.broadcast_to(jnp.where(column < 200, xr[...], 0).sum(1, keepdims=True), (8, 128))

    return of(call(body, (1,), [((8, 384), lambda i: (0, 0))], FIRST, (8, 128)), data(8, 200))


@case("body_in_bounds", note="a hash that means to wrap: its remainder has the sign of the hash")
def hash_bucket(wrong):
    def body(xr, o):
        h = (pl.program_id(0) + 1) * jnp.int32(-1640531527)
        b = lax.rem(h, jnp.int32(4)) if wrong else h & 3
        o[...] = xr[pl.ds(b * 8, 8), :]

    return of(call(body, (8,), [((32, 128), lambda i: (0, 0))], ROWS, (64, 128)), data(32, 128))


@case("body_in_bounds", note="a shift beyond the sign")
def shifted_start(wrong):
    def body(xr, o):
        i = pl.program_id(0)
        s = lax.shift_right_arithmetic((i << (30 if wrong else 3)), 27 if wrong else 0)
        o[...] = xr[pl.ds(s, 8), :]

    return of(call(body, (4,), [((32, 128), lambda i: (0, 0))], ROWS, (32, 128)), data(32, 128))


# ---------------------------------------------------------------- tables that the body stores to
@case("body_in_bounds", assume=("0 <= prefetch0 < 4",), note="the body counts an entry up, and reads by it")
def counted_table(wrong):
    def body(t, xr, o):
        i = pl.program_id(0)
        t[i] = t[i] + 1 if wrong else jnp.minimum(t[i] + 1, 3)
        o[...] = xr[pl.ds(t[i] * 8, 8), :]

    f = call(body, (4,), [((32, 128), lambda i, t: (0, 0))], ROWS, (32, 128), sem=("arbitrary",), prefetch=1)
    return of(f, np.zeros(4, np.int32), data(32, 128))


@case("body_in_bounds", assume=("0 <= prefetch0 < 4",), note="entries are swapped, which keeps what is assumed; or not")
def swapped_entries(wrong):
    def body(t, xr, o):
        i = pl.program_id(0)
        a, b = t[0], t[3]
        t[0] = b
        t[3] = a + (4 if wrong else 0)
        o[...] = xr[pl.ds(t[i] * 8, 8), :]

    f = call(body, (4,), [((32, 128), lambda i, t: (0, 0))], ROWS, (32, 128), sem=("arbitrary",), prefetch=1)
    return of(f, np.zeros(4, np.int32), data(32, 128))


# ---------------------------------------------------------------- copies by hand
def _fetch(x, buf, sem, j, s):
    return pltpu.make_async_copy(x.at[pl.ds(j * 8, 8)], buf.at[s], sem.at[s])


@case("dma_order", note="double buffer across programs, the prologue under the wrong program")
def double_buffer_prologue(wrong):
    def body(x, o, buf, sem):
        i, n = pl.program_id(0), pl.num_programs(0)
        s = lax.rem(i, 2)

        @pl.when(i == (1 if wrong else 0))
        def _():
            _fetch(x, buf, sem, i, s).start()

        @pl.when(i + 1 < n)
        def _():
            _fetch(x, buf, sem, i + 1, 1 - s).start()

        _fetch(x, buf, sem, i, s).wait()
        o[...] = buf[s]

    scratch = [VM((2, 8, 128), F), DMA((2,))]
    return of(call(body, (4,), [ANY], ROWS, (32, 128), scratch, ("arbitrary",)), data(32, 128))


@case("dma_order", note="three slots in a loop: two are started ahead, the third is read")
def three_slots(wrong):
    def body(x, o, buf, sem):
        def start(j):
            _fetch(x, buf, sem, j, lax.rem(j, 2 if wrong else 3)).start()

        start(0)
        start(1)

        def step(j, c):
            @pl.when(j + 2 < 8)
            def _():
                start(j + 2)

            s = lax.rem(j, 2 if wrong else 3)
            _fetch(x, buf, sem, j, s).wait()
            o[pl.ds(j * 8, 8), :] = buf[s]
            return c

        lax.fori_loop(0, 8, step, 0)

    whole = ((64, 128), lambda i: (0, 0))
    return of(call(body, (1,), [ANY], whole, (64, 128), [VM((3, 8, 128), F), DMA((3,))]), data(64, 128))


@case("dma_order", note="batched: double buffer under vmap")
def double_buffer_batched(wrong):
    def body(x, o, buf, sem):
        i = pl.program_id(0)
        c = pltpu.make_async_copy(x.at[pl.ds(i * 8, 8)], buf, sem)
        c.start()
        if not wrong:
            c.wait()
        o[...] = buf[...]

    f = call(body, (4,), [ANY], ROWS, (32, 128), [VM((8, 128), F), DMA(())])
    return of(jax.vmap(f), data(3, 32, 128))


@case("dma_order", note="write back: the buffer is stored to again before its copy has ended")
def write_back_once(wrong):
    def body(x, o, buf, sem):
        i = pl.program_id(0)
        c = pltpu.make_async_copy(buf, o.at[pl.ds(i * 8, 8)], sem)
        if wrong:

            @pl.when(i > 0)
            def _():
                buf[...] = x[...] * 2
                c.wait()

            @pl.when(i == 0)
            def _():
                buf[...] = x[...] * 2
        else:

            @pl.when(i > 0)
            def _():
                c.wait()

            buf[...] = x[...] * 2
        c.start()

        @pl.when(i == 3)
        def _():
            c.wait()

    f = call(body, (4,), [ROWS], ANY, (32, 128), [VM((8, 128), F), DMA(())], ("arbitrary",))
    return of(f, data(32, 128))


@case("dma_order", note="a scope ends with a copy in flight")
def scope_with_copy(wrong):
    def body(x, o):
        def inside(buf, sem):
            c = pltpu.make_async_copy(x.at[pl.ds(pl.program_id(0) * 8, 8)], buf, sem)
            c.start()
            if wrong:
                o[...] = jnp.zeros_like(o)
            else:
                c.wait()
                o[...] = buf[...]

        pl.run_scoped(inside, VM((8, 128), F), DMA(()))

    return of(call(body, (4,), [ANY], ROWS, (32, 128)), data(32, 128))


@case("dma_order", note="a semaphore counts by two, and is waited for by one")
def counted_by_two(wrong):
    def body(xr, o, s):
        pl.semaphore_signal(s, 2)
        o[...] = xr[...]
        pl.semaphore_wait(s, 1 if wrong else 2)

    return of(call(body, (4,), [ROWS], ROWS, (32, 128), [pltpu.SemaphoreType.REGULAR]), data(32, 128))


@case("dma_order", assume=("0 <= prefetch0 <= 1",), note="started and waited for under entries of a table")
def copy_under_a_table(wrong):
    def body(t, x, o, buf, sem):
        i = pl.program_id(0)
        c = pltpu.make_async_copy(x.at[pl.ds(i * 8, 8)], buf, sem)
        buf[...] = jnp.zeros_like(buf)

        @pl.when(t[i] == 1)
        def _():
            c.start()

        @pl.when(t[lax.rem(i + 1, 4) if wrong else i] == 1)
        def _():
            c.wait()

        o[...] = buf[...]

    f = call(body, (4,), [ANY], ROWS, (32, 128), [VM((8, 128), F), DMA(())], ("arbitrary",), 1)
    return of(f, np.array([1, 0, 1, 1], np.int32), data(32, 128))


@case("dma_order", note="a remote copy on a mesh of one device goes to itself: what came in is waited for, too")
def sent_to_itself(wrong):
    from jax.sharding import Mesh, PartitionSpec as P

    def body(x, o, out, come):
        me = lax.axis_index("d")
        c = pltpu.make_async_remote_copy(x, o, out, come, device_id=(me,))
        c.start()
        c.wait_send()
        if not wrong:
            c.wait_recv()

    def f(x):
        spec, out = pl.BlockSpec(memory_space=pl.ANY), jax.ShapeDtypeStruct((8, 128), F)
        return pl.pallas_call(body, in_specs=[spec], out_specs=spec, out_shape=out, scratch_shapes=[DMA, DMA])(x)

    mesh = Mesh(np.array(jax.devices()[:1]), ("d",))
    return of(jax.shard_map(f, mesh=mesh, in_specs=P("d"), out_specs=P("d"), check_vma=False), data(8, 128))


# ---------------------------------------------------------------- outputs, visited again
@case("revisits", note="a block of an output is left and visited again")
def visited_again(wrong):
    def body(xr, o):
        zero_at(pl.program_id(0 if wrong else 1) == 0, o)
        o[...] += xr[...]

    back = (lambda i, j: (j, 0)) if wrong else (lambda i, j: (i, 0))
    given = (lambda i, j: (j, i)) if wrong else (lambda i, j: (i, j))
    return of(call(body, (2, 2), [((8, 128), given)], ((8, 128), back), (16, 128)), data(16, 256))


@case("outputs_covered", note="blocks of 16 rows stepped by 2")
def block_left_out(wrong):
    def body(xr, o):
        o[...] = xr[...]

    step = ((8, 128), lambda i: (i * 2 if wrong else i, 0))
    return of(call(body, (2,), [step], step, (32 if wrong else 16, 128)), data(32 if wrong else 16, 128))


@case("parallel_writes", note="two parallel programs add to one block")
def parallel_sum(wrong):
    def body(xr, o):
        zero_at(pl.program_id(1) == 0, o)
        o[...] += xr[...]

    at = ((8, 128), (lambda i, k: (0, 0)) if wrong else (lambda i, k: (i, 0)))
    f = call(
        body, (2, 2), [((8, 128), lambda i, k: (i, k))], at, (8 if wrong else 16, 128), sem=("parallel", "arbitrary")
    )
    return of(f, data(16, 256))


# ---------------------------------------------------------------- ragged tails
@case("undefined_values", note="softmax over a tail: the sum runs over the padding")
def softmax_tail(wrong):
    def body(xr, o):
        held = iota((8, 256), 1) < 200
        x = xr[...]
        m = jnp.where(held, x, -jnp.inf).max(1, keepdims=True)
        e = jnp.exp(x - m)
        o[...] = e / (e if wrong else jnp.where(held, e, 0)).sum(1, keepdims=True)

    whole = ((8, 256), lambda i: (i, 0))
    return of(call(body, (2,), [whole], whole, (16, 200)), data(16, 200))


@case("undefined_values", note="the tail is masked by the global row, not by the local one")
def tail_by_local_row(wrong):
    def body(xr, o):
        i = pl.program_id(0)
        row = iota((8, 128), 0) + (0 if wrong else i * 8)
        zero_at(i == 0, o)
        o[...] += jnp.broadcast_to(jnp.where(row < 20, xr[...], 0).sum(0, keepdims=True), (8, 128))

    return of(call(body, (3,), [ROWS], FIRST, (8, 128)), data(20, 128))


@case("body_in_bounds", note="rows in chunks of 16, of which 40 are no multiple")
def chunks_of_a_tail(wrong):
    def body(x, o, buf, sem):
        def step(j, c):
            r = j * 16 if wrong else jnp.minimum(j * 16, 24)
            d = pltpu.make_async_copy(x.at[pl.ds(r, 16)], buf, sem)
            d.start()
            d.wait()
            o[pl.ds(r if not wrong else jnp.minimum(r, 24), 16), :] = buf[...]
            return c

        lax.fori_loop(0, 3, step, 0)

    return of(
        call(body, (1,), [ANY], ((40, 128), lambda i: (0, 0)), (40, 128), [VM((16, 128), F), DMA(())]), data(40, 128)
    )


# ---------------------------------------------------------------- pipelines in the body
def _piped(inner, inside=ROWS, out=ROWS, grid=(4,), shape=(32, 128), scratch=()):
    def body(x, o, *more):
        pltpu.emit_pipeline(
            functools.partial(inner, *more) if more else inner,
            grid=grid,
            in_specs=[pl.BlockSpec(*inside)],
            out_specs=[pl.BlockSpec(*out)],
        )(x, o)

    return call(body, (1,), [ANY], ANY, shape, scratch)


@case("outputs_stored", note="the body of a pipeline stores in even steps")
def pipeline_even(wrong):
    def inner(xr, o):
        @pl.when(lax.rem(pl.program_id(0), 2 if wrong else 1) == 0)
        def _():
            o[...] = xr[...]

    return of(_piped(inner), data(32, 128))


@case("initialised", note="an accumulator of a pipeline is zeroed in its second step")
def pipeline_sum(wrong):
    def inner(acc, xr, o):
        k = pl.program_id(0)
        zero_at(k == (1 if wrong else 0), acc)
        acc[...] += xr[...]
        o[...] = acc[...]

    return of(_piped(inner, scratch=[VM((8, 128), F)]), data(32, 128))


@case("blocks_in_bounds", note="a pipeline looks one block ahead")
def pipeline_ahead(wrong):
    def inner(xr, o):
        o[...] = xr[...]

    return of(_piped(inner, ((8, 128), lambda i: (i + 1 if wrong else i, 0))), data(32, 128))


# ---------------------------------------------------------------- scopes, dynamic grids, shared buffers
@case("initialised", note="an accumulator in a scope of its own is new in every program")
def scoped_sum(wrong):
    def body(xr, o):
        def inside(acc):
            if wrong:
                zero_at(pl.program_id(0) == 0, acc)
            else:
                acc[...] = jnp.zeros_like(acc)
            acc[...] += xr[...]
            o[...] = acc[...]

        pl.run_scoped(inside, VM((8, 128), F))

    return of(call(body, (4,), [ROWS], ROWS, (32, 128), sem=("arbitrary",)), data(32, 128))


@case("initialised", note="a dynamic grid: zeroed in the last program instead of the first")
def dynamic_grid_sum(wrong):
    def body(xr, o):
        i = pl.program_id(0)
        zero_at(i == (pl.num_programs(0) - 1 if wrong else 0), o)
        o[...] += xr[...]

    def f(n, x):
        spec = pl.BlockSpec(*ROWS)
        return pl.pallas_call(
            body, grid=(jnp.clip(n[0], 1, 4),), in_specs=[spec], out_specs=pl.BlockSpec(*FIRST),
            out_shape=jax.ShapeDtypeStruct((8, 128), F),
        )(x)  # fmt: skip

    return of(f, np.array([4], np.int32), data(32, 128))


@case("alias_hazard", note="in place: a block is read that the program before has written")
def in_place_behind(wrong):
    def body(xr, o):
        o[...] = xr[...] + 1

    at = ((8, 128), (lambda i: (jnp.maximum(i - 1, 0), 0)) if wrong else (lambda i: (i, 0)))
    return of(call(body, (4,), [at], ROWS, (32, 128), sem=("arbitrary",), aliases={0: 0}), data(32, 128))


@case(
    "outputs_stored",
    note="in place by hand: all but one block is copied back; nothing is lost where buffers are shared",
)
def not_in_place(wrong):
    def body(x, o, buf, sem):
        i = pl.program_id(0)
        c = pltpu.make_async_copy(x.at[pl.ds(i * 8, 8)], buf, sem)
        c.start()
        c.wait()

        @pl.when(i != 2)
        def _():
            d = pltpu.make_async_copy(buf, o.at[pl.ds(i * 8, 8)], sem)
            d.start()
            d.wait()

    scratch = [VM((8, 128), F), DMA(())]
    return of(call(body, (4,), [ANY], ANY, (32, 128), scratch, aliases={} if wrong else {0: 0}), data(32, 128))


@case("undefined_values", note="a scratch row that only padding was written to decides a branch")
def branch_on_padding(wrong):
    def body(xr, o, s):
        s[...] = xr[...]
        column = 201 if wrong else 199
        o[...] = jnp.zeros_like(o)

        @pl.when(jnp.max(s[0:1, column : column + 1]) > 0)
        def _():
            o[...] = jnp.ones_like(o)

    return of(call(body, (1,), [((8, 256), lambda i: (0, 0))], FIRST, (8, 128), [VM((8, 256), F)]), data(8, 200))


@case("initialised", note="a flag in SMEM, set by the program before, says whether scratch holds anything")
def flag_of_the_program_before(wrong):
    def body(xr, o, flag, s):
        i = pl.program_id(0)

        @pl.when(i == 0)
        def _():
            flag[0] = 1 if wrong else 0

        @pl.when(flag[0] == 0)
        def _():
            s[...] = xr[...]
            flag[0] = 1

        o[...] = s[...]

    return of(call(body, (4,), [ROWS], ROWS, (32, 128), [SM((1,), I), VM((8, 128), F)], ("arbitrary",)), data(32, 128))
