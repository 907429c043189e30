"""What the rules of primitives ask of the pass over a body that they are rules of, as of `interpreter.Interpreter`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from layoutproof.bodies import problems
from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.effects import (
    BodyReference,
    Carried,
    Effect,
    GpuInstruction,
    Handed,
    Loop,
    Mask,
    Spot,
    Unknown,
    View,
)
from layoutproof.bodies.values import Index, Value
from layoutproof.core.term import Amount, Term
from layoutproof.ir.program import Dtype, Equation, Program, Variable
from layoutproof.kernel.kernel import Kernel, Table

Found = TypeVar("Found")

BodyValue = Value | View
"""What a variable of a body is: an array or a number, or memory."""
Rule = Callable[["Pass", Equation, list[Any]], Sequence[BodyValue]]
"""(pass, equation, operands) -> results. Each rule says what its primitive takes; nobody but
the program has checked that it is given that."""


def as_array(value: BodyValue) -> Value:
    """What is no memory. UnsupportedOp where it is."""
    if isinstance(value, View):
        raise UnsupportedOp(problems.MEMORY_AS_NUMBER())
    return value


class Pass(Protocol):
    """The state of one pass, as of `interpreter.Interpreter` and `effects.Body`, which say what each part is."""

    kernel: Kernel
    induction: bool
    grid: tuple[Amount, ...]
    names: tuple[str, ...]
    counted: tuple[int, ...]
    constant: Mapping[str, View]
    whole: frozenset[str]
    steady: frozenset[str]
    forwards: bool
    beyond: set[str]
    forwarded: list[tuple[BodyReference, Loop, int]]
    effects: list[Effect]
    writes: dict[BodyReference, list[tuple[Effect, View]]]
    writes_to_here: int
    references: list[BodyReference]
    unknowns: dict[str, Unknown]
    definitions: dict[str, Term]
    loads: dict[str, Table]
    carried: dict[str, Carried]
    handed: list[Handed]
    masks: list[Mask]
    facts: list[Term]
    goes_on: dict[str, Term]
    doubts: dict[str, Value]
    multiples: list[tuple[Term, int, Spot]]
    checks: list[tuple[Term, Spot]]
    barriers: list[Spot]
    instructions: list[GpuInstruction]
    asks: set[str]
    warps: dict[str, Term]
    units: str
    path: tuple[Term, ...]
    loops: tuple[Loop, ...]
    scope: str
    first_loads: dict[tuple[object, ...], str]

    def named(self, prefix: str) -> str:
        """A name that is not used yet."""

    def spot(self) -> Spot:
        """Where the pass is."""

    def source(self) -> str:
        """`file:line` of the equation that is looked at."""

    def searched(self, look: Callable[[], dict[str, Found]]) -> dict[str, Found]:
        """What is found of the numbers that a loop hands on, by name; nothing where the steps for it are spent."""

    def witness(self, extent: int) -> Term:
        """A name for "some k from 0 to extent - 1"."""

    def apart(self, index: Index, conditions: Sequence[Term]) -> list[Term]:
        """Conditions on one element that hold together, each with its names for "some k"; those of the index stay."""

    def unknown(self, why: str, dtype: Dtype) -> Term:
        """A number that no term says, of any value that its type holds."""

    def any_number(
        self, name: str, why: str, dtype: Dtype, source: str, facts: Sequence[Term] = (), fixed: bool = False
    ) -> Term:
        """The name as a number of any value that its type holds, and of which the facts are true."""

    def scalar(self, value: Value, dtype: Dtype | None = None) -> Term:
        """A single number as a term, an unknown where no term says it."""

    def same(self, what: tuple[object, ...]) -> object:
        """What stands for something: the same object where it is asked again."""

    def is_used(self, variable: Variable) -> bool:
        """Whether somebody looks at a result of the equation that is looked at."""

    def under(self, *conditions: Term) -> AbstractContextManager[None]:
        """Within it, effects happen only where these hold."""

    def inside(self, loop: Loop) -> AbstractContextManager[None]:
        """Within it, effects happen in every iteration of a loop."""

    def run(self, inner: Program, arguments: Sequence[BodyValue]) -> list[Any]:
        """The results of a program for some values and views, whichever its types say; its effects are noted."""

    def constant_value(self, value: object) -> Value:
        """A number or an array that is known when tracing."""
