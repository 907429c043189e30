"""A state: files with layouts in them, from a file, a folder, or a git revision that is read without a checkout.

Each file has a *relpath*, its path within the state, the same on every machine. The ending and the first line of a
file tell whether it is a spec or an HLO dump.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.files import (
    DUMP_ENDS,
    MAX_YAML,
    MIB,
    PROGRAM_ENDS,
    RECORD_ENDS,
    YAML_ENDS,
    files_in,
    not_there,
    read,
    unless_named,
    unpacked,
)
from layoutproof.core.message import extended
from layoutproof.gating import problems
from layoutproof.gating.git import (
    LINK,
    MODULE,
    author,
    commit_of,
    contents_of,
    has_commit,
    led_to,
    listed,
    top_here,
    write_tree,
)
from layoutproof.specs.kind import is_search

MAX_DUMP = 256 * MIB
"""Bytes of a dump that is compared: both are held whole, with everything in them."""
_ENDS = YAML_ENDS + DUMP_ENDS + RECORD_ENDS + PROGRAM_ENDS
_POINTER = b"version https://git-lfs.github.com/spec/"


@dataclass(frozen=True, slots=True)
class File:
    """One file of a state. relpath: its path within the state.  path: how a person finds it.

    data: of a dump, unpacked.  problem: why it could not be read, so that `data` says nothing of it.
    """

    relpath: str
    path: str
    data: bytes
    problem: str = ""

    @property
    def is_spec(self) -> bool:
        """Whether it is read as a spec file: a search file makes no claims."""
        return self.relpath.endswith(YAML_ENDS) and not is_search(self.data)

    @property
    def is_program(self) -> bool:
        """Whether it is the record of a compiled program, as `layoutproof compile -o` writes it."""
        if not self.relpath.endswith(PROGRAM_ENDS):
            return False
        return bool(self.problem) or (
            self.data.lstrip()[:1] == b"{" and b'"made"' in self.data and b'"memory"' in self.data
        )

    @property
    def is_record(self) -> bool:
        """Whether it holds records of traced Pallas calls, which begin with the version of their form."""
        return self.relpath.endswith(RECORD_ENDS) and (bool(self.problem) or self.data.startswith(b'{"record"'))

    @property
    def is_dump(self) -> bool:
        """Whether it is the text of an HLO module: its first line that says anything starts with HloModule.

        So is what cannot be read: it may be one, and nothing is passed over that may have changed.
        """
        if self.relpath.endswith((*YAML_ENDS, *RECORD_ENDS, *PROGRAM_ENDS)):
            return False
        return bool(self.problem) or re.match(rb"(?:\s|//[^\n]*\n)*HloModule\b", self.data) is not None


@dataclass(frozen=True, slots=True)
class State:
    """label: its name for people.  files: sorted by relpath.

    unread: (path, why) of unreadable folders.
    """

    label: str
    files: tuple[File, ...]
    unread: tuple[tuple[str, str], ...] = ()


def on_disk(given: str) -> State:
    """The state that a file or a folder holds. LayoutError where there is none."""
    path = Path(given)
    if os.path.isdir(path):
        # a link that leads nowhere is none, as it is in a revision
        found = [p for p in files_in(path, _ENDS) if p.exists()]
        files = [_read(p.relative_to(path).as_posix(), p) for p in found]
        return State(given, tuple(sorted(files, key=lambda f: f.relpath)))
    if not os.path.lexists(path):
        raise not_there(given)
    # two files given by name are meant as one and the same thing, whatever they are called
    return State(given, (_read("", path),))


def _read(relpath: str, path: Path) -> File:
    is_yaml = path.name.endswith(YAML_ENDS)
    try:
        data = read(path, MAX_YAML if is_yaml else MAX_DUMP)
        return File(relpath, path.as_posix(), data if is_yaml else unpacked(data, MAX_DUMP))
    except LayoutError as error:
        return File(relpath, path.as_posix(), b"", error.problem)


def pair(old: str, new: str) -> tuple[State, State]:
    """Two states on disk; of two single files, relpath is the new one's name. LayoutError where one is a file and the
    other a folder, or one a record and the other a dump.
    """
    if os.path.isdir(old) != os.path.isdir(new) and os.path.lexists(old) and os.path.lexists(new):
        raise LayoutError(problems.FILE_AND_FOLDER(old, new))
    before, after = on_disk(old), on_disk(new)
    if len(after.files) == 1 and not after.files[0].relpath:
        relpath = Path(new).name
        ours, theirs = (replace(s.files[0], relpath=Path(s.files[0].path).name) for s in (before, after))
        for one, other in ((ours, theirs), (theirs, ours)):
            if one.is_program and other.is_dump and not other.problem:
                kinds = problems.RECORD_AND_DUMP(one.path, other.path)
                raise LayoutError(problems.TWO_OF_ONE_KIND(kinds))
        before, after = (State(s.label, (replace(s.files[0], relpath=relpath),)) for s in (before, after))
    return before, after


def here(paths: Sequence[str]) -> State:
    """The state at these paths now; relpaths are the paths as they are given, from the current folder."""
    files = []
    for given in paths:
        for file in on_disk(given).files:
            files.append(replace(file, relpath=file.path))
    return State("what is here", _sorted(files))


def against(reference: str, paths: Sequence[str]) -> tuple[State, State]:
    """The paths as a git revision has them, and as they are now. LayoutError in plain words for what git refuses.

    Units are paths from the top of the repository. Git is asked for the contents of files; its index and the work tree
    are neither written nor locked. Submodules are read at the commits that both states name; a changed one that is not
    here is named as unread, and so is a file that a link brings in from outside the repository.
    """
    top = top_here()
    commit = commit_of(top, reference)
    here = Path.cwd()
    relpaths = [_unit(given, top, here) for given in paths]
    now = []
    unread: list[tuple[str, str]] = []
    for given, relpath in zip(paths, relpaths, strict=True):
        if os.path.lexists(given):
            for file in on_disk(given).files:
                whole = (PurePosixPath(relpath) / file.relpath).as_posix() if file.relpath else relpath
                if Path(file.path).resolve().is_relative_to(top.resolve()):
                    now.append(replace(file, relpath=whole))
                else:
                    unread.append((whole, problems.LINK_OUT()))
    then, closed = _tree(top, here, commit, relpaths)
    if not now and not then and not closed and not unread:
        problem = problems.NOTHING_AT_REVISION(", ".join(paths), reference)
        raise LayoutError(extended(problem, unless_named(*paths)))
    shown = f"{shorten(reference, 60)} ({commit[:10]})"
    return State(shown, _sorted(then), tuple(closed)), State("the work tree", _sorted(now), tuple(unread))


@contextmanager
def work_tree_of(reference: str) -> Iterator[str]:
    """A git revision written into a folder of its own while it is needed: the folder there that is the current one.

    The repository that is here is left alone. LayoutError where it cannot be written.
    """
    top = top_here()
    with tempfile.TemporaryDirectory(prefix="layoutproof-") as name:
        there = Path(name).resolve() / top.name
        there.mkdir()
        write_tree(top, commit_of(top, reference), there)
        # the top of a repository is known by it, and git takes an empty one for none
        (there / ".git").mkdir()
        yield str(there / Path.cwd().resolve().relative_to(top.resolve()))


def nearest_at(reference: str, name: str) -> tuple[str, bytes] | None:
    """(path, contents) of the nearest file of a name that a git revision has, from the current folder upwards.

    LayoutError where there is one and git cannot say what is in it.
    """
    here, top = Path.cwd(), top_here()
    commit = commit_of(top, reference)
    for folder in (here, *here.parents):
        relpath = _unit(str(folder / name), top, here)
        for mode, identity, found in listed(top, "ls-tree", commit, [relpath], deep=False):
            (data,) = contents_of(top, [f"{commit}:{found}" if mode == LINK and "\n" not in found else identity])
            if data is None:
                raise LayoutError(problems.LINK_TO_NOTHING(found, shorten(reference, 60)))
            return relpath, data
        if folder.resolve() == top.resolve():
            break
    return None


def is_here(relpath: str) -> bool:
    """Whether the work tree has a file of the repository, by its path from the top."""
    return (top_here() / relpath).is_file()


def whoami() -> str:
    """The name that git signs commits with here, "" where it has none or there is no git."""
    return author(Path.cwd())


def _tree(
    top: Path, here: Path, commit: str, relpaths: Sequence[str], above: str = ""
) -> tuple[list[File], list[tuple[str, str]]]:
    """The files of a commit, those of its submodules too, and the submodules that changed and cannot be read.

    relpaths: from the top of this repository.  above: where it is, as a submodule, in the whole.
    """
    blobs: list[tuple[str, str]] = []
    modules: dict[str, str] = {}
    entries = [*listed(top, "ls-tree", commit, relpaths)]
    there = {name for mode, _, name in entries if mode != LINK}
    for relpath in relpaths:
        if relpath and not any(name == relpath or name.startswith(f"{relpath}/") for name in there):
            entries += _behind_a_link(top, commit, relpath)
    for mode, identity, name in entries:
        if mode == MODULE:
            modules[name] = identity
        elif not (name.endswith(_ENDS) or name in relpaths):
            continue
        elif mode.startswith("100"):
            blobs.append((name, identity))
        elif mode == LINK and "\n" not in name:
            # the new state is read through its links, so the old one is too
            blobs.append((name, f"{commit}:{name}"))
    names = [PurePosixPath(above, name).as_posix() for name, _ in blobs]
    shown = [Path(os.path.relpath(top / name, here)).as_posix() for name, _ in blobs]
    data = contents_of(top, [identity for _, identity in blobs])
    found = [_kept(name, path, each) for name, path, each in zip(names, shown, data, strict=True) if each is not None]
    unread: list[tuple[str, str]] = []
    modules |= {name: identity for name, identity in (_inside(relpath, top, commit) for relpath in relpaths) if name}
    now = _modules_now(top, [*relpaths, *modules])
    for module in sorted({*now, *modules}):
        parts = [str(PurePosixPath(u).relative_to(module)) for u in relpaths if PurePosixPath(u).is_relative_to(module)]
        name = PurePosixPath(above, module).as_posix()
        more, closed = _module(top, module, here, (modules.get(module), now.get(module)), parts, name)
        found += more
        unread += closed
    return found, unread


def _module(
    top: Path, module: str, here: Path, commits: tuple[str | None, str | None], parts: Sequence[str], name: str
) -> tuple[list[File], list[tuple[str, str]]]:
    """As `_tree`, of one submodule. commits: in the old state and in the index, None where there is none."""
    place = top / module
    old, now = commits
    if not place.resolve().is_relative_to(top.resolve()):
        return [], [(name, problems.SUBMODULE_LINK_OUT())]
    if not (place / ".git").exists():
        if old == now:
            return [], []  # its files are in neither state, and both name the same commit
        hint = f"git submodule update --init {name}" if now else "what it held cannot be compared"
        return [], [(name, problems.SUBMODULE_NOT_HERE(hint))]
    if old is None:
        return [], []
    if not has_commit(place, old):
        return [], [(name, problems.SUBMODULE_NO_COMMIT(old[:10]))]
    return _tree(place, here, old, ["" if part == "." else part for part in parts] or [""], name)


def _modules_now(top: Path, relpaths: Sequence[str]) -> dict[str, str]:
    """The submodules that the index has below some paths, each with its commit."""
    return {name: identity for mode, identity, name in listed(top, "ls-files", "--stage", relpaths) if mode == MODULE}


def _inside(relpath: str, top: Path, commit: str) -> tuple[str, str]:
    """The submodule of a commit in which a path lies, with its own commit; ("", "") for none."""
    for folder in [*PurePosixPath(relpath).parents][:-1]:
        for mode, identity, name in listed(top, "ls-tree", commit, [folder.as_posix()], deep=False):
            if mode == MODULE:
                return name, identity
    return "", ""


def _behind_a_link(top: Path, commit: str, relpath: str) -> list[tuple[str, str, str]]:
    """The files of a path that is a link to a folder of the commit, or lies behind one, as `_listed` gives them."""
    kind, identity = led_to(top, commit, relpath)
    if kind != "tree":
        return [(LINK, "", relpath)] if kind else []
    inside = listed(top, "ls-tree", identity, [""])
    return [(mode, identity, f"{relpath}/{name}") for mode, identity, name in inside]


def _kept(name: str, path: str, data: bytes) -> File:
    try:
        return File(name, path, data if name.endswith(YAML_ENDS) else unpacked(data, MAX_DUMP))
    except LayoutError as error:
        return File(name, path, b"", error.problem)


def _unit(given: str, top: Path, here: Path) -> str:
    """A path from the top of the repository, "" for the top itself."""
    absolute = Path(os.path.normpath(here / given))
    for whole in (absolute, absolute.parent.resolve() / absolute.name):
        if whole.is_relative_to(top.resolve()):
            relpath = whole.relative_to(top.resolve()).as_posix()
            return "" if relpath == "." else relpath
    raise LayoutError(problems.OUTSIDE_REPOSITORY(given, top))


def _sorted(files: Iterable[File]) -> tuple[File, ...]:
    return tuple({f.relpath: f for f in sorted(files, key=lambda f: f.relpath)}.values())


def unreadable(file: File) -> str:
    """Why there is nothing in a file to compare, or ""."""
    if file.problem:
        return file.problem
    if file.relpath.endswith(YAML_ENDS) and not file.is_spec:
        return problems.SEARCH_FILE()
    return problems.LFS_POINTER() if file.data.startswith(_POINTER) else ""
