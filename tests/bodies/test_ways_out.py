"""A question about a body that stays open says what may settle it: an assumption, other words, more steps."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.public_kernels import records
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas import judge as judging
from layoutproof.pallas.judge import about_body, in_order, judge, settled_by
from layoutproof.pallas.records import read_records

pytestmark = pytest.mark.slow

WAY = re.compile(r"; to settle it, \w+ |assume '.*and it is proved|say what it may be with where|^vacuous: ")
RECORDS = ("kda state", "kv_cache_update", "megablox gmm")
"""Public kernels with open questions, where nothing is assumed; each is judged in about a second."""


def recorded(name: str, folder: Path) -> Kernel:
    line = next(line for line, origin in records() if origin["kernel"] == name)
    folder.joinpath("call.jsonl").write_text(line)
    (call,) = read_records(folder / "call.jsonl")
    assert isinstance(call, Kernel)
    return call


def left_open(call: Kernel, **how: Any) -> list[Finding]:
    return [f for f in judge(call, **how) if f.verdict is Verdict.UNKNOWN and f.asked]


def test_every_question_about_a_body_says_what_to_write() -> None:
    asked = [name for name in in_order(body=True) if about_body(name)]
    assert len(asked) >= 8
    assert len({settled_by(name) for name in asked} - {""}) == len(asked)
    assert settled_by("blocks_in_bounds") == ""


def test_what_public_kernels_leave_open_names_the_way_out(tmp_path: Path) -> None:
    met: Counter[str] = Counter()
    for name in RECORDS:
        for finding in left_open(recorded(name, tmp_path)):
            if about_body(finding.question):
                assert WAY.search(finding.reason), (name, finding.question, finding.reason)
                met[finding.question] += 1
    assert set(met) >= {"body_in_bounds", "dma_order", "initialised", "outputs_stored"}


def test_a_table_that_is_named_is_one_of_which_more_can_be_assumed(tmp_path: Path) -> None:
    (found,) = left_open(recorded("kv_cache_update", tmp_path), names=["dma_order"])
    assert found.reason.endswith(
        "; to settle it, assume more of prefetch0 (--assume), or "
        "wait for as many bytes, under the condition that starts a copy, in its program or a kernel that needs its "
        "outputs"
    )


def test_steps_that_are_spent_can_be_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "STEPS", 10)
    found = left_open(recorded("megablox gmm", tmp_path), names=["outputs_stored"])
    assert found
    assert all("the budget of 10 steps" in f.reason and "allow more steps (--effort 10)" in f.reason for f in found)


KERNEL = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

x = jax.ShapeDtypeStruct((32, 128), jnp.float32)
spec = pl.BlockSpec((8, 128), lambda i: (i, 0))

def waits(x, o):
    pl.semaphore_wait(pl.get_global(pltpu.SemaphoreType.REGULAR(())), 1)
    o[...] = x[...]

def rests_on_data(x, o):
    o[...] = jnp.zeros_like(o)
    @pl.when(x[0, 0] > 0)
    def _():
        o[pl.ds(x[0, 0].astype(jnp.int32), 1), :] = x[pl.ds(0, 1), :]

def stored_sometimes(x, o):
    @pl.when(x[0, 0] > 0)
    def _():
        o[...] = x[...]

def kernel(body):
    return pl.pallas_call(body, grid=(4,), in_specs=[spec], out_specs=spec, out_shape=x, name=body.__name__)

def every(a):
    return [kernel(body)(a) for body in (waits, rests_on_data, stored_sometimes)]
"""


def test_the_command_says_it(tmp_path: Path) -> None:
    pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")
    tmp_path.joinpath("mine.py").write_text(KERNEL)
    run = [sys.executable, "-m", "layoutproof", "kernels", "mine:every", "--arg", "f32[32,128]"]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 3, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    for words in (
        "to settle it, write what is not modelled with operations that are (docs/primitives.md), or wait",
        "to settle it, clamp the index, or guard the access by what program ids, loop counters and tables say",
        "to settle it, store the whole window in some program of each visit",
    ):
        assert words in said


CHOSEN = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def body(t, x, o):
    @pl.when(pl.program_id(1) < (t[pl.program_id(0) + 1] - t[pl.program_id(0)]) // 8)
    def _():
        o[...] = x[...] + 1

def chosen(at):
    spec = pl.BlockSpec((8, 128), at)
    grid = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(2, 4), in_specs=[spec], out_specs=spec)
    return pl.pallas_call(body, grid_spec=grid, out_shape=jax.ShapeDtypeStruct((40, 128), jnp.float32))

def clamped(t, x):
    return chosen(lambda n, k, t: (jnp.minimum(t[n] // 8 + k, 4), 0))(t, x)

def not_clamped(t, x):
    return chosen(lambda n, k, t: (t[n], 0))(t, x)
"""


@pytest.mark.parametrize(("function", "end", "code"), [("clamped", 2**31, 3), ("not_clamped", 5, 1)])
def test_a_bound_is_advised_that_the_question_needs(function: str, end: int, code: int, tmp_path: Path) -> None:
    # `t` holds rows: a bound of so many blocks would be true of no batch, and then no program stores anything
    pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")
    tmp_path.joinpath("mine.py").write_text(CHOSEN)
    run = [sys.executable, "-m", "layoutproof", "kernels", f"mine:{function}", "--args", "s32[3], f32[40,128]"]
    done = subprocess.run(run, capture_output=True, text=True, timeout=240, cwd=tmp_path)
    advised = f"0 <= prefetch0 < {end}"
    # two programs choose blocks of their own, and there are five
    assert done.returncode == code, done.stdout + done.stderr
    assert set(re.findall(r"assume '([^']*)' and", done.stdout)) == {advised}
    done = subprocess.run([*run, "--assume", advised], capture_output=True, text=True, timeout=240, cwd=tmp_path)
    met = [line for line in done.stdout.splitlines() if line.startswith(("refuted", "unknown"))]
    assert met
    assert not any("blocks_in_bounds" in line for line in met)
    if function == "clamped":
        assert not any(line.startswith("refuted") for line in met), done.stdout
