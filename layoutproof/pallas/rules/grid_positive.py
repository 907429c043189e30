"""The grid has at least one program.

Why it matters: a grid with an extent of 0 runs no program, without an error; every output is whatever was in memory.
Refuted by: the grid dimension and its extent, with the smallest sizes that make it so. A grid entry that is itself a
number of the running program is assumed to be at least 1, as every size is.
Example: grid (n // 256,) of an array with 100 rows.
Fix: pl.cdiv(n, 256), or return early where there is nothing to do.
Incident: none is known to us as such; the rounding that leads to it leaves rows unwritten in PallasBench:
BUGS-FOUND.md.
Refuted:
    layoutproof ask grid_positive "f32[32,128] blockspec (8, 128) (i) -> (i, 0) grid (0,)"
Proved:
    layoutproof ask grid_positive "f32[32,128] blockspec (8, 128) (i) -> (i, 0) grid (4,)"
Limits: A grid that only the running program knows has a condition, `--where`.
"""

from __future__ import annotations

from layoutproof.core.claim import Claim, Formula, Or, SizeCondition
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point
from layoutproof.core.size import surely_less
from layoutproof.core.term import Term, size_term
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Obligation, Settled, by_rule

NO_PROGRAM = Template("pallas.grid_positive_no_program", "{dimension} has {extent} programs")


TARGET = False
HINT = "look at what the grid divides: pl.cdiv rounds up where // gives 0"


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One, about the whole grid."""
    broken = [_said(kernel, k, n) for k, n in enumerate(kernel.grid) if type(n) is int and n < 1]
    doubtful = [(k, n) for k, n in enumerate(kernel.grid) if type(n) is not int and not surely_less(0, n)]
    claim: Claim | Settled = by_rule("; ".join(broken), HINT)
    if doubtful and not broken:
        parts: tuple[Formula, ...] = tuple(SizeCondition(Term("<", size_term(n), Term("int", 1))) for _, n in doubtful)

        def explain(at: Point, on: Numbers) -> str:
            return "; ".join(_said(kernel, k, on.size(n)) for k, n in doubtful if on.size(n) < 1)

        claim = Claim({}, parts[0] if len(parts) == 1 else Or(parts), explain, hint=lambda at, on: HINT)
    return (Obligation("grid", claim, reads=False),)


def _said(kernel: Kernel, k: int, extent: int) -> str:
    return NO_PROGRAM(kernel.dimension(k), extent)
