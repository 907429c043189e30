"""The body of a Mosaic kernel as a program of equations, as data: `ir.program`.

An operation becomes what JAX would have written: a slice of a reference is part of the address of what loads, stores or
copies there, a branch is `cond`, a loop `scan` where its length is known and `while` elsewhere, a region sees what it
uses from around it as inputs. The meaning of operations is in `mosaic_primitives`; one without a meaning there is an
equation all the same, which the interpreter refuses by name.
Integers of a module have no sign: they are read as signed ones, and what an unsigned operation is given wraps first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.core.errors import LayoutError
from layoutproof.core.message import message_of
from layoutproof.ir.program import (
    Array,
    Atom,
    ElementType,
    Equation,
    Indexed,
    Leaf,
    Literal,
    MemRefType,
    Number,
    Program,
    Span,
    Transformed,
    Variable,
    element_type_named,
    primitive,
)
from layoutproof.pallas.from_mosaic import problems
from layoutproof.pallas.from_mosaic.mosaic_types import element_type, shaped

ENDS = frozenset({"scf.yield", "tpu.yield", "func.return", "scf.condition", "cf.br"})
"""Operations that end a block."""

PIPELINE = "ep_"
"""How the names of a pipeline's steps begin; `ep_run_kernel` is the body that it runs."""

ALLOCATIONS = frozenset({"memref.alloca", "memref.alloc", "tpu.sem_alloc"})
"""Operations that give fresh memory."""

_STORES = {"tpu.vector_store": 1, "vector.store": 1, "memref.store": 1, "tpu.strided_store": 1}
"""Stores, and which operand is the reference; its indices follow."""
_LOADS = frozenset({"vector.load", "memref.load", "tpu.strided_load", "tpu.vector_load"})
_PURE = ("arith.", "vector.", "math.")
_INDEX = ElementType("s64", "i", 8)


@dataclass(frozen=True, slots=True)
class MosaicOperation:
    """One operation of a module, as `mosaic_worker` writes it."""

    name: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    attributes: Mapping[str, Any]
    regions: tuple[tuple[MosaicBlock, ...], ...]
    operand_types: tuple[str, ...]
    types: tuple[str, ...]
    place: str = ""

    def parts(self, many: int) -> list[tuple[int, ...]]:
        """The operands by the segments that the operation says; UnsupportedOp where there are other than `many`.

        Some versions leave optional segments at the end out.
        """
        said = str(self.attributes.get("operandSegmentSizes", ""))
        sizes = [int(n) for n in said.partition(":")[2].strip(" >").split(",") if n.strip()]
        if len(sizes) > many or sum(sizes) != len(self.operands):
            raise UnsupportedOp(problems.OPERATION_FORM(self.name))
        found, at = [], 0
        for size in (*sizes, *([0] * (many - len(sizes)))):
            found.append(self.operands[at : at + size])
            at += size
        return found

    def number(self, name: str) -> int:
        """An attribute that is a whole number. UnsupportedOp for another."""
        value = self.attributes.get(name)
        text = str(value).partition(" : ")[0]
        if not text.lstrip("-").isdecimal():
            raise UnsupportedOp(problems.OPERATION_WITH(self.name, name, text[:40]))
        return int(text)

    def numbers(self, name: str) -> tuple[int, ...]:
        """An attribute that is a list of whole numbers, () where it is not there."""
        value = self.attributes.get(name)
        if isinstance(value, list):
            return tuple(int(n) for n in value)
        text = str(value or "").partition(":")[2].strip(" >") if "array<" in str(value) else str(value or "")
        return tuple(int(n) for n in text.strip("[]").split(",") if n.strip())


@dataclass(frozen=True, slots=True)
class MosaicBlock:
    """A list of operations. arguments: numbers of the values that it is given."""

    arguments: tuple[int, ...]
    operations: tuple[MosaicOperation, ...]


@dataclass(frozen=True, slots=True)
class MosaicView:
    """A reference through views. steps: `Indexed` (of atoms and ints), `Reshaped` or `Bitcast`.

    dims: None for an extent that is known at run time only.
    """

    base: Variable
    dims: tuple[int | None, ...]
    steps: tuple[Any, ...] = ()


