"""One traced pallas_call, or one emit_pipeline, as a Kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.integers import literal
from layoutproof.core.dimensions import dimension
from layoutproof.core.element_types import ELEMENT_BITS, element_type
from layoutproof.core.errors import Unsupported, failure
from layoutproof.core.message import message_of
from layoutproof.core.size import Extent, symbol
from layoutproof.core.term import ZERO, Term, reads, size_term
from layoutproof.hardware.tpu_tiles import vmem_bytes
from layoutproof.kernel.contents import containing
from layoutproof.kernel.kernel import SEMANTICS, Block, Kernel, Operand, Scratch, Table, Unmodelled
from layoutproof.kernel.scalar_memory import assuming, every_table
from layoutproof.pallas import problems as pallas_problems
from layoutproof.pallas.from_jax import problems
from layoutproof.pallas.from_jax.adapter import (
    axes_around,
    inner_jaxprs,
    is_kernel_of_jax,
    is_literal,
    is_view,
    memory_word,
    need_jax,
    opened,
    pipelined,
    place_of_function,
    skipped_frame,
)
from layoutproof.pallas.from_jax.bodies import with_body
from layoutproof.pallas.from_jax.body_numbers import Captured, body_number, taken
from layoutproof.pallas.from_jax.jaxpr_terms import TableReference, table_of, terms_of
from layoutproof.pallas.from_jax.of_jax import JaxAtom, JaxAval, JaxEquation, JaxJaxpr, Params
from layoutproof.pallas.from_jax.pipeline_bodies import captured_table, with_pipeline_body
from layoutproof.pallas.from_jax.ranges import range_of
from layoutproof.pallas.from_jax.work import work_of

if TYPE_CHECKING:
    from jax._src.pallas.core import BlockDim, BlockMapping
    from jax.experimental.pallas import BlockSpec
    from jax.experimental.pallas.tpu import TransformedRef
    from jax.ref import Ref

Found = Kernel | Unmodelled


def kernel_of(
    params: Params,
    source: str,
    live: Sequence[bool],
    given: Sequence[JaxAtom] = (),
    platform: str = "",
    axes: Mapping[str, int] = MappingProxyType({}),
    known: Callable[[JaxAtom], tuple[int, ...] | None] = lambda atom: None,
    beside: Sequence[JaxEquation] = (),
) -> Found:
    """A Kernel from the parameters of a pallas_call.

    live: for each output, whether its value is used.  given: the operands of the call's equation.
    axes: of the meshes of devices around it.  known: the integers among the operands, where the code has them.
    beside: the equations of the jaxpr that it stands in.
    """
    mapping = params["grid_mapping"]
    name = str(params.get("name") or getattr(params.get("metadata"), "name", "") or body_name(params["jaxpr"]))
    grid = _grid_of(params, given, known, beside)
    tables = _tables_of(params, given[grid.bounds :], known)
    operands = _operands_of(params, grid, tables, live, given)
    semantics = _semantics_of(params, grid)
    body = opened(params["jaxpr"])[0]
    accesses = _accesses(body)
    kernel = Kernel(
        name=name,
        grid=grid.extents,
        grid_names=grid.names,
        operands=tuple(operands),
        semantics=semantics,
        vmapped=grid.vmapped,
        # numbers of aliases count the tables, and not the dynamic bounds of the grid; those of tables become negative
        aliases=tuple((int(a) - len(tables), int(b)) for a, b in params.get("input_output_aliases") or ()),
        tables=tuple(tables),
        scratch=tuple(scratch_of(aval) for aval in mapping.scratch_avals),
        scoped=scoped_in(body),
        vmem_limit=getattr(params.get("compiler_params"), "vmem_limit_bytes", None),
        platform=platform or _platform(params.get("compiler_params")),
        runtime=grid.runtime,
        most=grid.most,
        accesses=tuple(sorted({many for many, _ in accesses})),
        touched=touched_in(body),
        source=source,
        work=work_of(body),
        dims_below=_dims_below([n for o in operands for n in o.dims]),
        **barrier_of(params.get("compiler_params")),
    )
    kernel = _with_known_inputs(kernel, given[grid.bounds + len(tables) :], known)
    kernel = replace(kernel, plain=not platform and _says_no_platform(params) and kernel.could_be_plain())
    odd = [w for w in semantics if w not in SEMANTICS]
    if odd:
        return Unmodelled(name, source, problems.SEMANTICS(odd[0]))
    if kernel.platform not in ("tpu", "triton"):
        return replace(kernel, unread=problems.PLATFORM(kernel.platform))
    return with_body(params["jaxpr"], placed(kernel, axes))


@dataclass(frozen=True, slots=True)
class _TracedGrid:
    """The grid of a call.

    extents, names: of each dimension.  vmapped: those of a batch.  bounds: how many extents are operands of the call,
    before all others.  runtime: the names of the extents that only data say.  most: the largest value of some of them.
    """

    extents: tuple[Extent, ...]
    names: tuple[str, ...]
    vmapped: tuple[int, ...]
    bounds: int
    runtime: tuple[str, ...]
    most: tuple[tuple[str, int], ...]

    @property
    def counted(self) -> list[int]:
        """The dimensions of the kernel itself: of a batched call index maps count their axes without the batch's."""
        return [k for k in range(len(self.extents)) if k not in self.vmapped]


