"""`pytest --layoutproof` on suites of its own, each in a process: what fails, what is counted, and what stays out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import layoutproof
from layoutproof.pallas.judge import kernel_target
from tests.cli.user_code import folder_with_kernels
from tests.said import words

pytestmark = pytest.mark.slow

ROOT = Path(layoutproof.__file__).parents[1]

SUITE = """
import users_kernels, jax, pytest
from functools import partial

def zeros(*dims):
    return jax.ShapeDtypeStruct(dims, "float32")

def test_right():
    jax.eval_shape(users_kernels.copy, zeros(1024, 128))

def test_wrong():
    jax.eval_shape(users_kernels.copy, zeros(1000, 128))

def test_fails_itself():
    jax.eval_shape(users_kernels.copy, zeros(1000, 128, 1)[0])

def test_barrier():
    jax.eval_shape(users_kernels.barrier, zeros(8, 128))

def test_nothing():
    pass

@pytest.fixture
def prepared():
    return jax.eval_shape(partial(users_kernels.copy, block=512), zeros(1500, 128))

def test_wrong_in_a_fixture(prepared):
    pass
"""


def suite(folder: Path, *options: str, source: str = SUITE) -> subprocess.CompletedProcess[str]:
    """A test suite run as users run it."""
    (folder / "test_suite.py").write_text(source)
    (folder / "pytest.ini").write_text("[pytest]\n")
    # the plugin comes by the entry point of the installed package, as users get it; others stay out
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    environment["PYTHONPATH"] = os.pathsep.join((str(ROOT), str(folder)))
    others = sorted({e.name for e in entry_points(group="pytest11")} - {"layoutproof", "xdist", "xdist.looponfail"})
    plugins = [word for name in ("cacheprovider", *others) for word in ("-p", f"no:{name}")]
    command = [sys.executable, "-m", "pytest", *plugins, *options]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=200
    )


def outcomes(shown: str) -> dict[str, int]:
    """pytest's own counts in its last line."""
    return {word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|error)", shown.splitlines()[-1])}


def test_wrong_calls_fail_their_tests(tmp_path: Path) -> None:
    """A wrong call fails its test, once, beside what the test itself says; the calls are counted."""
    pytest.importorskip("jax", reason="JAX is not installed")
    folder_with_kernels(tmp_path)
    done = suite(tmp_path, "--layoutproof")
    assert outcomes(done.stdout) == {"failed": 3, "passed": 3}, done.stdout + done.stderr
    assert done.returncode == 1
    assert all(f"FAILED test_suite.py::test_{name}" in done.stdout for name in ("wrong", "wrong_in_a_fixture"))
    assert "FAILED test_suite.py::test_right" not in done.stdout
    assert (
        words(
            "pallas.outputs_covered_unwritten",
            operand="outputs",
            parts="768:1000, 0:128",
            kind="block",
            number="(3, 0)",
        )
        in done.stdout
    )
    assert "4 Pallas calls in 4 tests: 1 proved, 2 refuted, 1 unknown" in done.stdout
    assert "unknown  " in done.stdout
    assert "manual DMA" in done.stdout
    without = suite(tmp_path)
    assert outcomes(without.stdout) == {"failed": 1, "passed": 5}
    assert "Pallas call" not in without.stdout


def test_with_several_processes(tmp_path: Path) -> None:
    """With xdist the failures arrive, and the counts are added up."""
    pytest.importorskip("jax", reason="JAX is not installed")
    pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    folder_with_kernels(tmp_path)
    done = suite(tmp_path, "--layoutproof", "--layoutproof-target", "v5e", "-n", "2")
    assert outcomes(done.stdout) == {"failed": 3, "passed": 3}, done.stdout + done.stderr
    assert "4 Pallas calls in 4 tests: 1 proved, 2 refuted, 1 unknown" in done.stdout
    assert f"target   v5e, {kernel_target('v5e').compiler}" in done.stdout


def test_calls_outside_of_tests(tmp_path: Path) -> None:
    """What a module traces when it is collected is judged too, even if no test runs."""
    pytest.importorskip("jax", reason="JAX is not installed")
    folder_with_kernels(tmp_path)
    source = "import jax, users_kernels\njax.eval_shape(users_kernels.whole)\n"
    done = suite(tmp_path, "--layoutproof", source=source)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 Pallas call in 0 tests: 0 proved, 1 refuted, 0 unknown" in done.stdout
    assert "no program writes" in done.stdout


