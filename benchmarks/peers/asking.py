"""The side of a peer: a process that answers one question after the other, with the time that each took.

A peer is one file beside this one. It has `INSTALL` (what pip installs for it, the package first), `IMPORT` (the module
that is then there) and `asked(question)`, which gives an `Ask` or raises `NotAsked`. What else it raises, while it
answers, is the peer's refusal.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from importlib import metadata
from typing import Any, NamedTuple

from layoutproof.compiler.serve import serve

LONGEST = 0.5
"""Seconds after which a question is not repeated."""
REPEATED = 30
"""Times that a question is asked at most."""


class NotAsked(Exception):
    """The peer has no words for the question."""


class Refused(Exception):
    """The peer gives no answer."""


class Ask(NamedTuple):
    """run: makes the layouts and asks, and its time is measured.  read: the answer as plain data, outside of the time.

    known: asks of layouts that are made already; None where that is not to be told apart.
    """

    run: Callable[[], Any]
    read: Callable[[Any], Any] = lambda found: found
    known: Callable[[], Any] | None = None


def answering(
    asked: Callable[[dict[str, Any]], Ask], distribution: str, fresh: Callable[[], None] = lambda: None
) -> None:
    """Answers all questions of the asking side.

    distribution: whose version is told.  fresh: is called before each repetition, and forgets what was found before.
    """

    def answer(question: dict[str, Any], tell: object) -> dict[str, Any]:
        version = metadata.version(distribution)
        try:
            ask = asked(question)
        except NotAsked as reason:
            return {"version": version, "said": "not asked", "words": str(reason)}
        try:
            value = ask.read(ask.run())
        except Exception as error:
            words = f"{type(error).__name__}: {error}" if not isinstance(error, Refused) else str(error)
            return {"version": version, "said": "refused", "words": " ".join(words.split())[:300]}
        known = 0.0 if ask.known is None else median_us(ask.known)
        return {"version": version, "said": "answer", "value": value, "us": median_us(ask.run, fresh), "known": known}

    serve(answer)


def median_us(run: Callable[[], Any], before: Callable[[], None] = lambda: None) -> float:
    """Median time of some runs, in microseconds. before: is called before each, outside of its time."""
    times: list[float] = []
    while len(times) < 3 or (sum(times) < LONGEST and len(times) < REPEATED):
        before()
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
        if times[0] > LONGEST:
            break
    return statistics.median(times) * 1e6


def one_of(layout: dict[str, Any], form: str) -> Any:
    """A form of a layout. Raises NotAsked where it has none of that name."""
    if layout.get(form) is None:
        raise NotAsked(f"it has no words for {layout['ours'] or 'such a map'}")
    return layout[form]


def size(extents: Iterable[int]) -> int:
    """How many indices a box has."""
    total = 1
    for extent in extents:
        total *= extent
    return total


def tuples(nested: Any) -> Any:
    """Nested lists as tuples, as CuTe's tools take them.

    >>> tuples([2, [3, 4]])
    (2, (3, 4))
    """
    return tuple(tuples(part) for part in nested) if isinstance(nested, list) else nested
