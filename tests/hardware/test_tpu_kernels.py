"""The kernel rules against the real compiler: recorded rows, and random questions to the one installed here."""

from __future__ import annotations

import itertools
import random
import re
from dataclasses import replace
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.core.errors import LayoutError, Unsupported
from layoutproof.core.expression import parse_expression
from layoutproof.core.size import symbol
from layoutproof.core.term import Term
from layoutproof.hardware import tpu_kernels
from layoutproof.hardware.tpu import default_layout
from layoutproof.hardware.tpu_kernels import COMPILERS
from layoutproof.hardware.tpu_layouts import tile_of
from layoutproof.hardware.tpu_tiles import vmem_bytes
from layoutproof.kernel.kernel import Block, Kernel, Operand, Scratch, Table
from layoutproof.pallas.judge import kernel_target
from tests.hardware import compiler
from tests.hardware.compiler_questions import (
    LATER,
    SCALARS,
    STARTS,
    blocks_at_random,
    of_the_body,
    operand,
    refused_block,
    refused_scalar,
    refused_start,
    row_major,
    starting_at,
)
from tests.recorded import rows

pytestmark = pytest.mark.slow


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


def test_random_blocks_live() -> None:
    version = installed()
    queries = blocks_at_random(random.Random(7), 60, version)
    answers = compiler.compile_kernels(queries)
    wrong = [
        (q, a[:300])
        for q, a in zip(queries, answers, strict=True)
        if (refused_block(q, version) == "") is not (a == "") and not of_the_body(a)
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


def test_the_alignment_prover_live() -> None:
    version = installed()
    starts = STARTS | dict.fromkeys(LATER, version not in COMPILERS[:2])
    answers = compiler.compile_kernels([starting_at(text) for text in starts])
    ours = [refused_start(text, version) == "" for text in starts]
    assert ours == list(starts.values())
    assert [a == "" for a in answers] == ours


def test_scalars_live() -> None:
    """f32[]: JAX takes it in SMEM alone, libtpu there without a grid alone."""
    version = installed()
    answers = compiler.compile_scalars(SCALARS)
    assert [refused_scalar(query, version) == "" for query in SCALARS] == [answer == "" for answer in answers]
    assert any("Scalar windows not implemented" in answer for answer in answers)
    assert any("only blocks of rank >= 1" in answer for answer in answers)
    assert "" in answers


def test_scalars() -> None:
    """As JAX 0.10.2, 0.12.0.1 and libtpu 0.0.52 answered; the test above asks the installed ones."""
    taken = [query for query in SCALARS if refused_scalar(query, COMPILERS[-1]) == ""]
    assert {(query.memory, tuple(query.grid)) for query in taken} == {("smem", ())}
    assert len(taken) == 8


def test_what_the_version_changes() -> None:
    o = Operand("x", "in", (64, 256), "s8", (Block("blocked", 8), Block("blocked", 128)), (Term("int", 0),) * 2)
    assert "Mosaic E2002, tile (32, 128)" in kernel_target("v5e", "0.0.42.1").refuses_block(o)
    assert kernel_target("v5e", "0.0.50.1").refuses_block(o) == ""
    assert kernel_target("v5e", "0.0.42.1").refuses_block(replace(o, dims=(60, 250))) == ""
    assert kernel_target("v5e", "0.0.42.1").refuses_block(replace(o, dims=(60, 256))) == ""
    with pytest.raises(LayoutError, match=r"a compiler is a version of libtpu, not 'new'; measured: 0.0.42.1"):
        kernel_target("v5e", "new")


@pytest.mark.parametrize(
    ("asked", "rules"),
    [
        ("0.0.42.1", "libtpu 0.0.42.1"),
        ("libtpu 0.0.52", "libtpu 0.0.52"),
        ("0.0.49", "libtpu 0.0.49 (rules of 0.0.42.1)"),
        ("0.0.50", "libtpu 0.0.50 (rules of 0.0.42.1)"),
        ("0.0.51.3", "libtpu 0.0.51.3 (rules of 0.0.51)"),
        ("0.0.53.dev20261201+nightly", "libtpu 0.0.53.dev20261201+nightly (rules of 0.0.52)"),
        ("1.0", "libtpu 1.0 (rules of 0.0.52)"),
        ("0.0.17", "libtpu 0.0.17 (rules of 0.0.42.1)"),
    ],
)
def test_a_version_without_rules_has_those_of_the_nearest_older_one(asked: str, rules: str) -> None:
    assert kernel_target("v5e", asked).compiler == rules
    kernel = {"kernel": {"grid": [8], "outputs": [{"array": "f32[64,128]", "block": [8, 128], "index": "i -> (i, 0)"}]}}
    found = lp.ask("block_shape", kernel, target="v5e", compiler=asked)
    # whoever reads the verdict is told
    assert found.verdict is lp.Verdict.PROVED
    assert found.figures.get("compiler", "") == (rules if "(" in rules else "")


def test_the_installed_compiler_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = {"kernel": {"grid": [8], "inputs": [{"array": "s8[64,256]", "block": [8, 128], "index": "i -> (i, 0)"}]}}
    verdicts = {}
    for version in ("0.0.42.1", "0.0.50.1", "0.0.53", ""):
        monkeypatch.setattr(tpu_kernels, "installed", lambda version=version: version)
        verdicts[kernel_target("v5e").compiler] = lp.ask("block_shape", kernel, target="v5e").verdict.value
    assert verdicts == {
        "libtpu 0.0.42.1": "refuted",
        "libtpu 0.0.50.1": "proved",
        "libtpu 0.0.53 (rules of 0.0.52)": "proved",
        "libtpu 0.0.52": "proved",
    }


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


@pytest.mark.parametrize(
    ("target", "dims", "index", "tile"),
    [
        ("v5e", (60, 256), ("g0", "g1*128"), 8),
        ("v5e", (64, 60), ("g0*8", "4"), 128),
        ("v5e", (4, 256), ("g0*2", "g1*128"), 4),
        ("v5e", (64,), ("g0",), 128),
        ("v2", (64,), ("g0*128",), 256),
        ("v5e", (60, 256), ("0", "g1*128"), 0),
        ("v5e", (8, 256), ("g0*8", "g1*128"), 0),
        ("v5e", (64,), ("g0*128",), 0),
    ],
)
def test_a_window_as_long_as_the_array_must_start_at_a_tile_too(
    target: str, dims: tuple[int, ...], index: tuple[str, ...], tile: int
) -> None:
    """Each was compiled (libtpu 0.0.52): "Couldn't prove that tiling .. divides index"; until then we took them."""
    block = tuple(Block("element", n if n < 128 else 128) for n in dims)
    o = Operand("x", "out", dims, "f32", block, tuple(parse_expression(text) for text in index))
    why = kernel_target(target, "0.0.52").refuses_index(o)
    assert (f"cannot prove that {tile} divides" in why) is (tile > 0)
    assert (why == "") is (tile == 0)


@pytest.mark.parametrize(
    ("dims", "dtype", "index", "used"),
    [
        ((16,), "f32", "0", 1024),
        ((16,), "f32", "i", 1024),
        ((300,), "f32", "0", 2048),
        ((300,), "f32", "i", 3072),
        ((300,), "bf16", "0", 1024),
        ((1300,), "f32", "0", 6144),
    ],
)
def test_windows_are_rounded_up_to_1024_bytes(dims: tuple[int, ...], dtype: str, index: str, used: int) -> None:
    """The compiler's own figures on v4, v5e and v6e (libtpu 0.0.52), all buffers of a window together."""
    o = Operand("x", "in", dims, dtype, tuple(Block("blocked", n) for n in dims), (parse_expression(index),))
    assert kernel_target("v5e").memory(Kernel("k", (4,), ("i",), (o,)))[0].used == used
    two = Kernel("k", (4,), ("i",), (o, replace(o, name="y")), scratch=(Scratch((1, 128), "f32"),))
    assert kernel_target("v5e").memory(two)[0].used == 2 * used + 512


@pytest.mark.parametrize(
    ("columns", "inputs", "scratch", "v2", "v5e"),
    [
        (128, (), (), 2048, 1024),
        (512, (("i", 128),), (), 12288, 5120),
        (128, (("i", 512),), (), 10240, 5120),
        (384, (("i", 640),), (), 18432, 8192),
        (128, (("0", 128), ("0", 128), ("i", 256)), (), 14336, 5120),
        (128, (), ((8, 128),), 6144, 5120),
        (128, (), ((1, 128),), 6144, 1536),
        (128, (), ((1, 128), (1, 256)), 10240, 2560),
        (1152, (("0", 128),), ((20, 128),), 34816, 22528),
    ],
)
def test_scratch_and_windows_lie_one_behind_the_other(
    columns: int, inputs: tuple[tuple[str, int], ...], scratch: tuple[tuple[int, int], ...], v2: int, v5e: int
) -> None:
    """The compiler's own sums (libtpu 0.0.52): on v2 and v3 each begins at 4096 bytes, and has two rows at least."""

    def operand(role: str, index: str, size: int) -> Operand:
        places = (parse_expression("0"), parse_expression(index))
        return Operand("x", role, (1, 4 * size), "f32", (Block("blocked", 1), Block("blocked", size)), places)

    operands = (*(operand("in", index, size) for index, size in inputs), operand("out", "i", columns))
    kernel = Kernel("k", (4,), ("i",), operands, scratch=tuple(Scratch(dims, "f32") for dims in scratch))
    found = {target: kernel_target(target).memory(kernel)[0].used for target in ("v2", "v3", "v5e", "7x")}
    assert found == {"v2": v2, "v3": v2, "v5e": v5e, "7x": v5e}


@pytest.mark.parametrize(
    ("dtype", "rows", "block", "starts"),
    [
        ("s8", 64, 8, 8), ("s8", 64, 24, 8), ("s8", 64, 32, 32), ("s8", 96, 96, 32), ("s8", 60, 32, 8),
        ("s4", 128, 32, 8), ("s4", 128, 64, 64),
    ],
)  # fmt: skip
def test_a_window_of_whole_tiles_starts_at_one(dtype: str, rows: int, block: int, starts: int) -> None:
    """Compiled for v5e with starts of 8, 16, 32 and 64 rows (libtpu 0.0.52); until then 8 was enough for all."""
    o = Operand("x", "out", (rows, 256), dtype, (Block("element", block), Block("element", 128)), ())
    taken = [
        step
        for step in (8, 16, 32, 64)
        if not kernel_target("v5e", "0.0.52").refuses_index(
            replace(o, index=(parse_expression(f"g0*{step}"), Term("int", 0)))
        )
    ]
    assert taken == [step for step in (8, 16, 32, 64) if step % starts == 0]
