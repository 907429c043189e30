"""What is at random places of random layouts of all languages, against looking at every element.

`python benchmarks/inverse.py --questions 20000` asks `lp.inverse`, and says what disagrees with the seed that makes it
again; the exit code is then 1. Of each layout drawn it also asks for every place that an element has: `injective` is
proved exactly where each of them gives one element back. And it evaluates the text of the inverse's formula, of another
layout, perhaps with size symbols, at every place.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.questions.places_at_random import ask, formula, identity


def main() -> int:
    """Ask, count, print; 1 where anything disagrees."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--questions", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    wrong = asked = back = formulas = 0
    start = time.perf_counter()
    number = 0
    while asked < options.questions:
        for each in ask(options.seed, number):
            asked += 1
            counts[each.language, each.found.what if each.found else "unknown"] += 1
            if each.wrong:
                wrong += 1
                print(
                    f"seed {options.seed}, layout {number}: {each.text} at {dict(each.place)}: {each.wrong}", flush=True
                )
        problem, places = identity(options.seed, number)
        wrong_formula, there = formula(options.seed, number)
        back, formulas = back + places, formulas + there
        for words in filter(None, (problem, wrong_formula)):
            wrong += 1
            print(f"seed {options.seed}, layout {number}: {words}", flush=True)
        number += 1
    words = ("element", "elements", "padding", "hole", "outside", "unknown")
    print(f"\n{'':<12}" + "".join(f"{word:>10}" for word in words))
    for language in sorted({language for language, _ in counts}):
        print(f"{language:<12}" + "".join(f"{counts[language, word]:>10}" for word in words))
    seconds = time.perf_counter() - start
    print(
        f"\nseed {options.seed}: {asked} questions, {back} places there and back, {formulas} formulas, "
        f"{wrong} disagreements, {seconds:.0f} s"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
