"""Operations on Axe layouts against their defining equations, index by index."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from layoutproof.algebra.axe.canonical_form import canonical, fibers_disjoint, same, with_sizes
from layoutproof.algebra.axe.factories import tmem_datapath, to_psum, trainium
from layoutproof.algebra.axe.grouping import group, group_many, permute_by_groups, permute_dims
from layoutproof.algebra.axe.locate import forward
from layoutproof.algebra.axe.recognise import is_tile_inner, is_tile_outer
from layoutproof.algebra.axe.slices import slice_
from layoutproof.algebra.axe.sums import direct_sum, is_direct_sum_left, is_direct_sum_right
from layoutproof.algebra.axe.tiling import spans, tile, tile_to
from layoutproof.algebra.axe.width import broadcast, pack, storage, unpack
from layoutproof.core.errors import LayoutError, Reason
from layoutproof.core.size import symbol
from layoutproof.layouts import axe
from layoutproof.layouts.axe import AxeLayout, Swizzle
from tests.layouts.axe_at_random import layouts
from tests.oracles import axe_plain
from tests.oracles.axe_plain import Point

pytestmark = pytest.mark.slow

small = layouts(most=2)


def shifted(place: Point, other: Point, factor: dict[str, Any]) -> Point:
    """place * factor + other."""
    total = {axis: value * factor.get(axis, 1) for axis, value in place}
    for axis, value in other:
        total[axis] = total.get(axis, 0) + value
    return axe_plain.point(total)


def shapes(*each: AxeLayout) -> list[tuple[int, ...]]:
    """D's own extents as shapes, of one rank."""
    rank = max(len(layout.D) for layout in each)
    return [(1,) * (rank - len(a.D)) + tuple(int(e) for e, _, _ in a.D) for a in each]  # type: ignore[arg-type]


def combined(
    total: AxeLayout, left: AxeLayout, right: AxeLayout, parts: Sequence[tuple[int, ...]], factor: dict[str, Any]
) -> bool:
    """total(x || y) = left(x)*factor + right(y), everywhere."""
    shape = [a * b for a, b in zip(*parts, strict=True)]
    for x, y in itertools.product(*map(axe_plain.box, parts)):
        both = [a * e + b for a, b, e in zip(x, y, parts[1], strict=True)]
        lefts = axe_plain.places(left, axe_plain.flat(x, parts[0]))
        rights = axe_plain.places(right, axe_plain.flat(y, parts[1]))
        wanted = {shifted(a, b, factor) for a in lefts for b in rights}
        if axe_plain.places(total, axe_plain.flat(both, shape)) != wanted:
            return False
    return True


@given(small, small)
def test_tiles_and_their_recognition(outer: AxeLayout, inner: AxeLayout) -> None:
    """The defining equation holds with replicas, offsets and negative strides, and both parts are found again."""
    parts = shapes(outer, inner)
    tiled = tile(outer, parts[0], inner, parts[1])
    assert isinstance(tiled, AxeLayout)
    assert combined(tiled, outer, inner, parts, spans(inner))
    shape = [a * b for a, b in zip(*parts, strict=True)]
    assert tiled.shape == tuple(shape)
    found = is_tile_inner(inner, tiled, shape, parts[1])
    assert isinstance(found, AxeLayout)
    assert same(found, outer)
    found = is_tile_outer(outer, tiled, shape, parts[0])
    assert isinstance(found, AxeLayout)
    assert same(found, inner)
    if fibers_disjoint(outer) and fibers_disjoint(inner):
        assert fibers_disjoint(tiled)


