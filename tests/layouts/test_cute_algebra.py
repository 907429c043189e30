"""The algebra: literal results worked out by hand or printed by CuTe's documents, then each law by enumeration.

And the results that NVIDIA's tools return and that are wrong: the referee says where each one fails.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutproof.algebra.cute.algebra import (
    coalesce,
    complement,
    composition,
    infer,
    left_inverse,
    right_inverse,
)
from layoutproof.algebra.cute.laws import (
    complement_fails,
    composition_fails,
    refines,
    same_function,
    superincreasing,
)
from layoutproof.algebra.cute.tiling import (
    blocked_product,
    flat_divide,
    flat_product,
    logical_divide,
    logical_product,
    raked_product,
    tiled_divide,
    tiled_product,
    zipped_divide,
    zipped_product,
)
from layoutproof.core.errors import LayoutError, Reason
from layoutproof.layouts.cute import CuteLayout, parse

pytestmark = pytest.mark.slow

EXTENTS = st.sampled_from([1, 2, 2, 3, 4, 6])
STRIDES = st.sampled_from([0, 1, 1, 2, 3, 4, 5, 6, 8, 12])


@st.composite
def layouts(draw: st.DrawFn, strides: st.SearchStrategy[int] = STRIDES) -> CuteLayout:
    modes = draw(st.lists(st.tuples(EXTENTS, strides), min_size=1, max_size=3))
    if len(modes) == 1 and draw(st.booleans()):
        return CuteLayout(*modes[0])
    if len(modes) == 3 and draw(st.booleans()):
        (a, b), (c, d), (e, f) = modes
        return CuteLayout(((a, c), e), ((b, d), f))
    return CuteLayout(tuple(e for e, _ in modes), tuple(s for _, s in modes))


def offsets(layout: CuteLayout) -> list[int]:
    return [layout.at(x) for x in range(int(layout.size()))]  # type: ignore[arg-type]


def tiler(text: Any) -> Any:
    return tuple(map(tiler, text)) if isinstance(text, tuple) else parse(text) if isinstance(text, str) else text


@pytest.mark.parametrize(
    ("operation", "operands", "expected"),
    [
        # media/docs/cute/02_layout_algebra.md
        (coalesce, ["(2,(1,6)):(1,(6,2))"], "12:1"),
        (composition, ["20:2", "(5,4):(4,1)"], "(5,4):(8,2)"),
        (composition, ["(10,2):(16,4)", "(5,4):(1,5)"], "(5,(2,2)):(16,(80,4))"),
        (complement, ["4:1", 24], "6:4"),
        (complement, ["6:4", 24], "4:1"),
        (complement, ["(4,6):(1,4)", 24], "1:0"),
        (complement, ["4:2", 24], "(2,3):(1,8)"),
        (complement, ["(2,4):(1,6)", 24], "3:2"),
        (complement, ["(2,2):(1,6)", 24], "(3,2):(2,12)"),
        (logical_divide, ["(4,2,3):(2,1,8)", "4:2"], "((2,2),(2,3)):((4,1),(2,8))"),
        (
            logical_divide,
            ["(9,(4,8)):(59,(13,1))", ("3:3", "(2,4):(1,8)")],
            "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))",
        ),
        (
            zipped_divide,
            ["(9,(4,8)):(59,(13,1))", ("3:3", "(2,4):(1,8)")],
            "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))",
        ),
        (
            tiled_divide,
            ["(9,(4,8)):(59,(13,1))", ("3:3", "(2,4):(1,8)")],
            "((3,(2,4)),3,(2,2)):((177,(13,2)),59,(26,1))",
        ),
        (flat_divide, ["(9,(4,8)):(59,(13,1))", ("3:3", "(2,4):(1,8)")], "(3,(2,4),3,(2,2)):(177,(13,2),59,(26,1))"),
        (logical_product, ["(2,2):(4,1)", "6:1"], "((2,2),(2,3)):((4,1),(2,8))"),
        (logical_product, ["(2,2):(4,1)", "(4,2):(2,1)"], "((2,2),(4,2)):((4,1),(8,2))"),
        (logical_product, ["(2,5):(5,1)", ("3:5", "4:6")], "((2,3),(5,4)):((5,10),(1,30))"),
        (zipped_product, ["(2,5):(5,1)", ("3:5", "4:6")], "((2,5),(3,4)):((5,1),(10,30))"),
        (tiled_product, ["(2,5):(5,1)", ("3:5", "4:6")], "((2,5),3,4):((5,1),10,30)"),
        (flat_product, ["(2,5):(5,1)", ("3:5", "4:6")], "(2,5,3,4):(5,1,10,30)"),
        # CUTLASS at 7107b05: cute_layout_algebra.ipynb, and cg_logical_product_test.cpp, "checked against CuTe-C++"
        (blocked_product, ["(2,5):(5,1)", "(3,4):(1,3)"], "((2,3),(5,4)):((5,10),(1,30))"),
        (raked_product, ["(2,5):(5,1)", "(3,4):(1,3)"], "((3,2),(4,5)):((10,5),(30,1))"),
        (blocked_product, ["(3,4):(4,1)", "(2,5):(1,2)"], "((3,2),(4,5)):((4,12),(1,24))"),
        (raked_product, ["(3,4):(4,1)", "(2,5):(1,2)"], "((2,3),(5,4)):((12,4),(24,1))"),
        # the layouts of a tiled copy: fewer modes in one operand; the compiler's own test has (4,1):(512,0) as 4:512
        (raked_product, ["128:1", "(4,4):(1,4)"], "((4,128),(4,1)):((128,1),(512,0))"),
        (blocked_product, ["(2,2,2):(1,2,4)", "3:1"], "((2,3),(2,1),(2,1)):((1,8),(2,0),(4,0))"),
        # isl-layout, arXiv 2511.10374, table 2
        (right_inverse, ["(4,8,2):(8,1,33)"], "(8,4):(4,1)"),
        (left_inverse, ["(4,2,2):(4,2,32)"], "(2,2,4,2,2):(16,4,1,32,8)"),
        (complement, ["(2,2):(1,5)", 20], "(2,3):(2,9)"),
        (complement, ["(4,2):(1,16)", 32], "4:4"),
        (complement, ["(2,2):(2,10)", 20], "(2,2,2):(1,4,18)"),
        (complement, ["(2,2):(1,4)", 20], "(2,3):(2,8)"),
        (complement, ["(2,2):(2,3)", 12], "3:6"),
        (composition, ["(2,2):(1,80)", "(2,2):(2,1)"], "(2,2):(80,1)"),
        (composition, ["(4,6,8,10):(2,3,5,7)", "6:12"], "(2,3):(9,5)"),
        (composition, ["(4,2,8):(3,12,97)", "3:3"], "3:9"),
        # what lies past the last element of (2,1):(1,80) is 80 further on: CuTe's own tools disagree with one another
        (composition, ["(2,1):(1,80)", "(2,2):(2,1)"], "(2,2):(80,1)"),
        # CUTLASS calls logical_divide in the int branch of pycute's logical_product
        (logical_product, ["(4,2):(1,4)", 3], "((4,2),3):((1,4),8)"),
        (logical_product, ["4:1", 3], "(4,3):(1,4)"),
        # refused by pycute, yet there is a layout: (5,2):(1,100) at 0, 3, 6, 9 is 0, 3, 101, 104
        (composition, ["(5,2):(1,100)", "4:3"], "(2,2):(3,101)"),
        (left_inverse, ["(2,2):(1,5)"], "(5,2):(1,2)"),
        (composition, ["Sw<2,0,3> o 0 o (8,8):(8,1)", "(4,2):(2,1)"], "Sw<2,0,3> o 0 o (4,2):(16,8)"),
        (composition, ["(8,8):(8,1)", (2, None)], "(2,8):(8,1)"),
        (logical_divide, ["6:1", 4], "(4,2):(1,4)"),
        (logical_divide, ["(6,8):(1,6)", (None, 4)], "(6,(4,2)):(1,(6,24))"),
    ],
)
def test_results_that_are_known(operation: Any, operands: list[Any], expected: str) -> None:
    """Printed in CuTe's documents and in the isl-layout paper, or worked out by hand."""
    assert str(operation(*map(tiler, operands))) == expected


