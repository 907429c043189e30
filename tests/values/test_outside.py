"""Right places and wrong numbers: every kind is refuted, its right twin is not; and what cheats are told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import layoutproof as lp

pytestmark = pytest.mark.slow

jax = pytest.importorskip("jax", reason="kernels are JAX's")
jnp = jax.numpy
cases = pytest.importorskip("tests.values.outside_cases")


@pytest.mark.parametrize("case", cases.OUTSIDE, ids=[case.name for case in cases.OUTSIDE])
@pytest.mark.parametrize("wrong", [False, True], ids=["right", "wrong"])
def test_right_places_and_wrong_numbers(case: Any, wrong: bool) -> None:
    """The verdict of the values, of the right and of the wrong one."""
    found = lp.same(case.build(wrong), case.reference, *case.arguments)
    said = found.verdict.value
    # sums of products are compared as relations, too
    assert ("sampled" if said == "proved" else said) == case.says[wrong], found.reason


def test_a_sum_that_starts_at_1_is_told_apart_by_nothing() -> None:
    """Over the reals it is right, and stable; neither line complains."""
    case = next(c for c in cases.OUTSIDE if c.name.endswith("starts at 1"))
    assert "\n  stable " in str(lp.same(case.build(True), case.reference, *case.arguments))


@pytest.mark.parametrize(
    ("function", "shapes", "verdict"), [c[1:] for c in cases.CHEATS], ids=[c[0] for c in cases.CHEATS]
)
def test_what_cheats_are_told(function: Any, shapes: tuple[str, ...], verdict: str) -> None:
    """Zeros, copies, cached results, partial stores: refuted. What is right at these shapes is sampled at them."""
    found = lp.same(function, cases.layer, *shapes)
    assert found.verdict.value == verdict, found.reason


def test_a_lower_precision_path_is_no_secret() -> None:
    """bfloat16 is the same over the reals; beside it stands the type that sums are kept in."""
    kept = {name: lp.same(function, cases.layer, *shapes) for name, function, shapes, _ in cases.CHEATS[::10]}
    assert {s.dtype for s in kept["none"].comparison.sums} == {"float32"}
    assert {s.dtype for s in kept["in bfloat16"].comparison.sums} == {"bfloat16"}
    assert "sums kept in  bfloat16" in str(kept["in bfloat16"])


def _first_only(times: int) -> Any:
    """Right when it is traced for the first few times."""
    calls = []

    def function(x: Any, w: Any) -> Any:
        calls.append(1)
        return cases.layer(x, w) if len(calls) <= times else jnp.zeros((x.shape[0], w.shape[1]), x.dtype)

    return function


def _of_another_name() -> Any:
    """A primitive that has the name of JAX's `mul`, and adds."""
    from jax.extend.core import Primitive

    other = Primitive("mul")
    other.def_abstract_eval(lambda a, b: a)
    other.def_impl(lambda a, b: a + b)
    return lambda x: other.bind(x, x)


