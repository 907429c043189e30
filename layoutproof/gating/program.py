"""An HLO dump as the gate reads it: what is compared of every program (`compiled_program`), and every instruction.

Read by the same reader as the audit's (`hlo`).
"""

from __future__ import annotations

import hashlib
import io
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple, Self

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.gating import problems
from layoutproof.gating.array_classes import bytes_of
from layoutproof.gating.compiled_program import (
    BitcastPair,
    CompiledProgram,
    EntryValue,
    Exchange,
    LayoutCopy,
    LayoutDemands,
    title,
)
from layoutproof.hlo import copies
from layoutproof.hlo.collectives import OPCODES, collective
from layoutproof.hlo.copies import Move
from layoutproof.hlo.shapes import read_array
from layoutproof.hlotext import module
from layoutproof.hlotext.events import ComputationBegin, End, Event, ModuleEnd
from layoutproof.hlotext.lines import events
from layoutproof.hlotext.module import Header
from layoutproof.hlotext.texts import arrays, element_of, element_text, logical, without_space
from layoutproof.pallas.from_mosaic.mosaic_calls import TARGET as KERNEL

_SUFFIX = re.compile(r"\d+|clone|remat\d*")
MOVERS = ("copy", "copy-start", "copy-done", "slice-start", "slice-done", "concat-bitcast")
"""The TPU compiler's moves of an array to another memory space, whole or in slices that are put together."""


_CALLERS = ("fusion", "call", "while", "conditional", "async-start")
OPENED = ("fusion", "call", "async-start")
"""Opcodes that stand for what their computation computes of their operands."""
SAYING = frozenset(
    (
        *("broadcast", "iota", "reduce", "transpose", "concatenate", "sort", "slice", "pad", "reverse", "compare"),
        *("dot", "convolution", "gather", "scatter", "reduce-window", "select-and-scatter", "fft", "rng"),
        *("triangular-solve", "cholesky", "reduce-precision", "map", "rng-bit-generator", "slice-start"),
        *("dynamic-slice", "set-dimension-size", "get-dimension-size", "ragged-dot", "topk", "stochastic-convert"),
    )
)
"""Opcodes whose attributes say which elements they work on, and how."""
_CALLING = SAYING | OPCODES | {*_CALLERS, "custom-call"}
"""Opcodes whose computations say what they do, or run with them."""
MOST_VALUE = 200
"""Characters of a constant that are kept; of a longer one a digest is."""
MOST_NESTED = 100
"""Computations within one another; programs have a handful."""
_CONTROL = re.compile(r"(?:^|, )control-predecessors=\{[^{}]*+\}")
_DIRECTION = re.compile(r"\bdirection=(\w+)")


class DumpInstruction(NamedTuple):
    """One instruction. shape: its text, layouts included.  number, sharding: of a parameter.

    calls: the computation that a fusion, a call or an asynchronous start is made of.  runs: the computations of every
    other instruction, in the order of its attributes' names.  said: what says which elements it works on, of opcodes in
    `SAYING`; the value of a constant.
    """

    name: str
    opcode: str
    shape: str
    computation: str
    line: int
    operands: tuple[str, ...] = ()
    op_name: str = ""
    number: int = -1
    calls: str = ""
    entry: bool = False
    sharding: str = ""
    said: str = ""
    root: bool = False
    element: int = -1
    runs: tuple[str, ...] = ()

    @property
    def base(self) -> str:
        """The name without what changes from run to run: `fusion.12` and `fusion.3.clone` are `fusion`."""
        parts = self.name.split(".")
        while len(parts) > 1 and _SUFFIX.fullmatch(parts[-1]):
            parts.pop()
        return ".".join(parts)


