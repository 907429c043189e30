"""A loop that starts copies and one that waits for them, of which a table says how often they run."""

import itertools
import random

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof as lp
from layoutproof.core.result import Verdict

pytestmark = pytest.mark.slow

MOST = 4
"""Turns at most."""
RIGHT = (8, 8, 8, 0, False, False, "")
SHAPES = [
    *itertools.product((8, 4, 16), (8, 4), (8, 4), (0, 1, -1), (False, True), (False, True), ("", "table", "order")),
]
"""Rows from one copy to the next, rows that each copies, and that each turn waits for; turns that are waited for more;
whether copies are read before the wait; whether they are of two semaphores; whether a table says where each copy goes,
or the wait is for the size of another turn."""


def copied(shape, turns=None):
    """A kernel that copies some parts of an array into scratch, and then out."""
    step, rows, waited, more, early, apart, by = shape

    def body(lens, starts, sizes, x, o, buffer, semaphore, last):
        number = lens[0] if turns is None else turns

        def start(k):
            at = pl.ds(starts[k] if by == "table" else k * step, sizes[k] if by == "order" else rows)
            return pltpu.make_async_copy(x.at[at], buffer.at[at], semaphore.at[0])

        def wait(k):
            at = pl.ds(0, sizes[k] if by == "order" and not apart else waited)
            return pltpu.make_async_copy(x.at[at], buffer.at[at], semaphore.at[int(apart and by != "order")])

        out = pltpu.make_async_copy(buffer, o, last)
        jax.lax.fori_loop(0, number, lambda k, _: start(k).start(), None)
        if early:
            out.start()
            out.wait()
        jax.lax.fori_loop(0, number + more, lambda k, _: wait(k).wait(), None)
        if not early:
            out.start()
            out.wait()

    array = jax.ShapeDtypeStruct((128, 128), jnp.float32)
    return pl.pallas_call(
        body,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=3,
            grid=(1,),
            in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
            out_specs=pl.BlockSpec(memory_space=pl.ANY),
            scratch_shapes=[
                pltpu.VMEM(array.shape, array.dtype),
                pltpu.SemaphoreType.DMA((2,)),
                pltpu.SemaphoreType.DMA,
            ],
        ),
        out_shape=array,
    )


def verdict(shape, turns=None, assume=(), batch=()):
    """What is said of the order of copies, of so many turns or of any number of them, of one array or of a batch."""
    table, array = jax.ShapeDtypeStruct((MOST + 2,), "int32"), jax.ShapeDtypeStruct((*batch, 128, 128), "float32")
    given = [*assume, *([f"0 <= prefetch0 < {MOST + 1}"] if turns is None else [])]
    args = jax.ShapeDtypeStruct((1,), "int32"), table, table, array
    function = copied(shape, turns)
    if batch:
        function = jax.vmap(function, in_axes=(None, None, None, 0))
    found = lp.kernels(function, *args, properties=("dma_order",), assume=given).findings
    (said,) = {f.verdict for f in found if f.severity == "error"}
    return said


@pytest.mark.parametrize("shape", [RIGHT, *random.Random(33).sample(SHAPES, 30)], ids=str)
def test_any_number_of_turns_is_proved_where_each_number_is(shape):
    each = {verdict(shape, turns) for turns in range(MOST + 1)}
    found = verdict(shape)
    assert found is not Verdict.PROVED or each == {Verdict.PROVED}, each
    assert found is not Verdict.REFUTED or Verdict.REFUTED in each
    if not shape[-1]:
        assert (found is Verdict.PROVED) == (each == {Verdict.PROVED}), (found, each)


@pytest.mark.parametrize(
    ("shape", "assume", "wanted"),
    [
        (RIGHT, (), Verdict.PROVED),
        # each turn copies half of what the next one does
        ((8, 16, 16, 0, False, False, ""), (), Verdict.UNKNOWN),
        ((8, 8, 4, 0, False, False, ""), (), Verdict.UNKNOWN),
        ((8, 8, 8, 1, False, False, ""), (), Verdict.UNKNOWN),
        ((8, 8, 8, 0, True, False, ""), (), Verdict.UNKNOWN),
        ((8, 8, 8, 0, False, False, "table"), (), Verdict.UNKNOWN),
        ((8, 1, 1, 0, False, False, "table"), ("prefetch1 is injective",), Verdict.PROVED),
        ((8, 8, 8, 0, False, False, "order"), ("0 <= prefetch2 < 9",), Verdict.PROVED),
        ((8, 8, 8, 0, False, False, "order"), ("0 <= prefetch2 < 10",), Verdict.UNKNOWN),
        ((8, 8, 8, 0, False, True, "order"), ("0 <= prefetch2 < 9",), Verdict.UNKNOWN),
    ],
    ids=str,
)
def test_sums_of_turns(shape, assume, wanted):
    """Rows of which a table says how many are waited for, too, one turn after the other."""
    assert verdict(shape, assume=assume) is wanted


@pytest.mark.parametrize("shape", [RIGHT, (8, 16, 16, 0, False, False, ""), (8, 8, 8, 1, False, False, "")], ids=str)
def test_a_batch_of_arrays_is_judged_as_one(shape):
    assert verdict(shape, batch=(3,)) is verdict(shape)
