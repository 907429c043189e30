"""Kernels drawn: which step sees which block, what is moved when, what lies outside, what memory must hold."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.core.errors import LayoutError
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.judge import kernel_target
from layoutproof.pictures.drawing import Bar, Cell, CellGrid, Drawing, grid
from layoutproof.pictures.kernels import kernel_drawing, walk
from layoutproof.pictures.scene import LETTER, Label, scene_of
from layoutproof.pictures.terminal import terminal_text

MATMUL: dict[str, Any] = {
    "kernel": {
        "grid": {"i": 3, "j": 2, "k": 2},
        "inputs": [
            {"name": "x", "array": "bf16[40,256]", "block": [16, 128], "index": "(i, j, k) -> (i, k)"},
            {"name": "y", "array": "bf16[256,200]", "block": [128, 128], "index": "(i, j, k) -> (k, j)"},
        ],
        "outputs": [{"name": "o", "array": "f32[40,200]", "block": [16, 128], "index": "(i, j, k) -> (i, j)"}],
        "scratch": [{"array": "f32[16,128]"}],
    }
}


def kernel(value: object) -> Kernel:
    found = lp.read_layout(value).kernel  # type: ignore[attr-defined]
    assert isinstance(found, Kernel)
    return found


def grids(drawing: Drawing) -> list[CellGrid]:
    return [panel for panel in drawing.panels if isinstance(panel, CellGrid)]


def texts(grid: CellGrid) -> list[list[str]]:
    return [[cell.text for cell in row] for row in grid.cells]


def test_the_walk_of_each_operand() -> None:
    """Every cell names the steps that a literal loop over the grid finds there."""
    x, y, o, _ = grids(kernel_drawing(kernel(MATMUL)))
    assert texts(x) == [["0,2", "1,3"], ["4,6", "5,7"], ["8,10", "9,11"]]
    assert texts(y) == [["0,4,8", "2,6,10"], ["1,5,9", "3,7,11"]]
    assert texts(o) == [["0-1", "2-3"], ["4-5", "6-7"], ["8-9", "10-11"]]
    found: dict[tuple[int, int], list[int]] = {}
    for step, (i, _j, k) in enumerate(itertools.product(range(3), range(2), range(2))):
        found.setdefault((i, k), []).append(step)
    assert {at: ",".join(map(str, steps)) for at, steps in found.items()} == {
        (r, c): x.cells[r][c].text for r in range(3) for c in range(2)
    }
    assert x.row_labels == ("0:16", "16:32", "32:48")
    assert y.column_labels == ("0:128", "128:256")


def test_the_ragged_edge_of_blocks() -> None:
    """8 of the last 16 rows and 72 of the last 128 columns are in the array; the rest of the block is hatched."""
    x, y, o, _ = grids(kernel_drawing(kernel(MATMUL)))
    assert {cell.inside for cell in x.cells[2]} == {(0.5, 1.0)}
    assert {row[1].inside for row in y.cells} == {(1.0, 72 / 128)}
    assert o.cells[2][1].inside == (0.5, 72 / 128)
    assert o.cells[0][0].inside == (1.0, 1.0)
    assert o.cells[0][0].mark == ""
    assert o.cells[2][1].mark == "ragged"


def test_the_steps_stand_beside_the_hatching() -> None:
    """Where half of a block is there and the text fits into it, nothing is written on the hatching."""
    blocks = grid(((Cell("12", 0, "ragged", (1.0, 0.5)),),), columns=("128:256",))
    scene = scene_of(Drawing("", (), (blocks,)))
    (text,) = [shape for shape in scene.shapes if isinstance(shape, Label) and shape.text == "12"]
    assert text.x + LETTER <= scene.boxes("beyond")[0].x


def test_moves_and_what_is_brought_again() -> None:
    """A block stays while the index does; inputs come before a step, outputs leave after it."""
    drawing = kernel_drawing(kernel(MATMUL))
    x, _, o, time = grids(drawing)
    assert walk(kernel(MATMUL), kernel(MATMUL).operands[0]).again() == 6
    assert "6 moves bring a block that was there before" in x.caption
    assert "moves" not in o.caption
    assert time.row_labels == ("x in", "y in", "o out")
    assert time.column_labels[:3] == ("0,0,0", "0,0,1", "0,1,0")
    moved = [[cell.mark == "moved" for cell in row] for row in time.cells]
    assert moved[0] == [True] * 12
    assert moved[2] == [False, True] * 6
    assert [cell.text for cell in time.cells[2]][:4] == ["0,0", "0,0", "0,128", "0,128"]


def test_what_is_outside_and_what_nobody_writes() -> None:
    """Blocks past the end are red, blocks of an output without a program are holes."""
    drawing = kernel_drawing(kernel("s32[3,4] blockspec (1, 2) (i, j) -> (i + 1, 0) grid (4, 2) out"))
    blocks, _ = grids(drawing)
    assert texts(blocks) == [["", ""], ["0-1", ""], ["2-3", ""], ["4-5", ""], ["6-7", ""]]
    assert [[cell.mark for cell in row] for row in blocks.cells] == [
        ["hole", "hole"],
        ["", "hole"],
        ["", "hole"],
        ["outside", "outside"],
        ["outside", "outside"],
    ]
    shown = terminal_text(drawing)
    assert "! the whole block lies outside of the array" in shown
    assert "o no program writes this block" in shown
    assert len(scene_of(drawing).boxes("outside")) == 4 + 1


def test_an_input_that_nobody_reads_is_no_hole() -> None:
    """Only an output must be written everywhere."""
    blocks, _ = grids(kernel_drawing(kernel("s32[4] blockspec (1,) (i) -> (0,) grid (2,)")))
    assert {cell.mark for row in blocks.cells for cell in row} == {""}


@pytest.mark.parametrize(("last", "marked"), [(6, ["hole"] * 2), (7, ["ragged"] * 2), (5, [""] * 2)])
def test_the_last_block_of_an_input_that_alone_is_not_read(last: int, marked: list[str]) -> None:
    """It is marked, and the legend says what that means; where more is left out, the kernel may need no more."""
    layout = f"f32[1000,512] blockspec (128, 256) (i, j) -> (min(i, {last}), j) grid (8, 2)"
    drawing = kernel_drawing(kernel(layout))
    blocks, _ = grids(drawing)
    assert [cell.mark for cell in blocks.cells[-1]] == marked
    assert {cell.mark for row in blocks.cells[:-1] for cell in row} == {""}
    assert ("o no program reads this block" in terminal_text(drawing)) is ("hole" in marked)


@pytest.mark.parametrize("grid", [(2, 3), (3, 2)])
def test_blocks_of_elements_overlap(grid: tuple[int, int]) -> None:
    """Of Element blocks the rows are the windows that programs see, padding below 0 included."""
    layout = {
        "blockspec": {
            "array": "f32[7]",
            "block": ["Element(3, (1, 1))"],
            "index": "(i, j) -> (i * 2,)",
            "grid": list(grid),
        }
    }
    blocks, _ = grids(kernel_drawing(kernel(layout)))
    starts = [2 * i - 1 for i in range(grid[0])]
    assert blocks.column_labels == tuple(f"{start}:{start + 3}" for start in starts)
    assert blocks.cells[0][0].mark == "ragged"


def test_memory_as_a_bar() -> None:
    """The parts are those of `memory_budget`, the largest first, and the limit is drawn where it is in sight."""
    drawing = kernel_drawing(kernel(MATMUL), kernel_target("v5e"))
    (bar,) = [panel for panel in drawing.panels if isinstance(panel, Bar)]
    assert [part.size for part in bar.segments] == [65536, 16384, 8192, 8192]
    assert bar.total() == 98304
    assert bar.limit == 16 * 2**20
    assert "98304 of 16777216 bytes (0.586 %)" in bar.verdict()
    assert [shape for shape in scene_of(drawing).shapes if getattr(shape, "kind", "") == "limit"] == []
    widths = [box.width for box in scene_of(Drawing("", (), (bar,))).boxes()]
    assert [round(width / sum(widths), 3) for width in widths] == [0.667, 0.167, 0.083, 0.083]


def test_a_bar_over_its_limit_shows_the_line() -> None:
    """The line stands at the limit's share of the width."""
    large = {"blockspec": {"array": "f32[4096,4096]", "block": [2048, 2048], "index": "(i) -> (i, 0)", "grid": [2]}}
    drawing = kernel_drawing(kernel(large), kernel_target("v5e"))
    scene = scene_of(drawing)
    (line,) = [shape for shape in scene.shapes if getattr(shape, "kind", "") == "limit"]
    (part,) = [box for box in scene.boxes() if box.height == 28]
    assert round((line.x1 - part.x) / part.width, 3) == 0.5  # type: ignore[union-attr]


