"""The engine over GF(2): the smallest counterexample of enumeration, found by rank; nothing beyond its reach."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutproof as lp
from layoutproof.core.claim import At, Claim, Differ, Equal
from layoutproof.core.errors import Undecided, Unsupported
from layoutproof.core.index_map import IndexMap
from layoutproof.core.numbers import Numbers
from layoutproof.core.term import Term
from layoutproof.registry.read import map_of
from layoutproof.solvers import bits, brute, smt
from layoutproof.solvers.bits.number import BitNumbers, BitSum, rows_of
from layoutproof.solvers.count import one_by_one
from layoutproof.solvers.decide import decide
from tests.solvers.claims import N, answer_or_reason, box, covers, in_bounds, injective, mapping, same

pytestmark = pytest.mark.slow

UNKNOWN = "unknown"


def answer(solver: Any, claim: Claim) -> Any:
    try:
        return solver.decide(claim)
    except Undecided:
        return UNKNOWN


@st.composite
def linear_maps(draw: st.DrawFn) -> IndexMap:
    """Random xor of bases over small boxes of powers of two, any of them perhaps zero or repeated; shifted at times."""
    widths = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3).filter(lambda w: sum(w) <= 6))
    outs = draw(st.lists(st.integers(0, 3), min_size=1, max_size=2))
    bases = [[[draw(st.integers(0, 2**out - 1)) for out in outs] for _ in range(width)] for width in widths]
    start = [draw(st.sampled_from([0, 0, 0, 2**out - 1])) for out in outs]
    extents = [max(1, 2**out - draw(st.sampled_from([0, 0, 1, 3]))) for out in outs]

    def place(on: Numbers, *index: Any) -> tuple[Any, ...]:
        totals: list[Any] = list(start)
        for entry, basis in zip(index, bases, strict=True):
            for k, column in enumerate(basis):
                for d, value in enumerate(column):
                    totals[d] = on.xor(totals[d], (entry // 2**k) % 2 * value)
        return tuple(totals)

    return mapping([2**width for width in widths], place, extents)


@st.composite
def terms(draw: st.DrawFn, names: tuple[str, ...]) -> Term:
    """Shifts, masks, xor, sums and differences of the names."""
    name = st.sampled_from(names).map(lambda n: Term("name", n))

    def grow(inner: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
        by = st.sampled_from([1, 2, 3, 4, 8])
        return st.one_of(
            st.tuples(inner, inner).map(lambda p: p[0] ^ p[1]),
            st.tuples(inner, inner).map(lambda p: p[0] + p[1]),
            st.tuples(inner, inner).map(lambda p: p[0] - p[1]),
            st.tuples(inner, by).map(lambda p: p[0] * p[1]),
            st.tuples(inner, by).map(lambda p: p[0] // p[1]),
            st.tuples(inner, by).map(lambda p: p[0] % p[1]),
            st.tuples(inner, st.integers(-3, 9)).map(lambda p: p[0] + p[1]),
        )

    return draw(st.recursive(name, grow, max_leaves=6))


@st.composite
def term_maps(draw: st.DrawFn, extents: st.SearchStrategy[int]) -> IndexMap:
    shape = draw(st.lists(extents, min_size=1, max_size=2))
    names = tuple(f"d{k}" for k in range(len(shape)))
    found = draw(st.lists(terms(names), min_size=1, max_size=2))
    room = [draw(st.integers(1, 20)) for _ in found]
    return mapping(shape, lambda on, *x: tuple(t.evaluate(dict(zip(names, x, strict=True)), on) for t in found), room)


@given(linear_maps(), linear_maps())
def test_linear_maps_are_decided_as_by_enumeration(m: IndexMap, other: IndexMap) -> None:
    """Every claim about a linear map of boxes of powers of two gets enumeration's answer, never Undecided."""
    for claim in (injective(m), in_bounds(m)):
        assert answer(bits, claim) == brute.decide(claim)
    if all(extent & (extent - 1) == 0 for extent in m.range.extents) and brute.decide(in_bounds(m)) is None:
        assert answer(bits, covers(m)) == brute.decide(covers(m))
    if len(m.range.extents) == len(other.range.extents):
        twin = IndexMap(m.domain, other.range, other.place) if m.domain == other.domain else m
        for claim in (same(m, twin), Claim({"x": m.domain}, Equal(At(m, "x"), At(twin, "x")))):
            assert answer(bits, claim) == brute.decide(claim)


@settings(max_examples=25)
@given(linear_maps())
def test_z3_agrees(m: IndexMap) -> None:
    """Bit-vectors give the same verdict and the same counterexample."""
    for claim in (injective(m), in_bounds(m)):
        assert answer(bits, claim) == smt.decide(claim)


