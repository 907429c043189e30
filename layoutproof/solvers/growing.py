"""The smallest sizes of a violation that stays one when sizes grow: by bisection, with every other size constant.

Offsets grow with sizes: extents do, and what stands for a place is made of extents by sums, products and floors by
constants. Then the smallest largest size is found with all sizes equal, and each size in turn as small as it can be. No
solver is asked about products of unknowns, which is what takes them seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn, TypeAlias

from layoutproof.core.claim import Claim, Outside, outline
from layoutproof.core.errors import NotSmallest, Undecided, Unsupported
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point
from layoutproof.core.size import Extent, Size, evaluate, symbol

LARGEST = 1 << 64
"""Sizes up to which a violation is sought."""

Known = Mapping[str, int]


def smallest(claim: Claim, decide: Callable[[Claim, Known], Point | None]) -> Point:
    """The smallest violation of a claim with run-time sizes; `decide` finds that for sizes which are known.

    Raises NotSmallest with a violation where something is divided by a size: those sizes are 1 in it. Raises Undecided
    where a violation need not stay one, and where none is found.
    """
    names = claim.sizes()
    held = divided_by(claim)
    free = [name for name in names if name not in held]
    if claim.where is not None or not free or not _grows(claim, held):
        raise Unsupported("a violation need not stay one when sizes grow")

    def violated(values: Known) -> bool:
        from layoutproof.solvers import digits

        try:
            return digits.violation(claim, values) is not None
        except Undecided:
            return decide(claim, values) is not None

    def all_at(size: int) -> dict[str, int]:
        return {name: 1 if name in held else size for name in names}

    largest = _first(lambda size: violated(all_at(size)), LARGEST)
    if largest is None:
        raise Unsupported(f"no violation is found with sizes up to {LARGEST}")
    values = all_at(largest)
    for name in free:
        least = _first(lambda size, name=name: violated({**values, name: size}), largest)  # type: ignore[misc]
        values[name] = largest if least is None else least
    found = decide(claim, values)
    if found is None:
        raise Unsupported("a violation is lost when sizes shrink")
    point = {"sizes": tuple(values[name] for name in names), **found}
    if held:
        raise NotSmallest(f"only with {' = '.join(held)} = 1 were sizes looked at", point)
    return point


def _first(holds: Callable[[int], bool], most: int) -> int | None:
    """The smallest number from 1 to `most` of which it holds, as it then does of all that are larger."""
    low, high = 1, 1
    while not holds(high):
        if high >= most:
            return None
        low, high = high + 1, min(2 * high, most)
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return high


def divided_by(claim: Claim) -> tuple[str, ...]:
    """The sizes by which an extent is divided, or a place: with constants in their stead there are fewer."""
    if not isinstance(claim.violation, Outside):
        return ()
    m = claim.violation.place.map
    extents = (*m.domain.extents, *m.replicas.extents, *m.range.extents)
    by = [d for extent in extents if isinstance(extent, Size) for _, d in extent.divisions() if isinstance(d, Size)]
    return tuple(dict.fromkeys(name for divisor in by for name in divisor.symbols()))


def _grows(claim: Claim, held: tuple[str, ...]) -> bool:
    """Whether a violation stays one when a size grows: the box does, and every coordinate of every element."""
    if not isinstance(claim.violation, Outside) or not outline(claim).whole:
        return False
    m, extents = claim.violation.place.map, claim.violation.extents
    limits = m.range.extents if extents is None else extents
    if not all(type(limit) is int for limit in limits):
        return False
    on = RisingNumbers({name: 1 if name in held else symbol(name) for name in claim.sizes()})
    try:
        box = [on.size(extent) for extent in (*m.domain.extents, *m.replicas.extents)]
        if not all(_rising(extent) for extent in box):
            return False
        index = [Rising(True) for _ in box]
        rank = len(m.domain.extents)
        return all(map(_rising, m.place(tuple(index[:rank]), tuple(index[rank:]), on)))
    except (Undecided, ZeroDivisionError):
        return False


Number: TypeAlias = "Rising | int"


class Rising:
    """A number >= 0 that gets no smaller when a size grows; `fixed` where no size matters at all."""

    __slots__ = ("fixed",)

    def __init__(self, fixed: bool) -> None:
        self.fixed = fixed

    def __add__(self, other: Number) -> Rising:
        return _both(self, other)

    __radd__ = __mul__ = __rmul__ = __add__

    def __floordiv__(self, other: object) -> Rising:
        if type(other) is not int or other < 1:
            raise Unsupported("divides by what is no constant above 0")
        return self

    def __mod__(self, other: object) -> Rising:
        if type(other) is not int or other < 1 or not self.fixed:
            raise Unsupported("takes the remainder of what grows")
        return self

    def _refuse(self, other: object = None) -> NoReturn:
        raise Unsupported("does more than add, multiply and divide by constants")

    __sub__ = __rsub__ = __neg__ = __rfloordiv__ = __rmod__ = _refuse


class RisingNumbers(Numbers):
    """The kind: ints and `Rising`s; of comparisons only those of numbers that no size changes."""

    def size(self, extent: Extent) -> Number:
        # with the constants put in first: M + b - 1 is M where b is 1, and M - 1 is what has no sign
        known = evaluate(extent, lambda name: self.sizes[name])
        rising: Number = evaluate(known, lambda name: Rising(False))
        return rising

    def symbol(self, name: str) -> Number:
        return self.size(self.sizes[name])

    def select(self, condition: Number, if_true: Number, if_false: Number) -> Rising:
        return _both(if_true, if_false)

    def minimum(self, left: Number, right: Number) -> Rising:
        return _both(left, right)

    def maximum(self, left: Number, right: Number) -> Rising:
        return _both(left, right)

    def xor(self, left: Number, right: Number) -> Rising:
        return self.less(left, right)

    def less(self, left: Number, right: Number) -> Rising:
        found = _both(left, right)
        if not found.fixed:
            raise Unsupported("compares what grows")
        return found

    equal = logical_and = logical_or = less

    def logical_not(self, condition: Number) -> Number:
        return condition


def _rising(value: object) -> bool:
    return isinstance(value, Rising) or (type(value) is int and value >= 0)


def _both(left: Number, right: Number) -> Rising:
    if not (_rising(left) and _rising(right)):
        raise Unsupported("has a number that may be below 0")
    return Rising(all(isinstance(value, int) or value.fixed for value in (left, right)))
