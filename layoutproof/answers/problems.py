"""What may be wrong with what a public function is asked."""

from __future__ import annotations

from layoutproof.core.message import Template

ARGUMENTS_OF_FILE = Template("answers.arguments_of_file", "arguments are for a function; {file} has them in it")
ASSUMPTIONS_OF_FILE = Template(
    "answers.assumptions_of_file",
    "assumptions are for traced and compiled calls; a spec file says what its tables hold",
)
BASELINE_OF_SHARD = Template(
    "answers.baseline_of_shard", "a baseline is written of all claims; a shard has some of them"
)
BASE_WITHOUT_REVISION = Template("answers.base_without_revision", "the base to compile is a git revision: give against")
BLAME_WITHOUT_BASE = Template(
    "answers.blame_without_base", "which hunk is to blame is told by compiling: give against and compile_base"
)
CALL_DOES_NOT_FIT = Template("answers.call_does_not_fit", "{name}{signature} was given {given}: {error}")
CHANGED_SINCE = Template("answers.changed_since", "the file has changed since the edit was judged")
CHIP_NOT_SAID = Template(
    "answers.chip_not_said",
    "a dump does not say for which chip it is to be compiled: say --target v5e, or another, or cpu",
)
COMPILED_ALREADY = Template(
    "answers.compiled_already",
    "what is compiled already is not compiled again: give the function, package.module:function",
)
COMPILED_WITHOUT_FUNCTION = Template(
    "answers.compiled_without_function",
    "a function is compiled, MODULE:FUNCTION or FILE.py:FUNCTION; {file} is a file without one",
)
COMPILER_WITHOUT_TARGET = Template(
    "answers.compiler_without_target", "the compiler is asked for a target: give one TPU generation or several"
)
FOLDER_TYPE = Template("answers.folder_type", "a folder is named by its path, not {found}")
FUNCTION_TYPE = Template("answers.function_type", "a function, or MODULE:FUNCTION; not {found}")
HLO_TYPE = Template("answers.hlo_type", "HLO is a dump's path, its text, or a compiled program, not {found}")
INSIDE_REPOSITORY = Template("answers.inside_repository", "{folder} is inside of the repository {above}; run it there")
LOCK_FOR_KERNELS = Template(
    "answers.lock_for_kernels",
    "once specs names kernels, {command} records what they are in layoutproof.lock: commit it, and the gate compares "
    "each change with it",
)
LOCK_WITH_STATES = Template(
    "answers.lock_with_states", "the lock that is checked is the one that is here: give paths, or nothing"
)
MESSAGE_TYPE = Template("answers.message_type", "a message is pasted as text, not {found}")
NESTED_PROBLEM = Template("answers.nested_problem", "a problem that is nested too deeply, or holds itself")
NOTHING_TO_COMPARE = Template(
    "answers.nothing_to_compare",
    "nothing to compare: name spec files, dumps, kernels or layouts, or ask for --random N",
)
NOT_A_BASELINE = Template(
    "answers.not_a_baseline", "{place}: no baseline of layoutproof ci; write it anew with --write-baseline"
)
NOT_COMPILED_SHARDINGS = Template(
    "answers.not_compiled_shardings",
    "{left} of {covered} assignments: they cost no less by the search, or it excludes them; --best N compiles more",
)
NOT_FOR = Template("answers.not_for", "{name} is for {whose}")
NOT_UTF_8 = Template("answers.not_utf_8", "not UTF-8: {why}")
NOT_WHOLE_NUMBERS = Template("answers.not_whole_numbers", "whole numbers, not {found}")
NOT_WRITTEN = Template("answers.not_written", "{path}: cannot be written ({why}); nothing was written")
NO_BASELINE = Template("answers.no_baseline", "{name}: no such file; write it with --write-baseline {name}")
NO_DUMP_HERE = Template(
    "answers.no_dump_here", "{path}: no HLO dump here: no .txt or .hlo file has a line that starts with HloModule"
)
NO_LOCK = Template("answers.no_lock", "there is no {name} here; write it with: {command}")
NO_PARAMETERS = Template(
    "answers.no_parameters", 'parameters say what a configuration consists of: {{"block_m": [128, 256, 512]}}'
)
NO_PYTEST = Template(
    "answers.no_pytest", "the tests are run by pytest, which this Python does not have: pip install pytest"
)
NO_SHARDING_FITS = Template(
    "answers.no_sharding_fits", "of {count} that were compiled none fits; {left} assignments are not compiled"
)
NO_SHARDING_FOUND = Template("answers.no_sharding_found", "the search has no assignment to compile")
NUMBERS_NOT_COMPARED = Template(
    "answers.numbers_not_compared",
    "the numbers are compared with nothing: layoutproof same FUNCTION --reference FUNCTION compares them",
)
NUMBER = Template("answers.number", "{name} is a whole number of at least {least}, not {found}")
ONLY = Template("answers.only", "only is {grid!r}, or nothing for everything; not {found!r}")
PARAMETER_TWICE = Template("answers.parameter_twice", "{names}: a parameter, and an argument that is given too")
PEAK_NOT_SAID = Template("answers.peak_not_said", "the compiler does not say how much memory the program takes")
PROBLEM_TYPE = Template("answers.problem_type", "a problem is a file, a text or a mapping, not {found}")
PROBLEM_VALUE = Template("answers.problem_value", "a problem holds numbers, texts, lists and mappings, not {found}")
PROGRAM_OF_NO_ARRAY = Template(
    "answers.program_of_no_array", "args and out of the program name none of the arrays that the mesh cuts: {arrays}"
)
PROGRAM_TYPE = Template("answers.program_type", "a program is a place, a dump, or compiled, not {found}")
PRUNE_TYPE = Template("answers.prune_type", "prune is the path of a JSON file, not {found}")
REFERENCE_BY_NAME = Template(
    "answers.reference_by_name", "with a reference both functions are called with arguments in order, and none by name"
)
RUN_WITHOUT_FUNCTION = Template(
    "answers.run_without_function",
    "a function is run, MODULE:FUNCTION or FILE.py:FUNCTION; {file} is a file without one",
)
SEVERAL_TARGETS = Template(
    "answers.several_targets", "several targets are for the compiler; the rules are asked of one at a time"
)
SHARD_FORM = Template("answers.shard_form", "a shard is written 2/8, the second of eight, not {found!r}")
SHARE_FORM = Template("answers.share_form", "a share is written 90% or 99.5%, not {found!r}")
SHARE_OF_SHARD = Template("answers.share_of_shard", "a share is asked of all claims, and a shard has some of them")
SPECS_TYPE = Template("answers.specs_type", "spec files are named by paths, not {found}")
STATES_OR_REVISION = Template(
    "answers.states_or_revision",
    "give two states, or a revision to compare paths with, or nothing to compare with the lock",
)
THERE_ALREADY = Template(
    "answers.there_already", "{file}: it is there already, and is not replaced; name another file by --write"
)
TWO_LIBTPU = Template(
    "answers.two_libtpu", "two libtpu are compared with each other, and one compiles what is compared"
)
VALUES_FORM = Template("answers.values_form", "a list, a range, or from, to and multiple_of; not {found}")
VERSION_WITHOUT_TARGET = Template("answers.version_without_target", "a compiler's version needs a target")
