"""What a search says: what is wrong with a problem, why a candidate falls, and what a proof rests on."""

from __future__ import annotations

from layoutproof.core.message import Template

ABOVE_HEADROOM = Template("searching.above_headroom", "more VMEM, by the model, than headroom leaves of the limit")
ALL_BOUNDED = Template("searching.all_bounded", "all {count} candidates covered by {boxes} boxes, each bounded anew")
ALL_ENUMERATED = Template("searching.all_enumerated", "all {count} candidates enumerated")
ALL_FAIL_ALIKE = Template("searching.all_fail_alike", "all {asked} candidates fail alike: {reason}")
AXIS_CUTS_TWO = Template(
    "searching.axis_cuts_two", "{array} has two dimensions {name}; a mesh axis could not cut one of them alone"
)
BELOW_ONE = Template("searching.below_one", "{key}: {text} is {value}, which is below 1")
BETTER_FOUND = Template("searching.better_found", "the certificate found a better one, {found}: this is a bug")
BLOCKS_NOT_COMPILED = Template(
    "searching.blocks_not_compiled", "{operand}: blocks of the kind {kind} are not compiled here"
)
BODY_NOT_COUNTED = Template(
    "searching.body_not_counted",
    "VMEM is that of windows and scratch; what a kernel's body holds besides is not counted",
)
BOUND_OF_REST = Template("searching.bound_of_rest", "what is left costs no less than {cost}")
BOXES_BOUNDED = Template("searching.boxes_bounded", "{problem}: boxes of candidates were bounded")
BOXES_COVER_ALL = Template("searching.boxes_cover_all", "bounds: {boxes} boxes cover all {count}, each bounded anew")
BOX_UNDECIDED = Template("searching.box_undecided", "the bounds do not decide the box {box}")
BUDGET_SPENT = Template(
    "searching.budget_spent", "the budget is spent on {boxes} boxes and {candidates} candidates of them one by one"
)
BYTES_NEEDED = Template("searching.bytes_needed", "{why}: {needed} bytes needed, {allowed} allowed")
CANDIDATES_FORM = Template(
    "searching.candidates_form", "candidates are a JSON list of objects such as {{'bm': 128, 'bn': 256}}"
)
CANDIDATES_OF_KERNELS = Template("searching.candidates_of_kernels", "candidates are tilings of kernels; here are none")
CANDIDATE_KEY_TWICE = Template("searching.candidate_key_twice", "a candidate has {name!r} twice")
CANDIDATE_VALUE = Template(
    "searching.candidate_value", "candidate {number}: {name} is a whole number of at least 1, not {found}"
)
CANDIDATE_WITHOUT = Template("searching.candidate_without", "candidate {number} has no {name!r}: {candidate}")
CERTIFICATE = Template("searching.certificate", "{kind}: {what}; {how}")
CHANGES_BY_TABLES = Template(
    "searching.changes_by_tables", "{operand}: how often its block changes depends on what its tables hold"
)
CHANGES_COUNTED = Template(
    "searching.changes_counted", "{operand}: how often its block changes is counted, not written down"
)
CHEAPER_OPEN = Template(
    "searching.cheaper_open", "{count} candidates that may cost less are neither proved nor refuted: {reason}"
)
CHEAPER_OPEN_SUCH_AS = Template(
    "searching.cheaper_open_such_as",
    "{count} candidates that may cost less are neither proved nor refuted, e.g. {reason}",
)
CHEAPER_UNANSWERED = Template(
    "searching.cheaper_unanswered", "{count} candidates that may cost less have no answer: {reason}"
)
COMPILER_BUDGET = Template(
    "searching.compiler_budget",
    "the compiler was asked about {asked} candidates and took {taken}; a larger effort asks on",
)
COMPILER_MISSING = Template("searching.compiler_missing", "{compiler} cannot be asked: {missing}")
COMPILER_NOT_ASKED = Template("searching.compiler_not_asked", "the compiler was not asked")
COMPILER_REFUSED = Template("searching.compiler_refused", "the compiler refused {count} that the model allows")
COMPILER_REFUSES = Template("searching.compiler_refuses", "the compiler: {reason}")
COMPILE_OF_KERNELS = Template(
    "searching.compile_of_kernels",
    "--compile is for tilings of kernels, and for shardings of the arguments of a program; {missing}: is missing",
)
CONDITION_FORM = Template("searching.condition_form", "a condition is a text such as bm * bn <= 2**20, not {found}")
COSTS_MORE = Template("searching.costs_more", "costs more than {within:g} times the best of these, by the model")
COSTS_NO_LESS = Template("searching.costs_no_less", "{most} of these cost no more, by the model")
COST_MODEL = Template("searching.cost_model", "{cost}{several}; nothing here was measured on a chip")
CYCLES_ALONE = Template("searching.cycles_alone", "the compiler's cycles alone, as no clock of {target} is known")
DECIDES_ALIKE = Template(
    "searching.decides_alike",
    "a candidate that was not traced decides as one that was traced, and its grid, blocks and scratch are the terms "
    "of that one; what is shown was traced itself",
)
DECLARED_NOT_TRACED = Template("searching.declared_not_traced", "{problem}: a declared kernel is not traced")
DIMENSION_TWICE = Template(
    "searching.dimension_twice", "{array} has two dimensions {name}: an order of names does not say which is first"
)
DIVIDES_ALWAYS = Template("searching.divides_always", "{problem}, whatever the candidate")
DIVIDES_BY_0 = Template("searching.divides_by_0", "{text} divides by 0")
DIVIDES_BY_NUMBER = Template("searching.divides_by_number", "divides by a number that may be 0 or negative")
DIVIDES_BY_ZERO = Template("searching.divides_by_zero", "an expression of the file divides by 0")
EACH_REFUSED = Template("searching.each_refused", "each of the {asked} candidates is refused for what stands below")
ENOUGH_VMEM = Template("searching.enough_vmem", "{size} of VMEM would do ({bytes} bytes)")
ENUMERATED = Template("searching.enumerated", "enumerated: all {asked} candidates; {but}no other costs less")
EXPRESSION_FORM = Template("searching.expression_form", "an expression is a text or a whole number, not {found}")
FACTOR_FORM = Template("searching.factor_form", "a factor is written 1.2x, and is at least 1; not {found}")
FIGURE_NAME = Template("searching.figure_name", "{name} is a figure of every candidate; give it another name")
FRONT_CHECK = Template("searching.front_check", "the check of the front found {better}: this is a bug")
FRONT_INCOMPLETE = Template(
    "searching.front_incomplete", "the front is not complete: the budget of {boxes} boxes is spent"
)
FRONT_LACKS = Template("searching.front_lacks", "the front may lack points: {reason}")
FSDP_IN_NO_PRODUCT = Template(
    "searching.fsdp_in_no_product", "fsdp: {name} is in no product, so nothing says when it is gathered"
)
FUNCTION_ASKED = Template("searching.function_asked", "{compiler}, ahead of time, the function itself")
GRID_AT_RUN_TIME = Template("searching.grid_at_run_time", "{kernel}: its grid is known at run time only")
HEADROOM_FORM = Template(
    "searching.headroom_form", "headroom is a percentage from 0% to 99%, or a kind of body ({known}), not {found}"
)
HEADROOM_KEPT = Template("searching.headroom_kept", "{percent}% of VMEM is kept free for that; {source}")
HEADROOM_OF_COMPILER = Template("searching.headroom_of_compiler", "nothing is kept free: the compiler decides")
HEADROOM_OF_REGISTERS = Template(
    "searching.headroom_of_registers", "headroom {percent}% of VMEM, kept free for registers that spill; {source}"
)
HEADROOM_STATED = Template("searching.headroom_stated", "stated in the file")
KERNELS_TRACED = Template("searching.kernels_traced", "{problem}: its kernels are known where it is traced")
KERNEL_ITSELF = Template(
    "searching.kernel_itself", "the kernel itself: no condition that could be left out is needed for it"
)
KERNEL_LANGUAGE = Template("searching.kernel_language", "the kernel language: {problem}")
KERNEL_NOT_COMPILED = Template(
    "searching.kernel_not_compiled",
    "the kernel itself was not compiled, because the file names no body: windows and scratch only, with a stand-in "
    "that writes zeros",
)
KERNEL_OF_OTHER_TARGET = Template(
    "searching.kernel_of_other_target", "{kernel} is for {platform}; {target} has kernels for {known}"
)
LARGER_OF_BOTH = Template(
    "searching.larger_of_both", "the larger of the compiler's cycles and of those in which HBM moves the bytes"
)
LARGER_THAN = Template("searching.larger_than", "{name} is larger than 2**{power}")
LEFT_OUT = Template("searching.left_out", "{left} of the {asked} are left out first, see below")
LEARNED = Template(
    "searching.learned",
    "cycles of the {many} with an estimate are {traffic:,} for each us of the model's traffic, {products:,} for each "
    "us of its products and {step:,} for each step; each predicted by the others is off by {error:.1f} % in the "
    "median, {worst:.1f} % at most",
)
LEARNED_OF_REST = Template(
    "searching.learned_of_rest",
    "of those not compiled the fewest cycles, by that, have {those}; the compiler gives {fewest:,} at the fewest",
)
LOOKED_AT_EACH = Template("searching.looked_at_each", "{problem}: each candidate was looked at")
MEMORY_NOT_COMPILED = Template("searching.memory_not_compiled", "{operand}: memory {memory} is not compiled here")
MEMORY_OVER = Template("searching.memory_over", "{memory} (more than {limit} bytes)")
MESH_NEEDED = Template("searching.mesh_needed", "shardings need a mesh, e.g. mesh: {{data: 4, model: 2}}")
MOVED_BY_HAND = Template(
    "searching.moved_by_hand", "{operands}: moved by manual DMA, and the bytes of that are not counted"
)
MOVED_BY_KERNEL = Template(
    "searching.moved_by_kernel", "{operands}: moved by the kernel itself, and the bytes of that are not counted"
)
NAMES_NEEDED = Template("searching.names_needed", "one order for all arrays needs a name for every dimension")
NAME_OF_NOTHING = Template(
    "searching.name_of_nothing", "the kernel speaks of {name}, which is neither in sizes nor in tune"
)
NONE_FEASIBLE = Template("searching.none_feasible", "no candidate of {asked} is feasible")
NOTHING_ASKED = Template("searching.nothing_asked", "nothing is asked: give {sections}")
NOTHING_CHEAPER = Template(
    "searching.nothing_cheaper", "nothing outside of {whole} that {rules} costs less than {cost}"
)
NOTHING_TO_CHOOSE = Template("searching.nothing_to_choose", "say what may be chosen for {place}: --tune bm=128..2048")
NOTHING_TO_COMPILE = Template("searching.nothing_to_compile", "there is nothing to compile")
NOT_ALL_MET = Template("searching.not_all_met", "{conditions} cannot all be met")
NOT_AMONG_VALUES = Template("searching.not_among_values", "{name} = {value} is not among its values, {values}")
NOT_ASKED = Template("searching.not_asked", "not asked: {reason}")
NOT_IN_SIZES = Template("searching.not_in_sizes", "{name} is not in sizes; known: {known}")
NOT_MET = Template("searching.not_met", "{condition} cannot be met")
NOT_MET_TOGETHER = Template("searching.not_met_together", "{conditions} and {last} cannot all be met; {others} can")
NOT_TRACED = Template("searching.not_traced", "{body} cannot be traced: {reason}")
NO_BLOCK_TO_CHOOSE = Template(
    "searching.no_block_to_choose", "{kernel}: all its data are moved by manual DMA, so there is no block to choose"
)
NO_CANDIDATE = Template("searching.no_candidate", "there is no candidate in the list")
NO_CERTIFICATE = Template("searching.no_certificate", "no certificate: {reason}")
NO_FILE_OR_READY = Template("searching.no_file_or_ready", "{name} is no file, and no ready kernel ({known}){near}")
NO_JSON = Template("searching.no_json", "this is no JSON: {error}")
NO_JSON_NUMBER = Template("searching.no_json_number", "{found} is no number of JSON")
NO_NAME = Template("searching.no_name", "{name!r} is no name")
NO_NUMBER = Template("searching.no_number", "no number is in {found}")
NO_PADDING_RULE = Template(
    "searching.no_padding_rule", "{layout} pads by more than its first tile; no rule here says which shapes it fits"
)
NO_GPU = Template(
    "searching.no_gpu",
    "{said}; JAX sees no GPU here, and the function may have asked for one, so that nothing is known of its tiles",
)
NO_PALLAS_CALL = Template("searching.no_pallas_call", "the function makes no Pallas call")
NO_PARAMETER = Template("searching.no_parameter", "{name} is no parameter; they are {known}{near}")
NO_PROBLEM = Template(
    "searching.no_problem", "a search file has kernel, trace, or one of {sections}; here is none of them"
)
NO_TPU = Template("searching.no_tpu", "tilings are searched for TPUs, and {target} is none")
ONE_ELEMENT = Template(
    "searching.one_element",
    "one element takes {size} bytes, whatever is done to it; put scalars together into an array",
)
ONE_SET_OF_SIZES = Template("searching.one_set_of_sizes", "a traced function is searched for one set of sizes")
OTHER_PLATFORM = Template("searching.other_platform", "{kernel} is for {platform}, {target} is not")
OVERHEAD_FORM = Template("searching.overhead_form", "step_overhead is a time such as 350ns or 0.5us, not {found}")
OVER_THE_EDGE = Template("searching.over_the_edge", "blocks of {block} reach over the edge of {extent} {which}")
OWN_BODY_ASKED = Template("searching.own_body_asked", "{compiler}, ahead of time, with the kernel's own body")
PARAMETERS_MISSING = Template(
    "searching.parameters_missing", "a configuration says every parameter; missing: {missing}"
)
PARETO_OF_DECLARED = Template(
    "searching.pareto_of_declared", "--pareto is for tilings of a declared kernel; here is none"
)
PARTLY_LOOKED_AT = Template(
    "searching.partly_looked_at", "{looked_at} of {asked} candidates were looked at; the budget ended"
)
PERHAPS_FEWER = Template(
    "searching.perhaps_fewer", "perhaps fewer of them cannot, which is not known within the budget; --effort raises it"
)
PLAIN_CALLS_ONLY = Template(
    "searching.plain_calls_only", "only a plain pallas_call is compiled, without tables that share a buffer"
)
PRODUCTS_ALONE = Template(
    "searching.products_alone",
    "the time counts what the matrix products of the body compute, and nothing else that it does",
)
PRODUCTS_UNDER_CONDITIONS = Template(
    "searching.products_under_conditions",
    "some matrix products of the body stand under conditions; flops: says what they are together",
)
PRODUCT_DIMENSION = Template(
    "searching.product_dimension", "{product}: dimension {dimension} of {output} is in no input"
)
PRODUCT_FORM = Template(
    "searching.product_form", "a product is written x, up -> h with names of shardings, not {found}"
)
PRODUCT_OF_UNKNOWN = Template(
    "searching.product_of_unknown", "{product}: {name} is not among the arrays of shardings ({known})"
)
PRODUCT_WITHOUT_NAMES = Template(
    "searching.product_without_names",
    "{product}: every dimension of {name} needs a name, which says what is summed over",
)
PRUNE_OF_KERNELS = Template("searching.prune_of_kernels", "--prune is for tilings of kernels; here are none")
QUESTION_OF = Template("searching.question_of", "{question} {subject}: {reason}")
READS_A_TABLE = Template("searching.reads_a_table", "{text} reads a table, and what that holds is not known")
SAMPLE_FORM = Template("searching.sample_form", "sample is a whole number of at least 1, not {found}")
SCRATCH_NOT_COMPILED = Template("searching.scratch_not_compiled", "scratch in {memory} is not compiled here")
SET_ASIDE_BY_HEADROOM = Template(
    "searching.set_aside_by_headroom",
    "{candidates} are set aside by headroom, and nothing is proved of them: --compile has the compiler decide, "
    "--headroom 0% takes all that fit by the model",
)
SEVERAL_PROBLEMS = Template("searching.several_problems", "a search file states one problem; here are {problems}")
SHAPE_FORM = Template("searching.shape_form", "a shape is a text such as bf16[16,1280,40], not {found}")
SIZES_DIFFER = Template("searching.sizes_differ", "every entry of sizes names the same sizes")
SIZES_EMPTY = Template("searching.sizes_empty", "sizes is empty")
SIZES_OF_READY = Template("searching.sizes_of_ready", "{name} takes {count} sizes, {sizes}; {given} are given")
SIZE_AND_VARIABLE = Template("searching.size_and_variable", "{name} is in sizes too; it is one or the other")
SIZE_AT_RUN_TIME = Template("searching.size_at_run_time", "the size {size} is known at run time only")
SOME_LOST = Template("searching.some_lost", "some candidates were neither found nor refused: this is a bug")
SOURCE_OF_LIMITS = Template(
    "searching.source_of_limits", "window bytes and VMEM limits: measured on the TPU compiler, libtpu 0.0.42.1"
)
SOURCE_OF_OVERHEAD = Template("searching.source_of_overhead", "step overhead {overhead:g} us: {source}")
SOURCE_OF_PEAKS = Template(
    "searching.source_of_peaks",
    "bandwidth {bandwidth:g} GB/s and peak {peak:g} T operations/s of one TensorCore of {target}: jax 0.10.2, "
    "pallas/mosaic/tpu_info.py",
)
SOURCE_OF_STORES = Template("searching.source_of_stores", "stores {stores:.3g} TB/s into VMEM: {source}")
SPEC_FILE = Template(
    "searching.spec_file",
    "a spec file: it makes claims and states no problem; prove them with: layoutproof check {file}",
)
STAND_IN_ASKED = Template(
    "searching.stand_in_asked",
    "{compiler}, ahead of time, windows and scratch only: a stand-in that writes zeros, not the kernel",
)
STATED_COST = Template(
    "searching.stated_cost", "the cost is what the problem states; steps and bytes are those of the blocks"
)
STILL_WASTES = Template("searching.still_wastes", "{shape} still wastes {wasted} bytes")
SWEPT_BY_SEARCH = Template(
    "searching.swept_by_search", "{name} is no axis of this sweep: the search states target, mesh and shardings"
)
TABLES_OF_BLOCKS = Template(
    "searching.tables_of_blocks", "blocks that tables choose count as if no two entries were equal"
)
TABLE_MODEL = Template("searching.table_model", "entries of tables count as if no two in a row were equal")
TILES_OF_COMPILER = Template(
    "searching.tiles_of_compiler",
    "one order for all arrays is sought with the compiler's own tiles, without variables in them",
)
TILE_NAME = Template(
    "searching.tile_name", "{name} stands in a tile of {text}; say what it may be, tune: {{{name}: [..]}}"
)
TIME_MODEL = Template(
    "searching.time_model",
    "steps x overhead + the larger of HBM bytes / bandwidth and flops / peak + the scratch that each sum over steps "
    "fills first / stores + the first fetch and the last write, one block of each operand, which no step hides",
)
TOO_MANY_ASSIGNMENTS = Template(
    "searching.too_many_assignments",
    "{group}: {count} assignments; at most {most} are enumerated. Name fewer dimensions alike, or fewer axes",
)
TOO_MANY_CANDIDATES = Template(
    "searching.too_many_candidates",
    "there are more than {most} candidates, and few are traced; flops: says it, or fewer values",
)
TOO_MANY_CONFIGURATIONS = Template(
    "searching.too_many_configurations", "there are {count} configurations; at most {most} are enumerated: say sample="
)
TOO_MANY_DEVICES = Template("searching.too_many_devices", "a mesh of {devices} devices; at most {most}")
TOO_MANY_LAYOUTS = Template("searching.too_many_layouts", "{text} stands for more than {most} layouts")
TOO_MANY_NAMES = Template(
    "searching.too_many_names", "one order for {count} named dimensions; at most {most} are looked at"
)
TOO_MANY_STEPS = Template(
    "searching.too_many_steps", "{operand}: {steps} steps are too many to walk, and its index map has no closed form"
)
TOO_MANY_VALUES = Template("searching.too_many_values", "at most {most} values; {low}..{high} by {step} are more")
TRAFFIC_MODEL = Template(
    "searching.traffic_model", "a block moves when its index changes from one grid step to the next, in grid order"
)
TUNED_AND_PASSED = Template("searching.tuned_and_passed", "{name} is tuned, and kwargs pass {value} for it")
TUNED_IN_NO_LAYOUT = Template("searching.tuned_in_no_layout", "{name} is tuned and stands in the tiles of no layout")
TUNED_NOWHERE = Template("searching.tuned_nowhere", "{name} is tuned and appears nowhere in the kernel")
UNKNOWN_DIMENSIONS = Template("searching.unknown_dimensions", "{found} has dimensions of a size that is not known")
UNKNOWN_NAME = Template("searching.unknown_name", "{name} is not known here; known: {known}")
UNSAT_FOR_Z3 = Template("searching.unsat_for_z3", "unsat for z3")
VARIABLE_FORM = Template(
    "searching.variable_form", "a variable is written bm=256, bm=128,256 or bm=128..2048, not {found!r}"
)
VMEM_ABOVE_SHARE = Template(
    "searching.vmem_above_share",
    "VMEM: windows and scratch take {used} of {limit} bytes, more than {share} % of the limit, and registers that "
    "spill need room too ({source})",
)
VMEM_LIMIT_ABOVE = Template(
    "searching.vmem_limit_above", "{target} has {vmem} bytes of VMEM for a kernel; {asked} are asked for"
)
VMEM_LIMIT_FORM = Template("searching.vmem_limit_form", "vmem_limit is a number of bytes, not {found}")
VMEM_MODEL = Template(
    "searching.vmem_model",
    "windows in tiles, two buffers each where they move, and scratch; limit {limit} bytes ({size}); what spills "
    "from registers comes on top",
)
VMEM_OVER = Template("searching.vmem_over", "VMEM (more than {limit} bytes)")
VMEM_WITH_PRODUCT = Template(
    "searching.vmem_with_product",
    "VMEM: windows and scratch take {used} of {limit} bytes, and registers that spill may take {room} or more: the "
    "body works on a product of {held} or more",
)
WIDTH_UNKNOWN = Template("searching.width_unknown", "{operand}: the width of {dtype} is not known")
WINDOWS_NOT_PRICED = Template(
    "searching.windows_not_priced", "{operand}: what Element and BoundedSlice windows move is not priced"
)
XOR_OF_FLOATS = Template("searching.xor_of_floats", "takes an xor of numbers that are kept as floats")
XOR_VARIES = Template("searching.xor_varies", "takes an xor of numbers that vary")
