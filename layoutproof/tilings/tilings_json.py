"""Answers about tilings as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal, TypedDict

from layoutproof.core.document import Doc, Exactly, envelope
from layoutproof.core.finding import Finding, FindingEntry, as_dict
from layoutproof.core.result import plain
from layoutproof.tilings.branch import Candidate
from layoutproof.tilings.document import CertificateEntry, ProblemDocument
from layoutproof.tilings.legal import Partial
from layoutproof.tilings.machines import sources
from layoutproof.tilings.others import others
from layoutproof.tilings.presolve import Removed
from layoutproof.tilings.problem import Problem
from layoutproof.tilings.solve import Tilings
from layoutproof.tilings.tilings_text import UNCOUNTED, compiler_said


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


class PartialEntry(TypedDict):
    """What reaches over the edge of an array."""

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
    """What the cost rests on."""

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


class StageEntry(TypedDict):
    asked: bool
    said: str
    candidates: dict[str, int]


class RefusalEntry(TypedDict):
    values: dict[str, int]
    message: str


class _Besides(TypedDict, total=False):
    infeasible: Annotated[InfeasibleEntry, Doc("an irreducible infeasible subset: fewer of its conditions can be met")]
    conflict: Annotated[InfeasibleEntry, Doc("the older name of `infeasible`")]
    front: FrontEntry
    compiler: StageEntry
    refused_by_compiler: list[RefusalEntry]


class TilingsDocument(ProblemDocument, _Besides):
    """The best tilings of a declared kernel. Times in picoseconds, sizes in bytes."""

    reason: str
    candidates: int
    cost: str
    over: Annotated[str, Exactly(Literal["worst", "sum"])]
    best: list[TilingEntry]
    certificate: CertificateEntry | None
    bound: int | None
    refused: Annotated[dict[str, int], Doc("candidates by reason, of all")]
    because: Because
    unknown: dict[str, int]
    not_judged: Annotated[int, Doc("candidates that cost no less than the last of `best` and were not judged")]
    set_aside: SetAsideEntry
    compute: Annotated[str, Doc("`counted`, or why it is not in the cost")]
    left_out: list[Annotated[dict[str, Any], Exactly(Removed)]]
    model: ModelEntry


def as_json(answer: Tilings) -> TilingsDocument:
    """The whole answer. Times and costs in picoseconds (a cost of the user's own in its own unit), sizes in bytes."""
    problem, progress, shown = answer.problem, answer.progress, answer.shown()
    over, counted = shown.partials(), others(answer)
    return {
        **envelope(answer.verdict.exit_code),
        "subject": problem.name,
        "target": problem.target,
        "verdict": answer.verdict.value,
        "reason": answer.unknown,
        "candidates": answer.asked,
        "cost": "time" if problem.cost is None else str(problem.cost),
        "over": "worst" if problem.worst else "sum",
        "best": [
            {
                **candidate_json(problem, one),
                "findings": _findings(shown.findings[k]),
                "partial_blocks": partial_json(over[k]),
                **_compiled(shown, k),
            }
            for k, one in enumerate(shown.progress.found)
        ],
        "certificate": _certificate(answer),
        "bound": progress.bound,
        "refused": dict(counted.refused),
        "because": because_json(counted.because),
        "unknown": dict(counted.unknown),
        "not_judged": counted.not_judged,
        "set_aside": {
            "count": counted.many,
            "why": problem.headroom.aside.removeprefix("set aside: ") if counted.many else "",
            "candidates": [
                {"values": dict(one.values), "cost": one.cost, "vmem": max(row["vmem"] for row in one.figures)}
                for one in counted.aside
            ],
        },
        "compute": "counted" if problem.flops is not None else UNCOUNTED,
        "left_out": [{**asdict(each), "values": list(each.values)} for each in answer.removed],
        "model": {
            "bandwidth": problem.machine.bandwidth,
            "peak": problem.machine.peak,
            "stores": problem.machine.stores,
            "step_overhead_ps": problem.machine.overhead,
            "vmem_limit": problem.vmem,
            "headroom_percent": problem.headroom.percent,
            "headroom_source": problem.headroom.source,
            "sources": list(sources(problem.machine, problem.overhead_given)),
        },
        **_besides(answer),
    }


def _besides(answer: Tilings) -> _Besides:
    """What there is to say where nothing is feasible, of a Pareto front, and of the compiler."""
    found: _Besides = {}
    if answer.infeasible is not None:
        why = answer.infeasible
        found["infeasible"] = found["conflict"] = {
            "conditions": list(why.conditions), "enough_vmem": why.enough, "complete": why.complete
        }  # fmt: skip
    if answer.front is not None:
        found["front"] = {
            "found": [candidate_json(answer.problem, one) for one in answer.front.found],
            "covered": answer.front.covered,
            "reason": answer.front.unknown,
        }
    if answer.compiled is not None:
        from layoutproof.tilings.compiler_stage import tally

        said = compiler_said(answer)
        found["compiler"] = {"asked": bool(answer.told), "said": said, "candidates": tally(answer.told)}
    if answer.refusals:
        found["refused_by_compiler"] = [{"values": dict(one.values), "message": m} for one, m in answer.refusals]
    return found


def because_json(because: Mapping[str, Finding]) -> dict[str, BecauseEntry]:
    """What a rule found of the first candidate of each reason."""
    return {
        reason: {"question": f.question, "subject": f.subject, "reason": f.reason, "fix": f.fix}
        for reason, f in because.items()
    }


def _compiled(shown: Tilings, k: int) -> _OfCompiler:
    """What the compiler says of one row; exact_vmem is that of the shape that takes most."""
    if not shown.compiled:
        return {}
    from layoutproof.tilings.compiler_stage import no_estimate, vmem

    told = shown.compiled[k]
    place = told.place
    return {
        "compiler": {"accepted": told.accepted, "said": told.word, "message": told.refused or told.unknown},
        "exact_vmem": None if told.stand_in else vmem(told.report),
        "estimate": None if place is None else {"rank": place.rank, "tied": place.tied, "cycles": place.cycles},
        "no_estimate": no_estimate(told.report) if told.report and place is None and not told.stand_in else "",
    }


def figures_json(row: Mapping[str, int]) -> ModelFigures:
    """The model's figures of one candidate, or of all its calls."""
    return {
        "time": row["time"], "bytes": row["bytes"], "flops": row["flops"], "carried": row["carried"],
        "steps": row["steps"], "vmem": row["vmem"], "padding": row["padding"],
    }  # fmt: skip


def candidate_json(problem: Problem, one: Candidate) -> CandidateEntry:
    """One candidate: its values, its cost, and its figures for each shape."""
    rows: list[ShapeEntry] = [
        {
            "sizes": dict(shape.sizes),
            **figures_json(row),
            "intensity": row["flops"] / row["bytes"] if row["bytes"] else None,
        }
        for shape, row in zip(problem.shapes, one.figures, strict=True)
    ]
    return {"values": dict(one.values), "cost": one.cost, "shapes": rows}


def partial_json(found: Sequence[Partial]) -> list[PartialEntry]:
    """What reaches over the edge of an array, with its mask; reduced_over: grid indices that are in no output."""
    return [
        {"operand": p.operand, "dimension": p.dimension, "mask": p.condition, "reduced_over": list(p.reduced)}
        for p in found
    ]


def _certificate(answer: Tilings) -> CertificateEntry | None:
    found = answer.certificate
    if found is None:
        return None
    return {
        "kind": found.kind,
        "covered": found.covered,
        "boxes": found.boxes,
        "cheaper_but_not_legal": dict(found.cheaper or {}),
        "counterexample": plain(found.counterexample),
        "reason": found.reason,
    }


def _findings(shapes: Sequence[Sequence[Finding]]) -> list[FindingEntry]:
    """What was asked of one candidate, over all shapes, each answer once."""
    rows: list[FindingEntry] = []
    for finding in (f for findings in shapes for f in findings):
        row = as_dict(finding)
        if row not in rows:
            rows.append(row)
    return rows
