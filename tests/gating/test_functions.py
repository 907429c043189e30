"""`gate --same-function`: programs that compute the same, another thing, or nobody knows, against a git revision."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest

from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding, Report
from layoutproof.core.fingerprint import named
from layoutproof.core.result import Verdict
from layoutproof.formats import render
from layoutproof.gating import policy
from layoutproof.gating.functions import OTHER, SAME, UNKNOWN, Function, of_computed
from layoutproof.programs.functions import Computed
from layoutproof.specs.spec import loads
from tests.gating.repository import git, run
from tests.said import stretch as stretch_of
from tests.said import words as words_of

pytestmark = pytest.mark.slow

pytest.importorskip("jax")

BEFORE = """
import pathlib
import jax
import jax.numpy as jnp
from parts.layer import act

pathlib.Path("{mark}").touch()

def sgd(p, g):
    return {"p": p - 1e-3 * g}

def norm(x):
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)

def layers(x, ws):
    for w in ws:
        x = act(x @ w)
    return x, x.sum()

def kept(x):
    return jnp.sin(x)

def sharded(x):
    from jax.sharding import PartitionSpec as P
    return jax.lax.with_sharding_constraint(x * 2, P("d")).sum()
"""
RIGHT = """
import pathlib
import jax
import jax.numpy as jnp
from parts.layer import act

pathlib.Path("{mark}").touch()

@jax.jit
def _inner(x):
    return jax.lax.rsqrt(jnp.square(x).sum(-1, keepdims=True) / x.shape[-1] + 1e-6)

def sgd(params, grads):
    return {"new": params + grads * -0.001}

def norm(x):
    return _inner(x) * x

def layers(x, ws):
    out = jax.lax.scan(lambda h, w: (act(w, h), None), x, ws)[0]
    return out, jnp.einsum("bd->", out)

def kept(x):
    return jnp.sin(x)

def sharded(x):
    from jax.sharding import PartitionSpec as P
    return 2 * jax.lax.with_sharding_constraint(x, P("d")).sum()
"""
LAYER = "import jax.numpy as jnp\n\ndef act(x):\n    return jnp.tanh(x)\n"
NEW_LAYER = "import jax.numpy as jnp\n\ndef act(w, h):\n    return jnp.tanh(jnp.dot(h, w))\n"
WRONG = {
    "p - 1e-3 * g": "p + 1e-3 * g",
    "+ 1e-6": "+ 1e-5",
    "act(x @ w)": "act(x @ w.T)",
    "x * 2": "x * 3",
}
SPEC = """
programs:
  sgd: {function: "model:sgd", args: ["f32[16,8]", "f32[16,8]"], donate: [0]}
  norm: {function: "model:norm", args: ["f32[16,8]"]}
  layers: {function: "model:layers", args: ["f32[4,8]", "f32[3,8,8]"]}
  kept: {function: "model:kept", args: ["f32[16]"]}
  sharded: {function: "model:sharded", args: ["f32[8,4]"], mesh: {d: 2}, in: ["P('d')"]}
"""
GATE = ["gate", "--against", "HEAD", "--same-function", "specs"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with programs; `marks` is where each state's code says that it ran."""
    place = tmp_path / "repository"
    for name in ("marks", "repository/parts", "repository/specs"):
        (tmp_path / name).mkdir(parents=True)
    (place / "model.py").write_text(BEFORE.replace("{mark}", f"{tmp_path}/marks/old"))
    (place / "parts" / "layer.py").write_text(LAYER)
    (place / "specs" / "a.yaml").write_text(SPEC)
    (place / "pyproject.toml").write_text("")
    git(place, "init", "-q", "-b", "main")
    git(place, "add", ".")
    git(place, "commit", "-qm", "first")
    return place


def wrong(folder: Path) -> None:
    """The work tree has a mistake in each program but one."""
    text = (folder / "model.py").read_text().replace("marks/old", "marks/new")
    for old, new in WRONG.items():
        text = text.replace(old, new)
    (folder / "model.py").write_text(text)


