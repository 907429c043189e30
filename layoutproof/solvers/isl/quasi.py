"""The kind of number that isl decides: piecewise quasi-affine functions of sizes and indices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import islpy as isl

from layoutproof.core.errors import Unsupported
from layoutproof.core.numbers import Numbers
from layoutproof.solvers.isl.steps import Steps

SET = isl.dim_type.set
IN = isl.dim_type.in_

Number: TypeAlias = "Quasi | int"
Condition: TypeAlias = "isl.Set | bool"


class Frame:
    """The variables of one set, by position; `labels` name them in messages. Every call of isl goes through `run`."""

    def __init__(self, run: Steps, labels: Sequence[str]) -> None:
        self.run = run
        self.labels = tuple(labels)
        space = run(isl.Space.set_alloc, run.context, 0, len(self.labels))
        self.local = run(isl.LocalSpace.from_space, space)
        self.everything = run(isl.Set.universe, space)
        self.nothing = run(isl.Set.empty, space)

    def variable(self, position: int) -> Quasi:
        return Quasi(self.run(isl.PwAff.var_on_domain, self.local, SET, position), self)

    def widen(self, value: Number) -> Number:
        """A value of a frame with the first of these variables."""
        if isinstance(value, int):
            return value
        return Quasi(self.run(value.pw.add_dims, IN, len(self.labels) - len(value.frame.labels)), self)

    def constant(self, value: int) -> isl.Val:
        if -(1 << 62) < value < 1 << 62:
            return self.run(isl.Val, value, self.run.context)
        # in pieces that fit a C long; isl's reader of longer ones reports a spent budget as a syntax error
        high, low = divmod(value, 1 << 32)
        shifted = self.run(self.constant(high).mul, self.constant(1 << 32))
        return self.run(shifted.add, self.constant(low))

    def function(self, value: Number) -> isl.PwAff:
        """An int or a quasi-affine value as isl's piecewise function."""
        if not isinstance(value, int):
            return value.pw
        return self.run(isl.PwAff.val_on_domain, self.everything, self.constant(value))

    def involved(self, value: Quasi) -> str:
        """The variables that a value depends on, in words."""
        return " and ".join(label for k, label in enumerate(self.labels) if value.pw.involves_dims(IN, k, 1))


class Quasi:
    """A quasi-affine function of a frame's variables."""

    __slots__ = ("frame", "pw")

    def __init__(self, pw: isl.PwAff, frame: Frame) -> None:
        self.pw, self.frame = pw, frame

    def __add__(self, other: Number) -> Quasi:
        if isinstance(other, int):
            return self._made(self.pw.add_constant_val, self.frame.constant(other))
        return self._made(self.pw.add, other.pw)

    __radd__ = __add__

    def __neg__(self) -> Quasi:
        return self._made(self.pw.neg)

    def __sub__(self, other: Number) -> Quasi:
        return self + -other

    def __rsub__(self, other: Number) -> Quasi:
        return -self + other

    def __mul__(self, other: Number) -> Quasi:
        if isinstance(other, int):
            return self._made(self.pw.scale_val, self.frame.constant(other))
        if not self.frame.run(self.pw.is_cst) and not self.frame.run(other.pw.is_cst):
            factors = f"{self.frame.involved(self)} with {self.frame.involved(other)}"
            raise Unsupported(f"multiplies {factors}: isl cannot multiply two values that vary")
        return self._made(self.pw.mul, other.pw)

    __rmul__ = __mul__

    def __floordiv__(self, other: Number) -> Quasi:
        divisor = self._divisor(other)
        if isinstance(divisor, int):
            return self._made(self.pw.scale_down_val, self.frame.constant(divisor))._floor()
        return self._made(self.pw.div, divisor.pw)._floor()

    def __mod__(self, other: Number) -> Quasi:
        return self - (self // other) * other

    def __rfloordiv__(self, other: Number) -> Quasi:
        return (self * 0 + other) // self

    def __rmod__(self, other: Number) -> Quasi:
        return (self * 0 + other) % self

    def _made(self, call: Callable[..., isl.PwAff], *arguments: object) -> Quasi:
        return Quasi(self.frame.run(call, *arguments), self.frame)

    def _floor(self) -> Quasi:
        return self._made(self.pw.floor)

    def _divisor(self, value: Number) -> Number:
        """`value`, known to be positive and constant at least piece by piece."""
        if isinstance(value, int):
            if value < 1:
                raise Unsupported(f"divides by {value}, which is not positive")
        elif not self.frame.run(value.pw.is_cst):
            raise Unsupported(f"divides by {self.frame.involved(value)}, which isl cannot: it is no constant")
        elif not self.frame.run(self.frame.run(value.pw.le_set, self.frame.function(0)).is_empty):
            raise Unsupported("divides by a value that may be 0 or negative")
        return value


class Affine(Numbers):
    """The kind: ints and `Quasi`s; its truth values are bools and sets."""

    def __init__(self, frame: Frame, sizes: Mapping[str, Number]) -> None:
        super().__init__(sizes)
        self.frame = frame

    def select(self, condition: Condition, if_true: Number, if_false: Number) -> Number:
        if type(condition) is bool:
            return if_true if condition else if_false
        left, right = self.frame.function(if_true), self.frame.function(if_false)
        chosen = self.frame.run(condition.indicator_function)
        return Quasi(self.frame.run(isl.PwAff.cond, chosen, left, right), self.frame)

    def minimum(self, left: Number, right: Number) -> Number:
        if type(left) is int and type(right) is int:
            return min(left, right)
        return Quasi(self.frame.run(self.frame.function(left).min, self.frame.function(right)), self.frame)

    def maximum(self, left: Number, right: Number) -> Number:
        if type(left) is int and type(right) is int:
            return max(left, right)
        return Quasi(self.frame.run(self.frame.function(left).max, self.frame.function(right)), self.frame)

    def xor(self, left: Number, right: Number) -> Number:
        if type(left) is int and type(right) is int:
            return left ^ right
        raise Unsupported("takes an xor, which is not quasi-affine")

    def less(self, left: Number, right: Number) -> Condition:
        if type(left) is int and type(right) is int:
            return left < right
        return self.frame.run(self.frame.function(left).lt_set, self.frame.function(right))

    def equal(self, left: Number, right: Number) -> Condition:
        if type(left) is int and type(right) is int:
            return left == right
        return self.frame.run(self.frame.function(left).eq_set, self.frame.function(right))

    def logical_and(self, left: Condition, right: Condition) -> isl.Set:
        return self.frame.run(self._set(left).intersect, self._set(right))

    def logical_or(self, left: Condition, right: Condition) -> isl.Set:
        return self.frame.run(self._set(left).union, self._set(right))

    def logical_not(self, condition: Condition) -> Condition:
        return not condition if type(condition) is bool else self.frame.run(condition.complement)

    def _set(self, condition: Condition) -> isl.Set:
        if type(condition) is bool:
            return self.frame.everything if condition else self.frame.nothing
        return condition
