"""What may be wrong with a spec file, and how an answer is not what the file states."""

from __future__ import annotations

from layoutproof.core.message import Template

ALIAS_CYCLE = Template("specs.alias_cycle", "the alias *{name} stands inside what it names")
ARGUMENTS_DIFFER = Template(
    "specs.arguments_differ", "{function} and {reference} are compared on the same arguments, and each states others"
)
CALLS_OF_FUNCTION = Template("specs.calls_of_function", "{function} makes {count}: {listed}")
CALL_NOT_MODELLED = Template("specs.call_not_modelled", "{call} ({source}) is not modelled: {reason}")
CHARACTER = Template("specs.character", "the character {character!a} is not allowed in YAML")
CHECKS_EMPTY = Template("specs.checks_empty", "'checks' is empty; there is nothing to prove")
COMPARED_WITH_ITSELF = Template(
    "specs.compared_with_itself", "{function} is compared with itself; there is nothing to prove"
)
CONTENTS_DIFFER = Template("specs.contents_differ", "{place} there is {found}, not {expected}")
COORDINATE_TYPE = Template("specs.coordinate_type", "{name!r} is a coordinate, a whole number; found {found}")
COUNTEREXAMPLE_DIFFERS = Template(
    "specs.counterexample_differs", "the smallest counterexample is {found}, not {expected}"
)
COUNTEREXAMPLE_WITHOUT_REFUTED = Template(
    "specs.counterexample_without_refuted", "a counterexample belongs to 'expect: refuted', not to {expect!r}"
)
COUNT_DIFFERS = Template("specs.count_differs", "{place} there are {found} elements, not {expected}")
DEFAULT_DIFFERS = Template("specs.default_differs", "on {target} the default is {found}, not {expected}")
DEPTH = Template("specs.depth", "nested more than {most} deep")
DIMENSIONS_WITHOUT_PADDING = Template("specs.dimensions_without_padding", "'dimensions' belongs to 'is: padding'")
DUPLICATE_KEY = Template("specs.duplicate_key", "duplicate key {key!r}; first on line {line}")
ERROR_DIFFERS = Template("specs.error_differs", "the error is {found!r}, and {expected!r} is not in it")
EXPECTED = Template("specs.expected", "expected {wanted}; found {found}")
EXPONENT_UNBOUNDED = Template("specs.exponent_unbounded", "{place}: nothing shows that the exponent is at most 0")
FACT_NEEDS_ONE_CALL = Template("specs.fact_needs_one_call", "a fact is about one call; {calls}")
FIGURE_DIFFERS = Template("specs.figure_differs", "{name} is {found}, not {expected}")
FILE_WITHOUT_CHECKS = Template(
    "specs.file_without_checks",
    "no checks; there is nothing to prove: the gate compares its layouts and kernels, and that is all",
)
FLAG_NAMES_FILE = Template(
    "specs.flag_names_file",
    "an option of the compiler in a file names no other file: {name}={value}; give it on the command line, "
    "layoutproof compile --flag",
)
GATE_CLAIM_EXPECTATION = Template(
    "specs.gate_claim_expectation", "the gate says what came of it, so it takes no 'expect', 'reason' or 'figures'"
)
KERNEL_NAME = Template("specs.kernel_name", "{name!r} is no name: letters, digits, '_', '.' and '-' only")
KERNEL_NAME_TAKEN = Template("specs.kernel_name_taken", "{name!r} is named among the layouts too")
KEY_MISSING = Template("specs.key_missing", "{key!r} is missing")
KEY_TYPE = Template("specs.key_type", "a key must be text, not {found}; quote it if it is meant")
KNOWN_KEYS = Template("specs.known_keys", "; the keys here are {known}")
LAYOUT_CYCLE = Template("specs.layout_cycle", "{name} is made of itself")
LAYOUT_FORM = Template(
    "specs.layout_form", 'expected a layout\'s name, a text such as "{example}", or {{language: ..}}; found {found}'
)
LAYOUT_NAME = Template("specs.layout_name", "{name!r} cannot name a layout: letters, digits, '_', '.' and '-' only")
LAYOUT_UNREADABLE = Template("specs.layout_unreadable", "the layout {name!r} cannot be read")
LAYOUT_VALID = Template("specs.layout_valid", "it is valid, and means {layout}")
LIBTPU_NAMED_BY_FILE = Template(
    "specs.libtpu_named_by_file",
    "{not_traced}the libtpu at {libtpu} is code that a file names, and {allowed}; name it on the command line, "
    "by --libtpu",
)
MAXIMUM_WITH_CONSTANT = Template(
    "specs.maximum_with_constant",
    "{place}: the maximum also holds a number of the code, and where all others are far below that, every "
    "exponential is 0",
)
NOT_YAML = Template("specs.not_yaml", "not YAML: {problem}")
NO_CHECK_FOUND = Template("specs.no_check_found", "no check in {paths}; there is nothing to prove")
NO_COORDINATES = Template("specs.no_coordinates", "a place needs coordinates, such as 'offset: 17' or 'lane: 5'")
NO_DEFINITIONS = Template("specs.no_definitions", "not a spec file that names layouts or kernels")
NO_EXPONENTIAL = Template("specs.no_exponential", "it computes no exponential; there is nothing to prove")
NO_PALLAS_CALL = Template("specs.no_pallas_call", "{function} makes no Pallas call; there is nothing to prove")
NO_QUESTION = Template("specs.no_question", "a check needs a key that says what is asked; {found}; known: {known}")
NO_SPEC_FILE = Template("specs.no_spec_file", "{folder}: no *.yaml or *.yml file in this folder")
NO_SUM = Template("specs.no_sum", "it computes no sum; there is nothing to prove")
NUMBER_LENGTH = Template("specs.number_length", "a number of {characters} characters; at most {most} digits")
PADDING_DIFFERS = Template("specs.padding_differs", "{place} the padding is of {found}, not of {expected}")
PALLAS_FORM = Template(
    "specs.pallas_form",
    "Pallas calls are {{pallas: {{trace: .., args: .., kwargs: .., target: .., assume: .., call: ..}}}}",
)
PLACE_DIFFERS = Template("specs.place_differs", "{index} is at {found}, not at {expected}")
PROGRAM_SOURCE = Template("specs.program_source", "a program is one of function, export, dump or record; found {found}")
PROPERTY_OF_LAYOUTS = Template(
    "specs.property_of_layouts",
    "{property} is about layouts, and Pallas calls are kernels; properties of kernels: {known}",
)
REASON_DIFFERS = Template("specs.reason_differs", "the reason is {found!r}, and {expected!r} is not in it")
REASON_OF_PROVED = Template(
    "specs.reason_of_proved", "a proof has no reason; 'reason' belongs to 'expect: refuted' or 'expect: unknown'"
)
REASON_OF_SAMPLED = Template(
    "specs.reason_of_sampled", "what is sampled has no reason; 'reason' belongs to 'expect: refuted' or 'unknown'"
)
RUN_INTERRUPTED = Template("specs.run_interrupted", "after {done} of {checks} checks, so this is a part")
SAMPLED_UNDER_STRICT = Template("specs.sampled_under_strict", "sampled, and with --strict that is not enough")
SEARCH_FILE = Template(
    "specs.search_file",
    "a search file: it states a problem and makes no claims; solve it with: layoutproof search {file}",
)
SECOND_DOCUMENT = Template("specs.second_document", "a second document; a file holds one")
SIZES_NOT_XLA = Template("specs.sizes_not_xla", "sizes compares XLA's own size functions; {layout} is not an XLA array")
SIZE_DIFFERS = Template("specs.size_differs", "{tool} says {found}, not {expected}")
SUM_TYPE = Template("specs.sum_type", "the sum at {place} is kept in {found}, and {expected} is demanded")
TABLE_DIFFERS = Template("specs.table_differs", "at index {index} the table has {found}, not {expected}")
TEXT_DIFFERS = Template("specs.text_differs", "it is printed {found}, not {expected}")
TWO_QUESTIONS = Template("specs.two_questions", "a check asks one thing; {first!r} and {second!r} are two checks")
UNKNOWN_ALIAS = Template("specs.unknown_alias", "the alias *{name} names nothing before it")
UNKNOWN_CALL = Template("specs.unknown_call", "{function} has no call {call!r}; {calls}")
UNKNOWN_FIGURE = Template("specs.unknown_figure", "{kind} has no figure {name!r} here; it has {known}")
UNKNOWN_FUNCTION = Template("specs.unknown_function", "unknown function {name!r}{near}")
UNKNOWN_KEY = Template("specs.unknown_key", "unknown key {key!r}{near}")
UNKNOWN_LAYOUT = Template("specs.unknown_layout", "unknown layout {name!r}{near}")
UNKNOWN_PROGRAM = Template("specs.unknown_program", "unknown program {name!r}{near}")
UNKNOWN_TAG = Template("specs.unknown_tag", "the tag {tag} is not understood; write the value without it")
UNKNOWN_TOOL = Template("specs.unknown_tool", "no tool called {name!r} gives a size; known: {known}")
MOST_VALUES = Template("specs.most_values", "more than {most} values, aliases expanded")
VERDICT_DIFFERS = Template("specs.verdict_differs", "{found}, but {expected} was expected")
VERDICT_DIFFERS_SINCE = Template("specs.verdict_differs_since", "{surprise}; {reason}")
