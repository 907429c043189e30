"""Which parameter of one program is which of the other: by its name in the user's program, then by its position.

JAX names them (`params['w']`), so that one more argument is one change, not one for each argument after it. Callers
give them by position: where the order of those that both have changed, each that moved is a change of the entry.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import replace

from layoutproof.changes.program import DumpProgram
from layoutproof.core.finding import Finding
from layoutproof.hlotext.texts import logical


def aligned(before: DumpProgram, after: DumpProgram) -> DumpProgram:
    """The old program with the parameters' numbers that the new one gives them.

    A parameter that only the new one has is there with no shape; one that only the old one has comes after all of the
    new one, its name in `gone`. `positions` has the old numbers.
    """
    pairs = _pairs(before, after)
    if pairs is None or all(old == new for old, new in pairs.items()):
        return before
    count = len(after.parameters)
    numbers = dict(pairs)
    for old in range(len(before.parameters)):
        if old not in numbers:
            numbers[old] = count
            count += 1
    shapes = [""] * count
    for old, new in numbers.items():
        shapes[new] = before.parameters[old]
    names = _names(before)
    named = dict(before.named)
    for computation, inside in before.named.items():
        if any(each.entry and each.number >= 0 for each in inside.values()):
            named[computation] = {
                name: each._replace(number=numbers.get(each.number, each.number)) if each.number >= 0 else each
                for name, each in inside.items()
            }
    return replace(
        before,
        parameters=shapes,
        donations={(numbers.get(of, of), index): words for (of, index), words in before.donations.items()},
        named=named,
        gone={new: names.get(old, "") for old, new in numbers.items() if new >= len(after.parameters)},
        positions={new: old for old, new in numbers.items()},
    )


def moved_parameters(before: DumpProgram, after: DumpProgram) -> list[Finding]:
    """Parameters that both have and that stand in another order: `before` as `aligned` gives it."""
    both = sorted((old, new) for new, old in before.positions.items() if new < len(after.parameters))
    kept = _in_order([new for _, new in both])
    lines = {i.number: i.line for i in after.entered}
    names = _names(after)
    found = []
    for old, new in both:
        if new not in kept:
            name = f" ({names[new]})" if names.get(new) else ""
            why = f"it is parameter {new} now, {old} before: callers give arguments by position"
            sides = {"before": f"parameter {old}", "after": f"parameter {new}"}
            found.append(Finding("abi", f"order of parameter {new}{name}", why, line=lines.get(new, 1), **sides))  # type: ignore[arg-type]
    return found


def shifted(before: DumpProgram, after: DumpProgram, number: int, gone: bool) -> str:
    """What a new or gone parameter does to the positions of those after it."""
    if gone:
        at = before.positions.get(number, number)
        many = sum(1 for new, old in before.positions.items() if new < len(after.parameters) and old > at)
    else:
        many = sum(1 for new in before.positions if number < new < len(after.parameters))
    return f"; {many} after it stand elsewhere" if many else ""


def _names(program: DumpProgram) -> dict[int, str]:
    """Of the entry's parameters; a broken text may have instructions for more of them than the entry says."""
    count = len(program.parameters)
    return {i.number: i.op_name for i in program.entered if i.number < count}


def _pairs(before: DumpProgram, after: DumpProgram) -> dict[int, int] | None:
    """Old number -> new number of each that both have; None where positions say it all.

    By names that are there once on each side. What is left is paired in its order where both sides have as many, or
    where its shapes are the same, otherwise it is new or gone.
    """
    names, others = _names(before), _names(after)
    if not names or not others:
        return None
    once = [{name for name, count in Counter(side.values()).items() if count == 1 and name} for side in (names, others)]
    numbers = {name: number for number, name in others.items()}
    pairs = {old: numbers[name] for old, name in names.items() if name in once[0] & once[1]}
    taken = set(pairs.values())
    left = [old for old in range(len(before.parameters)) if old not in pairs]
    right = [new for new in range(len(after.parameters)) if new not in taken]
    if not pairs and len(left) != len(right):
        return None
    if len(left) == len(right):
        return pairs | dict(zip(left, right, strict=True))
    open_ = [*right]
    for old in left:
        alike = (new for new in open_ if logical(after.parameters[new]) == logical(before.parameters[old]))
        new = next(alike, None) if not names.get(old) else None
        if new is not None:
            pairs[old] = new
            open_.remove(new)
    return pairs


def _in_order(numbers: list[int]) -> set[int]:
    """A largest part of some different numbers that ascends as it stands.

    >>> sorted(_in_order([0, 3, 1, 2]))
    [0, 1, 2]
    """
    ends: list[int] = []
    before: dict[int, int | None] = {}
    for number in numbers:
        at = bisect_left(ends, number)
        before[number] = ends[at - 1] if at else None
        ends[at : at + 1] = [number]
    found: set[int] = set()
    last: int | None = ends[-1] if ends else None
    while last is not None:
        found.add(last)
        last = before[last]
    return found
