"""What a text of HLO has that is not read as a program."""

from __future__ import annotations

from layoutproof.core.message import Template

ARRAY_OF_CONSTANTS = Template("from_hlo.array_of_constants", "a kernel with an array of several constants")
CALLS_ITSELF = Template("from_hlo.calls_itself", "{name} calls itself, or is nested too deep")
CHANNEL_NOT_ALIKE = Template(
    "from_hlo.channel_not_alike", "exchanges of channel {channel} that are parts of one are not alike"
)
CONSTANT_COUNT = Template("from_hlo.constant_count", "{numbers} numbers where {shape} has {size}: {found}")
CONSTANT_NOT_READ = Template("from_hlo.constant_not_read", "a constant that is not read: {found}")
CUT_OUT = Template("from_hlo.cut_out", "{name} cuts out {sizes}, and its result is {shape}")
GRID_AT_RUN_TIME = Template("from_hlo.grid_at_run_time", "a grid that only the running program knows")
NO_COMPUTATION = Template("from_hlo.no_computation", "the text has no computation {name}: was it cut short?")
NO_ENTRY = Template("from_hlo.no_entry", "the text has no ENTRY computation: was it cut short?")
NO_PARAMETER = Template("from_hlo.no_parameter", "{name} is no parameter of {computation}")
NO_ROOT = Template("from_hlo.no_root", "{name} has no ROOT")
NO_SHAPE = Template("from_hlo.no_shape", "not a shape: {found!r}")
OPERANDS_AGAIN = Template("from_hlo.operands_again", "{name} gives operands to what has all of them")
OPERANDS_MISSING = Template("from_hlo.operands_missing", "{name} waits for what was not given all of its operands")
OPERAND_NOT_ABOVE = Template("from_hlo.operand_not_above", "{name} has the operand {operand}, which is not above it")
SHARDINGS_COUNT = Template("from_hlo.shardings_count", "{shardings} shardings of {values} {what}")
SHARDING_NOT_SAID = Template(
    "from_hlo.sharding_not_said", "the sharding {sharding} does not say which device holds which part"
)
SHARDING_RANK = Template(
    "from_hlo.sharding_rank", "the sharding {sharding} is of another number of dimensions than {rank}"
)
SIZE_AT_RUN_TIME = Template("from_hlo.size_at_run_time", "a size that only the running program knows: {shape}")
TOO_MANY_DEVICES = Template(
    "from_hlo.too_many_devices", "a program of {devices:,} devices, more than the {most:,} that are walked over"
)
TOO_MANY_EQUATIONS = Template(
    "from_hlo.too_many_equations", "more than {most:,} equations: values are not compared of so large a program"
)
