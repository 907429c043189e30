"""`layoutproof init` as a new user runs it: in an empty folder, a repository, among others' files, where it may not."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import jsonschema
import pytest
import yaml

import layoutproof as lp
from layoutproof.answers.proposed_call import arguments_of
from tests.cli.in_one_process import Answer, commands
from tests.said import words

pytestmark = pytest.mark.slow

FILES = (
    "specs/layouts.yaml",
    ".layoutproof/spec.schema.json",
    ".github/workflows/layoutproof.yml",
    ".pre-commit-config.yaml",
)
SECRET = {"cache-key": "${{ secrets.LAYOUTPROOF_CACHE_KEY }}"}
KERNEL = """\
from jax.experimental import pallas as pl
def matmul(x):
    def inner(y):
        return pl.pallas_call(body, grid=(1,))(y)
    return inner(x)
"""


def git(folder: Path, *arguments: str) -> None:
    """A git command without the user's own settings."""
    who = {f"GIT_{part}_{what}": "a@b" for part in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", *arguments], cwd=folder, env={**os.environ, **who, **quiet}, check=True, capture_output=True)


def one(folder: Path, *arguments: str) -> Answer:
    """One command in a process of its own."""
    ((answer,), _) = commands(folder, list(arguments))
    return answer


def files(folder: Path) -> dict[str, str]:
    """Every file below a folder, outside of git."""
    paths = [path for path in folder.rglob("*") if path.is_file() and ".git" not in path.relative_to(folder).parts]
    return {path.relative_to(folder).as_posix(): path.read_text() for path in paths}


def test_in_an_empty_folder(tmp_path: Path) -> None:
    """Four files; the claims hold as they are; a second run changes nothing."""
    (first, checked, again), _ = commands(tmp_path, ["init"], ["check"], ["init"])
    assert (first.code, first.err) == (0, "")
    assert [line.split()[1] for line in first.out.splitlines() if line.startswith("written")] == list(FILES)
    assert first.out.splitlines()[-1] == "next      layoutproof check"
    assert "no git repository" in first.out
    assert checked.code == 0
    assert checked.out.startswith("5 claims as stated: 4 proved, 1 counterexample as expected")
    assert set(files(tmp_path)) == set(FILES)
    assert (again.code, "written" in again.out, again.out.count("kept")) == (0, False, 4)


def test_the_files_are_what_their_readers_take(tmp_path: Path) -> None:
    """The schema of the first line takes the spec, also with comments made keys; the other files say what to run."""
    lp.init(tmp_path)
    spec = (tmp_path / FILES[0]).read_text()
    named = spec.splitlines()[0].partition("$schema=")[2]
    schema = json.loads((tmp_path / "specs" / named).read_text())
    jsonschema.validate(yaml.safe_load(spec), schema)
    commented = ("# - ", "# kernels", "#   mm")
    lines = (line.replace("# ", "", 1) if line.strip().startswith(commented) else line for line in spec.splitlines())
    whole = yaml.safe_load("\n".join(lines))
    assert {"same_map", "bitcast", "kernel"} <= {next(iter(check)) for check in whole["checks"]}
    assert "layoutproof gate --lock" in spec
    assert set(whole["kernels"]) == {"mm"}
    jsonschema.validate(whole, schema)
    (hook,) = yaml.safe_load((tmp_path / FILES[3]).read_text())["repos"][0]["hooks"]
    assert (hook["entry"], hook["pass_filenames"]) == ("layoutproof check specs", False)
    jobs = yaml.safe_load((tmp_path / FILES[2]).read_text())["jobs"]
    assert {"check": "specs", "paths": "specs", **SECRET} in [step.get("with") for step in jobs["layouts"]["steps"]]


def test_in_a_repository_it_says_what_there_is_to_prove(tmp_path: Path) -> None:
    """Pallas calls with their functions and HLO dumps, but not those of environments; the gate takes what it wrote."""
    git(tmp_path, "init")
    for name, text in {
        "pkg/k.py": KERNEL,
        "env/pyvenv.cfg": "",
        "env/lib/k.py": KERNEL,
        "broken.py": "pallas_call(",
        "dumps/a.txt": "HloModule m\n",
        "notes.txt": "nothing",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    answer = json.loads(one(tmp_path, "init", "--json").out)
    assert answer["kernels"] == [{"file": "pkg/k.py", "line": 4, "function": "matmul"}]
    assert (answer["dumps"], answer["git"]) == (["dumps/a.txt"], True)
    matmul = 'layoutproof kernels pkg/k.py:matmul --args "f32[256,256]"'
    assert answer["next"] == ["layoutproof check", matmul, "layoutproof hlo dumps/a.txt"]
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-m", "first")
    gated = one(tmp_path, "gate", "specs", "--against", "HEAD")
    assert (gated.code, "no change in 1 file" in gated.out) == (0, True)
    inside = one(tmp_path, "init", "pkg")
    assert (inside.code, f"is inside of the repository {tmp_path}; run it there" in inside.err) == (2, True)


CALLS = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
import functools

ROWS = 8

def _copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]

def _mm(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] @ y_ref[...]

def shift_add(x):
    return pl.pallas_call(
        _copy, grid=(x.shape[0] // ROWS,), in_specs=[pl.BlockSpec((ROWS, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((ROWS, 128), lambda i: (i, 0)), out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

def matmul(x, y, bm=128, bn=256):
    m, k = x.shape
    n = y.shape[1]
    return pl.pallas_call(
        _mm, grid=(m // bm, n // bn), in_specs=[pl.BlockSpec((bm, 512), lambda i, j: (i, 0)),
        pl.BlockSpec((512, bn), lambda i, j: (0, j))], out_specs=pl.BlockSpec((bm, bn), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype))(x, y)

def fixed(x):
    spec = pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0))
    return pl.pallas_call(_copy, grid=(16,), in_specs=[spec] * 1, out_specs=spec, out_shape=x)(x)

def whole(x):
    return pl.pallas_call(_copy, out_shape=jax.ShapeDtypeStruct((24, 128), jnp.float32))(x)
"""
PROPOSED = {
    "shift_add": ("f32[32,128]",),
    "matmul": ("f32[512,512]", "f32[512,1024]"),
    "fixed": ("f32[16,8,128]",),
    "whole": ("f32[24,128]",),
}


def test_the_call_that_is_proposed_has_arguments_and_works(tmp_path: Path) -> None:
    """From the text alone: nothing is imported until the user runs it, and the workflow installs JAX for it."""
    for name, arguments in PROPOSED.items():
        assert arguments_of(CALLS, name) == arguments
    git(tmp_path, "init")
    (tmp_path / "kern.py").write_text(CALLS)
    (first,), _ = commands(tmp_path, ["init"])
    assert 'next      layoutproof kernels kern.py:shift_add --args "f32[32,128]"' in first.out.splitlines()
    assert words("answers.lock_for_kernels", command="layoutproof gate --lock") in first.out
    steps = yaml.safe_load((tmp_path / FILES[2]).read_text())["jobs"]["layouts"]["steps"]
    assert {"check": "specs", "paths": "specs", **SECRET, "packages": "jax"} in [step.get("with") for step in steps]
    pytest.importorskip("jax", reason="JAX is not installed")
    calls = [["kernels", f"kern.py:{name}", "--args", ", ".join(shapes)] for name, shapes in PROPOSED.items()]
    answers, _ = commands(tmp_path, *calls)
    assert [answer.code for answer in answers] == [0] * len(calls), [answer.out + answer.err for answer in answers]


def test_the_workflow_installs_what_the_specs_need(tmp_path: Path) -> None:
    """Programs for a TPU need its compiler too; layouts alone need nothing."""
    needs = {
        "layouts: {a: 'f32[4]{0}'}\n": None,
        "kernels: {k: {trace: 'k.py:f', args: ['f32[8]']}}\n": "jax",
        "checks: [{kernel: {pallas: {trace: 'k.py:f'}}}]\n": "jax",
        "programs: {p: {function: 'm:f', args: ['f32[8]']}}\n": "jax",
        "programs: {p: {function: 'm:f', args: ['f32[8]'], target: cpu}}\n": "jax",
        "programs: {p: {function: 'm:f', args: ['f32[8]'], target: v5e}}\n": "jax libtpu",
    }
    for number, (text, packages) in enumerate(needs.items()):
        (tmp_path / f"{number}" / "specs").mkdir(parents=True)
        (tmp_path / f"{number}" / "specs" / "a.yaml").write_text(text)
        lp.init(tmp_path / f"{number}")
        steps = yaml.safe_load((tmp_path / f"{number}" / FILES[2]).read_text())["jobs"]["layouts"]["steps"]
        (given,) = [step["with"] for step in steps if "check" in step.get("with", {})]
        assert given.get("packages") == packages, text


def test_hooks_run_for_code_that_specs_name_and_its_data(tmp_path: Path) -> None:
    """A commit that edits a model alone, or a table that it reads, is looked at, by ours and by what `init` writes."""
    lp.init(tmp_path)
    (own,) = yaml.safe_load((tmp_path / FILES[3]).read_text())["repos"][0]["hooks"]
    ours = yaml.safe_load((Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text())
    for hook in (own, *ours):
        assert hook["pass_filenames"] is False
        data = (
            "pkg/tuned.json",
            "pkg/sizes.yaml",
            "tables/starts.npy",
            "a.npz",
            "rows.csv",
            "t.toml",
            "dumps/step.hlo.txt",
        )
        for path in ("specs/a.yaml", "specs/b/c.yml", "model.py", "pkg/kernels/mm.py", "pyproject.toml", *data):
            assert re.search(hook["files"], path), (hook["id"], path)
        for path in ("README.md", "docs/a.png", "x.pyc", "yaml", "json/README"):
            assert not re.search(hook["files"], path), (hook["id"], path)
        assert re.search(hook["files"], "layoutproof.lock")


def test_what_is_there_stays(tmp_path: Path) -> None:
    """Files of these names, and spec files of any; the entry for pre-commit is printed; --force replaces ours."""
    hooks = "repos:\n  - repo: theirs\n    hooks: []\n"
    mine = {"specs/mine.yaml": "checks: [{injective: 'f32[3]'}]\n", FILES[3]: hooks}
    for name, text in {**mine, FILES[2]: "name: old\n"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    said = one(tmp_path, "init").out
    kept = [line.split()[1] for line in said.splitlines() if line.startswith("kept")]
    assert kept == ["specs/mine.yaml", FILES[2], FILES[3]]
    assert files(tmp_path).items() >= {**mine, FILES[2]: "name: old\n"}.items()
    assert FILES[0] not in files(tmp_path)
    added = said.partition("below repos:\n")[2].partition("note")[0]
    merged = yaml.safe_load(hooks + added)
    assert [repo["repo"] for repo in merged["repos"]] == ["theirs", "local"]
    forced = one(tmp_path, "init", "--force")
    assert forced.code == 0
    assert files(tmp_path).items() >= mine.items()
    assert files(tmp_path)[FILES[2]].startswith("# Proves the claims")
    assert FILES[0] in files(tmp_path)


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_all_or_none(tmp_path: Path, force: list[str]) -> None:
    """The third file cannot be written: the first two are not there either, or are what they were."""
    (tmp_path / ".github").write_text("a file where a folder should be")
    if force:
        (tmp_path / "specs").mkdir()
        (tmp_path / FILES[0]).write_text("checks: []\n")
    before = files(tmp_path)
    failed = one(tmp_path, "init", *force)
    assert (failed.code, failed.out) == (2, "")
    assert "cannot be written" in failed.err
    assert "nothing was written" in failed.err
    assert files(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == (["specs"] if force else [])


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_not_writable(tmp_path: Path) -> None:
    """A sentence and exit code 2."""
    tmp_path.chmod(0o555)
    failed = one(tmp_path, "init")
    tmp_path.chmod(0o755)
    assert (failed.code, "Permission denied" in failed.err) == (2, True)
