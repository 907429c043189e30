"""What is at a place: elements, padding, holes, outside; exact counts; layouts too large to look at."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import layoutproof as lp
from layoutproof.core.errors import BudgetExceeded
from tests.questions import places_at_random
from tests.said import Said, raises

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SCORES = "f32[3,5]{1,0:T(2,2)}"
FIG2 = "S[(8,2,4,2):(4@lane,1@warp,1@lane,1@reg)] + R[2:4@warp] + 5@warp on (8,16)"


@pytest.mark.parametrize(
    ("layout", "place", "index"),
    [
        (SCORES, {"offset": 17}, (2, 3)),
        (SCORES, {"byte": 68}, (2, 3)),
        (SCORES, {"byte": 71, "bit": 7}, (2, 3)),
        (SCORES, {"p0": 1, "p1": 1, "p2": 0, "p3": 1}, (2, 3)),
        (FIG2, {"lane": 5, "warp": 6, "reg": 1}, (1, 11)),
        (FIG2, {"lane": 5, "warp": 10, "reg": 1}, (1, 11)),
        ("f32[4,5] sharded {devices=[2,2]0,3,2,1}", {"device": 2, "local_i": 1, "local_j": 2}, (3, 2)),
        # the second tile of device 2, whose shard begins at row 0 and column 64
        ("f32[64,128]{1,0:T(8,128)} sharded {devices=[2,2]<=[2,2]T(1,0)}", {"device": 2, "byte": 4096}, (8, 64)),
        ("Sw<3,3,3> o 0 o (8,64):(64,1)", {"offset": 77}, (1, 5)),
        ("f32[100,90] blockspec (10, 20) (i, j) -> (i, j) grid (10, 5)", {"dim0": 25, "dim1": 89}, (2, 4)),
        ({"linear": {"in": {"lane": [[1], [2], [5]]}, "out": {"dim0": 8}}}, {"dim0": 7}, (6,)),
        # more elements than anybody lists
        ("bf16[40960,1100800]{1,0:T(8,128)(2,1)}", {"offset": 17_000_000_001}, (15445, 455936)),
        ("Sw<3,3,3> o 0 o (32768,65536):(65536,1)", {"offset": 123_456_789}, (1883, 52533)),
        ("(i < 1000000000) -> (min(i, 10),)", {"p0": 3}, (3,)),
    ],
)
def test_one_element(layout: object, place: dict[str, int], index: tuple[int, ...]) -> None:
    """The element, and it is where `locate` says that it is."""
    found = lp.inverse(layout).at(place)
    assert (found.what, found.count, [held.index for held in found.elements]) == ("element", 1, [index])
    assert "p2" in place or found.elements[0].place in lp.locate(layout, index)


@pytest.mark.parametrize(
    ("layout", "place", "what", "dimensions", "reason"),
    [
        (SCORES, {"offset": 14}, "padding", ("i",), "dimension i of 3 is rounded up to 4"),
        (SCORES, {"offset": 9}, "padding", ("j",), "dimension j of 5 is rounded up to 6"),
        (SCORES, {"offset": 23}, "padding", ("i", "j"), "rounded up to 4 and dimension j"),
        (SCORES, {"offset": 24}, "outside", (), "offset is 0 to 23"),
        (SCORES, {"byte": 96}, "outside", (), "96 bytes"),
        ("f32[1,5]{1,0:T(8,128)}", {"offset": 128}, "padding", ("i",), "dimension i of 1 is rounded up to 8"),
        ("f32[3]{0:L(8)}", {"offset": 5}, "padding", (), "the tail is rounded up to 8"),
        (
            "f32[2,3,2]{2,1,0:T(*,*,5)}",
            {"offset": 13},
            "padding",
            ("i", "j", "k"),
            "together of 12 are rounded up to 15",
        ),
        ("f32[5] sharded {devices=[4]<=[4]}", {"device": 3}, "padding", ("i",), "dimension i of 5 is rounded up to 8"),
        (
            "f32[64,128]{1,0:T(8,128)} sharded {devices=[2,2]<=[2,2]T(1,0)}",
            {"device": 2, "offset": 64},
            "padding",
            ("j",),
            "in the shard, dimension j of 64",
        ),
        ("(i < 10) -> (i // 4, i % 4)", {"p0": 2, "p1": 3}, "padding", ("i",), "dimension i of 10 is rounded up to 12"),
        ("f32[3,5] strides (8,1)", {"offset": 6}, "hole", (), "no element"),
        (FIG2, {"warp": 7}, "hole", (), "no element"),
        (FIG2, {"lane": 32}, "outside", (), "lane is 0 to 31"),
    ],
)
def test_no_element(layout: str, place: dict[str, int], what: str, dimensions: tuple[str, ...], reason: str) -> None:
    """Padding with the dimensions that made it, a hole, or outside."""
    found = lp.inverse(layout).at(place)
    assert (found.what, found.dimensions, found.elements, found.count) == (what, dimensions, (), 0)
    assert reason in found.reason


@pytest.mark.parametrize("shape", [(3, 5), (8, 128), (1, 300), (17, 129)])
def test_padding_belongs_to_the_dimensions_that_are_cut(shape: tuple[int, int]) -> None:
    """One tile level, from its definition: the tile and the position within it say which row and column it is."""
    rows, columns = shape
    wide = -(-columns // 4)
    backwards = lp.inverse(f"f32[{rows},{columns}]{{1,0:T(2,4)}}")
    for offset in range(0, -(-rows // 2) * wide * 8, 7):
        tile, within = divmod(offset, 8)
        at = (tile // wide * 2 + within // 4, tile % wide * 4 + within % 4)
        found = backwards.at(offset=offset)
        beyond = tuple(name for name, entry, extent in zip("ij", at, shape, strict=True) if entry >= extent)
        assert found.dimensions == beyond
        assert [held.index for held in found.elements] == ([] if beyond else [at])


def test_collisions_and_replicas() -> None:
    """Several elements at one place collide; replicas of one element are told apart."""
    found = lp.inverse("f32[3,5] strides (4,1)").at(offset=4)
    assert [held.index for held in found.elements] == [(0, 4), (1, 0)]
    assert (found.what, found.count) == ("elements", 2)
    assert Said("questions.place_shared").of(found.reason)
    found = lp.inverse(FIG2).at(lane=5, reg=1)
    assert [(held.index, held.replica) for held in found.elements] == [
        ((1, 3), (0,)),
        ((1, 3), (1,)),
        ((1, 11), (0,)),
        ((1, 11), (1,)),
    ]
    assert (found.count, found.places, found.reason) == (2, 4, "")


def test_a_byte_that_elements_share() -> None:
    """Two elements of four bits in a byte, by bit and together; the other half may be padding."""
    backwards = lp.inverse("s4[3,5]{1,0:T(2,2)E(4)}")
    assert [held.index for held in backwards.at(byte=0).elements] == [(0, 0), (0, 1)]
    assert [held.index for held in backwards.at(byte=0, bit=4).elements] == [(0, 1)]
    half = backwards.at(byte=4)
    assert half.what == "element"
    assert Said("questions.byte_rest", what="padding").of(half.reason)


def test_all_are_counted_and_some_are_listed() -> None:
    """2**31 elements on a device: the count is exact, whatever is listed."""
    found = lp.inverse("f32[65536,131072] sharded {devices=[2,2]<=[4]}").at({"device": 1}, most=3)
    assert [held.index for held in found.elements] == [(0, 65536), (0, 65537), (0, 65538)]
    assert found.count == 2**31
    uneven = lp.inverse("f32[1000000007] sharded {devices=[8]<=[8]}").at({"device": 7}, most=0)
    assert uneven.count == 1000000007 - 7 * 125000001


def test_over_budget_is_unknown() -> None:
    """Never a guess: what no engine can list or count is Undecided, with the reason."""
    with pytest.raises(BudgetExceeded, match="at least 16 elements"):
        lp.inverse("(i < 100000000) -> (i * 7 % 10,)").at(p0=3)


@pytest.mark.parametrize(
    ("layout", "place", "message"),
    [
        (
            SCORES,
            {"ofset": 3},
            Said(
                "core.unknown_name",
                what="coordinate",
                word="ofset",
                rest=Said("core.did_you_mean", name="offset", known="offset, byte, bit, p0, p1, p2, p3"),
            ),
        ),
        (
            SCORES,
            {},
            Said(
                "questions.inverse_no_place",
                example="offset",
                layout="f32[3,5]{1,0:T(2,2)}",
                coordinates="offset, byte, bit, p0, p1, p2, p3",
            ),
        ),
        (SCORES, {"offset": 3, "byte": 12}, Said("questions.inverse_place_alone", name="offset")),
        (SCORES, {"bit": 3}, Said("questions.inverse_bit")),
        (SCORES, {"byte": 3, "bit": 8}, Said("questions.inverse_bit")),
        (SCORES, {"offset": 1.5}, Said("core.whole_number", name="offset", found="1.5")),
        (SCORES, {"offset": True}, Said("core.whole_number", name="offset", found=True)),
        (
            FIG2,
            {"byte": 3},
            Said(
                "questions.inverse_no_bytes",
                layout="S[(8,2,4,2):(4@lane,1@warp,1@lane,1@reg)] + R[2:4@warp] + 5@warp on (8,16)",
                coordinates="lane, warp, reg",
            ),
        ),
        (
            FIG2,
            {"lan": 3},
            Said(
                "core.unknown_name",
                what="coordinate",
                word="lan",
                rest=Said("core.did_you_mean", name="lane", known="lane, warp, reg"),
            ),
        ),
        ("f32[N]{0}", {"offset": 3}, Said("questions.inverse_without_value", layout="f32[N]{0}", size="N")),
    ],
)
def test_bad_places(layout: str, place: dict[str, int], message: Said) -> None:
    """A place that there is not is a LayoutError."""
    with raises(lp.LayoutError, message):
        lp.inverse(layout).at(place)


def test_random_places() -> None:
    """Of every language, against looking at every element; each kind of answer is met."""
    met: Counter[tuple[str, str]] = Counter()
    for number in range(150):
        for asked in places_at_random.ask(20261122, number):
            assert not asked.wrong, asked
            assert asked.found is not None, asked
            met[asked.language, asked.found.what] += 1
    assert len({language for language, _ in met}) == 9
    assert {what for _, what in met} == {"element", "elements", "padding", "hole", "outside"}


def test_there_and_back() -> None:
    """The inverse at each element's place is that element alone exactly where `injective` is proved."""
    for number in range(60):
        problem, _ = places_at_random.identity(7, number)
        assert not problem


