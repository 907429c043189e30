"""A kernel over a mesh of cores: one program for each, all at the same time (`pl.kernel`, `pl.core_map`).

So is one over the grid of a GPU (`plgpu.kernel`), whose programs have threads, and clusters: `warpgroups`.
A core has its own scratch; the shared memory of one SparseCore is one for its subcores; arrays in HBM are one for
all. Programs run one after the other, each until it waits for others (`lockstep`): that no two touch memory at the same
time is a premise of the answer (`body_races`). Read from jax/_src/pallas/mosaic (jax 0.10.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from layoutproof.ir.program import Equation, Program
from layoutproof.values.kinds import Shaped
from layoutproof.values.lockstep import Lockstep
from layoutproof.values.memory import ElementView, HeldMemory, Semaphore
from layoutproof.values.references import fresh, missing_of, unwritten
from layoutproof.values.state import Rule, Walking
from layoutproof.values.warpgroups import run_clusters, threads_of

CORES = ("TensorCoreMesh", "VectorSubcoreMesh", "ScalarSubcoreMesh")
"""The meshes of a TPU's cores."""
SHARED = "vmem_shared"
"""The memory that the subcores of one core share."""


def _mesh_call(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """`mpmd_map` takes and gives arrays; `core_map` works on references that are around it."""
    params = equation.params
    meshes, bodies = params["meshes"], params["jaxprs"]
    if len(meshes) != 1 or len(bodies) != 1:
        raise on.refuse(f"{len(bodies)} programs over {len(meshes)} meshes that run at once")
    ((kind, axes),), (body,) = meshes, bodies
    of_gpu = "together" in params
    if of_gpu and kind == "WarpMesh":
        return _warps(on, equation, operands)
    if kind not in (("Mesh",) if of_gpu else CORES):
        raise on.refuse(f"a kernel over a {kind}")
    if on.watch is not None:
        raise on.refuse("a kernel over a mesh of cores, program by program")
    if on.lockstep is not None:
        raise on.refuse("a kernel over a mesh of cores in one that reaches other devices")
    if any(isinstance(v, ElementView) for v in operands):
        raise on.refuse("a kernel over a mesh of cores that is given a part of memory")
    around = [
        v if isinstance(v, HeldMemory | Semaphore) else HeldMemory(v, atom.aval.dtype, f"args[{k}]")
        for k, (v, atom) in enumerate(zip(operands, equation.invars, strict=True))
    ]
    aliases = {b: a for a, b in params.get("input_output_aliases") or ()}
    results = [
        around[aliases[k]] if k in aliases else HeldMemory(
            unwritten(on, v.aval.shape, v.aval.dtype), v.aval.dtype, f"outputs[{k}]",
            missing_of(on, v.aval.shape, v.aval.dtype),
        )
        for k, v in enumerate(equation.outvars)
    ]  # fmt: skip
    if of_gpu:
        _check(on, params)
        run_clusters(on, body, axes, params["together"][0], [*around, *results])
    else:
        _run(on, body, axes, [*around, *results])
    left = [m.missing for m in results if m.missing is not None]
    on.defined = on.defined and not any(m.any() for m in left)
    return [m.value for m in results]


def _check(on: Walking, params: Mapping[str, object]) -> None:
    """Raises where a kernel of a GPU is of a kind that is not modelled."""
    if params.get("input_output_aliases") or params.get("external_meshes"):
        raise on.refuse("a kernel of a GPU whose outputs lie where inputs do, or that runs beside others")


def _warps(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """A body that the warps of a warpgroup run, each by itself."""
    (body,), ((_, ((axis, many),)),) = equation.params["jaxprs"], equation.params["meshes"]
    if equation.outvars:
        raise on.refuse("warps that give a result")
    threads_of(on).warps(on, axis, many, lambda: on.run(body, operands))
    return []


def _run(on: Walking, body: Program, axes: tuple[tuple[str, int], ...], given: list[HeldMemory | Semaphore]) -> None:
    """Runs the program of each core. given: the memory that all of them see."""
    extents = tuple(n for _, n in axes)
    scratch = [v.aval for v in body.given[len(given) :]]
    shared: dict[int, list[Any]] = {}
    within = prod(extents[1:])
    rows = []
    for number in range(prod(extents)):
        own = [fresh(on, aval, f"scratch[{k}]") for k, aval in enumerate(scratch)]
        first = shared.setdefault(number // within, own)
        rows.append([*given, *(f if a.memory == SHARED else o for f, o, a in zip(first, own, scratch, strict=True))])

    def program(row: list[Shaped]) -> list[Shaped]:
        on.programs, on.flying = None, []
        assert on.device is not None
        on.prepared.tick(extents, tuple(map(int, np.unravel_index(on.device, extents))))
        lockstep.begins(on, row)
        on.run(body, row)
        on.ordered = on.ordered and not on.flying
        return []

    mesh, device = on.mesh, on.device
    lockstep = Lockstep(axes, len(rows))
    on.mesh, on.lockstep = axes, lockstep
    try:
        lockstep.run(on, program, rows)
    finally:
        on.mesh, on.device, on.lockstep = mesh, device, None


PRIMITIVES: dict[str, Rule] = {"mpmd_map": _mesh_call, "core_map": _mesh_call}
