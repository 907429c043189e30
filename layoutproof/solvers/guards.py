"""Under which condition on run-time sizes a property holds that does not hold for all of them.

Candidates are what tiling cares about: a size divisible by a divisor of the tiles (a number, or a size for tiles of any
size), or a size of 1. Each alternative
of the answer is proved for all sizes by the structural engine. It is called exact only where it is also proved that
the property fails for all other sizes; that is a question of its own, which mostly isl can answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from math import lcm

from layoutproof.core.claim import And, Claim, NotViolated, allows, maps_of
from layoutproof.core.errors import Undecided
from layoutproof.core.numbers import INTS, Numbers
from layoutproof.core.size import Size
from layoutproof.core.term import Term, size_term
from layoutproof.solvers import digits
from layoutproof.solvers.decide import decide
from layoutproof.solvers.vacuity import satisfiable

GRID = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 128, 130, 256)
"""Sizes tried for others that work too, a second multiple of each usual tile among them; `MOST` combinations."""
MOST = 600
LARGEST = 4096
"""Largest divisor tried."""


def holds_when(claims: Sequence[Claim], where: Term | None) -> dict[str, str]:
    """Figures `holds_when` (a condition, proved sufficient) and `holds_when_is` ("exact", proved, or "sufficient ..").

    Empty when no condition of the forms tried is enough.
    """
    names = _names(claims)
    steps = _divisors(claims)
    alternatives: list[Term] = _multiples(claims, where)
    for name in names:
        alternatives += _weakest(claims, where, [name], steps)
    if not alternatives:
        alternatives += _weakest(claims, where, names, steps)
    for name, value in itertools.product(names, (1, *steps)):
        fixed = _equals(name, value)
        if (value > 1 and alternatives) or any(_allows(found, name, value) for found in alternatives):
            continue
        if _proved(claims, _both(where, fixed)):
            alternatives.append(fixed)
        elif value > 1:
            rest = _weakest(claims, _both(where, fixed), [n for n in names if n != name], steps)
            alternatives += [_both(fixed, condition) for condition in rest]
    if not alternatives:
        return {}
    condition = reduce(lambda left, right: Term("or", left, right), alternatives)
    return {"holds_when": str(condition), "holds_when_is": _compare(claims, where, condition, names)}


def _weakest(claims: Sequence[Claim], where: Term | None, names: Sequence[str], steps: Sequence[int]) -> list[Term]:
    """The conjunction of `name % step == 0` over names that suffices, each step as small as it gets; [] for none."""
    if not steps or not names:
        return []
    chosen = dict.fromkeys(names, steps[-1])

    def condition(trial: dict[str, int]) -> list[Term]:
        return [_equals(Term("%", Term("name", n), Term("int", s)), 0) for n, s in trial.items() if s > 1]

    if not _proved(claims, _all(where, *condition(chosen))):
        return []
    for name in names:
        for step in (1, *steps):
            trial = {**chosen, name: step}
            if condition(trial) and _proved(claims, _all(where, *condition(trial))):
                chosen = trial
                break
    return [_both(*condition(chosen))]


def _multiples(claims: Sequence[Claim], where: Term | None) -> list[Term]:
    """Conditions `N % t == 0` on tiles of run-time size that suffice: each alone, or as few together as it takes."""
    zero = [_equals(Term("%", Term("name", name), by), 0) for name, by in _sizes_that_divide(claims)]
    alone = [condition for condition in zero if _proved(claims, _both(where, condition))]
    if alone or len(zero) < 2 or not _proved(claims, _all(where, *zero)):
        return alone
    for condition in list(zero):
        rest = [other for other in zero if other is not condition]
        if rest and _proved(claims, _all(where, *rest)):
            zero = rest
    return [_both(*zero)]


def _proved(claims: Sequence[Claim], where: Term | None) -> bool:
    """Whether digits prove the claims for the sizes that `where` allows, and it allows some."""
    try:
        proved = all(digits.decide(replace(claim, where=where)) is None for claim in claims)
    except Undecided:
        return False
    # a condition that contradicts the user's assumptions on sizes proves everything, and is useless
    return proved and (where is None or satisfiable(where))


def _compare(claims: Sequence[Claim], where: Term | None, condition: Term, names: Sequence[str]) -> str:
    kept = And(tuple([NotViolated(claim) for claim in claims]))
    elsewhere = Claim({}, kept, where=_both(where, Term("not", condition)), symbols=tuple(names))
    found, _, reason, *_ = decide(elsewhere, ("isl",))
    if found is None and not reason:
        return "exact"
    if found is not None:
        return _not_necessary(names, found["sizes"])
    grid = sorted(itertools.product(GRID, repeat=min(len(names), 4)), key=lambda v: (max(v), v))
    for values in grid[:MOST] if len(names) <= 4 else []:
        on = Numbers(dict(zip(names, values, strict=True)))
        if not allows(where, on):
            continue
        point = _both(*[_equals(n, v) for n, v in on.sizes.items()])
        if not allows(condition, on) and _proved(claims, point):
            return _not_necessary(names, values)
    return "sufficient"


def _not_necessary(names: Sequence[str], sizes: Sequence[int]) -> str:
    point = _both(*[_equals(name, value) for name, value in zip(names, sizes, strict=True)])
    return f"sufficient, not necessary: it also holds for {point}"


def _names(claims: Sequence[Claim]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for claim in claims for name in claim.sizes()))


def _divisors(claims: Sequence[Claim]) -> list[int]:
    extents = [e for claim in claims for m in maps_of(claim.violation) for e in m.range.extents]
    # ceil(N/8) in an extent says that N is tiled by 8
    common = lcm(*(d for e in extents if isinstance(e, Size) for _, d in e.divisions() if type(d) is int))
    return [d for d in range(2, min(common, LARGEST) + 1) if common % d == 0]


def _sizes_that_divide(claims: Sequence[Claim]) -> list[tuple[str, Term]]:
    """(N, t) for each ceil(N/t) in an extent where t is a run-time size."""
    found: dict[tuple[str, str], Term] = {}
    maps = [m for claim in claims for m in maps_of(claim.violation)]
    for extent in (e for m in maps for e in (*m.domain.extents, *m.range.extents)):
        for over, by in extent.divisions() if isinstance(extent, Size) else ():
            if isinstance(by, Size):
                found |= {(name, str(by)): size_term(by) for name in over.symbols() if name not in by.symbols()}
    return [(name, by) for (name, _), by in found.items()]


def _both(first: Term | None, *others: Term) -> Term:
    """A conjunction of at least one term."""
    terms = [term for term in (first, *others) if term is not None]
    return reduce(lambda left, right: Term("and", left, right), terms)


def _all(first: Term | None, *others: Term) -> Term | None:
    return _both(first, *others) if first is not None or others else None


def _equals(left: str | Term, value: int) -> Term:
    return Term("==", Term("name", left) if isinstance(left, str) else left, Term("int", value))


def _allows(condition: Term, name: str, value: int) -> bool:
    """Whether `name == value` alone satisfies the condition."""
    return condition.names() == (name,) and bool(condition.evaluate({name: value}, INTS))
