"""Digits: numbers kept as sums over named digits, the structural engine's kind of number.

An index starts as one digit. `x // 8` and `x % 8` split it into a high digit and a low digit (x = 8*high + low); every
number that mentions the old digit then reads as the sum over the new ones. As long as divisors nest, as tiles do,
every coordinate of a layout becomes a linear form over independent digits, whatever the size of the array. Where
they do not nest, `Undecided` says so and another engine is asked.

Digits of constant extents that a division cuts across may be joined into one where they are asked to (`Digit.joins`):
3*a + b with a < 2 and b < 3 is one digit below 6, which splits by 2. A number that mentions some of them otherwise is
then undecided, and so is which index has certain digits: this is for proofs about sizes that are not known.

Extents and coefficients are ints, or `Size`s for arrays of run-time size; then every step that is taken holds for all
sizes, and one that would not is not taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cmp_to_key
from typing import Any, NoReturn

from layoutproof.core.errors import Unsupported
from layoutproof.core.numbers import Numbers, Numeral
from layoutproof.core.size import Extent, ceil_div, divide, evaluate, surely_less, symbol


class Digit:
    """One digit, 0 <= digit < extent, of the index `dimension`, counting `weight` each; perhaps split further.

    When extent does not divide evenly, the digits it splits into form a larger box than the valid indices. One that was
    joined with others is split by None into the digit of all of them, twice. `joins`: whether it may be.
    """

    __slots__ = ("dimension", "extent", "joins", "split", "weight")

    def __init__(self, dimension: int, extent: Any, weight: Any, joins: bool = False) -> None:
        self.dimension = dimension
        self.extent = extent
        self.weight = weight
        self.joins = joins
        self.split: tuple[Any, Any, Any] | None = None

    def split_by(self, by: Extent) -> tuple[Digit, Digit]:
        """The digits `self // by` and `self % by`."""
        high = Digit(self.dimension, _pieces(self.extent, by), self.weight * by, self.joins)
        low = Digit(self.dimension, by, self.weight, self.joins)
        self.split = (by, high, low)
        return high, low

    def leaves(self) -> list[Digit]:
        """The digits it was split into, most significant first; itself when it was not."""
        return leaves_of([self])

    def value(self, values: Mapping[Digit, int]) -> int:
        """The number that its leaves make, with 0 for leaves without a value.

        Raises Undecided where the values belong to the padding of a split: no number has those digits. Each split is
        looked at, because 7 split by 3 has a value 8, which within a larger whole may look like another index.
        """
        if self.split is None:
            return values.get(self, 0)
        by, high, low = self.split
        if by is None:
            raise Unsupported("digits do not tell which index joined digits make")
        whole: int = by * high.value(values) + low.value(values)
        if not surely_less(whole, self.extent):
            raise Unsupported("the smallest digits that violate the claim belong to padding")
        return whole


class Joint(Digit):
    """Digits joined into one: the sum of weight * digit over its parts, a number in mixed radix."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[tuple[int, Digit]]) -> None:
        # an index counts before a replica: a digit of both moves with the index
        super().__init__(min(d.dimension for _, d in parts), parts[-1][0] * parts[-1][1].extent, 1, True)
        self.parts = tuple(parts)
        for _, digit in parts:
            digit.split = (None, self, self)


