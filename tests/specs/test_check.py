"""Checks against their expectations: every way one can come out, its exit code and its words."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from layoutproof.compiler.workers import Workers
from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding, rank, unknown, wrong_input
from layoutproof.core.result import Verdict
from layoutproof.formats import render
from layoutproof.specs import report
from layoutproof.specs.check import _FACTS, Outcome, check_paths, exit_code, find, run
from layoutproof.specs.spec import Check, loads
from layoutproof.specs.spec_model import FACTS
from tests.said import Said, raises, says

HEAD = """\
source: https://openxla.org/xla/tiled_layout
layouts:
  scores: f32[3,5]{1,0:T(2,2)}
  overlap: {strided: "f32[3,5] strides (4,1)"}
checks:
"""


def outcome_of(check: str) -> Outcome:
    """The outcome of one check on line 6."""
    checks, errors = loads(f"{HEAD}  - {check}", "a.yaml")
    assert errors == []
    (only,) = checks
    return run(only)


AS_EXPECTED = {
    "injective: scores": "proved",
    "injective: overlap\n    expect: refuted": "refuted",
    "injective: overlap\n    expect: refuted\n    counterexample: {first: [0, 4], second: [1, 0]}": "refuted",
    "injective: overlap\n    expect: refuted\n    reason: stored at offset 4": "refuted",
    "covers: overlap\n    engine: bits\n    expect: unknown\n    reason: powers of two": "unknown",
    "padding: scores\n    at_most: 37.5%\n    figures: {bytes: 96, padding_elements: 9}": "proved",
    "padding: scores\n    figures: {per_dimension: [{dimensions: [0], extent: 3, padded: 4},"
    " {dimensions: [1], extent: 5, padded: 6}]}": "proved",
    "padding: f32[N,128]{1,0:T(8,128)}\n    where: N % 8 == 0\n    at_most: 0%": "proved",
    "same_map: [scores, 'f32[3,5]{1,0:T(2,2)(1,2)}']": "proved",
    "bitcast: ['f32[2,3]{1,0}', 'f32[3,2]{0,1}']\n    permutation: [1, 0]": "proved",
    "locate: scores\n    index: [2, 3]\n    is: {offset: 17}": "holds",
    "locate: scores\n    index: [2, 3]\n    is: [{offset: 17}]": "holds",
    "at: scores\n    offset: 17\n    is: [2, 3]": "holds",
    "at: scores\n    byte: 68\n    is: [2, 3]\n    count: 1": "holds",
    "at: scores\n    offset: 14\n    is: padding\n    dimensions: [i]": "holds",
    "at: scores\n    offset: 24\n    is: outside": "holds",
    "at: overlap\n    offset: 4\n    is: [[1, 0], [0, 4]]": "holds",
    "at: 'S[(2,4):(4@lane,1@reg)] + R[2:1@warp] on (2,4)'\n    lane: 4\n    reg: 2\n    is: [1, 2]": "holds",
    "at: 'S[(2,4):(4@lane,1@reg)] + R[2:1@warp] on (2,4)'\n    lane: 3\n    is: hole": "holds",
    "table: scores\n    is: [[0, 1, 4, 5, 8], [2, 3, 6, 7, 10], [12, 13, 16, 17, 20]]": "holds",
    "prints: f32[3, 5]\n    is: 'f32[3,5]{1,0}'": "holds",
    "prints: 'f32[3]{0:T()}'\n    mode: xla\n    is: 'f32[3]{0:T()}'": "holds",
    "invalid: 'f32[3,5]{1}'\n    error: has 1 entry": "holds",
    "tpu_default: f32[1000,5]\n    target: v5e\n    is: 'f32[1000,5]{0,1:T(8,128)}'": "holds",
    "sizes: 'bf16[5,128]{1,0:T(1,128)(2,1)}'\n    is: {definition: 2560, 'ShapeUtil::ArraySize': 1280}": "holds",
}


@pytest.mark.parametrize("check", AS_EXPECTED)
def test_as_expected(check: str) -> None:
    """What is as expected has exit code 0 and nothing to say, whatever the verdict is."""
    outcome = outcome_of(check)
    assert (outcome.status, outcome.finding.reason, outcome.found) == ("as expected", "", AS_EXPECTED[check])
    assert exit_code([outcome]) == 0


NOT_AS_EXPECTED = {
    "injective: overlap": (1, "refuted", "(0, 4) and (1, 0) are both stored at offset 4"),
    "injective: scores\n    expect: refuted": (
        1,
        "proved",
        Said("specs.verdict_differs", found="proved", expected="refuted"),
    ),
    "injective: scores\n    expect: unknown\n    reason: hard": (
        1,
        "proved",
        Said("specs.verdict_differs", found="proved", expected="unknown"),
    ),
    "injective: overlap\n    expect: unknown\n    reason: hard": (
        1,
        "refuted",
        Said(
            "specs.verdict_differs_since",
            surprise=Said("specs.verdict_differs", found="refuted", expected="unknown"),
            reason="(0, 4) and (1, 0) are both stored at offset 4",
        ),
    ),
    "injective: overlap\n    expect: refuted\n    counterexample: {first: [0, 4], second: [1, 1]}": (
        1,
        "refuted",
        Said("specs.counterexample_differs", found="first=(0, 4) second=(1, 0)", expected="first=(0, 4) second=(1, 1)"),
    ),
    "injective: overlap\n    expect: refuted\n    counterexample: {first: [0, 4]}": (
        1,
        "refuted",
        Said("specs.counterexample_differs", found="first=(0, 4) second=(1, 0)", expected="first=(0, 4)"),
    ),
    "injective: overlap\n    expect: refuted\n    reason: offset 5": (
        1,
        "refuted",
        Said("specs.reason_differs", found="(0, 4) and (1, 0) are both stored at offset 4", expected="offset 5"),
    ),
    "padding: scores\n    at_most: 37%": (
        1,
        "refuted",
        "9 of 24 allotted elements are padding: 37.5 % or 1.6x, over 37%",
    ),
    "padding: scores\n    figures: {bytes: 95, elements: 15, padding_elements: 8}": (
        1,
        "proved",
        "bytes is 96, not 95; padding_elements is 9, not 8",
    ),
    "padding: scores\n    figures: {byte: 96}": (
        2,
        "error",
        Said(
            "specs.unknown_figure",
            kind="padding",
            name="byte",
            known="elements, padded_elements, padding_elements, unpadded_bytes, bytes, per_dimension",
        ),
    ),
    "injective: 'f32[3,5]{1}'": (
        2,
        "error",
        "minor_to_major {1} has 1 entry but f32[3,5] has 2 dimensions; in f32[3,5]{1}",
    ),
    "injective: {stridd: x}": (
        2,
        "error",
        Said(
            "core.unknown_name",
            what="layout language or operator",
            word="stridd",
            rest=Said("core.did_you_mean", name="strided"),
        ),
    ),
    "padding: scores\n    at_most: lots": (2, "error", "at_most is a share such as '2%' or a factor such as '1.02x'"),
    "injective: scores\n    where: N == 1": (2, "error", "the condition speaks of N, but the layouts have no size"),
    "locate: scores\n    index: [2, 3]\n    is: {offset: 16}": (
        1,
        "wrong",
        Said("specs.place_differs", index="(2, 3)", found="offset 17", expected="offset 16"),
    ),
    "locate: scores\n    index: [2, 3]\n    is: {bit: 17}": (
        1,
        "wrong",
        Said("specs.place_differs", index="(2, 3)", found="offset 17", expected="bit 17"),
    ),
    "locate: scores\n    index: [2, 3]\n    is: [{offset: 17}, {offset: 18}]": (
        1,
        "wrong",
        Said("specs.place_differs", index="(2, 3)", found="offset 17", expected="offset 17 and offset 18"),
    ),
    "locate: scores\n    index: [3, 3]\n    is: {offset: 17}": (
        2,
        "error",
        Said("questions.index_outside", index=3, dimension=0, name="i", last=2, layout="f32[3,5]{1,0:T(2,2)}"),
    ),
    "table: scores\n    is: [[0, 1, 4, 5, 8], [2, 3, 6, 7, 10], [12, 13, 16, 17, 21]]": (
        1,
        "wrong",
        Said("specs.table_differs", index="(2, 4)", found="20", expected="21"),
    ),
    "table: scores\n    is: [[0, 1, 4, 5], [2, 3, 6, 7, 10], [12, 13, 16, 17, 20]]": (
        1,
        "wrong",
        Said("specs.table_differs", index="(0,)", found="[0, 1, 4, 5, 8]", expected="[0, 1, 4, 5]"),
    ),
    "prints: f32[3, 5]\n    is: 'f32[3,5]{0,1}'": (
        1,
        "wrong",
        Said("specs.text_differs", found="f32[3,5]{1,0}", expected="f32[3,5]{0,1}"),
    ),
    "invalid: f32[3, 5]": (1, "wrong", Said("specs.layout_valid", layout="f32[3,5]{1,0}")),
    "invalid: 'f32[3,5]{1}'\n    error: has 3": (
        1,
        "wrong",
        Said(
            "specs.error_differs",
            found="minor_to_major {1} has 1 entry but f32[3,5] has 2 dimensions",
            expected="has 3",
        ),
    ),
    "tpu_default: f32[1000,5]\n    target: v5e\n    is: 'f32[1000,5]{1,0:T(8,128)}'": (
        1,
        "wrong",
        Said(
            "specs.default_differs",
            target="v5e",
            found="f32[1000,5]{0,1:T(8,128)}",
            expected="f32[1000,5]{1,0:T(8,128)}",
        ),
    ),
    "tpu_default: f32[1000,5]\n    target: v5x\n    is: x": (
        2,
        "error",
        Said("core.unknown_name", what="TPU generation", word="v5x", rest=Said("core.did_you_mean", name="v5p")),
    ),
    "sizes: scores\n    is: {definition: 95}": (
        1,
        "wrong",
        Said("specs.size_differs", tool="definition", found=96, expected=95),
    ),
    "sizes: scores\n    is: {definitoin: 96}": (
        2,
        "error",
        Said("specs.unknown_tool", name="definitoin"),
    ),
    "sizes: overlap\n    is: {definition: 96}": (
        2,
        "error",
        Said("specs.sizes_not_xla", layout="f32[3,5] strides (4,1)"),
    ),
    "covers: overlap\n    engine: bits": (3, "unknown", "bits"),
    "covers: overlap\n    engine: bits\n    expect: refuted": (
        3,
        "unknown",
        Said("specs.verdict_differs", found="unknown", expected="refuted"),
    ),
    "covers: overlap\n    engine: bits\n    expect: unknown\n    reason: zzz": (
        3,
        "unknown",
        Said("specs.reason_differs", expected="zzz"),
    ),
    "injective: f32[0]": (3, "unknown", "vacuous: the array has no elements"),
}


@pytest.mark.parametrize("check", NOT_AS_EXPECTED)
def test_not_as_expected(check: str) -> None:
    """Its exit code, what was found instead, and why, in numbers."""
    code, found, because = NOT_AS_EXPECTED[check]
    outcome = outcome_of(check)
    assert (exit_code([outcome]), outcome.found) == (code, found)
    assert says(because, outcome.finding.reason)
    assert outcome.finding.place == "a.yaml:6:5"


def test_every_kind_of_fact_is_checked() -> None:
    """What a spec file may say of facts, and what is done about it, are the same kinds."""
    assert set(_FACTS) == set(FACTS)


def test_our_own_failure_is_an_outcome_that_says_so() -> None:
    """An exception nobody foresaw stops no other check, passes for no verdict, and asks to be reported."""
    broken = Check("a.yaml", 1, 1, "locate", ("x",), ("f32[3]{0}",), fact={})
    outcome = run(broken)
    assert (outcome.status, outcome.found) == ("error", "error")
    assert Said("core.internal_error", kind="KeyError", error="'is'").of(outcome.finding.reason)


def test_wrong_before_bad_input_before_unknown() -> None:
    """The exit code is the gravest status; nothing but 0 means that all is as expected."""
    outcomes = {
        "as expected": Outcome(Finding("a", "b", verdict=Verdict.PROVED), "x"),
        "wrong": Outcome(Finding("a", "b"), "x"),
        "unknown": Outcome(unknown("a", "b"), "x"),
        "error": Outcome(wrong_input("a", "b"), "x"),
        "interrupted": Outcome(unknown("a", "b"), "interrupted"),
    }
    assert [outcome.status for outcome in outcomes.values()] == list(outcomes)
    assert exit_code(list(outcomes.values())) == 130
    assert exit_code([o for o in outcomes.values() if o.status != "interrupted"]) == 1
    assert exit_code([outcomes["wrong"], outcomes["unknown"], outcomes["as expected"]]) == 1
    assert exit_code([outcomes["unknown"], outcomes["as expected"]]) == 3
    assert exit_code([outcomes["as expected"]]) == 0


def spec_folder(folder: Path) -> Path:
    """Three files: a good one, one that is not YAML, one below with a refutation, a typo and an unknown."""
    (folder / "b").mkdir(parents=True)
    (folder / "a.yaml").write_text(HEAD + "  - injective: scores\n" * 70)
    (folder / "b" / "c.yml").write_text(
        HEAD + "  - injective: overlap\n  - injectve: scores\n  - covers: overlap\n    engine: bits\n"
    )
    (folder / "z.yaml").write_text("source: @")
    (folder / "notes.txt").write_text("not a spec")
    return folder


def test_folders_are_searched_and_no_file_stops_another(tmp_path: Path) -> None:
    """Every file is read, in order of its name; what is wrong with one is an outcome among the others."""
    folder = spec_folder(tmp_path)
    assert [path.name for path in find([folder, folder / "a.yaml"])] == ["a.yaml", "c.yml", "z.yaml"]
    outcomes = check_paths([folder])
    assert [o.found for o in outcomes[:70]] == ["proved"] * 70
    assert [(o.found, o.finding.place.removeprefix(folder.as_posix())) for o in outcomes[70:]] == [
        ("error", "/b/c.yml:7:5"),
        ("refuted", "/b/c.yml:6:5"),
        ("unknown", "/b/c.yml:8:5"),
        ("error", "/z.yaml:1:9"),
    ]
    assert exit_code(outcomes) == 1


@pytest.mark.slow
def test_several_processes_give_the_same_in_the_same_order(tmp_path: Path) -> None:
    """Processes change nothing but time."""
    folder = spec_folder(tmp_path)
    seen: list[tuple[int, int]] = []
    outcomes = check_paths([folder], Workers(2), lambda done, total: seen.append((done, total)))
    alone = check_paths([folder])
    assert [(o.found, o.finding.reason, o.finding.place) for o in outcomes] == [
        (o.found, o.finding.reason, o.finding.place) for o in alone
    ]
    assert seen == [(32, 74), (64, 74), (74, 74)]
    assert pickle.loads(pickle.dumps(alone)) == alone


def test_an_interrupt_leaves_what_is_done(tmp_path: Path) -> None:
    """Ctrl-C after the first part: its outcomes, then a last one that says how many are missing."""
    folder = spec_folder(tmp_path)
    whole = check_paths([folder])

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    part = check_paths([folder], progress=interrupt)
    assert [o.finding.place for o in part[:-1]] == [o.finding.place for o in whole[:32]]
    assert part[-1].status == "interrupted"
    assert exit_code(part) == 130
    assert Said("specs.run_interrupted", done=32, checks=74).of(part[-1].finding.reason)
    assert f"interrupted {part[-1].finding.reason}" in report.text(part)
    assert report.as_findings(part).partial


def test_nothing_asked_is_nothing_proved(tmp_path: Path) -> None:
    """No file, no folder and no path are errors, never success."""
    with raises(LayoutError, Said("specs.no_spec_file", folder=str(tmp_path))):
        check_paths([tmp_path])
    with pytest.raises(LayoutError, match="nowhere: no such file or folder"):
        check_paths([tmp_path / "nowhere"])
    with raises(LayoutError, Said("specs.no_check_found", paths="no path")):
        check_paths([])


def test_a_refutation_in_words() -> None:
    """The claim and its place, the layout, why, the counterexample and who found it, where to read on."""
    assert report.one(outcome_of("injective: overlap")) == (
        "refuted  injective  overlap   a.yaml:6:5\n"
        "  layout   strided: f32[3,5] strides (4,1)\n"
        "  because  (0, 4) and (1, 0) are both stored at offset 4\n"
        "  at       first=(0, 4) second=(1, 0)\n"
        "  by       digits\n"
        "  explain  layoutproof explain injective"
    )


def test_the_report_of_facts_names_and_notes() -> None:
    """A wrong fact shows its source; a name replaces the layout in the first line; `where` and notes are shown."""
    assert report.one(outcome_of("locate: scores\n    index: [2, 3]\n    is: {offset: 16}\n    note: see page 1")) == (
        "wrong    locate  scores   a.yaml:6:5\n"
        "  layout   f32[3,5]{1,0:T(2,2)}\n"
        "  because  (2, 3) is at offset 17, not at offset 16\n"
        "  note     see page 1\n"
        "  source   https://openxla.org/xla/tiled_layout"
    )
    shown = report.one(outcome_of("padding: 'f32[N]{0:T(128)}'\n    where: N <= 3\n    at_most: 0%\n    name: thin"))
    first, _, where, *_ = shown.splitlines()
    assert first == "refuted  padding  thin   a.yaml:6:5"
    assert where == "  where    N <= 3"


def test_a_verdict_that_was_expected_is_not_the_headline() -> None:
    """When only a figure or the counterexample is off, the first line says wrong, not proved or refuted."""
    for check in (
        "padding: scores\n    figures: {bytes: 95}",
        "injective: overlap\n    expect: refuted\n    reason: zzz",
        "injective: scores\n    expect: refuted",
    ):
        assert report.one(outcome_of(check)).startswith("wrong    ")


def test_the_text_ends_with_a_line_that_counts(tmp_path: Path) -> None:
    """Only what is not as expected is shown, the gravest last, then the sum."""
    outcomes = check_paths([spec_folder(tmp_path)])
    shown = report.text(outcomes)
    files, *others, last = shown.split("\n\n")
    assert re.sub(r"\d+\.\d m?s", "TIME", files).replace(f"{tmp_path}/", "").splitlines() == [
        "a.yaml   70 claims as stated: 70 proved; TIME",
        "b/c.yml  0 of 2 claims as stated; 1 NOT as stated; 1 UNKNOWN; 1 NOT readable; TIME",
        "z.yaml   0 claims as stated; 1 NOT readable; TIME",
    ]
    heads = [block.split()[0] for block in others]
    assert heads == ["unknown", "refuted", "error", "error"]
    assert last == "70 of 72 claims as stated: 70 proved; 1 NOT as stated; 1 UNKNOWN; 2 NOT readable; in 3 files"
    (unread,) = (o for o in outcomes if o.finding.place.endswith("c.yml:7:5"))
    nearest = Said("core.did_you_mean", name="injective")
    assert Said("specs.unknown_key", key="injectve", near=nearest).of(unread.finding.reason)
    assert unread.finding.reason in shown


def test_the_sum_tells_the_expected_from_the_rest() -> None:
    """A refutation that was wanted, a proof that was not, and facts are counted apart."""
    checks = [
        "injective: overlap\n    expect: refuted",
        "injective: overlap",
        "injective: scores\n    expect: refuted",
        "injective: scores",
        "locate: scores\n    index: [2, 3]\n    is: {offset: 17}",
        "locate: scores\n    index: [2, 3]\n    is: {offset: 16}",
    ]
    line = report.summary([outcome_of(check) for check in checks])
    assert line == (
        "2 of 4 claims as stated: 1 proved, 1 counterexample as expected; 1 of 2 facts hold; 2 NOT as stated; 1 WRONG"
    )
    assert report.summary([]) == "0 claims as stated"


def test_json_holds_everything(tmp_path: Path) -> None:
    """The same outcomes for programs: exit code, counts, and each check with its answer."""
    found = json.loads(json.dumps(report.as_json(check_paths([spec_folder(tmp_path)]))))
    assert found["exit_code"] == 1
    assert found["summary"] == {
        "checks": 74,
        "as_expected": 70,
        "proved": 70,
        "sampled": 0,
        "refuted": 1,
        "unknown": 1,
        "holds": 0,
        "wrong": 0,
        "error": 2,
    }
    refuted = found["results"][71]
    assert refuted["status"] == "wrong"
    assert refuted["question"] == "injective"
    assert refuted["counterexample"] == {"first": [0, 4], "second": [1, 0]}
    assert refuted["layouts"] == [{"strided": "f32[3,5] strides (4,1)"}]


def test_the_other_forms_of_a_check(tmp_path: Path) -> None:
    """Each check is a test case; what is not as expected is a finding with its place, in every form."""
    outcomes = check_paths([spec_folder(tmp_path)])
    whole = report.as_findings(outcomes)
    assert whole.exit_code == exit_code(outcomes) == 1
    assert (len(whole.findings), len(whole.held)) == (4, 70)
    suite = ElementTree.fromstring(render("junit", whole)).find("testsuite")
    assert suite is not None
    assert len(suite.findall("testcase")) == 74 + 1
    assert len(suite.findall("testcase/failure")) == 2
    assert len(suite.findall("testcase/error")) == 2
    places = re.findall(r"^::error file=(?:[^,]*),line=(\d+)", render("github", whole), re.MULTILINE)
    assert places == [str(f.line) for f in sorted(whole.findings, key=rank)]
    (run_,) = json.loads(render("sarif", whole))["runs"]
    described = {rule["id"]: rule["shortDescription"]["text"] for rule in run_["tool"]["driver"]["rules"]}
    assert described["injective"] == "Two different elements never share one place."
    fine = report.as_findings([o for o in outcomes if o.status == "as expected"])
    assert fine.exit_code == 0
    assert "all as stated in 1 file" in render("text", fine)
    for form in ("html", "markdown"):
        listed = render(form, fine)
        assert listed.count("proved") >= 70, form
        assert "scores" in listed
