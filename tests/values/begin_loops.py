"""Functions with a loop inside of a program, with several kernels, and kernels that copy by hand, as `begin_cases`.

Each store, and each number that a loop hands on, has a mark, `# at NAME`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

F32 = jnp.float32
Call = Callable[..., Any]


def product(wrong: str = "", keeps: str = "carry") -> Call:
    """x @ y in a loop over blocks of 8 of what is contracted. keeps: where the sum is."""

    def body(x: Any, y: Any, o: Any, acc: Any) -> None:
        def added(k: Any, before: Any) -> Any:
            at = jnp.where(k == 2, 0, k) if wrong == "block skipped" else k
            u, v = x[:, pl.ds(at * 8, 8)], y[pl.ds(k * 8, 8), :]
            if wrong == "only the last":
                before = jnp.zeros_like(before)
            if wrong == "halved later":
                u = jnp.where(k == 2, u / 2, u)
            return before + jnp.dot(u, v)  # at sum

        def stored(k: Any, _: Any) -> Any:
            acc[...] = added(k, acc[...])  # at memory
            if wrong == "twice":
                pl.when(k == 3)(lambda: again(k))
            return 0

        def again(k: Any) -> None:
            acc[...] += jnp.dot(x[:, 24:32], y[24:32, :])  # at again

        if keeps == "carry":
            o[...] = lax.fori_loop(0, 4, added, jnp.zeros((8, 8), F32))  # at store
        else:
            acc[...] = jnp.zeros_like(acc)
            lax.fori_loop(0, 4, stored, 0)
            o[...] = acc[...]  # at store

    def call(x: Any, y: Any) -> Any:
        return pl.pallas_call(
            body,
            grid=(2,),
            in_specs=[pl.BlockSpec((8, 32), lambda i: (i, 0)), pl.BlockSpec((32, 8), lambda i: (0, 0))],
            out_specs=pl.BlockSpec((8, 8), lambda i: (i, 0)),
            out_shape=jax.ShapeDtypeStruct((16, 8), F32),
            scratch_shapes=[pltpu.VMEM((8, 8), F32)],
        )(x, y)

    return call


def attention(wrong: str = "") -> Call:
    """Online softmax in a loop over blocks of keys."""

    def body(q: Any, k: Any, v: Any, o: Any) -> None:
        def step(j: Any, state: Any) -> Any:
            top, total, acc = state
            s = jnp.dot(q[...], k[pl.ds(j * 8, 8), :].T)
            if wrong == "mask":
                s = jnp.where((j == 2) & (lax.broadcasted_iota(jnp.int32, (8, 8), 1) > 3), -1e30, s)
            new = jnp.maximum(top, s.max(1, keepdims=True))  # at maximum
            p, scale = jnp.exp(s - new), jnp.exp(top - new)
            total = total * (1 if wrong == "total not scaled" else scale) + p.sum(1, keepdims=True)  # at total
            w = v[pl.ds((0 if wrong == "first block of V" else j) * 8, 8), :]
            acc = acc * (1 if wrong == "sum not scaled" else scale) + jnp.dot(p, w)  # at sum
            return new, total, acc

        begun = jnp.full((8, 1), -1e30, F32), jnp.zeros((8, 1), F32), jnp.zeros((8, 4), F32)
        _, total, acc = lax.fori_loop(0, 3, step, begun)
        o[...] = acc / (total + 1 if wrong == "one more" else total)  # at store

    def call(q: Any, k: Any, v: Any) -> Any:
        part, whole = pl.BlockSpec((8, 4), lambda i: (i, 0)), pl.BlockSpec((24, 4), lambda i: (0, 0))
        return pl.pallas_call(
            body, grid=(2,), in_specs=[part, whole, whole], out_specs=part,
            out_shape=jax.ShapeDtypeStruct((16, 4), F32),
        )(q, k, v)  # fmt: skip

    return call


def copied(wrong: str = "") -> Call:
    """x @ y of [8, 32] and [32, 8], whose blocks are copied by hand, the next one while this one is added."""

    def body(x: Any, y: Any, o: Any, u: Any, v: Any, acc: Any, semaphores: Any) -> None:
        def copies(k: Any, slot: Any) -> list[Any]:
            return [
                pltpu.make_async_copy(x.at[:, pl.ds(k * 8, 8)], u.at[slot], semaphores.at[0, slot]),
                pltpu.make_async_copy(y.at[pl.ds(k * 8, 8), :], v.at[slot], semaphores.at[1, slot]),
            ]

        acc[...] = jnp.zeros_like(acc)
        for copy in copies(0, 0):
            copy.start()

        def step(k: Any, _: Any) -> Any:
            slot = lax.rem(k, 2)

            @pl.when(k < 3)
            def _() -> None:
                for copy in copies(k + 1, 1 - slot):
                    copy.start()

            for copy in copies(k, slot):
                copy.wait()
            left = u[slot]
            if wrong == "other slot later":
                left = jnp.where(k == 2, u[0].T, left)
            before = jnp.zeros_like(acc) if wrong == "only the last" else acc[...]
            acc[...] = before + jnp.dot(left, v[slot])  # at memory
            if wrong == "scaled later":
                pl.when(k == 1)(scaled)
            return 0

        def scaled() -> None:
            acc[...] = acc[...] * 2  # at again

        lax.fori_loop(0, 4, step, 0)
        o[...] = acc[...] + (1 if wrong == "one more" else 0)  # at store

    def call(x: Any, y: Any) -> Any:
        hbm = pl.BlockSpec(memory_space=pl.ANY)
        return pl.pallas_call(
            body,
            in_specs=[hbm, hbm],
            out_shape=jax.ShapeDtypeStruct((8, 8), F32),
            scratch_shapes=[
                pltpu.VMEM((2, 8, 8), F32), pltpu.VMEM((2, 8, 8), F32), pltpu.VMEM((8, 8), F32),
                pltpu.SemaphoreType.DMA((2, 2)),
            ],
        )(x, y)  # fmt: skip

    return call


def piped(wrong: str = "") -> Call:
    """x @ y of [16, 24] and [24, 8] in a pipeline inside of a kernel."""

    def inner(x: Any, y: Any, o: Any, acc: Any) -> None:
        k = pl.program_id(1)

        @pl.when(k == 0)
        def _() -> None:
            acc[...] = jnp.zeros_like(acc)

        u = jnp.where(k == 2, x[...] * 2, x[...]) if wrong == "doubled later" else x[...]
        if wrong == "only the last":
            acc[...] = jnp.dot(u, y[...])  # at memory
        else:
            acc[...] += jnp.dot(u, y[...])  # at memory

        @pl.when(k == 2)
        def _() -> None:
            o[...] = acc[...] * (2 if wrong == "twice as much" else 1)  # at store

    def body(x: Any, y: Any, o: Any, acc: Any) -> None:
        pltpu.emit_pipeline(
            lambda *refs: inner(*refs, acc),
            grid=(2, 3),
            in_specs=[pl.BlockSpec((8, 8), lambda i, k: (i, k)), pl.BlockSpec((8, 8), lambda i, k: (k, 0))],
            out_specs=[pl.BlockSpec((8, 8), lambda i, k: (i, 0))],
        )(x, y, o)

    def call(x: Any, y: Any) -> Any:
        hbm = pl.BlockSpec(memory_space=pl.ANY)
        return pl.pallas_call(
            body, in_specs=[hbm, hbm], out_specs=hbm, out_shape=jax.ShapeDtypeStruct((16, 8), F32),
            scratch_shapes=[pltpu.VMEM((8, 8), F32)],
        )(x, y)  # fmt: skip

    return call


def _product(wrong: str, activation: Callable[[Any], Any] = lambda x: x, mark: str = "first") -> Call:
    """A product over a grid, and what is done with it."""

    def body(x: Any, y: Any, o: Any, acc: Any) -> None:
        k = pl.program_id(0)

        @pl.when(k == 0)
        def _() -> None:
            acc[...] = jnp.zeros_like(acc)

        u = jnp.where(k == 1, x[...] * 3, x[...]) if wrong == "tripled" else x[...]
        v = y[...].T if wrong == "turned" else y[...]
        before = jnp.zeros_like(acc) if wrong == "only the last" else acc[...]
        if mark == "first":
            acc[...] = before + jnp.dot(u, v)  # at first
        else:
            acc[...] = before + jnp.dot(u, v)  # at second

        @pl.when(k == pl.num_programs(0) - 1)
        def _() -> None:
            o[...] = activation(acc[...])  # at store

    def call(x: Any, y: Any) -> Any:
        return pl.pallas_call(
            body,
            grid=(x.shape[1] // 8,),
            in_specs=[pl.BlockSpec((8, 8), lambda k: (0, k)), pl.BlockSpec((8, y.shape[1]), lambda k: (k, 0))],
            out_specs=pl.BlockSpec((8, y.shape[1]), lambda k: (0, 0)),
            out_shape=jax.ShapeDtypeStruct((8, y.shape[1]), F32),
            scratch_shapes=[pltpu.VMEM((8, y.shape[1]), F32)],
        )(x, y)

    return call


def layers(first: str = "", second: str = "") -> Call:
    """Two products, each a kernel."""

    def call(x: Any, y: Any, z: Any) -> Any:
        cut = (lambda a: jnp.clip(a, 0, 4)) if first == "cut" else jax.nn.relu
        h = _product(first, cut)(x, y)
        if first == "between":
            h = h * 2
        return _product(second, mark="second")(h, z)

    return call


PRODUCT = (lambda x, y: jnp.dot(x, y), ("f32[16,32]", "f32[32,8]"))
COPIED = (lambda x, y: jnp.dot(x, y), ("f32[8,32]", "f32[32,8]"))
PIPED = (lambda x, y: jnp.dot(x, y), ("f32[16,24]", "f32[24,8]"))
ATTENTION = (lambda q, k, v: jax.nn.softmax(q @ k.T, -1) @ v, ("f32[16,4]", "f32[24,4]", "f32[24,4]"))
LAYERS = (lambda x, y, z: jax.nn.relu(x @ y) @ z, ("f32[8,24]", "f32[24,16]", "f32[16,8]"))

CASES: dict[str, tuple[Call, Call, tuple[str, ...], str]] = {
    **{
        f"product in a loop, {wrong}": (product(wrong), *PRODUCT, mark)
        for wrong, mark in (("block skipped", "sum"), ("only the last", "sum"), ("halved later", "sum"))
    },
    **{
        f"product in a loop, in memory, {wrong}": (product(wrong, "memory"), *PRODUCT, mark)
        for wrong, mark in (
            ("block skipped", "memory"), ("only the last", "memory"), ("halved later", "memory"), ("twice", "again"),
        )
    },
    **{
        f"attention in a loop, {wrong}": (attention(wrong), *ATTENTION, mark)
        for wrong, mark in (
            ("mask", "maximum"), ("total not scaled", "total"), ("sum not scaled", "sum"), ("first block of V", "sum"),
            ("one more", "store"),
        )
    },
    **{
        f"copied, {wrong}": (copied(wrong), *COPIED, mark)
        for wrong, mark in (
            ("only the last", "memory"), ("other slot later", "memory"), ("scaled later", "again"), ("one more", ""),
        )
    },
    **{
        f"piped, {wrong}": (piped(wrong), *PIPED, mark)
        for wrong, mark in (("only the last", "memory"), ("doubled later", "memory"), ("twice as much", ""))
    },
    **{
        f"layers, first {wrong}": (layers(wrong), *LAYERS, mark)
        for wrong, mark in (("only the last", "first"), ("tripled", "first"), ("between", ""), ("cut", ""))
    },
    **{
        f"layers, second {wrong}": (layers("", wrong), *LAYERS, mark)
        for wrong, mark in (("only the last", "second"), ("tripled", "second"), ("turned", "second"))
    },
}  # fmt: skip
"""The mark of the first effect after which the state is no prefix of the reference; "" where that cannot be said."""

RIGHT = {
    "product in a loop": (product(), *PRODUCT), "product in a loop, in memory": (product("", "memory"), *PRODUCT),
    "attention in a loop": (attention(), *ATTENTION), "copied": (copied(), *COPIED), "piped": (piped(), *PIPED),
    "layers": (layers(), *LAYERS),
}  # fmt: skip
