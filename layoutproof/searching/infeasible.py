"""Why there is no tiling: an irreducible infeasible subset of the conditions, and what would have to give.

Conditions are what the file states (constraints, and every part of a variable's range), double buffering, the memory
limit, whole blocks where they are asked for, and the target's own rules. First each is bounded alone, over all
candidates at once. Then a search for them all says which it refused candidates by, and QuickXplain (Junker, AAAI 2004)
finds the fewest of those that still cannot be met: without any one of them the others can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import lcm
from typing import Any

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.size import ceil_div
from layoutproof.core.term import Term
from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.pallas.judge import kernel_target
from layoutproof.searching.branch import DIVIDES, Box, Progress, bounded, search
from layoutproof.searching.legal import MEMORY, Checker, whole
from layoutproof.searching.presolve import Known, presolve
from layoutproof.searching.problem import Problem
from layoutproof.searching.ranges import domain, number_of, resolved

BUDGET = 12_000
"""Boxes looked at for all questions about one problem, at effort 1; where bytes are bounded each counts as three."""
MOST = 240
"""Single candidates that may be found illegal for all of them, at effort 1."""
FEW = 60
"""Boxes of a question before the ends of ranges are looked at by themselves."""
SHARE = 3
"""One question may take this part of the rest of either."""
BEYOND = 1 << 40
"""Values of an unbounded variable are searched up to here: those above the largest size are refused in boxes."""
UNLIMITED = 1 << 1000
FAR = 256
"""Values above the largest size that are tried where a range gives no end."""
LEGAL, VMEM, BUFFERS, WHOLE, CAP = "legal", "VMEM", "double buffering", "whole", "cap"

Domains = dict[tuple[str, str, bool], tuple[int, ...]]
"""By variable, the rest of its range, and whether it has values larger than all sizes."""

Condition = tuple[str, ...]
"""("constraint", text), ("range", variable, key), or one of the words above alone."""


@dataclass(frozen=True, slots=True)
class InfeasibleSubset:
    """conditions: in words; without any one of them the others can be met.
    enough: bytes of VMEM, headroom included, with which everything else that the problem asks can be met, None = no
    amount, or not asked.
    complete: False where a budget ended first; the set is then larger than needed.
    """

    conditions: tuple[str, ...]
    enough: int | None = None
    complete: bool = True


def infeasible_subset(problem: Problem, effort: int = 1) -> InfeasibleSubset:
    """Of a problem without a legal candidate."""
    conditions = stated(problem)
    asked = Questions(problem, effort)
    worth_telling = list(reversed(conditions))
    few = (chosen for n in (1, 2) for chosen in combinations(worth_telling, n) if asked.refused_at_once(chosen))
    found = list(next(few, ()))
    if not found:
        # later conditions are in the set only if the earlier ones do not suffice
        found = _explained(asked, [], [], worth_telling)
    kept, complete = _irreducible(asked, [c for c in conditions if c in found])
    enough = None
    if (VMEM,) in kept:
        enough = least_vmem(problem, [c for c in conditions if c != (VMEM,)], effort)
        # the headroom comes on top
        enough = None if enough is None else ceil_div(enough * 100, 100 - _kept(problem))
    return InfeasibleSubset(tuple(_words(problem, condition) for condition in kept), enough, complete)


def _explained(
    asked: Questions, background: list[Condition], added: list[Condition], conditions: list[Condition]
) -> list[Condition]:
    """QuickXplain: the conditions that conflict with the background. added: its last additions."""
    if added and asked.core(background) is not None:
        return []
    if len(conditions) == 1:
        return conditions
    half = len(conditions) // 2
    first, second = conditions[:half], conditions[half:]
    of_second = _explained(asked, background + first, first, second)
    return _explained(asked, background + of_second, of_second, first) + of_second


def _irreducible(asked: Questions, kept: list[Condition]) -> tuple[list[Condition], bool]:
    """(conditions that cannot all be met, without those that are not needed; whether each of them is shown to be)."""
    complete = True
    for condition in list(kept):
        without = [other for other in kept if other != condition]
        met = asked.met(without)
        if met is False:
            kept = [c for c in without if c in (asked.core(without) or ())]
        complete = complete and met is not None
    return kept, complete


def stated(problem: Problem) -> tuple[Condition, ...]:
    """Every condition of a problem. Those that are least worth telling come first, because they are left out first."""
    # the rules first: without them the other questions are quick, and mostly it can do without
    found: list[Condition] = [(LEGAL,)]
    for key in ("to", "from", "powers_of", "divides", "multiple_of", ""):
        for name, entry in problem.ranges.items():
            if key in entry if isinstance(entry, Mapping) else not key:
                found.append(("range", name, key))
    open_ended = [name for name, entry in problem.ranges.items() if isinstance(entry, Mapping) and "to" not in entry]
    found += [("range", name, CAP) for name in open_ended]
    found += [] if problem.partial else [(WHOLE,)]
    found += [("constraint", text) for text in dict.fromkeys(c.text for c in problem.constraints)]
    operands = problem.declared.kernel.operands
    found += [(BUFFERS,)] if any(o.buffers != 1 and o.memory == "vmem" for o in operands) else []
    return (*found, (VMEM,))


def least_vmem(problem: Problem, kept: Sequence[Condition], effort: int = 1) -> int | None:
    """The least VMEM, in bytes, with which some candidate meets these conditions; None where that is not known."""
    relaxed, _ = _relaxed(problem, kept)
    progress, sure = Questions(problem, effort).search(relaxed, kept, anyone=False)[:2]
    return progress.found[0].cost if sure and progress.found else None


class Questions:
    """Which conditions of one problem can be met together: each set is searched once, within one budget for all.

    A subset of a feasible set is feasible, and a superset of an infeasible set is infeasible: those are not searched.
    """

    def __init__(self, problem: Problem, effort: int = 1) -> None:
        self._problem, self._boxes, self._judged = problem, BUDGET * effort, MOST * effort
        self._met: list[frozenset[Condition]] = []
        self._cores: list[tuple[Condition, ...]] = []
        self._unknown: set[frozenset[Condition]] = set()
        self._domains: Domains = {}
        self._refused: Known = {}

    def met(self, kept: Sequence[Condition]) -> bool | None:
        """Whether some candidate meets all of these; None = unknown within the budget."""
        if self.core(kept) is not None:
            return False
        return True if any(set(kept) <= known for known in self._met) else None

    def core(self, kept: Sequence[Condition]) -> tuple[Condition, ...] | None:
        """Some of these that cannot be met together, as far as a search tells; None if they can, or if unknown."""
        asked = frozenset(kept)
        known = next((core for core in self._cores if asked.issuperset(core)), None)
        if known is not None or asked in self._unknown or any(asked <= one for one in self._met):
            return known
        # the condition that judges candidates one by one is left out first: often the rest is enough
        if (LEGAL,) in asked and len(asked) > 1:
            core = self.core([c for c in kept if c != (LEGAL,)])
            if core is not None:
                return core
        found = self._searched(kept)
        if found is None:
            self._unknown.add(asked)
        elif found:
            self._cores.append(found)
        else:
            self._met.append(asked)
        return found or None

    def refused_at_once(self, kept: Sequence[Condition]) -> bool:
        """Whether bounds over all candidates at once show that these conditions cannot be met."""
        relaxed, known = _relaxed(self._problem, kept, self._domains)
        for name in _endless(self._problem, kept):
            relaxed = replace(relaxed, variables={**relaxed.variables, name: range(1, BEYOND)})
        rules = [(c.text, c.condition) for c in relaxed.constraints]
        whole_box = tuple((0, len(values) - 1) for values in relaxed.variables.values())
        return known and bool(rules or (VMEM,) in kept) and bool(_refused(relaxed, whole_box, rules))

    def _searched(self, kept: Sequence[Condition]) -> tuple[Condition, ...] | None:
        """() where a candidate meets these, those that a search refuses all candidates by, None where it is unknown."""
        relaxed, known = _relaxed(self._problem, kept, self._domains)
        endless, used = _endless(self._problem, kept), set[Condition]()
        # above the largest size there are too many values for a list: whole boxes of them have to be refused
        for above in product((False, True), repeat=len(endless)):
            ranges = {name: _above(self._problem, name, kept) for name, far in zip(endless, above, strict=True) if far}
            part = replace(relaxed, variables={**relaxed.variables, **ranges})
            progress, sure, more = self.search(part, [c for c in kept if not ranges or c != (LEGAL,)])
            if sure and progress.found and not ranges:
                return ()
            if not (sure and known) or progress.found:
                return None
            used |= more
        return tuple(c for c in kept if c[0] in ("range", BUFFERS) or c in used)

    def search(
        self, problem: Problem, kept: Sequence[Condition], anyone: bool = True
    ) -> tuple[Progress, bool, set[Condition]]:
        """(a search for the least VMEM, or for anyone; whether it ended; the conditions that refused anything)."""
        shapes = tuple(replace(shape, weight=1) for shape in problem.shapes)
        small = replace(problem, cost=Term("name", "vmem"), worst=True, shapes=shapes)
        rules = (LEGAL,) in kept
        refuses = Checker(small, but=() if (VMEM,) in kept else (MEMORY,)) if rules else whole(small)
        target = kernel_target(problem.target, problem.compiler) if rules else None
        small, removed = presolve(small, target, self._refused)
        looked, most, spent = 0, ceil_div(self._judged, SHARE), False

        def check(values: Mapping[str, int]) -> str:
            nonlocal looked, spent
            if not rules and small.partial:
                return ""
            looked += 1
            spent = spent or looked > most
            # over the budget every candidate passes, so that the search ends; `spent` says that this proves nothing
            return "" if spent else refuses(values)

        spoken = {name for c in small.constraints for name in c.condition.names()}
        divides = small.flops is not None and any(sign in str(small.flops) for sign in ("//", "%"))
        moves = divides or not spoken.isdisjoint({"time", "bytes", "flops", "padding"})
        weight = 3 if moves else 1
        most_boxes = ceil_div(self._boxes, SHARE * weight)
        progress = search(small, check, 1, 1, min(FEW, most_boxes) if anyone else most_boxes, anyone, moves)
        boxes, reasons = progress.boxes, [one.first.partition(": ")[2] for one in removed]
        if not progress.complete and not spent and boxes < most_boxes:
            small, cut_off, looked_at = _shaved(small, moves)
            progress = search(small, check, 1, 1, most_boxes - boxes, anyone, moves)
            boxes, reasons = boxes + looked_at + progress.boxes, [*reasons, *cut_off]
        self._boxes -= boxes * weight
        self._judged -= looked
        reasons += progress.refused
        return progress, progress.complete and not spent, {c for why in reasons for c in _blamed(why, kept)}


def _shaved(problem: Problem, moves: bool) -> tuple[Problem, list[str], int]:
    """(the problem without values at the ends of a variable's range that bounds refuse whatever the other variables
    are; why those are refused; how many boxes were looked at)."""
    rules = [(c.text, c.condition) for c in problem.constraints]
    domains, reasons, boxes, changed = list(problem.variables.values()), list[str](), 0, problem.count() > 0
    box = [(0, len(values) - 1) for values in domains]
    while changed:
        changed = False
        for k, last in product(range(len(box)), (False, True)):
            size = 1 << (box[k][1] - box[k][0] + 1).bit_length()
            while size := size // 2:
                low, high = box[k]
                if size > high - low:
                    continue
                end, rest = (low, low + size - 1), (low + size, high)
                if last:
                    end, rest = (high - size + 1, high), (low, high - size)
                boxes += 1
                refused = _refused(problem, (*box[:k], end, *box[k + 1 :]), rules, moves)
                if refused:
                    box[k], changed = rest, True
                    reasons.append(refused)
    named = zip(problem.variables, domains, box, strict=True)
    left = {name: values[low : high + 1] for name, values, (low, high) in named}
    return replace(problem, variables=left), reasons, boxes


def _refused(problem: Problem, box: Box, rules: Sequence[tuple[str, Term]], moves: bool = True) -> str:
    """Why bounds refuse a whole box, "" = they do not."""
    try:
        return bounded(problem, box, rules, moves)[0]
    except (Undecided, ZeroDivisionError):
        return ""


def _blamed(why: str, kept: Sequence[Condition]) -> list[Condition]:
    """The conditions that a reason of a search may come from."""
    if ("constraint", why) in kept:
        # bounds of a constraint take it that the memory limit is kept
        return [("constraint", why), *([(VMEM,)] if "vmem" in why and (VMEM,) in kept else [])]
    if why == VMEM:
        return [(VMEM,)]
    return [c for c in kept if c[0] in (LEGAL, WHOLE, VMEM)] if why != DIVIDES else list(kept)


def _endless(problem: Problem, kept: Sequence[Condition]) -> list[str]:
    """The variables that nothing bounds from above."""
    ends = {name: "to" if isinstance(entry, Mapping) and "to" in entry else CAP if isinstance(entry, Mapping) else ""
            for name, entry in problem.ranges.items()}  # fmt: skip
    return [name for name, end in ends.items() if ("range", name, end) not in kept]


def _above(problem: Problem, name: str, kept: Sequence[Condition]) -> Sequence[int]:
    """The values above the largest size that these conditions leave to a variable without an end, at least."""
    left = {key: value for key, value in problem.ranges[name].items() if ("range", name, key) in kept} if isinstance(
        problem.ranges[name], Mapping) else {}  # fmt: skip
    left = resolved(left, problem.shapes)
    low, step = max(_largest(problem) + 1, left.get("from", 1)), left.get("multiple_of", 1)
    if "powers_of" in left:
        powers = (left["powers_of"] ** k for k in range(BEYOND.bit_length()))
        return tuple(value for value in powers if low <= value < BEYOND)
    high = BEYOND
    if "divides" in left:
        with suppress(ZeroDivisionError):
            high = min(number_of(left["divides"], shape) for shape in problem.shapes) + 1
    return range(ceil_div(low, step) * step, high, step)


def _relaxed(problem: Problem, kept: Sequence[Condition], domains: Domains | None = None) -> tuple[Problem, bool]:
    """(the problem with these conditions only, whether every range could be widened). domains: those known already."""
    known, variables, domains = True, dict(problem.variables), {} if domains is None else domains
    for name, entry in problem.ranges.items():
        left: Any = {key: value for key, value in entry.items() if ("range", name, key) in kept} if isinstance(
            entry, Mapping
        ) else entry if ("range", name, "") in kept else {}  # fmt: skip
        bounded = isinstance(entry, Mapping) and "to" not in entry and ("range", name, CAP) in kept
        beyond = not bounded
        if left != entry or beyond:
            asked = (name, str(left), beyond)
            if asked not in domains:
                with suppress(LayoutError):
                    further = beyond and isinstance(left, Mapping) and "to" not in left
                    domains[asked] = domain(left, problem.shapes) + (_beyond(name, left, problem) if further else ())
            known = known and asked in domains
            variables[name] = domains.get(asked, variables[name])
    declared = problem.declared
    kernel = declared.kernel
    if (BUFFERS,) not in kept and (BUFFERS,) in stated(problem):
        kernel = replace(kernel, operands=tuple(replace(operand, buffers=1) for operand in kernel.operands))
    relaxed = replace(
        problem,
        kernels=replace(declared, model=replace(declared.model, kernel=kernel)),
        variables=variables,
        constraints=tuple(c for c in problem.constraints if ("constraint", c.text) in kept),
        limit=problem.limit if (VMEM,) in kept else UNLIMITED,
        partial=problem.partial or (WHOLE,) not in kept,
    )
    return relaxed, known


def _beyond(name: str, left: Mapping[str, object], problem: Problem) -> tuple[int, ...]:
    """Some values above the largest size, the limit of an unbounded variable: adjacent ones, and far ones. The bound
    belongs to an infeasible subset which one of them makes feasible.
    """
    left = resolved(left, problem.shapes)
    largest, step, found = _largest(problem), left.get("multiple_of", 1), set[int]()
    far = {"multiple_of": lcm(step, largest), "to": lcm(step, largest) * FAR}
    for more in ({"to": largest + FAR * step}, far):
        low = max(left.get("from", 1), largest + 1)
        with suppress(LayoutError):
            found.update(domain({**left, **more, "from": low}, problem.shapes))
    return tuple(sorted(found))


def _largest(problem: Problem) -> int:
    return max(max(shape.sizes.values()) for shape in problem.shapes)


def _words(problem: Problem, condition: Condition) -> str:
    match condition:
        case ("constraint", text):
            return text
        case ("range", name, key):
            if key == CAP:
                return f"{name} <= {_largest(problem)}, the largest size"
            return _range_words(name, key, problem.ranges[name])
        case ("VMEM",):
            most = CHIPS[problem.target].vmem / 2**20
            free = f"; {_kept(problem)}% of the limit is kept free" if _kept(problem) else ""
            return f"{problem.vmem / 2**20:.2f} MiB of VMEM ({problem.target} has {most:.2f}{free})"
        case ("legal",):
            return f"the rules of {problem.target}"
        case ("whole",):
            return "blocks that do not reach over an edge"
    return "double buffering"


def _kept(problem: Problem) -> int:
    """The percentage of VMEM that is kept free."""
    return problem.kept_free(problem.declared.kernel).percent


def _range_words(name: str, key: str, entry: Any) -> str:
    if not key:
        return f"{name} in {entry}"
    value = entry[key]
    said = {
        "from": f"{name} >= {value}",
        "to": f"{name} <= {value}",
        "multiple_of": f"{name} % {value} == 0",
        "powers_of": f"{name} a power of {value}",
    }
    return said.get(key, f"{name} divides {value}")
