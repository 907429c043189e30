"""Which changes are allowed, and who approved which.

In `[tool.layoutproof.gate]` of pyproject.toml, or under `gate:` in a spec file for what is in that file:

    moved = "deny"                        allow, warn or deny
    grew = "warn, deny above 2%"          with a bound: a share of the bytes before, or an amount such as 4 MiB
    [[tool.layoutproof.gate.approvals]]   one finding by its fingerprint, by whom it concerns, for a time
    fingerprint = "0123456789abcdef"
    reason = "measured: 3 % slower, fits now"
    by = "a person"                       who answers for it; may be left out
    until = 2027-01-31                    at most 180 days from the day of the run

The rules of the old state judge: a change cannot loosen the rules that judge it. An approval that the
change itself adds counts only where the run accepts approvals, and is a finding of its own, `approval_added`.
An unknown is no matter of policy: it is never allowed and cannot be approved.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.finding import SEVERITIES, Finding
from layoutproof.core.fingerprint import FORM
from layoutproof.core.result import Verdict, plain
from layoutproof.core.visible import visible
from layoutproof.gating import problems

DEFAULTS = {
    "respelled": "allow",
    "same_bytes": "allow",
    "moved": "deny",
    "grew": "warn",
    "shrank": "allow",
    "reshaped": "warn",
    "resharded": "deny",
    "lost": "deny",
    "weakened": "warn",
    "gained": "allow",
    "refuted": "deny",
    "loosened": "deny",
    "tightened": "allow",
    "added": "allow",
    "removed": "deny",
    "memory_space": "deny",
    "faster_memory": "allow",
    "abi": "deny",
    "relaid_parameter": "deny",
    "new_copy": "deny",
    "vanished_copy": "allow",
    "bitcast_refuted": "deny",
    "reordered": "warn",
    "contradiction": "deny",
    "devices": "deny",
    "unscheduled": "deny",
    "lost_donation": "deny",
    "new_donation": "warn",
    "new_collective": "deny",
    "grown_collective": "deny",
    "shrunk_collective": "allow",
    "regrouped": "deny",
    "exchanged_collective": "warn",
    "vanished_collective": "allow",
    "lost_exchange": "deny",
    "custom_call": "deny",
    "vanished_call": "warn",
    "kernel_body": "warn",
    "reshaped_result": "deny",
    "operation": "deny",
    "operands": "deny",
    "computation_differs": "deny",
    "same_function": "allow",
    "other_function": "deny",
    "function_unknown": "allow",
    "peak_memory": "warn, deny above 2%",
    "temporaries": "warn",
    "replicated": "deny",
    "vmem": "warn",
    "estimated_cycles": "warn, deny above 5%",
    "constant": "warn",
    "kernel": "warn",
    "program": "warn",
    "policy": "deny",
    "lock": "deny",
}
"""The default decision on each class. `unknown`, `error` and `approval_added` are no matter of policy."""
APPROVED_DAYS = 90
MOST_DAYS = 180
"""An approval that lasts longer is rejected: it would never be reviewed."""
ACCEPT = "--accept-approvals"
_UNITS = {"bytes": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_STEP = re.compile(r"(allow|warn|deny)(?:\s+above\s+(\d{1,15}(?:\.\d{1,6})?)\s*(%|bytes|B|KiB|MiB|GiB))?")


@dataclass(frozen=True, slots=True)
class Threshold:
    """A severity from a bound on: `above` is None where there is none; unit "%" or bytes."""

    severity: str
    above: float | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's approval of one finding, until a day (inclusive). by: the person, "" = not named."""

    fingerprint: str
    reason: str
    until: datetime.date
    by: str = ""

    def __str__(self) -> str:
        return f"approved until {self.until}{f' by {self.by}' if self.by else ''}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Policy:
    """The decision on each class, and the approvals. Classes that are not named keep their default (`DEFAULTS`)."""

    steps: Mapping[str, tuple[Threshold, ...]] = field(default_factory=dict)
    approvals: tuple[Approval, ...] = ()

    def over(self, other: Policy) -> Policy:
        """This policy where it says something, the other one elsewhere."""
        return Policy({**other.steps, **self.steps}, (*other.approvals, *self.approvals))


