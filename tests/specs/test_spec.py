"""Spec files: what is read from one, and what every mistake says."""

from __future__ import annotations

import pickle
from pathlib import Path

import jsonschema
import pytest

from layoutproof.programs.claims import CLAIMS
from layoutproof.registry.catalogue import kernel_properties, properties
from layoutproof.specs.check import find
from layoutproof.specs.positions import read_file, read_yaml
from layoutproof.specs.spec import Check, load, loads
from layoutproof.specs.spec_model import FACTS, json_schema, kinds, model_of, options_of
from layoutproof.specs.validation import keys_of
from tests.schema_places import places

pytestmark = pytest.mark.slow

SPECS = Path(__file__).resolve().parents[2] / "specs"

# the example of the public contract
EXAMPLE = """\
source: https://openxla.org/xla/tiled_layout
layouts:
  scores: f32[3,5]{1,0:T(2,2)}
checks:
  - injective: scores
  - padding: scores
    at_most: 40%
  - locate: scores
    index: [2, 3]
    is: {offset: 17}
  - same_map: [scores, "f32[3,5]{1,0:T(2,2)(1,2)}"]
  - injective: {strided: "f32[3,5] strides (4,1)"}
    expect: refuted
    counterexample: {first: [0, 4], second: [1, 0]}
"""
SCORES = "f32[3,5]{1,0:T(2,2)}"


def mistakes(text: str) -> list[str]:
    """The messages of all mistakes in a file called a.yaml."""
    return [str(error) for error in loads(text, "a.yaml")[1]]


def with_check(check: str) -> str:
    """A file with one layout, `scores`, and one check that starts on line 5."""
    return f"source: here\nlayouts:\n  scores: {SCORES}\nchecks:\n  - {check}"


def test_the_example_is_read() -> None:
    """Each check has its place, its layouts looked up, its options and its expectation."""
    checks, errors = loads(EXAMPLE, "a.yaml")
    assert errors == []
    assert [(c.kind, c.line, c.column) for c in checks] == [
        ("injective", 5, 5),
        ("padding", 6, 5),
        ("locate", 8, 5),
        ("same_map", 11, 5),
        ("injective", 12, 5),
    ]
    injective, padding, locate, same_map, strided = checks
    assert injective == Check(
        "a.yaml", 5, 5, "injective", ("scores",), (SCORES,), source="https://openxla.org/xla/tiled_layout"
    )
    assert padding.options == {"at_most": "40%"}
    assert locate.fact == {"index": [2, 3], "is": {"offset": 17}}
    assert locate.is_fact
    assert same_map.layouts == (SCORES, "f32[3,5]{1,0:T(2,2)(1,2)}")
    assert strided.layouts == ({"strided": "f32[3,5] strides (4,1)"},)
    assert strided.labels == ("{strided: f32[3,5] strides (4,1)}",)
    assert (strided.expect, strided.counterexample) == ("refuted", {"first": (0, 4), "second": (1, 0)})
    assert (strided.file, strided.line, strided.column) == ("a.yaml", 12, 5)


def test_checks_can_be_sent_to_another_process() -> None:
    """A check survives pickling unchanged."""
    checks, _ = loads(EXAMPLE)
    assert pickle.loads(pickle.dumps(checks)) == checks