def ran(folder: Path) -> set[str]:
    """Whose code ran since this was asked last."""
    found = [*(folder.parent / "marks").iterdir()]
    for each in found:
        each.unlink()
    return {each.name for each in found}


def said(out: str) -> dict[str, dict[str, object]]:
    """Of a report as JSON: the finding about what each program computes."""
    found = json.loads(out)["findings"]
    return {each["subject"].partition(":")[0].removeprefix("program "): each for each in found}


def test_right_rewrites_are_allowed_and_said_to_be_rewritten(folder: Path) -> None:
    """Renamed, fused by hand, a scan for a loop, another jit: with modules of both states under one name."""
    (folder / "model.py").write_text(RIGHT.replace("{mark}", f"{folder.parent}/marks/new"))
    (folder / "parts" / "layer.py").write_text(NEW_LAYER)
    (found,) = run(folder, [*GATE, "--json"])
    answers = said(found.out)
    assert found.code == 0, found.out
    assert ran(folder) == {"old", "new"}
    assert {name: (each["question"], each["severity"]) for name, each in answers.items()} == dict.fromkeys(
        ("sgd", "norm", "layers", "sharded"), (SAME, "allow")
    )
    assert str(answers["norm"]["reason"]).startswith("rewritten, the same at 3 points")


def test_wrong_ones_are_denied_with_the_output_and_the_line_where_they_part(folder: Path) -> None:
    wrong(folder)
    found, forbidden = run(folder, [*GATE, "--json"], [*GATE, "--no-trace"])
    answers = said(found.out)
    assert found.code == 1
    assert {name: (each["question"], each["severity"]) for name, each in answers.items()} == dict.fromkeys(
        ("sgd", "norm", "layers", "sharded"), (OTHER, "deny")
    )
    lines = [*enumerate(BEFORE.splitlines(), 1)]
    for name, words in (("sgd", "1e-3"), ("norm", "1e-6"), ("layers", "act(x @ w)"), ("sharded", "x * 2")):
        (line,) = [k for k, text in lines if words in text]
        figures = answers[name]["figures"]
        assert isinstance(figures, dict)
        assert (figures["place"], figures["place_before"]) == (f"model.py:{line}",) * 2, name
    assert answers["sgd"]["figures"]["output"] == "result['p']"  # type: ignore[index]
    assert str(folder.parent) not in found.out
    # nothing runs where nothing may, and nothing is green
    ran(folder)
    assert forbidden.code == 3
    (again,) = run(folder, [*GATE, "--no-trace"])
    assert (again.code, ran(folder)) == (3, set())


def test_where_nobody_asked_for_the_same_it_is_a_warning_and_the_base_is_not_run_by_itself(folder: Path) -> None:
    wrong(folder)
    compiled, without = run(
        folder,
        ["gate", "--against", "HEAD", "--compile-base", "--json", "specs"],
        ["gate", "--against", "HEAD", "--json", "specs"],
    )
    assert {(each["question"], each["severity"]) for each in said(compiled.out).values()} == {(OTHER, "warn")}
    assert compiled.code == 0
    assert ran(folder) == {"old", "new"}
    run(folder, ["gate", "--against", "HEAD", "specs"])
    assert (without.code, ran(folder)) == (3, set())


