"""Operands of products of a warpgroup: the limits of JAX's lowering, each held against what it says itself."""

from __future__ import annotations

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
from tests.gpu_lowering import lowered_for_cuda
from tests.said import Said

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(jax.__version__ != "0.10.2", reason="limits of jax 0.10.2"),
]


WARPGROUP = plgpu.CompilerParams(lowering_semantics=plgpu.LoweringSemantics.Warpgroup)


@dataclass(frozen=True)
class Product:
    """acc += a @ b of operands that lie in shared memory.

    left, right: how each lies: (rows of its tiles, swizzle in bytes, 0 for none), and whether it is seen transposed;
    of the left one None for registers.
    """

    m: int = 64
    n: int = 128
    k: int = 128
    dtype: Any = jnp.float16
    adds: Any = jnp.float32
    left: tuple[int, int, bool] | None = (8, 128, False)
    right: tuple[int, int, bool] = (8, 128, False)

    def memory(self, shape: tuple[int, int], lies: tuple[int, int, bool] | None) -> Any:
        if lies is None:
            return plgpu.SMEM(shape, self.dtype)
        rows, swizzle, turned = lies
        width = swizzle // jnp.dtype(self.dtype).itemsize
        tiles = (plgpu.TilingTransform((rows, width)), plgpu.SwizzleTransform(swizzle)) if swizzle else ()
        return plgpu.SMEM(shape[::-1] if turned else shape, self.dtype, transforms=tiles)

    def kernel(self) -> Any:
        def body(o_gmem: Any, a: Any, b: Any, acc: Any) -> None:
            right = plgpu.transpose_ref(b, (1, 0)) if self.right[2] else b
            if self.left is None:
                wide = jnp.dtype(self.dtype).itemsize > 1
                layout = plgpu.Layout.WGMMA if wide else plgpu.Layout.WGMMA_8BIT
                left = plgpu.load(a, (), layout=layout, optimized=False)
            else:
                left = plgpu.transpose_ref(a, (1, 0)) if self.left[2] else a
            plgpu.wgmma(acc, left, right)
            plgpu.wgmma_wait(0)

        a, b = self.memory((self.m, self.k), self.left), self.memory((self.k, self.n), self.right)
        out = jax.ShapeDtypeStruct((self.m, self.n), self.adds)
        scratch = [a, b, plgpu.ACC((self.m, self.n), self.adds)]
        return plgpu.kernel(body, out_type=out, grid=(1,), grid_names=("i",), scratch_types=scratch)

    def lowered_by_warpgroup(self) -> Any:
        """The same kernel, for which JAX chooses how shared memory lies."""
        with mock.patch.object(plgpu, "kernel", partial(plgpu.kernel, compiler_params=WARPGROUP)):
            return self.kernel()

    def said(self) -> tuple[Verdict, str]:
        """What the question says of it."""
        found = lp.kernels(self.kernel()).findings
        ((verdict, reason),) = [
            (f.verdict, f.reason) for f in found if f.question == "wgmma_tiles" and f.severity == "error"
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


RIGHT = Product()
"""Of f16 in tiles of 8 x 64."""
WRONG: dict[str, tuple[Product, Said]] = {
    "96 rows": (replace(RIGHT, m=96), Said("pallas.wgmma_tiles_rows", rows=96)),
    "320 columns": (replace(RIGHT, n=320), Said("pallas.wgmma_tiles_columns", columns=320)),
    "two swizzles": (replace(RIGHT, left=(8, 64, False)), Said("pallas.wgmma_tiles_swizzles", bytes=64, others=128)),
    "16 rows in a tile": (
        replace(RIGHT, left=(16, 128, False)),
        Said("pallas.wgmma_tiles_tiles", tiles="16 x 64", rows=8),
    ),
    "no swizzle": (replace(RIGHT, right=(8, 0, False)), Said("pallas.wgmma_tiles_missing", missing="swizzle")),
    "f32, right one as it is": (replace(RIGHT, dtype=jnp.float32), Said("pallas.wgmma_tiles_turned", dtype="f32")),
    "bf16 added to f16": (
        replace(RIGHT, dtype=jnp.bfloat16, adds=jnp.float16),
        Said("pallas.wgmma_tiles_accumulator", dtype="f16", operands="bf16"),
    ),
    "s16": (replace(RIGHT, dtype=jnp.int16), Said("pallas.wgmma_tiles_operands", dtype="s16")),
    "u8 added to f32": (
        replace(RIGHT, dtype=jnp.uint8, right=(8, 128, True)),
        Said("pallas.wgmma_tiles_accumulator", dtype="f32", operands="u8", takes="s32"),
    ),
    "f32 from registers": (
        replace(RIGHT, dtype=jnp.float32, left=None, right=(8, 128, True)),
        Said("pallas.wgmma_tiles_registers", dtype="f32"),
    ),
    "s8 from registers, swizzle 32": (
        replace(RIGHT, dtype=jnp.int8, adds=jnp.int32, left=None, right=(8, 32, True)),
        Said("pallas.wgmma_tiles_small_swizzle", swizzle=32),
    ),
}
OUT_OF_REGISTERS = (
    replace(RIGHT, left=None),
    replace(RIGHT, dtype=jnp.int8, adds=jnp.int32, left=None, right=(8, 64, True)),
    replace(RIGHT, dtype=jnp.float8_e5m2, left=None, right=(8, 32, True)),
)


def test_a_product_that_a_warpgroup_does() -> None:
    assert RIGHT.said() == (Verdict.PROVED, "")
    assert RIGHT.refused() == ""


@pytest.mark.parametrize("product", OUT_OF_REGISTERS)
def test_a_product_out_of_registers(product: Product) -> None:
    assert product.said() == (Verdict.PROVED, "")
    assert product.refused() == ""


def test_unsigned_operands_are_multiplied_as_signed_ones() -> None:
    """JAX makes one and the same kernel of both."""
    signed = replace(RIGHT, dtype=jnp.int8, adds=jnp.int32, right=(8, 128, True))
    unsigned = replace(signed, dtype=jnp.uint8)
    made = [lowered_for_cuda(jax.jit(product.kernel())).as_text() for product in (signed, unsigned)]
    assert made[0] == made[1]
    for product in (signed, unsigned):
        assert product.said() == (Verdict.PROVED, "")
        found = [f for f in lp.kernels(product.kernel()).findings if f.severity == "warning"]
        warned = [f for f in found if f.question == "wgmma_tiles"]
        assert all(Said("pallas.wgmma_tiles_signed").of(f.reason) for f in warned)
        assert bool(warned) is (product is unsigned)


@pytest.mark.parametrize("name", WRONG)
def test_a_product_that_jax_refuses(name: str) -> None:
    product, wanted = WRONG[name]
    verdict, reason = product.said()
    assert verdict is Verdict.REFUTED
    assert wanted.of(reason)
    assert product.refused()


def test_nothing_is_asked_where_jax_chooses_the_tiles() -> None:
    """Warpgroup semantics: JAX lowers a product of memory without transforms, and finds tiles itself."""
    made = replace(RIGHT, left=(8, 0, False), right=(8, 0, False)).lowered_by_warpgroup()
    asked = {f.question for f in lp.kernels(made).findings if f.asked}
    assert asked
    assert not {"wgmma_tiles", "tma_box"} & asked
    assert lowered_for_cuda(jax.jit(made)).as_text()


def drawn(random: Random) -> Product:
    """A product, most of them with one thing that may be wrong."""
    dtype = random.choice((jnp.float16, jnp.bfloat16, jnp.float32, jnp.int8, jnp.float8_e4m3fn))
    size = jnp.dtype(dtype).itemsize
    swizzle = random.choice((32, 64, 128))
    group = swizzle // size
    other = random.choice((swizzle, swizzle, swizzle, 32, 64, 128))
    turned = size != 2 if random.random() < 0.8 else random.random() < 0.5
    odd = random.random() < 0.1 and size == 2
    adds = jnp.int32 if dtype == jnp.int8 else jnp.float32
    if random.random() < 0.15:
        adds = random.choice((jnp.float16, jnp.float32, jnp.int32))
    depth = max(group, other // size) * random.choice((1, 2))
    columns = random.choice((1, 1, 2, 4)) * max(8, other // size)
    rows = random.choice((64, 64, 128, 192, 96 if not odd else 64))
    rows = -(-rows // group) * group if odd else rows
    tile = random.choice((8, 8, 8, 8, 16))
    return Product(rows, columns, depth, dtype, adds, (8, swizzle, odd), (tile, other, turned))


def test_random_products_are_refused_as_jax_refuses_them() -> None:
    """Both happen."""
    random, seen = Random(20261128), Counter()
    while seen.total() < 80:
        product = drawn(random)
        try:
            jax.make_jaxpr(product.kernel())()
        except AssertionError:
            # JAX does not trace some accumulators
            continue
        verdict, reason = product.said()
        refused = product.refused()
        assert (verdict is Verdict.REFUTED) == bool(refused), (product, verdict, reason, refused)
        seen[verdict] += 1
    assert min(seen[Verdict.PROVED], seen[Verdict.REFUTED]) > 20, seen


def folded(tiles: tuple[int, ...], parts: int = 2) -> Any:
    """acc += a @ b, where b has its columns in several dimensions and is seen as a matrix."""

    def body(o_gmem: Any, a: Any, b: Any, acc: Any) -> None:
        plgpu.wgmma(acc, a, b.at[0].reshape(64, 128))
        plgpu.wgmma_wait(0)

    def memory(shape: tuple[int, ...], tiles: tuple[int, ...]) -> Any:
        lies = plgpu.TilingTransform(tiles), plgpu.SwizzleTransform(tiles[-1] * 2)
        return plgpu.SMEM(shape, jnp.float16, transforms=lies)

    out = jax.ShapeDtypeStruct((64, 128), jnp.float32)
    right = memory((2, 64, parts, 128 // parts), tiles)
    scratch = [memory((64, 64), (8, 64)), right, plgpu.ACC((64, 128), jnp.float32)]
    return plgpu.kernel(body, out_type=out, grid=(1,), grid_names=("i",), scratch_types=scratch)


@pytest.mark.parametrize(
    ("tiles", "parts", "verdict"),
    [
        ((8, 1, 64), 2, Verdict.PROVED),
        ((8, 1, 32), 2, Verdict.REFUTED),
        ((8, 1, 32), 4, Verdict.REFUTED),
        ((4, 1, 64), 2, Verdict.REFUTED),
        ((1, 64), 2, Verdict.REFUTED),
        # each of its tiles would be none of the folded memory
        ((8, 2, 64), 2, Verdict.UNKNOWN),
    ],
)
def test_an_operand_that_is_folded_lies_as_it_did(tiles: tuple[int, ...], parts: int, verdict: Verdict) -> None:
    found = lp.kernels(folded(tiles, parts), target="mosaic_gpu").findings
    assert {f.verdict for f in found if f.question == "wgmma_tiles" and f.severity == "error"} == {verdict}
    if verdict is Verdict.PROVED:
        assert lowered_for_cuda(jax.jit(folded(tiles, parts))).as_text()
        return
    with pytest.raises((ValueError, NotImplementedError, AssertionError)):
        lowered_for_cuda(jax.jit(folded(tiles, parts)))
