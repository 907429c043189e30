"""Kernels run by hand, against what JAX's page "Grids and BlockSpecs" prints: `tests/cases/kernel_programs.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from layoutproof.pallas.judge import kernel_of
from layoutproof.specs.positions import read_file
from tests.pallas.reference import operand_of, windows, written_table

pytestmark = pytest.mark.slow

CASES = read_file(Path(__file__).parents[1] / "cases" / "kernel_programs.yaml").plain()


def depth(value: Any) -> int:
    return 1 + max(map(depth, value)) if isinstance(value, list) else 0


@pytest.mark.fast
@pytest.mark.parametrize("case", CASES["checks"], ids=lambda case: case.get("name", ""))
def test_the_page_is_what_it_prints(case: dict[str, Any]) -> None:
    """programs: which program writes each element last.  slices: the elements that one program sees."""
    kind = "programs" if "programs" in case else "slices"
    about = case[kind]
    kernel = kernel_of(CASES["layouts"].get(about, about) if isinstance(about, str) else about, kind)
    if kind == "slices":
        assert [list(part) for part in windows(kernel, operand_of(kernel), tuple(case["program"]))] == case["is"]
    else:
        operand = operand_of(kernel, role="out")
        pairs = depth(case["is"]) > len(operand.dims)
        assert written_table(kernel, operand, case.get("value", ""), pairs=pairs) == case["is"]
