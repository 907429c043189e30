"""Search files that nobody prepared: every failure is a LayoutError with its place, and nothing is guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from layoutproof.answers.of_search import search
from layoutproof.core.errors import LayoutError
from layoutproof.searching.cover import IntervalArray, IntervalArrayNumbers
from layoutproof.searching.read import read_problem
from layoutproof.searching.solve import solve
from layoutproof.searching.tilings import Tilings
from layoutproof.specs.positions import read_yaml
from tests.said import stretch, words

SMALL = """\
target: v5e
kernel:
  grid: ["cdiv(M, bm)"]
  inputs: [{name: x, array: "f32[M,N]", block: [bm, N], index: "i -> (i, 0)"}]
  outputs: [{name: o, array: "f32[M,N]", block: [bm, N], index: "i -> (i, 0)"}]
sizes: {M: 64, N: 128}
tune: {bm: {multiple_of: 8}}
headroom: 0%
flops: 2 * M * N
"""
TRACED = """\
target: v5e
trace: jax.experimental.pallas.ops.tpu.matmul:matmul
sizes: {M: 256}
args: ["bf16[M,M]", "bf16[M,M]"]
kwargs: {block_shape: "(bm, 256)", block_k: 256}
tune: {bm: [128, 256]}
"""


def answered(text: str) -> Tilings:
    return solve(read_problem(read_yaml(text)))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('["cdiv(M, bm)"]', '["M // (M - M)"]', words("kernel.size_by_zero")),
        ("inputs: [{", "aliases: {}\n  scratch: 3\n  inputs: [{", "'scratch': expected a list; found 3"),
        ("outputs: [", "operands: 5\n  outputs: [", "'operands': expected a list; found 5"),
        (
            'block: [bm, N], index: "i -> (i, 0)"}]\n  out',
            'block: 3, index: "i -> (i, 0)"}]\n  out',
            "'block': expected a list; found 3",
        ),
        (
            'block: [bm, N], index: "i -> (i, 0)"}]\n  out',
            "block: [bm, N], index: 3}]\n  out",
            "'index': expected text; found 3",
        ),
        (
            "name: o,",
            "name: o, buffers: two,",
            "'buffers': " + words("specs.expected", wanted="a whole number", found="'two'"),
        ),
        ("name: o,", "name: o, indexing_mode: Unblocked, ", "Unblocked"),
        (
            "  inputs:",
            "  tables: {t: {array: 's32[Q]', assume: []}}\n  inputs:",
            stretch("searching.name_of_nothing", name="Q"),
        ),
        (
            "  inputs:",
            "  tables: {t: {array: 's32[8]', assume: [0 <= t < Q]}}\n  inputs:",
            stretch("searching.name_of_nothing", name="Q"),
        ),
        ("multiple_of: 8", "divides: M // (M - M)", "divides by 0"),
        ("N: 128}", "N: 128, bytes: 3}", words("searching.figure_name", name="bytes")),
        ("N: 128}", "N: 128, and: 3}", "'and' is no name"),
        ("headroom: 0%", "headroom: ²", "headroom is a percentage"),
        ("headroom: 0%", f"vmem: {'9' * 400}MiB", "an amount of memory is"),
        ("headroom: 0%", "vmem: true", "an amount of memory is"),
        ("headroom: 0%", f"step_overhead: {'9' * 400}us", "step_overhead is a time"),
        ("2 * M * N", "99999999**999", "larger than 2**1024"),
        ("2 * M * N", "bm[3]", "reads a table"),
        (
            "flops:",
            "constraints: [8 // (M - M) < 3]\nflops:",
            stretch("searching.divides_always"),
        ),
        ("flops: 2 * M * N", "flops: shl(1, 99)", "a shift must be by a constant"),
    ],
)
def test_wrong_files_say_what_and_where(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert SMALL.count(old) == 1
    path = tmp_path / "problem.yaml"
    path.write_text(SMALL.replace(old, new), "utf-8")
    with pytest.raises(LayoutError) as error:
        search(path, best=1)
    assert said in error.value.problem
    assert error.value.file == path.as_posix()
    assert error.value.line


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("sizes: {M: 256}", "sizes: {M: 256, bm: 3}", stretch("searching.size_and_variable", name="bm")),
        ("kwargs:", "constraints: [8 // (bm - bm) < 3]\nkwargs:", "divides by 0"),
        ("kwargs:", "constraints: [8 // (steps - steps) < 3]\nkwargs:", "divides by 0"),
        ("kwargs:", "cost: time // (bm - bm)\nkwargs:", "divides by 0"),
        ('"bf16[M,M]", ', "", stretch("searching.all_fail_alike", asked=2)),
    ],
)
def test_wrong_traced_files_say_what_and_where(tmp_path: Path, old: str, new: str, said: str) -> None:
    pytest.importorskip("jax")
    path = tmp_path / "problem.yaml"
    path.write_text(TRACED.replace(old, new, 1), "utf-8")
    with pytest.raises(LayoutError) as error:
        search(path, best=1)
    assert said in error.value.problem
    assert error.value.line


def test_one_traced_condition_may_stand_alone(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    path = tmp_path / "problem.yaml"
    path.write_text(TRACED + "constraints: 8 // (bm - 256) < 0\n", "utf-8")
    assert search(path, best=1).as_dict()["best"][0]["values"] == {"bm": 128}


@pytest.mark.parametrize("rows", ['[{"bm": 8, "bm": 16}]', f'[{{"bm": {"9" * 5000}}}]', "[" * 100_000])
def test_wrong_candidates_are_refused(tmp_path: Path, rows: str) -> None:
    path, given = tmp_path / "problem.yaml", tmp_path / "rows.json"
    path.write_text(SMALL, "utf-8")
    given.write_text(rows, "utf-8")
    with pytest.raises(LayoutError):
        search(path, prune=given)


def test_a_candidate_of_a_thousand_digits_is_dropped(tmp_path: Path) -> None:
    path, given = tmp_path / "problem.yaml", tmp_path / "rows.json"
    path.write_text(SMALL.replace("i -> (i, 0)", "i -> (i * 2 // 2, 0)"), "utf-8")
    given.write_text(f'[{{"bm": {10**1000}}}, {{"bm": 8}}]', "utf-8")
    answer = search(path, prune=given)
    assert answer.verdict.exit_code == 0
    assert "not among its values" in str(answer)


def test_a_variable_may_stand_in_an_index_map_alone() -> None:
    text = SMALL.replace('"i -> (i, 0)"}]\n  out', '"i -> (i // r, 0)"}]\n  out')
    found = answered(text.replace("tune: {bm: {multiple_of: 8}}", "tune: {r: [1, 2], bm: [8]}")).found
    assert {one.values["r"] for one in found} == {1, 2}


def test_operands_in_any_order_are_the_same_kernel() -> None:
    """Outputs first: values were left out by the rules of another operand."""
    text = """\
