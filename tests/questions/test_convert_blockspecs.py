"""BlockSpecs in other languages: the elements that each program sees, one by one, or the reason why not."""

from __future__ import annotations

import itertools

import pytest

import layoutproof as lp
from layoutproof.registry.read import map_of, read_layout
from tests.said import Said, raises

CONVERTED = {
    ("f32[8,6] blockspec (2, 3) (i, j) -> (i, j) grid (4, 2)", "axe"): (
        "S[(4,2):(2@dim0,3@dim1)] + R[(2,3):(1@dim0,1@dim1)] on (4,2) within (8@dim0,6@dim1)"
    ),
    ("f32[8,6] blockspec (2, 3) (i, j) -> (j, i) grid (2, 4)", "cute"): "f32 (2,4,2,3):(3,12,6,1)",
    ("f32[8,6] blockspec (None, 3) (i, j) -> (i, j) grid (8, 2)", "strided"): "f32[8,2,3] strides (6,3,1) in 48",
    ("f32[8,6] blockspec (2, 3) (i, j, k) -> (i, j) grid (4, 2, 5)", "strided"): (
        "f32[4,2,5,2,3] strides (12,3,0,6,1) in 48"
    ),
    ("f32[8,6] blockspec (2, 3) (i, j) -> (i + 1, j) grid (3, 2)", "axe"): (
        "S[(3,2):(2@dim0,3@dim1)] + R[(2,3):(1@dim0,1@dim1)] + 2@dim0 on (3,2) within (8@dim0,6@dim1)"
    ),
    ("f32[8,6] blockspec (2, 3) (i, j) -> (i + 1, j) grid (3, 2)", "strided"): (
        "f32[3,2,2,3] strides (12,3,6,1) offset 12 in 48"
    ),
    ("f32[8,8] blockspec (2, 2) (i) -> (i, i) grid (4)", "cute"): "f32 (4,2,2):(18,8,1)",
    ("f32[16,6] blockspec (2, 6) (i) -> (i // 2 * 4 + i % 2, 0) grid (4)", "cute"): "f32 ((2,2),2,6):((12,48),6,1)",
    ("f32[7,6] blockspec (2, 3) (i, j) -> (i, j) grid (4, 2)", "axe"): (
        "S[(4,2):(2@dim0,3@dim1)] + R[(2,3):(1@dim0,1@dim1)] on (4,2) within (7@dim0,6@dim1)"
    ),
    ("f32[8*N,128] blockspec (8, 128) (i) -> (i, 0) grid (N)", "cute"): "f32 (N,8,128):(1024,128,1)",
}


@pytest.mark.parametrize(("text", "to"), CONVERTED)
def test_each_program_sees_the_same_elements(text: str, to: str) -> None:
    """In Axe as replicas of a program; in CuTe and with strides by the offset in the row-major array."""
    found = lp.convert(text, to)
    assert str(found) == CONVERTED[text, to]
    if map_of(found).sizes():
        return
    spec, other = map_of(read_layout(text)), map_of(found)
    _, columns = spec.range.extents
    for program in itertools.product(*[range(int(extent)) for extent in spec.domain.extents]):
        offsets = list(itertools.product(*[range(int(extent)) for extent in spec.replicas.extents]))
        elements = [spec.at(program, offset) for offset in offsets]
        if to == "axe":
            replicas = itertools.product(*[range(int(extent)) for extent in other.replicas.extents])
            named = [dict(zip(other.range.names, other.at(program, replica), strict=True)) for replica in replicas]
            assert sorted((at["dim0"], at["dim1"]) for at in named) == sorted(elements)
        else:
            assert [other.flat().at((*program, *offset))[0] for offset in offsets] == [
                row * int(columns) + column for row, column in elements
            ]


@pytest.mark.parametrize(
    ("text", "to", "reason"),
    [
        (
            "f32[8,8] blockspec (2, 2) (i) -> (i, i) grid (4)",
            "axe",
            Said("questions.to_axe_two_axes", axis="dim0", other="dim1"),
        ),
        (
            "f32[8,6] blockspec (2, 3) (i, j, k) -> (i, j) grid (4, 2, 5)",
            "axe",
            Said("questions.to_axe_index_still", name="k"),
        ),
        ("f32[7,6] blockspec (2, 3) (i, j) -> (i, j) grid (4, 2)", "cute", Said("questions.to_cute_past_array")),
        (
            "f32[N,128] blockspec (8, 128) (i) -> (i, 0) grid (cdiv(N, 8))",
            "strided",
            Said("questions.to_cute_past_array"),
        ),
        ("f32[8,6] blockspec (2, 3) (i, j) -> (min(i, 2), j) grid (4, 2)", "cute", Said("questions.offset_digits")),
        (
            "f32[16,6] blockspec (2, 6) (i) -> (i // 2 * 4 + i % 2, 0) grid (4)",
            "strided",
            Said("questions.to_strided_strides", dimension="i", strides=2),
        ),
    ],
)
def test_what_the_other_language_cannot_say(text: str, to: str, reason: Said) -> None:
    with raises(lp.LayoutError, reason):
        lp.convert(text, to)


def test_what_is_compared_is_the_specs_own_map(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proposal with one wrong stride is refused, with the element that shows it."""
    from layoutproof.questions.conversions import blockspec_to_strided

    wrong = read_layout("f32[4,2,2,3] strides (12,3,6,2) in 48")
    monkeypatch.setattr(blockspec_to_strided, "convert", lambda layout: wrong)
    with raises(
        lp.LayoutError,
        Said(
            "questions.nearest_differs",
            language="strided",
            layout="f32[4,2,2,3] strides (12,3,6,2) in 48",
            point="element=(0, 0, 0, 1)",
        ),
    ):
        lp.convert("f32[8,6] blockspec (2, 3) (i, j) -> (i, j) grid (4, 2)", "strided")
