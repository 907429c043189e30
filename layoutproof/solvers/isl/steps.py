"""Calling isl within a budget of its own operations, in calls that are short."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import islpy as isl

from layoutproof.core.budget import spend
from layoutproof.core.errors import BudgetExceeded, Unsupported

PER_CALL, PER_OPERATION = 5, 20
"""Steps of a budget around it: for a call, and operations for one of them."""

_FREE = threading.local()


@contextmanager
def steps(budget: int, call: int) -> Iterator[Steps]:
    """`Steps` in a context that is not in use: one of this thread, used again.

    A new one for each question costs 1.2 to 1.8 KB that are never given back (islpy 2026.2.2, lexmin and coalesce).
    Raises Unsupported where isl refuses a call.
    """
    free: list[Any] = vars(_FREE).setdefault("contexts", [])
    context = free.pop() if free else isl.Context()
    # isl's own default prints every error to stderr, and another setting aborts the process
    context.set_on_error(isl.on_error.CONTINUE)
    context.reset_operations()
    try:
        yield Steps(context, budget, call)
    except isl.Error as error:
        raise Unsupported(f"isl cannot: {str(error).partition(' in /')[0]}") from None
    finally:
        # printing and joining it later counts against no budget
        context.set_max_operations(0)
        free.append(context)


class Steps:
    """Calls isl; raises Undecided when `budget` operations are spent, or one call alone needs more than `call`.

    isl holds the interpreter while it runs: until a call returns no signal is seen and no other thread runs. So every
    call is short, and one that runs over the end of its slice is made again in a slice of its own.
    """

    def __init__(self, context: isl.Context, budget: int, call: int) -> None:
        self.context, self.budget, self.call = context, budget, call
        self.limit = 0
        self._extend()

    def __call__(self, function: Callable[..., Any], *arguments: Any) -> Any:
        spend(PER_CALL)
        for again in (False, True):
            try:
                return function(*arguments)
            except isl.Error as error:
                if "maximal number of operations" not in str(error):
                    raise
            # isl's counter stands at the limit now
            if self.limit >= self.budget:
                break
            spend(self.call // PER_OPERATION)
            if again:
                raise BudgetExceeded(f"one call of isl needs more than {self.call} operations")
            self._extend()
        raise BudgetExceeded(f"the budget of {self.budget} isl operations is spent")

    def _extend(self) -> None:
        self.limit = min(self.limit + self.call, self.budget)
        self.context.set_max_operations(self.limit)
