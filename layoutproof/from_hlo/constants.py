"""The text between the parentheses of a constant, as an array."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING

from layoutproof.core.brackets import without_remarks
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.from_hlo import problems
from layoutproof.ir.program import Array

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BRACES = re.compile(r"[{}]")
_WORDS = {"true": 1, "false": 0}


def read_constant(aval: Array, text: str) -> NDArray[np.generic] | None:
    """The numbers, of floats as float64 holds what their own type does; None where the text leaves them out.

    >>> import numpy as np
    >>> float(read_constant(Array((), np.dtype("float32")), "0.1"))
    0.10000000149011612
    >>> read_constant(Array((2, 2), np.dtype("int32")), "{ { 1, 2 }, { 3, 4 } }")
    array([[1, 2],
           [3, 4]], dtype=int32)
    >>> read_constant(Array((100,), np.dtype("int32")), "{...}") is None
    True
    """
    import numpy as np

    if "..." in text:
        return None
    words = _BRACES.sub(" ", without_remarks(text)).replace(",", " ").split()
    whole = aval.dtype.kind in "iub" or "int" in aval.dtype.name
    try:
        numbers = [_WORDS[w] if w in _WORDS else int(w, 0) if whole else _float(w) for w in words]
    except ValueError:
        raise LayoutError(problems.CONSTANT_NOT_READ(shorten(text, 60))) from None
    size = prod(aval.shape)
    if len(numbers) == 1 and size != 1:
        # XLA's parser takes a number for an array of it
        numbers *= size
    if len(numbers) != size:
        raise LayoutError(problems.CONSTANT_COUNT(len(numbers), list(aval.shape), size, shorten(text, 60)))
    if whole:
        kind = aval.dtype if aval.dtype.kind in "iub" else np.dtype(np.int8)
        found = np.array(numbers, object).astype(np.int64 if kind.kind != "u" else np.uint64).astype(kind)
    else:
        with np.errstate(all="ignore"):
            found = np.array(numbers, np.float64).astype(aval.dtype).astype(np.float64)
    return found.reshape(aval.shape)


def _float(word: str) -> float:
    if "nan" in word:
        return float("nan")
    return float.fromhex(word) if "0x" in word else float(word)
