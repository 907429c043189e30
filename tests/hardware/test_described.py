"""Generations that JAX describes and libtpu does not take."""

from __future__ import annotations

from pathlib import Path

import pytest

import layoutproof as lp
from layoutproof.core.errors import LayoutError
from layoutproof.hardware.tpu_chips import CHIPS, generation
from layoutproof.hardware.tpu_described import DESCRIBED


@pytest.mark.parametrize("name", ["8i", "TPU8i", "v8t", "tpu 8T"])
def test_what_is_known_and_what_is_not_is_said(name: str) -> None:
    """As a generation and as the target of a kernel: no rule is asked, and no other chip is proposed."""
    kernel = {"kernel": {"grid": [4], "outputs": [{"name": "o", "array": "f32[8,128]", "block": [8, 128]}]}}
    for ask in (lambda: generation(name), lambda: lp.ask("block_shape", kernel, target=name)):
        with pytest.raises(LayoutError) as raised:
            ask()
        assert "libtpu 0.0.52 does not take it" in str(raised.value)
        assert "not known are default layouts" in str(raised.value)
        assert "did you mean" not in str(raised.value)


def test_none_is_a_target() -> None:
    assert not set(DESCRIBED) & set(CHIPS)


@pytest.mark.slow
def test_jax_still_says_so() -> None:
    """Against the JAX that is installed, where it knows them."""
    tpu_info = pytest.importorskip("jax._src.tpu_info")
    for chip in DESCRIBED.values():
        said = tpu_info.get_tpu_info_for_chip(tpu_info.ChipVersion(chip.name), 1)
        assert (said.vmem_capacity_bytes, said.hbm_capacity_bytes, said.num_sublanes) == (
            chip.vmem, chip.hbm, chip.sublanes,
        )  # fmt: skip
        assert (said.bf16_ops_per_second, said.fp8_ops_per_second) == (chip.bf16, chip.fp8)
        assert said.mem_bw_bytes_per_second == chip.bandwidth
        assert (said.sparse_core.num_cores, said.sparse_core.num_subcores) == chip.sparse[:2]


@pytest.mark.slow
def test_the_page_of_versions_is_of_the_facts() -> None:
    from tests.hardware.versions_page import page

    assert (Path(__file__).resolve().parents[2] / "docs" / "versions.md").read_text() == page()
