"""CuTe layouts: text, place and what is proved of them, against the definition written out once more and by hand."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutproof as lp
from layoutproof.core.errors import LayoutError
from layoutproof.core.nested import leaves
from layoutproof.layouts.cute import CuteLayout, Swizzle, looks_like, read
from layoutproof.layouts.cute.nested import refill, size_of


def crd2idx(at: int, shape: Any, stride: Any) -> int:
    """CuTe's coordinate to index, as its documentation has it: recursive, the first mode fastest."""
    if not isinstance(shape, tuple):
        return int(at * stride)
    total = 0
    for entry, step in zip(shape[:-1], stride[:-1], strict=True):
        total += crd2idx(at % size_of(entry), entry, step)
        at //= size_of(entry)
    return total + crd2idx(at, shape[-1], stride[-1])


def swizzled(offset: int, bits: int, base: int, shift: int) -> int:
    """The masks and shifts of include/cute/swizzle.hpp."""
    mask = ((1 << bits) - 1) << (base + max(0, shift))
    field = offset & mask
    return offset ^ (field >> shift if shift > 0 else field << -shift)


@st.composite
def nested_shapes(draw: st.DrawFn) -> Any:
    leaf = st.sampled_from([1, 2, 2, 3, 4])
    mode = st.recursive(leaf, lambda inner: st.lists(inner, min_size=1, max_size=2).map(tuple), max_leaves=3)
    return draw(st.lists(mode, min_size=1, max_size=3).map(tuple) | leaf)


@st.composite
def layouts(draw: st.DrawFn, swizzles: bool = True) -> CuteLayout:
    shape = draw(nested_shapes())
    stride = refill(shape, lambda _: draw(st.sampled_from([0, 1, 2, 3, 4, 8, 12])))
    if not swizzles or draw(st.booleans()):
        return CuteLayout(shape, stride)
    bits = draw(st.integers(0, 2))
    shift = draw(st.integers(bits, 3)) * draw(st.sampled_from([1, -1]))
    return CuteLayout(shape, stride, Swizzle(bits, draw(st.integers(0, 2)), shift), draw(st.integers(0, 3)))


@given(layouts())
def test_place_is_the_definition(layout: CuteLayout) -> None:
    """Every element, by its coordinates and by its linear position, is where the recursive definition puts it."""
    m = layout.index_map()
    shape, stride = layout.shape, layout.stride
    if not isinstance(shape, tuple):
        shape, stride = (shape,), (stride,)
    order = [tuple(reversed(x)) for x in itertools.product(*[range(size_of(e)) for e in reversed(shape)])]
    for position, index in enumerate(order):
        offset = layout.offset + sum(map(crd2idx, index, shape, stride))
        assert layout.offset + crd2idx(position, shape, stride) == offset
        if layout.swizzle is not None:
            offset = swizzled(offset, *layout.swizzle)
        assert m.at(index) == (offset,)
        assert layout.at(position) == offset


