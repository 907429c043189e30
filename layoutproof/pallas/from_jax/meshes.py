"""A kernel over a mesh of cores (`pl.kernel`, `pl.core_map`) as a Kernel without blocks: all is in its body.

Every core of the mesh is a program; all run at the same time. So is every subcore of the SparseCores of a
`VectorSubcoreMesh`, and every scalar subcore of a `ScalarSubcoreMesh`. An array stays where it lies, and the body moves
parts of it by hand. `pl.kernel` is the primitive `mpmd_map`: inputs, outputs, scratch (jax 0.10.2 and 0.12.0.1).
`core_map` has references that code around it reads and writes, too: they are inputs here, filled when the kernel
begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.core.element_types import element_type
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Block, Kernel, Operand, Unmodelled
from layoutproof.pallas.from_jax import problems
from layoutproof.pallas.from_jax.adapter import memory_word, opened, over_meshes, place_of_function, skipped_frame
from layoutproof.pallas.from_jax.bodies import with_body
from layoutproof.pallas.from_jax.calls import barrier_of, body_name, placed, scoped_in, scratch_of, touched_in
from layoutproof.pallas.from_jax.gpu_calls import gpu_kernel
from layoutproof.pallas.from_jax.of_jax import JaxAval, JaxEquation

MESHES = {"TensorCoreMesh": "", "VectorSubcoreMesh": "vector", "ScalarSubcoreMesh": "scalar"}
"""The meshes of a TPU's cores by the names of their classes, and which processors of SparseCores they are of."""


def mesh_kernel_of(
    equation: JaxEquation, source: str, live: Sequence[bool], axes: Mapping[str, int] = MappingProxyType({})
) -> Kernel | Unmodelled:
    """The kernel of a `mpmd_map` or `core_map`. live: for each output, whether its value is used.

    axes: of the meshes of devices around it.
    """
    import jax

    params, primitive = equation.params, equation.primitive.name
    meshes, jaxprs = over_meshes(params)
    inner, _ = opened(jaxprs[0])
    name = str(params.get("name") or body_name(jaxprs[0]))
    if not source or skipped_frame(source.rpartition(":")[0]):
        # the argument is the kernel itself, without a call around it
        source = place_of_function(getattr(inner, "debug_info", None)) or source

    def unmodelled(why: str) -> Unmodelled:
        return Unmodelled(name, source, problems.MESH(why))

    if len(meshes) != 1 or len(jaxprs) != 1:
        return unmodelled(problems.MESHES_AT_ONCE(len(jaxprs), len(meshes)))
    (mesh,) = meshes
    if "mosaic_gpu" in type(mesh).__module__:
        try:
            return gpu_kernel(params, name, source, axes)
        except UnsupportedOp as problem:
            return unmodelled(problems.MESH_PROBLEM(problem))
    kind = type(mesh).__name__
    if kind not in MESHES:
        return unmodelled(problems.MESH_KIND(kind, ", ".join(MESHES)))
    # the references around a `core_map` are its constants, before its scratch
    variables = [*(inner.constvars if primitive == "core_map" else ()), *inner.invars]
    outputs = len(params.get("out_avals") or ())
    inputs = len(equation.invars)
    if len(variables) < inputs + outputs:
        return unmodelled(problems.PRIMITIVE_FORM(primitive, jax.__version__))
    shape = dict(mesh.shape)
    cores = ("core_parallel",) * len(shape)
    operands = [
        _operand(variable.aval, "in" if k < inputs else "out", k if k < inputs else k - inputs)
        for k, variable in enumerate(variables[: inputs + outputs])
    ]
    used = [
        replace(o, live=o.role == "in" or (k - inputs < len(live) and live[k - inputs])) for k, o in enumerate(operands)
    ]
    aliases = params.get("input_output_aliases") or {}
    kernel = Kernel(
        name=name,
        grid=tuple(int(n) for n in shape.values()),
        grid_names=tuple(map(str, shape)),
        operands=tuple(used),
        semantics=("core_parallel", *("subcore_parallel",) * (len(shape) - 1)) if MESHES[kind] else cores,
        subcores=MESHES[kind],
        tiled=getattr(params.get("compiler_params"), "use_tc_tiling_on_sc", None) is not False,
        aliases=tuple((int(a), int(b)) for a, b in dict(aliases).items()),
        scratch=tuple(scratch_of(v.aval) for v in variables[inputs + outputs :]),
        scoped=scoped_in(inner),
        touched=touched_in(inner),
        vmem_limit=getattr(params.get("compiler_params"), "vmem_limit_bytes", None),
        source=source,
        **barrier_of(params.get("compiler_params")),
    )
    return with_body(jaxprs[0], placed(kernel, axes))


def _operand(aval: JaxAval, role: str, position: int) -> Operand:
    """A whole array, which stays where it lies: in HBM, or where `with_memory_space_constraint` has put it."""
    dims = tuple(int(n) for n in aval.shape)
    return Operand(
        name=f"{'args' if role == 'in' else 'outputs'}[{position}]",
        role=role,
        dims=dims,
        dtype=element_type(aval.dtype),
        block=tuple(Block("blocked", n) for n in dims),
        index=(Term("int", 0),) * len(dims),
        memory=memory_word(getattr(aval, "memory_space", None)),
    )
