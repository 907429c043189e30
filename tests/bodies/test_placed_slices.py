"""Copies to places and of lengths that tables say, and programs that tables count: what is offered of such tables.

Each kernel is right for the tables that its advice describes, and has twins that are wrong for some of these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof as lp
from layoutproof.core.errors import LayoutError
from layoutproof.core.result import Verdict
from layoutproof.pallas.judge import advice
from tests.said import stretch

pytestmark = pytest.mark.slow

F = jnp.float32
I32 = jnp.int32


def with_copies(body: Callable[..., None], tables: int, programs: int, rows: int) -> Callable[..., Any]:
    """A kernel that copies by hand into a cache of some rows, which is its last input and its output."""
    any_ = pl.BlockSpec(memory_space=pl.ANY)
    grid = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=tables, grid=(programs,), in_specs=[any_, any_], out_specs=any_,
        scratch_shapes=[pltpu.SemaphoreType.DMA],
    )  # fmt: skip
    out = jax.ShapeDtypeStruct((rows, 128), F)
    return pl.pallas_call(body, grid_spec=grid, out_shape=out, input_output_aliases={tables + 1: 0})


def placed(more: int = 0, apart: bool = True) -> Callable[..., Any]:
    """Copies two slices of `new` a program to places of a cache, those that a table lists.

    more: rows by which the second slice is longer than the table says.  apart: whether one waits for the other before
    it starts, so that they may have rows in common.
    """

    def body(starts: Any, lengths: Any, new: Any, cache: Any, out: Any, sem: Any) -> None:
        copies = []
        for k in range(2):
            at = 2 * pl.program_id(0) + k
            length = lengths[at] + more * k
            there = out.at[pl.ds(starts[at], length)]
            copies.append(pltpu.make_async_copy(new.at[at, pl.ds(0, length)], there, sem))
            copies[-1].start()
            if not apart:
                copies[-1].wait()
        for copy in copies if apart else ():
            copy.wait()

    return with_copies(body, 2, 2, 64)


def in_a_cache(function: Callable[..., Any], assume: tuple[str, ...] = (), batch: tuple[int, ...] = ()) -> lp.Kernels:
    list_ = jax.ShapeDtypeStruct((4,), I32)
    new, cache = jax.ShapeDtypeStruct((*batch, 4, 16, 128), F), jax.ShapeDtypeStruct((*batch, 64, 128), F)
    if batch:
        function = jax.vmap(function, in_axes=(None, None, 0, 0))
    return lp.kernels(function, list_, list_, new, cache, assume=assume)


SLICES = "prefetch0 is slices(lengths=prefetch1, of=64)"
DISJOINT = "prefetch0 is disjoint_slices(lengths=prefetch1, of=64)"


def advised(found: lp.Kernels) -> str:
    (assume, where) = advice(found.calls[0].findings)
    assert not where
    return assume


def test_slices_that_are_in_flight_together_are_advised_to_be_apart() -> None:
    open_ = in_a_cache(placed())
    assert open_.exit_code == 3
    assert DISJOINT in advised(open_)
    assert in_a_cache(placed(), (advised(open_),)).exit_code == 0


def test_slices_that_wait_for_each_other_need_not_be_apart() -> None:
    open_ = in_a_cache(placed(apart=False))
    assert SLICES in advised(open_)
    assert DISJOINT not in advised(open_)
    assert in_a_cache(placed(apart=False), (advised(open_),)).exit_code == 0


def test_slices_longer_than_the_table_says_may_meet() -> None:
    found = in_a_cache(placed(1), (DISJOINT, "0 <= prefetch1 <= 8"))
    assert found.exit_code != 0
    assert {f.verdict for f in found.findings if f.question == "dma_order"} != {Verdict.PROVED}
    assert {f.verdict for f in found.findings if f.question == "body_in_bounds"} != {Verdict.PROVED}


def test_slices_that_are_only_in_bounds_may_meet() -> None:
    found = in_a_cache(placed(), (SLICES, "0 <= prefetch1 <= 8"))
    assert {f.verdict for f in found.findings if f.question == "dma_order"} != {Verdict.PROVED}
    assert {f.verdict for f in found.findings if f.question == "body_in_bounds"} == {Verdict.PROVED}


def of_rows() -> Callable[..., Any]:
    """The same from a table whose rows say where slices of the cache and of `new` start, and how long they are."""

    def body(slices: Any, new: Any, cache: Any, out: Any, sem: Any) -> None:
        copies = []
        for k in range(2):
            at = 2 * pl.program_id(0) + k
            here = new.at[pl.ds(slices[1, at], slices[2, at])]
            there = out.at[pl.ds(slices[0, at], slices[2, at])]
            copies.append(pltpu.make_async_copy(here, there, sem))
            copies[-1].start()
        for copy in copies:
            copy.wait()

    return with_copies(body, 1, 4, 512)


def test_rows_of_one_table_are_told_apart() -> None:
    """One bound of all rows would forbid what starts behind row 64 of a cache of 512."""
    args = jax.ShapeDtypeStruct((3, 8), I32), jax.ShapeDtypeStruct((64, 128), F), jax.ShapeDtypeStruct((512, 128), F)
    rows = "prefetch0 is slice_rows(starts=1, lengths=2, of=64)"
    apart = "prefetch0 is disjoint_slice_rows(starts=0, lengths=2, of=512)"
    assert advised(lp.kernels(of_rows(), *args)) == f"{rows}; {apart}"
    assert lp.kernels(of_rows(), *args, assume=[rows, apart]).exit_code == 0
    other = apart.replace("starts=0", "starts=1").replace("512", "64")
    assert lp.kernels(of_rows(), *args, assume=[rows, other]).exit_code == 3
    with pytest.raises(LayoutError, match=stretch("kernel.assumption_place", k=0, extent=3)):
        lp.kernels(of_rows(), *args, assume=[rows.replace("starts=1", "starts=3")])


def counted(last: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Sums as many blocks of a row as a table counts, of a grid that is known at run time; `last` stores the sum."""

    def body(counts: Any, x: Any, o: Any, total: Any) -> None:
        step, count = pl.program_id(1), counts[pl.program_id(0)]

        @pl.when(step == 0)
        def _() -> None:
            total[...] = jnp.zeros_like(total)

        @pl.when(step < count)
        def _() -> None:
            total[...] += x[...]

        @pl.when(last(step, count))
        def _() -> None:
            o[...] = total[...]

    def call(counts: Any, steps: Any, x: Any) -> Any:
        grid = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=(4, steps), in_specs=[pl.BlockSpec((8, 128), lambda i, j, n: (i, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, j, n: (i, 0)), scratch_shapes=[pltpu.VMEM((8, 128), F)],
        )  # fmt: skip
        return pl.pallas_call(body, grid_spec=grid, out_shape=jax.ShapeDtypeStruct((32, 128), F))(counts, x)

    return call


def of_counts(function: Callable[..., Any], assume: tuple[str, ...] = ()) -> lp.Kernels:
    counts, steps = jax.ShapeDtypeStruct((4,), I32), jax.ShapeDtypeStruct((), I32)
    return lp.kernels(function, counts, steps, jax.ShapeDtypeStruct((32, 128), F), assume=assume)


def test_a_table_that_counts_programs_is_bounded_by_their_number() -> None:
    right = counted(lambda step, count: step == count - 1)
    open_ = of_counts(right)
    assert open_.exit_code == 3
    assert advised(open_) == "1 <= prefetch0 <= grid1"
    assert of_counts(right, (advised(open_),)).exit_code == 0
    # where a count is 0, nothing is stored
    assert of_counts(right, ("0 <= prefetch0 <= grid1",)).exit_code != 0


def test_a_sum_that_no_program_stores_is_not_proved() -> None:
    for last in (lambda step, count: step == count, lambda step, count: step == count - 2):
        found = of_counts(counted(last), ("1 <= prefetch0 <= grid1",))
        assert {f.verdict for f in found.findings if f.question == "outputs_stored"} != {Verdict.PROVED}


@pytest.mark.parametrize("options", [{}, {"more": 1}, {"apart": False}], ids=str)
@pytest.mark.parametrize("slices", ["disjoint_slices", "slices"])
def test_a_batch_is_judged_as_one(options: dict[str, Any], slices: str) -> None:
    assume = (f"prefetch0 is {slices}(lengths=prefetch1, of=64)", "0 <= prefetch1 < 17")
    worst: list[dict[str, Verdict]] = [{}, {}]
    for found, batch in zip(worst, ((), (3,)), strict=True):
        for f in in_a_cache(placed(**options), assume, batch).findings:
            if f.severity == "error":
                found[f.question] = min(f.verdict, found.get(f.question, f.verdict))
    # programs of a batch are asked whether they meet, too
    assert worst[0] == {question: worst[1][question] for question in worst[0]}
