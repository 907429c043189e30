"""The SPMD partitioner's warning that it gathers a whole array to go from one sharding to another, in bytes.

What each device must receive at least is what it holds after and did not hold before; what a full rematerialisation
sends it is the whole array but its own part. Source of the warning: openxla/xla, xla/service/spmd/spmd_partitioner.cc.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import lcm, prod

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.hlo.reshards import between
from layoutproof.layouts import sharding
from layoutproof.messages import problems
from layoutproof.messages.arrays import operation
from layoutproof.messages.explanation import Explanation, human
from layoutproof.messages.pasted import PastedLine, search
from layoutproof.registry.read import map_of

_SHARDING = r"\{(?:[^{}]|\{[^{}]*+\})*+\}"
_WARNING = re.compile(
    rf"Involuntary full rematerialization\. The compile[rd] (?:was not able to|cannot) go from sharding ({_SHARDING}) "
    rf"to ({_SHARDING}) (?:without doing|efficiently)"
)
_OPERATION = re.compile(r"HLO operation: (%?[\w.\-]+) = (\w+\[[\d,]*\](?:\{[^{}]*+\})?) ([\w\-]+)\(")
SOURCE = "openxla/xla, xla/service/spmd/spmd_partitioner.cc"


def read(lines: Sequence[PastedLine], target: str | None) -> Iterator[Explanation]:
    """The warnings in a text, each pair of shardings and shape once, with how often it came.

    lines: of the text.  target: not looked at.
    """
    found: dict[tuple[str, str, str], tuple[PastedLine, int]] = {}
    for at, line in enumerate(lines):
        if match := search(_WARNING, lines, at):
            shape = of[2] if (of := _OPERATION.search(line.text)) else ""
            first, count = found.get((match[1], match[2], shape), (line, 0))
            found[match[1], match[2], shape] = (first, count + 1)
    for (before, after, shape), (line, count) in found.items():
        yield _explained(line, before, after, shape, count)


def _explained(line: PastedLine, before: str, after: str, shape: str, count: int) -> Explanation:
    text = line.text
    cause = f"no collective of the partitioner's goes from {before} to {after}, so each device gathers the whole array"
    notes = [f"it is printed {count} times"] * (count > 1)
    of, (name, source) = _OPERATION.search(text), operation(text)
    if of:
        notes.append(f"at {of[1]}, a {of[3]} of {of[2]}")
    if name:
        notes.append(f"op_name {name}")
    if source:
        notes.append(f"at {source}")
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
        found, bits = between(one, two), ELEMENT_BITS[shape.split("[")[0]]
        full, least = -(-found.full * bits // 8), -(-found.least * bits // 8)
        return f"a device receives {full} bytes ({human(full)}), and {least} ({human(least)}) would do"
    read = [sharding.parse(each) for each in (before, after)]
    if any(getattr(each, "tiles", None) is None for each in read):
        raise LayoutError(problems.NO_SHAPE())
    cuts = [each.tiles.dims[: len(each.tiles.dims) - len(each.subgroups)] for each in read]  # type: ignore[union-attr]
    if len(cuts[0]) != len(cuts[1]):
        raise LayoutError(problems.RESHAPE_BETWEEN(len(cuts[0]), len(cuts[1])))
    dims = [lcm(a, b) for a, b in zip(*cuts, strict=True)]
    one, two = (map_of(sharding.read(f"s8[{','.join(map(str, dims))}] sharded {each}")) for each in (before, after))
    found, whole = between(one, two), prod(dims)
    part, enough = Fraction(found.full, whole), Fraction(found.least, whole)
    return f"a device receives {part} of the array, and {enough} of it would do, where every dimension divides evenly"
