"""AWS Trainium as data: how far the axes of a layout reach on the hardware.

Source: apache/tvm `src/tirx/ir/layout/axis_registry.cc` and `TileLayout.trainium`, `to_psum` (at most 128 partitions P;
PSUM has 8 banks of 512 elements of 32 bits in each partition). How far F reaches in SBUF depends on the element width,
so it is left open; state it with `within: {F: ..}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from layoutproof.hardware.facts import Fact

EXTENTS: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "trainium": MappingProxyType({"P": 128, "Bank": 8}),
        "trainium.psum": MappingProxyType({"P": 128, "Bank": 8, "F": 512}),
    }
)
"""Per target: the extent of each axis that the hardware bounds."""

MEMORY_AXES: Mapping[str, tuple[str, ...]] = MappingProxyType({"trainium": ("m", "P", "F", "Bank")})
"""Per target: the axes that are places within a memory; the others number who owns it."""

FACTS = tuple(
    Fact(f"extent of {axis}", str(extent), "apache/tvm", "src/tirx/ir/layout/axis_registry.cc, TileLayout", target)
    for target, extents in EXTENTS.items()
    for axis, extent in extents.items()
)
"""The axes with hardware bounds."""
