"""Infeasible subsets: they cannot be met, without any one condition they can, and they are found within the budget."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from layoutproof.searching.infeasible import (
    BUFFERS,
    CAP,
    LEGAL,
    VMEM,
    WHOLE,
    Condition,
    Questions,
    _words,
    infeasible_subset,
    stated,
)
from layoutproof.searching.problem import Problem
from layoutproof.searching.read import read_problem
from layoutproof.searching.walk import FloatArrays
from layoutproof.specs.positions import read_yaml
from tests.searching.infeasible_at_random import problem_at_random

pytestmark = pytest.mark.slow

ROWS = """
target: v5e
kernel:
  grid: ["cdiv(M, bm)", "cdiv(N, bn)"]
  inputs: [{name: x, array: "f32[M,N]", block: [bm, bn], index: "(i, j) -> (i, j)", buffers: 1}]
  outputs: [{name: o, array: "f32[M,N]", block: [bm, bn], index: "(i, j) -> (i, j)", buffers: 1}]
"""
VALUES = sorted({*range(1, 141), *(v << k for v in (1, 3, 5, 7, 9, 21, 35, 45, 63) for k in range(16))})
"""Values of a variable that are enumerated: all up to twice the largest size, and some of all magnitudes."""


def small_problem(seed: int) -> Problem:
    """Two variables, sizes up to 60, and demands of which some cannot be met together."""
    rng = random.Random(seed)
    sizes = {name: rng.choice((24, 40, 60)) for name in "MN"}
    ranges = [
        f"{{from: {rng.choice((1, 8, 20))}, to: {rng.choice((30, 60))}}}",
        f"{{multiple_of: {rng.choice((8, 16, 7))}}}",
        f"{{powers_of: 2, from: {rng.choice((1, 4))}, to: 64}}",
        "{multiple_of: 4, divides: M}",
    ]
    demands = [
        f"bm * bn >= {rng.choice((100, 2000, 9000))}", f"steps <= {rng.choice((1, 2, 4))}",
        f"bm % {rng.choice((3, 5, 9))} == 0", f"bn >= {rng.choice((2, 4))} * bm", f"bm >= {rng.choice((2, 5))} * bn",
        f"steps >= {rng.choice((30, 200))}", f"M % bm == {rng.choice((1, 4))}", f"vmem <= {rng.choice((8192, 16384))}",
    ]  # fmt: skip
    lines = [f"sizes: {sizes}", "tune:", f"  bm: {rng.choice(ranges)}", f"  bn: {rng.choice(ranges)}"]
    lines += [f"constraints: [{', '.join(rng.sample(demands, rng.randint(1, 3)))}]", "headroom: 0%"]
    return read_problem(read_yaml(ROWS + "\n".join([*lines, f"vmem: {rng.choice((24, 64))}KiB"])), f"small {seed}")


def in_range(problem: Problem, name: str, key: str, value: int) -> bool:
    """What one part of a range says, written here anew."""
    entry, sizes = problem.ranges[name], problem.shapes[0].sizes
    match key:
        case "from":
            return value >= entry["from"]
        case "to":
            return value <= entry["to"]
        case "multiple_of":
            return value % entry["multiple_of"] == 0
        case "powers_of":
            return value & (value - 1) == 0
        case "divides":
            return sizes[entry["divides"]] % value == 0
    assert key == CAP
    return value <= max(sizes.values())


def met(problem: Problem, kept: Sequence[Condition]) -> bool:
    """Whether some of VALUES meet the conditions; the rules of the target are not asked."""
    conditions = {c.text: c.condition for c in problem.constraints}

    def allowed(name: str) -> list[int]:
        own = [c[2] for c in kept if c[0] == "range" and c[1] == name]
        return [v for v in VALUES if all(in_range(problem, name, key, v) for key in own)]

    bm, bn = np.meshgrid(np.array(allowed("bm"), dtype=np.float64), np.array(allowed("bn"), dtype=np.float64))
    on, shape = FloatArrays(np), problem.shapes[0]  # exact: nothing here comes near 2**53
    row = problem.figures(shape, {"bm": bm, "bn": bn}, on)
    found = (row["vmem"] <= problem.vmem) | ((VMEM,) not in kept)
    for c in kept:
        if c[0] == "constraint":
            found = found & conditions[c[1]].evaluate({**shape.sizes, "bm": bm, "bn": bn, **row}, on)
    return bool(found.any())


def agrees(seed: int) -> bool:
    """Asserts that the infeasible subset is what an enumeration says; False where something meets the problem."""
    problem = small_problem(seed)
    everything = [c for c in stated(problem) if c != (LEGAL,)]
    assert (BUFFERS,) not in everything
    assert (WHOLE,) not in everything
    if met(problem, everything):
        return False
    why = infeasible_subset(problem)
    assert why.complete, seed
    kept = [c for c in stated(problem) if _words(problem, c) in why.conditions]
    assert len(kept) == len(why.conditions)
    assert (LEGAL,) not in kept, seed
    assert not met(problem, kept), seed
    for condition in kept:
        assert met(problem, [c for c in kept if c != condition]), (seed, kept, condition)
    return True


@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(40, 400), marks=pytest.mark.nightly)])
def test_infeasible_subsets_are_those_of_an_enumeration(seeds: Sequence[int]) -> None:
    assert sum(map(agrees, seeds)) > len(seeds) // 4


@pytest.mark.parametrize("seed", [4, 13, 18, 27, 39, 49, 55])
def test_infeasible_subsets_of_real_sizes_are_few_and_proved(seed: int) -> None:
    """At real sizes the budget suffices, and one to four conditions are named where the file states nine or more."""
    problem = problem_at_random(seed)
    assert problem is not None
    why = infeasible_subset(problem)
    assert why.complete
    assert 1 <= len(why.conditions) <= 4
    kept = [c for c in stated(problem) if _words(problem, c) in why.conditions]
    assert Questions(problem, effort=4).met(kept) is False


def test_a_value_far_above_all_sizes_ends_no_subset_that_it_would_meet() -> None:
    """7919 is above every size and no multiple of one: the end of the range is part of the subset."""
    text = ROWS + "sizes: {M: 40, N: 60}\ntune: {bm: {from: 1, to: 60}, bn: [60]}\nconstraints: [bm % 7919 == 0]\n"
    why = infeasible_subset(read_problem(read_yaml(text + "headroom: 0%")))
    assert why.conditions == ("bm <= 60", "bm % 7919 == 0")
