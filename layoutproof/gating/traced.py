"""The Pallas calls of user code that a spec file names, as a lock file holds them: layouts, and what is kept of bodies.

The code of another state is never run: a git revision has no work tree, and importing it is not what anybody asked for.
What the code of today does is traced, and what it did is in the lock file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.finding import Finding, unknown, wrong_input
from layoutproof.core.message import extended
from layoutproof.gating import problems
from layoutproof.gating.classes import text_of
from layoutproof.gating.kernel_regressions import answers, worse
from layoutproof.gating.lock_head import renewed
from layoutproof.gating.specs import Claimed, Named, ReadSpec, compare
from layoutproof.gating.traced_bodies import changes, not_kept
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.kernel_print import mapping_of
from layoutproof.pallas.spec_text import name_of, not_serialisable
from layoutproof.specs.spec_model import OF_VALUES
from layoutproof.specs.traced import KEY, calls_in, every_call_in, is_traced, stated_args


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of entries of `kernels:`, by `entry:call`. layouts: the calls that have a text form, as they are
    stated."""

    layouts: tuple[Named, ...]
    kernels: Mapping[str, Kernel]


def calls_of(traced: Sequence[Named], claims: Sequence[Claimed] = ()) -> Calls:
    """Each call that the entries of `kernels:` make, as `entry:call`; unmodelled calls are left out: claims report
    them.

    claims: of their file. A compared function may make no Pallas call, and a reference takes the function's arguments.
    Raises LayoutError for an entry that cannot be imported or traced.
    """
    layouts: list[Named] = []
    kernels: dict[str, Kernel] = {}
    compared = {
        label: value
        for check in (claim.check for claim in claims)
        if check.kind in OF_VALUES
        for label, value in zip(check.labels, check.layouts, strict=True)
    }
    without = {
        label for claim in claims for label in claim.check.labels
        if {"args", "inputs"} & claim.check.options.keys() and not stated_args(compared.get(label))
    }  # fmt: skip
    for entry in traced:
        if entry.name in without:
            # only the claim says what it is traced with
            continue
        names: list[str] = []
        value = compared.get(entry.name)
        for call in calls_in(entry.value) if value is None else every_call_in(value):
            names.append(name_of(call, names))
            if not isinstance(call, Kernel):
                continue
            name = f"{entry.name}:{names[-1]}"
            kernels[name] = call
            if not not_serialisable(call):
                stated: dict[str, Any] = {"kernel": mapping_of(call)}
                layouts.append(Named(name, stated, entry.line, entry.column))
    return Calls(tuple(layouts), kernels)


def drift(locked: ReadSpec, before: ReadSpec | None, spec: ReadSpec, relpath: str) -> list[Finding]:
    """The changes of the calls of a spec file's entries since the lock was written.

    before: the file when it was locked. An entry that is gone, or that traces something else under another name, is the
    spec file's change and is not told twice.
    """
    entries = {entry.name: entry for entry in spec.traced}
    locked = _renamed(locked, () if before is None else before.traced, entries)
    names = dict.fromkeys(_entry(name) for name in (*(call.name for call in locked.layouts), *locked.bodies))
    found: list[Finding] = []
    for name in names:
        if name not in entries:
            continue
        now = _now(entries[name], spec, relpath)
        if isinstance(now, Finding):
            found.append(now)
            continue
        then = _of_entry(locked, name)
        at = _at(name, spec, relpath)
        found += [replace(each, **at) for each in compare(then, ReadSpec(spec.file, now.layouts), relpath).all()]
        found += of_bodies(then, now, spec, relpath)
    return [*found, *unrecorded(before, spec, relpath, names)]


def unrecorded(before: ReadSpec | None, spec: ReadSpec, relpath: str, recorded: Collection[str] = ()) -> list[Finding]:
    """The rules that calls break of which no lock says what they were.

    before: the old file. Of an entry that it has, whether the rule was kept before is unknown; an entry that is new has
    no before, and is judged as any new kernel.  recorded: the entries that a lock knows.
    """
    known = {key for entry in (() if before is None else before.traced) for key in (entry.name, text_of(entry.value))}
    found: list[Finding] = []
    for entry in spec.traced:
        if entry.name in recorded:
            continue
        now = _now(entry, spec, relpath)
        if isinstance(now, Finding):
            found.append(now)
            continue
        at, expected = _at(entry.name, spec, relpath), _expected(entry.name, spec)
        is_new = not known & {entry.name, text_of(entry.value)}
        for name, call in now.kernels.items():
            for key, answer in answers(call).items():
                wrong = worse({}, {key: answer}, expected)
                wrong = wrong if is_new else [_unless_before(each, answer.place, spec.file) for each in wrong]
                found += [replace(each, subject=f"kernel {name}", **at) for each in wrong]
    return found


