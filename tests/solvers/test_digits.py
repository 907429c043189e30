"""The structural engine is right or undecided: what it answers is held against every element, one by one."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter

import pytest

import layoutproof as lp
from layoutproof.core.claim import And, At, Claim, Equal, LexLess, Outside
from layoutproof.core.errors import BudgetExceeded
from layoutproof.core.index_map import IndexMap, permutation
from layoutproof.core.numbers import INTS, Numbers
from layoutproof.core.result import Verdict
from layoutproof.core.space import Space
from layoutproof.registry.read import map_of, read_layout
from layoutproof.solvers import sumset
from layoutproof.solvers.decide import decide
from layoutproof.solvers.digits.counts import tally
from tests.properties import places

pytestmark = pytest.mark.slow


def smallest_violation(name: str, text: str) -> object:
    """The smallest counterexample of injective or in_bounds, from every place of a layout as `locate` gives them."""
    layout = lp.read_layout(text)
    m = layout.index_map()
    held: dict[tuple[int, ...], tuple[int, ...]] = {}
    pairs = []
    for index in itertools.product(*map(range, m.domain.extents)):
        place = m.at(index)
        if name == "in_bounds" and not all(0 <= v < e for v, e in zip(place, m.range.extents, strict=True)):
            return {"element": index}
        if place in held:
            pairs.append((held[place], index))
        held.setdefault(place, index)
    if name == "injective" and pairs:
        return dict(zip(("first", "second"), min(pairs), strict=True))
    return None


def uneven(seed: int) -> str:
    """A map whose remainders are divided once more, which no box of digits fits exactly."""
    r = random.Random(seed)
    a, b, c = r.randint(2, 9), r.randint(2, 5), r.randint(-3, 4)
    second = r.choice(["j", f"j // {a}", f"i + j % {b}"])
    text = f"(i < {r.randint(1, 9)}, j < {r.randint(1, 13)}) -> ((j % {a}) // {b} + {c}*i, {second})"
    return f"{text} in [{r.randint(1, 9)}, {r.randint(1, 12)}]"


@pytest.mark.parametrize("name", ["injective", "in_bounds"])
def test_uneven_splits(name: str) -> None:
    """Divisors that do not nest evenly: no engine's counterexample fails to replay, and each is the smallest."""
    decided = 0
    for seed in range(250):
        text = uneven(seed)
        expected = smallest_violation(name, text)
        found = lp.ask(name, text)
        assert found.verdict is (Verdict.PROVED if expected is None else Verdict.REFUTED), text
        assert found.counterexample == expected, text
        alone = lp.ask(name, text, engine="digits")
        assert alone.verdict is Verdict.UNKNOWN or alone.counterexample == expected, text
        decided += alone.verdict is not Verdict.UNKNOWN
    assert decided > 60


@pytest.mark.parametrize("engine", [None, "digits"])
@pytest.mark.parametrize(
    ("question", "expected"),
    [
        # a difference of either sign in the constants alone, and one digit among several
        (("same_map", "f32[4] strides (1) in 20", "f32[4] strides (1) offset 5 in 20"), {"element": (0,)}),
        (("same_map", "f32[4] strides (1) offset 5 in 20", "f32[4] strides (1) in 20"), {"element": (0,)}),
        (("same_map", "f32[2,3,4] strides (12,4,1)", "f32[2,3,4] strides (12,0,1) in 24"), {"element": (0, 1, 0)}),
        # of several digits that show nowhere the last one makes the smallest pair
        (("injective", "f32[3,5] strides (0,0)"), {"first": (0, 0), "second": (0, 1)}),
        (("injective", "f32[3,5,2] strides (0,0,1)"), {"first": (0, 0, 0), "second": (0, 1, 0)}),
        (
            ("injective", "S[(2,3,4):(0,0,1)] + R[2:1] on (2,3,4)"),
            {"first": (0, 0, 0), "second": (0, 0, 1), "first_replica": (1,), "second_replica": (0,)},
        ),
        (
            ("injective", "S[(2,3,4):(0,0,2)] + R[2:1] on (2,3,4)"),
            {"first": (0, 0, 0), "second": (0, 1, 0), "first_replica": (0,), "second_replica": (0,)},
        ),
        (("injective", "f32[2,3,4] strides (0,0,1) in 9"), {"first": (0, 0, 0), "second": (0, 1, 0)}),
        (("injective", "(i < 2, j < 3, k < 4) -> (k + k % 2,) in [9]"), {"first": (0, 0, 0), "second": (0, 1, 0)}),
    ],
)
def test_the_smallest_of_its_kind(engine: str | None, question: tuple[str, ...], expected: object) -> None:
    """By the structural engine alone too: what it finds replays, and must be the smallest as well."""
    result = lp.ask(*question, engine=engine)
    assert result.verdict is Verdict.REFUTED
    assert result.counterexample == expected


