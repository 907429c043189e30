"""The state of every candidate of a declared kernel that is not shown: refused, set aside by headroom, or not judged.

A search looks at the cheapest candidates and leaves the rest in boxes. Here all candidates are gone through once:
conditions on one variable, constraints and memory by arrays of numbers, the rules for blocks one by one where few.
Which of those that cost more a property refuses is asked where very few are left: it takes longer than the search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from layoutproof.core.errors import Undecided
from layoutproof.core.finding import Finding
from layoutproof.searching import problems
from layoutproof.searching.answer import Others
from layoutproof.searching.branch import DIVIDES, Candidate, candidate, cost_of
from layoutproof.searching.cost import FIGURES
from layoutproof.searching.legal import Checker
from layoutproof.searching.problem import UNDECIDED, Problem, broken
from layoutproof.searching.tilings import Tilings
from layoutproof.searching.walk import FloatArrays

MOST = 1 << 21
"""Candidates that are gone through; of more only those that the search looked at are counted."""
BLOCKS = 1_024
"""Candidates, dearer than the last that is shown, up to which the rules for blocks are asked about each."""
LEFT = 64
"""The same for every property."""
LISTED = 256
"""Candidates that are set aside and listed, the cheapest first."""
_HELD = frozenset({"vmem", "steps"})
"""Figures that need nothing of what moves, and are whole numbers that floats hold."""


def others(answer: Tilings) -> Others:
    """The state of the candidates that an answer does not show."""
    problem, how = answer.problem, answer.bounded
    progress, legal = how.progress, how.legal
    if legal is None:
        return Others()
    found = {tuple(one.values.values()) for one in progress.found}
    reasons, at = _removed(answer)
    aside: list[Candidate] = []
    many = 0
    if not (progress.found or how.aside) and progress.complete:
        # nothing is feasible, and the search says of each what refuses it
        reasons += progress.refused
    elif 0 < problem.count() <= MOST:
        try:
            more, aside, many, left = _gone_through(problem)
            reasons += more + _judged(problem, left, found, legal, how.passed)
        except (Undecided, ZeroDivisionError):
            reasons += progress.refused
    else:
        reasons += progress.refused
    counts, unknown, because = Counter[str](), Counter[str](), dict[str, Finding]()
    for given, count in reasons.items():
        reason = _limit(problem) if given == "VMEM" else given
        if reason.startswith(UNDECIDED):
            unknown[reason.removeprefix(UNDECIDED)] += count
            continue
        finding = legal.because(reason, at.get(reason))
        name = reason if finding is None else f"{finding.question} {finding.subject}"
        counts[name] += count
        if finding is not None:
            because.setdefault(name, finding)
    last = progress.found[-1].cost if progress.found else 0
    cheaper = sum(one.cost < last for one in aside)
    dearer = sum(not why and key not in found and key not in how.passed for key, why in legal.said().items())
    rest = answer.asked - len(found) - counts.total() - unknown.total() - many - dearer
    why = problem.kept_free(problem.declared.kernel).aside.removeprefix("set aside: ") if many else ""
    return Others(counts, unknown, because, many, why, tuple(aside), cheaper, max(0, rest))


def _removed(answer: Tilings) -> tuple[Counter[str], dict[str, dict[str, int]]]:
    """(how many candidates were left out before the search, by the first reason; values with which it is given)."""
    problem, removed = answer.problem, answer.bounded.removed
    sizes = {name: len(values) for name, values in problem.variables.items()}
    for one in removed:
        sizes[one.variable] += len(one.values)
    total, reasons, at = answer.asked, Counter[str](), dict[str, dict[str, int]]()
    for one in removed:
        gone = total * len(one.values) // sizes[one.variable] if sizes[one.variable] else 0
        sizes[one.variable] -= len(one.values)
        total -= gone
        reason = one.first.partition(": ")[2]
        reasons[reason] += gone
        others = {name: values[0] for name, values in problem.variables.items() if values}
        at[reason] = {**others, one.variable: one.values[0]}
    return reasons, at


def _gone_through(problem: Problem) -> tuple[Counter[str], list[Candidate], int, list[dict[str, int]] | int]:
    """(those refused by constraints and memory, by reason; those set aside, cheapest first, and how many they are;
    the others, or how many they are where they are too many to be asked about one by one).
    """
    import numpy as np

    domains = {name: np.array(values, dtype=np.float64) for name, values in problem.variables.items()}
    sides = [len(values) for values in domains.values()]
    chosen = {
        name: values.reshape([-1 if k == d else 1 for d in range(len(sides))])
        for k, (name, values) in enumerate(domains.items())
    }
    on = FloatArrays(np)
    left = np.ones(sides, dtype=bool)
    reasons = Counter[str]()

    def refuse(reason: str, mask: Any) -> None:
        nonlocal left
        gone = left & np.broadcast_to(mask, sides)
        reasons[reason] += int(np.count_nonzero(gone))
        left = left & ~gone

    limit = problem.limit
    held: Any = 0
    with np.errstate(all="ignore"):
        for shape in problem.shapes:
            row = problem.figures(shape, chosen, on, None, False)
            held = np.maximum(held, row["vmem"])
            for constraint in problem.constraints:
                if set(FIGURES).intersection(constraint.condition.names()) <= _HELD:
                    names = {**shape.sizes, **chosen, **row}
                    refuse(constraint.text, np.logical_not(constraint.condition.evaluate(names, on)))
        refuse(_limit(problem), held > limit)
        aside = left & np.broadcast_to(held > problem.vmem, sides)
        cheapest = _cheapest(problem, domains, aside, on)
    left = left & ~aside
    many = int(np.count_nonzero(left))
    rest = list(_values(problem, np.argwhere(left))) if many <= BLOCKS else many
    return +reasons, cheapest, int(np.count_nonzero(aside)), rest


def _limit(problem: Problem) -> str:
    """Why a candidate is refused that takes more than all of VMEM."""
    return problems.VMEM_OVER(problem.limit)


def _cheapest(problem: Problem, domains: Mapping[str, Any], aside: Any, on: FloatArrays) -> list[Candidate]:
    """The cheapest of the candidates of a mask."""
    import numpy as np

    where = np.argwhere(aside)
    if not len(where):
        return []
    points = {name: values[where[:, k]] for k, (name, values) in enumerate(domains.items())}
    rows = [problem.figures(shape, points, on) for shape in problem.shapes]
    costs = np.broadcast_to(cost_of(problem, points, rows, on), [len(where)])
    order = np.argsort(costs, kind="stable")[:LISTED]
    found = [candidate(problem, values) for values in _values(problem, where[order])]
    return sorted(found, key=lambda one: (one.cost, tuple(one.values.values())))


def _values(problem: Problem, where: Any) -> Iterator[dict[str, int]]:
    for at in where:
        yield {name: int(domain[int(k)]) for (name, domain), k in zip(problem.variables.items(), at, strict=True)}


def _judged(
    problem: Problem,
    left: list[dict[str, int]] | int,
    found: set[tuple[int, ...]],
    legal: Checker,
    refused: Mapping[tuple[int, ...], str],
) -> Counter[str]:
    """Reasons of those that the search refused one by one, and of the others as far as few are left."""
    reasons = Counter[str]()
    if isinstance(left, int):
        return Counter(why for why in [*refused.values(), *legal.said().values()] if why)
    waiting = []
    for values in left:
        key = tuple(values.values())
        if key in found:
            continue
        why = refused.get(key) or legal.said().get(key) or _broken(problem, values) or legal.blocks(values)
        if why:
            reasons[why] += 1
        elif key not in legal.said():
            waiting.append(values)
    for values in waiting if len(waiting) <= LEFT else ():
        why = legal(values)
        if why:
            reasons[why] += 1
    return reasons


def _broken(problem: Problem, values: Mapping[str, int]) -> str:
    """A constraint that one candidate breaks, of those that speak of what moves too."""
    if all(set(FIGURES).intersection(c.condition.names()) <= _HELD for c in problem.constraints):
        return ""
    try:
        return next(iter(broken(problem, values, candidate(problem, values).figures)), "")
    except ZeroDivisionError:
        return DIVIDES
    except Undecided as undecided:
        return UNDECIDED + str(undecided)
