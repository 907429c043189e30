"""The amounts of Pallas calls as terms, where a function is traced with recorded numbers (`core.recorded`).

JAX gets plain ints: of a grid, of the sizes of blocks and of the shapes of memory, that of a body too, the terms are
kept here, and everything else that JAX is given counts as read, with its value. That JAX treats all extents of these
alike is assumed; who shows an answer traces it once more with plain ints.
What a body does with a number is not recorded where it goes into an operation of JAX: no grid, block or index map
follows from it. What Python decides in a body is, unless bodies are left out.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from layoutproof.core.folding import folded
from layoutproof.core.numbers import INTS
from layoutproof.core.recorded import Recorded, RecordedText, Trail, plain, term_of
from layoutproof.core.size import Size
from layoutproof.core.term import Term, rebuilt
from layoutproof.kernel.kernel import Kernel, Operand, Scratch, Work
from layoutproof.pallas.from_jax.adapter import is_kernel_of_jax, need_jax, replaced, skipped_frame, taken_as_ints
from layoutproof.pallas.from_jax.calls import scratch_of
from layoutproof.pallas.from_jax.jaxpr_terms import terms_of

if TYPE_CHECKING:
    from jax.experimental.pallas import BlockSpec, GridSpec


TOLD = ("cost_estimate", "metadata")
"""Arguments of a call that are for the compiler and for profilers, and choose nothing."""


@dataclass(frozen=True, slots=True)
class RecordedSpec:
    """Of one operand. block: its sizes, None = the whole array.  index: of the block seen, None = as JAX has it."""

    block: tuple[Any, ...] | None
    index: tuple[Term, ...] | None = None


@dataclass(frozen=True, slots=True)
class Amounts:
    """Of one call, each a term or an int. grid: its extents.  scratch: of each shape.

    inputs, outputs: of each operand; () = of no operand anything is said.
    scoped: of each memory that the body allocates by `pl.run_scoped`, in order, with what JAX is given; it grows while
    the body is traced.
    """

    grid: tuple[Any, ...]
    inputs: tuple[RecordedSpec, ...]
    outputs: tuple[RecordedSpec, ...]
    scratch: tuple[tuple[Any, ...] | None, ...]
    scoped: list[tuple[Scratch, tuple[Any, ...]]]


def trail() -> Trail:
    """An empty one, for a function that is traced: JAX's caches, and ours, may hash numbers."""
    need_jax()
    taken_as_ints(Recorded, int)
    return Trail(lambda file: skipped_frame(file) and not is_kernel_of_jax(file))


@contextlib.contextmanager
def recorded_calls(trail: Trail, bodies: bool) -> Iterator[list[Amounts]]:
    """Within it the list gets the amounts of each Pallas call that this thread traces.

    bodies: whether bodies are traced with recorded numbers too; otherwise they are left out.
    """
    from jax.tree_util import tree_leaves

    calls: list[Amounts] = []
    traced: list[Amounts] = []
    shapes: dict[int, tuple[Any, tuple[Any, ...]]] = {}

    def seen(original: Callable[..., object]) -> Callable[..., object]:
        def call(kernel: Callable[..., object], out_shape: object, *, grid_spec: GridSpec, **more: object) -> object:
            spec, amounts = _plain_grid(grid_spec, shapes, trail)
            calls.append(amounts)
            more = {name: plain_parts(value, name in TOLD) for name, value in more.items()}
            body = _watched(kernel, trail, amounts, traced) if bodies else _nothing
            return original(body, plain_parts(out_shape), grid_spec=spec, **more)

        return call

    def scoped(original: Callable[..., object]) -> Callable[..., object]:
        def call(function: Callable[..., object], *types: object, **named: object) -> object:
            known = [shapes[id(leaf)] for leaf in tree_leaves((types, named)) if id(leaf) in shapes]
            for amounts in traced[-1:]:
                amounts.scoped.extend((scratch_of(made), terms) for made, terms in known)
            return original(function, *types, **named)

        return call

    def shaped(original: Callable[..., object]) -> Callable[..., object]:
        def call(space: Callable[..., object], shape: object, *more: object, **named: object) -> object:
            if not isinstance(shape, tuple | list):
                return original(space, shape, *more, **named)
            made = original(space, tuple(map(plain, shape)), *more, **named)
            # what JAX allocates in a body it may have computed from numbers that it has read unseen
            if not (trail.inside and trail.library(_caller())):
                shapes[id(made)] = made, tuple(map(term_of, shape))
            return made

        return call

    def constant(original: Callable[..., object]) -> Callable[..., object]:
        return lambda extent: type(extent) is Recorded or original(extent)

    def dumped(original: Callable[..., object]) -> Callable[..., object]:
        def call(value: object, *more: object, **named: object) -> object:
            if not _holds(value):
                return original(value, *more, **named)
            quietly = original(plain_parts(value, True), *more, **named)
            return RecordedText(str(quietly), lambda: str(original(plain_parts(value), *more, **named)))

        return call

    module = importlib.import_module("jax._src.pallas.pallas_call")
    pallas = importlib.import_module("jax.experimental.pallas")
    core = importlib.import_module("jax._src.pallas.core")
    with contextlib.ExitStack() as stack:
        stack.enter_context(replaced(module, "_pallas_call", seen))
        stack.enter_context(replaced(pallas, "run_scoped", scoped))
        stack.enter_context(replaced(core.jax_core, "is_constant_dim", constant))
        stack.enter_context(replaced(json, "dumps", dumped))
        for part in (core, importlib.import_module("jax._src.pallas.mosaic.core")):
            space = getattr(part, "MemorySpace", None)
            if space is not None and "__call__" in vars(space):
                stack.enter_context(replaced(space, "__call__", shaped))
        yield calls


