"""Numbers that stand beside a verdict, each where another line of the property would give another one."""

from __future__ import annotations

import re
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.bodies.bit_terms import wrapped
from layoutproof.bodies.row_major import quotient
from layoutproof.core.index_map import Memory
from layoutproof.core.term import Term
from layoutproof.layouts.strided import StridedLayout
from layoutproof.pallas.rules.index_int32 import _width, wrapped_in
from layoutproof.registry.read import map_of, read_layout
from layoutproof.solvers.digits.number import Digit, DigitSum
from layoutproof.solvers.digits.preimage import preimage
from tests.said import stretch


@pytest.mark.parametrize(
    ("question", "figures"),
    [
        (("fits_int32", "s8[N]{0}"), {"limit": 2**31, "allotted": "N", "fits_when": "N <= 2147483648"}),
        (("fits_int32", "f32[4]{0}"), {"limit": 2**31, "allotted": 4}),
        (("fits_int64", "f32[4]{0}"), {"limit": 2**63, "allotted": 4}),
        (
            ("owned", "[5,4] sharded {devices=[4,1]<=[4]}"),
            {"replicas": 1, "devices": 4, "absent_devices": 0, "idle_devices": 1, "idle": [3]},
        ),
        (("replicas_distinct", "S[(4):(1@m)] + R[(N):(4@m)]"), {"replicas": "N"}),
        (("replicas_distinct", "S[(4):(1@m)] + R[(3):(4@m)]"), {"replicas": 3}),
    ],
)
def test_figures(question: tuple[str, str], figures: dict[str, Any]) -> None:
    assert lp.ask(*question).figures.items() >= figures.items()


def test_a_byte_and_the_bit_in_it() -> None:
    assert [Memory(4, 8, 3, prefix_bytes=8).byte_and_bit(k) for k in range(4)] == [(8, 0), (8, 4), (9, 0), (9, 4)]
    assert Memory(16, 16, 3).byte_and_bit(2) == (4, 0)


def test_strides_reach_as_far_as_the_last_element() -> None:
    """Backward strides move the start, forward ones the end."""
    found = [read_layout(f"f32[3,2] strides ({a},{b})") for a, b in ((5, 1), (-5, 1), (5, -1), (-5, -1))]
    assert all(isinstance(layout, StridedLayout) for layout in found)
    assert [map_of(layout).range.extents for layout in found] == [(12,)] * 4
    assert [map_of(layout).at((0, 0)) for layout in found] == [(0,), (10,), (1,), (11,)]


@pytest.mark.parametrize(
    ("wanted", "rows", "elements"),
    [
        ({0: 2}, [(8,), (9,)], 2),
        # the last group of four is cut short: of its places only the first two have an element
        ({1: 1}, [(1,), (5,), (9,)], 3),
        ({1: 3}, [(3,), (7,)], 2),
        ({0: 7}, [], 0),
        ({0: 2, 1: 3}, [], 0),
    ],
)
def test_elements_at_coordinates_of_a_split_that_is_cut_short(
    wanted: dict[int, int], rows: list[tuple[int]], elements: int
) -> None:
    found = preimage(map_of(read_layout("(i < 10) -> (i // 4, i % 4)")), wanted, 5)
    assert ([index for index, _ in found.rows], found.elements) == (rows, elements)


def test_numbers_in_terms() -> None:
    seven = Term("int", 7)
    assert [str(quotient(op, seven, 2)) for op in ("//", "%")] == ["3", "1"]
    assert [str(quotient(op, Term("name", "i"), 1)) for op in ("//", "%")] == ["i", "0"]
    # the bits of a rest by a power of two
    assert [_width(Term("int", by)) for by in (8, 2, 1, 12, 1 << 32, 1 << 33)] == [3, 1, 0, 0, 32, 0]


