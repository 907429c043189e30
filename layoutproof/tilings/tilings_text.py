"""Answers about tilings as lines for people: the table, what is proved, the certificate, the model with its sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from layoutproof.compiler.libtpu import version
from layoutproof.core.errors import shorten
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.tilings.branch import Candidate
from layoutproof.tilings.compiled_text import BODY_RAISED, rows_named, stage_lines
from layoutproof.tilings.legal import Partial
from layoutproof.tilings.machines import sources
from layoutproof.tilings.others import Others, others
from layoutproof.tilings.problem import UNDECIDED, Problem
from layoutproof.tilings.solve import Tilings

if TYPE_CHECKING:
    from layoutproof.tilings.compiled import CompilerReply

REASONS = 6
"""Reasons of one kind that are shown."""


FOOTER = "by the model, nothing was measured; --why says it with its sources, what was left out and refused"
UNCOUNTED = "not counted, since the file states no flops"

WITHIN = 2
"""Rows of the front are shown that cost up to so many times the best."""


def text(answer: Tilings, why: bool = True) -> str:
    """What was found, for people: a table and what is proved of it.

    why: also the model with its sources, which properties were proved, and what was left out or refused.
    """
    problem, shown = answer.problem, answer.shown()
    compiler = f", compiler {problem.compiler}" if problem.compiler else ""
    lines = [f"{problem.name}, {problem.target}{compiler}: {answer.asked} candidates"]
    if shown.progress.found:
        lines += ["", *table(problem, shown.progress.found, shown.compiled, masks(shown)), ""]
        lines += _stage(shown)
        lines += _proved(shown) if why else [*partial_notes(masks(shown)), *_notes(shown, unasked=False)]
    if answer.front is not None:
        lines += [
            *([""] if lines[-1] else []),
            f"pareto front: no other is as good in {_cost_name(problem)}, VMEM and padding at once",
        ]
        most = WITHIN * answer.front.found[0].cost if answer.front.found else 0
        near = [one for one in answer.front.found if one.cost <= most] or answer.front.found
        lines += [*table(problem, near), ""]
        beyond = len(answer.front.found) - len(near)
        lines += [_line("not shown", f"{beyond} more cost over {WITHIN}x the best")] if beyond else []
        covered = f"all {answer.front.covered} enumerated anew" if answer.front.covered else "by the search alone"
        lines += [_line("unknown", answer.front.unknown) if answer.front.unknown else _line("complete", covered)]
    lines += [] if lines[-1] == "" else [""]
    counted = others(answer)
    lines += certificate(answer, why, counted.many > 0)
    lines += _counted(answer, counted, why)
    if not why:
        # the compiler's refusals are an answer, and so is what it was not asked
        lines += _refusals(answer)
        lines += [_line("compiler", compiler_said(answer))] if answer.compiled is not None else []
        return "\n".join([*lines, _line("time", FOOTER)])
    lines += _left_out(answer)
    return "\n".join([*lines, "", *model(problem, None if answer.compiled is None else compiler_said(answer))])


def table(
    problem: Problem,
    found: Sequence[Candidate],
    compiled: Sequence[CompilerReply] | None = None,
    masks: Sequence[Sequence[Partial]] = (),
) -> list[str]:
    """The candidates in columns, one row per shape, with all of the model's figures.

    compiled, masks: one entry for each candidate; without any the columns are left out.
    """
    masked = any(masks)
    compiler = _compiler_columns(compiled or (), len(problem.shapes))
    head, chosen = _chosen(problem)
    head += ["time", "limit", "HBM bytes", "flop/byte", "steps", "VMEM", "padding"]
    head += ["to mask"] if masked else []
    rows = [[*head, *(name for name, _ in compiler)]]
    for rank, one in enumerate(found):
        for k, row in enumerate(one.figures):
            cells = [*chosen(rank, one, k), *figures_cells(problem, row)]
            if masked:
                cells.append(", ".join(f"{m.operand}[{m.dimension}]" for m in masks[rank]) if k == 0 else "")
            rows.append([*cells, *(told(rank, k) for _, told in compiler)])
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    return ["  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def _chosen(problem: Problem) -> tuple[list[str], Callable[[int, Candidate, int], list[str]]]:
    """The columns of what a candidate is: their names, and (rank, candidate, number of a shape) -> a row's cells."""
    names, own, several = list(problem.variables), problem.cost is not None, len(problem.shapes) > 1
    head = ["", *names, *([_cost_name(problem)] if own or several else []), *(["shape"] if several else [])]

    def cells(rank: int, one: Candidate, k: int) -> list[str]:
        found = [str(rank + 1), *(str(one.values[n]) for n in names)]
        if own or several:
            found.append(str(one.cost) if own else _time(one.cost))
        # what is of all shapes stands beside the first
        found = found if k == 0 else [""] * len(found)
        return [*found, shape_text(problem.shapes[k].sizes)] if several else found

    return head, cells


