"""Changes between two HLO dumps: `compiled_changes`, of every instruction's layout, and of computed values.

Instructions are matched by their properties (opcode, name without its number, metadata op_name, logical shape) and
never by their number, which changes from run to run; where that leaves several possible, the match says that it is a
heuristic.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding, wrong_input
from layoutproof.gating import problems
from layoutproof.gating.array_classes import array_classes
from layoutproof.gating.causes import under_causes
from layoutproof.gating.compiled_changes import changes
from layoutproof.gating.compiled_program import title
from layoutproof.gating.dataflow import dataflow
from layoutproof.gating.entry import aligned
from layoutproof.gating.first_change import CAUSED, caused, changed
from layoutproof.gating.folding import unfolded
from layoutproof.gating.labels import LabelledPair
from layoutproof.gating.matching import Round, match
from layoutproof.gating.placed import gone_or_new, placed
from layoutproof.gating.program import DumpInstruction, DumpProgram, DumpReader, lines_of, read
from layoutproof.gating.states import File
from layoutproof.gating.text_rows import text_rows
from layoutproof.hlo.audit import audit_events
from layoutproof.hlo.collectives import OPCODES
from layoutproof.hlo.consistency import ELEMENTWISE
from layoutproof.hlo.gc_pause import gc_disabled
from layoutproof.hlotext.lines import events
from layoutproof.hlotext.texts import arrays, logical

MOST_CONTRADICTIONS = 10
"""A dump that contradicts itself more often says nothing more by that."""
_GIVES = re.compile(r" gives (\w+)\[\S* now, (\w+)\[")
RESHAPED = "reshaped_result"
"""The class of an instruction whose result has another shape: a matter of layouts, too."""


def compare(
    old: File | None, new: File | None, relpath: str, by_cause: bool = False, by_values: bool = False
) -> list[Finding]:
    """The findings of one dump; None where a state lacks the file.

    by_cause: each under the one that it comes from.  by_values: whether instructions with other labels are evaluated,
    too.
    """
    with gc_disabled():
        found, flow = _compared(old, new, relpath, by_cause, by_values)
    if old is not None and new is not None and by_values and any(f.question in CAUSED for f in unfolded(found)):
        before, after = (text_rows(file.data.decode("utf-8", "replace")) for file in (old, new))
        found = caused(found, changed(before.rows, after.rows), after.places)
    if flow is None or old is None or new is None:
        return found
    # values are compared after everything else, and take another kind of memory
    from layoutproof.gating.functions import of_texts
    from layoutproof.programs.two_texts import computed

    values = computed(*(file.data.decode("utf-8", "replace") for file in (old, new)))
    below = list(flow.findings)
    if values.state == "same":
        # a step of another shape on the way to the same numbers is one that is written otherwise
        below += [each for each in found if _is_reshaped(each)]
        found = [each for each in found if not _is_reshaped(each)]
    return [*placed(of_texts(values, flow.digests, below), relpath, new.path), *found]


def _is_reshaped(finding: Finding) -> bool:
    """Whether an instruction gives another shape of the same element type, and nothing comes of it."""
    types = _GIVES.search(finding.reason)
    return finding.question == RESHAPED and not finding.follows and types is not None and types[1] == types[2]


@dataclass(frozen=True, slots=True)
class Flow:
    """Of two programs that are labelled otherwise the labels, as text, and what they say of where the two part."""

    digests: tuple[str, str]
    findings: tuple[Finding, ...]


def _compared(
    old: File | None, new: File | None, relpath: str, by_cause: bool, by_values: bool
) -> tuple[list[Finding], Flow | None]:
    """The findings, without what the second is about: where values are to say more of it, else None."""
    if old is not None and new is not None and old.data == new.data:
        # nothing changed, and what is cut short is no state to compare with
        broken = [each for each in read_and_audited(new)[1] if each.bad_input]
        return placed(broken, relpath, new.path), None
    before = DumpProgram() if old is None else read(old.data, old.path)
    after, broken = (DumpProgram(), []) if new is None else read_and_audited(new, before)
    path = (new or old).path  # type: ignore[union-attr]
    if old is None or new is None:
        return placed([*broken, gone_or_new(old is None, after.name or before.name)], relpath, path), None
    broken += [replace(_mistake(error), subject="old dump", file=old.path) for error in before.errors]
    if not (before.name and after.name):
        # nothing of one could be read, which says nothing about what is new or gone
        return placed(broken, relpath, path), None
    before = aligned(before, after)
    pair = LabelledPair(before, after)
    found = [*changes(before, after), *_layouts(before, after, pair)]
    otherwise = _otherwise(found, pair)
    flow = None
    # a text that contradicts itself has no single meaning
    if by_values and not broken and not pair.alike:
        one, other = ((side.result or b"").hex() for side in pair.kept)
        flow = Flow((one, other), tuple(each for each in otherwise if each.question != RESHAPED))
        otherwise = [each for each in otherwise if each.question == RESHAPED]
    found += otherwise
    return placed([*broken, *(under_causes(found, after) if by_cause else found)], relpath, path), flow


def read_and_audited(file: File, before: DumpProgram | None = None) -> tuple[DumpProgram, list[Finding]]:
    """A dump, read once, and what is wrong with it in itself: broken or missing lines, two layouts for one buffer.

    before: the program that it is compared with, whose texts are used again.
    """
    reader = DumpReader(file.path, before)
    found = audit_events(reader.through(events(lines_of(file.data), file.path)), file.path, contradictions_only=True)
    program = reader.program()
    errors = program.errors or found.errors
    if errors:
        return program, list(map(_mistake, errors))
    wrong = []
    for each in found.contradictions[:MOST_CONTRADICTIONS]:
        sides: dict[str, Any] = {"before": each.first, "after": each.second, "line": each.line}
        wrong.append(Finding("contradiction", each.what, problems.TWO_LAYOUTS(), **sides))
    return program, wrong


def _otherwise(found: Sequence[Finding], flow: LabelledPair) -> list[Finding]:
    """The differences in computed values that no other finding reports."""
    told = {(each.question, each.line) for each in found}
    return [each for each in dataflow(flow) if (each.question, each.line) not in told]


def _mistake(error: LayoutError) -> Finding:
    return wrong_input("dump", error.problem, line=error.line or 0)


def _layouts(before: DumpProgram, after: DumpProgram, flow: LabelledPair) -> list[Finding]:
    """The classes of every instruction's layout that changed."""
    rounds: list[Round[DumpInstruction]] = [
        Round(lambda i: (i.opcode, i.said, i.base, i.op_name, logical(i.shape))),
        Round(lambda i: (i.opcode, i.base, i.op_name, logical(i.shape))),
        Round(
            lambda i: (i.opcode, i.op_name, logical(i.shape)) if i.op_name else None,
            match_heuristic="by op_name and shape",
        ),
        Round(lambda i: (i.name, i.computation, i.op_name, logical(i.shape)) if i.opcode in ELEMENTWISE else None),
        # the user's names may have changed too, and every name of the compiler
        Round(lambda i: (i.shape, i.opcode, flow.label_of(i)), alike=True),
        Round(lambda i: (i.opcode, flow.label_of(i), logical(i.shape)), match_heuristic="by what is computed"),
        Round(lambda i: (i.shape, i.opcode, i.said, i.base), alike=True),
        Round(lambda i: (i.opcode, i.said, i.base, logical(i.shape)), match_heuristic="by name and shape"),
        Round(lambda i: (i.opcode, i.base, logical(i.shape)), match_heuristic="by name and shape"),
        Round(lambda i: None if i.opcode in _TOLD | OPCODES else (i.opcode, i.base, i.op_name, given(i))),
    ]
    fused = {i.calls for i in after.of("fusion")}

    def given(of: DumpInstruction) -> tuple[str, ...]:
        program = before if id(of) in olds else after
        each = [program.operand(of, k) for k in range(len(of.operands))]
        return tuple(["" if one is None else logical(one.shape) for one in each])

    found = []
    # of parameters the entry layout speaks, where it changed
    entered = [each.shape for each in before.parameters] == [each.shape for each in after.parameters]
    ours, theirs = ([i for i in side if entered or i.number < 0 or not i.entry] for side in _unlike(before, after))
    olds = {id(i) for i in ours}
    for pair in match(ours, theirs, rounds):
        old, new = pair.old, pair.new
        if old is None or new is None:
            continue
        at: dict[str, Any] = {
            "subject": title(new.base, new.op_name),
            "line": new.line,
            "match_heuristic": pair.match_heuristic,
        }
        if logical(old.shape) != logical(new.shape):
            at |= {"before": old.shape, "after": new.shape}
            why = problems.RESULT_TYPE(new.opcode, logical(new.shape), logical(old.shape))
            found.append(Finding("reshaped_result", reason=why, **at))
            continue
        for one, other in zip(arrays(old.shape), arrays(new.shape), strict=False):
            if one != other:
                changed = array_classes(one, other)
                if new.computation in fused and new.opcode != "parameter":
                    # only the fusion's result is stored, and its own line has the place
                    changed = [f for f in changed if f.question not in ("memory_space", "faster_memory")]
                found += [replace(f, **at) for f in changed]
    return found