@pytest.mark.parametrize(
    ("left", "right", "verdict"),
    [
        ("S[(N,M):(M,1)]", "S[(N,M):(M,1)] + R[2:N*M]", Verdict.PROVED),
        ("S[(N,M):(M,1)] + R[2:N*M]", "S[(N,M):(M,1)] + R[2:N*M]", Verdict.PROVED),
        ("S[(N,M):(M,1)] + R[2:N*M]", "S[(N,M):(M,1)] + R[3:N*M]", Verdict.PROVED),
        ("S[(N,M):(M,1)] + R[3:N*M]", "S[(N,M):(M,1)] + R[2:N*M]", Verdict.REFUTED),
        ("S[(N,M):(M,1)] + R[2:N*M]", "S[(N,M):(M,1)]", Verdict.REFUTED),
    ],
)
def test_replicas_of_other_boxes(left: str, right: str, verdict: Verdict) -> None:
    """A replica has a namesake only in a box of replicas like its own; other boxes are another engine's business."""
    assert lp.ask("refines", left, right).verdict is verdict


def steps(r: random.Random, letter: str, most: int) -> tuple[str, list[tuple[int, int, str]]]:
    """A few steps on one axis that mostly overlap, as text and as data."""
    found = [
        (r.randint(1, 4), r.choice((0, 1, 1, 2, 2, 3, 4, 5, 6, 9, -1, -3)), "m") for _ in range(r.randint(1, most))
    ]
    extents, strides = (",".join(map(str, part)) for part in list(zip(*found, strict=True))[:2])
    return f"{letter}[({extents}):({strides})]", found


def test_sums_of_steps_on_one_axis() -> None:
    """Steps that overlap, of either sign, with replicas and an offset: what digits decide, enumeration says too."""
    r = random.Random(11)
    truths = {
        "injective": places.collision,
        "covers": places.hole,
        "replicas_distinct": places.repeated,
        "in_bounds": lambda m: places.outside(m, {}),
    }
    decided = 0
    for _ in range(220):
        texts, maps = [], []
        (shard, digits), starts = steps(r, "S", 3), [r.randint(-3, 5) for _ in range(2)]
        for start in starts:
            replica, iters = steps(r, "R", 3) if r.random() < 0.8 else ("", [])
            texts.append(" + ".join(part for part in (shard, replica, str(start)) if part))
            shape = [math.prod(extent for extent, _, _ in digits)]
            maps.append(places.axe(shape, digits, iters, {"m": start}))
        asked = [(name, texts[:1], truth(maps[0])) for name, truth in truths.items()]
        asked.append(("refines", texts, places.missing(*maps)))
        for name, layouts, expected in asked:
            found = lp.ask(name, *layouts, engine="digits")
            decided += found.verdict is not Verdict.UNKNOWN
            assert found.verdict is Verdict.UNKNOWN or found.counterexample == expected, (name, layouts)
    assert decided > 900


def test_comparisons_at_the_edge() -> None:
    """`min`, `max` and `select` are settled only where no index is on the other side: every small edge is looked at."""
    settled = 0
    for extent, step, bound in itertools.product((2, 3, 4, 5), (-1, 0, 1, 2), (1, 2, 3, 4, 5)):
        for body in (
            f"min(i + {step}, {bound})",
            f"max({bound}, i + {step})",
            f"select(i + {step} < {bound}, 0, i)",
            f"select({bound} < i + {step}, i, 1)",
            f"select(i + {step} == {bound}, 1, 2)",
            # outside where they are equal, outside where they are not
            f"select(i + {step} == {bound}, 4, 0)",
            f"select(i + {step} == {bound}, 0, 4)",
        ):
            text = f"(i < {extent}) -> ({body},) in [4]"
            expected = smallest_violation("in_bounds", text)
            alone = lp.ask("in_bounds", text, engine="digits")
            assert alone.verdict is Verdict.UNKNOWN or alone.counterexample == expected, text
            settled += alone.verdict is not Verdict.UNKNOWN
            if "==" in body and bound not in range(step, step + extent):
                assert alone.verdict is not Verdict.UNKNOWN, text
    assert settled > 250