def test_what_cannot_be_compared_is_unknown_and_a_mistake_in_either_state_has_its_place(folder: Path) -> None:
    spec = (folder / "specs" / "a.yaml").read_text()
    only = "\nprograms:\n  norm: {function: 'model:norm', args: ['f32[16,8]']}\n"
    (folder / "specs" / "a.yaml").write_text(only)
    git(folder, "commit", "-qam", "one program")
    (folder / "specs" / "a.yaml").write_text(only.replace("16,8", "16,12"))
    text = (folder / "model.py").read_text()
    (shapes,) = run(folder, GATE)
    assert shapes.code == 3
    assert "unknown  function_unknown  program norm: what it computes   specs/a.yaml:3:9" in shapes.out
    assert "args[0] is float32 [16, 12], and was float32 [16, 8]" in shapes.out
    (folder / "specs" / "a.yaml").write_text(spec)
    (folder / "model.py").write_text(text.replace("    return jnp.sin(x)", "    return jnp.sin(x) + undefined"))
    git(folder, "commit", "-qam", "broken")
    (folder / "model.py").write_text(text)
    (broken,) = run(folder, GATE)
    assert broken.code == 2
    (line,) = [k for k, each in enumerate(text.splitlines(), 1) if "jnp.sin" in each]
    assert f"the base: tracing the function raised NameError: name 'undefined' is not defined (model.py:{line})" in (
        broken.out
    )
    assert "layoutproof-" not in broken.out


def test_a_lock_alone_does_not_say_what_is_computed(folder: Path) -> None:
    assert run(folder, ["gate", "--lock"])[0].code == 0
    wrong(folder)
    plain, asked = run(folder, ["gate"], ["gate", "--same-function"])
    assert (plain.code, asked.code) == (0, 3)
    assert "warn     program  program norm" in plain.out
    assert "unknown  function_unknown  program norm" in asked.out
    assert "gate --against REF --same-function" in asked.out
    assert "program kept" not in asked.out


CLAIMS = """
programs:
  norm: {function: "model:norm", args: ["f32[16,8]"]}
  sgd: {function: "model:sgd", args: ["f32[16,8]", "f32[16,8]"]}
checks:
  - {same_function: norm}
  - {argument_memory: sgd, at_most: 1MiB}
"""


def test_a_claim_holds_one_program_to_what_it_computed_and_runs_nothing_by_itself(folder: Path) -> None:
    (folder / "specs" / "a.yaml").write_text(CLAIMS)
    git(folder, "commit", "-qam", "claims")
    wrong(folder)
    held, checked = run(folder, ["gate", "--against", "HEAD", "--compile-base", "--json", "specs"], ["check", "specs"])
    assert (held.code, checked.code) == (1, 0), held.out
    assert {name: each["severity"] for name, each in said(held.out).items()} == {"norm": "deny", "sgd": "warn"}
    assert "claim of the gate, same_function of norm (specs/a.yaml:6)" in checked.out
    assert "1 claim as stated: 1 proved" in checked.out
    # with a lock there is a record to compare, and the code of the base is not run for a claim's sake
    git(folder, "stash", "-q")
    assert run(folder, ["gate", "--lock"])[0].code == 0
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "locked")
    git(folder, "stash", "pop", "-q")
    ran(folder)
    (asked,) = run(folder, ["gate", "--against", "HEAD", "specs"])
    assert (asked.code, ran(folder)) == (3, {"new"})
    assert "unknown  function_unknown  program norm" in asked.out
    assert "warn     program  program sgd" in asked.out
    (folder / "specs" / "a.yaml").write_text(CLAIMS.replace("  - {same_function: norm}\n", ""))
    (removed,) = run(folder, ["gate", "--against", "HEAD", "specs"])
    assert removed.code == 1
    assert "deny     removed  claim same_function norm" in removed.out


def _lock_of(folder: Path) -> list[list[object]]:
    lines = (folder / "layoutproof.lock").read_text().splitlines()
    return [json.loads(line) for line in lines[1:]]


def _with_values(folder: Path, **more: object) -> None:
    """The lock file with something else in the values of a program."""
    lines = (folder / "layoutproof.lock").read_text().splitlines()
    for k, line in enumerate(lines[1:], 1):
        relpath, kind, name, value = json.loads(line)
        if kind == "values":
            lines[k] = json.dumps([relpath, kind, name, {**value, **more}])
    (folder / "layoutproof.lock").write_text("\n".join([*lines, ""]))


