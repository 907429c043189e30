"""`benchmarks/shardings`: each right function over several devices is sampled, each wrong one refuted."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jax")

from benchmarks.shardings import listed, others
from benchmarks.shardings.__main__ import judged

pytestmark = pytest.mark.slow

PAIRS = [*listed.pairs(), *others.pairs()]
EACH = 6
"""One of so many is asked in every run, the others at night."""


def test_what_there_is() -> None:
    """As many pairs as were asked for, with a name and a fault each."""
    assert len(list(listed.pairs())) >= 24
    assert len(list(others.pairs())) >= 24
    assert len({pair.name for pair in PAIRS}) == len(PAIRS)
    assert all(pair.kind for pair in PAIRS)


@pytest.mark.parametrize(
    ("pair", "wrong"),
    [
        pytest.param(pair, wrong, id=f"{pair.name}: {pair.kind if wrong else 'right'}", marks=marks)
        for k, pair in enumerate(PAIRS)
        for wrong in (False, True)
        for marks in ([pytest.mark.nightly] if k % EACH else [],)
    ],
)
def test_a_pair(pair: Any, wrong: bool) -> None:
    verdict, reason, _ = judged(pair, wrong)
    assert verdict == ("refuted" if wrong else "sampled"), reason
