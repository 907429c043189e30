"""The table of public kernels: what changed since the last run is found, and what was not asked is no change."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks" / "public_functions"


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The command, imported as it is run: with its folder in front."""
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)
    import table

    yield table
    # its modules have plain names, which others may have too
    for name in set(sys.modules) - before:
        if str(FOLDER) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


CALL = "AI-Hypercomputer/maxtext gmm 512"


def rows_in(folder: Path, **parts: Any) -> Path:
    for part, said in parts.items():
        (folder / f"{part}.jsonl").write_text(json.dumps({"name": CALL, **said}) + "\n")
    return folder


def pass_of(proved: int, unknown: int, assume: list[str]) -> dict[str, Any]:
    return {"proved": proved, "refuted": 0, "unknown": unknown, "assume": assume, "where": []}


def test_a_row_joins_what_is_kept(table: ModuleType, tmp_path: Path) -> None:
    places = {"before": pass_of(25, 15, ["a"]), "after": pass_of(40, 0, [])}
    memory = {"answer": "refused", "vmem": 3 << 20, "relayouts": 2, "why": "w"}
    rows = rows_in(tmp_path, places=places, compiled={"targets": dict.fromkeys(table.TARGETS, memory)})
    (row,) = table.table(rows).values()
    assert row["places"] == {"proved": 40, "refuted": 0, "unknown": 0, "assumed": 1}
    assert row["values"] is None
    line = next(line for line in table.page({CALL: row}, {}, "today") if "| gmm 512 |" in line)
    cells = "refused 3.00 | refused 3.00 | refused 3.00 | 2 / 2 / 2"
    assert line == f"| AI-Hypercomputer/maxtext | gmm 512 | 40 proved | 1 |  | {cells} |"


def test_changes_stand_on_top(table: ModuleType) -> None:
    was = {"a": {"places": {"proved": 1, "refuted": 0, "unknown": 2}, "values": "sampled"}, "b": {}}
    now = {"a": {"places": {"proved": 3, "refuted": 0, "unknown": 0}, "values": "sampled"}, "c": {}}
    changes = table.changes(was, now)
    assert changes == ["a: places: was 2 unknown, 1 proved, is 3 proved", "c: new", "b: no longer asked"]
    assert table.changes(was, was) == []
    assert table.changes({"a": {"values": None}}, {"a": {"values": "refuted"}}) == []
