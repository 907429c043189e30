"""A dump's text as a stream: modules, computations, instructions, and buffer assignments.

One pass, one line at a time, which keeps the names of one computation. Mistakes are yielded in place, as a LayoutError
with its line; reading resumes at the next module, and earlier events stay valid.
Source: `hlo_module.cc`, `hlo_computation.cc`, `hlo_instruction.cc` (Print), `buffer_assignment.cc` (ToString) of
openxla/xla at 183fa00cb5 (2026-08-22). XLA prints an instruction per line; `statements` normalises one on several
lines, or several on one. XLA's parser adds defaults to a text written by hand (shapes, names of operands, ENTRY, ROOT);
here the text has to have them.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from layoutproof.core.brackets import closed, without_strings
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.files import lines as text_of
from layoutproof.hlotext import demands, problems
from layoutproof.hlotext.events import AllocatedValue, Allocation, ComputationBegin, End, Event, ModuleEnd
from layoutproof.hlotext.header import TABLES, computation_line, gaps, module_line, table_line
from layoutproof.hlotext.literals import wrong_literal
from layoutproof.hlotext.module import Computation, Header, Instruction, Module
from layoutproof.hlotext.opcodes import OPCODES
from layoutproof.hlotext.statements import (
    MOST_LINES,
    Gathered,
    InstructionText,
    header_of,
    nested,
    statements,
)
from layoutproof.hlotext.texts import balanced, compatible, element_of, element_text, operand_names, parts

_SHAPE = r"(?:[a-z]\w*+\[[^\]]*+\](?:\{[^}]*+\})?|b?\(.*?\))"
_INSTRUCTION = re.compile(rf"\s*+(ROOT )?%?([\w.\-]++) = ({_SHAPE}) ([a-z][\w\-]*+)\(")
_ALLOCATION = re.compile(r"allocation (\d{1,18}+): size (\d{1,18}+)(.*)")
_VALUE = re.compile(r"value: <(\d+) (.*?)(?: @(\d+))?> \(size=(\d{1,18}),offset=(\d{1,18})\): (.*)")
MOST_TRIES = 20
"""How often a text is looked at as instructions, each time with a line more."""
MOST_DIGITS = 4300
"""Digits of the longest number that is read; Python reads no longer one."""
_LONG_NUMBER = re.compile(rf"(?<!\d)\d{{{MOST_DIGITS + 1}}}")
_TEXT = re.compile(r'"(?:[^"\\]|\\.?)*+"?')
"""A quoted text, such as what a custom call is given, may be of digits."""
MOST_HEAD = 1000
"""Lines between a computation's name and its first bracket."""
_Plain = tuple[bool, str, str, str, str, str, int]
"""A statement, or the tuple that it would be: to make one takes a tenth of the time of its line."""
STARTS = ("HloModule", "BufferAssignment")
"""The start of the first line of a module, or of a buffer assignment."""
_SIGNATURE = re.compile(r"\s*+(ENTRY\s++)?%?([\w.\-]++)\s*+([({]?)")
_SIGNATURE_MARK = re.compile(r"[{}]|\)(?=\s*->)")
_AFTER_LAYOUT = re.compile(r"\s*[,){]")
_AFTER = re.compile(r"\s*\}(?:\s*,\s*\w+=(?:\"[^\"]*\"|\{[^}]*\}|[^\s,\"{][^\s,]*+))*+")
_NO_ELEMENT = re.compile(r"#(?!\d)")
_TOTAL = re.compile(r"\s*Total bytes used: \d+")

MOST_ERRORS = 100
"""Errors that are kept; a file that is wrong in more ways is no dump."""


def events(lines: Iterable[str], file: str = "") -> Iterator[Event]:
    """The events of a text, in its order. A module is Header, then (Begin, Instruction.., End).., then ModuleEnd."""
    reader = _LineReader(iter(lines), file)
    while reader.line:
        if _starts(reader.line, "HloModule"):
            yield from reader.module()
        elif _starts(reader.line, "BufferAssignment"):
            yield from reader.buffers()
        elif _is_nothing(reader.line):
            reader.step()
        else:
            yield reader.wrong(
                f"not HLO text, which starts with HloModule: {shorten(reader.line, 60)!r}; a compiler's message is for "
                "layoutproof why"
            )
            reader.skip()
    if reader.broken is not None:
        yield reader.broken
    elif not reader.found:
        yield LayoutError(problems.NO_MODULE(), file=file, line=reader.number or 1)


