"""Answers about tilings as text: the table, the proof, the refused candidates, the model and its sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from layoutproof.core.errors import shorten
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.searching import problems
from layoutproof.searching.answer import Tiling, TilingAnswer
from layoutproof.searching.branch import Candidate
from layoutproof.searching.cost import Figures
from layoutproof.searching.legal import Partial
from layoutproof.searching.problem import BODY_RAISED, Problem

if TYPE_CHECKING:
    from layoutproof.searching.compiled import CompilerReply
    from layoutproof.searching.compiler_stage import Report
    from layoutproof.searching.learned import Learned

REASONS = 6
"""Reasons of one kind that are shown."""

NAMED = 6
"""Rows that are named one by one."""

FOOTER = "by the model, nothing was measured; --why says it with its sources, what was left out and refused"
NOT_COUNTED = "not counted, "
"""Precedes the reason why compute is not counted in the cost; without it, the consequence comes first."""

WITHIN = 2
"""Rows of the front are shown that cost up to so many times the best."""


def text(answer: TilingAnswer, why: bool = True) -> str:
    """The answer as text: a table and its proof.

    why: also the model with its sources, which properties were proved, and the candidates left out or refused.
    """
    problem, stage = answer.problem, answer.stage
    compiler = f", compiler {problem.compiler}" if problem.compiler else ""
    lines = [f"{problem.name}, {problem.target}{compiler}: {answer.candidates} candidates{answer.examined}"]
    if answer.rows:
        lines += ["", *table(problem, answer.rows), ""]
        lines += [line(*pair) for pair in (stage.lines if stage else ())]
        lines += _proved(answer.rows) if why else []
        lines += partial_notes([one.partials if why else to_mask(one) for one in answer.rows])
        lines += _notes(answer.rows, unasked=why)
    lines += _front(answer, blank=bool(lines[-1]))
    lines += [] if lines[-1] == "" else [""]
    lines += [line(*pair) for pair in (*answer.proof[:1], *(answer.details if why else ()), *answer.proof[1:])]
    lines += _others(answer, why or not (answer.rows or answer.infeasible))
    if not why:
        # the compiler's refusals are an answer, and so is what it was not asked
        lines += _refusals(answer)
        lines += [line("compiler", stage.said)] if stage else []
        return "\n".join([*lines, line("time", FOOTER)])
    for left in answer.left_out:
        one = f"{len(left.values)} value{'s' if len(left.values) > 1 else ''} of {left.variable}"
        lines.append(line("left out", f"{one}, e.g. {shorten(left.first, 200)}"))
    return "\n".join([*lines, *_refusals(answer), "", *(line(*pair) for pair in answer.model)])


def line(word: str, said: str) -> str:
    """One line of a report; one without a word goes on with what stands above it."""
    return f"{word:<14}  {said}"


def table(problem: Problem, rows: Sequence[Candidate]) -> list[str]:
    """Candidates in columns, one line per shape, with all of the model's figures.

    A figure that no row has, such as the compiler's cycles, has no column.
    """
    masked = any(to_mask(one) for one in rows)
    compiler = _compiler_columns([one.reply if isinstance(one, Tiling) else None for one in rows], len(problem.shapes))
    head, chosen = _chosen(problem)
    head += ["time", "limit", "HBM bytes", "flop/byte", "steps", "VMEM", "padding"]
    head += ["to mask"] if masked else []
    lines = [[*head, *(name for name, _ in compiler)]]
    for rank, one in enumerate(rows):
        for k, (figures, limit) in enumerate(zip(one.figures, one.limits, strict=True)):
            cells = [*chosen(rank, one, k), *_figures(figures, limit)]
            if masked:
                cells.append(", ".join(f"{m.operand}[{m.dimension}]" for m in to_mask(one)) if k == 0 else "")
            lines.append([*cells, *(cell(rank, k) for _, cell in compiler)])
    widths = [max(len(cells[c]) for cells in lines) for c in range(len(lines[0]))]
    return ["  ".join(cell.rjust(w) for cell, w in zip(cells, widths, strict=True)).rstrip() for cells in lines]


def _chosen(problem: Problem) -> tuple[list[str], Callable[[int, Candidate, int], list[str]]]:
    """The columns of what a candidate is: their names, and (rank, candidate, number of a shape) -> a row's cells."""
    names, stated, several = list(problem.variables), problem.cost is not None, len(problem.shapes) > 1
    head = ["", *names, *([cost_name(problem)] if stated or several else []), *(["shape"] if several else [])]

    def cells(rank: int, one: Candidate, k: int) -> list[str]:
        found = [str(rank + 1), *(str(one.values[n]) for n in names)]
        if stated or several:
            found.append(str(one.cost) if stated else time_text(one.cost))
        # figures over all shapes stand beside the first
        found = found if k == 0 else [""] * len(found)
        return [*found, shape_text(problem.shapes[k].sizes)] if several else found

    return head, cells


