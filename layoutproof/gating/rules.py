"""The gate's rules as a pyproject.toml has them: found and read as plain data; `policy` interprets them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from layoutproof.core.errors import LayoutError
from layoutproof.core.files import MAX_CONFIG, read, toml_of
from layoutproof.core.files import PYPROJECT as PYPROJECT
from layoutproof.gating import problems
from layoutproof.gating.classes import text_of

Rules = Mapping[str, Any] | LayoutError
"""The gate's table of a pyproject.toml as plain data, or why there is none to be read."""


def rules_in(text: str | bytes, place: str) -> Rules:
    """The gate's rules in a pyproject.toml; empty where it has none, a LayoutError where it is no TOML."""
    try:
        found: Any = toml_of(text, place)
    except LayoutError as error:
        return error
    for key in ("tool", "layoutproof", "gate"):
        found = found.get(key, {})
        if not isinstance(found, dict):
            return LayoutError(problems.RULES_TABLE(place, key, text_of(found)))
    return found  # type: ignore[no-any-return]


def pyproject(above: Path | None = None) -> Path | None:
    """The nearest pyproject.toml, from a file or folder upwards, the current folder where none is given."""
    return nearest(PYPROJECT, above or Path())


def nearest(name: str, start: Path) -> Path | None:
    """The nearest file of a name, from a file or folder upwards."""
    found = (folder / name for folder in (start.absolute(), *start.absolute().parents))
    return next((p for p in found if os.path.lexists(p)), None)


def rules_of(path: Path | None) -> Rules:
    """The gate's rules in a pyproject.toml on disk; empty without one."""
    try:
        return {} if path is None else rules_in(read(path, MAX_CONFIG), path.as_posix())
    except LayoutError as error:
        return error
