"""What the walk sees of places and copies, for given integers, where the rules can say nothing of all tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import layoutproof as lp

pytestmark = pytest.mark.slow

jax = pytest.importorskip("jax")
jnp = jax.numpy
pl = pytest.importorskip("jax.experimental.pallas")
pltpu = pytest.importorskip("jax.experimental.pallas.tpu")

X = "f32[32,128]"
SIZES = np.array([1, 0, 2, 1], np.int32)


def by_table(table: Any, x: Any, many: Any = 4) -> Any:
    """So many of the blocks that a table names, one after the other."""

    def body(table: Any, x: Any, o: Any) -> None:
        o[...] = x[...]

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(many,), in_specs=[pl.BlockSpec((8, 128), lambda i, t: (t[i], 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, t: (i, 0)),
    )  # fmt: skip
    return pl.pallas_call(body, grid_spec=spec, out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32))(table, x)


def grouped(late: int) -> Any:
    """Each of four blocks by its group, computed of the sizes of groups by way of floats: no rule knows it."""

    def call(sizes: Any, x: Any) -> Any:
        table = jnp.repeat(jnp.arange(4, dtype=jnp.float32), sizes, total_repeat_length=4).astype(jnp.int32)
        return by_table(table + late, x, sizes.sum())

    return jax.jit(call)


def blocks_of(table: list[int]) -> Any:
    return lambda sizes, x: x.reshape(4, 8, 128)[np.array(table)].reshape(32, 128)


def test_blocks_of_a_table_that_is_computed_of_given_integers() -> None:
    """Every block is computed and lies inside; another order is refuted; a block outside is never sampled."""
    right = lp.same(grouped(0), blocks_of([0, 2, 2, 3]), SIZES, X)
    assert right.verdict.value == "sampled", right.reason
    seen = [f for f in right.premises if f.decided_by == "walk"]
    assert {f.question for f in seen} == {"blocks_in_bounds"}
    assert lp.same(grouped(0), blocks_of([0, 2, 3, 3]), SIZES, X).verdict.value == "refuted"
    outside = lp.same(lambda s, x: grouped(1)(s, x)[:8], lambda s, x: x[8:16], SIZES, X)
    assert outside.verdict.value == "unknown"
    assert "blocks_in_bounds" in outside.reason


def test_integers_that_are_drawn_show_no_places() -> None:
    """Nobody says that those that were drawn are those that come."""
    found = lp.same(lambda t, x: by_table(t, x), lambda t, x: x.reshape(4, 8, 128)[t].reshape(32, 128), "s32[4]", X)
    assert found.verdict.value == "unknown"
    assert "blocks_in_bounds" in found.reason


def slots(ahead: int) -> Any:
    """2 x, each part copied into the slot that is kept in memory, so many parts ahead; two slots."""

    def body(x: Any, o: Any, buffer: Any, slot: Any, arrived: Any) -> None:
        i = pl.program_id(0)

        def get(k: Any, at: Any) -> Any:
            return pltpu.make_async_copy(x.at[pl.ds(k * 8, 8)], buffer.at[at], arrived.at[at])

        @pl.when(i == 0)
        def _() -> None:
            slot[0] = 0
            for k in range(ahead):
                get(k, k % 2).start()

        @pl.when(i + ahead < 4)
        def _() -> None:
            get(i + ahead, (slot[0] + ahead) % 2).start()

        get(i, slot[0]).wait()
        o[...] = buffer[slot[0]] * 2
        slot[0] = 1 - slot[0]

    def call(x: Any) -> Any:
        return pl.pallas_call(
            body, grid=(4,), in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
            out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
            out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
            scratch_shapes=[
                pltpu.VMEM((2, 8, 128), jnp.float32), pltpu.SMEM((1,), jnp.int32), pltpu.SemaphoreType.DMA((2,)),
            ],
        )(x)  # fmt: skip

    return call


@pytest.mark.parametrize(("ahead", "verdict"), [(1, "sampled"), (2, "refuted")])
def test_copies_into_slots_that_memory_keeps(ahead: int, verdict: str) -> None:
    """One ahead of two slots is in order; two ahead start a copy into the slot that is still in flight."""
    found = lp.same(slots(ahead), lambda x: 2 * x, X)
    assert found.verdict.value == verdict, found.reason
    (order,) = (f for f in found.premises if f.question == "dma_order")
    assert order.decided_by == "walk"
    if verdict == "refuted":
        assert "while a copy into it is in flight" in found.reason


def in_a_loop(own: int) -> Any:
    """2 x, one part ahead, in a loop whose end no rule knows. own: semaphores, of which each slot has one."""

    def body(many: Any, x: Any, o: Any, buffer: Any, arrived: Any) -> None:
        def get(k: Any) -> Any:
            return pltpu.make_async_copy(x.at[pl.ds(k * 8, 8)], buffer.at[k % 2], arrived.at[k % own])

        def part(k: Any, slot: Any) -> Any:
            @pl.when(k + 1 < many[0])
            def _() -> None:
                get(k + 1).start()

            get(k).wait()
            o[pl.ds(k * 8, 8)] = buffer[slot] * 2
            return 1 - slot

        get(0).start()
        jax.lax.fori_loop(0, many[0], part, 0)

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(1,), in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec((32, 128), lambda i, t: (0, 0)),
        scratch_shapes=[pltpu.VMEM((2, 8, 128), jnp.float32), pltpu.SemaphoreType.DMA((own,))],
    )  # fmt: skip
    call = pl.pallas_call(body, grid_spec=spec, out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32))
    return jax.jit(lambda sizes, x: call(sizes.astype(jnp.float32).sum().astype(jnp.int32)[None], x))


@pytest.mark.parametrize(("own", "verdict"), [(2, "sampled"), (1, "refuted")])
def test_copies_that_share_a_semaphore(own: int, verdict: str) -> None:
    """A wait takes the bytes of whichever copy was faster: with given integers the walk shows the first read."""
    found = lp.same(in_a_loop(own), lambda sizes, x: 2 * x, SIZES, X)
    assert found.verdict.value == verdict, found.reason
    if verdict == "refuted":
        assert "with the integers that are given, scratch[0] is read at" in found.reason
        drawn = lp.same(in_a_loop(own), lambda sizes, x: 2 * x, "s32[4]", X)
        assert "with the integers that are given" not in drawn.reason


ONES = np.ones(4, np.int32)


def handed(steps: Any) -> Any:
    """Blocks in the order of a list that the body makes: where its next entry stands, a loop hands on."""

    def body(steps: Any, x: Any, o: Any, order: Any) -> None:
        def entry(k: Any, at: Any) -> Any:
            order[at] = 3 - k
            return at + steps[k]

        jax.lax.fori_loop(0, 4, entry, 0)
        for k in range(4):
            o[8 * k : 8 * k + 8] = x[pl.ds(8 * jnp.clip(order[k], 0, 3), 8)]

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(1,), in_specs=[pl.BlockSpec((32, 128), lambda i, t: (0, 0))],
        out_specs=pl.BlockSpec((32, 128), lambda i, t: (0, 0)), scratch_shapes=[pltpu.SMEM((4,), jnp.int32)],
    )  # fmt: skip
    return lambda steps, x: pl.pallas_call(
        body, grid_spec=spec, out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32)
    )(steps, x)


def test_integers_that_a_body_writes_before_it_reads_them() -> None:
    """With given integers the walk sees that each was written; one that was not is any, whatever was drawn."""
    theirs = lambda steps, x: x.reshape(4, 8, 128)[::-1].reshape(32, 128)  # noqa: E731
    right = lp.same(handed(ONES), theirs, ONES, X)
    assert right.verdict.value == "sampled", right.reason
    short = np.array([1, 1, 0, 1], np.int32)
    wrong = lp.same(lambda s, x: handed(s)(s, x)[:16], lambda s, x: theirs(s, x)[:16], short, X)
    assert wrong.verdict.value in ("unknown", "refuted")
    assert "initialised" in wrong.reason, wrong.reason
    assert lp.same(handed(ONES), theirs, "s32[4]", X).verdict.value != "sampled"


def test_a_table_that_the_body_changes_and_an_index_map_reads() -> None:
    """Blocks are fetched ahead: nobody knows which of the two numbers the index map reads."""

    def changed(write: bool) -> Any:
        def body(table: Any, x: Any, o: Any) -> None:
            if write:
                table[3] = 0
            o[...] = x[...]

        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=(4,), in_specs=[pl.BlockSpec((8, 128), lambda i, t: (t[i], 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, t: (i, 0)),
        )  # fmt: skip
        shape = jax.ShapeDtypeStruct((32, 128), jnp.float32)
        return lambda t, x: pl.pallas_call(body, grid_spec=spec, out_shape=shape)(t, x)

    table = np.array([3, 1, 2, 0], np.int32)
    for write, verdict in ((False, "sampled"), (True, "unknown")):
        found = lp.same(changed(write), lambda t, x: x.reshape(4, 8, 128)[t].reshape(32, 128), table, X)
        assert found.verdict.value == verdict, found.reason


def handed_on(wrong: bool) -> Any:
    """2 x of as many parts as a table says; a loop hands on the slot. The wrong one has one slot, and starts early."""

    def body(many: Any, x: Any, o: Any, buffer: Any, arrived: Any) -> None:
        def get(k: Any, at: Any) -> Any:
            return pltpu.make_async_copy(x.at[pl.ds(k * 8, 8)], buffer.at[at], arrived.at[at])

        def step(k: Any, at: Any) -> Any:
            after = at if wrong else 1 - at

            @pl.when(k + 1 < many[0])
            def _() -> None:
                get(k + 1, after).start()

            get(k, at).wait()
            o[pl.ds(k * 8, 8)] = buffer[at] * 2
            return after

        get(0, 0).start()
        jax.lax.fori_loop(0, many[0], step, 0)

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(1,), in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec((32, 128), lambda i, t: (0, 0)),
        scratch_shapes=[pltpu.VMEM((2, 8, 128), jnp.float32), pltpu.SemaphoreType.DMA((2,))],
    )  # fmt: skip
    shape = jax.ShapeDtypeStruct((32, 128), jnp.float32)
    return jax.jit(lambda sizes, x: pl.pallas_call(body, grid_spec=spec, out_shape=shape)(sizes.sum()[None], x))


@pytest.mark.parametrize("wrong", [False, True])
def test_copies_in_a_loop_that_hands_on_the_slot(wrong: bool) -> None:
    """Copies that land in the order of their waits hide from the numbers what the wrong one does; not from the walk."""
    found = lp.same(handed_on(wrong), lambda sizes, x: 2 * x, SIZES, X)
    assert found.comparison.verdict.value == "sampled"
    assert found.comparison.inside
    assert found.comparison.ordered is not wrong
    assert (found.verdict.value == "sampled") is not wrong


def test_of_what_the_walk_shows_nobody_looks_for_what_would_settle_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is most of the work on a kernel with tables, and the answer does not rest on it."""
    from layoutproof.pallas import judge

    looked_for: list[str] = []

    def settled(kernel: Any, found: Any, open_: Any, strict: bool) -> dict[int, Any]:
        looked_for.extend(found[one.position].question for one in open_)
        return {}

    monkeypatch.setattr(judge, "settled", settled)
    assert lp.same(in_a_loop(2), lambda sizes, x: 2 * x, SIZES, X).comparison.ordered
    assert looked_for
    assert "dma_order" not in looked_for
    assert not lp.same(in_a_loop(2), lambda sizes, x: jnp.sort(x), SIZES, X).comparison.ordered
    assert "dma_order" in looked_for


