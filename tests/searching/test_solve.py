"""Whole answers against enumeration: the winners, their cost, the front, why there is none; what budgets do to them."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import layoutproof.searching.branch as branch
import layoutproof.searching.certificate as certificate
from layoutproof.core.numbers import INTS
from layoutproof.core.result import Verdict
from layoutproof.pallas.judge import kernel_target
from layoutproof.searching.branch import Candidate, Progress, candidate
from layoutproof.searching.certificate import certify
from layoutproof.searching.infeasible import Questions, _relaxed, infeasible_subset, stated
from layoutproof.searching.legal import Checker
from layoutproof.searching.pareto import front_of, missing
from layoutproof.searching.problem import Problem, broken
from layoutproof.searching.read import load, read_problem
from layoutproof.searching.solve import solve
from layoutproof.specs.positions import read_yaml
from tests.searching.legal_at_random import feasible, order, point, problem_at_random, skyline
from tests.searching.problems_at_random import choices

pytestmark = pytest.mark.slow

SPECS = Path(__file__).parents[2] / "specs" / "search"
READY = (
    "matmul", "batched_matmul", "quantised_matmul", "grouped_matmul", "flash_attention", "causal_attention",
    "layer_norm", "softmax",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(150))
def test_answers_are_those_of_an_enumeration(seed: int) -> None:
    problem = problem_at_random(seed)
    every = feasible(problem)
    answer = solve(problem, best=3)
    assert answer.unknown == ""
    assert [order(one) for one in answer.found] == [order(one) for one in every[:3]]
    assert answer.verdict.exit_code == (0 if every else 1)
    for findings in answer.bounded.findings:
        unknown = {f.question for shape in findings for f in shape if f.verdict is Verdict.UNKNOWN}
        assert unknown <= {"vmem_total"}


@pytest.mark.parametrize("seed", range(40))
def test_vmem_is_the_target_s_own_figure(seed: int) -> None:
    problem = problem_at_random(seed)
    target = kernel_target(problem.target)
    for values in choices(problem):
        for shape, row in zip(problem.shapes, candidate(problem, values).figures, strict=True):
            memory = target.memory(problem.bind(shape, values))[0]
            assert (memory.name, memory.used) == ("VMEM", row["vmem"])


def test_random_problems_are_of_both_kinds() -> None:
    found = [bool(feasible(problem_at_random(seed))) for seed in range(60)]
    assert 15 < sum(found) < 55


@pytest.mark.parametrize("seed", range(60))
def test_fronts_are_those_of_an_enumeration(seed: int) -> None:
    problem = problem_at_random(seed)
    legal = Checker(problem)
    front = front_of(problem, legal)
    assert front.unknown == ""
    assert front.covered == problem.count()
    points = [point(one) for one in front.found]
    assert len(points) == len(set(points))
    assert set(points) == skyline(feasible(problem))
    # a front that lacks a point does not pass its check
    for k in range(len(points)):
        left = points[:k] + points[k + 1 :]
        found = missing(problem, left, legal)
        assert found is not None
        assert point(candidate(problem, found)) not in left


@pytest.mark.parametrize("seed", range(60))
def test_a_better_tiling_that_was_overlooked_is_found(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_at_random(seed)
    every = feasible(problem)
    if len({one.cost for one in every}) < 2:
        return
    second = next(one for one in every if one.cost > every[0].cost)
    legal = Checker(problem)
    for most in (certificate.MOST, 0):
        progress = branch.search(problem, legal, 1)
        planted = certify(problem, second.cost, legal, most, progress.cuts, [second.values])
        assert planted.counterexample is not None
        assert candidate(problem, planted.counterexample).cost < second.cost
    # and the same from the outside: a search that gives the second best is no proof of anything
    true = branch.search

    def worse(problem: Problem, legal: object, best: int = 1, effort: int = 1) -> Progress:
        progress = true(problem, legal, best, effort)  # type: ignore[arg-type]
        progress.found = [second]
        return progress

    monkeypatch.setattr("layoutproof.searching.solve.search", worse)
    answer = solve(problem, best=1)
    assert "this is a bug" in answer.unknown
    assert answer.verdict.exit_code == 3


@pytest.mark.parametrize("seed", range(40))
def test_bounds_confirm_what_enumeration_confirms(seed: int) -> None:
    problem = problem_at_random(seed)
    legal = Checker(problem)
    progress = branch.search(problem, legal, 1)
    cost = progress.found[0].cost if progress.found else 1 << 100
    answer = certify(problem, cost, legal, 0, progress.cuts, [one.values for one in progress.found])
    assert (answer.kind, answer.counterexample, answer.covered) == ("bounds", None, problem.count())


def met(problem: Problem, kept: Sequence[tuple[str, ...]]) -> bool:
    """Whether some candidate meets the conditions, by enumeration."""
    relaxed, known = _relaxed(problem, kept)
    assert known
    if ("legal",) in kept:
        return bool(feasible(relaxed))
    unjudged = _unjudged(relaxed)
    return bool(unjudged if relaxed.partial else [one for one in unjudged if _whole(relaxed, one)])


def _whole(problem: Problem, one: Candidate) -> bool:
    """Whether no block reaches over an edge, program by program."""
    for shape in problem.shapes:
        kernel = problem.bind(shape, one.values)
        for program in itertools.product(*map(range, kernel.grid)):
            names = dict(zip(kernel.grid_names, program, strict=True))
            for operand in kernel.operands:
                for term, block, extent in zip(operand.index, operand.block, operand.dims, strict=True):
                    if (term.evaluate(names, INTS) + 1) * block.size > extent:
                        return False
    return True


def _unjudged(problem: Problem) -> list[Candidate]:
    found = [candidate(problem, values) for values in choices(problem)]
    return [one for one in found if not broken(problem, one.values, one.figures)]


@pytest.mark.parametrize("seeds", [range(20), pytest.param(range(20, 70), marks=pytest.mark.nightly)])
def test_infeasible_subsets_are_infeasible_and_minimal(seeds: Sequence[int]) -> None:
    seen = 0
    for seed in seeds:
        problem = problem_at_random(seed)
        if feasible(problem):
            continue
        # ranges stay as they are: without one every size may be taken, which nobody enumerates here
        fixed = replace(problem, ranges={})
        conditions = stated(fixed)
        why = infeasible_subset(fixed)
        if not why.complete:
            continue
        seen += 1
        subsets = itertools.chain.from_iterable(itertools.combinations(conditions, k) for k in range(len(conditions)))
        for kept in subsets:
            assert Questions(fixed).met(kept) is met(fixed, kept)
        if why.enough is not None:
            assert feasible(replace(fixed, limit=why.enough))
            assert not feasible(replace(fixed, limit=why.enough - 1))
    assert seen > 8


def test_an_infeasible_subset_in_words() -> None:
    why = infeasible_subset(load(SPECS / "infeasible.yaml"))
    assert why.conditions == ("bm * bn >= 2**21", "double buffering", "16.00 MiB of VMEM (v5e has 128.00)")
    assert why.enough == 22757376
    assert why.complete
    # it would do indeed, and nothing less
    text = (SPECS / "infeasible.yaml").read_text()
    assert solve(read_problem(read_yaml(f"{text}vmem: 22757376\n"))).verdict.exit_code == 0
    assert solve(read_problem(read_yaml(f"{text}vmem: 22757375\n"))).verdict.exit_code == 1


def test_parts_of_a_range_are_among_them_too() -> None:
    text = (SPECS / "matmul.yaml").read_text().replace("bn: {from: 128", "bn: {from: 8000")
    problem = read_problem(
        read_yaml(text.replace("headroom: 21%", "headroom: 0%\nconstraints: [bm >= 1024]").replace("body:", "note:"))
    )
    assert infeasible_subset(problem).conditions == (
        "bn >= 8000", "bm >= 1024", "16.00 MiB of VMEM (v5e has 128.00)",
    )  # fmt: skip


@pytest.mark.parametrize("name", READY)
def test_ready_examples(name: str) -> None:
    with warnings.catch_warnings():
        # numbers pass 64 bits; numpy says so when they wrap
        warnings.simplefilter("error")
        answer = solve(load(SPECS / f"{name}.yaml"), best=2)
    assert answer.unknown == ""
    assert answer.verdict.exit_code == 0
    assert answer.bounded.certificate is not None
    assert answer.bounded.certificate.kind == "enumerated"
    assert len(answer.found) == 2


def test_the_matmul_of_the_readme() -> None:
    answer = solve(load(SPECS / "matmul.yaml"))
    best = answer.found[0]
    assert best.values == {"bm": 1024, "bn": 1024, "bk": 512}
    # by hand: m*k*n/bn + k*n*m/bm + m*n elements of two bytes; 1024 steps of 350 ns and 2 * 8192**3 at 197e12 a second,
    # 64 sums that fill 4 MiB, 4 KiB in each cycle of 197e12 / 2**17 Hz,
    # and the first two blocks and the last, of 1, 1 and 2 MiB, at 820 GB/s
    assert best.figures[0]["bytes"] == 2 * (2 * 8192**3 // 1024 + 8192**2)
    computed, exposed = -(-2 * 8192**3 * 10**12 // 197_000_000_000_000), -(-4 * 2**20 * 10**12 // 820_000_000_000)
    filled = -(-64 * 2**22 * 10**12 // (4096 * 197_000_000_000_000 // 2**17))
    assert best.figures[0]["carried"] == 64 * 2**22
    assert best.cost == 1024 * 350_000 + computed + filled + exposed
    assert best.figures[0]["vmem"] == 2 * (1024 * 512 + 512 * 1024 + 1024 * 1024) * 2 + 1024 * 1024 * 4


def test_a_spent_budget_keeps_the_best_found_and_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branch, "BUDGET", 200)
    answer = solve(load(SPECS / "matmul.yaml"), best=1000)
    assert answer.verdict.exit_code == 3
    assert "budget" in answer.unknown
    assert answer.bounded.progress.bound is not None
    assert all(one.cost <= answer.bounded.progress.bound for one in answer.found)


def test_too_many_illegal_candidates_end_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branch, "JUDGED", 3)
    text = (SPECS / "matmul.yaml").read_text().replace('"(i, j, k) -> (i, j)"', '"(i, j, k) -> (i, j + 1)"')
    answer = solve(read_problem(read_yaml(text.replace("body:", "note:"))))
    assert answer.verdict.exit_code == 3
    assert answer.bounded.progress.looked_at == 3


@pytest.mark.commit
def test_what_nobody_can_decide_is_no_proof() -> None:
    text = (SPECS / "grouped_matmul.yaml").read_text().replace(', "row is monotone", "row is onto"', "")
    text = text.replace("body:", "note:").replace("bm: {multiple_of: 8, divides: M}", "bm: [256]")
    text = text.replace("bn: {from: 128, to: N, multiple_of: 128}", "bn: [512]")
    answer = solve(read_problem(read_yaml(text.replace("bk: {multiple_of: 128, divides: K}", "bk: [512]"))))
    assert answer.verdict.exit_code == 3
    assert "neither proved nor refuted" in answer.unknown
    assert "row" in answer.unknown


def test_a_grid_too_large_to_walk_is_undecided_not_a_crash() -> None:
    text = (SPECS / "causal_attention.yaml").read_text().replace("body:", "note:").replace("S: 4096", "S: 1048576")
    text = text.replace("bq: {from: 8, to: S, multiple_of: 8}", "bq: [128, 2048]")
    answer = solve(read_problem(read_yaml(text.replace("bk: {multiple_of: 128, divides: S}", "bk: [128, 512]"))))
    assert answer.verdict.exit_code == 3
    assert "too many to walk" in answer.unknown


def test_what_a_query_cannot_see_is_not_fetched() -> None:
    """With square blocks, row i fetches blocks 1..i, and 0 again where it passes blocks over; there it stays."""
    answer = solve(load(SPECS / "causal_attention.yaml"), best=60)
    square = next(one for one in answer.found if one.values == {"bq": 512, "bk": 512})
    heads, blocks, size = 64, 8, 512 * 128 * 2
    fetched = 1 + sum(range(1, blocks)) + (blocks - 2)
    assert square.figures[0]["bytes"] == heads * size * (2 * blocks + 2 * fetched)
