"""One custom call and the Mosaic module in it, as a Kernel.

Source: `lower_jaxpr_to_pipelined_module` of jax/_src/pallas/mosaic/lowering.py (jax 0.10.2, 0.12.0.1), which writes
these functions and attributes. Arguments of the call: bounds of the grid that are known at run time only, tables,
inputs. Arguments of the kernel: program indices, tables, windows of inputs and outputs, scratch.

What a module does not say: names (operands are `args[0]`, `outputs[0]`, tables `prefetch0`), which grid dimensions
vmap added, squeezed dimensions (they are blocks of 1, which start at the same places), booleans (32-bit integers by
then), that some copies of the body are a pipeline's. Where it has no line of an index map, the line of the call stands
for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.core.document import JsonObject
from layoutproof.core.errors import LayoutError, failure
from layoutproof.core.message import message_of
from layoutproof.core.size import symbol
from layoutproof.core.term import ZERO, Term
from layoutproof.kernel.kernel import SEMANTICS, Block, Kernel, Operand, Scratch, Table, Unmodelled
from layoutproof.pallas import problems as pallas_problems
from layoutproof.pallas.from_jax.calls import bytes_of
from layoutproof.pallas.from_mosaic import problems
from layoutproof.pallas.from_mosaic.mosaic_calls import MosaicArray, MosaicCall
from layoutproof.pallas.from_mosaic.mosaic_config import Config
from layoutproof.pallas.from_mosaic.mosaic_terms import index_terms
from layoutproof.pallas.from_mosaic.mosaic_types import (
    MosaicReference,
    padding_of,
    reference_of,
    whole_numbers,
    word_of,
)

DYNAMIC = -(1 << 63)
"""MLIR's mark for an extent that is known at run time only."""

_KERNEL = frozenset(
    {
        "function_type", "sym_name", "sym_visibility", "iteration_bounds", "dimension_semantics", "scalar_prefetch",
        "scratch_operands", "window_params", "tpu.core_type",
    }
)  # fmt: skip
_WINDOW = frozenset({"transform_indices", "window_bounds", "window_kind", "pipeline_mode", "revisit_mode"})
_MODULE = frozenset({"stable_mosaic.version", "sym_name"})
_BUFFERS = {"synchronous": 1, "double_buffered": 2}


def kernel_in(call: MosaicCall, config: Config, module: JsonObject) -> Kernel | Unmodelled:
    """The kernel of a call, but for its body; Unmodelled names what is not modelled.

    module: as `mosaic_worker` writes it.
    """
    try:
        return _kernel(call, config, module)
    except (LayoutError, UnsupportedOp) as error:
        return Unmodelled(call.name, call.source, message_of(error))
    except Exception as error:
        return Unmodelled(call.name, call.source, failure(error))


