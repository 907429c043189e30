"""Z3: swizzles, products of sizes, symbolic tile sizes."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import z3

from layoutproof.core import budget as steps_of
from layoutproof.core.claim import Claim, SizeCondition
from layoutproof.core.errors import NotSmallest, Undecided
from layoutproof.core.expression import parse_condition
from layoutproof.core.index_map import row_major
from layoutproof.core.size import symbol
from layoutproof.solvers import brute, smt
from layoutproof.solvers.smt.minimum import Search, _smallest_of
from tests.solvers.claims import (
    M,
    N,
    T,
    answer_or_reason,
    flattened,
    in_bounds,
    injective,
    mapping,
    same,
    tiled,
)

pytestmark = pytest.mark.slow

U = symbol("U")


@pytest.mark.parametrize("packed", [False, True])
def test_flat_tilings_hold_for_all_shapes(packed: bool) -> None:
    """With a symbolic number of tile columns, offsets never collide and stay below the product of the extents."""
    m = flattened(tiled((N, M), packed))
    assert smt.decide(injective(m)) is None
    assert smt.decide(in_bounds(m)) is None


def test_a_missing_tile_column_is_refuted_for_all_shapes() -> None:
    """One tile column too few: nine rows of one column suffice, and nothing smaller does."""
    broken = injective(flattened(tiled((N, M), short=1)))
    assert smt.decide(broken) == {"sizes": (9, 1), "first": (0, 0), "second": (8, 0)}


def test_tiles_of_any_size() -> None:
    """Tiles of T x U, all four sizes unknown: the offset is injective; with one tile column too few it is not."""

    def tiles(missing: int) -> Claim:
        def offset(on: object, i: object, j: object) -> object:
            t, u, columns = on.size(T), on.size(U), on.size(M)  # type: ignore[attr-defined]
            row = (i // t) * ((columns + u - 1) // u - missing) + j // u
            return (row * t + i % t) * u + j % u

        return injective(mapping((N, M), offset, (T * U,)))

    assert smt.decide(tiles(0)) is None
    assert smt.decide(tiles(1)) == {"sizes": (2, 1, 1, 1), "first": (0, 0), "second": (1, 0)}


def test_constant_sizes() -> None:
    """Bit-vectors decide the flat tiling of 2**32 elements, and its broken neighbour by the smallest pair."""
    assert smt.decide(injective(flattened(tiled((65536, 65536))))) is None
    overlap = injective(flattened(tiled((256, 512), short=1)))
    assert smt.decide(overlap) == {"first": (0, 384), "second": (8, 0)}


def test_swizzle() -> None:
    """x ^ ((x / 8) % 8 * 8) permutes 512 places; xor with an overlapping field does not."""
    assert smt.decide(injective(mapping((512,), lambda on, x: on.xor(x, x // 64 % 8 * 8)))) is None
    assert smt.decide(injective(mapping((512,), lambda on, x: on.xor(x, x // 8 % 8 * 8)))) == {
        "first": (0,),
        "second": (8,),
    }


def test_numbers_wider_than_any_machine_word() -> None:
    """Widths follow the values: nothing wraps at 2**64."""
    m = mapping((2**40,), lambda _, i: i * 2**40, (2**80,))
    assert smt.decide(in_bounds(m)) is None
    assert smt.decide(in_bounds(mapping((2**40,), lambda _, i: i * 2**40 + 2**40, (2**80,)))) == {"index": (2**40 - 1,)}


@pytest.mark.parametrize("by", [1, 2, 3, 4, 7, 8])
def test_negative_numbers_round_down(by: int) -> None:
    """Quotient and remainder of -12 .. 11 are Python's, for powers of two and others, constant and symbolic."""
    ints = [((n - 12) // by, (n - 12) % by) for n in range(24)]

    def table(part: int, wrong: int = 0) -> object:
        def look_up(on: object, i: object) -> object:
            value: object = ints[23][part] + wrong
            for n in reversed(range(23)):
                value = on.select(on.equal(i, n), ints[n][part], value)  # type: ignore[attr-defined]
            return value

        return look_up

    for part, place in enumerate((lambda _, i: (i - 12) // by, lambda _, i: (i - 12) % by)):
        assert smt.decide(same(mapping((24,), place), mapping((24,), table(part)))) is None
        assert smt.decide(same(mapping((24,), place), mapping((24,), table(part, wrong=1)))) == {"index": (23,)}
        symbolic = same(mapping((N,), place, (N,)), mapping((N,), table(part), (N,)), "N == 24")
        assert smt.decide(symbolic) is None


def test_division_by_a_size() -> None:
    """i == i // T * T + i % T for every T >= 1, and i % T stays below T; i // T does not."""
    whole = mapping((N,), lambda on, i: i // on.size(T) * on.size(T) + i % on.size(T), (T,))
    assert smt.decide(same(whole, mapping((N,), lambda _, i: i))) is None
    assert smt.decide(in_bounds(mapping((N,), lambda on, i: i % on.size(T), (T,)))) is None
    assert smt.decide(in_bounds(mapping((N,), lambda on, i: i // on.size(T), (T,)))) == {"sizes": (2, 1), "index": (1,)}


def test_digits_within_digits() -> None:
    """i is made of i // 8, i % 8 // 2 and i % 2 for every i; i % 8 // 2 + i // 8 first reaches 4 at 14."""
    whole = mapping((N,), lambda _, i: i // 8 * 8 + i % 8 // 2 * 2 + i % 2)
    assert smt.decide(same(whole, mapping((N,), lambda _, i: i))) is None
    digit = mapping((N,), lambda _, i: i % 8 // 2, (4,))
    assert smt.decide(in_bounds(digit)) is None
    assert smt.decide(in_bounds(digit, extents=(3,))) == {"sizes": (7,), "index": (6,)}
    digits = mapping((N,), lambda _, i: i % 8 // 2 + i // 8, (4,))
    assert smt.decide(in_bounds(digits)) == {"sizes": (15,), "index": (14,)}


def test_divisors_must_be_shown_positive() -> None:
    """z3's x / 0 may be anything, so T - 1 divides only where the condition shows T >= 2."""
    m = mapping((N,), lambda on, i: (i // (on.size(T) - 1), 0), (N, T))
    with pytest.raises(Undecided, match="size T, which may be 0 or negative"):
        smt.decide(in_bounds(m))
    assert smt.decide(in_bounds(m, "T >= 2")) is None
    for place in (lambda _, i: 9 // i, lambda _, i: i // 0, lambda _, i: i % (i - 20)):
        with pytest.raises(Undecided, match="divides by"):
            smt.decide(in_bounds(mapping((9,), place, (9,))))


def test_index_dependent_divisor() -> None:
    """A divisor may depend on the index where its bounds show it positive."""
    m = mapping((9,), lambda _, i: 20 // (i + 1) - 20 % (i + 1), (19,))
    assert smt.decide(in_bounds(m)) == {"index": (0,)}
    assert smt.decide(in_bounds(m, extents=(21,))) == {"index": (6,)}


def test_case_distinctions() -> None:
    """select, min and max agree with one another, on bit-vectors and on integers."""
    for size, found in ((9, {"index": (0, 1)}), (N, {"sizes": (2,), "index": (0, 1)})):
        least = mapping((size, size), lambda on, i, j: (on.select(on.less(i, j), i, j), 0))
        assert smt.decide(same(least, mapping((size, size), lambda on, i, j: (on.minimum(i, j), 0)))) is None
        assert smt.decide(same(least, mapping((size, size), lambda on, i, j: (on.maximum(i, j), 0)))) == found


def test_products_of_sizes() -> None:
    """Row-major over any box of four dimensions: injective, below the product; a swapped stride is found."""
    extents = (N, M, T, U)
    m = mapping(extents, lambda on, *x: row_major(x, extents, on), (N * M * T * U,))
    assert smt.decide(injective(m)) is None
    assert smt.decide(in_bounds(m)) is None
    swapped = mapping(extents, lambda on, *x: row_major(x, (N, M, U, T), on))
    assert smt.decide(same(m, swapped)) is not None


def test_products_of_sizes_are_bounded_exactly() -> None:
    """i*M + j reaches N*M - 1 and no more; i*M + M reaches N*M."""
    m = mapping((N, M), lambda on, i, j: i * on.size(M) + j, (N * M,))
    assert smt.decide(in_bounds(m)) is None
    assert smt.decide(in_bounds(m, extents=(N * M - 1,))) == {"sizes": (1, 1), "index": (0, 0)}
    assert smt.decide(in_bounds(m, "N > 300 and M > 1", (N * M - 1,))) == {"sizes": (301, 2), "index": (300, 1)}
    after = mapping((N, M), lambda on, i, j: i * on.size(M) + on.size(M) + 0 * j, (N * M + 1,))
    assert smt.decide(in_bounds(after)) is None
    assert smt.decide(in_bounds(after, extents=(N * M,))) == {"sizes": (1, 1), "index": (0, 0)}


@pytest.mark.parametrize(
    ("where", "violated", "found"),
    [
        ("N > 1000", "N * N < 1000 * N", None),
        ("N > 1000", "N * N == 1018081", (1009,)),
        ("N > 1000", "N * N // N != N", None),
        ("N > 300 and M > 300", "N * M - N - M < 90000", (301, 301)),
        ("N > 300 and M > 300", "N * M < 301 * N", None),
        ("N > 300 and M > 300", "N * M * T < 90601 * T", None),
        ("N >= 8 and M >= 128", "(N + 7) // 8 * ((M + 127) // 128) * 1024 > 4 * N * M", None),
        ("N >= 300 and M >= 300", "(N + 7) // 8 * ((M + 127) // 128) * 102400 > 136 * N * M", (305, 385)),
    ],
)
def test_products_are_spelled_out(where: str, violated: str, found: tuple[int, ...] | None) -> None:
    """Beyond the sizes that are tried as constants, and beyond what monotony says."""
    claim = Claim({}, SizeCondition(parse_condition(violated)), where=parse_condition(where))
    assert smt.decide(claim) == (found and {"sizes": found})
    assert smt.proves(claim) is (found is None)


def test_a_proof_for_all_sizes_ends_at_any_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which one is the smallest takes most of the steps, and nobody has asked."""
    monkeypatch.delattr(Search, "smallest")
    right, wrong = (mapping((N, M), lambda on, i, j, s=s: i * on.size(s) + j, (N * M,)) for s in (M, N))
    assert [smt.proves(same(right, right)), smt.proves(same(right, wrong))] == [True, False]
    short = mapping((N,), lambda on, i: i // 2, (N,))
    assert [smt.proves(in_bounds(short)), smt.proves(injective(short))] == [True, False]


@pytest.mark.parametrize(
    ("extents", "strides"), [((N * M,), (3 * N * M,)), ((N * M, M), (M, 2 * N)), ((N * N, N + 1), (3 * N, N * N * N))]
)
def test_a_product_is_below_another_where_its_factors_are(extents: Any, strides: Any) -> None:
    """`i * M` to `N * M * M`: a factor may be a product itself. z3 spent its budget on multiplying."""
    last = sum((extent - 1) * stride for extent, stride in zip(extents, strides, strict=True))
    m = mapping(extents, lambda on, *x: sum(i * on.size(s) for i, s in zip(x, strides, strict=True)), (last + 1,))
    assert smt.decide(in_bounds(m)) is None


def _multiplied(*terms: Any) -> bool:
    """Whether unknowns are multiplied, or divided by one."""
    met, rest = set(), list(terms)
    while rest:
        term = rest.pop()
        if term.get_id() in met:
            continue
        met.add(term.get_id())
        unknown = [not z3.is_int_value(child) for child in term.children()]
        if (z3.is_mul(term) and sum(unknown) > 1) or ((z3.is_idiv(term) or z3.is_mod(term)) and unknown[1]):
            return True
        rest += term.children()
    return False


def test_z3_itself_multiplies_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts no step for that, and squared numbers for minutes: a budget held for sums alone."""
    asked: list[bool] = []
    possible = Search.possible

    def seen(self: Search, *more: Any) -> bool:
        asked.append(_multiplied(*self.solver.assertions(), *more))
        return possible(self, *more)

    monkeypatch.setattr(Search, "possible", seen)
    monkeypatch.setattr(smt, "BUDGET", 50_000)
    monkeypatch.setattr(smt, "SMALL", ())
    m = mapping((N * M, N), lambda on, i, j: i * on.size(3 * N * N * N) + j * on.size(3 * M))
    for claim in (injective(m), in_bounds(m, "M > 300 and N > 300", (9 * N * M,)), in_bounds(m, None, (9 * N * M,))):
        answer_or_reason(smt, claim)
    assert len(asked) > 20
    assert not any(asked)
    assert _multiplied(z3.Int("x") * z3.Int("y") > 3)
    assert not _multiplied(z3.Int("x") * 3 > z3.Int("y") / 4)


def test_padding_bound_over_sizes() -> None:
    """A condition over sizes alone: ceil(N/8) * 8 exceeds N by less than a tenth from 63 on, not at 57."""
    grown = Claim({}, SizeCondition(parse_condition("(N + 7) // 8 * 8 * 10 > 11 * N")), where=parse_condition("N > 56"))
    assert smt.decide(grown) == {"sizes": (57,)}
    enough = Claim(
        {}, SizeCondition(parse_condition("(N + 7) // 8 * 8 * 10 > 11 * N")), where=parse_condition("N >= 63")
    )
    assert smt.decide(enough) == {"sizes": (65,)}
    enough = Claim(
        {}, SizeCondition(parse_condition("(N + 7) // 8 * 8 * 10 > 11 * N")), where=parse_condition("N > 70")
    )
    assert smt.decide(enough) is None


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        (in_bounds(mapping((N,), lambda on, i: on.xor(i, 1), (N,))), "xor"),
        (Claim({}, SizeCondition(parse_condition("N * N == 2 * M * M"))), "z3 gives up|budget"),
    ],
)
def test_what_z3_cannot_is_said_in_words(claim: Claim, reason: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Out of reach means one readable sentence, and nothing is printed."""
    with pytest.raises(Undecided, match=reason):
        smt.decide(claim)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("budget", [1, 30, 300, 3000])
def test_a_spent_budget_is_undecided(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However early the steps run out: the true answer or undecided; effort multiplies the budget."""
    monkeypatch.setattr(smt, "BUDGET", budget)
    proved = injective(mapping((512,), lambda _, x: 7 * x % 512))
    refuted = injective(mapping((512,), lambda _, x: 6 * x % 510))
    for claim, truth in ((proved, None), (refuted, {"first": (0,), "second": (85,)})):
        found = answer_or_reason(smt, claim)
        assert found == truth or f"budget of {budget} z3 steps" in found
        assert smt.decide(claim, effort=10_000_000 // budget) == truth
    if budget < 100:
        with pytest.raises(Undecided):
            smt.decide(proved)


def test_a_violation_not_shown_smallest_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somewhere between too little and enough, z3 has a violation but not the smallest: it is handed over as that."""
    claim = injective(mapping((4096,), lambda _, x: 30 * x % 4090))
    larger = []
    for budget in range(1000, 60_000, 1000):
        monkeypatch.setattr(smt, "BUDGET", budget)
        try:
            assert smt.decide(claim) == {"first": (0,), "second": (409,)}
        except NotSmallest as found:
            larger.append(found.point)
        except Undecided:
            continue
    assert larger
    assert all(brute.violates(claim, point) for point in larger)


def test_history_does_not_change_answers() -> None:
    """The same question after many others has the same answer."""
    claim = injective(flattened(tiled((N, M))))
    first = smt.decide(claim)
    for k in range(2, 12):
        smt.decide(injective(mapping((k, N), lambda _, i, j, k=k: i + k * j)))
    assert smt.decide(claim) == first


def test_a_context_that_ctrl_c_left_half_made_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its finaliser looks for what the constructor has not set yet, and Python prints that on standard error."""
    from layoutproof.solvers.smt.session import Session

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    said: list[object] = []
    monkeypatch.setattr("z3.z3.Z3_mk_context_rc", interrupted)
    monkeypatch.setattr("sys.unraisablehook", said.append)
    with pytest.raises(KeyboardInterrupt):
        Session()
    gc.collect()
    assert said == []


def test_a_search_is_done_once_and_takes_its_steps_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal formulas have their smallest solution at hand; where steps end before it would, they end again."""
    looked: list[object] = []
    least = Search._least
    monkeypatch.setattr(Search, "_least", lambda self, *given: looked.append(given[1]) or least(self, *given))
    claim, smallest = injective(flattened(tiled((N, M), short=1))), {"sizes": (9, 1), "first": (0, 0), "second": (8, 0)}
    _smallest_of.cache_clear()
    taken, searched = [], []
    for _ in range(2):
        with steps_of.budget(1_000_000) as mine:
            assert smt.decide(claim) == smallest
        taken.append(mine.steps - mine.left)
        searched.append(len(looked))
    assert taken[0] == taken[1]
    assert searched[0] == searched[1] > 0
    outcomes = []
    for steps in (taken[0] - 400, taken[0]):
        with steps_of.budget(steps):
            outcomes.append(answer_or_reason(smt, claim))
    assert outcomes[0] != outcomes[1] == smallest
    assert len(looked) > searched[1]