target: v5e
kernel:
  grid: ["cdiv(M, bm)"]
  operands:
    - {name: o, role: out, array: "f32[M,N]", block: [bm, N], index: "i -> (i, 0)"}
    - {name: x, role: in, array: "f32[M,N]", block: [M, N], index: "i -> (0, 0)"}
sizes: {M: 64, N: 128}
tune: {bm: [8, 12, 16]}
"""
    answer = answered(text)
    assert [left.values for left in answer.bounded.removed] == [(12,)]
    assert [o.role for o in answer.problem.declared.kernel.operands] == ["in", "out"]


@pytest.mark.parametrize("size", [2**62 + 1, 10**30])
def test_ends_never_wrap(size: int) -> None:
    on = IntervalArrayNumbers()
    chosen = on.select((True, True), 5, on.minimum(size, 10**40))
    assert int((chosen * 10**12).high) == size * 10**12
    assert int((on.maximum(4, 2**40) * 10**12).low) == 2**40 * 10**12
    product = IntervalArray(2**40, 2**41) * on.minimum(2**40, 2**41)
    assert (int(product.low), int(product.high)) == (2**80, 2**81)


def infeasible_of(text: str) -> tuple[tuple[str, ...], int | None]:
    why = answered(text).bounded.infeasible
    assert why is not None
    assert why.complete
    return why.conditions, why.enough


def test_an_infeasible_subset_names_the_bound_that_nobody_wrote() -> None:
    """Without `to` a variable ends at the largest size: 200 is not met, and it could be."""
    wished = SMALL.replace("flops:", "constraints: [bm >= 200]\nflops:")
    assert set(infeasible_of(wished)[0]) == {"bm <= 128, the largest size", "bm >= 200"}
    stated = wished.replace("multiple_of: 8", "to: 32, multiple_of: 8")
    assert set(infeasible_of(stated)[0]) == {"bm <= 32", "bm >= 200"}


def test_whole_blocks_are_infeasible_without_any_rule_of_the_target() -> None:
    text = SMALL.replace("M: 64", "M: 100").replace("{multiple_of: 8}", "[8, 16]") + "partial: none\n"
    assert set(infeasible_of(text)[0]) == {"bm in [8, 16]", "blocks that do not reach over an edge"}


def test_the_vmem_that_would_do_includes_what_is_kept_free() -> None:
    text = SMALL.replace("headroom: 0%", "headroom: 30%\nvmem: 8192")
    _, enough = infeasible_of(text)
    assert enough == -(-16384 * 100 // 70)
    assert answered(text.replace("8192", str(enough))).verdict.exit_code == 0
    assert answered(text.replace("8192", str(enough - 1))).verdict.exit_code == 3, "set aside: only headroom says no"
    assert answered(text.replace("8192", str(16384))).verdict.exit_code == 3
    assert answered(text.replace("8192", str(16384 - 1))).verdict.exit_code == 1, "fits under no headroom"


def test_a_kernel_that_never_fits_is_an_answer() -> None:
    text = SMALL.replace("block: [bm, N]", f"block: [bm, {10**39}]")
    assert answered(text).verdict.exit_code == 1
