"""Checks a search too large to enumerate: replays its splits and bounds every box independently.

The search hands over nothing but how it cut the space. From the whole space these cuts are made again, so that the
boxes cover every candidate by construction; then each box is shown to hold nothing cheaper: it breaks a constraint
or the memory limit as a whole, or costs too much as a whole, or is one candidate, which is computed exactly. The
arithmetic is its own: all boxes at once, as arrays of exact ends, sharing nothing with `interval`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NoReturn

from layoutproof.core.errors import Unsupported
from layoutproof.core.numbers import Numbers, Numeral
from layoutproof.searching import problems
from layoutproof.searching.branch import DIVIDES, Box, candidate, cost_of
from layoutproof.searching.problem import Problem, broken

CHUNK = 4096
"""Boxes bounded at once."""


class IntervalArray:
    """Many ranges of integers at once: arrays (or single ints) of the lowest and the highest number of each."""

    __slots__ = ("high", "low")

    def __init__(self, low: Numeral, high: Numeral) -> None:
        self.low, self.high = _exact(low), _exact(high)

    def __add__(self, other: Numeral) -> IntervalArray:
        low, high = _ends(other)
        return IntervalArray(self.low + low, self.high + high)

    __radd__ = __add__

    def __neg__(self) -> IntervalArray:
        return IntervalArray(-self.high, -self.low)

    def __sub__(self, other: Numeral) -> IntervalArray:
        low, high = _ends(other)
        return IntervalArray(self.low - high, self.high - low)

    def __rsub__(self, other: Numeral) -> IntervalArray:
        low, high = _ends(other)
        return IntervalArray(low - self.high, high - self.low)

    def __mul__(self, other: Any) -> IntervalArray:
        return _spanned(self, other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> IntervalArray:
        return _spanned(self, _positive(other), lambda a, b: a // b)

    def __rfloordiv__(self, other: Numeral) -> IntervalArray:
        return IntervalArray(other, other) // self

    def __mod__(self, other: Numeral) -> IntervalArray:
        import numpy as np

        by = _positive(other)
        # the rest runs on with the number as long as the quotient stays the same and the divisor is one number
        steady = (by.low == by.high) & (self.low // by.low == self.high // by.low)
        zero = self.low * 0
        return IntervalArray(
            np.where(steady, self.low % by.low, zero), np.where(steady, self.high % by.low, by.high - 1)
        )

    def __rmod__(self, other: Numeral) -> IntervalArray:
        return IntervalArray(other, other) % self


class IntervalArrayNumbers(Numbers):
    """The kind. A condition is a pair of arrays: whether it may be true, whether it may be false."""

    def between(self, low: Numeral, high: Numeral) -> IntervalArray:
        """Some number of which only bounds are known."""
        return IntervalArray(_ends(low)[0], _ends(high)[1])

    def select(self, condition: object, if_true: object, if_false: object) -> IntervalArray:
        import numpy as np

        may, may_not = _truth(condition)
        (low, high), (other_low, other_high) = map(_exact, _ends(if_true)), map(_exact, _ends(if_false))
        lowest = np.where(may_not, np.where(may, _smaller(low, other_low), other_low), low)
        return IntervalArray(lowest, np.where(may_not, np.where(may, _larger(high, other_high), other_high), high))

    def minimum(self, left: Numeral, right: Numeral) -> IntervalArray:
        (low, high), (other_low, other_high) = _ends(left), _ends(right)
        return IntervalArray(_smaller(low, other_low), _smaller(high, other_high))

    def maximum(self, left: Numeral, right: Numeral) -> IntervalArray:
        (low, high), (other_low, other_high) = _ends(left), _ends(right)
        return IntervalArray(_larger(low, other_low), _larger(high, other_high))

    def xor(self, left: object, right: object) -> NoReturn:
        raise Unsupported(problems.XOR_VARIES())

    def less(self, left: object, right: object) -> tuple[object, object]:
        (low, high), (other_low, other_high) = _ends(left), _ends(right)
        return low < other_high, high >= other_low

    def equal(self, left: object, right: object) -> tuple[object, object]:
        (low, high), (other_low, other_high) = _ends(left), _ends(right)
        may = (high >= other_low) & (other_high >= low)
        return may, (low != high) | (other_low != other_high) | (low != other_low)

    def logical_and(self, left: object, right: object) -> tuple[object, object]:
        (may, may_not), (also, also_not) = _truth(left), _truth(right)
        return may & also, may_not | also_not

    def logical_or(self, left: object, right: object) -> tuple[object, object]:
        (may, may_not), (also, also_not) = _truth(left), _truth(right)
        return may | also, may_not & also_not

    def logical_not(self, condition: object) -> tuple[object, object]:
        may, may_not = _truth(condition)
        return may_not, may


def partition(problem: Problem, cuts: Mapping[Box, tuple[int, int]]) -> list[Box]:
    """The boxes that are left when the whole space is cut as `cuts` says: box -> (variable, last index of its first
    part). They hold every candidate once, whatever `cuts` says, because nothing is ever put aside.
    """
    left: list[Box] = []
    stack: list[Box] = [tuple((0, len(values) - 1) for values in problem.variables.values())]
    while stack:
        box = stack.pop()
        cut = cuts.get(box)
        if cut is None or not box[cut[0]][0] <= cut[1] < box[cut[0]][1]:
            left.append(box)
            continue
        k, last = cut
        for part in ((box[k][0], last), (last + 1, box[k][1])):
            stack.append((*box[:k], part, *box[k + 1 :]))
    return left


def uncertified(
    problem: Problem,
    boxes: Sequence[Box],
    cost: int,
    listed: Sequence[Mapping[str, int]],
    legal: Callable[[Mapping[str, int]], str],
) -> tuple[Mapping[str, int] | None, str, dict[str, int]]:
    """(a legal candidate that costs less than `cost` and is not listed, why it is unknown, refused ones by reason).

    None and "" when it is shown of every box that it holds none.
    """
    refused: dict[str, int] = {}
    single = [box for box in boxes if all(low == high for low, high in box)]
    several = [box for box in boxes if any(low != high for low, high in box)]
    domains = list(problem.variables.items())
    for box in single:
        values = {name: domain[low] for (name, domain), (low, _) in zip(domains, box, strict=True)}
        try:
            exact = candidate(problem, values)
            if exact.cost >= cost or values in listed:
                continue
            why = next(iter(broken(problem, values, exact.figures)), "") or legal(values)
        except ZeroDivisionError:
            why = DIVIDES
        if not why:
            return values, "", refused
        refused[why] = refused.get(why, 0) + 1
    for start in range(0, len(several), CHUNK):
        part = several[start : start + CHUNK]
        reasons, shown = _bounded(problem, part, cost)
        for box, good in zip(part, shown, strict=True):
            if not good:
                ends = ", ".join(f"{n} {d[low]}..{d[high]}" for (n, d), (low, high) in zip(domains, box, strict=True))
                return None, problems.BOX_UNDECIDED(ends), refused
        for why, where in reasons.items():
            count = sum(prod(high - low + 1 for low, high in box) for box, hit in zip(part, where, strict=True) if hit)
            refused[why] = refused.get(why, 0) + count
    return None, "", {why: count for why, count in refused.items() if count}


def _bounded(problem: Problem, boxes: Sequence[Box], cost: int) -> tuple[dict[str, Any], Any]:
    """(boxes refused as a whole, by reason; boxes of which it is shown that they hold nothing cheaper)."""
    import numpy as np

    on = IntervalArrayNumbers()
    values: dict[str, Any] = {}
    for k, (name, domain) in enumerate(problem.variables.items()):
        # Python's own ints: the products of the model pass 64 bits
        low = np.array([domain[box[k][0]] for box in boxes], dtype=object)
        high = np.array([domain[box[k][1]] for box in boxes], dtype=object)
        values[name] = IntervalArray(low, high)
    everything = np.ones(len(boxes), dtype=bool)
    done = ~everything
    reasons: dict[str, Any] = {}
    rows = []

    def refuse(why: str, where: object) -> None:
        nonlocal done
        found = np.asarray(where, dtype=bool) & everything
        reasons[why] = reasons.get(why, ~everything) | (found & ~done)
        done = done | found

    for shape in problem.shapes:
        row = problem.figures(shape, values, on)
        refuse("VMEM", _ends(row["vmem"])[0] > problem.vmem)
        row = {**row, "vmem": on.minimum(row["vmem"], problem.vmem)}
        for constraint in problem.constraints:
            may, _ = _truth(constraint.condition.evaluate({**shape.sizes, **values, **row}, on))
            refuse(constraint.text, np.logical_not(may))
        rows.append(row)
    if done.all():
        return reasons, done
    least = _ends(cost_of(problem, values, rows, on))[0]
    return reasons, done | (np.asarray(least >= cost, dtype=bool) & everything)


def _smaller(left: Any, right: Any) -> Any:
    import numpy as np

    return _exact(np.minimum(_exact(left), _exact(right)))


def _larger(left: Any, right: Any) -> Any:
    import numpy as np

    return _exact(np.maximum(_exact(left), _exact(right)))


def _exact(value: Any) -> Any:
    """Python's own ints in an array: numpy makes machine integers of them in `where` and `minimum`, and those wrap."""
    import numpy as np

    return np.asarray(value).astype(object, copy=False)


def _ends(value: Any) -> tuple[Any, Any]:
    return (value.low, value.high) if type(value) is IntervalArray else (value, value)


def _truth(condition: Any) -> tuple[Any, Any]:
    return condition if type(condition) is tuple else (condition, not condition)


def _positive(value: Numeral) -> IntervalArray:
    import numpy as np

    low, high = _ends(value)
    if np.any(np.asarray(low < 1, dtype=bool)):
        raise Unsupported(problems.DIVIDES_BY_NUMBER())
    return IntervalArray(low, high)


def _spanned(left: Any, right: Any, function: Callable[[Any, Any], Any]) -> IntervalArray:
    """The ends of a function that rises or falls in each of its arguments: at the corners."""
    corners = [function(a, b) for a in _ends(left) for b in _ends(right)]
    low, high = corners[0], corners[0]
    for corner in corners[1:]:
        low, high = _smaller(low, corner), _larger(high, corner)
    return IntervalArray(low, high)
