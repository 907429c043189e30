"""How well `search --compile` predicts the cycles of candidates that were not compiled, by those that were.

    python benchmarks/learned.py FILE.jsonl [--each 16] [--only matmul@v5e]

Asks the TPU compiler for the cycles of candidates of some kernels of `search_kernels.SEARCHED`, drawn at random, and
keeps them in the file; what is there is not asked again. Then, of each kernel: the error of leave-one-out, as the
search prints it, and the error on the half that costs more by the model, predicted by the other half; beside it that
of one factor for the model's whole time.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from search_kernels import SEARCHED
from search_legal import HERE, answers, call_of, candidates

import layoutproof as lp
from layoutproof.core.result import Verdict
from layoutproof.searching.learned import LEAST, Correction, Fitted, correction, terms
from layoutproof.searching.machines import machine
from layoutproof.searching.traced import priced, prices

KERNELS = ("rms@v5e", "matmul@v5e", "softmax@v5e", "bias@v5e", "flash@v6e", "conv@v5e", "transpose@v6e")
MOST_STEPS = 2000
"""Programs of a candidate that is simulated: of more the compiler takes minutes."""


def rows(path: Path) -> list[dict[str, Any]]:
    """The answers in a file."""
    return list(map(json.loads, path.read_text().splitlines())) if path.exists() else []


def asked(path: Path, name: str, target: str, each: int) -> None:
    """Asks about candidates of one kernel, as far as they are not in the file."""
    of = SEARCHED[name]
    legal = lp.legal(f"{HERE}:{of.function}", *of.args, target=target, parameters=of.tune)
    said = [legal(**values) for values in candidates(of)]
    drawn = [a for a in said if a.verdict is not Verdict.REFUTED and a.steps is not None and a.steps < MOST_STEPS]
    random.Random(0).shuffle(drawn)
    known = {(row["kernel"], row["target"], tuple(row["values"].values())) for row in rows(path)}
    left = [dict(a.configuration) for a in drawn[:each]]
    left = [values for values in left if (name, target, tuple(values.values())) not in known]
    for values, report in zip(left, answers(name, target, left, True), strict=True):
        row = {"kernel": name, "target": target, "values": values, "accepted": report.accepted}
        row |= {"cycles": report.estimate.cycles, "least": report.estimate.at_least, "why": report.estimate.reason}
        with path.open("a") as file:
            print(json.dumps(row), file=file, flush=True)


def fitted(row: Mapping[str, Any]) -> tuple[int, Fitted]:
    """One answer: the time by the model, and what a correction is made of."""
    name, target, values = row["kernel"], row["target"], row["values"]
    of = SEARCHED[name]
    problem = lp.legal(f"{HERE}:{of.function}", *of.args, target=target, parameters=of.tune).problem
    call = call_of(name, target, values)
    figures = priced(problem, values, prices(problem, (call,), True)).figures
    return figures["time"], Fitted(terms(figures, machine(target, call)), row["cycles"], row["least"])


def error(said: float, one: Fitted) -> float:
    """Percent by which a prediction is off."""
    ranked = max(one.cycles, one.least)
    return 100 * abs(said - ranked) / ranked


def halves(known: list[tuple[int, Fitted]]) -> str:
    """The error on the dearer half, by the cheaper one, and by one factor; of a half that is large enough."""
    many = max(LEAST, len(known) // 2)
    by: Correction | None = correction([one for _, one in known[:many]])
    if by is None or len(known) == many:
        return ""
    factor = median(max(one.cycles, one.least) / time for time, one in known[:many])
    rest = known[many:]
    errors = [error(by.cycles(one.terms, one.least), one) for _, one in rest]
    plain = [error(factor * time, one) for time, one in rest]
    return f"{median(errors):6.1f} %, {max(errors):.1f} %; by one factor {median(plain):.1f} %, {max(plain):.1f} %"


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="where the answers are kept")
    parser.add_argument("--each", type=int, default=16, help="candidates of a kernel at most")
    parser.add_argument("--only", action="append", default=[], help="a kernel and its chip; repeatable")
    given = parser.parse_args()
    for text in given.only or KERNELS:
        name, target = text.split("@")
        asked(given.file, name, target, given.each)
        mine = [row for row in rows(given.file) if (row["kernel"], row["target"]) == (name, target) and row["cycles"]]
        known = sorted((fitted(row) for row in mine), key=lambda pair: pair[0])
        by = correction([one for _, one in known])
        if by is None:
            print(f"{text:15} {len(known):3} candidates: too few")
            continue
        print(f"{text:15} {len(known):3} candidates, {by.error:.1f} %, {by.worst:.1f} %; dearer half {halves(known)}")


if __name__ == "__main__":
    main()
