"""Counterexamples drawn: what is marked is what the answer names, and what moved is what differs."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.cli import main as cli
from layoutproof.core.finding import Finding, Report
from layoutproof.core.result import Verdict
from layoutproof.formats import render
from layoutproof.pictures.counterexamples import difference, finding_drawing, side, together
from layoutproof.pictures.drawing import CellGrid, Drawing
from layoutproof.pictures.scene import scene_of
from layoutproof.pictures.svg import svg_text
from layoutproof.questions.evaluate import table

KERNEL: dict[str, Any] = {
    "kernel": {
        "grid": {"i": 3, "j": 2},
        "inputs": [{"name": "x", "array": "bf16[40,256]", "block": [16, 128], "index": "(i, j) -> (i, j)"}],
        "outputs": [{"name": "o", "array": "f32[40,300]", "block": [16, 128], "index": "(i, j) -> (i, j + 2)"}],
    }
}


def grids(drawing: Drawing | None) -> list[CellGrid]:
    assert drawing is not None
    return [panel for panel in drawing.panels if isinstance(panel, CellGrid)]


def marked(grid: CellGrid, mark: str = "hit") -> list[tuple[str, str, str]]:
    """(row label, column label, text) of each cell with a mark."""
    return [
        (i, j, cell.text)
        for i, row in zip(grid.row_labels, grid.cells, strict=True)
        for j, cell in zip(grid.column_labels, row, strict=True)
        if cell.mark == mark
    ]


def asked(question: str, *layouts: Any) -> tuple[Finding, list[CellGrid]]:
    finding = lp.ask(question, *layouts)
    return finding, grids(finding_drawing(finding, layouts))


def test_the_two_elements_that_collide() -> None:
    """Both are marked, with the one offset that they share; nothing else is."""
    finding, (cells,) = asked("injective", "f32[3,5] strides (4,1)")
    assert finding.counterexample == {"first": (0, 4), "second": (1, 0)}
    assert marked(cells) == [("0", "4", "4"), ("1", "0", "4")]


def test_elements_far_apart_are_both_shown() -> None:
    """Of a long row what lies between them is left out."""
    _, (cells,) = asked("injective", "f32[4,300] strides (299,1)")
    assert marked(cells) == [("0", "299", "299"), ("1", "0", "299")]
    assert len(cells.column_labels) == 12


def test_sizes_of_the_counterexample() -> None:
    """A layout with a size symbol is drawn with the size that the counterexample has."""
    finding, (cells,) = asked("injective", "f32[N,5] strides (4,1)")
    assert finding.counterexample is not None
    assert finding.counterexample["sizes"] == {"N": 2}
    assert cells.rows == 2
    assert marked(cells) == [("0", "4", "4"), ("1", "0", "4")]


def test_the_hole_in_memory() -> None:
    """`covers` of a padded array: the first place that holds nothing, in memory's own order."""
    finding, (memory,) = asked("covers", "f32[3,5]{1,0:T(2,2)}")
    assert finding.counterexample == {"place": (0, 2, 0, 1)}
    assert marked(memory) == [("8", "1", "hole")]


def test_the_hole_of_a_map() -> None:
    """Of a layout over devices the place is (device, offset)."""
    finding, (places,) = asked("covers", "S[(2,8,2,8):(1@gpuid,16@m,2@gpuid,1@m)] on (16,16)")
    assert finding.counterexample == {"place": (0, 8)}
    assert marked(places) == [("0", "8", "hole")]
    assert len(marked(places, "hole")) == 4 * 120 - 256 - 1


def test_what_moved_where() -> None:
    """Exactly the elements whose offsets differ are marked, on both sides; each side shows its own offset."""
    old, new = "f32[3,5]{1,0}", "f32[3,5]{0,1}"
    drawing = difference(old, new)
    sides = grids(drawing)
    tables = [table(layout) for layout in (old, new)]
    differ = {(str(i), str(j)) for i in range(3) for j in range(5) if tables[0][i, j] != tables[1][i, j]}
    assert drawing.across
    for cells, offsets in zip(sides, tables, strict=True):
        assert {(i, j) for i, j, _ in marked(cells, "moved")} == differ
        assert [cell.text for row in cells.cells for cell in row] == [str(o) for o in offsets.reshape(-1)]
    assert f"{len(differ)} of 15 elements are elsewhere" in drawing.facts[0]


