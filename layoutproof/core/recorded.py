"""Concolic integers: each has the term that computes it, and the decisions that code made with it are recorded.

A function is run on them as on plain ints. Arithmetic gives numbers of the same kind, each with its term over the names
that came in. Any other use of one is a decision, and is recorded: the outcome of a comparison, and the number's value
where it reaches opaque code (`int`, `range`, a hash, a text, a shape). A function that depends on its arguments alone
takes the same path for all values of the names with the same decisions, and its terms give its result for them. This is
the rule of symbolic execution, on concrete numbers (DART, Godefroid et al., 2005).

A recorded number is no int for C code, which would read its digits unseen. For `isinstance` it is one, by
`__class__`, as of `unittest.mock` and of `weakref.proxy`: code that asks so would go another way than with plain ints.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping
from types import CodeType, FrameType
from typing import Any, Literal, NamedTuple, TypeVar

from layoutproof.core.numbers import INTS
from layoutproof.core.operations import Op
from layoutproof.core.statements import asserts_equal, raises
from layoutproof.core.term import ZERO, Term

_HERE = __file__

MARK, MARKS = 0xE000, 6400
"""The first character for private use, and how many of them there are: they stand for numbers in a text."""

_T = TypeVar("_T")


class Quoted(NamedTuple):
    """A number that an error's text says. written: how."""

    mark: str
    term: Term
    value: int
    written: Callable[[int], str]


def filled(text: str, quoted: tuple[Quoted, ...], values: Mapping[str, int]) -> str:
    """The text with numbers for marks. values: of the names."""
    for quote in quoted:
        if quote.mark in text:
            text = text.replace(quote.mark, quote.written(quote.term.evaluate(values, INTS)))
    return text


class Trail:
    """The decisions of one run, in order, each condition once.

    decisions: (term or condition, how it ended): a bool of a condition, an int of a number that was read.
    read_inside: numbers that were read inside and nowhere before, with their values, in order.
    library: whether a file is of a library whose caches may hash numbers: an entry for equal numbers is the same.
    inside: whether the library reads numbers for its own use only, which is not recorded; what others read is apart.
    stopped_inside: whether an exception came out of there.
    stand_in: the substitute for a number that an operation of a library wants as an array, None = its value, which
    counts as read.
    quoted: numbers whose text goes nowhere but to a `raise`: it has a mark for each, and they are not recorded.
    """

    def __init__(self, library: Callable[[str], bool] = lambda file: False) -> None:
        self.decisions: list[tuple[Term, int]] = []
        self.read_inside: dict[Term, int] = {}
        self.quoted: list[Quoted] = []
        self.library = library
        self.inside = False
        self.stopped_inside = False
        self.stand_in: Callable[[Recorded], Any] | None = None
        self._known: set[Term] = set()
        self._fixed: set[str] = set()

    def decide(self, term: Term, outcome: int) -> None:
        """Records how a condition over the names ended, or which value a number had.

        Names that were read themselves say how all ends that is over them.
        """
        if term not in self._known and not self._fixed.issuperset(term.names()):
            self._known.add(term)
            self.decisions.append((term, outcome))
            if term.op == "name":
                self._fixed.update(term.names())

    def read(self, number: Recorded) -> int:
        """The value of a number that opaque code gets."""
        if not self.inside:
            self.decide(number.term, number.value)
        elif number.term not in self._known and not self.library(_caller()):
            self.read_inside[number.term] = number.value
        return number.value

    def text(self, number: Recorded, written: Callable[[int], str]) -> str:
        """The text of a number that opaque code gets, or its mark."""
        if len(self.quoted) == MARKS or not raises(_frame()):
            return written(self.read(number))
        self.quoted.append(Quoted(chr(MARK + len(self.quoted)), number.term, number.value, written))
        return self.quoted[-1].mark


def plain(value: Any) -> Any:
    """The int of a recorded number, without a record; anything else as it is."""
    return value.value if type(value) is Recorded else value


def term_of(value: Any) -> Any:
    """The term of a recorded number; anything else as it is."""
    return value.term if type(value) is Recorded else value


def _caller() -> str:
    """The file of the innermost frame that is neither here nor made up by the library of dataclasses."""
    return _code().co_filename


