"""The audit: real dumps pass it, and each planted fault is found with the right words."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from layoutproof.core.result import Verdict
from layoutproof.hlo import bitcasts, followed
from layoutproof.hlo.audit import audit, audit_events, audit_file
from layoutproof.hlo.found import Audit
from layoutproof.hlo.report import as_json, as_text
from layoutproof.hlo.shapes import ArrayShape, Shapes, read_array
from layoutproof.hlotext.lines import events, read_hlo
from layoutproof.programs.reading import record_of
from tests.hlo.dumps import SMALL, dump_on_cpu
from tests.recorded import DUMPS, dump
from tests.said import stretch, words

pytestmark = pytest.mark.slow


def audited(text: str) -> Audit:
    return audit(text.splitlines(keepends=True), "dump.txt")


@pytest.mark.parametrize("name", DUMPS)
def test_real_dumps(name: str) -> None:
    text = dump(name)
    found = audited(text)
    assert not found.errors
    assert not found.contradictions
    # kernels are told apart: whether they can be read rests on what else is installed
    assert [u for u in found.unknown.values() if not u.subject.startswith("Mosaic kernel")] == []
    assert sum(c.count for c in found.casts.values()) == len(re.findall(r" bitcast\(", text))
    assert all(c.cast.verdict is Verdict.PROVED for c in found.casts.values())
    assert sum(found.kernels.values()) == text.count('custom_call_target="tpu_custom_call"')
    assert found.exit_code == (3 if found.kernels["unknown"] else 0)


@pytest.mark.parametrize("name", DUMPS)
def test_bitcasts_by_enumeration(name: str) -> None:
    # every valid slot of both sides, counted by hand, where the arrays are small enough
    for source, target in audited(dump(name)).casts:
        one, other = read_array(source), read_array(target)
        if one.elements > 20_000 or one.layout is None or other.layout is None:
            continue
        assert slots(one) == slots(other)


def test_the_small_program() -> None:
    found = audited(SMALL)
    assert found.exit_code == 0
    (moves,) = found.moves.values()
    assert (moves.opcode, moves.move.kind, moves.move.size) == ("copy", "relayout", 8192 + 131072)
    (cast,) = found.casts.values()
    assert (cast.cast.verdict, cast.cast.how) == (Verdict.PROVED, "transpose (1, 0)")
    assert {key: b.count for key, b in found.buffers.items()} == {
        ("parameter", "f32[8,256]{1,0:T(8,128)}"): 1,
        ("value", "f32[8,256]{1,0:T(8,128)}"): 1,
        ("value", "f32[256,8]{1,0:T(8,128)}"): 1,
    }
    text = as_text(found)
    assert "124.0 KiB" not in text
    assert "120.0 KiB wasted, 16.0x: 1 of f32[256,8]{1,0:T(8,128)}" in text
    assert "yours: result 0" in text
    assert "candidate: laid out {0,1:T(8,128)} it would save 122880 bytes; not tried" in text
    assert "fix" not in text
    assert "copy.1 (line 25, f/transpose model.py:7)" in text


BITCAST = "f32[256,8]{0,1"

MUTANTS = {
    "two dimensions of a bitcast's layout": (
        ("f32[256,8]{0,1:T(8,128)} bitcast", "f32[256,8]{1,0:T(8,128)} bitcast"),
        1,
        "bitcast f32[8,256]{1,0:T(8,128)} -> f32[256,8]{1,0:T(8,128)} dump.txt:24 because 8192 bytes are",
    ),
    "two dimensions of an operand's layout": (
        ("ROOT %add.1 = f32[8,256]{1,0", "ROOT %add.1 = f32[8,256]{0,1"),
        1,
        "add add.1 and its operand p",
    ),
    "a fusion's result": (
        ("%fusion = f32[8,256]{1,0:T(8,128)}", "%fusion = f32[8,256]{1,0:T(4,128)}"),
        1,
        "fusion fusion and double, result dump.txt:23 because f32[8,256]{1,0:T(8,128)} is not f32[8,256]{1,0:T(4,128)}",
    ),
    "a tile less": (
        ("%p = f32[8,256]{1,0:T(8,128)}", "%p = f32[8,256]{1,0}"),
        1,
        "fusion fusion and double, parameter 0",
    ),
    "the entry's layout": (("->f32[256,8]{1,0", "->f32[256,8]{0,1"), 1, "entry result and entry_computation_layout"),
    "another count": (
        (f"{BITCAST}:T(8,128)}} bitcast", "f32[255,8]{0,1:T(8,128)} bitcast"),
        1,
        "operand bitcast.1 dump.txt:25 because f32[255,8]{0,1:T(8,128)} is not f32[256,8]{1,0:T(8,128)}",
    ),
    "a dimension of an operand": (
        ("%p = f32[8,256]", "%p = f32[8,255]"),
        1,
        "add add.1 and its operand p dump.txt:18 because f32[8,255]{1,0:T(8,128)} is not f32[8,256]{1,0:T(8,128)}",
    ),
    "a dimension more of an operand": (
        ("%p = f32[8,256]{1,0:T(8,128)}", "%p = f32[1,8,256]{2,1,0:T(8,128)}"),
        1,
        "add add.1 and its operand p",
    ),
    "another memory": (("{0,1:T(8,128)} bitcast", "{0,1:T(8,128)S(1)} bitcast"), 1, stretch("hlo.space_changed")),
    "an unknown type": ((f"{BITCAST}:T(8,128)}} bitcast", "f31[256,8]{0,1} bitcast"), 3, "unknown element type 'f31'"),
    "a split": (("f32[256,8]{0,1:T(8,128)} bitcast", "f32[256,8]{0,1:T(8,128)SC(0:4)} bitcast"), 3, "SC(..)"),
    "a dynamic dimension": (("f32[256,8]{0,1:T(8,128)} bitcast", "f32[<=256,8]{0,1} bitcast"), 3, "dynamic dimensions"),
    "an unreadable sharding": (("{replicated}", "{scattered}"), 3, "sharding {scattered}"),
}  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_of_the_small_program(mutant: str) -> None:
    (old, new), code, message = MUTANTS[mutant]
    assert old in SMALL
    found = audited(SMALL.replace(old, new, 1))
    text = " ".join(as_text(found).split())
    assert found.exit_code == code, text
    assert message in text, text


@pytest.mark.parametrize("name", DUMPS)
def test_contradictions_alone(name: str) -> None:
    """The gate asks for nothing else: it gets the same ones, and nothing is kept of what nobody asked for."""
    text = dump(name).replace("f32[", "bf16[", 3)
    whole, alone = audit(text.splitlines()), audit_events(events(text.splitlines()), contradictions_only=True)
    assert alone.contradictions == whole.contradictions
    assert [*map(str, alone.errors)] == [*map(str, whole.errors)]
    assert whole.buffers
    kept = (alone.buffers, alone.moves, alone.casts, alone.talks, alone.roots, alone.kernels)
    assert not any(kept)


def test_a_copy_more_is_counted() -> None:
    more = SMALL.replace("ROOT %copy.1 =", "%copy.0 = f32[256,8]{1,0:T(8,128)} copy(%bitcast.1)\n  ROOT %copy.1 =")
    (before,), (after,) = (audited(text).moves.values() for text in (SMALL, more))
    assert (before.count, after.count) == (1, 2)


@pytest.mark.parametrize("name", [n for n in DUMPS if n.startswith(("transformer_bf16", "embedding", "while"))])
def test_each_swapped_layout_of_a_bitcast_or_fusion_is_seen(name: str) -> None:
    lines = dump(name).splitlines(keepends=True)
    pattern = re.compile(r" = \w+\[(\d+),(\d+)\]\{(1,0|0,1):T[^}]*\} (fusion|bitcast|get-tuple-element)\(")
    tried = 0
    for number, line in enumerate(lines):
        match = pattern.search(line)
        if match is None or match[1] == match[2] == "1" or "1" in (match[1], match[2]):
            continue
        tried += 1
        swapped = line[: match.start(3)] + match[3][::-1] + line[match.end(3) :]
        found = audit([*lines[:number], swapped, *lines[number + 1 :]], name)
        assert found.exit_code == 1, swapped[:120]
        assert found.contradicted or found.refuted()
    assert tried


REFUTED = {
    ("f32[4,4,128]{2,1,0:T(8,128)}", "f32[16,128]{1,0:T(8,128)}"): words("core.allotted", old=16384, new=8192),
    ("f32[4,128]{1,0:T(8,128)}", "f32[4,128]{1,0:T(8,128)E(64)}"): words("core.allotted", old=4096, new=8192),
    # the same bytes and as many elements, but not in the same slots: (4, 0) of the first is where the other has none
    ("f32[4,128]{1,0:T(8,128)}", "f32[128,4]{1,0:T(128,8)}"): "in the padding of",
    # the second row of each is where the other has none
    ("f32[2,100]{1,0:T(2,128)}", "f32[1,200]{1,0:T(1,128)}"): "is in the padding of",
    # fewer elements, and still one in what was padding: (0, 5)
    ("f32[8,5]{1,0:T(8,128)}", "f32[6,6]{1,0:T(8,128)}"): (
        "40 elements cannot be 36 elements: element [0, 5] of the result at byte 20 is in the padding of f32[8,5]"
    ),
    ("f32[6,6]{1,0:T(8,128)}", "f32[8,5]{1,0:T(8,128)}"): "element [0, 5] of the operand at byte 20 is in the padding",
}


@pytest.mark.parametrize("pair", REFUTED)
def test_bitcasts_refuted(pair: tuple[str, str]) -> None:
    found = bitcasts.judge(*map(read_array, pair))
    assert found.verdict is Verdict.REFUTED
    assert REFUTED[pair] in found.reason


SLICED = {
    ("f32[12,16]{1,0:T(8,128)S(1)}", "f32[12,9]{1,0:T(8,128)S(1)}"): "slice",
    ("s32[4]{0:T(128)S(1)}", "s32[3]{0:T(128)S(1)}"): "slice",
    ("f32[5]{0:T(8)}", "f32[6]{0:T(8)}"): "pad",
    ("f32[4,8,8,128]{3,1,2,0:T(8,128)}", "f32[30,1024]{1,0:T(8,128)}"): "slice with reshape",
    ("f32[17,3072]{1,0:T(8,128)}", "f32[3,8,24,128]{3,1,2,0:T(8,128)}"): "pad with reshape",
    ("f32[3,8,24,128]{3,1,2,0:T(8,128)}", "f32[3072,17]{0,1:T(8,128)}"): "slice with reshape before a transpose",
}
"""Bitcasts of a sort, an FFT, an eigh, a ragged dot and a cumulative sum, as libtpu 0.0.42.1 compiles them for v5e."""


@pytest.mark.parametrize("pair", SLICED)
def test_bitcasts_that_slice_or_pad(pair: tuple[str, str]) -> None:
    one, other = map(read_array, pair)
    found = bitcasts.judge(one, other)
    assert (found.verdict, found.how) == (Verdict.PROVED, SLICED[pair])
    fewer, more = sorted((one, other), key=lambda array: array.elements)
    assert slots(fewer) < slots(more)


MASKS = [
    ("pred[512]{0:T(512)(128)(4,1)}", "u32[1,1,128]{2,1,0:T(1,128)}"),
    ("u32[1,1,128]{2,1,0:T(1,128)}", "pred[32]{0:T(512)(128)(4,1)}"),
]


@pytest.mark.parametrize("pair", MASKS)
def test_bitcasts_of_packed_masks(pair: tuple[str, str]) -> None:
    """As libtpu 0.0.42.1 compiles a sharded take for v5e: no byte moves, and no reshape explains it."""
    found = bitcasts.judge(*map(read_array, pair))
    assert (found.verdict, found.how) == (Verdict.PROVED, bitcasts.REORDERING)


def test_masks_that_do_not_fill_the_same_bytes() -> None:
    found = bitcasts.judge(read_array("pred[500]{0:T(1024)}"), read_array("u32[2,100]{1,0:T(2,128)}"))
    assert found.verdict is Verdict.REFUTED


def slots(array: ArrayShape) -> set[int]:
    """Every place of an array, one element after the other."""
    assert array.layout is not None
    flat = array.layout.index_map().flat()
    every = itertools.product(*[range(int(n)) for n in array.layout.dims])
    return {flat.at(index)[0] for index in every}


def test_programs_compiled_on_cpu(tmp_path: Path) -> None:
    text = dump_on_cpu(tmp_path)
    found = audited(text)
    assert (found.exit_code, found.errors, found.contradictions) == (0, [], []), as_text(found)
    assert found.programs[0].name == "jit_f"
    assert len(found.programs[0].parameters) == 2
    dumps = sorted(each for each in tmp_path.glob("*jit_f*.txt") if each.read_text()[:9] == "HloModule")
    assert len(dumps) >= 5
    for each in dumps:
        assert audit_file(each).exit_code == 0, each.name
    (assigned,) = tmp_path.glob("*jit_f.cpu_after_optimizations-buffer-assignment.txt")
    sizes = audit_file(assigned)
    assert sizes.compared == assigned.read_text().count("value: <")
    assert not sizes.differences
    assert sizes.exit_code == 0


def test_sizes_that_differ_and_assignments_cut_short(tmp_path: Path) -> None:
    text = (
        "BufferAssignment:\nallocation 0: size 64, parameter 0, shape |f32[4,4]| at ShapeIndex {}:\n value: <0 p @0> "
    )
    good = f"{text}(size=64,offset=0): f32[4,4]{{1,0}}\n"
    assert audited(good).exit_code == 0
    different = audited(good.replace("size=64", "size=60"))
    assert different.exit_code == 1
    assert different.differences[0].figures == {"theirs": 60, "ours": 64}
    assert words("hlo.size_differs", found=60, ours=64) in as_text(different)
    for cut in (good[:-1], good[:-8], good[: len(text) - 4]):
        assert audited(cut).exit_code == 2, cut
    outside = audited(good.replace("offset=0", "offset=8"))
    assert outside.exit_code == 2
    assert "outside its allocation" in outside.errors[0].problem


def test_shapes_agree_with_the_definition() -> None:
    # padded bytes of every array of the real dumps, by tiling extents by hand
    shapes = Shapes()
    for name in DUMPS:
        for module in read_hlo(dump(name).splitlines(keepends=True), name):
            for computation in module.computations:
                for instruction in computation.instructions:
                    for array in shapes.of(instruction.shape).arrays:
                        assert array.padded == by_hand(array.text), array.text


def by_hand(text: str) -> int:
    """Bytes from the text alone: extents in physical order, the last rounded up to the first tile."""
    match = re.fullmatch(
        r"([a-z]+)(\d*)\w*\[([\d,]*)\](?:\{([\d,]*):?(?:T\(([\d,]+)\))?(?:\([\d,]+\))*(?:E\((\d+)\))?.*\})?", text
    )
    assert match is not None, text
    kind, width, dims_text, order_text, tile_text, bits_text = match.groups()
    if kind == "token":
        return 0
    dims = [int(n) for n in dims_text.split(",") if n]
    order = [int(d) for d in (order_text or "").split(",") if d]
    tile = [int(t) for t in (tile_text or "").split(",") if t]
    extents = [dims[d] for d in order[::-1]]
    extents = [1] * (len(tile) - len(extents)) + extents
    for k, size in enumerate(reversed(tile), 1):
        extents[-k] = -(-extents[-k] // size) * size
    total = 1
    for extent in extents:
        total *= extent
    return -(-total * int(bits_text or max(8, int(width or 8))) // 8)


LOOP = """HloModule looped, is_scheduled=true, num_partitions=4

