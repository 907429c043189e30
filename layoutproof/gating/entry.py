"""Changes in the interface for callers: parameters and results, donated arguments, devices, whether the text is final.

JAX names parameters (`params['w']`), so one more argument is one change, not one for each argument after it. Callers
give them by position: where the order of those that both have changed, each that moved is a change of the entry.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from layoutproof.core.finding import Finding, unknown
from layoutproof.core.result import Verdict
from layoutproof.gating import problems
from layoutproof.gating.array_classes import HARMLESS, array_classes, bytes_of, resharded, same_sharding
from layoutproof.gating.compiled_program import CompiledProgram, EntryValue, title
from layoutproof.hlotext.texts import arrays, element_text, logical

R = TypeVar("R", bound=CompiledProgram)


def aligned(before: R, after: CompiledProgram) -> R:
    """The old program with the positions that the new one gives to its parameters and results.

    Parameters that only the new one has are there with no shape; those that only the old one has come last. The
    `number` of each is its position in the old program.
    """
    parameters, results = _paired(before.parameters, after.parameters), _paired(before.results, after.results)
    moved = any(each.number != k for side in (parameters, results) for k, each in enumerate(side))
    return before.reordered(parameters, results) if moved else before


def entry(before: CompiledProgram, after: CompiledProgram) -> list[Finding]:
    """Changes of parameters and results: their order, shapes and shardings. before: as `aligned` gives it."""
    one_device = all(set((side.devices or {}).values()) == {1} for side in (before, after))
    pairs = (("parameter", before.parameters, after.parameters), ("result", before.results, after.results))
    return [
        *(found for what, olds, news in pairs for found in (*_moved(what, olds, news), *_values(what, olds, news))),
        *(found for what, olds, news in pairs for found in _shardings(what, olds, news, one_device)),
        *(found for what, olds, news in pairs for found in _replicated(what, olds, news)),
    ]


def header(before: CompiledProgram, after: CompiledProgram) -> list[Finding]:
    """Changes of the rest of a module's first line. before: as `aligned` gives it."""
    return [*_devices(before, after), *_schedule(before, after), *_donations(before, after)]


def _paired(olds: Sequence[EntryValue], news: Sequence[EntryValue]) -> Sequence[EntryValue]:
    """The old ones in the new one's positions; as they stand where positions say it all.

    By names that are there once on each side. The rest is paired in order where both sides have as many, or where the
    shapes are the same; otherwise it is new or gone.
    """
    if not all(any(each.name for each in side) for side in (olds, news)):
        return olds
    names = [Counter(each.op_name for each in side if each.op_name) for side in (olds, news)]
    once = {name for name, count in names[0].items() if count == names[1][name] == 1}
    numbers = {each.op_name: each.number for each in news}
    pairs = {each.number: numbers[each.op_name] for each in olds if each.op_name in once}
    taken = set(pairs.values())
    left = [each for each in olds if each.number not in pairs]
    right = [each for each in news if each.number not in taken]
    if not pairs and len(left) != len(right):
        return olds
    if len(left) == len(right):
        pairs |= {old.number: new.number for old, new in zip(left, right, strict=True)}
    else:
        for old in left:
            alike = next((new for new in right if logical(new.shape) == logical(old.shape)), None)
            if alike is not None and not old.op_name:
                pairs[old.number] = alike.number
                right.remove(alike)
    if all(old == new for old, new in pairs.items()):
        return olds
    there = {new: olds[old] for old, new in pairs.items()}
    both = [there.get(k, EntryValue(-1, "")) for k in range(len(news))]
    return [*both, *(each for each in olds if each.number not in pairs)]


def _moved(what: str, olds: Sequence[EntryValue], news: Sequence[EntryValue]) -> Iterator[Finding]:
    """Parameters, or results, that both have and that stand in another order."""
    callers = "callers give arguments by position" if what == "parameter" else "callers take results by position"
    both = sorted((old.number, new) for old, new in zip(olds, news, strict=False) if old.number >= 0)
    kept = _in_order([new.number for _, new in both])
    for old, new in both:
        if new.number not in kept:
            name = f" ({new.op_name})" if new.op_name else ""
            why = problems.ORDER_CHANGED(what, new.number, old, callers)
            sides: dict[str, Any] = {"before": f"{what} {old}", "after": f"{what} {new.number}"}
            yield Finding("abi", f"order of {what} {new.number}{name}", why, line=new.line, **sides)


def _values(what: str, olds: Sequence[EntryValue], news: Sequence[EntryValue]) -> Iterator[Finding]:
    """Shapes, each by its position."""
    many = f"the program has {len(news)} {what}s now, {sum(each.number >= 0 for each in olds)} before"
    for k, new in enumerate(news):
        old = olds[k] if k < len(olds) and olds[k].number >= 0 else None
        name = new.name or (old.name if old is not None else "")
        subject = f"{what} {k}" + (f" ({name})" if name else "")
        if old is not None:
            yield from (replace(f, subject=subject, line=new.line) for f in _abi(old.shape, new.shape))
        else:
            why = problems.ENTRY_NEW(many, _shifted(sum(each.number >= 0 for each in olds[k + 1 : len(news)])))
            yield Finding("abi", subject, why, line=new.line, after=new.shape)
    for old in olds[len(news) :]:
        subject = f"{what} {old.number}" + (f" ({old.name})" if old.name else "")
        why = problems.ENTRY_GONE(many, _shifted(sum(each.number > old.number for each in olds[: len(news)])))
        yield Finding("abi", subject, why, line=1, before=old.shape)


