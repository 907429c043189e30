"""The result of a search for tilings: what was found, and how all others were gone through, on which its proof rests.

Where the kernel is declared, boxes of candidates are bounded (`branch`); where a function makes it, all are enumerated
(`traced`). `solve` gives the result, `tilings_answer` makes the answer of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from layoutproof.core.errors import Unsupported
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.searching import problems
from layoutproof.searching.answer import shown_order
from layoutproof.searching.branch import Candidate, Progress
from layoutproof.searching.certificate import Certificate
from layoutproof.searching.infeasible import InfeasibleSubset
from layoutproof.searching.legal import Checker
from layoutproof.searching.pareto import Front
from layoutproof.searching.presolve import Removed
from layoutproof.searching.problem import UNDECIDED, Problem

if TYPE_CHECKING:
    from layoutproof.searching.compiled import CompilerReply
    from layoutproof.searching.compiler_stage import Report
    from layoutproof.searching.learned import Learned

EVERYTHING = 1 << 200
"""A cost that every candidate is below."""


@dataclass(frozen=True, slots=True)
class BoundedBoxes:
    """How the candidates of a declared kernel were gone through: in boxes, from the one with the lowest bound.

    removed: values that were left out first.  certificate: of the last that was found; that there is none, where none
    was found; None where no value was left to look at, or the budget is spent.
    infeasible: where nothing is feasible, why.  findings: on each that was found, one tuple per shape.
    front: the Pareto front where it was asked for.  refusals: candidates that the compiler refused, with its message.
    unanswered: those without an answer, and why.  given_up: whether too many were refused to go on.
    aside: whether nothing was found, and something that headroom sets aside is legal.
    legal, passed: the checker of candidates, and by values why some were passed by; `others` counts with them.
    learned: as of `Enumerated`, of the cheapest that were not compiled.
    """

    progress: Progress
    removed: tuple[Removed, ...] = ()
    certificate: Certificate | None = None
    infeasible: InfeasibleSubset | None = None
    findings: tuple[tuple[tuple[Finding, ...], ...], ...] = ()
    front: Front | None = None
    refusals: tuple[tuple[Candidate, str], ...] = ()
    unanswered: tuple[tuple[Candidate, str], ...] = ()
    given_up: bool = False
    aside: bool = False
    legal: Checker | None = field(default=None, repr=False)
    passed: Mapping[tuple[int, ...], str] = field(default_factory=dict)
    learned: Learned | None = None


@dataclass(frozen=True, slots=True)
class TracedCandidate:
    """One candidate. figures: sums over its kernels, but vmem of the largest.

    limit: the bottleneck of the slowest kernel, as of `cost.limit_of`.
    uncounted: operands that the cost rests on that are moved by manual DMA.  read: whether tables choose its blocks.
    body: the unknowns of its kernels' bodies; () before they were asked.
    traced: whether it was traced itself; otherwise its kernels have no bodies, and it is not shown.
    compiled: the compiler's answer on it; () before it was asked.
    """

    values: Mapping[str, int]
    kernels: tuple[Kernel, ...]
    cost: int
    figures: Mapping[str, int]
    limit: str
    uncounted: tuple[str, ...]
    read: bool
    body: tuple[str, ...] = ()
    traced: bool = True
    compiled: Report = ()

    @property
    def candidate(self) -> Candidate:
        """The same as it is shown, with the figures of its one shape."""
        return Candidate(self.values, self.cost, (self.figures,), (self.limit,))


@dataclass(frozen=True, slots=True)
class Enumerated:
    """How the candidates of a traced function were gone through: each priced, and judged from the cheapest on.

    taken: what was found, with its kernels.  looked_at: how many candidates were; all of them where this is complete.
    refused, undecided: candidates by reason.  because: by reason for which candidates are refused, the finding on the
    first of them.  cheaper: of the undecided ones, how many cost less than the best found, or have no price.
    ranked: every candidate with a price, cheapest first, whether it was judged or not.
    aside: candidates that headroom sets aside, cheapest first.
    unjudged: candidates that cost more than the shown rows and were not judged.
    alike: the function's error for every candidate, where it refuses all of them in the same words.
    traced: how many candidates were traced; the others decide as one of them does.  ways: how many ways to decide.
    compute: why the flops of bodies are not in the cost, "" = they are, or there are no products.
    unasked: why the compiler, which should have been asked, was not.
    learned: what its cycles say of those that it was not asked about; None = too few have any, or it was not asked.
    """

    taken: tuple[TracedCandidate, ...]
    looked_at: int
    refused: Mapping[str, int]
    undecided: Mapping[str, int]
    because: Mapping[str, Finding]
    cheaper: int
    ranked: tuple[TracedCandidate, ...]
    aside: tuple[TracedCandidate, ...]
    unjudged: int
    alike: str
    traced: int
    ways: int
    compute: str
    unasked: str
    learned: Learned | None = None


@dataclass(frozen=True, slots=True)
class Tilings:
    """The result of a search.

    problem: as it was searched, without the values that were left out first.  asked: candidates of the problem as it
    was stated.  found: proved legal, cheapest first.  how: the way that all candidates were gone through.
    replies: the real compiler's answer on each that was found; None = it is not wanted.  told: all its reports, those
    that stand for no answer too.
    best: rows to show, None = all.  within: none is shown that costs more than so many times the first, None = any.
    """

    problem: Problem
    asked: int
    found: tuple[Candidate, ...]
    how: BoundedBoxes | Enumerated
    replies: tuple[CompilerReply, ...] | None = None
    told: tuple[Report, ...] = ()
    best: int | None = None
    within: float | None = None

    @property
    def bounded(self) -> BoundedBoxes:
        """The search in boxes. Unsupported where each candidate was looked at."""
        if isinstance(self.how, BoundedBoxes):
            return self.how
        raise Unsupported(problems.LOOKED_AT_EACH(self.problem.name))

    @property
    def enumerated(self) -> Enumerated:
        """The search of one candidate after the other. Unsupported where boxes were bounded."""
        if isinstance(self.how, Enumerated):
            return self.how
        raise Unsupported(problems.BOXES_BOUNDED(self.problem.name))

    @property
    def shown(self) -> list[int]:
        """The places of what is shown, in order: by the compiler's estimates where it has one of each."""
        cycles = [one.place.cycles for one in self.replies or () if one.place is not None]
        return shown_order([one.cost for one in self.found], cycles, self.within, self.best)

    @property
    def unknown(self) -> str:
        """Why the first is not the best (or nothing infeasible) in every respect that was asked for, "" = it is."""
        if isinstance(self.how, Enumerated):
            return _open_of_all(self, self.how)
        return unproved(self) or set_aside(self) or uncompiled(self)

    @property
    def verdict(self) -> Verdict:
        """PROVED: nothing that costs less is legal.  REFUTED: no candidate is legal.  UNKNOWN otherwise."""
        if self.unknown:
            return Verdict.UNKNOWN
        return Verdict.PROVED if self.found else Verdict.REFUTED


