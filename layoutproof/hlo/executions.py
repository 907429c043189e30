"""How often each computation of a module runs: once, as often as the loops around it do, or that is unknown.

A loop's trips are the compiler's own `known_trip_count` where its text has one (XLA:CPU and GPU). Where it has none
(libtpu prints none) they follow from the loop itself: one element of its tuple starts at a constant, the body adds a
constant to it, and the condition compares it with a constant. A loop of another form is unknown, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from layoutproof.core.errors import shorten
from layoutproof.hlo import problems
from layoutproof.hlotext.module import Instruction
from layoutproof.hlotext.texts import element_of

_KNOWN = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_SCALAR = re.compile(r"([su]\d+|pred)\[\]")
_DIRECTION = re.compile(r"\bdirection=(LT|LE|GT|GE|NE|EQ)\b")
_BRANCHES = frozenset(("true_computation", "false_computation", "branch_computations"))
_SAME = frozenset(("copy", "bitcast", "copy-start", "copy-done"))
"""Opcodes whose result is the number that went in."""
_MOST = 1 << 31
"""Numbers from here on are left alone: they may have wrapped around."""
_DEEP = 6
"""Operations within one another that are followed; a loop's own have one or two."""
_NESTED = 100

Value = tuple[object, ...] | None
"""One integer within a computation: ("is", n), ("element", k) of the tuple that is its parameter, ("parameter", k),
("add" or "subtract", a, b), (a direction, a, b) of a comparison; None for anything else."""


@dataclass(frozen=True, slots=True)
class Runs:
    """How often something runs each time the program does.

    times: None where a loop's trip count is unknown; `why` says which.  sometimes: it stands in a branch, so that it
    may run less often, or never.
    """

    times: int | None
    sometimes: bool = False
    why: str = ""


@dataclass(slots=True)
class _WhileLoop:
    name: str
    condition: str
    body: str
    start: Sequence[Value]
    known: int | None


@dataclass(slots=True)
class _Body:
    """One computation, as far as loops need it. root: its result, element by element of a tuple."""

    entry: bool = False
    values: dict[str, Value] = field(default_factory=dict)
    tuples: dict[str, tuple[str, ...]] = field(default_factory=dict)
    root: tuple[Value, ...] = ()
    loops: list[_WhileLoop] = field(default_factory=list)


