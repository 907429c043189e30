"""The page of published times: no bound that stands there is above the time that others measured."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "published_steps.md"
UNITS = {"ms": 1e-3, "s": 1.0}


def above(text: str) -> tuple[int, list[str]]:
    """(Rows with a published time, those whose bound, the next cell, is above it)."""
    rows = re.findall(r"(?m)^.*\| ([\d.]+) (ms|s) \| ([\d.]+) (ms|s) \(\d+ %\) \|.*$", text)
    wrong = [" ".join(row) for row in rows if float(row[2]) * UNITS[row[3]] > float(row[0]) * UNITS[row[1]]]
    return len(rows), wrong


def test_no_bound_is_above_a_published_time() -> None:
    one, several = PAGE.read_text("utf-8").split("## Training on several chips")
    assert above(one) == (21, [])
    many, wrong = above(several)
    assert many == 10
    assert not wrong


def test_a_bound_that_is_too_long_is_seen() -> None:
    row = "| 8 | 2x4 | 3 | 3.443 s | 3.500 s (102 %) | HBM | |"
    assert above(row) == (1, ["3.443 s 3.500 s"])
    assert above(row.replace("3.500 s", "998.000 ms")) == (1, [])