def _kernel(call: MosaicCall, config: Config, module: JsonObject) -> Kernel:
    _known(module["attributes"], _MODULE, "the module")
    functions = {str(f["attributes"].get("sym_name", "")): f for f in module["functions"]}
    mains = [f for f in module["functions"] if "body" not in f]
    if len(mains) != 1 or len(functions) != len(module["functions"]):
        raise LayoutError(problems.KERNELS(len(mains)))
    (main,) = mains
    given = main["attributes"]
    _known(given, _KERNEL, "the kernel")
    core = word_of(given.get("tpu.core_type", "#tpu.core_type<tc>"), "core_type")
    if core != "tc":
        raise LayoutError(problems.CORE_TYPE(core))
    bounds = whole_numbers(given.get("iteration_bounds", []), "iteration_bounds")
    grid = tuple(symbol(f"grid{k}") if n == DYNAMIC else n for k, n in enumerate(bounds))
    names = tuple(f"g{k}" for k in range(len(grid)))
    many_tables, many_scratch = _count(given, "scalar_prefetch"), _count(given, "scratch_operands")
    arguments = main["arguments"]
    indices, rest = arguments[: len(grid)], arguments[len(grid) :]
    first = sum(n == DYNAMIC for n in bounds)  # among the operands of the call
    inputs = call.operands[first + many_tables :]
    windows = len(inputs) + len(call.results)
    if indices != ["i32"] * len(grid) or len(rest) != many_tables + windows + many_scratch:
        raise LayoutError(problems.ARGUMENTS(len(arguments), len(grid), many_tables, windows, many_scratch))
    references = [reference_of(text) for text in rest]
    tables = _tables(call.operands[first : first + many_tables], references)
    params = given.get("window_params", [None] * windows if not grid else [])
    if not isinstance(params, list) or len(params) != windows:
        raise LayoutError(problems.WINDOWS(windows))
    passed = [*(Term("name", n) for n in names), *(t.name if t.signed else None for t in tables)]
    operands = []
    for k, (array, reference, window) in enumerate(
        zip((*inputs, *call.results), references[many_tables:], params, strict=False)
    ):
        role, position = ("in", k) if k < len(inputs) else ("out", k - len(inputs))
        live = role == "in" or position >= len(call.live) or call.live[position]
        operand = _operand(role, position, array, reference, window, functions, passed, live)
        operands.append(operand if operand.source else replace(operand, source=call.asked))
    scratch = [Scratch(r.dims, r.dtype, r.memory) for r in references[many_tables + windows :]]
    if config.scratch:
        scratch.append(Scratch((config.scratch,), "u8"))
    name = str(given.get("sym_name", ""))
    return Kernel(
        name=call.name if name in ("", "main", "kernel") and call.name else name,
        grid=grid,
        grid_names=names,
        operands=tuple(operands),
        semantics=_semantics(given.get("dimension_semantics"), len(grid)),
        aliases=_aliases(call.aliases, first, many_tables, len(call.operands), len(call.results)),
        tables=tables,
        scratch=tuple(scratch),
        scoped=tuple(s for memory in ("vmem", "smem") for s in _scoped(main["allocated"], memory)),
        vmem_limit=config.vmem_limit,
        runtime=tuple(f"grid{k}" for k, n in enumerate(bounds) if n == DYNAMIC),
        source=call.source,
    )


def _scoped(regions: Sequence[Any], memory: str) -> tuple[Scratch, ...]:
    """The peak allocation of regions in a memory, as `calls` counts it for a traced body."""
    best: tuple[Scratch, ...] = ()
    for own, inner in regions:
        kept = [Scratch(r.dims, r.dtype, r.memory) for r in map(reference_of, own) if r.memory == memory]
        best = max(best, (*kept, *_scoped(inner, memory)), key=bytes_of)
    return best


def _tables(arrays: Sequence[MosaicArray], references: Sequence[MosaicReference]) -> tuple[Table, ...]:
    tables = []
    for k, array in enumerate(arrays):
        reference = references[k]
        bits = int("".join(c for c in array.dtype if c.isdigit()) or 0)
        if reference.dims != array.dims or array.dtype[0] not in "su" or not bits:
            theirs = f"{reference.dtype}[{','.join(map(str, reference.dims))}]"
            ours = f"{array.dtype}[{','.join(map(str, array.dims))}]"
            raise LayoutError(problems.TABLE_TYPE(k, ours, theirs))
        tables.append(Table(f"prefetch{k}", array.dims, bits, signed=array.dtype[0] == "s", dtype=array.dtype))
    return tuple(tables)


