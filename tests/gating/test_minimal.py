"""A smallest set of parts, against enumeration."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from layoutproof.gating.minimal import Minimal, Spent, minimal


@pytest.mark.parametrize("seed", range(30))
def test_none_can_be_left_out_and_what_cannot_be_tried_makes_nothing(seed: int) -> None:
    random = Random(seed)
    parts = range(random.randrange(1, 40))
    wanted = {*random.sample(parts, min(len(parts), random.randrange(1, 4)))}
    # a part without another one is no program
    needs = {part: random.choice([*parts]) for part in random.sample(parts, len(parts) // 3)}

    def makes(chosen: Sequence[int]) -> bool:
        return {*chosen} >= wanted and all(needs[part] in chosen for part in chosen if part in needs)

    found = minimal(parts, makes)
    assert found.whole
    assert makes(found.parts)
    assert [*found.parts] == sorted(found.parts)
    for part in found.parts:
        assert not makes([each for each in found.parts if each != part])


def test_all_of_them_do_not_make_it() -> None:
    assert minimal(range(5), lambda chosen: False) == Minimal((), True)


def test_a_guess_comes_first() -> None:
    asked: list[list[int]] = []

    def makes(chosen: Sequence[int]) -> bool:
        asked.append([*chosen])
        return 7 in chosen

    assert minimal(range(100), makes, guesses=[[3], [7]]) == Minimal((7,), True)
    assert asked == [[3], [7]]


@pytest.mark.parametrize("budget", range(12))
def test_a_spent_budget_is_said_and_what_is_left_still_makes_it(budget: int) -> None:
    asked = 0

    def makes(chosen: Sequence[int]) -> bool:
        nonlocal asked
        if asked >= budget:
            raise Spent
        asked += 1
        return {3, 60} <= {*chosen}

    found = minimal(range(64), makes)
    assert not found.whole
    assert not found.parts or {3, 60} <= {*found.parts}
    assert bool(found.parts) == (budget > 0)
