"""Inputs in scalar memory: what is read of them is any number, the same for all programs where all see one block."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

jax = pytest.importorskip("jax", reason="finding Pallas calls needs the extra [jax]")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

from layoutproof.core.errors import LayoutError  # noqa: E402
from layoutproof.core.finding import Finding  # noqa: E402
from layoutproof.core.result import Verdict  # noqa: E402
from layoutproof.kernel.kernel import Kernel  # noqa: E402
from layoutproof.kernel.table_assumptions import check_tables  # noqa: E402
from layoutproof.pallas.from_jax.trace import kernels_of  # noqa: E402
from layoutproof.pallas.judge import advice, judge  # noqa: E402

pytestmark = pytest.mark.slow


def found(body: Any, block: Any, question: str, *assume: str, strict: bool = False) -> list[Finding]:
    """What is found of a kernel of 4 parallel programs with s32[4] in scalar memory, which moves rows by hand."""
    asked = judge(traced(body, block, *assume), names=[question], strict_tables=strict)
    return [f for f in asked if f.question == question]


def traced(body: Any, block: Any, *assume: str) -> Kernel:
    def call(s: Any, x: Any) -> Any:
        return pl.pallas_call(
            body,
            grid=(4,),
            in_specs=[block, pl.BlockSpec(memory_space=pl.ANY)],
            out_specs=pl.BlockSpec(memory_space=pl.ANY),
            out_shape=jax.ShapeDtypeStruct((64, 128), jnp.float32),
            compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
            scratch_shapes=[pltpu.SemaphoreType.DMA],
        )(s, x)

    shapes = jax.ShapeDtypeStruct((4,), jnp.int32), jax.ShapeDtypeStruct((64, 128), jnp.float32)
    (kernel,) = kernels_of(call, shapes, assume=assume)
    assert isinstance(kernel, Kernel)
    return kernel


WHOLE = pl.BlockSpec(memory_space=pltpu.SMEM)
ONE_EACH = pl.BlockSpec((1,), lambda i: (i,), memory_space=pltpu.SMEM)
BLOCKS_OF_3 = pl.BlockSpec((3,), lambda i: (i // 2,), memory_space=pltpu.SMEM)


def rows_from(s: Any, x: Any, o: Any, sem: Any) -> None:
    start = s[0] + 8 * pl.program_id(0)
    copy = pltpu.make_async_copy(x.at[pl.ds(0, 8)], o.at[pl.ds(start, 8)], sem)
    copy.start()
    copy.wait()


def guarded(s: Any, x: Any, o: Any, sem: Any) -> None:
    @pl.when((s[0] >= 0) & (s[0] <= 32))
    def _() -> None:
        rows_from(s, x, o, sem)


def verdicts(findings: list[Finding]) -> set[Verdict]:
    assert findings
    return {f.verdict for f in findings}


@pytest.mark.parametrize("block", [WHOLE, ONE_EACH])
def test_numbers_of_the_caller_refute_nothing(block: Any) -> None:
    findings = found(rows_from, block, "body_in_bounds")
    assert verdicts(findings) >= {Verdict.UNKNOWN}
    assert Verdict.REFUTED not in verdicts(findings)
    assert advice(findings) == ("0 <= args[0] < 33", "")


def test_what_the_body_asks_before_is_known() -> None:
    assert verdicts(found(guarded, WHOLE, "body_in_bounds")) == {Verdict.PROVED}


def test_one_start_for_all_programs_keeps_their_rows_apart() -> None:
    assert verdicts(found(guarded, WHOLE, "body_races")) == {Verdict.PROVED}


def test_starts_of_their_own_do_not() -> None:
    assert Verdict.UNKNOWN in verdicts(found(guarded, ONE_EACH, "body_races"))


@pytest.mark.parametrize("block", [WHOLE, ONE_EACH])
def test_what_is_advised_proves_it(block: Any) -> None:
    assert verdicts(found(rows_from, block, "body_in_bounds", "0 <= args[0] < 33")) == {Verdict.PROVED}


@pytest.mark.parametrize(("block", "entry"), [(WHOLE, "args[0][0]"), (ONE_EACH, "args[0][3]")])
def test_a_wider_range_is_refuted_with_the_entry_that_does_it(block: Any, entry: str) -> None:
    asked = found(rows_from, block, "body_in_bounds", "0 <= args[0] < 37", strict=True)
    (wrong,) = [f for f in asked if f.verdict is Verdict.REFUTED]
    assert wrong.counterexample == {"program": (3,), "reads": {entry: 33}}
    assert wrong.assumes == ("0 <= args[0] < 37",)
    open_ = found(rows_from, block, "body_in_bounds", "0 <= args[0] < 37")
    assert verdicts(open_) == {Verdict.UNKNOWN, Verdict.PROVED}
    assert [f.reason.partition(" (")[0] for f in open_ if f.verdict is Verdict.UNKNOWN] == [
        "refuted if args[0] can be 33"
    ]


def test_entries_of_a_block_are_those_of_the_array() -> None:
    """Programs that see blocks of their own see different entries: where none stands twice, their rows are apart."""

    def rows(s: Any, x: Any, o: Any, sem: Any) -> None:
        copy = pltpu.make_async_copy(x.at[pl.ds(0, 8)], o.at[pl.ds(8 * s[0], 8)], sem)
        copy.start()
        copy.wait()

    said = "0 <= args[0] < 8", "args[0] is injective"
    assert verdicts(found(rows, ONE_EACH, "body_races", *said)) == {Verdict.PROVED}
    assert verdicts(found(rows, WHOLE, "body_races", *said)) == {Verdict.REFUTED}
    assert Verdict.PROVED not in verdicts(found(rows, ONE_EACH, "body_races", "0 <= args[0] < 8"))


def test_what_is_behind_the_end_of_the_array_is_not_assumed() -> None:
    """Of s32[4] in blocks of 3 the second block has one entry, and two numbers of which nobody says anything."""

    def rows(s: Any, x: Any, o: Any, sem: Any) -> None:
        copy = pltpu.make_async_copy(x.at[pl.ds(0, 8)], o.at[pl.ds(s[2], 8)], sem)
        copy.start()
        copy.wait()

    assert Verdict.UNKNOWN in verdicts(found(rows, BLOCKS_OF_3, "body_in_bounds"))
    with pytest.raises(LayoutError, match="is about no table; no call has one"):
        check_tables([traced(rows, BLOCKS_OF_3)], ["0 <= args[0] < 33"])


@pytest.mark.parametrize(
    ("relation", "verdict"),
    [
        ("args[0][i] <= args[0][i + 1]", Verdict.PROVED),
        ("args[0][i] <= args[0][i + 1] if i + 1 < 4", Verdict.PROVED),
        ("args[0][i] >= args[0][i + 1]", Verdict.UNKNOWN),
        ("", Verdict.UNKNOWN),
    ],
)
def test_entries_of_an_input_are_related(relation: str, verdict: Verdict) -> None:
    def rows(s: Any, x: Any, o: Any, sem: Any) -> None:
        copy = pltpu.make_async_copy(x.at[pl.ds(0, 8)], o.at[pl.ds(s[1] - s[0], 8)], sem)
        copy.start()
        copy.wait()

    said = ("0 <= args[0] < 57", *filter(None, [relation]))
    assert min(verdicts(found(rows, WHOLE, "body_in_bounds", *said))) is verdict


def test_what_the_body_stores_into_is_bounded_only_by_what_it_stores() -> None:
    def body(s: Any, x: Any, o: Any, sem: Any) -> None:
        s[1] = 60
        copy = pltpu.make_async_copy(x.at[pl.ds(0, 8)], o.at[pl.ds(s[1], 8)], sem)
        copy.start()
        copy.wait()

    assert Verdict.UNKNOWN in verdicts(found(body, WHOLE, "body_in_bounds", "0 <= args[0] < 33"))


def test_an_assumption_about_one_entry_is_refused() -> None:
    """It would be taken for one about all."""
    with pytest.raises(LayoutError, match="is about no table; the calls have args"):
        check_tables([traced(rows_from, WHOLE)], ["0 <= args[0][2] < 33"])


@pytest.mark.parametrize("said", [["8 <= args[0] < 8"], ["0 <= args[0] < 8", "8 <= args[0] < 16"]])
def test_what_nothing_can_hold_proves_nothing(said: list[str]) -> None:
    findings = found(rows_from, WHOLE, "body_in_bounds", *said)
    assert verdicts(findings) == {Verdict.UNKNOWN}
    assert all("vacuous: args[0] has no value it could hold" in f.reason for f in findings)


WINDOWS = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def body(plan, count, x, o, sem):
    def step(k, _):
        copy = pltpu.make_async_copy(x.at[pl.ds(plan[k, 1], 8)], o.at[pl.ds(8 * plan[k, 0], 8)], sem)
        copy.start()
        copy.wait()
        return 0

    jax.lax.fori_loop(0, count[0], step, 0)


def planned(plan, count, x):
    return pl.pallas_call(
        body,
        grid=(1,),
        in_specs=[
            pl.BlockSpec(memory_space=pltpu.SMEM),
            pl.BlockSpec((1,), lambda i: (0,)),
            pl.BlockSpec(memory_space=pl.ANY),
        ],
        out_specs=pl.BlockSpec(memory_space=pl.ANY),
        out_shape=jax.ShapeDtypeStruct((64, 128), jnp.float32),
        scratch_shapes=[pltpu.SemaphoreType.DMA],
    )(plan, count, x)
"""
"""A table of which each column means something else, and an integer in vector memory that says how many rows it has."""


