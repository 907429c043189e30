"""What changed between two HLO dumps: the entry layout, copies that change a layout, bitcasts, and every other layout.

Entry parameters and results are matched by position, as callers give them. Instructions are matched by what they are
(opcode, name without its number, metadata op_name, logical shape) and never by their number, which changes from run to
run; where that leaves several possible, the match says that it is a heuristic.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from layoutproof.changes.causes import under_causes
from layoutproof.changes.classes import layouts
from layoutproof.changes.custom_calls import customs
from layoutproof.changes.dataflow import dataflow
from layoutproof.changes.exchanges import exchanges
from layoutproof.changes.global_shape import resharded, same_sharding
from layoutproof.changes.interface import interface
from layoutproof.changes.labels import LabelledPair
from layoutproof.changes.lock_head import RENEW
from layoutproof.changes.matching import Match, Round, match
from layoutproof.changes.parameters import aligned, moved_parameters
from layoutproof.changes.parameters import shifted as _shifted
from layoutproof.changes.placed import gone_or_new, placed
from layoutproof.changes.program import (
    MOVERS,
    DumpInstruction,
    DumpProgram,
    bytes_of,
    lines_of,
    read,
    recorded,
)
from layoutproof.changes.states import File
from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding, unknown, wrong_input
from layoutproof.core.result import Verdict
from layoutproof.hlo import bitcasts, copies
from layoutproof.hlo.audit import audit_events
from layoutproof.hlo.bitcasts import REORDERING, BitcastAnswer
from layoutproof.hlo.collectives import OPCODES
from layoutproof.hlo.consistency import ELEMENTWISE
from layoutproof.hlo.copies import Move
from layoutproof.hlo.gc_pause import gc_disabled
from layoutproof.hlo.shapes import read_array
from layoutproof.hlotext.lines import events
from layoutproof.hlotext.texts import arrays, logical, without_space
from layoutproof.registry.read import read_layout

MOST_CONTRADICTIONS = 10
"""A dump that contradicts itself more often says nothing more by that."""
_HARMLESS = ("respelled",)
_GIVES = re.compile(r" gives (\w+)\[\S* now, (\w+)\[")
RESHAPED = "reshaped_result"
"""The class of an instruction whose result has another shape: a matter of layouts, too."""
FAST = 1
"""Memory space of the compiler's own fast memory (`Layout::kGenericFastMemorySpace`), VMEM on TPU; 0 is HBM."""


@dataclass(frozen=True, slots=True)
class LayoutCopy:
    """A copy whose result is laid out differently from its operand. parameter: of the entry, that it copies, or -1."""

    what: DumpInstruction
    source: str
    target: str
    size: int
    parameter: int


def compare(
    old: File | None, new: File | None, relpath: str, by_cause: bool = False, by_values: bool = False
) -> list[Finding]:
    """The findings of one dump; None where a state lacks the file.

    by_cause: each under the one that it comes from.  by_values: whether what is computed otherwise is evaluated, too.
    """
    with gc_disabled():
        found, flow = _compared(old, new, relpath, by_cause, by_values)
    if flow is None or old is None or new is None:
        return found
    # what they compute is another matter than what else they say, and takes another kind of memory
    from layoutproof.changes.functions import of_texts
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
    found = _changes(before, after, True, pair)
    otherwise = _otherwise(found, pair)
    flow = None
    # a text that contradicts itself says no one thing
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
    program = DumpProgram()
    given = recorded(events(lines_of(file.data), file.path), program, file.path, before)
    found = audit_events(given, file.path, contradictions_only=True)
    errors = program.errors or found.errors
    if errors:
        return program, list(map(_mistake, errors))
    wrong = []
    for each in found.contradictions[:MOST_CONTRADICTIONS]:
        sides: dict[str, Any] = {"before": each.first, "after": each.second, "line": each.line}
        wrong.append(Finding("contradiction", each.what, "the new dump gives one buffer two layouts", **sides))
    return program, wrong


def changes(before: DumpProgram, after: DumpProgram, whole: bool = True) -> list[Finding]:
    """Everything that changed between two programs. whole: whether every instruction of both is known."""
    before = aligned(before, after)
    flow = LabelledPair(before, after)
    found = _changes(before, after, whole, flow)
    return [*found, *_otherwise(found, flow)] if whole else found


