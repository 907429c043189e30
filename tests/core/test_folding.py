"""Folding: every rule is proved, a wrong rule is refuted, and what is folded has the value that it had."""

from __future__ import annotations

import math
import random
from itertools import product
from typing import Any, get_args

import pytest
import z3

from layoutproof.core.folding import FALSE, RULES, TRUE, Rule, all_of, any_of, fold, folded, negation
from layoutproof.core.numbers import INTS
from layoutproof.core.operations import CONDITIONS, OPERATIONS, Op, operation
from layoutproof.core.term import ONE, ZERO, Term, every, rebuilt
from layoutproof.pallas import records
from layoutproof.solvers.interval import Interval
from layoutproof.solvers.smt.bounded import Bounded, BoundedNumbers, term_of
from layoutproof.solvers.smt.plain import Plain

X, Y, P = (Term("name", name) for name in "xyp")
WRONG = (
    Rule("taken from nothing", Term("-", ZERO, X), X),
    Rule("times nothing", Term("*", X, ZERO), X),
    Rule("the other arm", Term("select", TRUE, X, Y), Y),
    Rule("or what holds", Term("or", P, TRUE), P),
    Rule("one divided", Term("//", ONE, X), X),
    Rule("not", Term("not", P), P),
    Rule("the smaller", Term("min", X, Y), X),
)


def refuted(rule: Rule) -> dict[str, Any] | None:
    """Integers and truth values for which the sides of a rule differ; None where z3 proves that there are none."""
    plain = Plain()
    on = BoundedNumbers(plain, {})
    unknowns = {"x": z3.Int("x"), "y": z3.Int("y"), "p": z3.Bool("p")}
    values = {
        name: unknown if name == "p" else Bounded(plain, Interval(-math.inf, math.inf), unknown)
        for name, unknown in unknowns.items()
    }
    long, short = rule.long.evaluate(values, on), rule.short.evaluate(values, on)
    solver = z3.Solver()
    solver.add(*plain.assumed)
    if rule.long.op in CONDITIONS:
        solver.add(_truth(long) != _truth(short))
    else:
        solver.add(term_of(plain, long) != term_of(plain, short))
    answer = solver.check()
    assert answer in (z3.sat, z3.unsat)
    return None if answer == z3.unsat else {name: solver.model().eval(u, True) for name, u in unknowns.items()}


def _truth(value: Any) -> Any:
    return z3.BoolVal(value) if isinstance(value, bool) else value


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_is_proved_for_all_integers(rule: Rule) -> None:
    assert refuted(rule) is None
    # and folding obeys it
    assert fold(rule.long.op, *rule.long.args) is rule.short


@pytest.mark.parametrize("rule", WRONG, ids=lambda rule: rule.name)
def test_a_wrong_rule_is_refuted(rule: Rule) -> None:
    found = refuted(rule)
    assert found is not None


def test_the_rules_have_names_of_their_own() -> None:
    assert len({rule.name for rule in RULES}) == len({rule.long for rule in RULES}) == len(RULES)


def any_term(rng: random.Random, depth: int, gives: str) -> Term:
    """A random term of integers or truth values; divisors and shifts are constants."""
    if depth == 0:
        if gives == "condition":
            return rng.choice((TRUE, FALSE, Term("<", X, Y), Term("==", X, Term("int", rng.randrange(-2, 3)))))
        return rng.choice((X, Y, Term("int", rng.randrange(-3, 4)), ZERO, ONE))
    known = [name for name, each in OPERATIONS.items() if each.operands and each.gives == gives]
    op = operation(rng.choice(known))
    parts = [any_term(rng, rng.randrange(depth), kind) for kind in OPERATIONS[op].operands]
    if op in ("//", "%", "truncdiv", "truncrem", "shl", "multiple_of"):
        parts[1] = Term("int", rng.randrange(1, 4))
    return Term(op, *parts)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_folded_has_the_value_that_it_had(seed: int) -> None:
    rng = random.Random(f"folding {seed}")
    shorter = 0
    for _ in range(400):
        term = any_term(rng, 4, rng.choice(("number", "condition")))
        short = rebuilt(term, lambda part, made: folded(made))
        assert short.weight <= term.weight or short in (TRUE, FALSE)
        shorter += short is not term
        for x, y in product((-129, -2, -1, 0, 1, 3, 1 << 33), (-1, 0, 2)):
            names = {"x": x, "y": y}
            assert term.evaluate(names, INTS) == short.evaluate(names, INTS), (term, short)
        # what has no name in it is one number or truth value
        assert short.names() or len(every(short)) == 1 or short in (TRUE, FALSE), short
    assert shorter > 200


def test_a_division_by_nothing_stays_for_whoever_asks_about_it() -> None:
    assert fold("//", ONE, ZERO) is Term("//", ONE, ZERO)
    assert fold("%", ONE, Term("int", -2)) is Term("%", ONE, Term("int", -2))
    assert fold("shl", ONE, Term("int", 64)) is Term("shl", ONE, Term("int", 64))


def test_conditions_together() -> None:
    few = Term("<", X, Y)
    assert all_of([]) is TRUE
    assert any_of([]) is FALSE
    assert all_of([TRUE, few, few]) is few
    assert any_of([FALSE, few, few]) is few
    assert all_of([few, FALSE]) is FALSE
    assert any_of([few, TRUE]) is TRUE
    assert negation(negation(few)) is few


def test_the_operations_are_closed() -> None:
    assert set(get_args(Op)) == set(OPERATIONS)
    with pytest.raises(ValueError, match="there is no operation 'power' of terms"):
        Term("power", X, Y)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="there is no operation 'power' of terms"):
        records._term_of(["power", "x", 2])
