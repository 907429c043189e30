"""`layoutproof search --compile` with a recorded compiler: who is asked, and what the answer says of it.

Declared kernels with a body and functions go the same way, so each is asked of both.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.compiler.child import Child
from layoutproof.mosaic import ask
from tests.cli.test_search import run, write
from tests.hardware import compiler

pytestmark = pytest.mark.slow

__all__ = ["run"]

pytest.importorskip("jax", reason="bodies are traced with jax")

BODIES = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl

def body(a, b):
    v = a[...].astype(jnp.float32)
    e = jnp.exp(v - v.max(-1, keepdims=True))
    b[...] = (e / e.sum(-1, keepdims=True)).astype(b.dtype)

def softmax(x, *, rows):
    block = pl.BlockSpec((rows, x.shape[1]), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(
        body, grid=(x.shape[0] // rows,), in_specs=[block], out_specs=block, out_shape=shape, name="softmax"
    )(x)
"""
DECLARED = """
target: v5e
kernel:
  grid: [3072 // rows]
  inputs: [{name: x, array: "bf16[N,4096]", block: [rows, 4096], index: "(i) -> (i, 0)"}]
  outputs: [{name: o, array: "bf16[N,4096]", block: [rows, 4096], index: "(i) -> (i, 0)"}]
sizes: {N: 3072}
body: bodies.py:body
headroom: 0%
"""
TRACED = "target: v5e\ntrace: bodies.py:softmax\nargs: ['bf16[3072,4096]']\nheadroom: 0%\n"
FILES = pytest.mark.parametrize("text", [DECLARED, TRACED], ids=["declared", "traced"])
MIB = 1 << 20
WINDOWS = {rows: 4 * rows * 8192 for rows in (64, 128, 192, 256, 384, 512)}
"""Bytes of both windows, two buffers each."""


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Puts the recorded compiler in place; gives what it was asked: the rows of each block, in order."""
    program = Path(__file__).parents[1] / "searching" / "recorded_compiler.py"
    log = tmp_path / "asked"
    monkeypatch.setenv("ASKED", str(log))
    monkeypatch.setattr("layoutproof.compiler.libtpu.missing", lambda library="": "")
    monkeypatch.setattr("layoutproof.searching.compiler_stage.cores", lambda: 1)
    monkeypatch.setattr(ask, "child", lambda *given: Child("the TPU compiler", program))
    return lambda: [3072 // eval(line)[0] for line in log.read_text().splitlines()]


def cheapest_first(text: str, rows: list[int]) -> str:
    """The file with these candidates, the smallest blocks first."""
    return write(f"{text}tune: {{rows: {rows}}}\ncost: vmem\n")


@FILES
def test_rows_have_their_memory_and_stand_by_cycles(run: Any, recorded: Any, text: str, monkeypatch: Any) -> None:
    write(BODIES, "bodies.py")
    monkeypatch.setenv("SPILLS", "windows // 8")
    answered = lp.search(write(f"{text}tune: {{rows: [64, 128, 256]}}\n"), compiling=True, best=2)
    assert answered.exit_code == 0
    found, out = answered.as_dict(), str(answered)
    # the model takes large blocks for the best, this compiler's cycles are fewest of the smallest
    assert [row["values"]["rows"] for row in found["best"]] == [64, 128]
    assert [row["exact_vmem"] for row in found["best"]] == [WINDOWS[rows] * 9 // 8 for rows in (64, 128)]
    assert found["best"][0]["estimate"] == {"rank": 1, "tied": False, "cycles": 1_000_000 + WINDOWS[64]}
    assert [row["no_estimate"] for row in found["best"]] == ["", ""]
    assert found["compiler"]["candidates"] == {"asked": 3, "accepted": 3, "refused": 0, "unknown": 0, "skipped": 0}
    assert sorted(recorded()) == [64, 128, 256]
    assert "3 of the 3 that were asked about are accepted" in out
    assert "within 5 % is a tie" in out
    assert "that copies share the bandwidth of HBM" in out
    assert "2.25 MiB" in out


@FILES
def test_what_costs_too_much_is_not_shown(run: Any, recorded: Any, text: str) -> None:
    """The compiler's order is of what is within the factor."""
    write(BODIES, "bodies.py")
    file = write(f"{text}tune: {{rows: [64, 128, 256, 384]}}\ncost: vmem\n")
    answered = lp.search(file, compiling=True, within="2.5x")
    assert [row["values"]["rows"] for row in answered.as_dict()["best"]] == [64, 128]


