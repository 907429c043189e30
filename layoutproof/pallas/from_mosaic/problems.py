"""What cannot be read of a Mosaic module."""

from __future__ import annotations

from layoutproof.core.message import Template

ACCESS_RANK = Template("mosaic.access_rank", "an access of another rank than its reference")
ALIAS = Template("mosaic.alias", "an alias {pairs} of something that is no operand and no result")
ALIASES_FORM = Template("mosaic.aliases_form", "output_operand_aliases of a form that is not read")
ALIAS_OF_PART = Template("mosaic.alias_of_part", "an alias of a part of a tuple")
ARGUMENTS = Template(
    "mosaic.arguments",
    "a kernel of {arguments} arguments, for {grid} grid dimensions, {tables} tables, {windows} arrays and "
    "{scratches} scratches",
)
ARGUMENT_TYPE = Template("mosaic.argument_type", "an argument of type {text}, which is not modelled")
ARRAY_EXTENTS = Template("mosaic.array_extents", "{name} has the extents {extents}, and the kernel takes {taken}")
ATTRIBUTE = Template("mosaic.attribute", "{what} has the attribute {name}, which is not modelled")
BLOCK_END = Template("mosaic.block_end", "a block without an end")
MOST_BODY_OPERATIONS = Template("mosaic.most_body_operations", "the body has too many operations")
BODY_NO_BASE64 = Template("mosaic.body_no_base64", "its body is no base64 ({error}): cut short?")
BRANCH_FORM = Template("mosaic.branch_form", "a branch without its other side, or of several blocks")
BRANCH_RESULTS = Template("mosaic.branch_results", "a branch whose sides have different results")
BY_NO_CONSTANT = Template(
    "mosaic.by_no_constant", "the operation {operation} by something that is no positive constant"
)
MOST_CALLS = Template("mosaic.most_calls", "too many calls of functions")
CONFIG_KEY = Template("mosaic.config_key", "its backend_config has {name}, which is not modelled")
CONFIG_NO_BODY = Template(
    "mosaic.config_no_body", "its backend_config has no custom_call_config with a body, which would be the kernel"
)
CONFIG_NO_JSON = Template("mosaic.config_no_json", "its backend_config is no JSON ({error}): cut short?")
CONFIG_NO_OBJECT = Template("mosaic.config_no_object", "its backend_config is no JSON object, but {text!r}")
CONFIG_NUMBER = Template("mosaic.config_number", "{name} in its backend_config is {value}, which is no number")
CONSTANT = Template("mosaic.constant", "the constant {text}")
CONSTANT_NO_INTEGER = Template("mosaic.constant_no_integer", "the constant {value}, which is no integer")
CONTRACT_FORM = Template("mosaic.contract_form", "vector.contract of a form that is not known")
CONVERSION = Template("mosaic.conversion", "a conversion from i{old} to i{new}, which may wrap")
CORE_TYPE = Template("mosaic.core_type", "a kernel for the core type {core}, which is not modelled")
ELEMENT_OF_DATA = Template("mosaic.element_of_data", "an element of an array at a place that depends on data")
ELEMENT_KIND = Template("mosaic.element_kind", "an array of {kind}, whose elements are unknown")
ELEMENT_TYPE = Template("mosaic.element_type", "elements of type {name}, which is not known")
EXPRESSION = Template("mosaic.expression", "an expression of more than {largest} parts or {deepest} levels")
EXTENTS = Template("mosaic.extents", "an array of type {text}, whose extents are not known")
FUNCTION_FORM = Template(
    "mosaic.function_form", "the function {name} of several blocks, or of other arguments than the grid and the tables"
)
FUNCTION_MISSING = Template("mosaic.function_missing", "the function {name}, which the module does not have")
GIVES_REFERENCE = Template("mosaic.gives_reference", "the operation {operation}, which gives a reference")
GPU_KERNEL = Template(
    "mosaic.gpu_kernel",
    "a Pallas kernel for GPU: what stands in the call has no grid of blocks that is read here; trace the function",
)
HANDED_REFERENCE = Template("mosaic.handed_reference", "a reference that a branch or a loop hands on")
IOTA = Template("mosaic.iota", "an iota over several dimensions")
KERNELS = Template("mosaic.kernels", "a module with {kernels} kernels, which is not modelled")
VALUE_NOT_MODELLED = Template("mosaic.value_not_modelled", "{kind} {value}, which is not modelled")
LINE_END = Template("mosaic.line_end", "the line ends inside the call: cut short?")
LOOP_CONDITION = Template("mosaic.loop_condition", "a loop that hands on what its condition computes")
LOOP_STEP = Template("mosaic.loop_step", "a loop whose step is not positive")
MEMORY_DIVIDED = Template(
    "mosaic.memory_divided", "the operation {operation}, which changes what memory is divided into"
)
MEMORY_TYPE = Template("mosaic.memory_type", "memory of type {text}, which is not modelled")
MODULE = Template("mosaic.module", "the module in it cannot be read: {error}")
NEEDS_JAX = Template("mosaic.needs_jax", "reading Mosaic kernels needs jax: pip install jax ({why})")
NOT_A_FUNCTION = Template("mosaic.not_a_function", "another form than a function: {target}")
NOT_ROW_MAJOR = Template("mosaic.not_row_major", "{text!r} is not row-major, as a kernel's arrays are")
VALUE_NOT_THERE = Template("mosaic.value_not_there", "a value that is not there yet")
NO_ARRAY = Template("mosaic.no_array", "{text!r} is no array of numbers")
CALLED_FUNCTION_MISSING = Template("mosaic.called_function_missing", "a call of {name}, which the module does not have")
NO_LIST = Template("mosaic.no_list", "{what} {value}, which is no list of numbers")
NO_NUMBER = Template("mosaic.no_number", "{name} {value}, which is no number of arguments")
NO_REFERENCE = Template("mosaic.no_reference", "an address that is no reference")
NO_SEMAPHORE = Template("mosaic.no_semaphore", "a copy without a semaphore")
NO_SIZE = Template("mosaic.no_size", "{left!r} among its types is no array of numbers of known size")
NO_TABLE = Template("mosaic.no_table", "a read of something that is no table of signed integers")
NO_MODULE_TEXT = Template(
    "mosaic.no_module_text", "neither HLO text, which starts with HloModule, nor StableHLO text, which has a func.func"
)
NO_WINDOW = Template("mosaic.no_window", "{name} has no window, although the kernel takes it in {memory}")
OPERANDS = Template("mosaic.operands", "{operands} operands, and the text tells the shapes of {shapes}")
OPERATION_FORM = Template("mosaic.operation_form", "the operation {operation} of a form that is not known")
OPERATION_KIND = Template("mosaic.operation_kind", "the operation {operation} of kind {kind}")
OPERAND_NOT_THERE = Template("mosaic.operand_not_there", "the operation {name} on a value that is not there yet")
OPERATION_RESULTS = Template("mosaic.operation_results", "the operation {operation} with {results} results")
OPERATION_WITH = Template("mosaic.operation_with", "the operation {operation} with {name} {text}")
OPERATION_WRAPS = Template("mosaic.operation_wraps", "the operation {name} on {kind}, which wraps earlier than 32 bits")
PACKED_ROWS = Template("mosaic.packed_rows", "the operation {operation} (rows packed into words of another width)")
PARTIAL_PIPELINE = Template(
    "mosaic.partial_pipeline",
    "a pipeline (emit_pipeline) over arrays whose last tile is partial, which is seen where it is traced",
)
PREDICATE = Template("mosaic.predicate", "the operation {operation} with predicate {predicate}")
PRODUCT_FORM = Template("mosaic.product_form", "a product of matrices of a form that is not known")
REFERENCE_AS_NUMBER = Template("mosaic.reference_as_number", "a reference where a number is expected")
REGION_ARGUMENTS = Template("mosaic.region_arguments", "a region with other arguments than it is given")
REGION_BLOCKS = Template("mosaic.region_blocks", "a region of several blocks")
ROTATION = Template("mosaic.rotation", "a rotation with a stride")
SCOPED_FORM = Template("mosaic.scoped_form", "scoped_memory_configs of a form that is not modelled: {value}")
SCOPED_OFFSET = Template("mosaic.scoped_offset", "scoped_memory_configs with an offset, which is not modelled")
SEMANTICS = Template("mosaic.semantics", "dimension_semantics {value} for {many} grid dimensions")
SHIFT = Template("mosaic.shift", "a shift by {by}, which is no constant from 0 to 31")
SLICE_RANK = Template("mosaic.slice_rank", "a slice of a reference of another rank")
SQUEEZED_REFERENCE = Template("mosaic.squeezed_reference", "a reference that is squeezed into another shape")
SUM_UNDER_MASK = Template("mosaic.sum_under_mask", "a sum into memory under a mask")
SWITCH = Template("mosaic.switch", "a switch whose cases are not counted from 0")
TABLE_TYPE = Template(
    "mosaic.table_type", "the table prefetch{number} of {ours}, which its kernel takes for {theirs}: not modelled"
)
TEXT_END = Template("mosaic.text_end", "the text does not end with its module's bracket, but with {end!r}: cut short?")
MOST_OPERATIONS = Template("mosaic.most_operations", "thousands of operations")
UNSIGNED = Template("mosaic.unsigned", "an unsigned comparison")
VALUE_NO_INTEGER = Template("mosaic.value_no_integer", "a value of type {kind}, which is no integer")
WHOLE_ARRAY = Template("mosaic.whole_array", "{name} puts a whole array into {where}, and that is not modelled")
WHOLE_TABLE = Template("mosaic.whole_table", "a whole table among its results")
WINDOWS = Template("mosaic.windows", "window_params for other than {windows} arrays")
WINDOW_FORM = Template("mosaic.window_form", "the window of {name}, which is no mapping")
WINDOW_KIND = Template("mosaic.window_kind", "the window kind {value}, which is not modelled")
WINDOW_KIND_RANK = Template("mosaic.window_kind_rank", "the window kind of {name} is for {rank} dimensions")
WINDOW_MODES = Template(
    "mosaic.window_modes", "the window of {name} has pipeline_mode {mode} and revisit_mode {revisit}: not modelled"
)
WINDOW_PADDINGS = Template("mosaic.window_paddings", "the window kind {value}, whose paddings do not match")
WINDOW_RANK = Template("mosaic.window_rank", "{name} has {rank} dimensions and a window of {window}")
