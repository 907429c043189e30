"""Names that somebody else chose reach no terminal and no build server raw, in any form of output."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from layoutproof.core.finding import Finding, Report
from layoutproof.core.result import Verdict
from layoutproof.core.visible import json_text, visible
from layoutproof.formats import names, render
from tests.cli.in_one_process import Answer, commands
from tests.hlo.dumps import SMALL

pytestmark = pytest.mark.slow

UNSEEN = "\u034f\u115f\u2800\u3164\ufe0f\uffa0\U000e0101"
"""What Python takes for printable and nobody sees: names that differ only there look alike."""
EVIL = "\u3164\x1b]0;t\x07\x9b31m\u202e\u2028\x00\n::error::x\n  ::stop-commands::y\r##[error]z"
"""What a terminal obeys, what turns a line round, what ends one, what is not seen, and what GitHub's runner obeys."""
FILE = EVIL.replace("/", "").replace("\x00", "")
OURS = re.compile(r"::(error|warning|notice)( [^\n]*)?::")
"""How our own annotations start."""


def spec(strides: str) -> str:
    """A spec file whose names are evil; only one layout of two is as it should be."""
    named = {"injective": f"f32[3,5] strides ({strides})", "name": EVIL, "note": EVIL, "where": f"N > 0 # {EVIL}"}
    kernel = {"trace": f"{EVIL}:f"}
    checks = [named, {"injective": EVIL}, {"injective": {"strided": f"f32[3] strides (1) {EVIL}"}}, {EVIL: "x"}]
    return json.dumps({"source": EVIL, "kernels": {EVIL: kernel}, "checks": checks})