def _grid_of(
    params: Params,
    given: Sequence[JaxAtom],
    known: Callable[[JaxAtom], tuple[int, ...] | None],
    beside: Sequence[JaxEquation],
) -> _TracedGrid:
    """The grid; parameters as of `kernel_of`."""
    mapping = params["grid_mapping"]
    count = len(mapping.grid)
    vmapped = tuple(int(k) for k in getattr(mapping, "vmapped_dims", ()) or ())
    counted = [k for k in range(count) if k not in vmapped]
    named = {k: f"grid{counted.index(k)}" if k in counted else f"vmap{k}" for k in range(count)}
    # the dynamic bounds of the grid come first among the operands
    dynamic = [k for k, n in enumerate(mapping.grid) if type(n) is not int]
    bounds = dict(zip(dynamic, given, strict=False))
    computed = {k: _extent(atom, known, beside) for k, atom in bounds.items()}
    runtime = tuple(named[k] for k in dynamic if computed.get(k) is None)
    extents = tuple(
        n if type(n) is int else symbol(named[k]) if (extent := computed.get(k)) is None else extent
        for k, n in enumerate(mapping.grid)
    )
    ranges = {k: range_of(atom, beside) for k, atom in bounds.items() if named[k] in runtime}
    most = tuple((named[k], ends[1]) for k, ends in ranges.items() if ends is not None and ends[1] > 0)
    return _TracedGrid(extents, tuple(f"g{k}" for k in range(count)), vmapped, len(dynamic), runtime, most)


def _tables_of(
    params: Params, given: Sequence[JaxAtom], known: Callable[[JaxAtom], tuple[int, ...] | None]
) -> list[Table]:
    """The scalar prefetch operands. given: the operands of the call from the first of them on."""
    mapping = params["grid_mapping"]
    count = mapping.num_index_operands
    avals = list(mapping.index_map_avals)[len(mapping.grid) :][:count]
    # an operand that the body may store to has the code's entries at first only
    changed = _stored_to(opened(params["jaxpr"])[0])
    shared = {int(a) for a, _ in params.get("input_output_aliases") or ()}
    tables = []
    for k, (aval, atom) in enumerate(zip(avals, [*given[:count], *[None] * count], strict=False)):
        table = table_of(f"prefetch{k}", aval)
        tables.append(table if k in shared or str(aval) in changed else _known(table, atom, known))
    return tables


