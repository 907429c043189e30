"""Kernels that code around them joins: semaphores handed from one to the next, and a mesh of devices around them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import layoutproof as lp
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")]
X = jax.ShapeDtypeStruct((32, 128), jnp.float32)
ANY, SEMAPHORE = pl.BlockSpec(memory_space=pl.ANY), pl.BlockSpec(memory_space=pltpu.SEMAPHORE)


def errors(function: Callable[..., Any], verdict: Verdict = Verdict.REFUTED, **how: Any) -> list[Finding]:
    found = lp.kernels(function, X, target="v6e", **how).findings
    return [f for f in found if f.severity == "error" and f.verdict is verdict]


def started_and_done(rows: int) -> Callable[..., Any]:
    """One kernel starts a copy of some rows and hands its semaphore on, the next one waits for it."""

    def start(x: Any, o: Any, arrived: Any) -> None:
        pltpu.make_async_copy(x.at[pl.ds(0, rows)], o.at[pl.ds(0, rows)], arrived).start()

    def done(x: Any, given: Any, arrived: Any, o: Any) -> None:
        pltpu.make_async_copy(x.at[pl.ds(0, rows)], o.at[pl.ds(0, rows)], arrived).wait()

    def both(x: Any) -> Any:
        made = (X, pltpu.SemaphoreType.DMA(()))
        o, arrived = pl.pallas_call(start, out_shape=made, in_specs=[ANY], out_specs=(ANY, SEMAPHORE))(x)
        specs = [ANY, ANY, SEMAPHORE]
        call = pl.pallas_call(done, out_shape=X, in_specs=specs, out_specs=ANY, input_output_aliases={1: 0})
        return call(x, o, arrived)

    return both


def test_a_semaphore_that_is_handed_on_is_no_output_that_is_stored() -> None:
    """An array that the copy does not fill is refuted; what the kernels hand on is waited for (test_handed_on)."""
    assert errors(started_and_done(32)) == []
    assert errors(started_and_done(32), Verdict.UNKNOWN) == []
    (found,) = errors(started_and_done(24))
    assert (found.question, found.subject) == ("outputs_stored", "outputs[0]")


def own_rows(devices: int, how: str) -> Callable[..., Any]:
    """Each device of a mesh takes 8 rows of its own, of 32."""

    def windows(x: Any) -> Any:
        def body(x_ref: Any, o_ref: Any) -> None:
            o_ref[...] = x_ref[pl.ds(jax.lax.axis_index("x") * 8, 8), :]

        return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32))(x)

    def copies(x: Any) -> Any:
        def body(x_ref: Any, o_ref: Any) -> None:
            pltpu.sync_copy(x_ref.at[pl.ds(jax.lax.axis_index("x") * 8, 8)], o_ref)

        out = jax.ShapeDtypeStruct((8, 128), jnp.float32)
        return pl.kernel(body, out_type=out, mesh=pltpu.create_tensorcore_mesh("core", num_cores=1))(x)

    def pipeline(x: Any) -> Any:
        def body(x_ref: Any, o_ref: Any) -> None:
            me = jax.lax.axis_index("x")

            def inner(window: Any, out: Any) -> None:
                out[...] = window[...]

            specs = pl.BlockSpec((8, 128), lambda i: (me, 0)), pl.BlockSpec((8, 128), lambda i: (0, 0))
            pltpu.emit_pipeline(inner, grid=(1,), in_specs=[specs[0]], out_specs=[specs[1]])(x_ref, o_ref)

        out = jax.ShapeDtypeStruct((8, 128), jnp.float32)
        return pl.pallas_call(body, out_shape=out, in_specs=[ANY], out_specs=ANY)(x)

    kernel = {"windows": windows, "copies": copies, "pipeline": pipeline, "vmapped": windows}[how]
    mesh = AbstractMesh((devices,), ("x",))
    options = {"mesh": mesh, "in_specs": P(), "out_specs": P("x"), "check_vma": False}
    sharded = jax.shard_map(kernel, **options)
    if how == "vmapped":
        return lambda x: jax.vmap(sharded)(jnp.stack([x, x]))
    return lambda x: sharded(x)  # type: ignore[no-any-return]


@pytest.mark.parametrize("how", ["windows", "copies", "pipeline", "vmapped"])
def test_a_place_on_a_mesh_is_bounded_by_the_mesh(how: str) -> None:
    assert [f.reason for f in errors(own_rows(4, how))] == []
    assert [f.reason for f in errors(own_rows(4, how), Verdict.UNKNOWN)] == []
    # a pipeline that stands under no condition runs on each device of the mesh
    found = errors(own_rows(5, how))
    assert {f.question for f in found} == {"blocks_in_bounds" if how == "pipeline" else "body_in_bounds"}
    assert "32:40" in found[0].reason or "[32, 40)" in found[0].reason


@pytest.mark.parametrize("below", [4, 5])
def test_what_a_condition_on_the_place_leaves_out_is_not_refuted(below: int) -> None:
    """There is a device at each place of a mesh, and the body says which of them read."""

    def guarded(x: Any) -> Any:
        def body(x_ref: Any, o_ref: Any) -> None:
            me = jax.lax.axis_index("x")
            o_ref[...] = jnp.zeros((8, 128))

            @pl.when(me < below)
            def _() -> None:
                o_ref[...] = x_ref[pl.ds(me * 8, 8), :]

        return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32))(x)

    mesh = AbstractMesh((5,), ("x",))
    sharded = jax.shard_map(guarded, mesh=mesh, in_specs=P(), out_specs=P("x"), check_vma=False)
    assert [f.question for f in errors(sharded)] == ["body_in_bounds"] * (below == 5)
    assert errors(sharded, Verdict.UNKNOWN) == []
