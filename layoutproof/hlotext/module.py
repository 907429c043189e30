"""An HLO module as data. Texts stay as XLA printed them; rarely needed parts are parsed on first use.

Source: `xla/hlo/ir/hlo_instruction.cc` (ToStringWithCanonicalNameMap) and `hlo_module.cc` (Print) of openxla/xla at
183fa00cb5 (2026-08-22); dumps of libtpu 0.0.42.1 and jaxlib 0.10.2.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from layoutproof.core.errors import LayoutError
from layoutproof.hlotext import problems
from layoutproof.hlotext.texts import balanced, element_of, element_text, parts

_CALLED = re.compile(
    r"\b(calls|to_apply|body|condition|true_computation|false_computation|branch_computations|called_computations"
    r"|select|scatter)=(\{[^{}]*+\}|%?[\w.\-]+)"
)
_END_OF_CALLS = re.compile(r"(?:^|, )(?:sharding|frontend_attributes|metadata|backend_config)=")
_NO_CALLS = ("metadata=", "index=", "sharding=")
"""The first attribute of an instruction that names no computation; of a get-tuple-element its index."""
_TARGET = re.compile(r'custom_call_target="((?:[^"\\]|\\.)*)"')
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_FRAME = re.compile(r"\bstack_frame_id=(\d+)")
_SOURCE = re.compile(r'source_file="((?:[^"\\]|\\.)*)"(?: source_line=(\d+))?')
_DIMENSIONS = re.compile(r"(?:^|, )dimensions=\{([\d,]*)\}")
_ALIAS = re.compile(r"\{([\d,\s]*)\}:\s*\((\d+),\s*\{([\d,\s]*)\}(?:,\s*([\w-]+))?\)")
_DONOR = re.compile(r"\((\d+),\s*\{([\d,\s]*)\}\)")
_PLAIN = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s,]*')
_INDEX = re.compile(r"(?:^|, )index=(\d+)")


class Instruction(NamedTuple):
    """One instruction as printed; a tuple, since a dump has millions.

    name: without `%`.  shape: the result's text, layout included.  inside: the text between the opcode's parentheses.
    attributes: the text after them, without the comma.  line: 1-based in its file.  root: its computation's result.
    operands: their names, in order, `x#1` for element 1 of the tuple x; none for a constant or a parameter.
    """

    name: str
    shape: str
    opcode: str
    inside: str
    attributes: str
    line: int
    root: bool = False
    operands: tuple[str, ...] = ()

    @property
    def number(self) -> int:
        """Which parameter this is; -1 for anything else."""
        if self.opcode != "parameter":
            return -1
        text = self.inside.strip()
        # more digits than XLA's 64 bits have are no number of a parameter, and Python reads no more than 4,300
        return int(text) if text.isdecimal() and len(text) <= 20 else -1

    @property
    def calls(self) -> tuple[tuple[str, str], ...]:
        """(attribute, computation) for each computation that the instruction names.

        >>> Instruction("w", "s32[]", "while", "%x", "condition=%c.1, body=%b", 1).calls
        (('condition', 'c.1'), ('body', 'b'))
        """
        text = self.attributes
        if "=" not in text or text.startswith(_NO_CALLS):
            return ()
        end = _END_OF_CALLS.search(text)
        found = []
        for match in _CALLED.finditer(text, 0, end.start() if end else len(text)):
            names = match[2].strip("{}").split(",")
            found += [(match[1], name.strip().removeprefix("%")) for name in names if name.strip()]
        return tuple(found)

    @property
    def target(self) -> str:
        """custom_call_target; "" for anything else."""
        return _first(_TARGET, self.attributes)

    @property
    def op_name(self) -> str:
        """metadata's op_name, as printed."""
        text = self.attributes
        start = text.find('op_name="')
        if start < 0:
            return ""
        start += len('op_name="')
        found = text[start : text.find('"', start)]
        return found if "\\" not in found else _first(_OP_NAME, text)

    @property
    def dimensions(self) -> tuple[int, ...] | None:
        """`dimensions={..}`, as of a transpose; None without it."""
        found = _DIMENSIONS.search(self.attributes)
        return None if found is None else tuple([int(part) for part in found[1].split(",") if part])

    @property
    def said(self) -> str:
        """The attributes that say what the instruction does: those before its sharding, metadata and configuration."""
        end = _END_OF_CALLS.search(self.attributes)
        return self.attributes[: end.start()] if end else self.attributes

    def attribute(self, name: str) -> str:
        """The text of one of the attributes in `said`, brackets or quotes included; "" without it.

        >>> Instruction("g", "f32[2]", "all-gather", "%x", "channel_id=1, dimensions={0}", 1).attribute("dimensions")
        '{0}'
        """
        text, key = self.said, f"{name}="
        at = 0 if text.startswith(key) else text.find(f", {key}") + 2
        if at == 1:
            return ""
        at += len(key)
        if text[at : at + 1] in ("{", "["):
            return balanced(text, at)
        found = _PLAIN.match(text, at)
        return found[0] if found else ""

    @property
    def operand_layouts(self) -> tuple[str, ...]:
        """Shapes with layouts that a custom call demands of its operands; () where it states none."""
        return tuple(parts(self.attribute("operand_layout_constraints")[1:-1]))

    @property
    def aliases(self) -> tuple[tuple[tuple[int, ...], int, tuple[int, ...]], ...]:
        """(element of the result, operand, element of that) for each that share memory, as the text says them.

        >>> said = "output_to_operand_aliasing={{0}: (1, {}), {1}: (2, {0})}"
        >>> Instruction("c", "(f32[2], f32[2])", "custom-call", "%x, %y", said, 1).aliases
        (((0,), 1, ()), ((1,), 2, (0,)))
        """
        found = _ALIAS.findall(self.attribute("output_to_operand_aliasing"))
        return tuple([(_numbers(result), int(number), _numbers(index)) for result, number, index, _ in found])

    @property
    def config(self) -> str:
        """The text from `backend_config=` on, which is the last of the attributes; "" without it."""
        at = self.attributes.find("backend_config=")
        return self.attributes[at + len("backend_config=") :] if at >= 0 else ""

    @property
    def index(self) -> int:  # type: ignore[override]
        """`index=`, as of get-tuple-element; -1 without it."""
        found = _INDEX.search(self.attributes)
        return int(found[1]) if found else -1

    @property
    def sharding(self) -> str:
        """The text of `sharding={..}`, braces included; ""  without one."""
        start = 0 if self.attributes.startswith("sharding={") else self.attributes.find(", sharding={") + 2
        if start == 1:
            return ""
        return balanced(self.attributes, start + len("sharding="))


