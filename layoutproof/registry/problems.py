"""What may be wrong with a layout, an operand or a target that is read."""

from __future__ import annotations

from layoutproof.core.message import Template

AUTO_LAYOUT = Template("registry.auto_layout", "the layout of {value} is AUTO: the compiler chooses it; {way_out}")
BUFFER = Template("registry.buffer", "the buffer {value} has strides and a layout: give buffer.layout")
BYTE_ORDER = Template(
    "registry.byte_order",
    "the items are stored in the other byte order, {dtype}; a layout's elements are in this machine's: give "
    "array.astype(array.dtype.newbyteorder('='))",
)
CLAIMED_BY_SEVERAL = Template(
    "registry.claimed_by_several", "the text is claimed by {titles}; name one: {{{claiming!r}: ..}}"
)
CUTE_OBJECT = Template(
    "registry.cute_object", "of CuTe's objects layouts whose numbers are known are read, not {value}"
)
DEFAULT_OF_SIZES = Template(
    "registry.default_of_sizes", "the default layout of {shape} depends on the divisibility of its sizes; give numbers"
)
DELETED = Template("registry.deleted", "the array {value} was deleted or donated, so it is nowhere")
JAX_OBJECT = Template("registry.jax_object", "of JAX's objects arrays, shapes and shardings have a layout, not {value}")
LAYOUT_KEYS = Template(
    "registry.layout_keys",
    "a layout is a text or a mapping with one key, the language ({languages}) or the operator ({operators}); "
    "got keys {found}",
)
LAYOUT_TYPE = Template(
    "registry.layout_type", "a layout is a text, a mapping, or an object of JAX, NumPy, TVM or CuTe, not {found}"
)
MODE = Template("registry.mode", "mode is 'strict' or 'xla', not {found!r}")
NO_ARRAY = Template("registry.no_array", "{value} is no array")
NO_DEFAULT = Template("registry.no_default", "only an array has a default layout, not {found}")
NO_ELEMENT_TYPE = Template("registry.no_element_type", "XLA has no element type {dtype!r}")
NO_INDEX_MAP = Template("registry.no_index_map", "{kind} has no index map: {error}: {why}")
NO_LAYOUT = Template("registry.no_layout", "{found} is no layout: {why}")
NO_SHAPE = Template("registry.no_shape", "{value} has no shape and element type")
NUMPY_OBJECT = Template("registry.numpy_object", "of NumPy's objects only arrays have a layout, not {value}")
OPERANDS = Template("registry.operands", "{name} is written {form}; got {given} operand{s}")
OTHER_AXES = Template("registry.other_axes", "{target} bounds the axes {known}, and the layout has {have}")
OTHER_LANGUAGE = Template("registry.other_language", "{name} is about {language} layouts, not {layout}")
SHAPE_WITHOUT_LAYOUT = Template("registry.shape_without_layout", "{value} is a shape without a layout; {way_out}")
SHARDING_ALONE = Template(
    "registry.sharding_alone",
    "{value} says nothing of the array's shape and element type: give jax.ShapeDtypeStruct(shape, dtype, "
    "sharding=..), where a sharding or a Format may stand",
)
SHARDING_UNREADABLE = Template(
    "registry.sharding_unreadable", "the sharding {value} does not say which device has what: {error}"
)
STEP_IN_BYTES = Template(
    "registry.step_in_bytes",
    "dimension {dimension} steps by {step} bytes, no multiple of the {width} bytes of an item: strides count "
    "elements; give numpy.ascontiguousarray(array), or the array of the records that the items are in",
)
TARGET_TWICE = Template("registry.target_twice", "target {name!r} is offered twice: {offers}")
TILES_NOT_SAID = Template(
    "registry.tiles_not_said",
    "the layout of {value} says major_to_minor={order} and leaves the tiles to the compiler: give tiling=() "
    "for none, or the format of an array that was made with it",
)
TRACED = Template("registry.traced", "{value} is traced: it has a layout only once the program is compiled; {way_out}")
UNKNOWN_OPTION = Template("registry.unknown_option", "{name} does not know the option {option!r}; {have}")
UNKNOWN_TARGET = Template("registry.unknown_target", "unknown target {name!r}; {broken}")
