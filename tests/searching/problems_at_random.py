"""Small search problems at random, and their figures by a literal walk over the grid."""

from __future__ import annotations

import itertools
import random
from typing import Any

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.expression import parse_condition, parse_expression
from layoutproof.core.numbers import INTS
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.kernel_text import read_kernel
from layoutproof.searching.cost import CostModel, Machine
from layoutproof.searching.problem import Constraint, DeclaredKernel, Problem, WeightedSizes

MATMUL: dict[str, Any] = {
    "grid": ["cdiv(M, bm)", "cdiv(N, bn)", "cdiv(K, bk)"],
    "inputs": [
        {"name": "x", "array": "bf16[M,K]", "block": ["bm", "bk"], "index": "(i, j, k) -> (i, k)"},
        {"name": "y", "array": "bf16[K,N]", "block": ["bk", "bn"], "index": "(i, j, k) -> (k, j)"},
    ],
    "outputs": [{"name": "o", "array": "f32[M,N]", "block": ["bm", "bn"], "index": "(i, j, k) -> (i, j)"}],
    "scratch": [{"array": "f32[bm,bn]"}],
}
BATCHED: dict[str, Any] = {
    "grid": ["M", "cdiv(N, bn)", "cdiv(K, bk)"],
    "inputs": [
        {"name": "x", "array": "f32[M,N,K]", "block": [None, "bn", "bk"], "index": "(b, i, j) -> (b, i, j)"},
        {"name": "s", "array": "f32[1,K]", "block": [1, "bk"], "index": "(b, i, j) -> (0, j)"},
        {"name": "w", "array": "f32[M,N,K]", "block": [None, "bn", "bk"], "index": "(b, i, j) -> (b // 2, i, j)"},
    ],
    "outputs": [{"name": "o", "array": "f32[M,N]", "block": [1, "bn"], "index": "(b, i, j) -> (b, i)"}],
}
CAUSAL: dict[str, Any] = {
    "grid": ["M", "cdiv(N, bn)", "cdiv(K, bk)"],
    "inputs": [
        {"name": "q", "array": "bf16[M,N,K]", "block": [None, "bn", "bk"], "index": "(b, i, j) -> (b, i, min(i, j))"},
        {"name": "k", "array": "f32[M,K]", "block": [2, "bk"], "index": "(b, i, j) -> (b, select(j <= i, j, 0))"},
    ],
    "outputs": [{"name": "o", "array": "f32[M,N]", "block": [1, "bn"], "index": "(b, i, j) -> (b, i)"}],
}


def any_problem(rng: random.Random) -> Problem:
    kernel = rng.choice((MATMUL, BATCHED, CAUSAL))
    names = ("bm", "bn", "bk") if kernel is MATMUL else ("bn", "bk")
    variables = {name: tuple(sorted(rng.sample(range(1, 40), rng.randint(1, 7)))) for name in names}
    shapes = tuple(
        WeightedSizes({"M": rng.randint(1, 6), "N": rng.randint(1, 60), "K": rng.randint(1, 60)}, rng.randint(1, 3))
        for _ in range(rng.randint(1, 2))
    )
    texts = rng.sample(
        ["bn * bk <= 400", "bn % 2 == 0", "steps <= 200", "bk >= bn or bn <= 8", "vmem % 3 == 0"], rng.randint(0, 2)
    )
    cost = rng.choice((None, "bytes + 1000 * steps", "vmem + bytes", "max(steps * 500, bytes)"))
    flops = parse_expression("2 * M * N * K")
    machine = Machine("v5e", rng.choice((10**9, 10**11)), 10**12, rng.choice((0, 350_000)), 10**10)
    return Problem(
        name="p",
        kernels=DeclaredKernel(
            CostModel(read_kernel(kernel, ELEMENT_BITS, ("M", "N", "K", *names))[0], flops, machine)
        ),
        variables=variables,
        shapes=shapes,
        target="v5e",
        limit=rng.choice((1 << 30, 40_000, 20_000)),
        flops=flops,
        cost=None if cost is None else parse_expression(cost),
        worst=rng.random() < 0.5,
        constraints=tuple(Constraint(t, parse_condition(t)) for t in texts),
    )


def choices(problem: Problem) -> list[dict[str, int]]:
    names = list(problem.variables)
    return [dict(zip(names, row, strict=True)) for row in itertools.product(*problem.variables.values())]


def bytes_by_walking(kernel: Kernel) -> int:
    """What the pipeline moves, step by step: an operand's block is moved when its index is not the one before."""
    total = 0
    for operand in kernel.operands:
        width = {"bf16": 16, "f32": 32}[operand.dtype]
        extents = [int(d) for d in operand.dims]
        sizes = [int(b.size) for b in operand.block]
        before = None
        for program in itertools.product(*(range(int(extent)) for extent in kernel.grid)):
            names = dict(zip(kernel.grid_names, program, strict=True))
            at = tuple(t.evaluate(names, INTS) for t in operand.index)
            if at == before:
                continue
            before = at
            elements = 1
            for d, (index, size, extent) in enumerate(zip(at, sizes, extents, strict=True)):
                inside = max(0, min(size, extent - index * size))
                unit = 128 if d == len(extents) - 1 else 32 // width if d == len(extents) - 2 else 1
                elements *= -(-inside // unit) * unit
            total += elements * width // 8
    return total
