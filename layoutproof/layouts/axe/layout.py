"""An Axe layout as data: D (shard), R (replicas), O (offset), how it is written, and its index map.

A layout sends a logical index to a *set* of places L(x) = { D(x) + r + O | r in R } in Z^A, one integer per hardware
axis. Source: Hou et al., "Axe", arXiv:2601.19092, section 2.3; swizzles: apache/tvm `tirx/ir/layout/compose_layout.cc`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import IndexMap, from_row_major, row_major
from layoutproof.core.progressions import Progression, low_high
from layoutproof.core.shown import Shown
from layoutproof.core.size import Extent, Size, product, surely_less, symbols_of
from layoutproof.core.space import Space
from layoutproof.layouts.axe import problems
from layoutproof.layouts.axe.place import MEMORY as MEMORY
from layoutproof.layouts.axe.place import Iter as Iter
from layoutproof.layouts.axe.place import place_of
from layoutproof.layouts.axe.swizzle import Swizzle, reached

MOST_STEPS = 8
"""Replicas that `steps` shows."""


@dataclass(frozen=True, slots=True, eq=False)
class AxeLayout(Shown):
    """D: ordered iters, first slowest.  R: a multiset of iters, one per choice of replica.  O: offset per axis.

    shape: logical extents, row-major over D's digits, or None (one dimension).  within: extent per hardware axis that
    places must stay in.  swizzle: applied to the coordinate on `m`, which is then the only axis.
    derivation: where an expression stands for it, how it was computed and what was proved of it.
    Two layouts are `==` when written the same (R as a multiset); `lp.algebra.axe.same` says whether the maps are.
    `axe.read` checks what it reads; the constructor does not.

    >>> layout = AxeLayout(((8, 4, "lane"), (2, 1, "reg")), O={"lane": 5})
    >>> str(layout)
    'S[(8,2):(4@lane,1@reg)] + 5@lane'
    """

    D: tuple[Iter, ...]
    R: tuple[Iter, ...] = ()
    O: Mapping[str, Extent] = field(default_factory=dict)  # noqa: E741 - the paper's name
    shape: tuple[Extent, ...] | None = None
    within: Mapping[str, Extent] | None = None
    swizzle: Swizzle | None = None
    derivation: tuple[str, ...] = ()

    def _key(self) -> tuple[object, ...]:
        within = frozenset((self.within or {}).items())
        replicas = frozenset(Counter(self.R).items())
        return (self.D, replicas, frozenset(self.O.items()), self.shape, within, self.swizzle)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AxeLayout) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        bare = set(self.axes()) <= {MEMORY}
        parts = [f"S[{_iters(self.D, bare)}]"]
        parts += [f"R[{_iters(self.R, bare)}]"] if self.R else []
        parts += [_on_axis(value, axis, bare) for axis, value in self.O.items()]
        text = " + ".join(parts)
        if self.swizzle is not None:
            text += f" swizzle {self.swizzle}"
        if self.shape is not None:
            text += f" on ({','.join(map(str, self.shape))})"
        if self.within:
            text += f" within ({','.join(_on_axis(value, axis, bare) for axis, value in self.within.items())})"
        return text

    def matrix(self) -> str:
        """The paper's two lines: extents above strides.

        >>> print(AxeLayout(((8, 4, "lane"), (2, 1, "warp")), ((2, 4, "warp"),), {"warp": 5}).matrix())
        (   8       2    )   (   2    )
        ( 4@lane, 1@warp ) + ( 4@warp ) + 5@warp
        """
        lines = [_columns(iters) for iters in (self.D, self.R) if iters]
        above = "   ".join(extents for extents, _ in lines)
        below = " + ".join([strides for _, strides in lines] + [f"{v}@{axis}" for axis, v in self.O.items()])
        return f"{above}\n{below}" + (f" swizzle {self.swizzle}" if self.swizzle is not None else "")

    def axes(self) -> tuple[str, ...]:
        """Every hardware axis it names, in order of first appearance: D, R, O, then `within`."""
        seen = dict.fromkeys([axis for _, _, axis in self.D])
        seen.update(dict.fromkeys([axis for _, _, axis in self.R]))
        seen.update(dict.fromkeys(self.O))
        seen.update(dict.fromkeys(self.within or ()))
        return tuple(seen)

    def size(self, axis: str | None = None) -> Extent:
        """How many elements: the product of D's extents, of one axis if named (TVM: `size`)."""
        count: Extent = product([e for e, _, a in self.D if axis is None or a == axis])
        return count

    def box(self) -> tuple[Extent, ...]:
        """The shape, or D's extents where it states none."""
        return self.shape if self.shape is not None else tuple([extent for extent, _, _ in self.D])

    def steps(self, index: Sequence[int]) -> list[tuple[str, tuple[int, ...], tuple[Extent, ...]]]:
        """How one index becomes places: its flat index, D's digits, then D(x), R(r) for each replica, and O.

        The coordinates of the last ones stand in the order of `axes`; no extents bound them. Requires constants and an
        index inside the shape. Of many replicas the first ones are shown, and
        the swizzled sum where there is one replica.

        >>> layout = AxeLayout(((8, 4, "lane"), (4, 1, "lane"), (2, 1, "reg")), ((2, 32, "lane"),), {"reg": 5}, (8, 8))
        >>> for done, at, extents in layout.steps((2, 5)):
        ...     print(done, at, extents)
        flat index (21,) (64,)
        digits (2, 2, 1) (8, 4, 2)
        D lane, reg (10, 1) ()
        R, replica 0 (0, 0) ()
        R, replica 1 (32, 0) ()
        O (0, 5) ()
        """
        shape: Any = self.shape if self.shape is not None else (self.size(),)
        extents: list[Any] = [extent for extent, _, _ in self.D]
        copies: list[Any] = [extent for extent, _, _ in self.R]
        flat = row_major(tuple(index), shape)
        digits = from_row_major(flat, extents)
        axes = self.axes()
        found: list[Any] = [("flat index", (flat,), (self.size(),)), ("digits", digits, tuple(extents))]
        found.append((f"D {', '.join(axes)}", _summed(self.D, digits, axes), ()))
        for number, replica in enumerate(itertools.islice(itertools.product(*map(range, copies)), MOST_STEPS)):
            found += [(f"R, replica {number}", _summed(self.R, replica, axes), ())] if self.R else []
        if self.O:
            found.append(("O", tuple([self.O.get(axis, 0) for axis in axes]), ()))
        if self.swizzle is not None and not self.R:
            found.append((f"swizzle {self.swizzle}", self.index_map().at(tuple(index)), ()))
        return found

    def symbols(self) -> tuple[str, ...]:
        """The size symbols it depends on."""
        return symbols_of(
            [
                *[part for e, s, _ in (*self.D, *self.R) for part in (e, s)],
                *self.O.values(),
                *(self.shape or ()),
                *(self.within or {}).values(),
            ]
        )

    def on(self, shape: Sequence[Extent]) -> AxeLayout:
        """The same layout with a logical shape. Raises LayoutError unless the shape has as many elements."""
        admit(self, shape)
        return AxeLayout(self.D, self.R, self.O, tuple(shape), self.within, self.swizzle)

    def index_map(self) -> IndexMap:
        """Logical index and replica -> one coordinate per hardware axis.

        Domain: the shape, or one dimension x. Replicas: one dimension per iter of R. Range: one axis per hardware axis,
        with the extent in `within`, or 1 + the largest coordinate.

        >>> layout = AxeLayout(((8, 4, "lane"), (2, 1, "warp"), (4, 1, "lane"), (2, 1, "reg")), shape=(8, 16))
        >>> layout.index_map().at((2, 9))
        (8, 1, 1)
        """
        shape = self.shape if self.shape is not None else (self.size(),)
        rank = len(shape)
        names = (
            ("x",)
            if self.shape is None
            else tuple("ijklmnop"[:rank])
            if rank <= 8
            else tuple(f"i{k}" for k in range(rank))
        )
        axes = self.axes()
        place = place_of(shape, self.D, self.R, self.O, axes, self.swizzle)
        extents = tuple([axis_extent(self, axis) for axis in axes])
        box = Space(tuple(f"r{k}" for k in range(len(self.R))), tuple([e for e, _, _ in self.R]))
        unbounded = tuple([axis for axis in axes if axis not in (self.within or {})])
        # a stride or an offset may have sizes that no extent has, where `within` says how far the places reach
        symbols = self.symbols()
        return IndexMap(Space(names, shape), Space(axes, extents), place, box, symbols=symbols, unbounded=unbounded)


