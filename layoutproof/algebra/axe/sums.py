"""Direct sums: two layouts over interleaved dimensions, added without scaling, and recognising either part.

Definition (paper, section 3.3 and appendix F): f(x || y) = A(x) + B(y). Unlike a tiling it may overlap: ask
`canonical.fibers_disjoint` of the result. Source of the operation's form: apache/tvm `tile_direct_sum_ops.cc`, which
treats replicas as a set when it recognises; here they are a multiset, and every result is checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from layoutproof.algebra import problems
from layoutproof.algebra.axe.canonical_form import canonical, nonzero, normal, same_replicas
from layoutproof.algebra.axe.grouping import blocks_of
from layoutproof.algebra.axe.tiling import halves_of
from layoutproof.core.errors import InternalError, LayoutError, Reason, Undecided
from layoutproof.core.progressions import values
from layoutproof.core.size import Extent, divide
from layoutproof.layouts.axe.layout import AxeLayout, Iter, add, admit, shown
from layoutproof.layouts.axe.swizzle import window
from layoutproof.solvers.sumset import decompose


def direct_sum(
    left: AxeLayout, left_shape: Sequence[Extent], right: AxeLayout, right_shape: Sequence[Extent]
) -> AxeLayout | Reason:
    """A + B, of shape left_shape * right_shape (TVM: `right.direct_sum(left, ..)`).

    Requires: admitted shapes of one rank; with a swizzled right part, a left one that steps by whole swizzle windows (a
    Reason otherwise). Ensures: the definition, checked; canonical.

    Args:
        left: An Axe layout.
        left_shape: Its shape, in elements.
        right: An Axe layout.
        right_shape: Its shape, in elements.

    Returns:
        The layout, or the reason why there is none.

    >>> a, b = AxeLayout(((2, 8, "m"), (2, 2, "m"))), AxeLayout(((2, 4, "m"), (2, 1, "m")))
    >>> str(direct_sum(a, (2, 2), b, (2, 2)))
    'S[16:1] on (4,4)'
    """
    if len(left_shape) != len(right_shape):
        raise LayoutError(problems.RANKS_DIFFER(shown(left_shape), shown(right_shape)))
    left_blocks = blocks_of(normal(left.D) or left.D, admit(left, left_shape))
    right_blocks = blocks_of(normal(right.D) or right.D, admit(right, right_shape))
    if isinstance(left_blocks, Reason):
        return left_blocks
    if isinstance(right_blocks, Reason):
        return right_blocks
    if reason := _unswizzlable(left, right):
        return Reason(reason)
    shard = tuple([i for pair in zip(left_blocks, right_blocks, strict=True) for block in pair for i in block])
    shape = tuple([a * b for a, b in zip(left_shape, right_shape, strict=True)])
    result = AxeLayout(shard, left.R + right.R, add(left.O, right.O), shape, None, right.swizzle)
    if problem := adds_up(result, left, left_shape, right, right_shape):
        raise InternalError(f"the direct sum of {left} and {right}: {problem}: please report this")
    return canonical(result)


def adds_up(
    total: AxeLayout, left: AxeLayout, left_shape: Sequence[Extent], right: AxeLayout, right_shape: Sequence[Extent]
) -> str:
    """Why total(x || y) = left(x) + right(y) fails, or "" when it is proved. Swizzles are not looked at."""
    halves = halves_of(total, left_shape, right_shape)
    if isinstance(halves, Reason):
        return halves.text
    if normal(halves[0]) != normal(left.D):
        return "over the left index it is not the left layout"
    if normal(halves[1]) != normal(right.D):
        return "over the right index it is not the right layout"
    replicas, offset = left.R + right.R, add(left.O, right.O)
    if Counter(replicas) == Counter(total.R) and offset == total.O:
        return ""
    if total.symbols() or left.symbols() or right.symbols():
        return "the replicas differ in writing, and have run-time sizes"
    if same_replicas(total, AxeLayout((), replicas, offset)):
        return ""
    return "its replicas and offset are not the sums of both parts'"


def is_direct_sum_right(
    right: AxeLayout, total: AxeLayout, interleaved: Sequence[Extent], right_shape: Sequence[Extent]
) -> AxeLayout | Reason:
    """A left layout A with A + right the same map as `total`; a Reason where none was found.

    Replicas that several A would give are those that remain when right's are taken away. Requires: admitted shapes
    (LayoutError otherwise). Ensures: the definition, checked.

    Args:
        right: An Axe layout.
        total: The layout of the sum.
        interleaved: Extents of the sum: left and right ones in turn.
        right_shape: Its shape, in elements.

    Returns:
        The layout, or the reason why there is none.

    >>> total, b = AxeLayout(((16, 1, "m"),)), AxeLayout(((2, 4, "m"), (2, 1, "m")))
    >>> str(is_direct_sum_right(b, total, (2, 2, 2, 2), (2, 2)))
    'S[(2,2):(8,2)] on (2,2)'
    """
    return _other(right, total, interleaved, right_shape, known=1)


def is_direct_sum_left(
    left: AxeLayout, total: AxeLayout, interleaved: Sequence[Extent], left_shape: Sequence[Extent]
) -> AxeLayout | Reason:
    """A right layout B with left + B the same map as `total`; otherwise as `is_direct_sum_right`.

    Args:
        left: An Axe layout.
        total: The layout of the sum.
        interleaved: Extents of the sum: left and right ones in turn.
        left_shape: Its shape, in elements.

    Returns:
        The layout, or the reason why there is none.
    """
    return _other(left, total, interleaved, left_shape, known=0)


def _other(
    part: AxeLayout, total: AxeLayout, interleaved: Sequence[Extent], part_shape: Sequence[Extent], known: int
) -> AxeLayout | Reason:
    if len(interleaved) != 2 * len(part_shape) or tuple(interleaved[known::2]) != tuple(part_shape):
        raise LayoutError(problems.NOT_INTERLEAVED(shown(interleaved), shown(part_shape)))
    admit(part, part_shape)
    admit(total, interleaved)
    if known == 1 and part.swizzle != total.swizzle:
        return Reason(f"the swizzles differ: {total.swizzle or 'none'} and {part.swizzle or 'none'}")
    if known == 0 and part.swizzle is not None:
        return Reason("the left part of a direct sum is not swizzled")
    shapes = (interleaved[::2], interleaved[1::2])
    halves = halves_of(total, *shapes)
    if isinstance(halves, Reason):
        return halves
    shape = tuple(shapes[1 - known])
    problem = ""
    for replicas, offset in _remaining(total, part):
        swizzle = total.swizzle if known == 0 else None
        other = AxeLayout(halves[1 - known], replicas, offset, shape, None, swizzle)
        left, right = (part, other) if known == 0 else (other, part)
        problem = adds_up(total, left, shapes[0], right, shapes[1]) or _unswizzlable(left, right)
        if not problem:
            return AxeLayout(normal(other.D) or other.D[:1], other.R, nonzero(other.O), shape, None, swizzle)
    return Reason(problem or "no replicas were found that add up to the sum's")


def _remaining(total: AxeLayout, part: AxeLayout) -> list[tuple[tuple[Iter, ...], dict[str, Extent]]]:
    """Candidates for the other part's replicas and offset: as written, in canonical form, from the sets of places."""
    found: list[tuple[tuple[Iter, ...], dict[str, Any]]] = []
    whole, known = canonical(AxeLayout((), total.R, total.O)), canonical(AxeLayout((), part.R, part.O))
    for one, other in ((total, part), (whole, known)):
        left = Counter(one.R)
        left.subtract(Counter(other.R))
        if min(left.values(), default=0) >= 0:
            found.append((tuple(left.elements()), _difference(one, other)))
    if not total.symbols() and not part.symbols():
        listed = _listed(whole, known)
        if listed is not None:
            found.append((listed, _difference(whole, known)))
    return found


