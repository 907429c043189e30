"""What only one program, one number or one element does wrong is found: each kernel beside its right twin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

jax = pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

from layoutproof.core.result import Verdict  # noqa: E402
from layoutproof.kernel.kernel import Kernel  # noqa: E402
from layoutproof.pallas.from_jax.trace import kernels_of  # noqa: E402
from layoutproof.pallas.judge import judge  # noqa: E402
from tests.bodies.kernels import ANY, found  # noqa: E402

pytestmark = pytest.mark.slow

WHOLE = ((8, 128), lambda i, *_: (0, 0))


def worst(question: str, body: Callable[..., None], **how: Any) -> Verdict:
    return min(finding.verdict for finding in found(question, body, **how))


@pytest.mark.parametrize("extent", [2, 4])
def test_a_copy_that_only_the_last_program_leaves_in_flight(extent: int) -> None:
    def body(waits: bool) -> Callable[..., None]:
        def kernel(x: Any, o: Any, sem: Any) -> None:
            copy = pltpu.make_async_copy(x.at[pl.ds(0, 8)], o.at[pl.ds(0, 8)], sem)

            @pl.when(pl.program_id(0) == extent - 1)
            def _() -> None:
                copy.start()
                if waits:
                    copy.wait()

        return kernel

    how = {"grid": (extent,), "given": ANY, "out": ANY, "scratch": [pltpu.SemaphoreType.DMA]}
    assert worst("dma_order", body(waits=False), **how) is Verdict.REFUTED
    assert worst("dma_order", body(waits=True), **how) is Verdict.PROVED


def test_rows_that_a_table_puts_together_while_both_copies_are_in_flight() -> None:
    def body(first: int) -> Callable[..., None]:
        def kernel(t: Any, x: Any, o: Any, one: Any, other: Any) -> None:
            fixed = pltpu.make_async_copy(x.at[pl.ds(0, 8)], o.at[pl.ds(0, 8)], one)
            moved = pltpu.make_async_copy(x.at[pl.ds(8, 8)], o.at[pl.ds(8 * (t[0] + first), 8)], other)
            fixed.start()
            moved.start()
            fixed.wait()
            moved.wait()

        return kernel

    how = {"grid": (1,), "given": ANY, "out": ANY, "scratch": [pltpu.SemaphoreType.DMA] * 2, "tables": [(4,)]}
    assert worst("dma_order", body(0), assume=["0 <= prefetch0 < 3"], **how) is not Verdict.PROVED
    assert worst("dma_order", body(1), assume=["0 <= prefetch0 < 3"], **how) is Verdict.PROVED


def test_padding_that_is_kept_in_scratch_for_the_next_step_of_a_core() -> None:
    """The first of two steps keeps a block, the second stores it: two rows of the last block are padding."""

    def verdict(rows: int) -> Verdict:
        def body(x: Any, o: Any, kept: Any) -> None:
            @pl.when(pl.program_id(1) == 0)
            def _() -> None:
                kept[...] = x[...]

            @pl.when(pl.program_id(1) == 1)
            def _() -> None:
                o[...] = kept[...]

        def call(x: Any) -> Any:
            return pl.pallas_call(
                body,
                grid=(4, 2),
                in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, 0))],
                out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, 0)),
                out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
                scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
                compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")),
            )(x)

        (kernel,) = kernels_of(call, [jax.ShapeDtypeStruct((rows, 128), jnp.float32)])
        assert isinstance(kernel, Kernel)
        return min(f.verdict for f in judge(kernel, names=["undefined_values"]) if f.severity == "error")

    assert verdict(30) is not Verdict.PROVED
    assert verdict(32) is Verdict.PROVED


def test_a_choice_by_a_number_that_was_stored_takes_what_it_takes() -> None:
    """Whether a number is written and what it is are two questions, of one element."""

    def body(chosen: int) -> Callable[..., None]:
        def kernel(x: Any, o: Any, s: Any) -> None:
            s[0] = jnp.int32(chosen)
            o[...] = jnp.where(s[0] > 0, x[...], 0.0)

        return kernel

    how = {"x": (30, 128), "scratch": [pltpu.SMEM((1,), jnp.int32)]}
    (said,) = found("undefined_values", body(1), **how)
    assert said.verdict is Verdict.REFUTED
    assert said.counterexample == {"program": (3,), "element": (30, 0)}
    assert worst("undefined_values", body(0), **how) is Verdict.PROVED
    assert worst("undefined_values", body(1), x=(32, 128), scratch=how["scratch"]) is Verdict.PROVED


def test_what_each_place_of_scalar_memory_holds_is_what_is_stored_there() -> None:
    """One entry is overwritten, the other one is the row."""

    def body(stored: Sequence[int]) -> Callable[..., None]:
        def kernel(t: Any, x: Any, o: Any) -> None:
            row = t[0]
            o[...] = jnp.zeros_like(o)
            o[pl.ds(0, 1), :] = x[pl.ds(row, 1), :]
            t[0] = jnp.int32(stored[0])
            t[1] = jnp.int32(stored[1])

        return kernel

    how = {"given": WHOLE, "x": (8, 128), "tables": [(4,)], "assume": ["0 <= prefetch0 < 2"]}
    assert worst("body_in_bounds", body((1, 1)), **how) is Verdict.PROVED
    assert worst("body_in_bounds", body((1, 9)), **how) is Verdict.PROVED
    assert worst("body_in_bounds", body((9, 1)), **how) is not Verdict.PROVED


def at(row: Callable[[Any], Any]) -> Callable[..., None]:
    """A kernel of 4 programs that stores to one row of a block of 8."""

    def body(x: Any, o: Any) -> None:
        o[pl.ds(row(pl.program_id(0)), 1), :] = jnp.zeros((1, 128), jnp.float32)

    return body


def iota(n: int) -> Any:
    return lax.iota(jnp.int32, n)


@pytest.mark.parametrize(
    ("row", "last"),
    [
        # a slice that begins with the array, one whose start is moved to the last one possible
        (lambda i: lax.dynamic_slice(iota(8), (0,), (4,))[0], 0),
        (lambda i: lax.dynamic_slice(iota(8), (5,), (4,))[0], 4),
        (lambda i: lax.dynamic_slice(iota(5), (i,), (4,))[0], 1),
        (lambda i: lax.dynamic_slice(iota(6), (i,), (4,))[0], 2),
        # an element of what was reshaped, by number
        (lambda i: jnp.reshape(jnp.reshape(2 * iota(8), (2, 4)).T, (8,))[3], 10),
        # the parts of what was joined
        (lambda i: lax.dynamic_slice(jnp.concatenate([iota(1), 3 + iota(1), 1 + iota(2)]), (i,), (1,))[0], 3),
        (lambda i: lax.dynamic_slice(jnp.concatenate([iota(1), 1 + iota(1), 6 + iota(2)]), (i,), (1,))[0], 7),
    ],
)
def test_the_largest_row_that_the_programs_compute(row: Callable[[Any], Any], last: int) -> None:
    """Proved where it is moved to the last row of the block, refuted one row further."""
    how = {"given": WHOLE, "out": WHOLE, "x": (8, 128), "shape": (8, 128)}
    assert worst("body_in_bounds", at(lambda i: row(i) + (7 - last)), **how) is Verdict.PROVED
    assert worst("body_in_bounds", at(lambda i: row(i) + (8 - last)), **how) is Verdict.REFUTED
    assert worst("body_in_bounds", at(lambda i: last - row(i)), **how) is Verdict.PROVED


@pytest.mark.parametrize("fixed_first", [True, False])
@pytest.mark.parametrize(
    ("row", "said", "apart"),
    [
        (0, "8 <= prefetch0 < 12", True),
        (0, "7 <= prefetch0 < 12", False),
        (0, "0 <= prefetch0 < 9", False),
        (16, "0 <= prefetch0 < 9", True),
        (16, "0 <= prefetch0 < 10", False),
    ],
)
def test_two_copies_in_flight_whichever_starts_first(row: int, said: str, apart: bool, fixed_first: bool) -> None:
    """8 rows at a known one and 8 rows at one that a table says: apart only where the whole range of the table is."""

    def body(t: Any, x: Any, o: Any, one: Any, other: Any) -> None:
        fixed = pltpu.make_async_copy(x.at[pl.ds(0, 8)], o.at[pl.ds(row, 8)], one)
        moved = pltpu.make_async_copy(x.at[pl.ds(8, 8)], o.at[pl.ds(t[0], 8)], other)
        copies = (fixed, moved) if fixed_first else (moved, fixed)
        for copy in copies:
            copy.start()
        for copy in copies:
            copy.wait()

    how = {"grid": (1,), "given": ANY, "out": ANY, "scratch": [pltpu.SemaphoreType.DMA] * 2, "tables": [(4,)]}
    assert (worst("dma_order", body, assume=[said], **how) is Verdict.PROVED) is apart
