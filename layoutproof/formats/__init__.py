"""Findings, and the forms in which a report of them is written: each file here is one form, with `render(report)`.

A finding is plain data that can be sent to another process: one difference, its class with the proof, and where it is.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from layoutproof.core import plugins
from layoutproof.core.errors import unknown_name
from layoutproof.core.finding import Report, harmless

_DATA = ("json", "sarif")
"""Formats for programs: texts stay as they are, unsafe characters are escaped as in JSON."""


def names() -> tuple[str, ...]:
    """The forms there are: the modules of this package."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(__path__)))


def form_of(name: str) -> str:
    """The name itself, of a form here or of one that another package adds. LayoutError lists the known ones."""
    if name not in names() and plugins.load("formats", name, WANTED) is None:
        raise unknown_name("format", name, (*names(), *plugins.names("formats", names())))
    return name


WANTED = ("render",)
"""The protocol of a format's module."""


def render(form: str, report: Report) -> str:
    """The report in one form.

    Args:
        form: Name of the form: a file of this package, or a plugin's.
        report: The findings with what they are about.

    Returns:
        The whole text of that form.

    Raises:
        LayoutError: There is no such form; the text lists the known ones.

    >>> print(render("text", Report("a against b", ())))
    a against b: no change in 0 files
    """
    form_of(form)
    shown = report if form in _DATA else harmless(report)
    own = form in names()
    module: Any = importlib.import_module(f"{__name__}.{form}") if own else plugins.load("formats", form, WANTED)
    text: str = module.render(shown)
    return text
