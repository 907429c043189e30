"""Each property refutes its planted fault with the smallest counterexample, found here by plain enumeration.

A fault is the nearest wrong neighbour of a case that is proved: a ceil that became a floor, two dimensions swapped, a
stride off by one, a tile level dropped, an extent off by one, padding just over its bound.
"""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.core.finding import Finding
from layoutproof.core.index_map import IndexMap
from layoutproof.core.result import Verdict
from layoutproof.core.space import Space
from layoutproof.registry.catalogue import properties
from layoutproof.registry.read import map_of, read_layout
from layoutproof.solvers.decide import ENGINES
from tests.properties import places
from tests.said import words

pytestmark = pytest.mark.slow

Index = tuple[int, ...]
Point = dict[str, Index]


@dataclass(frozen=True)
class Case:
    """One question that is proved, and the same question with a fault planted.

    smallest: the counterexample, written out. Enumeration must agree with it, and so must every engine.
    """

    fault: str
    property: str
    sound: tuple[Any, ...]
    faulty: tuple[Any, ...]
    smallest: Point
    options: dict[str, Any] = field(default_factory=dict)
    faulty_options: dict[str, Any] | None = None

    def __str__(self) -> str:
        return f"{self.property}: {self.fault}"

    def ask(self, faulty: bool, **how: Any) -> Finding:
        options = self.faulty_options if faulty and self.faulty_options is not None else self.options
        return lp.ask(self.property, *(self.faulty if faulty else self.sound), **options, **how)


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"faults_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ADDED = {path.stem: _module(path) for path in sorted((Path(__file__).parent / "faults").glob("*.py"))}
"""The faults of a property in a file of its own, by the property's name; CONTRIBUTING.md shows one.

`FAULTS` are the fault in words, the sound layouts, the faulty ones, and the smallest counterexample; `question(shape)`
gives the layouts to ask about for a shape; `enumerated(*layouts)` the smallest counterexample by trying every element.
"""


def tiles(shape: list[int], room: list[int]) -> dict[str, Any]:
    """A 4x3 tiling written by hand, with a range that says how many tiles there are."""
    return {"map": {"index": "(i, j) -> (i // 4, j // 3, i % 4, j % 3)", "shape": shape, "range": [*room, 4, 3]}}


def on_devices(device: Callable[[Any], Any]) -> IndexMap:
    """A vector of 8 on 4 devices, element i on device(i) at i % 2."""
    place = lambda index, replica, on: (device(index[0]), index[0] % 2)  # noqa: E731
    return IndexMap(Space(("i",), (8,)), Space(("device", "at"), (4, 2)), place)


