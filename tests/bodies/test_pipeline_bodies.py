"""The body that a pipeline (`emit_pipeline`) runs is asked of its windows, like a kernel's: wrong ones and twins."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof as lp
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.record import records_of
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge
from layoutproof.pallas.records import read_records
from tests.said import Said

pytestmark = pytest.mark.slow

HBM = pl.BlockSpec(memory_space=pl.ANY)
ROWS = pl.BlockSpec((32, 128), lambda i: (i, 0))


def _array(rows: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((rows, 128), jnp.float32)


def _of(body: Callable[..., None], rows: int, out: int, *properties: str, scratch: Any = ()) -> Any:
    call = pl.pallas_call(body, in_specs=[HBM], out_specs=HBM, out_shape=_array(out), scratch_shapes=scratch)
    return lp.kernels(call, _array(rows), properties=properties)


def _masked(x: Any, rows: int) -> Any:
    row = jax.lax.broadcasted_iota(jnp.int32, x.shape, 0) + pl.program_id(0) * x.shape[0]
    return jnp.where(row < rows, x, 0)


@pytest.mark.parametrize(
    ("rows", "mask", "exit_code"), [(96, False, 0), (104, True, 0), (104, False, 1), (100, True, 0), (100, False, 1)]
)
def test_a_sum_over_a_window_that_is_cut_short(rows: int, mask: bool, exit_code: int) -> None:
    # the pipeline copies what is left of the array up to its last tile; the rest of the window is of an earlier block
    def total(x: Any, o: Any) -> None:
        value = _masked(x[...], rows) if mask else x[...]
        o[...] = jnp.zeros((8, 128)) + jnp.sum(value, axis=0, keepdims=True)

    def body(x: Any, o: Any) -> None:
        grid = (pl.cdiv(rows, 32),)
        out = pl.BlockSpec((8, 128), lambda i: (i, 0))
        pltpu.emit_pipeline(total, grid=grid, in_specs=[ROWS], out_specs=[out])(x, o)

    found = _of(body, rows, 8 * pl.cdiv(rows, 32), "undefined_values")
    assert found.exit_code == exit_code
    if exit_code:
        (refuted,) = (f for f in found.findings if f.verdict is Verdict.REFUTED)
        padding = Said("pallas.undefined_values_padding", operand="in[0]", dimension=0, extent=rows, place=rows)
        assert padding.of(refuted.reason)
        assert refuted.counterexample == {"program": (3,), "element": (24, 0)}
        assert "jnp.where(pl.program_id(0) * 32 + " in refuted.fix


def test_a_block_that_is_cut_short_is_copied_up_to_its_last_tile() -> None:
    # rows 96 to 103 of an array of 100: its last tile, which is there
    def double(x: Any, o: Any) -> None:
        o[...] = x[...] * 2

    def body(x: Any, o: Any) -> None:
        pltpu.emit_pipeline(double, grid=(4,), in_specs=[ROWS], out_specs=[ROWS])(x, o)

    assert _of(body, 100, 100).exit_code == 0


@pytest.mark.parametrize("stores", [True, False])
def test_a_pipeline_whose_body_stores_nothing_is_refuted(stores: bool) -> None:
    def copy(x: Any, o: Any) -> None:
        if stores:
            o[...] = x[...]

    def body(x: Any, o: Any) -> None:
        pltpu.emit_pipeline(copy, grid=(4,), in_specs=[ROWS], out_specs=[ROWS])(x, o)

    found = _of(body, 128, 128)
    assert found.exit_code == (0 if stores else 1)
    if not stores:
        assert any(Said("pallas.outputs_stored_never", name="out[0]", beside="").of(f.reason) for f in found.findings)


@pytest.mark.parametrize("first", [0, 1, None])
def test_a_sum_in_an_outputs_window_starts_in_each_visit(first: int | None) -> None:
    def add(x: Any, o: Any) -> None:
        if first is not None:

            @pl.when(pl.program_id(1) == first)
            def _() -> None:
                o[...] = jnp.zeros_like(o)

        o[...] += x[...]

    def body(x: Any, o: Any) -> None:
        take = pl.BlockSpec((32, 128), lambda i, j: (i * 2 + j, 0))
        give = pl.BlockSpec((32, 128), lambda i, j: (i, 0))
        # the grid of a pipeline is a loop of one core, whatever is said of its dimensions
        said = (pltpu.PARALLEL, pltpu.PARALLEL)
        pltpu.emit_pipeline(add, grid=(2, 2), in_specs=[take], out_specs=[give], dimension_semantics=said)(x, o)

    found = _of(body, 128, 64, "initialised")
    assert found.exit_code == (0 if first == 0 else 1)
    if first != 0:
        assert any(Said("pallas.initialised_unwritten", shown="out[0][0, 0]").of(f.reason) for f in found.findings)


def test_ids_of_a_pipelines_grid_are_terms_of_the_loop_that_runs_it() -> None:
    # 2 x 2 x 2 steps are one loop; each output block is stored in the last step of two
    def add(x: Any, o: Any, acc: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            acc[...] = jnp.zeros_like(acc)

        acc[...] += x[...]

        @pl.when(pl.program_id(2) == 1)
        def _() -> None:
            o[...] = acc[...]

    def body(x: Any, o: Any, acc: Any) -> None:
        take = pl.BlockSpec((8, 128), lambda i, j, k: ((i * 2 + j) * 2 + k, 0))
        give = pl.BlockSpec((8, 128), lambda i, j, k: (i * 2 + j, 0))
        run = pltpu.emit_pipeline(lambda x, o: add(x, o, acc), grid=(2, 2, 2), in_specs=[take], out_specs=[give])
        run(x, o)

    found = _of(body, 64, 32, "outputs_stored", scratch=[pltpu.VMEM((8, 128), jnp.float32)])
    assert found.exit_code == 0
    found = _of(body, 64, 40, "outputs_stored", scratch=[pltpu.VMEM((8, 128), jnp.float32)])
    assert found.exit_code == 1
    assert any((f.counterexample or {}).get("element") == (32, 0) for f in found.findings)


@pytest.mark.parametrize(("rows", "used", "exit_code"), [(96, True, 0), (100, True, 3), (100, False, 0)])
def test_what_a_pipeline_leaves_in_scratch_is_not_followed_where_windows_are_cut_short(
    rows: int, used: bool, exit_code: int
) -> None:
    def body(x: Any, o: Any, s: Any) -> None:
        def add(window: Any) -> None:
            s[...] += window[...]

        s[...] = jnp.zeros_like(s)
        pltpu.emit_pipeline(add, grid=(pl.cdiv(rows, 32),), in_specs=[ROWS])(x)
        pltpu.sync_copy(s if used else x.at[pl.ds(0, 32)], o)

    found = _of(body, rows, 32, "undefined_values", scratch=[pltpu.VMEM((32, 128), jnp.float32)])
    assert found.exit_code == exit_code
    if exit_code:
        assert any(
            Said("pallas.undefined_values_pipeline_leaves", reference="scratch[0]").of(f.reason) for f in found.findings
        )


def test_numbers_and_tables_from_around_a_pipeline_are_known_in_it() -> None:
    def made(wrong: bool) -> Any:
        def body(table: Any, x: Any, o: Any) -> None:
            start = pl.program_id(0) * 32

            def total(window: Any, out: Any) -> None:
                row = jax.lax.broadcasted_iota(jnp.int32, (32, 128), 0) + pl.program_id(0) * 32
                value = jnp.where(row < (128 if wrong else 100), window[...], 0)
                out[...] = jnp.zeros((8, 128)) + jnp.sum(value, axis=0, keepdims=True)
                out[...] += (start + table[0]).astype(jnp.float32)

            out = pl.BlockSpec((8, 128), lambda i: (i, 0))
            pltpu.emit_pipeline(total, grid=(4,), in_specs=[ROWS], out_specs=[out])(x, o)

        spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(2,), in_specs=[HBM], out_specs=HBM)
        return pl.pallas_call(body, grid_spec=spec, out_shape=_array(32))

    table = jax.ShapeDtypeStruct((4,), jnp.int32)
    for wrong in (False, True):
        found = lp.kernels(made(wrong), table, _array(100), properties=["undefined_values", "initialised"])
        assert found.exit_code == int(wrong)


def test_a_pipeline_whose_body_cannot_be_traced_by_itself_is_unknown() -> None:
    calls = []

    def body(x: Any, o: Any) -> None:
        def double(x: Any, o: Any) -> None:
            calls.append(0)
            if len(calls) == 1:
                raise ValueError("not twice")
            o[...] = x[...] * 2

        pltpu.emit_pipeline(double, grid=(4,), in_specs=[ROWS], out_specs=[ROWS])(x, o)

    found = _of(body, 128, 128, "undefined_values")
    assert found.exit_code == 3
    assert any(
        Said("traced.pipeline_body", what=Said("traced.traced_alone", error="ValueError", words="not twice")).of(
            f.reason
        )
        for f in found.findings
    )


@pytest.mark.parametrize("rows", [96, 100])
def test_the_body_of_a_pipeline_is_recorded_with_what_it_takes_from_around_it(tmp_path: Path, rows: int) -> None:
    def body(table: Any, x: Any, o: Any, s: Any) -> None:
        factor = pl.program_id(0) + table[1]

        def total(window: Any, out: Any) -> None:
            s[...] = jnp.sum(window[...], axis=0, keepdims=True) * factor.astype(jnp.float32) + table[0]
            out[...] = jnp.zeros((8, 128)) + s[...]

        out = pl.BlockSpec((8, 128), lambda i: (i, 0))
        pltpu.emit_pipeline(total, grid=(pl.cdiv(rows, 32),), in_specs=[ROWS], out_specs=[out])(x, o)

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(2,), in_specs=[HBM], out_specs=HBM, scratch_shapes=[pltpu.VMEM((1, 128), "f4")]
    )
    call = pl.pallas_call(body, grid_spec=spec, out_shape=_array(8 * pl.cdiv(rows, 32)))
    calls = kernels_of(call, (jax.ShapeDtypeStruct((4,), jnp.int32), _array(rows)))
    file = tmp_path / "calls.jsonl"
    file.write_bytes(records_of(calls))
    said = []
    for kernel in (calls[1], read_records(file)[1]):
        assert isinstance(kernel, Kernel)
        found = judge(kernel, names=["undefined_values", "initialised", "outputs_stored"])
        said.append([(f.question, f.verdict, f.reason) for f in found])
    assert said[0] == said[1]
    assert any(verdict is Verdict.REFUTED for _, verdict, _ in said[0]) == (rows == 100)


@pytest.mark.parametrize(("blocks", "stops", "verdict"), [(2, 0, "proved"), (10, 0, "proved"), (10, 1, "refuted")])
def test_all_steps_of_a_pipeline_store_an_output_together(blocks: int, stops: int, verdict: str) -> None:
    def step(x: Any, y: Any, o: Any, total: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            total[...] = jnp.zeros_like(total)

        total[...] += x[...] @ y[...]

        @pl.when(pl.program_id(2) == blocks - 1)
        def _() -> None:
            o[...] = total[...]

    def body(x: Any, y: Any, o: Any, total: Any) -> None:
        of = [pl.BlockSpec((128, 128), map_) for map_ in (lambda i, j, k: (i, k), lambda i, j, k: (k, j))]
        out = pl.BlockSpec((128, 128), lambda i, j, k: (i, j))
        grid = (blocks, blocks - stops, blocks)
        pltpu.emit_pipeline(partial(step, total=total), grid=grid, in_specs=of, out_specs=[out])(x, y, o)

    array = jax.ShapeDtypeStruct((blocks * 128, blocks * 128), jnp.float32)
    scratch = [pltpu.VMEM((128, 128), jnp.float32)]
    call = pl.pallas_call(body, in_specs=[HBM, HBM], out_specs=HBM, out_shape=array, scratch_shapes=scratch)
    found = lp.kernels(call, array, array, properties=["outputs_stored"])
    assert {f.verdict for f in found.findings} == {Verdict(verdict), *([Verdict.PROVED] if stops else [])}


@pytest.mark.parametrize(
    ("fixed", "back", "verdict"), [(True, 1, Verdict.PROVED), (False, 1, Verdict.PROVED), (False, 0, Verdict.REFUTED)]
)
def test_how_many_programs_a_pipeline_has_may_stand_in_its_index_map(fixed: bool, back: int, verdict: Verdict) -> None:
    def copy(x: Any, o: Any) -> None:
        o[...] = x[...]

    def body(steps: Any, x: Any, o: Any) -> None:
        turned = pl.BlockSpec((32, 128), lambda i: (pl.num_programs(0) - back - i, 0))
        grid = (3 if fixed else steps[0],)
        pltpu.emit_pipeline(copy, grid=grid, in_specs=[turned], out_specs=[ROWS])(x, o)

    smem = pl.BlockSpec(memory_space=pltpu.SMEM)
    call = pl.pallas_call(body, in_specs=[smem, HBM], out_specs=HBM, out_shape=_array(96))
    where = [] if fixed else ["grid0 == 3"]
    found = lp.kernels(
        call, jax.ShapeDtypeStruct((1,), jnp.int32), _array(96), where=where, properties=["blocks_in_bounds"]
    )
    assert min(f.verdict for f in found.findings if f.subject == "in[0]") is verdict
