"""Random kernels: no verdict is wrong against a literal walk, and the walk sees what JAX's interpreter shows."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.table_schemas import SCHEMAS as EVERY_SCHEMA
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.refuted_if import REFUTED_IF
from layoutproof.pallas.witnesses import broken
from tests.bodies.forms import every_form
from tests.bodies.truth.compare import Compared, call_of, compared
from tests.bodies.truth.description import shown
from tests.bodies.truth.generate import SCHEMAS, kernel
from tests.bodies.truth.literal import QUESTIONS, contents, truth
from tests.bodies.truth.oracles import GOES_ON, HANG, LINTS, MODES, Child, one_run, verdict_of_lints, verdict_of_runs
from tests.bodies.truth.watch import IDLE_LOOKS, LOOK, Watch

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


@pytest.mark.parametrize("seed", range(3))
def test_no_verdict_on_a_kernel_over_tables_of_a_schema_is_wrong(seed: int) -> None:
    assert _wrong(SCHEMAS + seed * EACH, EACH) == []


def test_kernels_over_tables_of_a_schema_are_of_every_kind_right_and_wrong() -> None:
    made = [kernel(seed) for seed in range(SCHEMAS, SCHEMAS + 200)]
    said = " ".join(text for one in made for text in one.assume)
    assert all(f" is {name}(" in said for name in EVERY_SCHEMA)
    assert {bool(one.notes[1:]) for one in made} == {True, False}


@pytest.mark.parametrize("number", [1, 2, 5, 13])
def test_what_tables_hold_is_as_assumed(number: int) -> None:
    made = kernel(SCHEMAS + number)
    every, _ = contents(made, made.seed)
    (call,) = kernels_of(call_of(made).function, call_of(made).arguments, assume=made.assume)
    assert isinstance(call, Kernel)
    names = [table.name for table in made.tables]
    assert len(every) == len({str(tables) for tables in every}) > 0
    for tables in every:
        held = dict(zip(names, tables, strict=True))
        assert broken(call, held, {}) == ""


def test_what_is_refuted_is_shown_by_every_table() -> None:
    """And what is refuted if a table holds something by some table."""
    sound = compared(WRONG["outputs_covered"])
    assert "outputs_covered" in sound.wrong
    assert "outputs_covered" in sound.spared
    assert sound.disagreements() == []
    told = replace(sound, verdicts={**sound.verdicts, "outputs_covered": "refuted"})
    assert told.disagreements() == [("outputs_covered", "refuted, and some tables do not show it")]
    said = {**sound.reasons, "initialised": f"scratch[0]: {REFUTED_IF}prefetch0 can be 0"}
    told = replace(sound, verdicts={**sound.verdicts, "initialised": "unknown"}, reasons=said)
    assert told.disagreements() == [("initialised", "refuted if, and no table shows it")]


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
    "blocks_in_bounds": SCHEMAS + 1,
    "outputs_covered": SCHEMAS + 50,
    "revisits": SCHEMAS + 91,
    "table_reads": SCHEMAS + 3027,
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


@pytest.mark.parametrize("seed", [20003, 20005, 20008, SCHEMAS + 3, SCHEMAS + 38])
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


WAITS = """
import threading
lock = threading.Condition()
def waits():
    while True:
        with lock:
            lock.wait(timeout=0.1)
for _ in range(4):
    threading.Thread(target=waits).start()
"""


@pytest.mark.parametrize(("code", "for_ever"), [(WAITS, True), ("while True: pass", False)], ids=["waits", "works"])
def test_who_looks_now_and_then_whether_a_wait_failed_waits_for_ever(code: str, for_ever: bool) -> None:
    """As threads of JAX's interpreter do: they use a little of a processor, and runs of them were never ended."""
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        try:
            watch = Watch(process.pid)
            time.sleep(1)
            seen = False
            for _ in range(2 * IDLE_LOOKS):
                time.sleep(LOOK)
                seen = seen or watch.idle()
            assert seen is for_ever
        finally:
            process.kill()


def test_the_linter_flags_what_fills_up_a_block() -> None:
    """An array of one row that lies in VMEM, read in blocks of eight: no element of the kernel's is outside."""
    silent = {target: {"lowered": True, "said": ""} for target in LINTS}
    small = {"lowered": True, "said": "[LLO_LINT] bounds_check :: shape = 'f32[1,128]{1,0:T(1,128)S(1)}'"}
    large = {"lowered": True, "said": "[LLO_LINT] bounds_check :: shape = 'f32[1,128]{1,0:T(1,128)}'"}
    assert verdict_of_lints(40012, {**silent, "bounds_check": small})[0] == []
    assert len(verdict_of_lints(40012, {**silent, "bounds_check": large})[0]) == 1
