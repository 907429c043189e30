"""A child process that makes arrays with JAX on eight CPU devices, and says how layoutproof reads them.

Output: one JSON list, an entry per array. The array holds 0, 1, 2, .. in row-major order.
  text    layoutproof's reading of the array
  shape   its extents
  places  for each element in row-major order, [[device, offset], ..] as layoutproof says
  memory  per device id, the bytes of its shard as numbers, read from the address that JAX gives
and at the end an entry with `refused`, the LayoutError of each object that has no layout, by its name.
"""

from __future__ import annotations

import ctypes
import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.layout import Format, Layout
from jax.sharding import AbstractMesh, Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

import layoutproof as lp


def held(array: Any) -> dict[int, list[int]]:
    """Device id -> what its memory holds, in the order of the addresses."""
    found = {}
    for shard in array.addressable_shards:
        count = int(np.prod(shard.data.shape))
        raw = ctypes.string_at(shard.data.unsafe_buffer_pointer(), count * array.dtype.itemsize)
        found[shard.device.id] = [int(v) for v in np.frombuffer(raw, array.dtype)]
    return found


def places(layout: Any, shape: tuple[int, ...]) -> list[list[list[int]]]:
    """Of each element, on which device at which offset; on device 0 where the layout names none."""
    found = [lp.locate(layout, index) for index in np.ndindex(shape)]
    return [sorted([place.get("device", 0), place["offset"]] for place in each) for each in found]


def arrays() -> list[Any]:
    """Plain, transposed in memory, sharded over meshes with their devices in another order, replicated."""
    devices = np.array(jax.devices())
    data = jnp.arange(64, dtype=jnp.int32).reshape(8, 8)
    mesh = Mesh(devices.reshape(4, 2), ("a", "b"))
    turned = Mesh(devices[::-1].reshape(2, 4), ("a", "b"))
    some = Mesh(devices[[6, 3, 5, 2]].reshape(2, 2), ("a", "b"))
    specs = [P("a", "b"), P("b"), P(None, ("b", "a")), P()]
    made = [data, jax.device_put(data, Format(Layout((1, 0)), SingleDeviceSharding(devices[0])))]
    made += [jax.device_put(data, NamedSharding(m, spec)) for m in (mesh, turned, some) for spec in specs]
    made += [jax.device_put(data, Format(Layout((1, 0)), NamedSharding(turned, P("a", "b"))))]
    made += [jnp.arange(24, dtype=jnp.int16).reshape(2, 3, 4), jnp.int8(0)]
    made += [jax.jit(lambda x: x + 0, out_shardings=NamedSharding(mesh, P("b", "a")))(data)]
    return made


def refused() -> dict[str, str]:
    """What does not say where its elements are."""
    data = jnp.arange(64, dtype=jnp.int32).reshape(8, 8)
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("a", "b"))
    gone = jnp.ones(3)
    gone.delete()
    abstract = NamedSharding(AbstractMesh((4, 2), ("a", "b")), P("a"))
    found: dict[str, str] = {}

    def take(name: str, value: Any) -> Any:
        try:
            found[name] = str(lp.ask("injective", value))
        except lp.LayoutError as error:
            found[name] = str(error)
        return value

    take("shape", jax.ShapeDtypeStruct((8, 8), jnp.float32))
    take("type", jax.typeof(data))
    take("format", data.format)
    take("layout", Layout((1, 0)))
    take("sharding", NamedSharding(mesh, P("a")))
    take("mesh", mesh)
    take("key", jax.random.key(0))
    take("deleted", gone)
    take("open tiles", jax.ShapeDtypeStruct((8, 8), jnp.float32, sharding=Format(Layout((1, 0)), abstract)))
    jax.jit(lambda x: take("traced", x))(data)
    return found


def shapes() -> dict[str, str]:
    """What ShapeDtypeStructs read as."""
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("a", "b"))
    one = SingleDeviceSharding(jax.devices()[0])
    abstract = NamedSharding(AbstractMesh((4, 2), ("a", "b")), P("a"))
    asked = {
        "sharded": NamedSharding(mesh, P("a", "b")),
        "abstract": abstract,
        "order": Format(Layout((1, 0)), one),
        "tiled": Format(Layout((0, 1), ((8, 128), (2, 1))), one),
        "sharded and tiled": Format(Layout((0, 1), ((8, 128), (2, 1))), NamedSharding(mesh, P("a"))),
    }
    made = {name: jax.ShapeDtypeStruct((64, 256), jnp.bfloat16, sharding=how) for name, how in asked.items()}
    found = {name: str(lp.read_layout(shape)) for name, shape in made.items()}
    return found | {"default": str(lp.tpu_default(made["sharded"], target="v5e"))}


if __name__ == "__main__":
    report: list[Any] = [
        {"text": str(lp.read_layout(a)), "shape": a.shape, "places": places(a, a.shape), "memory": held(a)}
        for a in arrays()
    ]
    print(json.dumps([*report, {"refused": refused(), "shapes": shapes()}]))
