"""Where elements are: one of them, all of them as a table, and real arrays moved there and back."""

from __future__ import annotations

import itertools
import operator
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, cast

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.index_map import Index, IndexMap, Memory
from layoutproof.core.result import Verdict
from layoutproof.core.size import product
from layoutproof.core.space import axis_names
from layoutproof.questions import problems
from layoutproof.questions.ask import ask
from layoutproof.questions.images import array_dtype, check_widths, from_image, to_image
from layoutproof.registry.read import map_of, read_layout
from layoutproof.solvers.arrays import extents_of, places, values

if TYPE_CHECKING:
    import jax
    import numpy as np
    from numpy.typing import ArrayLike, DTypeLike, NDArray

Array: TypeAlias = "NDArray[np.generic] | jax.Array"
"""An array where its caller has it: in NumPy, or on a device of JAX."""

LARGEST_TABLE = 16 * 2**30
"""Bytes of the largest table that `table` makes."""

_MOST_DIMENSIONS = 64


def locate(layout: object, index: Sequence[int]) -> list[dict[str, int]]:
    """Every place of one element.

    Args:
        layout: Text, a mapping `{language: value}`, an object that `read_layout` takes, or a map.
        index: The logical index, one int per dimension, dimension 0 first.

    Returns:
        One dict per replica, {axis name: coordinate}; for a layout of memory {"offset": offset in elements}.

    Raises:
        LayoutError: The index has another rank or is outside the array, or a size symbol has no value.

    >>> locate("f32[3,5]{1,0:T(2,2)}", (2, 3))
    [{'offset': 17}]
    >>> locate("(i < 256, j < 512) -> (i // 8, j // 128)", (17, 300))
    [{'p0': 2, 'p1': 2}]
    """
    read, m = read_constant(layout)
    at = _checked_index(read, m, index)
    if m.memory is not None:
        m = m.flat()
    replicas = itertools.product(*[range(int(extent)) for extent in m.replicas.extents])
    places = [m.at(at, replica) for replica in replicas]
    if m.memory is not None:
        return [{"offset": place[0]} for place in places]
    names = m.range.names or axis_names(m.coordinates())
    return [dict(zip(names, place, strict=True)) for place in places]


def evaluate(layout: object, indices: Sequence[ArrayLike], replica: Sequence[int] | None = None) -> Array:
    """The places of many elements at once, on the device where their indices are.

    Args:
        layout: Text, a mapping `{language: value}`, an object that `read_layout` takes, or a map.
        indices: One array of integers per dimension, dimension 0 first; they are broadcast together. Arrays of JAX
            are computed with on their own device, also while `jit` traces.
        replica: Which replica, one int per replica axis; None where there is one only.

    Returns:
        Offsets in elements, in the shape of the indices: int64 of NumPy, or an array of JAX where an index is one. A
        map to several coordinates has them along one more, last axis.

    Raises:
        LayoutError: An index is outside the array (not checked of an index that is being traced), a size symbol has
            no value, or a place needs more than 64 bits (of JAX: more than the bits of its integers).

    >>> import numpy
    >>> evaluate("f32[3,5]{1,0:T(2,2)}", [numpy.array([0, 2]), numpy.array([4, 3])])
    array([ 8, 17])
    >>> evaluate("S[(8,4):(4@lane,1@reg)]", [[5, 31]])
    array([[ 4,  1],
           [28,  3]])
    """
    import numpy as np

    read, m = read_constant(layout)
    at = _checked_replica(read, m, replica)
    rank = len(m.domain.extents)
    if len(indices) != rank:
        raise LayoutError(problems.INDEX_ARRAYS(len(indices), rank, shown(read)))
    if m.memory is not None:
        m = m.flat()
    on_device = any(map(_is_jax, indices))
    arrays = [_indices(read, m, d, array, on_device) for d, array in enumerate(indices)]
    try:
        np.broadcast_shapes(*[array.shape for array in arrays])
    except ValueError:
        shapes = " and ".join(str(array.shape) for array in arrays)
        raise LayoutError(problems.INDEX_SHAPES(shapes)) from None
    if on_device:
        from layoutproof.questions import images_jax

        return _joined(images_jax.places(m, tuple(arrays), at), sys.modules["jax"].numpy)
    return _joined(places(m, tuple(arrays), at), np)


