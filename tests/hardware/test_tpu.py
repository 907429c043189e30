"""The default-layout rule against the real TPU compiler: recorded answers, and live ones where it is installed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from importlib.metadata import version
from math import prod
from typing import Any

import pytest

from layoutproof.core.errors import LayoutError
from layoutproof.core.size import symbol
from layoutproof.hardware.tpu import MOST_ELEMENTS, DefaultLayout, default_layout
from layoutproof.hardware.tpu_chips import CHIPS, KIB, MIB, generation
from tests.hardware import compiler
from tests.recorded import rows

pytestmark = pytest.mark.slow

BITS = {
    **dict.fromkeys(("int1", "uint1"), 1),
    **dict.fromkeys(("int2", "uint2"), 2),
    **dict.fromkeys(("int4", "uint4", "float4_e2m1fn"), 4),
    **dict.fromkeys(("bool", "int8", "uint8", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz"), 8),
    **dict.fromkeys(("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"), 8),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 16),
    **dict.fromkeys(("int32", "uint32", "float32"), 32),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 64),
    "complex128": 128,
}

EDGES = (
    0,
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    9,
    31,
    32,
    33,
    63,
    64,
    65,
    127,
    128,
    129,
    255,
    256,
    257,
    511,
    512,
    513,
    1023,
    1024,
    1025,
)


def random_query(rng: random.Random) -> tuple[str, str, tuple[int, ...]]:
    shape = tuple(
        rng.choice(EDGES[1:]) if rng.random() < 0.6 else rng.choice((rng.randint(1, 40), rng.randint(0, 1025)))
        for _ in range(rng.randint(0, 6))
    )
    if prod(extent or 1 for extent in shape) > MOST_ELEMENTS:
        return random_query(rng)
    return rng.choice(list(compiler.TOPOLOGIES)), rng.choice(list(BITS)), shape


def test_equals_every_recorded_answer() -> None:
    """Each row the real compiler answered: same order, tiles and element bits, and the same text."""
    wrong = []
    for row in rows("tpu_default_layouts.jsonl"):
        ours = default_layout(row["shape"], BITS[row["dtype"]], row["generation"])
        fields = (list(ours.minor_to_major), [list(tile) for tile in ours.tiles], ours.element_bits)
        if (*fields, str(ours)) != (row["minor_to_major"], row["tiling"], row["element_bits"], row["text"]):
            wrong.append((row, str(ours)))
    assert wrong == []


def mirrored(shape: Sequence[int], bits: int, target: str) -> str:
    """The rule with every tie broken the other way (rank 2): the smallest dimension wins, not the largest."""
    layout = default_layout(tuple(reversed(shape)), bits, target)
    return str(DefaultLayout(tuple(1 - d for d in layout.minor_to_major), layout.tiles, layout.element_bits))


FAULTS = {
    "ties broken the other way": mirrored,
    "first generations as the later ones": lambda s, b, t: str(default_layout(s, b, "v5e" if t in ("v2", "v3") else t)),
    "v4 lite as v4": lambda s, b, t: str(default_layout(s, b, t.replace("lite", ""))),
    "sub-byte types as bytes": lambda s, b, t: str(default_layout(s, max(b, 8), t)),
    "zero extents counted as one": lambda s, b, t: str(default_layout([d or 1 for d in s], b, t)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_recorded_answers_catch_a_wrong_rule(fault: str) -> None:
    """A planted fault must disagree with the recorded answers somewhere, else they could not find a real one."""
    matrices = [row for row in rows("tpu_default_layouts.jsonl") if len(row["shape"]) == 2]
    wrong = [r for r in matrices if FAULTS[fault](r["shape"], BITS[r["dtype"]], r["generation"]) != r["text"]]
    assert 0 < len(wrong) < len(matrices)


@pytest.mark.parametrize(
    ("dims", "bits", "target", "text"),
    [
        ((1000, 5), 32, "v5e", "{0,1:T(8,128)}"),
        ((105, 100), 32, "v5e", "{0,1:T(8,128)}"),
        ((104, 100), 32, "v5e", "{1,0:T(8,128)}"),
        ((64, 2, 3), 32, "v5e", "{0,1,2:T(2,128)}"),
        ((2, 7, 8, 11, 10), 8, "v5e", "{3,2,4,1,0:T(8,128)(4,1)}"),
        ((1000, 1), 32, "v5e", "{0,1:T(1,128)}"),
        ((3, 256), 32, "v5e", "{1,0:T(4,128)}"),
        ((), 32, "v5e", "{:T(128)}"),
        ((), 16, "v5e", "{:T(256)}"),
        ((), 32, "v2", "{:T(256)}"),
        ((128,), 32, "v5e", "{0:T(128)}"),
        ((129,), 32, "v5e", "{0:T(256)}"),
        ((257,), 32, "v5e", "{0:T(512)}"),
        ((513,), 32, "v5e", "{0:T(1024)}"),
        ((17,), 16, "v5e", "{0:T(256)(128)(2,1)}"),
        ((0, 3), 32, "v5e", "{1,0}"),
        ((0, 3), 4, "v5e", "{1,0:E(4)}"),
        ((0, 3), 4, "v3", "{1,0}"),
        ((64, 256), 8, "v4", "{1,0:T(32,128)(4,1)}"),
        ((64, 256), 8, "v4lite", "{1,0:T(8,128)(4,1)}"),
        ((60, 250), 8, "v4", "{1,0:T(8,128)(4,1)}"),
        ((64, 256), 4, "v4lite", "{1,0:T(64,128)(8,1)E(4)}"),
        ((64, 256), 4, "v2", "{1,0:T(8,128)(4,1)}"),
        ((128, 256), 2, "v6e", "{1,0:T(128,128)(16,1)E(2)}"),
        ((64, 256), 16, "7x", "{1,0:T(8,128)(2,1)}"),
        ((16, 256), 64, "7x", "{1,0:T(8,128)}"),
        ((16, 256), 128, "v2", "{1,0:T(8,128)}"),
        # 1 and 2 bits: the order is chosen with 8 rows, and no padding in the tile itself decides a tie
        ((7, 27, 1, 982), 2, "v5e", "{3,0,2,1:T(16,128)(16,1)E(2)}"),
        ((32, 1024, 8), 1, "v4", "{1,0,2:T(32,128)(32,1)E(1)}"),
        ((5000,), 1, "v2", "{0:T(4096)(128)(4,1)}"),
    ],
)
def test_named_examples(dims: tuple[int, ...], bits: int, target: str, text: str) -> None:
    """Answers of the real compiler (libtpu 0.0.42.1), written out."""
    assert str(default_layout(dims, bits, target)) == text


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        *((name, name) for name in CHIPS),
        ("tpu7x", "7x"),
        ("TPU7x", "7x"),
        ("v5", "v5p"),
        ("TPU v5", "v5p"),
        ("v4 lite", "v4lite"),
        ("TPU v5 lite", "v5e"),
        (" V6  Lite ", "v6e"),
        ("v4 megacore", "v4"),
        ("v5-lite", "v5e"),
    ],
)
def test_generation_names(name: str, canonical: str) -> None:
    """Canonical names stay, the compiler's other names and device kinds are taken in any case and spacing."""
    assert generation(name) == canonical


