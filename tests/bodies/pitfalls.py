# ruff: noqa
"""Kernels with one body error each, and the right twin of each; the truth of each was found by running it.

`CASES[name].build(wrong=True|False)` gives `Built(fn, args, want)`.

fn(*args, interpret=X) calls pallas_call with that interpret value, so `jax.make_jaxpr(lambda *a: fn(*a))(*args)` traces it.
Kinds: body_in_bounds, outputs_stored, initialised, undefined_values, dma_order, body_races.
Everything right must be proved (no false alarm), every wrong one refuted with exactly `kind` (others may follow from it).
`assume`: what must be said of scalar-prefetch tables for the RIGHT twin to be provable.
"""

from __future__ import annotations
import functools
from dataclasses import dataclass, field
from typing import Any, Callable
import numpy as np
import jax, jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

F, I = jnp.float32, jnp.int32
ANY = "any"


@dataclass
class Built:
    fn: Callable[..., Any]
    args: tuple
    want: Any  # numpy result(s)


@dataclass
class Case:
    name: str
    kind: str
    build: Callable[[bool], Built]
    cores: int = 1
    assume: tuple = ()
    note: str = ""
    also: tuple = ()  # kinds that may be refuted as well in the wrong variant


ASKED = ("body_in_bounds", "body_races", "dma_order", "initialised", "outputs_stored", "undefined_values")
"""The properties of bodies."""

CASES: dict[str, Case] = {}


def case(kind, cores=1, assume=(), note="", also=()):
    def deco(build):
        CASES[build.__name__] = Case(build.__name__, kind, build, cores, tuple(assume), note, tuple(also))
        return build

    return deco


def spec(s):
    if s == ANY:
        return pl.BlockSpec(memory_space=pl.ANY)
    if isinstance(s, pl.BlockSpec):
        return s
    return pl.BlockSpec(*s)


def call(body, grid, ins, outs, shapes, scratch=(), sem=None, prefetch=0, aliases=None):
    """A function of arrays and `interpret`. shapes: out shapes (or ShapeDtypeStructs)."""
    many = isinstance(outs, list)
    os_ = outs if many else [outs]
    sh = [
        s if isinstance(s, jax.ShapeDtypeStruct) else jax.ShapeDtypeStruct(s, F) for s in (shapes if many else [shapes])
    ]

    def fn(*args, interpret=False):
        kw = dict(compiler_params=pltpu.CompilerParams(dimension_semantics=sem)) if sem else {}
        gs = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=prefetch,
            grid=grid,
            in_specs=[spec(s) for s in ins],
            out_specs=[spec(s) for s in os_],
            scratch_shapes=list(scratch),
        )
        r = pl.pallas_call(
            body, grid_spec=gs, out_shape=sh, interpret=interpret, input_output_aliases=aliases or {}, **kw
        )(*args)
        return r if many else r[0]

    return fn


rng = np.random.default_rng(0)


def data(*shape):
    return rng.integers(1, 9, shape).astype(np.float32)


def iota(shape, d):
    return lax.broadcasted_iota(jnp.int32, shape, d)


def zero_at(cond, *refs):
    @pl.when(cond)
    def _():
        for r in refs:
            r[...] = jnp.zeros_like(r)


# ---------------------------------------------------------------- 4 undefined values of partial blocks
def _mm(maskx, masky, how="where"):
    M, K, N, bk = 8, 200, 128, 128
    x, y = data(M, K), data(K, N)

    def body(xr, yr, o, acc):
        k = pl.program_id(0)
        zero_at(k == 0, acc)
        a, b = xr[...], yr[...]
        if how == "mul":
            # not (index < K).astype(F): XLA:CPU rewrites x * convert(pred) to select(pred, x, 0), which hides the error in every interpreter
            a = a * jnp.clip(K - (k * bk + iota(a.shape, 1)), 0, 1).astype(F)
            b = b * jnp.clip(K - (k * bk + iota(b.shape, 0)), 0, 1).astype(F)
        elif how == "local":
            a = jnp.where(iota(a.shape, 1) < K, a, 0)
            b = jnp.where(iota(b.shape, 0) < K, b, 0)
        elif how == "swapped":
            a = jnp.where(k * bk + iota(a.shape, 1) < K, 0, a)
            b = jnp.where(k * bk + iota(b.shape, 0) < K, b, 0)
        elif how == "off":
            a = jnp.where(k * bk + iota(a.shape, 1) <= K, a, 0)
            b = jnp.where(k * bk + iota(b.shape, 0) <= K, b, 0)
        else:
            if maskx:
                a = jnp.where(k * bk + iota(a.shape, 1) < K, a, 0)
            if masky:
                b = jnp.where(k * bk + iota(b.shape, 0) < K, b, 0)
        acc[...] += jnp.dot(a, b, preferred_element_type=F)

        @pl.when(k == pl.num_programs(0) - 1)
        def _():
            o[...] = acc[...]

    f = call(
        body,
        (2,),
        [((M, bk), lambda k: (0, k)), ((bk, N), lambda k: (k, 0))],
        ((M, N), lambda k: (0, 0)),
        (M, N),
        [pltpu.VMEM((M, N), F)],
        ("arbitrary",),
    )
    return Built(f, (x, y), x @ y)


