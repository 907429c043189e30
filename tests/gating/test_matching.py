"""Matching: everything of both sides exactly once, identity before guesses, ambiguity never guessed silently."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from layoutproof.core.finding import Finding
from layoutproof.core.fingerprint import named
from layoutproof.gating.matching import Round, match

WORDS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), max_size=8)
ROUNDS: list[Round[tuple[str, int]]] = [
    Round(lambda t: t),
    Round(lambda t: t[0], match_heuristic="by letter"),
    Round(lambda t: t[1], match_heuristic="by number", ordered=False),
]


@given(WORDS, WORDS)
def test_everything_is_there_exactly_once(old: list[tuple[str, int]], new: list[tuple[str, int]]) -> None:
    """Nothing is lost and nothing is matched twice, whatever is there."""
    found = match(old, new, ROUNDS)
    assert sorted(m.old for m in found if m.old is not None) == sorted(old)
    assert [m.new for m in found if m.new is not None] == new
    assert all(m.old is not None or m.new is not None for m in found)


@given(WORDS)
def test_a_state_matches_itself_without_a_guess_by_key(both: list[tuple[str, int]]) -> None:
    """The first round matches all of it."""
    found = match(both, both, ROUNDS)
    assert [(m.old, m.new) for m in found] == [(x, x) for x in both]
    assert not any("by" in m.match_heuristic for m in found)


def test_several_alike_are_matched_in_order_and_it_is_said() -> None:
    """Two with one key on both sides: in their order, a guess; two against one: nothing."""
    (a, b) = match(["x1", "x2"], ["x3", "x4"], [Round(lambda t: t[0])])
    assert (a.old, a.new, a.match_heuristic) == ("x1", "x3", "2 alike, matched in their order")
    assert (b.old, b.new) == ("x2", "x4")
    assert [m.old for m in match(["x1", "x2"], ["x3"], [Round(lambda t: t[0])])] == [None, "x1", "x2"]
    assert [m.old for m in match(["x1", "x2"], ["x3", "x4"], [Round(lambda t: t[0], ordered=False)])][:2] == [
        None,
        None,
    ]


def test_fingerprints() -> None:
    """The same wherever the line stands; another for another text, file or subject; unique within a report."""
    base = Finding("moved", "layout a", "x", relpath="a.yaml", line=3, before="f32[2]", after="f32[3]")
    moved_down = Finding("moved", "layout a", "other words", relpath="a.yaml", line=9, before="f32[2]", after="f32[3]")
    others = [
        Finding("moved", "layout b", "x", relpath="a.yaml", before="f32[2]", after="f32[3]"),
        Finding("moved", "layout a", "x", relpath="b.yaml", before="f32[2]", after="f32[3]"),
        Finding("moved", "layout a", "x", relpath="a.yaml", before="f32[2]", after="f32[4]"),
        Finding("grew", "layout a", "x", relpath="a.yaml", before="f32[2]", after="f32[3]"),
    ]
    (one,), (other,) = named([base]), named([moved_down])
    assert one.fingerprint == other.fingerprint
    assert len({f.fingerprint for f in named([base, moved_down, *others])}) == 6
