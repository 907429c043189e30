"""Who is asked in which order, what each answer means, and what is replayed: engines here say what a test has written.

`tests/questions/test_decide.py` asks as a user does; this states the rules of `solvers/decide.py` one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from layoutproof.core.budget import budget, spend
from layoutproof.core.claim import And, At, Claim, LexLess, NotExists, NotViolated, Outside, PlacePredicate
from layoutproof.core.errors import BudgetExceeded, InternalError, NotSmallest, Undecided, Unsupported
from layoutproof.core.index_map import IndexMap
from layoutproof.core.result import Point
from layoutproof.solvers import brute
from layoutproof.solvers.decide import (
    ENGINES,
    ENUMERATED,
    Decision,
    _attempts,
    _nobody_else,
    _replay,
    candidate_holds,
    decide,
    proves,
)
from tests.solvers.claims import N, box, covers, in_bounds, injective, mapping

Answer = Point | Exception | None

LINE = mapping((9,), lambda _, i: i % 6, (6,))
OVERLAP = injective(LINE)
"""Nine elements at six places: (0,) and (6,) are the first pair."""
FIRST, LATER, NONE = ({"first": (a,), "second": (b,)} for a, b in ((0, 6), (1, 7), (0, 1)))


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[tuple[str, float]]]:
    """Makes engines answer: `say({"isl.decide": point, ..})`; who is not named gives up. Returns who was asked."""

    def scripted(answers: Mapping[str, Answer]) -> list[tuple[str, float]]:
        asked: list[tuple[str, float]] = []

        def engine(name: str) -> Any:
            def method(function: str) -> Callable[[Claim, float], Point | None]:
                def answer(claim: Claim, effort: float = 1) -> Point | None:
                    full = f"{name}.{function}"
                    asked.append((full, effort))
                    said = answers.get(full, Unsupported(f"{full} gives up"))
                    if isinstance(said, Exception):
                        raise said
                    return said

                return answer

            names = ("decide", "few", "bounded_search", "growing", "smallest")
            return SimpleNamespace(
                **{function: method(function) for function in names},
                violates=brute.violates,
                proves=lambda claim, effort: method("proves")(claim, effort) is None,
                can_try_all=lambda claim, effort=1: True,
                is_matrix=lambda m: answers.get("matrices", False),
            )

        monkeypatch.setattr("layoutproof.solvers.decide._solver", engine)
        return asked

    return scripted


LIGHT = (
    *("digits.decide 1", "bits.decide 1", "brute.few 1", "isl.decide 1/30", "brute.bounded_search 1"),
    *("smt.decide 1/30", "isl.decide 1", "isl.growing 1", "sizes.smallest 1", "smt.decide 1", "sizes.smallest 30"),
    "brute.decide 1",
)
WITH_SIZES = tuple(name for name in LIGHT if name != "smt.decide 1/30")


def shown(engines: tuple[str, ...], light: bool, effort: float = 1) -> list[str]:
    found = []
    for name, function, share in _attempts(engines, effort, light):
        module = function.partition(".")[0] if "." in function else name
        part = f"{effort:g}/30" if share == effort / 30 else f"{share:g}"
        found.append(f"{module}.{function.rpartition('.')[2]} {part}")
    return found


def test_the_order_of_engines() -> None:
    """Few points before isl; a short try, a bounded search and a short try of z3 before a full one of isl."""
    assert shown(ENGINES, light=True) == list(LIGHT)
    assert shown(ENGINES, light=False) == list(WITH_SIZES)
    assert shown(ENGINES, light=False, effort=2) == [
        name.replace("30", "60") if name.endswith(" 30") else name.replace(" 1", " 2") for name in WITH_SIZES
    ]


def test_z3_is_tried_early_of_a_body_with_symbolic_sizes_and_not_of_a_layout(say: Any) -> None:
    """A claim about a body has a key."""
    symbolic = injective(mapping((N,), lambda _, i: i, (N,)))
    for claim, early in ((symbolic, False), (replace(symbolic, key="of a body"), True), (OVERLAP, True)):
        asked = say({})
        assert decide(claim).reason
        assert (("smt.decide", 1 / 30) in asked) is early


def test_what_no_further_point_undoes_goes_to_isl_for_longer_before_it_is_searched(say: Any) -> None:
    """Each point of a bounded search is a search by itself there."""
    nested = replace(OVERLAP, violation=And((OVERLAP.violation, NotExists({}, OVERLAP.violation))))
    for claim, before in ((OVERLAP, [1 / 30]), (nested, [1 / 30, 1 / 3])):
        asked = say({})
        assert decide(claim).reason
        searched = [name for name, _ in asked].index("brute.bounded_search")
        assert [effort for name, effort in asked[:searched] if name == "isl.decide"] == before


@pytest.mark.parametrize(
    ("engines", "expected"),
    [
        (("isl",), ["isl.decide 1", "isl.growing 1"]),
        (("smt",), ["smt.decide 1"]),
        (("brute",), ["brute.decide 1"]),
        (("digits", "smt"), ["digits.decide 1", "sizes.smallest 1", "smt.decide 1", "sizes.smallest 30"]),
        (
            ("isl", "brute"),
            [
                "brute.few 1",
                "isl.decide 1/30",
                "brute.bounded_search 1",
                "isl.decide 1",
                "isl.growing 1",
                "brute.decide 1",
            ],
        ),
        (("isl", "smt"), ["isl.decide 1", "isl.growing 1", "smt.decide 1"]),
    ],
)
def test_the_order_of_some_engines(engines: tuple[str, ...], expected: list[str]) -> None:
    """No other engine takes part than those that are asked for."""
    assert shown(engines, light=True) == expected


def test_the_first_that_decides_ends_it(say: Any) -> None:
    asked = say({"isl.decide": None})
    assert decide(OVERLAP) == Decision(None, "isl", "")
    assert [name for name, _ in asked] == ["digits.decide", "bits.decide", "brute.few", "isl.decide"]


def test_two_must_agree(say: Any) -> None:
    """Confirmed by the second engine, never by another try of the first."""
    asked = say({"isl.decide": FIRST, "isl.growing": LATER, "smt.decide": FIRST})
    assert decide(OVERLAP, confirm=True) == Decision(FIRST, "isl+smt", "")
    assert "isl.growing" not in [name for name, _ in asked]
    say({"isl.decide": FIRST, "smt.decide": LATER})
    with pytest.raises(InternalError, match=r"isl says .* and smt says"):
        decide(OVERLAP, confirm=True)


@pytest.mark.parametrize(("answer", "word"), [(FIRST, "refutes"), (None, "proves")])
def test_one_alone_confirms_nothing(say: Any, answer: Point | None, word: str) -> None:
    """Its own name is not among those that gave up."""
    say({"isl.decide": answer})
    found = decide(OVERLAP, confirm=True)
    assert found.point is None
    assert found.by == ""
    assert found.reason.startswith(f"only isl {word} it, no second engine confirms: digits: digits.decide gives up")
    assert "isl: " not in found.reason
    assert "without --confirm" in found.ways


def test_a_point_that_does_not_replay_is_told_and_passed_over(say: Any) -> None:
    asked = say({"digits.decide": NONE, "isl.decide": FIRST})
    found = decide(OVERLAP)
    assert (found.point, found.by, found.reason) == (FIRST, "isl", "")
    assert found.broken.startswith("digits: digits found")
    assert [name for name, _ in asked].count("digits.decide") == 1
    # nor is that engine asked in another way, and with nobody else it is our bug, told with what the others say
    asked = say({"isl.decide": NONE, "isl.growing": FIRST})
    with pytest.raises(InternalError, match=r"^isl: isl found .*; digits: digits.decide gives up"):
        decide(OVERLAP)
    assert "isl.growing" not in [name for name, _ in asked]


def test_what_is_a_matrix_of_bits_goes_to_bits_first(say: Any) -> None:
    """Among all engines; where some are asked for, those and no others."""
    asked = say({"matrices": True, "bits.decide": None})
    assert decide(OVERLAP)[1] == "bits"
    assert proves(OVERLAP)
    assert asked == [("bits.decide", 1)] * 2
    asked = say({"matrices": True, "isl.decide": None})
    assert decide(OVERLAP, ("isl",))[1] == "isl"
    assert [name for name, _ in asked] == ["isl.decide"]


def test_what_an_engine_said_before_it_answered_is_no_reason(say: Any) -> None:
    """Its second way proves it, or breaks: then only that is told."""
    say({"isl.growing": None})
    assert "isl.decide gives up" not in decide(OVERLAP, confirm=True).reason
    say({"isl.growing": NONE})
    with pytest.raises(InternalError) as error:
        decide(OVERLAP)
    assert "isl.decide gives up" not in str(error.value)
    assert "digits.decide gives up" in str(error.value)


def test_division_by_zero_is_a_reason(say: Any) -> None:
    say({"isl.decide": ZeroDivisionError()})
    assert "isl: the map divides by zero" in decide(OVERLAP).reason


def test_what_an_engine_says_itself_is_its_reason(say: Any) -> None:
    """What its other ways say counts only where it has said nothing."""
    say({"isl.decide": Unsupported("isl's own"), "isl.growing": Unsupported("growing's"), "brute.decide": None})
    assert decide(OVERLAP, ("isl",)).reason == "isl: isl's own"
    say({"sizes.smallest": Unsupported("of sizes"), "digits.decide": Unsupported("digits' own")})
    assert decide(OVERLAP, ("digits", "smt")).reason == "digits: digits' own; smt: smt.decide gives up"


def test_a_violation_that_may_not_be_the_smallest(say: Any) -> None:
    """It is kept, the smaller one of two, and shown where nobody decides; who decides has the last word."""
    say({"isl.decide": NotSmallest("steps", LATER), "smt.decide": NotSmallest("steps", FIRST)})
    assert decide(OVERLAP) == Decision(FIRST, "smt", "a violation, not shown to be the smallest within the step budget")
    say({"isl.decide": NotSmallest("steps", FIRST), "smt.decide": NotSmallest("steps", LATER)})
    assert decide(OVERLAP)[:2] == (FIRST, "isl")
    say({"isl.decide": NotSmallest("steps", LATER), "brute.decide": FIRST})
    assert decide(OVERLAP) == Decision(FIRST, "brute", "")
    say({"isl.decide": NotSmallest("steps", NONE)})
    with pytest.raises(InternalError, match="does not violate"):
        decide(OVERLAP)


def test_a_violation_that_nobody_can_replay_is_a_reason(monkeypatch: pytest.MonkeyPatch, say: Any) -> None:
    """It left the search as an error: `covers` of a sharding with sizes, a hole of which only z3 had an idea."""

    def unconfirmed(*_: Any) -> None:
        raise Unsupported("found a hole that no second engine confirms")

    monkeypatch.setattr("layoutproof.solvers.decide._replay", unconfirmed)
    say({"isl.decide": NotSmallest("steps", FIRST)})
    assert decide(OVERLAP, ("isl",))[:3] == (None, "", "isl: found a hole that no second engine confirms")
    say({"isl.decide": NotSmallest("steps", FIRST), "smt.decide": None})
    assert decide(OVERLAP)[:3] == (None, "smt", "")


def test_the_smaller_of_two_has_smaller_sizes(say: Any) -> None:
    """By the largest size first, then by the sizes in order, then by the points."""
    claim = in_bounds(mapping((N,), lambda _, i: i, (4,)))
    points = [{"sizes": (size,), "index": (index,)} for size, index in ((5, 4), (6, 4), (6, 5))]
    for k, small in enumerate(points):
        for large in points[k + 1 :]:
            for one, other in ((small, large), (large, small)):
                say({"isl.decide": NotSmallest("", one), "smt.decide": NotSmallest("", other)})
                assert decide(claim)[0] == small
    wide = in_bounds(mapping((N, N), lambda on, i, j: i + on.symbol("M") * 0, (0,)))
    sized = replace(wide, symbols=("N", "M"))
    rows = [{"sizes": sizes, "index": (0, 0)} for sizes in ((2, 1), (1, 3))]
    say({"isl.decide": NotSmallest("", rows[1]), "smt.decide": NotSmallest("", rows[0])})
    assert decide(sized)[0] == rows[0]


@pytest.mark.parametrize(("extent", "ends"), [(1 << 20, False), ((1 << 20) + 1, True)])
def test_a_violation_among_very_many_elements_is_shown_at_once(say: Any, extent: int, ends: bool) -> None:
    """Where growing found it, the others would labour for one that is smaller."""
    claim = in_bounds(mapping((extent,), lambda _, i: i, (1,)))
    asked = say({"isl.growing": NotSmallest("steps", {"index": (2,)}), "smt.decide": {"index": (1,)}})
    found = decide(claim, ("isl", "smt"))
    assert found[:2] == (({"index": (2,)}, "isl") if ends else ({"index": (1,)}, "smt"))
    assert ("smt.decide" in [name for name, _ in asked]) is not ends
    if ends:
        assert decide(claim, ("isl", "smt"), confirm=True).reason
        assert "smt.decide" in [name for name, _ in asked]


def test_a_spent_budget_is_a_reason_and_asks_nobody(say: Any) -> None:
    asked = say({"digits.decide": None})
    with budget(3):
        with pytest.raises(BudgetExceeded):
            spend(4)
        found = decide(OVERLAP)
    assert (found.point, found.by, asked) == (None, "", [])
    assert "the budget of 3 steps" in found.reason


def test_an_easier_claim_that_implies_this_one(say: Any) -> None:
    """Only its proof counts, by digits, with this claim's condition; not where engines or two of them are asked for."""
    easier = replace(OVERLAP, violation=OVERLAP.violation)
    claim = replace(OVERLAP, implied_by=easier)
    asked = say({"digits.decide": None})
    assert decide(claim) == Decision(None, "digits", "")
    assert proves(claim)
    assert asked == [("digits.decide", 1)] * 2
    for answer in (FIRST, Unsupported("no"), ZeroDivisionError(), InternalError("bug")):
        say({"digits.decide": answer, "isl.decide": FIRST})
        assert decide(claim, ("isl",))[0] == FIRST
        assert decide(claim)[0] == FIRST
    asked = say({"digits.decide": None})
    decide(claim, ("isl",))
    assert "digits.decide" not in [name for name, _ in asked]
    assert not proves(claim, ("isl",))
    assert decide(claim, confirm=True).reason


