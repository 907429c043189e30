"""The target's compiler takes every load and store of the body: numbers from and to SMEM, arrays from and to VMEM.

Why it matters: interpret mode takes them all, and the compiler refuses them late: JAX's own first example, an iota,
stores a number into its window and does not compile for a TPU.
Refuted by: the first such load or store, with its line. On a TPU a number is stored to SMEM only, SMEM is loaded and
stored number by number, and an array in ANY or HBM is reached by copies only. A number may be loaded from VMEM, but by
a TensorCore only. Of an array that lies in tiles of TensorCores a SparseCore copies by a list rows of 32-bit elements,
a multiple of 128 of them; the target of an add by a list lies in VMEM or VMEM_SHARED.
Example: `o_ref[i] = i` with an output in VMEM: `Cannot store scalars to VMEM` (JAX lowering).
Source: jax/_src/pallas/mosaic/lowering.py of jax 0.10.2 and 0.12.0.1; asked of libtpu 0.0.52 for v5e, and of copies
by lists for v5p, v6e and 7x.
Fix: put the operand into SMEM (`pl.BlockSpec(memory_space=pltpu.SMEM)`), or store an array, `o_ref[...] = ..`. Copy
from ANY and HBM by `pltpu.sync_copy`.
Incident: "invalid input layout" and the like from the compiler, for kernels that trace and interpret:
https://github.com/jax-ml/jax/issues/24415
Limits: Kinds of access and memory; which shapes the compiler lays out in registers it alone knows (`compiled`).
"""

from __future__ import annotations

from layoutproof.bodies.claims import not_modelled
from layoutproof.bodies.effects import Access, Body, StartedCopy, View
from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.message import Template, restated
from layoutproof.hardware.tpu_tiles import LANES
from layoutproof.kernel.kernel import Kernel, KernelTarget
from layoutproof.kernel.obligation import Obligation, Settled, by_rule, undecided

LIST_OF_PARTS = Template("pallas.body_accesses_list_of_parts", "a list places parts of {reference}")
ADDS = Template("pallas.body_accesses_adds", "{what}, to which a copy adds: it may add in VMEM and VMEM_SHARED only")
TILE_BITS = Template(
    "pallas.body_accesses_tile_bits",
    "{what}, elements of {bits} bits: in tiles of TensorCores only those of 32 bits are taken",
)
TILE_ROWS = Template(
    "pallas.body_accesses_tile_rows",
    "{what}, rows of {elements} elements: in tiles of TensorCores a row is a multiple of {lanes}",
)
LOOK_AT_SMEM = Template("pallas.body_accesses_look_at_smem", "look at where {reference} lies: pltpu.SMEM takes numbers")
NUMBER_IN_VMEM = Template("pallas.body_accesses_number_in_vmem", "{what} {reference} in VMEM, which takes arrays only")
ARRAY_IN_SMEM = Template(
    "pallas.body_accesses_array_in_smem", "{what} {reference} in SMEM, which is read and written number by number"
)
COPIES_ONLY = Template(
    "pallas.body_accesses_copies_only", "{what} {reference} in memory {memory}, which is reached by copies only"
)
LOOK_AT_COPIES = Template(
    "pallas.body_accesses_look_at_copies",
    "look at how {reference} gets into VMEM: by pltpu.sync_copy, or by a BlockSpec",
)


TARGET = True
BODY = True
TILES = "look at CompilerParams: use_tc_tiling_on_sc=False takes rows of other sizes and types"
SETTLED_BY = "compile it for the target (layoutproof compile)"


def obligations(kernel: Kernel, target: KernelTarget) -> tuple[Obligation, ...]:
    """One per reference and line that is refused; one for all where none is."""
    body: Body | None = kernel.body
    if body is None or target.platform != "tpu":
        return ()
    refused: dict[tuple[str, str], Obligation] = {}
    for copy in (effect for effect in body.effects if isinstance(effect, StartedCopy)):
        for view in (copy.source, copy.target):
            why, hint = _refused_list(copy, view, kernel)
            if why:
                name = view.reference.name
                found = Obligation(
                    name, by_rule(restated(f"{why} (libtpu 0.0.52)", why), hint), reads=False, source=copy.spot.source
                )
                refused[name, copy.spot.source] = found
    for access in body.effects:
        if not isinstance(access, Access) or access.view.dims is None:
            continue
        why, hint = _refused(access, kernel)
        name = access.view.reference.name
        if why and (name, access.spot.source) not in refused:
            found = Obligation(
                name, by_rule(restated(f"{why} (JAX lowering)", why), hint), reads=False, source=access.spot.source
            )
            refused[name, access.spot.source] = found
    held = Obligation(kernel.name, by_rule(""), reads=False, source=kernel.source)
    return (*refused.values(), *not_modelled(kernel, body)) or (held,)


def _refused_list(copy: StartedCopy, view: View, kernel: Kernel) -> tuple[str, str]:
    """Why the compiler refuses to copy parts of an array in HBM that a list places, and where to look.

    Source: libtpu 0.0.52, asked of copies of 32 rows of 16 to 256 elements of 16 and 32 bits: "expected slice size (16)
    to be aligned with source (gather operand) tiling (128)", "only 32-bit elements are supported", "Scatter with add is
    only supported into spmem or tile_spmem".
    """
    listed = any(step.kind == "gather" for step in view.steps)
    if not (listed and kernel.subcores) or view.reference.memory not in ("any", "hbm"):
        return "", ""
    what = LIST_OF_PARTS(view.reference.name)
    if copy.adds and view is copy.target:
        return (
            ADDS(what),
            "look at where the sums are kept",
        )
    dims, bits = view.dims or (), ELEMENT_BITS.get(view.dtype, 32)
    if len(dims) < 2 or not kernel.tiled:
        return "", ""
    if bits != 32:
        return TILE_BITS(what, bits), TILES
    if dims[-1] % LANES:
        return TILE_ROWS(what, dims[-1], LANES), TILES
    return "", ""


def _refused(access: Access, kernel: Kernel) -> tuple[str, str]:
    """Why JAX refuses a load or store for a TPU, and where to look; "" where it takes it.

    A subcore of a SparseCore loads no number from VMEM, either (sc_lowering.py of jax 0.10.2).
    """
    reference, number = access.view.reference, access.view.dims == ()
    what = f"{'a number' if number else 'an array'} is {'loaded from' if access.kind == 'read' else 'stored into'}"
    match reference.memory:
        case "vmem" if number and (access.kind == "write" or kernel.subcores):
            smem = LOOK_AT_SMEM(reference.name)
            return NUMBER_IN_VMEM(what, reference.name), smem
        case "smem" if not number:
            return (
                ARRAY_IN_SMEM(what, reference.name),
                "look at the index: in SMEM every dimension has one",
            )
        case "any" | "hbm":
            return COPIES_ONLY(what, reference.name, reference.memory), (LOOK_AT_COPIES(reference.name))
    return "", ""


def unasked(kernel: Kernel) -> Settled:
    """Where there is no body to look at, or its target is no TPU."""
    return undecided("the body is not known" if kernel.body is None else "only TPUs are asked")