@given(term_maps(st.sampled_from([1, 2, 4, 8, 16])), term_maps(st.integers(1, 13)))
def test_never_wrong(exact: IndexMap, rounded: IndexMap) -> None:
    """On sums, differences and shifts in any order it says what enumeration says, or that it cannot tell."""
    for m in (exact, rounded):
        for claim in (injective(m), in_bounds(m), covers(m)):
            found = answer(bits, claim)
            assert found in (UNKNOWN, brute.decide(claim))


def test_never_wrong_is_not_never_right() -> None:
    """The terms above are within reach often enough for the test to mean something."""
    decided = 0

    @settings(max_examples=100, database=None)
    @given(term_maps(st.sampled_from([1, 2, 4, 8, 16])))
    def count(m: IndexMap) -> None:
        nonlocal decided
        decided += answer(bits, injective(m)) != UNKNOWN

    count()
    assert decided > 40


def test_the_smallest_pair_is_0_and_the_smallest_kernel_element() -> None:
    """x xor x//8, cut to three bits: 9 = 8 + 1 is the smallest index besides 0 that goes to 0."""
    swap = mapping([64], lambda on, x: on.xor(x % 8, x // 8), [8])
    assert bits.decide(injective(swap)) == {"first": (0,), "second": (9,)}
    whole = mapping([64], lambda on, x: (x // 8, on.xor(x % 8, x // 8)), [8, 8])
    assert bits.decide(injective(whole)) is None
    assert bits.decide(covers(whole)) is None


def test_a_swizzle_of_2_to_the_60_elements() -> None:
    """Size does not matter: Sw<3,4,3> over 2**60 offsets is a bijection, and without bit 59 it is not."""
    size = 2**60
    swizzle = mapping([size], lambda on, x: on.xor(x, x // 128 % 8 * 16), [size])
    assert [bits.decide(claim(swizzle)) for claim in (injective, in_bounds, covers)] == [None, None, None]
    cut = mapping([size], lambda on, x: on.xor(x % 2**59, x // 128 % 8 * 16), [size])
    assert bits.decide(injective(cut)) == {"first": (0,), "second": (2**59,)}
    assert bits.decide(covers(cut)) == {"place": (2**59,)}


def test_bounds_of_a_range_that_is_no_power_of_two() -> None:
    """The values of x xor x//2 % 4 for x < 8 are 0..7; 6 is first exceeded at 4 (4 xor 2 = 6)."""
    gray = mapping([8], lambda on, x: on.xor(x, x // 2 % 4), [6])
    assert bits.decide(in_bounds(gray)) == brute.decide(in_bounds(gray)) == {"index": (4,)}
    assert bits.decide(in_bounds(gray, extents=(8,))) is None


def test_two_maps_differ_first_where_the_lowest_bit_of_a_difference_says() -> None:
    """x and x xor x//4 % 2 * 2 agree below 4."""
    a = mapping([16], lambda on, x: x, [16])
    b = mapping([16], lambda on, x: on.xor(x, x // 4 % 2 * 2), [16])
    assert bits.decide(same(a, b)) == {"index": (4,)}
    claim = Claim({"x": a.domain}, Differ(At(a, "x"), At(a, "x")))
    assert bits.decide(claim) is None


@pytest.mark.parametrize(
    ("m", "reason"),
    [
        (mapping([8], lambda on, x: x * x), "bits multiply by constants >= 0 only"),
        (mapping([8], lambda on, x: x // 3), "bits divide by powers of two only, not by 3"),
        (mapping([8], lambda on, x: x // -2), "bits divide by positive numbers only, not -2"),
        (mapping([8], lambda on, x: 8 // x), "bits cannot divide by an index"),
        (mapping([8], lambda on, x: x // 0), "bits divide by positive numbers only, not 0"),
        (mapping([8], lambda on, x: (x % 2 + x // 2) % 4), "bits: a carry depends on products of index bits"),
        (mapping([8], lambda on, x: 12 - x), "bits: a carry depends on products of index bits"),
        (mapping([8], lambda on, x: 3 - x), "bits cannot tell that a difference is never negative"),
        (mapping([8], lambda on, x: x - 8), "bits cannot tell that a difference is never negative"),
        (mapping([8], lambda on, x: on.minimum(x, 3)), "bits cannot settle a comparison for all indices"),
        (mapping([N], lambda on, x: x), "bits are for constant sizes"),
        (mapping([0], lambda on, x: x), "there are no indices"),
        (mapping([8], lambda on, x, c: x + c, [9], [2]), "bits do not know this kind of claim"),
    ],
    ids=range(13),
)
def test_what_is_out_of_reach_is_said(m: IndexMap, reason: str) -> None:
    """Undecided with its reason, never a guess."""
    assert answer_or_reason(bits, injective(m)) == reason


def test_extents_that_are_no_powers_of_two_are_rounded_up() -> None:
    """A proof holds for fewer indices, a counterexample only when it is one of them."""
    gray = mapping([3], lambda on, x: on.xor(x, x // 2))
    assert bits.decide(injective(gray)) is None
    folded = mapping([5], lambda on, x: x % 4)
    assert bits.decide(injective(folded)) == brute.decide(injective(folded)) == {"first": (0,), "second": (4,)}
    short = mapping([3, 3], lambda on, x, y: on.xor(x, y // 2 * 3))
    assert brute.decide(injective(short)) == {"first": (0, 0), "second": (0, 1)}
    beyond = mapping([3, 2], lambda on, x, y: on.xor(x, y * 3))
    assert brute.decide(injective(beyond)) == {"first": (1, 0), "second": (2, 1)}
    outside = "the smallest violation is outside the array, which is no box of powers of two"
    assert answer_or_reason(bits, injective(beyond)) == outside


def test_numbers_know_their_rows() -> None:
    """A sum that carries only through equal or opposite bits stays affine: x + x is 2x, x + (7 - x) is 7."""
    x = BitSum([1, 2, 4])
    assert rows_of(x + x) == rows_of(x * 2)
    assert x + (7 - x) == 7
    assert rows_of(x - x // 4 * 4) == rows_of(x % 4)
    # one bit of the value that depends on two bits of the index
    both = BitSum([1, 1])
    assert rows_of(both + both) == rows_of(both * 2)
    assert BitNumbers().less(x, 8) is True
    assert BitNumbers().equal(x, 9) is False
    assert box(2).count() == 2


def test_a_part_of_the_domain_is_another_engines_business() -> None:
    """x ^ (x / 8) sends 0 and 9 to one place, and nothing among the first eight: only of all of it the rank speaks."""
    m = mapping((16,), lambda on, x: on.xor(x % 8, x // 8), (8,))
    whole = injective(m)
    assert bits.decide(whole) == brute.decide(whole) == {"first": (0,), "second": (9,)}
    part = Claim({"first": box(8), "second": box(8)}, whole.violation)
    assert brute.decide(part) is None
    with pytest.raises(Undecided, match="whole domains"):
        bits.decide(part)
    assert decide(part).point is None


def test_a_matrix_that_is_given_is_what_its_place_says() -> None:
    """A linear layout's bases are the columns that running its place gives; of another box of indices they are not."""
    rng = random.Random(20261122)
    for _ in range(200):
        outputs = rng.randint(1, 3)
        inputs = {
            f"in{k}": [[rng.randrange(16) for _ in range(outputs)] for _ in range(rng.randint(0, 3))]
            for k in range(rng.randint(1, 3))
        }
        m = lp.read_layout({"linear": {"in": inputs, "out": {f"o{k}": 16 for k in range(outputs)}}}).index_map()
        plain = replace(m, place=lambda index, replica, on, m=m: m.place(index, replica, on))
        given, worked_out = bits._places(m)[0], bits._places(plain)[0]
        assert [rows_of(value) for value in given] == [rows_of(value) for value in worked_out]
        for claims in (injective(m), covers(m)):
            assert bits.decide(claims) == brute.decide(claims)
    m = lp.read_layout({"linear": {"in": {"a": [[1], [2], [4]], "b": [[8]]}, "out": ["o"]}}).index_map()
    other = replace(m, domain=box(4, 4))
    assert bits.decide(injective(other)) == brute.decide(injective(other)) == {"first": (0, 0), "second": (0, 2)}


@given(linear_maps())
def test_places_are_counted_by_rank_as_one_by_one(m: IndexMap) -> None:
    """How many, their bounds, how many elements at each; where some leave the range it is left to others."""
    try:
        found = bits.tally(m)
    except Undecided:
        assert decide(in_bounds(m), ("brute",)).point is not None
        return
    assert found == one_by_one(m)


def test_holes_of_2_to_the_30_elements_are_counted() -> None:
    """By a user's question: it was too many to look at, and the figure was left out."""
    found = lp.ask("covers", "Sw<3,4,3> o 0 o (32768,32768):(32768,1)")
    assert (found.verdict, dict(found.figures)) == (lp.Verdict.PROVED, {"holes": 0})
    folded = {"linear": {"in": {"a": [[1], [2], [1]], "b": [[8]]}, "out": {"o": 16}}}
    assert lp.ask("covers", folded).figures["holes"] == 8


@pytest.mark.parametrize(
    ("text", "by"),
    [
        ("register=1 -> (2); register=2 -> (1); lane=1 -> (4)", "bits"),
        ("Sw<3,3,3> o 0 o (8,64):(64,1)", "bits"),
        ("(8,64):(64,1)", "digits"),
    ],
)
def test_matrices_are_asked_of_bits_first(text: str, by: str) -> None:
    """What is a matrix as it is needs no digits; what is not has none made for it."""
    assert lp.ask("injective", text).decided_by == by


@pytest.mark.parametrize(
    "text", ["Sw<3,3,3> o 0 o ((4,2),64):((64,256),1)", "Sw<2,1,-3> o 0 o (2,4,(2,2)):(1,8,(2,4))"]
)
def test_a_swizzle_states_its_matrix(text: str) -> None:
    """The matrix that a layout gives is the one that its place works out to."""
    m = map_of(lp.read_layout(text))
    assert bits.is_matrix(m)
    worked_out = IndexMap(m.domain, m.range, lambda index, replica, on: m.place(index, replica, on))
    assert not bits.is_matrix(worked_out)
    assert bits.decide(same(m, worked_out)) is None


@pytest.mark.parametrize(
    "text", ["Sw<3,3,3> o 8 o (8,64):(64,1)", "Sw<3,3,3> o 0 o (8,48):(48,1)", "Sw<1,0,1> o 0 o (4,4):(1,1)"]
)
def test_a_swizzle_of_sums_that_carry_states_none(text: str) -> None:
    """An offset, other extents than powers of two, strides whose digits meet: verdicts are those of enumeration."""
    m = map_of(lp.read_layout(text))
    assert not bits.is_matrix(m)
    found = lp.ask("injective", text)
    assert (found.verdict, found.counterexample) == (
        lp.ask("injective", text, engine="brute").verdict,
        lp.ask("injective", text, engine="brute").counterexample,
    )


def test_constants_are_added_where_no_bit_meets() -> None:
    """A sum of two, and of one and a number, has both constants."""
    one, two = BitSum([1, 0], 8), BitSum([0, 2], 4)
    assert [((one + two).columns, (one + two).constant), (one + 4).constant] == [([1, 2], 12), 12]


def test_no_holes_are_looked_for_where_a_map_leaves_its_range() -> None:
    """The bit that is too many would be taken for one of the coordinate before, and hide that hole."""
    leaves = map_of(lp.read_layout("(i < 4) -> (0, i) in [2, 2]"))
    assert answer(bits, covers(leaves)) == UNKNOWN
    assert answer(bits, covers(map_of(lp.read_layout("(i < 4) -> (0, i % 2) in [2, 2]")))) == {"place": (1, 0)}


def values(number: BitSum | int, inputs: int) -> list[int]:
    """What a number is for each input."""
    if isinstance(number, int):
        return [number] * (1 << inputs)
    found = []
    for bits_of in range(1 << inputs):
        value = number.constant
        for k, column in enumerate(number.columns):
            value ^= column if bits_of >> k & 1 else 0
        found.append(value)
    return found


def test_arithmetic_on_bits_is_that_of_numbers() -> None:
    """Each operation on each pair of small numbers gives the numbers of each input, or says that it cannot."""
    columns = ([1, 2], [3, 4], [4, 4], [1, 8], [8, 0], [1, 0])
    numbers = [BitSum(of_bits, constant) for of_bits in columns for constant in (0, 1, 5)]
    known = 0
    for one in numbers:
        of_one = values(one, 2)
        for constant in range(12):
            for found, of_numbers in (
                (lambda one=one, c=constant: one * c, lambda a, c: a * c),
                (lambda one=one, c=constant: one + c, lambda a, c: a + c),
                (lambda one=one, c=constant: one - c, lambda a, c: a - c),
                (lambda one=one, c=constant: c - one, lambda a, c: c - a),
                (lambda one=one, c=constant: one // c, lambda a, c: a // c),
                (lambda one=one, c=constant: one % c, lambda a, c: a % c),
                (lambda one=one, c=constant: one ^ c, lambda a, c: a ^ c),
            ):
                try:
                    said = found()
                except Unsupported:
                    continue
                known += 1
                assert values(said, 2) == [of_numbers(a, constant) for a in of_one]
        for other in numbers:
            for found, of_numbers in (
                (lambda one=one, other=other: one + other, lambda a, b: a + b),
                (lambda one=one, other=other: one - other, lambda a, b: a - b),
                (lambda one=one, other=other: one ^ other, lambda a, b: a ^ b),
            ):
                try:
                    said = found()
                except Unsupported:
                    continue
                known += 1
                assert values(said, 2) == [of_numbers(a, b) for a, b in zip(of_one, values(other, 2), strict=True)]
    # fewer would be answers lost
    assert known == 1577


def test_a_hole_before_a_coordinate_that_is_one_number() -> None:
    """Of (1, i) the first place that nothing reaches is (0, 0): the number stands before the bits of the next one."""
    m = mapping([4], lambda on, i: (1, i), [2, 4])
    assert bits.decide(covers(m)) == {"place": (0, 0)}
