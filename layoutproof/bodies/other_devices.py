"""Which device a body means, and the memory of other GPUs, which has the shapes of the own one.

Read from jax/_src/pallas/mosaic_gpu/core.py and lowering.py (jax 0.10.2). `remote_ref` is an array of one other device,
`multicast_ref` that of all devices of the mesh: what is written there is written on each. Both are references of their
own here, so that nothing takes them for memory of the device that runs the body.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from layoutproof.bodies import problems
from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.effects import BodyReference, Device, View
from layoutproof.bodies.passes import Pass
from layoutproof.bodies.values import Value
from layoutproof.core.term import Term
from layoutproof.ir.program import Other

_PEER, _ALL = "PeerMemRef", "MulticastRef"
ELSEWHERE = (_PEER, _ALL)
"""Transforms that show the memory of other devices."""


def device_of(on: Pass, kind: object, said: Any, core: Any = None) -> Device | None:
    """The device that a `device_id` means; None where it is the one that runs the body. kind: how it is said.

    Source: `device_id_to_logical` of jax/_src/pallas/primitives.py (jax 0.10.2): as many places as the mesh has axes,
    in their order, or places by name, or one number.
    """
    axes = [name for name, _ in on.kernel.axes]
    named = isinstance(said, tuple) and all(isinstance(one, tuple) and len(one) == 2 for one in said)
    if core is not None or (named and any(name in on.names for name, _ in said)):
        return _core(on, core, said)
    if said is None or said == () or (axes and all(extent == 1 for _, extent in on.kernel.axes)):
        return None
    if named:
        places = tuple((str(name), amount_of(on, place)) for name, place in said)
        return Device(places if all(name in axes for name, _ in places) else ())
    if str(kind).upper().endswith("LOGICAL"):
        return Device(logical=amount_of(on, said)) if not isinstance(said, tuple) else Device()
    ids = said if isinstance(said, tuple) else (said,)
    if len(ids) != len(axes) or any(isinstance(one, tuple) for one in ids):
        return Device()
    return Device(tuple((name, amount_of(on, one)) for name, one in zip(axes, ids, strict=True)))


def _core(on: Pass, core: Any, said: Any) -> Device:
    """The core that a `core_index`, or a place by names of axes of cores, means."""
    if core is not None:
        # of a mesh of one axis, that of cores
        one = said is None and on.kernel.semantics == ("core_parallel",)
        return Device(((on.names[0], amount_of(on, core)),) if one else (), core=True)
    # along axes that are not said it is where the body runs
    here = all(name in on.names for name, _ in said)
    return Device(tuple((str(name), amount_of(on, place)) for name, place in said) if here else (), core=True)


def amount_of(on: Pass, value: Value | int) -> Term:
    """A number of the body, or one that the program has, as a term."""
    return on.scalar(value) if isinstance(value, Value) else Term("int", int(value))


def through_devices(on: Pass, view: View, transform: Other) -> View:
    """What a view shows, in the memory of the devices that `remote_ref` or `multicast_ref` means."""
    if transform.kind == _ALL:
        return on_devices(on, view, all_along(on, transform.parts["collective_axes"]))
    device = device_of(on, transform.parts["device_id_type"], transform.parts["device_id"])
    return view if device is None else on_devices(on, view, device)


def all_along(on: Pass, axes: object) -> Device:
    """All devices along some axes. UnsupportedOp unless these are all axes of the mesh, which JAX asks for."""
    named = tuple(map(str, axes)) if isinstance(axes, tuple | list) else (str(axes),)
    mesh = [name for name, _ in on.kernel.axes]
    if sorted(named) != sorted(mesh):
        raise UnsupportedOp(problems.MULTICAST_AXES(", ".join(named), ", ".join(mesh) or "no axis"))
    return Device(along=named)


def on_devices(on: Pass, view: View, device: Device) -> View:
    """The same part of the array of other devices. UnsupportedOp of memory that no other device sees."""
    own = view.reference
    if own.elsewhere is not None or own.memory != "gmem" or own.role not in ("in", "out"):
        raise UnsupportedOp(problems.MEMORY_ELSEWHERE(own.name))
    name = f"{own.name} of {'all devices' if device.along else 'another device'}"
    if any(reference.name == name for reference in on.references):
        name += f" ({on.named('')})"
    found = replace(own, name=name, role="around", elsewhere=(own.name, device))
    on.references.append(found)
    return View(found, view.steps)


def is_in_global(semaphore: BodyReference) -> bool:
    """Whether a semaphore lies in global memory, where other programs and devices count it up, too."""
    return semaphore.role == "semaphore" and not semaphore.arrivals and not semaphore.in_order
