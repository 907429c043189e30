"""Is the answer the best? Asked again of somebody who did not find it.

`enumerated`: every candidate, cost by numpy, no bound and no box involved; each that would be cheaper is shown illegal.
`z3`: no values of the variables within their domains meet the constraints and cost less (unsat).
What neither reaches is `unknown`, and then the answer is the best found and no more than that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from layoutproof.core.claim import At, Claim, When
from layoutproof.core.errors import Undecided
from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.numbers import INTS, Numbers
from layoutproof.core.space import Space
from layoutproof.engine.arrays import ArrayNumbers
from layoutproof.engine.decide import decide
from layoutproof.jobs.search.branch import candidate, cost_of
from layoutproof.jobs.search.cost import figures
from layoutproof.jobs.search.problem import Problem

MOST = 1 << 25
"""Candidates that are enumerated; more are asked of z3."""
CHUNK = 1 << 20
SLACK = 1e-9
"""What floats may be off by, relative to the cost plus 10**12: candidates within it are computed exactly."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """kind: "enumerated", "z3" or "unknown".  covered: candidates looked at, 0 for z3.
    cheaper: candidates that would cost less than the answer and are illegal, by reason.
    counterexample: a legal candidate that costs less, None when there is none: then the answer is wrong.
    """

    kind: str
    covered: int = 0
    cheaper: Mapping[str, int] | None = None
    counterexample: Mapping[str, int] | None = None
    reason: str = ""


def certify(problem: Problem, cost: int, legal: Callable[[Mapping[str, int]], str], most: int = MOST) -> Certificate:
    """Whether no legal candidate costs less than `cost`; `legal` as for `search`."""
    if problem.count() <= most:
        return _enumerated(problem, cost, legal)
    return _by_z3(problem, cost)


def _enumerated(problem: Problem, cost: int, legal: Callable[[Mapping[str, int]], str]) -> Certificate:
    import numpy as np

    names = list(problem.variables)
    domains = [np.array(values, dtype=np.float64) for values in problem.variables.values()]
    # one axis per variable: what depends on few of them is computed few times
    axes = [domain.reshape([-1 if k == d else 1 for d in range(len(domains))]) for k, domain in enumerate(domains)]
    rest = problem.count() // len(domains[0])
    rows_at_once = max(1, CHUNK // rest)
    cheaper: Counter[str] = Counter()
    for start in range(0, len(domains[0]), rows_at_once):
        values = dict(zip(names, [axes[0][start : start + rows_at_once], *axes[1:]], strict=True))
        shape = (len(values[names[0]]), *map(len, domains[1:]))
        near, fits = _near(problem, values, cost, ArrayNumbers(np))
        near, fits = np.broadcast_to(near, shape), np.broadcast_to(fits, shape)
        cheaper["VMEM"] += int(np.count_nonzero(near & ~fits))
        for where in zip(*np.nonzero(near & fits), strict=True):
            at = (int(where[0]) + start, *map(int, where[1:]))
            chosen = {name: int(domain[k]) for name, domain, k in zip(names, domains, at, strict=True)}
            exact = candidate(problem, chosen)
            if exact.cost >= cost:
                continue
            why = next(iter(broken(problem, exact.values, exact.figures)), "") or legal(chosen)
            if not why:
                return Certificate("enumerated", problem.count(), dict(cheaper), chosen)
            cheaper[why] += 1
    return Certificate("enumerated", problem.count(), {why: n for why, n in cheaper.items() if n})


def _near(problem: Problem, values: Mapping[str, Any], cost: int, on: Numbers) -> tuple[Any, Any]:
    """(may cost less, fits into VMEM), in floats: numbers pass 64 bits, and floats lose their last digits alone."""
    rows, fits = [], True
    for shape in problem.shapes:
        row = figures(problem.template, problem.flops, problem.machine, {**shape.sizes, **values}, on)
        fits = on.both(fits, row["vmem"] <= problem.vmem)
        rows.append(row)
    return cost_of(problem, values, rows, on) < cost + SLACK * (abs(cost) + 10**12), fits


def broken(problem: Problem, values: Mapping[str, int], rows: Sequence[Mapping[str, int]]) -> list[str]:
    """The constraints that one candidate breaks."""
    found = []
    for shape, row in zip(problem.shapes, rows, strict=True):
        names = {**shape.sizes, **values, **row}
        found += [c.text for c in problem.constraints if not c.condition.evaluate(names, INTS)]
        found += ["VMEM"] if row["vmem"] > problem.vmem else []
    return list(dict.fromkeys(found))


def _by_z3(problem: Problem, cost: int) -> Certificate:
    names = list(problem.variables)
    domains = list(problem.variables.values())
    steps = [_progression(domain) for domain in domains]

    def place(index: Index, copy: Index, on: Numbers) -> Index:
        return tuple(_value(entry, domain, step, on) for entry, domain, step in zip(index, domains, steps, strict=True))

    box = Space(tuple(names), tuple(len(domain) for domain in domains))
    m = IndexMap(box, Space(), place)

    def better(places: tuple[Index, ...], on: Numbers) -> Any:
        values = dict(zip(names, places[0], strict=True))
        rows, held = [], True
        for shape in problem.shapes:
            row = figures(problem.template, problem.flops, problem.machine, {**shape.sizes, **values}, on)
            held = on.both(held, on.opposite(on.less(problem.vmem, row["vmem"])))
            for constraint in problem.constraints:
                held = on.both(held, constraint.condition.evaluate({**shape.sizes, **values, **row}, on))
            rows.append(row)
        return on.both(held, on.less(cost_of(problem, values, rows, on), cost))

    claim = Claim({"tile": box}, When((At(m, "tile"),), better))
    try:
        point, by, reason = decide(claim, ("smt",))
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