def test_no_estimate_costs_nobody_its_memory(run: Any, recorded: Any) -> None:
    """A condition on what is read: the row has its VMEM, and the reason; the model says who is first."""
    more = "\n\n    @pl.when(v[0, 0] > 0)\n    def _():\n        b[...] = v.astype(b.dtype)\n\ndef softmax"
    write(BODIES.replace("\ndef softmax", more), "bodies.py")
    answered = lp.search(write(f"{DECLARED}tune: {{rows: [64, 128]}}\n"), compiling=True)
    assert answered.exit_code == 0
    rows = answered.as_dict()["best"]
    assert [(row["values"]["rows"], row["exact_vmem"], row["estimate"]) for row in rows] == [
        (128, WINDOWS[128], None),
        (64, WINDOWS[64], None),
    ]
    assert all("a condition on data" in row["no_estimate"] for row in rows)
    assert "no estimate     rows 1, 2: a condition on data, which it takes to be 0 (line " in str(answered)


PRODUCT = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def body(x, y, o):
    o[...] = jnp.dot(x[...], y[...], preferred_element_type=jnp.float32).astype(o.dtype)

def product(x, y, *, rows):
    block = pl.BlockSpec((rows, 512), lambda i: (i, 0))
    return pl.pallas_call(
        body, grid=(1024 // rows,), in_specs=[block, pl.BlockSpec((512, 512), lambda i: (0, 0))], out_specs=block,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), name="product",
        compiler_params=pltpu.CompilerParams(dimension_semantics=("SEMANTICS",)),
    )(x, y)
"""
AROUND = {rows: 2 * (rows * 512 + 512 * 512 + rows * 512) for rows in (256, 512)}
"""Bytes: the first block of x, y as a whole, and the last block of the result."""


@pytest.mark.parametrize(
    ("target", "semantics", "said", "shown"),
    [
        # 2 * 1024 * 512 * 512 operations, of which a core does 4 * 128 * 128 * 2 in a cycle, take 4,096 cycles
        ("v5e", "arbitrary", 9000, 9000),
        ("v5e", "arbitrary", 4095, None),
        # 820 GB/s at 197 TFLOP/s: the first blocks come before any product, and the last one is written after all
        (
            "v5e",
            "arbitrary",
            4096,
            [4096 + AROUND[rows] * 197 * 10**12 // (131072 * 820 * 10**9) for rows in (256, 512)],
        ),
        # one core of v5p is used, or both, and the simulation is of one of them
        ("v5p", "arbitrary", 4095, None),
        ("v5p", "arbitrary", 4096, 4096),
        ("v5p", "parallel", 2047, None),
        ("v5p", "parallel", 2048, 2048),
        ("v5e", "parallel", 4095, None),
    ],
)
def test_an_estimate_that_no_chip_could_meet_is_none_and_costs_no_memory(
    run: Any, recorded: Any, monkeypatch: Any, target: str, semantics: str, said: int, shown: int | list[int] | None
) -> None:
    write(PRODUCT.replace("SEMANTICS", semantics), "bodies.py")
    monkeypatch.setenv("CYCLES", str(said))
    text = f"target: {target}\ntrace: bodies.py:product\nargs: ['bf16[1024,512]', 'bf16[512,512]']\nheadroom: 0%\n"
    answered = lp.search(write(f"{text}tune: {{rows: [256, 512]}}\n"), compiling=True)
    rows = answered.as_dict()["best"]
    assert answered.exit_code == 0
    # two buffers of both blocks that move, one of the other array
    assert sorted(row["exact_vmem"] for row in rows) == [2 * 512 * (4 * n + 512) for n in (256, 512)]
    assert [row["estimate"] and row["estimate"]["cycles"] for row in rows] == (
        shown if isinstance(shown, list) else [shown, shown]
    )
    if shown is None:
        assert all(
            f"{said:,} cycles are said, and the matrix products alone take {said + 1:,}" in row["no_estimate"]
            for row in rows
        )
        assert "no estimate" in str(answered)


@FILES
def test_who_holds_more_than_one_that_does_not_fit_is_not_asked(
    run: Any, recorded: Any, text: str, monkeypatch: Any
) -> None:
    write(BODIES, "bodies.py")
    monkeypatch.setenv("SPILLS", "windows // 2")
    answered = lp.search(cheapest_first(text, [64, 192, 384, 512]), compiling=True)
    assert answered.exit_code == 0
    found, out = answered.as_dict(), str(answered)
    assert {row["values"]["rows"] for row in found["best"]} == {64, 192}
    # 384 rows take 18 MiB of 16; 512 rows would take 24
    assert recorded() == [64, 192, 384]
    assert found["compiler"]["candidates"] == {"asked": 3, "accepted": 2, "refused": 1, "unknown": 0, "skipped": 1}
    assert "2 of the 3 that were asked about are accepted, the cheapest by the model first; 1 refused" in out
    assert "not asked" in out
    assert "1 more: they hold as much of everything as one that does not fit" in out


@FILES
def test_what_does_not_grow_leaves_nobody_out(run: Any, recorded: Any, text: str, monkeypatch: Any) -> None:
    """The twin: with a pair of which the larger takes less, who was passed by is asked after all."""
    write(BODIES, "bodies.py")
    # 32 rows take 13 MiB, 192 rows 17 of 16, so that 512 rows are passed by, until 128 rows take 4
    spills = f"{12 * MIB} if windows < {3 * MIB} else {11 * MIB} if windows == {6 * MIB} else 0"
    monkeypatch.setenv("SPILLS", spills)
    file = write(f"{text}tune: {{rows: [32, 128, 192, 512]}}\ncost: rows % 26\n")
    code, out, _ = run(file, "--compile", "--json")
    found = json.loads(out)
    assert code == 0
    assert recorded() == [32, 192, 128, 512]
    assert {row["values"]["rows"] for row in found["best"]} == {32, 128, 512}
    assert found["compiler"]["candidates"] == {"asked": 4, "accepted": 3, "refused": 1, "unknown": 0, "skipped": 0}


@FILES
def test_nobody_is_passed_by_before_one_is_taken(run: Any, recorded: Any, text: str, monkeypatch: Any) -> None:
    """Whoever costs less than the best was asked: the proof rests on no measurement."""
    write(BODIES, "bodies.py")
    monkeypatch.setenv("SPILLS", f"{9 * MIB} if windows > {7 * MIB} else 0")
    file = write(f"{text}tune: {{rows: [64, 256, 384, 512]}}\n")
    code, out, _ = run(file, "--compile", "--json")
    found = json.loads(out)
    assert code == 0
    assert sorted(recorded()) == [64, 256, 384, 512]
    assert found["compiler"]["candidates"] == {"asked": 4, "accepted": 1, "refused": 3, "unknown": 0, "skipped": 0}


@FILES
def test_a_candidate_that_ends_the_compiler_answers_for_nobody_else(
    run: Any, recorded: Any, text: str, monkeypatch: Any
) -> None:
    write(BODIES, "bodies.py")
    monkeypatch.setenv("ABORTS", "grid[0] == 3072 // 192")
    code, out, _ = run(cheapest_first(text, [64, 192, 256]), "--compile", "--json")
    found = json.loads(out)
    # what costs more than the best may be unknown
    assert code == 0
    assert {row["values"]["rows"] for row in found["best"]} == {64, 256}
    assert found["compiler"]["candidates"]["unknown"] == 1
    # what costs less than the best may not
    monkeypatch.setenv("ABORTS", "grid[0] == 3072 // 64")
    code, out, _ = run(cheapest_first(text, [64, 192, 256]), "--compile")
    assert code == 3
    assert "Check failed: rows" in out


@FILES
def test_a_compiler_that_always_aborts_is_not_asked_for_ever(
    run: Any, recorded: Any, text: str, monkeypatch: Any
) -> None:
    write(BODIES, "bodies.py")
    monkeypatch.setenv("ABORTS", "True")
    monkeypatch.setattr("layoutproof.searching.compiler_stage.PATIENCE", 1)
    monkeypatch.setattr("layoutproof.searching.traced.PATIENCE", 1)
    monkeypatch.setattr("layoutproof.searching.traced.AT_ONCE", 2)
    monkeypatch.setattr("layoutproof.searching.compiler_stage.ASKED", 1)
    monkeypatch.setattr("layoutproof.searching.compiler_stage.ASKED", 1)
    code, out, _ = run(cheapest_first(text, [64, 128, 192, 256, 384, 512]), "--compile", "--best", "1", "--json")
    found = json.loads(out)
    assert code == 3
    assert found["best"] == [] or found["best"][0]["compiler"]["accepted"] is None
    assert found["compiler"]["candidates"]["accepted"] == 0
    assert found["compiler"]["candidates"]["asked"] < 6


@pytest.mark.skipif(bool(compiler.available()), reason=compiler.available() or "it is")
@FILES
def test_the_real_compiler_is_asked_less(run: Any, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says of 384 rows of a softmax is enough for 512."""
    monkeypatch.setattr("layoutproof.searching.compiler_stage.cores", lambda: 1)
    write(BODIES, "bodies.py")
    code, out, _ = run(cheapest_first(text, [128, 384, 512]), "--compile", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["best"][0]["values"] == {"rows": 128}
    assert found["best"][0]["exact_vmem"] > WINDOWS[128]
    assert found["compiler"]["candidates"] == {"asked": 2, "accepted": 1, "refused": 1, "unknown": 0, "skipped": 1}
