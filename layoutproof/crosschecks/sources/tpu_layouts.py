"""The TPU compiler, ahead of time: the layouts that it gives to arrays, or takes from who asks, and their bytes.

Of each array: its default layout as a parameter on every generation; then compiled programs, for one generation in turn
(for all where the cases are few), say the layout of a parameter whose order is asked for, of the result, of a parameter
whose tiles are asked for too, and how many bytes they take together. Tiles that are asked for may be refused, or others
taken (T(1) becomes T(1)L(1024)); then no rule of ours is asked but how many bytes that takes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from layoutproof.compiler import libtpu
from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import LayoutError
from layoutproof.crosschecks.asking import BatchedProgram, Failed, of_programs
from layoutproof.crosschecks.case import Case
from layoutproof.crosschecks.source import Agree, Disagree, Outcome, Skipped
from layoutproof.crosschecks.tpu_cases import arrays as random_cases
from layoutproof.crosschecks.turns import Turn, turns
from layoutproof.hardware.tpu import DefaultLayout, default_layout, layout_in_order
from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.layouts.xla.shape import XlaLayout
from layoutproof.layouts.xla.sizes import array_size
from layoutproof.layouts.xla.text import parse

SMALLER = False
__all__ = ["SMALLER", "compare", "missing", "random_cases", "version"]

FEW = 16
"""Up to so many cases are compiled for every generation."""
TOGETHER = 32
"""Parameters of one program."""
MOST_BYTES = 1 << 26
"""Of one array, so that all of one program fit into the memory of the smallest chip."""


@dataclass(frozen=True, slots=True)
class _Array:
    """One parameter. text: with the layout that we say it has.  result: the text of the result, "" = none is asked."""

    generation: str
    layout: XlaLayout
    ours: DefaultLayout
    tiled: bool
    text: str
    result: str


def version() -> str:
    """The compiler's."""
    return libtpu.version()


def missing() -> str:
    """The missing packages for it."""
    return libtpu.missing()


def compare(cases: Sequence[Case]) -> Iterator[Outcome]:
    """Default layouts, orders and tiles that are asked for, and bytes."""
    for part in turns(cases, FEW, TOGETHER):
        yield from _compare(part)


def _compare(part: Sequence[Turn]) -> Iterator[Outcome]:
    cases = [case for case, _ in part]
    why = [_out_of_reach(case) for case in cases]
    asked = [k for k, reason in enumerate(why) if not reason]
    wrong: dict[int, Disagree] = {}
    failed: dict[int, str] = {}
    compared = dict.fromkeys(asked, 0)
    questions = [(k, name) for k in asked for name in CHIPS]
    request = [(name, cases[k].parsed.element_type, list(cases[k].parsed.dims)) for k, name in questions]
    programs = [
        BatchedProgram(tuple(zip(questions, request, strict=True)), lambda some: ["defaults", [q for _, q in some]])
    ]
    (defaults,) = of_programs(programs, lambda _, said: said) if questions else ([],)
    for (k, name), said in zip(questions, defaults, strict=True):
        _hold(k, f"default layout on {name}", _default(cases[k].parsed, name), said, wrong, failed, compared)
    for tiled in (False, True):
        arrays = []
        for name in CHIPS:
            mine = [k for k in asked if name in part[k][1]]
            some = [(k, array) for k in mine if (array := _array(cases[k].parsed, name, tiled)) is not None]
            arrays += [some[at : at + TOGETHER] for at in range(0, len(some), TOGETHER)]
        found = of_programs([BatchedProgram(some, _request) for some in arrays], _unpack)
        for (k, array), said in zip(itertools.chain(*arrays), itertools.chain(*found), strict=True):
            what = "tiles asked for" if tiled else "order asked for"
            theirs = array.text if isinstance(said, Failed) or not tiled else said[0]
            ours = (theirs, array.result, _bytes(theirs))
            _hold(k, f"{what} on {array.generation}", ours, said, wrong, failed, compared)
    for k, reason in enumerate(why):
        if reason:
            yield Skipped(reason)
        elif k in wrong:
            yield wrong[k]
        elif k in failed and not compared[k]:
            yield Skipped(failed[k])
        else:
            yield Agree(compared[k], failed.get(k, ""))