MISTAKES = {
    "injectve: scores": "a.yaml:5:5: unknown key 'injectve'; did you mean 'injective'?",
    "paddding: scores\n    at_most: 2%": "a.yaml:5:5: unknown key 'paddding'; did you mean 'padding'?",
    "padding: scores\n    at_mots: 2%": "a.yaml:6:5: unknown key 'at_mots'; did you mean 'at_most'?",
    "injective: scores\n    zzz: 1": (
        "a.yaml:6:5: unknown key 'zzz'; the keys here are name, note, expect, counterexample, reason, figures, where, "
        "engine, confirm, effort, injective"
    ),
    "injective: scoers": "a.yaml:5:16: unknown layout 'scoers'; did you mean 'scores'?",
    "injective: zzz": "a.yaml:5:16: unknown layout 'zzz'; named are scores",
    "same_map: [scores, scors]": "a.yaml:5:24: unknown layout 'scors'; did you mean 'scores'?",
    "same_map: scores": "a.yaml:5:15: 'same_map': expected a list; found 'scores'",
    "same_map: [scores]": "a.yaml:5:15: 'same_map': expected 2 entries; found ['scores']",
    "same_map: [scores, scores, scores]": (
        "a.yaml:5:15: 'same_map': expected 2 entries; found ['scores', 'scores', 'scores']"
    ),
    "injective: [scores]": (
        "a.yaml:5:16: 'injective': expected a layout's name, a text such as \"f32[3,5]{1,0:T(2,2)}\", "
        "or {language: ..}; found ['scores']"
    ),
    "injective:": (
        "a.yaml:5:15: 'injective': expected a layout's name, a text such as \"f32[3,5]{1,0:T(2,2)}\", "
        "or {language: ..}; found None"
    ),
    "injective: scores\n    padding: scores": (
        "a.yaml:6:5: a check asks one thing; 'injective' and 'padding' are two checks"
    ),
    "{}": ("a.yaml:5:5: a check needs a key that says what is asked; found nothing; known: " + ", ".join(kinds())),
    "where: N == 1": (
        "a.yaml:5:5: a check needs a key that says what is asked; found only where; known: " + ", ".join(kinds())
    ),
    "injective": "a.yaml:5:5: 'checks': expected a mapping; found 'injective'",
    "injective: scores\n    expect: prooved": (
        "a.yaml:6:13: 'expect': expected 'proved', 'refuted' or 'unknown'; found 'prooved'"
    ),
    "injective: scores\n    reason: why": (
        "a.yaml:5:5: a proof has no reason; 'reason' belongs to 'expect: refuted' or 'expect: unknown'"
    ),
    "injective: scores\n    counterexample: {first: [1]}": (
        "a.yaml:5:5: a counterexample belongs to 'expect: refuted', not to 'proved'"
    ),
    "injective: scores\n    expect: refuted\n    counterexample: {first: 1}": (
        "a.yaml:7:29: 'first': expected a list; found 1"
    ),
    "injective: scores\n    engine: z3": (
        "a.yaml:6:13: 'engine': expected one of digits, bits, isl, smt, brute; found 'z3'"
    ),
    "injective: scores\n    confirm: yes": "a.yaml:6:14: 'confirm': expected true or false; found 'yes'",
    "injective: scores\n    effort: 0": "a.yaml:6:13: 'effort': expected a number of at least 1; found 0",
    "injective: scores\n    name: 3": "a.yaml:6:11: 'name': expected text; found 3",
    "padding: scores\n    at_most: 2": "a.yaml:6:14: 'at_most': expected text; found 2",
    "padding: scores\n    figures: {bytes: 1.5}": (
        "a.yaml:6:22: 'bytes': expected a whole number, a closed form as text, or lists of them; found 1.5"
    ),
    "bitcast: [scores, scores]\n    permutation: 1": "a.yaml:6:18: 'permutation': expected a list; found 1",
    "owners: scores\n    owner: warp": "a.yaml:6:12: 'owner': expected a list; found 'warp'",
    "locate: scores\n    is: {offset: 17}": "a.yaml:5:5: 'index' is missing",
    "locate: scores\n    index: [2, x]\n    is: {offset: 17}": (
        "a.yaml:6:16: 'index': expected a whole number; found 'x'"
    ),
    "locate: scores\n    index: [2, true]\n    is: {offset: 17}": (
        "a.yaml:6:16: 'index': expected a whole number; found True"
    ),
    "table: scores\n    is: [[0, a]]": ("a.yaml:6:9: 'is': expected an offset or nested lists of offsets; found 'a'"),
    "prints: scores\n    is: x\n    mode: loose": ("a.yaml:7:11: 'mode': expected 'strict' or 'xla'; found 'loose'"),
    "tpu_default: f32[3]\n    is: x": "a.yaml:5:5: 'target' is missing",
    "injective: scores\n    injective: scores": "a.yaml:6:5: duplicate key 'injective'; first on line 5",
}


