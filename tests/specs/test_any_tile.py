"""The theorems for tiles and blocks of any size, asked again with numbers by brute force, one size after the other."""

from __future__ import annotations

import itertools
import random
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import layoutproof as lp
from layoutproof.core.expression import parse_condition, parse_size
from layoutproof.core.numbers import Numbers

pytestmark = pytest.mark.slow

SPEC = yaml.safe_load((Path(__file__).parents[2] / "specs" / "theorems_any_tile.yaml").read_text())
VALUES = (1, 2, 3, 4, 7)
TRIED = 40
"""Choices of numbers per theorem, the same ones in every run."""


def _sizes(value: Any) -> set[str]:
    """The size symbols in a layout's text or mapping: its names of one or two letters that are no index."""
    if isinstance(value, dict):
        return set().union(*(_sizes(v) for k, v in value.items() if k not in ("name", "semantics", "index")))
    if isinstance(value, list):
        return set().union(*map(_sizes, value))
    return set(re.findall(r"\b(?:[A-Z]|[a-d]|b[mnk])\b", str(value))) - {"T"}


def _with(value: Any, sizes: dict[str, int]) -> Any:
    if isinstance(value, dict):
        return {k: v if k == "name" else _with(v, sizes) for k, v in value.items()}
    if isinstance(value, list):
        return [_with(v, sizes) for v in value]
    return (
        re.sub(r"\b(\w+)\b", lambda name: str(sizes.get(name[0], name[0])), value) if isinstance(value, str) else value
    )


def _theorems() -> list[tuple[str, Any, dict[str, Any]]]:
    proved = (check for check in SPEC["checks"] if check.get("expect") != "refuted")
    return [(name := next(iter(check)), check[name], check) for check in proved]


def _layouts(value: Any) -> list[Any]:
    return [SPEC["layouts"].get(entry, entry) for entry in (value if isinstance(value, list) else [value])]


@pytest.mark.parametrize(("name", "value", "check"), _theorems(), ids=[f"{n}-{v}" for n, v, _ in _theorems()])
def test_a_theorem_holds_for_numbers(name: str, value: Any, check: dict[str, Any]) -> None:
    """Whatever the sizes are, brute force finds no violation; and the closed form of the padding is the number."""
    layouts = _layouts(value)
    names = sorted(_sizes(layouts))
    assert len(names) >= 2, "a theorem about sizes has some"
    choices = list(itertools.product(VALUES, repeat=len(names)))
    random.Random(7).shuffle(choices)
    condition = parse_condition(check["where"]) if "where" in check else None
    asked = 0
    for values in choices:
        sizes = dict(zip(names, values, strict=True))
        if condition is not None and not condition.evaluate({}, Numbers(sizes)):
            continue
        given = {"at_most": check["at_most"]} if "at_most" in check else {}
        found = lp.ask(name, *(_with(layout, sizes) for layout in layouts), engine="brute", **given)
        if found.reason.startswith("vacuous"):
            continue  # a grid without programs
        assert found.verdict is lp.Verdict.PROVED, (sizes, found)
        for figure, formula in check.get("figures", {}).items():
            text = re.sub(r"ceil\(([^/]*)/([^)]*)\)", r"cdiv(\1, \2)", formula)
            assert found.figures[figure] == parse_size(_with(text, sizes)), sizes
        asked += 1
        if asked == TRIED:
            return
    assert asked >= 3, "the condition leaves something to ask"


def test_a_theorem_that_is_false_is_refuted_by_numbers_too() -> None:
    """The comparison can fail: without its condition the floor of a grid leaves elements out."""
    sizes = {"N": 3, "M": 4, "bm": 2, "bn": 2}
    floor = "f32[N,M] blockspec (bm, bn) (i, j) -> (i, j) grid (N//bm, M//bn)"
    assert lp.ask("covers", _with(floor, sizes), engine="brute").verdict is lp.Verdict.REFUTED
    assert lp.ask("covers", floor).verdict is lp.Verdict.REFUTED
