"""What single lines of rules say, each with a kernel for which another line would say something else."""

from __future__ import annotations

import types
from dataclasses import replace
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.kernel.kernel_text import read_kernel
from layoutproof.pallas.judge import judge
from tests.said import Said

pytestmark = pytest.mark.slow


def kernel(grid: dict[str, Any], operands: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"kernel": {"grid": grid, "operands": operands, **more}}


def operand(name: str, role: str, array: str, block: list[Any], index: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "role": role, "array": array, "block": block, "index": index, **more}


def told(question: str, grid: dict[str, Any], index: str, array: str = "f32[1024]", block: Any = 8) -> lp.Finding:
    return lp.ask(question, kernel(grid, [operand("x", "in", array, [block], index)]))


def fixed(question: str, text: dict[str, Any]) -> lp.Finding:
    """The one refutation, with what to write instead."""
    (found,) = [
        f for f in judge(read_kernel(text["kernel"], ELEMENT_BITS)[0], names=[question]) if f.verdict.value == "refuted"
    ]
    return found


@pytest.mark.parametrize(
    ("index", "verdict"),
    [
        # what int32 wraps is right where only a rest by a power of two is taken of it
        ("(i) -> ((i * 3000000000) % 256)", "proved"),
        ("(i) -> ((i * 3000000000 + 7) % 4294967296 // 16777216)", "proved"),
        ("(i) -> ((i * 3000000000) % 100)", "refuted"),
        ("(i) -> ((i * 3000000000) % 8589934592 // 16777216)", "refuted"),
        # and where a quotient stands between, it is wrong
        ("(i) -> ((i * 3000000000 // 2) % 256)", "refuted"),
        # eight bits with a sign, and a number that only looks like that
        ("(i) -> ((i * 3000000000 + 128) % 256 - 128)", "proved"),
        ("(i) -> (max((i * 2147483647) % 100 - 50, 0))", "refuted"),
        ("(i) -> (min(max((i * 3000000000 + 2147483648) % 4294967296 - 2147483648, 0), 7))", "proved"),
        ("(i) -> (min(max((i * 3000000000) % 4294967296 - 4294967296, 0), 7))", "refuted"),
        # a rest by one, and by what is no power of two below the limit
        ("(i) -> ((i * 3000000000) % 1)", "refuted"),
        ("(i) -> ((i * 3000000000) % 96)", "refuted"),
        # unsigned numbers of 32 bits stay below that, and are no int32
        ("(i) -> (min((i * 3000000000) % 4294967296, 7))", "proved"),
        ("(i) -> (min((i * 3000000000) % 4294967296 + 1, 7))", "refuted"),
        ("(i) -> (select(i < 3, (i * 3) % 4294967296 // 4, 0))", "proved"),
        ("(i) -> (min((i * 3000000000) % 8589934592, 7))", "refuted"),
    ],
)
def test_what_wraps_in_int32(index: str, verdict: str) -> None:
    found = told("index_int32", {"i": 9}, index)
    assert found.verdict.value == verdict, found.reason


@pytest.mark.parametrize(("index", "verdict"), [("(i) -> (i + 1)", "proved"), ("(i) -> (i + 2)", "refuted")])
def test_a_grid_counts_in_int32(index: str, verdict: str) -> None:
    """The last program that any grid has is number 2**31 - 2."""
    found = told("index_int32", {"i": "N"}, index, block=1)
    assert found.verdict.value == verdict, found.reason
    if verdict == "refuted":
        assert found.counterexample is not None
        assert found.counterexample["program"] == (2**31 - 2,)
    wide = kernel({"i": "N", "j": "M"}, [operand("x", "in", "f32[1024]", [1], "(i, j) -> (i + j + 1)")])
    assert lp.ask("index_int32", wide).verdict.value != "proved"


@pytest.mark.parametrize(
    ("sizes", "verdict"), [("i, 8, j * 16, 16", "proved"), ("i, 8, j * 16, 17", "refuted"), ("i, 8, 36, 16", "refuted")]
)
def test_each_bounded_slice_ends_within_the_array(sizes: str, verdict: str) -> None:
    """Of two bounded dimensions the second one, too, with its own start and size."""
    first, size, second, other = sizes.split(", ")
    index = f"(i, j) -> (ds({first} * 8, {size}), ds({second}, {other}))"
    blocks = [{"bounded": 8}, {"bounded": 17}]
    found = lp.ask("blocks_in_bounds", kernel({"i": 4, "j": 3}, [operand("x", "in", "f32[32,48]", blocks, index)]))
    assert found.verdict.value == verdict, found.reason