def read(value: object, place: str) -> Policy:
    """A policy from a mapping; LayoutError names the place and what is wrong.

    >>> read({"grew": "warn, deny above 2%"}, "here").steps["grew"][1]
    Threshold(severity='deny', above=2.0, unit='%')
    """
    if not isinstance(value, Mapping):
        raise LayoutError(problems.RULES_FORM(place, _shown(value)))
    steps = {}
    for kind, text in value.items():
        if kind == "approvals":
            continue
        if kind not in DEFAULTS:
            raise LayoutError(problems.UNKNOWN_CLASS(place, _shown(kind), ", ".join(DEFAULTS)))
        steps[kind] = _steps(text, f"{place}: {kind}")
    approvals = value.get("approvals", [])
    if not isinstance(approvals, Sequence) or isinstance(approvals, str):
        raise LayoutError(problems.APPROVALS_FORM(place, _shown(approvals)))
    return Policy(steps, tuple(_approval(each, place) for each in approvals))


def judge(
    findings: Sequence[Finding],
    policies: Mapping[str, Policy],
    general: Policy,
    today: datetime.date,
    accept: bool = False,
) -> tuple[list[Finding], list[str]]:
    """The findings with their severities, and what is to be said of approvals: expired, too long, or of nothing.

    policies: of single files, over the general one.  accept: whether approvals that the change adds count; the
    policies then hold them. Unknowns and bad input stay denied. Only a rule of the user raises the severity
    of a warning, or of an allowed finding.
    """
    used: set[str] = set()
    idle: dict[str, str] = {}
    judged = []
    for finding in findings:
        policy = policies[finding.relpath].over(general) if finding.relpath in policies else general
        if finding.verdict is Verdict.UNKNOWN and finding.severity == "info":
            # no engine was asked about it: rules may raise its severity
            severity, said = _severity(finding, policy)
            judged.append(replace(finding, severity="info" if severity == "allow" else severity, policy=said))
            continue
        if finding.bad_input or finding.verdict is Verdict.UNKNOWN:
            judged.append(finding)
            continue
        if finding.question == "approval_added":
            judged.append(_added(finding, accept))
            continue
        severity, said = _severity(finding, policy)
        if finding.severity in SEVERITIES and finding.question not in policy.steps:
            severity = min(severity, finding.severity, key=SEVERITIES.index)
        mine = [a for a in policy.approvals if a.fingerprint == finding.fingerprint]
        good = [a for a in mine if 0 <= (a.until - today).days <= MOST_DAYS]
        used.update(a.fingerprint for a in mine)
        if good and (severity != "allow" or finding.follows):
            severity, said = "allow", str(good[0])
        elif mine and severity != "allow":
            idle[finding.fingerprint] = _why_idle(mine[0], today)
        judged.append(replace(finding, severity=severity, policy=said))
    everyone = [*general.approvals, *(a for p in policies.values() for a in p.approvals)]
    unused = {a.fingerprint: a for a in everyone if a.fingerprint not in used}
    notes = [*idle.values()]
    notes += [problems.APPROVAL_OF_NOTHING(a.fingerprint, a.reason) for a in unused.values()]
    return judged, notes


def approvals_added(
    before: Policy, after: Policy, found: Mapping[str, Finding], file: str, today: datetime.date
) -> tuple[list[Approval], list[Finding]]:
    """The approvals that a change adds or makes longer, and a finding for each: who, what, until.

    found: the findings by fingerprint.  file: where the approvals are written.
    """
    added = [
        a
        for a in after.approvals
        if not any(b.fingerprint == a.fingerprint and b.until >= a.until for b in before.approvals)
    ]
    findings = []
    for each in added:
        of = found.get(each.fingerprint)
        what = f"{of.question} {of.subject} in {of.relpath}" if of is not None else "nothing that is found"
        why = f"{each.by or 'someone who is not named'} approves until {each.until} ({each.fingerprint}: {what}): "
        days = (each.until - today).days
        why += each.reason + ("" if days <= MOST_DAYS else f"; {_too_long(today)}")
        subject = f"approval {each.fingerprint}"
        sides: dict[str, Any] = {"after": str(each), "figures": {"days": days}}
        findings.append(Finding("approval_added", subject, why, file, file, **sides))
    return added, findings


