"""A recorded call is judged as the call itself, without JAX and without its code."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding
from layoutproof.core.numbers import Numbers
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Kernel, Unmodelled
from layoutproof.pallas.judge import judge
from layoutproof.pallas.records import _field, plain, read_records
from tests.said import Said, raises

pytestmark = pytest.mark.slow

KERNEL = """\
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def _secret_of_the_code(x_ref, o_ref, acc_ref):
    @pl.when(pl.program_id(1) == 0)
    def _():
        acc_ref[...] = jnp.zeros_like(acc_ref)

    def row(r, total):
        return total + x_ref[pl.ds(r + START, 1), :]

    acc_ref[...] += jax.lax.fori_loop(0, 8, row, jnp.zeros((1, 128), jnp.float32))

    @pl.when(pl.program_id(1) == pl.num_programs(1) - 1)
    def _():
        o_ref[...] = jnp.broadcast_to(acc_ref[...], o_ref.shape)


def call(x):
    return pl.pallas_call(
        _secret_of_the_code, grid=(2, 4), name="rows",
        in_specs=[pl.BlockSpec((8, 128), lambda i, k: (i * 4 + k, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, k: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((1, 128), jnp.float32)],
    )(x)
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "layoutproof", "kernels", *arguments], cwd=folder, capture_output=True, text=True
    )


@pytest.mark.parametrize(("start", "code"), [(0, 0), (1, 1)])
@pytest.mark.parametrize("end", ["calls.jsonl"])
def test_the_command_records_and_judges_records_alike(tmp_path: Path, start: int, code: int, end: str) -> None:
    pytest.importorskip("jax", reason="tracing needs the extra [jax]")
    (tmp_path / "rows.py").write_text(KERNEL.replace("START", str(start)))
    live = run(tmp_path, "rows.py:call", "--arg", "f32[64,128]", "--record", end)
    assert live.returncode == code, live.stderr
    again = run(tmp_path, end)
    assert (again.returncode, again.stdout) == (code, live.stdout)
    text = (tmp_path / end).read_text()
    assert "total +" not in text
    assert str(tmp_path) not in text


def test_records_need_no_jax(tmp_path: Path) -> None:
    pytest.importorskip("jax", reason="tracing needs the extra [jax]")
    (tmp_path / "rows.py").write_text(KERNEL.replace("START", "1"))
    run(tmp_path, "rows.py:call", "--arg", "f32[64,128]", "--record", "calls.jsonl")
    (tmp_path / "jax.py").write_text("raise ImportError('there is none here')")
    found = run(tmp_path, "calls.jsonl")
    assert (found.returncode, "body_in_bounds" in found.stdout) == (1, True), found.stderr


def told(call: Any) -> list[tuple[Any, ...]]:
    """What is found of a call, but for where; a place names folders in the one and not in the other."""
    assert isinstance(call, Kernel | Unmodelled)
    if isinstance(call, Unmodelled):
        return [(call.name, call.reason)]
    return [_said(finding) for finding in judge(call)]


def _said(f: Finding) -> tuple[Any, ...]:
    return f.question, f.subject, f.verdict, f.severity, f.reason, f.fix, f.counterexample, f.line


OPS = (
    "tpu.matmul 1000x1000x1000 float32 256,256,256",
    "tpu.flash_attention b2 h8 q1024 kv2048 d256 causal 512/1024/512",
    "tpu.flash_attention.grad b2 h8 q1024 kv1024 d128 causal default",
    "tpu.splash_attention mqa h16/1 q2048 causal.grad",
    "triton.rms_norm",
)


def _ops() -> list[Any]:
    pytest.importorskip("jax", reason="tracing needs the extra [jax]")
    from tests.pallas.wheel_ops import ops

    return [op for op in ops() if op.name.startswith(OPS)]


def test_the_wheels_kernels_are_judged_alike(tmp_path: Path) -> None:
    from layoutproof.pallas.from_jax.record import records_of
    from layoutproof.pallas.from_jax.trace import kernels_of

    found = _ops()
    assert len(found) >= 3
    for op in found:
        function, arguments = op.build()
        calls = kernels_of(function, arguments, target="v5e" if op.target == "triton" else op.target, assume=op.assume)
        (tmp_path / "calls.jsonl").write_bytes(records_of(calls))
        assert list(map(told, read_records(tmp_path / "calls.jsonl"))) == list(map(told, calls)), op.name


def test_what_was_read_from_a_file_is_not_recorded_again(tmp_path: Path) -> None:
    (tmp_path / "calls.jsonl").write_text(json.dumps(small()) + "\n")
    found = run(tmp_path, "calls.jsonl", "--record", "more.jsonl")
    assert (found.returncode, "--record is for a function" in found.stderr) == (2, True)


