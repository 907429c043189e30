"""Which rows of a sweep fit, and which of those that compute the same is the cheapest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from layoutproof.core.counted import Counted
from layoutproof.programs import problems
from layoutproof.programs.sweep import COMPILED, NO_ROOM, SweepRow

FITS, TOO_LARGE = "fits", "too_large"
RANKS: Mapping[str, str] = MappingProxyType(
    {
        "time": "the bound on the time of a step, then peak memory",
        "chip-time": "the bound on the time of a step times its devices, then peak memory",
        "peak": "peak memory, then the bound on the time of a step",
    }
)
"""What rows may be ordered by, in words."""

Key = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Cheapest:
    """The cheapest row of those that compute the same.

    sizes: the sizes of arguments that these have in common.  row: by number, None where none is known to fit and has a
    bound.  among: how many were compared.  unbounded: rows that fit and are not among them, as their bound is open.
    why: the reason why there is none.  first: where that is because all bounds are open, the first by what is certain
    of them.
    """

    sizes: Mapping[str, str]
    row: int | None
    among: int = 0
    unbounded: int = 0
    why: str = ""
    first: int | None = None


def state(row: SweepRow, memory: int | None = None) -> str:
    """A row in a word: `fits`, `too_large`, `compiled` where no memory is known to fit into, or its outcome.

    >>> one = SweepRow({}, "compiled", peak=9)
    >>> state(one, 9), state(one, 8), state(one)
    ('fits', 'too_large', 'compiled')
    >>> state(SweepRow({}, "no_room")), state(SweepRow({}, "unknown"), 8)
    ('too_large', 'unknown')
    """
    fits = row.fits(memory)
    if row.outcome not in (COMPILED, NO_ROOM):
        return row.outcome
    return COMPILED if fits is None else FITS if fits else TOO_LARGE


def cheapest(
    rows: Sequence[SweepRow], sizes: frozenset[str], rank: str, memory: int | None = None
) -> tuple[Cheapest, ...]:
    """The cheapest row for each combination of sizes, in the order of the rows.

    Args:
        rows: Of a sweep.
        sizes: The axes along which something else is computed: rows that differ there are not compared.
        rank: Of RANKS.
        memory: Bytes of a device, None = the chip's own.

    Returns:
        One for each combination. A row is compared where it fits. Where all bounds are open there is none, and
        the first by what is certain of them is named as such.
    """
    groups: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(tuple((n, v) for n, v in row.at.items() if n in sizes), []).append(number)
    return tuple(_cheapest(rows, dict(key), numbers, rank, memory) for key, numbers in groups.items())


def _cheapest(
    rows: Sequence[SweepRow], sizes: Mapping[str, str], numbers: Sequence[int], rank: str, memory: int | None
) -> Cheapest:
    fitting = [number for number in numbers if state(rows[number], memory) == FITS]
    keys = {number: key for number in fitting if (key := _KEYS[rank](rows[number])) is not None}
    closed = {number: key for number, key in keys.items() if rank == "peak" or not _opened(rows[number])}
    # an open bound may be short because most is not counted: it beats no other
    compared = closed or keys
    if compared:
        best = min(compared, key=lambda number: (compared[number], number))
        left = len(fitting) - len(compared)
        if closed:
            return Cheapest(sizes, best, len(compared), left)
        return Cheapest(sizes, None, len(compared), left, problems.ALL_BOUNDS_OPEN(_opened(rows[best])), best)
    if fitting:
        return Cheapest(sizes, None, 0, len(fitting), problems.NO_BOUND())
    unsaid = any(state(rows[number], memory) == COMPILED for number in numbers)
    why = problems.MEMORY_UNKNOWN() if unsaid else problems.NOTHING_FITS()
    return Cheapest(sizes, None, 0, 0, why)


def _opened(row: SweepRow) -> str:
    """Why the bound of a row is open above; "" where it is not."""
    return "" if row.bound is None or row.bound.most is not None else row.bound.why or problems.BOUND_OPEN()


def _time(bound: Counted | None) -> int | None:
    """The most that a bound may be; where it is open what is certain of it."""
    return None if bound is None else bound.least if bound.most is None else bound.most


def _by_time(row: SweepRow) -> Key | None:
    time = _time(row.bound)
    return None if time is None or row.peak is None else (time, row.peak)


def _by_chip_time(row: SweepRow) -> Key | None:
    time = _time(row.chip_time)
    return None if time is None or row.peak is None else (time, row.peak)


def _by_peak(row: SweepRow) -> Key | None:
    time = _time(row.bound)
    return None if row.peak is None else (row.peak, 0 if time is None else time)


_KEYS: Mapping[str, Callable[[SweepRow], Key | None]] = MappingProxyType(
    {"time": _by_time, "chip-time": _by_chip_time, "peak": _by_peak}
)
