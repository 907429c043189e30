"""Claims about values in spec files: `{same: kernel, as: reference}`, as `check` and the gate judge them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from layoutproof.cli import main as cli
from layoutproof.cli.documents import adapter
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.questions.same_answer import Same
from layoutproof.specs.check import Outcome, run
from layoutproof.specs.report import one as told_of
from layoutproof.specs.spec import loads
from layoutproof.specs.spec_model import json_schema
from layoutproof.values.compare import Comparison
from tests.said import stretch as stretch_of
from tests.said import words

pytestmark = pytest.mark.slow

pytest.importorskip("jax", reason="JAX is not installed")

CODE = """
from pathlib import Path
Path(__file__).with_name("ran").touch()
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

def _rows(body, x):
    spec = pl.BlockSpec((8, 32), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(body, grid=(2,), in_specs=[spec], out_specs=spec, out_shape=shape)(x)

def scaled(x):
    def body(x_ref, o_ref):
        o_ref[...] = jnp.abs(2 * x_ref[...])
    return _rows(body, x)

def plain(x, by=2):
    return jnp.abs(by * x)

def sorted_(x):
    return jnp.sort(x, -1)

def softmax(x, stable=True, dtype="float32"):
    def body(x_ref, o_ref):
        v = x_ref[...]
        e = jnp.exp(v - v.max(-1, keepdims=True) if stable else v)
        total = jnp.dot(e.astype(dtype), jnp.ones((32, 1), dtype), preferred_element_type=dtype)
        o_ref[...] = e / total.astype("float32")
    return _rows(body, x)

def product(x, y):
    return x @ y

def products(x, y, by=1):
    return by * (x[:, :, None] * y).sum(1)

def tails(x, y):
    return x[:, 1:] @ y[1:]

def arguments():
    return (jnp.ones((16, 32)),)
"""
HEAD = """source: here
kernels:
  scaled: {trace: "users_values.py:scaled", args: ["f32[16,32]"]}
  bare: {trace: "users_values.py:scaled"}
  plain: {trace: "users_values.py:plain"}
  thrice: {trace: "users_values.py:plain", kwargs: {by: 3}}
  sorted: {trace: "users_values.py:sorted_", args: ["f32[16,32]"]}
  wide: {trace: "users_values.py:plain", args: ["f32[16,64]"]}
  softmax: {trace: "users_values.py:softmax", args: ["f32[16,32]"]}
  open: {trace: "users_values.py:softmax", args: ["f32[16,32]"], kwargs: {stable: false}}
  narrow: {trace: "users_values.py:softmax", args: ["f32[16,32]"], kwargs: {dtype: bfloat16}}
  product: {trace: "users_values.py:product"}
  products: {trace: "users_values.py:products", args: ["f32[4,8]", "f32[8,4]"]}
  tails: {trace: "users_values.py:tails"}
  thrice_products: {trace: "users_values.py:products", kwargs: {by: 3}}
layouts: {scores: "f32[3,5]{1,0}"}
checks:
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with user code, where we are."""
    (tmp_path / "users_values.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "users_values", raising=False)
    return tmp_path


def one(check: str) -> Outcome:
    checks, errors = loads(f"{HEAD}  - {check}\n", "a.yaml")
    assert errors == []
    return run(checks[0])


@pytest.mark.parametrize(
    ("check", "status", "found", "because"),
    [
        ("{same: scaled, as: plain}", "as expected", "sampled", ""),
        ("{same: plain, as: thrice}", "error", "error", "missing 1 required positional argument"),
        ("{same: scaled, as: thrice}", "wrong", "refuted", "512 of 512 elements differ"),
        ("{same: scaled, as: thrice, expect: refuted, figures: {different: 512}}", "as expected", "refuted", ""),
        ("{same: scaled, as: thrice, expect: refuted, figures: {different: 511}}", "wrong", "refuted", "not 511"),
        (
            "{same: scaled, as: plain, expect: refuted}", "wrong", "sampled",
            words("specs.verdict_differs", found="sampled", expected="refuted"),
        ),
        ("{same: scaled, as: sorted}", "unknown", "unknown", "output rests on sort (users_values.py:22)"),
        ("{same: scaled, as: sorted, expect: unknown, reason: order}", "as expected", "unknown", ""),
        ("{same: scaled, as: bare}", "unknown", "unknown", "compared with itself"),
        ('{same: bare, as: plain, inputs: "users_values.py:arguments"}', "as expected", "sampled", ""),
        ("{stable: softmax}", "as expected", "sampled", ""),
        ("{stable: open}", "unknown", "unknown", stretch_of("specs.exponent_unbounded")),
        ("{stable: scaled}", "unknown", "unknown", words("specs.no_exponential")),
        ("{stable: sorted}", "unknown", "unknown", "an order of data"),
        ("{sums_at_least: softmax, dtype: float32}", "as expected", "sampled", ""),
        ("{sums_at_least: narrow, dtype: float32}", "wrong", "refuted",
         stretch_of("specs.sum_type", found="bfloat16", expected="float32")),
        ("{sums_at_least: narrow, dtype: bfloat16}", "as expected", "sampled", ""),
        ("{sums_at_least: softmax, dtype: float64}", "wrong", "refuted", "is kept in float32"),
        ("{sums_at_least: scaled, dtype: float32}", "unknown", "unknown", words("specs.no_sum")),
        ('{same: product, as: products, args: "f32[M,K], f32[K,N]"}', "as expected", "proved", ""),
        ('{same: product, as: products, args: ["f32[M,8]"], where: ["M > 8"]}', "error", "error", "missing 1 required"),
        ('{same: product, as: products, args: ["f32[M,8]", "f32[8,N]"], where: ["M > 8"]}',
         "as expected", "proved", ""),
        ('{same: product, as: products, args: "f32[4,8], f32[8,5]"}', "as expected", "proved", ""),
        ('{same: product, as: thrice_products, args: "f32[M,K], f32[K,N]"}', "wrong", "refuted", "1 of 1 elements"),
        ('{same: plain, as: thrice, args: "f32[M,32]"}', "unknown", "unknown",
         stretch_of("questions.relations_undecided")),
        ('{same: product, as: products, args: "f32[M,K], f32[J,N]"}', "error", "error", "product: "),
        ('{same: product, as: tails, args: "f32[M,K], f32[K,N]"}', "unknown", "unknown", "of a size that is a name"),
        ('{same: product, as: products, args: "f32[M"}', "error", "error", "f32[M"),
        ('{same: product, as: products, args: "f32[M,8], f32[8,M]", gradient: true}', "error", "error", "are names"),
        ('{same: bare, as: plain, args: "f32[8,32]", inputs: "users_values.py:arguments"}',
         "error", "error", "not both"),
        ("{same: scaled, as: plain, outputs: [1]}", "error", "error", stretch_of("questions.output_positions", last=0)),
    ],
)  # fmt: skip
def test_claims_about_values(check: str, status: str, found: str, because: str, home: Path) -> None:
    """Each comes out with the right status, and says why where it is not as expected."""
    outcome = one(check)
    assert (outcome.status, outcome.found) == (status, found), outcome.finding.reason
    assert because in outcome.finding.reason


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ("{same: scaled, as: nobody}", "a.yaml:18:24: unknown function 'nobody'; named are scaled, bare"),
        ("{same: scores, as: plain}", "a.yaml:18:12: unknown function 'scores'"),
        (
            "{same: 'scaled[0]', as: plain}",
            words("specs.unknown_function", name="scaled[0]", near=words("core.did_you_mean", name="scaled")),
        ),
        ("{stable: nobody}", "unknown function 'nobody'"),
        ("{sums_at_least: softmax}", "'dtype' is missing"),
        ("{sums_at_least: softmax, dtype: int8}", "'dtype'"),
        ("{same: scaled}", "'as' is missing"),
        ("{same: scaled, as: wide}", words("specs.arguments_differ", function="scaled", reference="wide")),
        ("{same: scaled, as: plain, points: 0}", "'points'"),
        ("{same: scaled, as: plain, expect: sampled, reason: x}", words("specs.reason_of_sampled")),
        ("{same: scaled, as: plain, expect: proved}", "'expect'"),
        ("{same: scaled, as: plain, injective: scores}", "are two checks"),
    ],
)
def test_mistakes(check: str, said: str) -> None:
    """Told with file, line and column, before anything is imported."""
    checks, errors = loads(f"{HEAD}  - {check}\n", "a.yaml")
    assert checks == []
    assert said in "\n".join(map(str, errors))


def test_the_schema_knows_the_claim() -> None:
    """For editors."""
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(json_schema())
    assert not list(validator.iter_errors({"checks": [{"same": "a", "as": "b", "gradient": True}]}))
    assert list(validator.iter_errors({"checks": [{"same": "a"}]}))
    assert list(validator.iter_errors({"checks": [{"same": "a", "as": "b", "at_most": "4%"}]}))


Ran = Callable[..., tuple[int, str]]


@pytest.fixture
def ran(home: Path, capsys: pytest.CaptureFixture[str]) -> Ran:
    """Runs a command in the folder, and says its exit code and what it printed."""

    def command(*words: str) -> tuple[int, str]:
        sys.modules.pop("users_values", None)
        (home / "ran").unlink(missing_ok=True)
        code = cli.run([*words])
        out = capsys.readouterr()
        return code, out.out + out.err

    return command


SPEC = """source: here
kernels:
  scaled: {trace: "users_values.py:scaled", args: ["f32[16,32]"]}
  plain: {trace: "users_values.py:plain"}
checks:
  - {same: scaled, as: plain}
  - {kernel: scaled}
"""


def test_sampled_is_counted_apart_in_every_form(home: Path, ran: Ran) -> None:
    """It is never called proved; with --strict it is not enough."""
    (home / "a.yaml").write_text(SPEC)
    code, out = ran("check", "a.yaml", "--no-cache", "-v")
    assert (code, "2 claims as stated: 1 proved, 1 sampled" in out) == (0, True), out
    code, out = ran("check", "a.yaml", "--no-cache", "--strict")
    assert (code, "1 UNKNOWN" in out, "--strict" in out) == (3, True, True), out
    code, out = ran("check", "a.yaml", "--no-cache", "--json")
    document: dict[str, Any] = json.loads(out)
    adapter("check").validate_python(document)
    assert (code, document["summary"]["sampled"], document["summary"]["proved"]) == (0, 1, 1)
    assert document["results"][0]["verdict"] == "sampled"
    for form in ("markdown", "junit", "sarif", "html", "github"):
        code, out = ran("check", "a.yaml", "--no-cache", "--format", form)
        assert (code, "sampled" in out or form == "github") == (0, True), form
        code, out = ran("check", "a.yaml", "--no-cache", "--strict", "--format", form)
        assert (code, "not enough" in out) == (3, True), form
    assert ran("kernels", "a.yaml")[0] == 0


def test_where_a_difference_begins_is_said_in_every_form(home: Path, ran: Ran) -> None:
    """The line of the store, and the program."""
    lines = (home / "users_values.py").read_text(encoding="utf-8").splitlines()
    line = next(k for k, text in enumerate(lines, 1) if "o_ref[...] = jnp.abs" in text)
    thrice = '  thrice: {trace: "users_values.py:plain", kwargs: {by: 3}}\nchecks:'
    (home / "a.yaml").write_text(SPEC.replace("checks:", thrice).replace("as: plain", "as: thrice"))
    for form in ("text", "json", "markdown", "junit", "sarif", "html", "github"):
        code, out = ran("check", "a.yaml", "--no-cache", *(("--format", form) if form != "text" else ()))
        assert (code, f"users_values.py:{line} of program (0,)" in out.replace("\\", "")) == (1, True), (form, out)


def test_what_may_be_traced_holds_for_both_functions(home: Path, ran: Ran) -> None:
    """Nothing is imported with --no-trace, and nothing where the list lacks the reference or the maker of arguments."""
    (home / "a.yaml").write_text(SPEC)
    code, out = ran("check", "a.yaml", "--no-cache", "--no-trace")
    assert (code, (home / "ran").exists(), "not traced" in out) == (3, False, True)
    other = "from pathlib import Path\nPath('other').touch()\ndef plain(x):\n    return 2 * x\n"
    (home / "others.py").write_text(other)
    (home / "pyproject.toml").write_text('[tool.layoutproof]\ntrace = ["users_values"]\n')
    assert ran("check", "a.yaml", "--no-cache")[0] == 0
    for text in (
        SPEC.replace("users_values.py:plain", "others.py:plain"),
        SPEC.replace("as: plain}", 'as: plain, inputs: "others.py:plain"}'),
    ):
        (home / "a.yaml").write_text(text)
        code, out = ran("check", "a.yaml", "--no-cache")
        assert (code, (home / "other").exists(), "others.py is not among what" in out) == (3, False, True), out
    (home / "a.yaml").write_text(SPEC.replace("users_values.py:plain", "../others.py:plain"))
    code, out = ran("check", "a.yaml", "--no-cache")
    assert (code, (home / "other").exists(), "outside of the repository" in out) == (2, False, True), out


def git(*words: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True, capture_output=True)


def test_the_gate_denies_losing_what_the_reals_do_not_see(home: Path, ran: Ran) -> None:
    """A sum in a narrower type, an exponent that nothing bounds, and claims that demand less."""
    spec = """source: here
kernels:
  softmax: {trace: "users_values.py:softmax", args: ["f32[16,32]"]}
checks:
  - {stable: softmax}
  - {sums_at_least: softmax, dtype: float32}
"""
    (home / "a.yaml").write_text(spec)
    assert ran("gate", "--lock", "a.yaml")[0] == 0
    git("init", "-q", ".")
    git("add", "-A")
    git("commit", "-qm", "a")
    for text, now, exit_code, said in [
        (spec, CODE.replace('dtype="float32"', 'dtype="bfloat16"'), 1, "sums_at_least dtype float32 was sampled, now"),
        (
            spec,
            CODE.replace("stable=True", "stable=False"),
            3,
            words("gating.claim_verdict", claim="stable", old="sampled", new="unknown"),
        ),
        (spec.replace("dtype: float32", "dtype: bfloat16"), CODE, 1, "dtype was float32, is bfloat16"),
        (spec.replace("  - {stable: softmax}\n", ""), CODE, 1, "removed"),
        (spec, CODE, 0, "no change"),
    ]:
        (home / "a.yaml").write_text(text)
        (home / "users_values.py").write_text(now)
        found, out = ran("gate", "--against", "HEAD", "a.yaml", "--no-cache")
        assert (found, said in out) == (exit_code, True), (said, out)


BY_CLAIM = """source: here
kernels:
  product: {trace: "users_values.py:product"}
  products: {trace: "users_values.py:products"}
checks:
"""


def test_the_gate_warns_of_what_is_no_longer_proved(home: Path, ran: Ran) -> None:
    """Sampled is a weaker word, and all that the file asks for; a policy may deny it. Unknown and refuted are lost."""
    spec = f"{BY_CLAIM}  - {{same: product, as: products, args: 'f32[4,8], f32[8,4]'}}\n"
    (home / "a.yaml").write_text(spec)
    assert ran("gate", "--lock", "a.yaml")[0] == 0
    git("init", "-q", ".")
    git("add", "-A")
    git("commit", "-qm", "a")
    sampled = CODE.replace("return x @ y", "return (jnp.exp(x) * x / jnp.exp(x)) @ y")
    denied = spec + "gate: {weakened: deny}\n"
    cases = [
        (spec, CODE, 0, "no change"),
        (spec, CODE.replace("return x @ y", "return 2 * x @ y / 2"), 0, "no change"),
        (spec, sampled, 0, stretch_of("gating.claim_verdict", old="proved", new="sampled")),
        (denied, CODE, 0, ""),
        (
            spec,
            CODE.replace("return x @ y", "return jnp.sort(x) @ y"),
            3,
            stretch_of("gating.claim_verdict", old="proved", new="unknown"),
        ),
        (
            spec,
            CODE.replace("return x @ y", "return 2 * x @ y"),
            1,
            stretch_of("gating.claim_verdict", old="proved", new="refuted"),
        ),
    ]
    for text, now, exit_code, said in cases:
        (home / "a.yaml").write_text(text)
        (home / "users_values.py").write_text(now)
        found, out = ran("gate", "--against", "HEAD", "a.yaml", "--no-cache")
        assert (found, said in out) == (exit_code, True), (said, out)
    (home / "users_values.py").write_text(CODE)
    (home / "a.yaml").write_text(denied)
    git("commit", "-qam", "denies it")
    (home / "users_values.py").write_text(sampled)
    found, out = ran("gate", "--against", "HEAD", "a.yaml", "--no-cache")
    assert (found, "weakened" in out) == (1, True), out


def test_the_gate_denies_losing_it(home: Path, ran: Ran) -> None:
    """Removed, weakened, or not sampled any more; what computes the same otherwise passes."""
    (home / "a.yaml").write_text(SPEC)
    assert ran("gate", "--lock", "a.yaml")[0] == 0
    assert json.loads(next(line for line in (home / "layoutproof.lock").read_text().splitlines() if '"same"' in line))[
        -1
    ] == "sampled"  # fmt: skip
    git("init", "-q", ".")
    git("add", "-A")
    git("commit", "-qm", "a")
    code, wrong = CODE, CODE.replace("2 * x_ref[...]", "3 * x_ref[...]")
    cases = [
        (SPEC, code, 0, "no change"),
        (SPEC, code.replace("2 * x_ref[...]", "x_ref[...] + x_ref[...]"), 0, "kernel_body"),
        (SPEC, wrong, 1, words("gating.claim_verdict", claim="same", old="sampled", new="refuted")),
        (
            SPEC,
            code.replace("by * x", "by * jnp.sort(x, -1)"),
            3,
            words("gating.claim_verdict", claim="same", old="sampled", new="unknown"),
        ),
        (SPEC.replace("  - {same: scaled, as: plain}\n", ""), code, 1, "removed"),
        (SPEC.replace("as: plain}", "as: plain, expect: unknown}"), code, 1, "loosened"),
        (SPEC.replace("as: plain}", "as: plain, points: 1}"), code, 1, "points was none, is 1"),
        (SPEC.replace("as: plain}", "as: plain, points: 4}"), code, 0, "tightened"),
        (SPEC.replace("users_values.py:plain", "users_values.py:sorted_"), code, 1, "the reference was"),
        (SPEC.replace("as: plain}", "as: scaled}"), wrong, 1, "removed"),
    ]
    for text, now, exit_code, said in cases:
        (home / "a.yaml").write_text(text)
        (home / "users_values.py").write_text(now)
        found, out = ran("gate", "--against", "HEAD", "a.yaml", "--no-cache")
        assert (found, said in out) == (exit_code, True), (said, out)
    (home / "a.yaml").write_text(SPEC)
    (home / "users_values.py").write_text(CODE)
    found, out = ran("gate", "--no-cache")
    assert (found, "removed" in out or "lost" in out) == (0, False), out
    (home / "users_values.py").write_text(wrong)
    found, out = ran("gate", "--no-cache")
    assert (found, words("gating.claim_verdict", claim="same", old="sampled", new="refuted") in out) == (1, True), out


def test_what_a_refuted_claim_rests_on(home: Path) -> None:
    """Each premise once at its worst, no points where float64 alone shows it, and the page of what was found."""
    premises = [Finding("body_races", name, "", verdict=v) for v in Verdict for name in "ab"]
    said = Same("f", "g", Comparison(Verdict.REFUTED, "they differ"), tuple(premises))
    (finding,) = said.findings
    assert finding.assumes == ("body_races: refuted",)
    assert finding.figures == {}
    text = told_of(one("{same: scaled, as: thrice}"))
    assert "layoutproof explain refuted" in text
    assert "points" not in text
    assert "layoutproof explain sampled" in told_of(one("{same: scaled, as: plain, expect: refuted}"))