ALIASED = (
    ("(i) -> (i)", "(i) -> (i)", "proved"),
    ("(i) -> (i)", "(i) -> (3 - i)", "refuted"),
    ("(i) -> (max(i - 1, 0))", "(i) -> (i)", "refuted"),
)


@pytest.mark.parametrize(("reads", "writes", "verdict"), ALIASED)
def test_what_is_overwritten_before_it_is_read(reads: str, writes: str, verdict: str) -> None:
    """Blocks that a buffer's reader still needs: the leading dimensions say that only of one and the same map."""
    operands = [operand("x", "in", "f32[32]", [8], reads), operand("o", "out", "f32[32]", [8], writes)]
    found = lp.ask("alias_hazard", kernel({"i": 4}, operands, aliases={"x": "o"}))
    assert found.verdict.value == verdict, found.reason


def test_names_of_what_is_written_twice_and_how_to_end_it() -> None:
    """Blocks or elements, by the kind of block; vmap is named where it made the dimension parallel."""
    for block, index, word in ((8, "(i, j) -> (j)", "block"), ({"element": 8}, "(i, j) -> (j * 4)", "element")):
        operands = [operand("o", "out", "f32[64]", [block], index)]
        for vmapped, way in ((), 'make grid dimension 0 "arbitrary"'), (("i",), "batch outside of the call"):
            semantics = {"semantics": ["parallel", "arbitrary"], "vmapped": list(vmapped)}
            found = fixed("parallel_writes", kernel({"i": 2, "j": 3}, operands, **semantics))
            assert f"both write {word} (" in found.reason
            assert way in (found.hint if vmapped else found.fix)


@pytest.mark.parametrize(("index", "verdict"), [("(i) -> (i * 4)", "refuted"), ("(i) -> (i * 60 + 4)", "proved")])
def test_what_windows_share_outside_of_the_array_is_dropped(index: str, verdict: str) -> None:
    """Elements that two programs write count where the array has them."""
    block = {"element": 8, "padding": [4, 60]}
    found = lp.ask(
        "parallel_writes",
        kernel({"i": 2}, [operand("o", "out", "f32[64]", [block], index)], semantics=["parallel"]),
    )
    assert found.verdict.value == verdict, found.reason


def test_which_dimension_to_make_the_innermost() -> None:
    """The one that does not choose the block, outside of one that does."""
    operands = [operand("o", "out", "f32[32,64]", [8, 8], "(i, j, k) -> (i, k)")]
    found = fixed("revisits", kernel({"i": 2, "j": 3, "k": 4}, operands))
    assert found.fix.startswith("grid dimension 1 does not choose the block of o"), found.fix


@pytest.mark.parametrize(("block", "index"), [(8, "(i) -> (i)"), ({"element": 8}, "(i) -> (i * 8)")])
def test_what_nobody_reads_is_named_by_its_first_element(block: Any, index: str) -> None:
    found = lp.ask("inputs_read", kernel({"i": 3}, [operand("x", "in", "f32[32]", [block], index)]))
    assert (found.verdict.value, found.counterexample) == ("refuted", {"element": (24,)})


@pytest.mark.parametrize(
    ("index", "verdict"), [("(i) -> (t[i] - t[7 - (7 - i)])", "proved"), ("(i) -> (t[i] - t[(i + 1) % 4])", "refuted")]
)
def test_an_entry_that_is_read_twice_is_one_entry(index: str, verdict: str) -> None:
    """Where two reads are of the same entry they give the same value, whatever that is."""
    tables = {"t": {"array": "s32[8]", "assume": ["0 <= t < 4"]}}
    text = kernel({"i": 4}, [operand("x", "in", "f32[8]", [8], index)], tables=tables)
    found = lp.ask("blocks_in_bounds", text, strict_tables=True)
    assert found.verdict.value == verdict, found.reason


@pytest.mark.parametrize(
    ("grid", "verdict"), [((2, 2), "refuted"), ((2, 3), "refuted"), ((1, 2), "proved"), ((2, 1), "proved")]
)
def test_which_dimensions_come_late(grid: tuple[int, int], verdict: str) -> None:
    """One program alone is in every order; two are not."""
    operands = [operand("o", "out", "f32[64,64]", [8, 8], "(i, j) -> (i, j)")]
    text = kernel(dict(zip("ij", grid, strict=True)), operands, semantics=["arbitrary", "parallel"])
    assert lp.ask("parallel_prefix", text).verdict.value == verdict


