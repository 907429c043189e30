"""Integers of a program that depend on the device alone: where a device's own part of an array begins."""

from __future__ import annotations

import re
from collections.abc import Callable

from layoutproof.core.errors import Undecided
from layoutproof.hlo import problems
from layoutproof.hlotext.module import Instruction

_INTEGERS = re.compile(r"-?\d+")
_DIRECTION = re.compile(r"\bdirection=([A-Z]{2})")
_SAME = frozenset(("convert", "copy", "bitcast", "reshape", "broadcast", "slice"))
_TWO: dict[str, Callable[[int, int], int]] = {
    "add": int.__add__,
    "subtract": int.__sub__,
    "multiply": int.__mul__,
    "maximum": max,
    "minimum": min,
    "and": int.__and__,
    "or": int.__or__,
    "xor": int.__xor__,
    "shift-left": lambda a, b: a << b if 0 <= b < 32 else 0,
}
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "EQ": int.__eq__,
    "NE": int.__ne__,
    "LT": int.__lt__,
    "LE": int.__le__,
    "GT": int.__gt__,
    "GE": int.__ge__,
}
_MOST = 1 << 31


def literal(text: str) -> tuple[int, ...] | None:
    """The integers of a constant, row-major; None for what is not written out, or no integers.

    >>> literal("{0, 8, 16}"), literal("7"), literal("true"), literal("{...}")
    ((0, 8, 16), (7,), (1,), None)
    """
    if "..." in text or "." in text:
        return None
    found = text.replace("true", "1").replace("false", "0")
    return tuple(map(int, _INTEGERS.findall(found))) if not re.search(r"[a-zA-Z]", found) else None


def computed(of: Instruction, given: Callable[[int], int], device: int, partitions: int) -> int:
    """The result of a scalar instruction on a device. given: its operands, by number.

    Raises Undecided for an operation whose number does not follow from these.
    """
    opcode = of.opcode
    if opcode == "partition-id":
        return device % partitions
    if opcode == "replica-id":
        return device // partitions
    if opcode in _SAME:
        return given(0)
    if opcode == "constant":
        values = literal(of.inside)
        if values is not None and len(set(values)) == 1:
            return values[0]
    elif opcode in _TWO:
        return _bounded(of, _TWO[opcode](given(0), given(1)))
    elif opcode in ("divide", "remainder", "shift-right-logical", "shift-right-arithmetic"):
        one, two = given(0), given(1)
        if one >= 0 and two > 0 and opcode in ("divide", "remainder"):
            return one // two if opcode == "divide" else one % two
        if one >= 0 and 0 <= two < 32 and opcode.startswith("shift"):
            return one >> two
    elif opcode == "compare" and (way := _DIRECTION.search(of.attributes)):
        return int(_COMPARE[way[1]](given(0), given(1)))
    elif opcode == "select":
        return given(1) if given(0) else given(2)
    elif opcode == "clamp":
        return max(given(0), min(given(1), given(2)))
    elif opcode == "negate":
        return -given(0)
    raise Undecided(problems.NO_NUMBER_OF_DEVICE(of.name))


def _bounded(of: Instruction, value: int) -> int:
    if abs(value) >= _MOST:
        raise Undecided(problems.MORE_THAN_32_BITS(of.name))
    return value
