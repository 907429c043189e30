"""Arithmetic of residues is exact, whatever the size and the order of an array."""

from __future__ import annotations

import numpy as np
import pytest

from layoutproof.values.fields import Prime, chain
from layoutproof.values.points import BESIDE, NONPOSITIVE, Field, Points

FIELD = Prime(chain(3)[3], chain(3)[2])


@pytest.mark.parametrize("shape", [(), (7,), (60, 70), (130, 129), (3, 50, 60)])
def test_sums_products_and_opposites(shape: tuple[int, ...]) -> None:
    """As Python's own integers have it: rows, columns, parts of arrays and what is broadcast."""
    draw = np.random.default_rng(1)
    a, b = (draw.integers(0, FIELD.p, shape) for _ in range(2))
    for x, y in (
        (a, b),
        (a.T, b.T),
        (a[..., ::2] if shape else a, b[..., ::2] if shape else b),
        (a, b[..., :1] if shape else b),
    ):
        wide = x.astype(object), np.asarray(y).astype(object)
        assert np.array_equal(FIELD.add(x, y), (wide[0] + wide[1]) % FIELD.p)
        assert np.array_equal(FIELD.mul(x, y), wide[0] * wide[1] % FIELD.p)
        assert np.array_equal(FIELD.neg(x), -wide[0] % FIELD.p)
    ends = np.full(5000, FIELD.p - 1)
    assert (FIELD.add(ends, ends) == FIELD.p - 2).all()
    assert (FIELD.mul(ends, ends) == 1).all()
    assert (FIELD.neg(np.zeros(5000, np.int64)) == 0).all()


@pytest.mark.parametrize("summed", [1, 300, 1007, 1008, 1009, 1010, 2**16 + 1])
def test_products_of_matrices(summed: int) -> None:
    """With the residues that are the largest, and the largest once they have a sign, and with random ones."""
    draw = np.random.default_rng(2)
    ends = [np.full((2, summed), n) for n in (FIELD.p - 1, FIELD.p // 2, FIELD.p // 2 + 1)]
    for a in (*ends, draw.integers(0, FIELD.p, (2, summed))):
        for other in (a, ends[1]):
            b = other[::-1].T
            exact = [
                [sum(int(x) * int(y) for x, y in zip(row, column, strict=True)) % FIELD.p for column in b.T]
                for row in a
            ]
            assert FIELD.matmul(a, b).tolist() == exact


@pytest.mark.parametrize("shape", [(5, 700, 600), (40, 3, 90), (0, 2, 3), (2, 0, 3), (2, 3, 0)])
def test_several_products_of_matrices(shape: tuple[int, ...]) -> None:
    """Each is the one of its own matrices, however many are computed at once."""
    draw = np.random.default_rng(2)
    a, one = draw.integers(0, FIELD.p, shape), draw.integers(0, FIELD.p, (shape[2], 7))
    b = draw.integers(0, FIELD.p, (shape[0], shape[2], 7))
    for right in (b, one, b[:1]):
        found = FIELD.matmul(a, right)
        assert found.shape == (shape[0], shape[1], 7)
        full = np.broadcast_to(right, (shape[0], shape[2], 7)).astype(object)
        for k in range(shape[0]):
            rows = slice(0, shape[1], max(1, shape[1] // 5))
            exact = a[k, rows].astype(object) @ full[k] % FIELD.p if shape[2] else 0
            assert (found[k, rows] == exact).all()


def test_a_maximum_that_is_kept_once_for_each_lane() -> None:
    """The same as that of one lane; where lanes differ each has its own."""
    draw = np.random.default_rng(3)
    numbers = Points(1)
    rows = [Field(tuple(draw.integers(0, f.p, (40, 1)) for f in numbers.fields)) for _ in range(3)]
    wide = [numbers.map(r, lambda x: np.repeat(x, 8, 1)) for r in rows]
    one = numbers.maximum(numbers.maximum(*rows[:2]), rows[2])
    many = numbers.maximum(wide[0], numbers.maximum(*wide[1:]))
    assert not numbers.differs(many, numbers.map(one, lambda x: np.repeat(x, 8, 1)))[0].any()
    mixed = numbers.combine([wide[2], wide[1]], lambda parts: np.where(np.arange(8) == 5, parts[0], parts[1]))
    different = numbers.differs(numbers.maximum(wide[0], mixed), numbers.maximum(*wide[:2]))[0]
    assert np.array_equal(different, np.broadcast_to(np.arange(8) == 5, (40, 8)))


@pytest.mark.parametrize("axis", [0, 1])
def test_a_difference_from_a_maximum_is_at_most_0_where_it_holds_the_number(axis: int) -> None:
    """Along each axis; of more numbers than are in the set, of maxima in it, and beside a number of the code."""
    numbers = Points(1)
    x, y = (numbers.draw((40, 30)) for _ in range(2))

    def top(*parts: Field) -> Field:
        row = numbers.combine(parts, lambda arrays: np.moveaxis(np.concatenate(arrays, axis), axis, -1))
        return numbers.map(numbers.largest(row), lambda r: np.expand_dims(r, axis))

    def bounded(a: Field, b: Field) -> set[bool]:
        return set((numbers.sub(a, b).marks & NONPOSITIVE != 0).reshape(-1).tolist())

    assert bounded(x, top(x)) == bounded(x, top(x, y)) == bounded(top(x), top(y, x)) == {True}
    assert bounded(y, top(x)) == bounded(top(x, y), top(x)) == bounded(top(y), top(x)) == {False}
    one = numbers.map(x, lambda r: r.take([3], axis))
    assert bounded(one, top(x)) == {True}
    assert bounded(one, top(y)) == {False}
    # one other number among many
    mixed = numbers.combine([x, y], lambda parts: np.where(np.arange(1200).reshape(40, 30) == 77, parts[1], parts[0]))
    at_most = numbers.sub(mixed, top(x)).marks & NONPOSITIVE != 0
    assert np.flatnonzero(~at_most.reshape(-1)).tolist() == [77]
    # the lanes of a maximum that is the same in all
    lanes = numbers.map(top(x), lambda r: np.repeat(r, x.shape[axis], axis))
    assert bounded(x, lanes) == {True}
    zero = numbers.constant(np.zeros((40, 1) if axis else (1, 30)))
    assert (numbers.sub(x, top(x, zero)).marks & BESIDE != 0).all()
    assert not (numbers.sub(x, top(x)).marks & BESIDE).any()