@case("undefined_values")
def matmul_k_partial(wrong):
    return _mm(not wrong, not wrong)


@case("undefined_values", note="0 * NaN: masking one operand is not enough")
def matmul_mask_one_operand(wrong):
    return _mm(True, not wrong)


@case("undefined_values", note="NaN * 0 stays NaN")
def matmul_mask_by_multiply(wrong):
    return _mm(True, True, "mul" if wrong else "where")


@case("undefined_values", note="mask compares the block-local index")
def matmul_mask_local_index(wrong):
    return _mm(True, True, "local" if wrong else "where")


@case("undefined_values", note="where with its branches swapped")
def matmul_mask_swapped(wrong):
    return _mm(True, True, "swapped" if wrong else "where")


@case("undefined_values", note="<= instead of <: one padding column")
def matmul_mask_off_by_one(wrong):
    return _mm(True, True, "off" if wrong else "where")


@case("undefined_values", note="mask on the step before the last one")
def matmul_mask_wrong_step(wrong):
    M, K, N, bk = 8, 200, 128, 128
    x, y = data(M, K), data(K, N)

    def body(xr, yr, o):
        k = pl.program_id(0)
        zero_at(k == 0, o)

        def masked():
            return (
                jnp.where(k * bk + iota((M, bk), 1) < K, xr[...], 0),
                jnp.where(k * bk + iota((bk, N), 0) < K, yr[...], 0),
            )

        a, b = lax.cond(k == (0 if wrong else 1), masked, lambda: (xr[...], yr[...]))
        o[...] += jnp.dot(a, b, preferred_element_type=F)

    return Built(
        call(
            body,
            (2,),
            [((M, bk), lambda k: (0, k)), ((bk, N), lambda k: (k, 0))],
            ((M, N), lambda k: (0, 0)),
            (M, N),
            sem=("arbitrary",),
        ),
        (x, y),
        x @ y,
    )


def _rowwise(body, want, cols=200, rows=16, out_cols=None, x=None, grid=2):
    x = data(rows, cols) if x is None else x
    oc = out_cols or 256
    f = call(
        body, (grid,), [((8, 256), lambda i: (i, 0))], ((8, oc), lambda i: (i, 0)), (rows, cols if oc == 256 else oc)
    )
    return Built(f, (x,), want(x))


@case("undefined_values")
def softmax_missing_mask(wrong):
    def body(x, o):
        v = x[...]
        if not wrong:
            v = jnp.where(iota(v.shape, 1) < 200, v, -jnp.inf)
        e = jnp.exp(v - v.max(1, keepdims=True))
        o[...] = e / e.sum(1, keepdims=True)

    def want(x):
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    return _rowwise(body, want)


@case("undefined_values", note="the maximum is taken before the mask")
def softmax_mask_after_max(wrong):
    def body(x, o):
        v = x[...]
        m = iota(v.shape, 1) < 200
        if wrong:
            e = jnp.where(m, jnp.exp(v - v.max(1, keepdims=True)), 0)
        else:
            v = jnp.where(m, v, -1e30)
            e = jnp.where(m, jnp.exp(v - v.max(1, keepdims=True)), 0)
        o[...] = e / e.sum(1, keepdims=True)

    def want(x):
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    return _rowwise(body, want)


@case("undefined_values", note="divides by the true N but sums the padding too")
def layernorm_mean_padded(wrong):
    def body(x, o):
        v = x[...]
        m = iota(v.shape, 1) < 200
        w = v if wrong else jnp.where(m, v, 0)
        mu = w.sum(1, keepdims=True) / 200
        d = jnp.where(m, v - mu, 0)
        o[...] = d * lax.rsqrt((d * d).sum(1, keepdims=True) / 200 + 1e-5)

    def want(x):
        d = x - x.mean(1, keepdims=True)
        return d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5)

    return _rowwise(body, want)


@case("undefined_values", note="mean masked, variance not")
def layernorm_variance_padded(wrong):
    def body(x, o):
        v = x[...]
        m = iota(v.shape, 1) < 200
        mu = jnp.where(m, v, 0).sum(1, keepdims=True) / 200
        d = v - mu
        dd = d if wrong else jnp.where(m, d, 0)
        o[...] = d * lax.rsqrt((dd * dd).sum(1, keepdims=True) / 200 + 1e-5)

    def want(x):
        d = x - x.mean(1, keepdims=True)
        return d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5)

    return _rowwise(body, want)


@case("undefined_values", note="a forward cumsum is fine: prefixes of valid columns are valid; a reverse one is not")
def cumsum_reverse_over_padding(wrong):
    def body(x, o):
        o[...] = lax.cumsum(x[...], axis=1, reverse=wrong)

    def want(x):
        return np.cumsum(x[:, ::-1], 1)[:, ::-1] if wrong else np.cumsum(x, 1)

    return _rowwise(body, want)


@case("undefined_values")
def argmax_partial_block(wrong):
    def body(x, o):
        v = x[...]
        if not wrong:
            v = jnp.where(iota(v.shape, 1) < 200, v, -jnp.inf)
        o[...] = jnp.broadcast_to(jnp.argmax(v, 1)[:, None].astype(F), (8, 128))

    return _rowwise(
        body, lambda x: np.broadcast_to(np.argmax(x, 1)[:, None].astype(np.float32), (16, 128)), out_cols=128
    )


