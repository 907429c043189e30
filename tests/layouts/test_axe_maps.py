"""What Axe layouts are, decided by structure, against the same found by enumeration of every index and replica."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import layoutproof as lp
from layoutproof.algebra.axe.canonical_form import (
    axis_facts,
    canonical,
    fibers_disjoint,
    injective,
    replicas_distinct,
    same,
)
from layoutproof.algebra.axe.locate import backward, forward
from layoutproof.algebra.axe.tiling import span
from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.progressions import values
from layoutproof.layouts import axe
from layoutproof.layouts.axe import AxeLayout
from layoutproof.layouts.axe.layout import swizzled_bounds
from layoutproof.solvers.sumset import canonical_set, count, decompose, same_set
from tests.layouts.axe_at_random import layouts
from tests.oracles import axe_plain

pytestmark = pytest.mark.slow

FIG2 = "S[(8,2,4,2):(4@lane,1@warp,1@lane,1@reg)] + R[2:4@warp] + 5@warp on (8,16)"
progressions = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 9)), max_size=3)


@given(layouts(swizzled=True))
def test_canonical_keeps_the_map_and_is_idempotent(layout: AxeLayout) -> None:
    """Every index has the same set of places, and canonical forms stay."""
    form = canonical(layout)
    assert axe_plain.table(form) == axe_plain.table(layout)
    assert canonical(form) == form


@given(layouts(swizzled=True), layouts(swizzled=True))
def test_equality_is_equality_of_maps(left: AxeLayout, right: AxeLayout) -> None:
    """`same` is the comparison of all places; without swizzles equal canonical forms are too."""
    equal = axe_plain.table(left) == axe_plain.table(right)
    assert same(left, right) is equal
    if left.swizzle is None and right.swizzle is None:
        assert (canonical(left) == canonical(right)) is equal


@st.composite
def respelled(draw: st.DrawFn) -> tuple[AxeLayout, AxeLayout]:
    """A layout and the same map written otherwise: digits split, units put in, replicas' signs turned."""
    layout = draw(layouts())
    shard: list[Any] = []
    for extent, stride, axis in layout.D:
        part = draw(st.sampled_from([d for d in range(1, int(extent) + 1) if int(extent) % d == 0]))
        shard += [(int(extent) // part, stride * part, axis), (part, stride, axis)]  # type: ignore[operator]
        shard += [(1, draw(st.integers(-3, 3)), "other")] if draw(st.booleans()) else []
    replicas, offset = [], dict(layout.O)
    for extent, stride, axis in layout.R:
        if draw(st.booleans()):
            replicas.append((extent, stride, axis))
        else:
            replicas.append((extent, stride * -1, axis))  # type: ignore[operator]
            offset[axis] = offset.get(axis, 0) + stride * (extent - 1)  # type: ignore[operator]
    return layout, AxeLayout(tuple(shard), tuple(draw(st.permutations(replicas))), offset)


@given(respelled())
def test_equal_maps_have_one_canonical_form(pair: tuple[AxeLayout, AxeLayout]) -> None:
    """Splitting, units, signs and order of replicas are spelling; TVM's equality tells them apart."""
    assert same(*pair)
    assert canonical(pair[0]) == canonical(pair[1])


@given(layouts(swizzled=True))
def test_sharing_places(layout: AxeLayout) -> None:
    """Injective, disjoint fibers and distinct replicas, as the enumerated sets have it."""
    table = axe_plain.table(layout)
    places = [place for fiber in table for place in fiber]
    assert fibers_disjoint(layout) is (len(set(places)) == len(places))
    alone = AxeLayout(layout.D, (), layout.O, swizzle=layout.swizzle)
    assert injective(layout) is (len(set(axe_plain.table(alone))) == len(table))
    replicas = 1
    for extent, _, _ in layout.R:
        replicas *= int(extent)  # type: ignore[arg-type]
    assert replicas_distinct(layout) is (len(table[0]) == replicas)


@given(layouts())
def test_facts_of_axes(layout: AxeLayout) -> None:
    """Bounds, how many coordinates are used, and how many offsets the replicas give, per axis."""
    table = axe_plain.table(layout)
    for axis in layout.axes():
        used = {dict(place).get(axis, 0) for fiber in table for place in fiber}
        facts = axis_facts(layout, axis)
        assert (facts.low, facts.high, facts.image) == (min(used), max(used), len(used))
        assert facts.holes == facts.high - facts.low + 1 - len(used)
        assert facts.replicas == len({dict(place).get(axis, 0) for place in table[0]})


@given(layouts(swizzled=True))
def test_reach_of_swizzled_layouts(layout: AxeLayout) -> None:
    """The exact smallest and largest address after a swizzle."""
    assume(layout.swizzle is not None)
    used = {dict(place).get("m", 0) for fiber in axe_plain.table(layout) for place in fiber}
    assert swizzled_bounds(layout) == (min(used), max(used))
    assert span(layout, "m") == max(used) - min(used) + 1


@pytest.mark.parametrize("extent", [8, 9, 31, 32, 33, 100, 512, 700])
@pytest.mark.parametrize("swizzle", ["(0,3,3)", "outer (0,2,3)", "(1,2,3)", "outer (1,1,2)"])
def test_reach_in_closed_form(extent: int, swizzle: str) -> None:
    """Contiguous tiles of any size, where the closed form decides."""
    layout = axe.read(f"S[{extent}:1] swizzle {swizzle}")
    used = {dict(place).get("m", 0) for fiber in axe_plain.table(layout) for place in fiber}
    assert swizzled_bounds(layout) == (min(used), max(used))


@given(layouts(swizzled=True), st.data())
def test_forward_is_the_set_of_all_replicas(layout: AxeLayout, data: st.DataObject) -> None:
    """Every combination of replicas, each place once; TVM gives one, the blog's code pairs them wrongly."""
    index = data.draw(st.integers(0, int(layout.size()) - 1))
    found = forward(layout, (index,))
    assert len({axe_plain.point(place) for place in found}) == len(found)
    assert {axe_plain.point(place) for place in found} == axe_plain.places(layout, index)


@given(layouts(swizzled=True), st.data())
def test_backward_is_the_inverse_image(layout: AxeLayout, data: st.DataObject) -> None:
    """Exactly the indices and replicas at a place, in order; also at holes, with interleaved and negative strides."""
    place = {axis: data.draw(st.integers(-4, 20)) for axis in layout.axes()}
    wanted = []
    for index in range(int(layout.size())):
        for replica in itertools.product(*(range(int(e)) for e, _, _ in layout.R)):  # type: ignore[arg-type]
            offset = dict(layout.O)
            for digit, (_, stride, axis) in zip(replica, layout.R, strict=True):
                offset[axis] = offset.get(axis, 0) + digit * stride  # type: ignore[operator]
            one = AxeLayout(layout.D, (), offset, swizzle=layout.swizzle)
            if axe_plain.places(one, index) == {axe_plain.point(place)}:
                wanted.append(((index,), replica))
    assert backward(layout, place) == wanted


@given(layouts(swizzled=True), st.data())
def test_the_index_map_is_the_layout(layout: AxeLayout, data: st.DataObject) -> None:
    """`place` on ints, in any admitted shape, gives every replica's place, inside the range where none is below 0."""
    size = int(layout.size())
    first = data.draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0]))
    shape = (first, size // first)
    m = layout.on(shape).index_map()
    for index in axe_plain.box(shape):
        places = [m.at(index, replica) for replica in axe_plain.box(m.replicas.extents)]  # type: ignore[arg-type]
        named = {axe_plain.point(dict(zip(m.range.names, place, strict=True))) for place in places}
        assert named == axe_plain.places(layout, axe_plain.flat(index, shape))
        assert all(x < e for place in places for x, e in zip(place, m.range.extents, strict=True))  # type: ignore[operator]


@given(progressions, progressions)
def test_sums_of_progressions(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    """Counting, equality and the canonical list, against the listed sets."""
    sets = [values(each) for each in (left, right)]
    assert count(left) == len(sets[0])
    assert same_set(left, right) is (sets[0] == sets[1])
    assert (canonical_set(left) == canonical_set(right)) is (sets[0] == sets[1])
    assert values(canonical_set(left)) == sets[0]
    found = decompose(frozenset(sets[0]))
    assert found is not None
    assert values(found) == sets[0]


def test_the_papers_rule_c2_is_not_confluent() -> None:
    """Two saturated lists with the same sums: equal maps, one canonical form, which the paper's rules do not give."""
    one, other = axe.read("S[4:1] + R[(6,2):(2@a,3@a)]"), axe.read("S[4:1] + R[(3,4):(2@a,3@a)]")
    assert same(one, other)
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ("S[(n,k):(k,1)]", "S[k*n:1]", True),
        ("S[(n,k):(k,1)]", "S[n*k:2]", False),
        ("S[(N,4):(8,2)] + N@m", "S[4*N:2] + N@m", True),
        ("S[N:1] + R[2:N@w]", "S[N:1] + R[2:N@w]", True),
        ("S[N:1] + R[(2,2):(N@w,1@w)]", "S[N:1] + R[(2,2):(1@w,N@w)]", True),
        ("S[N:1]", "S[N:1] + N@w", False),
    ],
)
def test_equality_for_all_sizes(left: str, right: str, equal: bool) -> None:
    """True is for all sizes; False because some sizes tell them apart."""
    assert same(axe.read(left), axe.read(right)) is equal