Found = list[Atom | MosaicView]
Make = Callable[["Writer", MosaicOperation], Found]


class Operands:
    """The operands of one equation, and the tree that its parameters make of them."""

    def __init__(self, *first: Atom) -> None:
        self.atoms = list(first)
        self.skipped = len(first)

    def value(self, atom: Atom | int) -> Leaf | int:
        """A number."""
        if isinstance(atom, int):
            return atom
        if isinstance(atom, Literal) and atom.val.dtype.kind in "iu" and not atom.val.shape:
            return int(atom.val)
        self.atoms.append(atom)
        return Leaf(len(self.atoms) - 1 - self.skipped)

    def steps(self, steps: Sequence[object]) -> tuple[object, ...]:
        """Views."""
        return tuple(map(self._step, steps))

    def reference(self, seen: MosaicView) -> Transformed:
        """A reference through its views."""
        return Transformed(self.value(seen.base), self.steps(seen.steps))

    def _step(self, step: object) -> object:
        return Indexed(tuple(map(self._entry, step.indices))) if isinstance(step, Indexed) else step

    def _entry(self, entry: Any) -> Any:
        if not isinstance(entry, Span):
            return self.value(entry)
        return Span(self.value(entry.start), self.value(entry.size), entry.stride)


class Writer:
    """Writes the equations of one block, and of what is inlined into it.

    meaning: gives the results of an operation; UnsupportedOp says why there are none.  functions: of the module, for
    calls.  around: the writer of the enclosing program; values used from there become inputs.
    scoped: whether a pipeline's copies are told from other copies.
    """

    def __init__(
        self, meaning: Make, functions: Mapping[str, MosaicBlock], around: Writer | None = None, scoped: bool = True
    ) -> None:
        self.meaning = meaning
        self.scoped: bool = scoped if around is None else around.scoped
        self.functions = functions
        self.around = around
        self.values: dict[int, Atom | MosaicView] = {}
        self.inputs: dict[Variable, Variable] = {}
        self.equations: list[Equation] = []
        self.truths: dict[Variable, Atom] = {} if around is None else around.truths
        self.place: str = "" if around is None else around.place
        self.depth: int = 0 if around is None else around.depth + 1
        self.traces: list[str] = [] if around is None else list(around.traces)

    # used by operations

    @property
    def scope(self) -> str:
        """ "pipeline" within what `emit_pipeline` does by itself, by the names that it gives its steps."""
        last = self.traces[-1] if self.traces else ""
        return (
            "pipeline"
            if self.scoped and last.startswith(PIPELINE) and not last.startswith(f"{PIPELINE}run_kernel")
            else ""
        )

    def value(self, number: int) -> Atom:
        """A number or an array."""
        found = self.known(number)
        if isinstance(found, MosaicView):
            raise UnsupportedOp(problems.REFERENCE_AS_NUMBER())
        return found

    def reference(self, number: int) -> MosaicView:
        """A reference with its views."""
        found = self.known(number)
        if not isinstance(found, MosaicView):
            raise UnsupportedOp(problems.NO_REFERENCE())
        return found

    def emit(
        self, name: str, operands: Sequence[Atom], aval: Array | MemRefType | None = None, **params: object
    ) -> Variable:
        """One equation with one result, or with none that anybody looks at."""
        made = Variable(aval if aval is not None else Array((), _INDEX))
        self.equations.append(
            Equation(
                primitive(name),
                tuple(operands),
                (made,) if aval is not None else (),
                params,
                self.place,
                self.scope if name in ("dma_start", "dma_wait") else "",
            )
        )
        return made

    def below(self) -> Writer:
        """Who writes a program that is a part of this one."""
        return Writer(self.meaning, self.functions, self)

    def inner(
        self, block: MosaicBlock, given: Sequence[Atom | MosaicView]
    ) -> tuple[Writer, MosaicOperation, list[Atom | MosaicView]]:
        """A block of a region written: by whom, the operation that ends it, and what that hands on."""
        below = self.below()
        end = below.block(block, given)
        return below, end, [below.known(n) for n in end.operands]

    def inline(self, block: MosaicBlock, given: Sequence[Atom | MosaicView]) -> list[Atom | MosaicView]:
        """The results of a block that is inlined here."""
        end = self.block(block, given)
        return [self.known(n) for n in end.operands]

    # the walk

    def block(self, block: MosaicBlock, given: Sequence[Atom | MosaicView]) -> MosaicOperation:
        """All operations of a block; the one that ends it."""
        if len(given) != len(block.arguments):
            raise UnsupportedOp(problems.REGION_ARGUMENTS())
        self.values.update(zip(block.arguments, given, strict=True))
        unread = _before_stores(block)
        # what JAX makes of its own accord has no line; the operation around it has
        around = self.place
        for operation in block.operations:
            if operation.name in ENDS:
                self.place = around
                return operation
            if operation.results and operation.results[0] in unread:
                continue
            self.place = operation.place or around
            if operation.name == "tpu.trace_start":
                self.traces.append(str(operation.attributes.get("message", "")))
            elif operation.name == "tpu.trace_stop" and self.traces:
                self.traces.pop()
            self.values.update(zip(operation.results, self._results(operation), strict=True))
        raise UnsupportedOp(problems.BLOCK_END())

    def _results(self, operation: MosaicOperation) -> list[Atom | MosaicView]:
        before = len(self.equations)
        try:
            return self.meaning(self, operation)
        except (UnsupportedOp, LayoutError) as problem:
            del self.equations[before:]
            return self._refused(operation, message_of(problem))

    def _refused(self, operation: MosaicOperation, why: str) -> list[Atom | MosaicView]:
        """An equation that the interpreter refuses: with everything that the operation could touch."""
        touched: dict[Atom, None] = {}
        for number in sorted(_used(operation)):
            if self._has(number):
                found = self.known(number)
                touched.setdefault(found.base if isinstance(found, MosaicView) else found)
        made = tuple(Variable(aval_of(text)) for text in operation.types)
        params = {"why": why}
        self.equations.append(Equation(primitive("unmodelled"), tuple(touched), made, params, self.place))
        return [MosaicView(v, v.aval.shape) if isinstance(v.aval, MemRefType) else v for v in made]

    def _has(self, number: int) -> bool:
        return number in self.values or (self.around is not None and self.around._has(number))

    def known(self, number: int) -> Atom | MosaicView:
        """A value or a reference, of this program or of one around it."""
        if number not in self.values:
            if self.around is None:
                raise UnsupportedOp(problems.VALUE_NOT_THERE())
            self.values[number] = self.brought(self.around.known(number))
        return self.values[number]

    def brought(self, outer: Atom | MosaicView) -> Atom | MosaicView:
        """A value of the program around as a value of this one."""
        if isinstance(outer, Literal):
            return outer
        if isinstance(outer, Variable):
            return self._input(outer)
        return MosaicView(self._input(outer.base), outer.dims, tuple(map(self._brought_step, outer.steps)))

    def _input(self, outer: Variable) -> Variable:
        if outer not in self.inputs:
            made = self.inputs[outer] = Variable(outer.aval)
            if outer in self.truths:
                # the truth value of the number is brought as well
                truth = self.brought(self.truths[outer])
                assert not isinstance(truth, MosaicView)
                self.truths[made] = truth
        return self.inputs[outer]

    def _brought_step(self, step: object) -> object:
        if not isinstance(step, Indexed):
            return step
        return Indexed(tuple(map(self._brought_entry, step.indices)))

    def _brought_entry(self, entry: Any) -> Any:
        if isinstance(entry, Span):
            return replace(entry, start=self._brought_entry(entry.start), size=self._brought_entry(entry.size))
        return entry if isinstance(entry, int) else self.brought(entry)


