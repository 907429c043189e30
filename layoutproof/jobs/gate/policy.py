"""Which changes are allowed, and who approved which.

In `[tool.layoutproof.gate]` of pyproject.toml, or under `gate:` in a spec file for what is in that file:

    moved = "deny"                        allow, warn or deny
    grew = "warn, deny above 2%"          with a bound: a share of the bytes before, or an amount such as 4 MiB
    [[tool.layoutproof.gate.approvals]]   one finding by its fingerprint, by whom it concerns, for a time
    fingerprint = "0123456789abcdef"
    reason = "measured: 3 % slower, fits now"
    until = 2027-01-31

What nobody could tell is not a matter of policy: it is never allowed and cannot be approved.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.jobs.formats import SEVERITIES, Finding
from layoutproof.jobs.gate.fingerprint import FORM

DEFAULTS = {
    "respelled": "allow",
    "same_bytes": "allow",
    "moved": "deny",
    "grew": "warn",
    "shrank": "allow",
    "reshaped": "warn",
    "resharded": "deny",
    "lost": "deny",
    "gained": "allow",
    "added": "allow",
    "removed": "warn",
    "memory_space": "warn",
    "abi": "deny",
    "relaid_parameter": "deny",
    "new_copy": "deny",
    "vanished_copy": "allow",
    "bitcast_refuted": "deny",
    "reordered": "warn",
    "contradiction": "deny",
    "kernel": "warn",
    "policy": "warn",
}
APPROVED_DAYS = 90
_UNITS = {"bytes": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_STEP = re.compile(r"(allow|warn|deny)(?:\s+above\s+(\d{1,15}(?:\.\d{1,6})?)\s*(%|bytes|B|KiB|MiB|GiB))?")


@dataclass(frozen=True, slots=True)
class Step:
    """A severity from a bound on: `above` is None where there is none; unit "%" or bytes."""

    severity: str
    above: float | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Approval:
    """Someone's word for one finding, until a day (that day included)."""

    fingerprint: str
    reason: str
    until: datetime.date


@dataclass(frozen=True, slots=True)
class Policy:
    """What is said of each class, and the approvals. Classes that are not named keep what `DEFAULTS` says."""

    steps: Mapping[str, tuple[Step, ...]] = field(default_factory=dict)
    approvals: tuple[Approval, ...] = ()

    def over(self, other: Policy) -> Policy:
        """This policy where it says something, the other one elsewhere."""
        return Policy({**other.steps, **self.steps}, (*other.approvals, *self.approvals))


def read(value: object, place: str) -> Policy:
    """A policy from a mapping; LayoutError names the place and what is wrong.

    >>> read({"grew": "warn, deny above 2%"}, "here").steps["grew"][1]
    Step(severity='deny', above=2.0, unit='%')
    """
    if not isinstance(value, Mapping):
        raise LayoutError(f"{place}: the gate's rules are a mapping from class to severity, not {_shown(value)}")
    steps = {}
    for kind, text in value.items():
        if kind == "approvals":
            continue
        if kind not in DEFAULTS:
            raise LayoutError(f"{place}: unknown class {_shown(kind)}; known: {', '.join(DEFAULTS)}, approvals")
        steps[kind] = _steps(text, f"{place}: {kind}")
    approvals = value.get("approvals", [])
    if not isinstance(approvals, Sequence) or isinstance(approvals, str):
        raise LayoutError(f"{place}: approvals is a list, not {_shown(approvals)}")
    return Policy(steps, tuple(_approval(each, place) for each in approvals))


