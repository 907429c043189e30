"""Arithmetic as plain data, so that every peer can run the same function on its own numbers.

A number is itself, `["x", k]` is entry k of the index, and `[sign, left, right]` one of + - * // % ^ of two of them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Data = int | list[Any]
"""An expression."""

SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "^": operator.xor,
}


def run(expression: Data, index: Sequence[Any], **other: Callable[[Any, Any], Any]) -> Any:
    """An expression on numbers of any kind. other: operators by name, `floordiv`, `mod`, `xor`, instead of Python's.

    >>> run(["+", ["*", 4, ["//", ["x", 0], 8]], ["^", ["x", 1], 3]], (17, 1))
    10
    """
    if isinstance(expression, int):
        return expression
    sign, *parts = expression
    if sign == "x":
        return index[parts[0]]
    left, right = (run(part, index, **other) for part in parts)
    return other.get(SIGNS[sign].__name__, SIGNS[sign])(left, right)


def text(expression: Data, names: Sequence[str]) -> str:
    """An expression as Python writes it.

    >>> text(["%", ["*", 5, ["x", 0]], 16], "i")
    '((5 * i) % 16)'
    """
    if isinstance(expression, int):
        return str(expression)
    sign, *parts = expression
    return names[parts[0]] if sign == "x" else f"({text(parts[0], names)} {sign} {text(parts[1], names)})"


class Number:
    """An expression that grows by Python's operators."""

    def __init__(self, data: Data) -> None:
        self.data = data

    def _with(self, sign: str, other: Any, swapped: bool = False) -> Number:
        pair = [self.data, other.data if isinstance(other, Number) else int(other)]
        return Number([sign, *(reversed(pair) if swapped else pair)])

    def __add__(self, other: Any) -> Any:
        return self if other == 0 else self._with("+", other)

    def __radd__(self, other: Any) -> Any:
        return self if other == 0 else self._with("+", other, swapped=True)

    def __sub__(self, other: Any) -> Any:
        return self._with("-", other)

    def __rsub__(self, other: Any) -> Any:
        return self._with("-", other, swapped=True)

    def __mul__(self, other: Any) -> Any:
        return self if other == 1 else 0 if other == 0 else self._with("*", other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return self if other == 1 else self._with("//", other)

    def __mod__(self, other: Any) -> Any:
        return 0 if other == 1 else self._with("%", other)

    def __xor__(self, other: Any) -> Any:
        return self._with("^", other)


def index_of(rank: int) -> tuple[Number, ...]:
    """The entries of an index."""
    return tuple(Number(["x", k]) for k in range(rank))


def data_of(value: Any) -> Data:
    """A Number, or an int, as data."""
    return value.data if isinstance(value, Number) else int(value)