@dataclass(frozen=True, slots=True)
class DumpProgram(CompiledProgram):
    """A dump as far as it could be read: the compiled program, of which it says everything, and every instruction.

    errors: mistakes in the text.  named: computation -> name -> instruction, in the order of the text.
    by_opcode: the same instructions by opcode.
    """

    devices: Mapping[str, int] = field(default_factory=dict)
    donations: Mapping[tuple[int, tuple[int, ...]], str] = field(default_factory=dict)
    exchanges: Sequence[Exchange] = ()
    customs: Sequence[LayoutDemands] = ()
    bitcasts: Sequence[BitcastPair] = ()
    errors: Sequence[LayoutError] = ()
    named: Mapping[str, Mapping[str, DumpInstruction]] = field(default_factory=dict)
    by_opcode: Mapping[str, Sequence[DumpInstruction]] = field(default_factory=dict)

    def reordered(self, parameters: Sequence[EntryValue], results: Sequence[EntryValue]) -> Self:
        """The same with its parameters in another order, those of its entry too."""
        numbers = {each.number: k for k, each in enumerate(parameters) if each.number >= 0}
        named = dict(self.named)
        for computation in {each.computation for each in self.entered}:
            named[computation] = {
                name: each._replace(number=numbers.get(each.number, each.number)) if each.number >= 0 else each
                for name, each in self.named[computation].items()
            }
        moved = CompiledProgram.reordered(self, parameters, results)
        return replace(moved, named=named, by_opcode=_by_opcode(named))

    def of(self, *opcodes: str) -> Sequence[DumpInstruction]:
        """Those of some opcodes, in the order of the text."""
        found = [each for opcode in opcodes for each in self.by_opcode.get(opcode, ())]
        return found if len(opcodes) == 1 else sorted(found, key=lambda each: each.line)

    @property
    def entered(self) -> list[DumpInstruction]:
        """The entry's parameters, in the order of the text."""
        return [each for each in self.of("parameter") if each.entry and each.number >= 0]

    @property
    def callers(self) -> dict[str, DumpInstruction]:
        """The last fusion or call of each computation that has one."""
        return {each.calls: each for each in self.of("fusion", "call") if each.calls}

    @property
    def instructions(self) -> Iterator[DumpInstruction]:
        """All of them, in the order of the text."""
        return (each for inside in self.named.values() for each in inside.values())

    def find(self, computation: str, operand: str) -> DumpInstruction | None:
        """The instruction that an operand of a computation names, or takes an element of; None where there is none."""
        inside = self.named.get(computation)
        if inside is None:
            return None
        return inside.get(operand) or inside.get(element_of(operand)[0])

    def operand(self, of: DumpInstruction, number: int = 0) -> DumpInstruction | None:
        """The instruction that an operand names; None where the text does not have it."""
        if number >= len(of.operands):
            return None
        inside = self.named.get(of.computation, {})
        name = of.operands[number]
        found = inside.get(name)
        if found is not None:
            return found
        name, indices = element_of(name)
        found = inside.get(name)
        if found is None or not indices:
            return found
        shape = element_text(found.shape, indices)
        return found._replace(opcode="get-tuple-element", shape=shape, operands=(name,)) if shape else None


def _by_opcode(named: Mapping[str, Mapping[str, DumpInstruction]]) -> dict[str, list[DumpInstruction]]:
    found = defaultdict[str, list[DumpInstruction]](list)
    for inside in named.values():
        for each in inside.values():
            found[each.opcode].append(each)
    return dict(found)


def read(data: bytes, file: str, earlier: DumpProgram | None = None) -> DumpProgram:
    """A module from its text. Mistakes are in `errors`, with their lines; the text before them is kept.

    earlier: as of `DumpReader`.
    """
    reader = DumpReader(file, earlier)
    for _ in reader.through(events(lines_of(data), file)):
        pass
    return reader.program()


def lines_of(data: bytes) -> Iterator[str]:
    """The lines of a dump, one at a time."""
    return io.TextIOWrapper(io.BytesIO(data), "utf-8", "replace")