def table(layout: object, replica: Sequence[int] | None = None, device: object = None) -> Array:
    """The place of every element, as one array.

    Args:
        layout: Text, a mapping `{language: value}`, an object that `read_layout` takes, or a map.
        replica: Which replica, one int per replica axis; None where there is one only.
        device: A device of JAX, or the name of a platform such as "cpu" or "tpu", to compute the table on; None for
            NumPy.

    Returns:
        In the logical shape, offsets in elements: int64 of NumPy, or an array of JAX on that device, of JAX's own width
        of integers. A map to several coordinates has them along one more, last axis.

    Raises:
        LayoutError: A size symbol has no value, an offset needs more than 64 bits (of JAX: more than the bits of its
            integers), the table more than 16 GiB, or there is no such device.

    >>> table("f32[3,5]{1,0:T(2,2)}")
    array([[ 0,  1,  4,  5,  8],
           [ 2,  3,  6,  7, 10],
           [12, 13, 16, 17, 20]])
    """
    import numpy as np

    read, m = read_constant(layout)
    at = _checked_replica(read, m, replica)
    if m.memory is not None:
        m = m.flat()
    shape = extents_of(m)
    axes = m.coordinates()
    if axes != 1:
        shape = (*shape, axes)
    if len(shape) > _MOST_DIMENSIONS:
        raise LayoutError(problems.TABLE_RANK(len(shape), _MOST_DIMENSIONS))
    size = 8 * int(product(shape))
    if size > LARGEST_TABLE:
        raise LayoutError(problems.TABLE_BYTES(shown(read), size, LARGEST_TABLE))
    if device is not None:
        return _table_on(device, m, at, shape)
    if size == 0:
        return np.empty(shape, dtype=np.int64)
    return _joined(values(m, at), np)


def _table_on(device: object, m: IndexMap, replica: Index, shape: tuple[int, ...]) -> jax.Array:
    """The table as an array of JAX on a device."""
    try:
        import jax
    except ImportError:
        raise LayoutError(problems.TABLE_WITHOUT_JAX()) from None
    from layoutproof.questions import images_jax

    try:
        chosen = jax.devices(device)[0] if isinstance(device, str) else device
    except RuntimeError as error:
        raise LayoutError(problems.UNKNOWN_DEVICE(shorten(str(device), 40), shorten(str(error), 120))) from None
    if not isinstance(chosen, jax.Device):
        raise LayoutError(problems.DEVICE_TYPE(shorten(repr(device), 60)))
    with jax.default_device(chosen):
        if 0 in shape:
            return jax.numpy.zeros(shape, int)
        return jax.device_put(_joined(images_jax.table(m, replica), jax.numpy), chosen)


def _joined(coordinates: Sequence[Array], library: ModuleType) -> Array:
    """One coordinate as it is; several along one more, last axis."""
    return coordinates[0] if len(coordinates) == 1 else library.stack(coordinates, axis=-1)


def _indices(layout: object, m: IndexMap, dimension: int, array: object, on_device: bool) -> Array:
    """One dimension's indices as an array of integers, each inside its extent where that can be seen."""
    import numpy as np

    found = array if _is_jax(array) else _as_numpy(array)
    if found.dtype.kind not in "iu" and found.size:
        raise LayoutError(problems.INDEX_DTYPE(dimension, found.dtype))
    extent, name = extents_of(m)[dimension], m.domain.names[dimension]
    if on_device and isinstance(found, sys.modules["jax"].core.Tracer):
        return found
    if found.size:
        for entry in (int(found.min()), int(found.max())):
            if not 0 <= entry < extent:
                raise LayoutError(problems.INDEX_OUTSIDE(entry, dimension, name, extent - 1, shown(layout)))
    if on_device:
        return sys.modules["jax"].numpy.asarray(found, int)
    return found.astype(np.int64)


def pack(layout: object, array: Array) -> Array:
    """The bytes of the memory that holds an array.

    Padding and the metadata prefix are zero bytes. An element stored in more bytes than it has is followed by zero
    bytes; where several share a byte, the one at the lower offset has the lower bits.

    Args:
        layout: A layout of memory, as for `table`.
        array: The elements in the logical shape, items as wide as the element type. A type below one byte comes as one
            element per byte (int8, uint8, or ml_dtypes'). A JAX array is moved on its own device.

    Returns:
        1-D uint8, exactly the allotted bytes, little-endian: a JAX array for a JAX array, else NumPy.

    Raises:
        LayoutError: It is not proved that no two elements share a place and that all places are inside; or the array
            has another shape or width; or an element does not fit into the stored bits.

    >>> import numpy
    >>> pack("s8[2,3]{0,1:L(8)}", numpy.arange(6, dtype=numpy.int8).reshape(2, 3)).tolist()
    [0, 3, 1, 4, 2, 5, 0, 0]
    """
    read, m, memory = _movable(layout)
    on_device = _is_jax(array)
    if not on_device:
        array = _as_numpy(array)
    if array.shape != extents_of(m):
        raise LayoutError(problems.ARRAY_SHAPE(array.shape, shown(read), extents_of(m)))
    _check_item(read, memory, array.dtype)
    if on_device:
        from layoutproof.questions import images_jax

        return images_jax.to_image(m, memory, array)
    return to_image(memory, cast("NDArray[np.int64]", table(m)), array)


