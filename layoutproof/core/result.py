"""Three verdicts, and the points and figures that come with one, as people and programs read them."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

Point = Mapping[str, tuple[int, ...]]
"""Named points as plain ints: `{"first": (0, 4), "second": (1, 0)}`; `"sizes"` holds the claim's sizes in order."""

Counterexample = Mapping[str, Any]
"""Named points as people see them: tuples of ints, and `"sizes"` as a mapping from size symbol to int."""


class Verdict(enum.Enum):
    """Ordered worst first, so that `min` combines many.

    >>> min([Verdict.PROVED, Verdict.UNKNOWN, Verdict.REFUTED])
    <Verdict.REFUTED: 'refuted'>
    """

    REFUTED = "refuted"
    UNKNOWN = "unknown"
    SAMPLED = "sampled"
    PROVED = "proved"

    def __lt__(self, other: Verdict) -> bool:
        return _RANK[self] < _RANK[other]

    @property
    def exit_code(self) -> int:
        """0 proved or sampled, 1 refuted, 3 unknown; 2 is for bad input, which has no verdict."""
        return _CODES[self]


_RANK = {Verdict.REFUTED: 0, Verdict.UNKNOWN: 1, Verdict.SAMPLED: 2, Verdict.PROVED: 3}
_CODES = {Verdict.PROVED: 0, Verdict.SAMPLED: 0, Verdict.REFUTED: 1, Verdict.UNKNOWN: 3}


def show_point(point: Counterexample) -> str:
    """A point as a message shows it.

    >>> show_point({"sizes": {"N": 5}, "first": (0, 4), "second": (1,)})
    'sizes=(N = 5) first=(0, 4) second=(1)'
    """
    return " ".join(f"{name}=({_shown(value)})" for name, value in point.items())


def _shown(value: Any) -> str:
    return show_sizes(value) if isinstance(value, Mapping) else ", ".join(map(str, value))


def show_sizes(sizes: Mapping[str, int]) -> str:
    """Sizes as a message shows them.

    >>> show_sizes({"N": 5, "M": 1})
    'N = 5, M = 1'
    """
    return ", ".join(f"{name} = {value}" for name, value in sizes.items())


def plain(value: Any) -> Any:
    """What JSON and YAML can hold: lists, dicts, text and numbers; anything else, such as a `Size`, becomes its text.

    >>> from layoutproof.core.size import symbol
    >>> plain({"padded": (2, 8 * symbol("N"))})
    {'padded': [2, '8*N']}
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        return [part if type(part) is int else plain(part) for part in value]
    if isinstance(value, Mapping):
        return {str(k): v if type(v) is int else plain(v) for k, v in value.items()}
    return str(value)


_PLAIN = frozenset({int, str, bool, float, type(None)})
