"""A dump's text as a stream: modules, computations, instructions, and what a buffer assignment says.

One pass, one line at a time; what is kept is the names of one computation. What is wrong comes as a LayoutError with
its line, in the stream; reading goes on with the next module, and what came before it stays good.
Source: `hlo_module.cc`, `hlo_computation.cc`, `hlo_instruction.cc` (Print), `buffer_assignment.cc` (ToString) of
openxla/xla at 183fa00cb5 (2026-08-22). An instruction that is spread over several lines, which XLA reads and never
prints, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.files import lines as text_of
from layoutproof.hlotext.events import Allocation, Begin, End, Event, ModuleEnd, Value
from layoutproof.hlotext.header import TABLES, computation_line, gaps, module_line, table_line
from layoutproof.hlotext.module import Computation, Header, Instruction, Module
from layoutproof.hlotext.texts import balanced, element_of, operand_names

_SHAPE = r"(?:[a-z]\w*\[[^\]]*\](?:\{[^}]*\})?|b?\(.*?\))"
_INSTRUCTION = re.compile(rf"\s*(ROOT )?%?([\w.\-]+) = ({_SHAPE}) ([a-z][\w\-]*)\(")
_ALLOCATION = re.compile(r"allocation (\d+): size (\d+)(.*?):?\s*")
_VALUE = re.compile(r"\s*value: <(\d+) (.*?)(?: @(\d+))?> \(size=(\d+),offset=(\d+)\): (.*?)\s*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_NEEDS = {"fusion": "calls=", "call": "to_apply=", "while": "body="}
"""What says which computation an instruction runs, without which XLA's own parser refuses it."""
STARTS = ("HloModule", "BufferAssignment")
"""What the first line of a module, or of a buffer assignment, starts with."""
_TOTAL = re.compile(r"\s*Total bytes used: \d+")


def events(lines: Iterable[str], file: str = "") -> Iterator[Event]:
    """What a text says, in its order. A module is Header, then (Begin, Instruction.., End).., then ModuleEnd."""
    reader = _Reader(iter(lines), file)
    while reader.line:
        if reader.line.startswith("HloModule"):
            yield from reader.module()
        elif reader.line.startswith("BufferAssignment"):
            yield from reader.buffers()
        elif _is_nothing(reader.line):
            reader.step()
        else:
            yield reader.wrong(f"not HLO text, which starts with HloModule: {shorten(reader.line, 60)!r}")
            reader.skip()
    if reader.broken is not None:
        yield reader.broken
    elif not reader.found:
        yield LayoutError("no line starts with HloModule or BufferAssignment", file=file, line=reader.number or 1)


def read_hlo(source: Path | str | Iterable[str], file: str = "") -> Iterator[Module]:
    """The modules of a file (its path), or of lines; each whole in memory.

    Broken modules come with what was read of them and their `errors`; a text without any module gives one such, empty.
    """
    if isinstance(source, Path | str):
        with text_of(source) as lines:
            yield from read_hlo(lines, file or str(source))
        return
    header, done, inside, errors = Header(""), list[Computation](), list[Instruction](), list[LayoutError]()
    begin: Begin | None = None
    for event in events(source, file):
        kind = type(event)
        if kind is Instruction:
            inside.append(event)  # type: ignore[arg-type]
        elif isinstance(event, Header):
            header = event
        elif isinstance(event, Begin):
            begin = event
        elif isinstance(event, LayoutError):
            errors.append(event)
        if isinstance(event, End | ModuleEnd) and begin is not None:
            done.append(Computation(begin.name, begin.entry, begin.line, tuple(inside)))
            begin, inside = None, []
        if isinstance(event, ModuleEnd):
            yield Module(header, tuple(done), tuple(errors))
            header, done, errors = Header(""), [], []
    if errors:
        yield Module(header, (), tuple(errors))