@given(layouts())
def test_text_reads_back(layout: CuteLayout) -> None:
    """What is printed is read as the same data, with and without an element type."""
    assert lp.read_layout(str(layout)) == layout
    typed = CuteLayout(layout.shape, layout.stride, layout.swizzle, layout.offset, "bf16")
    assert lp.read_layout(str(typed)) == typed


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("8:1", "8:1"),
        ("(8):(1)", "(8):(1)"),
        ("(8,):(1,)", "(8):(1)"),
        ("(_4,(2,_2)):(_1,(4,8))", "(4,(2,2)):(1,(4,8))"),
        (" ( ( 4 , 2 ) , 8 ) : ( ( 1 , 16 ) , 4 ) ", "((4,2),8):((1,16),4)"),
        ("(N,M):(M,1)", "(N,M):(M,1)"),
        ("(8*R,128):(128,1)", "(8*R,128):(128,1)"),
        ("Sw<3,3,3> o 0 o (8,64):(64,1)", "Sw<3,3,3> o 0 o (8,64):(64,1)"),
        ("Sw<3,3,3> o (8,64):(64,1)", "Sw<3,3,3> o 0 o (8,64):(64,1)"),
        ("S<2,4,-3> o _5 o 64:1", "Sw<2,4,-3> o 5 o 64:1"),
        ("bf16 (8,128):(128,1)", "bf16 (8,128):(128,1)"),
        ("bf16 Sw<3,4,3>∘0∘(8,64):(64,1)", "bf16 Sw<3,4,3> o 0 o (8,64):(64,1)"),
        ("f32 4:-1", "f32 4:-1"),
    ],
)
def test_spellings(text: str, printed: str) -> None:
    """The forms that CuTe, its Python and its DSL print; printed again in one form."""
    assert str(lp.read_layout(text)) == printed
    assert str(lp.read_layout({"cute": text})) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(4,2)", "expected : between shape and stride, but the text ends\n  (4,2)\n       ^ column 6"),
        ("(4,2):", "expected an integer, a size or '(', but the text ends\n  (4,2):\n        ^ column 7"),
        ("(4,2:(1,4)", "expected ) or ',' in a tuple, but found ':'\n  (4,2:(1,4)\n      ^ column 5"),
        ("(4,2):(1,4) x", "nothing may follow the stride\n  (4,2):(1,4) x\n              ^ column 13"),
        ("((4,2),8):(1,4)", "shape ((4,2),8) and stride (1,4) are not nested alike\n  ((4,2),8):(1,4)"),
        ("():()", "expected an integer, a size or '(', but found ')'\n  ():()\n   ^ column 2"),
        ("(0,2):(1,4)", "the extent 0 must be at least 1\n  (0,2):(1,4)"),
        ("(4,2):(1,N-M)", "the sign of the stride -M + N depends on its sizes\n  (4,2):(1,N-M)"),
        ("(4,2):(1,4@0)", "4@0: a stride along a named axis is understood but not modelled; use the axe language"),
        ("Sw<3,3> o 8:1", "a swizzle is written Sw<3,4,3>: bits, base, shift\n  Sw<3,3> o 8:1\n  ^ column 1"),
        ("Sw<3,3,3> 8:1", "expected 'o' after a swizzle, as in Sw<3,3,3> o 0 o (8,64):(64,1)"),
        ("Sw<3,0,2> o 8:1", "Sw<3,0,2>: bits and base must be 0..64 and bits <= |shift| <= 64\n  Sw<3,0,2> o 8:1"),
        ("Sw<3,3,3> o -1 o 8:1", "the offset -1 must be at least 0\n  Sw<3,3,3> o -1 o 8:1"),
        ("f0 8:1", "unknown element type 'f0'; write for instance f32, bf16, s8 or pred"),
        ("float 8:1", "unknown element type 'float'; write for instance f32, bf16, s8 or pred"),
        ("(4,1.5):(1,4)", "only + - * // % ^ min max select xor"),
        ("(" * 40 + "4" + ")" * 40 + ":1", "a shape nested more than 32 deep"),
        ("(" + "4," * 3000 + "4):1", "a text of 6,005 characters; at most 4,096 are read"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    """A LayoutError that begins with the value and the rule, and shows the place."""
    with pytest.raises(LayoutError) as caught:
        read(text)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ({"shape": [[4, 2], 8], "stride": [[1, 16], 4]}, "((4,2),8):((1,16),4)"),
        ({"shape": [4, 8]}, "(4,8):(1,4)"),
        ({"shape": [4, 8], "order": "row"}, "(4,8):(8,1)"),
        ({"shape": [[4, 2], 8], "order": [[1, 3], 2]}, "((4,2),8):((1,32),4)"),
        ({"shape": ["N", 4], "order": "row"}, "(N,4):(4,1)"),
        ({"shape": 8, "stride": 1, "swizzle": [1, 0, 2], "offset": 3, "type": "s8"}, "s8 Sw<1,0,2> o 3 o 8:1"),
        ({"shape": 8, "stride": 1, "offset": 3}, "Sw<0,0,0> o 3 o 8:1"),
    ],
)
def test_mappings(value: dict[str, Any], printed: str) -> None:
    """The mapping form, with strides or an order."""
    assert str(lp.read_layout({"cute": value})) == printed


KEYS = "a cute layout has shape, and stride or order, optionally swizzle, offset, type; got "


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, KEYS + "nothing"),
        ({"stride": 1}, KEYS + "stride"),
        ({"shape": 8, "strides": 1}, KEYS + "shape, strides"),
        ({"shape": 8, "stride": 1, "order": "row"}, KEYS + "shape, stride, order"),
        ({"shape": [8, 2.5]}, "shape is an integer, a size expression or a list of them, not 2.5"),
        ({"shape": []}, "shape is an integer, a size expression or a list of them, not []"),
        ({"shape": [8, 2], "stride": 1}, "shape (8,2) and stride 1 are not nested alike"),
        ({"shape": [8, 2], "order": "left"}, "order is 'col', 'row' or integers nested as shape (8,2) is, not left"),
        ({"shape": [8, 2], "order": [0]}, "order is 'col', 'row' or integers nested as shape (8,2) is, not (0)"),
        ({"shape": 8, "swizzle": [3, 3]}, "a swizzle is three integers [B, M, S], not [3, 3]"),
        ({"shape": 8, "offset": [1]}, "offset is one integer, not (1)"),
        ({"shape": "N +"}, "shape: cannot read 'N +' as an expression"),
        (8, "a cute layout is a text such as (8,64):(64,1), or a mapping, not 8"),
    ],
)
def test_mappings_that_are_refused(value: Any, message: str) -> None:
    """The value and the rule."""
    with pytest.raises(LayoutError) as caught:
        read(value)
    assert str(caught.value) == message


