"""One search over the tilings of a declared kernel, from the problem to the whole answer, nothing printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import CompilerAnswer
from layoutproof.pallas.judge import kernel_target
from layoutproof.searching.answer import shown_order
from layoutproof.searching.branch import DIVIDES, Candidate, Progress, search
from layoutproof.searching.certificate import Certificate, certify
from layoutproof.searching.infeasible import InfeasibleSubset, infeasible_subset
from layoutproof.searching.legal import Checker
from layoutproof.searching.pareto import Front, front_of
from layoutproof.searching.presolve import Removed, presolve
from layoutproof.searching.problem import UNDECIDED, Problem

if TYPE_CHECKING:
    from layoutproof.searching.compiled import CompilerReply
    from layoutproof.searching.compiler_stage import Report

EVERYTHING = 1 << 200
"""A cost that every candidate is below."""
Legal = Callable[[Mapping[str, int]], str]


@dataclass(frozen=True, slots=True)
class Tilings:
    """The result of a search.

    problem: as it was searched, without the values in `removed`.  asked: candidates of the problem as it was stated.
    progress.found: the best, cheapest first.  certificate: of the last of them; that there is none, where none was
    found; None where no value was left to look at, or the budget is spent.
    infeasible: where nothing is feasible, why.  findings: on each, one tuple per shape.
    front: the Pareto front where it was asked for.  compiled: the real compiler's answer on each, by its place in
    `progress.found`; None = it was not wanted.  refusals: candidates that the compiler refused, with its message.
    unanswered: those without an answer, and why.  told: all its reports, those that stand for no answer too.
    aside: whether nothing was found, and something that headroom sets aside is legal.
    legal, passed: the checker of candidates, and by values why some were passed by; `others` counts with them.
    given_up: whether too many were refused to go on.  best: rows to show, None = all.
    within: none is shown that costs more than so many times the first, None = any.
    """

    problem: Problem
    asked: int
    removed: tuple[Removed, ...]
    progress: Progress
    certificate: Certificate | None = None
    infeasible: InfeasibleSubset | None = None
    findings: tuple[tuple[tuple[Finding, ...], ...], ...] = ()
    front: Front | None = None
    compiled: tuple[CompilerReply, ...] | None = None
    refusals: tuple[tuple[Candidate, str], ...] = field(default=())
    unanswered: tuple[tuple[Candidate, str], ...] = ()
    told: tuple[Report, ...] = ()
    given_up: bool = False
    best: int | None = None
    within: float | None = None
    aside: bool = False
    legal: Checker | None = field(default=None, repr=False)
    passed: Mapping[tuple[int, ...], str] = field(default_factory=dict)

    @property
    def found(self) -> list[Candidate]:
        """The best, cheapest first."""
        return self.progress.found

    @property
    def shown(self) -> list[int]:
        """The places of what is shown, in order: by the compiler's estimates where it has one of each."""
        cycles = [one.place.cycles for one in self.compiled or () if one.place is not None]
        return shown_order([one.cost for one in self.found], cycles, self.within, self.best)

    @property
    def unknown(self) -> str:
        """Why the first is not the best (or nothing infeasible) in every respect that was asked for, "" = it is."""
        return self.unproved or self.set_aside or self.uncompiled

    @property
    def set_aside(self) -> str:
        """Why that nothing was found proves nothing: headroom sets candidates aside; "" = it does not matter."""
        if not self.aside:
            return ""
        left = "candidates are set aside by headroom, and nothing is proved of them"
        return f"{left}: --compile has the compiler decide, --headroom 0% takes all that fit by the model"

    @property
    def uncompiled(self) -> str:
        """Why the compiler does not take all of what was found, "" = it does, or was not wanted."""
        if self.given_up and len(self.progress.found) < (self.best or 1):
            taken = f"the compiler was asked about {len(self.told)} candidates and took {len(self.progress.found)}"
            return f"{taken}; a larger effort asks on"
        if any(c.stand_in for c in self.compiled or ()):
            return (
                "the kernel itself was not compiled, because the file names no body: windows and scratch only, "
                "with a stand-in that writes zeros"
            )
        first = min((one.cost for one in self.progress.found), default=EVERYTHING)
        open_ones = [why for one, why in self.unanswered if one.cost <= first]
        if open_ones:
            return f"{len(open_ones)} candidates that may cost less have no answer: {open_ones[0]}"
        return next((c.unknown for c in self.compiled or () if c.unknown), "")

    @property
    def unproved(self) -> str:
        """Why the first is not proved to be the best by the model, "" = it is."""
        progress, certificate = self.progress, self.certificate
        open_ones = {why: n for why, n in progress.refused.items() if why.startswith(UNDECIDED)}
        if open_ones:
            why = next(iter(open_ones)).removeprefix(UNDECIDED)
            return f"{sum(open_ones.values())} candidates that may cost less are neither proved nor refuted: {why}"
        if not progress.complete:
            return (
                f"the budget is spent on {progress.boxes} boxes and {progress.looked_at} candidates of them one by one"
            )
        if certificate is not None and certificate.counterexample is not None:
            return f"the certificate found a better one, {dict(certificate.counterexample)}: this is a bug"
        if certificate is not None and certificate.kind == "unknown":
            return f"no certificate: {certificate.reason}"
        by_hand = uncounted(self.problem)
        if by_hand and progress.found:
            return f"{', '.join(by_hand)}: moved by the kernel itself, and the bytes of that are not counted"
        if self.front is not None and self.front.unknown:
            return self.front.unknown
        # an empty answer is proved by refusing every candidate, which `refused` counts
        if not (progress.found or self.given_up) and sum(progress.refused.values()) != self.problem.count():
            return "some candidates were neither found nor refused: this is a bug"
        return ""

    @property
    def verdict(self) -> Verdict:
        """PROVED: nothing that costs less is legal.  REFUTED: no candidate is legal.  UNKNOWN otherwise."""
        if self.unknown:
            return Verdict.UNKNOWN
        return Verdict.PROVED if self.progress.found else Verdict.REFUTED


