"""The real TPU compiler asked for orders of dimensions: a script for a child process, because the compiler can abort.

In: a JSON list of [chip, element type, extents, minor_to_major] on stdin, the chip as the compiler names it. Out: a
JSON list of [minor_to_major, tiles, bytes], as compiled for an argument of a program that was asked to have that order.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def compiled(chip: str, dtype: str, dims: list[int], order: list[int]) -> list[Any]:
    """What the compiler gives one array."""
    import jax
    import ml_dtypes
    import numpy as np
    from jax.experimental.layout import Format, Layout
    from jax.experimental.topologies import get_topology_desc

    device = get_topology_desc(platform="tpu", topology_name=chip, chips_per_host_bounds=(1, 1, 1)).devices[0]
    asked = Format(Layout(major_to_minor=tuple(reversed(order))), jax.sharding.SingleDeviceSharding(device))
    array = jax.ShapeDtypeStruct(tuple(dims), np.dtype(getattr(ml_dtypes, dtype, dtype)), sharding=asked)
    done = jax.jit(lambda _: 0, keep_unused=True).lower(array).compile()
    layout = done.input_formats[0][0].layout
    size = done.memory_analysis().argument_size_in_bytes
    return [list(reversed(layout.major_to_minor)), [list(tile) for tile in layout.tiling], int(size)]


if __name__ == "__main__":
    print(json.dumps([compiled(*query) for query in json.load(sys.stdin)]))
