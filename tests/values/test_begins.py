"""Where a difference begins: the store after which a kernel's state is no prefix of its reference."""

from __future__ import annotations

from pathlib import Path

import pytest

import layoutproof as lp
from layoutproof.cli.documents import adapter

pytest.importorskip("jax")
cases = pytest.importorskip("tests.values.begin_cases")

LINES = Path(cases.__file__).read_text(encoding="utf-8").splitlines()


def mark_of(place: str) -> str:
    """The mark of a line."""
    return LINES[int(place.rpartition(":")[2]) - 1].rpartition("# at ")[2] if place else ""


@pytest.mark.parametrize("name", cases.RIGHT)
def test_what_is_right_begins_nowhere(name: str) -> None:
    """And is not refuted."""
    kernel, reference, shapes = cases.RIGHT[name]
    found = lp.same(kernel, reference, *shapes)
    assert found.verdict.value in ("sampled", "proved"), found.reason
    assert found.comparison.begins is None
    assert "begins" not in str(found)


@pytest.mark.parametrize("name", cases.CASES)
def test_the_store_at_which_a_difference_begins(name: str) -> None:
    """Never another one: where it is not known, that is said, with the store of the element."""
    kernel, reference, shapes, mark = cases.CASES[name]
    found = lp.same(kernel, reference, *shapes)
    assert found.verdict is lp.Verdict.REFUTED, found.reason
    begins = found.comparison.begins
    assert begins is not None
    assert mark_of(begins.place) == mark, str(found)
    assert mark_of(begins.stored) == "store"
    assert found.findings[0].line == int((begins.place or begins.stored).rpartition(":")[2])
    assert not begins.place or f"it begins at {Path(cases.__file__).name}" in found.findings[0].hint.replace(
        "tests/values/", ""
    )
    adapter("same").validate_python(found.as_dict())
    said = found.as_dict()["begins"]
    assert (said["place"], said["program"]) == (begins.place, list(begins.program))
