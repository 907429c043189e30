"""Which layout of an array pads least on a target: one array, or several that share dimensions and one order of them.

Candidates are all orders of the dimensions, each with the tile that the compiler gives that order: asked for an order,
it takes it (libtpu 0.0.42.1; see `questions.cheapest`). Tiles that it never gives by itself are no candidates: it takes
some of them for parameters, but only compiling shows whether a program then exists.
Only the two most minor dimensions are padded, so orders that agree in them take the same bytes: every class of such
orders is looked at, and the count that stands in an answer is of all orders covered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import factorial, prod

from layoutproof.core.errors import BudgetExceeded, LayoutError
from layoutproof.layouts.xla.shape import ELEMENT_BITS, XlaLayout
from layoutproof.questions.cheapest import orders, padded_bytes, with_order
from layoutproof.registry.defaults import tpu_default
from layoutproof.searching import problems

MOST_NAMES = 16
"""Named dimensions that one order is sought for: 2**16 sets of them are looked at."""


@dataclass(frozen=True, slots=True)
class Sized:
    """A layout and the bytes that it takes, padding included. values: of the variables in its tiles."""

    layout: XlaLayout
    bytes: int
    values: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ArrayAnswer:
    """best: all choices, fewest bytes first. Of orders one layout per class, of equal ones the compiler's default, then
    row-major; of tiles, whose variables have values, of equal ones the larger tile.

    default: the compiler's own layout.  given: the layout that was written beside the shape, None where none was.
    unpadded: bytes of the elements.  covered: orders of dimensions, or choices of tiles, all of them.
    """

    default: Sized
    best: tuple[Sized, ...]
    unpadded: int
    covered: int
    given: Sized | None = None


@dataclass(frozen=True, slots=True)
class SharedAnswer:
    """One order of named dimensions for several arrays. order: fastest first.  layouts: by array.

    bytes: of all arrays.  apart: those with each array in its own best order.  covered: orders, all of them.
    sets: sets of names that were looked at to cover them.
    """

    order: tuple[str, ...]
    layouts: Mapping[str, Sized]
    bytes: int
    apart: int
    covered: int
    sets: int


def best_layouts(shape: XlaLayout, target: str, given: bool = False) -> ArrayAnswer:
    """All layouts of one array by the bytes they take. given: the layout of `shape` was written and is compared.

    Raises LayoutError as `tpu_default` does.

    >>> from layoutproof.layouts import xla
    >>> found = best_layouts(xla.read("bf16[16,1280,40]{2,1,0:T(8,128)(2,1)}"), "v5e", given=True)
    >>> str(found.best[0].layout), found.best[0].bytes, found.given.bytes, found.covered
    ('bf16[16,1280,40]{1,2,0:T(8,128)(2,1)}', 1638400, 5242880, 6)
    """
    default = tpu_default(shape, target)
    default = replace(default, memory_space=shape.memory_space)
    every = list(orders(default, target)) or [default]
    ranked = sorted(every, key=lambda layout: (padded_bytes(layout), layout != default))
    return ArrayAnswer(
        default=Sized(default, padded_bytes(default)),
        best=tuple(Sized(layout, padded_bytes(layout)) for layout in ranked),
        unpadded=unpadded_bytes(shape),
        covered=factorial(len(shape.dims)) if len(every) > 1 else 1,
        given=Sized(shape, padded_bytes(shape)) if given else None,
    )


def best_tilings(choices: Sequence[tuple[Mapping[str, int], XlaLayout]], target: str) -> ArrayAnswer:
    """All choices of an array's tiles by the bytes they take. Raises LayoutError as `tpu_default` does.

    choices: the values of variables, and the layout with them. Whether the compiler takes a tile that it never gives
    by itself is not known before it is asked.

    >>> from layoutproof.layouts import xla
    >>> choices = [({"t": t}, xla.read(f"f32[4,300]{{1,0:T({t},128)}}")) for t in (2, 4, 8)]
    >>> [(dict(one.values), one.bytes) for one in best_tilings(choices, "v5e").best]
    [({'t': 4}, 6144), ({'t': 2}, 6144), ({'t': 8}, 12288)]
    """
    shape = choices[0][1]
    default = replace(tpu_default(replace(shape, tiles=()), target), memory_space=shape.memory_space)
    found = [Sized(layout, padded_bytes(layout), values) for values, layout in choices]
    found.sort(key=lambda one: (one.bytes, [-prod(tile) for tile in one.layout.tiles]))
    return ArrayAnswer(Sized(default, padded_bytes(default)), tuple(found), unpadded_bytes(shape), len(found))


def unpadded_bytes(shape: XlaLayout) -> int:
    """Bytes of the elements at the natural width of their type, as the compiler's reports count them."""
    count = 1
    for extent in shape.dims:
        count *= int(extent)
    return -(-count * ELEMENT_BITS[shape.element_type] // 8)


def shared_order(arrays: Mapping[str, tuple[XlaLayout, tuple[str, ...]]], target: str) -> SharedAnswer:
    """The one order of all names in which the arrays together take the fewest bytes.

    arrays: shape, and the name of each of its dimensions; a name has one extent everywhere. Built from the fastest
    name on: the cost of the remaining names depends only on the set of those before them, so only the best order of
    each set is kept (dynamic programming). Of equal orders the one nearest to row-major.
    Raises LayoutError for a name that one array has twice, Undecided above `MOST_NAMES` names.
    """
    names = tuple(dict.fromkeys(name for _, own in arrays.values() for name in own))
    names = names[::-1]
    _check(arrays, names)
    cost = _pair_costs(arrays, target)
    fixed = sum(padded_bytes(tpu_default(shape, target)) for shape, own in arrays.values() if _is_fixed(shape, own))
    held = {name: tuple(array for array, (s, own) in arrays.items() if name in own and not _is_fixed(s, own))
            for name in names}  # fmt: skip
    best: dict[int, tuple[int, tuple[int, ...]]] = {0: (fixed, ())}
    for present in range(1 << len(names)):
        so_far, order = best[present]
        for k, name in enumerate(names):
            if present >> k & 1:
                continue
            more = so_far
            for array in held[name]:
                before = [n for n in order if names[n] in arrays[array][1]]
                if len(before) == 1:
                    more += cost(array, names[before[0]], name)
            after = present | 1 << k
            if after not in best or (more, (*order, k)) < best[after]:
                best[after] = (more, (*order, k))
    total, order = best[(1 << len(names)) - 1]
    chosen = tuple(names[k] for k in order)
    layouts = {array: _ordered(shape, own, chosen, target) for array, (shape, own) in arrays.items()}
    apart = sum(best_layouts(shape, target).best[0].bytes for shape, _ in arrays.values())
    return SharedAnswer(chosen, layouts, total, apart, factorial(len(names)), 1 << len(names))


def _is_fixed(shape: XlaLayout, own: tuple[str, ...]) -> bool:
    """Whether the array takes the same bytes in every order."""
    return len(own) < 2 or 0 in shape.dims


def _check(arrays: Mapping[str, tuple[XlaLayout, tuple[str, ...]]], names: tuple[str, ...]) -> None:
    for array, (_, own) in arrays.items():
        for name in own:
            if own.count(name) > 1:
                raise LayoutError(problems.DIMENSION_TWICE(array, name))
    if len(names) > MOST_NAMES:
        raise BudgetExceeded(problems.TOO_MANY_NAMES(len(names), MOST_NAMES))


def _pair_costs(arrays: Mapping[str, tuple[XlaLayout, tuple[str, ...]]], target: str) -> Callable[[str, str, str], int]:
    """Bytes of an array from its fastest and its second name, each pair computed once."""
    known: dict[tuple[str, str, str], int] = {}

    def cost(array: str, minor: str, second: str) -> int:
        key = (array, minor, second)
        if key not in known:
            shape, own = arrays[array]
            known[key] = _ordered(shape, own, (minor, second), target).bytes
        return known[key]

    return cost


def _ordered(shape: XlaLayout, own: tuple[str, ...], order: tuple[str, ...], target: str) -> Sized:
    """The array with its dimensions in this order; names that `order` lacks come after it, row-major."""
    default = replace(tpu_default(shape, target), memory_space=shape.memory_space)
    if not _is_fixed(shape, own):
        first = [own.index(name) for name in order if name in own]
        rest = [d for d in reversed(range(len(own))) if d not in first]
        default = with_order(default, (*first, *rest), target)
    return Sized(default, padded_bytes(default))
