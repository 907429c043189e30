"""Functions and their references: what is right is sampled, what is wrong is refuted, the rest is unknown by name."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import layoutproof as lp
from layoutproof.cli.main import run
from layoutproof.core.result import Verdict
from layoutproof.values.literals import literals
from layoutproof.values.sets import Sets

pytestmark = pytest.mark.slow

jax = pytest.importorskip("jax")
jnp = jax.numpy
pl = pytest.importorskip("jax.experimental.pallas")
pltpu = pytest.importorskip("jax.experimental.pallas.tpu")
same_cases = pytest.importorskip("tests.values.same_cases")

ROWS = "f32[16,32]"
FLOATS = jax.ShapeDtypeStruct((16, 32), jnp.float32)


@pytest.mark.parametrize(
    ("wrong", "verdict"),
    [("", "sampled"), ("reset late", "refuted"), ("mask off by one", "refuted"), ("mask short", "refuted"),
     ("transposed", "refuted")],
)  # fmt: skip
def test_a_matmul_with_a_masked_tail(wrong: str, verdict: str) -> None:
    """Sums through scratch; what the mask leaves in is undefined, and stays so times 0."""
    found = lp.same(same_cases.matmul(wrong), lambda x, y: x @ y, "f32[32,48]", "f32[48,32]", relations=False)
    assert found.verdict.value == verdict
    if verdict == "sampled":
        assert "2^" in found.chance


@pytest.mark.parametrize(
    ("wrong", "verdict"), [("", "sampled"), ("starts at 0", "sampled"), ("not rescaled", "refuted")]
)
def test_an_online_softmax(wrong: str, verdict: str) -> None:
    """Over the reals a running maximum that starts at 0 is right."""
    found = lp.same(same_cases.softmax(wrong), lambda x: jax.nn.softmax(x, -1), "f32[16,24]")
    assert found.verdict.value == verdict


def _softmax(x: Any) -> Any:
    return jax.nn.softmax(x, -1)


STABILITY: list[tuple[str, Any, Any, str]] = [
    ("softmax", _softmax, _softmax, "stable"),
    ("no maximum", lambda x: jnp.exp(x) / jnp.exp(x).sum(-1, keepdims=True), _softmax, "not bounded"),
    ("mean for a maximum", lambda x: _softmax(x - x.mean(-1, keepdims=True)), _softmax, "stable"),
    ("of the mean", lambda x: (lambda e: e / e.sum(-1, keepdims=True))(jnp.exp(x - x.mean(-1, keepdims=True))),
     _softmax, "not bounded"),
    ("of fewer", lambda x: (lambda e: e / e.sum(-1, keepdims=True))(jnp.exp(x - x[:, :16].max(-1, keepdims=True))),
     _softmax, "not bounded"),
    ("of more", lambda x: (lambda e: e / e.sum(-1, keepdims=True))(jnp.exp(x - x.max())), _softmax, "stable"),
    ("of a relu", lambda x: _softmax(jnp.maximum(x, 0)), lambda x: _softmax(jax.nn.relu(x)), "stable"),
    ("square", lambda x: jnp.exp(-x * x), lambda x: 1 / jnp.exp(x * x), "stable"),
    ("half a square", lambda x: jnp.exp(-0.5 * jnp.square(x)), lambda x: jnp.exp(x * x / -2), "stable"),
    ("distance", lambda x: jnp.exp(-jnp.abs(x)), lambda x: jnp.exp(-jnp.abs(x)), "stable"),
    ("nothing", lambda x: x + x, lambda x: 2 * x, ""),
]  # fmt: skip


@pytest.mark.parametrize(("ours", "theirs", "said"), [p[1:] for p in STABILITY], ids=[p[0] for p in STABILITY])
@pytest.mark.parametrize("kernel", [False, True], ids=["plain", "kernel"])
def test_whether_exponents_are_at_most_0(ours: Any, theirs: Any, said: str, kernel: bool) -> None:
    """What is the same over the reals is told apart where an exponential may overflow."""
    found = lp.same(same_cases.rows_of(ours) if kernel else ours, theirs, ROWS, relations=False)
    assert found.verdict.value == "sampled", found.reason
    words = [word for word in ("stable", "not bounded", "not scaled") if f"\n  {word} " in str(found)]
    assert words == ([said] if said else [])


@pytest.mark.parametrize(("wrong", "said"), [("", "stable"), ("starts at 0", "not scaled")])
def test_a_running_maximum_that_starts_at_0(wrong: str, said: str) -> None:
    """It is bounded, and where all scores are far below 0 every exponential is 0: 0 / 0. Two of them on one line."""
    found = lp.same(same_cases.softmax(wrong), _softmax, "f32[16,24]")
    assert f"\n  {said} " in str(found)
    assert all(e.bounded for e in found.comparison.exponents)
    assert any(e.beside for e in found.comparison.exponents) == bool(wrong)


def _carried(dtype: Any) -> Any:
    def total(x: Any) -> Any:
        def add(k: Any, t: Any) -> Any:
            return t + x[k].astype(dtype)

        return jax.lax.fori_loop(0, 16, add, jnp.zeros(32, dtype)).astype(jnp.float32)

    return total


SUMS: list[tuple[str, Any, Any, set[tuple[str, int]]]] = [
    ("float32", lambda x: x.sum(0), lambda x: x.sum(0), {("float32", 16)}),
    ("bfloat16", lambda x: x.astype(jnp.bfloat16) @ jnp.ones((32, 4), jnp.bfloat16),
     lambda x: jnp.broadcast_to(x.sum(1, keepdims=True), (16, 4)), {("bfloat16", 32)}),
    ("wide", lambda x: jnp.dot(
        x.astype(jnp.bfloat16), jnp.ones((32, 4), jnp.bfloat16), preferred_element_type="float32"),
     lambda x: jnp.broadcast_to(x.sum(1, keepdims=True), (16, 4)), {("float32", 32)}),
    ("carried", _carried(jnp.float32), lambda x: x.sum(0), {("float32", 16)}),
    ("carried narrow", _carried(jnp.bfloat16), lambda x: x.sum(0), {("bfloat16", 16)}),
    ("of integers", lambda x: x + jnp.arange(32).sum(), lambda x: x + 496, set()),
]  # fmt: skip


@pytest.mark.parametrize(("ours", "theirs", "kept"), [p[1:] for p in SUMS], ids=[p[0] for p in SUMS])
@pytest.mark.parametrize("relations", [True, False], ids=["proved", "sampled"])
def test_what_sums_are_kept_in(ours: Any, theirs: Any, kept: set[tuple[str, int]], relations: bool) -> None:
    """The type and the number of terms, of the function and not of its reference; the bound is n u."""
    found = lp.same(ours, theirs, ROWS, relations=relations)
    assert found.verdict.value == ("proved" if relations and kept else "sampled"), found.reason
    assert {(s.dtype, s.terms) for s in found.comparison.sums} == kept
    for each in found.comparison.sums:
        assert each.bound == each.terms * (2.0**-24 if each.dtype == "float32" else 2.0**-8)
        assert Path(each.place.rsplit(":", 1)[0]).name in ("test_same.py", "same_cases.py")
    assert ("  sums kept in  " in str(found)) == bool(kept)


def test_a_sum_that_scratch_memory_carries() -> None:
    """From program to program: kept in the type of the memory."""
    found = lp.same(same_cases.matmul(), lambda x, y: x @ y, "f32[32,48]", "f32[48,32]")
    assert ("float32", 0) in {(s.dtype, s.terms) for s in found.comparison.sums}


@pytest.mark.parametrize(("wrong", "verdict"), [("", "sampled"), ("no wait", "refuted"), ("rows", "refuted")])
def test_copies_land_when_they_are_waited_for(wrong: str, verdict: str) -> None:
    """What is read before the wait is undefined."""
    assert lp.same(same_cases.copied(wrong), lambda x: 2 * x, "f32[24,128]").verdict.value == verdict


PAIRS: list[tuple[str, Any, Any, str]] = [
    ("relu", lambda x: jnp.where(x > 0, x, 0), jax.nn.relu, "sampled"),
    ("relu from 1", lambda x: jnp.where(x > 1, x, 0), jax.nn.relu, "refuted"),
    ("silu", lambda x: x / (1 + jnp.exp(-x)), jax.nn.silu, "sampled"),
    ("gelu", jax.nn.gelu, lambda x: jax.nn.gelu(x, approximate=False), "refuted"),
    ("layer norm", lambda x: (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(
        (x * x).mean(-1, keepdims=True) - x.mean(-1, keepdims=True) ** 2 + 1e-5),
     lambda x: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5), "sampled"),
    ("eps", lambda x: x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6),
     lambda x: x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5), "refuted"),
    ("log softmax", lambda x: x - jnp.log(jnp.exp(x).sum(-1, keepdims=True)), jax.nn.log_softmax, "sampled"),
    ("abs", lambda x: jnp.maximum(x, -x), jnp.abs, "sampled"),
    ("scale", lambda x: x / np.sqrt(128), lambda x: x * (1 / np.sqrt(128)), "sampled"),
    ("logarithms below a sum", lambda x: x * 0 + jnp.exp(x - jnp.log(x * x + 2)).sum(-1, keepdims=True),
     lambda x: x * 0 + (jnp.exp(x) / (x * x + 2)).sum(-1, keepdims=True), "sampled"),
    ("other logarithms below a sum", lambda x: x * 0 + jnp.exp(x - jnp.log(x * x + 3)).sum(-1, keepdims=True),
     lambda x: x * 0 + (jnp.exp(x) / (x * x + 2)).sum(-1, keepdims=True), "refuted"),
    ("minus one over it", lambda x: x * 0 + jnp.exp(-jnp.log(x * x + 2)).sum(-1, keepdims=True),
     lambda x: x * 0 - (1 / (x * x + 2)).sum(-1, keepdims=True), "refuted"),
    ("e", lambda x: jnp.exp(x - 1.0) * jnp.exp(jnp.ones(())), jnp.exp, "sampled"),
    ("e for e squared", lambda x: jnp.exp(x - 2.0) * jnp.exp(jnp.ones(())), jnp.exp, "refuted"),
    ("a literal that is rounded", lambda x: _softmax(x * (128**-0.5 + 1.0) - x), lambda x: _softmax(x * 128**-0.5),
     "unknown"),
    ("another literal", lambda x: _softmax(x * (127**-0.5 + 1.0) - x), lambda x: _softmax(x * 128**-0.5), "refuted"),
    ("hyperbolic sine", jnp.sinh, lambda x: (jnp.exp(x) - jnp.exp(-x)) / 2, "sampled"),
    ("for the cosine", jnp.cosh, lambda x: (jnp.exp(x) - jnp.exp(-x)) / 2, "refuted"),
    ("hyperbolic cosine", jnp.cosh, lambda x: (jnp.exp(x) + jnp.exp(-x)) / 2, "sampled"),
    ("tangent", jnp.tan, lambda x: jnp.sin(x) / jnp.cos(x), "sampled"),
    ("cotangent", jnp.tan, lambda x: jnp.cos(x) / jnp.sin(x), "refuted"),
    ("area", jnp.arctanh, lambda x: 0.5 * (jnp.log(1 + x) - jnp.log(1 - x)), "sampled"),
    ("not halved", jnp.arctanh, lambda x: jnp.log(1 + x) - jnp.log(1 - x), "refuted"),
    ("zeros", jnp.zeros_like, jax.nn.relu, "refuted"),
    ("float8", lambda x: x.astype(jnp.float8_e4m3fn).astype(jnp.float32), lambda x: x, "refuted"),
    ("sorted", lambda x: jnp.sort(x, -1), lambda x: jnp.sort(x, -1), "unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("ours", "theirs", "verdict"), [p[1:] for p in PAIRS], ids=[p[0] for p in PAIRS])
@pytest.mark.parametrize("kernel", [False, True], ids=["plain", "kernel"])
def test_functions_of_rows(ours: Any, theirs: Any, verdict: str, kernel: bool) -> None:
    """In a kernel and without one they are judged alike."""
    found = lp.same(same_cases.rows_of(ours) if kernel else ours, theirs, ROWS)
    assert found.verdict.value == verdict, found.reason


def test_integers_that_may_wrap_are_drawn_and_named() -> None:
    """An int8 product kept in int8 is no int32 product; with room for it, integers are data."""
    x, y = "s8[8,256]", "s8[256,8]"

    def wide(x: Any, y: Any) -> Any:
        return jnp.dot(x.astype(jnp.int32), y.astype(jnp.int32))

    def kept(x: Any, y: Any) -> Any:
        return jnp.dot(x, y, preferred_element_type=jnp.int8).astype(jnp.int32)

    right = lp.same(lambda x, y: jnp.dot(x, y, preferred_element_type=jnp.int32), wide, x, y)
    assert (right.verdict, right.comparison.drawn) == (lp.Verdict.SAMPLED, ())
    assert lp.same(kept, wide, x, y).verdict is lp.Verdict.REFUTED


def test_tables_are_used_as_they_are() -> None:
    """A gather by a given table, and another one."""
    table = np.array([3, 0, 2, 2])
    assert lp.same(lambda t, x: x[t], lambda t, x: x[jnp.array([3, 0, 2, 2])], table, ROWS).verdict.value == "sampled"
    assert lp.same(lambda t, x: x[t], lambda t, x: x[jnp.array([3, 0, 2, 1])], table, ROWS).verdict.value == "refuted"


def test_narrow_integers_wrap_at_the_ends_of_their_range() -> None:
    """A product of int8 in int16 is right on small numbers alone; numbers that are places stay places."""

    def product(kept: Any) -> Any:
        return lambda x, y: jnp.dot(x, y, preferred_element_type=kept).astype(jnp.float32)

    args = ("s8[8,64]", "s8[64,8]")
    assert lp.same(product(jnp.int16), product(jnp.int32), *args).verdict.value == "refuted"
    assert lp.same(product(jnp.int32), product(jnp.float32), *args).verdict.value == "sampled"
    place = lp.same(lambda t, x: x[t], lambda t, x: jnp.take(x, t, axis=0, mode="clip"), "s8[4]", ROWS)
    assert place.verdict.value == "sampled"


@pytest.mark.parametrize(("narrow", "other"), [("uint8", "int8"), ("int8", "uint8"), ("uint16", "int16")])
def test_an_integer_with_another_sign_keeps_its_bits(narrow: str, other: str) -> None:
    """XLA's `convert` between integers takes the low bits."""
    info = np.iinfo(other)
    wide = lambda x: x.astype(jnp.int32)  # noqa: E731
    by_hand = lambda x: (wide(x) - int(info.min)) % (1 << info.bits) + int(info.min)  # noqa: E731
    args = (f"{'u' if narrow[0] == 'u' else 's'}{info.bits}[8,128]",)
    assert lp.same(lambda x: wide(x.astype(other)), by_hand, *args).verdict is Verdict.SAMPLED
    assert lp.same(lambda x: wide(x.astype(other)), wide, *args).verdict is Verdict.REFUTED


