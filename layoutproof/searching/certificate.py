"""Is the answer the best? An independent certificate of optimality.

`enumerated`: every candidate, cost by numpy, no bound and no box involved; each that would be cheaper is shown illegal.
`bounds`: too many for that: the search's cuts are made again, and every piece bounded by other arithmetic (`cover`).
`z3`: no values of the variables within their domains meet the constraints and cost less (unsat); a further opinion.
Otherwise it is `unknown`, and the answer is only the best found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from layoutproof.core.claim import At, Claim, PlacePredicate
from layoutproof.core.errors import Undecided
from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.message import extended
from layoutproof.core.numbers import Numbers
from layoutproof.core.space import Space
from layoutproof.searching.branch import DIVIDES, Box, candidate, cost_of
from layoutproof.searching.cover import partition, uncertified
from layoutproof.searching.problem import Problem, broken
from layoutproof.searching.walk import FloatArrays
from layoutproof.solvers.decide import decide

MOST = 1 << 21
"""Candidates that are enumerated; of more, boxes are bounded."""
EXACTLY = 1 << 12
"""The same where the cost is the user's own: such an expression may depend on digits that floats lose."""
CHUNK = 1 << 19
SLACK = 1e-9
"""The error bound of floats, relative to the cost plus 10**12: candidates within it are computed exactly."""
Legal = Callable[[Mapping[str, int]], str]


@dataclass(frozen=True, slots=True)
class Certificate:
    """kind: "enumerated", "bounds", "z3" or "unknown".  covered: candidates it speaks of, 0 for z3.
    boxes: boxes and single candidates that were bounded, 0 = none.  cheaper: candidates that would cost less (of
    boxes: that are refused as a whole) and are not feasible, by reason.
    counterexample: a legal candidate that costs less, None when there is none: then the answer is wrong.
    """

    kind: str
    covered: int = 0
    cheaper: Mapping[str, int] | None = None
    counterexample: Mapping[str, int] | None = None
    reason: str = ""
    boxes: int = 0


def certify(
    problem: Problem,
    cost: int,
    legal: Legal,
    most: int = MOST,
    cuts: Mapping[Box, tuple[int, int]] | None = None,
    listed: Sequence[Mapping[str, int]] = (),
) -> Certificate:
    """Whether no legal candidate but those `listed` costs less than `cost`; `legal` as for `search`.

    most: candidates that may be enumerated.  cuts: of the search, where it has any; without them z3 is asked.
    """
    try:
        if problem.count() <= (most if problem.cost is None else min(most, EXACTLY)):
            return _enumerated(problem, cost, legal, listed)
        if cuts is None:
            return certified_by_z3(problem, cost, listed)
        boxes = partition(problem, cuts)
        better, why, refused = uncertified(problem, boxes, cost, listed, legal)
    except Undecided as undecided:
        return Certificate("unknown", reason=str(undecided))
    if why:
        return _or_z3(problem, cost, legal, listed, why)
    return Certificate("bounds", problem.count(), refused, better, boxes=len(boxes))


def _or_z3(problem: Problem, cost: int, legal: Legal, listed: Sequence[Mapping[str, int]], why: str) -> Certificate:
    """Where bounds do not suffice, z3 may know; of properties it knows nothing, so what it finds may be illegal."""
    answer = certified_by_z3(problem, cost, listed)
    if answer.kind == "z3" and (answer.counterexample is None or not legal(answer.counterexample)):
        return answer
    return Certificate("unknown", reason=extended(why, f"; {answer.reason or 'z3 finds only illegal ones'}"))


