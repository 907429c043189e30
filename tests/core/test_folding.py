"""Folding: every rule is proved, a wrong rule is refuted, and what is folded has the value that it had."""

from __future__ import annotations

import math
import random
from itertools import product
from typing import Any, get_args

import pytest
import z3

from layoutproof.core.folding import FALSE, NUMBER_RULES, RULES, TRUE, Rule, all_of, any_of, fold, folded, negation
from layoutproof.core.numbers import INTS
from layoutproof.core.operations import CONDITIONS, OPERATIONS, Op, operation
from layoutproof.core.term import ONE, ZERO, Term, bind, every, rebuilt
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


M, N = Term("name", "m"), Term("name", "n")
SOME = (-129, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 12, 1 << 31)
"""Numbers for which each rule about numbers is proved, all pairs of which it may be used."""


def of_numbers(rule: Rule) -> list[tuple[dict[str, int], Rule]]:
    """The rule with each two numbers of which it may be used, and what they are."""
    found = []
    for numbers in ({"m": m, "n": n} for m, n in product(SOME, repeat=2)):
        if _divides(rule.where, numbers) and rule.where.evaluate(numbers, INTS):
            found.append((numbers, Rule(rule.name, bind(rule.long, numbers), bind(rule.short, numbers))))
    return found


def _divides(where: Term, numbers: dict[str, int]) -> bool:
    """Whether a condition says nothing of a rest by nothing."""
    return "%" not in str(where) or numbers["n"] != 0


@pytest.mark.parametrize("rule", NUMBER_RULES, ids=lambda rule: rule.name)
def test_every_rule_about_numbers_is_proved_for_all_integers(rule: Rule) -> None:
    told = of_numbers(rule)
    assert len(told) > 10
    for numbers, each in told:
        assert refuted(each) is None, numbers
        # folding obeys it, or another rule that says the same shorter
        said = fold(each.long.op, *each.long.args)
        assert said.weight <= each.long.weight
        for x in (-1_000_003, -7, 0, 5, 1 << 40):
            assert said.evaluate({"x": x}, INTS) == each.long.evaluate({"x": x}, INTS)


@pytest.mark.parametrize("rule", NUMBER_RULES, ids=lambda rule: rule.name)
def test_no_rule_hides_a_number_that_is_larger_than_what_stays(rule: Rule) -> None:
    """Or what wraps at 32 bits would not be seen any more."""
    for numbers, each in of_numbers(rule):
        for x in (-(1 << 31), -1000, -5, -1, 0, 1, 3, 1000, (1 << 31) - 1):
            seen = [part.evaluate({"x": x}, INTS) for part in every(each.long)]
            stays = [x, *numbers.values(), each.short.evaluate({"x": x}, INTS)]
            assert max(map(abs, seen)) <= max(map(abs, stays)), (each, x)


WRONG_OF_NUMBERS = (
    Rule("divided by the sum", Term("//", Term("//", X, M), N), Term("//", X, Term("+", M, N)), Term("<", ZERO, M)),
    Rule("what the first leaves", Term("%", Term("%", X, M), N), Term("%", X, N)),
    Rule("taken from a number", Term("-", M, X), Term("-", X, M)),
    Rule("added and taken away", Term("-", Term("+", X, M), N), Term("+", X, Term("+", M, N))),
)


@pytest.mark.parametrize("rule", WRONG_OF_NUMBERS, ids=lambda rule: rule.name)
def test_a_wrong_rule_about_numbers_is_refuted(rule: Rule) -> None:
    told = [{"m": m, "n": n} for m, n in product((2, 3), repeat=2)]
    rules = [Rule(rule.name, bind(rule.long, numbers), bind(rule.short, numbers)) for numbers in told]
    assert any(refuted(each) is not None for each in rules)


@pytest.mark.parametrize(
    ("term", "shown"),
    [
        (Term("*", Term("int", 2), X), "x * 2"),
        (Term("+", Term("int", 2), X), "x + 2"),
        (Term("*", Term("*", Term("int", 4), X), Term("int", 2)), "x * 4 * 2"),
        (Term("//", Term("//", X, Term("int", 4)), Term("int", 2)), "x // 8"),
        (Term("%", Term("%", X, Term("int", 12)), Term("int", 4)), "x % 12 % 4"),
        (Term("%", Term("%", X, Term("int", 4)), Term("int", 12)), "x % 4 % 12"),
        (Term("%", Term("%", X, Term("int", 12)), Term("int", 8)), "x % 12 % 8"),
        (Term("//", Term("%", X, Term("int", 4)), Term("int", 4)), "x % 4 // 4"),
        (Term("//", Term("%", X, Term("int", 5)), Term("int", 4)), "x % 5 // 4"),
        (Term("-", Term("+", X, Term("int", 5)), Term("int", 5)), "x + 5 - 5"),
        (Term("-", Term("int", 5), X), "5 - x"),
    ],
)
def test_numbers_stand_on_the_right(term: Term, shown: str) -> None:
    assert str(rebuilt(term, lambda part, made: folded(made))) == shown


def test_the_rules_have_names_of_their_own() -> None:
    assert len({rule.name for rule in RULES}) == len({rule.long for rule in RULES}) == len(RULES)
    assert len({rule.name for rule in (*RULES, *NUMBER_RULES)}) == len(RULES) + len(NUMBER_RULES)


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
    for divisors in ((-3, 2), (3, -2), (0, 2), (2, 0)):
        first, second = (Term("int", number) for number in divisors)
        twice = Term("//", Term("//", X, first), second)
        assert fold("//", *twice.args) is twice


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


Q, R = (Term("name", name) for name in "qr")


def test_a_condition_that_says_no_more_is_left_out() -> None:
    """p or (p and q) is p, whichever stands first, through chains of conjunctions and of disjunctions."""
    both = fold("and", Q, P)
    assert fold("or", P, both) is P
    assert fold("or", both, P) is P
    choice = fold("or", fold("and", Q, P), fold("and", R, fold("and", P, X)))
    assert fold("or", P, choice) is P
    assert fold("or", fold("or", Q, P), fold("and", R, choice)) is fold("or", Q, P)
    # q alone may hold without p
    assert fold("or", P, fold("or", both, Q)).op == "or"


@pytest.mark.parametrize("seed", range(60))
def test_absorption_keeps_the_truth_of_random_conditions(seed: int) -> None:
    """Held against the terms as they are, for all truth values; some of them become shorter."""
    rng = random.Random(seed)
    names = "pqrs"

    def condition(depth: int, folds: bool) -> Term:
        op = rng.choice(("name", "and", "or", "not")) if depth else "name"
        if op == "name":
            return Term("name", rng.choice(names))
        parts = [condition(depth - 1, folds) for _ in range(1 if op == "not" else 2)]
        return fold(op, *parts) if folds else Term(op, *parts)  # type: ignore[arg-type]

    state = rng.getstate()
    plain = condition(6, False)
    rng.setstate(state)
    short = condition(6, True)
    for values in product((False, True), repeat=len(names)):
        given = dict(zip(names, values, strict=True))
        assert plain.evaluate(given, INTS) == short.evaluate(given, INTS)
    assert len({*every(short)}) <= len({*every(plain)})
