"""Term: one small expression tree for maps and conditions that arrive as text or as a Python callable.

A callable is run once on guarded symbols, which refuse everything whose answer would depend on a value that is not
there yet (`==`, `<`, `bool`, `int`, iteration): a comparison that quietly took one branch would prove the wrong map.
Evaluating the tree on a kind of number *is* the map's `place`.
"""

from __future__ import annotations

import inspect
import operator
import os
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, NoReturn, TypeVar

from layoutproof.core import problems
from layoutproof.core.errors import LayoutError, Unsupported
from layoutproof.core.numbers import Numbers
from layoutproof.core.operations import CONDITIONS, LEAVES, NAMED, OPERATIONS, Op, apply, operation, shift
from layoutproof.core.size import Extent, Size

T = TypeVar("T", bound="Term")

SMALL = 64
"""A term of at most this weight is walked as a tree, which is quick; a heavier one part by part."""
HEAVY = 1 << 60
"""No term weighs more: where parts are shared, the weight can double with each line."""
LONG = 1_000
"""A term of more weight is printed with its repeated parts written once."""


class Term:
    """An expression over named integers; `op` says what, `args` are terms, or the name or the int itself.

    Terms are immutable, and there is one of each: two that read the same are the same object, so `==` and the hash are
    those of the object and cost nothing. A part that is shared in one is shared in all.

    >>> i = Term("name", "i")
    >>> i // 8 + 1 == i // 8 + 1, i + 1 == 1 + i
    (True, False)
    >>> trace(lambda i, j: (i // 8 + 1, j % 128))
    (('i', 'j'), (Term(i // 8 + 1), Term(j % 128)))
    """

    __slots__ = ("__weakref__", "args", "op", "weight")

    op: Op
    args: tuple[Any, ...]
    weight: int
    """Of how many parts it is when each is counted as often as it stands in it, at most HEAVY."""

    def __new__(cls, op: Op, *args: object) -> Term:
        key = (op, *args)
        known = _TERMS.get(key)
        found = None if known is None else known()
        return _only(key) if found is None else found

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a term is immutable: its {name} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a term is immutable: its {name} cannot be deleted")

    def __copy__(self) -> Term:
        return self

    def __deepcopy__(self, memo: object) -> Term:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        if self.weight <= SMALL:
            # pickle keeps what several terms share, and goes down to it on Python's stack
            return Term, (self.op, *self.args)
        parts = every(self)
        place = {id(part): k for k, part in enumerate(parts)}
        return _unpacked, (
            [(part.op, *((place[id(a)],) if isinstance(a, Term) else a for a in part.args)) for part in parts],
        )

    def evaluate(self, names: Mapping[str, Any], on: Numbers) -> Any:
        """The value with `names` (and, for names not there, the size symbols of `on`) put in."""
        if self.weight > SMALL:
            known: dict[int, Any] = {}
            for part in every(self):
                known[id(part)] = part._value(names, on, [known[id(a)] for a in part.args if id(a) in known])
            return known[id(self)]
        if self.op in ("int", "name", "read"):
            return self._value(names, on, ())
        return self._value(names, on, [a.evaluate(names, on) for a in self.args])

    def _value(self, names: Mapping[str, Any], on: Numbers, values: Sequence[Any]) -> Any:
        """The value where those of its arguments are known."""
        op, args = self.op, self.args
        if op == "int":
            return args[0]
        if op == "name":
            return names[args[0]] if args[0] in names else on.symbol(args[0])
        if op == "read":
            raise Unsupported(f"{self} has no value: what {args[0]} holds is not known")
        return apply(op, on, values)

    def names(self) -> tuple[str, ...]:
        """Every name in it, in order of first appearance."""
        if self.op == "name":
            return (self.args[0],)
        if self.op == "int":
            return ()
        return tuple(dict.fromkeys(part.args[0] for part in every(self) if part.op == "name"))

    def divisors(self) -> tuple[Term, ...]:
        """All divisors in it."""
        return tuple(part.args[1] for part in every(self) if part.op in ("//", "%"))

    def __str__(self) -> str:
        if self.weight <= LONG:
            return self._show(0, {})
        return self._show_shared()

    def _show_shared(self) -> str:
        """The text with what stands in it more than once written once: `v2 * v2 where v1 = i + 1, v2 = v1 * v1`."""
        parts = every(self)
        uses = Counter(id(a) for part in parts for a in part.args)
        taken = set(self.names())
        free = (name for k in count(1) if (name := f"v{k}") not in taken)
        shared = [part for part in parts if uses[id(part)] > 1 and part.weight > 1]
        called = {id(part): next(free) for part in shared}
        said = [f"{called[id(part)]} = {part._show(0, called, whole=True)}" for part in shared]
        return f"{self._show(0, called)} where {', '.join(said)}" if said else self._show(0, {})

    def _show(self, outer: int, called: Mapping[int, str], whole: bool = False) -> str:
        """The text inside of an operation that binds as `outer` does. called: parts that are said by a name.

        whole: even if it has a name itself.
        """
        op, args = self.op, self.args
        if id(self) in called and not whole:
            return called[id(self)]
        if op in ("int", "name"):
            return f"({args[0]})" if op == "int" and args[0] < 0 and outer > 0 else str(args[0])
        if op == "read":
            return f"{args[0]}[{', '.join(a._show(0, called) for a in args[1:])}]"
        level = OPERATIONS[op].binds
        if not level:
            return f"{op}({', '.join(a._show(0, called) if isinstance(a, Term) else str(a) for a in args)})"
        if op == "not":
            text = f"not {args[0]._show(level, called)}"
        else:
            text = f"{args[0]._show(level, called)} {op} {args[1]._show(level + 1, called)}"
        return f"({text})" if level < outer else text

    def __repr__(self) -> str:
        return f"Term({self})"

    def __add__(self, other: object) -> Term:
        return arithmetic("+", self, other)

    def __radd__(self, other: object) -> Term:
        return arithmetic("+", other, self)

    def __sub__(self, other: object) -> Term:
        return arithmetic("-", self, other)

    def __rsub__(self, other: object) -> Term:
        return arithmetic("-", other, self)

    def __mul__(self, other: object) -> Term:
        return arithmetic("*", self, other)

    def __rmul__(self, other: object) -> Term:
        return arithmetic("*", other, self)

    def __floordiv__(self, other: object) -> Term:
        return arithmetic("//", self, other)

    def __rfloordiv__(self, other: object) -> Term:
        return arithmetic("//", other, self)

    def __mod__(self, other: object) -> Term:
        return arithmetic("%", self, other)

    def __rmod__(self, other: object) -> Term:
        return arithmetic("%", other, self)

    def __neg__(self) -> Term:
        return arithmetic("-", 0, self)

    def __xor__(self, other: object) -> Term:
        return arithmetic("xor", self, other)

    def __rxor__(self, other: object) -> Term:
        return arithmetic("xor", other, self)

    def __rshift__(self, other: object) -> Term:
        return arithmetic("//", self, 1 << shift(other))

    def __lshift__(self, other: object) -> Term:
        return arithmetic("*", self, 1 << shift(other))

    def __and__(self, other: object) -> Term:
        if type(other) is int and other >= 0 and (other & (other + 1)) == 0:
            return arithmetic("%", self, other + 1)
        raise LayoutError(problems.MASK(self, other))

    def __truediv__(self, other: object) -> NoReturn:
        raise LayoutError(problems.DIVISION(self, other))

    def _refuse(self, what: str, instead: str) -> NoReturn:
        raise LayoutError(problems.MAP_DECISION(what, self, instead))

    def __lt__(self, other: object) -> bool:
        self._refuse(f"truth of < {other}", "layoutproof.minimum, layoutproof.maximum or layoutproof.select")

    __le__ = __gt__ = __ge__ = __lt__

    def __int__(self) -> NoReturn:
        self._refuse("int()", "plain + - * // %")

    __index__ = __float__ = __int__

    def __iter__(self) -> NoReturn:
        self._refuse("entries", "one name per index")