def test_a_lock_says_what_a_program_computes_that_a_claim_holds_to_it(folder: Path) -> None:
    """The old code is not traced: the same values at the same points are the same; others say nothing."""
    (folder / "specs" / "a.yaml").write_text(CLAIMS)
    git(folder, "commit", "-qam", "claims")
    assert run(folder, ["gate", "--lock"])[0].code == 0
    kept = [(name, value) for _, kind, name, value in _lock_of(folder) if kind == "values"]
    assert [name for name, _ in kept] == ["norm"]
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "locked")
    text = (folder / "model.py").read_text()
    against = ["gate", "--against", "HEAD", "specs"]
    right = "x * jax.lax.rsqrt(jnp.square(x).sum(-1, keepdims=True) / 8 + 1e-6)"
    (folder / "model.py").write_text(
        text.replace("x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)", right).replace("marks/old", "marks/new")
    )
    ran(folder)
    alone, revision, check = run(folder, ["gate"], against, ["gate", "--lock", "--check"])
    assert ran(folder) == {"new"}
    for found in (alone, revision):
        assert found.code == 0, found.out
        assert "allow    same_function  program norm" in found.out
        assert stretch_of("gating.same_as_locked", points=3) in found.out
    assert "values" not in check.out
    wrong(folder)
    wrongly, checked = run(folder, against, ["gate", "--lock", "--check"])
    assert wrongly.code == 3
    assert "unknown  function_unknown  program norm" in wrongly.out
    assert stretch_of("programs.not_locked_values") in wrongly.out
    assert "values norm of specs/a.yaml" in checked.out
    # with another evaluator, or another jax, nobody knows
    (folder / "model.py").write_text(
        text.replace("x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)", right).replace("marks/old", "marks/new")
    )
    for more in ({"evaluator": "0" * 16}, {"jax": "0.9.9"}):
        git(folder, "checkout", "-q", "layoutproof.lock")
        _with_values(folder, **more)
        (other,) = run(folder, ["gate"])
        assert other.code == 3, other.out
        assert f"made by {next(iter(more))} {next(iter(more.values()))}, and this is" in other.out
    # a lock without them reads as before
    lines = (folder / "layoutproof.lock").read_text().splitlines()
    kept_lines = [line for line in lines if '"values"' not in line]
    (folder / "layoutproof.lock").write_text("\n".join([*kept_lines, ""]))
    (without,) = run(folder, ["gate"])
    assert without.code == 3
    assert stretch_of("gating.old_code_not_here") in without.out


KERNEL = """
import pathlib
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

pathlib.Path("{mark}").touch()

def double(x):
    def body(x, o):
        o[...] = x[...] + x[...]

    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32))(x)

def kept(x):
    return jnp.tanh(x)
"""
OF_KERNELS = """
kernels:
  double: {trace: "ops:double", args: ["f32[8,128]"]}
  kept: {trace: "ops:kept"}
checks:
  - {same: double, as: kept, expect: refuted}
"""


@pytest.mark.parametrize(("body", "question", "code"), [("2 * x[...]", SAME, 0), ("3 * x[...]", OTHER, 1)])
def test_functions_with_kernels_are_compared_too(folder: Path, body: str, question: str, code: int) -> None:
    """What is not written otherwise is not spoken of; a reference has the arguments of what is held against it."""
    (folder / "specs" / "a.yaml").write_text(OF_KERNELS)
    text = KERNEL.replace("{mark}", f"{folder.parent}/marks/kernels")
    (folder / "ops.py").write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "kernels")
    (folder / "ops.py").write_text(text.replace("x[...] + x[...]", body))
    (forbidden,) = run(folder, [*GATE, "--no-trace"])
    assert (forbidden.code, ran(folder)) == (3, set()), forbidden.out
    (found,) = run(folder, [*GATE, "--json"])
    findings = [each for each in json.loads(found.out)["findings"] if each["question"] in (SAME, OTHER, UNKNOWN)]
    assert [(each["question"], each["subject"]) for each in findings] == [
        (question, "kernel double: what it computes")
    ], found.out
    assert found.code == code, found.out


def test_the_claim_has_no_expectation() -> None:
    _, errors = loads(CLAIMS.replace("{same_function: norm}", "{same_function: norm, expect: refuted}"))
    assert "takes no 'expect'" in str(errors[0])