def _operands_of(
    params: Params, grid: _TracedGrid, tables: Sequence[Table], live: Sequence[bool], given: Sequence[JaxAtom]
) -> list[Operand]:
    """The inputs and the outputs. live, given: as of `kernel_of`."""
    mapping = params["grid_mapping"]
    arguments: list[Any] = [Term("name", n) for n in grid.names] + [TableReference(t.name) for t in tables]
    extents, names = [grid.extents[k] for k in grid.counted], [grid.names[k] for k in grid.counted]
    moved = pipelined(params["jaxpr"])
    operands = []
    for k, block in enumerate(mapping.block_mappings):
        role, position = ("in", k) if k < mapping.num_inputs else ("out", k - mapping.num_inputs)
        used = role == "in" or position >= len(live) or live[position]
        operand = _operand(block, role, position, arguments, extents, names, used)
        operands.append(operand if operand.windowed else replace(operand, pipelined=len(tables) + k in moved))
    return _same(operands, list(given)[len(given) - mapping.num_inputs :] if given else [])


def _semantics_of(params: Params, grid: _TracedGrid) -> tuple[str, ...]:
    """The word for each dimension of the grid; those of a batch are parallel."""
    said = getattr(params.get("compiler_params"), "dimension_semantics", None) or ()
    semantics = tuple(_word(w) for w in said)
    if not grid.vmapped or not semantics or len(semantics) != len(grid.counted):
        return semantics
    rest = iter(semantics)
    return tuple("parallel" if k in grid.vmapped else next(rest) for k in range(len(grid.extents)))


def _extent(
    atom: JaxAtom, known: Callable[[JaxAtom], tuple[int, ...] | None], beside: Sequence[JaxEquation]
) -> Extent | None:
    """The extent of a dimension of the grid that the program computes of constants, or of sizes that are names, alone.

    None where data say it.
    """
    made = next((e for e in beside if any(v is atom for v in e.outvars)), None)
    if made is not None and made.primitive.name == "dim_as_value":
        with suppress(Unsupported):
            return dimension(made.params["dim"])
        return None
    if made is not None and made.primitive.name == "convert_element_type" and made.invars[0].aval.dtype.kind in "iu":
        return _extent(made.invars[0], known, beside)
    entries = known(atom)
    return entries[0] if entries is not None and len(entries) == 1 and entries[0] > 0 else None


def barrier_of(compiler_params: Any) -> dict[str, Any]:
    """The barrier before a call, by its compiler parameters.

    Source: `CompilerParams` and `interpret_pallas_call.py` of jax/_src/pallas/mosaic (jax 0.10.2): without a
    `collective_id`, and unless it is skipped, all devices meet before the kernel.
    """
    collective = getattr(compiler_params, "collective_id", None)
    skipped = bool(getattr(compiler_params, "skip_device_barrier", False))
    return {"collective": collective, "begins_together": collective is None and not skipped}


def _dims_below(dims: Sequence[object]) -> int | None:
    """An exclusive bound on dimensions: those of jax.export, whose sizes are names, are counted in int32."""
    named = any(type(n) is not int for n in dims)
    return 1 << 31 if named and not need_jax().config.jax_enable_x64 else None


def _stored_to(jaxpr: JaxJaxpr) -> set[str]:
    """The types of the references that a body may store to, in words: of those of another type, it stores to none."""
    found: set[str] = set()
    for equation in jaxpr.eqns:
        if equation.primitive.name not in ("get", "masked_load", "load"):
            inner = [opened(closed)[0] for _, closed in inner_jaxprs(equation.params)]
            found |= {name for body in inner for name in _stored_to(body)}
            found |= set() if inner else {str(v.aval) for v in equation.invars}
    return found


def _known(table: Table, atom: JaxAtom | None, known: Callable[[JaxAtom], tuple[int, ...] | None]) -> Table:
    """The table, with its entries where the code says what the call is given."""
    values = None if atom is None else known(atom)
    return table if values is None else containing(table, values)


def _with_known_inputs(
    kernel: Kernel, given: Sequence[JaxAtom], known: Callable[[JaxAtom], tuple[int, ...] | None]
) -> Kernel:
    """The kernel, with the entries of those inputs that programs see as tables, where the code says them."""
    atoms = {operand.name: atom for operand, atom in zip(kernel.inputs, given, strict=False)}
    told = [_known(t, atoms[t.name], known) for t in every_table(kernel) if t.name in atoms]
    return assuming(kernel, [table for table in told if table.contents is not None])