@pytest.mark.skipif(jax.__version__ != "0.10.2", reason="the kernels of another wheel")
@pytest.mark.parametrize("name", ["paged attention, megacore None", "megablox tgmm"])
def test_kernels_of_the_wheel_with_tables(name: str) -> None:
    """Slots that memory keeps and groups that are computed: no rule decides them, and the walk sees that they hold."""
    from benchmarks.same_wheel import pairs

    (pair,) = [p for p in pairs() if p.name == name]
    kernel, reference, args = pair.build()
    found = lp.same(kernel, reference, *args, target="v5e")
    assert found.verdict.value == "sampled", found.reason
    assert any(f.reason.startswith("every program was walked") for f in found.premises)


def chosen(late: int) -> Any:
    """The element of each row that a label names, in blocks of columns of which the last one is ragged."""

    def call(labels: Any, x: Any) -> Any:
        def body(labels: Any, x: Any, o: Any, held: Any) -> None:
            @pl.when(pl.program_id(1) == 0)
            def _() -> None:
                held[...] = jnp.zeros_like(held)

            at = jax.lax.broadcasted_iota(jnp.int32, (8, 128), 1) + pl.program_id(1) * 128
            held[...] += jnp.where(at == labels[...] + late, x[...], 0).sum(1, keepdims=True)
            o[...] = held[...]

        return pl.pallas_call(
            body, grid=(2, 2),
            in_specs=[pl.BlockSpec((8, 1), lambda i, j: (i, 0)), pl.BlockSpec((8, 128), lambda i, j: (i, j))],
            out_specs=pl.BlockSpec((8, 1), lambda i, j: (i, 0)), out_shape=jax.ShapeDtypeStruct((16, 1), jnp.float32),
            scratch_shapes=[pltpu.VMEM((8, 1), jnp.float32)],
        )(labels, x)  # fmt: skip

    return call