def _changes(before: DumpProgram, after: DumpProgram, whole: bool, flow: LabelledPair) -> list[Finding]:
    """Likewise, without what is computed otherwise. before: as it is aligned with the other."""
    found = [
        *moved_parameters(before, after),
        *_entry(before, after),
        *_shardings(before, after),
        *_copies(before, after),
        *_bitcasts(before, after),
    ]
    if before.unsaid:
        why = "the lock file says nothing of donation, devices, collectives, custom calls and kernels"
        found.append(unknown("dump", f"{why}; write it anew with: {RENEW}"))
    else:
        found += [*interface(before, after), *exchanges(before.exchanges, after.exchanges)]
        found += customs(before.customs, after.customs, _classes)
    return [*found, *_layouts(before, after, flow)] if whole else found


def _otherwise(found: Sequence[Finding], flow: LabelledPair) -> list[Finding]:
    """What is computed otherwise, and is not said by what was found."""
    told = {(each.question, each.line) for each in found}
    return [each for each in dataflow(flow) if (each.question, each.line) not in told]


def _mistake(error: LayoutError) -> Finding:
    return wrong_input("dump", error.problem, line=error.line or 0)


def _entry(before: DumpProgram, after: DumpProgram) -> list[Finding]:
    """The program's ABI: each parameter and result by its position."""
    found: list[Finding] = []
    names = {
        i.number: (i.op_name or i.base, i.line)
        for program in (before, after)  # what both have is called as it is now
        for i in program.entered
    }
    for what, olds, news in (
        ("parameter", before.parameters, after.parameters),
        ("result", before.results, after.results),
    ):
        many = [len([*filter(None, each)]) for each in (olds, news)]
        for k in range(max(len(olds), len(news))):
            name, line = names.get(k, ("", 1)) if what == "parameter" else ("", 1)
            if k >= len(news) and what == "parameter":
                name = before.gone.get(k) or name
            subject = f"{what} {k}" + (f" ({name})" if name else "")
            if k >= len(olds) or k >= len(news) or not olds[k]:
                gone = k >= len(news)
                sides = {"before": olds[k]} if gone else {"after": news[k]}
                why = f"it is {'gone' if gone else 'new'}: the program has {many[1]} {what}s now, {many[0]} before"
                if what == "parameter":
                    why += _shifted(before, after, k, gone)
                    subject = f"parameter {before.positions.get(k, k) if gone else k}" + (f" ({name})" if name else "")
                found.append(Finding("abi", subject, why, line=1 if gone else line, **sides))  # type: ignore[arg-type]
                continue
            found += [replace(f, subject=subject, line=line) for f in _abi(olds[k], news[k])]
    return found


def _shardings(before: DumpProgram, after: DumpProgram) -> list[Finding]:
    """Entry parameters whose shards are elsewhere."""
    olds, news = ({i.number: i for i in p.entered} for p in (before, after))
    found = []
    printed = [any(i.sharding for i in side.values()) for side in (olds, news)]
    if printed[0] != printed[1]:
        if before.partitions == after.partitions == 1:
            return []
        # libtpu 0.0.52 prints none on its optimised text; the parts' shapes and the collectives are compared elsewhere
        which = "new" if printed[0] else "old"
        why = (
            f"the {which} text prints no sharding of any parameter, so that only the shapes of the parts are compared; "
        )
        why += "make both with one version of the compiler"
        return [unknown("shardings of the parameters", why)]
    for number in sorted({*olds} & {*news}):
        old, new = olds[number], news[number]
        if old.sharding == new.sharding or not (old.sharding or new.sharding):
            continue
        if before.partitions == after.partitions == 1 and same_sharding(
            *(i.sharding or "{replicated}" for i in (old, new))
        ):
            continue
        at: dict[str, Any] = {"line": new.line, "subject": f"parameter {number} ({new.op_name or new.base})"}
        found += [replace(f, **at) for f in resharded((old.shape, old.sharding), (new.shape, new.sharding))]
    return found


def _abi(old: str, new: str) -> list[Finding]:
    if old == new:
        return []
    ones, others = list(arrays(old)), list(arrays(new))
    if len(ones) != len(others):
        return [Finding("abi", "", f"a tuple of {len(others)} now, of {len(ones)} before", before=old, after=new)]
    found = []
    for one, other in zip(ones, others, strict=True):
        for change in _classes(one, other):
            if change.question in _HARMLESS or change.verdict is Verdict.UNKNOWN:
                found.append(change)
            else:
                found.append(replace(change, question="abi", reason=f"{change.question}: {change.reason}"))
    return found