@pytest.mark.parametrize(
    ("a", "b", "result", "position", "wanted", "got"),
    [
        # CuTe DSL 4.8.1, pycute and tensor-layouts 0.3.2: cutlass#2955
        ("(6,2):(1,7)", "(3,2):(2,3)", "(3,2):(2,3)", 5, 8, 7),
        # CuTe DSL 4.8.1: cutlass#3177
        ("(4,6,8):(2,3,5)", "6:3", "(2,3):(6,3)", 2, 7, 3),
        # pycute and tensor-layouts
        ("(2,1):(1,80)", "(2,2):(2,1)", "(2,2):(2,1)", 1, 80, 2),
        # pycute, found by fuzzing
        ("(6,6):(12,16)", "(8,3):(3,2)", "((2,4),3):((36,16),24)", 17, 28, 84),
        ("(1):(1)", "(8):(5)", "(8):(0)", 1, 5, 0),
        # tensor-layouts, found by fuzzing
        ("(8,8,4):(8,7,16)", "(2,2):(4,6)", "(2,2):(32,48)", 3, 23, 80),
    ],
)
def test_compositions_that_other_tools_get_wrong(
    a: str, b: str, result: str, position: int, wanted: int, got: int
) -> None:
    """The referee names the first element at which the published result is wrong; and ours is not that result."""
    fails = composition_fails(parse(a), parse(b), parse(result))
    assert fails is not None
    assert (fails.position, fails.wanted, fails.got) == (position, wanted, got)
    assert parse(a).at(parse(b).at(position)) == wanted
    assert composition(parse(a), parse(b)) != parse(result)


