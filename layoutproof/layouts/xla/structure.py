"""An XLA shape in structure, as programs have it: its parts become the text that they spell."""

from __future__ import annotations

import re
from collections.abc import Mapping

from layoutproof.core.errors import LayoutError
from layoutproof.kernel.kernel_parts import check_keys, list_of, shown
from layoutproof.layouts.xla import problems

_NUMBERS = {"tail_alignment": "L", "element_bits": "E", "memory_space": "S", "metadata_bytes": "M"}
"""Key -> the letter of its property, in the order in which XLA prints them."""
_SIZE = re.compile(r"[\w*+\-/ ]{1,200}")


def text_of(value: Mapping[object, object]) -> str:
    """The text that a mapping spells.

    Args:
        value: `shape`, a text such as f32[3,5]; `minor_to_major`, dimensions, fastest first; `tiles`, levels of tile
            sizes, outermost level first, each a number, "*" or a size expression; numbers for L, E, S and M.

    Returns:
        The text, for the reader of texts to judge.

    Raises:
        LayoutError: A key is unknown, or a value has the wrong form.

    >>> text_of({"shape": "f32[3,5]", "minor_to_major": [1, 0], "tiles": [[2, 2]], "tail_alignment": 8})
    'f32[3,5]{1,0:T(2,2)L(8)}'
    """
    given = check_keys(value, ("shape", "minor_to_major", "tiles", *_NUMBERS), "an xla layout", ("shape",))
    shape = given["shape"]
    if not isinstance(shape, str) or "{" in shape:
        raise LayoutError(problems.SHAPE_FORM(shown(shape)))
    order = given.get("minor_to_major")
    tiles = [_sizes(tile, f"tiles[{k}]") for k, tile in enumerate(list_of(given.get("tiles", ()), "tiles"))]
    numbers = [f"{letter}({_number(given[key], key)})" for key, letter in _NUMBERS.items() if key in given]
    properties = (f"T{''.join(tiles)}" if tiles else "") + "".join(numbers)
    if not order and not properties:
        return shape
    if order is None:
        raise LayoutError(problems.MINOR_TO_MAJOR_NEEDED())
    numbered = ",".join(str(_number(d, "minor_to_major")) for d in list_of(order, "minor_to_major"))
    return f"{shape}{{{numbered}{':' if properties else ''}{properties}}}"


def _number(value: object, key: str) -> int:
    if type(value) is int:
        return value
    raise LayoutError(problems.WHOLE_NUMBERS(key, shown(value)))


def _sizes(tile: object, key: str) -> str:
    sizes = list_of(tile, key)
    for size in sizes:
        if type(size) is not int and not (isinstance(size, str) and _SIZE.fullmatch(size)):
            raise LayoutError(problems.TILE_FORM(key, shown(size)))
    return f"({','.join(map(str, sizes))})"
