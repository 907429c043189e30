"""`lp.legal` on 2,000 configurations of ten kernels: milliseconds each, and its verdicts against the slow ones.

    python benchmarks/legal.py [--only matmul] [--each 230]       CPU milliseconds of each configuration
    python benchmarks/legal.py --check                            every verdict beside that of `lp.kernels`
    python benchmarks/legal.py --compile 120 --answers FILE.jsonl  a random sample put to the real TPU compiler

`--check` traces each configuration and asks the same questions of it; every fortieth is put to `lp.kernels` itself,
with all its questions, of which the same ones count. `--compile N` asks libtpu about N configurations of those that are
legal and N that are refused by a rule (what the function itself refuses has nothing to compile), keeps the answers in
a file, and counts: legal and refused by the compiler, refused and taken, and the compiler's VMEM over the estimate.
Of the refused only those count that the compiler has an opinion on (COMPILERS): a grid that leaves blocks out compiles.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from legal_kernels import TUNED, Tuned

import layoutproof as lp
from layoutproof.core.errors import LayoutError
from layoutproof.core.result import Verdict
from layoutproof.pallas.findings import judged
from layoutproof.pallas.from_jax.user import argument, calls_in
from layoutproof.pallas.judge import conditions_of
from layoutproof.searching.configurations import QUESTIONS, numbered
from layoutproof.searching.legal import MEMORY
from layoutproof.searching.legality import Legality

ASKED = (*QUESTIONS, MEMORY)
COMPILERS = ("block_shape", "legal_for_target", "element_alignment", MEMORY)
"""The questions of which the compiler refuses what is wrong."""


def configurations(of: Tuned, each: int, seed: int = 0) -> list[dict[str, int]]:
    """At most so many, drawn at random."""
    every = prod(map(len, of.parameters.values()))
    found = []
    for number in random.Random(seed).sample(range(every), min(each, every)):
        values = {}
        for name, choices in of.parameters.items():
            number, k = divmod(number, len(choices))
            values[name] = choices[k]
        found.append(values)
    return found


def legal_of(of: Tuned) -> Any:
    """What answers for this kernel."""
    return lp.legal(of.function, *of.args, target=of.target, parameters=of.parameters, assume=of.assume, where=of.where)


def quantile(values: list[float], share: float) -> float:
    """The value below which a share of them lies."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def timed(of: Tuned, values: list[dict[str, int]]) -> tuple[list[Legality], list[float], Any]:
    """The answers, and the milliseconds of each; the first one traces, and imports."""
    legal = legal_of(of)
    found, spent = [], []
    for each in values:
        before = time.process_time()
        found.append(legal(**each))
        spent.append(1e3 * (time.process_time() - before))
    return found, spent, legal


def slowly(of: Tuned, values: Mapping[str, int], whole: bool) -> Verdict:
    """The verdict of the same questions after tracing; whole: by `lp.kernels` with all its questions."""
    args = [argument(text) for text in of.args]
    assume, where = ([numbered(text, values) for text in texts] for texts in (of.assume, of.where))
    try:
        if whole:
            function = partial(of.function, **values)
            calls: Any = lp.kernels(function, *args, target=of.target, assume=assume, where=where).calls
        else:
            traced = calls_in(of.function, args, values, target=of.target, assume=assume)
            held = conditions_of(traced, where)
            calls = [judged(call, target=of.target, among=ASKED, where=w) for call, w in zip(traced, held, strict=True)]
    except LayoutError:
        return Verdict.REFUTED
    return min(f.verdict for c in calls for f in c.findings if f.question in ASKED and f.severity == "error")


def checked(of: Tuned, values: list[dict[str, int]], found: list[Legality]) -> Iterator[str]:
    """Each configuration on whose rules the two differ."""
    for k, (each, answer) in enumerate(zip(values, found, strict=True)):
        for whole in (False, True) if k % 40 == 0 else (False,):
            slow = slowly(of, each, whole)
            if slow is not answer.rules:
                yield f"{each} {answer.rules.value} ({answer.reason[:120]}) traced {answer.traced}, slowly {slow.value}"


