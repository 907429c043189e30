"""Sums of products as data: the elements of an array as polynomials in elements of other arrays, and what is undefined.

`Sum` is one element. Its numbers are monomials: a rational times elements of sources, added for every choice of bound
names, where conditions hold. Whether the element is defined stands apart, so that no coefficient and no mask that comes
later takes it away: undefined times 0 is undefined.

A source is an array that is given, or the memory of a call (`LexicographicCall`) before or after one of its
programs, or its output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from layoutproof.core.folding import TRUE
from layoutproof.core.term import Term

Named = tuple[tuple[str, Term], ...]
"""Names, each from 0 to below its extent."""


@dataclass(frozen=True, slots=True)
class Factor:
    """An element of a source; of memory the index is that of the cell, and then the program."""

    source: str
    index: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Monomial:
    """coefficient times the product of the factors, for every choice of the bound names, where all of `when` holds.

    unless: and where for none of these a choice of names fulfils the condition.
    """

    coefficient: Fraction = Fraction(1)
    when: tuple[Term, ...] = ()
    factors: tuple[Factor, ...] = ()
    bound: Named = ()
    unless: tuple[tuple[Named, Term], ...] = ()

    def under(self, *conditions: Term) -> Monomial:
        """The same where these hold too."""
        more = tuple(c for c in conditions if c is not TRUE and c not in self.when)
        return replace(self, when=(*self.when, *more)) if more else self

    @property
    def terms(self) -> tuple[Term, ...]:
        """All that it is said with, but for what it is bound below."""
        return (*self.when, *(t for f in self.factors for t in f.index), *(
            t for named, condition in self.unless for t in (condition, *(extent for _, extent in named))
        ))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sum:
    """numbers: the summands.  undefined: it is undefined where one of these holds, or has an undefined factor."""

    numbers: tuple[Monomial, ...] = ()
    undefined: tuple[Monomial, ...] = ()

    def under(self, *conditions: Term) -> Sum:
        """The part of it where some conditions hold."""
        return Sum(*(tuple(m.under(*conditions) for m in part) for part in (self.numbers, self.undefined)))

    def over(self, bound: Named) -> Sum:
        """The sum for every choice of further names."""
        if not bound:
            return self
        parts = (self.numbers, self.undefined)
        return Sum(*(tuple(replace(m, bound=(*m.bound, *bound)) for m in part) for part in parts))

    def times(self, by: Fraction) -> Sum:
        """A multiple: where it is undefined, it stays so."""
        scaled = (replace(m, coefficient=m.coefficient * by) for m in self.numbers)
        return Sum(tuple(m for m in scaled if m.coefficient), self.undefined)


def added(*sums: Sum) -> Sum:
    """Their sum."""
    return Sum(
        tuple(m for s in sums for m in s.numbers), tuple(dict.fromkeys(m for s in sums for m in s.undefined))
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class CallMemory:
    """Memory of a call, as one program changes it.

    before, after: names of the sources that it is when a program begins, and when it has ended.  cells: its dimensions.
    sum: a cell at the end, in elements of what there was before.  starts: of a window that is undefined whenever these
    change from one program to the next, terms over the program; None of memory that keeps what it holds.
    """

    before: str
    after: str
    cells: Named
    sum: Sum
    starts: tuple[Term, ...] | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """An output of a call: `source` is what the window `state` has written back after the last program that shows it.

    element: names of its dimensions.  shows: whether a program's window has the element.  cell: where it is in it.
    otherwise: its value where no program shows it: undefined, or an input's element whose place it takes.  sees: of
    that input, whether a program's window has the element; None where it takes no place.
    """

    source: str
    state: str
    element: Named
    shows: tuple[Term, ...]
    cell: tuple[Term, ...]
    otherwise: Sum = Sum((), (Monomial(),))
    sees: tuple[Term, ...] | None = None


@dataclass(frozen=True, slots=True)
class LexicographicCall:
    """Programs that run one after the other in lexicographic order. programs: their dimensions, outermost first."""

    programs: Named
    states: Mapping[str, CallMemory]
    outputs: Mapping[str, Output]
