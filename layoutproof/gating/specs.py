"""Changes between two spec files: named layouts, and the claims on them.

A claim is *lost* when it was proved of the old layouts and is not of the new ones; it is the old claim that is asked of
both, so that a bound cannot be loosened along with the layout unseen. It is *loosened* when the new one demands less,
whatever the layouts are (`demands`), and *removed* when no file claims it any more, here or in another file. A claim
that is new or changed is asked too: one that is false protects nothing. Equal text on both sides is not asked again:
the same tool gives the same answer.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from layoutproof.compiler.tracing import NOT_TRACED
from layoutproof.core import problems as core_problems
from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.finding import Finding, unknown, wrong_input
from layoutproof.core.message import extended, listing
from layoutproof.core.result import Verdict, plain
from layoutproof.gating import problems
from layoutproof.gating.classes import layouts, text_of
from layoutproof.gating.demands import assumed, difference
from layoutproof.gating.kernel_regressions import broken
from layoutproof.gating.matching import Round, match
from layoutproof.kernel.table_assumptions import relations_said, tables_said
from layoutproof.programs.record import Record
from layoutproof.registry.read import read_layout
from layoutproof.specs.check import Outcome, run
from layoutproof.specs.positions import Node, read_yaml
from layoutproof.specs.spec import Check, named_layouts, read_spec
from layoutproof.specs.spec_model import NAME, KernelModel, ProgramModel
from layoutproof.specs.traced import KEY, is_traced
from layoutproof.specs.validation import Model, fits

if TYPE_CHECKING:
    from layoutproof.gating.traced_bodies import BodyDigest
    from layoutproof.programs.functions import Kept

PROGRAM = "program"
"""The key of what is no layout but a program's entry."""


@dataclass(frozen=True, slots=True)
class Named:
    """A layout that a spec file names."""

    name: str
    value: object
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Claimed:
    """A check of a spec file. verdict: by a lock file, "" where it has to be asked."""

    check: Check
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class ReadSpec:
    """A spec file as far as it could be read.

    gate: its own rules as plain data, None where it has none.  traced: Pallas calls of user code that it names.
    programs: that it names, as its entries say.  records: of a lock file, the old ones, by name.
    bodies: of a lock file, the old bodies of traced calls, by `entry:call`.
    values: of a lock file, the old values of programs with a claim on them, by name.
    """

    file: str
    layouts: tuple[Named, ...] = ()
    claims: tuple[Claimed, ...] = ()
    errors: tuple[LayoutError, ...] = ()
    gate: object = None
    traced: tuple[Named, ...] = ()
    programs: tuple[Named, ...] = ()
    records: Mapping[str, Record] = field(default_factory=dict)
    bodies: Mapping[str, BodyDigest] = field(default_factory=dict)
    values: Mapping[str, Kept] = field(default_factory=dict)


def read(data: bytes, file: str) -> ReadSpec:
    """A spec file from its bytes; mistakes are collected, none is raised."""
    try:
        root = read_yaml(data.decode("utf-8-sig"), file)
    except UnicodeDecodeError as error:
        return ReadSpec(file, errors=(LayoutError(core_problems.NOT_UTF8(data[error.start]), file=file, line=1),))
    except LayoutError as error:
        return ReadSpec(file, errors=(error,))
    gate = None
    if type(root.value) is dict and "gate" in root.value:
        # the rules of the gate are read by `policy`
        gate = root.value["gate"].plain()
        keys = {k: v for k, v in (root.keys or {}).items() if k != "gate"}
        root = root._replace(value={k: v for k, v in root.value.items() if k != "gate"}, keys=keys)
    checks, errors = read_spec(root, file)
    traced = _entries(root, "kernels", KEY, KernelModel)
    programs = _entries(root, "programs", PROGRAM, ProgramModel)
    return ReadSpec(file, _named(root, "layouts"), tuple(map(Claimed, checks)), tuple(errors), gate, traced, programs)


