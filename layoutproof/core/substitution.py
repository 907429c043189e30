"""The parts of a `where` condition on single size symbols, as a change of variables.

`N % 8 == 0 and N >= 64` means N = 8*n + 56 for some n >= 1, and `N % t == 0` means N = n*t. Putting that in for N lets
the structural engine use the assumption without a solver. Conditions of other forms are left out: a proof
then holds for more sizes.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd, lcm
from typing import Any

from layoutproof.core.errors import Undecided
from layoutproof.core.numbers import SizeNumbers
from layoutproof.core.size import Extent, Size, evaluate, surely_less, symbol
from layoutproof.core.term import Term


def substitution(where: Term | None) -> dict[str, Extent]:
    """For each restricted symbol, an int or a polynomial in the same symbol that takes all allowed values.

    >>> from layoutproof.core.expression import parse_condition
    >>> substitution(parse_condition("N % 8 == 0 and N >= 64 and M == 3"))
    {'N': Size(8*N + 56), 'M': 3}
    >>> substitution(parse_condition("N % t == 0 and t % 8 == 0"))
    {'t': Size(8*t), 'N': Size(8*N*t)}
    """
    if where is None:
        return {}
    lows: dict[str, int] = {}
    steps: dict[str, tuple[int, int]] = {}
    fixed: dict[str, int] = {}
    multiples: dict[str, Size] = {}
    for part in conjuncts(where):
        match _simple(part):
            case ("mod", name, step, rest):
                steps[name] = _both_steps(steps.get(name, (1, 0)), (step, rest))
            case ("low", name, low, _):
                lows[name] = max(lows.get(name, 1), low)
            case ("is", name, value, _):
                fixed[name] = value
            case None if found := _multiple(part):
                multiples.setdefault(*found)
    result: dict[str, Any] = {}
    for name in (*steps, *lows):
        step, rest = steps.get(name, (1, 0))
        low = lows.get(name, 1)
        first = low + (rest - low) % step
        result[name] = symbol(name) * step + (first - step)
    result.update({name: value for name, value in fixed.items() if value >= 1})
    return _with_multiples(result, {name: by for name, by in multiples.items() if name not in fixed})


def _both_steps(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """(step, rest) of the numbers that leave both rests (Chinese remainder theorem); `one` where none leaves both.

    >>> _both_steps((8, 0), (3, 1)), _both_steps((8, 4), (12, 8)), _both_steps((8, 1), (2, 0))
    ((24, 16), (24, 20), (8, 1))
    """
    (step, rest), (by, left) = one, other
    common = gcd(step, by)
    if (left - rest) % common:
        return one
    whole = lcm(step, by)
    # rest + step * k leaves `left` by `by`
    steps = (left - rest) // common * pow(step // common, -1, by // common)
    return whole, (rest + step * steps) % whole


def _with_multiples(result: dict[str, Extent], multiples: dict[str, Size]) -> dict[str, Extent]:
    """`result` with each of `multiples` (name, the size that divides it) put in after the sizes it depends on."""
    waiting = dict(multiples)
    while waiting:
        ready = next((name for name, by in waiting.items() if not set(by.symbols()) & set(waiting)), None)
        if ready is None:
            # two that divide each other: one of the conditions is left out
            waiting.pop(next(iter(waiting)))
            continue
        by = evaluate(waiting.pop(ready), lambda name: result.get(name, symbol(name)))
        result.pop(ready, None)
        result[ready] = symbol(ready) * by
    return result


def _multiple(part: Term) -> tuple[str, Size] | None:
    """(N, t) of `N % t == 0`, t a size that is positive for all values of its symbols."""
    if part.op != "==":
        return None
    left, right = part.args if part.args[1].op == "int" else part.args[::-1]
    if right.op != "int" or right.args[0] != 0 or left.op != "%" or left.args[0].op != "name":
        return None
    name = left.args[0].args[0]
    try:
        by = left.args[1].evaluate({}, SizeNumbers())
    except Undecided:
        return None
    if not isinstance(by, Size) or name in by.symbols() or not surely_less(0, by):
        return None
    return name, by


def largest(where: Term | None, names: Iterable[str]) -> int | None:
    """No size of these is larger in any choice of sizes that a condition allows; None where that is not seen.

    >>> from layoutproof.core.expression import parse_condition
    >>> largest(parse_condition("N <= 3 and (M == 7 or 2 * M < N and M < 5)"), ("N", "M"))
    7
    """
    if where is None:
        return None
    most = 0
    for case in alternatives(where):
        found = [_simple(part) for part in conjuncts(case)]
        for name in names:
            bounds = [value for kind, own, value, _ in filter(None, found) if own == name and kind in ("high", "is")]
            if not bounds:
                return None
            most = max(most, *bounds)
    return most


def alternatives(where: Term) -> list[Term]:
    """Conditions that cover `where` when taken together: its disjunctive form, left alone where that grows too long.

    >>> from layoutproof.core.expression import parse_condition
    >>> alternatives(parse_condition("N % 8 == 0 and (M == 1 or M == 2)"))
    [Term(N % 8 == 0 and M == 1), Term(N % 8 == 0 and M == 2)]
    """
    return _cases(where) if _count(where) <= 16 else [where]


def _count(where: Term) -> int:
    if where.op not in ("and", "or"):
        return 1
    left, right = map(_count, where.args)
    return left * right if where.op == "and" else left + right


def _cases(where: Term) -> list[Term]:
    if where.op == "or":
        return _cases(where.args[0]) + _cases(where.args[1])
    if where.op == "and":
        return [Term("and", left, right) for left in _cases(where.args[0]) for right in _cases(where.args[1])]
    return [where]


def conjuncts(where: Term) -> list[Term]:
    """The parts of a conjunction, in order."""
    if where.op == "and":
        return conjuncts(where.args[0]) + conjuncts(where.args[1])
    return [where]


def _simple(part: Term) -> tuple[str, str, int, int] | None:
    if part.op not in ("==", "<", "<="):
        return None
    left, right = part.args
    if part.op == "==":
        if left.op == "int":
            left, right = right, left
        if right.op != "int":
            return None
        if left.op == "name":
            return ("is", left.args[0], right.args[0], 0)
        if left.op == "%" and left.args[0].op == "name" and left.args[1].op == "int":
            step = left.args[1].args[0]
            return ("mod", left.args[0].args[0], step, right.args[0]) if 0 <= right.args[0] < step else None
        return None
    if left.op == "int" and right.op == "name":
        return ("low", right.args[0], left.args[0] + (part.op == "<"), 0)
    if left.op == "name" and right.op == "int":
        return ("high", left.args[0], right.args[0] - (part.op == "<"), 0)
    return None
