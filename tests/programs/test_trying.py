"""`compile --try` and `hlo --try`: programs compiled again with each candidate, by processes of their own."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.cli.documents import adapter
from tests import said
from tests.cli.in_one_process import Answer, commands
from tests.hlo.dumps import SMALL

pytestmark = pytest.mark.slow

pytest.importorskip("jax")
NEEDS_TPU = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="needs libtpu")

MODEL = """
import functools
import jax

def step(weight, gradient, unused=None):
    return {"weight": weight - 0.5 * gradient}

@functools.partial(jax.jit, donate_argnums=0)
def donating(weight, gradient):
    return step(weight, gradient)

def tree(params, x, scale=2.0, flag="x"):
    return params["w"] * scale, x + 1

def all_of(*given):
    return given[0] + given[1]

def turned(x):
    return (x * 2).T

def broken(x):
    return x @ x[:, :1]
"""
TEXT = """HloModule step

ENTRY main {
  weight = f32[131072]{0} parameter(0)
  gradient = f32[131072]{0} parameter(1)
  ROOT less = f32[131072]{0} subtract(weight, gradient)
}
"""
STEP = ["model:step", "--arg", "f32[131072]", "--arg", "f32[131072]"]
LINES: dict[str, list[str]] = {
    "step": ["compile", *STEP, "--try"],
    "donating": ["compile", "model:donating", *STEP[1:], "--try"],
    "tree": [
        *("compile", "model:tree", "--arg", "{'w': 'f32[512,256]'}", "--arg", "f32[64,32]", "--kwarg", "scale=3.0"),
        *("--mesh", "x=2", "--in", "P('x')", "--in", "P('x')", "--donate", "0", "--try"),
    ],
    "any": ["compile", "model:all_of", *STEP[1:], "--try"],
    "broken": ["compile", "model:broken", "--arg", "f32[8,4]", "--try"],
    "text": ["hlo", "step.txt", "--target", "cpu", "--try"],
    "scheduled": ["hlo", "small.txt", "--target", "cpu", "--try"],
    "several": ["hlo", "parts.txt", "--target", "cpu", "--try"],
    "no target": ["hlo", "step.txt", "--try"],
    "cut": ["hlo", "cut.txt", "--target", "cpu", "--try"],
    "a dump": ["compile", "step.txt", "--try"],
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    """What each of `LINES` prints with --json."""
    at = tmp_path_factory.mktemp("trying")
    (at / "model.py").write_text(MODEL)
    (at / "step.txt").write_text(TEXT)
    (at / "small.txt").write_text(SMALL)
    (at / "cut.txt").write_text(TEXT[:-2])
    (at / "parts.txt").write_text(TEXT.replace("HloModule step", "HloModule step, num_partitions=4"))
    plain = ("text",)
    found, _ = commands(at, *(words + ["--json"] * (name not in plain) for name, words in LINES.items()), seconds=500)
    return dict(zip(LINES, found, strict=True))


def shown(answer: Answer) -> dict[str, Any]:
    """What was tried for the only program; the whole answer is of the published form."""
    document = json.loads(answer.out)
    adapter("compile" if "records" in document else "hlo").validate_json(answer.out)
    (tried,) = document["tried"]
    found: dict[str, Any] = tried
    return found


def of_kind(tried: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [each for each in tried["tries"] if each["kind"] == kind]


def test_a_donation_that_is_missing_is_found(answers: dict[str, Answer]) -> None:
    """The weight's buffer is taken by the result: memory is one array less, and it says what to write."""
    tried = shown(answers["step"])
    assert answers["step"].code == 0
    (donation,) = of_kind(tried, "donation")
    assert (donation["what"], donation["write"]) == ("weight donated", "donate_argnums for weight")
    assert (donation["verdict"], donation["less"], donation["more"]) == ("helped", ["memory"], [])
    assert tried["before"]["memory"] - donation["figures"]["memory"] == 131072 * 4
    assert [each["verdict"] for each in of_kind(tried, "auto")] == ["same"]
    assert not tried["findings"]


def test_what_is_donated_already_stays_so(answers: dict[str, Answer]) -> None:
    """By jax.jit of the user's own: the program as it is has it, and it is no candidate."""
    tried, plain = shown(answers["donating"]), shown(answers["step"])
    assert of_kind(tried, "donation") == []
    assert tried["before"]["memory"] == plain["before"]["memory"] - 131072 * 4


