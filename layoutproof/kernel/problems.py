"""What may be wrong with a kernel, its operands, and assumptions about its tables."""

from __future__ import annotations

from layoutproof.core.message import Template

ALIASES_FORM = Template("kernel.aliases_form", "aliases is a mapping from an input to an output, {{x: o}}, not {value}")
ALIAS_TYPES = Template("kernel.alias_types", "aliases share one buffer, so shape and element type are equal: {shapes}")
ARRAY_FORM = Template("kernel.array_form", "{what} is written f32[7,5] (a layout does not belong there), not {value}")
ARRAY_TYPE = Template("kernel.array_type", "{what}: unknown element type {found!r}{near}")
ASSUMPTION_FORM = Template(
    "kernel.assumption_form", '{what}: an assumption is a text such as "0 <= {name} < 4", not {text}'
)
ASSUMPTION_GUARDS = Template("kernel.assumption_guards", "an assumption has one 'if', not {guards}")
ASSUMPTION_PLACE = Template("kernel.assumption_place", "{read} is no entry: dimension {k} of its table has {extent}")
ASSUMPTION_NAME = Template(
    "kernel.assumption_name", "{name} is neither an index of a table nor a size of the call; {have}"
)
ASSUMPTION_NO_TABLE = Template("kernel.assumption_no_table", "the assumption {text!r} is about no table; {have}")
ASSUMPTION_OTHER_TABLE = Template(
    "kernel.assumption_other_table", "the assumption reads a table that {name} does not have; {have}"
)
ASSUMPTION_RANK = Template("kernel.assumption_rank", "{read} has {args} indices; its table has {dims}")
ASSUMPTION_READS_NOTHING = Template(
    "kernel.assumption_reads_nothing", "{text!r} reads no table; a condition on sizes is said with where"
)
ASSUMPTION_SUM = Template("kernel.assumption_sum", "of a table with a sum only bounds are said: {assumptions}")
ASSUMPTION_TABLE = Template("kernel.assumption_table", "{name} has no table {table!r}; {have}")
ASSUMPTION_WORDS = Template(
    "kernel.assumption_words", "an assumption is {forms}'t is cu_seqlens(total=8)' or 't[i] <= u[i + 1]', not {shown}"
)
BLOCKS_DEPEND = Template(
    "kernel.blocks_depend", "which blocks of {operand} are written depends on what {table} holds; {why}"
)
BLOCKS_SHORT = Template(
    "kernel.blocks_short", "which blocks of {operand} are written is not known where {sizes} is below {most}"
)
BLOCK_DEPENDS = Template(
    "kernel.block_depends", "the block of {name} depends on {what}; ask a property of kernels instead"
)
BLOCK_DIMENSION = Template("kernel.block_dimension", "{what} is {dimension}; not {value}")
BLOCK_KIND = Template("kernel.block_kind", "{what} is {dimension}; not {value}{near}")
BLOCK_MAPPING = Template(
    "kernel.block_mapping", "{what} is {{element: 8, padding: [1, 0]}}, {{bounded: 128}} or {{blocked: 8}}, not {value}"
)
BLOCK_NO_LIST = Template(
    "kernel.block_no_list", "block is a list of dimensions such as [2, 3], or null for the whole array; not {value}"
)
BLOCK_ORDER = Template(
    "kernel.block_order",
    "block is a list of dimensions and index a map; BlockSpec(index_map, block_shape) is the order "
    "before jax 0.4.31, today it is BlockSpec(block_shape, index_map)",
)
BLOCK_RANK = Template(
    "kernel.block_rank",
    "block has {count} dimensions, {value}, and the array has {dims}; a block has one per dimension "
    "of its array, null to squeeze it",
)
BOUNDED_NEEDS_INDEX = Template(
    "kernel.bounded_needs_index", "a BoundedSlice dimension needs an index map: its result is ds(start, size)"
)
BUFFERS = Template("kernel.buffers", "buffers is a number of at least 1, not {buffers}")
DS_ARGUMENTS = Template("kernel.ds_arguments", "ds takes a start and a size, not {args} arguments")
FIRST_ENTRIES_WORD = Template("kernel.first_entries_word", "of the first entries only 'onto' can be said, not {said!r}")
GRID_EMPTY = Template("kernel.grid_empty", "the grid has {extent} programs along {name}, so there is no map of them")
INDEXING_MODE = Template(
    "kernel.indexing_mode",
    "indexing_mode is Blocked(), Unblocked() or Unblocked(((low, high), ..)), not {mode}; since jax "
    "0.6.1 a block says Element(size, (low, high)) instead",
)
INDEX_NAMES = Template(
    "kernel.index_names", "the index map takes {names} names; it takes one per grid dimension ({grid}){also}"
)
INDEX_NEEDS_DS = Template(
    "kernel.index_needs_ds", "result {k} must be ds(start, size): dimension {k} is a BoundedSlice"
)
INDEX_NO_MAP = Template(
    "kernel.index_no_map", "index is a map such as (i, j) -> (i, j), or null for zeros; not {value}"
)
INDEX_NO_SLICE = Template(
    "kernel.index_no_slice", "result {k} is ds(start, size), and dimension {k} is {block}, no slice"
)
INDEX_RANK = Template(
    "kernel.index_rank",
    "the index map gives {terms} results, and the block has {block} dimensions; each dimension has "
    "one, a squeezed one too",
)
INDEX_SIZE_CLASH = Template("kernel.index_size_clash", "{name} names a grid index and a size; rename one of them")
INDEX_UNKNOWN = Template("kernel.index_unknown", "{name!r} is neither a grid index nor a size; known: {known}")
INDIRECT = Template(
    "kernel.indirect", "{what}: Indirect gathers single elements by an array of indices, which is not modelled"
)
KERNEL_NAME = Template("kernel.kernel_name", "a kernel's name is a word such as matmul, not {value}")
LIST_FORM = Template("kernel.list_form", "a list is written (2, 3)")
MODE_SQUEEZED = Template(
    "kernel.mode_squeezed", "indexing_mode: dimension {k} is squeezed and cannot be padded by ({low}, {high})"
)
MODE_TWICE = Template("kernel.mode_twice", "indexing_mode and {block} say the same thing twice; leave the mode out")
NAME_TWICE = Template(
    "kernel.name_twice", "{name!r} names {both}; grid dimensions get names of their own by {{i: 4, j: 2}}"
)
NO_OPERAND = Template(
    "kernel.no_operand", "a kernel has at least one operand: inputs, outputs, or operands with a role each"
)
NO_TABLE = Template("kernel.no_table", "{read} reads {args}, which is no table; {known}")
ONTO_FIRST_RANK = Template(
    "kernel.onto_first_rank", "of the first entries only tables of one dimension are onto, not {name}"
)
OPERANDS_TWICE = Template(
    "kernel.operands_twice", "a kernel lists its operands once: inputs and outputs, or operands with a role each"
)
OPERAND_NAME = Template("kernel.operand_name", "an operand's name is a word such as x or args[0], not {name}")
PADDING_FORM = Template("kernel.padding_form", "{what}: padding is two integers, [low, high], not {padding}")
PADDING_NEGATIVE = Template("kernel.padding_negative", "{what}: padding is at least 0 elements, not ({low}, {high})")
PART_CHOICE = Template("kernel.part_choice", "{what} is one of {known}, not {value}{near}")
PART_MISSING_KEY = Template("kernel.part_missing_key", "{what} needs {key!r}; it has {value}")
PART_NAME = Template("kernel.part_name", "{what} is named by letters, digits and '_', not {value}")
PART_NO_LIST = Template("kernel.part_no_list", "{what} is a list, not {value}")
PART_NO_MAPPING = Template("kernel.part_no_mapping", "{what} is a mapping with {known}; found {value}")
PART_RANGE = Template("kernel.part_range", "{part!r} is no part of a dimension; write 2:8, or : for all of it")
PART_UNKNOWN_KEY = Template("kernel.part_unknown_key", "{what} has no {key}{near}; known: {known}")
SCHEMA_FORM = Template("kernel.schema_form", "{said} is written {form}, not {text!r}")
SCHEMA_UNKNOWN = Template("kernel.schema_unknown", "{said!r} is no schema of tables; there are {schemas}")
SEMANTICS_RANK = Template("kernel.semantics_rank", "semantics has {words} words, and the grid has {names} dimensions")
SIZE_BY_ZERO = Template("kernel.size_by_zero", "a size of the kernel divides by 0")
SIZE_LEAST = Template("kernel.size_least", "{what} must be at least {least}, not {size}")
SIZE_NO_NUMBER = Template(
    "kernel.size_no_number", "{what} is an integer or a size expression such as M//128, not {value}"
)
SIZE_READS_TABLE = Template("kernel.size_reads_table", "{text!r} reads a table; a size does not")
SQUEEZED_ARGUMENT = Template("kernel.squeezed_argument", "{what}: Squeezed() takes nothing, not {inside}")
SUM_MOST = Template("kernel.sum_most", "a sum is at most a number, not {most}: {shown}")
SUM_OF_PART = Template("kernel.sum_of_part", "a sum is said of all of a table, not of a part of one: {shown}")
TABLES_FORM = Template(
    "kernel.tables_form", "tables is a mapping from names to arrays, {{t: {{array: s32[8]}}}}, not {value}"
)
TABLE_ENTRY = Template("kernel.table_entry", "{name!r} is a table; read an entry of it, for instance {name}[0]")
TABLE_RANK = Template("kernel.table_rank", "{read} has {args} indices, and the table has {rank} dimensions")
TABLE_TYPE = Template("kernel.table_type", "{what} holds {dtype}; an index map reads integers, for instance s32")
TABLE_WORD = Template("kernel.table_word", "a table is {words}, not {said!r}")
TRUTH = Template("kernel.truth", "{key} is true or false, not {value}")
UNBLOCKED_FORM = Template("kernel.unblocked_form", "the padding of Unblocked is written ((1, 0), (2, 0)), not {text}")
UNBLOCKED_RANK = Template("kernel.unblocked_rank", "Unblocked pads {pairs} dimensions, and the block has {rank}")
VMEM_LIMIT = Template("kernel.vmem_limit", "vmem_limit is a number of bytes of at least 1, not {value}")
WINDOW_EMPTY = Template("kernel.window_empty", "a block of {by} elements has no blocks to count")
WORD_OF_PART = Template("kernel.word_of_part", "{said!r} is said of all of a table, not of a part of one: {shown}")
