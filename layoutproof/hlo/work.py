"""The work of each instruction of a compiled program: flops, transcendental functions, bytes that are moved.

What is counted is what the compiler's own cost analysis counts, each instruction by itself; how often it runs says
`executions`. Work of another kind is named and never taken to be none.

Source: `hlo_cost_analysis.cc` (HandleElementwiseOp, HandleDot, HandleConvolution, HandleReduce, HandleFusion) of
openxla/xla at 183fa00cb5 (2026-08-22).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

from layoutproof.hlo import memory, problems
from layoutproof.hlo.collectives import KINDS, OPCODES
from layoutproof.hlo.shapes import ArrayShape, Shape
from layoutproof.hlotext.module import Instruction
from layoutproof.hlotext.windows import read_labels, read_window
from layoutproof.ir.windows import pairs
from layoutproof.ir.work import pair_of

TRANSCENDENTAL = frozenset(
    (
        *("exponential", "exponential-minus-one", "log", "log-plus-one", "tanh", "sine", "cosine", "tan", "sqrt"),
        *("rsqrt", "cbrt", "power", "erf", "logistic", "atan2", "acos", "asin", "acosh", "asinh", "atanh", "cosh"),
        "sinh",
    )
)
"""Opcodes of which each element of the result is one."""
ARITHMETIC = frozenset(
    (
        *("add", "subtract", "multiply", "divide", "remainder", "negate", "abs", "sign", "maximum", "minimum"),
        *("floor", "ceil", "round-nearest-afz", "round-nearest-even", "clamp", "and", "or", "xor", "not", "compare"),
        *("select", "is-finite", "popcnt", "count-leading-zeros", "shift-left", "shift-right-logical"),
        *("shift-right-arithmetic", "complex", "real", "imag", "convert", "reduce-precision", "multiply-high"),
    )
)
"""Opcodes of which each element of the result is one flop."""
_NO_ARITHMETIC = frozenset(
    (
        *("parameter", "constant", "iota", "broadcast", "reshape", "bitcast", "bitcast-convert", "transpose", "copy"),
        *("slice", "dynamic-slice", "dynamic-update-slice", "concatenate", "pad", "reverse", "gather", "tuple"),
        *("get-tuple-element", "fusion", "call", "while", "conditional", "opt-barrier"),
        *("after-all", "add-dependency", "domain", "partition-id", "replica-id", "get-dimension-size", "infeed"),
        *("outfeed", "custom-call", "rng-get-and-update-state", "set-dimension-size", "stochastic-convert"),
    )
)
"""Opcodes that compute nothing themselves."""
_APPLYING = frozenset(("reduce", "reduce-window", "map", "scatter", "all-reduce", "reduce-scatter", "all-reduce-start"))
_SLICES = frozenset(("slice", "dynamic-slice"))
_SAME = frozenset(("bitcast", "reshape"))
"""Opcodes that hand an operand on within a fusion."""


@dataclass(slots=True)
class WorkDone:
    """What is done in one place, each time. products: flops by the types of both sides.  moved, hbm: bytes, as of
    `Traffic`."""

    products: Counter[str] = field(default_factory=Counter)
    flops: int = 0
    transcendentals: int = 0
    moved: int = 0
    hbm: int = 0

    def add(self, other: WorkDone, times: int = 1) -> None:
        """The same and another's."""
        for kind, flops in other.products.items():
            self.products[kind] += flops * times
        self.flops += other.flops * times
        self.transcendentals += other.transcendentals * times
        self.moved += other.moved * times
        self.hbm += other.hbm * times


Where = tuple[str, str]
"""(`file:line` of the user's program, scope and name of the operation there), each "" where the text does not say."""
Sizes = tuple[int, int]
"""Bytes: padding included, and of the elements alone."""
_ALL: Sizes = (-1, -1)
_NONE: Sizes = (0, 0)


@dataclass(slots=True)
class _Inside:
    """What one computation does, and which parts of its parameters it reads."""

    done: dict[Where, WorkDone] = field(default_factory=dict)
    applied: list[tuple[Where, str, int]] = field(default_factory=list)
    outer: list[_Traffic] = field(default_factory=list)
    unknown: dict[str, None] = field(default_factory=dict)
    parameters: dict[str, int] = field(default_factory=dict)
    reads: dict[int, list[tuple[Sizes, str, int]]] = field(default_factory=dict)
    updates: dict[str, Sizes] = field(default_factory=dict)
    written: list[Sizes] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Traffic:
    """The arrays that one instruction reads and writes; `callee` has what it reads of them."""

    where: Where
    opcode: str
    callee: str
    operands: tuple[tuple[ArrayShape, ...], ...]
    results: tuple[ArrayShape, ...]


