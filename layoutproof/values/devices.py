"""Programs on the devices of a mesh: `shard_map` walked for all devices in lockstep, with the values of each.

A value that every device holds alike is one value, and computed once; else it is `DeviceParts`, with a part for each
device.
An equation without communication is computed for each device; a collective takes what the devices of a group hold
(jax/_src/lax/parallel.py and jax/_src/shard_map.py, jax 0.10.2 and 0.12.0.1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from layoutproof.ir.program import Equation
from layoutproof.values.elementwise import within
from layoutproof.values.floats import array_of
from layoutproof.values.kinds import Shaped
from layoutproof.values.known import DeviceParts, Known, combined, data_of, first_place, moved
from layoutproof.values.lockstep import Lockstep
from layoutproof.values.points import Points
from layoutproof.values.refusals import Apart
from layoutproof.values.state import Compute, Rule, Walking

Array = np.ndarray[Any, Any]
Axes = tuple[tuple[str, int], ...]

DEVICES = "devices"
"""The one axis of a program that was partitioned."""
CLOSE = 1e-6
"""Relative difference up to which two devices hold the same on float64."""
MOST_DEVICES = 4096
"""Devices of one mesh, since each is walked."""


def parts_of(on: Walking, value: Shaped) -> tuple[Shaped, ...]:
    """The value on each device, in row-major order of the mesh."""
    return value.parts if isinstance(value, DeviceParts) else (value,) * count(on.mesh)


def count(axes: Axes) -> int:
    """Devices of a mesh."""
    return prod(n for _, n in axes)


def each(on: Walking, compute: Compute, operands: Sequence[Shaped]) -> list[Shaped]:
    """The result of a computation without communication on each device. compute: its operands on one -> its results."""
    if any(hasattr(o, "put") or hasattr(o, "memory") for o in operands if not isinstance(o, DeviceParts)):
        raise on.refuse("memory outside of a kernel, which each device has for itself")
    held = [parts_of(on, o) for o in operands]
    rows = []
    try:
        for device in range(count(on.mesh)):
            on.device = device
            rows.append(compute([parts[device] for parts in held]))
    finally:
        on.device = None
    return [DeviceParts(tuple(column)) for column in zip(*rows, strict=True)]


def together(on: Walking, compute: Compute, operands: Sequence[Shaped]) -> list[Shaped]:
    """The result of a kernel that reaches other devices, on each. compute: its operands on one -> its results."""
    if any(hasattr(o, "put") or hasattr(o, "memory") for o in operands if not isinstance(o, DeviceParts)):
        raise on.refuse("memory outside of a kernel, which each device has for itself")
    if on.watch is not None:
        raise on.refuse("a kernel that reaches other devices, program by program")
    held = [parts_of(on, o) for o in operands]
    many = count(on.mesh)
    on.lockstep = lockstep = Lockstep(on.mesh, many)
    try:
        rows = lockstep.run(on, compute, [[parts[device] for parts in held] for device in range(many)])
    finally:
        on.lockstep = None
    return [DeviceParts(tuple(column)) for column in zip(*rows, strict=True)]


def _groups(on: Walking, axes: str | Sequence[str], given: Sequence[Sequence[int]] | None = None) -> list[list[int]]:
    """The devices that communicate, each group in the order of its axes, the first one outermost."""
    names = [a for a in (axes if isinstance(axes, tuple | list) else (axes,)) if isinstance(a, str)]
    mesh: Axes = on.mesh
    known = [name for name, _ in mesh]
    for name in names:
        if name not in known:
            raise on.refuse(f"a collective over {name}, which is no axis of the mesh here")
    numbers = np.arange(count(mesh)).reshape([n for _, n in mesh])
    at = [known.index(name) for name in names]
    rows = np.moveaxis(numbers, at, range(numbers.ndim - len(at), numbers.ndim))
    rows = rows.reshape(-1, prod(mesh[k][1] for k in at))
    if given is None:
        return [list(map(int, row)) for row in rows]
    return [[int(row[k]) for k in group] for row in rows for group in given]


def _together(on: Walking, value: Shaped, groups: Sequence[Sequence[int]], compute: Compute) -> DeviceParts:
    """compute: the values of the members of a group -> the result of each."""
    if on.device is not None:
        raise on.refuse("a collective in a branch or loop that devices take otherwise than one another")
    parts = parts_of(on, value)
    found: list[Any] = [None] * len(parts)
    for group in groups:
        for device, part in zip(group, compute([parts[d] for d in group]), strict=True):
            found[device] = part
    if any(f is None for f in found):
        raise on.refuse("a collective whose groups leave a device out")
    return DeviceParts(tuple(found))


def _reduced(on: Walking, equation: Equation, parts: list[Shaped], kind: str) -> Shaped:
    """The sum, the maximum or the minimum of what several devices hold."""
    rows = combined(on.numbers, parts, lambda each: np.stack(each, -1))
    if isinstance(rows, Known):
        array = getattr(np, kind)(rows.array, -1)
        return Known(array.astype(rows.array.dtype), rows.sampled)
    n, data = on.numbers, on.data(rows)
    if kind == "sum":
        return within(on, n.sum(data), equation)
    return n.largest(data) if kind == "max" else n.neg(n.largest(n.neg(data)))


def _same_everywhere(held: DeviceParts) -> Shaped:
    """One value where each device has the same object."""
    return held.parts[0] if all(p is held.parts[0] for p in held.parts) else held


def _all_reduce(kind: str) -> Rule:
    def rule(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
        p = equation.params
        axes = p.get("axes", p.get("axis_name"))
        axes = axes if isinstance(axes, tuple | list) else (axes,)
        if any(isinstance(a, int) for a in axes):
            raise on.refuse("a collective over a dimension that vmap made")
        groups = _groups(on, axes, p.get("axis_index_groups"))
        results = []
        for value in operands:
            held = _together(on, value, groups, lambda parts: [_reduced(on, equation, parts, kind)] * len(parts))
            results.append(_same_everywhere(held))
        return results

    return rule


def _all_gather(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    p = equation.params
    dim = int(p["all_gather_dimension"])
    join = np.concatenate if p["tiled"] else np.stack
    groups = _groups(on, p["axis_name"], p.get("axis_index_groups"))

    def gathered(parts: list[Shaped]) -> list[Shaped]:
        return [combined(on.numbers, parts, lambda each: join(each, dim))] * len(parts)

    return [_same_everywhere(_together(on, value, groups, gathered)) for value in operands]


def _cut(on: Walking, value: Shaped, dim: int, many: int, k: int, tiled: bool) -> Shaped:
    """The k-th of many equal parts along a dimension; without `tiled` that dimension is as long as there are parts."""
    if not tiled:
        return moved(on.numbers, value, lambda r: np.take(r, k, dim))
    size = value.shape[dim] // many
    at = (slice(None),) * dim + (slice(k * size, (k + 1) * size),)
    return moved(on.numbers, value, lambda r: r[at])


def _reduce_scatter(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    p = equation.params
    dim, tiled = int(p["scatter_dimension"]), bool(p["tiled"])
    groups = _groups(on, p["axis_name"], p.get("axis_index_groups"))

    def scattered(parts: list[Shaped]) -> list[Shaped]:
        whole = _reduced(on, equation, parts, "sum")
        return [_cut(on, whole, dim, len(parts), k, tiled) for k in range(len(parts))]

    return [_together(on, value, groups, scattered) for value in operands]


def _all_to_all(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    p = equation.params
    split, concat, tiled = int(p["split_axis"]), int(p["concat_axis"]), bool(p["tiled"])
    groups = _groups(on, p["axis_name"], p.get("axis_index_groups"))
    join = np.concatenate if tiled else np.stack

    def exchanged(parts: list[Shaped]) -> list[Shaped]:
        many = len(parts)
        return [
            combined(
                on.numbers, [_cut(on, part, split, many, k, tiled) for part in parts], lambda each: join(each, concat)
            )
            for k in range(many)
        ]  # fmt: skip

    return [_together(on, value, groups, exchanged) for value in operands]


def _permute(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    p = equation.params
    sources = {int(target): int(source) for source, target in p["perm"]}
    # of several axes JAX numbers the devices as the mesh does, whatever order the axes are named in
    groups = list(map(sorted, _groups(on, p["axis_name"])))

    def permuted(parts: list[Shaped]) -> list[Shaped]:
        # who is sent nothing has zeros
        dtype = equation.outvars[0].aval.dtype
        zero = Known(np.zeros(parts[0].shape, dtype if dtype.kind in "iub" else np.float64))
        return [parts[sources[k]] if k in sources else zero for k in range(len(parts))]

    return [_together(on, value, groups, permuted) for value in operands]


def _broadcast(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    source = int(equation.params["source"])
    groups = _groups(on, equation.params["axis_name"], equation.params.get("axis_index_groups"))
    return [_together(on, value, groups, lambda parts: [parts[source]] * len(parts)) for value in operands]


def _axis_index(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    axis = equation.params["axis_name"]
    if on.warp is not None and str(axis) == on.warp[0]:
        return [Known(np.asarray(on.warp[1], np.int32))]
    if on.device is not None and axis in dict(on.mesh):
        # of one axis alone, however many devices there are
        names, extents = [name for name, _ in on.mesh], [n for _, n in on.mesh]
        return [Known(np.asarray(np.unravel_index(on.device, extents)[names.index(axis)], np.int32))]
    if not all(isinstance(name, str) for name in (axis if isinstance(axis, tuple | list) else (axis,))):
        raise on.refuse(f"an index along {axis}, which is no axis of the mesh here")
    places = {d: k for group in _groups(on, axis) for k, d in enumerate(group)}
    if on.device is not None:
        return [Known(np.asarray(places[on.device], np.int32))]
    return [DeviceParts(tuple(Known(np.asarray(places[d], np.int32)) for d in range(len(places))))]


Spec = Sequence[str | Sequence[str] | None]
"""A partition spec: of each dimension the axes over which it is split."""


class Split(NamedTuple):
    """How an array is cut over devices. counts: parts of each dimension.  at: of each device, which part it holds."""

    counts: tuple[int, ...]
    at: tuple[tuple[int, ...], ...]


def _names(spec: Spec, dim: int) -> tuple[str, ...]:
    """The axes over which a dimension is split, the first one outermost."""
    entry = spec[dim] if dim < len(spec) else None
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)


def _split(spec: Spec, rank: int, mesh: Axes) -> Split:
    """The mesh axes of each dimension of an array by a partition spec."""
    sizes, order = dict(mesh), [name for name, _ in mesh]
    names = [_names(spec, dim) for dim in range(rank)]
    counts = tuple(prod(sizes[name] for name in of) for of in names)

    def part(at: Sequence[int]) -> tuple[int, ...]:
        where = dict(zip(order, at, strict=True))
        numbers = []
        for of in names:
            k = 0
            for name in of:
                k = k * sizes[name] + where[name]
            numbers.append(k)
        return tuple(numbers)

    return Split(counts, tuple(part(at) for at in product(*(range(n) for _, n in mesh))))


def _shard(on: Walking, value: Shaped, counts: Sequence[int], at: Sequence[int]) -> Shaped:
    """One part of an array."""
    cut = []
    for extent, many, k in zip(value.shape, counts, at, strict=True):
        size = extent // many
        cut.append(slice(k * size, (k + 1) * size))
    return moved(on.numbers, value, lambda r: r[tuple(cut)])


def _apart(on: Walking, a: Shaped, b: Shaped) -> tuple[int, ...] | None:
    """The first element in which two devices differ."""
    if a is b or not prod(a.shape):
        return None
    if isinstance(a, Known) and isinstance(b, Known) and a.array.dtype.kind in "iub":
        different = np.asarray(a.array != b.array)
    elif isinstance(on.numbers, Points):
        found, says = on.numbers.differs(data_of(on.numbers, a), data_of(on.numbers, b))
        different = found & says
    else:
        x, y = array_of(on.data(a)), array_of(on.data(b))
        size = np.maximum(np.abs(x), np.abs(y))
        most = np.max(size[np.isfinite(size)], initial=0.0)
        with np.errstate(all="ignore"):
            different = ~((np.abs(x - y) <= CLOSE * np.maximum(size, most * 1e-3)) | (x == y))
            different &= ~(np.isnan(x) & np.isnan(y))
    return first_place(different)


def _whole(on: Walking, held: Sequence[Shaped], split: Split, what: str, name: Callable[[int], str]) -> Shaped:
    """The array of which each device holds a part. what: it is.  name: of a device, for people."""
    kept: dict[tuple[int, ...], int] = {}
    for device, part in enumerate(split.at):
        first = kept.setdefault(part, device)
        element = _apart(on, held[first], held[device])
        if element is not None:
            at_element = f"[{', '.join(map(str, element))}]" if element else "its number"
            raise Apart(
                f"{what} is declared the same on {name(first)} and {name(device)}, "
                f"and {at_element} differs between them",
                on.place(),
            )

    def joined(part: tuple[int, ...]) -> Shaped:
        dim = len(part)
        if dim == len(split.counts):
            return held[kept[part]]
        found = [joined((*part, k)) for k in range(split.counts[dim])]
        return found[0] if len(found) == 1 else combined(on.numbers, found, lambda each: np.concatenate(each, dim))

    return joined(())


def _said(mesh: Axes, at: Sequence[int]) -> str:
    return "device (" + ", ".join(f"{name}={k}" for (name, _), k in zip(mesh, at, strict=True)) + ")"


def _shard_map(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    p = equation.params
    sizes = dict(p["mesh"])
    manual = p.get("newly_manual_axes", p.get("manual_axes"))
    added: Axes = tuple((name, n) for name, n in sizes.items() if manual is None or name in manual)
    outer: Axes = on.mesh
    if count((*outer, *added)) > MOST_DEVICES:
        raise on.refuse(f"a mesh of {count((*outer, *added)):,} devices, more than {MOST_DEVICES:,}")
    for spec in (*p["in_specs"], *p["out_specs"]):
        if getattr(spec, "unreduced", None) or getattr(spec, "reduced", None):
            raise on.refuse("a sharding with axes that are not reduced yet")
    if on.device is not None:
        raise on.refuse("a shard_map in a branch or loop that devices take otherwise than one another")
    places = list(product(*(range(n) for _, n in added)))

    def entered(value: Shaped, spec: Spec) -> Shaped:
        if not any(_names(spec, dim) for dim in range(len(spec))) and not isinstance(value, DeviceParts):
            return value
        split = _split(spec, len(value.shape), added)
        return DeviceParts(tuple(_shard(on, part, split.counts, at) for part in parts_of(on, value) for at in split.at))

    given = [entered(value, spec) for value, spec in zip(operands, p["in_specs"], strict=True)]
    on.mesh = (*outer, *added)
    try:
        found = on.run(p["jaxpr"], given)
        results: list[Any] = []
        for k, (value, spec) in enumerate(zip(found, p["out_specs"], strict=True)):
            rows = parts_of(on, value)
            per = len(places)
            split, what = _split(spec, len(value.shape), added), f"output {k} of the shard_map"
            whole = [
                _whole(on, rows[d * per : (d + 1) * per], split, what, lambda k: _said(added, places[k]))
                for d in range(count(outer))
            ]
            results.append(DeviceParts(tuple(whole)) if outer else whole[0])
    finally:
        on.mesh = outer
    return results


def _partitioned(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """A program of each device, of whole arrays. ins, outs: a `Split` of each operand and result, None of one that
    every device holds."""
    p = equation.params
    if on.mesh:
        raise on.refuse("a partitioned program within a program of several devices")
    many = int(p["devices"])
    if many > MOST_DEVICES:
        raise on.refuse(f"a program of {many:,} devices, more than {MOST_DEVICES:,}")

    def entered(value: Shaped, split: Split | None) -> Shaped:
        return value if split is None else DeviceParts(tuple(_shard(on, value, split.counts, at) for at in split.at))

    given = [entered(value, split) for value, split in zip(operands, p["ins"], strict=True)]
    on.mesh = ((DEVICES, many),)
    try:
        found = on.run(p["jaxpr"], given)
        results = []
        for k, (value, split) in enumerate(zip(found, p["outs"], strict=True)):
            parts = parts_of(on, value)
            of = Split((1,) * len(value.shape), ((0,) * len(value.shape),) * many) if split is None else split
            results.append(_whole(on, parts, of, f"output {k} of the partitioned program", "device {}".format))
    finally:
        on.mesh = ()
    return results


PRIMITIVES: dict[str, Rule] = {
    **dict.fromkeys(("psum", "psum2", "psum_invariant"), _all_reduce("sum")),
    "pmax": _all_reduce("max"),
    "pmin": _all_reduce("min"),
    **dict.fromkeys(("all_gather", "all_gather_invariant", "all_gather_reduced"), _all_gather),
    **dict.fromkeys(("reduce_scatter", "unreduced_reduce_scatter"), _reduce_scatter),
    "all_to_all": _all_to_all,
    "ppermute": _permute,
    "axis_index": _axis_index,
    "shard_map": _shard_map,
    "partitioned": _partitioned,
    "pbroadcast": _broadcast,
}
"""Primitive -> rule, for primitives on values of all devices at once."""
