"""Linear indices and byte sizes that XLA's tests, documents and public out-of-memory logs state."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.layouts.xla.sizes import sizes
from layoutproof.registry.read import read_layout
from tests.oracles import plain
from tests.recorded import rows

pytestmark = pytest.mark.slow

FILE = "xla_linear_index_and_size_cases.jsonl"


def wrong_index(row: dict[str, Any]) -> list[str]:
    """Where XLA says one element is; the offset of a memory layout is in elements."""
    found = lp.locate(row["shape"], row["index"])
    return [] if found == [{"offset": row["expected"]}] else [f"locate {found}, not {row['expected']}"]


def wrong_size(row: dict[str, Any]) -> list[str]:
    """What is allotted, by the definition and by ShapeUtil::ArraySize, and its ratio to the unpadded bytes."""
    figures = lp.ask("padding", row["shape"]).figures
    by_name = sizes(read_layout(row["shape"]))
    allotted, unpadded = figures["bytes"], figures["unpadded_bytes"]
    # a row without expected_bytes is one where XLA has no true number: its ArraySize ignores the second tile level
    pairs = [
        ("bytes", allotted, row.get("expected_bytes", row["own_reference"])),
        ("definition", by_name["definition"], allotted),
        ("unpadded_bytes", unpadded, row["unpadded_bytes"]),
        ("ArraySize", by_name["ShapeUtil::ArraySize"], row["xla_ArraySize_rule"]),
        ("expansion", round(allotted / unpadded, 3), row["expansion"]),
    ]
    return [f"{name} {ours}, not {theirs}" for name, ours, theirs in pairs if ours != theirs]


def wrong_data_size(row: dict[str, Any]) -> list[str]:
    """ShapeUtil::ArrayDataSize as XLA computes it, and how far the elements really reach."""
    layout = read_layout(row["shape"])
    flat, bits = layout.index_map().flat(), layout.index_map().memory.bits
    last = max(flat.at(index)[0] for index in every_index(layout.dims))
    pairs = [
        ("ArrayDataSize", sizes(layout)["ShapeUtil::ArrayDataSize"], row.get("expected_bytes", row["own_reference"])),
        ("extent", -(-(last + 1) * bits // 8), row["true_extent_bytes"]),
    ]
    return [f"{name} {ours}, not {theirs}" for name, ours, theirs in pairs if ours != theirs]


def every_index(dims: tuple[int, ...]) -> list[tuple[int, ...]]:
    indices: list[tuple[int, ...]] = [()]
    for extent in dims:
        indices = [(*index, entry) for index in indices for entry in range(extent)]
    return indices


KINDS = {"linear_index": wrong_index, "size": wrong_size, "ArrayDataSize": wrong_data_size}


@pytest.mark.parametrize("kind", KINDS)
def test_every_row(kind: str) -> None:
    """Each number that XLA or a log states is the number we give."""
    chosen = [row for row in rows(FILE) if row["kind"] == kind]
    assert chosen
    assert [(row["shape"], problem) for row in chosen for problem in KINDS[kind](row)] == []


def test_every_kind_is_known() -> None:
    """A row of a kind nobody interprets here is not skipped."""
    assert set(Counter(row["kind"] for row in rows(FILE))) <= set(KINDS)


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("linear_index", "expected"),
        ("size", "expected_bytes"),
        ("size", "unpadded_bytes"),
        ("size", "xla_ArraySize_rule"),
        ("size", "expansion"),
        ("ArrayDataSize", "own_reference"),
        ("ArrayDataSize", "true_extent_bytes"),
    ],
)
def test_a_wrong_number_is_found(kind: str, key: str) -> None:
    """Every number of every row is looked at: one more than the truth is reported."""
    for row in rows(FILE):
        # where there are expected_bytes they go before our own reference
        if row["kind"] == kind and key in row and not (key == "own_reference" and "expected_bytes" in row):
            assert len(KINDS[kind]({**row, key: row[key] + 1})) == 1, row["shape"]


def test_plain_reference_agrees() -> None:
    """The reference that the other oracle tests use gives the same numbers, so it may be trusted there."""
    checked = 0
    for row in rows(FILE):
        if row["kind"] == "linear_index" and "*" not in row["shape"]:
            assert plain.offset(plain.read(row["shape"]), row["index"])[0] == row["expected"]
            checked += 1
        if row["kind"] == "size":
            assert plain.allotted(plain.read(row["shape"])) == row.get("expected_bytes", row["own_reference"])
            checked += 1
    assert checked
