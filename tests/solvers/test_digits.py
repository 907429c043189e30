"""The structural engine is right or undecided: what it answers is held against every element, one by one."""

from __future__ import annotations

import itertools
import random

import pytest

import layoutproof as lp
from layoutproof.core.result import Verdict


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
    for seed in range(400):
        text = uneven(seed)
        expected = smallest_violation(name, text)
        found = lp.ask(name, text)
        assert found.verdict is (Verdict.PROVED if expected is None else Verdict.REFUTED), text
        assert found.counterexample == expected, text
        alone = lp.ask(name, text, engine="digits")
        assert alone.verdict is Verdict.UNKNOWN or alone.counterexample == expected, text
        decided += alone.verdict is not Verdict.UNKNOWN
    assert decided > 100


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
