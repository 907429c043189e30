"""Running a map's `place` on whole arrays: exactly, and in one pass where its dimensions can be taken apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.numbers import Numbers
from layoutproof.solvers.digits.number import Digit, DigitNumbers, Sum

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LARGEST = 2**63 - 1
"""The largest number an int64 holds."""

_CHUNK = 1 << 20
"""Elements evaluated at once where dimensions cannot be taken apart: few enough for the processor's cache."""

_RUN = 1 << 11
"""Shortest inner loop worth starting, in elements: below it the loop's own cost shows."""


class ArrayNumbers(Numbers):
    """Places on arrays of NumPy, of JAX, or of any library with the same names; `library` is its module.

    >>> import numpy
    >>> on = ArrayNumbers(numpy)
    >>> on.minimum(numpy.arange(5), 2).tolist()
    [0, 1, 2, 2, 2]
    """

    def __init__(self, library: Any) -> None:
        super().__init__()
        self.library = library

    def select(self, condition: Any, if_true: Any, if_false: Any) -> Any:
        return self.library.where(condition, if_true, if_false)

    def logical_and(self, left: Any, right: Any) -> Any:
        return self.library.logical_and(left, right)

    def logical_or(self, left: Any, right: Any) -> Any:
        return self.library.logical_or(left, right)

    def logical_not(self, condition: Any) -> Any:
        return self.library.logical_not(condition)


def fits(m: IndexMap, replica: Sequence[int] = (), largest: int = LARGEST) -> bool:
    """Whether no step of `place` exceeds `largest` in magnitude for any index. False means "perhaps one does".

    >>> from layoutproof.layouts.map import read
    >>> fits(read("(i < 1000) -> (i * 5,)").index_map(), largest=5000)
    True
    >>> fits(read("(i < 1000) -> (i * 50 // 10,)").index_map(), largest=5000)
    False
    """
    try:
        index = tuple([_Interval(0, max(0, extent - 1), largest) for extent in extents_of(m)])
        m.place(index, tuple(replica), _IntervalNumbers(largest))
    except OverflowError:
        return False
    return max((0, *map(abs, replica))) <= largest


def values(m: IndexMap, replica: Sequence[int] = ()) -> list[NDArray[np.int64]]:
    """Each coordinate of every element, as one int64 array of the domain's shape per coordinate.

    Requires constant sizes and at least one element. Raises LayoutError when a coordinate is no int64, or when `place`
    divides by zero.
    """
    import numpy as np

    replica = tuple(replica)
    with np.errstate(divide="raise"):
        try:
            if not fits(m, replica):
                return _one_by_one(m, replica)
            roots = _separable(m, replica)
            return _in_chunks(m, replica) if roots is None else _in_one_pass(m, replica, roots)
        except (ZeroDivisionError, FloatingPointError):
            raise LayoutError("the map divides by zero for some index, so that index has no place") from None


def extents_of(m: IndexMap) -> tuple[int, ...]:
    """The extents of a domain whose sizes are all constant."""
    return tuple([int(extent) for extent in m.domain.extents])


def _separable(m: IndexMap, replica: Index) -> list[Digit] | None:
    """One digit per dimension, split as `place` splits it; None when a coordinate is not linear in the digits.

    Every digit belongs to one dimension, so a form that is linear in digits is a sum of one function per dimension,
    and a sum of one function per digit.
    """
    roots = [Digit(dimension, extent, 1) for dimension, extent in enumerate(extents_of(m))]
    try:
        m.place(tuple([Sum(((1, root),)) for root in roots]), replica, DigitNumbers())
    except Undecided:
        return None
    return roots


