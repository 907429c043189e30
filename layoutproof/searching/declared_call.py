"""A declared kernel as a real Pallas call, for the compiler alone: nothing runs. Imported in its child process only."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from layoutproof.compiler.tracing import Tracing
from layoutproof.core.errors import LayoutError
from layoutproof.core.term import Term, reads, substitute
from layoutproof.kernel.kernel import Block, Kernel, Operand, Scratch
from layoutproof.kernel.kernel_print import array_text
from layoutproof.layouts.kernel import read
from layoutproof.pallas.from_jax import user
from layoutproof.searching import problems
from layoutproof.solvers.arrays import ArrayNumbers


def call(
    *arrays: object, mapping: Mapping[str, object], body: str, named: Mapping[str, int], rule: Tracing | None = None
) -> object:
    """The results of the kernel that `mapping` describes, for tables and inputs in its order.

    body: `module:function` or `file.py:function`, called with the refs of tables, inputs, outputs and scratch, and with
    those of `named` (sizes and tile variables) that it takes by name; "" = one that writes zeros.
    rule: of the file that names it, as `tracing.permit` gave it.
    """
    import jax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    kernel = read(mapping).kernel
    if kernel.pipeline != "pallas_call" or any(first < 0 for first, _ in kernel.aliases):
        raise LayoutError(problems.PLAIN_CALLS_ONLY())
    tables = len(kernel.tables)
    grid_spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=tables,
        grid=kernel.grid,
        in_specs=[_spec(kernel, operand) for operand in kernel.inputs],
        out_specs=[_spec(kernel, operand) for operand in kernel.outputs],
        scratch_shapes=[_scratch(scratch) for scratch in kernel.scratch],
    )
    shapes = [user.argument(array_text(operand.dtype, operand.dims)) for operand in kernel.outputs]
    made = pl.pallas_call(
        _body(body, named, rule, [len(kernel.inputs) + tables, len(kernel.outputs)]),
        grid_spec=grid_spec,
        out_shape=[jax.ShapeDtypeStruct(shape.shape, shape.dtype) for shape in shapes],
        input_output_aliases={first + tables: second for first, second in kernel.aliases},
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=kernel.semantics or None, vmem_limit_bytes=kernel.vmem_limit
        ),
        name=kernel.name if kernel.name.isidentifier() else "kernel",
    )
    return made(*arrays)


def _body(place: str, named: Mapping[str, int], rule: Tracing | None, counts: Sequence[int]) -> Callable[..., None]:
    inputs, outputs = counts
    if not place:

        def zeros(*refs: Any) -> None:
            import jax.numpy as jnp

            for ref in refs[inputs : inputs + outputs]:
                ref[...] = jnp.zeros_like(ref)

        return zeros
    where, _, name = place.rpartition(":")
    with user._paths(where):
        function = user._function(user._module(where), where, name, rule)
    own = inspect.signature(function).parameters.values()
    given = {p.name: named[p.name] for p in own if p.kind is p.KEYWORD_ONLY and p.name in named}
    return lambda *refs: function(*refs, **given)


def _spec(kernel: Kernel, operand: Operand) -> object:
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    spaces = {"vmem": None, "smem": pltpu.SMEM, "any": pl.ANY, "hbm": pltpu.HBM}
    if operand.memory not in spaces:
        raise LayoutError(problems.MEMORY_NOT_COMPILED(operand.name, operand.memory))
    if not operand.windowed:
        return pl.BlockSpec(memory_space=spaces[operand.memory])
    options = {} if operand.buffers is None else {"pipeline_mode": pl.Buffered(operand.buffers)}
    block = tuple(_size(operand, one) for one in operand.block)
    return pl.BlockSpec(block, _index_map(kernel, operand), memory_space=spaces[operand.memory], **options)


def _size(operand: Operand, block: Block) -> int | None:
    if block.kind == "blocked" and type(block.size) is int:
        return block.size
    if block.kind == "squeezed":
        return None
    raise LayoutError(problems.BLOCKS_NOT_COMPILED(operand.name, block.kind))


def _index_map(kernel: Kernel, operand: Operand) -> Callable[..., tuple[object, ...]]:
    import jax.numpy as jnp

    def index(*arguments: Any) -> tuple[Any, ...]:
        on = ArrayNumbers(jnp)
        values = dict(zip(kernel.grid_names, arguments, strict=False))
        tables = dict(zip([table.name for table in kernel.tables], arguments[len(kernel.grid) :], strict=True))
        known: dict[Term, Term] = {}
        for k, term in enumerate(reads(operand.index)):
            at = tuple(substitute(arg, known).evaluate(values, on) for arg in term.args[1:])
            values[f"_read{k}"] = tables[str(term.args[0])][at]
            known[term] = Term("name", f"_read{k}")
        return tuple(substitute(term, known).evaluate(values, on) for term in operand.index)

    return index


def _scratch(scratch: Scratch) -> object:
    from jax.experimental.pallas import tpu as pltpu

    spaces = {"vmem": pltpu.VMEM, "smem": pltpu.SMEM}
    if scratch.memory not in spaces:
        raise LayoutError(problems.SCRATCH_NOT_COMPILED(scratch.memory))
    shape = user.argument(array_text(scratch.dtype, scratch.dims))
    return spaces[scratch.memory](shape.shape, shape.dtype)
