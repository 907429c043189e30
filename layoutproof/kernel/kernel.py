"""Kernel: one Pallas call as data: a grid, and for every operand which block each program sees. This is the manual.

In one sentence
    A kernel runs once for every point of its grid; each operand's index map says which block of its array that program
    sees, so an operand is one pure function (program) -> block index, and the claims about it are those of any map.

In a picture
    grid (4, 2), array f32[7,5], block (2, 3), index map (i, j) -> (i, j); 8 programs, 4 x 2 blocks:

            j=0        j=1
       i=0  [0:2,0:3]  [0:2,3:6]     column 5 does not exist: this block is partial, reads of it are undefined,
       i=1  [2:4,0:3]  [2:4,3:6]     writes to it are dropped
       i=2  [4:6,0:3]  [4:6,3:6]
       i=3  [6:8,0:3]  [6:8,3:6]     row 7 does not exist either

The rule, per dimension of extent n (jax/_src/pallas/core.py, jax 0.10.2)
    kind        written            the index map returns     the window starts at     may be
    blocked     8                  a block index i           8 * i                    0 .. ceil(n/8) - 1
    squeezed    None               an element index i        i                        0 .. n - 1
    element     Element(8, (lo,hi)) an element offset e      e - lo                   0 .. lo + n + hi - 8
    bounded     BoundedSlice(8)    ds(start, size)           start                    start >= 0, start + size <= n

Tables (scalar prefetch)
    An index map may read `t[i]` from an operand whose values are not known. A read is one more unknown next to the
    program's indices: a number in the box that the table's assumption `low <= t[..] < high` gives. Reads of one table
    at equal indices are equal; `monotone`, `injective`, `onto` say more. `windows.py` turns all this into plain maps.

Parameters (block sizes that are still to be chosen)
    Any amount of a kernel, that is a grid extent, a size of a block, an array, a table or a scratch, may be a term over
    names: `cdiv(M, bm)`. `value_of` gives it on any kind of number, so one kernel has exact figures for ints and bounds
    for intervals. `Kernel.bind` puts ints in and gives an ordinary kernel. Only that is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Protocol

from layoutproof.core.errors import LayoutError
from layoutproof.core.numbers import INTS, Numbers
from layoutproof.core.size import Size, evaluate
from layoutproof.core.term import Amount, Term, bind, parameters, rebuilt, substitute, value_of
from layoutproof.kernel import problems
from layoutproof.kernel.kernel_parts import read_size, within

KINDS = ("blocked", "squeezed", "element", "bounded")
"""The kinds of a block's dimension."""

SEMANTICS = ("parallel", "core_parallel", "subcore_parallel", "arbitrary")
"""The kinds of a grid dimension; all but the last may run at the same time on several cores."""

MEMORIES = ("vmem", "smem", "any", "hbm", "semaphore", "host", "vmem_shared", "cmem", "gmem", "shared", "regs", "tmem")
"""Where an operand's window or a scratch lies. `any`, `hbm` and `gmem` have no window: the kernel moves data itself."""


SUBCORES = ("vector", "scalar")
"""The processors of a SparseCore: vector subcores have vector memory of their own, a scalar subcore has none."""


