"""The lock file of dumps and of Pallas calls of user code: in step with what is here, and every drift seen."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import pytest

from layoutproof.compiler.workers import Workers
from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Report
from layoutproof.gating import drift, lock
from layoutproof.gating.lock_head import HEAD, NAME
from layoutproof.gating.states import here
from tests.gating.mutants import unnamed
from tests.gating.test_computed import TEXT
from tests.gating.test_programs import SMALL
from tests.recorded import DUMPS, dump
from tests.said import stretch

pytestmark = pytest.mark.slow

USER = """
import jax
from jax.experimental import pallas as pl

def mm(x):
    def body(x, o):
        o[...] = x[...]
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(body, grid=(GRID,), in_specs=[spec], out_specs=spec, out_shape=shape)(x)
"""
SPEC = 'source: x\nkernels:\n  mm: {trace: "user.py:mm", args: ["f32[32,128]"]}\nchecks:\n  - kernel: mm\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAYOUTPROOF_CACHE", str(tmp_path / "cache"))
    return tmp_path


def locked(name: str, text: str) -> None:
    """A file, and the lock of it."""
    Path(name).write_text(text)
    Path(NAME).write_text(lock.write(here([name]).files, [name]))


def drifted(same: bool = False) -> Report:
    """What the gate says against the lock. same: whether it is to compute what it did."""
    return drift.compare(Path(NAME), {}, datetime.date(2026, 11, 21), Workers(), same=same)


def kinds() -> list[tuple[str, str]]:
    return [(f.question, f.subject) for f in drifted().findings]


COPY = "  %copy.9 = f32[64,256]{0,1:T(8,128)} copy(%x.1)\n"


def test_a_dump_in_step(folder: Path) -> None:
    """Nothing, whatever the numbers of its instructions; the lock's lines are sorted and each is one fact."""
    locked("a.txt", SMALL.replace("  ROOT %bitcast.10", f"{COPY}  ROOT %bitcast.10"))
    assert kinds() == []
    text = Path("a.txt").read_text()
    Path("a.txt").write_text(re.sub(r"%([\w\-]+)\.(\d+)\b", lambda m: f"%{m[1]}.{int(m[2]) + 1000}", text))
    assert kinds() == []
    lines = Path(NAME).read_text().splitlines()
    assert lines[1:] == sorted(lines[1:])
    assert '["a.txt", "copy", ["copy", "", "f32[64,256]{1,0:T(8,128)}", "f32[64,256]{0,1:T(8,128)}", 0], 1]' in lines


DRIFTS = {
    "an entry layout": (
        ("->f32[64,256]{1,0:T(8,128)}}", "->f32[64,256]{0,1:T(8,128)}}"),
        [("abi", "result 0"), ("abi", "result 0")],
        [("abi", "result 0"), ("abi", "result 0")],
    ),
    "a copy of a parameter": (
        ("  ROOT %bitcast.10", f"{COPY}  ROOT %bitcast.10"),
        [("relaid_parameter", "copy of parameter 0")],
        [("vanished_copy", "copy of parameter 0")],
    ),
    "another sharding": (
        ("sharding={devices=[2,1]<=[2]}", "sharding={devices=[1,2]<=[2]}"),
        [("resharded", "parameter 0 (x)")],
        [("resharded", "parameter 0 (x)")],
    ),
    "a bitcast that reorders": (
        ("%bitcast.9 = f32[8,8,256]{2,1,0:T(8,128)}", "%bitcast.9 = f32[8,8,256]{2,1,0:T(4,128)}"),
        [("moved", "bitcast bitcast")],
        [],
    ),
}


@pytest.mark.parametrize("name", DRIFTS)
def test_a_dump_that_drifted(name: str) -> None:
    """Each change with the class that two dumps compared would give it; and back again."""
    (old, new), there, back = DRIFTS[name]
    changed = SMALL.replace(old, new, 1)
    locked("a.txt", SMALL)
    Path("a.txt").write_text(changed)
    assert kinds() == there
    locked("a.txt", changed)
    Path("a.txt").write_text(SMALL)
    assert kinds() == back


WRITTEN = (
    (" subtract(%b", " subtract(%b", []),
    (" subtract(%b", " add(%b", ["computation_differs"]),
    ("calls=%rectified", "calls=%grown", ["computation_differs"]),
    ("constant(0)", "constant(-1)", ["computation_differs"]),
)