def general(kernel: Kernel, amounts: Amounts) -> Kernel | None:
    """The kernel with terms for amounts and without its body; None where they do not fit.

    kernel: as it was found with plain ints.
    """
    scoped = _scoped(kernel, amounts)
    if kernel.pipeline != "pallas_call" or scoped is None:
        return None
    pairs = [(kernel.inputs, amounts.inputs), (kernel.outputs, amounts.outputs)]
    fits = all(len(said) in (0, len(operands)) for operands, said in pairs)
    if not fits or (len(amounts.grid), len(amounts.scratch)) != (len(kernel.grid), len(kernel.scratch)):
        return None
    sized = [
        _with_spec(operand, spec)
        for operands, said in pairs
        for operand, spec in zip(operands, said or [RecordedSpec(None)] * len(operands), strict=True)
    ]
    return replace(
        kernel,
        body_reader=None,
        work=None if kernel.work is None else Work(kernel.work.kind),
        # an extent that is known at run time only stays what it is
        grid=tuple(n if isinstance(n, Size) else amount(m) for n, m in zip(kernel.grid, amounts.grid, strict=True)),
        operands=tuple(sized),
        scratch=tuple(
            s if dims is None else replace(s, dims=tuple(map(amount, dims)))
            for s, dims in zip(kernel.scratch, amounts.scratch, strict=True)
        ),
        scoped=scoped,
    )


def _scoped(kernel: Kernel, amounts: Amounts) -> tuple[Scratch, ...] | None:
    """The allocations of the body; None where these are not all that were seen.

    Where all of it is alive at once, no size chooses which part of it counts.
    """
    if not kernel.scoped:
        return ()
    seen = [(s, dims) for memory in ("vmem", "smem") for s, dims in amounts.scoped if s.memory == memory]
    if [s for s, _ in seen] != list(kernel.scoped):
        return None
    return tuple(replace(s, dims=tuple(map(amount, dims))) for s, dims in seen)


def bound(kernel: Kernel, values: Mapping[str, int]) -> Kernel:
    """The kernel with numbers for names, written as tracing with these writes it. Errors as of `Kernel.bind`.

    What has no such name in it stays as it is: tables, and an extent of the grid that is known at run time only.
    """
    sized = tuple(1 if isinstance(n, Size) else n for n in kernel.grid)
    found = replace(kernel, grid=sized, tables=(), scalars=(), relations=()).bind(values)
    operands = [replace(o, index=tuple(map(_folded, o.index))) for o in found.operands]
    grid = tuple(n if isinstance(n, Size) else m for n, m in zip(kernel.grid, found.grid, strict=True))
    tables, scalars, relations = kernel.tables, kernel.scalars, kernel.relations
    return replace(found, grid=grid, operands=tuple(operands), tables=tables, scalars=scalars, relations=relations)


def _folded(term: Term) -> Term:
    """The term with all that is in it folded."""
    return rebuilt(term, lambda part, made: folded(made))


def amount(value: Any) -> Any:
    """An amount of a kernel: a term, or the int where no name is in it.

    >>> amount(Term("int", 2)), amount(Term("name", "b"))
    (2, Term(b))
    """
    return value.evaluate({}, INTS) if isinstance(value, Term) and not value.names() else value


def _with_spec(operand: Operand, spec: RecordedSpec) -> Operand:
    block = [None] * len(operand.block) if spec.block is None else spec.block
    sized = [b if n is None else replace(b, size=amount(n)) for b, n in zip(operand.block, block, strict=True)]
    return replace(operand, block=tuple(sized), index=operand.index if spec.index is None else spec.index)


def _plain_grid(
    grid_spec: GridSpec, shapes: dict[int, tuple[object, tuple[object, ...]]], trail: Trail
) -> tuple[GridSpec, Amounts]:
    """The same for JAX, with plain ints, and its amounts."""
    from jax.tree_util import tree_flatten

    spec = copy.copy(grid_spec)
    spec.grid = tuple(map(plain, grid_spec.grid))
    sides = {}
    for side in ("in_specs", "out_specs"):
        leaves, tree = tree_flatten(getattr(grid_spec, side), is_leaf=_is_spec)
        said = all(map(_is_spec, leaves))
        specs = [(_sizes(leaf), _index(leaf, spec, trail)) for leaf in leaves] if said else []
        sides[side] = tuple(RecordedSpec(block, index) for block, index in specs)
        if said:
            plainly = [_plain_spec(leaf, index) for leaf, (_, index) in zip(leaves, specs, strict=True)]
            setattr(spec, side, tree.unflatten(plainly))
    leaves, _ = tree_flatten(grid_spec.scratch_shapes)
    scratch = tuple(shapes[id(leaf)][1] if id(leaf) in shapes else None for leaf in leaves)
    return spec, Amounts(tuple(map(term_of, grid_spec.grid)), sides["in_specs"], sides["out_specs"], scratch, [])


