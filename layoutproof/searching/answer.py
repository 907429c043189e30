"""The answer to a search for tilings, of a declared kernel or of a traced function: rows, and what is proved of them.

`tilings_answer` makes one from what a search found; `tilings_text` and `tilings_json` show it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.searching.branch import Candidate
from layoutproof.searching.document import CertificateEntry
from layoutproof.searching.infeasible import InfeasibleSubset
from layoutproof.searching.legal import Partial
from layoutproof.searching.pareto import Front
from layoutproof.searching.presolve import Removed
from layoutproof.searching.problem import Problem

if TYPE_CHECKING:
    from layoutproof.searching.compiled import CompilerReply
    from layoutproof.searching.compiler_stage import Report
    from layoutproof.searching.learned import Learned

Line = tuple[str, str]
"""A line of a report: its subject, and the sentence."""


@dataclass(frozen=True, slots=True)
class Tiling(Candidate):
    """One candidate as it is shown.

    partials: blocks that reach over the edge of an array.  findings: on it, for each shape.
    reply: the compiler's answer on it, None = it is not wanted.
    """

    partials: tuple[Partial, ...] = ()
    findings: tuple[tuple[Finding, ...], ...] = ()
    reply: CompilerReply | None = None


@dataclass(frozen=True, slots=True)
class Others:
    """The candidates that are not shown. refused, unknown: by reason; a rule's reason is its name and its subject.
    because: for those reasons, the finding on the first candidate.
    many: how many headroom sets aside, and why.  aside: the cheapest of them, cheapest first.
    cheaper: of those listed, how many cost less than the last that is shown.
    not_judged: those not judged, which cost no less than the last that is shown.
    """

    refused: Mapping[str, int] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)
    because: Mapping[str, Finding] = field(default_factory=dict)
    many: int = 0
    why: str = ""
    aside: tuple[Candidate, ...] = ()
    cheaper: int = 0
    not_judged: int = 0


@dataclass(frozen=True, slots=True)
class CompilerStage:
    """The compiler's part in an answer. told: its reports, those that stand for no answer too.  said: in a sentence.

    lines: how many it took, and the measure that its estimates compare.  refusals, unanswered: candidates with its
    words.  learned: what its cycles say of the others, None = nothing.
    """

    asked: bool
    said: str
    told: Sequence[Report] = ()
    lines: tuple[Line, ...] = ()
    refusals: tuple[tuple[Mapping[str, int], str], ...] = ()
    unanswered: tuple[tuple[Mapping[str, int], str], ...] = ()
    learned: Learned | None = None


@dataclass(frozen=True, slots=True)
class TilingAnswer:
    """The whole answer of a search for tilings.

    reason: why the answer is unknown, "" = it is known.  candidates: of the problem as it was stated.
    examined: how many of them were looked at and traced, in words; "" = there is nothing to say of it.
    rows: those that are shown, the best first.  proof: of the whole answer, or why there is none.
    details: further premises of the first line of the proof.  certificate: the same as plain data.
    others: the candidates that are not shown.
    compute: why compute is not counted in the cost, "" = it is.
    stage: None = the compiler is not wanted.  bound: the remaining candidates cost no less, None = unknown.
    left_out: values that no candidate can have.  infeasible: conditions that cannot be met together.
    model: the assumptions of the cost, in words.
    """

    problem: Problem
    verdict: Verdict
    reason: str
    candidates: int
    rows: tuple[Tiling, ...]
    proof: tuple[Line, ...] = ()
    certificate: CertificateEntry | None = None
    model: tuple[Line, ...] = ()
    others: Others = field(default_factory=Others)
    examined: str = ""
    details: tuple[Line, ...] = ()
    compute: str = ""
    bound: int | None = None
    stage: CompilerStage | None = None
    front: Front | None = None
    infeasible: InfeasibleSubset | None = None
    left_out: tuple[Removed, ...] = ()


def shown_order(costs: Sequence[int], cycles: Sequence[int], within: float | None, best: int | None) -> list[int]:
    """The order of the shown rows among those found in order of cost: by the compiler's cycles where it gave all.

    within: none that costs more than so many times the first, None = any.  best: how many at most, None = all.
    """
    at = list(range(len(costs)))
    if len(cycles) == len(at):
        at.sort(key=cycles.__getitem__)
    return [k for k in at if within is None or costs[k] <= within * costs[0]][:best]
