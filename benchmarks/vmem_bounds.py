"""Whether `memory_budget` refutes a kernel that the TPU compiler takes: kernels at random, small ones among them.

    python benchmarks/vmem_bounds.py --count 500 [--seed 0] [--target v5e ..]

Each kernel has a real body, and a limit about what our rules count, so that the answer turns on a buffer, an array that
is kept whole, or a scratch that nobody reads. It is judged without the compiler, and then compiled by libtpu for one
target after the other. What is refuted and taken is a bug of ours and is printed; what is proved and refused spills, or
is refused for another reason. Exit code 1 where something is refuted that the compiler takes.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.mosaic.ask import CompilerQuestion, asked, compiled
from layoutproof.pallas.from_jax.user import calls_of
from layoutproof.pallas.judge import judge, kernel_target

HERE = Path(__file__).resolve()
TARGETS = ("v5e", "v6e", "7x")
TYPES = ("float32", "float32", "bfloat16", "int32", "int8", "uint8", "int16", "bool", "bool")
SHARES = (0.3, 0.5, 0.6, 0.75, 0.9, 0.99, 1.0, 1.1, 2.0)
"""Limits, as parts of what our rules count."""


class Plan:
    """One kernel at random: the same number gives the same one."""

    def __init__(self, seed: int, number: int) -> None:
        rng = random.Random(f"{seed} {number}")
        self.rng = rng
        self.grid = tuple(rng.choice((1, 2, 2, 3, 4)) for _ in range(rng.choice((1, 1, 2))))
        self.ins = [self._operand() for _ in range(rng.choice((1, 1, 2)))]
        self.outs = [self._operand() for _ in range(rng.choice((1, 1, 1, 2)))]
        shapes = ((8, 128), (8, 128), (16, 128), (64, 128), (20, 100))
        self.scratch = [rng.choice(shapes) for _ in range(rng.choice((0, 0, 1, 1, 2)))]
        self.uses = [rng.choice(("none", "store", "load", "both", "sum", "half")) for _ in self.scratch]
        self.share = rng.choice(SHARES)

    def _operand(self) -> tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Element type, array, block, and for each dimension the grid dimension that chooses the block, -1 = none."""
        rng = self.rng
        dtype = rng.choice(TYPES)
        rows = 32 if dtype in ("int8", "uint8") else 16
        rank = rng.choice((1, 2, 2, 2, 3))
        block = [rng.choice((1, 2, 3)), rows * rng.choice((1, 1, 2, 4)), rng.choice((128, 128, 256, 12, 100))][-rank:]
        if rank == 1:
            block = [1024 * rng.choice((1, 2))]
        chosen = [rng.choice((-1, *range(len(self.grid)))) for _ in block]
        dims = []
        for d, (size, k) in enumerate(zip(block, chosen, strict=True)):
            many = self.grid[k] if k >= 0 else rng.choice((1, 1, 2, 3))
            # columns that are no whole tiles are all of them
            if d == len(block) - 1 and size % 128:
                many, chosen[d] = 1, -1
            dims.append(size * many)
        return dtype, tuple(dims), tuple(block), tuple(chosen)

    def spec(self, operand: Any) -> Any:
        """Its BlockSpec."""
        _, _, block, chosen = operand
        return pl.BlockSpec(block, lambda *at: tuple(at[k] if k >= 0 else 0 for k in chosen))

    def body(self, *refs: Any) -> None:
        """Sums what is read, writes it everywhere, and uses its scratch in one way of several."""
        ins, outs = refs[: len(self.ins)], refs[len(self.ins) : len(self.ins) + len(self.outs)]
        total = jnp.zeros((), jnp.float32)
        for ref in ins:
            total += ref[...].astype(jnp.float32).sum()
        for use, ref in zip(self.uses, refs[len(ins) + len(outs) :], strict=True):
            if use in ("store", "both", "half"):
                ref[...] = jnp.full(ref.shape, total)
            if use in ("load", "both"):
                total += ref[...].sum()
            if use == "half":
                total += ref[0:8, :].sum()
            if use == "sum":
                ref[...] = ref[...] + jnp.ones(ref.shape, ref.dtype)
        for ref in outs:
            kind = jnp.bool_ if ref.dtype == jnp.bool_ else ref.dtype
            ref[...] = jnp.full(ref.shape, total > 0) if kind == jnp.bool_ else jnp.full(ref.shape, total).astype(kind)


