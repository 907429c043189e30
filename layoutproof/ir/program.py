"""A program as data: equations that apply primitives, by name, to variables and literals.

The names are those of a jaxpr, of which it is a picture. Unlike a jaxpr it is complete without JAX: where an equation
stands, what memory a reference lies in, and what JAX's trees make of operands are in it, and nested jaxprs are
programs. Element types are NumPy's, JAX's or an `ElementType`: each has `kind` and `itemsize`, and `element_type` says
XLA's name of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Protocol

from layoutproof.core.element_types import ELEMENT_BITS

# types


class Dtype(Protocol):
    """What is asked of an element type, whoever made it."""

    @property
    def kind(self) -> str:
        """ "b", "i", "u" or "f", as NumPy has it; of what NumPy does not know, another letter."""

    @property
    def itemsize(self) -> int:
        """In bytes."""


@dataclass(frozen=True, slots=True)
class ElementType:
    """An element type. name: XLA's.  kind: "b", "i", "u" or "f", as NumPy has it.  itemsize: in bytes."""

    name: str
    kind: str
    itemsize: int

    def __str__(self) -> str:
        return self.name


def element_type_named(name: str) -> ElementType:
    """The element type of XLA's name; semaphores and the like have none of the four kinds.

    >>> element_type_named("s32"), element_type_named("pred").kind, element_type_named("bf16").kind
    (ElementType(name='s32', kind='i', itemsize=4), 'b', 'f')
    """
    first = {"pred": "b"}.get(name, {"s": "i", "u": "u"}.get(name[0], "f"))
    known = name in ELEMENT_BITS
    return ElementType(name, first if known else "V", max(1, ELEMENT_BITS[name] // 8) if known else 4)


@dataclass(frozen=True, slots=True)
class Array:
    """The type of a value: its extents in elements, () for a single number, and its element type."""

    shape: tuple[Any, ...]
    dtype: Any


@dataclass(frozen=True, slots=True)
class MemRefType:
    """The type of a reference. memory: where it lies, a word of `kernel.MEMORIES`.

    lanes: of tensor memory of a GPU, how its rows lie: "whole", one in each of 128 lanes; of 64 rows "half", the second
    half of the columns in other lanes, or "pair", likewise for products of two programs; "other", and "" for unknown.
    packing: of tensor memory, elements in a column of 4 bytes; 0 where that is not known.
    """

    shape: tuple[Any, ...]
    dtype: Any
    memory: str
    lanes: str = ""
    packing: int = 0


@dataclass(frozen=True, slots=True)
class Opaque:
    """The type of a token, and of other values without a shape."""


Aval = Array | MemRefType | Opaque

# programs


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A value of a program, by its identity."""

    aval: Any


@dataclass(frozen=True, slots=True)
class Number:
    """A number that is written in the program. value: None of an array, whose entries are not kept."""

    value: Any
    dtype: Any
    shape: tuple[int, ...] = ()

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A number or an array of the program where a variable could stand. val: a `Number`, or one of NumPy or JAX."""

    val: Any
    aval: Any


Atom = Variable | Literal


@dataclass(frozen=True, slots=True)
class Primitive:
    """The operation of an equation. name: as in `bodies.interpreter.PRIMITIVES`."""

    name: str


@lru_cache(maxsize=1024)
def primitive(name: str) -> Primitive:
    """The primitive of a name."""
    return Primitive(name)


@dataclass(frozen=True, slots=True)
class CodeStep:
    """An operation of code in the language of a GPU's compiler (`inline_mgpu`).

    name: MLIR's, of the operation.  text: of inline assembly its text, of others their attributes.  operands: of each a
    number that the code has, "$k" of operand k of the equation, "warpgroup + n" of a number that is n of the first
    warpgroup and one more of each further one, None of anything else.
    """

    name: str
    text: str
    operands: tuple[int | str | None, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Equation:
    """One step.

    params: by name; nested programs are `Program`s, trees of operands are made of `Leaf`s, a grid is a `Grid`.
    source: its text is the `file:line` that it was made from, "" if unknown; only who asks has it looked for.
    scope: as of `effects.Spot`.  effects: whether it does more than give results.  compute: gives the results for some
    arrays, where the front end can compute them; None elsewhere.
    """

    primitive: Primitive
    invars: tuple[Any, ...]
    outvars: tuple[Variable, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    source: Any = ""
    scope: str = ""
    effects: bool = False
    compute: Callable[[Sequence[Any]], list[Any]] | None = field(default=None, repr=False)

    def __reduce__(self) -> tuple[object, ...]:
        # the function that computes it stays in the process of the front end
        parts = (self.primitive, self.invars, self.outvars, self.params, str(self.source), self.scope, self.effects)
        return Equation, parts


@dataclass(frozen=True, eq=False)
class Program:
    """A body, or the body of a loop or a branch; it sees nothing but its inputs and constants.

    consts: what `constvars` are; () where the caller says it.  own: whether a function of the jax package was traced.
    """

    invars: tuple[Variable, ...]
    eqns: tuple[Equation, ...]
    outvars: tuple[Any, ...]
    constvars: tuple[Variable, ...] = ()
    consts: tuple[Any, ...] = ()
    own: bool = False

    @property
    def out_avals(self) -> tuple[Any, ...]:
        """The types of the results."""
        return tuple(atom.aval for atom in self.outvars)

    @cached_property
    def given(self) -> tuple[Variable, ...]:
        """What a caller gives a value: constants that have none here (references around the body), then inputs."""
        return (*self.constvars[len(self.consts) :], *self.invars)

    @cached_property
    def used(self) -> frozenset[Variable]:
        """The variables that an equation or a result looks at."""
        uses = (*(atom for equation in self.eqns for atom in equation.invars), *self.outvars)
        return frozenset(atom for atom in uses if isinstance(atom, Variable))


def programs_in(equation: Equation) -> Iterator[Program]:
    """The programs that an equation runs, in the order of its parameters."""
    for value in equation.params.values():
        for entry in value if isinstance(value, tuple | list) else (value,):
            if isinstance(entry, Program):
                yield entry


def is_for_gpu(call: Equation) -> bool:
    """Of a Pallas call: whether its parameters are those of a compiler for GPUs."""
    platform = type(call.params.get("compiler_params")).__module__
    return "gpu" in platform or "triton" in platform


def is_for_triton(call: Equation) -> bool:
    """Of a Pallas call: whether its parameters are those of Triton, for which blocks are views of arrays."""
    return "triton" in type(call.params.get("compiler_params")).__module__


def axis_groups(axes: Iterable[str | Iterable[str]]) -> tuple[tuple[str, ...], ...]:
    """The axes of a barrier of a cluster, of which some stand together, each as a group."""
    return tuple((axis,) if isinstance(axis, str) else tuple(axis) for axis in axes)


def scan_parts(equation: Equation) -> tuple[int, int]:
    """Of a scan: how many constants, how many carried values."""
    return int(equation.params["num_consts"]), int(equation.params["num_carry"])


# addresses: trees of the operands of one equation


@dataclass(frozen=True, slots=True)
class Leaf:
    """The place of an operand in a tree: the `number`-th of those that the tree is of."""

    number: int


@dataclass(frozen=True, slots=True)
class Span:
    """One dimension of what is addressed: `size` elements from `start`, `stride` apart. Numbers, or values."""

    start: Any
    size: Any
    stride: Any = 1


@dataclass(frozen=True, slots=True)
class Indexed:
    """A view: of each dimension a `Span`, or a single index."""

    indices: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Reshaped:
    """A view in another shape, of the same elements in row-major order."""

    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Transposed:
    """A view whose dimension k is the one before's `permutation[k]`."""

    permutation: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bitcast:
    """A view as elements of another type: rows that share a word become rows of the other width."""

    dtype: Any


@dataclass(frozen=True, slots=True)
class Other:
    """A view, or another object, that is not modelled. kind: its name.  parts: its fields."""

    kind: str
    parts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Transformed:
    """A reference through views, the first one applied to the reference itself."""

    ref: Any
    transforms: tuple[Any, ...]


Transform = Indexed | Reshaped | Transposed | Bitcast | Other
"""One step of a view."""


def view(kind: str, parts: Mapping[str, Any]) -> Any:
    """An object in a tree, by the name of JAX's class, or of one here, and its fields.

    >>> view("NDIndexer", {"indices": (Leaf(0),), "shape": (8,)}), view("TransposeTransform", {"permutation": (1, 0)})
    (Indexed(indices=(Leaf(number=0),)), Transposed(permutation=(1, 0)))
    >>> view("UnswizzleRef", {"swizzle": 128}).kind
    'UnswizzleRef'
    """
    if kind == "slice":
        return slice(parts["start"], parts["stop"], parts["step"])
    if "indices" in parts:
        return Indexed(tuple(parts["indices"]))
    if "start" in parts and "size" in parts:
        return Span(parts["start"], parts["size"], parts.get("stride", 1))
    if "ref" in parts and "transforms" in parts:
        return Transformed(parts["ref"], tuple(parts["transforms"]))
    if "eshape" in kind and "shape" in parts:
        return Reshaped(tuple(parts["shape"]))
    if "ranspose" in kind and "permutation" in parts:
        return Transposed(tuple(parts["permutation"]))
    if "itcast" in kind and "dtype" in parts:
        return Bitcast(parts["dtype"])
    return Other(kind, parts)


def planted(tree: Any, operands: Sequence[Any]) -> Any:
    """The structure of a tree with operands as its leaves.

    >>> planted((Leaf(1), Indexed((Span(Leaf(0), 8),)), None), ["i", "x"])
    ('x', Indexed(indices=(Span(start='i', size=8, stride=1),)), None)
    """
    match tree:
        case Leaf(number):
            return operands[number]
        case tuple():
            return tuple([planted(entry, operands) for entry in tree])
        case Indexed(indices):
            return Indexed(planted(indices, operands))
        case Span(start, size, stride):
            return Span(planted(start, operands), planted(size, operands), stride)
        case Transformed(ref, transforms):
            return Transformed(planted(ref, operands), planted(transforms, operands))
        case Other(kind, parts):
            return Other(kind, {name: planted(part, operands) for name, part in parts.items()})
        case slice():
            return slice(*(planted(part, operands) for part in (tree.start, tree.stop, tree.step)))
    return tree


def leaves_in(tree: object) -> int:
    """How many operands a tree is of.

    >>> leaves_in((Leaf(1), Indexed((Span(Leaf(0), 8),)), None))
    2
    """
    match tree:
        case Leaf():
            return 1
        case tuple() | list():
            return sum(map(leaves_in, tree))
        case slice():
            return sum(map(leaves_in, (tree.start, tree.stop, tree.step)))
        case Other(_, parts):
            return sum(map(leaves_in, parts.values()))
    fields = getattr(type(tree), "__dataclass_fields__", ())
    return sum(leaves_in(getattr(tree, name)) for name in fields)


# kernels that a program calls


class Dimension(NamedTuple):
    """One dimension of a block.

    kind: "blocked", "squeezed", "element" or "bounded", else what JAX calls it.  extent: in elements.  low: elements of
    padding below.
    """

    kind: str
    extent: int
    low: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """The window of one operand for the programs of a kernel. aval: of the whole array.  memory: of the window."""

    block: tuple[Dimension, ...]
    index_map: Program
    aval: Any
    memory: str

    @property
    def windowed(self) -> bool:
        """Whether a block is moved for each program; else the body has all of the array, and copies by hand."""
        return self.memory not in ("any", "hbm")


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The grid of a kernel call.

    extents: an int each, or anything else where an operand says it.  dynamic: how many operands do.  tables: how many
    operands after these index maps read.  inputs: how many of the windows are of inputs.  scratch: the allocated
    memory.
    counted: the axes that the body counts.
    """

    extents: tuple[Any, ...]
    dynamic: int
    tables: int
    inputs: int
    windows: tuple[Window, ...]
    scratch: tuple[Any, ...]
    counted: tuple[int, ...]
