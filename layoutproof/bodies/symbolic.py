"""Terms on numbers of which some are not known: sums of named numbers, and conditions that may be open.

A number is an int or a `LinearSum`; a condition is a bool or an `OpenCondition`. Any other result becomes a named
number of its own, named by the operation and its operands: the same operation on the same numbers is the same number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar, cast

from layoutproof.bodies.effects import Body, View
from layoutproof.core.errors import Unsupported
from layoutproof.core.numbers import INTS
from layoutproof.core.operations import INT32, LEAVES, apply
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Relation, Table
from layoutproof.kernel.relations import range_at

Name = tuple[Any, ...]
Interval = tuple[int, int]


class HashedOnce:
    """Frozen data, of which parts have parts: each is hashed once. The hash is not pickled, for it is of one process.

    A dataclass that inherits it names its `__hash__` again.
    """

    __slots__ = ("_hash",)
    __match_args__: tuple[str, ...] = ()
    _hash: int

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            found = hash(tuple([getattr(self, name) for name in self.__match_args__]))
            object.__setattr__(self, "_hash", found)
            return found


@dataclass(frozen=True, slots=True)
class LinearSum(HashedOnce):
    """constant + coefficient * named number + ..; at least one."""

    constant: int
    parts: tuple[tuple[Name, int], ...]
    # names hold sums, whose names hold sums: each is written out to be sorted once
    _text: str = field(default="", init=False, repr=False, compare=False)

    __hash__ = HashedOnce.__hash__

    def __repr__(self) -> str:
        if not self._text:
            object.__setattr__(self, "_text", f"LinearSum(constant={self.constant!r}, parts={self.parts!r})")
        return self._text

    def __str__(self) -> str:
        parts = [shown(name) if k == 1 else f"{k} * {shown(name)}" for name, k in self.parts]
        return " + ".join([*parts, *([str(self.constant)] if self.constant else [])])


@dataclass(frozen=True, slots=True)
class OpenCondition(HashedOnce):
    """A condition that is not known. op: "is" with a name, or "not", "and", "or" with conditions."""

    op: str
    args: tuple[Any, ...]
    __hash__ = HashedOnce.__hash__

    def first(self) -> Name:
        """The name of one condition that it rests on: of those that choose what it compares, where there are some."""
        if self.op == "is":
            inner = _condition_in(self.args[0])
            name: Name = self.args[0] if inner is None else inner.first()
            return name
        return next(a for a in self.args if isinstance(a, OpenCondition)).first()

    def __str__(self) -> str:
        if self.op == "is":
            return shown(self.args[0])
        parts = [str(a) for a in self.args]
        return f"not ({parts[0]})" if self.op == "not" else f" {self.op} ".join(f"({part})" for part in parts)


def _condition_in(name: object) -> OpenCondition | None:
    """A condition that chooses a number of which a name speaks."""
    if isinstance(name, OpenCondition):
        return name
    parts = [n for n, _ in name.parts] if isinstance(name, LinearSum) else name if isinstance(name, tuple) else ()
    return next((found for part in parts if (found := _condition_in(part)) is not None), None)


INFIX = ("+", "-", "*", "//", "%", "<=", "and", "or")
"""Operations that people write between what they take."""

Number = int | LinearSum
Part = TypeVar("Part")
Condition = bool | OpenCondition


def shown(name: object) -> str:
    """A named number or condition, or a part of its name, as people read it.

    >>> below = OpenCondition("is", (("<", 3, ("name", "g0")),))
    >>> shown(("select", OpenCondition("not", (below,)), ("read", "t", 0), 8))
    'select(not (3 < g0), t[0], 8)'
    >>> str(LinearSum(1, ((("name", "g0"), 2),)))
    '2 * g0 + 1'
    >>> shown(("//", ("int32", ("read", "load1", 0, ((named("name", "g0"),), ()))), 2))
    '(load1[0] // 2)'
    """
    match name:
        # what tells a number from the same one elsewhere is not its name
        case ("name", said, *_):
            return str(said)
        case ("<", left, right):
            return f"{shown(left)} < {shown(right)}"
        case ("==", number):
            return f"{shown(number)} == 0"
        case ("read", table, *at):
            return f"{table}[{', '.join(str(k) for k in at if isinstance(k, int | LinearSum))}]"
        case (op, left, right) if op in INFIX:
            return f"({shown(left)} {op} {shown(right)})"
        case ("int32", number):
            return shown(number)
        case (op, *parts):
            return f"{op}({', '.join(map(shown, parts))})"
    return str(name)


def plus(left: Number, right: Number, times: int = 1) -> Number:
    """left + times * right."""
    if isinstance(right, int):
        if isinstance(left, int):
            return left + times * right
        return LinearSum(left.constant + times * right, left.parts) if times * right else left
    if not times:
        return left
    constant, before = (left, ()) if isinstance(left, int) else (left.constant, left.parts)
    constant += times * right.constant
    if not before and times == 1:
        return LinearSum(constant, right.parts)
    if times == -1 and before == right.parts:
        return constant
    parts = dict(before)
    for name, k in right.parts:
        parts[name] = parts.get(name, 0) + times * k
    left_over = tuple(sorted(((n, k) for n, k in parts.items() if k), key=repr))
    return LinearSum(constant, left_over) if left_over else constant


def scaled(number: Number, by: int) -> Number:
    """number * by."""
    return plus(0, number, by)


def named(*name: object) -> LinearSum:
    """A number that has only a name."""
    return LinearSum(0, ((name, 1),))


def renamed(value: Part, change: Callable[[Name], Name | Number]) -> Part:
    """A number, a condition or a part of one in which each named number has another name or is another number.

    >>> g = lambda name: ("name", "g") if name == ("name", "k") else name
    >>> str(renamed(named("//", named("name", "k"), 2), g))
    '(g // 2)'
    """
    return cast(Part, _renamed(value, change))


def _renamed(value: object, change: Callable[[Name], Name | Number]) -> object:
    if isinstance(value, LinearSum):
        total: Number = value.constant
        for part, times in value.parts:
            made = _renamed(part, change)
            total = plus(total, named(*made) if isinstance(made, tuple) else cast(Number, made), times)
        return total
    if isinstance(value, OpenCondition):
        return OpenCondition(value.op, tuple(_renamed(part, change) for part in value.args))
    if not isinstance(value, tuple):
        return value
    inner = tuple(_renamed(part, change) for part in value)
    return change(inner) if inner and isinstance(inner[0], str) else inner


class Symbolic:
    """Evaluates terms of one body at one place of one run.

    names: the values of grid names and loop counters.  assumed: path conditions by name, true or false.
    place: distinguishes an unknown here from the same unknown elsewhere.  within: named numbers with their least and
    greatest value.  tables: of the call, with their assumptions.  relations: assumptions of parts of them.
    loaded: the results of loads, by their names.  asked: collects the numbers that conditions compare.
    regions: what views show here, as far as it was asked.
    """

    def __init__(
        self,
        body: Body,
        names: Mapping[str, Number],
        assumed: Mapping[Name, bool],
        place: object,
        within: Mapping[Name, Interval],
        tables: Mapping[str, Table] = MappingProxyType({}),
        loaded: Mapping[str, Number] = MappingProxyType({}),
        asked: set[object] | None = None,
        relations: Sequence[Relation] = (),
    ) -> None:
        self.body = body
        self.names = names
        self.assumed = assumed
        self.place = place
        self.within = within
        self.tables = tables
        self.loaded = loaded
        self.relations = relations
        self.asked: set[Any] = set() if asked is None else asked
        self.regions: dict[View, Any] = {}
        self._known: dict[Term, Any] = {}
        self._defined: dict[str, Any] = {}
        self.steps = 0

    def __call__(self, term: Term) -> Any:
        """The value of a term: an int, a Sum, a bool, or an Open condition."""
        if term.op == "int":
            return term.args[0]
        known, todo = self._known, [term]
        while todo:
            part = todo[-1]
            if part in known:
                todo.pop()
                continue
            # what is known is not gone through again
            open_ = [] if part.op in LEAVES else [a for a in part.args[part.op == "read" :] if a not in known]
            if open_:
                todo += open_
                continue
            todo.pop()
            self.steps += 1
            known[part] = self._value(part)
        return known[term]

    def _value(self, part: Term) -> Any:
        op = part.op
        if op == "int":
            return part.args[0]
        if op == "name":
            return self._named(part.args[0])
        if op in ("leaf", "maybe"):
            raise Unsupported(f"{op} {part.args[0]}")
        values = [self._known[a] for a in part.args[op == "read" :]]
        if op == "read":
            table = part.args[0].args[0]
            if table in self.loaded:
                return self.loaded[table]
            place = (self.place,) if table in self.body.loads else ()
            return named("read", table, *values, *place)
        if not any(isinstance(v, LinearSum | OpenCondition) for v in values):
            return apply(op, INTS, values)
        return _OPERATIONS.get(op, _other)(self, op, values)

    def _named(self, name: str) -> Any:
        if name in self.names:
            return self.names[name]
        if name in self.body.definitions:
            if name not in self._defined:
                self._defined[name] = self(self.body.definitions[name])
            return self._defined[name]
        if name in self.body.unknowns:
            return named("name", name, self.place)
        return named("name", name)

    def interval(self, number: Number) -> Interval | None:
        """The least and the greatest value, where they are known."""
        if type(number) is int:
            return number, number
        assert isinstance(number, LinearSum)
        low = high = number.constant
        for name, k in number.parts:
            ends = self._ends(name)
            if ends is None:
                return None
            low += k * ends[0 if k > 0 else 1]
            high += k * ends[1 if k > 0 else 0]
        return low, high

    def _ends(self, name: Name) -> Interval | None:
        """The least and the greatest value of a named number, where they are known."""
        ends = self.within.get(name)
        if ends is not None:
            return ends
        match name:
            case ("%", _, int(by)) if by > 0:
                return 0, by - 1
            case ("//", LinearSum() as whole, int(by)) if by > 0:
                around = self.interval(whole)
                return None if around is None else (around[0] // by, around[1] // by)
            case ("read", table, *at) if table in self.tables:
                return _held(self.relations, self.tables[table], at)
            case ("min" | "max" as op, int() | LinearSum() as left, int() | LinearSum() as right):
                sides = self.interval(left), self.interval(right)
                if sides[0] is None or sides[1] is None:
                    return None
                of = min if op == "min" else max
                return of(sides[0][0], sides[1][0]), of(sides[0][1], sides[1][1])
            case ("select", _, *ways) if all(isinstance(way, int | LinearSum) for way in ways):
                known = [ends for way in ways if (ends := self.interval(way)) is not None]
                return (min(a for a, _ in known), max(b for _, b in known)) if len(known) == len(ways) else None
        return None

    def apart(self, number: Number) -> int:
        """How far from 0 a number is at least because no value stands twice in a table: k in k * t[i] - k * t[j]."""
        match number:
            case LinearSum(0, ((("read", name, *at), k), (("read", other, *there), opposite))):
                table = self.tables.get(name)
                if table is None or not table.injective or name != other or k != -opposite:
                    return 0
                gaps = [self.interval(plus(a, b, -1)) for a, b in zip(at, there, strict=True)]
                return abs(k) if any(ends is not None and (ends[0] > 0 or ends[1] < 0) for ends in gaps) else 0
        return 0

    def less(self, left: Number, right: Number) -> Condition:
        """left < right."""
        gap = plus(right, left, -1)
        ends = self.interval(gap)
        if ends is not None and ends[0] > 0:
            return True
        if ends is not None and ends[1] <= 0:
            return False
        parted = self._by_sides(gap)
        if parted is not None:
            return parted
        zero = gap.constant if isinstance(gap, LinearSum) else 0
        # 0 < gap, written with the constant on one side: the same condition has one name
        rest = plus(gap, zero, -1)
        if isinstance(rest, LinearSum) and rest.parts[0][1] < 0:
            # 0 < zero - other is not (zero <= other), which is not (zero - 1 < other)
            return negated(self._is(("<", zero - 1, scaled(rest, -1))))
        return self._is(("<", -zero, rest))

    def _by_sides(self, gap: Number) -> Condition | None:
        """0 < gap where a least or a greatest number is a part of it: 0 < min(a, b) is 0 < a and 0 < b. None if not."""
        for name, k in gap.parts if isinstance(gap, LinearSum) else ():
            match name:
                case ("min" | "max" as op, int() | LinearSum() as a, int() | LinearSum() as b) if k in (1, -1):
                    rest = plus(gap, LinearSum(0, ((name, 1),)), -k)
                    join = both if (op == "min") == (k == 1) else either
                    return join(self.less(0, plus(rest, a, k)), self.less(0, plus(rest, b, k)))
        return None

    def equal(self, left: Number, right: Number) -> Condition:
        """left == right."""
        gap = plus(left, right, -1)
        ends = self.interval(gap)
        if ends is not None and (ends[0] > 0 or ends[1] < 0 or ends[0] == ends[1] == 0):
            return ends == (0, 0)
        if isinstance(gap, LinearSum) and gap.parts[0][1] < 0:
            gap = scaled(gap, -1)
        return self._is(("==", gap))

    def _is(self, name: Name) -> Condition:
        self.asked.add(compared(name))
        if name in self.assumed:
            return self.assumed[name]
        for other, held in self.assumed.items() if name[0] == "<" else ():
            # a number above 64 is above 0, and one not above 64 is not above 128
            if other[0] == "<" and other[2] == name[2] and (other[1] >= name[1] if held else other[1] <= name[1]):
                return held
        return OpenCondition("is", (name,))


def compared(name: Name) -> Any:
    """The number that a condition compares with a constant, by the condition's name."""
    return name[-1] if name[0] in ("<", "==") else name


