"""The work of a whole program: that of its places and of its kernels together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from layoutproof.core.counted import Counted
from layoutproof.ir.work import ProgramCount
from layoutproof.programs import problems
from layoutproof.programs.record import PricedOperation, ProgramWork, Record, WorkPlace

MOST_OPERATIONS = 50
"""Operations with their cycles that a record lists, those first that take most; their sum is of all."""
MOST_PLACES = 50
"""Places that a record lists, those first where most flops are; the sums are of all."""
MOST_UNCOUNTED = 20
_BRANCH = "a part stands in a branch"
_NO_WORK = frozenset(
    (
        *("AllocateBuffer", "ConcatBitcast", "AssumeGatherIndicesInBound", "Sharding", "SPMDFullToShardShape"),
        *("SPMDShardToFullShape", "annotate_device_placement", "MoveToHost", "MoveToDevice", "PinToVmem"),
    )
)
"""Targets of custom calls that compute nothing."""


def with_totals(record: Record, places: Sequence[WorkPlace], uncounted: Sequence[str] = ()) -> Record:
    """A record with the sums of its work. places: all of them.  uncounted: instructions whose work is not counted."""
    counts = {name: sum((each.often.counted(getattr(each, name), _BRANCH) for each in places), Counted())
              for name in ("flops", "transcendentals", "bytes", "hbm")}  # fmt: skip
    products: dict[str, Counted] = {}
    for place in places:
        for kind, flops in place.products.items():
            products[kind] = products.get(kind, Counted()) + place.often.counted(flops, _BRANCH)
    unsaid = [*uncounted, *(problems.CUSTOM_CALL_NOT_COUNTED(each.place, each.target)
                            for each in record.customs if each.target not in _NO_WORK)]  # fmt: skip
    ordered = sorted(places, key=lambda each: -(each.flops or each.bytes / 2**10) * (each.often.times or 1))
    plain = ProgramWork(
        products, **counts, places=tuple(ordered[:MOST_PLACES]), many=len(places),
        uncounted=tuple(unsaid[:MOST_UNCOUNTED]),
    )  # fmt: skip
    return replace(record, work=_open(plain, unsaid))


def most_first(operations: Iterable[PricedOperation]) -> tuple[list[PricedOperation], int | None]:
    """Operations by the cycles that they take in all, and the sum; None without any, or where trips are unknown."""
    made = sorted(operations, key=lambda each: -each.cycles * (each.often.times or 1))
    if not made or any(each.often.times is None for each in made):
        return made, None
    return made, sum(each.cycles * (each.often.times or 0) for each in made)


def with_kernels(record: Record) -> Record:
    """A record with the work of its kernels added to that of its places, where the kernels say it."""
    work = record.work
    if work is None:
        return record
    found, unsaid = ProgramCount(work.products, work.flops, work.transcendentals), []
    for each in record.kernels:
        if each.flops is None or each.transcendentals is None:
            unsaid.append(problems.KERNEL_NOT_COUNTED(each.place, each.name))
            continue
        one = ProgramCount(each.products, each.flops, each.transcendentals).often(each.often.times, each.often.why)
        found += one.either(ProgramCount(), problems.PART_IN_BRANCH(each.place)) if each.often.sometimes else one
    more = replace(
        work, products=found.products, flops=found.flops, transcendentals=found.transcendentals,
        uncounted=tuple([*work.uncounted, *unsaid][:MOST_UNCOUNTED]),
    )  # fmt: skip
    return replace(record, work=_open(more, unsaid))


def _open(work: ProgramWork, unsaid: Sequence[str]) -> ProgramWork:
    """The same with its flops open upwards where some work is not counted."""
    if not unsaid:
        return work
    more = Counted(0, None, unsaid[0])
    return replace(work, flops=work.flops + more, transcendentals=work.transcendentals + more)
