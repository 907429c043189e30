"""Judging kernels: three properties against a literal walk over the grid, and what is said without a proof."""

from __future__ import annotations

import random

import pytest

import layoutproof as lp
from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Block, Kernel, Table
from layoutproof.pallas.judge import judge, kernel_target, kernel_targets
from layoutproof.registry.catalogue import kernel_properties, property_module
from tests.questions.kernels_at_random import any_kernel, kernel, operand, programs, starts, window
from tests.said import Said, raises

pytestmark = pytest.mark.slow

B = lambda size: Block("blocked", size)  # noqa: E731


def only(k: Kernel, name: str, subject: str, **how: object) -> Finding:
    found = [f for f in judge(k, names=[name], **how) if f.subject == subject]  # type: ignore[arg-type]
    return min(found, key=lambda f: f.verdict)


@pytest.mark.parametrize("seed", range(300))
def test_blocks_in_bounds_is_a_walk_over_the_grid(seed: int) -> None:
    k = any_kernel(random.Random(seed), element=seed % 2 == 0)
    for o in k.operands:
        bad = [p for p in programs(k) if not inside(k, o, p)]
        found = only(k, "blocks_in_bounds", o.name)
        assert found.verdict is (Verdict.REFUTED if bad else Verdict.PROVED)
        assert found.counterexample == ({"program": bad[0]} if bad else None)


def inside(k: Kernel, o: object, program: tuple[int, ...]) -> bool:
    for start, block, extent in zip(starts(k, o, program), o.block, o.dims, strict=True):  # type: ignore
        if block.kind == "element" and not (start >= 0 and start + block.size <= extent):
            return False
        if not 0 <= start < extent:
            return False
    return True


