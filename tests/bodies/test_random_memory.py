"""Random kernels: what is proved runs without NaN, what is refuted for its padding gives NaN."""

from __future__ import annotations

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

from layoutproof.core.result import Verdict
from tests.bodies.random_memory import outcome


@pytest.mark.parametrize("seed", range(8))
def test_the_verdicts_are_those_of_a_run(seed: int) -> None:
    padding, unwritten, spoilt = outcome(seed)
    assert Verdict.UNKNOWN not in (padding, unwritten)
    if padding is Verdict.REFUTED:
        assert spoilt
    if padding is unwritten is Verdict.PROVED:
        assert not spoilt
