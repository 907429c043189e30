"""Folding: an operation is said shorter where a rule shows that nothing changes by it.

`fold` makes the term of an operation, as `Term` does, and rewrites it by the first rule that matches; an operation on
numbers becomes its value. A rule is data: its left side may be rewritten to its right side for all values of its
names. Every rule is proved, for all integers and truth values, by the solvers of this package
(tests/core/test_folding.py), which is why it may be used everywhere. One law is no such rule, since it looks through
chains of operations: absorption, which holds for all truth values (`_absorbed`). No rule takes two steps of a sum, a
product or a rest as one, so that what wraps at 8 or 32 bits is still seen where it was written: `(x + 5) - 5` and
`x % 256 % 256` stay as they are. Numbers stand on the right. Compare the rules of Halide's simplifier, which are
proved in the same way (Newcomb et al., "Verifying and Improving Halide's Term Rewriting System", OOPSLA 2020).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from typing import NamedTuple

from layoutproof.core.numbers import INTS
from layoutproof.core.operations import COMPARISONS, OPERATIONS, Op, apply
from layoutproof.core.size import Extent
from layoutproof.core.term import ONE, ZERO, Term, size_term

TRUE, FALSE = Term("==", ZERO, ZERO), Term("==", ZERO, ONE)


@dataclass(frozen=True, slots=True)
class Rule:
    """`long` may be rewritten to `short`, for all values of its names.

    name: of the rule.  long: an operation on names and constants.  short: one of its parts, or a constant.
    where: of a rule about numbers, for which the names in `NUMBERS` stand: their side condition. `short` is then any
    operation; one on numbers alone is computed.
    """

    name: str
    long: Term
    short: Term
    where: Term = TRUE


def _rules() -> tuple[Rule, ...]:
    x, y, p = (Term("name", name) for name in "xyp")
    return (
        Rule("nothing is added", Term("+", x, ZERO), x),
        Rule("added to nothing", Term("+", ZERO, x), x),
        Rule("nothing is taken away", Term("-", x, ZERO), x),
        Rule("times one", Term("*", x, ONE), x),
        Rule("one time", Term("*", ONE, x), x),
        Rule("divided by one", Term("//", x, ONE), x),
        Rule("what one leaves", Term("%", x, ONE), ZERO),
        Rule("the smaller of one number", Term("min", x, x), x),
        Rule("the larger of one number", Term("max", x, x), x),
        Rule("a choice that is made", Term("select", TRUE, x, y), x),
        Rule("a choice that is made the other way", Term("select", FALSE, x, y), y),
        Rule("a choice of one number", Term("select", p, x, x), x),
        Rule("and what holds", Term("and", p, TRUE), p),
        Rule("what holds, and", Term("and", TRUE, p), p),
        Rule("and what never holds", Term("and", p, FALSE), FALSE),
        Rule("what never holds, and", Term("and", FALSE, p), FALSE),
        Rule("and the same", Term("and", p, p), p),
        Rule("or what never holds", Term("or", p, FALSE), p),
        Rule("what never holds, or", Term("or", FALSE, p), p),
        Rule("or what holds", Term("or", p, TRUE), TRUE),
        Rule("what holds, or", Term("or", TRUE, p), TRUE),
        Rule("or the same", Term("or", p, p), p),
        Rule("not what holds", Term("not", TRUE), FALSE),
        Rule("not what never holds", Term("not", FALSE), TRUE),
        Rule("not twice", Term("not", Term("not", p)), p),
    )


NUMBERS = ("m", "n")
"""Names that stand for numbers, in rules about these."""


def _number_rules() -> tuple[Rule, ...]:
    x, m, n = (Term("name", name) for name in "xmn")
    return (
        Rule("a number is added on the right", Term("+", m, x), Term("+", x, m)),
        Rule("a number multiplies on the right", Term("*", m, x), Term("*", x, m)),
        Rule(
            "divided twice",
            Term("//", Term("//", x, m), n),
            Term("//", x, Term("*", m, n)),
            Term("and", Term("<", ZERO, m), Term("<", ZERO, n)),
        ),
    )


RULES = _rules()
NUMBER_RULES = _number_rules()
_CONSTANTS = (ZERO, ONE, TRUE, FALSE)
"""The constants in rules; every other part of a rule is a name or an operation."""


MOST_LOOKED_AT = 256
"""Parts of a condition that are looked at for one that another one has."""


class _Match(NamedTuple):
    """A compiled rule: (place, the term required there), places that must be equal, and the result."""

    fixed: tuple[tuple[int, Term], ...]
    alike: tuple[tuple[int, int], ...]
    inner: tuple[int, Op] | None
    said: int | Term
    """A place, of the operation in `inner` if there is one; or a constant."""


def _match(rule: Rule) -> _Match:
    parts: Sequence[Term] = rule.long.args
    inner = next(((k, part.op) for k, part in enumerate(parts) if part.op not in ("name", "int", "==")), None)
    at = {part: k for k, part in reversed([*enumerate(parts)])}
    if inner is not None:
        at = {part: k for k, part in enumerate(parts[inner[0]].args)}
    return _Match(
        tuple((k, part) for k, part in enumerate(parts) if part in _CONSTANTS),
        tuple((at[part], k) for k, part in enumerate(parts) if at.get(part, k) != k),
        inner,
        at[rule.short] if rule.short.op == "name" else rule.short,
    )


_OF = {op: tuple(_match(rule) for rule in RULES if rule.long.op == op) for op in OPERATIONS}
_NUMBER_RULES_OF = {op: tuple(rule for rule in NUMBER_RULES if rule.long.op == op) for op in OPERATIONS}


def fold(op: Op, *parts: Term) -> Term:
    """The operation on folded parts, as short as the rules allow.

    A division by a number that is not positive is kept, so that its evaluation reports it.

    >>> i = Term("name", "i")
    >>> fold("+", i, ZERO), fold("*", Term("int", 3), Term("int", 5)), fold("<", ONE, ZERO) is FALSE
    (Term(i), Term(15), True)
    >>> fold("*", Term("int", 2), i), fold("//", Term("//", i, Term("int", 4)), Term("int", 2))
    (Term(i * 2), Term(i // 8))
    """
    return _shorter(op, parts) or Term(op, *parts)


@lru_cache(maxsize=1 << 15)
def folded(term: Term) -> Term:
    """A term whose parts are folded, folded itself; kept, for states of memory have the same parts many times."""
    return _shorter(term.op, term.args) or term if OPERATIONS[term.op].operands else term


def _shorter(op: Op, parts: Sequence[Term]) -> Term | None:
    """A shorter term for an operation, None where no rule matches."""
    for part in parts:
        if part.op != "int":
            break
    else:
        return _computed(op, [part.args[0] for part in parts])
    for fixed, alike, inner, said in _OF[op]:
        for k, what in fixed:
            if parts[k] is not what:
                break
        else:
            for one, other in alike:
                if parts[one] is not parts[other]:
                    break
            else:
                if inner is None:
                    return parts[said] if type(said) is int else said  # type: ignore[return-value]
                if parts[inner[0]].op == inner[1]:
                    return parts[inner[0]].args[said]  # type: ignore[no-any-return]
    if op == "or" and (found_in := _absorbed(*parts)) is not None:
        return found_in
    if parts[-1].op == "int" or parts[0].op == "int":
        for rule in _NUMBER_RULES_OF[op]:
            found: dict[str, Term] = {}
            if all(map(_fits, rule.long.args, parts, repeat(found))) and _holds(rule.where, found):
                return _said(rule.short, found)
    return None


def _absorbed(one: Term, other: Term) -> Term | None:
    """The one of two conditions that the other implies, as far as their parts show; None where they show nothing.

    Absorption, p or (p and q) is p, through chains of both: what pieces of arrays have in common is said once, and not
    as often as there are ways through sums of pieces of sums of pieces.
    """
    for more, less in ((one, other), (other, one)):
        if less.op in ("and", "or") and _implies(less, _disjuncts(more), iter(range(MOST_LOOKED_AT))):
            return more
    return None


def _implies(condition: Term, held: set[Term], steps: Iterator[int]) -> bool:
    """Whether a condition can hold only where one of those held does. steps: ends where no more parts are looked at."""
    if condition in held:
        return True
    if condition.op not in ("and", "or") or next(steps, None) is None:
        return False
    enough = any if condition.op == "and" else all
    return enough(_implies(part, held, steps) for part in reversed(condition.args))


def _disjuncts(term: Term) -> set[Term]:
    """A condition and the parts of which one is enough, of many the first ones that are met."""
    found, todo = {term}, [term]
    while todo and len(found) < MOST_LOOKED_AT:
        part = todo.pop()
        if part.op == "or":
            # what is met again is not followed again: ways through shared parts are many more than parts
            new = [one for one in part.args if one not in found]
            todo += new
            found.update(new)
    return found


def _fits(pattern: Term, term: Term, found: dict[str, Term]) -> bool:
    """Whether a term matches a part of a rule about numbers; the binding of its names is put into `found`."""
    if pattern.op == "name":
        name = pattern.args[0]
        return (name not in NUMBERS or term.op == "int") and found.setdefault(name, term) is term
    return pattern.op == term.op and all(map(_fits, pattern.args, term.args, repeat(found)))


def _holds(where: Term, found: Mapping[str, Term]) -> bool:
    return where is TRUE or _said(where, found) is TRUE


def _said(pattern: Term, found: Mapping[str, Term]) -> Term:
    """A side of a rule about numbers, with what its names stand for, folded."""
    if pattern.op == "name":
        return found[pattern.args[0]]
    return fold(pattern.op, *(_said(part, found) for part in pattern.args)) if pattern.op != "int" else pattern


def _computed(op: Op, numbers: Sequence[int]) -> Term | None:
    if (op in ("//", "%", "truncdiv", "truncrem") and numbers[1] <= 0) or (op == "shl" and not 0 <= numbers[1] < 64):
        return None
    value = apply(op, INTS, numbers)
    if op in COMPARISONS:
        return TRUE if value else FALSE
    return Term("int", int(value))


def constant(term: object) -> int | None:
    """The value of a term that is a number, else None."""
    return int(term.args[0]) if isinstance(term, Term) and term.op == "int" else None


def shifted(term: Term, by: int) -> Term:
    """The term plus a number, which is taken together with the number that it ends with.

    >>> str(shifted(Term("+", Term("name", "i"), ONE), -1)), str(shifted(Term("name", "i"), 2))
    ('i', 'i + 2')
    """
    if term.op in ("+", "-") and term.args[1].op == "int":
        return shifted(term.args[0], by + term.args[1].args[0] * (1 if term.op == "+" else -1))
    if term.op != "int" and by < 0:
        return Term("-", term, Term("int", -by))
    return fold("+", term, Term("int", by))


def linear(parts: Iterable[tuple[Extent, Term]], constant: Extent = 0) -> Term:
    """The sum of multiples of some terms and of a constant; numbers among the terms are added to the constant.

    parts: (factor, term); factors may be sizes.

    >>> i, j = Term("name", "i"), Term("name", "j")
    >>> str(linear([(8, i), (0, j), (1, j), (2, ONE)], -3)), str(linear([], 4))
    ('i * 8 + j - 1', '4')
    """
    total = ZERO
    for factor, term in parts:
        if term.op == "int":
            constant = constant + factor * term.args[0]
        elif factor != 0:
            total = fold("+", total, fold("*", term, size_term(factor)))
    return shifted(total, constant) if type(constant) is int else fold("+", total, size_term(constant))


def any_of(conditions: Iterable[Term]) -> Term:
    """Their disjunction; FALSE where there is none.

    >>> str(any_of([FALSE, Term("<", Term("name", "i"), Term("int", 3))]))
    'i < 3'
    """
    whole = FALSE
    for condition in conditions:
        whole = fold("or", whole, condition)
        if whole is TRUE:
            break
    return whole


def all_of(conditions: Iterable[Term]) -> Term:
    """Their conjunction; TRUE where there is none."""
    whole = TRUE
    for condition in conditions:
        whole = fold("and", whole, condition)
        if whole is FALSE:
            break
    return whole


def conjuncts(condition: Term) -> list[Term]:
    """The conditions that together are one, in order; no loop of calls, since a path may be long.

    >>> a, b, c = (Term("name", name) for name in "abc")
    >>> conjuncts(all_of([a, all_of([b, c])])) == [a, b, c], conjuncts(a) == [a]
    (True, True)
    """
    found, todo = [], [condition]
    while todo:
        part = todo.pop()
        if part.op == "and":
            todo += reversed(part.args)
        else:
            found.append(part)
    return found


def negation(condition: Term) -> Term:
    """Its negation.

    >>> negation(FALSE) is TRUE
    True
    """
    return fold("not", condition)
