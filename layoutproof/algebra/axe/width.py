"""Operations that change what a layout counts: element width, storage without owners, broadcast.

Source of the operations: apache/tvm `python/tvm/tirx/layout.py` at 5d4dc87213, whose pack and unpack scale thread
strides too, leave offsets and replicas alone, and round strides that do not divide.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from layoutproof.algebra import problems
from layoutproof.algebra.axe.canonical_form import canonical, normal
from layoutproof.algebra.axe.grouping import blocks_of
from layoutproof.algebra.axe.scopes import owns
from layoutproof.core.errors import InternalError, LayoutError, Reason
from layoutproof.core.size import divide
from layoutproof.layouts.axe.layout import MEMORY, AxeLayout, Iter
from layoutproof.layouts.axe.swizzle import Swizzle


def unpack(layout: AxeLayout, number: int, axis: str = MEMORY) -> AxeLayout:
    """Each element as `number` narrower ones, side by side on a memory axis: f'(number*x + r) = number*f(x) + r there.

    Other axes keep their coordinates; replicas and offset on the axis are scaled. Requires number >= 1, for a swizzled
    layout a power of two (LayoutError otherwise). Canonical.

    Args:
        layout: An Axe layout.
        number: Into how many each element is split, >= 1.
        axis: Name of an axis.

    Returns:
        The layout.

    >>> str(unpack(AxeLayout(((8, 1, "m"),), O={"m": 4}), 2))
    'S[16:1] + 8'
    >>> str(unpack(AxeLayout(((8, 4, "laneid"), (4, 1, "laneid"))), 2))
    'S[(32,2):(1@laneid,1@m)]'
    """
    result = _unpacked(layout, number, axis)
    blocks = blocks_of(normal(result.D) or result.D, (layout.size(), number))
    scaled = normal([(e, s * number if a == axis else s, a) for e, s, a in layout.D])
    if isinstance(blocks, Reason) or normal(blocks[0]) != scaled or normal(blocks[1]) != normal([(number, 1, axis)]):
        raise InternalError(f"unpacking {layout} by {number} missed its definition: please report this")
    return canonical(result)


def pack(layout: AxeLayout, number: int, axis: str = MEMORY) -> AxeLayout | Reason:
    """`number` neighbouring elements as one wider one: the inverse of `unpack`, proved by unpacking again.

    A Reason where the fastest `number` elements are not side by side on the axis, or something there does not divide.

    Args:
        layout: An Axe layout.
        number: How many elements become one.
        axis: Name of an axis.

    Returns:
        The layout, or the reason why there is none.

    >>> str(pack(AxeLayout(((8, 16, "m"), (16, 1, "m"))), 2))
    'S[64:1]'
    >>> str(pack(AxeLayout(((8, 3, "m"), (2, 1, "m"))), 2))
    'the step 3@m is no multiple of 2'
    """
    _at_least_one(number, layout)
    rest, over = divide(layout.size(), number)
    if over != 0:
        return Reason(f"{layout.size()} elements are no multiple of {number}")
    blocks = blocks_of(normal(layout.D) or layout.D, (rest, number))
    if isinstance(blocks, Reason) or normal(blocks[1]) != normal([(number, 1, axis)]):
        return Reason(f"the fastest {number} elements are not side by side on axis {axis}")
    parts: list[tuple[Iter, ...]] = []
    for iters in (blocks[0], layout.R):
        scaled: list[Iter] = []
        for extent, stride, name in iters:
            step, over = divide(stride, number) if name == axis and extent != 1 else (stride, 0)
            if over != 0:
                return Reason(f"the step {stride}@{axis} is no multiple of {number}")
            scaled.append((extent, step, name))
        parts.append(tuple(scaled))
    offset = dict(layout.O)
    if axis in offset:
        offset[axis], over = divide(offset[axis], number)
        if over != 0:
            return Reason(f"the offset {layout.O[axis]}@{axis} is no multiple of {number}")
    swizzle = layout.swizzle
    if swizzle is not None:
        bits = number.bit_length() - 1
        if number != 1 << bits or bits > swizzle.per_element:
            return Reason(f"the swizzle {swizzle} permutes within {number} elements, or {number} is no power of two")
        swizzle = Swizzle(swizzle.per_element - bits, swizzle.swizzle_len, swizzle.atom_len, swizzle.outer)
    result = AxeLayout(parts[0], parts[1], offset, None, None, swizzle)
    again = _unpacked(result, number, axis)
    if normal(again.D) != normal(layout.D) or _known(again) != _known(layout):
        raise InternalError(f"packing {layout} by {number} missed its definition: please report this")
    return canonical(result)


def _known(layout: AxeLayout) -> tuple[Any, ...]:
    replicas = [one for one in layout.R if one[0] != 1]
    return replicas, {axis: value for axis, value in layout.O.items() if value != 0}, layout.swizzle


def _unpacked(layout: AxeLayout, number: int, axis: str) -> AxeLayout:
    _at_least_one(number, layout)
    swizzle = layout.swizzle
    if swizzle is not None:
        bits = number.bit_length() - 1
        if number != 1 << bits:
            raise LayoutError(problems.SWIZZLE_WIDTH(number))
        swizzle = Swizzle(swizzle.per_element + bits, swizzle.swizzle_len, swizzle.atom_len, swizzle.outer)
    scale: dict[str, Any] = {axis: number}
    return AxeLayout(
        (*((e, s * scale.get(a, 1), a) for e, s, a in layout.D), (number, 1, axis)),
        tuple([(e, s * scale.get(a, 1), a) for e, s, a in layout.R]),
        {a: value * scale.get(a, 1) for a, value in layout.O.items()},
        None,
        None,
        swizzle,
    )


def _at_least_one(number: int, layout: AxeLayout) -> None:
    if type(number) is not int or number < 1:
        raise LayoutError(problems.WIDTH(layout, number))


def storage(layout: AxeLayout, memory: Collection[str] | None = None) -> AxeLayout | Reason:
    """The part that each owner holds: owner axes dropped from D, R and O (TVM: `storage`).

    Ensures: result(y) is the memory part of layout at the index whose memory digits are y's and whose owner digits are
    0. A Reason for an unknown axis. Canonical.

    Args:
        layout: An Axe layout.
        memory: The memory axes, where other names than the known ones are used; None for the known ones.

    Returns:
        The layout, or the reason why there is none.

    >>> str(storage(AxeLayout(((2, 1, "gpuid"), (32, 128, "m"), (2, 2, "gpuid"), (64, 1, "m")))))
    'S[(32,64):(128,1)]'
    """
    kept: set[str] = set()
    for axis in layout.axes():
        owner = owns(axis) if memory is None else axis not in memory
        if owner is None:
            return Reason(f"whether {axis} is memory is not known; name the memory axes")
        if not owner:
            kept.add(axis)
    shard = tuple([one for one in layout.D if one[2] in kept]) or ((1, 1, MEMORY),)
    replicas = tuple([one for one in layout.R if one[2] in kept])
    offset = {axis: value for axis, value in layout.O.items() if axis in kept}
    return canonical(AxeLayout(shard, replicas, offset, None, None, layout.swizzle))


def broadcast(layout: AxeLayout, number: int, position: int = -1, axis: str = MEMORY) -> AxeLayout:
    """A digit of stride 0 put into D: the same place is seen `number` times (TVM: `broadcast`). Drops the shape.

    Args:
        layout: An Axe layout.
        number: How often each place is seen.
        position: Where in D, as for `list.insert`; -1 appends.
        axis: Name of an axis.

    Returns:
        The layout.

    Raises:
        LayoutError: For a position outside.

    >>> str(broadcast(AxeLayout(((4, 1, "m"),)), 3, 0))
    'S[(3,4):(0,1)]'
    """
    _at_least_one(number, layout)
    at = position if position >= 0 else len(layout.D) + 1 + position
    if not 0 <= at <= len(layout.D):
        raise LayoutError(problems.POSITION_OUTSIDE(position, len(layout.D)))
    shard = (*layout.D[:at], (number, 0, axis), *layout.D[at:])
    return AxeLayout(shard, layout.R, layout.O, None, layout.within, layout.swizzle)
