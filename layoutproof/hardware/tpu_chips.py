"""What a TPU chip can do, as numbers: the roofline of `search`, and the limits of kernels.

Per TensorCore as JAX counts them (a v4 or v5p chip is one device with two cores, "megacore"; a 7x chip is two
devices). Sources: jax/_src/pallas/mosaic/tpu_info.py of jax 0.10.2 for bytes, bandwidth and flops; memory limits
are measured, see `hardware/tpu`. SMEM: 1 MiB from v4 on, 16 KiB before (jax 0.10.2, tpu_info.py; v5e confirmed on
libtpu 0.0.42.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from layoutproof.hardware.tpu import generation


@dataclass(frozen=True, slots=True)
class Chip:
    """One TensorCore. cores: that one Pallas call may use.  hbm: bytes.  bandwidth: HBM bytes a second.
    bf16, int8, fp8: operations a second, 0 = the chip has no such unit.  mxu: rows of the systolic array.
    smem: bytes of scalar memory.
    """

    name: str
    cores: int
    hbm: int
    bandwidth: int
    bf16: int
    int8: int
    fp8: int
    mxu: int
    smem: int

    def peak(self, bits: int, floating: bool = True) -> int:
        """Operations a second on elements of this width; those of bf16 where the chip has no unit of its own."""
        own = 0 if bits > 8 else self.fp8 if floating else self.int8
        return own or self.bf16


G, T = 10**9, 10**12
_OLD, _NEW = 16 << 10, 1 << 20

CHIPS: Mapping[str, Chip] = MappingProxyType(
    {
        chip.name: chip
        for chip in (
            Chip("v2", 1, 8 * G, 358 * G, 23 * T, 0, 0, 128, _OLD),
            Chip("v3", 1, 17_200_000_000, 412_500_000_000, 70 * T, 0, 0, 128, _OLD),
            Chip("v4lite", 1, 8_590_000_000, 614 * G, 137 * T, 0, 0, 128, _NEW),
            Chip("v4", 2, 17_200_000_000, 615 * G, 137_500_000_000_000, 0, 0, 128, _NEW),
            Chip("v5e", 1, 17_200_000_000, 820 * G, 197 * T, 394 * T, 0, 128, _NEW),
            Chip("v5p", 2, 51_500_000_000, 1230 * G, 229_500_000_000_000, 459 * T, 0, 128, _NEW),
            Chip("v6e", 1, 34_400_000_000, 1640 * G, 920 * T, 1840 * T, 920 * T, 256, _NEW),
            Chip("7x", 1, 103 * G, 3700 * G, 1155 * T, 0, 2300 * T, 256, _NEW),
        )
    }
)
"""By canonical name."""


def chip(name: str) -> Chip:
    """The numbers of a generation, by any name that `hardware.tpu.generation` takes.

    >>> chip("TPU v5 lite").bandwidth
    820000000000
    """
    return CHIPS[generation(name)]
