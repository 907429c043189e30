"""Where arithmetic of a body does not overflow: x wrapped to 32 bits, `int32(x)`, is x where its bounds show it.

So is a number wrapped to fewer bits. The interpreter writes `int32(..)` where the bounds of the operands do not exclude
a wrap, and always wraps narrower numbers. Later facts, about elements, trip counts and tables, remove most of them; the
engines see the rest as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from layoutproof.bodies.bit_terms import signed_rest
from layoutproof.core.errors import Undecided
from layoutproof.core.operations import CONDITIONS, INT32, apply
from layoutproof.core.size import evaluate, symbols_of
from layoutproof.core.term import Term, every, rebuilt
from layoutproof.kernel.kernel import Kernel
from layoutproof.solvers.interval import Interval, IntervalNumbers, ends

Bounds = Callable[[Term], Any]
"""A part of a term -> an int, an interval, a condition; None where nothing bounds it."""
ANY = Interval(float("-inf"), float("inf"))


def unwrapped(term: Term) -> Term:
    """The term over the unbounded integers."""
    if not _may_wrap(term):
        return term
    return rebuilt(term, lambda part, made: made.args[0] if part.op == "int32" else made)


def without(terms: Sequence[Term], within: Bounds) -> list[Term]:
    """The terms without `intN(..)` around numbers that fit in so many bits with a sign."""

    def change(part: Term, made: Term) -> Term:
        held, left = signed_rest(part), signed_rest(made)
        return left[0] if held and left and _holds(within(held[0]), held[1]) else made

    return [rebuilt(term, change) if any(map(signed_rest, every(term))) else term for term in terms]


def never_wraps(term: Term, within: Bounds) -> bool:
    """Whether no `int32(..)` in a term loses anything."""
    return all(_holds(within(part.args[0])) for part in every(term) if part.op == "int32")


def _may_wrap(term: Term) -> bool:
    return any(part.op == "int32" for part in every(term))


def _holds(value: object, bits: int = 32) -> bool:
    if value is None or isinstance(value, bool):
        return False
    low, high = ends(value)
    return bool(low >= -(1 << (bits - 1)) and high < 1 << (bits - 1))


def bounds(
    kernel: Kernel,
    body: Any,
    known: Mapping[str, tuple[int, int]],
    reads: Callable[[Term], tuple[int, int] | None] = lambda read: None,
) -> Bounds:
    """The bounds of terms of a body, an interpreter or a Body.

    known: of names, both ends included; names of the grid, unknowns and definitions are known without.  reads: of what
    is read of tables, None where nothing is known of it.
    """
    on = IntervalNumbers()
    found: dict[Term, Any] = {}
    grid = dict(zip(kernel.grid_names, kernel.grid, strict=True))
    named: dict[str, Any] = {}
    largest = kernel.largest()

    def size(extent: Any) -> Any:
        """The extent of a dimension of the grid; the most that it may be where names say it."""
        if type(extent) is int:
            return extent
        if not largest.keys() >= {*symbols_of((extent,))}:
            return INT32
        try:
            return min(ends(evaluate(extent, lambda name: Interval(0, largest[name])))[1], INT32)
        except (Undecided, TypeError, AttributeError):
            return INT32

    def of_name(name: str) -> Any:
        if name in known:
            return Interval(*known[name])
        if name in grid:
            return Interval(0, max(size(grid[name]) - 1, 0))
        if name in largest:
            return Interval(0, largest[name])
        if name in body.unknowns:
            return Interval(body.unknowns[name].low, body.unknowns[name].high - 1)
        if name in body.definitions:
            if name not in named:
                named[name] = ANY
                named[name] = of(body.definitions[name])
            return named[name]
        return ANY

    def value(part: Term) -> Any:
        if part.op == "int":
            return part.args[0]
        if part.op == "name":
            return of_name(part.args[0])
        if part.op == "read":
            ends_ = reads(part)
            return ANY if ends_ is None else Interval(*ends_)
        if part.op in ("leaf", "maybe"):
            return None
        try:
            return apply(part.op, on, [found[a] for a in part.args])
        except (Undecided, TypeError, AttributeError, ValueError, OverflowError, ZeroDivisionError):
            return None if part.op in CONDITIONS else ANY

    def of(term: Term) -> Any:
        for part in every(term):
            if part not in found:
                found[part] = value(part)
        return found[term]

    return of