def compiled(name: str, of: Tuned, chosen: list[tuple[dict[str, int], Legality]], path: Path) -> None:
    """Asks libtpu about each that is not in the file yet, and adds its answer."""
    from layoutproof.mosaic.ask import asked
    from layoutproof.mosaic.ask import compiled as ask

    args = [argument(text) for text in of.args]
    known = {(row["kernel"], tuple(row["values"].values())) for row in rows(path)}
    left = [(v, answer) for v, answer in chosen if (name, tuple(v.values())) not in known]

    def questions() -> Iterator[Any]:
        for values, _ in left:
            assume = [numbered(text, values) for text in of.assume]
            calls = calls_in(of.function, args, values, target=of.target, assume=assume)
            (k,) = [k for k, call in enumerate(calls) if getattr(call, "pipeline", "") == "pallas_call"]
            yield asked(of.function, args, dict(values), calls[k], k, of.target, False)

    for (values, answer), report in zip(left, ask(questions()), strict=True):
        row = {
            "kernel": name, "values": values, "verdict": answer.verdict.value, "accepted": report.accepted,
            "words": (report.refused or report.problem)[:300], "reason": answer.reason[:200],
            "estimate": answer.vmem_estimate, "least": answer.vmem_bytes,
            "total": None if report.vmem is None else report.vmem.total,
        }  # fmt: skip
        with path.open("a") as file:
            print(json.dumps(row), file=file, flush=True)
        print(time.strftime("%H:%M:%S"), name, values, answer.verdict.value, report.accepted, row["total"], flush=True)


def rows(path: Path) -> list[dict[str, Any]]:
    """The answers in a file."""
    return list(map(json.loads, path.read_text().splitlines())) if path.exists() else []


def summed(path: Path) -> None:
    """What the compiler said, beside the verdicts."""
    counts: dict[str, Counter[Any]] = defaultdict(Counter)
    ratios = defaultdict(list)
    for row in rows(path):
        if row["verdict"] == "refuted" and row["reason"].partition(" ")[0] not in COMPILERS:
            continue
        counts[row["verdict"]][row["accepted"]] += 1
        if row["total"] and row["estimate"]:
            ratios[row["kernel"]].append(row["total"] / row["estimate"])
        if (row["verdict"], row["accepted"]) in (("proved", False), ("refuted", True)):
            print(row["kernel"], row["values"], row["verdict"], row["accepted"], row["reason"], row["words"][:200])
    for verdict, of in counts.items():
        print(f"{verdict}: taken {of[True]}, refused {of[False]}, no answer {of[None]}")
    for name, many in ratios.items():
        print(f"{name:17} VMEM over the estimate: {min(many):.2f} to {max(many):.2f}, median {quantile(many, 0.5):.2f}")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], help="a kernel; repeatable")
    parser.add_argument("--each", type=int, default=251, help="configurations of a kernel at most")
    parser.add_argument("--check", action="store_true", help="compare every verdict")
    parser.add_argument("--compile", type=int, default=0, help="legal ones, and refused ones, for the compiler")
    parser.add_argument(
        "--answers", type=Path, default=Path("legal.jsonl"), help="where the compiler's answers are kept"
    )
    given = parser.parse_args()
    all_spent: list[float] = []
    said: list[tuple[str, Tuned, dict[str, int], Legality]] = []
    differ = 0
    print("kernel            configurations  legal refused unknown  traced  median ms   90 %   mean")
    for name in given.only or TUNED:
        of = TUNED[name]
        values = configurations(of, given.each)
        found, spent, _ = timed(of, values)
        all_spent += spent
        said += [(name, of, v, a) for v, a in zip(values, found, strict=True)]
        many = Counter(answer.verdict for answer in found)
        numbers = [many[v] for v in (Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN)]
        traced = sum(answer.traced for answer in found)
        print(
            f"{name:17}{len(values):>15}{numbers[0]:>7}{numbers[1]:>8}{numbers[2]:>8}{traced:>8}"
            f"{quantile(spent, 0.5):>11.1f}{quantile(spent, 0.9):>7.1f}{statistics.mean(spent):>7.1f}",
            flush=True,
        )
        if given.check:
            for line in checked(of, values, found):
                differ += 1
                print("  differs:", line, flush=True)
    many = Counter(answer.verdict for *_, answer in said)
    share = 100 * many[Verdict.UNKNOWN] / len(said)
    print(
        f"all {len(said)}: median {quantile(all_spent, 0.5):.1f} ms, 90 % {quantile(all_spent, 0.9):.1f} ms, "
        f"unknown {share:.1f} %" + (f", {differ} differ" if given.check else "")
    )
    if given.compile:
        drawn = random.Random(1)
        for verdict in (Verdict.PROVED, Verdict.REFUTED):
            of_verdict = [one for one in said if one[3].verdict is verdict and one[3].steps is not None]
            if verdict is Verdict.REFUTED:
                of_verdict = [one for one in of_verdict if one[3].question in COMPILERS]
            chosen = drawn.sample(of_verdict, min(given.compile, len(of_verdict)))
            for name in TUNED:
                mine = [(values, answer) for kernel, _, values, answer in chosen if kernel == name]
                compiled(name, TUNED[name], mine, given.answers)
        summed(given.answers)


if __name__ == "__main__":
    main()
