"""Arithmetic of 32 and 8 bits in bodies: places, guards, masks and trip counts are decided on what is left of a number.

Each wrong kernel has a twin that differs in a number that does not wrap, or that means to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof as lp
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_mosaic.mosaic_module import calls_in, kernels_of_calls
from layoutproof.pallas.judge import judge
from tests.pallas.mosaic_texts import lowered

pytestmark = pytest.mark.slow

HASH = 1103515245
PROVED, REFUTED = Verdict.PROVED, Verdict.REFUTED


def array(*dims: int, dtype: Any = jnp.float32) -> Any:
    return jax.ShapeDtypeStruct(dims, dtype)


def reading(start: Callable[[Any], Any], programs: int = 8, rows: int = 32) -> Callable[..., Any]:
    """A call whose programs read 8 of some rows, from where `start` says."""

    def body(x: Any, out: Any) -> None:
        out[...] = x[pl.ds(start(pl.program_id(0)), 8), :]

    return pl.pallas_call(
        body,
        grid=(programs,),
        in_specs=[pl.BlockSpec((rows, 128), lambda i: (0, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=array(8 * programs, 128),
    )


def told(function: Callable[..., Any], *args: Any, assume: tuple[str, ...] = ()) -> list[Finding]:
    """What is said of a call."""
    (call,) = lp.kernels(function, *args, assume=assume).calls
    return list(call.findings)


def worst(findings: Any, question: str) -> Verdict:
    return min(f.verdict for f in findings if f.question == question and f.severity == "error")


@pytest.mark.parametrize(
    ("start", "verdict"),
    [
        (lambda i: lax.rem(i * HASH + 12345, 4) * 8, REFUTED),
        (lambda i: ((i + 1) * 2**30) // 2**30 * 8 - 8, REFUTED),
        (lambda i: jnp.where((i + 1) * 2**30 > 0, 0, -8), REFUTED),
        (lambda i: jnp.where((i + 1) * 2**20 > 0, 0, -8), PROVED),
        (lambda i: (i << 29) >> 29 << 3, REFUTED),
        (lambda i: (i << 20) >> 22 << 3, PROVED),
        (lambda i: (i * i * i * 100_000_000 < 0) * -8, REFUTED),
        (lambda i: (i.astype(jnp.int8) * jnp.int8(40)).astype(jnp.int32) // 40 * 0, PROVED),
        (lambda i: (i.astype(jnp.int8) * jnp.int8(40)).astype(jnp.int32) // 160 * 8, REFUTED),
        # hashes that mean to wrap
        (lambda i: ((i * HASH + 12345) & 3) * 8, PROVED),
        (lambda i: ((i * HASH + 12345) >> 16 & 3) * 8, PROVED),
        (lambda i: (i * HASH + 12345) % 4 * 8, PROVED),
        (lambda i: jnp.clip(i * HASH, 0, 3) * 8, PROVED),
        (
            lambda i: (i.astype(jnp.uint32) * jnp.uint32(2654435761) >> jnp.uint32(30)).astype(jnp.int32) * 8,
            PROVED,
        ),
    ],
)
def test_where_a_body_reads(start: Callable[[Any], Any], verdict: Verdict) -> None:
    assert worst(told(reading(start), array(32, 128)), "body_in_bounds") is verdict


def test_the_lowered_text_says_the_same() -> None:
    starts = [
        (lambda i: lax.rem(i * HASH + 12345, 4) * 8, REFUTED),
        (lambda i: jnp.where((i + 1) * 2**30 > 0, 0, -8), REFUTED),
        (lambda i: jnp.where((i + 1) * 2**20 > 0, 0, -8), PROVED),
        (lambda i: ((i * HASH + 12345) & 3) * 8, PROVED),
    ]
    calls = [one for start, _ in starts for one in calls_in(lowered((reading(start), (array(32, 128),))), "call.mlir")]
    for (_, verdict), kernel in zip(starts, kernels_of_calls(calls), strict=True):
        assert isinstance(kernel, Kernel)
        assert worst(judge(kernel), "body_in_bounds") is verdict


@pytest.mark.parametrize(("scale", "verdict"), [(2**30, REFUTED), (2**29, PROVED)])
def test_a_guard(scale: int, verdict: Verdict) -> None:
    def body(x: Any, out: Any) -> None:
        @pl.when(pl.program_id(0) * scale >= 0)
        def _() -> None:
            out[...] = x[...]

    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    call = pl.pallas_call(body, grid=(4,), in_specs=[block], out_specs=block, out_shape=array(32, 128))
    assert worst(told(call, array(32, 128)), "outputs_stored") is verdict


@pytest.mark.parametrize(("columns", "verdict"), [(256, REFUTED), (128, PROVED)])
def test_a_mask_of_narrow_numbers(columns: int, verdict: Verdict) -> None:
    def body(x: Any, out: Any) -> None:
        inside = lax.broadcasted_iota(jnp.int8, (8, columns), 1) < 100
        kept = jnp.where(inside, x[...], 0)
        out[...] = jnp.broadcast_to(kept.sum(1, keepdims=True), (8, 128))

    call = pl.pallas_call(
        body,
        grid=(1,),
        in_specs=[pl.BlockSpec((8, columns), lambda i: (0, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        out_shape=array(8, 128),
    )
    (found,) = lp.kernels(call, array(8, 100)).calls
    assert worst(found.findings, "undefined_values") is verdict


@pytest.mark.parametrize(
    ("start", "following", "verdict"),
    [
        (lambda c: (c & 3) * 8, lambda c: c * HASH + 12345, PROVED),
        # the third value is negative, and so is its rest
        (lambda c: lax.rem(c, 4) * 8, lambda c: c * HASH + 12345, REFUTED),
        (lambda c: lax.rem(c, 4) * 8, lambda c: c + 2**29, REFUTED),
        (lambda c: lax.rem(c, 4) * 8, lambda c: c + 2**28, PROVED),
        (lambda c: lax.rem(c, 4) * 8, lambda c: c + 1, PROVED),
    ],
)
def test_what_a_loop_hands_on(start: Callable[[Any], Any], following: Callable[[Any], Any], verdict: Verdict) -> None:
    def body(x: Any, out: Any) -> None:
        def step(j: Any, c: Any) -> Any:
            out[...] = x[pl.ds(start(c), 8), :]
            return following(c)

        lax.fori_loop(0, 5, step, jnp.int32(1))

    call = pl.pallas_call(
        body,
        grid=(1,),
        in_specs=[pl.BlockSpec((32, 128), lambda i: (0, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        out_shape=array(8, 128),
    )
    assert worst(told(call, array(32, 128)), "body_in_bounds") is verdict


@pytest.mark.parametrize(
    ("goes_on", "step", "first", "verdict"),
    [
        (lambda r: r < 32, 8, 0, PROVED),
        (lambda r: r < 33, 8, 0, REFUTED),
        (lambda r: r >= 0, -8, 24, PROVED),
        (lambda r: r > -9, -8, 24, REFUTED),
        (lambda r: (r <= 24) & (r >= 0), 8, 0, PROVED),
    ],
)
def test_rows_that_a_condition_ends_do_not_wrap(
    goes_on: Callable[[Any], Any], step: int, first: int, verdict: Verdict
) -> None:
    def body(x: Any, out: Any) -> None:
        def row(c: Any) -> Any:
            return c[0] + step, c[1] + x[pl.ds(c[0], 8), :]

        start = (jnp.int32(first), jnp.zeros((8, 128), jnp.float32))
        out[...] = lax.while_loop(lambda c: goes_on(c[0]), row, start)[1]

    call = pl.pallas_call(
        body,
        grid=(1,),
        in_specs=[pl.BlockSpec((32, 128), lambda i: (0, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        out_shape=array(8, 128),
    )
    assert worst(told(call, array(32, 128)), "body_in_bounds") is verdict


def from_a_table(scale: int) -> Callable[..., Any]:
    def body(t: Any, x: Any, out: Any) -> None:
        out[...] = x[pl.ds((t[pl.program_id(0)] * scale) // (scale // 8), 8), :]

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[pl.BlockSpec((32, 128), lambda i, t: (0, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, t: (i, 0)),
    )
    return pl.pallas_call(body, grid_spec=spec, out_shape=array(32, 128))


@pytest.mark.parametrize(("scale", "verdict"), [(2**30, Verdict.UNKNOWN), (2**20, PROVED)])
def test_what_a_table_holds_is_bounded_by_what_is_assumed(scale: int, verdict: Verdict) -> None:
    found = told(from_a_table(scale), array(4, dtype=jnp.int32), array(32, 128), assume=("0 <= prefetch0 < 4",))
    assert worst(found, "body_in_bounds") is verdict


def test_an_offset_into_a_large_array_wraps_where_it_is_flat() -> None:
    def body(x: Any, out: Any, buffer: Any, done: Any) -> None:
        flat = pl.program_id(0) * 8 * 65536
        copy = pltpu.make_async_copy(x.at[pl.ds(flat // 65536, 8), pl.ds(0, 128)], buffer, done)
        copy.start()
        copy.wait()
        out[...] = buffer[...]

    call = pl.pallas_call(
        body,
        grid=(8192,),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=array(65536, 128),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA],
    )
    (found,) = lp.kernels(call, array(65536, 65536)).calls
    wrong = next(f for f in found.findings if f.verdict is REFUTED and f.question == "body_in_bounds")
    assert wrong.counterexample == {"program": (4096,)}
    assert "elements -32768:-32760" in wrong.reason


def test_a_wrap_that_spoils_nothing_is_a_warning_with_its_number() -> None:
    def warnings(start: Callable[[Any], Any]) -> list[Finding]:
        (call,) = lp.kernels(reading(start), array(32, 128)).calls
        assert not [f for f in call.findings if f.severity == "error" and f.verdict is not PROVED]
        return [f for f in call.findings if f.question == "index_int32" and f.verdict is REFUTED]

    (found,) = warnings(lambda i: ((i + 1) * 2**30 < 0) * 8)
    assert found.severity == "warning"
    assert found.counterexample == {"program": (1,)}
    assert "(pl.program_id(0) + 1) * 1073741824, which is 2147483648" in found.reason
    assert "it goes on with -2147483648" in found.reason
    assert warnings(lambda i: ((i + 1) * 2**20 < 0) * 8) == []
    # only the last bits are used, and those are right
    assert warnings(lambda i: ((i * HASH + 12345) & 3) * 8) == []


def choosing(mask: Callable[[int], Any], columns: int = 256) -> Callable[..., Any]:
    """A call whose programs take what a mask over their rows and columns says, and 0 elsewhere."""

    def body(x: Any, out: Any) -> None:
        out[...] = jnp.where(mask(columns), x[...], 0)

    block = pl.BlockSpec((8, columns), lambda i: (i, 0))
    return pl.pallas_call(body, grid=(4,), in_specs=[block], out_specs=block, out_shape=array(32, columns))


def column(dtype: Any, columns: int) -> Any:
    return lax.broadcasted_iota(dtype, (8, columns), 1)


def wraps(findings: Any) -> list[Finding]:
    return [f for f in findings if f.question == "index_int32" and f.verdict is REFUTED]


@pytest.mark.parametrize(
    ("mask", "wrong", "right", "said"),
    [
        (lambda c: column(jnp.int8, c) < 100, 256, 128, "element[1], which is 128: int8 ends at 127, and it goes"),
        (lambda c: column(jnp.int32, c).astype(jnp.int8) < 100, 256, 128, "element[1], which is 128: int8 ends at 127"),
        (lambda c: column(jnp.int16, c) * jnp.int16(256) < 9, 256, 128, "element[1] * 256, which is 32768: int16 ends"),
        (lambda c: column(jnp.int8, c) * jnp.int8(3) + jnp.int8(1) < 9, 90, 42, "element[1] * 3, which is 129: int8"),
        (lambda c: column(jnp.int32, c) * 65536 * 256 < 9, 256, 128, "element[1] * 65536 * 256, which is 2147483648"),
        (lambda c: pl.program_id(0) * 2**22 * c + column(jnp.int32, c) < 9, 256, 128, "which is 2147483648: int32"),
    ],
)  # fmt: skip
def test_a_mask_that_wraps_over_defined_data_is_a_warning(
    mask: Callable[[int], Any], wrong: int, right: int, said: str
) -> None:
    (call,) = lp.kernels(choosing(mask, wrong), array(32, wrong)).calls
    assert all(f.verdict is PROVED for f in call.findings if f.severity == "error")
    (first, *_) = wraps(call.findings)
    assert first.severity == "warning"
    assert said in first.reason
    assert first.file.endswith("test_wrapping.py")
    assert set(first.counterexample or {}) == {"program", "element"}
    (twin,) = lp.kernels(choosing(mask, right), array(32, right)).calls
    assert wraps(twin.findings) == []


@pytest.mark.parametrize(
    "mask",
    [
        lambda c: (column(jnp.int32, c) * HASH + 12345 & 3) < 2,
        lambda c: (column(jnp.int32, c) * HASH + 12345) % 4 < 2,
        lambda c: column(jnp.uint32, c) * jnp.uint32(HASH) < jnp.uint32(2**31),
        lambda c: (column(jnp.uint32, c) * jnp.uint32(HASH)).astype(jnp.int8) < 5,
        lambda c: column(jnp.int8, c).astype(jnp.uint8) < 200,
    ],
)
def test_a_mask_of_a_hash_that_means_to_wrap_is_none(mask: Callable[[int], Any]) -> None:
    (call,) = lp.kernels(choosing(mask), array(32, 256)).calls
    assert wraps(call.findings) == []


@pytest.mark.parametrize(("scale", "count"), [(2**26, 1), (2**20, 0)])
def test_a_mask_of_a_store_and_of_the_lowered_text(scale: int, count: int) -> None:
    def body(x: Any, out: Any) -> None:
        pltpu.store(out.at[...], x[...], mask=lax.broadcasted_iota(jnp.int32, (8, 128), 1) * scale < 9)

    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    call = pl.pallas_call(body, grid=(4,), in_specs=[block], out_specs=block, out_shape=array(32, 128))
    assert len(wraps(told(call, array(32, 128)))) == count
    (kernel,) = kernels_of_calls(calls_in(lowered((call, (array(32, 128),))), "call.mlir"))
    assert isinstance(kernel, Kernel)
    assert len(wraps(judge(kernel))) == count


def segments(starts: tuple[int, ...], short: int = 0) -> Callable[..., Any]:
    """A call whose programs sum the rows from one entry of a table to the next."""

    def body(at: Any, x: Any, out: Any) -> None:
        k = pl.program_id(0)
        first, last = at[k], at[k + 1] + short
        row = jnp.zeros((1, 128), jnp.float32)
        out[...] = lax.fori_loop(first, last, lambda r, total: total + x[pl.ds(r, 1), :], row)

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(len(starts) - 1,),
        in_specs=[pl.BlockSpec((32, 128), lambda i, at: (0, 0))],
        out_specs=pl.BlockSpec((None, 1, 128), lambda i, at: (i, 0, 0)),
    )
    call = pl.pallas_call(body, grid_spec=spec, out_shape=array(len(starts) - 1, 1, 128))
    return lambda x: call(jnp.asarray(starts, jnp.int32), x)


def test_a_loop_that_counts_up_to_a_bound_ends_before_its_counter_wraps() -> None:
    # the second one has no row: with its counter gone round, the condition would hold again
    starts = (0, 5, 5, 20, 32)
    assert worst(told(segments(starts), array(32, 128)), "body_in_bounds") is PROVED
    assert worst(told(segments(starts, 1), array(32, 128)), "body_in_bounds") is REFUTED