add {
  a = f32[]{:T(128)} parameter(0)
  b = f32[]{:T(128)} parameter(1)
  ROOT sum = f32[]{:T(128)} add(a, b)
}

body {
  arg = (s32[]{:T(128)}, f32[256,8]{1,0:T(8,128)}) parameter(0)
  i = s32[]{:T(128)} get-tuple-element(arg), index=0
  x = f32[256,8]{1,0:T(8,128)} get-tuple-element(arg), index=1
  one = s32[]{:T(128)} constant(1)
  next = s32[]{:T(128)} add(i, one)
  turned = f32[256,8]{0,1:T(8,128)} copy(x)
  summed = f32[256,8]{0,1:T(8,128)} all-reduce(turned), replica_groups={{0,1},{2,3}}, channel_id=1, \
use_global_device_ids=true, to_apply=add, metadata={op_name="f/psum" source_file="model.py" source_line=9}
  back = f32[256,8]{1,0:T(8,128)} copy(summed)
  ROOT both = (s32[]{:T(128)}, f32[256,8]{1,0:T(8,128)}) tuple(next, back)
}

test {
  arg.1 = (s32[]{:T(128)}, f32[256,8]{1,0:T(8,128)}) parameter(0)
  i.1 = s32[]{:T(128)} get-tuple-element(arg.1), index=0
  n = s32[]{:T(128)} constant(12)
  ROOT less = pred[]{:T(512)} compare(i.1, n), direction=LT
}