@dataclass(frozen=True, slots=True)
class Block:
    """One dimension of a block. size: elements the kernel sees, 1 for squeezed. low, high: padding, of element only."""

    kind: str
    size: Amount
    low: int = 0
    high: int = 0

    def start(self, value: Any, on: Numbers = INTS, size: Any = None) -> Any:
        """The first element of the block whose index map returned `value`, on any kind of number; see the rule above.

        It is in the array's own coordinates: low padding is below 0.  size: of the block on that kind, None = `on`
        knows what it is.

        >>> Block("blocked", 8).start(3), Block("element", 8, 1).start(3), Block("squeezed", 1).start(3)
        (24, 2, 3)
        """
        if self.kind == "blocked":
            return value * (on.size(self.size) if size is None else size)
        return value - self.low if self.low else value

    def __str__(self) -> str:
        match self.kind:
            case "squeezed":
                return "None"
            case "element":
                padding = f", ({self.low}, {self.high})" if self.low or self.high else ""
                return f"Element({self.size}{padding})"
            case "bounded":
                return f"BoundedSlice({self.size})"
        return str(self.size)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A scalar-prefetch operand: values that are not known, and what is assumed of them.

    low, high: `low <= value < high`, None = nothing said (then `bits`, the width of its integers, bounds it).
    monotone: never decreasing in row-major order of its indices.  injective: no value twice.
    onto: every value from low to high - 1 occurs.  dtype: XLA's name of its element type, "" = an integer of `bits`.
    total: an upper bound on the sum of all entries, None = none.
    first: of a table that is onto, the length of the prefix that has every value, None = all.
    place: whether it is where a device is on its mesh, or which program of the grid around a pipeline runs it: there is
    one at each of the values.
    contents: all entries in row-major order, where the code says them; None = not known.
    """

    name: str
    dims: tuple[Amount, ...] = ()
    bits: int = 32
    low: Amount | None = None
    high: Amount | None = None
    monotone: bool = False
    injective: bool = False
    onto: bool = False
    signed: bool = True
    dtype: str = ""
    first: Amount | None = None
    place: bool = False
    contents: tuple[int, ...] | None = None
    total: int | None = None

    def assumptions(self) -> tuple[str, ...]:
        """The assumptions, in words that a spec file takes back.

        >>> Table("t", (8,), low=0, high=4, monotone=True).assumptions()
        ('0 <= t < 4', 't is monotone')
        """
        if self.contents is not None:
            # it is known, and nothing is assumed
            return ()
        bounds = [] if self.low is None or self.high is None else [f"{self.low} <= {self.name} < {self.high}"]
        bounds += [] if self.total is None else [f"sum({self.name}) <= {self.total}"]
        said = {w: self.name for w in ("monotone", "injective", "onto") if getattr(self, w)}
        if self.first is not None and self.onto:
            said["onto"] = f"{self.name}[:{self.first}]"
        return (*bounds, *(f"{of} is {w}" for w, of in said.items()))


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """Numbers between which a part of a table lies, `0 <= t[:, 2] < 8`: low <= value < high, None = nothing said.

    table: its name.  at: per dimension, from where to where the part reaches; None = all of it.
    """

    table: str
    at: tuple[tuple[int, int] | None, ...]
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """A condition on entries of tables together, `t[i] <= t[i + 1]`, on a part of one, or on the call's sizes alone.

    text: as the user wrote it.  condition: over reads, size symbols and `names`; true where an index is outside of its
    table.  names: that stand for every index.  bound: where it says no more than that.
    """

    text: str
    condition: Term
    names: tuple[str, ...] = ()
    bound: Bound | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    """One input or output: an array, and the block of it that each program sees.

    name: as messages say it, `args[0]`, `outputs[0]`, or the user's.  role: "in" or "out".  dims: the array's, in
    elements.  dtype: XLA's name of the element type (`f32`, `bf16`, `s8`, `pred`).
    block, index: one per dimension; index terms are over the kernel's grid names and its tables (Term "read").
    sizes: of bounded dimensions, how much of the block is valid, None elsewhere; () = none bounded.
    buffers: of the pipeline, None = the default (2).  revisit: "immediate" (a block may be visited again only in the
    next step) or "any".  live: of an output, whether its value is used.  source: file:line of the BlockSpec's
    index map, "" = unknown.  unmodelled: why the index map is beyond the model, "" = it is not.
    pipelined: of an operand without windows, whether pipelines in the body alone move all of it.
    part: why the blocks of this operand are not every access to its array, "" = they are.
    same_as: the name of an earlier input that is the same array, "" = its array is its own.
    unfilled: of an input whose array was never filled (`jax.lax.empty`), its operation, with its line; "" = it is.
    made_by: of an input that is all of an output of an earlier kernel of the function, the kernel's name, its line and
    the output's name; () = it is not.  partly: of such a one, the effect that stores only a part of it, "" = unknown.
    window: of an array that lies in global memory and of which a program sees a block there, the operand with that
    block (`in_place`); None = what a program sees is said by `block`.
    """

    name: str
    role: str
    dims: tuple[Amount, ...]
    dtype: str
    block: tuple[Block, ...]
    index: tuple[Term, ...]
    sizes: tuple[Term | None, ...] = ()
    memory: str = "vmem"
    buffers: int | None = None
    lookahead: bool = False
    revisit: str = "immediate"
    live: bool = True
    source: str = ""
    unmodelled: str = ""
    pipelined: bool = False
    part: str = ""
    same_as: str = ""
    unfilled: str = ""
    # calls of one text are one question (`pallas.findings.key_of`), whatever made their arguments
    made_by: tuple[str, ...] = field(default=(), repr=False)
    partly: str = ""
    window: Operand | None = field(default=None, repr=False)

    @property
    def windowed(self) -> bool:
        """Whether the pipeline moves blocks of it; otherwise the kernel gets the whole array and moves data itself."""
        return self.memory not in ("any", "hbm", "gmem", "semaphore", "host")

    def terms(self) -> tuple[Term, ...]:
        """All that its index map computes: the coordinates, and the valid sizes of bounded dimensions."""
        return (*self.index, *(size for size in self.sizes if size is not None))

    def rewritten(self, change: Callable[[Term, Term], Term]) -> Operand:
        """With its index map changed: `change` is told each part, and what was made of it (`core.term.rebuilt`)."""
        index = tuple(rebuilt(term, change) for term in self.index)
        sizes = tuple(None if size is None else rebuilt(size, change) for size in self.sizes)
        return replace(self, index=index, sizes=sizes)

    def __str__(self) -> str:
        dims = ",".join(map(str, self.dims))
        block = ", ".join(map(str, self.block))
        return f"{self.name} {self.dtype}[{dims}] block ({block}) index ({', '.join(map(str, self.index))})"


@dataclass(frozen=True, slots=True)
class Scratch:
    """Memory that a kernel asks for besides its windows. dims in elements; memory one of MEMORIES."""

    dims: tuple[Amount, ...]
    dtype: str
    memory: str = "vmem"


class BodyReader(Protocol):
    """Reads a body where it is asked about."""

    def __call__(self) -> Any:
        """The body, a `bodies.effects.Body`, always the same one."""

    def of(self, kernel: Kernel) -> BodyReader:
        """The reader of the same body for another kernel."""


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one program's body, as far as a search needs it.

    kind: elementwise, reduction, matmul or attention.  flops: of its matrix products.  always: whether every program
    does all of these; otherwise some stand under conditions.  held: bytes of the largest product that the body works
    on before it is stored, 0 = none.  products: of all of them in vector registers, those of an unrolled loop each.
    """

    kind: str
    flops: int = 0
    always: bool = True
    held: int = 0
    products: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """One Pallas call, or one `emit_pipeline` inside of it.

    grid: programs per dimension, outermost first; a size symbol where it is known at run time only.
    semantics: one of SEMANTICS per grid dimension.  vmapped: grid dimensions that `vmap` added: always parallel, and
    not counted by the body (`counted`).
    aliases: (position among the inputs, position among the outputs) that share a buffer; a table's is negative.
    tables: scalar-prefetch operands.  scratch: other memory.  vmem_limit: bytes the call asks for, None = the default.
    scalars: of inputs that are tables, those of which something is assumed, as tables of the same names.
    pipeline: "pallas_call" or "emit_pipeline".  platform: "tpu", "triton" or "mosaic_gpu".
    runtime: size symbols that stand for numbers of the running program (dynamic grids), of which nothing is said;
    others are meant for all values.
    most: of those in `runtime`, an upper bound of each, where the program's arithmetic gives one for all data.
    accesses: how many elements the body loads or stores at once, each number once; () = not known.
    touched: the element types of the vectors that the body loads or stores, None = the body is not known.
    scoped: the body's own peak allocation (pl.run_scoped, the buffers of pipelines), of each memory.
    source: file:line of the call.
    plain: whether the call names no platform; it is then judged for the one that is asked about.
    body_reader: reads the body, once, when it is asked about; None where there is none to read.
    unread: why its body is not read, "" where it is read, and of a call that is stated without one.
    relations: the assumptions on several tables, or several entries, together.
    alone: whether the program only makes the call: its arrays come from and go to the device's main memory.
    last: of a call among other operations, whether all of these come before it, since it needs what they give, and the
    program's results are the call's: those go to the device's main memory.
    axes: (name, extent) of each axis of the mesh of devices around the call, whose place the body may ask for.
    work: of the body, None = not analysed.
    dims_below: an exclusive bound on every dimension of an array, None = unknown.
    collective: of a kernel with a barrier of its own, the number of its barrier semaphore; None = it has none.
    begins_together: whether every device has begun the kernel before one does anything, as XLA sees to it where a
    kernel has no barrier of its own.  sharing: other kernels of the function with the same number.
    around: of a call that takes or gives semaphores, a `calls_around.Around`: the function that it is called in.
    subcores: which processors of SparseCores run its programs, one of SUBCORES; "" = TensorCores.  tiled: of such a
    kernel, whether arrays lie in the tiles of TensorCores.
    together: axes of the grid whose programs share memory and wait for each other: the threads of a GPU's program, and
    the programs of a cluster.  threads: that of the threads, whose shared memory is one; "" where there is one thread.
    lanes: of a kernel of a GPU, whether its code says how shared memory lies (lane semantics); else JAX chooses that
    itself (warpgroup semantics).
    tensor: of a kernel of a GPU, whether it has tensor memory, or warps that do different things (Blackwell).
    ordered: of a kernel of a GPU, whether JAX puts barriers around what a warpgroup loads and stores.
    remote: of a kernel of a GPU, whether it has semaphores in global memory, or touches memory of other GPUs.
    """

    name: str
    grid: tuple[Amount, ...]
    grid_names: tuple[str, ...]
    operands: tuple[Operand, ...]
    semantics: tuple[str, ...] = ()
    vmapped: tuple[int, ...] = ()
    aliases: tuple[tuple[int, int], ...] = ()
    tables: tuple[Table, ...] = ()
    scratch: tuple[Scratch, ...] = ()
    vmem_limit: int | None = None
    pipeline: str = "pallas_call"
    platform: str = "tpu"
    runtime: tuple[str, ...] = ()
    accesses: tuple[int, ...] = ()
    touched: tuple[str, ...] | None = None
    source: str = ""
    scoped: tuple[Scratch, ...] = ()
    plain: bool = False
    body_reader: BodyReader | None = field(default=None, repr=False)
    scalars: tuple[Table, ...] = ()
    relations: tuple[Relation, ...] = ()
    unread: str = ""
    alone: bool = True
    last: bool = False
    axes: tuple[tuple[str, int], ...] = ()
    work: Work | None = field(default=None, repr=False)
    around: Any = field(default=None, repr=False)
    dims_below: int | None = None
    collective: int | None = None
    begins_together: bool = True
    sharing: tuple[Kernel, ...] = field(default=(), repr=False)
    most: tuple[tuple[str, int], ...] = ()
    subcores: str = ""
    tiled: bool = True
    together: tuple[str, ...] = ()
    threads: str = ""
    lanes: bool = True
    tensor: bool = False
    ordered: bool = True
    remote: bool = False

    @property
    def by_events(self) -> bool:
        """Whether its programs are run to say in what order they touch memory, event by event (`bodies.warpgroups`)."""
        return bool(self.together) or self.tensor or self.remote

    @property
    def in_body(self) -> bool:
        """Whether a body that is read says what programs touch of their blocks, which are views of arrays (Triton)."""
        return self.platform == "triton" and self.body_reader is not None

    @property
    def body(self) -> Any:
        """The effects of one program, a `bodies.effects.Body`; None where there is none to read."""
        return None if self.body_reader is None else self.body_reader()

    def changed(self, **parts: Any) -> Kernel:
        """The kernel with other parts, by the names of its fields; its body is read again, as theirs."""
        kernel = replace(self, **parts)
        return kernel if self.body_reader is None else replace(kernel, body_reader=self.body_reader.of(kernel))

    def with_operands(self, change: Callable[[Operand], Operand]) -> Kernel:
        """The kernel with each operand changed; itself where none is."""
        operands = tuple(map(change, self.operands))
        return self if operands == self.operands else self.changed(operands=operands)

    def sized(self, values: Mapping[str, int]) -> Kernel:
        """The kernel with numbers in the place of its sizes, its body read again, as theirs; errors as of `bind`."""
        return self.bind(values).changed()

    @property
    def inputs(self) -> tuple[Operand, ...]:
        """The operands that are read, in order."""
        return tuple(o for o in self.operands if o.role == "in")

    @property
    def outputs(self) -> tuple[Operand, ...]:
        """The operands that are written, in order."""
        return tuple(o for o in self.operands if o.role == "out")

    @property
    def manual_dma(self) -> tuple[Operand, ...]:
        """The operands whose data the body itself moves: no block says what a program reads or writes of them."""
        return tuple(o for o in self.operands if not (o.windowed or o.pipelined or o.memory == "semaphore"))

    @property
    def counted(self) -> tuple[int, ...]:
        """The grid's dimensions that `program_id` and `num_programs` count, in order: all but those that vmap added."""
        return tuple(k for k in range(len(self.grid)) if k not in self.vmapped)

    def dimension(self, k: int) -> str:
        """A dimension of the grid in words, with the number that the kernel's author knows it by."""
        return "the grid dimension that vmap added" if k in self.vmapped else f"grid dimension {self.counted.index(k)}"

    def largest(self) -> dict[str, int]:
        """Of names that stand for sizes, the most that each may be, as dimensions of arrays or `most` say."""
        found: dict[str, int] = dict(self.most)
        for extent in (e for o in self.operands for e in o.dims if isinstance(e, Size) and self.dims_below is not None):
            names = extent.symbols()
            if len(names) != 1 or any(many < 0 for part, many in extent.terms if part):
                continue
            low, high = 0, self.dims_below or 0
            while low < high:
                middle = (low + high + 1) // 2
                small = evaluate(extent, lambda name, at=middle: at) < (self.dims_below or 0)  # type: ignore[misc]
                low, high = (middle, high) if small else (low, middle - 1)
            found[names[0]] = min(low, found.get(names[0], low))
        return found

    def table(self, name: str) -> Table:
        """The scalar-prefetch operand of this name. KeyError where there is none."""
        return {table.name: table for table in self.tables}[name]

    def could_be_plain(self) -> bool:
        """Whether nothing is in it that only a TPU's kernel has; where windows lie is not looked at."""
        tpu = (self.semantics, self.tables, self.scratch, self.scoped, self.vmem_limit is not None)
        return self.pipeline == "pallas_call" and not any(tpu) and all(o.buffers is None for o in self.operands)

    def parallel(self) -> tuple[int, ...]:
        """Grid dimensions whose programs may run at the same time: the ones that vmap added too, and all on a GPU."""
        if self.platform != "tpu" and self.pipeline == "pallas_call":
            return tuple(range(len(self.grid)))
        said = self.semantics or ("arbitrary",) * len(self.grid)
        return tuple(k for k, word in enumerate(said) if word != "arbitrary" or k in self.vmapped)

    def parameters(self) -> tuple[str, ...]:
        """Every name that stands in an amount or an index map and is no grid dimension, in order of appearance."""
        amounts = [*self.grid, *(e for s in (*self.scratch, *self.scoped) for e in s.dims)]
        amounts += [e for o in self.operands for e in (*o.dims, *(b.size for b in o.block))]
        own = [n for o in self.operands for term in o.terms() for n in term.names() if n not in self.grid_names]
        amounts += [
            e for t in (*self.tables, *self.scalars) for e in (*t.dims, t.low, t.high, t.first) if e is not None
        ]
        return tuple(dict.fromkeys((*parameters(amounts), *own)))

    def named_sizes(self) -> tuple[str, ...]:
        """The names among the sizes of arrays, f32[M,128]: the kernel is meant for all of their values."""
        return parameters([extent for operand in self.operands for extent in operand.dims])

    def bind(self, values: Mapping[str, int]) -> Kernel:
        """The kernel with these numbers in the place of its parameters, by the rules that hold of a kernel as written.

        values: parameter -> int; names that are no parameters are ignored. Raises LayoutError where a block is below 1
        or an extent below 0, where arrays that share a buffer differ, and where a size divides by 0; Undecided where
        a parameter has no value.
        """
        numbers = {Term("name", name): Term("int", value) for name, value in values.items()}
        try:
            bound = replace(
                self,
                grid=_bound(self.grid, values, "grid", None),
                operands=tuple(_bound_operand(self, operand, values) for operand in self.operands),
                tables=tuple(_bound_table(table, values) for table in self.tables),
                scalars=tuple(_bound_table(table, values) for table in self.scalars),
                scratch=_bound_scratch(self.scratch, values, "scratch"),
                scoped=_bound_scratch(self.scoped, values, "scoped"),
                relations=tuple(replace(one, condition=substitute(one.condition, numbers)) for one in self.relations),
            )
        except ZeroDivisionError:
            raise LayoutError(problems.SIZE_BY_ZERO()) from None
        bound.check_aliases()
        return bound

    def check_aliases(self) -> None:
        """LayoutError where arrays that share a buffer differ in shape or element type."""
        for a, b in self.aliases:
            if a < 0:
                continue
            source, target = self.inputs[a], self.outputs[b]
            if (source.dims, source.dtype) != (target.dims, target.dtype):
                # jax/_src/pallas/pallas_call.py, 0.10.2: "shape and dtype must match"
                shapes = " and ".join(f"{o.name} {o.dtype}[{','.join(map(str, o.dims))}]" for o in (source, target))
                raise LayoutError(problems.ALIAS_TYPES(shapes))

    def __str__(self) -> str:
        return f"{self.name} grid ({', '.join(map(str, self.grid))})"


