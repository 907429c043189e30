"""What the installed JAX says of tracers and kernels is explained, and a right call beside each wrong one runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import layoutproof as lp

pytestmark = pytest.mark.slow

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
    "bool": ("tracing", "it rests on argument x of <lambda>"),
    "index": ("tracing", "it rests on argument n of <lambda>"),
    "numpy": ("tracing", "NumPy needs the elements of an array"),
    "nonzero": ("tracing", "by jnp.nonzero"),
    "leak": ("tracing", "a value of a traced function (float32[]"),
    "context mesh": ("jit", "'data': 8"),
    "few devices": ("jit", "a mesh of (4, 4) takes 16 devices, and 8 are there"),
    "captured": ("Pallas", "f32[8,128]"),
    "index map constants": ("Pallas", "scalar prefetch operands"),
    "returns": ("Pallas", "output references"),
    "index map": ("Pallas", "2 for (8, 128), and here 1"),
    "rank": ("Pallas", "1 in (8,), and 2 in (16, 128)"),
    "program id": ("Pallas", "pl.program_id(1) asks for a dimension of the grid, and the grid has 1 dimensions"),
    "no grid": ("Pallas", "and the pallas_call has no grid"),
    "alias": ("Pallas", "input 0 and output 0 differ"),
    "alias number": ("Pallas", "names input 1, and there are 1"),
    "semantics": ("Pallas", "2 entries for a grid of 1 dimensions"),
    "hbm": ("Pallas", "left in HBM"),
    "cut in hbm": ("Pallas", "no blocks are cut"),
    "array of semaphores": ("Pallas", "(2,)"),
    "strides": ("Pallas for GPUs", "rows that begin 16 bytes apart"),
    "last dimension": ("Pallas for GPUs", "192 bits there (192 % 128 = 64)"),
    "256": ("Pallas for GPUs", "512 in dimension 0"),
    "shared memory": ("Pallas for GPUs", "bytes of shared memory, and a block has 232448"),
    "swizzle": ("Pallas for GPUs", "a swizzle of 128 bytes goes over tiles of 8 x 64, and these are 32 wide"),
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


TEXTS = {
    "Accelerator device halted prematurely. BoundsCheck 6 [deref of %s33] for %34 = dma.hbm_to_vmem [thread:$0]\n"
    "hlo: gather_kernel.1": ("device halted", "a copy from hbm to vmem in gather_kernel.1 lies outside"),
    "Core halted unexpectedly: semaphore has a nonzero value upon exit\nhlo: ring.2": (
        "device halted",
        "a semaphore in ring.2 is not 0",
    ),
    'Mosaic failed to compile TPU kernel: Expected matmul acc to be 32-bit\n%1 = "tpu.matmul"(%a, %b, %c) : '
    "(vector<8x128xbf16>, vector<128x128xbf16>, vector<8x128xbf16>) -> vector<8x128xbf16>": (
        "Mosaic",
        "here it is bf16",
    ),
    "Mosaic failed to compile TPU kernel: Unsupported implicit dim change: from none to -2\n"
    '%2 = "vector.shape_cast"(%1) : (vector<8x128xi16>) -> vector<8x1x128xi16>': ("Mosaic", "8x128 to 8x1x128"),
    "Mosaic failed to compile TPU kernel: Not implemented: result/input offset mismatch on non-concat dimension.\n"
    '%3 = "tpu.concatenate"(%1, %2) : (vector<4x128xf32>, vector<4x128xf32>) -> vector<8x128xf32>': ("Mosaic", "4x128"),
    "WGMMA with element type f16 only supports accumulators of type f32 or f16, but got: s32": (
        "Pallas for GPUs",
        "s32",
    ),
    "N must be a multiple of 8 and <= 256, got: 260": ("Pallas for GPUs", "here they are 260"),
    "Total TMEM allocation exceeds memory limit. Requested 640 columns which exceeds limit of 512.": (
        "Pallas for GPUs",
        "has 512 columns",
    ),
    "Grid dimension x must be divisible by cluster dimension: 5 % 2 != 0": ("Pallas for GPUs", "5 programs"),
    "Layout passed to jit does not match the layout on the respective arg. Got jit layout: "
    "Layout(major_to_minor=(1, 0)), arg layout: Layout(major_to_minor=(0, 1)) for arg type: float32[16,32].": (
        "jit",
        "the array lies as Layout(major_to_minor=(0, 1))",
    ),
    "dma_wait requires a DMA semaphore, but got a regular semaphore. Use pl.semaphore_wait() instead.": (
        "Pallas",
        "a semaphore of type DMA",
    ),
    "The size of all_to_all split_axis (6) has to be divisible by the size of the named axis x (4)": (
        "collective",
        "6 elements are no multiple of 4",
    ),
    "ppermute sources and destinations must be unique, got [(0, 1), (1, 1)].": (
        "collective",
        "device 1 receives 2 times",
    ),
    "psum is a variant->invariant collective. This means that the axis names mentioned in `axes` passed to `psum` must "
    "be present in `jax.typeof(inp).mat.varying`. Got axes=('x',) and jax.typeof(inp).mat.varying=frozenset()": (
        "collective",
        "psum over ('x',)",
    ),
    "unexpected JAX type (e.g. shape/dtype) for argument to vjp function: got float32[], but expected float32[]{x} "
    "because": (
        "collective",
        "the result varies over the mesh (float32[]{x})",
    ),
    "`with_sharding_constraint` acts as an assert when all axes of mesh are of type `Explicit`. The array sharding: "
    "P('x', None) did not match the sharding provided: P(None, 'x'). Please use": (
        "sharding",
        "the array is P('x', None)",
    ),
    "Mapped away dimension of inputs passed to vmap should be sharded the same. Got inconsistent axis specs: None "
    "vs x": (
        "sharding",
        "split over None in one and x in another",
    ),
    "pjit does not support kwargs when in_shardings is specified.": ("jit", "by keyword"),
    "Non-hashable static arguments are used in a jit function. An error occurred while trying to hash an object of "
    "type <class 'list'>, [1, 2].": ("jit", "<class 'list'> has none"),
    "memref<32xf32> must have a number of elements that is a multiple of 128 (got 32)": (
        "Pallas for GPUs",
        "32 elements are no multiple of 128",
    ),
    "The input carry c has type float32[4] but the corresponding output carry component has type float32[4]{V:x}, so "
    "the varying manual axes do not match.": ("shapes", "float32[4] and float32[4]{V:x}"),
    "64-bit types are not supported": ("Pallas", "64 bits wide"),
    "Unsupported cast: int8 -> float16": ("Pallas", "from int8 to float16"),
}


@pytest.mark.parametrize("text", TEXTS, ids=[cause for _, cause in TEXTS.values()])
def test_a_text_is_explained(text: str) -> None:
    kind, cause = TEXTS[text]
    (message,) = lp.why(text).messages
    assert message.kind == kind
    assert cause in message.cause
    assert message.fixes


@pytest.mark.parametrize(
    "text",
    [
        "M must be a multiple of 64, got 128",
        "Mosaic GPU kernel exceeds available shared memory: smem_bytes=1024 > 232448",
        "user passed in program id with axis: 0, but grid only has length: 2",
        "Length of grid does not match length of dimension semantics. len(grid)=2, len(dimension_semantics)=2",
        "Accelerator device halted prematurely, perhaps due to an on-device check-failure.",
    ],
)
def test_what_contradicts_itself_or_says_too_little_has_no_cause(text: str) -> None:
    (message,) = lp.why(text).messages
    assert not message.cause
    assert message.reason
