"""What `pl.debug_check` and `checkify.check` say in a body holds, for every program and iteration.

Why it matters: it is what the author knows of the kernel, written where it is needed; a compiler drops it unless
checks are switched on, and a run looks at the sizes and programs of that run alone.
Refuted by: the smallest `program` and `iteration` at which the condition is false.
Example: `pl.debug_check(pl.program_id(0) < 3, "..")` on a grid of 4 is false at program 3.
Source: jax/_src/checkify.py (check_p), which jax/_src/pallas/mosaic/lowering.py leaves out unless debug checks are
enabled (jax 0.10.2).
Fix: correct what makes the number, or say what is true.
Incident: none is known to us.
Limits: Asked only where a body has such checks. A condition on data is unknown.
"""

from __future__ import annotations

from layoutproof.bodies.claims import asked
from layoutproof.bodies.effects import Body, Spot
from layoutproof.core.errors import Undecided
from layoutproof.core.folding import FALSE
from layoutproof.core.message import Template
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Obligation, by_rule, undecided
from layoutproof.pallas import problems
from layoutproof.pallas.rules.body_in_bounds import about

WHETHER = Template("pallas.debug_check_whether", "whether the check holds")
FAILS = Template("pallas.debug_check_fails", "the check does not hold")


TARGET = False
BODY = True
SETTLED_BY = "say it of program ids, loop counters and what is assumed of tables"


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One per check; none where the body has no checks, and what is not modelled is said by the other questions."""
    body: Body | None = kernel.body
    return tuple(_holds(kernel, body, fails, spot) for fails, spot in body.checks) if body is not None else ()


def _holds(kernel: Kernel, body: Body, fails: Term, spot: Spot) -> Obligation:
    if fails is FALSE:
        return Obligation(kernel.name, by_rule(""), source=spot.source)
    what = WHETHER()
    try:
        found = asked(kernel, body, [*spot.path, fails], spot.loops, explain=lambda at, on, value: FAILS())
    except Undecided as lost:
        return Obligation(kernel.name, undecided(problems.DEPENDS_ON(what, lost)), source=spot.source)
    return about(kernel.name, found, spot.source, what)
