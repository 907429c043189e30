"""The contents of a place: the element or elements there, padding, or nothing; the inverse of `locate`.

Asked as `lp.inverse(layout).at(offset=17)`, `layoutproof locate LAYOUT --at 'lane=5 reg=2'`, or in a spec file:
    - at: scores
      byte: 68
      is: [2, 3]
A place is an offset in elements, a byte (with a bit perhaps), or coordinates by name; with some coordinates only it is
everything that has those, as `device=3`. Answers: `element`, `elements` (they collide where the place is whole; all are
counted exactly, the first are listed), `padding` with the dimensions whose rounding up made it (none: the tail's
alignment, metadata, or padding within the tiles), `hole` (inside, and no rounding up would put an element there),
`outside`.
How: coordinates are linear forms over digits, so a place is a few equations, whatever the size of the array; where
layouts have no digits, by bits over GF(2), one by one where there are few elements, or by the other engines. A place
whose elements no engine lists or counts within its steps is unknown.
Formula: `lp.inverse(layout).formula()`, or `--at` with names alone (`--at offset`): each entry of the index as a sum of
digits, for all sizes and tiles, with the condition under which a place holds an element; both are proved.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Annotated, Any, Literal, SupportsIndex, TypedDict

from layoutproof.core import problems as core_problems
from layoutproof.core.document import Doc, Document, envelope
from layoutproof.core.errors import BudgetExceeded, LayoutError, Undecided, shorten, unknown_name
from layoutproof.core.index_map import IndexMap, Memory
from layoutproof.core.message import restated
from layoutproof.core.space import Space, axis_names
from layoutproof.core.visible import json_text
from layoutproof.questions import problems
from layoutproof.questions.evaluate import read_constant, shown
from layoutproof.questions.inverse_formula import InverseFormula, flattened, formula_of
from layoutproof.registry.read import map_of, read_layout
from layoutproof.solvers.digits import DIGITS, placed
from layoutproof.solvers.preimage import preimage

if TYPE_CHECKING:
    from layoutproof.registry.read import Layout

MOST = 100
"""Elements that an answer lists unless more are asked for."""

What = Literal["element", "elements", "padding", "hole", "outside"]


class HeldEntry(TypedDict):
    index: list[int]
    replica: Annotated[list[int], Doc("which of the element's places this is; empty where it has one")]
    place: dict[str, int]


class ContentsDocument(Document):
    """The contents of a place, with `--at`."""

    subject: str
    at: Annotated[dict[str, int], Doc("what was asked for: coordinates by name")]
    what: What
    elements: Annotated[list[HeldEntry], Doc("the first of them")]
    count: Annotated[int, Doc("how many elements there are")]
    place_count: Annotated[int, Doc("how many pairs of an element and a replica of it there are")]
    dimensions: Annotated[list[str], Doc("of padding, the dimensions whose rounding up made it")]
    reason: str


@dataclass(frozen=True, slots=True)
class Held:
    """One element at a place.

    Attributes:
        index: The logical index.
        replica: Which of the element's places it is, one int per replica axis.
        place: That place, by axis; in a memory its offset in elements.
    """

    index: tuple[int, ...]
    replica: tuple[int, ...]
    place: dict[str, int]

    def as_dict(self) -> HeldEntry:
        """The same as plain data.

        Returns:
            A dict of lists and ints.
        """
        return {"index": list(self.index), "replica": list(self.replica), "place": self.place}


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a place, or of all places with some coordinates.

    Attributes:
        subject: The layout.
        at: The coordinates that were asked for, by name.
        what: "element" (exactly one), "elements" (several), "padding", "hole" (inside, and no element's, nor would be
            if dimensions were rounded up), "outside".
        elements: The first of them, sorted by index and replica.
        count: How many elements there are, exactly.
        places: How many pairs of an element and a replica of it there are, exactly.
        dimensions: Of padding, the dimensions whose rounding up made it; empty where it is not a dimension's.
        reason: In one sentence why there is no element, or that several collide.
    """

    subject: str
    at: dict[str, int]
    what: What
    elements: tuple[Held, ...] = ()
    count: int = 0
    places: int = 0
    dimensions: tuple[str, ...] = ()
    reason: str = ""

    def as_dict(self) -> ContentsDocument:
        """The answer as plain data, as `layoutproof locate --at --json` prints it.

        Returns:
            A dict whose first keys are `version` and `exit_code`.
        """
        return {
            **envelope(0),
            "subject": self.subject, "at": self.at, "what": self.what,
            "elements": [held.as_dict() for held in self.elements], "count": self.count,
            "place_count": self.places, "dimensions": list(self.dimensions), "reason": self.reason,
        }  # fmt: skip

    def to_json(self) -> str:
        """The same as text.

        Returns:
            One JSON object.
        """
        return json_text(self.as_dict())

    def __str__(self) -> str:
        asked = " ".join(f"{name}={value}" for name, value in self.at.items())
        lines = [f"{self.subject}  at {asked}"]
        named = f"{self.what} of dimension {' and '.join(self.dimensions)}" if self.dimensions else self.what
        many = f"{self.count} elements" if self.what == "elements" else named
        lines.append(f"  {many}" + (f": {self.reason}" if self.reason else ""))
        for held in self.elements:
            replica = f"  replica {held.replica}" if held.replica else ""
            lines.append(f"  {held.index}{replica}  at " + " ".join(f"{k} {v}" for k, v in held.place.items()))
        if self.places > len(self.elements):
            lines.append(f"  .. {self.places - len(self.elements)} more")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Inverse:
    """A layout read backwards: from places to elements.

    Attributes:
        layout: What `read_layout` made of it.
    """

    layout: Any

    def at(self, place: Mapping[str, int] | None = None, *, most: int = MOST, **coordinates: int) -> Contents:
        """The contents of a place.

        With some of the coordinates only, those of all places that have them. A byte holds every element of which it
        holds a bit.

        Args:
            place: Coordinates by name, as `locate` names them; in a memory `offset` (in elements), or `byte`, or `byte`
                and `bit` (0 to 7).
            most: How many elements are listed; all are counted.
            **coordinates: The same, where the names are names of Python.

        Returns:
            The contents.

        Raises:
            LayoutError: There is no such coordinate, or a size symbol has no value.
            Undecided: No engine can tell within its budget.

        >>> inverse("f32[3,5]{1,0:T(2,2)}").at(offset=17).elements[0].index
        (2, 3)
        >>> inverse("f32[3,5]{1,0:T(2,2)}").at(byte=14 * 4).reason
        'dimension i of 3 is rounded up to 4'
        >>> inverse("(i < 256, j < 512) -> (i // 8, j // 128)").at(p0=2, p1=1).count
        1024
        """
        symbols = map_of(self.layout).sizes()
        if symbols:
            raise LayoutError(problems.INVERSE_WITHOUT_VALUE(shown(self.layout), symbols[0]))
        read, m = read_constant(self.layout)
        names = names_of(m)
        memory = _memory(read, m)
        wanted = _wanted(read, {**(place or {}), **coordinates}, names, m, memory)
        if type(most) is not int or most < 0:
            raise LayoutError(problems.INVERSE_MOST(shorten(repr(most), 40)))
        if memory is not None and "byte" in wanted:
            return _at_byte(read, m, memory, wanted, most)
        if m.memory is not None and "offset" in wanted:
            m, names = flattened(m), ("offset",)
        numbers = {names.index(name): value for name, value in wanted.items()}
        return _contents(read, m, wanted, numbers, most)

    def formula(self, *names: str) -> InverseFormula:
        """The element at a place as a formula over the place's coordinates, for all places and all sizes.

        Each entry of the index is a sum of digits, read from the coordinates by `//` and `%`. It is proved that the
        formula gives each element back from its place, and the condition says which places of the range hold one.

        Args:
            *names: "offset" for the offset in a memory, or the names of all coordinates; without any the offset of a
                memory, else all coordinates.

        Returns:
            The formula.

        Raises:
            LayoutError: There are no such coordinates.
            Undecided: There is no such formula, as where elements collide, or it cannot be proved; with the reason.

        >>> print(inverse("f32[N,M]{1,0:T(8,128)}").formula("p0", "p1", "p2", "p3"))
        f32[N,M]{1,0:T(8,128)}  at (p0, p1, p2, p3)
          i = p0 * 8 + p2
          j = p1 * 128 + p3
          an element is there where i < N and j < M
          proved by digits
        >>> inverse("f32[3,5]{1,0:T(2,2)}").formula().element["i"]
        'offset // 12 * 2 + offset % 4 // 2'
        """
        m = map_of(self.layout)
        axes = names_of(m)
        known = axes if m.memory is None else tuple(dict.fromkeys(("offset", *axes)))
        for name in names:
            if name not in known:
                raise unknown_name("coordinate", name, known)
        if m.memory is not None and (not names or names == ("offset",)):
            m, axes = flattened(m), ("offset",)
        elif names and set(names) != set(axes):
            raise LayoutError(problems.FORMULA_COORDINATES(", ".join(axes)))
        return formula_of(m, axes, shown(self.layout))


