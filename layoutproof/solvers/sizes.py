"""The smallest sizes of a violation: they are tried in order, each as constants, which digits decide in microseconds.

A size that stands in extents alone does no more than let in more indices: a violation stays one when it grows. Its
smallest value is found by bisection, so that such sizes cost no trials of their own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from layoutproof.core.claim import And, Claim, Differ, Equal, Formula, LexLess, Outside, allows, maps_of
from layoutproof.core.errors import BudgetExceeded, Undecided, Unsupported
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point
from layoutproof.core.size import Extent, Size, as_size, symbols_of
from layoutproof.core.substitution import largest as largest_allowed
from layoutproof.solvers import digits

TRIED = 1000
"""Choices of sizes that digits decide at effort 1, which takes them some hundredths of a second."""

LARGEST = (4096, 64)
"""How large a size that stands in extents alone may be; the second where digits cannot decide the first."""

FAR = 1 << 40
"""The same where there is no violation up to the first: two swizzles may differ in a high bit alone."""

Ints = tuple[int, ...]
Known = Mapping[str, int]


def smallest(claim: Claim, effort: float = 1) -> Point | None:
    """The smallest violation of a claim over size symbols; None where its condition allows few sizes, all without one.

    Raises Undecided where none is found among the sizes that are tried, and where digits do not decide them.

    >>> from layoutproof.core.claim import At
    >>> from layoutproof.core.index_map import IndexMap
    >>> from layoutproof.core.size import symbol
    >>> from layoutproof.core.space import Space
    >>> rows = Space(("i", "j"), (symbol("N"), symbol("M")))
    >>> m = IndexMap(rows, Space(("o",), (99,)), lambda x, c, on: (on.size(symbol("M")) * x[0] + 5 * x[1],))
    >>> meet = And((LexLess("first", "second"), Equal(At(m, "first"), At(m, "second"))))
    >>> smallest(Claim({"first": rows, "second": rows}, meet))
    {'sizes': (2, 5), 'first': (0, 1), 'second': (1, 0)}
    """
    names = claim.sizes()
    if not names:
        raise Unsupported("all sizes are constant")
    tried, most = itertools.count(), int(TRIED * effort)
    met: list[Known] = []

    def violation(values: Known) -> Point | None:
        if next(tried) >= most:
            raise _NoViolation(f"no violation has sizes among the {most} choices tried")
        if not allows(claim.where, Numbers(values)):
            return None
        met.append(values)
        return digits.violation(claim, values)

    free = tuple([name for name in names if _only_lets_in_more(claim, name)])
    last = largest_allowed(claim.where, names)
    for largest in LARGEST if free else LARGEST[:1]:
        try:
            values = _smallest(names, free, largest, lambda known: violation(known) is not None, last)
        except _NoViolation:
            raise
        except Undecided:
            if largest == LARGEST[-1] or not free:
                raise
            continue
        if values is None:
            if not met:
                raise Unsupported(f"no sizes up to {last} satisfy {claim.where}")
            return None
        found = violation(values)
        assert found is not None
        return {"sizes": tuple([values[name] for name in names]), **found}
    raise AssertionError("the last try returns or raises")


class _NoViolation(BudgetExceeded):
    """Digits decide the sizes that were tried, and none has a violation."""


def _smallest(
    names: Sequence[str], free: Sequence[str], largest: int, violated: Callable[[Known], bool], last: int | None
) -> Known | None:
    """The smallest sizes of a violation; None where no size may be larger than `last`, and none has one."""
    rest = [name for name in names if name not in free]
    best: tuple[int, Ints] | None = None
    for row in assignments(len(rest)):
        if best is not None and max(row, default=1) > best[0]:
            break
        if last is not None and max(row, default=1) > last:
            break
        fixed, most = dict(zip(rest, row, strict=True)), largest if best is None else best[0]
        if not violated({**fixed, **dict.fromkeys(free, most)}):
            if rest:
                continue
            if not _is_violated_far(free, violated):
                raise _NoViolation(f"no violation has sizes up to {largest}")
            most = FAR
        values = _least(fixed, free, most, violated)
        found = tuple([values[name] for name in names])
        best = min(filter(None, (best, (max(found), found))))
    return None if best is None else dict(zip(names, best[1], strict=True))


def _is_violated_far(free: Sequence[str], violated: Callable[[Known], bool]) -> bool:
    try:
        return violated(dict.fromkeys(free, FAR))
    except Undecided:
        return False


def _least(fixed: Known, free: Sequence[str], most: int, violated: Callable[[Known], bool]) -> Known:
    """The smallest values of the sizes `free` beside fixed ones: the smallest maximum of all, then each in order."""

    def all_at(size: int) -> bool:
        return violated({**fixed, **dict.fromkeys(free, size)})

    size = max((*fixed.values(), _first(all_at, most) if free else 1))
    values = {**fixed, **dict.fromkeys(free, size)}
    for name in free:

        def at(each: int, name: str = name) -> bool:
            return violated({**values, name: each})

        values[name] = _first(at, size)
    return values


def _first(holds: Callable[[int], bool], most: int) -> int:
    """The smallest number from 1 to `most` of which it holds, as it then does of all larger ones and of `most`."""
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def assignments(count: int) -> Iterator[Ints]:
    """Values for so many size symbols: smallest maximum first, then lexicographic; an empty one for none.

    >>> list(itertools.islice(assignments(2), 5))
    [(1, 1), (1, 2), (2, 1), (2, 2), (1, 3)]
    """
    if count == 0:
        yield ()
        return
    for maximum in itertools.count(1):
        yield from _reaching(count, maximum)


def _reaching(count: int, maximum: int) -> Iterator[Ints]:
    """Every choice of `count` numbers from 1 to `maximum`, the largest of them `maximum`, in lexicographic order."""
    if count == 1:
        yield (maximum,)
        return
    for first in range(1, maximum):
        for rest in _reaching(count - 1, maximum):
            yield (first, *rest)
    for below in itertools.product(range(1, maximum + 1), repeat=count - 1):
        yield (maximum, *below)


def _only_lets_in_more(claim: Claim, name: str) -> bool:
    """Whether a size stands in extents of indices alone, which grow with it, so that a violation stays one."""
    if claim.where is not None and name in claim.where.names():
        return False
    if name in symbols_of(_limits(claim.violation)) or not _is_simple(claim.violation):
        return False
    maps = maps_of(claim.violation)
    boxes = [extent for space in claim.points.values() for extent in space.extents]
    boxes += [extent for m in maps for extent in (*m.domain.extents, *m.replicas.extents)]
    if not all(_rises(extent, name) for extent in boxes):
        return False
    on = _SizesRead()
    for m in maps:
        try:
            m.place((_ANY,) * len(m.domain.extents), (_ANY,) * len(m.replicas.extents), on)
        except Undecided:
            return False
    return name not in on.names


def _is_simple(violation: Formula) -> bool:
    match violation:
        case And((LexLess(), Equal())) | Outside() | Differ():
            return True
    return False


def _limits(violation: Formula) -> tuple[Extent, ...]:
    if not isinstance(violation, Outside):
        return ()
    return violation.place.map.range.extents if violation.extents is None else violation.extents


def _rises(extent: Extent, name: str) -> bool:
    """Whether an extent gets no smaller when a size grows."""
    if name not in symbols_of((extent,)):
        return True
    for mono, coefficient in as_size(extent).terms:
        for atom in mono:
            if name not in symbols_of((Size((((atom,), 1),)),)):
                continue
            if coefficient < 0 or (
                atom.over is not None and not (type(atom.divisor) is int and _rises(atom.over, name))
            ):
                return False
    return True


class _Anything:
    """A number of which nothing is known."""

    def _same(self, *others: object) -> _Anything:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = _same
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _same

    def __bool__(self) -> NoReturn:
        raise Unsupported("a place that asks for the value of an index")


_ANY: Any = _Anything()


class _SizesRead(Numbers):
    """Remembers which sizes a place asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def symbol(self, name: str) -> object:
        self.names.add(name)
        return _ANY

    def select(self, condition: object, if_true: object, if_false: object) -> object:
        return _ANY

    def xor(self, left: object, right: object) -> object:
        return _ANY

    minimum = maximum = less = equal = logical_and = logical_or = xor

    def logical_not(self, condition: object) -> object:
        return _ANY