@dataclass(frozen=True, slots=True)
class Loose:
    """A part that only one state of a file has, with its finding unless another file has it in the other state."""

    what: Named | Claimed
    finding: Finding


@dataclass(frozen=True, slots=True)
class SpecChanges:
    """The changes in one file. gone, fresh: parts that only the old and only the new state has."""

    findings: tuple[Finding, ...] = ()
    gone: tuple[Loose, ...] = ()
    fresh: tuple[Loose, ...] = ()

    def all(self) -> list[Finding]:
        """Every finding, removed parts last."""
        return [*self.findings, *(each.finding for each in (*self.fresh, *self.gone))]


def compare(old: ReadSpec | None, new: ReadSpec | None, relpath: str) -> SpecChanges:
    """The changes in one file, in its order; None where a state lacks the file."""
    before, after = old or ReadSpec(relpath), new or ReadSpec(relpath)
    found = [_mistake(error) for error in after.errors]
    if before.errors is not after.errors:
        # the parts of a broken file are unknown, and so are the removed ones
        found += [replace(_mistake(error), subject="old spec file", file=before.file) for error in before.errors]
    if after.errors and not (after.layouts or after.claims or after.traced or after.programs):
        # nothing of it could be read, which says nothing about what was removed
        return SpecChanges(tuple(replace(finding, relpath=relpath, file=after.file) for finding in found))
    named, renamed = _things(before, after)
    claims = _claims(before, after, renamed)
    return SpecChanges(
        tuple(_placed([*found, *named.findings, *claims.findings], relpath, after.file)),
        _loose([*named.gone, *claims.gone], relpath, after.file),
        _loose([*named.fresh, *claims.fresh], relpath, after.file),
    )


def _things(before: ReadSpec, after: ReadSpec) -> tuple[SpecChanges, dict[str, str]]:
    """(What changed of all that a file names, the new names by the old ones)."""
    found, gone, fresh = list[Finding](), list[Loose](), list[Loose]()
    renamed: dict[str, str] = {}
    expected = _expected_of(after.claims)
    for section in ("layouts", "traced", "programs"):
        for pair in match(getattr(before, section), getattr(after, section), _NAMES):
            if pair.new is None and pair.old is not None:
                gone.append(Loose(pair.old, _gone_layout(pair.old, before.file)))
            elif pair.old is None and pair.new is not None:
                fresh.append(Loose(pair.new, _new_layout(pair.new, expected.get(_json(pair.new.value), ()))))
            elif pair.old is not None and pair.new is not None:
                renamed[pair.old.name] = pair.new.name
                found += _layout(pair.old, pair.new, pair.match_heuristic)
    return SpecChanges(tuple(found), tuple(gone), tuple(fresh)), renamed


def _claims(before: ReadSpec, after: ReadSpec, renamed: Mapping[str, str]) -> SpecChanges:
    """The changes of the claims. renamed: the new names of layouts by the old ones."""
    found, gone, fresh = list[Finding](), list[Loose](), list[Loose]()
    matched = match([_about(c, renamed) for c in before.claims], [_about(c, {}) for c in after.claims], _CLAIMS)
    kept = [m.new.claimed.check for m in matched if m.new is not None]
    for claim in matched:
        one, other = (None if side is None else side.claimed for side in (claim.old, claim.new))
        if one is not None and other is not None:
            changes = _claim(one, other, claim.match_heuristic)
            if claim.match_heuristic and any(f.question == "reshaped" for f in changes):
                fresh.append(Loose(other, _new_claim(other)))  # a heuristic that matched two claims of different things
            else:
                found += changes
                continue
        elif other is not None:
            fresh.append(Loose(other, _new_claim(other)))
        if one is not None:
            said = next((c for c in kept if _says_as_much(one.check, c)), None)
            gone.append(Loose(one, _gone_claim(one, before.file, said)))
    return SpecChanges(tuple(found), tuple(gone), tuple(fresh))


