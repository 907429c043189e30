"""Numbers that go round once in a loop of which the running program says how often it runs, as ids of a grid do."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof as lp
from layoutproof.bodies.recurrence import once_round
from layoutproof.bodies.runs import ProgramWalk
from layoutproof.core.numbers import INTS
from layoutproof.core.term import ONE, ZERO, Term, value_of
from layoutproof.pallas.from_jax.trace import kernels_of

pytestmark = pytest.mark.slow

TABLE = jax.ShapeDtypeStruct((2,), jnp.int32)
ONES = jax.ShapeDtypeStruct((1,), jnp.int32)
MOST = 6

WAYS: dict[str, Any] = {
    "as an id": (0, lambda x, n: jnp.where(x + 1 == n, 0, x + 1)),
    "one too late": (0, lambda x, n: jnp.where(x + 1 == n + 1, 0, x + 1)),
    "one too early": (0, lambda x, n: jnp.where(x + 1 == n - 1, 0, x + 1)),
    "to one": (0, lambda x, n: jnp.where(x + 1 == n, 1, x + 1)),
    "from one": (1, lambda x, n: jnp.where(x + 1 == n, 0, x + 1)),
    "by two": (0, lambda x, n: jnp.where(x + 2 == n, 0, x + 2)),
    "stays": (0, lambda x, n: jnp.where(x + 1 == n, x, x + 1)),
}


def ran(way: Any, n: int) -> tuple[list[int], int]:
    """What a number is in each iteration, and after the last one."""
    x, step = way
    seen = []
    for _ in range(n):
        seen.append(int(x))
        x = step(x, n)
    return seen, int(x)


def kernel(way: Any, inside: bool) -> Any:
    """Reads the one entry of a table at what must be 0: how far a number is from the counter, or what is left of it."""
    first, step = way

    def called(t: jax.Array, one: jax.Array) -> jax.Array:
        def body(t_ref: Any, one_ref: Any, o_ref: Any) -> None:
            n = t_ref[0]

            def turn(i: Any, carry: Any) -> Any:
                x, total = carry
                return step(x, n), total + (one_ref[x - i] if inside else 0)

            x, total = jax.lax.fori_loop(0, n, turn, (jnp.int32(first), jnp.int32(0)))
            o_ref[0] = total + (0 if inside else one_ref[x])

        return pl.pallas_call(
            body,
            grid_spec=pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=2, grid=(), out_specs=pl.BlockSpec(memory_space=pltpu.SMEM)
            ),
            out_shape=jax.ShapeDtypeStruct((1,), jnp.int32),
        )(t, one)

    return called


@pytest.mark.parametrize("inside", [True, False], ids=["in an iteration", "after the last one"])
@pytest.mark.parametrize("name", WAYS)
def test_what_goes_round_once_is_the_counter_and_0_at_last(name: str, inside: bool) -> None:
    runs = [ran(WAYS[name], n) for n in range(MOST + 1)]
    holds = all(seen == list(range(len(seen))) for seen, _ in runs) if inside else all(x == 0 for _, x in runs)
    found = lp.kernels(
        kernel(WAYS[name], inside),
        TABLE,
        ONES,
        assume=[f"0 <= prefetch0 <= {MOST}"],
        properties=["body_in_bounds"],
    )
    if found.exit_code == 0:
        assert holds
    assert found.exit_code == 0 or name != "as an id"


@pytest.mark.fast
def test_what_is_said_to_go_round_does_so_for_all_numbers_of_iterations() -> None:
    own, n = Term("name", "x"), Term("name", "n")
    for reached in (-1, 0, 1, 2):
        for ahead in (0, 1, 2):
            for again in (0, 1):
                for first in (0, 1):
                    after = Term("+", own, Term("int", ahead))
                    met = Term("==", Term("+", own, Term("int", reached)), n)
                    step = Term("select", met, Term("int", again), after)
                    said = once_round({"x": Term("int", first)}, {"x": step}, {}, n)

                    def turn(x: int, n: int, step: Term = step) -> int:
                        return int(value_of(step, {"x": x, "n": n}, INTS))

                    for many in range(6) if said else ():
                        x = first
                        for k in range(many):
                            assert x == k
                            x = turn(x, many)
                        assert x == 0
                    assert bool(said) == ((reached, ahead, again, first) == (1, 1, 0, 0))
    other = Term("select", Term("==", Term("+", own, ONE), Term("name", "m")), ZERO, Term("+", own, ONE))
    assert not once_round({"x": ZERO}, {"x": other}, {}, n)
    assert once_round({"x": ZERO}, {"x": other}, {"m": n}, n)


def test_an_end_that_the_loop_changes_does_not_say_how_often_it_runs() -> None:
    """The end is far away at first, and comes nearer: from 6 on by what a table says."""

    def called(t: jax.Array, one: jax.Array) -> jax.Array:
        def body(t_ref: Any, one_ref: Any, o_ref: Any) -> None:
            def turn(carry: Any) -> Any:
                i, n = carry
                return i + 1, jnp.where(t_ref[0] > i, n - 1, n)

            i, n = jax.lax.while_loop(lambda carry: carry[0] < carry[1], turn, (jnp.int32(0), jnp.int32(MOST)))
            o_ref[0] = one_ref[i - n]

        return pl.pallas_call(
            body,
            grid_spec=pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=2, grid=(), out_specs=pl.BlockSpec(memory_space=pltpu.SMEM)
            ),
            out_shape=jax.ShapeDtypeStruct((1,), jnp.int32),
        )(t, one)

    # with 3 the loop ends at 3 of 3; with 4 at 4 of 3
    found = lp.kernels(called, TABLE, ONES, assume=["0 <= prefetch0 <= 6"], properties=["body_in_bounds"])
    assert found.exit_code == 3


def test_a_run_names_what_it_does_not_know() -> None:
    """What a loop hands on of what nobody knows is as short after many turns as after one."""

    def called(t: jax.Array) -> jax.Array:
        def body(t_ref: Any, o_ref: Any, held: Any) -> None:
            def turn(i: Any, x: Any) -> Any:
                return jnp.where(held[i] % 8 < x % 8, x + held[i], jnp.minimum(x, held[i] + 1) % 64)

            o_ref[0] = jax.lax.fori_loop(0, 24, turn, jnp.int32(0))

        return pl.pallas_call(
            body,
            grid_spec=pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=1,
                grid=(),
                out_specs=pl.BlockSpec(memory_space=pltpu.SMEM),
                scratch_shapes=[pltpu.SMEM((24,), jnp.int32)],
            ),
            out_shape=jax.ShapeDtypeStruct((1,), jnp.int32),
        )(t)

    (found,) = kernels_of(called, (TABLE,))
    seen: list[int] = []

    def look(run: Any, effect: Any, on: Any, turns: Any) -> None:
        names = [one.name for one in found.body.handed if one.name in on.names]  # type: ignore[union-attr]
        seen.extend(len(repr(on.names[name])) for name in names)

    ProgramWalk(found, found.body, (), lambda table, at: 0).first(look)  # type: ignore[union-attr, arg-type]
    assert len(seen) >= 24
    assert max(seen) < 200
