"""Rules of a valid layout beyond the grammar. Each returns the sentence of the mistake, or "".

Source: openxla/xla at 183fa00cb5, `layout_util.cc` ValidateLayoutForShape, `shape_util.cc` ValidateShapeSize. Mode
`strict` applies the rules always; XLA's parser applies them only inside tuples (ShapeUtil::MakeValidatedTupleShape),
and so does mode `xla` (measured with jaxlib 0.10.2).
"""

from __future__ import annotations

from layoutproof.core.errors import shorten
from layoutproof.layouts.xla.lexer import INT64_MAX
from layoutproof.layouts.xla.shape import ELEMENT_BITS, XlaLayout, dims_text, wrong_order


def wrong_split(shape: XlaLayout, seen: list[int], dimension: int) -> str:
    """The mistake in splitting this physical dimension after those `seen`; "" for none."""
    rank = len(shape.dims)
    if not 0 <= dimension < rank:
        array = shorten(dims_text(shape), 60)
        has = f"the physical dimensions of {array} are 0 (most major) to {rank - 1}" if rank else f"{array} has none"
        return f"SC({dimension}:..) splits physical dimension {dimension} but {has}"
    if dimension in seen:
        return f"SC splits physical dimension {dimension} twice: give all its indices at once, ({dimension}:index,..)"
    return ""


def wrong_split_index(shape: XlaLayout, dimension: int, before: int, index: int) -> str:
    """The mistake in a split index that follows `before` (0 for the first); "" for none."""
    logical = shape.minor_to_major[-1 - dimension]
    extent = shape.dims[logical]
    if shape.dynamic[logical] == "?":
        return f"split index {index} of physical dimension {dimension}, which is ?: only a bounded dimension is split"
    if index <= 0 or (type(extent) is int and index >= extent):
        return f"split index {index} of physical dimension {dimension} is not inside it: 0 < index < {extent}"
    if index <= before:
        return f"split index {index} follows {before}: split indices must increase"
    return ""


def wrong_in_tuple(shape: XlaLayout) -> str:
    """What ShapeUtil::MakeValidatedTupleShape (shape_util.cc) has against this element; "" for nothing."""
    total = 1
    for extent, how in zip(shape.dims, shape.dynamic, strict=True):
        if how != "?" and type(extent) is int:
            total *= extent
            # as XLA multiplies, so a later extent 0 does not help
            if total > INT64_MAX:
                return f"{shorten(dims_text(shape), 60)} has over {INT64_MAX} elements"
    width = (ELEMENT_BITS[shape.element_type] + 7) // 8
    if total * width > INT64_MAX:
        return f"{shorten(dims_text(shape), 60)} has over {INT64_MAX} bytes"
    if shape.index_type or shape.pointer_type:
        return "#(..) and *(..) are left over from sparse arrays, which XLA no longer has"
    if any(not tile or 0 in tile for tile in shape.tiles):
        return "a tile has no sizes or a size 0"
    if shape.element_bits < 0:
        return f"E({shape.element_bits}): an element size in bits is not negative"
    problem = wrong_order(shape, valid=True)
    seen: list[int] = []
    for dimension, indices in shape.splits:
        problem = problem or wrong_split(shape, seen, dimension)
        seen.append(dimension)
        before = 0
        for index in indices:
            problem = problem or wrong_split_index(shape, dimension, before, index)
            before = index
    return problem