class Traced(Term):
    """A term that a callable of the user computes with: it refuses every operation that needs its value.

    Results computed from one are such terms too. `trace` gives plain terms back.
    """

    __slots__ = ()

    def __new__(cls, op: Op, *args: object) -> Traced:
        return _made(cls, op, args)

    def __eq__(self, other: object) -> bool:
        self._refuse(f"truth of == {other}", "layoutproof.select(layoutproof.equal(a, b), x, y)")

    def __ne__(self, other: object) -> bool:
        self._refuse(f"truth of != {other}", "layoutproof.select(layoutproof.equal(a, b), x, y)")

    def __bool__(self) -> NoReturn:
        self._refuse("truth value", "layoutproof.select(condition, x, y)")

    def __hash__(self) -> NoReturn:
        # membership in a set and a look-up in a dict ask for the hash before they ask for ==, and would quietly say no
        self._refuse("hash", "layoutproof.select(layoutproof.equal(a, b), x, y)")


class _Reference(weakref.ref[Term]):
    """A reference that does not keep its term, and knows the key under which it stands in `_TERMS`."""

    __slots__ = ("key",)

    key: tuple[Any, ...]


_TERMS: dict[tuple[Any, ...], _Reference] = {}
"""Every term that is in use, by its operation and arguments; arguments that are terms are compared as objects."""
_LOCK = threading.RLock()
"""Held while `_TERMS` changes. A term may end, and leave it, in the midst of the making of another one."""


