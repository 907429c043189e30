"""A slice of `benchmarks/edits`: edits are one change each and drawn by their seed; what must not be is named."""

from __future__ import annotations

import ast
import inspect
import random
from typing import Any

import pytest

pytest.importorskip("jax", reason="kernels are JAX's")

from benchmarks.edits import families
from benchmarks.edits.__main__ import Row, answered, errors, subjects, tables
from benchmarks.edits.edited import edit
from benchmarks.edits.rewritten import rewrite

pytestmark = pytest.mark.slow


def test_edits_are_drawn_by_their_seed() -> None:
    """The same one again; another text that is still Python; every sort is drawn."""
    kinds = set()
    subject = list(subjects().values())
    for seed in range(300):
        text = inspect.getsource(subject[seed % len(subject)].own)
        one, other = (edit(text, random.Random(seed)) for _ in range(2))
        assert one == other
        assert ast.unparse(ast.parse(one.text)) == one.text
        kinds.add(one.kind)
    assert kinds == {
        "axis", "call", "comparison", "condition", "constant", "element type", "extent", "index", "mask", "name",
        "operator", "statement doubled", "statement dropped", "statements exchanged", "store", "taken of", "transposed",
    }  # fmt: skip


def test_rewrites_and_families_are_drawn_by_their_seed() -> None:
    """Likewise; one family is of every sort."""
    text = inspect.getsource(subjects()["flash"].own)
    assert rewrite(text, random.Random(4)) == rewrite(text, random.Random(4)) != rewrite(text, random.Random(5))
    words = [families.made(random.Random(seed)) for seed in range(40)]
    assert [w.words for w in words] == [families.made(random.Random(seed)).words for seed in range(40)]
    assert {w.name.split(":")[0] for w in words} == {"attention", "matmul", "recurrence", "rows", "sums"}


def test_a_rewrite_keeps_the_type_of_a_product() -> None:
    """Products of 8 bits that are summed in 8 bits are others."""
    text = inspect.getsource(subjects()["quantised"].own)
    assert "preferred_element_type" in text
    assert all("preferred_element_type" in rewrite(text, random.Random(seed)).text for seed in range(40))


@pytest.mark.parametrize(
    ("seed", "rewrites", "differs", "answer"),
    [("131.47", False, True, "refuted"), ("131.174", False, False, "proved"), ("3.114", True, False, "sampled"),
     ("131.15", False, False, "refuted")],
)  # fmt: skip
def test_a_row(seed: str, rewrites: bool, differs: bool, answer: str) -> None:
    """What float64 says, and what `same` says without being told; copies started twice are refuted by their places."""
    row = answered({"seed": seed, "rewrites": rewrites}, lambda value: None)
    assert (row["differs"], row["answer"]) == (differs, answer)


def test_what_must_not_be_is_named() -> None:
    """A wrong kernel that is sampled, a right one that is refuted, an error."""

    def row(differs: bool, answer: str) -> Any:
        return Row("1.1", "k", "index", "w", differs, "", answer, "", "", 1.0)

    fine = [row(True, "refuted"), row(True, "unknown"), row(False, "sampled"), row(False, "unknown")]
    assert not list(errors(fine))
    assert "50.0% of 2 that float64 tells apart are refuted, 0 of them by their places" in list(tables(fine))
    for wrong in ("missed", "false alarm", "error"):
        assert len(list(errors([*fine, row(wrong == "missed", wrong)]))) == 1
