"""Assumptions on sizes: the `where` of a question, and whether anything is left to prove under it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import lru_cache

from layoutproof.core.claim import Claim, SizeCondition, allows
from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import IndexMap
from layoutproof.core.numbers import Numbers
from layoutproof.core.term import Term
from layoutproof.solvers.decide import decide

LIKELY = (1, 2, 3, 4, 8, 16, 64, 128, 256, 1024, 4096)
"""Sizes that are tried before an engine is asked."""
SHORT = 0.1
"""The part of the step budget that a short try has."""


def vacuous(maps: Sequence[IndexMap], where: str | None, effort: int) -> str:
    """Why there is nothing to prove, or ""."""
    for m in maps:
        for extent in (*m.domain.extents, *m.replicas.extents):
            if type(extent) is int and extent == 0:
                return "vacuous: the array has no elements"
    return "" if where is None else unsatisfied(where, effort)


@lru_cache(maxsize=256)
def unsatisfied(text: str, effort: int) -> str:
    """Why no sizes are known to satisfy the condition, or ""."""
    return _unsatisfied(_condition(text), effort)


def satisfiable(where: Term) -> bool:
    """Whether some sizes are known to satisfy a condition, after a short try.

    >>> from layoutproof.core.expression import parse_condition
    >>> satisfiable(parse_condition("N >= 40 and N % 17 == 3")), satisfiable(parse_condition("N >= 40 and N == 8"))
    (True, False)
    """
    return not _unsatisfied(where, SHORT)


def _unsatisfied(where: Term, effort: float) -> str:
    names = where.names()
    # a number that the condition names is often a size that keeps it, or the next one is
    own = (n + more for n in _numbers(where) for more in (0, 1))
    likely = dict.fromkeys((*LIKELY, *(n for n in own if n >= 1)))
    for values in itertools.islice(itertools.product(likely, repeat=len(names)), 2000):
        if allows(where, Numbers(dict(zip(names, values, strict=True)))):
            return ""
    point, _, reason, *_ = decide(Claim({}, SizeCondition(where)), ("isl", "smt"), False, effort)
    if reason:
        return f"cannot tell whether any sizes satisfy {where}: {reason}"
    return "" if point is not None else f"vacuous: no sizes satisfy {where}"


def _numbers(term: Term) -> Iterator[int]:
    if term.op == "int":
        yield int(term.args[0])
    for part in term.args:
        if isinstance(part, Term):
            yield from _numbers(part)


def where_term(text: str, known: tuple[str, ...]) -> Term:
    """The condition, which may speak of these size symbols. LayoutError for others, and for what is no condition."""
    term = _condition(text)
    for name in term.names():
        if name not in known:
            have = f"only {', '.join(known)}" if known else "no size symbols"
            raise LayoutError(f"the condition speaks of {name}, but the layouts have {have}", text=text)
    return term


@lru_cache(maxsize=256)
def _condition(text: str) -> Term:
    from layoutproof.core.expression import parse_condition

    return parse_condition(text)
