"""Arithmetic of residues is exact, whatever the size and the order of an array."""

from __future__ import annotations

import numpy as np
import pytest

from layoutproof.values.fields import Prime, chain
from layoutproof.values.points import Field, Points

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


@pytest.mark.parametrize("summed", [1, 300, 2**16, 2**16 + 1])
def test_products_of_matrices(summed: int) -> None:
    """With the largest residues and with random ones."""
    draw = np.random.default_rng(2)
    for a in (np.full((2, summed), FIELD.p - 1), draw.integers(0, FIELD.p, (2, summed))):
        b = a[::-1].T
        exact = [
            [sum(int(x) * int(y) for x, y in zip(row, column, strict=True)) % FIELD.p for column in b.T] for row in a
        ]
        assert FIELD.matmul(a, b).tolist() == exact


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