def call(*arrays: Any, seed: int, number: int, limit: int = 0) -> Any:
    """The kernel of a number as a function of its inputs."""
    plan = Plan(seed, number)
    made = pl.pallas_call(
        plan.body,
        grid=plan.grid,
        in_specs=[plan.spec(o) for o in plan.ins],
        out_specs=[plan.spec(o) for o in plan.outs],
        out_shape=[jax.ShapeDtypeStruct(o[1], getattr(jnp, o[0] + ("_" if o[0] == "bool" else ""))) for o in plan.outs],
        scratch_shapes=[pltpu.VMEM(dims, jnp.float32) for dims in plan.scratch],
        compiler_params=pltpu.CompilerParams(vmem_limit_bytes=limit or None),
        name="k",
    )
    return made(*arrays)


def kernels(seed: int, number: int, target: str) -> tuple[Any, dict[str, int], Kernel]:
    """(arguments, keywords, the kernel), with a limit about what it is counted to need."""
    plan = Plan(seed, number)
    args = [jax.ShapeDtypeStruct(dims, getattr(jnp, t + ("_" if t == "bool" else ""))) for t, dims, _, _ in plan.ins]
    named = {"seed": seed, "number": number}
    (free,) = calls_of(f"{HERE}:call", args, named, target=target)
    if not isinstance(free, Kernel):
        raise SystemExit(f"kernel {number} is not modelled: {free}")
    used = kernel_target(target).memory(free)[0].used
    named["limit"] = max(1024, int(used * plan.share) // 512 * 512)
    (kernel,) = calls_of(f"{HERE}:call", args, named, target=target)
    assert isinstance(kernel, Kernel)
    return args, named, kernel


def main() -> int:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", action="append", help="repeatable; default v5e, v6e, 7x")
    given = parser.parse_args()
    wrong = 0
    for target in given.target or TARGETS:
        said: list[tuple[int, Verdict, str]] = []

        def questions(target: str = target, said: list[tuple[int, Verdict, str]] = said) -> Iterator[CompilerQuestion]:
            for number in range(given.first, given.first + given.count):
                args, named, kernel = kernels(given.seed, number, target)
                found = judge(kernel, names=["memory_budget"], target=kernel_target(target))
                (vmem,) = (f for f in found if f.subject == "VMEM")
                said.append((number, vmem.verdict, vmem.reason))
                yield asked(f"{HERE}:call", args, dict(named), kernel, 0, target, False)

        tally: Counter[tuple[str, str]] = Counter()
        for report in compiled(questions()):
            number, verdict, why = said[-1]
            words = report.refused or report.problem
            over = "exceeded scoped vmem limit" in words or "out of memory in memory space vmem" in words
            answer = "taken" if report.accepted else "refused for VMEM" if over else "refused otherwise" if report.refused else "no answer"  # fmt: skip  # noqa: E501
            tally[verdict.value, answer] += 1
            if verdict is Verdict.REFUTED and report.accepted:
                wrong += 1
                print(f"REFUTED AND TAKEN: seed {given.seed} number {number} on {target}: {why}", flush=True)
            if answer == "refused otherwise" and tally[verdict.value, answer] == 1:
                print(f"  e.g. number {number}: {words[:200]}", flush=True)
        counts = ", ".join(f"{v} and {a} {n}" for (v, a), n in sorted(tally.items()))
        print(f"{target}: {sum(tally.values())} kernels: {counts}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
