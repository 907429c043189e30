"""What changed between two spec files: layouts by name, claims by what they ask, each with its line."""

from __future__ import annotations

import pytest

from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.gating.specs import compare, read
from tests.said import stretch, words

HEAD = "source: here\n"
OLD = """\
layouts:
  scores: f32[3,5]{1,0:T(2,2)}
  wide: f32[16,100]{1,0:T(8,128)}
checks:
  - injective: scores
  - padding: wide
    at_most: 25%
  - locate: scores
    index: [2, 3]
    is: {offset: 17}
"""


def found(old: str, new: str) -> list[Finding]:
    """The findings between two texts."""
    sides = [read((HEAD + text).encode(), "a.yaml") for text in (old, new)]
    return compare(sides[0], sides[1], "a.yaml").all()


def kinds(old: str, new: str) -> list[tuple[str, str]]:
    """Class and subject of each finding."""
    return [(f.question, f.subject) for f in found(old, new)]


def test_nothing_changed() -> None:
    """A file against itself, and against itself with other comments, order and spacing."""
    assert found(OLD, OLD) == []
    lines = OLD.splitlines()
    moved = "\n".join(["# a comment", lines[0], lines[2], lines[1], *lines[3:]])
    assert found(OLD, moved) == []


@pytest.mark.parametrize(
    ("change", "to", "expected"),
    [
        ("scores: f32[3,5]{1,0:T(2,2)}", "scores: f32[3,5]{1,0:T(2,2)(1,2)}", [("respelled", "layout scores")]),
        (
            "scores: f32[3,5]{1,0:T(2,2)}",
            "scores: f32[3,5]{0,1:T(2,2)}",
            [("moved", "layout scores"), ("lost", "fact locate scores")],
        ),
        (
            "wide: f32[16,100]{1,0:T(8,128)}",
            "wide: f32[16,100]{0,1:T(8,128)}",
            [("moved", "layout wide"), ("grew", "layout wide"), ("lost", "claim padding wide")],
        ),
        ("at_most: 25%", "at_most: 50%", [("loosened", "claim padding wide")]),
        ("at_most: 25%", "at_most: 25.0%", []),
        ("at_most: 25%", "at_most: 24%", [("tightened", "claim padding wide")]),
        ("  - injective: scores\n", "", [("removed", "claim injective scores")]),
        ("  - injective: scores\n", "  - injective: scores\n  - covers: wide\n", [("refuted", "claim covers wide")]),
        (
            "  - injective: scores\n",
            "  - injective: scores\n  - injective: wide\n",
            [("added", "claim injective wide")],
        ),
        ("  scores: ", "  points: f32[3]{0}\n  scores: ", [("added", "layout points")]),
    ],
)
def test_one_change(change: str, to: str, expected: list[tuple[str, str]]) -> None:
    """One edit of the file, and exactly what it means."""
    assert change in OLD
    assert kinds(OLD, OLD.replace(change, to)) == expected


def test_a_renamed_layout_is_matched_by_its_text() -> None:
    """The guess is said; claims about it follow the name."""
    new = OLD.replace("wide", "broad")
    (layout,) = found(OLD, new)
    assert (layout.question, layout.subject) == ("respelled", "layout broad, before wide")
    assert layout.match_heuristic == "by its text: the name is new"


def test_a_bound_loosened_along_with_the_layout_is_lost() -> None:
    """It is the old claim that is asked of the new layout, so the new bound does not hide it."""
    new = OLD.replace("wide: f32[16,100]{1,0:T(8,128)}", "wide: f32[16,100]{0,1:T(8,128)}").replace("25%", "60%")
    lost = next(f for f in found(OLD, new) if f.question == "lost")
    assert lost.reason.startswith(
        stretch("gating.claim_verdict", claim="padding at_most 25%", old="proved", new="refuted")
    )
    assert "over 25%" in lost.reason
    assert (lost.line, lost.file) == (7, "a.yaml")


def test_a_claim_that_becomes_true_is_gained() -> None:
    """Refuted before, proved now."""
    old = 'layouts:\n  a: {strided: "f32[3,5] strides (4,1)"}\nchecks:\n  - injective: a\n    expect: refuted\n'
    new = old.replace("(4,1)", "(5,1)").replace("expect: refuted", "expect: proved")
    assert kinds(old, new) == [
        ("moved", "layout a"),
        ("grew", "layout a"),
        ("tightened", "claim injective a"),
        ("gained", "claim injective a"),
    ]


def test_a_claim_that_nobody_can_decide_any_more_is_undecided() -> None:
    """Proved before, unknown now: lost, and no policy makes it harmless."""
    old = "layouts:\n  a: f32[4,8]{1,0}\nchecks:\n  - injective: a\n"
    (lost,) = [f for f in found(old, old.replace("4,8", "0,8")) if f.question == "lost"]
    assert lost.verdict is Verdict.UNKNOWN
    assert "vacuous" in lost.reason


