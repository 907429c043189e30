"""What the gate compares of an HLO module: its entry layout, every instruction's shape, copies, bitcasts.

One pass over the text that XLA prints (`HloModule ..` to the last brace). Shapes stay texts until one has to be asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from layoutproof.core.errors import LayoutError, shorten

_LINE = re.compile(r"\s*(ROOT )?%?([\w.\-]+) = (\(|[^\s(]+) ?")
_ARRAY = re.compile(r"[a-z]\w*\[[^\]]*\](?:\{[^}]*\})?")
_OPCODE = re.compile(r"\s*([a-z][\w\-]*)\(")
_NAME = re.compile(r"%([\w.\-]+)")
_BARE = re.compile(r"(?:^|[\s,])([A-Za-z_][\w.\-]*)(?=\s*(?:,|$))")
_HEADER = re.compile(r"(ENTRY )?%?([\w.\-]+) (?:\(.*\) -> .* )?\{$")
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_CALLS = re.compile(r"calls=%?([\w.\-]+)")
_SUFFIX = re.compile(r"(?:\.(?:\d+|clone|remat\d*))+$")
_SPACE = re.compile(r"S\(\d+\)")
MOVERS = ("copy", "copy-start", "copy-done", "slice-start", "slice-done", "concat-bitcast")
"""What the TPU compiler brings an array to another memory space with, whole or in slices that are put together."""
_WIDE = frozenset((*MOVERS, "parameter", "bitcast", "fusion", "call", "custom-call"))
"""Opcodes whose operands are looked at."""
_SHARDING = re.compile(r"sharding=(\{(?:[^{}]|\{[^{}]*\})*\})")


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
        return self.shapes.get((of.computation, of.operands[number]))


def read(data: bytes, file: str) -> Program:
    """A module from its text. What is wrong is in `errors`, with its line; what was read before it is kept."""
    program = Program()
    computation, entry, start, root = "", False, 0, ""
    number = 0
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        if line.startswith("HloModule"):
            if program.name:
                problem = f"a second module, {shorten(line, 60)!r}: one file holds one"
                program.errors.append(LayoutError(problem, file=file, line=number))
                break
            _module(program, line, file, number)
        elif not computation:
            header = _HEADER.match(line) if line.endswith("{") else None
            if header and not line.startswith("HloModule"):
                entry, computation, start = bool(header[1]), header[2], number
        elif line.startswith("}"):
            computation = ""
        elif " = " in line:
            try:
                found = _instruction(line, computation, entry, number)
            except LayoutError as error:
                program.errors.append(error.at(file, number))
                break
            program.instructions.append(found)
            program.shapes[computation, found.name] = found
            if entry and line.lstrip().startswith("ROOT "):
                root = found.shape
    if computation and not program.errors:
        problem = f"the text ends inside the computation {shorten(computation, 60)!r} that begins on line {start}"
        program.errors.append(LayoutError(problem, file=file, line=number))
    if not program.name and not program.errors:
        program.errors.append(LayoutError("no line starts with HloModule", file=file, line=1))
    if not program.parameters and not program.results:
        entered = sorted((i for i in program.instructions if i.entry and i.number >= 0), key=lambda i: i.number)
        program.parameters, program.results = [i.shape for i in entered], list(arrays(root))
    return program


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


def _module(program: Program, line: str, file: str, number: int) -> None:
    program.name = line.split(",", 1)[0].removeprefix("HloModule").strip() or "module"
    at = line.find("entry_computation_layout={")
    if at < 0:
        return
    text = _balanced(line, at + len("entry_computation_layout="), "{", "}")
    inner = text[1:-1] if text else ""
    parameters = _balanced(inner, 0, "(", ")")
    arrow = inner[len(parameters) :]
    if not parameters or not arrow.startswith("->"):
        program.errors.append(LayoutError("entry_computation_layout is not closed", file=file, line=number))
        return
    program.parameters = list(_parts(parameters[1:-1]))
    program.results = list(arrays(arrow[2:]))


def _instruction(line: str, computation: str, entry: bool, number: int) -> Instruction:
    head = _LINE.match(line)
    if head is None:
        raise LayoutError(f"not an instruction: {shorten(line, 80)}")
    name, start = head[2], head.start(3)
    shape = head[3]
    if shape == "(":
        shape = _balanced(line, start, "(", ")")
    elif "{" in shape or "(" in line[head.end(3) : head.end(3) + 1]:
        # a layout has round brackets of its own: T(8,128)
        end = line.find("}", start) if "{" in shape else -1
        shape = line[start : end + 1] if end >= 0 else shape
    opcode = _OPCODE.match(line, start + len(shape)) if shape else None
    if opcode is None:
        raise LayoutError(f"the line ends in the middle of an instruction: {shorten(line, 80)}")
    what = opcode[1]
    if what not in _WIDE:
        # what stands behind is not needed, and most of a dump's text
        return Instruction(name, what, shape, computation, number, op_name=_op_name(line), entry=entry)
    inner = _balanced(line, opcode.end() - 1, "(", ")")
    if not inner:
        raise LayoutError(f"the line ends inside the operands: {shorten(line, 80)}")
    inside = inner[1:-1]
    if what == "parameter":
        which = int(inside) if inside.isdigit() else -1
        shard = _SHARDING.search(line, opcode.end()) if entry else None
        about = {"entry": entry, "sharding": shard[1] if shard else ""}
        return Instruction(name, what, shape, computation, number, (), _op_name(line), which, **about)  # type: ignore[arg-type]
    if what == "custom-call" and 'custom_call_target="ConcatBitcast"' in line:
        what = "concat-bitcast"
    operands = tuple(_NAME.findall(inside) or _BARE.findall(inside))
    calls = _CALLS.search(line, opcode.end()) if what in ("fusion", "call") else None
    called = calls[1] if calls else ""
    return Instruction(name, what, shape, computation, number, operands, _op_name(line), -1, called, entry)


def _op_name(line: str) -> str:
    at = line.find('op_name="')
    found = _OP_NAME.match(line, at) if at >= 0 else None
    return found[1] if found else ""


def _balanced(text: str, start: int, opening: str, closing: str) -> str:
    """The text from an opening bracket to the one that closes it; "" where none does."""
    first = text.find(closing, start) + 1
    if first and text.find(opening, start + 1, first) < 0:
        return text[start:first]
    depth = 0
    for found in re.compile(f"[{re.escape(opening + closing)}]").finditer(text, start):
        depth += 1 if found[0] == opening else -1
        if depth == 0:
            return text[start : found.end()]
    return ""


def _parts(text: str) -> Iterator[str]:
    """What stands between commas outside of brackets, index comments left out."""
    depth, begin = 0, 0
    text = re.sub(r"/\*.*?\*/", "", text)
    for at, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            yield text[begin:at].strip()
            begin = at + 1
    if text.strip():
        yield text[begin:].strip()
