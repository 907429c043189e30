"""Places that no element reaches: a for-all inside an exists, in four ways that each decide what the others cannot.

A few places that are known are written out. Where the digits of a place say which index would be there, that index is
shown to be right for every place. As many elements as places reach all of them where no two share one and none is
outside. Otherwise z3 eliminates the quantifier, or instantiates it by models.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from layoutproof.core.claim import And, At, Claim, Differ, Equal, LexLess, Or, Outside, Uncovered
from layoutproof.core.errors import NotSmallest, Undecided, Unsupported
from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point
from layoutproof.core.size import product
from layoutproof.core.space import Space
from layoutproof.solvers.digits.witness import witness
from layoutproof.solvers.smt.minimum import NotShown, searching
from layoutproof.solvers.smt.plain import Plain
from layoutproof.solvers.smt.session import Session
from layoutproof.solvers.smt.statement import Statement, few

SHARE = 8
"""Each way has this part of the budget."""

SMALL = 16
"""Sizes up to which products of them stand under a quantifier."""

Decide = Callable[[Session, Claim, int], Point | None]
Prove = Callable[[Session, Claim, int], bool]


def unreached(session: Session, claim: Claim, budget: int, decide: Decide, prove: Prove) -> Point | None:
    """The smallest place that nothing reaches, or None where there is none.

    decide, prove: z3 without quantifiers, with or without the smallest violation. Raises Undecided, and NotSmallest, as
    `smt.decide` does.
    """
    assert isinstance(claim.violation, Uncovered)
    m, reasons = claim.violation.map, []
    if few(m):
        return decide(session, claim, budget)
    try:
        if prove(session, _wrong_witness(claim, m, claim.violation.point), budget // SHARE):
            return None
    except Undecided as undecided:
        reasons.append(str(undecided))
    try:
        if all(prove(session, easier, budget // SHARE) for easier in _one_each(claim, m, claim.violation.point)):
            return None
    except Undecided as undecided:
        reasons.append(str(undecided))
    for eliminated in (True, False):
        try:
            return _by_quantifiers(session, claim, budget // SHARE, eliminated)
        except NotSmallest:
            raise
        except Undecided as undecided:
            reasons.append(str(undecided))
    raise Unsupported("; ".join(dict.fromkeys(reasons)))


def _wrong_witness(claim: Claim, m: IndexMap, point: str) -> Claim:
    """No place is one whose index, as its digits say it, is none or is elsewhere."""
    found = witness(m)
    rank = len(m.domain.extents)

    def there(at: Index, replica: Index, on: Numbers) -> Index:
        whole = found.place(at, (), on)
        return m.place(whole[:rank], whole[rank:], on)

    box = claim.points[point]
    back, same = IndexMap(box, box, there, symbols=m.sizes()), IndexMap(box, box, lambda at, replica, on: at)
    wrong = Or((Outside(At(found, point)), Differ(At(back, point), At(same, point))))
    return Claim(claim.points, wrong, where=claim.where, symbols=claim.sizes())


def _one_each(claim: Claim, m: IndexMap, point: str) -> tuple[Claim, ...]:
    """All in the box, and no two at one place: together they leave no place free. Unsupported for unequal counts."""
    rank, extents, box = len(m.domain.extents), m.domain.extents + m.replicas.extents, claim.points[point]
    if product(extents) != product(box.extents):
        raise Unsupported("there are not as many elements as places")
    domain = Space(tuple([f"entry {k}" for k in range(len(extents))]), extents)
    whole = IndexMap(domain, m.range, lambda row, replica, on: m.place(row[:rank], row[rank:], on), symbols=m.sizes())
    pair = And((LexLess("first", "second"), Equal(At(whole, "first"), At(whole, "second"))))
    easier: tuple[Claim, ...] = (
        Claim({"element": domain}, Outside(At(whole, "element"), box.extents)),
        Claim({"first": domain, "second": domain}, pair),
    )
    return tuple([replace(one, where=claim.where, symbols=claim.sizes()) for one in easier])


def _by_quantifiers(session: Session, claim: Claim, budget: int, eliminated: bool) -> Point | None:
    """Integers under one for-all, which is eliminated or instantiated.

    Where sizes are multiplied, only those up to `SMALL` are looked at: z3 counts no step for multiplying, and each of
    its deductions from a product may square what came before, so that a few steps took hours.
    """
    dialect, small = Plain(session.context), False
    statement = Statement(claim, dialect, math.inf)
    if statement.violated is not False and dialect.unbounded_products:
        dialect, small = Plain(session.context), True
        statement = Statement(claim, dialect, SMALL)
        if dialect.unbounded_products:
            raise Unsupported("multiplies values without a bound under a for-all")
    if dialect.doubts:
        raise Unsupported("divides by a value that may be 0 or negative")
    solver = session.quantified() if eliminated else session.integers()
    search = searching(session, dialect.assumed, statement.violated, solver, budget)
    if statement.violated is False or not search.possible():
        if small:
            raise Unsupported(f"multiplies sizes under a for-all, and has no violation with sizes up to {SMALL}")
        return None
    try:
        return statement.point(search.smallest(statement.unknowns(), lambda term, value: term <= value))
    except NotShown as best:
        raise NotSmallest(str(best), statement.point(best.values)) from None