def _compiler_columns(
    replies: Sequence[CompilerReply | None], shapes: int
) -> list[tuple[str, Callable[[int, int], str]]]:
    """The columns of what the compiler says: (name, (number of a candidate, number of a shape) -> a cell)."""
    exact = [["" if n is None else mebibytes(n) for n in reply.exact(shapes)] if reply else [] for reply in replies]
    places = [reply.place if reply else None for reply in replies]

    def cycles(rank: int, k: int) -> str:
        place = places[rank] if k == 0 else None
        return "" if place is None else str(place.cycles)

    def placed(rank: int, k: int) -> str:
        place = places[rank] if k == 0 else None
        return "" if place is None else f"{place.rank}{' tie' if place.tied else ''}"

    def word(rank: int, k: int) -> str:
        reply = replies[rank] if k == 0 else None
        return "" if reply is None else reply.word

    columns: list[tuple[str, Callable[[int, int], str]]] = []
    if any(map(any, exact)):
        columns.append(("exact VMEM", lambda rank, k: exact[rank][k] if k < len(exact[rank]) else ""))
    if any(places):
        columns += [("cycles", cycles), ("rank", placed)]
    return [*columns, ("compiler", word)] if any(replies) else columns


def _figures(figures: Figures, limit: str) -> list[str]:
    """time, its bottleneck, HBM bytes, arithmetic intensity, steps, VMEM, padding."""
    share = 100 * figures["padding"] / figures["bytes"] if figures["bytes"] else 0.0
    intensity = f"{figures['flops'] / figures['bytes']:.4g}" if figures["flops"] and figures["bytes"] else "-"
    return [
        time_text(figures["time"]), limit, str(figures["bytes"]), intensity, str(figures["steps"]),
        mebibytes(figures["vmem"]), f"{share:.3g}%",
    ]  # fmt: skip


def _front(answer: TilingAnswer, blank: bool) -> list[str]:
    """The Pareto front, and whether it is whole."""
    front, problem = answer.front, answer.problem
    if front is None:
        return []
    most = WITHIN * front.found[0].cost if front.found else 0
    near = [one for one in front.found if one.cost <= most] or front.found
    beyond = len(front.found) - len(near)
    covered = f"all {front.covered} enumerated anew" if front.covered else "by the search alone"
    return [
        *([""] if blank else []),
        f"pareto front: no other is as good in {cost_name(problem)}, VMEM and padding at once",
        *table(problem, near),
        "",
        *([line("not shown", f"{beyond} more cost over {WITHIN}x the best")] if beyond else []),
        line("unknown", front.unknown) if front.unknown else line("complete", covered),
    ]


def counted_words(refused: Mapping[str, int]) -> str:
    """How many candidates are refused, and for what most of them are."""
    most = Counter(refused).most_common(2)
    some = ", ".join(f"{n} {shorten(reason, 120)}" for reason, n in most)
    more = ", .." if len(refused) > len(most) else ""
    return some if len(refused) == 1 else f"{sum(refused.values())} candidates: {some}{more}"