@dataclass(frozen=True, slots=True)
class Header:
    """The line `HloModule ..` and the tables after it. parents: frame id -> that of its caller, as the text has it.
    columns: location id -> column.

    attributes: the text after the name.  line: of HloModule.  files, locations, frames: id -> file name, id ->
    (file id, source line), id -> location id.  tables: all that is known of source positions.
    """

    name: str
    attributes: str = ""
    line: int = 0
    files: dict[int, str] = field(default_factory=dict)
    locations: dict[int, tuple[int, int]] = field(default_factory=dict)
    frames: dict[int, int] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)
    columns: dict[int, int] = field(default_factory=dict)

    @property
    def scheduled(self) -> bool:
        """Whether the compiler was done: its text then has the layouts that run."""
        return "is_scheduled=true" in self.attributes

    @property
    def partitions(self) -> int:
        """num_partitions, 1 without it: the number of devices that share the arrays."""
        return self._count("num_partitions")

    @property
    def replicas(self) -> int:
        """replica_count, 1 without it: how many times the program runs on data of its own."""
        return self._count("replica_count")

    @property
    def devices(self) -> int:
        """How many run the program: all partitions of all replicas."""
        return self.replicas * self.partitions

    def _count(self, name: str) -> int:
        found = re.search(rf"\b{name}=(\d+)", self.attributes)
        return int(found[1]) if found else 1

    def donations(self) -> dict[tuple[int, tuple[int, ...]], str]:
        """The use of the buffer of each donated argument: (parameter, index in it) -> words.

        >>> Header("m", "input_output_alias={ {1}: (0, {}, must-alias) }, buffer_donor={ (2, {0}) }").donations()
        {(0, ()): 'result {1} (must-alias)', (2, (0,)): 'any result'}
        """
        found = {}
        for result, number, index, kind in _ALIAS.findall(self._braced("input_output_alias")):
            found[int(number), _numbers(index)] = (
                f"result {{{','.join(map(str, _numbers(result)))}}} ({kind or 'may-alias'})"
            )
        for number, index in _DONOR.findall(self._braced("buffer_donor")):
            found.setdefault((int(number), _numbers(index)), "any result")
        return found

    def _braced(self, name: str) -> str:
        found = re.search(rf"(?:^|, ){name}=(?=\{{)", self.attributes)
        return balanced(self.attributes, found.end()) if found else ""

    def entry_layout(self) -> tuple[tuple[str, ...], str] | None:
        """Parameter shapes and result shape of `entry_computation_layout`; None without it. LayoutError if cut.

        >>> Header("m", "entry_computation_layout={(f32[2]{0}, s32[])->(f32[2]{0})}").entry_layout()
        (('f32[2]{0}', 's32[]'), '(f32[2]{0})')
        """
        key = "entry_computation_layout="
        at = self.attributes.find(key + "{")
        if at < 0:
            return None
        text = balanced(self.attributes, at + len(key))
        inner = text[1:-1]
        parameters = balanced(inner, 0)
        if not parameters or not inner[len(parameters) :].startswith("->"):
            raise LayoutError(problems.ENTRY_LAYOUT(), line=self.line)
        return tuple(parts(parameters[1:-1])), inner[len(parameters) + 2 :]

    def source(self, of: Instruction) -> str:
        """`file:line` where the user's program asked for this; "" where the text does not say."""
        frame = _FRAME.search(of.attributes) if "stack_frame_id=" in of.attributes else None
        if frame is not None:
            file, line = self.locations.get(self.frames.get(int(frame[1]), -1), (-1, 0))
            return f"{self.files[file]}:{line}" if file in self.files else ""
        found = _SOURCE.search(of.attributes) if "source_file=" in of.attributes else None
        return "" if found is None else found[1] + (f":{found[2]}" if found[2] else "")

    def frame(self, of: Instruction) -> int:
        """The number of the frame that an instruction comes from; 0 where the text has none."""
        found = _FRAME.search(of.attributes) if "stack_frame_id=" in of.attributes else None
        return int(found[1]) if found else 0

    def sources(self, frame: int) -> tuple[str, ...]:
        """`file:line` of a frame and of those that called it, from the innermost outwards."""
        named = ((self.locations.get(location, (-1, 0))) for location in self.chain(frame))
        return tuple([f"{self.files[file]}:{line}" for file, line in named if file in self.files])

    def chain(self, frame: int) -> tuple[int, ...]:
        """The locations of a frame and of those that called it, from the innermost outwards, by their numbers."""
        # jaxlib 0.10.2 writes each caller's number one too high, so that the first frame calls itself
        less = 1 if self.parents.get(1) == 1 else 0
        found: list[int] = []
        while frame in self.frames and len(found) < _MOST_FRAMES:
            found.append(self.frames[frame])
            caller = self.parents.get(frame, 0) - less
            frame = caller if caller < frame else 0
        return tuple(found)


