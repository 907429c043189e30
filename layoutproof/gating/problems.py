"""What the gate says of two states: what has changed, what cannot be compared, and which input is wrong."""

from __future__ import annotations

from layoutproof.core.message import Template

APPROVALS_FORM = Template("gating.approvals_form", "{place}: approvals is a list, not {found}")
APPROVAL_EXPIRED = Template("gating.approval_expired", "the approval {fingerprint} expired on {until}: {reason}")
APPROVAL_FORM = Template("gating.approval_form", "{place}: an approval has {keys}, nothing else; not {found}")
APPROVAL_NOT_COUNTED = Template("gating.approval_not_counted", "the approval {fingerprint} does not count: {why}")
APPROVAL_OF_NOTHING = Template(
    "gating.approval_of_nothing", "the approval {fingerprint} is of nothing that is found: {reason}"
)
APPROVAL_TOO_LONG = Template("gating.approval_too_long", "an approval lasts {most} days at most, today until {last}")
APPROVAL_WITHOUT_REASON = Template(
    "gating.approval_without_reason", "{place}: the approval {fingerprint} says no reason"
)
APPROVER_FORM = Template("gating.approver_form", "{place}: the approval {fingerprint}: by is a text, not {found}")
AROUND_THE_BODY = Template(
    "gating.around_the_body", "what is around its body is another, which has no words in a spec file"
)
ASSUMED_NO_MORE = Template("gating.assumed_no_more", "{text!r} is assumed no more")
ASSUMED_TOO = Template("gating.assumed_too", "{text!r} is assumed, too")
AS_A_WHOLE = Template("gating.as_a_whole", "as a whole {layout}: {reason}")
BASELINE_NOT_TRACED = Template(
    "gating.baseline_not_traced",
    "the baseline's kernels are not traced, so only rules that are broken now are told; record them with: {command}",
)
BEFORE_UNKNOWN = Template(
    "gating.before_unknown",
    "{place}; whether it was so before is unknown, as the old state has no layoutproof.lock that says it; "
    "write and commit one with: {command}",
)
BLAME = Template("gating.blame", "blame of {question} {subject}: {why}")
BLAME_BUDGET = Template("gating.blame_budget", "unknown: {most} compilations are spent{narrowed}")
BLAME_NOT_ALL = Template(
    "gating.blame_not_all",
    "unknown: all hunks together do not make it: does something that git ignores or the environment?",
)
BLAME_NOT_COMPILED = Template(
    "gating.blame_not_compiled", "unknown: with all hunks the program does not compile in a tree of its own"
)
BLAME_NO_FILE = Template("gating.blame_no_file", "unknown: no tracked or new file differs but in comments")
BLAME_NO_PROGRAM = Template("gating.blame_no_program", "unknown: the spec file does not name the program in both trees")
BODIES_PROVED = Template(
    "gating.bodies_proved", "every question about both is proved; what it computes is not compared"
)
BODY_CHANGED = Template("gating.body_changed", "the body is another: {bodies}")
BODY_NOT_LOCKED = Template(
    "gating.body_not_locked", "{why}: whether the body changed is unknown; write it anew with: {command}"
)
BUFFER_ASSIGNMENT = Template("gating.buffer_assignment", "a buffer assignment: the gate compares modules")
BYTES_UNDECIDED = Template("gating.bytes_undecided", "{old} bytes before, {new} after: {reason}")
CALLED_NEWLY = Template("gating.called_newly", "the call was not made before")
CALLS_NEW_TARGET = Template(
    "gating.calls_new_target", "the program calls {target}, which it did not, and nothing here knows what that does"
)
CALLS_OTHER_TARGET = Template("gating.calls_other_target", "it calls {new} now, {old} before")
CHANNEL_TAKEN = Template(
    "gating.channel_taken", "another collective uses its channel now, so that the two wait for each other"
)
CLAIM_GONE = Template("gating.claim_gone", "no file claims it any more: {claim}")
CLAIM_NEW = Template("gating.claim_new", "it was not claimed before")
CLAIM_VERDICT = Template("gating.claim_verdict", "{claim} was {old}, now it is {new}")
COMES_FROM = Template("gating.comes_from", "{severity}: {question} comes from it")
COMPILED_ALREADY = Template(
    "gating.compiled_already", "{file} is compiled already, and says nothing of how another libtpu would compile it"
)
COMPILED_BY_OTHER = Template(
    "gating.compiled_by_other", "it was compiled by {was}, and is by {now}: whether the lock is true is unknown"
)
COMPILED_WITH_EACH = Template(
    "gating.compiled_with_each", "{many} programs compiled with each; cycles are not compared"
)
COMPILERS_DIFFER = Template(
    "gating.compilers_differ", "{count} differences may be the compiler's own; cycles are not compared"
)
CONTENTS_MISSING = Template("gating.contents_missing", "git does not have the contents of {identity} here; {hint}")
CONTENTS_UNDECIDED = Template("gating.contents_undecided", "what is here cannot be told: {why}")
COUNTEREXAMPLE_EXPECTED = Template("gating.counterexample_expected", "a counterexample is expected")
DAY_FORM = Template("gating.day_form", "{place}: until is a day such as 2027-01-31, not {found}")
DEFINITION_CHANGED = Template("gating.definition_changed", "{definition} is another one now; {said}")
DEMANDED = Template("gating.demanded", "the {what} {name} is demanded")
DEVICES_OF_ELEMENTS = Template("gating.devices_of_elements", "each element is on {new} devices now, on {old} before")
DONATION_DEMANDED = Template(
    "gating.donation_demanded", "its {size} bytes must go to {new} now: the caller has to give them away"
)
DONATION_LOST = Template("gating.donation_lost", "its {size} bytes went to {old}, which now takes memory of its own")
DONATION_MOVED = Template("gating.donation_moved", "its {size} bytes went to {old} and go to {new} now")
DONATION_NEW = Template("gating.donation_new", "its {size} bytes go to {new}: the caller loses them with the call")
DONE_NEWLY = Template("gating.done_newly", "the program does this now, and did not before")
ENTRY_GONE = Template("gating.entry_gone", "it is gone: {many}{shifted}")
ENTRY_NEW = Template("gating.entry_new", "it is new: {many}{shifted}")
ERROR_CHANGED = Template("gating.error_changed", "error was {old}, is {new}")
EXPECT_CHANGED = Template("gating.expect_changed", "expect was {old}, is {new}")
FILE_AND_FOLDER = Template(
    "gating.file_and_folder", "{old} and {new}: a file is compared with a file, a folder with a folder"
)
FILE_NOT_WRITTEN = Template("gating.file_not_written", "{name!r} of {commit} cannot be written: {error}")
FINGERPRINT_FORM = Template("gating.fingerprint_form", "{place}: a fingerprint is 16 digits from 0 to f, not {found}")
FREE_RESHAPE = Template("gating.free_reshape", "a reshape that moves no byte{types}")
GIVES = Template("gating.gives", "it gives {new} now, {old} before, of the same operands")
HERE_NOT_LOCKED = Template("gating.here_not_locked", "it is here, and the lock file does not have it")
INTERRUPTED = Template("gating.interrupted", "interrupted after {done} of {changed} changed files")
KERNELS_NOT_COMPARED = Template("gating.kernels_not_compared", "kernels of {files}: {why}")
KERNEL_BODY = Template("gating.kernel_body", "grid and blocks are as before, and the body is another: {bodies}")
KERNEL_GONE = Template("gating.kernel_gone", "the program does not call this kernel any more")
KERNEL_MODULE = Template("gating.kernel_module", "the kernel's module changed, and it is unknown how: {unread}")
KERNEL_NEW = Template("gating.kernel_new", "the program calls this kernel, which it did not")
KERNEL_PARTS = Template("gating.kernel_parts", "{new} parts are seen of it now, {old} before")
KERNEL_TEXT = Template(
    "gating.kernel_text",
    "its text changed; a record has its digest alone: compare the compiled texts to have it proved",
)
KERNEL_UNREAD = Template("gating.kernel_unread", "the kernel changed, and one side cannot be read: {reason}")
LABELLED_OTHERWISE = Template(
    "gating.labelled_otherwise",
    "it is labelled otherwise than when it was locked; whether values differ a lock file does not say",
)
LAYOUT_DEMANDED = Template("gating.layout_demanded", "it demands {new} now, {old} before")
LESS_VMEM = Template(
    "gating.less_vmem", "it takes less VMEM, {vmem}, and {why}; its steps and cycles: layoutproof kernels --compile"
)
LFS_POINTER = Template("gating.lfs_pointer", "a Git LFS pointer, not the file: fetch it with git lfs pull")
LINE_WITHOUT_TRACE = Template("gating.line_without_trace", "{place}: a line is new, of which nothing is left")
LINK_NOT_WRITTEN = Template("gating.link_not_written", "the link {name!r} cannot be written: {error}")
LINK_OUT = Template("gating.link_out", "a link that leads out of the repository: no revision keeps what it is")
LINK_TO_NOTHING = Template("gating.link_to_nothing", "{path} at {reference} is a link that leads to no file of it")
LOCKED_NOT_HERE = Template("gating.locked_not_here", "the lock file has it, and it is not here")
LOCKS_NOTHING = Template(
    "gating.locks_nothing", "it locks nothing, and there is no spec file or HLO dump in {where}: nothing to compare"
)
LOCK_NEWER = Template(
    "gating.lock_newer", "a lock file of version {version}, which is newer: this layoutproof reads {reads}; update it"
)
LOCK_OLDER = Template("gating.lock_older", "a lock file of version {version}, and this layoutproof reads {reads}")
LOCK_SILENT = Template("gating.lock_silent", "the lock file does not say what it was")
LOCK_TOO_HIGH = Template(
    "gating.lock_too_high",
    "the lock file says more than what is here, and a later change that took it back would pass: {said}",
)
LOCK_WITHOUT_CALLS = Template(
    "gating.lock_without_calls",
    "the lock file says nothing of donation, devices, collectives, custom calls and kernels",
)
LOCK_WITHOUT_VALUES = Template(
    "gating.lock_without_values", "what it computes {why}; values are compared of two texts, and a lock file has none"
)
LOOPS_CHANGED = Template("gating.loops_changed", "its {size} bytes move in {new}, before in {old}")
LOWERED_OTHERWISE = Template(
    "gating.lowered_otherwise",
    "the program changed; nothing that a record holds did, and what it computes is not compared",
)
MEMORY_SPACE = Template("gating.memory_space", "from memory space {before} to {after}; laid out as before")
MERGE_CONFLICT = Template("gating.merge_conflict", "a merge conflict that is not resolved; write anew with --lock")
MOVED_HERE = Template("gating.moved_here", "moved here from {file}, unchanged")
MOVED_INSTEAD = Template("gating.moved_instead", "{size}, where {gone} moved that no longer do")
MOVED_NEWLY = Template("gating.moved_newly", "{size} that did not move before{loops}")
MOVED_NO_LONGER = Template("gating.moved_no_longer", "{size} no longer move")
MOVES = Template("gating.moves", "it moves {new} now, {old} before")
NARROWER_UNKNOWN = Template("gating.narrower_unknown", "{change}, and it is unknown whether that is narrower: {why}")
NESTED_TOO_DEEP = Template("gating.nested_too_deep", "{computation} is in computations that are nested too deep")
NOTHING_AT_REVISION = Template(
    "gating.nothing_at_revision", "{paths}: no spec file, HLO dump or record, neither now nor at {reference}"
)
NOTHING_LEFT = Template(
    "gating.nothing_left", "{place}: nothing is left of what stands here; {operation} before it ({before}) {gives}"
)
NOTHING_TO_BLAME = Template(
    "gating.nothing_to_blame", "blame: no denied collective, copy, layout or growth of a program"
)
NOTHING_TO_COMPARE = Template(
    "gating.nothing_to_compare", "no spec file, HLO dump or record in {old} and {new}: nothing to compare"
)
NOT_CALLED = Template("gating.not_called", "the call is no longer made")
NOT_CALLED_ANY_MORE = Template("gating.not_called_any_more", "{target} is not called any more")
NOT_COMPARED = Template("gating.not_compared", "neither claims nor HLO, not compared: {files}")
NOT_DEMANDED = Template("gating.not_demanded", "the {what} {name} is not demanded any more")
NOT_NAMED_BEFORE = Template("gating.not_named_before", "it was not named before")
NOT_RECORDED = Template("gating.not_recorded", "the call is no longer recorded")
NOT_SCHEDULED = Template(
    "gating.not_scheduled", "the text is not scheduled any more, so its layouts may not be those that run"
)
NOT_SHOWN_SAME = Template(
    "gating.not_shown_same", "the two programs are not shown to compute the same, and not where they part"
)
NOT_UTF8 = Template("gating.not_utf8", "not UTF-8 text")
NOW_BEFORE = Template("gating.now_before", "{new} now, {old} before")
NOW_BEFORE_SAME_OPERANDS = Template("gating.now_before_same_operands", "{new} now, {old} before, of the same operands")
NO_COUNTEREXAMPLE = Template("gating.no_counterexample", "no counterexample is expected any more")
NO_DUMP = Template("gating.no_dump", "there is no such dump {where}")
NO_FILE_NAME = Template("gating.no_file_name", "{name!r} is no name of a file in a repository")
NO_FILE_OR_PROGRAM = Template("gating.no_file_or_program", "{name} is no file; of a function {way}")
NO_GIT = Template("gating.no_git", "--against needs git, which is not installed")
NO_KERNEL = Template("gating.no_kernel", "not a kernel: {value}")
NO_LOCK_FILE = Template("gating.no_lock_file", "not a lock file: its first line is {line!r}")
NO_LOCK_LINE = Template("gating.no_lock_line", "not a line of a lock file: {line}")
NO_LOCK_OF_PROGRAMS = Template(
    "gating.no_lock_of_programs",
    "the old state has no layoutproof.lock that says what its programs were, so what changed in them is unknown",
)
NO_LONGER_NAMED = Template("gating.no_longer_named", "{what} no longer named")
NO_MAP = Template("gating.no_map", "the layouts differ, and one has no map to compare: {problem}")
NO_RECORD = Template("gating.no_record", "not JSON, so not the record of a program")
NO_RESHAPE = Template("gating.no_reshape", "not comparable as a reshape: {reason}")
NO_REVISION_NAME = Template("gating.no_revision_name", "{reference!r} is not a git revision")
NO_TPU_PROGRAM = Template(
    "gating.no_tpu_program", "no spec file names a program for a TPU (programs:, target: v5e): nothing to compile"
)
OLD_CODE_NOT_HERE = Template("gating.old_code_not_here", "the code of the old state is not here, or was not asked for")
OLD_LINE_GONE = Template(
    "gating.old_line_gone", "{place}: a line of the old program, of which nothing was left, is gone"
)
OLD_LOCK_UNREADABLE = Template("gating.old_lock_unreadable", "the old lock file cannot be read: {why}")
OLD_NOT_COMPARED = Template("gating.old_not_compared", "what stood here before cannot be compared: {why}")
OLD_NO_LAYOUT = Template("gating.old_no_layout", "what stood here before is no layout: {problem}")
ONE_CALL_MEANT = Template("gating.one_call_meant", "only call {call} is meant now")
OPERANDS_DEMANDED = Template(
    "gating.operands_demanded", "it demands the layouts of {new} operands now, of {old} before"
)
OPERANDS_MOVED = Template("gating.operands_moved", "operands in another order")
OPERAND_CHANGED = Template("gating.operand_changed", "operand {operand}: {reason}")
OPERAND_IS = Template("gating.operand_is", "{whose} is {new} now, {old} before")
OPERAND_NEW_OR_GONE = Template("gating.operand_new_or_gone", "operand {operand} is {what}")
OPERAND_ORDER = Template("gating.operand_order", "the same operands in another order")
OPERATION_GONE = Template("gating.operation_gone", "{place}: before, {operation}{said} stood here, and is gone")
OPERATION_NEW = Template("gating.operation_new", "{place}: {operation} is new{said}")
OPERATION_SAYS = Template("gating.operation_says", "{place}: {operation} says {new} now, {old} before")
OPERATION_TAKES = Template("gating.operation_takes", "{place}: {operation} takes another value than before")
ORDER_CHANGED = Template("gating.order_changed", "it is {what} {new} now, {old} before: {callers}")
OTHER_PATHS = Template("gating.other_paths", "it is of {locked}, not of {given}")
OTHER_REPOSITORY = Template(
    "gating.other_repository", "git says that the files of the repository are in {top}, and {where} (core.worktree?)"
)
OUTSIDE_REPOSITORY = Template("gating.outside_repository", "{path} is outside the repository {top}")
OUT_OF_DATE = Template("gating.out_of_date", "the lock file is out of date: {said}")
PARAMETER_CHANGED = Template("gating.parameter_changed", "the parameter {number} is {new} now, and was {old}")
PROGRAM_COPIES = Template("gating.program_copies", "the program {verb} {copy}")
PROGRAM_PROBLEM = Template("gating.program_problem", "program {name}: {reason}")
REASON_CHANGED = Template("gating.reason_changed", "reason was {old!r}, is {new!r}")
RECORDED_NEWLY = Template("gating.recorded_newly", "the call was not recorded before")
RECORD_AND_DUMP = Template("gating.record_and_dump", "{record} is the record of a program, and {dump} a dump")
RECORD_SILENT = Template("gating.record_silent", "{side} record does not say it")
REFERENCE_CHANGED = Template("gating.reference_changed", "the reference was {old}, is {new}")
RENAMED = Template("gating.renamed", "only its name is new")
RESULT_TYPE = Template("gating.result_type", "{opcode} gives {new} now, {old} before, of the same operands")
RULES_FORM = Template(
    "gating.rules_form", "{place}: the gate's rules are a mapping from class to severity, not {found}"
)
RULES_LOOSER = Template("gating.rules_looser", "the old rules judge; the new ones would let more through: {looser}")
RULES_TABLE = Template("gating.rules_table", "{place}: {key} is a table, not {found}")
RULES_TIGHTER = Template("gating.rules_tighter", "they ask more: {tighter}")
RULE_BROKEN = Template("gating.rule_broken", "{question} of {subject}: {reason}")
RUNS_ON = Template("gating.runs_on", "the program runs on {new} {what} now, on {old} before")
SAID_ELSEWHERE = Template("gating.said_elsewhere", "{subject} on line {line} says as much of the same layouts")
SAME_AS_LOCKED = Template(
    "gating.same_as_locked", "rewritten, the same as the lock file says at {points} points; the old code is not traced"
)
SAME_KERNEL = Template("gating.same_kernel", "the same kernel, operand by operand")
SAME_LAYOUT = Template("gating.same_layout", "both texts are read as the same layout")
SAME_PLACES = Template("gating.same_places", "every element is where it was, and as many bytes are allotted{types}")
SAME_SHARDING = Template("gating.same_sharding", "the same sharding, as XLA converts both")
SAYS_NOW = Template("gating.says_now", "{word} says {new} now, {old} before")
SAYS_OTHERWISE = Template("gating.says_otherwise", "it says {new} now, {old} before")
SEARCH_FILE = Template(
    "gating.search_file", "a search file states a problem and claims nothing: there is nothing to compare"
)
SECOND_MODULE = Template("gating.second_module", "a second module, {name!r}: one file holds one")
SEVERITY_FORM = Template(
    "gating.severity_form", "{place}: a severity is a text such as 'warn, deny above 2%', not {found}"
)
SHAPE_CHANGED = Template("gating.shape_changed", "the shape changed from {shapes}{types}")
SHARDING_CHANGED = Template("gating.sharding_changed", "the sharding changed")
SHARDING_CHANGED_PARTS = Template(
    "gating.sharding_changed_parts", "the sharding changed; each device's part is compared as it is"
)
SHARDING_CHANGED_UNREAD = Template("gating.sharding_changed_unread", "the sharding changed: {problem}")
SIDE_NOT_COMPILED = Template("gating.side_not_compiled", "{side} is not compiled: {why}")
STATED_ELSEWHERE = Template("gating.stated_elsewhere", "it was stated in {file} before, alike")
SUBMODULE_LINK_OUT = Template(
    "gating.submodule_link_out", "the submodule lies behind a link that leads out of the repository"
)
SUBMODULE_NOT_HERE = Template("gating.submodule_not_here", "the submodule changed and is not here: {hint}")
SUBMODULE_NO_COMMIT = Template(
    "gating.submodule_no_commit", "the submodule does not have its old commit {commit}: fetch it there first"
)
TABLE_LESS_ASSUMED = Template("gating.table_less_assumed", "of table {table} less is assumed: {new}, before {old}")
TABLE_MORE_ASSUMED = Template("gating.table_more_assumed", "of table {table} more is assumed: {new}, before {old}")
TUPLE_ELEMENT = Template("gating.tuple_element", "element {{{new}}} of the same tuple now, {{{old}}} before")
TUPLE_SIZE = Template("gating.tuple_size", "a tuple of {new} now, of {old} before")
TWO_LAYOUTS = Template("gating.two_layouts", "the new dump gives one buffer two layouts")
TWO_OF_ONE_KIND = Template("gating.two_of_one_kind", "{kinds}: give two records, or two dumps (-o writes both)")
UNEQUAL_LAYOUTS = Template(
    "gating.unequal_layouts", "elements and bytes are where they were; the layouts are not equal"
)
UNKNOWN_CLASS = Template("gating.unknown_class", "{place}: unknown class {name}; known: {known}, approvals")
UNKNOWN_REVISION = Template("gating.unknown_revision", "git has no revision {reference!r} here; {hint}")
UNKNOWN_SEVERITY = Template("gating.unknown_severity", "{place}: {found!r} is no severity; write {wanted}")
UNREADABLE = Template("gating.unreadable", "it cannot be read: {problem}")
UNREADABLE_FILES = Template("gating.unreadable_files", "not compared, as the claims' half cannot read it: {files}")
VALUES_BY_OTHER = Template(
    "gating.values_by_other", "its values were made by {was}, and are by {now}: whether the lock is true is unknown"
)
VALUES_NOT_COMPARED = Template("gating.values_not_compared", "values were not compared: {reason}")
VALUE_CHANGED = Template("gating.value_changed", "{name} was {old}, is {new}")
VALUE_GIVEN = Template("gating.value_given", "{name} {value} is given")
WRITE_ANEW = Template("gating.write_anew", "{problem}; write it anew with: {command}")
WRITTEN_OTHERWISE = Template("gating.written_otherwise", "written otherwise, {how}{rounds}")