def _compiler_columns(compiled: Sequence[CompilerReply], shapes: int) -> list[tuple[str, Callable[[int, int], str]]]:
    """The columns of what the compiler says: (name, (number of a candidate, number of a shape) -> a cell)."""
    exact = [_exact(told, shapes) for told in compiled]

    def cycles(rank: int, k: int) -> str:
        place = compiled[rank].place if k == 0 else None
        return "" if place is None else str(place.cycles)

    def placed(rank: int, k: int) -> str:
        place = compiled[rank].place if k == 0 else None
        return "" if place is None else f"{place.rank}{' tie' if place.tied else ''}"

    columns: list[tuple[str, Callable[[int, int], str]]] = []
    if any(map(any, exact)):
        columns.append(("exact VMEM", lambda rank, k: exact[rank][k]))
    if any(told.place for told in compiled):
        columns += [("cycles", cycles), ("rank", placed)]
    if compiled:
        columns.append(("compiler", lambda rank, k: compiled[rank].word if k == 0 else ""))
    return columns


def _exact(told: CompilerReply, shapes: int) -> list[str]:
    """The VMEM that the compiler says of each shape of a candidate."""
    exact = [mebibytes(of.vmem.total) if of.vmem and not told.stand_in else "" for of in told.report]
    return exact or [""] * shapes


def _stage(shown: Tilings) -> list[str]:
    """What the compiler was asked, and what its estimates compare."""
    if not shown.compiled:
        return []
    from layoutproof.tilings.compiled import weighed

    reports = [told.report for told in shown.compiled if not told.stand_in]
    lines = stage_lines(reports, shown.told, shown.problem.target, weighed(shown.problem))
    return [_line(word, said) for word, said in lines]


def figures_cells(problem: Problem, row: Mapping[str, int]) -> list[str]:
    """time, what limits it, HBM bytes, arithmetic intensity, steps, VMEM, padding."""
    machine = problem.machine
    moved, work = row["bytes"] / machine.bandwidth, row["flops"] / machine.peak
    work += row["carried"] / machine.stores if machine.stores else 0
    overhead = row["steps"] * machine.overhead / 1e12
    limit = "steps" if overhead > max(moved, work) else "HBM" if moved >= work else "compute"
    share = 100 * row["padding"] / row["bytes"] if row["bytes"] else 0.0
    intensity = f"{row['flops'] / row['bytes']:.4g}" if row["flops"] and row["bytes"] else "-"
    return [
        _time(row["time"]), limit, str(row["bytes"]), intensity, str(row["steps"]), mebibytes(row["vmem"]),
        f"{share:.3g}%",
    ]  # fmt: skip


def counted_words(refused: Mapping[str, int]) -> str:
    """How many candidates are refused, and for what most of them are."""
    most = Counter(refused).most_common(2)
    some = ", ".join(f"{n} {shorten(reason, 120)}" for reason, n in most)
    more = ", .." if len(refused) > len(most) else ""
    return some if len(refused) == 1 else f"{sum(refused.values())} candidates: {some}{more}"