@pytest.mark.parametrize(
    ("assume", "verdict"),
    [
        (["0 <= args[0][:, 0] < 8", "0 <= args[0][:, 1] <= 248", "0 <= args[1] <= 6"], ""),
        (["0 <= args[0][i, 0] < 8", "args[0][i, 1] >= 0 and args[0][i, 1] <= 248", "0 <= args[1] <= 6"], ""),
        (["0 <= args[0][:, 0] < 8", "0 <= args[0][:, 1] <= 249", "0 <= args[1] <= 6"], "refuted if args[0] can be"),
        (["0 <= args[0][:, 0] < 8", "0 <= args[0][:, 1] <= 248", "0 <= args[1] <= 7"], "refuted if args[1] can be"),
        (["0 <= args[0][:, 0] < 8", "0 <= args[1] <= 6"], "unknown"),
        (["0 <= args[0][i, 0] < 8", "0 <= args[1] <= 6"], "unknown"),
        (["0 <= args[0][:, 0] < 8", "8 <= args[0][0, :] <= 9", "0 <= args[1] <= 6"], "unknown"),
    ],
)
def test_columns_of_a_table_are_bounded_each_by_itself(tmp_path: Path, assume: list[str], verdict: str) -> None:
    """`0 <= t[i, 0] < 8` was taken for a bound of all columns: the rows that nobody bounds were proved."""
    (tmp_path / "users.py").write_text(WINDOWS)
    call = ["kernels", "users.py:planned", "--args", "s32[6,2], s32[1], f32[256,128]"]
    said = [part for text in assume for part in ("--assume", text)]
    asked = command(tmp_path, *call, *said, "--record", "calls.jsonl", "--json")
    again = command(tmp_path, "kernels", "calls.jsonl", "--json")
    strict = command(tmp_path, "kernels", "calls.jsonl", "--json", "--strict-tables")
    some = verdict.startswith("refuted if ")
    for answer, meant in ((asked, "unknown"), (again, "unknown"), (strict, "refuted")):
        document = json.loads(answer.stdout)
        (kernel,) = document["kernels"]
        found = [each for each in kernel["findings"] if each["question"] == "body_in_bounds"]
        open_ = {each["verdict"] for each in found} - {"proved"}
        assert open_ == {meant if some else verdict} - {""}
        wrong = [each for each in found if each["verdict"] == meant and some]
        assert bool(wrong) is some
        assert meant == "refuted" or all(each["reason"].startswith(verdict) for each in wrong)
        assert all(text in each["assumes"] for each in wrong for text in assume if "<= 249" in text)


