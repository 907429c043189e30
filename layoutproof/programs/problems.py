"""What is said of programs: which input is wrong, which claim does not hold, and why an answer is unknown."""

from __future__ import annotations

from layoutproof.core.message import Template

ALL_BOUNDS_OPEN = Template("programs.all_bounds_open", "all bounds are open: {why}")
AMOUNT_ABOVE = Template("programs.amount_above", "{what}: {value} {unit}, {over} more than {most}: {parts}")
ARRAYS_WITHOUT_SIZE = Template("programs.arrays_without_size", "{count} arrays have no size: {first}")
AXIS_FORM = Template("programs.axis_form", "an axis of a sweep is written NAME=VALUE,VALUE, not {found!r}")
AXIS_NAME = Template("programs.axis_name", "an axis of a sweep has a name such as B or mesh, not {found!r}")
AXIS_SPLITS_TWO = Template("programs.axis_splits_two", "the axis {axis!r} splits two dimensions")
AXIS_TWICE = Template("programs.axis_twice", "the mesh has the axis {axis!r} twice")
AXIS_WITHOUT_VALUES = Template("programs.axis_without_values", "the axis {name} of the sweep has no values")
BOUND_OPEN = Template("programs.bound_open", "its bound is open")
BUFFERS_KEPT = Template("programs.buffers_kept", "{named}{more} keep{ending} its buffer: {size} beside the results")
BUFFER_ASSIGNMENT = Template("programs.buffer_assignment", "a buffer assignment: a record is made of a module's text")
BUFFER_NOT_TAKEN = Template(
    "programs.buffer_not_taken", "{value} is given away, and the text names no result that takes its buffer"
)
BYTES_ABOVE = Template("programs.bytes_above", "{what}: {value} bytes, {over} more than {most}{blame}")
BYTES_UNKNOWN = Template("programs.bytes_unknown", "{place}: its bytes are unknown")
CALL_NOT_MODELLED = Template("programs.call_not_modelled", "{name} has a call that is not modelled: {reason}")
COMPILER_SILENT = Template("programs.compiler_silent", "{compiler} says nothing of {what}")
COPIES_WITHOUT_BOUND = Template(
    "programs.copies_without_bound", "copies needs at_most, or entry_at_most for those of parameters and results"
)
COUNTS_DIFFER = Template("programs.counts_differ", "{one} has {count} {what}, and {other} {others}")
CPU_MESH_OPEN = Template("programs.cpu_mesh_open", "the CPU has no topology, so each axis of its mesh needs a size")
CUSTOM_CALL_NOT_COUNTED = Template(
    "programs.custom_call_not_counted", "{place}: the work of a custom call of {target} is not counted"
)
CYCLES_FORM = Template("programs.cycles_form", "at_most is a number of cycles, not {found}")
CYCLES_TOO_FEW = Template(
    "programs.cycles_too_few",
    "{cycles:,} cycles are said, and the matrix products alone take {least:,}: it leaves work out",
)
DEVICES_DIFFER = Template("programs.devices_differ", "it is a program of {now} now, and was one of {was}")
DEVICES_DO_NOT_DIVIDE = Template(
    "programs.devices_do_not_divide", "{what}: {devices} devices do not divide a dimension of {size}"
)
DEVICES_NOT_DIVIDED = Template(
    "programs.devices_not_divided", "{others} do not divide the {devices} devices of {topology}"
)
DONATED_FORM = Template("programs.donated_form", "donated are arguments by number, 0 to {last}, not {found}")
ELEMENTS_DIFFER = Template(
    "programs.elements_differ", "{name}{at} is {now}, and was {was}; {different:,} of {elements:,} elements differ"
)
EXPLICIT_AXIS = Template(
    "programs.explicit_axis",
    "an axis of size 1 is named in one of them, on a mesh with Explicit axes: JAX compiles again",
)
EXPORTED_FOR = Template("programs.exported_for", "it was exported for {exported} devices, and there are {devices}")
EXPORT_FORM = Template("programs.export_form", "a file of jax.export holds a program in a form that is not read here")
FLOPS_FORM = Template("programs.flops_form", "at_most is a number of flops, not {found}")
HAS_KERNELS = Template(
    "programs.has_kernels", "it has Pallas kernels, whose values rest on what is asked of their places too"
)
IMPORTED_FROM_HERE = Template(
    "programs.imported_from_here",
    "{module} was imported from the work tree that is here, as an editable installation does: the old code was not "
    "compiled",
)
KERNEL_MISSING = Template("programs.kernel_missing", "{what} is in the program; it has {have}")
KERNEL_NOT_COUNTED = Template(
    "programs.kernel_not_counted", "{place}: the work of kernel {name} is not counted: its source is not at hand"
)
KERNEL_TALKS = Template("programs.kernel_talks", "{place}: the kernel talks to devices itself")
LOCKED_BY_OTHER = Template(
    "programs.locked_by_other", "the values that the lock file has were made by {name} {found}, and this is {ours}"
)
LOCKED_OTHER_VALUES = Template(
    "programs.locked_other_values",
    "its arguments or results have other names, shapes or types than the lock file's values are of",
)
MEMORY_RAN_OUT = Template("programs.memory_ran_out", "memory ran out")
MEMORY_UNKNOWN = Template(
    "programs.memory_unknown", "no point is known to fit: how much memory a device has is not said"
)
MESH_CHANGED = Template("programs.mesh_changed", "its mesh is {now}, and was {was}: it is another program's")
MESH_FORM = Template("programs.mesh_form", "a mesh is written data=2,model=4; {found!r} is no axis")
MESH_NEEDED = Template(
    "programs.mesh_needed", "the topology {topology} has {devices} devices: say how they form a mesh"
)
MESH_OVER_CPU = Template(
    "programs.mesh_over_cpu", "the mesh has {wanted} devices, and this process {devices} of the CPU"
)
MESH_OVER_TOPOLOGY = Template(
    "programs.mesh_over_topology", "the mesh has {wanted} devices, and the topology {topology} has {devices}"
)
MORE_IN_KERNEL = Template(
    "programs.more_in_kernel", "{name} does more than give results, in a kernel that is not read: {kernel}"
)
MORE_THAN_RESULTS = Template(
    "programs.more_than_results", "{name} does more than give results: {instruction} is {opcode}"
)
NOTHING_FITS = Template("programs.nothing_fits", "no point fits")
NOTHING_PRICED = Template("programs.nothing_priced", "{compiler} prices no operation")
NOTHING_SAID = Template("programs.nothing_said", "nothing is said of it")
NOT_ALONG_AXES = Template("programs.not_along_axes", "{what}: not along whole axes of a known mesh")
NOT_COMPARED_WITHOUT = Template(
    "programs.not_compared_without", "values are not compared without {library}: install layoutproof[jax]"
)
NOT_COMPILED = Template("programs.not_compiled", "not compiled: {why}")
NOT_COMPUTED = Template("programs.not_computed", "it is not computed with: {why}")
NOT_IN_TEXT = Template("programs.not_in_text", "{value}: {what} is not in the text")
NOT_LOCKED_VALUES = Template(
    "programs.not_locked_values", "its values are not those of the lock file, and whether that shows is not known"
)
NOT_MEASURED = Template("programs.not_measured", "spelled otherwise, and jax {jax} was not measured")
NOT_REACHED = Template("programs.not_reached", "{side} has {what}, and an input decides it: it was not compared")
NOT_TOGETHER = Template(
    "programs.not_together",
    "point {number} of those that belong together is there twice, or does not say each of: {names}",
)
NO_ARRAY = Template("programs.no_array", "no array of JAX: {kind}")
NO_ARRAY_BACK = Template("programs.no_array_back", "{place} gives back no array, {what}: it is no program")
NO_AXIS = Template("programs.no_axis", "a sweep needs an axis: --sweep B=8,16")
NO_BOUND = Template("programs.no_bound", "no point that fits has a bound on its time: no chip says its rates")
NO_CANDIDATE_COMPILED = Template("programs.no_candidate_compiled", "no candidate was compiled: {problem}")
NO_CHIP = Template("programs.no_chip", "no chip is named, whose rates would be known")
NO_ELEMENT = Template("programs.no_element", "no result has an element, so there is nothing to compare")
NO_ENTRY = Template("programs.no_entry", "no whole module with an ENTRY computation")
NO_EXPORT = Template("programs.no_export", "no exported program of JAX: {error}")
NO_INPUT_OF_BOTH = Template("programs.no_input_of_both", "{names}, so that no input is one of both")
NO_SCHEDULE_OF = Template(
    "programs.no_schedule_of", "the compiler's simulation of its schedule does not know {target}, and aborts"
)
NOT_SCHEDULED = Template("programs.not_scheduled", "{place}: the compiler's schedule says no cycles, of {count} in all")
SCHEDULE_OF_ANOTHER = Template(
    "programs.schedule_of_another", "compiled once more for its schedule it is another program"
)
NO_JAX = Template("programs.no_jax", "no jax (pip install jax)")
NO_KERNEL = Template("programs.no_kernel", "no Pallas kernel is in the program")
NO_KERNEL_READ = Template("programs.no_kernel_read", "no Pallas kernel was read")
NO_MEMORY = Template("programs.no_memory", "no array of the program takes memory")
NO_PARAMETER = Template("programs.no_parameter", "the program has no parameter {number}")
NO_PROGRAM_OF_TEXT = Template("programs.no_program_of_text", "jaxlib makes no program of this text: {error}")
NO_RECORD = Template("programs.no_record", "not the record of a program: {where}: {problem}")
NO_RESULT_IN_PLACE = Template(
    "programs.no_result_in_place", "no result has the buffer of a parameter; say which parameter is passed how (of, as)"
)
NO_REWRITE = Template("programs.no_rewrite", "the program has no rewrite {number}")
NO_ROW = Template("programs.no_row", "no row of a sweep, as --resume writes them")
NO_TOPOLOGY = Template("programs.no_topology", "no topology {topology} of {target}: {error}")
NO_TOPOLOGY_OF_CPU = Template(
    "programs.no_topology_of_cpu", "the CPU has no topology; a mesh alone says how many devices there are"
)
NO_VALUE_OF_BOTH = Template("programs.no_value_of_both", "{names}, so that it is no value of both")
NO_VERSION = Template("programs.no_version", "not the record of a program: it has no version")
NO_WORK = Template("programs.no_work", "the record says nothing of the program's work")
OF_AND_AS = Template(
    "programs.of_and_as", "spelling takes of and as together: a parameter, and the sharding that is passed for it"
)
OF_KERNEL = Template("programs.of_kernel", "{subject}: {question}: {reason}")
ONE_DEVICE = Template("programs.one_device", "the program runs on one device: nothing is on several")
ONE_DIFFERS = Template("programs.one_differs", "{what} {number} of {one} is {found}, and of {other} {wanted}")
ONE_OPEN_SIZE = Template("programs.one_open_size", "one axis of a mesh may have the size {size}, and no more")
ON_ALL_DEVICES = Template("programs.on_all_devices", "on all {devices} devices: {named}{more}")
OTHER_MESH = Template("programs.other_mesh", "another mesh, {mesh} and not {other}: JAX compiles again")
OTHER_MESH_TYPES = Template("programs.other_mesh_types", "another mesh, with {types}: JAX compiles again")
OTHER_NAMES = Template("programs.other_names", "arguments or results have other names, and in their order {reason}")
OTHER_PLACEMENT = Template("programs.other_placement", "another placement: JAX compiles again")
OTHER_RESULTS = Template("programs.other_results", "{names}; of the other results there is no difference")
PADDING = Template(
    "programs.padding",
    "{share:.4g} % of {padded} bytes hold no element; most in {count} of {shape}, {waste} of {size}, first {first}",
)
PART_IN_BRANCH = Template("programs.part_in_branch", "{part} stands in a branch")
PART_UNPRICED = Template("programs.part_unpriced", "not every operation is in the record")
PART_WITHOUT_SIZE = Template("programs.part_without_size", "{part}: its size is not in the text")
RECORD_WITHOUT_KERNELS = Template(
    "programs.record_without_kernels", "a record has no kernels to prove; the compiled text has"
)
REFUSED = Template("programs.refused", "{compiler} refuses it: {words}")
RUNS_UNKNOWN = Template("programs.runs_unknown", "how often a part runs is unknown")
SAME_WHERE_ALL_HOLD_IT = Template(
    "programs.same_where_all_hold_it",
    "where all devices hold the same of each parameter {what}, and where they do not {reason}: the texts do not say "
    "what each holds",
)
SECOND_MODULE = Template("programs.second_module", "a second module: a record is of one program")
SEVERAL_KERNELS = Template("programs.several_kernels", "several kernels have these shapes")
SEVERAL_VALUES = Template(
    "programs.several_values", "{name!r} is {count} parameters or results; write parameter 0 or result 0"
)
SHAPE_DIFFERS = Template("programs.shape_differs", "{value} is {found}, not {wanted}")
SHARDINGS_OF_ARGUMENTS = Template("programs.shardings_of_arguments", "{shardings} shardings for {arguments} arguments")
SHARDING_DIMENSIONS = Template(
    "programs.sharding_dimensions", "{what} has {dimensions} dimensions, and its sharding {found}"
)
SHARDING_FORM = Template("programs.sharding_form", "a sharding is written {example}; {found!r} is none")
SHARDING_KEYS = Template("programs.sharding_keys", "{what} is a dict of {keys}, and its sharding has other keys")
SHARDING_OF_ARRAY = Template("programs.sharding_of_array", "{what} is one array, and its sharding is no P(..)")
SHARDING_PARTS = Template("programs.sharding_parts", "{what} has {parts} parts, and its sharding another number")
SHARE_FORM = Template("programs.share_form", "a share is written 5%, not {found}")
SIDE_NO_PROGRAM = Template("programs.side_no_program", "{name} is not read as a program{at}: {problem}")
SIZE_FORM = Template("programs.size_form", "{name} is a size of an argument, a whole number; {found!r} is none")
SMALLER_NOT_TRIED = Template(
    "programs.smaller_not_tried", "{large}; smaller sizes, which are another compilation, are not tried: {why}"
)
SMALLER_REFUSED = Template(
    "programs.smaller_refused", "{large}; at smaller sizes ({sizes}) the compiler refuses it: {words}"
)
SPEAKS_TO_DEVICES = Template(
    "programs.speaks_to_devices", "it may speak to other devices, of which the simulation has none"
)
SPELLED_OTHERWISE = Template("programs.spelled_otherwise", "{value}, {passed} where the program has {wanted}: {why}")
SPELLED_SLOWLY = Template(
    "programs.spelled_slowly",
    "spelled otherwise: nothing is compiled again, and the first call with it dispatches slowly",
)
SPELLING_UNRECORDED = Template(
    "programs.spelling_unrecorded", "{value}: the record does not say how JAX spells its sharding"
)
TALKS_ITSELF = Template("programs.talks_itself", "{place}: it talks to devices itself")
TEXT_IS_COMPILED = Template(
    "programs.text_is_compiled", "the text is of a compiled program and cannot be compiled again; {give}"
)
TEXT_NOT_READ = Template("programs.text_not_read", "its text is not read: {reason}")
TEXT_NO_PROGRAM = Template("programs.text_no_program", "the compiled text is not read as a program: {problem}")
TEXT_OF_SIDE_TOO_LONG = Template(
    "programs.text_of_side_too_long", "{name} has {characters:,} characters, more than the {most:,} that are read"
)
TEXT_TOO_LONG = Template(
    "programs.text_too_long",
    "the compiled text has {characters:,} characters, more than the {most:,} that are compared",
)
TOO_LARGE = Template("programs.too_large", "it is too large to be computed with: {error}")
TOO_LARGE_TO_WALK = Template("programs.too_large_to_walk", "it is too large to walk over")
TOO_MANY_POINTS = Template("programs.too_many_points", "the sweep has {points:,} points; at most {most:,} are compiled")
TOO_MANY_STEPS = Template("programs.too_many_steps", "a walk takes {steps:,} steps, more than {most:,}")
TOPOLOGY_FORM = Template("programs.topology_form", "a topology is written 2x2 or 2x2x1, not {found!r}")
TRACED_TWICE = Template("programs.traced_twice", "traced twice, it is two programs")
TYPE_CHANGED = Template("programs.type_changed", "parameter {number} is {now} now, and was {was}")
UNKNOWN_AXIS = Template("programs.unknown_axis", "the program's mesh has no axis {axis!r}; its axes are {mesh}")
UNKNOWN_CLAIM = Template("programs.unknown_claim", "no claim about programs is called {kind!r}{near}")
UNKNOWN_COLLECTIVE = Template("programs.unknown_collective", "no collective is called {kind!r}{near}")
UNKNOWN_VALUE = Template("programs.unknown_value", "the program has no parameter or result {name!r}{known}")
VALUE_CHANGED = Template("programs.value_changed", "{name} is {now}, and was {was}")
VALUE_TWICE = Template("programs.value_twice", "the axis {name} of the sweep has {value!r} twice")
VERSION_NEWER = Template("programs.version_newer", "a record of version {found}; this layoutproof reads up to {known}")
VMEM_NOT_IN_TEXT = Template("programs.vmem_not_in_text", "{place}: the text does not say what it takes of VMEM")
