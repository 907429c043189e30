"""`--json` of every command, as a user runs it: one object, version 2, as its published schema says."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from layoutproof.cli import main as cli
from layoutproof.cli.documents import DOCUMENTS, adapter, json_schema
from layoutproof.core.document import error_entry
from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.finding import Finding, FindingEntry, as_dict
from layoutproof.core.message import Template, message_of
from layoutproof.core.result import Verdict
from tests.cli.in_one_process import commands
from tests.hlo.dumps import SMALL

pytestmark = pytest.mark.slow

SEARCHES = Path(__file__).parents[2] / "specs" / "search"
COMMANDS = cli.cli.list_commands(cli.click.Context(cli.cli))

SPEC = """\
source: here
layouts:
  scores: f32[3,5]{1,0:T(2,2)}
  idle: f32[8]{0}
checks:
  - injective: scores
  - {padding: scores, at_most: 10%}
  - {locate: scores, index: [2, 3], is: {offset: 17}}
  - {injective: {strided: "f32[3,5] strides (4,1)"}, expect: refuted, counterexample: {first: [0, 4], second: [1, 0]}}
  - {fits_int32: "f32[N,128]{1,0:T(8,128)}", expect: refuted}
  - {injective: "f32[0,5]{1,0}"}
"""
BROKEN = "checks:\n  - {injectve: f32[3]}\n"
KERNEL = """\
layouts:
  add:
    kernel:
      grid: [3]
      inputs: [{name: x, array: "f32[32,128]", block: [8, 128], index: "(i) -> (i, 0)"}]
      outputs: [{name: o, array: "f32[32,128]", block: [8, 128], index: "(i) -> (i, 0)"}]
checks: [{outputs_covered: add}]
"""
ARRAYS = "target: v5e\nlayouts: {x: 'bf16[16,1280,40]'}\n"
TILINGS = """\
search: small
target: v5e
kernel:
  grid: {i: "cdiv(M, bm)"}
  inputs: [{name: x, array: "f32[M,128]", block: [bm, 128], index: "(i) -> (i, 0)"}]
  outputs: [{name: o, array: "f32[M,128]", block: [bm, 128], index: "(i) -> (i, 0)"}]