def harmless(answer: Answer, form: str = "text") -> None:
    """Nothing that is not seen, and no line that a runner obeys but our own annotations."""
    for text in (answer.out, answer.err):
        odd = {c for c in text if (not c.isprintable() or c in UNSEEN) and c != "\n"}
        assert not odd, text
        for line in text.split("\n"):
            assert form in ("json", "sarif") or "##[" not in line
            if line.lstrip().startswith("::"):
                assert form == "github"
                assert OURS.match(line)
    assert "bug in layoutproof" not in answer.out + answer.err


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two states of an evil spec file, of an evil name, and an evil dump."""
    folder = tmp_path_factory.mktemp("evil")
    for state, strides in (("old", "5,1"), ("new", "4,1")):
        (folder / state).mkdir()
        (folder / state / f"{FILE}.yaml").write_text(spec(strides))
        (folder / state / "layouts.yaml").write_text(
            json.dumps({"source": "s", "layouts": {"a": f"f32[3,5] strides ({strides})", EVIL: "f32[3]{0}"}})
        )
        (folder / state / f"{FILE}.txt").write_text(
            SMALL.replace('"f/transpose"', f'"{EVIL}{state}"'.replace("\n", "\x0b")), newline=""
        )
    return folder


@pytest.mark.parametrize("form", names())
def test_each_form_of_a_report_is_harmless(place: Path, form: str) -> None:
    """`check` and `gate` on evil names, as a process: each form shows all findings, and nothing raw.

    GitHub shows ten annotations of a kind: of all files, names shortened; of one file, each whole.
    """
    gate_one = ["gate", *(f"{state}/{FILE}.yaml" for state in ("old", "new")), "--format", form]
    asked = (["check", "new", "--format", form], ["gate", "old", "new", "--format", form], gate_one)
    checked, gated, one = commands(place, *asked)[0]
    for answer, code in ((checked, 2), (gated, 1), (one, 1)):
        assert answer.code == code
        harmless(answer, form)
        shown = answer.out.replace("\\\\", "\\").replace("\\]", "]")
        if form == "json":
            assert EVIL in texts(json.loads(answer.out))
        elif form == "github" and answer is gated:
            assert shown.count(r"\x1b]0;t\x07\x9b31m\u202e \x00 :: ... nds::y #\x23[error]z") == 5
            assert "::notice::6 more are in the other forms of this report, e.g. markdown\n" in shown
        else:
            assert r"\x1b]0;t\x07\x9b31m\u202e\u2028\x00" in shown
        if form == "junit":
            ElementTree.fromstring(answer.out)


def texts(data: object) -> str:
    """All texts in some plain data, one after the other."""
    if isinstance(data, dict):
        return "".join(map(texts, [*data, *data.values()]))
    return "".join(map(texts, data)) if isinstance(data, list) else str(data)


def test_every_other_output_is_harmless(place: Path, tmp_path: Path) -> None:
    """Audits, kernels, searches, single questions, refusals and usage errors: nothing raw on stdout or stderr."""
    (tmp_path / "search.yaml").write_text(json.dumps({"search": EVIL, "trace": {"function": EVIL}, EVIL: 1}))
    told = EVIL.replace("\x00", "")
    asked = [
        *(["hlo", "new"], ["hlo", "new", "--json"], ["hlo", f"new/{FILE}.txt"], ["hlo", told]),
        *(["kernels", f"new/{FILE}.yaml"], ["kernels", told], ["kernels", f"{told}.py:f"], ["kernels", f"m:{told}"]),
        *(["search", str(tmp_path / "search.yaml")], ["search", told], ["check", told], ["check", told, "--json"]),
        *(["ask", "injective", told], ["ask", told, "f32[3]{0}"], ["show", told], ["locate", told, told]),
        *(["convert", told, "--to", told], ["explain", told], ["gate", "--against", told], ["gate", told, told]),
        *([told], ["check", f"--{told}"], ["ask", "injective", "f32[3]{0}", "--where", told]),
        ["gate", "old", "new", "--approve", told],
    ]
    answers, _ = commands(place, *asked)
    for arguments, answer in zip(asked, answers, strict=True):
        harmless(answer, "json" if "--json" in arguments else "text")
        assert answer.out + answer.err
    assert EVIL.replace("\n", "").split("\x00")[0].split("\u2028")[0] in texts(json.loads(answers[1].out))


def test_an_approval_is_toml_whatever_it_is_of(place: Path) -> None:
    """The stanza that approves an evil finding is harmless and says what it approves."""
    (report,), _ = commands(place, ["gate", "old", "new", "--json"])
    denied = [f for f in json.loads(report.out)["findings"] if f["verdict"] != "unknown"]
    (stanza,), _ = commands(place, ["gate", "old", "new", "--approve", denied[0]["fingerprint"]])
    harmless(stanza)
    assert tomllib.loads(stanza.out)["tool"]["layoutproof"]["gate"]["approvals"][0]["fingerprint"]


def test_a_pytest_run_is_harmless(tmp_path: Path) -> None:
    """Spec files as tests: ids and failures show nothing raw; the names of files are shown by pytest itself."""
    (tmp_path / "a.yaml").write_text(spec("4,1"))
    options = ["-p", "no:cacheprovider", "-v", "--color=no", "--layoutproof-specs", "a.yaml"]
    command = [sys.executable, "-m", "pytest", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1, done.stdout
    assert r"\x1b]0;t" in done.stdout
    harmless(Answer(1, done.stdout, done.stderr))


def test_what_nobody_sees_is_shown_by_its_number() -> None:
    """Letters of any script stay."""
    assert visible(f"a{UNSEEN}b") == r"a\u034f\u115f\u2800\u3164\ufe0f\uffa0\U000e0101b"
    assert json_text(UNSEEN).isascii()
    assert json.loads(json_text(UNSEEN)) == UNSEEN
    assert visible("é ä \u4e2d \u05d0 \U0001f600") == "é ä \u4e2d \u05d0 \U0001f600"


def test_a_name_makes_no_link_of_code_scanning() -> None:
    """`[text](address)` is one in a message of SARIF."""
    evil = "[click](https://evil.example)"
    found = Finding("injective", evil, f"because {evil}", verdict=Verdict.REFUTED)
    (result,) = json.loads(render("sarif", Report("x", (found,))))["runs"][0]["results"]
    assert result["message"]["text"] == "[click] (https://evil.example): because [click] (https://evil.example)"
