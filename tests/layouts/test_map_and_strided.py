"""Users' own maps and strided layouts: what is no layout is named, and no elements take no memory."""

from __future__ import annotations

from typing import Any

import pytest

import layoutproof as lp
from layoutproof.core.errors import LayoutError


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"index": "(i) -> (i)", "shape": 16}, "shape is a list of extents .*, not 16"),
        ({"index": "(i, j) -> (i, j)", "shape": "88"}, "shape is a list of extents .*, not '88'"),
        ({"index": "(i) -> (i)", "shape": [16], "range": 16}, "range is a list of extents .*, not 16"),
    ],
)
def test_a_shape_is_a_list(mapping: dict[str, Any], message: str) -> None:
    """A number, and a text whose characters would be extents, are refused as shape or range."""
    with pytest.raises(LayoutError, match=message):
        lp.read_layout({"map": mapping})


@pytest.mark.parametrize("text", ["f32[0] strides (1)", "f32[3,0] strides (-5,-1)", "f32[0,4] strides (4,1)"])
def test_no_elements_take_no_memory(text: str) -> None:
    """As in NumPy, an empty array reserves nothing, whatever its strides."""
    assert lp.ask("padding", text).figures["bytes"] == 0


@pytest.mark.parametrize("kind", ["q7", "f0", "f3", "f3.2", "int7"])
def test_an_element_type_that_nobody_has_is_refused(kind: str) -> None:
    """A typo would otherwise be a guess about the width."""
    with pytest.raises(LayoutError):
        lp.read_layout(f"{kind}[3] strides (1)")


@pytest.mark.parametrize(("kind", "size"), [("pred", 1), ("bool", 1), ("s4", 1), ("float32", 4), ("c64", 8)])
def test_element_types_of_xla_and_numpy_are_read(kind: str, size: int) -> None:
    """Bytes of one element."""
    assert lp.ask("padding", f"{kind}[] strides ()").figures["bytes"] == size


@pytest.mark.parametrize("stride", ["2-N", "N-1-M", "1-2*N+M"])
def test_a_stride_whose_sign_depends_on_sizes_and_may_be_one(stride: str) -> None:
    """It is refused as soon as both signs are possible, also where the larger one is 1 at most."""
    with pytest.raises(LayoutError, match=r"the sign of the stride .* depends on its sizes"):
        lp.read_layout(f"f32[N,M,4] strides ({stride},1,1)")


@pytest.mark.parametrize("stride", ["1-N", "N-1", "-N", "0"])
def test_a_stride_that_is_never_of_the_other_sign(stride: str) -> None:
    assert str(lp.read_layout(f"f32[N,M,4] strides ({stride},1,1)"))


@pytest.mark.parametrize("entries", ["84", 5, None])
def test_entries_that_are_no_list(entries: Any) -> None:
    """A text is a sequence of characters, and no list of integers."""
    for key in ("shape", "strides"):
        given = {"dtype": "f32", "shape": [8, 4], "strides": [4, 1], key: entries}
        with pytest.raises(LayoutError):
            lp.read_layout({"strided": given})
