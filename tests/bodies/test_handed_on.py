"""One kernel starts a copy and hands its semaphore on, another waits: what comes between is looked at, too."""

from __future__ import annotations

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
from tests.said import Said, says

pytestmark = pytest.mark.slow

X = jax.ShapeDtypeStruct((8, 128), jnp.float32)
ANY, SEMAPHORE = pl.BlockSpec(memory_space=pl.ANY), pl.BlockSpec(memory_space=pltpu.SEMAPHORE)


def start(x: Any) -> Any:
    """The array itself, what it is copied to, and the semaphore."""

    def body(x: Any, same: Any, o: Any, arrived: Any) -> None:
        pltpu.make_async_copy(x, o, arrived).start()

    out, specs = (X, X, pltpu.SemaphoreType.DMA(())), (ANY, ANY, SEMAPHORE)
    return pl.pallas_call(body, out_shape=out, in_specs=[ANY], out_specs=specs, input_output_aliases={0: 0})(x)


def start_alone(x: Any) -> Any:
    """What the array is copied to, and the semaphore."""

    def body(x: Any, o: Any, arrived: Any) -> None:
        pltpu.make_async_copy(x, o, arrived).start()

    out, specs = (X, pltpu.SemaphoreType.DMA(())), (ANY, SEMAPHORE)
    return pl.pallas_call(body, out_shape=out, in_specs=[ANY], out_specs=specs)(x)


def done(x: Any, o: Any, arrived: Any, rows: int = 8) -> Any:
    def body(x: Any, given: Any, arrived: Any, o: Any) -> None:
        pltpu.make_async_copy(x.at[pl.ds(0, rows)], o.at[pl.ds(0, rows)], arrived).wait()

    specs = [ANY, ANY, SEMAPHORE]
    return pl.pallas_call(body, out_shape=X, in_specs=specs, out_specs=ANY, input_output_aliases={1: 0})(x, o, arrived)


def done_alone(o: Any, arrived: Any) -> Any:
    def body(given: Any, arrived: Any, o: Any) -> None:
        pltpu.make_async_copy(o, o, arrived).wait()

    specs = [ANY, SEMAPHORE]
    return pl.pallas_call(body, out_shape=X, in_specs=specs, out_specs=ANY, input_output_aliases={0: 0})(o, arrived)


def waited(x: Any, o: Any, arrived: Any) -> Any:
    """An array of its own; what was copied is not given on."""

    def body(x: Any, o: Any, arrived: Any, mine: Any) -> None:
        pltpu.make_async_copy(x, o, arrived).wait()
        mine[...] = jnp.zeros_like(mine)

    return pl.pallas_call(body, out_shape=X, in_specs=[ANY, ANY, SEMAPHORE])(x, o, arrived)


def plus_one(x: Any, in_place: bool = True) -> Any:
    def body(x: Any, o: Any) -> None:
        o[...] = x[...] + 1

    return pl.pallas_call(body, out_shape=X, input_output_aliases={0: 0} if in_place else {})(x)


def zeros_by_hand(x: Any) -> Any:
    """In place, by a copy of its own."""

    def body(x: Any, o: Any, buffer: Any, sent: Any) -> None:
        buffer[...] = jnp.zeros_like(buffer)
        copy = pltpu.make_async_copy(buffer, o, sent)
        copy.start()
        copy.wait()

    scratch = [pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA(())]
    options = {"in_specs": [ANY], "out_specs": ANY, "input_output_aliases": {0: 0}, "scratch_shapes": scratch}
    return pl.pallas_call(body, out_shape=X, **options)(x)


def plain(x: Any) -> Any:
    return done(*start(x))


def two(x: Any) -> Any:
    x, a, first = start(x)
    x, b, second = start(x)
    return done(x, a, first) + done(x, b, second)


def halves(x: Any) -> Any:
    x, o, arrived = start(x)
    return done(x, done(x, o, arrived, 4), arrived, 4)