def _difference(one: AxeLayout, other: AxeLayout) -> dict[str, Extent]:
    return add(one.O, {axis: -1 * value for axis, value in other.O.items()})


def _listed(total: AxeLayout, part: AxeLayout) -> tuple[Iter, ...] | None:
    """Replicas that added to part's give total's, found by listing places; None where there are none or too many."""
    found: list[Iter] = []
    for axis in dict.fromkeys([axis for _, _, axis in (*total.R, *part.R)]):
        mine: list[Any] = [(e, s) for e, s, a in total.R if a == axis]
        theirs: list[Any] = [(e, s) for e, s, a in part.R if a == axis]
        try:
            sums = decompose(frozenset(values(mine, 0, 4096)), frozenset(values(theirs, 0, 4096)))
        except Undecided:
            return None
        if sums is None:
            return None
        found += [(e, s, axis) for e, s in sums]
    return tuple(found)


def _unswizzlable(left: AxeLayout, right: AxeLayout) -> str:
    """Why adding `left` and swizzling `right` are not independent, or ""."""
    if left.swizzle is not None:
        return "the left part of a direct sum is not swizzled"
    if right.swizzle is None:
        return ""
    size = window(right.swizzle)
    steps = [s for e, s, _ in (*left.D, *left.R) if e != 1] + list(left.O.values())
    for step in steps:
        if divide(step, size)[1] != 0:
            return f"the left part's step {step} is no multiple of the swizzle's window of {size} elements"
    return ""
