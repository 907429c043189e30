"""Axe layouts from mappings and from TVM's objects; the rules of every layout."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from layoutproof.core.bounds import check_box
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.expression import parse_size
from layoutproof.core.size import Extent, Size, surely_less
from layoutproof.layouts.axe import problems
from layoutproof.layouts.axe.layout import MEMORY, AxeLayout, Iter, admit
from layoutproof.layouts.axe.swizzle import Swizzle

AXIS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MOST_ADDRESS_BITS = 63
_KEYS = ("D", "R", "O", "shape", "within", "swizzle", "kind")
_SWIZZLE = ("per_element", "swizzle_len", "atom_len")


def checked(
    shard: Sequence[Iter],
    replicas: Sequence[Iter] = (),
    offset: Mapping[str, Extent] | None = None,
    shape: Sequence[Extent] | None = None,
    within: Mapping[str, Extent] | None = None,
    swizzle: Swizzle | None = None,
) -> AxeLayout:
    """The layout, after looking at everything a layout must satisfy.

    Without an iter in D there is one element, as with one of extent 1, which is what is kept.
    Raises LayoutError: nothing in D, R and O; an extent below 1; a shape that is not admitted; a swizzle with
    swizzle_len above atom_len, or of a layout with other axes than `m`.
    """
    if not shard:
        axes = [*[axis for _, _, axis in replicas], *(offset or {})]
        if not axes:
            raise LayoutError(problems.NOTHING())
        shard = [(1, 1, axes[0])]
    for letter, iters in (("D", shard), ("R", replicas)):
        check_box([extent for extent, _, _ in iters], letter)
        for extent, _, _ in iters:
            positive(extent, f"the extent {extent} in {letter}")
    for axis, extent in (within or {}).items():
        positive(extent, f"the extent {extent} of axis {axis}")
    if shape is not None:
        check_box(shape, "shape")
    layout = AxeLayout(tuple(shard), tuple(replicas), dict(offset or {}), None, within, swizzle)
    if swizzle is not None:
        if swizzle.per_element < 0 or not 0 <= swizzle.swizzle_len <= swizzle.atom_len:
            raise LayoutError(problems.SWIZZLE_VALUES(swizzle))
        if swizzle.per_element + swizzle.atom_len + swizzle.swizzle_len > MOST_ADDRESS_BITS:
            problem = f"the swizzle {swizzle} moves bits beyond the {MOST_ADDRESS_BITS} bits of an address"
            raise LayoutError(problem)
        if others := [axis for axis in layout.axes() if axis != MEMORY]:
            raise LayoutError(problems.SWIZZLE_AXIS(others[0]))
    if shape is None:
        return layout
    return AxeLayout(layout.D, layout.R, layout.O, admit(layout, shape), within, swizzle)


def positive(extent: Extent, what: str) -> None:
    """Raises LayoutError unless the extent is at least 1, for all sizes."""
    if not surely_less(0, extent):
        raise LayoutError(f"{what} must be at least 1" + ("" if type(extent) is int else " for all sizes"))


def from_mapping(value: Mapping[str, object]) -> AxeLayout:
    """A layout from {"D": [[extent, stride, axis], ..], "R": .., "O": {axis: offset}, "shape", "within", "swizzle"}.

    TVM's composed layouts may also come as {"kind": "compose", "per_element", "swizzle_len", "atom_len",
    "swizzle_inner", "tile": {..}}.

    >>> str(from_mapping({"D": [["N", "M", "m"], ["M", 1, "m"]], "O": {"m": 4}}))
    'S[(N,M):(M,1)] + 4'
    """
    if value.get("kind") == "compose":
        return _composed(value)
    for key in value:
        if key not in _KEYS:
            raise LayoutError(problems.KEY(", ".join(_KEYS[:-1]), shorten(str(key), 40)))
    if "D" not in value and "R" not in value:
        raise LayoutError(problems.NEEDS_D())
    shape, within, swizzle = value.get("shape"), value.get("within"), value.get("swizzle")
    return checked(
        _iters(value.get("D") or (), "D"),
        _iters(value.get("R") or (), "R"),
        _per_axis(value.get("O") or {}, "O"),
        None if shape is None else [_size(e, "shape") for e in _list(shape, "shape")],
        None if within is None else _per_axis(within, "within"),
        None if swizzle is None else _swizzle(swizzle),
    )


def from_tvm(layout: Any) -> AxeLayout:
    """A layout from an object of `tvm.tirx.layout` (TileLayout or ComposeLayout), read by its attributes.

    Raises LayoutError for any other object, and for extents that are not integers.
    Source: apache/tvm `python/tvm/tirx/layout.py` at 5d4dc87213.
    """
    if hasattr(layout, "tile_layout"):
        tile = from_tvm(layout.tile_layout)
        try:
            bits = [_whole(getattr(layout, name)) for name in _SWIZZLE]
            outer = not layout.swizzle_inner
        except (AttributeError, TypeError, ValueError) as error:
            raise LayoutError(problems.TVM_COMPOSED(error)) from None
        return checked(tile.D, tile.R, tile.O, swizzle=Swizzle(bits[0], bits[1], bits[2], outer))
    if not hasattr(layout, "shard") or not hasattr(layout, "replica"):
        raise LayoutError(problems.FORM(shorten(repr(layout), 60)))
    try:
        shard, replicas = (
            [(_whole(i.extent), _whole(i.stride), str(i.axis.name)) for i in part]
            for part in (layout.shard, layout.replica)
        )
        offset = {str(axis.name): _whole(value) for axis, value in layout.offset.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise LayoutError(problems.TVM_LAYOUT(error)) from None
    for axis in (*[name for _, _, name in (*shard, *replicas)], *offset):
        _axis(axis)
    return checked(shard, replicas, offset)


def _whole(value: Any) -> int:
    """An int from what TVM calls one. TypeError for a float, which `int` would cut off in silence."""
    if isinstance(value, float):
        raise TypeError(f"{value} is no whole number")
    return int(value)


def _composed(value: Mapping[str, object]) -> AxeLayout:
    tile = value.get("tile")
    if not isinstance(tile, Mapping):
        raise LayoutError(problems.COMPOSED_TILE())
    inner = from_mapping(tile)
    bits = _swizzle([value.get(name) for name in _SWIZZLE], outer=not value.get("swizzle_inner", True))
    return checked(inner.D, inner.R, inner.O, inner.shape, inner.within, bits)


def _swizzle(value: object, outer: bool = False) -> Swizzle:
    if isinstance(value, Mapping):
        if unknown := set(value) - {*_SWIZZLE, "outer", "swizzle_inner"}:
            raise LayoutError(problems.SWIZZLE_KEY(", ".join(_SWIZZLE), sorted(map(str, unknown))[0]))
        outer = bool(value.get("outer", not value.get("swizzle_inner", True)))
        value = [value.get(name) for name in _SWIZZLE]
    bits = _list(value, "swizzle")
    if len(bits) != 3 or not all(type(bit) is int for bit in bits):
        raise LayoutError(problems.SWIZZLE_INTEGERS(", ".join(_SWIZZLE), shorten(repr(value), 40)))
    return Swizzle(bits[0], bits[1], bits[2], outer)


def _iters(value: object, letter: str) -> list[Iter]:
    iters: list[Iter] = []
    for entry in _list(value, letter):
        parts = _list(entry, f"an iter of {letter}")
        if len(parts) not in (2, 3):
            raise LayoutError(problems.ITER_FORM(letter, shorten(repr(entry), 40)))
        axis = parts[2] if len(parts) == 3 else MEMORY
        iters.append((_size(parts[0], letter), _size(parts[1], letter), _axis(axis)))
    return iters


def _per_axis(value: object, name: str) -> dict[str, Extent]:
    if not isinstance(value, Mapping):
        raise LayoutError(problems.AXIS_MAPPING(name, shorten(repr(value), 40)))
    return {_axis(axis): _size(number, name) for axis, number in value.items()}


def _axis(value: object) -> str:
    if isinstance(value, str) and AXIS.fullmatch(value):
        return value
    raise LayoutError(problems.AXIS_TEXT(shorten(repr(value), 40)))


def _list(value: object, name: str) -> list[Any]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise LayoutError(problems.LIST(name, shorten(repr(value), 40)))
    return list(value)


def _size(value: object, name: str) -> Extent:
    if type(value) is int or isinstance(value, Size):
        return value
    if isinstance(value, str):
        return parse_size(value)
    raise LayoutError(problems.ENTRY(name, shorten(repr(value), 40)))
