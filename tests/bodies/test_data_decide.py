"""Branches that data decide: both arms of one comparison are all there is, and of two comparisons they are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge

pytestmark = pytest.mark.slow

F = jnp.float32
ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))
Body = Callable[..., None]


def asked(body: Body, dtype: Any = F, scratch: Any = (), arguments: Any = None, **options: Any) -> dict[str, Verdict]:
    """The worst verdict of each question about a kernel of four programs, of blocks of rows."""
    options = {
        "grid": (4,),
        "in_specs": [ROWS],
        "out_specs": ROWS,
        "out_shape": jax.ShapeDtypeStruct((32, 128), F),
    } | options
    kernel = pl.pallas_call(body, scratch_shapes=scratch, **options)
    (call,) = kernels_of(kernel, arguments or (jax.ShapeDtypeStruct((32, 128), dtype),))
    assert isinstance(call, Kernel)
    found: dict[str, Verdict] = {}
    for finding in judge(call):
        if finding.severity == "error" and finding.asked:
            found[finding.question] = min(finding.verdict, found.get(finding.question, Verdict.PROVED))
    return found


def stored(body: Body, **options: Any) -> Verdict:
    return asked(body, **options)["outputs_stored"]


def either(first: Callable[[Any], Any], second: Callable[[Any], Any]) -> Body:
    """All of the output is stored where the first holds, and where the second does."""

    def body(x: Any, o: Any) -> None:
        for k, condition in enumerate((first, second)):

            @pl.when(condition(x))
            def _(k: int = k) -> None:
                o[...] = x[...].astype(F) * (k + 1)

    return body


COMPLEMENTS = {
    "not": (lambda x: x[0, 0] < x[0, 1], lambda x: ~(x[0, 0] < x[0, 1])),
    "not, sides exchanged": (lambda x: x[0, 0] < x[0, 1], lambda x: ~(x[0, 1] > x[0, 0])),
    "xor True": (lambda x: x[0, 0] < 0.5, lambda x: jnp.logical_xor(x[0, 0] < 0.5, True)),
    "equal": (lambda x: x[0, 0] == x[0, 1], lambda x: x[0, 1] != x[0, 0]),
    "of a maximum": (lambda x: jnp.max(x[...]) > 0, lambda x: ~(jnp.max(x[...]) > 0)),
    "any": (lambda x: jnp.any(x[...] > 0), lambda x: ~jnp.any(x[...] > 0)),
    "no number": (lambda x: jnp.isnan(x[0, 0]), lambda x: ~jnp.isnan(x[0, 0])),
    "with ids": (
        lambda x: (x[0, 0] < 0.5) & (pl.program_id(0) > 0),
        lambda x: ~(x[0, 0] < 0.5) | (pl.program_id(0) == 0),
    ),
    "by number": (lambda x: (x[0, 0] * 3).astype(jnp.int32) < 2, lambda x: (x[0, 0] * 3).astype(jnp.int32) >= 2),
}
OTHERS = {
    "twice the same": (lambda x: x[0, 0] < x[0, 1], lambda x: x[0, 0] < x[0, 1]),
    "where one is no number neither holds": (lambda x: x[0, 0] < x[0, 1], lambda x: x[0, 0] >= x[0, 1]),
    "sides exchanged is no opposite": (lambda x: x[0, 0] < x[0, 1], lambda x: ~(x[0, 1] < x[0, 0])),
    "another element": (lambda x: x[0, 0] > 0, lambda x: ~(x[0, 1] > 0)),
    "another constant": (lambda x: jnp.max(x[...]) > 0, lambda x: ~(jnp.max(x[...]) > 1)),
    "another axis": (lambda x: jnp.sum(x[...], axis=0)[0] > 0, lambda x: ~(jnp.sum(x[...], axis=1)[0] > 0)),
    "by another number": (lambda x: (x[0, 0] * 3).astype(jnp.int32) < 2, lambda x: (x[0, 0] * 3).astype(jnp.int32) > 2),
    "by another rounding": (lambda x: x[0, 0].astype(jnp.int32) < 2, lambda x: ~(x[0, 0].astype(jnp.int16) < 2)),
}


@pytest.mark.parametrize("name", COMPLEMENTS)
def test_what_a_comparison_and_its_opposite_store_is_all(name: str) -> None:
    assert stored(either(*COMPLEMENTS[name])) is Verdict.PROVED


@pytest.mark.parametrize("name", OTHERS)
def test_what_two_comparisons_store_is_not_all(name: str) -> None:
    assert stored(either(*OTHERS[name])) is not Verdict.PROVED


def test_numbers_that_are_loaded_twice_are_the_same_ones() -> None:
    less, more = (lambda x: x[0, 0] < x[0, 1]), (lambda x: x[0, 0] >= x[0, 1])
    assert stored(either(less, more), dtype=jnp.int32) is Verdict.PROVED
    assert stored(either(less, lambda x: x[0, 0] > x[0, 1]), dtype=jnp.int32) is not Verdict.PROVED


def test_what_is_stored_to_in_between_is_another_number() -> None:
    def of(wrong: bool) -> Body:
        def body(x: Any, o: Any, s: Any) -> None:
            s[...] = x[...]
            first = s[0, 0] < 0.5
            if wrong:
                s[...] = x[...] + 1
            pl.when(first)(lambda: o.__setitem__(..., x[...]))
            pl.when(~(s[0, 0] < 0.5) if wrong else ~first)(lambda: o.__setitem__(..., x[...]))

        return body

    scratch = [pltpu.VMEM((8, 128), F)]
    assert stored(of(False), scratch=scratch) is Verdict.PROVED
    assert stored(of(True), scratch=scratch) is not Verdict.PROVED


def test_an_input_that_is_stored_to_in_between_is_another_number() -> None:
    def body(x: Any, o: Any) -> None:
        pl.when(x[0, 0] < x[0, 1])(lambda: o.__setitem__(..., x[...]))
        x[0, 0] = x[0, 1]
        pl.when(~(x[0, 0] < x[0, 1]))(lambda: o.__setitem__(..., x[...]))

    assert stored(body) is not Verdict.PROVED


def row_by_row(wrong: bool, before: bool) -> Body:
    """Each row by one of two arms; wrong: the second one stores another row. before: the loop decides nothing."""

    def body(x: Any, o: Any) -> None:
        whole = x[0, 0] < x[0, 1]

        def step(j: Any, _: Any) -> Any:
            first = whole if before else x[j, 0] < x[j, 1]
            row, other = pl.ds(j, 1), pl.ds(7 - j if wrong else j, 1)
            pl.when(first)(lambda: o.__setitem__((row, slice(None)), x[row, :]))
            pl.when(~first)(lambda: o.__setitem__((other, slice(None)), x[row, :]))
            return 0

        lax.fori_loop(0, 8, step, 0)

    return body


def test_arms_in_a_loop() -> None:
    assert stored(row_by_row(False, False)) is Verdict.PROVED
    assert stored(row_by_row(True, False)) is not Verdict.PROVED
    # either all rows are stored forwards, or all of them backwards
    assert stored(row_by_row(True, True)) is Verdict.PROVED


def test_loops_in_arms() -> None:
    def of(wrong: bool) -> Body:
        def body(x: Any, o: Any) -> None:
            first = x[0, 0] < x[0, 1]

            def rows(count: int) -> None:
                def step(j: Any, _: Any) -> Any:
                    o[pl.ds(j, 1), :] = x[pl.ds(j, 1), :]
                    return 0

                lax.fori_loop(0, count, step, 0)

            pl.when(first)(lambda: rows(8))
            pl.when(~first)(lambda: rows(7 if wrong else 8))

        return body

    assert stored(of(False)) is Verdict.PROVED
    assert stored(of(True)) is not Verdict.PROVED


def test_arms_at_the_last_step_of_a_visit() -> None:
    def of(wrong: bool) -> Body:
        def body(x: Any, o: Any) -> None:
            k, first = pl.program_id(1), x[0, 0] < x[0, 1]
            pl.when((k == 3) & first)(lambda: o.__setitem__(..., x[...]))
            pl.when((k == (2 if wrong else 3)) & ~first)(lambda: o.__setitem__(..., x[...]))

        return body

    options = {
        "grid": (4, 4),
        "in_specs": [pl.BlockSpec((8, 128), lambda i, k: (i, k))],
        "out_specs": pl.BlockSpec((8, 128), lambda i, k: (i, 0)),
        "arguments": (jax.ShapeDtypeStruct((32, 512), F),),
    }
    assert stored(of(False), **options) is Verdict.PROVED
    # each program has its own data: the arms of two programs are no complements
    assert stored(of(True), **options) is not Verdict.PROVED


def test_both_arms_of_cond_and_all_of_switch() -> None:
    def of(wrong: bool) -> Body:
        def body(x: Any, o: Any) -> None:
            def whole() -> None:
                o[...] = x[...]

            def some() -> None:
                rows = pl.ds(0, 4 if wrong else 8)
                o[rows, :] = x[rows, :]

            @pl.when(pl.program_id(0) < 2)
            def _() -> None:
                lax.cond(x[0, 0] < x[0, 1], whole, some)

            @pl.when(pl.program_id(0) >= 2)
            def _() -> None:
                lax.switch((x[0, 0] * 3).astype(jnp.int32), [whole, some, whole])

        return body

    assert stored(of(False)) is Verdict.PROVED
    assert stored(of(True)) is not Verdict.PROVED


def test_scratch_that_one_of_two_arms_writes() -> None:
    def of(second: Callable[[Any], Any]) -> Body:
        def body(x: Any, o: Any, s: Any) -> None:
            pl.when(x[0, 0] < x[0, 1])(lambda: s.__setitem__(..., x[...]))
            pl.when(second(x))(lambda: s.__setitem__(..., x[...]))
            o[...] = s[...]

        return body

    scratch = [pltpu.VMEM((8, 128), F)]
    right = asked(of(lambda x: ~(x[0, 0] < x[0, 1])), scratch=scratch)
    assert right["initialised"] is Verdict.PROVED
    assert asked(of(lambda x: x[0, 1] <= x[0, 0]), scratch=scratch)["initialised"] is not Verdict.PROVED


def test_what_one_iteration_or_program_decides_another_does_not() -> None:
    def iterations(x: Any, o: Any, s: Any) -> None:
        o[...] = x[...]

        def step(j: Any, _: Any) -> Any:
            first = x[j, 0] < 0.5
            pl.when(first & (j == 0))(lambda: s.__setitem__(..., x[...]))
            pl.when(first & (j > 0))(lambda: o.__setitem__(..., s[...]))
            return 0

        lax.fori_loop(0, 8, step, 0)

    def programs(x: Any, o: Any, s: Any) -> None:
        i, first = pl.program_id(0), x[0, 0] < 0.5
        o[...] = x[...]
        pl.when(first & (i == 0))(lambda: s.__setitem__(..., x[...]))
        pl.when(first & (i > 0))(lambda: o.__setitem__(..., s[...]))

    scratch = [pltpu.VMEM((8, 128), F)]
    assert asked(iterations, scratch=scratch)["initialised"] is not Verdict.PROVED
    assert asked(programs, scratch=scratch)["initialised"] is not Verdict.PROVED


def test_a_copy_is_waited_for_under_the_condition_that_starts_it() -> None:
    def of(second: Callable[[Any], Any]) -> Body:
        def body(x: Any, h: Any, o: Any, buffer: Any, semaphore: Any) -> None:
            copy = pltpu.make_async_copy(h.at[pl.ds(0, 8)], buffer, semaphore)
            pl.when(x[0, 0] < 0.5)(copy.start)
            pl.when(second(x))(copy.wait)
            o[...] = x[...]

        return body

    shape = jax.ShapeDtypeStruct((32, 128), F)
    options = {
        "in_specs": [ROWS, pl.BlockSpec(memory_space=pl.ANY)],
        "arguments": (shape, shape),
        "scratch": [pltpu.VMEM((8, 128), F), pltpu.SemaphoreType.DMA(())],
    }
    assert asked(of(lambda x: x[0, 0] < 0.5), **options)["dma_order"] is Verdict.PROVED
    assert asked(of(lambda x: ~(x[0, 0] >= 0.5)), **options)["dma_order"] is not Verdict.PROVED


def test_padding_that_is_guarded_decides_nothing() -> None:
    def of(wrong: bool) -> Body:
        def body(x: Any, o: Any) -> None:
            first = x[0, 100] < x[0, 101]
            if not wrong:
                first &= pl.program_id(0) < 1
            pl.when(first)(lambda: o.__setitem__(..., jnp.zeros_like(o)))
            pl.when(~first)(lambda: o.__setitem__(..., jnp.ones_like(o)))

        return body

    column = pl.BlockSpec((8, 128), lambda i: (0, i))
    options = {"grid": (2,), "in_specs": [column], "out_specs": column, "out_shape": jax.ShapeDtypeStruct((8, 256), F)}
    arguments = (jax.ShapeDtypeStruct((8, 200), F),)
    assert set(asked(of(False), arguments=arguments, **options).values()) == {Verdict.PROVED}
    assert asked(of(True), arguments=arguments, **options)["undefined_values"] is Verdict.REFUTED