MODULE = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def body(starts, x, o, sem):
    copy = pltpu.make_async_copy(x.at[pl.ds(starts[pl.program_id(0)], 8)], o, sem)
    copy.start()
    copy.wait()


def rows(starts, x):
    return pl.pallas_call(
        body,
        grid=(4,),
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
        scratch_shapes=[pltpu.SemaphoreType.DMA],
    )(starts, x)
"""


def test_the_command_offers_what_it_takes_back(tmp_path: Path) -> None:
    """Asked, pasted, recorded and judged again: the same line, and what was assumed is kept with the record."""
    (tmp_path / "users.py").write_text(MODULE)
    call = ["kernels", "users.py:rows", "--args", "s32[4], f32[64,128]"]
    asked = command(tmp_path, *call)
    line = next(line.split()[1:] for line in asked.stdout.splitlines() if line.strip().startswith("assume"))
    assert line == ["--assume", '"0', "<=", "args[0]", "<", '57"']
    given = ["--assume", "0 <= args[0] < 57"]
    proved = command(tmp_path, *call, *given, "--record", "calls.jsonl")
    again = command(tmp_path, "kernels", "calls.jsonl")
    assert (asked.returncode, proved.returncode, again.returncode) == (3, 0, 0)
    wider = command(tmp_path, *call, "--assume", "0 <= args[0] <= 57", "--replay", "--strict-tables")
    assert wider.returncode == 1
    assert "program=(0) reads=(args[0][0] = 57)" in wider.stdout
    assert "run      " in wider.stdout
    open_ = command(tmp_path, *call, "--assume", "0 <= args[0] <= 57", "--replay")
    assert open_.returncode == 3
    assert "because  refuted if args[0] can be 57 (" in open_.stdout
    assert "run      " in open_.stdout
    nobody = command(tmp_path, "kernels", "calls.jsonl", "--assume", "0 <= starts < 57")
    assert nobody.returncode == 2
    assert "about no table; the calls have args[0]" in nobody.stderr


COPIES = """
import enum

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def body(many, x, o, last):
    last[0] = many[0]

    @pl.when(pl.program_id(0) == 0)
    def _():
        pltpu.sync_copy(x.at[pl.ds(0, many[0])], o.at[pl.ds(0, many[0])])  # here