def _operand(
    role: str,
    position: int,
    array: MosaicArray,
    reference: MosaicReference,
    window: JsonObject | None,
    functions: Mapping[str, JsonObject],
    passed: Sequence[object],
    live: bool,
) -> Operand:
    """One array. window: its window_params, None where the call has no grid and the kernel sees the whole array."""
    dims, memory = array.dims, reference.memory
    name = f"{'args' if role == 'in' else 'outputs'}[{position}]"
    whole = tuple(Block("blocked", n) for n in dims)
    zeros = (ZERO,) * len(dims)
    if not window:
        if window is not None and memory in ("vmem", "smem"):
            raise LayoutError(problems.NO_WINDOW(name, memory))
        if reference.dims != dims:
            raise LayoutError(problems.ARRAY_EXTENTS(name, list(dims), list(reference.dims)))
        return Operand(name, role, dims, array.dtype, whole, zeros, memory=memory, live=live)
    if not isinstance(window, Mapping):
        raise LayoutError(problems.WINDOW_FORM(name))
    _known(window, _WINDOW, f"the window of {name}")
    sizes = whole_numbers(window.get("window_bounds"), "window_bounds")
    if len(sizes) != len(dims) or len(reference.dims) > len(sizes):
        raise LayoutError(problems.WINDOW_RANK(name, len(dims), len(sizes)))
    blocks = tuple(Block("blocked", n) for n in sizes)
    if "window_kind" in window:
        padding = padding_of(window["window_kind"])
        if len(padding) != len(sizes):
            raise LayoutError(problems.WINDOW_KIND_RANK(name, len(padding)))
        blocks = tuple(Block("element", n, low, high) for n, (low, high) in zip(sizes, padding, strict=True))
    mode = word_of(window["pipeline_mode"], "pipeline_mode") if "pipeline_mode" in window else ""
    revisit = word_of(window["revisit_mode"], "revisit_mode") if "revisit_mode" in window else "immediate"
    if (mode and mode not in _BUFFERS) or revisit not in ("immediate", "any"):
        raise LayoutError(problems.WINDOW_MODES(name, mode, revisit))
    target = str(window.get("transform_indices", ""))
    index, unmodelled = zeros, ""
    try:
        if not target.startswith("@"):
            raise UnsupportedOp(problems.NOT_A_FUNCTION(target[:60]))
        index = index_terms(functions, target.removeprefix("@"), passed)
        if len(index) != len(dims):
            raise UnsupportedOp(pallas_problems.INDEX_MAP_RESULTS(len(index), len(dims)))
    except UnsupportedOp as error:
        index, unmodelled = zeros, pallas_problems.INDEX_MAP(error)
    return Operand(
        name=name,
        role=role,
        dims=dims,
        dtype=array.dtype,
        block=blocks,
        index=index,
        memory=memory,
        buffers=_BUFFERS.get(mode),
        revisit=revisit,
        live=live,
        source=str(functions.get(target.removeprefix("@"), {}).get("place", "")),
        unmodelled=unmodelled,
    )


def _semantics(value: object, many: int) -> tuple[str, ...]:
    if value is None:
        return ()
    words = tuple(word_of(v, "dimension_semantics") for v in value) if isinstance(value, list) else ("?",)
    odd = [word for word in words if word not in SEMANTICS]
    if odd or len(words) != many:
        raise LayoutError(problems.SEMANTICS(value, many))
    return words


def _aliases(
    pairs: Sequence[tuple[int, int]], first: int, tables: int, operands: int, results: int
) -> tuple[tuple[int, int], ...]:
    """Counted from the first input, as `Kernel` does; a table's becomes negative."""
    if any(not first <= a < operands or not 0 <= b < results for a, b in pairs):
        raise LayoutError(problems.ALIAS(list(pairs)))
    return tuple((a - first - tables, b) for a, b in pairs)


def _count(given: Mapping[str, object], name: str) -> int:
    value = given.get(name, 0)
    if type(value) is not int or value < 0:
        raise LayoutError(problems.NO_NUMBER(name, str(value)[:40]))
    return value


def _known(given: JsonObject, names: frozenset[str], what: str) -> None:
    for name in given:
        if name not in names:
            raise LayoutError(problems.ATTRIBUTE(what, name[:80]))
