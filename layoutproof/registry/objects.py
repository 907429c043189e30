"""Layouts of the objects that people hold: arrays, shardings and layouts of JAX, NumPy, TVM and CuTe.

The library is known by the module of the object's class, and its objects are read by their attributes, so none of the
libraries is imported here. Nothing is guessed: an object that does not say where its elements are is a LayoutError that
names what is missing and how to give it.

Source: jax 0.10.2 and 0.12.0 (`jax.Array.format`, `jax.ShapeDtypeStruct.format`, `jax.experimental.layout`), numpy 2.4
(`ndarray.strides`), NVIDIA/cutlass python/pycute at 07a0238, apache/tvm python/tvm/tirx/layout.py at 5d4dc87213.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from layoutproof.core.document import JsonObject
from layoutproof.core.element_types import ELEMENT_BITS, element_type
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.layouts import axe, cute, sharding, strided, xla
from layoutproof.layouts.sharding.partition_spec import is_jax
from layoutproof.layouts.xla.shape import COMBINE, XlaLayout, to_text
from layoutproof.registry import problems

if TYPE_CHECKING:
    from jax.experimental.layout import Layout as JaxLayout
    from jax.sharding import Sharding as JaxSharding
    from numpy import generic
    from numpy.typing import NDArray


def layout_of(value: object) -> Any:
    """The layout of an object of JAX, NumPy, TVM or CuTe; None for an object of another library.

    value: a `numpy.ndarray`; a `jax.Array`; a `jax.ShapeDtypeStruct` with a format or a sharding; a `NamedSharding`; a
        layout of TVM's TIRx; a layout of pycute or of `cutlass.cute`.
    Raises LayoutError for an object of theirs that does not say where its elements are.

    >>> import numpy
    >>> str(layout_of(numpy.zeros((3, 4), "float32")[::-1, ::2]))
    'f32[3,2] strides (-4,2)'
    """
    for kind in type(value).__mro__:
        reader = _READERS.get(kind.__module__.partition(".")[0])
        if reader is not None:
            return reader(value)
    return None


def shape_text(value: object) -> str:
    """The element type and the extents of an array of JAX or NumPy, or of a `ShapeDtypeStruct`: `bf16[8,128]`.

    Raises LayoutError for an object without them, and for an element type that is none of XLA's.

    >>> import numpy
    >>> shape_text(numpy.zeros((3, 4), "int8"))
    's8[3,4]'
    """
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        raise LayoutError(problems.NO_SHAPE(_brief(value)))
    kind = element_type(value.dtype)
    if kind not in ELEMENT_BITS:
        raise LayoutError(problems.NO_ELEMENT_TYPE(shorten(str(value.dtype), 40)))
    return f"{kind}[{','.join(map(str, value.shape))}]"


def _numpy(array: NDArray[generic]) -> strided.StridedLayout:
    """Strides in bytes become strides in elements; those of a dimension with at most one index are never taken."""
    if not hasattr(array, "strides") or not hasattr(array, "dtype") or not hasattr(array, "flags"):
        raise LayoutError(problems.NUMPY_OBJECT(_brief(array)))
    if not array.dtype.isnative:
        raise LayoutError(problems.BYTE_ORDER(array.dtype.str))
    text = shape_text(array)
    width = array.dtype.itemsize
    steps = []
    for dimension, (extent, step) in enumerate(zip(array.shape, array.strides, strict=True)):
        if extent > 1 and step % width:
            raise LayoutError(problems.STEP_IN_BYTES(dimension, step, width))
        steps.append(step // width if extent > 1 or step % width == 0 else 0)
    return strided.read(f"{text} strides ({','.join(map(str, steps))})")


def _jax(value: object) -> object:
    kinds = {kind.__name__ for kind in type(value).__mro__}
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        return _jax_part(value)
    text = shape_text(value)
    if any(name.startswith("Tracer") for name in kinds):
        raise LayoutError(problems.TRACED(text, _BY_HAND))
    if getattr(value, "is_deleted", bool)():
        raise LayoutError(problems.DELETED(text))
    shared, stored = _format(value)
    if stored is not None and not hasattr(stored, "major_to_minor"):
        raise LayoutError(problems.AUTO_LAYOUT(text, _BY_HAND))
    if stored is not None:
        text = to_text(_xla(text, stored, shared))
    if shared is None or _single(shared):
        if stored is None:
            raise LayoutError(problems.SHAPE_WITHOUT_LAYOUT(text, _BY_HAND))
        return xla.read(text)
    return sharding.read({"shape": text, **_sharded(shared, len(value.shape))})


_BY_HAND = (
    "give an array, or jax.ShapeDtypeStruct(shape, dtype, sharding=jax.experimental.layout.Format(layout, sharding)); "
    "lp.tpu_default(shape, target) is what the TPU compiler chooses, 'f32[8,128]{1,0}' is row after row"
)


def _jax_part(value: object) -> object:
    """Objects that are no arrays: a sharding reads without a shape; a layout alone does not have the array's size."""
    if is_jax(value):
        return sharding.read(value)
    for attribute in ("major_to_minor", "layout", "device_local_layout", "_to_xla_hlo_sharding"):
        if hasattr(value, attribute):
            raise LayoutError(problems.SHARDING_ALONE(_brief(value)))
    raise LayoutError(problems.JAX_OBJECT(_brief(value)))


