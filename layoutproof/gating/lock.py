"""The lock file: each layout and the facts proved of it, so that drift is seen without git.

One JSON array per line, sorted, so that changes of different things merge without a conflict:

    ["specs/a.yaml", "claim", {"kind": "injective", "labels": ["scores"], ..}, "proved"]
    ["specs/a.yaml", "layout", "scores", "f32[3,5]{1,0:T(2,2)}"]
    ["dumps/step.txt", "parameter", 0, ["bf16[64,256]{1,0:T(8,128)(2,1)}", "", "x"]]

A layout is kept in its normal form, the text that it prints, where that reads back as the same layout. Pallas calls of
user code (`kernels:`) are kept as what they were when traced, and their bodies as `traced_bodies` says; of an HLO dump,
what `lock_programs` says; and of a program that a claim `same_function` names, its values at random points.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from layoutproof.core.document import JsonObject
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.finding import Finding, unknown
from layoutproof.core.result import plain
from layoutproof.gating import problems, records
from layoutproof.gating.compiled_program import CompiledProgram
from layoutproof.gating.lock_head import HEAD, paths_of
from layoutproof.gating.lock_programs import Line, lines_of, program_of
from layoutproof.gating.lock_programs import drift as of_program
from layoutproof.gating.report import Compared, of_specs
from layoutproof.gating.specs import Claimed, Named, ReadSpec, about_code, compare, read
from layoutproof.gating.states import File, unreadable
from layoutproof.gating.traced import Calls, calls_of, of_bodies
from layoutproof.gating.traced_bodies import body_from
from layoutproof.gating.traced_bodies import locked as kept
from layoutproof.programs.functions import Kept, kept_from
from layoutproof.programs.record import Record, read_record
from layoutproof.registry.read import read_layout
from layoutproof.specs.check import run
from layoutproof.specs.spec import Check

_OF_DUMPS = ("parameter", "result", "copy", "bitcast", "module", "donation", "collective", "call", "kernel", "computes")
_FIELDS = ("kind", "labels", "layouts", "name", "options", "fact", "expect", "counterexample", "figures", "reason")


def write(files: Iterable[File], paths: Sequence[str]) -> str:
    """The text of a lock file for these spec files and dumps, which were found at `paths`.

    Raises LayoutError for a file with a mistake in it: an unreadable file is not locked.
    """
    from layoutproof.gating.spec_programs import locked_of, valued_of

    lines = []
    for file in files:
        if unreadable(file):
            raise LayoutError(unreadable(file), file=file.path)
        if file.is_program:
            lines.append(line_of(file.relpath, "record", "", records.read(file).as_dict()))
        elif file.is_dump:
            lines += [line_of(file.relpath, *line) for line in lines_of(file)]
        elif file.is_spec:
            spec = read(file.data, file.path)
            if spec.errors:
                raise spec.errors[0]
            traced = calls_of(spec.traced, spec.claims)
            named = [*spec.layouts, *traced.layouts]
            lines += [line_of(file.relpath, "body", name, kept(c).as_list()) for name, c in traced.kernels.items()]
            lines += [line_of(file.relpath, "layout", each.name, _normal(each.value)) for each in named]
            lines += [line_of(file.relpath, "claim", fields_of(c.check), run(c.check).found) for c in spec.claims]
            lines += [line_of(file.relpath, "program", name, one.as_dict()) for name, one in locked_of(spec)]
            lines += [line_of(file.relpath, "values", name, one.as_dict()) for name, one in valued_of(spec)]
    return "\n".join([f"{HEAD} {json.dumps(list(paths))}", *sorted(lines)]) + "\n"


def locked(text: str, file: str) -> dict[str, ReadSpec | CompiledProgram]:
    """The locked state: relpath -> what was in that file. LayoutError with the line for what `write` never writes."""
    paths_of(text, file)
    specs: dict[str, ReadSpec] = {}
    dumps: dict[str, list[Line]] = {}
    programs: dict[str, CompiledProgram] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if number == 1 or not line.strip():
            continue
        if line.startswith(("<<<<<<<", "=======", ">>>>>>>", "|||||||")):
            raise LayoutError(problems.MERGE_CONFLICT(), file=file, line=number)
        try:
            relpath, kind, what, value = json.loads(line)
            if not isinstance(relpath, str):
                raise TypeError(relpath)
            if kind == "record":
                programs[relpath] = records.program_of(read_record(value, file))
                continue
            if kind in _OF_DUMPS:
                program_of([(kind, what, value)])
                dumps.setdefault(relpath, []).append((kind, what, value))
                continue
            spec = specs.setdefault(relpath, ReadSpec(file))
            if kind == "layout" and isinstance(what, str):
                specs[relpath] = replace(spec, layouts=(*spec.layouts, Named(what, value, number, 1)))
            elif kind == "body" and isinstance(what, str):
                specs[relpath] = replace(spec, bodies={**spec.bodies, what: body_from(value)})
            elif kind == "program" and isinstance(what, str):
                specs[relpath] = replace(spec, records={**spec.records, what: read_record(value, file)})
            elif kind == "values" and isinstance(what, str):
                specs[relpath] = replace(spec, values={**spec.values, what: kept_from(value)})
            elif kind == "claim":
                claimed = Claimed(_check(what, file, number), value)
                specs[relpath] = replace(spec, claims=(*spec.claims, claimed))
            else:
                raise ValueError(kind)
        except (ValueError, TypeError, KeyError, RecursionError):
            raise LayoutError(problems.NO_LOCK_LINE(shorten(line, 80)), file=file, line=number) from None
    return {**specs, **programs, **{relpath: program_of(lines) for relpath, lines in dumps.items()}}


@dataclass(frozen=True, slots=True)
class Lock:
    """The old state's lock file. calls: of user code, by the path of the spec file that names them.

    programs: dumps by path.  records: of the programs that a spec file names, by its path, then by name.
    values: of these, as far as it has them, likewise.  verdicts: of its claims, by its path, then by `key_of`.
    findings: mistakes in the lock itself.  kept: whether the new state has this lock, to the byte.
    """

    calls: Mapping[str, ReadSpec] = field(default_factory=dict)
    programs: Mapping[str, CompiledProgram] = field(default_factory=dict)
    records: Mapping[str, Mapping[str, Record]] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, Kept]] = field(default_factory=dict)
    verdicts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    kept: bool = False


def read_lock(data: bytes, file: str, folder: str, start: str = "") -> Lock:
    """The calls of user code and the dumps in a lock file, by path; a mistake in it is a finding.

    folder: where the lock is, from the top of the repository or of the disk.  start: where these paths start, alike.
    """
    try:
        locked_ = locked(data.decode(), file)
    except (LayoutError, UnicodeDecodeError) as error:
        why = error.problem if isinstance(error, LayoutError) else problems.NOT_UTF8()
        why = problems.OLD_LOCK_UNREADABLE(why)
        return Lock(findings=(unknown("the lock file", why, file, file),))
    calls: dict[str, ReadSpec] = {}
    programs: dict[str, CompiledProgram] = {}
    records_: dict[str, Mapping[str, Record]] = {}
    values: dict[str, Mapping[str, Kept]] = {}
    verdicts: dict[str, Mapping[str, str]] = {}
    for relpath, what in locked_.items():
        name = PurePath(os.path.relpath(os.path.join("/", folder, relpath), os.path.join("/", start))).as_posix()
        if isinstance(what, CompiledProgram):
            programs[name] = what
            continue
        records_[name] = what.records
        values[name] = what.values
        verdicts[name] = {key_of(claim.check): claim.verdict for claim in what.claims if about_code(claim.check)}
        traced = _calls_in(what)
        if traced.layouts or traced.bodies:
            calls[name] = traced
    return Lock(calls, programs, records_, values, verdicts)


def drift(
    old: ReadSpec | CompiledProgram | None, file: File | None, relpath: str, library: str = "", same: bool = False
) -> Compared:
    """The changes in one file since the lock was written, and the gate's rules that it has now.

    library: the path of a libtpu that compiles the programs that it names.  same: whether they are to compute what they
    did.
    """
    if isinstance(old, CompiledProgram) or (file is not None and (file.is_program or file.is_dump)):
        return Compared(tuple(of_program(old if isinstance(old, CompiledProgram) else None, file, relpath, same)))
    new = None if file is None else read(file.data, file.path)
    traced = calls_of(new.traced, new.claims) if new is not None else Calls((), {})
    changes = compare(old, _normalised(new, traced), relpath)
    if new is not None:
        known = ReadSpec(relpath) if old is None else _calls_in(old)
        changes = replace(changes, findings=(*changes.findings, *of_bodies(known, traced, new, relpath)))
    if new is not None and new.programs and old is not None:
        from layoutproof.gating.spec_programs import Was
        from layoutproof.gating.spec_programs import drift as of_programs

        was = Was(old.records, old.values, library=library, same=same)
        changes = replace(changes, findings=(*changes.findings, *of_programs(was, None, new, relpath)))
    compared = of_specs(changes, old, new)
    # a lock says nothing of rules, so those that are here judge
    return replace(compared, before=compared.rules)


def _calls_in(old: ReadSpec) -> ReadSpec:
    """The calls of user code in a lock."""
    return replace(old, layouts=tuple(named for named in old.layouts if ":" in named.name))


def _normalised(new: ReadSpec | None, traced: Calls) -> ReadSpec | None:
    """The new spec with layouts in normal form, so that the spelling of what was locked is no difference."""
    if new is None:
        return None
    named = [*new.layouts, *traced.layouts]
    layouts = tuple(replace(each, value=_normal(each.value)) for each in named)
    claims = tuple(Claimed(replace(c.check, layouts=tuple(_layouts_of(c.check)))) for c in new.claims)
    # the lock itself records the old programs
    return replace(new, layouts=layouts, claims=claims, traced=(), programs=())


def _normal(value: object) -> object:
    """The printed form of a layout where that reads back as the same; otherwise as it is written."""
    try:
        layout = read_layout(value)
        text = str(layout)
        return text if read_layout(text) == layout else plain(value)
    except LayoutError:
        return plain(value)


def fields_of(check: Check) -> JsonObject:
    """The fields of a claim in a lock file."""
    whole = {name: plain(getattr(check, name)) for name in _FIELDS}
    whole["layouts"] = _layouts_of(check)
    return {name: value for name, value in whole.items() if value and (name, value) != ("expect", "proved")}


def key_of(check: Check) -> str:
    """A claim as a lock file keeps it, to find what that says came of it."""
    return json.dumps(fields_of(check), sort_keys=True)


def _layouts_of(check: Check) -> list[object]:
    """The layouts that a claim is about; of a fact as they are written, for their text may be what it is about."""
    return [plain(layout) if check.is_fact else _normal(layout) for layout in check.layouts]


def _check(fields: JsonObject, file: str, line: int) -> Check:
    """A claim that was locked."""
    labels, layouts = tuple(fields["labels"]), tuple(fields["layouts"])
    more = {name: fields[name] for name in _FIELDS[3:] if name in fields}
    if "counterexample" in more:
        more["counterexample"] = {
            name: point if isinstance(point, dict) else tuple(point) for name, point in more["counterexample"].items()
        }
    return Check(file, line, 1, fields["kind"], labels, layouts, **more)


def line_of(*parts: object) -> str:
    """One line of a lock file."""
    return json.dumps(parts, ensure_ascii=False, sort_keys=True)