@pytest.mark.parametrize("check", MISTAKES)
def test_a_mistake_says_where_what_and_what_was_expected(check: str) -> None:
    """Exactly one message for one slip, at its line and column."""
    assert mistakes(with_check(check)) == [MISTAKES[check]]


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("", ["a.yaml:1:1: expected a mapping; found None"]),
        ("[]", ["a.yaml:1:1: expected a mapping; found []"]),
        (
            "source: x\nchekcs:\n  - injective: f32[3]{0}",
            ["a.yaml:2:1: unknown key 'chekcs'; did you mean 'checks'?"],
        ),
        ("source: x\nchecks: []", ["a.yaml:2:9: 'checks' is empty; there is nothing to prove"]),
        ("source: x\nchecks:", ["a.yaml:2:8: 'checks': expected a list; found None"]),
        ("source: 3\nchecks:\n  - injective: f32[3]{0}", ["a.yaml:1:9: 'source': expected text; found 3"]),
        (
            "source: x\nlayouts: {a b: 'f32[3]{0}'}\nchecks:\n  - injective: f32[3]{0}",
            ["a.yaml:2:11: 'a b' cannot name a layout: letters, digits, '_', '.' and '-' only"],
        ),
        (
            "source: x\nlayouts:\n  a: f32[3,5]{1}\nchecks:\n  - injective: a",
            [
                "a.yaml:3:6: minor_to_major {1} has 1 entry but f32[3,5] has 2 dimensions\n  f32[3,5]{1}",
            ],
        ),
        (
            "source: x\nlayouts:\n  a: 3\nchecks:\n  - injective: a",
            [
                "a.yaml:3:6: 'a': expected a layout's name, a text such as \"f32[3,5]{1,0:T(2,2)}\", "
                "or {language: ..}; found 3"
            ],
        ),
    ],
)
def test_a_mistake_in_the_file_itself(text: str, messages: list[str]) -> None:
    """A layout that cannot be read is reported once, where it is written, and not again where it is used."""
    assert mistakes(text) == messages
    if "layouts" in text:
        assert [check.labels for check in loads(text)[0] if "a" in check.labels] == []


def test_one_mistake_hides_no_other_and_no_good_check() -> None:
    """All mistakes come back in the order of the file, and every check without one is there."""
    text = with_check("injectve: scores") + "\n  - injective: scores\n  - paddin: scores\n  - covers: scores"
    checks, errors = loads(text, "a.yaml")
    assert [(c.kind, c.line) for c in checks] == [("injective", 6), ("covers", 8)]
    assert [error.line for error in errors] == [5, 7]


def test_a_name_is_no_layout_text() -> None:
    """A text with brackets is never looked up, so a layout's name cannot shadow one."""
    checks, errors = loads("source: x\nchecks:\n  - injective: f32[3]{0}", "a.yaml")
    assert not errors
    assert checks[0].layouts == ("f32[3]{0}",)


def test_an_invalid_layout_is_kept_as_written() -> None:
    """What is said to be no layout is not looked up: it may look like anything."""
    checks, errors = loads(with_check("invalid: f32\n    error: brackets"))
    assert not errors
    assert (checks[0].layouts, checks[0].fact) == (("f32",), {"error": "brackets"})


def test_every_property_is_a_kind_with_its_own_options() -> None:
    """Kinds and options come from the property modules: nothing is listed twice."""
    # the last one is the gate's, which has both states
    of_functions = ("kernel", "same", "stable", "sums_at_least", "same_function")
    assert set(kinds()) == {*properties(), *kernel_properties(), *of_functions, *FACTS, *CLAIMS}
    assert "at_most" in keys_of(model_of("padding"))
    assert "at_most" not in keys_of(model_of("injective"))
    assert set(options_of("bitcast")) == {"permutation"}


def test_every_shipped_spec_satisfies_the_schema_and_has_no_mistake() -> None:
    """What editors accept and what we read agree on the files we ship."""
    validator = jsonschema.Draft202012Validator(json_schema())
    files = find([SPECS])
    assert len(files) > 10
    for path in files:
        checks, errors = load(path)
        assert [str(error) for error in errors] == []
        assert checks
        assert [error.message for error in validator.iter_errors(read_file(path).plain())] == []


WHOLE = """\
source: here
layouts: {scores: "f32[3,5]{1,0:T(2,2)}"}
kernels: {mm: {trace: "pkg.mod:mm", args: ["f32[8,128]"]}}
programs: {step: {function: "pkg.mod:step", args: ["f32[8,128]"], target: v5e, mesh: {data: 2}, in: ["P('data')"]}}
gate: {grew: "warn, deny above 2%"}
checks:
  - {padding: scores, at_most: 40%}
  - {blocks_in_bounds: mm, target: v5e}
  - {peak_memory: step, at_most: 12GiB}
  - {collectives: step, kind: all-gather, at_most: 0 bytes}
"""


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("", "", ""),
        ("source: here", "sauce: here", "1:1"),
        ("{scores:", "{1scores:", "2:11"),
        ("trace: ", "traces: ", "3:16"),
        ('"pkg.mod:mm"', "mm", "3:23"),
        ("mesh: {data: 2}", "mash: {data: 2}", "4:80"),
        ("{data: 2}", "{data: two}", "4:93"),
        ("gate: {", "gate: [{", "5:7"),
        ("padding:", "paddin:", "7:5"),
        ("at_most: 40%", "at_mots: 40%", "7:23"),
        ("at_most: 12GiB", "at_most: [12GiB]", "9:34"),
        (", at_most: 0 bytes", "", "10:5"),
    ],
)
def test_an_editor_marks_what_is_planted_where_it_stands(old: str, new: str, place: str) -> None:
    """A file with everything in it is right; one slip is found by the schema alone, at its line and column."""
    spoiled = WHOLE.replace(old, new, 1) if old else WHOLE
    spoiled = spoiled.replace('2%"}', '2%"}]') if "[{" in new else spoiled
    found = places(json_schema(), spoiled)
    # what is wrong about a mapping is said of the mapping: that a key is unknown there, and that another is missing
    assert set(found) >= {place} if place else found == []
    assert {each.partition(":")[0] for each in found} == ({place.partition(":")[0]} if place else set())


