"""What a body does to memory, in order, as the properties are told."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax._src.state.primitives import ref_swap
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from layoutproof.bodies.effects import Access, Body, BodyReference, Spot, View, loads_of
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.trace import kernels_of

pytestmark = pytest.mark.slow


def _accesses(body: Any) -> list[tuple[str, str]]:
    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct((32, 128), jnp.float32)
    fn = pl.pallas_call(
        body,
        grid=(4,),
        in_specs=[block],
        out_specs=block,
        out_shape=shape,
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
    )
    (call,) = kernels_of(fn, (shape,))
    assert isinstance(call, Kernel)
    assert call.body is not None
    return [(e.kind, e.view.reference.role) for e in call.body.effects if isinstance(e, Access)]


def test_a_store_reads_nothing() -> None:
    def body(x: Any, o: Any, s: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            s[...] = jnp.zeros((8, 128))

        o[...] = x[...]

    assert _accesses(body) == [("write", "scratch"), ("read", "in"), ("write", "out")]


def test_a_swap_whose_result_somebody_uses_reads() -> None:
    def body(x: Any, o: Any, s: Any) -> None:
        o[...] = ref_swap(s, ..., x[...])

    found = _accesses(body)
    assert found == [("read", "in"), ("read", "scratch"), ("write", "scratch"), ("write", "out")]


def test_what_a_load_is_called_leads_to_it_wherever_its_effect_stands() -> None:
    x = BodyReference("x", "in", (8, 128), "f32", "vmem")
    late, early = Access("read", View(x), Spot(7, (), (), "")), Access("read", View(x), Spot(2, (), (), ""))
    assert loads_of(Body((x,), (late, early))) == {"load7": late, "load2": early}
