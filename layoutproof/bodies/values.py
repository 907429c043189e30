"""Values of a body: of every element its number, where terms say it, and the condition under which it is undefined.

An undefined element was never written: padding of a partial block, memory never stored to, elements that a masked load
leaves out. Conditions of being undefined are terms in which undefinedness stands positively only, so that "for some k"
is one more name (`witness`). Two operations stand for what terms cannot say: `leaf(source, index)`, the element of a
load or of a carried value, which the property that asks replaces by what it knows; and `maybe(why)`, a condition that
holds or does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, cast

from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.core.budget import spend
from layoutproof.core.element_types import integer_range
from layoutproof.core.folding import FALSE, TRUE, all_of, constant, fold, folded, negation
from layoutproof.core.operations import CONDITIONS
from layoutproof.core.term import ZERO, Term
from layoutproof.ir.program import Aval, Dtype

Index = tuple[Term, ...]
Span = tuple[int, int]

LEFT_OUT = "left out of "
"""The start of the source of a leaf that is a masked-off element of a load, and no element of memory."""
PER_ELEMENT = 3
"""Steps of a budget that one element costs for which a value has not been asked."""


DEEPEST = 25
"""Values that are asked from within each other, before the innermost is asked first and by itself."""


class Lost(UnsupportedOp):
    """No term says a number; the text says why."""


class _Deep(Exception):
    """A question to a value needs a long chain of others: the value to ask first, the question, and the index."""

    def __init__(self, value: Value, which: bool, index: Index) -> None:
        self.question = value, which, index


class _ValueQuestion:
    """The current question to a value. depth: of how many others it is a part.  made: names for it, see `again`."""

    __slots__ = ("depth", "made", "used")

    def __init__(self) -> None:
        self.depth = 0
        self.made: list[Term] = []
        self.used = 0


_ASKED: ContextVar[_ValueQuestion | None] = ContextVar("what is asked of a value", default=None)


def again(make: Callable[[], Term]) -> Term:
    """A name for the answer to what is asked of a value: the same one where that is asked a second time."""
    asked = _ASKED.get()
    if asked is None:
        return make()
    if asked.used == len(asked.made):
        asked.made.append(make())
    asked.used += 1
    return asked.made[asked.used - 1]


class Value:
    """An array or a single number (dims ()). Both functions are computed once per index.

    dims: in elements.  dtype: as arrays have it (`kind`, `itemsize`).  number: index -> the element as a term, Lost
    where there is none.  undefined: index -> the condition under which the element is undefined.  passed: index ->
    under which conditions the element is one that was loaded, as it was: (condition, leaf) pairs.  span: of whole
    numbers, the least and the greatest that any element may be.  parts: of words that were packed, their parts.
    same: an object that values share whose elements are known to be equal.  made: the operation that gives it, and
    its operands.
    """

    __slots__ = (
        "_conditions",
        "_number",
        "_numbers",
        "_open",
        "_undefined",
        "dims",
        "dtype",
        "made",
        "parts",
        "passed",
        "same",
        "span",
    )

    def __init__(
        self,
        dims: tuple[int, ...],
        dtype: Dtype,
        number: Callable[[Index], Term] | str,
        undefined: Callable[[Index], Term] | None = None,
        passed: Callable[[Index], Sequence[tuple[Term, Term]]] | None = None,
        span: Span | None = None,
        parts: Sequence[Value] = (),
    ) -> None:
        self.span = span_of_type(dtype) if span is None else span
        self.parts = tuple(parts)
        self.passed = (lambda index: ()) if passed is None else passed
        self.dims = dims
        self.dtype = dtype
        self.same: object = None
        self.made: tuple[str, tuple[Value, ...]] | None = None
        self._number = number
        self._undefined = undefined
        # a value may be asked about a hundred thousand elements: what is remembered of one is an entry, and no more
        self._numbers: dict[Index, Term | Lost] = {}
        self._conditions: dict[Index, Term | Lost] = {}
        self._open: dict[tuple[bool, Index], _ValueQuestion] = {}

    def number(self, index: Index = ()) -> Term:
        """The element as a term. Raises Lost."""
        if isinstance(self._number, str):
            raise Lost(self._number)
        found = self._once(True, index)
        if isinstance(found, Lost):
            raise found
        return found

    def undefined(self, index: Index = ()) -> Term:
        """The condition under which the element is undefined."""
        if self._undefined is None:
            return FALSE
        return cast(Term, self._once(False, index))

    def _once(self, which: bool, index: Index) -> Term | Lost:
        """The number of an element, or the Lost that says why there is none; or when it is undefined."""
        known = self._numbers if which else self._conditions
        found = known.get(index)
        if found is not None:
            return found
        around = _ASKED.get()
        if around is not None and around.depth >= DEEPEST:
            raise _Deep(self, which, index)
        key = (which, index)
        asked = self._open.setdefault(key, _ValueQuestion())
        asked.depth, asked.used = 1 if around is None else around.depth + 1, 0
        token = _ASKED.set(asked)
        try:
            known[index] = self._asked(which, index)
        except _Deep as deep:
            if around is not None:
                raise
            _in_turn([(self, which, index), deep.question])
        finally:
            _ASKED.reset(token)
        self._open.pop(key, None)
        return known[index]

    def _asked(self, which: bool, index: Index) -> Term | Lost:
        spend(PER_ELEMENT)
        function = cast(Callable[[Index], Term], self._number if which else self._undefined)
        try:
            return function(index)
        except Lost as lost:
            return lost
        except UnsupportedOp as lost:
            return Lost(str(lost))

    @property
    def known(self) -> bool:
        """Whether a term says the number, of a single one."""
        try:
            self.number()
        except Lost:
            return False
        return True

    @property
    def defined(self) -> bool:
        """Whether every element is defined, whatever happens."""
        return self._undefined is None


def _in_turn(questions: list[tuple[Value, bool, Index]]) -> None:
    """Asks the last of some questions first, and before each its dependencies, without deep recursion.

    A thousand steps of a body are a chain of as many values, and Python's stack is not as deep.
    """
    token = _ASKED.set(_ValueQuestion())
    try:
        while questions:
            value, which, index = questions[-1]
            try:
                value._once(which, index)
            except _Deep as deep:
                questions.append(deep.question)
            else:
                questions.pop()
    finally:
        _ASKED.reset(token)


def number(term: Term, dtype: Dtype, span: Span | None = None) -> Value:
    """A single number."""
    return Value((), dtype, lambda index: term, span=span)


def span_of_type(dtype: Dtype) -> Span:
    """The range of an integer or boolean type; meaningless for other types."""
    kind = getattr(dtype, "kind", "")
    if kind not in ("i", "u"):
        return 0, 1
    low, high = integer_range(8 * int(dtype.itemsize), kind == "i")
    return low, high - 1


def hull(values: Sequence[Value]) -> Span:
    """The range of an element of any of some values."""
    return min(v.span[0] for v in values), max(v.span[1] for v in values)


def leaf(source: str, index: Index) -> Term:
    """Whether the element of a load (`loadN`) or carried value (`carriedN`) is undefined: for the asker to say."""
    return Term("leaf", source, *index)


def left_out(load: str, index: Index) -> Term:
    """Whether the element of a load is undefined that its mask leaves out, and that nothing stands for."""
    return Term("leaf", f"{LEFT_OUT}{load}", *index)


def maybe(why: str) -> Term:
    """An unknown condition; why: in words."""
    return Term("maybe", why)


def aligned(part: Value, dims: Sequence[int], index: Index) -> Index:
    """The index in an operand that broadcasts to `index` of shape `dims`."""
    if part.dims == dims:
        # the same one, which values that are asked of it then share
        return index[: len(dims)]
    lead = len(dims) - len(part.dims)
    return tuple(ZERO if n == 1 and dims[k + lead] != 1 else index[k + lead] for k, n in enumerate(part.dims))


def dims_of(aval: Aval) -> tuple[int, ...]:
    """The shape that JAX says of a value or of a reference; () where it says none.

    A dimension whose size is a name is a term; only `values.relations` reads such arrays.
    """
    shape: Any = getattr(aval, "shape", ())
    return tuple(n if isinstance(n, Term) else int(n) for n in shape)  # type: ignore[misc]


def extent_term(n: int | Term) -> Term:
    """A number of elements, which may be a name, as a term."""
    return n if isinstance(n, Term) else Term("int", n)


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
