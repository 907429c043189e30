"""Whether two places of a program that name one buffer give it one layout.

A compiled program says many layouts twice: a tuple's element and what is taken from it, an operand and the parameter of
the computation that it is handed to, the entry's parameters and `entry_computation_layout`. XLA's verifier demands that
they are equal (`shape_verifier` in `hlo_verifier.cc`, layout-sensitive); where they are not, the text was edited, mixed
from two, or the compiler is wrong. Asked of scheduled modules only: before layout assignment the layouts mean nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from layoutproof.core.errors import shorten
from layoutproof.hlo.shapes import Shape
from layoutproof.hlotext.module import Instruction

ELEMENTWISE = frozenset(
    (
        *("add", "subtract", "multiply", "divide", "maximum", "minimum", "and", "or", "xor", "not", "power"),
        *("remainder", "negate", "abs", "exponential", "log", "sqrt", "rsqrt", "tanh", "sine", "cosine", "convert"),
        *("compare", "select", "floor", "ceil", "sign", "shift-left", "shift-right-logical", "shift-right-arithmetic"),
        *("exponential-minus-one", "log-plus-one", "logistic", "erf", "atan2", "is-finite"),
    )
)
"""Opcodes whose operands and result have one order of dimensions (`layout_assignment.cc`, elementwise)."""

TWICE = frozenset((*ELEMENTWISE, "get-tuple-element", "tuple", "copy", "copy-start", "copy-done"))
"""Opcodes that say a layout which an operand has said already: those that `of_instruction` looks at."""

CALLERS = frozenset(("fusion", "call", "while", "conditional", "async-start"))
"""Opcodes that hand operands to the parameters of a computation and get its root back."""


class Contradiction(NamedTuple):
    """Two texts for one buffer. what: which two; first, second: the texts."""

    line: int
    what: str
    first: str
    second: str


class CallSite(NamedTuple):
    """One use of a computation: its operands and its stated result."""

    line: int
    name: str
    opcode: str
    calls: tuple[tuple[str, str], ...]
    operands: tuple[Shape, ...]
    result: Shape


class Signature(NamedTuple):
    """A computation's parameters by number, and its root."""

    parameters: Mapping[int, Shape]
    root: Shape | None


def of_instruction(of: Instruction, operands: Sequence[Shape], result: Shape) -> list[Contradiction]:
    """The contradictions between one instruction and its operands."""
    opcode, found = of.opcode, list[Contradiction]()
    name = shorten(of.name, 40)
    if opcode == "get-tuple-element":
        whole, index = operands[0].elements, of.index
        if whole is not None and 0 <= index < len(whole):
            _same(found, of.line, f"{name} takes element {index} of {of.operands[0]}", whole[index], result)
        else:
            found.append(Contradiction(of.line, f"{name} takes element {index}", operands[0].text, result.text))
    elif opcode == "tuple":
        given = tuple(operands)
        if result.elements is None or len(result.elements) != len(given):
            found.append(Contradiction(of.line, f"{name} of {len(given)} operands", f"{len(given)} parts", result.text))
        else:
            for k, (one, other) in enumerate(zip(given, result.elements, strict=True)):
                _same(found, of.line, f"element {k} of {name}, {of.operands[k]}", one, other)
    elif opcode in ("copy-start", "copy-done"):
        parts = (result if opcode == "copy-start" else operands[0]).elements
        if parts is not None and len(parts) > 1:
            one, other = (operands[0], parts[1]) if opcode == "copy-start" else (parts[0], result)
            _same(found, of.line, f"the {'source' if opcode == 'copy-start' else 'result'} of {name}", one, other)
            if opcode == "copy-start" and not _of_one_size(parts[0], parts[1]):
                found.append(Contradiction(of.line, f"{opcode} {name}", parts[1].text, parts[0].text))
    elif opcode in ELEMENTWISE or opcode == "copy":
        for operand, shape in dict(zip(of.operands, operands, strict=False)).items():
            alike = shape is result or (opcode == "copy" or _order(shape) == _order(result))
            if not alike or not _of_one_size(shape, result):
                found.append(
                    Contradiction(of.line, f"{opcode} {name} and its operand {operand}", shape.text, result.text)
                )
    return found


def of_call(call: CallSite, signatures: Mapping[str, Signature]) -> list[Contradiction]:
    """The contradictions between a call and the computations that it names."""
    found: list[Contradiction] = []
    for number, (role, callee) in enumerate(call.calls):
        signature = signatures.get(callee)
        if signature is None or (role == "to_apply" and call.opcode != "call"):
            continue
        what = f"{call.opcode} {shorten(call.name, 40)} and {shorten(callee, 40)}"
        operands = call.operands
        if call.opcode == "conditional":
            operands = operands[number + 1 : number + 2]
        for k, shape in enumerate(operands):
            if k in signature.parameters:
                _same(found, call.line, f"{what}, parameter {k}", shape, signature.parameters[k])
        if signature.root is not None and role != "condition" and call.opcode != "async-start":
            _same(found, call.line, f"{what}, result", signature.root, call.result)
    return found


def of_entry(
    line: int, declared: tuple[Sequence[Shape], Shape], parameters: Mapping[int, Shape], root: Shape | None
) -> list[Contradiction]:
    """What `entry_computation_layout` and the entry computation contradict each other in."""
    found: list[Contradiction] = []
    shapes, result = declared
    if sorted(parameters) != list(range(len(shapes))):
        found.append(Contradiction(line, "number of entry parameters", str(len(shapes)), str(len(parameters))))
    for k, shape in enumerate(shapes):
        if k in parameters:
            _same(found, line, f"entry parameter {k} and entry_computation_layout", parameters[k], shape)
    if root is not None:
        _same(found, line, "entry result and entry_computation_layout", root, result)
    return found


def _same(found: list[Contradiction], line: int, what: str, one: Shape, other: Shape) -> None:
    if one.text != other.text:
        found.append(Contradiction(line, what, one.text, other.text))


def _of_one_size(one: Shape, other: Shape) -> bool:
    """Whether two arrays have the same dimensions; True where one of them is no array, or not a known one."""
    if len(one.arrays) != 1 or len(other.arrays) != 1:
        return True
    first, second = one.arrays[0].layout, other.arrays[0].layout
    return first is None or second is None or first.dims == second.dims


def _order(shape: Shape) -> tuple[int, ...]:
    """Dimensions from minor to major, less those of extent 1."""
    layout = shape.arrays[0].layout if shape.elements is None and shape.arrays else None
    if layout is None:
        return ()
    return tuple([d for d in layout.minor_to_major if layout.dims[d] != 1])
