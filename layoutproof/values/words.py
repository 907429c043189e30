"""Bits of data: operations on elements that share a word, to take them apart or to put them together.

A word is kept as the elements in it (`known.Words`). Shifts and masks by whole elements, words made wider and narrower,
and their bits as elements again move these elements; all else that a body may do with bits is not modelled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutproof.core.element_types import ELEMENT_BITS, element_type
from layoutproof.ir.program import Dtype, Equation
from layoutproof.values.kinds import Shaped
from layoutproof.values.known import BitWords, Known, SignBits, combined, moved, numpy_type
from layoutproof.values.refusals import NotModelled
from layoutproof.values.state import Walking

Array = np.ndarray[Any, Any]


def bits_of(dtype: Dtype) -> int:
    """How many bits an element has."""
    return int(ELEMENT_BITS[element_type(dtype)])


def _alone(on: Walking, value: Shaped, what: str) -> int:
    """The one integer that an array holds everywhere."""
    if isinstance(value, Known) and value.array.size and (value.array == value.array.flat[0]).all():
        return int(value.array.flat[0])
    raise on.refuse(f"bits of data {what}")


def _made(
    parts: Sequence[Shaped | SignBits | None], dtype: Dtype, shape: Sequence[int], whole: npt.DTypeLike
) -> Known | BitWords:
    """Words of these parts; of no bits at all they are 0. Raises NotModelled where they are copies of a sign alone."""
    if all(part is None for part in parts):
        return Known(np.zeros(tuple(shape), np.dtype(whole)))
    if all(part is None or isinstance(part, SignBits) for part in parts):
        raise NotModelled("copies of the sign of data")
    return BitWords(tuple(parts), dtype)


def _shifted(up: bool) -> Callable[[Walking, Equation, list[Shaped]], Shaped]:
    def rule(on: Walking, equation: Equation, operands: list[Shaped]) -> Shaped:
        value, by = operands
        if not isinstance(value, BitWords):
            raise on.refuse("a shift by bits of data")
        whole = equation.outvars[0].aval.dtype
        bits = bits_of(value.dtype)
        steps, left = divmod(_alone(on, by, "shifted by several numbers"), bits)
        if left or steps < 0:
            raise on.refuse(f"bits of data shifted by a part of {bits}")
        signed = not up and equation.primitive.name == "shift_right_arithmetic" and _kind(whole) == "i"
        empty = (SignBits() if signed and value.parts[-1] is not None else None,) * min(steps, len(value.parts))
        parts = (*empty, *value.parts)[: len(value.parts)] if up else (*value.parts[steps:], *empty)
        return _made(parts, value.dtype, value.shape, whole)

    return rule


def _words_first(operands: list[Shaped]) -> tuple[BitWords, Shaped]:
    """Two operands, of which one is words."""
    one, other = operands if isinstance(operands[0], BitWords) else operands[::-1]
    assert isinstance(one, BitWords)
    return one, other


def _and(on: Walking, equation: Equation, operands: list[Shaped]) -> Shaped:
    value, mask = _words_first(operands)
    bits = bits_of(value.dtype)
    held = _alone(on, mask, "masked by several numbers") & (1 << bits * len(value.parts)) - 1
    pieces = [held >> bits * k & (1 << bits) - 1 for k in range(len(value.parts))]
    if any(piece not in (0, (1 << bits) - 1) for piece in pieces):
        raise on.refuse("a mask that takes elements apart")
    kept = [part if piece else None for part, piece in zip(value.parts, pieces, strict=True)]
    return _made(kept, value.dtype, value.shape, equation.outvars[0].aval.dtype)


def _or(on: Walking, equation: Equation, operands: list[Shaped]) -> Shaped:
    """Bits of which no two meet; so it is `xor`, and so it is a sum."""
    a, b = _words_first(operands)
    if not isinstance(b, BitWords):
        if _alone(on, b, "beside several numbers"):
            raise on.refuse("bits of data beside other bits")
        return a
    if a.dtype != b.dtype or any(x is not None and y is not None for x, y in zip(a.parts, b.parts, strict=True)):
        raise on.refuse("bits of data beside other bits")
    return BitWords(tuple(y if x is None else x for x, y in zip(a.parts, b.parts, strict=True)), a.dtype)


def _kind(dtype: Dtype) -> str:
    name = str(element_type(dtype))
    return "u" if name.startswith("u") else "i" if name.startswith("s") else "f"


def converted(on: Walking, value: BitWords, source: Dtype, dtype: Dtype) -> Shaped:
    """Words that are wider or narrower: bits of 0 are put above, or what is above is left out."""
    bits = bits_of(value.dtype)
    many, left = divmod(bits_of(dtype), bits)
    if _kind(dtype) == "f" or not many or left:
        raise on.refuse("the bits of data as a number")
    if many > len(value.parts) and _kind(source) == "i" and value.parts[-1] is not None:
        raise on.refuse("bits of data that keep a sign")
    parts = (value.parts + (None,) * many)[:many]
    return _made(parts, value.dtype, value.shape, numpy_type(dtype))


def as_elements(on: Walking, value: Shaped, source: Dtype, dtype: Dtype, rows: bool) -> Shaped:
    """The bits of words as elements, or of elements as words.

    rows: whether elements that share a word are rows that follow one another (Pallas), or the last dimension (XLA).
    Source: jax/_src/pallas/mosaic/primitives.py, `bitcast`, and XLA's `bitcast-convert`, jax 0.10.2; the element of the
    lowest bits is the first.
    """
    if not isinstance(value, BitWords):
        value = BitWords((value,), source)
    held = value.elements()
    old, new, bits = bits_of(source), bits_of(dtype), bits_of(value.dtype)
    if new > old:
        parts = tuple(_every(on, part, new // old, k, rows) for k in range(new // old) for part in held)
        return _whole(on, BitWords(parts, value.dtype), dtype)
    if new == old:
        return _whole(on, value, dtype)
    if new % bits:
        raise on.refuse("bits of data that are parts of elements")
    each, shape = new // bits, value.shape
    pieces = (held[k : k + each] for k in range(0, len(held), each))
    elements = [_whole(on, _made(piece, value.dtype, shape, _plain(dtype)), dtype) for piece in pieces]
    if not rows:
        return combined(on.numbers, elements, lambda parts: np.stack(parts, -1))
    shape = (*shape[:-2], shape[-2] * len(elements), shape[-1])
    return combined(on.numbers, elements, lambda parts: np.stack(parts, -2).reshape(shape))


def _whole(on: Walking, value: Shaped, dtype: Dtype) -> Shaped:
    """Words as elements of their own width."""
    if not isinstance(value, BitWords):
        return value
    name, of = element_type(dtype), element_type(value.dtype)
    first, *more = value.elements()
    if not more and name == of:
        assert first is not None
        return first
    if _kind(dtype) != "f":
        return value
    if name == "f32" and of == "bf16" and first is None:
        # the upper half of a float32 is the same number as a bfloat16
        assert more[0] is not None
        return more[0]
    raise on.refuse(f"the bits of {of} as {name}")


def _plain(dtype: Dtype) -> npt.DTypeLike:
    return np.float64 if _kind(dtype) == "f" else np.dtype(numpy_type(dtype))


def _every(on: Walking, part: Shaped | None, many: int, first: int, rows: bool) -> Shaped | None:
    """Of elements that share words those that are the `first` of `many`."""
    if part is None:
        return None
    if rows:
        return moved(on.numbers, part, lambda r: r[..., first::many, :])
    return moved(on.numbers, part, lambda r: r[..., first])


RULES: dict[str, Callable[[Walking, Equation, list[Shaped]], Shaped]] = {
    "shift_left": _shifted(True), "shift_right_logical": _shifted(False), "shift_right_arithmetic": _shifted(False),
    "and": _and, "or": _or, "xor": _or,
    **{name: (lambda on, equation, operands: operands[0]) for name in ("copy", "copy_p", "stop_gradient")},
}  # fmt: skip
"""Primitives on words: (walk, equation, operands) -> result."""