ENTRY main {
  p = f32[256,8]{1,0:T(8,128)} parameter(0), metadata={op_name="x"}
  zero = s32[]{:T(128)} constant(0)
  start = (s32[]{:T(128)}, f32[256,8]{1,0:T(8,128)}) tuple(zero, p)
  loop = (s32[]{:T(128)}, f32[256,8]{1,0:T(8,128)}) while(start), condition=test, body=body
  last = f32[256,8]{1,0:T(8,128)} get-tuple-element(loop), index=1
  ROOT out = f32[256,8]{0,1:T(8,128)} copy(last)
}
"""
"""An all-reduce and two copies in a loop of twelve trips, and a copy after it."""


def test_collectives_and_copies_say_how_often_they_run() -> None:
    """In a loop with its trips, or with why nobody knows them; outside of it nothing is said."""
    text = as_text(audited(LOOP))
    assert "collectives: 1 all-reduce" in text
    assert "all-reduce reduced by add over {0,1},{2,3}" in text
    assert "each device receives 8192 B or more each time, 12 times a call: in a loop; first summed" in text
    assert text.endswith("no buffer with two layouts; 242.5 KiB of 282.5 KiB is padding, 3 relayouts (408.0 KiB, "
                         "2 in a loop), 1 collective (1 in a loop)")  # fmt: skip
    assert text.count("12 times a call") == 3
    shown = as_json(audited(LOOP))
    assert [(c["kind"], c["times"], c["count"]) for c in shown["collectives"]] == [("all-reduce", 12, 1)]
    assert sorted((c["times"], c["count"]) for c in shown["copies"]) == [(1, 1), (12, 1), (12, 1)]
    unknown = LOOP.replace("s32[]{:T(128)} constant(12)", 's32[]{:T(128)} custom-call(), custom_call_target="n"')
    text = as_text(audited(unknown))
    assert "in a loop of unknown trips (the trip count of loop is unknown: " in text
    assert as_json(audited(unknown))["collectives"][0]["times"] is None


def test_what_the_user_chooses_and_what_the_compiler() -> None:
    """A candidate stands beside a parameter or a result, never beside a temporary, and never takes a part away."""
    text = as_text(audited(LOOP))
    parts = {part.partition(" of ")[2].partition("\n")[0]: part for part in text.split(" wasted, ")[1:]}
    given = parts["f32[256,8]{1,0:T(8,128)}"]
    assert "yours: parameter 0 x" in given.partition("wasted")[0]
    assert "would save 122880 bytes; not tried: layoutproof compile --try" in given
    assert "wastes nothing" not in text
    temporary = SMALL.replace("ROOT %copy.1", "%copy.1").replace("->f32[256,8]{1,0", "->f32[256,8]{0,1")
    temporary = f"{temporary[:-2]}  ROOT %copy.2 = f32[256,8]{{0,1:T(8,128)}} copy(%copy.1)\n}}\n"
    text = as_text(audited(temporary))
    assert "a temporary, laid out by the compiler; its shape is that of model.py:7" in text
    assert "candidate" not in text


WASTEFUL = """HloModule m, is_scheduled=true, num_partitions=4