@pytest.mark.parametrize(
    ("name", "text", "verdict"),
    [
        # the last index is in a row of its own that the quotient does not count
        ("in_bounds", "(i < N*M + 1) -> (i // M, i % M) in [N, M]", Verdict.REFUTED),
        ("in_bounds", "(i < N*M) -> (i // M, i % M) in [N, M]", Verdict.PROVED),
        ("in_bounds", "(i < N*M + M) -> (i // M, i % M) in [N, M]", Verdict.REFUTED),
        ("in_bounds", "(i < N*M + M) -> (i // M, i % M) in [N + 1, M]", Verdict.PROVED),
        ("in_bounds", "(i < 8, j < N) -> (i // N, i % N, j) in [8, N, N]", Verdict.PROVED),
        ("in_bounds", "(i < 8, j < N) -> (i // N, i % N, j) in [7, N, N]", Verdict.REFUTED),
        # a place that is not a sum of the largest steps first: 8 = 4 + 4, not 6 + 2
        ("refines", "S[1:1] + 8 ; S[1:1] + R[3:4] + R[2:6]", Verdict.PROVED),
        ("refines", "S[1:1] + 12 ; S[1:1] + R[3:4] + R[2:6]", Verdict.REFUTED),
        ("refines", "S[1:1] + -8 ; S[1:1] + R[3:-4] + R[2:-6]", Verdict.PROVED),
        ("covers", "(i < 4) -> (i,) in [N]", Verdict.REFUTED),
        ("covers", "(i < N) -> (i,) in [4]", Verdict.REFUTED),
        ("covers", "(i < 4) -> (i, 0) in [4, N]", Verdict.REFUTED),
        # a range without places has none that is not reached
        ("covers", "(i < 3) -> (i, 0) in [3, 0]", Verdict.PROVED),
    ],
)
def test_right_or_undecided(name: str, text: str, verdict: Verdict) -> None:
    """All engines together know; the structural engine alone never says the opposite."""
    layouts = text.split(" ; ")
    assert lp.ask(name, *layouts).verdict is verdict
    assert lp.ask(name, *layouts, engine="digits").verdict in (verdict, Verdict.UNKNOWN)


def test_claims_about_another_box() -> None:
    """A claim about a part of a map's domain is not decided by what the whole domain does."""
    wrapped = IndexMap(Space(("i",), (8,)), Space(("o",), (4,)), lambda x, c, on: (x[0] % 4,))
    part = Space(("i",), (4,))
    pair = And((LexLess("first", "second"), Equal(At(wrapped, "first"), At(wrapped, "second"))))
    assert decide(Claim({"first": part, "second": part}, pair)) == (None, "brute", "", "", "")
    low = IndexMap(Space(("i",), (8,)), Space(("o",), (4,)), lambda x, c, on: (x[0],))
    assert decide(Claim({"element": part}, Outside(At(low, "element"))))[0] is None
    whole = {"element": Space(("i",), (9,))}
    assert decide(Claim(whole, Outside(At(low, "element"), (8,))))[0] == {"element": (8,)}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("injective", "(i < 7, j < 9) -> ((((j % 7) // 3) - i), j) in [1, 9]", None),
        ("in_bounds", "f32[8,1]{1,0:T(4,4)(*,3)}", None),
        # the digits (2, 2) of i = 8 are no remainder by 7, and a later element is outside
        ("in_bounds", "(i < 9) -> ((i % 7) // 3, i // 8) in [3, 1]", {"element": (8,)}),
    ],
)
def test_padding_of_a_split(name: str, text: str, expected: object) -> None:
    """Digits that belong to no index are no counterexample."""
    result = lp.ask(name, text)
    assert result.counterexample == expected
    assert result.verdict is (Verdict.PROVED if expected is None else Verdict.REFUTED)


