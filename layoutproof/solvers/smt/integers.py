"""Integer terms for run-time sizes: polynomials over unknowns, their products tied down by monotony.

z3 decides linear integers; products of unknowns it searches blindly. So every product stands as one more unknown,
with what proofs about layouts need of it: u < v gives u*w + w <= v*w for w >= 0 (a row ends before the next begins).
What is impossible with that is impossible; only what is not is asked again with the products spelled out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING, Any, NoReturn

from layoutproof.core.errors import Unsupported
from layoutproof.solvers.interval import Bound
from layoutproof.solvers.smt.bounded import Bounded, Monomial, Polynomial, bounds, term_of
from layoutproof.solvers.smt.library import z3
from layoutproof.solvers.smt.operators import Operators
from layoutproof.solvers.smt.products import Product

if TYPE_CHECKING:
    from layoutproof.solvers.smt.library import ArithRef, BoolRef, Context

MOST_PRODUCTS = 60
"""Products beyond which their monotony is no longer spelled out pair by pair."""


class Integers(Operators):
    """Terms are polynomials; quotient and remainder are unknowns with value == quotient * by + remainder.

    z3's own `x / 0` may be anything, so every divisor must be shown positive before its lemma counts: `assumed` has
    the assumptions, in order, and `doubts` each divisor in doubt with the number of assumptions before it.
    """

    floors = True

    def __init__(self, context: Context) -> None:
        self.context = context
        self.assumed: list[Any] = []
        self.doubts: list[tuple[int, Any]] = []
        self._low: dict[str, Bound] = {}
        self._products: dict[Monomial, Any] = {}
        self._multiples: dict[tuple[int, Monomial], Any] = {}
        self._numbers: dict[int, Any] = {}
        # nothing here holds a `Bounded`: those hold the dialect, and a cycle would keep its terms alive
        self._remainders: dict[object, tuple[Bound, Polynomial, int, Polynomial]] = {}
        self._split: dict[tuple[object, object], tuple[Polynomial, Polynomial]] = {}
        self._floors: list[tuple[Polynomial, int, str, str]] = []

    def note(self, low: Bound, high: Bound) -> None:
        """Integers have no width."""

    def variable(self, name: str, low: Bound) -> Polynomial:
        self._low[name] = low
        if type(low) is int:
            self.assumed.append(z3.Int(name, self.context) >= low)
        return {(name,): 1}

    def constant(self, value: int) -> Polynomial:
        return {(): value} if value else {}

    def add(self, left: Polynomial, right: Polynomial) -> Polynomial:
        return _sum((left, 1), (right, 1))

    def subtract(self, left: Polynomial, right: Polynomial) -> Polynomial:
        return _sum((left, 1), (right, -1))

    def multiply(self, left: Polynomial, right: Polynomial) -> Polynomial:
        return _sum(*(({tuple(sorted(m + m2)): c * c2}, 1) for m, c in left.items() for m2, c2 in right.items()))

    def quotient(self, value: Bounded | int, by: Bounded | int) -> Polynomial:
        return self._parts(bounds(value).low, term_of(self, value), term_of(self, by))[0]

    def remainder(self, value: Bounded | int, by: Bounded | int) -> Polynomial:
        return self._parts(bounds(value).low, term_of(self, value), term_of(self, by))[1]

    def positive(self, divisor: Polynomial) -> None:
        self.doubts.append((len(self.assumed), self._written(divisor)))

    def xor(self, left: Polynomial, right: Polynomial) -> NoReturn:
        raise Unsupported("takes the xor of values that depend on symbolic sizes")

    def less(self, left: Polynomial, right: Polynomial) -> BoolRef:
        return self._against_zero(z3.Z3_mk_lt, self.subtract(left, right))

    def equal(self, left: Polynomial, right: Polynomial) -> BoolRef:
        return self._against_zero(z3.Z3_mk_eq, self.subtract(left, right))

    def apart(self, left: Polynomial, right: Polynomial) -> int | None:
        difference = self.subtract(left, right)
        return difference.get((), 0) if set(difference) <= {()} else None

    def choose(self, condition: BoolRef, left: Polynomial, right: Polynomial, low: Bound) -> Polynomial:
        name = f"choice {len(self._low)}"
        chosen = self.variable(name, low)
        self.assumed.append(z3.If(condition, self.equal(chosen, left), self.equal(chosen, right)))
        return chosen

    def products(self) -> list[Product]:
        """Each product as one of two unknowns, which may be a product itself."""
        found: dict[Monomial, Product] = {}
        rest = list(self._products)
        while rest:
            names = rest.pop()
            if names not in found:
                found[names] = Product(self._unknown(names), self._unknown(names[:-1]), self._unknown(names[-1:]))
                rest += [names[:-1]] if len(names) > 2 else []
        return list(found.values())

    def monotony(self) -> list[BoolRef]:
        """Lemmas on products that need no multiplication."""
        return list(self._lemmas())

    def _lemmas(self) -> Iterator[BoolRef]:
        for names, product in list(self._products.items()):
            if self._never_negative(names):
                yield product >= 0
        known = list(self._products)
        if len(known) > MOST_PRODUCTS:
            return
        shorter = {
            tuple(n for k, n in enumerate(names) if k != leave) for names in known for leave in range(len(names))
        }
        for first, second in combinations(sorted({*known, *shorter}), 2):
            common, u, v = _shared(first, second)
            if common and all(len(w) <= 1 or w in known for w in (u, v)) and self._never_negative(common):
                left, right, step = self._unknown(first), self._unknown(second), self._unknown(common)
                a, b = self._unknown(u), self._unknown(v)
                yield z3.And(
                    z3.Implies(a < b, left + step <= right),
                    z3.Implies(b < a, right + step <= left),
                    z3.Implies(a == b, left == right),
                )

    def scaled_quotients(self) -> list[BoolRef]:
        """Each quotient by a constant, and its remainder, multiplied with what it or its dividend stands beside.

        So N * M is held to (N // 8) * M, and that to (N // 8) * (M // 128): a tile is larger than its part of an array.
        """
        beside = [
            (value, by, quotient, remainder, rest)
            for value, by, quotient, remainder in self._floors
            for rest in sorted(
                {rest for names in self._products for rest in _beside(names, {quotient, *_names(value)})}
            )
            if self._never_negative(rest)
        ]
        if len(beside) > MOST_PRODUCTS:
            return []
        lemmas = []
        for value, by, quotient, remainder, rest in beside:
            factor, left = {rest: 1}, self.multiply({(remainder,): 1}, {rest: 1})
            whole = self.add(self.multiply({(quotient,): by}, factor), left)
            lemmas += [self.equal(self.multiply(value, factor), whole)]
            lemmas += [self._written(left) >= 0, self._written(self.subtract(left, {rest: by - 1})) <= 0]
        return lemmas

    def _never_negative(self, names: Iterable[str]) -> bool:
        return all(self._low[name] >= 0 for name in names)

    def below(self, value: Polynomial, bound: Polynomial) -> BoolRef:
        return self.less(value, bound)

    def unknown(self, variable: Polynomial) -> ArithRef:
        """The z3 unknown of a variable."""
        ((name,),) = variable
        return z3.Int(name, self.context)

    def _unknown(self, names: Monomial) -> ArithRef:
        if len(names) < 2:
            return z3.Int(names[0], self.context) if names else z3.IntVal(1, self.context)
        if names not in self._products:
            self._products[names] = z3.Int(" * ".join(names), self.context)
        return self._products[names]

    # entries of a table are compared pair by pair: z3's own operators, which look for a context and for sorts to
    # convert to, take most of the time of such a question

    def _written(self, polynomial: Polynomial) -> ArithRef:
        context = self.context.ref()
        parts = [self._number(0), *(self._multiple(c, m) for m, c in polynomial.items())]
        terms = (z3.Ast * len(parts))(*(part.as_ast() for part in parts))
        return z3.ArithRef(z3.Z3_mk_add(context, len(parts), terms), self.context)

    def _against_zero(self, compare: Callable[..., object], polynomial: Polynomial) -> BoolRef:
        left, right = self._written(polynomial), self._number(0)
        return z3.BoolRef(compare(self.context.ref(), left.as_ast(), right.as_ast()), self.context)

    def _multiple(self, factor: int, names: Monomial) -> ArithRef:
        key = factor, names
        if key not in self._multiples:
            both = (z3.Ast * 2)(self._number(factor).as_ast(), self._unknown(names).as_ast())
            self._multiples[key] = z3.ArithRef(z3.Z3_mk_mul(self.context.ref(), 2, both), self.context)
        return self._multiples[key]

    def _number(self, value: int) -> ArithRef:
        if value not in self._numbers:
            self._numbers[value] = z3.IntVal(value, self.context)
        return self._numbers[value]

    def _parts(self, low: Bound, value: Polynomial, by: Polynomial) -> tuple[Polynomial, Polynomial]:
        """Quotient and remainder of a value that is at least `low`."""
        key = (frozenset(value.items()), frozenset(by.items()))
        if key not in self._split:
            self._split[key] = self._parts_of_remainder(key[0], by) or self._new_parts(low, value, by)
            if set(by) == {()}:
                quotient, remainder = self._split[key]
                self._remainders[frozenset(remainder.items())] = (low, value, by[()], quotient)
        return self._split[key]

    def _new_parts(self, low: Bound, value: Polynomial, by: Polynomial) -> tuple[Polynomial, Polynomial]:
        number = len(self._split)
        quotient = self.variable(f"quotient {number}", 0 if low >= 0 else -math.inf)
        remainder = self.variable(f"remainder {number}", 0)
        if set(by) == {()}:
            self._floors.append((value, by[()], f"quotient {number}", f"remainder {number}"))
        whole = self.add(self.multiply(quotient, by), remainder)
        self.assumed += [self.equal(value, whole), self.less(remainder, by)]
        return quotient, remainder

    def _parts_of_remainder(self, term: object, by: Polynomial) -> tuple[Polynomial, Polynomial] | None:
        """(x % 8) // 2 and (x % 8) % 2 out of x // 2 and x % 2: one set of digits, so that z3 need not equate two."""
        low, value, larger, above = self._remainders.get(term, (0, {}, 1, {}))
        if set(by) != {()} or larger % by[()] or by[()] == larger:
            return None
        quotient, remainder = self._parts(low, value, by)
        digit = self.subtract(quotient, self.multiply(above, self.constant(larger // by[()])))
        self.assumed += [self.less(self.constant(-1), digit), self.less(digit, self.constant(larger // by[()]))]
        return digit, remainder


def _sum(*parts: tuple[Polynomial, int]) -> Polynomial:
    total: dict[Monomial, int] = {}
    for polynomial, factor in parts:
        for monomial, coefficient in polynomial.items():
            total[monomial] = total.get(monomial, 0) + factor * coefficient
    return {m: c for m, c in total.items() if c}


def _names(polynomial: Polynomial) -> set[str]:
    return {name for monomial in polynomial for name in monomial}


def _beside(names: Monomial, some: set[str]) -> Iterator[Monomial]:
    """The cofactor of each of some factors in a product."""
    for k, name in enumerate(names):
        if name in some:
            yield names[:k] + names[k + 1 :]


def _shared(first: Monomial, second: Monomial) -> tuple[Monomial, Monomial, Monomial]:
    """The factors of both, and what each has beside them."""
    common, rest = [], list(second)
    for name in first:
        if name in rest:
            rest.remove(name)
            common.append(name)
    only = list(first)
    for name in common:
        only.remove(name)
    return tuple(common), tuple(only), tuple(rest)