ENTRY %main (p: f32[4,8]) -> f32[16,2] {{
  %p = f32[4,8]{{1,0}} parameter(0){sharding}
  %id = u32[] partition-id()
  %n = s32[] convert(%id)
  %two = s32[] constant(2)
  %at = s32[] multiply(%n, %two)
  %zero = s32[] constant(0)
  %g = f32[16,8]{{1,0}} all-gather(%p), channel_id=1{groups}, dimensions={{0}}, use_global_device_ids=true
  ROOT %s = f32[16,2]{{1,0}} dynamic-slice(%g, %zero, %at), dynamic_slice_sizes={{16,2}}
}}
"""


def wasteful(sharding: str = "{devices=[4,1]<=[4]}", groups: str = "[1,4]<=[4]") -> str:
    said = f", sharding={sharding}" if sharding else ""
    return WASTEFUL.format(sharding=said, groups=f", replica_groups={groups}")


def test_what_a_reshard_receives_and_needs() -> None:
    """Columns of all rows: of 16 x 2 a device has 4 x 2, and gathers 12 x 8. Unknown where no sharding is said."""
    found = audited(wasteful())
    assert "%g" not in as_text(found)
    assert "  reshards: 1 receive more than is needed" in as_text(found)
    assert "    g: each device receives 384 bytes, 96 would do\n               first g (line 10)" in as_text(found)
    (one,) = as_json(found)["reshards"]
    assert (one["collectives"], one["received"], one["needed"], one["unknown"]) == (["g"], 384, 96, "")
    assert found.exit_code == 0
    unsaid = audited(wasteful(sharding=""))
    assert ("what would do is unknown: " + words("hlo.holders_unknown", name="p")) in as_text(unsaid)
    (one,) = as_json(unsaid)["reshards"]
    assert (one["received"], one["needed"]) == (384, None)
    # found by leaving out use_global_device_ids: the numbers then count replicas, of which there is one
    foreign = as_text(audited(wasteful(groups="[1,4]<=[4]").replace(", use_global_device_ids=true", "")))
    assert "what would do is unknown: g names a device that the program, which runs on 4, has not" in foreign


def test_a_program_of_too_many_instructions_says_that_nothing_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a record and of an audit; where nothing is sent there is nothing to say."""
    text = wasteful()
    monkeypatch.setattr(followed, "MOST_FOLLOWED", 7)
    why = words("hlo.too_large_to_follow", count=8, most=7)
    assert why in as_text(audited(text))
    (one,) = record_of(text.splitlines(keepends=True)).reshards
    assert (one.place.instruction, one.collectives, one.needed, one.why) == ("g", ("g",), None, why)
    quiet = text.replace("all-gather(%p)", "broadcast(%zero)").replace(", dimensions={0}", ", dimensions={}")
    assert record_of(quiet.splitlines(keepends=True)).reshards == ()
    assert "reshards" not in as_text(audited(quiet))
