"""One search for tilings, from the problem to the whole result, nothing printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from layoutproof.core.errors import LayoutError
from layoutproof.kernel.kernel import CompilerAnswer
from layoutproof.pallas.judge import kernel_target
from layoutproof.searching import problems
from layoutproof.searching.branch import DIVIDES, Candidate, search
from layoutproof.searching.certificate import certify
from layoutproof.searching.infeasible import infeasible_subset
from layoutproof.searching.legal import Checker
from layoutproof.searching.pareto import front_of
from layoutproof.searching.presolve import presolve
from layoutproof.searching.problem import Problem, TracedFunction
from layoutproof.searching.tilings import EVERYTHING, BoundedBoxes, Tilings

if TYPE_CHECKING:
    from layoutproof.searching.compiled import CompilerReply
    from layoutproof.searching.learned import Learned

DEARER = 64
"""Candidates, the cheapest by the model that were not compiled, of which the compiler's cycles of others say something.
"""

Progressed = Callable[[str, str], None]
Legal = Callable[[Mapping[str, int]], str]


def solve(
    problem: Problem,
    best: int = 5,
    effort: int = 1,
    pareto: bool = False,
    compiling: bool = False,
    progress: Progressed | None = None,
) -> Tilings:
    """The `best` cheapest legal tilings, and how all others were gone through: on that rests that none is better.

    pareto: also all tilings that no other beats in time, VMEM and padding at once, of a declared kernel.
    compiling: also ask the real TPU compiler until it takes `compiler_stage.ASKED` at the least, whose estimates say
    which of these are the best; what it refuses is left out, and the next best takes its place. A file that says it has
    it asked about what is found only. progress: as of `compiler_stage.reports`.
    Where it cannot be asked the answer is unknown. Raises LayoutError where a kernel's body cannot be traced, and where
    a function refuses all candidates in the same words.
    """
    if isinstance(problem.kernels, TracedFunction):
        return _enumerated(problem, best, effort, compiling, progress)
    return _bounded(problem, best, effort, pareto, compiling, progress)


def _enumerated(problem: Problem, best: int, effort: int, compiling: bool, progress: Progressed | None) -> Tilings:
    """The search of one candidate after the other."""
    from layoutproof.searching.compiler_stage import ASKED
    from layoutproof.searching.neighbours import Neighbours
    from layoutproof.searching.traced import FUNCTION, search_traced

    function = problem.traced
    if function.confirm is not None:
        # one search learns from all that it asks
        asking: dict[str, Any] = {} if progress is None else {"progress": progress}
        function = replace(function, confirm=partial(function.confirm, learned=Neighbours(), **asking))
    problem = replace(problem, kernels=function, confirmed=compiling or problem.confirmed)
    found = search_traced(problem, max(best, ASKED) if compiling else best, effort)
    alike = found.enumerated.alike
    if alike:
        # whatever the block sizes: a wrong call, and no answer about block sizes
        words = problems.ALL_FAIL_ALIKE(found.asked, alike.removeprefix(FUNCTION))
        raise LayoutError(words, file=problem.source, line=problem.line, column=problem.column)
    return replace(found, best=best)


def _bounded(
    problem: Problem, best: int, effort: int, pareto: bool, compiling: bool, progress: Progressed | None
) -> Tilings:
    """The search of boxes of candidates."""
    if compiling:
        # the compiler decides whether a candidate fits
        problem = problem.roomy()
    small, removed = presolve(problem, kernel_target(problem.target, problem.compiler))
    legal = Checker(small, effort=effort)
    refused: dict[tuple[int, ...], str] = {}
    if compiling:
        searched = _compiled(small, legal, refused, best, effort, progress)
    else:
        searched = _found(small, BoundedBoxes(search(small, legal, best, effort)))
    how = replace(searched.bounded, removed=removed, legal=legal, passed=refused)
    searched = replace(searched, asked=problem.count(), how=how, best=best)
    made = how.progress
    if not made.found and made.complete and problem.limit > problem.vmem:
        # a candidate that headroom leaves out may be legal
        left, _ = presolve(problem.roomy(), kernel_target(problem.target, problem.compiler))
        if search(left, Checker(left, effort=effort), 1, effort).found:
            return replace(searched, how=replace(how, aside=True))

    def allowed(values: Mapping[str, int]) -> str:
        return refused.get(tuple(values.values())) or legal(values)

    if small.count() and made.refused[DIVIDES] == small.count():
        raise LayoutError(problems.DIVIDES_ALWAYS(DIVIDES), file=problem.source)
    if not made.found:
        why = None if refused or not made.complete else infeasible_subset(problem, effort)
        # no cost is too high: every piece of the space is shown to hold nothing legal
        nothing = None
        if made.complete and small.count() and not how.given_up:
            nothing = certify(small, EVERYTHING, allowed, most=0, cuts=made.cuts)
        return replace(searched, how=replace(how, certificate=nothing, infeasible=why))
    listed = [one.values for one in made.found]
    certificate = certify(small, made.found[-1].cost, allowed, cuts=made.cuts, listed=listed)
    findings = tuple(legal.findings(values, said) for values, said in zip(listed, _answers(searched), strict=True))
    front = front_of(small, allowed, effort) if pareto else None
    return replace(searched, how=replace(how, certificate=certificate, findings=findings, front=front))


def _found(problem: Problem, how: BoundedBoxes) -> Tilings:
    return Tilings(problem, problem.count(), tuple(how.progress.found), how)


def _compiled(
    problem: Problem,
    legal: Legal,
    refused: dict[tuple[int, ...], str],
    best: int,
    effort: int,
    progress: Progressed | None,
) -> Tilings:
    """The cheapest that the compiler takes, as many as are asked for; into `refused` goes why others are passed by."""
    from layoutproof.searching.compiled import asked, placed
    from layoutproof.searching.compiler_stage import ASKED, PATIENCE
    from layoutproof.searching.neighbours import Neighbours

    def allowed(values: Mapping[str, int]) -> str:
        return refused.get(tuple(values.values())) or legal(values)

    many = best if problem.declared.body is None else max(best, ASKED)
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
            refused[tuple(one.values.values())] = problems.COMPILER_REFUSES(of.refused or of.unknown)
        given_up = bool(new) and len(refused) >= PATIENCE * best * effort
        if given_up:
            kept = [(one, of) for one, of in zip(made.found, said, strict=True) if (one, of) not in new]
            made.found, said = [one for one, _ in kept], tuple(of for _, of in kept)
        if given_up or not new:
            break
    how = BoundedBoxes(
        made,
        refusals=tuple(refusals),
        unanswered=tuple(unanswered),
        given_up=given_up,
        learned=_learned(problem, made.found, said, refused, effort),
    )
    reports = tuple(of.report for of in told.values() if of.report)
    return replace(_found(problem, how), replies=placed(problem, said), told=reports)


def _learned(
    problem: Problem,
    found: Sequence[Candidate],
    said: Sequence[CompilerReply],
    refused: Mapping[tuple[int, ...], str],
    effort: int,
) -> Learned | None:
    """What the compiler's cycles of one shape say of the candidates that cost more than those that it took."""
    from layoutproof.searching.learned import OfOneShape, correction, fitted, learned

    compiled = [(OfOneShape(one), of.report) for one, of in zip(found, said, strict=True) if not of.stand_in]
    numbers = problem.declared.model.machine
    if len(problem.shapes) > 1 or correction(fitted(compiled, numbers)) is None:
        return None
    # what else is judged is no part of the answer
    own = Checker(problem, effort=effort)

    def allowed(values: Mapping[str, int]) -> str:
        return refused.get(tuple(values.values())) or own(values)

    known = {tuple(one.values.values()) for one in found}
    more = search(problem, allowed, len(found) + DEARER, effort).found
    rest = [OfOneShape(one) for one in more if tuple(one.values.values()) not in known]
    return learned(compiled, rest, numbers, lambda one: True)


def _answers(searched: Tilings) -> Sequence[Sequence[CompilerAnswer]]:
    """The compiler's answers on the found candidates, for each shape; () for those that it was not asked about."""
    if searched.replies is None:
        return [()] * len(searched.found)
    from layoutproof.searching.compiled import answers_of

    return [answers_of(one) for one in searched.replies]
