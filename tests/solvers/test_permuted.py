"""Swizzles on digits: two that agree where a layout reaches, and what a swizzle of a layout with holes leaves free.

What is true is looked at element by element, with swizzles as CuTe's own header defines them.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence

import pytest

import layoutproof as lp
from layoutproof.cli import main as cli
from layoutproof.core.index_map import permutation
from layoutproof.core.result import Verdict
from tests.questions.questions_at_random import swizzled

pytestmark = pytest.mark.slow

Swizzle = tuple[int, int, int] | None


def text_of(swizzle: Swizzle, offset: int, extents: Sequence[object], strides: Sequence[object]) -> str:
    show = lambda entries: f"({','.join(map(str, entries))})"  # noqa: E731
    head = f"Sw<{','.join(map(str, swizzle))}> o {offset} o " if swizzle else ""
    return f"{head}{show(extents)}:{show(strides)}"


def drawn(rng: random.Random) -> Swizzle:
    bits = rng.randint(0, 3)
    return bits, rng.randint(0, 3), rng.choice([shift for shift in range(-4, 5) if abs(shift) >= bits])


def places(swizzle: Swizzle, offset: int, extents: Sequence[int], strides: Sequence[int]) -> dict[tuple[int, ...], int]:
    rows = itertools.product(*map(range, extents))
    return {x: swizzled(offset + sum(i * s for i, s in zip(x, strides, strict=True)), swizzle) for x in rows}


@pytest.mark.parametrize("seed", range(4))
def test_digits_say_what_looking_at_every_element_says(seed: int) -> None:
    """Two swizzles, of one layout or of nearly the same; the first free place of one. Digits alone decide most."""
    rng, met = random.Random(seed), Counter[Verdict]()
    for _ in range(120):
        rank = rng.randint(1, 3)
        extents = [rng.randint(1, 9) for _ in range(rank)]
        strides = [rng.choice([1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64]) for _ in range(rank)]
        offset, one, other = (
            rng.choice([0, 0, 0, 1, 2, 4, 5, 8]),
            drawn(rng),
            rng.choice([drawn(rng), drawn(rng), None]),
        )
        offset = offset if other else 0
        strides2 = list(strides)
        if rng.random() < 0.4:
            strides2[rng.randrange(rank)] ^= rng.randrange(4)
        first, second = places(one, offset, extents, strides), places(other, offset, extents, strides2)
        texts = text_of(one, offset, extents, strides), text_of(other, offset, extents, strides2)
        size = offset + 1 + sum((e - 1) * s for e, s in zip(extents, strides, strict=True))
        true = {
            "same_map": ("element", next((x for x in first if first[x] != second[x]), None)),
            "covers": ("place", next(((y,) for y in range(size) if y not in set(first.values())), None)),
            "in_bounds": ("element", next((x for x in first if first[x] >= size), None)),
        }
        for name, (point, expected) in true.items():
            found = lp.ask(name, *(texts if name == "same_map" else texts[:1]), engine="digits")
            met[found.verdict] += 1
            if found.verdict is not Verdict.UNKNOWN:
                said = None if found.counterexample is None else found.counterexample[point]
                assert said == expected, (name, texts)
                assert (found.verdict is Verdict.PROVED) == (expected is None), (name, texts)
    assert met[Verdict.UNKNOWN] < 20
    assert met[Verdict.PROVED] > 50
    assert met[Verdict.REFUTED] > 100


@pytest.mark.parametrize(
    ("left", "right"),
    [
        # the bits in which they differ are never set: rows begin at multiples of 1024
        ("Sw<3,4,3> o 0 o (7,50000000):(1,1024)", "Sw<2,4,4> o 0 o (7,50000000):(1,1024)"),
        # bit 2 is set where bit 3 is: one onto bit 0 is the other onto bit 0
        ("Sw<1,0,2> o 0 o (2,50000000):(12,96)", "Sw<1,0,3> o 0 o (2,50000000):(12,96)"),
        # a swizzle that is a stride: bit 1 onto bit 0 makes 3 of 2
        ("Sw<1,0,1> o 0 o (2,50000000):(2,12)", "(2,50000000):(3,12)"),
        # for all sizes
        ("Sw<1,0,1> o 0 o (2,N):(2,4)", "(2,N):(3,4)"),
        ("Sw<3,0,3> o (4,8,N):(8,1,64)", "Sw<2,0,3> o (4,8,N):(8,1,64)"),
        ("Sw<1,0,2> o 0 o (N,M):(96,M*192)", "Sw<1,0,3> o 0 o (N,M):(96,M*192)"),
        ("Sw<2,0,4> o 0 o (2,N):(16,64*M)", "Sw<1,0,4> o 0 o (2,N):(16,64*M)"),
        ("Sw<1,0,2> o 8*N o (2,N):(1,16)", "Sw<1,0,1> o 8*N o (2,N):(1,16)"),
        ("bf16 Sw<2,0,4> o 0 o (2,N):(16,64)", "bf16 Sw<1,0,4> o 0 o (2,N):(16,64)"),
        ("S[(2,N):(16@m,64*N@m)] swizzle (0,2,4) within (64*N*N@m)", "Sw<1,0,4> o 0 o (2,N):(16,64*N)"),
    ],
)
def test_swizzles_that_agree_where_the_layout_reaches(left: str, right: str) -> None:
    found = lp.ask("same_map", left, right)
    assert (found.verdict, found.decided_by) == (Verdict.PROVED, "digits")


@pytest.mark.parametrize(
    ("left", "right", "at"),
    [
        # row 8 is at 8192, whose bit 13 the one looks at; no row before it sets a bit that is looked at
        ("Sw<1,0,13> o 0 o (7,50000000):(1,1024)", "(7,50000000):(1,1024)", "element=(0, 8)"),
        ("Sw<1,0,13> o 0 o (7,N):(1,1024)", "(7,N):(1,1024)", "sizes=(N = 9) element=(0, 8)"),
        # 12 sets bits 2 and 3, 24 sets 3 and 4
        ("Sw<1,0,2> o 0 o (3,50000000):(12,96)", "Sw<1,0,3> o 0 o (3,50000000):(12,96)", "element=(2, 0)"),
        ("Sw<1,0,1> o 0 o (2,50000000):(2,14)", "(2,50000000):(3,14)", "element=(0, 1)"),
        ("Sw<1,0,1> o 0 o (2,N):(2,4*N)", "(2,N):(3,4*N + 1)", "sizes=(N = 2) element=(0, 1)"),
        # the first difference is far away
        ("Sw<1,0,13> o 0 o N:1", "N:1", "sizes=(N = 8193) element=(8192)"),
    ],
)
def test_the_smallest_element_at_which_two_swizzles_differ(
    left: str, right: str, at: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = cli.run(["ask", "same_map", left, right])
    assert (code, f"  at       {at}\n" in capsys.readouterr().out) == (1, True)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("Sw<3,0,3> o 0 o (6,30000000):(1,8)", "place=(6)"),
        ("Sw<3,0,3> o 0 o (4,2,300000000):(2,9,18)", "place=(1)"),
        # 9 is the first that the layout leaves free, and 8 comes from it
        ("Sw<1,0,3> o 0 o (9,300000000):(1,10)", "place=(8)"),
        ("Sw<1,0,3> o 0 o (8,N):(1,16)", "sizes=(N = 2) place=(8)"),
    ],
)
def test_the_first_hole_behind_a_swizzle_of_a_layout_with_holes(
    text: str, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = cli.run(["ask", "covers", text])
    assert (code, f"  at       {place}\n" in capsys.readouterr().out) == (1, True)


def test_a_condition_says_that_a_swizzle_stays_within_its_blocks() -> None:
    """What is assumed of N is used once: a range of N places is not one of 4*N."""
    for name in ("in_bounds", "covers", "bijective"):
        assert lp.ask(name, "Sw<1,0,1> o 0 o N:1", where="N % 4 == 0").verdict is Verdict.PROVED
        assert lp.ask(name, "Sw<1,0,1> o 0 o N:1", where="N % 2 == 1").verdict is Verdict.REFUTED
    wide = lp.ask("in_bounds", "S[(N):(2@m)] swizzle (0,1,1) within (N@m)", where="N % 4 == 0")
    assert (wide.verdict, wide.counterexample) == (Verdict.REFUTED, {"sizes": {"N": 4}, "element": (2,)})


@pytest.mark.parametrize(
    ("text", "where", "verdict"),
    [
        # 6*N + 2 places: of the last window of 8 there are 2, which stay; or 6, of which 4 and 5 are moved to 6 and 7
        ("Sw<1,1,1> o 0 o (2,N):(7,6)", "N % 4 == 0", Verdict.PROVED),
        ("Sw<1,1,1> o 0 o (2,N):(7,6)", "N % 4 == 2", Verdict.REFUTED),
    ],
)
def test_how_much_of_the_last_window_there_is_may_be_known(text: str, where: str, verdict: Verdict) -> None:
    assert lp.ask("in_bounds", text, where=where).verdict is verdict


def test_the_last_window_of_a_billion_elements() -> None:
    """The first that leaves the range, by its own digits; enumeration would have to look at all rows before."""
    found = lp.ask("in_bounds", "Sw<3,4,3> o 0 o (3001,350001):(350001,1)")
    assert found.counterexample == {"element": (3000, 349969)}
    reach = 3001 * 350001
    leaving = [n for n in range(reach - 1024, reach) if swizzled(n, (3, 4, 3)) >= reach]
    assert min(leaving) == 3000 * 350001 + 349969


@pytest.mark.parametrize("engine", ["isl", "smt"])
def test_engines_without_exclusive_or_are_asked_about_the_places_before_it(engine: str) -> None:
    """Two elements share a place behind a swizzle if they do before it; which place is the first hole is another."""
    text = "Sw<1,0,-1> o 0 o (2,N + 1):(4,{})"
    assert lp.ask("injective", text.format(3), where="N >= 4", engine=engine).verdict is Verdict.PROVED
    shared = lp.ask("injective", text.format(2), where="N >= 4", engine=engine)
    assert shared.counterexample == {"sizes": {"N": 4}, "first": (0, 2), "second": (1, 0)}
    # the first place without an element is 9 before the swizzle and 8 behind it
    text = "S[(9,3):(1@m,10@m)] swizzle (0,1,3) within (48@m)"
    hole = lp.ask("covers", text, engine=engine)
    assert hole.verdict is Verdict.REFUTED
    assert hole.counterexample in ({"place": (8,)}, {"place": (9,)})
    assert lp.ask("covers", text).counterexample == {"place": (8,)}
    assert "not shown to be the smallest" in hole.reason or hole.counterexample == {"place": (8,)}


def test_two_engines_confirm_a_swizzle() -> None:
    found = lp.ask("injective", "Sw<3,4,3> o 0 o (N,64):(64,1)", confirm=True)
    assert (found.verdict, found.decided_by) == (Verdict.PROVED, "digits+isl")


def test_a_long_window_is_kept_or_not_without_looking_at_its_numbers() -> None:
    """Bit 63 is moved onto bit 60; small windows are looked at number by number elsewhere."""
    found = permutation(lp.read_layout("Sw<1,60,3> o 0 o 8:1").index_map())
    assert found is not None
    high, low = 1 << 63, 1 << 60
    kept = {high: True, high + 1: False, high + low: False, high + 2 * low: True, 2 * high: True, 2 * high + 1: True}
    assert {extent: found.keeps(extent) for extent in kept} == kept
