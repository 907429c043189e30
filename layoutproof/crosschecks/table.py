"""The result of a run: a row for each source, and the disagreements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, TypedDict

from layoutproof.core.document import Doc
from layoutproof.crosschecks.case import Case
from layoutproof.crosschecks.source import Disagree


@dataclass(frozen=True, slots=True)
class Disagreement:
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
    in_part: why some questions of cases that agree have no answer, and of how many cases.
    """

    source: str
    version: str = ""
    cases: int = 0
    agree: int = 0
    compared: int = 0
    disagreeing: int = 0
    disagree: tuple[Disagreement, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    missing: str = ""
    in_part: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CrosscheckResults:
    """All rows. title: of the cases.  seconds: that the run took."""

    title: str
    rows: tuple[Row, ...]
    seconds: float = 0.0


HEADINGS = ("source", "version", "cases", "agree", "numbers compared", "disagree", "skipped")


def as_text(table: CrosscheckResults) -> str:
    """For people: the rows, why something was skipped, and each disagreement with a line to paste."""
    lines = [f"{table.title}, in {table.seconds:.0f} s", ""]
    cells = [HEADINGS, *map(_cells, table.rows)]
    whole = [row for row in cells if len(row) == len(HEADINGS)]
    widths = [max(len(row[k]) for row in (whole if k else cells)) for k in range(len(HEADINGS))]
    for row in cells:
        aligned = zip(row[2:], widths[2:], strict=False)
        left = (row[0].ljust(widths[0]), row[1].ljust(widths[1]), *(text.rjust(width) for text, width in aligned))
        lines.append("  ".join(left).rstrip())
    for one in table.rows:
        lines += [f"{one.source}: {number} skipped: {why}" for why, number in one.skipped.items()]
        lines += [f"{one.source}: {number} compared in part: {why}" for why, number in one.in_part.items()]
    for found, source in ((found, row.source) for row in table.rows for found in row.disagree):
        lines += ["", *_disagreement(found, source)]
    return "\n".join(lines)


def as_markdown(table: CrosscheckResults) -> str:
    """The rows as a table of Markdown, skipped cases below it, disagreements last."""
    lines = [f"{table.title}, in {table.seconds:.0f} s.", "", f"| {' | '.join(HEADINGS)} |"]
    lines.append("|---|---|" + "---:|" * (len(HEADINGS) - 2))
    for row in map(_cells, table.rows):
        lines.append(f"| {' | '.join([f'`{row[0]}`', *row[1:], *[''] * (len(HEADINGS) - len(row))])} |")
    reasons = [(row.source, n, why) for row in table.rows for why, n in row.skipped.items()]
    if reasons:
        lines += ["", "Skipped:", "", *(f"- `{source}`: {n} × {why}" for source, n, why in reasons)]
    parts = [(row.source, n, why) for row in table.rows for why, n in row.in_part.items()]
    if parts:
        lines += ["", "Compared in part:", "", *(f"- `{source}`: {n} × {why}" for source, n, why in parts)]
    for found, source in ((found, row.source) for row in table.rows for found in row.disagree):
        lines += ["", "```", *_disagreement(found, source), "```"]
    return "\n".join(lines)


def _cells(row: Row) -> tuple[str, ...]:
    if row.missing:
        return row.source, f"skipped: {row.missing}"
    numbers = (row.cases, row.agree, row.compared, row.disagreeing, sum(row.skipped.values()))
    return row.source, row.version, *(f"{number:,}" for number in numbers)


def _disagreement(found: Disagreement, source: str) -> list[str]:
    wrong, place = found.disagree, f"   {found.case.origin}" if found.case.origin else ""
    where = f" at {wrong.index}" if wrong.index else ""
    lines = [f"disagrees  {source}  {found.case}{place}", f"  {wrong.what}{where}"]
    lines += [f"  here     {wrong.ours}", f"  there    {wrong.theirs}"]
    lines += [f"  first    {found.first}"] if found.first.text != found.case.text else []
    return [*lines, f"  again    {found.case.paste(source)}"]


class SourceEntry(TypedDict):
    source: str
    version: str
    cases: int
    agree: int
    compared: Annotated[int, Doc("numbers that were compared in the cases that agree")]
    disagree: int
    skipped: Annotated[dict[str, int], Doc("why a case was not compared, and how often")]
    in_part: Annotated[dict[str, int], Doc("why a part of a case that agrees has no answer, and how often")]
    missing: Annotated[str, Doc("why the source was not asked at all; empty where it was")]


class TableEntry(TypedDict):
    title: str
    seconds: float
    sources: list[SourceEntry]


def as_json(table: CrosscheckResults) -> TableEntry:
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
                "in_part": dict(row.in_part),
                "missing": row.missing,
            }
            for row in table.rows
        ],
    }
