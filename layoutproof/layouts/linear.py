"""Triton's linear layouts: where each bit of each input (register, lane, warp, ..) goes, combined by exclusive or.

Mapping form: {"linear": {"in": {"register": [[0, 1], [0, 2]], "lane": [[0, 4], [1, 0]]}, "out": ["dim0", "dim1"]}};
`out` may give sizes, {"dim0": 2, "dim1": 8}. Text form as Triton prints it, its lines also joined by "; ":
`- register=1 -> (0, 1)`, .., `- warp is a size 1 dimension`, `where out dims are: [dim0 (size 2), dim1 (size 8)]`.
The logical index has one entry per input, in the order written; the range is the output dimensions. Without sizes an
output is the smallest power of two that its bases need, as Triton has it.
Source: triton lib/Tools/LinearLayout.cpp (toString, checkInvariants), include/triton/Tools/LinearLayout.h.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from layoutproof.core.cursor import TextSpan
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.shown import Shown
from layoutproof.core.space import Space

_BAD_FORM = Template("linear.form", "a linear layout is a text, or a mapping with in and out; got {shown}")
_BAD_INPUTS = Template("linear.inputs", "in gives each input its bases, {{lane: [[0, 1], [1, 0]]}}, not {inputs}")
_BAD_OUTPUTS_TWICE = Template("linear.outputs_twice", "out names a dimension twice: {outputs}")
_BAD_OUTPUTS = Template("linear.outputs", "out is a list of names, or names with sizes, not {outputs}")
_BAD_BASES = Template("linear.bases", "the bases of {name} are a list such as [[0, 1], [1, 0]], not {bases}")
_BAD_BASIS = Template("linear.basis", "a basis of {name} is a list of integers, one per output; got {basis}")
_BAD_LENGTH = Template("linear.length", "a linear layout may have 100000 characters; this one has {text}")
_BAD_AFTER_OUTPUTS = Template("linear.after_outputs", "nothing may follow the output dimensions")
_BAD_BASIS_ORDER = Template("linear.basis_order", "the basis {found}={value} is missing or out of order")
_BAD_BASIS_FORM = Template("linear.basis_form", "a basis is integers in round brackets, as in (0, 1)")
_BAD_SIZE_NOT_ONE = Template("linear.size_not_one", "{found} has bases, so its size is not 1")
_BAD_OUTPUT_TWICE = Template("linear.output_twice", "{dimension!r} is no new output dimension")
_BAD_LINE = Template(
    "linear.line", "a line is 'lane=1 -> (0, 1)', 'lane is a size 1 dimension' or 'where out dims are: [dim0 (size 8)]'"
)
_BAD_EMPTY = Template("linear.empty", "a linear layout has at least one input and one output dimension")
_BAD_NAME = Template("linear.name", "{name} is no name of a dimension: letters, digits and _")
_BAD_MOST_BASES = Template("linear.most_bases", "{name} has {bases} bases; the most is {most_bits}")
_BAD_BASIS_BOUND = Template("linear.basis_bound", "{said}; bases are 0 .. 2**62 - 1")
_BAD_BASIS_OUTSIDE = Template("linear.basis_outside", "{said}, outside {out} of size {size}")
_BAD_POWER_OF_TWO = Template("linear.power_of_two", "the size of {out} must be a power of two, not {size!r}")

MOST_BITS = 62
"""Bits of one input or output."""

_BASIS = re.compile(r"(?P<name>\w+)\s*=\s*(?P<value>\d{1,20})\s*->\s*\((?P<basis>[^()]*)\)")
_ENTRIES = re.compile(r"\s*-?\d{1,20}\s*(?:,\s*-?\d{1,20}\s*)*+")
_NAME = re.compile(r"\w+")
_LINE = re.compile(r"[;\n]")
_UNIT = re.compile(r"(?P<name>\w+) is a size 1 dimension")
_OUT = re.compile(r"where out dims are:\s*\[(?P<dims>[^\[\]]*)\]")
_DIMENSION = re.compile(r"(?P<name>\w+)(?:\s*\(size (?P<size>\d{1,20})\))?")


@dataclass(frozen=True, slots=True)
class LinearLayout(Shown):
    """inputs: (name, bases), a basis the output coordinates of one input bit, least significant bit first.

    outputs: (name, size), each size a power of two above every base of that output.
    """

    inputs: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]
    outputs: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return _text(self)

    def triton(self) -> str:
        """The text as Triton prints it, one line per basis.

        >>> print(read({"in": {"lane": [[0, 1], [1, 0]], "warp": []}, "out": ["dim0", "dim1"]}).triton())
         - lane=1 -> (0, 1)
           lane=2 -> (1, 0)
         - warp is a size 1 dimension
        where out dims are: [dim0 (size 2), dim1 (size 2)]
        """
        lines = [f" {' ' if k else '-'} {line}" for some in self._inputs() for k, line in enumerate(some)]
        return "\n".join([*lines, self._outputs()])

    def _inputs(self) -> list[list[str]]:
        """The lines of each input, one for each basis."""
        return [
            [f"{name}={1 << k} -> ({', '.join(map(str, basis))})" for k, basis in enumerate(bases)]
            or [f"{name} is a size 1 dimension"]
            for name, bases in self.inputs
        ]

    def _outputs(self) -> str:
        return f"where out dims are: [{', '.join([f'{name} (size {size})' for name, size in self.outputs])}]"

    def index_map(self) -> IndexMap:
        """One index per input -> one coordinate per output."""
        return _index_map(self)


@lru_cache(maxsize=1024)
def _text(layout: LinearLayout) -> str:
    """The text of a layout: every answer about it begins with it, and a line for each bit takes longer than a proof."""
    return "; ".join([line for lines in layout._inputs() for line in lines] + [layout._outputs()])


Step = tuple[int, int, int, int, bool]
"""Input, its first bit, how many bits, their factor, whether some of it is there already (xor)."""


@dataclass(frozen=True, eq=False)
class _BitsPlace:
    """The function of the layout; it is a matrix of bits already, which saves the engine of bits working it out.

    bit_columns: of each output, the contribution of each bit of the index, the least significant bit of the last input
    first, for the box of indices with the extents `bit_box`.
    """

    inputs: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]
    bit_columns: tuple[list[int], ...]
    bit_box: tuple[int, ...]

    @cached_property
    def steps(self) -> tuple[list[Step], ...]:
        """Of each output, the terms that it is combined of. The engine of bits never asks."""
        return tuple([_steps(self.inputs, output) for output in range(len(self.bit_columns))])

    def __call__(self, index: Index, replica: Index, on: Numbers) -> Index:
        return tuple([_combined(index, some, on) for some in self.steps])


@lru_cache(maxsize=1024)
def _index_map(layout: LinearLayout) -> IndexMap:
    outputs = range(len(layout.outputs))
    all_bases = [basis for _, bases in reversed(layout.inputs) for basis in bases]
    place = _BitsPlace(
        layout.inputs,
        tuple([[basis[output] for basis in all_bases] for output in outputs]),
        tuple([1 << len(bases) for _, bases in layout.inputs]),
    )
    domain = Space(tuple([name for name, _ in layout.inputs]), place.bit_box)
    return IndexMap(domain, Space(*zip(*layout.outputs, strict=True)), place)


def _steps(inputs: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...], output: int) -> list[Step]:
    """The terms of one output coordinate, as few as there are: a field of bits that moves as a whole is one term."""
    steps: list[Step] = []
    taken = 0
    for number, (_, bases) in enumerate(inputs):
        column = [basis[output] for basis in bases]
        fields = _fields(column)
        if len(fields) > len(column):
            fields = [(k, 1, base) for k, base in enumerate(column) if base]
        for first, count, factor in fields:
            covered = factor * ((1 << count) - 1) if count > 1 else factor
            steps.append((number, first, count, factor, bool(covered & taken)))
            taken |= covered
    return steps


def _fields(column: list[int]) -> list[tuple[int, int, int]]:
    """(first bit, how many bits, power of two) of fields whose xor is the xor of the column's bases.

    >>> _fields([1 | 8, 2 | 16, 4])
    [(0, 3, 1), (0, 2, 8)]
    """
    fields: list[tuple[int, int, int]] = []
    left = list(column)
    for k in range(len(left)):
        while left[k]:
            bit = left[k] & -left[k]
            count = 0
            while k + count < len(left) and left[k + count] & bit << count:
                left[k + count] ^= bit << count
                count += 1
            fields.append((k, count, bit))
    return fields


def _combined(index: Index, steps: list[Step], on: Numbers) -> Any:
    total: Any = None
    # the quotient of an input above its last field: dividing it again is cheaper, for some engines by far
    above: dict[int, tuple[Any, int]] = {}
    for number, first, count, factor, overlaps in steps:
        value, start = above.get(number, (index[number], 0))
        if first < start:
            value, start = index[number], 0
        if first > start:
            value = value // (1 << first - start)
        above[number] = (value, first)
        field = value % (1 << count)
        if factor != 1:
            field = field * factor
        # a sum of numbers without a common bit is their xor, and every engine can add
        total = field if total is None else on.xor(total, field) if overlaps else total + field
    return 0 if total is None else total


def looks_like(text: str) -> bool:
    """Whether a text without a language name is meant as a linear layout: a basis, or a list of output dimensions.

    Args:
        text: A layout without the name of a language.

    Returns:
        True where this language claims the text.
    """
    return "where out dims are:" in text or _BASIS.match(text.lstrip(" -\n")) is not None


def read(value: object, mode: str = "strict") -> LinearLayout:
    """A linear layout from its text or mapping form.

    Args:
        value: Text, or a mapping with bases.
        mode: "strict" or "xla"; this language has one mode.

    Returns:
        The layout: frozen data; its `str` is its text.

    Raises:
        LayoutError: The bases are such that Triton would abort the process, or the text is none of this language.

    >>> read("register=1 -> (1); register=2 -> (2); lane=1 -> (5)").index_map().at((3, 1))
    (6,)
    """
    if isinstance(value, str):
        return _parse(value)
    if not isinstance(value, Mapping) or set(value) != {"in", "out"}:
        shown = ", ".join(map(str, value)) if isinstance(value, Mapping) else shorten(repr(value), 60)
        raise LayoutError(_BAD_FORM(shown or "nothing"))
    inputs, outputs = value["in"], value["out"]
    if not isinstance(inputs, Mapping) or not inputs:
        raise LayoutError(_BAD_INPUTS(shorten(repr(inputs), 60)))
    if isinstance(outputs, Mapping):
        named = {str(name): size for name, size in outputs.items()}
    elif isinstance(outputs, list | tuple) and all(isinstance(name, str) for name in outputs):
        named = dict.fromkeys(outputs)
        if len(named) < len(outputs):
            raise LayoutError(_BAD_OUTPUTS_TWICE(", ".join(outputs)))
    else:
        raise LayoutError(_BAD_OUTPUTS(shorten(repr(outputs), 60)))
    return _checked({str(name): _listed(name, bases) for name, bases in inputs.items()}, named, "")


def _listed(name: object, bases: object) -> list[tuple[int, ...]]:
    if not isinstance(bases, list | tuple):
        raise LayoutError(_BAD_BASES(name, shorten(repr(bases), 60)))
    for basis in bases:
        if not isinstance(basis, list | tuple) or not {int}.issuperset(map(type, basis)):
            raise LayoutError(_BAD_BASIS(name, shorten(repr(basis), 60)))
    return [tuple(basis) for basis in bases]


def _parse(text: str) -> LinearLayout:
    if len(text) > 100_000:
        raise LayoutError(_BAD_LENGTH(len(text)), text=text[:80])
    inputs: dict[str, list[tuple[int, ...]]] = {}
    outputs: dict[str, int | None] = {}
    for line in TextSpan.whole(text).cut(_LINE):
        word = line.word
        if "-" in (word[:1], word[-1:]):
            line = line.part(line.end - len(word.lstrip("- \t")), line.start + len(word.rstrip("- \t")))
            word = line.word
        if word and outputs:
            raise line.refuse(_BAD_AFTER_OUTPUTS())
        if word:
            _line(line, word, inputs, outputs)
    ranks = [len(basis) for bases in inputs.values() for basis in bases]
    if not outputs and ranks:
        outputs = {f"dim{k}": None for k in range(ranks[0])}
    return _checked(inputs, outputs, text)


def _line(line: TextSpan, said: str, inputs: dict[str, list[tuple[int, ...]]], outputs: dict[str, int | None]) -> None:
    """Adds what one line says to the inputs or the outputs."""
    if found := _BASIS.fullmatch(said):
        bases = inputs.setdefault(found["name"], [])
        if int(found["value"]) != 1 << len(bases):
            raise line.refuse(_BAD_BASIS_ORDER(found["name"], 1 << len(bases)))
        if _ENTRIES.fullmatch(found["basis"]) is None:
            raise line.refuse(_BAD_BASIS_FORM())
        bases.append(tuple(map(int, found["basis"].split(","))))
    elif found := _UNIT.fullmatch(said):
        if found["name"] in inputs:
            raise line.refuse(_BAD_SIZE_NOT_ONE(found["name"]))
        inputs[found["name"]] = []
    elif found := _OUT.fullmatch(said):
        for dimension in filter(None, map(str.strip, found["dims"].split(","))):
            entry = _DIMENSION.fullmatch(dimension)
            if entry is None or entry["name"] in outputs:
                raise line.refuse(_BAD_OUTPUT_TWICE(dimension))
            outputs[entry["name"]] = int(entry["size"]) if entry["size"] else None
    else:
        raise line.refuse(_BAD_LINE())


def _checked(inputs: Mapping[str, Sequence[tuple[int, ...]]], outputs: Mapping[str, object], text: str) -> LinearLayout:
    if not inputs or not outputs:
        raise LayoutError(_BAD_EMPTY(), text=text)
    for name in (*inputs, *outputs):
        if _NAME.fullmatch(name) is None:
            raise LayoutError(_BAD_NAME(shorten(repr(name), 40)), text=text)
    sizes = dict.fromkeys(outputs, 1)
    for name, bases in inputs.items():
        if len(bases) > MOST_BITS:
            raise LayoutError(_BAD_MOST_BASES(name, len(bases), MOST_BITS), text=text)
        for k, basis in enumerate(bases):
            if len(basis) != len(outputs):
                problem = f"{name}={1 << k} has {len(basis)} coordinates for {len(outputs)} output dimensions"
                raise LayoutError(problem, text=text)
        for (out, size), column in zip(outputs.items(), zip(*bases, strict=True), strict=bool(bases)):
            largest = max(column)
            limit = size if type(size) is int else 1 << MOST_BITS
            if min(column) < 0 or largest >= min(limit, 1 << MOST_BITS):
                k, entry = next((k, e) for k, e in enumerate(column) if not 0 <= e < min(limit, 1 << MOST_BITS))
                said = f"{name}={1 << k} has the base {entry}"
                if entry < 0 or entry.bit_length() > MOST_BITS:
                    raise LayoutError(_BAD_BASIS_BOUND(said), text=text)
                raise LayoutError(_BAD_BASIS_OUTSIDE(said, out, size), text=text)
            sizes[out] = max(sizes[out], 1 << largest.bit_length())
    for out, size in outputs.items():
        if size is not None and (type(size) is not int or size < 1 or size & (size - 1)):
            raise LayoutError(_BAD_POWER_OF_TWO(out, size), text=text)
        sizes[out] = sizes[out] if size is None else size
    frozen = tuple([(name, tuple([tuple(basis) for basis in bases])) for name, bases in inputs.items()])
    return LinearLayout(frozen, tuple(sizes.items()))