@lru_cache(maxsize=4)
def in_place(kernel: Kernel) -> Kernel:
    """A kernel as its body finds it: of one for Triton a block is a view of an array that lies in global memory.

    Nothing moves it, and nothing is filled up at the end of the array: whole arrays are what the body addresses.
    Kernels of other platforms are as they are.
    """
    if kernel.platform != "triton":
        return kernel
    return kernel.with_operands(lambda operand: operand if operand.window else _whole(operand))


def _whole(operand: Operand) -> Operand:
    """The operand as a whole array in global memory, through which its block is seen."""
    block = tuple(Block("blocked", extent) for extent in operand.dims)
    index = (Term("int", 0),) * len(operand.dims)
    return replace(operand, block=block, index=index, sizes=(), memory="gmem", window=operand)


def _bound(amounts: Sequence[Amount], values: Mapping[str, int], what: str, least: int | None) -> tuple[Amount, ...]:
    return tuple(read_size(value_of(e, values, INTS), f"{what}, dimension {k}", least) for k, e in enumerate(amounts))


def _bound_operand(kernel: Kernel, operand: Operand, values: Mapping[str, int]) -> Operand:
    alike = kernel.inputs if operand.role == "in" else kernel.outputs
    where = f"{operand.role}puts[{[o is operand for o in alike].index(True)}]"
    own = {name: value for name, value in values.items() if name not in kernel.grid_names}
    with within(where):
        dims = _bound(operand.dims, values, "array", 0)
        # a block that is the whole array may be empty, as the array may
        whole = [b.size is dim for b, dim in zip(operand.block, operand.dims, strict=True)]
        sizes = [
            dim if same else read_size(value_of(b.size, values, INTS), f"block, dimension {k}", 1)
            for k, (b, dim, same) in enumerate(zip(operand.block, dims, whole, strict=True))
        ]
        return replace(
            operand,
            dims=dims,
            block=tuple(replace(b, size=size) for b, size in zip(operand.block, sizes, strict=True)),
            index=tuple(bind(term, own) for term in operand.index),
            sizes=tuple(None if size is None else bind(size, own) for size in operand.sizes),
        )


