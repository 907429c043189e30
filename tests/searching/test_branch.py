"""The search against enumeration: winner, order, cost, counts; the cost model against a walk over the grid."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from layoutproof.core.numbers import INTS
from layoutproof.searching.branch import Candidate, candidate, search
from layoutproof.searching.certificate import certify
from layoutproof.searching.problem import Problem, broken
from layoutproof.solvers.interval import Interval, IntervalNumbers, ends
from tests.searching.problems_at_random import any_problem, bytes_by_walking, choices

pytestmark = pytest.mark.slow


def anything(values: object) -> str:
    return ""


def ranked(problem: Problem) -> list[tuple[int, int, tuple[int, ...]]]:
    found = [candidate(problem, values) for values in choices(problem)]
    return sorted(map(place, (c for c in found if not broken(problem, c.values, c.figures))))


def place(found: Candidate) -> tuple[int, int, tuple[int, ...]]:
    return found.cost, sum(row["bytes"] for row in found.figures), tuple(found.values.values())


def feasible(seed: int, walked: bool = True) -> Problem:
    """A problem with a candidate that fits; without operands whose grid has to be walked if so asked."""
    rng = random.Random(seed)
    while True:
        problem = any_problem(rng)
        if ranked(problem) and (walked or all(one.straight for one in problem.declared.model.traffic)):
            return problem


@pytest.mark.parametrize("seed", range(250))
def test_the_best_are_those_of_an_enumeration(seed: int) -> None:
    problem = any_problem(random.Random(seed))
    best = ranked(problem)
    progress = search(problem, anything, best=4)
    assert [place(c) for c in progress.found] == best[: len(progress.found)]
    assert len(progress.found) == min(4, len(best))
    assert progress.complete
    if len(best) < 4:
        # nothing is left over: every candidate was found or refused
        assert sum(progress.refused.values()) + len(best) == problem.count()
        assert progress.bound is None


@pytest.mark.parametrize("seed", range(250))
def test_bytes_are_what_a_walk_over_the_grid_moves(seed: int) -> None:
    problem = any_problem(random.Random(seed))
    rng = random.Random(seed)
    for values in rng.sample(choices(problem), min(3, problem.count())):
        for shape, row in zip(problem.shapes, candidate(problem, values).figures, strict=True):
            assert row["bytes"] == bytes_by_walking(problem.bind(shape, values))


@pytest.mark.parametrize("seed", range(250))
def test_intervals_hold_every_candidate_of_their_box(seed: int) -> None:
    problem = any_problem(random.Random(seed))
    box = {name: Interval(values[0], values[-1]) for name, values in problem.variables.items()}
    for shape in problem.shapes:
        bounds = problem.figures(shape, box, IntervalNumbers())
        for values in choices(problem):
            row = problem.figures(shape, values, INTS)
            for name, value in row.items():
                low, high = ends(bounds[name])
                assert low <= value, name
                # padding subtracts two bounds of one thing, so only its lower end is of use
                assert value <= high, name


@pytest.mark.parametrize("seed", range(120))
def test_the_certificate_confirms_the_best_and_finds_what_is_better(seed: int) -> None:
    problem = feasible(seed)
    best = ranked(problem)[0][0]
    certificate = certify(problem, best, anything)
    assert (certificate.kind, certificate.covered) == ("enumerated", problem.count())
    assert certificate.counterexample is None
    planted = certify(problem, best + 1, anything)
    assert planted.counterexample is not None
    assert candidate(problem, planted.counterexample).cost == best


QUICK = (1, 2, 3, 5, 9, 10)
"""Problems that z3 decides in a second."""


@pytest.mark.commit
@pytest.mark.parametrize(
    "seed", [*QUICK, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(12) if seed not in QUICK)]
)
def test_z3_confirms_and_refutes_too(seed: int) -> None:
    problem = replace(feasible(seed, walked=False), cost=None)
    best = ranked(problem)[0][0]
    assert certify(problem, best, anything, most=0).counterexample is None
    planted = certify(problem, best + 1, anything, most=0)
    assert planted.kind in ("z3", "unknown")
    if planted.kind == "z3":
        assert planted.counterexample is not None
        assert candidate(problem, planted.counterexample).cost == best


def test_z3_decides_small_problems() -> None:
    kinds = [certify(p, ranked(p)[0][0], anything, most=0).kind for p in (feasible(s, walked=False) for s in QUICK)]
    assert kinds == ["z3"] * len(QUICK)


def test_illegal_candidates_are_left_out_and_counted() -> None:
    problem = any_problem(random.Random(1))
    best = ranked(problem)

    def odd(values: dict[str, int]) -> str:
        return "bn is odd" if values["bn"] % 2 else ""

    progress = search(problem, odd, best=1)
    even = [row for row in best if dict(zip(problem.variables, row[2], strict=True))["bn"] % 2 == 0]
    assert [c.cost for c in progress.found] == [row[0] for row in even[:1]]


def test_a_spent_budget_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    import layoutproof.searching.branch as branch

    problem = next(p for p in map(feasible, range(100)) if p.count() > 20)
    monkeypatch.setattr(branch, "BUDGET", 1)
    progress = search(problem, anything, best=10**6)
    assert not progress.complete
    assert progress.bound is not None
    assert progress.bound <= ranked(problem)[0][0]
