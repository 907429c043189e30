"""Plugins of other packages: languages, properties, targets and report formats behind entry points.

A package names its modules in its own metadata, in the groups `layoutproof.languages`, `.properties`, `.targets` and
`.formats`; each module has what a file of that kind has in this package. Entry points are looked at only for a name
that is not built in, so what is built in costs and hides nothing, and no other package can stand in its place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from functools import lru_cache
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from layoutproof.core import problems
from layoutproof.core.errors import LayoutError, Undecided, shorten

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "layoutproof."
KINDS = {"languages": "language", "properties": "property", "targets": "target", "formats": "format"}
"""Kinds of what can be added, as groups have them, and what one of each is called."""


class Plugin:
    """A module of another package. Whatever fails in one of its functions is a LayoutError that names it.

    Attributes are the module's own; its text is `__doc__`.
    """

    def __init__(self, module: ModuleType, title: str) -> None:
        self.__doc__ = module.__doc__
        self.__name__ = module.__name__
        self._module, self.title = module, title

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        return _guarded(value, self.title) if isinstance(value, FunctionType) else value


def _guarded(function: Callable[..., object], title: str) -> Callable[..., object]:
    @functools.wraps(function)
    def guarded(*values: Any, **options: Any) -> Any:
        try:
            return function(*values, **options)
        except (LayoutError, Undecided):
            raise
        except Exception as error:
            raise _broken(title, f"{function.__name__} failed", error) from error

    return guarded


def names(kind: str, own: Iterable[str] = ()) -> tuple[str, ...]:
    """The names that other packages add to a kind, without those that are built in (`own`)."""
    return tuple(sorted(set(_found(kind)) - set(own)))


def load(kind: str, name: str, *wanted: tuple[str, ...]) -> Plugin | None:
    """The module that another package offers under a name; None where none does.

    wanted: the names that the module must have, as sets; one of the sets has to be complete.
    Raises LayoutError, naming the package, for a name that several offer, and for a module that cannot be imported or
    lacks what it needs.
    """
    found = _found(kind).get(name, ())
    if len(found) > 1:
        raise LayoutError(problems.OFFERED_TWICE(KINDS[kind], name, " and ".join(map(_package, found))))
    return _loaded(kind, name, wanted) if found else None


@lru_cache(maxsize=256)
def _loaded(kind: str, name: str, wanted: tuple[tuple[str, ...], ...]) -> Plugin:
    (entry,) = _found(kind)[name]
    title = f"{KINDS[kind]} {name!r} of {_package(entry)}"
    try:
        module = entry.load()
    except (Exception, SystemExit) as error:
        raise _broken(title, f"{entry.value} cannot be imported", error) from error
    if not any(all(hasattr(module, part) for part in parts) for parts in wanted):
        needs = ", or ".join(" and ".join(parts) for parts in wanted)
        raise LayoutError(problems.PLUGIN_NEEDS(title, entry.value, needs))
    return Plugin(module, title)


def every(kind: str, *wanted: tuple[str, ...]) -> tuple[dict[str, Plugin], list[str]]:
    """(all of a kind that can be loaded, by name; a sentence for each that cannot)."""
    good, broken = {}, []
    for name in names(kind):
        try:
            found = load(kind, name, *wanted)
        except LayoutError as error:
            broken.append(error.problem)
        else:
            good[name] = found
    return {name: found for name, found in good.items() if found is not None}, broken


def collisions(kind: str, own: Iterable[str]) -> list[str]:
    """A sentence for each name that another package offers and that is built in, which it stays."""
    taken = sorted(set(_found(kind)) & set(own))
    return [
        f"{KINDS[kind]} {name!r} of {_package(entry)} is refused: the name is built in"
        for name in taken
        for entry in _found(kind)[name]
    ]


@lru_cache(maxsize=8)
def _found(kind: str) -> dict[str, tuple[EntryPoint, ...]]:
    from importlib.metadata import entry_points

    found: dict[str, dict[tuple[str, str], EntryPoint]] = {}
    for entry in entry_points(group=GROUP + kind):
        # a package that is on the path twice is one package
        found.setdefault(entry.name, {}).setdefault((entry.value, _package(entry)), entry)
    return {name: tuple(entries.values()) for name, entries in found.items()}


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.value


def _broken(title: str, what: str, error: BaseException) -> LayoutError:
    said = " ".join(f"{type(error).__name__}: {error}".split())
    return LayoutError(problems.PLUGIN_BROKEN(title, what, shorten(said, 300)))