def test_the_same_layout_moves_nothing() -> None:
    drawing = difference("f32[3,5]{1,0}", "f32[3,5] strides (5,1)")
    assert "0 of 15 elements are elsewhere" in drawing.facts[0]
    assert [marked(cells, "moved") for cells in grids(drawing)] == [[], []]


def test_a_bitcast_marks_the_element_and_what_it_becomes() -> None:
    finding, (before, after) = asked("bitcast", "f32[3,5]{1,0}", "f32[5,3]{1,0:T(2,2)}")
    assert finding.reason.startswith("(0, 2) becomes (0, 2)")
    assert marked(before) == [("0", "2", "2")]
    assert marked(after) == [("0", "2", "4")]


def test_another_slice_is_drawn_where_the_element_is_in_one() -> None:
    """The element of a third dimension is in its own slice, and the caption says which."""
    (cells,) = side("f32[4,3,5]{2,1,0}", (2, 1, 3)).panels
    assert isinstance(cells, CellGrid)
    assert marked(cells) == [("1", "3", str(2 * 15 + 1 * 5 + 3))]
    assert "i = 2" in cells.caption


def test_the_block_past_the_end() -> None:
    """The program of the counterexample is marked, its neighbours past the end are red, unwritten blocks are holes."""
    finding, (blocks, time) = asked("blocks_in_bounds", KERNEL)
    assert finding.counterexample == {"program": (0, 1)}
    assert marked(blocks) == [("0:16", "384:512", "1")]
    # hatched as a whole, for it is outside too
    assert [cell.inside for row in blocks.cells for cell in row if cell.mark == "hit"] == [(1.0, 0.0)]
    assert [text for _, _, text in marked(blocks, "outside")] == ["3", "5"]
    assert len(marked(blocks, "hole")) == 6
    assert marked(time) == [("o out", "0,1", "0,384")]
    assert not [panel for panel in (blocks, time) if panel.caption.startswith("x ")]


def test_far_along_a_long_grid() -> None:
    """The steps around the program of the counterexample are walked, with their own numbers."""
    layout = "f32[320000] blockspec (8,) (i) -> (i,) grid (40001,)"
    finding, (blocks, time) = asked("blocks_in_bounds", layout)
    assert finding.counterexample == {"program": (40000,)}
    assert marked(blocks) == [("", "320000:320008", "40000")]
    assert marked(time) == [("x in", "40000", "320000")]


def test_the_tainted_element_and_the_padding() -> None:
    """The output's element, and beside it the input's elements up to the array's edge and past it."""
    finding = Finding(
        "undefined_values",
        "o f32[40,1] block (8, 1)",
        "o[0, 0] is computed from padding of x: dimension 1 ends at 100, and place 100 is read",
        counterexample={"program": (0,), "element": (0, 0)},
    )
    kernel = {
        "kernel": {
            "grid": {"i": 5},
            "inputs": [{"name": "x", "array": "f32[40,100]", "block": [8, 128], "index": "(i) -> (i, 0)"}],
            "outputs": [{"name": "o", "array": "f32[40,1]", "block": [8, 1], "index": "(i) -> (i, 0)"}],
        }
    }
    x, o, *_ = grids(finding_drawing(finding, [kernel]))
    assert x.column_labels == tuple(map(str, range(96, 104)))
    assert {j for _, j, _ in marked(x, "outside")} == {"100", "101", "102", "103"}
    assert marked(o) == [("0", "0", "")]


