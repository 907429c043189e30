"""The operations of terms: the operands, the result, the syntax and the evaluation of each.

`OPERATIONS` is the whole table: `Term` refuses an operation that is not in it, and every reader of terms (the printer,
the evaluators, the check of kinds, the folding) looks it up there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from layoutproof.core import problems
from layoutproof.core.errors import LayoutError
from layoutproof.core.numbers import Numbers

Op = Literal[
    "int", "name", "read", "leaf", "maybe",
    "+", "-", "*", "//", "%", "truncdiv", "truncrem", "min", "max", "xor", "shl", "int32", "multiple_of", "select",
    "<", "<=", "==", "!=", "and", "or", "not",
]  # fmt: skip
"""The name of an operation."""

Kind = Literal["number", "condition"]

INT32 = 1 << 31
"""Signed numbers of 32 bits are from -INT32 to INT32 - 1; `int32(x)` is what they hold of x."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation.

    operands: the kind of each part that it takes; of "read" and "leaf", which take a name and then as many indices as
    there are, none.  gives: the kind of what it gives.  binds: how tightly it binds where it is written between its
    parts or before its part, as in Python; 0: it is written as a function.  value: (kind of number, values of the
    parts) -> its value; None for what has no value of its own.
    """

    operands: tuple[Kind, ...]
    gives: Kind = "number"
    binds: int = 0
    value: Callable[..., Any] | None = None


def _towards_zero(on: Numbers, value: Any, by: Any) -> Any:
    # floor division of the absolute value: what C, LLVM and lax.div mean by /
    return on.select(on.less(value, 0), 0 - (0 - value) // by, value // by)


def shift(by: object) -> int:
    """How far a constant shifts. Raises LayoutError for what is no constant from 0 to 63."""
    if type(by) is not int or not 0 <= by < 64:
        raise LayoutError(problems.SHIFT(by))
    return by


_ONE: tuple[Kind, ...] = ("number",)
_TWO: tuple[Kind, ...] = ("number", "number")
_TRUTHS: tuple[Kind, ...] = ("condition", "condition")

OPERATIONS: Mapping[str, Operation] = {
    "int": Operation(()),
    "name": Operation(()),
    "read": Operation(()),
    "leaf": Operation((), "condition"),
    "maybe": Operation((), "condition"),
    "+": Operation(_TWO, binds=5, value=lambda on, a, b: a + b),
    "-": Operation(_TWO, binds=5, value=lambda on, a, b: a - b),
    "*": Operation(_TWO, binds=6, value=lambda on, a, b: a * b),
    "//": Operation(_TWO, binds=6, value=lambda on, a, b: a // b),
    "%": Operation(_TWO, binds=6, value=lambda on, a, b: a % b),
    "truncdiv": Operation(_TWO, value=_towards_zero),
    "truncrem": Operation(_TWO, value=lambda on, a, b: a - _towards_zero(on, a, b) * b),
    "min": Operation(_TWO, value=lambda on, a, b: on.minimum(a, b)),
    "max": Operation(_TWO, value=lambda on, a, b: on.maximum(a, b)),
    "xor": Operation(_TWO, value=lambda on, a, b: on.xor(a, b)),
    "shl": Operation(_TWO, value=lambda on, a, b: a * (1 << shift(b))),
    "int32": Operation(_ONE, value=lambda on, a: (a + INT32) % (2 * INT32) - INT32),
    "multiple_of": Operation(_TWO, value=lambda on, a, b: a),
    "select": Operation(("condition", *_TWO), value=lambda on, c, a, b: on.select(c, a, b)),
    "<": Operation(_TWO, "condition", 4, lambda on, a, b: on.less(a, b)),
    "<=": Operation(_TWO, "condition", 4, lambda on, a, b: on.logical_not(on.less(b, a))),
    "==": Operation(_TWO, "condition", 4, lambda on, a, b: on.equal(a, b)),
    "!=": Operation(_TWO, "condition", 4, lambda on, a, b: on.logical_not(on.equal(a, b))),
    "and": Operation(_TRUTHS, "condition", 2, lambda on, a, b: on.logical_and(a, b)),
    "or": Operation(_TRUTHS, "condition", 1, lambda on, a, b: on.logical_or(a, b)),
    "not": Operation(("condition",), "condition", 3, lambda on, a: on.logical_not(a)),
}
"""Every operation by its name. "read" is the entry of a table, by the table's name and indices; "leaf" whether an
element of a load or of a carried value is undefined, and "maybe" an unknown condition (bodies/values)."""

LEAVES = frozenset({"int", "name", "maybe"})
"""Operations that have no parts."""
NAMED = frozenset({"read", "leaf"})
"""Operations whose first argument is the name of a table or of a leaf, and no part."""
CONDITIONS = frozenset(name for name, operation in OPERATIONS.items() if operation.gives == "condition")
COMPARISONS = frozenset(name for name in CONDITIONS if OPERATIONS[name].operands == _TWO)


def operation(name: str) -> Op:
    """The operation of a name. Raises ValueError where there is none."""
    if name not in OPERATIONS:
        raise ValueError(f"there is no operation {name!r} of terms")
    return cast("Op", name)


def apply(op: str, on: Numbers, values: Sequence[Any]) -> Any:
    """One operation on values of a kind of number."""
    value = OPERATIONS[op].value
    assert value is not None, op
    return value(on, *values)
