"""Kernels over a mesh of TensorCores: every core is a program, and the body says all that it moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof as lp
from layoutproof.core.result import Verdict
from tests.bodies.kernels import X, scratched

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")]
ASKED = ("body_in_bounds", "body_races", "outputs_stored")


def kernel(read: int, written: int) -> Callable[..., Any]:
    """Two cores, each of which copies 16 rows; read, written: how far apart theirs are."""
    mesh = pltpu.create_tensorcore_mesh("core", num_cores=2)
    scratch = [pltpu.VMEM((16, 128), jnp.float32), pltpu.SemaphoreType.DMA]

    @pl.kernel(out_type=X, mesh=mesh, scratch_types=scratch)
    def halves(x: Any, o: Any, buffer: Any, arrived: Any) -> None:
        core = jax.lax.axis_index("core")
        pltpu.async_copy(x.at[pl.ds(core * read, 16)], buffer, arrived).wait()
        pltpu.async_copy(buffer, o.at[pl.ds(core * written, 16)], arrived).wait()

    return lambda x: halves(x)  # type: ignore[no-any-return]


def asked(function: Callable[..., Any]) -> dict[str, Verdict]:
    found = lp.kernels(function, X, properties=ASKED).findings
    return {name: min(f.verdict for f in found if f.question == name) for name in ASKED}


def test_what_each_core_copies_is_judged() -> None:
    assert set(asked(kernel(16, 16)).values()) == {Verdict.PROVED}


@pytest.mark.parametrize(
    ("read", "written", "wrong"),
    [(17, 16, ["body_in_bounds"]), (16, 8, ["body_races", "outputs_stored"])],
)
def test_cores_that_leave_an_array_or_meet_in_it_are_refuted(read: int, written: int, wrong: list[str]) -> None:
    found = asked(kernel(read, written))
    assert [name for name in ASKED if found[name] is Verdict.REFUTED] == wrong


def test_references_of_a_core_map_are_filled_when_it_begins() -> None:
    """A body that writes a part of a reference leaves the rest as it was: nothing is unstored."""

    def halves(x: Any) -> Any:
        @pl.run_state
        def inner(refs: Any) -> None:
            x_ref, o_ref = refs

            @pl.core_map(pltpu.create_tensorcore_mesh("core", num_cores=2))
            def _() -> None:
                core = jax.lax.axis_index("core")
                pltpu.sync_copy(x_ref.at[pl.ds(core * 8, 8)], o_ref.at[pl.ds(core * 8, 8)])

        return inner((x, jnp.zeros_like(x)))[1]

    found = lp.kernels(halves, X, properties=ASKED).findings
    assert all(f.verdict is Verdict.PROVED for f in found if f.question != "outputs_stored")
    # there is no output, so that nothing is asked of any
    assert all("not applicable" in f.reason for f in found if f.question == "outputs_stored")


@pytest.mark.parametrize("extra", [0, 1, 2])
def test_a_core_map_has_scratch_beside_the_references_around_it(extra: int) -> None:
    """However many of the one there are of the other."""

    def verdicts(apart: int) -> dict[str, Verdict]:
        found = lp.kernels(scratched(apart, extra), X).findings
        names = ("body_in_bounds", "body_races", "dma_order", "initialised")
        return {name: min(f.verdict for f in found if f.question == name) for name in names}

    assert set(verdicts(16).values()) == {Verdict.PROVED}
    wrong = verdicts(17)
    assert [name for name in wrong if wrong[name] is Verdict.REFUTED] == ["body_in_bounds"]


def test_the_line_of_the_kernel_is_told_when_nobody_calls_it() -> None:
    mesh = pltpu.create_tensorcore_mesh("core", num_cores=1)

    @pl.kernel(out_type=X, mesh=mesh)
    def whole(x: Any, o: Any) -> None:
        pltpu.sync_copy(x, o)

    (call,) = lp.kernels(whole, X, properties=["body_in_bounds"]).calls
    assert call.call.name == "whole"
    assert __file__ in call.call.source


def counted(entry: int) -> Callable[..., Any]:
    """One core that copies as many blocks as a number in SMEM says; entry: which number of four."""

    def run(x: Any, n: Any) -> Any:
        scratch = [pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA]

        def body(x_ref: Any, n_ref: Any, o_ref: Any, buffer: Any, arrived: Any) -> None:
            rows = pl.ds(n_ref[entry] * 8, 8)
            pltpu.async_copy(x_ref.at[rows], buffer, arrived).wait()
            pltpu.async_copy(buffer, o_ref, arrived).wait()

        mesh = pltpu.create_tensorcore_mesh("core", num_cores=1)
        out = jax.ShapeDtypeStruct((8, 128), jnp.float32)
        return pl.kernel(body, out_type=out, mesh=mesh, scratch_types=scratch)(
            x, pltpu.with_memory_space_constraint(n, pltpu.SMEM)
        )

    return run


def test_an_operand_that_is_put_into_smem_is_read_number_by_number() -> None:
    """It is a table, of which something may be assumed; one that stays in HBM is still reached by copies only."""
    n = jax.ShapeDtypeStruct((4,), jnp.int32)

    def verdicts(entry: int, *assume: str) -> dict[str, Verdict]:
        found = lp.kernels(counted(entry), X, n, target="v6e", assume=list(assume)).findings
        asked = ("body_accesses", "body_in_bounds", "dma_order", "outputs_stored")
        return {name: min(f.verdict for f in found if f.question == name) for name in asked}

    bounded = verdicts(3, "0 <= args[1] < 4")
    assert set(bounded.values()) == {Verdict.PROVED}
    assert verdicts(3)["body_in_bounds"] is Verdict.UNKNOWN
    assert verdicts(4, "0 <= args[1] < 4")["body_in_bounds"] is Verdict.REFUTED


def test_a_number_of_an_array_in_hbm_is_not_loaded() -> None:
    def body(x_ref: Any, n_ref: Any, o_ref: Any, buffer: Any) -> None:
        pltpu.sync_copy(x_ref.at[pl.ds(n_ref[0] * 8, 8)], buffer)
        pltpu.sync_copy(buffer, o_ref)

    def run(x: Any, n: Any) -> Any:
        mesh = pltpu.create_tensorcore_mesh("core", num_cores=1)
        out = jax.ShapeDtypeStruct((8, 128), jnp.float32)
        scratch = [pltpu.VMEM((8, 128), jnp.float32)]
        return pl.kernel(body, out_type=out, mesh=mesh, scratch_types=scratch)(x, n)

    found = lp.kernels(run, X, jax.ShapeDtypeStruct((4,), jnp.int32), target="v6e").findings
    assert [f.subject for f in found if f.question == "body_accesses" and f.verdict is Verdict.REFUTED] == ["args[1]"]
