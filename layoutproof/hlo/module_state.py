"""One module while it is read: its computations, and which of them have memory of their own."""

from __future__ import annotations

from typing import Any

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.hlo import consistency, memory, problems
from layoutproof.hlo.consistency import CallSite, Contradiction, Signature
from layoutproof.hlo.executions import Executions, Runs
from layoutproof.hlo.found import Audit, Buffers, Location, Moves, Parameter, ProgramSummary
from layoutproof.hlo.shapes import ArrayShape, Shape, Shapes
from layoutproof.hlotext.module import Header, Instruction
from layoutproof.hlotext.texts import element_of
from layoutproof.layouts import sharding

_HANDED_ON = frozenset(
    (
        *("bitcast", "get-tuple-element", "opt-barrier"),
        *("copy-start", "copy-done", "slice-start", "slice-done"),
    )
)
"""Opcodes whose result is still the entry's parameter, here or brought to another memory."""

Key = tuple[object, ...]


class ComputationState:
    """One computation while it is read."""

    __slots__ = (
        *("buffers", "entry", "given", "line", "moves", "name", "origins"),
        *("parameters", "respaced", "root", "root_opcode", "shapes"),
    )

    def __init__(self, name: str, entry: bool, line: int) -> None:
        self.name, self.entry, self.line = name, entry, line
        self.shapes: dict[str, Shape] = {}
        self.origins: dict[str, int] = {}
        self.buffers: dict[tuple[str, str], tuple[ArrayShape, Instruction, int]] = {}
        self.moves: dict[Key, Moves] = {}
        self.parameters: dict[int, Shape] = {}
        self.given: dict[int, Instruction] = {}
        self.respaced: list[Contradiction] = []
        self.root: Shape | None = None
        self.root_opcode = ""

    def add(self, of: Instruction, shape: Shape) -> None:
        """One instruction: its name, and where it comes from."""
        self.shapes[of.name] = shape
        opcode = of.opcode
        if opcode == "parameter":
            number = of.number
            self.parameters[number] = shape
            if self.entry:
                self.given[number] = of
                self.origins[of.name] = number
        elif self.entry and of.operands and of.operands[0] in self.origins and _handed_on(of):
            self.origins[of.name] = self.origins[of.operands[0]]
        if of.root:
            self.root, self.root_opcode = shape, opcode

    def count(self, of: Instruction, shape: Shape) -> None:
        """The memory that one instruction has of its own."""
        opcode = of.opcode
        role = opcode if opcode in ("parameter", "constant") else "value"
        for array in memory.own(of, shape, self.entry):
            if array.layout is not None:
                key = (role, array.text)
                known = self.buffers.get(key)
                self.buffers[key] = (array, of, 1) if known is None else (array, known[1], known[2] + 1)

    def shape_of(self, of: Instruction, number: int) -> Shape | None:
        """The shape of an operand; None where it was not read."""
        if number >= len(of.operands):
            return None
        shape = self.shapes.get(of.operands[number])
        if shape is not None:
            return shape
        name, indices = element_of(of.operands[number])
        shape = self.shapes.get(name)
        for index in indices:
            elements = shape.elements if shape is not None else None
            shape = elements[index] if elements is not None and index < len(elements) else None
        return shape

    def forget(self) -> None:
        """Drops the data that only the current computation needs: a program has many computations."""
        self.shapes = self.origins = _NONE
        kept: dict[Any, Any] = {key: (array, _place_only(of), n) for key, (array, of, n) in self.buffers.items()}
        self.buffers = kept or _NONE
        self.moves, self.given = self.moves or _NONE, self.given or _NONE


