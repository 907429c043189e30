"""What a walk over a kernel tells of its programs, and how one of them is made to end early.

A program that ends early leaves out the stores after some number of them, and then stores its output block as the last
program of that block does: the branches which store the block at the end are taken, whatever their conditions say. So
what a state would give as an output is known after every store, and is compared with the reference of a prefix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from layoutproof.values.known import Known
from layoutproof.values.references import Memory
from layoutproof.values.refusals import Ended

Array = np.ndarray[Any, Any]
Starts = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Store:
    """One store. place: `file:line`.  memory: the position among what the body is given, -1 of its own memory.

    output: of which output's block, -1 of none.  computed: whether data are stored that nothing else in memory holds.
    around: the branches that it is in, each with the one that is taken.
    """

    place: str
    memory: int
    output: int
    computed: bool
    around: tuple[tuple[int, int], ...]


@dataclass
class Program:
    """What one program did. blocks: of each output, where its block starts.  read: likewise of each input.

    carried: positions of memory that is read before anything is stored to it.  read_in: of memory that is read in
    branches, its position and each branch.
    """

    ids: tuple[int, ...]
    blocks: tuple[Starts | None, ...]
    read: tuple[Starts | None, ...]
    stores: list[Store] = field(default_factory=list)
    carried: set[int] = field(default_factory=set)
    read_in: set[tuple[int, int]] = field(default_factory=set)


@dataclass(frozen=True)
class Early:
    """A program that ended early. blocks: of each output what it would store.  held: after each store, what is in the
    memory that it is to, and its position."""

    blocks: tuple[Array, ...]
    held: tuple[tuple[int, Array], ...] = ()


class Watch:
    """What a walk is asked to tell of its kernel.

    given: results that the kernel has instead of being walked.  last: the branches that store a block at the end, each
    with the one that is then taken.  early: of programs, by their number, after how many stores they are to end; None
    after all.
    """

    def __init__(
        self,
        given: Sequence[Any] | None = None,
        last: Mapping[int, int] | None = None,
        early: Mapping[int, Sequence[int | None]] | None = None,
    ) -> None:
        self.given, self.last, self.early = given, last or {}, early or {}
        self.calls = 0
        self.windows: list[Any] = []
        self.programs: list[Program] = []
        self.ended: dict[tuple[int, int | None], Early] = {}
        self.fed: set[int] = set()
        self._taken: dict[int, int] = {}
        self._memories: list[Any] = []
        self._left: int | None = None
        self._trial: list[tuple[int, Array]] | None = None
        self._stored: set[int] = set()
        self._whole = True

    @property
    def fit(self) -> bool:
        """Whether there was one kernel, whose outputs are stored block by block, with no copies by hand."""
        return self.calls == 1 and self._whole and bool(self.windows) and all(w.windowed for w in self._results)

    @property
    def _results(self) -> list[Any]:
        return [w for w in self.windows if w.output]

    @property
    def results(self) -> list[Any]:
        """What the kernel gave."""
        return [w.whole.value for w in self._results]

    # what a walk tells

    def call(self, windows: Sequence[Any], scratch: Sequence[Any]) -> Sequence[Any] | None:
        """A kernel begins: its results, where it is not to be walked."""
        if self.given is not None:
            return self.given
        self.calls += 1
        self.windows = list(windows)
        self._whole = self._whole and all(isinstance(s, Memory) for s in scratch)
        return None

    def program(self, on: Any, jaxpr: Any, arguments: Sequence[Any]) -> None:
        """A program begins."""
        number = len(self.programs)
        outputs = self._results
        self._memories = list(arguments)
        self.programs.append(
            Program(
                on.programs.ids, tuple(w.at for w in outputs),
                tuple(w.at if w.windowed else None for w in self.windows if not w.output),
            )
        )  # fmt: skip
        for after in self.early.get(number, ()):
            held = [(m, m.value, m.changed) for m in arguments if isinstance(m, Memory)]
            self._left, self._trial = after, []
            on.run(jaxpr, arguments)
            self._keep()
            blocks = tuple(np.array(on.data(w.memory.value).array) for w in outputs)
            self.ended[number, after] = Early(blocks, tuple(self._trial))
            self._trial = None
            for memory, value, changed in held:
                memory.value, memory.changed = value, changed
        if self.early and number == max(self.early):
            raise Ended
        self._stored = set()

    def branch(self, equation: Any, chosen: int, operands: Sequence[Any]) -> int:
        """Which branch is taken."""
        if self._trial is not None:
            return self.last.get(id(equation), chosen)
        self._taken[id(equation)] = chosen
        if any(not isinstance(o, Known) and hasattr(o, "array") for o in operands):
            self.fed.add(id(equation))
        return chosen

    def handed_on(
        self, on: Any, equation: Any, step: int, before: Sequence[Any], after: Sequence[Any]
    ) -> Sequence[Any]:
        """A step of a loop is done: what it hands on."""
        return after

    def loads(self, on: Any, memory: Any) -> None:
        """Something is read."""
        if self._trial is None and self.programs:
            at = self._position(memory)
            if at not in self._stored:
                self.programs[-1].carried.add(at)
            self.programs[-1].read_in.update((at, key) for key, _ in self._around(on))
            if any(w.memory is memory for w in self.windows if not w.output):
                self.fed.update(key for key, _ in self._around(on))

    def stores(self, on: Any, memory: Any, value: Any) -> bool:
        """Something is stored: whether it may be."""
        if not self.programs:
            return True
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
        self.programs[-1].stores.append(Store(on.place(), self._position(memory), output, computed, around))
        self._stored.add(self._position(memory))
        return True

    def _keep(self) -> None:
        """Keeps what the last store left in its memory."""
        if self._trial and not self._trial[-1][1].size:
            at, _ = self._trial[-1]
            if at >= 0:
                self._trial[-1] = at, np.asarray(self._memories[at].value.array)

    def _around(self, on: Any) -> tuple[tuple[int, int], ...]:
        conditions = [e for e in on.around if e is not None and e.primitive.name == "cond"]
        return tuple((id(e), self._taken.get(id(e), 0)) for e in conditions)

    def _position(self, memory: Any) -> int:
        return next((k for k, m in enumerate(self._memories) if m is memory), -1)

    def _held(self, target: Any, value: Any) -> bool:
        """Whether a value is what some other memory holds to which the kernel stored."""
        return any(
            isinstance(m, Memory) and m is not target and m.changed and _alike(m.value, value) for m in self._memories
        )


def _alike(one: Any, other: Any) -> bool:
    a, b = np.asarray(one.array), np.asarray(other.array)
    return a.size == b.size and bool(np.array_equal(a.reshape(-1), b.reshape(-1), equal_nan=a.dtype.kind == "f"))
