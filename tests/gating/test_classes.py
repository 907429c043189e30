"""The class of a change of one layout, each with its proof or its element."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from layoutproof.core.errors import LayoutError
from layoutproof.core.finding_kinds import KINDS
from layoutproof.core.result import Verdict
from layoutproof.gating.classes import layouts
from layoutproof.gating.policy import DEFAULTS, judge, read
from layoutproof.questions.evaluate import locate

SHARDED = "f32[64,128]{1,0:T(8,128)} sharded "


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        ("f32[3,5]{1,0}", "f32[3,5]{1,0}", []),
        ("f32[3,5]{1,0}", "f32[3,5]", ["respelled"]),
        ("f32[8,128]{1,0}", "f32[8,128]{1,0:T(8,128)}", ["respelled"]),
        ("f32[N,128]{1,0}", "f32[N,128]{1,0:T(1,128)}", ["respelled"]),
        ("f32[5,1]{1,0}", "f32[5,1]{0,1}", ["respelled"]),
        ("f32[3,5]{1,0}", {"strided": "f32[3,5] strides (5,1)"}, ["respelled"]),
        (SHARDED + "{devices=[2,1]<=[2]}", SHARDED + "{devices=[2,1]0,1}", ["respelled"]),
        ("f32[4,8,128]{2,1,0:T(8,128)}", "f32[32,128]{1,0:T(8,128)}", ["same_bytes"]),
        ("f32[4,8]{1,0}", "s32[4,8]{1,0}", ["same_bytes"]),
        ("f32[3,5]{1,0}", "f32[3,5]{0,1}", ["moved"]),
        ("f32[N,5]{1,0}", "f32[N,5]{0,1}", ["moved"]),
        ("f32[4,8]{1,0}", "f32[4,8]{1,0:S(1)}", ["moved"]),
        ("f32[8,8]{1,0:T(8,128)}", "f32[64]{0:T(128)}", ["moved", "shrank"]),
        ("bf16[16,256]{1,0:T(8,128)(2,1)}", "bf16[16,256]{1,0:T(8,128)}", ["moved"]),
        ("f32[16,100]{1,0}", "f32[16,100]{1,0:T(8,128)}", ["moved", "grew"]),
        ("f32[4,128]{1,0:T(8,128)}", "f32[4,128]{1,0:T(4,128)}", ["shrank"]),
        ("f32[4,128]{1,0:T(4,128)}", "f32[4,128]{1,0:T(8,128)}", ["grew"]),
        ("f32[N,128]{1,0:T(8,128)}", "f32[N,128]{1,0:T(16,128)}", ["grew"]),
        ("f32[4,8]{1,0}", "f32[4,9]{1,0}", ["reshaped", "grew"]),
        ("f32[7,128]{1,0:T(8,128)}", "f32[8,128]{1,0:T(8,128)}", ["reshaped"]),
        ("f32[4,8]{1,0}", "bf16[4,8]{1,0}", ["moved", "shrank"]),
        (SHARDED + "{devices=[2,2]<=[4]}", SHARDED + "{devices=[4,1]<=[4]}", ["resharded"]),
        ("(i < 4, j < 4) -> (i, j)", "(i < 4, j < 4) -> (j, i)", ["moved"]),
        ("(i < 4, j < 4) -> (i, j)", "(a < 4, b < 4) -> (a, b)", ["respelled"]),
    ],
)
def test_the_class_of_a_change(old: Any, new: Any, kinds: list[str]) -> None:
    """Each class, also for symbolic sizes, other languages and shardings."""
    assert [found.question for found in layouts(old, new)] == kinds


@pytest.mark.parametrize(
    ("old", "new", "at"),
    [
        ("f32[3,5]{1,0}", "f32[3,5]{0,1}", ((0, 1), 1, 3)),
        ("bf16[16,256]{1,0:T(8,128)(2,1)}", "bf16[16,256]{1,0:T(8,128)}", ((0, 1), 2, 1)),
    ],
)
def test_what_moved_is_the_smallest_and_from_where_to_where(old: str, new: str, at: Any) -> None:
    """The element of the finding is the first in row-major order whose places differ, found here one by one."""
    (found,) = layouts(old, new)
    element, before, after = at
    assert found.counterexample == {"element": element}
    assert [locate(x, element)[0]["offset"] for x in (old, new)] == [before, after]
    assert f"offset {before} by the first and at offset {after} by the second" in found.reason
    assert found.decided_by


def test_figures_of_padding() -> None:
    """Bytes before and after, and the percent that thresholds speak of."""
    moved, grew = layouts("f32[16,100]{1,0}", "f32[16,100]{1,0:T(8,128)}")
    assert moved.question == "moved"
    assert grew.figures == {"bytes_before": 6400, "bytes_after": 8192, "percent": 28.0}


def test_growth_from_nothing_has_no_percent() -> None:
    """A share of 0 bytes is no number: JSON has none for it, and every bound in percent is exceeded."""
    grew = layouts("f32[0,4]{1,0}", "f32[4,4]{1,0}")[-1]
    assert grew.question == "grew"
    assert grew.figures == {"bytes_before": 0, "bytes_after": 64}
    (judged,), _ = judge([grew], {}, read({"grew": "warn, deny above 1000%"}, "here"), datetime.date(2026, 11, 21))
    assert judged.severity == "deny"


def test_growth_of_unknown_sizes_says_at_which() -> None:
    """A closed form on both sides, and the smallest sizes that show it; what grows and shrinks is both."""
    (grew,) = layouts("f32[N,128]{1,0:T(8,128)}", "f32[N,128]{1,0:T(16,128)}")
    assert grew.counterexample == {"sizes": {"N": 1}}
    assert "with N = 1: 4096 and 8192" in grew.reason
    found = layouts("f32[N,128]{1,0:T(8,128)}", "f32[N,128]{1,0:L(1536)}")
    assert sorted(f.question for f in found) == ["grew", "shrank"]


def test_what_nobody_can_tell_is_unknown() -> None:
    """An unmodelled field, and a proof about no element, are unknown and undecided: never harmless."""
    (vacuous,) = layouts("f32[0,8]{1,0}", "f32[0,8]{0,1}")
    assert (vacuous.question, vacuous.verdict) == ("unknown", Verdict.UNKNOWN)
    (found,) = layouts("f32[256]{0:SC(0:128)}", "f32[256]{0}")
    assert (found.question, found.verdict) == ("unknown", Verdict.UNKNOWN)
    assert "split" in found.reason


def test_what_is_no_layout_is_an_error() -> None:
    """The caller knows where it stands and says so."""
    with pytest.raises(LayoutError):
        layouts("f32[3", "f32[3]")


def test_every_class_has_a_meaning_and_a_severity() -> None:
    """A class without a severity would be denied or allowed by accident."""
    assert set(DEFAULTS) == set(KINDS) - {"unknown", "error", "approval_added"}