def _others(answer: TilingAnswer, why: bool) -> list[str]:
    """How many candidates are refused, set aside and not judged. why: each reason with what a rule found."""
    others, refused, lines = answer.others, Counter(answer.others.refused), []
    many = refused.most_common(REASONS)
    if refused and not why:
        lines.append(line("refused", counted_words(refused)))
    for reason, n in many if why else ():
        lines.append(line("refused", f"{n} {shorten(reason, 200)}"))
        found = others.because.get(reason)
        if found is not None:
            lines.append(line("", f"because {shorten(found.reason, 240)}"))
            lines += [line("", f"fix {shorten(found.fix, 240)}")] if found.fix else []
            lines.append(line("", f"layoutproof explain {found.question}"))
    left = refused.total() - sum(n for _, n in many)
    lines += [line("", f"{left} more, for {len(refused) - len(many)} other reasons")] if why and left else []
    if others.many:
        left_open = "nothing is proved of them, --compile has the compiler decide"
        said = f"{others.many} candidates: {others.why}; {left_open}"
        if others.aside:
            cheaper = f"{others.cheaper} cost less than the last of these, " if others.cheaper else ""
            said += f"; {cheaper}the cheapest is {chosen_text(others.aside[0].values)}"
        lines.append(line("set aside", said))
    if others.not_judged:
        dearer = ": they cost no less than the last of these" if answer.rows else ""
        lines.append(line("not judged", f"{others.not_judged} candidates{dearer}"))
    for reason, n in list(others.unknown.items())[:REASONS] if why else ():
        lines.append(line("unknown", f"{n} {shorten(reason, 200)}"))
    if answer.compute:
        alone = "" if answer.compute.startswith(NOT_COUNTED) else f"{NOT_COUNTED}so that HBM and steps alone count: "
        lines.append(line("compute", alone + answer.compute))
    return lines


def _proved(rows: Sequence[Tiling]) -> list[str]:
    """The properties that are proved of each row."""
    every = [f for one in rows for findings in one.findings for f in findings]
    proved = dict.fromkeys(f.question for f in every if f.verdict is Verdict.PROVED)
    other = {f.question for f in every if f.verdict is not Verdict.PROVED}
    return [line("proved of each", ", ".join(name for name in proved if name not in other))] if every else []


def to_mask(one: Candidate) -> tuple[Partial, ...]:
    """The inputs whose partial blocks are reduced over."""
    return tuple(p for p in one.partials if p.reduced) if isinstance(one, Tiling) else ()


def partial_notes(found: Sequence[Sequence[Partial]]) -> list[str]:
    """Blocks over an edge: of each operand and dimension the rows, and the mask of the first of them."""
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
        lines.append(line("note", said))
    return lines


def rows_named(ranks: Sequence[int]) -> str:
    """Rows of the table by their numbers, for people."""
    if len(ranks) == 1:
        return f"row {ranks[0]}"
    if list(ranks) == list(range(ranks[0], ranks[-1] + 1)) and len(ranks) > 2:
        return f"rows {ranks[0]} to {ranks[-1]}"
    more = f" and {len(ranks) - NAMED} more" if len(ranks) > NAMED else ""
    return f"rows {', '.join(map(str, ranks[:NAMED]))}{more}"


def stage_lines(
    shown: Sequence[Report],
    told: Sequence[Report],
    target: str,
    cycles_of: Callable[[Report], int | None] | None = None,
) -> tuple[tuple[str, str], ...]:
    """The lines below the rows, as pairs of a label and a text; () where the compiler was not asked.

    shown: the compiler's answer on each row.  told: on each candidate that it was asked about.  cycles_of: as of
    `order`.
    """
    # who does not want the compiler does not wait for what asks it
    from layoutproof.searching.compiler_stage import TIE, accepted, compared_by, cycles, no_estimate, order, tally

    if not any(shown):
        return ()
    cycles_of = cycles_of or cycles
    many = tally(told)
    said = (
        f"{many['accepted']} of the {many['asked']} that were asked about are accepted, the cheapest by the model first"
    )
    said += f"; {many['refused']} refused" if many["refused"] else ""
    said += f"; {many['unknown']} without an answer" if many["unknown"] else ""
    lines = [("compiled", said)]
    if many["skipped"]:
        more = "they hold as much of everything as one that does not fit, which is no proof"
        lines.append(("not asked", f"{many['skipped']} more: {more}"))
    if order(shown, cycles_of):
        lines.append(("estimate", f"{compared_by(target)}; within {TIE} % is a tie"))
        beyond = dict.fromkeys(what for report in shown for one in report for what in one.estimate.unseen)
        lines += [("not in it", "; ".join(beyond))] if beyond else []
    why: dict[str, list[int]] = {}
    for row, report in enumerate(shown, 1):
        if accepted(report) and cycles_of(report) is None:
            why.setdefault(shorten(no_estimate(report), 160), []).append(row)
    return (*lines, *(("no estimate", f"{rows_named(each)}: {reason}") for reason, each in why.items()))


