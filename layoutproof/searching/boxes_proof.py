"""The proof of a search of boxes of candidates of a declared kernel, and the fate of those that are not shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from layoutproof.compiler.libtpu import version
from layoutproof.core.errors import shorten
from layoutproof.core.result import plain
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
        return f"not asked: {unasked or 'there is nothing to compile'}"
    if found.problem.declared.body is None:
        return f"{version()}, ahead of time, windows and scratch only: a stand-in that writes zeros, not the kernel"
    return f"{version()}, ahead of time, with the kernel's own body"


def _proof(searched: Tilings, how: BoundedBoxes, aside: bool) -> tuple[Line, ...]:
    """The proof of the whole answer, and its engine. aside: whether headroom sets any candidate aside."""
    problem, found, why_open = searched.problem, how.certificate, unproved(searched)
    if why_open:
        bound = how.progress.bound
        left = () if bound is None else (("bound", f"what is left costs no less than {cost_text(problem, bound)}"),)
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
    what = f"nothing outside of {whole} that {rules} costs less than {dearest}"
    who = {
        "enumerated": f"all {found.covered} candidates enumerated",
        "bounds": f"all {found.covered} candidates covered by {found.boxes} boxes, each bounded anew",
    }.get(found.kind, "unsat for z3")
    return (("certificate", f"{found.kind}: {what}; {who}"), *unknown)


def _details(searched: Tilings, how: BoundedBoxes) -> tuple[Line, ...]:
    """The candidates that the certificate of a best answer leaves out, and cheaper ones that are refused."""
    found, count = how.certificate, searched.problem.count()
    if found is None or unproved(searched) or not searched.found:
        return ()
    left = f"{searched.asked - count} of the {searched.asked} are left out first, see below"
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
    left = "more VMEM, by the model, than headroom leaves of the limit"
    return [("", f"{count} {what}: {left if why == 'VMEM' else shorten(why, 160)}") for count, why in shown]


def _none(searched: Tilings, how: BoundedBoxes) -> tuple[Line, ...]:
    """That nothing is feasible, the certificate of that, and which conditions cannot be met together."""
    why, found = how.infeasible, how.certificate
    lines = [("none", f"no candidate of {searched.asked} is feasible")]
    if found is not None:
        lines.append(("certificate", f"bounds: {found.boxes} boxes cover all {found.covered}, each bounded anew"))
    if how.refusals:
        lines.append(("", f"the compiler refused {len(how.refusals)} that the model allows"))
    if why is None:
        return tuple(lines)
    if not why.conditions:
        return (*lines, ("infeasible", "the kernel itself: no condition that could be left out is needed for it"))
    *most, last = why.conditions
    if not why.complete:
        said = f"{', '.join(most)} and {last}" if most else last
        lines.append(("infeasible", f"{shorten(said, 600)} cannot all be met"))
        lines.append(("", "perhaps fewer of them cannot, which is not known within the budget; --effort raises it"))
    elif not most:
        lines.append(("infeasible", f"{last} cannot be met"))
    else:
        one = "either alone" if len(most) == 1 else f"any {len(most)} of them"
        lines.append(("infeasible", f"{', '.join(most)} and {last} cannot all be met; {one} can"))
    if why.enough is not None:
        lines.append(("", f"{mebibytes(why.enough)} of VMEM would do ({why.enough} bytes)"))
    return tuple(lines)


def _model(problem: Problem, stage: CompilerStage | None) -> tuple[Line, ...]:
    """The cost model and where its constants come from."""
    cost = "time" if problem.cost is None else str(problem.cost)
    model = problem.declared.model
    kept = problem.kept_free(model.kernel)
    several = f", the {'worst' if problem.worst else 'sum'} over {len(problem.shapes)} shapes"
    lines = [
        ("cost", f"{cost}{several if len(problem.shapes) > 1 else ''}; nothing here was measured on a chip"),
        ("time", "steps x overhead + the larger of HBM bytes / bandwidth and flops / peak + the scratch that each "
         "sum over steps fills first / stores + the first fetch and the last write, one block of each operand, "
         "which no step hides"),
        ("HBM bytes", "a block moves when its index changes from one grid step to the next, in grid order"),
        ("VMEM", "windows in tiles, two buffers each where they move, and scratch; limit "
         f"{problem.vmem} bytes ({mebibytes(problem.vmem)}); what spills from registers comes on top"),
        ("headroom", f"{kept.percent}% of VMEM is kept free for that; {kept.source}"),
    ]  # fmt: skip
    lines += [("source", source) for source in sources(model.machine, problem.step_overhead is not None)]
    lines += [("compiler", stage.said)] if stage else []
    if any(one.looked_up for one in model.traffic):
        lines.append(("tables", "entries of tables count as if no two in a row were equal"))
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
