"""The current state against the lock file: drift without git, also when only this tool changed."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from layoutproof.compiler import cache
from layoutproof.compiler.workers import Workers
from layoutproof.core.errors import LayoutError, Undecided, shorten
from layoutproof.core.files import read
from layoutproof.core.finding import Report, unknown, wrong_input
from layoutproof.gating import problems
from layoutproof.gating.lock_head import MAX_LOCK, NAME, known, paths_of
from layoutproof.gating.report import Compared, Judges, Progress, Task, judged
from layoutproof.gating.rules import Rules
from layoutproof.gating.states import File, here, unreadable

if TYPE_CHECKING:
    from layoutproof.gating.compiled_program import CompiledProgram
    from layoutproof.gating.specs import ReadSpec

_TITLE = "what is here against layoutproof.lock"


def compare(
    path: Path,
    rules: Rules,
    today: datetime.date,
    workers: Workers,
    progress: Progress | None = None,
    new_only: bool = False,
    library: str = "",
    same: bool = False,
) -> Report:
    """The report on everything that the lock file is of. LayoutError for what is no lock file, with its line.

    library: the path of a libtpu that compiles the programs of spec files, "" for the installed one.  same: whether
    every program is to compute what it did, of which a lock says nothing.
    """
    judges = Judges(rules, None, today)
    text = text_of(path)
    files = files_of(paths_of(text, path.as_posix()))
    key = cache.key_of_files(
        ["drift", str(same)], {NAME: text.encode(), **{relpath: f.data for relpath, f in sorted(files.items())}}
    )
    # these files do not hold the behaviour of user code
    settled = not any(f.is_spec and cache.speaks_of_code(f.data) for f in files.values())
    if not files and not text.partition("\n")[2].strip():
        where = shorten(", ".join(paths_of(text, path.as_posix())))
        problem = problems.LOCKS_NOTHING(where)
        raise LayoutError(problem, file=path.as_posix(), line=1)
    if settled and cache.get(key) == "none":
        return judged(_TITLE, Task(_compare, [], [], workers), len(files), judges, new_only)
    report = of_texts(path, text, files, judges, workers, progress, new_only, library, same)
    if settled and not report.findings and not report.notes and not report.hidden and not report.partial:
        cache.put(key, "none")
    return report


def text_of(path: Path) -> str:
    """The text of a lock file. LayoutError where it cannot be read."""
    try:
        return read(path, MAX_LOCK).decode()
    except UnicodeDecodeError:
        raise LayoutError(problems.NOT_UTF8(), file=path.as_posix(), line=1) from None


def files_of(paths: Sequence[str]) -> dict[str, File]:
    """The spec files and dumps that are at these paths now, by path within the state; a path that is gone has none."""
    return {f.relpath: f for given in paths if os.path.lexists(given) for f in here([given]).files if known(f)}


def of_texts(
    path: Path,
    text: str,
    files: Mapping[str, File],
    judges: Judges,
    workers: Workers = Workers(),  # noqa: B008
    progress: Progress | None = None,
    new_only: bool = False,
    library: str = "",
    same: bool = False,
) -> Report:
    """The report on these files against the text of a lock file, whose name is `path`."""
    from layoutproof.gating.lock import locked

    old = locked(text, path.as_posix())
    relpaths = sorted({*old, *files})
    items = [(old.get(relpath), files.get(relpath), relpath, library, same) for relpath in relpaths]
    return judged(_TITLE, Task(_compare, items, relpaths, workers, progress), len(relpaths), judges, new_only)


def _compare(item: tuple[ReadSpec | CompiledProgram | None, File | None, str, str, bool]) -> Compared:
    from layoutproof.gating.lock import drift

    old, file, relpath, library, same = item
    try:
        if file is not None and unreadable(file):
            raise LayoutError(unreadable(file))
        return drift(old, file, relpath, library, same)
    except (LayoutError, Undecided) as error:
        path = relpath if file is None else file.path
        if isinstance(error, Undecided):
            return Compared((unknown("file", str(error), relpath, path),))
        return Compared((wrong_input("file", error.problem, relpath, path),))