class Executions:
    """Reads computations in the order of the text, and says of each how often it runs."""

    __slots__ = ("_bodies", "_callers", "_now", "_runs", "_within")

    def __init__(self) -> None:
        self._bodies: dict[str, _Body] = {}
        self._callers: dict[str, list[tuple[str, str, _WhileLoop | None]]] = {}
        self._within: dict[str, tuple[str, _WhileLoop]] = {}
        self._runs: dict[str, Runs] = {}
        self._now = ""

    def begin(self, name: str, entry: bool) -> None:
        """A computation begins."""
        self._now = name
        self._bodies[name] = _Body(entry)

    def instruction(self, of: Instruction) -> None:
        """One instruction of it."""
        body = self._bodies[self._now]
        opcode = of.opcode
        if opcode == "tuple":
            body.tuples[of.name] = of.operands
        elif _SCALAR.match(of.shape) or opcode in ("copy-start", "parameter"):
            body.values[of.name] = self._value(of, body)
        if of.root:
            body.root = tuple([_at(body, each) for each in body.tuples.get(of.name, (of.name,))])
        if "=" in of.attributes and not opcode.endswith(("-done", "-update")) and opcode != "parameter":
            self._calls(of, body)

    def end(self) -> None:
        """Ends the computation; data that only it needs is dropped."""
        body = self._bodies[self._now]
        body.values, body.tuples = {}, {}

    def of(self, computation: str) -> Runs:
        """How often a computation runs; never (0) where nothing that runs names it."""
        return self._of(computation, ())

    def _of(self, computation: str, above: tuple[str, ...]) -> Runs:
        known = self._runs.get(computation)
        if known is not None:
            return known
        if computation in above or len(above) > _NESTED:
            return Runs(None, why=problems.CALLS_ITSELF(shorten(computation, 40)))
        body = self._bodies.get(computation)
        total, sometimes, why = int(body is not None and body.entry), False, ""
        unknown = False
        for caller, role, loop in self._callers.get(computation, ()):
            runs = self._of(caller, (*above, computation))
            if runs.times == 0:
                continue
            trips, said = (1, "") if loop is None else self._trips(caller, loop)
            if loop is not None and role == "condition" and trips is not None:
                trips += 1
            sometimes = sometimes or runs.sometimes or role in _BRANCHES
            if trips is None or runs.times is None:
                unknown, why = True, why or runs.why or said
            else:
                total += runs.times * trips
        found = self._runs[computation] = Runs(None if unknown else total, sometimes, why)
        return found

    def _calls(self, of: Instruction, body: _Body) -> None:
        calls = of.calls
        if not calls:
            return
        loop = None
        if of.opcode == "while":
            named = dict(calls)
            found = _KNOWN.search(of.attributes)
            names = body.tuples.get(of.operands[0], ()) if of.operands else ()
            start = [_at(body, each) for each in names]
            known = int(found[1]) if found else None
            loop = _WhileLoop(of.name, named.get("condition", ""), named.get("body", ""), start, known)
            body.loops.append(loop)
            for callee in (loop.condition, loop.body):
                self._within.setdefault(callee, (self._now, loop))
        for role, callee in calls:
            self._callers.setdefault(callee, []).append((self._now, role, loop))

    def _value(self, of: Instruction, body: _Body) -> Value:
        opcode = of.opcode
        if opcode == "constant":
            text = of.inside.strip()
            return ("is", int(text)) if re.fullmatch(r"-?\d{1,12}", text) else None
        if opcode == "parameter":
            return ("parameter", of.number)
        if opcode == "get-tuple-element":
            given = body.values.get(of.operands[0]) if of.operands else None
            return ("element", of.index) if given == ("parameter", 0) else None
        operands = [_at(body, name) for name in of.operands]
        if not operands or None in operands:
            return None
        if opcode in _SAME:
            return operands[0]
        if opcode in ("add", "subtract") and len(operands) == 2:
            return _bounded((opcode, *operands))
        if opcode == "compare" and len(operands) == 2 and (way := _DIRECTION.search(of.attributes)):
            return _bounded((way[1], *operands))
        if opcode in ("fusion", "call"):
            callee = self._bodies.get(next((name for role, name in of.calls if role in ("calls", "to_apply")), ""))
            if callee is not None and len(callee.root) == 1:
                return _bounded(_put(callee.root[0], operands))
        return None

    def _trips(self, caller: str, loop: _WhileLoop) -> tuple[int | None, str]:
        """(the trip count, "") or (None, why it is unknown)."""
        if loop.known is not None:
            return loop.known, ""
        name = shorten(loop.name, 40)
        condition, body = self._bodies.get(loop.condition), self._bodies.get(loop.body)
        if condition is None or body is None or len(condition.root) != 1:
            return None, problems.TRIPS_UNKNOWN(name, "its condition is not there")
        test = condition.root[0]
        if test is None or test[0] not in _HOLDS:
            return None, problems.TRIPS_UNKNOWN(name, "its condition is no comparison of two integers")
        way, left, right = test
        counter = _counter(left)
        if counter is None:
            way, left, right = _MIRRORED[str(way)], right, left
            counter = _counter(left)
        if counter is None:
            return None, problems.TRIPS_UNKNOWN(name, "its condition compares no counter of its own")
        at, ahead = counter
        first = self._number(caller, loop.start[at] if at < len(loop.start) else None)
        end = self._number(loop.condition, right)  # type: ignore[arg-type]
        step = self._step(loop, body, at)
        if first is None or end is None or step is None:
            what = "start" if first is None else "end" if end is None else "step"
            return None, problems.TRIPS_UNKNOWN(name, f"the {what} of its counter is no constant in the text")
        found = _count(str(way), first + ahead, end, step)
        if found is None:
            return None, problems.TRIPS_UNKNOWN(name, "its counter never reaches the end")
        return found, ""

    def _step(self, loop: _WhileLoop, body: _Body, at: int) -> int | None:
        after = body.root[at] if at < len(body.root) else None
        if after is None or after[0] not in ("add", "subtract"):
            return None
        sign, one, other = (1 if after[0] == "add" else -1), after[1], after[2]
        if one != ("element", at) and sign == 1:
            one, other = other, one
        number = self._number(loop.body, other) if one == ("element", at) else None  # type: ignore[arg-type]
        return None if number is None else sign * number

    def _number(self, computation: str, value: Value, depth: int = 0) -> int | None:
        """The number that a value within a computation always is; an element that no trip changes is what it was."""
        if value is None or depth > _DEEP:
            return None
        if value[0] == "is":
            number = int(value[1])  # type: ignore[call-overload]
            return number if abs(number) < _MOST else None
        if value[0] in ("add", "subtract"):
            one, other = (self._number(computation, each, depth + 1) for each in value[1:])  # type: ignore[arg-type]
            if one is None or other is None:
                return None
            return one + other if value[0] == "add" else one - other
        if value[0] == "element" and computation in self._within:
            caller, loop = self._within[computation]
            at = int(value[1])  # type: ignore[call-overload]
            body = self._bodies.get(loop.body)
            kept = body is not None and at < len(body.root) and body.root[at] == value
            if kept and at < len(loop.start) and len(self._callers.get(computation, ())) == 1:
                return self._number(caller, loop.start[at], depth + 1)
        return None


