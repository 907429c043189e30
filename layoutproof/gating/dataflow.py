"""Differences in computed values: the first instructions, from the operands on, at which two programs differ.

Both are labelled by the values that they compute (`labels`), independent of names. If the labels of the results are
equal, the programs compute the same. Otherwise both are walked from their results to their operands, side by side, as
long as labels differ: below equal operations the operands are compared; the first unequal operations are one finding.
Differences that other comparisons report are left to these: kernels and other custom calls, collectives, and the
consequences of arguments of another shape.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from layoutproof.core.errors import shorten
from layoutproof.core.finding import Finding, unknown
from layoutproof.core.message import extended
from layoutproof.gating import problems
from layoutproof.gating.compiled_program import title
from layoutproof.gating.labels import InstructionLabel, Label, LabelledPair, Labels, Tuple, Value, commutes
from layoutproof.gating.program import MOST_NESTED, DumpProgram
from layoutproof.hlo.collectives import KINDS
from layoutproof.hlotext.texts import logical

_COMPARED = frozenset(("custom-call", *KINDS))
"""Opcodes that are compared by what they do, each with all of its kind."""
GROUPS = frozenset(("add", "multiply", "maximum", "minimum", "and", "or", "xor"))
"""Associative and commutative operations, over the reals."""
MOST_COMBINED = 64
_REARRANGE = ("transpose", "reshape", "bitcast")
"""Operations that a compiler puts at other places when it chooses other layouts."""
COMPUTED = ("computation_differs", "operation", "operands")
"""Classes that say that an instruction computes something else."""
MOST = 10
"""Findings of one pair of programs; further ones are counted."""


def dataflow(pair: LabelledPair) -> list[Finding]:
    """The instructions at which two programs compute something else."""
    if pair.alike or pair.before.errors or pair.after.errors:
        # a broken text is reported as such
        return []
    if any(map(_lacks_parameters, (pair.before, pair.after))):
        return []
    walk = _PairWalk(*pair.kept)
    walk.results()
    if not walk.found and not walk.excused:
        return [unknown("what is computed", problems.NOT_SHOWN_SAME())]
    found = sorted(walk.found, key=lambda each: each.line)
    if len(found) > MOST:
        more = f"; {len(found) - MOST} more instructions differ"
        found = [*found[: MOST - 1], replace(found[MOST - 1], reason=extended(found[MOST - 1].reason, more))]
    return found


def _lacks_parameters(program: DumpProgram) -> bool:
    """Whether a broken text has instructions for more parameters than the entry says: it contradicts itself."""
    return any(each.number >= len(program.parameters) for each in program.entered)


class _PairWalk:
    """Two programs side by side.

    now: label of the new one -> the label of what it stands for in the old one.  excused: whether something differs
    that another comparison says, or that comes to the same.
    """

    def __init__(self, before: Labels, after: Labels) -> None:
        self.before, self.after = before, after
        self.found: list[Finding] = []
        self.excused = False
        self.now: dict[Label, Label] = {}
        self.ran: set[tuple[str, str]] = set()
        self.told: set[int] = set()
        self.todo: list[tuple[Label, Label, InstructionLabel, InstructionLabel]] = []
        # arguments of another shape make other shapes everywhere, and the entry says it
        shapes = [[logical(each.shape) for each in side.program.parameters] for side in (before, after)]
        self.resized = shapes[0] != shapes[1]

    def results(self) -> None:
        """Everything that the programs' results are computed from."""
        self._computations(self.before.entry, self.after.entry)
        while self.todo:
            self._pair(*self.todo.pop())

    @property
    def sides(self) -> tuple[Labels, Labels]:
        return self.before, self.after

    def _computations(self, old: str, new: str) -> None:
        """Two computations: their results, and what they do besides."""
        if (old, new) in self.ran:
            return
        self.ran.add((old, new))
        values = [side.results.get(name) for side, name in zip(self.sides, (old, new), strict=True)]
        users = [_result(side, name) for side, name in zip(self.sides, (old, new), strict=True)]
        if values[0] is not None and values[1] is not None and users[0] is not None and users[1] is not None:
            self._values(values[0], values[1], users[0], users[1])
        self._effects(*(side.effects.get(name, ()) for side, name in zip(self.sides, (old, new), strict=True)))

    def _effects(self, olds: Sequence[Label], news: Sequence[Label]) -> None:
        """The side effects of two computations; another comparison counts those of kernels and other custom calls."""
        gone, fresh = ([each for each in one if each not in other] for one, other in ((olds, news), (news, olds)))
        kinds: dict[str, list[InstructionLabel]] = defaultdict(list)
        for each in gone:
            kinds[self.before.made[each].own].append(self.before.made[each])
        for label in fresh:
            new = self.after.made[label]
            if kinds[new.own]:
                old = kinds[new.own].pop(0)
                self._operands(old.given, new.given, old, new)
            elif not self._told(new, new):
                self._say("computation_differs", new, new, problems.DONE_NEWLY())
            else:
                self.excused = True

    def _values(self, old: Value, new: Value, user: InstructionLabel, now: InstructionLabel) -> None:
        if isinstance(old, Tuple) and isinstance(new, Tuple):
            self._operands(old.parts, new.parts, user, now)
        else:
            self.todo.append((_label(old), _label(new), user, now))

    def _operands(
        self, olds: Collection[Value], news: Collection[Value], user: InstructionLabel, now: InstructionLabel
    ) -> None:
        """Each of the old operands beside the new one in its place; where any order will do, without what both have."""
        ones, others = [*map(_label, olds)], [*map(_label, news)]
        free = commutes(now.own)
        if Counter(ones) == Counter(others):
            if ones != others and not free and id(now.what) not in self.told:
                self._say("operands", user, now, problems.OPERAND_ORDER())
            return
        if len(ones) != len(others):
            self.excused = True  # the entry says so, or the caller
            return
        rest = [(one, other) for one, other in zip(ones, others, strict=True) if one != other]
        ones, others = [one for one, _ in rest], [other for _, other in rest]
        both = Counter(ones) & Counter(others)
        lesses = _less(ones, both), _less(others, both)
        if free or (both and self._alike_each(*lesses)):
            if not free:
                self._say("operands", user, now, problems.OPERANDS_MOVED())
            ones, others = self._by_kind(lesses[0], lesses[1]) if free else lesses
        for one, other in reversed([*zip(ones, others, strict=True)]):
            if one != other:
                self.todo.append((one, other, user, now))

    def _pair(self, a: Label, b: Label, user: InstructionLabel, now: InstructionLabel) -> None:
        """Compares two different instructions in one place of both programs."""
        known = self.now.get(b)
        if a == b or known == a:
            return
        old, new = _at(self.before, a, user), _at(self.after, b, now)
        if old is None or new is None:
            return
        alike = (old.own, len(old.given)) == (new.own, len(new.given))
        there = known is not None or b in self.before.made
        if alike and (not there or self._valued(old, new)):
            self._bind(a, b)
            self._alike(old, new)
        elif self._valued(old, new) or (self._of_the_same(old, new) and not (there and a in self.after.made)):
            self._bind(a, b)
            self._other(old, new)
            return
        elif there or a in self.after.made:
            self._operand(old, new, user, now)
            return
        else:
            self._bind(a, b)
            self._parted(old, new)
            one, other = (each.own.partition("\0")[0] for each in (old, new))
            if not (one == other and one in _COMPARED) and {*old.given}.isdisjoint(self._mapped(new)):
                return  # nothing says which operand is which
        if not self._regrouped(old, new):
            self._operands(old.given, new.given, old, new)

    def _by_kind(self, olds: list[Label], news: list[Label]) -> tuple[list[Label], list[Label]]:
        """Operands in any order, those of one operation beside each other."""
        kinds = [self.before.made[each].own if each in self.before.made else "" for each in olds]
        ones, others, rest = list[Label](), list[Label](), list[Label]()
        for label in news:
            own = self.after.made[label].own if label in self.after.made else ""
            if own in kinds:
                at = kinds.index(own)
                del kinds[at]
                ones.append(olds.pop(at))
                others.append(label)
            else:
                rest.append(label)
        return [*ones, *olds], [*others, *rest]

    def _alike_each(self, olds: Sequence[Label], news: Sequence[Label]) -> bool:
        """Whether values stand for one another: operations of one kind, or of the same operands."""
        pairs = [(self.before.made.get(a), self.after.made.get(b)) for a, b in zip(olds, news, strict=True)]
        return all(
            old is not None and new is not None and (old.own == new.own or self._of_the_same(old, new))
            for old, new in pairs
        )

    def _of_the_same(self, old: InstructionLabel, new: InstructionLabel) -> bool:
        """Whether the same operands go into both; of none, whether both are of one opcode."""
        if not old.given and not new.given:
            return old.what.opcode == new.what.opcode
        return Counter(self._mapped(new)) == Counter(old.given)

    def _bind(self, a: Label, b: Label) -> None:
        """The new label stands in the old one's place: equal uses of both are no difference."""
        self.now.setdefault(b, a)

    def _regrouped(self, old: InstructionLabel, new: InstructionLabel) -> bool:
        """Whether both combine the same values, in pairs that are made otherwise: `(a * b) * c` and `a * (b * c)`."""
        if old.own != new.own or old.own not in GROUPS:
            return False
        ones, others = _combined(self.before, old), _combined(self.after, new)
        same = len(ones) > 2 and Counter(ones) == Counter(self.now.get(each, each) for each in others)
        self.excused |= same
        return same

    def _alike(self, old: InstructionLabel, new: InstructionLabel) -> None:
        """The same operation: in a computation that it runs it parts, or in its operands."""
        for one, other in zip(old.runs, new.runs, strict=False):
            if self.before.label(one) != self.after.label(other):
                self._computations(one, other)
        if old.shape != new.shape and old.given == new.given and not self.resized:
            why = problems.RESULT_TYPE(new.what.opcode, new.shape, old.shape)
            self._say("reshaped_result", old, new, why)

    def _told(self, old: InstructionLabel, new: InstructionLabel) -> bool:
        """Whether another comparison reports it: changes of kernels and collectives, and consequences of other
        arguments."""
        if all(each.own.partition("\0")[0] in _COMPARED for each in (old, new)):
            self.excused = True
            return True
        sizes = old.shape != new.shape or self._shapes(self.before, old) != self._shapes(self.after, new)
        self.excused |= self.resized and sizes
        return self.resized and sizes

    def _other(self, old: InstructionLabel, new: InstructionLabel) -> None:
        """Another operation of the same operands, or another value."""
        if self._told(old, new):
            return
        one, other = _said(old), _said(new)
        words = [shorten(each, 120) for each in (other, one)]
        if old.own.startswith("element ") and new.own.startswith("element "):
            elements = [each.own.removeprefix("element ") for each in (old, new)]
            why = problems.TUPLE_ELEMENT(elements[1], elements[0])
            self._say("operands", old, new, why)
        elif old.own.startswith("constant\0") and new.own.startswith("constant\0"):
            self._say("constant", old, new, problems.NOW_BEFORE(words[0], words[1]), one, other)
        else:
            self._say("operation", old, new, problems.NOW_BEFORE_SAME_OPERANDS(words[0], words[1]), one, other)

    def _parted(self, old: InstructionLabel, new: InstructionLabel) -> None:
        """One operation in the place of another, of other operands."""
        if self._told(old, new):
            return
        why: str = problems.NOW_BEFORE(_text(new), _text(old))
        if any(each.own.partition("\0")[0] in _REARRANGE for each in (old, new)):
            why = extended(
                why, ": dimensions stand in another order from here up, and whether the same is computed is not decided"
            )
            self._say("unknown", old, new, why)
        else:
            self._say("computation_differs", old, new, why)

    def _mapped(self, new: InstructionLabel) -> tuple[Label, ...]:
        return tuple([self.now.get(each, each) for each in new.given])

    def _shapes(self, side: Labels, of: InstructionLabel) -> list[str]:
        return [side.made[each].shape if each in side.made else "" for each in of.given]

    def _valued(self, old: InstructionLabel, new: InstructionLabel) -> bool:
        """Whether both are constants, or made of one alike: one of another value may be there elsewhere, too."""
        for _ in range(MOST_NESTED):
            if old.shape != new.shape:
                return False
            if old.own.startswith("constant\0") and new.own.startswith("constant\0"):
                return True
            if old.own != new.own or len(old.given) != 1 or len(new.given) != 1:
                return False
            old, new = (side.made.get(of.given[0], of) for side, of in zip(self.sides, (old, new), strict=True))
        return False

    def _operand(
        self, old: InstructionLabel, new: InstructionLabel, user: InstructionLabel, now: InstructionLabel
    ) -> None:
        """An operand that is another value: one that the old program has elsewhere, or that stands elsewhere now."""
        if self.resized and old.shape != new.shape:
            self.excused = True
            return
        result = user.own == "result"
        whose = "the result" if result else "an operand"
        why = problems.OPERAND_IS(whose, _text(new), _text(old))
        self._say("computation_differs", user, now, why)

    def _say(
        self,
        kind: str,
        old: InstructionLabel,
        new: InstructionLabel,
        why: str,
        before: str | None = None,
        after: str | None = None,
    ) -> None:
        """One finding for each instruction of the new text."""
        if id(new.what) in self.told:
            return
        self.told.add(id(new.what))
        of = new.what
        sides: dict[str, Any] = {
            "before": _call(old) if before is None else before,
            "after": _call(new) if after is None else after,
            "line": of.line,
        }
        why = extended(why, f" (line {old.what.line} of the old text)")
        subject = title(of.base, of.op_name)
        self.found.append(unknown(subject, why, **sides) if kind == "unknown" else Finding(kind, subject, why, **sides))


