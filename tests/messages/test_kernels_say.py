"""What the installed JAX says of tracers and kernels is explained, and a right call beside each wrong one runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import layoutproof as lp

pytestmark = pytest.mark.slow

CASES = Path(__file__).resolve().parents[1] / "cases" / "kernel_messages.jsonl"

CODE = """
import json
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import triton as pltriton
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

said = {}

def says(name, wrong, right=None):
    try:
        wrong()
        said[name] = ""
    except Exception as error:
        said[name] = f"{type(error).__name__}: {error}"
    if right is not None:
        right()

x = jnp.ones((16, 128))
F = jax.ShapeDtypeStruct((16, 128), jnp.float32)
says("bool",
     lambda: jax.jit(lambda x: x if x > 0 else -x)(1.0), lambda: jax.jit(lambda x: jnp.where(x > 0, x, -x))(1.0))
says("index", lambda: jax.jit(lambda n: [*range(n)])(3),
     lambda: jax.jit(lambda n: [*range(n)], static_argnames="n")(n=3))
says("numpy", lambda: jax.jit(lambda x: np.sin(x))(1.0), lambda: jax.jit(lambda x: jnp.sin(x))(1.0))
says("nonzero", lambda: jax.jit(jnp.nonzero)(x), lambda: jax.jit(lambda x: jnp.nonzero(x, size=4))(x))
kept = []
def leak():
    jax.jit(lambda x: kept.append(x) or x)(1.0)
    return kept[0] + 1
says("leak", leak)

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
other = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
def context(given):
    with jax.set_mesh(other):
        return jax.shard_map(lambda x: x, mesh=given, in_specs=P("data"), out_specs=P("data"))(jnp.ones(8))
says("context mesh", lambda: context(mesh), lambda: context(other))
says("few devices", lambda: jax.make_mesh((4, 4), ("a", "b")), lambda: jax.make_mesh((4, 2), ("a", "b")))

def lowered(body, platform="tpu", out=F, grid=(2,), ins=None, outs=None, args=None, **more):
    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    args = [x] if args is None else args
    ins = ins or [block] * len(args)
    call = pl.pallas_call(body, grid=grid, in_specs=ins, out_specs=outs or block, out_shape=out, **more)
    return jax.jit(call).trace(*args).lower(lowering_platforms=(platform,))

def copies(x, o): o[...] = x[...]
table = jnp.arange(8.0 * 128).reshape(8, 128)
def captured(x, o): o[...] = x[...] + table
says("captured", lambda: lowered(captured), lambda: lowered(lambda x, o: copies(x, o)))
numbers = jnp.arange(2)
says("index map constants", lambda: lowered(copies, ins=[pl.BlockSpec((8, 128), lambda i: (numbers[i], 0))]))
says("returns", lambda: lowered(lambda x, o: x[...]))
says("index map", lambda: lowered(copies, ins=[pl.BlockSpec((8, 128), lambda i: (i,))]))
says("rank", lambda: lowered(copies, ins=[pl.BlockSpec((8,), lambda i: (i,))]))
def second(x, o): o[...] = x[...] * pl.program_id(1)
says("program id", lambda: lowered(second))
def first(x, o): o[...] = x[...] * pl.program_id(0)
says("no grid", lambda: jax.jit(pl.pallas_call(first, out_shape=F)).trace(x).lower(lowering_platforms=("tpu",)))
B = jax.ShapeDtypeStruct((16, 128), jnp.bfloat16)
says("alias", lambda: lowered(lambda x, o: None, out=B, input_output_aliases={0: 0}),
     lambda: lowered(copies, input_output_aliases={0: 0}))
says("alias number", lambda: lowered(copies, input_output_aliases={1: 0}))
params = lambda *kinds: pltpu.CompilerParams(dimension_semantics=kinds)
says("semantics", lambda: lowered(copies, compiler_params=params("parallel", "arbitrary")),
     lambda: lowered(copies, compiler_params=params("parallel")))
def in_hbm(x, o): o[...] = x[0:8]
says("hbm", lambda: lowered(in_hbm, ins=[pl.BlockSpec(memory_space=pl.ANY)]))
cut = pl.BlockSpec((8, 128), lambda i: (i, 0), memory_space=pl.ANY)
says("cut in hbm", lambda: lowered(lambda x, o: None, ins=[cut]))
def signals(x, o, s): pl.semaphore_signal(s, 1)
regular = pltpu.SemaphoreType.REGULAR
says("array of semaphores", lambda: lowered(signals, scratch_shapes=[regular((2,))]),
     lambda: lowered(signals, scratch_shapes=[regular]))

def gpu(body, shape=(128, 128), dtype=jnp.float16, **more):
    aval = jax.ShapeDtypeStruct(shape, dtype)
    call = plgpu.kernel(body, out_shape=aval, **more)
    return jax.jit(call).trace(aval).lower(lowering_platforms=("cuda",))

