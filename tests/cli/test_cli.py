"""The command line: exit codes, what goes to stdout and stderr, JSON, and no traceback ever."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click
import pytest
from click.testing import CliRunner

import layoutproof
from layoutproof.cli import main as cli
from layoutproof.cli.arguments import args_options
from layoutproof.core.files import write_whole
from layoutproof.registry.catalogue import options_of, properties
from layoutproof.registry.read import languages
from layoutproof.specs.spec_model import kinds
from tests.said import stretch, words

pytestmark = pytest.mark.slow

SCORES = "f32[3,5]{1,0:T(2,2)}"
OVERLAP = "f32[3,5] strides (4,1)"

Run = tuple[int, str, str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """One command line: its exit code, stdout and stderr."""

    def run_one(*arguments: str) -> Run:
        code = cli.run(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return run_one


def spec(folder: Path, *checks: str) -> str:
    """A spec file with these checks."""
    path = folder / "a.yaml"
    path.write_text("source: here\nchecks:\n" + "".join(f"  - {check}\n" for check in checks))
    return str(path)


def test_sizes_of_a_counterexample_are_named(run: Any, tmp_path: Path) -> None:
    """In every output, and in the order of the text nowhere: the claim's own order is M first here."""
    pair = ("same_map", "f32[M,N] strides (N,1)", "f32[M,N] strides (1,M)")
    named = {"M": 2, "N": 2}
    assert layoutproof.ask(*pair).counterexample == {"sizes": named, "element": (0, 1)}
    code, out, _ = run("ask", *pair)
    assert (code, "sizes=(M = 2, N = 2) element=(0, 1)" in out) == (1, True)
    assert json.loads(run("ask", *pair, "--json")[1])["counterexample"] == {"sizes": named, "element": [0, 1]}
    claim = f"same_map: ['{pair[1]}', '{pair[2]}']\n    expect: refuted\n    counterexample: "
    right = spec(tmp_path, claim + "{sizes: {N: 2, M: 2}, element: [0, 1]}")
    assert run("check", right)[0] == 0
    (checked,) = json.loads(run("check", right, "--json")[1])["results"]
    assert checked["counterexample"] == {"sizes": named, "element": [0, 1]}
    wrong = spec(tmp_path, claim + "{sizes: {N: 2, M: 3}, element: [0, 1]}")
    code, out, _ = run("check", wrong)
    assert (code, "sizes=(M = 2, N = 2) element=(0, 1), not sizes=(N = 2, M = 3) element=(0, 1)" in out) == (1, True)


@pytest.mark.parametrize(
    ("checks", "code", "last"),
    [
        ([f"injective: {SCORES}"], 0, "1 claim as stated: 1 proved"),
        ([f"injective: {OVERLAP}\n    expect: refuted"], 0, "1 claim as stated: 1 counterexample as expected"),
        ([f"injective: {OVERLAP}"], 1, "0 of 1 claim as stated; 1 NOT as stated"),
        ([f"injective: {SCORES}", "injectve: x"], 2, "1 claim as stated: 1 proved; 1 NOT readable"),
        ([f"covers: {OVERLAP}\n    engine: bits"], 3, "0 of 1 claim as stated; 1 UNKNOWN"),
    ],
)
def test_check_exit_codes(checks: list[str], code: int, last: str, run: Any, tmp_path: Path) -> None:
    """0 as expected, 1 refuted, 2 bad input, 3 unknown."""
    found, out, err = run("check", spec(tmp_path, *checks))
    counted, _, seconds = out.splitlines()[-1].rpartition("; ")
    assert (found, counted, err) == (code, last, "")
    assert re.fullmatch(r"\d+\.\d s", seconds)


def test_check_without_anything_to_check(run: Any, tmp_path: Path) -> None:
    """No file is bad input, on stderr; nothing is printed that looks like success."""
    assert run("check", str(tmp_path)) == (2, "", words("specs.no_spec_file", folder=tmp_path) + "\n")
    code, out, _ = run("check", str(tmp_path), "--json")
    assert code == 2
    assert json.loads(out) == {
        "version": 2,
        "exit_code": 2,
        "error": {
            "kind": "input",
            "message": words("specs.no_spec_file", folder=tmp_path),
            "id": "specs.no_spec_file",
        },
    }


