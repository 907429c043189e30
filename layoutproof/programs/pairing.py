"""Which argument and which result of a program are which of the program that it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from layoutproof.programs import problems

Named = Sequence[tuple[str, Any]]
"""Values by name, each with what must be the same of both: shape and type."""


@dataclass(frozen=True)
class Pairing:
    """inputs: of each argument of the new program, in order, the number of the old one's.  outputs: (new, old) numbers.

    gone, fresh: names of outputs that only the old and only the new program has.  guessed: names differ, and values are
    paired in their order.  why: there is nothing to compare, "" where there is.
    """

    inputs: tuple[int, ...] = ()
    outputs: tuple[tuple[int, int], ...] = ()
    gone: tuple[str, ...] = ()
    fresh: tuple[str, ...] = field(default=())
    guessed: bool = False
    why: str = ""


def paired(inputs: Named, old_inputs: Named, outputs: Named, old_outputs: Named) -> Pairing:
    """The pairing of two programs: by name, and what has a new name in order, where the types then fit.

    >>> paired([("args[0]", 8)], [("args[0]", 8)], [("loss", 1), ("h", 8)], [("h", 8), ("total", 1)])
    Pairing(inputs=(0,), outputs=((0, 1), (1, 0)), gone=(), fresh=(), guessed=True, why='')
    >>> paired([("args[0]", 8)], [("args[0]", 4)], [], []).why
    'args[0] is 8, and was 4, so that no input is one of both'
    """
    pairs, gone, fresh, guessed = _pairs(inputs, old_inputs)
    odd = _odd(pairs, inputs, old_inputs)
    if odd or gone or fresh:
        names = ", ".join([f"{name} is new" for name in fresh] + [f"{name} is gone" for name in gone])
        return Pairing(why=problems.NO_INPUT_OF_BOTH(odd or names))
    results, gone, fresh, renamed = _pairs(outputs, old_outputs)
    odd = _odd(results, outputs, old_outputs)
    if odd or not results:
        return Pairing(why=problems.NO_VALUE_OF_BOTH(odd or "no output has the name of an old one"))
    order = dict(pairs)
    return Pairing(tuple(order[k] for k in range(len(inputs))), tuple(results), gone, fresh, guessed or renamed)


def _pairs(news: Named, olds: Named) -> tuple[list[tuple[int, int]], tuple[str, ...], tuple[str, ...], bool]:
    """((new, old) numbers, names that are gone, names that are new, whether some were paired in order)."""
    at = {name: k for k, (name, _) in enumerate(olds)}
    known = {name for name, _ in news}
    pairs = [(k, at[name]) for k, (name, _) in enumerate(news) if name in at]
    fresh = [k for k, (name, _) in enumerate(news) if name not in at]
    gone = [k for k, (name, _) in enumerate(olds) if name not in known]
    if len(fresh) == len(gone) and all(news[a][1] == olds[b][1] for a, b in zip(fresh, gone, strict=True)):
        return sorted([*pairs, *zip(fresh, gone, strict=True)]), (), (), bool(fresh)
    return pairs, tuple(olds[k][0] for k in gone), tuple(news[k][0] for k in fresh), False


def _odd(pairs: Sequence[tuple[int, int]], news: Named, olds: Named) -> str:
    """The first pair whose types do not fit, in words."""
    return next(
        (
            problems.VALUE_CHANGED(news[a][0], _words(news[a][1]), _words(olds[b][1]))
            for a, b in pairs
            if news[a][1] != olds[b][1]
        ),
        "",
    )


def _words(what: object) -> str:
    return f"{what[1]} {list(what[0])}" if isinstance(what, tuple) else str(what)
