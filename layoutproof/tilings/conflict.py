"""Why there is no tiling: a smallest set of conditions that cannot hold together, and what would have to give.

Conditions are what the file states (constraints, and every part of a variable's range), double buffering, the memory
limit, whole blocks where they are asked for, and the target's own rules. One after the other is left out; it stays out
where the rest still cannot be met. What is left cannot be met, and without any one of it can (a deletion filter).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import lcm
from typing import Any

from layoutproof.core.errors import LayoutError
from layoutproof.core.size import ceil_div
from layoutproof.core.term import Term
from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.pallas.judge import kernel_target
from layoutproof.tilings.branch import search
from layoutproof.tilings.legal import MEMORY, Checker, whole
from layoutproof.tilings.presolve import presolve
from layoutproof.tilings.problem import Problem
from layoutproof.tilings.ranges import domain

BUDGET = 20_000
"""Boxes looked at for each question, at effort 1; a fifth of them where bytes are bounded, which takes five times as
long: random problems settle in some hundred boxes, or not at all."""
MOST = 200
"""Single candidates that may be found illegal before a question of this file is given up."""
UNLIMITED = 1 << 1000
FAR = 256
"""Values above the largest size that are tried where a range gives no end."""
LEGAL, VMEM, BUFFERS, WHOLE, CAP = "legal", "VMEM", "double buffering", "whole", "cap"

Condition = tuple[str, ...]
"""("constraint", text), ("range", variable, key), or one of the words above alone."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """conditions: in words; without any one of them the others can be met.
    enough: bytes of VMEM, headroom included, with which everything else that the problem asks can be met, None = no
    amount, or not asked.
    complete: False where a budget ended first; the set is then larger than needed.
    """

    conditions: tuple[str, ...]
    enough: int | None = None
    complete: bool = True


def conflict(problem: Problem, effort: int = 1) -> Conflict:
    """The conflict of a problem without a legal candidate."""
    conditions = stated(problem)
    kept, unsure = list(conditions), False
    for condition in conditions:
        without = [other for other in kept if other != condition]
        possible = can_be_met(problem, without, effort)
        if possible is None and CAP in condition:
            unsure = True
        elif possible is None:
            # the next questions are of the same kind, and would cost as much
            return Conflict(tuple(_words(problem, condition) for condition in kept), None, complete=False)
        elif not possible:
            kept = without
    enough = None
    if (VMEM,) in kept:
        enough = least_vmem(problem, [c for c in conditions if c != (VMEM,)], effort)
        # what is kept free comes on top
        enough = None if enough is None else ceil_div(enough * 100, 100 - problem.headroom.percent)
    return Conflict(tuple(_words(problem, condition) for condition in kept), enough, complete=not unsure)


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
    found += [(BUFFERS,)] if any(o.buffers != 1 and o.memory == "vmem" for o in problem.kernel.operands) else []
    return (*found, (VMEM,))


def can_be_met(problem: Problem, kept: Sequence[Condition], effort: int = 1) -> bool | None:
    """Whether some candidate meets these conditions; None = unknown within the budget."""
    relaxed, known = _relaxed(problem, kept)
    found, sure = _smallest(relaxed, kept, effort, anyone=True)
    if found is None and not (sure and known):
        return None
    return found is not None


def least_vmem(problem: Problem, kept: Sequence[Condition], effort: int = 1) -> int | None:
    """The least VMEM, in bytes, with which some candidate meets these conditions; None where that is not known."""
    relaxed, _ = _relaxed(problem, kept)
    found, sure = _smallest(relaxed, kept, effort)
    return found if sure else None


def _smallest(
    problem: Problem, kept: Sequence[Condition], effort: int, anyone: bool = False
) -> tuple[int | None, bool]:
    """(the least VMEM of candidates that meet the conditions, or that of anyone of them; whether this is proved).

    None and True: it is proved that there is none.
    """
    shapes = tuple(replace(shape, weight=1) for shape in problem.shapes)
    small = replace(problem, cost=Term("name", "vmem"), worst=True, shapes=shapes)
    rules = (LEGAL,) in kept
    refuses = Checker(small, but=() if (VMEM,) in kept else (MEMORY,), effort=effort) if rules else whole(small, effort)
    small, _ = presolve(small, kernel_target(problem.target, problem.compiler) if rules else None)
    looked, spent = 0, False

    def check(values: Mapping[str, int]) -> str:
        nonlocal looked, spent
        if (LEGAL,) not in kept and small.partial:
            return ""
        looked += 1
        spent = spent or looked > MOST * effort
        # over the budget every candidate passes, so that the search ends; `spent` says that this proves nothing
        return "" if spent else refuses(values)

    spoken = {name for c in small.constraints for name in c.condition.names()}
    divides = small.flops is not None and any(sign in str(small.flops) for sign in ("//", "%"))
    moves = divides or not spoken.isdisjoint({"time", "bytes", "flops", "padding"})
    progress = search(small, check, 1, effort, BUDGET // 5 if moves else BUDGET, anyone, moves)
    if spent or not progress.complete:
        return None, False
    return (progress.found[0].cost, True) if progress.found else (None, True)


def _relaxed(problem: Problem, kept: Sequence[Condition]) -> tuple[Problem, bool]:
    """(the problem with these conditions only, whether every range could be widened)."""
    known, variables = True, dict(problem.variables)
    for name, entry in problem.ranges.items():
        left: Any = {key: value for key, value in entry.items() if ("range", name, key) in kept} if isinstance(
            entry, Mapping
        ) else entry if ("range", name, "") in kept else {}  # fmt: skip
        bounded = isinstance(entry, Mapping) and "to" not in entry and ("range", name, CAP) in kept
        beyond = not bounded
        if left != entry or beyond:
            try:
                variables[name] = domain(left, problem.shapes)
                if beyond and isinstance(left, Mapping) and "to" not in left:
                    variables[name] += _beyond(name, left, problem)
            except LayoutError:
                known = False
    kernel = problem.kernel
    if (BUFFERS,) not in kept and (BUFFERS,) in stated(problem):
        kernel = replace(kernel, operands=tuple(replace(operand, buffers=1) for operand in kernel.operands))
    relaxed = replace(
        problem,
        kernel=kernel,
        variables=variables,
        constraints=tuple(c for c in problem.constraints if ("constraint", c.text) in kept),
        vmem=problem.vmem if (VMEM,) in kept else UNLIMITED,
        partial=problem.partial or (WHOLE,) not in kept,
    )
    return relaxed, known


def _beyond(name: str, left: Mapping[str, Any], problem: Problem) -> tuple[int, ...]:
    """Some values above the largest size, up to which a variable goes that nobody bounds: those next to it, and far
    ones. They are there to be found: a conflict that one of them ends needs that bound.
    """
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
            free = f"; {problem.headroom.percent}% of the limit is kept free" if problem.headroom.percent else ""
            return f"{problem.vmem / 2**20:.2f} MiB of VMEM ({problem.target} has {most:.2f}{free})"
        case ("legal",):
            return f"the rules of {problem.target}"
        case ("whole",):
            return "blocks that do not reach over an edge"
    return "double buffering"


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