class DumpReader:
    """The state between two events of a dump. over: the one module that a file holds has ended, or is wrong.

    earlier: a program whose texts are used again where they are equal, so that memory has them once.
    """

    __slots__ = (
        *("bodies", "body", "callers", "computation", "customs", "declared", "earlier", "entry", "errors", "file"),
        *("header", "inside", "linked", "named", "over", "root", "texts", "were"),
    )

    def __init__(self, file: str, earlier: DumpProgram | None = None) -> None:
        self.file, self.earlier = file, earlier or DumpProgram()
        self.computation, self.entry, self.root, self.over = "", False, "", False
        self.errors, self.customs = list[LayoutError](), list[LayoutDemands]()
        self.named = dict[str, dict[str, DumpInstruction]]()
        self.inside: dict[str, DumpInstruction] = {}
        self.were: Mapping[str, DumpInstruction] = {}
        self.texts = dict[str, str]()
        self.body = list[str]()
        self.header = Header("")
        self.bodies: dict[str, list[str]] = {}
        self.callers: dict[str, list[tuple[str, str]]] = {}
        self.linked: list[tuple[module.Instruction, str]] = []
        self.declared: tuple[Sequence[str], Sequence[str]] = ((), ())

    def through(self, given: Iterable[Event]) -> Iterator[Event]:
        """The events themselves, for further readers; those of one module are read."""
        for event in given:
            yield event
            if not self.over:
                if type(event) is module.Instruction:
                    self.instruction(event)
                else:
                    self.take(event)

    def take(self, event: Event) -> None:
        """Reads an event that is no instruction."""
        if isinstance(event, ComputationBegin):
            self.computation, self.entry = event.name, event.entry
            self.inside = self.named.setdefault(event.name, {})
            self.were = self.earlier.named.get(event.name, {})
            self.body = self.bodies.setdefault(event.name, [])
        elif isinstance(event, Header):
            if self.header.line:
                problem = problems.SECOND_MODULE(shorten(event.name, 60))
                self._wrong(LayoutError(problem, file=self.file, line=event.line))
                return
            self.header = event
            try:
                declared = event.entry_layout()
            except LayoutError as error:
                self.errors.append(error.at(self.file, event.line))
                return
            if declared is not None:
                self.declared = declared[0], list(arrays(declared[1]))
        elif isinstance(event, LayoutError):
            self._wrong(event)
        elif not isinstance(event, End | ModuleEnd):
            problem = problems.BUFFER_ASSIGNMENT()
            self._wrong(LayoutError(problem, file=self.file, line=event.line))

    def _wrong(self, error: LayoutError) -> None:
        self.errors.append(error)
        self.over = True

    def instruction(self, of: module.Instruction) -> None:
        """One instruction. Texts that are known already are not kept twice."""
        name, shape, opcode, inside, attributes, line, root, operands = of
        computation, said, called, sharding, runs = self.computation, "", "", "", tuple[str, ...]()
        number = element = -1
        if opcode == "parameter":
            number = of.number
            if self.entry and number >= 0:
                sharding = of.sharding
        else:
            body = self.body
            if opcode in _CALLING:
                called, runs, said = self._calls(of)
            elif opcode == "constant":
                said = inside if len(inside) < MOST_VALUE else hashlib.sha256(inside.encode()).hexdigest()
            elif opcode == "get-tuple-element":
                element = of.index
            if len(body) < MOST_NESTED:  # a reduction has a few; the rest of a longer body is not needed
                way = _DIRECTION.search(attributes) if opcode == "compare" else None
                body.append(opcode if way is None else f"{opcode}:{way[1]}")
        was = self.were.get(name)
        op_name = of.op_name if attributes else ""
        if was is not None:
            name = was.name
            op_name = was.op_name if was.op_name == op_name else op_name
        kept = "concat-bitcast" if opcode == "custom-call" and of.target == "ConcatBitcast" else opcode
        texts = self.texts
        shape = texts.setdefault(shape, shape)
        given, kept = self._operands(operands, was), texts.setdefault(kept, kept)
        says = (number, called, self.entry, sharding, said, root, element, runs)
        found = DumpInstruction(name, kept, shape, computation, line, given, op_name, *says)
        self.inside[name] = was if was is not None and was == found else found
        if root and self.entry:
            self.root = shape
        if opcode in OPCODES:
            self.linked.append((of, computation))
        elif opcode == "custom-call":
            self.customs.append(_custom(of, found))

    def _calls(self, of: module.Instruction) -> tuple[str, tuple[str, ...], str]:
        """(The computation that it inlines, those that it runs, its attributes as text)."""
        opcode, calls, called = of.opcode, of.calls, ""
        for role, callee in calls:
            self.callers.setdefault(callee, []).append((role, self.computation))
            if not called and opcode in OPENED and role in ("calls", "to_apply"):
                called = callee
        runs = () if called else tuple([callee for _, callee in sorted(calls, key=_role)])
        if opcode not in SAYING:
            return called, runs, ""
        return called, runs, _said(of, calls, {callee: _words(self.bodies.get(callee, ())) for _, callee in calls})

    def _operands(self, operands: tuple[str, ...], was: DumpInstruction | None) -> tuple[str, ...]:
        """The names of its operands, as texts that are known already."""
        if was is not None and was.operands == operands:
            return was.operands
        here = self.inside
        return tuple([here[each].name if each in here else each for each in operands])

    def program(self) -> DumpProgram:
        """The program, once everything was read."""
        of, found = self.header, DumpProgram(errors=self.errors, named=self.named, by_opcode=_by_opcode(self.named))
        entered = found.entered
        shapes, results = self.declared
        if not shapes and not results:
            shapes, results = [i.shape for i in sorted(entered, key=lambda i: i.number)], list(arrays(self.root))
        known = {i.number: i for i in entered}
        read = of.line > 0
        return replace(
            found,
            name=(of.name or "module") if read else "",
            line=of.line if read else 1,
            devices={"partitions": of.partitions, "replicas": of.replicas},
            scheduled=of.scheduled,
            donations=of.donations(),
            parameters=[_parameter(k, shape, known.get(k)) for k, shape in enumerate(shapes)],
            results=[EntryValue(k, shape) for k, shape in enumerate(results)],
            exchanges=self._exchanges(found),
            customs=self.customs,
            copies=list(relayouts(found)),
            bitcasts=list(_bitcasts(found)),
        )

    def _exchanges(self, program: DumpProgram) -> list[Exchange]:
        exchanges = []
        channels = Counter(_channel(of) for of, _ in self.linked)
        for of, computation in self.linked:
            own = program.named[computation][of.name]
            given = [program.operand(own, k) for k in range(len(own.operands))]
            operands = [a for each in given if each is not None for a in arrays(each.shape)]
            started = of.opcode.endswith("-start") and of.opcode != "all-reduce-start"
            results = list(arrays((element_text(of.shape, (1,)) if started else "") or of.shape))
            exchange = Exchange(
                collective(of, self.header, {name: _words(self.bodies.get(name, ())) for _, name in of.calls}),
                own.base,
                own.op_name,
                own.line,
                tuple(map(logical, operands)),
                tuple(map(logical, results)),
                max(sum(map(bytes_of, side)) for side in (operands, results)),
                self._depth(computation),
                not _channel(of) or channels[_channel(of)] == 1,
            )
            exchanges.append(exchange)
        return exchanges

    def _depth(self, computation: str, seen: tuple[str, ...] = ()) -> int:
        """How many loops run a computation, within one another."""
        if computation in seen or len(seen) > MOST_NESTED:
            return 0
        above = self.callers.get(computation, ())
        return max(((role == "body") + self._depth(name, (*seen, computation)) for role, name in above), default=0)


