"""What is computed from what: operands in each other's place, another element of a tuple.

Shapes do not tell `a - b` from `b - a`. Each instruction gets a label of what it computes: a digest of its opcode, its
result's shape without layout, what it says of itself, and the labels of its operands in their order; names and order in
the text are not in it. Copies leave the label as it is, and so do fusions: what is in one is computed from the fusion's
operands, in whichever order these are numbered. What the other program has too is left out.

Of the rest, in the order of the flow, each instruction of the new program that is one of the old takes its label on, so
that one change does not hide another one below it: it is the same where it computes the same of the same, and otherwise
where it alone is called so on both sides. Where it differs in nothing but the order of operands, or in the element that
it takes, the data flow changed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from layoutproof.changes.program import MOST_NESTED, Instruction, Program
from layoutproof.core.finding import Finding
from layoutproof.hlotext.texts import element_of, logical

_COMMUTE = frozenset(("add", "multiply", "maximum", "minimum", "and", "or", "xor", "after-all", "opt-barrier"))
_COPIES = ("copy", "copy-start", "copy-done")
_SIZE = 16
"""Bytes of a label: two that are different have the same one never, for all that a program can have."""
Label = bytes
Operand = tuple[Label, tuple[int, ...]]
"""What an operand is, and which element of that tuple, from the outermost; () for all of it."""
Operands = tuple[Operand, ...]
_Computed = tuple[Instruction, Label, bytes, list[Operand]]
_UNKNOWN: Operand = (bytes(_SIZE), ())


class Labelled(NamedTuple):
    """An instruction. own: what it is, but for its operands.  given: these, each as (label, element of the tuple)."""

    what: Instruction
    label: Label
    own: bytes
    given: Operands


def dataflow(before: Program, after: Program) -> list[Finding]:
    """Operands in each other's place, and other elements of tuples, that no other difference says."""
    flows = _Flow(before), _Flow(after)
    digests = [{name: _digest(sorted(flow.labels(name))) for name in flow.whole} for flow in flows]
    rests = [_more(own, Counter(other.values())) for own, other in (digests, digests[::-1])]
    if not any(rests):
        return []
    labels = [
        Counter(label for name in rest for label in flow.labels(name)) for flow, rest in zip(flows, rests, strict=True)
    ]
    differ = {*(labels[0] - labels[1]), *(labels[1] - labels[0])}
    sides = [[*flow.those(rest, differ)] for flow, rest in zip(flows, rests, strict=True)]
    # of several with one label, those that are called as before are the same ones
    for key in (_named, _label):
        many = [Counter(map(key, side)) for side in sides]
        sides = [_rest(side, many[0] & many[1], key) for side in sides]
    return _changed(*sides)


class _Flow:
    """The labels of one program. whole: computations that are no part of another one, each before those it calls."""

    __slots__ = ("program", "roots", "said", "times", "whole")

    def __init__(self, program: Program) -> None:
        self.program = program
        self.times = Counter(each.calls for each in program.of("fusion", "call") if each.calls)
        self.whole = [name for name in reversed(program.named) if self.times[name] != 1]
        self.roots: dict[str, Operand] = {}
        self.said: dict[tuple[int, str, str, str], bytes] = {}

    def labels(self, computation: str) -> Iterator[Label]:
        """The label of each instruction that computes, of a computation and of what is a part of it."""
        return (label for _, label, _, _ in self._of(computation, None))

    def those(self, computations: Iterable[str], labels: Collection[Label]) -> Iterator[Labelled]:
        """The instructions with some labels, in the order of the flow."""
        for name in computations:
            for of, label, own, given in self._of(name, None):
                if label in labels:
                    yield Labelled(of, label, own, tuple(given))

    def _of(self, computation: str, inputs: list[Operand] | None, depth: int = 0) -> Iterator[_Computed]:
        """Each instruction that computes; XLA prints what an instruction needs before it.

        inputs: what the parameters are, None of a computation of its own.
        """
        known: dict[str, Operand] = {}
        for name, of in self.program.named[computation].items():
            opcode = of.opcode
            given = []
            for operand in of.operands:
                each = known.get(operand)
                if each is None:
                    inside, path = element_of(operand)
                    base, above = known.get(inside, _UNKNOWN)
                    each = (base, (*above, *path))
                given.append(each)
            if opcode in _COPIES and given:
                known[name] = given[0]
            elif inputs is not None and 0 <= of.number < len(inputs):
                known[name] = inputs[of.number]
            elif of.calls in self.program.named and self.times[of.calls] == 1 and depth < MOST_NESTED:
                yield from self._of(of.calls, given, depth + 1)
                known[name] = self.roots.get(of.calls, _UNKNOWN)
            else:
                if opcode == "get-tuple-element" and given:
                    given = [(given[0][0], (*given[0][1], of.element))]
                own = self._own(of)
                label = _digest(
                    (own, *[label if not path else label + bytes(str(path), "ascii") for label, path in given])
                )
                known[name] = (label, ())
                if given:
                    yield of, label, own, given
            if of.root:
                self.roots[computation] = known[name]

    def _own(self, of: Instruction) -> bytes:
        key = (of.number, of.opcode, of.shape, of.said)
        own = self.said.get(key)
        if own is None:
            text = f"{of.opcode if of.number < 0 else of.number}\0{logical(of.shape)}\0{of.said}\0"
            own = self.said[key] = text.encode(errors="surrogatepass")
        return own + self._root_of(of.calls) if of.calls else own

    def _root_of(self, called: str) -> Label:
        """The result of a computation that several instructions call, of whatever it is given."""
        if called not in self.roots and called in self.program.named:
            self.roots[called] = _UNKNOWN  # a broken text may call itself
            for _ in self._of(called, None):
                pass
        return self.roots.get(called, _UNKNOWN)[0]


