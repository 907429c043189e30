"""Kernels at random, with tables, paddings, bounded slices and aliases, against a walk for every table there is.

What each verdict has to mean, with `strict_tables` and without, is said in `tests/properties/kernels_at_random.py`.
"""

from __future__ import annotations

import random

import pytest

from tests.properties.kernels_at_random import PROPERTIES, any_kernel, judged

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(160))
def test_every_property_against_a_walk(seed: int) -> None:
    k = any_kernel(random.Random(seed))
    for name in PROPERTIES:
        assert {finding.question for finding in judged(k, name)} <= {name}