def _unless_before(broken: Finding, place: str, file: str) -> Finding:
    """What is said of a rule that is not kept now, where nobody knows whether it was before.

    place: in the kernel's source, "" where that is not known.  file: the spec file.
    """
    command = renewed([PurePath(file).parent.as_posix()])
    why = problems.BEFORE_UNKNOWN(f" ({place})" if place else "", command)
    return replace(unknown("", extended(broken.reason, why)), fix=broken.fix, hint=broken.hint)


def _now(entry: Named, spec: ReadSpec, relpath: str) -> Calls | Finding:
    """The calls of an entry as they are traced here, or why they cannot be."""
    at = _at(entry.name, spec, relpath)
    try:
        return calls_of([entry], spec.claims)
    except Undecided as why:
        return unknown(f"kernel {entry.name}", str(why), **at)
    except LayoutError as error:
        return wrong_input(f"kernel {entry.name}", error.problem, **at)


def of_bodies(locked: ReadSpec, now: Calls, spec: ReadSpec, relpath: str) -> list[Finding]:
    """The changes in the bodies of calls; one finding for all calls whose bodies the lock lacks."""
    stated = {call.name for call in (*locked.layouts, *now.layouts)}
    unsaid = {call.name for call in locked.layouts} - {*locked.bodies}
    known = {name: call for name, call in now.kernels.items() if name not in unsaid}
    found: list[Finding] = []
    for entry in dict.fromkeys(map(_entry, (*locked.bodies, *known))):
        before = _of_entry(locked, entry).bodies
        after = {name: call for name, call in known.items() if _entry(name) == entry}
        changed = changes(before, after, stated, _expected(entry, spec))
        found += [replace(each, **_at(entry, spec, relpath)) for each in changed]
    lost = [name for name in now.kernels if name in unsaid]
    return [*found, replace(not_kept(lost), **_at(_entry(lost[0]), spec, relpath))] if lost else found


def _renamed(locked: ReadSpec, before: Sequence[Named], entries: Mapping[str, Named]) -> ReadSpec:
    """The locked calls under the new names of their entries, which are matched by what they trace."""
    was = {entry.name for entry in before}
    fresh = {text_of(entry.value): name for name, entry in entries.items() if name not in was}
    names = {e.name: fresh[text_of(e.value)] for e in before if e.name not in entries and text_of(e.value) in fresh}

    def now(call: str) -> str:
        entry, colon, rest = call.partition(":")
        return names.get(entry, entry) + colon + rest

    layouts = tuple(replace(call, name=now(call.name)) for call in locked.layouts)
    return replace(locked, layouts=layouts, bodies={now(name): body for name, body in locked.bodies.items()})


def _entry(call: str) -> str:
    return call.partition(":")[0]


def _of_entry(locked: ReadSpec, entry: str) -> ReadSpec:
    """The locked calls of one entry."""
    layouts = tuple(call for call in locked.layouts if _entry(call.name) == entry)
    return ReadSpec(
        locked.file, layouts, bodies={name: b for name, b in locked.bodies.items() if _entry(name) == entry}
    )


def _at(entry: str, spec: ReadSpec, relpath: str) -> dict[str, Any]:
    """The place of an entry; the file where the entry is gone."""
    at: dict[str, Any] = {"relpath": relpath, "file": spec.file}
    found = next((each for each in spec.traced if each.name == entry), None)
    return at if found is None else {**at, "line": found.line, "column": found.column}


def _expected(entry: str, spec: ReadSpec) -> set[tuple[str, str]]:
    """The refutations and unknowns that the file itself expects of an entry's calls: (property, verdict)."""
    value = next((each.value[KEY] for each in spec.traced if each.name == entry), None)  # type: ignore[index]
    return {
        (check.kind, check.expect)
        for check in (claim.check for claim in spec.claims)
        for layout in check.layouts
        if check.expect not in ("proved", "sampled")
        and is_traced(layout)
        and {name: part for name, part in layout[KEY].items() if name != "call"} == value  # type: ignore[index]
    }
