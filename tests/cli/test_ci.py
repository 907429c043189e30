"""`layoutproof ci`: one run for every report, repeated while nothing that it read changes; parts; the ratchet."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import layoutproof as lp
from layoutproof.answers.of_ci import Baseline, baseline_of
from tests.cli.in_one_process import Answer, commands
from tests.said import words

pytestmark = pytest.mark.slow
WITH_JAX = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="jax is not installed: kernels are traced"
)

ROOT = Path(__file__).resolve().parents[2]
GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull} | {
    f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}
CODE = """\
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from sizes import ROWS
with open("imported.txt", "a") as file:
    file.write("once\\n")
def body(x, o):
    o[...] = x[...]
def copy(x):
    with open("traced.txt", "a") as file:
        file.write("once\\n")
    spec = pl.BlockSpec((ROWS, 128), lambda i: (i, 0))
    return pl.pallas_call(body, grid=(4,), in_specs=[spec], out_specs=spec, out_shape=x)(x)
"""
SPEC = """\
source: us
layouts: {a: "f32[3,5]{1,0}"}
kernels: {copy: {trace: "mm.py:copy", args: ["f32[32,128]"]}}
checks:
  - injective: a
  - kernel: copy
  - blocks_in_bounds: copy
  - outputs_covered: copy