def _unlike(before: DumpProgram, after: DumpProgram) -> tuple[list[DumpInstruction], list[DumpInstruction]]:
    """The instructions of each program without those that the other has just so: they are of no interest.

    First by their own name, where numbers did not change, then by what they are called without it.
    """
    olds, news = (
        [each for name, inside in one.named.items() for each in _unlike_in(inside, other.named.get(name, {}))]
        for one, other in ((before, after), (after, before))
    )
    # one opcode at a time, so that memory holds few keys
    kinds: dict[str, tuple[list[DumpInstruction], list[DumpInstruction]]] = {}
    for side, each in ((0, olds), (1, news)):
        for of in each:
            kinds.setdefault(of.opcode, ([], []))[side].append(of)
    left: set[int] = set()
    for ours, theirs in kinds.values():
        keys = [[*map(_what, those)] for those in (ours, theirs)]
        both = Counter(keys[0]) & Counter(keys[1])
        for those, called in zip((ours, theirs), keys, strict=True):
            common = Counter(both)
            for of, key in zip(those, called, strict=True):
                if common[key] > 0:
                    common[key] -= 1
                else:
                    left.add(id(of))
    return [of for of in olds if id(of) in left], [of for of in news if id(of) in left]


def _unlike_in(
    inside: Mapping[str, DumpInstruction], others: Mapping[str, DumpInstruction]
) -> Iterator[DumpInstruction]:
    """The instructions of a computation that another of its name has not, by their own names."""
    for name, of in inside.items():
        other = others.get(name)
        if other is of:
            continue
        if other is None or of.shape != other.shape or of.op_name != other.op_name or _says(of) != _says(other):
            yield of


def _says(of: DumpInstruction) -> tuple[str, str]:
    return of.opcode, of.said


def _what(of: DumpInstruction) -> Hashable:
    return of.shape, of.opcode, of.said, of.base, of.op_name


_TOLD = frozenset(
    (
        *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "copy", "copy-start", "fusion", "while"),
        *("call", "conditional", "opt-barrier", "async-start", "async-update", "custom-call", "slice-start"),
        "concat-bitcast",
    )
)
"""Opcodes whose results are those of others, or are compared elsewhere: none is compared by its operands."""
