"""Maps that users write themselves: `(i, j) -> (i // 8, j // 128)` with a shape, or a Python callable.

Mapping form: `{"map": {"index": "(i, j) -> (i // 8, j // 128)", "shape": [256, 512], "range": [32, 4]}}`.
Text form, with the shape in it: `(i < 256, j < 512) -> (i // 8, j // 128) in [32, 4]`.
Extents may be size symbols, also in the range. A name that something is divided by, `i // t`, is a size too, so that a
tile may have any size. Without a range nothing bounds the places, and in_bounds and covers have no question to answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from layoutproof.core import problems
from layoutproof.core.bounds import check_box
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.expression import parse_map, parse_size
from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.shown import Shown
from layoutproof.core.size import Extent, surely_less, symbols_of
from layoutproof.core.space import Space, axis_names
from layoutproof.core.term import Term, check_kind, reads, trace
from layoutproof.kernel.kernel_parts import parts_of

_BAD_KEY = Template("map.key", "a map has index, shape and optionally range; got {value}")
_BAD_FORM = Template("map.form", "a map is a text such as (i < 8, j < 16) -> (j, i), not {value!r}")
_BAD_NO_EXTENTS = Template(
    "map.no_extents", "a map needs an extent for each dimension: (i < 256, j < 512) -> (i // 8, j // 128)"
)
_BAD_NO_EXTENT = Template("map.no_extent", "{bound!r} has no extent; write for instance {bound} < 256")
_BAD_INDEX_RANK = Template("map.index_rank", "the map takes {names} indices ({shown}) but shape has {extents} extents")
_BAD_RANGE_RANK = Template("map.range_rank", "the map gives {terms} coordinates but range has {bounds} extents")
_BAD_READS_TABLE = Template(
    "map.reads_table", "{term} reads a table, which only the index maps of a kernel's operands do"
)
_BAD_UNKNOWN_NAME = Template(
    "map.unknown_name", "the map uses {name!r}, which is no index, no size in shape or range, and divides nothing"
)
_BAD_EXTENTS_FORM = Template("map.extents_form", "{name} is a list of extents such as [256, 512], not {values}")
_BAD_EXTENT_TYPE = Template("map.extent_type", "an extent is an integer or a size expression, not {value!r}")

_BOUNDED = re.compile(r"\s*\((?P<bounds>[^()<]*<[^()]*)\)\s*->(?P<body>.*)", re.DOTALL)
_BOUND = re.compile(r"<[^,()]*")


@dataclass(frozen=True, slots=True, eq=False)
class MapLayout(Shown):
    """A user's index map: dimension names, one extent each, one term per coordinate, and the range if given."""

    names: tuple[str, ...]
    extents: tuple[Extent, ...]
    terms: tuple[Term, ...]
    range_extents: tuple[Extent, ...] | None = None

    def __str__(self) -> str:
        bounds = ", ".join(f"{n} < {e}" for n, e in zip(self.names, self.extents, strict=True))
        text = f"({bounds}) -> ({', '.join(map(str, self.terms))})"
        return text if self.range_extents is None else f"{text} in [{', '.join(map(str, self.range_extents))}]"

    def index_map(self) -> IndexMap:
        """The map whose `place` is the terms, evaluated on any kind of number."""
        names, terms = self.names, self.terms

        def place(index: Index, replica: Index, on: Numbers) -> Index:
            values = dict(zip(names, index, strict=True))
            return tuple(term.evaluate(values, on) for term in terms)

        bounds = self.range_extents
        box = Space() if bounds is None else Space(axis_names(len(bounds)), bounds)
        sizes = tuple(dict.fromkeys(n for term in terms for n in term.names() if n not in names))
        return IndexMap(Space(names, self.extents), box, place, symbols=sizes)


def looks_like(text: str) -> bool:
    """Whether a text without a language name is meant as a user's map.

    Args:
        text: A layout without the name of a language.

    Returns:
        True where this language claims the text.
    """
    return "->" in text