def test_check_json(run: Any, tmp_path: Path) -> None:
    """One object, the exit code in it the process's own."""
    code, out, err = run("check", spec(tmp_path, f"injective: {OVERLAP}"), "--json")
    found = json.loads(out)
    assert (code, err) == (1, "")
    assert found["exit_code"] == 1
    assert found["results"][0]["verdict"] == "refuted"


@pytest.mark.parametrize(
    ("arguments", "code", "first"),
    [
        (["injective", SCORES], 0, f"proved   injective  {SCORES}"),
        (["injective", OVERLAP], 1, f"refuted  injective  {OVERLAP}"),
        (["injective", '{"strided": "f32[3,5] strides (4,1)"}'], 1, f"refuted  injective  {OVERLAP}"),
        (["covers", OVERLAP, "--engine", "bits"], 3, f"unknown  covers  {OVERLAP}"),
        (["injective", SCORES, "--confirm"], 0, f"proved   injective  {SCORES}"),
        (["padding", SCORES, "--at-most", "40%"], 0, f"proved   padding  {SCORES}"),
        (["padding", SCORES, "--at-most", "37%"], 1, f"refuted  padding  {SCORES}"),
        (["bitcast", "f32[2,3]{1,0}", "f32[3,2]{0,1}", "--permutation", "1,0"], 0, "proved   bitcast  "),
        (["bijective", "f32[1000,5]", "--target", "v5e"], 0, "proved   bijective  f32[1000,5]{0,1:T(8,128)}"),
        (["bijective", "f32[1000,5]"], 0, "proved   bijective  f32[1000,5]{1,0}"),
        (
            ["same_map", "f32[1000,5]", "f32[1000,5]{0,1:T(8,128)}", "--target", "v5e"],
            0,
            "proved   same_map  f32[1000,5]{0,1:T(8,128)} , f32[1000,5]{0,1:T(8,128)}",
        ),
        (
            ["padding", "f32[N,128]{1,0:T(8,128)}", "--where", "N % 8 == 0", "--at-most", "0%", "--effort", "2"],
            0,
            "proved   padding  f32[N,128]{1,0:T(8,128)} where N % 8 == 0",
        ),
    ],
)
def test_ask(arguments: list[str], code: int, first: str, run: Any) -> None:
    """The verdict is the exit code; the first line is the verdict and what was asked."""
    found, out, err = run("ask", *arguments)
    assert (found, err) == (code, "")
    assert out.splitlines()[0].startswith(first)


@pytest.mark.parametrize(
    ("question", "where", "condition"),
    [
        # N == 8 alone would do, which the user rules out
        (["covers", "f32[N + 1,N]{0,1:T(1,*,8)L(8)}"], "N >= 40 and N % 8 == 3", None),
        (["injective", "f32[N,M] strides (8,1)"], "M >= 300", "N == 1"),
        (["injective", "f32[N,M] strides (8,1)"], "N >= 300 and M >= 300", None),
        (["injective", "(N,9):(1,8)"], "N >= 400", None),
        (["covers", "f32[N,M,K,A,B]{4,3,2,1,0:T(8,128)}"], "A < 7", None),
        (["covers", "f32[N]{0:T(8)}"], "N % 3 == 1 and N > 100", "N % 8 == 0"),
        # no N that divides 0 counts, and none is an error
        (["injective", "f32[N,M] strides (8,1)"], "N % (M - 1) == 0", "N == 1"),
        (["covers", "f32[N,M]{1,0:T(8,128)}"], "8 // (N - 1) >= 1", "N == 8 and M % 128 == 0"),
    ],
)
def test_the_condition_that_is_suggested_is_one_under_that_of_the_user(
    question: list[str], where: str, condition: str | None, run: Any
) -> None:
    """It holds for some sizes that the user allows, and the property is proved there; or none is suggested."""
    code, out, err = run("ask", *question, "--where", where, "--json")
    found = json.loads(out)
    assert (code, found["verdict"], err) == (1, "refuted", "")
    assert found["figures"].get("holds_when") == condition
    if condition is not None:
        code, out, _ = run("ask", *question, "--where", f"({where}) and {condition}")
        assert (code, out.split()[0]) == (0, "proved")


