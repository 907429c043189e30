"""Where elements are, one by one and as tables, and arrays moved into a memory and back."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import IndexMap, Memory
from layoutproof.core.space import Space
from layoutproof.crosschecks.pad_reshape import pad_reshape_transpose
from layoutproof.layouts.xla.shape import XlaLayout
from layoutproof.questions.evaluate import locate, pack, table, unpack
from layoutproof.registry.read import map_of, read_layout
from layoutproof.solvers import arrays
from tests.questions.layouts_at_random import xla_layouts
from tests.recorded import rows
from tests.said import Said, raises

pytestmark = pytest.mark.slow

REPLICATED = IndexMap(
    Space(("i", "j"), (4, 2)),
    Space(("lane", "row"), (16, 2)),
    lambda x, c, _: (x[0] + 4 * c[0], x[1]),
    Space(("r",), (3,)),
)


def by_place(m: IndexMap) -> np.ndarray:
    """The table, one plain int after the other."""
    m = m.flat() if m.memory is not None else m
    shape = tuple(int(e) for e in m.domain.extents)
    places = [m.at(index) for index in np.ndindex(*shape)]
    axes = len(places[0])
    return np.array(places, dtype=np.int64).reshape(shape if axes == 1 else (*shape, axes))


# --- locate


def test_the_documents_number() -> None:
    """f32[3,5]{1,0:T(2,2)}: element (2,3) is at offset 17 (docs/tiled_layout.md)."""
    assert locate("f32[3,5]{1,0:T(2,2)}", (2, 3)) == [{"offset": 17}]


def test_published_linear_indices() -> None:
    """Every linear index that XLA's tests and documents state, by `locate` and in the table."""
    checked = 0
    for row in rows("xla_linear_index_and_size_cases.jsonl"):
        if row["kind"] != "linear_index":
            continue
        assert locate(row["shape"], row["index"]) == [{"offset": row["expected"]}], row
        assert table(row["shape"])[tuple(row["index"])] == row["expected"], row
        checked += 1
    assert checked > 20


def test_places_have_the_names_of_the_axes_one_per_replica() -> None:
    """Without memory a place is named coordinates, and an element with replicas has one place per replica."""
    assert locate(REPLICATED, (3, 1)) == [{"lane": lane, "row": 1} for lane in (3, 7, 11)]
    assert locate("(i < 9, j < 4) -> (i // 4, j, i % 4)", (6, 2)) == [{"p0": 1, "p1": 2, "p2": 2}]


def test_numpy_integers_are_indices() -> None:
    """An index taken from an array is as good as ints."""
    assert locate("f32[3,5]{1,0:T(2,2)}", np.array([2, 3])) == [{"offset": 17}]


@pytest.mark.parametrize(
    ("layout", "index", "message"),
    [
        (
            "f32[3,5]{1,0}",
            (2,),
            Said("questions.index_rank", index="(2,)", found=1, layout="f32[3,5]{1,0}", expected=2),
        ),
        (
            "f32[3,5]{1,0}",
            (2, 5),
            Said("questions.index_outside", index=5, dimension=1, name="j", last=4, layout="f32[3,5]{1,0}"),
        ),
        (
            "f32[3,5]{1,0}",
            (-1, 0),
            Said("questions.index_outside", index=-1, dimension=0, name="i", last=2, layout="f32[3,5]{1,0}"),
        ),
        (
            "f32[3,0]{1,0}",
            (0, 0),
            Said("questions.index_of_empty", index=0, dimension=1, name="j", layout="f32[3,0]{1,0}"),
        ),
        ("f32[3,5]{1,0}", (1.0, 2), Said("questions.index_type", what="an index", found="(1.0, 2)")),
        ("f32[3,5]{1,0}", 7, Said("questions.index_type", what="an index", found="7")),
        ("f32[N,5]{1,0}", (0, 0), Said("questions.size_without_value", layout="f32[N,5]{1,0}", size="N")),
        ("(i < 4) -> (7 // i)", (0,), "divides by zero at (0,)"),
    ],
)
def test_bad_indices_are_refused(layout: str, index: Any, message: Said | str) -> None:
    """The value and the rule it breaks are named."""
    with raises(LayoutError, message):
        locate(layout, index)