def test_layouts_written_in_a_claim() -> None:
    """They are compared where they stand; which claim it was is a guess, and said."""
    (moved,) = found("checks:\n  - injective: f32[7,7]{1,0}\n", "checks:\n  - injective: f32[7,7]{0,1}\n")
    assert (moved.question, moved.line, moved.match_heuristic) == ("moved", 3, "by its property: the layout is new")
    pair = '  - same_map: ["f32[8]{0}", "%s"]\n'
    (other,) = found("checks:\n" + pair % "f32[8]{0:T(8)}", "checks:\n" + pair % "f32[8]{0:T(4)}")
    assert other.question == "respelled"


def test_a_mistake_in_the_new_file_is_an_error_with_its_line() -> None:
    """The rest is still compared."""
    errors = [f for f in found(OLD, OLD.replace("injective", "injectve")) if f.bad_input]
    assert [(f.line, f.reason) for f in errors] == [
        (6, "unknown key 'injectve'" + words("core.did_you_mean", name="injective"))
    ]
    assert [f.question for f in found(OLD, "layouts: [")] == ["error"]


def test_mistakes_that_are_mended_hide_what_was_stated() -> None:
    """The old file could not be read: what is there now is added, and what of it is gone nobody can tell."""
    changes = found("layouts: [", OLD)
    assert {f.question for f in changes} == {"added", "error"}
    assert [(f.subject, f.file, f.line) for f in changes if f.bad_input] == [("old spec file", "a.yaml", 3)]
    assert ("added", "layout scores") in kinds(OLD.replace("f32[3,5]{1,0:T(2,2)}", "f32[3,5"), OLD)


def test_a_file_that_is_new_or_gone() -> None:
    """Each of its layouts and claims is."""
    spec = read((HEAD + OLD).encode(), "a.yaml")
    assert {f.question for f in compare(None, spec, "a.yaml").all()} == {"added"}
    gone = compare(spec, None, "a.yaml").all()
    assert {f.question for f in gone} == {"removed"}
    assert len(gone) == 5


def test_rules_in_a_spec_file() -> None:
    """They are read; what a change of them means is for `report.judged` to say."""
    with_rules = OLD + "gate:\n  moved: warn\n"
    assert read((HEAD + with_rules).encode(), "a.yaml").gate == {"moved": "warn"}
    assert read((HEAD + with_rules).encode(), "a.yaml").errors == ()
    assert found(with_rules, with_rules) == []


PROGRAMS = """\
programs:
  step: {dump: step.hlo}
checks:
  - {peak_memory: step, at_most: 12GiB}
  - {copies: step, at_most: 1MiB, entry_at_most: 0 bytes}
  - {collectives: step, kind: [all-gather, all-reduce], axes: data, at_most: 1MiB}
  - {program_padding: step, at_most: 5%}
  - {donated: step, of: [x, y]}
  - {replicated: step, above: 1MiB}
  - {vmem: step, at_most: 16MiB, of: matmul}
  - {estimated_cycles: step, at_most: 1000}
  - {flops: step, at_most: 1000}
  - {step_time_bound: step, at_most: 20 ms}
  - {layout: step, of: x, is: "f32[8,128]{1,0}"}
"""


@pytest.mark.parametrize(
    ("was", "now", "looser"),
    [
        ("peak_memory: step, at_most: 12GiB", "peak_memory: step, at_most: 13GiB", True),
        ("peak_memory: step, at_most: 12GiB", "peak_memory: step, at_most: 11GiB", False),
        ("peak_memory: step, at_most: 12GiB", "peak_memory: step, at_most: 12288MiB", None),
        ("at_most: 1MiB, entry_at_most: 0 bytes", "at_most: 1MiB", True),
        ("at_most: 1MiB, entry_at_most: 0 bytes", "entry_at_most: 0 bytes, at_most: 1048577", True),
        ("kind: [all-gather, all-reduce], ", "kind: all-gather, ", True),
        ("kind: [all-gather, all-reduce], ", "kind: [all-reduce, all-gather], ", None),
        ("kind: [all-gather, all-reduce], ", "", False),
        ("axes: data, ", "axes: [data, model], ", False),
        ("axes: data, ", "axes: model, ", True),
        ("at_most: 5%", "at_most: 5.1%", True),
        ("at_most: 5%", "at_most: 4%", False),
        ("of: [x, y]", "of: [x]", True),
        ("of: [x, y]", "of: [y, x, z]", False),
        ("above: 1MiB", "above: 2MiB", True),
        ("above: 1MiB", "above: 1KiB", False),
        ("at_most: 16MiB, of: matmul", "at_most: 16MiB", False),
        ("at_most: 1000", "at_most: 1001", True),
        ("at_most: 1000", "at_most: 999", False),
        ("at_most: 20 ms", "at_most: 21 ms", True),
        ("at_most: 20 ms", "at_most: 20000us", None),
        ('"f32[8,128]{1,0}"', '"f32[8,128]{0,1}"', True),
        ("above: 1MiB}", "above: 1MiB, expect: refuted}", True),
    ],
)
def test_a_claim_about_a_program_is_not_loosened_in_silence(was: str, now: str, looser: bool | None) -> None:
    """True: it demands less; False: it demands more; None: it says the same. The program itself is not there."""
    assert was in PROGRAMS
    changed = {f.question for f in found(PROGRAMS, PROGRAMS.replace(was, now))}
    assert changed & {"loosened", "tightened"} == {True: {"loosened"}, False: {"tightened"}, None: set()}[looser]
