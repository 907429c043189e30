"""What a device must receive of a reshard: by the compiled program, by the two shardings, and by hand."""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import layoutproof as lp
from layoutproof.hlo.boxes import Box, count, reshaped, without
from layoutproof.hlo.replication import held_alike
from layoutproof.hlo.reshards import between
from layoutproof.programs.reading import record_of
from layoutproof.programs.record import Record
from tests.said import words

ROOT = Path(__file__).resolve().parents[2]
CHILD = Path(__file__).with_name("reshards_on_cpu.py")


def cells(box: Box, dims: tuple[int, ...]) -> set[int]:
    """The row-major offsets of a box."""
    return set(np.arange(int(np.prod(dims))).reshape(dims)[tuple(slice(*each) for each in box)].ravel().tolist())


def shape(rng: random.Random, elements: int) -> tuple[int, ...]:
    """Random extents of so many elements."""
    found: list[int] = []
    while elements > 1 and len(found) < 3:
        found.append(rng.choice([d for d in range(1, elements + 1) if elements % d == 0]))
        elements //= found[-1]
    return (*found, elements, *[1] * rng.randint(0, 2))


@pytest.mark.parametrize("seed", range(300))
def test_boxes_by_their_elements(seed: int) -> None:
    """A box through a reshape, a union, and a difference have the elements that NumPy says."""
    rng = random.Random(seed)
    elements = rng.choice([1, 2, 6, 8, 12, 24, 36, 48])
    after, before = shape(rng, elements), shape(rng, elements)
    box, hole = (
        tuple((min(a, b), max(a, b)) for a, b in ((rng.randint(0, d), rng.randint(0, d)) for d in after))
        for _ in range(2)
    )
    parts = [cells(each, before) for each in reshaped(box, after, before)]
    assert sum(map(len, parts)) == len(cells(box, after))
    assert set().union(*parts) == cells(box, after)
    assert count([box, hole, box]) == len(cells(box, after) | cells(hole, after))
    rest = [cells(each, after) for each in without(box, hole)]
    assert set().union(*rest) == cells(box, after) - cells(hole, after)
    assert sum(map(len, rest)) == len(cells(box, after) - cells(hole, after))


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed")
def test_random_reshards_that_xla_compiled() -> None:
    """What XLA's collectives are shown to be needed for is what the two shardings say, of a computed array."""
    run = subprocess.run(
        [sys.executable, str(CHILD), "15", "40"], capture_output=True, text=True, cwd=ROOT, timeout=120
    )
    assert run.returncode == 0, run.stderr[-2000:]
    sent = wasted = 0
    for case in json.loads(run.stdout):
        array = f"f32[{','.join(map(str, case['shape']))}]"
        on = {key: f"{array} sharded {case[key]}" for key in ("before", "after")}
        on = {
            key: f"{text} on 8 devices" if "replicated}" in text and "devices" not in text else text
            for key, text in on.items()
        }
        least = 4 * between(*[lp.read_layout(on[key]).index_map() for key in ("before", "after")]).least
        found = record_of(case["text"].splitlines(keepends=True), shardings=case["parameters"])
        moving = [each for each in found.collectives if not each.kind.startswith("all-reduce")]
        shown = [(each.received, each.needed, each.why) for each in found.reshards]
        if shown:
            ((received, needed, why),) = shown
            assert (needed, why) == (least, ""), on
            assert received is not None
            assert received > least
            wasted += 1
        elif moving:
            # what is received is what is needed, so that the record has no more to say
            assert sum(each.moved or 0 for each in moving) == least, on
        else:
            assert least == 0, on
        sent += bool(moving)
    assert sent >= 20
    assert wasted >= 3


def record(body: str, devices: int = 4, before: str = "") -> Record:
    """The record of an entry, by its lines."""
    head = f"HloModule m, is_scheduled=true, num_partitions={devices}\n\n{before}\n"
    text = f"{head}ENTRY %main {{\n{body}\n}}\n"
    return record_of(text.splitlines(keepends=True))


