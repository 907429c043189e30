"""The bytes of a memory from the elements of a NumPy array, and back; where each element goes is given."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from layoutproof.core.element_types import ELEMENT_BITS, dtype_name, element_type
from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import Memory
from layoutproof.questions import problems

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MACHINE_WORDS = {8: "u1", 16: "<u2", 32: "<u4", 64: "<u8"}


def check_widths(memory: Memory) -> None:
    """LayoutError unless elements of the natural width can be stored in the width of the memory, whole."""
    bits, natural = memory.bits, memory.natural_bits
    if natural % 8:
        raise LayoutError(problems.ELEMENT_BITS(natural))
    if bits in (1, 2, 4) and natural == 8:
        return
    if bits % 8 or bits < natural:
        raise LayoutError(problems.STORED_BITS(natural, bits))


def array_dtype(kind: str | None, memory: Memory) -> np.dtype[np.generic]:
    """The NumPy type of an element type that XLA or NumPy names: ml_dtypes' where NumPy has none.

    Without ml_dtypes unsigned integers of its width.

    Raises LayoutError for a width that no NumPy type has.

    >>> array_dtype("f32", Memory(32, 32, 1))
    dtype('float32')
    >>> array_dtype(None, Memory(16, 16, 1))
    dtype('uint16')
    """
    import numpy as np

    wanted = dtype_name(element_type(kind or ""))
    if element_type(wanted) in ELEMENT_BITS:
        with suppress(TypeError):
            return np.dtype(wanted)
        with suppress(ImportError, AttributeError):
            import ml_dtypes

            narrow: np.dtype[Any] = np.dtype(getattr(ml_dtypes, wanted))
            return narrow
    if memory.natural_bits not in _MACHINE_WORDS:
        raise LayoutError(problems.NO_DTYPE_OF_BITS(memory.natural_bits))
    return np.dtype(f"uint{memory.natural_bits}")


def to_image(memory: Memory, offsets: NDArray[np.int64], array: NDArray[np.generic]) -> NDArray[np.uint8]:
    """Exactly the allotted bytes, elements at their offsets, everything else zero. Offsets must not repeat."""
    import numpy as np

    image = np.zeros(int(memory.bytes()), dtype=np.uint8)
    body, allotted = image[memory.prefix_bytes :], int(memory.allotted)
    at = offsets.reshape(-1)
    if memory.bits < 8:
        per_byte = 8 // memory.bits
        places = np.zeros(len(body) * per_byte, dtype=np.uint8)
        places[at] = _low_bits(array, memory.bits).reshape(-1)
        for position, part in enumerate(places.reshape(-1, per_byte).T):
            # the element at the lower offset takes the lower bits, as XLA and Mosaic pack
            body |= part << np.uint8(memory.bits * position)
        return image
    elements = _little_endian(array).reshape(-1)
    word = _MACHINE_WORDS.get(memory.bits)
    if word is not None and memory.bits == memory.natural_bits and memory.prefix_bytes == 0:
        body.view(word)[at] = elements.view(word)
    else:
        width = memory.natural_bits // 8
        body.reshape(allotted, memory.bits // 8)[at, :width] = elements.view(np.uint8).reshape(-1, width)
    return image


def from_image(
    memory: Memory, offsets: NDArray[np.int64], image: NDArray[np.uint8], dtype: np.dtype[np.generic]
) -> NDArray[np.generic]:
    """The elements at `offsets` of an image as `to_image` makes it, in the shape of `offsets`."""
    import numpy as np

    body = image[memory.prefix_bytes :]
    if memory.bits < 8:
        per_byte = 8 // memory.bits
        shifts = ((offsets % per_byte) * memory.bits).astype(np.uint8)
        parts = (body[offsets // per_byte] >> shifts) & np.uint8((1 << memory.bits) - 1)
        if dtype.kind == "i":
            parts = parts | np.where(parts >> (memory.bits - 1) & 1, (0xFF << memory.bits) & 0xFF, 0).astype(np.uint8)
        narrow: NDArray[Any] = parts.astype(bool) if dtype.kind == "b" else parts.view(dtype)
        return narrow
    width = memory.natural_bits // 8
    rows = body.reshape(int(memory.allotted), memory.bits // 8)
    word = _MACHINE_WORDS.get(memory.bits)
    if word is not None and memory.bits == memory.natural_bits and memory.prefix_bytes == 0:
        picked: NDArray[Any] = body.view(word)[offsets]
    else:
        picked = np.ascontiguousarray(rows[offsets.reshape(-1), :width]).view(f"V{width}").reshape(offsets.shape)
    if dtype.kind == "b":
        # a byte other than 0 and 1 is true, and would not be a valid NumPy bool as it stands
        bools: NDArray[Any] = picked.view(np.uint8) != 0
        return bools
    elements: NDArray[Any] = picked.view(dtype.newbyteorder("<")).astype(dtype, copy=False)
    return elements


def _little_endian(array: NDArray[np.generic]) -> NDArray[np.generic]:
    import numpy as np

    return np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))


def _low_bits(array: NDArray[Any], bits: int) -> NDArray[np.uint8]:
    """Elements as bytes with only the low `bits` bits set; LayoutError for a number that needs more of them."""
    import numpy as np

    if array.dtype.kind in "iu":
        low, high = (-(1 << (bits - 1)) if array.dtype.kind == "i" else 0), (1 << bits) - 1
        wrong = array[(array < low) | (array > high)]
        if wrong.size:
            raise LayoutError(problems.ELEMENT_RANGE(int(wrong[0]), bits, low, high))
    data, mask = np.ascontiguousarray(array).view(np.uint8), np.uint8((1 << bits) - 1)
    if array.dtype.name.startswith("float") and (data > mask).any():
        # the low part of a float is another float; of ml_dtypes' integers it is the number, whatever is above
        raise LayoutError(problems.ELEMENT_BITS_LOST(array[data > mask][0], array.dtype, bits))
    return data & mask
