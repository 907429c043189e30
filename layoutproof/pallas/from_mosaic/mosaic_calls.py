"""Custom calls of Pallas kernels in program texts: StableHLO as JAX lowers or exports it, and HLO as XLA prints it.

Forms: `stablehlo.custom_call @tpu_custom_call(..) {backend_config = "..", ..} : (..) -> ..`, the same in MLIR's generic
form, and HLO's `custom-call(..), custom_call_target="tpu_custom_call", .., backend_config={..}` (jax 0.10.2 and
0.12.0.1, jaxlib's and libtpu 0.0.42.1's printers).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.hlotext.module import Computation, Instruction, Module
from layoutproof.hlotext.texts import balanced, element_of, parts
from layoutproof.pallas.from_mosaic import problems

TARGET = "tpu_custom_call"
"""The target of a Mosaic kernel for TPU."""

FOREIGN = re.compile(r"(mosaic_gpu\w*|triton_kernel_call|__gpu\$xla\.gpu\.triton)")
"""Targets of Pallas kernels for GPU: their calls have no grid of blocks that is read here."""

_ARRAY = re.compile(r"([a-z]\w*)\[([\d,]*)\](?:\{([\d,]*))?")
_TENSOR = re.compile(r"tensor<((?:\d+x)*)([a-zA-Z]\w*|complex<f(?:32|64)>)>")
_CALL = re.compile(r'custom_call(?:"|\s*@"?([\w.$]+)"?)?\(')
_TARGET = re.compile(r'call_target_name = "((?:[^"\\]|\\.)*)"')
_NAME = re.compile(r'kernel_name = "((?:[^"\\]|\\.)*)"')
_CONFIG = re.compile(r'backend_config = "((?:[^"\\]|\\.)*)"')
_ALIAS = re.compile(
    r"output_operand_alias<output_tuple_indices = \[([\d, ]*)\],"
    r" operand_index = (\d+), operand_tuple_indices = \[([\d, ]*)\]>"
)
_ESCAPE = re.compile(r"\\([0-9A-Fa-f]{2}|.)")
_RESULTS = re.compile(r"\s*(%[\w$.-]+)(?::(\d+))? = ")
_USE = re.compile(r"%[\w$.-]+(?:#\d+)?")


@dataclass(frozen=True, slots=True)
class MosaicArray:
    """An operand or a result of a call: XLA's element type, extents in elements."""

    dtype: str
    dims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MosaicCall:
    """One custom call, or why it cannot be read (`problem`).

    config: the backend_config as JSON text.  aliases: (operand, result) pairs that share a buffer, both as the call
    counts them.  live: per result, whether it is used.  source: `file:line` of the call in the text.  asked:
    `file:line` of the user's program that made it, "" where the text does not say.
    """

    name: str
    source: str
    config: str = ""
    operands: tuple[MosaicArray, ...] = ()
    results: tuple[MosaicArray, ...] = ()
    aliases: tuple[tuple[int, int], ...] = ()
    live: tuple[bool, ...] = ()
    problem: str = ""
    asked: str = ""


def calls_in_stablehlo(text: str, file: str) -> Iterator[MosaicCall]:
    """The calls of a StableHLO module, in order; one more, with a problem, where the text is cut short."""
    lines = text.splitlines()
    found = [(number, line) for number, line in enumerate(lines, 1) if "custom_call" in line]
    function, functions, used = 0, dict[int, int](), dict[int, set[str]]()
    for number, line in enumerate(lines, 1):
        function += "func.func" in line
        functions[number] = function
        if "%" in line:
            results = _RESULTS.match(line)
            used.setdefault(function, set()).update(_USE.findall(line, results.end() if results else 0))
    for number, line in found:
        call = _of_stablehlo(line, f"{file}:{number}", used.get(functions[number], set()))
        if call is not None:
            yield call
    end = next((line.rstrip() for line in reversed(lines) if line.strip() and not line.startswith("#")), "")
    if not _ends(end):
        problem = problems.TEXT_END(shorten(end, 40))
        yield MosaicCall("the rest", f"{file}:{len(lines)}", problem=problem)


