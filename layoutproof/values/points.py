"""Values as random points of a chain of prime fields.

A value has a residue at each level of the chain at which it is known: an exponential is unknown at the lowest, a
logarithm at the highest. Sums, products and quotients are those of the fields; the maximum is a random function of a
set, comparisons are random but antisymmetric, other functions are random functions of their arguments. A value lies at
one place among the numbers of the code that it is compared with. What is no number is one of a few kinds: undefined,
infinities, mask values, NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any
from zlib import crc32

import numpy as np

from layoutproof.ir.program import Dtype
from layoutproof.values.fields import LONGEST, Prime, chain, logarithm, mixed
from layoutproof.values.kinds import Span
from layoutproof.values.known import any_integers, hull, product_span
from layoutproof.values.literals import FEW, Reading, literals, meant, value_of
from layoutproof.values.refusals import ChainTooShort, NotModelled
from layoutproof.values.sets import NOBODY, Sets

Array = np.ndarray[Any, Any]

NUMBER, UNDEFINED, NEGATIVE, POSITIVE, MASK, OPPOSITE, NAN, LOST = range(8)
"""Kinds of a value: a number, memory that was never written, -inf, inf, a mask value (below everything), its opposite,
NaN, and what the model does not say."""
KIND, ROOT, MAXIMUM, NONNEGATIVE, NONPOSITIVE, BESIDE = 7, 8, 16, 32, 64, 128
"""Bits of a flag: its kind; a square root of what is no square rests below it; a maximum of several; at least 0; at
most 0; a difference from a maximum that holds a number of the code beside it."""
SIGNS = NONNEGATIVE | NONPOSITIVE
LOGARITHM = 128
"""In `turned`: a logarithm of what is no square rests below it."""
MASKED = 1e9
"""A literal below minus this is a mask value: below everything that is a number, and its exponential is 0."""
ODD = ("sin", "tan", "asin", "atan", "sinh", "asinh", "atanh", "cbrt", "erf", "erf_inv", "round", "round_to_even")
EVEN = ("cos", "cosh")
"""Functions with f(-x) = -f(x), and with f(-x) = f(x); of others nothing is known."""
EQUAL = "=="
"""The axiom that two numbers which are not the same function of the inputs are never equal."""
MOST_CHOICES = 64
"""Places of which it is asked that each is the greatest somewhere."""
NEAR = 1e-12
"""How near, relatively, two numbers of the code are that are one: each may be computed in float64."""
OPPOSED = 1e15
"""A literal from this on is the opposite of a mask value, above everything."""


@dataclass(frozen=True)
class Field:
    """An array of values. residues: of each level, None where it is not known.  flags: uint8, None for all numbers.

    span: of integers, between which numbers they lie.  turned: of each element that is marked `ROOT` because it is a
    sum with logarithms of what are no squares, and for no other reason: `LOGARITHM`, and a bit for each level at which
    their number is odd, so that its exponential is the opposite there; 0 of all others, None of none.  by: what those
    logarithms were multiplied with since, such as 1 / ln 2: a residue of each level; None where that is 1.
    shift: the number of the code that was added to each element at last; None where it is 0 everywhere.  fixed: whether
    there is nothing else in any of them.
    """

    residues: tuple[Array | None, ...]
    flags: Array | None = None
    span: Span | None = None
    turned: Array | None = None
    by: tuple[int, ...] | None = None
    shift: Array | None = None
    fixed: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents in elements."""
        return tuple(next(r for r in self.residues if r is not None).shape)

    @property
    def kinds(self) -> Array:
        """The kind of each element."""
        return self.marks & KIND

    @property
    def marks(self) -> Array:
        """The flag of each element."""
        return np.broadcast_to(_PLAIN, self.shape) if self.flags is None else self.flags

    @property
    def signs(self) -> Array:
        """`turned`, of each element."""
        return np.zeros(self.shape, np.uint8) if self.turned is None else self.turned


_PLAIN = np.zeros((), np.uint8)


def _table(rows: str) -> Array:
    return np.array([[int(c) for c in row] for row in rows.split()], np.uint8)


# rows and columns: number, undefined, -inf, inf, mask, opposite, NaN, lost
_SUM = _table("01234567 11111111 21262267 31633367 41234067 51230567 61666667 71777777")
_PRODUCT = _table("01777767 11111111 71327767 71237767 71777767 71777767 61666667 71777777")
_OPPOSITE = np.array([0, 1, 3, 2, 5, 4, 6, 7], np.uint8)
_OF_EXP = np.array([0, 1, 0, POSITIVE, 0, POSITIVE, NAN, LOST], np.uint8)
_OF_LOG = np.array([0, 1, NAN, POSITIVE, NAN, POSITIVE, NAN, LOST], np.uint8)
# of the kinds in the order of their size; numbers are 0 and compared
_HEIGHT = np.array([0, 0, -2, 2, -1, 1, 0, 0], np.int8)


