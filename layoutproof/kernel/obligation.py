"""Obligation: one thing that must hold of a kernel, about one operand or the grid, and what its violation is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from layoutproof.core.claim import Claim
from layoutproof.core.errors import Undecided, Unsupported
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point
from layoutproof.kernel.kernel import Operand

SEVERITIES = ("error", "warning", "info")
"""error: wrong numbers, or refused by the compiler.  warning: costs.  info: legal, only said."""


@dataclass(frozen=True, slots=True, eq=False)
class Obligation:
    """What a property of kernels asks of one subject.

    subject: the operand's name, `grid`, or `args[0] -> outputs[0]`.
    claim: decided by the engines. None where a rule has settled it: then `broken` says why it is violated ("" = it
    holds), or `unknown` why nobody can tell.
    if_proved: a reason why the proof of `claim` does not prove the property (it then stays unknown), "" = it does.
    if_refuted: likewise, why its refutation refutes nothing.
    reads: whether the answer may depend on what the subject's index map reads from tables.
    severity: what a violation is worth.  fix: what to do, from the counterexample.  source: file:line.
    shown: the counterexample as people see it, from the claim's; None = the claim's own.
    provided: claims that must hold at the sizes of the counterexample too; where one does not, nothing is violated.
    graver: asked where this is not proved, and the worst of them is the answer where it is violated or unknown.
    point: for a settled violation, the numbers that show it.  figures: exact numbers to show.  by: who settled it.
    """

    subject: str
    claim: Claim | None = None
    broken: str = ""
    unknown: str = ""
    if_proved: str = ""
    if_refuted: str = ""
    reads: bool = True
    severity: str = "error"
    fix: Callable[[Point, Numbers], str] = lambda point, on: ""
    source: str = ""
    point: Point = field(default_factory=dict)
    figures: Mapping[str, object] = field(default_factory=dict)
    shown: Callable[[Point, Numbers], Point] | None = None
    provided: tuple[Claim, ...] = ()
    graver: tuple[Obligation, ...] = ()
    by: str = "rule"


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
        except Undecided as undecided:
            found.append(Obligation(operand.name, unknown=str(undecided), source=operand.source))
    return tuple(found)
