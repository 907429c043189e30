"""What threads of a GPU have stored to shared memory is committed before a copy or an MMA reads it, or a copy fills it.

Why it matters: copies (TMA) and MMAs come to shared memory by another way than the threads that stored to it. Without
`plgpu.commit_smem` between, they may read what was there before, and what was stored may come after what a copy has
brought. Nothing stops: the numbers are wrong, sometimes.
Refuted by: a store and a copy or MMA after it, in the same iteration and with no commit between, in the same memory.
Asked of every copy out of shared memory or into it, and every MMA of it. A load of an array in registers needs none.
Example: `smem[...] = x; plgpu.copy_smem_to_gmem(smem, o_gmem)`.
Source: `commit_smem` in jax/_src/pallas/mosaic_gpu/primitives.py (jax 0.10.2): "Commits all writes to SMEM, making them
visible to TMA and MMA operations." In PTX it is `fence.proxy.async`. That copies into shared memory need it, too, is
what JAX's interpreter of Mosaic GPU finds, and its tests ask for.
Fix: `plgpu.commit_smem()` after the last store and before the copy.
Incident: none is known to us.
Limits: Stores at other places of the same memory leave it unknown, but where both places are constants. Of programs
that share memory (threads, clusters) nothing is proved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from layoutproof.bodies import problems
from layoutproof.bodies.claims import asked, not_modelled
from layoutproof.bodies.effects import Access, Body, Committed, Effect, Spot, StartedCopy, StartedUse, View
from layoutproof.core.errors import Undecided
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Obligation, Settled, by_rule, undecided
from layoutproof.pallas.rules.body_in_bounds import about
from layoutproof.pallas.thread_problems import of_threads

COMMITTED = Template(
    "pallas.commit_smem_committed", "whether what line {line} stores to {name} is committed before {does} it"
)
DEPENDS = Template("pallas.commit_smem_depends", "whether it happens that {why}, depends on {lost}")
OPEN = Template("pallas.commit_smem_open", "whether it happens that {why}")


TARGET = False
BODY = True
SETTLED_BY = "commit after the last store, under no other condition than the copy"


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One per copy of shared memory and per operand of an MMA there; none of other kernels."""
    body: Body | None = kernel.body
    if body is None or kernel.platform != "mosaic_gpu":
        return ()
    if kernel.by_events:
        return of_threads(kernel, "commit")
    found = [_committed(kernel, body, *touched) for touched in _touched(body.effects)]
    if not found and not body.unmodelled:
        return ()
    return (*found, *not_modelled(kernel, body))


def unasked(kernel: Kernel) -> Settled:
    """Where nothing comes to shared memory but threads."""
    return undecided("no copy or MMA comes to shared memory of a GPU")


def _touched(effects: Sequence[Effect]) -> Iterator[tuple[StartedCopy | StartedUse, View, str]]:
    """What comes to shared memory by another way than threads do, and what it does there."""
    for effect in effects:
        sides: list[tuple[View, str]] = []
        if isinstance(effect, StartedUse):
            sides = [(view, "an MMA reads") for view in effect.views]
        elif isinstance(effect, StartedCopy):
            sides = [(effect.source, "a copy reads"), (effect.target, "a copy overwrites")]
        for view, does in sides:
            if isinstance(effect, StartedCopy | StartedUse) and view.reference.memory == "shared":
                yield effect, view, does


def _committed(kernel: Kernel, body: Body, reader: StartedCopy | StartedUse, view: View, does: str) -> Obligation:
    effects: Sequence[Effect] = body.effects
    name, at = view.reference.name, reader.spot
    stores = [e for e in effects if isinstance(e, Access) and _stores(e, view)]
    open_: Access | None = None
    for store in stores:
        if _between(effects, store.spot, at, view):
            continue
        before = store.spot.number < at.number and store.spot.happens_with(at)
        if before and (_whole(store.view) or _whole(view) or _seen(store.view) == _seen(view)):
            line = store.spot.source.rpartition(":")[2] or "?"
            why = problems.NOT_COMMITTED(does, name, line)
            return _where_it_happens(kernel, body, name, at, why)
        open_ = open_ or store
    if open_ is not None:
        line = open_.spot.source.rpartition(":")[2] or "?"
        why = COMMITTED(line, name, does)
        return Obligation(name, undecided(why), source=at.source)
    return Obligation(name, by_rule(""), source=at.source)


def _where_it_happens(kernel: Kernel, body: Body, name: str, at: Spot, why: str) -> Obligation:
    """That no program comes there; refuted by the first one that does, with the turns of its loops."""
    hint = "look at what is stored last before it: plgpu.commit_smem() belongs behind that"

    def explain(point: Point, on: Numbers, value: Callable[[Term], int]) -> str:
        return why

    try:
        found = asked(kernel, body, [*at.path], at.loops, explain=explain)
    except Undecided as lost:
        return Obligation(name, undecided(DEPENDS(why, lost)), source=at.source)
    told = replace(found, claim=replace(found.claim, hint=lambda point, on: hint))
    return about(name, told, at.source, OPEN(why))


def _stores(effect: Access, view: View) -> bool:
    """Whether an access is a store of threads to the memory of a view, and perhaps to elements of it."""
    same = effect.kind != "read" and effect.view.reference is view.reference
    return same and not _apart(effect.view, view)


def _apart(one: View, other: View) -> bool:
    """Whether two views of one reference surely have no element in common: they begin at constant places."""
    first = [view.steps[0] if view.steps else None for view in (one, other)]
    if any(step is None or step.kind != "slices" for step in first):
        return False
    for a, b in zip(first[0].slices, first[1].slices, strict=True):  # type: ignore[union-attr]
        terms: list[Term] = [a.start, a.size, b.start, b.size]
        if all(term.op == "int" for term in terms):
            p, n, q, m = (int(term.args[0]) for term in terms)
            if p + (n - 1) * a.stride < q or q + (m - 1) * b.stride < p:
                return True
    return False


def _between(effects: Sequence[Effect], store: Spot, reader: Spot, view: View) -> bool:
    """Whether a commit surely comes after a store and before what reads next, whatever iteration that is in.

    In program order it lies between the two; or, where the reader comes first, behind the store or before the reader,
    within the loops that the two have in common.
    """
    # memory of its own in each turn of a loop brings nothing to the next one
    fresh = view.reference.fresh_in
    common = [a for a, b in zip(store.loops, reader.loops, strict=False) if a is b and a not in fresh]
    for effect in effects:
        if not isinstance(effect, Committed):
            continue
        at = effect.spot
        if store.number < reader.number:
            # the next iteration of a loop around both comes to the same commit
            often = _as_often(at, store, common) or _as_often(at, reader, common)
            if store.number < at.number <= reader.number and often:
                return True
            continue
        behind = at.number > store.number and _as_often(at, store, common)
        if behind or (at.number <= reader.number and _as_often(at, reader, common)):
            return True
    return store.number > reader.number and not common


def _as_often(commit: Spot, other: Spot, common: Sequence[object]) -> bool:
    """Whether a commit happens wherever the other effect does, and in all of some loops."""
    return len(commit.loops) >= len(common) and commit.happens_with(other)


def _seen(view: View) -> list[object]:
    """The steps of a view, equal where two views of one iteration show the same elements."""
    return [
        (step.kind, step.permutation, [(one.start, one.size, one.stride, one.single) for one in step.slices])
        for step in view.steps
    ]


def _whole(view: View) -> bool:
    return not any(step.kind in ("slices", "gather") for step in view.steps)