def read_hlo(source: Path | str | Iterable[str], file: str = "") -> Iterator[Module]:
    """The modules of a file (its path), or of lines; each whole in memory.

    Broken modules come with what was read of them and the first `MOST_ERRORS` of their errors; a text without any
    module gives one such, empty.
    """
    if isinstance(source, Path | str):
        with text_of(source) as lines:
            yield from read_hlo(lines, file or str(source))
        return
    header, done, inside, errors = Header(""), list[Computation](), list[Instruction](), list[LayoutError]()
    begin: ComputationBegin | None = None
    for event in events(source, file):
        kind = type(event)
        if kind is Instruction:
            inside.append(event)  # type: ignore[arg-type]
        elif isinstance(event, Header):
            header = event
        elif isinstance(event, ComputationBegin):
            begin = event
        elif isinstance(event, LayoutError) and len(errors) < MOST_ERRORS:
            errors.append(event)
        if isinstance(event, End | ModuleEnd) and begin is not None:
            done.append(Computation(begin.name, begin.entry, begin.line, tuple(inside)))
            begin, inside = None, []
        if isinstance(event, ModuleEnd):
            yield Module(header, tuple(done), tuple(errors))
            header, done, errors = Header(""), [], []
    if errors:
        yield Module(header, (), tuple(errors))


class _Piece(str):
    """The rest of a line of which the beginning was read: it has the number of that line."""

    __slots__ = ()


class _Lines(Iterator[str]):
    """An iterator of lines with push-back."""

    __slots__ = ("given", "seen")

    def __init__(self, given: Iterator[str]) -> None:
        self.given, self.seen = given, list[str]()

    def __next__(self) -> str:
        return self.seen.pop() if self.seen else next(self.given)

    def __iter__(self) -> Iterator[str]:
        """The same lines, without a call for each: a dump has millions."""
        while True:
            while self.seen:
                yield self.seen.pop()
            for line in self.given:
                yield line
                if self.seen:
                    break
            else:
                return

    def back(self, lines: list[str]) -> None:
        """These lines come next."""
        self.seen += reversed(lines)