@pytest.mark.parametrize("name", ["v7x", "v1", "", "tpu", "v6p", "h100", "v5litepod-4"])
def test_unknown_generation(name: str) -> None:
    """A name the compiler does not know is refused with the list of those it does."""
    with pytest.raises(LayoutError, match=r"(K|k)nown: v2, v3, v4, v4lite, v5e, v5p, v6e, 7x$"):
        generation(name)


@pytest.mark.parametrize(
    ("dims", "bits", "problem"),
    [
        ((symbol("N"), 128), 32, "[N, 128]: the default layout depends on divisibility; give numbers"),
        ((2.0, 128), 32, "[2.0, 128]: the default layout depends on divisibility; give numbers"),
        ((8, -1), 32, "[8, -1]: an extent is never negative"),
        ((2**40, 2**9), 8, f"[{2**40}, 512] has more than 2**48 elements; no default layout is known above that"),
        ((8, 8), 6, "no default layout for 6-bit elements: the TPU compiler (libtpu 0.0.42.1) refuses these types"),
        ((8, 8), 12, "no default layout for 12-bit elements; known widths are 1, 2, 4, 8, 16, 32, 64, 128"),
    ],
)
def test_bad_input(dims: Any, bits: int, problem: str) -> None:
    """What has no default layout is refused with the value and the rule."""
    with pytest.raises(LayoutError) as caught:
        default_layout(dims, bits, "v5e")
    assert str(caught.value) == problem


