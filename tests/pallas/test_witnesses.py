"""Tables as arrays: held against what is assumed of them, and found, so that what follows is not vacuous."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import layoutproof as lp
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel, Table
from layoutproof.kernel.table_assumptions import with_assumptions
from layoutproof.pallas.judge import advice
from layoutproof.pallas.possible_tables import unfounded
from layoutproof.pallas.witnesses import broken, witness

pytestmark = pytest.mark.slow


def grouped(rows: int, groups: int, tile: int = 128) -> Kernel:
    """A call with the tables of a grouped matmul: where groups start, and the group and the tile of each step."""
    steps = rows // tile + groups - 1
    tables = (Table("starts", (groups + 1,)), Table("group", (steps,)), Table("tile", (steps,)))
    kernel = Kernel("k", (4,), ("g0",), (), tables=tables)
    begins, ends = (
        f"max(starts[group[%s]], {tile} * tile[%s])",
        f"min(starts[group[%s] + 1], {tile} * tile[%s] + {tile})",
    )
    return with_assumptions(
        kernel,
        [
            f"0 <= starts <= {rows}; starts is monotone; starts[0] == 0; starts[{groups}] == {rows}",
            f"0 <= group < {groups}; 0 <= tile < {rows // tile}; tile is monotone",
            f"{begins % ('0', '0')} == 0",
            f"{begins % ('i + 1', 'i + 1')} == {ends % ('i', 'i')}",
        ],
    )


@pytest.mark.fast
@pytest.mark.parametrize(("rows", "groups"), [(512, 4), (2048, 8), (65536, 128)])
def test_tables_of_any_length_are_found(rows: int, groups: int) -> None:
    """Beyond about 1,000 rows the solver's steps were spent, and every question of the call was lost."""
    kernel = grouped(rows, groups)
    assert unfounded(kernel, None, ()) == ""
    contradicted = with_assumptions(kernel, ["tile[i] < group[i]", f"starts[1] == {rows}"])
    assert unfounded(contradicted, None, ()) != ""


@pytest.mark.fast
@pytest.mark.parametrize(
    ("text", "held", "says"),
    [
        ("0 <= t < 3", [0, 2, 2, 1], ""),
        ("0 <= t < 3", [0, 3, 2, 1], "0 <= t < 3"),
        ("t is monotone", [0, 0, 2, 2], ""),
        ("t is monotone", [0, 1, 0, 2], "t is monotone"),
        ("t is injective", [3, 1, 0, 2], ""),
        ("t is injective", [3, 1, 0, 1], "t is injective"),
        ("0 <= t < 2; t[:2] is onto", [1, 0, 0, 0], ""),
        ("0 <= t < 2; t[:2] is onto", [1, 1, 0, 0], "t[:2] is onto"),
        ("sum(t) <= 5", [4, 0, 0, 1], ""),
        ("sum(t) < 5", [4, 0, 0, 1], "sum(t) <= 4"),
        ("t[i] < t[i + 1]", [0, 1, 2, 3], ""),
        ("t[i] < t[i + 1]", [0, 1, 3, 3], "t[i] < t[i + 1]"),
        # nothing is said where an index is outside of its table
        ("t[i] == t[t[i]]", [0, 0, 9, 8], ""),
        ("t[i] == t[t[i]]", [0, 2, 1, 1], "t[i] == t[t[i]]"),
        ("t[i] == t[i + 4]", [0, 1, 2, 3], ""),
        ("t[i - 1] <= t[i] if i < 2", [0, 1, 0, 0], ""),
        ("t[i - 1] <= t[i] if i < 3", [0, 1, 0, 0], "t[i - 1] <= t[i] if i < 3"),
        ("t[i] * t[i] * t[i] > 0", [1 << 30] * 4, ""),
    ],
)
def test_arrays_are_held_against_what_is_assumed(text: str, held: list[int], says: str) -> None:
    kernel = with_assumptions(Kernel("k", (4,), ("g0",), (), tables=(Table("t", (4,)),)), [text])
    assert broken(kernel, {"t": np.array(held)}, {}) == says


@pytest.mark.fast
def test_what_cannot_be_looked_up_is_no_witness() -> None:
    kernel = with_assumptions(Kernel("k", (4,), ("g0",), (), tables=(Table("t", (4,)),)), ["t[2 * i] == 0"])
    assert broken(kernel, {"t": np.zeros(4, int)}, {}) is None
    assert witness(kernel, ("t",), {}) is None


