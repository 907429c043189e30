"""The function around a kernel as steps in their order, with the kernels before and after it.

A copy that one kernel starts and another one waits for concerns both, and all steps between them.
"""

from __future__ import annotations

from dataclasses import dataclass

from layoutproof.kernel.kernel import Kernel


@dataclass(frozen=True, slots=True, eq=False)
class FunctionStep:
    """One thing that a function does with its values, which are numbered.

    name: in words.  source: file:line.  given, made: the values that it reads and gives; of a kernel its tables and
    inputs, and its outputs.  kernel: the one that it runs, None = none.  same: (position in given, position in made) of
    values in one buffer.  moves: whether it only passes its values on.  kept: whether it runs although its results are
    unused.
    """

    name: str
    source: str
    given: tuple[int, ...]
    made: tuple[int, ...]
    kernel: Kernel | None = None
    same: tuple[tuple[int, int], ...] = ()
    moves: bool = False
    kept: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class CallingFunction:
    """The steps of the function that a kernel is called in.

    mine: the position of the step that runs the kernel.  given: values that are the caller's; inner: whether the caller
    is a loop or a branch, which may give their memory away.  returned: values that the function returns.  semaphores:
    values that are semaphores.
    """

    steps: tuple[FunctionStep, ...]
    mine: int
    given: frozenset[int]
    returned: frozenset[int]
    semaphores: frozenset[int]
    inner: bool = False

    def joined(self, step: int) -> frozenset[int]:
        """The steps that semaphores join to a step, itself too."""
        mine, more = {step}, True
        while more:
            values = {v for k in mine for v in (*self.steps[k].given, *self.steps[k].made)} & self.semaphores
            found = {k for k, step in enumerate(self.steps) if values & {*step.given, *step.made}}
            more = not found <= mine
            mine |= found
        return frozenset(mine)

    def uses(self, value: int) -> tuple[int, ...]:
        """The steps that read a value."""
        return tuple(k for k, step in enumerate(self.steps) if value in step.given)

    def after(self, step: int) -> frozenset[int]:
        """The steps that depend, directly or not, on a step's results: they run after it."""
        values, found = set(self.steps[step].made), set[int]()
        for k in range(step + 1, len(self.steps)):
            if values & set(self.steps[k].given):
                found.add(k)
                values |= set(self.steps[k].made)
        return frozenset(found)

    def running(self) -> frozenset[int]:
        """The steps that run: XLA eliminates the others, whose results are unused."""
        wanted, found = set(self.returned), set[int]()
        for k in reversed(range(len(self.steps))):
            step = self.steps[k]
            if step.kept or wanted & set(step.made):
                found.add(k)
                wanted |= set(step.given)
        return frozenset(found)
