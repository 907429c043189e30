"""Exact sets: all shapes at once, and clear words where isl ends."""

from __future__ import annotations

import pytest

from layoutproof.core.claim import And, At, Claim, Equal, Or, Outside, SizeCondition, Uncovered
from layoutproof.core.errors import Undecided
from layoutproof.core.expression import parse_condition
from layoutproof.solvers import brute, isl
from tests.solvers.claims import (
    M,
    N,
    T,
    answer_or_reason,
    box,
    covers,
    flattened,
    in_bounds,
    injective,
    mapping,
    same,
    tiled,
)

DIAGONAL = mapping((3, 3, 2), lambda _, i, j, _k: (i, j % 2))
EVEN = mapping((3, 3, 2), lambda _, _i, j, _k: (j, 0))


@pytest.mark.parametrize("packed", [False, True])
def test_tilings_hold_for_all_shapes(packed: bool) -> None:
    """T(8,128) and T(8,128)(2,1) never share a place and stay in their box, whatever the shape."""
    m = tiled((N, M), packed)
    assert isl.decide(injective(m)) is None
    assert isl.decide(in_bounds(m)) is None


def test_a_missing_tile_column_is_refuted() -> None:
    """One tile column too few: out of bounds for every shape, first for one element; flattened, two tiles overlap."""
    assert isl.decide(in_bounds(tiled((N, M), short=1))) == {"sizes": (1, 1), "index": (0, 0)}
    overlap = injective(flattened(tiled((256, 512), short=1)))
    assert isl.decide(overlap) == {"first": (0, 384), "second": (8, 0)}
    assert isl.decide(injective(flattened(tiled((256, 512))))) is None


