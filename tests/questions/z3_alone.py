"""Z3 alone against looking at every element: the named properties of random small layouts of every language.

`python -m tests.questions.z3_alone SEED COUNT [PARTS PART]` asks so many questions; it exits 1 where one is wrong.
"""

from __future__ import annotations

import random
import sys
from collections import Counter

import layoutproof as lp
from layoutproof.core.result import Verdict
from tests.questions.questions_at_random import LANGUAGES, Question, disagreement

NAMED = ("bijective", "injective", "in_bounds", "padding", "replicas_distinct", "covers")
"""One-to-one onto what is no padding, padding's bounds, blocks out of bounds, replicas that overlap, holes."""


def question(rng: random.Random) -> Question:
    """One of the named properties of a random layout; mostly of known sizes, and of `covers` more often."""
    while True:
        draw, properties, with_sizes = LANGUAGES[rng.choice(list(LANGUAGES))]
        names = [name for name in NAMED if name in properties] + ["covers"] * 2 * ("covers" in properties)
        if not names:
            continue
        name = rng.choice(names)
        first = draw(rng, symbolic=with_sizes and rng.random() < 0.15 and name != "padding")
        where = rng.choice(["{} % 2 == 0", "{} >= 3", "{} <= 3"]).format(first.symbols[0]) if first.symbols else None
        return Question(name, (first,), where if rng.random() < 0.5 else None)


def ask(seed: int, number: int) -> tuple[Question, Verdict, str]:
    """The question with this number of this seed, Z3's verdict, and what is wrong with it, or ""."""
    asked = question(random.Random(f"{seed}/{number}"))
    found = lp.ask(asked.property, asked.layouts[0].text, where=asked.where, engine="smt")
    return asked, found.verdict, disagreement(asked, found, alone=True)


def main(arguments: list[str]) -> int:
    """Verdicts by property and language; every disagreement in full."""
    seed, count, parts, part = (*map(int, arguments), *(1, 0)[len(arguments) - 2 :])[:4]
    seen: Counter[str] = Counter()
    wrong = 0
    for number in range(part, count, parts):
        asked, verdict, why = ask(seed, number)
        seen[f"{asked.property} {verdict.value}"] += 1
        if why:
            wrong += 1
            print(f"{number}: {asked.property} {asked.layouts[0].text} where {asked.where}: {why}", flush=True)
        if verdict is Verdict.UNKNOWN:
            print(f"{number}: unknown: {asked.property} {asked.layouts[0].text} where {asked.where}", flush=True)
    print(*(f"{name}: {many}" for name, many in sorted(seen.items())), f"wrong: {wrong}", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
