"""Row-major order as terms: sums, products and quotients of indices, and where an element of a reshaped array lies."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from layoutproof.bodies.values import Index, extent_term
from layoutproof.core.folding import fold, linear, shifted
from layoutproof.core.operations import Op
from layoutproof.core.term import ZERO, Term


def plus(term: Term, by: int) -> Term:
    """term + by, which is one place however a body got there: (i - 1) + 1 is i."""
    return shifted(term, by) if type(by) is int else fold("+", term, extent_term(by))


def times(term: Term, by: int) -> Term:
    """term * by."""
    return fold("*", term, extent_term(by))


def quotient(op: Op, term: Term, by: int) -> Term:
    """term // by, or term % by, as `op` says; by > 0."""
    return fold(op, term, extent_term(by))


def reshaped(index: Index, dims: Sequence[int], before: Sequence[int]) -> Index:
    """Where an element of the reshaped array `dims` lies in the array `before`, both row-major.

    >>> [str(t) for t in reshaped((Term("name", "i"), Term("name", "j")), (4, 8), (32,))]
    ['i * 8 + j']
    >>> [str(t) for t in reshaped((Term("name", "i"),), (32,), (4, 1, 8))]
    ['i // 8', '0', 'i % 8']
    """
    if 0 in dims:
        return (ZERO,) * len(before)
    found: list[Term] = []
    new, old = 0, 0
    while new < len(dims) or old < len(before):
        # the shortest runs of dimensions that hold the same number of elements: each is reshaped by itself
        first_new, first_old = new, old
        here = there = 1
        if new < len(dims):
            here, new = dims[new], new + 1
        if old < len(before):
            there, old = before[old], old + 1
        while here != there:
            if here < there:
                here, new = here * dims[new], new + 1
            else:
                there, old = there * before[old], old + 1
        found += _run(index[first_new:new], dims[first_new:new], before[first_old:old])
    return tuple(found)


def _run(index: Index, dims: Sequence[int], before: Sequence[int]) -> list[Term]:
    wide = [(term, n) for term, n in zip(index, dims, strict=True) if n != 1]
    kept = [n for n in before if n != 1]
    if [n for _, n in wide] == kept:
        terms = iter(term for term, _ in wide)
        return [next(terms) if n != 1 else ZERO for n in before]
    flat: Term = ZERO
    for term, n in wide:
        flat = linear([(n, flat), (1, term)])
    found: list[Term] = []
    inner = prod(before)
    for k, n in enumerate(before):
        inner //= max(n, 1)
        if n == 1:
            found.append(ZERO)
            continue
        part = quotient("//", flat, inner)
        # the first dimension's quotient is below its extent already
        found.append(part if all(m == 1 for m in before[:k]) else quotient("%", part, n))
    return found
