"""The comparison with peers: its questions, what it calls right, each peer that is installed, the page of bugs."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from benchmarks.bug_reports import FOLDER, name, report, reported
from benchmarks.bugs_found import PAGE, Bug, bugs, run
from benchmarks.peers import ours
from benchmarks.peers.__main__ import OURS, judged, peers, table
from benchmarks.peers.questions import Question, exists, questions, right, truth
from layoutproof.compiler.child import Reply
from layoutproof.core.errors import LayoutError

pytestmark = pytest.mark.slow

GROUPS = list(dict.fromkeys(question["group"] for question in questions()))
THREE = {
    "cute_dsl": [
        ("compose", "20:2, (5,4):(4,1)", "correct"),
        ("compose", "(6,2):(1,7), (3,2):(2,3)", "wrong"),
        ("injective", "(4,5):(4,3)", "not asked"),
    ],
    "isl": [
        ("injective", "4i % 16", "correct"),
        ("compose", "(6,2):(1,7), (3,2):(2,3)", "correct"),
        ("complement", "4:6 in 48", "not asked"),
    ],
    "jax": [
        ("covers", "f32[20,256], rounded down", "correct"),
        ("in_bounds", "one program too many", "wrong"),
        ("injective", "4i % 16", "not asked"),
    ],
    "jax_interpret_params": [
        ("covers", "f32[20,256], rounded down", "correct"),
        ("in_bounds", "one program too many", "correct"),
        ("same_map", "devices in two orders", "not asked"),
    ],
    "ours": [
        ("injective", "4i % 16", "correct"),
        ("compose", "(6,2):(1,7), (3,2):(2,3)", "correct"),
        ("same_map", "devices in two orders", "correct"),
    ],
    "pycute": [
        ("complement", "4:6 in 48", "correct"),
        ("compose", "(6,2):(1,7), (3,2):(2,3)", "wrong"),
        ("injective", "(4,5):(4,3)", "not asked"),
    ],
    "tensor_layouts": [
        ("injective", "(4,5):(4,3)", "correct"),
        ("compose", "(6,2):(1,7), (3,2):(2,3)", "wrong"),
        ("in_bounds", "one program too many", "not asked"),
    ],
    "tinygrad": [
        ("in_bounds", "one program too many", "correct"),
        ("in_bounds", "Sw<3,3,3> o 0 o (8,64):(64,1)", "refused"),
        ("covers", "4i % 16", "not asked"),
    ],
    "triton": [
        ("injective", "6 bits, crossed", "correct"),
        ("inverse", "6 bits onto 5", "crashed"),
        ("injective", "f32[3,5] strides (4,1) offset 0 in 13", "not asked"),
    ],
    "tvm": [
        ("inverse", "(i // 6, i % 6)", "correct"),
        ("inverse", "(i + 1) % 128", "wrong"),
        ("inverse", "5i % 16", "refused"),
    ],
    "z3": [
        ("injective", "5i % 16", "correct"),
        ("in_bounds", "one program too many", "correct"),
        ("compose", "20:2, (5,4):(4,1)", "not asked"),
    ],
}
"""Peer -> three questions, with what becomes of each under the version that its file installs."""


def named(kind: str, name: str) -> Question:
    (found,) = [question for question in questions() if (question["kind"], question["name"]) == (kind, name)]
    return found


@pytest.mark.parametrize("group", GROUPS)
def test_ours_answers_as_looking_at_every_element_does(group: str) -> None:
    """Every question of the table; what is refused has no answer, but for one left inverse that is not known."""
    refused = []
    for question in questions():
        if question["group"] == group:
            ask = ours.asked(question)
            try:
                answer = ask.read(ask.run())
            except (ours.Refused, LayoutError):
                refused += [question["name"]] if exists(question) else []
                continue
            assert right(question, answer), (question["kind"], question["name"], answer)
    assert refused == (["(3,2):(2,3)"] if group == "CuTe" else [])


def test_questions_are_of_every_kind_and_have_both_answers() -> None:
    """Nobody is right by saying the same to all; and no two questions are the same."""
    known = [(question["kind"], truth(question)) for question in questions()]
    for kind in ("injective", "in_bounds", "covers", "same_map"):
        assert {answer for asked, answer in known if asked == kind} == {True, False}
    for kind in ("compose", "complement", "left_inverse", "inverse", "slice"):
        assert {exists(question) for question in questions() if question["kind"] == kind} >= {True}
    assert {"padding"} < {kind for kind, _ in known}
    assert len({(q["group"], q["kind"], q["name"]) for q in questions()}) == len(questions())


@pytest.mark.parametrize(
    ("kind", "name", "answer"),
    [
        ("injective", "4i % 16", True),
        ("padding", "f32[20,130]{1,0:T(8,128)}", 3543),
        ("compose", "(6,2):(1,7), (3,2):(2,3)", [0, 2, 4, 3, 5, 7]),
        ("compose", "20:2, (5,4):(4,1)", None),
        ("complement", "4:6 in 48", [0, 1, 2, 3, 4, 5, 24, 25, 26, 27, 28, 30]),
        ("complement", "(2,2):(1,1) in 8", []),
        ("left_inverse", "(4,2):(1,16)", [0, 1, 2, 3]),
        ("inverse", "(i + 1) % 128", [[i] for i in range(128)]),
        ("slice", "S[(8):(1@m)] [6:12]", [6, 7, 8, 9, 10, 11]),
    ],
)
def test_wrong_answers_are_called_wrong(kind: str, name: str, answer: Any) -> None:
    """The referee can fail, with what peers really said among its cases."""
    assert not right(named(kind, name), answer)
    found = judged(named(kind, name), Reply({"version": "", "said": "answer", "value": answer, "us": 1.0}))
    assert found.what == "wrong"


def test_to_refuse_is_right_only_where_there_is_no_answer() -> None:
    """And what ends a process is neither."""
    refused: Reply[Any] = Reply({"version": "", "said": "refused", "words": "no"})
    assert judged(named("compose", "(6,2):(1,7), (3,2):(2,3)"), refused).what == "correct"
    assert judged(named("compose", "20:2, (5,4):(4,1)"), refused).what == "refused"
    assert judged(named("compose", "20:2, (5,4):(4,1)"), Reply(None, "", "ended")).what == "crashed"
    assert judged(named("compose", "20:2, (5,4):(4,1)"), Reply(None, "", "slow")).what == "timed out"


@pytest.mark.slow
@pytest.mark.parametrize("peer", peers(), ids=lambda peer: peer.name)
def test_each_peer_on_three_questions(peer: Any) -> None:
    """The adapter puts the question as it is meant, and the answer is what that version gives."""
    if not peer.installed:
        pytest.skip(f"{peer.name} is not installed: {' '.join(peer.module.INSTALL)}")
    asked = [named(kind, name) for kind, name, _ in THREE[peer.name]]
    found = peer.outcomes(asked, 60.0)
    assert [outcome.what for outcome in found] == [what for _, _, what in THREE[peer.name]], [o.words for o in found]
    if peer.name == OURS:
        assert "| layoutproof | 0.1.0 | 3 |" in "\n".join(table({OURS: found}))


def test_the_page_of_bugs_parses() -> None:
    """Each entry has one program that is Python, what it prints, what it needs; three lists and nothing else."""
    found = bugs(PAGE.read_text(encoding="utf-8"))
    assert len(found) >= 20
    lists = {"Wrong answers", "Memory that is never given back", "Surprises, documented or by design"}
    assert {bug.section for bug in found} == lists
    for bug in found:
        ast.parse(bug.code)
        assert bug.packages, bug.title
        assert bug.printed.strip(), bug.title
    with pytest.raises(ValueError, match="has no one program"):
        bugs("## Wrong answers\n\n### x\n\n- Run with: `jax`\n\n```python\nprint(1)\n```\n")


def test_reports_are_as_the_page() -> None:
    """`python benchmarks/bug_reports.py` makes them, with the headings of their projects."""
    expected = {name(bug): report(bug) for bug in reported()}
    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()} == expected
    fixed = {file for file, text in expected.items() if "A fix that was tried" in text}
    assert len(fixed) >= 4
    for bug in reported():
        text = expected[name(bug)]
        assert bug.code in text
        assert bug.printed in text
        assert ("### System info" in text) == bug.title.startswith("jax:")
        assert ("### Triage" in text) == bug.title.startswith("TVM:")


def test_a_program_of_the_page_is_run_in_a_process_of_its_own() -> None:
    """What it prints counts, how it ends too."""
    import sys
    from pathlib import Path

    def said(code: str) -> str:
        # it ends by itself, on a loaded machine late
        return run(Bug("", "", (), "", code, "", {}, ""), Path(sys.executable), {}, 600.0)

    assert said("print(1)") == "1\n"
    assert said("print(1, flush=True)\nimport os\nos.abort()") == "1\nended by SIGABRT\n"
    assert said("raise ValueError('no')") == "exit code 1: ValueError: no\n"
