"""What `pl.multiple_of` says of a number is true, for every program and iteration.

Why it matters: it is a promise to the compiler, which then drops the code for starts that are not aligned, and nothing
checks it: a number that is not divisible addresses the rows below it.
Refuted by: the smallest `program` and `iteration` at which the number is not divisible.
Example: `pl.multiple_of(pl.program_id(0) * 4, 8)` is 4 at program 1.
Source: jax/_src/pallas/primitives.py (multiple_of), its lowering to `tpu.assume_multiple` (jax 0.10.2).
Fix: say what is true, or drop it.
Incident: the compiler could not see that a start is aligned, which is what such promises are made for:
https://github.com/jax-ml/jax/issues/36770
Limits: Numbers that tables or loads give are assumed, never looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import gcd
from typing import Any

from layoutproof.bodies.claims import asked, not_modelled
from layoutproof.bodies.effects import Body, Spot
from layoutproof.core.claim import Claim
from layoutproof.core.errors import Undecided
from layoutproof.core.folding import FALSE, any_of, fold
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point
from layoutproof.core.term import ZERO, Term
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Due, Obligation, by_rule, undecided
from layoutproof.pallas import problems
from layoutproof.pallas.rules.body_in_bounds import MOST_PIECES, about

GIVEN = Template("pallas.multiple_of_given", "what pl.multiple_of(.., {by}) is given")
WRONG = Template("pallas.multiple_of_wrong", "pl.multiple_of(.., {by}) is said of {wrong}, which {by} does not divide")
LOOK = Template("pallas.multiple_of_look", "look at what makes the number: {held}")


TARGET = False
BODY = True
SETTLED_BY = "write the number as a product with the multiple, or drop pl.multiple_of"


def obligations(kernel: Kernel) -> tuple[Due, ...]:
    """One per line with promises about numbers; one that holds where there is none.

    The copies of an unrolled loop are one question: a violation is one of any copy.
    """
    body: Body | None = kernel.body
    if body is None:
        return ()
    lines: dict[tuple[Any, ...], list[tuple[Term, Spot]]] = {}
    for number, by, spot in body.multiples:
        key = (spot.source or id(spot), by, spot.path, spot.loops)
        lines.setdefault(key, []).append((number, spot))
    found: list[Due] = [
        partial(_divisible, kernel, body, members[k : k + MOST_PIECES], by)
        for (_, by, *_), members in lines.items()
        for k in range(0, len(members), MOST_PIECES)
    ]
    found += not_modelled(kernel, body)
    return tuple(found) or (Obligation(kernel.name, by_rule(""), source=kernel.source),)


def _divisible(kernel: Kernel, body: Body, members: Sequence[tuple[Term, Spot]], by: int) -> Obligation:
    spot = members[0][1]
    what = GIVEN(by)
    if by < 1:
        return Obligation(kernel.name, undecided(f"a multiple of {by}"), source=spot.source)
    numbers = [number for number, _ in members if _missed(number, by) is not FALSE]
    if not numbers:
        return Obligation(kernel.name, by_rule(""), source=spot.source)

    def explain(at: Point, on: Numbers, value: Callable[[Term], int]) -> str:
        wrong = next((n for n in map(value, numbers) if n % by), 0)
        return WRONG(by, wrong)

    missed = any_of([_missed(number, by) for number in numbers])
    try:
        found = asked(kernel, body, [*spot.path, missed], spot.loops, explain=explain, extra=numbers)
    except Undecided as lost:
        return Obligation(kernel.name, undecided(problems.DEPENDS_ON(what, lost)), source=spot.source)

    def hint(point: Point, on: Numbers) -> str:
        true = gcd(by, *(int(found.value(number, point, on)) for number in numbers))
        held = f"here pl.multiple_of(.., {true}) would hold" if true > 1 else "nothing divides it"
        return LOOK(held)

    claim: Claim = replace(found.claim, hint=hint)
    return about(kernel.name, replace(found, claim=claim), spot.source, what)


def _missed(number: Term, by: int) -> Term:
    """The condition that a promise does not hold."""
    return fold("!=", fold("%", number, Term("int", by)), ZERO)
