"""Violations that stay violations when sizes grow: the smallest by bisection is the smallest by trying all."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import layoutproof as lp
from layoutproof.core.claim import At, Claim, Outside
from layoutproof.core.errors import NotSmallest, Unsupported
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point
from layoutproof.registry.read import map_of, read_layout
from layoutproof.solvers import isl
from layoutproof.solvers.growing import Rising, RisingNumbers

pytestmark = pytest.mark.slow

TRIED = 14
"""Sizes up to which every violation is tried."""


def claim_of(text: str, limits: tuple[int, ...]) -> Claim:
    """No element at a coordinate outside of constant limits; of a memory, no offset."""
    m = map_of(read_layout(text))
    m = m.flat() if m.memory is not None else m
    return Claim({"element": m.domain}, Outside(At(m, "element"), limits), symbols=m.sizes())


def first(claim: Claim) -> Point | None:
    """The smallest violation with sizes up to `TRIED`, one after the other: by its largest size, then in order."""
    assert isinstance(claim.violation, Outside)
    m, limits = claim.violation.place.map, claim.violation.extents
    assert limits is not None
    names = claim.sizes()
    every = sorted(itertools.product(range(1, TRIED + 1), repeat=len(names)), key=lambda sizes: (max(sizes), sizes))
    for sizes in every:
        on = Numbers(dict(zip(names, sizes, strict=True)))
        for index in itertools.product(*[range(on.size(extent)) for extent in m.domain.extents]):
            place = m.place(index, (), on)
            if any(not 0 <= entry < limit for entry, limit in zip(place, limits, strict=True)):
                return {"sizes": sizes, "element": index}
    return None


@st.composite
def growing_layouts(draw: st.DrawFn) -> str:
    """Tilings by constants of arrays with one or two sizes that have names, in any order."""
    dims = draw(st.sampled_from([("N",), ("N", "3"), ("N", "M"), ("2*N", "M"), ("N", "5", "M")]))
    order = ",".join(map(str, draw(st.permutations(range(len(dims))))))
    tiles = "".join(
        f"({','.join(map(str, draw(st.lists(st.integers(1, 5), min_size=1, max_size=len(dims)))))})"
        for _ in range(draw(st.integers(0, 2)))
    )
    return f"f32[{','.join(dims)}]{{{order}{':T' + tiles if tiles else ''}}}"


@given(growing_layouts(), st.integers(1, 120))
def test_the_smallest_by_bisection_is_the_smallest_of_all(text: str, limit: int) -> None:
    """Sizes and element; padding too, where a tile's last rows hold no element."""
    claim = claim_of(text, (limit,))
    tried = first(claim)
    assume(tried is not None)
    assert isl.growing(claim) == tried


MAPS = (
    *("(i < N, j < M) -> (i * M + j)", "(i < N, j < 4) -> (i // 3 * 4 + j % 3)", "(i < N) -> (min(i, 7) * 2)"),
    *(
        "(i < N, j < M) -> (max(i, j) + N // 2)",
        "(i < N, j < M) -> (select(i < j, i, 2 * j) + M)",
        "(i < N) -> (xor(i, 3))",
    ),
    # what shrinks when a size grows, or may
    *("(i < N) -> (N - i)", "(i < N, j < M) -> (i % M)", "(i < N) -> (9 // N + i)", "(i < N, j < M) -> (i // M)"),
    *(
        "(i < N) -> (select(N < 3, 9, i))",
        "(i < N, j < M) -> (i - j)",
        "(i < N, j < M) -> ((i + M) % 4)",
        "(i < N, j < M) -> (i * (3 - M))",
    ),
    "(i < N) -> (0 - i)",
)


@pytest.mark.parametrize("text", MAPS)
@pytest.mark.parametrize("limit", [1, 4, 9, 20])
def test_what_may_shrink_is_left_to_others(text: str, limit: int) -> None:
    """Whatever is answered is the smallest; a map that is not seen to grow has no answer here."""
    claim = claim_of(text, (limit,))
    try:
        found = isl.growing(claim)
    except Unsupported:
        return
    if max(found["sizes"]) <= TRIED:
        assert found == first(claim)
    else:
        assert first(claim) is None


@pytest.mark.parametrize("text", MAPS[:5])
def test_the_maps_that_grow_are_answered(text: str) -> None:
    """Two of them have a bound of their own: with a limit above it, nothing is found and nothing is claimed."""
    assert first(claim_of(text, (4,))) == isl.growing(claim_of(text, (4,)))