@case("undefined_values", note="row-wise work leaves garbage rows in garbage rows (fine); column-wise work does not")
def reduce_rows_of_partial_rows(wrong):
    x = data(12, 128)

    def body(xr, o):
        v = xr[...]
        o[...] = v - (v.mean(0, keepdims=True) if wrong else v.mean(1, keepdims=True))

    def want():
        if not wrong:
            return x - x.mean(1, keepdims=True)
        p = np.full((16, 128), np.nan, np.float32)
        p[:12] = x
        return x - np.concatenate([np.broadcast_to(x[:8].mean(0), (8, 128)), np.broadcast_to(x[8:].mean(0), (4, 128))])

    return Built(
        call(body, (2,), [((8, 128), lambda i: (i, 0))], ((8, 128), lambda i: (i, 0)), (12, 128)), (x,), want()
    )


@case("undefined_values", note="reverse along the partial axis")
def reverse_partial_axis(wrong):
    def body(x, o):
        o[...] = lax.rev(x[...], (1 if wrong else 0,))

    def want(x):
        return x[:, ::-1] if wrong else np.concatenate([x[:8][::-1], x[8:][::-1]])

    return _rowwise(body, want)


@case("undefined_values", note="a roll moves the last, undefined column to column 0")
def roll_partial_axis(wrong):
    def body(x, o):
        r = pltpu.roll(x[...], 1, 1)
        o[...] = r if wrong else jnp.where(iota(r.shape, 1) == 0, 0, r)

    def want(x):
        w = np.roll(x, 1, 1)
        w[:, 0] = w[:, 0] if wrong else 0
        return w

    return _rowwise(body, want)


@case(
    "undefined_values",
    note="a transposed store is exact: garbage rows become garbage columns, unless the output is full width",
)
def transpose_partial_store(wrong):
    x = data(200, 128)

    def body(xr, o):
        o[...] = xr[...].T

    out = (128, 256) if wrong else (128, 200)
    want = np.zeros(out, np.float32)
    want[:, :200] = x.T
    return Built(call(body, (2,), [((128, 128), lambda i: (i, 0))], ((128, 128), lambda i: (0, i)), out), (x,), want)


@case("undefined_values", note="broadcast of a column that is padding")
def broadcast_last_block_column(wrong):
    def body(x, o):
        c = 255 if wrong else 199
        o[...] = x[...] - x[:, c : c + 1]

    return _rowwise(body, lambda x: x - x[:, -1:])


@case("undefined_values", note="neighbour difference reads one column past N")
def shift_left_reads_padding(wrong):
    def body(x, o):
        v = x[...]
        nxt = jnp.concatenate([v[:, 1:], v[:, :1]], 1)
        o[...] = nxt - v if wrong else jnp.where(iota(v.shape, 1) < 199, nxt - v, 0)

    def want(x):
        w = np.zeros_like(x)
        w[:, :-1] = x[:, 1:] - x[:, :-1]
        return w

    return _rowwise(body, want)


@case("undefined_values", note="running maximum over a partial last block")
def running_max_partial(wrong):
    x = data(8, 200)

    def body(xr, o):
        k = pl.program_id(0)
        v = xr[...]
        if not wrong:
            v = jnp.where(k * 128 + iota(v.shape, 1) < 200, v, -jnp.inf)
        m = jnp.broadcast_to(v.max(1, keepdims=True), (8, 128))

        @pl.when(k == 0)
        def _():
            o[...] = m

        @pl.when(k > 0)
        def _():
            o[...] = jnp.maximum(o[...], m)

    return Built(
        call(body, (2,), [((8, 128), lambda k: (0, k))], ((8, 128), lambda k: (0, 0)), (8, 128), sem=("arbitrary",)),
        (x,),
        np.broadcast_to(x.max(1, keepdims=True), (8, 128)),
    )


@case("undefined_values", note="loop over the columns of a partial block, trip count is the block's")
def loop_over_padded_rows(wrong):
    x = data(12, 128)

    def body(xr, o):
        n = 16 if wrong else 12
        o[...] = jnp.broadcast_to(
            lax.fori_loop(0, n, lambda r, a: a + xr[pl.ds(r, 1), :], jnp.zeros((1, 128), F)), (8, 128)
        )

    return Built(
        call(body, (1,), [((16, 128), lambda i: (0, 0))], ((8, 128), lambda i: (0, 0)), (8, 128)),
        (x,),
        np.broadcast_to(x.sum(0), (8, 128)),
    )


@case("undefined_values", note="counting garbage integers")
def count_positive_padding(wrong):
    x = rng.integers(-5, 5, (8, 200)).astype(np.int32)

    def body(xr, o):
        v = xr[...]
        p = v > 0
        if not wrong:
            p = p & (iota(v.shape, 1) < 200)
        o[...] = jnp.broadcast_to(jnp.where(p, 1, 0).sum(1, keepdims=True), (8, 128)).astype(I)

    return Built(
        call(
            body, (1,), [((8, 256), lambda i: (0, 0))], ((8, 128), lambda i: (0, 0)), jax.ShapeDtypeStruct((8, 128), I)
        ),
        (x,),
        np.broadcast_to((x > 0).sum(1, keepdims=True), (8, 128)),
    )


