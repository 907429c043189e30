"""JAX beside a refutation: it confirms it, says nothing where rounding or waiting hides it, or disagrees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import layoutproof as lp
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.values.compare import Comparison
from layoutproof.values.witness import Witness

pytestmark = pytest.mark.slow

jax = pytest.importorskip("jax")
jnp = jax.numpy
same_cases = pytest.importorskip("tests.values.same_cases")
run_traced = pytest.importorskip("layoutproof.pallas.from_jax.run_traced")
second_witness = pytest.importorskip("layoutproof.questions.second_witness")


def test_a_wrong_kernel_is_wrong_in_jax_too() -> None:
    """At the same element, with both numbers; programs get them by name."""
    found = lp.same(same_cases.matmul("mask short"), lambda x, y: x @ y, "f32[32,48]", "f32[48,32]")
    assert found.verdict is Verdict.REFUTED
    assert "JAX's interpreter: differs too at [0, 0]: " in str(found)
    assert found.as_dict()["second_witness"].startswith("differs too at [0, 0]")


def test_a_right_kernel_has_no_witness() -> None:
    """Nothing runs where nothing is refuted."""
    found = lp.same(same_cases.matmul(), lambda x, y: x @ y, "f32[32,48]", "f32[48,32]")
    assert found.verdict is Verdict.PROVED or found.verdict is Verdict.SAMPLED
    assert "interpreter" not in str(found)


@pytest.mark.parametrize("gradient", [False, True])
def test_loops_and_gradients_and_chosen_outputs(gradient: bool) -> None:
    """What is compared is what runs."""

    def ours(x: Any) -> Any:
        total = jax.lax.fori_loop(0, 5, lambda k, a: a + x * k, jnp.zeros_like(x))
        return jnp.sin(x), total * x

    def theirs(x: Any) -> Any:
        return jnp.sin(x), 11 * x * x

    outputs = None if gradient else [1]
    found = lp.same(ours, theirs, "f32[4,8]", gradient=gradient, outputs=outputs)
    assert found.verdict is Verdict.REFUTED
    assert found.comparison.second.startswith("differs too at ")


def test_a_difference_below_the_rounding_of_its_type() -> None:
    """bfloat16 hides what float64 shows: it stays refuted."""

    def ours(x: Any) -> Any:
        return (jnp.sin(x.astype(jnp.float32)) * 1.0001).astype(x.dtype)

    found = lp.same(ours, jnp.sin, "bf16[8,128]")
    assert found.verdict is Verdict.REFUTED
    assert found.comparison.second.startswith("says nothing: rounding hides")


def _differs(theirs: Any, ours: float, reference: float, premises: Verdict, x: Any) -> Comparison:
    """What a walk would say that is wrong of x + x, or not."""
    witness = Witness(0, (0,), ours, reference, 1, 3, 1, 1, 1.0, (x,))
    traced = [jax.make_jaxpr(f)(x.astype(np.float32)) for f in (lambda x: [x + x], theirs)]
    found = Comparison(Verdict.REFUTED, "output 0[0] is 3, and the reference's 2", witness=witness)
    finding = Finding("dma_order", "k", "", verdict=premises)
    answer: Comparison = second_witness.witnessed(traced, found, (finding,), None)
    return answer


def test_two_witnesses_that_disagree_refute_nothing() -> None:
    """A walk that is wrong is no refutation, and both are shown; but where order is open, JAX settles nothing."""
    x = np.ones(3)
    found = _differs(lambda x: [2 * x], 3.0, 2.0, Verdict.PROVED, x)
    assert found.verdict is Verdict.UNKNOWN
    assert "two witnesses disagree: on float64 output 0[0] is 3" in found.reason
    assert "[0]: 2 and the reference 2" in found.reason
    assert _differs(lambda x: [2 * x], 3.0, 2.0, Verdict.UNKNOWN, x).verdict is Verdict.REFUTED
    # the right twin: JAX has the difference as well
    assert _differs(lambda x: [x], 2.0, 1.0, Verdict.PROVED, x).second.startswith("differs too")
    # undefined memory is nothing that it knows
    assert _differs(lambda x: [2 * x], float("nan"), 2.0, Verdict.PROVED, x).verdict is Verdict.REFUTED


def test_what_does_not_run() -> None:
    """Large grids, and loops that floats end, have bounds of steps and not of time."""

    def slow(x: Any) -> Any:
        return jax.lax.while_loop(lambda s: s[0] < 3.0, lambda s: (s[0] + 1, s[1]), (0.0, x))

    assert "floats decide" in run_traced.too_much(jax.make_jaxpr(slow)(1.0))
    assert run_traced.too_much(jax.make_jaxpr(lambda x: jax.lax.fori_loop(0, x, lambda k, a: a + k, 0))(3)) == ""
    many = jax.make_jaxpr(lambda x: [x := x + 1.0 for _ in range(run_traced.MOST_EQUATIONS + 1)])(1.0)
    assert "equations" in run_traced.too_much(many)
    assert "debug" in run_traced.too_much(jax.make_jaxpr(lambda x: (jax.debug.print("{}", x), x + 1)[1])(1.0))
