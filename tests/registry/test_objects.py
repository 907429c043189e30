"""Layouts of the objects that people hold: NumPy's real arrays against their own addresses, CuTe's as recorded."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import layoutproof as lp


def addresses(array: Any) -> dict[tuple[int, ...], int]:
    """Element index -> the address that NumPy gives the view of this one element, in bytes from the lowest."""
    bounds = getattr(np.lib, "array_utils", np).byte_bounds(array)
    return {
        index: array[tuple(slice(i, i + 1) for i in index)].__array_interface__["data"][0] - bounds[0]
        for index in itertools.product(*map(range, array.shape))
    }


@st.composite
def views(draw: st.DrawFn) -> Any:
    """A view as programs make them: sliced with steps of both signs, transposed, broadcast, overlapping."""
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    kind = draw(st.sampled_from(["int8", "float16", "float32", "complex64", "bool"]))
    array = np.zeros(shape, kind)
    steps = st.sampled_from([slice(None), slice(None, None, -1), slice(1, None), slice(None, None, 2)])
    array = array[tuple(draw(steps) for _ in shape)].transpose(draw(st.permutations(range(len(shape)))))
    if draw(st.booleans()):
        array = np.broadcast_to(array, (2, *array.shape))
    if draw(st.booleans()) and array.shape[-1] > 1:
        array = np.lib.stride_tricks.sliding_window_view(array, 2, axis=-1)
    return array


@given(views())
def test_numpy_arrays_are_where_numpy_says(array: Any) -> None:
    """Every offset times the item's size is the element's address, and injective is decided as the addresses are."""
    truth = addresses(array)
    found = {index: lp.locate(array, index)[0]["offset"] * array.itemsize for index in truth}
    assert found == truth
    if truth:
        apart = len(set(truth.values())) == len(truth)
        verdict = lp.ask("injective", array).verdict
        assert verdict is (lp.Verdict.PROVED if apart else lp.Verdict.REFUTED)


def test_numpy_arrays_print_as_strided() -> None:
    """The text says the same again; element types are named as XLA names them."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.zeros((3, 4), "float32")
    assert str(lp.read_layout(array[::-1, ::2])) == "f32[3,2] strides (-4,2)"
    assert str(lp.read_layout(np.zeros((2, 3), ml_dtypes.bfloat16))) == "bf16[2,3] strides (3,1)"
    assert str(lp.read_layout(np.zeros((2, 3), ml_dtypes.float8_e4m3fn))) == "f8e4m3fn[2,3] strides (3,1)"
    assert str(lp.read_layout(np.array(1.0))) == "f64[] strides ()"
    assert lp.ask("same_map", array.T, "f32[4,3] strides (1,4)").verdict is lp.Verdict.PROVED
    assert str(lp.tpu_default(np.zeros((1000, 5), "float32"), target="v5e")) == "f32[1000,5]{0,1:T(8,128)}"


def test_a_step_that_is_never_taken_may_be_anything() -> None:
    """NumPy leaves the stride of a dimension with one index as it was, also within records."""
    records = np.zeros(3, [("a", "i1"), ("b", "f4")])
    assert str(lp.read_layout(records["b"][:1])) == "f32[1] strides (0)"


REFUSED: list[tuple[Any, str]] = [
    (np.zeros(3, [("a", "i1"), ("b", "f4")])["b"], "dimension 0 steps by 5 bytes, no multiple of the 4 bytes"),
    (np.zeros(3, np.dtype("f4").newbyteorder()), "stored in the other byte order"),
    (np.zeros(3, "M8[s]"), "XLA has no element type 'datetime64[s]'"),
    (np.zeros(3, object), "XLA has no element type 'object'"),
    (np.zeros(3, "S3"), "XLA has no element type '|S3'"),
    (np.dtype("float32"), "of NumPy's objects only arrays have a layout"),
    (5, "a layout is a text, a mapping, or an object of JAX, NumPy, TVM or CuTe, not 5"),
    ([1, 2], "not [1, 2]"),
    (object, "not <class 'object'>"),
]


@pytest.mark.parametrize(("value", "words"), REFUSED, ids=[words[:30] for _, words in REFUSED])
def test_what_has_no_layout_is_refused_by_name(value: Any, words: str) -> None:
    """A LayoutError says what the object lacks, wherever a layout is taken."""
    for take in (lp.read_layout, lp.table, lambda v: lp.ask("injective", v), lambda v: lp.locate(v, (0,))):
        with pytest.raises(lp.LayoutError) as caught:
            take(value)
        assert words in str(caught.value)


