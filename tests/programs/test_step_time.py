"""The least time of a step, by hand, and what is not known of it."""

from __future__ import annotations

import pytest

from layoutproof.core.amounts import duration, seconds
from layoutproof.core.counted import Counted
from layoutproof.core.errors import LayoutError
from layoutproof.core.result import Verdict
from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.programs.claims import judge
from layoutproof.programs.record import MemoryStats, ProgramWork, Provenance, Record
from layoutproof.programs.step_time import MATRIX, MEMORY, StepTime, step_time

V5E = CHIPS["v5e"]
MS = 10**9


def work(flops: int, moved: int, kind: str = "bf16", uncounted: tuple[str, ...] = ()) -> ProgramWork:
    """A program of one product."""
    return ProgramWork({kind: Counted.of(flops)}, flops=Counted.of(flops), hbm=Counted.of(moved), uncounted=uncounted)


def timed(done: ProgramWork) -> StepTime:
    """The bound for a program on a v5e that sends nothing."""
    found = step_time(Record("step", Provenance(target="v5e"), work=done))
    assert found is not None
    return found


def test_the_larger_term_binds() -> None:
    """A second of products and half of one of memory is a second; the other way about too."""
    found = timed(work(V5E.bf16, V5E.bandwidth // 2))
    assert (found.bound.least, found.bound.most, found.binds) == (10**12, 10**12, MATRIX)
    other = timed(work(V5E.bf16 // 4, V5E.bandwidth))
    assert (other.bound.least, other.binds) == (10**12, MEMORY)


def test_a_product_has_the_rate_of_its_narrower_side() -> None:
    """Else the bound would be none: v5e multiplies int8 twice as fast."""
    assert V5E.int8 == 2 * V5E.bf16
    for kind, rate in (("bf16", V5E.bf16), ("s8", V5E.int8), ("bf16 x s8", V5E.int8), ("f32", V5E.bf16)):
        assert timed(work(V5E.int8, 0, kind)).terms[MATRIX].least == V5E.int8 * 10**12 // rate, kind


@pytest.mark.parametrize(
    ("what", "limit", "verdict", "words"),
    [
        (work(V5E.bf16 // 1000, 0), "1 ms", Verdict.PROVED, ""),
        (work(V5E.bf16 // 1000, 0), "999 us", Verdict.REFUTED, "at least 1 ms on v5e, 1 us more than 999 us: matrix"),
        (work(0, V5E.bandwidth // 1000), "0.5 ms", Verdict.REFUTED, "HBM 1 ms"),
        (work(V5E.bf16 // 1000, 0, uncounted=("custom-call is not counted",)), "1 ms", Verdict.UNKNOWN, "custom-call"),
        (work(V5E.bf16 // 1000, 0, uncounted=("custom-call is not counted",)), "1 us", Verdict.REFUTED, "at least"),
        (ProgramWork(hbm=Counted(0, None, "w: its trips are unknown")), "1 s", Verdict.UNKNOWN, "trips are unknown"),
        (ProgramWork(hbm=Counted(V5E.bandwidth, None, "w")), "1 ms", Verdict.REFUTED, "HBM 1 s"),
    ],
)  # fmt: skip
def test_the_claim(what: ProgramWork, limit: str, verdict: Verdict, words: str) -> None:
    """Refuted by what is certain, proved by the most there can be, unknown between; what is not counted is no proof."""
    record = Record("step", Provenance(target="v5e"), memory=MemoryStats(), work=what)
    found = judge("step_time_bound", record, {"at_most": limit})
    assert found.verdict is verdict
    assert words in found.reason
    assert "no promise of speed" in found.scope


def test_what_says_no_time() -> None:
    """No chip, no work in the record, another word."""
    record = Record("step", Provenance(), memory=MemoryStats(), work=work(1, 1))
    assert "no chip is named" in judge("step_time_bound", record, {"at_most": "1 ms"}).reason
    for limit in ("20", "20 minutes", "-1 ms", 20):
        with pytest.raises(LayoutError, match="a time is a text such as 20 ms"):
            judge("step_time_bound", record, {"at_most": limit})
    assert [seconds(duration(text)) for text in ("0 s", "1.25 ms", "999us")] == ["0 ps", "1.25 ms", "999 us"]
