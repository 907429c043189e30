"""What may be wrong with a command line: options that need or exclude each other, and words that cannot be read."""

from __future__ import annotations

from layoutproof.core.message import Template

APPROVAL_OF_UNKNOWN = Template("cli.approval_of_unknown", "a finding that is unknown or bad input cannot be approved")
ARGUMENT_FLAG = Template("cli.argument_flag", "{argument} of {tool} is true or false, not {found}")
ARGUMENT_TYPE = Template("cli.argument_type", "{argument} of {tool} is {expected}, not {found}")
BLAME_WITHOUT_COMPILE_BASE = Template(
    "cli.blame_without_compile_base",
    "--blame needs --compile-base: it compiles both trees, and parts of what lies between",
)
CHECK_WITHOUT_LOCK = Template(
    "cli.check_without_lock", "--check needs --lock: it asks whether layoutproof.lock is what is here"
)
COMPARED_WITH_ITSELF = Template(
    "cli.compared_with_itself", "{function} is compared with itself; --reference says what is right"
)
COMPILATIONS_WITHOUT_BLAME = Template("cli.compilations_without_blame", "--compilations needs --blame")
COMPILER_WITHOUT_TARGET = Template("cli.compiler_without_target", "--compiler needs --target")
COMPILE_BASE_WITHOUT_AGAINST = Template("cli.compile_base_without_against", "--compile-base needs --against")
COMPILE_WITHOUT_TARGET = Template("cli.compile_without_target", "--compile needs --target, once or several times")
COORDINATE_TWICE = Template("cli.coordinate_twice", "{name} is there twice")
DIFF_WITHOUT_FIX = Template("cli.diff_without_fix", "--diff shows what --fix found; give both")
DUMP_WITH_ARGUMENTS = Template(
    "cli.dump_with_arguments", "--arg, --kwarg, --target and --libtpu are for a function; a dump is compiled already"
)
DUMP_WITH_SAME = Template("cli.dump_with_same", "--same is for a function; a dump does not say what it was made of")
DUMP_WITH_SWEEP = Template("cli.dump_with_sweep", "{option} is for a function; a dump is compiled already")
DUMP_WITH_TRY = Template(
    "cli.dump_with_try", "--try is for a function; of a dump `layoutproof hlo FILE --try --target NAME` tells"
)
FACTS_WITH_LAYOUTS = Template(
    "cli.facts_with_layouts", "--facts is about compilers: it takes no layouts, sources or random cases"
)
FILE_WITH_ARGUMENTS = Template(
    "cli.file_with_arguments", "--arg, --args and --kwarg are for a function; a file has its arguments in it"
)
FILE_WITH_COMPILE = Template("cli.file_with_compile", "--compile is for a function; a file and --spec compile nothing")
FILE_WITH_FIX = Template("cli.file_with_fix", "--fix is for a function; a file and --spec have no source to edit")
FILE_WITH_RECORD = Template("cli.file_with_record", "--record is for a function: what JAX traces is recorded")
FILE_WITH_REPLAY = Template("cli.file_with_replay", "--replay runs a function's kernels; a file and --spec run nothing")
FIX_WITH_INPUTS = Template(
    "cli.fix_with_inputs", "--fix is for arguments that are given, and compares all outputs at their sizes"
)
FOLDER_DELETED = Template(
    "cli.folder_deleted", "the working folder was deleted: change to one that is there (cd), and ask again"
)
FUNCTION_WITH_NO_TRACE = Template("cli.function_with_no_trace", "a function is traced; --no-trace is for files")
GATE_STATES = Template(
    "cli.gate_states", "give OLD NEW, or --against REF [PATHS], or nothing to compare with layoutproof.lock"
)
GUARD_NO_CALL = Template(
    "cli.guard_no_call", "no Pallas call was traced in this block; a jit cache may hold it; there is nothing to prove"
)
GUARD_ON = Template("cli.guard_on", "on is 'raise' or 'warn', not {found!r}")
GUARD_WITHOUT_JAX = Template(
    "cli.guard_without_jax", "a guard checks what JAX traces, and jax is not installed: pip install jax"
)
HOST_NOT_LOOPBACK = Template(
    "cli.host_not_loopback",
    "whoever reaches the server runs code as you, so it is served on 127.0.0.1 only, not on {host!r}; from "
    "elsewhere, forward the port by ssh -L",
)
INDEX_FORM = Template("cli.index_form", "{what} is written 2,3; {found!r} is not a whole number")
INDEX_OR_PLACE = Template(
    "cli.index_or_place", "give an INDEX such as 2,3 or a place such as --at offset=17, and not both"
)
INIT_OVER_FILE = Template("cli.init_over_file", "{file} is there already; --init writes no file over another")
INPUTS_WITH_ARGUMENTS = Template(
    "cli.inputs_with_arguments", "--inputs makes the arguments; --arg and --args are not given beside it"
)
INTERNAL_ERROR = Template("cli.internal_error", "this is a bug in layoutproof, please report it: {what}")
KEYWORD_ARGUMENT_FORM = Template("cli.keyword_argument_form", "a keyword argument is written name=value, not {found!r}")
KWARG_FORM = Template("cli.kwarg_form", "--kwarg is written NAME=VALUE")
LEAST_PROVED_FORM = Template(
    "cli.least_proved_form", "--layoutproof-least-proved is a share such as 90%, not {found!r}"
)
LIBTPUS_WITH_AGAINST = Template(
    "cli.libtpus_with_against", "two --libtpu are compared with each other, on PATHS; one compiles what is compared"
)
LIBTPU_WITHOUT_FACTS = Template(
    "cli.libtpu_without_facts", "--libtpu goes with --facts; for sources set TPU_LIBRARY_PATH={libtpu}"
)
LOCK_WITH_AGAINST = Template(
    "cli.lock_with_against", "--lock is about what is here: it takes neither --against nor --libtpu"
)
MARK_COMPARES_NOTHING = Template(
    "cli.mark_compares_nothing",
    "the mark says same_as, and the test traced no function with a Pallas call, so nothing is compared",
)
MARK_KEYWORDS = Template(
    "cli.mark_keywords", "the mark layoutproof takes expect=.., assume=.. and same_as=.., not {found}"
)
MARK_NOT_REFUTED = Template("cli.mark_not_refuted", "the mark expects {property} to be refuted, and it is not")
MARK_SAME_AS = Template(
    "cli.mark_same_as", "same_as of the mark layoutproof is a function, or its place MODULE:FUNCTION, not {found!r}"
)
MARK_TEXTS = Template("cli.mark_texts", "{name} of the mark layoutproof is a text, or a list of texts, not {found!r}")
NAME_VALUE_FORM = Template("cli.name_value_form", "written name=value, not {found!r}")
NAME_VALUE_ONCE = Template("cli.name_value_once", "{option} takes NAME=VALUE, each name once; not {found!r}")
NOTHING_TO_COMPARE = Template(
    "cli.nothing_to_compare",
    "nothing to compare with: give OLD NEW or --against REF, or write layoutproof.lock with --lock",
)
NOTHING_TO_LOCK = Template("cli.nothing_to_lock", "no spec file or HLO dump in {paths}: nothing to lock")
ONLY_GATE_WITHOUT_AGAINST = Template("cli.only_gate_without_against", "--only gate needs --against")
OPTION_WITHOUT_SWEEP = Template("cli.option_without_sweep", "{option} is for a sweep: --sweep NAME=VALUES")
PLACE_FORM = Template("cli.place_form", "a place is written offset=17 or lane=5 reg=2; {found!r} is not")
PORT_FORM = Template("cli.port_form", "--http takes the number of a port, such as 8765, not {found!r}")
PROBLEM_MISSING = Template(
    "cli.problem_missing", "name a search file, a ready kernel or MODULE:FUNCTION; --init writes a file"
)
PROVED_TOO_FEW = Template(
    "cli.proved_too_few", "{proved} of {calls} calls are proved, less than --layoutproof-least-proved {least:g}%"
)
PRUNE_WITH_PARETO = Template(
    "cli.prune_with_pareto", "--prune judges candidates that are given; it goes with --json, --keep and --within only"
)
PYTEST_OPTION_WITHOUT_LAYOUTPROOF = Template(
    "cli.pytest_option_without_layoutproof", "--layoutproof-{option} needs --layoutproof"
)
PYTEST_WITHOUT_FROM_TESTS = Template("cli.pytest_without_from_tests", "--pytest needs --from-tests")
REPORT_FORM = Template("cli.report_form", "write FORM=FILE, e.g. html=report.html, not {found!r}")
SCHEDULER_WITHOUT_BACKEND = Template("cli.scheduler_without_backend", "--scheduler needs --backend")
SERVE_WITHOUT_MCP = Template(
    "cli.serve_without_mcp", "serving needs the MCP SDK, version 2 or later: pip install 'mcp>=2,<3'"
)
SHARD_WITH_SHARE = Template(
    "cli.shard_with_share", "a share and a baseline are of all claims; --shard asks some of them"
)
SIZE_FORM = Template("cli.size_form", "a size is a whole number of at least 1, not {found}")
SPEC_WITH_ASSUME = Template(
    "cli.spec_with_assume", "--assume is for traced and compiled calls; a spec file says what its tables hold"
)
SWEEP_AXIS_TWICE = Template("cli.sweep_axis_twice", "the sweep has the axis {axis!r} twice")
SWEEP_WITH_TRY = Template(
    "cli.sweep_with_try", "a sweep takes none of --try, --same and --schedule, and other compilers as --sweep libtpu=.."
)
TARGET_OF_BARE_SHAPE = Template(
    "cli.target_of_bare_shape", "--target gives a bare shape such as f32[1000,5] its layout; {found} is not one"
)
TRY_WITHOUT_COMPILE = Template("cli.try_without_compile", "--try needs --compile")
UNKNOWN_FINGERPRINT = Template(
    "cli.unknown_fingerprint", "no finding has the fingerprint {fingerprint}; there are {known}"
)