def inverse(layout: object) -> Inverse:
    """A layout read backwards: which element is at an offset, a byte, a lane and register, on a device.

    Args:
        layout: Text, a mapping `{language: value}`, an object that `read_layout` takes, or a map.

    Returns:
        The inverse; its `at` answers for one place.

    Raises:
        LayoutError: The layout cannot be read.

    >>> print(inverse("f32[3,5] strides (4,1)").at(offset=4))
    f32[3,5] strides (4,1)  at offset=4
      2 elements: they collide at this place
      (0, 4)  at offset 4
      (1, 0)  at offset 4
    """
    read = read_layout(layout)
    map_of(read)
    return Inverse(read)


def names_of(m: IndexMap) -> tuple[str, ...]:
    """The names of the coordinates of a map, as `locate` gives them."""
    return m.range.names or axis_names(m.coordinates())


def _memory(layout: object, m: IndexMap) -> Memory | None:
    """The memory that the layout is of, or each device's own where the layout of a shard is known."""
    one = _shard(layout, m)
    return m.memory if one is None else one.index_map().memory


def _shard(layout: object, m: IndexMap) -> Layout | None:
    """The layout of what one device holds; None where that is not known."""
    shards: Any = getattr(m.place, "shards", None)
    one: Any = getattr(layout, "layout", None)
    known = shards is not None and one is not None and names_of(m) == ("device", "offset")
    return replace(one, dims=shards.shard) if known else None


