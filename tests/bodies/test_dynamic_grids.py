"""Grids whose size only the running program knows: the condition that is needed is named, and can be given."""

from __future__ import annotations

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

import layoutproof as lp
from layoutproof.core.errors import LayoutError
from layoutproof.core.result import Verdict
from tests.pallas.wheel_ops import ops

pytestmark = pytest.mark.slow

GMM = next(op for op in ops() if op.name == "tpu.megablox.gmm 512x1000x1000")
TABLE = "0 <= prefetch1 < 4"


def asked(where: tuple[str, ...] = (), assume: tuple[str, ...] = ()) -> lp.Kernels:
    function, args = GMM.build()
    return lp.kernels(function, *args, properties=["body_in_bounds"], where=where, assume=assume)


def test_the_size_that_is_enough_is_named() -> None:
    found = asked()
    assert found.exit_code == 3
    assert "'grid1 <= 7'" in str(found)


def test_what_was_named_proves_the_grouped_matmul() -> None:
    assert asked(("grid1 <= 7",), (TABLE,)).exit_code == 0
    found = asked(("grid1 <= 8",), (TABLE,))
    assert found.exit_code == 1
    refuted = next(f for f in found.findings if f.verdict is Verdict.REFUTED)
    assert (refuted.counterexample or {})["sizes"] == {"grid1": 8}


def test_conditions_that_nobody_can_meet_prove_nothing() -> None:
    assert asked(("grid1 <= 0",), (TABLE,)).exit_code == 3


def test_a_condition_on_sizes_that_no_call_has_is_an_error() -> None:
    with pytest.raises(LayoutError, match="they have grid1"):
        asked(("grid2 <= 7",))


X = jax.ShapeDtypeStruct((32, 128), jnp.float32)


def copied(x: jax.Array, blocks: jax.Array) -> jax.Array:
    """Copies as many blocks of 8 rows."""

    def body(x_ref: jax.Array, o_ref: jax.Array) -> None:
        o_ref[...] = x_ref[...]

    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(body, grid=(blocks,), in_specs=[spec], out_specs=spec, out_shape=X)(x)


def test_no_size_is_advised_that_turns_a_right_kernel_red() -> None:
    """Of fewer programs than blocks one is never written: what is advised is exactly so many."""
    open_ = lp.kernels(copied, X, jax.ShapeDtypeStruct((), jnp.int32))
    assert open_.exit_code == 3
    assert "grid0 == 4" in str(open_)
    assert {f.where for f in open_.findings if f.where} == {"grid0 == 4"}
    followed = lp.kernels(copied, X, jax.ShapeDtypeStruct((), jnp.int32), where=["grid0 == 4"])
    assert followed.exit_code == 0
    assert lp.kernels(copied, X, jax.ShapeDtypeStruct((), jnp.int32), where=["grid0 <= 4"]).exit_code == 1


@pytest.mark.parametrize(("blocks", "code"), [((2, 2), 0), ((2, 1), 1), ((4, 1), 1)])
def test_a_size_that_the_code_computes_of_constants_is_known(blocks: tuple[int, int], code: int) -> None:
    """As of a mask whose blocks are counted: 4 programs are right, with 3 a block is left out, 5 go beyond the end."""
    found = lp.kernels(lambda x: copied(x, jnp.asarray(np.array(blocks, np.int32)).sum()), X)
    assert found.exit_code == code
    assert found.calls[0].call.grid == (sum(blocks),)


def copied_by_list(rows: jax.Array, places: jax.Array, count: jax.Array, x: jax.Array) -> jax.Array:
    """Copies two rows in each program, `rows` in all: the first `count[0]` rows that a list names."""
    from jax.experimental.pallas import tpu as pltpu

    def body(table: jax.Array, most: jax.Array, source: jax.Array, target: jax.Array, semaphore: jax.Array) -> None:
        for k in range(2):
            at = k + pl.program_id(0) * 2
            row = jax.lax.select(at < most[0], table[at], 0)
            copy = pltpu.make_async_copy(source.at[pl.ds(row, 1)], target.at[pl.ds(k, 1)], semaphore)
            copy.start()
            copy.wait()

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    return pl.pallas_call(
        body,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=2,
            # the number of the last row is one of 32 bits, so that the claim needs no int32
            grid=(pl.cdiv(rows, 2),),
            in_specs=[anywhere],
            out_specs=anywhere,
            scratch_shapes=[pltpu.SemaphoreType.DMA],
        ),
        out_shape=x,
    )(places, count, x)


def test_a_place_that_is_written_in_32_bits_is_read_where_its_table_is_known() -> None:
    """The entry `int32(g0 * 2)` of a list is its entry `g0 * 2`: what of the list is needed is named, and proves it."""
    args = (
        jax.ShapeDtypeStruct((), jnp.int32),
        jax.ShapeDtypeStruct((16,), jnp.int32),
        jax.ShapeDtypeStruct((1,), jnp.int32),
        X,
    )
    found = lp.kernels(copied_by_list, *args, properties="body_in_bounds")
    copies = [f for f in found.findings if "copies" in f.reason]
    assert copies
    assert all("'0 <= prefetch0 < 32'" in f.reason for f in copies), [f.reason for f in found.findings]
    given = lp.kernels(
        copied_by_list, *args, properties="body_in_bounds", where="grid0 <= 8", assume="0 <= prefetch0 < 32"
    )
    assert given.exit_code == 0, str(given)