@pytest.mark.parametrize(
    ("claim", "held"),
    [
        (injective(tiled((N, M))), True),
        (in_bounds(tiled((N, M), short=1)), False),
        (covers(tiled((256, 512))), True),
        (covers(tiled((256, 500))), False),
        (covers(tiled((N, M)), "N % 8 == 0 and M % 128 == 0"), True),
    ],
)
def test_a_proof_alone_takes_no_search_for_the_smallest_violation(
    claim: Claim, held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (isl.decide(claim) is None) is held
    monkeypatch.delattr("layoutproof.solvers.isl._smallest")
    assert isl.proves(claim) is held


def test_billions_of_elements() -> None:
    """The size of the array does not matter: 2**32 elements, proved flat, refuted at the last tile row."""
    assert isl.decide(injective(flattened(tiled((65536, 65536))))) is None
    assert isl.decide(in_bounds(mapping((2**40,), lambda _, i: i + 1, (2**40,)))) == {"index": (2**40 - 1,)}
    assert isl.decide(in_bounds(mapping((2**70,), lambda _, i: i + 1, (2**70,)))) == {"index": (2**70 - 1,)}


def test_covers() -> None:
    """Whole tiles leave no hole; padded ones leave the first missing column; all shapes: first hole at one element."""
    assert isl.decide(covers(tiled((256, 512)))) is None
    assert isl.decide(covers(tiled((256, 500)))) == {"place": (0, 3, 0, 116)}
    assert isl.decide(covers(tiled((N, M)))) == {"sizes": (1, 1), "place": (0, 0, 0, 1)}
    assert isl.decide(covers(tiled((N, M)), "N % 8 == 0 and M % 128 == 0")) is None
    assert isl.decide(covers(mapping((4,), lambda _, i, c: i + 4 * c, (8,), replicas=(2,)))) is None
    assert isl.decide(covers(mapping((4,), lambda _, i, c: i + 3 * c, (8,), replicas=(2,)))) == {"place": (7,)}


def test_a_hole_on_the_diagonal() -> None:
    """isl's own lexmin fails on { [i, i, k] : i mod 2 = 0 and .. }; the smallest such hole is found anyway."""
    m = mapping((2,), lambda _, i, c: (2 * i, 2 * i, i + c), (3, 3, 2), replicas=(2,))
    assert isl.decide(covers(m)) == {"place": (0, 1, 0)}
    held = Claim({"place": m.range}, And((Uncovered(m, "place"), Equal(At(EVEN, "place"), At(DIAGONAL, "place")))))
    assert isl.decide(held) == {"place": (2, 2, 0)} == brute.decide(held)


def test_parts_with_rational_points_only() -> None:
    """A part of the violations without integer points has no say in what is smallest."""
    none = Equal(
        At(mapping((9, 9), lambda _, i, j: (2 * i, (i - 1) // 2, j)), "index"),
        At(mapping((9, 9), lambda _, i, j: (3 * j, 0, j)), "index"),
    )
    some = Outside(At(mapping((9, 9), lambda on, i, j: on.minimum(i, j), (5,)), "index"))
    assert isl.decide(Claim({"index": box(9, 9)}, none)) is None
    assert isl.decide(Claim({"index": box(9, 9)}, Or((none, some)))) == {"index": (5, 5)}


def test_negative_numbers_round_down() -> None:
    """(i - 5) // 3 and (i - 5) % 3 are Python's: -5 // 3 is -2 and -5 % 3 is 1."""
    m = mapping((5,), lambda _, i: ((i - 5) // 3, (i - 5) % 3), (1, 1))
    exact = mapping((1,), lambda _, i: (-2 + i, 1))
    assert isl.decide(same(mapping((1,), lambda _, i: ((i - 5) // 3, (i - 5) % 3)), exact)) is None
    assert isl.decide(in_bounds(m)) == {"index": (0,)}


def test_case_distinctions() -> None:
    """min, max and select are piecewise; constants may stand for any coordinate."""
    least = mapping((N, N), lambda on, i, j: (on.select(on.less(i, j), i, j), 0))
    assert isl.decide(same(least, mapping((N, N), lambda on, i, j: (on.minimum(i, j), 0)))) is None
    most = same(least, mapping((N, N), lambda on, i, j: (on.maximum(i, j), 0)))
    assert isl.decide(most) == {"sizes": (2,), "index": (0, 1)}
    stepped = mapping((8,), lambda on, i: i // on.select(on.less(i, 4), 1, 2), (4,))
    assert isl.decide(in_bounds(stepped)) is None


def test_conditions_on_sizes() -> None:
    """A condition restricts the sizes; sizes come smallest maximum first, then in lexicographic order."""
    m = mapping((N, M), lambda _, i, j: i + j, (4,))
    assert isl.decide(in_bounds(m)) == {"sizes": (3, 3), "index": (2, 2)}
    assert isl.decide(in_bounds(m, "N == 1")) == {"sizes": (1, 5), "index": (0, 4)}
    assert isl.decide(in_bounds(m, "N + M <= 5")) is None
    assert isl.decide(Claim({}, SizeCondition(parse_condition("N % 7 == 3 and M > N")))) == {"sizes": (3, 4)}
    assert isl.decide(Claim({}, SizeCondition(parse_condition("N % 7 == 3 and 7 * M + 4 == N")))) is None


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        (injective(flattened(tiled((N, M)))), r"multiplies first\[0\] with the size M"),
        (
            in_bounds(mapping((N, M), lambda _, i, _j: i, (N * M,))),
            "multiplies the size M with the size N",
        ),
        (in_bounds(mapping((N,), lambda on, i: i // on.size(T), (T,))), "divides by the size T"),
        (in_bounds(mapping((9,), lambda on, i: on.xor(i, i // 2), (9,))), "xor"),
        (in_bounds(mapping((9,), lambda _, i: 9 // (i + 1), (9,))), r"divides by index\[0\]"),
        (in_bounds(mapping((9,), lambda _, i: i // 0, (9,))), "divides by 0"),
        (in_bounds(mapping((9,), lambda _, i: i // -2, (9,))), "divides by -2"),
        (in_bounds(mapping((9,), lambda on, i: i % on.select(on.less(i, 3), 0, 2), (9,))), "may be 0 or negative"),
    ],
)
def test_what_isl_cannot_is_said_in_words(claim: Claim, reason: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Outside the quasi-affine world the answer is one readable sentence, and nothing is printed."""
    with pytest.raises(Undecided, match=reason):
        isl.decide(claim)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("budget", [1, 10, 100, 300, 1000, 2000, 3000])
def test_a_spent_budget_is_undecided(
    budget: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """However early the operations run out: the true answer or undecided, silently, never a library's error."""
    m = tiled((N, M), packed=True, short=1)
    monkeypatch.setattr(isl, "BUDGET", budget)
    for claim, truth in ((in_bounds(m), {"sizes": (1, 1), "index": (0, 0)}), (injective(m), None)):
        assert answer_or_reason(isl, claim) in (truth, f"the budget of {budget} isl operations is spent")
    if budget < 1000:
        with pytest.raises(Undecided):
            isl.decide(injective(m))
        assert isl.decide(injective(m), effort=100_000 // budget) is None
    assert capfd.readouterr() == ("", "")