def test_nothing_is_claimed_where_nothing_is_found() -> None:
    with pytest.raises(Unsupported, match="no violation is found"):
        isl.growing(claim_of("(i < N) -> (min(i, 7))", (8,)))


def test_sizes_that_divide_are_one_and_it_is_said() -> None:
    """A violation at hand at once; that it may not be the smallest stands in the answer."""
    with pytest.raises(NotSmallest, match="only with b = a = 1") as found:
        isl.growing(claim_of("f32[N,M]{1,0:T(a,b)}", (1000,)))
    assert found.value.point == {"sizes": (32, 32, 1, 1), "element": (31, 8)}


@pytest.mark.parametrize(
    ("question", "layout", "sizes", "smallest"),
    [
        ("fits_int32", "f32[N,M]{1,0:T(a,b)}", {"N": 46341, "M": 46341, "a": 1, "b": 1}, False),
        ("fits_int32", "f32[A,B,C,D]{3,2,1,0:T(a,b)}", {"A": 214, "B": 216, "C": 216, "D": 216, "a": 1, "b": 1}, False),
        ("fits_int32", "f32[N,M]{1,0:T(8,128)}", {"N": 46217, "M": 46337}, True),
        ("fits_int32", "bf16[N,M,K]{2,1,0:T(8,128)(2,1)}", {"N": 1185, "M": 1281, "K": 1281}, True),
        ("fits_int64", "f32[N,M]{1,0}", {"N": 3037000500, "M": 3037000500}, True),
        ("in_bounds", "(i < N, j < M) -> (i * M + j) in [100000]", {"N": 316, "M": 317}, True),
    ],
)
def test_symbolic_sizes_are_refuted_without_products_of_unknowns(
    question: str, layout: str, sizes: dict[str, int], smallest: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """z3 is not asked at all; only where sizes divide may there be a smaller violation."""
    from layoutproof.solvers import smt

    def refuse(*_: Any) -> None:
        raise AssertionError("z3 was asked")

    monkeypatch.setattr(smt, "decide", refuse)
    found = lp.ask(question, layout)
    assert (found.verdict, found.decided_by) == (lp.Verdict.REFUTED, "isl")
    assert found.counterexample is not None
    assert found.counterexample["sizes"] == sizes
    assert ("not shown to be the smallest" in found.reason) != smallest


def test_z3_alone_agrees() -> None:
    """What z3 finds among integers is what bisection finds, where both answer."""
    for question, layout in [
        ("fits_int32", "f32[N,M]{1,0:T(8,128)}"),
        ("in_bounds", "(i < N, j < M) -> (i * M + j) in [90]"),
    ]:
        one, other = lp.ask(question, layout, engine="smt"), lp.ask(question, layout, engine="isl")
        assert one.counterexample == other.counterexample
        assert one.decided_by == "smt"
    tiles = lp.ask("fits_int32", "f32[N,M]{1,0:T(a,b)}", engine="smt")
    assert tiles.counterexample == lp.ask("fits_int32", "f32[N,M]{1,0:T(a,b)}").counterexample


def test_a_condition_on_sizes_is_kept() -> None:
    """Bisection knows no `where`: the answer satisfies it."""
    found = lp.ask("in_bounds", "(i < N, j < M) -> (i * M + j) in [90]", where="N == 3")
    assert found.counterexample is not None
    assert found.counterexample["sizes"] == {"N": 3, "M": 31}


def test_smaller_violations_nearby_are_still_sought() -> None:
    """A violation with few points is no reason to stop: another engine shows the smallest."""
    found = lp.ask("in_bounds", "(i < N) -> (i // a, i % a) in [5, 5]")
    assert found.verdict is lp.Verdict.REFUTED
    assert "not shown to be the smallest" not in found.reason


def test_what_may_be_below_0_does_not_rise() -> None:
    """A sum, a product or a choice of a size and -1 may fall where the size grows: that is refused, on either side."""
    on, size = RisingNumbers({}), Rising(False)
    for operation in (lambda a, b: a + b, lambda a, b: a * b, on.minimum, on.maximum, partial(on.select, 1)):
        assert isinstance(operation(size, 3), Rising)
        assert isinstance(operation(3, size), Rising)
        for left, right in ((size, -1), (-1, size)):
            with pytest.raises(Unsupported, match="below 0"):
                operation(left, right)
