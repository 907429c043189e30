"""Every subcore of a SparseCore comes to each barrier, and equally often.

Why it matters: `subcore_barrier` waits for all subcores of the core. Where one of them does not come, the others wait
for ever, or meet it at the next barrier, with other memory in mind.
Refuted by: two subcores of one core, `first` and `second`: the first comes to a barrier to which the second does not.
Asked of each barrier that stands under a condition, or in a loop that may not run equally often in all programs.
Example: `pl.when(jax.lax.axis_index("subcore") < 8)` around `plsc.subcore_barrier()`: subcores 0 and 8.
Source: jax/_src/pallas/mosaic/sc_primitives.py (jax 0.10.2), `subcore_barrier`: "Blocks until all subcores on the same
core reach this instruction."
Fix: put the barrier outside of the condition, and let every subcore take as many turns.
Incident: none is known to us.
Limits: Kernels over a `VectorSubcoreMesh`. Of several barriers under conditions each may stand for another: unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from layoutproof.bodies.barriers import odd
from layoutproof.bodies.claims import Beside, asked, beside, not_modelled
from layoutproof.bodies.effects import Body, Spot
from layoutproof.core.errors import Undecided
from layoutproof.core.folding import all_of, any_of, fold, negation
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point, Verdict
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Due, Obligation, Settled, by_rule, undecided
from layoutproof.pallas import problems
from layoutproof.pallas.rules.body_in_bounds import about

WHETHER = Template("pallas.subcore_barrier_whether", "whether all subcores of a core come to a barrier")
ONE_DOES_NOT = Template(
    "pallas.subcore_barrier_one_does_not",
    "subcore {first} comes to the barrier, and subcore {second} of its core does not",
)
ANOTHER = Template("pallas.subcore_barrier_another", "{what}: another barrier under a condition may stand for it")


TARGET = False
BODY = True
SETTLED_BY = "let the condition, and how often the loop runs, be the same for all subcores"


def obligations(kernel: Kernel) -> tuple[Due, ...]:
    """One per barrier of which it is to be asked; one that holds where there are only others."""
    body: Body | None = kernel.body
    if body is None or not body.barriers or kernel.remote:
        return ()
    pair = beside(kernel, body)
    doubtful = odd(body)
    found: list[Due] = [partial(_reached, kernel, pair, barrier, len(doubtful)) for barrier in doubtful]
    return (*(found or _held(kernel)), *not_modelled(kernel, body))


def _held(kernel: Kernel) -> Iterator[Due]:
    yield Obligation(kernel.name, by_rule(""), source=kernel.source)


def _reached(kernel: Kernel, pair: Beside, barrier: Spot, many: int) -> Obligation:
    what = WHETHER()
    core, subcore = (Term("name", name) for name in kernel.grid_names[:2])
    own = [Term("name", loop.name) for loop in barrier.loops]
    # of a loop that a condition ends its condition is on the path
    counts = [loop.count for loop in barrier.loops if loop.count is not None and loop.count.op != "int"]
    turns = zip(barrier.loops, own, strict=True)
    ends = [fold("<", name, loop.count) for loop, name in turns if loop.count in counts and loop.count is not None]
    comes = all_of([*barrier.path, *ends])

    def explain(at: Point, on: Numbers, value: Callable[[Term], int]) -> str:
        return ONE_DOES_NOT(at["first"], at["second"])

    try:
        found = asked(
            kernel,
            pair.body,
            [
                Term("==", core, pair.other(core)),
                Term("!=", subcore, pair.other(subcore)),
                *(Term("==", term, pair.other(term)) for term in own),
                comes,
                any_of([negation(pair.other(comes))]),
            ],
            (*barrier.loops, *pair.loops(barrier.loops)),
            explain=explain,
            programs=pair.programs,
        )
    except Undecided as lost:
        return Obligation(kernel.name, undecided(problems.DEPENDS_ON(what, lost)), source=barrier.source)
    one = about(kernel.name, found, barrier.source, what)
    if many == 1 or one.leaves_open:
        return one
    open_ = {Verdict.REFUTED: ANOTHER(what)}
    return Obligation(one.subject, one.claim, reads=one.reads, source=one.source, leaves_open=open_, tables=one.tables)


def unasked(kernel: Kernel) -> Settled:
    """Where there is no barrier of subcores."""
    return undecided("no subcores wait for each other")