def test_a_store_to_rows_of_what_was_stored_transposed() -> None:
    """The order in which a machine holds an array is none of its values: no store is lost."""

    def body(x: Any, o: Any, held: Any) -> None:
        held[...] = x[...].T
        for k in (1, 3):
            held[pl.ds(4 * k, 4)] = jnp.zeros((4, 16), jnp.float32)
        o[...] = held[...]

    call = pl.pallas_call(
        body, out_shape=jax.ShapeDtypeStruct((16, 16), jnp.float32), scratch_shapes=[pltpu.VMEM((16, 16), jnp.float32)]
    )
    stored = lambda x: x.T.at[4:8].set(0.0).at[12:].set(0.0)  # noqa: E731
    assert lp.same(call, stored, "f32[16,16]", relations=False).verdict is lp.Verdict.SAMPLED
    assert lp.same(call, lambda x: x.T, "f32[16,16]", relations=False).verdict is lp.Verdict.REFUTED


def test_a_scale_that_becomes_an_integer() -> None:
    """Nobody knows of all numbers whether a product of integers wraps; those of a draw are there, and show the 0."""

    def scaled(kept: Any) -> Any:
        def call(x: Any, w: Any, scale: Any) -> Any:
            dot = jnp.dot(x, w, preferred_element_type=jnp.int32).astype(kept)
            return (dot * scale.astype(kept)).astype(jnp.float32)

        return call

    args = ("s8[8,64]", "s8[64,8]", "f32[8]")
    wrong = lp.same(scaled(jnp.int32), scaled(jnp.float32), *args)
    assert wrong.verdict.value == "refuted", wrong.reason
    assert "by float64 alone: int32 between" in wrong.reason
    assert lp.same(scaled(jnp.float32), lambda x, w, s: jnp.dot(x * 1.0, w * 1.0) * s, *args).verdict.value == "sampled"
    # what is the same for these numbers may wrap for others
    opened = lp.same(scaled(jnp.int32), lambda x, w, s: scaled(jnp.int32)(x, w, s) + 0, *args)
    assert opened.verdict.value == "unknown", opened.reason


