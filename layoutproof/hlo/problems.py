"""What the audit of a dump says: what cannot be read or followed, and why a copy or bitcast does not hold."""

from __future__ import annotations

from layoutproof.core.message import Template

AXIS_NOT_DIVIDED = Template("hlo.axis_not_divided", "{axis} does not divide the axis of {size}")
BODY_NOT_CHECKED = Template("hlo.body_not_checked", "its body is not checked: {reason}")
CALLS_ITSELF = Template("hlo.calls_itself", "{computation} calls itself")
COMPUTATION_MISSING = Template(
    "hlo.computation_missing", "the computation {name}, named on line {line}, is not in the module: are lines missing?"
)
COPIED_WITHOUT_ELEMENTS = Template("hlo.copied_without_elements", "a value without elements is copied")
COUNTS_DIFFER = Template("hlo.counts_differ", "the element counts do not agree: {problem}")
COUNTS_IMPOSSIBLE = Template("hlo.counts_impossible", "{source} elements cannot be {target} elements: {place}")
DEVICE_TWICE = Template("hlo.device_twice", "a device is in two groups of {groups}")
DIMENSIONS_OF_GROUPS = Template(
    "hlo.dimensions_of_groups", "groups have two dimensions, how many and how many in each, not {count}"
)
DYNAMIC_DIMENSIONS = Template("hlo.dynamic_dimensions", "dynamic dimensions: what is allotted is not in the text")
FORM_NOT_FOLLOWED = Template("hlo.form_not_followed", "{name} is a {kind} of a form that is not followed")
GROUPS_OF_OTHER_FORM = Template("hlo.groups_of_other_form", "groups of a form that is not read")
HOLDERS_UNKNOWN = Template("hlo.holders_unknown", "the text does not say which devices hold the same part of {name}")
IN_NO_GROUP = Template("hlo.in_no_group", "{name}: device {device} is in none of its groups")
LONG_COMPUTATION = Template("hlo.long_computation", "{name} is a long computation")
MORE_DEVICES = Template("hlo.more_devices", "more than {most} devices")
MORE_THAN_32_BITS = Template("hlo.more_than_32_bits", "{name} does not fit into 32 bits")
MORE_WITH_TWO_LAYOUTS = Template("hlo.more_with_two_layouts", "{count} more buffers have two layouts")
MOVED_TOO_OFTEN = Template("hlo.moved_too_often", "{name} is moved more than {most} times")
MOVES_OTHERS = Template("hlo.moves_others", "a {kind} of {most} and {least} elements that moves others")
NEITHER_HAS_AN_ELEMENT = Template("hlo.neither_has_an_element", "neither has an element")
NOTHING_ASKED = Template("hlo.nothing_asked", "nothing was asked of it")
NOTHING_OF_HOLDERS = Template("hlo.nothing_of_holders", "nothing is known of who holds what")
NOT_CHECKED = Template("hlo.not_checked", "not checked: {reason}")
NOT_THERE = Template("hlo.not_there", "{name} is not there")
NO_ELEMENTS = Template("hlo.no_elements", "{source} and {target} have no elements")
NO_KNOWN_ARRAY = Template("hlo.no_known_array", "{name} is no array of a known shape")
NO_NUMBER_OF_DEVICE = Template("hlo.no_number_of_device", "{name} is no number that follows from the device")
NO_PROGRAM = Template("hlo.no_program", "no program is in it, so nothing is proved")
NO_SHARDING = Template("hlo.no_sharding", "no sharding of an array of known extents")
NO_SINGLE_NUMBER = Template("hlo.no_single_number", "{name} is no single number")
NO_SYMBOLIC_SIZES = Template("hlo.no_symbolic_sizes", "a compiled program has numbers for sizes")
OF_NESTED_TUPLE = Template("hlo.of_nested_tuple", "{name} is an element of a tuple within a tuple")
ONLY_ARRAYS = Template("hlo.only_arrays", "only arrays have bytes")
OPERANDS_NOT_IN_TEXT = Template("hlo.operands_not_in_text", "the operands of {opcode} are not in the text")
OPERANDS_OF_PRODUCT = Template("hlo.operands_of_product", "the operands of its product are not in the text")
OPERAND_IN_PADDING = Template("hlo.operand_in_padding", "{elements} of the operand are padding now")
OPERATION_IS = Template("hlo.operation_is", "{name} is a {what}")
PAD_OR_SLICE = Template("hlo.pad_or_slice", "{name} is a pad between elements, or a slice")
POINTERS = Template("hlo.pointers", "{size} bytes for {count} pointers")
READS_A_PART = Template("hlo.reads_a_part", "{name} is a {opcode}, which may read a part of it")
READS_NESTED_TUPLE = Template("hlo.reads_nested_tuple", "{name} reads a tuple within a tuple")
RESULT_IN_PADDING = Template("hlo.result_in_padding", "{elements} of the result are what padding held")
SIZE_DIFFERS = Template("hlo.size_differs", "XLA takes {found} bytes, we say {ours}")
SKIPS_ELEMENTS = Template("hlo.skips_elements", "{name} skips elements")
SPACE_CHANGED = Template("hlo.space_changed", "bitcast {name} cannot change the memory space")
START_IN_ARRAY = Template("hlo.start_in_array", "{name} has its start in an array")
TABLE_OF_OTHER_FORM = Template("hlo.table_of_other_form", "{name} reads a table of another form")
TOO_LARGE_TO_FOLLOW = Template(
    "hlo.too_large_to_follow",
    "the program has {count:,} instructions, and those of more than {most:,} are not followed",
)
TOO_MANY_BOXES = Template("hlo.too_many_boxes", "more than {most} boxes of elements")
TOO_MANY_CALLS = Template("hlo.too_many_calls", "{name} leads through too many calls")
TOO_MANY_DEVICES = Template("hlo.too_many_devices", "over {most} devices, too many to list them one by one")
TOO_MANY_PIECES = Template("hlo.too_many_pieces", "more than {most} pieces of arrays are moved in the program")
TOO_MANY_RUNS = Template("hlo.too_many_runs", "more than {most} runs of elements")
TOO_MANY_TUPLES = Template("hlo.too_many_tuples", "more than {most} tuples within one another")
TRIPS_UNKNOWN = Template("hlo.trips_unknown", "the trip count of {name} is unknown: {why}")
TUPLE_NOT_CLOSED = Template("hlo.tuple_not_closed", "a tuple that is not closed")
UNKNOWN_DEVICE = Template(
    "hlo.unknown_device", "{name} names a device that the program, which runs on {devices}, has not"
)
UNKNOWN_TYPE = Template("hlo.unknown_type", "unknown element type {name!r}")
WORK_NOT_COUNTED = Template("hlo.work_not_counted", "the work of {opcode} is not counted")
