"""Size symbols that stand in a stride, an offset or a replica's step and in no extent are sizes like all others."""

from __future__ import annotations

import itertools
import re

import pytest

import layoutproof as lp
from layoutproof.cli.main import run
from layoutproof.registry.read import map_of, read_layout

# text, the symbols in it
LAYOUTS = {
    "S[(M):(K)] within (4)": "MK",
    "S[N:1@m] + O@m within (16@m)": "NO",
    "S[(M):(K@lane)] within (4@lane)": "MK",
    "S[(4):(M@m)] within (16@m)": "M",
    "S[(4,2):(M@lane,1@m)] within (16@lane,8@m)": "M",
    "S[(4):(1@m)] + R[2:K@m] within (64@m)": "K",
    "S[(4):(1@m)] + P@m on (2,2) within (8@m)": "P",
    "S[(N,4):(4@m,1@m)] + O@lane within (P@m, 8@lane)": "NPO",
    "(4,1):(1,M)": "M",
    "f32 (4,1):(1,M)": "M",
    "f32[4,1] strides (1,M) in 16": "M",
    "f32[4] strides (M) in 16": "M",
}
PROPERTIES = ("in_bounds", "injective", "bijective", "covers", "replicas_distinct", "same_map")


def _asked(name: str, text: str, where: str | None = None) -> lp.Finding | None:
    """The answer; None where the question is not about such a layout."""
    layouts = [text, text.replace("(4)", "(8)")] if name == "same_map" else [text]
    try:
        return lp.ask(name, *layouts, where=where)
    except lp.LayoutError as error:
        if re.search("size symbols|has no value", str(error)):
            raise
        return None


def _at(text: str, sizes: dict[str, int]) -> str:
    return re.sub(r"\b[KMNOP]\b", lambda name: str(sizes[name[0]]), text)


@pytest.mark.parametrize("name", PROPERTIES)
@pytest.mark.parametrize("text", LAYOUTS)
def test_the_answer_is_that_of_the_numbers(text: str, name: str) -> None:
    """A refutation holds of the numbers in it, and a proof of small numbers; no engine breaks on the way."""
    assert set(map_of(read_layout(text)).sizes()) == set(LAYOUTS[text])
    found = _asked(name, text)
    if found is None:
        return
    assert found.verdict is not lp.Verdict.UNKNOWN, found.reason
    assert "broken_engine" not in found.figures
    if found.verdict is lp.Verdict.REFUTED:
        fixed = _asked(name, _at(text, found.counterexample["sizes"]))
        assert fixed is None or fixed.verdict is lp.Verdict.REFUTED, found
        return
    for values in itertools.product((1, 2, 3), repeat=len(LAYOUTS[text])):
        fixed = _asked(name, _at(text, dict(zip(LAYOUTS[text], values, strict=True))))
        assert fixed is None or fixed.verdict is lp.Verdict.PROVED, (values, fixed)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["in_bounds", "S[(4):(M@m)] within (16@m)"], 1),
        (["in_bounds", "S[(4):(M@m)] within (16@m)", "--where", "M % 2 == 0 and M <= 5"], 0),
        (["in_bounds", "S[(4):(M@m)] within (16@m)", "--where", "M % 2 == 0"], 1),
        (["in_bounds", "S[N:1@m] + O@m within (16@m)", "--where", "N + O <= 16"], 0),
        (["in_bounds", "S[N:1@m] + O@m within (16@m)", "--where", "N + O <= 17"], 1),
        (["in_bounds", "S[(4):(M@m)]", "--within", "{m: 16}"], 1),
        (["injective", "S[(4):(M@m)] within (16@m)"], 0),
    ],
)
def test_a_user_asks_about_them(words: list[str], code: int) -> None:
    """Conditions may speak of them, and the answers are those of arithmetic."""
    assert run(["ask", *words]) == code
