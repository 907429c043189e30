"""Random questions of all languages against looking at every element: `python benchmarks/fuzz.py --questions 100000`.

Each question is asked of all engines in turn or of one of them alone, with or without a second to confirm. An answer
that contradicts the definitions in `tests/questions/questions_at_random.py`, an error of ours, or an input that is
refused is printed with the seed that makes it again (`--seed S --first K --questions 1`), and the exit code is then 1.
An unknown contradicts nothing; how many there are is printed.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.questions.questions_at_random import ask


def main() -> int:
    """Ask, count, print; 1 where anything disagrees."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first question")
    parser.add_argument("--shown", type=int, default=20, help="disagreements printed in full")
    options = parser.parse_args()
    counts: Counter[tuple[str, ...]] = Counter()
    engines: Counter[tuple[str, ...]] = Counter()
    findings = 0
    start = time.perf_counter()
    for number in range(options.first, options.first + options.questions):
        asked = ask(options.seed, number)
        question, verdict = asked.question, "error" if asked.found is None else asked.found.verdict.value
        language = question.layouts[0].language + (" with sizes" if question.symbols() else "")
        counts[language, question.property, verdict] += 1
        engines[asked.engine, verdict] += 1
        if asked.wrong:
            findings += 1
            if findings <= options.shown:
                print(f"seed {options.seed}, question {number}: {asked}", flush=True)
    seconds = time.perf_counter() - start
    verdicts = ("proved", "refuted", "unknown", "error")
    for title, table in (("language, property", counts), ("engine", engines)):
        print(f"\n{title:<38}" + "".join(f"{verdict:>9}" for verdict in verdicts))
        for key in sorted({key[:-1] for key in table}):
            print(f"{', '.join(key):<38}" + "".join(f"{table[(*key, verdict)]:>9}" for verdict in verdicts))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"\nseed {options.seed}: {options.questions} questions, {findings} disagreements, {seconds:.0f} s, "
        f"at most {memory:.0f} MB"
    )
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