class ModuleState:
    """One module while it is read."""

    __slots__ = ("calls", "computations", "header", "inner", "named")

    def __init__(self, header: Header) -> None:
        self.header = header
        self.computations: dict[str, ComputationState] = {}
        self.calls: list[CallSite] = []
        self.inner: dict[str, str] = {}
        self.named: dict[str, int] = {}

    def location(self, of: Instruction) -> Location:
        """Where an instruction stands, here and in the user's program."""
        return Location(of.name, of.line, of.op_name, self.header.source(of))

    def use(self, of: Instruction, computation: ComputationState) -> None:
        """Which computations an instruction names, and whether it runs them within its own memory."""
        if "=" not in of.attributes or of.opcode in ("get-tuple-element", "bitcast", "copy-done"):
            return
        for role, callee in of.calls:
            self.named.setdefault(callee, of.line)
            if role in memory.INSIDE and of.opcode != "call":
                self.inner.setdefault(callee, of.opcode)

    def close(self, found: Audit, shapes: Shapes, whole: bool, executions: Executions | None) -> list[Contradiction]:
        """Adds the module to the audit; returns its contradictions. LayoutError when computations are missing.

        executions: how often each computation runs; None where no sums are wanted.
        """
        entry = next((computation for computation in self.computations.values() if computation.entry), None)
        for computation in self.computations.values() if executions is not None else ():
            self._sum(found, computation, executions.of(computation.name))  # type: ignore[union-attr]
        if self.header.name or self.computations:
            found.programs.append(self._program(found, entry, whole))
        if not whole:
            return []
        for callee, line in self.named.items():
            if callee not in self.computations:
                raise LayoutError(problems.COMPUTATION_MISSING(shorten(callee, 60), line), line=line)
        if not self.header.scheduled:
            return []
        signatures = {
            name: Signature(computation.parameters, computation.root) for name, computation in self.computations.items()
        }
        # within a fusion the compiler leaves memory spaces out
        contradicted = [
            c for name, computation in self.computations.items() if not self._inside(name) for c in computation.respaced
        ]
        contradicted += [each for call in self.calls for each in consistency.of_call(call, signatures)]
        declared = self.header.entry_layout()
        if declared is not None and entry is not None:
            parameters, root = signatures[entry.name]
            wanted = (tuple([shapes.of(text) for text in declared[0]]), shapes.of(declared[1]))
            contradicted += consistency.of_entry(self.header.line, wanted, parameters, root)
        return contradicted

    def _sum(self, found: Audit, computation: ComputationState, runs: Runs) -> None:
        within = self._inside(computation.name)
        if within == "fusion":
            found.roots[computation.root_opcode or "?"] += 1
        for key, moves in computation.moves.items():
            if within and within != "async-start":
                found.fused_moves[moves.move.kind] += moves.count
                continue
            moves.runs = runs
            known = found.moves.setdefault((*key, runs), moves)
            if known is not moves:
                known.count += moves.count
                known.parameter = moves.parameter if known.parameter < 0 else known.parameter
        if within:
            return
        for (role, text), (array, of, count) in computation.buffers.items():
            buffers = found.buffers.get((role, text))
            if buffers is None:
                buffers = found.buffers[role, text] = Buffers(array, self.location(of))
            buffers.count += count
            if role == "parameter":
                buffers.given += [k for k, shape in computation.parameters.items() if text in _texts(shape)]

    def _inside(self, name: str) -> str:
        """The opcode that runs a computation within its own memory; "" where its instructions have their own."""
        return self.inner.get(name, "")

    def _program(self, found: Audit, entry: ComputationState | None, whole: bool) -> ProgramSummary:
        given = []
        for number, of in sorted(entry.given.items() if entry else ()):
            shape = entry.parameters[number]  # type: ignore[union-attr]
            unpadded, padded = (sum(getattr(a, which) for a in shape.arrays) for which in ("unpadded", "padded"))
            said = _sharding(found, of)
            given.append(Parameter(number, shape.text, self.location(of), unpadded, padded, said))
        root = entry.root.text if entry and entry.root else ""
        header = self.header
        return ProgramSummary(header.name, header.line, header.scheduled, header.partitions, tuple(given), root, whole)


def _texts(shape: Shape) -> list[str]:
    return [array.text for array in shape.arrays]


_NONE: dict[Any, Any] = {}


def _place_only(of: Instruction) -> Instruction:
    """An instruction without what says nothing of where it stands."""
    return Instruction(of.name, "", "", "", of.attributes, of.line)


def _handed_on(of: Instruction) -> bool:
    return of.opcode in _HANDED_ON or (of.opcode == "custom-call" and of.target == "ConcatBitcast")


def _sharding(found: Audit, of: Instruction) -> str:
    text = of.sharding
    if not text:
        return ""
    try:
        return str(sharding.read(text))
    except LayoutError as error:
        found.add_unknown("sharding", shorten(text, 80), error.problem, of.line)
        return f"unreadable: {shorten(text, 80)}"
