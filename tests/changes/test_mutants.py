"""Seeded mutants of real compiler output: what changes meaning or cost is never let pass, what changes nothing is."""

from __future__ import annotations

import importlib.util

import pytest

from tests.changes.mutants import ALIKE, MEANING, SEEN_NOT_DENIED, mutants, verdict
from tests.recorded import dump

SMALL = (
    *("reshard_v5e_2x2", "sharded_matmul_v5e_2x2", "sharded_reduce_v5e_2x2"),
    *("host_offload_v5e", "quant_int4_v5e", "while_v5e", "embedding_v5e"),
)
KERNEL = {name: operator for name, operator in MEANING.items() if name.startswith("kernel")}


@pytest.mark.parametrize("name", SMALL)
def test_mutants_of_meaning(name: str) -> None:
    """None is green; constants, and with them the trips of a loop, are a warning."""
    text = dump(name)
    seen = 0
    for operator, new in mutants(text, {**MEANING, **dict.fromkeys(KERNEL, lambda text, chance: None)}, 2, 11):
        word, found = verdict(text, new)
        wanted = {"warned"} if operator in SEEN_NOT_DENIED else {"denied", "unknown"}
        assert word in wanted, (operator, word, [f.question for f in found])
        seen += 1
    assert seen > 10


@pytest.mark.parametrize("name", SMALL)
def test_mutants_that_change_nothing(name: str) -> None:
    """All are green."""
    text = dump(name)
    seen = 0
    for operator, new in mutants(text, ALIKE, 2, 11):
        word, found = verdict(text, new)
        assert word == "green", (operator, [(f.question, f.subject, f.reason) for f in found])
        seen += 1
    assert seen > 3


@pytest.mark.skipif(importlib.util.find_spec("jaxlib") is None, reason="reading Mosaic kernels needs the extra [jax]")
def test_mutants_of_a_kernel() -> None:
    """A hole or blocks in another place are denied; another body is a warning."""
    text = dump("transformer_bf16_v5e")
    words = {operator: verdict(text, new)[0] for operator, new in mutants(text, KERNEL, 1, 11)}
    assert words == {"kernel_hole": "denied", "kernel_map": "denied", "kernel_body": "warned"}