@pytest.mark.parametrize(("table", "verdict"), [("t[i]", "proved"), ("t[i + 1]", "refuted")])
def test_a_table_that_says_how_long_a_slice_is(table: str, verdict: str) -> None:
    """What is read for a size is read of the table, too."""
    tables = {"t": {"array": "s32[4]", "assume": ["0 <= t < 9"]}}
    sliced = operand("x", "in", "f32[32]", [{"bounded": 8}], f"(i) -> (ds(i * 8, {table}))")
    found = lp.ask("table_reads", kernel({"i": 4}, [sliced], tables=tables))
    assert found.verdict.value == verdict, found.reason


@pytest.mark.parametrize(
    ("where", "verdict"), [("N > 2", "refuted"), ("M > 3", "refuted"), ("N > 2 and M > 3", "proved"), (None, "refuted")]
)
def test_every_dimension_of_a_grid_has_programs(where: str | None, verdict: str) -> None:
    """Of two that may have none each is asked about."""
    text = kernel({"i": "N - 2", "j": "M - 3"}, [operand("o", "out", "f32[64]", [8], "(i, j) -> (i)")])
    assert lp.ask("grid_positive", text, where=where).verdict.value == verdict


@pytest.mark.parametrize("position", [0, 1])
def test_one_of_two_aliases_that_is_not_modelled(position: int) -> None:
    """Whichever it is, nothing is said of the pair, with the reason."""
    operands = [operand("x", "in", "f32[32]", [8], "(i) -> (i)"), operand("o", "out", "f32[32]", [8], "(i) -> (i)")]
    text = kernel({"i": 4}, operands, aliases={"x": "o"})
    whole, _ = read_kernel(text["kernel"], ELEMENT_BITS)
    changed = [replace(o, unmodelled="it is odd") if k == position else o for k, o in enumerate(whole.operands)]
    (found,) = judge(replace(whole, operands=tuple(changed)), names=["alias_hazard"])
    assert (found.verdict.value, found.reason) == ("unknown", "it is odd")


@pytest.mark.parametrize(
    ("memories", "names", "said"),
    [
        (("any",), "x0", "any"),
        (("any", "hbm"), "x0, x1", "any, hbm"),
        (("any", "any"), "x0, x1", "any"),
    ],
)
def test_what_is_moved_by_hand_is_named(memories: tuple[str, ...], names: str, said: str) -> None:
    """One finding for all of them, unknown: no block says what the body reads."""
    rows = [{"name": f"x{k}", "role": "in", "array": "f32[64,128]", "memory": each} for k, each in enumerate(memories)]
    rows.append(operand("o", "out", "f32[64,128]", [8, 128], "(i) -> (i, 0)"))
    made = read_kernel(kernel({"i": 8}, rows)["kernel"], ELEMENT_BITS)[0]
    (found,) = judge(made, names=["analysable"])
    assert (found.subject, found.verdict.value) == (names, "unknown")
    assert Said("pallas.analysable_manual_dma", names=names, memories=said).of(found.reason)
    # a body that is read is spoken of, and on a GPU it says all
    body = types.SimpleNamespace(unmodelled="")
    read = replace(made, body_reader=lambda: body)
    assert Said("pallas.analysable_body_judges").of(judge(read, names=["analysable"])[0].reason)
    assert not judge(replace(read, platform="mosaic_gpu"), names=["analysable"])
    body.unmodelled = "a primitive that nobody knows"
    (gpu,) = judge(replace(read, platform="mosaic_gpu"), names=["analysable"])
    assert gpu.verdict.value == "unknown"


def test_of_windows_alone_nothing_is_left_open() -> None:
    rows = [operand(name, role, "f32[64,128]", [8, 128], "(i) -> (i, 0)") for name, role in (("x", "in"), ("o", "out"))]
    assert not judge(read_kernel(kernel({"i": 8}, rows)["kernel"], ELEMENT_BITS)[0], names=["analysable"])


@pytest.mark.parametrize("live", [True, False])
def test_what_is_not_written_of_an_output_that_nobody_uses_is_no_error(live: bool) -> None:
    out = operand("o", "out", "f32[1024]", [8], "(i) -> (i)", live=live)
    found = fixed("outputs_covered", kernel({"i": 127}, [out]))
    assert found.severity == ("error" if live else "info")
    # what nobody uses needs no repair
    assert ("= 128" in found.fix) is live
    assert Said("pallas.outputs_covered_look", grid="127", operand="o", terms="i").of(found.hint) is not live


