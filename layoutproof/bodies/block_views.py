"""Blocks that nothing moves: of a kernel for Triton each argument of the body is a view of an array in global memory.

An element of a block is the array's at the block's start plus its index, and no more than that: what lies past the
array's end is not filled up, and what is stored there is not dropped.
Source: `_compute_offsets_from_indices` of jax/_src/pallas/triton/lowering.py, jax 0.10.2.
"""

from __future__ import annotations

from layoutproof.bodies import problems
from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.effects import BodyReference, Slice, View, ViewStep
from layoutproof.bodies.order import seen, start_of
from layoutproof.core.term import Term
from layoutproof.ir.program import Program
from layoutproof.kernel.kernel import Kernel, Operand


def block_views(program: Program, kernel: Kernel) -> list[View]:
    """The arguments of a body, in order. Arrays that share a buffer are one reference, the output's.

    program: of the body.  kernel: as `kernel.in_place` gives it. Raises UnsupportedOp for what Triton does not have:
    scalar prefetch, scratch, sizes that are names.
    """
    if len(program.given) != len(kernel.operands):
        raise UnsupportedOp(problems.TRITON_ARGUMENTS())
    shared = {kernel.inputs[a].name: kernel.outputs[b].name for a, b in kernel.aliases if a >= 0}
    references: dict[str, BodyReference] = {}
    for position, operand in enumerate(kernel.operands):
        if not all(type(extent) is int for extent in operand.dims):
            raise UnsupportedOp(problems.TRITON_SIZES(operand.name))
        dims = tuple(int(extent) for extent in operand.dims)
        references[operand.name] = BodyReference(operand.name, operand.role, dims, operand.dtype, "gmem", position)
    return [_seen(references[shared.get(o.name, o.name)], o.window or o) for o in kernel.operands]


def _seen(reference: BodyReference, operand: Operand) -> View:
    """What a program sees of an array: all of it, or its block."""
    blocks = list(enumerate(operand.block))
    whole = all(
        b.kind == "blocked" and b.size == n and start_of(operand, k) == Term("int", 0)
        for (k, b), n in zip(blocks, reference.dims, strict=True)
    )
    if whole:
        return View(reference)
    if operand.unmodelled or any(
        b.kind == "bounded" or b.low or b.high or type(b.size) is not int for b in operand.block
    ):
        raise UnsupportedOp(operand.unmodelled or problems.TRITON_BLOCK(operand.name))
    slices = tuple(Slice(start_of(operand, k), Term("int", b.size), single=b.kind == "squeezed") for k, b in blocks)
    after = tuple(int(operand.block[k].size) for k in seen(operand))
    return View(reference, (ViewStep("slices", reference.dims, after, slices),))
