"""Shardings as JAX prints them: `P('x', None) on x=2,y=4`, or a whole `NamedSharding(mesh=Mesh(..), spec=P(..))`.

    NAMED  =  SPEC on MESH  |  NamedSharding(mesh=MESH, spec=SPEC, memory_kind=WORD)
    SPEC   =  P(ENTRY, .., unreduced={'x'}, unreduced_kind=max, reduced={'x'})          P or PartitionSpec
    ENTRY  =  None | 'x' | ('x', 'y')
    MESH   =  x=2,y=4  |  mesh['x'=2,'y'=4]  |  Mesh('x': 2, 'y': 4, axis_types=(Auto, Manual))       or AbstractMesh
           |  Mesh(axis_sizes=(2, 4), axis_names=('x', 'y'))

A specification may leave out trailing dimensions. Devices are numbered along the mesh, the last axis fastest: JAX
prints no device numbers, so a mesh in another order is written `mesh['x'=2,'y'=4], device_ids=(..)`. Axes in `reduced`
are replicated; a memory kind says nothing of which device. UNCONSTRAINED says nothing of where elements are.

Source: jax 0.10.2 and 0.12.0.1, `repr` of PartitionSpec, Mesh, AbstractMesh and NamedSharding.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from layoutproof.core.errors import LayoutError, closest, shorten
from layoutproof.layouts.sharding import problems
from layoutproof.layouts.sharding.lexer import cursor_at, quoted
from layoutproof.layouts.sharding.mesh import mesh_of, wrong_mesh
from layoutproof.layouts.sharding.mesh_text import read_mesh as read_xla_mesh
from layoutproof.layouts.sharding.model import REDUCTIONS, Mesh, NamedSharding
from layoutproof.layouts.sharding.partition_spec import from_spec
from layoutproof.layouts.xla import problems as xla_problems
from layoutproof.layouts.xla.lexer import MAX_RANK, XlaCursor

T = TypeVar("T")

STARTS = re.compile(r"\s*(?:P|PartitionSpec|NamedSharding)\s*\(")
"""How such a text begins."""
_SPECS = ("P", "PartitionSpec")
_MESHES = ("Mesh", "AbstractMesh")
_ABOUT = ("device_kind=", "num_cores=", "platform=")
_TYPES = ("Auto", "Explicit", "Manual")
_ANYTHING = re.compile(r"[^,()\[\]{}]*")


@dataclass(frozen=True, slots=True)
class PartitionSpecText:
    """What `P(..)` says. entries: per dimension an axis, several, or None.  unreduced, reduced: axes.

    reduction: "", "max" or "min", how unreduced values combine.
    """

    entries: tuple[str | tuple[str, ...] | None, ...]
    unreduced: tuple[str, ...] = ()
    reduced: tuple[str, ...] = ()
    reduction: str = ""


def read_jax(cursor: XlaCursor) -> NamedSharding:
    """The sharding at the cursor. LayoutError, with the column, for what JAX prints otherwise or not at all."""
    start = cursor.start
    spec, mesh, types = read_parts(cursor)
    manual = [name for name, kind in zip(mesh.names, types, strict=False) if kind == "Manual"]
    try:
        return _on(mesh, spec, manual)
    except LayoutError as error:
        raise cursor.refuse(error.problem, start) from None


def read_parts(cursor: XlaCursor) -> tuple[PartitionSpecText, Mesh, tuple[str, ...]]:
    """The specification, the mesh, and the types of its axes, () where they are not written."""
    start = cursor.start
    if cursor.word == "NamedSharding":
        return _whole(cursor)
    spec = read_spec(cursor)
    if cursor.word != "on":
        hint = f"{cursor.text[start : cursor.start].strip()} on x=2,y=4"
        raise cursor.expected(f"the mesh, as in '{shorten(hint, 60)}'")
    cursor.advance()
    return spec, *_mesh(cursor)


def parts_of(text: str) -> tuple[PartitionSpecText, Mesh, tuple[str, ...]]:
    """The same of a whole text, whose axes are checked.

    >>> parts_of("P('x') on Mesh('x': 2, axis_types=(Explicit,))")[2]
    ('Explicit',)

    Raises LayoutError with the column.
    """
    cursor = cursor_at(text, True)
    spec, mesh, types = read_parts(cursor)
    if cursor.kind != "end":
        raise cursor.refuse(problems.AFTER_SHARDING(shorten(cursor.word, 40)))
    read_jax(cursor_at(text, True))
    return spec, mesh, types


def spec_of(text: str) -> PartitionSpecText:
    """The specification that a text writes, and nothing else.

    >>> spec_of("PartitionSpec(('x', 'y'), None, unreduced={'z'})")
    PartitionSpecText(entries=(('x', 'y'), None), unreduced=('z',), reduced=(), reduction='')

    Raises LayoutError with the column for anything else.
    """
    cursor = cursor_at(text, True)
    found = read_spec(cursor)
    if cursor.kind != "end":
        raise cursor.refuse(problems.AFTER_SPEC(shorten(cursor.word, 40)))
    return found


def read_spec(cursor: XlaCursor) -> PartitionSpecText:
    """`P(..)` at the cursor."""
    if cursor.word not in _SPECS:
        raise cursor.expected("a partition specification, as in P('x', None)")
    cursor.advance()
    cursor.take("(", "and one entry per dimension")
    entries: list[str | tuple[str, ...] | None] = []
    said: dict[str, Any] = {}
    while cursor.kind != ")":
        if len(entries) == MAX_RANK:
            raise cursor.refuse(xla_problems.RANK(MAX_RANK))
        if cursor.word in ("unreduced=", "reduced=", "unreduced_kind="):
            _keyword(cursor, said)
        elif said:
            raise cursor.expected("unreduced=, reduced= or ): entries of dimensions come first")
        else:
            entries.append(_entry(cursor))
        if not cursor.took(","):
            break
    cursor.take(")", "after the entries, or a comma")
    return PartitionSpecText(tuple(entries), **said)


def _keyword(cursor: XlaCursor, said: dict[str, object]) -> None:
    name = cursor.word.removesuffix("=")
    key = "reduction" if name == "unreduced_kind" else name
    if key in said:
        raise cursor.refuse(problems.GIVEN_TWICE(name))
    cursor.advance()
    if key == "reduction":
        if cursor.word not in ("sum", *REDUCTIONS):
            raise cursor.expected(f"sum, {' or '.join(REDUCTIONS)}")
        said[key] = "" if cursor.word == "sum" else cursor.word
        cursor.advance()
    elif cursor.word == "set":
        # of an empty set
        cursor.advance()
        cursor.take("(", "")
        cursor.take(")", "")
        said[key] = ()
    else:
        said[key] = _names(cursor, "{", "}")


def _entry(cursor: XlaCursor) -> str | tuple[str, ...] | None:
    match cursor.word:
        case "None":
            cursor.advance()
            return None
        case "UNCONSTRAINED" | "P.UNCONSTRAINED" | "PartitionSpec.UNCONSTRAINED":
            why = "it leaves the choice to the compiler; write what it chose"
            raise cursor.refuse(problems.UNCONSTRAINED(why))
        case "(":
            return _names(cursor, "(", ")")
    if cursor.kind == "name" and cursor.word[0] not in "'\"":
        raise cursor.refuse(problems.AXIS_QUOTES(shorten(cursor.word, 40)))
    return quoted(cursor, "None, an axis such as 'x', or several such as ('x', 'y')")


def _names(cursor: XlaCursor, opening: str, closing: str) -> tuple[str, ...]:
    cursor.take(opening, "and axes in quotes")
    found: list[str] = []
    while cursor.kind != closing:
        found.append(quoted(cursor, "an axis in quotes"))
        if not cursor.took(","):
            break
    cursor.take(closing, "after the axes")
    return tuple(found)


def _whole(cursor: XlaCursor) -> tuple[PartitionSpecText, Mesh, tuple[str, ...]]:
    """`NamedSharding(mesh=.., spec=.., memory_kind=..)`."""
    cursor.advance()
    cursor.take("(", "and mesh=")
    found: dict[str, Any] = {}
    while cursor.kind != ")":
        name = cursor.word
        if name not in ("mesh=", "spec=", "memory_kind=") or name in found:
            raise cursor.expected("mesh=, spec= or memory_kind=, each once")
        cursor.advance()
        if name == "mesh=":
            if cursor.word not in _MESHES:
                raise cursor.expected("Mesh(..) or AbstractMesh(..)")
            found[name] = _mesh(cursor)
        elif name == "spec=":
            found[name] = read_spec(cursor)
        else:
            found[name] = _word(cursor)
        if not cursor.took(","):
            break
    if "mesh=" not in found or "spec=" not in found:
        raise cursor.expected("mesh= and spec=")
    cursor.take(")", "after the sharding")
    return found["spec="], *found["mesh="]


def _mesh(cursor: XlaCursor) -> tuple[Mesh, tuple[str, ...]]:
    """(the mesh, the types of its axes where they are written)."""
    start = cursor.start
    if cursor.word == "mesh":
        return read_xla_mesh(cursor)[0], ()
    named = cursor.word in _MESHES
    names, sizes, types = _printed(cursor) if named else (*_pairs(cursor), ())
    mesh = mesh_of(tuple(names), tuple(sizes))
    problem = wrong_mesh(mesh, True) if names else ""
    if not problem and (len(names) != len(sizes) or (types and len(types) != len(names))):
        problem = f"{len(names)} axes, {len(sizes)} sizes and {len(types)} types"
    if problem:
        raise cursor.refuse(problem, start)
    return mesh, types


def _pairs(cursor: XlaCursor) -> tuple[list[str], list[int]]:
    """`x=2,y=4`."""
    names: list[str] = []
    sizes: list[int] = []
    while True:
        if cursor.kind != "name" or not cursor.word.endswith("=") or len(names) == MAX_RANK:
            raise cursor.expected("an axis and its size, as in x=2,y=4")
        names.append(cursor.word[:-1])
        cursor.advance()
        sizes.append(cursor.integer("the size of a mesh axis"))
        if not cursor.took(","):
            return names, sizes


def _printed(cursor: XlaCursor) -> tuple[list[str], list[int], tuple[str, ...]]:
    """`Mesh('x': 2, 'y': 4, axis_types=(Auto, Auto))`, or with axis_sizes and axis_names."""
    cursor.advance()
    cursor.take("(", "and its axes")
    names: list[str] = []
    sizes: list[int] = []
    types: tuple[str, ...] = ()
    while cursor.kind != ")" and len(names) < MAX_RANK:
        if cursor.took(","):
            # a mesh without axes is printed Mesh(, axis_types=())
            continue
        match cursor.word:
            case "axis_sizes=":
                cursor.advance()
                sizes += _several(cursor, lambda: cursor.integer("the size of a mesh axis"))
            case "axis_names=":
                cursor.advance()
                names += _names(cursor, "(", ")")
            case "axis_types=":
                cursor.advance()
                types = tuple(_several(cursor, lambda: _type(cursor)))
            case word if word in _ABOUT:
                cursor.advance()
                _word(cursor)
            case _:
                names.append(quoted(cursor, "an axis such as 'x': 2, or axis_types="))
                cursor.take(":", "and the size of the axis")
                sizes.append(cursor.integer("the size of a mesh axis"))
    cursor.take(")", "after the mesh")
    return names, sizes, types


def _several(cursor: XlaCursor, one: Callable[[], T]) -> list[T]:
    cursor.take("(", "")
    found = []
    while cursor.kind != ")":
        found.append(one())
        if not cursor.took(","):
            break
    cursor.take(")", "")
    return found


def _type(cursor: XlaCursor) -> str:
    word = cursor.word.removeprefix("AxisType.")
    if word not in _TYPES:
        raise cursor.expected(f"{', '.join(_TYPES[:-1])} or {_TYPES[-1]}")
    cursor.advance()
    return word


def _word(cursor: XlaCursor) -> str:
    found = cursor.matched(_ANYTHING)
    return "" if found is None else found[0].strip()


def _on(mesh: Mesh, spec: PartitionSpecText, manual: list[str]) -> NamedSharding:
    named = [n for e in spec.entries for n in ((e,) if isinstance(e, str) else e or ())]
    for name in (*named, *spec.unreduced, *spec.reduced):
        if name not in mesh.names:
            have = f"its axes are {', '.join(mesh.names)}" if mesh.names else "it has none"
            raise LayoutError(problems.NO_AXIS(name, have, closest(name, mesh.names)))
    for name in spec.reduced:
        if name in (*named, *spec.unreduced) or spec.reduced.count(name) > 1:
            raise LayoutError(problems.AXIS_TWICE(name))
    found = from_spec(mesh, spec.entries, manual, spec.unreduced)
    return replace(found, reduction=spec.reduction) if spec.reduction else found
