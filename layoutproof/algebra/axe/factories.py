"""Layouts that hardware asks for: Trainium's scratchpads, Blackwell's tensor memory.

Source: apache/tvm `python/tvm/tirx/layout.py` at 5d4dc87213 (TileLayout.trainium, to_psum, tmem_datapath_layout);
PTX ISA 9.7.16.10.5 for the datapaths.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from layoutproof.algebra import problems
from layoutproof.core.errors import LayoutError, Reason
from layoutproof.core.progressions import low_high
from layoutproof.layouts.axe.layout import AxeLayout, Iter, shown

PARTITIONS = 128
PER_BANK = 512
BANKS = 8
DATAPATH_ROWS = {"A": 128, "B": 64, "C": 64, "D": 128, "E": 64, "F": 64, "G": 32}


def trainium(annotation: str, shape: Sequence[int], psum: bool = False) -> AxeLayout | Reason:
    """Dimensions on the partition axis P or the free axis F, as the letters of `annotation` say; each row-major.

    At most 128 partitions; a single P dimension that is a multiple of 128 puts its slow part on F, slowest there.

    Args:
        annotation: One letter per dimension, P or F.
        shape: The logical shape, in elements.
        psum: The accumulator's banks, see `to_psum`.

    Returns:
        The layout, or the reason why there is none.

    Raises:
        LayoutError: For other annotations or sizes.

    >>> str(trainium("PF", (256, 512)))
    'S[(2,128,512):(512@F,1@P,1@F)] on (256,512)'
    """
    if set(annotation) - {"P", "F"} or len(annotation) != len(shape) or not shape or min(shape) < 1:
        raise LayoutError(problems.ANNOTATION(annotation, shown(shape)))
    partitions = prod(e for e, letter in zip(shape, annotation, strict=True) if letter == "P")
    folded = annotation.count("P") == 1 and partitions > PARTITIONS and partitions % PARTITIONS == 0
    if partitions > PARTITIONS and not folded:
        raise LayoutError(problems.PARTITIONS(partitions, PARTITIONS))
    steps = {"P": 1, "F": 1}
    shard: list[Iter] = []
    for extent, letter in reversed(list(zip(shape, annotation, strict=True))):
        here = PARTITIONS if folded and letter == "P" else extent
        shard.insert(0, (here, steps[letter], letter))
        steps[letter] *= here
    if folded:
        at = annotation.index("P")
        shard.insert(at, (partitions // PARTITIONS, steps["F"], "F"))
    layout = AxeLayout(tuple(shard), shape=tuple(shape))
    return to_psum(layout) if psum else layout


def to_psum(layout: AxeLayout) -> AxeLayout | Reason:
    """F in banks of 512 elements: F = 512*Bank' + F' with 0 <= F' < 512; a Reason where a digit straddles a bank.

    TVM drops replicas and offset, and does not look whether digits carry or 8 banks suffice; here they are checked.

    Args:
        layout: An Axe layout.

    Returns:
        The layout, or the reason why there is none.

    >>> str(to_psum(AxeLayout(((1024, 1, "F"), (8, 1, "P")))))
    'S[(2,512,8):(1@Bank,1@F,1@P)]'
    """
    if layout.R or layout.O or layout.symbols():
        return Reason("a layout with replicas, offsets or run-time sizes has no accumulator form")
    shard: list[Iter] = []
    for extent, stride, axis in layout.D:
        e, s = int(extent), int(stride)
        if axis != "F" or e == 1:
            shard.append((extent, stride, axis))
        elif s % PER_BANK == 0:
            shard.append((e, s // PER_BANK, "Bank"))
        elif s > 0 and s * (e - 1) < PER_BANK:
            shard.append((e, s, "F"))
        elif s > 0 and PER_BANK % s == 0 and e % (PER_BANK // s) == 0:
            shard += [(e // (PER_BANK // s), 1, "Bank"), (PER_BANK // s, s, "F")]
        else:
            return Reason(f"the digit ({e}, {s}@F) straddles banks of {PER_BANK} elements")
    for axis, most in (("F", PER_BANK), ("Bank", BANKS)):
        _, reach = low_high([(e, s) for e, s, a in shard if a == axis])  # type: ignore[misc]
        if reach >= most:
            return Reason(f"{axis} goes up to {reach}, outside 0..{most - 1}")
    return AxeLayout(tuple(shard), shape=layout.shape)


def tmem_datapath(datapath: str, rows: int, columns: int, sub_slab: int = 0) -> AxeLayout:
    """Where one datapath of `tcgen05.mma` puts row r, column c of its result: (TLane, TCol).

    A, D the identity; B, E column halves on lanes 0..63 and 64..127; C, F 16 rows per 32 lanes, lower or upper
    (`sub_slab`) half; G column quarters on four slabs of 32 lanes.

    Args:
        datapath: A, B, C, D, E, F or G.
        rows: Rows of the result.
        columns: Columns of the result.
        sub_slab: The lower (0) or upper (1) half, for C and F.

    Returns:
        The layout.

    Raises:
        LayoutError: For other sizes.

    >>> str(tmem_datapath("F", 64, 64))
    'S[(4,16,64):(32@TLane,1@TLane,1@TCol)] on (64,64)'
    """
    if DATAPATH_ROWS.get(datapath) != rows or columns < 1:
        raise LayoutError(problems.DATAPATH(datapath, rows, columns, DATAPATH_ROWS))
    if sub_slab not in (0, 1) or (sub_slab and datapath not in "CF"):
        raise LayoutError(problems.NO_SUB_SLAB(datapath, sub_slab))
    shape = (rows, columns)
    if datapath in "AD":
        return AxeLayout(((rows, 1, "TLane"), (columns, 1, "TCol")), shape=shape)
    if datapath in "CF":
        offset = {"TLane": 16} if sub_slab else {}
        return AxeLayout(((4, 32, "TLane"), (16, 1, "TLane"), (columns, 1, "TCol")), O=offset, shape=shape)
    parts = PARTITIONS // rows
    if columns % parts:
        raise LayoutError(problems.DATAPATH_FOLDS(datapath, parts, columns))
    return AxeLayout(((rows, 1, "TLane"), (parts, rows, "TLane"), (columns // parts, 1, "TCol")), shape=shape)
