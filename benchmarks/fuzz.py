"""Random questions about layouts, kernels, texts and bodies: `python benchmarks/fuzz.py --questions 100000 --seed 1`.

layouts: every property of layouts of every language, asked of all engines in turn or of one of them alone, against
  looking at every element (`tests/questions/questions_at_random.py`).
kernels: rules of kernels with tables, paddings, bounded slices and aliases, against a walk over programs for every
  table there is (`tests/properties/kernels_at_random.py`).
texts: texts of every grammar, often broken; reading one gives a value or a LayoutError, in bounded time and memory
  (`tests/questions/texts_at_random.py`).
bodies: kernel bodies that run in JAX's interpreter (`benchmarks/bodies.py`), where jax is installed.

What contradicts the definitions, an error of ours, or an input that is refused is printed with what makes it again
(`--only SUBJECT --seed S --first K --questions 1`), the shortest one last, and the exit code is then 1. An unknown
contradicts nothing; how many there are is printed. A finding is kept as a case beside the tests of what it is about, a
text in FOUND of `tests/questions/test_fuzz.py`. The question being asked stands in a file that the first line names:
one that does not end can be asked again alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

SHARES = {"layouts": 60, "kernels": 15, "texts": 25}
"""Of a hundred questions, where no subject is named. Bodies, which take seconds each, are asked as well."""
PROGRESS = 10_000
"""Questions after which the count so far is printed: a run that is stopped counts as far as it came."""
BODIES = 10_000
"""Questions for which one body is run."""


def asked(subject: str, seed: int, number: int) -> tuple[str, str, str, str]:
    """(kind, engine, verdict, what is wrong or "") of one question."""
    if subject == "kernels":
        from tests.properties import kernels_at_random

        name, verdict, wrong = kernels_at_random.ask(seed, number)
        return f"kernels, {name}", "", verdict, wrong
    if subject == "texts":
        from tests.questions import texts_at_random

        kind, verdict, wrong = texts_at_random.ask(seed, number)
        return f"texts, {kind}", "", verdict, wrong
    from tests.questions import questions_at_random

    found = questions_at_random.ask(seed, number)
    asked_, verdict = found.question, "error" if found.found is None else found.found.verdict.value
    language = asked_.layouts[0].language + (" with sizes" if asked_.symbols() else "")
    return f"{language}, {asked_.property}", found.engine, verdict, str(found) if found.wrong else ""


def bodies(seed: int, count: int) -> int:
    """How many bodies are judged wrongly: 0, or 1 for some."""
    if importlib.util.find_spec("jax") is None:
        print("bodies: skipped, jax is not installed")
        return 0
    command = [sys.executable, str(HERE / "bodies.py"), "--random", str(count), "--seed", str(seed * 1000)]
    done = subprocess.run(command, capture_output=True, text=True)
    print(f"bodies: {done.stdout.rstrip()}")
    if done.returncode:
        print(done.stderr)
    return min(1, done.returncode)


def main() -> int:
    """Ask, count, print; 1 where anything disagrees."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first question")
    parser.add_argument("--only", choices=(*SHARES, "bodies"), help="questions about this alone")
    parser.add_argument("--shown", type=int, default=20, help="disagreements printed in full")
    options = parser.parse_args()
    if options.only == "bodies":
        return bodies(options.seed, options.questions)
    whole = [subject for subject, share in SHARES.items() for _ in range(share)]
    counts: Counter[tuple[str, str]] = Counter()
    engines: Counter[tuple[str, str]] = Counter()
    findings: list[str] = []
    start = time.perf_counter()
    with tempfile.NamedTemporaryFile("w", prefix=f"fuzz-{options.seed}-", suffix=".txt") as now:
        print(f"the question being asked stands in {now.name}", flush=True)
        for number in range(options.first, options.first + options.questions):
            # 41 has no factor with 100 in common: subjects take turns, and each number has always the same
            subject = options.only or whole[number * 41 % 100]
            again = f"--only {subject} --seed {options.seed} --first {number} --questions 1"
            now.seek(0)
            print(again, file=now, flush=True)
            now.truncate()
            kind, engine, verdict, wrong = asked(subject, options.seed, number)
            counts[kind, verdict] += 1
            if engine:
                engines[engine, verdict] += 1
            if wrong:
                findings.append(f"{again}: {wrong}")
                if len(findings) <= options.shown:
                    print(findings[-1], flush=True)
            done = number + 1 - options.first
            if done % PROGRESS == 0 and done < options.questions:
                unknown = sum(count for (_, verdict), count in counts.items() if verdict == "unknown")
                print(
                    f"seed {options.seed}, first {options.first}: {done} questions so far, "
                    f"{len(findings)} disagreements, {unknown} unknown, {time.perf_counter() - start:.0f} s",
                    flush=True,
                )
    seconds = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    verdicts = ("proved", "refuted", "unknown", "error")
    asked_about = "question (a text that is read counts as proved, refused as refuted)"
    for title, table in ((asked_about, counts), ("engine", engines)):
        if table:
            print(f"\n{title}\n{'':<38}" + "".join(f"{verdict:>9}" for verdict in verdicts))
        for key in sorted({key for key, _ in table}):
            print(f"{key:<38}" + "".join(f"{table[key, verdict]:>9}" for verdict in verdicts))
    count = 0 if options.only else options.questions // BODIES
    failed = bodies(options.seed, count) if count else 0
    if findings:
        print(f"\nthe shortest: {min(findings, key=len)}")
    print(
        f"\nseed {options.seed}: {options.questions} questions, {len(findings) + failed} disagreements, "
        f"{seconds:.0f} s, at most {memory:.0f} MB"
    )
    return 1 if findings or failed else 0


if __name__ == "__main__":
    sys.exit(main())
