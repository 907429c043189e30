"""The bytes of a memory from the elements of a JAX array, and back, on the array's own device.

`place` itself runs on the device, so what is checked here is the same function that is proved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import Index, IndexMap, Memory
from layoutproof.questions import problems
from layoutproof.solvers.arrays import LARGEST, ArrayNumbers, extents_of, fits

if TYPE_CHECKING:
    import numpy as np
    from jax import Array


def offsets(m: IndexMap) -> Array:
    """The offset of every element in elements, as a JAX array of the logical shape on the current device.

    Raises LayoutError when a step of `place` may leave 32 bits and JAX's 64-bit mode is off.
    """
    return table(m.flat())[0]


def table(m: IndexMap, replica: Index = ()) -> list[Array]:
    """Each coordinate of every element, as JAX arrays of the logical shape on the current device."""
    import jax.numpy as jnp

    extents = extents_of(m)
    rank = len(extents)
    index = [
        jnp.arange(extent).reshape([extent if d == dimension else 1 for d in range(rank)])
        for dimension, extent in enumerate(extents)
    ]
    return [jnp.broadcast_to(entry, extents) for entry in places(m, tuple(index), replica)]


def places(m: IndexMap, index: Index, replica: Index = ()) -> Index:
    """The coordinates of arrays of indices, which lie in the domain, on the device of the arrays.

    Raises LayoutError when a step of `place` may leave 32 bits and JAX's 64-bit mode is off, or may divide by zero.
    """
    import jax
    import jax.numpy as jnp

    bits = 64 if jax.config.jax_enable_x64 else 32
    largest = LARGEST if bits == 64 else 2**31 - 1
    ends = [int(extent) for extent in m.range.extents]
    if not fits(m, replica, largest=largest) or any(end > largest for end in ends):
        more = ": set jax_enable_x64" if bits == 32 else ""
        raise LayoutError(problems.PLACES_RANGE(bits, more))
    found = m.place(index, replica, ArrayNumbers(jnp))
    shape = jnp.broadcast_shapes(*map(jnp.shape, index)) if index else ()
    return tuple([jnp.broadcast_to(jnp.asarray(entry), shape) for entry in found])


def to_image(m: IndexMap, memory: Memory, array: Array) -> Array:
    """Exactly the allotted bytes as a 1-D uint8 JAX array; see `images.to_image`."""
    import jax
    import jax.numpy as jnp

    if memory.bits < 8 and array.dtype in (jnp.int8, jnp.uint8):
        _check_range(array, memory.bits)

    def move(array: Array) -> Array:
        allotted = int(memory.allotted)
        at = offsets(m).reshape(-1)
        rows = _as_bytes(array).reshape(at.shape[0], memory.natural_bits // 8)
        options = {"unique_indices": True, "mode": "promise_in_bounds"}
        if memory.bits < 8:
            per_byte = 8 // memory.bits
            length = -(-allotted // per_byte)
            low = rows[:, 0] & ((1 << memory.bits) - 1)
            places = jnp.zeros(length * per_byte, jnp.uint8).at[at].set(low, **options)
            shifts = jnp.arange(per_byte, dtype=jnp.uint8) * jnp.uint8(memory.bits)
            body = (places.reshape(length, per_byte) << shifts).sum(axis=1, dtype=jnp.uint8)
        else:
            wide = jnp.pad(rows, ((0, 0), (0, (memory.bits - memory.natural_bits) // 8)))
            body = jnp.zeros((allotted, memory.bits // 8), jnp.uint8).at[at].set(wide, **options).reshape(-1)
        return jnp.concatenate([jnp.zeros(memory.prefix_bytes, jnp.uint8), body])

    if array.size == 0:
        return jnp.zeros(int(memory.bytes()), jnp.uint8, device=getattr(array, "sharding", None))
    return jax.jit(move)(array)


def from_image(m: IndexMap, memory: Memory, image: Array, dtype: np.dtype[np.generic]) -> Array:
    """The elements of an image as `to_image` makes it, in the logical shape; see `images.from_image`.

    Raises LayoutError for elements of 64 bits when JAX's 64-bit mode is off.
    """
    import jax
    import jax.numpy as jnp

    def move(image: Array) -> Array:
        at, body = offsets(m), image[memory.prefix_bytes :]
        if memory.bits < 8:
            per_byte = 8 // memory.bits
            shifts = (at % per_byte * memory.bits).astype(jnp.uint8)
            low = (body[at // per_byte] >> shifts) & ((1 << memory.bits) - 1)
            if dtype == jnp.int8:
                unused = 8 - memory.bits
                return (low << unused).astype(jnp.int8) >> unused
            return _from_bytes(low[..., None], dtype)
        rows = body.reshape(-1, memory.bits // 8)
        return _from_bytes(rows[at][..., : memory.natural_bits // 8], dtype)

    if dtype.itemsize >= 8 and dtype != jnp.complex64 and not jax.config.jax_enable_x64:
        raise LayoutError(problems.JAX_DTYPE(dtype))
    if 0 in extents_of(m):
        return jnp.zeros(extents_of(m), dtype, device=getattr(image, "sharding", None))
    return jax.jit(move)(image)


def _check_range(array: Array, bits: int) -> None:
    import jax
    import jax.numpy as jnp

    if isinstance(array, jax.core.Tracer):
        raise LayoutError(problems.ELEMENT_RANGE_TRACED(array.dtype, bits))
    low, high = (-(1 << (bits - 1)) if array.dtype == jnp.int8 else 0), (1 << bits) - 1
    for extreme in (int(array.min()), int(array.max())) if array.size else ():
        if not low <= extreme <= high:
            raise LayoutError(problems.ELEMENT_RANGE(extreme, bits, low, high))


def _bits(dtype: np.dtype[np.generic]) -> int:
    """The width of a real type in bits; LayoutError for one that XLA has no operations for."""
    import jax.numpy as jnp

    bits = int(jnp.finfo(dtype).bits if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype).bits)
    if bits == 1:
        raise LayoutError(problems.JAX_ELEMENT_TYPE(dtype))
    return bits


def _as_bytes(array: Array) -> Array:
    """One more axis: the bytes of each element, least significant first; types below a byte fill one."""
    import jax.numpy as jnp
    from jax import lax

    if jnp.iscomplexobj(array):
        array = jnp.stack([array.real, array.imag], axis=-1)
    if array.dtype == jnp.bool_:
        return array.astype(jnp.uint8)[..., None]
    bits = _bits(array.dtype)
    if bits < 8:
        return lax.bitcast_convert_type(array, f"uint{bits}").astype(jnp.uint8)[..., None]
    as_bytes = lax.bitcast_convert_type(array, jnp.uint8)
    return as_bytes[..., None] if bits == 8 else as_bytes


def _from_bytes(rows: Array, dtype: np.dtype[np.generic]) -> Array:
    """The inverse of `_as_bytes`; a bool is true for every byte but 0."""
    import jax.numpy as jnp
    from jax import lax

    if dtype == jnp.bool_:
        return rows[..., 0] != 0
    if jnp.issubdtype(dtype, jnp.complexfloating):
        half = rows.reshape(*rows.shape[:-1], 2, dtype.itemsize // 2)
        parts = lax.bitcast_convert_type(half, jnp.float32 if dtype.itemsize == 8 else jnp.float64)
        return lax.complex(parts[..., 0], parts[..., 1])
    bits = _bits(dtype)
    if bits < 8:
        return lax.bitcast_convert_type(rows[..., 0].astype(f"uint{bits}"), dtype)
    return lax.bitcast_convert_type(rows[..., 0] if bits == 8 else rows, dtype)
