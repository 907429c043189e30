"""Whether layoutproof.lock matches the work tree: each line of it against the line that would be written now.

Source lines of a program are not compared, nor is the command that makes its record again. Records by another compiler
or another JAX are not compared with this one's: whether the lock was true is then unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from layoutproof.core.errors import LayoutError, Undecided, shorten
from layoutproof.core.finding import Finding, unknown, wrong_input
from layoutproof.gating import problems
from layoutproof.gating.drift import files_of, text_of
from layoutproof.gating.lock import locked, write
from layoutproof.gating.lock_head import NAME, paths_of, renewed

MOST_NAMED = 3
"""Figures of one line that are named where they differ."""
_UNPLACED = ("place", "command")
"""Of a record: where something stands in the user's program, and how the record is made again."""


def stale(path: Path, paths: Sequence[str] = ()) -> list[Finding]:
    """A finding for each line of a lock file that is not what is here; none where it is up to date.

    paths: the files that it should record, by default those that it names. Raises LayoutError for no lock file.
    """
    text = text_of(path)
    of = paths_of(text, path.as_posix())
    locked(text, path.as_posix())
    given = list(paths) or of
    where = path.as_posix()
    try:
        now = write(files_of(given).values(), given)
    except Undecided as undecided:
        return [unknown(NAME, problems.CONTENTS_UNDECIDED(undecided), where, where)]
    except LayoutError as error:
        at: dict[str, Any] = {"line": error.line or 0, "column": error.column or 0}
        return [wrong_input("file", error.problem, where, error.file or where, **at)]
    if text == now:
        return []
    if given != of:
        why = problems.OTHER_PATHS(shorten(", ".join(of)), shorten(", ".join(given)))
        return [Finding("lock", NAME, why, where, where, 1, fix=renewed(given))]
    return list(_differences(text, now, where, renewed(of)))


def _differences(text: str, now: str, where: str, fix: str) -> Iterator[Finding]:
    olds, news = _lines(text), _lines(now)
    for key in dict.fromkeys((*olds, *news)):
        relpath, kind, what = json.loads(key)
        line, then = olds.get(key, (1, []))
        here = news.get(key, (0, []))[1]
        if then == here:
            continue
        at: dict[str, Any] = {"relpath": where, "file": where, "line": line, "fix": fix}
        subject = f"{kind} {what if isinstance(what, str) else shorten(json.dumps(what), 80)} of {relpath}"
        others = _other_tools(then, here)
        if others:
            yield unknown(subject, others, **at)
        elif not here:
            yield Finding("lock", subject, problems.LOCKED_NOT_HERE(), **at)
        elif not then:
            yield Finding("lock", subject, problems.HERE_NOT_LOCKED(), **at)
        else:
            parts = list(_parts(then, here))
            more = f" and {len(parts) - MOST_NAMED} more" if len(parts) > MOST_NAMED else ""
            said = "; ".join(parts[:MOST_NAMED]) + more
            yield Finding("lock", subject, problems.OUT_OF_DATE(said), **at)


def _lines(text: str) -> dict[str, tuple[int, list[Any]]]:
    """By path, kind and name the number of the first such line, and all their values without places."""
    found: dict[str, tuple[int, list[Any]]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if number == 1 or not line.strip():
            continue
        *key, value = json.loads(line)
        at = found.setdefault(json.dumps(key, sort_keys=True), (number, []))
        if key[1] in ("program", "record"):
            # of the compiled text, in which the places are too
            value = _unplaced({name: each for name, each in value.items() if name != "digest"})
        at[1].append(value)
    return found


def _unplaced(value: Any) -> Any:
    if isinstance(value, Mapping):
        # of a copy, `source` is a layout
        left = (*_UNPLACED, "source") if "scope" in value else _UNPLACED
        return {name: _unplaced(each) for name, each in value.items() if name not in left}
    return [_unplaced(each) for each in value] if isinstance(value, list) else value


def _other_tools(then: Sequence[object], here: Sequence[object]) -> str:
    """That a record was made by another compiler or JAX than is here; "" where it was not."""
    for one, other in zip(then, here, strict=False):
        values = [side if isinstance(side, Mapping) and "evaluator" in side else None for side in (one, other)]
        if all(isinstance(side, Mapping) for side in values):
            made = [[str(side.get(name, "")) for name in ("evaluator", "jax")] for side in values]  # type: ignore[union-attr]
            if made[0] != made[1]:
                was, is_ = (f"evaluator {evaluator} with jax {jax}" for evaluator, jax in made)
                return problems.VALUES_BY_OTHER(was, is_)
        sides = [side.get("made") if isinstance(side, Mapping) else None for side in (one, other)]
        if all(isinstance(side, Mapping) for side in sides):
            tools = [[str(side.get(name, "")) for name in ("compiler", "jax")] for side in sides]  # type: ignore[union-attr]
            if tools[0] != tools[1]:
                was, is_ = (f"{compiler} with jax {jax}" for compiler, jax in tools)
                return problems.COMPILED_BY_OTHER(was, is_)
    return ""


def _parts(then: object, here: object, name: str = "") -> Iterable[str]:
    """The differences between two values, each by its name within them."""
    if isinstance(then, list) and isinstance(here, list) and len(then) == len(here):
        for number, (one, other) in enumerate(zip(then, here, strict=True)):
            yield from _parts(one, other, f"{name}[{number}]" if name else "")
    elif isinstance(then, Mapping) and isinstance(here, Mapping):
        for key in dict.fromkeys((*then, *here)):
            yield from _parts(then.get(key), here.get(key), f"{name}.{key}" if name else str(key))
    elif then != here:
        one, other = (shorten(json.dumps(side, sort_keys=True), 80) for side in (then, here))
        yield f"{name or 'it'} is {one} there, {other} here"
