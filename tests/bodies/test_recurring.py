"""Pipelines by hand whose number of turns a table says: each is right exactly where it is for every number of turns."""

import itertools
import random

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import layoutproof as lp
from layoutproof.core.result import Verdict

pytestmark = pytest.mark.slow

ASKED = ("dma_order", "initialised")
MOST = 6
"""Turns at most."""
SHAPES = [*itertools.product((1, 2, 3), (1, 2), (0, 1), (0, 1), (False, True), (False, True))]
"""Buffers; turns by which a copy is ahead; what the bounds of the first and of the next copies are off by; whether the
wait takes the next slot; whether a copy is started after the wait for the one of this turn."""


def of_one_program(body, buffers, semaphores):
    """The call of a body of one program with a table, pages that stay where they are, a ring of buffers, semaphores."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    return pl.pallas_call(
        body,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(1,),
            in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
            out_specs=pl.BlockSpec((8, 128), lambda i, lens: (0, 0)),
            scratch_shapes=[pltpu.VMEM((buffers, 8, 128), jnp.float32), pltpu.SemaphoreType.DMA((semaphores,))],
        ),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
    )


def pipeline(buffers, ahead, first, bound, astray, after, turns=None):
    """A kernel of one program that brings `lens[0]` pages in, or so many turns, through a ring of buffers.

    buffers: of the ring.  ahead: turns by which a copy is started before its page is read.  first, bound: what the
    conditions on the first copies and on the next ones are off by.  astray: waits on the slot of the next page.
    after: starts the next copy after the wait for this page.
    """
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def body(lens, pages, out, buffer, semaphore):
        number = lens[0] if turns is None else turns
        out[...] = jnp.zeros_like(out)

        def copy(j):
            return pltpu.make_async_copy(pages.at[j], buffer.at[j % buffers], semaphore.at[j % buffers])

        for k in range(ahead):
            pl.when(number > k - first)(lambda k=k: copy(k).start())

        def turn(j, _):
            def following():
                pl.when(j + ahead < number + bound)(lambda: copy(j + ahead).start())

            if not after:
                following()
            slot = (j + astray) % buffers
            pltpu.make_async_copy(pages.at[j], buffer.at[slot], semaphore.at[slot]).wait()
            out[...] += buffer[j % buffers]
            if after:
                following()

        jax.lax.fori_loop(0, number, turn, None)

    return of_one_program(body, buffers, buffers)


def verdict(shape, turns=None):
    """The worst verdict of a pipeline, of so many turns or of any number of them."""
    import jax

    lens, pages = jax.ShapeDtypeStruct((1,), "int32"), jax.ShapeDtypeStruct((MOST + 4, 8, 128), "float32")
    assume = {} if turns is not None else {"assume": [f"0 <= prefetch0 < {MOST + 1}"]}
    answer = lp.kernels(pipeline(*shape, turns=turns), lens, pages, properties=ASKED, **assume)
    found = {f.verdict for f in answer.findings if f.severity == "error"}
    assert found
    return next(v for v in (Verdict.REFUTED, Verdict.UNKNOWN, Verdict.PROVED) if v in found)


@pytest.mark.parametrize("shape", random.Random(33).sample(SHAPES, 24))
def test_any_number_of_turns_is_each_number(shape):
    """Proved of any number of turns exactly where it is proved of each; nothing wrong is proved, or refuted as sure."""
    each = {verdict(shape, turns) for turns in range(MOST + 1)}
    found = verdict(shape)
    assert (found is Verdict.PROVED) == (each == {Verdict.PROVED}), (shape, found, each)
    assert found is not Verdict.REFUTED or Verdict.REFUTED in each


def test_the_sample_has_right_and_wrong_ones():
    """A ring of two, one page ahead, is right; a copy into the buffer that is read is wrong."""
    assert verdict((2, 1, 0, 0, False, False)) is Verdict.PROVED
    assert verdict((3, 2, 0, 0, False, True)) is Verdict.PROVED
    assert verdict((1, 1, 0, 0, False, False)) is not Verdict.PROVED
    assert verdict((2, 2, 0, 0, False, False)) is not Verdict.PROVED


def begun_by_a_table(turns: bool):
    """A copy on a semaphore that a table names is under way while a loop starts copies that nothing waits for."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def body(lens, pages, out, first, buffer, named, semaphore):
        out[...] = jnp.zeros_like(out)
        begun = pltpu.make_async_copy(pages.at[0], first, named.at[lens[0]])
        begun.start()
        if turns:
            copy = pltpu.make_async_copy(pages.at[1], buffer, semaphore)
            jax.lax.fori_loop(0, lens[0], lambda j, _: copy.start(), None)
        begun.wait()

    return pl.pallas_call(
        body,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(1,),
            in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
            out_specs=pl.BlockSpec((8, 128), lambda i, lens: (0, 0)),
            scratch_shapes=[
                pltpu.VMEM((8, 128), jnp.float32),
                pltpu.VMEM((8, 128), jnp.float32),
                pltpu.SemaphoreType.DMA((MOST + 1,)),
                pltpu.SemaphoreType.DMA,
            ],
        ),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
    )


