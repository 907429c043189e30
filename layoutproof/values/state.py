"""What rules ask of the walk that they are rules of, and what a walk tells of what it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from layoutproof.ir.program import Equation, Program, Variable, Window
from layoutproof.values.kinds import Data, Kind, Shaped
from layoutproof.values.memory import CopyUnderWay, HeldMemory, Semaphore
from layoutproof.values.refusals import NotModelled

M = TypeVar("M", bound=Shaped)
Starts = tuple[tuple[int, int], ...]
"""Of each dimension of a block its first element in the array, and its extent."""
BlockKey = tuple[Window, tuple[int, ...], tuple[bytes, ...] | None]
"""A window, the ids of a program, and what is in the tables that index maps read, None where that is data."""
Compute = Callable[[list[Any]], Sequence[Shaped]]
"""What gives results for the operands of one device."""
Rule = Callable[["Walking", Equation, list[Any]], Sequence[Shaped]]
"""(walk, equation, operands) -> results. Each rule says what its primitive takes; nobody but the program has checked
that it is given that."""


@dataclass
class GridPosition:
    """Where a kernel's walk is. grid: its extents.  ids: of the program.  counted: the axes that the body counts."""

    grid: tuple[int, ...]
    ids: tuple[int, ...]
    counted: tuple[int, ...]


class SeenWindow(Protocol):
    """One operand of a kernel. whole: all of it.  memory: of the block that is there.  at: where that starts.

    extents: of a block.
    """

    whole: HeldMemory
    output: bool
    at: Starts | None
    memory: HeldMemory | None
    extents: tuple[int, ...]

    @property
    def windowed(self) -> bool:
        """As of `Window`."""


class ReadyPrograms(Protocol):
    """What is kept for all walks over some programs, as of `walk.Prepared`."""

    @property
    def starts(self) -> dict[BlockKey, tuple[Starts, bool]]:
        """Of index maps whose tables are known, the blocks of each program."""

    @property
    def tick(self) -> Callable[[tuple[int, ...], tuple[int, ...]], None]:
        """Is told of each program that is walked."""


class Auditing(Protocol):
    """What is told of exponentials, and of programs that were walked."""

    def exponent(self, on: Walking, argument: Data) -> None:
        """The argument of an exponential that is computed now."""

    def body(self, program: Program) -> None:
        """A program that was walked."""


class Watching(Protocol):
    """What is told of programs, loads and stores, and may turn them."""

    def call(self, windows: Sequence[SeenWindow], scratch: Sequence[Shaped]) -> Sequence[Shaped] | None:
        """A kernel begins: its results, where it is not to be walked."""

    def program(self, on: Walking, jaxpr: Program, arguments: Sequence[Shaped]) -> None:
        """A program begins."""

    def branch(self, equation: Equation, chosen: int, operands: Sequence[Shaped]) -> int:
        """Which branch is taken."""

    def handed_on(
        self, on: Walking, equation: Equation, step: int, before: Sequence[Shaped], after: Sequence[Shaped]
    ) -> Sequence[Shaped]:
        """A step of a loop is done: what it hands on."""

    def loop(self, on: Walking, equation: Equation) -> None:
        """A loop begins."""

    def read(self, on: Walking, value: Shaped) -> None:
        """A value is taken from memory, or from a larger array."""

    def loads(self, on: Walking, memory: HeldMemory | Semaphore) -> None:
        """Something is read."""

    def stores(self, on: Walking, memory: HeldMemory | Semaphore, value: Shaped) -> bool:
        """Something is stored: whether it may be."""

    def done(self) -> None:
        """A kernel ends."""


class DevicesTogether(Protocol):
    """The devices that run one kernel, as of `lockstep.Lockstep`."""

    def run(self, on: Walking, compute: Compute, rows: Sequence[list[Shaped]]) -> list[Sequence[Shaped]]:
        """What a kernel gives on each device."""

    def wait(self, on: Walking, until: Callable[[], bool]) -> None:
        """Goes on when something is so."""

    def begins(self, on: Walking, arguments: Sequence[Shaped]) -> None:
        """A program begins."""

    def allocated(self, on: Walking, equation: Equation, made: Sequence[Shaped]) -> Sequence[Shaped]:
        """A scope has allocated memory: that which it works on."""

    def barrier(self, on: Walking) -> Semaphore:
        """The barrier semaphore of the device that asks."""

    def meets(self, on: Walking, group: Sequence[int]) -> None:
        """Goes on when all of a group have come here as often."""

    def peer(self, on: Walking, device: int, memory: M) -> M:
        """What a reference of this device is on another one."""

    def number(self, on: Walking, equation: Equation, said: object) -> int:
        """The number of the device that a `device_id` means."""


class Walking(Protocol):
    """The state of one walk, as of `walk.Walk`, which says what each part is."""

    numbers: Kind
    audit: Auditing | None
    watch: Watching | None
    programs: GridPosition | None
    program: Program | None
    equation: Equation | None
    seen: int
    inside: bool
    flying: list[CopyUnderWay]
    ordered: bool
    race: str
    defined: bool
    complete: bool
    mesh: tuple[tuple[str, int], ...]
    device: int | None
    warp: tuple[str, int, int] | None
    lockstep: DevicesTogether | None
    around: list[Equation | None]
    trips: dict[Equation, int]

    @property
    def prepared(self) -> ReadyPrograms:
        """The programs of all walks."""

    def place(self) -> str:
        """`file:line` of the equation that is computed, or of the one that it is in."""

    def refuse(self, what: str) -> NotModelled:
        """What to raise."""

    def data(self, value: Shaped) -> Data:
        """A value as data."""

    def is_used(self, variable: Variable) -> bool:
        """Whether somebody looks at a result of the equation that is computed."""

    def is_long(self) -> bool:
        """Whether a walk over what is not checked took a good part of its steps."""

    def run(self, inner: Program, arguments: Sequence[Shaped]) -> list[Shaped]:
        """The results of a program for some values."""
