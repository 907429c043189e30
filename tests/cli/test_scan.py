"""`layoutproof scan` on small repositories: what is judged, and by none; what cannot be read; shapes from tests."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

import pytest

import layoutproof as lp
from tests.cli.in_one_process import commands

pytestmark = pytest.mark.slow

KERNELS = """\
from jax.experimental import pallas as pl
def named(x):
    return pl.pallas_call(body)(x)
def inner(x):
    return pl.pallas_call(body)(x)
def alone(x):
    return pl.pallas_call(body)(x)
def unchecked(x):
    return pl.pallas_call(body)(x)
def tested(x):
    return pl.pallas_call(body)(x)
"""
SPEC = """\
source: us
kernels:
  a: {trace: "pkg.kernels:named", args: ["f32[8,128]"]}
  b: {trace: "pkg/model.py:layer", args: ["f32[8,128]"]}
  c: {trace: "pkg.kernels:unchecked", args: ["f32[8,128]"]}
  d: {trace: "pkg.gone:f", args: ["f32[8,128]"]}
checks:
  - kernel: a
  - blocks_in_bounds: b
  - kernel: d
"""
WORKFLOW = "jobs:\n  a:\n    steps:\n      - run: layoutproof check specs\n"


def repository(folder: Path, **more: str) -> Path:
    """A small one. more: further files, `__` for `/` and `_py` for `.py`."""
    files = {
        "pkg/__init__.py": "from pkg.kernels import inner as exported\n",
        "pkg/kernels.py": KERNELS,
        "pkg/model.py": "import pkg\ndef helper(x):\n    return pkg.exported(x)\ndef layer(x):\n    return helper(x)\n",
        "tests/test_it.py": "from pkg.kernels import tested\ndef test_it():\n    tested(1)\n",
        "specs/a.yaml": SPEC,
        **more,
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def standings(folder: Path) -> dict[str, str]:
    """Of the Pallas calls of the package, by function."""
    return {f.site.function: f.standing for f in lp.scan(folder).sites if f.is_call and f.file.startswith("pkg")}


def test_what_is_judged(tmp_path: Path) -> None:
    """Named by an entry that a claim asks about; reached through re-exports; in CI where it runs; else by none."""
    repository(tmp_path)
    assert standings(tmp_path) == {
        "named": "judged", "inner": "reached", "alone": "by none", "unchecked": "by none", "tested": "by none",
    }  # fmt: skip
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    workflow = tmp_path / ".github" / "workflows" / "ci.yml"
    workflow.write_text(WORKFLOW)
    assert standings(tmp_path)["named"] == "judged in CI"
    assert standings(tmp_path)["inner"] == "reached in CI"
    # another folder is checked, or the line is a comment
    for other in (WORKFLOW.replace("specs", "claims"), WORKFLOW.replace("- run", "# - run")):
        workflow.write_text(other)
        assert standings(tmp_path)["named"] == "judged"
    workflow.write_text("steps:\n  - uses: us/layoutproof@0123\n    with: {check: specs, paths: specs}\n")
    assert standings(tmp_path)["named"] == "judged in CI"


def test_the_plugin_and_kernels_in_ci(tmp_path: Path) -> None:
    """Tests under pytest --layoutproof reach what they use; `layoutproof kernels` judges what it names."""
    workflow = {".github/workflows/t.yml": "- run: pytest -q\n- run: layoutproof kernels pkg/kernels.py:alone\n"}
    repository(tmp_path, **workflow)
    assert standings(tmp_path)["alone"] == "judged in CI"
    assert standings(tmp_path)["tested"] == "by none"
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "--layoutproof"\n')
    assert standings(tmp_path)["tested"] == "reached in CI"


def test_the_command(tmp_path: Path) -> None:
    """A line per call, notes, the line that counts, and the same as JSON; nothing is imported, and it ends with 0."""
    repository(tmp_path, **{"pkg/bad.py": "def f(:\n  pallas_call\n", "pkg/ran.py": "open('ran', 'w')\n"})
    (text, data, wrong), _ = commands(tmp_path, ["scan"], ["scan", "--json"], ["scan", "nowhere"])
    assert (text.code, text.err) == (0, "")
    assert "pallas_call  pkg/kernels.py:7   in alone      by none" in text.out
    assert "note     specs/a.yaml:6 names pkg.gone:f, which no file here has" in text.out
    assert "note     specs/a.yaml:5: no claim asks about pkg.kernels:unchecked" in text.out
    assert "unread   pkg/bad.py:1: cannot be parsed: " in text.out
    said = "5 Pallas calls by syntax in 5 Python files: 0 judged in CI, 3 by none; 1 files could not be read"
    assert text.out.splitlines()[-1] == said
    document = json.loads(data.out)
    assert document["totals"] == {"pallas_call": {"judged": 1, "reached": 1, "by none": 3}}
    assert document["unread"][0]["file"] == "pkg/bad.py:1"
    assert (wrong.code, "there is no such folder" in wrong.err) == (2, True)
    assert not (tmp_path / "ran").exists()


def test_links_pipes_and_environments(tmp_path: Path) -> None:
    """A link out of the tree is not read and is named; one within is read once; an environment is none of it."""
    outside = tmp_path / "outside.py"
    outside.write_text(KERNELS)
    folder = repository(tmp_path / "it")
    (folder / "pkg" / "out.py").symlink_to(outside)
    (folder / "pkg" / "again.py").symlink_to(folder / "pkg" / "kernels.py")
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pkg" / "pipe.py")
    (folder / "env").mkdir()
    (folder / "env" / "pyvenv.cfg").write_text("")
    (folder / "env" / "k.py").write_text(KERNELS)
    answer = lp.scan(folder)
    assert sum(f.is_call for f in answer.sites) == 5
    assert {file for file, _ in answer.unread} == {"pkg/out.py", "pkg/pipe.py"}


CODE = """\
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
def body(x, o):
    o[...] = x[...] * 2
