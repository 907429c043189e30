"""The places of elements by each language's own definition, computed a second time with NumPy's own operations.

Nothing here calls `place`, or anything that it is made of; from a layout only the numbers that its text has are read.
Strides are NumPy's views, digits are `numpy.unravel_index`, swizzles are shifts and masks, linear layouts are products
of bit matrices, shardings are arrays of devices that are reshaped, transposed and cut, and maps are Python's `eval`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import singledispatch
from math import prod
from typing import TYPE_CHECKING, Any

from layoutproof.core.errors import Undecided
from layoutproof.crosschecks.pad_reshape import pad_reshape_transpose
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.layouts.axe.layout import AxeLayout
from layoutproof.layouts.blockspec import BlockSpecLayout
from layoutproof.layouts.cute.layout import CuteLayout
from layoutproof.layouts.linear import LinearLayout
from layoutproof.layouts.map import MapLayout
from layoutproof.layouts.sharding import NamedSharding, ShardedArray
from layoutproof.layouts.strided import StridedLayout
from layoutproof.layouts.xla import XlaLayout

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_ROWS = 1 << 14
"""Elements of a layout whose definition is evaluated by Python, one by one."""


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Every place of every element.

    at: int64, the logical shape, then one axis for the replicas, then one for the coordinates (of a memory: the
    offset).  allotted: elements reserved, None where the definition does not say.  any_order: replicas have no numbers
    of their own, so only the set of an element's places counts.
    """

    at: NDArray[np.int64]
    allotted: int | None = None
    any_order: bool = False


class TooMany(Undecided):
    """More than is computed here."""


@singledispatch
def definition(layout: object) -> Places:
    """The places that the definition of a layout's language gives. Raises Undecided where there is no second one."""
    raise Undecided(f"no second definition of a {type(layout).__name__}")


@definition.register
def _xla(layout: XlaLayout) -> Places:
    """docs/tiled_layout.md, "tiling as pad-reshape-transpose": elements 1, 2, 3, .. are moved as whole arrays."""
    import numpy as np

    shape = tuple(map(int, layout.dims))
    moved = pad_reshape_transpose(layout, np.arange(1, 1 + prod(shape)).reshape(shape))
    at = np.empty(prod(shape), dtype=np.int64)
    (held,) = np.nonzero(moved)
    at[moved[held] - 1] = held
    return Places(at.reshape(*shape, 1, 1), moved.size)


@definition.register
def _strided(layout: StridedLayout) -> Places:
    """NumPy's own views: an array that holds its positions, seen with these strides."""
    import numpy as np

    shape, strides = tuple(map(int, layout.shape)), tuple(map(int, layout.strides))
    if 0 in shape:
        return Places(np.empty((*shape, 1, 1), dtype=np.int64))
    ends = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    below, above = -sum(min(0, end) for end in ends), sum(max(0, end) for end in ends)
    if below + above > 1 << 24:
        raise TooMany("strides that reach further than 16,777,216 elements")
    positions = np.arange(-below, above + 1)
    seen = np.lib.stride_tricks.as_strided(positions[below:], shape, tuple(s * positions.itemsize for s in strides))
    start = below if layout.start is None else int(layout.start)
    size = start + above + 1 if layout.size is None else int(layout.size)
    return Places((seen + start)[..., None, None].astype(np.int64), size)


@definition.register
def _cute(layout: CuteLayout) -> Places:
    """A mode's index is cut into digits colexicographically; the swizzle is CuTe's, with shifts and masks."""
    import numpy as np

    modes = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    steps = layout.stride if isinstance(layout.stride, tuple) else (layout.stride,)
    total = np.asarray(int(layout.offset), dtype=np.int64)
    for mode, step in zip(modes, steps, strict=True):
        extents, strides = list(map(int, _flat(mode))), list(map(int, _flat(step)))
        digits = np.unravel_index(np.arange(prod(extents)), extents or (1,), order="F")
        own = sum((d.astype(np.int64) * s for d, s in zip(digits, strides, strict=False)), np.zeros(prod(extents), int))
        total = total[..., None] + own
    if layout.swizzle is not None:
        bits, base, shift = layout.swizzle
        mask = ((1 << bits) - 1) << (base + max(0, shift))
        total = total ^ ((total & mask) >> shift if shift >= 0 else (total & mask) << -shift)
    return Places(total[..., None, None])


def _flat(nested: object) -> Iterator[Any]:
    for part in nested if isinstance(nested, tuple) else (nested,):
        yield from _flat(part) if isinstance(part, tuple) else (part,)


