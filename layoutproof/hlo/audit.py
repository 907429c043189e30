"""The audit of one dump, in one pass, which keeps one entry per distinct shape, copy and bitcast."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.files import lines as text_of
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.hlo import bitcasts, buffers, collectives, consistency, copies, kernels, problems
from layoutproof.hlo.copies import Move
from layoutproof.hlo.found import Audit, Casts, Moves
from layoutproof.hlo.module_state import ComputationState, Key, ModuleState
from layoutproof.hlo.shapes import Shape, Shapes
from layoutproof.hlo.talks import CollectiveReading
from layoutproof.hlotext.events import AllocatedValue, Allocation, ComputationBegin, End, Event, ModuleEnd
from layoutproof.hlotext.lines import MOST_ERRORS, events
from layoutproof.hlotext.module import Header, Instruction
from layoutproof.pallas.from_mosaic.mosaic_calls import TARGET

MOST_CONTRADICTIONS = 100
"""Contradictions that are kept with their texts; all are counted."""


def audit_file(path: Path, target: str | None = None) -> Audit:
    """The audit of a file, packed by gzip or not, or of standard input for `-`. LayoutError where there is none."""
    with text_of(path) as lines:
        return audit(lines, str(path), target)


def audit(lines: Iterable[str], file: str = "", target: str | None = None) -> Audit:
    """The audit of a text, line by line. target: the hardware that Mosaic kernels are judged for, where it is known."""
    return audit_events(events(lines, file), file, target)


def audit_events(
    given: Iterable[Event], file: str = "", target: str | None = None, contradictions_only: bool = False
) -> Audit:
    """The audit of a text that someone else reads too: what `hlotext.lines.events` gives, in its order.

    contradictions_only: leave out what is no error and no contradiction: buffers, moves, bitcasts, kernels.
    """
    work = _Work(file, target, contradictions_only)
    for event in given:
        kind = type(event)
        if kind is Instruction:
            work.instruction(event)  # type: ignore[arg-type]
        elif kind is ComputationBegin:
            work.begin(event)  # type: ignore[arg-type]
        elif kind is End:
            work.end()
        elif isinstance(event, Header):
            work.module = ModuleState(event)
            work.talks = CollectiveReading(event)
        elif isinstance(event, ModuleEnd):
            work.over(event)
        elif isinstance(event, AllocatedValue):
            work.value(event)
        elif isinstance(event, Allocation):
            work.found.allocated += event.size
        elif isinstance(event, LayoutError):
            work.wrong(event)
    return work.found


class _Work:
    """The state between two lines."""

    __slots__ = (
        *("agreed", "computation", "file", "found", "kernels", "module", "moves", "shapes", "sums", "talks", "target"),
    )

    def __init__(self, file: str, target: str | None, contradictions_only: bool = False) -> None:
        self.file, self.target, self.sums = file, target, not contradictions_only
        self.found = Audit(file)
        self.shapes = Shapes()
        self.kernels: dict[tuple[str, str], list[Finding]] = {}
        self.moves: dict[Key, Move] = {}
        self.agreed: set[tuple[str, ...]] = set()
        self.module = ModuleState(Header(""))
        self.computation = ComputationState("", False, 0)
        self.talks = CollectiveReading()

    def wrong(self, error: LayoutError) -> None:
        """Keeps an error, up to `MOST_ERRORS`."""
        if len(self.found.errors) < MOST_ERRORS:
            self.found.errors.append(error)

    def begin(self, event: ComputationBegin) -> None:
        """A computation begins."""
        self.computation = ComputationState(*event)
        self.module.computations[event.name] = self.computation
        self.found.computations += 1
        if self.sums:
            self.talks.begin(event.name, event.entry)

    def end(self) -> None:
        """Ends the computation; its names are no longer needed."""
        if self.sums:
            self.talks.end(self.computation.shapes)
        self.computation.forget()

    def instruction(self, of: Instruction) -> None:
        """One instruction: its result, and what it does to its operands."""
        self.found.instructions += 1
        try:
            shape = self.shapes.of(of.shape)
        except LayoutError as error:
            self.wrong(LayoutError(f"{shorten(of.name, 40)}: {error.problem}", text=error.text).at(self.file, of.line))
            return
        computation, opcode = self.computation, of.opcode
        computation.add(of, shape)
        if self.sums:
            self._count(of, shape)
        if opcode == "parameter" or opcode == "constant":
            return
        if opcode == "bitcast" or opcode in copies.OPCODES:
            source = computation.shape_of(of, 0)
            if source is not None:
                self._bitcast(of, source, shape) if opcode == "bitcast" else self._move(of, source, shape)
        elif self.sums and opcode in collectives.OPCODES:
            given = [computation.shape_of(of, k) for k in range(len(of.operands))]
            self.talks.collective(of, given, shape, self.module.header, self.module.location(of))
        elif self.sums and opcode == "custom-call":
            self.found.targets[of.target] += 1
            if of.target == TARGET:
                self._kernel(of)
        if self.module.header.scheduled and (opcode in consistency.TWICE or opcode in consistency.CALLERS):
            self._scheduled(of, shape)
        self.module.use(of, computation)

    def _count(self, of: Instruction, shape: Shape) -> None:
        """One more result, in the sums of its computation and of what devices send each other."""
        self.computation.count(of, shape)
        self.talks.instruction(of, shape)
        for array in shape.arrays:
            if array.unknown:
                self.found.add_unknown("layout", array.text, array.unknown, of.line)

    def _scheduled(self, of: Instruction, shape: Shape) -> None:
        """Checks the facts that a scheduled module has twice, the layouts above all, for equality."""
        operands = [self.computation.shape_of(of, k) for k in range(len(of.operands))]
        known = [operand for operand in operands if operand is not None]
        if len(known) < len(operands):
            return
        if known and of.opcode in consistency.TWICE:
            self._consistent(of, known, shape)
        if of.opcode in consistency.CALLERS:
            call = consistency.CallSite(of.line, of.name, of.opcode, of.calls, tuple(known), shape)
            self.module.calls.append(call)

    def _bitcast(self, of: Instruction, source: Shape, target: Shape) -> None:
        if source.elements is not None or target.elements is not None:
            self.found.add_unknown("bitcast", "a tuple", problems.ONLY_ARRAYS(), of.line)
            return
        if source.arrays[0].space != target.arrays[0].space and not self.computation.respaced:
            what = problems.SPACE_CHANGED(shorten(of.name, 40))
            self.computation.respaced.append(consistency.Contradiction(of.line, what, source.text, target.text))
        if not self.sums:
            return
        key = (source.text, target.text)
        casts = self.found.casts.get(key)
        if casts is None:
            (one,), (other,) = source.arrays, target.arrays
            casts = Casts(one, other, bitcasts.judge(one, other), self.module.location(of))
            self.found.casts[key] = casts
        casts.count += 1
        if casts.cast.verdict is Verdict.UNKNOWN:
            self.found.add_unknown("bitcast", f"{source.text} -> {target.text}", casts.cast.reason, of.line)

    def _move(self, of: Instruction, source: Shape, target: Shape) -> None:
        if of.opcode == "copy-start":
            target = target.elements[0] if target.elements else target
        if len(source.arrays) != len(target.arrays):
            self._contradicted([consistency.Contradiction(of.line, f"{of.opcode} {of.name}", source.text, target.text)])
        if len(source.arrays) != len(target.arrays) or not self.sums:
            return
        permutation = of.dimensions if of.opcode == "transpose" else None
        for one, other in zip(source.arrays, target.arrays, strict=True):
            if one.layout is None and other.layout is None and not (one.unknown or other.unknown):
                continue
            key = (of.opcode, one.text, other.text, permutation)
            if key not in self.moves:
                self.moves[key] = copies.judge(of.opcode, one, other, permutation)
            move = self.moves[key]
            if move.kind == "unknown":
                self.found.add_unknown(of.opcode, f"{one.text} -> {other.text}", move.reason, of.line)
            moves = self.computation.moves.get(key)
            if moves is None:
                moves = self.computation.moves[key] = Moves(of.opcode, one, other, move, self.module.location(of))
            moves.count += 1
            if self.computation.entry and moves.parameter < 0:
                moves.parameter = self.computation.origins.get(of.operands[0], -1)

    def _kernel(self, of: Instruction) -> None:
        key = (of.shape, of.attributes)
        if key not in self.kernels:
            self.kernels[key] = kernels.check(of, self.file, self.target)
        for found in self.kernels[key]:
            self.found.kernels[found.verdict.value] += 1
            if found.verdict is Verdict.UNKNOWN:
                self.found.add_unknown(found.question, "Mosaic kernel", found.reason, of.line)
            elif found.verdict is Verdict.REFUTED:
                self.found.wrong_kernels.append(replace(found, line=of.line))

    def _consistent(self, of: Instruction, operands: list[Shape], result: Shape) -> None:
        """The contradictions of an instruction and its operands; equal shapes are checked once."""
        element = str(of.index) if of.opcode == "get-tuple-element" else ""
        whole = (of.opcode, element, result.text, *[operand.text for operand in operands])
        if whole not in self.agreed:
            found = consistency.of_instruction(of, operands, result)
            self._contradicted(found) if found else self.agreed.add(whole)

    def _contradicted(self, found: list[consistency.Contradiction]) -> None:
        self.found.contradicted += len(found)
        computation = MOST_CONTRADICTIONS - len(self.found.contradictions)
        self.found.contradictions += found[:computation]

    def over(self, event: ModuleEnd) -> None:
        """Ends the module: the figures of its computations go to the file's sums."""
        try:
            runs = self.talks.executions if self.sums else None
            self._contradicted(self.module.close(self.found, self.shapes, event.whole, runs))
            if self.sums and event.whole and self.module.header.scheduled:
                self.talks.reshard(self.found, self.shapes)
        except LayoutError as error:
            self.wrong(error.at(self.file, error.line or self.module.header.line))
        if self.sums:
            self.talks.close(self.found)
            self.talks = CollectiveReading()
        self.module = ModuleState(Header(""))

    def value(self, event: AllocatedValue) -> None:
        """One size of XLA's own."""
        try:
            buffers.compare(self.found, event, self.shapes.of(event.shape))
        except LayoutError as error:
            self.wrong(LayoutError(f"{event.name}: {error.problem}", text=error.text).at(self.file, event.line))
