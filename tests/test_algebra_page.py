"""The page of the algebra: its examples run, and every public operation has one."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

import layoutproof as lp
from layoutproof.algebra import axe, cute

PAGE = Path(__file__).resolve().parents[1] / "docs" / "algebra.md"
TEXT = PAGE.read_text("utf-8")
CODE = "\n".join(re.findall(r"^```pycon\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE))


def failures(text: str) -> int:
    """How many examples of a text do not give what stands below them."""
    test = doctest.DocTestParser().get_doctest(text, {}, "algebra.md", None, 0)
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=lambda _: None)
    assert runner.tries > 0
    return runner.failures


def test_its_examples_run() -> None:
    """Each gives what stands below it; one that is wrong is found."""
    assert failures(CODE) == 0
    assert failures(CODE.replace("'4:4'", "'4:5'")) == 1


@pytest.mark.parametrize(("name", "module"), [("axe", axe), ("cute", cute)])
def test_every_public_operation_is_in_an_example(name: str, module: object) -> None:
    """Functions are called in the code; types are named on the page. All exist, with a docstring."""
    public = module.__all__  # type: ignore[attr-defined]
    assert public == sorted(public)
    for each in public:
        value = getattr(module, each)
        if isinstance(value, type) or not callable(value):
            assert f"`{each}" in TEXT or f"{name}.{each}" in CODE, each
        else:
            assert re.search(rf"\b{name}\.{each}\b", CODE), each
            assert f"`{each}`" in TEXT, each
            assert value.__doc__, each


def test_the_algebra_is_reachable() -> None:
    """As `lp.algebra`; a Reason is false, and says why."""
    assert lp.algebra.axe is axe
    assert lp.algebra.cute is cute
    reason = lp.algebra.Reason("there is none", 3, 1, 2)
    assert not reason
    assert str(reason) == "there is none"
