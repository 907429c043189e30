"""What collectives send over the links of a torus, by hand, and against a schedule that does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest

from layoutproof.core.result import Verdict
from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.programs.claims import judge
from layoutproof.programs.interconnect import Coordinates, Exchanged, exchanged
from layoutproof.programs.record import Collective, KernelCall, Often, Place, ProgramWork, Provenance, Record

V5E = CHIPS["v5e"]


def slice_of(*extents: int, cores: int = 1) -> tuple[Coordinates, ...]:
    """The chip of each device, the last direction fastest."""
    return tuple(at for at in product(*map(range, extents)) for _ in range(cores))


def sent(kind: str, groups: str, operand: str, result: str, often: Often = Often()) -> Collective:  # noqa: B008
    size = max(map(len, groups.split("},{")), default=0)
    return Collective(
        Place("it"), kind, f"{kind} over {groups}", size, ("data",), (operand,), (result,), None, None, often
    )


def over(places: Sequence[Coordinates], *collectives: Collective) -> dict[str, Exchanged]:
    record = Record("step", Provenance(target="v5e", chips=tuple(places)), collectives=collectives)
    return dict(exchanged(record, V5E))


ROWS = "{0,1,2,3},{4,5,6,7},{8,9,10,11},{12,13,14,15}"
COLUMNS = "{0,4,8,12},{1,5,9,13},{2,6,10,14},{3,7,11,15}"


@pytest.mark.parametrize(
    ("kind", "groups", "operand", "result", "along", "total"),
    [
        # 16 chips get three shards of 1 KiB each
        ("all-gather", ROWS, "f32[256]", "f32[1024]", "y", 16 * 3 * 1024),
        ("all-gather", COLUMNS, "f32[256]", "f32[1024]", "x", 16 * 3 * 1024),
        ("reduce-scatter", ROWS, "f32[1024]", "f32[256]", "y", 16 * 3 * 1024),
        # there and back
        ("all-reduce", ROWS, "f32[1024]", "f32[1024]", "y", 2 * 16 * 3 * 1024),
        ("all-to-all", ROWS, "f32[1024]", "f32[1024]", "y", 16 * 3 * 1024),
        # three pairs send it all, and one stays where it is
        ("collective-permute", "{0,1},{1,2},{2,3},{5,5}", "f32[1024]", "f32[1024]", "y", 3 * 4096),
        ("collective-broadcast", ROWS, "f32[1024]", "f32[1024]", "y", 4 * 3 * 4096),
        ("all-gather", "{0,1,4,5}", "f32[256]", "f32[1024]", "x, y", 4 * 3 * 1024),
    ],
)
def test_what_enters_by_kind(kind: str, groups: str, operand: str, result: str, along: str, total: int) -> None:
    (found,) = over(slice_of(4, 4), sent(kind, groups, operand, result)).items()
    assert (found[0], found[1].bytes.exact) == (along, total)
    # two links for each chip and direction, each way
    assert found[1].links == 16 * 2 * len(along.split(", "))


def test_two_chips_have_one_link_and_cores_of_a_chip_none() -> None:
    (pair,) = over(slice_of(2, 1), sent("all-gather", "{0,1}", "f32[256]", "f32[512]")).values()
    assert (pair.bytes.exact, pair.links) == (2 * 1024, 2)
    assert over(slice_of(1, 1, cores=2), sent("all-gather", "{0,1}", "f32[256]", "f32[512]")) == {}
    # the chip gets what its two devices lack once
    (both,) = over(slice_of(2, 1, cores=2), sent("all-gather", "{0,1,2,3}", "f32[256]", "f32[1024]")).values()
    assert both.bytes.exact == 2 * 2 * 1024
    (summed,) = over(slice_of(2, 1, cores=2), sent("all-reduce", "{0,1,2,3}", "f32[256]", "f32[256]")).values()
    assert summed.bytes.exact == 2 * 1024


def test_loops_count_and_what_is_unknown_leaves_the_bound_open() -> None:
    gather = ("all-gather", "{0,1,2,3}", "f32[256]", "f32[1024]")
    (found,) = over(slice_of(4, 1), sent(*gather, Often(5)), sent(*gather)).values()
    assert found.bytes.exact == 6 * 4 * 3 * 1024
    (branch,) = over(slice_of(4, 1), sent(*gather, Often(1, True))).values()
    assert (branch.bytes.least, branch.bytes.most) == (0, 4 * 3 * 1024)
    for kind, groups in (("send", "{0,1}"), ("all-gather", "partitions [2,2]<=[4]"), ("all-gather", "{0,9}")):
        (unknown,) = over(slice_of(4, 1), sent(kind, groups, *gather[2:])).values()
        assert unknown.bytes.most is None
    kernel = KernelCall(Place("k"), "ring", None, "", Often(), communicates=True)
    made = Provenance(target="v5e", chips=slice_of(4, 1))
    (open_,) = exchanged(Record("step", made, kernels=(kernel,)), V5E).values()
    assert open_.bytes.most is None


@pytest.mark.parametrize("chips", [3, 4, 5, 8])
def test_no_schedule_on_a_ring_is_faster_than_the_bound(chips: int) -> None:
    """Shards that travel both ways around: a link carries one shard a step, half of each where both ways meet."""
    half = 512
    held = [{(at, part) for part in (0, 1)} for at in range(chips)]
    steps = 0
    while any(len(each) < 2 * chips for each in held):
        # the first half of each shard goes to the right, the second to the left
        moved = [{((at - 1 - steps) % chips, 0), ((at + 1 + steps) % chips, 1)} for at in range(chips)]
        held = [old | new for old, new in zip(held, moved, strict=True)]
        steps += 1
    groups = "{" + ",".join(map(str, range(chips))) + "}"
    (found,) = over(slice_of(chips, 1), sent("all-gather", groups, "f32[256]", f"f32[{256 * chips}]")).values()
    assert found.bytes.least / found.links <= steps * half
    # and this one is as fast as any
    assert found.bytes.least / found.links == steps * half


def test_the_claim_has_the_term_and_says_what_it_leaves_out() -> None:
    """The gather takes 4 * 3 MiB over 8 links of 50 GB/s, 31.4 us; without places of devices it is not counted."""
    gather = sent("all-gather", "{0,1,2,3}", "f32[262144]", "f32[1048576]")
    made = Provenance(target="v5e", chips=slice_of(4, 1))
    record = Record("step", made, collectives=(gather,), work=ProgramWork())
    refuted = judge("step_time_bound", record, {"at_most": "31 us"})
    assert refuted.verdict is Verdict.REFUTED
    assert "interconnect x 31.45" in refuted.reason
    assert judge("step_time_bound", record, {"at_most": "32 us"}).verdict is Verdict.PROVED
    blind = judge("step_time_bound", replace(record, made=Provenance(target="v5e")), {"at_most": "31 us"})
    assert blind.verdict is Verdict.PROVED
    assert "interconnect" in blind.scope