@case(
    "undefined_values",
    note="filtering NaN is no mask: padding is only NaN in interpreters (uninitialized_memory='zero' shows it)",
)
def nan_filter_is_no_mask(wrong):
    def body(x, o):
        v = x[...]
        v = jnp.where(jnp.isnan(v) if wrong else iota(v.shape, 1) >= 200, jnp.inf, v)
        o[...] = jnp.broadcast_to(v.min(1, keepdims=True), (8, 128))

    return _rowwise(body, lambda x: np.broadcast_to(x.min(1, keepdims=True), (16, 128)), out_cols=128)


@case("undefined_values", note="dot over the free dimension of a partial block is fine, over its rows it is not")
def dot_transposed_contraction(wrong):
    x, y = data(12, 128), data(12 if wrong else 128, 128)
    dn = (((0,), (0,)), ((), ())) if wrong else (((1,), (0,)), ((), ()))

    def body(xr, yr, o):
        o[...] = lax.dot_general(xr[...], yr[...], dn, preferred_element_type=F)

    return Built(
        call(
            body,
            (1,),
            [((16, 128), lambda i: (0, 0)), ((16 if wrong else 128, 128), lambda i: (0, 0))],
            ((128 if wrong else 16, 128), lambda i: (0, 0)),
            (128 if wrong else 12, 128),
        ),
        (x, y),
        (x.T if wrong else x) @ y,
    )


@case("undefined_values", note="reshape mixes the partial axis into another one, then reduces")
def reshape_then_reduce(wrong):
    x = data(12, 128)

    def body(xr, o):
        v = xr[...]
        if not wrong:
            v = jnp.where(iota(v.shape, 0) < 12, v, 0)
        o[...] = jnp.pad(v.reshape(2, 8, 128).sum(0), ((0, 0), (0, 0)))

    want = x[:8].copy()
    want[:4] += x[8:]
    return Built(call(body, (1,), [((16, 128), lambda i: (0, 0))], ((8, 128), lambda i: (0, 0)), (8, 128)), (x,), want)


# ---------------------------------------------------------------- 3 initialised
def _acc(init, dims=("parallel", "arbitrary"), window=False):
    x = data(16, 256)

    def body(xr, o, *s):
        i, k = pl.program_id(0), pl.program_id(1)
        a = o if window else s[0]
        c = init(i, k)
        if c is not None:
            zero_at(c, a)
        a[...] += xr[...]
        if not window:

            @pl.when(k == 1)
            def _():
                o[...] = a[...]

    f = call(
        body,
        (2, 2),
        [((8, 128), lambda i, k: (i, k))],
        ((8, 128), lambda i, k: (i, 0)),
        (16, 128),
        [] if window else [pltpu.VMEM((8, 128), F)],
        dims,
    )
    return Built(f, (x,), x[:, :128] + x[:, 128:])


@case("initialised", note="first step is 0, not 1", also=("body_races",))
def init_at_wrong_step(wrong):
    return _acc(lambda i, k: k == (1 if wrong else 0))


@case(
    "initialised",
    note="initialised along the wrong grid axis: only the first row of programs",
    also=("body_races",),
)
def init_under_wrong_axis(wrong):
    return _acc(lambda i, k: (i == 0) if wrong else (k == 0))


@case("initialised", note="accumulates into the output window, never initialised")
def window_accumulator_uninitialised(wrong):
    return _acc(lambda i, k: None if wrong else k == 0, window=True)


@case("initialised", note="init condition needs both to be 0")
def init_and_instead_of_one_axis(wrong):
    return _acc(lambda i, k: ((i == 0) & (k == 0)) if wrong else (k == 0), window=True)


@case("initialised", note="reads o_ref before it is stored")
def read_output_before_store(wrong):
    x = data(16, 128)

    def body(xr, o):
        o[...] = (o[...] if wrong else 1.0) + xr[...]

    return Built(call(body, (2,), [((8, 128), lambda i: (i, 0))], ((8, 128), lambda i: (i, 0)), (16, 128)), (x,), x + 1)


@case("initialised", note="half of the scratch is written, all of it is read")
def scratch_half_written(wrong):
    x = data(16, 128)

    def body(xr, o, s):
        s[pl.ds(0, 8), :] = xr[...]
        if not wrong:
            s[pl.ds(8, 8), :] = jnp.zeros((8, 128), F)
        o[...] = s[pl.ds(0, 8), :] + s[pl.ds(8, 8), :]

    return Built(
        call(
            body,
            (2,),
            [((8, 128), lambda i: (i, 0))],
            ((8, 128), lambda i: (i, 0)),
            (16, 128),
            [pltpu.VMEM((16, 128), F)],
        ),
        (x,),
        x,
    )