SHARED = """
import jax, jax.numpy as jnp, numpy as np, pytest, users_kernels

def wrong():
    return users_kernels.copy(jnp.zeros((1000, 128)))

kept = jax.jit(users_kernels.copy)
right = jax.jit(lambda x: users_kernels.copy(x) + 1)

def test_first():
    kept(jnp.zeros((1000, 128)))

def test_second():
    kept(jnp.zeros((1000, 128)))

def test_fails():
    kept(jnp.zeros((1000, 128)))
    assert False, "its own"

@pytest.mark.xfail(reason="known")
def test_known():
    kept(jnp.zeros((1000, 128)))

@pytest.mark.xfail(reason="known", strict=True)
def test_known_strictly():
    kept(jnp.zeros((1000, 128)))

@pytest.mark.layoutproof(expect=["outputs_covered", "inputs_read"])
def test_expected():
    kept(jnp.zeros((1000, 128)))

@pytest.mark.layoutproof(expect=["outputs_covered"])
def test_expected_and_not_there():
    right(jnp.zeros((1024, 128)))

@pytest.mark.layoutproof(expect="blocks_in_bounds")
def test_another_is_expected():
    kept(jnp.zeros((1000, 128)))

def test_right():
    right(jnp.zeros((1024, 128)))
    right(jnp.zeros((1024, 128)))

@pytest.mark.parametrize("n", [0, 1])
def test_lowered(n):
    right.lower(jnp.zeros((1024, 128)))

@pytest.mark.layoutproof(expected="outputs_covered")
def test_wrong_mark():
    pass

@pytest.mark.layoutproof(expect="outputs_coverd")
def test_wrong_name():
    pass
"""


def test_each_test_that_runs_a_call_answers_for_it(tmp_path: Path) -> None:
    """What JAX traced for the first test counts for all that run it, expected failures and marks included.

    Alone and under xdist the counts are the same, and a test that fails by itself keeps the report.
    """
    pytest.importorskip("jax", reason="JAX is not installed")
    pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    folder_with_kernels(tmp_path)
    for options in ((), ("-n", "2")):
        done = suite(tmp_path, "--layoutproof", "-rA", *options, source=SHARED)
        found = {name: word for word, name in re.findall(r"(?m)^([A-Z]+) test_suite\.py::(\S+)", done.stdout)}
        failed = {name for name, word in found.items() if word == "FAILED"}
        assert failed == {
            "test_first", "test_second", "test_fails", "test_expected_and_not_there", "test_another_is_expected",
            "test_wrong_mark", "test_wrong_name",
        }, done.stdout  # fmt: skip
        assert {name for name, word in found.items() if word == "XFAIL"} == {"test_known", "test_known_strictly"}
        assert {name for name, word in found.items() if word == "PASSED"} == {
            "test_expected", "test_right", "test_lowered[0]", "test_lowered[1]",
        }  # fmt: skip
        assert "2 Pallas calls in 11 tests: 1 proved, 1 refuted, 0 unknown" in done.stdout
        assert words("cli.mark_not_refuted", property="outputs_covered") in done.stdout
        assert words("cli.mark_keywords", found="expected") in done.stdout
        assert "did you mean 'outputs_covered'" in done.stdout
        itself = done.stdout[done.stdout.index("test_fails ___") :]
        assert "its own" in itself
        assert itself.index("layoutproof") < itself.index("no program writes outputs[")


TABLES = """
import jax, pytest, users_kernels

def sds(*dims, dtype="float32"):
    return jax.ShapeDtypeStruct(dims, dtype)

def look():
    jax.eval_shape(users_kernels.table, sds(4, dtype="int32"), sds(32, 128))

@pytest.mark.layoutproof(assume="0 <= prefetch0 < 4")
def test_assumed():
    look()

@pytest.mark.layoutproof(assume=["0 <= prefetch0 < 5"])
def test_assumed_too_little():
    look()

def test_open():
    look()

@pytest.mark.layoutproof(assume="0 <= nowhere < 4")
def test_no_such_table():
    look()
"""
TABLE_KERNEL = """
from jax.experimental.pallas import tpu as _tpu

def table(t, x):
    def body(t, x, o):
        o[...] = x[...]
    grid = _tpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(4,), in_specs=[pl.BlockSpec((8, 128), lambda i, t: (t[i], 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, t: (i, 0)))
    return pl.pallas_call(body, grid_spec=grid, out_shape=x)(t, x)
"""


