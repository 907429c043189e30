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
from tests.said import words

pytestmark = pytest.mark.slow

CODE = '''
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


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


def scaled(x, by=2.0, apart=False, rows=8):
    def body(x_ref, o_ref):
        if apart:
            o_ref[...] = x_ref[...] * (by / 2)
            o_ref[...] += o_ref[...]
        else:
            o_ref[...] = x_ref[...] * by

    spec = pl.BlockSpec((rows, 128), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(
        body, grid=(x.shape[0] // rows,), in_specs=[spec], out_specs=spec, out_shape=shape, input_output_aliases={0: 0}
    )(x)


def shifted(x, by=0):
    def body(x_ref, o_ref):
        o_ref[...] = x_ref[...] + 1

    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    other = pl.BlockSpec((8, 128), lambda i: ((i + by) % 8, 0) if by else (i, 0))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(body, grid=(8,), in_specs=[other], out_specs=spec, out_shape=shape)(x)


def chosen(x, by=2.0):
    def body(table, x_ref, o_ref):
        o_ref[...] = x_ref[...] * by

    grid = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(8,), in_specs=[pl.BlockSpec((8, 128), lambda i, t: (t[i], 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, t: (i, 0)),
    )
    table = jnp.sum(x, 1).astype(jnp.int32)[:8]
    return pl.pallas_call(body, grid_spec=grid, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(table, x)
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
    assert found["kernel_body"].startswith(words("gating.kernel_body", bodies="before, every"))
    code, found = gate(capsys, wrong, right)
    assert (code, set(found)) == (0, {"kernel_body"})


def test_a_body_that_is_unknown_now_is_not_green(record: Record, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = gate(capsys, record("right.jsonl"), record("odd.jsonl", "data"))
    assert (code, set(found)) == (3, {"unknown", "kernel_body"})


def test_other_lines_are_no_change(record: Record, capsys: pytest.CaptureFixture[str]) -> None:
    assert gate(capsys, record("one.jsonl"), record("other.jsonl", "copy", "moved=True")) == (0, {})


def test_other_blocks_are_said(record: Record, capsys: pytest.CaptureFixture[str]) -> None:
    """And that they compute the same; what is known of the bodies stands below that."""
    code, found = gate(capsys, record("one.jsonl"), record("other.jsonl", "copy", "rows=16"))
    assert (code, {"kernel", "same_function"} <= set(found)) == (0, True)
    assert "kernel_body" not in found


def test_blocks_of_other_places_are_told_on_both_sides(record: Record, capsys: pytest.CaptureFixture[str]) -> None:
    """The bodies are the same, and so are their digests: what differs is the index map, which both sides show."""
    record("one.jsonl", "shifted")
    record("other.jsonl", "shifted", "by=1")
    cli.run(["gate", "one.jsonl", "other.jsonl", "--json"])
    (found,) = [f for f in json.loads(capsys.readouterr().out)["findings"] if f["question"] == "other_function"]
    before, after = (found[side].split("; ", 1) for side in ("before", "after"))
    assert before[0] == after[0]
    assert before[1].endswith("(g0) -> (g0, 0) grid (8)")
    assert after[1] == before[1].replace("(g0, 0)", "((g0 + 1) % 8, 0)")


def test_another_function_is_said_with_the_element_and_the_lines(
    record: Record, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every place is right in both; the numbers are not. Under a rule of the user it is denied."""
    code, found = gate(capsys, record("plain.jsonl", "scaled"), record("twice.jsonl", "scaled", "by=3.0"))
    assert (code, set(found)) == (0, {"other_function"})
    assert "is " in found["other_function"]
    assert "8,192 of 8,192 elements differ; they part at recorded_kernels.py:" in found["other_function"]
    Path("pyproject.toml").write_text('[tool.layoutproof.gate]\nother_function = "deny"\n')
    assert gate(capsys, "plain.jsonl", "twice.jsonl")[0] == 1


def test_a_body_that_is_written_otherwise_is_the_same(record: Record, capsys: pytest.CaptureFixture[str]) -> None:
    """The twin: as many blocks, another body, the same numbers; aliased, too."""
    for more in ("apart=True", "rows=16"):
        code, found = gate(capsys, record("plain.jsonl", "scaled"), record("other.jsonl", "scaled", more))
        assert (code, "same_function" in found, "other_function" in found) == (0, True, False)
        assert found["same_function"] == "rewritten, the same at 3 points"


def test_what_a_walk_does_not_know_is_unknown_by_name(record: Record, capsys: pytest.CaptureFixture[str]) -> None:
    """Blocks that a table chooses: the change of the body is a warning, as ever, with why values say nothing."""
    code, found = gate(capsys, record("plain.jsonl", "chosen"), record("other.jsonl", "chosen", "by=3.0"))
    assert (code, set(found)) == (0, {"kernel_body"})
    assert "; values were not compared: the new record has blocks that a table chooses" in found["kernel_body"]


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