def sized(loop: bool, same: bool) -> Callable[..., Any]:
    """Tables say how many rows are copied, in a loop how often, and how many are waited for. same: both are one."""

    def each(lens: Any, what: Callable[[Any], None]) -> None:
        if loop:
            lax.fori_loop(0, lens[1], lambda k, _: what(lens[0]), None)
        else:
            what(lens[0])

    def starts(lens: Any, x: Any, same: Any, o: Any, arrived: Any) -> None:
        # copies of a loop are of one row to one place: what is asked of the other kernel is their sum
        each(lens, lambda n: pltpu.make_async_copy(x.at[pl.ds(0, n)], o.at[pl.ds(0, n)], arrived).start())

    def waits(lens: Any, x: Any, given: Any, arrived: Any, o: Any) -> None:
        each(lens, lambda n: pltpu.make_async_copy(x.at[pl.ds(0, n)], o.at[pl.ds(0, n)], arrived).wait())

    def call(body: Any, ins: Any, outs: Any, shape: Any, aliases: dict[int, int]) -> Callable[..., Any]:
        grid = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(1,), in_specs=ins, out_specs=outs)
        return pl.pallas_call(body, out_shape=shape, grid_spec=grid, input_output_aliases=aliases)

    def function(x: Any) -> Any:
        lens = x[0, :2].astype(jnp.int32)
        other = lens if same else x[1, :2].astype(jnp.int32)
        shapes = (X, X, pltpu.SemaphoreType.DMA(()))
        x, o, arrived = call(starts, [ANY], (ANY, ANY, SEMAPHORE), shapes, {1: 0})(lens, x)
        return call(waits, [ANY, ANY, SEMAPHORE], ANY, X, {2: 0})(other, x, o, arrived)

    return function


def work_between(x: Any) -> Any:
    x, o, arrived = jax.jit(start)(x)
    y = jnp.sin(x)
    return jax.jit(done)(x, o, arrived) + y


def in_place_of_an_argument(x: Any) -> Any:
    """XLA copies an argument that is overwritten: the copy that runs reads what it was."""
    o, arrived = start_alone(x)
    return plus_one(x) + done(x, o, arrived)


def ordered_by_another(x: Any) -> Any:
    x, o, arrived = start(x)
    return waited(x, o, arrived) + o


def behind_a_barrier(x: Any) -> Any:
    x, o, arrived = start(x)
    x, o = lax.optimization_barrier((x, o))
    return done(x, o, arrived)