def _code() -> CodeType:
    return _frame().f_code


def _frame() -> FrameType:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename in (_HERE, "<string>"):
        frame = frame.f_back
    return frame


def _binary(op: Op | Literal["shr", ""], apply: Callable[..., object], swapped: bool = False) -> Callable[..., object]:
    def method(self: Recorded, other: object) -> object:
        return self.combined(op, apply, other, swapped)

    return method


def _comparison(apply: Callable[[Any, Any], bool], condition: Callable[[Term, Term], Term]) -> Any:
    """condition: the same as a term, whose end says how the comparison ended."""

    def method(self: Recorded, other: object) -> object:
        if isinstance(other, float):
            return apply(self.trail.read(self), other)
        if not isinstance(other, int):
            return NotImplemented
        if apply in (operator.eq, operator.ne) and getattr(other, "trail", self.trail) is not self.trail:
            # a cache has kept it from another run, and it may stand for another number
            return apply(0, 1)
        if apply in (operator.eq, operator.ne) and _of_keys(self.trail):
            return apply(0, 0 if _as_term(other) == self.term else 1)
        outcome = apply(self.value, plain(other))
        equal = apply in (operator.eq, operator.ne) and outcome is (apply is operator.eq)
        if equal and self.trail.inside and type(other) is int and asserts_equal(_frame()):
            # JAX computes shapes in a body unseen, from the same number
            self.trail.read(self)
            return outcome
        if _as_term(other) is not self.term:
            self.trail.decide(condition(self.term, _as_term(other)), int(outcome))
        return outcome

    return method


def _of_keys(trail: Trail) -> bool:
    """Whether a method of a library asks whether two objects that hold numbers are equal: keys of its caches, of which
    some have one hash whatever they hold. Not equal is always right there: it looks at its entry for other numbers no
    more, and makes one.
    """
    code = _code()
    return code.co_name in ("__eq__", "__ne__") and trail.library(code.co_filename)


def _as_term(value: Any) -> Term:
    return value.term if type(value) is Recorded else Term("int", int(value))


def _read(apply: Callable[..., _T]) -> Callable[..., _T]:
    def method(self: Recorded, *others: object) -> _T:
        return apply(self.trail.read(self), *others)

    return method


def _written(apply: Callable[..., str]) -> Callable[..., str]:
    def method(self: Recorded, *others: object) -> str:
        return self.trail.text(self, lambda value: apply(value, *others))

    return method


