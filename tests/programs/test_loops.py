"""How often a computation runs: trip counts from the loop itself, held to loops that are run."""

from __future__ import annotations

import itertools

import pytest

from layoutproof.programs.reading import record_of
from tests.said import stretch

LOOP = """HloModule loop, is_scheduled=true, num_partitions=2

%add (a: f32[], b: f32[]) -> f32[] {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %r = f32[] add(%a, %b)
}}

%body (p: (s32[], f32[8], s32[])) -> (s32[], f32[8], s32[]) {{
  %p = (s32[], f32[8]{{0}}, s32[]) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[8]{{0}} get-tuple-element(%p), index=1
  %n = s32[] get-tuple-element(%p), index=2
  %one = s32[] constant({step})
  %next = s32[] {operation}(%i, %one)
  %sum = f32[8]{{0}} all-reduce(%x), channel_id=1, replica_groups={{{{0,1}}}}, use_global_device_ids=true, to_apply=%add
  ROOT %t = (s32[], f32[8]{{0}}, s32[]) tuple(%next, %sum, %n)
}}

%cond (q: (s32[], f32[8], s32[])) -> pred[] {{
  %q = (s32[], f32[8]{{0}}, s32[]) parameter(0)
  %j = s32[] get-tuple-element(%q), index=0
  %m = s32[] get-tuple-element(%q), index=2
  %end = s32[] constant({end})
  ROOT %c = pred[] compare({sides}), direction={way}
}}

ENTRY %main (x0: f32[8], n0: s32[]) -> f32[8] {{
  %x0 = f32[8]{{0}} parameter(0)
  %n0 = s32[] parameter(1)
  %end0 = s32[] constant({end})
  %start = s32[] constant({start})
  %begin = s32[] copy(%start)
  %init = (s32[], f32[8]{{0}}, s32[]) tuple(%begin, %x0, {last})
  %loop = (s32[], f32[8]{{0}}, s32[]) while(%init), condition=%cond, body=%body
  ROOT %out = f32[8]{{0}} get-tuple-element(%loop), index=1
}}
"""
HOLDS = {
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
    "NE": lambda a, b: a != b,
}


def times(**given: object) -> int | None:
    """How often the all-reduce in the loop runs, by its record; what never runs is not in it."""
    said = {"operation": "add", "sides": "%j, %end", "last": "%n0", "step": 1, "start": 0, "end": 8, "way": "LT"}
    found = record_of(LOOP.format(**(said | given)).splitlines(keepends=True)).collectives
    return found[0].often.times if found else 0


def walked(start: int, step: int, end: int, way: str) -> int | None:
    """The same by running the loop."""
    for count in range(200):
        if not HOLDS[way](start + count * step, end):
            return count
    return None


@pytest.mark.parametrize("way", HOLDS)
def test_trips_are_those_of_the_loop_itself(way: str) -> None:
    """Every start, step and end of a few, both operations, both sides of the comparison, the end in the tuple too."""
    mirrored = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "NE": "NE"}
    for start, step, end in itertools.product((-3, 0, 5), (-2, -1, 1, 3), (-3, 0, 8)):
        wanted = walked(start, step, end, way)
        at = {"start": start, "end": end}
        assert times(**at, step=step, way=way) == wanted
        assert times(**at, step=-step, operation="subtract", way=way) == wanted
        assert times(**at, step=step, sides="%end, %j", way=mirrored[way]) == wanted
        assert times(**at, step=step, sides="%j, %m", last="%end0", way=way) == wanted


@pytest.mark.parametrize(
    "change",
    [
        {"sides": "%j, %m"},  # the end is an argument of the program
        {"operation": "multiply"},
        {"way": "EQ"},
    ],
)
def test_what_is_no_counted_loop_is_unknown(change: dict[str, object]) -> None:
    assert times(**change) is None


def test_the_compilers_own_count_is_taken() -> None:
    """Also where the loop itself could not be followed."""
    text = LOOP.format(operation="multiply", sides="%j, %end", last="%n0", step=1, start=0, end=8, way="LT").replace(
        "body=%body", 'body=%body, backend_config={"known_trip_count":{"n":"7"}}'
    )
    (found,) = record_of(text.splitlines(keepends=True)).collectives
    assert found.often.times == 7


def test_a_counter_that_the_body_changes_otherwise_is_unknown() -> None:
    """The end is in the tuple, and the body does not hand it on as it is."""
    given = {"operation": "add", "sides": "%j, %m", "last": "%end0", "step": 1, "start": 0, "end": 8, "way": "LT"}
    text = LOOP.format(**given)
    (kept,) = record_of(text.splitlines(keepends=True)).collectives
    (changed,) = record_of(
        text.replace("tuple(%next, %sum, %n)", "tuple(%next, %sum, %next)").splitlines(True)
    ).collectives
    assert (kept.often.times, changed.often.times) == (8, None)
    assert stretch("hlo.trips_unknown", name="loop") in changed.often.why