def test_the_gates_rules_in_a_file_are_no_mistake_of_it() -> None:
    """`check` leaves them to the gate; what is no mapping is none of its rules."""
    text = 'checks: [{injective: "f32[8]"}]\ngate: {grew: warn}\n'
    checks, errors = loads(text, "a.yaml")
    assert (len(checks), errors) == (1, [])
    assert mistakes(text.replace("{grew: warn}", "warn")) != []


def test_the_schema_is_one_and_refuses_slips() -> None:
    """It is a valid schema, knows every kind, and refuses what only a typo away is right."""
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["$defs"]) == {*kinds(), "any_layout"}
    validator = jsonschema.Draft202012Validator(schema)
    good = {"source": "x", "checks": [{"padding": "f32[3]{0}", "at_most": "2%"}]}
    assert validator.is_valid(good)
    assert validator.is_valid({"checks": good["checks"]})
    for bad in (
        {**good, "chekcs": []},
        {"source": 3, "checks": good["checks"]},
        {"source": "x", "checks": []},
        {"source": "x", "checks": [{"paddin": "f32[3]{0}"}]},
        {"source": "x", "checks": [{"padding": "f32[3]{0}", "at_mots": "2%"}]},
        {"source": "x", "checks": [{"same_map": ["a"]}]},
        {"source": "x", "checks": [{"injective": "a", "expect": "maybe"}]},
        {"source": "x", "checks": [{"locate": "a", "index": [1]}]},
        {"source": "x", "checks": [{"locate": "a", "index": ["1"], "is": {"offset": 1}}]},
    ):
        assert not validator.is_valid(bad), bad


@pytest.mark.parametrize(
    ("check", "place", "words", "in_schema"),
    [
        ("injective: scores\n    effort: true", "6:13", "'effort': expected a whole number; found True", True),
        ("injective: scores\n    effort: .nan", "6:13", "'effort': expected a whole number; found nan", True),
        ("injective: scores\n    effort: -1", "6:13", "'effort': expected a number of at least 1; found -1", True),
        (
            "injective: scores\n    effort: 1001",
            "6:13",
            "'effort': expected a number of at most 1000; found 1001",
            True,
        ),
        (f"injective: scores\n    effort: {'9' * 41}", "6:13", "a number of 41 characters; at most 40 digits", True),
        ("injective: scores\n    confirm: 1", "6:14", "'confirm': expected true or false; found 1", True),
        ("injective: scores\n    note: [1]", "6:11", "'note': expected text; found [1]", True),
        ("injective: scores\n    figures: {bytes: .nan}", "6:22", "'bytes': expected a whole number, a closed", True),
        ("locate: scores\n    index: [.inf, 0]\n    is: {offset: 0}", "6:13", "'index': expected a whole number", True),
        ("sizes: scores\n    is: {}", "6:9", "'is': expected at least one entry; found {}", True),
        ("table: scores\n    is: 1.5", "6:9", "'is': expected an offset or nested lists of offsets; found 1.5", True),
        ("injective: scores\n    note: a\n    note: b", "7:5", "duplicate key 'note'; first on line 6", False),
    ],
)
def test_reader_and_schema_refuse_what_is_planted(check: str, place: str, words: str, in_schema: bool) -> None:
    """Wrong types, truth values and not-a-numbers for numbers, what is out of bounds, empty, or said twice."""
    said = mistakes(with_check(check))
    assert [message.startswith(f"a.yaml:{place}: {words}") for message in said] == [True], said
    if in_schema and "40 digits" not in words:
        document = read_yaml(with_check(check)).plain()
        assert not jsonschema.Draft202012Validator(json_schema()).is_valid(document)
        assert places(json_schema(), with_check(check)) == [place]
