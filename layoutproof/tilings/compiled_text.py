"""What a search says of its second stage, for people: how many the compiler took, and how its estimates rank them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from layoutproof.core.errors import shorten

if TYPE_CHECKING:
    from layoutproof.tilings.compiler_stage import Report

BODY_RAISED = "tracing the body raised "
"""Before what a body says that refuses a candidate."""

MOST = 6
"""Rows that are named one by one."""


def rows_named(ranks: Sequence[int]) -> str:
    """Rows of the table by their numbers, for people."""
    if len(ranks) == 1:
        return f"row {ranks[0]}"
    if list(ranks) == list(range(ranks[0], ranks[-1] + 1)) and len(ranks) > 2:
        return f"rows {ranks[0]} to {ranks[-1]}"
    more = f" and {len(ranks) - MOST} more" if len(ranks) > MOST else ""
    return f"rows {', '.join(map(str, ranks[:MOST]))}{more}"


def stage_lines(
    shown: Sequence[Report],
    told: Sequence[Report],
    target: str,
    cycles_of: Callable[[Report], int | None] | None = None,
) -> list[tuple[str, str]]:
    """What stands below the table, as pairs of a word and what is said; [] where nobody was asked.

    shown: what the compiler says of each row.  told: of each candidate that was put to it.  cycles_of: as of `order`.
    """
    # who does not want the compiler does not wait for what asks it
    from layoutproof.tilings.compiler_stage import TIE, accepted, compared_by, cycles, no_estimate, order, tally

    if not any(shown):
        return []
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
    return [*lines, *(("no estimate", f"{rows_named(each)}: {reason}") for reason, each in why.items())]
