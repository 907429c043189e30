"""Bodies that store to their scalar-prefetch table: what index maps read of it, and what is still assumed of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof as lp
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.table_assumptions import with_assumptions
from layoutproof.pallas.from_mosaic.mosaic_module import calls_in, kernels_of_calls
from layoutproof.pallas.judge import judge
from tests.pallas.mosaic_texts import lowered
from tests.said import Said

pytestmark = pytest.mark.slow

TABLE = jax.ShapeDtypeStruct((6,), jnp.int32)
BLOCKS = jax.ShapeDtypeStruct((6, 8, 128), jnp.float32)
PROVED, UNKNOWN = Verdict.PROVED, Verdict.UNKNOWN


def call(store: Callable[[Any], None], of_output: bool = False) -> Callable[..., Any]:
    def body(t: Any, x: Any, out: Any) -> None:
        store(t)
        out[...] = x[...]

    def by_table(i: Any, t: Any) -> Any:
        return t[i], 0, 0

    def in_order(i: Any, t: Any) -> Any:
        return i, 0, 0

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(6,),
        in_specs=[pl.BlockSpec((None, 8, 128), in_order if of_output else by_table)],
        out_specs=pl.BlockSpec((None, 8, 128), by_table if of_output else in_order),
    )
    return pl.pallas_call(body, grid_spec=spec, out_shape=BLOCKS)


def _far(t: Any) -> None:
    for k in range(1, 6):
        t[k] = 99


def _beyond(t: Any) -> None:
    t[3] = t[0] + 100


def _next(t: Any) -> None:
    t[1] = t[0] + 1


def _three(t: Any) -> None:
    t[1] = 3


def _round(t: Any) -> None:
    t[1] = (t[0] + 1) % 6


def _nothing(t: Any) -> None:
    pass


RANGE = ("0 <= prefetch0 < 6",)


@pytest.mark.parametrize(
    ("store", "verdict"),
    [(_far, UNKNOWN), (_beyond, UNKNOWN), (_next, UNKNOWN), (_three, PROVED), (_round, PROVED), (_nothing, PROVED)],
)
def test_a_range_holds_where_every_store_keeps_it(store: Callable[[Any], None], verdict: Verdict) -> None:
    (traced,) = lp.kernels(call(store), TABLE, BLOCKS, assume=RANGE).calls
    assert told(traced.findings) is verdict


@pytest.mark.parametrize(
    ("store", "verdict"),
    [(_far, Verdict.REFUTED), (_beyond, Verdict.REFUTED), (_next, UNKNOWN), (_three, PROVED), (_round, PROVED)],
)
def test_programs_are_run_on_what_those_before_them_have_stored(store: Callable[[Any], None], verdict: Verdict) -> None:
    """What one program stores for a block that is fetched while it runs may come too late: that refutes nothing."""
    (traced,) = lp.kernels(call(store), TABLE, BLOCKS, assume=RANGE, strict_tables=True).calls
    found = min((f for f in traced.findings if f.question == "blocks_in_bounds"), key=lambda f: f.verdict)
    assert found.verdict is verdict
    if verdict is Verdict.REFUTED:
        at = found.counterexample["program"][0]
        assert f"at program ({at},): block index {100 if store is _beyond else 99}" in found.reason
        assert at >= 2


def test_a_number_that_data_store_refutes_nothing() -> None:
    """Nor what is stored where nobody knows whether it is."""

    def of(store: Callable[[Any, Any], None]) -> Verdict:
        def body(t: Any, x: Any, out: Any) -> None:
            store(t, x)
            out[...] = x[...]

        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(6,),
            in_specs=[pl.BlockSpec((None, 8, 128), lambda i, t: (t[i], 0, 0))],
            out_specs=pl.BlockSpec((None, 8, 128), lambda i, t: (i, 0, 0)),
        )
        kernel = pl.pallas_call(body, grid_spec=spec, out_shape=BLOCKS)
        found = lp.kernels(kernel, TABLE, BLOCKS, assume=RANGE, strict_tables=True).findings
        return min(f.verdict for f in found if f.question == "blocks_in_bounds")

    assert of(lambda t, x: t.__setitem__(3, x[0, 0].astype(jnp.int32))) is UNKNOWN
    assert of(lambda t, x: pl.when(x[0, 0] > 0)(lambda: t.__setitem__(3, 99))) is UNKNOWN
    assert of(lambda t, x: t.__setitem__(3, 99)) is Verdict.REFUTED


def test_the_lowered_text_says_the_same() -> None:
    stores = [(_far, UNKNOWN), (_three, PROVED)]
    calls = [one for store, _ in stores for one in calls_in(lowered((call(store), (TABLE, BLOCKS))), "call.mlir")]
    for (_, verdict), kernel in zip(stores, kernels_of_calls(calls), strict=True):
        assert isinstance(kernel, Kernel)
        assert told(judge(with_assumptions(kernel, RANGE, strict=False))) is verdict


def told(findings: Sequence[Finding]) -> Verdict:
    """What is said of a range that stores may leave: the verdict, whose reason names the stores and the range."""
    errors = [f for f in findings if f.severity == "error" and f.verdict is not PROVED]
    assert {f.question for f in errors} <= {"blocks_in_bounds"}
    for finding in errors:
        assert Said("pallas.stores_to_it").of(finding.reason)
        assert "'0 <= prefetch0 < 6'" in finding.reason or finding.reason.startswith("refuted if prefetch0 can be ")
    return min((f.verdict for f in errors), default=PROVED)


def test_that_no_number_stands_twice_is_kept_by_no_store() -> None:
    assume = (*RANGE, "prefetch0 is injective", "prefetch0 is onto")

    def worst(store: Callable[[Any], None]) -> Verdict:
        (one,) = lp.kernels(call(store, of_output=True), TABLE, BLOCKS, assume=assume).calls
        return min(f.verdict for f in one.findings if f.severity == "error")

    assert worst(_nothing) is PROVED
    assert worst(_three) is UNKNOWN
