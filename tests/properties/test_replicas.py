"""Layouts with several places per element: the paper's, TVM's and broken ones, against plain enumeration.

Layouts are built from Axe's definition (arXiv:2601.19092, section 2.3) without the Axe language; which ones, and what
is known about them, is from the paper's figures and text and from TVM 0.27.0.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from math import prod
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.core.axes import onto
from layoutproof.core.finding import Finding
from layoutproof.core.index_map import IndexMap
from layoutproof.core.result import Verdict
from layoutproof.solvers.count import count, one_by_one
from layoutproof.solvers.decide import ENGINES
from tests.properties.places import axe, collision, hole, holes, missing, outside, repeated
from tests.recorded import rows
from tests.said import stretch, words

pytestmark = pytest.mark.slow

FIG2_SHARD = [(8, 4, "lane"), (2, 1, "warp"), (4, 1, "lane"), (2, 1, "reg")]
SHARDED_SHARD = [(2, 1, "gpuid"), (32, 128, "m"), (2, 2, "gpuid"), (64, 1, "m")]
ROWS_SHARD = [(2, 1, "gpuid"), (32, 128, "m"), (128, 1, "m")]
SCALES_SHARD = [(4, 4, "TCol"), (32, 1, "TLane"), (4, 1, "TCol")]
LINE = [(4, 1, "m")]
PAIR = [(2, 50, "m")]

FIG2 = axe((8, 16), FIG2_SHARD, [(2, 4, "warp")], {"warp": 5})
SHARDED = axe((64, 128), SHARDED_SHARD)
ROWS = axe((64, 128), ROWS_SHARD, [(2, 2, "gpuid")])
SCALES = axe((128, 4), SCALES_SHARD, [(4, 32, "TLane")])
M8N8 = axe((8, 8), [(8, 4, "laneid"), (4, 1, "laneid"), (2, 1, "reg")])
BLOCK = axe((16, 24), [(8, 48, "m"), (2, 3, "m"), (8, 6, "m"), (3, 1, "m")])
PRESET = axe((4, 4), [(2, 1, "pid"), (2, 2, "m"), (4, 1, "m")], [(2, 2, "pid")])
COINCIDING = axe((4,), LINE, [(2, 2, "gpuid"), (3, 2, "gpuid")])
TILED = axe((8,), [(2, 8, "m"), (4, 1, "m")], [(2, 4, "m")])
TILED_BY_TVM = axe((8,), [(2, 8, "m"), (4, 1, "m")], [(2, 1, "m")])
PADDED = axe((4, 8), [(4, 9, "m"), (8, 1, "m")], [(2, 36, "m")])
THIRDS = IndexMap(
    axe((10,), [(10, 1, "m")]).domain,
    axe((12,), [(4, 1, "gpuid"), (3, 1, "m")]).range,
    lambda x, c, on: (x[0] // 3, x[0] % 3),
)

LAYOUTS: dict[str, IndexMap] = {
    "figure 2, tensor core": FIG2,
    "fully sharded": SHARDED,
    "rows sharded, columns replicated": ROWS,
    "scale factors": SCALES,
    "mesh": axe((2, 4, 8), [(2, 1, "gpuid_y"), (4, 8, "m"), (8, 1, "m")], [(2, 1, "gpuid_x")]),
    "m8n8": M8N8,
    "block": BLOCK,
    "scratchpad": axe((16, 8), [(2, 8, "F"), (8, 1, "P"), (8, 1, "F")]),
    "demo preset of the book": PRESET,
    "replicas that coincide": COINCIDING,
    "tile, replicas scaled": TILED,
    "tile, as TVM has it": TILED_BY_TVM,
    "padded rows": PADDED,
    "negative stride": axe((6, 4), [(6, -4, "m"), (4, 1, "m")], [(2, 1, "gpuid")], {"m": 20}),
    "interleaved": axe((6,), [(2, 3, "m"), (3, 2, "m")], [(2, 1, "w")]),
    "zero stride": axe((4, 2), [(4, 1, "m"), (2, 0, "m")], [(2, 4, "m")]),
    "replicas fill the gaps": axe((4,), [(4, 2, "m")], [(2, 1, "m")]),
    "replicas overlap other elements": axe((4, 3), [(4, 3, "m"), (3, 1, "m")], [(2, 2, "m")]),
    "uneven shards": THIRDS,
}


def smallest(result: Finding) -> dict[str, tuple[int, ...]] | None:
    """The counterexample; None when proved. Unknown fails."""
    assert result.verdict is not Verdict.UNKNOWN, result.reason
    return None if result.counterexample is None else dict(result.counterexample)


@pytest.mark.parametrize("name", LAYOUTS)
def test_each_question_is_answered_as_by_enumeration(name: str) -> None:
    """Disjoint elements, distinct replicas, bounds, holes: verdict and smallest counterexample, none left unknown."""
    m = LAYOUTS[name]
    assert smallest(lp.ask("injective", m)) == collision(m)
    assert smallest(lp.ask("replicas_distinct", m)) == (repeated(m) if m.replicas.extents else None)
    assert smallest(lp.ask("in_bounds", m)) == outside(m, {})
    covered = lp.ask("covers", m)
    assert smallest(covered) == hole(m)
    assert covered.figures["holes"] == holes(m)


@pytest.mark.parametrize("name", LAYOUTS)
def test_engines_agree(name: str) -> None:
    """The structural engine decides them all where divisors nest, and whoever else decides says the same."""
    m = LAYOUTS[name]
    for question in ("injective", "replicas_distinct", "in_bounds", "covers"):
        chosen = lp.ask(question, m)
        assert m is THIRDS or chosen.decided_by == "digits"
        for engine in ENGINES[:-1]:
            result = lp.ask(question, m, engine=engine)
            if result.verdict is Verdict.UNKNOWN:
                assert f"{engine}: " in result.reason
            else:
                assert (result.verdict, result.counterexample) == (chosen.verdict, chosen.counterexample)


@dataclass(frozen=True)
class Fault:
    """A layout that is proved, its nearest wrong neighbour, and the counterexample, written out."""

    property: str
    sound: tuple[IndexMap, ...]
    faulty: tuple[IndexMap, ...]
    smallest: dict[str, tuple[int, ...]]
    options: dict[str, Any] = field(default_factory=dict)


FAULTS = {
    "replicas one warp apart, where the columns are": Fault(
        "injective",
        (FIG2,),
        (axe((8, 16), FIG2_SHARD, [(2, 1, "warp")]),),
        {"first": (0, 0), "second": (0, 8), "first_replica": (1,), "second_replica": (0,)},
    ),
    "the book's preset: row stride 2 for 4 columns": Fault(
        "injective",
        (axe((4, 4), [(2, 1, "pid"), (2, 4, "m"), (4, 1, "m")], [(2, 2, "pid")]),),
        (PRESET,),
        {"first": (0, 2), "second": (1, 0), "first_replica": (0,), "second_replica": (0,)},
    ),
    "tile without scaling the replicas": Fault(
        "injective",
        (TILED,),
        (TILED_BY_TVM,),
        {"first": (0,), "second": (1,), "first_replica": (1,), "second_replica": (0,)},
    ),
    "two replicas on one device": Fault(
        "replicas_distinct",
        (axe((4,), LINE, [(2, 3, "gpuid"), (3, 1, "gpuid")]),),
        (COINCIDING,),
        {"element": (0,), "first_replica": (0, 1), "second_replica": (1, 0)},
    ),
    "replicas 33 of 128 lanes apart": Fault(
        "in_bounds",
        (SCALES,),
        (axe((128, 4), SCALES_SHARD, [(4, 33, "TLane")]),),
        {"element": (29, 0), "replica": (3,)},
        {"within": "cuda"},
    ),
    "steps of 32 lanes": Fault(
        "in_bounds",
        (M8N8,),
        (axe((4, 32), [(4, 1, "reg"), (32, 32, "laneid")]),),
        {"element": (0, 1)},
        {"within": "cuda"},
    ),
    "129 partitions": Fault(
        "in_bounds",
        (axe((128, 2), [(128, 1, "P"), (2, 1, "F")]),),
        (axe((129, 2), [(129, 1, "P"), (2, 1, "F")]),),
        {"element": (128, 0)},
        {"within": "trainium"},
    ),
    "a device beyond the mesh": Fault(
        "in_bounds",
        (SHARDED,),
        (axe((64, 128), SHARDED_SHARD, (), {"gpuid": 1}),),
        {"element": (32, 64)},
        {"within": {"gpuid": 4}},
    ),
    "one column of padding": Fault("covers", (BLOCK,), (PADDED,), {"place": (8,)}),
    "a required replica is not there": Fault(
        "refines",
        (axe((4,), LINE, [(2, 2, "gpuid")]), axe((4,), LINE, [(4, 1, "gpuid")])),
        (axe((4,), LINE, [(2, 3, "gpuid")]), axe((4,), LINE, [(3, 1, "gpuid")])),
        {"element": (0,), "replica": (1,)},
    ),
    "all columns moved by one": Fault(
        "refines",
        (SHARDED, SHARDED),
        (SHARDED, axe((64, 128), SHARDED_SHARD, (), {"m": 1})),
        {"element": (0, 0)},
    ),
    "one replica more": Fault(
        "same_map",
        (FIG2, FIG2),
        (FIG2, axe((8, 16), FIG2_SHARD, [(3, 4, "warp")], {"warp": 5})),
        {"element": (0, 0), "second_replica": (2,)},
    ),
    "same replicas, elements transposed": Fault(
        "same_map",
        (ROWS, ROWS),
        (ROWS, axe((64, 128), [(2, 1, "gpuid"), (32, 1, "m"), (128, 32, "m")], [(2, 2, "gpuid")])),
        {"element": (0, 1), "first_replica": (0,)},
    ),
    "replicas in one device's memory": Fault(
        "owners",
        (ROWS,),
        (axe((64, 128), ROWS_SHARD, [(2, 4096, "m")]),),
        {"element": (0, 0), "first_replica": (0,), "second_replica": (1,)},
    ),
    "rows of 128 for 64 local columns": Fault(
        "owners",
        (axe((64, 128), [(2, 1, "gpuid"), (32, 64, "m"), (2, 2, "gpuid"), (64, 1, "m")]),),
        (SHARDED,),
        {"place": (0, 64)},
        {"dense": True},
    ),
    "two rows on the same device and place": Fault(
        "owners",
        (axe((4, 2), [(4, 1, "gpuid"), (2, 1, "m")]),),
        (axe((2, 2, 2), [(2, 1, "gpuid"), (2, 1, "gpuid"), (2, 1, "m")]),),
        {"first": (0, 1, 0), "second": (1, 0, 0)},
        {"balanced": True},
    ),
}


def enumerated(fault: Fault, maps: tuple[IndexMap, ...]) -> dict[str, tuple[int, ...]] | None:
    one = maps[0]
    if fault.property == "injective":
        return collision(one)
    if fault.property == "replicas_distinct":
        return repeated(one)
    if fault.property == "in_bounds":
        hardware = {"cuda": {"laneid": 32, "TLane": 128, "TCol": 512}, "trainium": {"P": 128, "Bank": 8}}
        within = fault.options["within"]
        return outside(one, hardware[within] if isinstance(within, str) else within)
    if fault.property == "covers":
        return hole(one)
    if fault.property == "refines":
        return missing(*maps)
    if fault.property == "same_map":
        return missing(*maps, "first_replica") or missing(maps[1], maps[0], "second_replica")
    owners = [name for name in one.range.names if name not in ("m", "reg")]
    again = repeated(one, owners) if one.replicas.extents else None
    return collision(one) or again or (hole(one) if fault.options.get("dense") else None)


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_refuted(name: str) -> None:
    """Without the fault proved; with it refuted, in words, at the counterexample that enumeration finds smallest."""
    fault = FAULTS[name]
    assert smallest(lp.ask(fault.property, *fault.sound, **fault.options)) is None
    assert enumerated(fault, fault.sound) is None
    result = lp.ask(fault.property, *fault.faulty, **fault.options)
    assert smallest(result) == fault.smallest == enumerated(fault, fault.faulty)
    assert result.reason


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_confirmed(name: str) -> None:
    """A second, independent engine says the same, of the sound layout and of the faulty one."""
    fault = FAULTS[name]
    for maps in (fault.sound, fault.faulty):
        alone = lp.ask(fault.property, *maps, **fault.options)
        confirmed = lp.ask(fault.property, *maps, confirm=True, **fault.options)
        assert (confirmed.verdict, confirmed.counterexample) == (alone.verdict, alone.counterexample)
        assert len(set(confirmed.decided_by.split("+"))) >= 2


SPELLINGS = {
    "absorbed": (axe((4,), LINE, [(2, 1, "w"), (2, 2, "w")]), axe((4,), LINE, [(4, 1, "w")])),
    "sign": (axe((4,), LINE, [(3, 2, "w")]), axe((4,), LINE, [(3, -2, "w")], {"w": 4})),
    "extent 1": (axe((4,), LINE, [(2, 2, "w"), (1, 9, "w")]), axe((4,), LINE, [(2, 2, "w")])),
    "split": (axe((8,), [(8, 4, "m")]), axe((8,), [(2, 16, "m"), (4, 4, "m")])),
    "stride 0": (axe((4,), LINE, [(2, 3, "w"), (3, 0, "w")]), axe((4,), LINE, [(2, 3, "w")])),
    "order": (axe((4,), LINE, [(2, 4, "w"), (3, 1, "w")]), axe((4,), LINE, [(3, 1, "w"), (2, 4, "w")])),
    "axis of extent 1": (axe((4,), LINE, [(2, 1, "w")]), axe((4,), [*LINE, (1, 7, "z")], [(2, 1, "w")])),
    "reduced in one way": (
        axe((2,), PAIR, [(3, 2, "m"), (2, 3, "m"), (2, 6, "m")]),
        axe((2,), PAIR, [(6, 2, "m"), (2, 3, "m")]),
    ),
    "reduced in another": (
        axe((2,), PAIR, [(6, 2, "m"), (2, 3, "m")]),
        axe((2,), PAIR, [(3, 2, "m"), (4, 3, "m")]),
    ),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_other_spellings_are_the_same_map(name: str) -> None:
    """TVM compares spellings and calls these different; as sets of places they are equal, in both directions."""
    for one, other in itertools.permutations(SPELLINGS[name]):
        assert missing(one, other) is None
        result = lp.ask("same_map", one, other)
        assert (result.verdict, result.decided_by) == (Verdict.PROVED, "digits")


def test_axes_are_compared_by_name() -> None:
    """The order of the axes means nothing, their names do, and an axis that is not written is 0."""
    one = axe((4, 2), [(4, 1, "lane"), (2, 1, "warp")])
    turned = IndexMap(one.domain, axe((2,), [(1, 1, "warp"), (2, 1, "lane")]).range, lambda x, c, on: (x[1], x[0]))
    assert lp.ask("same_map", one, turned).verdict is Verdict.PROVED
    swapped = axe((4, 2), [(4, 1, "warp"), (2, 1, "lane")])
    assert smallest(lp.ask("same_map", one, swapped)) == {"element": (0, 1)} == missing(one, swapped)
    result = lp.ask("same_map", axe((8,), [(8, 1, "lane")]), axe((8,), [(8, 1, "warp")]))
    assert smallest(result) == {"element": (1,)}
    assert result.reason == words("properties.same_map_stored", element="(1,)", first="lane 1", second="warp 1")


THREADS = "tx = 32*warpid + laneid"


def test_axes_are_fused_within_their_bounds() -> None:
    """64 threads as tx, or as 2 warps of 32 lanes: the same map, where the lanes are proved to stay below 32."""
    threads = axe((64, 2), [(64, 1, "tx"), (2, 1, "reg")], [(2, 64, "tx")])
    warps = axe((64, 2), [(2, 1, "warpid"), (32, 1, "laneid"), (2, 1, "reg")], [(2, 2, "warpid")])
    assert lp.ask("same_map", threads, warps, fusion=[THREADS]).verdict is Verdict.PROVED
    assert lp.ask("same_map", warps, threads, fusion=[THREADS], confirm=True).verdict is Verdict.PROVED
    assert lp.ask("same_map", threads, warps).verdict is Verdict.REFUTED
    late = axe((64, 2), [(2, 1, "warpid"), (32, 1, "laneid"), (2, 1, "reg")], [(2, 2, "warpid")], {"laneid": 1})
    result = lp.ask("same_map", threads, late, fusion=[THREADS])
    assert smallest(result) == {"element": (31, 0), "replica": (0,)}
    assert result.reason == words(
        "properties.in_bounds_placed", element="(31, 0), replica (0,),", axis="laneid", entry=32, last=31
    )
    apart = axe((64, 2), [(2, 1, "warpid"), (32, 1, "laneid"), (2, 1, "reg")], [(2, 3, "warpid")])
    assert smallest(lp.ask("same_map", threads, apart, fusion=[THREADS])) == {"element": (0, 0), "first_replica": (1,)}
    groups = axe((64, 2), [(64, 1, "tid_in_wg"), (2, 1, "reg")], [(2, 64, "tid_in_wg")])
    both = [THREADS, "tx = 128*wgid + tid_in_wg"]
    assert lp.ask("same_map", warps, groups, fusion=both).verdict is Verdict.PROVED


def test_lanes_beyond_their_bound_are_no_other_spelling() -> None:
    """64 lanes make the same tx as 2 warps of 32; TVM takes the two for equal, though no warp has a lane 32."""
    lanes = axe((64,), [(64, 1, "laneid")])
    warps = axe((64,), [(2, 1, "warpid"), (32, 1, "laneid")])
    result = lp.ask("same_map", lanes, warps, fusion=[THREADS])
    assert smallest(result) == {"element": (32,)} == outside(lanes, {"laneid": 32})


@pytest.mark.parametrize(
    "fusion", ["tx", "tx = warpid*laneid", "tx = 32*warpid + 5*laneid", "tx = warpid + laneid", "tx = 2*a + b + 1", 7]
)
def test_wrong_fusions_are_refused(fusion: Any) -> None:
    """What is no mixed radix is bad input, with the text in the message."""
    with pytest.raises(lp.LayoutError, match="fusion"):
        lp.ask("same_map", FIG2, FIG2, fusion=[fusion])
    with pytest.raises(lp.LayoutError, match="fusion"):
        lp.ask("same_map", FIG2, FIG2, fusion=7)


@pytest.mark.parametrize(
    ("owner", "message"), [(5, "not 5"), ("warp", "not 'warp'"), (["warp", "warp"], "'warp' twice")]
)
def test_wrong_owners_are_named(owner: Any, message: str) -> None:
    """An owner axis named twice would count idle owners that cannot be, and a number names no axis."""
    with pytest.raises(lp.LayoutError, match=message):
        lp.ask("owners", FIG2, owner=owner)


def test_the_reason_names_replicas_and_axes() -> None:
    """A reader sees which replicas meet, and where on which axis."""
    shared, again = lp.ask("injective", PRESET), lp.ask("replicas_distinct", COINCIDING)
    assert shared.reason == words(
        "properties.injective_both", elements="(0, 2) (replica (0,)) and (1, 0) (replica (0,))", place="pid 0, m 2"
    )
    assert again.reason == words(
        "properties.replicas_distinct_both", first="(0, 1)", second="(1, 0)", element="(0,)", place="m 0, gpuid 2"
    )


def test_the_fully_sharded_example() -> None:
    """Correct: 4 devices with 2,048 elements each, spread over 4,032 local places of which 1,984 are free."""
    result = lp.ask("owners", SHARDED)
    assert result.verdict is Verdict.PROVED
    assert result.figures == {
        "owners": 4,
        "idle_owners": 0,
        "fewest_elements": 2048,
        "most_elements": 2048,
        "local_span": 4032,
        "local_places": 2048,
        "local_holes": 1984,
    }


def test_owners_are_the_axes_that_are_not_memory() -> None:
    """Lanes and warps by default, and what is named otherwise; a layout of memory alone has no owner."""
    assert lp.ask("owners", FIG2).figures["owners"] == 128
    warps = lp.ask("owners", FIG2, owner=["warp"]).figures
    assert (warps["owners"], warps["idle_owners"], warps["fewest_elements"]) == (4, 7, 64)
    with pytest.raises(lp.LayoutError, match=re.escape(stretch("properties.owners_no_axes"))):
        lp.ask("owners", BLOCK)
    with pytest.raises(lp.LayoutError, match="no axis 'gpu'; it has gpuid, m"):
        lp.ask("owners", SHARDED, owner=["gpu"])


def test_load_is_balanced() -> None:
    """3, 3, 3 and 1 elements on four devices: proved without `balanced`, refuted with it by the two numbers."""
    assert lp.ask("owners", THIRDS).verdict is Verdict.PROVED
    assert smallest(lp.ask("owners", THIRDS, balanced=True)) == {"elements_per_owner": (1, 3)}
    assert lp.ask("owners", SHARDED, balanced=True).verdict is Verdict.PROVED
    assert smallest(lp.ask("owners", THIRDS, dense=True)) == hole(THIRDS) == {"place": (3, 1)}


def test_what_cannot_be_counted_is_not_balanced() -> None:
    """For sizes that are not known load balance is unknown, not proved; the rest is proved for all sizes."""
    text = "S[(4,N):(1@gpuid,1@m)]"
    assert lp.ask("owners", text).verdict is Verdict.PROVED
    result = lp.ask("owners", text, balanced=True)
    assert result.verdict is Verdict.UNKNOWN
    assert result.reason == "count: the size N is not known, so places cannot be counted"


@pytest.mark.parametrize("name", LAYOUTS)
def test_counts_are_those_of_enumeration(name: str) -> None:
    """Places, bounds and load as counted by structure are those of looking at every place."""
    m = LAYOUTS[name]
    for names in (m.range.names, *[(axis,) for axis in m.range.names]):
        part = onto(m, names)
        assert count(part) == one_by_one(part)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"within": "cud"}, r"unknown target 'cud'; did you mean 'cuda'\? Known: cuda, (.*, )?trainium"),
        ({"within": "trainium"}, "trainium bounds the axes P, Bank, and the layout has lane, warp, reg"),
        ({"within": {"lanes": 32}}, "no axis 'lanes'; it has lane, warp, reg"),
        ({"within": {"lane": 0}}, stretch("properties.in_bounds_extent_form", found=0)),
        ({"within": 5}, "a mapping of axes to extents, .* not 5"),
        ({"within": ["lane"]}, r"not \['lane'\]"),
    ],
)
def test_wrong_bounds_are_named(options: dict[str, Any], message: str) -> None:
    """A misspelt target or axis is bad input, never a proof."""
    with pytest.raises(lp.LayoutError, match=message):
        lp.ask("in_bounds", FIG2, **options)


def test_sizes_that_are_not_known() -> None:
    """Replicas of arrays of run-time size: proved for all sizes, refuted with the smallest."""
    text = "S[(N,M):(M,1)] + R[2:N*M]"
    for question in ("injective", "replicas_distinct", "covers"):
        assert lp.ask(question, text).verdict is Verdict.PROVED
    assert lp.ask("in_bounds", f"{text} within (2*N*M@m)").verdict is Verdict.PROVED
    assert lp.ask("same_map", text, text).verdict is Verdict.PROVED
    close = lp.ask("injective", "S[N:1@m] + R[2:3@m]")
    assert smallest(close) == {
        "sizes": {"N": 4},
        "first": (0,),
        "second": (3,),
        "first_replica": (1,),
        "second_replica": (0,),
    }


def test_known_facts_about_layouts_in_the_wild() -> None:
    """Disjoint or not, how many places, lowest and highest, of 330 layouts from TVM and its users."""
    known = [row for row in rows("axe_cases.jsonl") if row.get("props", {}).get("size")]
    assert len(known) > 300
    for row in known:
        layout, props = row["layout"], row["props"]
        m = axe((props["size"],), layout["D"], layout["R"], layout["O"])
        result = lp.ask("injective", m)
        # None where the array was too large for whoever counted
        assert props["fibers_disjoint"] in (None, smallest(result) is None), row["id"]
        if props["size"] <= 4096 and not props["fibers_disjoint"]:
            assert smallest(result) == collision(m), row["id"]
        tally = count(m)
        if props["fibers_disjoint"] is not None:
            assert tally.places == prod(facts["image"] for facts in props["axes"].values()), row["id"]
        for axis, low, high in zip(m.range.names, tally.low, tally.high, strict=True):
            assert (low, high) == (props["axes"][axis]["min"], props["axes"][axis]["max"]), row["id"]


def test_an_axis_that_is_no_memory_is_not_compared_with_offsets() -> None:
    """Lane 3 is not offset 3; the axis m is a memory's."""
    with pytest.raises(lp.LayoutError, match=r"on the axis lane, not on m"):
        lp.ask("same_map", "S[(8,4):(4@lane,1@lane)] on (8,4)", "f32[8,4]{1,0}")
    assert lp.ask("same_map", "S[(8,4):(4,1)] on (8,4)", "f32[8,4]{1,0}").verdict is lp.Verdict.PROVED


def test_a_fusion_of_axes_that_no_layout_has_is_refused() -> None:
    """A misspelt axis would otherwise be no condition at all."""
    lanes = "S[(2,32):(1@warpid,1@laneid)] on (64)"
    with pytest.raises(
        lp.LayoutError,
        match=re.escape(words("properties.same_map_fusion_axes", axes="ty, a, b", have="laneid, warpid")),
    ):
        lp.ask("same_map", lanes, lanes, fusion=["ty = 2*a + b"])