def test_what_may_settle_it(say: Any) -> None:
    """Steps help who ran out of them, numbers help with sizes, all engines help who asked for one."""
    say({})
    assert decide(OVERLAP).ways == "write the map without what the engines name"
    assert decide(OVERLAP, ("isl",)).ways == "ask every engine, without --engine"
    say({"isl.decide": BudgetExceeded("steps")})
    assert decide(OVERLAP).ways == "ask about fewer elements, or allow more steps (--effort 10)"
    sized = in_bounds(mapping((N,), lambda _, i: i, (4,)))
    assert decide(sized).ways == (
        "give numbers for N, or say what holds of them (--where), or allow more steps (--effort 10)"
    )
    say({"brute.few": BudgetExceeded("few"), "isl.growing": BudgetExceeded("growing")})
    assert "steps" in decide(OVERLAP).ways
    assert decide(OVERLAP, ("isl",)).ways == "ask every engine, without --engine"


def test_a_proof_alone_is_asked_for(say: Any) -> None:
    """No search for violations; isl and z3 are asked for a proof only; who gives up or breaks leaves it to the next."""
    asked = say({"brute.bounded_search": None, "smt.proves": None})
    assert proves(OVERLAP)
    assert "brute.bounded_search" not in [name for name, _ in asked]
    assert not {"smt.decide", "isl.decide"} & {name for name, _ in asked}
    for answer in (Unsupported("no"), ZeroDivisionError(), InternalError("bug")):
        say({"isl.proves": answer, "brute.decide": None})
        assert proves(OVERLAP)
    say({"isl.proves": FIRST, "brute.decide": None})
    assert not proves(OVERLAP)
    say({"digits.decide": FIRST, "brute.decide": None})
    assert not proves(OVERLAP)
    say({"smt.proves": FIRST, "brute.decide": None})
    assert not proves(OVERLAP)
    say({})
    assert not proves(OVERLAP)
    say({"digits.decide": None})
    assert not proves(OVERLAP, confirm=True)
    say({"digits.decide": None, "isl.decide": None})
    assert proves(OVERLAP, confirm=True)


