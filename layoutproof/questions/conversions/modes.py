"""A map read as digits with strides, as CuTe and Axe write it, or as bases of bits, as linear layouts do."""

from __future__ import annotations

from typing import Any

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.index_map import IndexMap
from layoutproof.core.numbers import INTS
from layoutproof.core.size import Extent, product
from layoutproof.questions import problems
from layoutproof.solvers.digits.number import Digit, DigitNumbers, DigitSum

Modes = tuple[tuple[Extent, Extent], ...]
"""(extent, stride) of each digit of one index, fastest first."""


def strided_digits(m: IndexMap) -> tuple[list[Modes], Extent]:
    """For each dimension its digits with their strides in the flat offset, and the offset of element (0, .., 0).

    Requires: one place per element.  ensures: digits of one dimension multiply to its extent; neighbours that are one
    digit are merged. Raises LayoutError where the offset is no sum of digits times strides, or where a dimension does
    not consist of whole digits, as where it is padded.

    >>> from layoutproof.registry.read import read_layout
    >>> strided_digits(read_layout("bf16[16,256]{1,0:T(8,128)(2,1)}").index_map())
    ([((2, 1), (4, 256), (2, 2048)), ((128, 2), (2, 1024))], 0)
    """
    if m.replicas.extents:
        raise LayoutError(problems.OFFSET_OF_REPLICAS())
    roots = [Digit(d, extent, 1) for d, extent in enumerate(m.domain.extents)]
    index = tuple([DigitSum(((1, root),)) if root.extent != 1 else DigitSum(()) for root in roots])
    try:
        coordinates = m.flat().place(index, (), DigitNumbers())
    except Undecided as undecided:
        raise LayoutError(problems.OFFSET_DIGITS(undecided)) from None
    if len(coordinates) != 1:
        raise LayoutError(problems.OFFSET_COORDINATES(len(coordinates)))
    (offset,) = coordinates
    form, constant = (offset.over_leaves(), offset.constant) if type(offset) is DigitSum else ({}, offset)
    found = []
    for name, root in zip(m.domain.names, roots, strict=True):
        leaves = root.leaves()
        whole = product(leaf.extent for leaf in leaves)
        if whole != root.extent:
            shown = "*".join(str(leaf.extent) for leaf in leaves)
            raise LayoutError(problems.DIGITS_PAST_ELEMENTS(name, root.extent, shown, whole))
        found.append(_merged([(leaf.extent, form.get(leaf, 0)) for leaf in reversed(leaves)]))
    return found, constant


def _merged(digits: list[tuple[object, object]]) -> Modes:
    merged: list[tuple[Any, Any]] = []
    for extent, stride in digits:
        if merged and merged[-1][0] * merged[-1][1] == stride:
            merged[-1] = (merged[-1][0] * extent, merged[-1][1])
        elif extent != 1:
            merged.append((extent, stride))
    return tuple(merged) or ((1, 0),)


def bases_of(m: IndexMap) -> tuple[tuple[tuple[str, tuple[tuple[int, ...], ...]], ...], tuple[tuple[str, int], ...]]:
    """Inputs and outputs of the only linear layout that `m` can be: where each single index bit goes.

    Requires: constants. Raises LayoutError for extents that are no powers of two, element (0, .., 0) not at 0, places
    below 0, several replicas.
    """
    if m.sizes() or m.replicas.extents:
        raise LayoutError(problems.TO_LINEAR_SIZES())
    zero = (0,) * len(m.domain.extents)
    if any(m.at(zero)):
        raise LayoutError(problems.TO_LINEAR_ORIGIN(zero, m.at(zero)))
    inputs, most = [], [0] * len(m.range.extents)
    for d, (name, extent) in enumerate(zip(m.domain.names, m.domain.extents, strict=True)):
        count = int(extent)
        if count < 1 or count & (count - 1):
            raise LayoutError(problems.TO_LINEAR_POWER_OF_TWO(count, name))
        bases = [m.place((*zero[:d], 1 << k, *zero[d + 1 :]), (), INTS) for k in range(count.bit_length() - 1)]
        if any(entry < 0 for basis in bases for entry in basis):
            raise LayoutError(problems.TO_LINEAR_NEGATIVE())
        most = [max([high, *column]) for high, column in zip(most, zip(*bases, strict=True), strict=False)] or most
        inputs.append((name, tuple(bases)))
    sizes = []
    for name, extent, high in zip(m.range.names, m.range.extents, most, strict=False):
        room = max(int(extent), high + 1)
        sizes.append((name, 1 << (room - 1).bit_length()))
    return tuple(inputs), tuple(sizes)