def _says_no_platform(params: Mapping[str, object]) -> bool:
    """Whether neither the call's compiler parameters nor the memory of its operands belong to one kind of hardware."""
    spaces = {str(getattr(b.block_aval, "memory_space", None)).rpartition(".")[2].lower() for b in _blocks(params)}
    return params.get("compiler_params") is None and spaces <= {"none", "default", "any"}


def _blocks(params: Params) -> Sequence[BlockMapping]:
    return tuple(params["grid_mapping"].block_mappings)


def _same(operands: Sequence[Operand], given: Sequence[JaxAtom]) -> list[Operand]:
    """The operands, and of each input whether it is the same array as an earlier one. given: the inputs' values."""
    first: dict[int, str] = {}
    found = list(operands)
    for k, (operand, value) in enumerate(zip(operands, given, strict=False)):
        if not is_literal(value):
            earlier = first.setdefault(id(value), operand.name)
            found[k] = operand if earlier == operand.name else replace(operand, same_as=earlier)
    return found


def placed(kernel: Kernel, axes: Mapping[str, int]) -> Kernel:
    """The kernel on a mesh of devices with these axes; those of the kernel itself are its grid's."""
    around = tuple((name, extent) for name, extent in axes.items() if name not in kernel.grid_names)
    return replace(kernel, axes=around) if around else kernel


def attempt(look: Callable[[], Found], name: str, place: str) -> Found:
    """What `look` gives; whatever it raises makes this one call unknown, with the cause, and no other.

    A failure of ours must not stop the user's program, hide the other calls, nor be taken for a checked call.
    """
    try:
        return look()
    except Exception as error:
        return Unmodelled(name, place, failure(error))


class Pipelines:
    """The pipelines of a function, in the order in which they are traced."""

    def __init__(self) -> None:
        self._found: list[Found] = []
        self._roots: list[list[Any]] = []

    def add(self, options: Mapping[str, object], refs: Sequence[object], place: str) -> None:
        """One more, from the arguments of emit_pipeline and the references it is called with."""
        found = attempt(lambda: pipeline_of(options, refs, place), "emit_pipeline", place)
        self._found.append(found)
        # kept, so that identities stay what they are
        known = isinstance(found, Kernel)
        self._roots.append([_root(ref) for *_, ref in _paired(options, refs)] if known else [])

    def take(self, around: Sequence[Found] = ()) -> tuple[Found, ...]:
        """Returns all of them and empties the list. Blocks of a shared array do not belong to one call alone.

        around: the other calls of the function. A pipeline of a GPU is a loop in the body of one of them, and is left
        out where these are read.
        """
        times = Counter(id(root) for roots in self._roots for root in {id(r): r for r in roots}.values())
        found = tuple(
            replace(k, operands=tuple(_shared(o, times[id(r)]) for o, r in zip(k.operands, roots, strict=True)))
            if isinstance(k, Kernel)
            else k
            for k, roots in zip(self._found, self._roots, strict=True)
        )
        self._found.clear()
        self._roots.clear()
        return tuple(call for call in found if not _is_of_gpu(call)) if _are_read(around) else found


def _is_of_gpu(call: Found) -> bool:
    return isinstance(call, Kernel) and call.platform == "mosaic_gpu"


def _are_read(calls: Sequence[Found]) -> bool:
    """Whether the calls for GPUs are kernels whose bodies are read to the end; not where there is none."""
    kernels = [call for call in calls if isinstance(call, Unmodelled) or _is_of_gpu(call)]
    return bool(kernels) and all(
        isinstance(call, Kernel) and call.body is not None and not call.body.unmodelled for call in kernels
    )


def _shared(operand: Operand, pipelines: int) -> Operand:
    other = pipelines > 1 and not operand.part
    return replace(operand, part=problems.ANOTHER_PIPELINE()) if other else operand