@pytest.mark.parametrize("form", ["markdown", "sarif", "junit", "html", "github", "json"])
def test_every_form_of_a_report_has_the_three_classes(form: str) -> None:
    computed = (
        Computed("same", points=3, decided_by="points"),
        Computed(
            "other",
            words_of("programs.value_changed", name="result", now=1, was=2),
            output="result",
            place="model.py:3",
            before="model.py:4",
        ),
        Computed("unknown", "a sort"),
    )
    found = [f for each in computed for f in of_computed(each, asked=False).over([])]
    findings, _ = policy.judge(found, {}, policy.Policy(), datetime.date(2026, 11, 26))
    text = render(form, Report("new against old", tuple(findings), 1))
    for each in (SAME, OTHER, UNKNOWN):
        assert each in text
    for words in ("the same at 3 points", "they part at model.py:3, before model.py:4", "a sort"):
        assert words in text


def test_an_approval_is_of_these_two_programs() -> None:
    """Another difference of the same program, under the same name, is another finding."""
    one, other = (
        named(
            of_computed(
                Computed("other", words_of("programs.value_changed", name="result", now=1, was=2), digest=d), asked=True
            ).over([])
        )
        for d in "ab"
    )
    assert one[0].fingerprint != other[0].fingerprint


def test_rules_may_ask_for_more_than_to_say_that_it_is_unknown() -> None:
    found = of_computed(Computed("unknown", "a sort"), asked=False).over([])
    strict = policy.read({UNKNOWN: "deny", OTHER: "deny"}, "here")
    (judged,), _ = policy.judge(found, {}, strict, datetime.date(2026, 11, 26))
    assert (judged.severity, judged.exit_code) == ("deny", 3)
    other = of_computed(
        Computed("other", words_of("programs.value_changed", name="result", now=1, was=2)), asked=False
    ).over([])
    (judged,), _ = policy.judge(other, {}, strict, datetime.date(2026, 11, 26))
    assert judged.severity == "deny"


# as findings


def test_what_is_said_otherwise_stands_below_a_difference_and_not_beside_the_same() -> None:
    others = [
        Finding("operation", "add", follows=(Finding("new_copy", "a"), Finding("constant", "0.1"))),
        Finding("peak_memory", "peak"),
    ]
    same = of_computed(Computed("same", points=3), asked=True).over(others)
    assert [(f.question, len(f.follows)) for f in same] == [(SAME, 0), ("new_copy", 0), ("peak_memory", 0)]
    other = of_computed(
        Computed("other", words_of("programs.value_changed", name="result", now=1, was=2)), asked=False
    ).over(others)
    assert [(f.question, f.severity) for f in other] == [
        (OTHER, "warn"),
        ("new_copy", "error"),
        ("peak_memory", "error"),
    ]
    assert {(f.question, f.severity) for f in other[0].follows} == {("operation", "warn"), ("constant", "warn")}
    unknown = of_computed(Computed("unknown", "a sort"), asked=False).over(others)
    assert [f.question for f in unknown] == [UNKNOWN, "operation", "peak_memory"]
    assert Function().over(others) == others


@pytest.mark.parametrize(("asked", "severity", "code"), [(False, "info", 0), (True, "deny", 3)])
def test_unknown_is_green_only_where_nobody_asked(asked: bool, severity: str, code: int) -> None:
    (found,) = of_computed(Computed("unknown", "a sort"), asked).over([])
    assert (found.severity, found.verdict, found.exit_code) == (severity, Verdict.UNKNOWN, code)


def test_a_mistake_is_one_where_it_was_asked() -> None:
    broken = Computed("unknown", "no", error=LayoutError("no", file="model.py", line=3))
    (asked,) = of_computed(broken, asked=True).over([])
    (beside,) = of_computed(broken, asked=False).over([])
    assert (asked.exit_code, asked.hint, beside.exit_code) == (2, "model.py:3", 0)
