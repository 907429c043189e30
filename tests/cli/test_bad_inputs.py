"""Bad inputs: bounds of every language, and a slice of the soak that `benchmarks/bad_inputs.py` is."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.cli import main as cli
from layoutproof.core.bounds import MOST_DIGITS
from tests import said
from tests.cli.in_one_process import commands

pytestmark = pytest.mark.slow

SOAK = Path(lp.__file__).parents[1] / "benchmarks" / "bad_inputs.py"
DEEP, MANY, LONG = 3000, 3000, "9" * (MOST_DIGITS + 1)


def twos(count: int, by: str = "2") -> str:
    return ",".join([by] * count)


TOO_LARGE = {
    "a swizzle": (["ask", "injective", "S[8:1] swizzle (0,60,60)"], "moves bits beyond the 63 bits of an address"),
    "bits of a swizzle": (["ask", "in_bounds", "S[8:1] swizzle (99999999,3,3)"], "beyond the 63 bits"),
    "nested extents": (["ask", "injective", f"S[{'(' * DEEP}2{')' * DEEP}:1]"], said.words("specs.depth", most=100)),
    "many extents": (["ask", "injective", f"S[({twos(MANY)}):({twos(MANY)})]"], "3000 extents; at most 1000"),
    "many sizes": (["ask", "injective", f"S[({twos(100, 'N')})]"], "more than 16 sizes"),
    "a large box": (["ask", "injective", f"S[({twos(80)}):({twos(80)})]"], "more than 64 bits"),
    "copies": (["ask", "injective", f"S[8:1]{' + R[2:1]' * MANY}"], "3000 extents; at most 1000"),
    "a number of Axe": (["ask", "injective", f"S[8:{LONG}]"], "more than 20 digits"),
    "a number of a mapping": (["ask", "injective", json.dumps({"axe": {"D": [[8, 10**30]]}})], "more than 20 digits"),
    "a deep mapping": (["ask", "injective", '{"axe": ' + "[" * DEEP + "]" * DEEP + "}"], "deep"),
    "a number of CuTe": (["ask", "injective", f"(8,4):(1,{LONG})"], "more than 20 digits"),
    "a box of CuTe": (["ask", "injective", f"({twos(100)}):({twos(100)})"], "more than 64 bits"),
    "nested CuTe": (["ask", "injective", "(" * 99 + "2" + ")" * 99 + ":1"], "deep"),
    "a swizzle of CuTe": (["ask", "injective", "Sw<99,99,99> o 0 o 8:1"], "must be 0..64"),
    "strides": (["ask", "injective", f"f32[{twos(100)}] strides ({twos(100)})"], "more than 64 bits"),
    "a stride": (["ask", "in_bounds", f"f32[8] strides ({LONG})"], "more than 20 digits"),
    "a polynomial": (
        ["ask", "injective", f"f32[{'*'.join(['(N+M+K)'] * 12)}] strides (1)"],
        said.stretch("core.expression_length"),
    ),
    "a size over zero": (["ask", "injective", "f32[8//(M-M)] strides (1)"], said.stretch("core.size_divides_by_zero")),
    "a sharding": (["ask", "even", f"f32[8] {{devices=[{LONG}]<=[{LONG}]}}"], ""),
    "a map's names": (["ask", "injective", f"({','.join(f'i{k}<2' for k in range(80))}) -> (0)"], "more than 64 bits"),
    "a map's product": (["locate", f"(i < 8) -> ({'*'.join('i' * 100)})", "3"], "over 1024 bits"),
    "a map's number": (["locate", f"(i < 8) -> (i + 0x{'f' * 400})", "3"], "more than 20 digits"),
    "a map written twice": (
        ["ask", "injective", f"(i < 8) -> ({'cdiv(i,' * 60}3{')' * 60})"],
        "more than 2000 operations",
    ),
    "a map's depth": (["ask", "injective", f"(i < 8) -> ({'min(i,' * 150}3{')' * 150})"], "deep"),
    "XLA's sizes": (["ask", "injective", f"f32[{twos(100, 'N')}]"], "more than 16 sizes"),
    "XLA's numbers": (["ask", "injective", f"f32[{LONG}]"], "64 bits"),
    "cases of where": (
        ["ask", "injective", "f32[N]", "--where", " and ".join(["(N==1 or N==2)"] * 200)],
        "more than 200",
    ),
    "a long where": (["ask", "injective", "f32[N]", "--where", " and ".join(["N>1"] * 500)], "more than 200"),
    "a chain in where": (["ask", "injective", "f32[N]", "--where", "1" + "<N" * 1200], "more than 2000"),
    "a product in where": (
        ["ask", "injective", "f32[N,M]", "--where", "N*N == 2*" + "*".join("M" * 39)],
        "product of too many factors",
    ),
    "an index": (["locate", "f32[3,5]{1,0}", "9" * 4500], "not a whole number"),
    "a shape": (["ask", "padding", f"f32[{'(' * DEEP}"], ""),
}
"""What is bounded while it is read: the command, and a part of what it says."""


def test_every_language_bounds_what_it_reads(tmp_path: Path) -> None:
    """Numbers, boxes, nesting, polynomials and expressions beyond all measure are bad input, told at once."""
    answers, peak = commands(tmp_path, *(line for line, _ in TOO_LARGE.values()))
    for (name, (_, words)), answer in zip(TOO_LARGE.items(), answers, strict=True):
        assert answer.code == 2, (name, answer)
        assert words in answer.err, (name, answer.err)
        assert "bug in layoutproof" not in answer.err
    assert peak < 300  # MiB


@pytest.mark.parametrize(
    "text",
    [
        "S[(64,64):(64,1)] swizzle (3,3,3)",
        "S[(8,4):(4@lane,1@lane)] + R[2:4@warp] + 99999999999999999999@warp",
        f"S[({twos(60)})]",
        f"(({twos(30)}),({twos(30)})):(({twos(30, '1')}),({twos(30, '1')}))",
        "f32[9223372036854775807] strides (0)",
        f"f32[{','.join('N' * 16)}]",
        f"f32[{twos(1000, '1')}]",
        f"(i < 8) -> ({'(' * 90}i{')' * 90})",
        f"(i < 8) -> ({'*'.join('i' * 16)})",
        "(i < 8) -> (cdiv(cdiv(i, 3), 2) ^ 1)",
    ],
)
def test_what_lies_within_the_bounds_is_read(text: str) -> None:
    """The twins of the refusals: large, and not beyond all measure."""
    layout = lp.read_layout(text)
    assert str(lp.read_layout(str(layout))) == str(layout)


def test_a_slice_of_the_soak(tmp_path: Path) -> None:
    """Some hundred broken inputs of every kind: each is answered or refused in words, within its time and memory."""
    command = [sys.executable, str(SOAK), "--inputs", "400", "--seed", "7", "--jobs", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "400 inputs, seed 7" in done.stdout
    assert ", 0 wrong" in done.stdout


@pytest.mark.parametrize(
    ("answer", "trouble"),
    [
        (
            lambda arguments: print(said.words("cli.internal_error", what="here")) or 2,
            "please report it: here",
        ),
        (lambda arguments: 7, "exit code 7"),
        (lambda arguments: 2, "nothing printed"),
        (lambda arguments: 1 // 0, "ZeroDivisionError"),
        (lambda arguments: print("fine") or 0, ""),
    ],
)
def test_the_soak_can_fail(monkeypatch: pytest.MonkeyPatch, answer: Any, trouble: str) -> None:
    """A defect, an exit code without a meaning, silence and an exception are each found and named."""
    monkeypatch.setattr(cli, "run", answer)
    found = runpy.run_path(str(SOAK))["judged"](1, 5).trouble
    assert trouble in found
    assert bool(found) == bool(trouble)


def test_rules_and_lock_files_nested_too_deep(tmp_path: Path) -> None:
    """TOML and JSON that their own readers follow until Python's stack ends are bad input."""
    (tmp_path / "a.yaml").write_text("source: x\nlayouts: {a: 'f32[3]{0}'}\nchecks: [{injective: a}]\n")
    (tmp_path / "layoutproof.lock").write_text(
        f"# layoutproof.lock 1: written by layoutproof gate --lock, of {'[' * DEEP}{']' * DEEP}\n"
    )
    (locked,), _ = commands(tmp_path, ["gate"])
    (tmp_path / "pyproject.toml").write_text(f"[tool.layoutproof.gate]\nmoved = {'[' * DEEP}{']' * DEEP}\n")
    (ruled,), _ = commands(tmp_path, ["gate", "a.yaml", "a.yaml"])
    assert (locked.code, ruled.code) == (2, 2)
    assert "not a lock file" in locked.err
    assert "nested too deep" in ruled.err + ruled.out


def test_a_program_whose_block_has_no_elements(tmp_path: Path) -> None:
    """An array of no elements is one block of none: `locate` says where each program would begin."""
    kernel = {"grid": [8], "outputs": [{"name": "o", "array": "s8[0]"}]}
    (answer,), _ = commands(tmp_path, ["locate", json.dumps({"kernel": kernel}), "1"])
    assert (answer.code, answer.err) == (0, "")
    assert "index map" in answer.out
