"""Memory that is read before it is written: what is refuted, and what a mask or an earlier program makes right."""

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
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge
from tests.bodies.judged import worst

pytestmark = pytest.mark.slow


def asked(function: Any, *args: Any) -> list[Finding]:
    found: list[Finding] = []
    for kernel in kernels_of(function, args):
        assert isinstance(kernel, Kernel)
        found += judge(kernel, names=["initialised"])
    return found


def call(body: Any, semantics: str = "arbitrary") -> Any:
    return pl.pallas_call(
        body,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((16, 128), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=(semantics,)),
    )


X = jax.ShapeDtypeStruct((32, 128), jnp.float32)


@pytest.mark.parametrize(("rows", "verdict"), [(8, Verdict.PROVED), (9, Verdict.REFUTED)])
def test_what_a_mask_drops_may_be_unwritten(rows: int, verdict: Verdict) -> None:
    def body(x: Any, o: Any, s: Any) -> None:
        s[pl.ds(0, 8), :] = x[...]
        v = s[...]
        v = jnp.where(jax.lax.broadcasted_iota(jnp.int32, v.shape, 0) < rows, v, 0)
        o[...] = v[:8] + v[8:]

    found = asked(call(body), X)
    assert worst(found) is verdict
    if verdict is Verdict.REFUTED:
        assert found[0].counterexample == {"program": (0,), "element": (8, 0)}
        assert "nothing has written before" in found[0].reason


