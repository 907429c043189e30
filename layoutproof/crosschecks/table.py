"""What came of a run: a row for each source, and the disagreements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from layoutproof.crosschecks.case import Case
from layoutproof.crosschecks.source import Disagree


@dataclass(frozen=True, slots=True)
class Found:
    """A disagreement. case: the smallest on which it was found.  first: the case as it came."""

    case: Case
    first: Case
    disagree: Disagree


@dataclass(frozen=True, slots=True)
class Row:
    """One source.

    cases: how many it was given.  agree, compared: on how many of them it agrees, with how many numbers.
    disagree: each kind of disagreement once, on the smallest case.  disagreeing: how many cases.
    skipped: why, and how often.  missing: why it was not asked at all, "" where it was.
    """

    source: str
    version: str = ""
    cases: int = 0
    agree: int = 0
    compared: int = 0
    disagreeing: int = 0
    disagree: tuple[Found, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """All rows. title: what was put to the sources.  seconds: that the run took."""

    title: str
    rows: tuple[Row, ...]
    seconds: float = 0.0


def as_text(table: Table) -> str:
    """For people: the rows, then each disagreement with a line to paste."""
    lines = [f"{table.title}, in {table.seconds:.0f} s"]
    for row in table.rows:
        if row.missing:
            lines.append(f"{row.source:<12} skipped: {row.missing}")
            continue
        counts = (
            f"{row.cases} cases, {row.agree} agree, {row.disagreeing} disagree, {sum(row.skipped.values())} skipped"
        )
        lines.append(f"{row.source:<12} {row.version}: {counts}")
        lines += [f"             {number} skipped: {why}" for why, number in row.skipped.items()]
    for row in table.rows:
        for found in row.disagree:
            wrong = found.disagree
            lines.append(f"disagrees  {row.source}  {found.case}  {wrong.what} at {wrong.index}")
            lines.append(
                f"  ours     {wrong.ours}\n  theirs   {wrong.theirs}\n  again    {found.case.paste(row.source)}"
            )
    return "\n".join(lines)


def as_json(table: Table) -> dict[str, Any]:
    """For programs."""
    return {
        "title": table.title,
        "seconds": round(table.seconds, 3),
        "sources": [
            {
                "source": row.source,
                "version": row.version,
                "cases": row.cases,
                "agree": row.agree,
                "compared": row.compared,
                "disagree": row.disagreeing,
                "skipped": dict(row.skipped),
                "missing": row.missing,
            }
            for row in table.rows
        ],
    }