sizes: {M: 64}
tune: {bm: {from: 8, to: 64, multiple_of: 8}}
"""
WRONG_DUMP = SMALL.replace("->f32[256,8]{1,0", "->f32[256,8]{0,1")

GOOD: list[tuple[int, list[str]]] = [
    (0, ["ask", "injective", "f32[N,M]{1,0}"]),
    (1, ["ask", "injective", "f32[3,5] strides (4,1)"]),
    (1, ["ask", "bitcast", "f32[a,b,c]{2,1,0:T(8,128)}", "f32[a*b,c]{1,0:T(8,128)}"]),
    (0, ["ask", "padding", "bf16[4096,11008]{1,0:T(8,128)(2,1)}", "--at-most", "2%"]),
    (3, ["ask", "injective", "f32[0,5]{1,0}"]),
    (1, ["check", "specs/a.yaml"]),
    (2, ["check", "specs/broken.yaml"]),
    (1, ["check", "specs"]),
    (1, ["check", "specs/a.yaml", "--output", "out.json"]),
    (1, ["check", "specs/a.yaml", "--svg", "a.svg"]),
    (1, ["ask", "injective", "f32[3,5] strides (4,1)", "--svg", "a.svg"]),
    (1, ["kernels", "specs/kernel.yaml", "--svg", "a.svg"]),
    (1, ["gate", "old", "new", "--svg", "a.svg"]),
    (1, ["ci", "specs/a.yaml"]),
    (1, ["ci", "specs", "--shard", "1/1", "--out-json", "out.json"]),
    (0, ["compile", "dumps/good.txt"]),
    (0, ["compile", "dumps/good.txt", "--mesh", "data=1"]),
    (0, ["convert", "f32[4,8]{1,0:T(2,4)}", "--to", "cute"]),
    (0, ["crosscheck", "f32[3,5]{1,0:T(2,2)}", "--random", "3", "--source", "numpy"]),
    (0, ["explain"]),
    (0, ["explain", "padding"]),
    (1, ["gate", "old", "new"]),
    (0, ["gate", "old", "old"]),
    (2, ["gate", "old", "broken"]),
    (1, ["gate", "dumps/good.txt", "dumps/wrong.txt"]),
    (0, ["gate", "--lock", "dumps/good.txt"]),
    (0, ["gate"]),
    (0, ["hlo", "dumps/good.txt"]),
    (1, ["hlo", "dumps"]),
    (2, ["hlo", "dumps/cut.txt"]),
    (0, ["init"]),
    (0, ["init", "--force"]),
    (1, ["kernels", "specs/kernel.yaml"]),
    (0, ["kernels", "specs/kernel.yaml", "--spec"]),
    (0, ["why", "f32[1000,5]"]),
    (1, ["why", "  1. Size: 31.00G\n     Shape: s32[8388608,8,4]{2,1,0:T(8,128)}"]),
    (3, ["why", "Ran out of memory in memory space hbm."]),
    (0, ["locate", "f32[3,5]{1,0:T(2,2)}", "2,3"]),
    (0, ["locate", "S[4:1@m] + R[2:4@m]", "2"]),
    (0, ["locate", "f32[3,5]{1,0:T(2,2)}", "--at", "offset=14"]),
    (0, ["locate", "S[4:1@m] + R[2:4@m]", "--at", "m=2"]),
    (0, ["locate", "f32[N,M]{1,0:T(8,128)}", "--at", "offset"]),
    (0, ["scan", "."]),
    (0, ["schema"]),
    (0, ["schema", "--of", "gate"]),
    (0, ["search", "arrays.yaml"]),
    (0, ["search", "tilings.yaml"]),
    (0, ["search", "tilings.yaml", "--pareto"]),
    (0, ["search", "tilings.yaml", "--prune", "rows.json"]),
    (1, ["search", f"{SEARCHES}/infeasible.yaml"]),
    (0, ["search", f"{SEARCHES}/sharding.yaml"]),
    (0, ["search", f"{SEARCHES}/padding.yaml"]),
    (0, ["serve"]),
    (0, ["show", "f32[3,5]{1,0:T(2,2)}", "--formula"]),
    (0, ["show", "f32[N,5]{1,0:T(2,2)}"]),
    (0, ["show", "f32[3,5]{1,0}", "--svg", "a.svg"]),
]
BAD: list[list[str]] = [
    ["ask", "injectve", "f32[3]{0}"],
    ["ask", "injective", "f32[3]{0:T(0)}"],
    ["check", "nowhere"],
    ["ci", "nowhere"],
    ["ci", "specs", "--shard", "3/2"],
    ["compile", "dumps/cut.txt"],
    ["compile", "dumps/good.txt", "--mesh", "data"],
    ["convert", "f32[3]{0}", "--to", "klingon"],
    ["crosscheck"],
    ["crosscheck", "f32[3]{0}", "--source", "abacus"],
    ["explain", "nothing"],
    ["gate", "old"],
    ["gate", "old", "nowhere"],
    ["gate", "old", "nowhere", "--format", "json"],
    ["gate", "old", "nowhere", "--format=json"],
    ["hlo", "notes"],
    ["hlo", "nowhere"],
    ["init", "nowhere"],
    ["kernels", "no_such_module:f"],
    ["same", "no_such_module:f", "--reference", "no_such_module:g"],
    ["why", "hello"],
    ["why", "f32[3,5]", "--target", "v9"],
    ["locate", "f32[3]{0}", "7"],
    ["locate", "f32[3]{0}", "--at", "ofset=7"],
    ["scan", "nowhere"],
    ["schema", "--of", "nothing"],
    ["search", "specs/a.yaml"],
    ["serve", "--http", "0.0.0.0:8765"],
    ["show", "f32["],
    ["nothing"],
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Spec files, dumps and search files, good and broken."""
    at = tmp_path_factory.mktemp("json")
    texts = {
        "specs/a.yaml": SPEC,
        "specs/broken.yaml": BROKEN,
        "specs/kernel.yaml": KERNEL,
        "old/a.yaml": SPEC,
        "new/a.yaml": SPEC.replace("f32[3,5]{1,0:T(2,2)}", "f32[3,5]{0,1:T(2,2)}"),
        "broken/a.yaml": BROKEN,
        "dumps/good.txt": SMALL,
        "dumps/wrong.txt": WRONG_DUMP,
        "dumps/cut.txt": SMALL[:-30],
        "arrays.yaml": ARRAYS,
        "tilings.yaml": TILINGS,
        "rows.json": '[{"bm": 8}, {"bm": 7}]',
    }
    (at / "notes").mkdir()
    for name, text in texts.items():
        (at / name).parent.mkdir(parents=True, exist_ok=True)
        (at / name).write_text(text)
    return at


