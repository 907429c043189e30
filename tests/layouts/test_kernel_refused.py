"""Kernels as mappings: what every wrong field says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutproof.core.errors import LayoutError
from layoutproof.kernel.kernel import MEMORIES, SEMANTICS, Kernel
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


def _name(case: object) -> str:
    """Of a case, the same in every process: without the addresses of what stands in it."""
    return str(case).partition(" at 0x")[0][:40]


WRONG_KERNELS: list[tuple[dict[str, Any], str]] = [
    ({"gird": 4}, r"a kernel has no 'gird'; did you mean 'grid'\?; known: name, grid, inputs"),
    ({"dimension_semantics": []}, "did you mean 'semantics'"),
    ({"grid": None}, "a kernel needs 'grid'; it has inputs, outputs"),
    ({"grid": [4, 2.0]}, "grid, dimension 1 is an integer or a size expression .*, not 2.0"),
    ({"grid": [True]}, "grid, dimension 0 is an integer"),
    ({"grid": "(4, 2"}, "grid: a list is written"),
    ({"grid": ["4 +"]}, "grid, dimension 0: cannot read"),
    ({"grid": ["M // (K - 1)"]}, "only by sizes that are positive"),
    ({"grid": {"for": 4, "j": 2}}, "a grid dimension is named by letters, digits and '_', not 'for'"),
    ({"grid": {"M": 4, "j": 2}, "inputs": [{"array": "f32[M]"}]}, "'M' names one grid dimension and one size"),
    ({"tables": {"i": "s32[8]"}}, "'i' names one grid dimension and one table"),
    ({"tables": {"x": "s32[8]"}}, "'x' names one operand and one table"),
    ({"outputs": [X]}, "'x' names two operands"),
    ({"inputs": None, "outputs": None}, "a kernel has at least one operand"),
    ({"operands": [{**X, "role": "in"}]}, "lists its operands once"),
    ({"inputs": 3}, "inputs is a list, not 3"),
    ({"inputs": [3]}, r"inputs\[0\]: an operand is a mapping"),
    ({"inputs": None, "outputs": None, "operands": [X]}, r"operands\[0\]: an operand needs 'role'"),
    ({"inputs": None, "outputs": None, "operands": [{**X, "role": "input"}]}, "role is one of in, out, not 'input'"),
    ({"inputs": [{**X, "role": "in"}]}, "an operand has no 'role'"),
    ({"semantics": ["parallel"]}, "semantics has 1 words, and the grid has 2 dimensions"),
    ({"semantics": ["parallell", "arbitrary"]}, "not 'parallell'; did you mean 'parallel'"),
    ({"semantics": "parallel"}, "semantics is a list"),
    ({"vmapped": ["z"]}, "vmapped is one of i, j, not 'z'"),
    ({"aliases": {"y": "o"}}, "aliases: the input is one of x, not 'y'"),
    ({"aliases": {"x": "x"}}, "aliases: the output is one of o, not 'x'"),
    ({"aliases": [0, 0]}, "aliases is a mapping"),
    ({"aliases": {"x": "o"}, "outputs": [{**OUT, "array": "s32[8,6]"}]}, r"x f32\[8,6\] and o s32\[8,6\]"),
    ({"aliases": {"x": "o"}, "outputs": [{**OUT, "array": "f32[8,7]"}]}, "shape and element type are equal"),
    ({"tables": ["t"]}, "tables is a mapping"),
    ({"tables": {"t": 3}}, "table 't' is a mapping"),
    ({"tables": {"t": "f32[8]"}}, "table 't' holds f32; an index map reads integers"),
    ({"tables": {"t": {"array": "s32[8]", "assumes": []}}}, "did you mean 'assume'"),
    ({"tables": {"t": {"array": "s32[8]", "assume": "0 <= t < 4"}}}, "table 't': assume is a list"),
    ({"tables": {"t": {"array": "s32[8]", "assume": [4]}}}, "an assumption is a text"),
    ({"tables": {"t": {"array": "s32[8]", "assume": ["u is onto"]}}}, "kernel has no table 'u'; it has t"),
    ({"tables": {"t": {"array": "s32[8]", "assume": ["t is flat"]}}}, "a table is monotone, injective, onto"),
    ({"tables": {"t": {"array": "s32[8]", "assume": ["0 <= t < i"]}}}, "'i' names one grid dimension and one size"),
    ({"scratch": [{"array": "f32[8]", "memory": "VMEM"}]}, r"scratch\[0\]: memory is one of .*did you mean 'vmem'"),
    ({"scratch": [{"memory": "vmem"}]}, r"scratch\[0\] needs 'array'"),
    ({"scratch": [{"array": "dma_sem[2]"}]}, r"scratch\[0\]: unknown element type 'dma_sem'"),
    ({"vmem_limit": "32M"}, "vmem_limit is a number of bytes"),
    ({"vmem_limit": 0}, "vmem_limit is a number of bytes of at least 1"),
    ({"pipeline": "emit"}, "pipeline is one of pallas_call, emit_pipeline"),
    ({"platform": "gpu"}, "platform is one of tpu, triton, mosaic_gpu"),
    ({"name": "two words"}, "a kernel's name is a word"),
]


@pytest.mark.parametrize(("changed", "message"), WRONG_KERNELS, ids=[_name(c) for c, _ in WRONG_KERNELS])
def test_what_is_wrong_with_a_kernel_is_said(changed: dict[str, Any], message: str) -> None:
    """What, where, and what is known."""
    with pytest.raises(LayoutError, match=message):
        kernel(**changed)


WRONG_OPERANDS: list[tuple[dict[str, Any], str]] = [
    ({"block_shape": [2, 3]}, "an operand has no 'block_shape'; did you mean 'block'"),
    ({"index_map": "i"}, "an operand has no 'index_map'; did you mean 'index'"),
    ({"name": "a b"}, "an operand's name is a word"),
    ({"name": 3}, "an operand's name is a word"),
    ({"array": "f32[8,6]{1,0}"}, "a layout does not belong there"),
    ({"array": [8, 6]}, r"array is written f32\[7,5\]"),
    ({"array": "float32[8,6]"}, "unknown element type 'float32'; did you mean 'f32'"),
    ({"array": "f32[8,-6]"}, "array, dimension 1 must be at least 0, not -6"),
    ({"array": "f32[8,N-2]"}, "array, dimension 1 must be at least 0, not N - 2"),
    ({"block": [2]}, "block has 1 dimensions, .*, and the array has 2"),
    ({"block": [2, 3, 4]}, "block has 3 dimensions"),
    ({"block": [2, -3]}, "block, dimension 1 must be at least 1, not -3"),
    ({"block": [2, 0]}, "block, dimension 1 must be at least 1, not 0"),
    ({"block": [2, "N - 3"]}, "block, dimension 1 must be at least 1"),
    ({"block": 3}, "block is a list of dimensions"),
    ({"block": [2, 3.0]}, "block, dimension 1 is a size, null"),
    ({"block": [2, True]}, "block, dimension 1 is a size, null"),
    ({"block": [2, "Elment(3)"]}, "block, dimension 1 is a size, null.*did you mean 'Element'"),
    ({"block": [2, "Indirect(3)"]}, "Indirect gathers .* not modelled"),
    ({"block": [2, "Squeezed(3)"]}, "takes nothing"),
    ({"block": [2, "Element(3, (-1, 0))"]}, r"padding is at least 0 elements, not \(-1, 0\)"),
    ({"block": [2, {"element": 3, "padding": [1]}]}, "padding is two integers"),
    ({"block": [2, {"blocked": 3, "padding": [1, 1]}]}, "block, dimension 1 is {element: 8"),
    ({"block": [2, {"elements": 3}]}, "did you mean 'element'"),
    ({"block": "(i, j) -> (i, j)", "index": [2, 3]}, r"today it is BlockSpec\(block_shape, index_map\)"),
    ({"index": [2, 3]}, "before jax 0.4.31"),
    ({"block": lambda i, j: (i, j)}, "before jax 0.4.31"),
    ({"index": 3}, "index is a map such as"),
    ({"index": "(i) -> (i, 0)"}, r"takes 1 names; it takes one per grid dimension \(i, j\)"),
    ({"index": "(i, j) -> (i)"}, "gives 1 results, and the block has 2 dimensions"),
    ({"index": "(i, j) -> (i, z)"}, "'z' is neither a grid index nor a size; known: i, j"),
    ({"index": "(a, b) -> (i, 0)"}, "'i' is neither a grid index"),
    ({"index": "(i, j) -> (t[i], 0)"}, "reads t, which is no table; the kernel has no tables"),
    ({"index": "(i, j) -> (i / 2, 0)"}, "only"),
    ({"index": "(i, j) -> (i < 2, 0)"}, "a condition where a number must stand"),
    ({"index": "(i, j) -> (ds(i, 2), j)"}, "result 0 is ds.*and dimension 0 is 2, no slice"),
    ({"index": "(i, j) -> (ds(i), j)"}, "ds takes a start and a size, not 1"),
    ({"block": ["BoundedSlice(2)", 3]}, "result 0 must be ds"),
    ({"block": ["BoundedSlice(2)", 3], "index": None}, "a BoundedSlice dimension needs an index map"),
    ({"index": lambda i, j: (i == 2, j)}, "truth of == 2"),
    ({"memory": "pltpu.VMEM"}, "memory is one of vmem, smem, any"),
    ({"buffers": 0}, "buffers is a number of at least 1"),
    ({"buffers": True}, "buffers is a number of at least 1"),
    ({"lookahead": 1}, "lookahead is true or false"),
    ({"live": "no"}, "live is true or false"),
    ({"revisit": "never"}, "revisit is one of immediate, any"),
    ({"indexing_mode": "Unblock()"}, "indexing_mode is Blocked"),
    ({"indexing_mode": "Unblocked(((1, 0),))"}, "pads 1 dimensions, and the block has 2"),
    ({"indexing_mode": "Unblocked(((1, 0), (1.5, 0)))"}, "the padding of Unblocked is written"),
    ({"indexing_mode": "Unblocked(((1, 0), (1e999, 0)))"}, "the padding of Unblocked is written"),
    ({"block": [2, f"Element(3, ({'9' * 5000}, 0))"]}, "block, dimension 1"),
    ({"block": [2, "9" * 4000]}, "more than 20 digits"),
    ({"array": f"f32[8,{'9' * 4000}]"}, "more than 20 digits"),
    ({"indexing_mode": "Unblocked(7)"}, "the padding of Unblocked is written"),
    ({"indexing_mode": "Unblocked(((1, 0), (-2, 0)))"}, "padding is at least 0"),
    ({"indexing_mode": "Unblocked()", "block": ["Element(2)", 3]}, "the same thing twice"),
    ({"indexing_mode": "Unblocked(((1, 0), (1, 0)))", "block": [2, None]}, "is squeezed and cannot be padded"),
]


@pytest.mark.parametrize(("changed", "message"), WRONG_OPERANDS, ids=[_name(c) for c, _ in WRONG_OPERANDS])
def test_what_is_wrong_with_an_operand_is_said(changed: dict[str, Any], message: str) -> None:
    """What, where (the operand), and what is known."""
    with pytest.raises(LayoutError, match=message) as raised:
        operand(**changed)
    assert raised.value.problem.startswith("inputs[0]")


@pytest.mark.parametrize(("words", "field"), [(SEMANTICS, "semantics"), (MEMORIES, "memory")])
def test_unknown_words_list_the_known_ones(words: tuple[str, ...], field: str) -> None:
    """Every word that may stand is named."""
    with pytest.raises(LayoutError) as raised:
        kernel(semantics=["x", "x"]) if field == "semantics" else operand(memory="x")
    assert ", ".join(words) in str(raised.value)


def test_tables_are_read_by_rank() -> None:
    """A read with another number of indices, of a bare table, or of an unknown one is refused."""
    for index, message in (
        ("(i, j) -> (t[i, j], 0)", "has 2 indices, and the table has 1 dimensions"),
        ("(i, j) -> (t, 0)", r"'t' is a table; read an entry of it, for instance t\[0\]"),
        ("(i, j) -> (u[i], 0)", "reads u, which is no table; known: t"),
        ("(i, j, k, l) -> (i, 0)", r"may take the 1 tables \(t\) after them"),
    ):
        with pytest.raises(LayoutError, match=message):
            kernel(inputs=[{**X, "index": index}], tables={"t": "s32[4]"})


FULL: dict[str, Any] = {
    "name": "mm",
    **GOOD,
    "inputs": [{**X, "memory": "smem", "buffers": 2, "lookahead": True, "revisit": "any", "live": True}],
    "semantics": ["parallel", "arbitrary"],
    "vmapped": ["i"],
    "aliases": {"x": "o"},
    "tables": {"t": "s32[8]"},
    "scratch": [{"array": "f32[8,128]", "memory": "vmem"}],
    "vmem_limit": 1,
    "pipeline": "pallas_call",
    "platform": "tpu",
}
BITS = ["(", ")", "->", "ds(", "Element(", "cdiv(", "ceil(", ",", "i", "M", "/", "//", "8", "-1", "None", "[", "]", " "]
ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 9)
    | st.floats()
    | st.lists(st.sampled_from(BITS), max_size=9).map("".join),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["i", "element", "array"]), inner),
    max_leaves=5,
)


@given(st.sampled_from(sorted(FULL)), st.sampled_from([None, *X, "memory", "indexing_mode"]), ODD)
def test_whatever_stands_in_a_field_is_read_or_refused(field: str, inner: str | None, value: Any) -> None:
    """Nothing but a kernel or a LayoutError comes of any value in any field."""
    changed = {**FULL, field: value} if inner is None else {**FULL, "inputs": [{**X, inner: value}]}
    try:
        layout = read_layout({"kernel": changed})
    except LayoutError:
        return
    assert isinstance(layout.kernel, Kernel)
    assert str(layout)
