"""The base of objects with a picture in notebooks: layouts and answers."""

from __future__ import annotations

import importlib

_NOTEBOOK = "layoutproof.pictures.notebook"
"""Found by name: this package lies above. It knows how each type is drawn."""


class Shown:
    """Shows itself in a notebook as pictures and tables; where there are none, the notebook shows its text."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        return _drawn("html", self)

    def _repr_svg_(self) -> str | None:
        return _drawn("svg", self)


def _drawn(form: str, value: object) -> str | None:
    found: str | None = getattr(importlib.import_module(_NOTEBOOK), form)(value)
    return found
