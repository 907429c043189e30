"""Published block sizes against both stages of a search, and against rules that need no model.

    python benchmarks/tuned_compiled.py ROWS.jsonl [--each 20] [--sources FOLDER --seconds 1500 --candidates 6]

Stage one, for a seeded sample of rows of each kernel that is modelled (`tuned_kernels.py`): where the published size
stands among all candidates that fit, by the model's cost and by three rules: fewest steps, fewest bytes, most VMEM.

Stage two needs the kernel itself: FOLDER holds vllm-project/tpu-inference at b8692ff01 (`git archive`), whose quantised
matmul the compiler is asked about. Candidates: the published size and a seeded sample of those that cost at most four
times the least by the model, two thirds of it from the cheaper third. One of 7x is compiled for 7x, one of v6e for v5e,
a proxy: on v6e the compiler's simulation aborts on this kernel. So many seconds of processor time are spent, the
smallest problems of the sample first; the table says on how many.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import resource
import statistics
import sys
import types
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tuned_kernels import CHIPS, MODELS, TYPES, Asked
from tuned_rank import RULES, Standing, all_candidates, standings

from layoutproof.core.errors import LayoutError, Undecided

SEED = 17
SECONDS = 60
"""That one candidate may take."""
PROXY = {"v6e": "v5e", "7x": "7x"}
Row = Mapping[str, Any]


def quantised(x: Any, w: Any, scale: Any, *, source: str, blocks: tuple[int, int, int], kind: str) -> Any:
    """The quantised matmul of tpu-inference with these blocks (batch, out, in), its package around it left out."""
    import jax.numpy as jnp

    if "tpu_inference" not in sys.modules:
        package, log = types.ModuleType("tpu_inference"), types.ModuleType("tpu_inference.logger")
        package.__path__ = [f"{source}/tpu_inference"]
        quiet = types.SimpleNamespace(warning_once=lambda *words: None)
        log.init_logger = lambda name: quiet  # type: ignore[attr-defined]
        sys.modules.update({"tpu_inference": package, "tpu_inference.logger": log})
    from tpu_inference.kernels.quantized_matmul.kernel import quantized_matmul_kernel
    from tpu_inference.kernels.quantized_matmul.tuned_block_sizes import TunedValue

    return quantized_matmul_kernel(x, w, scale, x_q_dtype=jnp.dtype(kind), tuned_value=TunedValue(*blocks))


def sampled(rows: Sequence[Row], kernel: str, each: int) -> list[tuple[Row, Asked]]:
    """So many rows of a kernel that are modelled, the same each time."""
    own = [row for row in rows if row["kernel"] == kernel]
    random.Random(SEED).shuffle(own)
    found = []
    for row in own:
        try:
            one = MODELS[kernel](row)
        except Undecided:
            continue
        if not one.ranked:
            return []
        found.append((row, one))
        if len(found) == each:
            break
    return found


def stage_one(rows: Sequence[Row], each: int) -> str:
    """The table of the first stage as Markdown."""
    head = [
        "kernel",
        "rows",
        *(f"{rule}: median rank, top five" for rule in RULES),
        "cost within 5 %, 10 % of the best",
    ]
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    for kernel in MODELS:
        own = [standings(one.problem, one.values) for _, one in sampled(rows, kernel, each)]
        if own:
            cells = [_stands([one[rule] for one in own]) for rule in RULES]
            near = [sum(one["cost"].ratio <= most for one in own) / len(own) for most in (1.05, 1.1)]
            lines.append(f"| {kernel} | {len(own)} | {' | '.join(cells)} | {near[0]:.0%}, {near[1]:.0%} |")
    return "\n".join(lines)


def _stands(of: Sequence[Standing]) -> str:
    return f"{statistics.median(one.rank for one in of):g}, {sum(one.rank <= 5 for one in of) / len(of):.0%}"


def choices(one: Asked, count: int, seed: str) -> list[dict[str, int]]:
    """The published size first, then others that fit."""
    rest = [values for values in all_candidates(one.problem, 4) if values != dict(one.values)]
    rng, third = random.Random(seed), len(rest) // 3 + 1
    cheap, dear = rest[:third], rest[third:]
    many = min(len(cheap), -(-2 * (count - 1) // 3))
    taken = rng.sample(cheap, many) + rng.sample(dear, min(len(dear), count - 1 - many))
    return [dict(one.values), *taken]


def questions(row: Row, given: Sequence[Mapping[str, int]], source: str, target: str) -> list[Any]:
    """What the compiler is asked of one row, None where the kernel does not take the blocks."""
    from layoutproof.mosaic.ask import asked
    from layoutproof.pallas.from_jax.user import calls_of

    p = row["problem"]
    w = TYPES[p["w"]]
    args = [f"bf16[{p['n_batch']},{p['n_in']}]", f"{w}[{p['n_out']},{p['n_in']}]", f"f32[{p['n_out']}]"]
    place, found = f"{Path(__file__).as_posix()}:quantised", []
    for values in given:
        kwargs = {"source": source, "blocks": (values["bb"], values["bo"], values["bi"]), "kind": p["x"]}
        try:
            kernel = next(iter(calls_of(place, args, kwargs, target=target)))
            found.append(asked(place, args, kwargs, kernel, 0, target))
        except LayoutError as error:
            print(f"# {values}: {error}", file=sys.stderr)
            found.append(None)
    return found


def compiled_rows(rows: Sequence[Row], each: int, count: int, source: str, seconds: float) -> list[dict[str, Any]]:
    """For each row that the time allowed: candidates with what the compiler and the rules say of them."""
    from layoutproof.mosaic.ask import compiled

    found = []
    own = sampled(rows, "quantized_matmul", each)
    for row, one in sorted(own, key=lambda pair: math.prod(pair[1].problem.shapes[0].sizes.values())):
        if _spent() > seconds:
            break
        target = PROXY[CHIPS[row["chip"]]]
        given = choices(one, count, json.dumps(row["problem"], sort_keys=True))
        wanted = questions(row, given, source, target)
        reports = iter(list(compiled([each for each in wanted if each is not None], seconds=SECONDS)))
        of_each = []
        for values, question in zip(given, wanted, strict=True):
            report = None if question is None else next(reports)
            stands = standings(one.problem, values)
            of_each.append(
                {
                    "values": dict(values),
                    "accepted": None if report is None else report.accepted,
                    "cycles": None if report is None else report.estimate.ranked,
                    "why": "" if report is None else report.refused or report.problem or report.estimate.reason,
                    "vmem": None if report is None or report.vmem is None else report.vmem.total,
                    **{rule: stands[rule].value for rule in RULES},
                }
            )
        found.append({"chip": row["chip"], "target": target, "problem": row["problem"], "candidates": of_each})
        print(f"# {_spent():.0f} s: {json.dumps(found[-1])}", file=sys.stderr, flush=True)
    return found


def _spent() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def stage_two(found: Sequence[Mapping[str, Any]]) -> str:
    """The table of the second stage as Markdown: where the published size stands among what has an estimate."""
    rules = ("cycles", *RULES)
    head = ["rows of, compiled for", "rows", "with an estimate", "candidates, median"]
    head += [f"{rule}: median rank, first or tied" for rule in rules]
    head += ["cycles within 5 %, 10 % of the best"]
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    for chip, target in dict.fromkeys((one["chip"], one["target"]) for one in found):
        own = [one["candidates"] for one in found if one["chip"] == chip]
        known = [[c for c in of_each if c["cycles"] is not None] for of_each in own if of_each[0]["cycles"] is not None]
        known = [of_each for of_each in known if len(of_each) > 1]
        cells = [f"{chip}, {target}", str(len(own)), str(len(known))]
        if known:
            cells.append(f"{statistics.median(map(len, known)):g}")
            for rule in rules:
                ranks = [_rank([c[rule] for c in of_each], 1.05 if rule == "cycles" else 1.0) for of_each in known]
                cells.append(f"{statistics.median(ranks):g}, {sum(rank == 1 for rank in ranks)} of {len(ranks)}")
            near = [
                sum(of_each[0]["cycles"] <= most * min(c["cycles"] for c in of_each) for of_each in known) / len(known)
                for most in (1.05, 1.1)
            ]
            cells.append(f"{near[0]:.0%}, {near[1]:.0%}")
        lines.append(f"| {' | '.join(cells)} |")
    why = Counter(c["why"][:100] for one in found for c in one["candidates"] if c["cycles"] is None)
    lines += ["", *(f"- no estimate, {count} candidates: {reason}" for reason, count in why.most_common(8))]
    return "\n".join(lines)


def _rank(values: Sequence[float], tie: float) -> int:
    """Of the first among all, 1 = the best; closer than a tie counts as equal."""
    return 1 + sum(value * tie < values[0] if value > 0 else value < values[0] for value in values[1:])


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--each", type=int, default=20)
    parser.add_argument("--sources", default="")
    parser.add_argument("--seconds", type=float, default=1500)
    parser.add_argument("--candidates", type=int, default=6)
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.rows.read_text(encoding="utf-8").splitlines() if line.strip()]
    print(stage_one(rows, options.each), end="\n\n", flush=True)
    if options.sources:
        print(stage_two(compiled_rows(rows, options.each, options.candidates, options.sources, options.seconds)))


if __name__ == "__main__":
    main()
