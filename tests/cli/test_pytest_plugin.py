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
    """Each wrong call is a failure of its own beside the test's outcome, and the calls are counted."""
    pytest.importorskip("jax", reason="JAX is not installed")
    folder_with_kernels(tmp_path)
    done = suite(tmp_path, "--layoutproof")
    assert outcomes(done.stdout) == {"failed": 3, "passed": 5}, done.stdout + done.stderr
    assert done.returncode == 1
    assert "test_wrong [layoutproof]" in done.stdout
    assert "test_wrong_in_a_fixture [layoutproof]" in done.stdout
    assert "test_right [layoutproof]" not in done.stdout
    assert "no program writes outputs[768:1000, 0:128] (block (3, 0))" in done.stdout
    assert "4 Pallas calls in 4 tests: 1 proved, 2 refuted, 1 unknown" in done.stdout
    assert "unknown  " in done.stdout
    assert "manual DMA" in done.stdout
    without = suite(tmp_path)
    assert outcomes(without.stdout) == {"failed": 1, "passed": 5}
    assert "Pallas call" not in without.stdout
    assert "[layoutproof]" not in without.stdout


def test_with_several_processes(tmp_path: Path) -> None:
    """With xdist the failures arrive, and the counts are added up."""
    pytest.importorskip("jax", reason="JAX is not installed")
    pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    folder_with_kernels(tmp_path)
    done = suite(tmp_path, "--layoutproof", "--layoutproof-target", "v5e", "-n", "2")
    assert outcomes(done.stdout) == {"failed": 3, "passed": 5}, done.stdout + done.stderr
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
        (("--layoutproof-target", "v5e"), "--layoutproof-target needs --layoutproof"),
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
    assert "(0, 4) and (1, 0) are both stored at offset 4" in done.stdout
    assert "unknown key 'injectve'; did you mean 'injective'?" in done.stdout
    assert "FAILED a.yaml::covers:" in done.stdout
    chosen = suite(tmp_path, "--layoutproof-specs", "a.yaml", "-k", "good", source="def test_a(): pass\n")
    assert outcomes(chosen.stdout) == {"passed": 1}


def test_a_spec_file_without_checks_fails(tmp_path: Path) -> None:
    """Nothing asked is nothing proved."""
    (tmp_path / "a.yaml").write_text("source: here\nchecks: []\n")
    done = suite(tmp_path, "--layoutproof-specs", "a.yaml", source="def test_a(): pass\n")
    assert outcomes(done.stdout) == {"failed": 1, "passed": 1}
    assert "there is nothing to prove" in done.stdout
