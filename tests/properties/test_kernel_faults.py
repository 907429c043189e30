"""Kernels that random search found judged wrongly once: false proofs, and words of a solver in place of an answer."""

from __future__ import annotations

from typing import Any

import pytest

import layoutproof as lp
from layoutproof.core.finding import Finding
from layoutproof.pallas.judge import judge
from tests.said import stretch

pytestmark = pytest.mark.slow

PROVED, REFUTED, UNKNOWN = lp.Verdict.PROVED, lp.Verdict.REFUTED, lp.Verdict.UNKNOWN


def asked(name: str, subject: str, where: str | None = None, **given: Any) -> Finding:
    kernel = lp.read_layout({"kernel": given}).kernel
    found = [f for f in judge(kernel, names=[name], where=where) if f.subject == subject]
    return min(found, key=lambda f: f.verdict)


def aliased(index: str, out_index: str = "", table: str = "", **given: Any) -> dict[str, Any]:
    array = {"array": "f32[1024]", "block": [8]}
    tables = {"tables": {"t": {"array": "s32[4]", "assume": ["0 <= t < 4", *([table] if table else [])]}}}
    return {
        "grid": {"i": 4},
        "inputs": [{"name": "x", **array, "index": index}],
        "outputs": [{"name": "o", **array, "index": out_index or index}],
        "aliases": {"x": "o"},
        **(tables if "t[" in index + out_index else {}),
        **given,
    }


def test_one_map_that_reads_a_table_may_come_back_to_a_block_that_is_on_its_way_out() -> None:
    result = asked("alias_hazard", "x -> o", **aliased("(i) -> (t[i],)"))
    assert (result.verdict, "assume 't is monotone' and it is proved" in result.reason) == (UNKNOWN, True)
    # block 0, another, block 0 again: two steps apart, and two buffers
    assert (
        stretch(
            "pallas.alias_hazard_fetched_before", writer="(0,)", block="block (0,)", output="o", steps=2, reader="(2,)"
        )
        in result.reason
    )


@pytest.mark.parametrize(
    ("table", "verdict"), [("t is injective", PROVED), ("t is monotone", PROVED), ("t is onto", PROVED)]
)
def test_what_is_said_of_the_table_settles_it(table: str, verdict: Any) -> None:
    assert asked("alias_hazard", "x -> o", **aliased("(i) -> (t[i],)", table=table)).verdict is verdict


def test_different_maps_that_read_a_table() -> None:
    one = asked("alias_hazard", "x -> o", **aliased("(i) -> (t[i],)", "(i) -> (i + 4,)"))
    assert one.verdict is PROVED
    other = asked("alias_hazard", "x -> o", **aliased("(i) -> (t[i],)", "(i) -> (i,)"))
    assert (other.verdict, "1 step(s) later program (1,)" in other.reason) == (UNKNOWN, True)


def test_programs_of_a_parallel_dimension_do_not_read_what_others_write() -> None:
    ahead = aliased("(i) -> (i + 1,)", "(i) -> (i,)")
    assert asked("alias_hazard", "x -> o", **ahead).verdict is PROVED
    found = asked("alias_hazard", "x -> o", **ahead, semantics=["parallel"])
    assert found.verdict is REFUTED
    assert found.counterexample == {"writer": (1,), "reader": (0,)}
    own = aliased("(i) -> (i,)", semantics=["parallel"])
    assert asked("alias_hazard", "x -> o", **own).verdict is PROVED
    on_gpu = asked("alias_hazard", "x -> o", **ahead, platform="triton")
    assert (on_gpu.verdict, "kernel's body" in on_gpu.reason) == (UNKNOWN, True)


def test_only_what_a_bounded_slice_holds_is_written() -> None:
    def pipeline(size: str) -> Any:
        array = {"array": "f32[64]", "block": ["BoundedSlice(8)"]}
        return asked(
            "alias_hazard",
            "x -> o",
            grid={"i": 4},
            pipeline="emit_pipeline",
            inputs=[{"name": "x", **array, "index": f"(i) -> (ds(8 * i + 4, {size}),)"}],
            outputs=[{"name": "o", **array, "index": f"(i) -> (ds(8 * i + 8, {size}),)"}],
            aliases={"x": "o"},
        ).verdict

    assert (pipeline("4"), pipeline("5")) == (PROVED, REFUTED)


