"""Schedules that a body writes into scalar memory, entry after entry, and reads: each with twins that leave one out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge

pytestmark = pytest.mark.slow

GROUPS, STEPS, TILE = 4, 11, 8
SIZES = (3, 8, 0, 13)


def scheduled(
    late: int = 0, far: int = 0, more: int = 0, further: int = 0, guard: bool = False, interpret: Any = False
) -> Callable[..., Any]:
    """A call whose body lists the tiles of groups of rows, and then adds up what the list says.

    Of the list: late = its entries begin so much later; far = where tiles end is stored so much further; guard = odd
    groups store nothing.  Of what reads it: more = so many more tiles, further = it looks so much further.
    """

    def body(sizes: Any, out: Any, groups: Any, starts: Any) -> None:
        starts[0] = 0

        def tile(k: Any, at: Any, *, end: Any, group: Any) -> Any:
            size = jnp.minimum(TILE - at % TILE, end - at)

            def store() -> None:
                groups[k + late] = group
                starts[k + 1 + far] = at + size

            if guard:
                pl.when(group % 2 == 0)(store)
            else:
                store()
            return at + size

        def group(g: Any, carry: Any) -> Any:
            known, at = carry
            size = sizes[g]
            tiles = jnp.where(size > 0, pl.cdiv(size + at % TILE, TILE), 0)
            lax.fori_loop(known, known + tiles, partial(tile, end=at + size, group=g), at)
            return known + tiles, at + size

        known, _ = lax.fori_loop(0, sizes[GROUPS], group, (0, 0))

        def add(k: Any, total: Any) -> Any:
            return total + groups[k + further] + 100 * starts[k + 1 + further] - starts[k]

        out[0] = lax.fori_loop(0, known + more, add, 0)

    return pl.pallas_call(
        body,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(1,),
            in_specs=[],
            out_specs=pl.BlockSpec(memory_space=pltpu.SMEM),
            scratch_shapes=[pltpu.SMEM((STEPS + 3,), jnp.int32), pltpu.SMEM((STEPS + 4,), jnp.int32)],
        ),
        out_shape=jax.ShapeDtypeStruct((1,), jnp.int32),
        interpret=interpret,
    )


def verdict(function: Callable[..., Any], question: str) -> Verdict:
    """What is said of one question: refuted over unknown over proved."""
    (call,) = kernels_of(function, [jax.ShapeDtypeStruct((GROUPS + 1,), jnp.int32)])
    assert isinstance(call, Kernel)
    return min(f.verdict for f in judge(call, names=[question]) if f.severity == "error")


WRONG = {
    "begins late": {"late": 1},
    "ends are stored too far": {"far": 1},
    "odd groups store nothing": {"guard": True},
    "one more is read": {"more": 1},
    "what is ahead is read": {"further": 1},
}


def runs_right(wrong: dict[str, Any]) -> bool:
    """Whether JAX's interpreter, whose new memory holds the largest number, gives what the list of tiles adds up to."""
    ends = [sum(SIZES[:g]) for g in range(GROUPS + 1)]
    tiles = [
        (g, max(ends[g], at), min(ends[g + 1], at + TILE))
        for g in range(GROUPS)
        for at in range(ends[g] // TILE * TILE, ends[g + 1], TILE)
        if ends[g] < ends[g + 1]
    ]
    given = jnp.asarray([*SIZES, GROUPS], jnp.int32)
    found = int(scheduled(**wrong, interpret=True)(given)[0])
    return found == sum(g + 100 * end - start for g, start, end in tiles)


def test_what_a_counter_appends_is_written() -> None:
    assert runs_right({})
    assert verdict(scheduled(), "initialised") is Verdict.PROVED


@pytest.mark.parametrize("name", WRONG)
def test_what_it_leaves_out_is_not(name: str) -> None:
    assert not runs_right(WRONG[name])
    assert verdict(scheduled(**WRONG[name]), "initialised") is not Verdict.PROVED
