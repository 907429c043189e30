"""A compiled text as rows of the values of its source: what `first_change` compares where the source is not at hand.

Instructions of one place of the source (one frame) are one row, whatever a compiler made of it: fused, copied, cut into
shards, exchanged. Rows are matched by the order of frames and their columns. `types` are the shapes of what these give,
on one device and with their layouts. A frame of which no instruction is left, as of a constraint on shardings that
holds by itself, is a row too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from layoutproof.gating.first_change import PARAMETER, SILENT, SourceRow
from layoutproof.hlotext.events import ComputationBegin
from layoutproof.hlotext.lines import events
from layoutproof.hlotext.module import Header, Instruction
from layoutproof.hlotext.texts import element_of

_OURS = ("layoutproof/programs/compiling.py", "layoutproof/compiler/serve.py")
_INLINED = frozenset(("fusion", "call", "async-start", "while", "conditional"))
_MOST_DEPTH = 100


@dataclass(frozen=True, slots=True)
class TextRows:
    """rows: of a text.  places: by the line of an instruction in the text, the lines of the source it comes from."""

    rows: tuple[SourceRow, ...]
    places: dict[int, tuple[str, ...]]


def text_rows(text: str) -> TextRows:
    """The rows of a compiled text, in the order of its frames; none of a text with a mistake or without frames."""
    header, bodies, entry = Header(""), dict[str, list[Instruction]](), ""
    inside: list[Instruction] = []
    for event in events(iter(text.splitlines(keepends=True)), ""):
        if isinstance(event, Instruction):
            inside.append(event)
        elif isinstance(event, ComputationBegin):
            inside = bodies.setdefault(event.name, [])
            entry = event.name if event.entry else entry
        elif isinstance(event, Header):
            header = event
    places = {i.line: _places(header, header.frame(i)) for body in bodies.values() for i in body}
    return TextRows(tuple(_TextWalk(header, bodies).of(entry)), places)


def _places(header: Header, frame: int) -> tuple[str, ...]:
    return tuple(s for s in header.sources(frame) if not s.startswith("<") and not any(ours in s for ours in _OURS))


class _TextWalk:
    """The walk over a text. group: by frame, and of a parameter its name, the number of a row.  ops: what it does."""

    def __init__(self, header: Header, bodies: dict[str, list[Instruction]]) -> None:
        self.header, self.bodies = header, bodies
        self.group: dict[tuple[int, str], int] = {}
        self.ops: dict[int, str] = {}
        self.types: dict[int, list[str]] = {}
        self.given: dict[int, set[int]] = {}

    def of(self, entry: str) -> Iterator[SourceRow]:
        """The rows; none where nothing has a frame."""
        self.walk(entry, {}, 0)
        frames = {frame for frame, _ in self.group}
        less = self.header.parents.get(1) == 1
        callers = {caller - less for caller in self.header.parents.values()}
        silent = [(f, "") for f in self.header.frames if f not in frames and f not in callers]
        if len(frames) < 2:
            return
        for key in sorted([*self.group, *silent], key=lambda k: (k[0], self.group.get(k, 0))):
            frame, name = key
            number = self.group.get(key, -1)
            op = name or self.ops.get(number, SILENT)
            places = _places(self.header, frame)
            columns = [self.header.columns.get(at, 0) for at in self.header.chain(frame)[: len(places)]]
            yield SourceRow(
                SILENT if op == "sharding_constraint" else op, places, PARAMETER if name else "",
                tuple(sorted(self.given.get(number, ()))), (number,) if number >= 0 else (),
                tuple(self.types.get(number, ())), f"parameter {name}" if name else f"{columns}",
            )  # fmt: skip

    def walk(self, name: str, given: dict[int, int], depth: int) -> int:
        """The row of a computation's result, -1 for none. given: rows of its parameters, by number."""
        made: dict[str, int] = {}
        root = -1
        for of in self.bodies.get(name, ()):
            operands = [made.get(element_of(each)[0], -1) for each in of.operands]
            rows = [each for each in operands if each >= 0]
            if of.opcode == "parameter":
                made[of.name] = given.get(of.number, -1)
                if not depth:
                    made[of.name] = self.row((0, of.op_name or f"{of.number}"), of, [])
            elif of.opcode in _INLINED and depth < _MOST_DEPTH and of.calls:
                inner = [self.walk(callee, dict(enumerate(operands)), depth + 1) for _, callee in of.calls]
                made[of.name] = next((each for each in reversed(inner) if each >= 0), rows[0] if rows else -1)
            elif (frame := self.header.frame(of)) and of.opcode != "constant":
                made[of.name] = self.row((frame, ""), of, rows)
            else:
                made[of.name] = rows[0] if rows else -1
            root = made[of.name] if of.root else root
        return root

    def row(self, key: tuple[int, str], of: Instruction, given: list[int]) -> int:
        """The number of a row to which an instruction is added."""
        number = self.group.setdefault(key, len(self.group))
        self.ops.setdefault(number, of.op_name.rpartition("/")[2])
        shape = of.shape + (f" {of.sharding}" if of.opcode == "parameter" and of.sharding else "")
        if shape not in self.types.setdefault(number, []):
            self.types[number].append(shape)
        self.given.setdefault(number, set()).update(each for each in given if each != number)
        return number
