"""What rules ask of a kind of number: `Points`, `Floats`, or whatever else a walk runs on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import numpy as np

from layoutproof.ir.program import Dtype

Array = np.ndarray[Any, Any]
Span = tuple[int, int]
"""The least and the greatest of some numbers."""


class Shaped(Protocol):
    """A value of a walk: what is known, data of a kind of number, bits of data, complex numbers, memory, or what the
    devices of a mesh hold."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents in elements."""


class Data(Shaped, Protocol):
    """An array of a kind of number. span: of integers, between which numbers they lie; None of floats."""

    @property
    def span(self) -> Span | None:
        """The least and the greatest that an element may be."""


D = TypeVar("D", bound=Data)


def with_span(data: D, span: Span | None) -> D:
    """The same elements, between other numbers. Each kind of number has its arrays as dataclasses with a span."""
    return replace(data, span=span)  # type: ignore[type-var]


class NumberKind(Protocol[D]):
    """A kind of number, with arrays of its own. exact: whether it is a point of fields, and not one draw of float64."""

    exact: bool

    def draw(self, shape: Sequence[int], span: Span | None = None) -> D:
        """Random elements."""

    def garbage(self, shape: Sequence[int], dtype: Dtype) -> Array:
        """Integers that were never written: any."""

    def undefined(self, shape: Sequence[int]) -> D:
        """Memory that was never written."""

    def constant(self, values: Array) -> D:
        """Known numbers."""

    def map(self, data: D, move: Callable[[Array], Array]) -> D:
        """What moves elements and computes nothing."""

    def combine(self, parts: Sequence[D], move: Callable[[Sequence[Array]], Array]) -> D:
        """What makes one array of several and computes nothing."""

    def add(self, a: D, b: D) -> D:
        """a + b."""

    def neg(self, a: D) -> D:
        """-a."""

    def sub(self, a: D, b: D) -> D:
        """a - b."""

    def mul(self, a: D, b: D) -> D:
        """a b."""

    def div(self, a: D, b: D) -> D:
        """a / b."""

    def reciprocal(self, b: D) -> D:
        """1 / b."""

    def power(self, a: D, exponent: int) -> D:
        """a to a whole number."""

    def exp(self, a: D) -> D:
        """e to a."""

    def log(self, a: D) -> D:
        """The natural logarithm."""

    def sqrt(self, a: D) -> D:
        """The square root."""

    def absolute(self, a: D) -> D:
        """|a|."""

    def function(self, name: str, *arguments: D, span: Span | None = None) -> D:
        """Any other function, by its name."""

    def equal(self, a: D, b: D) -> Array:
        """Where a == b."""

    def less(self, a: D, b: D) -> Array:
        """Where a < b."""

    def finite(self, a: D) -> Array:
        """Where a is a number."""

    def is_nan(self, a: D) -> Array:
        """Where a is NaN."""

    def maximum(self, a: D, b: D, of_constant: bool = False) -> D:
        """The greater one. of_constant: whether one of them is of the code."""

    def minimum(self, a: D, b: D, of_constant: bool = False) -> D:
        """The smaller one."""

    def sum(self, a: D) -> D:
        """The sum along the last axis."""

    def largest(self, a: D) -> D:
        """The maximum along the last axis."""

    def foremost(self, a: D) -> Array:
        """Which along the last axis is the maximum."""

    def matmul(self, a: D, b: D) -> D:
        """Products of matrices, [batch, rows, summed] by [batch, summed, columns]."""

    def accumulate(self, base: D, places: Array, values: D) -> D:
        """Values added at flat places; -1 is left out."""


Kind = NumberKind[Data]
"""Some kind of number: a walk does not say which, and gives it no arrays but its own."""
