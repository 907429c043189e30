"""Which reshapes and transposes the real TPU compiler does without moving a byte (libtpu 0.0.42.1), row by row."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import layoutproof as lp
from layoutproof.core.index_map import Index
from layoutproof.core.numbers import Numbers
from layoutproof.core.reshape import Reindex, after, reshape
from layoutproof.core.result import Point, Verdict
from layoutproof.layouts.xla.shape import XlaLayout
from layoutproof.registry.read import read_layout
from tests.oracles import plain
from tests.recorded import rows

pytestmark = pytest.mark.slow

FILE = "tpu_bitcasts.jsonl"
ONE_STEP = ("reshape", "squeeze", "expand", "identity", "bitcast_convert", "transpose")
SMALL = 5000
"""Largest array, in elements, whose addresses are all compared one by one."""


def sides(row: dict[str, Any]) -> tuple[str, str]:
    """The texts of operand and result."""
    pairs = [[row[f"{side}_{part}"] for part in ("type", "shape", "layout")] for side in ("in", "out")]
    before, result = (f"{kind}[{','.join(map(str, dims))}]{layout}" for kind, dims, layout in pairs)
    return before, result


def steps(row: dict[str, Any]) -> list[tuple[str, Any]]:
    """The operation as single steps: `rtr` is reshape, transpose, reshape; transpose arguments are NumPy's axes."""
    if row["op"] in ONE_STEP:
        return [(row["op"], row["arg"])]
    words = row["op"].split("_") if "_" in row["op"] else [{"r": "reshape", "t": "transpose"}[c] for c in row["op"]]
    assert set(words) <= {"reshape", "transpose"}, f"unknown operation {row['op']}"
    return list(zip(words, row["arg"], strict=True))


def on_arrays(array: np.ndarray[Any, Any], row: dict[str, Any]) -> np.ndarray[Any, Any]:
    """The operation on a real array: what each logical result element is, by NumPy alone."""
    for name, arg in steps(row):
        if name == "reshape":
            array = array.reshape(arg)
        elif name == "transpose":
            array = array.transpose(arg)
        elif name == "squeeze":
            array = array.squeeze(tuple(arg) if isinstance(arg, list) else arg)
        elif name == "expand":
            array = np.expand_dims(array, tuple(arg) if isinstance(arg, list) else arg)
    return array


def ask(row: dict[str, Any], before: object, result: object) -> lp.Finding:
    """Our answer: one `bitcast` question, or for several steps `same_map` through them and the allotted bytes."""
    todo = steps(row)
    if len(todo) == 1:
        axes = {"permutation": tuple(todo[0][1])} if todo[0][0] == "transpose" else {}
        return lp.ask("bitcast", before, result, **axes)
    source, target = (read_layout(side).index_map() for side in (before, result))
    return lp.ask("same_map", source, after(through(todo, source.domain.extents), target, source.domain))


def through(todo: Sequence[tuple[str, Any]], dims: Sequence[Any]) -> Reindex:
    """Index of the operand -> index of the result, step by step."""
    parts: list[Callable[[Index, Numbers], Index]] = []
    for name, arg in todo:
        if name == "reshape":
            parts.append(reshape(dims, tuple(arg)))
            dims = tuple(arg)
        else:
            axes = tuple(arg)
            parts.append(lambda index, _, axes=axes: tuple(index[axis] for axis in axes))  # type: ignore[misc]
            dims = tuple(dims[axis] for axis in axes)

    def reindex(index: Index, on: Numbers) -> Index:
        for part in parts:
            index = part(index, on)
        return index

    return reindex


def free(row: dict[str, Any], before: object, result: object) -> bool:
    """Whether we prove that nothing moves and nothing more is allotted; an unknown is a failure."""
    verdict = ask(row, before, result).verdict
    assert verdict is not Verdict.UNKNOWN, sides(row)
    if len(steps(row)) == 1:
        return verdict is Verdict.PROVED
    sizes = [lp.ask("padding", side).figures["bytes"] for side in (before, result)]
    return verdict is Verdict.PROVED and sizes[0] == sizes[1]


def compiled() -> list[dict[str, Any]]:
    """The rows that the compiler did not refuse."""
    return [row for row in rows(FILE) if "error" not in row]


def without_deeper_tiles(text: str) -> XlaLayout:
    layout = read_layout(text)
    return replace(layout, tiles=layout.tiles[:1])


def always_converted(row: dict[str, Any], ours: bool) -> bool:
    return row["op"] == "bitcast_convert" and not row["is_bitcast"] and ours


def requested(row: dict[str, Any]) -> bool:
    return row["op"] != "bitcast_convert" and bool(row["req_in"] or row["req_out"])