def judge(
    findings: Sequence[Finding],
    policies: Mapping[str, Policy],
    general: Policy,
    today: datetime.date,
    before: tuple[Mapping[str, Policy], Policy] | None = None,
) -> tuple[list[Finding], list[str]]:
    """The findings with their severities, and what is to be said of approvals: expired, or of nothing.

    policies: of single units, over the general one.  before: both as they were in the old state, which judge a change
    of the rules: new rules cannot allow themselves. What nobody could tell and what is wrong input stays denied.
    """
    used: set[str] = set()
    expired: dict[str, Approval] = {}
    judged = []
    for finding in findings:
        if finding.error or finding.undecided:
            judged.append(finding)
            continue
        own, base = before if before is not None and finding.kind == "policy" else (policies, general)
        policy = own[finding.unit].over(base) if finding.unit in own else base
        severity, said = _severity(finding, policy)
        mine = [a for a in policy.approvals if a.fingerprint == finding.fingerprint]
        good = [a for a in mine if today <= a.until]
        used.update(a.fingerprint for a in mine)
        if good and severity != "allow":
            severity, said = "allow", f"approved until {good[0].until}: {good[0].reason}"
        elif mine and severity != "allow":
            expired[finding.fingerprint] = mine[0]
        judged.append(replace(finding, severity=severity, said=said))
    notes = [f"the approval {a.fingerprint} expired on {a.until}: {a.reason}" for a in expired.values()]
    everyone = [*general.approvals, *(a for p in policies.values() for a in p.approvals)]
    idle = {a.fingerprint: a for a in everyone if a.fingerprint not in used}
    notes += [f"the approval {a.fingerprint} is of nothing that is found: {a.reason}" for a in idle.values()]
    return judged, notes


def stanza(finding: Finding, today: datetime.date) -> str:
    """What to paste into pyproject.toml to approve one finding; a reason is left to be written."""
    until = today + datetime.timedelta(days=APPROVED_DAYS)
    about = f"# {finding.kind}: {finding.subject} in {finding.unit}: {shorten(finding.because, 90)}"
    # a comment ends with its line, and what follows would be a rule
    about = "".join([sign if sign.isprintable() else "?" for sign in about])
    lines = ["[[tool.layoutproof.gate.approvals]]", about, f'fingerprint = "{finding.fingerprint}"']
    return "\n".join([*lines, 'reason = ""  # say why; an empty reason is refused', f"until = {until}"])


def _severity(finding: Finding, policy: Policy) -> tuple[str, str]:
    own = policy.steps.get(finding.kind)
    steps = own if own is not None else _steps(DEFAULTS.get(finding.kind, "deny"), finding.kind)
    best, said = "allow", ""
    for step in steps:
        if _applies(step, finding) and SEVERITIES.index(step.severity) >= SEVERITIES.index(best):
            best = step.severity
            said = f"{step.severity} above {step.above:g}{_spaced(step.unit)}" if step.above is not None else ""
    return best, said


def _applies(step: Step, finding: Finding) -> bool:
    """Whether a step's bound is exceeded; where nobody knows by how much, it is."""
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


def _steps(text: object, place: str) -> tuple[Step, ...]:
    if not isinstance(text, str):
        raise LayoutError(f"{place}: a severity is a text such as 'warn, deny above 2%', not {_shown(text)}")
    steps = []
    for part in text.split(","):
        found = _STEP.fullmatch(part.strip())
        if found is None:
            wanted = "allow, warn or deny, or e.g. 'deny above 2%' or 'deny above 4 MiB'"
            raise LayoutError(f"{place}: {shorten(part.strip(), 40)!r} is no severity; write {wanted}")
        severity, amount, unit = found.groups()
        steps.append(Step(severity, None if amount is None else float(amount), unit or ""))
    return tuple(steps)


def _approval(value: object, place: str) -> Approval:
    wanted = {"fingerprint", "reason", "until"}
    if not isinstance(value, Mapping) or set(value) != wanted:
        raise LayoutError(f"{place}: an approval has fingerprint, reason and until, nothing else; not {_shown(value)}")
    fingerprint, reason, until = value["fingerprint"], value["reason"], value["until"]
    if not isinstance(fingerprint, str) or not FORM.fullmatch(fingerprint):
        raise LayoutError(f"{place}: a fingerprint is 16 digits from 0 to f, not {_shown(fingerprint)}")
    if not isinstance(reason, str) or not reason.strip():
        raise LayoutError(f"{place}: the approval {fingerprint} says no reason")
    return Approval(fingerprint, " ".join(reason.split()), _day(until, f"{place}: the approval {fingerprint}"))


def _day(value: Any, place: str) -> datetime.date:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return value
    try:
        if isinstance(value, str):
            return datetime.date.fromisoformat(value)
    except ValueError:
        pass
    raise LayoutError(f"{place}: until is a day such as 2027-01-31, not {_shown(value)}")


def _spaced(unit: str) -> str:
    return " %" if unit == "%" else f" {unit}"


def _shown(value: object) -> str:
    return shorten(repr(value), 60)