class _Reader:
    """Where the text is: `line` with its `number`; an empty line is the end."""

    __slots__ = ("broken", "cut", "file", "found", "line", "lines", "number")

    def __init__(self, lines: Iterator[str], file: str) -> None:
        self.lines, self.file = self._until_broken(lines), file
        self.broken: LayoutError | None = None
        self.line, self.number, self.found, self.cut = "", 0, False, False
        self.step()

    def _until_broken(self, lines: Iterator[str]) -> Iterator[str]:
        """The lines up to where the file cannot be read any further; what came before stays good."""
        try:
            yield from lines
        except LayoutError as error:
            self.broken = error

    def step(self) -> None:
        """To the next line."""
        line = next(self.lines, None)
        if line is None:
            self.line = ""
        else:
            self.cut = not line.endswith("\n")
            self.line, self.number = line + "\n" if self.cut else line, self.number + 1

    def wrong(self, problem: str, number: int = 0) -> LayoutError:
        """The error, placed."""
        return LayoutError(problem, file=self.file, line=number or self.number)

    def skip(self) -> None:
        """To the next module or buffer assignment."""
        self.step()
        while self.line and not self.line.startswith(STARTS):
            self.step()

    def module(self) -> Iterator[Event]:
        """One module, up to the line after it."""
        self.found = True
        whole = True
        for event in self._module():
            if isinstance(event, LayoutError):
                whole = False
            yield event
        if not whole and self.line and not self.line.startswith(STARTS):
            self.skip()
        yield ModuleEnd(whole, self.number)

    def _module(self) -> Iterator[Event]:
        first, number = self.line, self.number
        # always past the first line: whoever reads on after an error looks for the next one like it
        self.step()
        try:
            header = module_line(first, number, self.file)
            self._tables(header)
        except LayoutError as error:
            yield error
            return
        yield header
        seen: dict[str, int] = {}
        entry = 0
        while self.line and not self.line.startswith(STARTS):
            if _is_nothing(self.line):
                self.step()
                continue
            begins = computation_line(self.line)
            if begins is None:
                yield self.wrong(f"neither a computation nor a table of this format: {shorten(self.line, 60)!r}")
                return
            name, is_entry = begins
            if name in seen:
                yield self.wrong(
                    f"the computation {shorten(name, 60)} is here a second time; first on line {seen[name]}"
                )
                return
            if is_entry and entry:
                yield self.wrong(f"a second ENTRY computation in one module; the first is on line {entry}")
                return
            seen[name] = self.number
            entry = self.number if is_entry else entry
            yield Begin(name, is_entry, self.number)
            for event in self._computation(name):
                yield event
                if isinstance(event, LayoutError):
                    return
        if not entry:
            yield self.wrong(f"the module {shorten(header.name, 60)} ends without an ENTRY computation: cut short?")

    def _tables(self, header: Header) -> None:
        table = ""
        sizes = dict.fromkeys(TABLES, 0)
        while self.line:
            word = self.line.strip()
            if word in TABLES:
                table = word
            elif word and not (table and table_line(header, table, word)):
                break
            elif word:
                sizes[table] += 1
                if not word.startswith(f"{sizes[table]} "):
                    raise self.wrong(
                        f"line {sizes[table]} of {table} is numbered {word.split()[0]}: are lines missing?"
                    )
            self.step()
        for table, key in gaps(header, sizes):
            raise self.wrong(f"{table} is without the {key} that another table names: are lines missing?")

    def _computation(self, name: str) -> Iterator[Event]:
        """The instructions after the line that begins a computation, and its End."""
        first, file = self.number, self.file
        defined: dict[str, int] = {}
        missing: dict[str, int] = {}
        rooted = False
        match, number = _INSTRUCTION.match, self.number
        for line in self.lines:
            number += 1
            found = match(line)
            if found is None:
                self.line, self.number = line, number
                if line.lstrip().startswith("}"):
                    break
                if _is_nothing(line):
                    continue
                yield self._no_instruction(line, name, first)
                return
            root, own, shape, opcode = found.groups()
            start = found.end()
            end = line.find(")", start)
            if end < 0 or line.find("(", start, end) >= 0 or line.find('"', start, end) >= 0:
                inner = balanced(line, start - 1)
                if not inner:
                    self.number = number
                    yield self.wrong(f"the line ends inside the operands of {shorten(own, 60)}: cut short?")
                    self.step()
                    return
                end = start + len(inner) - 2
            inside, attributes = line[start:end], line[end + 1 :].rstrip()
            problem = "" if not attributes else _wrong_attributes(attributes)
            if own in defined:
                problem = (
                    f"{shorten(own, 60)} is defined a second time; first on line {defined[own]}: two texts in one?"
                )
            if opcode in _NEEDS and _NEEDS[opcode] not in attributes:
                problem = f"the {opcode} {shorten(own, 60)} says no {_NEEDS[opcode]}: is text missing?"
            if problem:
                self.number = number
                yield self.wrong(problem)
                self.step()
                return
            defined[own] = number
            operands = () if opcode in ("constant", "parameter") else operand_names(inside)
            for operand in operands:
                if operand not in defined and (whole := element_of(operand)[0]) not in defined:
                    missing.setdefault(whole, number)
            rooted = rooted or root is not None
            yield Instruction(own, shape, opcode, inside, attributes[2:], number, root is not None, operands)
        else:
            self.line, self.number = "", number
            yield self.wrong(f"the text ends inside the computation {shorten(name, 60)}, which begins on line {first}")
            return
        for operand, where in missing.items():
            shown = f"{shorten(operand, 60)}, an operand on line {where},"
            # XLA prints what an instruction needs before it, scheduled or not, and its own parser wants that
            why = f"is not in the computation {shorten(name, 60)}: are lines missing?"
            if operand in defined:
                why = f"is defined after it, on line {defined[operand]}: are lines out of order?"
            yield LayoutError(f"{shown} {why}", file=file, line=where)
            return
        if not rooted:
            yield self.wrong(f"the computation {shorten(name, 60)} has no ROOT: are lines missing?")
            return
        yield End(number)
        self.step()

    def _no_instruction(self, line: str, name: str, first: int) -> LayoutError:
        if line.startswith(STARTS):
            return self.wrong(
                f"a new module starts inside the computation {shorten(name, 60)}, which begins on line {first}: "
                "cut short, or two texts mixed"
            )
        return self.wrong(f"not an instruction: {shorten(line, 80)!r}")

    def buffers(self) -> Iterator[Event]:
        """A buffer assignment, up to the line after it."""
        self.found = True
        allocation, size = -1, 0
        self.step()
        while self.line and not self.line.startswith(STARTS):
            found = _ALLOCATION.fullmatch(self.line)
            value = _VALUE.fullmatch(self.line) if found is None else None
            if found:
                allocation, size = int(found[1]), int(found[2])
                yield Allocation(allocation, size, found[3].strip(" ,"), self.number)
            elif value:
                what = Value(value[2], int(value[4]), int(value[5]), value[6], allocation, self.number)
                if allocation < 0 or what.offset + what.size > size:
                    yield self.wrong(f"{shorten(what.name, 60)} ends outside its allocation of {size} bytes")
                yield what
            elif _TOTAL.match(self.line):
                # older versions go on with the instructions
                self.skip()
                return
            elif not _is_nothing(self.line):
                yield self.wrong(f"not a line of a buffer assignment: {shorten(self.line, 80)!r}: cut short?")
            self.step()
        if self.cut:
            yield self.wrong("the last line of the buffer assignment has no end: cut short?")


def _is_nothing(line: str) -> bool:
    text = line.strip()
    return not text or text.startswith("//") or (text.startswith("/*") and text.endswith("*/"))


def _wrong_attributes(text: str) -> str:
    """What is wrong with the text after the operands; "" for nothing."""
    if not text.startswith(", "):
        return f"expected ', ' and attributes after the operands, found {shorten(text, 40)!r}"
    if text.count("{") == text.count("}"):
        if text.count('"') % 2 and '"' in _STRING.sub("", text):
            return f"a string in the attributes does not end: {shorten(text[-60:], 60)!r}: is text missing?"
        return ""
    whole = "{" + text + "}"
    if balanced(whole, 0) != whole:
        return f"the line ends inside its attributes: {shorten(text[-60:], 60)!r}: cut short?"
    return ""
