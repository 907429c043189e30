"""A search file of any kind to its answer: tilings of a declared kernel, of a traced function, or arrays."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.result import Verdict
from layoutproof.searching import problems
from layoutproof.searching.arrays_answer import ArraysAnswer
from layoutproof.searching.document import ProblemDocument, at
from layoutproof.searching.search_model import SECTIONS
from layoutproof.searching.searched import Searched
from layoutproof.specs.positions import Node


class SearchAnswer(Protocol):
    """The answer of every kind of search. verdict: PROVED, the best is; REFUTED, there is none; UNKNOWN otherwise."""

    @property
    def verdict(self) -> Verdict: ...

    def text(self, why: bool = True) -> str: ...

    def as_json(self) -> ProblemDocument: ...


def search_kind(root: Node, file: str) -> str:
    """`kernel`, `trace` or `arrays`, by the keys of the document. LayoutError where it is none, or two at once."""
    keys = root.value if type(root.value) is dict else {}
    found = [kind for kind in ("kernel", "trace") if kind in keys]
    found += ["arrays"] if any(section in keys for section in SECTIONS) else []
    if len(found) == 1:
        return found[0]
    line, column = (root.line, root.column)
    if not found and "checks" in keys:
        (line, column), path = (root.keys or {})["checks"], shlex.quote(file)
        what = problems.SPEC_FILE(path)
    elif not found:
        what = problems.NO_PROBLEM(", ".join(SECTIONS))
    else:
        what = problems.SEVERAL_PROBLEMS(" and ".join(found))
    raise LayoutError(what, file=file, line=line, column=column)


def problem_of(root: Node, file: str) -> Any:
    """The Problem or ArraysProblem of a document, by `search_kind`.

    LayoutError with the place for everything that is wrong with it.
    """
    # each kind of search has imports of its own, and a file is of one kind
    kind = search_kind(root, file)
    if kind == "kernel":
        from layoutproof.searching import read

        return read.read_problem(root, file)
    if kind == "trace":
        from layoutproof.searching import traced_file

        return traced_file.read(root, file)
    from layoutproof.searching import arrays_file

    return arrays_file.read(root, file)


def rows(answer: SearchAnswer) -> list[tuple[Mapping[str, int], int]]:
    """(values, cost) of each tiling that was found, cheapest first. LayoutError where it is not about tilings."""
    result = answer.result if isinstance(answer, Searched) else None
    if result is None or isinstance(result, ArraysAnswer):
        raise LayoutError(problems.CANDIDATES_OF_KERNELS())
    return [(one.values, one.cost) for one in result.found]


def near(answer: SearchAnswer, factor: float) -> SearchAnswer:
    """The same answer, which shows no tiling that costs more than so many times the best."""
    if not isinstance(answer, Searched) or isinstance(answer.result, ArraysAnswer):
        return answer
    return Searched(replace(answer.result, within=factor))


def factor(value: str | float | None) -> float | None:
    """How many times the best something may cost: `1.2x`, or a number. LayoutError for anything else, and below 1.

    >>> factor("1.2x"), factor(None)
    (1.2, None)
    """
    if value is None:
        return None
    try:
        found = float(str(value).strip().removesuffix("x"))
    except ValueError:
        found = 0.0
    if not 1 <= found < 1e6:
        raise LayoutError(problems.FACTOR_FORM(shorten(repr(value), 40)))
    return found


def prune(root: Node, file: str, rows: Path, keep: int | None = None, within: float | None = None) -> SearchAnswer:
    """Which candidates of a JSON list are legal for the problem of a document. LayoutError as `answer`.

    keep: at most so many of them, the cheapest.  within: none that costs more than so many times the best.
    """
    from layoutproof.searching import prune as pruning

    with at(root, file):
        kind = search_kind(root, file)
        if kind == "arrays":
            raise LayoutError(problems.PRUNE_OF_KERNELS())
        given, problem = pruning.read_rows(rows), problem_of(root, file)
        return pruning.fewer(pruning.prune(problem, given, rows.as_posix()), keep, within)


def answer(
    root: Node,
    file: str,
    best: int,
    effort: int,
    pareto: bool = False,
    compiling: bool = False,
    progress: Callable[[str, str], None] | None = None,
) -> SearchAnswer:
    """The answer to the problem of a document. LayoutError with the place for everything that is wrong with it.

    pareto: of declared kernels only, compiling: of these and of traced functions; a LayoutError for other files. What
    compiles shardings begins with the answer about arrays, which needs a program then.
    progress: called with which candidate the compiler is asked about, and with what is done now.
    """
    with at(root, file):
        kind, problem = search_kind(root, file), problem_of(root, file)
        if pareto and kind != "kernel":
            raise LayoutError(problems.PARETO_OF_DECLARED())
        if kind == "arrays":
            from layoutproof.searching import arrays_file

            missing = next((key for key in ("shardings", "program") if not getattr(problem.said, key)), "")
            if compiling and missing:
                raise LayoutError(problems.COMPILE_OF_KERNELS(missing))
            return arrays_file.answer(problem, best, effort)
        from layoutproof.searching.solve import solve

        return Searched(solve(problem, best, effort, pareto, compiling, progress))