def test_tables_are_assumed_by_a_mark_and_unknowns_are_accepted_by_a_baseline(tmp_path: Path) -> None:
    pytest.importorskip("jax", reason="JAX is not installed")
    folder_with_kernels(tmp_path)
    users = tmp_path / "users_kernels.py"
    users.write_text(users.read_text() + TABLE_KERNEL)
    done = suite(tmp_path, "--layoutproof", "-rA", source=TABLES)
    found = {name: word for word, name in re.findall(r"(?m)^([A-Z]+) test_suite\.py::(\S+)", done.stdout)}
    assert found["test_assumed"] == found["test_open"] == "PASSED", done.stdout
    assert found["test_no_such_table"] == "FAILED"
    assert words("kernel.assumption_no_table", text="0 <= nowhere < 4", have="the calls have prefetch0") in done.stdout
    argument = ["users_kernels:table", "--args", "s32[4], f32[32,128]", "--write-baseline", "known.json"]
    written = subprocess.run(
        [sys.executable, "-m", "layoutproof", "kernels", *argument],
        cwd=tmp_path, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert (tmp_path / "known.json").exists(), written.stderr
    alone = "-k", "test_open"
    kept = suite(tmp_path, "--layoutproof", "--layoutproof-baseline", "known.json", *alone, source=TABLES)
    assert outcomes(kept.stdout) == {"passed": 1}, kept.stdout
    assert "1 Pallas call in 1 test: 0 proved, 0 refuted, 0 unknown, 1 accepted" in kept.stdout
    (tmp_path / "none.json").write_text('{"version": 2, "accepted": {}}')
    open_ = suite(tmp_path, "--layoutproof", "--layoutproof-baseline", "none.json", *alone, source=TABLES)
    assert outcomes(open_.stdout) == {"failed": 1}
    few = suite(tmp_path, "--layoutproof", "--layoutproof-least-proved", "50%", *alone, source=TABLES)
    assert (few.returncode, outcomes(few.stdout)) == (1, {"passed": 1})
    assert words("cli.proved_too_few", proved=0, calls=1, least=50) in few.stdout
    enough = ("-k", "test_open or test_assumed and not too", "--layoutproof-least-proved", "50%")
    assert suite(tmp_path, "--layoutproof", *enough, source=TABLES).returncode == 0


IMPORTS = """
import sys
def test_imports():
    heavy = [name for name in {names!r} if name in sys.modules]
    assert heavy == []
"""


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ((), ("jax", "numpy", "pydantic", "yaml", "islpy", "layoutproof.questions", "layoutproof.specs")),
        (("--layoutproof",), ("jax", "numpy", "islpy", "z3", "layoutproof.solvers.decide")),
    ],
)
def test_nothing_is_imported_that_is_not_needed(
    options: tuple[str, ...], names: tuple[str, ...], tmp_path: Path
) -> None:
    """Without the options nearly nothing is; with them JAX and the solvers stay out of a suite that has no call."""
    done = suite(tmp_path, *options, source=IMPORTS.format(names=names))
    assert outcomes(done.stdout) == {"passed": 1}, done.stdout + done.stderr
    if options:
        assert "no Pallas call was traced; there is nothing to prove" in done.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--layoutproof", "--layoutproof-target", "v99"), "unknown target 'v99'; known: "),
        (("--layoutproof-target", "v5e"), words("cli.pytest_option_without_layoutproof", option="target")),
        (("--layoutproof-least-proved", "50%"), words("cli.pytest_option_without_layoutproof", option="least-proved")),
        (("--layoutproof", "--layoutproof-least-proved", "half"), words("cli.least_proved_form", found="half")),
        (("--layoutproof", "--layoutproof-baseline", "none.json"), "none.json"),
        (("--layoutproof-specs", "nowhere"), "nowhere: no such file or folder"),
    ],
)
def test_wrong_options(options: tuple[str, ...], said: str, tmp_path: Path) -> None:
    """Told at once, as pytest tells of a wrong option."""
    done = suite(tmp_path, *options, source="def test_a(): pass\n")
    assert done.returncode == 4
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


SPECS = """source: here
layouts:
  good: f32[3,5]{1,0:T(2,2)}
checks:
  - injective: good
  - name: the overlap
    injective: f32[3,5] strides (4,1)
  - covers: f32[3,5] strides (4,1)
    engine: bits
  - injectve: good
"""


