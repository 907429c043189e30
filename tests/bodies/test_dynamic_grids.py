"""Grids whose size only the running program knows: the condition that is needed is named, and can be given."""

from __future__ import annotations

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import layoutproof as lp
from layoutproof.core.errors import LayoutError
from layoutproof.core.result import Verdict
from tests.pallas.wheel_ops import ops

GMM = next(op for op in ops() if op.name == "tpu.megablox.gmm 512x1000x1000")
TABLE = "0 <= prefetch1 < 4"


def asked(where: tuple[str, ...] = (), assume: tuple[str, ...] = ()) -> lp.Kernels:
    function, args = GMM.build()
    return lp.kernels(function, *args, properties=["body_in_bounds"], where=where, assume=assume)


def test_the_size_that_is_enough_is_named() -> None:
    found = asked()
    assert found.exit_code == 3
    assert "'grid1 <= 7'" in str(found)


def test_what_was_named_proves_the_grouped_matmul() -> None:
    assert asked(("grid1 <= 7",), (TABLE,)).exit_code == 0
    found = asked(("grid1 <= 8",), (TABLE,))
    assert found.exit_code == 1
    refuted = next(f for f in found.findings if f.verdict is Verdict.REFUTED)
    assert (refuted.counterexample or {})["sizes"] == {"grid1": 8}


def test_conditions_that_nobody_can_meet_prove_nothing() -> None:
    assert asked(("grid1 <= 0",), (TABLE,)).exit_code == 3


def test_a_condition_on_sizes_that_no_call_has_is_an_error() -> None:
    with pytest.raises(LayoutError, match="they have grid1"):
        asked(("grid2 <= 7",))
