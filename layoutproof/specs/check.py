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
from layoutproof.core.document import JsonObject
from layoutproof.core.errors import LayoutError, Undecided, shorten
from layoutproof.core.files import MAX_YAML, YAML_ENDS, files_in, not_there, read
from layoutproof.core.finding import Finding, unknown, wrong_input
from layoutproof.core.finding import exit_code as of_findings
from layoutproof.core.result import Verdict, plain, show_point
from layoutproof.questions.cached import ask
from layoutproof.registry.read import map_of, read_layout
from layoutproof.specs.kind import is_search
from layoutproof.specs.positions import read_file
from layoutproof.specs.spec import Check, Unasked, load, unasked
from layoutproof.specs.spec_model import OF_VALUES, SAME_FUNCTION
from layoutproof.specs.traced import answer, is_traced, only_call

CHUNK = 32
"""Checks sent to another process at once."""


_LISTED = 10_000
"""Elements at one place that a check may name."""

NO_CHECKS = "no checks; there is nothing to prove: the gate compares its layouts and kernels, and that is all"


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
        why = "sampled, and with --strict that is not enough"
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
        raise LayoutError(f"no check in {', '.join(map(str, paths)) or 'no path'}; there is nothing to prove")
    items = [item for item in items if mine is None or mine(item)]
    chunks = [items[start : start + CHUNK] for start in range(0, len(items), CHUNK)]
    done: list[Outcome] = []
    try:
        for outcomes in spread(_run_chunk, chunks, workers):
            done += outcomes
            if progress is not None:
                progress(len(done), len(items))
    except KeyboardInterrupt:
        why = f"after {len(done)} of {len(items)} checks, so this is a part"
        done.append(Outcome(Finding("check", "the run", why, verdict=Verdict.UNKNOWN), INTERRUPTED))
    return done


def items_of(path: Path) -> list[Check | Outcome]:
    """The mistakes of one file and its checks. Without either it is unknown: there is nothing to prove."""
    found, errors = load(path)
    # the gate asks claims about two states
    checks = [check for check in found if check.kind != SAME_FUNCTION]
    if not checks and not errors:
        return [Outcome(unknown("spec file", NO_CHECKS, path.as_posix(), path.as_posix()), "nothing asked")]
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
                raise LayoutError(f"{given}: no *.yaml or *.yml file in this folder")
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
        outcome = _outcome(check, Verdict.UNKNOWN, "unknown", str(undecided))
        return replace(outcome, finding=replace(outcome.finding, hint=hint_of(str(undecided))))
    except Exception as error:
        why = f"this is a bug in layoutproof, please report it: {type(error).__name__}: {error}"
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
        surprise = "" if check.expect in ("proved", "sampled") else f"{found}, but {check.expect} was expected"
        problem = "; ".join(part for part in (surprise, result.reason) if part)
    elif check.reason and check.reason not in result.reason:
        problem = f"the reason is {result.reason!r}, and {check.reason!r} is not in it"
    else:
        verdict = Verdict.REFUTED
        problem = _other_point(check, result) or _other_figures(check, result)
    return _outcome(check, verdict if problem else held, found, problem, result)


def _other_point(check: Check, result: Finding) -> str:
    """How the smallest counterexample is not what the file says, or ""."""
    found = result.counterexample or {}
    if check.counterexample is None or plain(found) == plain(check.counterexample):
        return ""
    return f"the smallest counterexample is {show_point(found) or 'empty'}, not {show_point(check.counterexample)}"


def _other_figures(check: Check, result: Finding) -> str:
    """The figures that are not what the file says, or ""."""
    wrong = []
    for name, expected in check.figures.items():
        if name not in result.figures:
            have = ", ".join(result.figures) or "none"
            raise LayoutError(f"{check.kind} has no figure {name!r} here; it has {have}")
        found = plain(result.figures[name])
        if found != expected:
            wrong.append(f"{name} is {found}, not {expected}")
    return "; ".join(wrong)


def _run_fact(check: Check) -> Outcome:
    layout = only_call(check.layouts[0]) if is_traced(check.layouts[0]) else check.layouts[0]
    problem = _FACTS[check.kind](layout, check.fact)
    return _outcome(check, Verdict.REFUTED, "wrong", problem) if problem else _outcome(check, Verdict.PROVED, "holds")


def _locate(layout: object, fact: JsonObject) -> str:
    from layoutproof.questions.evaluate import locate

    expected = fact["is"] if isinstance(fact["is"], list) else [fact["is"]]
    found = plain(locate(read_layout(layout), tuple(fact["index"])))
    return "" if found == expected else f"{tuple(fact['index'])} is at {_places(found)}, not at {_places(expected)}"


def _at(layout: object, fact: JsonObject) -> str:
    from layoutproof.questions.inverse import inverse

    wanted, count = fact["is"], fact.get("count")
    place = {name: value for name, value in fact.items() if name not in ("is", "dimensions", "count")}
    found = inverse(read_layout(layout)).at(place, most=_LISTED)
    said = f"at {', '.join(f'{name} {value}' for name, value in place.items())}"
    if isinstance(wanted, str):
        if found.what != wanted:
            return f"{said} there is {_contents(found)}, not {wanted}"
        dimensions = fact.get("dimensions")
        if dimensions is not None and dimensions != list(found.dimensions):
            return f"{said} the padding is of {list(found.dimensions)}, not of {dimensions}"
    else:
        several = any(isinstance(part, list) for part in wanted)
        indices = {tuple(part) for part in wanted} if several else {tuple(wanted)}
        if {held.index for held in found.elements} != indices or found.count != len(indices):
            return f"{said} there is {_contents(found)}, not {' and '.join(map(str, sorted(indices)))}"
    return "" if count is None or count == found.count else f"{said} there are {found.count} elements, not {count}"


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
    return f"at index {index} the table has {shorten(str(here), 60)}, not {shorten(str(there), 60)}"


def _prints(layout: object, fact: JsonObject) -> str:
    found = str(read_layout(layout, fact.get("mode", "strict")))
    return "" if found == fact["is"] else f"it is printed {found}, not {fact['is']}"


def _invalid(layout: object, fact: JsonObject) -> str:
    try:
        read = read_layout(layout, fact.get("mode", "strict"))
        map_of(read)
    except LayoutError as error:
        wanted = fact.get("error", "")
        return "" if wanted in error.problem else f"the error is {error.problem!r}, and {wanted!r} is not in it"
    return f"it is valid, and means {read}"


def _tpu_default(shape: object, fact: JsonObject) -> str:
    from layoutproof.registry.defaults import tpu_default

    found = str(tpu_default(str(shape), fact["target"]))
    return "" if found == fact["is"] else f"on {fact['target']} the default is {found}, not {fact['is']}"


def _sizes(layout: object, fact: JsonObject) -> str:
    from layoutproof.layouts.xla import XlaLayout
    from layoutproof.layouts.xla.sizes import sizes

    read = read_layout(layout)
    if not isinstance(read, XlaLayout):
        raise LayoutError(f"sizes compares XLA's own size functions; {read} is not an XLA array")
    found = plain(sizes(read))
    unknown = [name for name in fact["is"] if name not in found]
    if unknown:
        raise LayoutError(f"no tool called {unknown[0]!r} gives a size; known: {', '.join(found)}")
    return "; ".join(f"{k} says {found[k]}, not {v}" for k, v in fact["is"].items() if found[k] != v)


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
    return f"{error.problem}; in {shorten(error.text)}" if error.text else error.problem
