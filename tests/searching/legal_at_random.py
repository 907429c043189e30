"""Small search problems with legal candidates at random, from documents, and everything about them by enumeration."""

from __future__ import annotations

import random
from typing import Any

from layoutproof.searching.branch import Candidate, candidate
from layoutproof.searching.legal import Checker
from layoutproof.searching.problem import Problem, broken
from layoutproof.searching.read import read_problem
from layoutproof.specs.positions import read_yaml
from tests.searching.problems_at_random import choices

MATMUL = """
  grid: ["cdiv(M, bm)", "cdiv(N, bn)", "cdiv(K, bk)"]
  semantics: [parallel, parallel, arbitrary]
  inputs:
    - {name: x, array: "DTYPE[M,K]", block: [bm, bk], index: "(i, j, k) -> (i, k)"}
    - {name: y, array: "DTYPE[K,N]", block: [bk, bn], index: "(i, j, k) -> (k, j)"}
  outputs: [{name: o, array: "f32[M,N]", block: [bm, bn], index: "(i, j, k) -> (i, j)"}]
  scratch: [{array: "f32[bm,bn]"}]
"""
NORM = """
  grid: ["cdiv(M, bm)"]
  inputs: [{name: x, array: "DTYPE[M,N]", block: [bm, N], index: "i -> (i, 0)"}]
  outputs: [{name: o, array: "DTYPE[M,N]", block: [bm, N], index: "i -> (i, 0)"}]
"""
HALVES = """
  grid: ["cdiv(M, bm)", "cdiv(N, bn)"]
  inputs:
    - {name: x, array: "DTYPE[M,N]", block: [bm, bn], index: "(i, j) -> (i, j)"}
    - {name: t, array: "f32[M,N]", block: [bm, bn], index: "(i, j) -> (i // 2, j)"}
  outputs: [{name: o, array: "DTYPE[M,N]", block: [bm, bn], index: "(i, j) -> (i, j)"}]
"""
COSTS = ("bytes + 100 * steps", "vmem * steps", "(time + 7 * bm) % 4097")
CONSTRAINTS = ("bm * 4 <= M", "bm % 16 == 0", "steps >= 2", "vmem % 4096 == 0", "padding == 0", "bytes <= 3 * M * N")


def document(rng: random.Random) -> str:
    """A search file."""
    kernel, tuned = rng.choice(((MATMUL, "bm bn bk"), (NORM, "bm"), (HALVES, "bm bn")))
    shapes = [
        f"{{M: {rng.choice((32, 60, 64, 256))}, N: {rng.choice((128, 200, 256))}, K: {rng.choice((128, 256))}, "
        f"weight: {rng.randint(1, 3)}}}"
        for _ in range(rng.randint(1, 2))
    ]
    lines = [f"target: {rng.choice(('v4', 'v5e', 'v5p', 'v6e', '7x'))}"]
    lines += ["kernel:" + kernel.replace("DTYPE", rng.choice(("bf16", "f32", "s8"))).rstrip()]
    lines += [f"sizes: [{', '.join(shapes)}]", "tune:"]
    for name in tuned.split():
        values = (8, 12, 16, 32, 64) if name == "bm" else (64, 128, 200, 256, 384)
        lines.append(f"  {name}: {sorted(rng.sample(values, rng.randint(2, 4)))}")
    asked = rng.sample(CONSTRAINTS, rng.choice((0, 0, 1, 2)))
    lines += [f"constraints: [{', '.join(asked)}]"] if asked else []
    lines += [f"vmem: {rng.choice((48, 96, 200))}KiB"] if rng.random() < 0.6 else []
    lines += [f"partial: {rng.choice(('none', 'masked'))}", f"over: {rng.choice(('worst', 'sum'))}"]
    lines += (
        [f"cost: {rng.choice(('bytes + 100 * steps', 'vmem * steps', '(time + 7 * bm) % 4097'))}"]
        if rng.random() < 0.4
        else []
    )
    return "\n".join([*lines, "flops: 2 * M * N", "headroom: 0%"])


def problem_at_random(seed: int) -> Problem:
    """A problem that the reader takes; documents in which a whole domain is no block of the kernel are passed over."""
    rng = random.Random(seed)
    return read_problem(read_yaml(document(rng)), f"random {seed}")


def feasible(problem: Problem) -> list[Candidate]:
    """Every candidate that is legal and breaks nothing, cheapest first."""
    legal = Checker(problem)
    found = []
    for values in choices(problem):
        one = candidate(problem, values)
        if not broken(problem, values, one.figures) and not legal(values):
            found.append(one)
    return sorted(found, key=order)


def order(one: Candidate) -> Any:
    """The order in which a search gives what it finds."""
    return one.cost, sum(row["bytes"] for row in one.figures), tuple(one.values.values())


def point(one: Candidate) -> tuple[int, int, int]:
    """What a Pareto front is over."""
    vmem, padding = (max(row[name] for row in one.figures) for name in ("vmem", "padding"))
    return one.cost, vmem, padding


def skyline(found: list[Candidate]) -> set[tuple[int, int, int]]:
    """The points that no other beats, by comparing each with each."""
    points = {point(one) for one in found}
    return {p for p in points if not any(q != p and all(a <= b for a, b in zip(q, p, strict=True)) for q in points)}
