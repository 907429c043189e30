"""Coordinates that are permuted at the end, which swizzles do: where two of them differ, and which number none takes.

A permutation moves numbers within aligned windows, each window alike, so a number and the one a window further on move
by as much. Steps of digits then count modulo the window for all extents: a small box is searched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd
from typing import Any, NamedTuple

from layoutproof.core.budget import spend
from layoutproof.core.errors import BudgetExceeded, Unsupported
from layoutproof.core.index_map import LARGEST_REST, Permutation
from layoutproof.core.numbers import Numeral
from layoutproof.core.size import Extent, as_size
from layoutproof.solvers.digits.number import Digit, ends
from layoutproof.solvers.digits.sets import Values, form_of
from layoutproof.solvers.equations import solution, solutions

STEPS = 1 << 17
"""Values of digits that are looked at: some tens of milliseconds."""
BEYOND = 256
"""Numbers around the end of a range that are looked at, for each choice of sizes that is tried."""
SOLVED = 2_000
"""Choices of digits that may make one number."""
COUNTED = 16
"""Values that cost as much as one step of a budget."""


class _DigitStep(NamedTuple):
    """A digit below `extent` that adds `by` to one number and `by - apart` to the other.

    digit: None for a multiple that a size may be, of which nothing more is known.
    """

    digit: Digit | None
    by: int
    apart: int
    extent: int


def first_difference(
    pair: tuple[Numeral, Numeral], moved: tuple[Permutation | None, Permutation | None], leaves: Sequence[Digit]
) -> Values | None:
    """The first digits, in the order of `leaves`, at which two coordinates differ once each is permuted.

    Exact for constant sizes. Where sizes are symbolic, a superset may be searched.
    Raises Undecided where steps depend on sizes on one side alone, and over `STEPS`.
    """
    (form, constant), (form2, constant2) = map(form_of, pair)
    alike = form == form2 and constant == constant2
    window = _window(moved, alike)
    if window == 1 and alike:
        return None
    steps = list(_free(constant, constant2, window))
    for leaf in leaves:
        steps += _steps(leaf, form.get(leaf, 0), form2.get(leaf, 0), window)
    if any(step.extent > STEPS for step in steps) and any(type(leaf.extent) is not int for leaf in leaves):
        raise BudgetExceeded(f"a window of {window} places is too large to look at for all sizes")
    start = _whole(constant)
    apart = start - _whole(constant2)
    found = _DigitSearch(steps, moved, window).first(start, apart)
    if found is None:
        return None
    return {step.digit: value for step, value in zip(steps, found, strict=True) if value and step.digit is not None}


def first_hole(coordinate: Numeral, moved: Permutation, extent: int, full: int) -> int | None:
    """The smallest number below `extent` that a coordinate on exact digits does not take once it is permuted.

    full: without the permutation, the same; `extent` where there is none.
    Raises Undecided where too many numbers would have to be looked at.
    """
    # runs below are full, and stay so
    start, end = moved.around(full)
    end = min(end, extent)
    if end - start > LARGEST_REST:
        raise Unsupported(f"a window of {moved.window} places is too large to look for its first hole")
    form, constant = form_of(coordinate)
    low, high = ends(coordinate)
    strides, ranges = list(form.values()), [(0, digit.extent - 1) for digit in form]
    for number in range(start, end):
        before = moved.apply(number)
        if before >= full and (not low <= before <= high or solution(strides, ranges, before - constant) is None):
            return number
    return None


def moved_beyond(coordinate: Numeral, moved: Permutation, extent: int, leaves: Sequence[Digit]) -> list[Values]:
    """For each number around `extent` that is permuted to one not below it, the first digits that make it, if any do.

    Raises Undecided where too many numbers would have to be looked at, and where too many digits make one.
    """
    start, end = moved.around(extent)
    if end - start > BEYOND:
        raise Unsupported(f"a window of {moved.window} places is too large to look for what leaves it")
    form, constant = form_of(coordinate)
    low, high = ends(coordinate)
    digits = [leaf for leaf in leaves if leaf in form]
    strides, ranges = [form[digit] for digit in digits], [(0, digit.extent - 1) for digit in digits]
    found: list[Values] = []
    for number in range(max(start, low), min(end, high + 1)):
        if moved.apply(number) >= extent:
            first = min(solutions(strides, ranges, number - constant, SOLVED), default=None)
            if first is not None:
                found.append({digit: value for digit, value in zip(digits, first, strict=True) if value})
    return found


def _window(moved: tuple[Permutation | None, Permutation | None], alike: bool) -> int:
    """The common window of both sides; for the same number on both, without the part that the sides share."""
    window = max(one.window if one else 1 for one in moved)
    if not alike:
        return window
    bits = [1 << bit for bit in range(window.bit_length() - 1)]
    return max((2 * bit for bit in bits if _moved(moved[0], bit) != _moved(moved[1], bit)), default=1)


def _moved(by: Permutation | None, number: int) -> int:
    return number if by is None else by.apply(number)


def _steps(leaf: Digit, by: Extent, other: Numeral, window: int) -> Iterator[_DigitStep]:
    """The steps of a digit in the two numbers; none where it adds whole windows to both."""
    yield from _free(by, other, window)
    by, other = _whole(by), _whole(other)
    apart, period = by - other, window // gcd(by, other, window)
    # one period further on the two numbers are as far apart, or no longer where they were
    looked_at = period if apart == 0 else period + 1
    extent = min(leaf.extent, looked_at) if type(leaf.extent) is int else looked_at
    if extent > 1 and (by or other):
        yield _DigitStep(leaf, by, apart, extent)


def _free(by: Extent, other: Numeral, window: int) -> Iterator[_DigitStep]:
    """The amounts that a step which depends on sizes may add to both numbers: any multiple of its divisor."""
    if type(by) is type(other) is int:
        return
    if not by == other:
        raise Unsupported("digits cannot tell how far apart two permuted numbers are for all sizes")
    divisor = gcd(window, *(coefficient for mono, coefficient in as_size(by).terms if mono))
    if divisor != window:
        yield _DigitStep(None, divisor, 0, window // divisor)


def _whole(number: Any) -> int:
    """The part of a number that does not depend on sizes."""
    return number if type(number) is int else sum(c for mono, c in as_size(number).terms if not mono)


def is_of_bits(coordinate: Numeral) -> bool:
    """Whether a sum is one of single bits, each of one digit or of the constant: then rank over bits is quicker."""
    form, constant = form_of(coordinate)
    if type(constant) is not int or constant < 0:
        return False
    taken = constant
    for digit, by in form.items():
        if not type(by) is type(digit.extent) is int or by <= 0 or by & (by - 1) or digit.extent & (digit.extent - 1):
            return False
        reached = by * (digit.extent - 1)
        if taken & reached:
            return False
        taken |= reached
    return True


class _DigitSearch:
    """Digits in order, the smallest values first; states without a solution are not searched again."""

    def __init__(self, steps: Sequence[_DigitStep], moved: tuple[Permutation | None, Permutation | None], window: int):
        self.steps = steps
        self.moved = moved
        self.window = window
        self.vain: set[tuple[int, int, int]] = set()
        self.left = STEPS

    def first(self, start: int, apart: int) -> list[int] | None:
        """The first values at which numbers differ that begin `apart` from each other, the one at `start`."""
        try:
            return self._from(0, start % self.window, apart)
        finally:
            spend((STEPS - self.left) // COUNTED)

    def _from(self, number: int, at: int, apart: int) -> list[int] | None:
        if number == len(self.steps):
            other = (at - apart) % self.window
            # both move within their windows
            same = _moved(self.moved[0], at) - at + apart == _moved(self.moved[1], other) - other
            return None if same else []
        if (number, at, apart) in self.vain:
            return None
        step = self.steps[number]
        for value in range(step.extent):
            self.left -= 1
            if self.left < 0:
                raise BudgetExceeded(f"more than {STEPS} values of digits to look at")
            rest = self._from(number + 1, (at + step.by * value) % self.window, apart + step.apart * value)
            if rest is not None:
                return [value, *rest]
        self.vain.add((number, at, apart))
        return None
