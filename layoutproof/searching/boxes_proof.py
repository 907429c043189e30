"""The proof of a search of boxes of candidates of a declared kernel, and the fate of those that are not shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from layoutproof.compiler.libtpu import version
from layoutproof.core.errors import shorten
from layoutproof.core.result import plain
from layoutproof.searching import problems
from layoutproof.searching.answer import CompilerStage, Line, TilingAnswer
from layoutproof.searching.document import CertificateEntry
from layoutproof.searching.machines import sources
from layoutproof.searching.others import others
from layoutproof.searching.problem import UNDECIDED, Problem
from layoutproof.searching.tilings import BoundedBoxes, Tilings, set_aside, uncompiled, unproved
from layoutproof.searching.tilings_text import REASONS, cost_text, mebibytes

UNCOUNTED = "not counted, since the file states no flops"


def proved(answer: TilingAnswer, found: Tilings) -> TilingAnswer:
    """The answer with its proof, and the state of every candidate that is not shown, which is gone through for it."""
    problem, how, counted = found.problem, found.bounded, others(found)
    return replace(
        answer,
        proof=_proof(found, how, counted.many > 0),
        details=_details(found, how),
        certificate=_certificate(how),
        model=_model(problem, answer.stage),
        others=counted,
        compute="" if problem.flops is not None else UNCOUNTED,
        bound=how.progress.bound,
        front=how.front,
        infeasible=how.infeasible,
        left_out=how.removed,
    )


def asked(found: Tilings) -> str:
    """Which compiler was asked what, or why it was not."""
    unasked = next((one.unasked for one in found.replies or () if not one.report), "")
    if unasked or not found.told:
        return problems.NOT_ASKED(unasked or problems.NOTHING_TO_COMPILE())
    if found.problem.declared.body is None:
        return problems.STAND_IN_ASKED(version())
    return problems.OWN_BODY_ASKED(version())


def _proof(searched: Tilings, how: BoundedBoxes, aside: bool) -> tuple[Line, ...]:
    """The proof of the whole answer, and its engine. aside: whether headroom sets any candidate aside."""
    problem, found, why_open = searched.problem, how.certificate, unproved(searched)
    if why_open:
        bound = how.progress.bound
        left = () if bound is None else (("bound", problems.BOUND_OF_REST(cost_text(problem, bound))),)
        return (("unknown", why_open), *left)
    refused = uncompiled(searched)
    if not searched.found:
        open_ones = set_aside(searched) or refused
        return (("unknown", open_ones),) if open_ones else _none(searched, how)
    unknown = (("unknown", refused),) if refused else ()
    if found is None:
        return unknown
    dearest = cost_text(problem, searched.found[-1].cost)
    many = len(searched.found)
    whole = "the table" if searched.best is None or many <= searched.best else f"the {many} that the compiler takes"
    rules = "the rules allow and headroom leaves" if aside else "the rules allow"
    what = problems.NOTHING_CHEAPER(whole, rules, dearest)
    who = {
        "enumerated": problems.ALL_ENUMERATED(found.covered),
        "bounds": problems.ALL_BOUNDED(found.covered, found.boxes),
    }.get(found.kind, problems.UNSAT_FOR_Z3())
    return (("certificate", problems.CERTIFICATE(found.kind, what, who)), *unknown)


def _details(searched: Tilings, how: BoundedBoxes) -> tuple[Line, ...]:
    """The candidates that the certificate of a best answer leaves out, and cheaper ones that are refused."""
    found, count = how.certificate, searched.problem.count()
    if found is None or unproved(searched) or not searched.found:
        return ()
    left = problems.LEFT_OUT(searched.asked - count, searched.asked)
    cheaper = _by_kind(found.cheaper or {}, "cheaper, but left out")
    return (*([("", left)] if count != searched.asked else []), *cheaper)


def _by_kind(refused: Mapping[str, int], what: str) -> list[Line]:
    """Reasons with the number of candidates, those of one property together."""
    kinds: dict[str, tuple[int, str]] = {}
    for why, count in Counter(refused).items():
        kind = why.removeprefix(UNDECIDED).split(" ", 1)[0]
        total, first = kinds.get(kind, (0, why))
        kinds[kind] = (total + count, first)
    shown = sorted(kinds.values(), key=lambda pair: -pair[0])[:REASONS]
    left = problems.ABOVE_HEADROOM()
    return [("", f"{count} {what}: {left if why == 'VMEM' else shorten(why, 160)}") for count, why in shown]


def _none(searched: Tilings, how: BoundedBoxes) -> tuple[Line, ...]:
    """That nothing is feasible, the certificate of that, and which conditions cannot be met together."""
    why, found = how.infeasible, how.certificate
    lines = [("none", problems.NONE_FEASIBLE(searched.asked))]
    if found is not None:
        lines.append(("certificate", problems.BOXES_COVER_ALL(found.boxes, found.covered)))
    if how.refusals:
        lines.append(("", problems.COMPILER_REFUSED(len(how.refusals))))
    if why is None:
        return tuple(lines)
    if not why.conditions:
        return (*lines, ("infeasible", problems.KERNEL_ITSELF()))
    *most, last = why.conditions
    if not why.complete:
        said = f"{', '.join(most)} and {last}" if most else last
        lines.append(("infeasible", problems.NOT_ALL_MET(shorten(said, 600))))
        lines.append(("", problems.PERHAPS_FEWER()))
    elif not most:
        lines.append(("infeasible", problems.NOT_MET(last)))
    else:
        one = "either alone" if len(most) == 1 else f"any {len(most)} of them"
        lines.append(("infeasible", problems.NOT_MET_TOGETHER(", ".join(most), last, one)))
    if why.enough is not None:
        lines.append(("", problems.ENOUGH_VMEM(mebibytes(why.enough), why.enough)))
    return tuple(lines)


def _model(problem: Problem, stage: CompilerStage | None) -> tuple[Line, ...]:
    """The cost model and where its constants come from."""
    cost = "time" if problem.cost is None else str(problem.cost)
    model = problem.declared.model
    kept = problem.kept_free(model.kernel)
    several = f", the {'worst' if problem.worst else 'sum'} over {len(problem.shapes)} shapes"
    lines: list[Line] = [
        ("cost", problems.COST_MODEL(cost, several if len(problem.shapes) > 1 else '')),
        ("time", problems.TIME_MODEL()),
        ("HBM bytes", problems.TRAFFIC_MODEL()),
        ("VMEM", problems.VMEM_MODEL(problem.vmem, mebibytes(problem.vmem))),
        ("headroom", problems.HEADROOM_KEPT(kept.percent, kept.source)),
    ]  # fmt: skip
    lines += [("source", source) for source in sources(model.machine, problem.step_overhead is not None)]
    lines += [("compiler", stage.said)] if stage else []
    if any(one.looked_up for one in model.traffic):
        lines.append(("tables", problems.TABLE_MODEL()))
    return tuple(lines)


def _certificate(how: BoundedBoxes) -> CertificateEntry | None:
    found = how.certificate
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
