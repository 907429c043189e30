"""Reading the mesh form of shardings (V3): `{mesh['a'=2,'b'=4], [{'a'}, {'b':(2)2, ?}], replicated={'b':(1)2}}`.

Source: openxla/xla `xla/hlo/parser/hlo_parser.cc` (ParseMesh, ParseAxisRef, ParseDimensionSharding, and the
ParseSingleSharding of NamedSharding), checked against jaxlib 0.10.2; `unreduced=max{..}` is newer than that, and so is
a mesh without axes on a device other than 0, `{mesh[], device_ids=(5), []}`, which is Shardy's way to say maximal.
Which function combines unreduced values is kept and printed; places do not depend on it, so nothing is proved of it.
"""

from __future__ import annotations

from dataclasses import replace

from layoutproof.core.size import product
from layoutproof.layouts.sharding import problems
from layoutproof.layouts.sharding.lexer import integers, iota_parts, metadata, quoted
from layoutproof.layouts.sharding.mesh import wrong_axes, wrong_mesh
from layoutproof.layouts.sharding.model import REDUCTIONS, Axis, Mesh, NamedSharding
from layoutproof.layouts.sharding.tiles import Tiles, iota
from layoutproof.layouts.xla.lexer import MAX_RANK, XlaCursor

_GROUPS = ("replicated=", "unreduced=", "manual=")


def read_named(cursor: XlaCursor) -> NamedSharding:
    """The sharding at the cursor, whose opening brace is read already; LayoutError for everything XLA aborts on."""
    start, word = cursor.start, cursor.word
    mesh, comma = read_mesh(cursor)
    sharding = NamedSharding(mesh)
    everything = tuple(Axis(k) for k in range(len(mesh.names)))
    if mesh.maximal and word == "maximal_mesh":
        if comma:
            sharding = replace(sharding, metadata=_metadata(cursor))
    elif cursor.word in ("replicated", "unreduced", "unreduced=", "manual"):
        word = cursor.word.removesuffix("=")
        if word != "replicated" and not everything:
            raise cursor.refuse(problems.MESH_WITHOUT_AXES(word))
        combined = cursor.word.endswith("=")
        cursor.advance()
        reduction = _reduction(cursor, True) if combined else ""
        if word != "replicated":
            sharding = NamedSharding(mesh, reduction=reduction, **{word: everything})  # type: ignore[arg-type]
        if cursor.kind == ",":
            cursor.advance()
            sharding = replace(sharding, metadata=_metadata(cursor))
    else:
        sharding = _dimensions(cursor, mesh)
        problem = wrong_axes(sharding)
        if problem:
            raise cursor.refuse(problem, start)
        word = sharding.word()
        if word:
            whole = {} if word == "replicated" else {word: everything}
            kept = {"metadata": sharding.metadata, "reduction": sharding.reduction}
            sharding = NamedSharding(mesh, **kept, **whole)  # type: ignore[arg-type]
    cursor.take("}", "after the sharding")
    # one device without axes: nothing can be split over it, so all that is said is which device
    return NamedSharding(mesh, metadata=sharding.metadata) if mesh.maximal else sharding


def read_mesh(cursor: XlaCursor) -> tuple[Mesh, bool]:
    """The mesh at the cursor, and whether a comma was read after it."""
    start, word = cursor.start, cursor.word
    cursor.advance()
    cursor.take("[", f"after {word}")
    if word == "maximal_mesh":
        if cursor.word != "device_id=":
            raise cursor.expected("device_id= and the device of a maximal mesh")
        cursor.advance()
        device = cursor.integer("the device of a maximal mesh")
        if cursor.strict and device < 0:
            raise cursor.refuse(problems.DEVICE_NEGATIVE(device), start)
        cursor.take("]", "after the device")
        return Mesh((), Tiles((1,), devices=(device,)), maximal=True), _comma(cursor)
    names: list[str] = []
    sizes: list[int] = []
    while cursor.kind != "]" or names:
        if len(names) == MAX_RANK:
            raise cursor.refuse(problems.MESH_RANK(MAX_RANK))
        names.append(quoted(cursor, "the name of a mesh axis in quotes: 'x'=2"))
        cursor.take("=", "and the size of the axis")
        sizes.append(cursor.integer("the size of a mesh axis"))
        if cursor.kind != ",":
            break
        cursor.advance()
    cursor.take("]", "after the axes of the mesh")
    comma = _comma(cursor)
    tiles = iota(sizes)
    if comma and cursor.word == "device_ids=":
        tiles = _device_ids(cursor, sizes)
        comma = _comma(cursor)
        if not names:
            (device,) = tiles.devices or (0,)
            if device < 0:
                raise cursor.refuse(problems.DEVICE_NEGATIVE(device), start)
            return Mesh((), Tiles((1,), devices=(device,)), maximal=True), comma
    elif comma and not cursor.strict:
        # where XLA looks for device_ids= it takes any attribute, and then another comma
        if cursor.kind == "name" and cursor.word.endswith("="):
            cursor.advance()
        _comma(cursor)
    mesh = Mesh(tuple(names), tiles)
    problem = wrong_mesh(mesh, cursor.strict)
    if problem:
        raise cursor.refuse(problem, start)
    return mesh, comma