def _open_of_all(found: Tilings, how: Enumerated) -> str:
    """Why what was enumerated is not the best of all candidates, "" = it is proved to be."""
    if how.looked_at < found.asked:
        return problems.PARTLY_LOOKED_AT(how.looked_at, found.asked)
    if how.cheaper:
        what = next(iter(how.undecided))
        return problems.CHEAPER_OPEN_SUCH_AS(how.cheaper, what)
    by_hand = dict.fromkeys(name for one in how.taken for name in one.uncounted)
    if by_hand:
        return problems.MOVED_BY_HAND(", ".join(by_hand))
    if how.aside and not how.taken:
        return _by_headroom(f"{len(how.aside)} candidates")
    return how.unasked


def _by_headroom(those: str) -> str:
    return problems.SET_ASIDE_BY_HEADROOM(those)


def set_aside(found: Tilings) -> str:
    """Why that nothing was found proves nothing: headroom sets candidates aside; "" = it does not matter."""
    return _by_headroom("candidates") if found.bounded.aside else ""


def uncompiled(found: Tilings) -> str:
    """Why the compiler does not take all of what was found, "" = it does, or was not wanted."""
    how, replies = found.bounded, found.replies or ()
    if how.given_up and len(found.found) < (found.best or 1):
        return problems.COMPILER_BUDGET(len(found.told), len(found.found))
    if any(one.stand_in for one in replies):
        return problems.KERNEL_NOT_COMPILED()
    first = min((one.cost for one in found.found), default=EVERYTHING)
    open_ones = [why for one, why in how.unanswered if one.cost <= first]
    if open_ones:
        return problems.CHEAPER_UNANSWERED(len(open_ones), open_ones[0])
    return next((one.unknown for one in replies if one.unknown), "")


def unproved(found: Tilings) -> str:
    """Why the first is not proved to be the best by the model, "" = it is."""
    how = found.bounded
    progress, certificate = how.progress, how.certificate
    open_ones = {why: n for why, n in progress.refused.items() if why.startswith(UNDECIDED)}
    if open_ones:
        why = next(iter(open_ones)).removeprefix(UNDECIDED)
        return problems.CHEAPER_OPEN(sum(open_ones.values()), why)
    if not progress.complete:
        return problems.BUDGET_SPENT(progress.boxes, progress.looked_at)
    if certificate is not None and certificate.counterexample is not None:
        return problems.BETTER_FOUND(dict(certificate.counterexample))
    if certificate is not None and certificate.kind == "unknown":
        return problems.NO_CERTIFICATE(certificate.reason)
    by_hand = _uncounted(found.problem)
    if by_hand and found.found:
        return problems.MOVED_BY_KERNEL(", ".join(by_hand))
    if how.front is not None and how.front.unknown:
        return how.front.unknown
    # an empty answer is proved by refusing every candidate, which `refused` counts
    if not (found.found or how.given_up) and sum(progress.refused.values()) != found.problem.count():
        return problems.SOME_LOST()
    return ""


def _uncounted(problem: Problem) -> tuple[str, ...]:
    """Operands that the cost rests on and that the pipeline does not move."""
    rests = problem.cost is None or {"time", "bytes", "padding"}.intersection(problem.cost.names())
    return tuple(one.operand.name for one in problem.declared.model.traffic if rests and not one.moved)
