"""What is assumed of the sizes: the `where` of a question, and whether anything is left to prove under it."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from functools import lru_cache

from layoutproof.core.claim import Claim, SizeCondition
from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import IndexMap
from layoutproof.core.numbers import Numbers
from layoutproof.core.term import Term
from layoutproof.solvers.decide import decide


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
    where = _condition(text)
    names = where.names()
    likely = (1, 2, 3, 4, 8, 16, 64, 128, 256, 1024, 4096)
    for values in itertools.islice(itertools.product(likely, repeat=len(names)), 2000):
        # sizes for which it divides by 0 do not satisfy it
        with contextlib.suppress(ZeroDivisionError):
            if where.evaluate({}, Numbers(dict(zip(names, values, strict=True)))):
                return ""
    point, _, reason, *_ = decide(Claim({}, SizeCondition(where)), ("isl", "smt"), False, effort)
    if reason:
        return f"cannot tell whether any sizes satisfy {where}: {reason}"
    return "" if point is not None else f"vacuous: no sizes satisfy {where}"


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
