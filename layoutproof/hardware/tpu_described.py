"""TPU generations that JAX describes and that libtpu does not take: what is known of them, and what is not.

Source: jax/_src/tpu_info.py of jax 0.12.0.1, `get_tpu_info_for_chip`; numbers of one TensorCore. libtpu 0.0.52 answers
"Invalid TPU external name" to TPU8i, TPU8t, 8i, 8t, v8i and v8t (2026-11-28). No rule is made of these numbers: every
rule here was measured on a compiler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

JAX, LIBTPU = "jax 0.12.0.1", "libtpu 0.0.52"
UNKNOWN = (
    "default layouts and tiles, the blocks that the compiler takes, the VMEM of one kernel and its default limit, "
    "usable HBM, and costs"
)
"""What no one but the compiler says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedChip:
    """One generation. name, kind: as JAX spells them.

    vmem, smem, hbm: capacities in bytes, of which a program gets less.  bandwidth: of HBM, bytes a second.
    bf16, fp8: operations a second.  mxu: rows and columns of a matrix unit.  sublanes: of a vector register.
    sparse: (SparseCores, vector subcores of each, lanes).
    """

    name: str
    kind: str
    vmem: int
    smem: int
    hbm: int
    bandwidth: int
    bf16: int
    fp8: int
    mxu: int
    sublanes: int
    sparse: tuple[int, int, int]

    def __str__(self) -> str:
        return (
            f"VMEM {self.vmem >> 20} MiB, HBM {self.hbm / 10**9:g} GB at {self.bandwidth / 10**9:g} GB/s, "
            f"{self.bf16 / 10**12:g} bf16 and {self.fp8 / 10**12:g} fp8 TFLOP/s, registers of {self.sublanes} x 128, "
            f"{self.sparse[0]} SparseCore{'s' if self.sparse[0] > 1 else ''}"
        )


DESCRIBED: Mapping[str, DescribedChip] = MappingProxyType(
    {
        chip.name: chip
        for chip in (
            DescribedChip(
                name="8i", kind="TPU8i", vmem=201326592, smem=1048576, hbm=154_500_000_000,
                bandwidth=4_300_000_000_000, bf16=550_500_000_000_000, fp8=4_404_000_000_000_000, mxu=256, sublanes=8,
                sparse=(1, 4, 16),
            ),
            DescribedChip(
                name="8t", kind="TPU8t", vmem=134217728, smem=1048576, hbm=231_000_000_000,
                bandwidth=6_400_000_000_000, bf16=996_100_000_000_000, fp8=5_976_900_000_000_000, mxu=256, sublanes=16,
                sparse=(2, 16, 16),
            ),
        )
    }
)  # fmt: skip
"""By name."""


def described(name: str) -> str:
    """Why a generation that JAX describes is no target, with what is known of it; "" for every other name.

    >>> described("TPU8i").partition(":")[0]
    'TPU 8i is described by jax 0.12.0.1, and libtpu 0.0.52 does not take it'
    >>> described("v5e")
    ''
    """
    plain = "".join(str(name).lower().split()).replace("-", "").replace("_", "").removeprefix("tpu").removeprefix("v")
    chip = DESCRIBED.get(plain)
    if chip is None:
        return ""
    return (
        f"TPU {chip.name} is described by {JAX}, and {LIBTPU} does not take it: {chip}; not known are {UNKNOWN}, so "
        "that no rule of it is asked"
    )