class WorkReader:
    """Takes the instructions of a module as they come, and says of each computation what it does."""

    __slots__ = ("_computations", "_now")

    def __init__(self) -> None:
        self._computations: dict[str, _Inside] = {}
        self._now = _Inside()

    def begin(self, name: str) -> None:
        """A computation begins."""
        self._now = self._computations[name] = _Inside()

    def instruction(self, of: Instruction, where: Where, shape: Shape, operand: Callable[[str], Shape | None]) -> None:
        """One instruction. shape: its result.  operand: the shape of an operand, None where the text has none."""
        given = [operand(name) for name in of.operands]
        done = WorkDone()
        why = self._arithmetic(of, where, shape, given, done)
        if why:
            self._now.unknown[f"{of.name}: {why}"] = None
        if done.flops or done.transcendentals:
            self._now.done.setdefault(where, WorkDone()).add(done)
        self._traffic(of, where, shape, given)

    def _arithmetic(
        self, of: Instruction, where: Where, shape: Shape, given: Sequence[Shape | None], done: WorkDone
    ) -> str:
        """Adds the arithmetic of an instruction; why it is not counted."""
        opcode = of.opcode
        if opcode in _NO_ARITHMETIC or opcode.endswith(("-done", "-update")):
            return ""
        if opcode in TRANSCENDENTAL:
            done.transcendentals = _elements(shape)
        elif opcode in ARITHMETIC:
            done.flops = _elements(shape)
        elif opcode in ("dot", "convolution"):
            return _product(of, shape, given, done)
        elif opcode in (
            "reduce",
            "reduce-window",
            "map",
            "scatter",
            "all-reduce",
            "reduce-scatter",
            "all-reduce-start",
        ):
            return self._apply(of, where, shape, given)
        elif not opcode.endswith("-start") and opcode not in _MOVING:
            return problems.WORK_NOT_COUNTED(opcode)
        return ""

    def _apply(self, of: Instruction, where: Where, shape: Shape, given: Sequence[Shape | None]) -> str:
        """A computation that is applied to single elements."""
        callee = next((name for role, name in of.calls if role == "to_apply"), "")
        first, last = (given[0], given[-1]) if given else (None, None)
        out = shape.arrays[0].elements if shape.arrays else 0
        if first is None or last is None or not callee:
            return problems.OPERANDS_NOT_IN_TEXT(of.opcode)
        if of.opcode == "reduce":
            times = max(0, _elements(first) - out)
        elif of.opcode == "reduce-window":
            times = out * (prod(read_window(of.attribute("window"), 0).size) - 1)
        elif of.opcode == "scatter":
            times = _elements(last)
        else:
            times = out if of.opcode == "map" else sum(a.elements for a in shape.arrays)
        self._now.applied.append((where, callee, times))
        return ""

    def _traffic(self, of: Instruction, where: Where, shape: Shape, given: Sequence[Shape | None]) -> None:
        now, opcode = self._now, of.opcode
        for name, each in zip(of.operands, given, strict=True):
            number = now.parameters.get(name)
            if number is not None and opcode not in _SAME:
                now.reads.setdefault(number, []).append(_part(of, name, shape, each))
        self._named(of, given)
        if opcode in ("parameter", "constant") or opcode in memory.VIEWS or opcode.endswith(("-done", "-update")):
            return
        callee = next((name for role, name in of.calls if role == "calls"), "") if of.calls else ""
        operands = tuple(() if each is None else each.arrays for each in given)
        results = memory.own(of, shape, False)
        if opcode == "dynamic-update-slice" and len(operands) > 1:
            # in place: the new part is read and written
            operands, results = (operands[1], *operands[2:]), operands[1]
        elif opcode in _SLICES or opcode == "gather":
            operands = (results, *operands[1:])
        now.outer.append(_Traffic(where, opcode, callee, operands, results))

    def _named(self, of: Instruction, given: Sequence[Shape | None]) -> None:
        """Keeps what is a parameter under another name, an array updated in place, and what the root writes."""
        now, opcode = self._now, of.opcode
        if opcode == "parameter":
            now.parameters[of.name] = of.number
        elif opcode in _SAME and of.operands and of.operands[0] in now.parameters:
            now.parameters[of.name] = now.parameters[of.operands[0]]
        if opcode == "dynamic-update-slice" and len(given) > 1 and given[1] is not None:
            now.updates[of.name] = _sizes(given[1].arrays)
        elif opcode in _SAME and of.operands and of.operands[0] in now.updates:
            now.updates[of.name] = now.updates[of.operands[0]]
        if of.root:
            roots = of.operands if opcode == "tuple" else (of.name,)
            now.written = [now.updates.get(name, _ALL) for name in roots]

    def unknown(self, computation: str) -> Iterator[str]:
        """The work in a computation that is not counted, each with its reason."""
        yield from self._computations[computation].unknown

    def arithmetic(self, computation: str) -> dict[Where, WorkDone]:
        """What one run of a computation computes, without what it calls but for what it applies to elements."""
        inside = self._computations[computation]
        found = {where: WorkDone(Counter(d.products), d.flops, d.transcendentals) for where, d in inside.done.items()}
        for where, callee, times in inside.applied:
            if callee in self._computations:
                mine = found.setdefault(where, WorkDone())
                for done in self.arithmetic(callee).values():
                    mine.add(done, times)
        return found

    def applied(self) -> set[str]:
        """The computations that are applied to single elements, counted where they are applied."""
        return {callee for inside in self._computations.values() for _, callee, _ in inside.applied}

    def traffic(self, computation: str) -> dict[Where, WorkDone]:
        """The bytes that the instructions of a computation read and write, of one that is no fusion's."""
        found: dict[Where, WorkDone] = {}
        for move in self._computations[computation].outer:
            done = found.setdefault(move.where, WorkDone())
            inside = self._computations.get(move.callee)
            for number, arrays in enumerate(move.operands):
                part = _ALL if inside is None else self._read(inside, number)
                _moved(done, arrays, part, move.opcode)
            written = [_ALL] * len(move.results)
            if inside is not None and len(inside.written) == len(move.results):
                written = inside.written
            for array, part in zip(move.results, written, strict=True):
                _moved(done, (array,), part, move.opcode)
        return found

    def _read(self, inside: _Inside, number: int, depth: int = 0) -> Sizes:
        """How much a fusion reads of a parameter; `_ALL` for the whole."""
        padded = unpadded = 0
        for sizes, callee, at in inside.reads.get(number, ()):
            part = sizes
            if callee in self._computations and depth < _DEEP:
                part = self._read(self._computations[callee], at, depth + 1)
            if part == _ALL:
                return _ALL
            padded, unpadded = padded + part[0], unpadded + part[1]
        return padded, unpadded


