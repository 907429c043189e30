"""NVIDIA GPUs as data: how far the axes of a layout reach on the hardware.

Sources. Names and factors: apache/tvm `src/tirx/ir/layout/axis_registry.cc` and its CUDA fusion maps (32 lanes in a
warp, 4 warps in a warp group of 128 threads, tx = 32*warpid + laneid = 128*wgid + tid_in_wg). 1024 threads in a block
and 8 blocks in a portable cluster: CUDA C++ Programming Guide, compute capabilities. Tensor memory of 128 lanes by 512
columns of 32 bits: PTX ISA, tcgen05. The paper (arXiv:2601.19092) writes lane, warp and reg for laneid, warpid and m.
Its Lane and Col are TLane and TCol.
Columns of narrower elements are more than 512; state those with `within: {TCol: ..}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from layoutproof.hardware.facts import Fact

_CUDA = {
    "lane": 32,
    "laneid": 32,
    "warp": 32,
    "warpid": 32,
    "wid_in_wg": 4,
    "tid_in_wg": 128,
    "wgid": 8,
    "tx": 1024,
    "cbx": 8,
    "cby": 8,
    "cbz": 8,
    "TLane": 128,
    "TCol": 512,
    "Lane": 128,
    "Col": 512,
}

EXTENTS: Mapping[str, Mapping[str, int]] = MappingProxyType({"cuda": MappingProxyType(_CUDA)})
"""Per target: the extent of each axis that the hardware bounds."""

MEMORY_AXES: Mapping[str, tuple[str, ...]] = MappingProxyType({"cuda": ("m", "reg", "TLane", "TCol", "Lane", "Col")})
"""Per target: the axes that are places within a memory; the others number who owns it."""

FACTS = tuple(
    Fact(f"extent of {axis}", str(extent), "apache/tvm, CUDA C++ Programming Guide, PTX ISA", "documents", "cuda")
    for axis, extent in _CUDA.items()
)
"""The axes with hardware bounds."""