def test_a_claim_with_a_key_is_asked_once_and_takes_the_same_steps_again(say: Any) -> None:
    """Whoever has it: with another key, or without one, it is asked again."""
    asked = say({"smt.proves": None})
    known = replace(OVERLAP, key="a claim that is asked once")
    left = []
    for claim in (known, replace(known), replace(known, key="another one"), OVERLAP, OVERLAP):
        with budget(1000) as mine:
            spend(1)
            assert candidate_holds(claim) == "smt"
            left.append((mine.left, len(asked)))
    assert [count for _, count in left] == [2, 2, 4, 6, 8]
    # without a budget nothing says what it took
    assert candidate_holds(known) == "smt"
    assert len(asked) == 10


def test_a_claim_with_a_key_is_decided_once_and_its_violation_replayed(say: Any) -> None:
    """In the same steps; what has words, or is asked without a budget, is asked again."""
    answers: dict[str, Answer] = {"isl.decide": FIRST}
    asked = say(answers)
    known = replace(OVERLAP, key="a claim that is decided once")
    left, counts = [], []
    for claim in (known, replace(known), replace(known, key="another that is decided")):
        with budget(1000) as mine:
            assert decide(claim) == Decision(FIRST, "isl", "")
            left.append(mine.left)
            counts.append(len(asked))
    assert left[0] == left[1] == left[2]
    assert counts == [counts[0], counts[0], 2 * counts[0]]
    # what is kept is not believed: a claim of the same key that holds there is our bug, and no refutation
    other = replace(injective(mapping((9,), lambda _, i: i, (9,))), key=known.key)
    with budget(1000), pytest.raises(InternalError):
        decide(other)
    decide(known)
    assert len(asked) > 2 * counts[0]
    answers.clear()
    for _ in range(2):
        before = len(asked)
        with budget(1000):
            assert decide(replace(OVERLAP, key="a claim that is open")).reason
        assert len(asked) > before


