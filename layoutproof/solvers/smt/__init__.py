"""Z3: bit-vectors for constant sizes; integers, with products and symbolic divisors, for run-time sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import z3

from layoutproof.core.claim import Claim
from layoutproof.core.errors import InternalError, Undecided
from layoutproof.core.result import Point
from layoutproof.solvers.smt.bits import Bits, Widths
from layoutproof.solvers.smt.integers import Integers
from layoutproof.solvers.smt.search import Search
from layoutproof.solvers.smt.statement import Statement

BUDGET = 10_000_000
"""Steps of z3 (`rlimit`) for each search at effort 1: up to about ten seconds, but the same on every machine."""

SMALL = 16
"""Sizes up to which violations are sought first."""


def decide(claim: Claim, effort: int = 1) -> Point | None:
    """The smallest violation, or None when none exists for any sizes >= 1 that satisfy `claim.where`.

    Raises Undecided when the budget is spent, and for what z3 is not asked here: unreached places, xor of symbolic
    sizes, divisors that may be 0 or negative.

    >>> from layoutproof.core.claim import All, At, Before, Same
    >>> from layoutproof.core.index_map import IndexMap
    >>> from layoutproof.core.space import Space
    >>> swap = IndexMap(Space(("i",), (16,)), Space(("o",), (8,)), lambda x, c, on: (on.xor(x[0] % 8, x[0] // 8),))
    >>> pair = {"first": swap.domain, "second": swap.domain}
    >>> decide(Claim(pair, All((Before("first", "second"), Same(At(swap, "first"), At(swap, "second"))))))
    {'first': (0,), 'second': (9,)}
    """
    budget = BUDGET * effort
    try:
        sizes = claim.sizes()
        if not sizes:
            return _at_sizes(claim, {}, budget)
        values = _smallest_sizes(claim, budget)
        if values is None:
            return None
        # with the sizes known the rest is bit-vectors, which z3 decides far more surely than products of integers
        points = _at_sizes(claim, dict(zip(sizes, values, strict=True)), budget)
    except z3.Z3Exception as error:
        raise Undecided(f"z3 cannot: {error}") from None
    if points is None:
        raise InternalError(f"z3 finds a violation among integers, but none with {sizes} = {values}")
    return {"sizes": values, **points}


def _at_sizes(claim: Claim, sizes: Mapping[str, int], budget: int) -> Point | None:
    """The smallest violation with these sizes."""
    widths = Widths()
    Statement(claim, widths, sizes)
    dialect = Bits(widths.width)
    statement = Statement(claim, dialect, sizes)
    search = _search(dialect.assumed, statement.violated, z3.SolverFor("QF_BV"), budget)
    if statement.violated is False or not search.possible():
        return None
    entries = [entry for point in statement.points.values() for entry in point]
    free = [entry.term for entry in entries if type(entry) is not int]
    found = iter(search.smallest(free, 0, z3.ULE))
    return {
        name: tuple(entry if type(entry) is int else next(found) for entry in point)
        for name, point in statement.points.items()
    }


def _smallest_sizes(claim: Claim, budget: int) -> tuple[int, ...] | None:
    """The sizes of the smallest violation: smallest maximum first, then lexicographic; None without violation."""
    dialect = Integers()
    statement = Statement(claim, dialect)
    largest = [statement.largest_size()] if len(statement.sizes) > 1 else []
    lemmas = dialect.monotony()
    products = dialect.products()
    for before, divisor in dialect.doubts:
        search = _search([*dialect.assumed[:before], *lemmas, *products], divisor < 1, _integer_solver(), budget)
        if search.possible():
            raise Undecided(f"divides by {z3.simplify(divisor)}, which may be 0 or negative")
    assumed = [*dialect.assumed, *lemmas]
    if statement.violated is False or not _possible_linearly(assumed, statement.violated, budget):
        return None
    search = _search([*assumed, *products], statement.violated, _integer_solver(), budget)
    unknowns = [dialect.unknown(size.term) for size in (*largest, *statement.sizes.values())]
    if not _possible_small(search, unknowns[0] <= SMALL) and not search.possible():
        return None
    values = search.smallest(unknowns, 1, lambda term, value: term <= value)
    return tuple(values[len(largest) :])


def _possible_small(search: Search, small: Any) -> bool:
    """Most violations have small sizes, and among those z3 finds them far sooner; False says nothing."""
    try:
        return search.possible(small, share=4)
    except Undecided:
        return False


def _possible_linearly(assumed: list[Any], violated: Any, budget: int) -> bool:
    """False only if there is no violation even where products may be any numbers that the lemmas allow."""
    try:
        return _search(assumed, violated, _integer_solver(), budget).possible()
    except Undecided:
        return True


def _search(assumed: list[Any], violated: Any, solver: Any, budget: int) -> Search:
    solver.add(*assumed, violated)
    return Search(solver, budget)


def _integer_solver() -> Any:
    # measured on all-shape proofs of flattened tilings over 24 seeds: z3.Solver() runs out of any budget on every
    # tenth of them, this one on none
    return z3.SimpleSolver()
