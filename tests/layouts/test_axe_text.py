"""Reading, printing and refusing Axe layouts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given

import layoutproof as lp
from layoutproof.core.errors import LayoutError
from layoutproof.core.message import brief
from layoutproof.layouts import axe
from layoutproof.layouts.axe import AxeLayout, Swizzle
from tests.layouts.axe_at_random import layouts

SEED = """\
(   8       2       4       2   )   (   2    )
( 4@lane, 1@warp, 1@lane, 1@reg ) + ( 4@warp ) + 5@warp
(    2       32      2      64 )
( 1@gpuid, 128@m, 2@gpuid, 1@m )
(   2    128  512 )
( 512@F, 1@P, 1@F )
(    2      128     112  )
( 112@Col, 1@Lane, 1@Col )
"""
TEXTS = (
    "S[(8,2,4,2):(4@lane,1@warp,1@lane,1@reg)] + R[2:4@warp] + 5@warp",
    "S[(2,32,2,64):(1@gpuid,128@m,2@gpuid,1@m)]",
    "S[(2,128,512):(512@F,1@P,1@F)]",
    "S[(2,112,112):(112@Col,1@Lane,1@Col)]".replace("(2,112,112)", "(2,128,112)"),
)


def test_the_matrix_form_is_the_seeds() -> None:
    """The two lines of each of the four layouts that the project's seed prints, to the space."""
    printed = "\n".join(axe.read(text).matrix() for text in TEXTS) + "\n"
    assert printed == SEED


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_printed_reads_back(text: str) -> None:
    """Text, mapping and layout are one."""
    layout = axe.read(text)
    assert str(layout) == text
    mapping = {"D": [list(i) for i in layout.D], "R": [list(i) for i in layout.R], "O": dict(layout.O)}
    assert lp.read_layout({"axe": mapping}) == layout == lp.read_layout(text)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("S[8]", "S[8:1]"),
        ("S[(8,4,2)]", "S[(8,4,2):(8,2,1)]"),
        ("S[8:1@m]+R[2:4@m]+R[(2,3):(8,1)]", "S[8:1] + R[(2,2,3):(4,8,1)]"),
        (" S[ ( 8 , 4 ) : ( 4 @ lane , 1@lane ) ] - 3@m + 1", "S[(8,4):(4@lane,1@lane)] + -2@m"),
        ("S[(8,):(1,)] + -3", "S[8:1] + -3"),
        ("S[(N,M):(M,1)] + 2*N + 1 on (N,M)", "S[(N,M):(M,1)] + (2*N + 1) on (N,M)"),
        ("S[N*M:1@x] within ((N*M + 1)@x) on (N,M)", "S[M*N:1@x] on (N,M) within ((M*N + 1)@x)"),
        ("S[512:1] swizzle (3,3,3)", "S[512:1] swizzle (3,3,3)"),
        ("S[64:1] swizzle outer(0,3,3) on (8,8)", "S[64:1] swizzle outer (0,3,3) on (8,8)"),
        ("S[8:1@lane] within (32@lane,4)", "S[8:1@lane] within (32@lane,4@m)"),
    ],
)
def test_spellings(text: str, printed: str) -> None:
    """Short forms, blanks, signs and clauses in any order print in one form, which reads back to the same."""
    layout = axe.read(text)
    assert str(layout) == printed
    assert axe.read(printed) == layout