@pytest.fixture(scope="module")
def answers(folder: Path) -> dict[tuple[str, ...], tuple[int, str]]:
    """What every command line prints with --json, and its exit code."""
    asked = [[*line, "--json"] for _, line in GOOD]
    asked += [line if any("--format" in word for word in line) else [*line, "--json"] for line in BAD]
    found, _ = commands(folder, *asked, seconds=120)
    lines = [*(line for _, line in GOOD), *BAD]
    return {tuple(line): (answer.code, answer.out) for line, answer in zip(lines, found, strict=True)}


def test_every_command_is_asked() -> None:
    """Each in good and in bad input, and each has a model."""
    # what `same` answers needs JAX: tests/values/test_same.py
    assert {line[0] for _, line in GOOD} == set(COMMANDS) - {"same"}
    assert {line[0] for line in BAD} - {"nothing"} == set(COMMANDS)
    assert set(DOCUMENTS) == set(COMMANDS)
    for command in COMMANDS:
        adapter(command)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_offers_json(command: str) -> None:
    options = {name for option in cli.cli.get_command(None, command).params for name in option.opts}
    assert "--json" in options


@pytest.mark.parametrize(("code", "line"), GOOD, ids=[" ".join(line) for _, line in GOOD])
def test_answers(answers: Any, code: int, line: list[str]) -> None:
    """One object with the version and the exit code of the process, as the command's model says."""
    exit_code, out = answers[tuple(line)]
    document = json.loads(out)
    assert list(document)[:2] == ["version", "exit_code"]
    assert (document["version"], document["exit_code"], exit_code) == (2, code, code), out
    assert "error" not in document
    adapter(line[0]).validate_json(out)
    jsonschema.Draft202012Validator(json_schema(line[0])).validate(document)


@pytest.mark.parametrize("line", BAD, ids=[" ".join(line) for line in BAD])
def test_failures(answers: Any, line: list[str]) -> None:
    """The same envelope, with what is wrong."""
    exit_code, out = answers[tuple(line)]
    document = json.loads(out)
    assert list(document) == ["version", "exit_code", "error"]
    assert (document["version"], document["exit_code"], exit_code) == (2, 2, 2)
    assert document["error"]["message"]
    command = line[0] if line[0] in COMMANDS else "ask"
    adapter(command).validate_json(out)
    jsonschema.Draft202012Validator(json_schema(command)).validate(document)


@pytest.mark.parametrize("breakage", [{"version": 1}, {"verdict": "maybe"}, {"line": "3"}, {"exit_code": 7}])
def test_the_schema_can_fail(answers: Any, breakage: dict[str, Any]) -> None:
    """What is wrong with an answer is found by the model and by the published schema."""
    document = json.loads(answers["ask", "injective", "f32[N,M]{1,0}"][1]) | breakage
    with pytest.raises(ValueError, match="validation error"):
        adapter("ask").validate_json(json.dumps(document))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(json_schema("ask")).validate(document)


DRIFTS: list[tuple[str, tuple[str | int, ...]]] = [
    ("ask injective f32[3,5] strides (4,1)", ()),
    ("check specs", ("results", 0)),
    ("check specs", ("never_asked", 0)),
    ("compile dumps/good.txt", ("records", 0)),
    ("compile dumps/good.txt", ("records", 0, "parameters", 0)),
    ("gate old new", ("findings", 0)),
    ("hlo dumps/good.txt", ("results", 0, "bytes", "total")),
    ("hlo dumps/good.txt", ("results", 0, "programs", 0, "parameters", 0)),
    ("kernels specs/kernel.yaml", ("kernels", 0, "operands", 0)),
    ("kernels specs/kernel.yaml", ("kernels", 0, "findings", 0)),
    ("locate f32[3,5]{1,0:T(2,2)} 2,3", ("steps", 0)),
    ("search arrays.yaml", ("layouts", "each", "x", "best", 0)),
    ("search tilings.yaml", ("best", 0, "shapes", 0)),
    ("search tilings.yaml --prune rows.json", ("dropped", 0)),
    ("show f32[3,5]{1,0:T(2,2)} --formula", ()),
    ("why f32[1000,5]", ("messages", 0, "arrays", 0)),
]
"""Objects within answers: the command line, and the way to the object."""


