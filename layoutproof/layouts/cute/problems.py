"""What may be wrong with a CuTe layout."""

from __future__ import annotations

from layoutproof.core.message import Template

AFTER_STRIDE = Template("cute.after_stride", "nothing may follow the stride")
AXIS_STRIDE = Template(
    "cute.axis_stride", "{plain}: a stride along a named axis is understood but not modelled; use the axe language"
)
DEPTH = Template("cute.depth", "{what} is nested more than {deepest} deep")
EXTENT = Template("cute.extent", "the extent {extent} must be at least 1")
FORM = Template("cute.form", "a cute layout is a text such as (8,64):(64,1), or a mapping, not {value}")
KEY = Template(
    "cute.key", "a cute layout has shape, and stride or order, optionally swizzle, offset, type; got {value}"
)
LEAF = Template("cute.leaf", "{what} is an integer, a size expression or a list of them, not {value!r}")
NESTING = Template("cute.nesting", "shape {shape} and stride {stride} are not nested alike")
OFFSET = Template("cute.offset", "offset is one integer, not {offset}")
OFFSET_NEGATIVE = Template("cute.offset_negative", "the offset {offset} must be at least 0")
ORDER = Template("cute.order", "order is 'col', 'row' or integers nested as shape {shape} is, not {ranks}")
SHAPE_DEPTH = Template("cute.shape_depth", "a shape nested more than {deepest} deep")
SWIZZLE_BOUNDS = Template("cute.swizzle_bounds", "{swizzle}: bits and base must be 0..64 and bits <= |shift| <= 64")
SWIZZLE_FORM = Template("cute.swizzle_form", "a swizzle is written Sw<3,4,3>: bits, base, shift")
SWIZZLE_INTEGERS = Template("cute.swizzle_integers", "a swizzle is three integers [B, M, S], not {value}")
SWIZZLE_O = Template("cute.swizzle_o", "expected 'o' after a swizzle, as in Sw<3,3,3> o 0 o (8,64):(64,1)")