def test_what_looks_like_cute() -> None:
    """Texts of the other languages are left to them."""
    assert looks_like("(4,2):(1,4)")
    for text in ("f32[3,5]{1,0:T(8,128)}", "S[(8,4):(4@lane,1)]", "(i < 4) -> (i)", "f32[3] strides (1)", "i=1 -> (1)"):
        assert not looks_like(text)
        assert not isinstance(lp.read_layout(text), CuteLayout)


def test_the_table_of_a_hierarchical_layout() -> None:
    """media/docs/cute/01_layout.md, s2xh4 = (2,(2,2)):(4,(2,1)): rows 0 2 1 3 and 4 6 5 7."""
    assert lp.table("(2,(2,2)):(4,(2,1))").tolist() == [[0, 2, 1, 3], [4, 6, 5, 7]]


def test_the_table_of_a_swizzle() -> None:
    """Sw<2,0,2> over 4x4, row-major: element (i, j) goes to column j xor i of row i."""
    table = lp.table("Sw<2,0,2> o 0 o (4,4):(4,1)").tolist()
    assert table == [[0, 1, 2, 3], [5, 4, 7, 6], [10, 11, 8, 9], [15, 14, 13, 12]]


@pytest.mark.parametrize(
    ("name", "text", "verdict", "counterexample", "by"),
    [
        ("bijective", "((4,2),(2,4)):((1,16),(4,32))", "proved", None, "digits"),
        ("covers", "((4,2),(2,4)):((1,16),(4,32))", "refuted", {"place": (8,)}, None),
        ("injective", "(4,2):(1,3)", "refuted", {"first": (0, 1), "second": (3, 0)}, None),
        ("injective", "(3,2):(1,3)", "proved", None, "digits"),
        ("injective", "(4,2):(0,1)", "refuted", {"first": (0, 0), "second": (1, 0)}, "digits"),
        ("bijective", "Sw<3,3,3> o 0 o (8,64):(64,1)", "proved", None, "bits"),
        ("covers", "Sw<3,3,3> o 0 o (8,64):(64,1)", "proved", None, "bits"),
        ("bijective", "Sw<3,4,3> o 0 o (32768,32768):(32768,1)", "proved", None, "bits"),
        ("injective", "Sw<1,0,1> o 0 o (2,4):(1,1)", "refuted", {"first": (0, 1), "second": (1, 0)}, None),
        ("in_bounds", "Sw<1,0,1> o 0 o 3:1", "refuted", {"element": (2,)}, "digits"),
        ("in_bounds", "(N,M):(M,1)", "proved", None, "digits"),
        ("injective", "(N,M):(M,1)", "proved", None, "digits"),
        ("in_bounds", "f32 4:-1", "refuted", {"element": (1,)}, None),
    ],
)
def test_properties(name: str, text: str, verdict: str, counterexample: Any, by: str | None) -> None:
    """Bijections, collisions and holes; a swizzle may leave CuTe's own cosize: Sw<1,0,1> sends 2 to 3, of 0..2."""
    result = lp.ask(name, text)
    assert (result.verdict.value, result.counterexample) == (verdict, counterexample)
    assert by is None or by in result.decided_by


@settings(max_examples=40)
@given(layouts())
def test_properties_by_enumeration(layout: CuteLayout) -> None:
    """injective and in_bounds are what the table says, whatever engine decides."""
    offsets = lp.table(layout).ravel().tolist()
    injective, in_bounds = (lp.ask(name, layout).verdict.value for name in ("injective", "in_bounds"))
    assert injective == ("proved" if len(set(offsets)) == len(offsets) else "refuted")
    assert in_bounds == ("proved" if max(offsets) < layout.cosize() else "refuted")


def test_a_typed_layout_is_a_memory() -> None:
    """Bytes are moved, and compared with those of an XLA layout; sub-byte types are packed, as CuTe's are."""
    import numpy as np

    packed = lp.pack("s8 (2,3):(1,2)", np.arange(6, dtype=np.int8).reshape(2, 3))
    assert packed.tolist() == [0, 3, 1, 4, 2, 5]
    assert lp.ask("same_map", "s4 (8,128):(128,1)", "s4[8,128]{1,0:E(4)}").verdict is lp.Verdict.PROVED
    assert lp.ask("same_map", "s4 (8,128):(128,1)", "s4[8,128]{1,0}").counterexample == {"element": (0, 1)}
    assert lp.ask("padding", "f32 (3,4):(1,4)").figures["padding_elements"] == 3


def test_sizes_are_leaves() -> None:
    """size is the product of leaves, cosize one more than the largest offset."""
    layout = CuteLayout(((4, 2), 3), ((1, 16), 4))
    assert (layout.size(), layout.cosize(), list(leaves(layout.shape))) == (24, 28, [4, 2, 3])


def test_without_an_element_type_there_is_no_memory() -> None:
    """Offsets are then numbers, not bytes."""
    assert lp.read_layout("(4,2):(2,1)").index_map().memory is None
