"""One operand of a kernel as a layout; JAX's page "Grids and BlockSpecs" run for real."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import layoutproof as lp
from layoutproof.core.errors import LayoutError
from layoutproof.kernel.kernel import Kernel
from layoutproof.registry.read import language, languages, read_layout
from layoutproof.specs.positions import read_file
from tests.pallas.reference import MOST_PROGRAMS, operand_of, windows, written_by, written_table

CASES = Path(__file__).resolve().parents[1] / "cases" / "kernel_programs.yaml"
TEXT = "f32[100,90] blockspec (10, 20) (i, j) -> (i, j) grid (10, 5)"

TEXTS = [
    TEXT,
    TEXT + " out",
    "s32[7,7] blockspec (Element(2, (1, 0)), Element(3, (2, 0))) (i, j) -> (2 * i, 3 * j) grid (4, 3) out",
    "s32[3,4] blockspec (None, 2) (a, b) -> (a, b) grid (3, 2)",
    "f32[M,N] blockspec (128, N) (i) -> (i, 0) grid (ceil(M/128))",
    "f32[] blockspec () () -> () grid ()",
    "f32[8] blockspec (4) (i) -> (min(i, 1)) grid (5)",
]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_print_as_they_are_written(text: str) -> None:
    """The canonical text is its own text, and the language of it is found without a name."""
    assert str(read_layout(text)) == text
    assert read_layout(text) == read_layout({"blockspec": text})


@pytest.mark.parametrize("text", TEXTS)
def test_no_other_language_claims_its_texts_before_it(text: str) -> None:
    """The languages are asked in the order of their names, so none before `blockspec` may claim its texts."""
    claiming = [name for name in languages() if name != "xla" and language(name).looks_like(text)]
    assert claiming[0] == "blockspec"


@pytest.mark.parametrize(
    "text",
    [
        "f32[3,5]{1,0:T(2,2)}",
        "(i < 256, j < 512) -> (i // 8, j // 128)",
        "f32[3,5] strides (4,1)",
        "S[(8,4):(4@lane,1@lane)]",
        "(4,2):(1,4)",
    ],
)
def test_texts_of_other_languages_stay_theirs(text: str) -> None:
    """Nothing that has another meaning is read as a kernel."""
    assert not language("blockspec").looks_like(text)
    assert not language("kernel").looks_like(text)


def test_mapping_text_and_kernel_are_one_layout() -> None:
    """Three spellings of one operand."""
    fields: dict[str, Any] = {"array": "f32[100,90]", "block": [10, 20], "index": "(a, b) -> (a, b)"}
    grid = {"i": 10, "j": 5}
    kernel = {"grid": grid, "inputs": [{"name": "x", **fields}, {"array": "f32[4]"}], "outputs": [{"array": "f32[4]"}]}
    spellings = [
        TEXT,
        {"blockspec": {**fields, "grid": grid}},
        {"blockspec": {"kernel": kernel, "operand": "x"}},
        {"blockspec": {"kernel": {"kernel": kernel}, "operand": "x"}},
    ]
    assert [str(read_layout(value)) for value in spellings] == [TEXT] * 4


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("f32[8] blockspec (4)", "a blockspec is written"),
        ("f32[8] blockspec (i) -> (i) grid (2)", "a blockspec is written"),
        ("f32[8] blockspec (4, (i) -> (i) grid (2)", "a blockspec is written"),
        ("f32[8] blockspec (4, 4) (i) -> (i) grid (2)", "^block has 2 dimensions, .* and the array has 1"),
        (
            "f32[8] blockspec (4) (i, j) -> (i) grid (2)",
            "^the index map takes 2 names; it takes one per grid dimension",
        ),
        ("f32[8] blockspec (4) (i) -> (i) grid (2) inout", "grid: a list is written"),
        ({"array": "f32[8]"}, "a blockspec needs 'grid'"),
        ({"array": "f32[8]", "grid": [2], "buffers": 2}, "a blockspec has no 'buffers'; known: array, grid, block"),
        ({"array": "f32[8]", "grid": [2], "block": [4], "index": "i -> t[i]"}, "the kernel has no tables"),
        ({"array": "f32[8]", "grid": [2], "role": "both"}, "role is one of in, out, not 'both'"),
        ({"kernel": {"grid": [2], "inputs": [{"array": "f32[8]"}]}}, "needs 'operand'"),
        (
            {"kernel": {"grid": [2], "inputs": [{"array": "f32[8]"}]}, "operand": "y"},
            r"operand is one of args\[0\], not 'y'",
        ),
        ({"kernel": 3, "operand": "y"}, "kernel: a kernel is a mapping"),
        (3, "a blockspec is a mapping"),
    ],
)
def test_what_is_wrong_is_said(value: object, message: str) -> None:
    """What, where, and what is known."""
    with pytest.raises(LayoutError, match=message):
        read_layout({"blockspec": value})


@given(st.sampled_from(TEXTS), st.integers(0, 80), st.integers(0, 6), st.text("(),->ijMs0 8[]Nonegrid", max_size=4))
def test_a_damaged_text_is_read_or_refused(text: str, start: int, cut: int, new: str) -> None:
    """Nothing but a layout that prints itself, or a LayoutError, comes of a text with a few letters changed."""
    try:
        layout = read_layout({"blockspec": text[:start] + new + text[start + cut :]})
    except LayoutError:
        return
    assert read_layout(str(layout)) == layout


def test_its_map_speaks_of_elements() -> None:
    """Programs are the index, offsets in the block the replicas, elements of the array the places."""
    spec = "s32[5,6] blockspec (2, None) (i, j) -> (i, 2*j) grid (3, 3)"
    assert lp.locate(spec, (2, 1)) == [{"dim0": 4, "dim1": 2}, {"dim0": 5, "dim1": 2}]
    assert lp.table(spec, (1,))[2, 1].tolist() == [5, 2]
    assert lp.ask("covers", spec).counterexample == {"place": (0, 1)}
    assert lp.ask("in_bounds", spec).counterexample == {"element": (2, 0), "replica": (1,)}
    assert lp.ask("covers", "f32[M,9] blockspec (8, 9) (i) -> (i, 0) grid (cdiv(M, 8))").verdict is lp.Verdict.PROVED
    assert lp.ask("covers", "f32[M,9] blockspec (8, 9) (i) -> (i, 0) grid (M//8)").verdict is lp.Verdict.REFUTED


def test_its_steps_are_those_of_slices_for_invocation() -> None:
    """What the index map returns, the first element, and where the slice ends; with low padding below 0."""
    assert read_layout(TEXT).steps((2, 4)) == [
        ("index map", (2, 4), (10, 5)),
        ("first element", (20, 80), (100, 90)),
        ("end of the block", (30, 100), (100, 90)),
    ]
    padded = read_layout("s32[7] blockspec (Element(2, (1, 0))) (i) -> (2*i) grid (4)")
    assert padded.steps((0,))[1:] == [("first element", (-1,), (7,)), ("end of the block", (1,), (7,))]


def test_a_bounded_slice_leaves_out_what_is_past_its_size() -> None:
    """The replicas past the valid size are nowhere, at -1."""
    fields = {"array": "f32[9]", "block": ["BoundedSlice(4)"], "index": "(i) -> (ds(3*i, i + 1))", "grid": [3]}
    spec = read_layout({"blockspec": fields})
    assert [m["dim0"] for m in lp.locate(spec, (1,))] == [3, 4, -1, -1]
    assert windows(spec.kernel, spec.operand, (1,)) == ((3, 5),)


def test_a_map_that_reads_a_table_or_has_no_grid_is_no_map() -> None:
    """Nobody knows what it holds."""
    kernel = {"grid": [3], "inputs": [{"name": "x", "array": "f32[9]", "block": [3], "index": "i -> t[i]"}]}
    spec = read_layout({"blockspec": {"kernel": {**kernel, "tables": {"t": "s32[3]"}}, "operand": "x"}})
    with pytest.raises(LayoutError, match="the block of x depends on what t holds"):
        spec.index_map()
    assert windows(spec.kernel, spec.operand, (1,), tables={"t": [0, 2, 1]}) == ((6, 9),)
    inputs = [{"name": "x", "array": "f32[9]", "block": [3], "index": "i -> i % M"}, {"array": "f32[M]"}]
    with pytest.raises(LayoutError, match="the block of x depends on the size M, which is not one of its own"):
        lp.locate({"blockspec": {"kernel": {"grid": [3], "inputs": inputs}, "operand": "x"}}, (1,))
    with pytest.raises(LayoutError, match="the grid has -1 programs along i"):
        read_layout("f32[9] blockspec (3) (i) -> (i) grid (-1)").index_map()


@pytest.mark.parametrize(
    ("text", "program", "message"),
    [
        (TEXT, (10, 0), r"\(10, 0\) is no program of blockspec, whose grid is \(10, 5\)"),
        (TEXT, (1,), r"\(1,\) is no program"),
        ("f32[M] blockspec (4) (i) -> (i) grid (M)", (0,), "the size M has no value"),
        ("f32[4] blockspec (4) (i) -> (i // (i - i)) grid (2)", (0,), "divides by zero at"),
    ],
)
def test_programs_that_cannot_be_run_by_hand_say_why(text: str, program: tuple[int, ...], message: str) -> None:
    """Outside of the grid, or with sizes unknown."""
    spec = read_layout(text)
    with pytest.raises(LayoutError, match=message):
        windows(spec.kernel, spec.operand, program)


def test_a_walk_is_bounded_and_about_outputs() -> None:
    """Too many programs, or none that writes, is an error and not a long wait."""
    spec = read_layout(f"f32[4] blockspec (4) (i) -> (0) grid ({MOST_PROGRAMS + 1}) out")
    with pytest.raises(LayoutError, match="has 1000001 programs; at most 1000000"):
        written_by(spec.kernel, spec.operand)
    large = read_layout("f32[99999,99999] blockspec (4, 4) (i) -> (0, 0) grid (1) out")
    with pytest.raises(LayoutError, match="elements; at most"):
        written_by(large.kernel, large.operand)
    read = read_layout(TEXT)
    with pytest.raises(LayoutError, match="is read, not written"):
        written_by(read.kernel, read.operand)
    with pytest.raises(LayoutError, match="no operand with blocks that is written; it has x"):
        operand_of(read.kernel, role="out")
    with pytest.raises(LayoutError, match="no operand 'y'; it has x"):
        operand_of(read.kernel, "y")
    spec = read_layout("f32[4] blockspec (4) (i) -> (0) grid (2) out")
    with pytest.raises(LayoutError, match="speaks of z; known: i"):
        written_table(spec.kernel, spec.operand, "z + 1")


def test_sizes_may_be_given_to_a_walk() -> None:
    """A symbolic kernel is run by hand at some sizes; the last block is what M // 4 leaves out."""
    spec = read_layout("f32[M] blockspec (4) (i) -> (i) grid (M//4) out")
    assert written_by(spec.kernel, spec.operand, {"M": 10}).tolist() == [0, 0, 0, 0, 1, 1, 1, 1, -1, -1]


def seed() -> dict[str, Kernel]:
    """The kernels of the page that write."""
    layouts = read_file(CASES).value["layouts"].plain()
    kernels = {name: read_layout(value).kernel for name, value in layouts.items()}
    return {name: kernel for name, kernel in kernels.items() if kernel.outputs}


@pytest.mark.parametrize("name", sorted(seed()))
def test_the_page_runs_as_it_prints(name: str) -> None:
    """Every kernel of the page, run by jax in interpret mode: each element has the program that the spec says."""
    pytest.importorskip("jax")
    from tests.layouts.kernels_in_jax import written

    kernel = seed()[name]
    assert np.array_equal(written(kernel), written_by(kernel, kernel.outputs[0]))
