"""Z3: bit-vectors for constant sizes; integers, with products and symbolic divisors, for run-time sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

from layoutproof.core.budget import spend
from layoutproof.core.claim import Claim, Uncovered
from layoutproof.core.errors import BudgetExceeded, InternalError, NotSmallest, Undecided, Unsupported
from layoutproof.core.forks import NATIVE
from layoutproof.core.result import Point
from layoutproof.solvers.growing import divided_by
from layoutproof.solvers.growing import smallest as smallest_sizes
from layoutproof.solvers.smt.bits import Bits, Widths
from layoutproof.solvers.smt.integers import Integers
from layoutproof.solvers.smt.library import z3
from layoutproof.solvers.smt.minimum import NotShown, Search, searching
from layoutproof.solvers.smt.products import spelled
from layoutproof.solvers.smt.session import MEMORY, Session
from layoutproof.solvers.smt.statement import Statement
from layoutproof.solvers.smt.unreached import unreached

if TYPE_CHECKING:
    from layoutproof.solvers.smt.library import BoolRef

BUDGET = 10_000_000
"""Steps of z3 (`rlimit`) for each search at effort 1: up to about ten seconds, but the same on every machine."""

SMALL = (16, 256)
"""Sizes up to which violations are sought as bit-vectors: z3 finds them far more surely than among integers."""

PER_QUESTION = 500
"""Steps of a budget around it that a context takes."""

Answer = TypeVar("Answer")

RESTARTS = 8
"""Attempts at a proof over integers. Most take few steps, some never end, and which do changes with the seed."""


def decide(claim: Claim, effort: float = 1) -> Point | None:
    """The smallest violation, or None when none exists for any sizes >= 1 that satisfy `claim.where`.

    Raises NotSmallest when the budget ends between finding a violation and showing it the smallest. Raises Undecided
    when it ends before, and for what z3 is not asked here: xor of symbolic sizes, divisors that may be 0 or negative.
    All that z3 holds for the question is freed before this returns.

    >>> from layoutproof.core.claim import And, At, Equal, LexLess
    >>> from layoutproof.core.index_map import IndexMap
    >>> from layoutproof.core.space import Space
    >>> swap = IndexMap(Space(("i",), (16,)), Space(("o",), (8,)), lambda x, c, on: (on.xor(x[0] % 8, x[0] // 8),))
    >>> pair = {"first": swap.domain, "second": swap.domain}
    >>> decide(Claim(pair, And((LexLess("first", "second"), Equal(At(swap, "first"), At(swap, "second"))))))
    {'first': (0,), 'second': (9,)}
    """
    return _alone(lambda session, budget: _answer(session, claim, budget), effort)


def proves(claim: Claim, effort: float = 1) -> bool:
    """Whether there is no violation. As `decide`, which alone looks for the smallest one: any ends this."""
    if isinstance(claim.violation, Uncovered):
        return decide(claim, effort) is None
    if claim.sizes():
        return _alone(lambda session, budget: _by_integers(session, claim, budget, least=False), effort) is None
    return _alone(lambda session, budget: _proved(session, claim, budget), effort)


def _alone(ask: Callable[[Session, int], Answer], effort: float) -> Answer:
    """The answer to a question in a context and with a budget of its own."""
    try:
        # one question at a time: z3 counts memory over the whole process, and two would spend each other's
        with NATIVE, closing(Session()) as session:
            spend(PER_QUESTION)
            return ask(session, int(BUDGET * effort))
    except z3.Z3Exception as error:
        if "memory" in str(error):
            raise BudgetExceeded(f"the {MEMORY} megabytes for z3 are spent") from None
        raise Unsupported(f"z3 cannot: {error}") from None


def _answer(session: Session, claim: Claim, budget: int) -> Point | None:
    if isinstance(claim.violation, Uncovered):
        return unreached(session, claim, budget, _decided, _proved)
    return _decided(session, claim, budget)


def _decided(session: Session, claim: Claim, budget: int) -> Point | None:
    """Without quantifiers: bit-vectors for constant sizes, integers for others."""
    return _by_integers(session, claim, budget) if claim.sizes() else _by_bits(session, claim, {}, budget)


def _proved(session: Session, claim: Claim, budget: int) -> bool:
    """Whether there is no violation; a violation itself is not looked for."""
    if claim.sizes():
        dialect = Integers(session.context)
        statement = Statement(claim, dialect, math.inf)
        if dialect.doubts:
            raise Unsupported("divides by a value that may be 0 or negative")
        assumed = [*dialect.assumed, *dialect.monotony()]
        if statement.violated is False:
            return True
        search = _ended(session, assumed, statement.violated, budget)
        return search is not None and search.solution is None
    widths = Widths()
    Statement(claim, widths, {})
    bits = Bits(session.context, widths.width)
    statement = Statement(claim, bits, {})
    search = searching(session, bits.assumed, statement.violated, session.bits(), budget)
    return statement.violated is False or not search.possible()


def _by_bits(
    session: Session, claim: Claim, sizes: Mapping[str, int] | int, budget: int, least: bool = True
) -> Point | None:
    """The smallest violation with these sizes, or with sizes up to that; divisors are known to be positive then.

    least: False for any violation.
    """
    widths = Widths(divisors_known=type(sizes) is int)
    Statement(claim, widths, sizes)
    dialect = Bits(session.context, widths.width, divisors_known=type(sizes) is int)
    statement = Statement(claim, dialect, sizes)
    search = searching(session, dialect.assumed, statement.violated, session.bits(), budget)
    if statement.violated is False or not search.possible():
        return None
    if not least:
        return statement.point([search.value(term) for term in statement.unknowns()])
    try:
        return statement.point(search.smallest(statement.unknowns(), z3.ULE))
    except NotShown as best:
        raise NotSmallest(str(best), statement.point(best.values)) from None


def _by_integers(session: Session, claim: Claim, budget: int, least: bool = True) -> Point | None:
    """The smallest violation for sizes without bound. least: False for any violation."""
    if divided_by(claim):
        # among products of unknowns that are divided by unknowns, z3 spends its budget before it finds any
        try:
            return smallest_sizes(claim, lambda asked, known: _by_bits(session, asked, known, budget))
        except NotSmallest:
            raise
        except Undecided:
            pass
    dialect = Integers(session.context)
    statement = Statement(claim, dialect, math.inf)
    lemmas = dialect.monotony()
    products = dialect.products()
    for before, divisor in dialect.doubts:
        search = spelled(session, [*dialect.assumed[:before], *lemmas], divisor < 1, products, budget)
        if search.possible():
            raise Unsupported(f"divides by {z3.simplify(divisor)}, which may be 0 or negative")
    assumed = [*dialect.assumed, *lemmas]
    if statement.violated is False:
        return None
    ended = _ended(session, assumed, statement.violated, budget)
    if ended is not None and ended.solution is None:
        return None
    if ended is not None and not least and not dialect.products():
        # a solution without products is a violation
        return statement.point([ended.value(dialect.unknown(term)) for term in statement.unknowns()])
    for highest in SMALL:
        found = _small(session, claim, highest, budget, least)
        if found is not None:
            return found
    assumed += dialect.scaled_quotients()
    search = spelled(session, assumed, statement.violated, dialect.products(), budget)
    if not search.possible():
        return None
    count = len(statement.largest) + len(statement.sizes)
    unknowns = [dialect.unknown(term) for term in statement.unknowns()[:count]]
    spent = ""
    try:
        values = (
            search.smallest(unknowns, lambda term, value: term <= value)
            if least
            else [search.value(term) for term in unknowns]
        )
    except NotShown as best:
        values, spent = best.values, str(best)
    values = values[len(statement.largest) :]
    found = _by_bits(session, claim, dict(zip(statement.sizes, values, strict=True)), budget, least)
    if found is not None and spent:
        raise NotSmallest(spent, found)
    if found is None:
        raise InternalError(f"z3 finds a violation among integers, but none with {tuple(statement.sizes)} = {values}")
    return found


def _small(session: Session, claim: Claim, highest: int, budget: int, least: bool) -> Point | None:
    """The smallest violation with sizes up to `highest`, or any; None says nothing."""
    try:
        return _by_bits(session, claim, highest, budget, least)
    except Undecided:
        return None


def _ended(session: Session, assumed: list[BoolRef], violated: BoolRef, budget: int) -> Search | None:
    """A search that ended, in which products may be any numbers that the lemmas allow; None where none does.

    Where it has no solution, there is no violation.
    """
    for seed in range(RESTARTS):
        # the later, the longer: half of the budget for the last
        search = searching(
            session, assumed, violated, session.integers(seed), budget >> (1 + (RESTARTS - 1 - seed) // 2)
        )
        try:
            search.possible()
        except Undecided:
            continue
        return search
    return None
