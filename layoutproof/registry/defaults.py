"""The layout that a target gives an array of which only the shape is known."""

from __future__ import annotations

from dataclasses import replace

from layoutproof.core.errors import LayoutError
from layoutproof.hardware import tpu
from layoutproof.layouts import xla
from layoutproof.layouts.xla.shape import ELEMENT_BITS, XlaLayout
from layoutproof.registry import problems
from layoutproof.registry.objects import shape_text


def tpu_default(shape: object, target: str) -> XlaLayout:
    """The layout that the TPU compiler gives an array by default, at program entry and exit.

    Args:
        shape: Text such as `f32[1000,5]`, an array of JAX or NumPy, or a `jax.ShapeDtypeStruct`. A layout in it is
            ignored.
        target: A TPU generation: v2 v3 v4 v4lite v5e v5p v6e 7x.

    Returns:
        The shape with its layout: order of the dimensions, tiles, bits of an element.

    Raises:
        LayoutError: A size is symbolic (the choice depends on divisibility), the shape is a tuple, or the target is
            unknown.

    Source: measured on libtpu 0.0.42.1 (2026-06); see `hardware.tpu.default_layout`.

    >>> str(tpu_default("f32[1000,5]", target="v5e"))
    'f32[1000,5]{0,1:T(8,128)}'
    """
    read = shape if isinstance(shape, XlaLayout) else xla.read(shape if isinstance(shape, str) else shape_text(shape))
    if not isinstance(read, XlaLayout):
        raise LayoutError(problems.NO_DEFAULT(read))
    extents = [extent for extent in read.dims if isinstance(extent, int)]
    if len(extents) != len(read.dims):
        raise LayoutError(problems.DEFAULT_OF_SIZES(read))
    default = tpu.default_layout(extents, ELEMENT_BITS[read.element_type], target)
    plain = XlaLayout(read.element_type, read.dims, read.dynamic, default.minor_to_major, buffer=read.buffer)
    return replace(plain, tiles=default.tiles, element_bits=default.element_bits)