# --- table


@given(xla_layouts())
def test_the_table_is_place_on_every_index(layout: XlaLayout) -> None:
    """Tables of random tiled layouts equal `place` on plain ints, element by element."""
    if 0 in layout.dims:
        assert table(layout).shape == layout.dims
    else:
        np.testing.assert_array_equal(table(layout), by_place(layout.index_map()))


@pytest.mark.parametrize(
    "text",
    [
        "(i < 7, j < 9) -> (i // 2, (i * 9 + j) % 5, max(i, j), 3)",
        "(i < 7, j < 9) -> (select(i < j and not (i == 2), i - j, 4 * j), xor(i, j), min(7, i) - 3)",
        "(i < 7, j < 9) -> (select(i < 3 or j != 4, i % (j + 1), (i - 5) // (j + 2)))",
        "(i < 7, j < 5) -> (i // 3 % 2, 0 - i * j)",
        "(i < 5000, j < 3) -> (i % 2048 // 3, i % 2)",
        "(i < 6000) -> (i // 7 * 3 + 11)",
        {"map": {"index": "() -> (5)", "shape": []}},
        "f32[3,5] strides (-4,0)",
        "f32[7,3000] strides (3001,-1) offset 2999",
    ],
)
def test_tables_of_maps(text: Any) -> None:
    """Coordinates along one more axis (none for a single one), for linear maps, nested divisions, and anything else."""
    m = map_of(read_layout(text))
    found = table(text)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, by_place(m))


@pytest.mark.parametrize("chunk", [1, 7, 64])
@pytest.mark.parametrize("run", [2, 5])
def test_chunks_and_runs_do_not_show(monkeypatch: pytest.MonkeyPatch, chunk: int, run: int) -> None:
    """However the work is cut, the table is the same."""
    monkeypatch.setattr(arrays, "CHUNK", chunk)
    monkeypatch.setattr(arrays, "_RUN", run)
    for text in (
        "f32[3,40,2]{2,1,0:T(3,2)(2)}",
        "f32[2,7,9]{0,2,1:T(*,4,3)}",
        "f32[37]{0:T(8)(3)}",
        "f32[13,11]{0,1}",
        "(i < 9, j < 8) -> (i * j)",
        f"(i < 9, j < 8) -> ((i + j) * {2**64} // {2**63})",
    ):
        np.testing.assert_array_equal(table(text), by_place(map_of(read_layout(text))))


def test_large_numbers_are_exact_or_refused() -> None:
    """Steps beyond 64 bits are computed exactly; a place beyond them is refused with the number, never wrapped."""
    np.testing.assert_array_equal(table(f"(i < 3) -> (i * {2**66} // {2**65})"), [0, 2, 4])
    np.testing.assert_array_equal(table(f"(i < 3) -> (i * {2**62} - {2**62})"), [-(2**62), 0, 2**62])
    with pytest.raises(LayoutError, match=f"the place {2**65} does not fit into 64 bits"):
        table(f"(i < 3) -> (i * {2**64})")
    with pytest.raises(LayoutError, match=f"the place -{2**63} does not fit"):
        table(f"(i < 3) -> (0 - i * {2**62})")


def test_huge_tables_are_refused_with_their_size() -> None:
    """More than 16 GiB is an error that says how much it would be."""
    with raises(
        LayoutError,
        Said("questions.table_bytes", layout="f32[1048576,1048576]{1,0}", bytes=8796093022208, most=17179869184),
    ):
        table(f"f32[{2**20},{2**20}]{{1,0}}")
    with raises(
        LayoutError,
        Said("questions.table_bytes", layout="(i < 1073741824) -> (i, i, i)", bytes=25769803776, most=17179869184),
    ):
        table(f"(i < {2**30}) -> (i, i, i)")