class _LineReader:
    """Where the text is: `line` with its `number`; an empty line is the end."""

    __slots__ = ("broken", "cut", "file", "found", "line", "lines", "number", "printed")

    def __init__(self, lines: Iterator[str], file: str) -> None:
        self.lines, self.file = _Lines(self._until_broken(lines)), file
        self.broken: LayoutError | None = None
        self.line, self.number, self.found, self.cut = "", 0, False, False
        self.printed = False
        self.step()

    def _until_broken(self, lines: Iterator[str]) -> Iterator[str]:
        """The lines up to where the file becomes unreadable; they stay valid."""
        try:
            for number, line in enumerate(lines, 1):
                if len(line) > MOST_DIGITS and _LONG_NUMBER.search(line) and _LONG_NUMBER.search(_TEXT.sub("", line)):
                    raise LayoutError(problems.DIGITS(MOST_DIGITS), file=self.file, line=number)
                yield line
        except LayoutError as error:
            self.broken = error

    def step(self) -> None:
        """To the next line."""
        line = next(self.lines, None)
        if line is None:
            self.line = ""
        else:
            self.cut = not line.endswith("\n")
            self.line, self.number = line + "\n" if self.cut else line, self.number + _ends([line])

    def cut_short(self, problem: str) -> LayoutError:
        """The error that the text ends too early; where the file cannot be read any further, that."""
        broken, self.broken = self.broken, None
        return broken or self.wrong(problem)

    def wrong(self, problem: str, number: int = 0) -> LayoutError:
        """The error, placed."""
        return LayoutError(problem, file=self.file, line=number or self.number)

    def skip(self) -> None:
        """To the next module or buffer assignment."""
        self.step()
        while self.line and not _starts(self.line):
            self.step()

    def module(self) -> Iterator[Event]:
        """One module, up to the line after it."""
        self.found = True
        whole = True
        number = self.number
        header = self._header()
        if isinstance(header, Header):
            yield header
            # XLA never prints a module without it: where it is missing, a person wrote the text
            self.printed = "entry_computation_layout=" in header.attributes
            whole = yield from self._computations(header)
        else:
            whole = False
            yield header.at(self.file, header.line or number)
        if not whole and self.line and not _starts(self.line):
            self.skip()
        yield ModuleEnd(whole, self.number)

    def _header(self) -> Header | LayoutError:
        """The module's first line, which people write over several, and the tables after it."""
        first, number = self.line, self.number
        # always past the first line: after an error reading resumes at the next one like it
        self.step()
        text, many, table = Gathered(first), 1, "origin_recovery_table=" in first
        while self.line and many < MOST_LINES and (text.goes_on or self.line.startswith(",")):
            if not self.line.strip():
                # says nothing, however many there are
                self.step()
                continue
            # a string in this table is a module of its own
            if not (table and text.is_quoted) and (_starts(self.line) or computation_line(self.line)):
                break
            text.add(self.line)
            many, table = many + 1, table or "origin_recovery_table=" in self.line
            self.step()
        try:
            written, rest = header_of(text.text)
            if rest:
                if self.line:
                    self.lines.back([self.line])
                    self.number -= 1
                self.line = rest
            header = module_line(written, number, self.file)
            self._tables(header)
        except LayoutError as error:
            return error
        return header

    def _computations(self, header: Header) -> Generator[Event, None, bool]:
        """The computations of a module; returns whether nothing is wrong with them."""
        seen: dict[str, int] = {}
        entry = 0
        while self.line and not _starts(self.line):
            if _is_nothing(self.line):
                self.step()
                continue
            number, said = self.number, ""
            begins = computation_line(self.line)
            if begins is not None:
                said = self.line.rpartition("->")[2].strip().removesuffix("{").strip() if "->" in self.line else ""
            else:
                begins = self._beginning()
            if begins is None:
                yield self.wrong(f"neither a computation nor a table of this format: {shorten(self.line, 60)!r}")
                return False
            name, is_entry = begins
            if name in seen:
                yield self.wrong(
                    f"the computation {shorten(name, 60)} is here a second time; first on line {seen[name]}"
                )
                return False
            if is_entry and entry:
                yield self.wrong(f"a second ENTRY computation in one module; the first is on line {entry}")
                return False
            seen[name] = number
            entry = number if is_entry else entry
            yield ComputationBegin(name, is_entry, number)
            if not (yield from self._computation(name, said)):
                return False
        if not entry:
            yield self.cut_short(f"the module {shorten(header.name, 60)} ends without an ENTRY computation: cut short?")
            return False
        return True

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

    def _beginning(self) -> tuple[str, bool] | None:
        """As `computation_line`, of a line that people wrote: over several lines, or with instructions after it."""
        text, more = Gathered(self.line), list[str]()
        head = _Signature(text.text)
        while head.may_come and len(more) < MOST_HEAD:
            line = next(self.lines, None)
            if line is None:
                break
            more.append(line)
            text.add(line)
            if "{" in line or "}" in line:
                head.read(text.text)
        if head.end < 0:
            self.lines.back(more)
            return None
        self.number += _ends(more)
        rest = text.text[head.end :]
        if rest.strip():
            self.lines.back([_Piece(rest)])
        return head.name, head.entry

    def _computation(self, name: str, said: str) -> Generator[Event, None, bool]:
        """The instructions after the line that begins a computation, and its End; returns whether nothing is wrong.

        said: the result by that line, "" for none.
        """
        first = number = self.number
        scope, match, printed = _Scope(self.printed), _INSTRUCTION.match, self.printed
        for line in self.lines:
            number += line.__class__ is str
            found = match(line)
            pieces: Sequence[_Plain] = ()
            ended, problem = False, ""
            if found is not None:
                piece, problem = _on_one_line(line, found, number)
                if not problem and (printed or not self._goes_on()):
                    pieces = (piece,)
            elif line.lstrip().startswith("}"):
                self.line, self.number = line, number
                break
            elif _is_nothing(line):
                continue
            if not pieces:
                here = number
                number, pieces, rest = self._gathered(line, number)
                ended = rest.startswith("}")
                if not pieces and not ended:
                    self.line, self.number = line, here
                    yield self.wrong(problem) if problem else self._no_instruction(line, name, first)
                    self._past(line, number)
                    return False
                if ended:
                    self.line, self.number = rest, number
            for piece in pieces:
                taken = scope.take(piece)
                if taken.__class__ is str:
                    self.number = number
                    yield self.wrong(taken, piece[-1])
                    self.step()
                    return False
                yield taken  # type: ignore[misc]
            if ended:
                break
        else:
            self.line, self.number = "", number
            yield self.cut_short(
                f"the text ends inside the computation {shorten(name, 60)}, which begins on line {first}"
            )
            return False
        problem, where = scope.wrong_as_a_whole(name, said, first)
        if problem:
            yield self.wrong(problem, where)
            return False
        yield End(number)
        self._past_the_end()
        return True

    def _past_the_end(self) -> None:
        """To what follows the bracket that ends a computation, on its line or on the next."""
        text = Gathered(self.line).text
        after = _AFTER.match(text)
        rest = text[after.end() :] if after is not None else text
        if rest.strip():
            # each computation by itself: who took the rest of the line for each of them would never be done
            self.line, *others = _computations_of(rest)
            self.lines.back([*map(_Piece, others)])
        else:
            self.step()

    def _gathered(self, line: str, number: int) -> tuple[int, list[InstructionText], str]:
        """(number of the last line taken, instructions, the text after the computation's end) from a line on.

        Lines are added until all brackets are closed. The result is empty, and no line is lost, where an added line
        begins an instruction or a module of its own: then the first of them was cut short.
        """
        taken, text, tries = [line], Gathered(line), 0
        while True:
            if not text.is_open and not self._goes_on():
                found, rest, wrong = statements(text.text, number)
                if not wrong:
                    return number + _ends(taken[1:]), found, rest
                tries += 1
            more = next(self.lines, None) if tries < MOST_TRIES and len(taken) < MOST_LINES else None
            if more is None or _starts(more) or _INSTRUCTION.match(more) or computation_line(more):
                self.lines.back([*taken[1:], *([] if more is None else [more])])
                return number, [], ""
            taken.append(more)
            text.add(more)

    def _goes_on(self) -> bool:
        """Whether the next line begins with a comma, as people write attributes."""
        more = next(self.lines, None)
        self.lines.back([] if more is None else [more])
        return more is not None and more.lstrip().startswith(",")

    def _past(self, line: str, number: int) -> None:
        """To the line after a wrong one; a line that begins a module is not passed over."""
        if _starts(line):
            self.line, self.number = line, number
        else:
            self.step()

    def _no_instruction(self, line: str, name: str, first: int) -> LayoutError:
        if _starts(line):
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
        while self.line and not _starts(self.line):
            line = self.line.strip()
            found = _ALLOCATION.match(line)
            value = _VALUE.match(line) if found is None else None
            if found:
                allocation, size = int(found[1]), int(found[2])
                yield Allocation(allocation, size, found[3].removesuffix(":").strip(" ,"), self.number)
            elif value:
                what = AllocatedValue(value[2], int(value[4]), int(value[5]), value[6], allocation, self.number)
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