@pytest.mark.parametrize("seed", range(300))
def test_outputs_covered_is_a_walk_over_the_grid(seed: int) -> None:
    k = any_kernel(random.Random(seed), element=seed % 2 == 0)
    (o,) = k.outputs
    written = set().union(*(window(k, o, p) for p in programs(k)))
    whole = {()}
    for extent in o.dims:
        whole = {(*e, n) for e in whole for n in range(int(extent))}
    missing = sorted(whole - written)
    found = only(k, "outputs_covered", o.name)
    assert found.verdict is (Verdict.REFUTED if missing else Verdict.PROVED)
    if missing:
        (hole,) = found.counterexample.values()  # type: ignore[union-attr]
        first = tuple(e // b.size if b.kind == "blocked" else e for e, b in zip(missing[0], o.block, strict=True))
        if all(b.kind != "blocked" or b.size == 1 for b in o.block) or all(b.kind == "blocked" for b in o.block):
            assert hole == min(
                tuple(e // b.size if b.kind == "blocked" else e for e, b in zip(m, o.block, strict=True))
                for m in missing
            )
        assert hole <= first


@pytest.mark.parametrize("seed", range(300))
def test_parallel_writes_is_a_walk_over_the_grid(seed: int) -> None:
    k = any_kernel(random.Random(seed), element=seed % 2 == 0)
    (o,) = k.outputs
    dims = k.parallel()
    sides = [(tuple(p[d] for d in dims), window(k, o, p), starts(k, o, p)) for p in programs(k)]
    element = any(b.kind == "element" for b in o.block)
    # blocks outside of the array are no business of this property: blocks are told apart by index
    races = sorted((a, b) for a, wa, sa in sides for b, wb, sb in sides if a < b and (wa & wb if element else sa == sb))
    found = list(judge(k, names=["parallel_writes"]))
    if not dims:
        assert found == []
        return
    assert found[0].verdict is (Verdict.REFUTED if races else Verdict.PROVED)
    if races:
        assert (found[0].counterexample["first"], found[0].counterexample["second"]) == races[0]  # type: ignore[index]


def test_all_shapes_are_proved_at_once() -> None:
    m, n = lp.core.size.symbol("M"), lp.core.size.symbol("N")
    x = operand("x", "in", (m, n), (B(128), B(512)), "(i, j) -> (i, j)")
    o = operand("o", "out", (m, n), (B(128), B(512)), "(i, j) -> (i, j)")
    rounded_up = Kernel("k", ((m + 127) // 128, (n + 511) // 512), ("i", "j"), (x, o), ("parallel", "parallel"))
    assert {f.verdict for f in judge(rounded_up, names=CENTRAL)} == {Verdict.PROVED}
    rounded_down = Kernel("k", (m // 128, (n + 511) // 512), ("i", "j"), (x, o), ("parallel", "parallel"))
    hole = only(rounded_down, "outputs_covered", "o")
    assert hole.verdict is Verdict.REFUTED
    assert hole.counterexample == {"sizes": {"M": 1, "N": 1}, "block": (0, 0)}
    assert only(rounded_down, "outputs_covered", "o", where="M % 128 == 0").verdict is Verdict.PROVED


CENTRAL = ["blocks_in_bounds", "outputs_covered", "parallel_writes"]


def grouped(table: Table) -> Kernel:
    x = operand("x", "in", (512, 256), (B(128), B(128)), "(i, j) -> (t[i], j)")
    o = operand("o", "out", (512, 256), (B(128), B(128)), "(i, j) -> (t[i], j)")
    return kernel((int(table.dims[0]), 2), x, o, semantics=("parallel", "parallel"), tables=(table,))


def test_without_an_assumption_the_missing_one_is_named() -> None:
    found = [only(grouped(Table("t", (8,))), "blocks_in_bounds", name) for name in ("x", "o")]
    assert {f.verdict for f in found} == {Verdict.UNKNOWN}
    assert all("assume '0 <= t < 4' and it is proved" in f.reason for f in found)
    proved = judge(grouped(Table("t", (8,), low=0, high=4)), names=["blocks_in_bounds"])
    assert {f.verdict for f in proved} == {Verdict.PROVED}
    # the dimension that reads no table rests on no assumption
    assert {f.assumes for f in proved if f.subject == "x"} == {(), ("0 <= t < 4",)}


def test_an_assumption_that_allows_what_is_wrong_is_refuted_with_the_value() -> None:
    found = only(grouped(Table("t", (8,), low=0, high=5)), "blocks_in_bounds", "x", strict_tables=True)
    assert (found.verdict, found.counterexample) == (Verdict.REFUTED, {"program": (0, 0), "reads": {"t[0]": 4}})


def test_a_table_says_nothing_of_coverage_unless_it_is_onto() -> None:
    assert only(grouped(Table("t", (4,), low=0, high=4)), "outputs_covered", "o").verdict is Verdict.UNKNOWN
    onto = Table("t", (4,), low=0, high=4, onto=True)
    assert only(grouped(onto), "outputs_covered", "o").verdict is Verdict.PROVED
    too_few = only(grouped(Table("t", (3,), low=0, high=3, onto=True)), "outputs_covered", "o")
    assert too_few.counterexample == {"block": (3, 0)}


def test_different_entries_of_a_table_write_different_blocks_only_if_it_is_injective() -> None:
    free = only(grouped(Table("t", (4,), low=0, high=4)), "parallel_writes", "o")
    assert (free.verdict, "'t is injective'" in free.reason) == (Verdict.UNKNOWN, True)
    assert only(grouped(Table("t", (4,), low=0, high=4, injective=True)), "parallel_writes", "o").verdict is (
        Verdict.PROVED
    )
    # eight entries cannot be injective into four values: no assumption is advised, but which two collide is the table's
    crowded = grouped(Table("t", (8,), low=0, high=4))
    asked = only(crowded, "parallel_writes", "o")
    assert (asked.verdict, asked.fix) == (Verdict.UNKNOWN, "")
    assert asked.reason.startswith("refuted if t can be 0, 0 ")
    assert only(crowded, "parallel_writes", "o", strict_tables=True).verdict is Verdict.REFUTED


def test_assumptions_that_no_table_satisfies_prove_nothing() -> None:
    found = judge(grouped(Table("t", (8,), low=0, high=4, injective=True)), names=CENTRAL)
    assert {f.verdict for f in found} == {Verdict.UNKNOWN}
    assert all("vacuous: t cannot be injective" in f.reason for f in found)


def test_an_operand_beyond_the_model_is_unknown_and_the_others_are_not() -> None:
    k = grouped(Table("t", (8,), low=0, high=4))
    x, o = k.operands
    from dataclasses import replace

    odd = replace(k, operands=(replace(x, unmodelled="sin in the index map"), o))
    x_found, o_found = only(odd, "blocks_in_bounds", "x"), only(odd, "blocks_in_bounds", "o")
    assert (x_found.verdict, x_found.reason) == (Verdict.UNKNOWN, "sin in the index map")
    assert o_found.verdict is Verdict.PROVED


def test_what_is_wrong_without_a_table_is_refuted_whatever_it_holds() -> None:
    x = operand("x", "in", (512, 128), (B(128), B(128)), "(i, j) -> (t[i], j)")
    found = only(kernel((8, 2), x, tables=(Table("t", (8,)),)), "blocks_in_bounds", "x")
    assert (found.verdict, found.counterexample) == (Verdict.REFUTED, {"program": (0, 1)})


def test_sizes_of_the_running_program_are_not_meant_for_all_values() -> None:
    o = operand("o", "out", (512,), (B(128),), "(i) -> (i,)")
    grid = lp.core.size.symbol("grid0")
    meant = Kernel("k", (grid,), ("i",), (o,))
    assert only(meant, "blocks_in_bounds", "o").verdict is Verdict.REFUTED
    from dataclasses import replace

    dynamic = replace(meant, runtime=("grid0",))
    assert only(dynamic, "blocks_in_bounds", "o").verdict is Verdict.UNKNOWN
    assert only(dynamic, "blocks_in_bounds", "o", where="grid0 <= 4").verdict is Verdict.PROVED
    assert only(dynamic, "blocks_in_bounds", "o", where="grid0 <= 5").verdict is Verdict.REFUTED


def test_an_empty_grid_proves_nothing() -> None:
    x = operand("x", "in", (8,), (B(8),), "(i) -> (i,)")
    assert only(kernel((0,), x), "blocks_in_bounds", "x").verdict is Verdict.UNKNOWN


def test_a_dropped_output_is_only_said() -> None:
    from dataclasses import replace

    o = replace(operand("o", "out", (8, 128), (B(8), B(128)), "(i) -> (0, 0)"), live=False)
    (found,) = judge(kernel((4,), o, semantics=("parallel",)), names=["parallel_writes"])
    assert (found.severity, found.verdict) == ("info", Verdict.REFUTED)


def test_questions_that_cannot_be_asked() -> None:
    k = grouped(Table("t", (8,), low=0, high=4))
    with raises(LayoutError, Said("core.unknown_name", what="property of kernels", word="injective")) as refused:
        judge(k, names=["injective"])
    assert refused.value.problem.endswith(", ".join(kernel_properties()))
    with raises(LayoutError, Said("core.unknown_name", what="target", word="v99")):
        judge(k, target="v99")
    with pytest.raises(LayoutError, match="speaks of N"):
        judge(k, where="N > 3")
    with raises(LayoutError, Said("pallas.about_kernel", asked="blocks_in_bounds", read="f32[3]{0}")):
        lp.ask("blocks_in_bounds", "f32[3]{0}")
    needing = next(name for name in kernel_properties() if property_module(name).TARGET)
    with raises(LayoutError, Said("pallas.needs_target", name="block_shape")):
        judge(k, names=[needing])


def test_ask_answers_for_the_whole_kernel() -> None:
    found = lp.ask("blocks_in_bounds", grouped(Table("t", (8,), low=0, high=5)))
    assert (found.verdict, found.reason.startswith("refuted if t can be 4 (")) == (Verdict.UNKNOWN, True)
    found = lp.ask("blocks_in_bounds", grouped(Table("t", (8,), low=0, high=5)), strict_tables=True)
    assert (found.verdict, found.counterexample) == (Verdict.REFUTED, {"program": (0, 0), "reads": {"t[0]": 4}})


def test_targets_are_found_by_any_name_they_take() -> None:
    assert {"v4", "v5e", "v5p", "v6e", "7x", "triton"} <= set(kernel_targets())
    assert kernel_target("TPU v5 lite").name == "v5e"


def test_a_refutation_without_a_point_has_an_empty_counterexample() -> None:
    """What a rule refutes needs no point; the answer has a counterexample all the same."""
    spec = "f32[64,128] blockspec (7, 128) (i) -> (i, 0) grid (10) out"
    found = lp.ask("block_shape", spec, target="v5e")
    assert (found.verdict, found.counterexample) == (Verdict.REFUTED, {})
