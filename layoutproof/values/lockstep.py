"""Devices that run one kernel and reach one another: one at a time, each until it waits for what is not there yet.

Which of them goes on first is nothing to what they compute: that no two touch memory at the same time, and that none
waits for ever, are premises of the answer (`device_races`, `device_waits`). Each runs in a thread of its own, of which
one goes on at any time, so that a walk need not know that it is interrupted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any, cast

from layoutproof.ir.program import Equation
from layoutproof.values.kinds import Shaped
from layoutproof.values.memory import Semaphore
from layoutproof.values.movement import numbers_of
from layoutproof.values.state import Compute, M, Walking

PARTS = ("program", "programs", "equation", "flying", "around", "device", "warp")
"""The parts of a walk's state that each device has for itself."""


class OtherDeviceFailed(Exception):
    """Another device has failed, and this one ends, too."""


class Lockstep:
    """One run of a kernel on all devices.

    arguments: the memory that the body of each is given, while it runs.  scopes: what its scopes have allocated, in
    order.  first: the number of the first device in the mesh.  called: the devices, in words, where they wait.
    """

    def __init__(
        self, mesh: Sequence[tuple[str, int]], count: int, first: int = 0,
        called: str = "devices that wait for one another",
    ) -> None:  # fmt: skip
        self.mesh, self.count, self.first, self.called = tuple(mesh), count, first, called
        self.arguments: list[Sequence[Shaped]] = [()] * count
        self.scopes: list[list[Shaped]] = [[] for _ in range(count)]
        self._barriers = [Semaphore(()) for _ in range(count)]
        self._met = [0] * count
        self._going = [threading.Event() for _ in range(count)]
        self._until: list[Callable[[], bool] | None] = [None] * count
        self._ended = [False] * count
        self._results: list[Sequence[Shaped]] = [()] * count
        self._failed: BaseException | None = None
        self._back = threading.Event()
        self._python: list[threading.Thread] = []

    def run(self, on: Walking, compute: Compute, rows: Sequence[list[Shaped]]) -> list[Sequence[Shaped]]:
        """The results of a kernel on each device. rows: the operands of each."""
        kept = {part: getattr(on, part) for part in PARTS}
        for device, row in enumerate(rows):
            self.starts_one(on, compute, row, device, {**kept, "device": self.first + device})
        try:
            self._turns(on)
        finally:
            self._failed = self._failed or OtherDeviceFailed()
            for going in self._going:
                going.set()
            for thread in self._python:
                thread.join()
            for part, value in kept.items():
                setattr(on, part, value)
        return self._results

    def starts_one(
        self, on: Walking, compute: Compute, row: list[Shaped], device: int, parts: dict[str, object]
    ) -> None:  # fmt: skip
        """Starts a device, which goes on when it has its turn. parts: of the walk's state, as it has them then."""
        # each has the budget that is around
        work = partial(copy_context().run, self._work, on, compute, row, device, parts)
        self._python.append(threading.Thread(target=work, daemon=True))
        self._python[-1].start()

    def _turns(self, on: Walking) -> None:
        """Lets one device after the other go on, as long as one can."""
        while not all(self._ended):
            ready = [d for d in range(self.count) if not self._ended[d] and self._may(d)]
            if not ready:
                raise on.refuse(f"{self.called} for ever")
            for device in ready:
                self._back.clear()
                self._going[device].set()
                self._back.wait()
                if self._failed is not None:
                    raise self._failed

    def _may(self, device: int) -> bool:
        until = self._until[device]
        return until is None or until()

    def _work(self, on: Walking, compute: Compute, row: list[Shaped], device: int, kept: dict[str, object]) -> None:
        self._pause(device)
        try:
            if self._failed is None:
                for part, value in kept.items():
                    setattr(on, part, list(value) if isinstance(value, list) else value)
                self._results[device] = compute(row)
        except BaseException as error:
            self._failed = self._failed or error
        self._ended[device] = True
        self._back.set()

    def _pause(self, device: int) -> None:
        self._going[device].wait()
        self._going[device].clear()

    # used by walks

    def wait(self, on: Walking, until: Callable[[], bool]) -> None:
        """Goes on when something is so; meanwhile other devices do."""
        if until():
            return
        kept = {part: getattr(on, part) for part in PARTS}
        device = self.own(on)
        self._until[device] = until
        self._back.set()
        self._pause(device)
        if self._failed is not None:
            raise OtherDeviceFailed
        self._until[device] = None
        for part, value in kept.items():
            setattr(on, part, value)

    def begins(self, on: Walking, arguments: Sequence[Shaped]) -> None:
        """A program begins; the first when all devices have got so far."""
        self.arguments[self.own(on)] = arguments
        self.wait(on, lambda: all(self.arguments))

    def own(self, on: Walking) -> int:
        """The number of the device that runs now, among those that run together."""
        assert on.device is not None
        return on.device - self.first

    def allocated(self, on: Walking, equation: Equation, made: Sequence[Shaped]) -> Sequence[Shaped]:
        """The memory of a scope, which has allocated some for this device."""
        self.scopes[self.own(on)] += made
        return made

    def barrier(self, on: Walking) -> Semaphore:
        """The barrier semaphore of the device that asks."""
        return self._barriers[self.own(on)]

    def meets(self, on: Walking, group: Sequence[int]) -> None:
        """Goes on when all of a group have come here as often."""
        self._met[self.own(on)] += 1
        often = self._met[self.own(on)]
        self.wait(on, lambda: all(self._met[device] >= often for device in group))

    def peer(self, on: Walking, device: int, memory: M) -> M:
        """The reference of another device that corresponds to one of this device, of the same kind."""
        return cast(M, self._peer(on, device, memory))

    def _peer(self, on: Walking, device: int, memory: Shaped) -> Shaped:
        own = self.own(on)
        if memory is self._barriers[own]:
            return self._barriers[device]
        for k, given in enumerate(self.arguments[own]):
            if given is memory:
                return self.arguments[device][k]
        number = next((k for k, made in enumerate(self.scopes[own]) if made is memory), None)
        if number is None:
            raise on.refuse("memory that another device has no counterpart of")
        self.wait(on, lambda: len(self.scopes[device]) > number)
        return self.scopes[device][number]

    def number(self, on: Walking, equation: Equation, said: Any) -> int:
        """The number of the device that a `device_id` means, counted over the mesh in row-major order."""
        extents, names = [n for _, n in self.mesh], [name for name, _ in self.mesh]
        own = list(_place(self.own(on), extents))
        if isinstance(said, tuple) and said and all(isinstance(one, tuple) and len(one) == 2 for one in said):
            if any(name not in names for name, _ in said):
                raise on.refuse("a device along an axis that is none of the mesh")
            for (name, _), at in zip(said, numbers_of(on, [at for _, at in said], "a device"), strict=True):
                own[names.index(name)] = at
        else:
            ids = numbers_of(on, list(said) if isinstance(said, tuple) else [said], "a device")
            if str(equation.params.get("device_id_type", "LOGICAL")).endswith("LOGICAL"):
                if len(ids) != 1 or not 0 <= ids[0] < self.count:
                    raise on.refuse(f"device {ids} of {self.count}")
                return ids[0]
            if len(ids) != len(extents):
                raise on.refuse(f"a device by {len(ids)} places on a mesh of {len(extents)} axes")
            own = ids
        if any(not 0 <= at < n for at, n in zip(own, extents, strict=True)):
            raise on.refuse(f"the device at {own} of a mesh of {extents}")
        number = 0
        for at, n in zip(own, extents, strict=True):
            number = number * n + at
        return number


def _place(number: int, extents: Sequence[int]) -> tuple[int, ...]:
    found = []
    for n in reversed(extents):
        number, at = divmod(number, n)
        found.append(at)
    return tuple(reversed(found))