def pycute(name: str, **attributes: Any) -> Any:
    """An object as pycute's: the class's module, its attributes. Recorded from python/pycute at 07a0238."""
    return type(name, (SimpleNamespace,), {"__module__": f"pycute.{name.lower()}"})(**attributes)


def dsl(text: str) -> Any:
    """An object as cutlass.cute's, which has its numbers in MLIR and prints them."""
    return type("_Layout", (), {"__module__": "cutlass.cute.core", "__str__": lambda self: text})()


PLAIN = pycute("Layout", shape=((4, 2), (2, 4)), stride=((1, 16), (4, 32)))
CUTE = [
    (PLAIN, "((4,2),(2,4)):((1,16),(4,32))"),
    (pycute("Layout", shape=4, stride=2), "4:2"),
    (
        pycute("ComposedLayout", layoutB=pycute("Swizzle", bits=1, base=0, shift=3), offset=0, layoutA=PLAIN),
        "Sw<1,0,3> o 0 o ((4,2),(2,4)):((1,16),(4,32))",
    ),
    (dsl("((4,2),(2,4)):((1,16),(4,32))"), "((4,2),(2,4)):((1,16),(4,32))"),
    (dsl("S<3,4,3> o 0 o (8,64):(64,1)"), "Sw<3,4,3> o 0 o (8,64):(64,1)"),
]


@pytest.mark.parametrize(("value", "text"), CUTE, ids=[text for _, text in CUTE])
def test_cute_objects(value: Any, text: str) -> None:
    """They are the layouts that their text is."""
    assert str(lp.read_layout(value)) == text
    assert lp.ask("same_map", value, text).verdict is lp.Verdict.PROVED


@pytest.mark.parametrize("text", ["(?,8):(8,1)", "(8,8):(1@0,1@1)", "<cutlass.cute.Tensor>"])
def test_cute_objects_without_numbers_are_refused(text: str) -> None:
    with pytest.raises(lp.LayoutError):
        lp.read_layout(dsl(text))


def test_real_pycute() -> None:
    """Where pycute is installed, its own layouts, against its own evaluation."""
    layouts = pytest.importorskip("pycute")
    made = [
        layouts.Layout(((4, 2), (2, 4)), ((1, 16), (4, 32))),
        layouts.Layout(8, 3),
        layouts.logical_divide(layouts.Layout((8, 16), (16, 1)), layouts.Layout(4, 2)),
        layouts.ComposedLayout(layouts.Swizzle(2, 0, 3), 0, layouts.Layout((8, 8), (8, 1))),
    ]
    for layout in made:
        found = lp.table(layout)
        for index in np.ndindex(found.shape):
            assert found[index] == layout(*index)


@pytest.mark.slow
def test_real_tvm() -> None:
    """TVM's own layouts, against its own `apply`; its buffers are asked for their layout."""
    layouts = pytest.importorskip("tvm.tirx.layout")
    tirx = pytest.importorskip("tvm.tirx")
    tile = layouts.TileLayout(layouts.S[(8, 4, 2) : (4 @ layouts.Axis.laneid, 1 @ layouts.Axis.laneid, 1)])
    assert str(lp.read_layout(tile)) == "S[(8,4,2):(4@laneid,1@laneid,1@m)]"
    for element in range(64):
        (place,) = lp.locate(tile, (element,))
        assert place == {axis: int(value) for axis, value in tile.apply(element).items()}
    swizzled = layouts.ComposeLayout(3, 3, 3, layouts.TileLayout(layouts.S[(8, 64) : (64, 1)]))
    for element in range(512):
        assert lp.locate(swizzled, (element,)) == [{"m": int(swizzled.apply(element)["m"])}]
    buffer = tirx.decl_buffer((4, 8), "float16")
    assert lp.ask("same_map", buffer.layout, "S[(4,8):(8,1)]").verdict is lp.Verdict.PROVED
    with pytest.raises(lp.LayoutError, match=r"give buffer\.layout"):
        lp.read_layout(buffer)


@pytest.mark.slow
def test_no_library_is_imported_for_a_text_or_for_another_librarys_object() -> None:
    """A text imports none of them; an array of NumPy imports no JAX, no TVM and no CuTe."""
    code = (
        "import sys, json, layoutproof as lp\n"
        "lp.ask('injective', 'f32[3,5]')\n"
        "first = [m for m in ('numpy', 'jax', 'tvm', 'cutlass', 'pycute') if m in sys.modules]\n"
        "import numpy\n"
        "lp.locate(numpy.zeros((3, 4)), (1, 1))\n"
        "print(json.dumps([first, [m for m in ('jax', 'tvm', 'cutlass', 'pycute') if m in sys.modules]]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[], []]
