"""Values of a body: of every element its number, where terms say it, and the condition under which it is undefined.

An undefined element is one that nobody wrote: padding of a partial block, memory never stored to, what a masked load
leaves out. Conditions of being undefined are terms in which undefinedness stands positively only, so that "for some k"
is one more name (`witness`). Two operations stand for what terms cannot say: `leaf(source, index)`, the element of a
load or of a carried value, which the property that asks replaces by what it knows; and `maybe(why)`, a condition that
holds or does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.core.budget import spend
from layoutproof.core.element_types import integer_range
from layoutproof.core.folding import FALSE, TRUE, all_of, constant, fold, folded, negation
from layoutproof.core.operations import CONDITIONS
from layoutproof.core.term import ZERO, Term

Index = tuple[Term, ...]
Span = tuple[int, int]

PER_ELEMENT = 3
"""Steps of a budget that one element costs for which a value has not been asked."""


class Lost(UnsupportedOp):
    """No term says a number; the text says why."""


class Value:
    """An array or a single number (dims ()). Both functions are computed once per index.

    dims: in elements.  dtype: as arrays have it (`kind`, `itemsize`).  number: index -> the element as a term, Lost
    where there is none.  undefined: index -> the condition under which the element is undefined.  passed: index ->
    under which conditions the element is one that was loaded, as it was: (condition, leaf) pairs.  span: of whole
    numbers, the least and the greatest that any element may be.
    """

    __slots__ = ("_known", "_number", "_undefined", "dims", "dtype", "passed", "span")

    def __init__(
        self,
        dims: tuple[int, ...],
        dtype: Any,
        number: Callable[[Index], Term] | str,
        undefined: Callable[[Index], Term] | None = None,
        passed: Callable[[Index], Sequence[tuple[Term, Term]]] | None = None,
        span: Span | None = None,
    ) -> None:
        self.span = span_of_type(dtype) if span is None else span
        self.passed = (lambda index: ()) if passed is None else passed
        self.dims = dims
        self.dtype = dtype
        self._number = number
        self._undefined = undefined
        self._known: dict[tuple[bool, Index], Any] = {}

    def number(self, index: Index = ()) -> Term:
        """The element as a term. Raises Lost."""
        if isinstance(self._number, str):
            raise Lost(self._number)
        found = self._once(True, index, self._number)
        if isinstance(found, Lost):
            raise found
        return found  # type: ignore[no-any-return]

    def undefined(self, index: Index = ()) -> Term:
        """The condition under which the element is undefined."""
        if self._undefined is None:
            return FALSE
        return self._once(False, index, self._undefined)  # type: ignore[no-any-return]

    def _once(self, which: bool, index: Index, function: Callable[[Index], Any]) -> Any:
        key = (which, index)
        if key not in self._known:
            spend(PER_ELEMENT)
            try:
                found: Any = function(index)
            except Lost as lost:
                found = lost
            except UnsupportedOp as lost:
                found = Lost(str(lost))
            self._known[key] = found
        return self._known[key]

    @property
    def defined(self) -> bool:
        """Whether every element is defined, whatever happens."""
        return self._undefined is None


def number(term: Term, dtype: Any, span: Span | None = None) -> Value:
    """A single number."""
    return Value((), dtype, lambda index: term, span=span)


def span_of_type(dtype: Any) -> Span:
    """What whole numbers and truth values of a type are; of other types nothing that means anything."""
    kind = getattr(dtype, "kind", "")
    if kind not in ("i", "u"):
        return 0, 1
    low, high = integer_range(8 * int(dtype.itemsize), kind == "i")
    return low, high - 1


def hull(values: Sequence[Value]) -> Span:
    """What an element of any of some values may be."""
    return min(v.span[0] for v in values), max(v.span[1] for v in values)


def leaf(source: str, index: Index) -> Term:
    """Whether the element of a load (`loadN`) or carried value (`carriedN`) is undefined: for the asker to say."""
    return Term("leaf", source, *index)


def maybe(why: str) -> Term:
    """A condition that nobody knows; why: in words."""
    return Term("maybe", why)


def aligned(part: Value, dims: Sequence[int], index: Index) -> Index:
    """Which element of an array meets an element of a larger one of shape `dims`: a size of 1 meets every size."""
    lead = len(dims) - len(part.dims)
    return tuple(ZERO if n == 1 and dims[k + lead] != 1 else index[k + lead] for k, n in enumerate(part.dims))


def dims_of(aval: Any) -> tuple[int, ...]:
    """The shape that JAX says of a value or of a reference; () where it says none.

    A dimension whose size is a name is a term; only `values.relations` reads such arrays.
    """
    shape: Any = getattr(aval, "shape", ())
    return tuple(n if isinstance(n, Term) else int(n) for n in shape)  # type: ignore[misc]


def takes(which: Term, k: int, count: int) -> Term:
    """The condition that a choice among `count` cases takes case k: the first for numbers below, the last for above.

    >>> str(takes(Term("name", "w"), 1, 3)), str(takes(Term("<", Term("name", "i"), Term("int", 1)), 0, 2))
    ('0 < w and w <= 1', 'not i < 1')
    """
    if count == 2 and which.op == "select" and [constant(a) for a in which.args[1:]] == [1, 0]:
        # a truth value that was converted, as `pl.when` does
        which = which.args[0]
    if count == 2 and which.op in CONDITIONS:
        condition = folded(which)
        return condition if k else negation(condition)
    low = TRUE if k == 0 else fold("<", Term("int", k - 1), which)
    high = TRUE if k == count - 1 else fold("<=", which, Term("int", k))
    return all_of([low, high])