@case("initialised", note="run_scoped memory is new in every program")
def run_scoped_is_not_persistent(wrong):
    x = data(16, 128)

    def body(xr, o, s):
        def inner(t):
            a = t if wrong else s
            zero_at(pl.program_id(0) == 0, a)
            a[...] += xr[...]
            o[...] = a[...]

        pl.run_scoped(inner, pltpu.VMEM((8, 128), F))

    return Built(
        call(
            body,
            (2,),
            [((8, 128), lambda i: (i, 0))],
            ((8, 128), lambda i: (i, 0)),
            (16, 128),
            [pltpu.VMEM((8, 128), F)],
            ("arbitrary",),
        ),
        (x,),
        np.concatenate([x[:8], x[:8] + x[8:]]),
    )


@case("initialised", note="an aliased output window is not filled with the input's values")
def alias_does_not_fill_the_window(wrong):
    x, y = data(16, 128), data(16, 128)

    def body(xr, yr, o):
        o[...] = (o[...] if wrong else xr[...]) + yr[...]

    return Built(
        call(body, (2,), [((8, 128), lambda i: (i, 0))] * 2, ((8, 128), lambda i: (i, 0)), (16, 128), aliases={0: 0}),
        (x, y),
        x + y,
    )


@case("initialised", assume=("0 <= prefetch0 <= 1",), note="initialised only if the table says so")
def init_under_table(wrong):
    t, x = np.array([1, 0], np.int32), data(16, 128)

    def body(tr, xr, o, s):
        i = pl.program_id(0)
        if wrong:

            @pl.when(tr[i] == 0)
            def _():
                s[...] = jnp.zeros_like(s)
        else:
            s[...] = jnp.zeros_like(s)
        o[...] = s[...] + xr[...]

    return Built(
        call(
            body,
            (2,),
            [((8, 128), lambda i, t: (i, 0))],
            ((8, 128), lambda i, t: (i, 0)),
            (16, 128),
            [pltpu.VMEM((8, 128), F)],
            prefetch=1,
        ),
        (t, x),
        x,
    )


# ---------------------------------------------------------------- 2 outputs_stored
def _store(body, want=None, scratch=(), x=None, out=None, sem=None):
    x = data(32, 128) if x is None else x
    return Built(
        call(body, (4,), [((8, 128), lambda i: (i, 0))], out or ((8, 128), lambda i: (i, 0)), (32, 128), scratch, sem),
        (x,),
        x if want is None else want(x),
    )


@case("outputs_stored")
def store_only_even_programs(wrong):
    def body(x, o):
        if wrong:

            @pl.when(pl.program_id(0) % 2 == 0)
            def _():
                o[...] = x[...]
        else:
            o[...] = x[...]

    return _store(body)


@case("outputs_stored", note="half of the rows")
def store_half_the_rows(wrong):
    def body(x, o):
        n = 4 if wrong else 8
        o[pl.ds(0, n), :] = x[pl.ds(0, n), :]

    return _store(body)


@case("outputs_stored", note="last step never comes: k == nk")
def final_store_never_runs(wrong):
    x = data(8, 512)

    def body(xr, o, a):
        k = pl.program_id(0)
        zero_at(k == 0, a)
        a[...] += xr[...]

        @pl.when(k == (4 if wrong else 3))
        def _():
            o[...] = a[...]

    return Built(
        call(
            body,
            (4,),
            [((8, 128), lambda k: (0, k))],
            ((8, 128), lambda k: (0, 0)),
            (8, 128),
            [pltpu.VMEM((8, 128), F)],
            ("arbitrary",),
        ),
        (x,),
        x.reshape(8, 4, 128).sum(1),
    )


@case("outputs_stored", note="loop stores 7 of 8 rows")
def row_loop_off_by_one(wrong):
    def body(x, o):
        def f(r, _):
            o[pl.ds(r, 1), :] = x[pl.ds(r, 1), :]
            return 0

        lax.fori_loop(0, 7 if wrong else 8, f, 0)

    return _store(body)


@case("outputs_stored", note="even rows only: strided store")
def strided_store_one_phase(wrong):
    def body(x, o):
        o[pl.ds(0, 4, stride=2), :] = x[pl.ds(0, 4, stride=2), :]
        if not wrong:
            o[pl.ds(1, 4, stride=2), :] = x[pl.ds(1, 4, stride=2), :]

    return _store(body)


@case("outputs_stored", note="masked store: the mask lacks valid columns; the right twin masks exactly the padding")
def masked_store_too_narrow(wrong):
    x = data(8, 100)

    def body(xr, o):
        pltpu.store(o, xr[...], mask=iota((8, 128), 1) < (96 if wrong else 100))

    return Built(call(body, (1,), [((8, 128), lambda i: (0, 0))], ((8, 128), lambda i: (0, 0)), (8, 100)), (x,), x)


@case("outputs_stored", note="second output only on one branch")
def second_output_on_one_branch(wrong):
    x = data(32, 128)

    def body(xr, o, p):
        o[...] = xr[...]

        @pl.when(pl.program_id(0) < 2)
        def _():
            p[...] = xr[...] * 2

        if not wrong:

            @pl.when(pl.program_id(0) >= 2)
            def _():
                p[...] = xr[...] * 2

    b = ((8, 128), lambda i: (i, 0))
    return Built(call(body, (4,), [b], [b, b], [(32, 128)] * 2), (x,), [x, x * 2])


