"""What loops hand on and what stores keep, held against kernels that are right and against their wrong twins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from layoutproof.bodies.runs import Look, ProgramWalk
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import advice, judge
from tests.pallas.wheel_ops import ops

pytestmark = pytest.mark.slow


def asked(function: Callable[..., Any], *args: Any, assume: Sequence[str] = ()) -> list[Finding]:
    found: list[Finding] = []
    for call in kernels_of(function, args, assume=assume):
        assert isinstance(call, Kernel)
        found += judge(call, names=["body_in_bounds"])
    return found


def worst(found: Sequence[Finding]) -> Verdict:
    return min(f.verdict for f in found)


def with_tables(body: Callable[..., None], tables: int, rows: int = 8) -> Callable[..., Any]:
    """A kernel of 4 programs with tables in scalar memory and one block of 8 rows."""
    grid = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=tables,
        grid=(4,),
        in_specs=[pl.BlockSpec((rows, 128), lambda i, *_: (0, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, *_: (i, 0)),
    )
    return pl.pallas_call(body, grid_spec=grid, out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32))


X = jax.ShapeDtypeStruct((8, 128), jnp.float32)
T = jax.ShapeDtypeStruct((8,), jnp.int32)


def skipping(step: int, turns: int = 7) -> Callable[..., None]:
    """A loop that steps over empty entries: what it carries moves by 0 or `step`."""

    def body(t: Any, x: Any, o: Any) -> None:
        at = jax.lax.fori_loop(0, turns, lambda _, b: jnp.where(t[b] == 0, b + step, b), 0)
        o[...] = jnp.zeros_like(o)
        o[pl.ds(0, 1), :] = x[pl.ds(at, 1), :]

    return body


def test_a_number_that_moves_by_at_most_a_step_is_bounded_by_the_iterations() -> None:
    assert worst(asked(with_tables(skipping(1), 1), T, X)) is Verdict.PROVED
    assert worst(asked(with_tables(skipping(2, turns=3), 1), T, X)) is Verdict.PROVED
    assert worst(asked(with_tables(skipping(2, turns=4), 1), T, X)) is Verdict.UNKNOWN
    wrong = asked(with_tables(skipping(2), 1), T, X)
    assert worst(wrong) is Verdict.UNKNOWN
    assert any("a number that a loop hands on" in f.reason for f in wrong)


def going_on(last: int, lines: int) -> Callable[..., None]:
    """A loop that reads a row and goes on to the next one, up to the last: no term says that it stops there."""

    def body(x: Any, o: Any) -> None:
        o[...] = jnp.zeros_like(o)

        def turn(_: Any, at: Any) -> Any:
            o[pl.ds(0, 1), :] = x[pl.ds(at, 1), :]
            if lines > 1:
                o[pl.ds(1, 1), :] = x[pl.ds(at, 1), :] + 1
            if lines > 2:
                o[pl.ds(2, 1), :] = x[pl.ds(at, 1), :] + 2
            return jnp.where(at * at >= last * last, at, at + 1)

        jax.lax.fori_loop(0, 20, turn, jnp.int32(0))

    return body


def test_runs_in_which_nothing_goes_wrong_are_made_once_for_all_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[ProgramWalk] = []
    first = ProgramWalk.first

    def counted(run: ProgramWalk, look: Look) -> Any:
        runs.append(run)
        return first(run, look)

    monkeypatch.setattr(ProgramWalk, "first", counted)
    made = []
    for lines in (1, 3):
        runs.clear()
        found = asked(with_tables(going_on(7, lines), 0), X)
        assert [f.verdict for f in found].count(Verdict.UNKNOWN) == lines
        made.append(len(runs))
    assert made[0] == made[1] > 0
    wrong = [f for f in asked(with_tables(going_on(8, 3), 0), X) if f.verdict is Verdict.REFUTED]
    assert [(f.counterexample, f.decided_by) for f in wrong] == [({"program": (0,), "iteration": (8,)}, "run")] * 3


def test_what_stores_keep_holds_if_the_call_begins_with_it() -> None:
    right = with_tables(lambda t, x, o: flipping(t, x, o, 1), 1, rows=8)
    assert worst(asked(right, T, X, assume=["0 <= prefetch0 < 2"])) is Verdict.PROVED
    nothing_said = asked(right, T, X)
    assert worst(nothing_said) is Verdict.UNKNOWN
    assert any("0 <= prefetch0 <" in need for f in nothing_said for need in f.needs)
    wrong = with_tables(lambda t, x, o: flipping(t, x, o, 8), 1, rows=8)
    assert worst(asked(wrong, T, X, assume=["0 <= prefetch0 < 2"])) is Verdict.UNKNOWN


def flipping(t: Any, x: Any, o: Any, other: int) -> None:
    now = t[0]
    o[...] = jnp.zeros_like(o)
    o[pl.ds(0, 1), :] = x[pl.ds(now, 1), :]
    t[0] = jnp.where(now == 0, other, 0)


def test_a_number_of_each_iteration_is_not_that_of_the_one_before() -> None:
    """What an inner loop leaves is handed on: read together with the next one's, the two differ."""

    def body(t: Any, x: Any, o: Any) -> None:
        def outer(i: Any, carried: Any) -> Any:
            last, _ = carried
            new = jax.lax.while_loop(lambda v: t[v] == i, lambda v: v + 2, 0)
            o[pl.ds(jnp.where(last == new, 0, 8), 1), :] = x[pl.ds(0, 1), :]
            return new, last

        jax.lax.fori_loop(1, 4, outer, (0, 0))

    stores = [f for f in asked(with_tables(body, 1), T, X) if f.subject == "outputs"]
    assert worst(stores) is Verdict.UNKNOWN


def test_what_is_advised_is_all_that_is_needed_and_in_one_line() -> None:
    (op,) = (op for op in ops() if op.name == "tpu.paged_attention h64 megacore None inline False")
    function, args = op.build()
    advised, sizes = advice(asked(function, *args))
    assert not sizes
    assert advised.split("; ") == ["0 <= prefetch0 < 2049", "0 <= prefetch1 < 2048", "0 <= prefetch2 < 2"]
    assert worst(asked(function, *args, assume=[advised])) is Verdict.PROVED


def test_paged_attention_is_in_bounds_for_what_its_caller_gives() -> None:
    said = ("0 <= prefetch0 <= 2048", "0 <= prefetch1 < 2048", "0 <= prefetch2 < 2", "0 <= prefetch3 < 2")
    (op,) = (op for op in ops() if op.name == "tpu.paged_attention h32 megacore batch inline False")
    function, args = op.build()
    assert worst(asked(function, *args, assume=said)) is Verdict.PROVED
    assert worst(asked(function, *args, assume=said[:3])) is Verdict.PROVED
    assert worst(asked(function, *args, assume=("0 <= prefetch0 <= 2049", *said[1:]))) is Verdict.UNKNOWN