def test_a_slice_of_another_length_is_another_block() -> None:
    found = asked(
        "revisits",
        "o",
        grid={"i": 3},
        pipeline="emit_pipeline",
        inputs=[],
        outputs=[{"name": "o", "array": "f32[8]", "block": ["BoundedSlice(8)"], "index": "(i) -> (ds(0, 8 - i % 2),)"}],
    )
    assert found.verdict is REFUTED
    assert found.counterexample == {"first": (0,), "between": (1,), "last": (2,)}


def test_a_grid_that_is_empty_for_some_sizes() -> None:
    operand = {"array": "f32[N]", "block": [8], "index": "(i) -> (i,)"}
    given = {"grid": {"i": "N // 8"}, "inputs": [], "outputs": [{"name": "o", **operand}]}
    found = asked("grid_positive", "grid", **given)
    assert (found.verdict, found.counterexample) == (REFUTED, {"sizes": {"N": 1}})
    assert "grid dimension 0 has 0 programs" in found.reason
    assert asked("grid_positive", "grid", "N >= 8", **given).verdict is PROVED
    assert asked("grid_positive", "grid", **{**given, "grid": {"i": "cdiv(N, 8)"}}).verdict is PROVED


def test_grids_of_products_of_sizes_are_an_answer() -> None:
    # a divisor that may be 0 by its bounds alone sent the solver round in circles
    array = {"array": "f32[2*M]", "block": [3], "index": "(i, j, k) -> (j,)"}
    found = asked(
        "alias_hazard",
        "x -> o",
        grid={"i": "cdiv(N, 2)", "j": "M // 2", "k": "N // 2"},
        pipeline="emit_pipeline",
        inputs=[{"name": "x", **array}],
        outputs=[{"name": "o", **array}],
        aliases={"x": "o"},
    )
    assert (found.verdict, found.counterexample) == (
        REFUTED,
        {"sizes": {"N": 3, "M": 4}, "writer": (0, 0, 0), "reader": (1, 0, 0)},
    )


def test_lengths_of_slices_are_computed_in_int32_too() -> None:
    index = "(i) -> (ds(0, min(8, i * 1073741824)),)"
    output = {"name": "o", "array": "f32[8]", "block": ["BoundedSlice(8)"], "index": index}
    found = asked("index_int32", "o", grid={"i": 3}, pipeline="emit_pipeline", inputs=[], outputs=[output])
    assert (found.verdict, found.counterexample) == (REFUTED, {"program": (2,)})


def test_advice_can_be_followed_for_all_sizes() -> None:
    found = asked(
        "revisits",
        "o",
        grid={"i": "M"},
        inputs=[],
        outputs=[{"name": "o", "array": "f32[24]", "block": [8], "index": "(i) -> (t[i],)"}],
        tables={"t": {"array": "s32[M]", "assume": ["0 <= t < 3"]}},
    )
    # no table of M entries and 3 values is injective for M > 3
    assert (found.verdict, "injective" in found.reason) == (UNKNOWN, False)


def test_int32_is_asked_of_grids_that_can_be() -> None:
    def verdict(index: str) -> Any:
        output = {"name": "o", "array": "f32[8]", "block": [1], "index": f"(i) -> ({index},)"}
        return asked("index_int32", "o", grid={"i": "N"}, inputs=[], outputs=[output])

    assert verdict("max(i - 1, 0)").verdict is PROVED
    found = verdict("i * 2")
    assert found.verdict is REFUTED
    assert found.counterexample == {"sizes": {"N": 1073741825}, "program": (1073741824,)}


def test_what_reads_no_table_does_not_depend_on_one() -> None:
    output = {"name": "o", "array": "f32[8]", "block": [8], "index": "(i) -> (t[i],)"}
    found = asked("table_reads", "o", grid={"i": 9}, inputs=[], outputs=[output], tables={"t": {"array": "s32[8]"}})
    assert (found.verdict, found.assumes) == (REFUTED, ())
    assert "reads t at (8,)" in found.reason
    output = {"array": "f32[8,8]", "block": [8, "BoundedSlice(8)"], "index": "(i) -> (t[i], ds(0, 8 + i))"}
    given = {"grid": {"i": 4}, "inputs": [], "outputs": [{"name": "o", **output}], "pipeline": "emit_pipeline"}
    found = asked("blocks_in_bounds", "o", tables={"t": {"array": "s32[8]"}}, **given)
    assert (found.verdict, stretch("pallas.blocks_in_bounds_slice_outside", size=9) in found.reason) == (REFUTED, True)