LABELS = np.array([[k] for k in (0, 199, 3, 128, 127, 5, 198, 60, 9, 130, 131, 199, 1, 77, 150, 2)], np.int32)


def test_labels_that_lie_inside_choose_nothing_undefined() -> None:
    """Only the labels say that no padding is chosen: sampled where they are given, else it stays open."""
    theirs = lambda labels, x: jnp.take_along_axis(x, labels, 1)  # noqa: E731
    right = lp.same(chosen(0), theirs, LABELS, "f32[16,200]")
    assert right.verdict.value == "sampled", right.reason
    (undefined,) = (f for f in right.premises if f.question == "undefined_values")
    assert (undefined.verdict.value, undefined.decided_by) == ("sampled", "points")
    assert "undefined_values: sampled" in str(right)
    # label 199 + 1 is the first of the padding
    assert lp.same(chosen(1), lambda labels, x: x[:, :1], LABELS, "f32[16,200]").verdict.value == "refuted"
    assert lp.same(chosen(0), theirs, "s32[16,1]", "f32[16,200]").verdict.value == "unknown"


def test_integers_that_nobody_wrote_settle_nothing() -> None:
    """A flag that is read before it is written: no walk draws the one number that changes the result."""

    def body(x: Any, o: Any, flag: Any) -> None:
        o[...] = jnp.where(flag[0] == 12345, 0.0, x[...])

    call = pl.pallas_call(
        body, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32), scratch_shapes=[pltpu.SMEM((1,), jnp.int32)]
    )
    found = lp.same(call, lambda x: x, "f32[8,128]")
    assert found.verdict.value == "refuted"
    assert "it rests on initialised" in found.reason


