"""Kernels as mappings: what each field means."""

from __future__ import annotations

from typing import Any

import pytest

import layoutproof as lp
from layoutproof.core.errors import LayoutError
from layoutproof.core.size import symbol
from layoutproof.kernel.kernel import Block, Kernel, Scratch
from layoutproof.registry.read import read_layout

X = {"name": "x", "array": "f32[8,6]", "block": [2, 3], "index": "(i, j) -> (i, j)"}
OUT = {**X, "name": "o"}
GOOD: dict[str, Any] = {"grid": [4, 2], "inputs": [X], "outputs": [OUT]}


def kernel(**changed: Any) -> Kernel:
    """The good kernel with some fields changed; None takes a field away."""
    fields = {k: v for k, v in {**GOOD, **changed}.items() if v is not None}
    found: Kernel = read_layout({"kernel": fields}).kernel
    return found


def operand(**changed: Any) -> Any:
    """Its input, changed."""
    return kernel(inputs=[{**X, **changed}]).operands[0]


def test_the_good_kernel_has_every_field() -> None:
    """Nothing of a mapping gets lost, and the defaults are those of pallas_call."""
    k = kernel(
        name="mm",
        semantics=["parallel", "arbitrary"],
        vmapped=["i"],
        aliases={"x": "o"},
        tables={"t": "s32[8]", "u": {"array": "u8[2,3]"}},
        scratch=[{"array": "f32[8,128]"}, {"array": "dma_sem[2]", "memory": "semaphore"}],
        vmem_limit=1 << 25,
        pipeline="emit_pipeline",
        platform="tpu",
    )
    assert (k.name, k.grid, k.grid_names, k.semantics, k.vmapped) == (
        "mm",
        (4, 2),
        ("i", "j"),
        ("parallel", "arbitrary"),
        (0,),
    )
    assert (k.aliases, k.vmem_limit, k.pipeline, k.platform) == (((0, 0),), 1 << 25, "emit_pipeline", "tpu")
    assert [(t.name, t.dims, t.bits, t.low, t.high) for t in k.tables] == [
        ("t", (8,), 32, None, None),
        ("u", (2, 3), 8, 0, 256),
    ]
    assert k.scratch == (Scratch((8, 128), "f32"), Scratch((2,), "dma_sem", "semaphore"))
    x = k.inputs[0]
    assert (x.name, x.role, x.dims, x.dtype, x.memory, x.buffers, x.lookahead, x.revisit, x.live) == (
        *("x", "in", (8, 6), "f32", "vmem", None, False, "immediate", True),
    )
    assert [o.name for o in k.operands] == ["x", "o"]


def test_an_operand_may_say_everything() -> None:
    """The fields that are rarely said."""
    x = operand(memory="smem", buffers=3, lookahead=True, revisit="any", live=False)
    assert (x.memory, x.buffers, x.lookahead, x.revisit, x.live) == ("smem", 3, True, "any", False)


def test_names_of_operands_are_those_of_messages() -> None:
    """Operands without a name are args[k] and outputs[k]; a list with roles keeps inputs before outputs."""
    bare = {"array": "f32[4]"}
    assert [o.name for o in kernel(inputs=[bare, bare], outputs=[bare]).operands] == [
        "args[0]",
        "args[1]",
        "outputs[0]",
    ]
    listed = kernel(inputs=None, outputs=None, operands=[{**OUT, "role": "out"}, {**X, "role": "in"}])
    assert [(o.name, o.role) for o in listed.operands] == [("x", "in"), ("o", "out")]


