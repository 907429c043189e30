"""The figures of the documents that the project started from, drawn by the tool, number for number.

The numbers below are those of the documents: XLA's page on tiled layouts, JAX's page on grids and BlockSpecs. The Axe
paper's four layouts are in test_owners.py.
"""

from __future__ import annotations

import numpy as np
import pytest

import layoutproof as lp
from layoutproof.pictures.drawing import CellGrid, Drawing
from layoutproof.pictures.elements import plane_of
from layoutproof.pictures.overview import tile_grid
from layoutproof.pictures.programs import program_grid
from layoutproof.pictures.scene import scene_of
from layoutproof.pictures.subjects import drawing_of
from layoutproof.questions.programs import programs_of


def grids(drawing: Drawing) -> list[CellGrid]:
    return [panel for panel in drawing.panels if isinstance(panel, CellGrid)]


def numbers(text: str) -> list[list[str]]:
    return [line.split() for line in text.strip().splitlines()]


def texts(grid: CellGrid) -> list[list[str]]:
    return [[cell.shown for cell in row] for row in grid.cells]


def test_figure_1_of_tiled_layouts() -> None:
    """F32[3,5] in tiles of 2x2: the array with its padding, and memory as the page writes it, a tile in each row."""
    array, memory = grids(drawing_of("f32[3,5]{1,0:T(2,2)}"))
    assert texts(array) == numbers(
        """
         0  1   4  5   8  .
         2  3   6  7  10  .
        12 13  16 17  20  .
         .  .   .  .   .  .
        """
    )
    assert (array.row_breaks, array.column_breaks) == ({2}, {2, 4})
    assert texts(memory) == numbers(
        """
        0,0 0,1 1,0 1,1
        0,2 0,3 1,2 1,3
        0,4  .  1,4  .
        2,0 2,1  .   .
        2,2 2,3  .   .
        2,4  .   .   .
        """
    )
    # an element has its tile's colour in both
    colours = {cell.text: cell.colour for row in memory.cells for cell in row if cell.text}
    for i in range(3):
        for j in range(5):
            assert array.cells[i][j].colour == colours[f"{i},{j}"]
    assert len(scene_of(drawing_of("f32[3,5]{1,0:T(2,2)}")).boxes("padding")) == 9 + 9 + 1


def test_figure_2_of_tiled_layouts() -> None:
    """Tiles in tiles, (2,4)(2,1): two rows of a column beside each other, a line in memory before each pair."""
    array, memory = grids(drawing_of("bf16[4,8]{1,0:T(2,4)(2,1)}"))
    assert texts(array) == numbers(
        """
         0  2  4  6    8 10 12 14
         1  3  5  7    9 11 13 15
        16 18 20 22   24 26 28 30
        17 19 21 23   25 27 29 31
        """
    )
    assert (array.row_breaks, array.column_breaks) == ({2}, {4})
    assert [cell.text for cell in memory.cells[0]] == ["0,0", "1,0", "0,1", "1,1", "0,2", "1,2", "0,3", "1,3"]
    assert memory.column_breaks == {2, 4, 6}


def test_combined_dimensions() -> None:
    """[2,7,8,11,10] in tiles (*,*,2,*,3) is drawn as [112,110] in tiles (2,3), tile by tile."""
    combined = tile_grid(plane_of("f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}"))
    plain = tile_grid(plane_of("f32[112,110]{1,0:T(2,3)}"))
    assert texts(combined) == texts(plain)
    assert (combined.rows, combined.columns) == (plain.rows, plain.columns) == (56, 37)
    assert (combined.row_labels, combined.column_labels) == (plain.row_labels, plain.column_labels)
    assert combined.axes == ("(i,j,k)", "(l,m)")
    # 110 columns are 36 tiles of three and two columns of one more
    assert {row[-1].inside for row in combined.cells} == {(1.0, 2 / 3)}


TABLES = [
    ("s32[8,6] blockspec (2, 3) (i, j) -> (i, j) grid (4, 2) out", (8, 6), (2, 3), lambda i, j: 10 * i + j),
    ("s32[7,5] blockspec (2, 3) (i, j) -> (i, j) grid (4, 2) out", (7, 5), (2, 3), lambda i, j: 10 * i + j),
    ("s32[1,2] blockspec (2, 3) (i, j) -> (i, j) grid (1, 1) out", (1, 2), (2, 3), lambda i, j: 0),
    (
        "s32[8,6] blockspec (2, 3) (i, j, k) -> (i, j) grid (4, 2, 10) out",
        (8, 6),
        (2, 3),
        lambda i, j: 100 * i + 10 * j + 9,
    ),
    ("s32[3,4] blockspec (None, 2) (i, j) -> (i, j) grid (3, 2) out", (3, 4), (1, 2), lambda i, j: 10 * i + j),
    ("s32[4,4] blockspec (4, 4) (i, j) -> (0, 0) grid (2, 3) out", (4, 4), (4, 4), lambda i, j: 12),
]


@pytest.mark.parametrize(("kernel", "shape", "block", "index"), TABLES, ids=[k for k, *_ in TABLES])
def test_tables_of_show_program_ids(kernel: str, shape: tuple[int, int], block: tuple[int, int], index: object) -> None:
    """Every number of the page's tables, by a loop of our own; lines and colours stand where blocks begin."""
    (table,) = grids(program_grid(programs_of(lp.read_layout(kernel))))
    expected = [[str(index(i // block[0], j // block[1])) for j in range(shape[1])] for i in range(shape[0])]  # type: ignore[operator]
    assert texts(table) == expected
    assert table.row_breaks == set(range(block[0], shape[0], block[0]))
    assert table.column_breaks == set(range(block[1], shape[1], block[1]))
    for i, row in enumerate(table.cells):
        for j, cell in enumerate(row):
            assert cell.colour == 2 * (i // block[0] % 2) + j // block[1] % 2


def test_the_table_of_a_padded_array() -> None:
    """The page's last one: one row and two columns of padding before the array, windows of 2x3."""
    layout = {
        "blockspec": {
            "array": "s32[7,7]",
            "block": ["Element(2, (1, 0))", "Element(3, (2, 0))"],
            "index": "(i, j) -> (2 * i, 3 * j)",
            "grid": [4, 3],
            "role": "out",
        }
    }
    (table,) = grids(program_grid(programs_of(lp.read_layout(layout))))
    assert texts(table) == numbers(
        """
         0   1  1  1   2  2  2
        10  11 11 11  12 12 12
        10  11 11 11  12 12 12
        20  21 21 21  22 22 22
        20  21 21 21  22 22 22
        30  31 31 31  32 32 32
        30  31 31 31  32 32 32
        """
    )


def test_the_page_s_grid() -> None:
    """Programs (i, j) of a grid (4, 5) over 100 x 90 in blocks of 10 x 20 would see [20:30, 80:100] at (2, 4)."""
    kernel = "f32[100,90] blockspec (10, 20) (i, j) -> (i, j) grid (10, 5)"
    walk, *_ = grids(drawing_of(kernel))
    assert walk.row_labels[2] == "20:30"
    assert walk.column_labels[4] == "80:100"
    assert walk.cells[2][4].text == str(2 * 5 + 4)
    assert walk.cells[2][4].inside == (1.0, 0.5)
    steps = np.array([[int(cell.text) for cell in row] for row in walk.cells])
    assert np.array_equal(steps, np.arange(50).reshape(10, 5))
