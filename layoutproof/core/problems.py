"""What may be wrong with a text, a number, an expression or an index map."""

from __future__ import annotations

from layoutproof.core.message import Template

ALLOTTED = Template("core.allotted", "{old} bytes are allotted before and {new} after")
BOX_BITS = Template("core.box_bits", "{what}: the product of its {extents} extents has more than {most_bits} bits")
BOX_SIZES = Template(
    "core.box_sizes", "{what}: the product of its extents has more than {most_sizes} sizes, multiplied out"
)
BRACKETS_DEPTH = Template("core.brackets_depth", "brackets nested more than {deepest} deep")
CHARACTER = Template("core.character", "unexpected character {text!r}")
EXTENT_LEAST = Template("core.extent_least", "the extent {extent} must be at least {least}")
INTERNAL_ERROR = Template("core.internal_error", "this is a bug in layoutproof, please report it: {kind}: {error}")
MOST_CHARACTERS = Template("core.most_characters", "a text of {text:,} characters; at most {most:,} are read")
CLOSES_NOTHING = Template("core.closes_nothing", "{sign!r} closes nothing")
CONDITION_NUMBER = Template(
    "core.condition_number", "{text!r} is a number, not a condition; write for instance N % 8 == 0"
)
CONDITION_TABLE = Template("core.condition_table", "{text!r} reads a table; a condition speaks of sizes")
MAP_COORDINATES = Template(
    "core.map_coordinates", "one map gives {one} coordinates, the other {other}: they cannot be compared"
)
MAP_DECISION = Template(
    "core.map_decision", "an index map may not ask for the {what} of {index}: it has no value yet; use {instead}"
)
DEPTH = Template("core.depth", "{what}: nested more than {deepest} deep")
DID_YOU_MEAN = Template("core.did_you_mean", "; did you mean {name!r}?")
INTEGER_DIGITS = Template(
    "core.integer_digits", "the integer {shown} has over {digits} digits and does not fit in 64 bits"
)
DIVISION = Template("core.division", "{left} / {right} is not an integer operation; write //")
DIVISOR = Template("core.divisor", "{left} {op} {right}: a divisor must be a positive integer")
ELEMENT_TYPE = Template("core.element_type", "unknown element type {name!r}{near}")
EXPECTED = Template("core.expected", "expected {what}, but {found}")
EXPRESSION = Template("core.expression", "cannot read {part!r} as an expression")
EXPRESSION_LENGTH = Template("core.expression_length", "an expression that is too long when multiplied out")
EXPRESSION_NODES = Template("core.expression_nodes", "an expression of more than {most_nodes} operations and operands")
EXPRESSION_STEPS = Template(
    "core.expression_steps", "an expression of more than {most_steps} operations within operations"
)
MOST_EXTENTS = Template("core.most_extents", "{what}: {extents} extents; at most {most_extents}")
INT64 = Template("core.int64", "the integer {value} does not fit in 64 bits")
MAP_ARROW = Template("core.map_arrow", "an index map is written (i, j) -> (i // 8, j // 128); there is no '->'")
MAP_LENGTH = Template("core.map_length", "a map of more than {most_extents} names or results")
MAP_NAMES_TWICE = Template("core.map_names_twice", "the index map names a dimension twice: ({names})")
MASK = Template(
    "core.mask", "{left} & {right}: only a mask 2**k - 1 is a quasi-affine operation; write it with % and //"
)
NOT_CLOSED = Template("core.not_closed", "{text!r} is not closed")
MAP_NO_FUNCTION = Template(
    "core.map_no_function", "an index map is a Python function of named parameters, not {function!r}"
)
MAP_NO_INTEGER = Template("core.map_no_integer", "an index map works on integers; got {value!r}, a {name}")
NOT_MODELLED = Template("core.not_modelled", "not modelled: {reason}")
NOT_UTF8 = Template("core.not_utf8", "not UTF-8 text: byte {byte:#04x}")
NO_PERMUTATION = Template("core.no_permutation", "permutation {permutation} is not a permutation of 0..{rank}")
NO_RESHAPE = Template("core.no_reshape", "[{old}] has {before} elements and [{new}] has {after}: no reshape")
NO_SIZE = Template("core.no_size", "{text!r} is not a size: {error}")
MAP_PARAMETERS = Template(
    "core.map_parameters", "an index map takes one named parameter per dimension, no *args and no keyword-only ones"
)
MAP_RAISED = Template("core.map_raised", "the index map raised {name} when traced: {error}")
SELECT_CONDITION = Template(
    "core.select_condition", "select takes a condition made by less or equal, not {condition!r}"
)
SIZE_DIVIDES_BY_ZERO = Template("core.size_divides_by_zero", "{text!r} is not a size: it divides by zero")
SIZE_TERMS = Template(
    "core.size_terms", "a size has at most {most_terms} terms of {most_factors} factors when multiplied out"
)
STRIDE_SIGN = Template("core.stride_sign", "the sign of the stride {stride} depends on its sizes")
UNKNOWN_NAME = Template("core.unknown_name", "unknown {what} {word!r}{rest}")
MOST_VALUES = Template("core.most_values", "{what}: more than {most_values} values")
WHOLE_NUMBER = Template("core.whole_number", "{name} is a whole number, not {found}")
WRONG_KIND = Template("core.wrong_kind", "{term} is {found} where {wanted} must stand")
FUSION_FACTORS = Template(
    "core.fusion_factors", "the factors of a fusion are different, and each divides the next larger: {found!r}"
)
FUSION_FORM = Template("core.fusion_form", "a fusion is written 'tx = 32*warpid + laneid', not {found!r}")
FUSION_PARTS = Template("core.fusion_parts", "the layout has {whole} and also {parts}, which are parts of it")
FUSION_SUM = Template("core.fusion_sum", "a fusion is a sum of axes times whole numbers, not {found!r}")
MAP_DIVIDES_BY_ZERO = Template(
    "core.map_divides_by_zero", "the map divides by zero at {index}, so that element has no place"
)
MEMORY_FORM = Template(
    "core.memory_form", "an amount of memory is a number of bytes or a text such as 16MiB, not {found}"
)
NOT_GZIP = Template("core.not_gzip", "not a whole gzip file: {error}")
NOT_MEMORY = Template(
    "core.not_memory", "one layout is a memory, the other places its elements on the axis {axis}, not on m"
)
NOT_TOML = Template("core.not_toml", "{place}: not TOML: {error}")
NO_ADDRESS = Template("core.no_address", "this map has no memory, so its elements have no address")
NO_AXIS = Template("core.no_axis", "the map has no axis {axis!r}; {have}")
NO_FILE = Template("core.no_file", "{path}: no such file or folder{way_out}")
NO_FOLDER = Template("core.no_folder", "{path}: there is no folder {folder}")
NO_JSON = Template("core.no_json", "no JSON: {error}")
NO_STANDARD_INPUT = Template("core.no_standard_input", "there is no standard input to read")
OFFERED_TWICE = Template("core.offered_twice", "{kinds} {name!r} is offered by several packages: {packages}")
OUT_OF_BOUNDS = Template("core.out_of_bounds", "{what}: {number}")
PLUGIN_BROKEN = Template("core.plugin_broken", "{plugin} is broken: {what}: {said}")
PLUGIN_NEEDS = Template("core.plugin_needs", "{plugin} is not usable: {value} needs {needs}")
SHIFT = Template("core.shift", "a shift must be by a constant from 0 to 63, not {by}")
TIME_FORM = Template("core.time_form", "a time is a text such as 20 ms, 150us or 1.5 s, not {found}")
TOML_KEY = Template("core.toml_key", "{place}: not TOML that can be read: a key of more than {most} parts")
TOML_TOO_DEEP = Template("core.toml_too_deep", "{place}: not TOML that can be read: it is nested too deep")
UNPACKED = Template("core.unpacked", "unpacked, it is {size}")
