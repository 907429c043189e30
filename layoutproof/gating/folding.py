"""Findings with what comes from them: judged each on its own, and shown as one.

Each difference keeps its own severity, and a cause has the worst of all that comes from it; an approval of a cause is
of the classes of what comes from it too, and is worth nothing once another class does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from layoutproof.core.finding import SEVERITIES, Finding
from layoutproof.core.message import extended
from layoutproof.gating import problems
from layoutproof.gating.policy import DEFAULTS


def unfolded(causes: Sequence[Finding]) -> list[Finding]:
    """Each cause, and after it what comes from it, so that each can be judged on its own."""
    return [each for cause in causes for each in (cause, *cause.follows)]


def refolded(judged: Sequence[Finding]) -> list[Finding]:
    """What `unfolded` gave, judged, in its order: each cause with what comes from it, as severe as the worst of it."""
    found: list[Finding] = []
    k = 0
    while k < len(judged):
        cause, count = judged[k], len(judged[k].follows)
        follows = [*judged[k + 1 : k + 1 + count]]
        k += 1 + count
        if not follows:
            found.append(cause)
            continue
        if cause.policy.startswith("approved until"):
            follows = [replace(f, severity="allow", policy=f"{cause.policy} (with its cause)") for f in follows]
        worst = max([cause, *follows], key=lambda f: SEVERITIES.index(f.severity))
        if worst is not cause and worst.severity != cause.severity:
            why = extended(
                problems.COMES_FROM(worst.severity, worst.question), f"; {cause.policy}" if cause.policy else ""
            )
            cause = replace(cause, severity=worst.severity, policy=why)
        found.append(replace(cause, follows=tuple(follows)))
    return found


def with_classes(cause: Finding) -> Finding:
    """The finding, its fingerprint of the classes too of what comes from it and is not allowed by itself."""
    classes = sorted({f.question for f in cause.follows if DEFAULTS.get(f.question) != "allow"} - {cause.question})
    if not classes:
        return cause
    digest = hashlib.sha256("\0".join([cause.fingerprint, *classes]).encode()).hexdigest()
    return replace(cause, fingerprint=digest[:16])
