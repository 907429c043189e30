"""Layouts of arrays: against every permutation of dimensions, and the documented case."""

from __future__ import annotations

import itertools
import random

import pytest

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.layouts import xla
from layoutproof.layouts.xla.shape import XlaLayout
from layoutproof.questions.cheapest import padded_bytes, with_order
from layoutproof.registry.defaults import tpu_default
from layoutproof.searching.array_layouts import MOST_NAMES, best_layouts, shared_order, unpadded_bytes
from tests.recorded import rows

pytestmark = pytest.mark.slow

TYPES = ("f32", "bf16", "s8", "s4", "pred")
EXTENTS = (1, 2, 3, 5, 8, 9, 40, 64, 100, 128, 129, 300, 640)


def shape(text: str) -> XlaLayout:
    read = xla.read(text)
    assert isinstance(read, XlaLayout)
    return read


def any_arrays(rng: random.Random) -> dict[str, tuple[XlaLayout, tuple[str, ...]]]:
    sizes = {name: rng.choice(EXTENTS) for name in "abcde"[: rng.randint(2, 5)]}
    found = {}
    for k in range(rng.randint(1, 4)):
        own = tuple(rng.sample(sorted(sizes), rng.randint(0, min(3, len(sizes)))))
        dims = ",".join(str(sizes[name]) for name in own)
        found[f"array{k}"] = (shape(f"{rng.choice(TYPES)}[{dims}]"), own)
    return found


def together(arrays: dict[str, tuple[XlaLayout, tuple[str, ...]]], order: tuple[str, ...], target: str) -> int:
    """Bytes of all arrays when each has its dimensions in the order of the names."""
    total = 0
    for array, own in arrays.values():
        layout = tpu_default(array, target)
        if len(own) > 1:
            layout = with_order(layout, tuple(own.index(name) for name in order if name in own), target)
        total += padded_bytes(layout)
    return total


@pytest.mark.parametrize("seed", range(60))
def test_no_order_takes_fewer_bytes(seed: int) -> None:
    rng = random.Random(seed)
    target = rng.choice(list(CHIPS))
    array = shape(f"{rng.choice(TYPES)}[{','.join(str(rng.choice(EXTENTS)) for _ in range(rng.randint(2, 5)))}]")
    answer = best_layouts(array, target)
    every = list(itertools.permutations(range(len(array.dims))))
    sizes = [padded_bytes(with_order(answer.default.layout, order, target)) for order in every]
    assert answer.best[0].bytes == min(sizes)
    assert answer.best[-1].bytes == max(sizes)
    assert answer.covered == len(every)
    assert {sized.bytes for sized in answer.best} == set(sizes)
    if answer.default.bytes == min(sizes):
        assert answer.best[0] == answer.default


@pytest.mark.parametrize("seed", range(120))
def test_no_shared_order_takes_fewer_bytes(seed: int) -> None:
    rng = random.Random(seed)
    arrays, target = any_arrays(rng), rng.choice(list(CHIPS))
    answer = shared_order(arrays, target)
    names = sorted({name for _, own in arrays.values() for name in own})
    every = list(itertools.permutations(names))
    assert answer.bytes == min(together(arrays, order, target) for order in every)
    assert answer.bytes == together(arrays, answer.order, target)
    assert answer.bytes == sum(sized.bytes for sized in answer.layouts.values())
    assert answer.covered == len(every)
    assert answer.apart <= answer.bytes


def test_one_order_for_all_may_cost_more() -> None:
    # x wants c before b, y wants b before c
    arrays = {"x": (shape("f32[128,127,8]"), ("a", "b", "c")), "y": (shape("f32[127,8]"), ("b", "c"))}
    answer = shared_order(arrays, "v5e")
    assert answer.bytes == min(together(arrays, order, "v5e") for order in itertools.permutations("abc"))
    assert answer.apart == 4 * (128 * 127 * 8 + 128 * 8)
    assert answer.bytes == 4 * (128 * 128 * 8 + 128 * 8)


def test_the_documented_case() -> None:
    slow = shape("bf16[16,1280,40]{2,1,0:T(8,128)(2,1)}")
    answer = best_layouts(slow, "v5e", given=True)
    assert answer.given is not None
    assert answer.given.bytes / answer.best[0].bytes == 3.2
    assert str(answer.best[0].layout) == "bf16[16,1280,40]{1,2,0:T(8,128)(2,1)}"


def test_the_compilers_choice_is_the_best_of_what_was_recorded() -> None:
    # from 4 bits up the compiler minimises exactly these bytes, so its recorded choices are an outside oracle
    names = {"float32": "f32", "bfloat16": "bf16", "int8": "s8", "int4": "s4", "bool": "pred", "int16": "s16"}
    looked = 0
    for row in rows("tpu_default_layouts.jsonl"):
        if row["dtype"] not in names or 0 in row["shape"]:
            continue
        text = f"{names[row['dtype']]}[{','.join(map(str, row['shape']))}]{row['text']}"
        recorded = shape(text)
        assert best_layouts(recorded, row["generation"]).best[0].bytes == padded_bytes(recorded), text
        looked += 1
    assert looked > 300


def test_small_ranks_and_memory_spaces() -> None:
    assert best_layouts(shape("f32[]"), "v5e").covered == 1
    one = best_layouts(shape("f32[100]{0:S(1)}"), "v5e")
    assert (one.covered, len(one.best), one.best[0].layout.memory_space) == (1, 1, 1)
    assert unpadded_bytes(shape("s4[3,3]")) == 5


def test_what_cannot_be_asked() -> None:
    square = {"x": (shape("f32[8,8]"), ("n", "n"))}
    with pytest.raises(LayoutError, match="two dimensions n"):
        shared_order(square, "v5e")
    many = {f"x{k}": (shape("f32[8]"), (f"n{k}",)) for k in range(MOST_NAMES + 1)}
    with pytest.raises(Undecided, match="17 named dimensions"):
        shared_order(many, "v5e")
