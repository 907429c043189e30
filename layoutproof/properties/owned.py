"""Every element of a sharded array is on as many devices as the sharding says, at a place of its own on each.

Proved: every element's device and place are inside (a device that exists, the shard that it allots), no two elements
share a place, and the replicas of one element are on different devices. So no owner is missing, none is counted twice.
Figures: `replicas` of each element, `devices` that the sharding is over, `idle_devices` of them that hold no element
because the array has fewer blocks than tiles (which ones, if few), and `absent_devices`, numbers below the highest one
that the sharding leaves out.
Why it matters: an element without an owner is lost, one with an owner too many is counted twice in a sum.
Refuted by: an `element` (and `replica`) outside, two elements `first` and `second` at one place, or an `element` with
two replicas, `first_replica` and `second_replica`, on one device.
Example: `f32[5,4] sharded {devices=[4,1]<=[4]}` is proved, with device 3 idle: blocks of 2, 2 and 1 rows.
Ask `owners` of layouts whose devices have other names, `even` whether all shards are equally large.
Fix: write the sharding so that the devices of each tile are its own.
Incident: the weights of a model were on every chip in silence, 9 GiB instead of 2.2 on each:
https://github.com/vllm-project/tpu-inference/issues/3004
Proved:
    layoutproof ask owned "f32[5,4] sharded {devices=[4,1]<=[4]}"
Limits: Who holds what, not whether as many replicas are wanted: `replicated` asks that of a program.
"""

from __future__ import annotations

from math import prod

from layoutproof.core.axes import onto
from layoutproof.core.claim import And, At, Claim, Equal, LexLess
from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import IndexMap, unnamed
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point
from layoutproof.core.size import Extent, ceil_div
from layoutproof.properties import in_bounds, injective

LAYOUTS = 1

BOTH = Template("properties.owned_both", "replicas {first} and {second} of {element} are both on device {device}")
NO_DEVICE = Template(
    "properties.owned_no_device",
    "owned is about sharded arrays, e.g. 'f32[64,128] sharded {{devices=[2,2]<=[4]}}'; this map has "
    "no axis named device but {axes}",
)
MOST_NAMED = 64
"""Devices up to which figures name each one."""


def claims(m: IndexMap) -> tuple[Claim, ...]:
    """Inside, apart, and the replicas of one element on different devices.

    Args:
        m: The map of one layout.

    Returns:
        The claims, in the order in which they are refuted.

    Raises:
        LayoutError: The map has no axis of devices.
    """
    device = device_of(m)
    found = (*in_bounds.claims(m), *injective.claims(m))
    if not m.replicas.extents:
        return found

    def explain(at: Point, on: Numbers) -> str:
        (number,) = device.place(at["element"], at["first_replica"], on)
        return BOTH(at["first_replica"], at["second_replica"], at["element"], number)

    points = {"element": m.domain, "first_replica": m.replicas, "second_replica": m.replicas}
    same = Equal(At(device, "element", "first_replica"), At(device, "element", "second_replica"))
    plain = unnamed(m)
    implied_by = None if plain is None else claims(plain)[-1]
    twice = And((LexLess("first_replica", "second_replica"), same))
    return (*found, Claim(points, twice, explain, implied_by=implied_by))


def figures(m: IndexMap) -> dict[str, object]:
    """The numbers of the module's text; only `replicas` where the map says no more than places.

    Args:
        m: The map of one layout.

    Returns:
        Exact numbers by name; closed forms as text where sizes are symbolic.
    """
    replicas: Extent = m.replicas.count()
    shown: dict[str, object] = {"replicas": replicas if type(replicas) is int else str(replicas)}
    shards = getattr(m.place, "shards", None)
    if shards is None:
        return shown
    devices = prod(shards.tiles) * prod(size for _, size in shards.replicas)
    shown |= {"devices": devices, "absent_devices": shards.range_devices - devices}
    if not m.domain.is_constant():
        return shown
    full = [min(n, ceil_div(d, max(1, c))) for d, n, c in zip(shards.extents, shards.tiles, shards.shard, strict=True)]
    idle = devices - prod(full) * prod(size for _, size in shards.replicas)
    shown["idle_devices"] = idle
    if idle and devices <= MOST_NAMED:
        shown["idle"] = [device for device, held in shards.holders() if 0 in held]
    return shown


def device_of(m: IndexMap) -> IndexMap:
    """The map to the device alone. LayoutError when the map does not speak of devices."""
    if "device" not in m.range.names:
        raise LayoutError(NO_DEVICE(", ".join(m.range.names) or "none"))
    return onto(m, ("device",))