def test_equality_says_when_it_cannot_tell() -> None:
    """Sizes whose difference no tried number shows are undecided, never guessed."""
    with pytest.raises(Undecided, match="cannot tell"):
        same(axe.read("S[4:1] + R[(N,2):(1@w,N@w)]"), axe.read("S[4:1] + R[2*N:1@w]"))


@pytest.mark.parametrize(
    ("index", "shape", "problem"),
    [
        ((7, 31), (8, 32), "the shape (8, 32) has 256 elements but the layout"),
        ((8, 0), (8, 16), "the index (8, 0) is outside the shape (8, 16)"),
        ((-1, 0), None, "the index (-1, 0) is outside the shape (8, 16)"),
        ((1,), None, "the index (1) has 1 entries but the shape (8, 16) 2"),
    ],
)
def test_nothing_wraps(index: tuple[int, ...], shape: tuple[int, ...] | None, problem: str) -> None:
    """Shapes that are not admitted and indices outside are refused; the blog's code and TVM take them."""
    with pytest.raises(LayoutError) as caught:
        forward(axe.read(FIG2), index, shape)
    assert caught.value.problem.startswith(problem)


def test_an_axis_that_is_not_there() -> None:
    """A place on an unknown axis is a slip, not an empty answer."""
    with pytest.raises(LayoutError, match="has no axis 'wrap'; it has lane, warp, reg"):
        backward(axe.read(FIG2), {"wrap": 5})


