"""Answers between jobs: parts of a run with folders of their own, other checkouts, folders that are put together."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax", reason="tracing a kernel needs the extra [jax]")

import layoutproof as lp
from layoutproof.compiler import cache
from layoutproof.pallas import findings, kept_judgements
from layoutproof.pallas.from_jax.user import calls_of
from layoutproof.pallas.kept_judgements import kept
from layoutproof.questions import cached
from tests.cli.test_ci import alone, git

pytestmark = pytest.mark.slow

CODE = """\
from jax.experimental import pallas as pl

ROWS = 8


def body(x, o):
    o[...] = x[...] * 2


def rows(x):
    spec = pl.BlockSpec((ROWS, 128), lambda i: (i, 0))
    return pl.pallas_call(body, grid=(4,), in_specs=[spec], out_specs=spec, out_shape=x)(x)


def twice(x):
    return x * 2


def step(x):
    return x @ x.T
"""
SPEC = """\
source: us
kernels:
  rows: {trace: "mm.py:rows", args: ["f32[32,128]"], target: v5e}
  few: {trace: "mm.py:rows", args: ["f32[64,128]"]}
  twice: {trace: "mm.py:twice"}
programs:
  step: {function: "mm.py:step", args: ["f32[64,128]"], target: cpu}
checks:
  - injective: "f32[300,500]{1,0:T(8,128)}"
  - kernel: rows
  - body_in_bounds: rows
  - outputs_covered: few
    expect: refuted
  - {same: rows, as: twice}
  - {peak_memory: step, at_most: 12GiB}
