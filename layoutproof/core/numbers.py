"""The kinds of number a `place` runs on.

`+ - * // %` are the number's own. Everything beyond arithmetic is a method of a `Numbers`, so that each engine
answers in its own terms (a Python `if`, `numpy.where`, an isl piecewise function, a Z3 `If`) or says that it cannot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from layoutproof.core.errors import Unsupported
from layoutproof.core.size import Extent, Size, symbol


class Numeral(Protocol):
    """Any kind of number that `place` runs on: an int, a `Size`, a term, an array, a number of a solver.

    Both sides of an operation are of one kind, or one of them is an int. A number is compared by `Numbers` alone.
    """

    def __add__(self, other: Any, /) -> Numeral:
        """The sum."""

    def __radd__(self, other: Any, /) -> Numeral:
        """The sum."""

    def __sub__(self, other: Any, /) -> Numeral:
        """The difference."""

    def __rsub__(self, other: Any, /) -> Numeral:
        """The difference."""

    def __mul__(self, other: Any, /) -> Numeral:
        """The product."""

    def __rmul__(self, other: Any, /) -> Numeral:
        """The product."""

    def __floordiv__(self, other: Any, /) -> Numeral:
        """The quotient, rounded down."""

    def __mod__(self, other: Any, /) -> Numeral:
        """The rest of that division."""

    def __neg__(self) -> Numeral:
        """The number with the other sign."""


class Numbers:
    """Plain Python ints, and the base of every other evaluator that `place` runs on.

    A `place` written with `+ - * // %` and these methods runs on ints, arrays, digits, isl functions and Z3 terms
    alike.

    >>> from layoutproof.core.size import symbol
    >>> Numbers({"N": 20}).size(symbol("N") + 1)
    21
    """

    def __init__(self, sizes: Mapping[str, object] | None = None) -> None:
        self.sizes: Mapping[str, Any] = sizes or {}

    def size(self, extent: Any) -> Any:
        """An extent as a number of this kind; plain ints stay ints.

        Args:
            extent: An int, or a `Size` with symbols.

        Returns:
            Its value.
        """
        return extent if type(extent) is int else extent.evaluate(self.symbol)

    def symbol(self, name: str) -> Any:
        """The value of one size symbol.

        Args:
            name: The symbol.

        Returns:
            Its value.

        Raises:
            Unsupported: The symbol has no value here.
        """
        try:
            return self.sizes[name]
        except KeyError:
            raise Unsupported(f"the size {name} has no value here") from None

    def select(self, condition: Any, if_true: Any, if_false: Any) -> Any:
        """One of two numbers, by a condition.

        Args:
            condition: A truth value of this kind.
            if_true: The number where it holds.
            if_false: The number where it does not.

        Returns:
            The number.
        """
        return if_true if condition else if_false

    def minimum(self, left: Any, right: Any) -> Any:
        """The smaller of two numbers.

        Args:
            left: A number.
            right: A number.

        Returns:
            The smaller one.
        """
        return self.select(self.less(left, right), left, right)

    def maximum(self, left: Any, right: Any) -> Any:
        """The larger of two numbers.

        Args:
            left: A number.
            right: A number.

        Returns:
            The larger one.
        """
        return self.select(self.less(left, right), right, left)

    def xor(self, left: Any, right: Any) -> Any:
        """Bitwise exclusive or, for swizzles.

        Args:
            left: A number >= 0.
            right: A number >= 0.

        Returns:
            The number whose bits differ between the two.
        """
        return left ^ right

    def less(self, left: Any, right: Any) -> Any:
        """left < right.

        Args:
            left: A number.
            right: A number.

        Returns:
            A truth value of this kind.
        """
        return left < right

    def equal(self, left: Any, right: Any) -> Any:
        """left == right.

        Args:
            left: A number.
            right: A number.

        Returns:
            A truth value of this kind.
        """
        return left == right

    def logical_and(self, left: Any, right: Any) -> Any:
        """Conjunction of two truth values.

        Args:
            left: A truth value of this kind.
            right: Likewise.

        Returns:
            A truth value of this kind.
        """
        return left and right

    def logical_or(self, left: Any, right: Any) -> Any:
        """Disjunction of two truth values.

        Args:
            left: A truth value of this kind.
            right: Likewise.

        Returns:
            A truth value of this kind.
        """
        return left or right

    def logical_not(self, condition: Any) -> Any:
        """Negation of a truth value.

        Args:
            condition: A truth value of this kind.

        Returns:
            A truth value of this kind.
        """
        return not condition


INTS = Numbers()
"""Plain ints without run-time sizes."""


class SizeNumbers(Numbers):
    """Sizes themselves: a symbol stays a symbol, so what depends on its value is Undecided.

    >>> SizeNumbers().size(symbol("N") + 1)
    Size(N + 1)
    """

    def size(self, extent: Extent) -> Extent:
        return extent

    def symbol(self, name: str) -> Size:
        return symbol(name)

    def less(self, left: object, right: object) -> bool:
        return _plain(left) < _plain(right)

    def equal(self, left: object, right: object) -> bool:
        # two different normal forms may still be equal for some sizes
        return _plain(left) == _plain(right)

    def xor(self, left: object, right: object) -> int:
        return _plain(left) ^ _plain(right)


def _plain(value: object) -> int:
    if type(value) is not int:
        raise Unsupported("sizes are sums and products of names and integers, with // by integers")
    return value
