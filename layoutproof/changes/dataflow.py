"""What is computed from what: operands in each other's place, another element of a tuple.

Shapes do not tell `a - b` from `b - a`. Each instruction gets a label of what it computes: its opcode, its result's
shape without layout, what it says of itself, and the labels of its operands in their order; copies and other memories
leave the label as it is, names and order in the text are not in it. Instructions whose label one program alone has, and
that differ in nothing but the order of operands, or in the element they take, are where the data flow changed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from layoutproof.changes.program import Instruction, Program
from layoutproof.core.finding import Finding
from layoutproof.hlotext.texts import element_of, logical

_COMMUTE = frozenset(("add", "multiply", "maximum", "minimum", "and", "or", "xor", "after-all", "opt-barrier"))
_COPIES = ("copy", "copy-start", "copy-done")
Label = int
Operands = tuple[tuple[Label, tuple[int, ...]], ...]
Labelled = tuple[Instruction, Label, Hashable, Operands]
"""An instruction, its label, what it is without its operands, its operands as (label, element of the tuple)."""


def dataflow(before: Program, after: Program) -> list[Finding]:
    """Operands in each other's place, and other elements of tuples, that no other difference says."""
    sides = [[*_labelled(program)] for program in (before, after)]
    if Counter(each[1] for each in sides[0]) == Counter(each[1] for each in sides[1]):
        return []
    # of several with one label, those that are called as before are the same ones
    for called in (True, False):
        keys = [[(each[1], each[0].base) if called else each[1] for each in side] for side in sides]
        both = Counter[Hashable](keys[0]) & Counter[Hashable](keys[1])
        sides = [_rest(side, Counter(both), own) for side, own in zip(sides, keys, strict=True)]
    left = list[dict[Hashable, list[Labelled]]]()
    for side in sides:
        groups: dict[Hashable, list[Labelled]] = defaultdict(list)
        for each in side:
            groups[each[2], tuple(sorted(base for base, _ in each[3]))].append(each)
        left.append(groups)
    found = []
    for key, news in left[1].items():
        for (old, _, _, was), (new, _, _, now) in zip(left[0].get(key, ()), news, strict=False):
            if was != now and _matters(new, was, now):
                found.append(_finding(old, new, was, now))
    return found


def _rest(side: list[Labelled], both: Counter[Hashable], keys: Sequence[Hashable]) -> list[Labelled]:
    """What one side has more of than both."""
    found = []
    for each, key in zip(side, keys, strict=True):
        if both[key] > 0:
            both[key] -= 1
        else:
            found.append(each)
    return found


def _matters(new: Instruction, was: Operands, now: Operands) -> bool:
    """Whether the order says anything; of a tuple it does where it is the program's result."""
    if Counter(was) != Counter(now):
        return True  # another element
    if new.opcode == "tuple":
        return new.entry and new.root
    return new.opcode not in _COMMUTE and not (new.opcode == "compare" and ("=EQ" in new.said or "=NE" in new.said))


def _finding(old: Instruction, new: Instruction, was: Operands, now: Operands) -> Finding:
    sides: dict[str, Any] = {
        "before": f"{old.opcode}({', '.join(old.operands)})",
        "after": f"{new.opcode}({', '.join(new.operands)})",
        "line": new.line,
    }
    subject = f"{new.base} ({new.op_name})" if new.op_name else new.base
    if Counter(was) == Counter(now):
        return Finding("operands", subject, "the same operands in another order", **sides)
    elements = [[path for _, path in each] for each in (was, now)]
    shown = [", ".join("{" + ",".join(map(str, path)) + "}" for path in each if path) for each in elements]
    return Finding("operands", subject, f"element {shown[1]} of the same tuple now, {shown[0]} before", **sides)


def _labelled(program: Program) -> Iterator[Labelled]:
    """Each instruction that computes.

    XLA prints what an instruction needs before it, and a computation before those that call it.
    """
    labels: dict[tuple[str, str], tuple[Label, tuple[int, ...]]] = {}
    roots: dict[str, Label] = {}
    shapes: dict[str, str] = {}
    for of in program.instructions:
        computation, opcode = of.computation, of.opcode
        operands = []
        for name in of.operands:
            known = labels.get((computation, name))
            if known is None:
                whole, path = element_of(name)
                base, above = labels.get((computation, whole), (0, ()))
                known = (base, (*above, *path))
            operands.append(known)
        if opcode in _COPIES and operands:
            labels[computation, of.name] = operands[0]
            if of.root:
                roots[computation] = hash(operands[0])
            continue
        shape = shapes.get(of.shape)
        if shape is None:
            shape = shapes[of.shape] = logical(of.shape)
        if opcode == "get-tuple-element" and operands:
            operands = [(operands[0][0], (*operands[0][1], of.element))]
        own = (opcode, shape, of.said, of.number, roots.get(of.calls, 0) if of.calls else 0)
        given = tuple(operands)
        label_ = hash((own, given))
        labels[computation, of.name] = (label_, ())
        if of.root:
            roots[computation] = label_
        if given:
            yield of, label_, own, given