@case("outputs_stored", note="hand-written output copies stop one block early")
def hbm_output_last_block_missing(wrong):
    x = data(32, 128)

    def body(xr, o, s):
        def f(i, _):
            pltpu.sync_copy(xr.at[pl.ds(i * 8, 8)], o.at[pl.ds(i * 8, 8)])
            return 0

        lax.fori_loop(0, 3 if wrong else 4, f, 0)

    return Built(call(body, (1,), [ANY], ANY, (32, 128), [pltpu.VMEM((8, 128), F)]), (x,), x)


# ---------------------------------------------------------------- 1 body_in_bounds
def _whole(body, want, x=None, prefetch=(), n=4):
    x = data(32, 128) if x is None else x
    p = len(prefetch)
    return Built(
        call(body, (n,), [(x.shape, lambda i, *t: (0, 0))], ((8, 128), lambda i, *t: (i, 0)), (8 * n, 128), prefetch=p),
        (*prefetch, x),
        want(x),
    )


@case("body_in_bounds")
def slice_past_the_window(wrong):
    def body(x, o):
        o[...] = x[pl.ds(pl.program_id(0) * 8 + (4 if wrong else 0), 8), :]

    return _whole(body, lambda x: x)


@case("body_in_bounds", note="negative start; interpret=True wraps it")
def slice_before_the_window(wrong):
    def body(x, o):
        s = pl.program_id(0) * 8 - 4
        o[...] = x[pl.ds(s if wrong else jnp.maximum(s, 0), 8), :]

    return _whole(body, lambda x: np.concatenate([x[:8], x[4:28]]))


@case("body_in_bounds", assume=("0 <= prefetch0 <= 28",), note="start from a table; the right twin clamps")
def table_start_unclamped(wrong):
    t = np.array([0, 8, 28, 24], np.int32)

    def body(tr, x, o):
        s = tr[pl.program_id(0)]
        o[...] = x[pl.ds(s if wrong else jnp.minimum(s, 24), 8), :]

    return _whole(body, lambda x: np.concatenate([x[min(s, 24) : min(s, 24) + 8] for s in t]), prefetch=(t,))


@case("body_in_bounds", note="trip count one too many")
def fori_one_trip_too_many(wrong):
    def body(x, o):
        o[...] = lax.fori_loop(0, 5 if wrong else 4, lambda i, a: a + x[pl.ds(i * 8, 8), :], jnp.zeros((8, 128), F))

    return _whole(body, lambda x: x.reshape(4, 8, 128).sum(0), n=1)


@case("body_in_bounds", note="lookahead start without its guard in the last step")
def lookahead_without_guard(wrong):
    x = data(32, 128)

    def body(xr, o, buf, sem):
        i = pl.program_id(0)
        cp = lambda j, s: pltpu.make_async_copy(xr.at[pl.ds(j * 8, 8)], buf.at[s], sem.at[s])

        @pl.when(i == 0)
        def _():
            cp(0, 0).start()

        if wrong:
            cp(i + 1, (i + 1) % 2).start()
        else:

            @pl.when(i + 1 < pl.num_programs(0))
            def _():
                cp(i + 1, (i + 1) % 2).start()

        cp(i, i % 2).wait()
        o[...] = buf[i % 2]
        if wrong:

            @pl.when(i + 1 == pl.num_programs(0))
            def _():
                cp(i + 1, (i + 1) % 2).wait()

    return Built(
        call(
            body,
            (4,),
            [ANY],
            ((8, 128), lambda i: (i, 0)),
            (32, 128),
            [pltpu.VMEM((2, 8, 128), F), pltpu.SemaphoreType.DMA((2,))],
            ("arbitrary",),
        ),
        (x,),
        x,
    )


@case("body_in_bounds", note="slot index i % 3 in a buffer of two")
def slot_modulus_too_large(wrong):
    x = data(32, 128)

    def body(xr, o, buf):
        s = pl.program_id(0) % (3 if wrong else 2)
        buf[s] = xr[...]
        o[...] = buf[s]

    return _store(body, scratch=[pltpu.VMEM((2, 8, 128), F)])


@case("body_in_bounds", note="offsets table has n entries, the body reads entry i + 1")
def offsets_table_too_short(wrong):
    t = np.array([0, 8, 16, 24] + ([] if wrong else [32]), np.int32)

    def body(tr, x, o):
        i = pl.program_id(0)
        o[...] = x[...] + (tr[i + 1] - tr[i]).astype(F)

    x = data(32, 128)
    return Built(
        call(body, (4,), [((8, 128), lambda i, t: (i, 0))], ((8, 128), lambda i, t: (i, 0)), (32, 128), prefetch=1),
        (t, x),
        x + 8,
    )


@case("body_in_bounds", note="DMA source past the end of HBM in the last step (40 rows, 16 a step)")
def dma_past_the_end(wrong):
    x = data(40, 128)

    def body(xr, o, buf, sem):
        s = pl.program_id(0) * 16
        c = pltpu.make_async_copy(xr.at[pl.ds(s if wrong else jnp.minimum(s, 24), 16)], buf, sem)
        c.start()
        c.wait()
        o[...] = buf[...]

    return Built(
        call(
            body,
            (3,),
            [ANY],
            ((16, 128), lambda i: (i, 0)),
            (48, 128),
            [pltpu.VMEM((16, 128), F), pltpu.SemaphoreType.DMA],
        ),
        (x,),
        np.concatenate([x[:16], x[16:32], x[24:40]]),
    )


