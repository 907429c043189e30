"""What a device does at one moment, and the memory that it touches then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from layoutproof.bodies.cells import Box
from layoutproof.bodies.effects import Spot
from layoutproof.bodies.regions import ViewedRegion

Place = tuple[int, ...]
ADDS = "adds to"

Key = tuple[int, int, str, Place]
"""A semaphore: of which device, of which kernel (0 where all have it), its name, its slot."""


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """Memory that is touched: of which device, which part.

    device: whose it is; the first of those that share it.  memory: the kernel, the array, and of a window that moves
    the program whose it is.  sure: whether all of it is touched in any case.  adds: element by element, never two at
    once.  aside: whether it is only touched as another array has the same place.
    """

    device: int
    memory: tuple[Any, ...]
    region: ViewedRegion
    writes: bool
    does: str
    sure: bool = True
    adds: bool = False
    aside: bool = False

    @property
    def reads(self) -> bool:
        """Whether what is there matters."""
        return not self.writes or self.does == ADDS


@dataclass(frozen=True, slots=True)
class Event:
    """What a device does at one moment.

    kind: "touch", "start" (of a copy), "signal", "wait", "filled" (by copies that have ended); of a GPU also "phase"
    (the wait for a phase of a barrier: `amount` arrivals from the beginning, of which it takes none), "use" (an MMA
    starts), "close" (of a group), "drain" (a wait that leaves `amount` groups), "commit", "before" and "after" (fences
    of tensor memory, by where they stand to what orders threads), "used" (of loads, which have ended: what they gave is
    in what comes next), "passed" (nothing).  call: of which kernel.
    position: among the events of the device.  amount: what is signalled or waited for, or bytes.  semaphore: what is
    counted; of a copy, what counts when it has arrived.  sent: of a remote copy, what counts when it has been sent.
    pieces: what is touched; of a copy, its source and its target.  queue: where it ends in the order of the starts.
    by_name: whether the barrier is one of the hardware, which begins anew after each phase, or a semaphore that is
    waited for and kept.  of_reads: of a "drain", whether copies have then ended with what they read alone.  needs: the
    positions of the loads that have ended.
    """

    kind: str
    device: int
    call: int
    position: int
    spot: Spot
    program: Place
    turns: Place
    amount: int = 0
    bytes: bool = False
    semaphore: Key | None = None
    sent: Key | None = None
    pieces: tuple[DeviceMemory, ...] = ()
    queue: str = ""
    by_name: bool = False
    of_reads: bool = False
    needs: Place = ()


class _Numbers:
    """Numbers that are all known: what `common_element` asks of them."""

    @staticmethod
    def interval(number: object) -> tuple[int, int] | None:
        return (number, number) if type(number) is int else None

    @staticmethod
    def apart(number: object) -> int:
        return 0


KNOWN: Any = _Numbers()
"""For regions of which all numbers are known."""


def box_of(region: ViewedRegion) -> Box | None:
    """The elements of a region, where they are known and next to each other."""
    if not region.exact or any(type(a) is not int or type(n) is not int for a, n, _ in region.runs):
        return None
    if any(stride != 1 and size != 1 for _, size, stride in region.runs):
        return None
    return tuple((int(a), int(a) + int(n)) for a, n, _ in region.runs)  # type: ignore[arg-type]


def hull_of(region: ViewedRegion) -> Box | None:
    """A box that has all elements of a region in it; None where the numbers are not known."""
    if any(type(a) is not int or type(n) is not int or stride < 0 for a, n, stride in region.runs):
        return None
    return tuple((int(a), int(a) + (int(n) - 1) * stride + 1) for a, n, stride in region.runs)  # type: ignore[arg-type]
