"""What running the wrong kernels of `pitfalls` shows, and that their right twins show nothing."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jax", reason="running kernels needs the extra [jax]")

import layoutproof as lp
from layoutproof.pallas.replay import SIGNS
from tests.bodies.pitfalls import CASES

pytestmark = pytest.mark.slow

UNSEEN = {
    # zeroed before anything is read of it that counts
    "init_at_wrong_step",
    # what the program before left in the window
    "store_only_even_programs",
    "second_output_on_one_branch",
    # the table that is assumed has no value twice
    "parallel_scatter_duplicate",
}
"""Wrong kernels of which a run shows no sign of their own kind."""


@pytest.mark.nightly
@pytest.mark.parametrize("wrong", [True, False])
def test_a_run_shows_the_wrong_ones_and_no_right_one(wrong: bool) -> None:
    """Every kernel is run, and to its end; four of 66 are beyond what a run can show."""

    def every() -> list[Any]:
        results = []
        for case in CASES.values():
            built = case.build(wrong)
            results.append(lp.assume(*case.assume)(built.fn)(*built.args) if case.assume else built.fn(*built.args))
        return results

    calls = lp.kernels(every, replay=True, only="grid").calls
    assert len(calls) == len(CASES)
    kinds: dict[str, set[str]] = {}
    for name, call in zip(CASES, calls, strict=True):
        assert call.replay is not None
        assert call.replay.problem == "", name
        kinds[name] = {sign.kind for sign in call.replay.signs}
    if wrong:
        assert {name for name, seen in kinds.items() if not seen & SIGNS[CASES[name].kind]} == UNSEEN
    else:
        assert {name: seen for name, seen in kinds.items() if seen} == {}
