"""Products of unknowns, spelled out where a solution takes them wrong; z3 itself is asked about sums alone.

z3 multiplies unknowns on its own, but counts no step for it: from one product it deduces bounds on another and back,
each the square of the one before, and a few of its steps take hours (5.4.0; `nla::monomial_bounds` in its stacks). So
a product is an unknown of its own, and a solution in which it is not what its factors make of it is answered by what
holds of every product and not there. (A. Cimatti et al., "Incremental linearization for satisfiability and verification
modulo nonlinear arithmetic and transcendental functions", ACM TOCL 19(3), 2018.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from layoutproof.core.errors import Unsupported
from layoutproof.solvers.smt.library import z3
from layoutproof.solvers.smt.minimum import Search
from layoutproof.solvers.smt.session import Session

if TYPE_CHECKING:
    from layoutproof.solvers.smt.library import BoolRef, Solver

ROUNDS = 100
"""Solutions of one search that may take a product wrong."""

LARGEST = 1 << 128
"""Numbers in such a solution that are still looked at: planes at larger ones lead to ever larger ones."""


class Product(NamedTuple):
    """An unknown that stands for the product of two."""

    whole: Any
    left: Any
    right: Any


class Spelled(Search):
    """A search in whose solutions all products are right."""

    def __init__(self, session: Session, solver: Solver, budget: int, products: Sequence[Product]) -> None:
        super().__init__(session, solver, budget)
        self.products = products

    def possible(self, *more: BoolRef) -> bool:
        for tried in range(ROUNDS):
            if not super().possible(*more):
                return False
            lemmas = [lemma for product in self.products for lemma in self._missing(product)]
            # z3 moves on by one in an unbounded factor; feasible values are mostly near a solution
            if not lemmas or (tried % 10 == 9 and any(self._near(factor, *more) for factor in ("left", "right"))):
                return True
            self.solver.add(*lemmas)
        raise Unsupported(f"z3 gives up: {ROUNDS} of its solutions take a product wrong")

    def _near(self, factor: str, *more: BoolRef) -> bool:
        """Whether there is a solution in which one factor of each product is what it is in the latest one."""
        fixed = []
        for product in self.products:
            one, other = (product.left, product.right) if factor == "left" else (product.right, product.left)
            value = self.value(one)
            fixed += [one == value, product.whole == value * other]
        latest = self.solution
        try:
            return super().possible(*more, *fixed)
        finally:
            self.solution = self.solution or latest

    def _missing(self, product: Product) -> Iterator[BoolRef]:
        """The lemmas on products that this one violates in the latest solution."""
        whole, left, right = (self.value(term) for term in product)
        if whole == left * right:
            return
        if max(map(abs, (whole, left, right))) > LARGEST:
            raise Unsupported(f"z3 gives up: its solutions have numbers beyond {LARGEST}")
        yield from _touching(product, left, right)


def _touching(product: Product, left: int, right: int) -> Iterator[BoolRef]:
    """Lemmas on a product near two values of its factors: lines along one, planes through both."""
    whole, u, v = product
    if u.eq(v):
        # no square lies between two that follow one another
        yield z3.Implies(u == left, whole == left * left)
        for low in (left - 1, left):
            yield whole >= (2 * low + 1) * u - low * (low + 1)
        return
    for along, other, value in ((u, v, right), (v, u, left)):
        yield z3.Implies(other == value, whole == value * along)
        yield z3.Implies(z3.And(along >= 0, other >= value), whole >= value * along)
        yield z3.Implies(z3.And(along >= 0, other <= value), whole <= value * along)
    plane = left * v + right * u - left * right
    yield z3.Implies(z3.Or(z3.And(u >= left, v >= right), z3.And(u <= left, v <= right)), whole >= plane)
    yield z3.Implies(z3.Or(z3.And(u >= left, v <= right), z3.And(u <= left, v >= right)), whole <= plane)


def spelled(
    session: Session, assumed: list[BoolRef], violated: BoolRef, products: Sequence[Product], budget: int
) -> Spelled:
    """A search for a violation under what is assumed, of integers with these products."""
    solver = session.integers()
    solver.add(*assumed, violated)
    return Spelled(session, solver, budget, products)