def test_gradients_trees_and_outputs() -> None:
    """A gradient may be wrong where the value is right; arguments and results are trees."""

    @jax.custom_vjp
    def halved(x: Any) -> Any:
        return x * x

    halved.defvjp(lambda x: (x * x, x), lambda x, ct: (x * ct,))
    assert lp.same(halved, lambda x: x * x, ROWS).verdict.value == "proved"
    assert lp.same(halved, lambda x: x * x, ROWS, gradient=True).verdict.value == "refuted"
    tree = {"a": FLOATS, "b": FLOATS}
    assert lp.same(lambda p: [p["a"] + p["b"], p["a"]], lambda p: [p["b"] + p["a"], p["b"]], tree).exit_code == 1
    kept = lp.same(lambda p: [p["a"] + p["b"], p["a"]], lambda p: [p["b"] + p["a"], p["b"]], tree, outputs=[0])
    assert kept.verdict.value == "proved"


def test_a_refutation_shows_the_first_element_and_both_values() -> None:
    """In row-major order, on float64."""
    found = lp.same(lambda x: x.at[3, 5].add(1.0), lambda x: x, ROWS)
    (finding,) = found.findings
    assert finding.counterexample == {"output": (0,), "element": (3, 5)}
    assert finding.figures["different"] == 1
    assert finding.figures["value"] - finding.figures["reference_value"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("ours", "theirs", "hint"),
    [
        (lambda x: jnp.exp(x[:, :24].sum(1)), lambda x: jnp.exp(x.sum(1)),
         "a change of args[0][:, 24:32] changes the reference's element, and not this one"),
        (lambda x: jnp.exp(x.sum(1)), lambda x: jnp.exp(x[:8].sum(1).repeat(2)),
         "a change of args[0][0:1, :] changes the reference's element, and not this one"),
        (lambda x: 2 * x, lambda x: 3 * x, ""),
    ],
    ids=["skipped", "other row", "same places"],
)  # fmt: skip
def test_what_reaches_the_element_on_one_side_alone(ours: Any, theirs: Any, hint: str) -> None:
    """A part of an input is a hint at the cause; where both sides read the same there is none."""
    found = lp.same(ours, theirs, ROWS)
    assert found.verdict.value == "refuted"
    assert found.comparison.hint == hint
    assert ("  hint  " in str(found)) == bool(hint)