def _in_one_pass(m: IndexMap, replica: Index, roots: list[Digit]) -> list[NDArray[np.int64]]:
    """The sum of one function per digit, each found by running `place` on that digit alone."""
    import numpy as np

    on = ArrayNumbers(np)
    rank, shape = len(roots), extents_of(m)
    start = m.place((0,) * rank, replica, on)
    columns = [np.array([entry], dtype=np.int64) for entry in start]

    def add(columns: list[NDArray[np.int64]], digit: Digit, step: int, count: int) -> list[Any]:
        steps = np.arange(count) * (step * digit.weight)
        index = tuple([steps if d == digit.dimension else 0 for d in range(rank)])
        moved = m.place(index, replica, on)
        return [
            # no entry of `moved` depends on other digits, so `column` only has to be shifted by it
            np.add.outer(np.broadcast_to(np.asarray(entry - zero, dtype=np.int64), (count,)), column).reshape(-1)
            for column, entry, zero in zip(columns, moved, start, strict=True)
        ]

    def extend(columns: list[Any], digit: Digit) -> list[Any]:
        length = len(columns[0])
        if digit.split is not None:
            _, high, low = digit.split
            columns = extend(extend(columns, low), high)
        elif length < _RUN < digit.extent:
            # an unsplit digit is linear: cut it anywhere so that the long pass has a long inner loop
            columns = add(columns, digit, 1, _RUN)
            columns = add(columns, digit, _RUN, -(-digit.extent // _RUN))
        else:
            columns = add(columns, digit, 1, digit.extent)
        return [column[: digit.extent * length] for column in columns]

    if columns:
        for root in reversed(roots):
            if root.extent > 1:
                columns = extend(columns, root)
    return [column.reshape(shape) for column in columns]


def _in_chunks(m: IndexMap, replica: Index) -> list[NDArray[np.int64]]:
    """`place` on every index, some at a time."""
    import numpy as np

    shape, on = extents_of(m), ArrayNumbers(np)
    columns: list[NDArray[np.int64]] = []
    for box in _boxes(shape, _CHUNK):
        index = tuple(np.ogrid[box]) if box else ()
        place = m.place(index, replica, on)
        columns = columns or [np.empty(shape, dtype=np.int64) for _ in place]
        for column, entry in zip(columns, place, strict=True):
            column[box] = entry
    return columns


def _one_by_one(m: IndexMap, replica: Index) -> list[NDArray[np.int64]]:
    """`place` on Python ints, which have no largest one."""
    import numpy as np

    shape, on = extents_of(m), ArrayNumbers(np)
    columns: list[NDArray[np.int64]] = []
    for box in _boxes(shape, _CHUNK):
        index = tuple([axis.astype(object) for axis in np.ogrid[box]]) if box else ()
        place = m.place(index, replica, on)
        columns = columns or [np.empty(shape, dtype=np.int64) for _ in place]
        for column, entry in zip(columns, place, strict=True):
            exact = np.asarray(entry, dtype=object)
            for extreme in (exact.max(), exact.min()):
                if not -LARGEST <= extreme <= LARGEST:
                    raise LayoutError(f"the place {extreme} does not fit into 64 bits, so there is no table of places")
            column[box] = exact
    return columns


def _boxes(shape: tuple[int, ...], most: int) -> Iterator[tuple[slice, ...]]:
    """Boxes of at most `most` elements that together cover `shape` once."""
    if not shape:
        yield ()
        return
    inner = 1
    for extent in shape[1:]:
        inner *= extent
    if inner > most:
        for row in range(shape[0]):
            for rest in _boxes(shape[1:], most):
                yield (slice(row, row + 1), *rest)
        return
    step = max(1, most // inner)
    for row in range(0, shape[0], step):
        yield (slice(row, min(row + step, shape[0])), *[slice(0, extent) for extent in shape[1:]])


class _Interval:
    """Every number from `low` to `high`; an operation that could leave +-`most` raises OverflowError."""

    __slots__ = ("high", "low", "most")

    def __init__(self, low: int, high: int, most: int) -> None:
        if low < -most or high > most:
            raise OverflowError
        self.low, self.high, self.most = low, high, most

    def _other(self, value: Any) -> _Interval:
        return value if isinstance(value, _Interval) else _Interval(value, value, self.most)

    def _of(self, *ends: int) -> _Interval:
        return _Interval(min(ends), max(ends), self.most)

    def __add__(self, value: Any) -> _Interval:
        other = self._other(value)
        return self._of(self.low + other.low, self.high + other.high)

    __radd__ = __add__

    def __sub__(self, value: Any) -> _Interval:
        other = self._other(value)
        return self._of(self.low - other.high, self.high - other.low)

    def __rsub__(self, value: Any) -> _Interval:
        return self._other(value) - self

    def __mul__(self, value: Any) -> _Interval:
        other = self._other(value)
        return self._of(*(a * b for a in (self.low, self.high) for b in (other.low, other.high)))

    __rmul__ = __mul__

    def __neg__(self) -> _Interval:
        return self._of(-self.low, -self.high)

    def __floordiv__(self, value: Any) -> _Interval:
        other = self._other(value)
        if other.low > 0:
            return self._of(*(a // b for a in (self.low, self.high) for b in (other.low, other.high)))
        widest = max(abs(self.low), abs(self.high))
        return self._of(-widest, widest)

    def __rfloordiv__(self, value: Any) -> _Interval:
        return self._other(value) // self

    def __mod__(self, value: Any) -> _Interval:
        other = self._other(value)
        if other.low > 0:
            return self._of(0, other.high - 1 if self.low < 0 else min(self.high, other.high - 1))
        return self._of(min(0, other.low), max(0, other.high))

    def __rmod__(self, value: Any) -> _Interval:
        return self._other(value) % self


class _IntervalNumbers(Numbers):
    """Places on intervals; conditions are not looked at, so both branches count."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def _pair(self, left: Any, right: Any) -> list[_Interval]:
        return [v if isinstance(v, _Interval) else _Interval(v, v, self.most) for v in (left, right)]

    def select(self, condition: Any, if_true: Any, if_false: Any) -> Any:
        left, right = self._pair(if_true, if_false)
        return _Interval(min(left.low, right.low), max(left.high, right.high), self.most)

    def minimum(self, left: Any, right: Any) -> Any:
        return self.select(None, left, right)

    maximum = minimum

    def xor(self, left: Any, right: Any) -> Any:
        ends = [end for v in self._pair(left, right) for end in (v.low, v.high)]
        bound = (1 << max(end.bit_length() for end in ends)) - 1
        return _Interval(0 if min(ends) >= 0 else -bound - 1, bound, self.most)

    def less(self, left: Any, right: Any) -> Any:
        self._pair(left, right)

    equal = less

    def logical_and(self, *conditions: Any) -> Any:
        """Conditions have no value here."""

    logical_or = logical_not = logical_and  # type: ignore[assignment]
