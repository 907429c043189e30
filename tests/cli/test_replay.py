"""`kernels --replay`: what running a kernel shows, beside what is refuted, and against what is proved."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.cli.documents import adapter
from layoutproof.cli.main import run
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Block, Kernel, Operand, Table
from layoutproof.kernel.obligation import Obligation, by_rule
from layoutproof.pallas import replay
from layoutproof.pallas.findings import Judged
from layoutproof.pallas.overruled import overruled
from layoutproof.pallas.replay import Replay, Sign, contents
from layoutproof.pallas.rules import body_in_bounds
from tests.said import stretch as stretch_of
from tests.said import words as words_of

pytestmark = pytest.mark.slow

MODULE = '''
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ROWS = pl.BlockSpec((8, 128), lambda i, *tables: (i, 0))
ANY = pl.BlockSpec(memory_space=pl.ANY)
COPY = [pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA]


def call(body, name, n=4, out=ROWS, rows=32, spec=ROWS, scratch=(), how="arbitrary", tables=(), columns=128):
    # what the code says of a table is read: nobody knows what a chip makes of floats
    tables = [table.astype(jnp.float32).astype(jnp.int32) for table in tables]
    given = [*tables, jnp.zeros((rows if spec is ROWS else 32, columns))]
    return pl.pallas_call(
        body,
        name=name,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=len(tables), grid=(n,), in_specs=[spec], out_specs=out, scratch_shapes=list(scratch)
        ),
        out_shape=jax.ShapeDtypeStruct((rows, 128), jnp.float32),
        compiler_params=pltpu.CompilerParams(dimension_semantics=(how,)),
    )(*given)


def copied(x, o, buffer, semaphore, waits, row):
    """The whole of x, through memory of its own, and so many waits."""
    buffer[...] = x[...]
    copy = pltpu.make_async_copy(buffer, o.at[pl.ds(row, 8)], semaphore)
    copy.start()
    for _ in range(waits):
        copy.wait()


def doubled(x, o):
    o[...] = x[...] * 2


def padded():
    def body(x, o):
        o[...] = jnp.broadcast_to(jnp.sum(x[...], axis=1, keepdims=True), (8, 128))

    return call(body, "padded", n=1, rows=8, spec=pl.BlockSpec((8, 256), lambda i: (0, 0)), columns=200)


def waits_twice():
    def body(x, o, buffer, semaphore):
        copied(x, o, buffer, semaphore, 2, 8 * pl.program_id(0))

    return call(body, "waits_twice", out=ANY, scratch=COPY)


def same_rows():
    def body(x, o, buffer, semaphore):
        copied(jnp.zeros((8, 128)), o, buffer, semaphore, 1, 0)

    return call(body, "same_rows", out=ANY, rows=8, spec=ANY, scratch=COPY, how="parallel")


def behind_the_end():
    def body(x, o):
        o[...] = x[pl.ds(8 * pl.program_id(0) + 8, 8), :]

    return call(body, "behind_the_end", spec=pl.BlockSpec((32, 128), lambda i: (0, 0)))


def by_table():
    def body(t, x, o):
        o[...] = x[pl.ds(t[pl.program_id(0)], 8), :]

    whole = pl.BlockSpec((32, 128), lambda i, t: (0, 0))
    return call(body, "by_table", spec=whole, tables=(jnp.zeros(4, jnp.int32),))


def stale():
    def body(x, o):
        @pl.when(pl.program_id(0) % 2 == 0)
        def _():
            o[...] = x[...]

    return call(body, "stale")


def right():
    return call(doubled, "right")


def ends():
    def body(x, o):
        jax.debug.callback(lambda: __import__("os")._exit(7))
        o[...] = x[...]

    return call(body, "ends")


def cores():
    """Each core of two writes 16 rows, the second one from the middle of the first one's."""
    whole = jax.ShapeDtypeStruct((32, 128), jnp.float32)
    memory = [pltpu.VMEM((16, 128), jnp.float32), pltpu.SemaphoreType.DMA]

    @pl.kernel(out_type=whole, mesh=pltpu.create_tensorcore_mesh("core", num_cores=2), scratch_types=memory)
    def cores(x, o, buffer, semaphore):
        core = jax.lax.axis_index("core")
        buffer[...] = jnp.zeros((16, 128))
        pltpu.async_copy(buffer, o.at[pl.ds(core * 8, 16)], semaphore).wait()

    return cores(jnp.zeros((32, 128)))


