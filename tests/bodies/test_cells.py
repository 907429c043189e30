"""Numbers that a body stores to scalar memory and loads again: slots of double buffers, flags, over programs."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof as lp
from layoutproof.core.result import Verdict

pytestmark = pytest.mark.slow

X = jax.ShapeDtypeStruct((4, 8, 128), jnp.float32)


def buffered(
    turns: bool = True,
    first: bool = True,
    last: bool = False,
    semantics: str = "arbitrary",
    other: bool = False,
    start: int | None = 0,
    slots: int = 2,
    buffers: int = 0,
) -> Any:
    """Each program starts the copy that the next one waits for, into the slot that a number in SMEM names.

    turns: whether the slots take turns.  first: whether the first program starts its own copy.  last: whether the last
    one starts one more.  other: whether something that is not known is stored over the number.  start: the first slot,
    None = not said.  slots: how many take turns.  buffers: how many there are, 0 = as many.
    """

    def body(x: Any, o: Any, buffer: Any, slot: Any, semaphores: Any) -> None:
        i = pl.program_id(0)

        def copy(k: Any, to: Any) -> Any:
            return pltpu.make_async_copy(x.at[k], buffer.at[to], semaphores.at[to])

        @pl.when(i == 0)
        def _() -> None:
            if start is not None:
                slot[0] = start
            if first:
                copy(0, start or 0).start()

        mine = slot[0]
        following = 1 - mine if slots == 2 else jax.lax.rem(mine + 1, slots)

        @pl.when(i >= 0 if last else i + 1 < 4)
        def _() -> None:
            copy(jnp.minimum(i + 1, 3), following).start()

        copy(i, mine).wait()
        o[0] = buffer[mine]
        slot[0] = following if turns else mine
        if other:
            slot[jnp.minimum(i, 0)] = (o[0, 0, 0] > 0).astype(jnp.int32)

    return pl.pallas_call(
        body,
        grid=(4,),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec((1, 8, 128), lambda i: (i, 0, 0)),
        out_shape=X,
        scratch_shapes=[
            pltpu.VMEM((buffers or slots, 8, 128), jnp.float32),
            pltpu.SMEM((1,), jnp.int32),
            pltpu.SemaphoreType.DMA((buffers or slots,)),
        ],
        compiler_params=pltpu.CompilerParams(dimension_semantics=(semantics,)),
    )


def verdicts(call: Any, *names: str) -> list[Verdict]:
    found = lp.kernels(call, X, properties=list(names)).findings
    return [min(f.verdict for f in found if f.question == name) for name in names]


@pytest.mark.parametrize(
    ("how", "verdict"),
    [
        ({}, Verdict.PROVED),
        ({"semantics": "parallel"}, Verdict.UNKNOWN),
        ({"other": True}, Verdict.UNKNOWN),
        ({"start": 1}, Verdict.PROVED),
        ({"start": 2}, Verdict.REFUTED),
        # programs that are run one after the other show slot 2 of 2
        ({"start": 2, "first": False}, Verdict.REFUTED),
        ({"start": None}, Verdict.UNKNOWN),
        ({"slots": 3}, Verdict.PROVED),
        ({"slots": 3, "buffers": 2}, Verdict.REFUTED),
    ],
)
def test_slots_stay_within_their_buffer(how: dict[str, Any], verdict: Verdict) -> None:
    assert verdicts(buffered(**how), "body_in_bounds") == [verdict]


def test_slots_that_take_turns_are_in_order_and_written() -> None:
    assert verdicts(buffered(), "dma_order", "initialised") == [Verdict.PROVED, Verdict.PROVED]


@pytest.mark.parametrize(
    "wrong",
    [
        {"turns": False},
        {"first": False},
        {"last": True},
    ],
)
def test_a_slot_that_nobody_waits_for_is_refuted(wrong: dict[str, bool]) -> None:
    assert verdicts(buffered(**wrong), "dma_order") == [Verdict.REFUTED]


@pytest.mark.parametrize("open_", [{"semantics": "parallel"}, {"other": True}])
def test_a_slot_that_is_not_known_proves_nothing(open_: dict[str, Any]) -> None:
    found = verdicts(buffered(**open_), "dma_order", "initialised")
    assert Verdict.PROVED not in found
    assert found[0] is Verdict.UNKNOWN