def test_ask_shows_the_counterexample_and_where_to_read_on(run: Any) -> None:
    """A refutation is complete on its own."""
    assert run("ask", "injective", OVERLAP)[1] == (
        f"refuted  injective  {OVERLAP}\n"
        "  because  (0, 4) and (1, 0) are both stored at offset 4\n"
        "  at       first=(0, 4) second=(1, 0)\n"
        "  by       digits\n"
        "  explain  layoutproof explain injective\n"
    )


def test_ask_json(run: Any) -> None:
    """The whole answer as one object."""
    code, out, _ = run("ask", "injective", OVERLAP, "--json")
    found = json.loads(out)
    assert code == 1
    assert found["counterexample"] == {"first": [0, 4], "second": [1, 0]}
    assert (found["question"], found["subject"], found["verdict"]) == ("injective", OVERLAP, "refuted")
    assert json.loads(run("ask", "padding", SCORES, "--json")[1])["figures"]["bytes"] == 96


BAD = {
    ("ask", "injectve", SCORES): words(
        "core.unknown_name",
        what="property",
        word="injectve",
        rest=words("core.did_you_mean", name="injective") + " Known: ",
    ),
    ("ask", "injective", "f32[3,5]{1}"): "minor_to_major {1} has 1 entry but f32[3,5] has 2 dimensions",
    ("ask", "injective", SCORES, SCORES): "injective is about one layout; got 2",
    ("ask", "same_map", SCORES): "same_map is about 2 layouts; got 1",
    ("ask", "injective", SCORES, "--at-most", "2%"): "injective does not know the option 'at_most'",
    ("ask", "injective", SCORES, "--engine", "z3"): "unknown engine 'z3'",
    ("ask", "injective", SCORES, "--target", "v5e"): stretch("cli.target_of_bare_shape"),
    ("ask", "injective", "f32[3]", "--target", "v5x"): "unknown TPU generation 'v5x'",
    ("ask", "bitcast", SCORES, SCORES, "--permutation", "1;0"): stretch(
        "cli.index_form", what="--permutation", found="1;0"
    ),
    ("ask", "injective", "{a: "): "not YAML",
    ("ask", "injective", "{a: 1, b: 2}"): "a layout is a text or a mapping with one key",
    ("locate", SCORES, "2,x"): words("cli.index_form", what="an index", found="x"),
    ("locate", SCORES, "2,7"): stretch("questions.index_outside", index=7, dimension=1),
    ("locate", SCORES, "2"): "1 ",
    ("locate", "f32[N]{0}", "2"): "size N",
    ("locate", SCORES, "--at", "lane 5"): "unknown coordinate 'lane'; known: offset, p0",
    ("locate", SCORES, "--at", "lane=5 reg"): words("cli.place_form", found="reg"),
    ("locate", SCORES, "--at", "offset=1 offset=2"): "offset is there twice",
    ("locate", SCORES, "--at", "ofset=1"): words(
        "core.unknown_name", what="coordinate", word="ofset", rest=words("core.did_you_mean", name="offset")
    ),
    ("locate", "f32[N]{0}", "--at", "offset=1"): "size N",
    ("explain", "injectve"): words(
        "core.unknown_name",
        what="page",
        word="injectve",
        rest=words("core.did_you_mean", name="injective") + " Known: ",
    ),
    ("explain", "zzz"): "unknown page 'zzz'; known: ",
    ("show", "f32[8]", "--target", "v7x"): "did you mean '7x'? Known: v2, ",
    ("show", "f32[8]", "--target", "v5litepod-8"): "did you mean 'v5e'? Known: v2, ",
    ("kernels", "json:dumps", "--target", "v7x"): words(
        "core.unknown_name", what="target", word="v7x", rest=words("core.did_you_mean", name="7x")
    ),
    ("ask", "injective", "float32[8]"): words(
        "core.element_type", name="float32", near=words("core.did_you_mean", name="f32")
    ),
    ("ask", "injective", SCORES, "--engine", "digit"): words(
        "core.unknown_name", what="engine", word="digit", rest=words("core.did_you_mean", name="digits")
    ),
    ("show", "f32[3"): "f32[3",
    ("show", SCORES, "--svg", "/no/such/folder/a.svg"): "there is no folder",
    ("check", "/no/such/folder"): "no such file or folder",
}