"""


@pytest.fixture(autouse=True)
def _everything_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """However quick it was."""
    monkeypatch.setattr(cached, "MIN_SECONDS_TO_CACHE", 0.0)
    monkeypatch.setattr(kept_judgements, "MIN_SECONDS", 0.0)


def checkout(folder: Path) -> Path:
    """The project in a folder of its own, as a job has it."""
    (folder / "specs").mkdir(parents=True)
    (folder / "specs" / "a.yaml").write_text(SPEC)
    (folder / "mm.py").write_text(CODE)
    git(folder, "init", "-q")
    return folder


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """Runs the claims of a checkout with a folder of answers, and gives what was found, as data."""

    def run(project: Path, kept: str, shard: str = "") -> list[Any]:
        monkeypatch.chdir(project)
        monkeypatch.setenv("LAYOUTPROOF_CACHE", str(tmp_path / kept))
        run = lp.ci("specs", shard=shard)
        assert run.checked is not None
        said = json.dumps([[o.found, o.finding.as_dict(), str(o.answer)] for o in run.checked.outcomes])
        # what is said of files is said of this checkout's
        assert [other.name for other in tmp_path.iterdir() if f"{other}/" in said and other != project] == []
        return json.loads(said.replace(f"{project}/", ""))  # type: ignore[no-any-return]

    return run


@contextlib.contextmanager
def written(folder: Path) -> Iterator[Callable[[], tuple[set[str], set[str]]]]:
    """Within it the entries that were there before: (those that are other files now, those that are new now)."""
    with contextlib.ExitStack() as stack:
        # a file that is open keeps its number to itself
        before = {path: stack.enter_context(path.open()) for path in folder.rglob("*.json")}

        def now() -> tuple[set[str], set[str]]:
            others = {p for p, held in before.items() if not os.path.samestat(os.fstat(held.fileno()), p.stat())}
            return {p.name for p in others}, {p.name for p in folder.rglob("*.json")} - {p.name for p in before}

        yield now


def restored(saved: Path, into: Path) -> None:
    """A folder as the cache of a runner saves and brings it back: packed by tar, and unpacked over what is there."""
    packed = saved.with_suffix(".tar")
    subprocess.run(["tar", "-cf", packed, "-C", saved, "."], check=True)
    into.mkdir(mode=0o700, exist_ok=True)
    subprocess.run(["sh", "-c", f"umask 022; tar -xf {packed} -C {into}"], check=True)


def test_parts_share_what_they_proved(tmp_path: Path, answers: Callable[..., list[Any]]) -> None:
    """Two parts in two checkouts, with a folder each; a third run with both folders in one makes no answer anew."""
    one, two, three = (checkout(tmp_path / name) for name in ("one", "two-with-a-longer-name", "three"))
    parts = [*answers(one, "first", "1/2"), *answers(two, "second", "2/2")]
    assert 0 < len(parts) == 6 > len(answers(two, "second", "2/2")) > 0
    restored(tmp_path / "second", tmp_path / "first")
    with written(tmp_path / "first") as now:
        whole = answers(three, "first")
        assert now() == (set(), set())
        assert sorted(map(str, whole)) == sorted(map(str, parts))
        assert whole == answers(three, "none yet")
        assert [found for found, *_ in whole].count("refuted") == 1
        # a change of the code that claims speak of is seen, and what does not depend on it is not made anew
        (three / "mm.py").write_text(CODE.replace("= 8", "= 16"))
        changed = answers(three, "first")
        assert [(a[0], b[0]) for a, b in zip(whole, changed, strict=True) if a[0] != b[0]] == [
            ("proved", "refuted"), ("refuted", "proved"), ("proved", "refuted"),
        ]  # fmt: skip
        others, new = now()
        assert (others, bool(new)) == (set(), True)


@pytest.mark.parametrize("what", ["cut", "edited", "of another tool", "of another secret"])
def test_what_is_damaged_is_not_believed(
    what: str, tmp_path: Path, answers: Callable[..., list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an entry that is no longer as it was written the answer is made anew, and is the same."""
    one, two = checkout(tmp_path / "one"), checkout(tmp_path / "two")
    with monkeypatch.context() as patch:
        if what == "of another secret":
            patch.setenv("LAYOUTPROOF_CACHE_KEY", "x" * 32)
        if what == "of another tool":
            patch.setattr(cache, "tool", lambda: "0" * 32)
        first = answers(one, "kept")
    monkeypatch.setenv("LAYOUTPROOF_CACHE", str(tmp_path / "kept"))
    every = sorted((tmp_path / "kept").rglob("*.json"))
    for path in every:
        data = path.read_bytes()
        if what == "cut":
            path.write_bytes(data[: len(data) // 2])
        if what == "edited":
            path.write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
    with written(tmp_path / "kept") as now:
        assert answers(two, "kept") == first
        others, new = now()
    if what == "of another tool":
        # but for what a process of its own keeps, which is this tool
        assert (len(others), len(new)) == (0, len(every) - 1)
    else:
        assert (others, new) == ({path.name for path in every}, set())


def test_another_checkout_repeats_a_whole_run(tmp_path: Path) -> None:
    """Nothing is imported there; what is another file there makes it run."""
    one, two = checkout(tmp_path / "one"), checkout(tmp_path / "two")
    for folder in (one, two):
        (folder / "mm.py").write_text(f'{CODE}\n\nopen("ran", "a").close()\n')
    first = alone(one, "--out-json=o.json")
    assert (first.code, (one / "ran").exists()) == (0, True), first.out
    assert (alone(two, "--out-json=o.json").code, (two / "ran").exists()) == (0, False)
    assert json.loads((two / "o.json").read_text()) == json.loads((one / "o.json").read_text())
    (two / "mm.py").write_text((two / "mm.py").read_text().replace("= 8", "= 16"))
    assert (alone(two, "--out-json=o.json").code, (two / "ran").exists()) == (1, True)


def test_a_call_that_could_not_be_judged_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect of ours is no answer about the call: the next run asks again."""
    monkeypatch.chdir(checkout(tmp_path / "one"))
    monkeypatch.setenv("LAYOUTPROOF_CACHE", str(tmp_path / "kept"))
    (call,) = calls_of("mm.py:rows", ("f32[32,128]",), None)
    asked = {"target": None, "compiler": None}

    def broken(*_: object, **__: object) -> Any:
        raise RuntimeError("broken")

    with monkeypatch.context() as patch:
        patch.setattr(findings, "judge", broken)
        assert kept(call, asked, lambda: findings.judged(call)).verdict is lp.Verdict.UNKNOWN
    assert kept(call, asked, lambda: findings.judged(call)).verdict is lp.Verdict.PROVED


def test_a_text_that_is_the_same_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder counts where a path begins with it, and nowhere else; a text with marks of its own is never kept."""
    here, libraries = tmp_path / "here", tmp_path / "here" / ".venv" / "site-packages"
    libraries.mkdir(parents=True)
    (here / ".git").mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", [*sys.path, "/x"])
    monkeypatch.setattr(cache.sys, "path", [str(libraries)])
    mark, library = cache._MARKS
    monkeypatch.setattr(cache, "tool", lambda: "0" * 32)
    for text, same in (
        (f"{here}/a.py:3", f"{mark}/a.py:3"),
        (f'"{here}"', f'"{mark}"'),
        (f"at {here}/a.py, {here}/b.py", f"at {mark}/a.py, {mark}/b.py"),
        (f"{libraries}/jax/a.py", f"{library}/jax/a.py"),
        (f"{here}.yaml", f"{here}.yaml"),
        (f"{here}-old/a.py", f"{here}-old/a.py"),
        (f"/x{here}/a.py", f"/x{here}/a.py"),
    ):
        assert cache.anywhere(text) == same
    monkeypatch.setenv("LAYOUTPROOF_CACHE", str(tmp_path / "kept"))
    cache.put(["of", f"{here}/a.py"], {f"{here}/a.py": [f"{libraries}/b.py", 1, None]})
    assert cache.get(["of", f"{here}/a.py"]) == {f"{here}/a.py": [f"{libraries}/b.py", 1, None]}
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    monkeypatch.chdir(other)
    assert cache.get(["of", f"{here}/a.py"]) is None
    assert cache.get(["of", f"{other}/a.py"]) == {f"{other}/a.py": [f"{libraries}/b.py", 1, None]}
    # without a folder of libraries there is nothing to put back
    monkeypatch.setattr(cache.sys, "path", [])
    assert cache.get(["of", f"{other}/a.py"]) is None
    for key, value in ((["of", f"{mark}/a.py"], 1), (["it"], f"{mark}/a.py")):
        cache.put(key, value)
        assert cache.get(key) is None
    assert len(list((tmp_path / "kept").rglob("*.json"))) == 1


def test_where_a_folder_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its entries are read, and when they were last of use is not written down."""
    monkeypatch.setenv("LAYOUTPROOF_CACHE", str(tmp_path / "kept"))
    cache.put(["a"], 1)
    (path,) = (tmp_path / "kept").rglob("*.json")
    os.utime(path, (1, 1))
    assert (cache.get(["a"]), path.stat().st_mtime > 1) == (1, True)

    def denied(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "utime", denied)
    assert cache.get(["a"]) == 1
    shutil.rmtree(tmp_path / "kept")
