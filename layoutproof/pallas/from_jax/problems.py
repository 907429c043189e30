"""What cannot be read of a traced call, and what may be wrong with a function and its arguments."""

from __future__ import annotations

from layoutproof.core.message import Template

ANOTHER_PIPELINE = Template("traced.another_pipeline", "an array that another pipeline moves too")
ARGUMENT = Template("traced.argument", "{rule}; {text!r} is none")
ARRAY_KIND = Template("traced.array_kind", "jax {version} has no arrays of {kind}")
ASSUMPTION_FORM = Template("traced.assumption_form", "an assumption is one line without braces, not {condition}")
RESULT_TYPE = Template("traced.result_type", "{type}{shape} became {other_type}{other_shape}")
BLOCK_DIMENSION = Template("traced.block_dimension", "block dimension {kind}")
BLOCK_RANK = Template("traced.block_rank", "{name} has a block of {block} dimensions for an array of {rank}")
BODY_VALUES = Template("traced.body_values", "values that only the kernel's body has ({error})")
BUFFER_CLASS = Template(
    "traced.buffer_class", "its buffers are of a class of their own, {kind}: what they copy is theirs"
)
BUFFER_KIND = Template("traced.buffer_kind", "a buffer of the kind {kind}")
CALLED_WITH = Template("traced.called_with", "{place} takes ({parameters}) and was given {given}: {error}")
CALLS_UNKNOWN = Template("traced.calls_unknown", "{primitive} calls what no jaxpr says")
CALL_SIZE = Template(
    "traced.call_size", "the call is too large to be run for its numbers: {work:,} elements and products"
)
CANNOT_RUN = Template("traced.cannot_run", "InterpretParams of jax {version} cannot run it: {failed}")
CAPTURED = Template("traced.captured", "a captured value that is not known when tracing")
COMPUTED_AROUND = Template("traced.computed_around", "something that is computed around it")
CORE_MAP = Template("traced.core_map", "a core_map works on references that the code around it holds")
EMPTY_AT = Template("traced.empty_at", "jax.lax.empty at {place}")
FLOAT_LOOP = Template("traced.float_loop", "a loop whose end floats decide")
FUNCTION_FORM = Template(
    "traced.function_form", "a function is written MODULE:FUNCTION or FILE.py:FUNCTION, not {place!r}"
)
GPU_ALIASES = Template("traced.gpu_aliases", "arrays that share a buffer")
GPU_GRID = Template("traced.gpu_grid", "a mesh that is no grid of a GPU")
GPU_MESHES = Template("traced.gpu_meshes", "several meshes or bodies")
GPU_NO_BARRIERS = Template(
    "traced.gpu_no_barriers", "loads and stores that no barrier orders (unsafe_no_auto_barriers)"
)
INDICES_AS_ARGUMENTS = Template("traced.indices_as_arguments", "its indices are given to it as arguments")
INPUT_KIND = Template("traced.input_kind", "a file gives {place} {said}, no {value}")
INPUT_SIZE = Template("traced.input_size", "a file gives {place} more than {most_values:,} values")
JAX_VERSION = Template("traced.jax_version", "jax {version}: Pallas calls are read from jax {known}")
MESH = Template("traced.mesh", "a kernel over a mesh (pl.kernel, pl.core_map): {why}")
MESHES_AT_ONCE = Template(
    "traced.meshes_at_once", "{programs} programs over {meshes} meshes that run at once are not modelled"
)
MESH_KIND = Template("traced.mesh_kind", "its mesh is a {kind}; {known} are modelled; pipelines in it are judged")
MESH_PROBLEM = Template("traced.mesh_problem", "it has {problem}; pipelines in it are judged by themselves")
NEEDS_JAX = Template("traced.needs_jax", "finding Pallas calls needs jax: pip install jax ({error})")
NOT_CALLABLE = Template("traced.not_callable", "{where}:{name} is {found}, which cannot be called")
NOT_IMPORTED = Template("traced.not_imported", "{where} cannot be imported")
NOT_RUN = Template("traced.not_run", "JAX does not run it on the CPU: {error}")
NO_FILE = Template("traced.no_file", "{where} names no file: {error}")
NO_MODULE = Template("traced.no_module", "there is no module {part!r}{whose}; modules are found from {folder}")
NO_MODULE_NAME = Template("traced.no_module_name", "{where!r} is no module's name and no .py file")
NO_SOURCE = Template("traced.no_source", "{where} is no module with a file of Python source")
NULL_BYTE = Template("traced.null_byte", "not Python: a line with a null byte in it")
NUM_PROGRAMS_AROUND = Template(
    "traced.num_programs_around", "num_programs, which here is of the call around the pipeline"
)
ONE_SPEC = Template("traced.one_spec", "{name} has one BlockSpec for {references} references, {kind}")
OTHER_CALLS = Template("traced.other_calls", "the function makes other calls in another process")
PART_OF_ARRAY = Template("traced.part_of_array", "an array of which each run of the pipeline moves a part")
PIPELINE_BODY = Template("traced.pipeline_body", "the body that a pipeline runs ({what})")
PLATFORM = Template("traced.platform", "bodies of kernels for {platform} are not read")
PRIMITIVE_FORM = Template(
    "traced.primitive_form", "{primitive} has a form that jax {version} has and this version does not read"
)
PROGRAMS_OVER = Template("traced.programs_over", "{programs:,} programs over {elements:,} elements")
PROGRAM_ID = Template(
    "traced.program_id", "`pl.program_id`, which is the step that runs, whichever step's block is asked for"
)
PROGRAM_ID_AROUND = Template("traced.program_id_around", "program_id, which here is of the call around the pipeline")
PROGRAM_SIZE = Template(
    "traced.program_size", "the program is too large to be run for its numbers: {work:,} elements and products"
)
RAISED = Template("traced.raised", "it raised {words}")
RAISED_WHILE = Template("traced.raised_while", "{words} (raised while {place} was traced)")
READ_NO_TABLE = Template("traced.read_no_table", "a read of something that is no table")
READ_SLICE = Template("traced.read_slice", "a read of a slice of {table}")
READ_THROUGH = Template("traced.read_through", "a read of {table} through {transform}")
READ_FROM_FILE = Template("traced.read_from_file", "{odd} was read from a file; what JAX traces can be recorded")
RESULTS_DIFFER = Template(
    "traced.results_differ", "results differ by up to {apart:.3g}, where the largest is {largest:.3g}"
)
RUNNING_GPU = Template("traced.running_gpu", "a kernel for a GPU")
RUNNING_GRID = Template("traced.running_grid", "a grid that only the running program knows")
SEMANTICS = Template("traced.semantics", "unknown dimension_semantics {semantics!r}")
SIZE_NAME = Template("traced.size_name", "a size has a name such as M or rows, and jax reads these otherwise: {why}")
SPECS_AND_REFERENCES = Template(
    "traced.specs_and_references", "{specs} specs, and it is called with {references} references"
)
SPEC_STRUCTURE = Template(
    "traced.spec_structure", "its references have not the structure of its {role}_specs ({error})"
)
TARGET = Template("traced.target", "kernels are traced for {chips}, not {target!r}")
TRACED_ALONE = Template("traced.traced_alone", "traced alone it raises {error}: {words}")
TRACING = Template("traced.tracing", "tracing the function raised {error}: {words}{place}{advice}")
VIEW_OF_ARRAY = Template("traced.view_of_array", "a view that the body cut out of an array")
PROCESS_WAITS = Template(
    "traced.process_waits", "it waits and does nothing else, and was ended after {still:g} s of that"
)
WRITTEN_MEMORY = Template("traced.written_memory", "so it is no memory that was never written")
