"""Values as numbers of float64: the literal oracle of the points.

Every operation is NumPy's own. Undefined memory is NaN, and so is what comes of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast
from zlib import crc32

import numpy as np

from layoutproof.ir.program import Dtype
from layoutproof.values.kinds import Shaped, Span
from layoutproof.values.known import Known, any_integers, hull, product_span
from layoutproof.values.refusals import NotModelled

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Real:
    """An array of float64. span: of integers, between which numbers they lie."""

    array: Array
    span: Span | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents in elements."""
        return tuple(self.array.shape)


def array_of(value: Shaped) -> Array:
    """The numbers of a value of a walk on float64, data or known."""
    found: Array = cast("Real | Known", value).array
    return found


EXACT = 2.0**53
"""Whole numbers up to it are exact."""
ROUNDED, SHORT, FEW = 2.0**-24, 2**12, 64
"""How far, relatively, a float32 is from the number that is meant; a number of the code with fewer binary digits than
those is meant as it is; arrays of more different numbers are weights."""
NOISE = 2.0**-47
"""How far, relatively, a result of float64 is moved where it is asked what rounding makes: some units in the last
place, so that of two that cancel more is left than rounding leaves, though they are moved nearly alike by chance."""
SHIFTS = (1, 2)
"""How often that is asked, each time with other numbers."""


