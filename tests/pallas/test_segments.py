"""Blocks that a table chooses, a group for each: what an empty group leaves out is named, and none may be."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof as lp
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from tests.pallas.wheel_ops import ops
from tests.said import Said

pytestmark = pytest.mark.slow

TGMM = next(op for op in ops() if op.name == "tpu.megablox.tgmm")
IDS = "prefetch0 is sorted_ids(below=4)"
RISES = "prefetch0[0] == 0; prefetch0[-1] == 3; prefetch0[i + 1] <= prefetch0[i] + 1"
OFFSETS = "prefetch0 is cu_seqlens(total=1024)"
TILES = "prefetch1 is group_tiles(groups=4, offsets=prefetch0, tiles=prefetch2, tile=128, total=1024, steps=grid2)"


def sums(t: jax.Array, x: jax.Array) -> jax.Array:
    """Each block of 8 rows is added to the block of its group."""

    def body(t_ref: Any, x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...]

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(8,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, t: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, t: (t[i], 0)),
    )
    return pl.pallas_call(body, grid_spec=spec, out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32))(t, x)


def covered(*assume: str) -> Finding:
    given = jax.ShapeDtypeStruct((8,), jnp.int32), jax.ShapeDtypeStruct((64, 128), jnp.float32)
    (one,) = lp.kernels(sums, *given, assume=assume, properties=["outputs_covered"]).findings
    return one


@pytest.mark.parametrize(
    ("assumed", "verdict"),
    [
        ((IDS,), Verdict.UNKNOWN),
        ((IDS, "prefetch0 is onto"), Verdict.PROVED),
        ((IDS, RISES), Verdict.PROVED),
        ((IDS, RISES.replace("== 3", "== 2")), Verdict.UNKNOWN),
        ((IDS, RISES.replace("== 0", "== 1")), Verdict.UNKNOWN),
        ((IDS, RISES.replace("+ 1;", "+ 2;").replace("[i] + 1", "[i] + 2")), Verdict.UNKNOWN),
        # it goes up and down, and passes all of them on its way
        (("0 <= prefetch0 < 4", RISES), Verdict.PROVED),
    ],
    ids=["ids", "onto", "rises by one", "ends early", "begins late", "rises by two", "in any order"],
)
def test_a_table_that_rises_by_one_at_most_leaves_no_group_out(assumed: tuple[str, ...], verdict: Verdict) -> None:
    assert covered(*assumed).verdict is verdict


def test_the_rows_of_a_group_of_size_0_are_named_with_a_table_that_has_one() -> None:
    said = covered(IDS).reason
    assert Said(
        "pallas.segment_empty",
        rows=Said("pallas.rows_unwritten", operand="outputs", rows="8:16, :"),
        group="group 1 has size 0: ",
        table="prefetch0",
        value=1,
    ).of(said)
    assert "prefetch0 = 0, 0, 0, 0, 0, 0, 0, 0" in said
    # without an order there are no groups
    assert Said(
        "pallas.segment_empty",
        rows=Said("pallas.rows_unwritten", operand="outputs", rows="8:16, :"),
        group="",
        table="prefetch0",
        value=1,
    ).of(covered("0 <= prefetch0 < 4").reason)


@pytest.mark.parametrize(
    ("more", "verdict"),
    [((), Verdict.UNKNOWN), (("prefetch0[i] < prefetch0[i + 1]",), Verdict.PROVED)],
    ids=["some may be empty", "none is empty"],
)
def test_groups_that_are_not_empty_each_have_a_step(more: tuple[str, ...], verdict: Verdict) -> None:
    """Of the wheel's product per group, whose metadata has a step for each group: here without saying so."""
    function, args = TGMM.build()
    found = lp.kernels(function, *args, assume=(OFFSETS, TILES, *more), properties=["outputs_covered"])
    (one,) = found.findings
    assert one.verdict is verdict
    if verdict is Verdict.UNKNOWN:
        assert Said(
            "pallas.segment_empty",
            rows=Said("pallas.rows_unwritten", operand="outputs", rows="3, :, :"),
            group="group 3 has size 0: ",
            table="prefetch1[:grid2]",
            value=3,
        ).of(one.reason)
        assert "prefetch0 = 0, 1024, 1024, 1024, 1024" in one.reason


@pytest.mark.parametrize(
    ("array", "block", "index", "entries"),
    [
        # windows of single elements overlap
        ("f32[9]", ["Element(8)"], "(i) -> (t[i])", 4),
        # what is read beyond the end of the table may be anything
        ("f32[16]", [8], "(i) -> (t[i])", 2),
        # the entry of an entry
        ("f32[16]", [8], "(i) -> (t[t[i]])", 4),
    ],
)
def test_nothing_is_named_that_may_be_written_or_is_not_there(
    array: str, block: list[object], index: str, entries: int
) -> None:
    """The twin of all of them has a block that no entry of the table need choose."""

    def reason(array: str, block: list[object], index: str, entries: int) -> str:
        output = {"name": "o", "array": array, "block": block, "index": index}
        tables = {"t": {"array": f"s32[{entries}]", "assume": ["0 <= t < 2"]}}
        kernel = {"grid": {"i": 4}, "tables": tables, "outputs": [output]}
        return lp.ask("outputs_covered", {"kernel": kernel}).reason

    assert "no program writes" not in reason(array, block, index, entries)
    twin = reason("f32[16]", [8], "(i) -> (t[i])", 4)
    assert Said("pallas.tables_hold", tables="t", what="assume 't is onto' and it is proved").of(twin)
    assert Said(
        "pallas.segment_empty",
        rows=Said("pallas.rows_unwritten", operand="o", rows="8:16"),
        group="",
        table="t",
        value=1,
        tables="t = 0, 0, 0, 0",
    ).of(twin)
    # the second block would lie outside of the array
    assert Said(
        "pallas.segment_empty",
        rows=Said("pallas.rows_unwritten", operand="o", rows="0"),
        group="",
        table="t",
        value=0,
        tables="t = 1, 1, 1, 1",
    ).of(reason("f32[1]", [None], "(i) -> (t[i])", 4))
