"""The kernel rules against the real compiler: recorded rows, and random questions to the one installed here."""

from __future__ import annotations

import itertools
import random
import re
from dataclasses import replace
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import LayoutError, Unsupported
from layoutproof.core.expression import parse_expression
from layoutproof.core.size import symbol
from layoutproof.core.term import Term
from layoutproof.hardware.tpu import default_layout
from layoutproof.hardware.tpu_kernels import COMPILERS
from layoutproof.hardware.tpu_layouts import tile_of
from layoutproof.hardware.tpu_tiles import vmem_bytes
from layoutproof.kernel.kernel import Block, Kernel, Operand, Scratch, Table
from layoutproof.pallas.judge import kernel_target
from tests.hardware import compiler
from tests.recorded import rows

TYPES = {
    "float32": "f32", "bfloat16": "bf16", "float16": "f16", "int8": "s8", "uint8": "u8", "int4": "s4", "uint4": "u4",
    "int32": "s32", "uint32": "u32", "bool": "pred", "bool_": "pred", "int16": "s16", "uint16": "u16",
    "float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2", "float8_e4m3b11fnuz": "f8e4m3b11fnuz", "int2": "s2",
}  # fmt: skip


def operand(row: dict[str, Any]) -> tuple[Operand, Kernel]:
    dims, given, grid = row["array_shape"], row["block_shape"], row["grid"]
    names = tuple(f"g{k}" for k in range(len(grid)))
    block = tuple(_block(entry) for entry in given) if given is not None else tuple(Block("blocked", n) for n in dims)
    index = row.get("index_map")
    if given is None:
        terms: tuple[Term, ...] = (Term("int", 0),) * len(dims)
    elif index is None:
        terms = tuple(Term("name", names[k]) if k < len(grid) else Term("int", 0) for k in range(len(dims)))
    else:
        terms = tuple(parse_expression(_plain(text)) for text in index)
    options = row.get("options") or {}
    memory = options.get("space", "vmem")
    buffers = options.get("buffered")
    o = Operand("x", "in", tuple(dims), TYPES[row["dtype"]], block, terms, memory=memory, buffers=buffers)
    return o, Kernel("k", tuple(grid), names, (o,), semantics=tuple(options.get("dimsem") or ()))


def _block(entry: Any) -> Block:
    if entry is None:
        return Block("squeezed", 1)
    if isinstance(entry, int):
        return Block("blocked", entry)
    kinds = {"E": "element", "B": "blocked", "BE": "element", "S": "squeezed", "Sq": "squeezed", "BS": "bounded"}
    low, high = entry[2] if len(entry) > 2 else (0, 0)
    return Block(kinds[entry[0]], 1 if entry[0] in ("S", "Sq") else entry[1], low, high)


def _plain(text: str) -> str:
    text = re.sub(r"\bds\((.*),\d+\)$", r"\1", text.replace("rem(", "truncrem(").replace("div(", "truncdiv("))
    text = re.sub(r"pl\.|jnp\.|jax\.lax\.|lax\.", "", text)
    text = re.sub(r"(\w+)<<(\d)", r"shl(\1,\2)", text)
    return text.replace("minimum(", "min(").replace("where(", "select(").replace("maximum(", "max(")


def refused(row: dict[str, Any], version: str = "libtpu 0.0.42.1") -> str:
    o, k = operand(row)
    target = kernel_target(row["generation"], version)
    # the recorded kernels have an input and an output alike
    both = replace(k, operands=(o, replace(o, name="o", role="out")))
    over = [f"{m.name}: {m.used} of {m.limit} bytes" for m in target.memory(both) if m.used > m.limit]
    return target.refuses_block(o) or target.refuses_index(o) or "; ".join([*target.refuses_kernel(both), *over])


def known(row: dict[str, Any], why: str) -> str:
    """Why a row disagrees, when the reason is not a rule of blocks."""
    if row["tag"] in ("oob_const",):
        return "a constant block index past the end aborts the compiler: blocks_in_bounds refutes it"
    if row["dtype"] == "float16":
        return "the body is refused: float16 vectors cannot be loaded"
    if "bogus" in str(row.get("options")):
        return "a word that is no semantics is refused when a kernel is read"
    return ""


def row_major(row: dict[str, Any], o: Operand) -> bool:
    """Whether the array's default layout is what kernels get."""
    default = default_layout(row["array_shape"], ELEMENT_BITS[o.dtype], row["generation"])
    return default.minor_to_major == tuple(reversed(range(len(o.dims))))


@pytest.mark.parametrize("name", ["tpu_pallas_blocks", "tpu_pallas_random", "tpu_pallas_element"])
def test_recorded_rows(name: str) -> None:
    wrong = []
    for row in rows(f"{name}.jsonl"):
        try:
            why = refused(row)
        except Unsupported:
            # nobody knows which tiles XLA gives an operand that it copies first: some pass, some do not
            o, _ = operand(row)
            assert not row_major(row, o)
            continue
        if (why == "") is not row["accepted"] and not known(row, why):
            wrong.append((row, why))
    assert not wrong, f"{len(wrong)} rows, first: {wrong[:3]}"