@definition.register
def _axe(layout: AxeLayout) -> Places:
    """L(x) = D(x) + r + O of the paper, one coordinate per axis; TVM's formula of a swizzle, with shifts and masks."""
    import numpy as np

    digits = [int(extent) for extent, _, _ in layout.D]
    choices = [int(extent) for extent, _, _ in layout.R]
    axes = layout.axes()
    at = np.zeros((prod(digits), prod(choices), len(axes)), dtype=np.int64)
    for k, axis in enumerate(axes):
        at[..., k] += int(layout.O.get(axis, 0))
    for turned, iters, extents in ((False, layout.D, digits), (True, layout.R, choices)):
        numbers = np.unravel_index(np.arange(prod(extents)), extents) if extents else ()
        for number, (_, stride, axis) in zip(numbers, iters, strict=True):
            moved = number * int(stride)
            at[..., axes.index(axis)] += moved if turned else moved[:, None]
    if layout.swizzle is not None:
        unit, count, atom = layout.swizzle.per_element, layout.swizzle.swizzle_len, layout.swizzle.atom_len
        block, low, mask = at >> unit, at & ((1 << unit) - 1), (1 << count) - 1
        other = (block & mask) << atom if layout.swizzle.outer else (block & (mask << atom)) >> atom
        at = (block ^ other) << unit | low
    shape = tuple(map(int, layout.shape)) if layout.shape is not None else (prod(digits),)
    return Places(at.reshape(*shape, prod(choices), len(axes)))


@definition.register
def _linear(layout: LinearLayout) -> Places:
    """A matrix over GF(2): the bits of the output are the bits of the input times the bases, modulo 2."""
    import numpy as np

    widths = [size.bit_length() - 1 for _, size in layout.outputs]
    rows, columns = [1 << len(bases) for _, bases in layout.inputs], []
    for _, bases in layout.inputs:
        for basis in bases:
            columns.append([v >> b & 1 for v, width in zip(basis, widths, strict=True) for b in range(width)])
    matrix = np.array(columns, dtype=np.int64).reshape(len(columns), sum(widths))
    numbers = np.unravel_index(np.arange(prod(rows)), rows) if rows else ()
    bits = [n >> b & 1 for n, (_, bases) in zip(numbers, layout.inputs, strict=True) for b in range(len(bases))]
    given = np.stack(bits, axis=-1) if bits else np.zeros((prod(rows), 0), dtype=np.int64)
    out, ends = given @ matrix % 2, list(itertools.accumulate(widths, initial=0))
    at = [out[:, a:b] @ (1 << np.arange(b - a)) for a, b in itertools.pairwise(ends)]
    return Places(np.stack(at, axis=-1).astype(np.int64).reshape(*rows, 1, len(at)))


@definition.register
def _map(layout: MapLayout) -> Places:
    """Its text, evaluated by Python."""
    import numpy as np

    shape = tuple(map(int, layout.extents))
    _few(prod(shape))
    run = _evaluator(map(str, layout.terms), layout.names)
    rows = [run(index) for index in itertools.product(*map(range, shape))]
    return Places(np.array(rows, dtype=np.int64).reshape(*shape, 1, len(layout.terms)))


def _evaluator(terms: Iterable[str], names: Sequence[str]) -> Callable[[Sequence[int]], tuple[int, ...]]:
    """A function of the values of names that gives what the terms are, by Python's own arithmetic."""
    code = compile(f"({''.join(f'({term}), ' for term in terms)})", "map", "eval")
    known = {"__builtins__": {}, "min": min, "max": max, "abs": abs, "select": lambda c, a, b: a if c else b}

    def run(values: Sequence[int]) -> tuple[int, ...]:
        return tuple(map(int, eval(code, known | dict(zip(names, values, strict=True)))))

    return run


def _few(rows: int) -> None:
    if rows > MOST_ROWS:
        raise TooMany(f"more than {MOST_ROWS:,} elements of a definition that Python evaluates")


@definition.register
def _block(layout: BlockSpecLayout) -> Places:
    """The rule of the page on BlockSpecs: a block starts at index * size, a squeezed or an element index is a start."""
    import numpy as np

    kernel, operand = layout.kernel, layout.operand
    grid = tuple(map(int, kernel.grid))
    sizes = [int(b.size) for b in operand.block if b.kind != "squeezed"]
    _few(prod(grid) * prod(sizes))
    offsets = list(itertools.product(*map(range, sizes)))
    rows = []
    for first, _ in windows(kernel, operand):
        for offset in offsets:
            left = iter(offset)
            pairs = zip(first, operand.block, strict=True)
            rows.append([start + (0 if block.kind == "squeezed" else next(left)) for start, block in pairs])
    return Places(np.array(rows, dtype=np.int64).reshape(*grid, len(offsets), len(operand.dims)))


