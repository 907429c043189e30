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
from tests.said import Said, placed, says
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
    "injectve: scores": (
        "a.yaml:5:5",
        Said("specs.unknown_key", key="injectve", near=Said("core.did_you_mean", name="injective")),
    ),
    "paddding: scores\n    at_most: 2%": (
        "a.yaml:5:5",
        Said("specs.unknown_key", key="paddding", near=Said("core.did_you_mean", name="padding")),
    ),
    "padding: scores\n    at_mots: 2%": (
        "a.yaml:6:5",
        Said("specs.unknown_key", key="at_mots", near=Said("core.did_you_mean", name="at_most")),
    ),
    "injective: scores\n    zzz: 1": (
        (
            "a.yaml:6:5",
            Said(
                "specs.unknown_key",
                key="zzz",
                near=Said(
                    "specs.known_keys",
                    known="name, note, expect, counterexample, reason, figures, where, engine, confirm, effort, "
                    "injective",
                ),
            ),
        )
    ),
    "injective: scoers": (
        "a.yaml:5:16",
        Said("specs.unknown_layout", name="scoers", near=Said("core.did_you_mean", name="scores")),
    ),
    "injective: zzz": ("a.yaml:5:16", Said("specs.unknown_layout", name="zzz", near="; named are scores")),
    "same_map: [scores, scors]": (
        "a.yaml:5:24",
        Said("specs.unknown_layout", name="scors", near=Said("core.did_you_mean", name="scores")),
    ),
    "same_map: scores": ("a.yaml:5:15", Said("specs.expected", wanted="a list", found="'scores'", key="same_map")),
    "same_map: [scores]": (
        "a.yaml:5:15",
        Said("specs.expected", wanted="2 entries", found="['scores']", key="same_map"),
    ),
    "same_map: [scores, scores, scores]": (
        (
            "a.yaml:5:15",
            Said("specs.expected", wanted="2 entries", found="['scores', 'scores', 'scores']", key="same_map"),
        )
    ),
    "injective: [scores]": (
        ("a.yaml:5:16", Said("specs.layout_form", example="f32[3,5]{1,0:T(2,2)}", found="['scores']", key="injective"))
    ),
    "injective:": (
        ("a.yaml:5:15", Said("specs.layout_form", example="f32[3,5]{1,0:T(2,2)}", found="None", key="injective"))
    ),
    "injective: scores\n    padding: scores": (
        ("a.yaml:6:5", Said("specs.two_questions", first="injective", second="padding"))
    ),
    "{}": (("a.yaml:5:5", Said("specs.no_question", found="found nothing", known=", ".join(kinds())))),
    "where: N == 1": (("a.yaml:5:5", Said("specs.no_question", found="found only where", known=", ".join(kinds())))),
    "injective": ("a.yaml:5:5", Said("specs.expected", wanted="a mapping", found="'injective'", key="checks")),
    "injective: scores\n    expect: prooved": (
        (
            "a.yaml:6:13",
            Said("specs.expected", wanted="'proved', 'refuted' or 'unknown'", found="'prooved'", key="expect"),
        )
    ),
    "injective: scores\n    reason: why": (("a.yaml:5:5", Said("specs.reason_of_proved"))),
    "injective: scores\n    counterexample: {first: [1]}": (
        ("a.yaml:5:5", Said("specs.counterexample_without_refuted", expect="proved"))
    ),
    "injective: scores\n    expect: refuted\n    counterexample: {first: 1}": (
        ("a.yaml:7:29", Said("specs.expected", wanted="a list", found="1", key="first"))
    ),
    "injective: scores\n    engine: z3": (
        (
            "a.yaml:6:13",
            Said("specs.expected", wanted="one of digits, bits, isl, smt, brute", found="'z3'", key="engine"),
        )
    ),
    "injective: scores\n    confirm: yes": (
        "a.yaml:6:14",
        Said("specs.expected", wanted="true or false", found="'yes'", key="confirm"),
    ),
    "injective: scores\n    effort: 0": (
        "a.yaml:6:13",
        Said("specs.expected", wanted="a number of at least 1", found="0", key="effort"),
    ),
    "injective: scores\n    name: 3": ("a.yaml:6:11", Said("specs.expected", wanted="text", found="3", key="name")),
    "padding: scores\n    at_most: 2": ("a.yaml:6:14", Said("specs.expected", wanted="text", found="2", key="at_most")),
    "padding: scores\n    figures: {bytes: 1.5}": (
        (
            "a.yaml:6:22",
            Said(
                "specs.expected",
                wanted="a whole number, a closed form as text, or lists of them",
                found="1.5",
                key="bytes",
            ),
        )
    ),
    "bitcast: [scores, scores]\n    permutation: 1": (
        "a.yaml:6:18",
        Said("specs.expected", wanted="a list", found="1", key="permutation"),
    ),
    "owners: scores\n    owner: warp": (
        "a.yaml:6:12",
        Said("specs.expected", wanted="a list", found="'warp'", key="owner"),
    ),
    "locate: scores\n    is: {offset: 17}": ("a.yaml:5:5", Said("specs.key_missing", key="index")),
    "locate: scores\n    index: [2, x]\n    is: {offset: 17}": (
        ("a.yaml:6:16", Said("specs.expected", wanted="a whole number", found="'x'", key="index"))
    ),
    "locate: scores\n    index: [2, true]\n    is: {offset: 17}": (
        ("a.yaml:6:16", Said("specs.expected", wanted="a whole number", found="True", key="index"))
    ),
    "table: scores\n    is: [[0, a]]": (
        ("a.yaml:6:9", Said("specs.expected", wanted="an offset or nested lists of offsets", found="'a'", key="is"))
    ),
    "prints: scores\n    is: x\n    mode: loose": (
        ("a.yaml:7:11", Said("specs.expected", wanted="'strict' or 'xla'", found="'loose'", key="mode"))
    ),
    "tpu_default: f32[3]\n    is: x": ("a.yaml:5:5", Said("specs.key_missing", key="target")),
    "injective: scores\n    injective: scores": ("a.yaml:6:5", Said("specs.duplicate_key", key="injective", line=5)),
}


