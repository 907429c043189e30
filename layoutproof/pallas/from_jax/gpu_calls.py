"""A kernel over a grid of a GPU (`plgpu.kernel`, the primitive mpmd_map) as a Kernel: whole arrays, and its body.

It has no block mappings: each program loads, stores and copies what its body says, and all programs may run at once.
The programs of a cluster, and the threads of a program (warpgroups), are axes of the grid, too.

Read from jax 0.10.2 and 0.12.0.1, where a kernel has the same parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.other_devices import ELSEWHERE
from layoutproof.core.element_types import ELEMENT_BITS, element_type
from layoutproof.core.term import Term
from layoutproof.hardware.mosaic_gpu import TENSOR_ROWS, shared_bytes, tensor_columns
from layoutproof.kernel.kernel import Block, Kernel, Operand, Scratch
from layoutproof.pallas.from_jax import problems
from layoutproof.pallas.from_jax.adapter import MESH_KERNELS, inner_jaxprs, memory_word, opened, place_of_function
from layoutproof.pallas.from_jax.bodies import with_body
from layoutproof.pallas.from_jax.calls import placed, scratch_of
from layoutproof.pallas.from_jax.of_jax import JaxAval, JaxJaxpr, Params

REDUCES, REDUCTION_BYTES = ("reduce_sum", "reduce_max", "reduce_min"), 2048
"""Primitives for which JAX adds shared memory, and so many bytes where `CompilerParams` does not say another number."""


def gpu_kernel(params: Params, name: str, place: str, axes: Mapping[str, int] = MappingProxyType({})) -> Kernel:
    """A Kernel from the parameters of mpmd_map. UnsupportedOp where more runs than one body on one grid of a GPU.

    axes: of the meshes of devices around it.
    """
    meshes, jaxprs = tuple(params.get("meshes") or ()), tuple(params.get("jaxprs") or ())
    if len(meshes) != 1 or len(jaxprs) != 1 or params.get("external_meshes"):
        raise UnsupportedOp(problems.GPU_MESHES())
    mesh = meshes[0]
    if "mosaic_gpu" not in type(mesh).__module__:
        raise UnsupportedOp(problems.GPU_GRID())
    if params.get("input_output_aliases"):
        raise UnsupportedOp(problems.GPU_ALIASES())
    inner, _ = opened(jaxprs[0])
    options = params.get("compiler_params")
    inputs = len(inner.invars) - len(params["out_avals"])
    shape = {str(name): int(extent) for name, extent in dict(mesh.shape).items()}
    threads = str(getattr(mesh, "thread_name", None) or "")
    inside = (*map(str, getattr(mesh, "cluster_names", ())), threads)
    together = tuple(name for name in inside if shape.get(name, 1) > 1)
    operands = []
    for k, variable in enumerate(inner.invars):
        dims = tuple(int(n) for n in variable.aval.shape)
        role, label = ("in", f"args[{k}]") if k < inputs else ("out", f"outputs[{k - inputs}]")
        memory = memory_word(getattr(variable.aval, "memory_space", None))
        if memory not in ("gmem", "any"):
            raise UnsupportedOp(f"{label} in {memory}")
        index = (Term("int", 0),) * len(dims)
        block = tuple(Block("blocked", n) for n in dims)
        operands.append(Operand(label, role, dims, element_type(variable.aval.dtype), block, index, memory="gmem"))
    kernel = Kernel(
        name,
        tuple(shape.values()),
        tuple(shape),
        tuple(operands),
        platform="mosaic_gpu",
        source=_written_at(inner) or place,
        scoped=tuple(
            one
            for memory in ("shared", "tmem", "semaphore")
            for one in allocated_in(inner, memory, getattr(options, "reduction_scratch_bytes", REDUCTION_BYTES))
        ),
        together=together,
        threads=threads if threads in together else "",
        lanes=_lanes(options),
        tensor=_of_blackwell(inner),
        ordered=not getattr(options, "unsafe_no_auto_barriers", False),
        remote=_speaks(inner),
    )
    if not (kernel.ordered or kernel.by_events):
        raise UnsupportedOp(problems.GPU_NO_BARRIERS())
    return with_body(jaxprs[0], placed(kernel, axes))


def _lanes(compiler_params: object) -> bool:
    """Whether a kernel is lowered by lane semantics, which is the default."""
    semantics = getattr(compiler_params, "lowering_semantics", None)
    return semantics is None or getattr(semantics, "name", "") == "Lane"


def _written_at(inner: JaxJaxpr) -> str:
    """Where the body is written: `plgpu.kernel` runs it in a scope of its own, with its scratch."""
    scoped = next((e for e in inner.eqns if e.primitive.name == "run_scoped"), None)
    if scoped is None or len(inner.eqns) != 1:
        return ""
    return place_of_function(getattr(opened(scoped.params["jaxpr"])[0], "debug_info", None)) or ""


def _of_blackwell(jaxpr: JaxJaxpr) -> bool:
    """Whether a body has tensor memory, or warps that do different things."""
    for equation in jaxpr.eqns:
        inner = [opened(closed)[0] for _, closed in inner_jaxprs(equation.params)]
        given = [v.aval for one in inner for v in one.invars]
        if equation.primitive.name in MESH_KERNELS or any(scratch_of(aval).memory == "tmem" for aval in given):
            return True
        if any(map(_of_blackwell, inner)):
            return True
    return False


def _speaks(jaxpr: JaxJaxpr) -> bool:
    """Whether a body signals, or waits, in global memory, or touches the memory of other GPUs."""
    for equation in jaxpr.eqns:
        named = equation.primitive.name
        trees = (str(value) for value in equation.params.values() if type(value).__name__ == "PyTreeDef")
        if "semaphore" in named or "multimem" in named or any(kind in tree for tree in trees for kind in ELSEWHERE):
            return True
        if any(_speaks(opened(closed)[0]) for _, closed in inner_jaxprs(equation.params)):
            return True
    return False


def allocated_in(jaxpr: JaxJaxpr, memory: str, reducing: int) -> tuple[Scratch, ...]:
    """The most of a memory, "shared", "tmem" or "semaphore" (barriers), that a body allocates at one time.

    JAX sums up the most of each. Scopes in one another lie side by side, and those after one another in one place
    (`_run_scoped_lowering_rule`). reducing: bytes of shared memory that JAX adds where a body reduces.
    """
    best: tuple[Scratch, ...] = ()
    size = tensor_columns if memory == "tmem" else shared_bytes
    for equation in jaxpr.eqns:
        inner = [opened(closed)[0] for _, closed in inner_jaxprs(equation.params)]
        found = max((allocated_in(one, memory, reducing) for one in inner), key=size, default=())
        if equation.primitive.name == "run_scoped":
            given = [(scratch_of(v.aval), v.aval) for v in inner[0].invars]
            found = (*(_as_allocated(s, aval) for s, aval in given if _lies_in(s, memory)), *found)
        elif equation.primitive.name in REDUCES and memory == "shared":
            found = (Scratch((reducing,), "s8", "shared"),)
        best = max(best, found, key=size)
    return best


def _lies_in(one: Scratch, memory: str) -> bool:
    """Whether it lies there; semaphores other than barriers lie in GMEM."""
    return one.memory == memory and (memory != "semaphore" or "barrier" in one.dtype)


def _as_allocated(one: Scratch, aval: JaxAval) -> Scratch:
    """Tensor memory as so many columns of 128 lanes of 4 bytes, as its layout takes them; other memory as it is."""
    # other memory has no layout, and raises where it is asked for it
    layout = getattr(aval, "layout", None) if one.memory == "tmem" else None
    if layout is None:
        return one
    columns = layout.cols_in_shape(tuple(map(int, one.dims)), ELEMENT_BITS[one.dtype])
    return Scratch((TENSOR_ROWS, int(columns)), "u32", "tmem")