def windows(kernel: Kernel, operand: Operand) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(first element, one past the last) of the block of every program, in lexicographic order.

    Raises Undecided for an index map that reads tables, and for blocks that are not modelled a second time.
    """
    if any(type(n) is not int for n in (*kernel.grid, *operand.dims, *(block.size for block in operand.block))):
        raise Undecided("sizes without a value")
    if operand.unmodelled or operand.sizes or any(b.kind == "bounded" for b in operand.block):
        raise Undecided("no second definition of bounded and unmodelled blocks")
    if kernel.tables and any("read" in {part.op for part in _parts(term)} for term in operand.index):
        raise Undecided("tables choose the blocks")
    run = _evaluator(map(str, operand.index), kernel.grid_names)
    for program in itertools.product(*(range(int(n)) for n in kernel.grid)):
        index, first = run(program), []
        for entry, block in zip(index, operand.block, strict=True):
            size = int(block.size)
            first.append(entry * size if block.kind == "blocked" else entry - block.low)
        yield tuple(first), tuple(f + int(b.size) for f, b in zip(first, operand.block, strict=True))


def _parts(term: Any) -> Iterator[Any]:
    yield term
    for part in term.args:
        if hasattr(part, "op"):
            yield from _parts(part)


def last_program(kernel: Kernel, operand: Operand) -> NDArray[np.int64]:
    """Which program writes each element last, as its row-major number, -1 for none: programs store one after another.

    Raises Undecided as `windows` does.
    """
    import numpy as np

    rows = list(windows(kernel, operand))
    found = np.full([int(n) for n in operand.dims], -1, dtype=np.int64)
    for number, (first, end) in enumerate(rows):
        found[tuple(slice(max(0, a), max(0, b)) for a, b in zip(first, end, strict=True))] = number
    return found


@definition.register
def _sharding(layout: ShardedArray) -> Places:
    """XLA's text: an array of devices, one for each tile, and tiles of ceil(extent / number) elements."""
    import numpy as np

    if layout.layout is not None:
        raise Undecided("the layout of a shard is compared by itself")
    shape = tuple(map(int, layout.dims))
    devices = device_array(layout)
    count = devices.shape[: len(shape)]
    held = devices.reshape(*count, -1)
    local = np.zeros((*shape, len(shape)), dtype=np.int64)
    tile = []
    for d, (extent, tiles) in enumerate(zip(shape, count, strict=True)):
        size = max(1, -(-extent // tiles))
        starts = np.repeat(np.arange(tiles), size)[:extent]
        tile.append(starts.reshape([-1 if k == d else 1 for k in range(len(shape))]))
        within = np.tile(np.arange(size), tiles)[:extent]
        local[..., d] = within.reshape([-1 if k == d else 1 for k in range(len(shape))])
    of = held[tuple(np.broadcast_to(t, shape) for t in tile)] if tile else held
    of = of.reshape(*shape, held.shape[-1], 1)
    places = np.broadcast_to(local[..., None, :], (*shape, held.shape[-1], len(shape)))
    return Places(np.concatenate([of, places], axis=-1).astype(np.int64), any_order=True)


def device_array(layout: ShardedArray) -> NDArray[np.int64]:
    """The device of each tile: one axis for each dimension of the array, and one for what is left, the replicas.

    Raises Undecided for what has no tiles (replicated without a number of devices, maximal, unknown, tuples).
    """
    import numpy as np

    sharding, rank = layout.sharding, len(layout.dims)
    if isinstance(sharding, NamedSharding):
        if sharding.mesh.maximal:
            raise Undecided("no second definition of maximal shardings")
        mesh = _assigned(sharding.mesh.tiles)
        used: list[Any] = [axis for axes in sharding.dims for axis in axes]
        # an axis, or the part of one that has `pre` more major positions, is an axis of the mesh cut into such parts
        cuts = [
            sorted({1, n, *(v for a in used if a.number == k and a.size for v in (a.pre, a.pre * a.size))})
            for k, n in enumerate(mesh.shape)
        ]
        parts = [(k, pre, after // pre) for k, ends in enumerate(cuts) for pre, after in itertools.pairwise(ends)]
        split = mesh.reshape([size for _, _, size in parts])
        order, counts = [], []
        for axes in sharding.dims:
            many = 1
            for axis in axes:
                pre, size = (axis.pre, axis.size) if axis.size else (1, mesh.shape[axis.number])
                inside = [
                    p for p, (k, at, n) in enumerate(parts) if k == axis.number and pre <= at and at * n <= pre * size
                ]
                order += inside
                many *= size
            counts.append(many)
        order += [p for p in range(len(parts)) if p not in order]
        found = split.transpose(order).reshape(*counts, -1) if parts else mesh.reshape((1,) * rank + (-1,))
    elif sharding.tiles is not None:
        found = _assigned(sharding.tiles)
        found = found.reshape(*found.shape[:rank], -1)
    elif sharding.kind in ("replicated", "manual", "unreduced") and layout.devices is not None:
        many = layout.devices if isinstance(layout.devices, int) else len(layout.devices)
        found = np.arange(many).reshape((1,) * rank + (-1,))
    else:
        raise Undecided("a sharding without tiles")
    if isinstance(layout.devices, tuple):
        found = np.array(layout.devices)[found]
    return found


def _assigned(tiles: Any) -> NDArray[np.int64]:
    """reshape(transpose(reshape(0, 1, 2, ..))), or the list itself."""
    import numpy as np

    if not tiles.reshape:
        return np.array(tiles.devices, dtype=np.int64).reshape(tiles.dims)
    return np.arange(prod(tiles.reshape)).reshape(tiles.reshape).transpose(tiles.perm).reshape(tiles.dims)
