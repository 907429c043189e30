"""Random small kernels of Triton, each with what it does by its definition, element by element on ints."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

from tests.pallas.triton_pairs import array, call


@dataclass(frozen=True)
class DrawnTriton:
    """A copy of an array of `extent` elements by `programs`, of `block` elements each.

    step, stride, offset: where the elements of a program are.  way: how it addresses them.  loads, stores: below which
    place the masks hold, None = no mask.  low: whether they leave out places below 0.  other: whether loads have a
    value for what is left out.  summed: whether all elements of a program are made of all.  atomic: whether it adds.
    """

    extent: int
    block: int
    programs: int
    step: int
    stride: int
    offset: int
    way: str
    loads: int | None
    stores: int | None
    low: bool
    other: bool
    summed: bool
    atomic: bool

    def wrong(self) -> dict[str, bool]:
        """Of each question whether its answer is no; of one that leaves the array that alone."""
        left, undefined, count = False, False, np.zeros(self.extent, int)
        for program in range(self.programs):
            at = program * self.step + np.arange(self.block) * self.stride + self.offset
            loaded, stored = (_held(at, bound, self.low, np) for bound in (self.loads, self.stores))
            outside = (at < 0) | (at >= self.extent)
            left = left or bool((outside & (loaded | stored)).any())
            bad = ~loaded & (not self.other)
            undefined = undefined or bool(((bad.any() if self.summed else bad) & stored).any())
            np.add.at(count, at[stored & ~outside], 1)
        if left:
            return {"body_in_bounds": True}
        found = {"body_in_bounds": False, "undefined_values": undefined}
        return found | (
            {"body_races": False}
            if self.atomic
            else {"body_races": bool((count > 1).any()), "outputs_stored": bool((count == 0).any())}
        )

    def function(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The call, and its arguments."""

        def body(x: Any, *refs: Any) -> None:
            first = pl.program_id(0) * self.step + self.offset
            at = first + jnp.arange(self.block) * self.stride
            where: dict[str, Any] = {
                "list": at,
                "slice": pl.ds(first, self.block, stride=self.stride),
                "block": slice(None),
            }
            loads, stores = (None if b is None else _held(at, b, self.low, jnp) for b in (self.loads, self.stores))
            other = 0.0 if self.other and loads is not None else None
            found = plgpu.load(x.at[where[self.way]], mask=loads, other=other)
            if self.summed:
                found = jnp.ones((self.block,), jnp.float32) * jnp.sum(found)
            if self.atomic:
                plgpu.atomic_add(refs[-1], (where[self.way],), found, mask=stores)
            else:
                plgpu.store(refs[-1].at[where[self.way]], found, mask=stores)

        given = (array(self.extent),) * (2 if self.atomic else 1)
        spec = pl.BlockSpec((self.block,), lambda i: (i,))
        options: dict[str, Any] = {"in_specs": [spec] * len(given), "out_specs": spec} if self.way == "block" else {}
        options |= {"input_output_aliases": {1: 0}} if self.atomic else {}
        return call(body, array(self.extent), (self.programs,), **options), given


def _held(at: Any, bound: int | None, low: bool, on: Any) -> Any:
    """Where a mask holds. on: NumPy, or JAX's."""
    if bound is None:
        return on.ones(at.shape, bool)
    return (at < bound) & (at >= 0) if low else at < bound


def drawn(seed: int) -> DrawnTriton:
    """A kernel at random."""
    some = random.Random(seed)
    extent, block, way = some.choice([7, 16, 33, 40]), some.choice([4, 8]), some.choice(["list", "slice", "block"])
    bounds: list[int | None] = [None, extent, extent, extent + 1, extent - 1]
    step, stride, offset = (
        some.choice([block, block, block - 1, block + 1]),
        some.choice([1, 1, 2]),
        some.choice([0, 0, 1]),
    )
    if way == "block":
        step, stride, offset = block, 1, 0
    return DrawnTriton(
        extent, block, some.choice([1, 2, 4, 5]), step, stride, offset, way, some.choice(bounds), some.choice(bounds),
        some.random() < 0.5, some.random() < 0.5, some.random() < 0.3, some.random() < 0.3,
    )  # fmt: skip
