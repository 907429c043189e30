"""The section `kernels` of spec files: Pallas calls of user code as subjects of checks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import layoutproof
from layoutproof.cli import main as cli
from layoutproof.compiler.workers import Workers
from layoutproof.specs.check import Outcome, check_paths, run
from layoutproof.specs.spec import load, loads
from layoutproof.specs.spec_model import json_schema, kinds
from tests.cli.user_code import folder_with_kernels
from tests.said import stretch, words

pytestmark = pytest.mark.slow

HEAD = """source: here
kernels:
  mm: {trace: "users_kernels:copy", args: ["f32[1024,128]"], target: v5e}
  wrong: {trace: "users_kernels.py:copy", args: ["f32[1000,128]", 128]}
  two: {trace: "users_kernels:two", args: ["f32[1024,128]"]}
  mixed: {trace: "users_kernels:mixed", args: ["f32[1000,128]"]}
  named: {trace: "users_kernels:copy", args: ["f32[1024,128]"], kwargs: {block: 512}, call: body}
  hand: {trace: "users_kernels:by_hand", args: ["f32[8,128]"]}
  barrier: {trace: "users_kernels:barrier", args: ["f32[8,128]"]}
  none: {trace: "users_kernels:plain", args: ["f32[8]"]}
  table: {trace: "users_kernels:gather", args: ["s32[8]", "f32[64,128]"]}
  assumed: {trace: "users_kernels:gather", args: ["s32[8]", "f32[64,128]"], assume: ["0 <= prefetch0 < 8"]}
  raises: {trace: "users_kernels:raises", args: ["f32[8]"]}
checks:
"""


@pytest.fixture
def outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What comes of one check in a folder with user code."""
    pytest.importorskip("jax", reason="JAX is not installed")
    folder_with_kernels(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "users_kernels", raising=False)

    def one(check: str) -> Outcome:
        checks, errors = loads(f"{HEAD}  - {check}\n", "a.yaml")
        assert errors == []
        return run(checks[0])

    return one


@pytest.mark.parametrize(
    ("check", "status", "because"),
    [
        ("kernel: mm", "as expected", ""),
        ("blocks_in_bounds: mm", "as expected", ""),
        ("block_shape: mm", "as expected", ""),
        ("outputs_covered: named", "as expected", ""),
        ("kernel: two", "as expected", ""),
        ("kernel: two[1]", "as expected", ""),
        ("kernel: two[body]", "as expected", ""),
        (
            "kernel: mixed",
            "wrong",
            "outputs_covered: " + words("pallas.rows_unwritten", operand="outputs", rows="768:1000, 0:128"),
        ),
        ("outputs_covered: mixed", "wrong", words("pallas.rows_unwritten", operand="outputs", rows="768:1000, 0:128")),
        ("kernel: mixed[1]", "as expected", ""),
        ("kernel: assumed", "as expected", ""),
        ("blocks_in_bounds: wrong", "as expected", ""),
        (
            "kernel: wrong",
            "wrong",
            "outputs_covered: " + words("pallas.rows_unwritten", operand="outputs", rows="896:1000, 0:128"),
        ),
        ("outputs_covered: wrong", "wrong", "use pl.cdiv(1000, 128) = 8"),
        ("{kernel: wrong, expect: refuted}", "as expected", ""),
        ("{kernel: mm, expect: refuted}", "wrong", words("specs.verdict_differs", found="proved", expected="refuted")),
        ("{outputs_covered: wrong, expect: refuted, counterexample: {block: [7, 0]}}", "as expected", ""),
        ("{kernel: wrong, expect: refuted, counterexample: {block: [6, 0]}}", "wrong", "block=(7, 0)"),
        ("kernel: hand", "as expected", ""),
        ("kernel: barrier", "unknown", "manual DMA"),
        ("blocks_in_bounds: hand", "unknown", "manual DMA"),
        ("kernel: none", "unknown", stretch("specs.no_pallas_call")),
        ("kernel: table", "unknown", "0 <= prefetch0 < 8"),
        ("block_shape: two", "error", "hardware target; give one"),
        ("{block_shape: two, target: v5e}", "as expected", ""),
        ("{kernel: two, target: v99}", "error", "unknown target 'v99'"),
        (
            "kernel: two[2]",
            "error",
            words(
                "specs.unknown_call",
                function="users_kernels:two",
                call="2",
                calls="users_kernels:two makes 2: 0 body, 1 body",
            ),
        ),
        ("injective: mm", "error", stretch("specs.property_of_layouts", property="injective")),
        ("kernel: raises", "error", "RuntimeError: no such luck"),
        ("{locate: two, index: [1], is: {offset: 1}}", "error", stretch("specs.fact_needs_one_call")),
    ],
)
def test_checks_of_traced_calls(check: str, status: str, because: str, outcome: Any) -> None:
    """Each comes out with the right status, and says why where it is not as expected."""
    found = outcome(check)
    assert (found.status, because in f"{found.finding.reason} {found.finding.fix}") == (status, True), found
    assert bool(found.finding.reason) == (status != "as expected")


