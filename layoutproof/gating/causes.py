"""One cause, one finding: the consequences of a change stand under it.

A changed argument is seen again in everything that is computed from it. A difference comes from another one where its
instruction has an operand that changed, directly or through what only hands it on. Differences that a rule allows and
that say the same of many arrays, such as one layout written otherwise, stand under the first of them.

Blame goes one way. In which memory an array of the same layout lies is chosen for those who use it, so it explains no
copy, no layout and no exchange of data; and a copy that is made for a new exchange comes from that.

What is unknown, wrong, or changes what is computed never stands under something else. How both are judged is in
`folding`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.gating.policy import DEFAULTS
from layoutproof.gating.program import MOVERS, DumpInstruction, DumpProgram

_OWN = frozenset(
    (
        *("constant", "operation", "kernel", "kernel_body", "refuted", "custom_call", "contradiction", "devices"),
        *("unscheduled", "lost_exchange", "regrouped", "operands", "bitcast_refuted"),
        "computation_differs",
    )
)
"""Classes that say that something else is computed, or by others: no layout is the cause of that."""
_HANDS_ON = frozenset((*MOVERS, "bitcast", "get-tuple-element", "tuple", "parameter", "fusion", "opt-barrier", "while"))
"""Opcodes through which a change is seen although they did not change themselves."""
_PLACED = frozenset(("faster_memory", "memory_space"))
"""Classes that say in which memory an array lies: they are causes of one another only."""
_COPIED = frozenset(("new_copy", "relaid_parameter"))
"""Classes of copies that were not made before."""
_EXCHANGED = frozenset(("new_collective", "grown_collective", "exchanged_collective"))
"""Classes of exchanges between devices, of which no copy is the cause."""
_LAYOUT = re.compile(r"\{[^{}]*+\}")
_RESULT = re.compile(r"result (\d+)")
MOST_STEPS = 50
"""Instructions that hand a change on without a difference of their own."""


def under_causes(found: Sequence[Finding], after: DumpProgram) -> list[Finding]:
    """The findings between two programs, each under its cause, in the order of the causes.

    after: the new program, by whose operands it is told what comes from what.
    """
    cause = _by_operands(found, after)
    alike: dict[tuple[str, ...], int] = {}
    for k, each in enumerate(found):
        if cause[k] == k and DEFAULTS.get(each.question) == "allow" and each.verdict is not Verdict.UNKNOWN:
            sides = [" ".join(_LAYOUT.findall(side)) for side in (each.before, each.after)]
            if all(sides):
                cause[k] = alike.setdefault((each.question, *sides), k)
    under: dict[int, list[Finding]] = defaultdict(list)
    for k, each in enumerate(found):
        head = k
        while cause[head] != head:
            head = cause[head]
        if head != k:
            under[head].append(each)
    return [replace(f, follows=tuple(under[k])) if under[k] else f for k, f in enumerate(found) if cause[k] == k]


def _by_operands(found: Sequence[Finding], after: DumpProgram) -> list[int]:
    """For each finding the one that it comes from; itself where it comes from none."""
    by_line = {each.line: each for each in after.instructions}
    callers = after.callers
    roots = {each.computation: each for each in after.instructions if each.root}
    changed: dict[int, list[int]] = defaultdict(list)
    at: list[DumpInstruction | None] = []
    for k, each in enumerate(found):
        where = by_line.get(each.line) if each.line else None
        result = _RESULT.match(each.subject)
        if result is not None and each.question == "abi":
            where = _returned(after, int(result[1]))
        at.append(where)
        if where is not None and _joins(each) and result is None:
            changed[id(where)].append(k)
    for several in changed.values():
        several.sort(key=lambda k: found[k].question in _PLACED)
    users = _users(after)
    cause = list(range(len(found)))
    for k, where in enumerate(at):
        if where is None or not _joins(found[k]):
            continue
        first = changed.get(id(where), [k])[0]
        if first != k and _RESULT.match(found[k].subject) is None:
            cause[k] = first  # two things are said of one instruction
            continue
        own = _RESULT.match(found[k].subject) is not None
        above = _above(where, after, changed, callers, roots, own, partial(_explains, found, found[k]))
        below = _made_for(where, users, changed, found) if found[k].question in _COPIED else None
        head = below if below is not None else above
        if head is not None and head != k:
            cause[k] = head
    for k in range(len(found)):
        seen = {k}
        head = k
        while cause[head] != head:  # a loop's body can be its own operand
            head = cause[head]
            if head in seen:
                cause[head] = head
                break
            seen.add(head)
    return cause


def _explains(found: Sequence[Finding], effect: Finding, number: int) -> bool:
    """Whether the finding with this number may be the cause of another."""
    cause = found[number].question
    if cause in _PLACED:
        return effect.question in _PLACED
    return not (cause in _COPIED and effect.question in _EXCHANGED)


def _users(program: DumpProgram) -> dict[tuple[str, str], list[DumpInstruction]]:
    """By computation and name, the instructions that take a value."""
    found: dict[tuple[str, str], list[DumpInstruction]] = defaultdict(list)
    for each in program.instructions:
        for name in dict.fromkeys(each.operands):
            found[each.computation, name].append(each)
    return found


def _made_for(
    where: DumpInstruction,
    users: Mapping[tuple[str, str], list[DumpInstruction]],
    changed: Mapping[int, list[int]],
    found: Sequence[Finding],
) -> int | None:
    """The new exchange that alone takes what a copy gives, directly or through what only hands it on."""
    for _ in range(MOST_STEPS):
        takers = users.get((where.computation, where.name), [])
        if len(takers) != 1:
            return None
        (where,) = takers
        exchanged = [k for k in changed.get(id(where), ()) if found[k].question in _EXCHANGED]
        if exchanged:
            return exchanged[0]
        if where.opcode not in _HANDS_ON:
            return None
    return None


def _joins(each: Finding) -> bool:
    unknown = each.verdict is Verdict.UNKNOWN or each.bad_input
    return not unknown and each.question not in _OWN


def _returned(program: DumpProgram, number: int) -> DumpInstruction | None:
    """The instruction that is an element of the entry's result."""
    root = next((each for each in program.instructions if each.root and each.entry), None)
    if root is not None and root.opcode == "tuple" and number < len(root.operands):
        return program.find(root.computation, root.operands[number])
    return root


