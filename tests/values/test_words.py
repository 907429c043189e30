"""Elements that share a word: taken apart and put together by shifts, masks and casts of bits."""

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

X = "bf16[32,128]"
HIGH = np.uint32(0xFFFF0000)


def rows(low: Any, high: Any, view: bool = True) -> Any:
    """Pairs of rows as words, each taken apart by a function of its word."""

    def body(x: Any, even: Any, odd: Any) -> None:
        words = x.bitcast(jnp.uint32)[...] if view else pltpu.bitcast(x[...], jnp.uint32)
        even[...] = pltpu.bitcast(low(words), jnp.float32)
        odd[...] = pltpu.bitcast(high(words), jnp.float32)

    return pl.pallas_call(body, out_shape=[jax.ShapeDtypeStruct((16, 128), jnp.float32)] * 2)


def apart(x: Any) -> Any:
    wide = x.astype(jnp.float32)
    return wide[0::2], wide[1::2]


@pytest.mark.parametrize("view", [True, False])
def test_words_are_taken_apart(view: bool) -> None:
    """The lower half is the first of two rows; both of the same half, or the halves exchanged, are wrong."""
    lower, upper = lambda w: w << 16, lambda w: w & HIGH
    right = lp.same(rows(lower, upper, view), apart, X)
    assert right.verdict.value == "sampled", right.reason
    for low, high in ((upper, lower), (lower, lower), (lower, lambda w: (w >> 16) << 16 << 16)):
        wrong = lp.same(rows(low, high, view), apart, X)
        assert wrong.verdict.value == "refuted", wrong.reason


def test_a_shift_or_a_mask_within_an_element_is_unknown() -> None:
    """Bits of an element are no number, and what is left of them is not modelled."""
    for low, said in ((lambda w: w << 8, "shifted by a part of 16"), (lambda w: w & np.uint32(0xFF), "a mask that")):
        found = lp.same(rows(low, lambda w: w & HIGH), apart, X)
        assert (found.verdict.value, said in found.reason) == ("unknown", True), found.reason
    whole = lp.same(rows(lambda w: w, lambda w: w & HIGH), apart, X)
    assert (whole.verdict.value, "the bits of bf16 as f32" in whole.reason) == ("unknown", True)


def packed(swapped: bool) -> Any:
    """Two halves of the rows, one beside the other in words, and the words as rows again."""

    def body(x: Any, o: Any) -> None:
        first, second = x[:16], x[16:]
        if swapped:
            first, second = second, first
        low = jax.lax.bitcast_convert_type(first, jnp.uint16).astype(jnp.uint32)
        high = jax.lax.bitcast_convert_type(second, jnp.uint16).astype(jnp.uint32)
        o[...] = pltpu.bitcast(low | (high << 16), jnp.bfloat16)

    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((32, 128), jnp.bfloat16))


def test_words_are_put_together() -> None:
    """Row i of the first half, row i of the second, and so on."""

    def theirs(x: Any) -> Any:
        return jnp.stack([x[:16], x[16:]], 1).reshape(32, 128)

    assert lp.same(packed(False), theirs, X).verdict.value == "sampled"
    assert lp.same(packed(True), theirs, X).verdict.value == "refuted"


def test_words_are_stored_to_a_view() -> None:
    """What is stored as words is there as rows; a row further it is another one."""

    def moved(by: int) -> Any:
        def body(x: Any, o: Any) -> None:
            o[...] = jnp.zeros_like(o)
            o.bitcast(jnp.uint32)[by : by + 8] = x.bitcast(jnp.uint32)[:8]

        return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((32, 128), jnp.bfloat16))

    def theirs(x: Any) -> Any:
        return jnp.zeros_like(x).at[8:24].set(x[:16])

    right = lp.same(moved(4), theirs, X)
    assert right.verdict.value == "sampled", right.reason
    assert lp.same(moved(5), theirs, X).verdict.value == "refuted"


def through_words(read: Any, dtype: Any) -> Any:
    """Blocks of words that are copied through a ring of three buffers of integers; read: from which each goes on."""

    def body(x: Any, o: Any, ring: Any, arrived: Any) -> None:
        def moved(source: Any, target: Any) -> None:
            copy = pltpu.make_async_copy(source, target, arrived)
            copy.start()
            copy.wait()

        for k in range(2):
            moved(x.bitcast(jnp.int32).at[pl.ds(8 * k, 8)], ring.at[k])
        for k in range(2):
            moved(ring.at[read(k)], o.bitcast(jnp.int32).at[pl.ds(8 * k, 8)])

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    return lambda x: pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x.shape, dtype),
        in_specs=[anywhere],
        out_specs=anywhere,
        scratch_shapes=[pltpu.VMEM((3, 8, 128), jnp.int32), pltpu.SemaphoreType.DMA],
    )(x)


@pytest.mark.parametrize(("dtype", "count"), [(jnp.float32, 16), (jnp.bfloat16, 32)])
def test_words_are_copied_through_memory_that_nobody_has_filled(dtype: Any, count: int) -> None:
    """What is in it before may be any integers, and is no data: a block that was never filled is no zeros."""
    x = jax.ShapeDtypeStruct((count, 128), dtype)
    assert lp.same(through_words(lambda k: k, dtype), lambda x: x, x).verdict.value == "sampled"
    for read in (lambda k: 1 - k, lambda k: 0):
        assert lp.same(through_words(read, dtype), lambda x: x, x).verdict.value == "refuted"
    assert lp.same(through_words(lambda k: 2, dtype), jnp.zeros_like, x).verdict.value == "refuted"


def second_rows(take: Any) -> Any:
    """The second row of each two, taken out of signed words, between rows of zeros."""

    def body(x: Any, o: Any) -> None:
        o.bitcast(jnp.int32)[...] = take(x.bitcast(jnp.int32)[...])

    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((32, 128), jnp.bfloat16))


@pytest.mark.parametrize(
    ("take", "verdict"),
    [
        (lambda w: (w >> 16) & 0xFFFF, "sampled"),
        (lambda w: jax.lax.shift_right_logical(w, 16), "sampled"),
        (lambda w: w & 0xFFFF, "refuted"),
        # what is above are copies of the sign, and no zeros
        (lambda w: w >> 16, "unknown"),
        (lambda w: (w >> 32) & 0xFFFF, "unknown"),
        (lambda w: ((w >> 16) & 0xFFFF) | (w & 0xFFFF0000 - (1 << 32)), "refuted"),
    ],
)
def test_copies_of_a_sign_are_masked_off(take: Any, verdict: str) -> None:
    def wanted(x: Any) -> Any:
        return jnp.stack([x[1::2], jnp.zeros_like(x[1::2])], 1).reshape(x.shape)

    found = lp.same(second_rows(take), wanted, X)
    assert found.verdict.value == verdict, found.reason