def test_a_long_grid_shows_both_ends() -> None:
    """Of 1,000 blocks the first and the last are drawn, of 1,000 steps the first; the picture says so."""
    drawing = kernel_drawing(kernel("f32[8000,128] blockspec (8, 128) (i) -> (i, 0) grid (1000,)"))
    blocks, time = grids(drawing)
    assert (blocks.rows, len(blocks.cells)) == (1000, 14)
    assert blocks.row_labels[-1] == "7992:8000"
    assert (time.columns, len(time.cells[0])) == (1000, 12)
    assert 12 in time.column_gaps


def test_steps_that_are_not_walked_make_no_holes() -> None:
    """Of a grid that is too long to walk, the blocks of later steps are not called unwritten."""
    text = "f32[320000] blockspec (8,) (i) -> (i,) grid (40000,) out"
    blocks, _ = grids(kernel_drawing(kernel(text)))
    assert {cell.mark for row in blocks.cells for cell in row} == {""}
    assert any("only 20000 steps are drawn" in fact for fact in kernel_drawing(kernel(text)).facts)
    shorter, _ = grids(kernel_drawing(kernel("f32[320] blockspec (8,) (i) -> (i,) grid (39,) out")))
    assert [cell.mark for cell in shorter.cells[0]] == [""] * 13 + ["hole"]