def changed(before: Policy, after: Policy) -> tuple[list[str], list[str]]:
    """Where the new rules deny or warn less, and where more, class by class; nothing where only the words differ.

    Two rules are compared on every amount that a bound of either tells apart.

    >>> changed(read({"grew": "deny above 4 MiB"}, ""), read({"grew": "deny above 4096 KiB"}, ""))
    ([], [])
    >>> changed(read({}, ""), read({"grew": "deny above 2%"}, ""))[0]
    ['grew: warn before, deny above 2% now']
    """
    looser, tighter = [], []
    for kind in DEFAULTS:
        old, new = _steps_of(kind, before), _steps_of(kind, after)
        pairs = [tuple(SEVERITIES.index(_worst(s, at)[0]) for s in (old, new)) for at in _amounts(kind, (*old, *new))]
        said = f"{kind}: {_words(old)} before, {_words(new)} now"
        if any(now < then for then, now in pairs):
            looser.append(said)
        elif any(now > then for then, now in pairs):
            tighter.append(said)
    return looser, tighter


def approval_snippet(finding: Finding, today: datetime.date, by: str = "") -> str:
    """The text to paste into pyproject.toml to approve one finding, its reason left blank. by: who approves."""
    until = today + datetime.timedelta(days=APPROVED_DAYS)
    about = f"# {finding.question}: {finding.subject} in {finding.relpath}: {shorten(finding.reason, 90)}"
    # a comment ends with its line, and what follows would be a rule
    lines = ["[[tool.layoutproof.gate.approvals]]", visible(about), f'fingerprint = "{finding.fingerprint}"']
    lines.append('reason = ""  # say why; an empty reason is refused')
    # JSON's texts are TOML's too
    return "\n".join([*lines, *([f"by = {json.dumps(by)}"] if by else []), f"until = {until}"])


def _added(finding: Finding, accept: bool) -> Finding:
    if finding.figures["days"] > MOST_DAYS:
        return replace(finding, severity="deny", policy=f"for more than {MOST_DAYS} days")
    if accept:
        return replace(finding, severity="allow", policy=f"accepted with {ACCEPT}")
    return replace(finding, severity="deny", policy=f"counts once it is in the old state, or with {ACCEPT}")


def _why_idle(approval: Approval, today: datetime.date) -> str:
    if approval.until < today:
        return problems.APPROVAL_EXPIRED(approval.fingerprint, approval.until, approval.reason)
    return problems.APPROVAL_NOT_COUNTED(approval.fingerprint, _too_long(today))


def _too_long(today: datetime.date) -> str:
    return problems.APPROVAL_TOO_LONG(MOST_DAYS, today + datetime.timedelta(days=MOST_DAYS))


def by_default(finding: Finding) -> str:
    """The default decision on a difference."""
    return _severity(finding, Policy())[0]


def _severity(finding: Finding, policy: Policy) -> tuple[str, str]:
    return _worst(_steps_of(finding.question, policy), finding)


def _steps_of(kind: str, policy: Policy) -> tuple[Threshold, ...]:
    own = policy.steps.get(kind)
    return own if own is not None else _steps(DEFAULTS.get(kind, "deny"), kind)


def _worst(steps: Sequence[Threshold], finding: Finding) -> tuple[str, str]:
    """The severity that applies, and the bound that says so."""
    best, said = "allow", ""
    for step in steps:
        if _applies(step, finding) and SEVERITIES.index(step.severity) >= SEVERITIES.index(best):
            best = step.severity
            said = f"{step.severity} above {step.above:g}{_spaced(step.unit)}" if step.above is not None else ""
    return best, said


