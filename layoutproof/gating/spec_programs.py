"""The programs that spec files name, compiled: the new ones against the old ones, or under two compilers.

The old program is in the lock file of the old state; or the old revision is compiled too, from a work tree of its
own in a process of its own. The code of another revision runs only on request.

Two compiled texts are compared as dumps are; of their records then only what no text says: memory, VMEM, cycles,
shardings. A lock has records alone, so these are compared whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from layoutproof.core.document import JsonObject
from layoutproof.core.errors import LayoutError, Undecided, shorten
from layoutproof.core.files import MAX_TEXT
from layoutproof.core.files import read as read_file
from layoutproof.core.finding import Finding, unknown, wrong_input
from layoutproof.core.message import extended, listing, located
from layoutproof.core.result import Verdict
from layoutproof.gating import problems, program_changes, records
from layoutproof.gating.classes import text_of
from layoutproof.gating.compiled_changes import lowered
from layoutproof.gating.dataflow import COMPUTED
from layoutproof.gating.first_change import CAUSED, SourceRow, caused, changed, rows_of
from layoutproof.gating.folding import unfolded
from layoutproof.gating.functions import ASK, NOT_HERE, SAME, Function, as_locked, of_computed
from layoutproof.gating.functions import unknown as function_unknown
from layoutproof.gating.lock_head import NAME, RENEW
from layoutproof.gating.policy import by_default
from layoutproof.gating.specs import PROGRAM, Named, ReadSpec, read
from layoutproof.gating.states import File
from layoutproof.gating.text_rows import text_rows
from layoutproof.programs.compile import CPU, Asked, Made
from layoutproof.programs.functions import Kept, compared, unlike, valued
from layoutproof.programs.record import Record
from layoutproof.specs.compiled import asked_of, permitted
from layoutproof.specs.compiled import compiled as once
from layoutproof.specs.spec_model import OF_VALUES
from layoutproof.specs.traced import KEY

_OF_RECORDS = frozenset(
    ("peak_memory", "temporaries", "shrank", "vmem", "estimated_cycles", "replicated", "resharded", "devices")
)
"""Classes that only records tell, where both texts are compared too."""
_MORE = frozenset(
    (
        *("peak_memory", "new_copy", "relaid_parameter", "new_collective", "grown_collective", "replicated"),
        *("lost_donation", "estimated_cycles"),
    )
)
"""Classes of higher cost or less protection: a lock that records more than the current cost hides its return."""
_NO_LOCK = problems.NO_LOCK_OF_PROGRAMS()
_LOCK = f"commit one, written by {RENEW}; or compile the old revision too, with --against REF --compile-base"
_NO_SHARDINGS = "shardings of the parameters"


Side = Made | Finding | Record | None
"""A program in one state: compiled, why it is not, as a lock has it, or nothing."""


@dataclass(frozen=True, slots=True)
class Was:
    """The source of the old programs of a spec file.

    locked: by name, as the old state's lock has them; None where it has no lock.  values: likewise, their values,
    where the lock has them.  base: the folder of the old
    revision's code, "" where it is not to be run.  library: the path of a libtpu to compile with, "" for the installed
    one.  kept: whether that lock is the new state's too, so that the next change is held against it.
    compiles: whether the base is compiled, or only traced.  same: whether every program is to compute what it did.
    """

    locked: Mapping[str, Record] | None = field(default_factory=dict)
    values: Mapping[str, Kept] = field(default_factory=dict)
    base: str = ""
    library: str = ""
    kept: bool = False
    compiles: bool = True
    same: bool = False


def compiled(entries: Sequence[Named], library: str = "", folder: str = "") -> list[Made | Finding]:
    """Each program compiled, or why it may not be. folder: of its code, "" for the current one."""
    asked = [request_for(entry, library, folder) for entry in entries]
    given = [each for each in asked if isinstance(each, Asked)]
    answers = iter(once(given, seconds_of(entries)))
    return [next(answers) if isinstance(each, Asked) else each for each in asked]


def request_for(entry: Named, library: str = "", folder: str = "") -> Asked | Finding:
    """The request to compile or trace a program, or why it may not be."""
    program = _program(entry)
    try:
        one = asked_of(program, permitted(program))
        return replace(
            one, folder=folder, name=entry.name, libtpu=library if library and one.target != CPU else one.libtpu
        )
    except Undecided as why:
        return unknown(f"program {entry.name}", str(why))
    except LayoutError as error:
        return wrong_input(f"program {entry.name}", error.problem)


def seconds_of(entries: Sequence[Named]) -> float:
    """Seconds that one of some programs may take to compile."""
    return max((float(_program(entry).get("seconds", 600)) for entry in entries), default=600.0)


def drift(was: Was, before: ReadSpec | None, after: ReadSpec, relpath: str) -> list[Finding]:
    """The changes of each program of a spec file."""
    olds, news = _entries(before, after)
    if was.locked is None and not was.base:
        return placed([unknown("", _NO_LOCK, fix=_LOCK)], news[0], after.file, relpath) if news else []
    firsts: Sequence[Side]
    if was.base and was.compiles:
        firsts = compiled(olds, was.library, was.base)
    else:
        firsts = [(was.locked or {}).get(old.name) for old in olds]
    # where values alone are compared, nothing is compiled
    alone = was.locked is None and not was.compiles
    seconds: Sequence[Made | Finding | None] = [None] * len(news) if alone else compiled(news, was.library)
    given = [*zip(olds, news, firsts, seconds, strict=True)]
    functions = _functions(was, given, {*_held(before), *_held(after)})
    found: list[Finding] = []
    for (_, entry, first, second), function in zip(given, functions, strict=True):
        one: list[Finding] = []
        if first is None and was.locked is not None:
            one = [unknown("", problems.LOCK_SILENT(), fix="layoutproof gate --lock writes it")]
        elif first is not None and second is not None:
            one = between(first, second, place=f"{relpath}:{entry.line}")
        found += placed(function.over(one), entry, after.file, relpath)
        if was.kept and isinstance(first, Record) and isinstance(second, Made) and second.record is not None:
            found += placed(_slack(first, second.record), entry, after.file, relpath)
    return found + (_kernels(was, before, after, relpath) if was.base and was.same else [])


def _entries(before: ReadSpec | None, after: ReadSpec) -> tuple[list[Named], list[Named]]:
    """The programs that both states name, old and new side by side; before: None where a lock alone says what was."""
    news = list(_compilable(after))
    if before is None:
        return news, news
    # one that is new is the spec file's change, and its claims are asked there
    olds = {entry.name: entry for entry in _compilable(before)}
    renamed = {text_of(old.value): old for name, old in olds.items() if name not in {each.name for each in news}}
    olds |= {each.name: renamed[text_of(each.value)] for each in news if text_of(each.value) in renamed}
    news = [entry for entry in news if entry.name in olds]
    return [olds[entry.name] for entry in news], news


def _kernels(was: Was, before: ReadSpec | None, after: ReadSpec, relpath: str) -> list[Finding]:
    """The changed values of the functions of the section `kernels`: traced, with their kernels."""
    olds = {entry.name: entry for entry in _functions_of(before)} if before is not None else {}
    pairs = [(entry, olds[entry.name]) for entry in _functions_of(after) if entry.name in olds]
    said: dict[int, Function] = {}
    asked: dict[int, tuple[Asked, Asked]] = {}
    for k, (new, old) in enumerate(pairs):
        sides = request_for(new), request_for(old, folder=was.base)
        if isinstance(sides[0], Asked) and isinstance(sides[1], Asked):
            asked[k] = sides  # type: ignore[assignment]
        else:
            said[k] = _refused(sides, asked=True)
    seconds = seconds_of([new for new, _ in pairs])
    for k, one in zip(asked, compared([*asked.values()], seconds), strict=True):
        if not (one.state == "same" and one.alike):
            said[k] = of_computed(one, asked=True)
    return [
        found
        for k, function in sorted(said.items())
        for found in placed(function.over([]), pairs[k][0], after.file, relpath, "kernel")
    ]


def _refused(sides: Sequence[Asked | Finding], asked: bool) -> Function:
    """The finding of two programs of which one may not be traced."""
    refused = next(each for each in sides if isinstance(each, Finding))
    return Function(refused) if refused.bad_input else function_unknown(refused.reason, asked)


def _functions_of(spec: ReadSpec) -> Iterator[Named]:
    """The entries of the section `kernels` as programs. A reference has the arguments of what is held against it."""
    entries = {entry.name: entry.value[KEY] for entry in spec.traced}  # type: ignore[index]
    checks = [claim.check for claim in spec.claims if claim.check.kind in OF_VALUES and len(claim.check.labels) > 1]
    given = {c.labels[1]: entries.get(c.labels[0], {}).get("args") for c in checks}
    for entry in spec.traced:
        stated: dict[str, Any] = entries[entry.name]
        args = stated.get("args") or given.get(entry.name)
        if args:
            program = {"function": stated["trace"], "args": args, "kwargs": stated.get("kwargs") or {}}
            program["target"] = stated.get("target") or CPU
            yield replace(entry, value={PROGRAM: program})


def _functions(was: Was, given: Sequence[tuple[Named, Named, Side, Side]], held: Collection[str]) -> list[Function]:
    """The findings on the values of each program. given: (the old entry, the new one, both compiled)."""
    said: dict[int, Function] = {}
    pairs: dict[int, tuple[Asked, Asked]] = {}
    locked: dict[int, tuple[Asked, Kept]] = {}
    for k, (old, new, first, second) in enumerate(given):
        asked = was.same or new.name in held
        if second is not None and _settled(first, second):
            continue
        sides = request_for(new), request_for(old, folder=was.base)
        if not was.base:
            if asked and isinstance(sides[0], Asked) and old.name in was.values:
                locked[k] = sides[0], was.values[old.name]
            elif asked:
                said[k] = function_unknown(NOT_HERE, asked, ASK)
        elif isinstance(sides[0], Asked) and isinstance(sides[1], Asked):
            pairs[k] = sides  # type: ignore[assignment]
        else:
            said[k] = _refused(sides, asked)
    seconds = seconds_of([new for _, new, _, _ in given])
    for k, one in zip(pairs, compared([*pairs.values()], seconds), strict=True):
        _, new, first, _ = given[k]
        if not one.alike or _lowered(first):
            said[k] = of_computed(one, was.same or new.name in held, records=first is not None)
    made_now = valued([each for each, _ in locked.values()], seconds)
    for (k, (_, was_then)), values in zip(locked.items(), made_now, strict=True):
        why = values if isinstance(values, str) else unlike(was_then, values)
        said[k] = function_unknown(extended(why, f"; {NOT_HERE}"), True, ASK) if why else as_locked(was_then.points)
    return [said.get(k, Function()) for k in range(len(given))]


def _settled(first: Side, second: Side) -> bool:
    """Whether there is nothing to compare: it is said elsewhere why, or it is the same program."""
    then, now = map(_lowered, (first, second))
    broken = isinstance(first, Finding) or (isinstance(first, Made) and first.record is None)
    return not now or now == then or broken


def _lowered(side: Side) -> str:
    """The digest of a program before it was compiled, "" if unknown."""
    record = side if isinstance(side, Record) else side.record if isinstance(side, Made) else None
    return "" if record is None else str(record.made.lowered)


def _held(spec: ReadSpec | None) -> Iterator[str]:
    """The names of the programs that a spec file says must compute what they did."""
    return (c.check.labels[0] for c in (spec.claims if spec is not None else ()) if c.check.kind == SAME)


def _slack(locked: Record, now: Record) -> list[Finding]:
    """The regressions that an unchanged lock allows the next change, because it records more than the current cost.

    These are the denied findings of a change from the current state to the lock.
    """
    back = [each for each in unfolded(records.changes(now, locked)) if each.question in _MORE]
    more = [each for each in back if by_default(each) == "deny"]
    if not more:
        return []
    said = "; ".join(f"{each.question} {each.subject}: {_turned(each.reason)}" for each in more[:3])
    why = problems.LOCK_TOO_HIGH(said)
    return [Finding("lock", NAME, why, fix=RENEW)]


def _turned(reason: str) -> str:
    """The reason of a change from what is here to what the lock says."""
    return reason.replace(" bytes before", " bytes here").replace(" now", " by the lock")


def under_both(file: File, libraries: Sequence[str]) -> list[Finding]:
    """The same programs under another compiler. libraries: the paths of the old and the new libtpu."""
    spec = read(file.data, file.path)
    if spec.errors:
        raise spec.errors[0]
    entries = [entry for entry in _compilable(spec) if _program(entry).get("target", CPU) != CPU]
    sides = [compiled(entries, library) for library in libraries]
    found: list[Finding] = []
    for entry, first, second in zip(entries, *sides, strict=True):
        found += placed(between(first, second, across=True), entry, file.path, file.relpath)
    return found


def for_tpu(file: File) -> list[str]:
    """The names of the programs of a spec file that libtpu compiles; none of a file with a mistake in it."""
    spec = read(file.data, file.path)
    return [each.name for each in _compilable(spec) if _program(each).get("target", CPU) != CPU]


def locked_of(spec: ReadSpec) -> Iterator[tuple[str, Record]]:
    """The record of each program of a spec file, for the lock. LayoutError, or Undecided, for what is not compiled."""
    entries = list(_compilable(spec))
    for entry, one in zip(entries, compiled(entries), strict=True):
        problem = one if isinstance(one, Finding) else one.problem
        if isinstance(one, Finding) or one.record is None or problem is not None:
            assert problem is not None
            why = problems.PROGRAM_PROBLEM(entry.name, problem.reason)
            if problem.verdict is Verdict.UNKNOWN and not problem.bad_input:
                raise Undecided(why)
            raise LayoutError(why, file=spec.file, line=entry.line, column=entry.column)
        yield entry.name, one.record


def valued_of(spec: ReadSpec) -> Iterator[tuple[str, Kept]]:
    """Of each program that a claim holds to what it computes, its values for the lock, where there are any."""
    held = {*_held(spec)}
    entries = [entry for entry in _compilable(spec) if entry.name in held]
    asked = [(entry.name, one) for entry in entries if isinstance(one := request_for(entry), Asked)]
    for (name, _), values in zip(asked, valued([one for _, one in asked], seconds_of(entries)), strict=True):
        if isinstance(values, Kept):
            yield name, values


def _compilable(spec: ReadSpec) -> Iterator[Named]:
    """The programs that are compiled; dumps and records are files of their own."""
    return (each for each in spec.programs if _program(each).get("function") or _program(each).get("export"))


def _program(entry: Named) -> JsonObject:
    found: dict[str, Any] = entry.value[PROGRAM]  # type: ignore[index]
    return found


def between(
    first: Made | Finding | Record, second: Made | Finding, across: bool = False, place: str = ""
) -> list[Finding]:
    """The changes between two programs, as far as both are known, each with the line of the source that makes it.

    across: under two compilers on purpose, where no line does.  place: of the program's entry in its spec file.
    """
    found = _differences(first, second, across)
    if across or not isinstance(first, Made) or not isinstance(second, Made) or not (first.text and second.text):
        return found
    return _caused(found, first, second, place)


def _differences(first: Made | Finding | Record, second: Made | Finding, across: bool) -> list[Finding]:
    """The changes between two programs. across: as of `between`."""
    if isinstance(second, Finding):
        return [second]
    if second.problem is not None or second.record is None:
        return [_problem(second)]
    if isinstance(first, Record):
        return records.changes(first, second.record)
    if isinstance(first, Finding):
        return [first]
    if first.problem is not None or first.record is None:
        why = "" if first.problem is None else first.problem.reason
        return [unknown("", problems.SIDE_NOT_COMPILED(_side(first, across), why))]
    old, new = (File("", each.asked.title, each.text.encode(errors="backslashreplace")) for each in (first, second))
    said = all(value.sharding for record in (first.record, second.record) for value in record.parameters)
    texts: list[Finding] = []
    if first.text != second.text:
        # of two compilers the texts are all that is at hand; else sources are compared
        texts = program_changes.compare(old, new, "", by_cause=True, by_values=across)
    if first.record.made.lowered and first.record.made.lowered == second.record.made.lowered:
        # the compiler was given one program, and may write a formula otherwise
        texts = [replace(each, severity="warn") if each.question in COMPUTED else each for each in texts]
    found = [each for each in texts if not (said and each.subject == _NO_SHARDINGS)]
    more = records.changes(first.record, second.record, across=across)
    told = {(each.question, each.subject) for each in found}
    found += [
        each
        for each in more
        if (each.question in _OF_RECORDS or each.verdict is Verdict.UNKNOWN)
        and (each.question, each.subject) not in told
    ]
    return found if found or first.text == second.text else lowered(first.record.made, second.record.made)


def _caused(found: Sequence[Finding], first: Made, second: Made, place: str) -> list[Finding]:
    """The findings with the line of the source that changed the first value."""
    if not any(each.question in CAUSED for f in found for each in (f, *f.follows)):
        return [*found]
    texts = text_rows(second.text)
    if first.stated and second.stated:
        olds, news = (rows_of(each.stated) for each in (first, second))
        sources = _lines_of(olds, first.asked.folder), _lines_of(news, second.asked.folder)
        changes = changed(olds, news, sources)
    else:
        changes = changed(text_rows(first.text).rows, texts.rows)
    return caused(found, changes, texts.places, _asked_otherwise(first.asked, second.asked, place))


def _lines_of(rows: Sequence[SourceRow], folder: str) -> dict[str, list[str]]:
    """The lines of the files of a tree that rows come from."""
    found: dict[str, list[str]] = {}
    for name in {place.rpartition(":")[0] for row in rows for place in row.places}:
        with suppress(LayoutError, OSError, UnicodeDecodeError):
            if not Path(name).is_absolute():
                found[name] = read_file(Path(folder, name), MAX_TEXT).decode().splitlines()
    return found


def _asked_otherwise(old: Asked, new: Asked, place: str) -> str:
    """How a program is asked for in another way, at the place of its entry; "" for the same way."""
    sides = [
        (word, getattr(old, name), getattr(new, name))
        for word, name in _ASKED_FOR
        if getattr(old, name) != getattr(new, name)
    ]
    said = listing(
        [problems.SAYS_NOW(word, shorten(str(now), 120), shorten(str(was), 120)) for word, was, now in sides]
    )
    return located(place, said) if said and place else said


_ASKED_FOR = (
    *(("args", "args"), ("kwargs", "kwargs"), ("mesh", "mesh"), ("in", "ins"), ("out", "outs"), ("donate", "donate")),
    *(("flags", "flags"), ("target", "target"), ("topology", "topology"), ("function", "program")),
)
"""Keys of an entry of the section `programs`, and the fields of `Asked` that have them."""


def _side(made_: Made, across: bool) -> str:
    return f"with {made_.asked.libtpu}, it" if across else "the base"


def _problem(made_: Made) -> Finding:
    problem = made_.problem
    assert problem is not None
    if problem.bad_input:
        return wrong_input("", problem.reason)
    if problem.verdict is Verdict.UNKNOWN:
        return unknown("", problem.reason)
    return Finding("refuted", "", problem.reason)


def placed(findings: Iterable[Finding], entry: Named, file: str, relpath: str, what: str = "program") -> list[Finding]:
    """Findings of one program, or of a function with kernels, at its entry in the spec file."""
    at: dict[str, Any] = {"file": file, "relpath": relpath, "line": entry.line, "column": entry.column}
    name = f"{what} {entry.name}"
    return [
        replace(
            each,
            subject=each.subject
            if each.subject.startswith(name)
            else f"{name}: {each.subject}"
            if each.subject
            else name,
            follows=tuple(placed(each.follows, entry, file, relpath, what)),
            **at,
        )
        for each in findings
    ]