def test_floats_that_nobody_wrote_and_nobody_uses() -> None:
    """They are undefined, which is seen; that they are read is no difference."""

    def body(x: Any, o: Any, held: Any) -> None:
        row = jax.lax.broadcasted_iota(jnp.int32, (8, 128), 0)
        o[...] = jnp.where(row < 8, x[...], held[...])

    call = pl.pallas_call(
        body, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32), scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)]
    )
    assert lp.same(call, lambda x: 2 * x / 2, "f32[8,128]").verdict.value in ("proved", "sampled")


def test_floats_that_nobody_wrote_beside_integers_that_were() -> None:
    """An output of integers is drawn until it is written; that says nothing of scratch that holds floats."""

    def body(x: Any, o: Any, sign: Any, held: Any) -> None:
        o[...] = jnp.where(x[...] == x[...], x[...], held[...])
        sign[...] = jax.lax.broadcasted_iota(jnp.int32, (8, 128), 0)

    shapes = [jax.ShapeDtypeStruct((8, 128), jnp.float32), jax.ShapeDtypeStruct((8, 128), jnp.int32)]
    call = pl.pallas_call(body, out_shape=shapes, scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)])
    found = lp.same(call, lambda x: [2 * x / 2, jax.lax.broadcasted_iota(jnp.int32, (8, 128), 0)], "f32[8,128]")
    assert found.verdict.value in ("proved", "sampled"), found.reason