@pytest.mark.parametrize(
    ("question", "verdict", "counterexample"),
    [
        # a constant difference, of either sign, and none
        (("same_map", "(i < 5) -> (i + 1,)", "(i < 5) -> (i,)"), "refuted", {"element": (0,)}),
        (("same_map", "(i < 5) -> (i,)", "(i < 5) -> (i + 1,)"), "refuted", {"element": (0,)}),
        (("same_map", "(i < 5) -> (i + 1 - 1,)", "(i < 5) -> (i,)"), "proved", None),
        # what is added before a division counts
        (("same_map", "(i < 8) -> ((i + 1) // 2,)", "(i < 8) -> (i // 2,)"), "refuted", {"element": (1,)}),
        (("same_map", "(i < 8) -> ((i + 2) // 2,)", "(i < 8) -> (i // 2 + 1,)"), "proved", None),
        # places that start below the box, and end within it or where it ends
        (("covers", "(i < 5) -> (i - 2,) in [4]"), "refuted", {"place": (3,)}),
        (("covers", "(i < 5) -> (i - 2,) in [3]"), "proved", None),
        (("covers", "(i < 5, j < 2) -> (i * 3 + j - 2,) in [12]"), "refuted", {"place": (0,)}),
        (("covers", "(i < N + 2) -> (i - 1,) in [N]"), "proved", None),
        (("covers", "(i < N + 1) -> (i - 1,) in [N]"), "proved", None),
        (("covers", "(i < N) -> (i - 1,) in [N]"), "refuted", {"sizes": {"N": 1}, "place": (0,)}),
        (("covers", "(i < N, j < 2) -> (i,) in [N]"), "proved", None),
        # one place too many at the end, and one that a stride leaves out
        (("covers", "(i < N, j < 2) -> (i,) in [N + 1]"), "refuted", {"sizes": {"N": 1}, "place": (1,)}),
        (
            ("covers", "(i < N, j < 2) -> (i + j * (N + 1),) in [2 * N + 1]"),
            "refuted",
            {"sizes": {"N": 1}, "place": (1,)},
        ),
        (("covers", "(i < N, j < 2) -> (i + j * N,) in [2 * N - 1]"), "proved", None),
        # the last value of a digit of two values, at a stride of either sign
        (("in_bounds", "(i < 2) -> (i * (M - N) + N,) in [N + M]"), "proved", None),
        (
            ("in_bounds", "(k < M, i < 2) -> (i * (M - N) + N, k) in [N + 1, M]"),
            "refuted",
            {"sizes": {"M": 2, "N": 1}, "element": (0, 1)},
        ),
    ],
)
def test_what_single_lines_say(question: tuple[str, ...], verdict: str, counterexample: object) -> None:
    """Each is decided, by whoever, as its definition says."""
    found = lp.ask(*question)
    assert (found.verdict.value, found.counterexample) == (verdict, counterexample), found.reason


@pytest.mark.parametrize(("turning", "by"), [(6, "digits"), (7, "smt")])
def test_as_many_strides_whose_sign_depends_on_sizes(turning: int, by: str) -> None:
    """Each doubles the corners, so more than six are another engine's."""
    names = "abcdefg"[:turning]
    total = " + ".join(f"{name} * (M - N)" for name in names)
    text = f"({', '.join(f'{name} < 2' for name in names)}) -> ({total} + {turning} * N,) in [{turning} * (M + N)]"
    found = lp.ask("in_bounds", text)
    assert (found.verdict.value, found.decided_by) == ("proved", by), found.reason


@pytest.mark.parametrize(
    "question",
    [
        ("covers", "(i < N + 2) -> (i - 1,) in [N]"),
        ("covers", "(i < N, j < 2) -> (i,) in [N]"),
        ("covers", "(i < 5) -> (i - 2,) in [3]"),
        ("in_bounds", "(i < 2) -> (i * (M - N) + N,) in [N + M]"),
        ("in_bounds", "(i < 2, k < M) -> (i * (M - 2) + 2, k) in [M + 2, M]"),
        ("in_bounds", "(i < 2, k < N) -> (i * (2 - N) + N, k) in [N + 2, N]"),
        # steps of N and N + 1, whichever is named first
        ("injective", "(i < 2, j < 2, k < N) -> (i * N + j * (N + 1), k)"),
        ("injective", "(i < 2, j < 2, k < N) -> (i * (N + 1) + j * N, k)"),
        # a division across three digits that are one number in mixed radix
        ("covers", "(i < 12, j < N) -> ((6 * (i % 2) + 3 * (i // 2 % 2) + i // 4) // 4, j) in [3, N]"),
    ],
)
def test_what_digits_alone_prove(question: tuple[str, str]) -> None:
    assert lp.ask(*question, engine="digits").verdict is Verdict.PROVED


