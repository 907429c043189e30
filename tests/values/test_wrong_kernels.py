"""A slice of `benchmarks/wrong_kernels`: every edit still fits, and what is shown of some of its rows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax", reason="kernels are JAX's")

from benchmarks.wrong_kernels import columns
from benchmarks.wrong_kernels.__main__ import Row, errors, kernels, rows_of, tables
from benchmarks.wrong_kernels.made import KINDS, module_of
from tests.console_pages import files

pytestmark = pytest.mark.slow

KERNELS = kernels()


def test_every_edit_fits() -> None:
    """What it replaces stands once in its function, and its kind is one of those that can be shown."""
    for kernel in KERNELS.values():
        for wrong in kernel.wrong:
            assert kernel.text(wrong) != kernel.text()
            assert kernel.kind(wrong) in KINDS


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [
        ("softmax", "", ["no", "no", "no"]),
        ("softmax", "not divided", ["yes", "yes", "yes"]),
        ("softmax", "no maximum", ["yes", "no", "no"]),
        ("rms_norm", "eps of 1e-5", ["yes", "no", "yes"]),
    ],
)
def test_a_row(name: str, wrong: str, said: list[str], tmp_path: Path) -> None:
    """The witness, allclose at 2e-2, and the values: each has rows that it alone sees."""
    kernel = KERNELS[name]
    module = module_of(kernel, wrong, tmp_path)
    asked = [
        columns.witness(kernel, wrong, module), columns.allclose_2e2(kernel, module), columns.values(kernel, module),
    ]  # fmt: skip
    assert [one.caught for one in asked] == said


def test_what_must_not_be_is_named() -> None:
    """A false alarm, a false answer and a row that nothing shows to be wrong; rounding is not asked of the values."""

    def row(wrong: str, column: str, caught: str, kind: str = "") -> Any:
        return Row("k", wrong, kind, column, caught, "", 1.0)

    fine = [row("", "values", "no"), row("w", "values", "yes"), row("w", "witness", "yes"), row("", "witness", "no")]
    assert not list(errors([*fine, row("r", "values", "no", "rounding"), row("w", "values", "unknown")]))
    for bad in (
        row("", "values", "yes"),
        row("w", "values", "no"),
        row("w", "witness", "no"),
        row("", "witness", "yes"),
    ):
        assert len(list(errors([*fine, bad]))) == 1
    assert any(
        "| k | r (rounding) | sampled | none |" in line for line in tables([row("r", "values", "no", "rounding")])
    )


def test_a_checker_of_somebody_else_is_a_column(tmp_path: Path) -> None:
    """The one of the page: it reads the file that it is given, and never learns what is wrong with it."""
    page = Path(__file__).parents[2] / "docs" / "wrong_kernels.md"
    checker = tmp_path / "checker.py"
    checker.write_text(files(page.read_text("utf-8"))["checker.py"])
    found = list(rows_of([("rms_norm", ""), ("rms_norm", "sum for mean")], "small", f"{sys.executable} {checker}"))
    assert [(row.caught, row.words) for row in found] == [(c, "compared at scale 1e-3") for c in ("no", "yes")]
    assert any("| small | 1 of 1 | 0 of 0 | 0 of 0 | 0 of 0 | 0 of 1 |" in line for line in tables(found))
    (row,) = rows_of([("rms_norm", "")], "none", "echo no idea; exit 7")
    assert (row.caught, row.words) == ("unknown", "no idea")