def moved(gone: Sequence[tuple[str, Loose]], fresh: Sequence[tuple[str, Loose]]) -> list[tuple[Loose, Loose, Finding]]:
    """The parts that moved between files, equal or as a claim that is at least as strong: (gone, fresh, finding).

    gone, fresh: with the path of their file.
    """
    rounds: list[Round[tuple[str, Loose]]] = [
        Round(lambda each: _identity(each[1].what, whole=True), alike=True),
        Round(lambda each: _identity(each[1].what, whole=False), alike=True),
    ]
    found = []
    once: dict[str, tuple[Loose, Finding]] = {}
    left: list[Loose] = []
    for pair in match(gone, fresh, rounds):
        if pair.old is None or pair.new is None:
            left += [pair.old[1]] if pair.old is not None else []
            continue
        (relpath, old), (_, new) = pair.old, pair.new
        if isinstance(old.what, Claimed) and not _says_as_much(old.what.check, new.what.check, named=False):  # type: ignore[union-attr]
            continue
        why = problems.MOVED_HERE(relpath)
        by: dict[str, Any] = {"before": old.finding.before, "after": new.finding.after, "decided_by": "the same text"}
        same = _identity(old.what, whole=True) == _identity(new.what, whole=True)
        same = same and not (isinstance(new.what, Claimed) and about_code(new.what.check))
        if same or isinstance(new.what, Named) or new.finding.question == "added":
            said = replace(
                new.finding,
                question="respelled",
                reason=why,
                verdict=Verdict.REFUTED,
                bad_input=False,
                counterexample=None,
                **by,
            )
        else:
            said = new.finding  # it demands more than it did, and that is false
        found.append((old, new, said))
        once[_identity(new.what, whole=True)] = (new, said)
    # one of two equal statements in two files may go
    twice = ((old, once.get(_identity(old.what, whole=True))) for old in left)
    return [*found, *((old, *other) for old, other in twice if other is not None)]


def copied(gone: Sequence[tuple[str, Loose]], fresh: Sequence[tuple[str, Loose]]) -> list[tuple[Loose, Finding]]:
    """Kernels that are stated once more than before: their violations were there before, in the remaining file."""
    known = {_identity(each.what, whole=False): relpath for relpath, each in gone if isinstance(each.what, Named)}
    found = []
    for _, each in fresh:
        relpath = known.get(_identity(each.what, whole=False))
        if relpath is not None and each.finding.question in ("refuted", "unknown"):
            why = problems.STATED_ELSEWHERE(relpath)
            plain_ = replace(
                each.finding, question="added", reason=why, verdict=Verdict.REFUTED, counterexample=None, decided_by=""
            )
            found.append((each, plain_))
    return found


def _identity(what: Named | Claimed, whole: bool) -> str:
    """The key by which parts of different files are equal; with `whole`, their names and demands too."""
    if isinstance(what, Named):
        return _json(["layout", *([what.name] if whole else []), what.value])
    check = what.check
    rest = [check.labels, check.name, *_asked(check), *_expected(check)] if whole else []
    return _json(["claim", check.kind, plain(check.layouts), *rest])


def _says_as_much(old: Check, new: Check, named: bool = True) -> bool:
    """Whether a claim of the same layouts demands at least what another does. named: under the same names."""
    alike = old.kind == new.kind and (old.labels == new.labels or not named)
    return alike and plain(old.layouts) == plain(new.layouts) and difference(old, new).harmless


@dataclass(frozen=True, slots=True)
class _About:
    """A claim, and the names of the layouts that it is about as the new state has them; "" for a text."""

    claimed: Claimed
    names: tuple[str, ...]

    @property
    def check(self) -> Check:
        return self.claimed.check


def _about(claimed: Claimed, renamed: Mapping[str, str]) -> _About:
    check = claimed.check
    names = []
    for label, layout in zip(check.labels, check.layouts, strict=False):
        name, bracket, call = label.partition("[") if is_traced(layout) else (label, "", "")
        names.append(renamed.get(name, name) + bracket + call if NAME.fullmatch(name) else "")
    return _About(claimed, tuple(names))