def _counted(answer: Tilings, counted: Others, why: bool) -> list[str]:
    """How many candidates are refused, set aside and not judged. why: each reason with what a rule found."""
    refused, lines = Counter(counted.refused), []
    many = refused.most_common(REASONS)
    if refused and not why:
        lines.append(_line("refused", counted_words(refused)))
    for reason, n in many if why else ():
        lines.append(_line("refused", f"{n} {shorten(reason, 200)}"))
        found = counted.because.get(reason)
        if found is not None:
            lines.append(_line("", f"because {shorten(found.reason, 240)}"))
            lines += [_line("", f"fix {shorten(found.fix, 240)}")] if found.fix else []
            lines.append(_line("", f"layoutproof explain {found.question}"))
    left = refused.total() - sum(n for _, n in many)
    lines += [_line("", f"{left} more, for {len(refused) - len(many)} other reasons")] if why and left else []
    if counted.many:
        left_open = "nothing is proved of them, --compile has the compiler decide"
        above = answer.problem.headroom.aside.removeprefix("set aside: ")
        said = f"{counted.many} candidates: {above}; {left_open}"
        if counted.aside:
            first = ", ".join(f"{name}={value}" for name, value in counted.aside[0].values.items())
            cheaper = f"{counted.cheaper} cost less than the last of these, " if counted.cheaper else ""
            said += f"; {cheaper}the cheapest is {first}"
        lines.append(_line("set aside", said))
    if counted.not_judged:
        dearer = ": they cost no less than the last of these" if answer.progress.found else ""
        lines.append(_line("not judged", f"{counted.not_judged} candidates{dearer}"))
    for reason, n in list(counted.unknown.items())[:REASONS] if why else ():
        lines.append(_line("unknown", f"{n} {shorten(reason, 200)}"))
    return [*lines, *([] if answer.problem.flops is not None else [_line("compute", UNCOUNTED)])]


def certificate(answer: Tilings, why: bool = True, aside: bool = False) -> list[str]:
    """What is proved of the whole answer, and by whom. why: also what was refused.  aside: whether any is set aside."""
    progress, found = answer.progress, answer.certificate
    problem, count = answer.problem, answer.problem.count()
    if answer.unproved:
        lines = [_line("unknown", answer.unproved)]
        if progress.bound is not None:
            lines.append(_line("bound", f"what is left costs no less than {cost_text(problem, progress.bound)}"))
        return lines
    if not progress.found and answer.set_aside:
        return [_line("unknown", answer.set_aside)]
    if not progress.found and answer.uncompiled:
        return [_line("unknown", answer.uncompiled)]
    if not progress.found:
        return _none(answer)
    unknown = [_line("unknown", answer.uncompiled)] if answer.uncompiled else []
    if found is None:
        return unknown
    dearest = cost_text(problem, progress.found[-1].cost)
    many = len(progress.found)
    whole = "the table" if answer.best is None or many <= answer.best else f"the {many} that the compiler takes"
    rules = "the rules allow and headroom leaves" if aside else "the rules allow"
    what = f"nothing outside of {whole} that {rules} costs less than {dearest}"
    if found.kind == "enumerated":
        who = f"all {found.covered} candidates enumerated"
    elif found.kind == "bounds":
        who = f"all {found.covered} candidates covered by {found.boxes} boxes, each bounded anew"
    else:
        who = "unsat for z3"
    lines = [_line("certificate", f"{found.kind}: {what}; {who}")]
    if not why:
        return [*lines, *unknown]
    if count != answer.asked:
        lines.append(_line("", f"{answer.asked - count} of the {answer.asked} are left out first, see below"))
    return [*lines, *_because(Counter(found.cheaper or {}), "cheaper, but left out"), *unknown]


def masks(answer: Tilings) -> list[tuple[Partial, ...]]:
    """For each candidate found, the inputs whose partial blocks are reduced over."""
    return [tuple(p for p in found if p.reduced) for found in answer.partials()]


