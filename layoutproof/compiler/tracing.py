"""Which user code a file may run: spec and search files name functions, and to trace one is to import and to run it.

Checked in one place: `permit`, before anything is imported, and `function_named`, afterwards. Code that a person names
on a command line may run; code that a file names may be a stranger's:

    --no-trace      no code that a file names is imported; claims that need it are unknown. A link that leads out of the
                    repository is not followed either: a report would quote its target
    trace = [..]    in [tool.layoutproof] of pyproject.toml: only modules with these prefixes. A file counts as the
                    module that it would be, pkg/kernels/mm.py as pkg.kernels.mm. Against a git revision, its list holds
    always          a file outside of the repository is refused, as an absolute path, with `..`, or through a link.
                    A function is a plain name of its module, or a method of one of its classes, and is defined in a
                    module that may be imported: functions that the module imported itself, from Python's library or
                    another, may not be called

The rule is that of the run and not of a question, so it goes along with the work into other threads and processes.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any, TypeVar

from layoutproof.compiler import problems
from layoutproof.core.errors import LayoutError, Unsupported, closest, shorten
from layoutproof.core.files import MAX_CONFIG, PYPROJECT, own_links, read, repository_of, toml_of

T = TypeVar("T")
R = TypeVar("R")
_MOST_WRAPPED = 100

NO_TRACE = "--no-trace"
"""Whose files it is said of are a stranger's."""
NOT_TRACED = "not traced: "
"""Starts the reason of what is unknown because its code was not run."""
_UNJUDGED = "nothing of it was run, so it is not judged here; who has read the code judges it without --no-trace"


def hint_of(reason: str) -> str:
    """The advice for an unknown with this reason, "" where it is not about a stranger's code.

    >>> hint_of("not traced: --no-trace")
    'nothing of it was run, so it is not judged here; who has read the code judges it without --no-trace'
    >>> hint_of("not traced: a.b is not among what pyproject.toml allows: nothing")
    ''
    """
    return _UNJUDGED if reason == NOT_TRACED + NO_TRACE else ""


@dataclass(frozen=True, slots=True)
class Tracing:
    """Which code may be traced. on: any at all.  prefixes: of modules, None = any.  source: of the rule, or why not."""

    on: bool = True
    prefixes: tuple[str, ...] | None = None
    source: str = ""

    def lists(self, module: str) -> bool:
        """Whether a module, by its name, is among what may be imported."""
        return self.prefixes is None or any(f"{module}.".startswith(f"{prefix}.") for prefix in self.prefixes)

    @property
    def allowed(self) -> str:
        """Who allows what."""
        return f"{self.source} allows: {', '.join(self.prefixes or ()) or 'nothing'}"


_NOW: ContextVar[Tracing] = ContextVar("tracing", default=Tracing())  # noqa: B039


_RUN: ContextVar[str] = ContextVar("run", default="")


@contextmanager
def only(tracing: Tracing, run: str = "") -> Iterator[None]:
    """Within it that is what may be traced.

    run: the name of the run that it is a part of, by default a new one where it is not within one already.
    """
    token, named = _NOW.set(tracing), _RUN.set(run or _RUN.get() or os.urandom(8).hex())
    try:
        with own_links(tracing.source == NO_TRACE):
            yield
    finally:
        _NOW.reset(token)
        _RUN.reset(named)


def run_now() -> str:
    """The name of the run, in all its processes: within one, code that was imported stays as it is. "" outside."""
    return _RUN.get()


def carried(function: Callable[[T], R]) -> Callable[[T], R]:
    """The function with what may be traced now, to be called in another thread or process."""
    return partial(_within, function, _NOW.get(), _RUN.get())


def _within(function: Callable[[T], R], tracing: Tracing, run: str, item: T) -> R:
    with only(tracing, run):
        return function(item)


def here(on: bool = True) -> Tracing:
    """The rule of the nearest pyproject.toml, from the current folder upwards. on: False to allow nothing."""
    if not on:
        return Tracing(on=False, source=NO_TRACE)
    path = next((p for f in (Path.cwd(), *Path.cwd().parents) if (p := f / PYPROJECT).is_file()), None)
    try:
        return Tracing() if path is None else stated(read(path, MAX_CONFIG), path.as_posix())
    except LayoutError as error:
        return Tracing(on=False, source=error.problem)


def stated(data: bytes, place: str) -> Tracing:
    """The rule in the text of a pyproject.toml: nothing is allowed if it is no TOML, or `trace` no list of prefixes.

    >>> stated(b'[tool.layoutproof]\\ntrace = ["pkg.kernels"]', "pyproject.toml").prefixes
    ('pkg.kernels',)
    """
    try:
        found: Any = toml_of(data, place)
    except LayoutError as error:
        return Tracing(on=False, source=error.problem)
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


