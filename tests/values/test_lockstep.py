"""`same` of kernels that reach other devices: they are walked one at a time, each until it waits for another one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

import layoutproof as lp
from layoutproof.core.result import Verdict
from tests.bodies import device_pairs

pytestmark = pytest.mark.slow

N, F = device_pairs.DEVICES, jnp.float32
VMEM, DMA = device_pairs.VMEM, device_pairs.DMA
Function = Callable[..., jax.Array]


def ring_matmul(fault: str) -> Function:
    """Rows go around a ring, and each device multiplies those that it has while the next ones come."""

    def body(x, w, o, rows, out, comes):
        me, right, left = device_pairs.place()
        if fault == "no barrier":
            pl.semaphore_signal(pltpu.get_barrier_semaphore(), 2)
            pl.semaphore_wait(pltpu.get_barrier_semaphore(), 2)
        else:
            device_pairs.meet(left, right)
        rows[0] = x[...]
        for step in range(N):
            c = pltpu.make_async_remote_copy(
                rows.at[step], rows.at[(step + 1) % N], out, comes.at[step], device_id=(right,)
            )
            if step < N - 1:
                c.start()
            slot = lax.rem(me - step + N + (1 if fault == "slot" else 0), N)
            slot = lax.rem(me + step, N) if fault == "reversed" else slot
            o[pl.ds(slot * 8, 8), :] = jnp.dot(rows[step], w[...], preferred_element_type=F)
            if step < N - 1:
                c.wait_send()
                if fault != "stale" and not (fault == "hangs" and step == 1):
                    c.wait_recv()
            if fault == "stale" and step == N - 1:
                for k in range(N - 1):
                    came = pltpu.make_async_remote_copy(rows.at[k], rows.at[k], out, comes.at[k], device_id=(right,))
                    came.wait_recv()
        if fault == "hangs":
            pl.semaphore_wait(pltpu.get_barrier_semaphore(), 1)

    def on_one(x, w):
        return pl.pallas_call(
            body,
            in_specs=[VMEM, VMEM],
            out_specs=VMEM,
            out_shape=jax.ShapeDtypeStruct((8 * N, 128), F),
            scratch_shapes=[pltpu.VMEM((N, 8, 128), F), DMA, DMA((N,))],
            compiler_params=pltpu.CompilerParams(collective_id=0),
        )(x, w)

    mesh = device_pairs.abstract((N,), ("x",))
    return jax.shard_map(on_one, mesh=mesh, in_specs=(P("x"), P(None, "x")), out_specs=P(None, "x"), check_vma=False)


MATMUL = (jax.ShapeDtypeStruct((8 * N, 128), F), jax.ShapeDtypeStruct((128, 128 * N), F))


@pytest.mark.parametrize(
    ("fault", "values", "verdict"),
    [
        ("", Verdict.SAMPLED, Verdict.SAMPLED),
        ("slot", Verdict.REFUTED, Verdict.REFUTED),
        ("reversed", Verdict.REFUTED, Verdict.REFUTED),
        # what comes in is waited for at the end only: what is multiplied is not there yet
        ("stale", Verdict.REFUTED, Verdict.REFUTED),
        # the numbers are right, as far as nothing arrives too early: that is refuted
        ("no barrier", Verdict.SAMPLED, Verdict.REFUTED),
        ("hangs", Verdict.UNKNOWN, Verdict.REFUTED),
    ],
)
def test_ring_matmul(fault: str, values: Verdict, verdict: Verdict) -> None:
    found = lp.same(ring_matmul(fault), lambda x, w: x @ w, *MATMUL)
    assert (found.comparison.verdict, found.verdict) == (values, verdict), found


def test_all_reduce() -> None:
    """Two buffers in turn, semaphores that say that one is free, over the steps of a grid."""
    kernel = device_pairs.function_of(device_pairs.CASES["all_reduce"], False)
    mesh = device_pairs.abstract((N,), ("x",))

    def summed(x: jax.Array, scale: float = 1.0) -> jax.Array:
        return jax.shard_map(
            lambda part: scale * lax.psum(part, "x"), mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False
        )(x)

    x = jax.ShapeDtypeStruct((8 * N, 128), F)
    assert lp.same(kernel, summed, x).verdict is Verdict.SAMPLED
    assert lp.same(kernel, lambda x: summed(x, 2.0), x).verdict is Verdict.REFUTED


@pytest.mark.parametrize("axes", [(("x", 2), ("y", 2))])
def test_two_axes(axes: tuple[tuple[str, int], ...]) -> None:
    """Along one axis of two, by places and by logical numbers."""
    mesh = device_pairs.abstract((2, 2), ("x", "y"))

    def permuted(x: jax.Array) -> jax.Array:
        return jax.shard_map(
            lambda part: lax.ppermute(part, "y", [(0, 1), (1, 0)]), mesh=mesh, in_specs=P(("x", "y")),
            out_specs=P(("x", "y")), check_vma=False,
        )(x)  # fmt: skip

    case = device_pairs.CASES["along_one_axis"]
    x = jax.ShapeDtypeStruct((32, 128), F)
    assert lp.same(device_pairs.function_of(case, False), permuted, x).verdict is Verdict.SAMPLED
    hangs = lp.same(device_pairs.function_of(case, True), permuted, x)
    assert (hangs.comparison.verdict, hangs.verdict) == (Verdict.UNKNOWN, Verdict.REFUTED)
    assert "wait for one another for ever" in hangs.comparison.reason