class Floats:
    """One draw of float64. seed: draws inputs.  scale: their standard deviation.  sign: 1 or -1 of all, 0 of none.

    shifted: 0, or which others are taken: for numbers of the code such as round to the same float32, and for results
    such as are next to them in float64, each the same wherever one operation gives it: what cancels shows what is
    left of it.
    numbers: of those that are read as others, these.
    whole: whether inputs are whole numbers, of which many are equal, and many 0.
    among: in order, numbers between which inputs lie, and beyond them, as often in one place as in another; () of none.
    """

    exact = False

    def __init__(
        self, seed: int, scale: float = 1.0, sign: int = 0, shifted: int = 0, whole: bool = False,
        numbers: Mapping[float, float] = MappingProxyType({}), among: tuple[float, ...] = (),
    ) -> None:  # fmt: skip
        self.numbers, self.among = numbers, among
        self.seed, self.scale, self.sign, self.shifted, self.whole = seed, scale, sign, shifted, whole
        self._draw = np.random.default_rng((13, seed))
        self.axioms: set[str] = set()

    # arrays

    def draw(self, shape: Sequence[int], span: Span | None = None) -> Real:
        """Random elements: normal, or integers of the span."""
        if span is not None:
            low, high = max(span[0], -(2**31)), min(span[1], 2**31 - 1)
            return Real(self._draw.integers(low, high, tuple(shape), endpoint=True).astype(np.float64), span)
        if self.among:
            ends = np.array([self.among[0] - 1, *self.among, self.among[-1] + 1])
            place = self._draw.integers(0, ends.size - 1, tuple(shape))
            return Real(ends[place] + self._draw.random(tuple(shape)) * np.diff(ends)[place])
        normal = self.scale * self._draw.standard_normal(tuple(shape))
        normal = np.round(normal) if self.whole else normal
        return Real(self.sign * np.abs(normal) if self.sign else normal)

    def garbage(self, shape: Sequence[int], dtype: Dtype) -> Array:
        """Integers that were never written: any."""
        return any_integers(self._draw, shape, dtype)

    def undefined(self, shape: Sequence[int]) -> Real:
        """Memory that was never written."""
        return Real(np.full(tuple(shape), np.nan))

    def constant(self, values: Array) -> Real:
        """Known numbers."""
        span = None
        # what no float32 is, is no number of the code: exp2 is exp of log 2 times a number
        of_code = _is_long(values) & (values.astype(np.float32) == values) if self.shifted else values
        if self.numbers and values.dtype.kind == "f":
            for written, meant in self.numbers.items():
                values = np.where(values == written, meant, values)
        if values.dtype.kind in "iub":
            span = (int(values.min()), int(values.max())) if values.size else (0, 0)
        elif self.shifted and np.unique(values).size <= FEW:
            return Real(np.where(of_code, values * (1 + ROUNDED * np.sign(self._shift(values))), values))
        return Real(values.astype(np.float64), span)

    def map(self, data: Real, move: Callable[[Array], Array]) -> Real:
        """An operation that only moves elements."""
        return Real(move(data.array), data.span)

    def combine(self, parts: Sequence[Real], move: Callable[[Sequence[Array]], Array]) -> Real:
        """An operation that only combines several arrays into one."""
        return Real(move([p.array for p in parts]), hull([p.span for p in parts]))

    def seen(self, a: Real) -> Span | None:
        """Between which numbers the integers of this draw lie; None where one is undefined, or not exact."""
        if not a.array.size:
            return 0, 0
        low, high = float(a.array.min()), float(a.array.max())
        return (int(low), int(high)) if low >= -EXACT and high <= EXACT else None

    # arithmetic

    def _real(self, array: Array, by: str) -> Real:
        """The result of an operation."""
        if not self.shifted:
            return Real(array)
        return Real(np.where(_is_long(array), array * (1 + NOISE * self._shift(array, by)), array))

    def _shift(self, values: Array, by: str = "") -> Array:
        """From -1 to 1, of each number another one: of numbers near each other, too, and of other operations."""
        with np.errstate(over="ignore"):
            salt = np.uint64(2 * (self.shifted + 16 * crc32(by.encode())) + 1)
            mixed = np.array(values, np.float64).view(np.uint64) * salt
            mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
            mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
        return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0

    def _of(self, by: str, array: Array, a: Real, b: Real, of: Callable[[Span, Span], Span]) -> Real:
        return self._real(array, by) if a.span is None or b.span is None else Real(array, of(a.span, b.span))

    def add(self, a: Real, b: Real) -> Real:
        """a + b."""
        return self._of("add", a.array + b.array, a, b, lambda x, y: (x[0] + y[0], x[1] + y[1]))

    def neg(self, a: Real) -> Real:
        """-a."""
        return Real(-a.array, None if a.span is None else (-a.span[1], -a.span[0]))

    def sub(self, a: Real, b: Real) -> Real:
        """a - b."""
        return self._of("sub", a.array - b.array, a, b, lambda x, y: (x[0] - y[1], x[1] - y[0]))

    def mul(self, a: Real, b: Real) -> Real:
        """a b."""
        return self._of("mul", a.array * b.array, a, b, product_span)

    def div(self, a: Real, b: Real) -> Real:
        """a / b."""
        return self._real(a.array / b.array, "div")

    def reciprocal(self, b: Real) -> Real:
        """1 / b."""
        return self._real(1.0 / b.array, "div")

    def power(self, a: Real, exponent: int) -> Real:
        """a to an integer power."""
        return self._real(a.array**exponent if exponent >= 0 else 1.0 / a.array**-exponent, "power")

    def absolute(self, a: Real) -> Real:
        """|a|."""
        return Real(np.abs(a.array), a.span and (min(a.span[0], -a.span[1]), max(-a.span[0], a.span[1])))

    def exp(self, a: Real) -> Real:
        """e^a."""
        return self._real(np.exp(a.array), "exp")

    def log(self, a: Real) -> Real:
        """ln a."""
        return self._real(np.log(a.array), "log")

    def sqrt(self, a: Real) -> Real:
        """The square root."""
        return self._real(np.sqrt(a.array), "sqrt")

    def function(self, name: str, *arguments: Real, span: Span | None = None) -> Real:
        """A function by its name."""
        arrays = [a.array for a in arguments]
        if name.startswith("to "):
            return Real(_converted(name[3:], arrays[0]), span)
        if name in _NUMPY:
            found = np.asarray(_NUMPY[name](*arrays))
            return self._real(found, name) if span is None else Real(found, span)
        if name in _MATH:
            found = np.vectorize(_guarded(_MATH[name]), otypes=[np.float64])(*arrays)
            return self._real(found, name) if span is None else Real(found, span)
        raise NotModelled(f"the function {name} on float64")

    # comparisons

    def equal(self, a: Real, b: Real) -> Array:
        """Whether two are equal."""
        return np.asarray(a.array == b.array)

    def less(self, a: Real, b: Real) -> Array:
        """Whether a < b."""
        return np.asarray(a.array < b.array)

    def finite(self, a: Real) -> Array:
        """Whether it is a number."""
        return np.isfinite(a.array)

    def is_nan(self, a: Real) -> Array:
        """Whether it is no number at all."""
        return np.isnan(a.array)

    def maximum(self, a: Real, b: Real, of_constant: bool = False) -> Real:
        """The greater one."""
        span = a.span and b.span and (max(a.span[0], b.span[0]), max(a.span[1], b.span[1]))
        return Real(np.maximum(a.array, b.array), span)

    def minimum(self, a: Real, b: Real, of_constant: bool = False) -> Real:
        """The smaller one."""
        span = a.span and b.span and (min(a.span[0], b.span[0]), min(a.span[1], b.span[1]))
        return Real(np.minimum(a.array, b.array), span)

    # along the last axis

    def sum(self, a: Real) -> Real:
        """The sum along the last axis."""
        n = a.shape[-1]
        span = None if a.span is None else (n * min(0, a.span[0]), n * max(0, a.span[1]))
        return self._real(a.array.sum(-1), "sum") if span is None else Real(a.array.sum(-1), span)

    def largest(self, a: Real) -> Real:
        """The maximum along the last axis."""
        return Real(a.array.max(-1), a.span)

    def foremost(self, a: Real) -> Array:
        """Along the last axis which elements are the greatest; NaN is above all."""
        best = a.array.max(-1, keepdims=True)
        return np.asarray(np.isnan(a.array) | (a.array == best))

    def matmul(self, a: Real, b: Real) -> Real:
        """[.., M, K] times [.., K, N]."""
        n = a.shape[-1]

        def span(x: Span, y: Span) -> Span:
            low, high = product_span(x, y)
            return n * low, n * high

        found = self._of("matmul", a.array @ b.array, a, b, span)
        if found.span is not None and max(-found.span[0], found.span[1]) > EXACT:
            # partial sums may be rounded, though the sum is small
            most = np.abs(a.array) @ np.abs(b.array)
            return Real(np.where(most <= EXACT, found.array, np.nan), found.span)
        return found

    def accumulate(self, base: Real, places: Array, values: Real) -> Real:
        """base with values added at flat places; places below 0 are left out."""
        out = base.array.reshape(-1).copy()
        chosen = places.reshape(-1) >= 0
        np.add.at(out, places.reshape(-1)[chosen], values.array.reshape(-1)[chosen])
        return Real(out.reshape(base.shape))


