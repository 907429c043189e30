"""A search problem as data: a kernel with parameters, their domains, the constraints, and the objective.

A kernel that a file declares and a function that is traced differ in how a configuration is made into kernels, and in
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

from layoutproof.core.errors import Unsupported
from layoutproof.core.numbers import INTS, Numbers
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Kernel
from layoutproof.searching import problems
from layoutproof.searching.cost import CostModel
from layoutproof.searching.machines import Headroom, of_body

if TYPE_CHECKING:
    from layoutproof.searching.alike import Trace
    from layoutproof.searching.compiler_stage import Report

Confirm = Callable[..., "Sequence[Report]"]
"""The compiler's answers on candidates, or Undecided. No more are answered once so many are taken."""

UNDECIDED = "undecided: "
"""The start of the reason of a candidate whose legality is unknown: nothing is proved of it."""


BODY_RAISED = "tracing the body raised "
"""Before what a body says that refuses a candidate."""

NONE = Headroom(0, problems.HEADROOM_STATED())
"""Nothing is kept free."""


UNKEPT = Headroom(0, problems.HEADROOM_OF_COMPILER())
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


@dataclass(frozen=True, slots=True)
class DeclaredKernel:
    """A kernel with terms over sizes and variables in it: with the numbers of a configuration it is that one's kernel.

    model: what it costs, in the same terms.  body: the kernel's Python function, needed to compile it.
    """

    model: CostModel
    body: str | None = None

    @property
    def kernel(self) -> Kernel:
        """The kernel itself."""
        return self.model.kernel


@dataclass(frozen=True, slots=True)
class TracedFunction:
    """A function that makes the kernels of a configuration. trace: these; LayoutError where the function refuses it.

    confirm: asks the compiler, None = there is none.
    """

    trace: Trace
    confirm: Confirm | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A kernel with parameters: what each may be, what must hold, what a configuration costs and how it is made.

    variables: name -> the values it may take, rising.  target, compiler: whose rules are kept.
    kernels: how a configuration becomes kernels.  flops: of all of them, None = not counted, or those of their bodies.
    cost: over FIGURES and names, None = time.  worst: the largest cost over the shapes counts, not their weighted sum.
    partial: whether blocks may reach over the edge of an array (the kernel masks them).
    limit: bytes of VMEM that a kernel may use, 0 = what each asks for, or the target's default.
    headroom: what is kept free of it, None = the need of the kind of each body.
    step_overhead: ps of one grid step, None = not stated.  confirmed: whether the file has the compiler asked.
    ranges: the file's range of every variable, as plain data: conditions of infeasible subsets.
    source, line, column: the file, and where it names the function.
    vmem: what headroom leaves of the limit to windows and scratch of a declared kernel; 0 of a traced one.
    """

    name: str
    variables: Mapping[str, Sequence[int]]
    target: str
    kernels: DeclaredKernel | TracedFunction
    shapes: tuple[WeightedSizes, ...] = (WeightedSizes({}),)
    compiler: str | None = None
    flops: Term | None = None
    cost: Term | None = None
    worst: bool = True
    partial: bool = True
    constraints: tuple[Constraint, ...] = ()
    limit: int = 0
    headroom: Headroom | None = NONE
    step_overhead: int | None = None
    confirmed: bool = False
    ranges: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    line: int | None = None
    column: int | None = None
    vmem: int = field(init=False)

    def __post_init__(self) -> None:
        kernels = self.kernels
        percent = self.kept_free(kernels.kernel).percent if isinstance(kernels, DeclaredKernel) else 100
        object.__setattr__(self, "vmem", self.limit * (100 - percent) // 100)

    def count(self) -> int:
        """How many candidates there are, legal or not."""
        return prod(len(values) for values in self.variables.values())

    @property
    def declared(self) -> DeclaredKernel:
        """The kernel with terms in it. Unsupported where a function makes the kernels."""
        if isinstance(self.kernels, DeclaredKernel):
            return self.kernels
        raise Unsupported(problems.KERNELS_TRACED(self.name))

    @property
    def traced(self) -> TracedFunction:
        """The function. Unsupported where the kernel is declared."""
        if isinstance(self.kernels, TracedFunction):
            return self.kernels
        raise Unsupported(problems.DECLARED_NOT_TRACED(self.name))

    def kept_free(self, kernel: Kernel) -> Headroom:
        """The headroom of a kernel: as the problem states it, or the need of its body."""
        if self.headroom is not None:
            return self.headroom
        return of_body(None if kernel.work is None else kernel.work.kind)

    def roomy(self) -> Problem:
        """The same without headroom: candidates that it sets aside count too."""
        return replace(self, headroom=UNKEPT)

    def bind(self, shape: WeightedSizes, values: Mapping[str, int]) -> Kernel:
        """The declared kernel of one candidate. LayoutError where the kernel language refuses it."""
        return self.declared.kernel.bind({**shape.sizes, **values})

    def figures(
        self, shape: WeightedSizes, values: Mapping[str, Any], on: Numbers, most: int | None = None, moves: bool = True
    ) -> Any:
        """FIGURES of one candidate of a declared kernel, or bounds of many; `CostModel.figures` says of what."""
        return self.declared.model.figures({**shape.sizes, **values}, on, most, moves)


def broken(problem: Problem, values: Mapping[str, int], rows: Sequence[Mapping[str, int]]) -> list[str]:
    """The constraints that one candidate breaks."""
    found = []
    for shape, row in zip(problem.shapes, rows, strict=True):
        names = {**shape.sizes, **values, **row}
        found += [c.text for c in problem.constraints if not c.condition.evaluate(names, INTS)]
        found += ["VMEM"] if row["vmem"] > problem.vmem else []
    return list(dict.fromkeys(found))
