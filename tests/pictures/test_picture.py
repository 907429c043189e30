"""Pictures show every element at its index with its offset, and padding where it is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from math import prod
from pathlib import Path

import pytest
from hypothesis import given

from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import IndexMap
from layoutproof.core.space import Space
from layoutproof.layouts.xla.shape import XlaLayout
from layoutproof.pictures.drawing import CellGrid
from layoutproof.pictures.elements import element_grid, plane_of
from layoutproof.pictures.palette import FILLS
from layoutproof.pictures.picture import png_bytes, svg_picture, text_picture
from layoutproof.pictures.scene import scene_of
from layoutproof.pictures.subjects import drawing_of
from layoutproof.questions.evaluate import table
from tests.hangs import HANGS
from tests.questions.layouts_at_random import xla_layouts

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")

TILED = """\
bf16[3,5]{1,0:T(2,4)(2,1)}
3 x 5, padded to 4 x 8
15 elements, 17 padding (53.1 %); 30 bytes unpadded, 64 bytes allotted
cells show offsets in elements

the array as it is indexed
 j=    0  1  2  3    4
i=0    0  2  4  6 │  8  .  .  .
  1    1  3  5  7 │  9  .  .  .
     ─────────────┼────────────
  2   16 18 20 22 │ 24  .  .  .
       .  .  .  . │  .  .  .  .

memory in its order, a row for each tile of 8 places; a cell is the index that lies there; lines are
  where another tile of 2 places begins
        +     0   1     2   3     4   5     6   7
offset= 0   0,0 1,0 │ 0,1 1,1 │ 0,2 1,2 │ 0,3 1,3
           ─────────┼─────────┼─────────┼────────
        8   0,4 1,4 │   .   . │   .   . │   .   .
           ─────────┼─────────┼─────────┼────────
       16   2,0   . │ 2,1   . │ 2,2   . │ 2,3   .
           ─────────┼─────────┼─────────┼────────
       24   2,4   . │   .   . │   .   . │   .   ."""


def whole_grid(layout: object) -> CellGrid:
    """Every position of the two dimensions that are drawn."""
    plane = plane_of(layout)
    return element_grid(plane, range(plane.row.count()), range(plane.column.count()))


def test_a_tiled_array() -> None:
    """Tiles apart, offsets at their indices, padding as dots, the numbers of padding and bytes above."""
    assert text_picture("bf16[3,5]{1,0:T(2,4)(2,1)}") == TILED


def test_interior_padding_is_shown_inside() -> None:
    """A later tile that pads an earlier one leaves holes between elements, not at the end."""
    assert text_picture("f32[5]{0:T(3)(2)}").splitlines()[6].split() == ["0", "1", "2", ".", "│", "4", "5", ".", "."]


def test_rows_are_the_lower_dimension_whatever_the_order() -> None:
    """A column-major layout is drawn as the array is indexed; only the offsets change."""
    shown = text_picture("f32[3,5]{0,1:T(2,2)}")
    assert "i=0    0  2 │  8 10 │ 16  ." in shown


def test_a_tile_of_higher_rank_pads_rows_that_no_index_has() -> None:
    """f32[3]{0:T(2,4)} is one row of three elements in a tile of two rows."""
    assert text_picture("f32[3]{0:T(2,4)}").splitlines()[7:9] == ["     0 1 2 .", "     . . . ."]


def test_scalars_strides_maps_and_empty_arrays() -> None:
    """Layouts without tiles show offsets or coordinates; elements that share a place are marked."""
    assert text_picture("f32[]").splitlines()[-1].split() == ["0"]
    assert "  1   =4  5  6  7 =8" in text_picture("f32[3,5] strides (4,1)")
    assert "15 elements, 13 places" in text_picture("f32[3,5] strides (4,1)")
    assert "  1   0,2 1,2" in text_picture("(i < 2, j < 2) -> (j, i * 2)")
    assert "0 elements, no padding" in text_picture("f32[0,5]{1,0:T(2,2)}")


def test_more_than_two_dimensions_show_the_first_slice_of_the_most_minor_two() -> None:
    """The two dimensions fastest in memory are drawn, and it is said at which index of the others."""
    shown = text_picture("f32[4,3,5]{0,2,1:T(2,2)}")
    assert "first slice: j = 0" in shown
    assert "k=" in shown
    assert "i=0" in shown


def test_replicas_are_said() -> None:
    """Of several replicas the first is drawn, and the picture says so."""
    m = IndexMap(Space(("i",), (2,)), Space(("lane",), (4,)), lambda x, c, _: (x[0] + 2 * c[0],), Space(("r",), (2,)))
    assert "first of 2 replicas" in text_picture(m)


def test_cutting() -> None:
    """A long row is cut at the width, and the picture says how much is missing."""
    lines = text_picture("bf16[4,300]{1,0}", width=60).splitlines()
    assert max(map(len, lines)) <= 60
    assert [line.endswith("…") for line in lines].count(True) == 4
    assert lines[-1].startswith("showing 4 of 4 rows, ")


@pytest.mark.parametrize("width", [20, 33, 80, 200])
@pytest.mark.parametrize("layout", ["f32[30,300]{1,0:T(8,128)}", "f32[7,300]{1,0:T(2,2)}", "f32[3,5]{1,0}"])
def test_no_line_is_wider_than_asked(layout: str, width: int) -> None:
    """No visible line exceeds `width` characters; colours do not change what is visible."""
    plain = text_picture(layout, width)
    assert max(map(len, plain.splitlines())) <= width
    assert ESCAPE.sub("", text_picture(layout, width, color=True)) == plain


def test_adjacent_tiles_differ_in_colour() -> None:
    """Tiles that touch, also at a corner, have different backgrounds; padding has none."""
    grid = whole_grid("f32[5,7]{1,0:T(2,3)}")
    tiles: dict[tuple[int, int], set[int | None]] = {}
    for i in range(5):
        for j in range(7):
            tiles.setdefault((i // 2, j // 3), set()).add(grid.cells[i][j].colour)
    for (r, c), colours in tiles.items():
        assert len(colours) == 1
        for other in ((r, c + 1), (r + 1, c), (r + 1, c + 1), (r + 1, c - 1)):
            assert colours != tiles.get(other)
    assert {cell.colour for row in grid.cells for cell in row if not cell.text} == {None}
    assert "\x1b[48;5;" in text_picture("f32[5,7]{1,0:T(2,3)}", color=True)


@given(xla_layouts(most_rank=2, most_tile_rank=2))
def test_every_element_and_every_padding_place_is_shown_once(layout: XlaLayout) -> None:
    """The whole grid shows each offset once, at the index that its labels name, and one dot per padding place."""
    grid = whole_grid(layout)
    offsets = table(layout)
    shown = [cell.text for row in grid.cells for cell in row]
    assert sorted(text for text in shown if text) == sorted(map(str, offsets.reshape(-1)))
    if not any("not drawn" in fact for fact in plane_of(layout).facts):
        assert len(shown) == layout.index_map().range.count()
    if grid.axes == ("i", "j"):
        for label, row in zip(grid.row_labels, grid.cells, strict=True):
            for other, cell in zip(grid.column_labels, row, strict=True):
                assert cell.text == (str(offsets[int(label), int(other)]) if label and other else "")


@pytest.mark.parametrize("picture", [text_picture, svg_picture, png_bytes])
def test_run_time_sizes_have_no_picture(picture: object) -> None:
    """A size without a value is named in the error."""
    with pytest.raises(LayoutError, match="has the size N"):
        picture("f32[N,5]{1,0:T(2,2)}")  # type: ignore[operator]


def test_svg_shows_the_same() -> None:
    """One coloured box per element with its offset, one hatched box per padding place, and a title."""
    layout = "f32[3,5]{1,0:T(2,2)}"
    root = ET.fromstring(svg_picture(layout))
    assert [e.text for e in root.iter("{http://www.w3.org/2000/svg}title")] == [layout]
    array, memory = drawing_of(layout).panels
    assert isinstance(array, CellGrid)
    assert isinstance(memory, CellGrid)
    scene = scene_of(drawing_of(layout))
    assert len(scene.boxes("")) == 2 * 15
    # 9 places of padding in the array, 9 in memory, one swatch in the legend
    assert len(scene.boxes("padding")) == 9 + 9 + 1
    texts = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    offsets = [str(o) for o in table(layout).reshape(-1)]
    assert [cell.text for row in array.cells for cell in row if cell.text] == offsets
    assert set(offsets) <= set(texts)
    assert not re.search(r"(?:href|src|url)\W+https?:", svg_picture(layout))


def test_svg_escapes_text() -> None:
    """A map's text has `<` and `>` in it, and the SVG stays well-formed."""
    root = ET.fromstring(svg_picture("(i < 3, j < 4) -> (min(i, j), j)"))
    assert root.findtext("{http://www.w3.org/2000/svg}title") == "(i < 3, j < 4) -> (min(i, j), j)"