CASES = (
    *(Case(fault, name, *rest) for name, module in ADDED.items() for fault, *rest in module.FAULTS),
    Case(
        "the last shard is short",
        "even",
        ("[8] sharded {devices=[4]<=[4]}",),
        ("[9] sharded {devices=[4]<=[4]}",),
        {"dimension": (0,), "tile": (3,)},
    ),
    Case(
        "the last pair has no device",
        "owned",
        (on_devices(lambda i: i // 2),),
        (on_devices(lambda i: i // 2 + 1),),
        {"element": (6,)},
    ),
    Case(
        "two rows share their ends: stride one too small",
        "injective",
        ("f32[3,5] strides (5,1)",),
        ("f32[3,5] strides (4,1)",),
        {"first": (0, 4), "second": (1, 0)},
    ),
    Case(
        "stride 0",
        "injective",
        ("f32[3,5] strides (1,3)",),
        ("f32[3,5] strides (1,0)",),
        {"first": (0, 0), "second": (0, 1)},
    ),
    Case(
        "stride one too small, far from the start",
        "injective",
        ("f32[4,3,2] strides (7,3,2)",),
        ("f32[4,3,2] strides (7,3,1)",),
        {},
    ),
    Case(
        "the position within the tile is lost",
        "injective",
        ("(i < 10) -> (i // 4, i % 4)",),
        ("(i < 10) -> (i // 4, i % 3)",),
        {"first": (0,), "second": (3,)},
    ),
    Case(
        "floor for ceil in rows", "in_bounds", (tiles([10, 7], [3, 3]),), (tiles([10, 7], [2, 3]),), {"element": (8, 0)}
    ),
    Case(
        "floor for ceil, columns",
        "in_bounds",
        (tiles([10, 7], [3, 3]),),
        (tiles([10, 7], [3, 2]),),
        {"element": (0, 6)},
    ),
    Case(
        "reserved one element short",
        "in_bounds",
        ("f32[4] strides (2) in 7",),
        ("f32[4] strides (2) in 6",),
        {"element": (3,)},
    ),
    Case(
        "starts one element late",
        "in_bounds",
        ("f32[3,5] strides (5,1) offset 0 in 15",),
        ("f32[3,5] strides (5,1) offset 1 in 15",),
        {"element": (2, 4)},
    ),
    Case(
        "steps over the start",
        "in_bounds",
        ("f32[4] strides (-1) offset 3 in 4",),
        ("f32[4] strides (-1) offset 2 in 4",),
        {"element": (3,)},
    ),
    Case(
        "one column of a tile is beyond the range", "bijective", (tiles([8, 6], [2, 2]),), (tiles([8, 7], [2, 2]),), {}
    ),
    Case(
        "rows overlap",
        "bijective",
        ("f32[3,5] strides (6,1) in 20",),
        ("f32[3,5] strides (3,1) in 20",),
        {"first": (0, 3), "second": (1, 0)},
    ),
    Case("one element short of its tiles", "covers", (tiles([8, 6], [2, 2]),), (tiles([8, 5], [2, 2]),), {}),
    Case(
        "a row of padding",
        "covers",
        ("f32[4,128]{1,0:T(4,128)}",),
        ("f32[3,128]{1,0:T(4,128)}",),
        {"place": (0, 0, 3, 0)},
    ),
    Case(
        "reserved one element too much",
        "covers",
        ("f32[4] strides (1) in 4",),
        ("f32[4] strides (1) in 5",),
        {"place": (4,)},
    ),
    Case("alignment at the tail", "covers", ("f32[4,6]{1,0:L(3)}",), ("f32[4,5]{1,0:L(3)}",), {}),
    Case("aligned tiles", "covers", ("f32[4,8]{1,0:T(2,4)L(32)}",), ("f32[4,8]{1,0:T(2,4)L(33)}",), {}),
    Case(
        "dimensions swapped",
        "same_map",
        ("f32[3,5]{1,0:T(2,2)}", "f32[3,5]{1,0:T(2,2)(1,2)}"),
        ("f32[3,5]{1,0:T(2,2)}", "f32[3,5]{0,1:T(2,2)}"),
        {"element": (0, 1)},
    ),
    Case(
        "tile transposed",
        "same_map",
        ("f32[8,8]{1,0:T(2,4)}", "f32[8,8]{1,0:T(2,4)(1,4)}"),
        ("f32[8,8]{1,0:T(2,4)}", "f32[8,8]{1,0:T(4,2)}"),
        {"element": (0, 2)},
    ),
    Case(
        "second tile level dropped",
        "same_map",
        ("bf16[16,256]{1,0:T(8,128)(2,1)}", "bf16[16,256]{1,0:T(8,128)(2,128)(2,1)}"),
        ("bf16[16,256]{1,0:T(8,128)(2,1)}", "bf16[16,256]{1,0:T(8,128)}"),
        {"element": (0, 1)},
    ),
    Case(
        "stride one too large",
        "same_map",
        ("f32[3,5]", "f32[3,5] strides (5,1)"),
        ("f32[3,5]", "f32[3,5] strides (6,1)"),
        {"element": (1, 0)},
    ),
    Case(
        "another memory space",
        "same_map",
        ("f32[2,2]{1,0:S(1)}", "f32[2,2]{1,0:T(1,2)S(1)}"),
        ("f32[2,2]{1,0:S(1)}", "f32[2,2]{1,0}"),
        {"element": (0, 0)},
    ),
    Case(
        "bytes before the first element",
        "same_map",
        ("f32[2,2]{1,0:M(8)}", "f32[2,2]{1,0:T(1,2)M(8)}"),
        ("f32[2,2]{1,0:M(8)}", "f32[2,2]{1,0}"),
        {"element": (0, 0)},
    ),
    Case(
        "half bytes and whole bytes",
        "same_map",
        ("s4[2,3]{1,0:E(4)}", "s4[2,3]{1,0:T(1,3)E(4)}"),
        ("s4[2,3]{1,0:E(4)}", "s4[2,3]{1,0}"),
        {"element": (0, 1)},
    ),
    Case(
        "rows per block not a multiple of the tile",
        "bitcast",
        ("f32[3,8,128]{2,1,0:T(8,128)}", "f32[24,128]{1,0:T(8,128)}"),
        ("f32[3,7,128]{2,1,0:T(8,128)}", "f32[21,128]{1,0:T(8,128)}"),
        {"element": (1, 0, 0)},
    ),
    Case(
        "half a tile per block",
        "bitcast",
        ("f32[3,16,8]{2,1,0:T(8,8)}", "f32[48,8]{1,0:T(8,8)}"),
        ("f32[3,12,8]{2,1,0:T(8,8)}", "f32[36,8]{1,0:T(8,8)}"),
        {"element": (1, 0, 0)},
    ),
    Case(
        "the transpose keeps the order",
        "bitcast",
        ("f32[3,5]{1,0}", "f32[5,3]{0,1}"),
        ("f32[3,5]{1,0}", "f32[5,3]{1,0}"),
        {"element": (0, 1)},
        {"permutation": (1, 0)},
    ),
    Case(
        "the same places, more of them",
        "bitcast",
        ("f32[4,8]{1,0:T(4,8)}", "f32[4,8]{1,0:T(2,8)}"),
        ("f32[4,8]{1,0:T(4,8)}", "f32[4,8]{1,0:T(8,8)}"),
        {"bytes": (128, 256)},
    ),
    Case(
        "another memory space",
        "bitcast",
        ("f32[4]{0:S(1)}", "f32[2,2]{1,0:S(1)}"),
        ("f32[4]{0:S(1)}", "f32[2,2]{1,0}"),
        {"element": (0,)},
    ),
    Case(
        "pieces in the other order",
        "bitcast",
        ("f32[4]{0}", "s8[4,4]{1,0}"),
        ("f32[4]{0}", "s8[4,4]{0,1}"),
        {"element": (0, 1)},
    ),
    Case(
        "a share just above the bound",
        "padding",
        ("f32[3,5]{1,0:T(2,2)}",),
        ("f32[3,5]{1,0:T(2,2)}",),
        {"elements": (15,), "padded_elements": (24,)},
        {"at_most": "37.5%"},
        {"at_most": "37.499999999999%"},
    ),
    Case(
        "a factor just above the bound",
        "padding",
        ("f32[3,5]{1,0:T(2,2)}",),
        ("f32[3,5]{1,0:T(2,2)}",),
        {"elements": (15,), "padded_elements": (24,)},
        {"at_most": "1.6x"},
        {"at_most": "1.599999999999x"},
    ),
    Case(
        "one row more opens a tile",
        "padding",
        ("f32[8,16]{1,0:T(8,16)}",),
        ("f32[9,16]{1,0:T(8,16)}",),
        {"elements": (144,), "padded_elements": (256,)},
        {"at_most": "43%"},
    ),
    Case(
        "elements overlap",
        "padding",
        ("f32[3,5] strides (5,1)",),
        ("f32[3,5] strides (4,1)",),
        {"first": (0, 4), "second": (1, 0)},
    ),
    Case(
        "one element past 2**31",
        "fits_int32",
        (f"s8[{2**31}]",),
        (f"s8[{2**31 + 1}]",),
        {"element": (2**31,)},
    ),
    Case(
        "one row of tiles past 2**31",
        "fits_int32",
        ("f32[65536,32768]{1,0:T(8,128)}",),
        ("f32[65537,32768]{1,0:T(8,128)}",),
        {"element": (65536, 0)},
    ),
    Case(
        "padding pushes elements past 2**31",
        "fits_int32",
        ("f32[65536,256,128]{2,1,0:T(8,128)}",),
        ("f32[65536,257,128]{2,1,0:T(8,128)}",),
        {"element": (63550, 16, 0)},
    ),
    Case(
        "one element past 2**63",
        "fits_int64",
        (f"s8[{2**32},{2**31}]",),
        (f"s8[{2**32},{2**31 + 1}]",),
        {"element": (4294967294, 2)},
    ),
    Case(
        "two replicas on one device",
        "replicas_distinct",
        ("S[4:1@m] + R[(2,3):(3@gpuid,1@gpuid)]",),
        ("S[4:1@m] + R[(2,3):(2@gpuid,1@gpuid)]",),
        {"element": (0,), "first_replica": (0, 2), "second_replica": (1, 0)},
    ),
    Case(
        "a required replica is on another device",
        "refines",
        ("S[4:1@m] + R[2:2@gpuid]", "S[4:1@m] + R[4:1@gpuid]"),
        ("S[4:1@m] + R[2:4@gpuid]", "S[4:1@m] + R[4:1@gpuid]"),
        {"element": (0,), "replica": (1,)},
    ),
    Case(
        "replicas of a row on one device",
        "owners",
        ("S[(2,8):(1@gpuid,1@m)] + R[2:2@gpuid] on (2,8)",),
        ("S[(2,8):(1@gpuid,1@m)] + R[2:8@m] on (2,8)",),
        {"element": (0, 0), "first_replica": (0,), "second_replica": (1,)},
    ),
)

LARGE = 1 << 20
"""Arrays with more elements than this are not given to the engine that tries them all."""


def every(extents: Sequence[Any]) -> Iterator[Index]:
    return itertools.product(*map(range, extents))


def collision(m: IndexMap) -> Point:
    """The smallest pair of elements at one place."""
    at: dict[Index, list[Index]] = {}
    for index in every(m.domain.extents):
        at.setdefault(m.at(index), []).append(index)
    pairs = [(found[0], found[1]) for found in at.values() if len(found) > 1]
    return {"first": min(pairs)[0], "second": min(pairs)[1]} if pairs else {}


def outside(m: IndexMap) -> Point:
    """The smallest element whose place is not in the range."""
    for index in every(m.domain.extents):
        if any(not 0 <= entry < extent for entry, extent in zip(m.at(index), m.range.extents, strict=True)):
            return {"element": index}
    return {}


def hole(m: IndexMap) -> Point:
    """The smallest place without an element."""
    used = {m.at(index) for index in every(m.domain.extents)}
    return next(({"place": place} for place in every(m.range.extents) if place not in used), {})


def bit(m: IndexMap, index: Index) -> tuple[int, int]:
    """Memory space and first bit of an element, straight from what the layout says."""
    assert m.memory is not None
    position = 0
    for entry, extent in zip(m.at(index), m.range.extents, strict=True):
        position = position * int(extent) + entry
    return m.memory.space, position * m.memory.bits + 8 * m.memory.prefix_bytes


def moved(one: IndexMap, other: IndexMap, permutation: Sequence[int] | None = None) -> Point:
    """The smallest element that the two put at different bits; of `other` in row-major or transposed order."""
    assert one.memory is not None
    assert other.memory is not None
    pieces = one.memory.bits // other.memory.bits if one.domain.extents != other.domain.extents else 1
    wide = every(one.domain.extents)
    narrow = ((*index, piece) for index in wide for piece in range(pieces)) if pieces > 1 else wide
    for index, target in zip(narrow, every(other.domain.extents), strict=True):
        if permutation is not None:
            target = tuple(index[axis] for axis in permutation)
        space, first = bit(one, index[: len(one.domain.extents)])
        if (space, first + (index[-1] * other.memory.bits if pieces > 1 else 0)) != bit(other, target):
            return {"element": index}
    return {}


def allotted_bytes(m: IndexMap) -> int:
    assert m.memory is not None
    return -(-int(m.memory.allotted) * m.memory.bits // 8) + m.memory.prefix_bytes  # type: ignore[arg-type]


def short_shard(text: str) -> Point | None:
    """The first dimension and tile whose shard is smaller than a full one, from the extents and tiles in the text."""
    extents, tiles = ([int(n) for n in part.split("]")[0].split(",")] for part in text.split("[")[1:3])
    for dimension, (extent, count) in enumerate(zip(extents, tiles, strict=True)):
        full = -(-extent // count)
        for tile in range(count):
            if min((tile + 1) * full, extent) - min(tile * full, extent) < full:
                return {"dimension": (dimension,), "tile": (tile,)}
    return None


def enumerated(case: Case, layouts: Sequence[Any]) -> Point | None:
    """The counterexample by trying every element in order; None when there is none."""
    if case.property in ADDED:
        found: Point | None = ADDED[case.property].enumerated(*layouts)
        return found
    maps = [map_of(read_layout(layout)) for layout in layouts]
    one = maps[0]
    if case.property in ("injective", "bijective", "padding", "in_bounds"):
        point = {} if case.property == "in_bounds" else collision(one)
        return point or (outside(one) if case.property != "injective" else {}) or None
    if case.property == "covers":
        memory = one.memory
        tail = memory is not None and memory.allotted != len(list(every(one.range.extents)))
        return hole(one) or ({} if tail else None)
    if case.property == "same_map":
        return moved(*maps) or None
    if case.property == "refines":
        return places.missing(*maps)
    if case.property in ("replicas_distinct", "owners"):
        return places.repeated(one, ("gpuid",)) or places.collision(one)
    if case.property == "owned":
        return outside(one) or None
    if case.property == "even":
        return short_shard(layouts[0])
    assert case.property == "bitcast"
    sizes = (allotted_bytes(maps[0]), allotted_bytes(maps[1]))
    return moved(*maps, case.options.get("permutation")) or ({"bytes": sizes} if sizes[0] != sizes[1] else None)


SMALL = [case for case in CASES if not case.property.startswith("fits") and "at_most" not in case.options]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fault_is_refuted(case: Case) -> None:
    """Without the fault it is proved, with it refuted at the counterexample written in the table."""
    assert case.ask(faulty=False).verdict is Verdict.PROVED
    result = case.ask(faulty=True)
    assert result.verdict is Verdict.REFUTED
    assert result.counterexample is not None
    assert result.reason
    if case.smallest:
        assert dict(result.counterexample) == case.smallest


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_counterexample_is_the_smallest(case: Case) -> None:
    """Plain enumeration of every element finds nothing without the fault, and the same counterexample with it."""
    assert enumerated(case, case.sound) is None
    result = case.ask(faulty=True)
    found = enumerated(case, case.faulty)
    assert found is not None
    assert result.counterexample is not None
    assert dict(result.counterexample) == found


def first_beyond(text: str, limit: int) -> Index | None:
    """The smallest element with an offset of at least `limit`, given that offsets grow with every index entry."""
    m = read_layout(text).index_map().flat()
    index: list[int] = []
    for d, extent in enumerate(m.domain.extents):
        rest = [int(e) - 1 for e in m.domain.extents[d + 1 :]]
        low, high = 0, int(extent)
        # the smallest entry with which the largest of the rest gets there
        while low < high:
            middle = (low + high) // 2
            reaches = m.at((*index, middle, *rest))[0] >= limit
            low, high = (low, middle) if reaches else (middle + 1, high)
        if low == extent:
            return None
        index.append(low)
    return tuple(index)


@pytest.mark.parametrize("case", [c for c in CASES if c.property.startswith("fits")], ids=str)
def test_first_offset_that_does_not_fit(case: Case) -> None:
    """The edge is exact: offset 2**31 - 1 still fits, and the element at 2**31 or beyond is the smallest such."""
    limit = 2 ** (int(case.property[-2:]) - 1)
    assert first_beyond(case.sound[0], limit) is None
    assert first_beyond(case.faulty[0], limit) == case.smallest["element"]


@pytest.mark.parametrize("case", [c for c in CASES if "at_most" in c.options], ids=str)
def test_padding_is_counted_one_by_one(case: Case) -> None:
    """The numbers of a refuted bound are those of counting elements and places."""
    m = map_of(read_layout(case.faulty[0]))
    assert case.smallest["elements"] == (len(list(every(m.domain.extents))),)
    assert case.smallest["padded_elements"] == (len(list(every(m.range.extents))),)


@pytest.mark.parametrize("faulty", [False, True], ids=["sound", "faulty"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_engines_agree(case: Case, faulty: bool) -> None:
    """Every engine that decides gives the same verdict and counterexample; one that cannot says why; two decide."""
    chosen = case.ask(faulty)
    decided = set()
    layouts = case.faulty if faulty else case.sound
    large = any(prod(map_of(read_layout(layout)).domain.extents) > LARGE for layout in layouts)
    # enumeration would only count to its cap there, for seconds
    for engine in ENGINES[: -1 if large else None]:
        result = case.ask(faulty, engine=engine)
        if result.verdict is Verdict.UNKNOWN:
            assert f"{engine}: " in result.reason
            assert result.counterexample is None
            continue
        decided.add(engine)
        assert result.decided_by == engine
        assert result.verdict is chosen.verdict
        # an engine that cannot tell a property's first claim may still refute its second
        if result.counterexample is None or set(result.counterexample) == set(chosen.counterexample or ()):
            assert result.counterexample == chosen.counterexample
    assert len(decided) >= 2


@pytest.mark.parametrize("case", CASES, ids=str)
def test_confirmed_by_two(case: Case) -> None:
    """With confirm=True two engines stand behind the same answer."""
    for faulty in (False, True):
        alone, confirmed = case.ask(faulty), case.ask(faulty, confirm=True)
        assert (confirmed.verdict, confirmed.counterexample) == (alone.verdict, alone.counterexample)
        assert len(set(confirmed.decided_by.split("+"))) >= 2
        assert set(confirmed.decided_by.split("+")) <= set(ENGINES)


def test_confirmation_can_fail() -> None:
    """What only one engine can tell is unknown when two are asked for, and says who told it."""
    cubes = {"map": {"index": "(i) -> (i * i * i % 4001,)", "shape": [3000], "range": [4001]}}
    result = lp.ask("covers", cubes, confirm=True)
    assert result.verdict is Verdict.UNKNOWN
    assert result.reason.startswith("only brute refutes it, no second engine confirms: ")


def test_every_property_has_a_fault() -> None:
    """A property without a planted fault here is not tested."""
    assert {case.property for case in CASES} == set(properties())


QUESTIONS: dict[str, Callable[[str], tuple[Any, ...]]] = {
    "replicas_distinct": lambda shape: (f"f32{shape}",),
    "owned": lambda shape: (f"f32{shape} sharded {{devices=[2,1]<=[2]}}",),
    "even": lambda shape: (f"f32{shape} sharded {{devices=[2,1]<=[2]}}",),
    "refines": lambda shape: (f"f32{shape}", f"f32{shape}"),
    "owners": lambda shape: (f"(i < {shape[1:-1].replace(',', ', j <')}) -> (i, j) in {shape}",),
    "injective": lambda shape: (f"f32{shape}",),
    "in_bounds": lambda shape: (f"f32{shape}",),
    "bijective": lambda shape: (f"f32{shape}",),
    "covers": lambda shape: (f"f32{shape}",),
    "padding": lambda shape: (f"f32{shape}",),
    "fits_int32": lambda shape: (f"f32{shape}",),
    "fits_int64": lambda shape: (f"f32{shape}",),
    "same_map": lambda shape: (f"f32{shape}", f"f32{shape}"),
    "bitcast": lambda shape: (f"f32{shape}", f"f32{shape}"),
    **{name: module.question for name, module in ADDED.items()},
}


@pytest.mark.parametrize("name", properties())
def test_nothing_to_prove_is_unknown(name: str) -> None:
    """An array without elements, and a condition that no sizes satisfy, prove nothing: unknown, with the reason."""
    empty = lp.ask(name, *QUESTIONS[name]("[4,0]"))
    assert (empty.verdict, empty.reason) == (Verdict.UNKNOWN, "vacuous: the array has no elements")
    never = lp.ask(name, *QUESTIONS[name]("[N,4]"), where="N % 2 == 0 and N % 2 == 1")
    assert (never.verdict, never.reason) == (
        Verdict.UNKNOWN,
        "vacuous: no sizes satisfy N % 2 == 0 and N % 2 == 1",
    )
    for result in (empty, never):
        assert result.counterexample is None
        assert result.decided_by == ""
    # the same question with elements, and with a condition that can hold, is decided
    assert lp.ask(name, *QUESTIONS[name]("[4,1]")).verdict is Verdict.PROVED
    assert lp.ask(name, *QUESTIONS[name]("[N,4]"), where="N % 2 == 0 and N <= 8").verdict is Verdict.PROVED


def test_a_result_is_no_truth_value() -> None:
    """Three outcomes do not fit into a bool, so asking for one raises."""
    with pytest.raises(TypeError, match="three outcomes"):
        bool(lp.ask("injective", "f32[4]"))


def test_maps_of_different_rank_are_compared_or_refused() -> None:
    """Two maps without a memory and with different numbers of coordinates: bad input, never a library's error."""
    with pytest.raises(lp.LayoutError):
        lp.ask("same_map", "(i < 4) -> (i,)", "(i < 4) -> (i, 0)")


@pytest.mark.parametrize(
    ("before", "after_", "smallest"),
    [
        ("s4[4,4]{1,0:E(4)}", "s4[4,4]{1,0}", {"element": (0, 1)}),
        ("s4[4,4]{1,0}", "s4[4,4]{1,0:E(4)}", {"element": (0, 1)}),
        ("pred[4]{0:E(32)}", "pred[4]{0}", {"element": (1,)}),
    ],
)
def test_repacking_moves_elements(before: str, after_: str, smallest: Point) -> None:
    """One element type stored at two widths is no bitcast: the elements are the same ones and move."""
    result = lp.ask("bitcast", before, after_)
    assert (result.verdict, dict(result.counterexample or {})) == (Verdict.REFUTED, smallest)


@pytest.mark.parametrize(
    ("name", "layouts", "where", "smallest"),
    [
        ("same_map", ("f32[N,4]", "f32[N,4]{0,1}"), "N == 4", {"sizes": {"N": 4}, "element": (0, 1)}),
        ("injective", ("f32[N,4] strides (0,1)",), "N == 4", {"sizes": {"N": 4}, "first": (0, 0), "second": (1, 0)}),
        ("in_bounds", ("f32[N] strides (2) in 6",), "N == 4", {"sizes": {"N": 4}, "element": (3,)}),
        ("in_bounds", ("f32[N] strides (2) in 2*N-2",), None, {"sizes": {"N": 1}, "element": (0,)}),
        ("fits_int32", ("f32[N]",), f"N == {2**31 + 5}", {"sizes": {"N": 2**31 + 5}, "element": (2**31,)}),
    ],
)
def test_sizes_fixed_by_a_condition(name: str, layouts: tuple[str, ...], where: str | None, smallest: Point) -> None:
    """A condition that fixes the sizes changes nothing about the counterexample, which still names them."""
    result = lp.ask(name, *layouts, where=where)
    assert (result.verdict, dict(result.counterexample or {})) == (Verdict.REFUTED, smallest)


@pytest.mark.parametrize(
    ("name", "layout", "smallest"),
    [
        ("in_bounds", "(i < N) -> (4,) in [4]", {"sizes": {"N": 1}, "element": (0,)}),
        ("in_bounds", "f32[N] strides (0) offset 4 in 4", {"sizes": {"N": 1}, "element": (0,)}),
        ("in_bounds", "(i < N) -> (2 // N,) in [2]", {"sizes": {"N": 1}, "element": (0,)}),
        ("injective", "f32[4] strides (0) in N", {"sizes": {"N": 1}, "first": (0,), "second": (1,)}),
    ],
)
def test_constants_among_symbols(name: str, layout: str, smallest: Point) -> None:
    """A violation that no size changes is refuted with the smallest sizes, by whichever engine is asked."""
    for engine in (None, *ENGINES):
        result = lp.ask(name, layout, engine=engine)
        if engine is not None and result.verdict is Verdict.UNKNOWN:
            assert f"{engine}: " in result.reason
        else:
            assert (result.verdict, dict(result.counterexample or {})) == (Verdict.REFUTED, smallest)


@pytest.mark.parametrize("layout", ["(i < 1) -> (4 // i,)", "(i < 3) -> (4 // i,)", "(i < N) -> (N // i,)"])
def test_division_by_zero_is_no_proof(layout: str) -> None:
    """A map that divides by an index, which may be 0, has no place there: unknown or bad input, in every engine."""
    for engine in (None, *ENGINES):
        try:
            result = lp.ask("injective", layout, engine=engine)
        except lp.LayoutError:
            continue
        assert (result.verdict, bool(result.reason)) == (Verdict.UNKNOWN, True), engine


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ({"where": 8}, words("questions.where_type", found=8)),
        ({"effort": 0}, words("questions.effort", found=0)),
        ({"effort": "2"}, words("questions.effort", found="'2'")),
        ({"engine": 5}, f"unknown engine '5'; known: {', '.join(ENGINES)}"),
        ({"at_most": "2%"}, "injective does not know the option 'at_most'; it has no options"),
    ],
)
def test_bad_arguments_are_bad_input(how: dict[str, Any], problem: str) -> None:
    """What is no condition, effort, engine or option is refused by name, not by a library's error."""
    with pytest.raises(lp.LayoutError) as caught:
        lp.ask("injective", "f32[N]", **how)
    assert caught.value.problem == problem