def _by_callback(x: Any) -> Any:
    return jax.pure_callback(lambda a: np.asarray(a) * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def _narrow(name: str) -> Any:
    return lambda x: x.astype(getattr(jnp, name)).astype(jnp.float32)


@jax.custom_vjp
def _right(x: Any) -> Any:
    return x * x


_right.defvjp(lambda x: (x * x, x), lambda x, g: (2 * x * g,))


@jax.custom_vjp
def _zeros(x: Any) -> Any:
    return x * x


_zeros.defvjp(lambda x: (jnp.zeros_like(x), x), lambda x, g: (2 * x * g,))


def _clipped(x: Any, divided: bool) -> Any:
    """x, divided by its norm where that is above 1."""
    size = jnp.sqrt((x * x).sum())
    return jnp.where(size > 1, x / size if divided else x, x)


VECTOR = ("f32[64]",)
HIDDEN: list[tuple[str, Any, Any, dict[str, Any], str]] = [
    ("right when it is traced once", _first_only(1), cases.layer, {}, "refuted"),
    ("right when it is traced twice", _first_only(2), cases.layer, {}, "refuted"),
    ("right whenever it is traced", _first_only(9), cases.layer, {}, "sampled"),
    ("another primitive of the name", _of_another_name(), lambda x: x * x, {}, "unknown"),
    ("JAX's own of the name", lambda x: x * x, lambda x: jnp.square(x), {}, "proved"),
    ("by Python", _by_callback, lambda x: 2 * x, {}, "unknown"),
    ("by Python, both", _by_callback, _by_callback, {}, "unknown"),
    ("for its effects alone", lambda x: (jax.debug.callback(lambda a: None, x), 2 * x)[1], lambda x: x + x, {},
     "proved"),
    ("few bits", lambda x: jax.lax.reduce_precision(x, 5, 2), lambda x: x, {}, "refuted"),
    ("few bits, both", lambda x: jax.lax.reduce_precision(2 * x, 5, 2),
     lambda x: jax.lax.reduce_precision(x + x, 5, 2), {}, "sampled"),
    ("few bits before exp", lambda x: jnp.exp(jax.lax.reduce_precision(x, 5, 2)), jnp.exp, {}, "refuted"),
    ("another float8 of 4 and 3 bits", _narrow("float8_e4m3fn"), _narrow("float8_e4m3b11fnuz"), {}, "refuted"),
    ("another float8 of 5 and 2 bits", _narrow("float8_e5m2"), _narrow("float8_e5m2fnuz"), {}, "refuted"),
    ("the same float8", lambda x: _narrow("float8_e5m2")(2 * x), lambda x: _narrow("float8_e5m2")(x + x), {},
     "sampled"),
    ("another number for 0", lambda x: jnp.where(x == 0, 1.0, x), lambda x: x, {}, "unknown"),
    ("the same number for 0", lambda x: jnp.where(x == 0, 0.0, x), lambda x: x, {}, "sampled"),
    ("another branch for large ones", lambda x: jnp.where((x * x).sum() > 1, x, x + 1), lambda x: x + 1, {}, "refuted"),
    ("left as it is, where it is large", lambda x: _clipped(x, False), lambda x: _clipped(x, True), {}, "refuted"),
    ("divided, where it is large", lambda x: _clipped(x, True), lambda x: _clipped(2 * x - x, True), {}, "sampled"),
    ("an odd function", lambda x: jax.lax.erf(-x) + jnp.cos(-x), lambda x: jnp.cos(x) - jax.lax.erf(x), {}, "sampled"),
    ("an even one, as odd", lambda x: jnp.cos(-x), lambda x: -jnp.cos(x), {}, "refuted"),
    ("an odd one, as even", lambda x: jnp.sin(-x), jnp.sin, {}, "refuted"),
    ("a choice of JAX by platforms", lambda x: jnp.diagonal(x[:, None] * x), lambda x: x * x, {}, "sampled"),
    ("a choice by platforms", lambda x: jax.lax.platform_dependent(x, cpu=lambda x: x, default=jnp.zeros_like),
     lambda x: x, {}, "unknown"),
    ("decay that is stated as one number", lambda x: x * (1 - 1e-5), lambda x: x - 1e-3 * (0.01 * x), {}, "proved"),
    ("decay that is left out", lambda x: x, lambda x: x - 1e-3 * (0.01 * x), {}, "refuted"),
    ("a factor that is rounding", lambda x: x * 1.0000002, lambda x: x, {}, "unknown"),
    ("another value beside its gradient", _zeros, lambda x: x * x, {"gradient": True}, "refuted"),
    ("the value beside its gradient", _right, lambda x: x * x, {"gradient": True}, "proved"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "reference", "more", "verdict"), [c[1:] for c in HIDDEN], ids=[c[0] for c in HIDDEN]
)
def test_what_is_hidden_from_a_trace(function: Any, reference: Any, more: dict[str, Any], verdict: str) -> None:
    """State of the process, Python that runs later, names, fewer bits, ties: each with a twin that is right."""
    found = lp.same(function, reference, *(cases.SHAPES if reference is cases.layer else VECTOR), **more)
    assert found.verdict.value == verdict, found.reason


def test_a_function_that_is_two_programs_says_so() -> None:
    """Which of the two the answer is about."""
    found = lp.same(_first_only(1), cases.layer, *cases.SHAPES)
    assert any("traced twice" in note and "second" in note for note in found.comparison.notes)
    assert "==" in lp.same(lambda x: jnp.where(x == 0, 0.0, x), lambda x: x, *VECTOR).comparison.axioms


@pytest.mark.parametrize(
    ("scale", "verdict", "said"),
    [
        (1.0, "unknown", "an order of data: 1 of 3 outputs rests on top_k at "),
        (2.0, "refuted", "output 2"),
    ],
)
@pytest.mark.parametrize("relations", [True, False])
def test_outputs_that_rest_on_no_order_are_compared(scale: float, verdict: str, said: str, relations: bool) -> None:
    """What is not modelled leaves its own outputs unknown, and hides nothing of the others."""

    def by(scale: float) -> Any:
        def function(x: Any, w: Any) -> tuple[Any, Any, Any]:
            y = x @ w
            return y, jax.lax.top_k(jax.nn.softmax(y), 2)[0], scale * jnp.exp(x).sum()

        return function

    found = lp.same(by(scale), by(1.0), "f32[4,8]", "f32[8,8]", relations=relations)
    assert (found.verdict.value, said in found.reason) == (verdict, True), found.reason
    assert (
        found.findings[0].place.endswith("test_outside.py:" + str(by.__code__.co_firstlineno + 3))
        or verdict != "unknown"
    )


def _in_parts(function: Any) -> Any:
    mesh = jax.sharding.AbstractMesh((2,), ("d",), (jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("d")
    return jax.shard_map(function, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)


@pytest.mark.parametrize(
    "wrap", [jax.jit, lambda f: jax.jit(jax.checkpoint(f)), _in_parts], ids=["jit", "remat", "map"]
)
@pytest.mark.parametrize(("scale", "verdict"), [(1.0, "unknown"), (2.0, "refuted")])
def test_a_call_hides_no_output(wrap: Any, scale: float, verdict: str) -> None:
    """What is called gives each of its results for itself: those that rest on an order are named, with the line."""

    def by(scale: float) -> Any:
        def function(x: Any) -> tuple[Any, Any, Any]:
            return jnp.tanh(x), jax.lax.top_k(x, 2)[0], scale * jnp.exp(x)

        return wrap(function)

    found = lp.same(by(scale), by(1.0), "f32[4,8]")
    line = by.__code__.co_firstlineno + 2
    words = f"1 of 3 outputs rests on top_k at {__file__}:{line}"
    assert found.verdict.value == verdict, found.reason
    said = found.reason if verdict == "unknown" else " ".join(found.comparison.notes)
    assert words.rpartition("/")[2] in said, said


@pytest.mark.parametrize(("first", "verdict"), [(0, "sampled"), (1, "refuted")])
def test_what_few_draws_show_is_looked_for_in_more(first: int, verdict: str) -> None:
    """A maximum that leaves one column out is another one where that column holds it: in no row of the first draw."""
    ours, theirs = (lambda x, k=k: jax.nn.softmax(x) * x[:, k:].max(-1, keepdims=True) for k in (first, 0))
    found = lp.same(ours, theirs, "f32[4,8]")
    assert found.verdict.value == verdict, found.reason
