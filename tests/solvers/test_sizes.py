"""Sizes tried in order: the violation with the smallest sizes, found without a solver; and signs that sizes decide."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.core.claim import And, At, Claim, Equal, LexLess
from layoutproof.core.errors import Undecided
from layoutproof.core.size import ceil_div
from layoutproof.solvers import brute, digits, sizes
from tests.solvers.claims import M, N, in_bounds, injective, mapping, same

pytestmark = pytest.mark.slow


def claims(rng: random.Random) -> Claim:
    """Rows and columns with strides that may depend on either size; extents too."""
    numbers = [rng.randrange(1, 7) for _ in range(4)]
    strides = [rng.choice((n, N * n, M * n, M + n)) for n in numbers]
    extents: Any = rng.choice(((N, M), (N, 2, M), (ceil_div(N, 2), M), (N, M + 1)))

    def place(on: Any, *index: Any) -> Any:
        return sum((on.size(stride) * entry for stride, entry in zip(strides, index, strict=False)), 0)

    m = mapping(extents, place, (rng.choice((12, N * M + 3, N + 9)),))
    where = rng.choice(("", "", "N % 2 == 0", "N + M > 4"))
    kind = rng.randrange(3)
    if kind == 0:
        return injective(m, where)
    return in_bounds(m, where) if kind == 1 else same(m, mapping(extents, lambda on, *x: place(on, *x) % 9), where)


def test_the_same_sizes_as_by_trying_every_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """What looking at every element finds first is found; where it finds nothing, the sizes are larger."""
    monkeypatch.setattr(brute, "CAP_SYMBOLIC", 10_000)
    rng, met = random.Random(20261122), 0
    for number in range(150):
        claim, checked = claims(rng), "0"
        try:
            expected = brute._one_by_one(claim, 1)
        except Undecided as undecided:
            expected, (checked,) = None, re.findall(r"up to (\d+)", str(undecided)) or ["0"]
        try:
            found = sizes.smallest(claim)
        except Undecided:
            continue
        assert expected in (None, found), (number, expected, found)
        assert expected is not None or max(found["sizes"]) > int(checked), (number, found)
        met += expected is not None
    assert met > 60


def test_a_size_of_extents_alone_is_bisected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows and columns in the hundreds cost some trials each, not their product."""
    monkeypatch.setattr(sizes, "TRIED", 60)
    far = injective(mapping((N, M), lambda _, i, j: i * 300 + j * 77))
    assert sizes.smallest(far) == {"sizes": (78, 301), "first": (0, 300), "second": (77, 0)}
    with pytest.raises(Undecided, match="60 choices tried"):
        sizes.smallest(injective(mapping((N, M), lambda on, i, j: on.size(M) * i + j)))
    with pytest.raises(Undecided, match="constant"):
        sizes.smallest(injective(mapping((4,), lambda _, i: i)))


@pytest.mark.parametrize(
    ("question", "counterexample"),
    [
        (("injective", "(N,(2,M)):(2*M,(1,92))"), {"sizes": {"N": 3, "M": 23}, "first": (0, 2), "second": (2, 0)}),
        (("injective", "(N,(3,M)):(3*M,(1,51))"), {"sizes": {"N": 2, "M": 17}, "first": (0, 3), "second": (1, 0)}),
        (("injective", "(N,(2,M)):(2*M,(1,9200))"), {"sizes": {"N": 51, "M": 92}, "first": (0, 2), "second": (50, 0)}),
        (
            ("injective", "(N,M,K):(M*K,K,3)"),
            {"sizes": {"N": 1, "M": 2, "K": 3}, "first": (0, 0, 1), "second": (0, 1, 0)},
        ),
        (
            ("same_map", "(i < N, j < M) -> (i*M + j,)", "(i < N, j < M) -> (i*M + j % 50,)"),
            {"sizes": {"N": 1, "M": 51}, "element": (0, 50)},
        ),
        (("covers", "f32[N,M] sharded {devices=[4,4]<=[4,4]T(1,0)}"), {"sizes": {"N": 1, "M": 1}, "place": (1, 0, 0)}),
    ],
)
def test_strides_that_meet_at_some_size(question: tuple[str, ...], counterexample: dict[str, Any]) -> None:
    """Two strides have a common multiple within the array for some sizes: the smallest such sizes are shown."""
    found = lp.ask(*question)
    assert (found.verdict.value, found.decided_by) == ("refuted", "digits"), found.reason
    assert found.counterexample == counterexample


@pytest.mark.parametrize(
    "question",
    [
        ("in_bounds", "f32[N,M] strides (M-1,1)"),
        ("in_bounds", "f32[N,M] strides (1,N-1)"),
        ("in_bounds", "f32[N,M,K] strides (M*K-1,K,1)"),
        ("in_bounds", "(i < N, j < M) -> (i*(M - N) + 3*N*N,) in [4*N*N + N*M]"),
        ("owned", "f32[N,M] sharded {devices=[4,4]<=[4,4]T(1,0)}"),
        ("owned", "f32[N,M] sharded {devices=[4,4]<=[16]}"),
        ("owned", "f32[N,M,K] sharded {devices=[4,3,2]<=[24]}"),
        ("owned", "f32[4*N+2,M] sharded {devices=[4,3]<=[12]}"),
        ("owned", "f32[N,64] sharded {devices=[4,4]<=[4,4]T(1,0)}"),
    ],
)
def test_digits_of_constant_extent_and_corners(question: tuple[str, ...]) -> None:
    """A stride that is 0 for one size, one whose sign depends on sizes, and a tile number below a constant."""
    found = lp.ask(*question)
    assert (found.verdict.value, found.decided_by) == ("proved", "digits"), (found.decided_by, found.reason)