@pytest.mark.parametrize(
    ("a", "b", "text", "position"),
    [
        (
            "(6,2):(1,7)",
            "(3,2):(2,3)",
            "no layout is (6,2):(1,7) o (3,2):(2,3): it would be (3,2):(2,3), which gives 7 at 5 instead of 8",
            5,
        ),
        (
            "(4,6,8):(2,3,5)",
            "6:3",
            "no layout is (4,6,8):(2,3,5) o 6:3: it would give 13 at 3 instead of 8",
            3,
        ),
        (
            "(4,6,8):(2,3,5)",
            "(2,6):(1,3)",
            "no layout is (4,6,8):(2,3,5) o 6:3: it would give 13 at 3 instead of 8",
            6,
        ),
    ],
)
def test_where_no_layout_is_the_composition(a: str, b: str, text: str, position: int) -> None:
    """The reason says so, and names an element that rules every layout out."""
    reason = composition(parse(a), parse(b))
    assert isinstance(reason, Reason)
    assert (reason.text, reason.position) == (text, position)


@pytest.mark.parametrize(
    ("a", "target", "result", "text"),
    [
        # CuTe DSL 4.8.1 and pycute, against the post-condition in include/cute/layout.hpp
        (
            "(2,2):(1,5)",
            20,
            "(2,2):(2,10)",
            "(2,2):(2,10) has 4 elements; 20 places and 4 elements of (2,2):(1,5) need at least 5",
        ),
        (
            "(2,2):(2,10)",
            20,
            "(2,2):(1,4)",
            "(2,2):(1,4) has 4 elements; 20 places and 4 elements of (2,2):(2,10) need at least 5",
        ),
        ("(2,2):(1,4)", 8, "2:1", "2:1 at 1 puts (2,2):(1,4) onto the offset 1, which is taken"),
        ("(2,2):(1,4)", 8, "2:0", "2:0 gives 0 at 1, not more than 0 before it"),
        ("2:1", 8, "(2,2):(4,2)", "(2,2):(4,2) gives 2 at 2, not more than 4 before it"),
        # the paper's own are fine
        ("(2,2):(1,5)", 20, "(2,3):(2,9)", None),
        ("(2,2):(2,10)", 20, "((2,2),2):((1,4),18)", None),
    ],
)
def test_complements_judged(a: str, target: int, result: str, text: str | None) -> None:
    """CuTe's own post-conditions, applied to what tools return."""
    fails = complement_fails(parse(a), target, parse(result))
    assert (None if fails is None else fails.text) == text


