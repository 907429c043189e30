"""Equations as data: what the interpreter reads where no jax is at hand, of recorded jaxprs and of what never was one.

A `Program` has inputs, equations in order and results, as a jaxpr has; an equation applies a primitive by its name
(`interpreter.PRIMITIVES`) to variables and numbers. Where a primitive's parameters hold a tree of operands, it is a
function from the operands to what JAX's trees make of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from layoutproof.core.element_types import ELEMENT_BITS


@dataclass(frozen=True, slots=True)
class Kind:
    """An element type. name: XLA's.  kind: "b", "i", "u" or "f", as NumPy has it.  itemsize: in bytes."""

    name: str
    kind: str
    itemsize: int

    def __str__(self) -> str:
        return self.name


def kind_of(name: str) -> Kind:
    """The element type of XLA's name; semaphores and the like have none of the four kinds.

    >>> kind_of("s32"), kind_of("pred").kind, kind_of("bf16").kind
    (Kind(name='s32', kind='i', itemsize=4), 'b', 'f')
    """
    first = {"pred": "b"}.get(name, {"s": "i", "u": "u"}.get(name[0], "f"))
    known = name in ELEMENT_BITS
    return Kind(name, first if known else "V", max(1, ELEMENT_BITS[name] // 8) if known else 4)


@dataclass(frozen=True, slots=True)
class Array:
    """What a value is: its extents in elements, () for a single number, and its element type."""

    shape: tuple[int, ...]
    dtype: Kind


@dataclass(frozen=True, slots=True)
class Memory:
    """What a reference is. memory: where it lies, a word of `kernel.MEMORIES`."""

    shape: tuple[int, ...]
    dtype: Kind
    memory: str

    @property
    def inner_aval(self) -> Array:
        """What is in it."""
        return Array(self.shape, self.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A value of a program, by its identity."""

    aval: Array | Memory


@dataclass(frozen=True, slots=True)
class Number:
    """A number that is written in the program. value: None of an array, whose entries are not kept."""

    value: int | float | None
    dtype: Kind
    shape: tuple[int, ...] = ()

    def __int__(self) -> int:
        return int(self.value)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return bool(self.value)


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A number or an array of the program where a variable could stand."""

    val: Number

    @property
    def aval(self) -> Array:
        """What it is."""
        return Array(self.val.shape, self.val.dtype)


Atom = Variable | Literal


@dataclass(frozen=True, slots=True)
class Primitive:
    """What an equation does. name: as in `interpreter.PRIMITIVES`."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Equation:
    """One step. source: `file:line` that it was made from, "" where nobody knows.  scope: as of `effects.Spot`."""

    primitive: Primitive
    invars: tuple[Atom, ...]
    outvars: tuple[Variable, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    scope: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A body, or the body of a loop or a branch; it sees nothing but its inputs and constants.

    consts: what `constvars` are; () where the caller says it.  own: whether a function of the jax package was traced.
    """

    invars: tuple[Variable, ...]
    eqns: tuple[Equation, ...]
    outvars: tuple[Atom, ...]
    constvars: tuple[Variable, ...] = ()
    consts: tuple[Number, ...] = ()
    own: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """One dimension of what is addressed: `size` elements from `start`, `stride` apart. Numbers, or values."""

    start: Any
    size: Any
    stride: int = 1


@dataclass(frozen=True, slots=True)
class Indexed:
    """A view: of each dimension a `Span`, or a single index."""

    indices: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Reshaped:
    """A view in another shape, of the same elements in row-major order."""

    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bitcast:
    """A view as elements of another type: rows that share a word become rows of the other width."""

    dtype: Kind


@dataclass(frozen=True, slots=True)
class Transformed:
    """A reference through views, the first one applied to the reference itself."""

    ref: Any
    transforms: tuple[Any, ...]


class EquationReader:
    """An `interpreter.Reader` of programs. scoped: whether what a pipeline copies is told from other copies."""

    def __init__(self, scoped: bool = True) -> None:
        self.scoped = scoped

    def opened(self, program: Program) -> tuple[Program, tuple[Any, ...]]:
        """The program, and the values of its constants."""
        return program, program.consts

    def unflatten(self, tree: Callable[[Sequence[Any]], Any], leaves: Sequence[Any]) -> Any:
        """What a tree makes of operands."""
        return tree(leaves)

    def place_of(self, equation: Equation) -> str:
        """`file:line` of an equation."""
        return equation.source

    def scan_parts(self, equation: Equation) -> tuple[int, int]:
        """Of a scan: how many constants, how many carried values."""
        return int(equation.params["num_consts"]), int(equation.params["num_carry"])

    def element_type(self, dtype: Kind) -> str:
        """XLA's name of an element type."""
        return dtype.name

    def memory_of(self, aval: Memory) -> str:
        """The memory of a reference."""
        return aval.memory

    def scope_of(self, equation: Equation) -> str:
        """What of a pipeline an equation belongs to."""
        return equation.scope if self.scoped else ""

    def is_jaxs_own(self, program: Program) -> bool:
        """Whether a nested program was made from a function of the jax package."""
        return program.own