def _classes(old: str, new: str) -> list[Finding]:
    """The classes of one changed array; another memory space is a class of its own where nothing else changed."""
    try:
        return list(_classes_of(old, new))
    except LayoutError as error:
        return [unknown("", str(error.problem), before=old, after=new)]


@lru_cache(maxsize=4096)
def _classes_of(old: str, new: str) -> tuple[Finding, ...]:
    one, other = without_space(old), without_space(new)
    if one == old and other == new:
        return tuple(layouts(old, new))
    inner = layouts(one, other) if one != other else []
    harmless = all(f.question in _HARMLESS for f in inner)
    if harmless and _space(old) != _space(new):
        why = f"from memory space {_space(old)} to {_space(new)}; laid out as before"
        sides: dict[str, Any] = {"before": old, "after": new, "figures": {"bytes": bytes_of(new)}}
        by = inner[0].decided_by if inner else "the same text"
        kind = "faster_memory" if (_space(old), _space(new)) == (0, FAST) else "memory_space"
        return (Finding(kind, "", why, decided_by=by, **sides),)
    return tuple(replace(f, before=old, after=new) for f in inner)


def _space(shape: str) -> int:
    return int(getattr(read_layout(shape, "xla"), "memory_space", 0))


def _copies(before: DumpProgram, after: DumpProgram) -> list[Finding]:
    """New and vanished copies that change a layout; of an entry parameter, it is copied at every call."""

    def key(copy: LayoutCopy) -> Hashable:
        return (copy.source, copy.target, copy.parameter)

    rounds: list[Round[LayoutCopy]] = [
        Round(lambda c: (key(c), c.what.name, c.what.computation), alike=True),
        Round(lambda c: (key(c), c.what.op_name, c.what.base), alike=True),
        Round(key, alike=True),
    ]
    open_ = [p for p in match(relayouts(before), relayouts(after), rounds) if p.old is None or p.new is None]
    # between layouts that are only written otherwise, a copy is the old one
    rewritten: list[Round[LayoutCopy]] = [
        Round(lambda c: (logical(c.source), logical(c.target), c.parameter, c.what.op_name))
    ]
    found = []
    for pair in match([p.old for p in open_ if p.old], [p.new for p in open_ if p.new], rewritten):
        if pair.old is not None and pair.new is not None:
            sides = ((pair.old.source, pair.new.source), (pair.old.target, pair.new.target))
            if not all(f.question in _HARMLESS for one, other in sides if one != other for f in _classes(one, other)):
                found += [_copy(Match(None, pair.new)), _copy(Match(pair.old, None))]
        else:
            found.append(_copy(pair))
    return found


def _copy(pair: Match[LayoutCopy]) -> Finding:
    copy = pair.new or pair.old
    assert copy is not None
    fresh = pair.new is not None
    kind = ("relaid_parameter" if copy.parameter >= 0 else "new_copy") if fresh else "vanished_copy"
    whose = f"parameter {copy.parameter}" if copy.parameter >= 0 else _named(copy.what)
    verb = "copies" if fresh else "no longer copies"
    why = f"the program {verb} {copy.size} bytes from {copy.source} to {copy.target}"
    sides: dict[str, Any] = {"before": copy.source, "after": copy.target, "line": copy.what.line if fresh else 0}
    move = _move(copy.source, copy.target)
    if fresh and move.kind == "unknown":
        return unknown(f"copy of {whose}", f"{why}: {move.reason}", **sides)
    return Finding(kind, f"copy of {whose}", why, figures={"bytes": copy.size}, **sides)


def relayouts(program: DumpProgram) -> list[LayoutCopy]:
    """The copies that change a layout."""
    called = program.callers
    found = []
    for what in program.of("copy", "copy-start"):
        operand = program.operand(what)
        target = next(arrays(what.shape), "")
        if operand is None or operand.shape == target:
            continue
        source, target = without_space(operand.shape), without_space(target)
        if source != target and _move(source, target).kind in ("relayout", "unknown"):
            found.append(LayoutCopy(what, source, target, bytes_of(target), _parameter(program, operand, called)))
    return found


def _parameter(program: DumpProgram, operand: DumpInstruction | None, called: dict[str, DumpInstruction]) -> int:
    """The entry parameter that an instruction is, as it is or through copies to another memory space; else -1."""
    for _ in range(100):
        if operand is None:
            return -1
        if operand.opcode == "parameter":
            if operand.entry:
                return operand.number
            caller = called.get(operand.computation)
            operand = None if caller is None else program.operand(caller, operand.number)
        elif operand.opcode in MOVERS:
            operand = program.operand(operand)
        else:
            return -1
    return -1