@given(layouts())
def test_coalesce_keeps_the_function(a: CuteLayout) -> None:
    """Same offsets, no unit mode, no two modes that could be one."""
    found = coalesce(a)
    assert offsets(found) == offsets(a)
    assert coalesce(found) == found
    assert same_function(a.modes(), found.modes()) is None  # type: ignore[arg-type]


@given(layouts(), layouts())
def test_same_function_finds_the_first_difference(a: CuteLayout, b: CuteLayout) -> None:
    """Equal exactly when all offsets are; else the smallest position at which they differ."""
    fails = same_function(a.modes(), b.modes())  # type: ignore[arg-type]
    if fails is None:
        assert offsets(a) == offsets(b)
    elif a.size() != b.size():
        assert fails.position is None
    else:
        first = next(x for x, pair in enumerate(zip(offsets(a), offsets(b), strict=True)) if pair[0] != pair[1])
        assert (fails.position, fails.wanted, fails.got) == (first, a.at(first), b.at(first))


@given(layouts(), layouts())
def test_composition_obeys_its_law(a: CuteLayout, b: CuteLayout) -> None:
    """R(x) = a(b(x)) for every x, in b's shape; or no layout does, which the forced values show."""
    wanted = [a.at(b.at(x)) for x in range(int(b.size()))]  # type: ignore[arg-type]
    found = composition(a, b)
    if isinstance(found, CuteLayout):
        assert offsets(found) == wanted
        assert refines(found.shape, b.shape)
        assert composition_fails(a, b, found) is None
    else:
        assert not any(offsets(candidate) == wanted for candidate in every_layout(b, wanted))


def every_layout(b: CuteLayout, wanted: list[int]) -> list[CuteLayout]:
    """Every layout that refines b's modes by ordered factorisations, with the strides that `wanted` forces."""
    found: list[list[tuple[int, int]]] = [[]]
    weight = 1
    for extent, _ in b.modes():
        assert type(extent) is int
        options = [[(f, p * weight) for f, p in factors] for factors in factorisations(extent)]
        found = [done + [(f, wanted[p] if f > 1 else 0) for f, p in option] for done in found for option in options]
        weight *= extent
    return [CuteLayout(tuple(e for e, _ in modes), tuple(s for _, s in modes)) for modes in found if modes]


