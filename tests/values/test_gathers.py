"""Gathers on SparseCores beside `jnp.take` and `table[indices]`: right, one place off, and with a part exchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("jax", reason="tracing needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import tpu_sc as plsc

import layoutproof as lp
from layoutproof.core.result import Verdict
from tests.bodies.subcore_pairs import DMA, LANES, TARGET, WORKERS, F, I, here, made

pytestmark = pytest.mark.slow

ROWS, COLUMNS = 64, 16
TABLE, LIST = jax.ShapeDtypeStruct((ROWS, COLUMNS), F), jax.ShapeDtypeStruct((ROWS,), I)
ASSUME = ("0 <= args[1] < 64",)
FOUND, VECTOR = pltpu.VMEM((LANES, COLUMNS), F), pltpu.VMEM((LANES,), I)
WRONG = ("one place off", "a part exchanged")


def take(table: Any, places: Any) -> Any:
    return jnp.take(table, places, axis=0)


def indexed(table: Any, places: Any) -> Any:
    return table[places]


def gather(form: str, wrong: str = "") -> Callable[..., Any]:
    """A kernel of eight subcores, each with eight places of the list.

    wrong: "one place off", each row is the next one's; "a part exchanged", the third subcore has the fourth's list.
    """

    def listed_at(i: Any, listed: Any) -> Any:
        _, _, w = here()
        part = jnp.where(w == 2, 3, w) if wrong == WRONG[1] else w
        pltpu.sync_copy(i.at[pl.ds(part * LANES, LANES)], listed)
        if wrong == WRONG[0]:
            listed[...] = jnp.minimum(listed[...] + 1, ROWS - 1)
        return pl.ds(w * LANES, LANES)

    def at_once(x: Any, i: Any, o: Any, listed: Any, found: Any) -> None:
        own = listed_at(i, listed)
        pltpu.sync_copy(x.at[listed], found)
        pltpu.sync_copy(found, o.at[own])

    def waited_for(x: Any, i: Any, o: Any, listed: Any, found: Any, semaphore: Any) -> None:
        own = listed_at(i, listed)
        pltpu.async_copy(x.at[listed], found, semaphore).wait()
        pltpu.async_copy(found, o.at[own], semaphore).wait()

    def halves(x: Any, i: Any, o: Any, listed: Any, found: Any, semaphores: Any) -> None:
        listed_at(i, listed)
        _, _, w = here()
        copies = [
            pltpu.async_copy(x.at[listed.at[pl.ds(k * 4, 4)]], found.at[pl.ds(k * 4, 4)], semaphores.at[k])
            for k in range(2)
        ]
        for k, copy in enumerate(copies):
            copy.wait()
            pltpu.sync_copy(found.at[pl.ds(k * 4, 4)], o.at[pl.ds(w * LANES + k * 4, 4)])

    def row_by_row(x: Any, i: Any, o: Any, listed: Any, found: Any) -> None:
        own = listed_at(i, listed)
        places = listed[...]
        for lane in range(LANES):
            pltpu.sync_copy(x.at[places[lane]], found.at[lane])
        pltpu.sync_copy(found, o.at[own])

    def by_lanes(x: Any, i: Any, o: Any, listed: Any, found: Any, table: Any) -> None:
        own = listed_at(i, listed)
        pltpu.sync_copy(x, table)
        lanes = jax.lax.iota(I, LANES)
        for column in range(COLUMNS):
            at = jnp.full((LANES,), column, I)
            plsc.store_scatter(found, [lanes, at], plsc.load_gather(table, [listed[...], at]))
        pltpu.sync_copy(found, o.at[own])

    body, more = {
        "at once": (at_once, []),
        "waited for": (waited_for, [DMA]),
        "halves": (halves, [DMA((2,))]),
        "row by row": (row_by_row, []),
        "by lanes": (by_lanes, [pltpu.VMEM((ROWS, COLUMNS), F)]),
    }[form]
    return lambda x, i: made(body, (ROWS, COLUMNS), [VECTOR, FOUND, *more])(x, i)


FORMS = ("at once", "waited for", "halves", "row by row", "by lanes")


def same(kernel: Callable[..., Any], reference: Callable[..., Any]) -> Any:
    return lp.same(kernel, reference, TABLE, LIST, target=TARGET, assume=ASSUME)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("reference", [take, indexed])
def test_a_gather_is_what_its_reference_takes(form: str, reference: Callable[..., Any]) -> None:
    assert same(gather(form), reference).verdict is Verdict.SAMPLED


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_one_is_refuted_where_it_differs(form: str, wrong: str) -> None:
    told = same(gather(form, wrong), take)
    assert told.verdict is Verdict.REFUTED
    assert told.comparison.witness is not None
    row, _ = told.comparison.witness.index
    assert row == 0 if wrong == WRONG[0] else 2 * LANES <= row < 3 * LANES


def pipelined(x: Any, i: Any) -> Any:
    """The list in windows of a pipeline, as JAX's page on SparseCores has it."""
    mesh = plsc.VectorSubcoreMesh(
        core_axis_name="core", subcore_axis_name="subcore", num_cores=2, num_subcores=WORKERS // 2
    )

    def body(x: Any, i: Any, o: Any) -> None:
        def step(listed: Any, found: Any) -> None:
            pltpu.sync_copy(x.at[listed.at[0]], found)

        pltpu.emit_pipeline(
            step,
            grid=(ROWS // LANES,),
            in_specs=[pl.BlockSpec((1, LANES), lambda j: (0, j))],
            out_specs=[pl.BlockSpec((LANES, COLUMNS), lambda j: (j, 0))],
            core_axis_name=("core", "subcore"),
            dimension_semantics=(pltpu.PARALLEL,),
        )(i, o)

    params = pltpu.CompilerParams(use_tc_tiling_on_sc=False, needs_layout_passes=False)
    out = jax.ShapeDtypeStruct((ROWS, COLUMNS), F)
    return pl.kernel(body, out_type=out, mesh=mesh, compiler_params=params)(x, i.reshape(1, ROWS))


def test_a_list_in_windows_of_a_pipeline_is_unknown_for_its_places_alone() -> None:
    """No difference is found; that all places are inside is not proved of a list that copies of the pipeline bring."""
    told = same(pipelined, take)
    assert told.verdict is Verdict.UNKNOWN
    assert "it rests on body_in_bounds, which is unknown: where the body copies from args[0] depends on" in told.reason
    assert "no difference" in told.reason
    off = same(pipelined, lambda table, places: take(table, jnp.minimum(places + 1, ROWS - 1)))
    assert off.verdict is Verdict.REFUTED
