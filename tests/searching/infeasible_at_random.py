"""Search problems of real sizes that nothing meets, at random: declared kernels with one to three demands too many.

Demands are those that people write: too much work in a block, too few steps, too little traffic or time, no padding of
odd arrays, tiles that a range or the other tiles rule out.
"""

from __future__ import annotations

import random

from layoutproof.core.errors import LayoutError
from layoutproof.pallas.judge import kernel_target
from layoutproof.searching.branch import search
from layoutproof.searching.legal import Checker
from layoutproof.searching.presolve import presolve
from layoutproof.searching.problem import Problem
from layoutproof.searching.read import read_problem
from layoutproof.specs.positions import read_yaml

MATMUL = """
  grid: ["cdiv(M, bm)", "cdiv(N, bn)", "cdiv(K, bk)"]
  semantics: [parallel, parallel, arbitrary]
  inputs:
    - {name: x, array: "DTYPE[M,K]", block: [bm, bk], index: "(i, j, k) -> (i, k)"}
    - {name: y, array: "DTYPE[K,N]", block: [bk, bn], index: "(i, j, k) -> (k, j)"}
  outputs: [{name: o, array: "DTYPE[M,N]", block: [bm, bn], index: "(i, j, k) -> (i, j)"}]
  scratch: [{array: "f32[bm,bn]"}]
"""
ATTENTION = """
  grid: [16, "cdiv(M, bm)", "cdiv(N, bn)"]
  semantics: [parallel, parallel, arbitrary]
  inputs:
    - {name: q, array: "DTYPE[16,M,128]", block: [null, bm, 128], index: "(h, i, j) -> (h, i, 0)"}
    - {name: k, array: "DTYPE[16,N,128]", block: [null, bn, 128], index: "(h, i, j) -> (h, j, 0)"}
    - {name: v, array: "DTYPE[16,N,128]", block: [null, bn, 128], index: "(h, i, j) -> (h, j, 0)"}
  outputs: [{name: o, array: "DTYPE[16,M,128]", block: [null, bm, 128], index: "(h, i, j) -> (h, i, 0)"}]
  scratch: [{array: "f32[bm,bn]"}, {array: "f32[bm,128]"}]
"""
ROWS = """
  grid: ["cdiv(M, bm)", "cdiv(N, bn)"]
  inputs: [{name: x, array: "DTYPE[M,N]", block: [bm, bn], index: "(i, j) -> (i, j)"}]
  outputs: [{name: o, array: "DTYPE[M,N]", block: [bm, bn], index: "(i, j) -> (i, j)"}]
"""
KERNELS = ((MATMUL, ("bm", "bn", "bk")), (ATTENTION, ("bm", "bn")), (ROWS, ("bm", "bn")))
SIZES = (1000, 1024, 4096, 5000, 8192, 11008, 32000)


def document(rng: random.Random) -> str:
    """A search file, which something may meet."""
    kernel, tuned = rng.choice(KERNELS)
    sizes = {name: rng.choice(SIZES) for name in "MNK"}
    large = 1 << rng.randint(18, 24)
    demands = [
        f"bm * bn >= {large}",
        f"steps <= {1 << rng.randint(0, 6)}",
        f"bytes <= {rng.choice((1, 2, 3))} * (M * N + M * K + K * N)",
        f"time <= {10 ** rng.randint(7, 10)}",
        "padding == 0",
        f"bm % {rng.choice((3, 7, 96, 250))} == 0",
        f"bm + bn >= {rng.choice((6000, 12000, 40000))}",
        "bm >= 4 * bn",
        "bn >= 4 * bm",
        f"vmem <= {1 << rng.randint(14, 22)}",
        f"vmem >= {1 << rng.randint(22, 25)}",
        f"M % bm == {rng.choice((0, 1, 8))}",
    ]
    lines = [f"target: {rng.choice(('v4', 'v5e', 'v6e'))}"]
    lines += ["kernel:" + kernel.replace("DTYPE", rng.choice(("bf16", "f32"))).rstrip()]
    lines += [f"sizes: {{{', '.join(f'{name}: {size}' for name, size in sizes.items())}}}", "tune:"]
    for name in tuned:
        step = rng.choice((8, 16, 128)) if name == "bm" else 128
        ends = f"from: {step * rng.choice((1, 1, 8))}, to: {rng.choice((512, 2048, 8192))}, multiple_of: {step}"
        divides = f"multiple_of: {step}, divides: {dict(zip(('bm', 'bn', 'bk'), 'MNK', strict=True))[name]}"
        lines.append(f"  {name}: {{{rng.choice((ends, ends, ends, divides))}}}")
    asked = rng.sample(demands, rng.randint(1, 4))
    lines += [f"constraints: [{', '.join(asked)}]", f"partial: {rng.choice(('none', 'masked'))}"]
    return "\n".join([*lines, "flops: 2 * M * N * K", f"headroom: {rng.choice(('0%', '25%'))}"])


def problem_at_random(seed: int) -> Problem | None:
    """The problem of a seed; None where a range of it holds no number, or where something meets it all."""
    try:
        problem = read_problem(read_yaml(document(random.Random(seed))), f"random {seed}")
    except LayoutError:
        return None
    small, _ = presolve(problem, kernel_target(problem.target))
    return None if search(small, Checker(small), anyone=True).found else problem
