"""Of which generations of TPU each case is asked: of all where the cases are few, else of one, each in its turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layoutproof.crosschecks.case import Case
from layoutproof.hardware.tpu_chips import CHIPS

Turn = tuple[Case, tuple[str, ...]]
"""A case, and the generations that it is asked of."""


def turns(cases: Sequence[Case], few: int, together: int) -> Iterator[list[Turn]]:
    """Parts of the cases in order, none of which has more than `together` cases of one generation that takes turns.

    few: up to so many cases are asked of every generation.
    """
    names = tuple(CHIPS)
    step = together * len(names)
    for start in range(0, len(cases), step):
        part = enumerate(cases[start : start + step])
        yield [(case, names if len(cases) <= few else (names[k % len(names)],)) for k, case in part]