def large():
    return call(doubled, "large", n=8192, rows=8 * 8192)


def dynamic(n):
    return call(doubled, "dynamic", n=n)


def every(n):
    return (
        padded(), waits_twice(), same_rows(), cores(), behind_the_end(), by_table(), stale(), ends(), right(), large(),
        dynamic(n),
    )
'''
SHOWN = {
    "padded": ("refuted", ["nan"]),
    "waits_twice": ("refuted", ["hang"]),
    "same_rows": ("refuted", ["race"]),
    "cores": ("refuted", ["nan", "race"]),
    "behind_the_end": ("refuted", ["raised"]),
    "by_table": ("refuted", ["raised"]),
    "stale": ("refuted", []),
    "ends": ("proved", []),
    "right": ("proved", []),
    "large": ("proved", []),
    "dynamic": ("unknown", []),
}
"""The verdict of each kernel, and the kinds of what its run shows."""


def _command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "users.py").write_text(MODULE)
    command = [sys.executable, "-m", "layoutproof", "kernels", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


def test_what_runs_show_stands_beside_the_verdicts(tmp_path: Path) -> None:
    """NaN, a hang, a race, an exception, nothing; what is too large or has no sizes is not run; no verdict changes.

    What ends the process is said, and the kernel after it is run in a new one.
    """
    pytest.importorskip("jax", reason="JAX is not installed")
    # a run takes the table of a refutation, so what only some tables refute is asked with strict tables
    words = ["users.py:every", "--arg", "s32[]", "--assume", "0 <= prefetch0 <= 28", "--strict-tables", "--json"]
    plain, done = _command(tmp_path, *words), _command(tmp_path, *words, "--replay")
    without, answer = json.loads(plain.stdout), json.loads(done.stdout)
    adapter("kernels").validate_json(done.stdout)
    kernels = {kernel["subject"]: kernel for kernel in answer["kernels"]}
    found = {name: (k["verdict"], sorted({s["kind"] for s in k["replay"]["signs"]})) for name, k in kernels.items()}
    assert found == SHOWN, done.stderr
    assert plain.returncode == done.returncode == 1
    assert [k["verdict"] for k in without["kernels"]] == [k["verdict"] for k in answer["kernels"]]
    assert all(k["replay"] is None for k in without["kernels"])

    def said(name: str, question: str) -> str:
        (finding,) = (f for f in kernels[name]["findings"] if f["question"] == question and f["verdict"] == "refuted")
        return str(finding["replay"])

    assert said("padded", "undefined_values") == "NaN in outputs at (0, 0) (1,024 of 1,024 elements)"
    assert stretch_of("traced.process_waits", still=5) in said("waits_twice", "dma_order")
    assert said("same_rows", "body_races").startswith("a race: a write at ")
    assert "IndexError: Out-of-bounds read" in said("behind_the_end", "body_in_bounds")
    assert kernels["by_table"]["replay"]["tables"]["prefetch0"][0] > 24
    assert said("stale", "outputs_stored") == (
        "nothing of it; a window that a program does not store keeps what the program before it left there"
    )
    problems = {name: kernel["replay"]["problem"] for name, kernel in kernels.items() if kernel["replay"]["problem"]}
    assert problems == {
        "ends": "JAX's interpreter of TPU kernels ended with exit code 7 on it",
        "large": words_of("pallas.run_programs", programs=8192, most=4096),
        "dynamic": "sizes that only the running program knows: grid0",
    }


def test_a_function_that_no_module_has(capfd: pytest.CaptureFixture[str]) -> None:
    """A closure is run as well; the report says it at the call and at what is refuted; nothing else is printed."""
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    from jax.experimental import pallas as pl

    scale = 3

    def body(x: Any, o: Any) -> None:
        o[...] = jax.numpy.broadcast_to(jax.numpy.sum(x[...] * scale, axis=1, keepdims=True), (8, 128))

    def function(x: Any) -> Any:
        wide = pl.BlockSpec((8, 256), lambda: (0, 0))
        return pl.pallas_call(body, in_specs=[wide], out_shape=jax.ShapeDtypeStruct((8, 128), "float32"))(x)

    answer = lp.kernels(function, jax.ShapeDtypeStruct((8, 200), "float32"), replay=True)
    lines = str(answer).splitlines()
    shown = f"NaN in outputs at (0, 0) (1,024 of 1,024 elements), in InterpretParams of jax {jax.__version__}"
    assert f"  run      {shown}" in lines
    assert "  run      NaN in outputs at (0, 0) (1,024 of 1,024 elements)" in lines
    assert answer.exit_code == 1
    assert capfd.readouterr().out == ""


def test_a_file_and_a_spec_run_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What holds no function is bad usage, in Python too."""
    for words in (["a.hlo", "--replay"], ["users.py:right", "--replay", "--spec"]):
        assert run(["kernels", *words]) == 2
        assert stretch_of("cli.file_with_replay") in capsys.readouterr().err
    with pytest.raises(lp.LayoutError, match="a function is run"):
        lp.kernels(tmp_path / "a.yaml", replay=True)


def _refuted(question: str, severity: str = "error", **more: Any) -> Finding:
    return Finding(question, "outputs", verdict=Verdict.REFUTED, severity=severity, **more)


def test_a_sign_speaks_of_its_own_questions() -> None:
    """NaN is no sign of a race; of what is proved, an info, or not run nothing is said; unknown questions say so."""
    run = Replay((Sign("nan", "NaN in outputs at (0,)"),), jax="0.10.2")
    assert run.of(_refuted("outputs_stored")) == "NaN in outputs at (0,)"
    assert run.of(_refuted("parallel_writes")).startswith("nothing of it; ")
    assert (
        Replay(jax="0.10.2")
        .of(_refuted("body_races"))
        .startswith(words_of("pallas.nothing_of_it_seen", blind="two cores"))
    )
    assert run.of(_refuted("grid_positive")) == words_of("pallas.nothing_of_it_seen", blind=words_of("pallas.no_sign"))
    assert run.of(_refuted("inputs_read")) == "nothing of it; an element that is not read leaves no trace in a result"
    assert run.of(_refuted("inputs_read", "info")) == ""
    assert run.of(Finding("outputs_stored", "outputs", verdict=Verdict.PROVED)) == ""
    assert Replay(problem="too large").of(_refuted("outputs_stored")) == ""


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        ("every", "JAX's interpreter of TPU kernels did not come to an end within 0.5 s on it"),
        ("gone", "has no 'gone'"),
    ],
)
def test_no_answer_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, problem: str) -> None:
    """A child that takes too long is ended; what it cannot find is said. Neither is a sign."""
    pytest.importorskip("jax", reason="JAX is not installed")
    (tmp_path / "users.py").write_text(MODULE)
    monkeypatch.setattr(replay, "CHILD", dataclasses.replace(replay.CHILD, seconds=0.5 if function == "every" else 60))
    kernel = Kernel("right", (4,), ("g0",), ())
    (run,) = replay.replays(f"{tmp_path / 'users.py'}:{function}", [3], {}, "", [(kernel, ())])
    assert problem in run.problem
    assert (run.signs, str(run).startswith("no: ")) == ((), True)


def test_tables_hold_what_is_assumed() -> None:
    """In range, in order, no value twice, none left out, as each is assumed; counterexamples' values come first."""
    tables = (
        Table("any", (4,), low=2, high=9),
        Table("up", (5,), low=0, high=3, monotone=True, onto=True),
        Table("once", (3,), low=0, high=7, injective=True),
        Table("free", (2,)),
    )
    wrong = _refuted("body_in_bounds", counterexample={"program": (0,), "reads": {"any[0]": 8}})
    found = contents(Kernel("k", (1,), ("g0",), (), tables=tables), [wrong])
    assert found[0]["any"] == [8, 8, 8, 8]
    assert any(len(set(each["any"])) > 1 for each in found)
    for each in found:
        assert all(2 <= v < 9 for v in each["any"])
        assert each["up"] == sorted(each["up"])
        assert set(each["up"]) == {0, 1, 2}
        assert len(set(each["once"])) == 3
        assert set(each["once"]) <= set(range(7))
        assert len(each["free"]) == 2


def _call(*proved: str, refuted: str = "", operands: Any = (), signs: tuple[Sign, ...] = (), **more: Any) -> Judged:
    """A call with a run, of which these questions are proved, and one may be refuted."""
    output = Operand("outputs", "out", (8,), "f32", (Block("blocked", 8),), (Term("int", 0),))
    kernel = Kernel("k", (4,), ("g0",), (*operands, output), **more)
    found = [Finding(name, "outputs", verdict=Verdict.PROVED, decided_by="isl") for name in proved]
    found += [_refuted(refuted)] if refuted else []
    return overruled(Judged(kernel, tuple(found), replay=Replay(signs, jax="0.10.2")))


OUTSIDE = Sign("raised", "it raised IndexError: Out-of-bounds read of smem: reading [(4,)]")
VALUES = ("initialised", "outputs_stored", "undefined_values")


@pytest.mark.parametrize(
    ("sign", "proved", "contradicted"),
    [
        (OUTSIDE, ("body_in_bounds", "dma_order"), ("body_in_bounds",)),
        (Sign("raised", "it raised IndexError: Out-of-bounds block index (9,)"), ("blocks_in_bounds",), None),
        (Sign("hang", "it waits"), ("dma_order", "body_races"), ("dma_order",)),
        (Sign("semaphore", "a semaphore is left"), ("dma_order",), None),
        (Sign("race", "a race"), ("body_races", "dma_order"), None),
        (Sign("nan", "NaN in outputs at (0,)", "outputs"), VALUES, None),
        (Sign("differs", "outputs at (0,) is 1, 2 on zeros", "outputs"), (*VALUES, "outputs_covered"), VALUES),
    ],
)
def test_a_sign_that_proofs_exclude_is_a_conflict(
    sign: Sign, proved: tuple[str, ...], contradicted: tuple[str, ...] | None
) -> None:
    """The proofs become unknown, `conflict` is refuted with what to paste; what else is proved stays so."""
    call = _call(*proved, signs=(sign,))
    against = contradicted or proved
    assert call.verdict is Verdict.REFUTED
    assert {f.question for f in call.findings if f.verdict is Verdict.UNKNOWN} == set(against)
    (found,) = (f for f in call.findings if f.question == "conflict")
    assert found.severity == "error"
    assert sign.text in found.reason
    assert all(name in found.figures["report"] for name in (*against, "jax 0.10.2", "layoutproof"))
    # what is refuted, or open, may be why
    assert _call(*proved[1:], refuted=proved[0], signs=(sign,)).of("conflict") == ()
    # what was not asked was not proved
    assert _call("grid_positive", signs=(sign,)).of("conflict") == ()


@pytest.mark.parametrize(
    ("sign", "more", "known"),
    [
        (
            Sign(
                "nan", "NaN in outputs, on memory that starts as 0 too", "outputs", stretch_of("traced.written_memory")
            ),
            {},
            "no memory",
        ),
        (Sign("nan", "NaN in other", "other"), {}, ""),
        (Sign("raised", "it raised ValueError: a callback"), {}, ""),
        (
            Sign("nan", "NaN in outputs", "outputs"),
            {"operands": (Operand("x", "in", (8,), "f32", (Block("element", 8, 1),), (Term("int", 0),)),)},
            stretch_of("pallas.element_padding"),
        ),
    ],
)
def test_what_is_against_no_proof_makes_no_conflict(sign: Sign, more: dict[str, Any], known: str) -> None:
    """Arithmetic, an output that is not the call's, another exception; and a known fault of the interpreter, named."""
    call = _call(*VALUES, "body_in_bounds", "blocks_in_bounds", signs=(sign,), **more)
    assert call.verdict is Verdict.PROVED
    assert call.replay is not None
    assert known in str(call.replay)


def test_a_run_overrules_a_proof(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A planted fault of ours: a rule that proves everything. Without the run it is green; the run makes it 1."""
    pytest.importorskip("jax", reason="JAX is not installed")
    scope: dict[str, Any] = {}
    exec(MODULE, scope)
    assert lp.kernels(scope["behind_the_end"]).exit_code == 1
    monkeypatch.setattr(body_in_bounds, "obligations", lambda kernel: (Obligation(kernel.name, by_rule("")),))
    assert lp.kernels(scope["behind_the_end"]).exit_code == 0
    answer = lp.kernels(scope["behind_the_end"], replay=True)
    assert answer.exit_code == 1
    adapter("kernels").validate_json(answer.to_json())
    (found,) = (f for f in answer.findings if f.question == "conflict")
    assert "Out-of-bounds read" in found.reason
    assert "refuted  conflict  behind_the_end" in str(answer)
    assert "unknown  body_in_bounds" in str(answer)
    assert lp.kernels(scope["right"], replay=True).exit_code == 0
    assert run(["explain", "conflict"]) == 0
    assert "A run may overrule" in capsys.readouterr().out
