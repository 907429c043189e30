"""`python benchmarks/bodies.py [--random N] [--seed S] [--interpret N] [--lint N] [--forms N] [--schemas N]`.

Kernels of `tests/bodies/truth` (grids, blocks, loops, masks, copies, tables: right or wrong by chance) are traced by
JAX and judged. What is true of them is found by running their description on NumPy arrays, element by element, for the
contents of small tables and the ways to give programs to cores. A verdict is wrong where
  it is proved, and a run shows a violation;
  it is refuted, and no run shows one, where all runs were looked at.
Prints every disagreement with the kernel, counts of verdicts, and the reasons of what is unknown. A kernel that takes
more than `--seconds` of CPU is left out, and counted. `--out` adds one line of JSON per kernel to a file; a kernel that
the file has is not looked at again, so that a run that was stopped goes on.
`--forms N` judges as many kernels in all their forms: traced, as their own dump has them where JAX lowers them, and
each of the two under a random `vmap` (`tests/bodies/forms.py`). No question is proved of one form and refuted of
another; what is unknown in one form alone is counted.
`--interpret N` runs as many kernels from the same seed in `pltpu.InterpretParams`: memory that starts as NaN, copies
on wait, memory that starts as 0 with eager copies, races detected, in child processes of `--python` (this one; give it
once per version of JAX). A child that does nothing but wait is ended at once, one that takes `--limit` seconds of CPU
for a run is, and is counted. Each run is held against the literal walk; what the interpreter hides is counted by the
rule that explains it (`tests/bodies/truth/oracles.py`), and what no rule explains is a conflict. `--lint N` asks
libtpu's linter of as many kernels that the compiler takes, likewise. Exits 1 where a verdict is wrong, or a conflict is
met.
`--schemas N` judges as many kernels over tables of a schema, with what is assumed of them, and sums of groups that are
carried over programs (`tests/bodies/truth/schemas.py`), and runs each in the interpreter, with tables as assumed. Of
what is refuted every table has to show it; of what is "refuted if", some table.
`--subcores N` judges as many kernels of subcores that tell each other what lies in shared memory, and runs each in
orders drawn by chance (`tests/bodies/random_subcores.py`).
`--gathers N` judges as many kernels of subcores that gather and scatter by lists, and runs each with lists that are as
assumed (`tests/bodies/random_gathers.py`).
`--rings N` judges as many kernels of devices that copy to their neighbours, and runs each in JAX's interpreter with its
detector of races (`tests/bodies/random_rings.py`).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path.insert(0, str(Path(__file__).parents[1]))


class Late(BaseException):
    """One kernel took too long; nothing but the loop over kernels catches it."""


def _late(*_: object) -> None:
    raise Late


class Kept:
    """One line of JSON per kernel, in a file where one is given. what: who was asked."""

    def __init__(self, out: Path | None, what: str) -> None:
        self.what, self.lines = what, None
        self.before: dict[int, dict[str, Any]] = {}
        if out is not None:
            text = out.read_text() if out.exists() else ""
            for line in map(json.loads, filter(None, text.split("\n"))):
                if line["what"] == what:
                    self.before[line["seed"]] = line["found"]
            self.lines = out.open("a")

    def add(self, seed: int, found: dict[str, Any]) -> dict[str, Any]:
        """The same, kept."""
        if self.lines is not None:
            print(json.dumps({"what": self.what, "seed": seed, "found": found}), file=self.lines, flush=True)
        return found


def judged(first: int, many: int, seconds: float, out: Path | None) -> int:
    """Judges kernels and compares with what is true; how many verdicts are wrong."""
    from tests.bodies.truth.compare import Compared, compared
    from tests.bodies.truth.description import shown
    from tests.bodies.truth.generate import kernel

    counts: Counter[tuple[str, str, str]] = Counter()
    unknown: Counter[tuple[str, str]] = Counter()
    wrong = refused = late = 0
    signal.signal(signal.SIGVTALRM, _late)
    start, kept = time.perf_counter(), Kept(out, "judged")
    for seed in range(first, first + many):
        if seed in kept.before:
            found = Compared(**kept.before[seed])
        else:
            signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
            try:
                found = compared(seed)
            except Late:
                late += 1
                print(f"over {seconds:g} s: seed {seed}", flush=True)
                continue
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            kept.add(seed, found.as_dict())
        refused += bool(found.refused)
        for question, verdict in found.verdicts.items():
            counts[question, verdict, found.truth(question)] += 1
            if verdict == "unknown":
                unknown[question, found.kind_of_reason(question)] += 1
        for question, kind in found.disagreements():
            wrong += 1
            print(f"{kind}: {question} of seed {seed}: {found.why.get(question)}; said {found.reasons.get(question)}")
            print(shown(kernel(seed)), flush=True)
    for (question, verdict, truth), count in sorted(counts.items()):
        print(f"{count:6} {question:18} {verdict:9} truth: {truth}")
    for (question, reason), count in unknown.most_common(40):
        print(f"{count:6} {question}: {reason}")
    took = time.perf_counter() - start
    print(f"{many} kernels from seed {first}, {refused} refused by JAX, {late} over time: {wrong} wrong; {took:.0f} s")
    return wrong


def in_forms(first: int, many: int) -> int:
    """Judges kernels in all their forms; how many questions are proved of one and refuted of another."""
    from tests.bodies.forms import every_form
    from tests.bodies.truth.compare import call_of
    from tests.bodies.truth.generate import kernel

    asked: Counter[str] = Counter()
    left: Counter[tuple[str, str]] = Counter()
    contradictions, start = 0, time.perf_counter()
    for begin in range(first, first + many, BATCH):
        made = {str(seed): kernel(seed) for seed in range(begin, min(begin + BATCH, first + many))}
        calls = {name: call_of(one) for name, one in made.items()}
        for found in every_form(calls, {name: len(one.tables) for name, one in made.items()}):
            asked.update(form for form, *_ in found.compared())
            left.update(found.open())
            for text in found.contradictions():
                contradictions += 1
                print(f"contradiction: seed {text}", flush=True)
    for (form, question), count in sorted(left.items()):
        print(f"{count:6} unknown in one form alone: {question}, {form}")
    for form, count in asked.items():
        print(f"{count:6} questions compared: {form}")
    took = time.perf_counter() - start
    print(f"{many} kernels from seed {first} in their forms: {contradictions} contradictions; {took:.0f} s")
    return contradictions


BATCH = 50
"""Kernels of one child: what JAX keeps of each stays small."""


def interpreted(python: str, first: int, many: int, limit: float, out: Path | None) -> int:
    """Runs kernels in the interpreter of a Python; how many conflicts there are."""
    from tests.bodies.truth.oracles import MODES, QUICK, Child, verdict_of_runs

    child, blind, conflicts, asked = Child(python, QUICK), Counter[str](), 0, 0
    start = time.perf_counter()
    try:
        version = child.ask("version", 0, "", limit).get("said")
        kept = Kept(out, f"interpreted by jax {version}")
        for seed in range(first, first + many):
            runs = kept.before.get(seed)
            if runs is None:
                runs = kept.add(seed, {mode: child.ask("one_run", seed, mode, limit) for mode in MODES})
                asked += 1
                if asked % BATCH == 0:
                    child.renew()
            found, hidden = verdict_of_runs(seed, runs)
            blind.update(hidden or ["all is seen" if not found else "a conflict"])
            conflicts += bool(found)
            for text in found:
                print(f"conflict: seed {seed}: {text}", flush=True)
    finally:
        child.close()
    for rule, count in blind.most_common():
        print(f"{count:6} {rule}")
    took = time.perf_counter() - start
    print(f"{many} kernels from seed {first} in the interpreter of jax {version}: {conflicts} conflicts; {took:.0f} s")
    return conflicts


def over_tables(seed: int, many: int, given: argparse.Namespace) -> int:
    """Judges kernels over tables of a schema and runs them in the interpreter; how many verdicts are wrong."""
    from tests.bodies.truth.generate import SCHEMAS

    wrong = judged(SCHEMAS + seed, many, given.seconds, given.out)
    return wrong + interpreted(sys.executable, SCHEMAS + seed, many, given.limit, given.out)


def linted(first: int, many: int, limit: float, out: Path | None) -> int:
    """Asks the compiler's linter of the kernels that it takes; how many conflicts there are."""
    from tests.bodies.truth.oracles import LINTS, TPU, Child, verdict_of_lints

    child, said, conflicts, taken, seed = Child(sys.executable, TPU), Counter[str](), 0, 0, first
    start, kept = time.perf_counter(), Kept(out, "linted")
    try:
        while taken < many:
            answers = kept.before.get(seed)
            if answers is None:
                answers = {}
                for target in LINTS:
                    answers[target] = child.ask("linted", seed, target, limit)
                    if not answers[target].get("lowered"):
                        break
                kept.add(seed, answers)
            if all(answers.get(target, {}).get("lowered") for target in LINTS):
                taken += 1
                found, words = verdict_of_lints(seed, answers)
                said.update(words)
                conflicts += bool(found)
                for text in found:
                    print(f"conflict: seed {seed}: {text}", flush=True)
            seed += 1
            if (seed - first) % BATCH == 0:
                child.renew()
    finally:
        child.close()
    for rule, count in said.most_common():
        print(f"{count:6} {rule}")
    took = time.perf_counter() - start
    print(f"{taken} of {seed - first} kernels from seed {first} at the linter: {conflicts} conflicts; {took:.0f} s")
    return conflicts


