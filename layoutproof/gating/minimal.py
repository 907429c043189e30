"""A smallest set of parts that makes something: delta debugging.

Source: A. Zeller, R. Hildebrandt, Simplifying and Isolating Failure-Inducing Input, IEEE TSE 28(2), 2002 (ddmin).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Minimal(Generic[T]):
    """parts: a set that makes it, in their order; () where all of them together do not.

    whole: whether it makes it no longer without any one of them; False where the budget was spent before.
    """

    parts: tuple[T, ...]
    whole: bool


class Spent(Exception):
    """The budget for trying is spent."""


def minimal(
    parts: Sequence[T], makes: Callable[[Sequence[T]], bool], guesses: Sequence[Sequence[T]] = ()
) -> Minimal[T]:
    """A set of parts that makes it, and of which none can be left out.

    makes: whether some parts make it; what cannot be tried does not. It raises Spent where it is asked too often.
    guesses: sets to try before all others.

    >>> minimal(range(20), lambda chosen: {3, 17} <= {*chosen})
    Minimal(parts=(3, 17), whole=True)
    """
    known: dict[tuple[int, ...], bool] = {(): False}

    def holds(chosen: Sequence[int]) -> bool:
        key = tuple(sorted(chosen))
        if key not in known:
            known[key] = makes([parts[k] for k in key])
        return known[key]

    current: list[int] = []
    try:
        first = next((list(g) for g in _numbers(parts, guesses) if holds(g)), None)
        if first is None and not holds(range(len(parts))):
            return Minimal((), True)
        current = first if first is not None else [*range(len(parts))]
        many = 2
        while len(current) > 1:
            size = -(-len(current) // many)
            chunks = [current[k : k + size] for k in range(0, len(current), size)]
            chunk = next((each for each in chunks if holds(each)), None)
            if chunk is not None:
                current, many = chunk, 2
                continue
            rests = ([k for k in current if k not in each] for each in chunks)
            rest = next((each for each in rests if holds(each)), None) if len(chunks) > 2 else None
            if rest is not None:
                current, many = rest, max(many - 1, 2)
            elif size == 1:
                break
            else:
                many = min(2 * many, len(current))
    except Spent:
        return Minimal(tuple(parts[k] for k in current), False)
    return Minimal(tuple(parts[k] for k in current), True)


def _numbers(parts: Sequence[T], guesses: Sequence[Sequence[T]]) -> list[list[int]]:
    return [[k for k, part in enumerate(parts) if part in guess] for guess in guesses if guess]
