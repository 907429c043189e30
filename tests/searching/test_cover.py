"""The second opinion's own arithmetic: what it says of a box holds for every candidate in it; its boxes cover all."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from typing import Any

import pytest

from layoutproof.core.errors import Undecided
from layoutproof.core.numbers import INTS
from layoutproof.searching.branch import search
from layoutproof.searching.cover import IntervalArray, IntervalArrayNumbers, partition, uncertified
from tests.said import stretch
from tests.searching.problems_at_random import any_problem, choices

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(120))
def test_ends_hold_every_candidate_of_their_box(seed: int) -> None:
    import numpy as np

    problem = any_problem(random.Random(seed))
    ends = {
        name: IntervalArray(np.array([values[0]], dtype=object), np.array([values[-1]], dtype=object))
        for name, values in problem.variables.items()
    }
    for shape in problem.shapes:
        names = {**shape.sizes, **ends}
        bounds = problem.declared.model.figures(names, IntervalArrayNumbers())
        said = [c.condition.evaluate({**names, **bounds}, IntervalArrayNumbers()) for c in problem.constraints]
        for values in choices(problem):
            row = problem.figures(shape, values, INTS)
            for name, value in row.items():
                low, high = (
                    (bounds[name].low, bounds[name].high)
                    if isinstance(bounds[name], IntervalArray)
                    else (bounds[name],) * 2
                )
                assert np.all(np.asarray(low) <= value), name
                assert np.all(np.asarray(high) >= value), name
            for constraint, (may, may_not) in zip(problem.constraints, said, strict=True):
                held = constraint.condition.evaluate({**shape.sizes, **values, **row}, INTS)
                assert bool(np.all(may if held else may_not)), constraint.text


def _all(low: int, high: int) -> range:
    return range(low, high + 1)


@pytest.mark.parametrize("seed", range(200))
def test_every_operation_by_enumeration(seed: int) -> None:
    """Ends of small boxes against all pairs of numbers in them; conditions are told apart as exactly as they can be."""
    import numpy as np

    rng = random.Random(seed)
    a, b, c, d = (rng.randint(-6, 6) for _ in range(4))
    left, right = (min(a, b), max(a, b)), (min(c, d), max(c, d))
    on = IntervalArrayNumbers()
    x, y = (IntervalArray(np.array([low], dtype=object), np.array([high], dtype=object)) for low, high in (left, right))
    operations: list[Any] = [
        lambda p, q, on: p + q, lambda p, q, on: p - q, lambda p, q, on: p * q, lambda p, q, on: 3 - q,
        lambda p, q, on: p // q, lambda p, q, on: p % q, lambda p, q, on: 7 // q, lambda p, q, on: 7 % q,
        lambda p, q, on: on.minimum(p, q), lambda p, q, on: on.maximum(p, q),
        lambda p, q, on: on.select(on.less(p, q), p, q + 1), lambda p, q, on: on.select(on.equal(p, q), p, q * 2),
    ]  # fmt: skip
    for operation in operations:
        try:
            made = operation(x, y, on)
        except Undecided:
            assert right[0] < 1
            continue
        every = [operation(p, q, INTS) for p, q in itertools.product(_all(*left), _all(*right))]
        assert made.low[0] <= min(every)
        assert max(every) <= made.high[0]
    for condition in ("less", "equal"):
        may, may_not = getattr(on, condition)(x, y)
        every = [getattr(INTS, condition)(p, q) for p, q in itertools.product(_all(*left), _all(*right))]
        assert (bool(may[0]), bool(may_not[0])) == (any(every), not all(every))


@pytest.mark.parametrize("seed", range(60))
def test_boxes_hold_every_candidate_once_whatever_the_cuts(seed: int) -> None:
    problem = any_problem(random.Random(seed))
    rng = random.Random(seed)
    cuts = dict(search(problem, lambda values: "", 1).cuts)
    for box in rng.sample(sorted(cuts), len(cuts) // 2):
        # cuts that are missing, or nonsense, leave larger boxes and nothing out
        if rng.random() < 0.5:
            del cuts[box]
        else:
            cuts[box] = (rng.randrange(len(box)), rng.randint(-2, 9))
    seen: list[tuple[int, ...]] = []
    for box in partition(problem, cuts):
        seen += itertools.product(*(range(low, high + 1) for low, high in box))
    assert sorted(seen) == sorted(itertools.product(*(range(len(v)) for v in problem.variables.values())))


def test_a_box_that_is_not_shown_is_said() -> None:
    problem = replace(any_problem(random.Random(3)), limit=1 << 30, constraints=())
    whole = tuple((0, len(values) - 1) for values in problem.variables.values())
    better, why, _ = uncertified(problem, [whole], 1 << 100, [], lambda values: "")
    assert better is None
    assert why.startswith(stretch("searching.box_undecided"))
