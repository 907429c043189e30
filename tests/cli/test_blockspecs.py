"""Block specs on the command line: what is spelled in an old way is said, and many copies do not fill the screen."""

from __future__ import annotations

import json

import pytest

from layoutproof.cli import main as cli

OLD = (
    '{"blockspec": {"array": "f32[7,5]", "block": [2,3], "indexing_mode": "Unblocked()", "grid": [4,2], "index": "%s"}}'
)
NOTE = "note      indexing_mode=Unblocked(..) is called Element since jax 0.6.1: block (Element(2), Element(3))"


@pytest.mark.parametrize("command", [("show",), ("locate", "1,1")])
def test_old_spellings_are_said(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    name, *rest = command
    assert cli.run([name, OLD % "(i, j) -> (2*i, 3*j)", *rest]) == 0
    assert NOTE in capsys.readouterr().out.splitlines()


def test_many_copies(capsys: pytest.CaptureFixture[str]) -> None:
    layout = "f32[100,90] blockspec (10, 20) (i, j) -> (i, j) grid (10, 5)"
    assert cli.run(["locate", layout, "2,3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if line.startswith("  replica ")]) == 20
    assert lines[-1] == "  .. 180 more replicas; --json has them"
    assert cli.run(["locate", layout, "2,3", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["places"]) == 200