def unpack(layout: object, buffer: Array | bytes | bytearray | memoryview, dtype: DTypeLike | None = None) -> Array:
    """The array that a memory holds: the inverse of `pack`.

    Args:
        layout: A layout of memory, as for `table`.
        buffer: Exactly the allotted bytes: 1-D uint8 (a JAX array stays on its device), or bytes.
        dtype: NumPy type of the result; None for the element type's own (ml_dtypes' for bf16 and the like).

    Returns:
        The elements in the logical shape.

    Raises:
        LayoutError: As for `pack`, or the buffer has another length.

    >>> unpack("s8[2,3]{0,1:L(8)}", bytes([0, 3, 1, 4, 2, 5, 0, 0]))
    array([[0, 1, 2],
           [3, 4, 5]], dtype=int8)
    """
    import numpy as np

    read, m, memory = _movable(layout)
    if isinstance(buffer, bytes | bytearray | memoryview):
        buffer = np.frombuffer(buffer, dtype=np.uint8)
    on_device = _is_jax(buffer)
    if not on_device:
        buffer = _as_numpy(buffer)
    expected = int(memory.bytes())
    if buffer.shape != (expected,) or buffer.dtype != np.uint8:
        raise LayoutError(problems.BUFFER_SHAPE(buffer.dtype, buffer.shape, shown(read), expected))
    try:
        kind = array_dtype(getattr(read, "element_type", None), memory) if dtype is None else np.dtype(dtype)
    except TypeError as error:
        raise LayoutError(problems.NO_NUMPY_DTYPE(shorten(repr(dtype), 40), error)) from None
    _check_item(read, memory, kind)
    if on_device:
        from layoutproof.questions import images_jax

        return images_jax.from_image(m, memory, buffer, kind)
    return from_image(memory, cast("NDArray[np.int64]", table(m)), np.ascontiguousarray(buffer), kind)


def _movable(layout: object) -> tuple[object, IndexMap, Memory]:
    """A layout of which it is proved that elements keep apart and stay inside."""
    read, m = read_constant(layout)
    memory = m.memory
    if memory is None:
        raise LayoutError(problems.NO_MEMORY(shown(read)))
    if m.replicas.extents:
        raise LayoutError(problems.PACK_REPLICAS(shown(read)))
    check_widths(memory)
    for name in ("injective", "in_bounds") if product(m.domain.extents) else ():
        result = ask(name, read)
        if result.verdict is not Verdict.PROVED:
            raise LayoutError(problems.PACK_UNPROVED(shown(read), name, result.verdict.value, result.reason))
    return read, m, memory


def _check_item(layout: object, memory: Memory, dtype: np.dtype[np.generic]) -> None:
    if dtype.itemsize * 8 != memory.natural_bits or dtype.hasobject:
        raise LayoutError(problems.ITEM_BITS(dtype, dtype.itemsize * 8, shown(layout), memory.natural_bits))


def _as_numpy(array: object) -> NDArray[np.generic]:
    import numpy as np

    try:
        found: NDArray[Any] = np.asarray(array)
    except ValueError as error:
        raise LayoutError(problems.NO_NUMPY_ARRAY(error)) from None
    return found


def _is_jax(array: object) -> TypeGuard[jax.Array]:
    # an array of JAX can exist only where jax is imported already: no other caller pays for importing it
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(array, jax.Array)


def read_constant(layout: object) -> tuple[object, IndexMap]:
    """A layout and its map; LayoutError when it has sizes that are not known."""
    read = read_layout(layout)
    m = map_of(read)
    symbols = m.sizes()
    if symbols:
        raise LayoutError(problems.SIZE_WITHOUT_VALUE(shown(read), symbols[0]))
    return read, m


def shown(layout: object) -> str:
    """A layout on one line, for messages."""
    return f"the map of ({layout.domain})" if isinstance(layout, IndexMap) else shorten(str(layout), 100)


def _checked_index(layout: object, m: IndexMap, index: Sequence[int]) -> tuple[int, ...]:
    at = _integers(index, "an index")
    if len(at) != len(m.domain.extents):
        raise LayoutError(problems.INDEX_RANK(at, len(at), shown(layout), len(m.domain.extents)))
    for dimension, (entry, extent) in enumerate(zip(at, extents_of(m), strict=True)):
        if not 0 <= entry < extent:
            name = m.domain.names[dimension]
            if not extent:
                raise LayoutError(problems.INDEX_OF_EMPTY(entry, dimension, name, shown(layout)))
            raise LayoutError(problems.INDEX_OUTSIDE(entry, dimension, name, extent - 1, shown(layout)))
    return at


def _checked_replica(layout: object, m: IndexMap, replica: Sequence[int] | None) -> tuple[int, ...]:
    extents = tuple([int(extent) for extent in m.replicas.extents])
    if replica is None:
        if product(extents) != 1:
            count = product(extents)
            raise LayoutError(problems.REPLICA_MISSING(shown(layout), count))
        return (0,) * len(extents)
    at = _integers(replica, "a replica")
    if len(at) != len(extents) or not all(0 <= entry < extent for entry, extent in zip(at, extents, strict=True)):
        raise LayoutError(problems.REPLICA_OUTSIDE(at, extents, shown(layout)))
    return at


def _integers(entries: Sequence[int], what: str) -> tuple[int, ...]:
    try:
        return tuple([operator.index(entry) for entry in entries])
    except TypeError:
        got = shorten(repr(entries), 60)
        raise LayoutError(problems.INDEX_TYPE(what, got)) from None