RIGHT = {
    "plain": plain,
    "an argument lasts": lambda x: done_alone(*start_alone(x)),
    "two": two,
    "in halves": halves,
    "as large as one table says": sized(loop=False, same=True),
    "work between": work_between,
    "jit": jax.jit(plain),
    "scan": lambda x: lax.scan(lambda c, _: (plain(c), None), x, None, length=3)[0],
    "in place of an argument": in_place_of_an_argument,
    "ordered by another result": ordered_by_another,
    "behind a barrier": behind_a_barrier,
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_copy_that_is_waited_for_in_another_kernel_is_proved(name: str) -> None:
    found = asked(RIGHT[name])
    assert [f.reason for f in found if f.verdict is not Verdict.PROVED] == []
    assert len(found) >= 2


def asked(function: Callable[..., Any]) -> list[Finding]:
    return [f for f in lp.kernels(function, X).findings if f.question == "dma_order"]


def not_waited(x: Any) -> Any:
    return start(x)[0]


def used_and_not_waited(x: Any) -> Any:
    x, o, _ = start(x)
    return x + o


def twice(x: Any) -> Any:
    x, o, arrived = start(x)
    return done(x, done(x, o, arrived), arrived)


def half(x: Any) -> Any:
    x, o, arrived = start(x)
    return done(x, o, arrived, 4)


def used_before(x: Any) -> Any:
    x, o, arrived = start(x)
    y = o + 1
    return done(x, o, arrived) + y


def read_in_blocks(x: Any) -> Any:
    x, o, arrived = start(x)
    y = plus_one(o, in_place=False)
    return done(x, o, arrived) + y


def between(change: Callable[..., Any], source: bool) -> Callable[..., Any]:
    """What is copied, or what it is copied to, is overwritten before anybody waits."""

    def function(x: Any) -> Any:
        x, o, arrived = start(x)
        return done(change(x), o, arrived) if source else done(x, change(o), arrived)

    return function


def both_are_used(x: Any) -> Any:
    """What is given on in place is used as it was, too: XLA copies it before it is there."""
    x, o, arrived = start(x)
    return o, done(x, o, arrived)


def given_away(x: Any) -> Any:
    def inner(x: Any) -> Any:
        o, arrived = start_alone(x)
        return plus_one(x), done_alone(o, arrived)

    return jax.jit(inner, donate_argnums=0)(x)


WRONG = {
    "nobody waits": (not_waited, Said("bodies.not_waited_for", word="outputs[2]")),
    "nobody waits, and it is used": (used_and_not_waited, "add"),
    "waited for twice": (twice, Said("bodies.too_few_bytes", size=4096, semaphore="args[2]", there=0)),
    "half is waited for": (half, Said("bodies.not_waited_for", word="outputs[2]")),
    "used before": (used_before, Said("bodies.used_in_flight", name="outputs[1]", way="into")),
    "read in blocks before": (read_in_blocks, "reads blocks of it"),
    "overwritten in blocks": (
        between(plus_one, source=False),
        Said("bodies.used_in_flight", name="outputs[1]", way="into"),
    ),
    "overwritten by hand": (
        between(zeros_by_hand, source=False),
        Said("bodies.used_in_flight", name="outputs[1]", way="into"),
    ),
    "the source overwritten in blocks": (
        between(plus_one, source=True),
        Said("bodies.used_in_flight", name="outputs[0]", way="out of"),
    ),
    "the source overwritten by hand": (
        between(zeros_by_hand, source=True),
        Said("bodies.while_in_flight", moving="a copy out of"),
    ),
    "used as it was": (both_are_used, "which XLA copies before"),
    "in place of an argument that was given away": (
        given_away,
        Said("bodies.used_in_flight", name="args[0]", way="out of"),
    ),
    "in a branch": (
        lambda x: lax.cond(x[0, 0] > 0, between(plus_one, False), lambda x: x, x),
        Said("bodies.used_in_flight", name="outputs[1]"),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_copy_that_nobody_waits_for_in_time_is_refuted(name: str) -> None:
    function, words = WRONG[name]
    (found,) = (f for f in asked(function) if f.verdict is Verdict.REFUTED)
    assert says(words, found.reason)
    assert found.file == __file__
    assert found.line > 0


def test_a_loop_of_waits_is_for_that_of_another_kernel() -> None:
    """The copies of the loop are all to one place, which is a question of the kernel that starts them alone."""
    verdicts = [f.verdict for f in asked(sized(loop=True, same=True))]
    assert verdicts == [Verdict.UNKNOWN, Verdict.PROVED]


def not_ordered(x: Any) -> Any:
    x, o, arrived = start(x)
    y = waited(x, o, arrived)
    return o * 2, y


def source_is_free(x: Any) -> Any:
    return done_alone(*start_alone(jnp.sin(x)))


def left_out(x: Any) -> Any:
    x, o, arrived = start(x)
    done(x, o, arrived)
    return x


def into_a_loop(x: Any) -> Any:
    x, o, arrived = start(x)
    return lax.fori_loop(0, 1, lambda i, c: done(x, o, arrived), x)


def argument_of_a_loop(x: Any) -> Any:
    """What a loop hands on is not the caller's to keep."""
    return lax.fori_loop(0, 3, lambda i, c: done_alone(*start_alone(c)), x)


OPEN = {
    "the semaphore leaves": (start, "hands on"),
    "not ordered": (not_ordered, "outputs[1]"),
    "the source is free": (source_is_free, Said("bodies.memory_of_others")),
    "the wait is left out": (left_out, "XLA eliminates it"),
    "the wait is in a loop": (into_a_loop, "goes into scan"),
    "as large as two tables say": (sized(loop=False, same=False), Said("bodies.enough_bytes")),
    "turns by two tables": (sized(loop=True, same=False), "counts something else"),
    "the source is a loop's": (argument_of_a_loop, Said("bodies.memory_of_others")),
}


@pytest.mark.parametrize("name", OPEN)
def test_what_the_function_does_not_say_is_unknown(name: str) -> None:
    function, words = OPEN[name]
    found = asked(function)
    assert {f.verdict for f in found} == {Verdict.UNKNOWN}
    assert any(says(words, f.reason) for f in found)
