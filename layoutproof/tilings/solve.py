"""One search over the tilings of a declared kernel, from the problem to the whole answer, nothing printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.pallas.judge import kernel_target
from layoutproof.tilings.branch import DIVIDES, Candidate, Progress, search
from layoutproof.tilings.certificate import Certificate, certify
from layoutproof.tilings.compiled import Compiled, answer_of, asked, refusing
from layoutproof.tilings.conflict import Conflict, conflict
from layoutproof.tilings.legal import Checker, Partial, partials
from layoutproof.tilings.pareto import Front, front_of
from layoutproof.tilings.presolve import Removed, presolve
from layoutproof.tilings.problem import UNDECIDED, Problem

EVERYTHING = 1 << 200
"""A cost that every candidate is below."""
Legal = Callable[[Mapping[str, int]], str]


@dataclass(frozen=True, slots=True)
class Tilings:
    """What a search found.

    problem: as it was searched, without the values in `removed`.  asked: candidates of the problem as it was stated.
    progress.found: the best, cheapest first.  certificate: of the last of them; that there is none, where none was
    found; None where no value was left to look at, or the budget is spent.
    conflict: where nothing is feasible, why.  findings: what was judged of each, one tuple per shape.
    front: the Pareto front where it was asked for.  compiled: what the real compiler says of each, by its place in
    `progress.found`; None = it was not wanted.  refusals: candidates that the compiler refused, with its message.
    """

    problem: Problem
    asked: int
    removed: tuple[Removed, ...]
    progress: Progress
    certificate: Certificate | None = None
    conflict: Conflict | None = None
    findings: tuple[tuple[tuple[Finding, ...], ...], ...] = ()
    front: Front | None = None
    compiled: tuple[Compiled, ...] | None = None
    refusals: tuple[tuple[Candidate, str], ...] = field(default=())

    @property
    def unknown(self) -> str:
        """Why the first is not the best (or nothing infeasible) in every respect that was asked for, "" = it is."""
        return self.unproved or self.uncompiled

    @property
    def uncompiled(self) -> str:
        """Why the compiler does not take all of what was found, "" = it does, or was not wanted."""
        if any(c.refused for c in self.compiled or ()):
            return f"the compiler refused {len(self.refusals)} candidates and more; a larger effort asks on"
        if any(c.stand_in for c in self.compiled or ()):
            return (
                "the kernel itself was not compiled, because the file names no body: windows and scratch only, "
                "with a stand-in that writes zeros"
            )
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
        if not progress.found and sum(progress.refused.values()) != self.problem.count():
            return "some candidates were neither found nor refused: this is a bug"
        return ""

    def partials(self) -> list[tuple[Partial, ...]]:
        """For each candidate found, what reaches over the edge of an array, for any of the shapes."""
        found = []
        for one, shapes in zip(self.progress.found, self.findings, strict=True):
            instances = [self.problem.bind(shape, one.values) for shape in self.problem.shapes]
            of_each = [partials(kernel, findings) for kernel, findings in zip(instances, shapes, strict=True)]
            found.append(tuple({(p.operand, p.dimension): p for of_one in of_each for p in of_one}.values()))
        return found

    @property
    def verdict(self) -> Verdict:
        """PROVED: nothing that costs less is legal.  REFUTED: no candidate is legal.  UNKNOWN otherwise."""
        if self.unknown:
            return Verdict.UNKNOWN
        return Verdict.PROVED if self.progress.found else Verdict.REFUTED


def solve(problem: Problem, best: int = 5, effort: int = 1, pareto: bool = False, compiling: bool = False) -> Tilings:
    """The `best` cheapest legal tilings with their certificate, or why there is none.

    pareto: also all tilings that no other beats in time, VMEM and padding at once.  compiling: also ask the real TPU
    compiler about the best; what it refuses is left out, and the next best takes its place.
    Where it cannot be asked the answer is unknown. Raises LayoutError where the kernel's body cannot be traced.
    """
    small, removed = presolve(problem, kernel_target(problem.target, problem.compiler))
    legal = Checker(small, effort=effort)
    refused: dict[tuple[int, ...], tuple[Candidate, str]] = {}
    compiled: tuple[Compiled, ...] | None = () if compiling else None

    def allowed(values: Mapping[str, int]) -> str:
        return refusing(refused, values) or legal(values)

    while True:
        progress = search(small, allowed, best, effort)
        if not compiling or not progress.found:
            break
        compiled = asked(small, progress.found, compiled or ())
        new = {tuple(one.values.values()): (one, c.refused) for one, c in zip(progress.found, compiled, strict=True)}
        new = {key: pair for key, pair in new.items() if pair[1]}
        refused |= new
        if not new or len(refused) >= 8 * best * effort:
            break
    if small.count() and progress.refused[DIVIDES] == small.count():
        raise LayoutError(f"{DIVIDES}, whatever the candidate", file=problem.source)
    refusals = tuple(refused.values())
    if not progress.found:
        why = None if refusals or not progress.complete else conflict(problem, effort)
        # no cost is too high: every piece of the space is shown to hold nothing legal
        nothing = None
        if progress.complete and small.count():
            nothing = certify(small, EVERYTHING, allowed, most=0, cuts=progress.cuts)
        return Tilings(small, problem.count(), removed, progress, nothing, why, compiled=compiled, refusals=refusals)
    listed = [one.values for one in progress.found]
    certificate = certify(small, progress.found[-1].cost, allowed, cuts=progress.cuts, listed=listed)
    answers = [None] * len(listed) if compiled is None else [answer_of(one) for one in compiled]
    findings = tuple(legal.findings(values, said) for values, said in zip(listed, answers, strict=True))
    front = front_of(small, allowed, effort) if pareto else None
    return Tilings(small, problem.count(), removed, progress, certificate, None, findings, front, compiled, refusals)


def uncounted(problem: Problem) -> tuple[str, ...]:
    """Operands that the cost rests on and that the pipeline does not move."""
    rests = problem.cost is None or {"time", "bytes", "padding"}.intersection(problem.cost.names())
    return tuple(one.operand.name for one in problem.model.traffic if rests and not one.moved)