@pytest.mark.parametrize("engine", [None, "digits"])
def test_a_step_that_a_size_makes_zero(engine: str | None) -> None:
    """With N = 1 all of them are at one place; alone, digits do not know the sign of N - 1 and say so."""
    found = lp.ask("injective", "(i < 4, j < N) -> (i * (N - 1), j)", engine=engine)
    point = {"sizes": {"N": 1}, "first": (0, 0), "second": (1, 0)}
    expected = (Verdict.UNKNOWN, None) if engine else (Verdict.REFUTED, point)
    assert (found.verdict, found.counterexample) == expected
    assert lp.ask("injective", "(i < 4, j < N) -> (i * (N + 1), j)", engine=engine).verdict is Verdict.PROVED


def test_sets_that_are_too_long() -> None:
    """A set of as many values as the limit is refused, one less is not; strides beyond all others stand apart."""
    sumset.check(sumset.EXACT - 1)
    with pytest.raises(BudgetExceeded, match=f"its {sumset.EXACT + 1} values"):
        sumset.check(sumset.EXACT)
    assert sumset.cuts([(2, 1), (2, 4), (3, 8)], 2) == [(1, 2), (2, 0), (3, 0)]
    assert sumset.cuts([(2, 1), (2, 4), (3, 8)], 5) == [(1, 1), (3, 4)]


def test_elements_that_share_places_are_counted_up_to_a_bound() -> None:
    """Beyond it nobody counts them: the figures are left out, and nothing is guessed."""
    few = read_layout("(i < 30, j < 30) -> (i + j,) in [59]")
    many = read_layout("(i < 30000, j < 30000) -> (i + j,) in [59999]")
    assert tally(map_of(few)).places == 59
    with pytest.raises(BudgetExceeded, match="share coordinates"):
        tally(map_of(many))


def test_whether_two_lists_make_the_same_sums() -> None:
    """Of small sets and of larger ones, against all sums written out; many have the same ends."""
    rng, met = random.Random(20261122), Counter[bool]()
    for number in range(600):
        many = rng.choice((4, 4, 80))
        left = [(rng.randint(1, many), rng.randint(1, 6)) for _ in range(rng.randint(1, 3))]
        right = [(rng.randint(1, many), rng.randint(1, 6)) for _ in left]
        if rng.random() < 0.5:
            # the same ends: one more stride makes up for what is missing
            short, long = sorted((left, right), key=sumset.span)
            short.append((2, sumset.span(long) - sumset.span(short)))
        steps = [[(extent, stride) for extent, stride in side if stride] for side in (left, right)]
        sums = [
            {sum(row) for row in itertools.product(*[[k * s for k in range(e)] for e, s in side])} for side in steps
        ]
        assert sumset.same_set(*steps) is (sums[0] == sums[1]), (number, steps)
        met[sums[0] == sums[1]] += 1
    assert min(met[True], met[False]) > 40, met


@pytest.mark.parametrize(
    ("text", "place"),
    [("(i < 3, j < 5) -> (i, j) in [3, 6]", (0, 5)), ("(i < 3, j < 5, k < 2) -> (i, j, k) in [3, 6, 3]", (0, 0, 2))],
)
def test_the_first_hole_of_several_axes(text: str, place: tuple[int, ...]) -> None:
    """The later axis has the smaller place."""
    found = lp.ask("covers", text, engine="digits")
    assert (found.verdict, found.counterexample) == (Verdict.REFUTED, {"place": place})


SHIFTS = (-3, -2, -1, 1, 2, 3)
SWIZZLES = [(bits, base, shift) for bits in (1, 2, 3) for base in (0, 1) for shift in SHIFTS if bits <= abs(shift)]


