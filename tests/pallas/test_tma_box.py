"""Boxes of TMA: the limits of JAX's lowering, each at its edge and one beyond, with tiles, swizzles, clusters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import prod
from random import Random
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

import layoutproof as lp
from layoutproof.core.result import Verdict
from tests.gpu_lowering import lowered_for_cuda
from tests.said import Said

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(jax.__version__ != "0.10.2", reason="limits of jax 0.10.2"),
]

TILED = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))


@dataclass(frozen=True)
class Copy:
    """A copy of the first elements of an array into shared memory, or out of it. box: 0 for an index.

    held: the shared memory, of whose beginning it is, where that is larger.
    """

    array: tuple[int, ...]
    box: tuple[int, ...]
    dtype: Any = jnp.float16
    transforms: tuple[Any, ...] = ()
    out: bool = False
    programs: int = 1
    held: tuple[int, ...] = ()

    def kernel(self) -> Any:
        at = tuple(n if n == 0 else pl.ds(0, n) for n in self.box)
        shape = tuple(n for n in self.box if n != 0)

        def body(x_gmem: Any, o_gmem: Any, memory: Any, barrier: Any) -> None:
            smem = memory.at[tuple(pl.ds(0, n) for n in shape)] if self.held else memory
            if self.out:
                plgpu.copy_smem_to_gmem(smem, o_gmem.at[at])
                plgpu.wait_smem_to_gmem(0)
            else:
                axes = "c" if self.programs > 1 else None
                plgpu.copy_gmem_to_smem(x_gmem.at[at], smem, barrier, collective_axes=axes)
                plgpu.barrier_wait(barrier)

        cluster = {"cluster": (self.programs,), "cluster_names": ("c",)} if self.programs > 1 else {}
        return plgpu.kernel(
            body,
            out_type=jax.ShapeDtypeStruct(self.array, self.dtype),
            grid=(1,),
            grid_names=("i",),
            scratch_types=[plgpu.SMEM(self.held or shape, self.dtype, transforms=self.transforms), plgpu.Barrier()],
            **cluster,
        )

    def said(self) -> tuple[Verdict, str]:
        """What the question says of it."""
        found = lp.kernels(self.kernel(), jax.ShapeDtypeStruct(self.array, self.dtype)).findings
        ((verdict, reason),) = [(f.verdict, f.reason) for f in found if f.question == "tma_box"]
        return verdict, reason

    def refused(self) -> str:
        """What JAX says of it when it lowers the kernel for a GPU, for which it needs none; "" where it does."""
        try:
            lowered_for_cuda(jax.jit(self.kernel()), jax.ShapeDtypeStruct(self.array, self.dtype))
        except (ValueError, NotImplementedError) as error:
            return str(error)
        return ""


RIGHT: dict[str, Copy] = {
    "256 rows": Copy(array=(512, 64), box=(256, 64)),
    "16 bytes": Copy(array=(64, 64), box=(64, 8)),
    "in tiles, 256 of them": Copy(
        (4096, 64),
        (2048, 64),
        jnp.int8,
        (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(64)),
    ),
    "more than 256 in a row, out": Copy(array=(512, 512), box=(64, 512), out=True),
    "5 dimensions": Copy(array=(2, 2, 2, 2, 64), box=(2, 2, 2, 2, 64)),
    "5 dimensions and two of 1": Copy(array=(1, 1, 2, 2, 2, 2, 64), box=(1, 1, 2, 2, 2, 2, 64)),
    "one row by its number": Copy(array=(64, 64), box=(0, 64)),
    "one dimension": Copy(array=(1000,), box=(128,)),
}
WRONG: dict[str, tuple[Copy, Said]] = {
    "257 rows": (Copy(array=(512, 64), box=(257, 64)), Said("pallas.tma_box_elements", box="257 x 64", elements=257)),
    "512 in a row": (Copy(array=(64, 512), box=(32, 512)), Said("pallas.tma_box_elements", elements=512)),
    "512 in a row, out, not whole rows": (
        Copy(array=(64, 1024), box=(32, 512), out=True),
        Said("pallas.tma_box_elements", box="32 x 512", elements=512),
    ),
    "257 tiles": (
        Copy((4096, 64), (2056, 64), jnp.int8, (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(64))),
        Said("pallas.tma_box_elements", box="257 x 8 x 64"),
    ),
    "tiles, 204 rows": (
        Copy((204, 64), (64, 64), transforms=TILED),
        Said("pallas.tma_box_undivided", extent=204, tiles="8 x 64"),
    ),
    "208 bytes": (Copy((1000,), (104,)), Said("pallas.tma_box_bytes", bytes="208")),
    "8 bytes": (Copy(array=(64, 64), box=(64, 4)), Said("pallas.tma_box_last", bytes="8")),
    "rows 200 bytes apart": (Copy(array=(64, 100), box=(64, 8)), Said("pallas.tma_box_apart", bytes="200")),
    "part of swizzled rows": (
        Copy((64, 64), (64, 32), transforms=TILED[1:], held=(64, 64)),
        Said("pallas.tma_box_swizzle", swizzle=128, bytes="64"),
    ),
    "6 dimensions": (Copy((2, 2, 2, 2, 2, 64), (2, 2, 2, 2, 2, 64)), Said("pallas.tma_box_dimensions", count=6)),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_a_copy_that_tma_can_do(name: str) -> None:
    assert RIGHT[name].said() == (Verdict.PROVED, "")
    assert RIGHT[name].refused() == ""


@pytest.mark.parametrize("name", WRONG)
def test_a_copy_that_jax_refuses(name: str) -> None:
    copy, wanted = WRONG[name]
    verdict, reason = copy.said()
    assert verdict is Verdict.REFUTED
    assert wanted.of(reason)
    assert copy.refused()


def drawn(random: Random) -> Copy:
    """A copy of a part of an array, about as often right as wrong."""
    rank = random.choice((1, 2, 2, 2, 3, 3, 4, 5, 6))
    dtype = random.choice((jnp.float32, jnp.float16, jnp.int8))
    bits = jnp.dtype(dtype).itemsize * 8
    swizzle = random.choice((0, 0, 32, 64, 128)) if rank > 1 else 0
    minor = swizzle * 8 // bits or random.choice((4, 8, 16, 32, 64, 128, 512))
    box = [*(random.choice((0, 1, 2, 3)) for _ in range(rank - 2)), random.choice((8, 16, 64, 256, 264)), minor][-rank:]
    if swizzle and random.random() < 0.5:
        box[-1] *= 2
    array = [random.choice((1, n or 4, 2 * n or 4)) if n < 2 else n * random.choice((1, 1, 2)) for n in box]
    array[-1] += random.choice((0, 0, 0, 4))
    transforms: tuple[Any, ...] = ()
    if swizzle:
        transforms = plgpu.TilingTransform((8, minor)), plgpu.SwizzleTransform(swizzle)
    out = random.random() < 0.3
    programs = 2 if not out and random.random() < 0.2 else 1
    return Copy(tuple(array), tuple(box), dtype, transforms, out, programs)


def test_random_copies_are_refused_as_jax_refuses_them() -> None:
    """Of 80 that fit into shared memory; both happen."""
    random = Random(20261128)
    seen = Counter()
    while seen.total() < 80:
        copy = drawn(random)
        if prod(n or 1 for n in copy.box) * jnp.dtype(copy.dtype).itemsize > 200_000:
            continue
        verdict, reason = copy.said()
        refused = copy.refused()
        assert (verdict is Verdict.REFUTED) == bool(refused), (copy, verdict, reason, refused)
        seen[verdict] += 1
    assert min(seen[Verdict.PROVED], seen[Verdict.REFUTED]) > 20, seen


@pytest.mark.parametrize(("rows", "verdict"), [(512, Verdict.PROVED), (514, Verdict.REFUTED), (511, Verdict.REFUTED)])
def test_programs_of_a_cluster_share_a_box(rows: int, verdict: Verdict) -> None:
    """Each of two brings half of the rows: 256 at most; 511 rows they do not divide, and rows of 8 bytes are none."""
    copy = Copy((1024, 8), (rows, 8), programs=2)
    assert copy.said()[0] is verdict
    assert bool(copy.refused()) == (verdict is Verdict.REFUTED)