class _Scope:
    """The facts of the instructions of one computation so far, and the check of the next one against them.

    defined: name -> its line.  shapes: name -> its shape's text.  missing: operands that were not defined before they
    were used -> the line that uses them.  rooted: whether ROOT has stood.  result: the shape of it.
    """

    __slots__ = ("defined", "missing", "printed", "result", "rooted", "shapes")

    def __init__(self, printed: bool) -> None:
        self.defined, self.shapes, self.missing = dict[str, int](), dict[str, str](), dict[str, int]()
        self.rooted, self.result, self.printed = False, "", printed

    def take(self, piece: _Plain) -> Instruction | str:
        """The next instruction, from now on known; or what is wrong with it."""
        root, own, shape, opcode, inside, attributes, where = piece
        operands = () if opcode in ("constant", "parameter") else operand_names(inside)
        problem = self._wrong(piece, operands)
        if problem:
            return problem
        defined = self.defined
        defined[own], self.shapes[own] = where, shape
        for operand in operands:
            if operand not in defined and (whole := element_of(operand)[0]) not in defined:
                self.missing.setdefault(whole, where)
        if root:
            self.rooted = True
            # XLA's parser takes no notice of what is written of this one
            self.result = "" if opcode == "add-dependency" else shape
        return Instruction(own, shape, opcode, inside, attributes[2:], where, root, operands)

    def _wrong(self, piece: _Plain, operands: tuple[str, ...]) -> str:
        """The mistake in an instruction, by itself or among the others; "" for none."""
        root, own, shape, opcode, inside, attributes, _ = piece
        problem = ""
        if own in self.defined or (root and self.rooted) or opcode not in OPCODES or opcode == "constant":
            problem = self._problem(InstructionText(*piece))
        elif (attributes or opcode != "parameter") and (
            demands.PLAIN.get(opcode) != len(operands) or (attributes and not attributes.startswith(demands.ENDS))
        ):
            problem = demands.wrong(own, opcode, len(operands), inside, attributes)
        if not problem and (not shape or ("(" in inside and opcode != "constant")):
            problem = _left_out(own, shape, opcode, inside)
        if not problem and operands and ("#" in inside or ("[" in inside and not self.printed)):
            problem = _wrong_operand(own, inside, operands, self.shapes)
        return problem

    def _problem(self, of: InstructionText) -> str:
        """The mistake in an instruction within its computation; "" for none."""
        own, opcode = of.name, of.opcode
        if own in self.defined:
            first = self.defined[own]
            return f"{shorten(own, 60)} is defined a second time; first on line {first}: two texts in one?"
        if of.root and self.rooted:
            return f"a second ROOT in one computation, {shorten(own, 60)}: two texts in one?"
        if opcode not in OPCODES:
            return f"unknown opcode {shorten(opcode, 40)!r} of {shorten(own, 60)}"
        wrong = wrong_literal(of.shape, of.inside) if opcode == "constant" else ""
        return f"the constant {shorten(own, 60)}: {wrong}" if wrong else ""

    def wrong_as_a_whole(self, name: str, said: str, first: int) -> tuple[str, int]:
        """(problem, line) of the computation at its end, a problem of "" for none, line 0 for the one of its end.

        said: the result by its first line, which is line `first`, "" for none.
        """
        if self.missing:
            return _not_before(name, self.defined, self.missing)
        if not self.rooted:
            return f"the computation {shorten(name, 60)} has no ROOT: are lines missing?", 0
        if said and self.result and not compatible(said, self.result):
            problem = f"the computation {shorten(name, 60)} is said to give {shorten(said, 60)}"
            return f"{problem}, and its ROOT is {shorten(self.result, 60)}", first
        return "", 0