ENTRIES, MODES = 6, 2


def listed(
    first: jax.Array, modes: jax.Array, table: jax.Array, count: jax.Array, past: int = 0, interpret: bool = False
) -> jax.Array:
    """Block g holds the entry `first + g + past` of a table, times a factor that `first` chooses, too."""
    from jax.experimental.pallas import tpu as pltpu

    def body(first: jax.Array, modes: jax.Array, table: jax.Array, o_ref: jax.Array) -> None:
        entry = table[first[0] + pl.program_id(0) + past] * modes[first[0]]
        o_ref[...] = jnp.full(o_ref.shape, entry, jnp.int32)

    return pl.pallas_call(
        body,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=3, grid=(count,), in_specs=[], out_specs=pl.BlockSpec((8, 128), lambda g, *_: (g, 0))
        ),
        out_shape=jax.ShapeDtypeStruct((8 * 8, 128), jnp.int32),
        interpret=interpret,
    )(first, modes, table)


def judged_list(past: int, where: str = "", assume: str = "") -> lp.Kernels:
    args = [jax.ShapeDtypeStruct(shape, jnp.int32) for shape in ((1,), (MODES,), (ENTRIES,), ())]
    return lp.kernels(
        lambda *a: listed(*a, past=past),
        *args,
        properties="body_in_bounds",
        where=where or (),
        assume=assume or (),
    )


@pytest.mark.parametrize(("past", "most"), [(0, 5), (1, 4)])
def test_a_table_and_the_size_that_it_leaves_room_for_are_advised_at_once(past: int, most: int) -> None:
    """No bound on the grid proves `table[first[0] + g]` while `first` is free, and the other way round."""
    found = judged_list(past)
    assert found.exit_code == 3
    advised = {(f.needs, f.where) for f in found.findings if f.subject == "prefetch2"}
    assert advised == {((f"0 <= prefetch0 < {MODES}",), f"grid0 <= {most}")}
    assert judged_list(past, f"grid0 <= {most}", f"0 <= prefetch0 < {MODES}").exit_code == 0


@pytest.mark.parametrize(("past", "most"), [(0, 5), (1, 4)])
def test_one_program_more_reads_beyond_the_table(past: int, most: int) -> None:
    found = judged_list(past, f"grid0 <= {most + 1}", f"0 <= prefetch0 < {MODES}")
    assert found.exit_code == 3
    assert "refuted if prefetch0 can be 1" in str(found)
    given = (jnp.ones(1, jnp.int32), jnp.ones(MODES, jnp.int32), jnp.arange(ENTRIES, dtype=jnp.int32))
    for programs, inside in ((most, True), (most + 1, False)):
        read = np.asarray(listed(*given, jnp.int32(programs), past, interpret=True))[: 8 * programs : 8, 0]
        # the interpreter keeps a place beyond the end at the last entry
        assert (list(read) == [1 + g + past for g in range(programs)]) is inside


def test_a_size_that_only_one_program_meets_is_no_advice() -> None:
    """Where `first` may be as large as the table has entries but one, room is left for a program."""
    assert not {f.where for f in judged_list(ENTRIES - MODES).findings if f.subject == "prefetch2"} - {""}


def filled(first: jax.Array, modes: jax.Array, table: jax.Array, count: jax.Array, rows: int) -> jax.Array:
    """Program g fills the block g of the output, of so many, where a list says so that `first` chooses from."""
    from jax.experimental.pallas import tpu as pltpu

    def body(first: jax.Array, modes: jax.Array, table: jax.Array, o_ref: jax.Array) -> None:
        entry = table[first[0] + pl.program_id(0)]

        @pl.when(modes[first[0]] >= 0)
        def _() -> None:
            block = pl.program_id(0) if rows > 8 else 0
            o_ref[pl.ds(block * 8, 8), :] = jnp.full((8, 128), entry, jnp.int32)

    return pl.pallas_call(
        body,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=3, grid=(count,), in_specs=[], out_specs=pl.BlockSpec((rows, 128), lambda g, *_: (0, 0))
        ),
        out_shape=jax.ShapeDtypeStruct((rows, 128), jnp.int32),
    )(first, modes, table)


@pytest.mark.parametrize(("blocks", "advised"), [(1, True), (ENTRIES, False)])
def test_a_bound_that_leaves_something_out_whatever_tables_hold_is_no_advice(blocks: int, advised: bool) -> None:
    """One block is filled by every program; of six the last is not, with five programs and any list."""
    args = [jax.ShapeDtypeStruct(shape, jnp.int32) for shape in ((1,), (MODES,), (ENTRIES,), ())]
    found = lp.kernels(
        lambda *a: filled(*a, rows=8 * blocks),
        *args,
        properties=["body_in_bounds", "outputs_stored"],
        assume=f"0 <= prefetch1 < {MODES}",
    )
    said = {f.where for f in found.findings if f.subject == "prefetch2"}
    assert (said == {"grid0 <= 5"}) is advised