def _shifted(many: int) -> str:
    """The shift of later positions by a new or removed parameter."""
    return f"; {many} after it stand elsewhere" if many else ""


def _abi(old: str, new: str) -> list[Finding]:
    if old == new:
        return []
    ones, others = list(arrays(old)), list(arrays(new))
    if len(ones) != len(others):
        return [Finding("abi", "", problems.TUPLE_SIZE(len(others), len(ones)), before=old, after=new)]
    found = []
    for one, other in zip(ones, others, strict=True):
        for change in array_classes(one, other):
            if change.question in HARMLESS or change.verdict is Verdict.UNKNOWN:
                found.append(change)
            else:
                found.append(replace(change, question="abi", reason=f"{change.question}: {change.reason}"))
    return found


def _shardings(
    what: str, olds: Sequence[EntryValue], news: Sequence[EntryValue], one_device: bool
) -> Iterator[Finding]:
    """Parameters, or results, whose shards are elsewhere."""
    printed = [any(each.sharding for each in side) for side in (olds, news)]
    if printed[0] != printed[1]:
        if not one_device:
            # libtpu 0.0.52 prints none on its optimised text; collectives are compared all the same
            why = (
                f"the {'new' if printed[0] else 'old'} text prints no sharding of any {what}, so that only the shapes "
            )
            why += "of the parts are compared; make both with one version of the compiler"
            yield unknown(f"shardings of the {what}s", why)
        return
    for old, new in zip(olds, news, strict=False):
        if old.number < 0 or old.sharding == new.sharding:
            continue
        if one_device and same_sharding(*(each.sharding or "{replicated}" for each in (old, new))):
            continue
        subject = f"{what} {new.number}" + (f" ({new.name})" if new.name else "")
        yield from (replace(f, line=new.line, subject=subject) for f in resharded(old, new))


def _replicated(what: str, olds: Sequence[EntryValue], news: Sequence[EntryValue]) -> Iterator[Finding]:
    """Parameters, or results, of which each element is on more devices."""
    for old, new in zip(olds, news, strict=False):
        if old.copies is not None and new.copies is not None and new.copies > old.copies:
            why = problems.DEVICES_OF_ELEMENTS(new.copies, old.copies)
            sides: dict[str, Any] = {"before": old.sharding, "after": new.sharding}
            subject = f"{what} {title(str(new.number), new.name)}"
            yield Finding("replicated", subject, why, figures={"bytes": bytes_of(new.shape)}, **sides)


def _devices(before: CompiledProgram, after: CompiledProgram) -> Iterator[Finding]:
    olds, news = before.devices or {}, after.devices or {}
    for what in news:
        old, new = olds.get(what, 1), news[what]
        if old != new:
            why = problems.RUNS_ON(new, what, old)
            yield Finding("devices", f"number of {what}", why, before=str(old), after=str(new), line=after.line)


def _schedule(before: CompiledProgram, after: CompiledProgram) -> Iterator[Finding]:
    if before.scheduled and after.scheduled is False:
        why = problems.NOT_SCHEDULED()
        yield Finding("unscheduled", "module", why, before="is_scheduled=true", line=after.line)


def _donations(before: CompiledProgram, after: CompiledProgram) -> Iterator[Finding]:
    """Changes of donated buffers. before: as `aligned` gives it."""
    ours, theirs = before.donations or {}, after.donations or {}
    for number, index in sorted({*ours, *theirs}):
        old, new = (side.get((number, index), "") for side in (ours, theirs))
        if old == new or number >= min(len(before.parameters), len(after.parameters)):
            continue  # a parameter that only one side has is a change of the entry's shapes
        own = after.parameters[number]
        size = sum(map(bytes_of, arrays(element_text(own.shape, index))))
        at = f"element {{{','.join(map(str, index))}}} of " if index else ""
        named = f" ({own.name})" if own.name else ""
        if not new:
            kind, why = "lost_donation", problems.DONATION_LOST(size, old)
        elif not old:
            kind, why = "new_donation", problems.DONATION_NEW(size, new)
        elif old.split(" (")[0] == new.split(" (")[0] and new.endswith("(must-alias)"):
            kind, why = "new_donation", problems.DONATION_DEMANDED(size, new)
        else:
            kind, why = "lost_donation", problems.DONATION_MOVED(size, old, new)
        sides: dict[str, Any] = {"before": old, "after": new, "figures": {"bytes": size}, "line": after.line}
        yield Finding(kind, f"donation of {at}parameter {number}{named}", why, **sides)


def _in_order(numbers: Sequence[int]) -> set[int]:
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