@given(layouts(replicas=0), layouts(most=2, replicas=0), st.data())
def test_no_outer_layout_means_none(tiled: AxeLayout, inner: AxeLayout, data: st.DataObject) -> None:
    """When recognition refuses, no function times the span, or none that is digits, gives the tiled layout."""
    size, part = int(tiled.size()), int(inner.size())
    assume(size % part == 0)
    found = is_tile_inner(inner, tiled, (size,), (part,))
    width = spans(inner)
    values: list[Point] = []
    start = next(iter(axe_plain.places(inner, 0)))
    possible = True
    for x in range(size // part):
        here = dict(shifted(start, next(iter(axe_plain.places(tiled, x * part))), {axis: -1 for axis, _ in start}))
        possible &= all(value % width.get(axis, 1) == 0 for axis, value in here.items())  # type: ignore[operator]
        values.append(axe_plain.point({a: v // width.get(a, 1) for a, v in here.items()}))  # type: ignore[operator]
        for y in range(part):
            wanted = shifted(values[-1], next(iter(axe_plain.places(inner, y))), width)
            possible &= axe_plain.places(tiled, x * part + y) == {wanted}
    if isinstance(found, AxeLayout):
        assert axe_plain.table(found) == [{value} for value in values]
    else:
        assert not possible or not axe_plain.is_digits(values)


@given(small, small)
def test_direct_sums_and_their_recognition(left: AxeLayout, right: AxeLayout) -> None:
    """The defining equation holds, and what is recognised adds up to the same sum again."""
    parts = shapes(left, right)
    total = direct_sum(left, parts[0], right, parts[1])
    assert isinstance(total, AxeLayout)
    assert combined(total, left, right, parts, {})
    interleaved = [extent for pair in zip(*parts, strict=True) for extent in pair]
    found = is_direct_sum_right(right, total, interleaved, parts[1])
    assert isinstance(found, AxeLayout)
    assert same(direct_sum(found, parts[0], right, parts[1]), total)  # type: ignore[arg-type]
    found = is_direct_sum_left(left, total, interleaved, parts[0])
    assert isinstance(found, AxeLayout)
    assert same(direct_sum(left, parts[0], found, parts[1]), total)  # type: ignore[arg-type]


@given(layouts(swizzled=True), st.data())
def test_slices_of_one_dimension_are_exact(layout: AxeLayout, data: st.DataObject) -> None:
    """A slice is right at every index; where there is none, the values are no digits."""
    size = int(layout.size())
    begin = data.draw(st.integers(0, size - 1))
    end = data.draw(st.integers(begin + 1, size))
    found = slice_(layout, (size,), [(begin, end)])
    wanted = axe_plain.table(layout)[begin:end]
    if isinstance(found, AxeLayout):
        assert axe_plain.table(found) == wanted
        assert found.shape == (end - begin,)
    else:
        plain = AxeLayout(layout.D)
        assert not axe_plain.is_digits([next(iter(axe_plain.places(plain, x))) for x in range(begin, end)])


@given(layouts(most=4), st.data())
def test_slices_of_two_dimensions_are_right(layout: AxeLayout, data: st.DataObject) -> None:
    """Whatever box of whatever shape is sliced, a layout that comes back is the layout of that box."""
    size = int(layout.size())
    first = data.draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0]))
    shape = (first, size // first)
    begins = [data.draw(st.integers(0, extent - 1)) for extent in shape]
    region = [(b, data.draw(st.integers(b + 1, extent))) for b, extent in zip(begins, shape, strict=True)]
    found = slice_(layout, shape, region)
    if isinstance(found, AxeLayout):
        table = [
            axe_plain.places(layout, axe_plain.flat([b + u for u, (b, _) in zip(index, region, strict=True)], shape))
            for index in axe_plain.box([e - b for b, e in region])
        ]
        assert axe_plain.table(found) == table


@pytest.mark.parametrize(
    ("text", "begin", "end", "wanted"),
    [
        ("S[(4,4):(100,1)]", 2, 6, "S[(2,2):(98,1)] + 2"),
        ("S[(4,4):(100,1)]", 3, 6, None),
        ("S[(2,2,2):(7,5,1)]", 2, 6, "S[4:1] + 5"),
        ("S[(2,2,4):(1000,100,1)]", 6, 10, "S[(2,2):(898,1)] + 102"),
        ("S[(4,8):(1@a,1@b)]", 4, 12, None),
        ("S[(1000000,1000000):(3000000,1)]", 10**6, 10**12, "S[(999999,1000000):(3000000,1)] + 3000000"),
        ("S[(1000000,1000000):(3000000,1)]", 500_000, 1_500_000, "S[(2,500000):(2500000,1)] + 500000"),
    ],
)
def test_slices_by_hand(text: str, begin: int, end: int, wanted: str | None) -> None:
    """Wraps that carry once, accidental steps (5, 6, 7, 8), the paper's and TVM's wrong case, a trillion elements."""
    layout = axe.read(text)
    found = slice_(layout, (layout.size(),), [(begin, end)])
    assert (str(AxeLayout(found.D, found.R, found.O)) if isinstance(found, AxeLayout) else None) == wanted


@pytest.mark.parametrize("region", [(6, 12), (3, 3), (-1, 4), (5, 2)])
def test_slices_outside(region: tuple[int, int]) -> None:
    """Regions that leave the shape or hold nothing are refused by what is wrong."""
    with pytest.raises(LayoutError, match=r"is not within 0\.\.8"):
        slice_(axe.read("S[8:1]"), (8,), [region])


@pytest.mark.parametrize(
    ("text", "begin", "count", "exists"),
    [
        ("S[64:3] + 5", lambda n: n, 8, True),
        ("S[(16,4):(100,1)]", lambda n: 4 * n, 4, True),
        ("S[(16,4):(100,1)]", lambda n: 4 * n, 8, True),
        ("S[(16,4):(100,1)]", lambda n: 4 * n + 1, 3, True),
        ("S[(16,4):(100,1)]", lambda n: 2 * n, 2, True),
        ("S[(16,4):(100,1)]", lambda n: 4 * n + 1, 4, False),
        ("S[(16,4):(100,1)]", lambda n: n, 2, False),
        ("S[(4,4,4):(1@a,100,1)]", lambda n: 4 * n, 4, True),
        ("S[(4,4,4):(1@a,100,1)]", lambda n: 4 * n, 8, False),
        ("S[(4,4,4):(1@a,100,1)]", lambda n: 16 * n + 4, 8, True),
        ("S[(4,4,4):(1@a,100,1)]", lambda n: n, 1, True),
    ],
)
def test_slices_from_a_run_time_begin(text: str, begin: Any, count: int, exists: bool) -> None:
    """For every n that keeps the slice inside, the symbolic result with n put in is the layout of that box."""
    layout = axe.read(text)
    size = int(layout.size())
    start = begin(symbol("n"))
    found = slice_(layout, (size,), [(start, start + count)])
    assert isinstance(found, AxeLayout) is exists
    inside = [n for n in range(1, size) if begin(n) + count <= size]
    assert inside
    for n in inside if isinstance(found, AxeLayout) else ():
        wanted = [axe_plain.places(layout, x) for x in range(begin(n), begin(n) + count)]
        assert axe_plain.table(with_sizes(found, {"n": n})) == wanted


@given(layouts(most=4), st.data())
def test_groups(layout: AxeLayout, data: st.DataObject) -> None:
    """Grouping keeps the map and cuts at the shape; without one, some product of the shape splits no digit."""
    size = int(layout.size())
    first = data.draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0]))
    shape = (first, size // first)
    found = group(layout, shape)
    cuts = set(itertools.accumulate([int(e) for e, _, _ in reversed(layout.D)], initial=1, func=lambda a, b: a * b))  # type: ignore[arg-type]
    if isinstance(found, Reason):
        assert not any(a % shape[1] == 0 or shape[1] % a == 0 for a in cuts if a > 1) or shape[1] not in cuts
        below = max(c for c in cuts if c <= shape[1])
        above = min(c for c in cuts if c >= shape[1])
        assert shape[1] % below or above % shape[1]
        return
    grouped, seps = found
    assert axe_plain.table(grouped) == axe_plain.table(layout)
    for number, extent in enumerate(shape):
        assert math.prod(int(e) for e, _, _ in grouped.D[seps[number] : seps[number + 1]]) == extent  # type: ignore[arg-type]
    many = group_many(layout, [shape, (size,)])
    assert isinstance(many, tuple)
    assert axe_plain.table(many[0]) == axe_plain.table(layout)


@given(layouts(most=3), st.randoms(use_true_random=False))
def test_permuting_digits(layout: AxeLayout, random: Any) -> None:
    """result(digits in another order) = layout(digits)."""
    order = list(range(len(layout.D)))
    random.shuffle(order)
    permuted = permute_dims(layout, order)
    extents = [int(e) for e, _, _ in layout.D]  # type: ignore[arg-type]
    for digits in axe_plain.box(extents):
        there = axe_plain.flat([digits[k] for k in order], [extents[k] for k in order])
        assert axe_plain.places(permuted, there) == axe_plain.places(layout, axe_plain.flat(digits, extents))
    assert permute_by_groups(layout, range(len(order) + 1), order) == permuted


@given(layouts(swizzled=True), st.sampled_from((1, 2, 4)))
def test_unpacking_and_packing(layout: AxeLayout, number: int) -> None:
    """f'(number*x + r) = number*f(x) + r on m, other axes as before; packing undoes it."""
    wide = unpack(layout, number)
    for x, r in itertools.product(range(int(layout.size())), range(number)):
        wanted = {shifted(place, (("m", r),), {"m": number}) for place in axe_plain.places(layout, x)}
        assert axe_plain.places(wide, x * number + r) == wanted
    back = pack(wide, number)
    assert isinstance(back, AxeLayout)
    assert same(back, layout)


@pytest.mark.parametrize(
    ("text", "number", "why"),
    [
        ("S[(8,2):(3,1)]", 2, "the step 3@m is no multiple of 2"),
        ("S[8:2]", 2, "the fastest 2 elements are not side by side on axis m"),
        ("S[8:1] + 3", 2, "the offset 3@m is no multiple of 2"),
        ("S[8:1] + R[2:9]", 2, "the step 9@m is no multiple of 2"),
        ("S[9:1]", 2, "9 elements are no multiple of 2"),
        ("S[512:1] swizzle (0,3,3)", 2, "the swizzle (0,3,3) permutes within 2 elements, or 2 is no power of two"),
    ],
)
def test_packing_refuses(text: str, number: int, why: str) -> None:
    """What does not divide is said, where TVM rounds."""
    assert str(pack(axe.read(text), number)) == why


def test_storage() -> None:
    """What one owner holds; owners of other papers are known, unknown axes must be named."""
    fig2 = axe.read("S[(8,2,4,2):(4@lane,1@warp,1@lane,1@reg)] + R[2:4@warp] + 5@warp")
    assert str(storage(fig2)) == "S[2:1@reg]"
    assert str(storage(axe.read("S[(2,4):(1@q,1)]"))) == "whether q is memory is not known; name the memory axes"
    assert str(storage(axe.read("S[(2,4):(1@q,1)]"), memory={"q"})) == "S[2:1@q]"


@given(layouts(most=2, swizzled=True), st.integers(1, 3), st.integers(-2, 1))
def test_broadcast(layout: AxeLayout, number: int, position: int) -> None:
    """A digit that moves nothing, put where asked."""
    assume(-len(layout.D) - 1 <= position <= len(layout.D))
    wider = broadcast(layout, number, position)
    at = position if position >= 0 else len(layout.D) + 1 + position
    extents = [int(e) for e, _, _ in wider.D]  # type: ignore[arg-type]
    for digits in axe_plain.box(extents):
        rest = [*digits[:at], *digits[at + 1 :]]
        there = axe_plain.flat(rest, [*extents[:at], *extents[at + 1 :]])
        assert axe_plain.places(wider, axe_plain.flat(digits, extents)) == axe_plain.places(layout, there)


def test_swizzled_tiles_repeat_only_by_whole_windows() -> None:
    """A tile as wide as the window keeps the definition; a narrower one is refused (TVM swizzles tiles differently)."""
    atom = AxeLayout(((8, 8, "m"), (8, 1, "m")), swizzle=Swizzle(0, 3, 3))
    grid = axe.read("S[(2,3):(3,1)]")
    tiled = tile(grid, (2, 3), atom, (8, 8))
    assert isinstance(tiled, AxeLayout)
    assert combined(tiled, grid, atom, [(2, 3), (8, 8)], {"m": 64})
    found = is_tile_inner(atom, tiled, (16, 24), (8, 8))
    assert isinstance(found, AxeLayout)
    assert same(found, grid)
    narrow = AxeLayout(((4, 8, "m"), (8, 1, "m")), swizzle=Swizzle(0, 3, 3))
    assert "no multiple of the swizzle's window of 64" in str(tile(grid, (2, 3), narrow, (4, 8)))


@pytest.mark.parametrize(
    ("question", "why"),
    [
        (lambda: tile(axe.read("S[6:1]"), (6,), axe.read("S[(3,4):(4,1)]"), (3, 4)), "different ranks"),
        (lambda: tile_to(axe.read("S[8:1]"), (12,), (8,)), "8 does not divide 12"),
        (lambda: is_tile_inner(axe.read("S[8:1]"), axe.read("S[12:1]"), (12,), (8,)), "8 does not divide 12"),
        (lambda: group(axe.read("S[8:1]"), (3, 3)), "has 9 elements"),
        (lambda: group_many(axe.read("S[8:1]"), []), "at least one shape"),
        (lambda: permute_dims(axe.read("S[8:1]"), (1,)), "no permutation"),
        (lambda: permute_by_groups(axe.read("S[8:1]"), (0, 2), (0,)), "do not cut"),
        (lambda: direct_sum(axe.read("S[8:1]"), (8,), axe.read("S[8:1]"), (2, 4)), "different ranks"),
        (lambda: is_direct_sum_right(axe.read("S[8:1]"), axe.read("S[16:1]"), (8, 2), (8,)), "does not hold"),
        (lambda: slice_(axe.read("S[8:1]"), (8,), []), "0 ranges for the 1 dimensions"),
        (lambda: unpack(axe.read("S[8:1]"), 0), "at least 1"),
        (lambda: forward(axe.read("S[N:1]"), (0,)), "run-time size N"),
        (lambda: trainium("PX", (8, 8)), "one letter, P or F"),
        (lambda: trainium("P", (200,)), "200 partitions"),
        (lambda: tmem_datapath("D", 64, 64), "rows are known"),
    ],
)
def test_bad_input(question: Any, why: str) -> None:
    """Bad input is a LayoutError that says why, not a Reason and not a guess."""
    with pytest.raises(LayoutError, match=why):
        question()


def test_groups_that_cannot_be() -> None:
    """Alg. 3's interleaving is no tiling, incompatible boundaries are no refinement: reasons, not layouts."""
    interleaved, part = axe.read("S[(2,2,2):(100,102,1)]"), axe.read("S[(2,2):(100,1)]")
    assert isinstance(is_tile_inner(part, interleaved, (8,), (4,)), Reason)
    assert isinstance(group_many(axe.read("S[12:1]"), [(3, 4), (2, 6)]), Reason)
    assert isinstance(group(axe.read("S[12:1]"), (3, 4)), tuple)


def test_psum_banks() -> None:
    """The accumulator's banks hold 512 elements each, and there are eight."""
    assert str(trainium("PF", (128, 1024), psum=True)) == "S[(128,2,512):(1@P,1@Bank,1@F)] on (128,1024)"
    assert str(to_psum(axe.read("S[8192:1@F]"))) == "Bank goes up to 15, outside 0..7"
    assert str(to_psum(axe.read("S[600:1@F]"))) == "the digit (600, 1@F) straddles banks of 512 elements"


def test_operations_for_all_sizes() -> None:
    """Sizes stay symbols: tiling a column of N by tiles of 8 needs no number."""
    tiled = tile(axe.read("S[N:1]"), (symbol("N"),), axe.read("S[8:1]"), (8,))
    assert str(tiled) == "S[8*N:1] on (8*N)"
    found = is_tile_inner(axe.read("S[8:1]"), axe.read("S[8*N:1]"), (8 * symbol("N"),), (8,))
    assert str(found) == "S[N:1] on (N)"
    grouped = group(axe.read("S[8*N:1]"), (symbol("N"), 8))
    assert isinstance(grouped, tuple)
    assert str(grouped[0]) == "S[(N,8):(8,1)] on (N,8)"
    assert str(canonical(axe.read("S[(N,M):(M,1)]"))) == "S[M*N:1]"