def of_subcores(seed: int, count: int) -> int:
    """Judges and runs kernels of subcores; how many verdicts are wrong."""
    from tests.bodies import random_subcores

    chance = random.Random(seed)
    said: Counter[str] = Counter()
    found = 0
    for _ in range(count):
        one = random_subcores.drawn(chance)
        verdict, why = random_subcores.wrong(one)
        said[verdict] += 1
        if why:
            found += 1
            print(f"WRONG {one}: {verdict}, and {why}", flush=True)
    print(f"{count} kernels of subcores from seed {seed}: {found} wrong; {dict(said)}")
    return found


def of_gathers(seed: int, count: int) -> int:
    """Judges and runs kernels that gather and scatter; how many verdicts are wrong."""
    from tests.bodies import random_gathers

    said: Counter[str] = Counter()
    found = 0
    for k in range(seed, seed + count):
        one = random_gathers.drawn(random.Random(k))
        verdict, why = random_gathers.wrong(one, k)
        said[verdict] += 1
        if why:
            found += 1
            print(f"WRONG seed {k}: {one}: {verdict}, and {why}", flush=True)
    print(f"{count} kernels that gather and scatter from seed {seed}: {found} wrong; {dict(said)}")
    return found


def of_rings(seed: int, count: int, limit: float, out: Path | None) -> int:
    """Judges and runs kernels of rings of devices; how many verdicts are wrong. out: what it has is not asked again."""
    from tests.bodies import random_rings

    said: Counter[str] = Counter()
    unseen: Counter[str] = Counter()
    found = 0
    kept = Kept(out, "rings")
    seeds = range(seed, seed + count)
    before = [kept.before[k] for k in seeds if k in kept.before]
    asked = random_rings.asked([k for k in seeds if k not in kept.before], limit)
    for one in chain(before, (kept.add(new["seed"], new) for new in asked)):
        refuted = sorted(question for question, verdict in one["said"].items() if verdict == "refuted")
        said[", ".join(refuted) or ("unknown" if "unknown" in one["said"].values() else "proved whole")] += 1
        unseen.update(random_rings.hidden(one))
        why = random_rings.wrong(one)
        if why:
            found += 1
            print(f"WRONG seed {one['seed']}: {why}: {json.dumps(one)}", flush=True)
    for what, many in said.most_common():
        print(f"{many:6} {what}")
    for question, many in unseen.most_common():
        print(f"{many:6} refuted, and the interpreter does not show it: {question}")
    print(f"{said.total()} kernels of rings from seed {seed}: {found} wrong")
    return found