def test_steps_that_are_not_there_are_not_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that took 300 steps is none where 100 are left; one for want of steps is not kept."""

    def holds(claim: Claim, effort: float) -> bool:
        spend(300)
        return True

    engine = SimpleNamespace(proves=holds)
    monkeypatch.setattr("layoutproof.solvers.decide._solver", lambda name: engine)
    for key, steps in (("a claim for many steps", (1000, 1000, 100)), ("a claim for few", (100, 1000, 1000))):
        found = []
        for count in steps:
            with budget(count) as mine:
                found.append((candidate_holds(replace(OVERLAP, key=key)), mine.left))
        # two engines more are asked, in vain
        assert found == [("isl", 700) if count == 1000 else ("", count - 3 * 300) for count in steps]


def test_a_candidate_is_shown_by_isl_or_z3_and_refuted_by_whoever_sees_it_first(say: Any) -> None:
    say({"isl.proves": None})
    assert candidate_holds(OVERLAP) == "isl"
    asked = say({"isl.proves": FIRST, "smt.proves": None})
    assert candidate_holds(OVERLAP) == ""
    assert len(asked) == 1
    asked = say({"isl.proves": BudgetExceeded("steps"), "smt.proves": FIRST})
    assert candidate_holds(OVERLAP) == ""
    assert [name for name, _ in asked] == ["isl.proves", "smt.proves"]
    say({"smt.proves": None})
    assert candidate_holds(OVERLAP) == "smt"
    asked = say({})
    assert candidate_holds(OVERLAP) == ""
    assert asked[-1] == ("isl.proves", 1)
    # with size symbols, too, z3 is asked before isl labours
    asked = say({"isl.proves": BudgetExceeded("steps"), "smt.proves": FIRST})
    assert candidate_holds(injective(mapping((N,), lambda _, i: i, (N,)))) == ""
    assert [name for name, _ in asked] == ["isl.proves", "smt.proves"]


WIDE = mapping((400, 400), lambda _, i, j: i * 401 + j, (160_400,))
"""More elements than a hole is replayed with one by one: place 400 is free, place 401 is not."""


def test_a_hole_among_many_elements_is_confirmed_by_another_engine(say: Any) -> None:
    """That no element is there is asked of the others; an element there is our bug; silence leaves it open."""
    hole = {"place": (400,)}
    asked = say({"isl.decide": None})
    _replay(covers(WIDE), hole, "digits", 1)
    assert "digits.decide" not in [name for name, _ in asked]
    say({"isl.decide": {"element": (1, 0)}})
    with pytest.raises(InternalError, match=r"digits found \{'place': \(401,\)\}, which does not violate"):
        _replay(covers(WIDE), {"place": (401,)}, "digits", 1)
    say({})
    with pytest.raises(Unsupported, match=r"found a hole at \(400,\) that no second engine confirms"):
        _replay(covers(WIDE), hole, "digits", 1)
    # enumeration, which sorted the places, looks each element up once more
    asked = say({"brute.decide": None})
    _replay(covers(WIDE), hole, "brute", 1)
    assert [name for name, _ in asked] == ["brute.decide"]


@pytest.mark.parametrize(("extent", "many"), [(ENUMERATED, False), (ENUMERATED + 1, True)])
def test_how_many_elements_are_many(say: Any, extent: int, many: bool) -> None:
    """Replicas count: each has a place."""
    for m in (
        mapping((extent,), lambda _, i: i, (extent + 1,)),
        mapping((1,), lambda _, i, c: c, (extent + 1,), (extent,)),
    ):
        asked = say({"isl.decide": None})
        _replay(covers(m), {"place": (extent,)}, "digits", 1)
        assert bool(asked) is many


def further(condition: Callable[..., Any], extent: int = 20_000) -> Claim:
    """No further point p of a long box with condition(place of x, place of p)."""
    element, other = mapping((9,), lambda _, i: i, (9,)), mapping((extent,), lambda _, i: i, (extent,))
    inner = PlacePredicate((At(element, "x"), At(other, "p")), lambda at, on: condition(at[0][0], at[1][0], on))
    return Claim({"x": box(9)}, And((Outside(At(element, "x"), (3,)), NotExists({"p": box(extent)}, inner))))


def test_what_does_not_exist_is_asked_of_another_engine(say: Any) -> None:
    """More further points than are looked at: that there is none is z3's to say, or isl's of what z3 found."""
    claim = further(lambda x, p, on: on.equal(p, x + 30_000))
    point = {"x": (3,)}
    for engine, other in (("digits", "smt"), ("smt", "isl"), ("isl", "smt")):
        asked = say({f"{other}.decide": None})
        assert _nobody_else(claim, point, engine, 1)
        assert {name.partition(".")[0] for name, _ in asked} == {other}
        say({f"{other}.decide": {"pinned": (), "p": (7,)}})
        met = further(lambda x, p, on: on.equal(p, x + 4))
        assert not _nobody_else(met, point, engine, 1)
        say({})
        with pytest.raises(Unsupported, match="which no second engine confirms"):
            _nobody_else(claim, point, engine, 1)
    # what is said of the point itself is looked at first
    assert not _nobody_else(claim, {"x": (2,)}, "digits", 1)


def test_real_engines_say_that_nothing_exists() -> None:
    """The entries of the point are put into the formula: an equation with them has a solution or has none."""
    point = {"x": (3,)}
    assert _nobody_else(further(lambda x, p, on: on.equal(p, x + 30_000)), point, "isl", 1)
    assert not _nobody_else(further(lambda x, p, on: on.equal(p, x + 4)), point, "isl", 1)
    assert decide(further(lambda x, p, on: on.equal(p, x * 5000)), ("isl",))[:2] == ({"x": (4,)}, "isl")


def test_weaker_than_what_was_asked_settles_nothing(say: Any) -> None:
    """Within what does not exist, what does not exist in turn is left out: then a point that exists may be none."""
    plain = further(lambda x, p, on: on.equal(p, x + 4))
    assert isinstance(plain.violation, And)
    outside, nobody = plain.violation.parts
    assert isinstance(nobody, NotExists)
    nested = NotExists(nobody.points, And((nobody.formula, NotExists({"q": box(1)}, nobody.formula))))
    claim = replace(plain, violation=And((outside, nested)))
    say({"smt.decide": {"pinned": (), "p": (7,)}})
    with pytest.raises(Unsupported, match="one exists where its premises are left out"):
        _nobody_else(claim, {"x": (3,)}, "isl", 1)
    say({"smt.decide": None})
    assert _nobody_else(claim, {"x": (3,)}, "isl", 1)


def test_a_kept_claim_is_asked_of_the_others(say: Any) -> None:
    """A violation counts only where another claim is kept: proved by an engine that did not find it."""
    element = mapping((9,), lambda _, i: i, (9,))
    kept = in_bounds(mapping((30_000,), lambda _, i: i, (30_000,)))
    claim = Claim({"x": box(9)}, And((Outside(At(element, "x"), (3,)), NotViolated(kept))))
    asked = say({"isl.decide": None})
    assert _nobody_else(claim, {"x": (3,)}, "digits", 1)
    assert "digits.decide" not in [name for name, _ in asked]
    say({"isl.decide": {"index": (0,)}, "brute.few": {"index": (0,)}})
    broken = replace(kept, violation=Outside(At(mapping((30_000,), lambda _, i: i, (30_000,)), "index"), (0,)))
    assert not _nobody_else(
        replace(claim, violation=And((claim.violation.parts[0], NotViolated(broken)))), {"x": (3,)}, "smt", 1
    )  # type: ignore[union-attr]
    say({})
    with pytest.raises(Unsupported, match="no second engine says that the claim is kept"):
        _nobody_else(claim, {"x": (3,)}, "digits", 1)


def test_undecided_is_what_all_of_them_say() -> None:
    """Without scripts: an order that no engine knows as a formula is unknown, with each engine's own words."""
    odd = IndexMap(box(5), box(5), lambda x, c, on: (_refuse(),))
    found = decide(Claim({"first": box(5), "second": box(5)}, And((LexLess("first", "second"),))))
    assert found.point == {"first": (0,), "second": (1,)}
    found = decide(in_bounds(odd))
    assert found.point is None
    assert all(f"{name}: " in found.reason for name in ENGINES)


def _refuse() -> int:
    raise Undecided("nobody knows")
