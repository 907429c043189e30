"""Size: an extent that is unknown until run time, kept as a polynomial in normal form.

A `Size` is a sum of integer multiples of products of *atoms*. An atom is a size symbol (`N`, always >= 1) or the
floor of a size by a positive number or a positive size (`floor((N + 7)/8)`, that is ceil(N/8); ceil(N/t)). Two sizes
with the same normal form are equal for all values of their symbols, so equality, exact division and many comparisons
need no solver.

The arithmetic is the one `place` uses (`+ - * // %`), so a layout computes its physical extents from symbolic
dimensions with the same code that it uses for ints.

>>> n = symbol("N")
>>> (8 * n + 7) // 8
Size(N)
>>> (n + 7) // 8
Size(ceil(N/8))
>>> ceil_div(n, symbol("t"))
Size(ceil(N/t))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

from layoutproof.core.errors import Unsupported

Monomial = tuple["Atom", ...]


@dataclass(frozen=True, slots=True, order=True)
class Atom:
    """A symbol (`over` is None), or floor(`over` / `divisor`); `text` names it and orders it."""

    text: str
    over: Size | None = None
    divisor: Extent = 1


class Size:
    """An integer polynomial over atoms; immutable, hashable, never compared with `<` (see `surely_less`)."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms = terms
        self._hash = hash(terms)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and self.terms == other.terms

    def __bool__(self) -> NoReturn:
        raise TypeError(f"the size {self} has no truth value before run time")

    def __int__(self) -> NoReturn:
        raise TypeError(f"the size {self} has no value before run time")

    def __reduce__(self) -> tuple[object, ...]:
        return (Size, (self.terms,))

    def __add__(self, other: Any) -> Any:
        right = _terms(other)
        if right is None:
            return NotImplemented
        total = dict(self.terms)
        for mono, coefficient in right:
            total[mono] = total.get(mono, 0) + coefficient
        return _from(total)

    __radd__ = __add__

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + other * -1

    def __rsub__(self, other: Any) -> Any:
        return self * -1 + other

    def __mul__(self, other: Any) -> Any:
        right = _terms(other)
        if right is None:
            return NotImplemented
        total: dict[Monomial, int] = {}
        for mono, coefficient in self.terms:
            for mono2, coefficient2 in right:
                both = tuple(sorted(mono + mono2))
                total[both] = total.get(both, 0) + coefficient * coefficient2
        return _from(total)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        if type(other) is not int:
            return self._over_size(other) if isinstance(other, Size) else NotImplemented
        if other <= 0:
            raise Unsupported(f"{self} // {other}: only positive divisors")
        if other == 1:
            return self
        quotient, rest = divide(self, other)
        if type(rest) is int:
            return quotient
        return quotient + Size((((_floor(rest, other),), 1),))

    def _over_size(self, by: Size) -> Any:
        """The floor by a size: one normal form for each class of sizes that differ by multiples of `by`."""
        if not surely_less(0, by):
            raise Unsupported(f"{self} // ({by}): only by sizes that are positive for all values of their symbols")
        quotient, rest = divide(self, by)
        if type(rest) is int and rest == 0:
            return quotient
        if type(rest) is int and rest >= 0 and surely_less(rest, by):
            return quotient
        if type(rest) is int and rest < 0 and surely_less(-rest, by + 1):
            return quotient - 1
        if type(rest) is int or rest.constant() == -1:
            # rounding up: floor((N - 1)/t) + 1 is kept as ceil(N/t), and floor(5/t) + 1 as ceil(6/t)
            rest, quotient = rest + by, quotient - 1
        return quotient + Size((((_floor(as_size(rest), by),), 1),))

    def __mod__(self, other: Any) -> Any:
        return self - other * (self // other)

    def __rfloordiv__(self, other: Any) -> Any:
        return as_size(other) // self

    def __rmod__(self, other: Any) -> Any:
        return as_size(other) % self

    def evaluate(self, value: Callable[[str], Any]) -> Any:
        """This size with `value(symbol)` put in, on whatever kind of number those are."""
        total: Any = None
        for mono, coefficient in self.terms:
            term: Any = None
            for atom in mono:
                factor = value(atom.text) if atom.over is None else _quotient(atom.over, atom.divisor, value)
                term = factor if term is None else term * factor
            if term is None:
                term = coefficient
            elif coefficient != 1:
                term = term * coefficient
            total = term if total is None else total + term
        return 0 if total is None else total

    def symbols(self) -> tuple[str, ...]:
        """The size symbols it depends on, in order of first appearance in its text."""
        seen: dict[str, None] = {}
        for mono, _ in self.terms:
            for atom in mono:
                if atom.over is None:
                    seen[atom.text] = None
                else:
                    seen.update(dict.fromkeys(symbols_of((atom.over, atom.divisor))))
        return tuple(seen)

    def divisions(self) -> tuple[tuple[Size, Extent], ...]:
        """Each part that is divided, and by what: ((N + 7, 8),) for ceil(N/8)."""
        atoms = [atom for mono, _ in self.terms for atom in mono if atom.over is not None]
        return tuple(d for a in atoms if a.over is not None for d in ((a.over, a.divisor), *a.over.divisions()))

    def constant(self) -> int:
        """The coefficient that stands alone."""
        return next((coefficient for mono, coefficient in self.terms if not mono), 0)

    def __str__(self) -> str:
        parts: list[str] = []
        for mono, coefficient in sorted(self.terms, key=lambda t: (-len(t[0]), t[0])):
            factors = [a.text for a in mono]
            if abs(coefficient) != 1 or not mono:
                factors.insert(0, str(abs(coefficient)))
            sign = ("-" if coefficient < 0 else "") if not parts else (" - " if coefficient < 0 else " + ")
            parts.append(sign + "*".join(factors))
        return "".join(parts)

    def __repr__(self) -> str:
        return f"Size({self})"


Extent = int | Size


def symbol(name: str) -> Size:
    """The size `name`, an integer >= 1 unknown until run time."""
    return Size((((Atom(name),), 1),))


def as_size(value: Extent) -> Size:
    """`value` as a polynomial, also when it is a plain int."""
    return value if isinstance(value, Size) else Size((((), value),) if value else ())


def product(extents: Iterable[Any]) -> Any:
    """The product of ints or sizes; 1 for none."""
    total: Any = 1
    for extent in extents:
        total = total * extent
    return total


def ceil_div(extent: Any, by: Any) -> Any:
    """How many pieces of `by` cover `extent`: (extent + by - 1) // by, for ints, sizes and solver terms."""
    return extent if by == 1 else (extent + (by - 1)) // by


def evaluate(extent: Extent, value: Callable[[str], Any]) -> Any:
    """`extent` with its symbols replaced; a plain int stays as it is."""
    return extent if type(extent) is int else extent.evaluate(value)  # type: ignore[union-attr]


def symbols_of(extents: Iterable[Extent]) -> tuple[str, ...]:
    """Size symbols of several extents, in order of first appearance.

    >>> symbols_of([symbol("N") * 2, 3, symbol("M")])
    ('N', 'M')
    """
    sizes = [extent for extent in extents if type(extent) is not int]
    if not sizes:
        return ()
    return tuple(dict.fromkeys([name for size in sizes if not isinstance(size, int) for name in size.symbols()]))


def divide(value: Any, by: Any) -> tuple[Any, Any]:
    """Quotient and rest with value == quotient * by + rest, term by term; `by` an int >= 1 or a one-term size.

    The rest of an int divisor has coefficients in [0, by); it need not be below `by` as a number.
    """
    if type(value) is int and type(by) is int:
        return divmod(value, by)
    by_terms = as_size(by).terms
    if len(by_terms) != 1:
        return (1, 0) if value == by else (0, value)
    ((by_mono, by_coefficient),) = by_terms
    quotient: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for mono, coefficient in as_size(value).terms:
        left = _without(mono, by_mono)
        if left is None:
            rest[mono] = coefficient
            continue
        whole, over = divmod(coefficient, by_coefficient)
        quotient[left] = whole
        rest[mono] = over
    return _from(quotient), _from(rest)


def surely_less(left: Any, right: Any) -> bool:
    """Whether left < right for *all* sizes (every symbol >= 1). False means "not for all, or not known".

    >>> n = symbol("N")
    >>> surely_less(n - 1, n), surely_less(n, 8)
    (True, False)
    """
    if type(left) is int and type(right) is int:
        return left < right
    return _never_negative(right - left - 1)


def _quotient(over: Size, divisor: Extent, value: Callable[[str], Any]) -> Any:
    return over.evaluate(value) // evaluate(divisor, value)


def _never_negative(size: Extent) -> bool:
    if isinstance(size, int):
        return size >= 0
    if _no_term_negative(size):
        return True
    rounded = next(filter(None, (_without_floor(size, atom) for mono, _ in size.terms for atom in mono)), None)
    return rounded is not None and _never_negative(rounded[0])


def _no_term_negative(size: Size) -> bool:
    # every atom is its lower bound plus something >= 0: with no negative coefficient left the sum is >= 0
    total: dict[Monomial, int] = {}
    for mono, coefficient in size.terms:
        partial: dict[Monomial, int] = {(): coefficient}
        for atom in mono:
            low = _lower_bound(atom)
            if low is None:
                return False
            step: dict[Monomial, int] = {}
            for done, c in partial.items():
                if low:
                    step[done] = step.get(done, 0) + c * low
                more = tuple(sorted((*done, atom)))
                step[more] = step.get(more, 0) + c
            partial = step
        for done, c in partial.items():
            total[done] = total.get(done, 0) + c
    return all(c >= 0 for c in total.values())


def _without_floor(size: Size, atom: Atom) -> tuple[Extent] | None:
    """A size that is nowhere larger, without divisor * floor(over / divisor): that is over - divisor + 1 to over.

    None where the atom is no floor, or where no term has it together with its divisor.
    """
    divisor = as_size(atom.divisor).terms
    if atom.over is None or len(divisor) != 1:
        return None
    ((by, factor),) = divisor
    total: Any = 0
    found = False
    for mono, coefficient in size.terms:
        left = _without(mono, (atom, *by))
        if left is None or coefficient % factor or any((_lower_bound(a) or -1) < 0 for a in left):
            total = total + Size(((mono, coefficient),))
            continue
        found = True
        bound = atom.over - (atom.divisor - 1) if coefficient > 0 else atom.over
        total = total + Size(((left, coefficient // factor),)) * bound
    return (total,) if found else None


def _lower_bound(atom: Atom) -> int | None:
    if atom.over is None:
        return 1
    if type(atom.divisor) is not int:
        return 1 if _never_negative(atom.over - atom.divisor) else 0 if _never_negative(atom.over) else None
    low = 0
    for mono, coefficient in atom.over.terms:
        if coefficient < 0:
            return None
        term = coefficient
        for inner in mono:
            bound = _lower_bound(inner)
            if bound is None:
                return None
            term *= bound
        low += term
    return low // atom.divisor


def _without(mono: Monomial, part: Monomial) -> Monomial | None:
    left = list(mono)
    for atom in part:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


@lru_cache(maxsize=4096)
def _floor(over: Size, divisor: Extent) -> Atom:
    inner = over - (divisor - 1)
    by = str(divisor)
    if not by.isidentifier() and type(divisor) is not int:
        by = f"({by})"
    up = type(inner) is int or not inner.constant()
    divided = as_size(inner if up else over)
    text = str(divided) if len(divided.terms) == 1 else f"({divided})"
    return Atom(f"{'ceil' if up else 'floor'}({text}/{by})", over, divisor)


def _terms(value: object) -> tuple[tuple[Monomial, int], ...] | None:
    if isinstance(value, Size):
        return value.terms
    if type(value) is int:
        return (((), value),)
    return None


def _from(terms: Mapping[Monomial, int]) -> Extent:
    kept = tuple(sorted((m, c) for m, c in terms.items() if c))
    if not kept:
        return 0
    if len(kept) == 1 and kept[0][0] == ():
        return kept[0][1]
    return Size(kept)
