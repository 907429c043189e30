"""What `emit_pipeline` refuses of a block: where it cuts the last block short, it does so by whole tiles.

It copies blocks by DMA, so JAX's rule for blocks of a call does not hold. Measured on libtpu 0.0.52, 270 random blocks
of f32, bf16 and s8 each on v5e and v6e: rows are whole 32-bit words, and then all columns, or a multiple of 128, pass.
Other columns v5e refuses; v6e takes some of them, and no rule tells which.

What is cut short is read from jax/_src/pallas/mosaic/pipeline.py (`_make_block_slice`) and tpu_info.py
(`infer_tiling`), jax 0.10.2, and held against JAX's own tracing. JAX says so while it traces the kernel, so this is for
kernels that are written down.
"""

from __future__ import annotations

from typing import Any

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import Unsupported
from layoutproof.core.size import as_size, divide
from layoutproof.hardware.facts import AS_THE_RULE, Fact
from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.hardware.tpu_tiles import LANES, SUBLANES, packing_of, tile_extent
from layoutproof.kernel.kernel import Operand

FACTS = (
    Fact("blocks of pipelines", AS_THE_RULE, "libtpu 0.0.52", "270 random blocks of emit_pipeline on v5e and on v6e"),
)
"""What `refuses_copies` rests on."""


def refuses_slices(operand: Operand, target: str) -> str:
    """Why a pipeline cannot copy the operand's blocks, or "". Raises Undecided where that depends on sizes.

    >>> from layoutproof.kernel.kernel import Block
    >>> block = (Block("blocked", 30), Block("blocked", 128))
    >>> refuses_slices(Operand("x", "in", (100, 128), "f32", block, ()), "v5e")
    'dimension 0: the last of 100 elements are no whole block of 30, and 30 is no multiple of the tile of 8 (JAX)'
    """
    bits = ELEMENT_BITS.get(operand.dtype, 32)
    # JAX counts by bytes, but for int4
    packing = 8 if operand.dtype == "s4" else 4 // max(1, bits // 8)
    if not operand.windowed or packing == 0:
        return ""
    least = CHIPS[target].packed_rows * packing
    rank = len(operand.dims)
    for d, (extent, block) in enumerate(zip(operand.dims, operand.block, strict=True)):
        cut = block.kind != "blocked" or not _whole(extent, block.size)
        if block.kind == "squeezed" or not cut or d < rank - 2:
            continue
        size: Any = block.size
        if type(size) is not int or (type(extent) is not int and d == rank - 2):
            raise Unsupported(f"whether blocks of {size} of {extent} are whole tiles depends on the sizes")
        tile = least * LANES if rank == 1 else LANES if d == rank - 1 else tile_extent(extent, least, SUBLANES)
        if size % tile:
            last = f"the last of {extent} elements are no whole block of {size}"
            why = last if block.kind == "blocked" else f"{block} may be cut short"
            return f"dimension {d}: {why}, and {size} is no multiple of the tile of {tile} (JAX)"
    return ""


def refuses_copies(operand: Operand, target: str, bits: int) -> str:
    """Why a pipeline's copies of a block that a call would not take are refused, or "".

    bits: of an element. Raises Undecided where it was not measured.

    >>> from layoutproof.kernel.kernel import Block
    >>> block = (Block("blocked", 4), Block("blocked", 512))
    >>> refuses_copies(Operand("x", "in", (2048, 512), "f32", block, ()), "v6e", 32)
    ''
    """
    sizes: list[Any] = [block.size for block in operand.block]
    dims: list[Any] = list(operand.dims)
    known = target in ("v5e", "v6e") and bits in (8, 16, 32) and all(type(n) is int for n in (*sizes, *dims))
    if not known or len(dims) < 2:
        raise Unsupported("which blocks emit_pipeline copies was measured for two dimensions and more on v5e and v6e")
    packing = packing_of(bits)
    if sizes[-2] != dims[-2] and sizes[-2] % packing:
        return (
            f"dimension {len(dims) - 2}: a block of {sizes[-2]} of {dims[-2]} rows is no whole number of 32-bit words, "
            f"{packing} rows each (Mosaic: slice sizes along tiled dimensions, libtpu 0.0.52)"
        )
    if sizes[-1] == dims[-1] or sizes[-1] % LANES == 0:
        return ""
    if target == "v5e":
        return (
            f"dimension {len(dims) - 1}: a block of {sizes[-1]} of {dims[-1]} columns is neither all of them nor a "
            f"multiple of {LANES} (Mosaic, libtpu 0.0.52)"
        )
    raise Unsupported(
        f"whether a pipeline copies {sizes[-1]} of {dims[-1]} columns on {target} only the compiler can say"
    )


def _whole(extent: Any, size: Any) -> bool:
    if type(extent) is int and type(size) is int:
        return size > 0 and extent % size == 0
    rest = divide(as_size(extent), size)[1]
    return type(rest) is int and rest == 0
