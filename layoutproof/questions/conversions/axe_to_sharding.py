"""Axe to shardings: one axis of devices, the axis `m` of each device's memory, R replicas on other devices.

Each dimension must be cut into contiguous blocks (its device digits outside its memory digits), the devices be
distinct, and the memory of a shard be one that an XLA layout says. Axe has no element type; f32 stands for any.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from layoutproof.core.errors import LayoutError
from layoutproof.core.size import Extent, product
from layoutproof.layouts.axe.layout import MEMORY, AxeLayout, Iter
from layoutproof.layouts.axe.place import segments
from layoutproof.layouts.sharding.array import ShardedArray
from layoutproof.layouts.sharding.model import TileSharding
from layoutproof.layouts.sharding.normal import subgrouped
from layoutproof.layouts.sharding.tiles import MOST_LISTED, Tiles, recognised
from layoutproof.layouts.xla.shape import XlaLayout
from layoutproof.layouts.xla.text import parse
from layoutproof.questions import problems
from layoutproof.questions.conversions import cute_to_xla
from layoutproof.questions.conversions.modes import Modes
from layoutproof.questions.conversions.xla_to_cute import from_digits


def convert(layout: AxeLayout) -> ShardedArray:
    """`S[(2,2,6):(1@gpuid,6@m,1@m)] on (4,6)` is `f32[4,6]{1,0} sharded {devices=[2,1]<=[2]}`."""
    device = _device_axis(layout)
    shape: tuple[Extent, ...] = layout.shape if layout.shape is not None else (layout.size(),)
    tiles: list[int] = []
    steps: list[tuple[int, int]] = []
    modes: list[Modes] = []
    for k, digits in enumerate(_per_dimension(layout, shape)):
        owners = [digit for digit in digits if digit[2] == device]
        memory = [digit for digit in digits if digit[2] == MEMORY]
        if digits != owners + memory:
            raise LayoutError(problems.TO_SHARDING_TURNS(k))
        steps += [_constant(extent, stride) for extent, stride, _ in owners]
        tiles.append(product(extent for extent, _, _ in owners))
        modes.append(tuple((extent, stride) for extent, stride, _ in reversed(memory)) or ((1, 0),))
    if any(axis == MEMORY for _, _, axis in layout.R):
        raise LayoutError(problems.TO_SHARDING_REPLICA())
    replicas = [_constant(extent, stride) for extent, stride, _ in layout.R if extent != 1]
    sharding, devices = _assigned(tiles, steps + replicas, layout.O.get(device, 0), bool(replicas))
    if layout.O.get(MEMORY, 0) != 0:
        raise LayoutError(problems.TO_SHARDING_OFFSET(layout.O[MEMORY]))
    local = _memory([product(extent for extent, _ in mode) for mode in modes], modes)
    whole = parse(str(local).replace(_dims(local.dims), _dims(shape), 1))
    if not isinstance(whole, XlaLayout):
        raise LayoutError(problems.TO_SHARDING_NO_ARRAY(whole))
    return ShardedArray(whole.element_type, shape, whole, sharding, devices)


def _device_axis(layout: AxeLayout) -> str:
    axes = layout.axes()
    others = [axis for axis in axes if axis != MEMORY]
    if layout.swizzle is not None:
        raise LayoutError(problems.TO_SHARDING_SWIZZLE())
    if len(others) != 1:
        raise LayoutError(problems.TO_SHARDING_DEVICE_AXES(", ".join(others) or "none"))
    if MEMORY not in axes or axes[0] == MEMORY:
        raise LayoutError(problems.TO_SHARDING_PLACES(", ".join(axes), others[0]))
    return others[0]


def _per_dimension(layout: AxeLayout, shape: tuple[Extent, ...]) -> list[list[Iter]]:
    """The digits of each dimension, those of extent 1 left out."""
    found: list[list[Iter]] = [[] for _ in shape]
    for dimensions, iters in segments(shape, layout.D):
        large = [d for d in dimensions if shape[d] != 1]
        digits = [digit for digit in iters if digit[0] != 1]
        if len(large) > 1:
            raise LayoutError(problems.TO_SHARDING_SHARED_DIGIT(", ".join(map(str, large))))
        if digits:
            found[large[0]] = digits
    return found


def _constant(extent: Extent, stride: Extent) -> tuple[int, int]:
    if type(extent) is not int or type(stride) is not int:
        raise LayoutError(problems.TO_SHARDING_DEVICE_COUNT(extent, stride))
    return extent, stride


def _assigned(
    tiles: Sequence[int], steps: Sequence[tuple[int, int]], base: Extent, copied: bool
) -> tuple[TileSharding, int | tuple[int, ...] | None]:
    """The sharding of these tiles, and the devices it is on where its text does not say them."""
    count = product(extent for extent, _ in steps)
    if count > MOST_LISTED or type(base) is not int:
        raise LayoutError(problems.TO_SHARDING_DEVICES(MOST_LISTED))
    numbers = [range(0, extent * stride, stride) if stride else (0,) * extent for extent, stride in steps]
    devices = tuple(base + sum(point) for point in itertools.product(*numbers))
    if count == 1:
        return TileSharding("maximal", device=devices[0]), None
    split = product(tiles)
    assigned = recognised(Tiles((*tiles, count // split) if copied else tuple(tiles), devices=devices))
    problem = assigned.problem()
    if problem:
        raise LayoutError(problems.TO_SHARDING_UNREADABLE(problem))
    sharding = subgrouped(assigned, ("replicated",) if copied else ())
    if sharding.kind != "replicated":
        return sharding, None
    # {replicated} says neither how many devices there are nor which
    return sharding, sharding.count if sharding.count else tuple(sorted(devices))


def _memory(dims: list[object], modes: list[Modes]) -> XlaLayout:
    """The layout of a shard with these digits: plain or with long rows if it is that, tiled otherwise."""
    text = _rows(dims, [_merged(mode) for mode in modes])
    if text:
        found = parse(text)
        if isinstance(found, XlaLayout):
            return found
    try:
        return cute_to_xla.convert(from_digits(modes, 0, "f32"))
    except LayoutError:
        shown = from_digits(modes, 0, "")
        raise LayoutError(problems.TO_SHARDING_SHARD(shown)) from None


def _rows(dims: list[Any], modes: list[Modes]) -> str:
    """The text of an array whose dimensions have one stride each, perhaps further apart than needed; "" for others."""
    if any(len(mode) > 1 or any(type(entry) is not int for entry in mode[0]) for mode in modes):
        return ""
    strides: list[Any] = [mode[0][1] for mode in modes]
    large = sorted((k for k in range(len(dims)) if dims[k] != 1), key=lambda k: strides[k])
    if large and strides[large[0]] != 1:
        # every element at the start of a row of its own: the row is along a dimension of extent 1
        alone = [k for k in range(len(dims)) if dims[k] == 1][-1:]
        if not alone or strides[large[0]] < 1:
            return ""
        large, strides[alone[0]] = alone + large, 1
    rooms = []
    for k, outer in itertools.pairwise(large):
        room, over = divmod(strides[outer], strides[k])
        if over or room < dims[k]:
            return ""
        rooms.append(room)
    # a tile from the minor end up to the last dimension that is followed by a gap
    while rooms and rooms[-1] == dims[large[len(rooms) - 1]]:
        rooms.pop()
    order = large + [k for k in reversed(range(len(dims))) if k not in large]
    tile = f":T({','.join(map(str, reversed(rooms)))})" if rooms else ""
    if not tile and large == sorted(large, reverse=True):
        order = list(reversed(range(len(dims))))
    return f"f32{_dims(dims)}{{{','.join(map(str, order))}{tile}}}"


def _merged(mode: Modes) -> Modes:
    """Neighbouring digits as one where they count on."""
    merged: list[tuple[Any, Any]] = []
    for extent, stride in mode:
        if merged and merged[-1][0] * merged[-1][1] == stride:
            merged[-1] = (merged[-1][0] * extent, merged[-1][1])
        else:
            merged.append((extent, stride))
    return tuple(merged)


def _dims(dims: Sequence[Extent]) -> str:
    return f"[{','.join(map(str, dims))}]"
