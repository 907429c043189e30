"""Where published block sizes stand: against a plain count, and the page of them against a fresh run."""

from __future__ import annotations

import importlib
import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import tuned_rank
from benchmarks.tuned_rank import rank
from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.searching.branch import candidate
from layoutproof.searching.legal import Checker
from layoutproof.searching.problem import Problem, broken
from layoutproof.searching.read import read_problem
from layoutproof.specs.positions import read_yaml
from tests.recorded import rows

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = {
    "grid": ["cdiv(M, bm)", "cdiv(N, bn)", "cdiv(K, bk)"],
    "semantics": ["parallel", "parallel", "arbitrary"],
    "inputs": [
        {"name": "x", "array": "bf16[M,K]", "block": ["bm", "bk"], "index": "(i, j, k) -> (i, k)"},
        {"name": "y", "array": "bf16[K,N]", "block": ["bk", "bn"], "index": "(i, j, k) -> (k, j)"},
    ],
    "outputs": [{"name": "o", "array": "bf16[M,N]", "block": ["bm", "bn"], "index": "(i, j, k) -> (i, j)"}],
    "scratch": [{"array": "f32[bm,bn]"}],
}


def product(rng: random.Random, **more: object) -> Problem:
    sizes = {name: 128 * rng.randint(4, 40) for name in "MNK"}
    tune = {name: sorted(rng.sample([8, 100, 128, 256, 384, 512, 1024, 2048], 5)) for name in ("bm", "bn", "bk")}
    document = {"target": "v5e", "kernel": PRODUCT, "sizes": sizes, "tune": tune, "flops": "2 * M * N * K", **more}
    return read_problem(read_yaml(json.dumps(document)))


@pytest.mark.parametrize("seed", range(20))
def test_a_choice_stands_where_a_plain_count_puts_it(seed: int) -> None:
    rng = random.Random(seed)
    problem = product(rng, constraints=["bm * bn <= 2**18"])
    every = [dict(zip(problem.variables, v, strict=True)) for v in itertools.product(*problem.variables.values())]
    chosen = rng.choice(every)
    priced = [candidate(problem, values) for values in every]
    fitting = [one.cost for one in priced if not broken(problem, one.values, one.figures)]
    own = candidate(problem, chosen)
    found = rank(problem, chosen)
    assert (found.cost, found.fit, found.least) == (own.cost, len(fitting), min(fitting))
    assert found.cheaper == sum(cost < own.cost for cost in fitting)
    assert bool(found.why) == bool(broken(problem, chosen, own.figures) or Checker(problem)(chosen))


def test_what_refuses_a_choice_is_named() -> None:
    problem = product(random.Random(1), tune={"bm": [100, 128, 2048], "bn": [128, 2048], "bk": [128, 2048]})
    assert rank(problem, {"bm": 2048, "bn": 2048, "bk": 2048}).why == "VMEM"
    assert "block_shape" in rank(problem, {"bm": 100, "bn": 128, "bk": 128}).why
    assert rank(problem, {"bm": 128, "bn": 128, "bk": 128}).why == ""


def test_what_cannot_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = product(random.Random(2))
    with pytest.raises(LayoutError, match="bm = 7 is no candidate"):
        rank(problem, {"bm": 7, "bn": 128, "bk": 128})
    first = {name: values[0] for name, values in problem.variables.items()}
    monkeypatch.setattr(tuned_rank, "MOST", 10)
    with pytest.raises(Undecided, match="125 candidates"):
        rank(problem, first)
    reads = {"name": "z", "array": "bf16[M,N]", "block": ["bm", "bn"], "index": "(i, j, k) -> (i // 2, j)"}
    kernel = {**PRODUCT, "inputs": [*PRODUCT["inputs"], reads]}
    with pytest.raises(Undecided, match=r"z: .* no closed form"):
        rank(product(random.Random(3), kernel=kernel, tune={"bm": [8], "bn": [128], "bk": [128]}),
                 {"bm": 8, "bn": 128, "bk": 128})  # fmt: skip


