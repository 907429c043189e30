"""Answers about tilings as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, TypedDict

from layoutproof.core.document import Doc, Exactly, envelope
from layoutproof.core.finding import Finding, FindingEntry, as_dict
from layoutproof.searching.answer import CompilerStage, Tiling, TilingAnswer
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
    """One candidate at one shape."""

    sizes: dict[str, int]
    intensity: Annotated[float | None, Doc("operations for each byte of HBM")]


class ChosenEntry(TypedDict):
    """Values of the tile variables, and what they cost."""

    values: dict[str, int]
    cost: int


class CandidateEntry(ChosenEntry):
    """One candidate, for each shape."""

    shapes: list[ShapeEntry]


class CallsEntry(ChosenEntry, ModelFigures):
    """A candidate of a traced function, with the figures of all its calls."""


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


class _OfCompiler(TypedDict, total=False):
    compiler: CompilerAnswerEntry
    exact_vmem: Annotated[int | None, Doc("of the shape that takes most")]
    estimate: RankEntry | None
    no_estimate: Annotated[str, Doc("why there is no estimate")]


class TilingEntry(CandidateEntry, _OfCompiler):
    """One of the best, with what was asked of it."""

    findings: list[FindingEntry]
    partial_blocks: list[PartialEntry]


class TracedEntry(CallsEntry):
    """One candidate. Figures are sums over its calls, but vmem is that of the largest."""

    partial_blocks: list[PartialEntry]
    exact_vmem: Annotated[int | None, Doc("by the compiler, where it was asked")]
    estimate: RankEntry | None
    no_estimate: Annotated[str, Doc("why there is no estimate")]


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


Because = Annotated[dict[str, BecauseEntry], Doc("for each reason of `refused` that a rule gives, its first finding")]


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

    found: list[CandidateEntry]
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
    compiler: StageEntry
    refused_by_compiler: list[RefusalEntry]


class _SearchedDocument(ProblemDocument):
    """Shared keys of answers about tilings of a declared kernel and of a traced function."""

    reason: str
    refused: Annotated[dict[str, int], Doc("candidates by reason, of all")]
    because: Because
    unknown: dict[str, int]
    not_judged: Annotated[int, Doc("candidates that cost no less than the last of `best` and were not judged")]
    set_aside: SetAsideEntry
    compute: Annotated[str, Doc("`counted`, or why it is not in the cost")]


class TilingsDocument(_SearchedDocument, _Besides):
    """The best tilings of a declared kernel. Times in picoseconds, sizes in bytes."""

    candidates: int
    cost: str
    over: Annotated[str, Exactly(Literal["worst", "sum"])]
    best: list[TilingEntry]
    certificate: CertificateEntry | None
    bound: int | None
    left_out: list[Annotated[dict[str, Any], Exactly(Removed)]]
    model: ModelEntry


class TracedDocument(_SearchedDocument):
    """The best arguments of a traced function."""

    best: list[TracedEntry]
    certificate: CertificateEntry
    compiler: StageEntry
    notes: list[str]


def as_json(answer: TilingAnswer) -> TilingsDocument | TracedDocument:
    """The whole answer. Times and costs in picoseconds (a cost of the user's own in its own unit), sizes in bytes."""
    problem = answer.problem
    if not isinstance(problem.kernels, DeclaredKernel):
        return {
            **_searched(answer),
            "best": [_traced(one) for one in answer.rows],
            "certificate": answer.certificate or {"kind": "unknown", "covered": 0},
            "compiler": _stage(answer.stage),
            "notes": [said for _, said in answer.model],
        }
    return {
        **_searched(answer),
        "candidates": answer.candidates,
        "cost": "time" if problem.cost is None else str(problem.cost),
        "over": "worst" if problem.worst else "sum",
        "best": [
            {
                **_of_shapes(problem, one),
                "findings": _findings(one.findings),
                "partial_blocks": _partials(one.partials),
                **_compiled(one.reply),
            }
            for one in answer.rows
        ],
        "certificate": answer.certificate,
        "bound": answer.bound,
        "left_out": [{**asdict(each), "values": list(each.values)} for each in answer.left_out],
        "model": _model(problem, problem.kernels.model),
        **_besides(answer, problem),
    }


def _searched(answer: TilingAnswer) -> _SearchedDocument:
    """The keys of both documents."""
    problem, others = answer.problem, answer.others
    return {
        **envelope(answer.verdict.exit_code),
        "subject": problem.name,
        "target": problem.target,
        "verdict": answer.verdict.value,
        "reason": answer.reason,
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
        "compute": answer.compute or "counted",
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
    """The keys of an infeasible problem, of a Pareto front, and of the compiler."""
    found: _Besides = {}
    if answer.infeasible is not None:
        why = answer.infeasible
        found["infeasible"] = found["conflict"] = {
            "conditions": list(why.conditions), "enough_vmem": why.enough, "complete": why.complete
        }  # fmt: skip
    if answer.front is not None:
        found["front"] = {
            "found": [_of_shapes(problem, one) for one in answer.front.found],
            "covered": answer.front.covered,
            "reason": answer.front.unknown,
        }
    if answer.stage is not None:
        found["compiler"] = _stage(answer.stage)
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
        return {}
    from layoutproof.searching.compiler_stage import no_estimate

    place, compares = reply.place, reply.report and not reply.stand_in
    return {
        "compiler": {"accepted": reply.accepted, "said": reply.word, "message": reply.refused or reply.unknown},
        "exact_vmem": reply.vmem,
        "estimate": None if place is None else {"rank": place.rank, "tied": place.tied, "cycles": place.cycles},
        "no_estimate": no_estimate(reply.report) if compares and place is None else "",
    }


def _traced(one: Tiling) -> TracedEntry:
    said = _compiled(one.reply)
    return {
        **_of_calls(one),
        "partial_blocks": _partials(one.partials),
        "exact_vmem": said.get("exact_vmem"),
        "estimate": said.get("estimate"),
        "no_estimate": said.get("no_estimate", ""),
    }


def candidate_json(problem: Problem, one: Candidate) -> CandidateEntry | CallsEntry:
    """A candidate with its values, its cost and its figures: for each shape, or of all calls of a traced function."""
    return _of_shapes(problem, one) if isinstance(problem.kernels, DeclaredKernel) else _of_calls(one)


def _of_calls(one: Candidate) -> CallsEntry:
    return {"values": dict(one.values), "cost": one.cost, **_figures(one.figures[0])}


def _of_shapes(problem: Problem, one: Candidate) -> CandidateEntry:
    rows: list[ShapeEntry] = [
        {
            "sizes": dict(shape.sizes),
            **_figures(row),
            "intensity": row["flops"] / row["bytes"] if row["bytes"] else None,
        }
        for shape, row in zip(problem.shapes, one.figures, strict=True)
    ]
    return {"values": dict(one.values), "cost": one.cost, "shapes": rows}


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