def _is_long(values: Array) -> Array:
    """Which numbers have many binary digits."""
    mantissa, _ = np.frexp(np.where(np.isfinite(values), values, 0))
    return np.asarray(mantissa * SHORT != np.round(mantissa * SHORT))


def _converted(name: str, array: Array) -> Array:
    """A conversion of numbers to a narrow type."""
    import ml_dtypes

    if hasattr(ml_dtypes, name):
        return array.astype(getattr(ml_dtypes, name)).astype(np.float64)
    if name.startswith("e"):
        return _reduced(array, *map(int, name[1:].split("m")))
    return np.trunc(array)


def _reduced(array: Array, exponent: int, mantissa: int) -> Array:
    """Numbers with fewer bits: rounded to the nearest, too small ones 0, too large ones infinite."""
    fraction, power = np.frexp(array)
    rounded = np.ldexp(np.round(np.ldexp(fraction, mantissa + 1)), power - mantissa - 1)
    bias = 2 ** (exponent - 1) - 1
    with np.errstate(all="ignore"):
        rounded = np.where(np.abs(rounded) < 2.0 ** (1 - bias), np.copysign(0.0, array), rounded)
        return np.where(np.abs(rounded) >= 2.0 ** (bias + 1), np.copysign(np.inf, array), rounded)


def _guarded(function: Callable[..., float]) -> Callable[..., float]:
    def of(*x: float) -> float:
        try:
            return function(*x)
        except (ValueError, OverflowError, ZeroDivisionError):
            return math.nan

    return of


def _erf_inv(x: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf((x + 1) / 2) / math.sqrt(2)


_NUMPY: dict[str, Callable[..., Any]] = {
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "atan2": np.arctan2, "cbrt": np.cbrt, "floor": np.floor, "ceil": np.ceil, "pow": np.power, "rem": np.fmod,
    "round_to_even": np.round, "round": lambda x: np.trunc(x + np.copysign(0.5, x)), "tanh": np.tanh,
}  # fmt: skip
_MATH: dict[str, Callable[..., float]] = {
    "erf": math.erf, "erf_inv": _erf_inv, "lgamma": math.lgamma,
}  # fmt: skip