def _root(ref: Ref) -> Ref:
    """The whole array that a reference is a view of."""
    while is_view(ref) and hasattr(ref, "ref"):
        ref = ref.ref
    return ref


def pipeline_of(options: Params, refs: Sequence[Ref], source: str) -> Kernel | Unmodelled:
    """A Kernel from the arguments of emit_pipeline and the references it is called with."""
    import jax

    try:
        pairs = _paired(options, refs)
    except UnsupportedOp as error:
        return Unmodelled("emit_pipeline", source, message_of(error))
    grid_given = tuple(options["grid"])
    names = tuple(f"g{k}" for k in range(len(grid_given)))
    grid = tuple(n if type(n) is int else symbol(f"grid{k}") for k, n in enumerate(grid_given))
    captured: dict[int | str, tuple[str, Any]] = {}
    steps = () if options.get("_explicit_indices") else grid_given
    operands = [_pipeline_operand(*pair, names, (steps, grid), captured, jax) for pair in pairs]
    tables = tuple(captured_table(n, ref) for n, ref in captured.values())
    numbers = {name for name, value in captured.values() if not hasattr(value.aval, "inner_aval") and not value.shape}
    operands = [_of_all_runs(operand, numbers) for operand in operands]
    said = options.get("dimension_semantics") or ()
    # without cores to share it, all of the grid is a loop of one core
    cores = options.get("core_axis") is not None or options.get("core_axis_name") is not None
    semantics = tuple(_word(w) for w in said) if cores else ()
    kernel = Kernel(
        "emit_pipeline",
        grid,
        names,
        tuple(operands),
        semantics,
        tables=tables,
        pipeline="emit_pipeline",
        source=source,
        platform=str(options.get("platform", "tpu")),
        runtime=tuple(f"grid{k}" for k, n in enumerate(grid_given) if type(n) is not int),
    )
    kernel = placed(kernel, axes_around())
    specs = [(role, spec, ref) for role, _, spec, ref in pairs]
    return with_pipeline_body(kernel, options, specs, captured) if kernel.platform == "tpu" else kernel


def _pipeline_operand(
    role: str, name: str, spec: BlockSpec, ref: TransformedRef, names: tuple[str, ...],
    grids: tuple[tuple[object, ...], tuple[object, ...]], captured: Captured, jax: ModuleType,
) -> Operand:  # fmt: skip
    """One operand of a pipeline. grids: as of `_pipeline_index`.  captured: takes in what its index map takes."""
    dims = tuple(int(n) for n in ref.shape)
    block = tuple(_block(entry) for entry in (spec.block_shape if spec.block_shape is not None else dims))
    index: tuple[Term, ...] = (ZERO,) * len(dims)
    sizes: tuple[Term | None, ...] = ()
    unmodelled = ""
    if spec.index_map is not None:
        try:
            index, sizes = _pipeline_index(spec.index_map, block, names, grids, captured, jax)
            if len(index) != len(dims):
                raise UnsupportedOp(pallas_problems.INDEX_MAP_RESULTS(len(index), len(dims)))
        except UnsupportedOp as error:
            index, sizes, unmodelled = (ZERO,) * len(dims), (), pallas_problems.INDEX_MAP(error)
    mode = getattr(spec, "pipeline_mode", None)
    return Operand(
        name, role, dims, element_type(ref.dtype), block, index, sizes,
        memory=memory_word(getattr(spec, "memory_space", None)), buffers=getattr(mode, "buffer_count", None),
        lookahead=bool(getattr(mode, "use_lookahead", False)), source=_function_place(spec.index_map),
        unmodelled=unmodelled or _odd(block),
        part=problems.VIEW_OF_ARRAY() if is_view(ref) else "",
    )  # fmt: skip


def _of_all_runs(operand: Operand, numbers: set[str]) -> Operand:
    """Where numbers of the enclosing body choose the blocks, other runs of the pipeline may move the remaining ones."""
    chosen = any(read.args[0].args[0] in numbers for read in reads(operand.terms()))
    part = problems.PART_OF_ARRAY()
    return replace(operand, part=operand.part or part) if chosen else operand


