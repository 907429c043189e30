"""Two definitions of XLA's tiling, written apart, must place every element alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given

from layoutproof.core.errors import LayoutError
from layoutproof.crosschecks.pad_reshape import pad_reshape_transpose
from layoutproof.layouts.xla import parse
from layoutproof.layouts.xla.shape import COMBINE, XlaLayout
from layoutproof.questions.evaluate import table
from tests.questions.layouts_at_random import xla_layouts
from tests.recorded import rows

pytestmark = pytest.mark.slow


def numbered(layout: XlaLayout) -> np.ndarray:
    """1, 2, 3, .. in the logical shape: padding stays 0."""
    return np.arange(1, 1 + int(np.prod(layout.dims, dtype=int))).reshape(layout.dims)


@given(xla_layouts())
@example(XlaLayout("bf16", (5, 9), ("", ""), (1, 0), ((1, 4), (2, 1))))
@example(XlaLayout("f32", (2, 3, 4), ("", "", ""), (0, 2, 1), ((COMBINE, 4, 3), (COMBINE, COMBINE, 2))))
@example(XlaLayout("u32", (), (), (), ((4, 2), (3,))))
@example(XlaLayout("f32", (0, 3), ("", ""), (0, 1), ((2, 2),), 8))
def test_place_and_pad_reshape_transpose_agree(layout: XlaLayout) -> None:
    """An array moved by pad, reshape, transpose lies where `place` says, and nowhere else; and takes as much room."""
    array = numbered(layout)
    moved = pad_reshape_transpose(layout, array)
    memory = layout.index_map().memory
    assert memory is not None
    assert moved.shape == (memory.allotted,)
    offsets = table(layout)
    assert offsets.shape == array.shape
    by_place = np.zeros(memory.allotted, dtype=array.dtype)
    by_place[offsets] = array
    np.testing.assert_array_equal(moved, by_place)


def test_the_documents_number() -> None:
    """f32[3,5]{1,0:T(2,2)}: element (2,3) is at 17 (docs/tiled_layout.md)."""
    layout = parse("f32[3,5]{1,0:T(2,2)}")
    moved = pad_reshape_transpose(layout, numbered(layout), fill=-7)
    assert moved[17] == numbered(layout)[2, 3]
    assert (moved == -7).sum() == 9


def test_published_linear_indices() -> None:
    """Every linear index that XLA's tests and documents state, by this definition."""
    checked = 0
    for row in rows("xla_linear_index_and_size_cases.jsonl"):
        if row["kind"] != "linear_index":
            continue
        layout = parse(row["shape"])
        array = numbered(layout)
        wanted = array[tuple(row["index"])]
        assert pad_reshape_transpose(layout, array)[row["expected"]] == wanted, row
        checked += 1
    assert checked > 20


@pytest.mark.parametrize("tile", [(), (0,), (2, COMBINE), (-3, 2)])
def test_tiles_without_meaning_are_refused(tile: tuple[int, ...]) -> None:
    """A tile that is empty, not positive, or ends in a star is an error, not a guess."""
    with pytest.raises(LayoutError, match="has no meaning"):
        pad_reshape_transpose(XlaLayout("f32", (3, 5), ("", ""), (1, 0), (tile,)), np.zeros((3, 5)))


def test_shapes_must_match() -> None:
    """An array of another shape, and an order that is no permutation, are refused."""
    with pytest.raises(LayoutError, match=r"shape \(5, 3\)"):
        pad_reshape_transpose(parse("f32[3,5]{1,0}"), np.zeros((5, 3)))
    with pytest.raises(LayoutError, match="not a permutation"):
        pad_reshape_transpose(XlaLayout("f32", (3, 5), ("", ""), (1, 1)), np.zeros((3, 5)))
