"""What the gate compares of an HLO module: its entry layout, every instruction's shape, copies, bitcasts.

Read by the same reader as the audit's (`jobs.hlo`). Shapes stay texts until one has to be asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.jobs.hlo import module
from layoutproof.jobs.hlo.events import Begin, End, Event, Over
from layoutproof.jobs.hlo.lines import events
from layoutproof.jobs.hlo.module import Header, element_of, element_text

_ARRAY = re.compile(r"[a-z]\w*\[[^\]]*\](?:\{[^}]*\})?")
_SUFFIX = re.compile(r"(?:\.(?:\d+|clone|remat\d*))+$")
_SPACE = re.compile(r"S\(\d+\)")
MOVERS = ("copy", "copy-start", "copy-done", "slice-start", "slice-done", "concat-bitcast")
"""What the TPU compiler brings an array to another memory space with, whole or in slices that are put together."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. shape: its text, layouts included.  number, sharding: of a parameter.  calls: of a fusion."""

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

    @property
    def base(self) -> str:
        """The name without what changes from run to run: `fusion.12` and `fusion.3.clone` are `fusion`."""
        return _SUFFIX.sub("", self.name)


@dataclass(slots=True)
class Program:
    """A module as far as it could be read.

    parameters, results: shapes of the entry, in order.  errors: what is wrong.  shapes: instructions by computation
    and name.
    """

    name: str = ""
    parameters: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)
    errors: list[LayoutError] = field(default_factory=list)
    shapes: dict[tuple[str, str], Instruction] = field(default_factory=dict)

    def operand(self, of: Instruction, number: int = 0) -> Instruction | None:
        """The instruction that an operand names; None where the text does not have it."""
        if number >= len(of.operands):
            return None
        name, indices = element_of(of.operands[number])
        found = self.shapes.get((of.computation, name))
        if found is None or not indices:
            return found
        shape = element_text(found.shape, indices)
        return replace(found, opcode="get-tuple-element", shape=shape, operands=(name,)) if shape else None


def read(data: bytes, file: str) -> Program:
    """A module from its text. What is wrong is in `errors`, with its line; what was read before it is kept."""
    program = Program()
    for _ in recorded(events(lines_of(data), file), program, file):
        pass
    return program


def lines_of(data: bytes) -> list[str]:
    """The lines of a dump."""
    return data.decode("utf-8", "replace").splitlines(keepends=True)


def recorded(given: Iterable[Event], program: Program, file: str) -> Iterator[Event]:
    """The events themselves, for whoever else reads them; what they say of one module goes into `program`."""
    computation, entry, root, over = "", False, "", False
    for event in given:
        yield event
        kind = type(event)
        if over:
            continue
        if kind is module.Instruction:
            found = _placed(event, computation, entry)  # type: ignore[arg-type]
            program.instructions.append(found)
            program.shapes[computation, found.name] = found
            if entry and event.root:  # type: ignore[union-attr]
                root = found.shape
        elif isinstance(event, Begin):
            computation, entry = event.name, event.entry
        elif isinstance(event, Header):
            if program.name:
                problem = f"a second module, {shorten(event.name, 60)!r}: one file holds one"
                program.errors.append(LayoutError(problem, file=file, line=event.line))
                over = True
                continue
            _interface(program, event, file)
        elif isinstance(event, LayoutError):
            program.errors.append(event)
            over = True
        elif not isinstance(event, End | Over):
            problem = "a buffer assignment: the gate compares modules"
            program.errors.append(LayoutError(problem, file=file, line=event.line))
            over = True
    if not program.parameters and not program.results:
        entered = sorted((i for i in program.instructions if i.entry and i.number >= 0), key=lambda i: i.number)
        program.parameters, program.results = [i.shape for i in entered], list(arrays(root))


def arrays(shape: str) -> Iterator[str]:
    """The texts of the arrays in a shape, tuples taken apart.

    >>> list(arrays("(f32[3]{0}, (u32[]{:S(2)}, token[]))"))
    ['f32[3]{0}', 'u32[]{:S(2)}', 'token[]']
    """
    if shape.startswith("("):
        yield from _ARRAY.findall(shape)
    elif shape:
        yield shape


def without_space(shape: str) -> str:
    """A shape's text without its memory space.

    >>> without_space("f32[8,128]{1,0:T(8,128)S(1)}"), without_space("s32[4]{0:S(2)}")
    ('f32[8,128]{1,0:T(8,128)}', 's32[4]{0}')
    """
    return _SPACE.sub("", shape).replace(":}", "}").replace("{}", "") if "S(" in shape else shape


def logical(shape: str) -> str:
    """A shape's text without layouts."""
    return re.sub(r"\{[^}]*\}", "", shape)


def _interface(program: Program, header: Header, file: str) -> None:
    program.name = header.name or "module"
    try:
        declared = header.entry_layout()
    except LayoutError as error:
        program.errors.append(error.at(file, header.line))
        return
    if declared is not None:
        program.parameters, program.results = list(declared[0]), list(arrays(declared[1]))


def _placed(of: module.Instruction, computation: str, entry: bool) -> Instruction:
    opcode, called, number = of.opcode, "", -1
    if opcode in ("fusion", "call"):
        called = next((name for role, name in of.calls if role in ("calls", "to_apply")), "")
    elif opcode == "parameter":
        number = of.number
    elif opcode == "custom-call" and of.target == "ConcatBitcast":
        opcode = "concat-bitcast"
    sharding = of.sharding if entry and number >= 0 else ""
    return Instruction(
        of.name, opcode, of.shape, computation, of.line, of.operands, of.op_name, number, called, entry, sharding
    )