@pytest.mark.commit
def test_the_page_of_published_sizes_is_that_of_a_fresh_run(monkeypatch: pytest.MonkeyPatch) -> None:
    published = rows("tuned_blocks.jsonl")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    report = importlib.import_module("tuned_blocks")
    found = report.answers(published)
    assert report.page(found) == (ROOT / "docs" / "tuned_blocks.md").read_text(encoding="utf-8")
    modelled = [one for one in found if one.rank is not None]
    refused = [one for one in modelled if one.rank.why]
    assert len(modelled) > 500
    # somebody ran each of these: one that we call illegal has a named limit that its caller may raise
    assert {one.rank.why for one in refused} <= {"VMEM"}
    assert len(refused) < len(modelled) / 50
    for kernel in {one.kernel for one in modelled if one.ranked}:
        shares = sorted(one.rank.share for one in modelled if one.kernel == kernel)
        assert shares[len(shares) // 2] < 0.1, kernel


@pytest.fixture
def benchmark_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module


@pytest.mark.parametrize("rule", tuned_rank.RULES)
def test_the_first_by_a_rule_is_the_least_that_fits(rule: str) -> None:
    problem = product(random.Random(5), constraints=["bm * bn <= 2**18"])
    every = tuned_rank.all_candidates(problem)
    stands = tuned_rank.standings_of(problem, every)
    first = tuned_rank.first_by(problem, rule)
    least = min(one[rule].value for one in stands)
    assert stands[every.index(first)][rule].value == least
    # of equals the cheapest by the model, and candidates come in that order
    assert first == next(v for v, one in zip(every, stands, strict=True) if one[rule].value == least)


def row_of(kernel: str, chip: str, blocks: dict[str, int]) -> dict[str, Any]:
    found = (row for row in rows("tuned_blocks.jsonl") if row["kernel"].endswith(kernel) and row["chip"] == chip)
    return next(row for row in found if blocks.items() <= row["blocks"].items())


@pytest.mark.parametrize(
    ("kernel", "chip", "blocks", "who", "named"),
    [
        ("tpu_ragged_dot", "tpu_v5", {"tile_m": 128, "tile_k": 2048}, "tokamax heuristic", [128, 128, 128]),
        # 7168 x 2048 by 128 rows: 2 * (128 * 7168 + 7168 * tn) * 2 + 3 * 128 * tn * 2 <= 24 MiB for tn = 512, not 1024
        ("tpu_ragged_dot", "tpu7x", {"tile_m": 128, "tile_k": 7168}, "tokamax heuristic", [128, 7168, 512]),
        ("tpu_flash_attention", "tpu7x", {"block_q": 2048}, "MaxText default", [512, 512]),
        ("ragged_paged_attention_v3", "TPU v7", {"bkv_p": 1, "bq": 16}, "tpu-inference default", [1, 32]),
        ("quantized_matmul", "tpu v6", {}, "tpu-inference default", [128, 128, 128]),
    ],
)
def test_what_other_repositories_take(
    benchmark_of: Callable[[str], Any], kernel: str, chip: str, blocks: dict[str, int], who: str, named: list[int]
) -> None:
    row = row_of(kernel, chip, blocks)
    assert [*benchmark_of("tuned_peers").PEERS[row["kernel"]][who](row).values()] == named


def test_places_among_candidates_with_an_estimate(benchmark_of: Callable[[str], Any]) -> None:
    module = benchmark_of("tuned_compiled")

    def one(by: str, cycles: int | None, vmem: float = -1.0) -> dict[str, Any]:
        return {"by": by, "cycles": cycles, "why": "", "cost": 1.0, "steps": 4.0, "bytes": 1.0, "vmem": vmem}

    answer = {
        "candidates": [one("published", 104, -50.0), one("model 1", 100, -100.0), one("steps", None), one("x", 200)]
    }
    found = module.known(answer)
    assert [each["by"] for each in found] == ["published", "model 1", "x"]
    # 4 % behind the best is a tie of times
    assert module.placed(found, "cycles") == module.Place(2, 1.04, True)
    assert module.placed(found, "steps") == module.Place(2, 1.0, True)
    assert module.placed(found, "vmem") == module.Place(2, 2.0, False)
    # without an estimate of the published size, or of any other, a row says nothing
    assert module.known({"candidates": [one("published", None), one("x", 1)]}) == []
    assert module.known({"candidates": [one("published", 1), one("x", None)]}) == []


@pytest.mark.parametrize("seed", range(20))
def test_a_table_that_is_known_reads_as_itself(benchmark_of: Callable[[str], Any], seed: int) -> None:
    jax = pytest.importorskip("jax")
    rng = random.Random(seed)
    tables = [
        [rng.randint(-9, 9) for _ in range(rng.randint(1, 12))],
        [5] * 7,
        [k // 3 for k in range(11)],
        [0, 4, 8, 9],
    ]
    for table in tables:
        read = jax.jit(benchmark_of("tuned_sources").Known(table).__getitem__)
        assert [int(read(k)) for k in range(len(table))] == table
        # what is not traced is an entry itself
        assert [int(benchmark_of("tuned_sources").Known(table)[k]) for k in range(len(table))] == table