def test_tables_without_a_meaning_are_refused() -> None:
    """Run-time sizes, divisions by zero, and a replica that is not named have no table."""
    with raises(LayoutError, Said("questions.size_without_value", layout="f32[3,M]{1,0}", size="M")):
        table("f32[3,M]{1,0}")
    with pytest.raises(LayoutError, match="divides by zero"):
        table("(i < 3) -> (5 // i)")
    with pytest.raises(LayoutError, match="divides by zero"):
        table("(i < 3, j < 2) -> (i * j % (i - 1))")
    with raises(LayoutError, Said("questions.replica_missing", layout="the map of (i < 4, j < 2)", places=3)):
        table(REPLICATED)
    with raises(LayoutError, Said("questions.index_type", what="a replica", found="('r',)")):
        table(REPLICATED, replica=("r",))  # type: ignore[arg-type]
    with raises(
        LayoutError,
        Said("questions.replica_outside", replica="(3,)", extents="(3,)", layout="the map of (i < 4, j < 2)"),
    ):
        table(REPLICATED, replica=(3,))


def test_a_replica_that_is_named_has_a_table() -> None:
    """Each replica has its own table."""
    found = table(REPLICATED, replica=(2,))
    assert found.shape == (4, 2, 2)
    assert found[3, 1].tolist() == [11, 1]


def test_empty_tables_keep_their_shape() -> None:
    """An array without elements has a table without entries, of its own shape."""
    assert table("f32[0,5]{1,0:T(2,2)}").shape == (0, 5)
    assert table("(i < 0, j < 5) -> (i, j, i)").shape == (0, 5, 3)