def _held(relations: Sequence[Relation], table: Table, at: Sequence[object]) -> Interval | None:
    """The least and the greatest value that is assumed of an entry of a table, where both are numbers."""
    low, high = range_at(relations, table, at)
    return (low, high - 1) if type(low) is int and type(high) is int and low < high else None


def negated(condition: Condition) -> Condition:
    """Not the condition."""
    if isinstance(condition, bool):
        return not condition
    return condition.args[0] if condition.op == "not" else OpenCondition("not", (condition,))


def both(left: Condition, right: Condition) -> Condition:
    """left and right."""
    if left is False or right is False:
        return False
    if left is True:
        return right
    return left if right is True else OpenCondition("and", (left, right))


def either(left: Condition, right: Condition) -> Condition:
    """left or right."""
    return negated(both(negated(left), negated(right)))


def _times(on: Symbolic, op: str, values: Sequence[Number]) -> Number:
    left, right = values
    if type(left) is int:
        return scaled(right, left)
    return scaled(left, right) if type(right) is int else named(op, left, right)


def _divided(on: Symbolic, op: str, values: list[Any]) -> Any:
    left, right = values
    if type(right) is int and right > 0 and isinstance(left, LinearSum) and all(k % right == 0 for _, k in left.parts):
        if op == "%":
            return left.constant % right
        return LinearSum(left.constant // right, tuple((n, k // right) for n, k in left.parts))
    ends = on.interval(left) if type(right) is int and right > 0 else None
    if ends is not None and ends[0] // right == ends[1] // right:
        whole = ends[0] // right
        return whole if op == "//" else plus(left, -whole * right)
    return named(op, left, right)


def _select(on: Symbolic, op: str, values: Sequence[Number]) -> Number:
    condition, yes, no = values
    if isinstance(condition, bool):
        return yes if condition else no
    return yes if yes == no else named(op, condition, yes, no)


def _extreme(on: Symbolic, op: str, values: Sequence[Number]) -> Number:
    left, right = values
    smaller = on.less(left, right)
    if isinstance(smaller, bool):
        return left if smaller == (op == "min") else right
    return named(op, left, right)


def _truncated(on: Symbolic, op: str, values: list[Any]) -> Any:
    left, right = values
    ends = on.interval(left)
    exact = type(right) is int and right > 0 and isinstance(left, LinearSum)
    exact = exact and all(k % right == 0 for k in (left.constant, *(k for _, k in left.parts)))
    if exact or (ends is not None and ends[0] >= 0):
        return _divided(on, "//" if op == "truncdiv" else "%", values)
    return named(op, *values)


def _held_in_32_bits(on: Symbolic, op: str, values: Sequence[Number]) -> Number:
    ends = on.interval(values[0])
    return values[0] if ends is not None and ends[0] >= -INT32 and ends[1] < INT32 else named(op, *values)


def _other(on: Symbolic, op: str, values: Sequence[Number]) -> Number:
    return named(op, *values)


_OPERATIONS: Mapping[str, Callable[[Symbolic, str, list[Any]], Any]] = {
    "+": lambda on, op, v: plus(v[0], v[1]),
    "-": lambda on, op, v: plus(v[0], v[1], -1),
    "*": _times,
    "//": _divided,
    "%": _divided,
    "select": _select,
    "truncdiv": _truncated,
    "truncrem": _truncated,
    "multiple_of": lambda on, op, v: v[0],
    "int32": _held_in_32_bits,
    "min": _extreme,
    "max": _extreme,
    "<": lambda on, op, v: on.less(v[0], v[1]),
    "<=": lambda on, op, v: negated(on.less(v[1], v[0])),
    "==": lambda on, op, v: on.equal(v[0], v[1]),
    "!=": lambda on, op, v: negated(on.equal(v[0], v[1])),
    "and": lambda on, op, v: both(v[0], v[1]),
    "or": lambda on, op, v: either(v[0], v[1]),
    "not": lambda on, op, v: negated(v[0]),
}
