"""The same programs under two versions of their compiler: the differences in the new one's output.

Cycles of two compilers are never compared; memory, copies, layouts, collectives are. Nothing of the user's changed, so
each difference is the compiler's and stands under its own class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from layoutproof.compiler import libtpu
from layoutproof.compiler.workers import Workers
from layoutproof.core.errors import LayoutError, Undecided, shorten
from layoutproof.core.finding import Report, unknown, wrong_input
from layoutproof.core.message import extended
from layoutproof.gating import problems
from layoutproof.gating.report import Compared, Judges, Progress, Task, judged
from layoutproof.gating.spec_programs import for_tpu, under_both
from layoutproof.gating.states import File, State

_ENTRY = "{programs: {f: {function: 'pkg.mod:f', args: ['bf16[8,128]'], target: v5e}}}"
_WAY = f"give a spec file that names the program, as {_ENTRY}"


def of_function(name: str) -> LayoutError:
    """The error for a function in the place of a spec file: only a spec file states its arguments."""
    return LayoutError(problems.NO_FILE_OR_PROGRAM(shorten(name, 60), _WAY.replace("pkg.mod:f", shorten(name, 60))))


def compare(
    state: State,
    libraries: Sequence[str],
    judges: Judges,
    workers: Workers,
    progress: Progress | None = None,
    new_only: bool = False,
) -> Report:
    """The differences that the second compiler makes in the programs of spec files. libraries: their two paths.

    Raises LayoutError where no file names a program for a TPU.
    """
    done = [file.path for file in state.files if not file.is_spec]
    files = [file for file in state.files if file.is_spec]
    if done and not files:
        why = problems.COMPILED_ALREADY(shorten(done[0], 60))
        raise LayoutError(extended(why, f": {_WAY}"))
    names = {file.relpath: for_tpu(file) for file in files}
    files = [file for file in files if names[file.relpath]]
    if not files:
        raise LayoutError(problems.NO_TPU_PROGRAM())
    title = " against ".join(libtpu.version(each) for each in reversed(libraries))
    work = Task(partial(_compare, tuple(libraries)), files, [file.relpath for file in files], workers, progress)
    report = judged(title, work, len(files), judges, new_only)
    many = sum(map(len, names.values()))
    return replace(report, notes=(*report.notes, problems.COMPILED_WITH_EACH(many)))


def _compare(libraries: tuple[str, ...], file: File) -> Compared:
    try:
        return Compared(tuple(under_both(file, libraries)))
    except LayoutError as error:
        at = {"line": error.line or 0, "column": error.column or 0}
        return Compared((wrong_input("file", error.problem, file.relpath, error.file or file.path, **at),))
    except Undecided as error:
        return Compared((unknown("file", str(error), file.relpath, file.path),))
