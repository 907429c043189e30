"""A slice of `benchmarks/fuzz.py`: random questions of all languages, kernels and texts against their definitions."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import layoutproof as lp
from layoutproof.core.result import Verdict
from layoutproof.pallas.records import read_records
from tests.properties import kernels_at_random
from tests.questions import texts_at_random
from tests.questions.questions_at_random import LANGUAGES, ask, disagreement

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
OTHER = {Verdict.PROVED: Verdict.REFUTED, Verdict.REFUTED: Verdict.PROVED}


FOUND = (
    ("expression", "(-((1) ^ (8))) // cdiv(M - M, 10000000000000000000)"),
    ("where", "(M) % select(5 < 256, 0, 32) <= 7 and 10000000000000000000 < min(2, 2)"),
    ("where", "7 > N and select(10000000000000000000 < 0, 0, 10000000000000000000) % min(M, 0) >= cdiv(M, 128)"),
    ("where", "N*M*N %256128 == 0 and (N == 1 or M == 1)"),
    ("comment", "# layoutproof: accept[" * 20_000),
    ("baseline", f'{{"version": {"[" * 9_000}'),
    ("comment", f"y = call(x)  # layoutproof: accept[kernel] why{' ' * 40_000}not"),
)
"""(kind, text): texts that once were read wrongly. What the fuzz finds is kept here, or beside what it is about."""


@pytest.mark.parametrize(("kind", "text"), FOUND)
def test_what_was_found(kind: str, text: str) -> None:
    assert texts_at_random.answer(kind, text) == ("refuted" if kind == "baseline" else "proved", "")


def test_places_below_the_range_are_outside() -> None:
    """Counted by rank they were inside, which made two holes too few."""
    found = lp.ask("covers", "(i < 2) -> ((i // 1), (min(i, -2) // 1), i) in [8, 2, 9]")
    assert (found.verdict, found.figures["holes"]) == (Verdict.REFUTED, 8 * 2 * 9)


def test_an_extent_that_may_be_below_1_is_not_guessed() -> None:
    """At M = 1 the extent is 1, and M - 1 is 0: what was proved for all sizes was wrong at that one."""
    with pytest.raises(lp.LayoutError, match=r"largest coordinate M - 2 is below 0 .* within \(..@m\)"):
        lp.ask("covers", "S[(M,2):(1@m,1@m)] + -2@m")
    assert lp.ask("covers", "S[(1,2):(1@m,1@m)] + -2@m").verdict is Verdict.REFUTED


def test_a_record_may_state_any_number_of_bytes() -> None:
    """More than a float holds was an OverflowError in the words of a claim."""
    record = json.loads(texts_at_random.compiled())
    record |= {"padded": 10**20, "unpadded": 5}
    record["padding"][0]["bytes"] = 10**400
    assert texts_at_random.answer("compiled", json.dumps(record)) == ("proved", "")


def test_one_place_at_a_size_is_no_set_of_numbers() -> None:
    """A stride of 0 leaves the offset alone, a size without digits: looking for conditions was an AttributeError."""
    found = lp.ask("covers", "s8[M] strides (0) offset N in 35")
    assert (found.verdict, found.decided_by) == (Verdict.REFUTED, "isl")


def test_a_record_with_a_broken_body_is_read(tmp_path: Path) -> None:
    """Its kernel is judged; of its body the reason says what is wrong."""
    body = {**texts_at_random.RECORD["body"], "jaxprs": [{"in": [0, 0]}]}
    text = json.dumps({**texts_at_random.RECORD, "body": body})
    (tmp_path / "calls.jsonl").write_text(text)
    assert [call.name for call in read_records(tmp_path / "calls.jsonl")] == ["copy"]
    texts_at_random.read_record(text)


@pytest.mark.commit
def test_a_slice_of_texts() -> None:
    """All grammars are met, both read and refused, and nothing but a LayoutError comes of any."""
    met: Counter[tuple[str, str]] = Counter()
    for number in range(1500):
        kind, verdict, wrong = texts_at_random.ask(20261122, number)
        assert not wrong, (number, wrong)
        met[kind, verdict] += 1
    for kind in texts_at_random.KINDS:
        assert met[kind, "proved"] > 3, kind


def test_a_reader_that_fails_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of a library, a text that is printed as another one, and time that passes are each wrong."""

    def fails(text: str) -> None:
        raise KeyError(text)

    for reader, word in ((fails, "KeyError"), (lambda text: None, "0.0 s")):
        monkeypatch.setattr(texts_at_random, "READERS", dict.fromkeys(texts_at_random.READERS, reader))
        monkeypatch.setattr(texts_at_random, "read_layout", reader)
        monkeypatch.setattr(texts_at_random, "SECONDS", -1.0 if word == "0.0 s" else 5.0)
        wrong = texts_at_random.ask(1, 1)[2]
        assert word in wrong


@pytest.mark.commit
def test_a_slice_of_kernels() -> None:
    """Nothing contradicts the walk, and every rule has proved and refuted."""
    met: Counter[tuple[str, str]] = Counter()
    for number in range(150):
        name, verdict, wrong = kernels_at_random.ask(20261122, number)
        assert not wrong, (number, wrong)
        met[name, verdict] += 1
    for name in kernels_at_random.PROPERTIES:
        assert met[name, "proved"] > 3, name
    assert sum(count for (_, verdict), count in met.items() if verdict == "refuted") > 15


def test_a_wrong_verdict_of_a_kernel_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other verdict contradicts the walk."""
    judge = kernels_at_random.judge

    def other(k: object, **how: object) -> list[object]:
        return [replace(f, verdict=OTHER.get(f.verdict, f.verdict)) for f in judge(k, **how)]  # type: ignore[arg-type]

    monkeypatch.setattr(kernels_at_random, "judge", other)
    asked = [kernels_at_random.ask(20261122, number) for number in range(60)]
    assert sum(bool(wrong) for _, _, wrong in asked) > 20


@pytest.mark.commit
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


def test_a_run_that_is_stopped_has_counted_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count is printed as the run goes, at once, not only at its end."""
    program = (
        "import sys, fuzz; fuzz.PROGRESS = 10\n"
        "def stopped(subject, seed, number, ask=fuzz.asked):\n"
        "    return sys.exit('stopped') if number == 125 else ask(subject, seed, number)\n"
        "fuzz.asked = stopped; fuzz.main()"
    )
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "benchmarks"))
    options = ["--only", "texts", "--first", "100", "--questions", "60", "--seed", "3"]
    command = [sys.executable, "-c", program, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr.strip()) == (1, "stopped")
    counts = [line.partition(", 0 unknown")[0] for line in done.stdout.splitlines()]
    assert counts[1:] == [f"seed 3, first 100: {done} questions so far, 0 disagreements" for done in (10, 20)]


def test_a_question_that_does_not_end_names_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever finds the run stuck reads in a file how to ask that question alone; killed, it leaves the file behind."""
    program = (
        "import os, signal, fuzz\n"
        "def killed(subject, seed, number, ask=fuzz.asked):\n"
        "    return os.kill(os.getpid(), signal.SIGKILL) if number == 104 else ask(subject, seed, number)\n"
        "fuzz.asked = killed; fuzz.main()"
    )
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "benchmarks"))
    options = ["--only", "texts", "--first", "98", "--questions", "60", "--seed", "3"]
    command = [sys.executable, "-c", program, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    asked = Path(done.stdout.splitlines()[0].removeprefix("the question being asked stands in "))
    try:
        assert asked.read_text() == "--only texts --seed 3 --first 104 --questions 1\n"
    finally:
        asked.unlink()