@pytest.fixture
def live() -> None:
    if reason := compiler.available():
        pytest.skip(reason)


@pytest.mark.usefixtures("live")
def test_equals_the_real_compiler() -> None:
    """3,000 random arrays over all generations, widths and ranks 0 to 6, edge extents favoured: no disagreement."""
    rng = random.Random(20260617)
    queries = [random_query(rng) for _ in range(3000)]
    answers = compiler.ask_default_layouts(queries)
    ours = [str(default_layout(shape, BITS[dtype], target)) for target, dtype, shape in queries]
    assert [row for row in zip(queries, ours, answers, strict=True) if row[1] != row[2]] == []


@pytest.mark.usefixtures("live")
def test_the_real_compiler_refuses_six_bits() -> None:
    """Our refusal of 6-bit types is the compiler's: it has no such types."""
    assert (
        compiler.ask_default_layouts([("v5e", "float6_e2m3fn", (8, 128)), ("v5e", "float6_e3m2fn", ())]) == [None] * 2
    )


@pytest.mark.usefixtures("live")
def test_an_abort_names_its_query() -> None:
    """A query that kills the compiler is reported with its number, itself and the failed check, never swallowed."""
    queries = [("v5e", "int8", (8, 128)), ("v5e", "float32", (2**31 - 1, 2**31 - 1)), ("v5e", "int8", (8, 128))]
    with pytest.raises(
        compiler.CompilerDied, match=r"at query 1: .*2147483647(.|\n)*overflow in static extent product"
    ):
        compiler.ask_default_layouts(queries)


@pytest.mark.usefixtures("live")
def test_allotted_bytes_round_up_the_first_tile_level() -> None:
    """The compiler allots the extents rounded up by the first tile level, times the stored width, for defaults too."""
    rng = random.Random(7)
    shapes = [(16, 256), (3, 256), (1000, 5), (17,), (), (3, 5, 300), (64, 130)]
    queries = []
    sizes = []
    for shape in shapes:
        target, dtype = rng.choice(("v2", "v4", "v5e", "7x")), rng.choice(("float32", "bfloat16", "bool", "int4"))
        layout = default_layout(shape, BITS[dtype], target)
        queries.append(compiler.Sized(target, dtype, shape, layout.minor_to_major, layout.tiles, layout.element_bits))
        tile = layout.tiles[0]
        physical = [shape[d] for d in reversed(layout.minor_to_major)]
        physical = [1] * (len(tile) - len(physical)) + physical
        tiled = [-(-n // t) * t for n, t in zip(physical[-len(tile) :], tile, strict=True)]
        bits = layout.element_bits or max(8, BITS[dtype])
        sizes.append(prod(physical[: -len(tile)]) * prod(tiled) * bits // 8)
    literal = [
        compiler.Sized("v5e", "float32", (16, 256), (0, 1), ((8, 128),)),
        compiler.Sized("v5e", "bool", (16, 300), (1, 0), ((8, 128), (4, 1)), 1),
    ]
    assert compiler.compile_sizes([*queries, *literal]) == [*sizes, 131072, 768]


@pytest.mark.usefixtures("live")
def test_memory_equals_the_real_compiler() -> None:
    """The compiler accepts just what the table says and refuses one step more, in HBM and in VMEM."""
    if (installed := version("libtpu")) != "0.0.52":
        pytest.skip(f"the table speaks for libtpu 0.0.52; {installed} is installed")
    arrays = [
        compiler.Sized(name, "float32", (1024 * size, 256), (1, 0), ((8, 128),))
        for name, memory in CHIPS.items()
        for size in (memory.hbm // MIB, memory.hbm // MIB + 1)
    ]
    kernels = [
        compiler.Windows(name, most + more, limit)
        for name, memory in CHIPS.items()
        for most, limit in ((memory.vmem_scoped, 0), (memory.vmem, 1 << 30))
        for more in (0, 16 * KIB)
    ]
    assert compiler.compile_sizes(arrays) == [size for m in CHIPS.values() for size in (m.hbm, None)]
    assert compiler.compile_windows(kernels) == [True, False] * 2 * len(CHIPS)