def factorisations(n: int, before: int = 1) -> list[list[tuple[int, int]]]:
    """Ordered factorisations of n as (factor, product of those before it)."""
    if n == 1:
        return [[(1, before)]] if before == 1 else [[]]
    return [[(f, before), *rest] for f in range(2, n + 1) if n % f == 0 for rest in factorisations(n // f, before * f)]


@given(layouts(), st.integers(1, 40))
def test_complement_obeys_its_law(a: CuteLayout, target: int) -> None:
    """Sums of the two are all different, the complement increases, and it is large enough."""
    found = complement(a, target)
    kept = coalesce(CuteLayout(*map(tuple, zip(*[m for m in a.modes() if m[1] != 0] or [(1, 0)], strict=True))))
    if isinstance(found, Reason):
        modes = [m for m in kept.modes() if m[0] > 1]
        assert not superincreasing(tuple(sorted(modes, key=lambda m: m[1])))  # type: ignore[arg-type,return-value]
        return
    sums = [x + y for x in offsets(kept) for y in offsets(found)]
    assert len(set(sums)) == len(sums) >= target
    assert offsets(found) == sorted(set(offsets(found)))
    assert complement_fails(a, target, found) is None


@given(layouts(st.sampled_from([1, 2, 3, 4, 6, 8, 12, 24])))
def test_inverses_obey_their_laws(a: CuteLayout) -> None:
    """a(R(i)) = i as far as R goes, which is as far as a run 0, 1, 2, .. of digits goes; L(a(i)) = i for every i."""
    right = right_inverse(a)
    assert [a.at(x) for x in offsets(right)] == list(range(int(right.size())))  # type: ignore[arg-type]
    found = left_inverse(a)
    if isinstance(found, CuteLayout):
        assert [found.at(x) for x in offsets(a)] == list(range(int(a.size())))  # type: ignore[arg-type]


@given(layouts(), layouts(st.sampled_from([1, 2, 3, 4])))
def test_divide_and_product_obey_their_laws(a: CuteLayout, b: CuteLayout) -> None:
    """The divided layout is a at tile plus repetition; the product holds a at every place, and nothing twice."""
    divided, rest = logical_divide(a, b), complement(b, int(a.size()))  # type: ignore[arg-type]
    if isinstance(divided, CuteLayout) and isinstance(rest, CuteLayout):
        wanted = [a.at(x + y) for y in offsets(rest) for x in offsets(b)]
        assert offsets(divided) == wanted
    product = logical_product(a, b)
    if isinstance(product, CuteLayout):
        count = int(a.size())  # type: ignore[arg-type]
        found = offsets(product)
        assert found[:count] == offsets(a)
        blocks = [found[k : k + count] for k in range(0, len(found), count)]
        assert all([x - block[0] for x in block] == offsets(a) for block in blocks)
        if len(set(offsets(a))) == count and len(set(offsets(b))) == int(b.size()):  # type: ignore[arg-type]
            assert len(set(found)) == len(found)


def in_words(layout: CuteLayout, index: tuple[int, ...]) -> int:
    """The offset of an index of one number for each mode, which may be nested: the first submode is the fastest."""

    def offset(shape: Any, stride: Any, at: int) -> int:
        if not isinstance(shape, tuple):
            return int(at * stride)
        total = 0
        for part, step in zip(shape, stride, strict=True):
            count = int(CuteLayout(part, step).size())
            total, at = total + offset(part, step, at % count), at // count
        return total

    shapes = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    strides = layout.stride if isinstance(layout.stride, tuple) else (layout.stride,)
    return sum(map(offset, shapes, strides, index))


def extents(layout: CuteLayout, rank: int) -> list[int]:
    """How many elements each mode has, with modes of one element behind."""
    shapes = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    counts = [int(CuteLayout(shape, shape).size()) for shape in shapes]
    return counts + [1] * (rank - len(counts))


@given(layouts(), layouts(st.sampled_from([1, 2, 3, 4])))
def test_blocked_and_raked_products_keep_dimensions(a: CuteLayout, b: CuteLayout) -> None:
    """Along each dimension element i of block j is at i + n*j, or at j + n*i: the very offsets of logical_product."""
    product, blocked, raked = logical_product(a, b), blocked_product(a, b), raked_product(a, b)
    if isinstance(product, Reason):
        assert isinstance(blocked, Reason)
        assert isinstance(raked, Reason)
        return
    assert isinstance(blocked, CuteLayout)
    assert isinstance(raked, CuteLayout)
    of = offsets(product)
    rank = max(len(each.shape) if isinstance(each.shape, tuple) else 1 for each in (a, b))
    inner, outer = extents(a, rank), extents(b, rank)
    assert sorted(offsets(blocked)) == sorted(offsets(raked)) == sorted(of)
    for j, at_b in enumerate(colexicographic(outer)):
        for i, at_a in enumerate(colexicographic(inner)):
            wanted = of[i + j * math.prod(inner)]
            together = tuple(x + n * y for x, n, y in zip(at_a, inner, at_b, strict=True))
            dealt = tuple(y + n * x for x, n, y in zip(at_a, outer, at_b, strict=True))
            assert (in_words(blocked, together), in_words(raked, dealt)) == (wanted, wanted)


def colexicographic(counts: list[int]) -> Iterator[tuple[int, ...]]:
    """Every index of a box, the first number fastest."""
    return (index[::-1] for index in itertools.product(*map(range, reversed(counts))))


def test_the_laws_are_exercised() -> None:
    """Enough random operands have results, and enough have none, for the tests above to mean something."""
    seen: dict[str, int] = {}

    @settings(max_examples=200, database=None)
    @given(layouts(), layouts())
    def count(a: CuteLayout, b: CuteLayout) -> None:
        for name, found in (
            ("composition", composition(a, b)),
            ("complement", complement(a, 12)),
            ("left", left_inverse(a)),
            ("divide", logical_divide(a, b)),
        ):
            key = f"{name} {type(found).__name__}"
            seen[key] = seen.get(key, 0) + 1

    count()
    assert min(seen.values()) >= 10
    assert len(seen) == 8


def test_size_does_not_matter() -> None:
    """A composition of 2**60 elements is proved without looking at one; one beyond reach is refused, not guessed."""
    big = CuteLayout((2**20, 2**20, 2**20), (2**40, 1, 2**20))
    assert composition(big, CuteLayout((2**30, 2**30), (2**30, 1))) == CuteLayout(
        (2**30, (2**20, 2**10)), (2**10, (2**40, 1))
    )
    with pytest.raises(LayoutError, match="are more than 1048576"):
        composition(CuteLayout((3 * 2**20, 4), (1, 5 * 2**20)), CuteLayout(2**21, 2))


def test_infer_is_exact() -> None:
    """A table is read as the layout it is, whatever its extents; one value changed, and it is none."""
    table = offsets(parse("(2,3,2):(5,1,30)"))
    assert infer(table.__getitem__, 12) == ((2, 5), (3, 1), (2, 30))
    table[7] += 1
    assert isinstance(infer(table.__getitem__, 12), Reason)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: coalesce(parse("(N,2):(1,N)")), "(N,2):(1,N): the algebra needs constant extents and strides"),
        (
            lambda: coalesce(parse("Sw<1,0,1> o 0 o 4:1")),
            "Sw<1,0,1> o 0 o 4:1: the algebra is about shape:stride; a swizzle may stand only left of a composition",
        ),
        (
            lambda: composition(parse("4:1"), parse("2:-1")),
            "composition: 2:-1 has a negative stride, so its offsets are no positions of 4:1",
        ),
        (lambda: composition(parse("(4,2):(1,4)"), (2, 2, 2)), "3 tilers for the 2 modes of (4,2):(1,4)"),
        (
            lambda: logical_divide(parse("4:1"), "2"),  # type: ignore[arg-type]
            "a tiler is a layout, an integer, None or a tuple of them, not '2'",
        ),
        (lambda: complement(parse("4:1"), 0), "complement: the target is a number of places, at least 1, not 0"),
        (lambda: complement(parse("4:-1"), 8), "complement: 4:-1 has a negative stride"),
    ],
)
def test_operands_that_are_refused(call: Any, message: str) -> None:
    """What the algebra is not defined on is a LayoutError, not an answer."""
    with pytest.raises(LayoutError) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (
            complement(parse("(2,4):(2,1)"), 8),
            "(2,4):(2,1) overlaps or interleaves: its stride 2 lies within the 4 places of smaller modes",
        ),
        (
            left_inverse(parse("(2,2):(1,0)")),
            "(2,2):(1,0) stores several elements at one offset, so it has no left inverse",
        ),
        (
            left_inverse(parse("(4,8,2):(8,1,33)")),
            "no left inverse of (4,8,2):(8,1,33) is known: its strides [1, 8, 33] do not divide one another",
        ),
        (
            # it has one, (2,4):(2,1): that no complement exists must not sound like "none exists"
            left_inverse(parse("(3,2):(2,3)")),
            "no left inverse of (3,2):(2,3) is known: (3,2):(2,3) overlaps or interleaves: its stride 3 lies within "
            "the 5 places of smaller modes",
        ),
        (
            logical_product(parse("(2,2):(1,1)"), 2),
            "(2,2):(1,1) overlaps or interleaves: its stride 1 lies within the 2 places of smaller modes",
        ),
        (
            zipped_divide(parse("((2,2),4):((1,1),8)"), (parse("(2,2):(1,1)"), 2)),
            "(2,2):(1,1) overlaps or interleaves: its stride 1 lies within the 2 places of smaller modes",
        ),
    ],
)
def test_reasons(found: Any, text: str) -> None:
    """Where there is no result, why; also through operations made of others."""
    assert isinstance(found, Reason)
    assert str(found) == text