def test_nothing_to_draw_is_said() -> None:
    """A proof for all sizes has no picture; that is no error."""
    finding = lp.ask("injective", "f32[N,5]{1,0:T(8,128)}")
    assert finding.verdict is Verdict.PROVED
    assert finding_drawing(finding, ["f32[N,5]{1,0:T(8,128)}"]) is None
    ET.fromstring(svg_text(together("injective", [])))


def test_captions_are_not_cut() -> None:
    """Every word of a long reason is in the picture, and every line ends within it."""
    reason = " ".join(f"word{k}" for k in range(120))
    finding = Finding("injective", "a", reason, counterexample={"first": (0, 4), "second": (1, 0)})
    drawn = finding_drawing(finding, ["f32[3,5] strides (4,1)"])
    assert drawn is not None
    scene = scene_of(drawn)
    words = {word for text in scene.texts() for word in text.split()}
    assert set(reason.split()) <= words
    lines = [shape for shape in scene.shapes if getattr(shape, "kind", "") == "faint"]
    assert max(line.x + 7.3 * len(line.text) for line in lines if not line.middle) <= scene.width  # type: ignore[union-attr]


def report(count: int) -> Report:
    old, new = "bf16[4096,11008]{1,0:T(8,128)(2,1)}", "bf16[4096,11008]{0,1:T(8,128)(2,1)}"
    findings = tuple(
        Finding(
            "moved",
            f"layout a{k}",
            "elsewhere",
            counterexample={"element": (k, 9)},
            severity="deny",
            before=old,
            after=new,
        )
        for k in range(count)
    )
    return Report("gate", findings)


def test_a_page_of_a_hundred_findings_is_under_a_megabyte() -> None:
    """Each finding has both its pictures, small ones around its element."""
    page = render("html", report(100))
    assert len(page.encode()) < 1_000_000
    assert page.count("<figure>") == 200
    assert page.count('id="lp-hatch"') == 1


SPEC = """\
layouts: {a: "f32[3,5]{1,0}", b: "f32[3,5]{0,1}", bad: {strided: "f32[3,5] strides (4,1)"}}
checks:
  - injective: bad
  - same_map: [a, b]
"""