@pytest.mark.parametrize(
    ("grid", "extents", "names"),
    [
        ([4, 2], (4, 2), ("i", "j")),
        ("(4, 2)", (4, 2), ("i", "j")),
        ({"a": 4, "b": 2}, (4, 2), ("a", "b")),
        (8, (8,), ("i",)),
        ([], (), ()),
        ("()", (), ()),
        ([0, -1], (0, -1), ("i", "j")),
        (["cdiv(M, 128)"], ((symbol("M") + 127) // 128,), ("i",)),
        (["ceil(M/128)"], ((symbol("M") + 127) // 128,), ("i",)),
        (["(M + 127)//128"], ((symbol("M") + 127) // 128,), ("i",)),
        (["M//128"], (symbol("M") // 128,), ("i",)),
        (["floor(M/128)"], (symbol("M") // 128,), ("i",)),
        (["pl.cdiv(2*M, 8) + 1"], ((2 * symbol("M") + 7) // 8 + 1,), ("i",)),
    ],
)
def test_grids(grid: Any, extents: Any, names: Any) -> None:
    """Every way to write a grid. One that runs nothing is read: a property says what is wrong with it."""
    k = kernel(grid=grid, inputs=None, outputs=[{"array": "f32[M]"}])
    assert (k.grid, k.grid_names) == (extents, names)


@pytest.mark.parametrize(
    ("entry", "block"),
    [
        (2, Block("blocked", 2)),
        ("2", Block("blocked", 2)),
        ("M//4 + 1", Block("blocked", symbol("M") // 4 + 1)),
        ("Blocked(2)", Block("blocked", 2)),
        ({"blocked": 2}, Block("blocked", 2)),
        (None, Block("squeezed", 1)),
        ("None", Block("squeezed", 1)),
        ("pl.Squeezed()", Block("squeezed", 1)),
        ("squeezed", Block("squeezed", 1)),
        ("Element(8)", Block("element", 8)),
        ("pl.Element(8, (1, 0))", Block("element", 8, 1, 0)),
        ("Element(block_size=8, padding=(1, 2))", Block("element", 8, 1, 2)),
        ({"element": 8, "padding": [1, 2]}, Block("element", 8, 1, 2)),
        ({"element": "M"}, Block("element", symbol("M"))),
    ],
)
def test_dimensions_of_a_block(entry: Any, block: Block) -> None:
    """Every way to write a dimension."""
    assert operand(array="f32[8,M]", block=[entry, 3]).block == (block, Block("blocked", 3))


@pytest.mark.parametrize("entry", ["BoundedSlice(4)", "pl.BoundedSlice(4)", {"bounded": 4}])
def test_bounded_slices_return_a_start_and_a_size(entry: Any) -> None:
    """The index map of a bounded dimension returns ds(start, size)."""
    fields = {"array": "f32[8,6]", "block": [entry, None], "index": "(a, b, t) -> (pl.ds(2*a, min(t[a], 4)), b)"}
    x = kernel(inputs=[{**fields, "name": "x"}], tables={"t": "s32[4]"}).operands[0]
    assert [str(b) for b in x.block] == ["BoundedSlice(4)", "None"]
    assert [str(t) for t in x.index] == ["2 * i", "j"]
    assert [str(s) for s in x.sizes] == ["min(t[i], 4)", "None"]


@pytest.mark.parametrize(
    ("index", "terms"),
    [
        (None, ["0", "0"]),
        ("(i, j) -> (i, j)", ["i", "j"]),
        ("(j, i) -> (j, i)", ["i", "j"]),
        ("(a, b) -> (b, a // 2 + M)", ["j", "i // 2 + M"]),
        ("(a, b) -> (t[a], 0)", ["t[i]", "0"]),
        ("(a, b, table, u) -> (table[a], u[b, table[0]])", ["t[i]", "u[j, t[0]]"]),
        ("(i, j) -> (select(i < 2, i, 0), i % cdiv(6, 4))", ["select(i < 2, i, 0)", "i % ((6 + (4 - 1)) // 4)"]),
        (lambda a, b: (b, a + 1), ["j", "i + 1"]),
    ],
)
def test_index_maps(index: Any, terms: list[str]) -> None:
    """Names are each operand's own; the terms are over the grid's."""
    tables = {"t": "s32[4]", "u": "s32[2,4]"}
    k = kernel(inputs=[{**X, "index": index}, {"array": "f32[M]"}], tables=tables)
    assert [str(t) for t in k.operands[0].index] == terms


def test_the_old_spelling_says_what_it_is_called_today() -> None:
    """indexing_mode reads as Element per dimension, with a note that names it."""
    old = {"block": [2, None], "indexing_mode": "pl.Unblocked(((1, 0), (0, 0)))"}
    layout = read_layout({"kernel": {**GOOD, "inputs": [{**X, **old}]}})
    assert layout.kernel.operands[0].block == (Block("element", 2, 1, 0), Block("squeezed", 1))
    assert layout.notes == (
        "x: indexing_mode=Unblocked(..) is called Element since jax 0.6.1: block (Element(2, (1, 0)), None)",
    )
    assert operand(indexing_mode="Blocked()").block == operand().block
    assert operand(block=None, indexing_mode="Unblocked()").block == (Block("element", 8), Block("element", 6))


def test_a_kernel_is_no_single_map() -> None:
    """What has several operands with blocks says how to name one; what has one is its map."""
    with pytest.raises(LayoutError, match=r"a kernel has one map per operand; .* kernel has x, o"):
        lp.table({"kernel": GOOD})
    alone = {"kernel": {**GOOD, "inputs": [{**X, "memory": "any"}]}}
    assert lp.ask("covers", alone).verdict is lp.Verdict.PROVED
    for value in (3, "grid (4, 2)", [GOOD]):
        with pytest.raises(LayoutError, match="a kernel is a mapping with grid, inputs and outputs"):
            read_layout({"kernel": value})


def test_a_kernel_prints_to_be_read() -> None:
    """One line for the call, one for each operand, table and scratch."""
    text = str(
        read_layout(
            {
                "kernel": {
                    **GOOD,
                    "name": "add",
                    "semantics": ["parallel", "arbitrary"],
                    "outputs": [{**OUT, "buffers": 1, "live": False}],
                    "aliases": {"x": "o"},
                    "tables": {"t": "s32[8]"},
                    "scratch": [{"array": "f32[8,128]"}],
                }
            }
        )
    )
    assert text.splitlines() == [
        "add grid (i < 4, j < 2) parallel, arbitrary",
        "  in   x f32[8,6] block (2, 3) index (i, j) -> (i, j)",
        "  out  o f32[8,6] block (2, 3) index (i, j) -> (i, j) buffers 1 not live",
        "  x shares the buffer of o",
        "  table t s32[8]",
        "  scratch f32[8,128] vmem",
    ]


def test_symbols_tables_aliases_and_slices_survive_the_mapping() -> None:
    """The mapping of a kernel with everything in it reads as that kernel, field by field."""
    layout = read_layout(
        {
            "kernel": {
                **GOOD,
                "grid": {"i": "cdiv(M, 4)", "j": "N//3"},
                "inputs": [
                    {**X, "array": "f32[M,6]", "block": ["Element(4, (0, 3))", 3], "index": "(i, j) -> (4*i, t[j])"},
                    {**X, "name": "y", "block": ["BoundedSlice(4)", None], "index": "(i, j) -> (ds(i, t[i] + 1), j)"},
                ],
                "outputs": [{**OUT, "array": "f32[M,6]", "block": ["M//2 + 1", 3]}],
                "aliases": {"x": "o"},
                "tables": {
                    "t": {"array": "s16[N]", "assume": ["0 <= t < cdiv(M, 4)", "t is monotone"]},
                    "u": "u8[2,3]",
                },
                "scratch": [{"array": "sem[1]", "memory": "semaphore"}],
            }
        }
    )
    again = read_layout({"kernel": layout.mapping()})
    assert again.mapping()["tables"]["t"] == {
        "array": "s16[N]",
        "assume": ["0 <= t < ceil(M/4)", "t is monotone"],
    }
    assert repr(again.kernel) == repr(layout.kernel)