def test_trees_on_a_mesh(answers: dict[str, Answer]) -> None:
    """Arrays have their names and shardings, figures are of one device; what --donate gives away is given already."""
    tried = shown(answers["tree"])
    (donation,) = of_kind(tried, "donation")
    assert (donation["what"], donation["verdict"]) == ("x donated", "helped")
    assert tried["before"]["memory"] - donation["figures"]["memory"] == 32 * 32 * 4
    assert [each["what"] for each in of_kind(tried, "order")] == [
        "params['w'] laid out {0,1} instead of {1,0}",
        "x laid out {0,1} instead of {1,0}",
    ]
    assert all(each["verdict"] != "failed" for each in tried["tries"])


def test_arguments_without_names_are_numbered(answers: dict[str, Answer]) -> None:
    """`*given` names none of them."""
    assert [each["what"] for each in of_kind(shown(answers["any"]), "donation")] == ["argument 0 donated"]


def test_what_cannot_be_compiled_is_not_tried(answers: dict[str, Answer]) -> None:
    """The user's own mistake stands once."""
    document = json.loads(answers["broken"].out)
    assert (answers["broken"].code, document["tried"], len(document["findings"])) == (2, [], 1)


def test_text_from_before_optimization_is_compiled(answers: dict[str, Answer]) -> None:
    """What helped is a fix, named as the text names it; the rest stands in one line each with its numbers."""
    lines = answers["text"].out.splitlines()
    assert answers["text"].code == 0
    (fix,) = [line for line in lines if line.startswith("  fix ")]
    assert fix.startswith("  fix      weight donated: memory ")
    rest = [line for line in lines if line.startswith(("  no help ", "  worse ", "  a trade "))]
    (head,) = [line for line in lines if line.startswith("tried ")]
    assert head.startswith(f"tried    {len(rest) + 1} candidates for step.txt for cpu, XLA:CPU of jaxlib ")
    assert any(line.endswith("no figure changes") for line in rest)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("scheduled", said.words("programs.text_is_compiled", give="give the function")),
        ("several", "the text is of 4 devices and does not say where they are"),
    ],
)
def test_text_that_cannot_be_compiled_says_what_to_give(answers: dict[str, Answer], name: str, words: str) -> None:
    """Unknown, exit code 3; the audit is there all the same."""
    tried = shown(answers[name])
    (finding,) = tried["findings"]
    assert (answers[name].code, finding["verdict"], tried["before"], tried["tries"]) == (3, "unknown", None, [])
    assert finding["reason"].startswith(words)
    assert "layoutproof compile --try MODULE:FUNCTION" in finding["reason"]
    assert json.loads(answers[name].out)["results"][0]["programs"]


def test_what_is_asked_wrongly(answers: dict[str, Answer]) -> None:
    """No target, a text that is cut short, a dump given to `compile`."""
    assert (answers["no target"].code, "say --target v5e" in answers["no target"].out) == (2, True)
    assert answers["cut"].code == 2
    assert shown(answers["cut"])["tries"] == []
    assert (answers["a dump"].code, "layoutproof hlo FILE --try" in answers["a dump"].out) == (2, True)
    with pytest.raises(lp.LayoutError, match="is not compiled again: give the function"):
        lp.compile(TEXT, try_=True)


def test_from_python() -> None:
    """The same answer: why nothing was tried is a finding, and the exit code is its."""
    found = lp.audit(SMALL, target="cpu", try_=True)
    (advice,) = found.advice
    assert (found.exit_code, advice.fixes, [f.question for f in found.findings]) == (3, (), ["try"])
    assert "cannot be compiled again" in str(found)
    adapter("hlo").validate_json(found.to_json())


@NEEDS_TPU
def test_for_a_tpu_each_fix_names_its_cause(tmp_path: Path) -> None:
    """A turned result costs a copy that either side's layout saves, and names the line that makes it."""
    (tmp_path / "model.py").write_text(MODEL)
    (answer,), _ = commands(
        tmp_path, ["compile", "model:turned", "--arg", "f32[1024,4096]", "--target", "v5e", "--try"], seconds=500
    )
    assert answer.code == 0
    tried = answer.out[answer.out.index("\ntried ") + 1 :]
    for fix in ("x laid out {0,1}", "result[0] laid out {0,1}", "the compiler chooses"):
        assert f"  fix      {fix}" in tried
    assert "out_shardings: Format(Layout((1, 0)), sharding) for result[0]" in tried
    # the line of the product in MODEL
    assert "cause copy for mul at model.py:19 of parameter 0: f32[1024,4096]" in tried
