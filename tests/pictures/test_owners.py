"""Owners drawn: devices of shardings, lanes of Axe layouts, threads of CuTe and Triton layouts, banks of swizzles."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.pictures.drawing import Cell, CellGrid, Drawing
from layoutproof.pictures.palette import distinct, fill
from layoutproof.pictures.subjects import drawing_of
from layoutproof.pictures.terminal import terminal_text
from layoutproof.questions.evaluate import locate

pytestmark = pytest.mark.slow

FIG2 = "S[(8,2,4,2):(4@lane,1@warp,1@lane,1@reg)] + R[2:4@warp] + 5@warp on (8,16)"


def grids(drawing: Drawing) -> list[CellGrid]:
    return [panel for panel in drawing.panels if isinstance(panel, CellGrid)]


def texts(grid: CellGrid) -> list[list[str]]:
    return [[cell.text for cell in row] for row in grid.cells]


def test_a_sharding_as_boxes() -> None:
    """Each shard is one box with its device; replicas stand together."""
    (boxes,) = grids(drawing_of("f32[64,128] sharded {devices=[2,2]<=[4]}"))
    assert texts(boxes) == [["0", "1"], ["2", "3"]]
    assert boxes.row_labels == ("0:32", "32:64")
    assert len({cell.colour for row in boxes.cells for cell in row}) == 4
    (replicated,) = grids(drawing_of("f32[8,12] sharded {devices=[2,1,2]<=[4] last_tile_dim_replicate}"))
    assert texts(replicated) == [["0,1"], ["2,3"]]


def test_mesh_axes_and_the_mesh() -> None:
    """The caption names the axes that split each dimension; the mesh has its devices in the colours of their shards."""
    boxes, mesh = grids(drawing_of("f32[7,12] sharded {mesh['x'=2,'y'=2], [{'y'}, {'x'}]}"))
    assert "i by 'y', j by 'x'" in boxes.caption
    assert texts(boxes) == [["0", "2"], ["1", "3"]]
    assert {cell.inside for cell in boxes.cells[1]} == {(0.75, 1.0)}
    assert mesh.axes == ("x", "y")
    assert texts(mesh) == [["0", "1"], ["2", "3"]]
    colours = {cell.text: cell.colour for row in mesh.cells for cell in row}
    for row in boxes.cells:
        for cell in row:
            assert colours[cell.text] == cell.colour


@pytest.mark.parametrize(
    "layout",
    [
        "f32[10,12] sharded {mesh['x'=2,'y'=2], [{'x'}, {}]}",
        "f32[5,4] sharded {devices=[4,1]<=[4]}",
        "f32[9,6] sharded {devices=[3,2]<=[2,3]T(1,0)}",
    ],
)
def test_boxes_say_what_locate_says(layout: str) -> None:
    """Every element of a box is on the devices that the box names."""
    boxes = grids(drawing_of(layout))[0]
    for rows, line in zip(boxes.row_labels, boxes.cells, strict=True):
        for columns, cell in zip(boxes.column_labels, line, strict=True):
            if cell.mark == "padding":
                continue
            spans = [range(*map(int, label.split(":"))) for label in (rows, columns)]
            for index in itertools.product(*spans):
                assert cell.text == ",".join(str(place["device"]) for place in locate(layout, index))


def test_shards_that_touch_differ_in_colour() -> None:
    """Of 256 shards, more than there are colours, no two that touch look alike, also at a corner."""
    (boxes,) = grids(drawing_of("f32[8192,8192] sharded {devices=[16,16]<=[256]}"))
    fills = [[fill(cell.colour or 0) for cell in row] for row in boxes.cells]
    for i, j, di, dj in itertools.product(range(15), range(1, 15), (0, 1), (-1, 0, 1)):
        assert (di, dj) == (0, 0) or fills[i][j] != fills[i + di][j + dj]


def test_the_axe_figure() -> None:
    """Fig. 2 of the paper: lanes by colour, both replicas in one cell, (2, 9) in lane 8 of warps 6 and 10."""
    drawing = drawing_of(FIG2)
    (cells,) = grids(drawing)
    assert cells.cells[2][9].text == "8,6|10,1"
    for i, j in itertools.product(range(8), range(16)):
        assert cells.cells[i][j].text == f"{4 * i + j // 2 % 4},{5 + j // 8}|{9 + j // 8},{j % 2}"
    assert cells.cells[0][0].colour == cells.cells[0][1].colour
    assert cells.cells[0][0].colour != cells.cells[0][2].colour
    assert "2 replicas, joined by |" in terminal_text(drawing)
    assert "first of" not in terminal_text(drawing)


def test_a_large_axe_layout_as_boxes() -> None:
    """The other three of the paper's examples: four GPUs, SBUF's partitions, tensor memory's lanes."""
    (mesh,) = grids(drawing_of("S[(2,32,2,64):(1@gpuid,128@m,2@gpuid,1@m)] on (64,128)"))
    assert texts(mesh) == [["0,0..4031", "2,0..4031"], ["1,0..4031", "3,0..4031"]]
    assert (mesh.row_labels, mesh.column_labels) == (("0:32", "32:64"), ("0:64", "64:128"))
    assert len({cell.colour for row in mesh.cells for cell in row}) == 4
    (sbuf,) = grids(drawing_of("S[(2,128,512):(512@F,1@P,1@F)] on (256,512)"))
    assert texts(sbuf) == [["0..511,0..127"], ["512..1023,0..127"]]
    (lanes,) = grids(drawing_of("S[(2,128,112):(112@Col,1@Lane,1@Col)] on (256,112)"))
    assert texts(lanes) == [["0..111,0..127"], ["112..223,0..127"]]
    assert lanes.row_labels == ("0:128", "128:256")