P0 = "  %p = f32[4,8]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}\n"
ALL = "channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}, use_global_device_ids=true"
GATHER = f"  %g = f32[16,8]{{1,0}} all-gather(%p), {ALL}\n"
ID = """  %id = u32[] partition-id()
  %n = s32[] convert(%id)
  %two = s32[] constant(2)
  %at = s32[] multiply(%n, %two)
  %zero = s32[] constant(0)
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # columns of all rows: of 16 x 2 a device has 4 x 2
        (
            f"{P0}{GATHER}{ID}  ROOT %s = f32[16,2]{{1,0}} dynamic-slice(%g, %zero, %at), dynamic_slice_sizes={{16,2}}",
            (384, 96),
        ),
        # a transpose, a reshape and a copy between
        (
            f"{P0}{GATHER}{ID}  %t = f32[8,16]{{1,0}} transpose(%g), dimensions={{1,0}}\n"
            "  %r = f32[4,2,16]{2,1,0} reshape(%t)\n"
            "  %c = f32[4,2,16]{0,1,2} copy(%r)\n"
            "  ROOT %s = f32[1,2,16]{2,1,0} dynamic-slice(%c, %n, %zero, %zero), dynamic_slice_sizes={1,2,16}",
            (384, 96),
        ),
        # what it has already
        (
            f"{P0}{GATHER}  %id = u32[] partition-id()\n  %four = u32[] constant(4)\n"
            "  %at = u32[] multiply(%id, %four)\n  %zero = u32[] constant(0)\n"
            "  ROOT %s = f32[4,8]{1,0} dynamic-slice(%g, %at, %zero), dynamic_slice_sizes={4,8}",
            (384, 0),
        ),
        # a start from a table of the compiler's
        (
            f"{P0}{GATHER}  %id = u32[] partition-id()\n  %t = s32[4]{{0}} constant({{0, 2, 4, 6}})\n"
            "  %l = s32[1]{0} dynamic-slice(%t, %id), dynamic_slice_sizes={1}\n  %at = s32[] reshape(%l)\n"
            "  %zero = s32[] constant(0)\n"
            "  ROOT %s = f32[16,2]{1,0} dynamic-slice(%g, %zero, %at), dynamic_slice_sizes={16,2}",
            (384, 96),
        ),
        # a start that HLO clamps: all devices but the first read the last two columns
        (
            f"{P0}{GATHER}  %id = u32[] partition-id()\n  %n = s32[] convert(%id)\n  %h = s32[] constant(100)\n"
            "  %at = s32[] multiply(%n, %h)\n  %zero = s32[] constant(0)\n"
            "  ROOT %s = f32[16,2]{1,0} dynamic-slice(%g, %zero, %at), dynamic_slice_sizes={16,2}",
            (384, 96),
        ),
        # two readers: the union of what they read
        (
            f"{P0}{GATHER}  %a = f32[16,4]{{1,0}} slice(%g), slice={{[0:16], [0:4]}}\n"
            "  %b = f32[8,8]{1,0} slice(%g), slice={[0:8], [0:8]}\n"
            "  %na = f32[16,4]{1,0} negate(%a)\n  %nb = f32[8,8]{1,0} negate(%b)\n"
            "  ROOT %r = (f32[16,4]{1,0}, f32[8,8]{1,0}) tuple(%na, %nb)",
            (384, 320),
        ),
    ],
)
def test_by_hand(body: str, expected: tuple[int, int]) -> None:
    """Bytes received and needed of one reshard."""
    (found,) = record(body).reshards
    assert (found.received, found.needed, found.why) == (*expected, "")


def test_what_is_read_whole_is_not_listed() -> None:
    """A gathered weight that a product reads, and one that all devices hold already."""
    body = f"{P0}{GATHER}  ROOT %n = f32[16,8]{{1,0}} negate(%g)"
    assert record(body).reshards == ()
    (held,) = record(body.replace("{devices=[4,1]<=[4]}", "{replicated}")).reshards
    assert (held.received, held.needed) == (384, 0)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            f"{P0.split(', sharding')[0]}\n{GATHER}  ROOT %n = f32[16,8]{{1,0}} negate(%g)",
            words("hlo.holders_unknown", name="p"),
        ),
        (
            f"{P0}  %i = s32[] parameter(1), sharding={{replicated}}\n  %zero = s32[] constant(0)\n{GATHER}"
            "  ROOT %s = f32[16,2]{1,0} dynamic-slice(%g, %zero, %i), dynamic_slice_sizes={16,2}",
            words("hlo.reads_a_part", name="s", opcode="dynamic-slice"),
        ),
        (
            f'{P0}{GATHER}  ROOT %c = f32[16,8]{{1,0}} custom-call(%g), custom_call_target="f"',
            words("hlo.reads_a_part", name="c", opcode="custom-call"),
        ),
    ],
)
def test_what_is_unknown(body: str, why: str) -> None:
    """Unknown with the reason, never a number."""
    (found,) = record(body).reshards
    assert (found.needed, found.why) == (None, why)


LOOP = """
%body (c: (s32[], f32[4,8])) -> (s32[], f32[4,8]) {
  %c = (s32[], f32[4,8]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%c), index=0
  %one = s32[] constant(1)
  %j = s32[] add(%i, %one)
  %x = f32[4,8]{1,0} get-tuple-element(%c), index=1
  %g = f32[16,8]{1,0} all-gather(%x), ALL
  %s = f32[4,8]{1,0} slice(%g), slice={[0:4], [0:8]}
  %y = f32[4,8]{1,0} negate(%s)
  ROOT %t = (s32[], f32[4,8]{1,0}) tuple(%j, %y)
}

%cond (d: (s32[], f32[4,8])) -> pred[] {
  %d = (s32[], f32[4,8]{1,0}) parameter(0)
  %k = s32[] get-tuple-element(%d), index=0
  %n = s32[] constant(5)
  ROOT %lt = pred[] compare(%k, %n), direction=LT
}
""".replace("ALL", ALL)
WHILE = (
    "  %z = s32[] constant(0)\n  %t0 = (s32[], f32[4,8]{1,0}) tuple(%z, %p)\n"
    "  %w = (s32[], f32[4,8]{1,0}) while(%t0), condition=%cond, body=%body\n"
    "  ROOT %r = f32[4,8]{1,0} get-tuple-element(%w), index=1"
)


def test_in_a_loop() -> None:
    """What a loop carries is held by whom the first trip and every later one say; how often comes with it."""
    (found,) = record(P0 + WHILE, before=LOOP).reshards
    assert (found.received, found.needed, found.often.times) == (384, 128, 5)
    # every trip makes the same on all devices, but the first finds what each of them had
    (replicated,) = record(P0.replace("devices=[4,1]<=[4]", "replicated") + WHILE, before=LOOP).reshards
    assert (replicated.received, replicated.needed) == (384, 0)


def test_who_holds_the_same() -> None:
    """By the sharding's text, of every form."""
    assert held_alike("{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}", 4) == (0, 1, 0, 1)
    assert held_alike("{mesh['x'=2,'y'=2], [{'y'}]}", 4) == (0, 1, 0, 1)
    assert held_alike("{devices=[2,2]<=[4] last_tile_dims={manual}}", 4) is None
    assert held_alike("{devices=[2]<=[2]}", 4) is None
    assert held_alike("{nonsense", 4) is None
