"""A search problem as data: the kernel with holes, their domains, the constraints, and the objective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from layoutproof.core.numbers import INTS, Numbers
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Kernel
from layoutproof.searching.cost import CostModel, Machine
from layoutproof.searching.machines import Headroom

UNDECIDED = "undecided: "
"""The start of the reason of a candidate whose legality is unknown: nothing is proved of it."""


BODY_RAISED = "tracing the body raised "
"""Before what a body says that refuses a candidate."""

NONE = Headroom(0, "stated in the file")
"""Nothing is kept free."""


UNKEPT = Headroom(0, "nothing is kept free: the compiler decides")
"""The headroom of who is asked about all that may fit."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition over sizes, tile variables and FIGURES. text: how the user, or the target, says it."""

    text: str
    condition: Term


@dataclass(frozen=True, slots=True)
class WeightedSizes:
    """One set of sizes, and how much its cost counts."""

    sizes: Mapping[str, int]
    weight: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TilingProblem:
    """The statement of every problem about tilings, of a declared kernel or of a traced function.

    variables: name -> the values it may take, rising.  target, compiler: whose rules are kept.
    flops: of the whole kernel, None = not counted.
    cost: over FIGURES and names, None = time.  worst: the largest cost over the shapes counts, not their weighted sum.
    partial: whether blocks may reach over the edge of an array (the kernel masks them).
    """

    name: str
    variables: Mapping[str, Sequence[int]]
    target: str
    shapes: tuple[WeightedSizes, ...] = (WeightedSizes({}),)
    compiler: str | None = None
    flops: Term | None = None
    cost: Term | None = None
    worst: bool = True
    partial: bool = True
    constraints: tuple[Constraint, ...] = ()

    def count(self) -> int:
        """How many candidates there are, legal or not."""
        return prod(len(values) for values in self.variables.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem(TilingProblem):
    """Tilings of a declared kernel, whose amounts are terms over sizes and variables.

    vmem: bytes that windows and scratch may take, headroom taken off.  limit: the same with it, 0 = `vmem`.
    source: the file.  body: the kernel's Python function, needed to compile it.  overhead_given: by the file.
    headroom: the difference of `vmem` to the given limit, and its source.
    ranges: the file's range of every variable, as plain data: conditions of infeasible subsets.
    """

    kernel: Kernel
    machine: Machine
    vmem: int
    source: str = ""
    body: str | None = None
    overhead_given: bool = False
    headroom: Headroom = NONE
    limit: int = 0
    ranges: Mapping[str, Any] = field(default_factory=dict)
    model: CostModel = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", CostModel(self.kernel, self.flops, self.machine))

    def roomy(self) -> Problem:
        """The same without headroom: candidates that it sets aside count too."""
        return self if not self.limit else replace(self, vmem=self.limit, headroom=UNKEPT)

    def bind(self, shape: WeightedSizes, values: Mapping[str, int]) -> Kernel:
        """The kernel of one candidate. LayoutError where the kernel language refuses it."""
        return self.kernel.bind({**shape.sizes, **values})

    def figures(
        self, shape: WeightedSizes, values: Mapping[str, Any], on: Numbers, most: int | None = None, moves: bool = True
    ) -> Any:
        """FIGURES of one candidate, or bounds of many; `CostModel.figures` says of what."""
        return self.model.figures({**shape.sizes, **values}, on, most, moves)


def broken(problem: Problem, values: Mapping[str, int], rows: Sequence[Mapping[str, int]]) -> list[str]:
    """The constraints that one candidate breaks."""
    found = []
    for shape, row in zip(problem.shapes, rows, strict=True):
        names = {**shape.sizes, **values, **row}
        found += [c.text for c in problem.constraints if not c.condition.evaluate(names, INTS)]
        found += ["VMEM"] if row["vmem"] > problem.vmem else []
    return list(dict.fromkeys(found))