class _GridStep:
    """An axis of a pipeline's grid as its index maps find it.

    The map is asked for the block of the step that runs, of the one before and of those that are fetched ahead, and
    `pl.program_id` in it is the step that runs each time. Source: `Scheduler` of jax/_src/pallas/mosaic/pipeline.py,
    jax 0.10.2.
    """

    def __init__(self, size: object) -> None:
        self.size = size

    @property
    def index(self) -> NoReturn:
        raise UnsupportedOp(problems.PROGRAM_ID())


def _pipeline_index(
    index_map: Callable[..., object],
    block: Sequence[Block],
    names: Sequence[str],
    grid: tuple[Sequence[object], Sequence[object]],
    captured: Captured,
    jax: ModuleType,
) -> tuple[tuple[Term, ...], tuple[Term | None, ...]]:
    """Terms of a pipeline's index map, traced here; arrays and references that it captures become tables.

    grid: of the pipeline, as it is given and as the kernel has it: in a map `num_programs` is of the pipeline, too;
    as it is given it is () where a pipeline leaves both names to the call around it.
    """
    from jax._src.pallas import core

    scalars = [jax.ShapeDtypeStruct((), "int32")] * len(names)
    parts: list[bool] = []

    def flat(*index: object) -> tuple[object, ...]:
        with core.grid_env([_GridStep(n) for n in grid[0]]):
            result = index_map(*index)
        out: list[Any] = []
        parts.clear()
        for entry in result if isinstance(result, tuple | list) else (result,):
            sliced = hasattr(entry, "start") and hasattr(entry, "size")
            parts.append(sliced)
            out += [entry.start, entry.size] if sliced else [entry]
        return tuple(out)

    try:
        traced = jax.make_jaxpr(flat)(*scalars)
    except UnsupportedOp:
        raise
    except Exception as error:
        raise UnsupportedOp(problems.BODY_VALUES(type(error).__name__)) from None
    inner, consts = opened(traced)
    arguments: list[Any] = [Term("name", n) for n in names]
    extents = {id(n): extent for n, extent in zip(*grid, strict=False) if type(n) is not int}
    for constant in consts:
        if id(constant) in extents:
            arguments.append(size_term(extents[id(constant)]))
            continue
        whole = getattr(constant, "shape", ()) != () or "Ref" in type(getattr(constant, "aval", None)).__name__
        if not whole and not isinstance(constant, jax.core.Tracer):
            arguments.append(literal(constant))
            continue
        if not whole:
            arguments.append(body_number(constant, captured))
            continue
        arguments.append(TableReference(captured.setdefault(*taken(constant, len(captured)))[0]))
    found = iter(terms_of(_without_constants(inner), arguments))
    index: list[Term] = []
    sizes: list[Term | None] = []
    for sliced in parts:
        index.append(next(found))
        sizes.append(next(found) if sliced else None)
    return tuple(index), tuple(sizes) if any(parts) else ()


class _without_constants:
    """The same jaxpr with its constants as further inputs."""

    def __init__(self, jaxpr: JaxJaxpr) -> None:
        self.eqns, self.outvars, self.constvars = jaxpr.eqns, jaxpr.outvars, ()
        self.invars = [*jaxpr.invars, *jaxpr.constvars]