_DEEP = 20
"""Fusions within one another that are followed."""
_MOVING = frozenset(KINDS)
_APART = OPCODES | {"custom-call", "gather"}
"""Opcodes whose share of the memory's traffic the text does not tell: a kernel may read a part, an exchange too."""


def _moved(done: WorkDone, arrays: Sequence[ArrayShape], part: Sizes, opcode: str) -> None:
    """Adds bytes of arrays. part: as of `_ALL`, or how much of them together."""
    padded, unpadded = _sizes(arrays)
    if part != _ALL:
        padded, unpadded = min(padded, part[0]), min(unpadded, part[1])
    done.moved += padded
    if opcode not in _APART:
        done.hbm += min(sum(a.unpadded for a in arrays if a.space == 0), unpadded)


def _part(of: Instruction, name: str, shape: Shape, operand: Shape | None) -> tuple[Sizes, str, int]:
    """(How much an instruction reads of an operand, the fusion that says it, which parameter of that)."""
    if of.opcode == "fusion":
        callee = next((callee for role, callee in of.calls if role == "calls"), "")
        return _ALL, callee, of.operands.index(name)
    first = bool(of.operands) and of.operands[0] == name and of.operands.count(name) == 1
    if first and of.opcode in _SLICES:
        return _sizes(shape.arrays), "", 0
    if first and of.opcode == "gather":
        # one row may be read for many
        return (_sizes(shape.arrays)[0], 0), "", 0
    if first and of.opcode == "dynamic-update-slice":
        return _NONE, "", 0
    return _ALL, "", 0


def _product(of: Instruction, shape: Shape, given: Sequence[Shape | None], done: WorkDone) -> str:
    arrays = [shape.arrays[0], *(each.arrays[0] for each in given if each is not None and each.arrays)]
    if len(arrays) != 3 or any(array.layout is None for array in arrays):
        return problems.OPERANDS_OF_PRODUCT()
    out, left, right = (tuple(int(n) for n in array.layout.dims) for array in arrays if array.layout is not None)
    if of.opcode == "dot":
        text = of.attribute("lhs_contracting_dims").strip("{}")
        flops = 2 * prod(out) * prod(left[int(d)] for d in text.split(",") if d)
    else:
        numbers, rank = read_labels(of.attribute("dim_labels"))
        w = read_window(of.attribute("window"), rank)
        valid = prod(
            pairs(
                left[numbers.lhs_spec[2 + k]], w.size[k], out[numbers.out_spec[2 + k]],
                w.stride[k], w.padding[k][0], w.base[k], w.dilation[k],
            )
            for k in range(rank)
        )  # fmt: skip
        batch = left[numbers.lhs_spec[0]] // int(of.attribute("batch_group_count") or 1)
        flops = 2 * valid * batch * right[numbers.rhs_spec[1]] * right[numbers.rhs_spec[0]]
    kinds = [array.text.partition("[")[0] for array in arrays[1:]]
    done.products[pair_of(*kinds)] += flops
    done.flops = flops
    return ""


def _elements(shape: Shape) -> int:
    return shape.arrays[0].elements if shape.arrays else 0


def _sizes(arrays: Sequence[ArrayShape]) -> Sizes:
    return sum(a.padded for a in arrays), sum(a.unpadded for a in arrays)