@pytest.mark.parametrize("swizzle", SWIZZLES, ids=str)
def test_a_swizzle_is_a_permutation_of_what_it_keeps_together(swizzle: tuple[int, int, int]) -> None:
    """Digits say nothing, or what looking at every element says, with the same violation."""
    decided = 0
    for rest in ("(6,8):(8,1)", "(3,5):(5,1)", "(6,8):(8,2)", "(4,4):(3,1)", "(7,):(1,)", "(4,8):(16,1)"):
        text = f"Sw<{','.join(map(str, swizzle))}> o 0 o {rest}"
        for name in ("injective", "in_bounds", "covers"):
            found = lp.ask(name, text, engine="digits")
            true = lp.ask(name, text, engine="brute")
            assert true.verdict is not Verdict.UNKNOWN
            if found.verdict is not Verdict.UNKNOWN:
                decided += 1
                assert (found.verdict, found.counterexample) == (true.verdict, true.counterexample), (name, text)
    # two elements at one place are found or excluded in every case
    assert decided >= 6


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("covers", "Sw<3,3,3> o (24576,40960):(40960,1)"),
        ("bijective", "Sw<3,4,3> o 0 o (3000,350000):(350000,1)"),
        ("covers", "Sw<3,4,3> o 0 o (2048,N):(N,1)"),
        ("injective", "S[(3000,N):(N@m,1@m)] swizzle (4,3,7) within (3000*N@m)"),
        ("covers", "S[(3000,352256):(352256@m,1@m)] swizzle (4,3,7) within (1056768000@m)"),
    ],
)
def test_swizzles_of_any_factors_and_sizes_are_decided_by_digits(name: str, text: str) -> None:
    found = lp.ask(name, text)
    assert (found.verdict, found.decided_by) == (Verdict.PROVED, "digits")


def test_a_last_window_that_a_swizzle_leaves_is_not_taken_for_kept() -> None:
    """Of 13 places the last windows hold 5: 12 is moved to 14, outside, and nothing is at 12."""
    assert lp.ask("in_bounds", "Sw<1,1,1> o 0 o (13,):(1,)").verdict is Verdict.REFUTED
    assert lp.ask("covers", "Sw<1,1,1> o 0 o (13,):(1,)").verdict is Verdict.REFUTED
    assert lp.ask("covers", "Sw<1,1,1> o 0 o (14,):(1,)").verdict is not Verdict.PROVED
    assert lp.ask("covers", "Sw<1,1,1> o 0 o (16,):(1,)").verdict is Verdict.PROVED


@pytest.mark.parametrize(
    "text",
    [
        *(f"Sw<{','.join(map(str, swizzle))}> o 0 o (97,):(5,)" for swizzle in SWIZZLES),
        "S[97:5@m] swizzle (1,2,3)",
        "S[97:5@m] swizzle outer (1,2,3)",
        "S[97:5@m] swizzle (0,0,2)",
    ],
)
def test_what_a_place_says_of_its_permutation_is_what_it_does(text: str) -> None:
    m = map_of(lp.read_layout(text))
    found = permutation(m)
    assert found is not None
    for k in range(97):
        assert m.place((k,), (), INTS) == (found.apply(found.before((k,), (), INTS)[0]),)
    numbers = range(2 * found.window)
    assert all(found.apply(found.apply(n)) == n for n in numbers)
    assert all(found.apply(a ^ b) == found.apply(a) ^ found.apply(b) for a in numbers for b in (1, 2, 4, 8, 9))
    for extent in numbers:
        kept = all(found.apply(n) < extent for n in range(extent))
        assert found.keeps(extent) == kept
        start, end = found.around(extent)
        assert start <= extent < end
        assert {found.apply(n) for n in range(start, end)} == set(range(start, end))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Sw<3,0,3> o 0 o (N,8):(8,1)", "Sw<3,0,3> o 0 o (N,8):(8,1)"),
        ("Sw<3,0,3> o 0 o (N,8):(8,1)", "Sw<3,0,3> o 0 o (N,(2,4)):(8,(1,2))"),
        ("Sw<3,0,-3> o 0 o (N,M):(M,1)", "Sw<3,0,-3> o 0 o (N,M):(M,1)"),
        ("bf16 Sw<3,4,3> o 0 o (N,M):(M,1)", "bf16 Sw<3,4,3> o 0 o (N,M):(M,1)"),
        ("S[(8,N):(N@m,1@m)] swizzle (0,3,3) within (8*N@m)", "S[(8,N):(N@m,1@m)] swizzle (0,3,3) within (8*N@m)"),
        # two languages say one swizzle
        ("Sw<2,1,3> o 0 o (8,N):(N,1)", "S[(8,N):(N@m,1@m)] swizzle (1,2,3) within (8*N@m)"),
        # no bit that is moved is ever set
        ("Sw<3,0,3> o 0 o (N,8):(64,1)", "(N,8):(64,1)"),
        ("Sw<3,0,3> o 0 o (N,8):(64,1)", "Sw<2,0,4> o 0 o (N,8):(64,1)"),
    ],
)
def test_one_swizzle_of_one_layout_is_one_map_for_all_sizes(left: str, right: str) -> None:
    found = lp.ask("same_map", left, right)
    assert (found.verdict, found.decided_by) == (Verdict.PROVED, "digits")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Sw<3,0,3> o 0 o (N,8):(8,1)", "Sw<2,0,3> o 0 o (N,8):(8,1)"),
        ("Sw<3,0,3> o 0 o (N,8):(8,1)", "Sw<3,0,3> o 0 o (N,(4,2)):(8,(2,1))"),
        ("Sw<3,0,3> o 0 o (N,M):(M,1)", "Sw<3,0,3> o 0 o (N,M):(1,N)"),
        ("Sw<2,1,3> o 0 o (8,N):(N,1)", "S[(8,N):(N@m,1@m)] swizzle outer (1,2,3) within (64*N@m)"),
        ("Sw<3,0,3> o 0 o (N,8):(32,1)", "(N,8):(32,1)"),
        ("Sw<3,0,3> o 0 o (N,8):(8,1)", "(N,8):(8,1)"),
    ],
)
def test_a_wrong_twin_of_a_swizzle_is_refuted_at_the_smallest_sizes(left: str, right: str) -> None:
    found = lp.ask("same_map", left, right)
    assert found.verdict is Verdict.REFUTED
    assert found.counterexample is not None
    sizes = found.counterexample["sizes"]
    names = list(sizes)
    one, other = (map_of(lp.read_layout(text)) for text in (left, right))
    most = max(sizes.values())
    rows = sorted(itertools.product(range(1, most + 1), repeat=len(names)), key=lambda row: (max(row), row))
    for row in rows:
        on = Numbers(dict(zip(names, row, strict=True)))
        box = [range(on.size(extent)) for extent in one.domain.extents]
        wrong = [at for at in itertools.product(*box) if one.place(at, (), on) != other.place(at, (), on)]
        if wrong:
            assert (dict(on.sizes), wrong[0]) == (sizes, found.counterexample["element"])
            return
    raise AssertionError("nothing differs")


