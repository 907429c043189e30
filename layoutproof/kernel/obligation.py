"""Obligation: one thing that must hold of a kernel, about one operand or the grid, and what its violation is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from layoutproof.core.claim import Claim
from layoutproof.core.errors import Undecided, Unsupported
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Operand

SEVERITIES = ("error", "warning", "info")
"""error: wrong numbers, or refused by the compiler.  warning: costs.  info: legal, only said."""


@dataclass(frozen=True, slots=True)
class Settled:
    """An answer that needs no engine. by: who gives it.  reason, fix: why it is violated or open, and what to do."""

    verdict: Verdict
    reason: str = ""
    fix: str = ""
    by: str = "rule"


def by_rule(violation: str, fix: str = "", by: str = "rule") -> Settled:
    """What a rule says: the violation in words, or "" where it holds."""
    return Settled(Verdict.REFUTED, violation, fix, by) if violation else Settled(Verdict.PROVED, by=by)


def undecided(reason: str) -> Settled:
    """What cannot be told, and why."""
    return Settled(Verdict.UNKNOWN, reason, by="")


@dataclass(frozen=True, slots=True, eq=False)
class Obligation:
    """What a property of kernels asks of one subject.

    subject: the operand's name, `grid`, or `args[0] -> outputs[0]`.
    claim: what the engines decide, or what a rule has settled without them.
    leaves_open: outcomes of the claim that settle nothing, with the reason: the answer is then unknown.
    reads: whether the answer may depend on what the subject's index map reads from tables.
    severity: what a violation is worth.  source: file:line.  figures: exact numbers to show.
    graver: asked where this is not proved, and the worst of them is the answer where it is violated or unknown.
    """

    subject: str
    claim: Claim | Settled
    reads: bool = True
    severity: str = "error"
    source: str = ""
    figures: Mapping[str, object] = field(default_factory=dict)
    leaves_open: Mapping[Verdict, str] = field(default_factory=dict)
    graver: tuple[Obligation, ...] = ()


def for_each_operand(
    operands: Iterable[Operand], make: Callable[[Operand], Iterable[Obligation]]
) -> tuple[Obligation, ...]:
    """The obligations of every operand; one that cannot be told of an operand is unknown for that operand alone."""
    found: list[Obligation] = []
    for operand in operands:
        try:
            if operand.unmodelled:
                raise Unsupported(operand.unmodelled)
            found += make(operand)
        except Undecided as reason:
            found.append(Obligation(operand.name, undecided(str(reason)), source=operand.source))
    return tuple(found)
