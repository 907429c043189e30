"""Running a map's `place` on whole arrays: exactly, and in one pass where its dimensions can be taken apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from layoutproof.core.errors import LayoutError, Undecided, Unsupported
from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.numbers import Numbers
from layoutproof.solvers.digits.number import Digit, DigitNumbers, DigitSum
from layoutproof.solvers.interval import Bound, Interval, IntervalNumbers, ends

if TYPE_CHECKING:
    import jax
    import numpy as np
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[np.generic] | jax.Array"
"""An array of the library that computes with it."""

LARGEST = 2**63 - 1
"""The largest number an int64 holds."""

DIMENSIONS = 32
"""The most dimensions of an array, of every NumPy; 2.0 has 64."""

CHUNK = 1 << 20
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

    def __init__(self, library: ModuleType) -> None:
        super().__init__()
        self.library = library

    def select(self, condition: Array, if_true: Array | int, if_false: Array | int) -> Array:
        found: Array = self.library.where(condition, if_true, if_false)
        return found

    def logical_and(self, left: Array, right: Array) -> Array:
        found: Array = self.library.logical_and(left, right)
        return found

    def logical_or(self, left: Array, right: Array) -> Array:
        found: Array = self.library.logical_or(left, right)
        return found

    def logical_not(self, condition: Array) -> Array:
        found: Array = self.library.logical_not(condition)
        return found


def fits(m: IndexMap, replica: Sequence[int] = (), largest: int = LARGEST) -> bool:
    """Whether no step of `place` exceeds `largest` in magnitude for any index. False means "perhaps one does".

    >>> from layoutproof.layouts.map import read
    >>> fits(read("(i < 1000) -> (i * 5,)").index_map(), largest=5000)
    True
    >>> fits(read("(i < 1000) -> (i * 50 // 10,)").index_map(), largest=5000)
    False
    """
    try:
        bounded(m, replica, largest)
    except (OverflowError, Unsupported, ZeroDivisionError):
        return False
    return max((0, *map(abs, replica))) <= largest


def bounded(m: IndexMap, replica: Sequence[int] = (), largest: int = LARGEST) -> list[tuple[int, int]]:
    """The smallest and the largest value that each coordinate may have, over all indices.

    Raises OverflowError where some step of `place` may exceed `largest` in magnitude, Undecided and ZeroDivisionError
    where its bounds cannot be told.

    >>> from layoutproof.layouts.map import read
    >>> bounded(read("(i < 1000) -> (i // 8, i % 8 - 2)").index_map())
    [(0, 124), (-2, 5)]
    """
    within, on = within_numbers(largest)
    place = m.place(tuple([within(0, max(0, extent - 1)) for extent in extents_of(m)]), tuple(replica), on)
    return [ends(entry) for entry in place]


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


def places(m: IndexMap, index: Index, replica: Sequence[int] = ()) -> list[NDArray[np.int64]]:
    """Each coordinate of some elements, from int64 arrays of indices that broadcast together and lie in the domain.

    Raises LayoutError when a coordinate is no int64, or when `place` divides by zero.
    """
    import numpy as np

    replica, on = tuple(replica), ArrayNumbers(np)
    shape = np.broadcast_shapes(*[entry.shape for entry in index])
    exact = index if fits(m, replica) else tuple([entry.astype(object) for entry in index])
    with np.errstate(divide="raise"):
        try:
            place = m.place(exact, replica, on)
        except (ZeroDivisionError, FloatingPointError):
            raise LayoutError("the map divides by zero for some index, so that index has no place") from None
    return [np.broadcast_to(_as_int64(entry), shape).copy() for entry in place]


def _as_int64(entry: Any) -> NDArray[np.int64]:
    """A coordinate as int64; LayoutError where it is none."""
    import numpy as np

    exact = np.asarray(entry, dtype=object) if getattr(entry, "dtype", None) != np.int64 else entry
    for extreme in (exact.max(), exact.min()) if exact.size else ():
        if not -LARGEST <= extreme <= LARGEST:
            raise LayoutError(f"the place {extreme} does not fit into 64 bits, so there is no table of places")
    found: NDArray[np.int64] = exact.astype(np.int64)
    return found


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
        m.place(tuple([DigitSum(((1, root),)) for root in roots]), replica, DigitNumbers())
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

    def add(columns: list[NDArray[np.int64]], digit: Digit, step: int, count: int) -> list[NDArray[np.int64]]:
        steps = np.arange(count) * (step * digit.weight)
        index = tuple([steps if d == digit.dimension else 0 for d in range(rank)])
        moved = m.place(index, replica, on)
        return [
            # no entry of `moved` depends on other digits, so `column` only has to be shifted by it
            np.add.outer(np.broadcast_to(np.asarray(entry - zero, dtype=np.int64), (count,)), column).reshape(-1)
            for column, entry, zero in zip(columns, moved, start, strict=True)
        ]

    def extend(columns: list[NDArray[np.int64]], digit: Digit) -> list[NDArray[np.int64]]:
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
    for box in boxes(shape, CHUNK):
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
    for box in boxes(shape, CHUNK):
        index = tuple([axis.astype(object) for axis in np.ogrid[box]]) if box else ()
        place = m.place(index, replica, on)
        columns = columns or [np.empty(shape, dtype=np.int64) for _ in place]
        for column, entry in zip(columns, place, strict=True):
            column[box] = _as_int64(entry)
    return columns


def boxes(shape: tuple[int, ...], most: int) -> Iterator[tuple[slice, ...]]:
    """Boxes of at most `most` elements that together cover `shape` once. Unsupported beyond NumPy's dimensions."""
    if len(shape) > DIMENSIONS:
        raise Unsupported(f"arrays have at most {DIMENSIONS} dimensions, not {len(shape)}")
    if not shape:
        yield ()
        return
    inner = 1
    for extent in shape[1:]:
        inner *= extent
    if inner > most:
        for row in range(shape[0]):
            for rest in boxes(shape[1:], most):
                yield (slice(row, row + 1), *rest)
        return
    step = max(1, most // inner)
    for row in range(0, shape[0], step):
        yield (slice(row, min(row + step, shape[0])), *[slice(0, extent) for extent in shape[1:]])


@lru_cache(maxsize=8)
def within_numbers(largest: int) -> tuple[type[Interval], IntervalNumbers]:
    """Intervals, and their kind, to which a number beyond +-`largest` is an OverflowError."""

    def check(*numbers: Interval | int) -> None:
        for low, high in map(ends, numbers):
            if low < -largest or high > largest:
                raise OverflowError

    class Within(Interval):
        """The operands are checked too: 0 times a number that is too large is small again."""

        __slots__ = ()

        def __init__(self, low: Bound, high: Bound) -> None:
            super().__init__(low, high)
            check(self)

        def __add__(self, other: Interval | int) -> Self:
            check(other)
            return super().__add__(other)

        def __mul__(self, other: Interval | int) -> Self:
            check(other)
            return super().__mul__(other)

        __radd__, __rmul__ = __add__, __mul__

        def __floordiv__(self, other: Interval | int) -> Self:
            check(other)
            return super().__floordiv__(other)

        def __mod__(self, other: Interval | int) -> Self:
            check(other)
            return super().__mod__(other)

    class WithinNumbers(IntervalNumbers):
        """Arrays compute both sides of a choice and of a comparison, so both must fit."""

        interval = Within

        def select(self, condition: bool | None, if_true: Interval | int, if_false: Interval | int) -> Interval:
            check(if_true, if_false)
            return Within(*ends(super().select(condition, if_true, if_false)))

        def minimum(self, left: Interval | int, right: Interval | int) -> Interval:
            check(left, right)
            return super().minimum(left, right)

        def maximum(self, left: Interval | int, right: Interval | int) -> Interval:
            check(left, right)
            return super().maximum(left, right)

        def xor(self, left: Interval | int, right: Interval | int) -> Interval:
            check(left, right)
            return Within(*ends(super().xor(left, right)))

        def less(self, left: Interval | int, right: Interval | int) -> bool | None:
            check(left, right)
            return super().less(left, right)

        def equal(self, left: Interval | int, right: Interval | int) -> bool | None:
            check(left, right)
            return super().equal(left, right)

    return Within, WithinNumbers()