@pytest.mark.parametrize("swizzle", ["(0,3,3)", "(1,2,3)", "outer (0,2,3)", "outer (1,2,2)"])
@pytest.mark.parametrize("columns", [8, 11])
def test_the_first_hole_beyond_what_a_swizzle_reaches(swizzle: str, columns: int) -> None:
    """Every extent from what the layout needs to some windows more; digits say what looking at every element says."""
    tile = f"S[(7,{columns}):({columns}@m,1@m)] swizzle {swizzle}"
    reach = max(lp.read_layout(tile).index_map().at((i, j))[0] for i in range(7) for j in range(columns)) + 1
    for extent in range(reach, reach + 70):
        text = f"{tile} within ({extent}@m)"
        found, true = lp.ask("covers", text, engine="digits"), lp.ask("covers", text, engine="brute")
        assert (found.verdict, found.counterexample) == (true.verdict, true.counterexample), text


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("S[(3000,352256):(352256@m,1@m)] swizzle (4,3,7) within (1056768512@m)", 1056768000),
        # the rest of the last block is beyond what is reached, and moved before its end
        ("S[(3000,352257):(352257@m,1@m)] swizzle (4,3,7) within (1056784384@m)", 1056770984),
        ("S[(3000,352257):(352257@m,1@m)] swizzle (4,3,7) within (1056771000@m)", 1056770984),
        ("S[(8,N):(N@m,1@m)] swizzle (0,3,3) within (8*N+1@m)", 8),
    ],
)
def test_a_swizzle_of_a_billion_elements_leaves_what_it_does_not_reach(text: str, place: int) -> None:
    found = lp.ask("covers", text)
    assert (found.verdict, found.decided_by) == (Verdict.REFUTED, "digits")
    assert found.counterexample is not None
    assert found.counterexample["place"] == (place,)


def test_a_swizzle_within_a_block_fills_what_is_whole_blocks_for_all_sizes() -> None:
    text = "S[(8,N):(N@m,1@m)] swizzle {} within (8*N@m)"
    assert lp.ask("covers", text.format("(0,3,3)")).verdict is Verdict.PROVED
    # this one permutes blocks of 16, and 8*N may end within one
    found = lp.ask("covers", text.format("(1,3,3)"))
    assert (found.verdict, found.counterexample) == (Verdict.REFUTED, {"sizes": {"N": 9}, "place": (64,)})
