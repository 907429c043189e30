"""What earlier versions of this tool wrote, made into what this version reads: spec files, approvals, the lock file.

    spec files         sizes of a counterexample stood in the order of the claim; they have names now
    approvals          any day was an end; it is 180 days from today at most now, and others do not count
    layoutproof.lock   version 1 kept no expectations of claims, and of dumps neither donation, devices, collectives,
                       custom calls nor kernels

A file is text with one value put in another's place, so comments and order stay; a text is taken only where reading it
again gives exactly the data that is wanted. Nothing is dropped, and no verdict is judged here: what a lock says stays
as it was locked, and what it did not say is taken as it is now, which is told. What cannot be migrated is told too.
"""

from __future__ import annotations

import codecs
import contextlib
import datetime
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from layoutproof.changes import drift, migrate_lock, policy
from layoutproof.changes.lock_head import paths_of, version_of
from layoutproof.changes.report import Judges
from layoutproof.changes.rules import PYPROJECT, rules_in
from layoutproof.changes.states import File, here
from layoutproof.core.errors import LayoutError
from layoutproof.core.files import MAX_CONFIG, YAML_ENDS, read
from layoutproof.specs.check import run
from layoutproof.specs.positions import Node, read_yaml
from layoutproof.specs.spec import Check, read_spec

_WARNED = {"removed": "warn", "memory_space": "warn", "policy": "warn"}
"""What version 1 did where no rule was stated, of classes that are denied now."""


@dataclass(frozen=True, slots=True)
class Migrated:
    """One file. before, after: its whole text.  done: what changed, in words.

    left: what is for a person to change, with its place.  notes: what a reader must know besides.
    """

    file: str
    before: str
    after: str
    done: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def migrate(
    paths: Sequence[str], lock: Path | None, config: Path | None, today: datetime.date
) -> tuple[list[Migrated], list[LayoutError]]:
    """What the files of a repository become, and what cannot be read; nothing is written.

    paths: of spec files and of folders with them; those that the lock file is of where none is given, else `specs`.
    lock, config: its lock file and its pyproject.toml, None where it has none.  today: the first day of an approval.
    The lock file is last, so that whoever writes them in this order and is interrupted can begin again. Files that
    need nothing and of which nothing is to be said are left out. While one file cannot be read, no lock file is made:
    what it keeps of that file could not be added later. Raises LayoutError for a lock file that cannot be read or is
    newer than this tool, and for a path that leads nowhere.
    """
    text = drift.text_of(lock) if lock is not None else ""
    version = version_of(text, str(lock)) if lock is not None else 0
    locked = paths_of(text, str(lock), earlier=True) if lock is not None else ["specs"]
    files = drift.files_of(locked)
    found: list[Migrated] = []
    errors: list[LayoutError] = []
    for path, file in _specs_at(paths or [each for each in locked if os.path.lexists(each)]).items():
        try:
            found.append(_spec(path, file, today, version))
        except LayoutError as error:
            errors.append(error)
    try:
        found += [] if config is None else [_config(config, today, version)]
    except LayoutError as error:
        errors.append(error)
    if lock is not None and not errors:
        after = {each.file: each.after.encode() for each in found}
        files = {relpath: replace(file, data=after.get(file.path, file.data)) for relpath, file in files.items()}
        new, done = migrate_lock.migrated(text, lock.as_posix(), version, files)
        notes = _rules_notes(found, lock, new, files, today)
        notes += _stricter(found) if version == 1 else []
        found.append(Migrated(lock.as_posix(), text, new, tuple(done), notes=tuple(notes)))
    return [each for each in found if each.done or each.left or each.notes], errors


def _specs_at(paths: Sequence[str]) -> dict[str, File]:
    """The spec files at some paths, by path."""
    files = here(paths).files if paths else ()
    return {file.path: file for file in files if file.path.endswith(YAML_ENDS) and file.is_spec}


def _spec(path: str, file: File, today: datetime.date, version: int) -> Migrated:
    """A spec file: sizes with names, and the approvals in it."""
    if file.problem:
        raise LayoutError(file.problem, file=path)
    try:
        before = file.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = file.data.count(b"\n", 0, error.start) + 1
        raise LayoutError("not UTF-8 text", file=path, line=line) from None
    text, done, left = before, [], []
    root = read_yaml(before, path)
    # the last one first, so that the places of the others stay
    for index, node, names in reversed([*_unnamed(root, path)]):
        values = node.plain()
        at = f"{path}:{node.line}:{node.column}"
        if isinstance(names, str):
            left.append(f"{at}: the sizes {values} have names now: {names}")
            continue
        wanted = read_yaml(text).plain()
        wanted["checks"][index]["counterexample"]["sizes"] = dict(zip(names, values, strict=True))
        named = "{" + ", ".join(f"{name}: {value}" for name, value in zip(names, values, strict=True)) + "}"
        new = _exchanged(text, _list_at(text, node), named, _yaml, wanted)
        if new is None:
            left.append(f"{at}: the sizes {values} have names now: write {named}")
        else:
            text = new
            done.append(f"{at}: the sizes {values} are {named}")
    if type(root.value) is dict and "gate" in root.value:
        text, more, also = _approvals(text, path, today, version, lambda data: _yaml(data).get("gate"))
        done, left = [*more, *done], [*also, *left]
    mark = "\ufeff" if file.data.startswith(codecs.BOM_UTF8) else ""
    return Migrated(path, mark + before, mark + text, tuple(reversed(done)), tuple(reversed(left)))