def _ends(line: str) -> bool:
    """Whether a line ends a module: `}`, the end of a module within it, a dictionary, a place."""

    def closed(text: str) -> bool:
        return not text or text.endswith("#-}") or (text.startswith(") {") and text.endswith("} : () -> ()"))

    rest = line.removeprefix("}")
    located = rest.endswith(")") and any(
        closed(rest[:at]) for at in (rest.find(" loc("), rest.rfind(" loc(")) if at >= 0
    )
    return line.endswith("#-}") or (line != rest and (closed(rest) or located))


def _of_stablehlo(line: str, source: str, used: set[str]) -> MosaicCall | None:
    """The call on one line; None where it is none of a kernel."""
    start = _CALL.search(line)
    if start is None:
        return None
    opened = balanced(line, start.end() - 1)
    rest, attributes = line[start.end() - 1 + len(opened) :], ""
    while opened and re.match(r"[\s<>]*\{", rest):
        at = rest.index("{")
        inner = balanced(rest, at)
        attributes += inner
        rest = rest[at + len(inner) :] if inner else ""
    generic = _TARGET.search(attributes)
    target = start[1] or (generic[1] if generic else "")
    if FOREIGN.fullmatch(target):
        return MosaicCall(target, source, problem=_FOREIGN)
    if target != TARGET and not (target == "" and TARGET in line):
        return None
    name = _NAME.search(attributes)
    called = name[1] if name else ""
    config = _CONFIG.search(attributes)
    types = re.match(r"[\s>]*: \(", rest)
    inputs = balanced(rest, types.end() - 1) if types else ""
    arrow = rest[types.end() - 1 + len(inputs) :] if types and inputs else ""
    if not arrow.startswith(" -> ") or config is None:
        what = "no backend_config" if arrow.startswith(" -> ") else problems.LINE_END()
        return MosaicCall(called, source, problem=what)
    outputs = arrow[4:]
    outputs = balanced(outputs, 0)[1:-1] if outputs.startswith("(") else outputs.partition(" loc(")[0]
    try:
        operands, results = _tensors(inputs[1:-1]), _tensors(outputs)
        shared = _ALIAS.findall(attributes)
        said = [(_numbers(result), int(operand), _numbers(inside)) for result, operand, inside in shared]
        aliases = _aliases(said, attributes.count("output_operand_alias<"))
    except LayoutError as error:
        return MosaicCall(called, source, problem=error.problem)
    own = _RESULTS.match(line)
    pack = own[1] if own else "%"
    single = len(results) == 1
    live = tuple(pack in used or (not single and f"{pack}#{k}" in used) for k in range(len(results)))
    return MosaicCall(called, source, _unescaped(config[1]), operands, results, aliases, live)


_FOREIGN = problems.GPU_KERNEL()


def calls_in_module(module: Module, file: str) -> Iterator[MosaicCall]:
    """The calls of an HLO module, in order; one more, with a problem, for each place where the text is broken."""
    for computation in module.computations:
        marked = [i for i in computation.instructions if i.opcode == "custom-call" and i.target]
        for instruction in marked:
            if FOREIGN.fullmatch(instruction.target):
                yield MosaicCall(instruction.target, f"{file}:{instruction.line}", problem=_FOREIGN)
            elif instruction.target == TARGET:
                yield replace(call_of(instruction, file, computation), asked=module.header.source(instruction))
    for error in module.errors:
        yield MosaicCall("the rest", f"{file}:{error.line or 1}", problem=error.problem)


