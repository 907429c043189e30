"""The observer of a walk over a kernel's programs, which can also end one of them early.

A program that ends early leaves out the stores after some number of them, and then stores its output block as the last
program of that block does: the branches which store the block at the end are taken, whatever their conditions say. So
what a state would give as an output is known after every store, and is compared with the reference of a prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from layoutproof.ir.program import Equation, Program
from layoutproof.values.floats import array_of
from layoutproof.values.kinds import Shaped
from layoutproof.values.known import Known
from layoutproof.values.memory import HeldMemory, Semaphore
from layoutproof.values.refusals import Ended
from layoutproof.values.state import SeenWindow, Walking

Array = np.ndarray[Any, Any]
Starts = tuple[tuple[int, int], ...]
Read = tuple[int, Array]
"""An argument, and the flat places of some of its elements."""


@dataclass(frozen=True)
class ObservedStore:
    """One store. place: `file:line`.  memory: the position among what the body is given, -1 of its own memory.

    output: of which output's block, -1 of none.  computed: whether data are stored that nothing else in memory holds.
    around: the branches that it is in, each with the one that is taken.
    """

    place: str
    memory: int
    output: int
    computed: bool
    around: tuple[tuple[int, int], ...]


@dataclass(eq=False)
class Looped:
    """The steps of a loop in one program. equation: the loop.  instance: the how many-th time it ran there.

    handed: after each step, the floats that it hands on, None of others.  stores: of each step those of data, as
    (place, memory, value).  loaded: memory that they load.  reads: of each step elements of arguments that it reads.
    resets: the steps in which constants are stored.
    """

    equation: Any
    instance: int
    handed: list[list[Array | None]] = field(default_factory=list)
    stores: list[list[tuple[str, int, Array]]] = field(default_factory=lambda: [[]])
    loaded: set[int] = field(default_factory=set)
    reads: list[list[Read]] = field(default_factory=lambda: [[]])
    resets: set[int] = field(default_factory=set)

    @property
    def keeps(self) -> set[int]:
        """Memory to which several steps store data, and which they load."""
        stored = [{memory for _, memory, _ in step} for step in self.stores]
        return {m for m in self.loaded if sum(m in step for step in stored) > 1}

    @property
    def step(self) -> int:
        """The one that runs now."""
        return len(self.handed)


@dataclass(frozen=True)
class Freeze:
    """The steps of a loop after which its state stays as it is: after `step`, and `stores` of the next one.

    number: of the program.  loop: as of `Looped`.
    """

    number: int
    equation: Any
    instance: int
    step: int
    stores: int = 0


@dataclass
class ProgramStores:
    """One observed program. blocks: of each output, where its block starts.  read: likewise of each input.

    loops: those that it ran.
    reads: the elements of arguments that it reads, each with the loops around.
    carried: positions of memory that is read before anything is stored to it.  read_in: of memory that is read in
    branches, its position and each branch.
    """

    ids: tuple[int, ...]
    blocks: tuple[Starts | None, ...]
    read: tuple[Starts | None, ...]
    stores: list[ObservedStore] = field(default_factory=list)
    carried: set[int] = field(default_factory=set)
    read_in: set[tuple[int, int]] = field(default_factory=set)
    loops: list[Looped] = field(default_factory=list)
    reads: list[tuple[tuple[Looped, ...], Read]] = field(default_factory=list)


@dataclass(frozen=True)
class Early:
    """A program that ended early. blocks: of each output what it would store.  held: after each store, what is in the
    memory that it is to, and its position."""

    blocks: tuple[Array, ...]
    held: tuple[tuple[int, Array], ...] = ()


class Watch:
    """The events that a walk reports on its kernel.

    which: the how many-th kernel of the function it is.  given: results that it has instead of being walked.
    found: of numbers, which elements of arguments they are.  freeze: where a loop's state stays as it is, which is what
    it hands on, and memory with numbers in `keeps`.
    last: the branches that store a block at the end, each with the one that is then taken.
    early: of programs, by their number, after how many stores they are to end; None after all.
    """

    def __init__(
        self,
        given: Sequence[Shaped] | None = None,
        last: Mapping[int, int] | None = None,
        early: Mapping[int, Sequence[int | None]] | None = None,
        which: int = 0,
        found: Callable[[Array], list[Read]] | None = None,
        freeze: Freeze | None = None,
        keeps: Set[int] = frozenset(),
    ) -> None:
        self.which, self.found, self.freeze, self.keeps = which, found, freeze, keeps
        self.given, self.last, self.early = given, last or {}, early or {}
        self.calls = 0
        self.windows: list[SeenWindow] = []
        self.programs: list[ProgramStores] = []
        self.ended: dict[tuple[int, int | None], Early] = {}
        self.fed: set[int] = set()
        self._taken: dict[int, int] = {}
        self._memories: list[Shaped] = []
        self._left: int | None = None
        self._trial: list[tuple[int, Array]] | None = None
        self._stored: set[int] = set()
        self._active = False
        self._numbers: dict[int, int] = {}
        self._kept: list[HeldMemory | Semaphore] = []
        self._thawed: set[int] = set()
        self._many = 0

    @property
    def fit(self) -> bool:
        """Whether the kernel's outputs are stored block by block."""
        return bool(self.windows) and all(w.windowed for w in self._results)

    @property
    def _results(self) -> list[SeenWindow]:
        return [w for w in self.windows if w.output]

    @property
    def results(self) -> list[Shaped]:
        """The kernel's results."""
        return [w.whole.value for w in self._results]

    # called by the walk

    def call(self, windows: Sequence[SeenWindow], scratch: Sequence[Shaped]) -> Sequence[Shaped] | None:
        """A kernel begins: its results, where it is not to be walked."""
        self.calls += 1
        if self.calls - 1 != self.which:
            return None
        if self.given is not None:
            return self.given
        self._active = True
        self.windows = list(windows)
        return None

    def done(self) -> None:
        """A kernel ends."""
        self._active = False

    def program(self, on: Walking, jaxpr: Program, arguments: Sequence[Shaped]) -> None:
        """A program begins."""
        if not self._active:
            return
        self._numbers, self._kept, self._thawed, self._many = {}, [], set(), 0
        assert on.programs is not None
        number = len(self.programs)
        outputs = self._results
        self._memories = list(arguments)
        self.programs.append(
            ProgramStores(
                on.programs.ids, tuple(w.at for w in outputs),
                tuple(w.at if w.windowed else None for w in self.windows if not w.output),
            )
        )  # fmt: skip
        for after in self.early.get(number, ()):
            held = [(m, m.value, m.changed) for m in arguments if isinstance(m, HeldMemory)]
            waiting = [(s, {k: list(v) for k, v in s.waiting.items()}) for s in arguments if isinstance(s, Semaphore)]
            flying, ordered = list(on.flying), on.ordered
            self._left, self._trial = after, []
            on.run(jaxpr, arguments)
            self._keep()
            blocks = tuple(np.array(array_of(on.data(w.memory.value))) for w in outputs if w.memory is not None)
            self.ended[number, after] = Early(blocks, tuple(self._trial))
            self._trial = None
            for memory, value, changed in held:
                memory.value, memory.changed = value, changed
            for semaphore, copies in waiting:
                semaphore.waiting = copies
            on.flying, on.ordered = flying, ordered
        if self.early and number == max(self.early):
            raise Ended
        self._stored = set()

    def branch(self, equation: Equation, chosen: int, operands: Sequence[Shaped]) -> int:
        """Which branch is taken."""
        if not self._active:
            return chosen
        if self._trial is not None:
            return self.last.get(id(equation), chosen)
        self._taken[id(equation)] = chosen
        if any(not isinstance(o, Known) and hasattr(o, "array") for o in operands):
            self.fed.add(id(equation))
        return chosen

    def handed_on(
        self, on: Walking, equation: Equation, step: int, before: Sequence[Shaped], after: Sequence[Shaped]
    ) -> Sequence[Shaped]:
        """A step of a loop is done: its carried values."""
        if not self._running():
            return after
        loop = self._latest(equation)
        floats = [np.asarray(array_of(v)) if _is_float(v) else None for v in after]
        loop.handed.append(floats)
        loop.stores.append([])
        loop.reads.append([])
        if self._is_frozen(loop, step):
            return [b if f is not None else a for a, b, f in zip(after, before, floats, strict=True)]
        return after

    def loop(self, on: Walking, equation: Equation) -> None:
        """A loop begins."""
        if self._running():
            loops = self.programs[-1].loops
            loops.append(Looped(equation, sum(loop.equation is equation for loop in loops)))
            self._thawed, self._many = set(), 0

    def read(self, on: Walking, value: Shaped) -> None:
        """A value is taken from memory, or from a larger array: which elements of arguments are in it."""
        if self.found is None or _copies(on) or not self._running() or not _is_float(value):
            return
        loops = self._loops(on)
        for each in self.found(np.asarray(array_of(value))):
            self.programs[-1].reads.append((tuple(loops), each))
            for loop in loops:
                loop.reads[-1].append(each)

    def loads(self, on: Walking, memory: HeldMemory | Semaphore) -> None:
        """Something is read."""
        if self._running() and not _copies(on):
            for loop in self._loops(on):
                loop.loaded.add(self._number(memory))
            at = self._position(memory)
            if at not in self._stored:
                self.programs[-1].carried.add(at)
            self.programs[-1].read_in.update((at, key) for key, _ in self._around(on))
            if any(w.memory is memory for w in self.windows if not w.output):
                self.fed.update(key for key, _ in self._around(on))

    def stores(self, on: Walking, memory: HeldMemory | Semaphore, value: Shaped) -> bool:
        """Something is stored: whether it may be."""
        if not self._active or not self.programs:
            return True
        if _copies(on):
            return True
        if self._running() and not self._stores_in_loops(on, memory, value):
            return False
        around = self._around(on)
        if self._trial is not None:
            if any(key in self.last for key, _ in around):
                return True
            self._keep()
            if self._left is not None and len(self._trial) >= self._left:
                return False
            self._trial.append((self._position(memory), np.empty(0)))
            return True
        output = next((k for k, w in enumerate(self._results) if w.memory is memory), -1)
        computed = not isinstance(value, Known) and not self._held(memory, value)
        self.programs[-1].stores.append(ObservedStore(on.place(), self._position(memory), output, computed, around))
        self._stored.add(self._position(memory))
        return True

    # loops

    def _running(self) -> bool:
        """Whether a program of the kernel runs as it is."""
        return self._active and self._trial is None and bool(self.programs)

    def _loops(self, on: Walking) -> list[Looped]:
        """The loops around what is computed."""
        loops = {id(loop.equation): loop for loop in self.programs[-1].loops}
        return [loops[id(e)] for e in on.around if id(e) in loops]

    def _latest(self, equation: Equation) -> Looped:
        return next(loop for loop in reversed(self.programs[-1].loops) if loop.equation is equation)

    def _number(self, memory: HeldMemory | Semaphore) -> int:
        """Memory by the order in which the program meets it."""
        if id(memory) not in self._numbers:
            self._numbers[id(memory)] = len(self._numbers)
            # so that no other has its identity
            self._kept.append(memory)
        return self._numbers[id(memory)]

    def _is_frozen(self, loop: Looped, step: int) -> bool:
        f = self.freeze
        here = f is not None and loop.equation is f.equation and loop.instance == f.instance
        return here and f is not None and len(self.programs) - 1 == f.number and step > f.step

    def _stores_in_loops(self, on: Walking, memory: HeldMemory | Semaphore, value: Shaped) -> bool:
        """Notes a store for the loops around it: whether it may be."""
        number, allowed = self._number(memory), True
        constant = not _is_float(value) or isinstance(value, Known)
        for loop in self._loops(on):
            if constant:
                loop.resets.add(loop.step)
                if self._is_frozen(loop, loop.step):
                    self._thawed.add(number)
                continue
            loop.stores[-1].append((on.place(), number, np.asarray(array_of(value))))
            if self._is_frozen(loop, loop.step) and number in self.keeps and number not in self._thawed:
                assert self.freeze is not None
                many = len(loop.stores[-1])
                allowed = loop.step == self.freeze.step + 1 and many <= self.freeze.stores
        return allowed

    def _keep(self) -> None:
        """Keeps what the last store left in its memory."""
        if self._trial and not self._trial[-1][1].size:
            at, _ = self._trial[-1]
            if at >= 0:
                self._trial[-1] = at, np.asarray(array_of(cast(HeldMemory, self._memories[at]).value))

    def _around(self, on: Walking) -> tuple[tuple[int, int], ...]:
        conditions = [e for e in on.around if e is not None and e.primitive.name == "cond"]
        return tuple((id(e), self._taken.get(id(e), 0)) for e in conditions)

    def _position(self, memory: HeldMemory | Semaphore) -> int:
        return next((k for k, m in enumerate(self._memories) if m is memory), -1)

    def _held(self, target: HeldMemory | Semaphore, value: Shaped) -> bool:
        """Whether a value is what some other memory holds to which the kernel stored."""
        return any(
            isinstance(m, HeldMemory) and m is not target and m.changed and _alike(m.value, value)
            for m in self._memories
        )


def _copies(on: Walking) -> bool:
    """Whether the equation is part of a manual DMA, whose data is no effect of the state."""
    assert on.equation is not None
    return bool(on.equation.primitive.name.startswith("dma_"))


def _is_float(value: Shaped) -> bool:
    return hasattr(value, "array") and getattr(value.array, "dtype", np.dtype(bool)).kind == "f"


def _alike(one: Shaped, other: Shaped) -> bool:
    a, b = np.asarray(array_of(one)), np.asarray(array_of(other))
    return a.size == b.size and bool(np.array_equal(a.reshape(-1), b.reshape(-1), equal_nan=a.dtype.kind == "f"))