_NAMES: list[Round[Named]] = [
    Round(lambda named: named.name),
    Round(lambda named: _json(named.value), match_heuristic="by its text: the name is new", ordered=False),
]
_CLAIMS: list[Round[_About]] = [
    Round(lambda c: _json([c.check.kind, c.check.name, c.names, _texts(c), *_asked(c.check), *_expected(c.check)])),
    Round(lambda c: _json([c.check.kind, c.names, _texts(c), *_asked(c.check), *_expected(c.check)])),
    Round(lambda c: _json([c.check.kind, c.check.name, c.names]) if c.check.name else None, ordered=False),
    Round(lambda c: _json([c.check.kind, c.names, _texts(c), *_asked(c.check)])),
    Round(lambda c: _json([c.check.kind, c.names, _texts(c)])),
    Round(
        lambda c: None if c.check.is_fact or any(c.names) else c.check.kind,
        match_heuristic="by its property: the layout is new",
    ),
]


def _texts(about: _About) -> list[object]:
    """The layouts that a claim writes out itself."""
    parts = zip(about.names, about.check.layouts, strict=False)
    return [plain(layout) for name, layout in parts if not name]


def _gone_layout(old: Named, file: str) -> Finding:
    what = "the Pallas calls are" if is_traced(old.value) else "it is"
    gone = Finding("removed", _called(old), problems.NO_LONGER_NAMED(what), before=text_of(old.value))
    return replace(gone, file=file, line=old.line, column=old.column)


def _new_layout(new: Named, expected: Collection[tuple[str, str]]) -> Finding:
    at: dict[str, Any] = {"line": new.line, "column": new.column, "after": text_of(new.value)}
    wrong = broken(None, new.value, expected) if not is_program(new.value) else []
    worst = next((f for f in wrong if f.verdict is not Verdict.UNKNOWN), next(iter(wrong), None))
    if worst is not None:
        return replace(worst, subject=_called(new), **at)
    return Finding("added", _called(new), problems.NOT_NAMED_BEFORE(), **at)


def _expected_of(claims: Sequence[Claimed]) -> dict[str, set[tuple[str, str]]]:
    """The refutations and unknowns that a file itself expects, by the layout: (property, verdict)."""
    found: dict[str, set[tuple[str, str]]] = {}
    for claim in claims:
        if claim.check.expect not in _HOPED:
            for layout in claim.check.layouts:
                found.setdefault(_json(layout), set()).add((claim.check.kind, claim.check.expect))
    return found


def _called(named: Named) -> str:
    what = "kernel" if is_traced(named.value) else "program" if is_program(named.value) else "layout"
    return f"{what} {named.name}"


def is_program(value: object) -> bool:
    """Whether an entry of a spec file is a program."""
    return type(value) is dict and [*value] == [PROGRAM]


def _layout(old: Named, new: Named, match_heuristic: str) -> list[Finding]:
    at: dict[str, Any] = {"line": new.line, "column": new.column}
    subject = _called(new) if old.name == new.name else f"{_called(new)}, before {old.name}"
    if is_program(new.value):
        found = _redefined(old, new)
    else:
        found = _traced(old, new) if is_traced(old.value) and is_traced(new.value) else _classes(old.value, new.value)
    if old.name != new.name:
        sides: dict[str, Any] = {"before": text_of(old.value), "after": text_of(new.value)}
        found = found or [Finding("respelled", "", problems.RENAMED(), decided_by="the same text", **sides)]
    return [replace(f, subject=subject, match_heuristic=match_heuristic, **at) for f in found]


