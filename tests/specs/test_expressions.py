"""Layout expressions in spec files: names are looked up at any depth, and every mistake has its place."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from layoutproof.cli import main as cli
from layoutproof.registry.expressions import operators
from layoutproof.specs.positions import read_yaml
from layoutproof.specs.spec import loads, unasked
from layoutproof.specs.spec_model import json_schema

FILE = """\
source: arXiv:2601.19092, section 3.3
layouts:
  blocked: {tile: [grid, atom]}
  grid: "S[(8,8):(8,1)]"
  atom: "S[(2,3):(3,1)]"
  corner: {slice: [blocked, "0:2, 0:3"]}
  swept: "S[(8,2,8,3):(48,3,6,1)]"
checks:
"""


def check(tmp_path: Path, checks: str) -> int:
    """The exit code of `layoutproof check` of FILE with these checks."""
    path = tmp_path / "a.yaml"
    path.write_text(FILE + checks)
    return cli.run(["check", str(path)])


@pytest.mark.parametrize(
    ("checks", "code"),
    [
        ("  - same_map: [swept, {tile: [grid, atom]}]", 0),
        ("  - same_map: [swept, blocked]", 0),
        ("  - same_map: [corner, atom]", 0),
        ("  - same_map: [corner, {slice: [{tile: [grid, atom]}, '0:2, 0:3']}]", 0),
        ("  - prints: blocked\n    is: S[(8,2,8,3):(48,3,6,1)] on (16,24)", 0),
        ("  - locate: {tile: [grid, atom]}\n    index: [3, 4]\n    is: {m: 58}", 0),
        ("  - invalid: {slice: [grid, '0:9, 0:3']}\n    error: not within 0..8", 0),
        ("  - same_map: [swept, {tile: [grid, 'S[(2,3):(1,2)]']}]", 1),
        ("  - same_map: [swept, {sum: [grid, atom]}]", 1),
        ("  - invalid: {slice: [grid, '0:8, 0:3']}", 1),
        ("  - same_map: [{slice: [blocked, '0:2, 0:4']}, atom]", 2),
        ("  - injective: {slice: ['S[(N,4):(M,1)] on (4*N)', 'a:a+6']}", 3),
        ("  - injective: {slice: ['S[(N,4):(M,1)] on (4*N)', 'a:a+6']}\n    expect: unknown\n    reason: not known", 0),
    ],
)
def test_claims_about_expressions(tmp_path: Path, checks: str, code: int) -> None:
    """What holds, what does not, what is no layout and what is not known, each by its exit code."""
    assert check(tmp_path, checks) == code


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("checks: [{injective: {tile: [a, atm]}}]", "5:33: unknown layout 'atm'; did you mean 'atom'?"),
        ("checks: [{injective: {tile: [a]}}]", "5:29: tile is written {tile: [A, B]}; got 1 operand"),
        ("checks: [{injective: {tile: [a, 'S[(8:1]']}}]", "5:33: ']' closes nothing"),
        ("checks: [{injective: {canonical: {slice: [a, '0:9, :']}}}]", "5:34: slice: the slice [0, 9)"),
        ("  c: {tile: [a, {canonical: atm}]}", "5:29: unknown layout 'atm'; did you mean 'atom'?"),
        ("  c: {canonical: c}", "5:6: c is made of itself"),
        ("  c: {canonical: d}\n  d: {tile: [a, c]}", "6:6: d is made of itself"),
        ("  c: {slice: [a, '0:9, :']}", "5:6: slice: the slice [0, 9) of dimension 0 is not within 0..8"),
        ("  c: {tiel: [a, atom]}", "5:6: unknown layout language or operator 'tiel'; did you mean 'tile'?"),
        ("  c: {compose: [a, atom]}", "5:6: compose is about CuTe layouts, not S[(8,8):(8,1)]"),
    ],
)
def test_a_mistake_has_its_place(text: str, error: str) -> None:
    """File, line and column of the operand that is wrong."""
    start = "source: here\nlayouts:\n  a: S[(8,8):(8,1)]\n  atom: S[(2,3):(3,1)]\n"
    found = [str(each) for each in loads(start + text, "a.yaml")[1]]
    assert any(each.startswith(f"a.yaml:{error}") for each in found), found


def test_a_check_of_a_broken_name_says_it_once() -> None:
    """The name's own mistake is the mistake: no check repeats it, however deep the name stands."""
    text = "source: x\nlayouts: {a: 'S[(8:1]'}\nchecks: [{injective: {canonical: {canonical: a}}}]"
    checks, errors = loads(text, "a.yaml")
    assert (checks, len(errors)) == ([], 1)


def test_what_an_expression_uses_is_asked() -> None:
    """A layout that stands in an expression is not reported as never asked; one that stands nowhere is."""
    root = read_yaml(FILE + "  - injective: {canonical: corner}\n", "a.yaml")
    assert [each.name for each in unasked(root, "a.yaml")] == ["swept"]


def test_the_schema_knows_every_operator() -> None:
    """An editor is told how many operands there are."""
    schema = json_schema()
    known = schema["$defs"]["any_layout"]["anyOf"][1]["properties"]
    assert set(operators()) <= set(known)
    validator = jsonschema.Draft202012Validator(schema)
    for good in ({"tile": ["a", {"canonical": "b"}]}, {"fuse": "a"}, {"fuse": ["a", "x, y"]}, {"xla": "f32[3]{0}"}):
        assert validator.is_valid({"layouts": {"c": good}, "checks": [{"injective": good}]}), good
    for bad in ({"tile": ["a"]}, {"tile": "a"}, {"slice": ["a"]}, {"canonical": ["a", "b"]}, {"tile": ["a", 5]}):
        assert not validator.is_valid({"checks": [{"injective": bad}]}), bad
        assert not validator.is_valid({"layouts": {"c": bad}, "checks": [{"injective": "c"}]}), bad