def model(problem: Problem, compiler: str | None = None) -> list[str]:
    """The cost model and where its constants come from. compiler: what was asked of it, None = nothing."""
    cost = "time" if problem.cost is None else str(problem.cost)
    several = f", the {'worst' if problem.worst else 'sum'} over {len(problem.shapes)} shapes"
    lines = [
        _line("cost", f"{cost}{several if len(problem.shapes) > 1 else ''}; nothing here was measured on a chip"),
        _line("time", "steps x overhead + the larger of HBM bytes / bandwidth and flops / peak + the scratch that each "
              "sum over steps fills first / stores + the first fetch and the last write, one block of each operand, "
              "which no step hides"),
        _line("HBM bytes", "a block moves when its index changes from one grid step to the next, in grid order"),
        _line("VMEM", "windows in tiles, two buffers each where they move, and scratch; limit "
              f"{problem.vmem} bytes ({mebibytes(problem.vmem)}); what spills from registers comes on top"),
        _line("headroom", f"{problem.headroom.percent}% of VMEM is kept free for that; {problem.headroom.source}"),
    ]  # fmt: skip
    lines += [_line("source", source) for source in sources(problem.machine, problem.overhead_given)]
    if compiler is not None:
        lines.append(_line("compiler", compiler))
    if any(one.looked_up for one in problem.model.traffic):
        lines.append(_line("tables", "entries of tables count as if no two in a row were equal"))
    return lines


def compiler_said(answer: Tilings) -> str:
    """Which compiler was asked what, or why it was not."""
    unasked = next((one.unasked for one in answer.compiled or () if not one.report), "")
    if unasked or not answer.told:
        return f"not asked: {unasked or 'there is nothing to compile'}"
    if answer.problem.body is None:
        return f"{version()}, ahead of time, windows and scratch only: a stand-in that writes zeros, not the kernel"
    return f"{version()}, ahead of time, with the kernel's own body"


def cost_text(problem: Problem, cost: int) -> str:
    """A cost with its unit, where it has one."""
    return _time(cost) if problem.cost is None else f"{cost} ({problem.cost})"


def shape_text(sizes: Mapping[str, int]) -> str:
    """The sizes of one shape on one line."""
    return ",".join(f"{name}={size}" for name, size in sizes.items())


def mebibytes(size: int) -> str:
    """Bytes for people; exact ones are in the JSON."""
    return f"{size / 2**20:.2f} MiB"


def _proved(answer: Tilings) -> list[str]:
    every = [f for shapes in answer.findings for findings in shapes for f in findings]
    proved = dict.fromkeys(f.question for f in every if f.verdict is Verdict.PROVED)
    other = {f.question for f in every if f.verdict is not Verdict.PROVED}
    lines = [_line("proved of each", ", ".join(name for name in proved if name not in other))]
    return [*lines, *partial_notes(answer.partials()), *_notes(answer)]


def partial_notes(found: Sequence[Sequence[Partial]]) -> list[str]:
    """What reaches over an edge: of each operand and dimension the rows, and the mask of the first of them."""
    rows: dict[tuple[str, int], list[int]] = {}
    for rank, one in enumerate(found, 1):
        for p in one:
            ranks = rows.setdefault((p.operand, p.dimension), [])
            ranks += [rank] if rank not in ranks else []
    lines = []
    for (operand, d), ranks in rows.items():
        p = next(p for p in found[ranks[0] - 1] if (p.operand, p.dimension) == (operand, d))
        said = f"{operand} dimension {d}: the last block reaches over the edge of the array in {rows_named(ranks)}"
        if p.reduced:
            over = " and ".join(p.reduced)
            said += f", and {over} is in no output's index: what lies beyond goes into the result unless the body masks"
            said += f" it; row {ranks[0]}: {p.condition}"
        else:
            said += ": undefined when read, dropped when written"
        lines.append(_line("note", said))
    return lines


def _notes(answer: Tilings, unasked: bool = True) -> list[str]:
    """What else is not proved, of each property and subject once. unasked: also what only a compiler could tell."""
    rows: dict[tuple[str, str], list[int]] = {}
    first: dict[tuple[str, str], Finding] = {}
    for rank, shapes in enumerate(answer.findings, 1):
        for f in (f for findings in shapes for f in findings):
            if (
                f.verdict is not Verdict.PROVED
                and f.question != "partial_blocks"
                and (unasked or f.severity == "error")
            ):
                first.setdefault((f.question, f.subject), f)
                ranks = rows.setdefault((f.question, f.subject), [])
                ranks += [rank] if rank not in ranks else []
    return [
        _line("note", f"{name} {subject} in {rows_named(rows[name, subject])}: {f.verdict.value}, {f.reason}")
        for (name, subject), f in first.items()
    ]


