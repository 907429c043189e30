"""Values that follow from the code alone: integers, truth values, and the floats of the code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard, cast

import numpy as np
import numpy.typing as npt

from layoutproof.ir.program import Dtype
from layoutproof.values.kinds import D, NumberKind, Shaped, Span
from layoutproof.values.refusals import NotModelled

Array = np.ndarray[Any, Any]


def product_span(x: Span, y: Span) -> Span:
    """Of products."""
    ends = [p * q for p in x for q in y]
    return min(ends), max(ends)


def hull(spans: Sequence[Span | None]) -> Span | None:
    """Of all together; None if one is unknown."""
    known = [span for span in spans if span is not None]
    return (min(s[0] for s in known), max(s[1] for s in known)) if len(known) == len(spans) else None


def numpy_type(dtype: Dtype) -> np.dtype[Any]:
    """An element type of NumPy or of ml_dtypes, of which arrays are: others have none, which NumPy says."""
    return cast("np.dtype[Any]", dtype)


def any_integers(draw: np.random.Generator, shape: Sequence[int], dtype: Dtype) -> Array:
    """Integers that were never written: any of the type."""
    if dtype.kind == "b":
        return draw.integers(0, 2, tuple(shape)).astype(numpy_type(dtype))
    info = np.iinfo(numpy_type(dtype))
    found: Array = draw.integers(info.min, info.max, tuple(shape), numpy_type(dtype), endpoint=True)
    return found


@dataclass(frozen=True)
class Known:
    """An array that is known.

    array: integers and truth values as they are, floats as float64; keys of random numbers as JAX has them.
    sampled: whether it rests on how data compare, which a point of a field decides at random.
    """

    array: Any
    sampled: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents in elements."""
        return tuple(self.array.shape)


@dataclass(frozen=True)
class DeviceParts:
    """The values on the devices of a mesh, where they differ. parts: of each, in row-major order of the mesh."""

    parts: tuple[Shaped, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents in elements, of one device's part."""
        return tuple(self.parts[0].shape)


@dataclass(frozen=True)
class SignBits:
    """A part of a word whose bits are copies of its sign: a mask leaves it out, and nothing else is known of it."""


@dataclass(frozen=True)
class BitWords:
    """Integers that are bits of data. dtype: of the elements whose bits they are.

    parts: of each word the elements in it, the one of the lowest bits first; None where all bits are 0.
    """

    parts: tuple[Shaped | SignBits | None, ...]
    dtype: Dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents in words."""
        return next(tuple(part.shape) for part in self.parts if part is not None and not isinstance(part, SignBits))

    def elements(self) -> tuple[Shaped | None, ...]:
        """Its parts, where they are elements. Raises NotModelled where one is made of copies of a sign."""
        return tuple(map(_element, self.parts))


@dataclass(frozen=True)
class Complex:
    """Complex numbers, as two real ones each."""

    real: Shaped
    imaginary: Shaped

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents in elements."""
        return tuple(self.real.shape)


def are_known(values: Sequence[Shaped]) -> TypeGuard[Sequence[Known]]:
    """Whether all of some values are known."""
    return all(isinstance(v, Known) for v in values)


def known_of(value: Known | npt.ArrayLike, sampled: bool = False) -> Known | Complex:
    """A number or an array of the code."""
    if isinstance(value, Known):
        return value
    dtype = getattr(value, "dtype", None)
    if dtype is not None and not isinstance(dtype, np.dtype):
        # keys of random numbers
        return Known(value, sampled)
    array = np.asarray(value)
    if array.dtype.kind == "V":
        # bfloat16, float8 and narrow integers of ml_dtypes
        whole = "int" in array.dtype.name
        array = array.astype(np.int8 if whole else np.float64)
    elif array.dtype.kind == "f":
        array = array.astype(np.float64)
    elif array.dtype.kind == "c":
        wide = array.astype(np.complex128)
        return Complex(Known(wide.real, sampled), Known(wide.imag, sampled))
    return Known(array, sampled)


def first_place(mask: Array) -> tuple[int, ...] | None:
    """The first place in row-major order where a mask holds; None where it holds nowhere.

    >>> first_place(np.array([[False, False], [True, True]]))
    (1, 0)
    """
    flat = mask.reshape(-1)
    return tuple(int(k) for k in np.unravel_index(int(flat.argmax()), mask.shape)) if flat.any() else None


def _element(part: Shaped | SignBits | None) -> Shaped | None:
    if isinstance(part, SignBits):
        raise NotModelled("bits of data beside copies of their sign")
    return part


def data_of(numbers: NumberKind[D], value: Shaped) -> D:
    """A value as data of a kind of number, whose own all other data of a walk are."""
    if isinstance(value, BitWords):
        raise NotModelled("arithmetic on the bits of data")
    if isinstance(value, Complex):
        raise NotModelled("complex numbers")
    return numbers.constant(value.array) if isinstance(value, Known) else cast(D, value)


def moved(numbers: NumberKind[D], value: Shaped, move: Callable[[Array], Array]) -> Shaped:
    """A value whose elements are moved and nothing is computed."""
    if isinstance(value, DeviceParts):
        return DeviceParts(tuple(moved(numbers, part, move) for part in value.parts))
    if isinstance(value, Known):
        return Known(move(value.array), value.sampled)
    if isinstance(value, BitWords):
        parts = (p if p is None or isinstance(p, SignBits) else moved(numbers, p, move) for p in value.parts)
        return BitWords(tuple(parts), value.dtype)
    if isinstance(value, Complex):
        return Complex(moved(numbers, value.real, move), moved(numbers, value.imaginary, move))
    return numbers.map(data_of(numbers, value), move)


def combined(numbers: NumberKind[D], values: Sequence[Shaped], move: Callable[[Sequence[Array]], Array]) -> Shaped:
    """One value made of several, nothing being computed."""
    many = next((len(v.parts) for v in values if isinstance(v, DeviceParts)), 0)
    if many:
        rows = zip(*(v.parts if isinstance(v, DeviceParts) else (v,) * many for v in values), strict=True)
        return DeviceParts(tuple(combined(numbers, row, move) for row in rows))
    words = [v for v in values if isinstance(v, BitWords)]
    if words:
        return _combined_words(numbers, values, words, move)
    if any(isinstance(v, Complex) for v in values):
        # their rules make pairs of all operands
        both = zip(*((v.real, v.imaginary) for v in cast(Sequence[Complex], values)), strict=True)
        return Complex(*(combined(numbers, part, move) for part in both))
    if are_known(values):
        return Known(move([v.array for v in values]), any(v.sampled for v in values))
    return numbers.combine([data_of(numbers, v) for v in values], move)


def _combined_words(
    numbers: NumberKind[D], values: Sequence[Shaped], words: Sequence[BitWords], move: Callable[..., Array]
) -> BitWords:
    """Likewise of words; beside them may stand integers that are 0."""
    dtype, many = words[0].dtype, len(words[0].parts)
    zeros = [v for v in values if not isinstance(v, BitWords)]
    if any(w.dtype != dtype or len(w.parts) != many for w in words) or not all(
        isinstance(z, Known) and not z.array.any() for z in zeros
    ):
        raise NotModelled("bits of data beside other integers")

    def part(value: Shaped, k: int) -> Shaped:
        held = value.elements()[k] if isinstance(value, BitWords) else None
        # no bit of a 0 is set, whatever its type is
        return Known(np.zeros(value.shape)) if held is None else held

    return BitWords(tuple(combined(numbers, [part(v, k) for v in values], move) for k in range(many)), dtype)