def _wanted(
    layout: object, given: Mapping[str, SupportsIndex], names: tuple[str, ...], m: IndexMap, memory: Memory | None
) -> dict[str, int]:
    """The coordinates by name, each of which there is."""
    known = names if memory is None else tuple(dict.fromkeys(("offset", "byte", "bit", *names)))
    if not given:
        raise LayoutError(problems.INVERSE_NO_PLACE(known[0] if known else "offset", shown(layout), ", ".join(known)))
    found = {}
    for name, value in given.items():
        if name not in known:
            if name in ("byte", "bit"):
                raise LayoutError(problems.INVERSE_NO_BYTES(shown(layout), ", ".join(known)))
            raise unknown_name("coordinate", name, known)
        try:
            found[name] = operator.index(value)
        except TypeError:
            raise LayoutError(core_problems.WHOLE_NUMBER(name, shorten(repr(value), 40))) from None
        if type(value) is bool:
            raise LayoutError(core_problems.WHOLE_NUMBER(name, value))
    if memory is not None:
        alone = [name for name in ("offset", "byte") if name in found]
        others = [name for name in found if name not in ("offset", "byte", "bit")]
        if alone and (len(alone) > 1 or (others and "offset" not in names)):
            raise LayoutError(problems.INVERSE_PLACE_ALONE(alone[0]))
        if "bit" in found and ("byte" not in found or not 0 <= found["bit"] < 8):
            raise LayoutError(problems.INVERSE_BIT())
    return found


