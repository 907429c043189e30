"""Shapes of HLO as what is known of a variable: extents, and the element type that NumPy has of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from layoutproof.core.element_types import ELEMENT_BITS, dtype_name
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.from_hlo import problems
from layoutproof.hlotext.module import Instruction
from layoutproof.hlotext.texts import parts
from layoutproof.ir.program import Array, Dtype, Opaque

Shape: TypeAlias = "Array | Opaque | tuple[Shape, ...]"

_ARRAY = re.compile(r"([a-z]\w*)\[([^\[\]]*)\]")
_OF_NUMPY = re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64)|complex(64|128)")


@lru_cache(maxsize=4096)
def read_shape(text: str) -> Any:
    """An `Array` of an array, `Opaque` of a token, a tuple of these of a tuple. LayoutError for any other text.

    >>> read_shape("f32[2,3]{1,0:T(8,128)}").shape, len(read_shape("(s32[], (f32[2]{0}, u8[]))"))
    ((2, 3), 2)
    """
    if text.startswith("("):
        return tuple(map(read_shape, parts(text[1:-1])))
    found = _ARRAY.match(text.removeprefix("b("))
    if found is None:
        raise LayoutError(problems.NO_SHAPE(shorten(text, 60)))
    if found[1] not in ELEMENT_BITS:
        return Opaque()
    if not re.fullmatch(r"[\d,]*", found[2]):
        raise LayoutError(problems.SIZE_AT_RUN_TIME(shorten(text, 60)))
    return Array(tuple(int(n) for n in found[2].split(",") if n), dtype_of(found[1]))


@lru_cache(maxsize=64)
def dtype_of(name: str) -> Dtype:
    """The type of NumPy, or of ml_dtypes, for XLA's name of an element type.

    >>> dtype_of("pred"), dtype_of("s8"), dtype_of("bf16").itemsize
    (dtype('bool'), dtype('int8'), 2)
    """
    import numpy as np

    long = dtype_name(name)
    if _OF_NUMPY.fullmatch(long):
        return np.dtype(long)
    # comes with JAX
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, long, None) or long)


def numbers_of(at: Instruction, name: str) -> tuple[int, ...]:
    """The numbers of an attribute in braces; () without it."""
    return tuple(int(n) for n in at.attribute(name).strip("{}").split(",") if n.strip())


def like(shape: Any, flat: Sequence[Any]) -> Any:
    """Values in order as the tuples of a shape have them.

    >>> like(("a", ("b", "c")), [1, 2, 3])
    (1, (2, 3))
    """
    given = iter(flat)

    def filled(part: Any) -> Any:
        return tuple(map(filled, part)) if isinstance(part, tuple) else next(given)

    return filled(shape)
