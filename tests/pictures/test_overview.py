"""A tiled array at scale: tiles, their order, the ragged edge, what is seen from near; memory in its order."""

from __future__ import annotations

import itertools

import pytest

from layoutproof.pictures.drawing import PADDING, Bar, CellGrid, Drawing
from layoutproof.pictures.elements import plane_of
from layoutproof.pictures.overview import at_scale, memory_grid, tile_grid
from layoutproof.pictures.scene import scene_of
from layoutproof.pictures.svg import svg_text
from layoutproof.pictures.terminal import terminal_text
from layoutproof.questions.evaluate import locate, table

LARGE = "bf16[4096,11008]{1,0:T(8,128)(2,1)}"
RAGGED = "bf16[4100,11000]{1,0:T(8,128)(2,1)}"


def overview(layout: str) -> Drawing:
    drawn = at_scale(layout)
    assert drawn is not None
    return drawn


def test_tiles_instead_of_millions_of_cells() -> None:
    """512 x 86 tiles, of which the first and the last are drawn, each with its number in memory."""
    tiles = overview(LARGE).panels[0]
    assert isinstance(tiles, CellGrid)
    assert (tiles.rows, tiles.columns) == (512, 86)
    assert tiles.row_labels == ("0", "8", "16", "24", "32", "40", "4072", "4080", "4088")
    assert tiles.column_labels[-1] == str(85 * 128)
    assert tiles.cells[0][0].text == "0"
    assert tiles.cells[1][0].text == "86"
    assert tiles.cells[-1][-1].text == str(512 * 86 - 1)
    assert not [cell for row in tiles.cells for cell in row if cell.mark]


def test_the_order_of_tiles_is_that_of_memory() -> None:
    """Also where the first dimension is the fastest: a number is the offset of a tile's first element by its size."""
    for layout in (RAGGED, "f32[64,512]{0,1:T(8,128)}", "f32[3,40,300]{2,1,0:T(8,128)}"):
        plane = plane_of(layout)
        tiles = tile_grid(plane)
        size = plane.row.run() * plane.column.run()
        for i, row in zip(tiles.row_labels, tiles.cells, strict=True):
            for j, cell in zip(tiles.column_labels, row, strict=True):
                at = plane.index(int(i), int(j))
                assert int(cell.text) == locate(layout, at)[0]["offset"] // size, (layout, at)


def test_the_ragged_edge_is_hatched() -> None:
    """Of the last row of tiles 4 of 8 rows are there, of the last column 120 of 128 columns; nothing else is cut."""
    tiles = overview(RAGGED).panels[0]
    assert isinstance(tiles, CellGrid)
    assert {cell.inside for cell in tiles.cells[-1][:-1]} == {(0.5, 1.0)}
    assert {row[-1].inside for row in tiles.cells[:-1]} == {(1.0, 120 / 128)}
    assert tiles.cells[-1][-1].inside == (0.5, 120 / 128)
    for row in tiles.cells:
        for cell in row:
            assert (cell.mark == "ragged") == (cell.inside != (1.0, 1.0))
    beyond = scene_of(overview(RAGGED)).boxes("beyond")
    whole = scene_of(overview(RAGGED)).boxes("")[0]
    assert {round(box.width / whole.width, 4) for box in beyond if box.height == whole.height} >= {round(8 / 128, 4)}
    assert len(beyond) == 9 + 9 + 1  # the last row, the last column, the legend


def test_the_first_and_the_last_tile_from_near() -> None:
    """Their elements have their own offsets; what of the last tile is padding shows as padding."""
    first, last = overview(RAGGED).panels[2:]
    assert isinstance(first, CellGrid)
    assert isinstance(last, CellGrid)
    assert [cell.text for cell in first.cells[1]] == ["1", "3", "5", "7", "9", "11", "251", "253", "255"]
    assert last.row_labels == ("4096", "4097", "4098", "4099", "", "", "", "")
    for i, row in zip(last.row_labels, last.cells, strict=True):
        for j, cell in zip(last.column_labels, row, strict=True):
            if not i or not j:
                assert cell == PADDING
            else:
                assert cell.text == str(locate(RAGGED, (int(i), int(j)))[0]["offset"])


def test_the_bar_of_memory_adds_up() -> None:
    """Elements and padding together are what is allotted, in bytes."""
    bar = overview(RAGGED).panels[1]
    assert isinstance(bar, Bar)
    assert [(part.size, part.mark) for part in bar.segments] == [(90_200_000, ""), (153_664, "padding")]


def test_it_is_small_and_fits() -> None:
    """A picture of 45 million elements has a few hundred cells, in the terminal no line is too long."""
    assert len(svg_text(overview(LARGE))) < 25_000
    assert max(map(len, terminal_text(overview(LARGE), 80).splitlines())) <= 80
    scene = scene_of(overview(LARGE))
    assert max(box.x + box.width for box in scene.boxes()) <= scene.width


@pytest.mark.parametrize("layout", ["f32[3,5]{1,0:T(2,2)}", "f32[4096,11008]{1,0}", "f32[5]{0:T(3)(2)}"])
def test_what_is_small_or_has_no_tiles_has_no_overview(layout: str) -> None:
    """Those are drawn element by element."""
    assert at_scale(layout) is None


@pytest.mark.parametrize(
    "layout",
    ["f32[3,5]{1,0:T(2,2)}", "bf16[3,5]{1,0:T(2,4)(2,1)}", "f32[3,5]{0,1:T(2,2)}", "bf16[9,17]{1,0:T(4,8)(2,1)}"],
)
def test_memory_in_its_order(layout: str) -> None:
    """Each place of memory once, in order, with the index that `table` puts there; all else is padding."""
    memory = memory_grid(plane_of(layout))
    assert memory is not None
    places = list(itertools.chain.from_iterable(memory.cells))
    offsets = table(layout)
    held = {int(offsets[index]): ",".join(map(str, index)) for index in itertools.product(*map(range, offsets.shape))}
    assert [cell.text for cell in places] == [held.get(k, "") for k in range(len(places))]
    assert len([cell for cell in places if cell == PADDING]) == len(places) - len(held)


def test_frames_of_the_second_level() -> None:
    """A line stands where another tile of the second level begins, every two places of a (2,1)."""
    memory = memory_grid(plane_of("bf16[3,5]{1,0:T(2,4)(2,1)}"))
    assert memory is not None
    assert memory.column_breaks == {2, 4, 6}
    assert memory.row_breaks == {1, 2, 3}
