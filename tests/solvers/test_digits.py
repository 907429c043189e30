"""The structural engine is right or undecided: what it answers is held against every element, one by one."""

from __future__ import annotations

import itertools
import random

import pytest

import layoutproof as lp
from layoutproof.core.claim import All, At, Before, Claim, Outside, Same
from layoutproof.core.index_map import IndexMap
from layoutproof.core.result import Verdict
from layoutproof.core.space import Space
from layoutproof.engine.decide import decide


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
            {"first": (0, 0, 0), "second": (0, 0, 1), "first_copy": (1,), "second_copy": (0,)},
        ),
        (
            ("injective", "S[(2,3,4):(0,0,2)] + R[2:1] on (2,3,4)"),
            {"first": (0, 0, 0), "second": (0, 1, 0), "first_copy": (0,), "second_copy": (0,)},
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
def test_copies_of_other_boxes(left: str, right: str, verdict: Verdict) -> None:
    """A copy has a namesake only in a box of copies like its own; other boxes are another engine's business."""
    assert lp.ask("refines", left, right).verdict is verdict


def test_claims_about_another_box() -> None:
    """A claim about a part of a map's domain is not decided by what the whole domain does."""
    wrapped = IndexMap(Space(("i",), (8,)), Space(("o",), (4,)), lambda x, c, on: (x[0] % 4,))
    part = Space(("i",), (4,))
    pair = All((Before("first", "second"), Same(At(wrapped, "first"), At(wrapped, "second"))))
    assert decide(Claim({"first": part, "second": part}, pair)) == (None, "isl", "")
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