def _none(answer: Tilings) -> list[str]:
    why = answer.infeasible
    lines = [_line("none", f"no candidate of {answer.asked} is feasible")]
    if answer.certificate is not None:
        boxes, covered = answer.certificate.boxes, answer.certificate.covered
        lines.append(_line("certificate", f"bounds: {boxes} boxes cover all {covered}, each bounded anew"))
    if answer.refusals:
        lines.append(_line("", f"the compiler refused {len(answer.refusals)} that the model allows"))
    if why is None:
        return lines
    if not why.conditions:
        return [*lines, _line("infeasible", "the kernel itself: no condition that could be left out is needed for it")]
    *most, last = why.conditions
    if not why.complete:
        said = f"{', '.join(most)} and {last}" if most else last
        lines.append(_line("infeasible", f"{shorten(said, 600)} cannot all be met"))
        lines.append(
            _line("", "perhaps fewer of them cannot, which is not known within the budget; --effort raises it")
        )
    elif not most:
        lines.append(_line("infeasible", f"{last} cannot be met"))
    else:
        one = "either alone" if len(most) == 1 else f"any {len(most)} of them"
        lines.append(_line("infeasible", f"{', '.join(most)} and {last} cannot all be met; {one} can"))
    if why.enough is not None:
        lines.append(_line("", f"{mebibytes(why.enough)} of VMEM would do ({why.enough} bytes)"))
    return lines


def _left_out(answer: Tilings) -> list[str]:
    lines = []
    for left in answer.removed:
        one = f"{len(left.values)} value{'s' if len(left.values) > 1 else ''} of {left.variable}"
        lines.append(_line("left out", f"{one}, e.g. {shorten(left.first, 200)}"))
    return lines + _refusals(answer)


def _refusals(answer: Tilings) -> list[str]:
    lines = []
    for refused, message in answer.refusals[:REASONS]:
        chosen = ", ".join(f"{n}={v}" for n, v in refused.values.items())
        who = "" if message.startswith(BODY_RAISED) else "by the compiler: "
        lines.append(_line("refused", f"{chosen} {who}{shorten(message, 300)}"))
    more = len(answer.refusals) - REASONS
    lines += [_line("", f"and {more} more")] if more > 0 else []
    for one, why in answer.unanswered[:REASONS]:
        chosen = ", ".join(f"{n}={v}" for n, v in one.values.items())
        lines.append(_line("unknown", f"{chosen} by the compiler: {shorten(why, 300)}"))
    return lines


def _because(refused: Mapping[str, int], what: str = "refused") -> list[str]:
    """Reasons with the number of candidates, those of one property together."""
    kinds: dict[str, tuple[int, str]] = {}
    for why, count in refused.items():
        kind = why.removeprefix(UNDECIDED).split(" ", 1)[0]
        total, first = kinds.get(kind, (0, why))
        kinds[kind] = (total + count, first)
    shown = sorted(kinds.values(), key=lambda pair: -pair[0])[:REASONS]
    left = "more VMEM, by the model, than headroom leaves of the limit"
    return [_line("", f"{count} {what}: {left if why == 'VMEM' else shorten(why, 160)}") for count, why in shown]


def _cost_name(problem: Problem) -> str:
    return "time" if problem.cost is None and len(problem.shapes) == 1 else "cost"


def _time(picoseconds: int) -> str:
    for unit, size in (("s", 10**12), ("ms", 10**9), ("us", 10**6)):
        if abs(picoseconds) >= size:
            return f"{picoseconds / size:.4g} {unit}"
    return f"{picoseconds / 1000:.4g} ns"


def _line(word: str, said: str) -> str:
    return f"{word:<14}  {said}"
