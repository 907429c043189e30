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

pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
X = jax.ShapeDtypeStruct((32, 128), jnp.float32)
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
    assert all("asked nothing" in f.reason for f in found if f.question == "outputs_stored")


def test_the_line_of_the_kernel_is_told_when_nobody_calls_it() -> None:
    mesh = pltpu.create_tensorcore_mesh("core", num_cores=1)

    @pl.kernel(out_type=X, mesh=mesh)
    def whole(x: Any, o: Any) -> None:
        pltpu.sync_copy(x, o)

    (call,) = lp.kernels(whole, X, properties=["body_in_bounds"]).calls
    assert call.call.name == "whole"
    assert __file__ in call.call.source