@pytest.mark.parametrize(
    ("question", "sizes_"),
    [
        (("in_bounds", "f32[N,M] strides (M-1,1) in N*M-N"), {"N": 1, "M": 1}),
        (("in_bounds", "(i < N, j < M) -> (i*(M - N) + 2*N,) in [4*N*N + N*M]"), {"N": 4, "M": 1}),
        (("in_bounds", "(i < N) -> (i // ((N + 3) // 4),) in [3]"), {"N": 4}),
    ],
)
def test_what_only_just_leaves(question: tuple[str, ...], sizes_: dict[str, int]) -> None:
    """The twins that do not fit are refuted, at the smallest sizes."""
    found = lp.ask(*question)
    assert found.verdict.value == "refuted", found.reason
    assert found.counterexample is not None
    assert found.counterexample["sizes"] == sizes_


def joined(rng: random.Random) -> Any:
    """A claim about tile numbers of constant counts, made one number in mixed radix that is then divided."""
    rows, columns, copies = rng.randrange(2, 5), rng.randrange(2, 5), rng.choice((1, 1, 2, 3))
    step, start, by = rng.choice((1, 1, 1, 2)), rng.choice((0, 0, 0, 1)), rng.randrange(2, 7)
    weights = rng.choice(((columns * copies, copies, 1), (columns * copies, copies, 1), (2, 3, 1)))
    alone, whole = rng.random() < 0.2, rng.random() < 0.7

    def place(on: Any, i: Any, j: Any, *replica: Any) -> Any:
        row, column = on.size(ceil_div(N, rows)), on.size(ceil_div(M, columns))
        tile = (i // row, j // column, *replica)
        number = start + step * sum((w * t for w, t in zip(weights, tile, strict=False)), 0)
        return (number % by if whole else 0, number // by, i % row, *((tile[0],) if alone else ()), j % column)

    most = rows * columns * copies * step + start
    box_ = (by, -(-most // by), ceil_div(N, rows), *((rows,) if alone else ()), ceil_div(M, columns))
    m = mapping((N, M), place, box_, (copies,) if copies > 1 else ())
    kind = rng.randrange(4)
    if kind == 0:
        return injective(m)
    if kind == 1:
        return in_bounds(m, extents=tuple(extent - rng.choice((0, 0, 0, 1)) for extent in box_))
    if kind == 2 and copies > 1:
        one, other = At(m, "element", "replica1"), At(m, "element", "replica2")
        points = {"element": m.domain, "replica1": m.replicas, "replica2": m.replicas}
        return Claim(points, And((LexLess("replica1", "replica2"), Equal(one, other))))
    if copies > 1:
        return injective(m)
    return same(m, mapping((N, M), lambda on, i, j: (*m.place((i, j), (), on)[:-1], j % on.size(ceil_div(M, 4))), box_))


def test_digits_of_constant_extent_are_joined() -> None:
    """Whatever is proved so holds at every size that is tried, one element after the other."""
    rng, proved = random.Random(20261122), 0
    for number in range(250):
        claim = joined(rng)
        try:
            assert digits.decide(claim) is None
        except Undecided:
            continue
        proved += 1
        for values in ((1, 2), (3, 2), (5, 3)):
            trial = brute._SizedClaim(claim, dict(zip(("N", "M"), values, strict=True)), 1)
            assert not any(map(trial.violates, trial.points())), (number, values)
    assert proved > 50


@pytest.mark.parametrize(
    ("question", "verdict"),
    [
        (("owned", "f32[N,M] sharded {devices=[2,3]<=[2,3]T(1,0)}"), "proved"),
        (("injective", "f32[N,M] sharded {devices=[3,4,2]<=[4,6]T(1,0) last_tile_dim_replicate}"), "proved"),
        (("in_bounds", "f32[N,M,K] sharded {devices=[2,3,5]<=[5,3,2]T(1,2,0)}"), "proved"),
        (
            ("injective", "(i < N, j < M) -> ((i % 2 * 3 + j % 3) // 2, (i % 2 * 3 + j % 3) % 2, i // 2, j // 3)"),
            "proved",
        ),
    ],
)
def test_devices_in_another_order_than_their_tiles(question: tuple[str, str], verdict: str) -> None:
    """A device number that cuts across tile numbers needs no other engine."""
    found = lp.ask(*question)
    assert (found.verdict.value, found.decided_by) == (verdict, "digits"), found.reason


def test_joined_digits_that_collide() -> None:
    """The twin: a number of which a part is lost is never proved, and its smallest sizes are shown."""
    found = lp.ask("injective", "(i < N, j < M) -> ((i % 2 * 3 + j % 3) // 2, i // 2, j // 3)")
    assert found.verdict.value == "refuted", found.reason
    assert found.counterexample == {"sizes": {"N": 1, "M": 2}, "first": (0, 0), "second": (0, 1)}
