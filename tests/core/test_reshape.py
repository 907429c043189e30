"""Reshape and transpose of indices against NumPy, and what makes coordinates comparable."""

from __future__ import annotations

import itertools
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import IndexMap, Memory, from_row_major, row_major
from layoutproof.core.numbers import INTS, Numbers
from layoutproof.core.reshape import address, after, common_factors, common_unit, comparable, reshape, transposed
from layoutproof.core.size import symbol
from layoutproof.core.space import Space

PRIMES = st.lists(st.sampled_from((2, 2, 2, 3, 3, 5)), max_size=5)


@st.composite
def grouped(draw: Any, factors: list[int]) -> tuple[int, ...]:
    """Dimensions whose product is that of the factors in this order, with ones sprinkled in."""
    dims = [1]
    for factor in factors:
        if draw(st.booleans()):
            dims.append(factor)
        else:
            dims[-1] *= factor
    for _ in range(draw(st.integers(0, 2))):
        dims.insert(draw(st.integers(0, len(dims))), 1)
    return tuple(dims[draw(st.integers(0, 1)) if dims[0] == 1 else 0 :])


@st.composite
def reshapes(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    factors = draw(PRIMES)
    return draw(grouped(factors)), draw(grouped(draw(st.permutations(factors))))


@given(reshapes())
def test_reshape_is_numpys(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    """Every element ends where NumPy's row-major reshape puts it."""
    before, result = shapes
    reindex = reshape(before, result)
    numbers = np.arange(prod(before)).reshape(before)
    moved = numbers.reshape(result)
    for index in np.ndindex(*before):
        target = reindex(index, INTS)
        assert len(target) == len(result)
        assert moved[target] == numbers[index]


@given(reshapes())
def test_common_factors_are_equal_and_short(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    """Groups follow each other to the end on both sides, have equal products, and no group can be cut."""
    before, result = shapes
    groups = common_factors(before, result)
    ends = [(0, 0), *((b1, a1) for (_, b1), (_, a1) in groups)]
    assert [((b0, b1), (a0, a1)) for (b0, a0), (b1, a1) in itertools.pairwise(ends)] == groups
    assert ends[-1] == (len(before), len(result))
    for (b0, b1), (a0, a1) in groups:
        assert prod(before[b0:b1]) == prod(result[a0:a1])
        inner = itertools.product(range(b0 + 1, b1), range(a0 + 1, a1))
        assert not [(b, a) for b, a in inner if prod(before[b0:b]) == prod(result[a0:a])]


def test_reshape_of_other_counts_is_refused() -> None:
    """Different element counts: bad input that names both."""
    with pytest.raises(LayoutError) as caught:
        reshape((3, 4), (5, 2))
    assert str(caught.value) == "[3,4] has 12 elements and [5,2] has 10: no reshape"


@pytest.mark.parametrize(
    ("before", "result"),
    [
        ((symbol("N"), 4, 6), (symbol("N") * 4, 6)),
        ((symbol("N") * 6, symbol("M")), (symbol("N"), 2, 3, symbol("M"))),
        ((symbol("N"), symbol("M"), 5), (symbol("N") * symbol("M") * 5,)),
        ((8, symbol("N"), 1), (1, 2, 4, symbol("N"))),
    ],
)
def test_reshape_of_run_time_sizes(before: tuple[Any, ...], result: tuple[Any, ...]) -> None:
    """With sizes put in later the reshape is NumPy's for those sizes."""
    reindex = reshape(before, result)
    for n, m in itertools.product((1, 2, 5), (1, 3)):
        on = Numbers({"N": n, "M": m})
        dims, target = (tuple(on.size(extent) for extent in side) for side in (before, result))
        numbers = np.arange(prod(dims)).reshape(dims)
        for index in np.ndindex(*dims):
            assert numbers.reshape(target)[reindex(index, on)] == numbers[index]


@given(st.lists(st.integers(1, 4), max_size=4), st.data())
def test_row_major_and_back(dims: list[int], data: st.DataObject) -> None:
    """row_major is NumPy's order on any box, and from_row_major undoes it."""
    extents = tuple(dims)
    index = tuple(data.draw(st.integers(0, extent - 1)) for extent in extents)
    position = row_major(index, extents)
    assert position == (int(np.ravel_multi_index(index, extents)) if extents else 0)
    assert from_row_major(position, extents) == index


@pytest.mark.parametrize("permutation", list(itertools.permutations(range(3))))
def test_transposed_is_numpys(permutation: tuple[int, ...]) -> None:
    """Dimension k of the result is dimension permutation[k] of the operand."""
    dims = (2, 3, 4)
    m = memory_map(dims)
    numbers = np.arange(24).reshape(dims)
    reindex = transposed(m, permutation)
    for index in np.ndindex(*dims):
        assert numbers.transpose(permutation)[reindex(index, INTS)] == numbers[index]


@pytest.mark.parametrize("permutation", [(0, 0, 1), (0, 1), (1, 2, 3), (0, 1, 2, 3)])
def test_no_permutation(permutation: tuple[int, ...]) -> None:
    """What is no permutation of the dimensions is refused by name."""
    with pytest.raises(LayoutError) as caught:
        transposed(memory_map((2, 3, 4)), permutation)
    assert str(caught.value) == f"permutation {permutation} is not a permutation of 0..2"


def memory_map(dims: tuple[int, ...], bits: int = 32, order: tuple[int, ...] | None = None, **memory: Any) -> IndexMap:
    """A row-major memory of `dims`, its dimensions stored in `order`."""
    axes = order or tuple(range(len(dims)))
    names = tuple(f"d{k}" for k in range(len(dims)))
    extents = tuple(dims[axis] for axis in axes)
    where = Memory(bits, bits, prod(dims), **memory)
    return IndexMap(Space(names, dims), Space(names, extents), lambda i, c, on: tuple(i[a] for a in axes), memory=where)


@pytest.mark.parametrize(
    ("left", "right", "unit"),
    [
        (memory_map((4,), 32), memory_map((4,), 32), 32),
        (memory_map((4,), 32), memory_map((4,), 8), 8),
        (memory_map((4,), 6), memory_map((4,), 4), 2),
        (memory_map((4,), 32, prefix_bytes=6), memory_map((4,), 32), 16),
        (IndexMap(Space(), Space(), lambda i, c, on: ()), memory_map((4,)), 0),
    ],
)
def test_common_unit(left: IndexMap, right: IndexMap, unit: int) -> None:
    """The largest number of bits that divides the address of every element on both sides."""
    assert common_unit(left, right) == unit
    assert common_unit(right, left) == unit
    if unit:
        for m in (left, right):
            assert m.memory is not None
            assert m.memory.bits % unit == m.memory.prefix_bytes * 8 % unit == 0


def test_address_counts_from_the_prefix() -> None:
    """An address is the memory space, and the first bit of the element in units, behind the prefix."""
    m = memory_map((2, 3), 16, prefix_bytes=4, space=1)
    assert address(m, 16).at((1, 2)) == (1, 2 + 5)
    assert address(m, 1).at((1, 2)) == (1, 32 + 5 * 16)
    with pytest.raises(LayoutError, match="its elements have no address"):
        address(IndexMap(Space(), Space(), lambda i, c, on: ()), 1)


@given(st.permutations((0, 1, 2)), st.permutations((0, 1, 2)), st.sampled_from((8, 16)), st.integers(0, 1))
def test_comparable_coordinates_agree_with_addresses(one: list[int], other: list[int], bits: int, prefix: int) -> None:
    """Two elements have equal comparable coordinates exactly when they have one address."""
    dims = (2, 1, 2)
    left = memory_map(dims, 16, tuple(one))
    right = memory_map(dims, bits, tuple(other), prefix_bytes=prefix)
    first, second = comparable(left, right, common_unit(left, right))
    for index in np.ndindex(*dims):
        same = address(left, 1).at(index) == address(right, 1).at(index)
        assert (first.at(index) == second.at(index)) == same


def test_after_composes() -> None:
    """The map after a reindexing is the map of the reindexed element."""
    m = memory_map((6, 4), order=(1, 0))
    composed = after(reshape((24,), (6, 4)), m, Space(("k",), (24,)))
    assert [composed.at((k,)) for k in range(24)] == [m.at(divmod(k, 4)) for k in range(24)]
    assert composed.memory is m.memory
