"""Meshes and partition specs as text: `data=2,model=2`, `P('data', None)`. Parsed, never evaluated."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from layoutproof.core.bounds import check_length, check_text
from layoutproof.core.errors import LayoutError, closest, shorten
from layoutproof.layouts.sharding import problems as sharding_problems
from layoutproof.layouts.sharding.jax_text import spec_of
from layoutproof.programs import problems

LONGEST = 100_000
"""Characters of the partition specs of one argument."""
Spec = tuple[str | tuple[str, ...] | None, ...]
"""The mesh axes of each dimension: one, several, or none."""

OPEN = -1
"""The size of a mesh axis that takes the devices which others leave, as `ici_fsdp_parallelism=-1` of MaxText does."""

_AXIS = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*([1-9]\d{0,5}|-1)\s*")


def read_mesh(text: str, unsized: bool = False) -> dict[str, int]:
    """Axis -> size, in order; {} of an empty text. unsized: whether one axis may be OPEN.

    >>> read_mesh("data=2, model=4")
    {'data': 2, 'model': 4}

    Raises LayoutError for what is no mesh, and for an axis named twice.
    """
    found: dict[str, int] = {}
    for part in check_length(text).split(",") if text.strip() else ():
        axis = _AXIS.fullmatch(part)
        if axis is None or (int(axis[2]) == OPEN and not unsized):
            raise LayoutError(problems.MESH_FORM(shorten(part, 40)), text=text[:200])
        if axis[1] in found:
            raise LayoutError(problems.AXIS_TWICE(axis[1]), text=text[:200])
        found[axis[1]] = int(axis[2])
    if list(found.values()).count(OPEN) > 1:
        raise LayoutError(problems.ONE_OPEN_SIZE(OPEN), text=text[:200])
    return found


def read_specs(text: str, mesh: Mapping[str, int]) -> object:
    """One argument's partition spec, or a dict, list or tuple of them for its parts, each as `("P", Spec)`.

    >>> read_specs("P(('data', 'model'), None)", {"data": 2, "model": 2})
    ('P', (('data', 'model'), None))
    >>> read_specs("{'w': P(None, 'data'), 'b': P()}", {"data": 2})
    {'w': ('P', (None, 'data')), 'b': ('P', ())}

    Raises LayoutError for anything else, and for an axis that the mesh does not have, or that is used twice.
    """
    text = check_text(check_length(text, LONGEST)).strip()
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise _wrong(text) from None
    return _read(tree, text, mesh)


def _read(node: ast.expr, text: str, mesh: Mapping[str, int]) -> object:
    match node:
        case ast.Call(func=ast.Name(id="P" | "PartitionSpec"), keywords=[]):
            return ("P", _spec(ast.unparse(node), mesh))
        case ast.Dict(keys=keys, values=values):
            names = [key.value if isinstance(key, ast.Constant) else None for key in keys]
            if all(isinstance(name, str | int) for name in names):
                return {name: _read(value, text, mesh) for name, value in zip(names, values, strict=True)}
        case ast.List(elts=elements):
            return [_read(each, text, mesh) for each in elements]
        case ast.Tuple(elts=elements):
            return tuple(_read(each, text, mesh) for each in elements)
    raise _wrong(text)


def _spec(text: str, mesh: Mapping[str, int]) -> Spec:
    found = spec_of(text).entries
    used = [axis for entry in found for axis in (entry if isinstance(entry, tuple) else (entry,)) if axis is not None]
    seen = set[str]()
    for axis in used:
        if axis not in mesh:
            have = f"its axes are {', '.join(mesh)}" if mesh else "there is no mesh"
            raise LayoutError(sharding_problems.NO_AXIS(axis, have, closest(axis, mesh)), text=text[:200])
        if axis in seen:
            raise LayoutError(problems.AXIS_SPLITS_TWO(axis), text=text[:200])
        seen.add(axis)
    return found


def _wrong(text: str) -> LayoutError:
    example = "P('data', None), or a dict, list or tuple of such"
    return LayoutError(problems.SHARDING_FORM(example, shorten(text, 60)), text=text[:200])
