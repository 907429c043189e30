"""Enumeration: the meaning of a claim, point by point."""

from __future__ import annotations

import pytest

from layoutproof.core.claim import Claim, SizeCondition, Uncovered
from layoutproof.core.errors import Undecided
from layoutproof.core.expression import parse_condition
from layoutproof.solvers import brute
from tests.solvers.claims import M, N, covers, in_bounds, injective, mapping, same, tiled


def test_row_major_is_injective_and_a_short_stride_is_not() -> None:
    """Strides (5,1) give every element of 3x5 its own place; strides (4,1) do not, first at (0,4) and (1,0)."""
    assert brute.decide(injective(mapping((3, 5), lambda _, i, j: 5 * i + j))) is None
    short = injective(mapping((3, 5), lambda _, i, j: 4 * i + j))
    assert brute.decide(short) == {"first": (0, 4), "second": (1, 0)}


def test_covers_finds_the_first_hole() -> None:
    """Seven elements in eight places leave exactly the last one empty."""
    assert brute.decide(covers(mapping((8,), lambda _, i: i, (8,)))) is None
    assert brute.decide(covers(mapping((7,), lambda _, i: i, (8,)))) == {"place": (7,)}


def test_replicas_share_a_place() -> None:
    """Two replicas of two elements at i + c collide at 1; at 2*c + i they do not."""
    overlap = injective(mapping((2,), lambda _, i, c: i + c, (3,), replicas=(2,)))
    assert brute.decide(overlap) == {"first": (0,), "second": (1,), "replica1": (1,), "replica2": (0,)}
    assert brute.decide(injective(mapping((2,), lambda _, i, c: 2 * c + i, (4,), replicas=(2,)))) is None


def test_symbolic_sizes_are_refuted_smallest_first_and_proved_where_all_were_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The smallest maximum comes first, then the lexicographic order; a true claim of too many sizes is undecided."""
    refuted = in_bounds(mapping((N, M), lambda _, i, j: i + j, (4,)))
    assert brute.decide(refuted) == {"sizes": (3, 3), "index": (2, 2)}
    monkeypatch.setattr(brute, "CAP_SYMBOLIC", 5000)
    assert brute.decide(in_bounds(mapping((N,), lambda _, i: i, (N,)), where="N <= 40")) is None
    assert brute.decide(in_bounds(mapping((N,), lambda _, i: i, (40,)), where="N <= 41")) == {
        "sizes": (41,),
        "index": (40,),
    }
    for where in ("N <= 4000", "N >= 2", "N % 40 < 9", "N <= 4 or N >= 10"):
        with pytest.raises(Undecided, match="sizes N are symbolic"):
            brute.decide(in_bounds(mapping((N,), lambda _, i: i, (N,)), where=where))


def test_trying_sizes_gives_up_soon() -> None:
    """What trying can never prove is given up after seconds: at most 200,000 places are worked out."""
    looked: list[int] = []

    def place(_: object, i: int) -> int:
        looked.append(i)
        return i

    with pytest.raises(Undecided):
        brute.decide(in_bounds(mapping((N,), place, (N,))))
    assert len(looked) <= 200_000


def test_looking_for_holes_gives_up_soon() -> None:
    """Many elements on few places: not only the places are counted, also the elements that may hold them."""
    looked: list[int] = []

    def place(_: object, i: int, j: int, k: int) -> int:
        looked.append(i)
        return j + k

    few = mapping((N, M, M), place, (2 * M - 1,))
    with pytest.raises(Undecided):
        brute.decide(Claim({"place": few.range}, Uncovered(few, "place"), symbols=("N", "M")))
    assert len(looked) <= 200_000


def test_contradictory_conditions_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A condition that no size satisfies ends as undecided, not in an endless search."""
    monkeypatch.setattr(brute, "CAP_SYMBOLIC", 5000)
    with pytest.raises(Undecided, match="symbolic"):
        brute.decide(in_bounds(mapping((N,), lambda _, i: i, (1,)), where="N < 1"))


def test_the_cap_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the cap the answer is undecided; exactly at the cap it is proved; a violation before it is still found."""
    monkeypatch.setattr(brute, "CAP", 12)
    assert brute.decide(in_bounds(mapping((12,), lambda _, i: i, (12,)))) is None
    with pytest.raises(Undecided, match="12 combinations"):
        brute.decide(in_bounds(mapping((13,), lambda _, i: i, (13,))))
    assert brute.decide(in_bounds(mapping((10**9, 10**9), lambda _, _i, j: j, (4,)))) == {"index": (0, 4)}


def test_out_of_reach_only_the_first_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """More points than the cap prove nothing, so fewer are looked at: a violation further on stays undecided."""
    monkeypatch.setattr(brute, "CAP_SYMBOLIC", 10)
    monkeypatch.setattr(brute, "CAP", 100)
    monkeypatch.setattr(brute, "BY_HAND", 1000)
    late = mapping((101,), lambda _, i: i, (20,))
    with pytest.raises(Undecided, match="more than 100 combinations"):
        brute.decide(in_bounds(late))
    assert brute.decide(in_bounds(mapping((100,), lambda _, i: i, (20,)))) == {"index": (20,)}


def test_division_by_zero_is_undecided() -> None:
    """A map that divides by zero is nobody's verdict."""
    with pytest.raises(Undecided, match="zero"):
        brute.decide(in_bounds(mapping((4,), lambda _, i: 4 // i, (9,))))


def test_replay_checks_everything() -> None:
    """A replayed point must have the right names, lie in its space, satisfy the condition, and violate."""
    claim = in_bounds(mapping((N,), lambda _, i: i, (4,)), where="N % 2 == 0")
    good = {"sizes": (6,), "index": (4,)}
    assert brute.violates(claim, good)
    for bad in (
        {"sizes": (6,), "index": (3,)},
        {"sizes": (4,), "index": (4,)},
        {"sizes": (5,), "index": (4,)},
        {"sizes": (0,), "index": (4,)},
        {"sizes": (6,), "index": (4, 0)},
        {"sizes": (6, 6), "index": (4,)},
        {"sizes": (6,), "index": (True,)},
        {"index": (4,)},
        {"sizes": (6,), "place": (4,)},
    ):
        assert not brute.violates(claim, bad)


def test_replay_of_an_unreached_place() -> None:
    """Replay enumerates the map; where that is too much it says so instead of guessing."""
    claim = covers(tiled((7, 100)))
    assert brute.violates(claim, {"place": (0, 0, 7, 0)})
    assert not brute.violates(claim, {"place": (0, 0, 6, 99)})
    with pytest.raises(Undecided, match="cannot be replayed by enumeration"):
        brute.violates(covers(tiled((7000, 10000))), {"place": (0, 0, 7, 0)})


def test_a_claim_without_points() -> None:
    """A condition over sizes alone is refuted by the smallest sizes that satisfy it."""
    assert brute.decide(Claim({}, SizeCondition(parse_condition("N * M == 12")))) == {"sizes": (3, 4)}


def test_same_map_differs_first_at() -> None:
    """Two spellings of one map agree; a swapped digit is refuted at the first element that moves."""
    one = mapping((16,), lambda _, i: i % 8 // 2)
    assert brute.decide(same(one, mapping((16,), lambda _, i: i // 2 % 4))) is None
    assert brute.decide(same(one, mapping((16,), lambda _, i: i // 4 % 4))) == {"index": (2,)}