@case("body_in_bounds", note="while loop with a carried row counter; invariant r <= 32 recovers it")
def while_carried_row(wrong):
    def body(x, o):
        def cond(c):
            return c[0] < (33 if wrong else 32)

        def step(c):
            r, a = c
            return r + 8, a + x[pl.ds(r, 8), :]

        o[...] = lax.while_loop(cond, step, (jnp.int32(0), jnp.zeros((8, 128), F)))[1]

    return _whole(body, lambda x: x.reshape(4, 8, 128).sum(0), n=1)


@case("body_in_bounds", note="store past the output window")
def store_past_the_window(wrong):
    def body(x, o):
        o[...] = x[...]
        r = pl.program_id(0) * (2 if wrong else 1)
        o[pl.ds(r, 4), :] = x[pl.ds(r, 4), :]

    return _store(body)


# ---------------------------------------------------------------- 5 DMA and semaphores
VB, DMA = pltpu.VMEM, pltpu.SemaphoreType.DMA


def _dma(body, scratch, x=None, want=None, n=4, sem=("arbitrary",)):
    x = data(32, 128) if x is None else x
    return Built(
        call(body, (n,), [ANY], ((8, 128), lambda i: (i, 0)), (8 * n, 128), scratch, sem),
        (x,),
        x if want is None else want(x),
    )


BUF2 = [VB((2, 8, 128), F), DMA((2,))]
BUF1 = [VB((8, 128), F), DMA]


def _cp(xr, buf, sem):
    return lambda j, s: pltpu.make_async_copy(xr.at[pl.ds(j * 8, 8)], buf.at[s], sem.at[s])


@case("dma_order", note="no wait at all")
def wait_missing(wrong):
    def body(xr, o, buf, sem):
        c = pltpu.make_async_copy(xr.at[pl.ds(pl.program_id(0) * 8, 8)], buf, sem)
        c.start()
        if not wrong:
            c.wait()
        o[...] = buf[...]

    return _dma(body, BUF1)


@case("dma_order", note="reads the buffer before the wait")
def read_before_wait(wrong):
    def body(xr, o, buf, sem):
        c = pltpu.make_async_copy(xr.at[pl.ds(pl.program_id(0) * 8, 8)], buf, sem)
        c.start()
        if wrong:
            o[...] = buf[...]
            c.wait()
        else:
            c.wait()
            o[...] = buf[...]

    return _dma(body, BUF1)


@case("dma_order", note="waits on the other slot's semaphore")
def wait_on_other_slot(wrong):
    def body(xr, o, buf, sem):
        i = pl.program_id(0)
        n = pl.num_programs(0)
        cp = _cp(xr, buf, sem)

        @pl.when(i == 0)
        def _():
            cp(0, 0).start()

        @pl.when(i + 1 < n)
        def _():
            cp(i + 1, (i + 1) % 2).start()

        s = i % 2
        pltpu.make_async_copy(xr.at[pl.ds(i * 8, 8)], buf.at[s], sem.at[(1 - s) if wrong else s]).wait()
        o[...] = buf[s]

    return _dma(body, BUF2)


@case("dma_order", note="the next copy is started into the slot that is being read")
def double_buffer_same_slot(wrong):
    def body(xr, o, buf, sem):
        i = pl.program_id(0)
        n = pl.num_programs(0)
        cp = _cp(xr, buf, sem)
        s = (lambda j: 0) if wrong else (lambda j: j % 2)

        @pl.when(i == 0)
        def _():
            cp(0, 0).start()

        cp(i, s(i)).wait()

        @pl.when(i + 1 < n)
        def _():
            cp(i + 1, s(i + 1)).start()

        o[...] = buf[s(i)]

    return _dma(body, BUF2)


@case("dma_order", note="source overwritten while its outgoing copy is in flight")
def overwrite_source_in_flight(wrong):
    x = data(32, 128)

    def body(xr, o, buf, sem):
        buf[...] = xr[...]
        c = pltpu.make_async_copy(buf, o.at[pl.ds(pl.program_id(0) * 8, 8)], sem)
        c.start()
        if wrong:
            buf[...] = jnp.zeros((8, 128), F)
            c.wait()
        else:
            c.wait()
            buf[...] = jnp.zeros((8, 128), F)

    return Built(call(body, (4,), [((8, 128), lambda i: (i, 0))], ANY, (32, 128), BUF1, ("arbitrary",)), (x,), x)


@case("dma_order", note="wait for fewer bytes than were started: semaphore ends at a positive count")
def wait_for_fewer_bytes(wrong):
    def body(xr, o, buf, sem):
        i = pl.program_id(0)
        pltpu.make_async_copy(xr.at[pl.ds(i * 8, 8)], buf, sem).start()
        n = 4 if wrong else 8
        pltpu.make_async_copy(xr.at[pl.ds(0, n)], buf.at[pl.ds(0, n)], sem).wait()
        o[...] = buf[...]

    return _dma(body, BUF1)


