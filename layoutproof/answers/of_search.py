"""`lp.search`: the best tilings, layouts or shardings for a problem, each with its certificate."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Annotated

import yaml

from layoutproof.answers import problems
from layoutproof.compiler.tracing import here, only
from layoutproof.core.document import Doc, Document
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.finding import Answer, Finding, exit_code
from layoutproof.core.result import Verdict
from layoutproof.searching import file as search_file
from layoutproof.searching import ready
from layoutproof.searching.arrays_answer import ArraysAnswer
from layoutproof.searching.searched import Searched
from layoutproof.specs.positions import Node, read_file, read_yaml

MOST = 1000
"""Answers of one search, at most."""

COMMAND = "the command line"
"""In place of a file, of a problem that has none."""


class SearchDocument(Document):
    """The keys of every answer of a search, beside its own ones."""

    target_assumed: Annotated[bool, Doc("no target is named")]
    written: list[str]


@dataclass(frozen=True, slots=True)
class Found(Answer):
    """The answer of a search. answer: of the kind of problem that it is, with its own figures.

    more: the answer of the same search with so many found.  assumed: the target, where none is named.
    """

    answer: search_file.SearchAnswer
    more: Callable[[int], search_file.SearchAnswer] | None = field(default=None, repr=False, compare=False)
    assumed: str = ""

    @property
    def verdict(self) -> Verdict:
        """PROVED: the best is.  REFUTED: there is none.  UNKNOWN otherwise."""
        return self.answer.verdict

    @property
    def findings(self) -> tuple[Finding, ...]:
        """One: whether there is a best answer and it is proved; and what is wrong with a program that is compiled."""
        document: Mapping[str, object] = self.answer.as_json()
        reason = str(document.get("reason") or "") if self.verdict is not Verdict.PROVED else ""
        mistakes: tuple[Finding, ...] = getattr(self.answer, "mistakes", ())
        return (Finding("search", str(document.get("subject", "")), reason, verdict=self.verdict), *mistakes)

    @property
    def exit_code(self) -> int:
        """0 the best is proved, 1 proved that there is none, 2 a program is wrong at a point, 3 unknown."""
        return exit_code(self.findings)

    def __str__(self) -> str:
        return self.answer.text(why=False) + self._assumed()

    def why(self) -> str:
        """The report with the model, its sources, which properties were proved, and what was left out or refused."""
        return self.answer.text() + self._assumed()

    def _assumed(self) -> str:
        """Whose target it is, where none is named."""
        return f"\ntarget          {self.assumed}, since none is named; --target says another" if self.assumed else ""

    def candidates(self, *, keep: int = MOST, within: str | float | None = None) -> Iterator[dict[str, int]]:
        """The legal tilings for an autotuner to measure, the cheapest by the model first, each searched when asked for.

        Args:
            keep: How many at most.
            within: How much more than the best they may cost, `"1.2x"` or 1.2; None = any.

        Yields:
            One mapping of each variable to its value.

        Raises:
            LayoutError: The problem is about arrays, `keep` is no whole number, or `within` is no factor.

        >>> found = search("matmul", sizes=[1024, 1024, 1024])
        >>> [one["bm"] * one["bn"] * one["bk"] for one in found.candidates(keep=3)]
        [268435456, 134217728, 268435456]
        """
        keep = _number("keep", keep, 0)
        factor, given, best, rows = search_file.factor(within), 0, 8, search_file.rows(self.answer)
        while True:
            for values, cost in rows[given:keep]:
                if factor is not None and cost > factor * rows[0][1]:
                    return
                given += 1
                yield dict(values)
            best = min(2 * max(best, len(rows)), keep, MOST)
            if self.more is None or best <= given:
                return
            rows = search_file.rows(self.more(best))
            if len(rows) <= given:
                return

    def as_dict(self) -> SearchDocument:
        """What `layoutproof search --json` prints: the answer of its kind, and whose target it is."""
        found: Document = self.answer.as_json()
        return {**found, "target_assumed": bool(self.assumed), "written": []}


def search(
    problem: str | PathLike[str] | Mapping[str, object],
    *,
    best: int = 5,
    pareto: bool = False,
    compiling: bool = False,
    prune: str | PathLike[str] | None = None,
    effort: int = 1,
    trace: bool = True,
    sizes: Sequence[int] = (),
    dtype: str | None = None,
    target: str | None = None,
    headroom: str | None = None,
    args: Sequence[object] = (),
    kwargs: Mapping[str, object] | None = None,
    tune: Mapping[str, object] | None = None,
    keep: int | None = None,
    within: str | float | None = None,
    jobs: int = 1,
    resume: str | PathLike[str] | None = None,
    progress: Callable[[str, str], None] | None = None,
) -> Found:
    """Find the best answers to a problem, each with what is proved of it, and a certificate that none is better.

    Args:
        problem: A search file's path, its text (several lines), or the mapping that it holds; a ready kernel's name
            such as `matmul`; or a function that makes Pallas calls, `pkg.mod:fn` or `file.py:fn`.
        best: How many answers to keep.
        pareto: Whether to keep also all that no other beats in time, VMEM and padding at once.
        compiling: Whether to ask the real TPU compiler about the best ones too.
        prune: A JSON file with a list of candidates: say which of them the rules allow, and search nothing.
        effort: A whole number >= 1 that multiplies the engines' budgets of steps.
        trace: Whether a function that the problem names may be imported, where pyproject.toml allows it.
        sizes: Of a ready kernel, in the order of its file (matmul: M, N, K); () = those of the file.
        dtype: Of a ready kernel: the element type of its arrays, such as `bf16`.
        target: Of a ready kernel or a function: the TPU generation.
        headroom: Of a ready kernel or a function: the VMEM that is kept free for registers that spill, a percentage
            such as `"25%"`, or a kind of body such as `"matmul"`; by default the need of the kind of the body.
            Candidates that take more are set aside.
        args: Of a function: its arguments, shapes as texts.
        kwargs: Of a function: how the variables are passed; by default each by its own name.
        tune: Of a function: the range of each variable, `{"bm": "128..2048"}` or as in a file.
        keep: No more answers than so many; with `prune`, of those that are allowed the cheapest.
        within: No answers that cost more than so many times the best, such as `"1.2x"`.
        jobs: Of shardings that are compiled: processes that compile at once, 0 for one per core.
        resume: Of the same: a file for the rows, as of `sweep`.
        progress: Called while the compiler is asked about a function, with the candidate and what is done now.

    Returns:
        The answer: `verdict`, `exit_code`, `answer` with the numbers of its kind, `str` the report.

    Raises:
        LayoutError: Something is wrong with the problem, with file, line and column where it has a file; or with an
            argument.

    >>> str(search({"target": "v5e", "layouts": {"x": "bf16[16,1280,40]"}}).verdict)
    'Verdict.PROVED'
    """
    best, effort = _number("best", best), _number("effort", effort)
    keep = None if keep is None else _number("keep", keep)
    if prune is not None and not isinstance(prune, str | PathLike):
        raise LayoutError(problems.PRUNE_TYPE(shorten(repr(prune), 60)))
    sizes = [_number(f"size {k} of {len(sizes)}", size) for k, size in enumerate(sizes, 1)]
    with only(here(trace)), _as_asked(problem):
        root, file = _stated(problem, sizes, dtype, target, args, kwargs or {}, tune or {}, headroom)
        arrays = compiling and search_file.search_kind(root, file) == "arrays"
    if not arrays:
        _unused({"jobs": jobs != 1, "resume": resume is not None}, "shardings that are compiled")
    jobs = _number("jobs", jobs, 0)
    factor = search_file.factor(within)
    unnamed = target is None and (_word(problem) in ready.kernels() or ":" in _word(problem))
    assumed = str(root.value["target"].value) if unnamed else ""

    def more(count: int) -> search_file.SearchAnswer:
        with only(here(trace)), _as_asked(problem, file):
            found = search_file.answer(root, file, count, effort, pareto, compiling, progress)
            if not arrays or not isinstance(found, Searched) or not isinstance(found.result, ArraysAnswer):
                return found
            # the compiler's side is imported where it is asked
            from layoutproof.answers.compiled_shardings import compiled_shardings

            return compiled_shardings(search_file.problem_of(root, file), found.result, jobs, resume, progress)

    if prune is not None:
        with only(here(trace)), _as_asked(problem, file):
            return Found(search_file.prune(root, file, Path(prune), keep, factor), assumed=assumed)
    if factor is None:
        return Found(more(keep or best), more, assumed)
    count = 8
    while True:
        found = more(min(count, keep or MOST))
        costs = [cost for _, cost in search_file.rows(found)]
        near = sum(cost <= factor * costs[0] for cost in costs)
        if near < len(costs):
            return Found(search_file.near(more(near), factor), more, assumed)
        if len(costs) < count or count >= (keep or MOST):
            return Found(found, more, assumed)
        count *= 4


def _number(name: str, value: object, least: int = 1) -> int:
    """A whole number, one of NumPy too. LayoutError for anything else, and below the least."""
    try:
        found = operator.index(value) if not isinstance(value, bool) else least - 1  # type: ignore[arg-type]
    except TypeError:
        found = least - 1
    if found < least:
        raise LayoutError(problems.NUMBER(name, least, shorten(repr(value), 40)))
    return found


def _word(problem: object) -> str:
    """A problem that is one word, a ready kernel's name or a function; "" for a file, a text and a mapping."""
    return problem if isinstance(problem, str) and "\n" not in problem and not os.path.isfile(problem) else ""