def _bound_table(table: Table, values: Mapping[str, int]) -> Table:
    low, high, first = (None if e is None else value_of(e, values, INTS) for e in (table.low, table.high, table.first))
    dims = _bound(table.dims, values, f"table {table.name!r}", 0)
    return replace(table, dims=dims, low=low, high=high, first=first)


def _bound_scratch(scratch: Sequence[Scratch], values: Mapping[str, int], key: str) -> tuple[Scratch, ...]:
    return tuple(replace(s, dims=_bound(s.dims, values, f"{key}[{k}]", 0)) for k, s in enumerate(scratch))


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """The use of one memory. parts: (what, bytes). limit: in bytes; limit_from: its source.

    kinds: of the parts, in words.  most: the largest ratio of a compiler's own total to these parts that was
    measured, with its source; (0, "") where the compiler adds nothing.
    spared: of the parts, bytes that the compiler may do without, each with why.
    """

    name: str
    parts: tuple[tuple[str, int], ...]
    limit: int
    capacity: int
    limit_from: str
    kinds: str = "windows + scratch"
    most: tuple[float, str] = (0.0, "")
    spared: tuple[tuple[str, int], ...] = ()

    @property
    def used(self) -> int:
        """All parts together, in bytes."""
        return sum(size for _, size in self.parts)

    @property
    def least(self) -> int:
        """The bytes without which no compiler can do."""
        return self.used - sum(size for _, size in self.spared)

    def __str__(self) -> str:
        bound = "" if self.spared else ", a lower bound"
        return f"{self.kinds} = {self.used} of {self.limit} bytes{bound}; spills not counted"


