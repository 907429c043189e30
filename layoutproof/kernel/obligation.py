"""Obligation: one thing that must hold of a kernel, about one operand or the grid, and what its violation is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from layoutproof.core.claim import Claim
from layoutproof.core.errors import Undecided, Unsupported
from layoutproof.core.message import message_of
from layoutproof.core.result import Counterexample, Verdict
from layoutproof.kernel.fixes import KernelFix
from layoutproof.kernel.kernel import Operand

SEVERITIES = ("error", "warning", "info")
"""error: wrong numbers, or refused by the compiler.  warning: costs.  info: legal, only said."""


@dataclass(frozen=True, slots=True)
class Settled:
    """An answer that needs no engine.

    Attributes:
        verdict: Proved, refuted or unknown.
        reason: Why it is refuted or unknown.
        hint: Where to look.
        by: Who gives the answer: "rule", or a compiler or an engine by name.
        counterexample: Points of a violation by name, where there are any.
    """

    verdict: Verdict
    reason: str = ""
    hint: str = ""
    by: str = "rule"
    counterexample: Mapping[str, object] = field(default_factory=dict)


def by_rule(violation: str, hint: str = "", by: str = "rule") -> Settled:
    """The answer of a rule without an engine.

    Args:
        violation: The violation in words, "" where the rule holds.
        hint: Where to look.
        by: Who says it.

    Returns:
        Refuted with the words, or proved.
    """
    return Settled(Verdict.REFUTED, violation, hint, by) if violation else Settled(Verdict.PROVED, by=by)


def undecided(reason: str) -> Settled:
    """An answer that is unknown.

    Args:
        reason: Why.

    Returns:
        The answer.
    """
    return Settled(Verdict.UNKNOWN, reason, by="")


@dataclass(frozen=True, slots=True, eq=False)
class Obligation:
    """The question of a rule about one subject of a kernel.

    Attributes:
        subject: Name of the operand, `grid`, or `args[0] -> outputs[0]`.
        claim: The claim for the engines, or the answer of a rule without them.
        reads: Whether the answer may depend on entries of scalar prefetch operands that the subject's index map reads.
        severity: Of a violation: error, warning or info.
        source: Where the subject is written, as file:line.
        figures: Exact numbers to show.
        leaves_open: Outcomes of the claim that settle nothing, with the reason: the answer is then unknown.
        graver: Asked where this is not proved; the worst of them is then the answer.
        tables: Names of the scalar prefetch operands that the claim reads, where those are not the ones of the
            subject's index map.
        fixes: Possible fixes, from its refutation, the likeliest first; each is tried before it is shown.
    """

    subject: str
    claim: Claim | Settled
    reads: bool = True
    severity: str = "error"
    source: str = ""
    figures: Mapping[str, object] = field(default_factory=dict)
    leaves_open: Mapping[Verdict, str] = field(default_factory=dict)
    graver: tuple[Due, ...] = ()
    tables: tuple[str, ...] = ()
    fixes: Callable[[Counterexample], Iterable[KernelFix]] = lambda at: ()


Due = Obligation | Callable[[], Obligation]
"""An obligation, or what makes it, where a rule has many and a caller may want one."""


def for_each_operand(
    operands: Iterable[Operand], make: Callable[[Operand], Iterable[Obligation]]
) -> tuple[Obligation, ...]:
    """The obligations of every operand. An undecided question about one operand is unknown for that operand alone.

    Args:
        operands: Of the kernel.
        make: Gives the obligations of one operand; it may raise Undecided.

    Returns:
        All of them, in the order of the operands.
    """
    found: list[Obligation] = []
    for operand in operands:
        try:
            if operand.unmodelled:
                raise Unsupported(operand.unmodelled)
            found += make(operand)
        except Undecided as reason:
            found.append(Obligation(operand.name, undecided(message_of(reason)), source=operand.source))
    return tuple(found)
