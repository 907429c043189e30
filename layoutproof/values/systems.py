"""Triangular systems and factorisations of matrices: row by row, as they are solved by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from layoutproof.ir.program import Equation
from layoutproof.values import contractions, elementwise
from layoutproof.values.kinds import Shaped
from layoutproof.values.known import Known, combined, moved
from layoutproof.values.state import Rule, Walking

LARGEST = 256
"""Rows of a system: each takes a product of matrices with those before it."""


def _of(on: Walking, equation: Equation, name: str, *values: Shaped) -> Shaped:
    (found,) = elementwise.PRIMITIVES[name](on, equation, list(values))
    return found


def _part(on: Walking, value: Shaped, rows: slice, columns: slice) -> Shaped:
    """Of each matrix: rows and columns."""
    return moved(on.numbers, value, lambda r: r[:, rows, columns])


def _less(on: Walking, equation: Equation, value: Shaped, left: Shaped, right: Shaped) -> Shaped:
    """A value minus a product of matrices, both [matrices, rows, columns]."""
    if not left.shape[2]:
        return value
    return _of(on, equation, "sub", value, contractions.product(on, equation, left, right, tuple(value.shape)))


def _divided(on: Walking, equation: Equation, value: Shaped, by: Shaped) -> Shaped:
    """A value by one number of each matrix."""
    shape = tuple(value.shape)
    return _of(on, equation, "div", value, moved(on.numbers, by, lambda r: np.broadcast_to(r, shape)))


def _flat(on: Walking, value: Shaped) -> Shaped:
    """A value as one row of matrices."""
    return moved(on.numbers, value, lambda r: r.reshape(-1, *r.shape[-2:]))


def _within(on: Walking, rows: int) -> None:
    if rows > LARGEST:
        raise on.refuse(f"a system of {rows:,} rows, more than {LARGEST}")


def _triangular(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """A X = B, or X A = B, of a triangular A of which the other triangle is not read.

    Source: jax/_src/lax/linalg.py (triangular_solve), jax 0.10.2.
    """
    p, (a, b) = equation.params, operands
    left, lower, transposed = bool(p["left_side"]), bool(p["lower"]), bool(p["transpose_a"])
    _within(on, a.shape[-1])
    n, shape = on.numbers, tuple(b.shape)
    # X A = B is A' X' = B'
    if transposed == left:
        a = moved(n, a, lambda r: np.swapaxes(r, -1, -2))
        lower = not lower
    if not left:
        b = moved(n, b, lambda r: np.swapaxes(r, -1, -2))
    a, b = _flat(on, a), _flat(on, b)
    if not lower:
        # from the last row up
        a = moved(n, a, lambda r: r[:, ::-1, ::-1])
        b = moved(n, b, lambda r: r[:, ::-1])
    found: list[Any] = []
    for k in range(a.shape[1]):
        row, every = slice(k, k + 1), slice(None)
        x = _part(on, b, row, every)
        if found:
            above = combined(n, found, lambda parts: np.concatenate(parts, 1))
            x = _less(on, equation, x, _part(on, a, row, slice(0, k)), above)
        if not p["unit_diagonal"]:
            x = _divided(on, equation, x, _part(on, a, row, row))
        found.append(x)
    result = combined(n, found, lambda parts: np.concatenate(parts if lower else parts[::-1], 1))
    if not left:
        result = moved(n, result, lambda r: np.swapaxes(r, -1, -2))
    return [moved(n, result, lambda r: r.reshape(shape))]


def _cholesky(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """The lower triangle L with L L' = A, of which the lower triangle is read.

    Source: jax/_src/lax/linalg.py (cholesky), jax 0.10.2; the part above the diagonal is removed there.
    """
    (a,) = operands
    _within(on, a.shape[-1])
    n, shape, rows = on.numbers, tuple(a.shape), a.shape[-1]
    a = _flat(on, a)
    columns: list[Any] = []
    for k in range(rows):
        column = _part(on, a, slice(k, None), slice(k, k + 1))
        if columns:
            before = combined(n, columns, lambda parts: np.concatenate(parts, 2))
            row = moved(n, _part(on, before, slice(k, k + 1), slice(None)), lambda r: np.swapaxes(r, 1, 2))
            column = _less(on, equation, column, _part(on, before, slice(k, None), slice(None)), row)
        root = _of(on, equation, "sqrt", moved(n, column, lambda r: r[:, :1]))
        column = _divided(on, equation, column, root)
        above = Known(np.zeros((a.shape[0], k, 1)))
        columns.append(combined(n, [above, column], lambda parts: np.concatenate(parts, 1)))
    found = combined(n, columns, lambda parts: np.concatenate(parts, 2))
    return [moved(n, found, lambda r: r.reshape(shape))]


PRIMITIVES: dict[str, Rule] = {"triangular_solve": _triangular, "cholesky": _cholesky}