class Recorded:
    """One number. term: over the names that came in.  value: in this run.  trail: records the decisions."""

    __slots__ = ("term", "trail", "value")

    def __init__(self, term: Term, value: int, trail: Trail) -> None:
        self.term = term
        self.value = value
        self.trail = trail

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return int

    def combined(self, op: Op | Literal["shr", ""], apply: Callable[[Any, Any], Any], other: Any, swapped: bool) -> Any:
        """The result of an operation with another number, recorded where it is a whole one with a term."""
        if isinstance(other, float | complex):
            mine = self.trail.read(self)
            return apply(other, mine) if swapped else apply(mine, other)
        if not isinstance(other, int):
            return NotImplemented
        pair = [(self.value, self.term), (plain(other), _as_term(other))]
        (a, left), (b, right) = reversed(pair) if swapped else pair
        if op in ("//", "%"):
            self.trail.decide(Term("==", right, ZERO), int(b == 0))
        if op and op != "shl" and op != "shr":
            return Recorded(Term(op, left, right), int(apply(a, b)), self.trail)
        if op and b >= 0:
            # by a number that is fixed it is a multiplication or division
            self.trail.decide(right, b)
            power = Term("int", 1 << b)
            return Recorded(Term("*" if op == "shl" else "//", left, power), int(apply(a, b)), self.trail)
        self.trail.decide(left, a)
        self.trail.decide(right, b)
        return apply(a, b)

    __add__, __radd__ = _binary("+", operator.add), _binary("+", operator.add, True)
    __sub__, __rsub__ = _binary("-", operator.sub), _binary("-", operator.sub, True)
    __mul__, __rmul__ = _binary("*", operator.mul), _binary("*", operator.mul, True)
    __floordiv__, __rfloordiv__ = _binary("//", operator.floordiv), _binary("//", operator.floordiv, True)
    __mod__, __rmod__ = _binary("%", operator.mod), _binary("%", operator.mod, True)
    __lshift__, __rlshift__ = _binary("shl", operator.lshift), _binary("shl", operator.lshift, True)
    __rshift__, __rrshift__ = _binary("shr", operator.rshift), _binary("shr", operator.rshift, True)
    __truediv__, __rtruediv__ = _binary("", operator.truediv), _binary("", operator.truediv, True)
    __pow__, __rpow__ = _binary("", operator.pow), _binary("", operator.pow, True)
    __and__, __rand__ = _binary("", operator.and_), _binary("", operator.and_, True)
    __or__, __ror__ = _binary("", operator.or_), _binary("", operator.or_, True)
    __xor__, __rxor__ = _binary("", operator.xor), _binary("", operator.xor, True)

    __lt__ = _comparison(operator.lt, lambda a, b: Term("<", a, b))
    __gt__ = _comparison(operator.gt, lambda a, b: Term("<", b, a))
    __le__ = _comparison(operator.le, lambda a, b: Term("<=", a, b))
    __ge__ = _comparison(operator.ge, lambda a, b: Term("<=", b, a))
    __eq__ = _comparison(operator.eq, lambda a, b: Term("==", a, b))
    __ne__ = _comparison(operator.ne, lambda a, b: Term("!=", a, b))

    __int__ = __index__ = __trunc__ = _read(int)
    __float__, __complex__, __invert__ = _read(float), _read(complex), _read(operator.invert)
    __round__, __floor__, __ceil__ = _read(round), _read(int), _read(int)
    __str__, __repr__, __format__ = _written(str), _written(repr), _written(format)

    def __jax_array__(self) -> object:
        stand_in = self.trail.stand_in
        return int(self) if stand_in is None else stand_in(self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __neg__(self) -> Recorded:
        return Recorded(Term("-", ZERO, self.term), -self.value, self.trail)

    def __pos__(self) -> Recorded:
        return self

    def __abs__(self) -> Recorded:
        return -self if self < 0 else self

    def __bool__(self) -> bool:
        self.trail.decide(Term("==", self.term, ZERO), int(self.value == 0))
        return self.value != 0

    def __hash__(self) -> int:
        if self.trail.library(_caller()):
            # a cache compares what has one hash only: it finds no entry but that of a number computed in the same way
            return hash((id(self.trail), self.term))
        self.trail.decide(self.term, self.value)
        return hash(self.value)

    def __copy__(self) -> Recorded:
        return self

    def __deepcopy__(self, memo: object) -> Recorded:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(int, name):
            raise AttributeError(f"'int' object has no attribute {name!r}")
        return getattr(self.trail.read(self), name)


def _of_text(apply: Callable[..., _T]) -> Callable[..., _T]:
    def method(self: RecordedText, *others: object) -> _T:
        return apply(self.read(), *others)

    return method


class RecordedText:
    """A text that has recorded numbers in it, which count as read where it is used. value: in this run.

    Like a number it is no text for C code, and one for `isinstance`.
    """

    __slots__ = ("read", "value")

    def __init__(self, value: str, read: Callable[[], str]) -> None:
        self.value, self.read = value, read

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return str

    __str__, __repr__, __format__ = _of_text(str), _of_text(repr), _of_text(format)
    __eq__, __ne__, __hash__ = _of_text(operator.eq), _of_text(operator.ne), _of_text(hash)
    __lt__, __gt__ = _of_text(operator.lt), _of_text(operator.gt)
    __le__, __ge__ = _of_text(operator.le), _of_text(operator.ge)
    __add__, __mul__, __mod__ = _of_text(operator.add), _of_text(operator.mul), _of_text(operator.mod)
    __radd__ = _of_text(lambda mine, other: other + mine)
    __len__, __iter__, __contains__ = _of_text(len), _of_text(iter), _of_text(operator.contains)
    __getitem__ = _of_text(operator.getitem)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(str, name):
            raise AttributeError(f"'str' object has no attribute {name!r}")
        return getattr(self.read(), name)
