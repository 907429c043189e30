"""Tables of which the code says every entry are read as they are; nothing is assumed of them, and nothing advised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.read_consistency import range_of
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge

pytestmark = pytest.mark.slow

X = jax.ShapeDtypeStruct((32, 128), jnp.float32)


def by_table(make: Callable[[], Any]) -> Callable[[Any], Any]:
    """Copies block t[i] onto block t[i], of a table that the function makes itself."""

    def body(t: Any, x: Any, o: Any) -> None:
        o[...] = x[...]

    def copied(x: Any) -> Any:
        table = make()
        block = pl.BlockSpec((8, 128), lambda i, t: (t[i], 0))
        spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(4,), in_specs=[block], out_specs=block)
        return pl.pallas_call(body, grid_spec=spec, out_shape=X)(table, x)

    return copied


def judged(function: Callable[..., Any], *args: Any, assume: Sequence[str] = (), **how: Any) -> list[Finding]:
    """What decides, of all calls, and is not proved."""
    calls = kernels_of(function, args or (X,), assume=assume)
    assert all(isinstance(call, Kernel) for call in calls)
    found = [f for call in calls for f in judge(call, **how) if f.severity == "error"]  # type: ignore[arg-type]
    return [f for f in found if f.verdict is not Verdict.PROVED]


def four() -> Any:
    return jnp.arange(4)


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.array([2, 0, 3, 1], np.int32),
        lambda: jnp.array([2, 0, 3, 1], jnp.int32),
        lambda: four() * 3 % 4,
        lambda: jnp.argsort(jnp.array([2, 0, 3, 1])).astype(jnp.int32),
        lambda: jnp.cumsum(jnp.ones(4, jnp.int32)) - 1,
        lambda: jax.jit(lambda n: n[::-1])(four()),
    ],
)
def test_a_permutation_is_proved_without_an_assumption(make: Callable[[], Any]) -> None:
    assert judged(by_table(make)) == []


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("make", [lambda: np.array([2, 0, 4, 1], np.int32), lambda: four() * 3 % 5])
def test_a_block_behind_the_end_is_refuted_where_it_is(make: Callable[[], Any], strict: bool) -> None:
    found = judged(by_table(make), names=["blocks_in_bounds"], strict_tables=strict)
    assert {f.verdict for f in found} == {Verdict.REFUTED}
    at = list(np.asarray(make())).index(4)
    assert (found[0].counterexample or {})["program"] == (at,)


def test_a_block_that_comes_twice_is_refuted() -> None:
    (found,) = judged(by_table(lambda: np.array([2, 0, 2, 1], np.int32)), names=["outputs_covered"])
    assert (found.verdict, (found.counterexample or {})["block"]) == (Verdict.REFUTED, (3, 0))


def test_what_a_function_is_given_stays_a_table_of_which_nothing_is_known() -> None:
    def given(t: Any, x: Any) -> Any:
        return by_table(lambda: t)(x)

    found = judged(given, jax.ShapeDtypeStruct((4,), jnp.int32), X, names=["blocks_in_bounds"])
    assert {f.verdict for f in found} == {Verdict.UNKNOWN}
    assert found[0].needs == ("0 <= prefetch0 < 4",)


def test_what_a_chip_may_round_otherwise_is_not_known() -> None:
    found = judged(by_table(lambda: (four() / 3 * 3).astype(jnp.int32)), names=["blocks_in_bounds"])
    assert {f.verdict for f in found} == {Verdict.UNKNOWN}


def test_a_loop_that_a_condition_ends_is_not_run() -> None:
    def endless() -> Any:
        return jax.lax.while_loop(lambda t: t[0] >= 0, lambda t: t, four())

    found = judged(by_table(endless), names=["blocks_in_bounds"])
    assert {f.verdict for f in found} == {Verdict.UNKNOWN}


def test_an_assumption_that_the_entries_contradict_proves_nothing() -> None:
    make = by_table(lambda: np.array([2, 0, 3, 1], np.int32))
    (found, *_) = judged(make, assume=["0 <= prefetch0 < 3"], names=["blocks_in_bounds"])
    assert found.verdict is Verdict.UNKNOWN
    assert found.reason == ("vacuous: prefetch0[2] is 3, as the code says, and 0 <= prefetch0 < 3 is assumed")
    (found, *_) = judged(make, assume=["prefetch0 is monotone"], names=["blocks_in_bounds"])
    assert found.reason == "vacuous: prefetch0 is not monotone: the code says what it holds"


def rows(table: Any, extent: int, stored: bool = False) -> Callable[[Any], Any]:
    """Reads, in its body, 8 rows from the table's entry on."""

    def body(t: Any, x: Any, o: Any) -> None:
        if stored:
            t[3] = 25
        o[...] = x[pl.ds(t[pl.program_id(0)], 8), :]

    def read(x: Any) -> Any:
        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(extent,),
            in_specs=[pl.BlockSpec((32, 128), lambda i, t: (0, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, t: (i, 0)),
        )
        shape = jax.ShapeDtypeStruct((8 * extent, 128), jnp.float32)
        return pl.pallas_call(body, grid_spec=spec, out_shape=shape)(jnp.asarray(table, jnp.int32), x)

    return read


def test_the_body_reads_the_entries_too() -> None:
    assert judged(rows([0, 24, 16, 8], 4)) == []
    (found,) = judged(rows([0, 24, 25, 8], 4))
    assert (found.question, found.verdict) == ("body_in_bounds", Verdict.REFUTED)
    assert (found.counterexample or {})["program"] == (2,)
    # what the body stores to holds what the code says at first only
    (found,) = judged(rows([0, 24, 16, 8], 4, stored=True), names=["body_in_bounds"])
    assert found.verdict is not Verdict.PROVED


def test_entries_without_a_pattern_are_bounded_and_refute_nothing_that_is_not_so() -> None:
    # 0 to 24 in no order, and entry k + 1 is never 25: one too many pieces to be written out
    many = [(k * k * 7 + 3 * k) % 25 for k in range(256)]
    assert judged(rows(many, 256), names=["body_in_bounds"]) == []
    many[200] = 26
    (found,) = judged(rows(many, 200), names=["body_in_bounds"], strict_tables=True)
    assert found.verdict is not Verdict.REFUTED


def test_tables_of_a_batch_and_inside_of_a_scan() -> None:
    copied = by_table(lambda: np.array([2, 0, 3, 1], np.int32))
    batch = jax.ShapeDtypeStruct((3, 32, 128), jnp.float32)
    assert judged(jax.vmap(copied), batch) == []
    assert judged(lambda x: jax.lax.scan(lambda c, _: (copied(c), None), x, None, length=2)[0]) == []


def piped(past: int, guarded: bool = False) -> Callable[[Any], Any]:
    """A pipeline in every program: its blocks follow the program's id."""

    def inner(a: Any, b: Any) -> None:
        b[...] = a[...]

    def body(x: Any, o: Any) -> None:
        i, same = pl.program_id(0), pl.program_id(0)

        def run() -> None:
            pltpu.emit_pipeline(
                inner,
                grid=(2,),
                in_specs=[pl.BlockSpec((8, 128), lambda j: (i * 2 + j + past, 0))],
                out_specs=[pl.BlockSpec((8, 128), lambda j: (same * 2 + j, 0))],
            )(x, o)

        pl.when(i == 0)(run) if guarded else run()

    whole = pl.BlockSpec(memory_space=pl.ANY)
    return pl.pallas_call(body, grid=(2,), in_specs=[whole], out_specs=whole, out_shape=X)  # type: ignore[no-any-return]


def test_each_program_around_a_pipeline_runs_it() -> None:
    assert judged(piped(0)) == []
    (found,) = [f for f in judged(piped(1)) if f.question == "blocks_in_bounds"]
    assert found.verdict is Verdict.REFUTED
    assert (found.counterexample or {})["reads"] == {"outer_program_id0[0]": 1}


def test_a_pipeline_under_a_condition_may_not_run_in_the_program_that_goes_wrong() -> None:
    (found,) = [f for f in judged(piped(1, guarded=True)) if f.question == "blocks_in_bounds"]
    assert found.verdict is Verdict.UNKNOWN
    assert found.reason.startswith("refuted if outer_program_id0 can be 1 ")


def test_what_the_code_says_is_no_assumption() -> None:
    (call,) = kernels_of(by_table(four), (X,))
    assert isinstance(call, Kernel)
    (table,) = call.tables
    assert (table.contents, range_of(table), table.assumptions()) == ((0, 1, 2, 3), (0, 4), ())


def test_where_nobody_can_tell_whether_tables_can_be_so_what_reads_none_keeps_its_answer() -> None:
    """Of too many entries none is looked for: what reads the table is unknown, and the block shapes are not."""

    def body(t: Any, x: Any, o: Any) -> None:
        o[...] = x[...]

    def copied(t: Any, x: Any) -> Any:
        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(200,),
            in_specs=[pl.BlockSpec((8, 128), lambda i, t: (t[i], 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, t: (i, 0)),
        )
        return pl.pallas_call(body, grid_spec=spec, out_shape=jax.ShapeDtypeStruct((1600, 128), jnp.float32))(t, x)

    given = jax.ShapeDtypeStruct((200,), jnp.int32), jax.ShapeDtypeStruct((1600, 128), jnp.float32)
    assume = ["0 <= prefetch0 < 200", "prefetch0 is onto", "prefetch0[i] > prefetch0[i + 5] if i < 20"]
    (call,) = kernels_of(copied, given, assume=assume)
    assert isinstance(call, Kernel)
    found = [f for f in judge(call) if f.severity == "error"]
    open_ = {(f.question, f.subject) for f in found if f.verdict is Verdict.UNKNOWN}
    assert ("blocks_in_bounds", "args[1]") in open_
    assert all("cannot tell whether prefetch0 can be as assumed" in f.reason for f in found if f.reason)
    held = {(f.question, f.subject) for f in found if f.verdict is Verdict.PROVED}
    assert {("blocks_in_bounds", "outputs"), ("outputs_covered", "outputs"), ("grid_positive", "grid")} <= held


def test_a_size_settles_a_read_under_a_condition_on_a_table() -> None:
    """No table needs an assumption, so none is there for the table that the condition reads."""

    def body(t: Any, x: Any, o: Any) -> None:
        o[...] = x[...]

        @pl.when(t[0] >= 0)
        def _() -> None:
            o[...] = x[...] * t[pl.program_id(0)]

    def call(many: Any, table: Any, x: Any) -> Any:
        block = pl.BlockSpec((8, 128), lambda i, t: (0, 0))
        spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(many[0],), in_specs=[block], out_specs=block)
        return pl.pallas_call(body, grid_spec=spec, out_shape=x)(table, x)

    shapes = [jax.ShapeDtypeStruct(shape, jnp.int32) for shape in ((1,), (5,), (8, 128))]
    (kernel,) = kernels_of(call, tuple(shapes))
    assert isinstance(kernel, Kernel)
    found = [f for f in judge(kernel, names=["body_in_bounds"]) if f.verdict is not Verdict.PROVED]
    assert len(found) == 1
    assert "grid0 <= 5" in found[0].reason
    assert "KeyError" not in found[0].reason