@pytest.mark.parametrize(
    ("layout", "element", "condition"),
    [
        (
            SCORES,
            {"i": "offset // 12 * 2 + offset % 4 // 2", "j": "offset % 12 // 4 * 2 + offset % 2"},
            "i < 3 and j < 5",
        ),
        ("f32[N,M] strides (M,1)", {"i": "offset // M", "j": "offset % M"}, ""),
        ("f32[3,5] strides (-8,1)", {"i": "2 - offset // 8", "j": "offset % 8"}, "j < 5"),
        # strides that do not nest: 8 is no multiple of 3
        (
            "((2,3),4):((1,3),8)",
            {"i": "offset % 8 // 3 * 2 + offset % 8 % 3", "j": "offset // 8"},
            "its place is this one",
        ),
        (
            FIG2,
            {"i": "lane // 4", "j": "(warp - 5) % 4 * 8 + lane % 4 * 2 + reg"},
            "j < 16 and 0 <= r0 < 2",
        ),
        ("(i < N) -> (i // 8, i % 8) in [cdiv(N, 8), 8]", {"i": "p0 * 8 + p1"}, "i < N"),
    ],
)
def test_formulas(layout: str, element: dict[str, str], condition: str) -> None:
    """The element as digits of the coordinates, for all sizes, and where there is one."""
    found = lp.inverse(layout).formula()
    assert (found.element, found.condition) == (element, condition)
    assert found.decided_by == "digits"