def installed() -> str:
    """The version whose rules the installed compiler should follow; skips where there is none."""
    reason = compiler.available()
    if reason:
        pytest.skip(reason)
    from importlib.metadata import version

    found = f"libtpu {version('libtpu')}"
    return found if found in COMPILERS else COMPILERS[-1]


# bodies of kernels for v2 and v3 are refused for reasons of their own (masks)
GENERATIONS = ["v4", "v5e", "v5p", "v6e", "7x"]


MASKS = "asking is only supported for TPU v5+"
"""What v4 says of a body that loads a part of a register, whatever its block: v4, s8[64] in one block."""


def test_random_blocks_live() -> None:
    asked_of = installed()
    rng = random.Random(7)
    queries, expected = [], []
    while len(queries) < 60:
        dtype = rng.choice(["float32", "bfloat16", "int8", "int4", "int32"])
        rank = rng.choice([1, 2, 2, 2, 3])
        dims = [rng.choice([3, 8, 12, 32, 64, 96, 256, 300, 1024]) for _ in range(rank)]
        block = [rng.choice([n, 8, 16, 32, 64, 2]) for n in dims]
        block[-1] = rng.choice([dims[-1], 128, 256, 1024])
        grid = [-(-n // b) for n, b in zip(dims, block, strict=True)]
        row = {
            "generation": rng.choice(GENERATIONS), "dtype": dtype, "array_shape": dims, "block_shape": block,
            "grid": grid, "tag": "live",
        }  # fmt: skip
        o, k = operand(row)
        if not row_major(row, o):
            continue
        target = kernel_target(row["generation"], asked_of)
        if target.memory(k)[0].used > 2**20:
            continue
        queries.append(compiler.OneOperand(row["generation"], dtype, dims, block, grid, [f"g{d}" for d in range(rank)]))
        expected.append(target.refuses_block(o))
    answers = compiler.compile_kernels(queries)
    wrong = [
        (q, e, a[:300])
        for q, e, a in zip(queries, expected, answers, strict=True)
        if (e == "") is not (a == "") and MASKS not in a
    ]
    assert not wrong
    assert 10 < sum(a == "" for a in answers) < 55


def test_window_bytes_live() -> None:
    installed()
    rng = random.Random(11)
    queries, expected = [], []
    for _ in range(24):
        dtype, bits = rng.choice([("float32", 32), ("bfloat16", 16), ("int8", 8)])
        block = [rng.randint(1, 3), rng.choice([32, 64, 96]), rng.choice([128, 256, 512])]
        queries.append(
            compiler.OneOperand("v5e", dtype, [4 * block[0], *block[1:]], block, [4], ["g0", "0", "0"], limit=1)
        )
        expected.append(2 * vmem_bytes(block, bits))
    said = []
    for answer in compiler.compile_kernels(queries):
        found = re.search(r"size ([\d.]+)([KM]?)", answer)
        # small outputs are kept in VMEM by XLA, and then the kernel needs no window
        said.append(None if found is None else float(found[1]) * {"K": 2**10, "M": 2**20, "": 1}[found[2]])
    told = [(s, e) for s, e in zip(said, expected, strict=True) if s is not None]
    assert len(told) > 12
    assert all(abs(s - e) <= 0.01 * e for s, e in told), told


STARTS = {
    "g0*8": True, "8*g0": True, "(7-g0)*8": True, "g0*4*2": True, "g0*g0*8": True, "(g0//2)*16": True, "(g0%4)*8": True,
    "g0*4+g0*4": False, "g0*4": False, "g0": False, "0": True, "16": True, "12": False, "(g0*6)*4": True,
    "pl.multiple_of(g0*4,8)": True, "jnp.where(g0>2,16,8*g0)": True, "(g0*4+2)*2": False, "(g0*8)%12": False,
    "jnp.where(g0>2,12,8*g0)": False, "(g0+1)*8": True, "(g0*8)*1": True, "(g0*2)*(g0*4)": False, "g0*8+g1*4": False,
    "jnp.minimum(g0*8,60)": False, "(g0*2+2)*(g1*4+4)": False, "(g0*16)//2": False,
    "g0<<3": False, "(g0<<2)*2": False, "(g0<<3)+8": False,
}  # fmt: skip
LATER = (
    "g0*8+8", "8-g0*8", "jnp.minimum(g0*8,56)", "jnp.maximum(g0*8-8,0)", "(g0*2+2)*4",
    "(g0*4+2)*4", "(g0*2*(g1+1))*4", "(g0*8)%16", "g0*8+g1*16-8", "(g0*8+8)*3",
    "jnp.where(g0>2,16,8*g0+8)", "jnp.minimum(jnp.maximum(g0*8,0),56)", "pl.multiple_of(g0*4,8)+8",
)  # fmt: skip
"""What only later versions of the compiler follow."""


def test_the_alignment_prover_live() -> None:
    version = installed()
    starts = STARTS | dict.fromkeys(LATER, version not in COMPILERS[:2])
    queries = [
        compiler.OneOperand("v5e", "float32", [64, 256], [["E", 8], ["E", 128]], [8, 2], [text, "g1*128"])
        for text in starts
    ]
    answers = compiler.compile_kernels(queries)
    ours = []
    for text in starts:
        index = tuple(parse_expression(_plain(t)) for t in (text, "g1*128"))
        block = (Block("element", 8), Block("element", 128))
        o = Operand("x", "out", (64, 256), "f32", block, index)
        ours.append(kernel_target("v5e", version).refuses_index(o) == "")
    assert ours == list(starts.values())
    assert [a == "" for a in answers] == ours


def test_what_the_version_changes() -> None:
    o = Operand("x", "in", (64, 256), "s8", (Block("blocked", 8), Block("blocked", 128)), (Term("int", 0),) * 2)
    assert "Mosaic E2002, tile (32, 128)" in kernel_target("v5e").refuses_block(o)
    assert kernel_target("v5e", "0.0.50.1").refuses_block(o) == ""
    assert kernel_target("v5e").refuses_block(replace(o, dims=(60, 250))) == ""
    assert kernel_target("v5e").refuses_block(replace(o, dims=(60, 256))) == ""
    with pytest.raises(LayoutError, match=r"no rules for compiler '9.9'; measured: libtpu 0.0.42.1, libtpu 0.0.50.1"):
        kernel_target("v5e", "9.9")


def test_sizes_known_at_run_time() -> None:
    m, n = symbol("M"), symbol("N")
    o = Operand("x", "in", (m, n), "f32", (Block("blocked", 8), Block("blocked", 128)), (Term("int", 0),) * 2)
    assert kernel_target("v5e").refuses_block(o) == ""
    assert "neither all of them" in kernel_target("v5e").refuses_block(
        replace(o, block=(Block("blocked", 8), Block("blocked", 100)))
    )
    assert kernel_target("v5e").refuses_block(replace(o, block=(Block("blocked", m), Block("blocked", n)))) == ""


def test_memory_is_added_up() -> None:
    index = (Term("name", "i"), Term("int", 0))
    o = Operand("x", "in", (4096, 1024), "f32", (Block("blocked", 512), Block("blocked", 1024)), index)
    k = Kernel("k", (8,), ("i",), (o,), scratch=(Scratch((8, 128), "f32"),), tables=(Table("t", (8192, 4)),))
    vmem, smem = kernel_target("v5e").memory(k)
    assert (vmem.used, vmem.limit) == (2 * 2**21 + 4096, 16 * 2**20)
    assert (smem.used, smem.limit) == (4 * 2**20, 2**20)
    assert kernel_target("v5e").memory(replace(k, grid=(1,)))[0].used == 2**21 + 4096


@pytest.mark.parametrize("target", ["v2", "v3", "v4", "v4lite", "v5e", "v5p", "v6e", "7x"])
@pytest.mark.parametrize("bits", [1, 2, 4, 8, 16, 32, 64])
def test_one_rule_for_tiles(target: str, bits: int) -> None:
    """Where an array's default order is row-major, a kernel's operand has the default layout's own tile."""
    met = 0
    for dims in itertools.product((1, 2, 7, 8, 16, 24, 32, 64, 100, 128, 256), repeat=2):
        default = default_layout(dims, bits, target)
        if default.minor_to_major == (1, 0):
            met += 1
            assert tile_of(dims, bits, target) == default.tiles[0], dims
    for extent in (1, 17, 128, 300, 1024, 3000, 5000):
        assert tile_of((extent,), bits, target) == default_layout((extent,), bits, target).tiles[0]
    assert met > 30


@pytest.mark.parametrize(
    ("target", "dtype", "read", "written"),
    [
        ("v2", "s4", 16384, 1000 * 128),
        ("v2", "s2", 16384, 1008 * 128),
        ("v5e", "s4", 8192, 1000 * 128 // 2),
        ("v5e", "s2", 4096, 1008 * 128 // 4),
        ("v5e", "f32", 65536, 1000 * 128 * 4),
    ],
)
def test_what_a_copy_to_row_major_costs(target: str, dtype: str, read: int, written: int) -> None:
    """Rows are padded to the tile that the row-major array has, and elements take the bits that they are stored in."""
    operands = {
        "inputs": [{"name": "x", "array": f"{dtype}[1000,16]", "block": [1000, 16], "index": "(i) -> (0, 0)"}],
        "outputs": [{"name": "o", "array": "f32[8,128]", "block": [8, 128], "index": "(i) -> (0, 0)"}],
    }
    result = lp.ask("relayout", {"kernel": {"name": "k", "grid": {"i": 1}, **operands}}, target=target)
    assert f"before the kernel {read} bytes are read and {written} written" in result.reason
