"""Candidates of a declared kernel, as the TPU compiler is asked about them: as a Pallas call with the file's body.

The call is traced, sent and compiled as those of a function of the user are (`compiler_stage`), once for each shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from layoutproof.compiler.tracing import Tracing, permit, running
from layoutproof.core.errors import LayoutError, Undecided, shorten
from layoutproof.kernel.kernel import CompilerAnswer, Unmodelled
from layoutproof.kernel.kernel_print import array_text, mapping_of
from layoutproof.mosaic.ask import CompilerQuestion
from layoutproof.mosaic.ask import asked as question
from layoutproof.pallas.compiled import Compiled
from layoutproof.searching import problems
from layoutproof.searching.branch import Candidate
from layoutproof.searching.compiler_stage import CompilerRank, Report, accepted, order, reports, skipped, vmem, words
from layoutproof.searching.neighbours import Neighbours
from layoutproof.searching.problem import BODY_RAISED, Problem, WeightedSizes
from layoutproof.searching.ready import FOLDERS

CALL = "layoutproof.searching.declared_call:call"
_RAISED = "tracing the function raised "
_OWN_FAULT = re.compile(r"(Name|UnboundLocal|Type|Attribute|Import|ModuleNotFound|Syntax|Key|Index)Error: ")
"""Errors that do not depend on block sizes: the body is wrong, and no other tiling helps."""


@dataclass(frozen=True, slots=True)
class CompilerReply:
    """The compiler's answer on one candidate. report: one for each shape, () = it was not asked: `unasked` says why.

    stand_in: the compiled kernel has a body that writes zeros, because the file names none: its windows and scratch.
    place: where it stands by the compiler's estimates, None = it has none, or was not compared.
    """

    values: Mapping[str, int]
    report: Report = ()
    unasked: str = ""
    stand_in: bool = False
    place: CompilerRank | None = None

    @property
    def accepted(self) -> bool | None:
        """Whether the compiler takes the kernel itself, None = unknown."""
        taken = accepted(self.report)
        return None if taken and self.stand_in else taken

    @property
    def vmem(self) -> int | None:
        """Bytes of VMEM that the largest of its kernels takes, exactly; None where that is not known of all."""
        return None if self.stand_in else vmem(self.report)

    def exact(self, shapes: int) -> list[int | None]:
        """The same of each shape; one shape may have several kernels."""
        each = [one.vmem.total if one.vmem else None for one in self.report]
        return each if len(each) == shapes and not self.stand_in else [self.vmem]

    @property
    def refused(self) -> str:
        """The compiler's words, "" where it does not refuse."""
        return words(self.report) if self.accepted is False else ""

    @property
    def unknown(self) -> str:
        """Why the compiler gave no answer, "" where it did."""
        return self.unasked or ("" if self.accepted is False else words(self.report))

    @property
    def word(self) -> str:
        """The same in one word or two."""
        if not self.report or skipped(self.report):
            return "not asked"
        if self.unknown:
            return "unknown"
        return "refused" if self.refused else "windows only" if self.stand_in else "accepted"


def asked(
    problem: Problem,
    found: Sequence[Candidate],
    known: Sequence[CompilerReply] = (),
    *,
    estimate: bool = True,
    progress: Callable[[str, str], None] = lambda title, what: None,
    learned: Neighbours | None = None,
) -> tuple[CompilerReply, ...]:
    """The compiler's answer on each, for all shapes of the problem; those in `known` are not asked again.

    estimate: whether cycles are asked for too; never of a stand-in.  progress, learned: as of `compiler_stage.reports`.
    Raises LayoutError where the kernel's body is not there or cannot be traced.
    """
    said = {tuple(one.values.values()): one for one in known}
    new = [one.values for one in found if tuple(one.values.values()) not in said]
    body = problem.declared.body
    try:
        rule = None if body is None else _rule(body, Path(problem.source).parent)
        questions = [partial(_questions, problem, values, estimate, rule) for values in new]
        told = reports(questions, len(new), progress, learned)
    except Undecided as undecided:
        return tuple(CompilerReply(one.values, unasked=str(undecided)) for one in found)
    for values, report in zip(new, told, strict=True):
        said[tuple(values.values())] = CompilerReply(values, report, stand_in=not body)
    return tuple(said[tuple(one.values.values())] for one in found)


def _rule(body: str, near: Path) -> Tracing:
    """Which code a search file may name. Ready kernels are ours, and no list of modules of the user's has them."""
    return running() if near in FOLDERS else permit(body, near)


def _questions(
    problem: Problem, values: Mapping[str, int], estimate: bool, rule: Tracing | None
) -> list[CompilerQuestion | Compiled]:
    """The questions about one candidate; where its body refuses these block sizes, that answer."""
    from layoutproof.pallas.from_jax.user import calls_of

    found: list[CompilerQuestion | Compiled] = []
    for shape in problem.shapes:
        kernel = problem.bind(shape, values)
        args, kwargs = _arguments(problem, shape, values, rule)
        try:
            (call,) = calls_of(CALL, args, kwargs, target=problem.target)
        except LayoutError as error:
            raised = error.problem.removeprefix(_RAISED)
            if raised == error.problem or _OWN_FAULT.match(raised):
                why = problems.NOT_TRACED(problem.declared.body or problem.name, raised)
                raise LayoutError(why, file=error.file or problem.source, line=error.line) from None
            found.append(Compiled(kernel.name, problem.target, refused=BODY_RAISED + shorten(raised, 300)))
            continue
        if isinstance(call, Unmodelled):
            found.append(Compiled(kernel.name, problem.target, problem=call.reason))
            continue
        found.append(
            question(CALL, args, kwargs, call, 0, problem.target, estimate and problem.declared.body is not None)
        )
    return found


def _arguments(
    problem: Problem, shape: WeightedSizes, values: Mapping[str, int], rule: Tracing | None
) -> tuple[list[str], dict[str, object]]:
    """What CALL takes for one candidate of one shape."""

    kernel = problem.bind(shape, values)
    args = [array_text(f"{'s' if table.signed else 'u'}{table.bits}", table.dims) for table in kernel.tables]
    args += [array_text(operand.dtype, operand.dims) for operand in kernel.inputs]
    named = {**shape.sizes, **values}
    return args, {"mapping": mapping_of(kernel), "body": problem.declared.body or "", "named": named, "rule": rule}


def answers_of(told: CompilerReply) -> tuple[CompilerAnswer, ...]:
    """The compiler's answers on the user's kernel, for each shape; () where it was not asked, or of another body."""
    return () if told.accepted is None else tuple(one.answer() for one in told.report)


def weighed(problem: Problem) -> Callable[[Report], int | None]:
    """The measure that compares candidates: like the cost the worst or the sum over the shapes, by weight."""

    def cycles_of(report: Report) -> int | None:
        each = [one.estimate.ranked for one in report]
        if not each or len(each) != len(problem.shapes) or None in each:
            return None
        known = [(many or 0) * shape.weight for many, shape in zip(each, problem.shapes, strict=True)]
        return max(known) if problem.worst else sum(known)

    return cycles_of


def placed(problem: Problem, told: Sequence[CompilerReply]) -> tuple[CompilerReply, ...]:
    """The same candidates with their places, as `compiler_stage.order` has them."""
    places = {one.at: one for one in order([one.report for one in told], weighed(problem))}
    return tuple(replace(one, place=places.get(k)) for k, one in enumerate(told))