BAD_TEXTS: list[tuple[str, str, int]] = [
    ("S[(8,4):(1,)]", "S has 2 extents but 1 strides; each extent has one stride", 2),
    ("S[8:1]+S[4:1@laneid]", "axe.s_first()", 8),
    ("2 + R[8:1]", "axe.start()", 1),
    ("R[8:1] + S[4:1]", "axe.s_first()", 10),
    ("S[0:1]", "the extent 0 must be at least 1", 3),
    ("S[(8,-2):(1,1)]", "the extent -2 must be at least 1", 6),
    ("S[N - 1:1]", "the extent N - 1 must be at least 1 for all sizes", 3),
    ("S[8:1@]", "axe.axis_name(name='')", 5),
    ("S[8:1@2]", "axe.axis_name(name='2')", 5),
    ("S[8:]", "axe.number_missing()", 5),
    ("S[]", "axe.nothing()", 1),
    ("S[8:1", "core.not_closed(text='[')", 6),
    ("S[8:1)]", "core.closes_nothing(sign=')')", 6),
    ("S[8:1] +", "axe.summand_missing()", 9),
    ("S[8:1] - R[2:1]", "axe.subtracted(letter='R')", 10),
    ("S[8:1:2]", "axe.colon(letter='S')", 6),
    ("S[8:1] R[2:1]", "axe.plus_missing(letter='S')", 7),
    ("S[8:1.5]", "only + - * // % ^ min max select xor, comparisons, names and integers may stand here", 5),
    ("S[8:1] on (9)", "axe.shape_size(shape='(9)', count=9, layout='S[8:1]', size=8)", 11),
    ("S[8:1] on (8) on (8)", "axe.twice(word='on')", 15),
    ("S[8:1] within (0)", "the extent 0 must be at least 1", 16),
    ("S[8:1] within (8,9)", "axe.axis_extents(axis='m')", 18),
    ("S[8:1] swizzle (1,2)", "axe.swizzle_form()", 16),
    ("S[8:1] swizzle (1,3,2)", "axe.swizzle_values(swizzle='(1,3,2)')", 16),
    ("S[8:1@lane] swizzle (1,2,2)", "axe.swizzle_axis(others='lane')", 21),
]


@pytest.mark.parametrize(("text", "problem", "column"), BAD_TEXTS)
def test_bad_texts(text: str, problem: str, column: int) -> None:
    """Each says the value, the rule and the column."""
    with pytest.raises(LayoutError) as caught:
        axe.read(text)
    assert (brief(caught.value.problem), caught.value.column) == (problem, column)


BAD_MAPPINGS: list[tuple[Any, str]] = [
    ({"O": {}}, "axe.needs_d()"),
    ({"D": []}, "axe.nothing()"),
    ({"D": [[8]]}, "axe.iter_form(letter='D', entry='[8]')"),
    ({"D": [[8, 1, 5]]}, "axe.axis_text(value='5')"),
    ({"D": [[8, 1.5, "m"]]}, "axe.entry(name='D', value='1.5')"),
    ({"D": [[8, 1, "m"]], "Q": 1}, "axe.key(keys='D, R, O, shape, within, swizzle', key='Q')"),
    ({"D": [[8, 1, "m"]], "shape": [3]}, "axe.shape_size(shape='(3)', count=3, layout='S[8:1]', size=8)"),
    ({"D": [[8, 1, "m"]], "O": 3}, "axe.axis_mapping(name='O', value='3')"),
    (
        {"D": [[8, 1, "m"]], "swizzle": [1, 2]},
        "axe.swizzle_integers(swizzle='per_element, swizzle_len, atom_len', value='[1, 2]')",
    ),
    ({"kind": "compose"}, "axe.composed_tile()"),
    (7, "axe.form(layout='7')"),
]


@pytest.mark.parametrize(("value", "problem"), BAD_MAPPINGS)
def test_bad_mappings(value: Any, problem: str) -> None:
    """Each says what stands where and what may."""
    with pytest.raises(LayoutError) as caught:
        axe.read(value)
    assert brief(caught.value.problem) == problem


@given(layouts(swizzled=True))
def test_random_layouts_round_trip(layout: AxeLayout) -> None:
    """Text reads back to an equal layout, which has an equal hash."""
    again = axe.read(str(layout))
    assert again == layout
    assert hash(again) == hash(layout)


def test_replicas_are_a_multiset() -> None:
    """The order of R does not matter, how often an iter stands there does."""
    one, two = (2, 4, "w"), (3, 1, "w")
    shard = ((4, 1, "m"),)
    assert AxeLayout(shard, (one, two)) == AxeLayout(shard, (two, one))
    assert AxeLayout(shard, (one, one)) != AxeLayout(shard, (one,))


@pytest.mark.parametrize("text", ["S[8:1]", " S[(8,4):(4@a,1)]", "S[N:1] on (N)"])
def test_only_this_language_claims_its_texts(text: str) -> None:
    """Reading without a language name finds Axe; XLA shapes and maps stay theirs."""
    assert isinstance(lp.read_layout(text), AxeLayout)
    for other in ("f32[8]", "s8[8]{0}", "(i < 8) -> (i)", "f32[8] strides (1)"):
        assert not axe.looks_like(other)