def test_claims_of_spec_files_are_tests(tmp_path: Path) -> None:
    """One test per claim and per mistake; refuted, unknown and unreadable ones fail as `layoutproof check` says it."""
    (tmp_path / "a.yaml").write_text(SPECS)
    done = suite(tmp_path, "--layoutproof-specs", "a.yaml", source="def test_a(): pass\n")
    assert outcomes(done.stdout) == {"failed": 3, "passed": 2}, done.stdout + done.stderr
    assert "refuted  injective  the overlap   a.yaml:7:5" in done.stdout
    assert words("properties.injective_both", elements="(0, 4) and (1, 0)", place="offset 4") in done.stdout
    assert words("specs.unknown_key", key="injectve", near=words("core.did_you_mean", name="injective")) in done.stdout
    assert "FAILED a.yaml::covers:" in done.stdout
    chosen = suite(tmp_path, "--layoutproof-specs", "a.yaml", "-k", "good", source="def test_a(): pass\n")
    assert outcomes(chosen.stdout) == {"passed": 1}


def test_a_spec_file_without_checks_fails(tmp_path: Path) -> None:
    """Nothing asked is nothing proved."""
    (tmp_path / "a.yaml").write_text("source: here\nchecks: []\n")
    done = suite(tmp_path, "--layoutproof-specs", "a.yaml", source="def test_a(): pass\n")
    assert outcomes(done.stdout) == {"failed": 1, "passed": 1}
    assert "nothing to prove" in done.stdout


VALUES = """
import jax, jax.numpy as jnp, pytest
from jax.experimental import pallas as pl
from functools import partial

X = jax.ShapeDtypeStruct((16, 32), "float32")
spec = pl.BlockSpec((8, 32), lambda i: (i, 0))

def scaled(x, by=2, order=False):
    def body(x_ref, o_ref):
        o_ref[...] = by * (jnp.sort(x_ref[...], -1) if order else x_ref[...])
    call = pl.pallas_call(body, grid=(2,), in_specs=[spec], out_specs=spec, out_shape=X, interpret=True)
    return call(x) + 1

def reference(x):
    return x + x + 1

jitted = jax.jit(scaled)

pytestmark = pytest.mark.layoutproof(same_as=lambda x: 5 * x)

@pytest.mark.layoutproof(same_as=reference)
@pytest.mark.parametrize("k", [0, 1])
def test_right(k):
    jitted(jnp.ones((16, 32)))

@pytest.mark.layoutproof(same_as="test_suite:reference")
def test_right_by_its_place():
    jax.eval_shape(scaled, X)

@pytest.mark.layoutproof(same_as=reference)
def test_wrong():
    jax.eval_shape(partial(scaled, by=3), X)

@pytest.mark.layoutproof(same_as=reference)
def test_unknown():
    jax.eval_shape(partial(scaled, order=True), X)

@pytest.mark.layoutproof(same_as=lambda x: x[:8])
def test_other_shapes():
    jax.eval_shape(scaled, X)

@pytest.mark.layoutproof(same_as=reference)
def test_nothing_traced():
    pass

@pytest.mark.layoutproof(same_as=3)
def test_wrong_mark():
    jax.eval_shape(scaled, X)

def test_of_the_module():
    jax.eval_shape(scaled, X)
"""


def test_values_are_compared_with_a_reference(tmp_path: Path) -> None:
    """Sampled passes, refuted fails with the text, unknown is listed; a test that traces nothing compares nothing."""
    pytest.importorskip("jax", reason="JAX is not installed")
    done = suite(tmp_path, "--layoutproof", "-v", source=VALUES)
    found = {name: word for word, name in re.findall(r"(?m)^([A-Z]+) test_suite\.py::(\S+)", done.stdout)}
    assert {name for name, word in found.items() if word == "FAILED"} == {
        "test_wrong", "test_other_shapes", "test_nothing_traced", "test_wrong_mark", "test_of_the_module",
    }, done.stdout  # fmt: skip
    assert "refuted   scaled = reference" in done.stdout
    assert "512 of 512 elements differ" in done.stdout
    assert words("cli.mark_compares_nothing") in done.stdout
    assert words("cli.mark_same_as", found=3) in done.stdout
    assert "same: an order of data" in done.stdout
    counted = "3 proved, 0 sampled, 3 refuted, 1 unknown"
    assert f"7 functions compared with a reference, over the reals: {counted}" in done.stdout