def twice(x, block, *, interpret=False):
    x = x.reshape(-1, 128)
    return pl.pallas_call(
        body, grid=(x.shape[0] // block[0],), in_specs=[pl.BlockSpec(block, lambda i: (i, 0))],
        out_specs=pl.BlockSpec(block, lambda i: (i, 0)), out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        interpret=interpret,
    )(x)
def with_config(config, x):
    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(config["scale"] * x)
"""
TESTS = """\
import jax, jax.numpy as jnp, kernels
def test_twice():
    kernels.twice(jnp.ones((4, 16, 128)), (8, 128), interpret=True)
def test_config():
    jax.eval_shape(lambda x: kernels.with_config({"scale": 2}, x), jnp.ones((8, 128)))
def test_that_fails():
    kernels.twice(jnp.ones((6, 16, 128)), (16, 128), interpret=True)
    assert False
"""


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed: kernels are traced")
def test_shapes_from_the_projects_own_tests(tmp_path: Path) -> None:
    """Arguments as they were given, not as the function left them; what cannot be stated says why; the file checks."""
    (tmp_path / "kernels.py").write_text(CODE)
    (tmp_path / "test_kernels.py").write_text(TESTS)
    (made, again, checked), _ = commands(
        tmp_path, ["scan", "--from-tests"], ["scan", "--from-tests"], ["check"], seconds=300
    )
    assert made.code == 0, made.err
    assert "stated   kernels:twice(float32[4,16,128], (8, 128)): as expected" in made.out
    assert "stated   kernels:twice(float32[6,16,128], (16, 128)): as expected" in made.out
    assert "left out kernels:with_config: its argument config is a dict, which a file cannot state" in made.out
    assert "note     pytest ended with 1" in made.out
    text = (tmp_path / "specs" / "from_tests.yaml").read_text()
    assert 'trace: "kernels:twice", args: ["float32[4,16,128]", "(8, 128)"], kwargs: {"interpret": true}' in text
    assert (checked.code, checked.out.startswith("2 claims as stated: 2 proved")) == (0, True)
    assert (again.code, "it is there already" in again.err) == (2, True)