def main() -> int:
    """All that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random", type=int, default=0, metavar="N", help="kernels to judge")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the first one")
    parser.add_argument("--out", type=Path, metavar="FILE", help="one line of JSON per kernel, to go on from")
    parser.add_argument("--seconds", type=float, default=60, metavar="T", help="of CPU for one kernel at most")
    parser.add_argument("--forms", type=int, default=0, metavar="N", help="kernels to judge in all their forms")
    parser.add_argument("--interpret", type=int, default=0, metavar="N", help="kernels to run in the interpreter")
    parser.add_argument("--python", action="append", default=[], metavar="PATH", help="whose JAX interprets")
    parser.add_argument("--lint", type=int, default=0, metavar="N", help="kernels to show to the compiler's linter")
    parser.add_argument(
        "--limit", type=float, default=60, metavar="T", help="seconds of CPU that a child may take for one run"
    )
    parser.add_argument("--schemas", type=int, default=0, metavar="N", help="kernels over tables of a schema, likewise")
    parser.add_argument("--gathers", type=int, default=0, metavar="N", help="kernels by lists to judge and to run")
    parser.add_argument("--subcores", type=int, default=0, metavar="N", help="kernels of subcores to judge and to run")
    parser.add_argument("--rings", type=int, default=0, metavar="N", help="kernels of rings of devices, likewise")
    given = parser.parse_args()
    wrong = 0
    others = (given.interpret, given.lint, given.forms, given.schemas, given.subcores, given.gathers, given.rings)
    if given.random or not any(others):
        wrong += judged(given.seed, given.random or 200, given.seconds, given.out)
    if given.forms:
        wrong += in_forms(given.seed, given.forms)
    if given.interpret:
        for python in given.python or [sys.executable]:
            wrong += interpreted(python, given.seed, given.interpret, given.limit, given.out)
    if given.schemas:
        wrong += over_tables(given.seed, given.schemas, given)
    if given.lint:
        wrong += linted(given.seed, given.lint, given.limit, given.out)
    if given.gathers:
        wrong += of_gathers(given.seed, given.gathers)
    if given.subcores:
        wrong += of_subcores(given.seed, given.subcores)
    if given.rings:
        wrong += of_rings(given.seed, given.rings, given.limit, given.out)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
