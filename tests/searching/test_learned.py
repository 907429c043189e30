"""The model's correction by the compiler's cycles: exact where they are a sum of its terms, and honest where not."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.mosaic.ask import CompilerQuestion
from layoutproof.pallas.compiled import Compiled, Estimate
from layoutproof.searching import traced_file
from layoutproof.searching.compiler_stage import Report
from layoutproof.searching.cost import Machine
from layoutproof.searching.learned import LEAST, SHOWN, TRIED, Fitted, correction, learned, terms
from layoutproof.searching.searched import Searched
from layoutproof.searching.solve import solve
from layoutproof.searching.traced_file import read
from layoutproof.specs.positions import read_yaml

HERE = Path(__file__).parent
RATES = Machine("v5e", CHIPS["v5e"].bandwidth, CHIPS["v5e"].peak(16, True), 350_000)


class Candidate:
    def __init__(self, number: int, moved: int, flops: int, steps: int) -> None:
        self.values = {"b": number}
        self.figures = {"time": moved, "bytes": moved, "flops": flops, "carried": 0, "steps": steps}


def drawn(seed: int, many: int) -> list[Candidate]:
    take = random.Random(seed)
    return [
        Candidate(k, take.randint(1, 50) << 20, take.randint(0, 90) << 30, take.randint(1, 2000)) for k in range(many)
    ]


def report(cycles: int | None, least: int = 0, refused: str = "") -> Report:
    return (Compiled("k", "v5e", refused=refused, estimate=Estimate(cycles, "" if cycles else "no", at_least=least)),)


@pytest.mark.parametrize("seed", range(8))
def test_what_is_a_sum_of_the_terms_is_found(seed: int) -> None:
    take = random.Random(seed)
    weights = [take.choice([0.0, take.uniform(1e-4, 1e-2)]) for _ in range(2)]
    weights.append(take.choice([0.0, take.uniform(10, 900)]))
    weights[seed % 3] = weights[seed % 3] or 0.01

    def cycles(one: Candidate) -> int:
        return 1 + round(sum(w * t for w, t in zip(weights, terms(one.figures, RATES), strict=True)))

    compiled, rest = drawn(seed, 24), drawn(seed + 100, 20)
    found = learned([(one, report(cycles(one))) for one in compiled], rest, RATES, lambda one: True)
    assert found is not None
    assert found.correction.worst < 2
    assert all(weight >= 0 for weight in found.correction.weights)
    for one in rest:
        of = terms(one.figures, RATES)
        assert found.correction.cycles(of, 0) == pytest.approx(cycles(one), rel=0.02, abs=2)


def test_too_few_cycles_say_nothing() -> None:
    compiled = drawn(0, LEAST)
    answers = [report(1000)] * (LEAST - 1) + [report(None)]
    assert learned([*zip(compiled, answers, strict=True)], [], RATES, lambda one: True) is None
    # a refusal has no cycles, and a candidate of two kernels needs those of both
    answers[-1] = report(1000, refused="no room")
    assert learned([*zip(compiled, answers, strict=True)], [], RATES, lambda one: True) is None
    answers[-1] = (*report(1000), *report(None))
    assert learned([*zip(compiled, answers, strict=True)], [], RATES, lambda one: True) is None
    answers[-1] = report(1000)
    assert learned([*zip(compiled, answers, strict=True)], [], RATES, lambda one: True) is not None


def test_one_is_left_out_for_its_error() -> None:
    # nothing but the odd one says that there is something beside the steps
    rows = [Fitted((0.0, 0.0, float(steps)), 100 * steps, 0) for steps in (10, 20, 30, 40, 50)]
    rows.append(Fitted((0.0, 0.0, 60.0), 12_000, 0))
    found = correction(rows)
    assert found is not None
    assert found.errors[-1] == pytest.approx(50)
    assert found.worst == max(found.errors)


def test_a_prediction_is_at_least_what_traffic_needs() -> None:
    compiled = [Candidate(k, 1 << 20, 0, steps) for k, steps in enumerate((1, 2, 3, 4, 5, 6))]
    answers = [report(100 * one.figures["steps"], least=1280) for one in compiled]
    large = Candidate(9, 1 << 30, 0, 1)
    found = learned([*zip(compiled, answers, strict=True)], [large], RATES, lambda one: True)
    assert found is not None
    assert found.fewest == 1280
    ((_, cycles),) = found.predicted
    clock = CHIPS["v5e"].bf16 / (2 * CHIPS["v5e"].multiplies)
    assert cycles == int((1 << 30) / CHIPS["v5e"].bandwidth * clock)


def test_the_best_of_the_legal_ones_are_predicted() -> None:
    compiled = [Candidate(k, 0, 0, steps) for k, steps in enumerate((10, 20, 30, 40, 50, 60))]
    rest = [Candidate(100 + k, 0, 0, 70 + k) for k in range(2 * TRIED)]
    asked: list[int] = []

    def legal(one: Candidate) -> bool:
        asked.append(one.values["b"])
        return one.values["b"] % 2 == 1

    answers = [(one, report(100 * one.figures["steps"])) for one in compiled]
    found = learned(answers, rest[::-1], RATES, legal)
    assert found is not None
    assert found.predicted == tuple(({"b": 101 + 2 * k}, 7100 + 200 * k) for k in range(SHOWN))
    assert asked == [100 + k for k in range(2 * SHOWN)]
    found = learned(answers, rest, RATES, lambda one: one.values["b"] >= 100 + TRIED)
    assert found is not None
    assert found.predicted == ()


@pytest.mark.slow
def test_a_search_ranks_what_was_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax", reason="JAX is not installed")

    def says(
        candidates: Sequence[Callable[[], Sequence[CompilerQuestion]]], enough: int, **asking: object
    ) -> list[Report]:
        found = []
        for ask in candidates[:enough]:
            (question,) = ask()
            rows, columns = question.kernel.grid
            found.append(report(700 * int(rows) * int(columns)))
        return found

    monkeypatch.setattr(traced_file, "reports", says)
    text = """\
target: v5e
trace: traced_functions.py:copy
args: ["f32[4096,512]"]
tune: {rows: [8, 16, 32, 64, 128, 256, 512, 1000], columns: [128, 256, 512]}
headroom: 0%
confirm: compiler
"""
    answered = Searched(solve(read(read_yaml(text, "f.yaml"), (HERE / "f.yaml").as_posix()), best=6))
    of = answered.result.enumerated.learned
    assert of is not None
    assert of.compiled == 6
    compiled = [one.values for one in answered.result.found]
    steps = {(row["rows"], row["columns"]): 4096 // row["rows"] * (512 // row["columns"]) for row, _ in of.predicted}
    assert len(steps) == SHOWN
    for values, cycles in of.predicted:
        assert values not in compiled
        assert values["rows"] != 1000
        assert cycles == pytest.approx(700 * steps[values["rows"], values["columns"]], rel=0.05)
    said = answered.text()
    assert "learned" in said
    entry = json.loads(json.dumps(answered.as_json()))["compiler"]["learned"]
    assert [row["values"] for row in entry["predicted"]] == [dict(values) for values, _ in of.predicted]
    assert entry["estimates"] == 6