def _digest(parts: Iterable[bytes]) -> Label:
    return blake2b(b"".join(parts), digest_size=_SIZE).digest()


def _more(digests: dict[str, Label], both: Counter[Label]) -> list[str]:
    """The computations of which one side has more than both."""
    found = []
    for name, digest in digests.items():
        if both[digest] > 0:
            both[digest] -= 1
        else:
            found.append(name)
    return found


def _rest(side: list[Labelled], both: Counter[Hashable], key: Callable[[Labelled], Hashable]) -> list[Labelled]:
    """What one side has more of than both."""
    left, found = Counter(both), []
    for each in side:
        if left[key(each)] > 0:
            left[key(each)] -= 1
        else:
            found.append(each)
    return found


def _changed(olds: Sequence[Labelled], news: Sequence[Labelled]) -> list[Finding]:
    """Where the data flow changed, of what each program alone has."""
    same, alike = (_groups(olds, key) for key in (_computed, _of_the_same))
    alone = [(key, _alone(olds, key), _alone(news, key)) for key in (_called, _meant)]
    now: dict[Label, Label] = {}
    used: set[Label] = set()
    found = []
    for each in news:
        given = tuple([(now.get(label, label), path) for label, path in each.given])
        new = each._replace(given=given)
        old = _first(same, _computed(new), used)
        if old is None:
            old = _first(alike, _of_the_same(new), used)
            if old is not None and _matters(new.what, old.given, new.given):
                found.append(_finding(old.what, new.what, old.given, new.given))
        for key, ones, others in alone:
            if old is None and key(new) in others:
                old = ones.get(key(new))
                old = None if old is None or old.label in used else old
        if old is not None:
            used.add(old.label)
            now.setdefault(each.label, old.label)
    return found


def _label(each: Labelled) -> Hashable:
    return each.label


def _named(each: Labelled) -> Hashable:
    return each.label, each.what.base


def _groups(side: Sequence[Labelled], key: Callable[[Labelled], Hashable]) -> dict[Hashable, list[Labelled]]:
    groups: dict[Hashable, list[Labelled]] = defaultdict(list)
    for each in side:
        groups[key(each)].append(each)
    return groups


def _computed(each: Labelled) -> Hashable:
    return each.own, each.given


def _of_the_same(each: Labelled) -> Hashable:
    """What it is and what it is computed from, in whichever order and from whichever elements."""
    return each.own, tuple(sorted(label for label, _ in each.given))


def _called(each: Labelled) -> Hashable:
    of = each.what
    return of.base, of.op_name, logical(of.shape)


def _meant(each: Labelled) -> Hashable:
    """What the user's program says of it."""
    of = each.what
    return (of.op_name, logical(of.shape)) if of.op_name else None


def _alone(side: Sequence[Labelled], key: Callable[[Labelled], Hashable]) -> dict[Hashable, Labelled]:
    """The instructions of one side whose key no other of it has."""
    many = Counter(map(key, side))
    return {key(each): each for each in side if many[key(each)] == 1 and key(each) is not None}


def _first(groups: dict[Hashable, list[Labelled]], key: Hashable, used: set[Label]) -> Labelled | None:
    """The first of a group whose label nobody took on yet."""
    return next((each for each in groups.get(key, ()) if each.label not in used), None)


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
