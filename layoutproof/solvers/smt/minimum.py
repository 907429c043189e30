"""Asking z3 within a budget of its own steps, and finding the smallest solution."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from layoutproof.core.budget import left, most, spend
from layoutproof.core.errors import BudgetExceeded, Undecided, Unsupported
from layoutproof.solvers.smt.library import z3
from layoutproof.solvers.smt.session import MEMORY, Session

if TYPE_CHECKING:
    from layoutproof.solvers.smt.library import BoolRef, ExprRef, Solver

PER_CHECK, Z3_STEPS = 100, 30
"""Steps of a budget around it: for a check, and z3's own for one of them."""

_OVER = ("canceled", "max. resource limit exceeded")


class NotShown(BudgetExceeded):
    """The `values` found so far, which may not be the smallest."""

    def __init__(self, reason: str, values: list[int]) -> None:
        super().__init__(reason)
        self.values = values


class Search:
    """One solver and what is left of its budget; steps are counted, never seconds."""

    def __init__(self, session: Session, solver: Solver, budget: int) -> None:
        self.session = session
        self.solver = solver
        self.budget = budget
        self.left = budget
        self.solution: Any = None

    def possible(self, *more: BoolRef) -> bool:
        """Whether all that was added, and `more`, can hold. Raises Undecided when the budget is spent."""
        # the counter runs over the whole process, the limit over one check; a limit of 0 would be none
        before = self._spent()
        self.solver.set("rlimit", max(1, min(self.left, Z3_STEPS * most(self.left))))
        if more:
            self.solver.push()
            self.solver.add(*more)
        answer = self.session.check(self.solver)
        used = self._spent() - before
        self.left -= used
        spend(PER_CHECK + used // Z3_STEPS)
        reason = self.solver.reason_unknown() if answer == z3.unknown else ""
        self.solution = self.solver.model() if answer == z3.sat else None
        if more:
            self.solver.pop()
        if answer == z3.unknown:
            if "memory" in reason:
                raise BudgetExceeded(f"the {MEMORY} megabytes for z3 are spent")
            if reason in _OVER or self.left <= 0:
                raise BudgetExceeded(f"the budget of {self.budget} z3 steps is spent")
            raise Unsupported(f"z3 gives up: {reason}")
        return bool(answer == z3.sat)

    def _spent(self) -> int:
        # the counter is among the last of a dozen, and z3's own iteration makes a value of each
        found, context = self.solver.statistics(), self.session.context.ref()
        for k in reversed(range(len(found))):
            if z3.Z3_stats_get_key(context, found.stats, k) == "rlimit count":
                return int(z3.Z3_stats_get_uint_value(context, found.stats, k))
        return 0

    def value(self, term: ExprRef) -> int:
        """The value of `term` in the latest solution."""
        number = self.solution.eval(term, model_completion=True)
        return int(number.as_long())

    def smallest(self, terms: Sequence[ExprRef], at_most: Callable[[Any, int], object]) -> list[int]:
        """The lexicographically smallest values of `terms` that can hold; something can, and none is negative.

        Raises NotShown with the solution at hand when the budget does not suffice to show one the smallest. A search
        that was done before is not done again. It takes the same steps: an answer does not depend on what else was
        asked.
        """
        before = left()
        if before is None:
            return self._smallest(terms, at_most)
        asked = _Asked(self._formulas(terms), self.left, [(self, terms, at_most)])
        values, steps = _smallest_of(asked)
        if not asked.searches:
            return list(values)
        if steps > before:
            # where the budget ends, and with which values at hand, only the search itself says
            return self._smallest(terms, at_most)
        spend(steps)
        return list(values)

    def _formulas(self, terms: Sequence[ExprRef]) -> str:
        """All that the search depends on: what was added, and the terms in order."""
        said = "\n".join([self.solver.sexpr(), *(term.sexpr() for term in terms)])
        return hashlib.sha256(said.encode()).hexdigest()

    def _smallest(self, terms: Sequence[ExprRef], at_most: Callable[[object, int], object]) -> list[int]:
        values = [self.value(term) for term in terms]
        for k, term in enumerate(terms):
            try:
                values[k:] = self._least(terms[k:], values[k:], at_most)
            except Undecided as spent:
                raise NotShown(str(spent), values) from None
            self.solver.add(term == values[k])
        return values

    def _least(self, terms: Sequence[ExprRef], best: list[int], at_most: Callable[[object, int], object]) -> list[int]:
        """The solution with the smallest first term, which is mostly near 0, or has few bits that are not 0."""
        low = 0
        while low < best[0]:
            # by turns the least number that is left, and all below the highest bit that is open
            if self.possible(at_most(terms[0], low)):
                return [self.value(term) for term in terms]
            bit = (best[0] ^ low).bit_length() - 1
            low, middle = low + 1, best[0] >> bit << bit
            if low < middle:
                if self.possible(at_most(terms[0], middle - 1)):
                    best = [self.value(term) for term in terms]
                else:
                    low = middle
        return best


@dataclass(frozen=True, slots=True)
class _Asked:
    """A search for the smallest solution, equal to another one of the same formulas with as many steps left.

    searches: the search itself, taken out by who does it: what is kept of a question holds nothing of z3's.
    """

    formulas: str
    left: int
    searches: list[tuple[Search, Sequence[ExprRef], Callable[[object, int], object]]] = field(compare=False)


@lru_cache(maxsize=4096)
def _smallest_of(asked: _Asked) -> tuple[tuple[int, ...], int]:
    """The smallest solution, and the steps that it took. What raises is not kept."""
    search, terms, at_most = asked.searches.pop()
    # steps are counted here: who asks has a budget
    before = left() or 0
    values = search._smallest(terms, at_most)
    return tuple(values), before - (left() or 0)


def searching(session: Session, assumed: list[BoolRef], violated: BoolRef, solver: Solver, budget: int) -> Search:
    """A search for a violation under what is assumed."""
    solver.add(*assumed, violated)
    return Search(session, solver, budget)