def test_what_reaches_an_element_through_copies_by_hand() -> None:
    """A kernel that copies by itself has the hint too; it is no verdict, so the right one has none."""
    wrong = lp.same(same_cases.copied("rows"), lambda x: 2 * x, "f32[24,128]")
    assert wrong.verdict.value == "refuted"
    assert wrong.comparison.hint.startswith("a change of args[0][")
    assert wrong.comparison.hint.endswith("one")
    assert lp.same(same_cases.copied(), lambda x: 2 * x, "f32[24,128]").comparison.hint == ""


@pytest.mark.parametrize(
    ("ours", "theirs", "args", "said"),
    [
        (lambda x: x, lambda x: x[:1], (ROWS,), "output 0 of <lambda> is [16, 32], and of <lambda> [1, 32]"),
        (lambda x: (x, x), lambda x: x, (ROWS,), "gives 2 outputs"),
        (lambda x: x @ x, lambda x: x, (ROWS,), "dot_general"),
        (lambda x: x, lambda x: x > 0, (ROWS,), "output 0 of <lambda> is float32, and of <lambda> bool"),
    ],
)
def test_bad_input_is_one_line(ours: Any, theirs: Any, args: tuple[str, ...], said: str) -> None:
    """A LayoutError that names what is wrong."""
    with pytest.raises(lp.LayoutError) as error:
        lp.same(ours, theirs, *args)
    assert said in str(error.value)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit codes 0, 1, 3; what it prints as JSON is what its schema says."""
    from layoutproof.cli.documents import adapter

    text = "import jax.numpy as jnp\n\n\ndef f(x):\n    return x / (1 + x)\n\n\n"
    text += "def g(x):\n    return 1 - 1 / (1 + x)\n\n\n"
    text += "def h(x):\n    return 1 + 1 / (1 + x)\n\n\ndef s(x):\n    return jnp.sort(x)\n"
    (tmp_path / "ops.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    for name, code in (("f", 0), ("h", 1), ("s", 3)):
        asked = ["same", f"ops.py:{name}", "--reference", "ops.py:g", "--args", "f32[8]"]
        assert run(asked) == code
        capsys.readouterr()
        assert run([*asked, "--json"]) == code
        out = capsys.readouterr().out
        adapter("same").validate_json(out)
        assert json.loads(out)["exit_code"] == code
    assert run(["same", "ops.py:f", "--reference", "ops.py:g", "--args", "f32[8]", "--strict"]) == 3


def test_the_page_prints_what_it_says() -> None:
    """The program of docs/same.md."""
    page = (Path(__file__).parents[2] / "docs" / "same.md").read_text("utf-8")
    found = re.search(r"```python\n(.*?)```\n```text\n(.*?)```", page, re.DOTALL)
    assert found is not None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(found[1], "same.md", "exec"), {})
    assert printed.getvalue() == found[2]


def test_pairs_that_differ_have_different_maxima() -> None:
    """Two words of 33 bits do not fit 64 bits: pairs whose low words differ in the top bits were taken as one."""
    pairs = np.array([[5, 7], [5 + 2**29, 7]])
    every, none = np.ones(pairs.shape, bool), np.zeros(pairs.shape, bool)
    (one, other), _ = Sets(2147483579, 3).maximum(pairs, every, none)
    assert one != other


def test_what_was_loaded_stays_when_memory_is_stored_to() -> None:
    def body(x: Any, o: Any) -> None:
        o[...] = x[...]
        o[1, :] = x[1, :] + 1
        before = o[...]
        o[0, :] = jnp.zeros_like(o[0, :])
        o[...] = o[...] + before

    def kernel(x: Any) -> Any:
        return pl.pallas_call(body, out_shape=x)(x)

    def reference(x: Any, first: int = 1) -> Any:
        return jnp.stack([first * x[0], 2 * (x[1] + 1), *(2 * x[2:])])

    for relations, right in ((False, Verdict.SAMPLED), (True, Verdict.PROVED)):
        assert lp.same(kernel, reference, "f32[4,128]", relations=relations).verdict is right
        wrong = lp.same(kernel, lambda x: reference(x, 0), "f32[4,128]", relations=relations)
        assert wrong.verdict is Verdict.REFUTED


def test_sets_that_meet_by_chance_have_different_maxima() -> None:
    sets = Sets(101, 7)
    rows = np.array([[a, b] for a in range(1, 12) for b in range(a + 1, 12)])
    every = np.ones(rows.shape, bool)
    found, _ = sets.maximum(rows, every, ~every)
    again, _ = sets.maximum(rows[::-1, ::-1], every, ~every)
    assert len(set(found.tolist())) == len(rows) == 55
    assert found[::-1].tolist() == again.tolist()


@pytest.mark.parametrize(
    ("function", "args", "said"),
    [
        (lambda x: x, ("f32[100000,100000]",), "30,000,000,000 elements, more than 134,217,728; --reduced"),
        (lambda x: (x[:, None] + x).sum(1), ("f32[20000]",), "an array here has 400,000,000 elements"),
        (lambda x: x, ("f32[0,128]",), "no output has an element"),
    ],
)
def test_too_much_and_nothing_are_unknown(function: Any, args: tuple[str, ...], said: str) -> None:
    found = lp.same(function, lambda *x: function(*x), *args, relations=False)
    assert (found.verdict, found.exit_code) == (Verdict.UNKNOWN, 3)
    assert said in found.reason


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        (lambda x: x, "is called without arguments to make the inputs"),
        (lambda: None, "makes the inputs, and gives None"),
    ],
)
def test_inputs_that_make_none(inputs: Any, said: str) -> None:
    with pytest.raises(lp.LayoutError) as error:
        lp.same(lambda x: x, lambda x: 1 * x, inputs=inputs)
    assert said in str(error.value)


@pytest.mark.parametrize(("wrong", "verdict"), [("", "sampled"), ("mask short", "refuted"), ("reset late", "refuted")])
def test_reduced_keeps_every_kind_of_program(wrong: str, verdict: str) -> None:
    """First, middle, last and ragged blocks stay; whole ones stay whole; the sizes are said."""

    def kernel(x: Any, y: Any) -> Any:
        return same_cases.matmul(wrong, *x.shape, y.shape[1])(x, y)

    shapes = "f32[40960,41104]", "f32[41104,20480]"
    assert lp.same(kernel, jnp.matmul, *shapes, relations=False).verdict is Verdict.UNKNOWN
    found = lp.same(kernel, jnp.matmul, *shapes, reduced=True, relations=False)
    assert found.verdict.value == verdict
    assert " at args[0] [96, 80], args[1] [80, 128]" in str(found).splitlines()[0]
    assert found.as_dict()["reduced"][0] == {"argument": "args[0]", "given": [40960, 41104], "shape": [96, 80]}
    assert "smaller sizes" in found.as_dict()["scope"]


def _layers(wrong: str) -> Any:
    def layers(x: Any, b: Any, w: Any) -> Any:
        h, _ = jax.lax.scan(lambda h, each: (jnp.tanh(h @ each), None), x, w)
        h = h.T.reshape(h.shape) if wrong == "turned" else h
        return h + (b[:1] if wrong == "first row" else b)[:, None]

    return layers


@pytest.mark.parametrize(("wrong", "verdict"), [("", "sampled"), ("first row", "refuted"), ("turned", "refuted")])
def test_reduced_extents_are_no_single_elements_and_stay_different(wrong: str, verdict: str) -> None:
    """Of one element any index is the right one, and a turned array of one row is itself."""
    given = ("f32[24,40]", "f32[24]", "f32[6,40,40]")
    found = lp.same(_layers(wrong), _layers(""), *given, reduced=True, relations=False)
    assert found.verdict.value == verdict, found.reason
    (rows, columns), _, (steps, *_) = (shape for _, _, shape in found.reduced)
    assert min(rows, columns, steps) > 1
    assert len({rows, columns, steps}) == 3


def test_reduced_says_why_it_is_not() -> None:
    """Nothing to keep; sizes that the code states, as shapes, in a mask, in a mean."""
    found = lp.same(lambda x: 2 * x, lambda x: x + x, ROWS, reduced=True, relations=False)
    assert found.verdict is Verdict.UNKNOWN
    assert "no kernel and no loop" in found.reason

    def masked(x: Any, y: Any) -> Any:
        return same_cases.matmul("", x.shape[0], 144, y.shape[1])(x, y)

    for fixed in (same_cases.matmul("", 128, 144, 160), masked):
        found = lp.same(fixed, jnp.matmul, "f32[128,144]", "f32[144,160]", reduced=True, relations=False)
        assert all(144 in shape for _, _, shape in found.reduced)
        assert found.verdict is (Verdict.SAMPLED if found.reduced else Verdict.UNKNOWN)
        assert bool(found.reduced) == (fixed is masked)
    assert (
        "at no smaller sizes"
        in lp.same(
            same_cases.matmul("", 128, 144, 160), jnp.matmul, "f32[128,144]", "f32[144,160]", reduced=True
        ).reason
    )


def _rows(x: Any, t: Any) -> Any:
    return x[t]


@pytest.mark.parametrize(
    ("least", "below", "verdict", "said"),
    [(0, 8, "sampled", "from 0 to 7, as assumed"), (5, 5, "unknown", "no integer is as args[1] is assumed")],
)
def test_assumed_bounds_of_integers_that_are_drawn(least: int, below: int, verdict: str, said: str) -> None:
    def halves(x: Any, t: Any) -> Any:
        return jnp.where((t < 6)[:, None], x[t], x[t])

    assume = [f"{least} <= args[1] < {below}"]
    found = lp.same(halves, _rows, "f32[8,4]", "s32[16]", assume=assume)
    assert found.verdict.value == verdict
    assert said in str(found)


def test_assumed_bounds_reach_what_small_numbers_do_not() -> None:
    def wrong(x: Any, t: Any) -> Any:
        return jnp.where((t < 6)[:, None], x[t], 2 * x[t])

    assert lp.same(wrong, _rows, "f32[8,4]", "s32[16]").verdict is Verdict.SAMPLED
    assert lp.same(wrong, _rows, "f32[8,4]", "s32[16]", assume=["0 <= args[1] < 8"]).verdict is Verdict.REFUTED


def _gather(at: Any, jitted: bool = False) -> Any:
    """Blocks of 8 rows by the numbers of a table. at: of an entry, the block that is taken."""

    def body(t: Any, x: Any, o: Any) -> None:
        o[...] = x[...]

    def kernel(t: Any, x: Any) -> Any:
        grid = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=(4,), in_specs=[pl.BlockSpec((8, 128), lambda i, t: (at(t[i]), 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, t: (i, 0)),
        )  # fmt: skip
        return pl.pallas_call(body, grid_spec=grid, out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32))(t, x)

    return jax.jit(kernel) if jitted else kernel


def _gathered(t: Any, x: Any) -> Any:
    return x.reshape(-1, 8, 128)[t].reshape(32, 128)


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("assume", ["0 <= prefetch0 < 16", "0 <= args[0] < 16", "prefetch0 is page_table(pages=16)"])
def test_what_is_assumed_of_a_table_is_drawn(assume: str, jitted: bool) -> None:
    """A table that is an argument holds what is assumed of it, by either name: small numbers would hide a clamp."""
    for at, verdict in ((lambda k: k, Verdict.SAMPLED), (lambda k: jnp.minimum(k, 7), Verdict.REFUTED)):
        found = lp.same(_gather(at, jitted), _gathered, "s32[4]", "f32[128,128]", assume=[assume])
        assert found.verdict is verdict
        (drawn,) = found.comparison.drawn
        assert {"args[0]:", "15,"} <= set(drawn.split())


def test_a_table_that_is_computed_is_drawn_as_before() -> None:
    """What is assumed of it holds of no argument."""

    def kernel(t: Any, x: Any) -> Any:
        return _gather(lambda k: k)(2 * t, x)

    found = lp.same(kernel, lambda t, x: _gathered(2 * t, x), "s32[4]", "f32[128,128]", assume=["0 <= prefetch0 < 16"])
    assert found.verdict is Verdict.SAMPLED
    assert [drawn.split()[-1] for drawn in found.comparison.drawn] == ["3"]


def test_a_question_of_several_operands_is_named_once_at_its_worst() -> None:
    """The blocks of one operand are in bounds, and those of the other by a table that nobody gave."""

    def body(t: Any, x: Any, o: Any) -> None:
        o[...] = x[...]

    def kernel(t: Any, x: Any) -> Any:
        grid = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=(4,), in_specs=[pl.BlockSpec((8, 128), lambda i, t: (t[i], 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, t: (i, 0)),
        )  # fmt: skip
        return pl.pallas_call(body, grid_spec=grid, out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32))(t, x)

    found = lp.same(kernel, lambda t, x: x.reshape(4, 8, 128)[t].reshape(32, 128), "s32[4]", "f32[32,128]")
    (line,) = [line for line in str(found).splitlines() if line.startswith("  rests on")]
    assert "blocks_in_bounds: unknown; body_in_bounds" in line
    assert line.count("blocks_in_bounds") == 1


@pytest.mark.parametrize(
    ("assume", "said"),
    [
        ("args[1] is monotone", "only numbers as its bounds"),
        ("0 <= args[0] < 8", "args[0] is float32"),
        ("0 <= args[7] < 8", "args[7]"),
        ("nonsense", "an assumption is"),
    ],
)
def test_assumptions_that_say_nothing(assume: str, said: str) -> None:
    with pytest.raises(lp.LayoutError) as error:
        lp.same(_rows, _rows, "f32[8,4]", "s32[16]", assume=[assume])
    assert said in str(error.value)


def test_conditions_need_a_kernel() -> None:
    with pytest.raises(lp.LayoutError, match="is about a kernel, and the function has none"):
        lp.same(_rows, _rows, "f32[8,4]", "s32[16]", where=["grid0 <= 3"])


def test_ctrl_c_in_a_long_product_ends_at_once(tmp_path: Path) -> None:
    """One line, exit code 130, and no abort of a library that is in the middle of its work."""
    (tmp_path / "big.py").write_text(
        "import signal, time\ndef ours(x):\n    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n"
        "    open('started', 'w').close()\n    time.sleep(60)\n    return x\n"
        "def theirs(x):\n    return 1 * x\n"
    )
    # where this is run in the background, Ctrl-C is ignored from the start
    program = "import signal, runpy; signal.signal(signal.SIGINT, signal.default_int_handler)"
    program += "; runpy.run_module('layoutproof', run_name='__main__')"
    command = [sys.executable, "-c", program, "same", "big.py:ours", "--reference", "big.py:theirs"]
    with subprocess.Popen(
        [*command, "--args", "f32[8]"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(lp.__file__).parents[1])},
    ) as process:  # fmt: skip
        while not (tmp_path / "started").exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=40)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")


def test_a_function_is_not_its_own_reference(capsys: pytest.CaptureFixture[str]) -> None:
    for other in ("a.py:f", "./a.py:f"):
        assert run(["same", "a.py:f", "--reference", other, "--args", "f32[8]"]) == 2
        assert "compared with itself" in capsys.readouterr().err


def test_who_ends_the_process_is_named() -> None:
    """It is no answer, and ends nothing of ours."""

    def leaves(x: Any) -> Any:
        raise SystemExit(3)

    with pytest.raises(lp.LayoutError, match="leaves: tracing the function raised SystemExit: 3"):
        lp.same(jnp.sin, leaves, "f32[8]")


@pytest.mark.parametrize(("wrong", "verdict"), [(False, "sampled"), (True, "refuted")])
def test_gradients_through_backward_kernels_with_trees_and_static_arguments(wrong: bool, verdict: str) -> None:
    def scaled(by: Any, x: Any, kind: str) -> Any:
        def body(by: Any, x: Any, o: Any) -> None:
            o[...] = by[...] * x[...] if kind == "product" else by[...] + x[...]

        return pl.pallas_call(body, out_shape=x)(by, x)

    @functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
    def kernel(given: Any, kind: str) -> Any:
        return {"out": scaled(given["by"], given["x"], kind)}

    def backward(kind: str, kept: Any, ct: Any) -> Any:
        other = kept["by"] if wrong else kept["x"]
        return ({"by": scaled(other, ct["out"], kind), "x": scaled(kept["by"], ct["out"], kind)},)

    kernel.defvjp(lambda given, kind: (kernel(given, kind), given), backward)

    def reference(given: Any, kind: str) -> Any:
        return {"out": given["by"] * given["x"] if kind == "product" else None}

    tree = {"by": FLOATS, "x": FLOATS}
    assert lp.same(kernel, reference, tree, "'product'", relations=False).verdict is Verdict.SAMPLED
    found = lp.same(kernel, reference, tree, "'product'", gradient=True, relations=False)
    assert found.verdict.value == verdict
    if wrong:
        assert found.findings[0].counterexample == {"output": (0,), "element": (0, 0)}


@pytest.mark.parametrize(("by", "verdict"), [(0, "sampled"), (1, "refuted")])
def test_of_the_forms_of_one_function_for_several_platforms_that_outside_of_kernels_is_taken(
    by: int, verdict: str
) -> None:
    """`jnp.diagonal` has one for Mosaic; a form for each kind of device would be a branch that nobody decides."""
    found = lp.same(lambda x: jnp.diagonal(x, by).sum(), lambda x: jnp.einsum("ii->", x), "f32[4,4]", relations=False)
    assert found.verdict.value == verdict
    forms = functools.partial(jax.lax.platform_dependent, cpu=jnp.sin, default=jnp.cos)
    decided = lp.same(forms, jnp.cos, "f32[4]")
    assert (decided.verdict.value, "which are platforms" in decided.reason) == ("unknown", True)


@pytest.mark.parametrize(("kept", "verdict"), [(0.9, "sampled"), (0.8, "refuted")])
def test_what_the_code_computes_of_its_own_numbers(kept: float, verdict: str) -> None:
    """Labels that are smoothed: 0.9 + 0.1 / 300 is no number that is read by itself."""
    targets = np.arange(16) * 17

    def theirs(x: Any) -> Any:
        labels = 0.9 * jax.nn.one_hot(targets, 300) + 0.1 / 300
        return -(labels * jax.nn.log_softmax(x, -1)).sum(-1)

    def ours(x: Any) -> Any:
        own = jnp.where(jnp.arange(300) == targets[:, None], x, 0).sum(-1)
        return jax.nn.logsumexp(x, -1) - kept * own - 0.1 * x.sum(-1) / 300

    assert lp.same(ours, theirs, "f32[16,300]").verdict.value == verdict


@pytest.mark.parametrize(("times", "verdict"), [(3, "sampled"), (2, "refuted")])
def test_a_product_that_python_computed_is_read_as_one(times: int, verdict: str) -> None:
    """0.134145 of the gradient of gelu, which JAX makes of 0.044715."""

    def ours(x: Any) -> Any:
        t = jnp.tanh(0.7978845608 * (x + 0.044715 * x**3))
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608 * (1 + times * 0.044715 * x * x)

    def theirs(x: Any) -> Any:
        return jax.grad(lambda x: jax.nn.gelu(x, approximate=True).sum())(x)

    found = lp.same(ours, theirs, ROWS)
    assert found.verdict.value == verdict
    assert ("0.134145007 as 0.0447149985 3" in str(found)) == (verdict == "sampled")


@pytest.mark.parametrize(("size", "verdict"), [(24, "sampled"), (96, "sampled"), (25, "refuted")])
def test_a_scale_by_a_root_that_python_multiplied_with_log2_e(size: int, verdict: str) -> None:
    """As attention folds it into its queries, rounded to float32."""
    scale = np.float32(1.4426950408889634 / np.sqrt(size))

    def ours(q: Any, k: Any) -> Any:
        s = (q * scale) @ k.T
        p = jnp.exp2(s - s.max(-1, keepdims=True))
        return p / p.sum(-1, keepdims=True)

    wide = 24 if size == 25 else size
    found = lp.same(ours, lambda q, k: jax.nn.softmax(q @ k.T / np.sqrt(wide)), f"f32[8,{wide}]", f"f32[8,{wide}]")
    assert found.verdict.value == verdict, found.reason


def test_every_root_that_is_rounded_to_float32_is_read_as_it() -> None:
    """Its square is twice as far from what it stands for as it is itself."""
    numbers = [x for d in range(2, 300) for x in (d**0.5, d**-0.5, d**-0.5 / np.log(2))]
    exact = literals(np.array(numbers))
    rounded = literals(np.array(numbers, np.float32).astype(np.float64))
    assert [exact.text(k) for k in range(len(numbers))] == [rounded.text(k) for k in range(len(numbers))]


@pytest.mark.parametrize(("scale", "verdict"), [(1.0, "sampled"), (0.5, "refuted")])
def test_logarithms_to_base_two(scale: float, verdict: str) -> None:
    """As splash attention keeps them for its gradient: every row of the second output rests on all of them."""

    def ours(x: Any, y: Any) -> Any:
        s = x * 1.4426950408889634
        m = s.max(-1, keepdims=True)
        total = m + jnp.log2(jnp.exp2(s - m).sum(-1, keepdims=True))
        p = jnp.exp2(s - scale * total)
        return p, p.T @ y

    def theirs(x: Any, y: Any) -> Any:
        p = jax.nn.softmax(x, -1)
        return p, p.T @ y

    assert lp.same(ours, theirs, ROWS, "f32[16,8]").verdict.value == verdict


@pytest.mark.parametrize(("more", "verdict"), [(1.0, "unknown"), (1.00001, "refuted")])
def test_what_rounding_a_number_of_the_code_makes_is_no_difference(more: float, verdict: str) -> None:
    """However much of it the function makes: 20,000 times 2^-25 is more than 0.001."""
    scale = 128**-0.5

    def ours(x: Any) -> Any:
        y = x * 20000
        return x * jnp.exp(y * (scale + 1) - y - y * scale * more)

    assert lp.same(ours, lambda x: x, ROWS).verdict.value == verdict
