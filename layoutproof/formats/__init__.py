"""Findings, and the forms in which a report of them is written: each file here is one form, with `render(report)`.

A finding is plain data that can be sent to another process: one difference, its class with the proof, and where it is.
"""

from __future__ import annotations

import importlib
import pkgutil

from layoutproof.core.errors import unknown_name
from layoutproof.core.finding import Report, harmless

_DATA = ("json", "sarif")
"""Forms for programs: texts stay as they are, what no terminal should see is spelled in JSON's own way."""


def names() -> tuple[str, ...]:
    """The forms there are: the modules of this package."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(__path__)))


def render(form: str, report: Report) -> str:
    """The report in one form; LayoutError lists the known ones.

    >>> print(render("text", Report("a against b", ())))
    a against b: no change in 0 files
    """
    if form not in names():
        raise unknown_name("format", form, names())
    shown = report if form in _DATA else harmless(report)
    text: str = importlib.import_module(f"{__name__}.{form}").render(shown)
    return text