@pytest.mark.parametrize(("turns", "expected"), [(False, Verdict.PROVED), (True, Verdict.UNKNOWN)])
def test_a_slot_that_is_not_known_before_the_loop_hides_no_turn(turns, expected):
    """Ways into the loop are never dropped: where nothing recurs, what the turns leave in flight is not proved."""
    import jax

    lens, pages = jax.ShapeDtypeStruct((1,), "int32"), jax.ShapeDtypeStruct((2, 8, 128), "float32")
    answer = lp.kernels(
        begun_by_a_table(turns), lens, pages, properties="dma_order", assume=f"0 <= prefetch0 < {MOST + 1}"
    )
    assert {f.verdict for f in answer.findings} == {expected}, str(answer)


def early(following: int, wrong: bool):
    """A loop of an unknown number of turns, each of which brings a page in, and then moves rows.

    following: how many rows a turn moves, one by one.  wrong: reads the page before it waits for it.
    """
    import jax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def body(lens, pages, out, buffer, semaphore):
        def turn(j, _):
            page = pltpu.make_async_copy(pages.at[j], buffer.at[0], semaphore.at[1])
            page.start()
            if wrong:
                out[...] = buffer[0]
            page.wait()

            @pl.loop(0, following)
            def _(row):
                copy = pltpu.make_async_copy(pages.at[j, row % 8], buffer.at[0, row % 8], semaphore.at[0])
                copy.start()
                copy.wait()

        jax.lax.fori_loop(0, lens[0], turn, None)
        out[...] = buffer[0]

    return of_one_program(body, 1, 2)


def test_one_problem_ends_a_try():
    """What stands after it in a turn costs nothing: the turns are given up, and stand for no other program."""
    import jax

    from layoutproof.bodies.in_flight import walked, walked_alike

    lens, pages = jax.ShapeDtypeStruct((1,), "int32"), jax.ShapeDtypeStruct((8, 8, 128), "float32")

    def steps(following: int, wrong: bool) -> tuple[int, int]:
        answer = lp.kernels(early(following, wrong), lens, pages, properties=["dma_order"])
        assert {f.verdict for f in answer.findings} == {Verdict.UNKNOWN if wrong else Verdict.PROVED}
        (call,) = answer.calls
        alike, alone = walked_alike(call.call)
        assert alone != wrong
        return alike.steps, 0 if alone else walked(call.call)[0].steps

    assert steps(8, wrong=True)[0] == steps(800, wrong=True)[0]
    # a walk that goes on looks once for what is sure; the tries of turns that recur are given up
    assert steps(800, wrong=True)[1] < 2 * steps(800, wrong=False)[0]
