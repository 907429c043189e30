"""What JAX's lowering for TPUs refuses of loads and stores, as it was asked of the real compiler."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof as lp
from tests.said import Said, says

pytestmark = pytest.mark.slow

X = jax.ShapeDtypeStruct((16, 128), jnp.float32)
VMEM = pl.BlockSpec((8, 128), lambda i: (i, 0))
SMEM = pl.BlockSpec(memory_space=pltpu.SMEM)
HBM = pl.BlockSpec(memory_space=pl.ANY)


def store_number(x: Any, o: Any) -> None:
    o[0, 0] = x[0, 0]


def load_number(x: Any, o: Any) -> None:
    o[...] = jnp.full((8, 128), x[0, 0])


def arrays(x: Any, o: Any) -> None:
    o[pl.ds(0, 8), :] = x[pl.ds(0, 8), :]


NUMBER = Said("pallas.body_accesses_number_in_vmem", what="a number is stored into", reference="outputs")


# what libtpu 0.0.52 says of each for v5e (jax 0.10.2)
@pytest.mark.parametrize(
    ("body", "given", "out", "said"),
    [
        (store_number, VMEM, VMEM, NUMBER),
        (store_number, SMEM, SMEM, ""),
        (load_number, VMEM, VMEM, ""),
        (load_number, SMEM, VMEM, ""),
        (arrays, VMEM, VMEM, ""),
        (
            arrays,
            SMEM,
            VMEM,
            Said("pallas.body_accesses_array_in_smem", what="an array is loaded from", reference="args[0]"),
        ),
        (
            arrays,
            VMEM,
            SMEM,
            Said("pallas.body_accesses_array_in_smem", what="an array is stored into", reference="outputs"),
        ),
        (arrays, HBM, VMEM, Said("pallas.body_accesses_copies_only", reference="args[0]", memory="any")),
        (arrays, VMEM, HBM, Said("pallas.body_accesses_copies_only", reference="outputs", memory="any")),
    ],
)
def test_loads_and_stores(body: Any, given: pl.BlockSpec, out: pl.BlockSpec, said: Said | str) -> None:
    call = pl.pallas_call(body, grid=(2,), in_specs=[given], out_specs=out, out_shape=X)
    found = lp.kernels(call, X, properties=["body_accesses"], target="v5e")
    assert found.exit_code == bool(said)
    (one,) = found.findings
    assert says(said, one.reason)
    assert one.hint.startswith("look at ") is bool(said)
    # the call is made in no frame of a user's: it stands where its body is, what is refused at its own line
    assert one.file == __file__
    assert one.line == body.__code__.co_firstlineno + bool(said)


@pytest.mark.parametrize("wrong", [False, True])
def test_copies_and_waits_are_no_loads(wrong: bool) -> None:
    """What is moved by hand may be in any memory; the store beside it is still looked at."""

    def body(x: Any, o: Any, kept: Any) -> None:
        pltpu.sync_copy(x.at[pl.ds(0, 8)], kept)
        if wrong:
            o[0, 0] = jnp.float32(0)
        else:
            o[...] = kept[...]

    scratch = [pltpu.VMEM((8, 128), jnp.float32)]
    call = pl.pallas_call(body, grid=(2,), in_specs=[HBM], out_specs=VMEM, out_shape=X, scratch_shapes=scratch)
    found = lp.kernels(call, X, properties=["body_accesses"], target="v5e")
    (one,) = found.findings
    assert NUMBER.of(one.reason) is bool(one.reason) is wrong
    assert found.exit_code == wrong
