"""Bytes of an operand whose index map has no closed form: its grid is walked, at once for all steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from layoutproof.core.errors import BudgetExceeded, Unsupported
from layoutproof.core.numbers import Numbers
from layoutproof.core.size import product
from layoutproof.core.term import reads
from layoutproof.hardware.tpu_tiles import LANES, round_up
from layoutproof.searching import problems
from layoutproof.searching.traffic import Traffic
from layoutproof.solvers.arrays import ArrayNumbers

MOST = 1 << 22
"""Steps of a grid that are walked."""


class FloatArrays(ArrayNumbers):
    """Arrays of float64 only: products of the model pass 64 bits, where integers would wrap."""

    def select(self, condition: Any, if_true: Any, if_false: Any) -> Any:
        made = self.library.float64
        return self.library.where(condition, made(if_true), made(if_false))

    def xor(self, left: object, right: object) -> NoReturn:
        raise Unsupported(problems.XOR_OF_FLOATS())


def walked(
    one: Traffic,
    grid: Mapping[str, Any],
    array: Sequence[Any],
    block: Sequence[Any],
    names: Mapping[str, Any],
    on: Numbers,
) -> tuple[Any, Any]:
    """(bytes of elements, bytes with the tiles' padding) that the operand moves; for ints exact, otherwise bounds.

    grid: extents by name.  array, block: sizes.  names: the parameters that the index map speaks of.
    Where the grid or the block is not known as ints the bounds are one fetch and one fetch a step.
    Raises Undecided for more than MOST steps, and for tables in anything but a coordinate of their own.
    """
    name, index = one.operand.name, one.operand.index
    extents = list(grid.values())
    beside = [names[n] for term in index for n in term.names() if n in names and n not in grid]
    if not all(type(n) is int for n in (*extents, *array, *block, *beside)):
        # a block of one row and one column still moves its packed rows and its lanes
        most = product(extents) * product(block) * one.bits * LANES * 32
        return _between(0, most, on, name), _between(0, most, on, name)
    if reads(index):
        raise Unsupported(problems.CHANGES_BY_TABLES(name))
    outer = _apart(one, list(grid))
    steps = product(extents[len(outer) :])
    if steps > MOST:
        raise BudgetExceeded(problems.TOO_MANY_STEPS(name, steps))
    return _counted(one, grid, array, block, names, outer)


def _between(low: Any, high: Any, on: Numbers, name: str) -> Any:
    """Some number from low to high; arrays, of which the certificate asks what may be cheaper, get the lower one."""
    if isinstance(on, ArrayNumbers):
        return low
    between = getattr(on, "between", None)
    if between is not None:
        return between(low, high)
    raise Unsupported(problems.CHANGES_COUNTED(name))


def _apart(one: Traffic, grid_names: Sequence[str]) -> tuple[int, ...]:
    """For each of the outermost grid dimensions, the array dimension whose block it chooses, as long as it chooses one
    by itself and no other: with it everything inside starts anew, so its programs need not be walked.
    """
    found = []
    for k, name in enumerate(grid_names):
        where = [d for d, used in enumerate(one.uses) if k in used]
        if len(where) != 1 or str(one.operand.index[where[0]]) != name:
            break
        found.append(where[0])
    return tuple(found)


def _counted(
    one: Traffic,
    grid: Mapping[str, int],
    array: Sequence[int],
    block: Sequence[int],
    names: Mapping[str, object],
    outer: Sequence[int],
) -> tuple[int, int]:
    import numpy as np

    def held(at: Any, d: int) -> tuple[Any, Any]:
        here = np.clip(array[d] - one.operand.block[d].start(at, size=block[d]), 0, block[d])
        return here, round_up(here, one.units[d])

    whole_outside = rounded_outside = 1
    for d, extent in zip(outer, grid.values(), strict=False):
        here, rounded_here = held(np.arange(extent), d)
        whole_outside, rounded_outside = whole_outside * int(here.sum()), rounded_outside * int(rounded_here.sum())
    inner = list(grid.items())[len(outer) :]
    steps = product([extent for _, extent in inner])
    position = np.arange(steps)
    index: dict[str, Any] = dict(names)
    for name, extent in reversed(inner):
        position, index[name] = np.divmod(position, extent)
    on = ArrayNumbers(np)
    left = [d for d in range(len(array)) if d not in outer]
    where = {d: np.broadcast_to(one.operand.index[d].evaluate(index, on), (steps,)) for d in left}
    changed = np.zeros(steps, dtype=bool)
    changed[:1] = True
    for coordinate in where.values():
        changed[1:] |= coordinate[1:] != coordinate[:-1]
    # int64 holds the sum of all blocks unless they are absurd; then Python's own ints do
    largest = steps * product([round_up(size, LANES) for size in block])
    whole = np.ones(int(np.count_nonzero(changed)), dtype=np.int64 if largest < 2**62 else object)
    rounded = whole.copy()
    for d in left:
        here, rounded_here = held(where[d][changed], d)
        whole, rounded = whole * here, rounded * rounded_here
    return (
        whole_outside * int(whole.sum()) * one.bits // 8,
        rounded_outside * int(rounded.sum()) * one.bits // 8,
    )
