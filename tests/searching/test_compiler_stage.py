"""What a search makes of the compiler's reports: who is asked, in what order, and how its estimates rank."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from layoutproof.core.errors import Undecided
from layoutproof.pallas.compiled import Compiled, Estimate, Part, Vmem
from layoutproof.searching import compiler_stage
from layoutproof.searching.compiler_stage import accepted, compared_by, cycles, no_estimate, order, reports, vmem, words
from tests.said import stretch

YES = Compiled("k", "v5e", estimate=Estimate(1000, at_least=400))
NO = Compiled("k", "v5e", refused="JaxRuntimeError: too large")
UNKNOWN = Compiled("k", "v5e", problem="it ended by SIGABRT")
NONE = Compiled("k", "v5e", estimate=Estimate(reason="the grid is known at run time only"))


def of(many: int | None, least: int = 0) -> tuple[Compiled, ...]:
    return (Compiled("k", "v5e", estimate=Estimate(many, "" if many else "no", at_least=least)),)


@pytest.mark.parametrize(
    ("report", "taken", "why"),
    [
        ((YES,), True, ""),
        ((YES, NONE), True, ""),
        ((YES, NO), False, "too large"),
        ((UNKNOWN, NO), False, "too large"),
        ((YES, UNKNOWN), None, "it ended by SIGABRT"),
        ((), None, ""),
    ],
)
def test_a_candidate_is_taken_where_all_its_kernels_are(
    report: tuple[Compiled, ...], taken: bool | None, why: str
) -> None:
    assert (accepted(report), words(report)) == (taken, why)


def test_the_traffic_counts_where_it_takes_longer() -> None:
    assert cycles((YES,)) == 1000
    assert cycles((YES, *of(300, least=700))) == 1700
    assert cycles((YES, NONE)) is None
    assert no_estimate((YES, NONE)) == "the grid is known at run time only"
    assert (cycles(()), no_estimate((YES,))) == (None, "")


def test_within_five_percent_is_a_tie_with_the_first_of_its_rank() -> None:
    # 1102 is within 5 % of 1050, and not of 1000: ties do not run on
    places = order([of(1102), of(1050), of(None), of(1000), of(1103)])
    assert [(place.at, place.rank, place.tied) for place in places] == [
        (3, 1, True),
        (1, 1, True),
        (0, 3, True),
        (4, 3, True),
    ]
    assert [(place.rank, place.tied) for place in order([of(1000), of(1051)])] == [(1, False), (2, False)]
    assert order([of(None)]) == ()


def test_what_is_compared_is_said() -> None:
    for target in ("v5e", "v5p", "v6e", "7x"):
        assert "HBM" in compared_by(target)
    assert stretch("searching.cycles_alone", target="v4") in compared_by("v4")


def test_exact_memory_needs_a_report_of_every_kernel() -> None:
    held = Compiled("k", "v5e", vmem=Vmem(4096, 1 << 24, (Part("spill", "", 4096),)))
    assert (vmem((held,)), vmem((held, YES)), vmem(())) == (4096, None, None)


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_nobody_is_asked_once_enough_are_taken(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    said: dict[str, Any] = {"a": NO, "b": YES, "c": UNKNOWN, "d": YES}
    seen: list[str] = []
    lock = threading.Lock()

    def compiled(given: Sequence[str], progress: object, stop: object) -> Iterator[Compiled]:
        for name in given:
            with lock:
                seen.append(name)
            yield said.get(name, YES)

    monkeypatch.setattr(compiler_stage, "compiled", compiled)
    monkeypatch.setattr(compiler_stage, "cores", lambda: jobs)
    monkeypatch.setattr("layoutproof.compiler.libtpu.missing", lambda library="": "")
    candidates: list[Any] = [lambda name=name: [name] for name in "abcdefghijkl"]
    found = reports(candidates, 2)
    # in order and without a gap; as many more as were asked at the same time
    assert [accepted(report) for report in found[:4]] == [False, True, None, True]
    assert 4 <= len(found) == len(seen) <= 4 + jobs - 1
    assert jobs > 1 or seen == list("abcd")


def test_a_compiler_that_is_missing_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("layoutproof.compiler.libtpu.missing", lambda library="": "no libtpu")
    with pytest.raises(Undecided, match=re.escape(stretch("searching.compiler_missing", missing="no libtpu"))):
        reports([list], 1)


def asked_with(estimates: Sequence[int | None], monkeypatch: pytest.MonkeyPatch, best: int = 2) -> Any:
    """The answer of a search in which the compiler takes every candidate and estimates the first ones so."""
    pytest.importorskip("jax", reason="JAX is not installed")
    from layoutproof.searching.searched import Searched
    from layoutproof.searching.solve import solve
    from layoutproof.searching.traced_file import read
    from layoutproof.specs.positions import read_yaml

    def said(candidates: Sequence[object], enough: int, **asking: object) -> list[tuple[Compiled, ...]]:
        return [of(many) for many in estimates[: min(enough, len(candidates))]]

    monkeypatch.setattr("layoutproof.searching.traced_file.reports", said)
    text = "target: v5e\ntrace: traced_functions.py:copy\nargs: ['f32[4096,128]']\n"
    text += "tune: {rows: {from: 8, to: 2048, powers_of: 2}}\n"
    problem = read(read_yaml(text, "f.yaml"), (Path(__file__).parent / "f.yaml").as_posix())
    return Searched(solve(problem, best, compiling=True))


def test_the_compilers_estimates_say_which_are_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = asked_with([3000, 1040, 1000, 2000, *[5000] * 8], monkeypatch)
    by_model = [one.values for one in answered.result.found]
    assert [one.values for one in answered.answer.rows] == [by_model[2], by_model[1]]
    rows = [line.split()[-4:] for line in answered.text().splitlines()[3:5]]
    assert rows == [["1000", "1", "tie", "accepted"], ["1040", "1", "tie", "accepted"]]
    best = answered.as_json()["best"]
    assert [(row["values"], row["estimate"]["cycles"]) for row in best] == [(by_model[2], 1000), (by_model[1], 1040)]


def test_without_an_estimate_of_each_the_model_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = asked_with([3000, None, *[1000] * 10], monkeypatch)
    assert [one.values for one in answered.answer.rows] == [one.values for one in answered.result.found[:2]]
    assert "no estimate     row 2: no" in answered.text()
