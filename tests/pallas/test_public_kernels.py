"""Public kernels, kept as records: none is refuted but those that are wrong, and what is decided stays decided."""

from __future__ import annotations

import re

import pytest

from benchmarks.public_kernels import CONFIRMED, Said, records, said_of, tables
from layoutproof.core.result import Verdict

pytestmark = pytest.mark.slow

ALL = list(records())
LONG = 40_000
"""Characters of a record above which it takes more than a moment to judge."""
LATER = ("fused_hadamard_quantize", "paged kv scatter", "ragged_mqa")
"""Shorter ones of which the same holds."""
OPEN = ("verify_tree_greedy",)
"""Kernels whose loops hand on what tables hold, so that most of where they read is open."""
NOW = [k for k, (line, origin) in enumerate(ALL) if len(line) < LONG and origin["kernel"] not in LATER]

BUGS = {
    ("Tyronita/PallasBench", "matmul", "outputs_covered"),
    ("Tyronita/PallasBench", "matmul", "inputs_read"),
    ("Tyronita/PallasBench", "mse_loss", "outputs_covered"),
    ("Tyronita/PallasBench", "mse_loss", "inputs_read"),
    ("Tyronita/PallasBench", "flash_attention", "outputs_covered"),
    ("Tyronita/PallasBench", "flash_attention", "inputs_read"),
    ("Tyronita/PallasBench", "gated_mlp", "outputs_covered"),
    ("Tyronita/PallasBench", "gated_mlp", "inputs_read"),
    ("google/qwix", "lhs_fused_quantized_matmul one scale row", "blocks_in_bounds"),
    ("sgl-project/sglang-jax", "verify_tree_greedy", "parallel_writes"),
}
"""Each stands in BUGS-FOUND.md with what was run."""


def refuted(call: Said) -> set[tuple[str, str, str]]:
    """Repository, kernel, question of what is refuted."""
    origin = call.origin
    wrong = [f.question for f in call.errors if f.verdict is Verdict.REFUTED]
    return {(origin["repository"], origin["kernel"], question) for question in wrong}


@pytest.fixture(scope="module")
def quick() -> list[Said]:
    """What is said of the records that are judged in a moment."""
    return [said_of(*ALL[k]) for k in NOW]


def test_there_are_enough_with_commit_and_licence() -> None:
    kernels = {(origin["repository"], origin["kernel"]) for _, origin in ALL}
    assert len(kernels) >= 25
    assert len({repository for repository, _ in kernels}) >= 6
    assert all(len(origin["commit"]) == 40 and origin["licence"] for _, origin in ALL)


def test_records_name_no_folder_and_hold_no_source() -> None:
    for line, _ in ALL:
        assert re.search(r'"/\w', line) is None
        assert "\\n" not in line
        assert "return " not in line


@pytest.mark.commit
def test_only_what_is_wrong_is_refuted(quick: list[Said]) -> None:
    found = set().union(*map(refuted, quick))
    assert found == BUGS
    assert {(repository, question) for repository, _, question in found} == CONFIRMED


@pytest.mark.commit
def test_what_was_decided_is_decided(quick: list[Said]) -> None:
    whole = [call for call in quick if call.count(Verdict.PROVED) == len(call.errors)]
    assert len(whole) >= 28
    for name, table in tables([call for call in quick if call.origin["kernel"] not in OPEN]).items():
        total = sum(table.counts.values())
        assert total - table.counts["unknown"] >= FLOOR[name] * total, name


FLOOR = {
    "body_in_bounds": 0.9,
    "body_races": 1.0,
    "dma_order": 1.0,
    "initialised": 0.9,
    "multiple_of": 1.0,
    "outputs_stored": 0.9,
    "undefined_values": 0.8,
}
"""The part of the questions of each kind that is decided; it may rise."""


@pytest.mark.nightly
@pytest.mark.parametrize("k", sorted({*range(len(ALL))} - {*NOW}))
def test_of_the_others_none_is_refuted(k: int) -> None:
    assert refuted(said_of(*ALL[k])) == set()
