"""Changes of whole Pallas kernels: by operand, and what is not an operand."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from layoutproof.gating.classes import layouts

KERNEL: dict[str, Any] = {
    "name": "matmul",
    "grid": [3, 3, 3],
    "inputs": [
        {"name": "x", "array": "f32[1000,1000]", "block": [256, 256], "index": "(i, j, k) -> (i, k)"},
        {"name": "y", "array": "f32[1000,1000]", "block": [256, 256], "index": "(i, j, k) -> (k, j)"},
    ],
    "outputs": [{"name": "o", "array": "f32[1000,1000]", "block": [256, 256], "index": "(i, j, k) -> (i, j)"}],
}


def drop(kernel: dict[str, Any]) -> None:
    """Without the second input."""
    del kernel["inputs"][1]


@pytest.mark.parametrize(
    ("change", "kinds", "said"),
    [
        (lambda k: k.update(name="mm"), ["respelled"], "the same kernel"),
        (lambda k: k["inputs"][0].update(index="(a, b, c) -> (a, c)"), ["respelled"], "the same kernel"),
        (lambda k: k["inputs"][0].update(index="(i, j, k) -> (i + 0*j, k)"), ["respelled"], ""),
        (
            lambda k: k["inputs"][0].update(index="(i, j, k) -> (k, i)"),
            ["moved"],
            "operand x: (0, 0, 1), replica (0, 0)",
        ),
        (lambda k: k["outputs"][0].update(block=[128, 256]), ["moved"], "operand o: (0, 0, 0), replica (128, 0)"),
        (lambda k: k.update(semantics=["parallel"] * 3), ["kernel"], "semantics was none, is (parallel, "),
        (drop, ["removed"], "operand y is no longer there"),
    ],
)
def test_one_change_of_a_kernel(change: Callable[[dict[str, Any]], None], kinds: list[str], said: str) -> None:
    """The operand that changed with its program and element, and nothing of the others."""
    new = copy.deepcopy(KERNEL)
    change(new)
    found = layouts({"kernel": KERNEL}, {"kernel": new})
    assert [f.question for f in found] == kinds
    assert said in found[0].reason
