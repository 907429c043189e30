"""The kind of number that isl decides: piecewise quasi-affine functions of sizes and indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import islpy as isl

from layoutproof.core.errors import Undecided
from layoutproof.core.numbers import Numbers

SET = isl.dim_type.set
IN = isl.dim_type.in_


class Frame:
    """The variables of one set, by position; `labels` name them in messages."""

    def __init__(self, context: Any, labels: Sequence[str]) -> None:
        self.context = context
        self.labels = tuple(labels)
        space = isl.Space.set_alloc(context, 0, len(self.labels))
        self.local = isl.LocalSpace.from_space(space)
        self.everything = isl.Set.universe(space)
        self.nothing = isl.Set.empty(space)

    def variable(self, position: int) -> Quasi:
        return Quasi(isl.PwAff.var_on_domain(self.local, SET, position), self)

    def widen(self, value: Any) -> Any:
        """A value of a frame with the first of these variables."""
        if type(value) is int:
            return value
        return Quasi(value.pw.add_dims(IN, len(self.labels) - len(value.frame.labels)), self)

    def constant(self, value: int) -> Any:
        if -(1 << 62) < value < 1 << 62:
            return isl.Val(value, self.context)
        # in pieces that fit a C long; isl's reader of longer ones reports a spent budget as a syntax error
        high, low = divmod(value, 1 << 32)
        return self.constant(high).mul(self.constant(1 << 32)).add(self.constant(low))

    def function(self, value: Any) -> Any:
        """An int or a quasi-affine value as isl's piecewise function."""
        return isl.PwAff.val_on_domain(self.everything, self.constant(value)) if type(value) is int else value.pw

    def involved(self, value: Quasi) -> str:
        """The variables that a value depends on, in words."""
        return " and ".join(label for k, label in enumerate(self.labels) if value.pw.involves_dims(IN, k, 1))


class Quasi:
    """A quasi-affine function of a frame's variables."""

    __slots__ = ("frame", "pw")

    def __init__(self, pw: Any, frame: Frame) -> None:
        self.pw, self.frame = pw, frame

    def __add__(self, other: Any) -> Quasi:
        if type(other) is int:
            return Quasi(self.pw.add_constant_val(self.frame.constant(other)), self.frame)
        return Quasi(self.pw.add(other.pw), self.frame)

    __radd__ = __add__

    def __neg__(self) -> Quasi:
        return Quasi(self.pw.neg(), self.frame)

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Quasi:
        if type(other) is int:
            return Quasi(self.pw.scale_val(self.frame.constant(other)), self.frame)
        if not self.pw.is_cst() and not other.pw.is_cst():
            factors = f"{self.frame.involved(self)} with {self.frame.involved(other)}"
            raise Undecided(f"multiplies {factors}: isl cannot multiply two values that vary")
        return Quasi(self.pw.mul(other.pw), self.frame)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Quasi:
        divisor = self._divisor(other)
        if type(divisor) is int:
            return Quasi(self.pw.scale_down_val(self.frame.constant(divisor)).floor(), self.frame)
        return Quasi(self.pw.div(divisor.pw).floor(), self.frame)

    def __mod__(self, other: Any) -> Any:
        return self - (self // other) * other

    def __rfloordiv__(self, other: Any) -> Any:
        return (self * 0 + other) // self

    def __rmod__(self, other: Any) -> Any:
        return (self * 0 + other) % self

    def _divisor(self, value: Any) -> Any:
        """`value`, known to be positive and constant at least piece by piece."""
        if type(value) is int:
            if value < 1:
                raise Undecided(f"divides by {value}, which is not positive")
        elif not value.pw.is_cst():
            raise Undecided(f"divides by {self.frame.involved(value)}, which isl cannot: it is no constant")
        elif not value.pw.le_set(self.frame.function(0)).is_empty():
            raise Undecided("divides by a value that may be 0 or negative")
        return value


class Affine(Numbers):
    """The kind: ints and `Quasi`s; its truth values are bools and sets."""

    def __init__(self, frame: Frame, sizes: Mapping[str, Any]) -> None:
        super().__init__(sizes)
        self.frame = frame

    def select(self, condition: Any, if_true: Any, if_false: Any) -> Any:
        if type(condition) is bool:
            return if_true if condition else if_false
        left, right = self.frame.function(if_true), self.frame.function(if_false)
        return Quasi(isl.PwAff.cond(condition.indicator_function(), left, right), self.frame)

    def minimum(self, left: Any, right: Any) -> Any:
        if type(left) is int and type(right) is int:
            return min(left, right)
        return Quasi(self.frame.function(left).min(self.frame.function(right)), self.frame)

    def maximum(self, left: Any, right: Any) -> Any:
        if type(left) is int and type(right) is int:
            return max(left, right)
        return Quasi(self.frame.function(left).max(self.frame.function(right)), self.frame)

    def xor(self, left: Any, right: Any) -> Any:
        if type(left) is int and type(right) is int:
            return left ^ right
        raise Undecided("takes an xor, which is not quasi-affine")

    def less(self, left: Any, right: Any) -> Any:
        if type(left) is int and type(right) is int:
            return left < right
        return self.frame.function(left).lt_set(self.frame.function(right))

    def equal(self, left: Any, right: Any) -> Any:
        if type(left) is int and type(right) is int:
            return left == right
        return self.frame.function(left).eq_set(self.frame.function(right))

    def both(self, left: Any, right: Any) -> Any:
        return self._set(left).intersect(self._set(right))

    def either(self, left: Any, right: Any) -> Any:
        return self._set(left).union(self._set(right))

    def opposite(self, condition: Any) -> Any:
        return not condition if type(condition) is bool else condition.complement()

    def _set(self, condition: Any) -> Any:
        if type(condition) is bool:
            return self.frame.everything if condition else self.frame.nothing
        return condition