def test_sizes_without_a_value_get_a_small_one() -> None:
    """Three programs along each dimension: the last one is ragged, and the picture says so."""
    drawing = kernel_drawing(kernel("f32[N,M] blockspec (8, 128) (i, j) -> (i, j) grid (cdiv(N, 8), cdiv(M, 128))"))
    blocks, _ = grids(drawing)
    assert "drawn for N = 257, M = 257: sizes have no value" in drawing.facts
    assert blocks.column_labels == ("0:128", "128:256", "256:384")
    assert blocks.cells[-1][-1].inside == (0.125, 1 / 128)
    large = kernel_drawing(kernel("f32[N] blockspec (4096,) (i) -> (i,) grid (cdiv(N, 4096),)"))
    assert "drawn for N = 8193: sizes have no value" in large.facts
    with pytest.raises(LayoutError, match="no small one draws the kernel"):
        kernel_drawing(kernel("f32[N] blockspec (8,) (i) -> (i,) grid (N // 100000,)"))


def test_tables_are_said_and_the_rest_is_drawn() -> None:
    """An operand whose blocks a table chooses is named with the reason; the others are drawn."""
    value = {
        "kernel": {
            "grid": {"i": 4},
            "tables": {"t": {"array": "s32[4]"}},
            "inputs": [{"name": "x", "array": "f32[32,128]", "block": [8, 128], "index": "(i) -> (t[i], 0)"}],
            "outputs": [{"name": "o", "array": "f32[32,128]", "block": [8, 128], "index": "(i) -> (i, 0)"}],
        }
    }
    drawing = kernel_drawing(kernel(value))
    assert len(grids(drawing)) == 2
    (said,) = [fact for fact in drawing.facts if fact.startswith("x is not drawn")]
    assert "what t holds" in said


def test_show_draws_a_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    """On the command line: the walk, and with a target what its memory holds."""
    from layoutproof.cli import main as cli

    assert cli.run(["show", "f32[40,128] blockspec (16, 128) (i) -> (i, 0) grid (3,)", "--target", "v5e"]) == 0
    out = capsys.readouterr().out
    assert "dim0= 0:16       0" in out
    assert "~ partly past the array's edge" in out
    assert "VMEM: windows + scratch = 16384 of 16777216 bytes" in out
    assert "first of" not in out