"""


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, env={**os.environ, **GIT}, check=True, capture_output=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a kernel and claims about it."""
    folder = tmp_path / "project"
    (folder / "specs").mkdir(parents=True)
    (folder / "specs" / "a.yaml").write_text(SPEC)
    (folder / "mm.py").write_text(CODE)
    (folder / "sizes.py").write_text("ROWS = 8\n")
    (folder / "README.md").write_text("one\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return folder


def alone(folder: Path, *arguments: str, cache: str = "cache") -> Answer:
    """The command in a process of its own, as a job runs it, with a cache beside the project."""
    environment = {**os.environ, **GIT, "PYTHONPATH": str(ROOT), "LAYOUTPROOF_CACHE": str(folder.parent / cache)}
    environment["LAYOUTPROOF_CACHE_KEY"] = "k" * 32
    command = [sys.executable, "-m", "layoutproof", "ci", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return Answer(done.returncode, done.stdout, done.stderr)


def times(folder: Path, name: str) -> int:
    """How often the project's code has run."""
    path = folder / name
    return len(path.read_text().splitlines()) if path.exists() else 0


REPORTS = ("--sarif=o.sarif", "--junit=o.xml", "--markdown=o.md", "--html=o.html", "--out-json=o.json")


def test_a_file_that_cannot_be_read_is_told_once(project: Path) -> None:
    """Both halves read it; the half of the changes says that it compares nothing. As JSON each half is whole."""
    (project / "specs" / "a.yaml").write_text("source: us\nchecks: [\n")
    found = alone(project, "--against", "main", "--out-json=o.json")
    assert found.code == 2
    assert found.out.count("specs/a.yaml:3:1") == 1
    assert words("gating.unreadable_files", files="specs/a.yaml") in found.out
    halves = json.loads((project / "o.json").read_text())
    assert [halves[half]["exit_code"] for half in ("check", "gate")] == [2, 2]
    assert [entry["id"] for entry in halves["gate"]["findings"]] == ["specs.not_yaml"]


@WITH_JAX
def test_one_run_writes_every_report_and_traces_once(project: Path) -> None:
    """Three claims about one function, the gate, six reports: its code runs once. Then nothing has changed."""
    first = alone(project, "--against", "main", *REPORTS)
    assert (first.code, times(project, "traced.txt"), times(project, "imported.txt")) == (0, 1, 1), first.err
    assert "4 claims as stated: 4 proved" in first.out
    assert "against main" in first.out
    reports = {name: (project / f"o.{name}").read_text() for name in ("sarif", "xml", "md", "html", "json")}
    document = json.loads(reports["json"])
    assert (document["share"], document["skipped"]) == ({"proved": 4, "claims": 4, "percent": 100.0}, [])
    assert {"check", "gate"} <= document.keys()
    assert '"version": "2.1.0"' in reports["sarif"]
    assert reports["xml"].startswith("<?xml")
    assert "4 of 4 proved" in reports["md"]
    (project / "README.md").write_text("two\n")
    (project / "o.md").unlink()
    second = alone(project, "--against", "main", *REPORTS)
    assert (second.code, times(project, "traced.txt"), times(project, "imported.txt")) == (0, 1, 1)
    assert "nothing changed since the last run" in second.out
    assert {name: (project / f"o.{name}").read_text() for name in reports} == reports


def changes(folder: Path) -> dict[str, tuple[str, str]]:
    """File -> what is in it then, and what has to come of it."""
    return {
        "sizes.py": ("ROWS = 16\n", "outputs_covered"),
        "mm.py": (CODE.replace("grid=(4,)", "grid=(3,)"), "outputs_covered"),
        "specs/a.yaml": (SPEC.replace("{1,0}", "{0,0}"), "a.yaml"),
    }


@WITH_JAX
@pytest.mark.parametrize("name", ["sizes.py", "mm.py", "specs/a.yaml"])
def test_what_the_run_read_makes_it_run_anew(name: str, project: Path) -> None:
    """The kernel, a module that it imports, the claims: a change is seen, and no old answer is given."""
    assert alone(project).code == 0
    text, said = changes(project)[name]
    (project / name).write_text(text)
    changed = alone(project)
    assert changed.code in (1, 2), changed.out
    assert said in changed.out
    # and back: one more run, with the old answer made anew
    git(project, "checkout", "-q", "--", name)
    assert alone(project).code == 0


@WITH_JAX
def test_a_module_that_is_new_shadows_another(project: Path) -> None:
    """A folder that Python looked through counts by its names."""
    (project / "mm.py").write_text(
        CODE.replace(
            "from sizes import ROWS", "try:\n    from more import ROWS\nexcept ImportError:\n    from sizes import ROWS"
        )
    )
    assert alone(project).code == 0
    (project / "more.py").write_text("ROWS = 16\n")
    assert alone(project).code == 1


def test_shards_are_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every claim is in one part, whatever their number; a claim that is added moves no other."""
    lines = [f"  - injective: 'f32[{n},5]{{1,0}}'\n" for n in range(1, 61)]
    # by the name from here, which is the same on every machine
    monkeypatch.chdir(tmp_path)
    spec = Path("a.yaml")

    def parts(of: int) -> list[list[str]]:
        runs = [lp.ci(spec, shard=f"{k}/{of}", trace=False) for k in range(1, of + 1)]
        return [[o.finding.subject for o in run.checked.outcomes] for run in runs if run.checked is not None]

    spec.write_text("checks:\n" + "".join(lines))
    whole = [o.finding.subject for o in lp.check(spec).outcomes]
    for of in (1, 2, 7):
        found = parts(of)
        assert sorted(subject for part in found for subject in part) == sorted(whole)
        assert of == 1 or all(2 < len(part) < 45 for part in found)
    before = parts(7)
    spec.write_text("checks:\n  - injective: 'f32[2,7]{1,0}'\n" + "".join(lines))
    assert all(set(old) <= set(new) for old, new in zip(before, parts(7), strict=True))
    for wrong in ("0/2", "3/2", "1", "a/b", "1/0"):
        with pytest.raises(lp.LayoutError, match="a shard is written 2/8"):
            lp.ci(spec, shard=wrong)


def test_a_share_that_is_asked_for(tmp_path: Path) -> None:
    """Too few proved is 1, with the numbers; a share of a shard is no share."""
    (tmp_path / "specs").mkdir()
    claims = "checks:\n  - injective: 'f32[3,5]{1,0}'\n  - injective: 'f32[3,5]{1,0}'\n    expect: unknown\n"
    (tmp_path / "specs" / "a.yaml").write_text(
        "checks:\n  - injective: 'f32[3,5]{1,0}'\n  - kernel: {pallas: {trace: 'a:f'}}\n"
    )
    no_trace = ["ci", "--no-trace", "--no-cache"]
    (few, enough, wrong, part), _ = commands(
        tmp_path,
        [*no_trace, "--fail-under", "90%"],
        [*no_trace, "--fail-under", "50%"],
        [*no_trace, "--fail-under", "90"],
        [*no_trace, "--fail-under", "90%", "--shard", "1/2"],
    )
    assert claims
    assert (few.code, "1 of 2 are proved, 50 %, and 90 % is asked for" in few.out) == (1, True)
    assert (enough.code, "skipped: 1 claim of which code would have to be run" in enough.out) == (3, True)
    assert (wrong.code, part.code) == (2, 2)


def test_the_baseline_grows_by_a_review_alone(project: Path) -> None:
    """What is unknown on main and listed there is accepted; what the change adds to the list counts with a label."""
    unknown = "checks:\n  - kernel: {pallas: {trace: 'a:f'}}\n"
    more = "  - kernel: {pallas: {trace: 'a:g'}}\n"
    (project / "specs" / "a.yaml").write_text(unknown)
    given = ("--no-trace", "--no-cache", "--baseline", "base.json")
    assert alone(project, "--no-trace", "--no-cache").code == 3
    assert alone(project, "--no-trace", "--no-cache", "--write-baseline", "base.json").code == 3
    here = alone(project, *given)
    assert (here.code, "1 unknown accepted by the baseline, and not proved" in here.out) == (0, True)
    git(project, "add", ".")
    git(project, "commit", "-qm", "two")
    against = (*given, "--against", "main", "--only", "check")
    assert alone(project, *against).code == 0
    # the change adds a claim that is unknown, and lists it itself
    (project / "specs" / "a.yaml").write_text(unknown + more)
    assert alone(project, "--no-trace", "--no-cache", "--write-baseline", "base.json").code == 3
    by_itself = alone(project, "--no-trace", "--no-cache", "--baseline", "base.json", "--against", "main")
    assert (by_itself.code, "1 more unknown than at main" in by_itself.out) == (3, True)
    reviewed = alone(
        project, "--no-trace", "--no-cache", "--baseline", "base.json", "--against", "main", "--accept-approvals"
    )
    assert "2 unknown accepted by the baseline" in reviewed.out
    # nor does a refutation become acceptable, whatever the list says
    (project / "specs" / "a.yaml").write_text("checks:\n  - injective: {strided: 'f32[3,5] strides (4,1)'}\n")
    run = lp.ci(project / "specs", trace=False)
    assert baseline_of(run) == str(Baseline(0, 1, {})) + "\n"


def test_the_share_of_the_baseline_may_not_fall(project: Path) -> None:
    """All was proved, and a claim is added that is not: 1, by the baseline's own share."""
    (project / "base.json").write_text(str(Baseline(4, 4, {})))
    (project / "specs" / "a.yaml").write_text(
        "checks:\n  - kernel: {pallas: {trace: 'a:f'}}\n  - injective: 'f32[3]{0}'\n"
    )
    fell = alone(project, "--no-trace", "--no-cache", "--baseline", "base.json")
    assert (fell.code, "1 of 2 are proved, 50 %, and 100 % is asked for by base.json" in fell.out) == (1, True)
    (project / "base.json").write_text('{"version": 1}')
    assert alone(project, "--no-trace", "--no-cache", "--baseline", "base.json").code == 2
