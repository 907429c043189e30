"""Kernels as mappings: what every wrong field says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutproof.core.errors import LayoutError
from layoutproof.core.message import brief
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
    (
        {"gird": 4},
        (
            "kernel.part_unknown_key(what='a kernel', key=\"'gird'\", near=core.did_you_mean(name='grid'), "
            "known='name, grid, inputs, outputs, operands, semantics, vmapped, aliases, tables, "
            "scratch, scoped, vmem_limit, pipeline, platform')"
        ),
    ),
    (
        {"dimension_semantics": []},
        (
            "kernel.part_unknown_key(what='a kernel', key=\"'dimension_semantics'\", near="
            "core.did_you_mean(name='semantics'), known='name, grid, inputs, outputs, operands, semantics, vmapped, "
            "aliases, tables, scratch, scoped, vmem_limit, pipeline, platform')"
        ),
    ),
    ({"grid": None}, "kernel.part_missing_key(what='a kernel', key='grid', value='inputs, outputs')"),
    ({"grid": [4, 2.0]}, "kernel.size_no_number(what='grid, dimension 1', value='2.0')"),
    ({"grid": [True]}, "kernel.size_no_number(what='grid, dimension 0', value='True')"),
    ({"grid": "(4, 2"}, "kernel.list_form(at='grid')"),
    ({"grid": ["4 +"]}, "core.expression(part='4 +', at='grid, dimension 0')"),
    (
        {"grid": ["M // (K - 1)"]},
        (
            "core.no_size(text='M // (K - 1)', error='M // (K - 1): only by sizes that are positive "
            "for all values of their symbols', at='grid, dimension 0')"
        ),
    ),
    ({"grid": {"for": 4, "j": 2}}, "kernel.part_name(what='a grid dimension', value=\"'for'\")"),
    (
        {"grid": {"M": 4, "j": 2}, "inputs": [{"array": "f32[M]"}]},
        "kernel.name_twice(name='M', both='one grid dimension and one size')",
    ),
    ({"tables": {"i": "s32[8]"}}, "kernel.name_twice(name='i', both='one grid dimension and one table')"),
    ({"tables": {"x": "s32[8]"}}, "kernel.name_twice(name='x', both='one operand and one table')"),
    ({"outputs": [X]}, "kernel.name_twice(name='x', both='two operands')"),
    ({"inputs": None, "outputs": None}, "kernel.no_operand()"),
    ({"operands": [{**X, "role": "in"}]}, "kernel.operands_twice()"),
    ({"inputs": 3}, "kernel.part_no_list(what='inputs', value='3')"),
    (
        {"inputs": [3]},
        (
            "kernel.part_no_mapping(what='an operand', known='name, array, block, index, memory, "
            "buffers, lookahead, revisit, live, pipelined, same_as, indexing_mode', value='3', "
            "at='inputs[0]')"
        ),
    ),
    (
        {"inputs": None, "outputs": None, "operands": [X]},
        "kernel.part_missing_key(what='an operand', key='role', value='name, array, block, index', at='operands[0]')",
    ),
    (
        {"inputs": None, "outputs": None, "operands": [{**X, "role": "input"}]},
        "kernel.part_choice(what='role', known='in, out', value=\"'input'\", near='', at='operands[0]')",
    ),
    (
        {"inputs": [{**X, "role": "in"}]},
        (
            "kernel.part_unknown_key(what='an operand', key=\"'role'\", near='', known='name, array, "
            "block, index, memory, buffers, lookahead, revisit, live, pipelined, same_as, "
            "indexing_mode', at='inputs[0]')"
        ),
    ),
    ({"semantics": ["parallel"]}, "kernel.semantics_rank(words=1, names=2)"),
    (
        {"semantics": ["parallell", "arbitrary"]},
        (
            "kernel.part_choice(what='semantics', known='parallel, core_parallel, subcore_parallel, "
            "arbitrary', value=\"'parallell'\", near=core.did_you_mean(name='parallel'))"
        ),
    ),
    ({"semantics": "parallel"}, "kernel.part_no_list(what='semantics', value=\"'parallel'\")"),
    ({"vmapped": ["z"]}, "kernel.part_choice(what='vmapped', known='i, j', value=\"'z'\", near='')"),
    ({"aliases": {"y": "o"}}, "kernel.part_choice(what='aliases: the input', known='x', value=\"'y'\", near='')"),
    ({"aliases": {"x": "x"}}, "kernel.part_choice(what='aliases: the output', known='o', value=\"'x'\", near='')"),
    ({"aliases": [0, 0]}, "kernel.aliases_form(value='[0, 0]')"),
    (
        {"aliases": {"x": "o"}, "outputs": [{**OUT, "array": "s32[8,6]"}]},
        "kernel.alias_types(shapes='x f32[8,6] and o s32[8,6]')",
    ),
    (
        {"aliases": {"x": "o"}, "outputs": [{**OUT, "array": "f32[8,7]"}]},
        "kernel.alias_types(shapes='x f32[8,6] and o f32[8,7]')",
    ),
    ({"tables": ["t"]}, "kernel.tables_form(value=\"['t']\")"),
    ({"tables": {"t": 3}}, "kernel.part_no_mapping(what=\"table 't'\", known='array, assume', value='3')"),
    ({"tables": {"t": "f32[8]"}}, "kernel.table_type(what=\"table 't'\", dtype='f32')"),
    (
        {"tables": {"t": {"array": "s32[8]", "assumes": []}}},
        (
            "kernel.part_unknown_key(what=\"table 't'\", key=\"'assumes'\", near=core.did_you_mean("
            "name='assume'), known='array, assume')"
        ),
    ),
    (
        {"tables": {"t": {"array": "s32[8]", "assume": "0 <= t < 4"}}},
        "kernel.part_no_list(what=\"table 't': assume\", value=\"'0 <= t < 4'\")",
    ),
    (
        {"tables": {"t": {"array": "s32[8]", "assume": [4]}}},
        "kernel.assumption_form(what=\"table 't'\", name='t', text='4')",
    ),
    (
        {"tables": {"t": {"array": "s32[8]", "assume": ["u is onto"]}}},
        "kernel.assumption_table(name='kernel', table='u', have='it has t')",
    ),
    (
        {"tables": {"t": {"array": "s32[8]", "assume": ["t is flat"]}}},
        "kernel.table_word(words='monotone, injective, onto', said='flat')",
    ),
    (
        {"tables": {"t": {"array": "s32[8]", "assume": ["0 <= t < i"]}}},
        "kernel.name_twice(name='i', both='one grid dimension and one size')",
    ),
    (
        {"scratch": [{"array": "f32[8]", "memory": "VMEM"}]},
        (
            "kernel.part_choice(what='scratch[0]: memory', known='vmem, smem, any, hbm, semaphore, "
            "host, vmem_shared, cmem, gmem, shared, regs, tmem', value=\"'VMEM'\", near="
            "core.did_you_mean(name='vmem'))"
        ),
    ),
    ({"scratch": [{"memory": "vmem"}]}, "kernel.part_missing_key(what='scratch[0]', key='array', value='memory')"),
    (
        {"scratch": [{"array": "dma_sem[2]"}]},
        "kernel.array_type(what='scratch[0]', found='dma_sem', near='; write for instance f32, bf16, s8 or pred')",
    ),
    ({"vmem_limit": "32M"}, "kernel.vmem_limit(value=\"'32M'\")"),
    ({"vmem_limit": 0}, "kernel.vmem_limit(value='0')"),
    (
        {"pipeline": "emit"},
        "kernel.part_choice(what='pipeline', known='pallas_call, emit_pipeline', value=\"'emit'\", near='')",
    ),
    (
        {"platform": "gpu"},
        (
            "kernel.part_choice(what='platform', known='tpu, triton, mosaic_gpu', value=\"'gpu'\", "
            "near=core.did_you_mean(name='tpu'))"
        ),
    ),
    ({"name": "two words"}, "kernel.kernel_name(value=\"'two words'\")"),
]


@pytest.mark.parametrize(("changed", "message"), WRONG_KERNELS, ids=[_name(c) for c, _ in WRONG_KERNELS])
def test_what_is_wrong_with_a_kernel_is_said(changed: dict[str, Any], message: str) -> None:
    """What, where, and what is known."""
    with pytest.raises(LayoutError) as raised:
        kernel(**changed)
    assert brief(raised.value.problem) == message


WRONG_OPERANDS: list[tuple[dict[str, Any], str]] = [
    (
        {"block_shape": [2, 3]},
        (
            "kernel.part_unknown_key(what='an operand', key=\"'block_shape'\", near=core.did_you_mean("
            "name='block'), known='name, array, block, index, memory, buffers, lookahead, revisit, live, "
            "pipelined, same_as, indexing_mode', at='inputs[0]')"
        ),
    ),
    (
        {"index_map": "i"},
        (
            "kernel.part_unknown_key(what='an operand', key=\"'index_map'\", near=core.did_you_mean("
            "name='index'), known='name, array, block, index, memory, buffers, lookahead, revisit, live, "
            "pipelined, same_as, indexing_mode', at='inputs[0]')"
        ),
    ),
    ({"name": "a b"}, "kernel.operand_name(name=\"'a b'\", at='inputs[0]')"),
    ({"name": 3}, "kernel.operand_name(name='3', at='inputs[0]')"),
    ({"array": "f32[8,6]{1,0}"}, "kernel.array_form(what='array', value=\"'f32[8,6]{1,0}'\", at='inputs[0]')"),
    ({"array": [8, 6]}, "kernel.array_form(what='array', value='[8, 6]', at='inputs[0]')"),
    (
        {"array": "float32[8,6]"},
        "kernel.array_type(what='array', found='float32', near=\"; did you mean 'f32'?\", at='inputs[0]')",
    ),
    ({"array": "f32[8,-6]"}, "kernel.size_least(what='array, dimension 1', least=0, size=-6, at='inputs[0]')"),
    ({"array": "f32[8,N-2]"}, "kernel.size_least(what='array, dimension 1', least=0, size='N - 2', at='inputs[0]')"),
    ({"block": [2]}, "kernel.block_rank(count=1, value='[2]', dims=2, at='inputs[0]')"),
    ({"block": [2, 3, 4]}, "kernel.block_rank(count=3, value='[2, 3, 4]', dims=2, at='inputs[0]')"),
    ({"block": [2, -3]}, "kernel.size_least(what='block, dimension 1', least=1, size=-3, at='inputs[0]')"),
    ({"block": [2, 0]}, "kernel.size_least(what='block, dimension 1', least=1, size=0, at='inputs[0]')"),
    ({"block": [2, "N - 3"]}, "kernel.size_least(what='block, dimension 1', least=1, size='N - 3', at='inputs[0]')"),
    ({"block": 3}, "kernel.block_no_list(value='3', at='inputs[0]')"),
    (
        {"block": [2, 3.0]},
        (
            "kernel.block_dimension(what='block, dimension 1', dimension='a size, null, \"Element(8, "
            '(1, 0))", "BoundedSlice(128)", "Blocked(8)" or "Squeezed()"\', value=\'3.0\', '
            "at='inputs[0]')"
        ),
    ),
    (
        {"block": [2, True]},
        (
            "kernel.block_dimension(what='block, dimension 1', dimension='a size, null, \"Element(8, "
            '(1, 0))", "BoundedSlice(128)", "Blocked(8)" or "Squeezed()"\', value=\'True\', '
            "at='inputs[0]')"
        ),
    ),
    (
        {"block": [2, "Elment(3)"]},
        (
            "kernel.block_kind(what='block, dimension 1', dimension='a size, null, \"Element(8, (1, "
            '0))", "BoundedSlice(128)", "Blocked(8)" or "Squeezed()"\', value="\'Elment(3)\'", near=core.'
            "did_you_mean(name='Element'), at='inputs[0]')"
        ),
    ),
    ({"block": [2, "Indirect(3)"]}, "kernel.indirect(what='block, dimension 1', at='inputs[0]')"),
    (
        {"block": [2, "Squeezed(3)"]},
        "kernel.squeezed_argument(what='block, dimension 1', inside=\"'3'\", at='inputs[0]')",
    ),
    (
        {"block": [2, "Element(3, (-1, 0))"]},
        "kernel.padding_negative(what='block, dimension 1', low=-1, high=0, at='inputs[0]')",
    ),
    (
        {"block": [2, {"element": 3, "padding": [1]}]},
        "kernel.padding_form(what='block, dimension 1', padding='[1]', at='inputs[0]')",
    ),
    (
        {"block": [2, {"blocked": 3, "padding": [1, 1]}]},
        "kernel.block_mapping(what='block, dimension 1', value=\"{'blocked': 3, 'padding': [1, 1]}\", at='inputs[0]')",
    ),
    (
        {"block": [2, {"elements": 3}]},
        (
            "kernel.part_unknown_key(what='block, dimension 1', key=\"'elements'\", near="
            "core.did_you_mean(name='element'), known='blocked, element, bounded, padding', at='inputs[0]')"
        ),
    ),
    ({"block": "(i, j) -> (i, j)", "index": [2, 3]}, "kernel.block_order(at='inputs[0]')"),
    ({"index": [2, 3]}, "kernel.block_order(at=\"inputs[0] 'x'\")"),
    ({"block": lambda i, j: (i, j)}, "kernel.block_order(at='inputs[0]')"),
    ({"index": 3}, "kernel.index_no_map(value='3', at=\"inputs[0] 'x'\")"),
    ({"index": "(i) -> (i, 0)"}, "kernel.index_names(names=1, grid='i, j', also='', at=\"inputs[0] 'x'\")"),
    ({"index": "(i, j) -> (i)"}, "kernel.index_rank(terms=1, block=2, at=\"inputs[0] 'x'\")"),
    ({"index": "(i, j) -> (i, z)"}, "kernel.index_unknown(name='z', known='i, j', at=\"inputs[0] 'x'\")"),
    ({"index": "(a, b) -> (i, 0)"}, "kernel.index_unknown(name='i', known='a, b', at=\"inputs[0] 'x'\")"),
    (
        {"index": "(i, j) -> (t[i], 0)"},
        "kernel.no_table(read='t[i]', args='t', known='the kernel has no tables', at=\"inputs[0] 'x'\")",
    ),
    (
        {"index": "(i, j) -> (i / 2, 0)"},
        "inputs[0] 'x': only + - * // % ^ min max select xor, comparisons, names and integers may stand here",
    ),
    (
        {"index": "(i, j) -> (i < 2, 0)"},
        "core.wrong_kind(term='i < 2', found='a condition', wanted='a number', at=\"inputs[0] 'x'\")",
    ),
    ({"index": "(i, j) -> (ds(i, 2), j)"}, "kernel.index_no_slice(k=0, block='2', at=\"inputs[0] 'x'\")"),
    ({"index": "(i, j) -> (ds(i), j)"}, "kernel.ds_arguments(args=1, at=\"inputs[0] 'x'\")"),
    ({"block": ["BoundedSlice(2)", 3]}, "kernel.index_needs_ds(k=0, at=\"inputs[0] 'x'\")"),
    ({"block": ["BoundedSlice(2)", 3], "index": None}, "kernel.bounded_needs_index(at=\"inputs[0] 'x'\")"),
    (
        {"index": lambda i, j: (i == 2, j)},
        (
            "core.map_decision(what='truth of == 2', index='i', "
            "instead='layoutproof.select(layoutproof.equal(a, b), x, y)', at=\"inputs[0] 'x'\")"
        ),
    ),
    (
        {"memory": "pltpu.VMEM"},
        (
            "kernel.part_choice(what='memory', known='vmem, smem, any, hbm, semaphore, host, "
            "vmem_shared, cmem, gmem, shared, regs, tmem', value=\"'pltpu.VMEM'\", near='', "
            "at='inputs[0]')"
        ),
    ),
    ({"buffers": 0}, "kernel.buffers(buffers='0', at=\"inputs[0] 'x'\")"),
    ({"buffers": True}, "kernel.buffers(buffers='True', at=\"inputs[0] 'x'\")"),
    ({"lookahead": 1}, "kernel.truth(key='lookahead', value='1', at=\"inputs[0] 'x'\")"),
    ({"live": "no"}, "kernel.truth(key='live', value=\"'no'\", at=\"inputs[0] 'x'\")"),
    (
        {"revisit": "never"},
        "kernel.part_choice(what='revisit', known='immediate, any', value=\"'never'\", near='', at=\"inputs[0] 'x'\")",
    ),
    ({"indexing_mode": "Unblock()"}, "kernel.indexing_mode(mode=\"'Unblock()'\", at='inputs[0]')"),
    ({"indexing_mode": "Unblocked(((1, 0),))"}, "kernel.unblocked_rank(pairs=1, rank=2, at='inputs[0]')"),
    (
        {"indexing_mode": "Unblocked(((1, 0), (1.5, 0)))"},
        "kernel.unblocked_form(text=\"'((1, 0), (1.5, 0))'\", at='inputs[0]')",
    ),
    (
        {"indexing_mode": "Unblocked(((1, 0), (1e999, 0)))"},
        "kernel.unblocked_form(text=\"'((1, 0), (1e999, 0))'\", at='inputs[0]')",
    ),
    (
        {"block": [2, f"Element(3, ({'9' * 5000}, 0))"]},
        "core.most_characters(text=5008, most=4096, at='inputs[0]: block, dimension 1')",
    ),
    (
        {"block": [2, "9" * 4000]},
        "inputs[0]: block, dimension 1: the integer 99999999999999999999.. has more than 20 digits",
    ),
    (
        {"array": f"f32[8,{'9' * 4000}]"},
        "inputs[0]: array, dimension 1: the integer 99999999999999999999.. has more than 20 digits",
    ),
    ({"indexing_mode": "Unblocked(7)"}, "kernel.unblocked_form(text=\"'7'\", at='inputs[0]')"),
    (
        {"indexing_mode": "Unblocked(((1, 0), (-2, 0)))"},
        "kernel.padding_negative(what='indexing_mode', low=-2, high=0, at='inputs[0]')",
    ),
    (
        {"indexing_mode": "Unblocked()", "block": ["Element(2)", 3]},
        "kernel.mode_twice(block='Element(2), 3', at='inputs[0]')",
    ),
    (
        {"indexing_mode": "Unblocked(((1, 0), (1, 0)))", "block": [2, None]},
        "kernel.mode_squeezed(k=1, low=1, high=0, at='inputs[0]')",
    ),
]


@pytest.mark.parametrize(("changed", "message"), WRONG_OPERANDS, ids=[_name(c) for c, _ in WRONG_OPERANDS])
def test_what_is_wrong_with_an_operand_is_said(changed: dict[str, Any], message: str) -> None:
    """What, where (the operand), and what is known."""
    with pytest.raises(LayoutError) as raised:
        operand(**changed)
    assert brief(raised.value.problem) == message
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