_HOLDS = ("LT", "LE", "GT", "GE", "NE")
_MIRRORED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "NE": "NE", "EQ": "EQ"}


def _count(way: str, first: int, end: int, step: int) -> int | None:
    """How many of first, first + step, .. are before the end; None where they never reach it.

    >>> _count("LT", 0, 8, 1), _count("LT", 0, 8, 3), _count("GE", 7, 0, -1), _count("NE", 0, 8, 3)
    (8, 3, 8, None)
    """
    if way in ("GT", "GE"):
        first, end, step, way = -first, -end, -step, {"GT": "LT", "GE": "LE"}[way]
    if way == "NE":
        apart = end - first
        return apart // step if step and apart % step == 0 and apart // step >= 0 else None
    left = end - first + (way == "LE")
    if left <= 0:
        return 0
    return -(-left // step) if step > 0 else None


def _counter(value: object) -> tuple[int, int] | None:
    """(element, the constant) of an element of the loop's tuple plus a constant."""
    if isinstance(value, tuple):
        if value[0] == "element":
            return value[1], 0
        if value[0] in ("add", "subtract") and value[1][0] == "element" and value[2][0] == "is":
            return value[1][1], value[2][1] if value[0] == "add" else -value[2][1]
    return None


def _at(body: _Body, operand: str) -> Value:
    """An operand's value; `x#1` is element 1 of x."""
    name, indices = element_of(operand)
    if not indices:
        return body.values.get(name)
    if name in body.tuples and len(indices) == 1 and indices[0] < len(body.tuples[name]):
        return _at(body, body.tuples[name][indices[0]])
    return ("element", indices[0]) if body.values.get(name) == ("parameter", 0) and len(indices) == 1 else None


def _put(value: object, given: Sequence[Value]) -> Value:
    """A value of a called computation, with its parameters put in."""
    if not isinstance(value, tuple):
        return None
    if value[0] == "parameter":
        return given[value[1]] if value[1] < len(given) else None
    if value[0] in ("is", "element"):
        return value if value[0] == "is" else None
    parts = [_put(part, given) for part in value[1:]]
    return None if None in parts else (value[0], *parts)


def _bounded(value: Value) -> Value:
    return value if _depth(value) <= _DEEP else None


def _depth(value: object) -> int:
    return 1 + max(map(_depth, value[1:]), default=0) if isinstance(value, tuple) else 0


def words(runs: Runs) -> str:
    """As a report says it.

    >>> words(Runs(8)), words(Runs(8, True)), words(Runs(None))
    ('8 times', 'up to 8 times', 'an unknown number of times')
    """
    if runs.times is None:
        return "an unknown number of times"
    shown = "once" if runs.times == 1 else f"{runs.times} times"
    return f"up to {shown}" if runs.sometimes else shown