def _enumerated(problem: Problem, cost: int, legal: Legal, listed: Sequence[Mapping[str, int]]) -> Certificate:
    import numpy as np

    names = list(problem.variables)
    domains = [np.array(values, dtype=np.float64) for values in problem.variables.values()]
    # one axis per variable: a term of few variables is computed few times
    axes = [domain.reshape([-1 if k == d else 1 for d in range(len(domains))]) for k, domain in enumerate(domains)]
    rest = problem.count() // len(domains[0])
    rows_at_once = max(1, CHUNK // rest)
    cheaper: Counter[str] = Counter()
    for start in range(0, len(domains[0]), rows_at_once):
        values = dict(zip(names, [axes[0][start : start + rows_at_once], *axes[1:]], strict=True))
        shape = (len(values[names[0]]), *map(len, domains[1:]))
        with np.errstate(all="ignore"):  # divisions by 0 are computed exactly, and refused then
            near, fits = _near(problem, values, cost, FloatArrays(np))
        near, fits = np.broadcast_to(near, shape), np.broadcast_to(fits, shape)
        cheaper["VMEM"] += int(np.count_nonzero(near & ~fits))
        for where in zip(*np.nonzero(near & fits), strict=True):
            at = (int(where[0]) + start, *map(int, where[1:]))
            chosen = {name: int(domain[k]) for name, domain, k in zip(names, domains, at, strict=True)}
            try:
                exact = candidate(problem, chosen)
                if exact.cost >= cost or chosen in listed:
                    continue
                why = next(iter(broken(problem, exact.values, exact.figures)), "") or legal(chosen)
            except ZeroDivisionError:
                why = DIVIDES
            if not why:
                return Certificate("enumerated", problem.count(), dict(cheaper), chosen)
            cheaper[why] += 1
    return Certificate("enumerated", problem.count(), {why: n for why, n in cheaper.items() if n})


def _near(problem: Problem, values: Mapping[str, Any], cost: int, on: Numbers) -> tuple[Any, Any]:
    """(may cost less, fits into VMEM), in floats: numbers pass 64 bits, and floats lose their last digits alone.

    Of a cost that is the user's own every candidate may be cheaper: each is then computed exactly.
    """
    rows, fits = [], True
    for shape in problem.shapes:
        row = problem.figures(shape, values, on)
        fits = on.logical_and(fits, row["vmem"] <= problem.vmem)
        rows.append(row)
    if problem.cost is not None:
        return True, fits
    return cost_of(problem, values, rows, on) < cost + SLACK * (abs(cost) + 10**12), fits


def certified_by_z3(problem: Problem, cost: int, listed: Sequence[Mapping[str, int]] = ()) -> Certificate:
    """The same question as one formula for z3, which knows nothing of boxes: unsat, a better candidate, or unknown."""
    names = list(problem.variables)
    domains = list(problem.variables.values())
    steps = [_progression(domain) for domain in domains]

    def place(index: Index, replica: Index, on: Numbers) -> Index:
        return tuple(_value(entry, domain, step, on) for entry, domain, step in zip(index, domains, steps, strict=True))

    box = Space(tuple(names), tuple(len(domain) for domain in domains))
    m = IndexMap(box, Space(), place)

    def better(places: tuple[Index, ...], on: Numbers) -> object:
        values = dict(zip(names, places[0], strict=True))
        rows, held = [], True
        for shape in problem.shapes:
            row = problem.figures(shape, values, on)
            held = on.logical_and(held, on.logical_not(on.less(problem.vmem, row["vmem"])))
            for constraint in problem.constraints:
                held = on.logical_and(held, constraint.condition.evaluate({**shape.sizes, **values, **row}, on))
            rows.append(row)
        for chosen in listed:
            same: Any = True
            for name, value in chosen.items():
                same = on.logical_and(same, on.equal(values[name], value))
            held = on.logical_and(held, on.logical_not(same))
        return on.logical_and(held, on.less(cost_of(problem, values, rows, on), cost))

    claim = Claim({"tile": box}, PlacePredicate((At(m, "tile"),), better))
    try:
        point, by, reason, *_ = decide(claim, ("smt",))
    except Undecided as undecided:
        return Certificate("unknown", reason=str(undecided))
    if point is not None:
        return Certificate("z3", counterexample=dict(zip(names, m.at(point["tile"]), strict=True)))
    return Certificate("z3") if by else Certificate("unknown", reason=reason)


def _progression(domain: Sequence[int]) -> int:
    """The step of an arithmetic progression, 0 where the values are none."""
    step = domain[1] - domain[0] if len(domain) > 1 else 1
    return step if all(b - a == step for a, b in pairwise(domain)) else 0


def _value(entry: Any, domain: Sequence[int], step: int, on: Numbers) -> Any:
    if step:
        return entry * step + domain[0]
    value: Any = domain[-1]
    for k, v in enumerate(domain[:-1]):
        value = on.select(on.equal(entry, k), v, value)
    return value
