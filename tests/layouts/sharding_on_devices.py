"""A child process that shards real arrays with JAX and says what is where, and how layoutproof reads those objects.

Argument: the platform. Output: one JSON list, an entry per (mesh, spec, shape):
  text      layoutproof's reading of the NamedSharding object, as text
  printed   the same as JAX prints the object, and as its spec on its mesh
  hlo       the HloSharding that JAX makes of it, in logical device numbers, and `ids`, the devices they stand for
  indices   per device id, [start, stop] of each dimension, from devices_indices_map
  shards    per addressable shard, [device id, its flat values]; the array holds 0, 1, 2, .. in row-major order
or {"none": reason} where the platform has no devices.
"""

from __future__ import annotations

import itertools
import json
import sys
from math import prod
from typing import Any


def cases(count: int) -> list[tuple[tuple[int, ...], tuple[int, ...], tuple[Any, ...]]]:
    """(mesh shape, order of devices, spec) for as many devices as there are."""
    meshes = [shape for rank in (1, 2, 3) for shape in itertools.product((1, 2, 4, 8), repeat=rank)]
    meshes = [shape for shape in meshes if prod(shape) <= count and (prod(shape) == count or len(shape) < 3)]
    found = []
    for number, shape in enumerate(meshes):
        names = "xyz"[: len(shape)]
        entries: list[Any] = [None, *names]
        if len(names) > 1:
            entries += [tuple(names[:2]), tuple(reversed(names[:2]))]
        if len(names) > 2:
            entries += [("z", "x", "y")]
        order = list(range(prod(shape)))
        if number % 3 == 1:
            order.reverse()
        if number % 3 == 2:
            order = order[1::2] + order[::2]
        if prod(shape) < count and number % 2:
            order = [device + count - prod(shape) for device in order]
        for spec in [(), *((e,) for e in entries), *itertools.product(entries, repeat=2)]:
            used = [name for e in spec if e for name in e]
            if len(set(used)) == len(used):
                found.append((shape, tuple(order), spec))
    return found


def main(platform: str) -> list[dict[str, Any]] | dict[str, str]:
    try:
        import jax
        import numpy as np
        from jax.sharding import Mesh, NamedSharding, PartitionSpec

        devices = jax.devices(platform)
    except (ImportError, RuntimeError) as error:
        return {"none": str(error).splitlines()[0]}
    from layoutproof.layouts.sharding import read

    by_id = {device.id: device for device in devices}
    found = []
    for shape, order, spec in cases(len(devices)):
        mesh = Mesh(np.array([devices[k] for k in order]).reshape(shape), tuple("xyz"[: len(shape)]))
        sharding = NamedSharding(mesh, PartitionSpec(*spec))
        dims = [8, 16][: max(1, len(spec))]
        array = jax.device_put(np.arange(prod(dims), dtype=np.int32).reshape(dims), sharding)
        indices = {
            device.id: [part.indices(extent)[:2] for part, extent in zip(parts, dims, strict=True)]
            for device, parts in sharding.devices_indices_map(tuple(dims)).items()
        }
        assert set(indices) <= set(by_id)
        on = f"on devices {','.join(str(devices[k].id) for k in order)}"
        short = f"{sharding.spec!r} on {','.join(f'{n}={size}' for n, size in mesh.shape.items())}"
        found.append(
            {
                "text": str(read({"sharding": sharding, "shape": dims})),
                "printed": [
                    f"{dims} sharded {text} {on}" for text in (sharding, short, f"{sharding.spec} on {mesh!r}")
                ],
                "hlo": str(sharding._to_xla_hlo_sharding(len(dims))),
                "ids": [devices[k].id for k in order],
                "dims": dims,
                "indices": indices,
                "shards": [[s.device.id, np.asarray(s.data).ravel().tolist()] for s in array.addressable_shards],
            }
        )
    return found


if __name__ == "__main__":
    json.dump(main(sys.argv[1]), sys.stdout)
