"""A kernel over a grid of a GPU (`plgpu.kernel`, the primitive mpmd_map) as a Kernel: whole arrays, and its body.

It has no block mappings: each program loads and stores what its body says, and all programs may run at once. Read from
jax 0.10.2 and 0.12.0.1, where a kernel has the same parameters.
"""

from __future__ import annotations

from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.core.element_types import element_type
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Block, Kernel, Operand
from layoutproof.pallas.from_jax.adapter import memory_word, opened
from layoutproof.pallas.from_jax.bodies import with_body
from layoutproof.pallas.from_jax.of_jax import Params


def gpu_kernel(params: Params, name: str, place: str) -> Kernel:
    """A Kernel from the parameters of mpmd_map. UnsupportedOp where more runs than one body on one grid of a GPU."""
    meshes, jaxprs = tuple(params.get("meshes") or ()), tuple(params.get("jaxprs") or ())
    if len(meshes) != 1 or len(jaxprs) != 1 or params.get("external_meshes"):
        raise UnsupportedOp("several meshes or bodies")
    mesh = meshes[0]
    if "mosaic_gpu" not in type(mesh).__module__:
        raise UnsupportedOp("a mesh that is no grid of a GPU")
    if getattr(mesh, "cluster", ()) or getattr(mesh, "num_threads", None) not in (None, 1):
        raise UnsupportedOp("programs that share memory: clusters, or threads of one program")
    if params.get("input_output_aliases"):
        raise UnsupportedOp("arrays that share a buffer")
    inner, _ = opened(jaxprs[0])
    inputs = len(inner.invars) - len(params["out_avals"])
    grid = tuple(int(n) for n in mesh.grid)
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
    kernel = Kernel(name, grid, tuple(map(str, mesh.grid_names)), tuple(operands), platform="mosaic_gpu", source=place)
    return with_body(jaxprs[0], kernel)
