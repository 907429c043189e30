"""The candidates of an autotuner, from a JSON list: which are legal, and why each of the others is not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, TypedDict

from layoutproof.core.document import envelope
from layoutproof.core.errors import LayoutError, Undecided, shorten
from layoutproof.core.files import MIB, read
from layoutproof.core.finding import VerdictWord
from layoutproof.core.result import Verdict
from layoutproof.searching import problems
from layoutproof.searching.branch import DIVIDES, Candidate, candidate
from layoutproof.searching.document import ProblemDocument
from layoutproof.searching.legal import Checker
from layoutproof.searching.problem import UNDECIDED, DeclaredKernel, Problem, broken
from layoutproof.searching.tilings_json import CallsEntry, CandidateEntry, candidate_json
from layoutproof.searching.tilings_text import table
from layoutproof.searching.traced import search_traced

Row = Mapping[str, Any]
MAX_ROWS = 16 * MIB


class DroppedEntry(TypedDict):
    candidate: dict[str, Any]
    verdict: VerdictWord
    reason: str


class PrunedDocument(ProblemDocument):
    """Which given candidates are legal."""

    kept: list[dict[str, Any]]
    figures: list[CandidateEntry | CallsEntry]
    dropped: list[DroppedEntry]


@dataclass(frozen=True, slots=True)
class Pruned:
    """rows: candidates as they were given.  kept: the legal ones by their place in `rows`, in that order.
    dropped: the others, with the reason.  unknown: of the dropped ones, those that no engine decided.
    """

    problem: Problem
    rows: tuple[Row, ...]
    kept: tuple[tuple[int, Candidate], ...]
    dropped: tuple[tuple[int, str], ...]
    unknown: tuple[int, ...]

    @property
    def verdict(self) -> Verdict:
        """PROVED: something is kept.  REFUTED: all are illegal.  UNKNOWN: of some it is not known."""
        if self.unknown or (not self.kept and any(why.startswith("set aside") for _, why in self.dropped)):
            return Verdict.UNKNOWN
        return Verdict.PROVED if self.kept else Verdict.REFUTED

    def text(self, why: bool = True) -> str:
        """The kept candidates, with their figures, and why the rest is dropped."""
        problem, kept = self.problem, [one for _, one in self.kept]
        head = f"{problem.name}, {problem.target}: {len(kept)} of {len(self.rows)} candidates are kept"
        lines = [head, *(["", *table(problem, kept)] if kept else []), ""]
        for at, reason in self.dropped:
            word = "unknown" if at in self.unknown else "aside" if reason.startswith("set aside") else "dropped"
            lines.append(f"{word:<8} {json.dumps(self.rows[at])}: {shorten(reason, 300)}")
        return "\n".join(lines).rstrip()

    def as_json(self) -> PrunedDocument:
        """`kept` are the objects of the file as they were, ready for the tuner; `figures` belong to them one by one."""
        return {
            **envelope(self.verdict.exit_code),
            "subject": self.problem.name,
            "target": self.problem.target,
            "verdict": self.verdict.value,
            "kept": [dict(self.rows[at]) for at, _ in self.kept],
            "figures": [candidate_json(self.problem, one) for _, one in self.kept],
            "dropped": [
                {
                    "candidate": dict(self.rows[at]),
                    "verdict": (Verdict.UNKNOWN if at in self.unknown else Verdict.REFUTED).value,
                    "reason": why,
                }
                for at, why in self.dropped
            ],
        }


def read_rows(path: Path) -> tuple[Row, ...]:
    """The list in a JSON file. LayoutError, with line and column, for anything but a list of objects."""
    try:
        text = read(path, MAX_ROWS).decode()
        rows = json.loads(text, object_pairs_hook=_object, parse_float=_finite, parse_constant=_finite)
    except LayoutError as error:
        raise error if error.file else LayoutError(error.problem, file=path.as_posix()) from None
    except json.JSONDecodeError as error:
        words = problems.NO_JSON(error.msg)
        raise LayoutError(words, file=path.as_posix(), line=error.lineno, column=error.colno) from None
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError too, and numbers of thousands of digits
        raise LayoutError(problems.NO_JSON(error), file=path.as_posix()) from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise LayoutError(problems.CANDIDATES_FORM(), file=path.as_posix())
    if not rows:
        raise LayoutError(problems.NO_CANDIDATE(), file=path.as_posix())
    return tuple(rows)


def _finite(text: str) -> float:
    """A number that JSON can hold. LayoutError for NaN and what is beyond all floats, which Python reads and writes."""
    found = float(text)
    if not isfinite(found):
        raise LayoutError(problems.NO_JSON_NUMBER(shorten(text, 40)))
    return found


def _object(pairs: list[tuple[str, object]]) -> Row:
    found = dict(pairs)
    for name, _ in pairs if len(found) < len(pairs) else ():
        if [other for other, _ in pairs].count(name) > 1:
            raise LayoutError(problems.CANDIDATE_KEY_TWICE(shorten(name, 40)))
    return found


def prune(problem: Problem, rows: Sequence[Row], file: str = "") -> Pruned:
    """Each candidate judged as `search` judges it. Keys that are no tile variable are kept and not looked at.

    Raises LayoutError, naming the candidate, where a variable is missing or no whole number.
    """
    declared = isinstance(problem.kernels, DeclaredKernel)
    judge = partial(_declared, problem, Checker(problem)) if declared else partial(_traced, problem)
    kept, dropped = list[tuple[int, Candidate]](), list[tuple[int, str]]()
    for at, row in enumerate(rows):
        values = values_of(problem.variables, row, at, file)
        found = _outside(problem.variables, values) or judge(values)
        if isinstance(found, str):
            dropped.append((at, found))
        else:
            kept.append((at, found))
    unknown = tuple(at for at, why in dropped if why.startswith(UNDECIDED))
    said = tuple((at, why.removeprefix(UNDECIDED)) for at, why in dropped)
    return Pruned(problem, tuple(rows), tuple(kept), said, unknown)


def _declared(problem: Problem, legal: Checker, values: Mapping[str, int]) -> Candidate | str:
    """A candidate of a declared kernel, or why it is not kept."""
    try:
        one = candidate(problem, values)
        return _limits(problem, values, one.figures) or legal(values) or one
    except Undecided as undecided:
        return UNDECIDED + str(undecided)
    except ZeroDivisionError:
        return DIVIDES


def _traced(problem: Problem, values: Mapping[str, int]) -> Candidate | str:
    """A candidate of a traced function, as a search of its own, or why it is not kept."""
    single = search_traced(replace(problem, variables={name: (value,) for name, value in values.items()}))
    how = single.enumerated
    why = next(iter(how.refused), "")
    if not why and how.aside:
        why = problem.kept_free(how.aside[0].kernels[0]).aside
    why = why or next((UNDECIDED + said for said in how.undecided), "")
    if why or single.unknown:
        return why or UNDECIDED + single.unknown
    (one,) = single.found
    return one


def fewer(pruned: Pruned, keep: int | None, within: float | None) -> Pruned:
    """Of those that are kept the cheapest. keep: how many at most.  within: none above so many times the best."""
    ranked = sorted(pruned.kept, key=lambda pair: pair[1].cost)
    most = len(ranked) if keep is None else keep
    dropped = dict(pruned.dropped)
    for rank, (at, one) in enumerate(ranked):
        if within is not None and one.cost > within * ranked[0][1].cost:
            dropped[at] = problems.COSTS_MORE(within)
        elif rank >= most:
            dropped[at] = problems.COSTS_NO_LESS(most)
    kept = tuple(pair for pair in pruned.kept if pair[0] not in dropped)
    return replace(pruned, kept=kept, dropped=tuple(sorted(dropped.items())))


def values_of(variables: Mapping[str, Sequence[int]], row: Row, at: int, file: str) -> dict[str, int]:
    """The variables of one candidate; one that has a single value may be left out. LayoutError otherwise."""
    values = {}
    for name, domain in variables.items():
        if name not in row and len(domain) != 1:
            raise LayoutError(problems.CANDIDATE_WITHOUT(at + 1, name, shorten(json.dumps(row), 80)), file=file)
        value = row.get(name, domain[0])
        if type(value) is not int or value < 1:
            shown = shorten(json.dumps(value), 40)
            raise LayoutError(problems.CANDIDATE_VALUE(at + 1, name, shown), file=file)
        values[name] = value
    return values


def _outside(variables: Mapping[str, Sequence[int]], values: Mapping[str, int]) -> str:
    for name, value in values.items():
        domain = variables[name]
        if value not in domain:
            shown = ", ".join(map(str, domain)) if len(domain) <= 8 else f"{domain[0]}, {domain[1]} .. {domain[-1]}"
            return problems.NOT_AMONG_VALUES(name, value, shown)
    return ""


def _limits(problem: Problem, values: Mapping[str, int], rows: Sequence[Mapping[str, int]]) -> str:
    found = [text for text in broken(problem, values, rows) if text != "VMEM"]
    if found:
        return f"breaks {found[0]}"
    used = max(row["vmem"] for row in rows)
    if used > problem.vmem:
        why = problem.kept_free(problem.declared.kernel).aside if problem.vmem < used <= problem.limit else "VMEM"
        return problems.BYTES_NEEDED(why, used, problem.vmem)
    return ""
