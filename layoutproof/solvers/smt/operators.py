"""What z3's own operators mean, which every way to write integers shares where it does not write them otherwise."""

from __future__ import annotations

from typing import Any

import z3


class Operators:
    """Part of a `Dialect`."""

    def add(self, left: Any, right: Any) -> Any:
        return left + right

    def subtract(self, left: Any, right: Any) -> Any:
        return left - right

    def multiply(self, left: Any, right: Any) -> Any:
        return left * right

    def less(self, left: Any, right: Any) -> Any:
        return left < right

    def equal(self, left: Any, right: Any) -> Any:
        return left == right

    def choose(self, condition: Any, left: Any, right: Any, low: Any) -> Any:
        return z3.If(condition, left, right)

    def logical_and(self, left: Any, right: Any) -> Any:
        return z3.And(left, right)

    def logical_or(self, left: Any, right: Any) -> Any:
        return z3.Or(left, right)

    def logical_not(self, condition: Any) -> Any:
        return z3.Not(condition)
