"""Each command and its function are one: the same text, the same document, the same exit code."""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.cli.main import run
from layoutproof.core.finding import Answer, Finding

DUMP = """HloModule m, entry_computation_layout={(f32[8,128]{1,0:T(8,128)})->f32[8,128]{1,0:T(8,128)}}

ENTRY e {
  ROOT p = f32[8,128]{1,0:T(8,128)} parameter(0)
}
"""
KERNEL = {
    "grid": [4],
    "inputs": [{"array": "f32[1000,128]", "block": [256, 128], "index": "(i) -> (i, 0)"}],
    "outputs": [{"array": "f32[1000,128]", "block": [256, 128], "index": "(i) -> (i, 0)"}],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file for each command, which is where we are."""
    specs = {"old": "f32[3,5]{1,0:T(2,2)}", "new": "f32[3,5]{0,1:T(2,2)}"}
    for name, layout in specs.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.yaml").write_text(f"layouts:\n  a: {layout}\nchecks:\n  - injective: a\n")
    (tmp_path / "wrong.yaml").write_text('checks:\n  - injective: {strided: "f32[3,5] strides (4,1)"}\n')
    (tmp_path / "search.yaml").write_text("target: v5e\nlayouts: {x: 'bf16[16,1280,40]'}\n")
    (tmp_path / "dump.hlo").write_text(DUMP)
    kernel = json.dumps({"layouts": {"k": {"kernel": KERNEL}}, "checks": [{"outputs_covered": "k"}]})
    (tmp_path / "kernel.yaml").write_text(kernel)
    monkeypatch.chdir(tmp_path)
    return tmp_path


CASES: dict[str, tuple[list[str], Callable[[], Any]]] = {
    "ask": (["ask", "injective", "f32[3,5] strides (4,1)"], lambda: lp.ask("injective", "f32[3,5] strides (4,1)")),
    "show": (["show", "f32[3,5]{1,0:T(2,2)}"], lambda: lp.show("f32[3,5]{1,0:T(2,2)}", width=79)),
    "check": (["check", "wrong.yaml"], lambda: lp.check("wrong.yaml")),
    "search": (["search", "search.yaml"], lambda: lp.search("search.yaml")),
    "gate": (["gate", "old", "new"], lambda: lp.gate("old", "new")),
    "audit": (["hlo", "dump.hlo"], lambda: lp.audit("dump.hlo")),
    "kernels": (["kernels", "kernel.yaml"], lambda: lp.kernels("kernel.yaml")),
}


@pytest.mark.parametrize("name", CASES)
def test_a_command_prints_what_its_function_answers(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As text, as JSON, and as exit code."""
    monkeypatch.setenv("COLUMNS", "79")
    command, function = CASES[name]
    answer = function()
    assert isinstance(answer, Answer)
    assert run(command) == answer.exit_code
    text = capsys.readouterr().out
    wanted = str(answer).rstrip()
    # `ask` adds where to read on, `check` how long it took
    assert text.startswith(wanted), text
    assert run([*command, "--json"]) == answer.exit_code
    assert json.loads(capsys.readouterr().out) == json.loads(answer.to_json()) == answer.as_dict()
    assert answer.as_dict()["version"] == 2
    assert answer.as_dict()["exit_code"] == answer.exit_code


@pytest.mark.parametrize("name", CASES)
def test_answers_are_three_valued_and_show_themselves(name: str, folder: Path) -> None:
    """`bool` raises, findings are findings, and the HTML is whole."""
    answer = CASES[name][1]()
    with pytest.raises(TypeError, match="three outcomes"):
        bool(answer)
    assert all(isinstance(finding, Finding) for finding in answer.findings)
    ElementTree.fromstring(answer._repr_html_().replace("<br>", "<br/>"))
    drawn = answer._repr_svg_()
    assert (drawn is not None) == (name in ("ask", "show", "check", "gate", "kernels"))


def test_exit_codes(folder: Path) -> None:
    """Each is what was planted."""
    found = {name: function().exit_code for name, (_, function) in CASES.items()}
    assert found == {"ask": 1, "show": 0, "check": 1, "search": 0, "gate": 1, "audit": 0, "kernels": 0}


def test_layouts_show_themselves() -> None:
    """Drawn where they can be; None, so that the text is shown, where they cannot."""
    svg = lp.read_layout("f32[3,5]{1,0:T(2,2)}")._repr_svg_()
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    for text in (
        "f32[3,5] strides (5,1)",
        "(8,64):(64,1)",
        "S[(8,4):(4@lane,1@reg)]",
        "f32[8,8] sharded {devices=[2,2]<=[4]}",
    ):
        html = lp.read_layout(text)._repr_html_()
        assert html is not None
        ElementTree.fromstring(html.replace("<br>", "<br/>"))
    assert lp.read_layout("f32[N,M]")._repr_html_() is None


def test_what_notebooks_show_is_harmless() -> None:
    """Names of somebody else's open no tag."""
    finding = Finding("<script>", "</td><b>", "x & <i>", file="<a>.yaml")
    shown = finding._repr_html_()
    assert shown is not None
    assert "<script>" not in shown
    assert "<i>" not in shown
    ElementTree.fromstring(shown.replace("<br>", "<br/>"))


def test_search_takes_a_mapping_and_a_text(folder: Path) -> None:
    """The same problem, the same answer."""
    text = (folder / "search.yaml").read_text()
    documents = [lp.search(given).as_dict() for given in ("search.yaml", folder / "search.yaml", text)]
    documents.append(lp.search({"target": "v5e", "layouts": {"x": "bf16[16,1280,40]"}}).as_dict())
    assert len({document.pop("subject") for document in documents}) == 2
    assert all(document == documents[0] for document in documents)
    with pytest.raises(lp.LayoutError, match="a problem is a file, a text or a mapping, not 5"):
        lp.search(5)  # type: ignore[arg-type]
    with pytest.raises(lp.LayoutError, match="the problem:1:9: unknown TPU generation"):
        lp.search({"target": "v55", "layouts": {"x": "bf16[16,1280,40]"}})


def test_audit_takes_text_and_what_has_it(folder: Path) -> None:
    """A dump's text, and a compiled program."""
    for given in (DUMP, SimpleNamespace(as_text=lambda: DUMP)):
        answer = lp.audit(given)
        assert answer.exit_code == 0
        assert answer.audits[0].instructions == 1
    with pytest.raises(lp.LayoutError, match="HLO is a dump's path"):
        lp.audit(3)
    with pytest.raises(lp.LayoutError, match="unknown"):
        lp.audit("dump.hlo", target="v55")


def test_gate_against_a_revision(folder: Path) -> None:
    """A git revision, and two states at once are refused."""
    (folder / "specs").mkdir()
    (folder / "specs" / "a.yaml").write_text((folder / "old" / "a.yaml").read_text())
    for command in (
        ["init", "-q"],
        ["add", "specs"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"],
    ):
        subprocess.run(["git", *command], check=True)
    assert lp.gate(against="HEAD").exit_code == 0
    (folder / "specs" / "a.yaml").write_text((folder / "new" / "a.yaml").read_text())
    assert [f.question for f in lp.gate(against="HEAD", paths=["specs"]).findings] == ["moved"]
    for wrong in ({"old": "old"}, {"old": "old", "new": "new", "against": "HEAD"}, {"paths": ["specs"]}, {}):
        with pytest.raises(lp.LayoutError, match=r"give two states|nothing to compare"):
            lp.gate(**wrong)  # type: ignore[arg-type]


@pytest.mark.slow
def test_kernels_of_a_function(folder: Path) -> None:
    """With real arguments; the same call by its place, with texts."""
    jax = pytest.importorskip("jax")
    from jax.experimental.pallas.ops.tpu.matmul import matmul

    square = jax.ShapeDtypeStruct((1000, 1000), "float32")
    found = lp.kernels(matmul, square, square, target="v5e", block_shape=(256, 256), block_k=256)
    assert found.exit_code == 1
    assert "outputs_covered" in {f.question for f in found.findings if f.verdict is lp.Verdict.REFUTED}
    place = "jax.experimental.pallas.ops.tpu.matmul:matmul"
    named = lp.kernels(place, "f32[1000,1000]", "f32[1000,1000]", target="v5e", block_shape=(256, 256), block_k=256)
    assert str(named) == str(found)
    only = lp.kernels(matmul, square, square, properties=["grid_positive"], block_shape=(256, 256), block_k=256)
    assert {f.question for f in only.findings} == {"grid_positive"}
    with pytest.raises(lp.Undecided, match="makes no Pallas call"):
        lp.kernels(lambda x: x, square)
    with pytest.raises(lp.LayoutError, match="unknown property of kernels"):
        lp.kernels(matmul, square, square, properties=["injective"])
    with pytest.raises(lp.LayoutError, match="arguments are for a function"):
        lp.kernels("kernel.yaml", square)