def small() -> dict[str, Any]:
    """A record by hand: one program, which copies its window."""
    operand = {"dims": [8], "dtype": "f32", "block": [{"kind": "blocked", "size": 8}], "index": [{"term": 0}]}
    whole = {"tree": {"list": [{"is": "NDIndexer", "indices": {"list": [
        {"is": "Slice", "start": 0, "size": 8, "stride": 1}]}}]}}  # fmt: skip
    return {
        "record": 1,
        "jax": "0.10.2",
        "kernel": {
            "name": "copy", "grid": [1], "grid_names": ["g0"],
            "operands": [{"name": "x", "role": "in", **operand}, {"name": "o", "role": "out", **operand}],
        },
        "body": {
            "types": [["float32", "f", 4]],
            "avals": [[[8], 0, "vmem"], [[8], 0, ""]],
            "jaxprs": [
                {
                    "in": [0, 0],
                    "eqns": [
                        ["get", {"tree": whole["tree"]}, [0], [1], "a.py:1", 0],
                        ["swap", {"tree": whole["tree"]}, [1, 2], [1], "a.py:2", 0],
                    ],
                    "out": [],
                }
            ],
        },
    }  # fmt: skip


def test_a_record_by_hand_is_proved_and_its_half_is_refuted(tmp_path: Path) -> None:
    data = small()
    path = tmp_path / "calls.jsonl"
    path.write_text(json.dumps(data) + "\n")
    (call,) = read_records(path)
    assert isinstance(call, Kernel)
    assert {f.verdict.value for f in judge(call) if f.severity == "error"} == {"proved"}
    text = json.dumps(data).replace('"size": 8, "stride": 1', '"size": 4, "stride": 1')
    path.write_text(text.replace("[[8], 0,", "[[8], 0,") + "\n")
    (call,) = read_records(path)
    assert isinstance(call, Kernel)
    assert [f.question for f in judge(call) if f.verdict.value == "refuted" and f.severity == "error"] == [
        "outputs_stored"
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", Said("pallas.record_read")),
        ("[]", Said("pallas.record_read")),
        ('{"record": 2}', Said("pallas.record_form", form="2", known=1)),
        ('{"record": 1}', Said("pallas.record_read")),
        ("[" * 100_000, Said("pallas.record_read")),
        ("", Said("pallas.no_record")),
    ],
)
def test_what_is_no_record_is_said_with_its_line(tmp_path: Path, line: str, said: Said) -> None:
    (tmp_path / "calls.jsonl").write_text(line + "\n")
    with raises(LayoutError, said):
        read_records(tmp_path / "calls.jsonl")


def test_a_broken_record_is_an_error_or_an_answer_and_no_traceback(tmp_path: Path) -> None:
    rng = random.Random(0)
    text = json.dumps(small())
    path = tmp_path / "calls.jsonl"
    outcomes = set()
    for _ in range(300):
        at = rng.randrange(len(text))
        path.write_text(
            text[:at] + rng.choice(["", "0", "-1", "9", '"', "]", "null", "[]", "{}", "x"]) + text[at + 1 :]
        )
        try:
            (call,) = read_records(path)
        except LayoutError:
            outcomes.add("refused")
            continue
        outcomes.add("judged")
        if isinstance(call, Kernel):
            judge(call)
    assert outcomes == {"refused", "judged"}


def doubled(steps: int) -> Term:
    """An index that uses the one before it twice, so often."""
    v = Term("name", "i")
    for _ in range(steps):
        v = (v * 3 + v // 2) % 4
    return v


def test_what_stands_in_a_term_twice_is_written_once() -> None:
    """40 steps were a tree of 2 ** 40 parts: twice the steps are twice the text, and the same index."""
    sizes = {steps: len(json.dumps(plain(doubled(steps)))) for steps in (20, 40, 80)}
    assert sizes[80] - sizes[40] <= 3 * (sizes[40] - sizes[20])
    for steps in (2, 40):
        again = _field("", json.loads(json.dumps(plain(doubled(steps)))))
        assert [again.evaluate({"i": i}, Numbers({})) for i in range(9)] == [
            doubled(steps).evaluate({"i": i}, Numbers({})) for i in range(9)
        ]
    # what is short stays as it was written: a tree
    assert plain(doubled(1)) == {"term": ["%", ["+", ["*", "i", 3], ["//", "i", 2]], 4]}


@pytest.mark.parametrize(
    "parts",
    [[], ["i", ["+", {"part": 1}, 1]], ["i", {"part": -1}], [{"part": 0}], {"part": 0}, ["i", {"part": True}, {}]],
)
def test_a_part_that_is_none_is_no_term(parts: Any) -> None:
    """A record of another writer's: a part is one that stands before it."""
    with pytest.raises(ValueError, match="is no term"):
        _field("", {"term": {"parts": parts}})


def test_a_call_with_a_long_index_is_recorded(tmp_path: Path) -> None:
    """By the command, which never ended; and it is judged as the function was."""
    pytest.importorskip("jax", reason="finding Pallas calls needs the extra [jax]")
    place = "lambda i, k: (__import__('functools').reduce(lambda v, _: (v * 3 + v // 2) % 4, range(40), i), 0)"
    source = KERNEL.replace("START", "0").replace("lambda i, k: (i * 4 + k, 0)", place)
    (tmp_path / "k.py").write_text(source)
    traced = run(tmp_path, "k.py:call", "--arg", "f32[64,128]", "--record", "calls.jsonl", "--only", "grid")
    assert (tmp_path / "calls.jsonl").stat().st_size < 20_000
    recorded = run(tmp_path, "calls.jsonl", "--only", "grid")
    assert (traced.returncode, recorded.returncode) == (0, 0), traced.stdout + traced.stderr + recorded.stdout