def axis_extent(layout: AxeLayout, axis: str) -> Extent:
    """The extent of one hardware axis: as `within` says, or 1 + the largest coordinate (at least 1).

    Raises LayoutError where the sign of a stride or of the largest coordinate depends on sizes, or a swizzled layout
    has sizes, unless `within` says.
    """
    if layout.within is not None and axis in layout.within:
        return layout.within[axis]
    if layout.swizzle is not None:
        if layout.symbols():
            raise LayoutError(problems.SWIZZLE_SYMBOLIC(layout))
        return 1 + swizzled_bounds(layout)[1]
    highest: Any = layout.O.get(axis, 0)
    for extent, stride, name in (*layout.D, *layout.R):
        if name != axis:
            continue
        if surely_less(-1, stride):
            highest = highest + stride * (extent - 1)
        elif not surely_less(stride, 1):
            raise LayoutError(problems.STRIDE_SIGN(stride, axis))
    if type(highest) is int:
        return max(1, highest + 1)
    if not surely_less(-1, highest):
        raise LayoutError(problems.COORDINATE_SIGN(highest, axis))
    return highest + 1  # type: ignore[no-any-return]


def axis_iters(layout: AxeLayout, axis: str, replicas: bool = True) -> tuple[list[Progression], int]:
    """The (extent, stride) pairs on one axis, D's and (if asked) R's, and the offset there."""
    found: list[Any] = [(e, s) for e, s, a in layout.D if a == axis]
    if replicas:
        found += [(e, s) for e, s, a in layout.R if a == axis]
    return found, layout.O.get(axis, 0)  # type: ignore[return-value]


