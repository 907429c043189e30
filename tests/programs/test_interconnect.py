"""What collectives send over the links of a torus, by hand, and against a schedule that does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import pytest

from layoutproof.core.result import Verdict
from layoutproof.hardware.tpu_chips import CHIPS, Chip
from layoutproof.programs.claims import judge
from layoutproof.programs.compiling import _places
from layoutproof.programs.interconnect import BETWEEN, UNKNOWN, Coordinates, Exchanged, exchanged
from layoutproof.programs.record import Collective, KernelCall, Often, Place, ProgramWork, Provenance, Record

V5E = CHIPS["v5e"]
RINGS = replace(V5E, closes=1)
"""The same with every direction of more than two chips closed to a ring."""


def slice_of(*extents: int, cores: int = 1) -> tuple[Coordinates, ...]:
    """The chip of each device, the last direction fastest."""
    return tuple(at for at in product(*map(range, extents)) for _ in range(cores))


def sent(kind: str, groups: str, operand: str, result: str, often: Often = Often()) -> Collective:  # noqa: B008
    size = max(map(len, groups.split("},{")), default=0)
    return Collective(
        Place("it"), kind, f"{kind} over {groups}", size, ("data",), (operand,), (result,), None, None, often
    )


def over(
    places: Sequence[Coordinates], *collectives: Collective, chip: Chip = V5E, slices: Sequence[int] = ()
) -> dict[str, Exchanged]:
    made = Provenance(target="v5e", chips=tuple(places), slices=tuple(slices))
    return dict(exchanged(Record("step", made, collectives=collectives), chip))


ROWS = "{0,1,2,3},{4,5,6,7},{8,9,10,11},{12,13,14,15}"
COLUMNS = "{0,4,8,12},{1,5,9,13},{2,6,10,14},{3,7,11,15}"


@pytest.mark.parametrize(
    ("kind", "groups", "operand", "result", "along", "total", "links"),
    [
        # 16 chips get three shards of 1 KiB each, by two links for each chip and direction
        ("all-gather", ROWS, "f32[256]", "f32[1024]", "y", 16 * 3 * 1024, 32),
        ("all-gather", COLUMNS, "f32[256]", "f32[1024]", "x", 16 * 3 * 1024, 32),
        ("reduce-scatter", ROWS, "f32[1024]", "f32[256]", "y", 16 * 3 * 1024, 32),
        # there and back
        ("all-reduce", ROWS, "f32[1024]", "f32[1024]", "y", 2 * 16 * 3 * 1024, 32),
        # the bisection: of each row two chips send 1 KiB to each of two others, by two links of each row
        ("all-to-all", ROWS, "f32[1024]", "f32[1024]", "y", 4 * 2 * 2 * 1024, 8),
        # one pair stays; two go over the middle of one row, into a half that eight links lead to
        ("collective-permute", "{0,2},{1,3},{5,5}", "f32[1024]", "f32[1024]", "y", 2 * 4096, 8),
        ("collective-broadcast", ROWS, "f32[1024]", "f32[1024]", "y", 4 * 4096, 8),
        # a half of the array enters the first column, by two links of each row
        ("all-gather", "{0,1,4,5}", "f32[256]", "f32[1024]", "x, y", 2 * 1024, 8),
    ],
)
def test_what_enters_by_kind(
    kind: str, groups: str, operand: str, result: str, along: str, total: int, links: int
) -> None:
    (found,) = over(slice_of(4, 4), sent(kind, groups, operand, result), chip=RINGS).items()
    assert (found[0], found[1].bytes.exact, found[1].links) == (along, total, links)


def test_a_line_has_no_link_back() -> None:
    """A v5e closes a direction of 16 only: at its ends the chips of a line have one link, which all shards take."""
    (line,) = over(slice_of(4, 4), sent("all-gather", ROWS, "f32[256]", "f32[1024]")).values()
    assert (line.bytes.exact, line.links, line.part) == (4 * 3 * 1024, 4, "into y 0 .. 0")
    every = "{" + ",".join(map(str, range(16))) + "}"
    (ring,) = over(slice_of(16), sent("all-to-all", every, "f32[16]", "f32[16]")).values()
    assert (ring.bytes.exact, ring.links) == (8 * 8 * 4, 2)
    (half,) = over(slice_of(8), sent("all-to-all", "{0,1,2,3,4,5,6,7}", "f32[8]", "f32[8]")).values()
    assert (half.bytes.exact, half.links) == (4 * 4 * 4, 1)


def test_slices_have_links_of_their_own_and_none_between_them() -> None:
    """What goes from slice to slice is open, and is said; what stays is by the links of both."""
    places, slices = slice_of(4, 1) * 2, [0] * 4 + [1] * 4
    own = sent("all-gather", "{0,1,2,3},{4,5,6,7}", "f32[256]", "f32[1024]")
    (found,) = over(places, own, slices=slices).values()
    assert (found.bytes.exact, found.links) == (2 * 3 * 1024, 2)
    across = sent("all-reduce", "{0,4},{1,5},{2,6},{3,7}", "f32[1024]", "f32[1024]")
    both = over(places, own, across, slices=slices)
    assert list(both) == ["x", BETWEEN]
    assert (both["x"].bytes.exact, both[BETWEEN].bytes.least, both[BETWEEN].bytes.most) == (2 * 3 * 1024, 0, None)
    assert BETWEEN in both[BETWEEN].bytes.why
    # of a permutation the pairs within a slice count
    pairs = over(places, sent("collective-permute", "{0,1},{3,4}", "f32[8]", "f32[8]"), slices=slices)
    assert (pairs["x"].bytes.exact, pairs["x"].links, pairs[BETWEEN].bytes.most) == (32, 2, None)
    made = Provenance(target="v5e", chips=tuple(places), slices=tuple(slices))
    answer = judge(
        "step_time_bound", Record("it", made, collectives=(own, across), work=ProgramWork()), {"at_most": "1 s"}
    )
    assert answer.verdict is Verdict.UNKNOWN
    assert BETWEEN in answer.reason
    # two slices that nobody told apart are no slice, and nor is a part of one
    for chips in (places, slice_of(4, 2)[:7]):
        (unknown,) = over(chips, own).items()
        assert (unknown[0], unknown[1].bytes.most) == (UNKNOWN, None)


def test_two_chips_have_one_link_and_cores_of_a_chip_none() -> None:
    two = CHIPS["7x"]
    (pair,) = over(slice_of(2, 1), sent("all-gather", "{0,1}", "f32[256]", "f32[512]"), chip=two).values()
    assert (pair.bytes.exact, pair.links) == (2 * 1024, 2)
    assert over(slice_of(1, 1, cores=2), sent("all-gather", "{0,1}", "f32[256]", "f32[512]"), chip=two) == {}
    # the chip gets what its two devices lack once
    (both,) = over(slice_of(2, 1, cores=2), sent("all-gather", "{0,1,2,3}", "f32[256]", "f32[1024]"), chip=two).values()
    assert both.bytes.exact == 2 * 2 * 1024
    (summed,) = over(
        slice_of(2, 1, cores=2), sent("all-reduce", "{0,1,2,3}", "f32[256]", "f32[256]"), chip=two
    ).values()
    assert summed.bytes.exact == 2 * 1024


def test_where_the_devices_of_a_compiled_program_are() -> None:
    """As libtpu's devices say it: coordinates begin anew in each slice, and one slice has no number."""
    pytest.importorskip("jax")

    def compiled(*devices: tuple[tuple[int, ...], int | None]) -> SimpleNamespace:
        those = [SimpleNamespace(coords=coords, slice_index=index) for coords, index in devices]
        return SimpleNamespace(input_shardings=[SimpleNamespace(_device_assignment=those)], output_shardings=[])

    assert _places(compiled(((0, 1), None), ((1, 1), None))) == {"chips": [[0, 1], [1, 1]], "slices": []}
    assert _places(compiled(((0, 1), 0), ((0, 1), 1))) == {"chips": [[0, 1], [0, 1]], "slices": [0, 1]}
    assert _places(SimpleNamespace(input_shardings=[])) == {"chips": [], "slices": []}