@pytest.mark.parametrize("arguments", BAD)
def test_bad_input_exits_2_with_a_message(arguments: tuple[str, ...], run: Any) -> None:
    """On stderr as text, or on stdout as JSON; nothing else anywhere, and no traceback."""
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert BAD[arguments] in err
    assert "Traceback" not in err
    assert "bug in layoutproof" not in err
    code, out, err = run(*arguments, "--json")
    assert (code, err) == (2, "")
    error = json.loads(out)["error"]
    assert error["kind"] == "input"
    assert BAD[arguments] in error["message"] + error.get("text", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ("nosuch",),
        ("ask",),
        ("ask", "injective"),
        ("check", "--jobs", "-1"),
        ("locate", "--nosuch"),
        ("locate", SCORES),
    ],
)
def test_usage_errors_exit_2(arguments: tuple[str, ...], run: Any) -> None:
    """As bad input, and JSON when JSON is asked for."""
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "Usage: layoutproof" in err
    code, out, err = run(*arguments, "--json")
    assert (code, err) == (2, "")
    assert json.loads(out)["error"]["kind"] == "usage"


def test_our_own_failures_say_so(monkeypatch: pytest.MonkeyPatch, run: Any) -> None:
    """An exception nobody foresaw is a message that asks for a report, never a traceback and never exit 0 or 1."""

    def broken(*arguments: object) -> click.Command:
        raise ZeroDivisionError(arguments[-1])

    monkeypatch.setattr(cli.Commands, "get_command", broken)
    assert run("check") == (2, "", "this is a bug in layoutproof, please report it: ZeroDivisionError: check\n")
    assert json.loads(run("check", "--json")[1])["error"]["kind"] == "internal"


def test_locate_shows_each_step(run: Any) -> None:
    """Permute, each tile level, then offset and byte: the document's worked example."""
    assert run("locate", SCORES, "2,3") == (
        0,
        f"{SCORES}  element (2, 3)\n"
        "  permute {1,0}  (2, 3) in (3, 5)\n"
        "  tile (2,2)     (1, 1, 0, 1) in (2, 3, 2, 2)\n"
        "  offset 17  byte 68\n",
        "",
    )


@pytest.mark.parametrize(
    ("arguments", "places"),
    [
        ((SCORES, "(2, 3)"), [{"offset": 17, "byte": 68}]),
        (("bf16[300,5]{1,0:T(8,128)(2,1)}", "201,3"), [{"offset": 25607, "byte": 51214}]),
        (("s4[64]{0:E(4)}", "3"), [{"offset": 3, "byte": 1, "bit": 4}]),
        (("f32[8]{0:M(8)}", "3"), [{"offset": 3, "byte": 20}]),
        (("f32[8]{0:S(5)}", "3"), [{"offset": 3, "byte": 12, "memory_space": 5}]),
        (("f32[1000,5]", "7,3", "--target", "v5e"), [{"offset": 391, "byte": 1564}]),
        ((OVERLAP, "2,3"), [{"offset": 11, "byte": 44}]),
        (("f32[]", ""), [{"offset": 0, "byte": 0}]),
        (("(i < 8, j < 8) -> (j, i + 1)", "2,3"), [{"p0": 3, "p1": 3}]),
    ],
)
def test_locate_json(arguments: tuple[str, ...], places: list[dict[str, int]], run: Any) -> None:
    """Places of one element, per replica: offset, byte, the bit inside it, the memory space; or coordinates."""
    code, out, err = run("locate", *arguments, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["places"] == places


def test_locate_at_a_place(run: Any) -> None:
    """What is at a place: an element, padding of a dimension, several in several replicas; unknown exits 3."""
    assert run("locate", SCORES, "--at", "byte=68") == (
        0,
        f"{SCORES}  at byte=68\n  element\n  (2, 3)  at offset 17\n",
        "",
    )
    padding = "padding of dimension i: dimension i of 3 is rounded up to 4"
    assert run("locate", SCORES, "--at", "offset=14")[1] == f"{SCORES}  at offset=14\n  {padding}\n"
    code, out, _ = run("locate", "S[(2,4):(4@lane,1@reg)] + R[2:1@warp] on (2,4)", "--at", "lane=4, reg=2", "--json")
    found = json.loads(out)
    assert (code, found["what"], found["count"], found["place_count"]) == (0, "element", 1, 2)
    assert [held["replica"] for held in found["elements"]] == [[0], [1]]
    assert found["elements"][1] == {"index": [1, 2], "replica": [1], "place": {"lane": 4, "reg": 2, "warp": 1}}
    assert run("locate", "f32[N,M]{1,0:T(8,128)}", "--at", "p0 p1 p2 p3")[1].splitlines()[1:] == [
        "  i = p0 * 8 + p2",
        "  j = p1 * 128 + p3",
        "  an element is there where i < N and j < M",
        "  proved by digits",
    ]
    code, out, err = run("locate", "f32[3,5] strides (4,1)", "--at", "offset")
    assert (code, out) == (3, "")
    assert stretch("questions.formula_digits", dimension="i") in err
    code, out, err = run("locate", "(i < 100000000) -> (i * 7 % 10,)", "--at", "p0=3")
    assert (code, out) == (3, "")
    assert "at least 16 elements" in err


def test_show(run: Any, tmp_path: Path) -> None:
    """The picture, the sizes that disagree, the formula; a file when asked."""
    file = tmp_path / "a.svg"
    code, out, err = run("show", SCORES, "--formula", "--svg", str(file))
    assert (code, err) == (0, "")
    for line in (
        "  2   12 13 │ 16 17 │ 20  .",
        "size      84 bytes by ShapeUtil::ArrayDataSize (up to the last element)",
        f"written   {file}",
    ):
        assert line in out.splitlines()
    assert "formula   " in out
    assert "          proved equal to the map, by digits" in out.splitlines()
    assert ElementTree.parse(file).getroot().tag.endswith("svg")
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]