def _role(call: tuple[str, str]) -> str:
    return call[0]


def _words(body: Sequence[str]) -> str:
    """The operations of a computation, in whichever order they stand."""
    return " ".join(sorted(body))


def _channel(of: module.Instruction) -> str:
    return "" if of.opcode.startswith(("send", "recv")) else of.attribute("channel_id")


def _said(of: module.Instruction, calls: Sequence[tuple[str, str]], bodies: Mapping[str, str]) -> str:
    """The attributes of an instruction, with computations by their contents instead of by their names."""
    if "=" not in of.attributes:
        return ""
    text = _CONTROL.sub("", of.said)
    for role, callee in calls:
        text = re.sub(rf"{role}=%?{re.escape(callee)}(?![\w.\-])", f"{role}={bodies.get(callee, '')}", text)
    return text.strip(", ")


def _custom(of: module.Instruction, found: DumpInstruction) -> LayoutDemands:
    names = ("output_to_operand_aliasing", "custom_call_has_side_effect", "api_version")
    said = " ".join(f"{name}={of.attribute(name)}" for name in names if of.attribute(name))
    written, source = "", None
    if of.target == KERNEL:
        at = max(of.attributes.find("backend_config="), 0)
        whole = "\0".join((of.shape, of.said, of.attributes[at:]))
        written, source = hashlib.sha256(whole.encode(errors="backslashreplace")).hexdigest()[:32], of
    operands = of.operand_layouts
    return LayoutDemands(
        of.target, found.base, found.op_name, of.line, operands, logical(of.shape), said, written, source
    )


def _parameter(number: int, shape: str, of: DumpInstruction | None) -> EntryValue:
    if of is None:
        return EntryValue(number, shape)
    return EntryValue(number, shape, of.sharding, of.op_name, of.base, of.line)


def relayouts(program: DumpProgram) -> Iterator[LayoutCopy]:
    """The copies that change a layout."""
    called = program.callers
    for what in program.of("copy", "copy-start"):
        operand = program.operand(what)
        target = next(arrays(what.shape), "")
        if operand is None or operand.shape == target:
            continue
        source, target = without_space(operand.shape), without_space(target)
        moved = move(source, target) if source != target else None
        if moved is not None and moved.kind in ("relayout", "unknown"):
            number, where = _copied(program, operand, called), (what.computation, what.name)
            copy = LayoutCopy(source, target, bytes_of(target), number, what.base, what.op_name, what.line, where)
            yield replace(copy, reason=moved.reason) if moved.kind == "unknown" else copy


def _copied(program: DumpProgram, operand: DumpInstruction | None, called: Mapping[str, DumpInstruction]) -> int:
    """The entry parameter that an instruction is, as it is or through copies to another memory space; else -1."""
    for _ in range(100):
        if operand is None:
            return -1
        if operand.opcode == "parameter":
            if operand.entry:
                return operand.number
            caller = called.get(operand.computation)
            operand = None if caller is None else program.operand(caller, operand.number)
        elif operand.opcode in MOVERS:
            operand = program.operand(operand)
        else:
            return -1
    return -1


@lru_cache(maxsize=4096)
def move(source: str, target: str) -> Move:
    """The audit's answer on a copy between two layouts."""
    try:
        return copies.judge("copy", read_array(source), read_array(target), None)
    except LayoutError as error:
        return Move("unknown", 0, error.problem)


def _bitcasts(program: DumpProgram) -> Iterator[BitcastPair]:
    for what in program.of("bitcast"):
        operand = program.operand(what)
        if operand is not None and not operand.shape.startswith("("):
            sides = without_space(operand.shape), without_space(what.shape)
            yield BitcastPair(*sides, title(what.base, what.op_name), what.line)