def copied_line(row: dict[str, Any], ours: bool) -> bool:
    """Both sides are lines of one length that keep every address, and one has a tile the compiler would not choose."""
    layouts = [read_layout(side) for side in sides(row)]
    canonical = [str(lp.tpu_default(layout, target=row["generation"])) for layout in layouts]
    lines = all(len(layout.dims) == 1 for layout in layouts)
    return requested(row) and lines and ours and not row["is_bitcast"] and canonical != [str(v) for v in layouts]


def ignored_level(row: dict[str, Any], ours: bool) -> bool:
    """The minor dimension is 128 on both sides, and with the first tile level alone nothing would move."""
    layouts = [read_layout(side) for side in sides(row)]
    minor = [layout.dims[layout.minor_to_major[0]] for layout in layouts if layout.dims]
    if not requested(row) or ours or not row["is_bitcast"] or minor != [128, 128]:
        return False
    return free(row, *(without_deeper_tiles(side) for side in sides(row)))


REASONS: dict[str, Callable[[dict[str, Any], bool], bool]] = {
    "bitcast_convert_type is always emitted as an op": always_converted,
    "non-canonical 1-D tiling is copied": copied_line,
    "second tile level ignored with minor dim 128": ignored_level,
}


def test_layouts_chosen_by_the_compiler() -> None:
    """Between layouts that the compiler chose itself, it emits a bitcast exactly where we prove one."""
    chosen = [r for r in compiled() if not (r["req_in"] or r["req_out"]) and r["op"] != "bitcast_convert"]
    assert {row["is_bitcast"] for row in chosen} == {True, False}
    assert [(r["op"], r["arg"], *sides(r)) for r in chosen if free(r, *sides(r)) != r["is_bitcast"]] == []


def test_addresses_compared_elsewhere() -> None:
    """Rows carry whether addresses and padded sizes are equal, by enumeration: exactly then we prove a bitcast."""
    chosen = [r for r in compiled() if r["same_address"] is not None and r["same_size"] is not None]
    assert {(r["same_address"], r["same_size"]) for r in chosen} == set(itertools.product((True, False), repeat=2))
    same = [(r, r["same_address"] and r["same_size"]) for r in chosen]
    assert [(r["op"], r["arg"], *sides(r)) for r, expected in same if free(r, *sides(r)) != expected] == []


def test_every_difference_has_one_reason() -> None:
    """Where the compiler and the definition differ, exactly one named reason fits the row."""
    fitting: Counter[str] = Counter()
    for row in compiled():
        ours = free(row, *sides(row))
        if ours == row["is_bitcast"]:
            continue
        reasons = [name for name, holds in REASONS.items() if holds(row, ours)]
        assert len(reasons) == 1, (row["op"], *sides(row), ours, row["is_bitcast"], reasons)
        fitting.update(reasons)
    assert set(fitting) == set(REASONS)


@pytest.mark.parametrize("reason", REASONS)
def test_no_reason_explains_a_row_that_agrees(reason: str) -> None:
    """A reason is about a difference: with the compiler's answer turned into ours it does not hold."""
    for row in compiled():
        ours = free(row, *sides(row)) if row["op"] == "bitcast_convert" or requested(row) else row["is_bitcast"]
        assert not REASONS[reason]({**row, "is_bitcast": ours}, ours)


def moved(row: dict[str, Any]) -> np.ndarray[Any, Any]:
    """For each (narrow) element of the operand: its first bit before, and its first bit after, by enumeration."""
    before, result = (plain.read(side) for side in sides(row))
    narrow = min(before.bits, result.bits)
    addresses = []
    for array in (before, result):
        bits = plain.offsets(array) * array.bits
        addresses.append(bits if array.bits == narrow else bits[..., None] + np.arange(0, array.bits, narrow))
    first = addresses[0]
    # which element of the operand each element of the result is; only their order is carried through the operation
    order = on_arrays(np.arange(first.size).reshape(first.shape), row).reshape(-1)
    second = np.empty(first.size, dtype=np.int64)
    second[order] = addresses[1].reshape(-1)
    return np.stack([first, second.reshape(first.shape)])


def test_counterexamples_are_the_smallest() -> None:
    """Each refutation names the smallest element that really moves; without one, no element moves and bytes differ."""
    seen: Counter[str] = Counter()
    for row in compiled():
        if np.prod(row["in_shape"], dtype=np.int64) > SMALL:
            continue
        result = ask(row, *sides(row))
        first, second = moved(row)
        point: Point = result.counterexample or {}
        shown = (row["op"], row["arg"], *sides(row), point)
        assert point.get("element") == plain.first_difference(first, second), shown
        if result.verdict is Verdict.REFUTED and "element" not in point:
            sizes = tuple(plain.allotted(plain.read(side)) for side in sides(row))
            assert point == {"bytes": sizes}, shown
            assert sizes[0] != sizes[1], shown
        seen[next(iter(point), "proved")] += 1
    assert set(seen) == {"element", "bytes", "proved"}