# a term refuses to be changed; its making goes past that, by the quickest way
_put_op, _put_args, _put_weight = (vars(Term)[name].__set__ for name in ("op", "args", "weight"))


def _made(cls: type[T], op: str, args: tuple[object, ...]) -> T:
    term = object.__new__(cls)
    _put_op(term, op)
    _put_args(term, args)
    weight = 1
    if op != "int" and op != "name":
        for part in args:
            if isinstance(part, Term):
                weight += part.weight
        weight = min(weight, HEAVY)
    _put_weight(term, weight)
    return term


def _only(key: tuple[Any, ...]) -> Term:
    """The one term of an operation and its arguments, made where there is none."""
    term = _made(Term, operation(key[0]), key[1:])
    with _LOCK:
        known = _TERMS.get(key)
        found = None if known is None else known()
        if found is not None:
            return found
        reference = _TERMS[key] = _Reference(term, _ended)
        reference.key = key
    return term


def _ended(reference: _Reference) -> None:
    with _LOCK:
        # another thread may have made the same term anew
        if _TERMS.get(reference.key) is reference:
            del _TERMS[reference.key]


def _lock_anew() -> None:
    # a forked child does not have the thread that held the lock, and could never acquire it
    global _LOCK
    _LOCK = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_lock_anew)


def _unpacked(parts: Sequence[tuple[Any, ...]]) -> Term:
    """The last of some terms, each with earlier ones by their place in a tuple: the pickled form of a long one."""
    terms: list[Term] = []
    for op, *args in parts:
        terms.append(Term(op, *(terms[a[0]] if isinstance(a, tuple) else a for a in args)))
    return terms[-1]


def together(terms: Sequence[Term]) -> Callable[[Mapping[str, Any], Numbers], tuple[Any, ...]]:
    """A function that gives the values of some terms, as `evaluate` does for one: a shared part is evaluated once.

    >>> i = Term("name", "i")
    >>> together((i * 3, i * 3 + 1))({"i": 2}, Numbers({}))
    (6, 7)
    """
    parts = every(*terms)
    place = {id(part): k for k, part in enumerate(parts)}
    steps = [(part, [place[id(a)] for a in part.args if id(a) in place]) for part in parts]
    ends = [place[id(term)] for term in terms]

    def values(names: Mapping[str, Any], on: Numbers) -> tuple[Any, ...]:
        known: list[Any] = []
        for part, at in steps:
            known.append(part._value(names, on, [known[k] for k in at]))
        return tuple(known[k] for k in ends)

    return values


def every(*terms: Term) -> list[Term]:
    """Every part of some terms once, parts before wholes, however often it stands in them.

    The name of a table or of a leaf is no part.
    """
    found: dict[int, Term] = {}
    todo: list[Term | None] = [*reversed(terms)]
    whole: list[Term] = []
    while todo:
        part = todo.pop()
        if part is None:
            # all that it is made of was found
            made = whole.pop()
            found[id(made)] = made
        elif id(part) not in found:
            op = part.op
            if op in LEAVES:
                found[id(part)] = part
                continue
            whole.append(part)
            todo.append(None)
            todo += reversed(part.args[1:] if op in NAMED else part.args)
    return list(found.values())


def rebuilt(term: Term, change: Callable[[Term, Term], Term], parts: Sequence[Term] = ()) -> Term:
    """The term with each part as `change` says: (the part, the same of parts that were changed) -> what stands for it.

    A part that stands in it more than once is changed once. parts: `every` of the term, where that is known.
    """
    new: dict[int, Term] = {}
    for part in parts or every(term):
        made = part
        if part.op not in LEAVES:
            keep = part.op in NAMED
            inner = [*part.args[:keep], *[new[id(a)] for a in part.args[keep:]]]
            made = part if all(map(operator.is_, inner, part.args)) else Term(part.op, *inner)
        new[id(part)] = change(part, made)
    return new[id(term)]


