"""The same programs under two versions of their compiler: what the new one makes otherwise.

Cycles of two compilers are never compared; memory, copies, layouts, collectives are. Nothing of the user's changed, so
each difference is the compiler's and stands under its own class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from layoutproof.changes.report import Compared, Judges, Progress, Work, judged
from layoutproof.changes.spec_programs import for_tpu, under_both
from layoutproof.changes.states import File, State
from layoutproof.compiler import libtpu
from layoutproof.compiler.workers import Workers
from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.finding import Report, unknown, wrong_input


def compare(
    state: State,
    libraries: Sequence[str],
    judges: Judges,
    workers: Workers,
    progress: Progress | None = None,
    new_only: bool = False,
) -> Report:
    """What the second compiler makes otherwise of the programs that spec files name. libraries: their two paths.

    Raises LayoutError where no file names a program for a TPU.
    """
    files = [file for file in state.files if file.is_spec]
    names = {file.relpath: for_tpu(file) for file in files}
    files = [file for file in files if names[file.relpath]]
    if not files:
        raise LayoutError("no spec file names a program for a TPU (programs:, target: v5e): nothing to compile")
    title = " against ".join(libtpu.version(each) for each in reversed(libraries))
    work = Work(partial(_compare, tuple(libraries)), files, [file.relpath for file in files], workers, progress)
    report = judged(title, work, len(files), judges, new_only)
    many = sum(map(len, names.values()))
    return replace(report, notes=(*report.notes, f"{many} programs compiled with each; cycles are not compared"))


def _compare(libraries: tuple[str, ...], file: File) -> Compared:
    try:
        return Compared(tuple(under_both(file, libraries)))
    except LayoutError as error:
        at = {"line": error.line or 0, "column": error.column or 0}
        return Compared((wrong_input("file", error.problem, file.relpath, error.file or file.path, **at),))
    except Undecided as error:
        return Compared((unknown("file", str(error), file.relpath, file.path),))
