"""A budget of steps for everything that is done within a `with`, however many claims and engines that takes.

Each engine has a budget of its own for each claim; a question about a kernel may ask a thousand claims. Steps are
counted, never seconds: one is about ten microseconds of a machine of 2025 in every engine, and each engine reports the
steps that it did (`spend`). Without a budget around it nothing is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from layoutproof.core.errors import BudgetExceeded


@dataclass(slots=True)
class Budget:
    """Steps of which `left` are not spent. effort: the factor on all other budgets."""

    steps: int
    left: int
    effort: int = 1

    def more(self, steps: int) -> None:
        """As many steps may be done beside."""
        self.steps += steps
        self.left += steps


_NOW: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def budget(steps: int, effort: int = 1) -> Iterator[Budget]:
    """Within it as many steps times `effort` may be done; a budget around this one is not touched.

    >>> with budget(100) as mine:
    ...     spend(30)
    >>> mine.left
    70
    """
    mine = Budget(steps * effort, steps * effort, effort)
    token = _NOW.set(mine)
    try:
        yield mine
    finally:
        _NOW.reset(token)


def spend(steps: int) -> None:
    """Steps that were done. Raises BudgetExceeded where there were not as many left."""
    mine = _NOW.get()
    if mine is not None:
        mine.left -= steps
        if mine.left < 0:
            raise BudgetExceeded(spent())


def left() -> int | None:
    """Steps that are left, None where nothing is counted."""
    mine = _NOW.get()
    return None if mine is None else mine.left


def effort() -> int:
    """The factor on every budget of the current call, 1 by default."""
    mine = _NOW.get()
    return 1 if mine is None else mine.effort


def spent() -> str:
    """That the budget is spent, in words; "" where it is not."""
    mine = _NOW.get()
    return "" if mine is None or mine.left >= 0 else f"the budget of {mine.steps} steps for one question is spent"


def most(steps: int) -> int:
    """As many of some steps as are left, one at least."""
    mine = _NOW.get()
    return steps if mine is None else max(1, min(steps, mine.left))
