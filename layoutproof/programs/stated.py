"""The values of a program as its source states them, from its arguments to its results, in one order, as plain data.

A compiled text has lost the constraints that its source puts on shardings; here they stand, with the lines that state
them. Nested functions, loops and branches are opened, each with a row of its own before its rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TypeVar

from layoutproof.core.document import JsonObject
from layoutproof.core.element_types import element_type
from layoutproof.ir.program import Equation, Literal, Program, Variable, programs_in

T = TypeVar("T")
U = TypeVar("U")
MOST = 20_000
"""Rows; a larger program says none."""
_ADDRESS = re.compile(r" at 0x[0-9a-f]+|0x[0-9a-f]{6,}")
_SILENT = frozenset(
    ("name", "jaxpr", "debug_info", "context_mesh", "compute_on_type", "layout", "keep_unused", "unconstrained_dims")
)
"""Parameters that change no value, its sharding or its layout."""
_MOST_WORDS = 300


def stated(program: Program) -> list[JsonObject]:
    """A row for each equation; [] for a program of more than `MOST`.

    Each has `op`, the primitive; `places`, `file:line` of each frame, from the innermost outwards; `said`, its
    parameters as text; `given`, `gives`, numbers of values; and `types` of what it gives. The last row is `return`.
    A row without frames, as in a function of JAX's own that is traced once for all calls, is at the place of the call.
    """
    rows: list[JsonObject] = []
    numbers: dict[Variable, int] = {}
    fresh = count()

    def number(atom: object) -> int | None:
        if not isinstance(atom, Variable):
            return None
        if atom not in numbers:
            numbers[atom] = next(fresh)
        return numbers[atom]

    def walk(inside: Program, call: list[str]) -> bool:
        for equation in inside.eqns:
            if len(rows) >= MOST:
                return False
            for variable in equation.outvars:
                # a function that is called twice has the same variables both times
                numbers.pop(variable, None)
            nested = [*programs_in(equation)]
            given = [number(v) for v in equation.invars]
            row = _row(equation, given, [] if nested else _of(equation, number))
            row["places"] = row["places"] or call
            rows.append(row)
            for each in nested:
                for outer, inner in _ends(equation.invars, each.invars):
                    if (known := number(outer)) is not None:
                        numbers[inner] = known
                if not walk(each, row["places"]):
                    return False
            if nested:
                for outer, inner in _ends(equation.outvars, nested[-1].outvars):
                    if (known := number(inner)) is not None:
                        numbers[outer] = known
        return True

    for variable in program.invars:
        number(variable)
    if not walk(program, []):
        return []
    results = [number(each) for each in program.outvars]
    return [*rows, {"op": "return", "places": [], "said": "", "given": results, "gives": [], "types": []}]


def _of(equation: Equation, number: Callable[[object], int | None]) -> list[int | None]:
    return [number(v) for v in equation.outvars]


def _ends(outer: Sequence[T], inner: Sequence[U]) -> Iterator[tuple[T, U]]:
    """Pairs of what a call has outside and inside, from the last one on: predicates and constants come first."""
    many = min(len(outer), len(inner))
    yield from zip(outer[len(outer) - many :], inner[len(inner) - many :], strict=True)


def _row(equation: Equation, given: Sequence[int | None], gives: Sequence[int | None]) -> JsonObject:
    words = [
        f"{name}={text}"
        for name, value in sorted(equation.params.items())
        if name not in _SILENT and (text := _text(value))
    ]
    # a number that is written in the source is an operand of the row
    literals = [_text(getattr(atom.val, "value", atom.val)) for atom in equation.invars if isinstance(atom, Literal)]
    said = _ADDRESS.sub("", " ".join([*words, *literals]))
    return {
        "op": equation.primitive.name,
        "places": [*getattr(equation.source, "every", ())],
        "said": said[:_MOST_WORDS],
        "given": [each for each in given if each is not None],
        "gives": list(gives),
        "types": [_type(v.aval) for v in equation.outvars],
    }


def _text(value: object) -> str:
    """A parameter as text; "" for a nested program, and for nothing."""
    if value is None or isinstance(value, Program):
        return ""
    spec = getattr(value, "spec", None)
    if spec is not None:
        return str(spec).replace("PartitionSpec", "P")
    if isinstance(value, tuple | list):
        inside = [_text(each) for each in value]
        return f"({', '.join(inside)})" if any(inside) else ""
    return f"{value}".replace("PartitionSpec", "P")


def _type(aval: object) -> str:
    shape, dtype = getattr(aval, "shape", None), getattr(aval, "dtype", None)
    return "" if shape is None else f"{element_type(dtype)}[{','.join(map(str, shape))}]"
