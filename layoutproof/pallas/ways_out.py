"""Advice for an open question about a kernel, at the end of its reason.

A reason that advises assumptions or conditions, each tried, needs no more. Every other one names possible assumptions
on its tables, a part to write in another form, or more steps; and, for a question about the body, the change that makes
it provable, in the words of its rule (`SETTLED_BY`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from layoutproof.core.errors import listed
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.scalar_memory import every_table
from layoutproof.pallas.settled import NOTHING_ASSUMED, SAY_SIZES
from layoutproof.solvers.conclude import TO_SETTLE, advised

VACUOUS = "vacuous: "
"""How the reason begins where nothing satisfies what is assumed: it names what cannot hold."""


def with_way_out(kernel: Kernel, finding: Finding, settled_by: str, over: bool) -> Finding:
    """The finding, an open one with its advice.

    settled_by: the change to make, by the rule of a question about the body; "" for others.  over: whether its budget
    of steps is spent.
    """
    if finding.verdict is not Verdict.UNKNOWN or not finding.asked or finding.needs or finding.where:
        return finding
    reason = finding.reason
    if TO_SETTLE in reason or SAY_SIZES in reason or reason.startswith(VACUOUS):
        return finding
    return replace(finding, reason=advised(reason, ", or ".join(_ways(kernel, reason, settled_by, over))))


def _ways(kernel: Kernel, reason: str, settled_by: str, over: bool) -> Iterator[str]:
    if over:
        yield "allow more steps (--effort 10)"
    # an assumption helps a question about the grid only where it depends on entries of a table alone
    told = [t.name for t in every_table(kernel) if re.search(rf"(?<![\w.]){re.escape(t.name)}(?!\w)", reason)]
    if told and (settled_by or NOTHING_ASSUMED in reason):
        yield f"assume more of {listed(told)} (--assume)"
    if settled_by:
        if kernel.body is not None and kernel.body.unmodelled:
            yield "write what is not modelled with operations that are (docs/primitives.md)"
        yield settled_by
