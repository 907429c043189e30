"""Arrays that have one place: which elements share bytes is what counting bytes one by one shows."""

from __future__ import annotations

import random
from itertools import product
from math import prod

import pytest

from layoutproof.bodies.cells import Box
from layoutproof.bodies.effects import BodyReference
from layoutproof.bodies.moments import box_of
from layoutproof.bodies.one_place import in_others
from layoutproof.bodies.regions import ViewedRegion
from layoutproof.core.element_types import ELEMENT_BITS

Place = tuple[int, ...]


def flat(at: Place, dims: Place) -> int:
    found = 0
    for k, extent in zip(at, dims, strict=True):
        found = found * extent + k
    return found


def bytes_of_element(one: BodyReference, at: Place) -> range:
    """Of shared memory, where tiles of the last dimensions follow one another; of tensor memory the column."""
    assert one.within is not None
    if one.memory == "tmem":
        *batch, _, column = at
        many = one.dims[-1] // one.packing
        number = flat(tuple(batch), one.dims[:-2]) * many + column // one.packing
        return range(one.within[1] + number, one.within[1] + number + 1)
    tiling = one.tilings[0] if one.tilings else ()
    outer = len(one.dims) - len(tiling)
    inner = list(zip(at[outer:], tiling, strict=True))
    place = (*at[:outer], *(k // size for k, size in inner), *(k % size for k, size in inner))
    tiles = (n // size for n, size in zip(one.dims[outer:], tiling, strict=True))
    size = ELEMENT_BITS[one.dtype] // 8
    first = one.within[1] + flat(place, (*one.dims[:outer], *tiles, *tiling)) * size
    return range(first, first + size)


def elements(box: Box) -> set[Place]:
    return set(product(*(range(a, b) for a, b in box)))


def drawn(at_random: random.Random, tensor: bool) -> BodyReference:
    first = at_random.randrange(3) * (4 if tensor else 16)
    if tensor:
        dims = at_random.choice([(4, 8), (2, 4, 4), (4, 4)])
        packing = at_random.choice([1, 2])
        size = prod(dims[:-2]) * dims[-1] // packing
        lies = {"lanes": "whole", "packing": packing}
        return BodyReference("", "fresh", dims, "f32", "tmem", within=("all", first, first + size), **lies)
    tilings = at_random.choice([(), ((2, 4),), ((2,),)])
    dims = at_random.choice([(4, 8), (2, 4, 8), (6, 4)])
    dtype = at_random.choice(["f32", "bf16", "s8"])
    within = ("all", first, first + prod(dims) * ELEMENT_BITS[dtype] // 8)
    return BodyReference("", "fresh", dims, dtype, "shared", tilings=tilings, within=within)


@pytest.mark.parametrize("seed", range(200))
def test_what_is_touched_of_others_is_what_bytes_show(seed: int) -> None:
    at_random = random.Random(seed)
    one, other = (drawn(at_random, seed % 4 == 0) for _ in range(2))
    box = tuple(sorted(at_random.sample(range(extent + 1), 2)) for extent in one.dims)
    if at_random.random() < 0.3:
        box = tuple([0, extent] for extent in one.dims)
    region = ViewedRegion("", tuple((a, b - a, 1) for a, b in box), True)
    touched = {byte for at in elements(tuple((a, b) for a, b in box)) for byte in bytes_of_element(one, at)}
    everything = elements(tuple((0, extent) for extent in other.dims))
    shared = {at for at in everything if touched & set(bytes_of_element(other, at))}
    found = in_others(one, region, (one, other))
    shown = {at for part, _ in found for at in elements(box_of(part) or ())}
    # nothing that is touched is left out; tensor memory has all lanes in a column, of which a part may be touched
    assert shared <= shown
    for part, sure in found:
        if sure:
            assert elements(box_of(part) or ()) == shared


def test_rows_that_are_permuted_are_touched_together() -> None:
    """A swizzle of 32 bytes permutes parts of rows of 32 bytes among 8 of them."""
    rows = BodyReference("", "fresh", (32, 16), "bf16", "shared", swizzle=32, within=("all", 0, 1024))
    words = BodyReference("", "fresh", (256,), "f32", "shared", within=("all", 0, 1024))
    ((part, sure),) = in_others(rows, ViewedRegion("", ((1, 1, 1), (0, 16, 1)), True), (words,))
    assert (box_of(part), sure) == (((0, 64),), False)
    ((part, sure),) = in_others(words, ViewedRegion("", ((70, 4, 1),), True), (rows,))
    assert (box_of(part), sure) == (((0, 32), (0, 16)), False)
