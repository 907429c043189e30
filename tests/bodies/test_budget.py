"""A question about a body ends at a budget of steps, and costs no more where there are more programs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

jax = pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

from layoutproof.bodies import interpreter  # noqa: E402
from layoutproof.bodies.claims import BodyClaim  # noqa: E402
from layoutproof.bodies.effects import Body  # noqa: E402
from layoutproof.bodies.memory_state import States, _Names  # noqa: E402
from layoutproof.bodies.terms import replaced  # noqa: E402
from layoutproof.bodies.values import Value  # noqa: E402
from layoutproof.core.budget import Budget, budget, most, spend  # noqa: E402
from layoutproof.core.errors import BudgetExceeded  # noqa: E402
from layoutproof.core.result import Verdict  # noqa: E402
from layoutproof.core.term import Term  # noqa: E402
from layoutproof.kernel.kernel import Kernel  # noqa: E402
from layoutproof.pallas import judge as judging  # noqa: E402
from layoutproof.pallas.from_jax.trace import kernels_of  # noqa: E402
from layoutproof.pallas.judge import judge  # noqa: E402

pytestmark = pytest.mark.slow


def masked_rows(programs: int) -> Kernel:
    """A kernel that masks the columns behind 200 and moves row after row in a loop; ten blocks of eight rows."""

    def body(x: Any, o: Any) -> None:
        def step(r: Any, carry: Any) -> Any:
            row = x[pl.ds(r, 1), :]
            o[pl.ds(r, 1), :] = jnp.where(jax.lax.broadcasted_iota(jnp.int32, (1, 256), 1) < 200, row, 0)
            return carry

        jax.lax.fori_loop(0, 8, step, 0)

    spec = pl.BlockSpec((8, 256), lambda i: (i // (programs // 10), 0))
    shape = jax.ShapeDtypeStruct((80, 200), jnp.float32)
    function = pl.pallas_call(body, grid=(programs,), in_specs=[spec], out_specs=spec, out_shape=shape)
    (call,) = kernels_of(function, (shape,))
    assert isinstance(call, Kernel)
    return call


def test_what_is_spent_is_spent_within_and_not_around() -> None:
    with budget(100) as outer:
        spend(60)
        assert most(70) == 40
        with budget(10), pytest.raises(BudgetExceeded, match="the budget of 10 steps"):
            spend(11)
        spend(40)
    assert outer.left == 0
    spend(1_000_000)


def test_rewriting_a_term_and_asking_for_an_element_are_steps() -> None:
    term = Term("name", "i")
    for k in range(800):
        term = Term("+", term, Term("int", k))
    array = Value((1_000,), None, lambda index: index[0])
    with budget(10_000) as mine:
        replaced(term, lambda part: None)
        rewritten = mine.left
        array.number((Term("int", 0),))
    assert rewritten <= 10_000 - 1_601 // 8
    assert mine.left < rewritten
    with budget(100), pytest.raises(BudgetExceeded):
        replaced(term, lambda part: None)


def test_a_question_over_budget_is_unknown_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    call = masked_rows(10)
    names = ["body_in_bounds", "outputs_stored", "undefined_values"]
    assert {f.verdict for f in judge(call, names=names)} == {Verdict.PROVED}
    monkeypatch.setattr(judging, "STEPS", 10)
    found = [f for f in judge(call, names=names) if f.verdict is not Verdict.PROVED]
    assert {f.question for f in found} >= {"outputs_stored", "undefined_values"}
    assert {f.verdict for f in found} == {Verdict.UNKNOWN}
    assert all("the budget of 10 steps" in f.reason and "report" not in f.reason for f in found)
    # more effort is more steps
    monkeypatch.setattr(judging, "STEPS", 100_000)
    assert {f.verdict for f in judge(call, names=names, effort=2)} == {Verdict.PROVED}


def test_what_asks_much_of_a_kernel_has_two_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """247 easy questions about one kernel were more than one budget holds."""
    call = masked_rows(10)
    assert {f.verdict for f in judge(call, names=["body_in_bounds"])} == {Verdict.PROVED}
    steps = next(n for n in range(1, 10_000) if _proved(call, n, monkeypatch))
    assert not _proved(call, 1 + steps // 2, monkeypatch)
    monkeypatch.setattr(judging, "MANY", 1)
    assert _proved(call, 1 + steps // 2, monkeypatch)


def _proved(call: Kernel, steps: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(judging, "STEPS", steps)
    return {f.verdict for f in judge(call, names=["body_in_bounds"])} == {Verdict.PROVED}


def test_a_thousand_million_programs_cost_as_much_as_ten(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Budget] = []

    @contextmanager
    def noted(steps: int, effort: int = 1) -> Iterator[Budget]:
        with budget(steps, effort) as one:
            opened.append(one)
            yield one

    monkeypatch.setattr(judging, "budget", noted)
    spent = []
    for programs in (10, 10**9):
        opened.clear()
        assert {f.verdict for f in judge(masked_rows(programs)) if f.severity == "error"} == {Verdict.PROVED}
        spent.append(sum(one.steps - one.left for one in opened))
    ten, many = spent
    assert 0 < many < 2 * ten + 1_000


def test_where_no_steps_are_left_for_what_loops_keep_the_rest_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    def body(x: Any, o: Any) -> None:
        def halve(carry: Any) -> Any:
            low, high = carry
            middle = (low + high) // 2
            return jnp.where(middle % 3 == 0, middle + 1, low), jnp.where(middle % 3 == 0, high, middle)

        low, _ = jax.lax.while_loop(lambda carry: carry[0] < carry[1], halve, (0, 7))
        o[...] = x[...]
        o[pl.ds(low, 1)] = x[pl.ds(low, 1)]

    shape = jax.ShapeDtypeStruct((8, 128), jnp.float32)

    def verdicts() -> dict[str, Verdict]:
        (call,) = kernels_of(pl.pallas_call(body, out_shape=shape), (shape,))
        assert isinstance(call, Kernel)
        found = judge(call, names=["body_in_bounds", "outputs_stored", "undefined_values"])
        return {name: min(f.verdict for f in found if f.question == name) for name in {f.question for f in found}}

    assert set(verdicts().values()) == {Verdict.PROVED}
    monkeypatch.setattr(interpreter, "INVARIANTS", 10)
    without = verdicts()
    assert without.pop("body_in_bounds") is Verdict.UNKNOWN
    assert set(without.values()) == {Verdict.PROVED}


def rows_of_rows(x_ref: Any, o_ref: Any, first: Any, second: Any) -> None:
    """A loop in a loop, each of which reads what the other has left."""

    def turn(i: Any, carry: Any) -> Any:
        count = x_ref[i, 0].astype(jnp.int32) % 8
        first[pl.ds(i, 1), :] = second[pl.ds(count, 1), :]

        def inner(j: Any, inside: Any) -> Any:
            second[pl.ds(j, 1), :] = first[pl.ds(i, 1), :] + x_ref[pl.ds(j, 1), :]
            return inside

        return jax.lax.fori_loop(0, count, inner, carry)

    jax.lax.fori_loop(0, 8, turn, 0)
    o_ref[...] = first[...] + second[...]


def test_no_candidate_is_asked_again_under_other_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an invariant is asked again for another one's sake, and is the same question, costs nothing."""
    spec, scratch = pl.BlockSpec((8, 128), lambda i: (i, 0)), pltpu.VMEM((8, 128), jnp.float32)
    shape = jax.ShapeDtypeStruct((32, 128), jnp.float32)
    function = pl.pallas_call(
        rows_of_rows, grid=(4,), in_specs=[spec], out_specs=spec, out_shape=shape, scratch_shapes=[scratch, scratch]
    )
    (kernel,) = kernels_of(function, (shape,))
    posed: list[tuple[int, str]] = []
    states: list[States] = []
    tried: list[int] = []
    claim, excludes = States._claim, States._excludes
    within: list[bool] = []

    def recorded(self: States, whole: Term, elements: Mapping[str, int]) -> BodyClaim | None:
        if within:
            called: dict[str, str] = {}
            text = re.sub(r"(k|t|any|load)_[0-9]+", lambda m: called.setdefault(m[0], f"#{len(called)}"), str(whole))
            posed.append((id(self), f"{text} {elements}"))
            # one that is kept has an id of its own
            states.append(self)
        return claim(self, whole, elements)

    def counted(self: States, conditions: Sequence[Term], elements: Mapping[str, int]) -> bool:
        tried.append(1)
        within.append(True)
        try:
            return excludes(self, conditions, elements)
        finally:
            within.pop()

    monkeypatch.setattr(States, "_claim", recorded)
    monkeypatch.setattr(States, "_excludes", counted)
    assert isinstance(kernel, Kernel)
    judge(kernel, names=["initialised", "undefined_values"])
    assert len(tried) > len(posed) > 0
    assert len(set(posed)) == len(posed)


def test_names_that_stand_for_other_numbers_are_another_question() -> None:
    names = _Names(Body((), ()))
    one, other, more = names.some(4), names.some(4), names.some(5)
    zero = Term("int", 0)
    assert names.alike(Term("<", one, zero)) == names.alike(Term("<", other, zero))
    assert names.alike(Term("<", one, zero)) != names.alike(Term("<", more, zero))
    assert names.alike(Term("<", one, one)) != names.alike(Term("<", one, other))
    assert names.alike(Term("<", one, other)) == names.alike(Term("<", other, one))