def _amounts(kind: str, steps: Sequence[Threshold]) -> list[Finding]:
    """A finding on, between and beyond all bounds, in percent and in bytes, known and not."""
    shares = [step.above for step in steps if step.above is not None and step.unit == "%"]
    sizes = [step.above * _UNITS[step.unit] for step in steps if step.above is not None and step.unit != "%"]
    # bytes are whole: one more than a bound is beyond it
    percents = [{}, {"percent": 0.0}, *({"percent": p} for p in (*shares, *_between(sorted(shares))))]
    amounts = [{}, {"bytes": 0}, *({"bytes": int(b) + k} for b in sizes for k in (0, 1))]
    return [Finding(kind, "", "", figures={**p, **b}) for p in percents for b in amounts]


def _between(bounds: Sequence[float]) -> list[float]:
    nexts = [*bounds[1:], bounds[-1] + 2] if bounds else []
    return [(low + high) / 2 for low, high in zip(bounds, nexts, strict=True)]


def _words(steps: Sequence[Threshold]) -> str:
    shown = (
        f"{s.severity} above {s.above:g}{_spaced(s.unit).replace(' %', '%')}" if s.unit else s.severity for s in steps
    )
    return ", ".join(shown)


def _applies(step: Threshold, finding: Finding) -> bool:
    """Whether a step's bound is exceeded; where it is unknown by how much, it is."""
    if step.above is None:
        return True
    if step.unit == "%":
        percent = finding.figures.get("percent")
        return not isinstance(percent, int | float) or abs(percent) > step.above
    amount = finding.figures.get("bytes")
    if amount is None and "bytes_after" in finding.figures:
        before, after = finding.figures.get("bytes_before"), finding.figures["bytes_after"]
        amount = abs(after - before) if isinstance(before, int) and isinstance(after, int) else None
    return not isinstance(amount, int) or amount > step.above * _UNITS[step.unit]


def _steps(text: object, place: str) -> tuple[Threshold, ...]:
    if not isinstance(text, str):
        raise LayoutError(problems.SEVERITY_FORM(place, _shown(text)))
    steps = []
    for part in text.split(","):
        found = _STEP.fullmatch(part.strip())
        if found is None:
            wanted = "allow, warn or deny, or e.g. 'deny above 2%' or 'deny above 4 MiB'"
            raise LayoutError(problems.UNKNOWN_SEVERITY(place, shorten(part.strip(), 40), wanted))
        severity, amount, unit = found.groups()
        steps.append(Threshold(severity, None if amount is None else float(amount), unit or ""))
    return tuple(steps)


def _approval(value: object, place: str) -> Approval:
    wanted = {"fingerprint", "reason", "until"}
    if not isinstance(value, Mapping) or set(value) - {"by"} != wanted:
        have = "fingerprint, reason, until and perhaps by"
        raise LayoutError(problems.APPROVAL_FORM(place, have, _shown(value)))
    fingerprint, reason, until, by = value["fingerprint"], value["reason"], value["until"], value.get("by", "")
    if not isinstance(fingerprint, str) or not FORM.fullmatch(fingerprint):
        raise LayoutError(problems.FINGERPRINT_FORM(place, _shown(fingerprint)))
    if not isinstance(reason, str) or not reason.strip():
        raise LayoutError(problems.APPROVAL_WITHOUT_REASON(place, fingerprint))
    if not isinstance(by, str):
        raise LayoutError(problems.APPROVER_FORM(place, fingerprint, _shown(by)))
    day = _day(until, f"{place}: the approval {fingerprint}")
    return Approval(fingerprint, " ".join(reason.split()), day, " ".join(by.split()))


def _day(value: object, place: str) -> datetime.date:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return value
    try:
        if isinstance(value, str):
            return datetime.date.fromisoformat(value)
    except ValueError:
        pass
    raise LayoutError(problems.DAY_FORM(place, _shown(value)))


def _spaced(unit: str) -> str:
    return " %" if unit == "%" else f" {unit}"


def _shown(value: object) -> str:
    return shorten(repr(value) if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False), 60)