def addresses(layout: AxeLayout) -> tuple[list[Progression], int]:
    """`axis_iters` on `m` of a layout of constants. Raises LayoutError when an address there is below 0."""
    iters, start = axis_iters(layout, MEMORY)
    low, _ = low_high(iters, start)
    if low < 0:
        raise LayoutError(problems.SWIZZLE_ADDRESS(layout, low))
    return iters, start


def swizzled_bounds(layout: AxeLayout) -> tuple[int, int]:
    """The smallest and the largest address that a swizzled layout reaches. Requires constants and addresses >= 0.

    >>> swizzled_bounds(AxeLayout(((9, 1, "m"),), swizzle=Swizzle(0, 3, 3)))
    (0, 9)
    """
    constant(layout)
    iters, start = addresses(layout)
    return low_high(iters, start) if layout.swizzle is None else reached(layout.swizzle, iters, start)


def admit(layout: AxeLayout, shape: Sequence[Extent]) -> tuple[Extent, ...]:
    """`shape` itself, when it has as many elements as the layout (paper: shape admission).

    Raises LayoutError for another count or an extent below 1. Nothing wraps around.

    >>> admit(AxeLayout(((8, 16, "m"), (16, 1, "m"))), (8, 32))
    Traceback (most recent call last):
    ...
    layoutproof.core.errors.LayoutError: the shape (8, 32) has 256 elements but the layout S[(8,16):(16,1)] has 128
    """
    for extent in shape:
        if type(extent) is int and extent < 1:
            raise LayoutError(problems.EXTENT_LEAST(shown(shape), extent))
        if not isinstance(extent, int | Size) or type(extent) is bool:
            raise LayoutError(problems.EXTENT_TYPE(extent))
    count = product(shape)
    if count != layout.size():
        raise LayoutError(problems.SHAPE_SIZE(shown(shape), count, _plain(layout), layout.size()))
    return tuple(shape)


def constant(*layouts: AxeLayout) -> None:
    """Raises LayoutError when a layout has sizes that are unknown until run time."""
    for layout in layouts:
        if symbols := layout.symbols():
            raise LayoutError(problems.SYMBOLIC_SIZE(layout, symbols[0]))


def shown(values: Iterable[object]) -> str:
    """A tuple as a message shows it."""
    return f"({', '.join(map(str, values))})"


def add(
    left: Mapping[str, Extent], right: Mapping[str, Extent], factor: Mapping[str, Extent] | None = None
) -> dict[str, Extent]:
    """Offsets per axis: left * factor + right; a factor that is not there is 1."""
    total = {axis: value * factor.get(axis, 1) if factor else value for axis, value in left.items()}
    for axis, value in right.items():
        total[axis] = total.get(axis, 0) + value
    return total


def _summed(iters: Sequence[Iter], digits: Sequence[int], axes: Sequence[str]) -> tuple[Extent, ...]:
    """The sum of digits times strides on each axis."""
    total: dict[str, Any] = dict.fromkeys(axes, 0)
    for (_, stride, axis), digit in zip(iters, digits, strict=True):
        total[axis] = total[axis] + digit * stride
    return tuple(total.values())


def _plain(layout: AxeLayout) -> AxeLayout:
    return AxeLayout(layout.D, layout.R, layout.O)


def _iters(iters: Sequence[Iter], bare: bool) -> str:
    extents = ",".join(str(e) for e, _, _ in iters)
    strides = ",".join(_on_axis(s, axis, bare) for _, s, axis in iters)
    return f"{extents}:{strides}" if len(iters) == 1 else f"({extents}):({strides})"


def _on_axis(value: Extent, axis: str, bare: bool) -> str:
    text = str(value)
    if not isinstance(value, int) and len(value.terms) > 1:
        text = f"({text})"
    return text if bare and axis == MEMORY else f"{text}@{axis}"


def _columns(iters: Sequence[Iter]) -> tuple[str, str]:
    columns = [(str(e), f"{s}@{axis}") for e, s, axis in iters]
    widths = [max(len(e), len(s)) for e, s in columns]
    above = "  ".join(e.center(width) for (e, _), width in zip(columns, widths, strict=True))
    below = ", ".join(s.rjust(width) for (_, s), width in zip(columns, widths, strict=True))
    return f"( {above} )", f"( {below} )"
