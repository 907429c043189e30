"""Why there is no tiling: a smallest set of conditions that cannot hold together, and what would have to give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from layoutproof.core.term import Term
from layoutproof.jobs.search.branch import search
from layoutproof.jobs.search.problem import Problem

VMEM = "VMEM"
LEGAL = "legal for the target"
MOST = 200
"""Single candidates that may be found illegal before a question of this file is given up."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """conditions: none of them can be left out of the conflict.  enough: bytes of VMEM that would do, None = no amount.
    complete: False where the budget ended first; the set may then be larger than needed.
    """

    conditions: tuple[str, ...]
    enough: int | None = None
    complete: bool = True


def conflict(problem: Problem, legal: Callable[[Mapping[str, int]], str], effort: int = 1) -> Conflict:
    """The conflict of a problem without a legal candidate, by leaving out one condition after the other."""
    kept = [c.text for c in problem.constraints] + [VMEM, LEGAL]
    complete = True
    for text in list(kept):
        without = [t for t in kept if t != text]
        found = _possible(problem, legal, without, effort)
        if found is None:
            complete = False
        elif not found:
            kept = without
    enough = None
    if VMEM in kept:
        enough = least_vmem(problem, legal if LEGAL in kept else lambda values: "", kept, effort)
    return Conflict(tuple(_words(problem, text) for text in kept), enough, complete)


def _possible(
    problem: Problem, legal: Callable[[Mapping[str, int]], str], kept: Sequence[str], effort: int
) -> bool | None:
    """Whether some candidate meets these conditions; None = nobody knows within the budget."""
    looked = 0
    spent = False

    def check(values: Mapping[str, int]) -> str:
        nonlocal looked, spent
        looked += 1
        spent = spent or looked > MOST * effort
        # over the budget every candidate passes, so that the search ends; `spent` says that this proves nothing
        return "" if spent or LEGAL not in kept else legal(values)

    relaxed = problem if VMEM in kept else replace(problem, vmem=1 << 62)
    progress = search(relaxed, check, 1, effort, [t for t in kept if t not in (VMEM, LEGAL)])
    if spent or not progress.complete:
        return None
    return bool(progress.found)


def least_vmem(
    problem: Problem, legal: Callable[[Mapping[str, int]], str], kept: Sequence[str], effort: int
) -> int | None:
    """The least VMEM, in bytes, with which some candidate meets the other conditions; None where none does at all."""
    names = tuple(c for c in problem.constraints if c.text in kept)
    smallest = replace(problem, vmem=1 << 62, cost=Term("name", "vmem"), constraints=names, worst=True)
    found = search(smallest, legal, 1, effort).found
    return None if not found else max(row["vmem"] for row in found[0].figures)


def _words(problem: Problem, text: str) -> str:
    if text == VMEM:
        return f"windows and scratch within {problem.vmem} bytes of VMEM ({problem.vmem / 2**20:.2f} MiB)"
    return f"{LEGAL} {problem.target}" if text == LEGAL else text