def fetched(x, o, s, b):
    plgpu.copy_gmem_to_smem(x, s, b)
    plgpu.barrier_wait(b)
    plgpu.copy_smem_to_gmem(s, o)
    plgpu.wait_smem_to_gmem(0)

def part(x, o, s, b):
    plgpu.copy_gmem_to_smem(x.at[:, pl.ds(0, 12)], s, b)
    plgpu.barrier_wait(b)

def tile(shape, dtype=jnp.float16, transforms=(), **more):
    scratch = [plgpu.SMEM(shape, dtype, transforms=transforms), plgpu.Barrier()]
    return gpu(fetched, shape, dtype, scratch_shapes=scratch, **more)

says("strides", lambda: tile((64, 12)), lambda: tile((64, 16)))
barrier = plgpu.Barrier()
narrow = [plgpu.SMEM((64, 12), jnp.float16), barrier]
says("last dimension", lambda: gpu(part, (64, 16), scratch_shapes=narrow))
says("256", lambda: tile((512, 16)), lambda: tile((256, 16)))
says("shared memory", lambda: tile((256, 1024)))
tiled = lambda n: (plgpu.TilingTransform((8, n)), plgpu.SwizzleTransform(128))
says("swizzle", lambda: tile((64, 64), transforms=tiled(32)), lambda: tile((64, 64), transforms=tiled(64)))
whole = pl.BlockSpec((96, 64), lambda i: (0, 0))
odd = dict(grid=(1,), ins=[whole], outs=whole, out=jax.ShapeDtypeStruct((96, 64), jnp.float32))
odd |= dict(args=[jnp.ones((96, 64))], compiler_params=pltriton.CompilerParams())
says("triton", lambda: lowered(copies, "cuda", **odd))
print("SAID" + json.dumps(said))
"""

EXPECTED = {
    "bool": ("tracing", "argument x of <lambda>"),
    "index": ("tracing", "argument n of <lambda>"),
    "numpy": ("tracing", "NumPy needs"),
    "nonzero": ("tracing", "by jnp.nonzero"),
    "leak": ("tracing", "(float32[]"),
    "context mesh": ("jit", "'data': 8"),
    "few devices": ("jit", "takes 16 devices"),
    "captured": ("Pallas", "f32[8,128]"),
    "index map constants": ("Pallas", "scalar prefetch operands"),
    "returns": ("Pallas", "output references"),
    "index map": ("Pallas", "2 for (8, 128)"),
    "rank": ("Pallas", "2 in (16, 128)"),
    "program id": ("Pallas", "pl.program_id(1)"),
    "no grid": ("Pallas", "has no grid"),
    "alias": ("Pallas", "input 0 and output"),
    "alias number": ("Pallas", "names input 1"),
    "semantics": ("Pallas", "has 2 entries"),
    "hbm": ("Pallas", "left in HBM"),
    "cut in hbm": ("Pallas", "no blocks are cut"),
    "array of semaphores": ("Pallas", "(2,)"),
    "strides": ("Pallas for GPUs", "begin 16 bytes apart"),
    "last dimension": ("Pallas for GPUs", "(192 % 128 = 64)"),
    "256": ("Pallas for GPUs", "512 in dimension 0"),
    "shared memory": ("Pallas for GPUs", "has 232448"),
    "swizzle": ("Pallas for GPUs", "8 x 64, and"),
    "triton": ("Pallas for GPUs", "(96, 64) has 96"),
}


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    """The messages of the installed JAX, on eight CPU devices; a right call was run beside the wrong one."""
    pytest.importorskip("jax", reason="asks JAX for its messages")
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=8"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.split("SAID")[1])
    assert set(found) == set(EXPECTED)
    return dict(found)


@pytest.mark.parametrize("name", EXPECTED)
def test_what_jax_says_of_kernels_is_explained(name: str, said: dict[str, str]) -> None:
    kind, cause = EXPECTED[name]
    messages = lp.why(said[name]).messages
    assert [message.kind for message in messages] == [kind], said[name]
    assert cause in messages[0].cause
    assert messages[0].fixes


TEXTS = [json.loads(line) for line in CASES.read_text().splitlines()]


@pytest.mark.parametrize("case", TEXTS, ids=[case["text"][:60] for case in TEXTS])
def test_a_text_is_explained(case: dict[str, str]) -> None:
    """What contradicts itself, or says too little, has no cause, and a reason."""
    (message,) = lp.why(case["text"]).messages
    if "cause" in case:
        assert message.kind == case["kind"]
        assert case["cause"] in message.cause
        assert message.fixes
    else:
        assert not message.cause
        assert message.reason
