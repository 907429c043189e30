"""Accumulators in scratch: what they add to is of their own block, or the program that adds to another's is shown."""

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

pytestmark = pytest.mark.slow

F = jnp.float32


def found(function: Any, *shapes: tuple[int, ...]) -> list[Finding]:
    given = [jax.ShapeDtypeStruct(shape, F) for shape in shapes]
    return [f for f in lp.kernels(function, *given).findings if f.question == "stale_read"]


def product(zeroed: str, stored: int = 3) -> Any:
    """A product of matrices over a grid of 2 x 2 x 4, its accumulator zeroed at some programs."""

    def body(x_ref: Any, y_ref: Any, o_ref: Any, acc: Any) -> None:
        i, j, k = (pl.program_id(d) for d in range(3))
        first = {"block": k == 0, "row": (j == 0) & (k == 0), "once": (i == 0) & (j == 0) & (k == 0)}

        @pl.when(first[zeroed])
        def _() -> None:
            acc[...] = jnp.zeros_like(acc)

        acc[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=F)

        @pl.when(k == stored)
        def _() -> None:
            o_ref[...] = acc[...]

    def block(index: Any) -> pl.BlockSpec:
        return pl.BlockSpec((128, 128), index)

    return pl.pallas_call(
        body,
        grid=(2, 2, 4),
        in_specs=[block(lambda i, j, k: (i, k)), block(lambda i, j, k: (k, j))],
        out_specs=block(lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((256, 256), F),
        scratch_shapes=[pltpu.VMEM((128, 128), F)],
    )


@pytest.mark.parametrize("zeroed", ["row", "once"])
def test_an_accumulator_that_is_not_zeroed_for_each_block_is_warned_of(zeroed: str) -> None:
    (one,) = found(product(zeroed), (256, 512), (512, 256))
    assert (one.verdict, one.severity, one.subject) == (Verdict.REFUTED, "warning", "scratch[0]")
    assert one.counterexample == {"program": (0, 1, 0), "element": (0, 0)}
    assert "where each block begins, pl.program_id(2) == 0" in one.hint
    assert one.file.endswith("test_stale_read.py")


def test_a_warning_decides_nothing_but_under_strict() -> None:
    given = [jax.ShapeDtypeStruct(shape, F) for shape in ((256, 512), (512, 256))]
    assert lp.kernels(product("once"), *given).exit_code == 0


def test_an_accumulator_that_is_zeroed_where_each_block_begins_is_not() -> None:
    assert found(product("block"), (256, 512), (512, 256)) == []


def test_a_state_over_time_has_a_block_for_each_program_and_is_carried_on_purpose() -> None:
    def body(x_ref: Any, o_ref: Any, state: Any) -> None:
        @pl.when(pl.program_id(1) == 0)
        def _() -> None:
            state[...] = jnp.zeros_like(state)

        state[...] = state[...] * 0.5 + x_ref[...]
        o_ref[...] = state[...]

    rows = pl.BlockSpec((8, 128), lambda b, t: (t, b))
    call = pl.pallas_call(
        body,
        grid=(2, 4),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct((32, 256), F),
        scratch_shapes=[pltpu.VMEM((8, 128), F)],
    )
    assert found(call, (32, 256)) == []


def test_a_part_that_is_not_zeroed_is_found_where_it_is() -> None:
    def body(x_ref: Any, o_ref: Any, acc: Any) -> None:
        k = pl.program_id(1)

        @pl.when(k == 0)
        def _() -> None:
            acc[0:7] = jnp.zeros((7, 128), F)

        @pl.when((pl.program_id(0) == 0) & (k == 0))
        def _() -> None:
            acc[7:8] = jnp.zeros((1, 128), F)

        acc[...] = acc[...] + x_ref[...]
        o_ref[...] = acc[...]

    call = pl.pallas_call(
        body,
        grid=(2, 4),
        in_specs=[pl.BlockSpec((8, 128), lambda i, k: (k, i))],
        out_specs=pl.BlockSpec((8, 128), lambda i, k: (0, i)),
        out_shape=jax.ShapeDtypeStruct((8, 256), F),
        scratch_shapes=[pltpu.VMEM((8, 128), F)],
    )
    (one,) = found(call, (32, 256))
    assert one.counterexample == {"program": (1, 0), "element": (7, 0)}


def carried(update: Any) -> Any:
    """Blocks of 8 rows, each added up over 4 steps in scratch that is zeroed in the first program of all."""

    def body(x_ref: Any, o_ref: Any, state: Any) -> None:
        first = (pl.program_id(0) == 0) & (pl.program_id(1) == 0)

        @pl.when(first)
        def _() -> None:
            state[...] = jnp.zeros_like(state)

        state[...] = update(state[...], x_ref[...], pl.program_id(1) == 0, first)

        @pl.when(pl.program_id(1) == 3)
        def _() -> None:
            o_ref[...] = state[...]

    return pl.pallas_call(
        body,
        grid=(4, 4),
        in_specs=[pl.BlockSpec((8, 128), lambda t, k: (t, k))],
        out_specs=pl.BlockSpec((8, 128), lambda t, k: (t, 0)),
        out_shape=jax.ShapeDtypeStruct((32, 128), F),
        scratch_shapes=[pltpu.VMEM((8, 128), F)],
    )


@pytest.mark.parametrize(
    ("update", "warned"),
    [
        (lambda old, x, begins, first: old * 0.5 + x, False),
        (lambda old, x, begins, first: old * jax.nn.sigmoid(x) + x, False),
        (lambda old, x, begins, first: jnp.where(begins, 0.0, old) + x, False),
        (lambda old, x, begins, first: jnp.where(first, 0.0, old) + x, True),
        (lambda old, x, begins, first: jnp.maximum(old, x), True),
    ],
    ids=["decays", "gated", "begins by a choice", "chosen once", "greatest"],
)
def test_a_state_that_decays_is_carried_on_purpose_also_along_an_axis_inside_of_a_block(
    update: Any, warned: bool
) -> None:
    assert [f.verdict for f in found(carried(update), (32, 512))] == [Verdict.REFUTED] * warned


@pytest.mark.parametrize("dynamic", [False, True], ids=["8 programs", "as many as a number says"])
@pytest.mark.parametrize(("zeroed", "warned"), [("group", False), ("once", True)])
def test_a_sum_over_groups_that_a_table_says_begins_with_each_group(zeroed: str, warned: bool, dynamic: bool) -> None:
    def sums(many: jax.Array, t: jax.Array, x: jax.Array) -> jax.Array:
        def body(t_ref: Any, x_ref: Any, o_ref: Any, acc: Any) -> None:
            i, last = pl.program_id(0), pl.num_programs(0) - 1
            begins = (i == 0) | (t_ref[i] != t_ref[jnp.maximum(i - 1, 0)])

            @pl.when(begins if zeroed == "group" else i == 0)
            def _() -> None:
                acc[...] = jnp.zeros_like(acc)

            acc[...] += x_ref[...]

            @pl.when((i == last) | (t_ref[i] != t_ref[jnp.minimum(i + 1, last)]))
            def _() -> None:
                o_ref[...] = acc[...]

        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(many if dynamic else 8,),
            in_specs=[pl.BlockSpec((8, 128), lambda i, t: (i, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, t: (t[i], 0)),
            scratch_shapes=[pltpu.VMEM((8, 128), F)],
        )
        return pl.pallas_call(body, grid_spec=spec, out_shape=jax.ShapeDtypeStruct((32, 128), F))(t, x)

    given = [jax.ShapeDtypeStruct(dims, dtype) for dims, dtype in (((), "int32"), ((8,), "int32"), ((64, 128), F))]
    several = "prefetch0[:grid0] is onto" if dynamic else "prefetch0 is onto"
    where = ["grid0 <= 8"] if dynamic else []
    asked = lp.kernels(sums, *given, assume=["prefetch0 is sorted_ids(below=4)", several], where=where)
    # all of it is written and stored, by the right one and by the wrong one
    assert asked.exit_code == 0
    stale = [f for f in asked.findings if f.question == "stale_read"]
    assert [f.verdict for f in stale] == ([Verdict.REFUTED] if warned else [])
    assert all(f.counterexample is not None and f.counterexample["reads"] for f in stale)