class _Signature:
    """The beginning of a computation in a text that may still grow: `name {`, `ENTRY name (..) -> .. {`.

    end: where its bracket ends, -1 while that is not known.  may_come: whether more text may make it one.
    """

    __slots__ = ("_arrow", "_at", "end", "entry", "may_come", "name")

    def __init__(self, text: str) -> None:
        self.end, self.name, self.entry, self.may_come = -1, "", False, True
        self._at, self._arrow = 0, False
        self.read(text)

    def read(self, text: str) -> None:
        """Goes on in the text, which begins with what was read before."""
        if not self._at:
            head = _SIGNATURE.match(text)
            if head is None or not head[3]:
                self.may_come = not text.strip() or (head is not None and head.end() == len(text))
                return
            self.name, self.entry, self._at = head[2], bool(head[1]), head.end()
            if head[3] == "{":
                self.end, self.may_come = head.end(), False
                return
        for mark in _SIGNATURE_MARK.finditer(text, self._at):
            if mark.start() < self._at:
                # of a layout that was read as a whole
                continue
            if mark[0] == ")":
                self._arrow = True
            elif mark[0] == "}":
                self.may_come = False
                return
            else:
                close = text.find("}", mark.end())
                layout = close >= 0 and (not self._arrow or _AFTER_LAYOUT.match(text, close + 1) is not None)
                if self._arrow and not layout:
                    self.end, self.may_come = mark.end(), False
                    return
                if close < 0:
                    self._at = mark.start()
                    return
                self._at = close + 1
                continue
            self._at = mark.end()


def _on_one_line(line: str, found: re.Match[str], number: int) -> tuple[_Plain, str]:
    """The instruction that a line begins, and what is wrong with it if nothing of it stands on the next line.

    found: what `_INSTRUCTION` matches of the line, up to the opcode's bracket.
    """
    root, own, shape, opcode = found.groups()
    start = found.end()
    end = line.find(")", start)
    if end < 0 or line.find("(", start, end) >= 0 or line.find('"', start, end) >= 0:
        end = start + len(balanced(line, start - 1)) - 2
    inside, attributes = line[start:end], line[end + 1 :].rstrip()
    problem = "" if not attributes else _wrong_attributes(attributes)
    if attributes.endswith((",", "=")):
        problem = f"the attributes of {shorten(own, 60)} end in the middle: cut short?"
    if end < start:
        problem = f"the line ends inside the operands of {shorten(own, 60)}: cut short?"
    return (root is not None, own, shape, opcode, inside, attributes, number), problem