@pytest.mark.parametrize(("rows", "verdict"), [(16, Verdict.PROVED), (15, Verdict.REFUTED)])
def test_rows_that_a_loop_wrote_are_written(rows: int, verdict: Verdict) -> None:
    def body(x: Any, o: Any, s: Any) -> None:
        def store(r: Any, carry: Any) -> Any:
            s[pl.ds(r, 1), :] = x[pl.ds(r // 2, 1), :]
            return carry

        jax.lax.fori_loop(0, rows, store, 0)
        o[...] = s[pl.ds(0, 8), :] + s[pl.ds(8, 8), :]

    assert worst(asked(call(body), X)) is verdict


@pytest.mark.parametrize("turns", [3, None])
@pytest.mark.parametrize(("once", "verdict"), [(False, Verdict.PROVED), (True, Verdict.REFUTED)])
def test_memory_of_a_scope_is_new_in_every_iteration(turns: int | None, once: bool, verdict: Verdict) -> None:
    def body(x: Any, o: Any, s: Any) -> None:
        def turn(i: Any, carry: Any) -> Any:
            def scope(own: Any) -> None:
                @pl.when((i == 0) if once else (i >= 0))
                def _() -> None:
                    own[...] = jnp.zeros((8, 128))

                o[...] = own[...] + x[...]

            pl.run_scoped(scope, pltpu.VMEM((8, 128), jnp.float32))
            return carry

        jax.lax.fori_loop(0, turns or pl.program_id(0) + 1, turn, 0)

    found = asked(call(body), X)
    assert worst(found) is verdict
    if verdict is Verdict.REFUTED:
        assert found[0].counterexample is not None
        assert found[0].counterexample["iteration"] == (1,)


@pytest.mark.parametrize(("rows", "verdict"), [(16, Verdict.PROVED), (9, Verdict.REFUTED)])
def test_the_copies_of_an_unrolled_loop_are_one_question(rows: int, verdict: Verdict) -> None:
    def body(x: Any, o: Any, s: Any) -> None:
        s[pl.ds(0, rows), :] = jnp.zeros((rows, 128))
        total = x[...]
        for k in range(3):
            total += s[pl.ds(k, 8), :]
        o[...] = total

    (found,) = asked(call(body), X)
    assert found.verdict is verdict
    if verdict is Verdict.REFUTED:
        assert found.counterexample == {"program": (0,), "element": (9, 0)}


@pytest.mark.parametrize(("semantics", "verdict"), [("arbitrary", Verdict.PROVED), ("parallel", Verdict.REFUTED)])
def test_what_another_core_wrote_is_not_written(semantics: str, verdict: Verdict) -> None:
    def body(x: Any, o: Any, s: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            s[...] = jnp.zeros_like(s)

        s[pl.ds(0, 8), :] += x[...]
        o[...] = s[pl.ds(0, 8), :]

    found = asked(call(body, semantics), X)
    assert worst(found) is verdict
    if verdict is Verdict.REFUTED:
        assert found[0].counterexample == {"program": (1,), "element": (0, 0)}
        assert "parallel dimension" in found[0].reason


@pytest.mark.parametrize(("rows", "verdict"), [(16, Verdict.PROVED), (8, Verdict.REFUTED)])
def test_what_is_copied_to_an_output_is_written(rows: int, verdict: Verdict) -> None:
    def body(x: Any, o: Any, s: Any, done: Any) -> None:
        s[pl.ds(0, rows), :] = x[pl.ds(0, rows), :]
        copy = pltpu.make_async_copy(s, o, done)
        copy.start()
        copy.wait()

    copied = pl.pallas_call(
        body,
        grid=(1,),
        in_specs=[pl.BlockSpec((32, 128), lambda i: (0, 0))],
        out_specs=pl.BlockSpec(memory_space=pl.ANY),
        out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((16, 128), jnp.float32), pltpu.SemaphoreType.DMA],
    )
    found = asked(copied, X)
    assert worst(found) is verdict
    if verdict is Verdict.REFUTED:
        assert found[0].counterexample == {"program": (0,), "element": (8, 0)}


@pytest.mark.parametrize(("unwritten", "verdict"), [(False, Verdict.PROVED), (True, Verdict.REFUTED)])
def test_a_number_that_decides_what_is_stored_is_used(unwritten: bool, verdict: Verdict) -> None:
    def body(x: Any, o: Any, s: Any) -> None:
        if not unwritten:
            s[0] = 1
        o[...] = jnp.zeros_like(o)

        @pl.when(s[0] > 0)
        def _() -> None:
            o[...] = x[...]

    counted = pl.pallas_call(
        body,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
        scratch_shapes=[pltpu.SMEM((1,), jnp.int32)],
    )
    assert worst(asked(counted, X)) is verdict


def rows(missing: int = 0, elsewhere: bool = False) -> Any:
    """Three programs store the rows of one window, each from where the one before has ended: t[i] to t[i + 1]."""

    def body(t: Any, x: Any, out: Any, *more: Any) -> None:
        i = pl.program_id(0)
        row = jax.lax.broadcasted_iota(jnp.int32, (8, 128), 0)
        mine = (row >= t[i]) & (row < t[i + 1] - missing)
        if more:
            more[0][...] = out[...]
        out[...] = jnp.where(mine, x[...], out[...])

    window = pl.BlockSpec((8, 128), lambda i, t: (0, 0))
    shape = jax.ShapeDtypeStruct((8, 128), jnp.float32)
    outputs = 2 if elsewhere else 1
    return pl.pallas_call(
        body,
        out_shape=[shape] * outputs,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=(3,), in_specs=[window], out_specs=[window] * outputs
        ),
    )


ROWS = ("0 <= prefetch0 <= 8", "prefetch0 is monotone", "prefetch0[0] == 0", "prefetch0[3] == 8")


@pytest.mark.parametrize(
    ("call", "assumed", "verdict"),
    [
        (rows, ROWS, Verdict.PROVED),
        # the last row of each range stays as it was
        (lambda: rows(missing=1), ROWS, Verdict.UNKNOWN),
        # what is not there yet goes somewhere else, too, in the first program whatever the table holds
        (lambda: rows(elsewhere=True), ROWS, Verdict.REFUTED),
        # all ranges may be empty: refuted for such tables, and right for those of ROWS
        (rows, ROWS[:2], Verdict.UNKNOWN),
        (rows, ROWS[:3], Verdict.UNKNOWN),
        (rows, (*ROWS[:2], ROWS[3]), Verdict.UNKNOWN),
    ],
)
def test_rows_that_programs_store_one_range_after_the_other(call: Any, assumed: Any, verdict: Verdict) -> None:
    args = (jax.ShapeDtypeStruct((4,), jnp.int32), jax.ShapeDtypeStruct((8, 128), jnp.float32))
    found = lp.kernels(call(), *args, assume=assumed, properties=["initialised"])
    others = {Verdict.UNKNOWN} if verdict is Verdict.REFUTED else {verdict}
    assert {f.verdict for f in found.findings if f.subject.startswith("outputs")} == {verdict, *others}


@pytest.mark.parametrize("step", [0, 1])
def test_a_sum_that_starts_at_the_wrong_step_reads_what_nobody_wrote(step: int) -> None:
    # all that comes out is written, and the block of step 0 is not in the sum
    def add(x: Any, out: Any) -> None:
        out[...] = jnp.where(pl.program_id(1) == step, x[...], out[...] + x[...])

    total = pl.pallas_call(
        add,
        grid=(2, 2),
        in_specs=[pl.BlockSpec((8, 128), lambda i, j: (2 * i + j, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
    )
    (found,) = asked(total, jax.ShapeDtypeStruct((32, 128), jnp.float32))
    assert found.verdict is (Verdict.PROVED if step == 0 else Verdict.REFUTED)


def summed(start: Any, runs: Any, semantics: tuple[str, str], scratch: bool = False) -> Any:
    """A sum over k in each block i of an output. start, runs: conditions (i, k) on zeroing, and on adding at all."""

    def body(x: Any, o: Any, *held: Any) -> None:
        i, k = pl.program_id(0), pl.program_id(1)
        acc = held[0] if held else o

        @pl.when(runs(i, k))
        def _() -> None:
            @pl.when(start(i, k))
            def _() -> None:
                acc[...] = jnp.zeros_like(acc)

            acc[...] += x[...]

        if held:

            @pl.when(k == pl.num_programs(1) - 1)
            def _() -> None:
                o[...] = acc[...]

    return pl.pallas_call(
        body,
        grid=(4, 4),
        in_specs=[pl.BlockSpec((8, 128), lambda i, k: (k, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, k: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)] if scratch else [],
        compiler_params=pltpu.CompilerParams(dimension_semantics=semantics),
    )


ALWAYS, TRIANGLE = (lambda i, k: k >= 0), (lambda i, k: k >= i)


@pytest.mark.parametrize("outer", ["arbitrary", "parallel"])
@pytest.mark.parametrize(
    ("right", "wrong", "runs"),
    [
        (lambda i, k: k == 0, lambda i, k: (i == 0) & (k == 0), ALWAYS),
        (lambda i, k: k == i, lambda i, k: k == 0, TRIANGLE),
    ],
    ids=["once for all blocks", "inside of a causal skip"],
)
def test_a_sum_that_starts_in_one_block_only(right: Any, wrong: Any, runs: Any, outer: str) -> None:
    """The smallest candidate of the engines need not be the place: corners are replayed, too."""
    assert worst(asked(summed(right, runs, (outer, "arbitrary")), X)) is Verdict.PROVED
    found = asked(summed(wrong, runs, (outer, "arbitrary")), X)
    assert worst(found) is Verdict.REFUTED
    (refuted,) = (f for f in found if f.verdict is Verdict.REFUTED)
    assert refuted.counterexample == {"program": (1, 0) if runs is ALWAYS else (1, 1), "element": (0, 0)}


@pytest.mark.parametrize("always", [False, True])
def test_what_is_used_under_a_condition_on_a_table_is_refuted_for_those_tables(always: bool) -> None:
    """The read happens for all tables, and what it read is stored for some."""

    def body(t: Any, x: Any, o: Any, s: Any) -> None:
        v = s[...]

        o[...] = x[...]

        @pl.when(always or t[0] >= 1)
        def _() -> None:
            o[...] = v

    window = pl.BlockSpec((8, 128), lambda i, t: (0, 0))
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(1,),
        in_specs=[window],
        out_specs=window,
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
    )
    copied = pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32), grid_spec=spec)
    args = (jax.ShapeDtypeStruct((1,), jnp.int32), jax.ShapeDtypeStruct((8, 128), jnp.float32))
    found = lp.kernels(copied, *args, assume=("0 <= prefetch0 <= 2",), properties=["initialised"])
    (read,) = (f for f in found.findings if f.subject == "scratch[0]")
    assert read.verdict is (Verdict.REFUTED if always else Verdict.UNKNOWN)
    assert read.reason.startswith("the body reads" if always else "refuted if prefetch0 can be 1")