def texts_of(file: Path) -> list[str]:
    return [e.text or "" for e in ET.parse(file).getroot().iter("{http://www.w3.org/2000/svg}text")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAYOUTPROOF_CACHE", "off")
    Path("a.yaml").write_text(SPEC)
    Path("b.yaml").write_text(SPEC.replace("strides (4,1)", "strides (5,1)"))
    return tmp_path


def test_show_compares_two_layouts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the command line: both layouts, with what is elsewhere marked in the terminal and in the file."""
    assert cli.run(["show", "f32[3,5]{1,0}", "f32[3,5]{0,1}", "--svg", "p.svg"]) == 0
    out = capsys.readouterr().out
    assert "12 of 15 elements are elsewhere" in out
    assert "> elsewhere in the other layout" in out
    texts = texts_of(folder / "p.svg")
    assert texts.count(">1") == 2
    assert cli.run(["show", "f32[9,200]", "f32[9,200]{0,1:T(8,128)}", "--target", "v5e"]) == 0
    assert "f32[9,200]{1,0:T(8,128)} to f32[9,200]{0,1:T(8,128)}" in capsys.readouterr().out


def test_ask_writes_a_picture(folder: Path) -> None:
    assert cli.run(["ask", "injective", "f32[3,5] strides (4,1)", "--svg", "p.svg"]) == 1
    assert texts_of(folder / "p.svg").count("*4") == 2


def test_check_writes_what_is_not_as_stated(folder: Path) -> None:
    assert cli.run(["check", "a.yaml", "--svg", "p.svg"]) == 1
    texts = texts_of(folder / "p.svg")
    assert texts.count("*4") == 2
    assert "*1" in texts
    assert any("refuted: same_map" in text for text in texts)


def test_check_of_what_is_as_stated_is_still_green(folder: Path) -> None:
    Path("good.yaml").write_text('checks:\n  - injective: "f32[3,5]{1,0}"\n')
    assert cli.run(["check", "good.yaml", "--svg", "p.svg"]) == 0
    assert any("nothing to draw" in text for text in texts_of(folder / "p.svg"))


def test_gate_writes_what_moved(folder: Path) -> None:
    assert cli.run(["gate", "a.yaml", "b.yaml", "--svg", "p.svg"]) == 1
    texts = texts_of(folder / "p.svg")
    assert any(text.startswith(">") for text in texts)


@pytest.mark.parametrize(
    "asked",
    [
        ["ask", "injective", "f32[3,5] strides (4,1)"],
        ["check", "a.yaml"],
        ["check", "a.yaml", "--output", "report.json"],
        ["gate", "a.yaml", "b.yaml"],
        ["gate", "a.yaml", "b.yaml", "--output", "report.json"],
        ["kernels", "kernel.yaml"],
    ],
)
def test_json_names_the_picture(folder: Path, capsys: pytest.CaptureFixture[str], asked: list[str]) -> None:
    """What is printed is what is printed without a picture, and the files that were written."""
    Path("kernel.yaml").write_text("layouts: {k: {kernel: {grid: [2], outputs: [{array: 'f32[16]', block: [8]}]}}}")
    code = cli.run([*asked, "--json"])
    plain = json.loads(capsys.readouterr().out)
    assert cli.run([*asked, "--json", "--svg", "p.svg"]) == code
    drawn = json.loads(capsys.readouterr().out)
    assert drawn == {**plain, "written": [*plain.get("written", []), "p.svg"]}
    assert (folder / "p.svg").read_text().startswith("<svg")


def test_a_kernel_with_sizes_is_drawn_at_its_counterexample(folder: Path) -> None:
    """N // 8 programs miss the tail: the picture has the array of the counterexample, with a hole in it."""
    kernel = "f32[N,128] blockspec (8, 128) (i) -> (i, 0) grid (N // 8,) out"
    assert cli.run(["ask", "outputs_covered", kernel, "--where", "N > 16", "--svg", "p.svg"]) == 1
    texts = texts_of(folder / "p.svg")
    assert any("f32[17,128]" in text for text in texts)
    assert "16:24" in texts


def test_kernels_writes_the_walk_or_what_is_wrong(folder: Path) -> None:
    """A kernel of a spec file: the block past the end; a right one: its walk."""
    operand = "{name: x, array: 'f32[24]', block: [8], index: '(i) -> (i,)'}"
    wrong = f"layouts: {{k: {{kernel: {{grid: [4], inputs: [{operand}]}}}}}}\n"
    Path("wrong.yaml").write_text(wrong)
    Path("right.yaml").write_text(wrong.replace("grid: [4]", "grid: [3]"))
    cli.run(["kernels", "wrong.yaml", "--svg", "wrong.svg"])
    assert any("blocks_in_bounds" in text for text in texts_of(folder / "wrong.svg"))
    assert "*3" in texts_of(folder / "wrong.svg")
    cli.run(["kernels", "right.yaml", "--svg", "right.svg"])
    assert "16:24" in texts_of(folder / "right.svg")
    assert not any(text.startswith("*") for text in texts_of(folder / "right.svg"))


def test_notebooks_show_findings_kernels_and_layouts() -> None:
    """`_repr_svg_` is a picture of each; the table of a finding stands above its picture."""
    finding = lp.ask("injective", "f32[3,5] strides (4,1)")
    assert ET.fromstring(finding._repr_svg_() or "").tag.endswith("svg")
    shown = finding._repr_html_() or ""
    assert shown.index("<table>") < shown.index("<svg")
    for value in (KERNEL, "f32[8,12] sharded {devices=[2,2]<=[4]}", "f32[3,5]{1,0:T(2,2)}"):
        layout: Any = lp.read_layout(value)
        assert ET.fromstring(layout._repr_svg_()).tag.endswith("svg")
        assert "<svg" in layout._repr_html_()