@given(st.integers(1, 6), st.integers(1, 300), st.integers(1, 300), st.integers(1, 300))
def test_bounds_hold(extent: int, factor: int, divisor: int, bound: int) -> None:
    """Where steps are said to fit below a bound, the largest step does."""
    m = map_of(read_layout(f"(i < {extent}) -> (i * {factor} // {divisor} - i % {divisor})"))
    if arrays.fits(m, largest=bound):
        steps = [n for i in range(extent) for n in (i, i * factor, i * factor // divisor, i % divisor, *m.at((i,)))]
        assert max(map(abs, (*steps, factor, divisor))) <= bound


# --- pack and unpack


def image_by_hand(layout: XlaLayout, array: np.ndarray) -> bytes:
    """The image by the other definition of tiling, and Python's own integers for the bits."""
    memory = layout.index_map().memory
    assert memory is not None
    line = pad_reshape_transpose(layout, array)
    if memory.bits >= 8:
        width, extra = memory.natural_bits // 8, (memory.bits - memory.natural_bits) // 8
        raw = line.tobytes()
        return b"".join(raw[k : k + width] + bytes(extra) for k in range(0, len(raw), width))
    number = 0
    for place, element in enumerate(line.view(np.uint8).tolist()):
        number |= (element & ((1 << memory.bits) - 1)) << (memory.bits * place)
    return number.to_bytes(-(-line.size * memory.bits // 8), "little")


def some(shape: tuple[int, ...], dtype: Any, bits: int = 8) -> np.ndarray:
    """Arrays of random bits; below a byte only values of `bits` bits."""
    random = np.random.default_rng(7)
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return random.integers(0, 2, shape).astype(bool)
    if bits < 8 and dtype == np.int8:
        return random.integers(-(1 << bits - 1), 1 << bits - 1, shape).astype(dtype)
    raw = random.integers(0, 256 if bits >= 8 else 1 << bits, (*shape, dtype.itemsize)).astype(np.uint8)
    return raw.view(dtype).reshape(shape)


def same_bits(left: np.ndarray, right: np.ndarray) -> bool:
    """Equal type, shape and bytes, so that NaN equals itself."""
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


WIDTHS = [
    ("pred[5,9]{1,0:T(2,4)}", np.bool_, 8),
    ("pred[5,9]{1,0:T(2,4)E(1)}", np.bool_, 1),
    ("pred[5,9]{1,0:T(2,4)E(32)}", np.bool_, 8),
    ("s4[5,9]{1,0:T(2,4)(2,1)}", ml_dtypes.int4, 4),
    ("s4[5,9]{1,0:T(2,4)(2,1)E(4)}", ml_dtypes.int4, 4),
    ("u4[5,9]{1,0:T(2,4)(2,1)E(4)}", ml_dtypes.uint4, 4),
    ("s2[5,9]{1,0:E(2)}", ml_dtypes.int2, 2),
    ("u1[5,9]{0,1:E(1)}", ml_dtypes.uint1, 1),
    ("f4e2m1fn[5,9]{1,0:E(4)}", ml_dtypes.float4_e2m1fn, 4),
    ("s8[5,9]{1,0:T(2,4)(4,1)}", np.int8, 8),
    ("f8e4m3fn[5,9]{1,0:T(2,4)(4,1)}", ml_dtypes.float8_e4m3fn, 8),
    ("f8e8m0fnu[5,9]{1,0}", ml_dtypes.float8_e8m0fnu, 8),
    ("bf16[5,9]{1,0:T(2,4)(2,1)}", ml_dtypes.bfloat16, 8),
    ("bf16[5,9]{1,0:T(2,4)(2,1)E(32)}", ml_dtypes.bfloat16, 8),
    ("f16[5,9]{0,1:L(64)}", np.float16, 8),
    ("u16[5,9]{1,0}", np.uint16, 8),
    ("s32[5,9]{1,0:T(2,2)}", np.int32, 8),
    ("f32[5,9]{1,0:T(*,3)}", np.float32, 8),
    ("f64[5,9]{1,0:T(8,4)}", np.float64, 8),
    ("u64[5,9]{1,0:T(8,4)}", np.uint64, 8),
    ("c64[5,9]{1,0:T(8,4)}", np.complex64, 8),
    ("c128[5,9]{1,0:T(8,4)}", np.complex128, 8),
    ("s32[5,9]{1,0:T(2,2)M(5)}", np.int32, 8),
]


@pytest.mark.parametrize(("text", "dtype", "bits"), WIDTHS, ids=[w[0] for w in WIDTHS])
def test_every_width_goes_there_and_back(text: str, dtype: Any, bits: int) -> None:
    """The image is what the other definition of tiling makes; unpacked it is the array, in the element type's dtype."""
    layout = read_layout(text, "xla")
    array = some((5, 9), dtype, bits)
    image = pack(layout, array)
    assert image.dtype == np.uint8
    prefix = layout.metadata_bytes
    assert image.tobytes() == bytes(prefix) + image_by_hand(layout, array)
    assert same_bits(unpack(layout, image), array)
    assert same_bits(unpack(layout, image.tobytes()), array)


@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_narrow_elements_as_bytes(bits: int, dtype: Any) -> None:
    """Types below a byte may come one per byte as int8 or uint8, and come back sign-extended or not."""
    layout = XlaLayout(f"s{bits}", (7, 3), ("", ""), (1, 0), ((2, 2),), element_bits=bits)
    array = some((7, 3), dtype, bits)
    image = pack(layout, array)
    assert image.tobytes() == image_by_hand(layout, array)
    assert same_bits(unpack(layout, image, dtype), array)


@given(xla_layouts("s4", most_bits=4), st.data())
@example(XlaLayout("s4", (0, 3), ("", ""), (1, 0), ((2, 2),), 8, element_bits=4), None)
def test_random_layouts_go_there_and_back(layout: XlaLayout, data: Any) -> None:
    """Any layout, stars and repeated tiles included, packed or one per byte: exactly the allotted bytes, and back."""
    bits = layout.element_bits or 8
    seed = 0 if data is None else data.draw(st.integers(0, 2**32 - 1))
    array = np.random.default_rng(seed).integers(0, 1 << bits, layout.dims).astype(np.uint8)
    image = pack(layout, array)
    assert image.tobytes() == image_by_hand(layout, array)
    assert same_bits(unpack(layout, image, np.uint8), array)


def test_the_lower_offset_has_the_lower_bits() -> None:
    """s4 with E(4): elements 1, 2, 3 are the bytes 0x21, 0x03."""
    assert pack("s4[3]{0:E(4)}", np.array([1, 2, 3], np.int8)).tolist() == [0x21, 0x03]
    assert pack("s4[3]{0:E(4)}", np.array([-1, 0, -8], np.int8)).tolist() == [0x0F, 0x08]
    assert pack("pred[9]{0:E(1)}", np.array([1, 0, 1, 0, 0, 0, 0, 0, 1], bool)).tolist() == [0b101, 1]


def test_wide_elements_are_followed_by_zeros() -> None:
    """pred with E(32) is one byte and three zeros, little-endian."""
    assert pack("pred[2]{0:E(32)}", np.array([True, True])).tolist() == [1, 0, 0, 0, 1, 0, 0, 0]


def test_true_is_any_byte_but_zero() -> None:
    """A byte of 2 in a pred memory is true, and the array a valid one."""
    found = unpack("pred[3]{0}", bytes([0, 1, 2]))
    assert found.dtype == np.bool_
    assert found.view(np.uint8).tolist() == [0, 1, 1]


def test_byte_order_of_the_array_does_not_matter() -> None:
    """A big-endian or non-contiguous array of the same numbers gives the same little-endian image."""
    array = np.arange(15, dtype="<i4").reshape(3, 5)
    image = pack("s32[3,5]{1,0:T(2,2)}", array)
    np.testing.assert_array_equal(pack("s32[3,5]{1,0:T(2,2)}", array.astype(">i4")), image)
    np.testing.assert_array_equal(pack("s32[3,5]{1,0:T(2,2)}", np.asfortranarray(array)), image)
    assert unpack("s32[3,5]{1,0:T(2,2)}", image, ">i4").tolist() == array.tolist()


def test_views_are_packed() -> None:
    """A strided memory with holes holds its elements at their strides, and zeros in the holes."""
    assert pack("s8[2,2] strides (4,-1) offset 1 in 7", np.array([[1, 2], [3, 4]], np.int8)).tolist() == [
        2, 1, 0, 0, 4, 3, 0,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("layout", "array", "message"),
    [
        (
            "f32[3,5]{1,0}",
            np.zeros((5, 3), np.float32),
            Said("questions.array_shape", found="(5, 3)", layout="f32[3,5]{1,0}", expected="(3, 5)"),
        ),
        (
            "f32[3,5]{1,0}",
            np.zeros((3, 5)),
            Said("questions.item_bits", dtype="float64", found=64, layout="f32[3,5]{1,0}", expected=32),
        ),
        (
            "f64[1]{0}",
            np.array([None]),
            Said("questions.item_bits", dtype="object", found=64, layout="f64[1]{0}", expected=64),
        ),
        ("f64[2]{0}", [[1.0], [1.0, 2.0]], Said("questions.no_numpy_array")),
        (
            "s8[2]{0:E(4)}",
            np.array([1, 16], np.int8),
            Said("questions.element_range", element=16, bits=4, low=-8, high=15),
        ),
        (
            "s8[2]{0:E(4)}",
            np.array([1, -9], np.int8),
            Said("questions.element_range", element=-9, bits=4, low=-8, high=15),
        ),
        (
            "u8[2]{0:E(4)}",
            np.array([1, 250], np.uint8),
            Said("questions.element_range", element=250, bits=4, low=0, high=15),
        ),
        (
            "f8e5m2[2]{0:E(4)}",
            np.array([0, 1], ml_dtypes.float8_e5m2),
            Said("questions.element_bits_lost", element="1", dtype="float8_e5m2", bits=4),
        ),
        (
            "f32[3,5] strides (4,1)",
            np.zeros((3, 5), np.float32),
            Said("questions.pack_unproved", layout="f32[3,5] strides (4,1)", property="injective", verdict="refuted"),
        ),
        (
            "f32[4] strides (2) in 6",
            np.zeros(4, np.float32),
            Said("questions.pack_unproved", layout="f32[4] strides (2) in 6", property="in_bounds", verdict="refuted"),
        ),
        ("(i < 4) -> (i)", np.zeros(4, np.float32), Said("questions.no_memory", layout="(i < 4) -> (i)")),
        ("f32[N]{0}", np.zeros(4, np.float32), Said("questions.size_without_value", layout="f32[N]{0}", size="N")),
        (REPLICATED, np.zeros((4, 2)), Said("questions.no_memory", layout="the map of (i < 4, j < 2)")),
    ],
)
def test_what_cannot_be_packed_is_refused(layout: Any, array: Any, message: Said) -> None:
    """Wrong arrays, values that do not fit, and memories where elements meet or leave, say what and why."""
    with raises(LayoutError, message):
        pack(layout, array)


@pytest.mark.parametrize(("natural", "stored"), [("f32", 16), ("s8", 3), ("s8", 12), ("f32", 36)])
def test_widths_without_a_meaning_are_refused(natural: str, stored: int) -> None:
    """Elements that would lose bits, or lie across bytes, have no image."""
    layout = XlaLayout(natural, (4,), ("",), (0,), element_bits=stored)
    with raises(LayoutError, Said("questions.stored_bits", natural_bits=int(natural[1:]), bits=stored)):
        pack(layout, np.zeros(4, np.int8 if natural == "s8" else np.float32))


def test_replicas_are_not_packed() -> None:
    """A memory in which every element lies several times has no single image to make."""
    m = IndexMap(
        Space(("i",), (2,)),
        Space(("o",), (4,)),
        lambda x, c, _: (x[0] + 2 * c[0],),
        Space(("r",), (2,)),
        Memory(8, 8, 4),
    )
    with raises(LayoutError, Said("questions.pack_replicas", layout="the map of (i < 2)")):
        pack(m, np.zeros(2, np.int8))


@pytest.mark.parametrize(
    "buffer", [bytes(95), np.zeros(97, np.uint8), np.zeros(96, np.int8), np.zeros((2, 48), np.uint8)]
)
def test_a_buffer_is_exactly_the_allotted_bytes(buffer: Any) -> None:
    """Another length, type or rank is refused; nothing is read past the end or left over in silence."""
    with raises(LayoutError, Said("questions.buffer_shape", layout="f32[3,5]{1,0:T(2,2)}", bytes=96)):
        unpack("f32[3,5]{1,0:T(2,2)}", buffer)


def test_a_dtype_of_another_width_is_refused() -> None:
    """unpack makes items as wide as the element type, or none."""
    with raises(
        LayoutError, Said("questions.item_bits", dtype="float64", found=64, layout="f32[3,5]{1,0:T(2,2)}", expected=32)
    ):
        unpack("f32[3,5]{1,0:T(2,2)}", bytes(96), np.float64)
    with raises(LayoutError, Said("questions.no_numpy_dtype", dtype="'foo'")):
        unpack("f32[3,5]{1,0:T(2,2)}", bytes(96), "foo")


# --- JAX


def test_numpy_users_do_not_import_jax() -> None:
    """Tables and images of NumPy arrays need no JAX."""
    code = (
        "import sys, numpy, layoutproof as lp\n"
        "lp.unpack('s8[2]{0}', lp.pack('s8[2]{0}', numpy.zeros(2, numpy.int8)))\n"
        "print('jax' in sys.modules, lp.table('s8[2]{0}').tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ)
    assert (done.returncode, done.stdout) == (0, "False [0, 1]\n"), done.stderr


JAX_TABLES = [
    "f32[3,5]{1,0:T(2,2)}",
    "bf16[5,300]{0,1:T(8,128)(2,1)}",
    "f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}",
    "(i < 7, j < 9) -> (select(i < j and not (i == 2), i - j, 4 * j) + xor(i, j) * min(7, i) + max(j, 4) // 3)",
    "(i < 7, j < 9) -> (select(i < 2 or j == 3, (i - j) // 3, (i - j) % 3))",
]


@pytest.mark.parametrize("text", JAX_TABLES)
def test_place_runs_on_jax_arrays(text: str) -> None:
    """`place` on arrays of each of JAX's devices gives NumPy's table."""
    jax = pytest.importorskip("jax")
    m = map_of(read_layout(text))
    m = m.flat() if m.memory is not None else m
    for device in jax.devices():
        index = jax.device_put(tuple(np.ogrid[tuple(slice(e) for e in arrays.extents_of(m))]), device)
        (places,) = m.place(index, (), arrays.ArrayNumbers(jax.numpy))
        assert places.devices() == {device}
        np.testing.assert_array_equal(np.asarray(places), table(text))


ON_JAX = [width for width in WIDTHS if width[1] is not ml_dtypes.uint1]


@pytest.mark.parametrize(("text", "dtype", "bits"), ON_JAX, ids=[w[0] for w in ON_JAX])
def test_jax_arrays_are_moved_on_their_device(text: str, dtype: Any, bits: int) -> None:
    """For every width JAX gives NumPy's image and the array back, as JAX arrays on the same device."""
    jax = pytest.importorskip("jax")
    layout = read_layout(text, "xla")
    array = some((5, 9), dtype, bits)
    with jax.enable_x64(np.dtype(dtype).itemsize > 4):
        for device in jax.devices():
            moved = jax.device_put(array, device)
            assert moved.dtype == array.dtype
            image = pack(layout, moved)
            assert isinstance(image, jax.Array)
            assert image.devices() == {device}
            np.testing.assert_array_equal(np.asarray(image), pack(layout, array))
            back = unpack(layout, image)
            assert isinstance(back, jax.Array)
            assert same_bits(np.asarray(back), array)


def test_jax_moves_under_tracing() -> None:
    """pack and unpack can stand inside a jitted function."""
    jax = pytest.importorskip("jax")
    text = "s32[3,5]{1,0:T(2,2)}"
    array = np.arange(15, dtype=np.int32).reshape(3, 5)
    image = jax.jit(lambda x: pack(text, x))(array)
    np.testing.assert_array_equal(np.asarray(image), pack(text, array))
    np.testing.assert_array_equal(np.asarray(jax.jit(lambda x: unpack(text, x))(image)), array)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_jax_narrow_elements_as_bytes(dtype: Any) -> None:
    """One element per byte comes back as it was; values that need more bits are refused, unknown ones too."""
    jax = pytest.importorskip("jax")
    text = "s4[7,3]{1,0:T(2,2)E(4)}"
    array = some((7, 3), dtype, 4)
    image = pack(text, jax.numpy.asarray(array))
    np.testing.assert_array_equal(np.asarray(image), pack(text, array))
    assert same_bits(np.asarray(unpack(text, image, dtype)), array)
    with raises(LayoutError, Said("questions.element_range", element=16, bits=4, high=15)):
        pack(text, jax.numpy.full((7, 3), 16, dtype))
    with pytest.raises(LayoutError, match="under tracing"):
        jax.jit(lambda x: pack(text, x))(array)


def test_jax_one_bit_integers() -> None:
    """XLA has no operation on one-bit integers, so they are refused as items; as bytes they move."""
    jax = pytest.importorskip("jax")
    text = "u1[5,9]{0,1:E(1)}"
    array = some((5, 9), np.uint8, 1)
    image = pack(text, jax.numpy.asarray(array))
    np.testing.assert_array_equal(np.asarray(image), pack(text, array))
    assert same_bits(np.asarray(unpack(text, image, np.uint8)), array)
    with raises(LayoutError, Said("questions.jax_element_type", dtype="uint1")):
        pack(text, jax.device_put(array.view(ml_dtypes.uint1)))
    with raises(LayoutError, Said("questions.jax_element_type", dtype="uint1")):
        unpack(text, image)


def test_jax_empty_arrays() -> None:
    """An array without elements packs into what is allotted, and back."""
    jax = pytest.importorskip("jax")
    image = pack("f32[0,5]{1,0:T(2,2)L(4)}", jax.numpy.zeros((0, 5), np.float32))
    assert image.shape == (0,)
    assert unpack("f32[0,5]{1,0:T(2,2)L(4)}", image).shape == (0, 5)


def test_jax_without_64_bits_refuses_what_needs_them() -> None:
    """Offsets and elements that 32-bit types cannot hold are refused, not cut off."""
    jax = pytest.importorskip("jax")
    with raises(LayoutError, Said("questions.places_range", bits=32, more=": set jax_enable_x64")):
        pack("s8[2] strides (3000000000)", jax.numpy.zeros(2, np.int8))
    for text in ("f64[2]{0}", "c128[2]{0}", "u64[2]{0}"):
        with raises(
            LayoutError, Said("questions.jax_dtype", dtype={"f": "float64", "c": "complex128", "u": "uint64"}[text[0]])
        ):
            unpack(text, jax.numpy.zeros(32 if text[0] == "c" else 16, np.uint8))
