"""Kernels at random, with tables, paddings, bounded slices and aliases, against a walk for every table there is.

Proved: no table that is as said has a violation. Refuted: some table has. Unknown: only because of what a table holds,
and what is then advised is tried here too.
"""

from __future__ import annotations

import random

import pytest

from layoutproof.pallas.judge import judge
from tests.properties.kernels_at_random import PROPERTIES, any_kernel, disagreements


@pytest.mark.parametrize("seed", range(160))
def test_every_property_against_a_walk(seed: int) -> None:
    k = any_kernel(random.Random(seed))
    for name in PROPERTIES:
        findings = judge(k, names=[name])
        assert {finding.question for finding in findings} <= {name}
        disagreements(k, name, findings)