@contextmanager
def _as_asked(problem: object, file: str = COMMAND) -> Iterator[None]:
    """Errors in a document that was made of a word and options name no line of it: no user wrote that document."""
    try:
        yield
    except LayoutError as error:
        if error.file != file or not _word(problem):
            raise
        raise LayoutError(re.sub(rf"(?m)^{re.escape(file)}:\d+(:\d+)?: ", "", error.problem)) from None


def _stated(
    problem: str | PathLike[str] | Mapping[str, object],
    sizes: Sequence[int],
    dtype: str | None,
    target: str | None,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    tune: Mapping[str, object],
    headroom: str | None = None,
) -> tuple[Node, str]:
    """The document of a problem, and its file."""
    name = _word(problem)
    of_function = {"args": args, "kwargs": kwargs, "tune": tune}
    of_kernel = {"sizes": sizes, "dtype": dtype}
    if name in ready.kernels():
        _unused(of_function, "a function, pkg.mod:fn")
        document, file = ready.kernel(name, sizes, dtype, target, headroom)
        return _dumped(document, file), file
    if ":" in name:
        _unused(of_kernel, "ready kernels")
        return _dumped(ready.function(name, args, kwargs, tune, target, headroom), COMMAND), COMMAND
    if name.isidentifier():
        raise ready.unknown(name)
    _unused(of_function, "a function, pkg.mod:fn")
    _unused({**of_kernel, "target": target, "headroom": headroom}, "ready kernels; a search file states its own")
    return _read(problem)


