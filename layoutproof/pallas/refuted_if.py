"""A refutation that needs unfixed entries of a table is unknown: `refuted if prefetch0 can be 0, 1, 0`.

The assumptions on a table admit every table that the call may be given, and usually more: a table that is sorted by
construction is bounded by its range alone. So a violation that needs certain entries is none yet. A violation for all
entries is refuted, and so is one that reads no table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

from layoutproof.core.claim import Claim
from layoutproof.core.errors import Undecided, listed
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.core.term import Term
from layoutproof.kernel.contents import entry as known_entry
from layoutproof.kernel.kernel import Kernel, Table
from layoutproof.kernel.obligation import Obligation
from layoutproof.kernel.scalar_memory import every_table
from layoutproof.pallas import problems
from layoutproof.pallas.every_table import is_fixed
from layoutproof.pallas.points import READS, REPLICAS, replicas_read
from layoutproof.solvers.brute import violates
from layoutproof.solvers.conclude import How, left_open
from layoutproof.solvers.decide import decide

MOST = 4096
"""Contents of what a violation reads that are tried one by one."""
REFUTED_IF = "refuted if "
"""How the reason begins of a violation that certain tables have."""


def refuted_if(kernel: Kernel, finding: Finding, asked: Obligation, how: How) -> Finding:
    """The finding, as an unknown where it is refuted by unfixed entries of tables.

    asked: its obligation.
    """
    if finding.verdict is not Verdict.REFUTED or finding.severity != "error" or not asked.reads:
        return finding
    point = replicas_read(kernel, asked.claim, finding.counterexample) if isinstance(asked.claim, Claim) else None
    which = tables_needed(kernel, finding if point is None else replace(finding, counterexample=point))
    if not which or (isinstance(asked.claim, Claim) and not asked.graver and whatever(asked.claim, how)):
        return finding
    return left_open(finding, which)


def tables_needed(kernel: Kernel, finding: Finding) -> str:
    """Which tables a violation needs, in words: `refuted if t can be 0, 1, 0`; "" where it reads none, or a known one.

    >>> t = Kernel("k", (4,), ("g0",), (), tables=(Table("t", (4,), low=0, high=2),))
    >>> tables_needed(t, Finding("revisits", "o", counterexample={"reads": {"t[2]": 0, "t[0]": 0, "t[1]": 1}}))
    'refuted if t can be 0, 1, 0'
    """
    entries = _entries(kernel, finding)
    shown = [f"{name} can be {', '.join(map(str, values))}" for name, values in entries.items()]
    return problems.REFUTED_IF(listed(shown)) if shown else ""


def sizes_needed(finding: Finding, runtime: Sequence[str]) -> Finding:
    """The finding, as an unknown where it is refuted by unstated sizes that the running program computes.

    runtime: their names.
    """
    sizes = {name: n for name, n in (finding.counterexample or {}).get("sizes", {}).items() if name in runtime}
    shown = [f"{name} can be {n}" for name, n in sizes.items()]
    return left_open(finding, problems.REFUTED_IF(listed(shown))) if shown else finding


def _entries(kernel: Kernel, finding: Finding) -> dict[str, list[int]]:
    """The unfixed entries of tables in a counterexample, by the name of the table, each entry once."""
    found: dict[str, dict[str, int]] = {}
    tables = [table for table in every_table(kernel) if not _fixed(table)]
    by_name = {table.name: table for table in tables}
    for label, values in (finding.counterexample or {}).items():
        if not label.endswith(READS) or not isinstance(values, Mapping):
            continue
        for entry, value in values.items():
            of = max((t.name for t in tables if entry == t.name or entry.startswith(f"{t.name}[")), key=len, default="")
            if of and not _is_there(kernel, by_name[of], entry, int(value)):
                found.setdefault(of, {})[entry] = int(value)
    return {name: [of[entry] for entry in sorted(of, key=_place)] for name, of in found.items()}


def _is_there(kernel: Kernel, table: Table, entry: str, value: int) -> bool:
    """Whether the code itself says that an entry holds a value, or what is assumed of its table does."""
    if table.contents is None and kernel.relations and len(_place(entry)) == len(table.dims):
        return is_fixed(kernel, table.name, _place(entry), value)
    at = tuple(Term("int", k) for k in _place(entry))
    held = known_entry(table, at) if table.contents is not None else None
    return held is not None and held.op == "int" and held.args[0] == value


def _place(entry: str) -> tuple[int, ...]:
    at = entry.rpartition("[")[2].rstrip("]")
    return tuple(int(part) for part in at.split(",") if part.strip().lstrip("-").isdigit())


def _fixed(table: Table) -> bool:
    """Whether there is one table as it is assumed, or a device for each."""
    return table.place or (type(table.low) is type(table.high) is int and table.high - table.low == 1)


def whatever(claim: Claim, how: How, sized: bool = False) -> bool:
    """Whether a violation is one whatever is read at it. sized: also where it is one for certain sizes of the call.

    >>> from layoutproof.core.claim import At, Outside
    >>> from layoutproof.core.index_map import IndexMap
    >>> from layoutproof.core.space import Space
    >>> def asked(width, extent):
    ...     programs, read = Space(("i",), (3,)), Space(("t[i]",), (2,))
    ...     m = IndexMap(programs, Space(("b",), (extent,)), lambda i, t, on: (width * i[0] + t[0],), read)
    ...     return Claim({"program": programs, "reads": read}, Outside(At(m, "program", "reads")))
    >>> how = (("brute",), False, 1)
    >>> whatever(asked(2, 3), how), whatever(asked(1, 3), how)
    (False, False)
    >>> whatever(asked(5, 5), how)
    True
    """
    point = decide(claim, *how).point
    free = [
        (label, k)
        for label, space in claim.points.items()
        for k, name in enumerate(space.names)
        # the replicas of a program are grid indices, entries of tables, and offsets in the window
        if label == "values" or label.endswith(READS) or (label.endswith(REPLICAS) and "[" in name)
    ]
    extents: list[Any] = [claim.points[label].extents[k] for label, k in free]
    if point is None or ("sizes" in point and not sized):
        return False
    if any(type(e) is not int for e in extents) or prod(extents) > MOST:
        return False
    try:
        for values in product(*map(range, extents)):
            other = {label: list(at) for label, at in point.items()}
            for (label, k), value in zip(free, values, strict=True):
                other[label][k] = value
            if not violates(claim, {label: tuple(at) for label, at in other.items()}):
                return False
    except Undecided:
        return False
    return True
