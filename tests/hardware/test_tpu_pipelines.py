"""Blocks of `emit_pipeline` against JAX's own tracing: what it refuses is refused, and nothing else."""

from __future__ import annotations

import random
from typing import Any

import pytest

jax = pytest.importorskip("jax", reason="JAX's own word needs the extra [jax]")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

import layoutproof as lp  # noqa: E402
from layoutproof.hardware.tpu_pipelines import refuses_slices  # noqa: E402
from layoutproof.kernel.kernel import Block, Operand  # noqa: E402
from layoutproof.pallas.from_jax.adapter import device_of  # noqa: E402
from layoutproof.pallas.judge import judge  # noqa: E402

pytestmark = pytest.mark.slow

TYPES = {"f32": jnp.float32, "bf16": jnp.bfloat16, "s8": jnp.int8, "pred": jnp.bool_, "s4": jnp.int4}
KINDS: dict[str, Any] = {"blocked": lambda size: size, "element": pl.Element, "squeezed": lambda size: None}


def jax_refuses(dims: tuple[int, ...], block: tuple[Block, ...], dtype: str, target: str) -> str:
    spec = pl.BlockSpec(tuple(KINDS[b.kind](b.size) for b in block), lambda i: (0,) * len(dims))

    def kernel(x: Any) -> None:
        pltpu.emit_pipeline(lambda a: None, grid=(2,), in_specs=[spec])(x)

    array = jax.ShapeDtypeStruct(dims, TYPES[dtype])
    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    call = pl.pallas_call(lambda x, o: kernel(x), out_shape=array, in_specs=[anywhere], out_specs=anywhere)
    with device_of(target):
        try:
            jax.make_jaxpr(call)(array)
        except ValueError as error:
            return str(error)
    return ""


@pytest.mark.parametrize("target", ["v3", "v5e", "7x"])
def test_blocks_are_refused_as_jax_refuses_them(target: str) -> None:
    rng = random.Random(target)
    seen = set()
    for _ in range(80):
        rank = rng.choice((1, 2, 2, 3))
        dims = tuple(rng.choice((1, 3, 4, 8, 16, 100, 128, 256, 300, 1000)) for _ in range(rank))
        kinds = rng.choice((("blocked", "blocked", "squeezed"), ("element", "element", "squeezed")))
        sizes = (1, 2, 3, 8, 10, 16, 32, 64, 96, 128, 256, 512)
        block = tuple(
            Block(kind, 1 if kind == "squeezed" else min(n, rng.choice(sizes)))
            for n, kind in ((n, rng.choice(kinds)) for n in dims)
        )
        if all(b.kind == "squeezed" for b in block):
            continue  # JAX has an assertion in its way there
        dtype = rng.choice(tuple(TYPES))
        said = jax_refuses(dims, block, dtype, target)
        assert not said or "Block size must divide tiling" in said
        ours = refuses_slices(Operand("x", "in", dims, dtype, block, ()), target)
        assert bool(ours) is bool(said), (dims, block, dtype, ours, said)
        assert not said or said.endswith(ours.rpartition("tile of ")[2].split()[0]), (ours, said)
        seen.add(bool(said))
    assert seen == {True, False}


def test_a_written_pipeline_hears_of_it() -> None:
    read = lp.read_layout(
        {
            "kernel": {
                "grid": [4],
                "pipeline": "emit_pipeline",
                "inputs": [{"array": "f32[100,128]", "block": [30, 128], "index": "(i) -> (i, 0)"}],
                "outputs": [{"array": "f32[120,128]", "block": [30, 128], "index": "(i) -> (i, 0)"}],
            }
        }
    )
    (found,) = judge(read.kernel, names=["legal_for_target"], target="v5e")
    assert found.verdict is lp.Verdict.REFUTED
    assert "30 is no multiple of the tile of 8" in found.reason
