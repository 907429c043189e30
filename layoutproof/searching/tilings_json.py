"""Answers about tilings as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, TypedDict

from layoutproof.core.document import Doc, Exactly, envelope
from layoutproof.core.finding import Finding, FindingEntry, as_dict
from layoutproof.searching.answer import CompilerStage, TilingAnswer
from layoutproof.searching.branch import Candidate
from layoutproof.searching.cost import CostModel, Figures
from layoutproof.searching.document import CertificateEntry, ProblemDocument
from layoutproof.searching.legal import Partial
from layoutproof.searching.machines import sources
from layoutproof.searching.presolve import Removed
from layoutproof.searching.problem import DeclaredKernel, Problem

if TYPE_CHECKING:
    from layoutproof.searching.compiled import CompilerReply


class ModelFigures(TypedDict):
    """`cost.FIGURES` of one candidate."""

    time: int
    bytes: int
    flops: int
    carried: int
    steps: int
    vmem: int
    padding: int


class ShapeEntry(ModelFigures):
    """One candidate at one shape. Of a traced function sums over its calls, but vmem is that of the largest."""

    sizes: Annotated[dict[str, int], Doc("of a declared kernel; a traced function has them in its arguments")]
    intensity: Annotated[float | None, Doc("operations for each byte of HBM")]


class ChosenEntry(TypedDict):
    """Values of the tile variables, and what they cost."""

    values: dict[str, int]
    cost: int


class CandidateEntry(ChosenEntry):
    """One candidate, for each shape."""

    shapes: list[ShapeEntry]


class CallsEntry(CandidateEntry, ModelFigures):
    """A candidate of a traced function: the figures of its one shape stand beside `shapes`, too."""


class PartialEntry(TypedDict):
    """A block that reaches over the edge of an array."""

    operand: str
    dimension: int
    mask: Annotated[str, Doc("of what is inside")]
    reduced_over: Annotated[list[str], Doc("grid indices that are in no output")]


class RankEntry(TypedDict):
    rank: Annotated[int, Doc("from 1; ties share it")]
    tied: bool
    cycles: int


class CompilerAnswerEntry(TypedDict):
    accepted: bool | None
    said: str
    message: str


class _OfCompiler(TypedDict):
    compiler: NotRequired[CompilerAnswerEntry]
    exact_vmem: Annotated[int | None, Doc("of the shape that takes most")]
    estimate: RankEntry | None
    no_estimate: Annotated[str, Doc("why there is no estimate")]


class TilingEntry(CandidateEntry, _OfCompiler):
    """One of the best, with what was asked of it."""

    findings: Annotated[list[FindingEntry], Doc("of a traced function none: `layoutproof kernels` has them")]
    partial_blocks: list[PartialEntry]


class TracedEntry(TilingEntry, ModelFigures):
    """One of the best of a traced function."""


class AsideEntry(ChosenEntry):
    """A candidate of which nothing is proved."""

    vmem: int


class SetAsideEntry(TypedDict):
    """Candidates of which nothing is proved, because of what the registers may spill."""

    count: int
    why: Annotated[str, Doc("empty where there is none")]
    candidates: Annotated[list[AsideEntry], Doc("of a declared kernel the cheapest, a few hundred at most")]


class BecauseEntry(TypedDict):
    """The first refused finding of a rule."""

    question: str
    subject: str
    reason: str
    fix: str


class ModelEntry(TypedDict):
    """The model behind the cost."""

    bandwidth: Annotated[int, Doc("bytes a second")]
    peak: Annotated[int, Doc("operations a second")]
    stores: Annotated[int, Doc("bytes a second that a core stores into VMEM, 0 = not known")]
    step_overhead_ps: int
    vmem_limit: int
    headroom_percent: int
    headroom_source: str
    sources: list[str]


class InfeasibleEntry(TypedDict):
    """Conditions that cannot be met together."""

    conditions: list[str]
    enough_vmem: Annotated[int | None, Doc("bytes of VMEM with which all else can be met")]
    complete: bool


class FrontEntry(TypedDict):
    """With --pareto: all that no other candidate beats in time, VMEM and padding at once."""

    found: list[CandidateEntry | CallsEntry]
    covered: int
    reason: str


class PredictedEntry(TypedDict):
    values: dict[str, int]
    cycles: int


class LearnedEntry(TypedDict):
    """A correction of the model by the compiler's cycles: what it says of candidates that were not compiled."""

    estimates: Annotated[int, Doc("candidates that it rests on")]
    weights: Annotated[list[float], Doc("cycles for a ps of traffic, for a ps of products, and for a step")]
    error_percent: Annotated[float, Doc("of each, predicted by the others alone: the median")]
    worst_percent: Annotated[float, Doc("the largest of them")]
    predicted: Annotated[list[PredictedEntry], Doc("legal by the rules and not compiled, the fewest cycles first")]


