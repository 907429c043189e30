"""Arrays of floats whose elements are sums of products."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import TypeGuard

from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.passes import BodyValue
from layoutproof.bodies.terms import renaming, replaced
from layoutproof.bodies.values import Index, Value
from layoutproof.core.budget import spend
from layoutproof.core.folding import FALSE, negation
from layoutproof.core.products import Factor, Monomial, Named, Sum, added
from layoutproof.core.term import Term
from layoutproof.ir.program import Dtype

MOST_MONOMIALS = 512
"""Monomials of one element."""


class FloatArray(Value):
    """An array of floats. element: index -> the element as a sum of products."""

    __slots__ = ("_element", "_sums")

    def __init__(self, dims: tuple[int, ...], dtype: Dtype, element: Callable[[Index], Sum]) -> None:
        super().__init__(dims, dtype, "a number that is data")
        self._element = element
        self._sums: dict[Index, Sum] = {}

    def sum(self, index: Index) -> Sum:
        """One element."""
        found = self._sums.get(index)
        if found is None:
            spend(1)
            found = self._element(index)
            if len(found.numbers) + len(found.undefined) > MOST_MONOMIALS:
                raise UnsupportedOp(f"an element that is a sum of more than {MOST_MONOMIALS} kinds of products")
            self._sums[index] = found
        return found


def as_floats(value: BodyValue) -> FloatArray:
    """An array of floats. UnsupportedOp of what is none."""
    if not isinstance(value, FloatArray):
        raise UnsupportedOp("integers or memory where floats stand")
    return value


def are_floats(values: Sequence[BodyValue]) -> TypeGuard[Sequence[FloatArray]]:
    """Whether all of some values are arrays of floats."""
    return all(isinstance(value, FloatArray) for value in values)


def number(value: Fraction, dims: tuple[int, ...], dtype: Dtype) -> FloatArray:
    """An array of one number."""
    found = Sum((Monomial(value),)) if value else Sum()
    return FloatArray(dims, dtype, lambda index: found)


def refused(what: str, dims: tuple[int, ...], dtype: Dtype) -> FloatArray:
    """An array that is not for this engine, which who asks for an element is told."""

    def element(index: Index) -> Sum:
        raise UnsupportedOp(what)

    return FloatArray(dims, dtype, element)


def times(left: Sum, right: Sum, fresh: Callable[[str], str]) -> Sum:
    """The product of two elements: undefined where one of them is, whatever the other."""
    undefined = added(left, right).undefined
    return Sum(tuple(_times(a, b, fresh) for a in left.numbers for b in right.numbers), undefined)


def _times(a: Monomial, b: Monomial, fresh: Callable[[str], str]) -> Monomial:
    taken = {name for name, _ in a.bound}
    again = {name: Term("name", fresh("k")) for name, _ in b.bound if name in taken}
    if again:
        b = renamed(b, again)
    return Monomial(
        a.coefficient * b.coefficient, tuple(dict.fromkeys((*a.when, *b.when))), (*a.factors, *b.factors),
        (*a.bound, *b.bound), (*a.unless, *b.unless),
    )  # fmt: skip


def renamed(m: Monomial, names: dict[str, Term]) -> Monomial:
    """The same with other terms for some names, bound ones among them, which become names."""
    change = renaming(names)

    def of(term: Term) -> Term:
        return replaced(term, change)

    bound = tuple((str(names[n].args[0]) if n in names else n, of(extent)) for n, extent in m.bound)
    factors = tuple(Factor(f.source, tuple(map(of, f.index))) for f in m.factors)
    unless = tuple((tuple((n, of(extent)) for n, extent in named), of(c)) for named, c in m.unless)
    return Monomial(m.coefficient, tuple(map(of, m.when)), factors, bound, unless)


def tag(k: int, value: Value) -> Value:
    """An array of the same shape whose elements say where they are: element `index` of part k."""
    return Value(value.dims, value.dtype, lambda index: Term("read", Term("name", f"part{k}"), *index))


def chosen(term: Term, parts: Sequence[FloatArray]) -> Sum:
    """The element that a term of tags says."""
    return added(*(parts[k].sum(index).under(*when) for when, k, index in _cases(term, ())))


def _cases(term: Term, when: tuple[Term, ...]) -> Iterator[tuple[tuple[Term, ...], int, Index]]:
    if term.op == "select":
        condition, yes, no = term.args
        if condition is not FALSE:
            yield from _cases(yes, (*when, condition))
        other = negation(condition)
        if other is not FALSE:
            yield from _cases(no, (*when, other))
    elif term.op == "read" and term.args[0].args[0].startswith("part"):
        yield when, int(term.args[0].args[0][4:]), term.args[1:]
    else:
        raise UnsupportedOp(f"a choice of {term}")


def bounded(names: Sequence[str], extents: Sequence[Term]) -> Named:
    """Names with their extents."""
    return tuple(zip(names, extents, strict=True))


def opaque(source: str, dims: tuple[int, ...], dtype: Dtype) -> FloatArray:
    """A result that is known by its name alone: each element is a source of its own."""

    def element(index: Index) -> Sum:
        one = (Monomial(factors=(Factor(source, index),)),)
        return Sum(one, one)

    return FloatArray(dims, dtype, element)
