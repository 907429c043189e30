"""The body that `emit_pipeline` runs, as that of a kernel of its own: a grid of windows.

JAX writes a pipeline out while it traces: copies into slots, waits, a loop that counts. Questions about its body are
about its windows, as for a pallas_call: at every step, the part of a window past the end of its array is undefined,
and an output's window has its old contents. So the body is traced once more, on references of the windows' shapes;
its captured values (scratch, arrays, numbers of the enclosing body) are given.
Read from jax/_src/pallas/mosaic/pipeline.py, jax 0.10.2 and 0.12.0.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.integers import literal
from layoutproof.bodies.reading import Around
from layoutproof.core.errors import shorten
from layoutproof.core.folding import folded
from layoutproof.core.message import message_of
from layoutproof.core.term import Term, reads, size_term
from layoutproof.kernel.kernel import Kernel, Table
from layoutproof.pallas.from_jax import problems
from layoutproof.pallas.from_jax.adapter import enclosing_extent, is_literal, opened, runs_whatever
from layoutproof.pallas.from_jax.bodies import TracedBody
from layoutproof.pallas.from_jax.body_numbers import Captured, body_number, taken
from layoutproof.pallas.from_jax.jaxpr_terms import table_of
from layoutproof.pallas.from_jax.of_jax import JaxAval, JaxJaxpr, Params
from layoutproof.pallas.from_jax.programs import memory_of

if TYPE_CHECKING:
    from jax.experimental.pallas import BlockSpec
    from jax.extend.core import Jaxpr
    from jax.ref import Ref


def with_pipeline_body(
    kernel: Kernel, options: Params, specs: Sequence[tuple[str, BlockSpec, Ref]], captured: Captured
) -> Kernel:
    """The pipeline with its body. A part that cannot be traced or read is recorded in the body; questions become
    unknown.

    options: the arguments of emit_pipeline and of its call.  specs: (role, BlockSpec, reference) of each operand.
    captured: the values that index maps capture, by identity; those of the body are added.
    """
    try:
        jaxpr, constants = _traced(kernel, options, specs)
    except Exception as error:
        raised = problems.TRACED_ALONE(type(error).__name__, shorten(" ".join(str(error).split()), 200))
        what = message_of(error) if isinstance(error, UnsupportedOp) else raised
        return replace(kernel, body_reader=TracedBody(None, kernel, refused=problems.PIPELINE_BODY(what)))
    extents = {id(n): extent for n, extent in zip(options["grid"], kernel.grid, strict=True) if type(n) is not int}
    around, tables = _around(jaxpr, constants, captured, extents)
    known = {one.name for one in kernel.tables}
    kernel = replace(kernel, tables=(*kernel.tables, *(one for one in tables if one.name not in known)))
    return replace(kernel, body_reader=TracedBody(jaxpr, kernel, around))


def _traced(kernel: Kernel, options: Params, specs: Sequence[tuple[str, BlockSpec, Ref]]) -> tuple[Jaxpr, list[object]]:
    """The jaxpr of the body, and what its constants are: ids of the grid as terms, and captured values.

    Its inputs are the windows.
    """
    import jax
    from jax._src.pallas import core
    from jax.experimental import pallas as pl
    from jax.tree_util import tree_flatten, tree_unflatten

    if options.get("_explicit_indices"):
        raise UnsupportedOp(problems.INDICES_AS_ARGUMENTS())
    for buffer in jax.tree.leaves(options.get("allocations"), is_leaf=lambda a: hasattr(a, "buffer_type")):
        kind = str(getattr(buffer, "buffer_type", "")).rpartition(".")[2].lower()
        if kind not in ("input", "output", ""):
            raise UnsupportedOp(problems.BUFFER_KIND(kind))
    sizes = list(options["grid"])
    windows = [_window(spec, reference) for _, spec, reference in specs]

    def run(*index: object) -> None:
        def body(*given: object) -> None:
            left = list(given)
            sides = []
            for role in ("in", "out"):
                side = options.get(f"{role}_specs") or ()
                side = tuple(side) if isinstance(side, list | tuple) else (side,)
                leaves, structure = tree_flatten(side, is_leaf=lambda s: hasattr(s, "index_map"))
                sides += tree_unflatten(structure, left[: len(leaves)])
                del left[: len(leaves)]
            if options.get("body_prologue") is not None:
                options["body_prologue"]()
            options["body"](*sides, *(options.get("scratches") or ()))

        with core.grid_env([core.GridAxis(i, n) for i, n in zip(index, sizes, strict=True)]):
            pl.run_scoped(body, *windows)

    traced = jax.make_jaxpr(run)(*[jax.ShapeDtypeStruct((), "int32")] * len(sizes))
    outer, consts = opened(traced)
    if [e.primitive.name for e in outer.eqns] != ["run_scoped"]:
        raise UnsupportedOp(problems.COMPUTED_AROUND())
    (scoped,) = outer.eqns
    known: dict[Any, Any] = dict(zip(outer.constvars, consts, strict=True))
    known |= {variable: Term("name", name) for variable, name in zip(outer.invars, kernel.grid_names, strict=True)}
    return scoped.params["jaxpr"], [atom.val if is_literal(atom) else known[atom] for atom in scoped.invars]


def _window(spec: BlockSpec, reference: Ref) -> Ref:
    """The window of an operand in the body: memory of the block's shape, without squeezed dimensions."""
    from jax.experimental.pallas import tpu as pltpu

    given = spec.block_shape if spec.block_shape is not None else reference.shape
    sizes = [getattr(n, "block_size", n) for n in given if n is not None and type(n).__name__ != "Squeezed"]
    space = spec.memory_space if spec.memory_space is not None else pltpu.VMEM
    return space(tuple(map(int, sizes)), reference.dtype)


def _around(
    jaxpr: JaxJaxpr, constants: Sequence[object], captured: Captured, extents: Mapping[int, object]
) -> tuple[list[Around], list[Table]]:
    """The constants of the body, and the tables among them.

    extents: of the grid where they are no plain numbers, by the identity of the pipeline's operand.
    """
    import jax

    tables: dict[str, Table] = {}

    def table(value: object) -> str:
        name, _ = captured.setdefault(*taken(value, len(captured)))
        tables[name] = captured_table(name, value)
        return name

    def of(aval: JaxAval, value: object) -> Around:
        whole = getattr(aval.dtype, "kind", "") in "iub"
        if hasattr(aval, "inner_aval"):
            words = whole and memory_of(aval) == "smem"
            return Around("table", table(value)) if words else Around("memory")
        if isinstance(value, Term):
            return Around("number", term=value)
        if id(value) in extents:
            return Around("number", term=size_term(extents[id(value)]))
        if getattr(aval, "shape", ()) or not whole:
            return Around("value")
        if not isinstance(value, jax.core.Tracer):
            return Around("number", term=folded(literal(value)))
        # of numbers that only the running kernel has, each is a table of one entry
        term = body_number(value, captured)
        names = {read.args[0].args[0] for read in reads([term])}
        tables.update({name: captured_table(name, one) for name, one in captured.values() if name in names})
        return Around("number", term=term)

    return [of(v.aval, value) for v, value in zip(jaxpr.constvars, constants, strict=True)], [*tables.values()]


def captured_table(name: str, value: object) -> Table:
    """The table that stands for a captured value; an id of the enclosing grid is below its extent.

    Where the pipeline runs in every program around it, some program has each of these ids.
    """
    extent = enclosing_extent(value)
    table = table_of(name, value)
    return table if extent is None else replace(table, low=0, high=extent, place=runs_whatever(value))
