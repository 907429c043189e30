"""Shardings written over a mesh: JAX's NamedSharding and PartitionSpec, the same as plain data, and SBP signatures.

JAX's `PartitionSpec("x", None, ("y", "z"))` has one entry per array dimension, naming mesh axes; an SBP signature
`(split(0), broadcast)` has one entry per mesh axis, naming array dimensions. Both become the mesh form (V3).

Source: jax 0.10 `jax.sharding` (NamedSharding, PartitionSpec, Mesh); OneFlow's SBP as in the Axe articles.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.size import product
from layoutproof.layouts.sharding import problems
from layoutproof.layouts.sharding.mesh import mesh_of, wrong_axes, wrong_mesh
from layoutproof.layouts.sharding.model import Axis, Mesh, NamedSharding

_ENTRY = re.compile(
    r"(?:split|S)\s*\(\s*(?:axis\s*=\s*)?(?P<dim>[0-9]{1,4})\s*\)|(?P<all>broadcast|B)|(?P<sum>partial_sum|P)"
)
SBP = re.compile(r"\s*\(\s*(?:split\s*\(|broadcast\b|partial_sum\b|[SP]\s*\(|[BP]\s*[,)])")
"""How an SBP signature begins."""


def is_jax(value: object) -> bool:
    """Whether a value is a sharding object of JAX: it has a mesh and a spec."""
    return hasattr(value, "mesh") and hasattr(value, "spec")


def from_jax(value: Any) -> tuple[NamedSharding, tuple[int, ...] | None]:
    """A JAX NamedSharding as (mesh form, device numbers where those of the mesh are not 0.. in some order)."""
    mesh, named = read_mesh(value.mesh)
    return from_spec(mesh, value.spec, _manual(value.mesh)), named


def read_mesh(value: object, devices: Sequence[int] | None = None) -> tuple[Mesh, tuple[int, ...] | None]:
    """A mesh from JAX's Mesh or AbstractMesh, or from a mapping of names to sizes with perhaps device numbers.

    Gives the mesh, and the device numbers where they are not 0.. in some order; the mesh then counts from 0.
    """
    shape = getattr(value, "shape", value)
    if not isinstance(shape, Mapping):
        raise LayoutError(problems.MESH_FORM(_brief(value)))
    names, sizes = tuple(map(str, shape)), tuple(shape.values())
    for name, size in zip(names, sizes, strict=True):
        if not name or set(name) & set("'\"\\\n"):
            raise LayoutError(problems.MESH_AXIS_NAME(name))
        if type(size) is not int or size < 1:
            raise LayoutError(problems.MESH_AXIS_SIZE(name, size))
    if devices is None and (placed := _devices(value)) is not None:
        devices = [int(device.id) for device in placed.flat]
    if devices is None:
        return mesh_of(names, sizes), None
    numbers = tuple(devices)
    if len(numbers) != product(sizes) or len(set(numbers)) != len(numbers):
        raise LayoutError(problems.MESH_DEVICES_ONCE(product(sizes), _brief(list(numbers))))
    if any(type(number) is not int or number < 0 for number in numbers):
        raise LayoutError(problems.DEVICE_NUMBERS(_brief(list(numbers))))
    if sorted(numbers) != list(range(len(numbers))):
        return mesh_of(names, sizes), numbers
    mesh = mesh_of(names, sizes, numbers)
    return mesh, None


def _devices(mesh: object) -> Any:
    """The array of devices of JAX's Mesh; None for a mapping and for an AbstractMesh, which raises when asked."""
    try:
        return getattr(mesh, "devices", None)
    except ValueError:
        return None