def _device_ids(cursor: XlaCursor, sizes: list[int]) -> Tiles:
    start = cursor.start
    cursor.advance()
    cursor.take("(", "and the device ids")
    if cursor.kind == "[":
        reshape, perm = iota_parts(cursor)
        if product(reshape) != product(sizes):
            raise cursor.refuse(problems.MESH_COUNT(product(sizes), product(reshape)), start)
        tiles = iota(sizes, reshape, perm)
    else:
        devices = integers(cursor, "a device id") if cursor.kind != ")" else []
        if len(devices) != product(sizes):
            raise cursor.refuse(problems.MESH_LIST(product(sizes), len(devices)), start)
        tiles = Tiles(tuple(sizes), devices=tuple(devices))
    cursor.take(")", "after the device ids")
    return tiles


def _dimensions(cursor: XlaCursor, mesh: Mesh) -> NamedSharding:
    cursor.take("[", "and one {..} per array dimension, or replicated, unreduced or manual")
    dims: list[tuple[Axis, ...]] = []
    unconstrained: list[bool] = []
    while cursor.kind != "]" or dims:
        axes, is_open = read_axes(cursor, mesh, True)
        dims.append(axes)
        unconstrained.append(is_open)
        if cursor.kind != ",":
            break
        cursor.advance()
    cursor.take("]", "after the dimensions")
    groups: dict[str, tuple[Axis, ...]] = {}
    shown: tuple[str, ...] = ()
    reduction = ""
    while cursor.kind == ",":
        cursor.advance()
        word = cursor.word
        if word == "metadata=":
            shown += _metadata(cursor)
            continue
        if word not in _GROUPS:
            raise cursor.expected("replicated=, unreduced=, manual= or metadata=")
        if cursor.strict and word[:-1] in groups:
            raise cursor.refuse(problems.GIVEN_TWICE(word))
        cursor.advance()
        if word == "unreduced=":
            reduction = _reduction(cursor, False)
        groups[word[:-1]] = groups.get(word[:-1], ()) + read_axes(cursor, mesh, False)[0]
    return NamedSharding(mesh, tuple(dims), tuple(unconstrained), reduction=reduction, metadata=shown, **groups)


def _reduction(cursor: XlaCursor, needed: bool) -> str:
    """How unreduced values combine, where the text says so or has to."""
    if cursor.word not in REDUCTIONS:
        if needed:
            raise cursor.expected(f"how values combine, one of {', '.join(REDUCTIONS)}")
        return ""
    word = cursor.word
    cursor.advance()
    return word


def read_axes(cursor: XlaCursor, mesh: Mesh, dimension: bool) -> tuple[tuple[Axis, ...], bool]:
    """The axes of one `{..}`, and whether it ends in `?`."""
    cursor.take("{", "and the mesh axes")
    axes: list[Axis] = []
    is_open = False
    while cursor.kind != "}" or axes:
        if dimension and cursor.kind == "?":
            is_open = True
            cursor.advance()
            break
        axes.append(_axis(cursor, mesh))
        if cursor.kind != ",":
            break
        cursor.advance()
    cursor.take("}", "after the mesh axes" + (" (? comes last)" if is_open else ""))
    return tuple(axes), is_open


def _axis(cursor: XlaCursor, mesh: Mesh) -> Axis:
    start = cursor.start
    name = quoted(cursor, "the name of a mesh axis in quotes, such as 'x'")
    if name in mesh.names:
        number = mesh.names.index(name)
    elif name.isdecimal() and len(name) < 10 and int(name) < len(mesh.names):
        number = int(name)
    else:
        known = ", ".join(mesh.names) or "none"
        raise cursor.refuse(problems.MESH_NO_AXIS(name, known), start)
    if cursor.kind != ":":
        return Axis(number)
    cursor.advance()
    cursor.take("(", "and the size before the part of the axis: 'x':(2)4")
    pre = cursor.integer("the size before the part of the axis")
    cursor.take(")", "after the size before the part")
    size = cursor.integer("the size of the part of the axis")
    if pre < 1 or size < 2:
        raise cursor.refuse(problems.AXIS_PART(name, pre, size), start)
    return Axis(number, pre, size)


def _comma(cursor: XlaCursor) -> bool:
    if cursor.kind != ",":
        return False
    cursor.advance()
    return True


def _metadata(cursor: XlaCursor) -> tuple[str, ...]:
    if cursor.word != "metadata=":
        raise cursor.expected("metadata=")
    cursor.advance()
    return tuple(metadata(cursor))