def _pieces(extent: Any, by: Any) -> Any:
    """How many pieces of `by` cover `extent`; a constant number of them where that many always do.

    ceil(N/4) covers N in at most 4 pieces, and in 3 for N = 5: the box of digits may hold more than the valid indices.
    """
    pieces = ceil_div(extent, by)
    if type(pieces) is int or type(by) is int:
        return pieces
    likely = -(-evaluate(extent, _large) // evaluate(by, _large))
    return likely if surely_less(extent, by * likely + 1) else pieces


def _large(name: str) -> int:
    """A large size, one for all names: a quotient of sizes is then near what it tends to."""
    return 1 << 40


def leaves_of(roots: Sequence[Digit]) -> list[Digit]:
    """All digits that these were split into, in lexicographic order of the indices they make.

    Joined digits stand where the first of them would, in no such order. Undecided where some belong to other roots.
    """
    found: list[Digit] = []
    joined: dict[Joint, int] = {}
    todo = [*roots]
    todo.reverse()
    while todo:
        digit = todo.pop()
        if digit.split is None:
            found.append(digit)
            continue
        by, high, low = digit.split
        if by is None:
            joined[high] = joined.get(high, 0) + 1
            if joined[high] == 1:
                todo.append(high)
        else:
            todo.append(low)
            todo.append(high)
    if joined and any(count != len(joint.parts) for joint, count in joined.items()):
        raise Unsupported("digits of an index are joined with others")
    return found


class DigitSum:
    """constant + sum of coefficient * digit; immutable, with the last division remembered."""

    __slots__ = ("_divided", "constant", "terms")

    def __init__(self, terms: tuple[tuple[Any, Digit], ...], constant: Any = 0) -> None:
        self.terms = terms
        self.constant = constant
        self._divided: tuple[Any, Any, Any] | None = None

    def over_leaves(self) -> dict[Digit, Any]:
        """Coefficients over unsplit digits, none of them zero."""
        if len(self.terms) == 1 and self.terms[0][1].split is None:
            return {self.terms[0][1]: self.terms[0][0]}
        total: dict[Digit, Any] = {}
        joined: dict[Joint, dict[Digit, Any]] = {}
        todo = list(self.terms)
        while todo or joined:
            if not todo:
                todo.append(_whole(joined))
            coefficient, digit = todo.pop()
            if digit.split is not None:
                by, high, low = digit.split
                if by is None:
                    parts = joined.setdefault(high, {})
                    parts[digit] = parts.get(digit, 0) + coefficient
                    continue
                todo.append((coefficient * by, high))
                todo.append((coefficient, low))
            elif digit in total:
                coefficient = total[digit] + coefficient
                if coefficient == 0:
                    del total[digit]
                else:
                    total[digit] = coefficient
            else:
                total[digit] = coefficient
        return total

    def __add__(self, other: Any) -> Any:
        if type(other) is DigitSum:
            return DigitSum(self.terms + other.terms, self.constant + other.constant)
        return DigitSum(self.terms, self.constant + other)

    __radd__ = __add__

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + other * -1

    def __rsub__(self, other: Any) -> Any:
        return self * -1 + other

    def __mul__(self, other: Any) -> Any:
        if type(other) is DigitSum:
            if other.terms and self.terms:
                raise Unsupported("digits cannot multiply two indices")
            return other * self.constant if not self.terms else self * other.constant
        if other == 0:
            return DigitSum((), 0)
        return DigitSum(tuple([(c * other, d) for c, d in self.terms]), self.constant * other)

    __rmul__ = __mul__

    def __floordiv__(self, by: Any) -> Any:
        known = self._divided
        if known is None or known[0] != by:
            known = self._divide(by)
        return known[1]

    def __mod__(self, by: Any) -> Any:
        known = self._divided
        if known is None or known[0] != by:
            known = self._divide(by)
        return known[2]

    def __rfloordiv__(self, other: object) -> NoReturn:
        raise Unsupported("digits cannot divide by an index")

    __rmod__ = __rfloordiv__

    def _divide(self, by: Any) -> tuple[Any, Any, Any]:
        """(by, quotient, rest)."""
        terms = self.terms
        if type(by) is int and by > 1 and len(terms) == 1 and type(self.constant) is int and self.constant == 0:
            coefficient, digit = terms[0]
            extent = digit.extent
            # the common step of a tiled layout: one digit with coefficient 1, unsplit or split like that before
            if coefficient == 1 and type(extent) is int and (digit.split is None or digit.split[0] == by):
                if extent <= by:
                    divided: tuple[Any, Any, Any] = (by, 0, self)
                else:
                    if digit.split is None:
                        high = Digit(digit.dimension, (extent + (by - 1)) // by, digit.weight * by, digit.joins)
                        digit.split = (by, high, Digit(digit.dimension, by, digit.weight, digit.joins))
                    divided = (by, DigitSum(((1, digit.split[1]),)), DigitSum(((1, digit.split[2]),)))
                self._divided = divided
                return divided
        if type(by) is int and by == 1:
            return (1, self, 0)
        if not terms and type(by) is int and type(self.constant) is int and by > 0:
            return (by, self.constant // by, self.constant % by)
        if type(by) is DigitSum:
            if by.terms:
                raise Unsupported("digits cannot divide by an index")
            by = by.constant
        return self._divide_any(by)

    def _divide_any(self, by: Any) -> tuple[Any, Any, Any]:
        if type(by) is int and by <= 0:
            raise Unsupported(f"digits divide by positive numbers only, not {by}")
        whole, left = divide(self.constant, by)
        form, most = self.over_leaves(), left
        cut: list[tuple[Digit, Any, Any, Any]] = []
        for digit, coefficient in form.items():
            q, r = divide(coefficient, by)
            pieces, over = divide(by, r) if r != 0 else (0, 1)
            splits = over == 0 and not surely_less(digit.extent, pieces + 1)
            most = most + r * ((pieces if splits else digit.extent) - 1)
            cut.append((digit, q, r, pieces if splits else 0))
        if not surely_less(most, by) or not surely_less(-1, left):
            if _join(form, by):
                return self._divide_any(by)
            raise Unsupported(f"digits: a division by {by} cuts across digits")
        quotient: list[tuple[Any, Digit]] = []
        rest: list[tuple[Any, Digit]] = []
        for digit, q, r, pieces in cut:
            if q != 0:
                quotient.append((q, digit))
            if pieces != 0:
                high, digit = digit.split_by(pieces)
                quotient.append((1, high))
            if r != 0:
                rest.append((r, digit))
        self._divided = (by, DigitSum(tuple(quotient), whole), DigitSum(tuple(rest), left))
        return self._divided


def _join(form: Mapping[Digit, Any], by: Any) -> bool:
    """Joins the digits that a division cuts across, where they are one number in mixed radix; whether it did."""
    if type(by) is not int or not all(type(c) is int for c in form.values()):
        return False
    steps = sorted([(c, d) for d, c in form.items() if c % by], key=lambda step: step[0])
    if len(steps) < 2 or not all(d.joins and type(d.extent) is int for _, d in steps):
        return False
    least = expected = steps[0][0]
    for step, digit in steps:
        if step != expected or step <= 0:
            return False
        expected = step * digit.extent
    Joint([(step // least, digit) for step, digit in steps])
    return True


def _whole(joined: dict[Joint, dict[Digit, Any]]) -> tuple[Any, Joint]:
    """Takes out joined digits whose sum is a multiple of their number, and gives that. Undecided where none is."""
    for joint, coefficients in joined.items():
        first = coefficients.get(joint.parts[0][1], 0)
        if all(coefficients.get(digit, 0) == first * weight for weight, digit in joint.parts):
            del joined[joint]
            return first, joint
    raise Unsupported("digits that were joined are taken apart")


class DigitNumbers(Numbers):
    """Places on digits; run-time sizes become polynomials, rewritten by what is assumed of them.

    joins: whether digits of constant extents may be joined.
    """

    def __init__(self, sizes: Mapping[str, Any] | None = None, joins: bool = False) -> None:
        super().__init__(sizes or {})
        self.joins = joins

    def symbol(self, name: str) -> Any:
        value = self.sizes.get(name)
        return symbol(name) if value is None else value

    def xor(self, left: Numeral, right: Numeral) -> Numeral:
        if all(type(end) is int and end == 0 for end in ends(right)):
            # a swizzle of bits that are never set
            return left
        raise Unsupported("digits have no exclusive or")

    def less(self, left: Numeral, right: Numeral) -> bool:
        """True or False when the answer is the same for all digits and sizes."""
        low, high = ends(right - left)
        if surely_less(0, low):
            return True
        if surely_less(high, 1):
            return False
        raise Unsupported("digits cannot settle a comparison for all indices and sizes")

    def equal(self, left: Numeral, right: Numeral) -> bool:
        low, high = ends(right - left)
        if surely_less(0, low) or surely_less(high, 0):
            return False
        if type(low) is int and type(high) is int and low == high == 0:
            return True
        raise Unsupported("digits cannot settle an equation for all indices and sizes")


def bounds(form: Mapping[Digit, Any], constant: Any) -> tuple[Any, Any]:
    """The smallest and largest value of a linear form over its digits' box. Undecided when a sign is unknown."""
    low = high = constant
    for digit, coefficient in form.items():
        if coefficient > 0 if type(coefficient) is int else surely_less(-1, coefficient):
            high = high + coefficient * (digit.extent - 1)
        elif type(coefficient) is int or surely_less(coefficient, 1):
            low = low + coefficient * (digit.extent - 1)
        else:
            raise Unsupported(f"digits cannot tell the sign of {coefficient}")
    return low, high


def magnitude(coefficient: Any) -> Any:
    """The absolute value of a coefficient; Undecided when its sign depends on sizes."""
    if type(coefficient) is int:
        return abs(coefficient)
    if surely_less(0, coefficient):
        return coefficient
    if surely_less(coefficient, 0):
        return -coefficient
    raise Unsupported(f"digits cannot tell the sign of {coefficient}")


def ends(value: Any) -> tuple[Any, Any]:
    """The smallest and largest value of a number on digits. Undecided when a sign is unknown."""
    if type(value) is not DigitSum:
        return value, value
    if len(value.terms) == 1:
        coefficient, digit = value.terms[0]
        if digit.split is None and type(coefficient) is int and coefficient > 0:
            return value.constant, value.constant + coefficient * (digit.extent - 1)
    return bounds(value.over_leaves(), value.constant)


def index_of(dimensions: int, roots: Iterable[Digit], values: Mapping[Digit, int]) -> tuple[int, ...]:
    """The index whose digits have these values, all others 0; Undecided where no index has them."""
    index = [0] * dimensions
    for root in roots:
        index[root.dimension] = root.value(values)
    return tuple(index)


def readable(coordinates: Iterable[Numeral]) -> tuple[set[Digit], bool]:
    """The digits that can be read back from the coordinates, and whether some coordinate was of no use."""
    known: set[Digit] = set()
    waiting: list[dict[Digit, Any]] = []
    for coordinate in coordinates:
        if type(coordinate) is not DigitSum:
            continue
        terms = coordinate.terms
        if len(terms) == 1 and terms[0][1].split is None and type(terms[0][0]) is int:
            known.add(terms[0][1])
        else:
            waiting.append(coordinate.over_leaves())
    return decoded(known, waiting)


def decoded(known: set[Digit], waiting: list[dict[Digit, Any]]) -> tuple[set[Digit], bool]:
    """More digits from forms in which all others are known already."""
    progress = True
    while progress and waiting:
        progress = False
        later = []
        for form in waiting:
            unknown = {d: c for d, c in form.items() if d not in known}
            if decodes(unknown):
                known.update(unknown)
                progress = True
            else:
                later.append(form)
        waiting = later
    return known, bool(waiting)


def decodes(form: dict[Digit, Extent]) -> bool:
    """Whether the digits can be read back from the sum: each outweighs all lighter ones together."""
    span: Any = 0
    for digit, coefficient in ascending(form):
        if not surely_less(span, magnitude(coefficient)):
            return False
        span = span + magnitude(coefficient) * (digit.extent - 1)
    return True


def ascending(form: Mapping[Digit, Any]) -> list[tuple[Digit, Any]]:
    """The digits of a form with their coefficients, the smallest step first. Unsupported where a sign is unknown."""
    if all(type(c) is int for c in form.values()):
        return sorted(form.items(), key=lambda item: abs(item[1]))
    sizes = [(magnitude(c), d, c) for d, c in form.items()]
    sizes.sort(key=cmp_to_key(_by_size))
    return [(digit, coefficient) for _, digit, coefficient in sizes]


def _by_size(left: tuple[Any, Digit, Any], right: tuple[Any, Digit, Any]) -> int:
    return -1 if surely_less(left[0], right[0] + 1) else 1 if surely_less(right[0], left[0] + 1) else 0
