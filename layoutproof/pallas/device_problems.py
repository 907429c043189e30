"""Problems between the devices of a mesh, as answers to the questions about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from layoutproof.bodies.claims import not_modelled
from layoutproof.bodies.devices import (
    DeviceProblem,
    Devices,
    axes_of,
    devices_of,
    from_elsewhere,
    has_cores,
    has_devices,
    is_barrier,
    is_copied,
)
from layoutproof.bodies.effects import BodyReference, Spot
from layoutproof.bodies.rings import Rings, rings_of
from layoutproof.core.errors import Undecided
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Obligation, Settled, by_rule, undecided
from layoutproof.pallas import problems as texts


def of_devices(kernel: Kernel, kind: str) -> tuple[Obligation, ...]:
    """The answer about one kind of `bodies.devices.Problem`; none of a kernel that reaches no other device."""
    if not has_devices(kernel):
        return ()
    lost = not_modelled(kernel, kernel.body)
    if lost:
        return tuple(lost)
    try:
        devices, problems = _problems(kernel)
    except Undecided as reason:
        return (Obligation(kernel.name, undecided(texts.DEVICES_DEPEND(reason)), source=kernel.source),)
    own = [problem for problem in problems if problem.kind == kind]
    found = next((problem for problem in own if problem.sure), None) or next(iter(own), None)
    if found is not None:
        return (answer_of(found),)
    if kind == "left" and any(problem.kind == "never" for problem in problems):
        stuck = texts.DEVICE_WAITS()
        return (Obligation(kernel.name, undecided(stuck), source=kernel.source),)
    figures: dict[str, object] = {"mesh": mesh_text(kernel), "devices": len(devices.events)}
    figures |= {} if problems else _on_rings(_rings((kernel,)), kind)
    return (Obligation(kernel.name, by_rule("", by="walk"), figures=figures, source=kernel.source),)


def in_turn(kernel: Kernel, other: Kernel) -> Obligation | None:
    """Whether a kernel and another one that has its barrier may run one after the other; None of one without barrier.

    With itself once more it is a warning.
    """
    if kernel.collective is None or not has_devices(kernel) or not _meets(kernel):
        return None
    severity, next_ = ("warning", "it is called again") if kernel is other else ("error", f"{other.name} runs next")
    lost = [*not_modelled(kernel, kernel.body), *not_modelled(other, other.body)]
    if lost:
        return replace(lost[0], severity=severity)
    try:
        if any(_problems(one)[1] for one in (kernel, other)):
            reason = texts.JUDGED_ALONE()
            return Obligation(kernel.name, undecided(reason), severity=severity, source=kernel.source)
        problem = next(devices_of(kernel, other).problems(), None)
    except Undecided as reason:
        what = texts.DEVICES_NEXT(next_, reason)
        return Obligation(kernel.name, undecided(what), severity=severity, source=kernel.source)
    if problem is None:
        figures: dict[str, object] = {"mesh": mesh_text(kernel)} | _on_rings(_rings((kernel, other)))
        proved = by_rule("", by="walk")
        return Obligation(kernel.name, proved, severity=severity, figures=figures, source=kernel.source)
    hint = texts.BARRIER_SEMAPHORE(problem.hint, next_, kernel.collective)
    return replace(
        answer_of(replace(problem, what=texts.NEXT_PLACE(problem.what, next_), hint=hint)), severity=severity
    )


def _meets(kernel: Kernel) -> bool:
    """Whether a body has a semaphore that other kernels have, too."""
    return any(is_barrier(kernel.body, reference.name) for reference in kernel.body.references)


def read_of_devices(kernel: Kernel, reference: BodyReference, spot: Spot) -> Obligation | None:
    """Whether an effect reads written memory, where other devices copy into it; None for other memory."""
    return _of_memory(kernel, reference, spot.source, lambda devices: devices.unwritten(spot))


def written_on_devices(kernel: Kernel, reference: BodyReference, spot: Spot) -> bool:
    """Whether the memory that an effect reads is written before on every device, as all of them are run.

    Of memory that copies move; of other memory the run of all devices knows nothing, nor that what a scope
    allocates is undefined where it begins again.
    """
    known = has_devices(kernel) and not kernel.body.unmodelled
    if not known or reference.role == "fresh" or not is_copied(kernel, reference):
        return False
    try:
        return devices_of(kernel).unwritten(spot) is None
    except Undecided:
        return False


def stored_of_devices(kernel: Kernel, reference: BodyReference) -> Obligation | None:
    """Whether all of an output is written that other devices copy into; None of other outputs."""
    if has_cores(kernel):
        # the elements that all of them write together are asked without their order
        return None
    return _of_memory(kernel, reference, kernel.source, lambda devices: devices.unstored(reference))


def _of_memory(
    kernel: Kernel, reference: BodyReference, source: str, ask: Callable[[Devices], DeviceProblem | None]
) -> Obligation | None:
    if not from_elsewhere(kernel, reference):
        return None
    if kernel.body.unmodelled:
        return Obligation(reference.name, undecided(texts.OTHERS_WRITE(reference.name)), source=source)
    try:
        problem = ask(devices_of(kernel))
    except Undecided as reason:
        return Obligation(reference.name, undecided(texts.DEVICES_DEPEND(reason)), source=source)
    if problem is not None:
        return answer_of(problem)
    return Obligation(reference.name, by_rule("", by="walk"), source=source)


def answer_of(problem: DeviceProblem) -> Obligation:
    """A problem as an answer."""
    claim = Settled(Verdict.REFUTED, problem.what, problem.hint, "walk", problem.point)
    return Obligation(problem.subject, claim if problem.sure else undecided(problem.what), source=problem.source)


def _on_rings(rings: Rings | None, kind: str = "") -> dict[str, object]:
    """The figures of rings of other sizes, beside a proof for the given mesh.

    kind: of the problem there, "" for all of them.
    """
    if rings is None:
        return {}
    if rings.problem is not None and kind in ("", rings.problem.kind):
        more = f"; from {rings.least} devices on it holds" if rings.least else ""
        return {"rings": texts.RING_SIZE(rings.size, rings.problem.what, more)}
    if not rings.least:
        return {}
    return {"rings": texts.EVERY_RING(rings.least)}


@lru_cache(maxsize=4)
def _rings(kernels: tuple[Kernel, ...]) -> Rings | None:
    return rings_of(devices_of(*kernels))


def mesh_text(kernel: Kernel) -> str:
    """The mesh that runs a kernel in words: proofs between devices are for this mesh."""
    return ", ".join(f"{axis}={extent}" for axis, extent in axes_of(kernel))


@lru_cache(maxsize=4)
def _problems(kernel: Kernel) -> tuple[Devices, tuple[DeviceProblem, ...]]:
    devices = devices_of(kernel)
    return devices, tuple(devices.problems())
