"""Best first: boxes of candidates in the order of the least that any of them can cost.

A box holds, for each variable, a run of its values. Running the cost model on intervals gives a number below which no
candidate of the box can go, and conditions that no candidate of it meets. The box with the lowest bound is halved until
single candidates come out; the first legal one is the best, because everything left cannot cost less. Nothing is
sampled: every candidate is either looked at, or in a box that was refused as a whole, or in one that cannot be better.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import log, prod
from typing import Any

from layoutproof.core.errors import Undecided
from layoutproof.core.numbers import INTS
from layoutproof.core.term import Term
from layoutproof.searching import problems
from layoutproof.searching.cost import Figures, limit_of
from layoutproof.searching.problem import UNDECIDED, Problem
from layoutproof.solvers.interval import Interval, IntervalNumbers, ends

BUDGET = 300_000
"""Boxes looked at, at effort 1."""
JUDGED = 4_000
"""Single candidates found illegal, at effort 1: judging one may take as long as bounding many boxes."""
OPEN = 16
"""Single candidates that no engine decided, at effort 1: each has spent a budget of its own."""

SPOKEN = 30
"""How much more a ratio counts by which variables that constraints speak of are cut, where anyone is sought."""
UNBOUNDED = 1 << 200
DIVIDES = problems.DIVIDES_BY_ZERO()
KIND = IntervalNumbers()
Box = tuple[tuple[int, int], ...]
Values = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One choice of tile variables. figures: one mapping per shape of the problem.

    limits: the bottleneck at each, as of `cost.limit_of`.
    """

    values: Mapping[str, int]
    cost: int
    figures: tuple[Figures, ...]
    limits: tuple[str, ...] = ()


@dataclass(slots=True)
class Progress:
    """The state of every candidate. refused: by reason, as whole boxes or one by one; counts candidates.

    bound: no candidate that is not in `found` and not refused costs less.  complete: the budget was enough.
    cuts: how each box that was cut was cut: the variable's place, and the last index of the first part.
    """

    found: list[Candidate] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    boxes: int = 0
    looked_at: int = 0
    bound: int | None = None
    complete: bool = True
    cuts: dict[Box, tuple[int, int]] = field(default_factory=dict)


def search(
    problem: Problem,
    legal: Callable[[Mapping[str, int]], str],
    best: int = 1,
    effort: int = 1,
    budget: int | None = None,
    anyone: bool = False,
    moves: bool = True,
) -> Progress:
    """The `best` cheapest legal candidates, in order of cost, then of bytes moved, then of values.

    legal: why a candidate is illegal, "" = it is legal; asked of single candidates only.
    budget: boxes looked at, at effort 1; default BUDGET.  anyone: whatever is legal will do, the first to be met;
    smaller boxes are taken first then, and there is no bound.  moves: False where cost and constraints speak of `vmem`
    and `steps` alone, and it does not matter which comes first of what costs the same.
    """
    run = _BoxSearch(problem, legal, anyone, moves)
    most = (BUDGET if budget is None else budget) * effort
    progress = run.progress
    if problem.count():
        run.look(tuple((0, len(domain) - 1) for domain in run.domains))
    while run.queue and len(progress.found) < best:
        illegal = progress.looked_at - len(progress.found)
        if progress.boxes >= most or illegal >= JUDGED * effort or run.undecided >= OPEN * effort:
            progress.complete = False
            break
        _, _, _, box = heapq.heappop(run.queue)
        if _is_single(box):
            run.judge(box)
        else:
            run.split(box)
    if run.queue and not anyone and run.queue[0][0] > -UNBOUNDED:
        progress.bound = run.queue[0][0]
    return progress