def _operand(
    block: BlockMapping,
    role: str,
    position: int,
    arguments: Sequence[object],
    grid: Sequence[object],
    names: Sequence[str],
    live: bool,
) -> Operand:
    dims = tuple(dimension(n) for n in block.array_aval.shape)
    inner, _ = opened(block.index_map_jaxpr)
    index: tuple[Term, ...] = (Term("int", 0),) * len(dims)
    unmodelled = ""
    kinds = tuple(_block(entry) for entry in block.block_shape)
    sizes: tuple[Term | None, ...] = ()
    try:
        found = terms_of(block.index_map_jaxpr, arguments[: len(inner.invars)], grid, names)
        if any(kind.kind == "bounded" for kind in kinds) and len(found) > len(kinds):
            starts = iter(found)
            pairs = [(next(starts), next(starts) if kind.kind == "bounded" else None) for kind in kinds]
            index, sizes = tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
        else:
            index = found
        if len(index) != len(dims):
            raise UnsupportedOp(pallas_problems.INDEX_MAP_RESULTS(len(index), len(dims)))
    except UnsupportedOp as error:
        unmodelled = pallas_problems.INDEX_MAP(error)
    mode = block.pipeline_mode
    revisit = str(getattr(getattr(mode, "revisit", None), "name", "") or "immediate").lower()
    origin = str(block.origin or f"{'args' if role == 'in' else 'outputs'}[{position}]")
    return Operand(
        name=origin,
        role=role,
        dims=dims,
        dtype=element_type(block.array_aval.dtype),
        block=kinds,
        index=index,
        sizes=sizes,
        memory=memory_word(getattr(block.transformed_block_aval, "memory_space", None)),
        buffers=getattr(mode, "buffer_count", None),
        lookahead=bool(getattr(mode, "use_lookahead", False)),
        revisit="any" if revisit == "any" else "immediate",
        live=live,
        source=_of_user(place_of_function(inner.debug_info)),
        unmodelled=unmodelled or _odd(kinds),
    )


def _of_user(place: str) -> str:
    """The place of an index map; "" of the one that JAX makes where the user gives none."""
    return "" if skipped_frame(place) and not is_kernel_of_jax(place) else place


def _block(entry: int | BlockDim | None) -> Block:
    """A block dimension; kinds that the model does not have are named with a question mark in front."""
    kind = type(entry).__name__
    if entry is None or kind == "Squeezed":
        return Block("squeezed", 1)
    if isinstance(entry, int):
        return Block("blocked", int(entry))
    if kind == "Blocked":
        return Block("blocked", int(entry.block_size))
    if kind == "Element":
        low, high = entry.padding or (0, 0)
        return Block("element", int(entry.block_size), int(low), int(high))
    if kind == "BoundedSlice":
        return Block("bounded", int(entry.block_size))
    return Block(f"?{kind}", 1)


def _odd(block: Sequence[Block]) -> str:
    """The first kind of dimension that the model does not have, in words, "" for none."""
    return next((problems.BLOCK_DIMENSION(b.kind[1:]) for b in block if b.kind[0] == "?"), "")


def scoped_in(jaxpr: JaxJaxpr) -> tuple[Scratch, ...]:
    """The peak allocations of a body, of vector and of scalar memory."""
    return tuple(s for memory in ("vmem", "smem") for s in _scoped(jaxpr, memory))


def touched_in(jaxpr: JaxJaxpr) -> tuple[str, ...]:
    """The element types of the vectors that a body loads or stores."""
    return tuple(sorted({dtype for _, dtype in _accesses(jaxpr)} - {""}))


def scratch_of(aval: JaxAval) -> Scratch:
    """A scratch of a call, as JAX describes it."""
    shape = tuple(int(n) for n in getattr(aval, "shape", ()))
    memory = memory_word(getattr(aval, "memory_space", None))
    dtype = element_type(getattr(aval, "dtype", "f32"))
    return Scratch(shape, dtype, "semaphore" if dtype not in ELEMENT_BITS else memory)


def _scoped(jaxpr: JaxJaxpr, memory: str) -> tuple[Scratch, ...]:
    """The peak allocation of a body in a memory (pl.run_scoped, the buffers of pipelines).

    Scopes one after the other share their place, nested ones lie side by side, and unused ones take nothing. So does
    the compiler (measured on libtpu 0.0.52: in a row, in branches, in loops, nested).
    """
    best: tuple[Scratch, ...] = ()
    for equation in jaxpr.eqns:
        inner = [opened(closed)[0] for _, closed in inner_jaxprs(equation.params)]
        found = max((_scoped(body, memory) for body in inner), key=bytes_of, default=())
        if equation.primitive.name == "run_scoped":
            (body,) = inner
            used = {id(v) for e in body.eqns for v in e.invars}
            given = [scratch_of(v.aval) for v in body.invars if id(v) in used]
            found = (*(s for s in given if s.memory == memory), *found)
        best = max(best, found, key=bytes_of)
    return best


