"""Shapes that waste nothing: no shape with fewer elements does, by trying all of them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from math import prod

import pytest

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.layouts import xla
from layoutproof.layouts.xla.shape import XlaLayout
from layoutproof.registry.defaults import tpu_default
from layoutproof.searching.padded_shapes import nearest_full, wasted
from tests.said import stretch

TYPES = ("f32", "bf16", "s8", "pred", "s4", "u2", "u1", "f64")


def shape(text: str) -> XlaLayout:
    read = xla.read(text)
    assert isinstance(read, XlaLayout)
    return read


def between(dims: tuple[int, ...], most: int) -> Iterator[tuple[int, ...]]:
    """All shapes at least as large as `dims` in every dimension, with fewer than `most` elements."""
    if not dims:
        if most > 1:
            yield ()
        return
    rest = prod(dims[1:])
    for extent in range(dims[0], (most - 1) // rest + 1):
        for more in between(dims[1:], -(-most // extent)):
            yield (extent, *more)


def any_shape(rng: random.Random) -> XlaLayout:
    while True:
        dims = [rng.choice((1, 2, 3, 5, 8, 9, 17, 40, 120, 127, 130)) for _ in range(rng.choice((1, 2, 2, 3)))]
        if prod(dims) <= 3000:
            return shape(f"{rng.choice(TYPES)}[{','.join(map(str, dims))}]")


# from 110 on: elements of one or two bits, of which all but a part of the last byte is not all
@pytest.mark.parametrize("seed", [*range(80), 110, 378, 520, 843, 942])
def test_no_smaller_shape_wastes_nothing(seed: int) -> None:
    rng = random.Random(seed)
    array, target = any_shape(rng), rng.choice(list(CHIPS))
    answer = nearest_full(array, target)
    assert answer.full is not None
    dims = tuple(map(int, array.dims))
    grown = tuple(map(int, answer.full.dims))
    assert wasted(tpu_default(replace(array, dims=grown), target)) == 0
    assert all(a >= b for a, b in zip(grown, dims, strict=True))
    assert answer.growth == prod(grown) - prod(dims)
    for smaller in between(dims, min(prod(grown), 9000)):
        # every tile has 128 lanes; 1-dimensional ones too
        if any(n % 128 == 0 for n in smaller) or rng.random() < 0.01:
            assert wasted(tpu_default(replace(array, dims=smaller), target)) > 0, smaller


@pytest.mark.parametrize("seed", range(40))
def test_in_a_layout_that_is_kept(seed: int) -> None:
    rng = random.Random(seed)
    dims = [rng.choice((1, 2, 3, 5, 8, 9, 17)) for _ in range(rng.choice((1, 2, 3)))]
    order = rng.sample(range(len(dims)), len(dims))
    tile = [rng.choice((1, 2, 4, 5)) for _ in range(rng.randint(1, len(dims)))]
    text = f"f32[{','.join(map(str, dims))}]{{{','.join(map(str, order))}:T({','.join(map(str, tile))})}}"
    layout = shape(text)
    answer = nearest_full(layout, "v5e", given=True)
    assert answer.full is not None
    assert wasted(answer.full) == 0
    for smaller in between(tuple(dims), prod(map(int, answer.full.dims))):
        assert wasted(replace(layout, dims=smaller)) > 0, (text, smaller)


def test_some_that_people_know() -> None:
    vocabulary = nearest_full(shape("bf16[50257,4096]"), "v5e")
    assert vocabulary.full is not None
    assert vocabulary.full.dims == (50264, 4096)
    assert nearest_full(shape("f32[8,128]"), "v5e").growth == 0
    scalar = nearest_full(shape("f32[]"), "v5e")
    assert scalar.full is None
    assert "512 bytes" in scalar.reason


def test_layouts_that_no_rule_covers() -> None:
    with pytest.raises(Undecided, match=re.escape(stretch("searching.no_padding_rule"))):
        nearest_full(shape("f32[100]{0:T(8)L(1024)}"), "v5e", given=True)
    with pytest.raises(LayoutError, match="no multiple"):
        nearest_full(shape("f32[5,7,3]{2,1,0:T(*,8,4)}"), "v5e", given=True)