def _hold(
    k: int,
    what: str,
    ours: object,
    said: object,
    wrong: dict[int, Disagree],
    failed: dict[int, str],
    compared: dict[int, int],
) -> None:
    if isinstance(said, Failed) and (said.aborted or what.startswith("tiles")):
        failed.setdefault(k, str(said))
    elif ours == said:
        compared[k] += 3 if isinstance(ours, tuple) else 1
    else:
        wrong.setdefault(k, Disagree(what, _words(ours), _words(said)))


def _words(value: object) -> str:
    if isinstance(value, tuple):
        text, result, count = value
        return f"{text}{f' -> {result}' if result else ''}, {count} bytes"
    return "refused" if value is None else str(value)


def _out_of_reach(case: Case) -> str:
    layout = case.parsed
    if not isinstance(layout, XlaLayout):
        return "no array in XLA's language"
    if any(type(extent) is not int for extent in layout.dims) or any(layout.dynamic):
        return "its sizes are not numbers"
    if prod(extent or 1 for extent in layout.dims) * max(8, ELEMENT_BITS[layout.element_type]) > 8 * MOST_BYTES:
        return "an array too large for a program with many"
    return ""


def _default(layout: XlaLayout, generation: str) -> str | None:
    try:
        return str(default_layout(layout.dims, ELEMENT_BITS[layout.element_type], generation))  # type: ignore[arg-type]
    except LayoutError:
        return None


def _array(layout: XlaLayout, generation: str, tiled: bool) -> _Array | None:
    """The parameter that is asked about; None where there is nothing to ask."""
    bits = ELEMENT_BITS[layout.element_type]
    dims: Any = layout.dims
    if bits == 1:
        # JAX makes truth values of them before the compiler sees them
        return None
    try:
        ours = layout_in_order(dims, bits, generation, layout.minor_to_major)
        result = default_layout(dims, bits, generation)
    except LayoutError:
        return None
    if tiled:
        plain = not (layout.splits or layout.memory_space or layout.metadata_bytes or layout.tail_alignment != 1)
        # JAX wants E(n) of packed types only
        packed = bits if bits < 8 and CHIPS[generation].sub_byte else 0
        if not layout.tiles or not plain or layout.element_bits != packed or packed != ours.element_bits:
            return None
        if any(type(n) is not int or n < 1 for tile in layout.tiles for n in tile):
            return None
        tiles: Any = layout.tiles
        ours = DefaultLayout(layout.minor_to_major, tiles, packed)
    shape = f"{layout.element_type}[{','.join(map(str, dims))}]"
    text = f"{shape}{ours}"
    if _bytes(text) > MOST_BYTES:
        return None
    return _Array(generation, layout, ours, tiled, text, "" if tiled else f"{shape}{result}")


def _bytes(text: str) -> int:
    size: Any = array_size(parse(text, "xla"))  # type: ignore[arg-type]
    return int(size)


def _request(some: Sequence[tuple[int, _Array]]) -> list[object]:
    generation, tiled = some[0][1].generation, some[0][1].tiled
    rows: list[list[Any]] = []
    for _, array in some:
        row: list[Any] = [array.layout.element_type, list(array.layout.dims), list(array.ours.minor_to_major)]
        rows.append([*row, array.ours.tiles if tiled else (), array.ours.element_bits])
    return ["unused" if tiled else "returned", generation, rows]


def _unpack(some: Sequence[tuple[int, _Array]], said: Any) -> list[tuple[str, str, int]] | None:
    """(layout, result, bytes) of each; None where only the sum of all bytes is known, and it is not ours.

    Ours are the bytes of the layout that the compiler says it took: of some tiles that are asked for it takes others.
    """
    inside = said["in"]
    outside = said["out"] if not some[0][1].tiled else [""] * len(some)
    if len(inside) != len(some) or len(outside) != len(some):
        return None
    each = [_bytes(text) for text in inside] if len(some) > 1 else [said["bytes"]]
    return list(zip(inside, outside, each, strict=True)) if sum(each) == said["bytes"] else None
