"""Whether a program computes what it computed, as findings of the gate: same, other, or unknown.

What was compared are values; other differences of what is computed (an operation, a constant, a kernel's text) say the
same in other words: they are left out where no value differs, and stand below the first output that does. Of two
compiled texts they stand below in both cases, since they are all that is known of where the texts differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from layoutproof.core.document import JsonObject
from layoutproof.core.finding import Finding, wrong_input
from layoutproof.core.message import extended
from layoutproof.core.result import Verdict
from layoutproof.gating import problems
from layoutproof.gating.dataflow import COMPUTED
from layoutproof.programs.functions import Computed

SAME, OTHER, UNKNOWN = "same_function", "other_function", "function_unknown"
_OF_VALUES = (*COMPUTED, "constant", "program")
"""Classes that say that something else is computed, of which it is not known whether that shows."""
_WORDS = "what it computes"
NOT_HERE = problems.OLD_CODE_NOT_HERE()
ASK = "compare with a revision, whose code is then traced: layoutproof gate --against REF --same-function"


@dataclass(frozen=True, slots=True)
class Function:
    """The comparison of one program's values. found: None where it is the same program."""

    found: Finding | None = None

    def over(self, others: Sequence[Finding]) -> list[Finding]:
        """This, and what else changed in the program, without what it says already."""
        mine = self.found
        if mine is None:
            return [*others]
        if mine.question == UNKNOWN:
            asked = mine.severity == "deny"
            return [mine, *(each for each in others if not (asked and each.question == "program"))]
        left, below = _without(others)
        if mine.question == OTHER:
            mine = replace(mine, follows=tuple(replace(each, severity=mine.severity) for each in below))
        return [mine, *left]


def _without(findings: Sequence[Finding]) -> tuple[list[Finding], list[Finding]]:
    """(The others, those about computed values); a consequence of one of the latter stands by itself."""
    left: list[Finding] = []
    below: list[Finding] = []
    for each in findings:
        follows, inner = _without(each.follows)
        below += inner
        if each.question in _OF_VALUES and each.verdict is not Verdict.UNKNOWN:
            below.append(replace(each, follows=()))
            left += follows
        else:
            left.append(replace(each, follows=tuple(follows)))
    return left, below


def of_computed(computed: Computed, asked: bool, records: bool = True) -> Function:
    """The finding of a comparison of values.

    asked: whether it has to compute the same.  records: whether its resources are compared too.
    """
    beside = "" if records else "; what it takes (memory, copies, collectives) is not compared, for want of a lock"
    at = f" at {', '.join(computed.reduced)}" if computed.reduced else ""
    more: dict[str, Any] = {"figures": _figures(computed), "scope": _scope(computed)}
    if computed.error is not None and asked:
        error = computed.error
        where = {"hint": f"{error.file}:{error.line}" if error.file else ""}
        return Function(wrong_input(_WORDS, error.problem, **where))
    if computed.state == "same":
        how = f"the same at {computed.points} points{at}" if computed.points else f"proved to be the same{at}"
        why = f"{'lowered otherwise' if computed.alike else 'rewritten'}, {how}{beside}"
        return Function(Finding(SAME, _WORDS, why, decided_by=computed.decided_by, **more))
    if computed.state == "other":
        parts = f"; they part at {computed.place}" if computed.place else ""
        parts += f", before {computed.before}" if computed.before and computed.before != computed.place else ""
        second = f"; JAX {computed.second.replace('the reference', 'before')}" if computed.second else ""
        why = extended(computed.reason, f"{at}{parts}{second}{beside}")
        severity = "deny" if asked else "warn"
        # an approval is of these two programs, and of no later one
        more |= {"before": f"traced {computed.digest_before}", "after": f"traced {computed.digest}"}
        return Function(Finding(OTHER, _WORDS, why, severity=severity, decided_by=computed.decided_by, **more))
    return unknown(computed.reason, asked)


def as_locked(points: int) -> Function:
    """The finding of a program whose values are those that the lock file has."""
    why = problems.SAME_AS_LOCKED(points)
    scope = "over the reals: rounding is not asked"
    return Function(Finding(SAME, _WORDS, why, decided_by="points", figures={"points": points}, scope=scope))


def of_texts(computed: Computed, digests: tuple[str, str], below: Sequence[Finding]) -> list[Finding]:
    """The comparison of the values of two compiled texts, with the differences of their labels.

    digests: of the values of the old and the new text, by which an approval knows them.  below: the differences by
    labels; where values are the same these are other forms of the same function. Where there are none, all differences
    are reported elsewhere (kernels, exchanges), or have no effect.
    """
    if not below and computed.state != "other":
        return []
    more: dict[str, Any] = {"figures": _figures(computed), "scope": _scope(computed), "line": computed.line}
    known = tuple(each for each in below if each.verdict is not Verdict.UNKNOWN)
    if computed.state == "same":
        how = f"the same at {computed.points} points" if computed.points else "proved to be the same"
        # over the reals they are the same, and it is said that rounding is another one
        rounds = f"; it rounds more now: {computed.narrower}" if computed.narrower else ""
        severity = "warn" if computed.narrower else "allow"
        follows = tuple(replace(each, severity=severity) for each in known)
        written = problems.WRITTEN_OTHERWISE(how, rounds)
        return [Finding(SAME, _WORDS, written, decided_by=computed.decided_by, follows=follows, **more)]
    if computed.state == "other":
        parts = f"; they part at {computed.place}" if computed.place else ""
        parts += f", before {computed.before}" if computed.before else ""
        more |= {"before": f"computes {digests[0]}", "after": f"computes {digests[1]}"}
        why = extended(computed.reason, parts)
        return [Finding(OTHER, _WORDS, why, decided_by=computed.decided_by, follows=known, **more)]
    found = unknown(problems.VALUES_NOT_COMPARED(computed.reason), asked=False).found
    assert found is not None
    return [found, *below]


def unknown(why: str, asked: bool, fix: str = "") -> Function:
    """An unknown of a program. asked: whether it has to compute the same, so that unknown is denied."""
    severity = "deny" if asked else "info"
    return Function(Finding(UNKNOWN, _WORDS, why, verdict=Verdict.UNKNOWN, severity=severity, fix=fix))


def _figures(computed: Computed) -> JsonObject:
    figures: dict[str, Any] = {"points": computed.points} if computed.points else {}
    figures |= {name: computed.figures[name] for name in ("different", "elements") if name in computed.figures}
    figures |= {"output": computed.output} if computed.output else {}
    figures |= {"place": computed.place, "place_before": computed.before} if computed.state == "other" else {}
    return figures


def _scope(computed: Computed) -> str:
    notes = "; ".join(("over the reals: rounding is not asked", *computed.notes))
    return notes if computed.state in ("same", "other") else ""
