"""How much CPU a search takes, its certificate included: problems read once, the best of three runs, in this process.

python benchmarks/search.py                   one line per problem: candidates, seconds, boxes, certificate; then ratios
python benchmarks/search.py infeasible [100]  problems that nothing meets: how long it takes to say why, and in how much
python benchmarks/search.py compiled [20]     first answers of so many fresh problems of ready kernels on v5e and v6e
                                              with their bodies: how many of them the TPU compiler takes
python benchmarks/search.py neighbours [v5e]  whether candidates of JAX's matmul that hold more take more VMEM, compiled
python benchmarks/search.py traced [16]       searches that trace a function, by terms and with each candidate traced:
                                              JAX's matmul on a lattice of 8 x so many x so many blocks, functions that
                                              jit and allocate in a body (tests/searching/traced_functions.py) on as
                                              many, then the ready files; both answers are compared
"""

from __future__ import annotations

import itertools
import random
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import median

import yaml

from layoutproof.searching.infeasible import infeasible_subset
from layoutproof.searching.problem import Problem, WeightedSizes
from layoutproof.searching.read import load, read_problem
from layoutproof.searching.solve import solve
from layoutproof.searching.tilings import Tilings
from layoutproof.specs.positions import read_yaml

SPECS = Path(__file__).resolve().parent.parent / "specs" / "search"
READY = ("matmul", "flash_attention", "grouped_matmul", "batched_matmul", "quantised_matmul", "layer_norm", "softmax")
ROWS, WIDE = range(128, 8193, 128), range(256, 4097, 256)
FRESH = {
    "matmul": (ROWS, WIDE, WIDE),
    "softmax": (ROWS, WIDE),
    "layer_norm": (ROWS, WIDE),
    "quantised_matmul": (ROWS, WIDE, WIDE),
    "flash_attention": ((1, 2, 4), (4, 8, 16), (1024, 2048, 4096), (1024, 2048, 4096), (128,)),
    "batched_matmul": ((2, 4, 8), range(128, 2049, 128), range(256, 2049, 256), range(256, 2049, 256)),
}
"""Ready kernels with what their sizes may be, in the order of their files."""
FIVE = """
search: five variables
target: v6e
kernel:
  grid: ["cdiv(A, ba)", "cdiv(B, bb)", "cdiv(M, bm)", "cdiv(N, bn)", "cdiv(K, bk)"]
  semantics: [parallel, parallel, parallel, parallel, arbitrary]
  inputs:
    - {name: x, array: "bf16[A,B,M,K]", block: [ba, bb, bm, bk], index: "(a, b, i, j, k) -> (a, b, i, k)"}
    - {name: y, array: "bf16[A,B,K,N]", block: [ba, bb, bk, bn], index: "(a, b, i, j, k) -> (a, b, k, j)"}
  outputs:
    - {name: o, array: "bf16[A,B,M,N]", block: [ba, bb, bm, bn], index: "(a, b, i, j, k) -> (a, b, i, j)"}
  scratch: [{array: "f32[ba,bb,bm,bn]"}]
sizes: {A: 32, B: 32, M: 4096, N: 4096, K: 4096}
tune:
  ba: {from: 1, to: 32}
  bb: {from: 1, to: 32}
  bm: {from: 8, to: 4096, multiple_of: 8}
  bn: {from: 128, to: 4096, multiple_of: 128}
  bk: {from: 64, to: 4096, multiple_of: 64}
constraints: [ba * bb <= 64]
flops: steps * 2 * ba * bb * bm * bn * bk
headroom: 25%
"""


def timed(problem: Problem, times: int = 3) -> tuple[float, Tilings]:
    """CPU seconds of the fastest of so many searches, and its answer."""
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        answer = solve(problem, best=1)
        best = min(best, time.process_time() - start)
    return best, answer


def measure(what: str, problem: Problem, times: int = 3) -> float:
    """Searches, prints one line, and returns the seconds."""
    seconds, answer = timed(problem, times)
    kind = "none" if answer.bounded.certificate is None else answer.bounded.certificate.kind
    said = answer.unknown or kind
    print(
        f"{what:<24}{problem.count():>14} candidates{seconds:>8.2f} s  {answer.bounded.progress.boxes:>6} boxes  {said}"
    )
    return seconds


def infeasible(count: int) -> None:
    """Why so many problems that nothing meets (`tests/searching/infeasible_at_random.py`, seeds from 0)."""
    sys.path.insert(0, str(SPECS.parents[1]))
    from tests.searching.infeasible_at_random import problem_at_random

    problems = (problem for seed in itertools.count() if (problem := problem_at_random(seed)) is not None)
    seconds, named, unproved = [], Counter[int](), 0
    for problem in itertools.islice(problems, count):
        start = time.process_time()
        why = infeasible_subset(problem)
        seconds.append(time.process_time() - start)
        named[len(why.conditions)] += 1
        unproved += not why.complete
    print(f"{count} problems that nothing meets: {median(seconds):.2f} s in the median, {max(seconds):.2f} s at most")
    print(f"{unproved} not proved irreducible; conditions named: {dict(sorted(named.items()))}")


