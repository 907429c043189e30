"""What is stored of an output: guards, loops, masks, tables, views, programs of one visit, copies, pipelines."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof as lp
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from tests.bodies.kernels import ANY, ROWS, found
from tests.said import Said

pytestmark = pytest.mark.slow

PROVED, REFUTED, UNKNOWN = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN


def _stored(body: Callable[..., None], **call: Any) -> Finding:
    (answer,) = found("outputs_stored", body, **call)
    return answer


def _when(condition: Callable[[Any], Any], rows: int = 8) -> Callable[..., None]:
    def body(x: Any, o: Any) -> None:
        @pl.when(condition(x))
        def _() -> None:
            o[0:rows] = x[0:rows]

    return body


def test_a_store_under_loaded_data_is_not_sure_and_says_which_line_loads() -> None:
    answer = _stored(_when(lambda x: x[0, 0] > 0))
    assert answer.verdict is UNKNOWN
    assert "what args[0] holds" in answer.reason
    assert "test_outputs_stored.py:" in answer.reason


def test_what_is_missing_whatever_is_loaded_is_missing() -> None:
    answer = _stored(_when(lambda x: x[0, 0] > 0, rows=4))
    assert (answer.verdict, answer.counterexample) == (REFUTED, {"program": (0,), "element": (4, 0)})


def test_both_branches_of_a_condition_on_data_store() -> None:
    def body(x: Any, o: Any) -> None:
        def store(value: Any) -> None:
            o[...] = value

        lax.cond(x[0, 0] > 0, lambda: store(x[...]), lambda: store(-x[...]))

    assert _stored(body).verdict is PROVED


@pytest.mark.parametrize(
    ("runs", "step", "missing"),
    [
        (lambda r: r < 8, 1, None),
        (lambda r: r != 5, 1, 5),
        (lambda r: r < 8, 2, 1),
        (lambda r: (r < 3) | (r > 4), 1, 3),
    ],
)
def test_a_while_loop_stores_until_it_ends(runs: Callable[[Any], Any], step: int, missing: int | None) -> None:
    def body(x: Any, o: Any) -> None:
        def row(r: Any) -> Any:
            o[pl.ds(r, 1)] = x[pl.ds(r, 1)]
            return r + step

        lax.while_loop(runs, row, 0)

    answer = _stored(body)
    if missing is None:
        assert answer.verdict is PROVED
    else:
        assert (answer.verdict, answer.counterexample) == (REFUTED, {"program": (0,), "element": (missing, 0)})


@pytest.mark.parametrize("second", [8, 0])
def test_programs_of_one_visit_store_together(second: int) -> None:
    def body(x: Any, o: Any) -> None:
        o[pl.ds(pl.program_id(0) % 2 * second, 8)] = x[...]

    answer = _stored(body, out=((16, 128), lambda i: (i // 2, 0)))
    if second:
        assert answer.verdict is PROVED
    else:
        assert (answer.verdict, answer.counterexample) == (REFUTED, {"program": (0,), "element": (8, 0)})


@pytest.mark.parametrize("steps", [4, 10**9])
@pytest.mark.parametrize("late", [0, 1])
def test_the_last_step_stores_however_many_there_are(steps: int, late: int) -> None:
    def body(x: Any, o: Any, total: Any) -> None:
        total[...] += x[...]

        @pl.when(pl.program_id(1) == steps - 1 + late)
        def _() -> None:
            o[...] = total[...]

    answer = _stored(
        body,
        grid=(4, steps),
        x=(32, 128 * steps),
        given=((8, 128), lambda i, k: (i, k)),
        out=((8, 128), lambda i, k: (i, 0)),
        scratch=[pltpu.VMEM((8, 128), jnp.float32)],
    )
    assert answer.verdict is (REFUTED if late else PROVED)


@pytest.mark.parametrize(
    ("assume", "verdict"), [((), UNKNOWN), (("1 <= prefetch0 < 100",), PROVED), (("0 <= prefetch0 < 9",), UNKNOWN)]
)
def test_a_length_of_0_stores_nothing(assume: tuple[str, ...], verdict: Verdict) -> None:
    def body(lengths: Any, x: Any, o: Any) -> None:
        @pl.when(pl.program_id(1) * 8 < lengths[pl.program_id(0)])
        def _() -> None:
            o[...] = x[...]

    block = ((8, 128), lambda i, k, lengths: (i, 0))
    answer = _stored(body, grid=(4, 3), given=block, out=block, tables=[(4,)], assume=assume)
    assert answer.verdict is verdict
    assert "prefetch0" in (answer.reason + str(answer.assumes))
    bounded = assume[:1] == ("0 <= prefetch0 < 9",)
    assert answer.reason.startswith("refuted if prefetch0 can be 0") is bounded
    strict = _stored(body, grid=(4, 3), given=block, out=block, tables=[(4,)], assume=assume, strict_tables=True)
    assert strict.verdict is (REFUTED if bounded else verdict)


def test_a_loop_over_a_length_of_a_table() -> None:
    def body(lengths: Any, x: Any, o: Any) -> None:
        def row(r: Any, _: Any) -> Any:
            o[pl.ds(r, 1)] = x[pl.ds(r, 1)]
            return 0

        lax.fori_loop(0, lengths[pl.program_id(0)], row, 0)

    assert _stored(body, tables=[(4,)], assume=("8 <= prefetch0 < 9",)).verdict is PROVED
    shorter = _stored(body, tables=[(4,)], assume=("7 <= prefetch0 < 9",))
    assert shorter.verdict is UNKNOWN
    assert shorter.reason.startswith("refuted if prefetch0 can be 7 (")
    assert _stored(body, tables=[(4,)], assume=("7 <= prefetch0 < 9",), strict_tables=True).verdict is REFUTED


@pytest.mark.parametrize(
    ("assume", "verdict"), [("prefetch0 is injective", PROVED), ("prefetch0 is monotone", UNKNOWN)]
)
def test_a_scatter_by_a_table_that_takes_every_value(assume: str, verdict: Verdict) -> None:
    def body(table: Any, x: Any, o: Any) -> None:
        pltpu.sync_copy(x, o.at[pl.ds(table[pl.program_id(0)] * 8, 8)])

    answer = _stored(body, out=ANY, tables=[(4,)], assume=("0 <= prefetch0 < 4", assume))
    assert answer.verdict is verdict


def test_views_are_followed_to_the_elements() -> None:
    def whole(x: Any, o: Any) -> None:
        o.reshape(16, 64)[...] = x[...].reshape(16, 64)

    def half(x: Any, o: Any) -> None:
        o.reshape(16, 64)[0:8] = x[0:4].reshape(8, 64)

    assert _stored(whole).verdict is PROVED
    answer = _stored(half)
    assert (answer.verdict, answer.counterexample) == (REFUTED, {"program": (0,), "element": (4, 0)})


def test_what_is_not_there_need_not_be_stored() -> None:
    def body(x: Any, o: Any) -> None:
        o[0:6] = x[0:6]

    # the last block has 6 rows of 8
    assert _stored(body, grid=(1,), shape=(6, 128)).verdict is PROVED
    answer = _stored(body, shape=(30, 128))
    assert (answer.verdict, answer.counterexample) == (REFUTED, {"program": (0,), "element": (6, 0)})


def _half(x: Any, o: Any) -> None:
    pltpu.sync_copy(x.at[pl.ds(0, 16)], o.at[pl.ds(0, 16)])


def test_an_output_in_hbm_that_shares_its_buffer_keeps_the_input() -> None:
    assert [(_stored(_half, grid=(1,), given=ANY, out=ANY, aliases=a).severity) for a in ({}, {0: 0})] == [
        "error",
        "warning",
    ]
    # a window is not filled from the input
    assert _stored(_when(lambda x: pl.program_id(0) > 0), aliases={0: 0}).severity == "error"


@pytest.mark.parametrize(("parts", "verdict"), [((0, 16), PROVED), ((0,), REFUTED), ((16, 16), REFUTED)])
def test_pipelines_store_an_output_together(parts: tuple[int, ...], verdict: Verdict) -> None:
    def body(x: Any, o: Any) -> None:
        def inner(a: Any, b: Any) -> None:
            b[...] = a[...]

        for start in parts:
            block = pl.BlockSpec(*ROWS)
            pipeline = pltpu.emit_pipeline(inner, grid=(2,), in_specs=[block], out_specs=[block])
            pipeline(x.at[pl.ds(start, 16)], o.at[pl.ds(start, 16)])

    assert _stored(body, grid=(1,), given=ANY, out=ANY).verdict is verdict


def _random_case(rng: random.Random) -> tuple[Callable[..., None], dict[str, Any], dict[tuple[int, ...], None]]:
    """A kernel, how it is called, and the elements that it leaves out, by walking its stores one after the other."""
    visits, steps, wide = rng.randint(1, 3), rng.randint(1, 3), rng.choice((8, 16))
    rows = rng.randint(max(1, wide * (visits - 1) + 1), wide * visits)
    stores = []
    for _ in range(rng.randint(1, 3)):
        stride, count, trips = rng.choice((1, 1, 2, 3)), rng.randint(1, 4), rng.randint(1, 6)
        move = rng.choice((0, 1, 2, count, count * stride))
        shift = rng.randint(0, 3)
        reach = shift * (steps - 1) + move * (trips - 1) + (count - 1) * stride + 1
        if reach > wide:
            stride, count, trips, move, shift, reach = 1, wide, 1, 0, 0, wide
        start = rng.randint(0, wide - reach)
        guard = rng.choice(("", "", "i", "k", "last", "odd"))
        mask = rng.choice((0, 0, rng.randint(1, 128)))
        stores.append((start, shift, move, trips, count, stride, guard, mask))
    held = {
        "": lambda i, k: True,
        "i": lambda i, k: i < 2,
        "k": lambda i, k: k == 0,
        "last": lambda i, k: k == steps - 1,
        "odd": lambda i, k: (i + k) % 2 == 1,
    }

    def body(x: Any, o: Any) -> None:
        i, k = pl.program_id(0), pl.program_id(1)
        for start, shift, move, trips, count, stride, guard, mask in stores:

            def all_rows(store: tuple[int, ...] = (start, shift, move, trips, count, stride, mask)) -> None:
                begin, by, step, times, many, apart, columns = store

                def row(t: Any, carry: Any) -> Any:
                    place = pl.ds(begin + by * k + step * t, many, stride=apart)
                    if columns:
                        lanes = lax.broadcasted_iota(jnp.int32, (many, 128), 1)
                        pltpu.store(o.at[place, :], jnp.zeros((many, 128), jnp.float32), mask=lanes < columns)
                    else:
                        o[place, :] = jnp.zeros((many, 128), jnp.float32)
                    return carry

                lax.fori_loop(0, times, row, 0)

            if guard:
                pl.when(held[guard](i, k))(all_rows)
            else:
                all_rows()

    left = dict.fromkeys((row, column) for row in range(rows) for column in (0, 127))
    left |= dict.fromkeys((row, store[-1]) for row in range(rows) for store in stores if 0 < store[-1] < 128)
    for i, k in itertools.product(range(visits), range(steps)):
        for start, shift, move, trips, count, stride, guard, mask in stores:
            if held[guard](i, k):
                for t, n in itertools.product(range(trips), range(count)):
                    row = i * wide + start + shift * k + move * t + n * stride
                    for column in [c for r, c in list(left) if r == row and c < (mask or 128)]:
                        left.pop((row, column))
    call = {
        "grid": (visits, steps),
        "x": (8, 128),
        "given": ((8, 128), lambda i, k: (0, 0)),
        "out": ((wide, 128), lambda i, k: (i, 0)),
        "shape": (rows, 128),
    }
    return body, call, left


@pytest.mark.parametrize("seed", range(60))
def test_random_stores_are_judged_as_a_walk_over_them_says(seed: int) -> None:
    body, call, left = _random_case(random.Random(seed))
    answer = _stored(body, **call)
    assert answer.verdict is (REFUTED if left else PROVED)
    if left:
        assert (answer.counterexample or {})["element"] == min(left)


def test_the_hint_names_the_guard_that_keeps_the_store_from_happening() -> None:
    odd = _stored(_when(lambda x: pl.program_id(0) % 2 == 1))
    assert odd.counterexample == {"program": (0,), "element": (0, 0)}
    assert odd.fix == ""
    assert Said("pallas.outputs_stored_look_at_guard").of(odd.hint)
    assert odd.hint.endswith(" only where pl.program_id(0) % 2 == 1, not in program (0,)")


def test_a_guard_that_holds_in_another_program_of_the_visit_is_not_blamed() -> None:
    def body(x: Any, o: Any) -> None:
        @pl.when(pl.program_id(1) == 1)
        def _() -> None:
            o[0:4] = x[0:4]

    def never(x: Any, o: Any) -> None:
        @pl.when(pl.program_id(1) == 2)
        def _() -> None:
            o[...] = x[...]

    half, none = (_stored(one, grid=(4, 2)) for one in (body, never))
    assert (half.verdict, none.verdict) == (REFUTED, REFUTED)
    assert "happens only where" not in half.hint
    assert "pl.program_id(1) == 1: let the store at line " in none.fix
    assert Said("pallas.outputs_stored_fix_last_step", step="pl.program_id(1) == 1", said="pl.program_id(1) == 2").of(
        none.fix
    )


def _in_two_kernels(
    started: Callable[..., None], waited: Callable[..., None], shares: bool = True, memory: Any = None
) -> dict[str, Finding]:
    """What is said of outputs where one kernel starts a copy, and another, which is given its semaphore, waits for it.

    shares: whether the second gives on the memory that the copy fills.
    """
    dims, semaphore = (8, 128), pl.BlockSpec(memory_space=pltpu.SEMAPHORE)
    target = ANY if memory is None else pl.BlockSpec(memory_space=memory)
    filled = jax.ShapeDtypeStruct(dims, jnp.float32) if memory is None else memory(dims, jnp.float32)

    def both(x: Any) -> Any:
        kept, out, counted = pl.pallas_call(
            started,
            in_specs=[ANY],
            out_specs=(ANY, target, semaphore),
            out_shape=(jax.ShapeDtypeStruct(dims, jnp.float32), filled, pltpu.SemaphoreType.DMA(())),
            input_output_aliases={0: 0},
            name="first",
        )(x)
        return pl.pallas_call(
            waited,
            in_specs=[ANY, target, semaphore],
            out_specs=target,
            out_shape=filled,
            input_output_aliases={1: 0} if shares else {},
            name="second",
        )(kept, out, counted)

    calls = lp.kernels(both, jax.ShapeDtypeStruct(dims, jnp.float32)).calls
    return {
        f"{name} {f.subject}": f
        for name, call in zip(("first", "second"), calls, strict=True)
        for f in call.findings
        if f.question == "outputs_stored"
    }


def _start(x: Any, kept: Any, out: Any, counted: Any) -> None:
    pltpu.make_async_copy(x, out, counted).start()


def _start_in_place(x: Any, kept: Any, out: Any, counted: Any) -> None:
    pltpu.make_async_copy(out, out, counted).start()


def _wait(x: Any, out: Any, counted: Any, given_on: Any) -> None:
    pltpu.make_async_copy(x, out, counted).wait()


def _wait_for_nothing(x: Any, out: Any, counted: Any, given_on: Any) -> None:
    pass


def test_an_output_that_a_copy_of_another_kernel_fills_is_no_hole() -> None:
    said = _in_two_kernels(_start, _wait)
    assert said["first outputs[1]"].verdict is PROVED
    assert [said[one].severity for one in ("first outputs[0]", "second outputs")] == ["info", "info"]
    assert Said("pallas.outputs_stored_kept", shared="args[0]", elsewhere=Said("pallas.outputs_stored_started")).of(
        said["first outputs[0]"].reason
    )
    assert Said("pallas.outputs_stored_waited_for").of(said["second outputs"].reason)
    assert not any(f.fix or f.hint for f in said.values())


def test_an_output_that_no_copy_fills_is_one() -> None:
    # memory of its own, which the copy does not fill
    other = _in_two_kernels(_start, _wait, shares=False)["second outputs"]
    assert (other.severity, other.verdict) == ("error", REFUTED)
    # nobody waits
    unwaited = _in_two_kernels(_start, _wait_for_nothing)["second outputs"]
    assert (unwaited.severity, unwaited.verdict) == ("warning", REFUTED)
    # the copy moves other memory
    kept = _in_two_kernels(_start_in_place, _wait)["first outputs[0]"]
    assert (kept.severity, kept.verdict) == ("warning", REFUTED)


def test_a_window_that_a_copy_of_another_kernel_may_fill_is_open() -> None:
    assert _in_two_kernels(_start, _wait, memory=pltpu.VMEM)["second outputs"].verdict is UNKNOWN
    assert _in_two_kernels(_start, _wait, False, memory=pltpu.VMEM)["second outputs"].verdict is REFUTED


@pytest.mark.parametrize(
    ("by_table", "assume", "strict", "code"),
    [
        (True, "0 <= prefetch0 < 4", True, 1),
        (True, "0 <= prefetch0 < 4", False, 3),
        (True, "0 <= prefetch0 < 4; prefetch0 is injective", True, 0),
        (False, "0 <= prefetch0 < 4", True, 0),
    ],
)
def test_blocks_that_a_table_scatters(by_table: bool, assume: str, strict: bool, code: int) -> None:
    """A table may hold one block twice, and then another one is left out; a permutation leaves out none."""

    def body(t: Any, x: Any, o: Any, sem: Any) -> None:
        i = pl.program_id(0)
        to = t[i] if by_table else i
        copy = pltpu.make_async_copy(x, o.at[pl.ds(to * 8, 8)], sem)
        copy.start()
        copy.wait()

    grid = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, t: (i, 0))],
        out_specs=pl.BlockSpec(memory_space=pl.ANY),
        scratch_shapes=[pltpu.SemaphoreType.DMA],
    )
    rows = jax.ShapeDtypeStruct((32, 128), jnp.float32)
    call = pl.pallas_call(body, grid_spec=grid, out_shape=rows)
    given = jax.ShapeDtypeStruct((4,), jnp.int32), rows
    found = lp.kernels(call, *given, assume=assume.split("; "), properties=["outputs_stored"], strict_tables=strict)
    assert found.exit_code == code
    if code:
        (one,) = (f for f in found.findings if f.verdict is not Verdict.PROVED)
        assert Said("pallas.outputs_stored_no_copy", what="element [8, 0] of outputs", beside="").of(one.reason)
        assert code == 1 or one.reason.startswith("refuted if prefetch0 can be 0, 0, 0, 0")