ZERO, ONE = Term("int", 0), Term("int", 1)


def check_kind(term: Term, condition: bool) -> Term:
    """The term itself, when it is a condition or a number as asked, all the way down; LayoutError otherwise."""
    _check_one(term, condition)
    for part in reversed(every(term)):
        if part.op in NAMED:
            for operand in part.args[1:]:
                _check_one(operand, False)
        for operand, kind in zip(part.args, OPERATIONS[part.op].operands, strict=False):
            _check_one(operand, kind == "condition")
    return term


def _check_one(term: Term, condition: bool) -> None:
    if (term.op in CONDITIONS) != condition:
        found, wanted = ("a condition", "a number") if not condition else ("a number", "a condition")
        raise LayoutError(problems.WRONG_KIND(term, found, wanted), text=str(term))


def as_term(value: object) -> Term:
    """An int or a term as a term; LayoutError for anything else (floats, bools, arrays)."""
    if isinstance(value, Term):
        return value
    if type(value) is int:
        return Term("int", value)
    raise LayoutError(problems.MAP_NO_INTEGER(value, type(value).__name__))


def minimum(left: Term | int, right: Term | int) -> Term:
    """The smaller of two numbers, also where one is a traced index without a value.

    Args:
        left: An int, or an index that `index_map` traces.
        right: Likewise.

    Returns:
        The smaller, as a term.

    >>> str(minimum(3, 5))
    'min(3, 5)'
    """
    return combined("min", as_term(left), as_term(right))


def maximum(left: Term | int, right: Term | int) -> Term:
    """The larger of two numbers, also where one is a traced index without a value.

    Args:
        left: An int, or an index that `index_map` traces.
        right: Likewise.

    Returns:
        The larger, as a term.

    >>> str(maximum(3, 5))
    'max(3, 5)'
    """
    return combined("max", as_term(left), as_term(right))


def less(left: Term | int, right: Term | int) -> Term:
    """The condition left < right, for `select`.

    Args:
        left: An int, or an index that `index_map` traces.
        right: Likewise.

    Returns:
        The condition, as a term.

    >>> from layoutproof.layouts.map import index_map
    >>> str(index_map(lambda i: select(less(i, 3), i, 0), shape=[8]))
    '(i < 8) -> (select(i < 3, i, 0))'
    """
    return combined("<", as_term(left), as_term(right))


def equal(left: Term | int, right: Term | int) -> Term:
    """The condition left == right, for `select`.

    Args:
        left: An int, or an index that `index_map` traces.
        right: Likewise.

    Returns:
        The condition, as a term.

    >>> from layoutproof.layouts.map import index_map
    >>> str(index_map(lambda i: select(equal(i, 3), i, 0), shape=[8]))
    '(i < 8) -> (select(i == 3, i, 0))'
    """
    return combined("==", as_term(left), as_term(right))


def select(condition: Term, if_true: Term | int, if_false: Term | int) -> Term:
    """One of two numbers, by a condition.

    Args:
        condition: Made by `less` or `equal`.
        if_true: The number where it holds.
        if_false: The number where it does not.

    Returns:
        The choice, as a term.

    Raises:
        LayoutError: The condition was not made by `less` or `equal`: Python has taken one branch already.

    >>> from layoutproof.layouts.map import index_map
    >>> str(index_map(lambda i: select(less(i, 3), i, 7 - i), shape=[8]))
    '(i < 8) -> (select(i < 3, i, 7 - i))'
    """
    if not isinstance(condition, Term):
        raise LayoutError(problems.SELECT_CONDITION(condition))
    return combined("select", condition, as_term(if_true), as_term(if_false))


