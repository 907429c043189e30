"""What programs that may run at once share: arrays that they copy from and into, and what they find in scratch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge

pytestmark = pytest.mark.slow

ROWS = 64


def _asked(
    body: Callable[..., None],
    grid: tuple[int, ...] = (4,),
    semantics: Sequence[str] = ("parallel",),
    aliased: bool = False,
    rows: int = ROWS,
    scratch: int = 8,
) -> list[Finding]:
    """What is said of a kernel that moves an array f32[rows, 128] into another one by hand, through rows of scratch."""
    hbm = pl.BlockSpec(memory_space=pl.ANY)
    shape = jax.ShapeDtypeStruct((rows, 128), jnp.float32)
    fn = pl.pallas_call(
        body,
        grid=grid,
        in_specs=[hbm],
        out_specs=hbm,
        out_shape=shape,
        scratch_shapes=[pltpu.VMEM((scratch, 128), jnp.float32), pltpu.SemaphoreType.DMA],
        input_output_aliases={0: 0} if aliased else {},
        compiler_params=pltpu.CompilerParams(dimension_semantics=tuple(semantics)),
    )
    (call,) = kernels_of(fn, (shape,))
    assert isinstance(call, Kernel)
    return list(judge(call, names=["body_races"]))


def _copied(source: Callable[[Any], Any], target: Callable[[Any], Any]) -> Callable[..., None]:
    """A body that copies 8 rows in and out again. source, target: program -> first row."""

    def body(x: Any, o: Any, buf: Any, sem: Any) -> None:
        p = pl.program_id(0)
        pltpu.make_async_copy(x.at[pl.ds(source(p), 8)], buf, sem).start()
        pltpu.make_async_copy(x.at[pl.ds(source(p), 8)], buf, sem).wait()
        pltpu.make_async_copy(buf, o.at[pl.ds(target(p), 8)], sem).start()
        pltpu.make_async_copy(buf, o.at[pl.ds(target(p), 8)], sem).wait()

    return body


def _worst(found: list[Finding]) -> Finding:
    return min(found, key=lambda f: f.verdict)


@pytest.mark.parametrize(
    ("target", "pair"),
    [
        (lambda p: p * 4, ((0,), (1,))),
        (lambda p: p % 3 * 8, ((0,), (3,))),
        (lambda p: jnp.minimum(p, 2) * 8, ((2,), (3,))),
        (lambda p: (3 - p) * 7, ((0,), (1,))),
    ],
    ids=["overlap", "wraps", "clamped", "backwards"],
)
def test_programs_that_write_one_row_are_refuted_with_the_smallest_pair(target: Any, pair: Any) -> None:
    found = _worst(_asked(_copied(lambda p: p * 8, target)))
    assert found.verdict is Verdict.REFUTED
    assert found.counterexample is not None
    assert (found.counterexample["first"], found.counterexample["second"]) == pair
    assert "both write element" in found.reason
    assert found.line > 0


@pytest.mark.parametrize("target", [lambda p: p * 8, lambda p: (3 - p) * 8, lambda p: (p ^ 1) * 8, lambda p: p * 16])
def test_rows_of_their_own_are_proved(target: Any) -> None:
    assert _worst(_asked(_copied(lambda p: p * 8, target))).verdict is Verdict.PROVED


def test_one_that_reads_what_another_writes_is_refuted_only_where_they_share_a_buffer() -> None:
    shifted = _copied(lambda p: (p + 1) % 4 * 8, lambda p: p * 8)
    assert _worst(_asked(shifted)).verdict is Verdict.PROVED
    found = _worst(_asked(shifted, aliased=True))
    assert found.verdict is Verdict.REFUTED
    assert "one writes and one reads" in found.reason


def test_programs_one_after_the_other_may_share() -> None:
    assert _worst(_asked(_copied(lambda p: p * 8, lambda p: 0), semantics=("arbitrary",))).verdict is Verdict.PROVED
    both = _asked(_copied(lambda p: p * 8, lambda p: p * 8), (4, 2), ("parallel", "arbitrary"))
    assert _worst(both).verdict is Verdict.PROVED
    # here the programs of one row run at once, and all write the same rows
    found = _worst(_asked(_copied(lambda p: p * 8, lambda p: p * 8), (4, 2), ("arbitrary", "parallel")))
    assert found.verdict is Verdict.REFUTED
    assert (found.counterexample or {})["first"] == (0, 0)
    assert (found.counterexample or {})["second"] == (0, 1)


def test_it_is_asked_of_a_million_programs_as_of_four() -> None:
    many, rows = 10**6, 8 * 10**6
    body = _copied(lambda p: p * 8, lambda p: p * 8)
    assert _worst(_asked(body, (many,), rows=rows)).verdict is Verdict.PROVED
    body = _copied(lambda p: p * 8, lambda p: p % (many - 1) * 8)
    found = _worst(_asked(body, (many,), rows=rows))
    assert (found.counterexample or {})["second"] == (many - 1,)


def _summed(start: Callable[[Any], Any], by_rows: bool = False) -> Callable[..., None]:
    """A body that adds up in scratch, over the second grid dimension. start: when scratch is set to zero."""

    def body(x: Any, o: Any, acc: Any, sem: Any) -> None:
        @pl.when(start(pl.program_id(1)))
        def _() -> None:
            if by_rows:

                def row(r: Any, _: Any) -> Any:
                    acc[pl.ds(r, 1), :] = jnp.zeros((1, 128))
                    return 0

                jax.lax.fori_loop(0, 8, row, 0)
            else:
                acc[...] = jnp.zeros((8, 128))

        acc[...] += 1.0
        pltpu.make_async_copy(acc, o.at[pl.ds(pl.program_id(0) * 8, 8)], sem).start()
        pltpu.make_async_copy(acc, o.at[pl.ds(pl.program_id(0) * 8, 8)], sem).wait()

    return body


@pytest.mark.parametrize("by_rows", [False, True])
def test_scratch_that_starts_anew_in_every_parallel_program_is_its_own(by_rows: bool) -> None:
    found = _asked(_summed(lambda k: k == 0, by_rows), (4, 3), ("parallel", "arbitrary"))
    assert _worst(found).verdict is Verdict.PROVED


def test_scratch_that_starts_anew_too_late_holds_what_another_program_left() -> None:
    found = _worst(_asked(_summed(lambda k: k == 1), (4, 3), ("parallel", "arbitrary")))
    assert found.verdict is Verdict.REFUTED
    assert "uses what it finds in scratch[0]" in found.reason


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_the_one_row_of_scratch_that_does_not_start_anew_is_found(rows: int) -> None:
    def summed(begun: int) -> Callable[..., None]:
        def body(x: Any, o: Any, acc: Any, sem: Any) -> None:
            @pl.when(pl.program_id(1) == 0)
            def _() -> None:
                for row in range(begun):
                    acc[row, :] = jnp.zeros(128)

            acc[...] += 1.0
            copy = pltpu.make_async_copy(acc, o.at[pl.ds(pl.program_id(0) * 8, rows)], sem)
            copy.start()
            copy.wait()

        return body

    how: Any = {"grid": (4, 3), "semantics": ("parallel", "arbitrary"), "scratch": rows}
    assert _worst(_asked(summed(rows), **how)).verdict is Verdict.PROVED
    found = _worst(_asked(summed(rows - 1), **how))
    assert found.verdict is Verdict.REFUTED
    assert (found.counterexample or {})["element"][0] == rows - 1


@pytest.mark.parametrize(("after", "verdict"), [(False, Verdict.REFUTED), (True, Verdict.PROVED)])
def test_a_copy_out_of_scratch_takes_what_another_program_left(after: bool, verdict: Verdict) -> None:
    def body(x: Any, o: Any, acc: Any, sem: Any) -> None:
        if after:
            acc[...] = jnp.zeros((8, 128))
        copy = pltpu.make_async_copy(acc, o.at[pl.ds(pl.program_id(0) * 8, 8)], sem)
        copy.start()
        copy.wait()
        acc[...] = jnp.ones((8, 128))

    assert _worst(_asked(body)).verdict is verdict


def test_what_is_read_and_then_not_chosen_is_never_refuted() -> None:
    def body(x: Any, o: Any, acc: Any, sem: Any) -> None:
        acc[...] = jnp.where(pl.program_id(1) == 0, 0.0, acc[...]) + 1.0
        pltpu.make_async_copy(acc, o.at[pl.ds(pl.program_id(0) * 8, 8)], sem).start()
        pltpu.make_async_copy(acc, o.at[pl.ds(pl.program_id(0) * 8, 8)], sem).wait()

    assert _worst(_asked(body, (4, 3), ("parallel", "arbitrary"))).verdict is not Verdict.REFUTED


@pytest.mark.parametrize(("first", "verdict"), [(0, Verdict.PROVED), (1, Verdict.UNKNOWN)])
def test_scratch_that_the_first_turn_of_a_loop_starts_is_its_own(first: int, verdict: Verdict) -> None:
    """Each program sums the rows that its loop brings; what a turn adds to, the turn before has left."""

    def body(x: Any, o: Any, buf: Any, sem: Any) -> None:
        def turn(k: Any, nothing: Any) -> Any:
            jax.lax.cond(k == first, lambda: _set(jnp.zeros((8, 128))), lambda: _set(buf[...] + 1.0))
            return nothing

        def _set(value: Any) -> None:
            buf[...] = value

        jax.lax.fori_loop(0, 4, turn, 0)
        copy = pltpu.make_async_copy(buf, o.at[pl.ds(pl.program_id(0) * 8, 8)], sem)
        copy.start()
        copy.wait()

    assert _worst(_asked(body)).verdict is verdict


def test_one_element_has_one_coordinate() -> None:
    """The element in the array, and not beside it where it lies in what either program copies."""
    found = next(f for f in _asked(_copied(lambda p: 8 * p, lambda p: 8)) if f.verdict is Verdict.REFUTED)
    assert found.counterexample == {"first": (0,), "second": (1,), "element": (8, 0)}
    assert "element (8, 0) of outputs" in found.reason


@pytest.mark.parametrize(("late", "verdict"), [(0, Verdict.PROVED), (1, Verdict.REFUTED)])
def test_a_triangle_starts_anew_where_its_row_begins(late: int, verdict: Verdict) -> None:
    """Row i sums from column i on, and zeroes there, or one column late: the last row never, and has what is left."""

    def body(x: Any, o: Any, acc: Any) -> None:
        i, k = pl.program_id(0), pl.program_id(1)

        @pl.when(k == i + late)
        def _() -> None:
            acc[...] = jnp.zeros_like(acc)

        @pl.when(k >= i)
        def _() -> None:
            acc[...] += x[...]

        @pl.when(k == 3)
        def _() -> None:
            o[...] = acc[...]

    fn = pl.pallas_call(
        body,
        grid=(4, 4),
        in_specs=[pl.BlockSpec((8, 128), lambda i, k: (0, k))],
        out_specs=pl.BlockSpec((8, 128), lambda i, k: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")),
    )
    (call,) = kernels_of(fn, (jax.ShapeDtypeStruct((8, 512), jnp.float32),))
    assert isinstance(call, Kernel)
    assert _worst(list(judge(call, names=["body_races"]))).verdict is verdict
