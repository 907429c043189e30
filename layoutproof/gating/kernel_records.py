"""Changes between two files of records (`kernels --record`): the calls, their windows, and their bodies.

Calls are matched by the names of their kernels. Every property of kernels is asked of both, those about the body too,
and what is refuted or unknown now and was not before is a finding. Lines of the user's program are no part of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from layoutproof.core import problems as core_problems
from layoutproof.core.finding import Finding, unknown
from layoutproof.core.message import extended
from layoutproof.core.result import Verdict
from layoutproof.gating import problems
from layoutproof.gating.functions import SAME, UNKNOWN, of_computed
from layoutproof.gating.kernel_regressions import answers, bodies_in_words, worse
from layoutproof.gating.kernels import kernels
from layoutproof.gating.matching import Round, match
from layoutproof.gating.states import File
from layoutproof.kernel.kernel import Kernel, Unmodelled
from layoutproof.kernel.kernel_print import mapping_of
from layoutproof.pallas.judge import about_body
from layoutproof.pallas.records import KernelRecord, plain, records_in
from layoutproof.pallas.spec_text import not_serialisable
from layoutproof.programs.two_kernels import computed

Layouts = Callable[[object, object], list[Finding]]


def compare(old: File | None, new: File | None, relpath: str, layouts: Layouts) -> list[Finding]:
    """The findings of one file; None where a state lacks it. layouts: the classes of the change of one operand.

    Raises LayoutError for what is no file of records.
    """
    before, after = (
        () if f is None else records_in(f.data.decode("utf-8", "replace").splitlines(), f.path) for f in (old, new)
    )
    rounds: list[Round[KernelRecord]] = [
        Round(lambda r: (str(_said(r)), r.body), alike=True),
        Round(lambda r: r.call.name),
    ]
    found: list[Finding] = []
    for pair in match(before, after, rounds):
        at: dict[str, Any] = {"match_heuristic": pair.match_heuristic, "line": pair.new.line if pair.new else 1}
        subject = f"kernel {(pair.new or pair.old).call.name}"  # type: ignore[union-attr]
        changes = _changes(pair.old, pair.new, layouts)
        found += [replace(each, subject=subject, **at) for each in changes]
    path = (new or old).path  # type: ignore[union-attr]
    return [replace(each, relpath=relpath, file=path) for each in found]


def _changes(old: KernelRecord | None, new: KernelRecord | None, layouts: Layouts) -> list[Finding]:
    if new is None:
        return [Finding("removed", "", problems.NOT_RECORDED())]
    after = new.call
    if isinstance(after, Unmodelled):
        same = old is not None and isinstance(old.call, Unmodelled)
        return [] if same else [unknown("", core_problems.NOT_MODELLED(after.reason))]
    now = answers(after)
    if old is None or isinstance(old.call, Unmodelled):
        return [Finding("added", "", problems.RECORDED_NEWLY()), *worse({}, now)]
    before = old.call
    if _said(old) == _said(new) and old.body == new.body:
        return []
    then = answers(before)
    found = _around(before, after, layouts) if _said(old) != _said(new) else []
    if old.body != new.body:
        words = bodies_in_words(*({k[0]: f.verdict.value for k, f in side.items() if _open(f)} for side in (then, now)))
        same_grid = "grid and blocks are as before, and " if not found else ""
        found.append(Finding("kernel_body", "", f"{same_grid}the body is another: {words}"))
    values = of_computed(computed(old, new), asked=False).found
    assert values is not None
    return [*_by_values(values, found), *worse(then, now)]


def _by_values(values: Finding, found: Sequence[Finding]) -> list[Finding]:
    """The comparison of values, with the change of the body below it, which is the same difference."""
    body = [each for each in found if each.question == "kernel_body"]
    others = [each for each in found if each.question != "kernel_body"]
    if values.question != UNKNOWN:
        if others and values.before and values.before == values.after:
            values = _beside(values, others)
        severity = "allow" if values.question == SAME else values.severity
        return [*others, replace(values, follows=tuple(replace(each, severity=severity) for each in body))]
    why = problems.VALUES_NOT_COMPARED(values.reason)
    said = [replace(each, reason=extended(each.reason, f"; {why}")) for each in body]
    return [*others, *(said or [replace(values, reason=why)])]


def _beside(values: Finding, found: Sequence[Finding]) -> Finding:
    """A difference of values where the bodies are the same, which both sides name, with what is around them."""
    sides = [(each.before, each.after) if each.before != each.after else ("", each.reason) for each in found]
    before, after = ("; ".join(filter(None, (values.before, *side))) for side in zip(*sides, strict=True))
    return replace(values, before=before, after=after)


def _open(found: Finding) -> bool:
    return about_body(found.question) and found.verdict is not Verdict.PROVED


def _around(old: Kernel, new: Kernel, layouts: Layouts) -> list[Finding]:
    """The changes of everything but the body."""
    if not_serialisable(old) or not_serialisable(new):
        one, other = plain(old), plain(new)
        names = [name for name in dict.fromkeys((*one, *other)) if one.get(name) != other.get(name)]
        return [Finding("kernel", "", f"another {', '.join(names)}", before=str(old), after=str(new))]
    changes: Sequence[Finding] = kernels({"kernel": mapping_of(old)}, {"kernel": mapping_of(new)}, layouts)
    return [each for each in changes if each.question != "respelled"]


def _said(record: KernelRecord) -> Any:
    """A call without the places in the user's program."""
    return unplaced(plain(record.call))


def unplaced(value: Any) -> Any:
    """A call's data without the places in the user's program, which say nothing of what it does."""
    if isinstance(value, dict):
        return {name: unplaced(each) for name, each in value.items() if name != "source"}
    return [unplaced(each) for each in value] if isinstance(value, list) else value