def _unnamed(root: Node, path: str) -> Iterator[tuple[int, Node, tuple[str, ...] | str]]:
    """Each list of sizes in the order of a claim: which check has it, the list, the names or why they are unknown."""
    checks, _ = read_spec(root, path)
    # a check stands where its property does
    by_place = {(check.line, check.column): check for check in checks}
    nodes = root.value.get("checks") if type(root.value) is dict else None
    for index, node in enumerate(nodes.value if nodes is not None and type(nodes.value) is list else ()):
        point = node.value.get("counterexample") if type(node.value) is dict else None
        sizes = point.value.get("sizes") if point is not None and type(point.value) is dict else None
        if sizes is not None and type(sizes.value) is list:
            check = next((by_place[place] for place in (node.keys or {}).values() if place in by_place), None)
            yield index, sizes, _names(check, len(sizes.value)) if check is not None else "the check cannot be read"


def _names(check: Check, count: int) -> tuple[str, ...] | str:
    """The names of a claim's sizes, as many as given; or why they are not known."""
    result = run(check).answer
    found = (result.counterexample or {}).get("sizes", {}) if result is not None else {}
    if len(found) == count:
        return tuple(found)
    return f"the claim's are {', '.join(found)}" if found else "no counterexample is found that would say them"


def _list_at(text: str, node: Node) -> list[tuple[int, int]]:
    """Where a list in brackets starts and ends; nowhere for one that is written otherwise."""
    start = sum(len(line) + 1 for line in text.split("\n")[: node.line - 1]) + node.column - 1
    end = text.find("]", start) + 1
    return [(start, end)] if text[start : start + 1] == "[" and end else []


def _config(config: Path, today: datetime.date, version: int) -> Migrated:
    path = config.as_posix()
    try:
        before = read(config, MAX_CONFIG).decode()
    except UnicodeDecodeError:
        raise LayoutError("not UTF-8 text", file=path, line=1) from None
    rules = rules_in(before, path)
    if isinstance(rules, LayoutError):
        line = re.search(r"at line (\d+)", rules.problem)
        raise LayoutError(rules.problem.removeprefix(f"{path}: "), file=path, line=int(line[1]) if line else 1)
    text, done, left = _approvals(before, path, today, version, _gate_of_toml)
    return Migrated(path, before, text, tuple(done), tuple(left))


def _approvals(
    text: str, path: str, today: datetime.date, version: int, gate_of: Callable[[str], Any]
) -> tuple[str, list[str], list[str]]:
    """The text with approvals that last as long as one can, what was shortened, and what could not be.

    Only those that stand beside a lock file of version 1 counted: others never did, and are for a person to shorten.
    """
    done: list[str] = []
    left: list[str] = []
    most = today + datetime.timedelta(days=policy.MOST_DAYS)
    try:
        approvals = policy.read(gate_of(text) or {}, path).approvals
    except LayoutError as error:
        problem = error.problem.removeprefix(f"{path}: ")
        raise LayoutError(problem, file=path, line=_line_of(text, problem)) from None
    for number, each in enumerate(approvals):
        if each.until <= most:
            continue
        wanted = gate_of(text)
        old = wanted["approvals"][number]["until"]
        wanted["approvals"][number]["until"] = most if isinstance(old, datetime.date) else most.isoformat()
        near = text.find(each.fingerprint)
        places = [(found.start(), found.end()) for found in re.finditer(re.escape(str(each.until)), text)]
        places.sort(key=lambda place: (place[0] < near, abs(place[0] - near)))
        new = _exchanged(text, places, most.isoformat(), gate_of, wanted) if version == 1 else None
        said = f"{path}:{_line_of(text, each.fingerprint)}: the approval {each.fingerprint} ({each.reason}) ends on"
        if new is None:
            left.append(f"{said} {each.until} and does not count: the last day can be {most}")
        else:
            text = new
            done.append(f"{said} {most}, before on {each.until}: it lasts {policy.MOST_DAYS} days at most")
    return text, done, left


def _exchanged(
    text: str, places: Sequence[tuple[int, int]], new: str, data_of: Callable[[str], Any], wanted: object
) -> str | None:
    """The text with something new at the first of these places where that gives the data that is wanted."""
    for start, end in places:
        candidate = f"{text[:start]}{new}{text[end:]}"
        with contextlib.suppress(LayoutError):
            if data_of(candidate) == wanted:
                return candidate
    return None


def _yaml(text: str) -> Any:
    return read_yaml(text).plain()


def _gate_of_toml(text: str) -> Any:
    found = rules_in(text, PYPROJECT)
    if isinstance(found, LayoutError):
        raise found
    return found


def _line_of(text: str, said: str) -> int:
    """The line of the first thing that a message names by a fingerprint, else 1."""
    found = re.search(r"[0-9a-f]{16}", said)
    at = text.find(found[0]) if found else -1
    return text.count("\n", 0, at) + 1 if at >= 0 else 1


def _rules_notes(
    found: Sequence[Migrated], lock: Path, text: str, files: Mapping[str, File], today: datetime.date
) -> list[str]:
    """What the gate says of approvals now: expired, too long, or of nothing that is found."""
    report = drift.of_texts(lock, text, files, Judges(_rules_in(found), None, today))
    stays = "; it stays: a comparison with a git revision may find it"
    return [note + (stays if "is of nothing" in note else "") for note in report.notes]


def _stricter(found: Sequence[Migrated]) -> list[str]:
    """The classes that no rule names and that are judged otherwise than version 1 did."""
    named = _rules_in(found)
    return [
        f"no rule names {kind}, which is {policy.DEFAULTS[kind]} now and was {was}: state what is meant"
        for kind, was in _WARNED.items()
        if kind not in named
    ]


def _rules_in(found: Sequence[Migrated]) -> dict[str, Any]:
    """The rules of the pyproject.toml among some files."""
    text = next((each.after for each in found if Path(each.file).name == PYPROJECT), "")
    return dict(_gate_of_toml(text))