@case("dma_order", note="started under a condition, waited always: hangs in the last step")
def wait_without_start(wrong):
    def body(xr, o, buf, sem):
        i = pl.program_id(0)
        n = pl.num_programs(0)
        c = pltpu.make_async_copy(xr.at[pl.ds(i * 8, 8)], buf, sem)
        if wrong:

            @pl.when(i + 1 < n)
            def _():
                c.start()
        else:
            c.start()
        c.wait()
        o[...] = buf[...]

    return _dma(body, BUF1)


@case("dma_order", note="one semaphore for two copies in flight: the wait for the first may be satisfied by the second")
def two_copies_one_semaphore(wrong):
    def body(xr, o, buf, sem):
        i = pl.program_id(0)
        a = pltpu.make_async_copy(xr.at[pl.ds(i * 8, 8)], buf.at[0], sem.at[0])
        b = pltpu.make_async_copy(xr.at[pl.ds(0, 8)], buf.at[1], sem.at[0 if wrong else 1])
        a.start()
        b.start()
        a.wait()
        v = buf[0]
        b.wait()
        o[...] = v

    return _dma(body, BUF2)


@case("dma_order", note="regular semaphore signalled twice, waited once")
def semaphore_left_over(wrong):
    x = data(32, 128)

    def body(xr, o, sem):
        pl.semaphore_signal(sem, 2 if wrong else 1)
        pl.semaphore_wait(sem, 1)
        o[...] = xr[...]

    return _store(body, scratch=[pltpu.SemaphoreType.REGULAR], sem=("arbitrary",))


@case("dma_order", note="writeback double buffer is drained in the last step only for one of two slots")
def last_writeback_not_drained(wrong):
    x = data(32, 128)

    def body(xr, o, buf, sem):
        i = pl.program_id(0)
        n = pl.num_programs(0)
        s = i % 2
        wb = lambda j, s: pltpu.make_async_copy(buf.at[s], o.at[pl.ds(j * 8, 8)], sem.at[s])

        @pl.when(i >= 2)
        def _():
            wb(i - 2, s).wait()

        buf[s] = xr[...]
        wb(i, s).start()

        @pl.when(i == n - 1)
        def _():
            if not wrong:
                wb(i - 1, 1 - s).wait()
            wb(i, s).wait()

    return Built(call(body, (4,), [((8, 128), lambda i: (i, 0))], ANY, (32, 128), BUF2, ("arbitrary",)), (x,), x)


# ---------------------------------------------------------------- 6 races between parallel programs
def _race(body, scratch=BUF1, n=4, sem=("parallel",), prefetch=(), want=None, out=(32, 128)):
    x = data(32, 128)
    return Built(
        call(body, (n,), [((8, 128), lambda i, *t: (i, 0))], ANY, out, scratch, sem, prefetch=len(prefetch)),
        (*prefetch, x),
        x if want is None else want(x),
    )


def _out(buf, o, r, sem, n=8):
    c = pltpu.make_async_copy(buf, o.at[pl.ds(r, n)], sem)
    c.start()
    c.wait()


@case("body_races", cores=2, note="all parallel programs write the same rows")
def parallel_same_rows(wrong):
    def body(xr, o, buf, sem):
        i = pl.program_id(0)
        buf[...] = jnp.zeros((8, 128), F) if wrong else xr[...]
        _out(buf, o, 0 if wrong else i * 8, sem)

    return _race(
        body, out=(8, 128) if wrong else (32, 128), want=(lambda x: np.zeros((8, 128), np.float32)) if wrong else None
    )


@case("body_races", cores=2, note="16 rows a step, stride 8: neighbours overlap (same values, still a race)")
def parallel_overlapping_rows(wrong):
    def body(xr, o, buf, sem):
        i = pl.program_id(0)
        w = 16 if wrong else 8
        buf[...] = jnp.ones((16, 128), F)
        _out(buf.at[pl.ds(0, w)], o, i * 8, sem, w)

    return _race(
        body,
        [VB((16, 128), F), DMA],
        out=(40, 128) if wrong else (32, 128),
        want=lambda x: np.ones((40 if wrong else 32, 128), np.float32),
    )


@case(
    "body_races",
    cores=2,
    assume=("0 <= prefetch0 < 4", "prefetch0 is injective"),
    note="scatter by a table with a double entry",
)
def parallel_scatter_duplicate(wrong):
    t = np.array([0, 1, 2, 1] if wrong else [2, 0, 3, 1], np.int32)

    def body(tr, xr, o, buf, sem):
        buf[...] = jnp.ones((8, 128), F)
        _out(buf, o, tr[pl.program_id(0)] * 8, sem)

    return _race(
        body,
        prefetch=(t,),
        want=lambda x: np.ones((24 if wrong else 32, 128), np.float32),
        out=(24 if wrong else 32, 128),
    )


@case(
    "body_races", cores=2, also=("initialised",), note="scratch carried from program to program along a parallel axis"
)
def scratch_across_parallel(wrong):
    x = data(32, 128)

    def body(xr, o, s):
        zero_at(pl.program_id(0) == 0, s)
        s[...] += xr[...]
        o[...] = s[...]

    return _store(
        body,
        want=lambda x: np.cumsum(x.reshape(4, 8, 128), 0).reshape(32, 128),
        scratch=[VB((8, 128), F)],
        sem=("parallel",) if wrong else ("arbitrary",),
    )
