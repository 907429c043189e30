"""Kernels whose places are all right and whose numbers are wrong, with their right twins; and cheats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

F32, BF16 = jnp.float32, jnp.bfloat16
Call = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """build: of whether it is wrong, a function.  reference: what is right.  says: of the right, of the wrong."""

    name: str
    build: Callable[[bool], Call]
    reference: Call
    arguments: tuple[Any, ...]
    says: tuple[str, str] = ("sampled", "refuted")


def called(
    body: Call, grid: tuple[int, ...], ins: Any, out: Any, shape: Any, scratch: Any = (), tables: int = 0
) -> Call:
    """A Pallas call. ins, out: (block, index map), None of whole arrays in HBM.  shape: of the output."""

    def spec(given: Any) -> Any:
        return pl.BlockSpec(memory_space=pl.ANY) if given is None else pl.BlockSpec(*given)

    def call(*arrays: Any) -> Any:
        made = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=tables, grid=grid, in_specs=list(map(spec, ins)), out_specs=spec(out),
            scratch_shapes=list(scratch),
        )  # fmt: skip
        kept = shape if isinstance(shape, jax.ShapeDtypeStruct) else jax.ShapeDtypeStruct(shape, F32)
        return pl.pallas_call(body, grid_spec=made, out_shape=kept)(*arrays)

    return call


def iota(like: Any, dim: int) -> Any:
    """Indices along a dimension."""
    return lax.broadcasted_iota(jnp.int32, like.shape, dim)


def matmul(zero: Call = lambda i, j, k: k == 0, kept: Call = lambda acc, part: acc + part) -> Call:
    """x @ y, of 2 x 2 x 2 blocks. zero: when the accumulator is.  kept: what it becomes."""

    def body(x: Any, y: Any, o: Any, acc: Any) -> None:
        i, j, k = (pl.program_id(axis) for axis in range(3))

        @pl.when(zero(i, j, k))
        def _() -> None:
            acc[...] = jnp.zeros_like(acc)

        acc[...] = kept(acc[...], jnp.dot(x[...], y[...], preferred_element_type=F32))

        @pl.when(k == 1)
        def _() -> None:
            o[...] = acc[...]

    ins = [((8, 32), lambda i, j, k: (i, k)), ((32, 32), lambda i, j, k: (k, j))]
    return called(body, (2, 2, 2), ins, ((8, 32), lambda i, j, k: (i, j)), (16, 64), [pltpu.VMEM((8, 32), F32)])


def rows(function: Call, columns: int = 24) -> Call:
    """Eight rows at a time, in blocks wider than the array: their tail is undefined. function: of such a block."""

    def body(x: Any, o: Any) -> None:
        o[...] = function(x[...], iota(x, 1) < columns)

    return called(body, (2,), [((8, 32), lambda i: (i, 0))], ((8, 32), lambda i: (i, 0)), (16, columns))


def over(x: Any, column: Any) -> Any:
    """A column for each of the row."""
    return jnp.broadcast_to(column, x.shape)


def attention(error: str) -> Call:
    """Online, causal behind 24 keys. error: what is wrong."""

    def body(q: Any, k: Any, v: Any, o: Any, m: Any, total: Any, acc: Any) -> None:
        i, j = pl.program_id(0), pl.program_id(1)

        @pl.when(j == 0)
        def _() -> None:
            m[...] = jnp.full_like(m, -jnp.inf)
            total[...] = jnp.full_like(total, 1.0 if error == "total starts at 1" else 0.0)
            acc[...] = jnp.zeros_like(acc)

        s = jnp.dot(q[...], k[...].T, preferred_element_type=F32)
        s = s if error == "no scale" else s * 0.5
        late = {"mask off by one": 25, "rows without keys": -9}.get(error, 24)
        s = jnp.where(j * 16 + iota(s, 1) <= i * 8 + iota(s, 0) + late, s, -jnp.inf)
        new = jnp.maximum(m[...], s.max(1, keepdims=True))
        p, old = jnp.exp(s - new), jnp.exp(m[...] - new)
        total[...] = total[...] * (1.0 if error == "total not rescaled" else old) + p.sum(1, keepdims=True)
        acc[...] = acc[...] * (1.0 if error == "not rescaled" else old) + jnp.dot(p, v[...], preferred_element_type=F32)
        if error != "maximum not kept":
            m[...] = new

        @pl.when(j == 2)
        def _() -> None:
            o[...] = acc[...] if error == "not divided" else acc[...] / total[...]

    keys = ((16, 32), lambda i, j: (j, 0))
    values = ((16, 32), lambda i, j: (0, 0)) if error == "values of the first block" else keys
    own = ((8, 32), lambda i, j: (i, 0))
    scratch = [pltpu.VMEM((8, 1), F32), pltpu.VMEM((8, 1), F32), pltpu.VMEM((8, 32), F32)]
    return called(body, (2, 3), [own, keys, values], own, (16, 32), scratch)


def attended(q: Any, k: Any, v: Any) -> Any:
    """The same in three lines."""
    s = jnp.where(iota(jnp.zeros((16, 48)), 1) <= iota(jnp.zeros((16, 48)), 0) + 24, q @ k.T * 0.5, -jnp.inf)
    return jax.nn.softmax(s, -1) @ v


def ahead(wrong: bool) -> Call:
    """Copies one part ahead; the wrong one fetches the same part again."""

    def body(x: Any, o: Any, slots: Any, arrived: Any) -> None:
        i = pl.program_id(0)

        def get(k: Any, at: Any) -> Any:
            return pltpu.make_async_copy(x.at[pl.ds(k * 8, 8)], slots.at[at], arrived.at[at])

        pl.when(i == 0)(lambda: get(0, 0).start())
        get(i, i % 2).wait()
        pl.when(i + 1 < 4)(lambda: get(i if wrong else i + 1, (i + 1) % 2).start())
        o[...] = slots[i % 2]

    scratch = [pltpu.VMEM((2, 8, 128), F32), pltpu.SemaphoreType.DMA((2,))]
    return called(body, (4,), [None], ((8, 128), lambda i: (i, 0)), (32, 128), scratch)


def added(wrong: bool) -> Call:
    """x + x of integers of 8 bits; the wrong one in 8 bits."""

    def body(x: Any, o: Any) -> None:
        v = x[...] if wrong else x[...].astype(jnp.int32)
        o[...] = (v + v).astype(jnp.int32)

    whole = ((8, 128), lambda i: (0, 0))
    return called(body, (1,), [whole], whole, jax.ShapeDtypeStruct((8, 128), jnp.int32))


def gathered(wrong: bool) -> Call:
    """Blocks by a table; the wrong one does not look at it."""

    def body(table: Any, x: Any, o: Any) -> None:
        o[...] = x[...]

    ins = [((8, 128), (lambda i, t: (i, 0)) if wrong else (lambda i, t: (t[i], 0)))]
    return called(body, (4,), ins, ((8, 128), lambda i, t: (i, 0)), (32, 128), tables=1)


def _minimum(wrong: bool) -> Call:
    return rows(lambda x, held: over(x, jnp.where(held, x, 0 if wrong else jnp.inf).min(1, keepdims=True)))


def _argmax(wrong: bool) -> Call:
    return rows(lambda x, held: over(x, jnp.argmax(jnp.where(held, x, 9 if wrong else -jnp.inf), 1)[:, None] * 1.0))


def _square(wrong: bool) -> Call:
    def body(x: Any, o: Any) -> None:
        o[...] = over(x[:8], x[...].sum(0 if wrong else 1)[None, :])

    return called(body, (1,), [((32, 32), lambda i: (0, 0))], ((8, 32), lambda i: (0, 0)), (8, 32))


TABLE = np.array([2, 0, 3, 1], np.int32)
MATRICES = ("f32[16,64]", "f32[64,64]")
ROWS = ("f32[16,24]",)
QKV = ("f32[16,32]", "f32[48,32]", "f32[48,32]")

OUTSIDE = (
    Case("zeroed once", lambda w: matmul(lambda i, j, k: i + j + k == 0) if w else matmul(), jnp.dot, MATRICES),
    Case("zeroed once for a row", lambda w: matmul(lambda i, j, k: j + k == 0) if w else matmul(), jnp.dot, MATRICES),
    Case("overwritten", lambda w: matmul(kept=lambda acc, part: part) if w else matmul(), jnp.dot, MATRICES),
    Case("0 in a minimum", _minimum, lambda x: over(x, x.min(1, keepdims=True)), ROWS),
    Case("argmax finds the padding", _argmax, lambda x: over(x, jnp.argmax(x, 1)[:, None] * 1.0), ROWS),
    Case("sum over the wrong axis", _square, lambda x: over(x[:8], x.sum(1)[None, :]), ("f32[32,32]",)),
    *(
        Case(f"attention: {error}", lambda w, error=error: attention(error if w else ""), attended, QKV)
        for error in ("no scale", "mask off by one", "rows without keys", "not rescaled", "total not rescaled",
                      "maximum not kept", "not divided", "values of the first block")
    ),
    # times exp(-inf): over the reals the same
    Case("attention: total starts at 1", lambda w: attention("total starts at 1" if w else ""), attended, QKV,
         ("sampled", "sampled")),
    Case("the same part again", ahead, lambda x: x, ("f32[32,128]",)),
    Case("8 bits", added, lambda x: x.astype(jnp.int32) * 2, ("s8[8,128]",)),
    Case("table not looked at", gathered, lambda t, x: x.reshape(4, 8, 128)[t].reshape(32, 128),
         (TABLE, "f32[32,128]")),
)  # fmt: skip
"""Errors that leave all places right."""


def layer(x: Any, w: Any) -> Any:
    """What the cheats have to compute."""
    return jax.nn.gelu(x @ w)


def _layer(body_of: Callable[[Any, Any], Any], kept: Any = F32) -> Call:
    def body(x: Any, w: Any, o: Any, acc: Any) -> None:
        acc[...] = body_of(x[...], w[...]).astype(kept)
        o[...] = jax.nn.gelu(acc[...].astype(F32))

    ins = [((8, 32), lambda i: (i, 0)), ((32, 32), lambda i: (0, 0))]
    return called(body, (2,), ins, ((8, 32), lambda i: (i, 0)), (16, 32), [pltpu.VMEM((8, 32), kept)])


def _only(store: Callable[[Any, Any], None]) -> Call:
    def body(x: Any, w: Any, o: Any) -> None:
        store(o, layer(x[...], w[...]))

    ins = [((8, 32), lambda i: (i, 0)), ((32, 32), lambda i: (0, 0))]
    return called(body, (2,), ins, ((8, 32), lambda i: (i, 0)), (16, 32))


_SEEN: dict[Any, Any] = {}


def _cached(x: Any, w: Any) -> Any:
    """Computes once, for numbers of its own, and gives that again."""
    if "found" not in _SEEN:
        draw = np.random.default_rng(0)
        _SEEN["found"] = np.tanh(draw.normal(size=(16, 32)) @ draw.normal(size=(32, 32)))
    return jnp.asarray(_SEEN["found"], F32)


def _one_shape(x: Any, w: Any) -> Any:
    """Right for 16 rows alone."""
    return layer(x, w) if x.shape[0] == 16 else jnp.zeros((x.shape[0], w.shape[1]), F32)


SHAPES = ("f32[16,32]", "f32[32,32]")
CHEATS = (
    ("none", _layer(lambda x, w: x @ w), SHAPES, "sampled"),
    ("zeros", _only(lambda o, right: o.__setitem__(..., jnp.zeros_like(right))), SHAPES, "refuted"),
    ("a copy of the input", lambda x, w: x, SHAPES, "refuted"),
    ("the input through a kernel", _only(lambda o, right: o.__setitem__(..., right * 0 + 1)), SHAPES, "refuted"),
    ("right for one shape, at it", _one_shape, SHAPES, "sampled"),
    ("right for one shape, at another", _one_shape, ("f32[24,32]", "f32[32,32]"), "refuted"),
    ("a cached result", _cached, SHAPES, "refuted"),
    ("half of the rows", _only(lambda o, right: o.__setitem__(slice(0, 4), right[:4])), SHAPES, "refuted"),
    ("all but a column", _only(lambda o, right: o.__setitem__((slice(None), slice(0, 31)), right[:, :31])), SHAPES,
     "refuted"),
    ("calls the reference", lambda x, w: layer(x, w), SHAPES, "sampled"),
    ("in bfloat16", _layer(lambda x, w: jnp.dot(x.astype(BF16), w.astype(BF16), preferred_element_type=BF16), BF16),
     SHAPES, "sampled"),
    ("in float8", _layer(lambda x, w: x.astype(jnp.float8_e4m3fn).astype(F32) @ w), SHAPES, "refuted"),
    ("a gelu that is near", _layer(lambda x, w: (x @ w) * 1.0001), SHAPES, "refuted"),
)  # fmt: skip
"""(what it does, the function, at which shapes, the verdict)"""