@pytest.mark.parametrize("sizes", [[0, 100, 28, 0, 384, 0, 512, 0], [1024, 0, 0, 0, 0, 0, 0, 0], [1] * 7 + [1017]])
def test_an_author_s_own_tables_are_as_assumed(sizes: list[int]) -> None:
    """The metadata of megablox, of the JAX that is installed."""
    pytest.importorskip("jax", reason="JAX is not installed")
    gmm = importlib.import_module("jax.experimental.pallas.ops.tpu.megablox.gmm")
    made, steps = gmm.make_group_metadata(
        group_sizes=np.array(sizes, np.int32), m=1024, tm=128, start_group=np.int32(0), num_nonzero_groups=8,
        visit_empty_groups=False,
    )  # fmt: skip
    tables: dict[str, Any] = dict(zip(("starts", "group", "tile"), map(np.asarray, made), strict=True))
    tables = {name: held if name == "starts" else held[: int(steps)] for name, held in tables.items()}
    assert broken(grouped(1024, 8), tables, {}) == ""
    tables["tile"] = tables["tile"].copy()
    tables["tile"][-1] = 0
    assert broken(grouped(1024, 8), tables, {}) == "tile is monotone"


def test_an_open_question_of_consistency_costs_what_reads_the_tables() -> None:
    """Of the blocks' shapes, which no table chooses, nothing was said either."""
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def rows(t: Any, x: Any) -> Any:
        def body(t_ref: Any, x_ref: Any, o_ref: Any) -> None:
            o_ref[...] = x_ref[...]

        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=(4,),
            in_specs=[pl.BlockSpec((8, 128), lambda i, t: (t[i], 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, t: (i, 0)),
        )  # fmt: skip
        return pl.pallas_call(body, grid_spec=spec, out_shape=jax.ShapeDtypeStruct((32, 128), x.dtype))(t, x)

    assume = ["0 <= prefetch0 < 4", "prefetch0[i] + prefetch0[i + 1] == 3 if i < 900"]
    given = jax.ShapeDtypeStruct((1000,), "int32"), jax.ShapeDtypeStruct((32, 128), "float32")
    found = lp.kernels(rows, *given, target="v6e", assume=assume).findings
    said = {(f.question, f.subject): f.verdict for f in found if f.severity == "error"}
    assert said["blocks_in_bounds", "args[1]"] is Verdict.UNKNOWN
    assert said["block_shape", "args[1]"] is Verdict.PROVED
    assert said["outputs_covered", "outputs"] is Verdict.PROVED


@pytest.mark.parametrize("rows", [512, 65536])
def test_a_grouped_product_is_proved_under_what_is_advised_of_it(rows: int) -> None:
    """The advice was of single tables, and left open what rests on how they lie together."""
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    gmm = importlib.import_module("jax.experimental.pallas.ops.tpu.megablox.gmm").gmm
    shapes = [(rows, 256), (8, 256, 128)]
    given = [*(jax.ShapeDtypeStruct(shape, "bfloat16") for shape in shapes), jax.ShapeDtypeStruct((8,), "int32")]
    first = lp.kernels(gmm, *given, target="v6e")
    needs = [advice(call.findings) for call in first.calls]
    assume, where = [text for text, _ in needs if text], [text for _, text in needs if text]
    assert f"prefetch0 is cu_seqlens(total={rows})" in "; ".join(assume)
    told = lp.kernels(gmm, *given, target="v6e", assume=assume, where=where)
    assert told.exit_code == 0, str(told)
    # of half of the rows alone it is not
    half = [text.replace(f"total={rows}", f"total={rows // 2}") for text in assume]
    assert lp.kernels(gmm, *given, target="v6e", assume=half, where=where).exit_code == 3


def test_sums_over_groups_are_proved_under_what_is_advised_of_them() -> None:
    """Of a block that a table chooses it was unknown whether some program of its visit stores it."""
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    tgmm = importlib.import_module("jax.experimental.pallas.ops.tpu.megablox.gmm").tgmm
    shapes = [(128, 512), (512, 128)]
    given = [*(jax.ShapeDtypeStruct(shape, "bfloat16") for shape in shapes), jax.ShapeDtypeStruct((4,), "int32")]
    needs = [advice(call.findings) for call in lp.kernels(tgmm, *given, target="v6e").calls]
    assume, where = [text for text, _ in needs if text], [text for _, text in needs if text]
    told = lp.kernels(tgmm, *given, target="v6e", assume=assume, where=where)
    assert told.exit_code == 0, str(told)


@pytest.mark.parametrize("when", ["changes", "ends"])
def test_a_visit_that_a_table_chooses_stores_by_its_end(when: str) -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def sums(t: Any, x: Any) -> Any:
        def body(t_ref: Any, x_ref: Any, o_ref: Any, acc: Any) -> None:
            i = pl.program_id(0)
            first = (i == 0) | (t_ref[i] != t_ref[jax.numpy.maximum(i - 1, 0)])
            last = i == 7
            changes = last | (t_ref[i] != t_ref[jax.numpy.minimum(i + 1, 7)])
            acc[...] = jax.numpy.where(first, 0.0, acc[...]) + x_ref[...]

            @pl.when(changes if when == "changes" else last)
            def _() -> None:
                o_ref[...] = acc[...]

        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=(8,),
            in_specs=[pl.BlockSpec((8, 128), lambda i, t: (i, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, t: (t[i], 0)),
            scratch_shapes=[pltpu.VMEM((8, 128), jax.numpy.float32)],
        )  # fmt: skip
        return pl.pallas_call(body, grid_spec=spec, out_shape=jax.ShapeDtypeStruct((32, 128), x.dtype))(t, x)

    given = jax.ShapeDtypeStruct((8,), "int32"), jax.ShapeDtypeStruct((64, 128), "float32")
    assume = ["prefetch0 is sorted_ids(below=4)", "prefetch0 is onto"]
    found = lp.kernels(sums, *given, target="v6e", assume=assume).findings
    (stored,) = [f for f in found if f.question == "outputs_stored"]
    # the last program stores into the last block alone, and the table has others
    assert stored.verdict is (Verdict.PROVED if when == "changes" else Verdict.REFUTED), stored.reason


@pytest.mark.parametrize("aliased", [False, True])
def test_onto_is_advised_of_a_table_of_blocks_unless_the_output_holds_an_input(aliased: bool) -> None:
    """Blocks that no program has hold the input's values where both are one array: right callers leave some out."""
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def body(table: Any, x: Any, zeros: Any, out: Any) -> None:
        out[...] = x[...]

    def call(table: Any, x: Any, zeros: Any) -> Any:
        grid = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(16,),
            in_specs=[
                pl.BlockSpec((8, 128), lambda i, t: (i, 0)),
                pl.BlockSpec((8, 128), lambda i, t: (t[i], 0)),
            ],
            out_specs=pl.BlockSpec((8, 128), lambda i, t: (t[i], 0)),
        )
        made = pl.pallas_call(
            body,
            grid_spec=grid,
            out_shape=jax.ShapeDtypeStruct(zeros.shape, zeros.dtype),
            input_output_aliases={2: 0} if aliased else {},
        )
        return made(table, x, zeros)

    shapes = ((16,), "int32"), ((128, 128), "float32"), ((64, 128), "float32")
    given = [jax.ShapeDtypeStruct(shape, kind) for shape, kind in shapes]
    (found,) = lp.kernels(call, *given, target="v6e").calls
    assume, _ = advice(found.findings)
    assert "0 <= prefetch0 < 8" in assume
    assert ("prefetch0 is onto" in assume) is not aliased


def test_of_a_mask_that_only_says_whether_no_bound_is_advised() -> None:
    """`(mask[i] != 0) * i` is in bounds whatever the mask holds; what the other table holds has to be said."""
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def body(mask: Any, table: Any, x: Any, out: Any) -> None:
        out[...] = x[...]

    def call(mask: Any, table: Any, x: Any) -> Any:
        grid = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=2,
            grid=(8,),
            in_specs=[pl.BlockSpec((8, 128), lambda i, mask, table: ((mask[i] != 0) * i, table[i]))],
            out_specs=pl.BlockSpec((8, 128), lambda i, mask, table: (i, 0)),
        )
        made = pl.pallas_call(body, grid_spec=grid, out_shape=jax.ShapeDtypeStruct((64, 128), "float32"))
        return made(mask, table, x)

    shapes = ((8,), "int32"), ((8,), "int32"), ((64, 512), "float32")
    given = [jax.ShapeDtypeStruct(shape, kind) for shape, kind in shapes]
    (found,) = lp.kernels(call, *given, target="v6e").calls
    assert advice(found.findings) == ("0 <= prefetch1 < 4", "")