def _traced(old: Named, new: Named) -> list[Finding]:
    """Changes in how Pallas calls of user code are traced; `layoutproof.lock` records what the code does."""
    was, now = (dict(side.value[KEY]) for side in (old, new))  # type: ignore[index]
    found = []
    try:
        said = [side.pop("assume", ()) for side in (was, now)]
        tables = assumed(*map(tables_said, said))
        before, after = map(relations_said, said)
    except LayoutError as error:
        return [wrong_input("", error.problem)]
    sides: dict[str, Any] = {"before": text_of(old.value[KEY]), "after": text_of(new.value[KEY])}  # type: ignore[index]
    looser = [*tables.looser, *(problems.ASSUMED_TOO(text) for text in after if text not in before)]
    looser += [
        problems.VALUE_CHANGED(key, text_of(was[key]), text_of(now.get(key, "none")))
        for key in ("target", "compiler", "call")
        if key in was and was.get(key) != now.get(key)
    ]
    if "call" in now and "call" not in was:
        looser.append(problems.ONE_CALL_MEANT(now["call"]))
    tighter = [
        *tables.tighter,
        *(problems.ASSUMED_NO_MORE(text) for text in before if text not in after),
        *(problems.VALUE_GIVEN(key, now[key]) for key in ("target", "compiler") if key in now and key not in was),
    ]
    if looser:
        found.append(Finding("loosened", "", listing(looser), **sides))
    elif tighter:
        found.append(Finding("tightened", "", listing(tighter), **sides))
    rest = [key for key in ("trace", "args", "kwargs") if was.get(key) != now.get(key)]
    if rest:
        why = listing(
            [problems.VALUE_CHANGED(key, text_of(was.get(key, "none")), text_of(now.get(key, "none"))) for key in rest]
        )
        found.append(Finding("kernel", "", why, **sides))
    return found


def _redefined(old: Named, new: Named) -> list[Finding]:
    """Changes in how programs are compiled, by the entries alone."""
    was, now = (dict(side.value[PROGRAM]) for side in (old, new))  # type: ignore[index]
    sides: dict[str, Any] = {"before": text_of(was), "after": text_of(now)}
    differ = sorted(key for key in {*was, *now} - {"seconds"} if was.get(key) != now.get(key))
    said = [problems.VALUE_CHANGED(key, text_of(was.get(key, "none")), text_of(now.get(key, "none"))) for key in differ]
    if not said:
        return []
    # for other hardware a bound says another thing
    kind = "loosened" if {"target", "topology", "mesh", "flags", "libtpu"} & {*differ} else "program"
    return [Finding(kind, "", "; ".join(said), **sides)]


def _classes(old: object, new: object) -> list[Finding]:
    """The classes of one change, also where one side is no layout; of kernels, newly broken rules, too."""
    if plain(old) == plain(new):
        return []
    sides: dict[str, Any] = {"before": text_of(old), "after": text_of(new)}
    try:
        read_layout(new)
    except LayoutError as error:
        return [unknown("", problems.UNREADABLE(error.problem), **sides)]
    except Undecided as why:
        return [unknown("", str(why), **sides)]
    try:
        read_layout(old)
    except Undecided as why:
        return [unknown("", problems.OLD_NOT_COMPARED(why), **sides)]
    except LayoutError as error:
        return [Finding("added", "", problems.OLD_NO_LAYOUT(error.problem), **sides)]
    return [*layouts(old, new), *(replace(f, **sides) for f in broken(old, new))]


def _gone_claim(old: Claimed, file: str, said: Check | None) -> Finding:
    check = old.check
    at: dict[str, Any] = {"file": file, "line": check.line, "column": check.column, "before": _layouts(check)}
    if said is not None:
        why = problems.SAID_ELSEWHERE(_subject(said), said.line)
        return Finding("respelled", _subject(check), why, decided_by="the same text", **at)
    return Finding("removed", _subject(check), problems.CLAIM_GONE(_claimed(check)), **at)


def _new_claim(new: Claimed) -> Finding:
    """A new claim, which is checked: a claim that is not checked protects nothing."""
    check = new.check
    at: dict[str, Any] = {"line": check.line, "column": check.column, "after": _layouts(check)}
    wrong = _unless_as_expected(run(check), at)
    return Finding("added", _subject(check), problems.CLAIM_NEW(), **at) if wrong is None else wrong


