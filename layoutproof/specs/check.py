"""Ask every check of some spec files and hold the answers against what the files expect."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from layoutproof.compiler.tracing import hint_of
from layoutproof.compiler.workers import Workers, spread
from layoutproof.core import problems as core_problems
from layoutproof.core.document import JsonObject
from layoutproof.core.errors import LayoutError, Undecided, shorten
from layoutproof.core.files import MAX_YAML, YAML_ENDS, files_in, not_there, read
from layoutproof.core.finding import Finding, unknown, wrong_input
from layoutproof.core.finding import exit_code as of_findings
from layoutproof.core.message import message_of, restated
from layoutproof.core.result import Verdict, plain, show_point
from layoutproof.questions.cached import ask
from layoutproof.registry.read import map_of, read_layout
from layoutproof.specs import problems
from layoutproof.specs.kind import is_search
from layoutproof.specs.positions import read_file
from layoutproof.specs.spec import Check, Unasked, load, unasked
from layoutproof.specs.spec_model import OF_VALUES, SAME_FUNCTION
from layoutproof.specs.traced import answer, is_traced, only_call

CHUNK = 32
"""Checks sent to another process at once."""


_LISTED = 10_000
"""Elements at one place that a check may name."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one check, or of reading a file.

    finding: whether all is as the file states: proved where it is, sampled where that is what was found of values,
    refuted where something else was found, unknown, or bad input; with why, and with what belongs to the answer.
    found: proved, sampled, refuted, unknown; of a fact `holds` or `wrong`; `error` when there is no answer;
    `nothing asked` of a file without checks; `interrupted`.
    check: None when a file could not be read as checks, and where a run was interrupted.
    answer: the whole answer of a property.  seconds: how long it took to ask.
    """

    finding: Finding
    found: str
    check: Check | None = None
    answer: Finding | None = None
    seconds: float = field(default=0.0, compare=False)

    @property
    def status(self) -> str:
        """as expected, wrong, error, unknown or interrupted."""
        if self.found == INTERRUPTED:
            return INTERRUPTED
        return "error" if self.finding.bad_input else _STATUS[self.finding.verdict]

    @property
    def held(self) -> bool:
        """Whether all is as the file states."""
        return self.finding.verdict in (Verdict.PROVED, Verdict.SAMPLED)

    def strictly(self) -> Outcome:
        """The same where sampled is not enough: then it is unknown."""
        if self.finding.verdict is not Verdict.SAMPLED:
            return self
        why = problems.SAMPLED_UNDER_STRICT()
        return replace(self, finding=replace(self.finding, verdict=Verdict.UNKNOWN, reason=why))


INTERRUPTED = "interrupted"
OF_GATE = "for the gate"
"""The answer to a claim about two states with only one of them: none."""
_STATUS = {
    Verdict.PROVED: "as expected",
    Verdict.SAMPLED: "as expected",
    Verdict.REFUTED: "wrong",
    Verdict.UNKNOWN: "unknown",
}


def check_paths(
    paths: Sequence[str | Path],
    workers: Workers = Workers(),  # noqa: B008
    progress: Callable[[int, int], None] | None = None,
    mine: Callable[[Check | Outcome], bool] | None = None,
) -> list[Outcome]:
    """The outcome of every check in the files and folders (`*.yaml`, `*.yml`, all levels), in the order of the files.

    workers: where they are asked; the outcomes and their order are the same.  progress: called with how many are done,
    and of how many.  mine: which checks are asked, by default all.
    A mistake in a file or a check is an outcome of its own and stops no other check; an interrupt
    is the last outcome, after those that are done. Raises LayoutError when there is no file.
    """
    items = [item for path in find(paths) for item in items_of(path)]
    if not items:
        raise LayoutError(problems.NO_CHECK_FOUND(", ".join(map(str, paths)) or "no path"))
    items = [item for item in items if mine is None or mine(item)]
    chunks = [items[start : start + CHUNK] for start in range(0, len(items), CHUNK)]
    done: list[Outcome] = []
    try:
        for outcomes in spread(_run_chunk, chunks, workers):
            done += outcomes
            if progress is not None:
                progress(len(done), len(items))
    except KeyboardInterrupt:
        why = problems.RUN_INTERRUPTED(len(done), len(items))
        done.append(Outcome(Finding("check", "the run", why, verdict=Verdict.UNKNOWN), INTERRUPTED))
    return done


def items_of(path: Path) -> list[Check | Outcome]:
    """The mistakes of one file and its checks. Without either it is unknown: there is nothing to prove."""
    found, errors = load(path)
    # the gate asks claims about two states
    checks = [check for check in found if check.kind != SAME_FUNCTION]
    if not checks and not errors:
        return [
            Outcome(
                unknown("spec file", problems.FILE_WITHOUT_CHECKS(), path.as_posix(), path.as_posix()), "nothing asked"
            )
        ]
    return [*map(error_outcome, errors), *checks]


def unasked_in(paths: Sequence[str | Path]) -> list[Unasked]:
    """The definitions without a check in the spec files at these paths: nothing is proved of them. A file that cannot
    be read is left out, because its check says so."""
    found: list[Unasked] = []
    for path in find(paths):
        with contextlib.suppress(LayoutError):
            found += unasked(read_file(path), path.as_posix())
    return found


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """By the rule of all commands: refuted is what is not as its file states."""
    return of_findings((o.finding for o in outcomes), any(o.found == INTERRUPTED for o in outcomes))


def find(paths: Sequence[str | Path]) -> list[Path]:
    """The spec files at `paths`, sorted within each folder, none twice. LayoutError where there is none.

    Search files (a top-level key `search`) state problems, not claims: in a folder they are left out.
    """
    found: dict[Path, None] = {}
    for given in map(Path, paths):
        if os.path.isdir(given):
            inside = files_in(given, YAML_ENDS)
            if not inside:
                raise LayoutError(problems.NO_SPEC_FILE(given))
            found.update(dict.fromkeys(path for path in inside if not _states_a_problem(path)))
        elif os.path.lexists(given):
            found[given] = None
        else:
            raise not_there(given)
    return list(found)


def _states_a_problem(path: Path) -> bool:
    with contextlib.suppress(LayoutError):
        return is_search(read(path, MAX_YAML))
    return False


def error_outcome(error: LayoutError) -> Outcome:
    """The outcome of a part of a file that cannot be read as a check."""
    at = {"line": error.line or 0, "column": error.column or 0}
    return Outcome(wrong_input("spec file", _words(error), error.file or "", error.file or "", **at), "error")


def run(check: Check) -> Outcome:
    """The outcome of one check; every failure becomes an outcome, also one of our own."""
    try:
        return _run_fact(check) if check.is_fact else _run_claim(check)
    except LayoutError as error:
        return _outcome(check, Verdict.UNKNOWN, "error", _words(error), bad_input=True)
    except Undecided as undecided:
        outcome = _outcome(check, Verdict.UNKNOWN, "unknown", message_of(undecided))
        return replace(outcome, finding=replace(outcome.finding, hint=hint_of(str(undecided))))
    except Exception as error:
        why = core_problems.INTERNAL_ERROR(type(error).__name__, error)
        return _outcome(check, Verdict.UNKNOWN, "error", why, bad_input=True)


def _outcome(
    check: Check, verdict: Verdict, found: str, reason: str = "", answer: Finding | None = None, bad_input: bool = False
) -> Outcome:
    """The outcome of a check, of which `verdict` says whether it is as stated."""
    at: dict[str, Any] = {"verdict": verdict, "bad_input": bad_input, "after": " , ".join(check.texts)}
    if answer is not None:
        told = ("counterexample", "figures", "decided_by", "scope", "assumes")
        for name in told if verdict in (Verdict.PROVED, Verdict.SAMPLED) else (*told, "fix", "hint", "needs", "where"):
            at[name] = getattr(answer, name)
    where = (check.file, check.file, check.line, check.column)
    return Outcome(Finding(check.kind, check.title, reason, *where, **at), found, check, answer)


def _run_chunk(items: Sequence[Check | Outcome]) -> list[Outcome]:
    done = []
    for item in items:
        start = time.perf_counter()
        outcome = run(item) if isinstance(item, Check) else item
        done.append(replace(outcome, seconds=time.perf_counter() - start))
    return done


def _run_claim(check: Check) -> Outcome:
    options: dict[str, Any] = dict(check.options)
    if check.kind == SAME_FUNCTION:
        return _outcome(check, Verdict.PROVED, OF_GATE)
    if check.is_of_program:
        # imported here, since most files claim nothing of programs
        from layoutproof.specs import compiled

        result = compiled.answer(check.kind, check.labels[0], check.layouts[0], options)
    elif check.kind in OF_VALUES:
        # imported here, since most files compare nothing
        from layoutproof.specs import compared

        result = compared.answer(check.kind, check.layouts, options)
    elif check.kind == "kernel" or any(map(is_traced, check.layouts)):
        result = answer(check.kind, check.layouts[0], options)
    else:
        result = ask(check.kind, *check.layouts, **options)
    found = result.verdict.value
    held = Verdict.SAMPLED if result.verdict is Verdict.SAMPLED else Verdict.PROVED
    # an unexpected verdict is wrong; an unexpected unknown is unknown
    verdict = Verdict.UNKNOWN if result.verdict is Verdict.UNKNOWN else Verdict.REFUTED
    if found != check.expect and (found, check.expect) != ("proved", "sampled"):
        problem = result.reason
        if check.expect not in ("proved", "sampled"):
            surprise = problems.VERDICT_DIFFERS(found, check.expect)
            problem = problems.VERDICT_DIFFERS_SINCE(surprise, problem) if problem else surprise
    elif check.reason and check.reason not in result.reason:
        problem = problems.REASON_DIFFERS(result.reason, check.reason)
    else:
        verdict = Verdict.REFUTED
        problem = _other_point(check, result) or _other_figures(check, result)
    return _outcome(check, verdict if problem else held, found, problem, result)


def _other_point(check: Check, result: Finding) -> str:
    """How the smallest counterexample is not what the file says, or ""."""
    found = result.counterexample or {}
    if check.counterexample is None or plain(found) == plain(check.counterexample):
        return ""
    return problems.COUNTEREXAMPLE_DIFFERS(show_point(found) or "empty", show_point(check.counterexample))


def _other_figures(check: Check, result: Finding) -> str:
    """The figures that are not what the file says, or ""."""
    wrong = []
    for name, expected in check.figures.items():
        if name not in result.figures:
            have = ", ".join(result.figures) or "none"
            raise LayoutError(problems.UNKNOWN_FIGURE(check.kind, name, have))
        found = plain(result.figures[name])
        if found != expected:
            wrong.append(problems.FIGURE_DIFFERS(name, found, expected))
    return restated("; ".join(wrong), wrong[0]) if wrong else ""


def _run_fact(check: Check) -> Outcome:
    layout = only_call(check.layouts[0]) if is_traced(check.layouts[0]) else check.layouts[0]
    problem = _FACTS[check.kind](layout, check.fact)
    return _outcome(check, Verdict.REFUTED, "wrong", problem) if problem else _outcome(check, Verdict.PROVED, "holds")


def _locate(layout: object, fact: JsonObject) -> str:
    from layoutproof.questions.evaluate import locate

    expected = fact["is"] if isinstance(fact["is"], list) else [fact["is"]]
    found = plain(locate(read_layout(layout), tuple(fact["index"])))
    return "" if found == expected else problems.PLACE_DIFFERS(tuple(fact["index"]), _places(found), _places(expected))


def _at(layout: object, fact: JsonObject) -> str:
    from layoutproof.questions.inverse import inverse

    wanted, count = fact["is"], fact.get("count")
    place = {name: value for name, value in fact.items() if name not in ("is", "dimensions", "count")}
    found = inverse(read_layout(layout)).at(place, most=_LISTED)
    said = f"at {', '.join(f'{name} {value}' for name, value in place.items())}"
    if isinstance(wanted, str):
        if found.what != wanted:
            return problems.CONTENTS_DIFFER(said, _contents(found), wanted)
        dimensions = fact.get("dimensions")
        if dimensions is not None and dimensions != list(found.dimensions):
            return problems.PADDING_DIFFERS(said, list(found.dimensions), dimensions)
    else:
        several = any(isinstance(part, list) for part in wanted)
        indices = {tuple(part) for part in wanted} if several else {tuple(wanted)}
        if {held.index for held in found.elements} != indices or found.count != len(indices):
            return problems.CONTENTS_DIFFER(said, _contents(found), " and ".join(map(str, sorted(indices))))
    return "" if count is None or count == found.count else problems.COUNT_DIFFERS(said, found.count, count)


def _contents(found: Any) -> str:
    indices = list(dict.fromkeys(str(held.index) for held in found.elements))
    if not indices:
        return str(found.what)
    more = f" and {found.count - 3} more" if found.count > 3 else ""
    return " and ".join(indices[:3]) + more


def _table(layout: object, fact: JsonObject) -> str:
    from layoutproof.questions.evaluate import table

    found = table(read_layout(layout)).tolist()
    at = _first_difference(found, fact["is"])
    if at is None:
        return ""
    index, here, there = at
    return problems.TABLE_DIFFERS(index, shorten(str(here), 60), shorten(str(there), 60))


def _prints(layout: object, fact: JsonObject) -> str:
    found = str(read_layout(layout, fact.get("mode", "strict")))
    return "" if found == fact["is"] else problems.TEXT_DIFFERS(found, fact["is"])


def _invalid(layout: object, fact: JsonObject) -> str:
    try:
        read = read_layout(layout, fact.get("mode", "strict"))
        map_of(read)
    except LayoutError as error:
        wanted = fact.get("error", "")
        return "" if wanted in error.problem else problems.ERROR_DIFFERS(error.problem, wanted)
    return problems.LAYOUT_VALID(read)


def _tpu_default(shape: object, fact: JsonObject) -> str:
    from layoutproof.registry.defaults import tpu_default

    found = str(tpu_default(str(shape), fact["target"]))
    return "" if found == fact["is"] else problems.DEFAULT_DIFFERS(fact["target"], found, fact["is"])


def _sizes(layout: object, fact: JsonObject) -> str:
    from layoutproof.layouts.xla import XlaLayout
    from layoutproof.layouts.xla.sizes import sizes

    read = read_layout(layout)
    if not isinstance(read, XlaLayout):
        raise LayoutError(problems.SIZES_NOT_XLA(read))
    found = plain(sizes(read))
    unknown = [name for name in fact["is"] if name not in found]
    if unknown:
        raise LayoutError(problems.UNKNOWN_TOOL(unknown[0], ", ".join(found)))
    wrong = [problems.SIZE_DIFFERS(k, found[k], v) for k, v in fact["is"].items() if found[k] != v]
    return restated("; ".join(wrong), wrong[0]) if wrong else ""


_FACTS: dict[str, Callable[[object, Any], str]] = {
    "locate": _locate,
    "at": _at,
    "table": _table,
    "prints": _prints,
    "invalid": _invalid,
    "tpu_default": _tpu_default,
    "sizes": _sizes,
}


def _first_difference(found: Any, expected: Any, index: tuple[int, ...] = ()) -> tuple[object, Any, Any] | None:
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        parts = (_first_difference(f, e, (*index, k)) for k, (f, e) in enumerate(zip(found, expected, strict=True)))
        return next((part for part in parts if part is not None), None)
    return None if found == expected else (index, found, expected)


def _places(places: list[Any]) -> str:
    return " and ".join(", ".join(f"{axis} {at}" for axis, at in place.items()) for place in places) or "no place"


def _words(error: LayoutError) -> str:
    """An error without its place, which the outcome has."""
    return restated(f"{error.problem}; in {shorten(error.text)}", error.problem) if error.text else error.problem
