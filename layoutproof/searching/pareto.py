"""The Pareto front: every legal tiling that no other one beats in cost, VMEM and padding at once.

Boxes are cut as in the search and taken in the order of the least cost, then VMEM, then padding that they may hold.
Whatever is still waiting comes later in that order, so none of it beats a candidate that is taken out; a box whose
least figures are beaten by one found holds nothing new (branch and bound skyline, Papadias and others, 2003).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from layoutproof.core.errors import Undecided
from layoutproof.searching import problems
from layoutproof.searching.branch import BUDGET, KIND, UNBOUNDED, Box, Candidate, bounded, candidate, cost_of, cut
from layoutproof.searching.certificate import CHUNK, EXACTLY, MOST, SLACK
from layoutproof.searching.problem import UNDECIDED, Problem, broken
from layoutproof.searching.walk import FloatArrays
from layoutproof.solvers.interval import ends

Point = tuple[int, int, int]
Legal = Callable[[Mapping[str, int]], str]


@dataclass(frozen=True, slots=True)
class Front:
    """found: cheapest first.  covered: candidates that were enumerated to check it, 0 = too many for that; then the
    search itself is the proof.  unknown: why it is not proved complete, "" = it is.
    """

    found: tuple[Candidate, ...]
    covered: int = 0
    unknown: str = ""


def front_of(problem: Problem, legal: Legal, effort: int = 1, most: int = MOST) -> Front:
    """The front of a problem, each point once: of equal ones that with the smallest values."""
    domains = list(problem.variables.values())
    rules = [(c.text, c.condition) for c in problem.constraints]
    queue: list[tuple[Point, tuple[int, ...], Box]] = []
    found: list[tuple[Point, Candidate]] = []
    boxes, unknown = 0, ""

    def look(box: Box) -> None:
        nonlocal boxes, unknown
        boxes += 1
        try:
            refused, rows, values = bounded(problem, box, rules)
            if refused:
                return
            least: Point = _point(problem, values, rows, KIND)
        except ZeroDivisionError:
            return
        except Undecided as undecided:
            if all(low == high for low, high in box):
                unknown = unknown or problems.FRONT_LACKS(undecided)
                return
            # no bound at all: it is cut before anything else
            least = (-UNBOUNDED, 0, 0)
        if not _beaten(least, found):
            heapq.heappush(queue, (least, tuple(low for low, _ in box), box))

    if problem.count():
        look(tuple((0, len(domain) - 1) for domain in domains))
    while queue:
        if boxes >= BUDGET * effort:
            unknown = problems.FRONT_INCOMPLETE(boxes)
            break
        least, lows, box = heapq.heappop(queue)
        if _beaten(least, found):
            continue
        if all(low == high for low, high in box):
            values = {name: domain[low] for (name, domain), low in zip(problem.variables.items(), lows, strict=True)}
            why = legal(values)
            if not why:
                found.append((least, candidate(problem, values)))
            elif why.startswith(UNDECIDED):
                unknown = unknown or problems.FRONT_LACKS(why.removeprefix(UNDECIDED))
            continue
        k, last = cut(box, domains)
        for part in ((box[k][0], last), (last + 1, box[k][1])):
            look((*box[:k], part, *box[k + 1 :]))
    covered = 0
    if not unknown and problem.count() <= (most if problem.cost is None else min(most, EXACTLY)):
        covered = problem.count()
        better = missing(problem, [point for point, _ in found], legal)
        unknown = problems.FRONT_CHECK(dict(better)) if better is not None else ""
    return Front(tuple(one for _, one in found), covered, unknown)


def missing(problem: Problem, points: Sequence[Point], legal: Legal) -> Mapping[str, int] | None:
    """A legal candidate that none of the points beats or equals: of all of them, without boxes or bounds."""
    import numpy as np

    domains = [np.array(values, dtype=np.float64) for values in problem.variables.values()]
    axes = [domain.reshape([-1 if k == d else 1 for d in range(len(domains))]) for k, domain in enumerate(domains)]
    rows_at_once = max(1, CHUNK // (problem.count() // len(domains[0])))
    for start in range(0, len(domains[0]), rows_at_once):
        values = dict(zip(problem.variables, [axes[0][start : start + rows_at_once], *axes[1:]], strict=True))
        shape = (len(axes[0][start : start + rows_at_once]), *map(len, domains[1:]))
        on = FloatArrays(np)
        with np.errstate(all="ignore"):  # divisions by 0 are computed exactly, and left out then
            rows = [problem.figures(shape, values, on) for shape in problem.shapes]
        # a candidate beaten by more than the error of floats is dominated; the rest is computed exactly
        left = np.ones(shape, dtype=bool)
        # with the user's own cost all are: it may depend on digits that floats lose
        exactly = problem.cost is not None
        mine = [] if exactly else [np.broadcast_to(figure, shape) for figure in _point(problem, values, rows, on)]
        for point in () if exactly else points:
            slack = [SLACK * (abs(f) + 10**12) if k == 0 else 0.5 for k, f in enumerate(point)]
            beaten = np.ones(shape, dtype=bool)
            for figure, other, off in zip(mine, point, slack, strict=True):
                beaten &= figure >= other + off
            left &= ~beaten
        fits = np.ones(shape, dtype=bool)
        for row in rows:
            fits &= np.broadcast_to(row["vmem"] <= problem.vmem, shape)
        for where in zip(*np.nonzero(left & fits), strict=True):
            at = (int(where[0]) + start, *map(int, where[1:]))
            chosen = {name: int(domain[k]) for name, domain, k in zip(problem.variables, domains, at, strict=True)}
            try:
                exact = candidate(problem, chosen)
                if broken(problem, chosen, exact.figures):
                    continue
            except ZeroDivisionError:
                continue
            point = _point(problem, chosen, exact.figures, KIND)
            if not any(all(a <= b for a, b in zip(p, point, strict=True)) for p in points) and not legal(chosen):
                return chosen
    return None


def _point(problem: Problem, values: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], on: Any) -> Any:
    """The objectives, at their lower ends where they are intervals: cost, VMEM and padding of the worst shape."""
    vmem, padding = rows[0]["vmem"], rows[0]["padding"]
    for row in rows[1:]:
        vmem, padding = on.maximum(vmem, row["vmem"]), on.maximum(padding, row["padding"])
    # padding is a difference, whose bounds as an interval may lie below what any array can have
    return tuple(ends(figure)[0] for figure in (cost_of(problem, values, rows, on), vmem, on.maximum(0, padding)))


def _beaten(point: Point, found: Sequence[tuple[Point, Candidate]]) -> bool:
    """Whether a point found is nowhere worse; equal ones count, so that each point of the front stands once."""
    return any(all(a <= b for a, b in zip(other, point, strict=True)) for other, _ in found)