def _unless_as_expected(outcome: Outcome, at: Mapping[str, object]) -> Finding | None:
    """The finding of a new or changed claim that is not what it says; None where all is as expected."""
    assert outcome.check is not None
    if outcome.held:
        return None
    result = outcome.answer
    more: dict[str, Any] = {**at, **{name: getattr(outcome.finding, name) for name in _ADVICE}}
    if result is not None:
        more |= {"counterexample": result.counterexample, "decided_by": result.decided_by}
    subject, why = _subject(outcome.check), f"{_claimed(outcome.check)}: {outcome.found}"
    why = extended(why, f": {_why(outcome)}" if _why(outcome) else "")
    if outcome.finding.bad_input:
        return wrong_input(subject, why, **more)
    if outcome.finding.verdict is Verdict.UNKNOWN:
        return unknown(subject, why, **more)
    return Finding("refuted", subject, why, **more)


def _claim(before: Claimed, after: Claimed, match_heuristic: str) -> list[Finding]:
    old, new = before.check, after.check
    at: dict[str, Any] = {
        "subject": _subject(new),
        "match_heuristic": match_heuristic,
        "line": new.line,
        "column": new.column,
    }
    if _same(old, new) and not (before.verdict or about_code(new)):
        return []
    found: list[Finding] = []
    for one, other, label in zip(old.layouts, new.layouts, new.labels, strict=False):
        if not NAME.fullmatch(label) and not old.is_fact and not is_traced(other):
            found += _classes(one, other)  # a named layout is compared where it is named
    return [replace(f, **at) for f in [*found, *_demanded(old, new), *_verdicts(before, new)]]


def _demanded(old: Check, new: Check) -> list[Finding]:
    """Whether the new claim demands less than the old one, or more."""
    than = difference(old, new)
    sides: dict[str, Any] = {"before": f"{_layouts(old)} {_claimed(old)}", "after": f"{_layouts(new)} {_claimed(new)}"}
    if than.looser:
        return [Finding("loosened", "", "; ".join((*than.looser, *than.unknown)), counterexample=than.point, **sides)]
    if than.unknown:
        return [unknown("", "; ".join(than.unknown), **sides)]
    return [Finding("tightened", "", "; ".join(than.tighter), **sides)] if than.tighter else []


def _verdicts(claimed: Claimed, new: Check) -> list[Finding]:
    """Whether the old claim still holds of the new layouts, and whether the new one holds at all."""
    old = claimed.check
    sides: dict[str, Any] = {"before": _layouts(old), "after": _layouts(new)}
    if about_code(new) and not claimed.verdict:
        # the old code is not run, so the claim has to hold of the new one
        return _wrong(new, sides)
    first = None if claimed.verdict else run(old)
    was = claimed.verdict if first is None else first.found
    outcome = run(replace(old, layouts=new.layouts, labels=new.labels))
    if about_code(new) and outcome.finding.reason.startswith(NOT_TRACED):
        return []  # the finding on the code itself says so, once
    now, result = outcome.found, outcome.answer
    by = result.decided_by if result is not None else ""
    hoped = old.expect in _HOPED
    if hoped and outcome.held and (was, now) == ("proved", "sampled"):
        # the file asks for no more than sampled, which it still is
        why = problems.CLAIM_VERDICT(_claimed(old), was, now)
        unchanged = [*_asked(old), *_expected(old)] == [*_asked(new), *_expected(new)]
        return [Finding("weakened", "", why, decided_by=by, **sides), *([] if unchanged else _wrong(new, sides))]
    proved = _WORTH.get(now, 0) >= _WORTH.get(was, 0) and (outcome.held or not hoped)
    if was in _WORTH and (first is None or first.held or not hoped) and not proved:
        return [_lost(problems.CLAIM_VERDICT(_claimed(old), was, now), outcome, sides)]
    if _WORTH.get(now, 0) > _WORTH.get(was, 0):
        return [Finding("gained", "", problems.CLAIM_VERDICT(_claimed(old), was, now), decided_by=by, **sides)]
    if first is not None and not first.held:
        return []  # it was wrong before this change, which `check` says
    return _wrong(new, sides)