@pytest.mark.slow
def test_png_is_an_image_that_is_not_blank() -> None:
    """A PNG of at least four colours of tiles."""
    pytest.importorskip("matplotlib")
    import io

    from matplotlib.image import imread

    data = png_bytes("f32[3,5]{1,0:T(2,2)}")
    pixels = imread(io.BytesIO(data), format="png")
    assert prod(pixels.shape[:2]) > 10_000
    colours = {tuple((pixel * 255).round().astype(int)[:3]) for pixel in pixels.reshape(-1, pixels.shape[-1])}
    assert {tuple(bytes.fromhex(fill[1:])) for fill in FILLS[:4]} <= colours


@pytest.mark.slow
@pytest.mark.parametrize("hostile", [b"savefig.dpi: 31\nfont.size: 3\n", b"\xff\x80", None])
def test_a_matplotlibrc_of_the_current_folder_changes_no_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hostile: bytes | None
) -> None:
    """It may be a stranger's: matplotlib reads it when it is imported, and waits for ever where it is a pipe."""
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    layout = "f32[3,5]{1,0:T(2,2)}"
    wanted = png_bytes(layout)
    if hostile is None:
        os.mkfifo("matplotlibrc")
    else:
        Path("matplotlibrc").write_bytes(hostile)
    asked = [sys.executable, "-m", "layoutproof", "show", layout, "--png", "a.png"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=HANGS, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert Path("a.png").read_bytes() == wanted


def test_png_without_matplotlib_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The extra that has matplotlib is named."""
    (tmp_path / "matplotlib.py").write_text("raise ImportError\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(LayoutError, match=re.escape("pip install matplotlib")):
        png_bytes("f32[3,5]{1,0:T(2,2)}")
