"""Shardings to Axe: tile digits on the device axis, positions in the shard on memory, replicas in R.

Devices are on axis `gpuid` and offsets on `m`; without a layout of the shard, on `device` and one axis per dimension
of the shard, named as in the sharding's map. Uneven shards, padding within a dimension, and devices in an order that
is no sum of digits have no Axe form (the Axe paper, section 4: every digit of D takes all its values).
"""

from __future__ import annotations

from typing import Any

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.index_map import IndexMap
from layoutproof.core.size import product
from layoutproof.layouts.axe.layout import AxeLayout, Iter
from layoutproof.layouts.sharding.array import ShardedArray
from layoutproof.layouts.sharding.model import Sharding
from layoutproof.questions import problems
from layoutproof.solvers.digits.number import Digit, DigitNumbers, DigitSum


def convert(layout: ShardedArray | Sharding) -> AxeLayout:
    """`f32[4,6]{1,0} sharded {devices=[2,1]<=[2]}` is `S[(2,2,6):(1@gpuid,6@m,1@m)] on (4,6)`."""
    m = layout.index_map()
    if not isinstance(layout, ShardedArray):
        raise LayoutError(problems.TO_AXE_NO_ARRAY(layout))
    _check(m)
    axes = ("gpuid", "m") if layout.layout is not None else m.range.names
    dimensions = [Digit(k, extent, 1) for k, extent in enumerate(m.domain.extents)]
    choices = [Digit(len(dimensions) + k, extent, 1) for k, extent in enumerate(m.replicas.extents)]
    forms = _forms(m, dimensions, choices)
    steps = {leaf: (step, axis) for axis, (form, _) in zip(axes, forms, strict=True) for leaf, step in form.items()}
    if len(steps) != sum(len(form) for form, _ in forms):
        raise LayoutError(problems.TO_AXE_DEVICE_AND_PLACE())
    shard = [step for k, root in enumerate(dimensions) for step in _iters(root, steps, f"dimension {k}")]
    replicas = [step for root in choices for step in _iters(root, steps, "the replicas")]
    if not shard or shard[0][2] != axes[0]:
        # axes are in order of appearance, and the device comes first in the sharding's map
        shard.insert(0, (1, 1, axes[0]))
    if not any(axis == axes[1] for _, _, axis in shard):
        shard.append((1, 1, axes[1]))
    offset = {axis: constant for axis, (_, constant) in zip(axes, forms, strict=True) if constant != 0}
    return AxeLayout(tuple(shard), tuple(replicas), offset, m.domain.extents)


def _check(m: IndexMap) -> None:
    """LayoutError for replicas that are not equal, for tiles that are no whole blocks, for no dimension at all."""
    for name in m.replicas.names:
        if name != "replicated":
            raise LayoutError(problems.TO_AXE_REPLICAS(name))
    _whole(m)
    if not m.domain.extents:
        raise LayoutError(problems.TO_AXE_NO_DIMENSION())


def _forms(m: IndexMap, dimensions: list[Digit], choices: list[Digit]) -> list[tuple[dict[Digit, Any], Any]]:
    """(step of each digit, constant) of each coordinate. LayoutError where the place is no sum of digits."""
    index, replica = (tuple(map(_number, roots)) for roots in (dimensions, choices))
    try:
        coordinates = m.place(index, replica, DigitNumbers())
    except Undecided as undecided:
        raise LayoutError(problems.TO_AXE_PLACE_DIGITS(undecided)) from None
    return [(c.over_leaves(), c.constant) if type(c) is DigitSum else ({}, c) for c in coordinates]


def _whole(m: IndexMap) -> None:
    """LayoutError for a dimension whose tiles are not whole blocks."""
    shards: Any = m.place
    for k, (extent, tiles, size) in enumerate(zip(shards.extents, shards.tiles, shards.shard, strict=True)):
        if size * tiles != extent:
            raise LayoutError(problems.TO_AXE_UNEVEN(k, extent, tiles))


def _number(root: Digit) -> DigitSum:
    return DigitSum(()) if root.extent == 1 else DigitSum(((1, root),))


def _iters(root: Digit, steps: dict[Digit, tuple[Any, str]], what: str) -> list[Iter]:
    leaves = root.leaves()
    if product(leaf.extent for leaf in leaves) != root.extent:
        raise LayoutError(problems.TO_AXE_PADDED(what, root.extent))
    return [(leaf.extent, *steps[leaf]) for leaf in leaves if leaf.extent != 1]
