"""Where a given choice of block sizes stands among all candidates of a problem: legal or not, and how many are cheaper.

For block sizes that somebody has already, measured on hardware or published: what a model of bytes and flops says of
them. All candidates are priced at once; those that are only cheaper are not judged one by one, so `cheaper` may count
some that are illegal, and the choice stands no worse than it says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from layoutproof.core.errors import BudgetExceeded, LayoutError, Unsupported
from layoutproof.searching.branch import candidate, cost_of
from layoutproof.searching.legal import Checker
from layoutproof.searching.problem import Problem, broken
from layoutproof.searching.walk import FloatArrays

MOST = 1 << 20
"""Candidates that are priced at once."""
RULES = ("cost", "steps", "bytes", "vmem")
"""The model's cost, and rules that need no model: fewest steps, fewest bytes, most VMEM."""
SLACK = 1e-9
"""What floats may be off by, relative to a cost: closer ones count as equal."""


@dataclass(frozen=True, slots=True)
class Rank:
    """why: the constraint that the choice breaks, or the property that refuses it, "" = it is legal.

    cost: of the choice, in the problem's unit (picoseconds).  least: of the cheapest candidate that fits, None where
    none does.  fit: candidates that keep the constraints and fit into VMEM.  cheaper: of them, those that cost less.
    vmem: bytes that its windows and scratch take, for the largest shape.
    """

    why: str
    cost: int
    least: int | None
    fit: int
    cheaper: int
    vmem: int

    @property
    def share(self) -> float:
        """Cheaper candidates by those that fit, 0 = the best."""
        return self.cheaper / self.fit if self.fit else 0.0

    @property
    def ratio(self) -> float:
        """Its cost by that of the cheapest candidate that fits."""
        return self.cost / self.least if self.least else 1.0


@dataclass(frozen=True, slots=True)
class Standing:
    """Of one choice by one rule. rank: among all that fit, from 1; of ties the middle.  value: less is better."""

    rank: float
    value: float
    least: float

    @property
    def ratio(self) -> float:
        """Its value by the least one."""
        return self.value / self.least if self.least > 0 else 1.0


def standings(problem: Problem, values: Mapping[str, int]) -> dict[str, Standing]:
    """How one choice of a problem of one shape stands by each of RULES. Errors as of `rank`."""
    return standings_of(problem, [values])[0]


def standings_of(problem: Problem, choices: Sequence[Mapping[str, int]]) -> list[dict[str, Standing]]:
    """The same of several choices."""
    by_rule, fits = _by_rule(problem)
    return [_standings(problem, values, by_rule, fits) for values in choices]


def _standings(
    problem: Problem, values: Mapping[str, int], by_rule: Mapping[str, Any], fits: Any
) -> dict[str, Standing]:
    place = tuple(domain.index(values[name]) for name, domain in problem.variables.items())
    found = {}
    for rule, all_of_them in by_rule.items():
        own, fitting = float(all_of_them[place]), all_of_them[fits]
        slack = SLACK * abs(own)
        lower, ties = int((fitting < own - slack).sum()), int((abs(fitting - own) <= slack).sum())
        least = float(fitting.min()) if fitting.size else own
        found[rule] = Standing(lower + 1 + max(0, ties - 1) / 2, own, least)
    return found


def all_candidates(problem: Problem, within: float = float("inf")) -> list[dict[str, int]]:
    """All that fit and cost at most so many times the least, the cheapest by the model first."""
    import numpy as np

    by_rule, fits = _by_rule(problem)
    domains = list(problem.variables.values())
    costs = by_rule["cost"]
    fits = np.logical_and(fits, costs <= within * costs[fits].min(initial=np.inf))
    places = np.argwhere(fits)
    order = np.argsort(costs[fits], kind="stable")
    return [
        {name: domain[k] for name, domain, k in zip(problem.variables, domains, map(int, places[at]), strict=True)}
        for at in order
    ]


def first_by(problem: Problem, rule: str) -> dict[str, int]:
    """The best candidate that fits by one of RULES; of equals the cheapest by the model."""
    import numpy as np

    by_rule, fits = _by_rule(problem)
    best = np.where(fits, by_rule[rule], np.inf)
    equal = best <= best.min() + SLACK * abs(best.min())
    place = np.unravel_index(np.argmin(np.where(equal, by_rule["cost"], np.inf)), fits.shape)
    domains = problem.variables.items()
    return {name: domain[int(at)] for (name, domain), at in zip(domains, place, strict=True)}


def _by_rule(problem: Problem) -> tuple[dict[str, Any], Any]:
    import numpy as np

    if len(problem.shapes) != 1:
        raise Unsupported("a rule is asked of one shape")
    costs, fits, (row,) = _all(problem)
    by_rule = {"cost": costs} | {name: np.broadcast_to(row[name], costs.shape) for name in ("steps", "bytes")}
    return {**by_rule, "vmem": -np.broadcast_to(row["vmem"], costs.shape)}, fits


def rank(problem: Problem, values: Mapping[str, int]) -> Rank:
    """What the model says of one choice. Raises LayoutError for values that are no candidate of the problem,
    Undecided for problems whose index maps have no closed form, and for more than MOST candidates.
    """
    for name, domain in problem.variables.items():
        if values.get(name) not in domain:
            raise LayoutError(f"{name} = {values.get(name)} is no candidate of this problem")
    if problem.count() > MOST:
        raise BudgetExceeded(f"{problem.count()} candidates; at most {MOST} are priced at once")
    walked = [one.operand.name for one in problem.declared.model.traffic if not one.straight]
    if walked:
        raise Unsupported(f"{', '.join(walked)}: the bytes of their index maps have no closed form")
    own = candidate(problem, values)
    why = next(iter(broken(problem, own.values, own.figures)), "") or Checker(problem)(values)
    costs, fits, _ = _all(problem)
    fitting = costs[fits]
    least = int(fitting.min()) if fitting.size else None
    cheaper = int((fitting < own.cost * (1 - SLACK)).sum())
    vmem = max(row["vmem"] for row in own.figures)
    return Rank(why, own.cost, least, int(fitting.size), cheaper, vmem)


def _all(problem: Problem) -> tuple[Any, Any, list[Mapping[str, Any]]]:
    """(cost of every candidate, whether it keeps the constraints and fits, its figures by shape), as arrays with one
    axis per variable.
    """
    import numpy as np

    on = FloatArrays(np)
    domains = [np.array(values, dtype=np.float64) for values in problem.variables.values()]
    axes = [domain.reshape([-1 if k == d else 1 for d in range(len(domains))]) for k, domain in enumerate(domains)]
    values = dict(zip(problem.variables, axes, strict=True))
    fits: Any = True
    rows = []
    for shape in problem.shapes:
        row = problem.figures(shape, values, on)
        fits = on.logical_and(fits, row["vmem"] <= problem.vmem)
        for constraint in problem.constraints:
            fits = on.logical_and(fits, constraint.condition.evaluate({**shape.sizes, **values, **row}, on))
        rows.append(row)
    shape_of_all = tuple(len(domain) for domain in domains)
    costs = cost_of(problem, values, rows, on)
    return np.broadcast_to(costs, shape_of_all), np.broadcast_to(fits, shape_of_all), rows