def _dumped(document: Mapping[str, object], file: str) -> Node:
    """A mapping as a document."""
    try:
        plain = _plain(document)
    except RecursionError:
        raise LayoutError(problems.NESTED_PROBLEM()) from None
    return read_yaml(yaml.safe_dump(plain, sort_keys=False), file)


def _plain(value: object) -> object:
    """The same of nothing but numbers, texts, lists and mappings. LayoutError for what is none of these.

    >>> _plain({"rows": range(8, 33, 8)})
    {'rows': [8, 16, 24, 32]}
    """
    if hasattr(value, "tolist"):  # of NumPy, a number too
        value = value.tolist()
    if value is None or isinstance(value, bool):
        return value
    for kind in (int, float, str):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, Mapping):
        return {key: _plain(held) for key, held in value.items()}
    if isinstance(value, Sequence):
        return [_plain(held) for held in value]
    raise LayoutError(problems.PROBLEM_VALUE(shorten(repr(value), 60)))


def _unused(given: Mapping[str, object], whose: str) -> None:
    for name, value in given.items():
        if value:
            raise LayoutError(problems.NOT_FOR(name, whose))


def _read(problem: str | PathLike[str] | Mapping[str, object]) -> tuple[Node, str]:
    if isinstance(problem, Mapping):
        return _dumped(problem, "the problem"), "the problem"
    if isinstance(problem, str) and "\n" in problem:
        return read_yaml(problem), "the problem"
    if not isinstance(problem, str | PathLike):
        raise LayoutError(problems.PROBLEM_TYPE(shorten(repr(problem), 60)))
    path = Path(problem)
    return read_file(path), path.as_posix()