def _at_byte(layout: object, m: IndexMap, memory: Memory, wanted: dict[str, int], most: int) -> Contents:
    """The contents of a byte: an element, several that share it, or nothing."""
    if m.memory is not None:
        m = flattened(m)
    subject, byte = shown(layout), wanted["byte"]
    if not 0 <= byte < int(memory.bytes()):
        return Contents(subject, wanted, "outside", reason=problems.BYTE_OUTSIDE_MEMORY(memory.bytes()))
    if byte < memory.prefix_bytes:
        why = problems.BYTE_OF_METADATA(memory.prefix_bytes)
        return Contents(subject, wanted, "padding", reason=why)
    parts = _parts_of_byte(layout, m, memory, wanted, most)
    held = [part for part in parts if part.count]
    if not parts:
        return Contents(subject, wanted, "padding", reason=problems.BYTE_PAST_ELEMENTS())
    if not held:
        return parts[0]
    if len(held) > 1:
        return _sharing(held, m, subject, wanted, most)
    if len(parts) == 1:
        return held[0]
    empty = problems.BYTE_REST(next(part.what for part in parts if not part.count))
    reason = held[0].reason
    return replace(held[0], reason=restated(f"{reason}; {empty}", reason) if reason else empty)


def _parts_of_byte(layout: object, m: IndexMap, memory: Memory, wanted: dict[str, int], most: int) -> list[Contents]:
    """The contents of each offset that has bits in a byte, or in the given bit of it."""
    names = names_of(m)
    others = {names.index(name): value for name, value in wanted.items() if name in names}
    first = 8 * (wanted["byte"] - memory.prefix_bytes)
    low, high = (first + wanted["bit"],) * 2 if "bit" in wanted else (first, first + 7)
    used = min(memory.bits, memory.natural_bits)
    parts = []
    for offset in range(low // memory.bits, high // memory.bits + 1):
        if offset >= int(memory.allotted):
            break
        part = _contents(layout, m, wanted, {**others, names.index("offset"): offset}, most)
        if part.count and max(low, offset * memory.bits) >= offset * memory.bits + used:
            why = problems.ELEMENT_REST(memory.natural_bits, memory.bits, offset)
            part = Contents(shown(layout), wanted, "padding", reason=why)
        parts.append(part)
    return parts


def _sharing(held: list[Contents], m: IndexMap, subject: str, wanted: dict[str, int], most: int) -> Contents:
    """The elements at several offsets of one byte. Raises BudgetExceeded where replicas hide how many these are."""
    places = sum(part.places for part in held)
    if m.replicas.extents and places > sum(len(part.elements) for part in held):
        raise BudgetExceeded(problems.BYTE_SHARED_IN_REPLICAS(most))
    elements = sorted((each for part in held for each in part.elements), key=lambda each: (each.index, each.replica))
    count = len({each.index for each in elements}) if m.replicas.extents else sum(part.count for part in held)
    what: What = "elements" if count > 1 else "element"
    collide = next((part.reason for part in held if part.count > 1), "")
    return Contents(subject, wanted, what, tuple(elements[:most]), count, places, (), collide or problems.BYTE_SHARED())


def _contents(layout: object, m: IndexMap, asked: dict[str, int], wanted: Mapping[int, int], most: int) -> Contents:
    subject = shown(layout)
    found = preimage(m, wanted, most)
    names = names_of(m)
    if found.pairs:
        held = tuple([Held(x, replica, dict(zip(names, m.at(x, replica), strict=True))) for x, replica in found.rows])
        whole = len(wanted) == len(names)
        reason = problems.PLACE_SHARED() if whole and found.elements > 1 else ""
        what: What = "elements" if found.elements > 1 else "element"
        return Contents(subject, asked, what, held, found.elements, found.pairs, (), reason)
    bounds = dict(enumerate(m.range.extents))
    if m.memory is not None and m.range.names == ("offset",):
        bounds[0] = m.memory.allotted
    for number, value in wanted.items():
        if number in bounds and not 0 <= value < int(bounds[number]):
            why = (
                problems.COORDINATE_RANGE(names[number], int(bounds[number]) - 1)
                if bounds[number]
                else problems.COORDINATE_EMPTY()
            )
            return Contents(subject, asked, "outside", reason=why)
    padded, reason = _padding(layout, m, wanted)
    if padded is None:
        return Contents(subject, asked, "hole", reason=problems.COORDINATES_OF_NOTHING())
    return Contents(subject, asked, "padding", dimensions=padded, reason=reason)


def _padding(layout: object, m: IndexMap, wanted: Mapping[int, int]) -> tuple[tuple[str, ...] | None, str]:
    """The dimensions whose rounding up made a place without an element, and why; None where it is no padding."""
    memory = m.memory
    if memory is not None and m.range.names == ("offset",) and wanted[0] >= int(m.range.count()):
        return (), problems.PADDING_OF_TAIL(memory.allotted)
    groups = _groups(m)
    if not groups:
        return None, ""
    # a tile of more dimensions than the array pads what is no dimension of it
    groups = [group for group in groups if group[0]]
    extents: list[Any] = list(m.domain.extents)
    for dimensions, _, room in groups:
        first, *others = dimensions
        extents[first] = -(-int(room) // max(1, prod(int(extents[k]) for k in others)))
    rounded = IndexMap(Space(m.domain.names, tuple(extents)), m.range, m.place, m.replicas)
    try:
        rows = preimage(rounded, wanted, 1).rows
    except Undecided:
        if memory is None:
            raise
        rows = ()
    if rows:
        index = rows[0][0]
        given: Any = m.domain.extents
        beyond = [group for group in groups if index[group[0][0]] >= given[group[0][0]]]
        names = tuple([m.domain.names[k] for dimensions, _, _ in beyond for k in dimensions])
        rounded_up = [_rounded_up(m, group) for group in beyond]
        return names, restated(" and ".join(rounded_up), rounded_up[0]) if rounded_up else ""
    if memory is not None:
        return (), problems.PADDING_WITHIN_TILES()
    return _in_shard(layout, m, wanted)


def _rounded_up(m: IndexMap, group: tuple[tuple[int, ...], int, int]) -> str:
    dimensions, extent, room = group
    names = ", ".join([m.domain.names[k] for k in dimensions])
    these = f"dimension {names}" if len(dimensions) == 1 else f"dimensions {names} together"
    return problems.PADDING_OF_DIMENSIONS(these, extent, "is" if len(dimensions) == 1 else "are", room)


def _in_shard(layout: object, m: IndexMap, wanted: Mapping[int, int]) -> tuple[tuple[str, ...] | None, str]:
    """Padding of what one device allots, where the layout of a shard is known."""
    one = _shard(layout, m)
    if one is None or set(wanted) != {0, 1} or not preimage(m, {0: wanted[0]}, 0).pairs:
        return None, ""
    inner = Inverse(one).at(offset=wanted[1], most=0)
    return (inner.dimensions, problems.PADDING_IN_SHARD(inner.reason)) if inner.what == "padding" else (None, "")


def _groups(m: IndexMap) -> list[tuple[tuple[int, ...], int, int]]:
    """(dimensions, extent, rounded up to) of each group of dimensions padded together, where they are."""
    if m.memory is not None:
        return [(dims, int(extent), int(room)) for dims, extent, room in m.memory.padded()]
    shards: Any = getattr(m.place, "shards", None)
    extents: Any = m.domain.extents
    if shards is not None:
        return [((k,), extents[k], n * c) for k, (n, c) in enumerate(zip(shards.tiles, shards.shard, strict=True))]
    try:
        roots, _ = placed(m, DIGITS)
    except Undecided:
        return []
    found: list[tuple[tuple[int, ...], int, int]] = []
    for root in roots:
        room = prod(leaf.extent for leaf in root.leaves())
        if root.dimension < len(extents) and room > root.extent:
            found.append(((root.dimension,), root.extent, room))
    return found