def test_show_of_sizes_not_known_yet(run: Any) -> None:
    """No picture, but what padding costs in closed form; sizes that agree are not shown."""
    code, out, err = run("show", "f32[N,5]{1,0:T(8,128)}")
    assert (code, err) == (0, "")
    assert "padding   dimension 0: N becomes 8*ceil(N/8)" in out.splitlines()
    assert "size" not in run("show", "f32[8,128]{1,0}")[1]


def test_show_json(run: Any) -> None:
    """Figures, sizes and formula as one object; a map without a memory has no figures."""
    found = json.loads(run("show", SCORES, "--formula", "--json")[1])
    assert found["figures"]["bytes"] == 96
    assert found["sizes"]["ShapeUtil::ArrayDataSize"] == 84
    assert "formula" in found
    assert found["formula_is"] == "proved equal to the map, by digits"
    assert "latex" not in found
    latex = json.loads(run("show", "(i < 8) -> (i // 2)", "--latex", "--json")[1])["latex"]
    assert latex == r"\left(i\right) \mapsto \left(\left\lfloor{\frac{i}{2}}\right\rfloor\right)"
    assert json.loads(run("show", "(i < 4, j < 4) -> (j, i)", "--json")[1])["figures"] == {}


def test_explain_has_a_page_for_every_property_and_language(run: Any) -> None:
    """The list names all, and each name has a page that starts with the line of the list."""
    code, listed, _ = run("explain")
    assert code == 0
    names = [*properties(), *languages()]
    assert names
    for name in names:
        code, page, err = run("explain", name)
        assert (code, err) == (0, "")
        title, _, first, *_ = page.splitlines()
        assert title == name
        assert f"  {name} " in listed
        assert first in listed
        assert json.loads(run("explain", name, "--json")[1])["name"] == name
    assert set(json.loads(run("explain", "--json")[1])["pages"]["properties"]) == set(properties())


def test_explain_knows_other_names_of_targets(run: Any) -> None:
    """A GPU by its name has the lines that are about it; of a nickname the target is named that it may mean."""
    code, page, err = run("explain", "h100")
    assert (code, err) == (0, "")
    assert "wgmma" in page
    assert "tcgen05" not in page
    assert "tcgen05" in run("explain", "B200")[1]
    assert "TPU v5e: 1 core" in run("explain", "TPU v5 lite")[1]
    code, _, err = run("explain", "ironwood")
    assert code == 2
    assert "did you mean '7x'?" in err