def solve(
    problem: Problem,
    best: int = 5,
    effort: int = 1,
    pareto: bool = False,
    compiling: bool = False,
    progress: Callable[[str, str], None] | None = None,
) -> Tilings:
    """The `best` cheapest legal tilings with their certificate, or why there is none.

    pareto: also all tilings that no other beats in time, VMEM and padding at once.  compiling: also ask the real TPU
    compiler until it takes `compiler_stage.ASKED` at the least, whose estimates say which of these are the best; what
    it refuses is left out, and the next best takes its place. progress: as of `compiler_stage.reports`.
    Where it cannot be asked the answer is unknown. Raises LayoutError where the kernel's body cannot be traced.
    """
    if compiling:
        # the compiler decides whether a candidate fits
        problem = problem.roomy()
    small, removed = presolve(problem, kernel_target(problem.target, problem.compiler))
    legal = Checker(small, effort=effort)
    refused: dict[tuple[int, ...], str] = {}
    if compiling:
        searched = _compiled(small, legal, refused, best, effort, progress)
    else:
        searched = Tilings(small, problem.count(), removed, search(small, legal, best, effort))
    searched = replace(searched, asked=problem.count(), removed=removed, best=best, legal=legal, passed=refused)
    made = searched.progress
    if not made.found and made.complete and problem.limit > problem.vmem:
        # a candidate that headroom leaves out may be legal
        left, _ = presolve(problem.roomy(), kernel_target(problem.target, problem.compiler))
        if search(left, Checker(left, effort=effort), 1, effort).found:
            return replace(searched, aside=True)

    def allowed(values: Mapping[str, int]) -> str:
        return refused.get(tuple(values.values())) or legal(values)

    if small.count() and made.refused[DIVIDES] == small.count():
        raise LayoutError(f"{DIVIDES}, whatever the candidate", file=problem.source)
    if not made.found:
        why = None if refused or not made.complete else infeasible_subset(problem, effort)
        # no cost is too high: every piece of the space is shown to hold nothing legal
        nothing = None
        if made.complete and small.count() and not searched.given_up:
            nothing = certify(small, EVERYTHING, allowed, most=0, cuts=made.cuts)
        return replace(searched, certificate=nothing, infeasible=why)
    listed = [one.values for one in made.found]
    certificate = certify(small, made.found[-1].cost, allowed, cuts=made.cuts, listed=listed)
    findings = tuple(legal.findings(values, said) for values, said in zip(listed, _answers(searched), strict=True))
    front = front_of(small, allowed, effort) if pareto else None
    return replace(searched, certificate=certificate, findings=findings, front=front)


def _compiled(
    problem: Problem,
    legal: Legal,
    refused: dict[tuple[int, ...], str],
    best: int,
    effort: int,
    progress: Callable[[str, str], None] | None,
) -> Tilings:
    """The cheapest that the compiler takes, as many as are asked for; into `refused` goes why others are passed by."""
    from layoutproof.searching.compiled import asked, placed
    from layoutproof.searching.compiler_stage import ASKED, PATIENCE
    from layoutproof.searching.neighbours import Neighbours

    def allowed(values: Mapping[str, int]) -> str:
        return refused.get(tuple(values.values())) or legal(values)

    many = best if problem.body is None else max(best, ASKED)
    told: dict[tuple[int, ...], CompilerReply] = {}
    refusals: list[tuple[Candidate, str]] = []
    unanswered: list[tuple[Candidate, str]] = []
    learned = Neighbours()
    asking: dict[str, Any] = {} if progress is None else {"progress": progress}
    while True:
        made = search(problem, allowed, many, effort)
        said = asked(problem, made.found, tuple(told.values()), learned=learned, **asking)
        told |= {tuple(one.values.values()): one for one in said}
        new = [(one, of) for one, of in zip(made.found, said, strict=True) if of.report and (of.refused or of.unknown)]
        for one, of in new:
            (refusals if of.refused else unanswered).append((one, of.refused or of.unknown))
            refused[tuple(one.values.values())] = f"the compiler: {of.refused or of.unknown}"
        given_up = bool(new) and len(refused) >= PATIENCE * best * effort
        if given_up:
            kept = [(one, of) for one, of in zip(made.found, said, strict=True) if (one, of) not in new]
            made.found, said = [one for one, _ in kept], tuple(of for _, of in kept)
        if given_up or not new:
            break
    return Tilings(
        problem,
        problem.count(),
        (),
        made,
        compiled=placed(problem, said),
        refusals=tuple(refusals),
        unanswered=tuple(unanswered),
        told=tuple(of.report for of in told.values() if of.report),
        given_up=given_up,
    )


def _answers(searched: Tilings) -> Sequence[Sequence[CompilerAnswer]]:
    """The compiler's answers on the found candidates, for each shape; () for those that it was not asked about."""
    if searched.compiled is None:
        return [()] * len(searched.progress.found)
    from layoutproof.searching.compiled import answers_of

    return [answers_of(one) for one in searched.compiled]


def uncounted(problem: Problem) -> tuple[str, ...]:
    """Operands that the cost rests on and that the pipeline does not move."""
    rests = problem.cost is None or {"time", "bytes", "padding"}.intersection(problem.cost.names())
    return tuple(one.operand.name for one in problem.model.traffic if rests and not one.moved)
