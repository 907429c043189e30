"""Answers about tilings as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from layoutproof.core.document import document
from layoutproof.core.finding import Finding, as_dict
from layoutproof.core.result import plain
from layoutproof.tilings.branch import Candidate
from layoutproof.tilings.legal import Partial
from layoutproof.tilings.machines import sources
from layoutproof.tilings.others import others
from layoutproof.tilings.problem import Problem
from layoutproof.tilings.solve import Tilings
from layoutproof.tilings.tilings_text import UNCOUNTED, compiler_said


def as_json(answer: Tilings) -> dict[str, Any]:
    """The whole answer. Times and costs in picoseconds (a cost of the user's own in its own unit), sizes in bytes."""
    problem, progress, shown = answer.problem, answer.progress, answer.shown()
    best, over, counted = [], shown.partials(), others(answer)
    for k, one in enumerate(shown.progress.found):
        row: dict[str, Any] = {**candidate_json(problem, one), "findings": _findings(shown.findings[k])}
        row["partial_blocks"] = partial_json(over[k])
        best.append({**row, **_compiled(shown, k)})
    found: dict[str, Any] = {
        "subject": problem.name,
        "target": problem.target,
        "verdict": answer.verdict.value,
        "reason": answer.unknown,
        "candidates": answer.asked,
        "cost": "time" if problem.cost is None else str(problem.cost),
        "over": "worst" if problem.worst else "sum",
        "best": best,
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
                aside_json(one.values, one.cost, max(row["vmem"] for row in one.figures)) for one in counted.aside
            ],
        },
        "compute": "counted" if problem.flops is not None else UNCOUNTED,
        "left_out": [{"variable": d.variable, "values": list(d.values), "first": d.first} for d in answer.removed],
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
    }
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
    if answer.compiled is not None:
        from layoutproof.tilings.compiler_stage import tally

        said = compiler_said(answer)
        found["compiler"] = {"asked": bool(answer.told), "said": said, "candidates": tally(answer.told)}
    if answer.refusals:
        found["refused_by_compiler"] = [{"values": dict(one.values), "message": m} for one, m in answer.refusals]
    return document(answer.verdict.exit_code, found)


def because_json(because: Mapping[str, Finding]) -> dict[str, Any]:
    """What a rule found of the first candidate of each reason."""
    return {
        reason: {"question": f.question, "subject": f.subject, "reason": f.reason, "fix": f.fix}
        for reason, f in because.items()
    }


def aside_json(values: Mapping[str, int], cost: int, vmem: int) -> dict[str, Any]:
    """One candidate that headroom sets aside."""
    return {"values": dict(values), "cost": cost, "vmem": vmem}


def _compiled(shown: Tilings, k: int) -> dict[str, Any]:
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


def candidate_json(problem: Problem, one: Candidate) -> dict[str, Any]:
    """One candidate: its values, its cost, and its figures for each shape."""
    rows = [
        {"sizes": dict(shape.sizes), **row, "intensity": row["flops"] / row["bytes"] if row["bytes"] else None}
        for shape, row in zip(problem.shapes, one.figures, strict=True)
    ]
    return {"values": dict(one.values), "cost": one.cost, "shapes": rows}


def partial_json(found: Sequence[Partial]) -> list[dict[str, Any]]:
    """What reaches over the edge of an array, with its mask; reduced_over: grid indices that are in no output."""
    return [
        {"operand": p.operand, "dimension": p.dimension, "mask": p.condition, "reduced_over": list(p.reduced)}
        for p in found
    ]


def _certificate(answer: Tilings) -> dict[str, Any] | None:
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


def _findings(shapes: Sequence[Sequence[Finding]]) -> list[dict[str, Any]]:
    """What was asked of one candidate, over all shapes, each answer once."""
    rows: list[dict[str, Any]] = []
    for finding in (f for findings in shapes for f in findings):
        row = as_dict(finding)
        if row not in rows:
            rows.append(row)
    return rows