@dataclass(frozen=True, slots=True)
class CompilerAnswer:
    """The compiler's answer on one whole kernel, body included.

    refused: its words, "" = it takes it.  by: who.  unknown: why it gave no answer, "" = it did.  total: bytes of VMEM
    that the kernel takes, exactly, None = not known; said: the same in a sentence.  means, fix: the meaning of its
    words, and a sufficient change.
    """

    refused: str
    by: str
    unknown: str = ""
    total: int | None = None
    said: str = ""
    means: str = ""
    fix: str = ""


class KernelTarget(Protocol):
    """A target's rules for kernels; files of `hardware` implement it, rules ask it.

    Every method returns "" (or 0) where the target has nothing to say of a constant operand or kernel, and raises
    Undecided where the answer depends on a size symbol.
    """

    name: str
    compiler: str
    """The compiler version and, where others were measured, whose rules hold: `libtpu 0.0.53 (rules of 0.0.52)`."""
    platform: str
    """The platform of kernels it speaks of: "tpu", "triton" or "mosaic_gpu"."""

    def refuses_block(self, operand: Operand, grid: Sequence[Amount] = (), pipeline: str = "pallas_call") -> str:
        """Why the compiler refuses a block shape.

        Args:
            operand: One operand with its block and index map.
            grid: Of its call.
            pipeline: The pipeline that moves the block, as of `Kernel.pipeline`.

        Returns:
            The rule with the numbers, "" where it takes the block.
        """

    def refuses_index(self, operand: Operand) -> str:
        """Why the compiler refuses an index map although its values are fine (its prover of alignment).

        Args:
            operand: One operand with its block and index map.

        Returns:
            The reason, "" where it takes the index map.
        """

    def misaligned(self, operand: Operand) -> tuple[tuple[int, int], ...]:
        """The dimensions whose window has to be aligned.

        Args:
            operand: One operand with its block and index map.

        Returns:
            (dimension, tile): the window has to start at a multiple of `tile` elements.
        """

    def relayout(self, operand: Operand) -> tuple[int, str]:
        """The copies before or after the kernel because the operand's default layout is not row-major.

        Args:
            operand: One operand with its block and index map.

        Returns:
            (bytes, reason).
        """

    def memory(self, kernel: Kernel) -> tuple[MemoryUse, ...]:
        """The use of each memory.

        Args:
            kernel: One Pallas call.

        Returns:
            One entry per memory, with its parts in bytes and its limit.
        """

    def refuses_kernel(self, kernel: Kernel) -> tuple[str, ...]:
        """Everything else the compiler refuses: grid, semantics, buffering, mixes of block kinds.

        Args:
            kernel: One Pallas call.

        Returns:
            One text per rule that is broken.
        """

    def answered(self, kernel: Kernel) -> CompilerAnswer | None:
        """The compiler's own answer on the kernel.

        Args:
            kernel: One Pallas call.

        Returns:
            Its answer, None where it was not asked.
        """

    def told(self, answer: CompilerAnswer) -> KernelTarget:
        """The same target, which now knows what its compiler said of one kernel.

        Args:
            answer: The compiler's answer.

        Returns:
            A new target.
        """


@dataclass(frozen=True, slots=True)
class Unmodelled:
    """A Pallas call that was seen and cannot be turned into a Kernel: where, and why."""

    name: str
    source: str
    reason: str
