"""How each type of answer, and a layout, shows itself in a notebook: HTML and SVG, from the object's type.

`core.answer` finds this file by its name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from html import escape
from typing import Any

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.finding import Finding, rows, word
from layoutproof.core.visible import visible
from layoutproof.pictures.counterexamples import finding_drawing
from layoutproof.pictures.picture import svg_picture
from layoutproof.pictures.svg import svg_text

MOST_ROWS = 200
"""Findings that a table shows; the text has all."""
_COLORS = {"proved": "#1a7f37", "refuted": "#cf222e", "error": "#cf222e", "deny": "#cf222e", "unknown": "#8250df"}


def html(value: Any) -> str | None:
    """HTML for a notebook: a layout as its text above its picture, findings as a table with their counts.

    None where the text says it best.
    """
    if hasattr(value, "index_map"):
        drawn = svg(value)
        return None if drawn is None else f"<div><code>{_text(value)}</code><br>{drawn}</div>"
    if hasattr(value, "svg") and not value.findings and hasattr(value, "layout"):
        drawn = svg(value)
        return None if drawn is None else f"<div>{drawn}</div>"
    if isinstance(value, Finding):
        drawn = svg(value)
        return f"<div>{_table([value])}{drawn or ''}</div>"
    head = visible(str(value)).rstrip("\n").rpartition("\n")[2]
    drawn = svg(value) or ""
    return f"<div><p>{escape(head)}</p>{_table(value.findings) if value.findings else ''}{drawn}</div>"


def svg(value: object) -> str | None:
    """The picture of a layout, of a finding, of an answer that draws itself; None for what cannot be drawn."""
    with contextlib.suppress(LayoutError, Undecided):
        if isinstance(value, Finding):
            drawn = finding_drawing(value)
            return None if drawn is None else svg_text(drawn)
        if hasattr(value, "svg"):
            return str(value.svg())
        if hasattr(value, "index_map"):
            return svg_picture(value)
    return None


def _table(findings: Sequence[Finding]) -> str:
    shown = "".join(map(_row, findings[:MOST_ROWS]))
    more = len(findings) - MOST_ROWS
    last = f"<tr><td colspan='4'>.. {more} more; print it to see all</td></tr>" if more > 0 else ""
    head = "<tr><th></th><th>question</th><th>subject</th><th></th></tr>"
    return f"<table>{head}{shown}{last}</table>"


def _row(finding: Finding) -> str:
    said = word(finding)
    detail = "<br>".join(
        f"<b>{_text(name)}</b> {_text(text)}" for name, text in rows(finding) if text not in ("", None)
    )
    color = _COLORS.get(said, "#57606a")
    cells = (f"<b style='color:{color}'>{_text(said)}</b>", _text(finding.question), _text(finding.subject), detail)
    return "<tr>" + "".join(f"<td style='text-align:left'>{cell}</td>" for cell in cells) + "</tr>"


def _text(value: object) -> str:
    return escape(visible(str(value)))