def _is_spec(value: object) -> bool:
    return hasattr(value, "block_shape") and hasattr(value, "index_map")


def _sizes(spec: BlockSpec) -> tuple[object, ...] | None:
    """The sizes that are numbers; a dimension of another kind is as JAX has it."""
    if spec.block_shape is None:
        return None
    return tuple(term_of(n) if type(n) in (Recorded, int) else None for n in spec.block_shape)


def _index(spec: BlockSpec, grid_spec: GridSpec, trail: Trail) -> tuple[Term, ...] | None:
    """The results of an index map as terms over the grid's names and those of recorded numbers, which it does not read.

    None where it looks at tables, or at numbers in another way than by arithmetic.
    """
    import jax

    if spec.index_map is None or spec.block_shape is None or getattr(grid_spec, "num_scalar_prefetch", 0) > 0:
        return None
    names = [Term("name", f"g{k}") for k in range(len(grid_spec.grid))]
    wanted: dict[Term, None] = {}

    def numbered(*values: Any) -> Any:
        given = dict(zip(wanted, values[len(names) :], strict=True))

        def stand_in(number: Recorded) -> object:
            wanted[number.term] = None
            return given.get(number.term, number.value)

        trail.stand_in = stand_in
        try:
            found = spec.index_map(*values[: len(names)])
        finally:
            trail.stand_in = None
        entries = found if isinstance(found, tuple | list) else (found,)
        return [stand_in(entry) if type(entry) is Recorded else entry for entry in entries]

    before = -1
    try:
        while before != len(wanted):
            before = len(wanted)
            scalars = [jax.ShapeDtypeStruct((), "int32")] * (len(names) + before)
            # another function each time: JAX keeps what it traced
            jaxpr = jax.make_jaxpr(lambda *values: numbered(*values))(*scalars)
        return terms_of(jaxpr, [*names, *wanted], grid_spec.grid, [str(name) for name in names])
    except Exception:
        # whatever it needs that is not there, JAX gives it
        return None


def _plain_spec(spec: BlockSpec, index: Sequence[Term] | None) -> BlockSpec:
    """The same for JAX; a map whose terms are known returns nothing but zeros."""
    shape = spec.block_shape
    sizes = None if shape is None else tuple(plain(n) if type(n) is Recorded else plain_parts(n) for n in shape)
    known = {} if index is None else {"index_map": lambda *ids: (0,) * len(index)}
    return replace(spec, block_shape=sizes, pipeline_mode=plain_parts(spec.pipeline_mode), **known)


def plain_parts(value: Any, quietly: bool = False) -> Any:
    """The same with plain ints in it, which count as read unless `quietly`."""
    if type(value) is Recorded:
        return value.value if quietly else int(value)
    if type(value) is RecordedText:
        return value.value if quietly else value.read()
    if isinstance(value, dict):
        return {plain_parts(k, quietly): plain_parts(v, quietly) for k, v in value.items()}
    if type(value) in (tuple, list):
        return type(value)(plain_parts(entry, quietly) for entry in value)
    if is_dataclass(value) and not isinstance(value, type):
        held = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
        changed = {name: plain_parts(one, quietly) for name, one in held.items() if _holds(one)}
        return replace(value, **changed) if changed else value
    return value


def _holds(value: object) -> bool:
    """Whether a recorded number is in it."""
    if type(value) in (Recorded, RecordedText):
        return True
    if isinstance(value, dict):
        return any(_holds(v) for pair in value.items() for v in pair)
    if isinstance(value, tuple | list):
        return any(map(_holds, value))
    if not is_dataclass(value) or isinstance(value, type):
        return False
    return any(_holds(getattr(value, field.name)) for field in fields(value))


def _caller() -> str:
    """The file from which what is replaced here was called."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename in (__file__, skipped_frame.__code__.co_filename):
        frame = frame.f_back
    return frame.f_code.co_filename


def _nothing(*references: object) -> None:
    """A body that does nothing."""


def _watched(
    kernel: Callable[..., object], trail: Trail, amounts: Amounts, traced: list[Amounts]
) -> Callable[..., object]:
    """The same body, in which numbers that go into operations of JAX are not recorded.

    amounts: of its call, the last of `traced` while it is traced.
    """
    if isinstance(kernel, functools.partial):
        return functools.partial(_watched(kernel.func, trail, amounts, traced), *kernel.args, **kernel.keywords)

    @functools.wraps(kernel)
    def body(*args: object, **named: object) -> object:
        before, trail.inside = trail.inside, True
        traced.append(amounts)
        try:
            return kernel(*args, **named)
        except Exception:
            trail.stopped_inside = True
            raise
        finally:
            traced.pop()
            trail.inside = before

    return body
