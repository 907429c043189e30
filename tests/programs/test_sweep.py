"""`layoutproof compile --sweep`: points compiled on the CPU and by the TPU compiler, resumed, by several processes."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.programs.record import read_record
from layoutproof.programs.sweep import sent_of
from tests import said
from tests.cli.in_one_process import commands

pytestmark = pytest.mark.slow

pytest.importorskip("jax")
NEEDS_TPU = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="needs libtpu")

MODEL = """
import time
from pathlib import Path

import jax
import jax.numpy as jnp

PAUSE = 0.0

def step(x, w, policy=None):
    with open("traced.log", "a") as log:
        log.write(f"{x.shape[0]} {getattr(policy, '__name__', policy)}\\n")
    time.sleep(PAUSE)
    def layer(x, w):
        return jnp.sin(jnp.tanh(x @ w)), None
    body = layer if policy is None else jax.checkpoint(layer, policy=policy)
    def loss(w):
        y, _ = jax.lax.scan(body, x, w)
        return (y ** 2).sum()
    return jax.grad(loss)(w)

def scaled(x, word):
    return x * {"two": 2.0}[word]
"""
ARGS = ["compile", "model:step", "--arg", "f32[B,64]", "--arg", "f32[4,64,64]", "--mesh", "data=2"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository of the user's, with one module."""
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def one(folder: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the JSON of one command line."""
    (answer,), _ = commands(folder, [*words, "--json"], seconds=300)
    return answer.code, json.loads(answer.out)


def figures(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without the time that they took."""
    return [{name: value for name, value in row.items() if "seconds" not in name} for row in rows]


def traced(folder: Path) -> list[str]:
    """The points that were traced so far."""
    path = folder / "traced.log"
    return path.read_text().splitlines() if path.exists() else []


def test_a_refused_point_beside_others(folder: Path) -> None:
    """Nine rows on two devices are refused, with the reason, and hide nothing; figures are those of `compile`."""
    words = [*ARGS, "--sweep", "B=8,9,16", "--sweep", "in0=P('data')", "--hbm", "1MiB", "--rank", "peak"]
    code, answer = one(folder, *words, "-o", "out", "--svg", "a.svg", "--markdown", "a.md")
    assert (code, [row["state"] for row in answer["rows"]]) == (2, ["fits", "bad_input", "fits"])
    assert answer["rows"][1]["reason"] == said.words(
        "programs.devices_do_not_divide", what="argument 0", devices=2, size=9
    )
    assert [each["subject"] for each in answer["findings"]] == ["model:step at B=9, in0=P('data')"]
    assert [(each["sizes"], each["row"]) for each in answer["cheapest"]] == [
        ({"B": "8"}, 0), ({"B": "9"}, None), ({"B": "16"}, 2),
    ]  # fmt: skip
    assert answer["written"] == ["out/step-000.json", "out/step-002.json", "a.md", "a.svg"]
    assert all(row["cpu_seconds"] > 0 for row in answer["rows"][::2])
    # each row is what its own command says
    (alone,), _ = commands(folder, [*_words(answer["rows"][2]["command"]), "--json"], seconds=300)
    (made,) = json.loads(alone.out)["records"]
    record, kept = read_record(made), read_record(json.loads((folder / "out/step-002.json").read_text()))
    assert answer["rows"][2]["peak"] == record.memory.taken == kept.memory.taken
    assert answer["rows"][2]["sent"] == {n: _plain(each) for n, each in sent_of(record).items()} != {}
    assert "| `16` |" in (folder / "a.md").read_text()
    assert "bad input" in (folder / "a.svg").read_text()


def _words(command: str) -> list[str]:
    import shlex

    return shlex.split(command)[1:]


def _plain(counted: object) -> dict[str, object]:
    from dataclasses import asdict

    return asdict(counted)  # type: ignore[call-overload,no-any-return]


def test_remat_policies_by_their_names(folder: Path) -> None:
    """A policy of JAX, none, and a name that is none of its policies: what makes a policy of names is none itself."""
    policies = ["None", *(f"jax.checkpoint_policies.{name}" for name in ("nothing_saveable", "save_only_these_names"))]
    words = ["--sweep", "B=512", "--sweep", f"policy={','.join(policies)}", "--hbm", "1GiB", "--rank", "peak"]
    code, answer = one(folder, *ARGS, *words)
    assert (code, [row["state"] for row in answer["rows"]]) == (2, ["fits", "fits", "bad_input"])
    assert "unknown policy of jax.checkpoint_policies 'save_only_these_names'" in answer["rows"][2]["reason"]
    # what is computed again is not kept
    assert answer["rows"][1]["peak"] < answer["rows"][0]["peak"]
    assert answer["cheapest"][0]["row"] == 1
    assert traced(folder) == ["512 None", "512 nothing_saveable"]
    _, answer = one(folder, "compile", "model:scaled", "--arg", "f32[8]", "--sweep", "word=two,three")
    assert [row["state"] for row in answer["rows"]] == ["compiled", "bad_input"]
    assert "KeyError: 'three'" in answer["rows"][1]["reason"]


def test_an_interrupted_sweep_goes_on(folder: Path) -> None:
    """Killed in its middle: what was there is not traced again, and the answer is that of a run without an end."""
    (folder / "model.py").write_text(MODEL.replace("PAUSE = 0.0", "PAUSE = 0.7"))
    words = [*ARGS, "--sweep", "B=2,4,6,8,10,12", "--hbm", "1MiB", "--rank", "peak", "--resume", "rows.jsonl"]
    command = [sys.executable, "-c", "import sys; from layoutproof.cli.main import run; sys.exit(run(sys.argv[1:]))"]
    rows = folder / "rows.jsonl"
    process = subprocess.Popen([*command, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 240
        while not rows.exists() or rows.read_bytes().count(b"\n") < 2:
            assert time.monotonic() < end, "no two rows within four minutes"
            assert process.poll() is None, "it ended by itself"
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
    kept = rows.read_bytes().count(b"\n")
    assert 2 <= kept < 6
    before = traced(folder)
    code, answer = one(folder, *words)
    assert (code, answer["kept"]) == (0, kept)
    assert len(traced(folder)) - len(before) == 6 - kept
    assert rows.read_bytes().count(b"\n") == 6
    (whole,), _ = commands(folder, [*words[:-2], "--json"], seconds=300)
    assert figures(answer["rows"]) == figures(json.loads(whole.out)["rows"])
    # once more, with the same point called otherwise: nothing is traced
    last = traced(folder)
    again = [word.replace("data=2", "data=2 ") for word in words] + ["--sweep", "mesh=data=2"]
    _, renamed = one(folder, *again)
    assert renamed["kept"] == 6
    assert renamed["rows"][0]["at"] == {"B": "2", "mesh": "data=2"}
    assert traced(folder) == last
    # other code is another program: no row is believed
    (folder / "model.py").write_text(MODEL.replace("jnp.sin", "jnp.cos"))
    assert one(folder, *words[:-2], "--resume", "rows.jsonl")[1]["kept"] == 0


def test_several_processes_give_the_same_rows(folder: Path) -> None:
    """In their order, with the refused one at its place."""
    words = [*ARGS, "--sweep", "B=16,9,8", "--sweep", "in0=P('data')"]
    alone, both = (one(folder, *words, "--jobs", jobs) for jobs in ("1", "2"))
    assert alone[0] == both[0] == 2
    assert figures(alone[1]["rows"]) == figures(both[1]["rows"])
    assert [row["state"] for row in both[1]["rows"]] == ["compiled", "bad_input", "compiled"]


@pytest.mark.commit
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_gives_the_same_rows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers of Dask on loopback; a scheduler that is not there is an error."""
    pytest.importorskip("distributed", reason="Dask is not installed: pip install distributed")
    from distributed import LocalCluster

    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    words: Mapping[str, Any] = {"axes": {"B": [16, 9, 8]}, "in_specs": ["P('data')"], "mesh": {"data": 2}}
    args = ("model:step", "f32[B,64]", "f32[4,64,64]")
    alone = lp.sweep(*args, **words)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster:
        there = lp.sweep(*args, **words, backend="dask", scheduler=cluster.scheduler_address)
    assert figures(alone.as_dict()["rows"]) == figures(there.as_dict()["rows"])  # type: ignore[arg-type]
    with pytest.raises(lp.LayoutError, match="needs --scheduler"):
        lp.sweep(*args, **words, backend="dask")


def test_what_is_said_of_wrong_options(folder: Path) -> None:
    """Options of a sweep without one, a sweep of a dump, of a rank, of an axis that is there twice."""
    (folder / "dump.txt").write_text("HloModule m\nENTRY e {\n  ROOT p = f32[8]{0} parameter(0)\n}\n")
    sweep = ["--sweep", "B=8"]
    cases = {
        "--resume is for a sweep": [*ARGS, "--resume", "r.jsonl"],
        "--rank is for a sweep": [*ARGS, "--rank", "peak"],
        said.words("cli.dump_with_sweep", option="--sweep"): ["compile", "dump.txt", *sweep],
        said.stretch("cli.sweep_with_try"): [*ARGS, *sweep, "--try"],
        said.words("cli.dump_with_sweep", option="--schedule"): ["compile", "dump.txt", "--schedule"],
        "unknown rank 'money'": [*ARGS, *sweep, "--rank", "money"],
        "the axis 'B' twice": [*ARGS, *sweep, *sweep],
        "is no axis": [*ARGS[:-1], "data=-1"],
        "needs --scheduler": [*ARGS, *sweep, "--backend", "dask"],
    }
    answers, _ = commands(folder, *cases.values(), seconds=300)
    for words, answer in zip(cases, answers, strict=True):
        assert answer.code == 2, words
        assert words in answer.err, answer.err
    assert traced(folder) == []


@NEEDS_TPU
def test_on_8_to_256_chips(folder: Path) -> None:
    """Topologies with a mesh that takes all of each; a program that is too large is a row, and its rivals are named."""
    (folder / "large.py").write_text("def f(x, w): return x @ w\n")
    words = [
        *("compile", "large:f", "--arg", "bf16[B,8192]", "--arg", "bf16[8192,8192]", "--target", "v5e"),
        *("--sweep", "topology=2x4,16x16", "--sweep", "mesh=data=-1,model=4", "--sweep", "B=8192,2097152"),
        *("--in", "P('data', None)", "--in", "P(None, 'model')", "--jobs", "2"),
    ]
    code, answer = one(folder, *words)
    rows = answer["rows"]
    assert [row["state"] for row in rows] == ["fits", "too_large", "fits", "fits"]
    assert (code, [row["devices"] for row in rows]) == (1, [8, None, 256, 256])
    assert "CompileTimeHbmOom" in rows[1]["reason"]
    assert [(each["sizes"]["B"], each["row"]) for each in answer["cheapest"]] == [("8192", 2), ("2097152", 3)]
    # 2 * 8192 * 8192 * 8192 flops over 8 devices at 197 T/s
    assert rows[0]["bound_ps"]["least"] == 2 * 8192**3 // 8 * 10**12 // (197 * 10**12)
    assert rows[0]["binds"] == "matrix unit"
    assert rows[0]["peak"] == (8192 // 2 * 8192 + 8192 * 8192 // 4 + 8192 // 2 * 8192 // 4) * 2


@NEEDS_TPU
def test_devices_of_a_chip_as_the_compiler_counts_them(tmp_path: Path) -> None:
    """An open axis of a mesh takes as many as there are: else each of these is refused."""
    (tmp_path / "small.py").write_text("def f(x): return x + 1\n")
    targets = ["v2", "v3", "v4", "v4lite", "v5e", "v5p", "v6e", "7x"]
    words = ["compile", "small:f", "--arg", "f32[256]", "--sweep", f"target={','.join(targets)}", "--sweep",
             "mesh=data=-1", "--topology", "2x2"]  # fmt: skip
    code, answer = one(tmp_path, *words)
    assert code == 0, answer["findings"]
    assert {row["at"]["target"]: row["devices"] for row in answer["rows"]} == {
        target: 4 * CHIPS[target].devices for target in targets
    }
