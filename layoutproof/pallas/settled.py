"""What has to be assumed of tables so that an open question is settled: looked for, and really tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel, Table
from layoutproof.pallas.assumptions import bounded, together, worded
from layoutproof.solvers.conclude import left_open

Again = Callable[[Kernel], Finding | None]
"""Asks a question of a kernel about which more is assumed."""

MOST_TRIED = 8
"""Times that each open question of a call is asked anew, on average; and a hundred more."""
MOST_WORDED = 8
"""Open questions up to which more than bounds is tried."""


@dataclass(frozen=True, slots=True, eq=False)
class Open:
    """A question that is refuted or unknown, perhaps for want of an assumption.

    position: among the findings.  again: asks it anew.  tables: that it reads.  body: whether it is about the body.
    """

    position: int
    again: Again
    tables: tuple[Table, ...]
    body: bool = False


def settled(kernel: Kernel, found: Sequence[Finding], open_: Sequence[Open]) -> dict[int, Finding]:
    """What is refuted or unknown only for want of an assumption about a table: unknown, with what would settle it.

    found: all findings.  open_: those that may be.  All that is advised of a call can be assumed at once. Each question
    is asked a bounded number of times, so that the work grows as their number.
    """
    asked = [one for one in open_ if one.tables]
    tries = _Tries(kernel, MOST_TRIED * len(asked) + 100)
    read = {table.name: table for one in asked for table in one.tables}
    best, held = _best(kernel, asked, read, tries)
    best = _tightened(asked, best, held, tries)
    needs = {one.position: {t.name: best[t.name] for t in one.tables} for one in held if tries.proved(one, best)}
    everything = dict(best)
    left = [one for one in asked if one.position not in needs]
    for one in left if len(left) <= MOST_WORDED else ():
        for more in worded({table.name: best[table.name] for table in one.tables}):
            joint = {name: together(everything[name], table) for name, table in more.items()}
            if all(joint.values()) and tries.proved(one, more):
                needs[one.position] = more
                everything |= {name: table for name, table in joint.items() if table is not None}
                break
    answers: dict[int, Finding] = {}
    for one in asked:
        finding = found[one.position]
        said = {text for table in one.tables for text in table.assumptions()}
        new = [text for t in needs.get(one.position, {}).values() for text in t.assumptions() if text not in said]
        unbounded = [t.name for t in one.tables if t.low is None or t.high is None]
        if new:
            what = f"assume {' and '.join(map(repr, new))} and it is proved"
            answers[one.position] = replace(depends(finding, list(needs[one.position]), what), needs=tuple(new))
        elif unbounded and finding.verdict is Verdict.REFUTED:
            answers[one.position] = depends(finding, unbounded, "nothing is assumed of it")
    return answers


def depends(finding: Finding, tables: Sequence[str], what: str) -> Finding:
    """The finding as unknown, because of what tables hold."""
    return left_open(finding, f"depends on what {' and '.join(tables)} holds; {what}")


@dataclass(slots=True)
class _Tries:
    """Questions asked anew, each once for what is assumed of the tables that it reads; `left`: how many more may be."""

    kernel: Kernel
    left: int
    _known: dict[tuple[int, tuple[str, ...]], bool] = field(default_factory=dict)
    _kernels: dict[tuple[str, ...], Kernel] = field(default_factory=dict)

    def proved(self, one: Open, more: Mapping[str, Table]) -> bool:
        """Whether a question is proved for tables of which this is assumed."""
        key = (one.position, _said(more[table.name] for table in one.tables))
        if key not in self._known:
            if self.left <= 0:
                return False
            self.left -= 1
            new = one.again(self._assumed(more))
            self._known[key] = new is not None and new.verdict is Verdict.PROVED
        return self._known[key]

    def _assumed(self, more: Mapping[str, Table]) -> Kernel:
        tables = tuple(more.get(table.name, table) for table in self.kernel.tables)
        key = _said(tables)
        if key not in self._kernels:
            self._kernels.clear()
            self._kernels[key] = replace(self.kernel, tables=tables)
        return self._kernels[key]


def _said(tables: Iterable[Table]) -> tuple[str, ...]:
    return tuple(f"{table.name} {'; '.join(table.assumptions())}" for table in tables)


def _best(
    kernel: Kernel, asked: Sequence[Open], read: Mapping[str, Table], tries: _Tries
) -> tuple[dict[str, Table], list[Open]]:
    """Of the ways to bound the tables by what they index, the one that settles most, and what it settles."""
    best: dict[str, Table] = {}
    held: list[Open] = []
    for more in bounded(kernel, tuple(read.values())) if asked else ():
        best = best or more
        now: list[Open] = []
        for k, one in enumerate(asked):
            if tries.proved(one, more):
                now.append(one)
            elif len(now) + len(asked) - k - 1 <= len(held):
                break
        if len(now) > len(held):
            best, held = more, now
        if len(held) == len(asked) or tries.left <= 0:
            break
    return best or dict(read), held


def _tightened(asked: Sequence[Open], best: dict[str, Table], held: list[Open], tries: _Tries) -> dict[str, Table]:
    """The largest bounds that settle questions about the body for which no place of a table says one.

    What holds of larger numbers holds of smaller ones, so that the largest bound is found by halving. A table of zeros
    alone is no advice. held: what is settled; it grows.
    """
    for one in asked:
        if not one.body or one in held:
            continue
        free = [t.name for t in one.tables if t.high is None and _plain(best[t.name])]
        if tries.proved(one, best):
            held.append(one)
            continue
        for name in free:
            most = _largest(one, best, name, tries)
            if most > 1:
                best = {**best, name: replace(best[name], low=0, high=most)}
                held.append(one)
                break
    return best


def _plain(table: Table) -> bool:
    return table.high is None or (type(table.high) is int and table.low == 0)


def _largest(one: Open, best: Mapping[str, Table], name: str, tries: _Tries) -> int:
    """The largest high for which a question is proved if a table holds 0 to high - 1; 0 where none is."""
    table = best[name]

    def holds(high: int) -> bool:
        return tries.proved(one, {**best, name: replace(table, low=0, high=high)})

    if not holds(2):
        return 0
    low, high = 2, 1 << (table.bits - 1) if table.high is None else int(table.high)
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low