def test_the_memory_of_a_pipeline_is_asked_of_the_call_around_it() -> None:
    out = {"array": "f32[32,128]", "block": [8, 128], "index": "(i) -> (i, 0)"}
    pipeline = {"name": "k", "pipeline": "emit_pipeline", "grid": {"i": 4}, "outputs": [out]}
    found = lp.ask("memory_budget", {"kernel": pipeline}, target="v5e")
    assert (found.verdict.value, found.asked) == ("unknown", False)
    assert found.reason.startswith("not asked: the call around it counts its buffers")


def test_a_grid_without_programs_is_refuted_whatever_another_extent_is() -> None:
    out = {"array": "f32[8]", "block": [8], "index": "(i, j) -> (0,)"}
    grid = {"i": 0, "j": "N - 1"}
    found = lp.ask("grid_positive", {"kernel": {"name": "k", "grid": grid, "outputs": [out]}})
    assert (found.verdict.value, found.decided_by) == ("refuted", "rule")
    assert found.reason.startswith("grid dimension 0 has 0 programs")


@pytest.mark.parametrize(
    ("steps", "block", "out", "verdict"),
    [
        (2, "i", "i", "proved"),
        (4, "3 - i", "i", "refuted"),
        (4, "i", "i", "proved"),
        (4, "max(i - 1, 0)", "i", "refuted"),
        # program 2 fetches what program 0 wrote; program 3 has it already
        (4, "i // 2", "i + 1", "refuted"),
    ],
)
def test_a_shared_buffer_is_asked_where_a_block_is_fetched(steps: int, block: str, out: str, verdict: str) -> None:
    text = {
        "name": "k",
        "grid": {"i": steps},
        "inputs": [{"name": "x", "array": "f32[40,128]", "block": [8, 128], "index": f"(i) -> ({block}, 0)"}],
        "outputs": [{"name": "o", "array": "f32[40,128]", "block": [8, 128], "index": f"(i) -> ({out}, 0)"}],
        "aliases": {"x": "o"},
    }
    assert lp.ask("alias_hazard", {"kernel": text}).verdict.value == verdict


def test_an_axis_of_one_place_reaches_one() -> None:
    """Its largest coordinate is 0, so its extent is 1."""
    assert map_of(read_layout("S[(4,1):(1@m,1@lane)]")).range.extents == (4, 1)


def test_what_bounds_nothing_proves_nothing() -> None:
    """Of axes without an end `in_bounds` is vacuous, and says so; a map without a range covers none, memory is one."""
    found = lp.ask("in_bounds", "S[(4):(1@lane)]")
    assert (found.verdict, found.reason.partition(";")[0]) == (
        lp.Verdict.UNKNOWN,
        "vacuous: nothing bounds the axes",
    )
    assert lp.ask("in_bounds", "S[(4):(1@lane)]", within="cuda").verdict is lp.Verdict.PROVED
    assert lp.ask("covers", "f32[]").verdict is lp.Verdict.PROVED
    with pytest.raises(lp.LayoutError, match=re.escape(stretch("properties.covers_no_range"))):
        lp.ask("covers", "(i < 4) -> (i,)")


def test_digits_times_a_number_without_digits() -> None:
    """A number that was made of digits and has none left multiplies as it is."""
    some = DigitSum(((2, Digit(0, 4, 1)),), 5)
    assert [(each.terms[0][0], each.constant) for each in (some * DigitSum((), 3), DigitSum((), 3) * some)] == [
        (6, 15),
        (6, 15),
    ]


@pytest.mark.parametrize(("used", "found"), [(16, True), (9, True), (8, False), (4, False)])
def test_what_wraps_under_a_rest_counts_where_more_bits_are_used(used: int, found: bool) -> None:
    """Eight bits with a sign, of which the last ones are taken: these are the same with and without the wrap."""
    number = Term("name", "i")
    rest = Term("%", wrapped(number, 8, True), Term("int", 1 << used))
    assert wrapped_in(rest) == ([(number, 8)] if found else [])
