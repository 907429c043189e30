"""Layout expressions and Axe layouts on the command line: what a user sees of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from layoutproof.cli import main as cli
from tests.said import stretch

TILED = '{tile: ["S[(8,8):(8,1)]", "S[(2,3):(3,1)]"]}'
IS = "S[(8,2,8,3):(48,3,6,1)] on (16,24) = tile(S[(8,8):(8,1)], S[(2,3):(3,1)])"
PROVED = f"{IS}; proved for every element: T(x || y) = A(x) * span(B) + B(y)"
FIG2 = "S[(8,2,4,2):(4@lane,1@warp,1@lane,1@reg)] + R[2:4@warp] + 5@warp on (8,16)"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """One command line: its exit code, stdout and stderr."""

    def run_one(*arguments: str) -> tuple[int, str, str]:
        code = cli.run(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return run_one


def test_a_tiling_is_held_in_a_process() -> None:
    """A process of its own proves that a layout is a tiling, and says what was proved of the tiling."""
    command = [sys.executable, "-m", "layoutproof", "ask", "same_map", "S[(8,2,8,3):(48,3,6,1)]", TILED]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].startswith("proved   same_map")
    assert f"  derived  {PROVED}" in done.stdout.splitlines()


def test_another_layout_is_refuted(run: Any) -> None:
    """The twin: one stride off, with the smallest element at which it shows."""
    code, out, _ = run("ask", "same_map", "S[(8,2,8,3):(48,3,6,2)]", TILED)
    assert (code, "at       element=(0, 1)" in out) == (1, True)


@pytest.mark.parametrize("command", [("ask", "injective"), ("show",), ("locate",)])
def test_every_door_says_how_it_was_derived(run: Any, command: tuple[str, ...]) -> None:
    """In text and in JSON, and a layout that was written out has no derivation."""
    index = ("3,4",) if command == ("locate",) else ()
    code, out, _ = run(*command, TILED, *index)
    assert (code, PROVED in out) == (0, True)
    code, out, _ = run(*command, TILED, *index, "--json")
    assert (code, json.loads(out)["derivation"]) == (0, [PROVED])
    code, out, _ = run(*command, "S[(8,2,8,3):(48,3,6,1)] on (16,24)", *index, "--json")
    assert (code, "derivation" in json.loads(out)) == (0, False)


@pytest.mark.parametrize(
    ("expression", "code", "why"),
    [
        ('{slice: ["S[(4,4):(100,1)] on (16)", "3:6"]}', 2, "is no product of digits"),
        ('{slice: ["S[(N,4):(M,1)] on (4*N)", "a:a+6"]}', 3, "it is not known that"),
        ('{tiel: ["S[4:1]", "S[4:1]"]}', 2, "did you mean 'tile'?"),
        ('{fuse: "S[(2,64):(1@warpid,1@laneid)]"}', 2, "laneid goes from 0 to 63"),
    ],
)
def test_what_is_refused_says_why(run: Any, expression: str, code: int, why: str) -> None:
    """An exit code that is no success, and one sentence."""
    found, out, err = run("ask", "injective", expression)
    assert (found, out, why in err) == (code, "", True)


def test_the_chain_of_the_document(run: Any) -> None:
    """(2, 9) of the 8 x 16 tile: flat index 41, digits (2, 1, 0, 1), then D + R + O, as the Axe document has it."""
    code, out, _ = run("locate", FIG2, "2,9")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert code == 0
    assert lines[1:] == [
        "flat index (41,) in (128,)",
        "digits (2, 1, 0, 1) in (8, 2, 4, 2)",
        "D lane, warp, reg (8, 1, 1)",
        "R, replica 0 (0, 0, 0)",
        "R, replica 1 (0, 4, 0)",
        "O (0, 5, 0)",
        "replica 0 lane 8 warp 6 reg 1",
        "replica 1 lane 8 warp 10 reg 1",
    ]


def test_the_chain_adds_up(run: Any) -> None:
    """D + R + O is the place of each replica, in JSON too."""
    answer = json.loads(run("locate", FIG2, "5,7", "--json")[1])
    steps = {step["step"]: step["at"] for step in answer["steps"]}
    for number, place in enumerate(answer["places"]):
        parts = (steps["D lane, warp, reg"], steps[f"R, replica {number}"], steps["O"])
        assert [sum(column) for column in zip(*parts, strict=True)] == list(place.values())


def test_the_two_rows_of_the_document(run: Any) -> None:
    """`show` prints extents above strides, character for character as the document's own output."""
    code, out, _ = run("show", FIG2)
    assert code == 0
    assert "(   8       2       4       2   )   (   2    )\n" in out
    assert "( 4@lane, 1@warp, 1@lane, 1@reg ) + ( 4@warp ) + 5@warp" in out
    assert len(json.loads(run("show", FIG2, "--json")[1])["matrix"]) == 2
    assert "matrix" not in json.loads(run("show", "f32[3,5]{1,0}", "--json")[1])