class StageEntry(TypedDict):
    asked: bool
    said: str
    candidates: dict[str, int]
    learned: NotRequired[LearnedEntry]


class RefusalEntry(TypedDict):
    values: dict[str, int]
    message: str


class _Besides(TypedDict, total=False):
    infeasible: Annotated[InfeasibleEntry, Doc("an irreducible infeasible subset: fewer of its conditions can be met")]
    conflict: Annotated[InfeasibleEntry, Doc("the older name of `infeasible`")]
    front: FrontEntry
    refused_by_compiler: list[RefusalEntry]


class TilingsDocument(ProblemDocument, _Besides):
    """The best tilings of a declared kernel, or arguments of a traced function.

    Times in picoseconds, sizes in bytes.
    """

    reason: str
    candidates: int
    cost: str
    over: Annotated[str, Exactly(Literal["worst", "sum"])]
    best: list[TilingEntry | TracedEntry]
    certificate: CertificateEntry | None
    bound: int | None
    refused: Annotated[dict[str, int], Doc("candidates by reason, of all")]
    because: Annotated[
        dict[str, BecauseEntry], Doc("for each reason of `refused` that a rule gives, its first finding")
    ]
    unknown: dict[str, int]
    not_judged: Annotated[int, Doc("candidates that cost no less than the last of `best` and were not judged")]
    set_aside: SetAsideEntry
    left_out: list[Annotated[dict[str, Any], Exactly(Removed)]]
    compute: Annotated[str, Doc("`counted`, or why it is not in the cost")]
    compiler: StageEntry
    model: Annotated[ModelEntry | None, Doc("null of a traced function: `notes` say the premises of its figures")]
    notes: Annotated[list[str], Doc("the premises of the figures, a sentence each")]


def as_json(answer: TilingAnswer) -> TilingsDocument:
    """The whole answer. Times and costs in picoseconds (a cost of the user's own in its own unit), sizes in bytes."""
    problem, others = answer.problem, answer.others
    return {
        **envelope(answer.verdict.exit_code),
        "subject": problem.name,
        "target": problem.target,
        "verdict": answer.verdict.value,
        "reason": answer.reason,
        "candidates": answer.candidates,
        "cost": "time" if problem.cost is None else str(problem.cost),
        "over": "worst" if problem.worst else "sum",
        "best": [
            {
                **candidate_json(problem, one),
                "findings": _findings(one.findings),
                "partial_blocks": _partials(one.partials),
                **_compiled(one.reply),
            }
            for one in answer.rows
        ],
        "certificate": answer.certificate,
        "bound": answer.bound,
        "refused": dict(others.refused),
        "because": {
            reason: {"question": f.question, "subject": f.subject, "reason": f.reason, "fix": f.fix}
            for reason, f in others.because.items()
        },
        "unknown": dict(others.unknown),
        "not_judged": others.not_judged,
        "set_aside": {
            "count": others.many,
            "why": others.why,
            "candidates": [
                {"values": dict(one.values), "cost": one.cost, "vmem": max(row["vmem"] for row in one.figures)}
                for one in others.aside
            ],
        },
        "left_out": [{**asdict(each), "values": list(each.values)} for each in answer.left_out],
        "compute": answer.compute or "counted",
        "compiler": _stage(answer.stage),
        "model": _model(problem, problem.kernels.model) if isinstance(problem.kernels, DeclaredKernel) else None,
        "notes": [said for _, said in answer.model],
        **_besides(answer, problem),
    }


