"""Any number of blocks: said of right kernels, and never of one whose fault begins at the fourth block or later."""

from __future__ import annotations

from pathlib import Path

import pytest

import layoutproof as lp
from layoutproof.cli.documents import adapter
from layoutproof.compiler.kept import as_json, from_json
from layoutproof.questions.same_kept import _HELD

pytestmark = pytest.mark.slow

pytest.importorskip("jax")
cases = pytest.importorskip("tests.values.block_cases")

loops = pytest.importorskip("tests.values.loop_cases")

PAIRS = {**cases.PAIRS, **loops.PAIRS}
OTHERS = {**cases.OTHERS, **loops.OTHERS}
TWINS = [(name, twin) for name, (_, _, _, twins) in PAIRS.items() for twin in twins]


@pytest.mark.parametrize("name", PAIRS)
def test_right_ones_are_so_for_any_number_of_blocks(name: str) -> None:
    right, reference, arguments, _ = PAIRS[name]
    answer = lp.same(right, reference, *arguments)
    assert answer.verdict.exit_code == 0
    (found,) = answer.blocks
    assert found.kinds[:3] == ("first", "middle", "last")
    assert ("ragged" in found.kinds) == ("ragged" in name)
    assert found.reduced == ("running" not in name)
    assert {1, 2, 3} <= set(found.compared)
    of_loop = name in loops.PAIRS
    assert (found.axis < 0) == of_loop
    over = f"the loop at {Path(loops.__file__).name}:" if of_loop else f"program_id({found.axis}): first, middle"
    assert f"(induction over {over}" in str(answer).replace("tests/values/", "")
    said = answer.as_dict()["blocks"]
    assert said[0]["axis"] == found.axis
    assert said[0]["loop"] == found.loop
    assert said[0]["compared"] == list(found.compared)
    adapter("same").validate_json(answer.to_json())
    assert from_json(as_json(answer, _HELD), _HELD) == answer


@pytest.mark.parametrize(("name", "twin"), TWINS)
def test_a_fault_from_the_fourth_block_on_keeps_it_unsaid(name: str, twin: str) -> None:
    _, reference, arguments, twins = PAIRS[name]
    answer = lp.same(twins[twin], reference, *arguments)
    assert answer.blocks == ()
    assert "induction" not in str(answer)
    assert answer.as_dict()["blocks"] == []


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_shown_is_not_said(name: str) -> None:
    function, reference, arguments = OTHERS[name]
    assert lp.same(function, reference, *arguments).blocks == ()


def test_what_was_said_of_a_function_is_not_said_of_one_that_is_the_same_at_these_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the answers of before kept: the programs at the given sizes are alike, line by line."""
    monkeypatch.setenv("LAYOUTPROOF_CACHE", str(tmp_path))
    right, reference, arguments, twins = PAIRS["sum in a loop"]
    for _ in range(2):
        assert lp.same(right, reference, *arguments).blocks
        assert lp.same(twins["fewer steps"], reference, *arguments).blocks == ()


def test_twins_are_right_where_they_are_asked_and_wrong_beyond() -> None:
    right, reference, _, twins = cases.PAIRS["sum"]
    for size, verdict in ((512, "proved"), (1024, "refuted")):
        assert lp.same(twins["every third"], reference, f"f32[16,{size}]").verdict.value == verdict
        assert lp.same(right, reference, f"f32[16,{size}]").verdict.value == "proved"