def bytes_of(parts: Sequence[Scratch]) -> int:
    """The bytes of these in vector memory, tiles included."""
    wide = {s: 32 if s.dtype == "pred" else ELEMENT_BITS.get(s.dtype, 32) for s in parts}
    return sum(int(vmem_bytes(list(s.dims), wide[s])) for s in parts)


def _accesses(jaxpr: JaxJaxpr) -> set[tuple[int, str]]:
    """(elements, element type) of all loads and stores in a kernel's body; of single numbers the type is ""."""
    found: set[tuple[int, str]] = set()
    for equation in jaxpr.eqns:
        if equation.primitive.name in ("get", "swap", "masked_load", "masked_swap", "load", "addupdate"):
            values = equation.outvars or equation.invars[1:2]
            for aval in (v.aval for v in values):
                shape = tuple(int(n) for n in getattr(aval, "shape", ()))
                found.add((prod(shape), element_type(aval.dtype) if shape else ""))
        for _, inner in inner_jaxprs(equation.params):
            found |= _accesses(opened(inner)[0])
    return found


def _word(word: object) -> str:
    return str(getattr(word, "value", word)).lower()


def _platform(compiler_params: object) -> str:
    text = type(compiler_params).__module__
    return "triton" if "triton" in text else "mosaic_gpu" if "mosaic_gpu" in text else "tpu"


def body_name(jaxpr: JaxJaxpr) -> str:
    """The name of the function that a body was traced from."""
    inner, _ = opened(jaxpr)
    text = str(getattr(inner.debug_info, "func_src_info", "") or "pallas_call")
    return text.partition(" at ")[0]


def _function_place(function: object) -> str:
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""


def _paired(options: Params, refs: Sequence[Ref]) -> list[tuple[str, str, BlockSpec, Ref]]:
    """(role, name, spec, reference) of each operand of a pipeline. UnsupportedOp where one is not one array in blocks.

    As `_make_pipeline_allocations` of jax/_src/pallas/mosaic/pipeline.py pairs them: by the structure of the specs. A
    spec that the user buffers may stand for several references, or for one of another rank.
    """
    from jax.tree_util import tree_flatten, tree_leaves

    for buffer in tree_leaves(options.get("allocations"), is_leaf=lambda a: hasattr(a, "copy_in")):
        if hasattr(buffer, "copy_in") and not type(buffer).__module__.startswith("jax."):
            raise UnsupportedOp(problems.BUFFER_CLASS(type(buffer).__name__))
    sides = [(role, options.get(f"{role}_specs") or ()) for role in ("in", "out")]
    sides = [(role, tuple(specs) if isinstance(specs, list | tuple) else (specs,)) for role, specs in sides]
    pairs: list[tuple[str, str, Any, Any]] = []
    start = 0
    for role, specs in sides:
        given = tuple(refs[start : start + len(specs)])
        start += len(specs)
        if len(given) < len(specs):
            raise UnsupportedOp(problems.SPECS_AND_REFERENCES(sum((len(s) for _, s in sides)), len(refs)))
        leaves, structure = tree_flatten(specs, is_leaf=lambda s: hasattr(s, "index_map"))
        try:
            found = structure.flatten_up_to(given)
        except (ValueError, TypeError) as error:
            raise UnsupportedOp(problems.SPEC_STRUCTURE(role, error)) from None
        for k, (spec, ref) in enumerate(zip(leaves, found, strict=True)):
            name = f"{role}[{k}]"
            if not hasattr(ref, "shape"):
                raise UnsupportedOp(problems.ONE_SPEC(name, len(tree_leaves(ref)), type(ref).__name__))
            block = spec.block_shape
            if block is not None and len(block) != len(ref.shape):
                raise UnsupportedOp(problems.BLOCK_RANK(name, len(block), len(ref.shape)))
            pairs.append((role, name, spec, ref))
    return pairs
