"""Which user code a file may run: spec and search files name functions, and to trace one is to import and to run it.

Asked in one place, `permit`, before anything is imported. What a person names on a command line is asked for; what a
file names may come from somebody else:

    --no-trace      nothing that a file names is imported; what needs it is unknown
    trace = [..]    in [tool.layoutproof] of pyproject.toml: only modules with these prefixes. A file counts as the
                    module that it would be, pkg/kernels/mm.py as pkg.kernels.mm. Against a git revision, its list holds
    always          a file outside of the repository is refused, as an absolute path, with `..`, or through a link

The rule is that of the run and not of a question, so it goes along with the work into other threads and processes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from layoutproof.core.errors import LayoutError, Unsupported, shorten
from layoutproof.core.files import read

T = TypeVar("T")
R = TypeVar("R")

PYPROJECT = "pyproject.toml"
MAX_CONFIG = 1 << 24
NOT_TRACED = "not traced: "
"""Starts the reason of what is unknown because its code was not run."""


@dataclass(frozen=True, slots=True)
class Tracing:
    """What may be traced. on: anything at all.  prefixes: of modules, None = any.  source: who says so, or why not."""

    on: bool = True
    prefixes: tuple[str, ...] | None = None
    source: str = ""


_NOW: ContextVar[Tracing] = ContextVar("tracing", default=Tracing())  # noqa: B039


@contextmanager
def only(tracing: Tracing) -> Iterator[None]:
    """Within it that is what may be traced."""
    token = _NOW.set(tracing)
    try:
        yield
    finally:
        _NOW.reset(token)


def carried(function: Callable[[T], R]) -> Callable[[T], R]:
    """The function with what may be traced now, to be called in another thread or process."""
    return partial(_within, function, _NOW.get())


def _within(function: Callable[[T], R], tracing: Tracing, item: T) -> R:
    with only(tracing):
        return function(item)


def here(on: bool = True) -> Tracing:
    """What the nearest pyproject.toml allows, from the current folder upwards. on: False where nothing is wanted."""
    if not on:
        return Tracing(on=False, source="--no-trace")
    path = next((p for f in (Path.cwd(), *Path.cwd().parents) if (p := f / PYPROJECT).is_file()), None)
    try:
        return Tracing() if path is None else stated(read(path, MAX_CONFIG), path.as_posix())
    except LayoutError as error:
        return Tracing(on=False, source=error.problem)


def stated(data: bytes, place: str) -> Tracing:
    """What the text of a pyproject.toml allows: nothing where it is no TOML, or its `trace` no list of prefixes.

    >>> stated(b'[tool.layoutproof]\\ntrace = ["pkg.kernels"]', "pyproject.toml").prefixes
    ('pkg.kernels',)
    """
    try:
        found: Any = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        return Tracing(on=False, source=f"{place}: not TOML: {error}")
    except RecursionError:
        return Tracing(on=False, source=f"{place}: not TOML that can be read: it is nested too deep")
    for key in ("tool", "layoutproof"):
        found = found.get(key, {})
        if not isinstance(found, dict):
            return Tracing(on=False, source=f"{place}: {key} is a table")
    prefixes = found.get("trace")
    if prefixes is None:
        return Tracing()
    if not isinstance(prefixes, list) or not all(isinstance(p, str) and p and "/" not in p for p in prefixes):
        shown = shorten(repr(prefixes), 60)
        why = f"{place}: trace is a list of prefixes of modules, such as ['pkg.kernels'], not {shown}"
        return Tracing(on=False, source=why)
    return Tracing(True, tuple(prefixes), place)


def permit(place: str, near: Path | None = None) -> None:
    """Nothing where a function that a file names, `module:function` or `file.py:function`, may be traced.

    near: the folder that the naming file stands for, the current one by default.
    Raises Undecided where it is not allowed, LayoutError where it lies outside of the repository.
    """
    tracing = _NOW.get()
    if not tracing.on:
        raise Unsupported(NOT_TRACED + tracing.source)
    where = place.rpartition(":")[0]
    names = {where}
    if where.endswith(".py"):
        folder = (Path.cwd() if near is None else near).resolve()
        root, path = repository_of(folder), Path(where).resolve()
        if not path.is_relative_to(root):
            why = (
                f"{shorten(where, 120)} lies outside of the repository {root}, and what a file names is run from inside"
            )
            raise LayoutError(f"{why} only; to trace it, name it on the command line: layoutproof kernels {place}")
        parts = [path.relative_to(base).with_suffix("").parts for base in (root, folder) if path.is_relative_to(base)]
        names = {".".join(names) for names in parts}
    if tracing.prefixes is None:
        return
    if not any(f"{name}.".startswith(f"{prefix}.") for name in names for prefix in tracing.prefixes):
        listed = ", ".join(tracing.prefixes) or "nothing"
        raise Unsupported(f"{NOT_TRACED}{shorten(where, 120)} is not among what {tracing.source} allows: {listed}")


def repository_of(folder: Path) -> Path:
    """The nearest folder upwards that has .git, else the nearest that has a pyproject.toml, else the folder itself."""
    above = (folder, *folder.parents)
    for mark in (".git", PYPROJECT):
        found = next((f for f in above if (f / mark).exists()), None)
        if found is not None:
            return found
    return folder