def _label(value: Value) -> Label:
    return value if isinstance(value, bytes) else value.label


def _result(side: Labels, computation: str) -> InstructionLabel | None:
    """A computation's result as one that uses what it is."""
    inside = side.program.named.get(computation, {})
    return next((InstructionLabel(each, "result", "", ()) for each in inside.values() if each.root), None)


def _at(side: Labels, label: Label, user: InstructionLabel) -> InstructionLabel | None:
    """The instruction with a label; of several the one that an instruction uses."""
    made = side.made.get(label)
    if made is None:
        return None
    where = user.what.computation
    for name in user.what.operands:
        if side.of.get((where, name)) == label:
            of = side.program.named[where][name]
            return made._replace(what=of) if of.opcode == made.what.opcode else made
    return made


def _combined(side: Labels, of: InstructionLabel) -> list[Label]:
    """The values that an operation and those of its kind above it combine."""
    found, todo = list[Label](), [*of.given]
    while todo and len(found) < MOST_COMBINED:
        label = todo.pop()
        made = side.made.get(label)
        if made is not None and made.own == of.own and made.shape == of.shape:
            todo += made.given
        else:
            found.append(label)
    return [*found, *todo]


def _less(labels: list[Label], both: Counter[Label]) -> list[Label]:
    left, found = Counter(both), []
    for each in labels:
        if left[each] > 0:
            left[each] -= 1
        else:
            found.append(each)
    return found


def _said(of: InstructionLabel) -> str:
    """The operation and what it says of itself."""
    return of.own.replace("\0", " ").strip()


def _call(of: InstructionLabel) -> str:
    return f"{of.what.opcode}({', '.join(of.what.operands)})"


def _text(of: InstructionLabel) -> str:
    if of.what.opcode in ("constant", "parameter"):
        return shorten(_said(of), 80)
    return f"{shorten(_said(of), 80)} of {shorten(', '.join(of.what.operands) or 'nothing', 80)} (line {of.what.line})"