def test_explain_shows_every_page_of_a_name(run: Any) -> None:
    """`peak_memory` is a claim about programs and a class of the gate: whoever meets either one finds it."""
    pages = json.loads(run("explain", "--json")[1])["pages"]
    twice = {n: [kind for kind, found in pages.items() if n in found] for found in pages.values() for n in found}
    for name in ("peak_memory", "refuted", "kernel"):
        shown = run("explain", name)[1]
        told = json.loads(run("explain", name, "--json")[1])
        assert [told["kind"], *(each["kind"] for each in told["also"])] == twice[name]
        assert len(twice[name]) == 2
        assert all(pages[kind][name] in shown for kind in twice[name])
    assert json.loads(run("explain", "injective", "--json")[1])["also"] == []


def test_schema_is_json(run: Any) -> None:
    """With and without --json, and it knows every kind of check."""
    code, out, _ = run("schema")
    assert code == 0
    assert set(json.loads(out)["$defs"]) == {*kinds(), "any_layout"}
    assert json.loads(run("schema", "--json")[1])["schema"] == json.loads(out)
    assert run("schema", "spec")[1] == out
    code, out, _ = run("schema", "search")
    assert (code, json.loads(out)["title"]) == (0, "layoutproof search")
    assert run("schema", "lock")[0] == 2


def test_help_and_version(run: Any) -> None:
    """Help lists every command and says what the exit codes mean; each command has help with --json in it."""
    code, out, _ = run("--help")
    assert code == 0
    assert "0 all proved, 1 something refuted, 2 bad input or usage" in " ".join(out.split())
    commands = cli.cli.list_commands(click.Context(cli.cli))
    assert {"ask", "check", "explain", "locate", "schema", "show"} <= set(commands)
    for name in commands:
        assert f"  {name} " in out
        code, page, err = run(name, "--help")
        assert (code, err) == (0, "")
        assert "--json" in page, name
    assert run("--version") == (0, f"layoutproof, version {layoutproof.__version__}\n", "")