def _ends(lines: Iterable[str]) -> int:
    """How many of them begin a line of the file."""
    return sum(line.__class__ is str for line in lines)


def _computations_of(text: str) -> list[str]:
    """A text without comments, cut where a computation begins behind the end of another one.

    >>> _computations_of("b (x: f32[2]{0}) -> f32[] { y = f32[] add(x) }, n={a} ENTRY c { z={} } }")
    ['b (x: f32[2]{0}) -> f32[] { y = f32[] add(x) }, n={a}', ' ENTRY c { z={} } }']
    """
    found, begin, read = [], 0, 0
    for at in closed(text):
        after = _AFTER.match(text, at) if at >= read else None
        if after is not None:
            read = after.end()
            head = _SIGNATURE.match(text, read)
            if head is not None and head[3]:
                found.append(text[begin:read])
                begin = read
    return [*found, text[begin:]]


def _starts(line: str, words: str | tuple[str, ...] = STARTS) -> bool:
    """Whether a line begins a module or a buffer assignment; people indent it."""
    return line.startswith(words) or (line[:1].isspace() and line.lstrip().startswith(words))


def _not_before(name: str, defined: Mapping[str, int], missing: Mapping[str, int]) -> tuple[str, int]:
    """(problem, line) of the first operand that is not defined before it is used, as it is in all that XLA prints.

    missing: these, with the lines that use them.
    """
    operand, where = next(iter(missing.items()))
    why = f"is not in the computation {shorten(name, 60)}: are lines missing?"
    if operand in defined:
        why = f"is defined after it, on line {defined[operand]}: are lines out of order?"
    return f"{shorten(operand, 60)}, an operand on line {where}, {why}", where


def _left_out(name: str, shape: str, opcode: str, inside: str) -> str:
    """What XLA prints of an instruction and a text written by hand leaves to its parser; "" for nothing."""
    if not shape:
        return (
            f"the text has no shape for {shorten(name, 60)}: write it before the opcode, as XLA prints it, "
            f"{shorten(name, 60)} = f32[8,128]{{1,0}} {opcode}(..); compiled.as_text() has every shape"
        )
    if opcode != "constant" and nested(inside):
        return (
            f"an operand of {shorten(name, 60)} is an instruction itself: write it on a line of its own before this "
            "one, and its name here"
        )
    return ""


def _wrong_operand(name: str, inside: str, operands: Sequence[str], shapes: Mapping[str, str]) -> str:
    """Elements that no tuple has, and shapes that are not those of the operands; "" for nothing."""
    for operand in operands:
        whole, indices = element_of(operand)
        if indices and whole in shapes and not element_text(shapes[whole], indices):
            return f"{shorten(name, 60)} takes {shorten(operand, 60)} of {shorten(shapes[whole], 60)}"
    for part in parts(inside):
        said, _, operand = part.rpartition(" ")
        operand = operand.removeprefix("%")
        if _NO_ELEMENT.search(operand):
            return f"{shorten(operand, 60)}, an operand of {shorten(name, 60)}, is no element of a tuple"
        known = shapes.get(operand, "")
        if known and "[" in said and not compatible(said, known):
            taken = f"{shorten(name, 60)} takes {shorten(operand, 40)} as {shorten(said, 40)}"
            return f"{taken}, which is {shorten(known, 40)}"
    return ""


def _is_nothing(line: str) -> bool:
    text = line.strip()
    return not text or text.startswith("//") or (text.startswith("/*") and text.endswith("*/"))


def _wrong_attributes(text: str) -> str:
    """The mistake in the text after the operands; "" for none."""
    if not text.startswith(", "):
        return f"expected ', ' and attributes after the operands, found {shorten(text, 40)!r}"
    if text.count("{") == text.count("}"):
        if text.count('"') % 2 and '"' in without_strings(text):
            return f"a string in the attributes does not end: {shorten(text[-60:], 60)!r}: is text missing?"
        return ""
    whole = "{" + text + "}"
    if balanced(whole, 0) != whole:
        return f"the line ends inside its attributes: {shorten(text[-60:], 60)!r}: cut short?"
    return ""
