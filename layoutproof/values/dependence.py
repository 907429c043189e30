"""Which part of an input reaches an element on one side and not on the other: a hint, and never a verdict.

A part is changed at random, and the element computed again. A dependence that no change shows may be there all the
same (below a maximum, times 0), so a part is named only after several changes moved one side and none the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from layoutproof.values.floats import Real
from layoutproof.values.known import Known

Array = np.ndarray[Any, Any]
Box = tuple[tuple[int, int], ...]

LEAST, MOST, ELEMENTS = 10, 40, 2**23
"""How many parts are changed, each of which costs a walk of both sides: fewer of large inputs, as changed elements."""
CHANGES = 3
"""How often a part is changed before it counts as one that does not reach the element."""


@dataclass(frozen=True)
class Reach:
    """A part of an input that reaches the element on one side alone.

    input: its position.  box: first index and the one past the last, of each axis.  ours: whether it is the function
    that is asked about, or its reference.
    """

    input: int
    box: Box
    ours: bool


def one_sided(
    element: Callable[[Sequence[Real | Known]], tuple[float, float]], values: Sequence[Real | Known]
) -> Reach | None:
    """The first part of an input that reaches an element on one side alone, larger parts first.

    element: the element on both sides, of inputs.  values: the inputs, of which those with a float `array` are changed.
    """
    rng = np.random.default_rng(23)
    before = element(values)
    todo = [
        (k, axis, _whole(v.array))
        for k, v in enumerate(values) if isinstance(v, Real) and v.span is None and v.array.size
        for axis in range(v.array.ndim)
    ]  # fmt: skip
    size = sum(values[k].array.size for k in {k for k, _, _ in todo})
    left = min(MOST, max(LEAST, ELEMENTS // max(size, 1)))

    def moved(k: int, box: Box) -> tuple[bool, bool]:
        array = values[k].array.copy()
        part = tuple(slice(*each) for each in box)
        array[part] = 3 * rng.standard_normal(array[part].shape)
        after = element([replace(v, array=array) if j == k else v for j, v in enumerate(values)])
        ours, theirs = (not np.isclose(x, y, rtol=1e-9, atol=0) for x, y in zip(before, after, strict=True))
        return ours, theirs

    for k, axis, box in todo:
        if not left:
            return None
        left -= 1
        ours, theirs = moved(k, box)
        for _ in range(CHANGES - 1):
            if ours != theirs:
                again = moved(k, box)
                ours, theirs = ours or again[0], theirs or again[1]
        if ours != theirs:
            return Reach(k, box, ours)
        if ours:
            todo += [(k, axis, half) for half in _halves(box, axis)]
    return None


def _whole(array: Array) -> Box:
    return tuple((0, n) for n in array.shape)


def _halves(box: Box, axis: int) -> list[Box]:
    low, high = box[axis]
    middle = (low + high) // 2
    parts = ((low, middle), (middle, high)) if high - low > 1 else ()
    return [(*box[:axis], part, *box[axis + 1 :]) for part in parts]
