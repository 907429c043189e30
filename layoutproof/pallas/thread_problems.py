"""Problems between the threads of a GPU's program, as answers to the questions about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from layoutproof.bodies.claims import not_modelled
from layoutproof.bodies.devices import DeviceProblem
from layoutproof.bodies.effects import Access, BodyReference, Spot, StartedCopy
from layoutproof.bodies.gpu_devices import gpus_of
from layoutproof.bodies.warpgroups import Warpgroups, all_stored, threads_of
from layoutproof.core.errors import Undecided
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Obligation, Settled, by_rule, undecided
from layoutproof.pallas import problems
from layoutproof.pallas.device_problems import answer_of, stored_of_devices


def run_of(kernel: Kernel) -> tuple[Warpgroups, ...]:
    """The threads that are run: those of one program of each class, or of all devices of a mesh."""
    return (gpus_of(kernel),) if kernel.remote else threads_of(kernel)


def of_threads(kernel: Kernel, *kinds: str) -> tuple[Obligation, ...]:
    """The answer about some kinds of `bodies.devices.DeviceProblem`; none of a kernel of single threads."""
    if not kernel.by_events:
        return ()
    lost = not_modelled(kernel, kernel.body)
    if lost:
        return tuple(lost)
    try:
        found = [p for threads in run_of(kernel) for p in problems_of(threads) if p.kind in kinds]
    except Undecided as reason:
        return (Obligation(kernel.name, undecided(problems.THREADS_DEPEND(reason)), source=kernel.source),)
    return (_worst(kernel, found),)


def between_threads(kernel: Kernel, name: str, one: Spot, other: Spot) -> Obligation:
    """Whether effects of two threads of a cluster never meet in an array of global memory without an order.

    Raises Undecided where that is not known.
    """
    found = [p for threads in threads_of(kernel, frozenset((name,))) for p in threads.in_global(name, one, other)]
    return replace(_worst(kernel, found), subject=name, source=one.source)


def _worst(kernel: Kernel, found: Sequence[DeviceProblem]) -> Obligation:
    """The answer of some problems."""
    first = next((p for p in found if p.sure), None) or next(iter(found), None)
    return answer_of(first) if first is not None else _proved(kernel)


def reads_of_threads(kernel: Kernel) -> tuple[Obligation, ...]:
    """Whether all that threads read in memory of the body was written before, by one or another of them."""
    lost = not_modelled(kernel, kernel.body)
    if lost:
        return tuple(lost)
    reads = [
        e for e in kernel.body.effects if isinstance(e, StartedCopy) or (isinstance(e, Access) and e.kind != "write")
    ]
    try:
        for threads in run_of(kernel):
            for read in reads:
                problem = threads.unwritten(read.spot)
                if problem is not None:
                    return (answer_of(problem),)
    except Undecided as reason:
        return (Obligation(kernel.name, undecided(problems.THREADS_DEPEND(reason)), source=kernel.source),)
    return (_proved(kernel),)


def defined_by_threads(kernel: Kernel) -> tuple[Obligation, ...]:
    """Whether nothing undefined reaches an output: what is read was written, and no load leaves elements out."""
    (found, *_) = reads_of_threads(kernel)
    if not _is_proved(found):
        what = problems.THREADS_UNWRITTEN()
        return (Obligation(kernel.name, undecided(what), source=found.source),)
    for effect in kernel.body.effects:
        if isinstance(effect, Access) and effect.kind == "read" and effect.mask is not None:
            what = problems.MASKED_LOAD()
            return (Obligation(kernel.name, undecided(what), source=effect.spot.source),)
    return (found,)


def stored_by_threads(kernel: Kernel, reference: BodyReference) -> bool:
    """Whether the programs of a GPU, run one by one, store to every element of an output; False where that is open."""
    if kernel.body.unmodelled or kernel.tables:
        return False
    try:
        return all_stored(kernel, reference)
    except Undecided:
        return False


def stored_elsewhere(kernel: Kernel, reference: BodyReference) -> Obligation | None:
    """Whether all of an output is written on each device of a mesh; None where only its own device writes it."""
    if not kernel.remote:
        return stored_of_devices(kernel, reference)
    lost = not_modelled(kernel, kernel.body)
    if lost:
        return replace(lost[0], subject=reference.name)
    try:
        problem = gpus_of(kernel).unstored(reference)
    except Undecided as reason:
        return Obligation(reference.name, undecided(problems.THREADS_DEPEND(reason)), source=kernel.source)
    return answer_of(problem) if problem is not None else replace(_proved(kernel), subject=reference.name)


def _is_proved(found: Obligation) -> bool:
    return isinstance(found.claim, Settled) and found.claim.verdict is Verdict.PROVED


def _proved(kernel: Kernel) -> Obligation:
    figures: dict[str, object] = {
        "threads": int(kernel.grid[-1]) if kernel.together else 1,
        "programs run": len(run_of(kernel)),
    }
    return Obligation(kernel.name, by_rule("", by="walk"), figures=figures, source=kernel.source)


@lru_cache(maxsize=64)
def problems_of(threads: Warpgroups) -> tuple[DeviceProblem, ...]:
    """All problems of one program."""
    return tuple(threads.problems())
