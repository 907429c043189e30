"""Best first: boxes of candidates in the order of the least that any of them can cost.

A box holds, for each variable, a run of its values. Running the cost model on intervals gives a number below which no
candidate of the box can go, and conditions that no candidate of it meets. The box with the lowest bound is halved until
single candidates come out; the first legal one is the best, because everything left cannot cost less. Nothing is
sampled: every candidate is either looked at, or in a box that was refused as a whole, or in one that cannot be better.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from layoutproof.core.numbers import INTS
from layoutproof.jobs.search.cost import figures
from layoutproof.jobs.search.interval import Interval, IntervalNumbers, ends
from layoutproof.jobs.search.problem import Problem

BUDGET = 300_000
"""Boxes looked at, at effort 1."""

_KIND = IntervalNumbers()
Box = tuple[tuple[int, int], ...]
Values = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One choice of tile variables. figures: one mapping per shape of the problem."""

    values: Mapping[str, int]
    cost: int
    figures: tuple[Mapping[str, int], ...]


@dataclass(slots=True)
class Progress:
    """What happened to every candidate. refused: by reason, as whole boxes or one by one; counts candidates.

    bound: no candidate that is not in `found` and not refused costs less.  complete: the budget was enough.
    """

    found: list[Candidate] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    boxes: int = 0
    looked_at: int = 0
    bound: int | None = None
    complete: bool = True


def search(
    problem: Problem,
    legal: Callable[[Mapping[str, int]], str],
    best: int = 1,
    effort: int = 1,
    conditions: Sequence[str] | None = None,
) -> Progress:
    """The `best` cheapest legal candidates, in order of cost and then of values.

    legal: why a candidate is illegal, "" = it is legal; asked of single candidates only.
    conditions: of the problem's constraints, those to keep (default: all); used to find conflicts.
    """
    progress = Progress()
    domains = list(problem.variables.values())
    names = list(problem.variables)
    rules = [(c.text, c.condition) for c in problem.constraints if conditions is None or c.text in conditions]
    whole: Box = tuple((0, len(domain) - 1) for domain in domains)
    queue: list[tuple[int, Values, Box]] = []

    def look(box: Box) -> None:
        progress.boxes += 1
        refused, bound = _bound(problem, names, domains, box, rules)
        if refused:
            progress.refused[refused] += prod(high - low + 1 for low, high in box)
        else:
            heapq.heappush(queue, (bound, tuple(low for low, _ in box), box))

    if problem.count():
        look(whole)
    while queue and len(progress.found) < best:
        if progress.boxes >= BUDGET * effort:
            progress.complete = False
            break
        _, _, box = heapq.heappop(queue)
        if all(low == high for low, high in box):
            progress.looked_at += 1
            values = {name: domain[low] for name, domain, (low, _) in zip(names, domains, box, strict=True)}
            why = legal(values)
            if why:
                progress.refused[why] += 1
            else:
                progress.found.append(candidate(problem, values))
            continue
        for half in _halves(box, domains):
            look(half)
    progress.bound = queue[0][0] if queue else None
    return progress


def candidate(problem: Problem, values: Mapping[str, int]) -> Candidate:
    """The exact figures and cost of one choice."""
    rows = []
    for shape in problem.shapes:
        names = {**shape.sizes, **values}
        rows.append(figures(problem.template, problem.flops, problem.machine, names, INTS))
    return Candidate(dict(values), cost_of(problem, values, rows, INTS), tuple(rows))


def cost_of(problem: Problem, values: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], on: Any) -> Any:
    """The cost over all shapes, on the kind of number of the figures."""
    total: Any = None
    for shape, row in zip(problem.shapes, rows, strict=True):
        one = row["time"]
        if problem.cost is not None:
            one = problem.cost.evaluate({**shape.sizes, **values, **row}, on)
        one = one * shape.weight
        total = one if total is None else on.maximum(total, one) if problem.worst else total + one
    return total


def _bound(
    problem: Problem, names: Sequence[str], domains: Sequence[Sequence[int]], box: Box, rules: Sequence[tuple[str, Any]]
) -> tuple[str, int]:
    """(the condition that every candidate of the box breaks, or ""; what none of them costs less than)."""
    values: dict[str, Any] = {}
    for name, domain, (low, high) in zip(names, domains, box, strict=True):
        values[name] = domain[low] if low == high else Interval(domain[low], domain[high])
    rows = []
    for shape in problem.shapes:
        row = figures(problem.template, problem.flops, problem.machine, {**shape.sizes, **values}, _KIND)
        if ends(row["vmem"])[0] > problem.vmem:
            return "VMEM", 0
        for text, condition in rules:
            if condition.evaluate({**shape.sizes, **values, **row}, _KIND) is False:
                return text, 0
        rows.append(row)
    return "", int(ends(cost_of(problem, values, rows, _KIND))[0])


def _halves(box: Box, domains: Sequence[Sequence[int]]) -> Iterator[Box]:
    """The box cut in two where its values are the furthest apart, as a ratio."""

    def spread(k: int) -> float:
        low, high = box[k]
        return domains[k][high] / max(1, domains[k][low]) if high > low else 0.0

    k = max(range(len(box)), key=spread)
    low, high = box[k]
    middle = (low + high) // 2
    for part in ((low, middle), (middle + 1, high)):
        yield (*box[:k], part, *box[k + 1 :])
