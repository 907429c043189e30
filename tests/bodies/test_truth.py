"""Random kernels: no verdict is wrong against a literal walk, and the walk sees what JAX's interpreter shows."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

from tests.bodies.forms import every_form
from tests.bodies.truth.compare import Compared, call_of, compared
from tests.bodies.truth.description import shown
from tests.bodies.truth.generate import kernel
from tests.bodies.truth.literal import QUESTIONS, truth
from tests.bodies.truth.oracles import GOES_ON, HANG, LINTS, MODES, Child, one_run, verdict_of_lints, verdict_of_runs

pytestmark = pytest.mark.slow

EACH = 6
"""Kernels of one test."""


def _wrong(first: int, many: int) -> list[str]:
    found = []
    for seed in range(first, first + many):
        for question, kind in compared(seed).disagreements():
            found.append(f"{kind}: {question} of {shown(kernel(seed))}")
    return found


@pytest.mark.parametrize("seed", range(4))
def test_no_verdict_on_a_random_kernel_is_wrong(seed: int) -> None:
    assert _wrong(seed * EACH, EACH) == []


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(1, 11))
def test_no_verdict_on_many_random_kernels_is_wrong(seed: int) -> None:
    assert _wrong(seed * 1000, 50) == []


def _contradictions(first: int, many: int) -> list[str]:
    calls, tables = {}, {}
    for seed in range(first, first + many):
        made = kernel(seed)
        calls[str(seed)] = call_of(made)
        tables[str(seed)] = len(made.tables)
    return [said for one in every_form(calls, tables) for said in one.contradictions()]


@pytest.mark.parametrize("seed", range(2))
def test_no_form_of_a_random_kernel_contradicts_another(seed: int) -> None:
    """Traced, dumped, and each of them under a random vmap."""
    assert _contradictions(seed * EACH, EACH) == []


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(1, 5))
def test_no_form_of_many_random_kernels_contradicts_another(seed: int) -> None:
    assert _contradictions(seed * 1000, 50) == []


WRONG = {
    "body_in_bounds": 27,
    "outputs_stored": 5,
    "initialised": 6,
    "undefined_values": 7,
    "dma_order": 11,
    "body_races": 12,
    "inputs_read": 17,
    "multiple_of": 81,
}
"""A seed whose kernel is wrong in a question."""


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_walk_finds_what_is_wrong(question: str) -> None:
    """Else no verdict could be wrong."""
    found = truth(kernel(WRONG[question]))
    assert question in found.wrong
    assert found.why[question]


def test_a_wrong_verdict_is_told() -> None:
    sound = compared(WRONG["initialised"])
    assert "initialised" in sound.wrong
    assert "body_in_bounds" in sound.right
    assert sound.disagreements() == []
    said = {**sound.verdicts, "initialised": "proved", "body_in_bounds": "refuted"}
    told: Compared = replace(sound, verdicts=said)
    assert set(told.disagreements()) == {("initialised", "wrong proved"), ("body_in_bounds", "wrong refuted")}


@pytest.mark.parametrize("seed", [20003, 20005, 20008])
def test_the_interpreter_shows_what_the_walk_finds(seed: int) -> None:
    conflicts, _ = verdict_of_runs(seed, {mode: one_run(seed, mode) for mode in MODES})
    assert conflicts == []


def test_only_a_blind_spot_with_a_rule_is_no_conflict() -> None:
    """Two cores and a signal that names none: the interpreter never ends. A kernel without copies has no excuse."""
    hangs = {mode: {"said": HANG} for mode in MODES}
    assert verdict_of_runs(20036, hangs)[0] == []
    assert len(verdict_of_runs(20003, hangs)[0]) == len(MODES)


def test_what_follows_garbage_is_the_interpreters_own() -> None:
    """A place that nothing wrote: the walk ends there, and is right to; a race that comes later says nothing of it."""
    assert "initialised" in truth(kernel(30004)).wrong
    races = {mode: {"said": "race"} for mode in MODES}
    assert verdict_of_runs(30004, races) == ([], [GOES_ON])
    assert len(verdict_of_runs(20003, races)[0]) == len(MODES)


def test_a_run_that_waits_for_ever_ends_nothing_else() -> None:
    child = Child(sys.executable)
    try:
        assert child.ask("one_run", 20036, "nan", limit=60) == {"said": HANG}
        assert child.ask("one_run", 20003, "nan", limit=60)["said"] == ""
    finally:
        child.close()


def test_the_linter_flags_what_fills_up_a_block() -> None:
    """An array of one row that lies in VMEM, read in blocks of eight: no element of the kernel's is outside."""
    silent = {target: {"lowered": True, "said": ""} for target in LINTS}
    small = {"lowered": True, "said": "[LLO_LINT] bounds_check :: shape = 'f32[1,128]{1,0:T(1,128)S(1)}'"}
    large = {"lowered": True, "said": "[LLO_LINT] bounds_check :: shape = 'f32[1,128]{1,0:T(1,128)}'"}
    assert verdict_of_lints(40012, {**silent, "bounds_check": small})[0] == []
    assert len(verdict_of_lints(40012, {**silent, "bounds_check": large})[0]) == 1