def _wrong(new: Check, at: Mapping[str, object]) -> list[Finding]:
    """The new claim, asked; nothing where all is as expected."""
    wrong = _unless_as_expected(run(new), at)
    return [] if wrong is None else [wrong]


def _lost(why: str, outcome: Outcome, sides: Mapping[str, Any]) -> Finding:
    """The finding of a claim that no longer holds."""
    why = extended(why, f": {_why(outcome)}" if _why(outcome) else "")
    more: dict[str, Any] = {name: getattr(outcome.finding, name) for name in _ADVICE}
    more["verdict"] = Verdict.UNKNOWN if outcome.found == "unknown" else Verdict.REFUTED
    if outcome.answer is not None:
        more |= {"counterexample": outcome.answer.counterexample, "decided_by": outcome.answer.decided_by}
    return Finding("lost", "", why, **sides, **more)


def about_code(check: Check) -> bool:
    """Whether a claim is about what user code does, which may change while the file stays the same."""
    return check.is_of_program or any(map(is_traced, check.layouts))


_ADVICE = ("fix", "hint", "needs", "where")
"""What an answer says to do."""
_HOPED = ("proved", "sampled")
"""The default expectation of a claim."""
_WORTH = {"sampled": 1, "proved": 2, "holds": 2}
"""The rank of verdicts and expectations: a claim is lost when it is no longer proved, or no longer sampled."""


def _why(outcome: Outcome) -> str:
    return outcome.finding.reason or (outcome.answer.reason if outcome.answer is not None else "")


def _same(old: Check, new: Check) -> bool:
    parts = ((_json([plain(c.layouts), *_asked(c), *_expected(c)])) for c in (old, new))
    return len(set(parts)) == 1


def _asked(check: Check) -> list[object]:
    return [plain(check.options), plain(check.fact)]


def _expected(check: Check) -> list[object]:
    return [check.expect, plain(check.counterexample), plain(check.figures), check.reason]


def _claimed(check: Check) -> str:
    """A claim without its layouts, e.g. `padding at_most 40%`."""
    said = {} if check.expect in _HOPED else {"expect": check.expect}
    asked = {**check.options, **check.fact, **said}
    return " ".join([check.kind, *(f"{name} {text_of(plain(value))}" for name, value in asked.items())])


def _placed(findings: Sequence[Finding], relpath: str, file: str) -> list[Finding]:
    return [replace(finding, relpath=relpath, file=finding.file or file) for finding in findings]


def _loose(each: Sequence[Loose], relpath: str, file: str) -> tuple[Loose, ...]:
    return tuple(replace(one, finding=_placed([one.finding], relpath, file)[0]) for one in each)


def _subject(check: Check) -> str:
    return f"{'fact' if check.is_fact else 'claim'} {check.kind} {check.name or ' , '.join(check.labels)}"


def _layouts(check: Check) -> str:
    return " , ".join(text_of(layout) for layout in check.layouts)


def _named(root: Node, section: str) -> tuple[Named, ...]:
    node = root.value.get(section) if type(root.value) is dict else None
    if node is None or type(node.value) is not dict:
        return ()
    found = named_layouts(root, "")[0] if section == "layouts" else {}
    return tuple(
        Named(name, found.get(name, value.plain()), value.line, value.column) for name, value in node.value.items()
    )


def _entries(root: Node, section: str, key: str, model: type[Model]) -> tuple[Named, ...]:
    """The entry of a section for each name; empty where it does not fit the model, which is a mistake in the file."""
    return tuple(
        replace(each, value={key: each.value if fits(model, each.value) else {}}) for each in _named(root, section)
    )


def _mistake(error: LayoutError) -> Finding:
    why = extended(error.problem, f"; in {error.text}" if error.text else "")
    return wrong_input("spec file", why, line=error.line or 0, column=error.column or 0)


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)