def from_spec(mesh: Mesh, spec: object, manual: Sequence[str] = (), unreduced: Sequence[str] = ()) -> NamedSharding:
    """A sharding from a partition specification: per array dimension None, an axis name, or several of them.

    Raises LayoutError for an axis that the mesh does not have or that is used twice.

    >>> str(from_spec(mesh_of(("x", "y"), (2, 4)), ["x", None, ["y"]]))
    "{mesh['x'=2,'y'=4], [{'x'}, {}, {'y'}]}"
    """
    if isinstance(spec, str) or not hasattr(spec, "__iter__"):
        raise LayoutError(problems.SPEC_FORM(_brief(spec)))
    dims: list[tuple[Axis, ...]] = []
    unconstrained: list[bool] = []
    for entry in spec:
        free = type(entry).__name__ == "UnconstrainedSingleton"
        names = () if entry is None or free else (entry,) if isinstance(entry, str) else entry
        if not isinstance(names, tuple | list):
            raise LayoutError(problems.SPEC_ENTRY(_brief(entry)))
        dims.append(_axes(mesh, names))
        unconstrained.append(free)
    unreduced = [*unreduced, *(getattr(spec, "unreduced", None) or ())]
    groups = [tuple(sorted(_axes(mesh, names), key=lambda a: a.number)) for names in (unreduced, manual)]
    sharding = NamedSharding(mesh, tuple(dims), tuple(unconstrained), unreduced=groups[0], manual=groups[1])
    problem = wrong_mesh(mesh, True) or wrong_axes(sharding)
    if problem:
        raise LayoutError(problem, text=str(sharding))
    return sharding


def from_sbp(mesh: Mesh, text: str, rank: int | None = None) -> NamedSharding:
    """A sharding from an SBP signature, one of split(k), broadcast, partial_sum per mesh axis; S(k), B, P for short.

    rank: of the array; without it, just enough for the dimensions named. Two axes that split one dimension split it
    in the order of the mesh, the first one outermost.

    >>> str(from_sbp(mesh_of(("x", "y"), (2, 2)), "(split(0), broadcast)"))
    "{mesh['x'=2,'y'=2], [{'x'}]}"
    """
    inner = text.strip()
    if not (inner.startswith("(") and inner.endswith(")")):
        raise LayoutError(problems.SBP_FORM(), text=text)
    split: dict[int, list[int]] = {}
    sums: list[int] = []
    at, count = 1, 0
    end = len(inner) - 1
    while True:
        at += len(inner[at:]) - len(inner[at:].lstrip())
        found = _ENTRY.match(inner, at, end)
        if found is None:
            raise LayoutError(problems.SBP_ENTRY(), text=inner, column=at + 1)
        if found["dim"]:
            split.setdefault(int(found["dim"]), []).append(count)
        elif found["sum"]:
            sums.append(count)
        count += 1
        rest = inner[found.end() : end].lstrip()
        at = end - len(rest)
        if not rest:
            break
        if rest[0] != ",":
            raise LayoutError(problems.SBP_COMMAS(), text=inner, column=at + 1)
        at += 1
        if not rest[1:].strip():
            break
    if count != len(mesh.names):
        raise LayoutError(problems.SBP_COUNT(count, len(mesh.names)), text=inner)
    most = max(split, default=-1) + 1
    if rank is not None and most > rank:
        raise LayoutError(problems.SBP_SPLIT(most - 1, rank), text=inner)
    dims = tuple(tuple(Axis(k) for k in split.get(dim, ())) for dim in range(most if rank is None else rank))
    return NamedSharding(mesh, dims, (False,) * len(dims), unreduced=tuple(Axis(k) for k in sums))


def padded(sharding: NamedSharding, rank: int) -> NamedSharding:
    """The sharding with as many dimensions as the array: a specification may leave out trailing ones."""
    missing = rank - len(sharding.dims)
    if missing < 0:
        raise LayoutError(problems.SPEC_RANK(len(sharding.dims), rank), text=str(sharding))
    dims, is_open = sharding.dims + ((),) * missing, sharding.open + (False,) * missing
    return NamedSharding(
        sharding.mesh, dims, is_open, sharding.replicated, sharding.unreduced, sharding.manual, sharding.reduction
    )


def _axes(mesh: Mesh, names: Sequence[str]) -> tuple[Axis, ...]:
    for name in names:
        if name not in mesh.names:
            raise LayoutError(problems.SPEC_NO_AXIS(name, ", ".join(mesh.names) or "none"))
    return tuple(Axis(mesh.names.index(name)) for name in names)


def _manual(mesh: Any) -> list[str]:
    types = getattr(mesh, "axis_types", None) or ()
    return [name for name, kind in zip(mesh.axis_names, types, strict=False) if getattr(kind, "name", "") == "Manual"]


def _brief(value: object) -> str:
    return shorten(repr(value), 60)
