"""Putting a sharding and a shape together, from text or from a mapping."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from layoutproof.core.bounds import check_length
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.expression import parse_size
from layoutproof.core.size import Extent, surely_less
from layoutproof.layouts.sharding import problems
from layoutproof.layouts.sharding.array import ShardedArray
from layoutproof.layouts.sharding.jax_text import STARTS as JAX
from layoutproof.layouts.sharding.jax_text import read_jax
from layoutproof.layouts.sharding.lexer import cursor_at, integers
from layoutproof.layouts.sharding.mesh_text import read_mesh as read_mesh_text
from layoutproof.layouts.sharding.model import Mesh, NamedSharding, Sharding, ShardingTuple, TileSharding
from layoutproof.layouts.sharding.partition_spec import SBP, from_jax, from_sbp, from_spec, is_jax, padded, read_mesh
from layoutproof.layouts.sharding.text import parse, read_sharding
from layoutproof.layouts.xla.lexer import XlaCursor
from layoutproof.layouts.xla.shape import XlaLayout
from layoutproof.layouts.xla.text import parse as parse_shape

_KEYS = ("sharding", "mesh", "spec", "sbp", "unreduced", "device_ids", "shape", "devices")
SHARDED = re.compile(r"\ssharded\s")
_BARE = re.compile(r"\s*\[(?P<dims>[^\]]*)\]\s*")

Devices = int | tuple[int, ...] | None


def read_text(text: str, mode: str) -> Sharding | ShardedArray:
    """A sharding alone, or `SHAPE sharded SHARDING`, perhaps with `on 8 devices` or `on devices 4,5,6,7`."""
    sharded = SHARDED.search(check_length(text))
    if sharded is None:
        if SBP.match(text):
            return _sbp_text(text, 0, mode, None)[0]
        return _jax_text(text, mode) if JAX.match(text) else parse(text, mode)
    element_type, dims, layout = _shape(text[: sharded.start()], mode, text)
    at = sharded.end()
    if SBP.match(text, at):
        sharding, cursor = _sbp_text(text, at, mode, len(dims))
        return _array(element_type, dims, layout, sharding, _on(cursor))
    cursor = cursor_at(text, mode == "strict", at)
    if JAX.match(text, at):
        found: Sharding = padded(read_jax(cursor), len(dims))
    else:
        found = read_sharding(cursor)
    return _array(element_type, dims, layout, found, _on(cursor))


def read_mapping(value: Mapping[Any, Any], mode: str) -> Sharding | ShardedArray:
    """A sharding from `{"sharding": ..}`, `{"mesh": .., "spec": ..}` or `{"mesh": .., "sbp": ..}`, and its shape."""
    for key in value:
        if key not in _KEYS:
            raise LayoutError(problems.KEY(shorten(repr(key), 40), ", ".join(_KEYS)))
    given = [key for key in ("sharding", "spec", "sbp") if key in value]
    if len(given) != 1 or ("mesh" in value) == (given[0] == "sharding"):
        raise LayoutError(
            "a sharding is given as sharding, as mesh and spec, or as mesh and sbp; got " + (", ".join(value) or "none")
        )
    shape = _shape(value["shape"], mode, str(value["shape"])) if "shape" in value else None
    rank = None if shape is None else len(shape[1])
    sharding, named = _one(value, mode, rank)
    devices = _devices(value["devices"]) if "devices" in value else named
    if shape is None:
        if devices is not None:
            raise LayoutError(problems.DEVICES_NEED_SHAPE())
        return sharding
    return _array(*shape, sharding, devices)


def _one(value: Mapping[object, object], mode: str, rank: int | None) -> tuple[Sharding, Devices]:
    if "sharding" in value:
        written = value["sharding"]
        if "unreduced" in value or "device_ids" in value:
            raise LayoutError(problems.MESH_KEYS())
        if is_jax(written):
            sharding, named = from_jax(written)
            return (sharding if rank is None else padded(sharding, rank)), named
        if isinstance(written, TileSharding | NamedSharding | ShardingTuple):
            return written, None
        if not isinstance(written, str):
            raise LayoutError(problems.TEXT_FORM(shorten(repr(written), 60)))
        return (_jax_text(written, mode, rank) if JAX.match(written) else parse(written, mode)), None
    ids = value.get("device_ids")
    if ids is not None and not isinstance(ids, list | tuple):
        raise LayoutError(problems.IDS_FORM(shorten(repr(ids), 60)))
    mesh, named = read_mesh(value["mesh"], ids)
    if "sbp" in value:
        if not isinstance(value["sbp"], str):
            raise LayoutError(problems.SBP_TEXT(shorten(repr(value["sbp"]), 60)))
        return from_sbp(mesh, value["sbp"], rank), named
    unreduced = value.get("unreduced") or []
    if isinstance(unreduced, str) or not isinstance(unreduced, list | tuple):
        raise LayoutError(problems.UNREDUCED_FORM(shorten(repr(unreduced), 60)))
    sharding = from_spec(mesh, value["spec"], unreduced=unreduced)
    return (sharding if rank is None else padded(sharding, rank)), named


def _array(
    element_type: str, dims: tuple[Extent, ...], layout: XlaLayout | None, sharding: Sharding, devices: Devices
) -> ShardedArray:
    if isinstance(sharding, ShardingTuple):
        raise LayoutError(problems.ONE_SHARDING(), text=str(sharding))
    if devices is None and isinstance(sharding, TileSharding) and sharding.tiles is None:
        devices = sharding.count
    array = ShardedArray(element_type, dims, layout, sharding, devices)
    # that the sharding fits the array is checked at once, so that a text that reads also has a map
    array.assignment()
    return array


def _shape(value: object, mode: str, text: str) -> tuple[str, tuple[Extent, ...], XlaLayout | None]:
    """(element type, extents, layout if one is written) of `f32[8,128]{1,0}`, `f32[8,128]`, `[8,128]` or a list."""
    if isinstance(value, list | tuple):
        return "", tuple(_extent(entry) for entry in value), None
    if not isinstance(value, str):
        raise LayoutError(problems.SHAPE_FORM(shorten(repr(value), 60)))
    bare = _BARE.fullmatch(value)
    if bare is not None:
        inner = bare["dims"].strip()
        return "", tuple(_extent(entry) for entry in inner.split(",")) if inner else (), None
    shape = parse_shape(value.strip(), mode)
    if not isinstance(shape, XlaLayout):
        raise LayoutError(problems.ONE_ARRAY(), text=text)
    return shape.element_type, shape.dims, shape if "{" in value else None


def _extent(value: object) -> Extent:
    extent = parse_size(value) if isinstance(value, str) else value
    if type(extent) is int and extent >= 0:
        return extent
    if isinstance(value, str) and not isinstance(extent, int) and surely_less(0, extent):
        return extent  # type: ignore[return-value]
    raise LayoutError(problems.EXTENT_FORM(shorten(repr(value), 60)))


def _sbp_text(text: str, at: int, mode: str, rank: int | None) -> tuple[NamedSharding, XlaCursor]:
    signature, on, _ = text[at:].partition(" on ")
    if not on:
        raise LayoutError(
            problems.SBP_MESH(),
            text=text,
            column=at + len(text[at:].rstrip()) + 1,
        )
    cursor = cursor_at(text, mode == "strict", at + len(signature) + len(on))
    if cursor.word != "mesh":
        raise cursor.expected("mesh['x'=2,..]")
    mesh: Mesh = read_mesh_text(cursor)[0]
    if rank is None and cursor.kind != "end":
        raise cursor.refuse(problems.AFTER_MESH(cursor.word))
    return from_sbp(mesh, signature, rank), cursor


def _jax_text(text: str, mode: str, rank: int | None = None) -> NamedSharding:
    cursor = cursor_at(text, mode == "strict")
    found = read_jax(cursor)
    if cursor.kind != "end":
        raise cursor.refuse(problems.AFTER_ALONE(shorten(cursor.word, 40)))
    return found if rank is None else padded(found, rank)


def _on(cursor: XlaCursor) -> Devices:
    """`on 8 devices`, `on devices 4,5,6,7`, or nothing, up to the end of the text."""
    found: Devices = None
    if cursor.word == "on":
        cursor.advance()
        if cursor.word == "devices":
            cursor.advance()
            start = cursor.start
            numbers = integers(cursor, "a device number")
            try:
                found = _devices(numbers)
            except LayoutError as error:
                raise cursor.refuse(error.problem, start) from None
        else:
            start = cursor.start
            count = cursor.integer("the number of devices, as in 'on 8 devices'")
            if count < 1:
                raise cursor.refuse(problems.NO_DEVICES(count), start)
            if cursor.word != "devices":
                raise cursor.expected("devices, as in 'on 8 devices'")
            cursor.advance()
            found = count
    if cursor.kind != "end":
        raise cursor.refuse(problems.AFTER_SHARDING(shorten(cursor.word, 40)))
    return found


def _devices(value: object) -> Devices:
    if type(value) is int and value >= 1:
        return value
    numbers = tuple(value) if isinstance(value, list | tuple) else ()
    if numbers and all(type(v) is int and v >= 0 for v in numbers) and len(set(numbers)) == len(numbers):
        return numbers
    raise LayoutError(problems.DEVICES_FORM(shorten(repr(value), 60)))