def test_help_is_whole_at_80_columns(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list has its groups and examples; no line of any help is cut or too wide; each example is a valid line."""
    monkeypatch.setenv("COLUMNS", "80")
    commands = cli.cli.list_commands(click.Context(cli.cli))
    pages = {name: run(name, "--help")[1] for name in commands}
    whole = run("--help")[1]
    for name in commands:
        assert f"{name} {cli.page_of(name).summary}" in " ".join(whole.split())
    for group in (*cli.GROUPS, "examples"):
        assert f"\n{group.capitalize()}:\n" in whole
    for name, page in {"": whole, **pages}.items():
        assert [line for line in page.splitlines()[1:] if len(line) > 80 or line.endswith("...")] == [], name
        examples = [line.strip() for line in page.splitlines() if line.startswith(f"    layoutproof {name}".rstrip())]
        examples = examples or [line.strip() for line in page.splitlines() if line.startswith("  layoutproof ")]
        assert examples, name
        for example in examples:
            _, command, *arguments = shlex.split(example.partition(" > ")[0])
            found = cli.cli.get_command(click.Context(cli.cli), command)
            assert found is not None
            assert found.make_context(command, arguments).command is found


def test_a_bare_shape_says_which_layout_it_was_read_as(run: Any) -> None:
    """`f32[3,5]` alone has no tiles; the answer says so, and how to get a TPU's. Who named either is told nothing."""
    said = "f32[3,5]{1,0}, row-major without tiles; --target v5e gives that TPU's layout"
    for command in (("ask", "injective"), ("show",), ("locate",)):
        index = ("2,3",) if command == ("locate",) else ()
        assert said in run(*command, "f32[3,5]", *index)[1]
        for known in (("f32[3,5]{1,0}",), ("f32[3,5]", "--target", "v5e")):
            assert "row-major" not in run(*command, known[0], *index, *known[1:])[1]
    assert said in run("locate", "f32[ 3, 5]", "--at", "offset=3")[1]
    assert "with numbers for its sizes, --target" in run("ask", "injective", "f32[N,5]")[1]
    assert "assumed" not in run("ask", "injective", "S[8]")[1]


def test_who_waits_at_a_terminal_for_a_search_is_told(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line on stderr says what is done; stdout is the same, and no build server sees the line."""
    silent = run("search", "matmul", "256", "256", "256")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    told = run("search", "matmul", "256", "256", "256")
    assert (silent[0], silent[2]) == (0, "")
    assert told == (0, silent[1], "searching matmul\n")


def test_every_option_of_a_property_is_one_of_ask(run: Any) -> None:
    """A property brings its own options: none has to be written down a second time for the command line."""
    page = run("ask", "--help")[1]
    wanted = {option for name in properties() for option in options_of(name)}
    assert {"at_most", "permutation"} <= wanted
    assert [option for option in wanted if f"  --{option.replace('_', '-')} VALUE " not in page] == []


def test_without_a_command_it_is_usage(run: Any) -> None:
    """Nothing asked exits 2 and shows the help."""
    code, out, err = run()
    assert (code, out) == (2, "")
    assert "Usage: layoutproof" in err


def test_files_are_written_whole(tmp_path: Path) -> None:
    """The file is there with what it should hold and readable as any other, and nothing else is left behind."""
    path = tmp_path / "a.svg"
    path.write_bytes(b"old")
    write_whole(path, b"new")
    other = tmp_path / "other"
    other.touch()
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode == other.stat().st_mode
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.svg", "other"]
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_whole(tmp_path / "folder", b"x")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.svg", "folder", "other"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("moved", "An element is stored elsewhere."),
        ("approval_added", "--accept-approvals"),
        ("search", "`tune`"),
        ("7x", "63.9375 MiB of VMEM"),
        ("triton", "GPU"),
        ("refuted", "replayed on plain integers"),
        ("unknown", "Exit code 3"),
        ("smt", "Z3"),
    ],
)
def test_explain_knows_every_kind_of_name(name: str, said: str, run: Any) -> None:
    """Classes of the gate, targets, verdicts, engines and subjects have pages, as properties and languages do."""
    code, out, err = run("explain", name)
    assert (code, err) == (0, "")
    assert out.startswith(f"{name}\n\n")
    assert said in out


def test_a_command_that_is_not_there(run: Any) -> None:
    """The nearest one is named."""
    code, out, err = run("aks", "injective", SCORES)
    assert (code, out) == (2, "")
    assert (
        words(
            "core.unknown_name",
            what="command",
            word="aks",
            rest=words("core.did_you_mean", name="ask") + " Known: ask, check",
        )
        in err
    )


def test_a_warning_that_is_asked_by_its_name_decides(run: Any) -> None:
    """Among all questions of a kernel an info is only said; asked alone, its refutation exits 1."""
    spec = "f32[1000,128] blockspec (256, 128) (i) -> (i, 0) grid (4) out"
    code, out, _ = run("ask", "partial_blocks", spec)
    assert (code, out.split()[0]) == (1, "refuted")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in folders here")
def test_what_is_no_file_is_written_into(tmp_path: Path) -> None:
    """A pipe stays a pipe, by its name and in /dev; who runs as root would else take /dev/stdout from everybody. A link
    to one is replaced as any other link is: a stranger may have put it there.
    """
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_whole(tmp_path / "pipe", b"one")
    assert os.read(reading, 10) == b"one"
    assert (tmp_path / "pipe").is_fifo()
    write_whole(tmp_path / "link", b"two")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "link").read_bytes() == b"two"
    os.close(reading)
    out, into = os.pipe()
    write_whole(Path(f"/dev/fd/{into}"), b"three")
    assert os.read(out, 10) == b"three"
    for each in (out, into):
        os.close(each)


def test_arguments_have_one_name_in_every_command() -> None:
    """Where a command takes a function's arguments, it takes them one by one and all in one text."""
    group = cli.cli
    context = click.Context(group)
    found = {name: group.get_command(context, name) for name in group.list_commands(context)}
    options = {name: {o for p in c.params for o in p.opts} for name, c in found.items() if c is not None}
    taking = {name for name, every in options.items() if "--arg" in every}
    assert taking == {"compile", "crosscheck", "kernels", "same", "search"}
    assert taking == {name for name, every in options.items() if "--args" in every}

    @click.command()
    @args_options("an argument")
    def shown(args: tuple[str, ...]) -> int:
        print(args)
        return 0

    for given in (["--arg", "(1, 2)", "--arg", "f32[8,128]"], ["--args", "(1, 2), f32[8,128]"]):
        assert CliRunner().invoke(shown, given).output == "('(1, 2)', 'f32[8,128]')\n"
