"""What is assumed of tables is held against what the code that fills them gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import layoutproof as lp
from tests.said import Said, raises

SAMPLES = [([3, 0, 5],), ([8, 0, 0],), ([0, 1, 7],)]


def totals(lengths: Sequence[int]) -> Any:
    return np.cumsum([0, *lengths])


def first_and_end(lengths: Sequence[int]) -> tuple[Any, ...]:
    ends = totals(lengths)
    return {"begins": ends[:-1], "ends": ends[1:]}, 3, np.ones(4)


def test_a_schema_that_the_code_keeps_is_given_back() -> None:
    said = "prefetch0 is cu_seqlens(total=8)"
    found = lp.assume_from(totals, SAMPLES, said=[said])
    assert set(found) == {"0 <= prefetch0 <= 8", "prefetch0 is monotone", "prefetch0[0] == 0", "prefetch0[-1] == 8"}


@pytest.mark.parametrize(
    ("said", "sample"),
    [
        ("prefetch0 is cu_seqlens(total=9)", Said("pallas.sample_breaks", number=0, tables="prefetch0 is 0, 3, 3, 8")),
        ("prefetch0 is injective", Said("pallas.sample_breaks", number=0)),
        ("0 <= prefetch0 < 8", Said("pallas.sample_breaks", number=0)),
        ("prefetch0[1] <= 3", Said("pallas.sample_breaks", number=1, tables="prefetch0 is 0, 8, 8, 8")),
    ],
)
def test_what_a_sample_breaks_is_an_error(said: str, sample: Said) -> None:
    with raises(lp.LayoutError, sample):
        lp.assume_from(totals, SAMPLES, said=[said])


def test_what_held_of_all_samples_is_proposed_and_nothing_else() -> None:
    found = lp.assume_from(first_and_end, SAMPLES, names=["begins", "ends"])
    assert found == (
        "begins is monotone", "begins[0] == 0", "ends is monotone", "ends[-1] == 8", "begins[i] <= ends[i]",
    )  # fmt: skip


def test_the_code_of_a_grouped_product() -> None:
    gmm = pytest.importorskip("jax.experimental.pallas.ops.tpu.megablox.gmm")

    def tables(sizes: Sequence[int]) -> Any:
        return gmm.make_group_metadata(
            group_sizes=np.array(sizes, np.int32), m=64, tm=16, start_group=np.int32(0), num_nonzero_groups=4
        )

    samples = [([16, 16, 16, 16],), ([3, 0, 40, 21],), ([0, 0, 64, 0],)]
    found = lp.assume_from(tables, samples, said=["prefetch0 is cu_seqlens(total=64)", "0 <= prefetch1 < 4"])
    assert {"prefetch1 is monotone", "prefetch2 is monotone"} <= set(found)
    with raises(lp.LayoutError, Said("pallas.sample_breaks", number=0)):
        lp.assume_from(tables, samples, said=["prefetch2 is injective"])


def test_no_samples_and_wrong_names_are_errors() -> None:
    with raises(lp.LayoutError, Said("pallas.no_samples")):
        lp.assume_from(totals, [])
    with raises(lp.LayoutError, Said("pallas.sample_names", names=2, tables=1)):
        lp.assume_from(totals, SAMPLES, names=["a", "b"])