def rows(many, x):
    return pl.pallas_call(  # call
        body,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(2,),
            in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
            out_specs=[pl.BlockSpec(memory_space=pl.ANY), pl.BlockSpec(memory_space=pltpu.SMEM)],
        ),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        out_shape=[x, jax.ShapeDtypeStruct((1,), jnp.int32)],
    )(many, x)


class Memory(enum.Enum):
    ANY = 1


def old(x):
    return Memory["HBM"]  # gone
"""
"""Copies of as many rows as a table says, by a helper of JAX; an output without an index map of the user's."""


def test_what_jax_writes_is_at_the_line_of_the_user(tmp_path: Path) -> None:
    """It was at the line of the call, or at one in JAX's own files."""
    (tmp_path / "users.py").write_text(COPIES)
    lines = COPIES.splitlines()
    here, call, gone = (
        next(k for k, one in enumerate(lines, 1) if f"# {word}" in one) for word in ("here", "call", "gone")
    )
    found = command(tmp_path, "kernels", "users.py:rows", "--args", "s32[1], f32[64,128]", "--json")
    (kernel,) = json.loads(found.stdout)["kernels"]
    places = {(each["question"], each["line"]) for each in kernel["findings"] if each["verdict"] != "proved"}
    assert ("body_in_bounds", here) in places
    assert ("parallel_writes", call) in places
    assert all(each["file"].endswith("users.py") for each in kernel["findings"] if each["verdict"] != "proved")
    # a slice of no rows may start where the array ends
    assert "0 <= prefetch0 < 65" in kernel["assume"]
    raised = command(tmp_path, "kernels", "users.py:old", "--args", "f32[8]")
    assert f"users.py:{gone}" in raised.stderr


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-m", "layoutproof", *arguments]
    return subprocess.run(run, cwd=folder, capture_output=True, text=True, timeout=300)