def test_nothing_bounds_the_axes(run: Any) -> None:
    """A layout in its own range is no question; a bound, from the target or the text, makes it one."""
    code, out, _ = run("ask", "in_bounds", "S[64:1@lane]")
    assert (code, stretch("properties.in_bounds_vacuous", reach="lane 0..63") in out) == (3, True)
    for bound in ("--within cuda", "--within {lane: 32}"):
        assert run("ask", "in_bounds", "S[64:1@lane]", *bound.split(" ", 1))[0] == 1
        assert run("ask", "in_bounds", "S[32:1@lane]", *bound.split(" ", 1))[0] == 0
    assert run("ask", "in_bounds", "S[64:1@lane] within (64@lane)")[0] == 0
    assert run("ask", "in_bounds", "S[64:-1@lane]")[0] == 1


def test_the_axes_of_the_document(run: Any) -> None:
    """Tensor memory, 128 lanes by 512 columns: 2 x 112 columns fit, 5 x 112 do not."""
    assert run("ask", "in_bounds", "S[(2,128,112):(112@Col,1@Lane,1@Col)]", "--within", "cuda")[0] == 0
    code, out, _ = run("ask", "in_bounds", "S[(5,128,112):(112@Col,1@Lane,1@Col)]", "--within", "cuda")
    assert (code, "Col = 512, outside 0..511" in out) == (1, True)
    assert run("ask", "in_bounds", "S[(2,129,112):(112@Col,1@Lane,1@Col)]", "--within", "cuda")[0] == 1


@pytest.mark.parametrize("text", ["R[2:4@gpu]", "S[] + R[2:4@gpu]", "{axe: {R: [[2, 4, gpu]]}}"])
def test_replicas_only(run: Any, text: str) -> None:
    """One element with replicas, without an extent in D."""
    code, out, _ = run("locate", text, "0", "--json")
    assert (code, json.loads(out)["places"]) == (0, [{"gpu": 0}, {"gpu": 4}])


def test_a_part_that_changes_is_seen_by_the_gate(run: Any, tmp_path: Path) -> None:
    """Whoever changes the grid has changed what is made of it; respelling it changes nothing."""
    text = "layouts: {grid: '%s', both: {tile: [grid, 'S[(2,3):(3,1)]']}}\nchecks: [{injective: both}]\n"
    for folder, grid in (("a", "S[(8,8):(8,1)]"), ("b", "S[(8,8):(1,8)]"), ("c", "S[(8,2,4):(8,4,1)] on (8,8)")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.yaml").write_text(text % grid)
    code, out, _ = run("gate", str(tmp_path / "a"), str(tmp_path / "b"), "--format", "json")
    assert code == 1
    assert ("moved", "layout both") in [(f["question"], f["subject"]) for f in json.loads(out)["findings"]]
    code, out, _ = run("gate", str(tmp_path / "a"), str(tmp_path / "c"), "--format", "json")
    assert ("moved", "layout both") not in [(f["question"], f["subject"]) for f in json.loads(out)["findings"]]


def test_each_operator_has_its_page(run: Any) -> None:
    """`explain tile`, and the list of all names them."""
    code, out, _ = run("explain", "tile")
    assert (code, "S[(8,2,8,3):(48,3,6,1)] on (16,24)" in out) == (0, True)
    assert "operators on layouts" in run("explain")[1]