def _above(
    where: DumpInstruction,
    program: DumpProgram,
    changed: dict[int, list[int]],
    callers: dict[str, DumpInstruction],
    roots: dict[str, DumpInstruction],
    own: bool,
    explains: Callable[[int], bool],
) -> int | None:
    """The finding of the nearest instruction that this one is computed from, of those that explain it; None for none.

    own: itself counts too.
    """
    if own and (first := next(filter(explains, changed.get(id(where), ())), None)) is not None:
        return first
    todo, seen = _operands(where, program, callers, roots), {id(where)}
    for _ in range(MOST_STEPS):
        if not todo:
            return None
        each = todo.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        if (first := next(filter(explains, changed.get(id(each), ())), None)) is not None:
            return first
        if each.opcode in _HANDS_ON:
            todo += _operands(each, program, callers, roots)
    return None


def _operands(
    of: DumpInstruction, program: DumpProgram, callers: dict[str, DumpInstruction], roots: dict[str, DumpInstruction]
) -> list[DumpInstruction]:
    """The operands of an instruction: of a fusion its root within, of a parameter within the fusion's operand."""
    if of.opcode == "parameter":
        caller = callers.get(of.computation)
        names = caller.operands[of.number : of.number + 1] if caller is not None and of.number >= 0 else ()
        inside = caller.computation if caller is not None else ""
    else:
        names, inside = of.operands, of.computation
    found = [program.find(inside, name) for name in names]
    root = roots.get(of.calls) if of.calls else None
    return [each for each in (*found, root) if each is not None]
