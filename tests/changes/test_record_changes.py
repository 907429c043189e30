"""Records of traced kernels, gated: a body that changed is said and judged, and denied where it is refuted now."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="recording kernels needs the extra [jax]")

from layoutproof.cli import main as cli

pytestmark = pytest.mark.slow

CODE = '''
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def copy(x, start=0, rows=8, moved=False):
    def body(x_ref, o_ref):
        from_row = pl.program_id(0) * start
        if moved:
            o_ref[...] = x_ref[pl.ds(from_row, rows)]
        else:
            o_ref[...] = x_ref[pl.ds(from_row, rows)]

    spec = pl.BlockSpec((rows, 128), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(body, grid=(x.shape[0] // rows,), in_specs=[spec], out_specs=spec, out_shape=shape)(x)


def data(x):
    """Which row is read is a number of the data."""

    def body(x_ref, o_ref):
        o_ref[...] = x_ref[pl.ds(x_ref[0, 0].astype(jnp.int32), 8)]

    body.__name__ = "body"
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(body, grid=(x.shape[0] // 8,), in_specs=[spec], out_specs=spec, out_shape=shape)(x)
'''
Record = Callable[..., str]


@pytest.fixture
def record(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Record:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "recorded_kernels", raising=False)
    Path("recorded_kernels.py").write_text(CODE)

    def run(file: str, function: str = "copy", *kwargs: str) -> str:
        given = [word for text in kwargs for word in ("--kwarg", text)]
        cli.run(("kernels", f"recorded_kernels:{function}", "--args", "f32[64,128]", *given, "--record", file))
        capsys.readouterr()
        return file

    return run


def gate(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, str]]:
    """The exit code, and each class with why, of the first finding of it."""
    code = cli.run(["gate", *arguments, "--json"])
    return code, {f["question"]: f["reason"] for f in reversed(json.loads(capsys.readouterr().out)["findings"])}


def test_a_body_that_becomes_wrong_is_denied(record: Record, capsys: pytest.CaptureFixture[str]) -> None:
    """Grid and maps agree; the other way round the change is said, and nothing is denied."""
    right, wrong = record("right.jsonl"), record("wrong.jsonl", "copy", "start=1")
    code, found = gate(capsys, right, wrong)
    assert (code, set(found)) == (1, {"refuted", "kernel_body"})
    assert found["refuted"].startswith("body_in_bounds of ")
    assert found["kernel_body"].startswith("grid and blocks are as before, and the body is another: before, every")
    code, found = gate(capsys, wrong, right)
    assert (code, set(found)) == (0, {"kernel_body"})


def test_a_body_that_is_unknown_now_is_not_green(record: Record, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = gate(capsys, record("right.jsonl"), record("odd.jsonl", "data"))
    assert (code, set(found)) == (3, {"unknown", "kernel_body"})


def test_other_lines_are_no_change(record: Record, capsys: pytest.CaptureFixture[str]) -> None:
    assert gate(capsys, record("one.jsonl"), record("other.jsonl", "copy", "moved=True")) == (0, {})


def test_other_blocks_are_said(record: Record, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = gate(capsys, record("one.jsonl"), record("other.jsonl", "copy", "rows=16"))
    assert (code, {"kernel", "kernel_body"} <= set(found)) == (0, True)


def test_a_call_more_is_judged(record: Record, capsys: pytest.CaptureFixture[str]) -> None:
    Path("two.jsonl").write_text(
        Path(record("right.jsonl")).read_text() + Path(record("w.jsonl", "copy", "start=1")).read_text()
    )
    code, found = gate(capsys, "right.jsonl", "two.jsonl")
    assert (code, set(found)) == (1, {"refuted", "added"})
    assert gate(capsys, "two.jsonl", "right.jsonl")[1].keys() == {"removed"}
    Path("broken.jsonl").write_text('{"record": 99}\n')
    assert gate(capsys, "right.jsonl", "broken.jsonl")[0] == 2


def test_records_of_a_revision(record: Record, capsys: pytest.CaptureFixture[str]) -> None:
    """They lie in a folder of the repository and are found without being named."""
    Path("calls").mkdir()
    record("calls/copy.jsonl")
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for arguments in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "first"]):
        subprocess.run(["git", *arguments], check=True, capture_output=True)
    assert gate(capsys, "--against", "HEAD", "calls") == (0, {})
    record("calls/copy.jsonl", "copy", "start=1")
    code, found = gate(capsys, "--against", "HEAD", "calls")
    assert (code, set(found)) == (1, {"refuted", "kernel_body"})
