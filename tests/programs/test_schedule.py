"""Cycles of every operation as the compiler's own schedule has them: `compile --schedule`, and the gate."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.gating.records import changes
from layoutproof.programs import report
from layoutproof.programs.reading import record_of
from layoutproof.programs.record import Record, Schedule, read_record
from tests.gating.repository import git, run
from tests.hardware import compiler
from tests.programs.test_claims import PROGRAM
from tests.said import stretch, words

pytestmark = pytest.mark.slow

NEEDS_TPU = pytest.mark.skipif(bool(compiler.available()), reason=compiler.available() or "it is")
MODEL = """
import jax.numpy as jnp
from jax import lax


def step(w, x):
    def layer(h, w):
        for _ in range(1):
            h = jnp.tanh(h @ w)
        return h, None

    return lax.scan(layer, x, w)[0].sum()
"""
SPEC = """
programs:
  step: {function: "model:step", args: ["f32[6,256,256]", "f32[128,256]"], target: v6e, schedule: true}
checks:
  - {peak_memory: step, at_most: 8MiB}
"""
SLOWER = ("h = jnp.tanh(h @ w)", "h = jnp.sin(jnp.tanh(h @ w))")


@pytest.mark.fast
def test_the_sum_by_trips_and_what_has_none() -> None:
    """An operation of a loop counts by its trips; one that the compiler prices and that has none leaves no sum."""
    lines = PROGRAM.splitlines(keepends=True)
    whole = record_of(lines, schedule={"mine": 40, "turned": 3, "away": 7, "of another text": 10**9}).schedule
    assert whole is not None
    assert (whole.cycles, whole.many, whole.why) == (5 * (40 + 3) + 7, 3, "")
    first = whole.operations[0]
    assert (first.place.instruction, first.cycles, first.often.times) == ("mine", 40, 5)
    assert [each.place.source for each in whole.operations[1:]] == ["model.py:7", "model.py:7"]
    part = record_of(lines, schedule={"turned": 3}).schedule
    assert part is not None
    assert (part.cycles, part.many) == (None, 1)
    assert part.why == words("programs.not_scheduled", place="mine", count=1)
    assert record_of(lines).schedule is None
    # told to simulate, libtpu writes another number of that name into its text, and that is no price
    other = PROGRAM.replace('"window_config":{"estimated', '"bundle_analysis_data":{"estimated')
    assert (record_of(lines).cycles, record_of(other.splitlines(keepends=True)).cycles) == (5000, None)


@pytest.mark.fast
def test_a_growing_sum_is_a_growing_cost() -> None:
    """Nothing is said where nobody asked; one side alone, or a sum that is not known, is unknown."""
    asked = [Record("step", schedule=Schedule(cycles)) for cycles in (1000, 1100, 900)]
    plain, aborted = Record("step"), Record("step", schedule=Schedule(why="it aborts"))

    def said(old: Record, new: Record) -> list[str]:
        return [found.question for found in changes(old, new)]

    (found,) = changes(asked[0], asked[1])
    assert (found.question, found.subject) == ("estimated_cycles", "cycles by the schedule")
    assert said(asked[0], asked[2]) == ["shrank"]
    assert said(asked[0], asked[0]) == said(plain, plain) == []
    assert said(plain, asked[0]) == said(asked[0], plain) == said(asked[0], aborted) == said(aborted, aborted)
    assert said(aborted, aborted) == ["unknown"]
    across = replace(asked[1], made=replace(asked[1].made, compiler="another"))
    assert changes(asked[0], across, across=True) == []


@NEEDS_TPU
def test_every_operation_has_its_cycles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Of a loop of six layers by its trips, at its lines; the rest of the record is as without."""
    pytest.importorskip("jax")
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(MODEL)
    given = ("model.py:step", "f32[6,256,256]", "f32[128,256]")
    (plain,), (record,) = (lp.compile(*given, target="v6e", schedule=asked).records for asked in (False, True))
    schedule = record.schedule
    assert schedule is not None
    assert plain.schedule is None
    assert (schedule.why, schedule.many >= record.priced > 0) == ("", True)
    assert schedule.cycles == sum(each.cycles * (each.often.times or 0) for each in schedule.operations)
    layer = schedule.operations[0]
    assert (layer.often.times, layer.place.source) == (6, "model.py:9")
    # a product of 128 x 256 x 256 is at least so many passes of the matrix unit
    assert layer.cycles >= 2 * 128 * 256 * 256 // (2 * 256 * 256 * 2)
    assert replace(record, schedule=None, made=plain.made) == plain
    assert "--schedule" in record.made.command
    assert read_record(json.loads(record.to_json())) == record
    assert f"  schedule {schedule.cycles:,} simulated for " in str(lp.compile(*given, target="v6e", schedule=True))
    for target, why in (("cpu", "cpu"), ("v4", "v4")):
        (other,) = lp.compile(*given, target=target, schedule=True).records
        assert other.schedule == Schedule(why=words("programs.no_schedule_of", target=why))


@NEEDS_TPU
def test_an_abort_is_unknown_and_hides_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a v5e the simulation gives up on a scatter; the record is there, and says why it has no cycles."""
    pytest.importorskip("jax")
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text("def step(x, i, y):\n    return x.at[i].add(y)\n")
    args = ("f32[1024,256]", "s32[100]", "f32[100,256]")
    (record,) = lp.compile("model.py:step", *args, target="v5e", schedule=True).records
    assert record.schedule is not None
    assert (record.schedule.cycles, record.schedule.operations) == (None, ())
    assert "SIGABRT" in record.schedule.why
    assert f"  schedule unknown ({record.schedule.why[:30]}" in report.text(record)
    assert record.memory.taken


@NEEDS_TPU
def test_a_slower_program_is_denied(tmp_path: Path) -> None:
    """As the kernels' own cycles are: the sum grows, and it is no warning."""
    pytest.importorskip("jax")
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "a.yaml").write_text(SPEC)
    (tmp_path / "model.py").write_text(MODEL)
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", ".")
    (locked,) = run(tmp_path, ["gate", "--lock", "specs"])
    assert locked.code == 0
    (tmp_path / "model.py").write_text(MODEL.replace(*SLOWER))
    (found,) = run(tmp_path, ["gate"])
    assert (found.code, "deny     estimated_cycles  program step: cycles by the schedule" in found.out) == (1, True)
    # whoever asks for them no longer does not make it green
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "specs" / "a.yaml").write_text(SPEC.replace(", schedule: true", ""))
    (found,) = run(tmp_path, ["gate"])
    assert found.code == 3
    assert stretch("gating.record_silent", which="the new") in found.out