def learned_lines(found: Learned | None) -> tuple[tuple[str, str], ...]:
    """The lines on what the compiler's cycles say of the candidates that were not compiled, as pairs; () = nothing."""
    if found is None:
        return ()
    by = found.correction
    traffic, products, step = by.weights
    # of 10**6 ps
    rates = round(1e6 * traffic), round(1e6 * products), round(step)
    lines = [("learned", problems.LEARNED(found.compiled, *rates, by.error, by.worst))]
    if found.predicted:
        those = "; ".join(f"{chosen_text(values)} ({cycles:,})" for values, cycles in found.predicted)
        lines.append(("", problems.LEARNED_OF_REST(those, found.fewest)))
    return tuple(lines)


def _notes(rows: Sequence[Tiling], unasked: bool = True) -> list[str]:
    """The other unproved findings, of each property and subject once. unasked: also those that only a compiler
    decides."""
    ranks: dict[tuple[str, str], list[int]] = {}
    first: dict[tuple[str, str], Finding] = {}
    for rank, one in enumerate(rows, 1):
        for f in (f for findings in one.findings for f in findings):
            if (
                f.verdict is not Verdict.PROVED
                and f.question != "partial_blocks"
                and (unasked or f.severity == "error")
            ):
                first.setdefault((f.question, f.subject), f)
                where = ranks.setdefault((f.question, f.subject), [])
                where += [rank] if rank not in where else []
    return [
        line("note", f"{name} {subject} in {rows_named(ranks[name, subject])}: {f.verdict.value}, {f.reason}")
        for (name, subject), f in first.items()
    ]


def _refusals(answer: TilingAnswer) -> list[str]:
    """The candidates that the compiler refuses, and those that it does not answer."""
    if answer.stage is None:
        return []
    refusals, lines = answer.stage.refusals, []
    for values, message in refusals[:REASONS]:
        who = "" if message.startswith(BODY_RAISED) else "by the compiler: "
        lines.append(line("refused", f"{chosen_text(values)} {who}{shorten(message, 300)}"))
    more = len(refusals) - REASONS
    lines += [line("", f"and {more} more")] if more > 0 else []
    for values, why in answer.stage.unanswered[:REASONS]:
        lines.append(line("unknown", f"{chosen_text(values)} by the compiler: {shorten(why, 300)}"))
    return lines


def chosen_text(values: Mapping[str, int]) -> str:
    """The chosen values, on one line."""
    return ", ".join(f"{name}={value}" for name, value in values.items())


def shape_text(sizes: Mapping[str, int]) -> str:
    """The sizes of one shape on one line."""
    return ",".join(f"{name}={size}" for name, size in sizes.items())


def mebibytes(size: int) -> str:
    """Bytes for people; exact ones are in the JSON."""
    return f"{size / 2**20:.2f} MiB"


def cost_name(problem: Problem) -> str:
    """The heading of the costs of a table."""
    return "time" if problem.cost is None and len(problem.shapes) == 1 else "cost"


def cost_text(problem: Problem, cost: int) -> str:
    """A cost with its unit, where it has one."""
    return time_text(cost) if problem.cost is None else f"{cost} ({problem.cost})"


def time_text(picoseconds: int) -> str:
    """A time with three or four digits."""
    for unit, size in (("s", 10**12), ("ms", 10**9), ("us", 10**6)):
        if abs(picoseconds) >= size:
            return f"{picoseconds / size:.4g} {unit}"
    return f"{picoseconds / 1000:.4g} ns"