@pytest.mark.parametrize(("line", "way"), DRIFTS)
@pytest.mark.parametrize("drift", ["more", "renamed", "another type"])
def test_an_answer_that_its_document_does_not_describe_is_found(answers: Any, line: str, way: Any, drift: str) -> None:
    """A key that stands in no document, one with another name, one of another type: of every object, however deep."""
    (out,) = {answer for words, (_, answer) in answers.items() if " ".join(words) == line}
    document = json.loads(out)
    found = document
    for step in way:
        found = found[step]
    last = [*found][-1]
    if drift == "more":
        found["planted"] = 1
    elif drift == "renamed":
        found["planted"] = found.pop(last)
    else:
        found[last] = {"planted": {"of": "another type"}}
    command, *_ = line.split()
    adapter(command).validate_json(out)
    with pytest.raises(ValueError, match="validation error"):
        adapter(command).validate_json(json.dumps(document))


SHORT_KERNEL = KERNEL.replace("grid: [3]", "grid: [4]")
PAST_KERNEL = KERNEL.replace("grid: [3]", "grid: [5]")
PAST = "f32[256] blockspec (128,) (i) -> (i,) grid (3,)"
FIXES: list[tuple[list[str], str]] = [
    (["ask", "blocks_in_bounds", PAST], "use pl.cdiv(256, 128)"),
    (["check", "grown.yaml"], "the array 4 blocks: use pl.cdiv(32, 8)"),
    (["kernels", "grown.yaml"], "the array 4 blocks: use pl.cdiv(32, 8)"),
    (["gate", "right", "wrong"], "the array 4 blocks: use pl.cdiv(32, 8)"),
    (["why", "f32[1000,5]"], "reshaped to f32[5000]"),
]
"""Command lines whose answer has a fix, and what it says."""


def fixes(found: Any) -> list[str]:
    """What stands under `fix` and `fixes` anywhere in a document."""
    if isinstance(found, list):
        return [fix for part in found for fix in fixes(part)]
    if not isinstance(found, dict):
        return []
    own = [found.get("fix", ""), *found.get("fixes", ())]
    return [fix for fix in own if isinstance(fix, str) and fix] + fixes(list(found.values()))


def reasons(found: Any) -> list[str]:
    """Every reason in a document."""
    parts = found if isinstance(found, list) else list(found.values()) if isinstance(found, dict) else []
    own = [found["reason"]] if isinstance(found, dict) and isinstance(found.get("reason"), str) else []
    return own + [reason for part in parts for reason in reasons(part)]


def test_every_fix_that_is_shown_is_in_the_json(tmp_path: Path) -> None:
    """Under its own key, word by word, and not inside of the reason; each command that has one says it as text, too."""
    grown = PAST_KERNEL.replace("outputs_covered", "blocks_in_bounds")
    right = SHORT_KERNEL.replace("outputs_covered", "blocks_in_bounds")
    for name, text in (("grown.yaml", grown), ("right/a.yaml", right), ("wrong/a.yaml", grown)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    lines = [line for line, _ in FIXES]
    texts, _ = commands(tmp_path, *lines, seconds=120)
    documents, _ = commands(tmp_path, *([*line, "--json"] for line in lines), seconds=120)
    for (line, words), text, answer in zip(FIXES, texts, documents, strict=True):
        document = json.loads(answer.out)
        shown = [row.strip().removeprefix("fix").strip() for row in text.out.splitlines() if row.startswith("  fix ")]
        assert shown, line
        assert {fix for fix in shown if fix not in fixes(document)} == set(), line
        assert any(words in fix for fix in fixes(document)), line
        assert not any(fix in reason for fix in fixes(document) for reason in reasons(document)), line


def test_every_key_of_a_finding_is_published() -> None:
    """A finding with everything in it has the keys of the model and no other."""
    why = Template("tests.why", "why")()
    whole = Finding("injective", "a", why, "a.yaml", "a.yaml", 1, 2, Verdict.REFUTED, {"first": (0,)})
    words = {field.name: "x" for field in fields(Finding) if getattr(whole, field.name) == ""}
    many = {field.name: ("x",) for field in fields(Finding) if getattr(whole, field.name) == ()}
    many["follows"] = (whole,)
    assert set(as_dict(replace(whole, **words, **many, bad_input=True))) == set(FindingEntry.__annotations__)


def test_an_error_has_the_id_of_its_message() -> None:
    """Of a text that is no layout, and none of one that no template says."""
    said = Template("xla.word", "{word!r} is no word")("a b")
    assert error_entry(LayoutError(said, text="a b"), "input", "")["id"] == "xla.word"
    assert error_entry(Undecided(said), "unknown", message_of(Undecided(said)))["id"] == "xla.word"
    assert "id" not in error_entry(LayoutError("a b is no word"), "input", "")
