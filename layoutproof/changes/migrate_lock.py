"""The lines of a lock file that an earlier version wrote, as this version writes them.

A line says what was locked, and still does: no layout, verdict, parameter, copy or bitcast is taken anew. What a
version did not keep is added as it is now, where the line is of something that is here: what a claim expects, if that
goes with its verdict, what a dump says besides its entry layout, copies and bitcasts, and the bodies of traced kernels.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from layoutproof.changes.lock import expected_of, fields_of, line_of, locked
from layoutproof.changes.lock_head import HEAD, VERSION, paths_of
from layoutproof.changes.lock_programs import lines_of
from layoutproof.changes.specs import read
from layoutproof.changes.states import File, unreadable
from layoutproof.changes.traced import calls_of
from layoutproof.changes.traced_bodies import locked as locked_body
from layoutproof.core.errors import LayoutError, Undecided

_EXPECTED = ("expect", "counterexample", "figures", "reason")
"""What of a claim version 1 did not keep."""
_KEPT = ("parameter", "result", "copy", "bitcast")
"""What of a dump version 1 kept."""


def migrated(text: str, file: str, version: int, files: Mapping[str, File]) -> tuple[str, list[str]]:
    """The text of a lock file as this version has it, and what became of it in words; the same text where it is so.

    files: what is here now, by path. LayoutError with the line for what is no line of a lock file.
    """
    locked(text, file, earlier=True)
    by_relpath: dict[str, list[list[Any]]] = {}
    for line in text.splitlines()[1:]:
        if line.strip():
            by_relpath.setdefault(json.loads(line)[0], []).append(json.loads(line))
    lines: list[list[Any]] = []
    said: list[str] = []
    for relpath, own in by_relpath.items():
        if any(kind in ("claim", "layout") for _, kind, _, _ in own):
            more, words = _claims(own, files.get(relpath), version)
            bodies, kernels = _bodies(own, files.get(relpath))
            more, words = [*more, *bodies], ", and ".join(filter(None, (words, kernels)))
        elif version < VERSION:
            more, words = _dump(own, files.get(relpath))
        else:
            more, words = own, ""
        lines += more
        said += [f"{relpath}: {words}"] if words else []
    if version == VERSION and not said:
        return text, []
    head = f"{HEAD} {json.dumps(paths_of(text, file, earlier=True))}"
    done = [f"version {version} becomes version {VERSION}"] if version < VERSION else []
    return "\n".join([head, *sorted(line_of(*line) for line in lines)]) + "\n", [*done, *said]


def _claims(own: Sequence[list[Any]], now: File | None, version: int) -> tuple[list[list[Any]], str]:
    """The lines of a spec file with what its claims expect, or with sizes by name; and what was added."""
    here: dict[str, list[dict[str, Any]]] = {}
    for claim in () if now is None or unreadable(now) else read(now.data, now.path).claims:
        fields = fields_of(claim.check)
        here.setdefault(_as_it_was(fields, version), []).append(fields)
    lines, count = [], 0
    for relpath, kind, what, value in own:
        known = here.get(_as_it_was(what, version), []) if kind == "claim" else []
        # another expectation than the verdict's is a change since, which is for the gate to see
        fits = next((each for each in known if each.get("expect", "proved") == expected_of(value)), None)
        if fits is not None:
            known.remove(fits)
            count += fits != what
        lines.append([relpath, kind, what if fits is None else fits, value])
    added = "what they expect" if version == 1 else "the names of sizes"
    claims = f"{count} claim{'' if count == 1 else 's'}"
    return lines, f"{claims}: {added}, as the file has it now" if count else ""


def _bodies(own: Sequence[list[Any]], now: File | None) -> tuple[list[list[Any]], str]:
    """The lines of bodies that the lock lacks of traced calls; what cannot be traced is for the gate to say."""
    kept = {what for _, kind, what, _ in own if kind == "body"}
    lacking = {what for _, kind, what, _ in own if kind == "layout" and ":" in what and what not in kept}
    if not lacking or now is None or unreadable(now):
        return [], ""
    try:
        calls = calls_of((spec := read(now.data, now.path)).traced, spec.claims).kernels
    except (LayoutError, Undecided):
        return [], ""
    lines = [[own[0][0], "body", name, locked_body(call).as_list()] for name, call in calls.items() if name in lacking]
    bodies = f"{len(lines)} bod{'y' if len(lines) == 1 else 'ies'} of kernels"
    return lines, f"{bodies} locked as now" if lines else ""


def _as_it_was(fields: Mapping[str, Any], version: int) -> str:
    """A claim as an earlier version kept it: without what it expects, or with sizes in order."""
    kept = {name: value for name, value in fields.items() if version > 1 or name not in _EXPECTED}
    point = kept.get("counterexample")
    if isinstance(point, Mapping) and isinstance(point.get("sizes"), Mapping):
        kept["counterexample"] = {**point, "sizes": list(point["sizes"].values())}
    return json.dumps(kept, sort_keys=True)


def _dump(own: list[list[Any]], now: File | None) -> tuple[list[list[Any]], str]:
    """The lines of a dump with what version 1 did not keep of it; and what was added."""
    relpath = own[0][0]
    try:
        if now is None or unreadable(now):
            raise LayoutError("it is not here" if now is None else unreadable(now))
        added = [[relpath, *line] for line in lines_of(now) if line[0] not in _KEPT]
    except LayoutError as error:
        return own, f"version 1 kept nothing of donation, devices, collectives and calls, and {error.problem}"
    counts = {kind: sum(line[1] == kind for line in added) for kind in ("donation", "collective", "call", "kernel")}
    words = [f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in counts.items() if count]
    return [*own, *added], f"devices{''.join(f', {each}' for each in words)} are locked as they are now"