@pytest.mark.parametrize(("programs", "block"), [(4, (4, 0)), (3, (0, 3))])
def test_blocks_that_a_table_never_names_and_those_that_the_grid_leaves_out(
    programs: int, block: tuple[int, ...]
) -> None:
    """No larger grid makes the table name a block, so none repairs it."""
    tables = {"t": {"array": "s32[8]", "assume": ["0 <= t < 4"]}}
    out = operand("o", "out", "f32[64,32]", [8, 8], "(i, j) -> (t[i], j)")
    found = fixed("outputs_covered", kernel({"i": 8, "j": programs}, [out], tables=tables))
    assert (found.counterexample or {})["block"] == block
    assert found.fix == ""
    assert Said("pallas.outputs_covered_look", grid=f"8, {programs}").of(found.hint)


@pytest.mark.parametrize(("start", "verdict"), [("t[i] * 8", "proved"), ("t[i] * 4", "refuted"), ("t[i]", "refuted")])
def test_windows_that_a_table_places_start_at_tiles(start: str, verdict: str) -> None:
    tables = {"t": {"array": "s32[4]", "assume": ["0 <= t < 4"]}}
    block = [{"element": 8}, {"element": 256}]
    text = kernel({"i": 4}, [operand("o", "out", "f32[64,256]", block, f"(i) -> ({start}, 0)")], tables=tables)
    made, _ = read_kernel(text["kernel"], ELEMENT_BITS)
    _, said = judge(made, names=["element_alignment"], target="v5e", compiler="0.0.42.1", strict_tables=True)
    assert said.verdict.value == verdict, said.reason


@pytest.mark.parametrize(
    ("given", "block", "written", "verdict"),
    [
        # one element alone, the first or the last of the array, that the first program has written
        ("select(i == 1, 0, 24 + i)", 1, "min(i, 1)", "refuted"),
        ("select(i == 1, 31, i)", 1, "max(3 - i, 2)", "refuted"),
        ("select(i == 3, 0, 24 + i)", 1, "min(i, 1)", "proved"),
        # a block that the last two programs write leaves with the last one only
        ("i", 8, "select(i < 2, i, 3)", "proved"),
        ("select(i < 3, 0, 1)", 8, "i // 2", "proved"),
        ("select(i < 2, 0, 1)", 8, "select(i < 1, 1, 2)", "refuted"),
    ],
)
def test_what_an_aliased_input_fetches_while_the_output_is_written(
    given: str, block: int, written: str, verdict: str
) -> None:
    rows = [operand("x", "in", "f32[32]", [block], f"(i) -> ({given})")]
    rows.append(operand("o", "out", "f32[32]", [8], f"(i) -> ({written})"))
    found = lp.ask("alias_hazard", kernel({"i": 4}, rows, aliases={"x": "o"}))
    assert found.verdict.value == verdict, found.reason


@pytest.mark.parametrize(
    ("layout", "program"),
    [
        ("f32[8] blockspec (4,) (i) -> (i,) grid (5,)", (2,)),
        ("f32[8] blockspec (4,) (i) -> (i - 1,) grid (2,)", (0,)),
        ("f32[8,4] blockspec (4, None) (i) -> (0, i) grid (5,)", (4,)),
        ("f32[9] blockspec (4,) (i) -> (i,) grid (4,)", (2,)),
        ("f32[8] blockspec (4,) (i) -> (i,) grid (2,)", None),
        ("f32[8] blockspec (4,) (i) -> (1 - i,) grid (2,)", None),
    ],
)
def test_a_block_that_lies_outside_is_not_inside(layout: str, program: tuple[int, ...] | None) -> None:
    """`partial_blocks` says of every block that it lies inside as a whole; one outside altogether was proved to."""
    found = lp.ask("partial_blocks", layout)
    assert found.verdict.value == ("proved" if program is None else "refuted")
    assert found.counterexample == (None if program is None else {"program": program})


@pytest.mark.parametrize(("programs", "verdict"), [(1, "proved"), (2, "unknown")])
def test_of_one_program_no_two_write_at_once(programs: int, verdict: str) -> None:
    layout = f"f32[8] blockspec (4,) (i) -> (0,) grid ({programs},) out"
    assert lp.ask("parallel_writes", layout).verdict.value == verdict