def test_formula_for_any_tile() -> None:
    """Tiles of any size: the inverse is a sum of products, and holds for all of them."""
    found = lp.inverse("f32[N,M]{1,0:T(a,b)}").formula("p0", "p1", "p2", "p3")
    assert found.element == {"i": "p0 * a + p2", "j": "p1 * b + p3"}
    assert found.condition == "i < N and j < M"


@pytest.mark.parametrize(
    ("layout", "reason"),
    [
        ("f32[3,5] strides (4,1)", Said("questions.formula_digits", dimension="i")),
        (
            "S[(8,64):(64,1)] swizzle (3,3,3) on (8,64)",
            Said("questions.formula_undecided", reason="digits have no exclusive or"),
        ),
        ("f32[0,5]{1,0}", Said("questions.formula_of_no_element")),
    ],
)
def test_without_a_formula(layout: str, reason: Said) -> None:
    """Where there is none the reason is given, and nothing is guessed."""
    with raises(lp.Undecided, reason):
        lp.inverse(layout).formula()


def test_a_wrong_formula_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engines refute a formula that is not the inverse: the tile's rows and columns exchanged."""
    from layoutproof.core.errors import InternalError
    from layoutproof.questions import inverse_formula

    right = inverse_formula.inverse_terms
    swapped = lambda m, names: right(m, [names[1], names[0], *names[2:]])  # noqa: E731
    monkeypatch.setattr(inverse_formula, "inverse_terms", swapped)
    with pytest.raises(InternalError, match="is wrong at"):
        lp.inverse("f32[32,512]{1,0:T(8,128)}").formula("p0", "p1", "p2", "p3")


def test_random_formulas() -> None:
    """The text of each formula, evaluated by Python at every place, with sizes put in; most layouts have one."""
    found = 0
    for number in range(150):
        problem, there = places_at_random.formula(20261122, number)
        assert not problem
        found += there
    assert found > 70


def test_wrong_answers_are_noticed() -> None:
    """An answer with an element missing, moved, or counted twice contradicts what looking at every element says."""
    m = places_at_random.xla(random.Random(3)).rule({})
    right = lp.inverse(SCORES).at(offset=17)
    rows = [((2, 3), ())]
    assert not places_at_random.disagreement(right, rows, m, {"offset": 17}, 9)
    moved = replace(right.elements[0], index=(2, 4))
    for wrong in (
        replace(right, elements=()),
        replace(right, elements=(moved,)),
        replace(right, count=2),
        replace(right, what="padding"),
    ):
        assert places_at_random.disagreement(wrong, rows, m, {"offset": 17}, 9)


def test_the_command_of_many_questions() -> None:
    """It prints the counts by language, and 0 where nothing disagrees."""
    command = [sys.executable, str(ROOT / "benchmarks" / "inverse.py"), "--questions", "60", "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "seed 3: 60 questions" in done.stdout
    assert ", 0 disagreements" in done.stdout