def compiled(count: int) -> None:
    """Whether the TPU compiler takes the first answers of problems of ready kernels with sizes at random (seed 17)."""
    from layoutproof.searching.compiled import asked
    from layoutproof.searching.ready import kernel

    rng, said = random.Random(17), Counter[tuple[str, str]]()
    for k in range(count):
        name = tuple(FRESH)[k % len(FRESH)]
        sizes = [rng.choice(values) for values in FRESH[name]]
        for target in ("v5e", "v6e"):
            document, file = kernel(name, sizes, None, target)
            problem = read_problem(read_yaml(yaml.safe_dump(document, sort_keys=False), file), file)
            answer = solve(problem, best=1)
            word = [one.word for one in asked(answer.problem, answer.found, estimate=False)] or ["nothing is legal"]
            said[target, word[0]] += 1
            first = [one.values for one in answer.found]
            print(f"{name:<18}{target}  {sizes}  {first}  {word[0]}", flush=True)
    print("; ".join(f"{target}: {word} {many}" for (target, word), many in sorted(said.items())))


def neighbours(target: str) -> None:
    """Whether candidates that hold more take more VMEM: of jax's matmul."""
    from layoutproof.mosaic.ask import asked
    from layoutproof.mosaic.ask import compiled as made
    from layoutproof.pallas.from_jax.user import calls_of
    from layoutproof.searching.neighbours import Neighbours

    sides = (128, 256, 512, 1024)
    cuts = [{"block_shape": (m, n), "block_k": k} for m, n, k in itertools.product(sides, sides, sides)]
    place = "jax.experimental.pallas.ops.tpu.matmul:matmul"
    few = [cut for cut in cuts if cut["block_k"] < 1024]
    cases = {
        "matmul, bf16, K 512": (["bf16[4096,512]", "bf16[512,4096]"], few),
        "matmul, bf16, K 4096": (["bf16[1024,4096]", "bf16[4096,1024]"], cuts),
        "matmul, f32, K 2048": (["f32[2048,2048]", "f32[2048,2048]"], cuts),
    }
    for name, (args, given) in cases.items():
        calls = [next(iter(calls_of(place, args, kwargs, target=target))) for kwargs in given]
        questions = [
            asked(place, args, kwargs, call, 0, target, False) for kwargs, call in zip(given, calls, strict=True)
        ]
        learned = Neighbours()
        for question, report in zip(questions, made(questions), strict=True):
            learned.learn(question, report)
        print(f"{name:<24}{len(given):>4} candidates  {learned.pairs} pairs, {learned.fell} take less", flush=True)


def traced(side: int) -> None:
    """Traced searches by terms, and with every candidate traced, in this process: CPU seconds, and one answer."""
    from layoutproof.searching import alike
    from layoutproof.searching.traced_file import read

    file = (SPECS / "traced_matmul.yaml").as_posix()
    text = Path(file).read_text()
    for name, most in (("bm", side), ("bn", side), ("bk", 8)):
        values = [4096 * (k + 1) // most // 128 * 128 for k in range(most)]
        text = text.replace(f"{name}: {{from: 128, to: 4096, powers_of: 2}}", f"{name}: {values}")
    problems = {"matmul, a lattice": read(read_yaml(text, file), file)}
    beside = (SPECS.parents[1] / "tests" / "searching" / "f.yaml").as_posix()
    rows, columns = [8 * (k + 1) for k in range(4 * side)], [128 * (k + 1) for k in range(2 * side)]
    for name in ("twice", "loose_body", "nested_memory"):
        text = f"target: v5e\ntrace: traced_functions.py:{name}\nargs: ['f32[16384,16384]']\nheadroom: 0%\n"
        text += f"tune: {{rows: {rows}, columns: {columns}}}\n"
        problems[name] = read(read_yaml(text, beside), beside)
    problems |= {name: read(SPECS / f"{name}.yaml") for name in ("traced_matmul", "traced_flash")}
    solve(problems["traced_matmul"], 3)  # what is imported is not counted
    few = alike.FEW
    for what, problem in problems.items():
        seconds, answers = [], []
        for alike.FEW in (few, 10**9):
            start = time.process_time()
            answers.append(solve(problem, 3))
            seconds.append(time.process_time() - start)
        found = [[(one.values, one.cost, one.figures) for one in a.found] for a in answers]
        rows = [a.enumerated for a in answers]
        print(
            f"{what:<20}{rows[0].looked_at:>6} candidates  {rows[0].traced:>4} traced {seconds[0]:>7.2f} s"
            f"  all traced {seconds[1]:>7.2f} s  {seconds[1] / seconds[0]:>5.1f} times"
            f"  {'the same answer' if found[0] == found[1] else 'ANOTHER ANSWER'}"
        )
    alike.FEW = few


def main() -> None:
    """All measurements."""
    if sys.argv[1:2] == ["traced"]:
        traced(int(sys.argv[2]) if sys.argv[2:] else 16)
        return
    if sys.argv[1:2] == ["compiled"]:
        compiled(int(sys.argv[2]) if sys.argv[2:] else 20)
        return
    if sys.argv[1:2] == ["neighbours"]:
        neighbours(sys.argv[2] if sys.argv[2:] else "v5e")
        return
    if sys.argv[1:2] == ["infeasible"]:
        infeasible(int(sys.argv[2]) if sys.argv[2:] else 100)
        return
    for name in READY:
        measure(name, load(SPECS / f"{name}.yaml"))
    measure("five variables", read_problem(read_yaml(FIVE), "five"), times=1)
    one = load(SPECS / "matmul.yaml")
    shapes = [WeightedSizes({"M": 1024 * k, "N": 8192, "K": 8192}) for k in range(1, 17)]
    alone = measure("matmul, 2 shapes", replace(one, shapes=tuple(shapes[:2])))
    for count in (4, 8, 16):
        several = measure(f"matmul, {count} shapes", replace(one, shapes=tuple(shapes[:count])))
        print(f"{'':<24}{several / alone / (count / 2):.2f} times as long as linear in the number of shapes")


if __name__ == "__main__":
    main()