@pytest.mark.parametrize(("old", "new", "classes"), WRITTEN)
def test_what_a_dump_computes(old: str, new: str, classes: list[str]) -> None:
    """A lock knows that it is written otherwise; whether values differ two texts say, and it says so."""
    locked("a.txt", TEXT)
    assert old in TEXT
    for text in (TEXT.replace(old, new), unnamed(TEXT.replace(old, new))):
        Path("a.txt").write_text(text)
        found = drifted()
        assert [each.question for each in found.findings] == classes
        assert found.exit_code == 0
        assert all(stretch("gating.labelled_otherwise") in f.reason and "gate OLD NEW" in f.fix for f in found.findings)
        (asked,) = [each.question for each in drifted(same=True).findings] or [""]
        assert asked == ("function_unknown" if classes else "")
        assert drifted(same=True).exit_code == (3 if classes else 0)


def test_a_lock_without_what_is_computed(folder: Path) -> None:
    """One of an earlier version, or of other labels: unknown where it is asked, and no word of it else."""
    for told in ("", '"0:ab"'):
        locked("a.txt", TEXT)
        lines = Path(NAME).read_text().splitlines(keepends=True)
        (mine,) = [line for line in lines if '"computes"' in line]
        other = mine.rpartition(", ")[0] + f", {told}]\n" if told else ""
        Path(NAME).write_text("".join(other if line == mine else line for line in lines))
        assert kinds() == []
        found = drifted(same=True)
        assert found.exit_code == 3
        assert "what it computes is not in the lock file" in found.findings[0].reason


def test_dumps_that_come_and_go() -> None:
    """A dump in a locked folder that is new, and one that is gone."""
    Path("d").mkdir()
    locked("d/a.txt", SMALL)
    Path("d/b.txt").write_text(SMALL)
    Path(NAME).write_text(lock.write(here(["d/a.txt"]).files, ["d"]))
    assert [(f.question, f.relpath) for f in drifted().findings] == [("added", "d/b.txt")]
    Path("d/a.txt").unlink()
    assert [(f.question, f.relpath) for f in drifted().findings] == [("removed", "d/a.txt"), ("added", "d/b.txt")]
    Path("d/b.txt").write_text(SMALL[:200])
    assert drifted().exit_code == 1
    with pytest.raises(LayoutError, match=r"b\.txt:4: not an instruction"):
        lock.write(here(["d"]).files, ["d"])


@pytest.mark.parametrize(
    "line",
    [
        '["a.txt", "copy", ["copy"], 1]',
        '["a.txt", "parameter", 0, 7]',
        '["a.txt", "x", 1, 2]',
        '["a.txt", "copy", ["copy", "", "f32[2]", "f32[2]", -1], 1000000000]',
        '[1, "layout", "a", "f32[2]"]',
        '["s.yaml", "layout", ["a"], "f32[2]"]',
        "[" * 3000,
    ],
)
def test_lines_that_no_lock_has(line: str) -> None:
    """Refused with their number."""
    locked("a.txt", SMALL)
    text = Path(NAME).read_text()
    with pytest.raises(LayoutError, match=re.escape(stretch("gating.no_lock_line"))) as error:
        lock.locked(f"{text}{line}\n", "x.lock")
    assert error.value.line == len(text.splitlines()) + 1


def test_a_lock_of_nothing_is_not_green(folder: Path) -> None:
    """Nothing locked and nothing there: nothing was compared."""
    Path(NAME).write_text(f'{HEAD} ["nowhere"]\n')
    with pytest.raises(LayoutError, match=re.escape(stretch("gating.locks_nothing", where="nowhere"))):
        drifted()


@pytest.mark.parametrize("name", DUMPS)
def test_real_dumps_in_step(name: str) -> None:
    """The compiler's own output against its lock: nothing."""
    locked("a.txt", dump(name))
    assert kinds() == []


def test_kernels_of_user_code(folder: Path) -> None:
    """The spec file is the same, the code is not: the drift is seen, also after an answer that all was in step."""
    pytest.importorskip("jax", reason="JAX is not installed")
    Path("user.py").write_text(USER.replace("GRID", "4"))
    locked("s.yaml", SPEC)
    assert '"layout", "mm:body", {"kernel"' in Path(NAME).read_text()
    assert kinds() == kinds() == []
    Path("user.py").write_text(USER.replace("GRID", "3"))
    assert {kind for kind, _ in kinds()} == {"reshaped", "kernel", "lost", "refuted"}
    Path("user.py").write_text("")
    assert drifted().exit_code == 2
