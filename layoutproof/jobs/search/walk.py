"""Bytes of an operand whose index map has no closed form: its grid is walked, at once for all steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from layoutproof.core.errors import Undecided
from layoutproof.core.numbers import Numbers
from layoutproof.core.size import product
from layoutproof.core.term import reads
from layoutproof.engine.arrays import ArrayNumbers
from layoutproof.jobs.search.interval import Interval, IntervalNumbers, ends
from layoutproof.jobs.search.template import Window

MOST = 1 << 22
"""Steps of a grid that are walked."""
LANES = 128


def walked(window: Window, grid: Sequence[Any], names: Mapping[str, Any], on: Numbers) -> tuple[Any, Any]:
    """(bytes of elements, bytes with the tiles' padding) that the operand moves; for ints exact, otherwise bounds.

    Where the grid or the block is not known as ints the bounds are one fetch and one fetch a step.
    Raises Undecided for more than MOST steps, and for tables in anything but a coordinate of their own.
    """
    dims = [term.evaluate(names, on) for term in window.dims]
    block = [1 if term is None else term.evaluate(names, on) for term in window.block]
    if not all(type(n) is int for n in (*grid, *dims, *block)):
        # a block of one row and one column still moves its packed rows and its lanes
        most = product(grid) * product(block) * window.bits * LANES * 32
        return _between(0, most, on, window), _between(0, most, on, window)
    if reads(window.index):
        raise Undecided(f"{window.name}: how often its block changes depends on what its tables hold")
    steps = product(grid)
    if steps > MOST:
        raise Undecided(f"{window.name}: {steps} steps are too many to walk, and its index map has no closed form")
    return _counted(window, grid, dims, block, names)


def _between(low: Any, high: Any, on: Numbers, window: Window) -> Any:
    """Some number from low to high; arrays, of which the certificate asks what may be cheaper, get the lower one."""
    if isinstance(on, IntervalNumbers):
        return Interval(low, max(low, ends(high)[1]))
    if isinstance(on, ArrayNumbers):
        return low
    raise Undecided(f"{window.name}: how often its block changes is counted, not written down")


def _counted(
    window: Window, grid: Sequence[int], dims: Sequence[int], block: Sequence[int], names: Mapping[str, Any]
) -> tuple[int, int]:
    import numpy as np

    steps = product(grid)
    position = np.arange(steps)
    index: dict[str, Any] = dict(names)
    for name, extent in reversed(list(zip(window.names, grid, strict=True))):
        position, index[name] = np.divmod(position, extent)
    on = ArrayNumbers(np)
    where = [np.broadcast_to(term.evaluate(index, on), (steps,)) for term in window.index]
    changed = np.zeros(steps, dtype=bool)
    changed[0] = True
    for coordinate in where:
        changed[1:] |= coordinate[1:] != coordinate[:-1]
    whole = np.ones(int(np.count_nonzero(changed)), dtype=object)
    rounded = whole.copy()
    packing = max(1, 32 // window.bits)
    for d, (coordinate, extent, size) in enumerate(zip(where, dims, block, strict=True)):
        here = np.clip(extent - coordinate[changed] * size, 0, size)
        unit = LANES if d == len(dims) - 1 else packing if d == len(dims) - 2 else 1
        whole = whole * here
        rounded = rounded * (-(-here // unit) * unit)
    return int(whole.sum()) * window.bits // 8, int(rounded.sum()) * window.bits // 8
