"""The answer of a search over a declared kernel: rows, proof, and the fate of all other candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from layoutproof.compiler.libtpu import version
from layoutproof.core.errors import shorten
from layoutproof.core.result import plain
from layoutproof.searching.answer import CompilerStage, Line, Tiling, TilingAnswer
from layoutproof.searching.document import CertificateEntry
from layoutproof.searching.legal import partials
from layoutproof.searching.machines import sources
from layoutproof.searching.others import others
from layoutproof.searching.problem import UNDECIDED, Problem
from layoutproof.searching.solve import Tilings
from layoutproof.searching.tilings_text import REASONS, cost_text, mebibytes, stage_lines

UNCOUNTED = "not counted, since the file states no flops"


def answer_of(searched: Tilings) -> TilingAnswer:
    """The whole answer; every candidate that is not shown is gone through for it."""
    problem, counted, stage = searched.problem, others(searched), _stage(searched)
    return TilingAnswer(
        problem,
        verdict=searched.verdict,
        reason=searched.unknown,
        candidates=searched.asked,
        rows=_rows(searched),
        proof=_proof(searched, counted.many > 0),
        details=_details(searched),
        certificate=_certificate(searched),
        model=_model(problem, stage),
        others=counted,
        compute="" if problem.flops is not None else UNCOUNTED,
        bound=searched.progress.bound,
        stage=stage,
        front=searched.front,
        infeasible=searched.infeasible,
        left_out=searched.removed,
    )


def _rows(searched: Tilings) -> tuple[Tiling, ...]:
    """The shown rows, the best first, each with its findings."""
    problem, rows = searched.problem, []
    for k in searched.shown:
        one, findings = searched.found[k], searched.findings[k]
        over = {
            (p.operand, p.dimension): p
            for shape, judged in zip(problem.shapes, findings, strict=True)
            for p in partials(problem.bind(shape, one.values), judged)
        }
        reply = searched.compiled[k] if searched.compiled else None
        rows.append(Tiling(one.values, one.cost, one.figures, one.limits, tuple(over.values()), findings, reply))
    return tuple(rows)


def _stage(searched: Tilings) -> CompilerStage | None:
    """The questions to the compiler, and the measure that its estimates compare."""
    if searched.compiled is None:
        return None
    from layoutproof.searching.compiled import weighed

    shown = [searched.compiled[k].report for k in searched.shown if not searched.compiled[k].stand_in]
    return CompilerStage(
        bool(searched.told),
        _asked(searched),
        searched.told,
        stage_lines(shown, searched.told, searched.problem.target, weighed(searched.problem)),
        tuple((one.values, message) for one, message in searched.refusals),
        tuple((one.values, why) for one, why in searched.unanswered),
    )


def _asked(searched: Tilings) -> str:
    """Which compiler was asked what, or why it was not."""
    unasked = next((one.unasked for one in searched.compiled or () if not one.report), "")
    if unasked or not searched.told:
        return f"not asked: {unasked or 'there is nothing to compile'}"
    if searched.problem.body is None:
        return f"{version()}, ahead of time, windows and scratch only: a stand-in that writes zeros, not the kernel"
    return f"{version()}, ahead of time, with the kernel's own body"


def _proof(searched: Tilings, aside: bool) -> tuple[Line, ...]:
    """The proof of the whole answer, and its engine. aside: whether headroom sets any candidate aside."""
    problem, progress, found = searched.problem, searched.progress, searched.certificate
    if searched.unproved:
        bound = progress.bound
        left = () if bound is None else (("bound", f"what is left costs no less than {cost_text(problem, bound)}"),)
        return (("unknown", searched.unproved), *left)
    if not progress.found:
        open_ones = searched.set_aside or searched.uncompiled
        return (("unknown", open_ones),) if open_ones else _none(searched)
    unknown = (("unknown", searched.uncompiled),) if searched.uncompiled else ()
    if found is None:
        return unknown
    dearest = cost_text(problem, progress.found[-1].cost)
    many = len(progress.found)
    whole = "the table" if searched.best is None or many <= searched.best else f"the {many} that the compiler takes"
    rules = "the rules allow and headroom leaves" if aside else "the rules allow"
    what = f"nothing outside of {whole} that {rules} costs less than {dearest}"
    who = {
        "enumerated": f"all {found.covered} candidates enumerated",
        "bounds": f"all {found.covered} candidates covered by {found.boxes} boxes, each bounded anew",
    }.get(found.kind, "unsat for z3")
    return (("certificate", f"{found.kind}: {what}; {who}"), *unknown)


def _details(searched: Tilings) -> tuple[Line, ...]:
    """The candidates that the certificate of a best answer leaves out, and cheaper ones that are refused."""
    found, count = searched.certificate, searched.problem.count()
    if found is None or searched.unproved or not searched.progress.found:
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


def _none(searched: Tilings) -> tuple[Line, ...]:
    """That nothing is feasible, the certificate of that, and which conditions cannot be met together."""
    why, found = searched.infeasible, searched.certificate
    lines = [("none", f"no candidate of {searched.asked} is feasible")]
    if found is not None:
        lines.append(("certificate", f"bounds: {found.boxes} boxes cover all {found.covered}, each bounded anew"))
    if searched.refusals:
        lines.append(("", f"the compiler refused {len(searched.refusals)} that the model allows"))
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
    several = f", the {'worst' if problem.worst else 'sum'} over {len(problem.shapes)} shapes"
    lines = [
        ("cost", f"{cost}{several if len(problem.shapes) > 1 else ''}; nothing here was measured on a chip"),
        ("time", "steps x overhead + the larger of HBM bytes / bandwidth and flops / peak + the scratch that each "
         "sum over steps fills first / stores + the first fetch and the last write, one block of each operand, "
         "which no step hides"),
        ("HBM bytes", "a block moves when its index changes from one grid step to the next, in grid order"),
        ("VMEM", "windows in tiles, two buffers each where they move, and scratch; limit "
         f"{problem.vmem} bytes ({mebibytes(problem.vmem)}); what spills from registers comes on top"),
        ("headroom", f"{problem.headroom.percent}% of VMEM is kept free for that; {problem.headroom.source}"),
    ]  # fmt: skip
    lines += [("source", source) for source in sources(problem.machine, problem.overhead_given)]
    lines += [("compiler", stage.said)] if stage else []
    if any(one.looked_up for one in problem.model.traffic):
        lines.append(("tables", "entries of tables count as if no two in a row were equal"))
    return tuple(lines)


def _certificate(searched: Tilings) -> CertificateEntry | None:
    found = searched.certificate
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