@pytest.mark.parametrize("check", MISTAKES)
def test_a_mistake_says_where_what_and_what_was_expected(check: str) -> None:
    """Exactly one message for one slip, at its line and column."""
    (error,) = loads(with_check(check), "a.yaml")[1]
    place, message = MISTAKES[check]
    assert placed(error) == place
    assert message.of(error)


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("", [("a.yaml:1:1", Said("specs.expected", wanted="a mapping", found="None"))]),
        ("[]", [("a.yaml:1:1", Said("specs.expected", wanted="a mapping", found="[]"))]),
        (
            "source: x\nchekcs:\n  - injective: f32[3]{0}",
            [("a.yaml:2:1", Said("specs.unknown_key", key="chekcs", near=Said("core.did_you_mean", name="checks")))],
        ),
        ("source: x\nchecks: []", [("a.yaml:2:9", Said("specs.checks_empty"))]),
        ("source: x\nchecks:", [("a.yaml:2:8", Said("specs.expected", wanted="a list", found="None", key="checks"))]),
        (
            "source: 3\nchecks:\n  - injective: f32[3]{0}",
            [("a.yaml:1:9", Said("specs.expected", wanted="text", found="3", key="source"))],
        ),
        (
            "source: x\nlayouts: {a b: 'f32[3]{0}'}\nchecks:\n  - injective: f32[3]{0}",
            [("a.yaml:2:11", Said("specs.layout_name", name="a b"))],
        ),
        (
            "source: x\nlayouts:\n  a: f32[3,5]{1}\nchecks:\n  - injective: a",
            [
                ("a.yaml:3:6", "minor_to_major {1} has 1 entry"),
            ],
        ),
        (
            "source: x\nlayouts:\n  a: 3\nchecks:\n  - injective: a",
            [("a.yaml:3:6", Said("specs.layout_form", example="f32[3,5]{1,0:T(2,2)}", found="3", key="a"))],
        ),
    ],
)
def test_a_mistake_in_the_file_itself(text: str, messages: list[tuple[str, Said | str]]) -> None:
    """A layout that cannot be read is reported once, where it is written, and not again where it is used."""
    errors = loads(text, "a.yaml")[1]
    assert [placed(error) for error in errors] == [place for place, _ in messages]
    assert all(says(message, error.problem) for (_, message), error in zip(messages, errors, strict=True))
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
    ("check", "place", "message", "in_schema"),
    [
        (
            "injective: scores\n    effort: true",
            "6:13",
            Said("specs.expected", wanted="a whole number", found="True", key="effort"),
            True,
        ),
        (
            "injective: scores\n    effort: .nan",
            "6:13",
            Said("specs.expected", wanted="a whole number", found="nan", key="effort"),
            True,
        ),
        (
            "injective: scores\n    effort: -1",
            "6:13",
            Said("specs.expected", wanted="a number of at least 1", found="-1", key="effort"),
            True,
        ),
        (
            "injective: scores\n    effort: 1001",
            "6:13",
            Said("specs.expected", wanted="a number of at most 1000", found="1001", key="effort"),
            True,
        ),
        (
            f"injective: scores\n    effort: {'9' * 41}",
            "6:13",
            Said("specs.number_length", characters=41, most=40),
            True,
        ),
        (
            "injective: scores\n    confirm: 1",
            "6:14",
            Said("specs.expected", wanted="true or false", found="1", key="confirm"),
            True,
        ),
        (
            "injective: scores\n    note: [1]",
            "6:11",
            Said("specs.expected", wanted="text", found="[1]", key="note"),
            True,
        ),
        (
            "injective: scores\n    figures: {bytes: .nan}",
            "6:22",
            Said(
                "specs.expected",
                wanted="a whole number, a closed form as text, or lists of them",
                found="nan",
                key="bytes",
            ),
            True,
        ),
        (
            "locate: scores\n    index: [.inf, 0]\n    is: {offset: 0}",
            "6:13",
            Said("specs.expected", wanted="a whole number", found="inf", key="index"),
            True,
        ),
        (
            "sizes: scores\n    is: {}",
            "6:9",
            Said("specs.expected", wanted="at least one entry", found="{}", key="is"),
            True,
        ),
        (
            "table: scores\n    is: 1.5",
            "6:9",
            Said("specs.expected", wanted="an offset or nested lists of offsets", found="1.5", key="is"),
            True,
        ),
        ("injective: scores\n    note: a\n    note: b", "7:5", Said("specs.duplicate_key", key="note", line=6), False),
    ],
)
def test_reader_and_schema_refuse_what_is_planted(check: str, place: str, message: Said, in_schema: bool) -> None:
    """Wrong types, truth values and not-a-numbers for numbers, what is out of bounds, empty, or said twice."""
    (error,) = loads(with_check(check), "a.yaml")[1]
    assert placed(error) == f"a.yaml:{place}"
    assert message.of(error)
    if in_schema and message.id != "specs.number_length":
        document = read_yaml(with_check(check)).plain()
        assert not jsonschema.Draft202012Validator(json_schema()).is_valid(document)
        assert places(json_schema(), with_check(check)) == [place]