@lru_cache(maxsize=4096)
def _move(source: str, target: str) -> Move:
    """What the audit says of a copy between two layouts."""
    try:
        return copies.judge("copy", read_array(source), read_array(target), None)
    except LayoutError as error:
        return Move("unknown", 0, error.problem)


@lru_cache(maxsize=4096)
def _cast(source: str, target: str) -> BitcastAnswer:
    """What the audit says of a bitcast between two shapes."""
    try:
        return bitcasts.judge(read_array(source), read_array(target))
    except LayoutError as error:
        return BitcastAnswer(Verdict.UNKNOWN, "", error.problem)


def _bitcasts(before: DumpProgram, after: DumpProgram) -> list[Finding]:
    """Bitcasts between layouts that the old program did not have, as the audit judges them."""
    known = {pair for _, pair in bitcast_pairs(before)}
    gone = known - {pair for _, pair in bitcast_pairs(after)}
    found = []
    for what, (source, target) in bitcast_pairs(after):
        if (source, target) in known:
            continue
        known.add((source, target))
        if any(_respelled(pair, (source, target)) for pair in gone):
            continue
        cast = _cast(source, target)
        if cast.verdict is Verdict.PROVED and cast.how != REORDERING:
            continue
        kind = {Verdict.UNKNOWN: "unknown", Verdict.REFUTED: "bitcast_refuted", Verdict.PROVED: "reordered"}[
            cast.verdict
        ]
        if kind == "reordered" and any(_instead(pair, (source, target)) for pair in gone):
            kind = "moved"
        sides: dict[str, Any] = {"before": source, "after": target, "line": what.line, "decided_by": cast.decided_by}
        verdict = Verdict.UNKNOWN if cast.verdict is Verdict.UNKNOWN else Verdict.REFUTED
        named = f"bitcast {_named(what)}"
        found.append(Finding(kind, named, cast.reason, counterexample=cast.element, verdict=verdict, **sides))
    return found


def _respelled(old: tuple[str, str], new: tuple[str, str]) -> bool:
    """Whether two pairs of shapes are the same ones, written otherwise."""
    return all(
        one == other or (logical(one) == logical(other) and all(f.question in _HARMLESS for f in _classes(one, other)))
        for one, other in zip(old, new, strict=True)
    )


def _instead(old: tuple[str, str], new: tuple[str, str]) -> bool:
    """Whether a bitcast that reordered nothing had one side of this one, and on the other the same array."""
    if _cast(*old).how == REORDERING:
        return False
    return any(old[k] == new[k] and logical(old[1 - k]) == logical(new[1 - k]) for k in (0, 1))


def bitcast_pairs(program: DumpProgram) -> list[tuple[DumpInstruction, tuple[str, str]]]:
    """Each bitcast of an array with its two shapes, memory spaces left out."""
    found = []
    for what in program.of("bitcast"):
        operand = program.operand(what)
        if operand is not None and not operand.shape.startswith("("):
            found.append((what, (without_space(operand.shape), without_space(what.shape))))
    return found


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
        # what the user's program calls things may have changed along with them, and every name
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
    entered = before.parameters == after.parameters
    ours, theirs = ([i for i in side if entered or i.number < 0 or not i.entry] for side in _unlike(before, after))
    olds = {id(i) for i in ours}
    for pair in match(ours, theirs, rounds):
        old, new = pair.old, pair.new
        if old is None or new is None:
            continue
        at: dict[str, Any] = {"subject": _named(new), "line": new.line, "match_heuristic": pair.match_heuristic}
        if logical(old.shape) != logical(new.shape):
            at |= {"before": old.shape, "after": new.shape}
            why = f"{new.opcode} gives {logical(new.shape)} now, {logical(old.shape)} before, of the same operands"
            found.append(Finding("reshaped_result", reason=why, **at))
            continue
        for one, other in zip(arrays(old.shape), arrays(new.shape), strict=False):
            if one != other:
                changed = _classes(one, other)
                if new.computation in fused and new.opcode != "parameter":
                    # what is not kept lies nowhere; what is, the fusion's own result says
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


def _named(what: DumpInstruction) -> str:
    return f"{what.base} ({what.op_name})" if what.op_name else what.base
