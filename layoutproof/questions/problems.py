"""What may be wrong with a question about layouts or functions, and why one has no answer."""

from __future__ import annotations

from layoutproof.core.message import Template

ARGUMENTS_TWICE = Template("questions.arguments_twice", "arguments are given, or made by inputs, not both")
ARRAY_SHAPE = Template("questions.array_shape", "the array has shape {found}, but {layout} has {expected}")
BOUNDS_NUMBERS = Template("questions.bounds_numbers", "{name} is drawn: only numbers as its bounds can be assumed")
BOUNDS_OF_GIVEN = Template(
    "questions.bounds_of_given", "bounds are assumed of integers that are drawn, and {name} is {kind}"
)
BUFFER_SHAPE = Template(
    "questions.buffer_shape", "the buffer is {dtype} of shape {shape}, but {layout} takes exactly {bytes} bytes (uint8)"
)
BYTE_OF_METADATA = Template("questions.byte_of_metadata", "the first {bytes} bytes are metadata before the elements")
BYTE_OUTSIDE_MEMORY = Template("questions.byte_outside_memory", "the memory has {bytes} bytes")
BYTE_PAST_ELEMENTS = Template("questions.byte_past_elements", "the last byte is not full")
BYTE_REST = Template("questions.byte_rest", "the rest of this byte is {what}")
BYTE_SHARED = Template("questions.byte_shared", "they share this byte")
BYTE_SHARED_IN_REPLICAS = Template(
    "questions.byte_shared_in_replicas", "more than {most} elements share this byte, some perhaps in several replicas"
)
CONDITION_NAMES = Template("questions.condition_names", "a condition speaks of {name}; the sizes are {sizes}")
CONDITION_WITHOUT_KERNEL = Template(
    "questions.condition_without_kernel", "{condition!r} is about a kernel, and the function has none"
)
CONVERSION_EXACT = Template(
    "questions.conversion_exact", "a conversion from {old} to {new} changes nothing, over the reals"
)
CONVERSION_UNDECIDED = Template(
    "questions.conversion_undecided", "cannot tell whether {layout} is the same layout: {reason}"
)
CONVERSION_UNREADABLE = Template(
    "questions.conversion_unreadable",
    "no {language} layout: it would be {layout}, which {language} cannot say: {problem}",
)
COORDINATES_OF_NOTHING = Template("questions.coordinates_of_nothing", "no element has these coordinates")
COORDINATE_EMPTY = Template("questions.coordinate_empty", "it has no places")
COORDINATE_RANGE = Template("questions.coordinate_range", "{name} is 0 to {last}")
DEVICE_TYPE = Template("questions.device_type", "a device is one of JAX's, or the name of a platform, not {found}")
DIGITS_PAST_ELEMENTS = Template(
    "questions.digits_past_elements",
    "dimension {dimension} of extent {extent} is cut into digits {digits} = {elements}, more than there are "
    "elements: only whole tiles can be written as digits",
)
DIVISION_BY_ZERO = Template("questions.division_by_zero", "the map divides by zero, so no element has a place")
EFFORT = Template("questions.effort", "effort is a whole number of at least 1, not {found}")
ELEMENTS_GIVEN = Template(
    "questions.elements_given", "arguments and results have {elements:,} elements, more than {most:,}"
)
ELEMENTS_OF_ARRAY = Template(
    "questions.elements_of_array", "an array here has {elements:,} elements, more than {most:,}"
)
ELEMENTS_TO_FILL = Template(
    "questions.elements_to_fill", "{operand} has {elements} elements; at most {most} are filled in"
)
ELEMENT_BITS = Template(
    "questions.element_bits", "elements of {bits} bits are no whole number of bytes, so no array holds them one by one"
)
ELEMENT_BITS_LOST = Template(
    "questions.element_bits_lost", "the element {element} of type {dtype} does not fit into {bits} bits"
)
ELEMENT_DIFFERS = Template("questions.element_differs", "output {output}[{element}]: {operands}")
ELEMENT_RANGE = Template(
    "questions.element_range", "the element {element} does not fit into {bits} bits ({low}..{high})"
)
ELEMENT_RANGE_TRACED = Template(
    "questions.element_range_traced",
    "under tracing it is unknown whether {dtype} elements fit into {bits} bits; cast first",
)
ELEMENT_REST = Template(
    "questions.element_rest",
    "its element has {natural_bits} bits, stored in {bits}; this is the rest at offset {offset}",
)
FLOAT64_AGREES = Template("questions.float64_agrees", "float64 shows no difference at the given ones")
FORMULA_COORDINATES = Template("questions.formula_coordinates", "a formula is over all coordinates: {coordinates}")
FORMULA_DIGITS = Template(
    "questions.formula_digits", "there is no formula: the coordinates do not tell {dimension} digit by digit"
)
FORMULA_OF_NO_ELEMENT = Template(
    "questions.formula_of_no_element", "there is no formula: the layout has no elements, or none for some sizes"
)
FORMULA_UNDECIDED = Template("questions.formula_undecided", "there is no formula: {reason}")
FORMULA_UNPROVED = Template("questions.formula_unproved", "there is a formula that cannot be proved: {reason}")
GIVEN_SIZE_STATED = Template(
    "questions.given_size_stated",
    "the given ones are too large to walk over, and {number:g} may be made of {size}, which is given",
)
GRADIENT_OF_NAMES = Template(
    "questions.gradient_of_names", "a gradient is compared at given sizes, and {sizes} are names"
)
GRADIENT_OF_NO_FLOAT = Template(
    "questions.gradient_of_no_float", "a gradient needs an argument and an output of floats"
)
HALVED_SMALL_ENOUGH = Template("questions.halved_small_enough", "it is small enough as it is")
HALVED_TOO_LARGE = Template(
    "questions.halved_too_large", "its extents cannot be halved until a walk takes fewer steps: other ones are stated"
)
INDEX_ARRAYS = Template("questions.index_arrays", "{found} arrays of indices for the {expected} dimensions of {layout}")
INDEX_DTYPE = Template("questions.index_dtype", "the indices of dimension {dimension} are integers, not {found}")
INDEX_OF_EMPTY = Template(
    "questions.index_of_empty", "index {index} of dimension {dimension} ({name}) is in an empty dimension of {layout}"
)
INDEX_OUTSIDE = Template(
    "questions.index_outside", "index {index} of dimension {dimension} ({name}) is outside 0..{last} of {layout}"
)
INDEX_RANK = Template(
    "questions.index_rank", "the index {index} has {found} entries but {layout} has {expected} dimensions"
)
INDEX_SHAPES = Template("questions.index_shapes", "indices of the shapes {shapes} do not broadcast together")
INDEX_TYPE = Template("questions.index_type", "{what} is a sequence of integers such as (2, 3), not {found}")
INPUTS_NONE = Template("questions.inputs_none", "{function} makes the inputs, and gives None")
INPUTS_PARAMETERS = Template(
    "questions.inputs_parameters", "{function} is called without arguments to make the inputs: {error}"
)
INVERSE_BIT = Template("questions.inverse_bit", "bit is 0 to 7, the bit within a byte: byte=68 bit=4")
INVERSE_MOST = Template("questions.inverse_most", "most is a whole number of at least 0, not {found}")
INVERSE_NO_BYTES = Template(
    "questions.inverse_no_bytes", "{layout} says nothing of bytes; its coordinates are {coordinates}"
)
INVERSE_NO_PLACE = Template("questions.inverse_no_place", "say where, e.g. {example}=0; {layout} has {coordinates}")
INVERSE_PLACE_ALONE = Template(
    "questions.inverse_place_alone", "{name} is a place by itself; give nothing else with it"
)
INVERSE_WITHOUT_VALUE = Template(
    "questions.inverse_without_value",
    "{layout} has the size {size}, which has no value before run time; write a number for it, or ask for the "
    "formula of all places: --at with names alone, or formula()",
)
ITEM_BITS = Template(
    "questions.item_bits", "the array's items are {dtype} ({found} bits), but {layout} has elements of {expected} bits"
)
JAX_DTYPE = Template("questions.jax_dtype", "JAX has no {dtype} in 32-bit mode: set jax_enable_x64")
JAX_ELEMENT_TYPE = Template(
    "questions.jax_element_type", "JAX cannot move elements of type {dtype}; give them, or ask for them, as uint8"
)
KERNELS_OF_RELATIONS = Template(
    "questions.kernels_of_relations", "{found} kernels are found where relations read {expected}"
)
LANGUAGE_LACKS = Template("questions.language_lacks", "{language} cannot say {what}")
LAYOUT_COUNT = Template("questions.layout_count", "{property} is about {expected}; got {found}")
LAYOUT_OF_NO_ARRAY = Template("questions.layout_of_no_array", "only an array has a layout, not {found}")
MEMORY_RAN_OUT = Template(
    "questions.memory_ran_out", "memory ran out: the largest array has {elements:,} elements; {offer}"
)
NEAREST_DIFFERS = Template(
    "questions.nearest_differs", "no {language} layout: the nearest, {layout}, differs at {point}: {reason}"
)
NO_CONVERSION = Template("questions.no_conversion", "there is no conversion from {source} to {language}; {known}")
NO_DTYPE_OF_BITS = Template(
    "questions.no_dtype_of_bits", "no NumPy type holds elements of {bits} bits; name one with dtype"
)
NO_LANGUAGE = Template("questions.no_language", "a {kind} is written in no layout language, so it cannot be converted")
NO_MEMORY = Template("questions.no_memory", "{layout} is no memory: it says nothing of bytes")
NO_NUMPY_ARRAY = Template("questions.no_numpy_array", "this is no array: {error}")
NO_NUMPY_DTYPE = Template("questions.no_numpy_dtype", "dtype {dtype} is no NumPy type: {error}")
NO_OUTPUT = Template("questions.no_output", "{function} gives no output, so there is nothing to compare")
OFFSET_COORDINATES = Template(
    "questions.offset_coordinates", "a place has {coordinates} coordinates here, not one offset"
)
OFFSET_DIGITS = Template("questions.offset_digits", "the offset is no sum of digits times strides ({reason})")
OFFSET_OF_REPLICAS = Template(
    "questions.offset_of_replicas", "a layout with several replicas has no single offset per element"
)
OPERAND_MEANT = Template("questions.operand_meant", "{kernel} has {found}; its operands are {known}")
OUTPUTS_EMPTY = Template("questions.outputs_empty", "no output has an element, so there is nothing to compare")
OUTPUT_COUNT = Template("questions.output_count", "{function} gives {found} and {reference} gives {expected}")
OUTPUT_DIFFERS = Template(
    "questions.output_differs", "output {output} of {function} is {found}, and of {reference} {expected}"
)
OUTPUT_POSITIONS = Template("questions.output_positions", "outputs are positions from 0 to {last}; {found} is given")
PACK_REPLICAS = Template(
    "questions.pack_replicas", "{layout} has several replicas; only one memory is packed at a time"
)
PACK_UNPROVED = Template("questions.pack_unproved", "{layout} cannot be packed: {property} is {verdict}: {reason}")
PADDING_IN_SHARD = Template("questions.padding_in_shard", "in the shard, {reason}")
PADDING_OF_DIMENSIONS = Template(
    "questions.padding_of_dimensions", "{dimensions} of {extent} {verb} rounded up to {room}"
)
PADDING_OF_TAIL = Template("questions.padding_of_tail", "the tail is rounded up to {elements} elements")
PADDING_WITHIN_TILES = Template("questions.padding_within_tiles", "it is padding within the tiles")
PLACES_RANGE = Template(
    "questions.places_range", "places reach beyond {bits} bits, or the map may divide by zero{more}"
)
PLACE_SHARED = Template("questions.place_shared", "they collide at this place")
POINTS = Template("questions.points", "points are a whole number from 1 to 100, not {found}")
PREMISE_AT_SMALLER_SIZES = Template("questions.premise_at_smaller_sizes", "at {shape} {question} is {verdict}")
PREMISE_DEFINED = Template("questions.premise_defined", "relations show that nothing undefined is in an element")
PREMISE_RACE = Template("questions.premise_race", "with the integers that are given, {race}")
PREMISE_SAMPLED = Template(
    "questions.premise_sampled", "no element rests on it at {points} random points, with the integers that are given"
)
PREMISE_WALKED = Template("questions.premise_walked", "every program was walked over with the integers that are given")
PROGRAMS_TO_WALK = Template(
    "questions.programs_to_walk", "{kernel} has {programs} programs; at most {most} are walked: ask a property"
)
PROGRAMS_WITHOUT_VALUE = Template(
    "questions.programs_without_value", "{sizes} has no value; programs are shown for numbers"
)
REDUCED_DIFFERS = Template("questions.reduced_differs", "at smaller sizes {reason}; {why}")
REDUCED_NOTHING_KEPT = Template(
    "questions.reduced_nothing_kept", "it has no kernel and no loop whose programs say what a smaller size has to keep"
)
REDUCED_NOT_COMPARED = Template(
    "questions.reduced_not_compared", "{function} is not compared at smaller sizes: {reason}"
)
REDUCED_NO_SMALLER = Template(
    "questions.reduced_no_smaller",
    "at no smaller sizes it can be traced, has the same kinds of programs, and no given size as a constant",
)
REDUCED_OF_NAMES = Template(
    "questions.reduced_of_names", "smaller sizes are those of arrays at given sizes, and {sizes} are names"
)
RELATIONS_ALONE = Template(
    "questions.relations_alone", "relations show a difference at these sizes that a walk does not: {difference}"
)
RELATIONS_UNDECIDED = Template(
    "questions.relations_undecided", "relations, which alone speak of all sizes, do not decide it: {reason}"
)
REPLICA_MISSING = Template(
    "questions.replica_missing", "every element of {layout} has {places} places; say which replica is meant"
)
REPLICA_OUTSIDE = Template(
    "questions.replica_outside", "the replica {replica} is not in the box of replicas {extents} of {layout}"
)
RESTS_ON_PREMISE = Template(
    "questions.rests_on_premise", "it rests on {question}, which is {verdict}: {reason}{values}"
)
SIZES_UNKNOWN = Template("questions.sizes_unknown", "{layout} has sizes that are not known; give numbers")
SIZE_WITHOUT_VALUE = Template(
    "questions.size_without_value",
    "{layout} has the size {size}, which has no value before run time; write a number for it",
)
STORED_BITS = Template(
    "questions.stored_bits",
    "elements of {natural_bits} bits stored in {bits} bits: only 1, 2, 4 (for elements of at most a byte) and "
    "whole bytes of at least the element's own width are defined",
)
TABLE_BYTES = Template(
    "questions.table_bytes", "the table of {layout} would take {bytes} bytes; the most is {most} bytes (16 GiB)"
)
TABLE_RANK = Template("questions.table_rank", "a table of {dimensions} dimensions is more than NumPy's {most}")
TABLE_WITHOUT_JAX = Template("questions.table_without_jax", "a table on a device is an array of JAX: pip install jax")
TILE_OF_SEVERAL_DIMENSIONS = Template(
    "questions.tile_of_several_dimensions", "{layout}: this tile is no multiple of single dimensions"
)
TO_AXE_COORDINATE_DIGITS = Template(
    "questions.to_axe_coordinate_digits", "a coordinate is no sum of digits times strides ({reason})"
)
TO_AXE_DEVICE_AND_PLACE = Template(
    "questions.to_axe_device_and_place", "no Axe form: a digit moves both the device and the place on it"
)
TO_AXE_INDEX_STILL = Template(
    "questions.to_axe_index_still", "{name} moves no block in part or at all, and Axe's strides are not 0"
)
TO_AXE_NO_ARRAY = Template("questions.to_axe_no_array", "{layout} places no array, so there is nothing to convert")
TO_AXE_NO_DIMENSION = Template(
    "questions.to_axe_no_dimension", "no Axe form: the array has no dimensions, and a layout of Axe has one at least"
)
TO_AXE_PADDED = Template(
    "questions.to_axe_padded", "no Axe form: {what} of extent {extent} is padded, and D consists of whole digits"
)
TO_AXE_PLACE_DIGITS = Template(
    "questions.to_axe_place_digits", "no Axe form: the place is no sum of digits times strides ({reason})"
)
TO_AXE_REPLICAS = Template(
    "questions.to_axe_replicas", "no Axe form: {name} replicas hold different values, and R is of equal ones"
)
TO_AXE_STRIDE_ZERO = Template("questions.to_axe_stride_zero", "{layout} has a stride 0, and Axe's strides are not 0")
TO_AXE_TWO_AXES = Template(
    "questions.to_axe_two_axes", "one grid index moves {axis} and {other}; an iter of Axe is on one axis"
)
TO_AXE_UNEVEN = Template(
    "questions.to_axe_uneven",
    "no Axe form: dimension {dimension} of extent {extent} over {tiles} tiles is uneven, and digits of D take "
    "all their values",
)
TO_CUTE_AXES = Template("questions.to_cute_axes", "{layout} has the axes {axes}; a CuTe layout has one offset")
TO_CUTE_ELEMENT_BITS = Template(
    "questions.to_cute_element_bits",
    "elements of {element_type} are stored in {bits} bits; CuTe stores them in {expected}",
)
TO_CUTE_OUTPUTS = Template(
    "questions.to_cute_outputs", "a CuTe layout has one offset; this linear layout has the outputs {outputs}"
)
TO_CUTE_PAST_ARRAY = Template(
    "questions.to_cute_past_array", "an offset in the array is another row's where a block reaches past it: {reason}"
)
TO_CUTE_REPLICAS = Template(
    "questions.to_cute_replicas", "{layout} has replicas R, and a CuTe layout has one place per element"
)
TO_LINEAR_NEGATIVE = Template("questions.to_linear_negative", "a linear layout has no places below 0")
TO_LINEAR_ORIGIN = Template("questions.to_linear_origin", "a linear layout has element {element} at 0, not at {place}")
TO_LINEAR_POWER_OF_TWO = Template(
    "questions.to_linear_power_of_two", "the extent {extent} of {dimension} is no power of two"
)
TO_LINEAR_SIZES = Template("questions.to_linear_sizes", "a linear layout has constant sizes and one place per element")
TO_SHARDING_DEVICES = Template(
    "questions.to_sharding_devices", "no sharding: over {most} devices, or their first one is not known"
)
TO_SHARDING_DEVICE_AXES = Template(
    "questions.to_sharding_device_axes", "no sharding: it has one axis of devices beside m, and this layout has {axes}"
)
TO_SHARDING_DEVICE_COUNT = Template(
    "questions.to_sharding_device_count",
    "no sharding: how many devices there are must be known, and {extent}:{stride} is not",
)
TO_SHARDING_NO_ARRAY = Template("questions.to_sharding_no_array", "{found} is no array")
TO_SHARDING_OFFSET = Template(
    "questions.to_sharding_offset", "no sharding: the memory of a shard starts at offset 0, not at {offset}"
)
TO_SHARDING_PLACES = Template(
    "questions.to_sharding_places",
    "no sharding: its places are (device, offset), these are ({axes}); begin D with 1@{axis} of extent 1 and "
    "have a digit on m",
)
TO_SHARDING_REPLICA = Template(
    "questions.to_sharding_replica", "no sharding: a replica on axis m is a second one in the same memory"
)
TO_SHARDING_SHARD = Template(
    "questions.to_sharding_shard", "no sharding: no XLA layout was found for the memory of a shard, {shard}"
)
TO_SHARDING_SHARED_DIGIT = Template(
    "questions.to_sharding_shared_digit", "no sharding: dimensions {dimensions} share a digit"
)
TO_SHARDING_SWIZZLE = Template("questions.to_sharding_swizzle", "no sharding: XLA's layouts have no swizzle")
TO_SHARDING_TURNS = Template(
    "questions.to_sharding_turns",
    "no sharding: dimension {dimension} is dealt out in turns, and XLA's tiles are blocks",
)
TO_SHARDING_UNREADABLE = Template("questions.to_sharding_unreadable", "no sharding: {problem}")
TO_STRIDED_STRIDES = Template(
    "questions.to_strided_strides", "{dimension} has {strides} strides; a dimension with strides has one"
)
TO_XLA_DIMENSIONS = Template(
    "questions.to_xla_dimensions", "tile levels are sought for up to {most} dimensions, not for {found}"
)
TO_XLA_ELEMENT_TYPE = Template(
    "questions.to_xla_element_type", "an XLA layout needs one of its element types; write for instance: f32 {layout}"
)
TO_XLA_OFFSET = Template("questions.to_xla_offset", "an XLA array starts at offset 0, not at {offset}")
TO_XLA_TILES = Template("questions.to_xla_tiles", "no order and no tile levels made of its digits give {layout}")
TRACED_TWICE = Template(
    "questions.traced_twice",
    "traced twice, the function is two programs, so it looks at more than its arguments: this is the {which}",
)
TRACING_EXIT = Template("questions.tracing_exit", "{function}: tracing the function raised SystemExit: {error}")
UNKNOWN_DEVICE = Template("questions.unknown_device", "there is no device {device!r}: {error}")
WHERE_TYPE = Template("questions.where_type", "where is a condition as text, e.g. 'N % 8 == 0', not {found}")
WITNESSES_DISAGREE = Template(
    "questions.witnesses_disagree",
    "two witnesses disagree: on float64 {reason}; JAX's interpreter computes the same, {same}",
)
