"""Ask every check of some spec files and hold the answers against what the files expect."""

from __future__ import annotations

import contextlib
import enum
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from layoutproof.compiler.workers import Workers, spread
from layoutproof.core.errors import LayoutError, Undecided, shorten
from layoutproof.core.files import MAX_YAML, YAML_ENDS, files_in, read
from layoutproof.core.finding import Finding
from layoutproof.core.result import Counterexample, Verdict, plain, show_point
from layoutproof.questions.cached import ask
from layoutproof.registry.read import map_of, read_layout
from layoutproof.specs.kind import is_search
from layoutproof.specs.positions import read_file
from layoutproof.specs.spec import Check, Unasked, load, unasked
from layoutproof.specs.traced import answer, is_traced, only_call

CHUNK = 32
"""Checks sent to another process at once."""


NO_CHECKS = "no checks; there is nothing to prove: the gate compares its layouts and kernels, and that is all"


class Status(enum.Enum):
    """How one check came out, and the exit code that belongs to it."""

    AS_EXPECTED = 0
    WRONG = 1
    ERROR = 2
    UNKNOWN = 3
    INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one check, or of reading a file.

    found: proved, refuted, unknown; of a fact `holds` or `wrong`; `error` when there is no answer; `nothing asked` of a
    file without checks.
    because: what is wrong, in numbers; "" when all is as expected.  result: the whole answer of a property.
    place: file:line:column.  check: None when a file could not be read as checks, and where a run was interrupted.
    seconds: how long it took to ask.
    """

    status: Status
    place: str
    found: str
    because: str = ""
    check: Check | None = None
    result: Finding | None = None
    seconds: float = field(default=0.0, compare=False)


def check_paths(
    paths: Sequence[str | Path],
    workers: Workers = Workers(),  # noqa: B008
    progress: Callable[[int, int], None] | None = None,
) -> list[Outcome]:
    """The outcome of every check in the files and folders (`*.yaml`, `*.yml`, all levels), in the order of the files.

    workers: where they are asked; the outcomes and their order are the same.  progress: called with how many are done,
    and of how many. What is wrong with a file or a check is an outcome of its own and stops nothing else; an interrupt
    is the last outcome, after those that are done. Raises LayoutError when there is no file.
    """
    items = [item for path in find(paths) for item in items_of(path)]
    if not items:
        raise LayoutError(f"no check in {', '.join(map(str, paths)) or 'no path'}; there is nothing to prove")
    chunks = [items[start : start + CHUNK] for start in range(0, len(items), CHUNK)]
    done: list[Outcome] = []
    try:
        for outcomes in spread(_run_chunk, chunks, workers):
            done += outcomes
            if progress is not None:
                progress(len(done), len(items))
    except KeyboardInterrupt:
        why = f"after {len(done)} of {len(items)} checks, so this is a part"
        done.append(Outcome(Status.INTERRUPTED, "", "interrupted", why))
    return done


def items_of(path: Path) -> list[Check | Outcome]:
    """The mistakes of one file and its checks. Without either it is unknown: there is nothing to prove."""
    checks, errors = load(path)
    if not checks and not errors:
        return [Outcome(Status.UNKNOWN, path.as_posix(), "nothing asked", NO_CHECKS)]
    return [*map(error_outcome, errors), *checks]


def unasked_in(paths: Sequence[str | Path]) -> list[Unasked]:
    """What the spec files at these paths state and never ask: nothing is proved of it. A file that cannot be read is
    left out, because its check says so."""
    found: list[Unasked] = []
    for path in find(paths):
        with contextlib.suppress(LayoutError):
            found += unasked(read_file(path), path.as_posix())
    return found


def exit_code(outcomes: Iterable[Outcome]) -> int:
    """0 all as expected; 1 something refuted or wrong; 2 bad input; 3 something unknown; 130 interrupted, by the rule
    of all commands."""
    seen = {outcome.status for outcome in outcomes}
    for status in (Status.INTERRUPTED, Status.WRONG, Status.ERROR, Status.UNKNOWN):
        if status in seen:
            return int(status.value)
    return 0


def find(paths: Sequence[str | Path]) -> list[Path]:
    """The spec files at `paths`, sorted within each folder, none twice. LayoutError where there is none.

    Search files (a top-level key `search`) state problems, not claims: in a folder they are left out.
    """
    found: dict[Path, None] = {}
    for given in map(Path, paths):
        if given.is_dir():
            inside = files_in(given, YAML_ENDS)
            if not inside:
                raise LayoutError(f"{given}: no *.yaml or *.yml file in this folder")
            found.update(dict.fromkeys(path for path in inside if not _states_a_problem(path)))
        elif os.path.lexists(given):
            found[given] = None
        else:
            raise LayoutError(f"{given}: no such file or folder")
    return list(found)


def _states_a_problem(path: Path) -> bool:
    with contextlib.suppress(LayoutError):
        return is_search(read(path, MAX_YAML))
    return False


def error_outcome(error: LayoutError) -> Outcome:
    """What comes of something in a file that cannot be read as a check."""
    return Outcome(Status.ERROR, _place(error), "error", _words(error))


def run(check: Check) -> Outcome:
    """The outcome of one check; every failure becomes an outcome, also one of our own."""
    try:
        return _run_fact(check) if check.is_fact else _run_claim(check)
    except LayoutError as error:
        return Outcome(Status.ERROR, check.place, "error", _words(error), check)
    except Undecided as undecided:
        return Outcome(Status.UNKNOWN, check.place, "unknown", str(undecided), check)
    except Exception as error:
        why = f"this is a bug in layoutproof, please report it: {type(error).__name__}: {error}"
        return Outcome(Status.ERROR, check.place, "error", why, check)


def _run_chunk(items: Sequence[Check | Outcome]) -> list[Outcome]:
    done = []
    for item in items:
        start = time.perf_counter()
        outcome = run(item) if isinstance(item, Check) else item
        done.append(replace(outcome, seconds=time.perf_counter() - start))
    return done


def _run_claim(check: Check) -> Outcome:
    options: dict[str, Any] = dict(check.options)
    if check.kind == "kernel" or any(map(is_traced, check.layouts)):
        result = answer(check.kind, check.layouts[0], options)
    else:
        result = ask(check.kind, *check.layouts, **options)
    found = result.verdict.value
    problem, status = "", Status.WRONG
    if found != check.expect:
        surprise = "" if check.expect == "proved" else f"{found}, but {check.expect} was expected"
        problem = "; ".join(part for part in (surprise, result.reason) if part)
        status = Status.UNKNOWN if result.verdict is Verdict.UNKNOWN else Status.WRONG
    elif check.reason and check.reason not in result.reason:
        problem = f"the reason is {result.reason!r}, and {check.reason!r} is not in it"
        status = Status.UNKNOWN if result.verdict is Verdict.UNKNOWN else Status.WRONG
    elif check.counterexample is not None and not _same_point(result.counterexample, check.counterexample):
        smallest = show_point(result.counterexample or {}) or "empty"
        problem = f"the smallest counterexample is {smallest}, not {show_point(check.counterexample)}"
    else:
        problem = _figures(check, result)
    return Outcome(status if problem else Status.AS_EXPECTED, check.place, found, problem, check, result)


def _same_point(found: Counterexample | None, expected: Counterexample) -> bool:
    return plain(found or {}) == plain(expected)  # type: ignore[no-any-return]


def _figures(check: Check, result: Finding) -> str:
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
    status, found = (Status.WRONG, "wrong") if problem else (Status.AS_EXPECTED, "holds")
    return Outcome(status, check.place, found, problem, check)


def _locate(layout: object, fact: Any) -> str:
    from layoutproof.questions.evaluate import locate

    expected = fact["is"] if isinstance(fact["is"], list) else [fact["is"]]
    found = plain(locate(read_layout(layout), tuple(fact["index"])))
    return "" if found == expected else f"{tuple(fact['index'])} is at {_places(found)}, not at {_places(expected)}"


def _table(layout: object, fact: Any) -> str:
    from layoutproof.questions.evaluate import table

    found = table(read_layout(layout)).tolist()
    at = _first_difference(found, fact["is"])
    if at is None:
        return ""
    index, here, there = at
    return f"at index {index} the table has {shorten(str(here), 60)}, not {shorten(str(there), 60)}"


def _prints(layout: object, fact: Any) -> str:
    found = str(read_layout(layout, fact.get("mode", "strict")))
    return "" if found == fact["is"] else f"it is printed {found}, not {fact['is']}"


def _invalid(layout: object, fact: Any) -> str:
    try:
        read = read_layout(layout, fact.get("mode", "strict"))
        map_of(read)
    except LayoutError as error:
        wanted = fact.get("error", "")
        return "" if wanted in error.problem else f"the error is {error.problem!r}, and {wanted!r} is not in it"
    return f"it is valid, and means {read}"


def _tpu_default(shape: object, fact: Any) -> str:
    from layoutproof.registry.defaults import tpu_default

    found = str(tpu_default(str(shape), fact["target"]))
    return "" if found == fact["is"] else f"on {fact['target']} the default is {found}, not {fact['is']}"


def _sizes(layout: object, fact: Any) -> str:
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


def _place(error: LayoutError) -> str:
    return ":".join(str(part) for part in (error.file, error.line, error.column) if part)
