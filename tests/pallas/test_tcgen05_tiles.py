"""Operands and sums of products on tensor memory: the limits of JAX's lowering, held against what it says itself."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any
from unittest import mock

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental.pallas import mosaic_gpu as plgpu

import layoutproof as lp
from layoutproof.core.result import Verdict
from layoutproof.ir.codec import read, written
from layoutproof.ir.program import Program
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.bodies import TracedBody
from layoutproof.pallas.from_jax.trace import kernels_of
from tests.gpu_lowering import lowered_for_cuda
from tests.said import Said

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(jax.__version__ != "0.10.2", reason="limits of jax 0.10.2"),
]

WARPGROUP = plgpu.CompilerParams(lowering_semantics=plgpu.LoweringSemantics.Warpgroup)
F16, BF16, F32, S8, F8 = jnp.float16, jnp.bfloat16, jnp.float32, jnp.int8, jnp.float8_e4m3fn
Lies = tuple[int, int, bool]


@dataclass(frozen=True)
class TensorProduct:
    """acc += a @ b, the sum in tensor memory, b in shared memory.

    left, right: how each lies: (rows of its tiles, swizzle in bytes, 0 for none), and whether it is seen transposed; of
    the left one None for tensor memory.  programs: that do it together.  part: of how many columns it is a part, 0 for
    all, of the sum.  packed, collective: of the sum; held: packed, of a left operand in tensor memory.
    """

    m: int = 128
    n: int = 128
    k: int = 128
    dtype: Any = F16
    adds: Any = F32
    left: Lies | None = (8, 128, False)
    right: Lies = (8, 128, False)
    programs: int = 1
    part: int = 0
    packed: bool = False
    held: bool = True
    collective: bool | None = None
    other: Any = None

    @property
    def together(self) -> bool:
        """Whether tensor memory is that of two programs."""
        return self.programs > 1 if self.collective is None else self.collective

    @property
    def columns(self) -> int:
        """Columns of tensor memory that it takes at most."""
        left = 0 if self.left is not None else self.k
        return left + (self.part or self.n * self.programs)

    def memory(self, shape: tuple[int, int], lies: Lies | None, dtype: Any) -> Any:
        if lies is None:
            return plgpu.TMEM(shape, dtype, packed=self.held, collective=self.together)
        rows, swizzle, turned = lies
        width = swizzle // jnp.dtype(dtype).itemsize
        tiles = (plgpu.TilingTransform((rows, width)), plgpu.SwizzleTransform(swizzle)) if swizzle else ()
        return plgpu.SMEM(shape[::-1] if turned else shape, dtype, transforms=tiles)

    def kernel(self) -> Any:
        columns = self.n * self.programs

        def body(o_gmem: Any, a: Any, b: Any, acc: Any, barrier: Any) -> None:
            left = plgpu.transpose_ref(a, (1, 0)) if self.left is not None and self.left[2] else a
            right = plgpu.transpose_ref(b, (1, 0)) if self.right[2] else b
            to = acc.at[:, :columns] if self.part else acc
            axis = "c" if self.programs > 1 else None
            plgpu.tcgen05_mma(to, left, right, barrier, accumulate=False, collective_axis=axis)
            plgpu.barrier_wait(barrier)

        a = self.memory((self.m, self.k), self.left, self.other or self.dtype)
        b = self.memory((self.k, self.n), self.right, self.dtype)
        acc = plgpu.TMEM((self.m, self.part or columns), self.adds, packed=self.packed, collective=self.together)
        # memory of two programs is taken in a cluster alone
        cluster = {"cluster": (2,), "cluster_names": ("c",)} if self.together or self.programs > 1 else {}
        return plgpu.kernel(
            body,
            out_type=jax.ShapeDtypeStruct((128, 128), F32),
            grid=(1,),
            grid_names=("i",),
            scratch_types=[a, b, acc, plgpu.Barrier(orders_tensor_core=True)],
            **cluster,
        )

    def lowered_by_warpgroup(self) -> Any:
        """The same kernel, for which JAX chooses how shared memory lies."""
        with mock.patch.object(plgpu, "kernel", partial(plgpu.kernel, compiler_params=WARPGROUP)):
            return self.kernel()

    def said(self) -> tuple[Verdict, str]:
        """What the question says of it."""
        found = lp.kernels(self.kernel()).findings
        ((verdict, reason),) = [
            (f.verdict, f.reason) for f in found if f.question == "tcgen05_tiles" and f.severity == "error"
        ]
        return verdict, reason

    def refused(self) -> str:
        """What JAX says of it when it lowers the kernel for a GPU, for which it needs none; "" where it does."""
        try:
            lowered_for_cuda(jax.jit(self.kernel()))
        except Exception as error:
            # JAX has assertions there, too
            return f"{type(error).__name__}: {error}"
        return ""


RIGHTS: dict[str, TensorProduct] = {
    "f16": TensorProduct(),
    "512 columns": TensorProduct(n=512, k=64),
    "8 columns": TensorProduct(n=16, right=(8, 32, False), left=(8, 32, False)),
    "64 rows": TensorProduct(m=64),
    "64 rows, two programs": TensorProduct(m=64, programs=2),
    "two programs, 128 columns of each": TensorProduct(programs=2),
    "left one in tensor memory": TensorProduct(left=None),
    "both transposed": TensorProduct(left=(8, 128, True), right=(8, 128, True)),
    "8 bits, both transposed": TensorProduct(dtype=F8, left=(8, 128, True), right=(8, 128, True)),
    "integers": TensorProduct(dtype=S8, adds=jnp.int32),
    "f16 added to f16": TensorProduct(adds=F16),
    "part of its columns": TensorProduct(part=256),
}
RIGHT = RIGHTS["f16"]
WRONG: dict[str, tuple[TensorProduct, Said]] = {
    "no swizzle": (replace(RIGHT, right=(8, 0, False)), Said("pallas.wgmma_tiles_missing", missing="swizzle")),
    "16 rows in a tile": (replace(RIGHT, left=(16, 128, False)), Said("pallas.wgmma_tiles_tiles", tiles="16 x 64")),
    "two swizzles": (
        replace(RIGHT, left=(8, 64, False)),
        Said("pallas.wgmma_tiles_swizzles", bytes=64, others=128),
    ),
    "two types": (replace(RIGHT, other=BF16), Said("pallas.tcgen05_tiles_two_types", dtype="bf16", other="f16")),
    "f32": (
        replace(RIGHT, dtype=F32, right=(8, 128, True)),
        Said("pallas.tcgen05_tiles_operands", dtype="f32"),
    ),
    "bf16 added to f16": (
        replace(RIGHT, dtype=BF16, adds=F16),
        Said("pallas.tcgen05_tiles_sum", dtype="f16", operands="bf16"),
    ),
    "left one of 64 rows in tensor memory": (
        replace(RIGHT, left=None, m=64),
        Said("pallas.tcgen05_tiles_left_rows", rows=64),
    ),
    "left one not packed": (
        replace(RIGHT, left=None, held=False),
        Said("pallas.tcgen05_tiles_packed", packing=1, takes=2),
    ),
    "sum of f16 packed": (
        replace(RIGHT, adds=F16, packed=True),
        Said("pallas.tcgen05_tiles_packed", packing=2, takes=1),
    ),
    "64 rows, the sum as of two programs": (
        replace(RIGHT, m=64, collective=True),
        Said("pallas.tcgen05_tiles_lanes", rows=64),
    ),
    "64 rows, cut columns": (replace(RIGHT, m=64, part=256), Said("pallas.tcgen05_tiles_lanes", rows=64)),
    "64 rows, too few columns": (
        replace(RIGHT, m=64, n=64),
        Said("pallas.tcgen05_tiles_halves", columns=64, elements=64),
    ),
    "integers, 8 columns": (
        replace(RIGHT, dtype=S8, adds=jnp.int32, n=8, right=(8, 128, True)),
        Said("pallas.tcgen05_tiles_columns", columns=8, of=16),
    ),
    "384 columns": (replace(RIGHT, n=384, k=64), Said("pallas.tcgen05_tiles_wide", columns=384)),
    "two programs, 256 columns of each": (
        replace(RIGHT, programs=2, n=256),
        Said("pallas.tcgen05_tiles_most", columns=256, most=128),
    ),
    "64 rows, 96 columns at once": (
        replace(RIGHT, m=64, n=192),
        Said("pallas.tcgen05_tiles_part_of_tile", elements=64, taken=96),
    ),
}


@pytest.mark.parametrize("name", RIGHTS)
def test_a_product_that_tensor_memory_takes(name: str) -> None:
    assert RIGHTS[name].refused() == ""
    assert RIGHTS[name].said() == (Verdict.PROVED, "")


def test_two_floats_of_8_bits_are_multiplied() -> None:
    """jax 0.11.2 and 0.12.0.1 lower them; 0.10.2 refuses, and so does no wrong one come to a GPU."""
    assert replace(RIGHTS["8 bits, both transposed"], other=jnp.float8_e5m2).said() == (Verdict.PROVED, "")
    refused = replace(RIGHTS["8 bits, both transposed"], other=S8).said()
    assert refused[0] is Verdict.REFUTED


@pytest.mark.parametrize("name", WRONG)
def test_a_product_that_jax_refuses(name: str) -> None:
    product, wanted = WRONG[name]
    verdict, reason = product.said()
    assert verdict is Verdict.REFUTED
    assert wanted.of(reason)
    assert product.refused()


def test_unsigned_operands_are_multiplied_as_signed_ones() -> None:
    """JAX makes one and the same kernel of both."""
    signed = replace(RIGHT, dtype=S8, adds=jnp.int32)
    unsigned = replace(signed, dtype=jnp.uint8)
    made = [lowered_for_cuda(jax.jit(product.kernel())).as_text() for product in (signed, unsigned)]
    assert made[0] == made[1]
    assert unsigned.said() == signed.said() == (Verdict.PROVED, "")
    found = [f for f in lp.kernels(unsigned.kernel()).findings if f.severity == "warning"]
    (warned,) = [f for f in found if f.question == "tcgen05_tiles"]
    assert Said("pallas.wgmma_tiles_signed").of(warned.reason)


def test_a_record_says_how_tensor_memory_lies() -> None:
    (call,) = kernels_of(replace(RIGHT, m=64, adds=F16).kernel(), ())
    assert isinstance(call, Kernel)
    assert isinstance(call.body_reader, TracedBody)
    again = read(json.loads(json.dumps(written(call.body_reader.program))))
    inner = next(value for e in again.eqns for value in e.params.values() if isinstance(value, Program))
    lies = [(v.aval.lanes, v.aval.packing) for v in inner.invars if v.aval.memory == "tmem"]
    assert lies == [("half", 1)]


def test_nothing_is_asked_where_jax_chooses_the_tiles() -> None:
    """Warpgroup semantics: JAX lowers a product of memory without transforms, and finds tiles itself."""
    made = replace(RIGHT, left=(8, 0, False), right=(8, 0, False)).lowered_by_warpgroup()
    asked = {f.question for f in lp.kernels(made).findings if f.asked}
    assert asked
    assert "tcgen05_tiles" not in asked
    assert lowered_for_cuda(jax.jit(made)).as_text()


def drawn(random: Random) -> TensorProduct:
    """A product, most of them with one thing that may be wrong."""
    dtype = random.choice((F16, F16, BF16, F32, S8, F8, jnp.float8_e5m2))
    size = jnp.dtype(dtype).itemsize
    swizzle = random.choice((32, 64, 128, 128))
    group = swizzle // size
    other = random.choice((*([swizzle] * 12), 32, 64, 128))
    adds = jnp.int32 if dtype == S8 else F32
    if random.random() < 0.2:
        adds = random.choice((F16, F32, jnp.int32))
    programs = random.choice((1, 1, 1, 2))
    rows = random.choice((128, 128, 128, 64, 64))
    left = (random.choice((*([8] * 14), 16)), other, random.random() < 0.3)
    turned = random.random() < 0.5
    right = (random.choice((*([8] * 14), 16)), swizzle, turned)
    columns = random.choice((1, 1, 2, 3, 4, 6)) * (random.choice((8, 16, 24, 64)) if turned else group)
    columns = -(-columns // right[0]) * right[0] if turned else columns
    if random.random() < 0.1:
        columns = random.choice((256, 320, 384, 512))
    depth = max(group, other // size) * random.choice((1, 1, 2))
    in_tensor = random.random() < 0.2
    return TensorProduct(
        rows,
        columns,
        depth,
        dtype,
        adds,
        None if in_tensor else left,
        right,
        programs,
        packed=random.random() < 0.1,
        held=random.random() < 0.8,
        collective=True if programs == 1 and random.random() < 0.1 else None,
        part=2 * columns * programs if random.random() < 0.15 else 0,
    )


def test_random_products_are_refused_as_jax_refuses_them() -> None:
    """Both happen."""
    random, seen = Random(20261129), Counter()
    while seen.total() < 80:
        product = drawn(random)
        if product.columns > 512:
            # that is for another question
            continue
        try:
            jax.make_jaxpr(product.kernel())()
        except (AssertionError, ValueError, NotImplementedError):
            # JAX does not trace some memory
            continue
        verdict, reason = product.said()
        refused = product.refused()
        assert (verdict is Verdict.REFUTED) == bool(refused), (product, verdict, reason, refused)
        seen[verdict] += 1
    assert min(seen[Verdict.PROVED], seen[Verdict.REFUTED]) > 15, seen
