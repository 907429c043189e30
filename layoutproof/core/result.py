"""Three verdicts, and what comes with one."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

Point = Mapping[str, tuple[int, ...]]
"""Named points as plain ints: `{"first": (0, 4), "second": (1, 0)}`; `"sizes"` holds run-time sizes."""


class Verdict(enum.Enum):
    """Ordered worst first, so that `min` combines many.

    >>> min([Verdict.PROVED, Verdict.UNKNOWN, Verdict.REFUTED])
    <Verdict.REFUTED: 'refuted'>
    """

    REFUTED = "refuted"
    UNKNOWN = "unknown"
    PROVED = "proved"

    def __lt__(self, other: Verdict) -> bool:
        return _RANK[self] < _RANK[other]


_RANK = {Verdict.REFUTED: 0, Verdict.UNKNOWN: 1, Verdict.PROVED: 2}


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to one question.

    `counterexample` is there iff refuted (points in the order of the claim), `reason` iff refuted or unknown (one
    sentence of plain words), `decided_by` names the engine that proved or refuted ("digits", "isl", ...; two
    joined by "+" when confirmed), `figures` the exact numbers of the claim (ints, or closed forms as text when
    sizes are symbolic).
    """

    property: str
    subject: str
    verdict: Verdict
    counterexample: Point | None = None
    reason: str = ""
    decided_by: str = ""
    figures: Mapping[str, object] = field(default_factory=dict)

    def __bool__(self) -> NoReturn:
        raise TypeError("a Result has three outcomes; compare .verdict with lp.Verdict.PROVED")

    def __str__(self) -> str:
        lines = [f"{self.verdict.value:<8} {self.property}  {self.subject}"]
        if self.reason:
            lines.append(f"  because  {self.reason}")
        if self.counterexample:
            lines.append(f"  at       {show_point(self.counterexample)}")
        return "\n".join(lines)


def show_point(point: Point) -> str:
    """A point as a message shows it.

    >>> show_point({"first": (0, 4), "sizes": (5000,)})
    'first=(0, 4) sizes=(5000)'
    """
    return " ".join(f"{name}=({', '.join(map(str, value))})" for name, value in point.items())


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