def _before_stores(block: MosaicBlock) -> frozenset[int]:
    """Results of loads that are not used, and of which a store to the same place follows: JAX writes both for one
    store, as a swap."""
    uses: dict[int, int] = {}
    for operation in block.operations:
        for number in (*operation.operands, *_used_within(operation)):
            uses[number] = uses.get(number, 0) + 1
    loads: dict[tuple[int, ...], list[int]] = {}
    found: set[int] = set()
    for operation in reversed(block.operations):
        if operation.name in _STORES:
            at = _STORES[operation.name]
            rank = len(shaped(operation.operand_types[at])[0])
            loads.setdefault(operation.operands[at : at + 1 + rank], [])
        free = bool(operation.results) and not any(uses.get(n) for n in operation.results)
        if free and (operation.name in _LOADS or operation.name.startswith(_PURE)) and not operation.regions:
            if operation.name in _LOADS and operation.operands not in loads:
                continue
            if operation.name in _LOADS:
                found.add(operation.results[0])
            for number in operation.operands:
                uses[number] -= 1
    return frozenset(found)


def _used(operation: MosaicOperation) -> set[int]:
    """All that an operation uses, in its regions too."""
    return {*operation.operands, *_used_within(operation)}


def _used_within(operation: MosaicOperation) -> set[int]:
    return {n for region in operation.regions for block in region for inner in block.operations for n in _used(inner)}