_MOST_FRAMES = 100
"""Callers of callers that are looked up."""


@dataclass(frozen=True, slots=True)
class Computation:
    """One computation: its instructions in order, by name in `by_name`."""

    name: str
    entry: bool
    line: int
    instructions: tuple[Instruction, ...] = ()

    @property
    def by_name(self) -> dict[str, Instruction]:
        """Its instructions by name."""
        return {each.name: each for each in self.instructions}

    def shapes_of(self, of: Instruction) -> tuple[str, ...]:
        """Shapes of an instruction's operands; those that the text does not have are left out."""
        known, named = self.by_name, map(element_of, of.operands)
        return tuple([element_text(known[name].shape, indices) for name, indices in named if name in known])

    @property
    def root(self) -> Instruction | None:
        """Its root; None in a text that was cut short."""
        marked = [each for each in self.instructions if each.root]
        return marked[-1] if marked else None

    @property
    def parameters(self) -> tuple[Instruction, ...]:
        """Its parameters by their number."""
        return tuple(sorted((p for p in self.instructions if p.opcode == "parameter"), key=lambda p: p.number))


@dataclass(frozen=True, slots=True)
class Module:
    """One module, as far as it could be read: `errors` has the mistakes; the parts before them are here."""

    header: Header
    computations: tuple[Computation, ...]
    errors: tuple[LayoutError, ...] = ()

    @property
    def entry(self) -> Computation | None:
        """The computation that the program starts with; None in a text that was cut short."""
        return next((each for each in self.computations if each.entry), None)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple([int(part) for part in text.split(",") if part.strip()])


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[1] if found else ""
