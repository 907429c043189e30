"""And, or, not of z3's conditions, which every way to write integers shares."""

from __future__ import annotations

from typing import Any

import z3


class Connectives:
    """Part of a `Dialect`."""

    def logical_and(self, left: Any, right: Any) -> Any:
        return z3.And(left, right)

    def logical_or(self, left: Any, right: Any) -> Any:
        return z3.Or(left, right)

    def logical_not(self, condition: Any) -> Any:
        return z3.Not(condition)