def trace(function: Callable[..., object]) -> tuple[tuple[str, ...], tuple[Term, ...]]:
    """The parameter names of a Python callable, and its results as terms.

    Raises LayoutError when the callable asks for a value (see `Term`), takes `*args`, or returns no integers.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise LayoutError(problems.MAP_NO_FUNCTION(function)) from None
    if any(p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters):
        raise LayoutError(problems.MAP_PARAMETERS())
    names = tuple(p.name for p in parameters)
    try:
        result = function(*(Traced("name", name) for name in names))
    except LayoutError:
        raise
    except Exception as error:
        raise LayoutError(problems.MAP_RAISED(type(error).__name__, error)) from error
    results = result if isinstance(result, tuple | list) else (result,)
    return names, tuple(_plain(as_term(r)) for r in results)


def _plain(term: Term) -> Term:
    """The term without its guard."""
    if type(term) is not Traced:
        return term
    new: dict[int, Term] = {}
    for part in every(term):
        new[id(part)] = Term(part.op, *(new[id(a)] if isinstance(a, Term) else a for a in part.args))
    return new[id(term)]


def arithmetic(op: Op, left: object, right: object) -> Term:
    """`left op right`. Raises LayoutError for a divisor that is a constant below 1."""
    left, right = as_term(left), as_term(right)
    if op in ("//", "%") and right.op == "int" and right.args[0] <= 0:
        raise LayoutError(problems.DIVISOR(left, op, right))
    return combined(op, left, right)


def combined(op: Op, *parts: Term) -> Term:
    """An operation on terms: guarded where one of them is."""
    return (Traced if any(type(part) is Traced for part in parts) else Term)(op, *parts)


def reads(terms: Iterable[Term]) -> tuple[Term, ...]:
    """Every different read of a table in some terms, inner ones first: `t[i]`, then `t[t[i]]`."""
    return tuple(dict.fromkeys(part for term in terms for part in every(term) if part.op == "read"))


def substitute(term: Term, values: Mapping[Term, Term], tables: Mapping[str, str] | None = None) -> Term:
    """The term with others in the place of names and of reads, all at once: the substituted terms are left as they are.

    tables: other names of tables that are read.

    >>> i, t = Term("name", "i"), Term("name", "t")
    >>> substitute(Term("+", Term("read", t, i), i), {i: Term("int", 3)}, {"t": "rows"})
    Term(rows[3] + 3)
    """

    def change(part: Term, made: Term) -> Term:
        if tables and made.op == "read" and part not in values:
            table = made.args[0].args[0]
            return Term("read", Term("name", tables.get(table, table)), *made.args[1:])
        return values.get(part, made)

    return rebuilt(term, change)


def bind(term: Term, values: Mapping[str, int]) -> Term:
    """The term with ints in the place of names; names that `values` does not have stay, and so do tables.

    Raises LayoutError where a divisor becomes a number below 1.

    >>> bind(Term("//", Term("name", "i"), Term("name", "b")), {"b": 8})
    Term(i // 8)
    >>> bind(Term("//", Term("name", "i"), Term("name", "b")), {"b": 0})
    Traceback (most recent call last):
    layoutproof.core.errors.LayoutError: i // 0: a divisor must be a positive integer
    """

    def change(part: Term, made: Term) -> Term:
        if part.op == "name":
            return Term("int", values[part.args[0]]) if part.args[0] in values else part
        return made if made is part or part.op not in ("//", "%") else arithmetic(part.op, *made.args)

    return rebuilt(term, change)


def size_term(extent: Any) -> Term:
    """An extent (int or Size) as an expression over its size symbols."""
    return as_term(extent if type(extent) is int else extent.evaluate(lambda name: Term("name", name)))


Amount = Extent | Term
"""An extent, or an expression over named parameters that still get their values."""


def value_of(amount: Amount, names: Mapping[str, Any], on: Numbers) -> Any:
    """An amount with `names` put in, on any kind of number: exact on ints, bounds on intervals."""
    if isinstance(amount, Term):
        # most amounts are one name
        return names[amount.args[0]] if amount.op == "name" and amount.args[0] in names else amount.evaluate(names, on)
    if type(amount) is int:
        return amount
    return amount.evaluate(lambda name: names[name] if name in names else on.symbol(name))  # type: ignore[union-attr]


def fixed(amounts: Iterable[Amount]) -> tuple[Extent, ...]:
    """The amounts as extents. Undecided where one is an expression, whose parameters have still to be bound."""
    found = tuple(amounts)
    for amount in found:
        if isinstance(amount, Term):
            raise Unsupported(f"{amount} has still to be chosen")
    return found  # type: ignore[return-value]


def parameters(amounts: Iterable[Amount]) -> tuple[str, ...]:
    """The names in some amounts, in order of first appearance.

    >>> parameters([3, Term("*", Term("name", "b"), Term("name", "M"))])
    ('b', 'M')
    """
    found: dict[str, None] = {}
    for amount in amounts:
        if type(amount) is not int:
            found.update(dict.fromkeys(amount.symbols() if isinstance(amount, Size) else amount.names()))  # type: ignore[union-attr]
    return tuple(found)