def read(value: object, mode: str = "strict") -> MapLayout:
    """A map from its text or mapping form.

    Args:
        value: Text with an extent per dimension, or a mapping with index, shape and optionally range.
        mode: "strict" or "xla"; this language has one mode.

    Returns:
        The layout: frozen data; its `str` is its text.

    Raises:
        LayoutError: As for `index_map`; of a text with the column.

    >>> str(read("(i < 256, j < 512) -> (i // 8, j // 128)"))
    '(i < 256, j < 512) -> (i // 8, j // 128)'
    """
    if isinstance(value, dict):
        unknown = set(value) - {"index", "shape", "range"}
        if unknown or not {"index", "shape"} <= set(value):
            raise LayoutError(_BAD_KEY(", ".join(map(str, value))))
        return index_map(value["index"], value["shape"], value.get("range"))
    if not isinstance(value, str):
        raise LayoutError(_BAD_FORM(value))
    text, inside, range_text = value.rpartition(" in [")
    if not inside:
        text, range_text = value, ""
    found = _BOUNDED.fullmatch(text)
    if found is None:
        raise LayoutError(_BAD_NO_EXTENTS(), text=value)
    names, shape = [], []
    for bound in found["bounds"].split(","):
        name, less, extent = bound.partition("<")
        if not less:
            raise LayoutError(_BAD_NO_EXTENT(bound.strip()), text=value)
        names.append(name.strip())
        shape.append(extent.strip())
    bounds = parts_of(f"[{range_text.rstrip().removesuffix(']')}]") if inside else None
    # blanks for the extents: columns in messages stay those of the text that the user wrote
    bare = _BOUND.sub(lambda bound: " " * len(bound[0]), text[: found.start("body")]) + found["body"]
    try:
        return index_map(bare, shape, bounds)
    except LayoutError as error:
        if error.text not in ("", bare):
            raise
        raise LayoutError(error.problem, text=value, column=error.column) from None


def index_map(
    index: str | Callable[..., object], shape: Sequence[object], range: Sequence[object] | None = None
) -> MapLayout:
    """A layout from a formula, or from a Python function of one parameter per dimension.

    Args:
        index: Text such as "(i, j) -> (i // 8, j % 128)", or a callable that takes the index and returns the
            coordinates. The callable is traced once; it uses `+ - * // %` and `select`, `less`, `equal`, `minimum`,
            `maximum`.
        shape: One extent per dimension, in elements: an int >= 0, or text with size symbols.
        range: One extent per coordinate, or None where nothing bounds the places.

    Returns:
        The layout; its `str` is the formula.

    Raises:
        LayoutError: The callable compares or branches on an index, or the numbers of dimensions disagree.

    >>> str(index_map(lambda i, j: (i // 8, j % 128), shape=[256, "N"]))
    '(i < 256, j < N) -> (i // 8, j % 128)'
    """
    names, terms = parse_map(index) if isinstance(index, str) else trace(index)
    extents = _extents("shape", shape)
    bounds = None if range is None else _extents("range", range)
    if len(extents) != len(names):
        raise LayoutError(_BAD_INDEX_RANK(len(names), ", ".join(names), len(extents)))
    if bounds is not None and len(bounds) != len(terms):
        raise LayoutError(_BAD_RANGE_RANK(len(terms), len(bounds)))
    known = {*names, *symbols_of((*extents, *(bounds or ())))}
    known.update(name for term in terms for by in term.divisors() for name in by.names())
    for term in terms:
        check_kind(term, condition=False)
        if reads((term,)):
            raise LayoutError(_BAD_READS_TABLE(term))
        for name in term.names():
            if name not in known:
                raise LayoutError(
                    _BAD_UNKNOWN_NAME(name),
                    text=str(term),
                )
    return MapLayout(names, extents, terms, bounds)


def _extents(name: str, values: object) -> tuple[Extent, ...]:
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise LayoutError(_BAD_EXTENTS_FORM(name, shorten(repr(values), 60)))
    extents = tuple(_extent(value) for value in values)
    check_box(extents, name)
    return extents


def _extent(value: object) -> Extent:
    if type(value) is int:
        extent: Any = value
    elif isinstance(value, str):
        extent = parse_size(value)
    else:
        raise LayoutError(_BAD_EXTENT_TYPE(value))
    if (extent < 0) if type(extent) is int else not surely_less(0, extent):
        raise LayoutError(problems.EXTENT_LEAST(value, 0 if type(extent) is int else 1))
    return extent  # type: ignore[no-any-return]