def test_any_kernel_can_be_asked_everything() -> None:
    """`kernel` is about kernels in the spec language too, and about nothing else."""
    text = """source: here
layouts:
  good: f32[512,128] blockspec (128, 128) (i) -> (i, 0) grid (4) out
checks:
  - kernel: good
  - kernel: f32[512,128] blockspec (128, 128) (i) -> (i, 0) grid (3) out
  - kernel: f32[512,128]
"""
    checks, errors = loads(text, "a.yaml")
    assert errors == []
    assert [run(check).status for check in checks] == ["as expected", "wrong", "error"]


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("mm: 3", "a.yaml:3:7: 'mm': expected a mapping; found 3"),
        ("mm: {args: []}", "'trace' is missing"),
        ("mm: {trace: f}", "'trace': expected MODULE:FUNCTION or FILE.py:FUNCTION; found 'f'"),
        (
            'mm: {trace: "a:f", arg: [3]}',
            "a.yaml:3:22: " + words("specs.unknown_key", key="arg", near=words("core.did_you_mean", name="args")),
        ),
        ('mm: {trace: "a:f", args: 3}', "'args': expected a list; found 3"),
        ('mm: {trace: "a:f", kwargs: [3]}', "'kwargs': expected a mapping; found [3]"),
        ('mm: {trace: "a:f", assume: [3]}', "'assume': expected text; found 3"),
        ('"m m": {trace: "a:f"}', "a.yaml:3:3: " + words("specs.kernel_name", name="m m")),
        ('good: {trace: "a:f"}', "a.yaml:3:3: " + words("specs.kernel_name_taken", name="good")),
    ],
)
def test_mistakes_in_the_section(section: str, said: str) -> None:
    """Told with file, line and column, in our words."""
    text = f"source: here\nkernels:\n  {section}\nlayouts:\n  good: f32[8]\nchecks:\n  - injective: good\n"
    _, errors = loads(text, "a.yaml")
    assert said in "\n".join(map(str, errors))


def test_an_unknown_name_lists_the_known() -> None:
    """Names of calls and of layouts are looked up together."""
    text = 'source: here\nkernels:\n  matmul: {trace: "a:f"}\nchecks:\n  - kernel: matmil\n  - kernel: nobody[1]\n'
    checks, errors = loads(text, "a.yaml")
    assert [error.problem for error in errors] == [
        words("specs.unknown_layout", name="matmil", near=words("core.did_you_mean", name="matmul"))
    ]
    assert [run(check).status for check in checks] == ["error"]


def test_reading_a_spec_imports_no_user_code(tmp_path: Path) -> None:
    """Only running a check imports what it is about; reading loads neither JAX nor numpy."""
    (tmp_path / "user.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "a.yaml").write_text('source: here\nkernels:\n  mm: {trace: "user:f"}\nchecks:\n  - kernel: mm\n')
    code = (
        "import sys\n"
        f"sys.path.insert(0, {str(Path(layoutproof.__file__).parents[1])!r})\n"
        "from layoutproof.specs.spec import load\n"
        "checks, errors = load('a.yaml')\n"
        "print(len(checks), errors, [m for m in ('jax', 'numpy', 'user', 'islpy', 'z3') if m in sys.modules])\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == "1 [] []\n", done.stderr


def test_in_several_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks of traced calls are plain data that other processes can run."""
    pytest.importorskip("jax", reason="JAX is not installed")
    folder_with_kernels(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text(f"{HEAD}  - kernel: mm\n  - kernel: wrong\n")
    assert [o.status for o in check_paths(["a.yaml"], Workers(2))] == ["as expected", "wrong"]


def test_the_command_shows_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """`layoutproof check` prints what a person needs, and exits 1."""
    pytest.importorskip("jax", reason="JAX is not installed")
    folder_with_kernels(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text(f"{HEAD}  - kernel: wrong\n")
    assert cli.run(["check", "a.yaml"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("refuted  kernel  wrong   a.yaml:15:5\n")
    assert "users_kernels.py:copy" in out


def test_editors_know_the_section() -> None:
    """The schema names it and the kind `kernel`."""
    schema = json_schema()
    assert "kernels" in schema["properties"]
    assert "kernel" in kinds()
    assert schema["properties"]["kernels"]["additionalProperties"]["required"] == ["trace"]


def test_load_gives_plain_data(tmp_path: Path) -> None:
    """What a check is about can be written to a lock file: mappings, lists, text and numbers."""
    (tmp_path / "a.yaml").write_text(f"{HEAD}  - kernel: two[1]\n")
    (check,), errors = load(tmp_path / "a.yaml")
    assert errors == []
    assert check.layouts == ({"pallas": {"trace": "users_kernels:two", "args": ["f32[1024,128]"], "call": 1}},)