def aval_of(text: str) -> Array | MemRefType:
    """The aval of an MLIR type. LayoutError for unknown types.

    >>> aval_of("vector<8x128xbf16>").shape, aval_of("i1").dtype.kind, aval_of("index").dtype.name
    ((8, 128), 'b', 's64')
    """
    dims, element, memory = shaped(text)
    dtype = _INDEX if element == "index" else element_type_named(element_type(element))
    if text.startswith("memref<"):
        # extents that are known at run time only are in the views
        return MemRefType(tuple(n or 1 for n in dims), dtype, memory)
    if None in dims:
        raise LayoutError(problems.EXTENTS(text[:80]))
    return Array(tuple(n or 0 for n in dims), dtype)


def result(operation: MosaicOperation, k: int = 0) -> Array:
    """The type of a result. UnsupportedOp where it is a reference."""
    found = aval_of(operation.types[k])
    if isinstance(found, MemRefType):
        raise UnsupportedOp(problems.GIVES_REFERENCE(operation.name))
    return found


def operands_of(on: Writer, operation: MosaicOperation) -> list[Atom]:
    """All operands as numbers or arrays."""
    return [on.value(number) for number in operation.operands]


def whole(atom: Atom) -> int | None:
    """The value of a number that is written in the program, else None."""
    return int(atom.val) if isinstance(atom, Literal) and not atom.val.shape and atom.val.dtype.kind in "biu" else None


def literal(value: int | float, dtype: ElementType) -> Literal:
    """A number."""
    return Literal(Number(value, dtype), Array((), dtype))


def program_of(
    meaning: Make,
    functions: Mapping[str, MosaicBlock],
    main: MosaicBlock,
    types: Sequence[str],
    grid: int,
    scoped: bool = True,
) -> Program:
    """The kernel `main` of a module. meaning, functions, scoped: as of `Writer`.  types: of its arguments.  grid: how
    many of them are program indices; the others are references.

    Raises UnsupportedOp where it is of a form that no kernel has, and LayoutError for types that are not known.
    """
    writer = Writer(meaning, functions, scoped=scoped)
    given: list[Atom | MosaicView] = []
    references = []
    for axis, text in enumerate(types):
        aval = aval_of(text)
        if axis < grid and isinstance(aval, Array):
            given.append(writer.emit("program_id", [], aval, axis=axis))
        else:
            references.append(Variable(aval))
            given.append(MosaicView(references[-1], aval.shape))
    writer.block(main, given)
    return Program(tuple(references), tuple(writer.equations), ())


def function_of(
    meaning: Make, functions: Mapping[str, MosaicBlock], main: MosaicBlock, types: Sequence[str]
) -> Program:
    """A function of a module that gives numbers, such as an index map. As `program_of`."""
    writer = Writer(meaning, functions)
    invars = [Variable(aval_of(text)) for text in types]
    end = writer.block(main, [MosaicView(v, v.aval.shape) if isinstance(v.aval, MemRefType) else v for v in invars])
    return Program(tuple(invars), tuple(writer.equations), tuple(writer.value(n) for n in end.operands))
