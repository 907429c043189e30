"""Kernels of which no lock says what they were: traced as they are now, and what breaks a rule is not green."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layoutproof.gating.lock_head import RENEW
from tests.cli.in_one_process import Answer
from tests.gating.repository import git, run
from tests.said import stretch, words

pytestmark = pytest.mark.slow

pytest.importorskip("jax")

SUMMED = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def body(x, o, acc):
    @pl.when(pl.program_id(1) == 0)
    def _():
        acc[...] = jnp.zeros_like(acc)

    acc[...] += x[...]
    o[...] = acc[...]

def sums(x):
    return pl.pallas_call(
        body,
        grid=(2, 4),
        in_specs=[pl.BlockSpec((8, 128), lambda i, k: (i, k))],
        out_specs=pl.BlockSpec((8, 128), lambda i, k: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((16, 128), x.dtype),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")),
    )(x)
"""
WRONG = SUMMED.replace("program_id(1) == 0", "program_id(1) == 1")
BROKEN = ("initialised", "body_races")
ENTRY = '  {name}: {{trace: "ops.py:sums", args: ["f32[16,512]"]}}\n'
HEAD = "source: x\nkernels:\n"
CLAIM = "checks:\n  - blocks_in_bounds: one\n"
SPEC = HEAD + ENTRY.format(name="one") + CLAIM
GATE, CI = ["gate", "--against", "main"], ["ci", "--against", "main"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with a right kernel, of which one rule of its grid is claimed, and without a lock."""
    (tmp_path / "specs").mkdir()
    (tmp_path / "ops.py").write_text(SUMMED)
    (tmp_path / "specs" / "a.yaml").write_text(SPEC)
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


def asked(folder: Path) -> list[Answer]:
    """What the gate and a whole run say."""
    return run(folder, GATE, CI)


def test_a_rule_that_is_broken_now(folder: Path) -> None:
    """Unknown, with the rule, its line, the repair and the command that writes a lock; never green."""
    (folder / "ops.py").write_text(WRONG)
    for answer in asked(folder):
        assert answer.code == 3
        assert "unknown  unknown  kernel one:body   specs/a.yaml:3:8" in answer.out
        assert "initialised of scratch[0]: " in answer.out
        assert stretch("gating.before_unknown") in answer.out
        assert "(ops.py:12)" in answer.out
        assert f": {RENEW}\n" in answer.out
        assert "scratch[0] at line 10" in answer.out


def test_no_rule_is_broken(folder: Path) -> None:
    """Green without a lock, whatever else changed in the code; the note says what is not compared."""
    (folder / "ops.py").write_text(f"# another line\n{SUMMED}")
    for answer in asked(folder):
        assert answer.code == 0, answer.out
        assert words("gating.baseline_not_traced", command=RENEW) in answer.out


def test_a_kernel_that_is_new(folder: Path) -> None:
    """It has no before: what is refuted of it is denied; under another name alone it is the one that was there."""
    (folder / "ops.py").write_text(WRONG)
    for text, severity, code in (
        (HEAD + ENTRY.format(name="two"), "deny     refuted", 1),
        (HEAD + ENTRY.format(name="two").replace("512", "1024"), "deny     refuted", 1),
    ):
        (folder / "specs" / "b.yaml").write_text(text)
        (answer,) = run(folder, GATE)
        assert (answer.code, f"{severity}  kernel two:body" in answer.out) == (code, True), answer.out
    (folder / "specs" / "b.yaml").unlink()
    (folder / "specs" / "a.yaml").write_text(SPEC.replace("one", "two"))
    (answer,) = run(folder, GATE)
    assert (answer.code, "unknown  unknown  kernel two:body" in answer.out) == (3, True), answer.out


def test_what_the_file_itself_expects(folder: Path) -> None:
    """A refutation that a claim expects is no news."""
    (folder / "ops.py").write_text(WRONG)
    (folder / "specs" / "a.yaml").write_text(SPEC + "".join(map("  - {{{}: one, expect: refuted}}\n".format, BROKEN)))
    (answer,) = run(folder, GATE)
    assert answer.code == 0, answer.out


def test_a_claim_that_breaks_says_what_to_write(folder: Path) -> None:
    """The repair stands below the claim, too."""
    (folder / "specs" / "a.yaml").write_text(f"{SPEC}  - initialised: one\n")
    git(folder, "commit", "-qam", "a claim")
    (folder / "ops.py").write_text(WRONG)
    (answer,) = run(folder, [*GATE, "--json"])
    (claim,) = [f for f in json.loads(answer.out)["findings"] if f["question"] == "refuted"]
    assert "scratch[0] at line 10" in claim["fix"]


def test_two_index_maps_are_two_programs(folder: Path) -> None:
    """An approval of one is none of the other: both sides have a digest of their own."""
    (folder / "ops.py").write_text(SUMMED.replace("(i, k))]", "(1 - i, k))]"))
    (answer,) = run(folder, [*GATE, "--same-function", "--json"])
    (found,) = [f for f in json.loads(answer.out)["findings"] if f["question"] == "other_function"]
    assert found["before"] != found["after"]


def test_once_a_lock_is_written(folder: Path) -> None:
    """The fault is denied as one that was not there; an entry that the lock does not have is asked all the same."""
    (written,) = run(folder, ["gate", "--lock"])
    assert written.code == 0
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "a lock")
    (folder / "ops.py").write_text(WRONG)
    (folder / "specs" / "a.yaml").write_text(
        HEAD + ENTRY.format(name="one") + ENTRY.format(name="two").replace("512", "1024") + CLAIM
    )
    (answer, drifted) = run(folder, GATE, ["gate"])
    assert answer.code == 1
    for name in ("one", "two"):
        assert f"deny     refuted  kernel {name}:body" in answer.out
        assert f"deny     refuted  kernel {name}:body" in drifted.out
    (folder / "specs" / "b.yaml").write_text(HEAD + ENTRY.format(name="three"))
    (drifted,) = run(folder, ["gate"])
    assert "deny     refuted  kernel three:body" in drifted.out


def test_code_that_may_not_run(folder: Path) -> None:
    """What a kernel does now is unknown where it is not traced, and says so."""
    (folder / "ops.py").write_text(WRONG)
    (answer,) = run(folder, [*GATE, "--no-trace"])
    assert (answer.code, "kernel one" in answer.out, "not traced: --no-trace" in answer.out) == (3, True, True)