class _BoxSearch:
    """The boxes that are still to be looked at, the cheapest first, and what was found.

    undecided: how many single candidates no engine decides.
    """

    def __init__(self, problem: Problem, legal: Callable[[Mapping[str, int]], str], anyone: bool, moves: bool) -> None:
        """Nothing was looked at. The arguments are those of `search`."""
        self.problem, self.legal, self.anyone, self.moves = problem, legal, anyone, moves
        self.progress = Progress()
        self.names, self.domains = list(problem.variables), list(problem.variables.values())
        self.rules = [(c.text, c.condition) for c in problem.constraints]
        spoken = {name for _, condition in self.rules for name in condition.names()}
        self.spoken = {at for at, name in enumerate(self.names) if name in spoken}
        self.queue: list[tuple[int, int, Values, Box]] = []
        self.undecided = 0

    def look(self, box: Box) -> None:
        """Bounds a box: it is refused as a whole, or waits in the queue."""
        self.progress.boxes += 1
        many = prod(high - low + 1 for low, high in box)
        try:
            refused, rows, values = bounded(self.problem, box, self.rules, self.moves)
            if not refused:
                bound = int(ends(cost_of(self.problem, values, rows, KIND))[0])
                moved = int(sum(ends(row["bytes"])[0] for row in rows)) if self.moves else 0
        except ZeroDivisionError:
            # a divisor that varies in the box would be an interval, and Undecided
            refused = DIVIDES
        except Undecided as unknown:
            if _is_single(box):
                self.undecided += 1
                refused = UNDECIDED + str(unknown)
            else:
                # no bound at all: it is cut before anything else
                refused, bound, moved = "", -UNBOUNDED, 0
        if refused:
            self.progress.refused[refused] += many
            return
        heapq.heappush(self.queue, (many if self.anyone else bound, moved, tuple(low for low, _ in box), box))

    def judge(self, box: Box) -> None:
        """Asks whether a single candidate is legal."""
        self.progress.looked_at += 1
        values = {name: domain[low] for name, domain, (low, _) in zip(self.names, self.domains, box, strict=True)}
        why = self.legal(values)
        if not why:
            self.progress.found.append(candidate(self.problem, values))
            return
        self.progress.refused[why] += 1
        self.undecided += why.startswith(UNDECIDED)

    def split(self, box: Box) -> None:
        """Cuts a box in two, and looks at both parts."""
        k, last = self.progress.cuts[box] = cut(box, self.domains, self.spoken if self.anyone else ())
        for part in ((box[k][0], last), (last + 1, box[k][1])):
            self.look((*box[:k], part, *box[k + 1 :]))


def _is_single(box: Box) -> bool:
    """Whether a box is one candidate."""
    return all(low == high for low, high in box)


def candidate(problem: Problem, values: Mapping[str, int]) -> Candidate:
    """The exact figures and cost of one choice."""
    rows = []
    for shape in problem.shapes:
        rows.append(problem.figures(shape, values, INTS))
    limits = tuple(limit_of(row, problem.declared.model.machine) for row in rows)
    return Candidate(dict(values), cost_of(problem, values, rows, INTS), tuple(rows), limits)


def cost_of(problem: Problem, values: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], on: Any) -> Any:
    """The cost over all shapes, on the kind of number of the figures."""
    total: Any = None
    for shape, row in zip(problem.shapes, rows, strict=True):
        cost = problem.cost
        one = row["time"] if cost is None else cost.evaluate({**shape.sizes, **values, **row}, on)
        one = one * shape.weight
        total = one if total is None else on.maximum(total, one) if problem.worst else total + one
    return total


def bounded(
    problem: Problem, box: Box, rules: Sequence[tuple[str, Term]], moves: bool = True
) -> tuple[str, tuple[Mapping[str, Any], ...], Mapping[str, Any]]:
    """(the condition that every candidate of the box breaks, or ""; the figures of each shape; the variables).

    Figures and variables are intervals that hold those of every candidate. rules: text and condition of constraints.
    """
    values: dict[str, Any] = {}
    for (name, domain), (low, high) in zip(problem.variables.items(), box, strict=True):
        values[name] = domain[low] if low == high else Interval(domain[low], domain[high])
    rows = []
    for shape in problem.shapes:
        row = problem.figures(shape, values, KIND, problem.vmem, moves)
        if ends(row["vmem"])[0] > problem.vmem:
            return "VMEM", (), values
        # the rest of the box fits: no constraint need be asked about more
        row = {**row, "vmem": KIND.minimum(row["vmem"], problem.vmem)}
        for text, condition in rules:
            if condition.evaluate({**shape.sizes, **values, **row}, KIND) is False:
                return text, (), values
        rows.append(row)
    return "", tuple(rows), values


def cut(box: Box, domains: Sequence[Sequence[int]], spoken: Collection[int] = ()) -> tuple[int, int]:
    """Where to cut a box in two: in the variable whose values are the furthest apart, as a ratio.

    spoken: places of variables that constraints speak of: cutting them decides most, so they come a while longer.
    """

    def spread(k: int) -> float:
        low, high = box[k]
        if high == low:
            return -1.0
        return log(domains[k][high] / max(1, domains[k][low])) * (SPOKEN if k in spoken else 1)

    k = max(range(len(box)), key=spread)
    return k, (box[k][0] + box[k][1]) // 2
