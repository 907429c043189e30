"""The SPMD partitioner's warning that it gathers a whole array to go from one sharding to another, in bytes.

What each device must receive at least is what it holds after and did not hold before; what a full rematerialisation
sends it is the whole array but its own part. Source of the warning: openxla/xla, xla/service/spmd/spmd_partitioner.cc.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm, prod
from typing import Any

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.index_map import IndexMap
from layoutproof.core.numbers import INTS
from layoutproof.layouts import sharding
from layoutproof.layouts.sharding.place import Shards
from layoutproof.messages.explanation import Explanation, human
from layoutproof.messages.pasted import Line, search
from layoutproof.registry.read import map_of

_WARNING = re.compile(
    r"Involuntary full rematerialization\. The compile[rd] (?:was not able to|cannot) go from sharding (\{.*?\}) to "
    r"(\{.*?\}) (?:without doing|efficiently)"
)
_OPERATION = re.compile(r"HLO operation: (%?[\w.\-]+) = (\w+\[[\d,]*\](?:\{[^}]*\})?) ([\w\-]+)\(")
_SOURCE = re.compile(r'source_file="([^"]*)" source_line=(\d+)')
_NAME = re.compile(r'op_name="([^"]*)"')
SOURCE = "openxla/xla, xla/service/spmd/spmd_partitioner.cc"

MOST_DEVICES = 1 << 14
"""Devices of a warning whose parts are compared."""


def read(lines: Sequence[Line], target: str | None) -> Iterator[Explanation]:
    """The warnings in a text, each pair of shardings and shape once, with how often it came.

    lines: of the text.  target: not looked at.
    """
    found: dict[tuple[str, str, str], tuple[Line, int]] = {}
    for at, line in enumerate(lines):
        if match := search(_WARNING, lines, at):
            shape = operation[2] if (operation := _OPERATION.search(line.text)) else ""
            first, count = found.get((match[1], match[2], shape), (line, 0))
            found[match[1], match[2], shape] = (first, count + 1)
    for (before, after, shape), (line, count) in found.items():
        yield _explained(line, before, after, shape, count)


@dataclass(frozen=True, slots=True)
class Moved:
    """What a device receives, the most over all devices, in elements: at least, and by a full rematerialisation."""

    least: int
    full: int
    devices: int


def moved(before: IndexMap, after: IndexMap) -> Moved:
    """What each device receives from the others at least to go from one sharding of an array to another.

    A device that one of them leaves out holds nothing there. Raises LayoutError for no shardings of known extents.

    >>> from layoutproof.registry.read import read_layout
    >>> one = read_layout("f32[16,16,16] sharded {devices=[2,1,4]<=[4,2]T(1,0)}").index_map()
    >>> two = read_layout("f32[16,16,16] sharded {devices=[1,8,1]<=[8]}").index_map()
    >>> moved(one, two)
    Moved(least=448, full=3584, devices=8)
    """
    held, wanted = _boxes(_shards(before)), _boxes(_shards(after))
    whole = prod(int(n) for n in _shards(before).extents if isinstance(n, int))
    nothing = tuple((0, 0) for _ in _shards(before).extents)
    devices = set(held) | set(wanted)
    least = max(_volume(box) - _volume(_common(box, held.get(device, nothing))) for device, box in wanted.items())
    return Moved(least, max(whole - _volume(held.get(device, nothing)) for device in devices), len(devices))


Box = tuple[tuple[int, int], ...]


def _shards(m: IndexMap) -> Shards:
    shards = getattr(m.place, "shards", None)
    if not isinstance(shards, Shards) or any(type(n) is not int for n in shards.extents):
        raise LayoutError("no sharding of an array of known extents")
    return shards


def _boxes(shards: Shards) -> dict[int, Box]:
    """What each device holds: from and to, for every dimension."""
    if prod(shards.tiles) * prod(count for _, count in shards.replicas) > MOST_DEVICES:
        raise LayoutError(f"more than {MOST_DEVICES} devices")
    found = {}
    for numbers in itertools.product(*[range(count) for count in shards.tiles]):
        cuts: Any = zip(numbers, shards.extents, shards.shard, strict=True)
        box = tuple((min(t * c, d), min((t + 1) * c, d)) for t, d, c in cuts)
        for replica in itertools.product(*[range(count) for _, count in shards.replicas]):
            found[shards.device((*numbers, *replica), INTS)] = box
    return found


def _common(one: Box, two: Box) -> Box:
    return tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, two, strict=True))


def _volume(box: Box) -> int:
    return prod(max(0, end - start) for start, end in box)


def _explained(line: Line, before: str, after: str, shape: str, count: int) -> Explanation:
    text = line.text
    cause = f"no collective of the partitioner's goes from {before} to {after}, so each device gathers the whole array"
    notes = [f"it is printed {count} times"] * (count > 1)
    operation, source, name = _OPERATION.search(text), _SOURCE.search(text), _NAME.search(text)
    if operation:
        notes.append(f"at {operation[1]}, a {operation[3]} of {operation[2]}")
    if name:
        notes.append(f"op_name {name[1]}")
    if source:
        notes.append(f"at {source[1]}:{source[2]}")
    try:
        notes.append(_amount(before, after, shape))
    except LayoutError as error:
        notes.append(f"bytes are not computed: {error.problem}")
    notes.append("a jax.lax.with_sharding_constraint in between often avoids it; which one is not computed here")
    return Explanation(
        "involuntary full rematerialization", line.number, shorten(text.strip(), 160), cause, "", (), (),
        tuple(notes), SOURCE,
    )  # fmt: skip


def _amount(before: str, after: str, shape: str) -> str:
    """How much is sent and how much would do, in bytes where the shape is known, else in parts of the array."""
    if shape:
        one, two = (map_of(sharding.read(f"{shape.split('{')[0]} sharded {each}")) for each in (before, after))
        found, bits = moved(one, two), ELEMENT_BITS[shape.split("[")[0]]
        full, least = -(-found.full * bits // 8), -(-found.least * bits // 8)
        return f"a device receives {full} bytes ({human(full)}), and {least} ({human(least)}) would do"
    read = [sharding.parse(each) for each in (before, after)]
    if any(getattr(each, "tiles", None) is None for each in read):
        raise LayoutError("the text names no shape")
    cuts = [each.tiles.dims[: len(each.tiles.dims) - len(each.subgroups)] for each in read]  # type: ignore[union-attr]
    if len(cuts[0]) != len(cuts[1]):
        raise LayoutError(
            f"one sharding is of {len(cuts[0])} dimensions and one of {len(cuts[1])}: a reshape is between"
        )
    dims = [lcm(a, b) for a, b in zip(*cuts, strict=True)]
    one, two = (map_of(sharding.read(f"s8[{','.join(map(str, dims))}] sharded {each}")) for each in (before, after))
    found, whole = moved(one, two), prod(dims)
    part, enough = Fraction(found.full, whole), Fraction(found.least, whole)
    return f"a device receives {part} of the array, and {enough} of it would do, where every dimension divides evenly"