def _format(value: object) -> tuple[JaxSharding | None, JaxLayout | None]:
    """(sharding, layout within a shard) of an array or of a ShapeDtypeStruct; None where it says nothing of one.

    jax names them `format`, with a `layout`; before 0.7 `layout`, with a `device_local_layout`.
    """
    found = getattr(value, "format", None) or getattr(value, "layout", None)
    shared = getattr(found, "sharding", None) or getattr(value, "sharding", None)
    mesh = getattr(shared, "mesh", None)
    stored = getattr(found, "layout", None) or getattr(found, "device_local_layout", None)
    return None if getattr(mesh, "empty", False) else shared, stored


def _xla(text: str, stored: JaxLayout, shared: JaxSharding) -> XlaLayout:
    """JAX's layout of one shard as XLA's: dimensions slowest first, levels of tiles, and bits of an element below 8."""
    shape = xla.read(text)
    if not isinstance(shape, XlaLayout):
        raise LayoutError(problems.NO_ARRAY(text))
    order = tuple(int(dimension) for dimension in reversed(stored.major_to_minor))
    tiles = stored.tiling
    if tiles is None:
        if not _platforms(shared) & {"cpu", "gpu"}:
            raise LayoutError(problems.TILES_NOT_SAID(text, stored.major_to_minor))
        tiles = ()
    levels = tuple(tuple(COMBINE if size < 0 else int(size) for size in tile) for tile in tiles)
    bits = int(getattr(stored, "sub_byte_element_size_in_bits", 0))
    return XlaLayout(shape.element_type, shape.dims, shape.dynamic, order, levels, element_bits=bits)


def _platforms(shared: JaxSharding) -> set[str]:
    """Of the devices; none where only the mesh's shape is known. XLA tiles no array on a CPU or GPU."""
    try:
        return {str(device.platform) for device in shared.device_set}
    except (AttributeError, ValueError):
        return set()


def _single(shared: object) -> bool:
    """Whether all of the array is on one device, as far as JAX says."""
    return int(getattr(shared, "num_devices", 0)) == 1


def _sharded(shared: JaxSharding, rank: int) -> JsonObject:
    """A sharding as the sharding language takes it: by its mesh, else as the HloSharding that JAX makes of it."""
    if is_jax(shared):
        return {"sharding": shared}
    try:
        text = str(shared._to_xla_hlo_sharding(rank))
        devices = tuple(int(device.id) for device in shared._device_assignment)
    except (AttributeError, NotImplementedError, TypeError, ValueError) as error:
        raise LayoutError(problems.SHARDING_UNREADABLE(_brief(shared), error)) from None
    in_order = devices == tuple(range(len(devices)))
    return {"sharding": text, "devices": len(devices) if in_order else devices}


def _tvm(value: object) -> object:
    if hasattr(value, "layout") and hasattr(value, "elem_offset"):
        raise LayoutError(problems.BUFFER(_brief(value)))
    return axe.read(value)


def _cute(value: Any) -> cute.CuteLayout:
    """pycute's layouts by their attributes, those of `cutlass.cute` as they print themselves."""
    inner: Any = getattr(value, "layoutA", None)
    outer: Any = getattr(value, "layoutB", None)
    if inner is not None and hasattr(outer, "base"):
        swizzle = [outer.bits, outer.base, outer.shift]
        return cute.read({"shape": inner.shape, "stride": inner.stride, "offset": value.offset, "swizzle": swizzle})
    shape, stride = getattr(value, "shape", None), getattr(value, "stride", None)
    if isinstance(shape, int | tuple) and isinstance(stride, int | tuple) and type(value).__module__[:6] == "pycute":
        return cute.read({"shape": shape, "stride": stride})
    text = str(value)
    if not cute.looks_like(text):
        raise LayoutError(problems.CUTE_OBJECT(shorten(text, 60)))
    return cute.read(text)


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "jax": _jax,
    "jaxlib": _jax,
    "numpy": _numpy,
    "tvm": _tvm,
    "pycute": _cute,
    "cutlass": _cute,
}
"""Top package of an object's class -> how its objects are read."""


def _brief(value: object) -> str:
    return shorten(" ".join(repr(value).split()), 80)
