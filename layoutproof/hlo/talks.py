"""The collectives and loops of each module of a dump, and which arrays are results.

Read along with the audit, instruction by instruction, and put into it when the module ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from layoutproof.core.errors import LayoutError
from layoutproof.hlo import memory
from layoutproof.hlo.collectives import collective, given_by, groups_of, moved
from layoutproof.hlo.executions import Executions
from layoutproof.hlo.followed import Followed
from layoutproof.hlo.found import Audit, Location, Resharded, Talks
from layoutproof.hlo.shapes import Shape, Shapes, bytes_of
from layoutproof.hlotext.module import Header, Instruction

_FOLLOWED = 8
"""Views of views that are followed from a result to what makes it."""


@dataclass(slots=True)
class _One:
    """One collective, until it is known how often it runs."""

    kind: str
    does: str
    bytes: int | None
    moved: int | None
    first: Location


@dataclass(slots=True)
class _Computation:
    entry: bool = False
    words: list[str] = field(default_factory=list)
    collectives: list[_One] = field(default_factory=list)
    views: dict[str, tuple[str, ...]] = field(default_factory=dict)
    roots: tuple[str, ...] = ()


class CollectiveReading:
    """One module while it is read."""

    __slots__ = ("bodies", "computations", "executions", "followed", "name", "now", "results", "shardings")

    def __init__(self, header: Header = Header("")) -> None:  # noqa: B008
        self.executions, self.followed = Executions(), Followed(header)
        self.shardings: dict[int, str] = {}
        self.computations: dict[str, _Computation] = {}
        self.bodies: dict[str, str] = {}
        self.name, self.now = "", _Computation()
        self.results: dict[str, list[int]] = {}

    def begin(self, name: str, entry: bool) -> None:
        """A computation begins."""
        self.name, self.now = name, _Computation(entry)
        self.computations[name] = self.now
        self.executions.begin(name, entry)
        self.followed.begin(name)

    def instruction(self, of: Instruction, shape: Shape) -> None:
        """One instruction of it."""
        self.executions.instruction(of)
        self.followed.instruction(of)
        now, opcode = self.now, of.opcode
        if opcode != "parameter" and len(now.words) < 100:
            now.words.append(opcode)
        if now.entry:
            if opcode in memory.VIEWS or opcode.endswith("-done"):
                now.views[of.name] = of.operands
            if opcode == "parameter":
                self.shardings[of.number] = of.sharding
            if of.root:
                now.roots = of.operands if opcode == "tuple" else (of.name,)

    def collective(
        self, of: Instruction, operands: Sequence[Shape | None], shape: Shape, header: Header, first: Location
    ) -> None:
        """One of `collectives.OPCODES`. operands: as far as they are known."""
        kind = of.opcode.removesuffix("-start")
        result = given_by(of, shape)
        known = [operand for operand in operands if operand is not None]
        given = bytes_of([array for operand in known for array in operand.arrays])
        made = bytes_of(result.arrays)
        larger = received = None
        if given is not None and made is not None and len(known) == len(operands):
            larger = max(given, made)
            try:
                received = moved(kind, max(map(len, groups_of(of, kind, header)), default=0), given, made)
            except LayoutError:
                received = None
        does = str(collective(of, header, self.bodies))
        self.now.collectives.append(_One(kind, does, larger, received, first))

    def end(self, shapes: dict[str, Shape]) -> None:
        """The computation is whole. shapes: its instructions' by name."""
        self.executions.end()
        now = self.now
        self.bodies[self.name] = " ".join(sorted(now.words)) if len(now.words) < 100 else ""
        for number, root in enumerate(now.roots):
            # a result of a loop or a fusion with several results has its text where it is taken out
            text = ""
            for _ in range(_FOLLOWED):
                shape = shapes.get(root)
                text = shape.text if shape is not None and shape.elements is None else text
                if len(now.views.get(root, ())) != 1:
                    break
                root = now.views[root][0]
            if text:
                self.results.setdefault(text, []).append(number)
        now.views, now.roots = {}, ()

    def close(self, found: Audit) -> None:
        """The module is whole: its collectives go to the audit, those that do the same and run as often together."""
        for name, computation in self.computations.items():
            runs = self.executions.of(name)
            for one in computation.collectives if runs.times != 0 else ():
                key = (one.does, one.bytes, runs)
                talks = found.talks.get(key)
                if talks is None:
                    talks = found.talks[key] = Talks(one.kind, one.does, one.bytes, one.moved, runs, one.first)
                talks.count += 1
        for (role, text), buffers in found.buffers.items():
            if role == "value":
                buffers.results += [number for number in self.results.get(text, ()) if number not in buffers.results]

    def reshard(self, found: Audit, shapes: Shapes) -> None:
        """Puts into the audit where a device receives more than is needed. Of compiled modules, which are whole."""
        entry = next((name for name, each in self.computations.items() if each.entry), "")
        for name, reshard in self.followed.reshards(entry, self.shardings, shapes):
            runs = self.executions.of(name)
            if runs.times != 0:
                of = reshard.first
                place = Location(of.name, of.line, of.op_name, self.followed.header.source(of))
                found.reshards.append(Resharded(reshard, runs, place))
