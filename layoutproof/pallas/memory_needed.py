"""Lower bounds of a kernel's memory for every choice of the compiler, by its blocks and its body."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from layoutproof.kernel.kernel import CompilerAnswer, Kernel, KernelTarget, MemoryUse

if TYPE_CHECKING:
    from layoutproof.bodies.effects import Body, BodyReference

_OVER = re.compile(r"exceed|[Rr]an out|exhausted|EXHAUSTED")
"""The compiler's words for too small a memory; its messages on alignment name memories too."""


def refused_for(memory: MemoryUse, answer: CompilerAnswer) -> bool:
    """Whether the compiler refuses a kernel because this memory is too small."""
    return memory.name in answer.refused.upper() and _OVER.search(answer.refused) is not None


def memory_needed(kernel: Kernel, target: KernelTarget) -> tuple[MemoryUse, ...]:
    """Each memory of a kernel, as `KernelTarget.memory` says, whose `spared` knows the body too.

    Scratch from which nothing is read, or only what the body has stored as a whole before, the compiler drops: it is
    handed on in registers (libtpu 0.0.52, 2026-11-23). Raises Undecided where a size is not known.
    """
    memories = target.memory(kernel)
    if all(memory.used <= memory.limit for memory in memories) or kernel.body is None:
        return memories
    dropped = target.memory(_without_dropped(kernel))
    found = []
    for memory, rest in zip(memories, dropped, strict=True):
        many = memory.used - rest.used
        why = (("the body keeps nothing in some of its scratch", many),) if many else ()
        found.append(replace(memory, spared=(*memory.spared, *why)))
    return tuple(found)


def _without_dropped(kernel: Kernel) -> Kernel:
    """The kernel without the scratch that its body does not need."""
    body: Body = kernel.body
    needed = {id(reference) for reference in _needed(body)}
    by_place = {r.position: r for r in body.references if r.role == "scratch"}
    kept = [s for k, s in enumerate(kernel.scratch) if k not in by_place or id(by_place[k]) in needed]
    own = [r for r in _references(body) if r.role == "fresh" and r.memory == "vmem"]
    scoped = kernel.scoped if all(r.pipeline or id(r) in needed for r in own) else ()
    return replace(kernel, scratch=tuple(kept), scoped=scoped)


def _references(body: Body) -> list[BodyReference]:
    from layoutproof.bodies.effects import Access, StartedCopy

    views = [e.view for e in body.effects if isinstance(e, Access)]
    views += [view for e in body.effects if isinstance(e, StartedCopy) for view in (e.source, e.target)]
    return list({id(view.reference): view.reference for view in views}.values())


def _needed(body: Body) -> list[BodyReference]:
    """Memory that is copied, or read before all of it was stored without a condition."""
    from layoutproof.bodies.effects import Access, StartedCopy

    found: list[BodyReference] = []
    stored: set[int] = set()
    for effect in body.effects:
        if isinstance(effect, StartedCopy):
            found += [effect.source.reference, effect.target.reference]
        elif isinstance(effect, Access):
            view = effect.view
            if effect.kind != "write":
                found += [] if id(view.reference) in stored else [view.reference]
            elif not (view.steps or effect.spot.path or effect.spot.loops or effect.mask is not None):
                stored.add(id(view.reference))
    return found
