"""A slice of `benchmarks/fuzz.py`: random questions of all languages against looking at every element."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

from layoutproof.core.result import Verdict
from tests.questions.questions_at_random import LANGUAGES, ask, disagreement

ROOT = Path(__file__).resolve().parents[2]
OTHER = {Verdict.PROVED: Verdict.REFUTED, Verdict.REFUTED: Verdict.PROVED}


def test_a_slice() -> None:
    """Nothing contradicts the definitions; all languages and verdicts are met, and all engines together know all."""
    met: Counter[tuple[str, Verdict]] = Counter()
    for number in range(600):
        asked = ask(20261122, number)
        assert not asked.wrong, (number, str(asked))
        assert asked.found is not None
        met[asked.question.layouts[0].language, asked.found.verdict] += 1
        vacuous = asked.found.reason.startswith("vacuous")
        if asked.engine == "all" and not asked.question.symbols() and not vacuous:
            assert asked.found.verdict is not Verdict.UNKNOWN, str(asked)
    assert {language for language, _ in met} == set(LANGUAGES)
    for language in LANGUAGES:
        assert met[language, Verdict.PROVED] > 10
        assert met[language, Verdict.REFUTED] > 3


def test_wrong_answers_are_noticed() -> None:
    """The other verdict, and another counterexample, contradict what looking at every element says."""
    noticed = 0
    for number in range(120):
        asked = ask(7, number)
        found = asked.found
        if found is None or found.verdict is Verdict.UNKNOWN or asked.question.symbols():
            continue
        assert disagreement(asked.question, replace(found, verdict=OTHER[found.verdict]))
        point = dict(found.counterexample or {})
        name = next(iter(point), "")
        if name and asked.engine == "all":
            point[name] = tuple(entry + 1 for entry in point[name]) or (0,)
            assert disagreement(asked.question, replace(found, counterexample=point)) or asked.question.property in (
                "bijective",
                "padding",
                "covers",
                "bitcast",
                "owned",
            )
        noticed += 1
    assert noticed > 60


def test_the_command() -> None:
    """It prints counts by language, property and engine, and says 0 where nothing disagrees."""
    command = [sys.executable, str(ROOT / "benchmarks" / "fuzz.py"), "--questions", "40", "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "seed 3: 40 questions, 0 disagreements" in done.stdout