def permit(place: str, near: Path | None = None) -> Tracing:
    """The rule for a function that a file names, `module:function` or `file.py:function`, where it may be traced.

    near: the folder that the naming file stands for, the current one by default.
    Raises Undecided where it is not allowed, LayoutError where it lies outside of the repository, or its name is none.
    """
    tracing = running()
    where, _, name = place.rpartition(":")
    if any(not part.isidentifier() or part.startswith("__") for part in name.split(".")):
        raise LayoutError(problems.PLACE(shorten(name, 80)))
    names = {where}
    if where.endswith(".py"):
        folder = (Path.cwd() if near is None else near).resolve()
        root, path = repository_of(folder), Path(where).resolve()
        if not path.is_relative_to(root):
            raise LayoutError(problems.TRACE_DENIED(shorten(where, 120), root, place))
        # relative to the run's folders: a stranger may choose the folder of the naming file
        bases = {repository_of(Path.cwd()), Path.cwd().resolve()}
        parts = [path.relative_to(base).with_suffix("").parts for base in bases if path.is_relative_to(base)]
        names = {".".join(names) for names in parts}
    # a file that was named from another folder has no name here: a list cannot have it, and without one all may run
    if tracing.prefixes is not None and not any(map(tracing.lists, names)):
        raise Unsupported(f"{NOT_TRACED}{shorten(where, 120)} is not among what {tracing.allowed}")
    return tracing


def running() -> Tracing:
    """The rule of this run. Raises Undecided where nothing that a file names is run."""
    tracing = _NOW.get()
    if not tracing.on:
        raise Unsupported(NOT_TRACED + tracing.source)
    return tracing


def function_named(module: ModuleType, where: str, name: str, rule: Tracing | None) -> object:
    """The object under a name in a module, a method of a class as `Class.method`.

    rule: that of the file that names it, as `permit` gave it; None where a person did, who may name anything.
    Raises LayoutError for a name that is not there or leads on through something else than classes, Undecided for what
    is defined in a module that may not be imported.
    """
    found: object = module
    for k, part in enumerate(parts := name.split(".")):
        if rule is not None and k and not (isinstance(found, type) and _is_of(module, found.__module__, rule)):
            raise LayoutError(problems.NO_PLAIN_NAME(f"{where}:{'.'.join(parts[:k])}"))
        if not hasattr(found, part):
            raise LayoutError(problems.NOTHING_OF_NAME(where, name, closest(part, dir(found))))
        found = getattr(found, part)
    if rule is not None:
        _must_be_its_own(found, module, f"{where}:{name}", rule)
    return found


def _must_be_its_own(found: object, module: ModuleType, place: str, rule: Tracing) -> None:
    code = _code(found)
    # by the dictionary and not by the name: a file pkg/kernels/os.py is a module called os
    if code is not None and code.__globals__ is vars(module):
        return
    home = str(getattr(found, "__module__", "") if code is None else code.__globals__.get("__name__", "")) or "nowhere"
    why = f"{shorten(place, 120)} is defined in {shorten(home, 80)}"
    if rule.prefixes is None and _is_pythons(home):
        raise LayoutError(problems.STANDARD_LIBRARY(shorten(place, 120), shorten(home, 80)))
    if rule.prefixes is not None and (code is None or not rule.lists(home)):
        raise Unsupported(f"{NOT_TRACED}{why}, which is not among what {rule.allowed}")


def _is_of(module: ModuleType, home: str, rule: Tracing) -> bool:
    """Whether a class of a module called `home` may be named in a module that was allowed."""
    return home == module.__name__ or (rule.lists(home) and not (rule.prefixes is None and _is_pythons(home)))


def _is_pythons(home: str) -> bool:
    return home.partition(".")[0] in sys.stdlib_module_names


def _code(found: object) -> FunctionType | None:
    """The function that is called in the end: behind decorators, partial applications, methods and callable objects."""
    for _ in range(_MOST_WRAPPED):
        inner = getattr(found, "__wrapped__", None)
        if inner is not None:
            found = inner
        elif isinstance(found, partial):
            found = found.func
        elif isinstance(found, MethodType):
            found = found.__func__
        elif isinstance(found, FunctionType):
            return found
        elif isinstance(call := inspect.getattr_static(type(found), "__call__", None), FunctionType):
            found = call
        else:
            return None
    return None