@pytest.mark.parametrize(
    "layout",
    [
        "S[(2,32,2,64):(1@gpuid,128@m,2@gpuid,1@m)] on (64,128)",
        "S[(2,24,2,32):(4@a,-1@m,1@b,32@m)] + R[2:8@a] + 40@m on (48,64)",
        "S[(4,1024):(1@x,3@m)] on (4096)",
    ],
)
def test_boxes_say_what_locate_says_of_axe(layout: str) -> None:
    """What a box reaches on each axis is what its elements reach, one by one, over all replicas."""
    drawing = drawing_of(layout)
    (boxes,) = grids(drawing)
    for rows, line in zip(boxes.row_labels, boxes.cells, strict=True):
        for columns, cell in zip(boxes.column_labels, line, strict=True):
            spans = [range(*map(int, label.split(":"))) for label in (rows, columns) if label]
            places = [locate(layout, index) for index in itertools.product(*spans)]
            said = []
            for replica in range(len(places[0])):
                seen = [sorted({place[replica][axis] for place in places}) for axis in places[0][0]]
                said.append(",".join(str(v[0]) if len(v) == 1 else f"{v[0]}..{v[-1]}" for v in seen))
            assert cell.text == " | ".join(said)


def test_a_thread_value_layout_from_the_side_of_the_data() -> None:
    """Each place of `((4,8),(2,2)):((32,1),(16,8))` has the thread and value that CuTe's map sends there."""
    layout = "((4,8),(2,2)):((32,1),(16,8))"
    _, data = grids(drawing_of(layout))
    assert (len(data.cells), len(data.cells[0])) == (8, 16)
    for thread, value in itertools.product(range(32), range(4)):
        offset = locate(layout, (thread, value))[0]["offset"]
        assert data.cells[offset // 16][offset % 16] == Cell(f"{thread},{value}", distinct(thread))


def test_a_linear_layout_joins_its_replicas() -> None:
    """A lane bit that moves nothing makes replicas: both lanes stand in the cell."""
    value: Any = {"linear": {"in": {"register": [[0, 1]], "lane": [[1, 0], [0, 0]]}, "out": ["dim0", "dim1"]}}
    _, data = grids(drawing_of(lp.read_layout(value)))
    assert texts(data) == [["0,0|0,2", "1,0|1,2"], ["0,1|0,3", "1,1|1,3"]]


@pytest.mark.parametrize("layout", ["S[(8,64):(64,1)] swizzle (3,3,3) on (8,64)", "bf16 Sw<3,3,3> o 0 o (8,64):(64,1)"])
def test_banks_before_and_after(layout: str) -> None:
    """Column 0 lies in one bank before the swizzle and in eight after it: 0, 4, .., 28."""
    drawing = drawing_of(layout)
    before, after = grids(drawing)
    assert drawing.across
    assert [row[0].text for row in before.cells] == ["0"] * 8
    assert [row[0].text for row in after.cells] == ["0", "4", "8", "12", "16", "20", "24", "28"]
    assert {cell.colour for cell in (row[0] for row in before.cells)} == {0}
    assert {cell.colour for cell in (row[0] for row in after.cells)} == set(range(8))
    assert "take 8 turns" in before.caption
    assert "take 1 turn" in after.caption
    assert "take 8 turns" in terminal_text(drawing, 120).splitlines()[4]
    assert "take 1 turn" in terminal_text(drawing, 120).splitlines()[4]


def test_strides_that_collide_are_marked() -> None:
    """(0,4) and (1,0) share offset 4, (1,4) and (2,0) offset 8; no other element is marked, and no good stride."""
    (cells,) = grids(drawing_of("f32[3,5] strides (4,1)"))
    marked = {(i, j) for i, row in enumerate(cells.cells) for j, cell in enumerate(row) if cell.mark == "shared"}
    assert marked == {(0, 4), (1, 0), (1, 4), (2, 0)}
    (good,) = grids(drawing_of("f32[3,5] strides (5,1)"))
    assert {cell.mark for row in good.cells for cell in row} == {""}