def call_of(instruction: Instruction, file: str, around: Computation | None = None) -> MosaicCall:
    """The call that an instruction is. around: its computation; without it every result counts as used."""
    name, source = instruction.name, f"{file}:{instruction.line}"
    if not instruction.config:
        return MosaicCall(name, source, problem="no backend_config")
    try:
        shapes = instruction.operand_layouts or (around.shapes_of(instruction) if around else ())
        operands = _arrays(shapes or parts(instruction.inside))
        if len(operands) != len(instruction.operands):
            raise LayoutError(problems.OPERANDS(len(instruction.operands), len(operands)))
        shape = instruction.shape
        results = _arrays(parts(shape[1:-1]) if shape.startswith("(") else [shape])
        aliases = _aliases(instruction.aliases, instruction.attribute("output_to_operand_aliasing").count("("))
    except LayoutError as error:
        return MosaicCall(name, source, problem=error.problem)
    live = _live(instruction, around, len(results))
    return MosaicCall(name, source, instruction.config, operands, results, aliases, live)


def _live(instruction: Instruction, around: Computation | None, many: int) -> tuple[bool, ...]:
    if around is None or instruction.root or not instruction.shape.startswith("("):
        return (True,) * many
    picked: set[int] = set()
    for user in around.instructions:
        for name, indices in map(element_of, user.operands):
            if name != instruction.name:
                continue
            index = indices[0] if indices else user.index if user.opcode == "get-tuple-element" else -1
            if index < 0:
                return (True,) * many
            picked.add(index)
    return tuple(k in picked for k in range(many))


def _arrays(shapes: Sequence[str]) -> tuple[MosaicArray, ...]:
    """Arrays of XLA's shape texts. LayoutError for tuples, extents known at run time only, layouts not row-major."""
    found = []
    for text in shapes:
        match = _ARRAY.match(text.strip())
        if match is None or match[1] not in ELEMENT_BITS:
            raise LayoutError(problems.NO_ARRAY(shorten(text, 60)))
        order = [int(n) for n in (match[3] or "").split(",") if n]
        if order != sorted(order, reverse=True):
            raise LayoutError(problems.NOT_ROW_MAJOR(shorten(text, 60)))
        found.append(MosaicArray(match[1], tuple(int(n) for n in match[2].split(",") if n)))
    return tuple(found)


def _tensors(text: str) -> tuple[MosaicArray, ...]:
    """Arrays of MLIR's tensor types, between commas. LayoutError for anything else."""
    left = _TENSOR.sub("", text).replace(",", "").strip()
    if left:
        raise LayoutError(problems.NO_SIZE(shorten(left, 60)))
    return tuple(_tensor(dims, kind) for dims, kind in _TENSOR.findall(text))


def _tensor(dims: str, kind: str) -> MosaicArray:
    name = {"i1": "pred", "complex<f32>": "c64", "complex<f64>": "c128"}.get(kind, kind.lower())
    name = name.removeprefix("u").replace("i", "u", 1) if re.fullmatch(r"ui\d+", name) else name
    name = f"s{name[1:]}" if re.fullmatch(r"i\d+", name) else name
    if name not in ELEMENT_BITS:
        raise LayoutError(problems.ELEMENT_KIND(shorten(kind, 40)))
    return MosaicArray(name, tuple(int(n) for n in dims.split("x") if n))


def _aliases(found: Sequence[tuple[tuple[int, ...], int, tuple[int, ...]]], many: int) -> tuple[tuple[int, int], ...]:
    """(operand, result) of (element of the result, operand, element of that), of which the text has so many."""
    if len(found) != many:
        raise LayoutError(problems.ALIASES_FORM())
    if any(inside or len(result) > 1 for result, _, inside in found):
        raise LayoutError(problems.ALIAS_OF_PART())
    return tuple((operand, result[0] if result else 0) for result, operand, _ in found)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split(",") if n.strip())


def _unescaped(text: str) -> str:
    """MLIR's text of a string attribute as the string: two hexadecimal digits, or one sign, after a backslash."""
    short = {"n": "\n", "t": "\t"}
    return _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if len(m[1]) == 2 else short.get(m[1], m[1]), text)