def test_objects_of_tvm() -> None:
    """TVM's layouts are read by their attributes; anything not an integer is refused by name."""

    def it(extent: Any, stride: int, axis: str) -> SimpleNamespace:
        return SimpleNamespace(extent=extent, stride=stride, axis=SimpleNamespace(name=axis))

    class Axis:
        name = "m"

    tile = SimpleNamespace(shard=[it(512, 1, "m")], replica=[], offset={Axis(): 64})
    composed = SimpleNamespace(tile_layout=tile, per_element=3, swizzle_len=2, atom_len=3, swizzle_inner=False)
    assert axe.read(composed) == AxeLayout(((512, 1, "m"),), (), {"m": 64}, swizzle=Swizzle(3, 2, 3, outer=True))
    with pytest.raises(LayoutError, match="no integer"):
        axe.read(SimpleNamespace(shard=[it("n", 1, "m")], replica=[], offset={}))


@pytest.mark.parametrize(
    "broken",
    [
        {"shard": [SimpleNamespace(extent=4, stride=1)]},
        {"shard": [SimpleNamespace(extent=4.5, stride=1, axis=SimpleNamespace(name="m"))]},
        {"offset": None},
        {"shard": [SimpleNamespace(extent=4, stride=1, axis=SimpleNamespace(name="1x"))]},
    ],
)
def test_objects_that_only_resemble_tvm_are_bad_input(broken: dict[str, Any]) -> None:
    """A missing part, a fraction and a wrong name are refused, also below a swizzle; nothing is cut off in silence."""
    good = {"shard": [SimpleNamespace(extent=4, stride=1, axis=SimpleNamespace(name="m"))], "replica": [], "offset": {}}
    for wrong in (SimpleNamespace(**{**good, **broken}), SimpleNamespace(tile_layout=SimpleNamespace(**good))):
        with pytest.raises(LayoutError):
            axe.read(wrong)


@pytest.mark.parametrize("mapping", [{"D": [[4, 1, "m"]], "within": {}}, {"D": [[1, 1, "m"]], "shape": []}])
def test_empty_parts_of_a_mapping_read_back(mapping: dict[str, Any]) -> None:
    """No bounds at all are as good as none stated; a shape without dimensions is a scalar's."""
    layout = axe.read(mapping)
    assert axe.read(str(layout)) == layout
    assert str(axe.read("S[1:1] on ()")) == "S[1:1] on ()"


@pytest.mark.parametrize(
    ("value", "printed", "places"),
    [
        ("R[2:4@gpu]", "S[1:1@gpu] + R[2:4@gpu]", [{"gpu": 0}, {"gpu": 4}]),
        ("S[] + R[2:4@gpu] + 3@m", "S[1:1@gpu] + R[2:4@gpu] + 3@m", [{"gpu": 0, "m": 3}, {"gpu": 4, "m": 3}]),
        ("S[():()] + 3@m", "S[1:1] + 3", [{"m": 3}]),
        ({"axe": {"R": [[2, 1, "m"]]}}, "S[1:1] + R[2:1]", [{"m": 0}, {"m": 1}]),
        ({"axe": {"D": [], "R": [[2, 1, "m"]]}}, "S[1:1] + R[2:1]", [{"m": 0}, {"m": 1}]),
    ],
)
def test_one_element_with_replicas(value: Any, printed: str, places: list[dict[str, int]]) -> None:
    """A layout without D is one element: TVM makes and prints such ones, `T.TileLayout(T.R[2:4])`."""
    layout = lp.read_layout(value)
    assert str(layout) == printed
    assert lp.locate(layout, (0,)) == places
    assert lp.ask("same_map", layout, printed).verdict is lp.Verdict.PROVED
    fewer = "S[1:1@gpu]" if "gpu" in printed else "S[1:1]"
    assert lp.ask("refines", layout, fewer).verdict is lp.Verdict.REFUTED


def test_tvm_layouts_of_replicas_alone() -> None:
    """Where TVM is installed, its own object."""
    layout = pytest.importorskip("tvm.tirx.layout")
    alone = layout.TileLayout.from_iters([], [layout.Iter(2, 4, layout.Axis.get("m"))], {})
    assert str(lp.read_layout({"axe": alone})) == "S[1:1] + R[2:4]"
