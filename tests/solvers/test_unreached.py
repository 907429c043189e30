"""Z3 alone on places that nothing reaches: written out, by a witness for each place, or under a quantifier."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.core.claim import Claim, Uncovered
from layoutproof.core.errors import Undecided
from layoutproof.core.numbers import Numbers
from layoutproof.registry.read import map_of, read_layout
from layoutproof.solvers import isl, smt
from layoutproof.solvers.digits.witness import witness
from tests.questions.z3_alone import ask, question
from tests.solvers.claims import N, covers, mapping

pytestmark = pytest.mark.slow

PROVED = (
    *(("f32[4096,11008]{1,0:T(8,128)}", None), ("S[(2,4,8):(32,1,4)] on (8,8)", None)),
    *(("Sw<2,3,3> o 0 o (24576,40960):(40960,1)", None), ("Sw<3,3,3> o 0 o (24,48):(48,1)", None)),
    *(("Sw<2,0,3> o 0 o (8,4):(4,1)", None), ("f32[N,M] strides (M,1)", None), ("f32[N,M]{0,1}", None)),
    ("f32[N,M]{1,0:T(8,128)}", "N % 8 == 0 and M % 128 == 0"),
    ("f32[N,M]{1,0:T(a,b)}", "N % a == 0 and M % b == 0"),
    ("f32[N,M] blockspec (8, 128) (i, j) -> (i, j) grid (cdiv(N, 8), cdiv(M, 128))", None),
)

HOLES = (
    "(i < 2400) -> (i + 7 * (i // 2399),) in [2400]",
    "(i < 2400) -> (i * i % 2400,) in [2400]",
    "(i < 2400) -> (i,) in [2401]",
)
"""One element outside; two at one place; fewer elements than places. More than are written out, of each."""

REFUTED: tuple[tuple[str, str | None, dict[str, Any]], ...] = (
    ("f32[3,128]{1,0:T(4,128)}", None, {"place": (0, 0, 3, 0)}),
    ("f32[3000,128]{1,0:T(7,128)}", None, {"place": (428, 0, 4, 0)}),
    ("f32[N,M]{1,0:T(8,128)}", None, {"sizes": {"N": 1, "M": 1}, "place": (0, 0, 0, 1)}),
    ("f32[N,M]{1,0:T(8,128)}", "N % 8 == 0", {"sizes": {"N": 8, "M": 1}, "place": (0, 0, 0, 1)}),
    ("f32[N,M] strides (M+1,1)", None, {"sizes": {"N": 2, "M": 1}, "place": (1,)}),
    ("f32[N + 1,N]{0,1:T(1,*,8)L(8)}", "N % 4 == 0", {"sizes": {"N": 4}, "place": (0, 2, 0, 4)}),
    ("f32[1000,1000] blockspec (8, 128) (i, j) -> (i, j) grid (125, 7)", None, {"place": (0, 896)}),
)


@pytest.mark.parametrize(("layout", "where"), PROVED)
def test_every_place_is_reached(layout: str, where: str | None) -> None:
    found = lp.ask("covers", layout, where=where, engine="smt")
    assert (found.verdict, found.decided_by) == (lp.Verdict.PROVED, "smt")


@pytest.mark.parametrize("layout", HOLES)
def test_a_count_proves_nothing_where_places_are_shared_or_outside(layout: str) -> None:
    assert lp.ask("covers", layout, engine="smt").verdict is not lp.Verdict.PROVED
    assert lp.ask("covers", layout).verdict is lp.Verdict.REFUTED


@pytest.mark.parametrize(("layout", "where", "counterexample"), REFUTED)
def test_the_first_place_that_is_not(layout: str, where: str | None, counterexample: dict[str, Any]) -> None:
    """The smallest sizes, and the smallest place at them, as the other engines give it."""
    found = lp.ask("covers", layout, where=where, engine="smt")
    assert (found.verdict, found.counterexample) == (lp.Verdict.REFUTED, counterexample)


@pytest.mark.parametrize(
    ("grid", "extent", "verdict"),
    [("8", "1024", "proved"), ("7", "1000", "refuted"), ("cdiv(N, 128)", "N", "proved"), ("N // 128", "N", "refuted")],
)
def test_outputs_of_kernels(grid: str, extent: str, verdict: str) -> None:
    """`outputs_covered` by z3 alone, for one size and for all."""
    operand = {"name": "o", "role": "out", "array": f"f32[{extent}]", "block": ["128"], "index": "(i) -> (i)"}
    kernel = {"kernel": {"grid": {"i": grid}, "operands": [operand]}}
    found = lp.ask("outputs_covered", kernel, engine="smt")
    assert found.verdict.value == verdict
    assert found.decided_by == "smt"
    both = lp.ask("outputs_covered", kernel)
    assert found.counterexample == both.counterexample


def test_random_layouts_alone() -> None:
    """The named properties of every language, by z3 alone, against looking at every element: none is left open.

    `python -m tests.questions.z3_alone` asks thousands, sizes with names among them.
    """
    known = [number for number in range(150) if not question(random.Random(f"7/{number}")).symbols()]
    assert len(known) > 100
    for number in known:
        asked, verdict, wrong = ask(7, number)
        shown = (asked.property, asked.layouts[0].text)
        assert wrong == "", shown
        m = map_of(read_layout(shown[1]))
        nothing_to_ask = 0 in m.domain.extents or bool(m.unbounded)
        assert verdict is not lp.Verdict.UNKNOWN or nothing_to_ask, shown


@pytest.mark.parametrize("text", [text for text, _ in PROVED if "Sw" not in text and "blockspec" not in text])
def test_witnesses_are_where_they_say(text: str) -> None:
    """At sizes that divide, the index read off each place is in its box, and there."""
    m = map_of(read_layout(text.replace("4096,11008", "16,256")))
    on = Numbers({"N": 16, "M": 256, "a": 4, "b": 32})
    found = witness(m)
    for place in itertools.islice(itertools.product(*[range(on.size(e)) for e in m.range.extents]), 5000):
        index = found.place(place, (), on)
        assert all(0 <= entry < on.size(extent) for entry, extent in zip(index, m.domain.extents, strict=True))
        assert m.place(index, (), on) == place


def test_a_wrong_witness_proves_nothing() -> None:
    """Where steps overlap, the largest digit takes too much: the quantifier is asked, and says what isl says."""
    text = "(i < 3, j < N) -> (2 * i + j) in [N + 4]"
    m = map_of(read_layout(text))
    claim = Claim({"place": m.range}, Uncovered(m, "place"), symbols=m.sizes())
    assert smt.decide(claim) == isl.decide(claim)


@pytest.mark.parametrize("where", ["N % 8 == 0", "N >= 40 and N % 8 == 3"])
def test_products_of_sizes_stand_under_no_quantifier(where: str) -> None:
    """Where the small sizes have no hole it ends, and says nothing of the others: z3 would square numbers for hours."""
    found = lp.ask("covers", "f32[N + 1,N]{0,1:T(1,*,8)L(8)}", where=where, engine="smt")
    assert found.verdict is lp.Verdict.UNKNOWN
    assert "no violation with sizes up to 16" in found.reason


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("(i < N, j < 3) -> (2 * i + j) in [2 * N + 1]", None),
        ("(i < N, j < M) -> (3 * i + j) in [3 * N]", "M == 3"),
    ],
)
def test_sums_of_sizes_do(text: str, where: str | None) -> None:
    """Linear in the unknowns: that all places are reached is proved under a quantifier."""
    found = lp.ask("covers", text, where=where, engine="smt")
    assert (found.verdict, found.decided_by) == (lp.Verdict.PROVED, "smt")


def test_what_stays_out_of_reach_is_said() -> None:
    """An xor of sizes without a value, under a for-all."""
    with pytest.raises(Undecided, match="xor"):
        smt.decide(covers(mapping((N,), lambda on, i: on.xor(i, 1), (N,))))


def test_the_budget_counts_steps_of_all_ways() -> None:
    """A budget that is spent is a reason, not a verdict."""
    with pytest.raises(Undecided, match=r"steps is spent|gives up"):
        smt.decide(covers(mapping((N, N), lambda on, i, j: i * i + j * 3, (N,))), 0.001)
