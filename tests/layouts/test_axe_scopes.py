"""Fusing and splitting thread axes with their bounds, and what makes a layout ill-formed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutproof.algebra.axe.scopes import EXTENTS, FUSIONS, align, fuse, fuse_all, same_threads, split
from layoutproof.algebra.axe.wellformed import is_trainium, problems, scope_of
from layoutproof.layouts import axe
from layoutproof.layouts.axe import AxeLayout
from layoutproof.layouts.axe.swizzle import swizzled
from tests.oracles import axe_plain

pytestmark = pytest.mark.slow


@st.composite
def threads(draw: st.DrawFn, axes: tuple[str, ...]) -> AxeLayout:
    """Powers of two on thread axes, with replicas and offsets; sometimes beyond what the axis has."""
    strides = st.sampled_from((1, 2, 4, 16, 32, 64, 128))
    iters = st.lists(st.tuples(st.sampled_from((1, 2, 4, 8)), strides, st.sampled_from(axes)), min_size=1, max_size=3)
    offset = draw(st.dictionaries(st.sampled_from(axes), st.integers(0, 40), max_size=1))
    return AxeLayout(tuple(draw(iters)), tuple(draw(iters)[:1]), offset)


@pytest.mark.parametrize("fusion", FUSIONS)
@given(data=st.data())
def test_fusing_is_a_bijection_of_places(fusion: tuple[str, str, str, int], data: st.DataObject) -> None:
    """Every place becomes factor*high + low and can be told back; otherwise the low part is shown out of bounds."""
    whole, high, low, factor = fusion
    layout = data.draw(threads((high, low)))
    fused = fuse(layout, high, low)
    pairs = [[(dict(p).get(high, 0), dict(p).get(low, 0)) for p in fiber] for fiber in axe_plain.table(layout)]
    if isinstance(fused, AxeLayout):
        wanted = [{axe_plain.point({whole: factor * a + b}) for a, b in fiber} for fiber in pairs]
        assert axe_plain.table(fused) == wanted
        assert all(0 <= b < factor for fiber in pairs for _, b in fiber)
    else:
        assert any(not 0 <= b < factor for fiber in pairs for _, b in fiber)


@pytest.mark.parametrize("fusion", FUSIONS)
@given(data=st.data())
def test_splitting_is_division(fusion: tuple[str, str, str, int], data: st.DataObject) -> None:
    """Every place becomes (whole // factor, whole % factor), and fusing gives the layout back."""
    whole, high, low, factor = fusion
    layout = data.draw(threads((whole,)))
    parts = split(layout, high, low)
    if isinstance(parts, AxeLayout):
        for fiber, found in zip(axe_plain.table(layout), axe_plain.table(parts), strict=True):
            numbers = [dict(place).get(whole, 0) for place in fiber]
            assert found == {axe_plain.point({high: n // factor, low: n % factor}) for n in numbers}
        if {high, low} <= {axis for extent, stride, axis in (*parts.D, *parts.R) if extent > 1 and stride}:  # type: ignore[operator]
            assert same_threads(parts, layout) is True


@pytest.mark.parametrize(
    ("text", "fused"),
    [
        ("S[(2,2,8,4):(2@wgid,1@wid_in_wg,4@laneid,1@laneid)]", "S[(2,64):(256@tx,1@tx)]"),
        ("S[(2,4):(1@wgid,1@wid_in_wg)]", "S[8:1@warpid]"),
        ("S[4:1@laneid] + 3@laneid + 1@wid_in_wg", "S[4:1@tid_in_wg] + 35@tid_in_wg"),
        (
            "S[(2,64):(1@warpid,1@laneid)]",
            "laneid goes from 0 to 63, so 32*warpid + laneid would join different places",
        ),
        ("S[(2,4):(1@bx,1@tx)]", "S[(2,4):(1@bx,1@tx)]"),
    ],
)
def test_fusing_everything(text: str, fused: str) -> None:
    """All pairs, in any nesting, offsets included; TVM overwrites offsets, keeps wgid, and loops on bx with tx."""
    found = fuse_all(axe.read(text))
    assert str(found) == fused
    if isinstance(found, AxeLayout):
        assert fuse_all(found) == found


def test_equal_up_to_thread_axes() -> None:
    """tx and (warpid, laneid) are one; what cannot be fused is a reason."""
    lanes = axe.read("S[(2,8,2,4):(2@warpid,4@laneid,1@warpid,1@laneid)]")
    assert same_threads(lanes, axe.read("S[(2,8,2,4):(64@tx,4@tx,32@tx,1@tx)]")) is True
    assert same_threads(lanes, axe.read("S[128:1@tx]")) is False
    assert not isinstance(same_threads(axe.read("S[(2,64):(1@warpid,1@laneid)]"), lanes), bool)


def test_common_thread_axes() -> None:
    """A part on warps and lanes is fused for a layout on threads, a part on lanes alone splits the layout."""
    whole = axe.read("S[(2,32):(32@tx,1@tx)]")
    both = align(axe.read("S[(2,32):(1@warpid,1@laneid)]"), whole)
    assert [str(each) for each in both] == ["S[64:1@tx]", str(whole)]  # type: ignore[union-attr]
    assert not isinstance(align(axe.read("S[2:1@laneid]"), axe.read("S[3:20@tx]")), tuple)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("S[(8,4,2):(4@laneid,1@laneid,1)]", []),
        ("S[(8,4,2):(4@laneid,1@laneid,1)] + R[2:1@warpid]", []),
        ("S[(4,4):(1,1)]", ["two elements share a place"]),
        ("S[4:1] + R[4:1]", ["a replica of one element is at the place of another element"]),
        ("S[4:1] + R[(2,3):(2@gpuid,2@gpuid)]", ["two replicas of an element are at one place"]),
        ("S[64:1@laneid]", ["laneid goes from 0 to 63, outside 0..31"]),
        ("S[4:1] + -2", ["m goes from -2 to 1, below 0"]),
        ("S[4:1@q] within (3@q)", ["q goes from 0 to 3, outside 0..2"]),
        ("S[(2,32):(1@wgid,1@laneid)]", ["the scopes of wgid, laneid do not connect"]),
        ("S[(2,2,4):(1@bx,1@cbx,1)]", ["cbx numbers the ctas of a cluster, but another axis those of a kernel"]),
        ("S[(2,64):(1@bx,1@tx)]", []),
    ],
)
def test_what_is_wrong(text: str, found: list[str]) -> None:
    """Each problem in words; TVM's verify_well_formed takes all but the scope chain."""
    assert [str(problem) for problem in problems(axe.read(text))] == found


def test_scopes() -> None:
    """The innermost and the outermost scope that a layout's thread axes connect."""
    assert scope_of(axe.read("S[(2,4):(1@wid_in_wg,1@laneid)]")) == ("thread", "warpgroup")
    assert scope_of(axe.read("S[(2,2):(1@bx,1@tx)]")) == ("thread", "kernel")
    assert scope_of(axe.read("S[8:1]")) is None
    assert is_trainium(axe.read("S[(2,8):(1@laneid,1@P)]"))
    assert EXTENTS["laneid"] == 32


def test_bank_conflicts_of_a_swizzled_column() -> None:
    """fp16 (8, 64) with (3,3,3): column 0 in eight banks 0, 4, .., 28; without the swizzle in one."""
    layout = axe.read("S[(8,64):(64,1)] swizzle (3,3,3)")
    assert layout.swizzle is not None
    addresses = [swizzled(64 * row, layout.swizzle) for row in range(8)]
    assert [address * 2 // 4 % 32 for address in addresses] == [0, 4, 8, 12, 16, 20, 24, 28]
    assert {64 * row * 2 // 4 % 32 for row in range(8)} == {0}
