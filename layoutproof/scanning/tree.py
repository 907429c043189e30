"""The files of a repository, and which function uses which, by the names in its imports."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from layoutproof.core.errors import LayoutError
from layoutproof.core.files import MIB, read
from layoutproof.scanning import problems
from layoutproof.scanning.module import PythonFile, module_of, names_that_stand_for_calls

MOST_FILES = 200_000
"""Files of a repository that are looked at."""
MOST_SOURCE = 16 * MIB
_OTHERS = ("node_modules", "site-packages", "__pycache__", ".git", ".hg", ".venv", ".tox", ".nox", ".eggs")
_HIDDEN = (".github", ".circleci", ".ci", ".gitlab-ci.yml", ".pre-commit-config.yaml")
"""The hidden names that are looked at: they say what CI runs."""

Node = tuple[str, str]
"""(file, outermost function or class): what the names lead to."""


@dataclass(frozen=True)
class SourceTree:
    """root: the folder.  files: paths below it with `/`, sorted.  modules: per Python file.  unread: (file, why not).
    partial: whether there are more files than are looked at."""

    root: Path
    files: tuple[str, ...]
    modules: Mapping[str, PythonFile] = field(default_factory=dict)
    unread: tuple[tuple[str, str], ...] = ()
    partial: bool = False

    @cached_property
    def by_name(self) -> Mapping[str, str]:
        """The file of each module's name; a folder that is a root of imports gives its modules shorter names too."""
        found: dict[str, str] = {}
        for file in self.modules:
            for name in _names(file, self.packages):
                found.setdefault(name, file)
        return found

    @cached_property
    def packages(self) -> frozenset[str]:
        """Folders with `__init__.py`."""
        return frozenset(os.path.dirname(f) for f in self.files if os.path.basename(f) == "__init__.py")

    def node(self, name: str) -> Node | None:
        """The function or class of this repository that a name with dots leads to, through re-exports; None outside."""
        for _ in range(20):
            parts = name.split(".")
            cut = next((k for k in range(len(parts), 0, -1) if ".".join(parts[:k]) in self.by_name), 0)
            if not cut:
                return None
            file = self.by_name[".".join(parts[:cut])]
            if cut == len(parts):
                return file, ""
            module, first = self.modules[file], parts[cut]
            own = f"{module.name}.{first}"
            stands = module.names.get(first, "")
            if not stands or stands == own:
                return (file, first) if stands or first in module.uses else self._starred(module, parts[cut:])
            name = ".".join([stands, *parts[cut + 1 :]])
        return None

    def _starred(self, module: PythonFile, rest: list[str]) -> Node | None:
        for star in module.stars:
            file = self.by_name.get(star)
            if file is not None and self.modules[file].names.get(rest[0]):
                return file, rest[0]
        return None

    def reaching(self, ends: Iterable[Node]) -> set[Node]:
        """Every function that uses one of these, directly or through others, by name; themselves too."""
        users: dict[Node, list[Node]] = {}
        for file, module in self.modules.items():
            for function, names in module.uses.items():
                for name in names:
                    if (found := self.node(name)) is not None:
                        users.setdefault(found, []).append((file, function))
        todo, seen = deque(ends), set(ends)
        while todo:
            for user in users.get(todo.popleft(), ()):
                if user not in seen:
                    seen.add(user)
                    todo.append(user)
        return seen

    def reached(self, start: Iterable[Node]) -> set[Node]:
        """Every function that these use, directly or through others, by name; themselves too."""
        todo, seen = deque(start), set(start)
        while todo:
            file, function = todo.popleft()
            module = self.modules.get(file)
            for name in module.uses.get(function, ()) if module is not None else ():
                found = self.node(name)
                if found is not None and found not in seen:
                    seen.add(found)
                    todo.append(found)
        return seen


def tree_of(root: Path) -> SourceTree:
    """Every file of a folder that may be the repository's own, its Python parsed. LayoutError where there is no such
    folder."""
    if not os.path.isdir(root):
        raise LayoutError(problems.NO_FOLDER(root))
    files: list[str] = []
    unread: list[tuple[str, str]] = []
    partial = False
    for path, problem in _walk(root):
        if len(files) >= MOST_FILES:
            partial = True
            break
        name = path.relative_to(root).as_posix()
        if problem:
            unread.append((name, problem))
        else:
            files.append(name)
    files.sort()
    modules: dict[str, PythonFile] = {}
    packages = frozenset(os.path.dirname(f) for f in files if os.path.basename(f) == "__init__.py")
    for file in files:
        if file.endswith((".py", ".pyi")):
            try:
                modules[file] = module_of(read(root / file, MOST_SOURCE), _names(file, packages)[0], file)
            except LayoutError as error:
                unread.append((f"{file}:{error.line}" if error.line else file, error.problem))
    also = dict(names_that_stand_for_calls(modules))
    for file, module in modules.items():
        if also and any(name in also for used in module.uses.values() for name in used):
            modules[file] = module_of(read(root / file, MOST_SOURCE), module.name, file, also)
    return SourceTree(root, tuple(files), modules, tuple(unread), partial)


def _walk(root: Path) -> Iterator[tuple[Path, str]]:
    """Each file, and why it is left out where it is: a link is read where it leads to, if that is in the tree."""
    unlisted: list[OSError] = []
    inside = root.resolve()
    for folder, names, files in os.walk(root, onerror=unlisted.append):
        names[:] = sorted(
            n for n in names if (not n.startswith(".") or n in _HIDDEN) and n not in _OTHERS and not _foreign(folder, n)
        )
        for name in sorted(files):
            path = Path(folder, name)
            if name.startswith(".") and name not in _HIDDEN:
                continue
            if path.is_symlink():
                try:
                    within = path.resolve().is_relative_to(inside)
                except (OSError, RuntimeError):
                    within = False
                if not within and name.endswith((".py", ".yaml", ".yml")):
                    yield path, "a link that leads out of the folder: not read"
                continue
            yield path, ""
    for error in unlisted:
        yield Path(error.filename), f"cannot be listed: {error.strerror}"


def _foreign(folder: str, name: str) -> bool:
    """An environment, or the checkout of another repository within this one."""
    return os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))


def _names(file: str, packages: frozenset[str]) -> list[str]:
    """The names under which a file may be imported, the one by its packages first.

    >>> _names("src/pkg/a.py", frozenset({"src/pkg"}))
    ['pkg.a', 'src.pkg.a']
    """
    stem = file.rpartition(".")[0]
    parts = stem.split("/")
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    top = len(stem.split("/")) - 1
    while top and "/".join(stem.split("/")[:top]) in packages:
        top -= 1
    starts = [top, 1 if parts[0] == "src" else 0, 0]
    return list(dict.fromkeys(".".join(parts[start:]) for start in starts if parts[start:]))