class Points:
    """One point: a chain of fields and the functions that are drawn in them.

    seed: draws everything.  levels: how many of the chain are used, the highest ones.  bounds: whether it is looked
    which differences from a maximum are at most 0, a quarter of the time of an attention.  lean: whether maxima are not
    taken at the highest level at which they could be, where there is another: an exponential rests on the level below.
    left: whether one was not.  oracles: whether exponentials and logarithms are functions without laws, however deep
    they are nested.  readings: of numbers of the code that are not read by themselves, what makes them.
    compared: numbers of the code that others are compared with; what comes of one value agrees with their order.
    chosen: whether a maximum of two arrays is, at each element, the one that a comparison of the two chooses.
    """

    exact = True

    def __init__(
        self, seed: int, levels: int = 1, bounds: bool = True, lean: bool = False, oracles: bool = False,
        readings: Mapping[float, Reading] = MappingProxyType({}), compared: Collection[float] = (),
        chosen: bool = False,
    ) -> None:  # fmt: skip
        sizes = np.unique([0.0, *map(abs, compared)])
        sizes = sizes[np.append(True, np.diff(sizes) > NEAR * sizes[1:])]
        # the opposites too: a number and its opposite are compared alike
        self.compared = np.concatenate([-sizes[:0:-1], sizes])
        # of what was compared, the numbers of the code that are none of these
        self.met: set[float] = set()
        self.bounds, self.oracles, self.readings, self.chosen = bounds, oracles, readings, chosen
        # whether some was found
        self.bounded = False
        self.lean, self.left = lean, False
        primes = chain(seed)
        low = LONGEST - levels
        self.seed, self.levels = seed, levels
        self.fields = tuple(Prime(p, primes[k - 1] if k else 0) for k, p in enumerate(primes))[low:]
        self.sets = tuple(Sets(f.p, 1000 * seed + k) for k, f in enumerate(self.fields))
        self._draw = np.random.default_rng((11, seed))
        self._literals: tuple[set[int], ...] = tuple(set() for _ in self.fields)
        self.axioms: set[str] = set()
        # of each comparison: whether it was drawn, to hold of some element, and not to hold of some
        self.taken: list[tuple[bool, bool, bool]] = []
        # the maxima of which it was told which member they are, each as its level and its residue
        self.told: set[tuple[int, int]] = set()
        # whether an order of data was drawn
        self.chose = False
        # members, as residues and sorted, that maxima are before others
        self.preferred: Array = NOBODY

    def again(self) -> Points:
        """The same point, before anything is drawn."""
        found = Points(
            self.seed, self.levels, self.bounds, self.lean, self.oracles, self.readings, self.compared, self.chosen
        )
        found.preferred = self.preferred
        return found

    # arrays

    def draw(self, shape: Sequence[int], span: Span | None = None) -> Field:
        """Random elements."""
        residues = tuple(self._draw.integers(0, f.p, tuple(shape)) for f in self.fields)
        return Field(residues, None, span)

    def garbage(self, shape: Sequence[int], dtype: Dtype) -> Array:
        """Integers that were never written: any."""
        return any_integers(self._draw, shape, dtype)

    def undefined(self, shape: Sequence[int]) -> Field:
        """Memory that was never written."""
        zero = np.zeros(tuple(shape), np.int64)
        return Field((zero,) * self.levels, np.full(tuple(shape), UNDEFINED, np.uint8))

    def constant(self, values: Array) -> Field:
        """Known numbers, read as `literals` says. values: of float64, or integers."""
        if values.dtype.kind in "iub":
            whole = values.astype(np.int64)
            flags = None if (whole < 0).any() else np.full(values.shape, NONNEGATIVE, np.uint8)
            span = (int(whole.min()), int(whole.max())) if whole.size else (0, 0)
            return Field(tuple(whole % f.p for f in self.fields), flags, span)
        distinct, where = np.unique(values, return_inverse=True)
        where = where.reshape(values.shape)
        flags = (np.where(distinct >= 0, NONNEGATIVE, 0) | np.where(distinct <= 0, NONPOSITIVE, 0)).astype(np.uint8)
        for kind, which in (
            (NAN, np.isnan(distinct)),
            (NEGATIVE, distinct == -np.inf),
            (POSITIVE, distinct == np.inf),
            (MASK, (distinct <= -MASKED) & (distinct > -np.inf)),
            (OPPOSITE, (distinct >= OPPOSED) & (distinct < np.inf)),
        ):
            flags[which] = kind
        numbers = (flags & KIND) == NUMBER
        read = literals(np.where(numbers, distinct, 0.0))
        found = []
        made = [(k, self.readings[x]) for k, x in enumerate(distinct.tolist()) if x in self.readings]
        for level, field in enumerate(self.fields):
            r = field.mul(read.numerator % field.p, field.inverse(read.denominator % field.p))
            r = field.mul(r, _powers_of(field.p, 2, read.twos))
            r = field.mul(r, _powers_of(field.p, 10, read.tens))
            for root in np.unique(read.root[read.root != 1]):
                self.axioms.add("sqrt")
                drawn = pow(int(root), (field.p + 1) // 4, field.p)
                which = read.root == root
                r[which] = r[which] * drawn % field.p
                if drawn * drawn % field.p != root % field.p:
                    flags[which] |= ROOT
            for log in (1, -1):
                which = read.logs == log
                if which.any():
                    r[which] = r[which] * pow(self._log2(level), log, field.p) % field.p
            for k, reading in made:
                r[k] = self._made(reading, level)
            if distinct.size <= FEW:
                self._literals[level].update(r[numbers].tolist())
            found.append(r[where])
        few, shift = distinct.size <= FEW, None
        if few and distinct[numbers].any():
            written = distinct[numbers].tolist()
            reals = np.zeros(distinct.shape)
            reals[numbers] = [value_of(self.readings[x]) if x in self.readings else meant(x) for x in written]
            shift = np.broadcast_to(reals[0], values.shape) if reals.size == 1 else reals[where]
        return Field(tuple(found), flags[where] if flags.any() else None, shift=shift, fixed=few)

    def _made(self, reading: Reading, level: int) -> int:
        """The residue of a product of powers of numbers."""
        p, found = self.fields[level].p, 1
        for number, power in reading:
            residue = self.constant(np.full((1,), number)).residues[level]
            assert residue is not None
            found = found * pow(int(residue[0]), power, p) % p
        return found

    def _log2(self, level: int) -> int:
        """ln 2 at a level: what `exp` takes to 2; at the highest any number."""
        p = self.fields[level].p
        if level + 1 < self.levels:
            return logarithm(self.fields[level + 1].p, p, 2)
        return int(mixed(np.array([2]), self.seed)[0]) % (p - 1) + 1

    def map(self, data: Field, move: Callable[[Array], Array]) -> Field:
        """An operation that only moves elements, on every component."""
        residues = tuple(None if r is None else move(r) for r in data.residues)
        flags, turned = (None if part is None else move(part) for part in (data.flags, data.turned))
        shift = data.shift if data.shift is None else _alike(data.shift, move)
        return Field(residues, flags, data.span, turned, data.by, shift, data.fixed)

    def combine(self, parts: Sequence[Field], move: Callable[[Sequence[Array]], Array]) -> Field:
        """An operation that only combines several arrays into one."""
        every = [[part.residues[k] for part in parts] for k in range(self.levels)]
        residues = tuple(None if any(r is None for r in level) else move(level) for level in every)  # type: ignore[arg-type]
        if all(r is None for r in residues):
            raise ChainTooShort
        plain = all(part.flags is None for part in parts)
        span = hull([part.span for part in parts])
        turned, by = None, {part.by for part in parts if part.turned is not None}
        if len(by) == 1:
            turned = move([part.signs for part in parts])
        # a moved array may be written to
        flags = None if plain else move([np.zeros(p.shape, np.uint8) if p.flags is None else p.flags for p in parts])
        shift, fixed = None, all(p.fixed for p in parts)
        if any(p.shift is not None for p in parts):
            shift = move([np.zeros(p.shape) if p.shift is None else p.shift for p in parts])
        return Field(residues, flags, span, turned, None if turned is None else by.pop(), shift, fixed)

    # arithmetic

    def _each(self, parts: Sequence[Field], compute: Callable[..., Array]) -> tuple[Array | None, ...]:
        found = []
        for k, field in enumerate(self.fields):
            level = [part.residues[k] for part in parts]
            found.append(None if any(r is None for r in level) else compute(field, *level))
        if all(r is None for r in found):
            raise ChainTooShort
        return tuple(found)

    def _kept(self, residues: tuple[Array | None, ...], flags: Array | None, span: Span | None = None) -> Field:
        """The residues of what is no number are 0."""
        if flags is None:
            return Field(residues, None, span)
        (few,) = _few(flags)
        other = (few & KIND) != NUMBER
        if other.any():
            residues = tuple(None if r is None else np.where(other, 0, r) for r in residues)
        return Field(residues, flags if few.any() else None, span)

    def add(self, a: Field, b: Field) -> Field:
        """a + b."""
        residues = self._each([a, b], lambda f, x, y: f.add(x, y))
        shift, fixed = _shifted(a, b, np.add), a.fixed and b.fixed
        if a.flags is None and b.flags is None:
            span = _both(a, b, lambda x, y: (x[0] + y[0], x[1] + y[1]))
            return Field(residues, None, span, shift=shift, fixed=fixed)
        shape = np.broadcast_shapes(a.shape, b.shape)
        x, y = _few(a.marks, b.marks)
        flags = np.broadcast_to(_SUM[x & KIND, y & KIND] | ((x | y) & ROOT) | (x & y & SIGNS), shape)
        turned, by = None, {part.by for part in (a, b) if part.turned is not None}
        if len(by) == 1:
            # ln x + ln y = ln(x y), and the product of two that are no squares is one
            x, y = a.marks, b.marks
            known = (((x & ROOT) == 0) | (a.signs != 0)) & (((y & ROOT) == 0) | (b.signs != 0))
            odd = np.where(known, (a.signs ^ b.signs) & ~np.uint8(LOGARITHM), 0).astype(np.uint8)
            flags = np.where(known & (odd == 0), flags & ~np.uint8(ROOT), flags)
            turned = np.where(odd != 0, odd | np.uint8(LOGARITHM), 0).astype(np.uint8)
        # a number added to a mask value is lost in it, but for an opposite one, which leaves 0
        span = _both(a, b, lambda x, y: (x[0] + y[0], x[1] + y[1]))
        found = self._kept(_where_number(residues, x, y), flags, span)
        found = replace(found, shift=shift, fixed=fixed)
        return found if turned is None else replace(found, turned=turned, by=by.pop())

    def neg(self, a: Field) -> Field:
        """-a."""
        residues = self._each([a], lambda f, x: f.neg(x))
        span = None if a.span is None else (-a.span[1], -a.span[0])
        shift = None if a.shift is None else -a.shift
        if a.flags is None:
            return Field(residues, None, span, shift=shift, fixed=a.fixed)
        (x,) = _few(a.flags)
        signs = ((x & NONNEGATIVE) << 1) | ((x & NONPOSITIVE) >> 1)
        flags = np.broadcast_to(_OPPOSITE[x & KIND] | (x & ROOT) | signs, a.shape)
        return Field(residues, flags, span, a.turned, a.by, shift, a.fixed)

    def sub(self, a: Field, b: Field) -> Field:
        """a - b: at most 0 where b is a maximum of a set that holds a."""
        found = self.add(a, self.neg(b))
        if not self.bounds or b.flags is None or not (_few(b.flags)[0] & MAXIMUM).any():
            return found
        top, shape = self._top(a, b), found.shape
        x, of_x, y, of_y = (
            np.broadcast_to(part, shape)
            for part in (self._residue(a, top), a.marks, self._residue(b, top), b.marks)
        )  # fmt: skip
        # rows are those of one maximum: along their axes it stays the same
        along = [k for k in range(len(shape)) if _stays(y, k) and _stays(of_y, k)]
        order = [*(k for k in range(len(shape)) if k not in along), *along]
        first = tuple(0 if k in along else slice(None) for k in range(len(shape)))
        which = (of_y[first].reshape(-1) & MAXIMUM) != 0
        maxima = y[first].reshape(-1)[which]
        if not found.marks.size or not self.sets[top].knows(maxima):
            return found
        others, marks = (np.transpose(part, order).reshape(which.size, -1)[which] for part in (x, of_x))
        asked, inner = (marks & KIND) == NUMBER, (marks & MAXIMUM) != 0
        held, beside = self.sets[top].holds(maxima, others, asked, inner, self._literals[top])
        if not held.any():
            return found
        self.bounded = True
        if held.all() and which.all() and not beside.any():
            return replace(found, flags=np.broadcast_to(_few(found.marks)[0] | np.uint8(NONPOSITIVE), shape))
        said = np.zeros((which.size, held.shape[1]), np.uint8)
        said[which] = np.where(held, NONPOSITIVE, 0) | np.where(held & beside, BESIDE, 0)
        said = np.transpose(said.reshape([shape[k] for k in order]), np.argsort(order))
        return replace(found, flags=found.marks | said)

    def at_most_zero(self, a: Field) -> tuple[bool, bool, bool]:
        """Of exponents: whether all are at most 0, and whether some are so, and some not, beside a literal."""
        (marks,) = _few(a.marks)
        numbers = (marks & KIND) == NUMBER
        below, beside = (marks & NONPOSITIVE) != 0, (marks & BESIDE) != 0
        high = np.isin(marks & KIND, (POSITIVE, OPPOSITE, NAN, LOST)).any()
        if not high and not (below | ~numbers).all():
            below = below | (self._residue(a, self._top(a)) == 0)
        return bool((below | ~numbers).all() and not high), bool(beside.any()), bool((numbers & ~beside).any())

    def mul(self, a: Field, b: Field) -> Field:
        """a b."""
        found = self._times(a, b)
        if not (a.fixed or b.fixed):
            return found
        # the constant that was added to a product of two others is unknown
        return replace(found, shift=_shifted(a, b, np.multiply), fixed=a.fixed and b.fixed)

    def _times(self, a: Field, b: Field) -> Field:
        residues = self._each([a, b], lambda f, x, y: f.mul(x, y))
        span = _both(a, b, product_span)
        sign = self._of_square(a, b)
        if a.flags is None and b.flags is None and not sign:
            return Field(residues, None, span)
        shape = np.broadcast_shapes(a.shape, b.shape)
        x, y = _few(a.marks, b.marks)
        kinds = _PRODUCT[x & KIND, y & KIND]
        lost = kinds == LOST
        if lost.any():
            # a number that is known to be positive leaves the kind as it is
            top = self._top(a, b)
            x, y = a.marks, b.marks
            lost = np.broadcast_to(lost, shape)
            for one, other, part in ((x, y, a), (y, x, b)):
                scale = ((one & KIND) == NUMBER) & ((one & NONNEGATIVE) != 0) & (self._residue(part, top) != 0)
                kinds = np.where(lost & scale, other & KIND, kinds)
        opposite = ((x & NONNEGATIVE) << 1 & y) | ((y & NONNEGATIVE) << 1 & x)
        alike = (x & y & NONNEGATIVE) | (x & y & NONPOSITIVE) >> 1
        flags = kinds | ((x | y) & (ROOT | BESIDE)) | alike | opposite
        if sign:
            flags = flags & ~np.uint8(SIGNS) | np.where(kinds == NUMBER, sign, 0).astype(np.uint8)
        found = self._kept(residues, np.broadcast_to(flags.astype(np.uint8), shape), span)
        for log, number in ((a, b), (b, a)):
            if log.turned is not None and number.turned is None and (by := self._number(number)) is not None:
                before = log.by or (1,) * self.levels
                made = tuple(m * n % f.p for f, m, n in zip(self.fields, before, by, strict=True))
                turned = np.broadcast_to(log.turned, found.shape)
                return replace(found, turned=turned, by=None if set(made) == {1} else made)
        return found

    def _number(self, a: Field) -> tuple[int, ...] | None:
        """The number that all elements are, at each level; None where they are several, 0, or not known somewhere."""
        if any(r is None or not r.size or (r != r.flat[0]).any() or not r.flat[0] for r in a.residues):
            return None
        if a.flags is not None and ((a.flags & (KIND | ROOT)) != 0).any():
            return None
        return tuple(int(r.flat[0]) for r in a.residues if r is not None)

    def _of_square(self, a: Field, b: Field) -> int:
        """The sign of a b where b is a or -a, as arrays; 0 where it is neither."""
        if a is b:
            return NONNEGATIVE
        known = [k for k in range(self.levels) if a.residues[k] is not None and b.residues[k] is not None]
        if a.shape != b.shape or not known or 0 in a.shape:
            return 0
        p, x, y = self.fields[known[-1]].p, self._residue(a, known[-1]), self._residue(b, known[-1])
        # one element tells nearly all pairs apart
        if x.flat[0] == y.flat[0]:
            return NONNEGATIVE if np.array_equal(x, y) else 0
        return NONPOSITIVE if x.flat[0] + y.flat[0] == p and not ((x + y) % p).any() else 0

    def div(self, a: Field, b: Field) -> Field:
        """a / b."""
        return self.mul(a, self.reciprocal(b))

    def reciprocal(self, b: Field) -> Field:
        """1 / b; that of infinities and mask values is 0, of 0 it is NaN."""
        residues = self._each([b], lambda f, x: f.inverse(x))
        zero = self._residue(b, self._top(b)) == 0
        marks = b.marks
        kinds = marks & KIND
        number = kinds == NUMBER
        kinds = np.where(number & zero, NAN, np.where(np.isin(kinds, (NEGATIVE, POSITIVE, MASK, OPPOSITE)), 0, kinds))
        flags = kinds | (marks & (ROOT | SIGNS))
        residues = tuple(None if r is None else np.where(number, r, 0) for r in residues)
        found = self._kept(residues, flags.astype(np.uint8))
        if not b.fixed or b.shift is None:
            return found
        shift = np.where(b.shift == 0, 0.0, 1 / np.where(b.shift == 0, 1.0, b.shift))
        return replace(found, shift=shift, fixed=True)

    def power(self, a: Field, exponent: int) -> Field:
        """a to an integer power."""
        if exponent < 0:
            return self.reciprocal(self.power(a, -exponent))
        if exponent == 0:
            return self.constant(np.ones(a.shape))
        result, square = None, a
        while exponent:
            if exponent & 1:
                result = square if result is None else self.mul(result, square)
            exponent >>= 1
            if exponent:
                square = self.mul(square, square)
        assert result is not None
        return result

    def exp(self, a: Field) -> Field:
        """e^a: its residue at a level rests on a's at the level below."""
        self.axioms.add("exp")
        if self.oracles:
            return self._lawless("exp", a, 0, 1, NONNEGATIVE, _OF_EXP)
        found: list[Array | None] = [None]
        a = a if a.by is None else replace(a, turned=None, by=None)
        for k in range(1, self.levels):
            below = a.residues[k - 1]
            if below is None:
                found.append(None)
                continue
            grown = self.fields[k].exp(below)
            if a.turned is not None:
                grown = np.where(a.turned & (1 << (k - 1)), self.fields[k].p - grown, grown)
            found.append(grown)
        if all(r is None for r in found):
            raise ChainTooShort
        (marks,) = _few(a.marks)
        kinds = marks & KIND
        low = (kinds == NEGATIVE) | (kinds == MASK)
        flags = _OF_EXP[kinds] | (marks & ROOT) | np.uint8(NONNEGATIVE)
        if a.turned is not None:
            flags = np.where(a.turned != 0, flags & ~np.uint8(ROOT), flags)
        residues = tuple(found)
        if low.any():
            residues = tuple(None if r is None else np.where(low, 0, r) for r in found)
        return self._kept(residues, np.broadcast_to(flags, a.shape))

    def log(self, a: Field) -> Field:
        """ln a: its residue at a level rests on a's at the level above."""
        self.axioms.add("log")
        if self.oracles:
            return self._lawless("log", a, 1, 0, 0, _OF_LOG)
        found: list[Array | None] = []
        marks = a.marks
        turned = np.zeros(a.shape, np.uint8)
        for k in range(self.levels - 1):
            above = a.residues[k + 1]
            if above is None:
                found.append(None)
                continue
            if above.size > 20_000:
                raise NotModelled(f"logarithms of {above.size} elements: more than 20,000 at once")
            r, square = self.fields[k + 1].log(above)
            # ln of what is no square: that of its opposite, and so for every form of it
            found.append(r)
            turned |= np.where(square, 0, LOGARITHM | 1 << k).astype(np.uint8)
        found.append(None)
        if all(r is None for r in found):
            raise ChainTooShort
        zero = (self._residue(a, self._top(a)) == 0) & ((marks & KIND) == NUMBER)
        kinds = _OF_LOG[marks & KIND]
        turned = np.where(zero | ((marks & (KIND | ROOT)) != 0), 0, turned).astype(np.uint8)
        root = (marks & ROOT) | np.where(turned != 0, ROOT, 0).astype(np.uint8)
        return replace(
            self._kept(tuple(found), np.where(zero, NEGATIVE, kinds).astype(np.uint8) | root),
            turned=turned if turned.any() else None,
        )

    def _lawless(self, name: str, a: Field, at: int, gives: int, signs: int, kinds: Array) -> Field:
        """exp or log as a function of which one number is known, and what it gives of what is no number."""
        drawn = self.function(name, replace(a, flags=None))
        fixed = tuple(
            None if x is None or r is None else np.where(x == at, gives, r)
            for x, r in zip(a.residues, drawn.residues, strict=True)
        )
        of = a.marks & KIND
        # e^-inf is a number, 0; ln 0 is none
        low = np.isin(of, (NEGATIVE, MASK))
        zero = (of == NUMBER) & (self._residue(a, self._top(a)) == 0) & (name == "log")
        flags = (np.where(zero, NEGATIVE, kinds[of]) | (a.marks & ROOT) | signs).astype(np.uint8)
        return self._kept(tuple(None if r is None else np.where(low, 0, r) for r in fixed), flags)

    def sqrt(self, a: Field) -> Field:
        """A square root: the power (P + 1) / 4. Where a is no square, its own square is -a, and it is marked."""
        self.axioms.add("sqrt")
        residues = self._each([a], lambda f, x: f.power(x, (f.p + 1) // 4))
        wrong = np.zeros(a.shape, bool)
        for field, x, r in zip(self.fields, a.residues, residues, strict=True):
            if x is not None and r is not None:
                wrong |= field.mul(r, r) != x
        marks = a.marks
        kinds = np.array([0, 1, NAN, POSITIVE, NAN, LOST, NAN, LOST], np.uint8)[marks & KIND]
        flags = kinds | (marks & ROOT) | np.where(wrong, ROOT, 0).astype(np.uint8) | NONNEGATIVE
        return self._kept(residues, flags.astype(np.uint8))

    def function(self, name: str, *arguments: Field, span: Span | None = None) -> Field:
        """A function of which nothing is known but its name."""
        self.axioms.add(name)
        salt = self.seed * 1_000_003 + crc32(name.encode())

        def drawn(field: Prime, *residues: Array) -> Array:
            turned = residues[0] > field.p // 2
            if name in ODD + EVEN:
                residues = (np.where(turned, field.p - residues[0], residues[0]),)
            keys = np.zeros(residues[0].shape, np.uint64)
            for r in residues:
                keys = mixed(keys ^ r.astype(np.uint64), salt)
            found = (mixed(keys, salt + 1) % np.uint64(field.p)).astype(np.int64)
            if name in ODD:
                return np.asarray(np.where(turned, field.p - found, found) % field.p * (residues[0] != 0))
            return found

        shape = _shape(arguments)
        arguments = tuple(self.map(a, lambda r: np.broadcast_to(r, shape)) for a in arguments)
        residues = self._each(arguments, drawn)
        flags = None
        for a in arguments:
            if a.flags is not None:
                kinds = a.flags & KIND
                other = np.where(kinds == NUMBER, 0, np.where(kinds == UNDEFINED, UNDEFINED, LOST)).astype(np.uint8)
                mine = other | (a.flags & ROOT)
                flags = mine if flags is None else _worse(flags, mine)
        return self._kept(residues, flags, span)

    # comparisons

    def _top(self, *parts: Field) -> int:
        """The level that decides: the highest at which all are known."""
        known = [k for k in range(self.levels) if all(p.residues[k] is not None for p in parts)]
        if not known:
            raise ChainTooShort
        return known[-1]

    def _residue(self, part: Field, level: int) -> Array:
        residue = part.residues[level]
        assert residue is not None
        return residue

    def equal(self, a: Field, b: Field) -> Array:
        """Whether two are the same function: two that are not the same are equal nowhere."""
        if a.span is not None and b.span is not None:
            raise NotModelled("a comparison of integers that are data")
        top = self._top(a, b)
        same = (self._residue(a, top) == self._residue(b, top)) & ((a.marks & KIND) == (b.marks & KIND))
        if not same.all():
            self.axioms.add(EQUAL)
        for one, other in ((a, b), (b, a)):
            # the maximum is one of its members: the one that is drawn
            which = ((one.marks & MAXIMUM) != 0) & ((other.marks & MAXIMUM) == 0)
            if which.any():
                which, maxima, members = (
                    np.broadcast_to(x, same.shape)[np.broadcast_to(which, same.shape)]
                    for x in (which, self._residue(one, top), self._residue(other, top))
                )
                if not self.sets[top].knows(maxima):
                    raise NotModelled("a comparison with more maxima than are kept")
                self.told |= {(top, int(k)) for k in np.unique(maxima)}
                where = np.broadcast_to(((one.marks & MAXIMUM) != 0) & ((other.marks & MAXIMUM) == 0), same.shape)
                same = same.copy()
                same[where] = self.sets[top].drawn(maxima, self.preferred) == members
        return np.asarray(same)

    def less(self, a: Field, b: Field) -> Array:
        """Whether a < b: random, and one of a < b, a = b, b < a.

        What is left of b - a without the number c of the code that was added lies between two of the numbers of the
        code, in whose order it is drawn, and so above -c or not.
        """
        if a.span is not None and b.span is not None:
            raise NotModelled("a comparison of integers that are data")
        self.axioms.add("<")
        top = self._top(a, b)
        p = self.fields[top].p
        x, y, marks_a, marks_b = self._residue(a, top), self._residue(b, top), a.marks, b.marks
        turn = int(mixed(np.array([self.seed]), 5)[0]) % (p - 1) + 1
        difference = (y - x) % p
        rest, above, code = self._without_shift(difference, _shifted(a, b, lambda one, other: other - one), top)
        many = self.compared.size
        gaps = many - rest * turn % p * (many + 1) // p
        for part, other, least in ((b, a, True), (a, b, False)):
            # a number known to be at least 0 lies above 0
            if part.shift is None and other.fixed and part.flags is not None:
                far = np.maximum(gaps, many - gaps) if least else np.minimum(gaps, many - gaps)
                gaps = np.where((part.marks & NONNEGATIVE) != 0, far, gaps)
        drawn = (difference != 0) & (code == 0)
        result = np.where(drawn, gaps > above, code > 0)
        for at, of, said in ((x, marks_b, y != 0), (y, marks_a, False)):
            known = (at == 0) & (of & NONNEGATIVE != 0)
            result, drawn = np.where(known, said, result), drawn & ~known
        kinds_a, kinds_b = marks_a & KIND, marks_b & KIND
        drawn = drawn & (kinds_a == NUMBER) & (kinds_b == NUMBER)
        # a value that depends on a root that does not exist decides nothing at this point
        sure = drawn & ((marks_a | marks_b) & ROOT == 0)
        self.taken.append((bool(drawn.any()), bool((sure & result).any()), bool((sure & ~result).any())))
        if self.compared[above].any():
            # between each two of the numbers others may happen
            lies = np.bincount(gaps[sure].reshape(-1), minlength=many + 1) > 0
            self.taken += [(bool(drawn.any()), bool(k), True) for k in lies]
        if kinds_a.any() or kinds_b.any():
            if (kinds_a == LOST).any() or (kinds_b == LOST).any():
                raise NotModelled("a comparison of what the model does not say")
            result = np.where((kinds_a != NUMBER) | (kinds_b != NUMBER), _HEIGHT[kinds_a] < _HEIGHT[kinds_b], result)
            result = np.where((kinds_a == NAN) | (kinds_b == NAN), False, result)
            odd = (kinds_a == UNDEFINED) | (kinds_b == UNDEFINED)
            result = np.where(odd, self._draw.integers(0, 2, odd.shape) == 1, result)
        return np.asarray(result, bool)

    def _without_shift(self, difference: Array, shift: Array | None, level: int) -> tuple[Array, Array, Array]:
        """(The residues of differences without the number of the code in them, the place of its opposite in order, the
        number where there is nothing else and else 0)."""
        zero, none = int(np.searchsorted(self.compared, 0.0)), np.zeros(())
        if shift is None:
            return difference, np.asarray(zero), none
        distinct, where = np.unique(shift, return_inverse=True)
        if distinct.size > FEW:
            return difference, np.asarray(zero), none
        where = where.reshape(shift.shape)
        constant = self.constant(distinct).residues[level]
        assert constant is not None
        rest = (difference - constant[where]) % self.fields[level].p
        near = np.abs(self.compared[:, None] + distinct).argmin(0)
        known = np.abs(self.compared[near] + distinct) <= NEAR * np.abs(distinct)
        unknown = ~known[where] & (rest != 0)
        self.met |= {abs(float(x)) for x in distinct[np.unique(where[unknown])]}
        return np.where(unknown, difference, rest), np.where(known, near, zero)[where], np.where(rest == 0, shift, 0.0)

    def apart(self, ours: set[tuple[int, int]], theirs: set[tuple[int, int]]) -> Array:
        """The members of maxima that one side alone told, but for those that are in maxima of both, sorted."""
        one, other = (
            [NOBODY, *(self.sets[level].members(key).astype(np.int64) for level, key in some)]
            for some in (ours - theirs, theirs - ours)
        )
        return np.setxor1d(np.concatenate(one), np.concatenate(other))

    def finite(self, a: Field) -> Array:
        """Whether it is a number."""
        return np.isin(a.marks & KIND, (NUMBER, MASK, OPPOSITE))

    def is_nan(self, a: Field) -> Array:
        """Whether it is no number at all."""
        return np.asarray((a.marks & KIND) == NAN)

    def maximum(self, a: Field, b: Field, of_constant: bool = False) -> Field:
        """The greater one. of_constant: whether one of them is a number of the code, which is compared as by `less`."""
        shape = np.broadcast_shapes(a.shape, b.shape)
        a, b = (self.map(x, lambda r: np.broadcast_to(r, shape)) for x in (a, b))
        if of_constant:
            return self._larger(a, b)
        if shape and shape[-1] > 1 and _repeated(a) and _repeated(b):
            # a running maximum is often kept once for each lane
            x, y = (self.map(part, lambda r: r[..., :1]) for part in (a, b))
            return self.map(self.maximum(x, y), lambda r: np.broadcast_to(r, shape))
        residues = self._each([a, b], lambda f, x, y: f.add(x, y))
        if not any(r is not None and r.any() for r in residues) and not (a.kinds.any() or b.kinds.any()):
            # max(x, -x) = |x|
            return self.absolute(a)
        if self.chosen:
            # two that are equal are never met
            self.axioms.add(EQUAL)
            return self._larger(a, b)
        both = self.combine([a, b], lambda parts: np.stack([p.reshape(-1) for p in parts], 1))
        return self.map(self._maxima(both), lambda r: r.reshape(shape))

    def _larger(self, a: Field, b: Field) -> Field:
        """Of two of one shape the one that `less` chooses."""
        below = self.less(a, b)
        found = self.combine([a, b], lambda parts: np.where(below, parts[1], parts[0]))
        undefined = (a.kinds == UNDEFINED) | (b.kinds == UNDEFINED)
        # beside an infinity or a mask value the other one is it, whatever it is a maximum of
        alone = (a.kinds != NUMBER) | (b.kinds != NUMBER)
        both_low = a.marks & b.marks & NONPOSITIVE
        flags = np.where(alone, found.marks, (found.marks & ~np.uint8(MAXIMUM | NONPOSITIVE | BESIDE)) | both_low)
        flags = np.where(undefined, UNDEFINED, flags)
        at_least = (((a.marks | b.marks) & NONNEGATIVE) != 0) & ((flags & KIND) == NUMBER)
        flags = (flags | np.where(at_least, NONNEGATIVE, 0)).astype(np.uint8)
        return replace(self._kept(found.residues, flags, found.span), shift=found.shift, fixed=found.fixed)

    def absolute(self, a: Field) -> Field:
        """|a|."""
        negative = self.less(a, self.constant(np.zeros(())))
        found = self.combine([a, self.neg(a)], lambda parts: np.where(negative, parts[1], parts[0]))
        signs = np.where(found.kinds == NUMBER, NONNEGATIVE, 0).astype(np.uint8)
        return replace(found, flags=(found.marks & ~np.uint8(SIGNS)) | signs)

    def minimum(self, a: Field, b: Field, of_constant: bool = False) -> Field:
        """The smaller one: the opposite of the maximum of the opposites."""
        return self.neg(self.maximum(self.neg(a), self.neg(b), of_constant))

    def _maxima(self, rows: Field) -> Field:
        """Of each row of [rows, columns] the maximum."""
        self.axioms.add("max")
        if rows.shape[1] == 1:
            return self.map(rows, lambda r: r[:, 0])
        (marks,) = _few(rows.marks)
        kinds = marks & KIND
        leaves, maxima = kinds == NUMBER, (kinds == NUMBER) & ((marks & MAXIMUM) != 0)
        members = [np.broadcast_to(part, rows.shape) for part in (leaves, maxima)]
        found: list[Array | None] = []
        count = np.zeros(rows.shape[0], np.int64)
        known = [k for k, r in enumerate(rows.residues) if r is not None]
        highest = known[-1] if self.lean and len(known) > 1 else self.levels
        self.left = self.left or highest < self.levels
        for k, (sets, residues) in enumerate(zip(self.sets, rows.residues, strict=True)):
            if residues is None or k == highest:
                found.append(None)
                continue
            if maxima.any() and not sets.knows(residues[members[1]]):
                raise NotModelled("a maximum of more maxima than are kept")
            r, count = sets.maximum(residues, *members)
            found.append(r)
        height = np.where(leaves, -9, _HEIGHT[kinds]).max(1)
        only = np.array([NAN, NEGATIVE, MASK, NUMBER, OPPOSITE, POSITIVE], np.uint8)[np.clip(height + 3, 0, 5)]
        result = np.where(count > 0, np.where(height > 0, only, NUMBER), only)
        for bad in (NAN, LOST, UNDEFINED):
            result = np.where((kinds == bad).any(1), bad, result)
        flags = result.astype(np.uint8) | np.where(count > 1, MAXIMUM, 0).astype(np.uint8)
        flags |= np.bitwise_or.reduce(marks & ROOT, 1)
        flags |= np.where(((marks & NONNEGATIVE) != 0).any(1), NONNEGATIVE, 0).astype(np.uint8)
        flags |= np.where((((marks & NONPOSITIVE) != 0) | ~leaves).all(1), NONPOSITIVE, 0).astype(np.uint8)
        return self._kept(tuple(found), flags.astype(np.uint8), rows.span)

    # along axes; the axis is the last one of [.., n]

    def sum(self, a: Field) -> Field:
        """The sum along the last axis."""
        n = a.shape[-1]
        residues = self._each([a], lambda f, x: x.sum(-1) % f.p)
        span = None if a.span is None else (n * min(0, a.span[0]), n * max(0, a.span[1]))
        shift = None if a.shift is None else a.shift.sum(-1)
        if a.flags is None:
            return Field(residues, None, span, shift=shift, fixed=a.fixed)
        (marks,) = _few(a.flags)
        kinds = marks & KIND
        result = np.zeros(kinds.shape[:-1], np.uint8)
        for kind in (OPPOSITE, MASK, POSITIVE, NEGATIVE, NAN, LOST, UNDEFINED):
            some = (kinds == kind).any(-1)
            result = np.where(some, _SUM[result, kind] if kind not in (UNDEFINED,) else UNDEFINED, result)
        flags = result | np.bitwise_or.reduce(marks & ROOT, -1) | np.bitwise_and.reduce(marks & SIGNS, -1)
        found = self._kept(residues, np.broadcast_to(flags.astype(np.uint8), a.shape[:-1]), span)
        return replace(found, shift=shift, fixed=a.fixed)

    def largest(self, a: Field) -> Field:
        """The maximum along the last axis."""
        lead = a.shape[:-1]
        rows = self.map(a, lambda r: r.reshape(-1, a.shape[-1]))
        return self.map(self._maxima(rows), lambda r: r.reshape(lead))

    def foremost(self, a: Field) -> Array:
        """Along the last axis which elements are the greatest, of numbers in the order that `sets` draws.

        A maximum among them is the member that it is drawn to be.
        """
        self.axioms |= {EQUAL, "<"}
        self.chose = True
        kinds = a.kinds
        if (kinds == LOST).any():
            raise NotModelled("an order of what the model does not say")
        top = self._top(a)
        members = self._residue(a, top)
        maxima = (a.marks & MAXIMUM) != 0
        if maxima.any():
            if not self.sets[top].knows(members[maxima]):
                raise NotModelled("an order of more maxima than are kept")
            members = members.copy()
            members[maxima] = self.sets[top].drawn(members[maxima], self.preferred)
        self.told |= {(top, int(k)) for k in np.unique(self._residue(a, top)[maxima])}
        height = np.where(kinds == NAN, 9, _HEIGHT[kinds])
        odd = kinds == UNDEFINED
        height = np.where(odd, self._draw.integers(-9, 9, odd.shape, endpoint=True), height)
        among = height == height.max(-1, keepdims=True)
        ranks = np.where(kinds == NUMBER, self.sets[top].ranks(members, self.preferred), np.uint64(0))
        ranks = np.where(among, ranks, np.uint64(2**64 - 1))
        found: Array = among & (ranks == ranks.min(-1, keepdims=True))
        # each place is taken at some point, and not at another
        sure = (np.bitwise_or.reduce(a.marks, -1) & ROOT) == 0
        drawn = (kinds == NUMBER).sum(-1) > 1
        for k in range(min(a.shape[-1], MOST_CHOICES)):
            here = found[..., k] & sure & drawn
            self.taken.append((bool(drawn.any()), bool(here.any()), bool((~found[..., k] & sure & drawn).any())))
        return found

    def matmul(self, a: Field, b: Field) -> Field:
        """[.., M, K] times [.., K, N]."""
        residues = self._each([a, b], lambda f, x, y: f.matmul(x, y))
        n = a.shape[-1]
        span = _both(a, b, lambda x, y: tuple(n * e for e in product_span(x, y)))  # type: ignore[arg-type,return-value]
        if a.flags is None and b.flags is None:
            return Field(residues, None, span)
        (x,), (y,) = _few(a.marks), _few(b.marks)
        shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
        bad_x, bad_y = (x & KIND) != NUMBER, (y & KIND) != NUMBER
        flags = np.zeros((*np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1]), np.uint8)
        for kind, of_x, of_y in (
            (LOST, bad_x, bad_y),
            (UNDEFINED, (x & KIND) == UNDEFINED, (y & KIND) == UNDEFINED),
        ):
            some = of_x.any(-1)[..., :, None] | of_y.any(-2)[..., None, :]
            flags = np.where(some, kind, flags)
        root = ((x & ROOT) != 0).any(-1)[..., :, None] | ((y & ROOT) != 0).any(-2)[..., None, :]
        positive = ((x & NONNEGATIVE) != 0).all(-1)[..., :, None] & ((y & NONNEGATIVE) != 0).all(-2)[..., None, :]
        flags = flags | np.where(root, ROOT, 0) | np.where(positive, NONNEGATIVE, 0)
        return self._kept(residues, np.broadcast_to(flags.astype(np.uint8), shape), span)

    def accumulate(self, base: Field, places: Array, values: Field) -> Field:
        """base with values added at flat places; places below 0 are left out."""
        chosen = places.reshape(-1) >= 0
        at = places.reshape(-1)[chosen]
        shape = base.shape

        def added(field: Prime, x: Array, y: Array) -> Array:
            out = x.reshape(-1).copy()
            np.add.at(out, at, y.reshape(-1)[chosen])
            return (out % field.p).reshape(shape)

        residues = self._each([base, values], added)
        shift = None
        if base.shift is not None or values.shift is not None:
            one, other = (np.zeros(part.shape) if part.shift is None else part.shift for part in (base, values))
            shift = one.reshape(-1).copy()
            np.add.at(shift, at, other.reshape(-1)[chosen])
            shift = shift.reshape(shape)
        if base.flags is None and values.flags is None:
            return Field(residues, shift=shift)
        flags = base.marks.reshape(-1).copy()
        given = values.marks.reshape(-1)[chosen]
        flags &= np.uint8(~np.uint8(SIGNS | BESIDE) & 0xFF)
        for mark in np.unique(given & (KIND | ROOT)):
            some = at[(given & (KIND | ROOT)) == mark]
            flags[some] = _SUM[flags[some] & KIND, mark & KIND] | ((flags[some] | mark) & ROOT)
        return replace(self._kept(residues, flags.reshape(shape)), shift=shift)

    # answers

    def differs(self, a: Field, b: Field) -> tuple[Array, Array]:
        """(where two differ, where that says something): a root of what is no square, or what is lost, says nothing."""
        kinds_a, kinds_b = a.kinds, b.kinds
        different = np.zeros(a.shape, bool)
        self._top(a, b)
        for x, y in zip(a.residues, b.residues, strict=True):
            if x is not None and y is not None:
                different |= x != y
        different = np.where((kinds_a == NUMBER) & (kinds_b == NUMBER), different, kinds_a != kinds_b)
        said = (((a.marks | b.marks) & ROOT) == 0) | ((a.signs != 0) & (a.signs == b.signs) & (a.by == b.by))
        said &= (kinds_a != LOST) & (kinds_b != LOST)
        return different, said

    def lost(self, a: Field) -> bool:
        """Whether the model does not say some element."""
        return bool((a.kinds == LOST).any())


def _powers_of(p: int, base: int, exponents: Array) -> Array:
    """base to each exponent."""
    distinct, where = np.unique(exponents, return_inverse=True)
    return np.array([pow(base, int(e), p) for e in distinct], np.int64)[where.reshape(exponents.shape)]


def _repeated(a: Field) -> bool:
    """Whether all along the last axis are the same."""
    parts = [part for part in (*a.residues, a.flags, a.turned) if part is not None]
    return all(bool((part[..., 1:] == part[..., :1]).all()) for part in parts)


def _shifted(a: Field, b: Field, of: Callable[[Array, Array], Array]) -> Array | None:
    """The combination of the constants that were added to two numbers."""
    if a.shift is None and b.shift is None:
        return None
    x, y = (np.zeros(()) if part.shift is None else part.shift for part in (a, b))
    return np.broadcast_to(of(*_few(x, y)), np.broadcast_shapes(a.shape, b.shape))


def _alike(part: Array, move: Callable[[Array], Array]) -> Array:
    """Elements that are moved, which are mostly all the same."""
    if part.size and not any(step for step, n in zip(part.strides, part.shape, strict=True) if n > 1):
        found = move(np.broadcast_to(np.zeros((), np.uint8), part.shape))
        return np.broadcast_to(part[(0,) * part.ndim], found.shape)
    return move(part)


def _few(*marks: Array) -> tuple[Array, ...]:
    """Flags, one for all along the axes on which they are broadcast."""
    shape = np.broadcast_shapes(*(m.shape for m in marks))
    full = [np.broadcast_to(m, shape) for m in marks]
    at = tuple(
        slice(0, 1) if n > 1 and not any(m.strides[k] for m in full) else slice(None) for k, n in enumerate(shape)
    )
    return tuple(m[at] for m in full)


def _stays(part: Array, axis: int) -> bool:
    """Whether all along an axis are the same."""
    return part.strides[axis] == 0 or bool((part == part.take([0], axis)).all())


def _shape(parts: Sequence[Field]) -> tuple[int, ...]:
    return np.broadcast_shapes(*(p.shape for p in parts))


def _both(a: Field, b: Field, of: Callable[[Span, Span], Span]) -> Span | None:
    return None if a.span is None or b.span is None else of(a.span, b.span)


def _where_number(residues: tuple[Array | None, ...], x: Array, y: Array) -> tuple[Array | None, ...]:
    """Sums, 0 where a mask value meets its opposite."""
    x, y = _few(x, y)
    other = ((x & KIND) != NUMBER) | ((y & KIND) != NUMBER)
    if not other.any():
        return residues
    return tuple(None if r is None else np.where(other, 0, r) for r in residues)


def _worse(a: Array, b: Array) -> Array:
    kinds = np.maximum(_RANK[a & KIND], _RANK[b & KIND])
    found: Array = (_BY_RANK[kinds] | ((a | b) & ROOT)).astype(np.uint8)
    return found


_BY_RANK = np.array([NUMBER, POSITIVE, NEGATIVE, MASK, OPPOSITE, NAN, LOST, UNDEFINED], np.uint8)
_RANK = np.argsort(_BY_RANK).astype(np.uint8)
