"""What is not known of a kernel's body, and what may be wrong with it."""

from __future__ import annotations

from layoutproof.core.message import Template

ACCUMULATOR_STORE = Template("bodies.accumulator_store", "a store to an accumulator in a kernel of one thread")
ACCUMULATOR_SHAPE = Template("bodies.accumulator_shape", "an accumulator whose shape depends on data")
AND_RUNS = Template("bodies.and_runs", "the bitwise and with {mask}, which has {runs} runs of ones")
ARITHMETIC_SHIFT = Template("bodies.arithmetic_shift", "an arithmetic shift of {dtype}")
ARRAY_GIVEN_TWICE = Template("bodies.array_given_twice", "an array that a copy moves is given twice")
ARRIVALS = Template("bodies.arrival_count", "how often it arrives")
AXIS_INDEX = Template("bodies.axis_index", "axis_index of {axis}, an axis of no mesh that is known here")
BARRIERS_MEANT = Template("bodies.barrier_set", "which barriers of {name} are meant")
BARRIER_KIND = Template("bodies.barrier_kind", "a barrier of the kind {dtype}")
BARRIER_MEANT = Template("bodies.barrier_index", "which of the barriers {name} is meant")
BETWEEN_THREADS = Template("bodies.between_threads", "what line {line} does between threads")
BITCAST_ELEMENTS = Template("bodies.bitcast_elements", "which elements of {reference} a view through a bitcast shows")
BITWISE = Template("bodies.bitwise", "the bitwise operation {name}")
BLOCK_UNKNOWN = Template("bodies.block_unknown", "a block that is not known")
BODY_AS = Template("bodies.body_as", "the body, as {version} has it ({failure})")
BODY_MESH = Template("bodies.body_mesh", "a mesh in a body, of the kind {mesh}")
BODY_NOT_READ = Template("bodies.body_not_read", "the body of {kernel} was not read")
BRANCH_REFERENCE = Template("bodies.branch_reference", "a branch that chooses a reference")
CALL_WITHOUT_BODY = Template("bodies.call_without_body", "a call of {name} without its body")
CAPTURED_ARRAY = Template("bodies.captured_array", "an array of shape {shape} captured by the index map")
BODY_CHANGED = Template("bodies.body_changed", "a body that was changed already")
MOST_CHECKS = Template("bodies.most_checks", "more than {most} checks of what earlier programs and iterations leave")
COPY_FORM = Template("bodies.copy_form", "a copy into shared memory with a predicate, or without a barrier")
CLUSTER_AXES = Template(
    "bodies.cluster_axes", "copy_gmem_to_smem of which a program along {axes} axes of a cluster sees the end"
)
CLUSTER_PART = Template(
    "bodies.cluster_part", "a copy that programs of a cluster divide, of a shape they do not divide"
)
CODE_ARRAY = Template("bodies.code_array", "an array of the code")
CODE_NUMBER = Template("bodies.code_number", "a number of the code that is no integer")
COMBINES = Template("bodies.copy_combines", "copy_smem_to_gmem that combines by {operation}")
MOST_CONDITION_PARTS = Template("bodies.most_condition_parts", "a condition on memory has more than {most} parts")
TABLE_CONTENTS = Template("bodies.table_contents", "{read} has no value: the contents of {table} are not known")
CONVERSION = Template("bodies.conversion", "a conversion from {old} to {new}")
CONVERSION_TO_NO_INTEGER = Template("bodies.conversion_to_no_integer", "a conversion to {new}, which is no integer")
CONVERTED_NUMBER = Template("bodies.converted_number", "a number that was converted from {old} to {new}")
COPY_BYTES = Template("bodies.copy_bytes", "how many bytes a copy moves")
COPY_INTO_SCALAR_MEMORY = Template("bodies.copy_into_scalar_memory", "a copy into scalar memory")
COPY_INTO_SCOPE = Template(
    "bodies.copy_into_scope", "a copy into memory of another device that a scope of its body allocates"
)
COPY_INTO_WINDOW = Template("bodies.copy_into_window", "a copy into the window of {reference} of another device")
COPY_PARTS = Template(
    "bodies.copy_parts", "a copy of {parts} parts, a form of this version of JAX that is not modelled"
)
COPY_TO_DEVICE = Template("bodies.copy_to_device", "a copy to {device}")
COPY_WITHOUT_SEMAPHORE = Template(
    "bodies.copy_without_semaphore", "a copy to another device without a semaphore of its own"
)
COUNTS_AFTER = Template("bodies.counts_after", "what {semaphore} counts after {amount} more")
COUNTS_AT_END = Template("bodies.counts_at_end", "{semaphore} of {device} counts {count} when all {kind}s have ended")
COUNTS_BYTES_AND_SIGNALS = Template("bodies.counts_bytes_and_signals", "what {semaphore} counts, signals and bytes")
COUNTS_BYTES = Template(
    "bodies.counts_bytes", "{semaphore} counts {count} bytes {when}: {total} started, {waited} waited for"
)
COUNTS_ELSE = Template(
    "bodies.counts_else", "{name} counts something else after an iteration of a loop whose iterations are not known"
)
COUNTS_SIGNALS = Template("bodies.counts_signals", "{semaphore} counts {signals} {when}")
WHETHER_DEFINED = Template("bodies.whether_defined", "whether {name} is defined")
DEVICE_AT = Template("bodies.device_at", "the device at {place} of axis {axis}, which has {extent}")
DEVICE_FORM = Template("bodies.device_form", "{device} in a form that is not known here")
DEVICE_MEANT = Template("bodies.device_meant", "which device is meant")
DEVICE_OF_MESH = Template("bodies.device_of_mesh", "device {number} of a mesh of {devices}")
DIVISOR_UNKNOWN = Template("bodies.divisor_unknown", "a division by what is no positive constant")
DIVISOR_NOT_CONSTANT = Template("bodies.divisor_not_constant", "a division by {divisor}, which is no positive constant")
MOST_EQUATIONS = Template("bodies.most_equations", "the body has more than {most} equations")
EVENTS_ALL_PROGRAMS = Template(
    "bodies.most_events_of_programs", "more than {most:,} events of the threads of all programs"
)
MOST_EVENTS_IN_RUNS = Template("bodies.most_events_in_runs", "more than {most:,} events in runs of {devices} devices")
EVENTS_ONE_PROGRAM = Template(
    "bodies.most_events_of_program", "more than {most:,} events of the threads of one program"
)
EVENTS_ONE_THREAD = Template("bodies.most_events_of_thread", "more than {most_events:,} events of one thread")
MOST_EVENTS_ON_DEVICES = Template("bodies.most_events_on_devices", "more than {most:,} events on {devices} devices")
MOST_EVENTS_ON_DEVICE = Template("bodies.most_events_on_device", "more than {most:,} events on one device")
FREED_IN_FLIGHT = Template("bodies.freed_in_flight", "{region} has {what} in flight {when}")
SEMAPHORE_AT_END = Template("bodies.semaphore_at_end", "{word} counts {signals} when the function ends")
SEMAPHORE_OF_CALLER = Template(
    "bodies.semaphore_of_caller", "a semaphore that the function is given: what it counts at first is not known"
)
SEMAPHORE_HANDED_ON = Template(
    "bodies.semaphore_handed_on", "a semaphore that the function hands on: what waits for it is not in it"
)
GATHER = Template("bodies.gather", "what a gather takes or fills in")
GATHER_SHAPE = Template("bodies.gather_shape", "a gather whose indices have another shape")
GIVEN_IN_FLIGHT = Template("bodies.given_in_flight", "{step}{at} is given it, {lost}")
SEMAPHORE_IN_STEP = Template(
    "bodies.semaphore_in_step", "a semaphore goes into {step}{at}: what happens there is not looked at"
)
GPU_OPERANDS = Template("bodies.gpu_operands", "more operands than the views of an equation have")
HANDED_NUMBER = Template("bodies.handed_number", "a number that a loop hands on")
HANDED_VALUE = Template("bodies.handed_value", "a value that a loop hands on")
ENOUGH_BYTES = Template("bodies.enough_bytes", "whether {semaphore} has {size} bytes of {total}, by {number}")
INLINE_CODE = Template("bodies.inline_code", "the primitive inline_mgpu (code of the compiler's own language)")
INLINE_NUMBER = Template(
    "bodies.inline_number", "a number that code of the compiler's own language computes, and that lanes may differ in"
)
INLINE_OPERATION = Template(
    "bodies.inline_operation", "{operation} in code of the compiler's own language (inline_mgpu)"
)
INDEX_ARRAY = Template("bodies.index_array", "an index that is an array")
IN_FLIGHT_AT_END = Template(
    "bodies.in_flight_at_end", "a copy that moves {memory} is in flight when the kernel ends: not modelled"
)
IN_FLIGHT_DEPENDS = Template("bodies.in_flight_depends", "what is in flight depends on {lost}")
IOTA_DTYPE = Template("bodies.iota_dtype", "an iota of {dtype}")
MOST_ITERATIONS = Template("bodies.most_iterations", "more than {most} iterations in one program")
MAXIMUM_OF_MANY = Template("bodies.maximum_of_many", "the largest of many")
LIST_AND_MORE = Template("bodies.list_and_more", "a list of places of which some are ignored, and more of a view")
LIST_BESIDE = Template("bodies.list_beside_part", "a list of places beside a part of another dimension")
LIST_IN = Template("bodies.list_dtype", "a list of places in {dtype}")
LIST_INTEGERS = Template("bodies.list_integers", "a list of places that are no integers")
LIST_RANK = Template("bodies.list_rank", "lists of places of more than one dimension, or of several lengths")
LIST_TERM = Template("bodies.list_without_term", "a list of places that no term says: {why}")
LOADED_VALUE = Template("bodies.loaded_value", "what the body loads")
LOAD_LEAVES = Template("bodies.accumulator_load_leaves", "a load of an accumulator that leaves {left} MMAs running")
LEFT_ON_BARRIER = Template(
    "bodies.left_on_barrier",
    "perhaps a later scope gets the barrier of {barrier}, on which arrivals are left that nothing has waited for",
)
LEFT_AT_END = Template("bodies.left_at_end", "perhaps {what}: the last wait says that it may be left")
LOAD_REDUCES = Template("bodies.load_reduces", "a load of tensor memory that reduces what it loads")
LOOK_AT_ARRIVALS = Template(
    "bodies.look_at_arrivals", "look at what arrives on {barrier}: {size} of {all} arrivals end the phase"
)
LOOK_AT_BARRIER = Template(
    "bodies.look_at_barrier",
    "look at what comes before it: signal pltpu.get_barrier_semaphore() of each device that is reached, "
    "and wait for theirs",
)
LOOK_AT_BEFORE = Template("bodies.look_at_before", "look at {waits}: none comes before this")
LOOK_AT_BYTES = Template(
    "bodies.look_at_bytes", "look at the waits on {semaphore}: they take fewer bytes than are started on it"
)
LOOK_AT_COMMIT = Template(
    "bodies.look_at_commit", "look at what is stored last before it: plgpu.commit_smem() belongs behind that"
)
LOOK_AT_COPIES_IN = Template(
    "bodies.look_at_copies_in", "look at what arrives on {barrier}: copies into shared memory, and barrier_arrive"
)
LOOK_AT_FILLING = Template(
    "bodies.look_at_filling", "look at what is waited for before line {line}: it has to fill {name}"
)
LOOK_AT_GIVEN = Template("bodies.look_at_given", "look at who is given {word}: none waits for all of it")
LOOK_AT_LINE = Template("bodies.look_at_line", "look at line {line}: start it only where it is waited for")
LOOK_AT_COPIES = Template(
    "bodies.look_at_copies",
    "{semaphore} counts {copies} copies, which may end in any order: the wait for it at line {line} may take what "
    "another one has counted; give each a semaphore of its own, or start the next when the receiver has told that it "
    "has this one",
)
LOOK_AT_ORDER = Template(
    "bodies.look_at_order",
    "look at what {device} waits for before line {line}, and {other} before line {other_line}: the one "
    "has to know that the other is done",
)
LOOK_AT_PHASE = Template("bodies.look_at_phase", "look at what arrives on {barrier}: it has to wait for {thread}")
LOOK_AT_SCOPE = Template(
    "bodies.look_at_scope", "look at where run_scoped ends: nothing has waited on {semaphore} by then"
)
LOOK_AT_SENDERS = Template(
    "bodies.look_at_senders", "look at which devices send to {device}, and to which part of {name}"
)
LOOK_AT_SIGNALLED = Template(
    "bodies.look_at_signalled", "look at what signals {semaphore}: it is less than is waited for"
)
LOOK_AT_SIGNALS = Template("bodies.look_at_signals", "look at what signals {semaphore} of {device}, or copies to it")
LOOK_AT_STARTS = Template(
    "bodies.look_at_starts", "look at what starts copies on {semaphore}: a wait takes {takes} before it"
)
LOOK_AT_TAKING = Template(
    "bodies.look_at_taking", "look at what waits for {semaphore}: it takes less than is signalled"
)
LOOK_AT_WAITING = Template("bodies.look_at_waiting", "look at who waits for {word}: it takes less than is signalled")
LOOK_AT_TENSOR_ORDER = Template(
    "bodies.look_at_tensor_order", "look at the barrier between them: plgpu.Barrier(orders_tensor_core=True)"
)
LOOK_AT_WAITS = Template(
    "bodies.look_at_waits", "look at the waits for {semaphore}: they take less than is signalled and copied"
)
LOOK_BETWEEN = Template(
    "bodies.look_between",
    "look at what comes between the copy and the kernel that waits for it: {name} is in use until then",
)
LOOP_ALLOCATES = Template("bodies.loop_allocates", "{reference}, shared memory that a loop allocates")
TRIP_COUNT_AT = Template("bodies.trip_count_at", "how often the loop at {source} runs")
LOOP_END = Template("bodies.loop_end", "a loop whose end is not known")
LOOP_GOES_ON = Template("bodies.loop_goes_on", "whether a loop goes on")
LOOP_NOT_MODELLED = Template("bodies.loop_not_modelled", "{what}: not modelled")
TRIP_COUNT = Template("bodies.trip_count", "how often a loop runs")
LOOP_STACKS = Template("bodies.loop_stacks", "what a loop stacks")
LOOP_STORE_COUNT = Template("bodies.loop_store_count", "how often a loop stores a number is not known")
TRIP_COUNT_OF = Template("bodies.trip_count_of", "how often the loop at {source} runs{count}")
MASK_COUNT = Template("bodies.mask_count", "how many elements a mask holds for")
MASK_LETS_IN = Template("bodies.mask_lets_in", "which element a mask lets in")
MASK_LETS_OUT = Template("bodies.mask_lets_out", "which element a mask lets out")
MATRIX_PRODUCT = Template("bodies.matrix_product", "a product of matrices")
MAY_WRITE_IN_PLACE = Template("bodies.may_write_in_place", "{where} may write in place")
MEMORY_AS_NUMBER = Template("bodies.memory_as_number", "memory where a number or an array stands")
MEMORY_OF_OTHERS = Template(
    "bodies.memory_of_others",
    "{name} and what comes after it do not use {word}: its memory may be another's while a copy moves "
    "it; give it to {name}",
)
MEMORY_THROUGH = Template("bodies.memory_through", "memory through {transform}")
MESH_SIZE = Template("bodies.mesh_size", "a mesh of {devices} devices; up to {most} are run")
MESH_UNKNOWN = Template("bodies.mesh_unknown", "the mesh of devices is not known: nothing around the call says it")
MOST_PROGRAMS = Template("bodies.most_programs", "more than {most:,} programs")
NAMED_ARRIVALS = Template(
    "bodies.named_arrivals", "which arrivals on {barrier} end which phase: more threads come than it has"
)
NAMED_EARLY = Template(
    "bodies.named_early",
    "which phase of {barrier} {thread} arrives in at line {line}: perhaps the one before has not ended",
)
NAMED_OTHER = Template(
    "bodies.named_other", "named barrier {number}, which is the compiler's own, or of other numbers of threads"
)
NEVER_ARRIVES = Template(
    "bodies.never_arrives",
    "{thread} waits for arrival {wanted} on {barrier}, which has {arrived} when every other thread has "
    "ended or waits, too: it never returns",
)
NEVER_RETURNS = Template(
    "bodies.never_returns",
    "{device} waits for {amount} {unit}{semaphore}, which counts {there} when every other {kind} has "
    "ended or waits, too: it never returns",
)
NO_PROXY_FENCE = Template(
    "bodies.no_proxy_fence",
    "{does} {name} after {other} it at line {line}, and no fence in global memory puts a copy behind that",
)
NOTHING_ORDERS = Template(
    "bodies.nothing_orders", "{does} {element}{name}{where} while {meanwhile} it at line {line}: nothing orders them"
)
NOTHING_WRITES = Template("bodies.nothing_writes", "nothing writes element {element} of {name} of {device}")
DEVICE_NOT_BEGUN = Template(
    "bodies.device_not_begun",
    "{device} {does} of {other}, which may not have begun the kernel: no barrier comes before",
)
NOT_COMMITTED = Template(
    "bodies.not_committed", "{does} {name}, to which line {line} stores, and no commit_smem is between them"
)
NOT_KNOWN = Template("bodies.not_known", "{why}: not known")
NOT_ORDERED = Template(
    "bodies.not_ordered",
    "nothing says that {name} waits for the copy into {word} before {user} it: give it to {name}, and "
    "use what {name} gives of it (input_output_aliases)",
)
NOT_WAITED = Template(
    "bodies.copy_outlives_threads", "{does} {name}, and no thread has waited for it when all have ended"
)
NOT_WAITED_FOR = Template(
    "bodies.not_waited_for", "{word} is not waited for to the end: a copy is started on it at line {line}"
)
NO_INTEGER = Template("bodies.no_integer", "the number {value}, which is no integer")
NO_REFERENCE = Template("bodies.no_reference", "an address that is no reference but {kind}")
NO_VALUE = Template("bodies.no_value", "{op} {read} has no value of its own")
STORE_CONDITION = Template("bodies.store_condition", "whether a number is stored is not known")
NUM_PROGRAMS = Template("bodies.num_programs", "num_programs of a grid that is not the kernel's own")
OF_STEP = Template("bodies.of_step", "of {step}{at}: {what}")
SAME_SEMAPHORE = Template("bodies.same_semaphore", "whether {one} and {other} are one slot")
OPERATION = Template("bodies.operation", "the operation {name}")
OTHER_DEVICE = Template("bodies.other_device", "a semaphore that another device signals or a copy to it: not modelled")
OUT_OF_WORDS = Template("bodies.out_of_words", "numbers out of words")
PACKED_PART = Template("bodies.packed_part", "which part of a packed word is used")
INTERIOR_PADDING = Template("bodies.interior_padding", "a pad between elements")
PARALLEL_STEP = Template("bodies.parallel_step", "a parallel loop whose step is not known")
PARALLEL_USE = Template(
    "bodies.parallel_use", "{name} is in use from one parallel program to the next: on several cores, not known"
)
PERHAPS = Template("bodies.perhaps", "{given}: perhaps {what}")
PERHAPS_IN_FLIGHT = Template("bodies.perhaps_in_flight", "perhaps {what}{why}")
PHASE_UNSEEN = Template(
    "bodies.phase_unseen",
    "{many} arrivals on {barrier} are possible before {thread} waits for arrival {wanted}: a phase ends "
    "that it does not see",
)
PLACES_IN_VIEW = Template("bodies.places_in_view", "places in a view whose shape depends on data")
PRIMITIVE = Template("bodies.primitive", "the primitive {name}")
PRIMITIVE_FORM = Template("bodies.primitive_form", "the primitive {primitive} in the form that {known}, {said}")
PRODUCT_RESULT = Template("bodies.product_result", "the result of a product of matrices")
PROGRAMS_BESIDE_DEVICES = Template(
    "bodies.programs_beside_devices", "programs that run at the same time, beside other devices"
)
PROGRAMS_OF = Template("bodies.programs_of", "the number of programs of {kernel} is not known")
MOST_PROGRAMS_WALKED = Template("bodies.most_programs_walked", "too many programs to walk")
PROGRAMS_UNKNOWN = Template("bodies.programs_unknown", "the number of programs is not known")
COPY_AT_PROGRAM_END = Template(
    "bodies.copy_at_program_end", "a copy is in flight when the program of the window of {window} ends: not modelled"
)
PROGRAM_ID = Template("bodies.program_id", "program_id of a grid that is not the kernel's own")
DEVICE_REACHES = Template("bodies.device_reaches", "whether a device reaches line {line}: {held}")
READS_BLOCKS_IN_FLIGHT = Template("bodies.reads_blocks_in_flight", "{where} reads blocks of it")
READS_IN_FLIGHT = Template("bodies.reads_in_flight", "{where} reads it")
READ_AND_STORED = Template(
    "bodies.read_and_stored",
    "whether a barrier is between what the lanes of a warpgroup do to {memory} (unsafe_no_auto_barriers)",
)
READ_AND_WRITTEN = Template("bodies.read_and_written", "what is read of {reference}, which the kernel writes")
BITCAST_NUMBER = Template("bodies.bitcast_number", "numbers that were read as another type")
REPEAT_SHAPE = Template("bodies.repeat_shape", "a repeat of another shape")
REPLAY_LENGTH = Template("bodies.replay_length", "the replay is too long")
RESHAPE_TRANSPOSES = Template("bodies.reshape_transposes", "a reshape that transposes")
RESULT_OF_OPERATION = Template("bodies.result_of_operation", "the result of {name}")
RUN_STATE_EMPTY = Template("bodies.run_state_empty", "run_state of memory that begins without a value")
RUN_STATE_KIND = Template("bodies.run_state_kind", "run_state of memory of the kind {memory}")
SAID_AT = Template("bodies.said_at", "{what} at {place}")
SCOPE_ENTERED_AGAIN = Template(
    "bodies.scope_entered_again",
    "{semaphore}, a semaphore of a scope that is entered again, which other devices signal",
)
SCOPE_COUNTS = Template("bodies.scope_counts", "{semaphore}, which counts {count} where its scope ends")
SCOPE_ENDED = Template("bodies.scope_ended", "{memory}, shared memory of a scope that ends before more is touched")
SEMAPHORE_SET = Template("bodies.semaphore_set", "which semaphores of {name} are meant")
SEMAPHORE_BESIDE_DEVICES = Template(
    "bodies.semaphore_beside_devices", "a semaphore that another kernel has, too, beside other devices"
)
SEMAPHORE_COUNT = Template("bodies.semaphore_count", "what a semaphore counts")
SEMAPHORE_GIVEN = Template(
    "bodies.semaphore_given", "{name}, a semaphore that the kernel is given: what it counts at first"
)
SEMAPHORE_INDEX = Template("bodies.semaphore_index", "which of the semaphores {name} is meant")
SEVERAL_BARRIERS = Template("bodies.several_barriers", "an operation on several barriers at once")
SEVERAL_MESHES = Template("bodies.several_meshes", "kernels on several meshes")
SHIFT = Template("bodies.shift", "a shift by {by}, which is no constant from 0 to {last}")
SIGNAL_AMOUNT = Template("bodies.signal_amount", "how much a semaphore is signalled")
SLICE_STEP = Template("bodies.slice_step", "a Python slice with a step")
SORT_RESULT = Template("bodies.sort_result", "what a sort moves")
STORE_UNKNOWN = Template("bodies.store_unknown", "a number that is stored, or where, is not known")
STORES = Template("bodies.most_stores", "more than {most:,} stores to {name}")
STORE_RESULT = Template("bodies.store_result", "what a store gives")
COUNTER_OUTSIDE_LOOP = Template(
    "bodies.counter_outside_loop", "speaks of {names}, a loop's counter outside of the loop"
)
SWAP = Template("bodies.swap_result", "what a swap gives")
MOST_TERMS = Template("bodies.most_terms", "more than {most} terms in the walk")
THREAD_REACHES = Template("bodies.thread_reaches", "whether a thread reaches line {line}: {held}")
TENSOR_ORDER = Template(
    "bodies.tensor_order",
    "{does} {element}{name} while {meanwhile} it at line {line}: no barrier between them has orders_tensor_core",
)
TENSOR_SCALES = Template("bodies.tensor_scales", "an MMA of scaled or sparse operands")
TILED_MEMORY = Template("bodies.tiled_memory", "memory of the shape {dims} in tiles of {tiling}")
MOST_TOUCHES = Template("bodies.most_touches", "{touches:,} touches of {region}")
TWO_LISTS = Template("bodies.two_lists", "two lists of places of which some are ignored")
UNMODELLED_ATOMIC_STORE = Template("bodies.unmodelled_atomic_store", "an atomic store of a GPU")
UNMODELLED_BARRIER_TEST = Template("bodies.unmodelled_barrier_test", "a barrier that is looked at and not waited for")
UNMODELLED_CACHE_PREFETCH = Template("bodies.unmodelled_cache_prefetch", "a copy into a cache of a GPU")
UNMODELLED_CLUSTER_MEMORY = Template(
    "bodies.unmodelled_cluster_memory", "shared memory of another program of a cluster"
)
UNMODELLED_CONVOLUTION = Template("bodies.unmodelled_convolution", "a convolution")
UNMODELLED_CORES = Template("bodies.unmodelled_cores", "what other cores do meanwhile")
UNMODELLED_DEPENDENT_LAUNCH = Template("bodies.unmodelled_dependent_launch", "another kernel that runs meanwhile")
UNMODELLED_DEVICES = Template("bodies.unmodelled_devices", "what other devices do")
UNMODELLED_GLOBAL_MEMORY = Template("bodies.unmodelled_global_memory", "memory that outlives the kernel")
UNMODELLED_GROUPED_PRODUCT = Template("bodies.unmodelled_grouped_product", "a product of matrices with groups")
UNMODELLED_KERNEL_IN_KERNEL = Template("bodies.unmodelled_kernel_in_kernel", "a call of a kernel in a kernel")
UNMODELLED_MATRIX_UNIT = Template("bodies.unmodelled_matrix_unit", "the matrix unit used directly")
UNMODELLED_MULTI_GPU_MEMORY = Template("bodies.unmodelled_multi_gpu_memory", "memory of several GPUs")
UNMODELLED_MULTI_GPU_SEMAPHORE = Template("bodies.unmodelled_multi_gpu_semaphore", "semaphores of several GPUs")
UNMODELLED_PIPELINE = Template("bodies.unmodelled_pipeline", "a pipeline that is lowered later")
UNMODELLED_PROGRAM_SEMAPHORE = Template("bodies.unmodelled_program_semaphore", "semaphores of several programs")
UNMODELLED_RANDOM_NUMBERS = Template("bodies.unmodelled_random_numbers", "random numbers")
UNMODELLED_SCATTER = Template("bodies.unmodelled_scatter", "places that depend on data")
UNMODELLED_SUBCORE_MEMORY = Template(
    "bodies.unmodelled_subcore_memory",
    "scalar memory of another subcore; write which part is whose by axis_index, and a sum by "
    "sync_copy(.., add=True) into shared memory",
)
UNUSED_RESULTS = Template("bodies.unused_results", "the results of {step} are unused: XLA eliminates it, and its waits")
UNWRITTEN_BEFORE = Template(
    "bodies.unwritten_before", "{does} element {element} of {name}{where}, which nothing has written before"
)
USED_IN_FLIGHT = Template(
    "bodies.used_in_flight", "{name} is used while a copy {way} it is in flight, started at line {line}: {what}"
)
UNITS_ASKED = Template("bodies.units_asked", "work for which several threads ask")
UNITS_AXES = Template("bodies.units_axes", "work that a GPU gives out by a part of its ids")
UNITS_DEPEND = Template("bodies.units_depend", "what is done in shared memory depends on which work a GPU gives out")
UNITS_ELSEWHERE = Template(
    "bodies.units_elsewhere", "global memory that is written outside of the loop over the work that a GPU gives out"
)
UNITS_NAMED = Template("bodies.units_named", "named barriers in a kernel whose work a GPU gives out")
UNITS_LEFT = Template("bodies.units_left", "whether there is more work")
UNITS_LOOP = Template("bodies.units_loop", "work that a GPU gives out, and no loop that goes on while there is more")
UNITS_ORDER = Template("bodies.units_order", "global memory that is written by how much work a program has done before")
UNITS_STEADY = Template("bodies.units_steady", "whether {many:,} pieces of work are like the first ones")
VALUE_AROUND_PIPELINE = Template("bodies.value_around_pipeline", "a value of the body around the pipeline")
VIEW_AS = Template("bodies.view_as", "a view of {dtype} as {other}")
VIEW_OF_PART = Template("bodies.view_of_part", "a view through {kind} of a part")
VIEW_OF_VIEW = Template("bodies.view_of_view", "a view of a view whose shape depends on data")
VIEW_SHAPE_AS = Template("bodies.view_shape_as", "a view of {dtype}{dims} as {other}")
VIEW_THROUGH = Template("bodies.view_through", "a view through {transform}")
VIEW_WIDTH = Template("bodies.view_width", "a view of {reference} as elements of another width")
TOO_FEW_BYTES = Template(
    "bodies.too_few_bytes", "waits for {size} {unit} of {semaphore}, which counts {there}: it never returns"
)
PHASE_OF_TWO_ENDED = Template(
    "bodies.phase_of_two_ended", "waits for a phase of {barrier}, of which two have ended: it may never return"
)
TOO_FEW_SIGNALS = Template(
    "bodies.too_few_signals", "waits for {amount} of {semaphore}, which counts {signals}: it never returns"
)
WAIT_SIZE = Template("bodies.wait_size", "how many bytes are waited for")
MULTICAST_AXES = Template(
    "bodies.multicast_axes", "all devices along {axes}, where the mesh has {mesh}: JAX takes all of its axes alone"
)
MEMORY_ELSEWHERE = Template("bodies.memory_elsewhere", "{reference} of another device, which is no array of the call")
SCOPE_OF_GPU = Template("bodies.scope_of_gpu", "a semaphore of the scope of one GPU, on a mesh of several")
SEMAPHORES_UNORDERED = Template(
    "bodies.semaphores_unordered", "semaphores in global memory in a kernel with unsafe_no_auto_barriers"
)
SEMAPHORES_AND_UNITS = Template(
    "bodies.semaphores_and_units", "semaphores in global memory beside work that the GPU gives out"
)
SEMAPHORES_AND_TENSOR = Template("bodies.semaphores_and_tensor", "semaphores in global memory beside tensor memory")
SEMAPHORE_SCOPES = Template(
    "bodies.semaphore_scopes",
    "semaphores of several scopes, or of a loop: each finds what the last one has left",
)
SEMAPHORE_RIVALS = Template(
    "bodies.semaphore_rivals", "{semaphore}, from which one thread takes and for which another one waits, too"
)
MOST_THREADS = Template("bodies.most_threads", "{count} threads of all devices; {most} are run")
AFTER_THE_END = Template("bodies.after_the_end", "{does} {what} of {device} when all programs there may have ended")
LOOK_AT_THE_END = Template(
    "bodies.look_at_the_end", "let a program of {device} wait for a signal that is sent when this has been done"
)
NOT_ALL_RUN = Template(
    "bodies.not_all_run",
    "perhaps {program} waits for {semaphore} before those that signal it have begun: a device has {count} programs, "
    "and of a GPU of {most} multiprocessors nothing says that more run at once",
)
WAIT_KEEPS = Template("bodies.wait_keeps", "a wait that leaves its semaphore as it is")
WAIT_LEAVES = Template("bodies.wait_leaves", "a wait that leaves a number which is computed")
WAIT_READS = Template("bodies.wait_reads", "a wait for reads alone, in a body that reads what its copies write")
MOST_WAYS = Template("bodies.most_ways", "more than {most} ways through the body")
WARPS_WAIT = Template("bodies.warps_wait", "{barrier}, for which single warps wait and warpgroups too")
WGMMA_SHAPE = Template("bodies.wgmma_shape", "an operand of wgmma whose shape depends on data")
WHILE_IN_FLIGHT = Template("bodies.while_in_flight", "{does} {where} while {moving} it is in flight{since}")
ELEMENT_WIDTH = Template("bodies.element_width", "the width of {dtype}")
WINDOWS_BESIDE_CORES = Template("bodies.windows_beside_cores", "windows of programs, beside other cores")
WRITES_BLOCKS_IN_FLIGHT = Template("bodies.writes_blocks_in_flight", "{where} writes blocks in its place")
WRITES_WHAT_OTHERS_NEED = Template(
    "bodies.writes_what_others_need", "{where} writes in place what others need, which XLA copies before"
)
TRITON_ARGUMENTS = Template(
    "bodies.triton_arguments", "scalar prefetch and scratch of a kernel for Triton, which has none"
)
TRITON_SIZES = Template("bodies.triton_sizes", "{operand} has sizes that are names, and Triton compiles for numbers")
TRITON_BLOCK = Template("bodies.triton_block", "the block of {operand} is of a kind that Triton does not have")
MASK_OF_ELEMENTS = Template("bodies.mask_of_elements", "which elements a mask lets be touched is not known")
INTEGERS_AS_FLOATS = Template(
    "bodies.integers_as_floats", "atomic_{operation} of an array of integers, which JAX lowers as one of floats"
)
CAS_OF_BLOCK = Template(
    "bodies.cas_of_block", "atomic_cas of a part of an array, which JAX does at the start of the array"
)
ATOMIC_FOUND = Template("bodies.atomic_found", "what an atomic operation has found in memory")
VOLATILE_LOAD = Template("bodies.volatile_load", "a volatile load, by which programs may wait for each other")
LIST_AFTER_SLICE = Template(
    "bodies.list_after_slice", "lists of places after a slice, which JAX lowers for Triton in another shape"
)
