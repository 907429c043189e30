"""What may be wrong with an Axe layout."""

from __future__ import annotations

from layoutproof.core.message import Template

AXIS_EXTENTS = Template("axe.axis_extents", "axis {axis} has two extents")
AXIS_MAPPING = Template("axe.axis_mapping", "{name} is a mapping from axis to number, not {value}")
AXIS_NAME = Template("axe.axis_name", "{name!r} is no axis; an axis is a name such as lane or m")
AXIS_TEXT = Template("axe.axis_text", "an axis is a name such as lane or m, not {value}")
COLON = Template("axe.colon", "{letter}[..] has one ':', between extents and strides")
COMPOSED_TILE = Template("axe.composed_tile", "a composed layout needs tile, the layout that it swizzles")
COORDINATE_SIGN = Template(
    "axe.coordinate_sign",
    "whether the largest coordinate {highest} is below 0 depends on its sizes; write the extent: within (..@{axis})",
)
ENTRY = Template("axe.entry", "{name} holds {value}; integers or size expressions may stand there")
EXTENT_LEAST = Template("axe.extent_least", "the shape {shape} has the extent {extent}; extents are at least 1")
EXTENT_TYPE = Template("axe.extent_type", "the shape has the extent {extent!r}; extents are integers or sizes")
FORM = Template(
    "axe.form",
    "an Axe layout is a text such as S[(8,4):(4@lane,1@lane)], a mapping with D, or a layout of TVM's; not {layout}",
)
ITER_FORM = Template("axe.iter_form", "an iter of {letter} is [extent, stride, axis], not {entry}")
KEY = Template("axe.key", "an Axe layout has {keys}; got {key!r}")
LIST = Template("axe.list", "{name} must be a list, not {value}")
NEEDS_D = Template("axe.needs_d", "an Axe layout needs D, a list of [extent, stride, axis], or at least R")
NOTHING = Template("axe.nothing", "the layout says nothing of any axis; a single element is written S[1:1]")
NUMBER_MISSING = Template("axe.number_missing", "a number is missing")
PLUS_MISSING = Template("axe.plus_missing", "'+' or the end must follow {letter}[..]")
SHAPE_SIZE = Template("axe.shape_size", "the shape {shape} has {count} elements but the layout {layout} has {size}")
START = Template("axe.start", "an Axe layout starts with S[extents:strides], or R[..] for one element")
STRIDE_SIGN = Template(
    "axe.stride_sign", "the sign of the stride {stride} depends on its sizes; write the extent: within (..@{axis})"
)
SUBTRACTED = Template("axe.subtracted", "{letter} cannot be subtracted")
SUMMAND_MISSING = Template("axe.summand_missing", "a summand is missing")
SWIZZLE_ADDRESS = Template(
    "axe.swizzle_address", "the layout {layout} has the address {low}; a swizzle needs addresses >= 0"
)
SWIZZLE_AXIS = Template(
    "axe.swizzle_axis", "a swizzle permutes addresses on axis m, but the layout has the axis {others}"
)
SWIZZLE_FORM = Template(
    "axe.swizzle_form", "a swizzle is written swizzle (per_element,swizzle_len,atom_len), three integers"
)
SWIZZLE_INTEGERS = Template("axe.swizzle_integers", "a swizzle is three integers ({swizzle}), not {value}")
SWIZZLE_KEY = Template("axe.swizzle_key", "a swizzle has {swizzle} and outer; got {unknown!r}")
SWIZZLE_SYMBOLIC = Template(
    "axe.swizzle_symbolic", "the swizzled layout {layout} has run-time sizes; write how far it reaches: within (..)"
)
SWIZZLE_VALUES = Template(
    "axe.swizzle_values", "the swizzle {swizzle} needs per_element >= 0 and atom_len >= swizzle_len >= 0"
)
SYMBOLIC_SIZE = Template(
    "axe.symbolic_size", "the layout {layout} has the run-time size {symbols}; write a number for it"
)
S_FIRST = Template("axe.s_first", "S stands once, and first")
TVM_COMPOSED = Template("axe.tvm_composed", "TVM's composed layout lacks a part or has one that is no integer: {error}")
TVM_LAYOUT = Template("axe.tvm_layout", "TVM's layout lacks a part or has one that is no integer: {error}")
TWICE = Template("axe.twice", "'{word}' stands twice")