def test_a_trillion_elements() -> None:
    """Size does not matter: equality, sharing, places, and the unbounded integers that TVM's int32 are not."""
    big = axe.read("S[(1000000,1000000):(1000000,1)] on (1000000,1000000)")
    assert same(big, axe.read("S[1000000000000:1]"))
    assert fibers_disjoint(big)
    assert not fibers_disjoint(axe.read("S[(1000000,1000000):(999999,1)]"))
    assert forward(big, (999_999, 999_999)) == [{"m": 10**12 - 1}]
    assert backward(big, {"m": 10**12 - 1}) == [((999_999, 999_999), ())]
    assert canonical(axe.read("S[(65536,65536):(65536,1)]")).size() == 2**32


def test_engines_take_the_map() -> None:
    """The public questions about an Axe layout: where is (2, 9), and do elements collide?"""
    assert lp.locate(FIG2, (2, 9)) == [{"lane": 8, "warp": 6, "reg": 1}, {"lane": 8, "warp": 10, "reg": 1}]
    assert lp.ask("injective", FIG2).verdict is lp.Verdict.PROVED
    assert lp.ask("in_bounds", "S[(8,4):(4@lane,1@lane)] within (31@lane)").verdict is lp.Verdict.REFUTED
    assert lp.ask("injective", "S[(N,M):(M,1)] on (N,M)").verdict is lp.Verdict.PROVED
