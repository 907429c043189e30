"""Maps with replicas on digits: every question about sets of places, axis by axis, as sums of steps on one line.

A coordinate is a sum over digits of the index and of the replica. Coordinates without a common digit are independent;
so are strides of one coordinate that cannot reach each other (`sumset.cuts`); coordinates that do share digits are one
number in mixed radix. The rest are lines with a few steps, decided exactly: by superincreasing strides where that
is enough, else by the set of all sums. A violation with the fewest digits at work lies on one line, so the smallest
counterexample is the smallest of the lines' own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import gcd, prod
from typing import Any

from layoutproof.core.errors import Unsupported
from layoutproof.core.progressions import Progression, low_high
from layoutproof.solvers.digits.number import Digit, DigitSum
from layoutproof.solvers.equations import SEARCHED, smallest_missing, smallest_pair
from layoutproof.solvers.sumset import add, check, cuts, gap, inside, saturated, span, sums, superincreasing

Form = tuple[dict[Digit, int], int]
"""A linear form: coefficient of each digit, and the constant."""

Values = dict[Digit, int]
"""Digits that are not 0."""


def forms_of(coordinates: Sequence[Any], roots: Sequence[Digit]) -> list[Form]:
    """The coordinates as linear forms in whole numbers; Undecided for sizes that are not known."""
    if not all(type(leaf.extent) is int and leaf.extent > 0 for root in roots for leaf in root.leaves()):
        raise Unsupported("digits take sets of places apart for constant sizes only")
    forms = []
    for coordinate in coordinates:
        form, constant = form_of(coordinate)
        if type(constant) is not int or not all(type(c) is int for c in form.values()):
            raise Unsupported("digits take sets of places apart for constant sizes only")
        forms.append((form, constant))
    return forms


def form_of(coordinate: Any) -> tuple[dict[Digit, Any], Any]:
    """A coordinate as a linear form over digits, whatever its coefficients are; one without digits is its constant."""
    if type(coordinate) is DigitSum:
        return coordinate.over_leaves(), coordinate.constant
    return {}, coordinate


def is_exact(root: Digit) -> bool:
    """Whether all values of the digits it was split into belong to the root."""
    return bool(prod(leaf.extent for leaf in root.leaves()) == root.extent)


def lines(forms: Sequence[Form]) -> Iterator[Form]:
    """Forms without common digits that vanish together exactly where all of `forms` do."""
    groups: list[Form] = []
    for form, constant in forms:
        if not form and not constant:
            continue
        apart: list[Form] = []
        for other, more in groups:
            if other.keys().isdisjoint(form):
                apart.append((other, more))
            else:
                width = 1 + abs(constant) + span(_steps(form))
                packed = {digit: coefficient * width for digit, coefficient in other.items()}
                for digit, coefficient in form.items():
                    packed[digit] = packed.get(digit, 0) + coefficient
                form, constant = packed, more * width + constant
        groups = [*apart, (form, constant)]
    for form, constant in groups:
        if len(form) < 3:
            yield form, constant
            continue
        digits = sorted(form, key=lambda digit: abs(form[digit]))
        start = 0
        for end, part in cuts(_steps({digit: form[digit] for digit in digits}), constant):
            yield {digit: form[digit] for digit in digits[start:end]}, part
            start = end


def collision(
    forms: Sequence[Form], moving: Sequence[Digit], free: Sequence[Digit]
) -> tuple[Values, Values, Values, Values] | None:
    """The smallest (x, y, c, d) with x < y and place(x, c) == place(y, d): digits `moving` of x, y, `free` of c, d.

    Digits are in the order of the points they make. None when there is no such pair. Digits of neither kind are equal
    on both sides.
    """
    some = {*moving, *free}
    mine = [({d: c for d, c in form.items() if d in some}, 0) for form, _ in forms]
    shown = {digit for form, _ in mine for digit in form}
    hidden = [digit for digit in moving if digit not in shown and digit.extent > 1]
    best: tuple[Values, Values, Values, Values] | None = ({}, {hidden[-1]: 1}, {}, {}) if hidden else None
    for form, _ in lines(mine):
        own = [digit for digit in moving if digit in form]
        if not own or superincreasing(_steps(form)):
            continue
        found = _smallest_pair(form, own, [digit for digit in free if digit in form])
        if found is not None and (best is None or _key(found, moving, free) < _key(best, moving, free)):
            best = found
    return best


def missing(forms: Sequence[Form], given: Sequence[Digit], chosen: Sequence[Digit]) -> Values | None:
    """The smallest values of the digits `given` for which no values of the digits `chosen` make all forms vanish."""
    best: Values | None = None
    for form, constant in lines(forms):
        found = _smallest_missing(form, constant, [d for d in given if d in form], [d for d in chosen if d in form])
        if found is not None and (best is None or order(found, given) < order(best, given)):
            best = found
    return best


def hole(forms: Sequence[Form], extents: Sequence[int]) -> tuple[int, ...] | None:
    """The smallest place of the box that no values of the digits make; None when there is none."""
    check_independent(forms)
    if any(extent == 0 for extent in extents):
        return None
    first: tuple[int, ...] | None = None
    for axis, ((form, constant), extent) in enumerate(zip(forms, extents, strict=True)):
        at = _first_unreached(form, constant, extent)
        # a later axis gives the smaller place, unless 0 itself is not reached
        if at == 0:
            return (0,) * len(extents)
        if at is not None:
            first = (*(0,) * axis, at, *(0,) * (len(extents) - axis - 1))
    return first


def check_independent(forms: Sequence[Form]) -> None:
    """Raises Undecided when two coordinates have a digit in common."""
    seen: set[Digit] = set()
    for form, _ in forms:
        if not seen.isdisjoint(form):
            raise Unsupported("digits count places only where the coordinates have no digit in common")
        seen.update(form)


def _first_unreached(form: dict[Digit, int], constant: int, extent: int) -> int | None:
    steps = _steps(form)
    low = low_high(steps, constant)[0]
    reached = gap(steps)
    if low > 0:
        return 0
    if low + reached > 0:
        return low + reached if low + reached < extent else None
    check(span(steps))
    bits = sums(steps)[1] >> -low
    # the lowest bit that is not set
    at = ((bits + 1) & ~bits).bit_length() - 1
    return at if at < extent else None


def _smallest_pair(
    form: dict[Digit, int], own: Sequence[Digit], others: Sequence[Digit]
) -> tuple[Values, Values, Values, Values] | None:
    found = smallest_pair([(d.extent, form[d]) for d in own], [(d.extent, form[d]) for d in others])
    if found is None:
        return None
    first, last = list(zip(own, found, strict=False)), list(zip(others, found[len(own) :], strict=True))
    return (
        {digit: -v for digit, v in first if v < 0},
        {digit: v for digit, v in first if v > 0},
        {digit: v for digit, v in last if v > 0},
        {digit: -v for digit, v in last if v < 0},
    )


def _smallest_missing(
    form: dict[Digit, int], constant: int, given: Sequence[Digit], chosen: Sequence[Digit]
) -> Values | None:
    if not chosen:
        return {} if constant else {given[-1]: 1} if given else None
    divisor = gcd(*form.values())
    if constant % divisor:
        return {}
    constant //= divisor
    ours = [(digit.extent, form[digit] // divisor) for digit in given]
    theirs = [(digit.extent, -form[digit] // divisor) for digit in chosen]
    low, low2 = low_high(ours, constant)[0], low_high(theirs)[0]
    steps, steps2 = saturated(ours), saturated(theirs)
    if (low, steps) == (low2, steps2):
        return None
    if not given and superincreasing(steps2):
        return None if _is_sum(constant - low2, steps2) else {}
    check(max(span(steps), span(steps2)))
    among = sums(theirs)
    if inside(add(sums(ours), 1, constant, constant), among):
        return None
    check(max(span(steps), span(steps2)), SEARCHED)
    least = smallest_missing(ours, constant, among)
    return None if least is None else {digit: v for digit, v in zip(given, least, strict=True) if v}


def _is_sum(value: int, steps: Sequence[Progression]) -> bool:
    """Whether superincreasing steps, smallest stride first, make the value."""
    for extent, stride in reversed(steps):
        value -= stride * max(0, min(extent - 1, value // stride))
    return value == 0


def _steps(form: dict[Digit, int]) -> list[Progression]:
    return [(digit.extent, coefficient) for digit, coefficient in form.items()]


def order(values: Mapping[Digit, int], digits: Sequence[Digit]) -> list[int]:
    """The values in the order of the digits, which defines the smallest."""
    return [values.get(digit, 0) for digit in digits]


def _key(found: tuple[Values, ...], moving: Sequence[Digit], free: Sequence[Digit]) -> list[int]:
    return [v for part, digits in zip(found, (moving, moving, free, free), strict=True) for v in order(part, digits)]
