"""What may be wrong with a Pallas call, and why a question about one is open."""

from __future__ import annotations

from layoutproof.core.message import Template

ABOUT_KERNEL = Template(
    "pallas.about_kernel",
    "{asked} is about a kernel, {{'kernel': {{grid: .., inputs: .., outputs: ..}}}}, not about {read}",
)
ACCEPT_REASON = Template("pallas.accept_reason", "accept[{name}] gives no reason: write it behind the bracket")
DEPENDS_ON = Template("pallas.depends_on", "{what} depends on {lost}")
INDEX_MAP = Template("pallas.index_map", "its index map has {error}")
INDEX_MAP_RESULTS = Template("pallas.index_map_results", "{results} results for {dimensions} dimensions")
JUDGED_ALONE = Template("pallas.judged_alone", "what it does alone is wrong, or not known")
BARRIER_SEMAPHORE = Template(
    "pallas.barrier_semaphore", "{hint}; or the barrier semaphore: {next} with the same collective_id {collective}"
)
BASELINE = Template("pallas.baseline", "{path} is no baseline: {problem}")
BASELINE_FORM = Template("pallas.baseline_form", '{path} is no baseline: it has {{"version": 2, "accepted": {{..}}}}')
BLOCK_INDEX = Template(
    "pallas.block_index", "{operand} dimension {dimension} at program {program}: block index {value}"
)
BODY_AROUND = Template("pallas.body_around", "{start}the body around the pipeline is, where it is written out")
BODY_UNREAD = Template("pallas.body_unread", "what the body does: {unread}; {less_asked}")
CONDITION_SIZES = Template("pallas.condition_sizes", "no call has all sizes that the condition speaks of; {have}")
DEPENDS = Template("pallas.depends", "depends on {tables}")
DEVICES_DEPEND = Template("pallas.devices_depend", "what devices do depends on {reason}")
DEVICES_NEXT = Template("pallas.devices_next", "what devices do where {next} depends on {reason}")
DEVICE_WAITS = Template("pallas.device_waits", "a device waits for ever: see device_waits")
ELEMENT_PADDING = Template(
    "pallas.element_padding", "the interpreter leaves out the padding of Element windows (BUGS-FOUND.md)"
)
ENDED = Template("pallas.ended", "it ended, and showed nothing")
ENTRIES = Template("pallas.entries", "it has {entries} entries and {values} values")
EVERY_RING = Template(
    "pallas.every_ring", "every ring of {least} devices or more, where each does what it does on this one"
)
FIX_CLAMP = Template("pallas.fix_clamp", "clamp {which}{line} to {ends}{call}")
FIX_GUARD = Template("pallas.fix_guard", "put it{line} under pl.when({condition})")
FIX_LAST_TURN = Template(
    "pallas.fix_last_turn", "let the loop{at} run {turns} times, and not {said}: its last turn is outside"
)
FIX_MASK = Template(
    "pallas.fix_mask", "x = jnp.where({inside}, x, 0) on what is loaded of {operand}, before it is used"
)
FIX_MASK_PART = Template(
    "pallas.fix_mask_part",
    "x = jnp.where({inside}, x, 0) on what is loaded of {operand}, before it is used, where at is its place in "
    "dimension {axis} of the window",
)
FIX_MOD = Template(
    "pallas.fix_mod", "use jnp.mod in place of lax.rem for {which}{line}: lax.rem has the sign of what is divided"
)
FIX_NO_WAIT = Template("pallas.fix_no_wait", "wait for what line {lines} starts, {when}: nothing waits on {semaphore}")
FIX_READ = Template("pallas.fix_read", "read {name} at line {line} where line {stored} stores it")
FIX_REMAINDER = Template(
    "pallas.fix_remainder", "let {which}{line} be a remainder by {by}, and not by {said}, wherever it is used"
)
FIX_SHIFT = Template("pallas.fix_shift", "let {which}{line} be {new}, and not {said}: it is {by} too {large}")
FIX_SLOT = Template(
    "pallas.fix_slot",
    "read {name} at line {line} where line {stored} stores it: index {index} in dimension {dimension}, and not {said}",
)
FIX_STARTED = Template(
    "pallas.fix_started", "let what line {lines} starts be started under pl.when({condition}), and not under {said}"
)
FIX_SWAP = Template("pallas.fix_swap", "swap the indices of {reference}{at}: {reference}[{indices}]")
FIX_TAKE = Template("pallas.fix_take", "take {by} {off} {which}{line}: it is {by} too {large}")
FIX_TURNS = Template(
    "pallas.fix_turns", "let the loop{at} run {needed} times, and not {turns}: it does not store all of {reference}"
)
FIX_WAIT = Template("pallas.fix_wait", "let the wait at line {line}{under} come before line {before}")
FIX_ZEROS = Template("pallas.fix_zeros", "store zeros to {reference} before it is read")
FIX_ZEROS_FIRST = Template(
    "pallas.fix_zeros_first", "store zeros to {reference} before it is read, under pl.when({condition})"
)
FOREIGN = Template("pallas.foreign", "the kernel is for {platform}, and {target} knows kernels for {chip_platform}")
LOOK_AT_PARTS = Template("pallas.look_at_parts", "look at the loop that reads them: there are {parts}")
MASKED_LOAD = Template("pallas.masked_load", "a load of some elements alone, beside other threads: not modelled")
MASKS_OTHER = Template(
    "pallas.masks_other", "line {line} masks dimension {dimensions}, and the padding is in dimension {dimension}"
)
MASK_KEEPS = Template("pallas.mask_keeps", "the mask at line {line} keeps place {keeps} of dimension {dimension}")
MASK_KEEPS_ONE = Template(
    "pallas.mask_keeps_one",
    "the mask at line {line} keeps place {keeps} of dimension {dimension}, and leaves out place {place}, which "
    "is there",
)
MASK_LEAVES_OUT = Template(
    "pallas.mask_leaves_out", "line {line} leaves out place {place} of dimension {dimension}, which is there"
)
NEEDS_TARGET = Template("pallas.needs_target", "{name} is about a hardware target; give one: {known}")
NOTHING_ASKED = Template("pallas.nothing_asked", "there is nothing in it to ask about")
NOTHING_ASSUMED = Template("pallas.nothing_assumed", "depends on what {tables} holds; nothing is assumed of it")
NOTHING_OF_IT = Template("pallas.nothing_of_it", "there is nothing in the kernel that it asks about")
NOTHING_OF_IT_SEEN = Template("pallas.nothing_of_it_seen", "nothing of it; {blind}")
NOT_MODELLED = Template("pallas.not_modelled", "the call is not modelled")
NOT_READ = Template("pallas.not_read", "it was not read")
NOT_SENT = Template("pallas.not_sent", "the function cannot be sent to another process ({why})")
NO_BITS = Template("pallas.no_bits", "how many bits an element of {dtype} has")
NO_RECORD = Template("pallas.no_record", "{file} holds no record of a Pallas call")
NO_REPLAY = Template(
    "pallas.no_replay", "no replay shows an undefined element, and no invariant that was tried excludes one"
)
NO_SAMPLES = Template("pallas.no_samples", "no samples are given: nothing can be seen of the tables")
NO_SIGN = Template("pallas.no_sign", "no sign of a run speaks of this question")
NO_SPEC = Template("pallas.no_spec", "{call} ({source}) cannot be written as a spec: {why}")
OPERATION_ON_TABLE = Template("pallas.operation_on_table", "the operation {name} on a whole table")
OPERAND_VIEW = Template("pallas.wgmma_tiles_no_view", "an operand through a view that is no slice and no transposition")
OTHERS_WRITE = Template("pallas.others_write", "others may write {reference}")
OVERRULED = Template(
    "pallas.overruled",
    "{names} proved by {by}, and a run shows otherwise: {sign}; one of us is wrong: the proof, JAX's "
    "interpreter, or what is assumed of a table",
)
READS_STORED = Template("pallas.reads_stored", "{what}; it reads {table}, and {stored}")
READ_AS_TPU = Template(
    "pallas.read_as_tpu", "it was read as a TPU runs it; bodies of kernels for {platform} are not read"
)
RECORD_EXTENT = Template("pallas.record_extent", "an extent that is no size")
RECORD_FIELD = Template("pallas.record_field", "a {kind} has no {field}")
RECORD_FORM = Template("pallas.record_form", "{place}: a record of form {form}, and this reads {known}")
RECORD_LENGTHS = Template("pallas.record_lengths", "its dimensions, blocks and index maps are of different lengths")
RECORD_NAME = Template("pallas.record_name", "a memory, or what a grid dimension may be, of another name")
RECORD_OPERAND = Template("pallas.record_operand", "an operand without a role or an element type")
RECORD_READ = Template("pallas.record_read", "{place}: no record of a Pallas call: {why}")
RECORD_TABLE = Template("pallas.record_table", "what is assumed of a table that the call does not have")
RECORD_TERM = Template("pallas.record_term", "{data} is no term")
REFUTED_IF = Template("pallas.refuted_if", "refuted if {tables}")
TABLE_RELATIONS = Template(
    "pallas.table_relations", "depends on what {names} holds, which may not be all that is assumed"
)
RING_SIZE = Template("pallas.ring_size", "not on one of {size} devices: {what}{more}")
ROWS_UNWRITTEN = Template("pallas.rows_unwritten", "no program writes {operand}[{rows}]")
KNOWN_AT_RUN_TIME = Template("pallas.known_at_run_time", "depends on {runtime}, known at run time only; {advice}")
RUN_AROUND = Template("pallas.run_around", "a pipeline runs in the kernel around it")
RUN_BYTES = Template("pallas.run_bytes", "{size:,} MiB of arguments, results and scratch; at most {most} MiB are run")
RUN_ENTRIES = Template("pallas.run_entries", "a table of more than {most:,} entries")
RUN_NUMBERS = Template("pallas.run_numbers", "{names} is no number; give it arguments of some")
RUN_PLATFORM = Template("pallas.run_platform", "a kernel for {platform}")
RUN_PROGRAMS = Template("pallas.run_programs", "{programs:,} programs; at most {most:,} are run")
RUN_SAID = Template("pallas.run_said", "{said}{held}, in InterpretParams of jax {jax}")
RUN_SHOWS = Template("pallas.run_shows", "proved by {engine}, and a run shows otherwise: {against}")
RUN_SIZES = Template("pallas.run_sizes", "sizes that only the running program knows")
RUN_SUBCORES = Template(
    "pallas.run_subcores", "a kernel of SparseCores, whose subcores and lists of places the interpreter does not have"
)
RUN_TABLES = Template("pallas.run_tables", "no table holds what is assumed")
SAMPLE_BREAKS = Template("pallas.sample_breaks", "sample {number} breaks it: {tables}")
SAMPLE_NAMES = Template("pallas.sample_names", "{names} names are given for {tables} tables")
SEGMENT_EMPTY = Template("pallas.segment_empty", "{rows} where {group}no entry of {table} is {value}, as in {tables}")
SPEC_BODY = Template("pallas.spec_body", "what its body loads and stores, which this target's rules ask about")
SPEC_SIZES = Template("pallas.spec_sizes", "sizes that only the running program has: {sizes}")
FIRST_ELEMENT = Template("pallas.first_element", "the {which} in dimension {dimension} of {name}")
STORED_OUTSIDE = Template("pallas.stored_outside", "{where}, and the array has {extent}, in blocks of {size}")
STORED_TABLE = Template("pallas.stored_table", "depends on what {table} holds in each program: {stored}")
STORED_TABLE_HOLDS = Template(
    "pallas.stored_table_holds", "depends on what {table} holds in each program: {stored}, and {holds}"
)
STORES_TO_IT = Template("pallas.stores_to_it", "the body stores to it{at}")
STORE_KEEPS = Template("pallas.store_keeps", "it is not shown that every store keeps '{said}'")
TABLES_HOLD = Template("pallas.tables_hold", "depends on what {tables} holds; {what}")
TABLES_LONG = Template("pallas.tables_long", "{what}: more than {most} entries")
TABLES_TOGETHER = Template("pallas.tables_together", "cannot tell whether {names} can be as assumed together")
TABLE_EMPTY = Template("pallas.table_empty", "{table} has no value it could hold: {low} <= {table} < {high}")
TABLE_INJECTIVE = Template("pallas.table_injective", "{table} cannot be injective: {counts}")
TABLE_ONTO = Template("pallas.table_onto", "{table} cannot be onto: {counts}")
TABLE_SUM = Template(
    "pallas.table_sum", "sum({table}) cannot be at most {total}: it has {entries} entries of at least {low}"
)
TABLE_TYPE = Template("pallas.table_type", "{name} holds {type}, and tables hold integers")
THREADS_DEPEND = Template("pallas.threads_depend", "what threads do depends on {reason}")
THREADS_UNWRITTEN = Template("pallas.threads_unwritten", "what threads read may not have been written: see initialised")
UNREAD_ELEMENT = Template("pallas.unread_element", "no program reads {operand}{element}")
UNREAD_TAIL = Template(
    "pallas.unread_tail", "no program reads {tail}, what is left behind its {parts} whole parts of {step}"
)
VACUOUS = Template("pallas.vacuous", "vacuous: there is no program, or no element")
VACUOUS_ENTRY = Template(
    "pallas.vacuous_entry", "vacuous: {entry} has no value that it could hold: {low} <= {entry} < {high}"
)
VACUOUS_ONTO = Template("pallas.vacuous_onto", "vacuous: no sizes are known for which {table}[:{first}] is onto")
VACUOUS_TOGETHER = Template("pallas.vacuous_together", "vacuous: no {names} are known that are as assumed together")
NEXT_PLACE = Template("pallas.next_place", "{what}, where {next}")