def test_loops_count_and_what_is_unknown_leaves_the_bound_open() -> None:
    gather = ("all-gather", "{0,1,2,3}", "f32[256]", "f32[1024]")
    (found,) = over(slice_of(4, 1), sent(*gather, Often(5)), sent(*gather)).values()
    # the chip at an end has one link
    assert (found.bytes.exact, found.links) == (6 * 3 * 1024, 1)
    (branch,) = over(slice_of(4, 1), sent(*gather, Often(1, True))).values()
    assert branch.bytes.least == 0
    assert Fraction(branch.bytes.most or 0, branch.links) == 3 * 1024
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
    gather = sent("all-gather", groups, "f32[256]", f"f32[{256 * chips}]")
    (found,) = over(slice_of(chips, 1), gather, chip=RINGS).values()
    assert found.bytes.least / found.links <= steps * half
    # and this one is as fast as any
    assert found.bytes.least / found.links == steps * half


def test_the_claim_has_the_term_and_says_what_it_leaves_out() -> None:
    """An end of the line gets 3 MiB over a link of 50 GB/s, 62.9 us; without places of devices it is not counted."""
    gather = sent("all-gather", "{0,1,2,3}", "f32[262144]", "f32[1048576]")
    made = Provenance(target="v5e", chips=slice_of(4, 1))
    record = Record("step", made, collectives=(gather,), work=ProgramWork())
    refuted = judge("step_time_bound", record, {"at_most": "62 us"})
    assert refuted.verdict is Verdict.REFUTED
    assert (
        "interconnect x 62.91 us, 3,145,728 bytes between chips over data, into x 0 .. 0, by 1 link of 50 GB/s"
        in refuted.reason
    )
    assert judge("step_time_bound", record, {"at_most": "63 us"}).verdict is Verdict.PROVED
    blind = judge("step_time_bound", replace(record, made=Provenance(target="v5e")), {"at_most": "62 us"})
    assert blind.verdict is Verdict.PROVED
    assert "interconnect" in blind.scope