def _model(problem: Problem, model: CostModel) -> ModelEntry:
    """The rates of the cost model, and how much of VMEM it may take."""
    machine, kept = model.machine, problem.kept_free(model.kernel)
    return {
        "bandwidth": machine.bandwidth,
        "peak": machine.peak,
        "stores": machine.stores,
        "step_overhead_ps": machine.overhead,
        "vmem_limit": problem.vmem,
        "headroom_percent": kept.percent,
        "headroom_source": kept.source,
        "sources": list(sources(machine, problem.step_overhead is not None)),
    }


def _besides(answer: TilingAnswer, problem: Problem) -> _Besides:
    """The keys of an infeasible problem, of a Pareto front, and of what the compiler refused."""
    found: _Besides = {}
    if answer.infeasible is not None:
        why = answer.infeasible
        found["infeasible"] = found["conflict"] = {
            "conditions": list(why.conditions), "enough_vmem": why.enough, "complete": why.complete
        }  # fmt: skip
    if answer.front is not None:
        found["front"] = {
            "found": [candidate_json(problem, one) for one in answer.front.found],
            "covered": answer.front.covered,
            "reason": answer.front.unknown,
        }
    if answer.stage and answer.stage.refusals:
        found["refused_by_compiler"] = [{"values": dict(one), "message": m} for one, m in answer.stage.refusals]
    return found


def _stage(stage: CompilerStage | None) -> StageEntry:
    # who does not want the compiler does not wait for what asks it
    from layoutproof.searching.compiler_stage import tally

    if stage is None:
        return {"asked": False, "said": "not asked: not wanted", "candidates": tally(())}
    found: StageEntry = {"asked": stage.asked, "said": stage.said, "candidates": tally(stage.told)}
    if stage.learned is not None:
        by = stage.learned.correction
        found["learned"] = {
            "estimates": stage.learned.compiled,
            "weights": list(by.weights),
            "error_percent": round(by.error, 2),
            "worst_percent": round(by.worst, 2),
            "predicted": [{"values": dict(values), "cycles": cycles} for values, cycles in stage.learned.predicted],
        }
    return found


def _compiled(reply: CompilerReply | None) -> _OfCompiler:
    """The compiler's answer on one row; exact_vmem is that of the shape that takes most."""
    if reply is None:
        return {"exact_vmem": None, "estimate": None, "no_estimate": ""}
    from layoutproof.searching.compiler_stage import no_estimate

    place, compares = reply.place, reply.report and not reply.stand_in
    return {
        "compiler": {"accepted": reply.accepted, "said": reply.word, "message": reply.refused or reply.unknown},
        "exact_vmem": reply.vmem,
        "estimate": None if place is None else {"rank": place.rank, "tied": place.tied, "cycles": place.cycles},
        "no_estimate": no_estimate(reply.report) if compares and place is None else "",
    }


def candidate_json(problem: Problem, one: Candidate) -> CandidateEntry | CallsEntry:
    """A candidate with its values, its cost, and its figures for each shape."""
    rows: list[ShapeEntry] = [
        {
            "sizes": dict(shape.sizes),
            **_figures(row),
            "intensity": row["flops"] / row["bytes"] if row["bytes"] else None,
        }
        for shape, row in zip(problem.shapes, one.figures, strict=True)
    ]
    entry: CandidateEntry = {"values": dict(one.values), "cost": one.cost, "shapes": rows}
    return entry if isinstance(problem.kernels, DeclaredKernel) else {**entry, **_figures(one.figures[0])}


def _figures(row: Figures) -> ModelFigures:
    return {
        "time": row["time"], "bytes": row["bytes"], "flops": row["flops"], "carried": row["carried"],
        "steps": row["steps"], "vmem": row["vmem"], "padding": row["padding"],
    }  # fmt: skip


def _partials(found: Sequence[Partial]) -> list[PartialEntry]:
    """The blocks that reach over the edge of an array, with their masks; reduced_over: grid indices in no output."""
    return [
        {"operand": p.operand, "dimension": p.dimension, "mask": p.condition, "reduced_over": list(p.reduced)}
        for p in found
    ]


def _findings(shapes: Sequence[Sequence[Finding]]) -> list[FindingEntry]:
    """The findings on one candidate, over all shapes, each answer once."""
    rows: list[FindingEntry] = []
    for finding in (f for findings in shapes for f in findings):
        row = as_dict(finding)
        if row not in rows:
            rows.append(row)
    return rows
