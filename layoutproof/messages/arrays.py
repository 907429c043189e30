"""One array of a message: its bytes computed anew, which dimension is padded, what would take fewer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.hlo.fixes import DEFAULT_TARGET, fix
from layoutproof.hlo.shapes import read_array
from layoutproof.layouts.xla import XlaLayout
from layoutproof.messages.explanation import MessageArray, human
from layoutproof.messages.sizes_text import printed_as, size_of
from layoutproof.questions.ask import ask
from layoutproof.questions.cheapest import with_order

MOST_ARRAYS = 8
"""Shapes of a report that are explained; the largest come first."""
WORTH = Fraction(5, 4)
"""Padded to this many times its elements or more, an array is worth advice."""
T = TypeVar("T")


def array(
    shape: str,
    printed: str = "",
    target: str | None = None,
    *,
    made_by: str = "",
    kind: str = "",
    count: int = 1,
    tiled: bool = True,
) -> MessageArray:
    """One array as it is explained.

    shape: as the message writes it.  printed: its size there.  target: the generation that fixes are for.  tiled:
    whether an array that prints no tile may have one, as those of TPUs have.

    >>> found = array("s32[8388608,8,4]{2,1,0:T(8,128)}", "32.00G")
    >>> found.size, found.agrees, found.padded
    (34359738368, True, ('dimension 2 is padded from 4 to 128',))
    >>> found.fixes[0]
    'with dimension 0 last, s32[8,4,8388608]: 1.00G'
    """
    plain = MessageArray(shape, printed, made_by=made_by, kind=kind, count=count)
    try:
        read = read_array(shape)
    except LayoutError as error:
        return replace(plain, note=f"its size is not computed: {error.problem}")
    if read.layout is None:
        return replace(plain, note=f"its size is not computed: {read.unknown or 'no array'}")
    layout, note = read.layout, ""
    if tiled and not layout.tiles and layout.dims and printed and not printed_as(read.padded, printed):
        guess = _tiled(layout, printed)
        if guess is not None:
            layout, note = guess, f"no tile is printed; with {guess} the size is the printed one"
            read = read_array(str(guess))
    if layout.element_bits > ELEMENT_BITS[layout.element_type]:
        note = f"each element takes {layout.element_bits} bits, E({layout.element_bits})"
    agrees = None
    if printed:
        agrees = printed_as(read.padded, printed)
        if not agrees and tiled and not layout.tiles:
            # which tile the compiler took is not in the text
            note, agrees = "no tile is printed, and none that the TPU compiler takes gives the printed size", None
    return replace(
        plain,
        shape=str(layout),
        size=read.padded,
        unpadded=read.unpadded,
        agrees=agrees,
        padded=_padded(layout),
        fixes=_fixes(layout, target or DEFAULT_TARGET) if read.padded >= WORTH * read.unpadded else (),
        note=note,
    )


_NAME = re.compile(r'op_name="([^"]*)"?')
_WHERE = re.compile(r'source_file="([^"]*)" source_line=(\d+)')
_COPY = re.compile(r"= (?:\S+ )?copy\((\w+\[[^\[\]]*+\](?:\{[^{}]*+\})?)")


def operation(metadata: str) -> tuple[str, str]:
    """The `op_name` of an operation's metadata and its source as file:line; "" for what is not there."""
    name, where = _NAME.search(metadata), _WHERE.search(metadata)
    return name[1] if name else "", f"{where[1]}:{where[2]}" if where else ""


def largest(entries: Iterable[tuple[str, str, T]]) -> tuple[list[tuple[str, str, list[T]]], int]:
    """What a report lists, by shape and printed size, the largest sum first; and how many shapes were cut off.

    entries: (shape, size as it is printed, the entry) of each.

    >>> largest([("f32[8]", "32B", 0), ("f32[9]", "36B", 1), ("f32[8]", "32B", 2)])
    ([('f32[8]', '32B', [0, 2]), ('f32[9]', '36B', [1])], 0)
    """
    groups: dict[tuple[str, str], list[T]] = {}
    for shape, printed, entry in entries:
        groups.setdefault((shape, printed), []).append(entry)
    ordered = sorted(groups.items(), key=lambda item: -size_of(item[0][1]) * len(item[1]))
    found = [(shape, printed, same) for (shape, printed), same in ordered[:MOST_ARRAYS]]
    return found, max(0, len(ordered) - MOST_ARRAYS)


def made_by(operator: str, label: str) -> str:
    """The operation that makes an array: its name and source line, from the fields `Operator` and `XLA label`."""
    name, where = operation(operator)
    by = [shorten(name, 120)] if name else []
    by += [where] if where else []
    by += [shorten(label.split(", metadata=")[0], 120)] if label and not name else []
    if copied := _COPY.search(label):
        by.append(f"a copy of {copied[1]}: the compiler turns it for the operation that comes next")
    return "; ".join(by)


def _tiled(layout: XlaLayout, printed: str) -> XlaLayout | None:
    """The layout with a tile of a TPU's that gives the printed size: old compilers print none."""
    if len(layout.dims) < 2:
        return None
    for name in CHIPS:
        try:
            found = with_order(layout, layout.minor_to_major, name)
        except LayoutError:
            continue
        if printed_as(read_array(str(found)).padded, printed):
            return found
    return None


def _padded(layout: XlaLayout) -> tuple[str, ...]:
    """Each dimension that grows."""
    figures = ask("padding", layout).figures
    said = []
    for entry in figures.get("per_dimension", ()):
        if entry["extent"] != entry["padded"] and entry["dimensions"]:
            which = " and ".join(str(d) for d in entry["dimensions"])
            many = "dimensions" if len(entry["dimensions"]) > 1 else "dimension"
            said.append(f"{many} {which} is padded from {entry['extent']} to {entry['padded']}")
    return tuple(said)


def _fixes(layout: XlaLayout, target: str) -> tuple[str, ...]:
    """What takes fewer bytes and can be written in a program: another order of dimensions, merged dimensions."""
    found = fix(layout, target)
    if found is None:
        return ()
    ways = []
    if found.layout:
        better = read_array(found.layout).layout
        assert better is not None
        order = tuple(reversed(better.minor_to_major))
        turned = f"{layout.element_type}[{','.join(str(layout.dims[d]) for d in order)}]"
        same = order == tuple(range(len(order)))
        how = f"as {found.layout}" if same else f"with dimension {order[-1]} last, {turned}"
        ways.append(f"{how}: {human(found.layout_bytes)}")
    if found.merged:
        ways.append(f"reshaped to {found.merged.split('{')[0]}: {human(found.merged_bytes)}")
    return tuple(ways)
