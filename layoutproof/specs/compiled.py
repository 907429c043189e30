"""Checks of spec files about programs: compiled, or read where they are compiled already, when the check runs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from layoutproof.compiler.tracing import NOT_TRACED, Tracing, permit, run_now, running
from layoutproof.core.document import JsonObject
from layoutproof.core.errors import LayoutError, Unsupported, shorten
from layoutproof.core.files import MAX_TEXT, lines, named, read_json
from layoutproof.core.finding import Finding
from layoutproof.core.message import located
from layoutproof.programs.claims import judge
from layoutproof.programs.compile import Asked, Made, made
from layoutproof.programs.reading import record_of
from layoutproof.programs.record import Provenance, Record, read_record
from layoutproof.specs import problems

_OF_FILES = re.compile(r"(?:^|_)(?:dump|dir|directory|file|path|log|output|cache|extra|to)(?:_|$)")
"""Options of compilers that say where to read or write, or hand on others: xla_dump_to, xla_gpu_llvm_ir_file."""


def answer(kind: str, name: str, program: Any, options: Mapping[str, Any]) -> Finding:
    """The answer to one claim about a program, as a spec file states it.

    program: the entry of the section `programs`. A claim about a program that its compiler refuses is refuted, and
    about one that cannot be compiled here unknown. Raises LayoutError for wrong input, Undecided where it may not be
    imported.
    """
    if program.get("dump") or program.get("record"):
        record, text = _read(json.dumps(program, sort_keys=True))
        return judge(kind, record, options, text, name)
    (found,) = compiled([asked_of(program, permitted(program))], float(program.get("seconds", 600)))
    problem = found.problem
    if found.record is not None:
        return judge(kind, found.record, options, found.text, name)
    assert problem is not None
    if problem.bad_input:
        raise LayoutError(located(problem.place, problem.reason) if problem.file else problem.reason)
    return Finding(kind, name, problem.reason, verdict=problem.verdict)


def permitted(program: JsonObject) -> Tracing:
    """The rule for what an entry of the section `programs` names that would be run to compile it.

    Raises Undecided where it may not be, LayoutError for an option of the compiler that names a file: a compiler reads
    and writes where it is told, as whoever runs it.
    """
    rule = permit(program["function"]) if program.get("function") else running()
    if program.get("libtpu") and rule.prefixes is not None:
        libtpu = shorten(program["libtpu"], 120)
        raise Unsupported(problems.LIBTPU_NAMED_BY_FILE(NOT_TRACED, libtpu, rule.allowed))
    for name, value in program.get("flags", {}).items():
        if _OF_FILES.search(name) or "/" in value or "\\" in value:
            raise LayoutError(problems.FLAG_NAMES_FILE(shorten(name, 80), shorten(value, 80)))
    return rule


@dataclass(frozen=True, slots=True)
class _Kept:
    """The outcome of one program. seconds: that it had."""

    made: Made
    seconds: float


def compiled(asked: Sequence[Asked], seconds: float) -> list[Made]:
    """The outcome of each program, compiled once within a run for all users: claims, the gate, the lock.

    Alike are those of which all is alike but the name, in one folder, under one rule. Within a run code stays as it is;
    the next run compiles anew. What did not end in time is asked again where there is more of it. seconds: for each.
    """
    kept = _of_run(run_now()) if run_now() else {}
    keys = [json.dumps([asdict(replace(one, name="")), os.getcwd()], sort_keys=True, default=str) for one in asked]
    new = {
        key: one
        for key, one in zip(keys, asked, strict=True)
        if key not in kept or (kept[key].made.record is None and kept[key].seconds < seconds)
    }
    kept |= {key: _Kept(each, seconds) for key, each in zip(new, made(list(new.values()), seconds), strict=True)}
    found = [kept[key].made for key in keys]
    return [replace(each, asked=replace(each.asked, name=one.name)) for each, one in zip(found, asked, strict=True)]


@lru_cache(maxsize=1)
def _of_run(run: str) -> dict[str, _Kept]:
    return {}


def asked_of(given: JsonObject, rule: Tracing) -> Asked:
    """The request to compile an entry of the section `programs` with a function or an export, and its rule."""
    return Asked(
        given.get("function") or given["export"],
        given.get("args", ()),
        given.get("kwargs", {}),
        given.get("target", "cpu"),
        given.get("topology", ""),
        given.get("mesh", {}),
        given.get("in", ()),
        given.get("out", ()),
        given.get("donate", ()),
        given.get("flags", {}),
        given.get("libtpu", ""),
        rule=rule,
        schedule=given.get("schedule", False),
    )


def _read(text: str) -> tuple[Record, str]:
    """The record of what is compiled already, and the compiled text where there is one."""
    given = json.loads(text)
    if given.get("record"):
        file = given["record"]
        return read_record(read_json(named(file), MAX_TEXT), file), ""
    file = given["dump"]
    with lines(named(file)) as found:
        kept = list(found)
    target = given.get("target", "")
    about = Provenance(mesh=given.get("mesh", {}), target="" if target == "cpu" else target)
    return record_of(kept, file, about), "".join(kept)
