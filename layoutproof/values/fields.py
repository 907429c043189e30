"""Arithmetic on chains of prime fields, on NumPy arrays of residues.

In a chain p, 2p+1, 4p+3, .. of primes the squares of each field but the lowest are a group whose order is the prime
below it. So `exp` takes residues of one level to the next, x -> g^x, and exp(a + b) = exp(a) exp(b) holds (Mirage,
Wu et al., OSDI 2025); `log` is its inverse and goes one level down. All primes are below 2^31: a product of two
residues fits 64 bits, and sums of products are exact in float64 once those of one side are cut in two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

BELOW = 2**31
"""Every prime is below it."""
LONGEST = 4
"""Primes of the longest chain: exponentials are nested at most one time less."""
_PIECE, _LARGE = 2**13, 2**11
"""Elements that are reduced at once; of fewer than the second nothing is gained by it."""
_SUMS = 2**18
"""Sums of a product of matrices that are computed at once."""
_SPLIT = 15
"""Bits of the lower half of a residue."""
_HALF, _GIANT = 16, 20
"""Bits of the first table of powers, and of the table that finds logarithms."""


class Depth(NamedTuple):
    """How deeply nested exponentials and logarithms may be at a point.

    levels: primes of the chain in use.  oracles: whether those that no level holds are functions without laws.
    """

    levels: int = 1
    oracles: bool = False

    def deeper(self) -> Depth | None:
        """The next depth where this one does not reach; None = there is none.

        >>> Depth(1).deeper(), Depth(LONGEST).deeper(), Depth(LONGEST, True).deeper()
        (Depth(levels=2, oracles=False), Depth(levels=1, oracles=True), None)
        """
        if self.levels < LONGEST:
            return Depth(self.levels + 1, self.oracles)
        return None if self.oracles else Depth(1, True)


@lru_cache(maxsize=64)
def chain(seed: int) -> tuple[int, ...]:
    """Four primes p, 2p+1, 4p+3, 8p+7 below 2^31, drawn by the seed; in all but the lowest 2 is a square.

    >>> [b == 2 * a + 1 for a, b in zip(chain(0), chain(0)[1:])], chain(0)[-1] < BELOW, chain(0) == chain(1)
    ([True, True, True], True, False)
    """
    draw = np.random.default_rng((7, seed))
    while True:
        start = int(draw.integers(BELOW // 32, BELOW // 16))
        # p = 3 modulo 4 makes the next one 7 modulo 8, where 2 is a square
        for first in range(start - start % 4 + 3, start + 400_000, 4):
            found = (first, 2 * first + 1, 4 * first + 3, 8 * first + 7)
            if all(p % q for p in found for q in (3, 5, 7, 11, 13)) and all(map(_is_prime, found)):
                return found


def _is_prime(n: int) -> bool:
    """Whether an odd number from 63 to 4,759,123,140 is prime (Miller and Rabin; Jaeschke 1993 for these bases).

    >>> [n for n in (2**31 - 1, 2047, 3215031751, 4759123139) if _is_prime(n)]
    [2147483647]
    """
    twos = ((n - 1) & (1 - n)).bit_length() - 1
    for base in (2, 7, 61):
        x = pow(base, (n - 1) >> twos, n)
        if x not in (1, n - 1) and not any((x := x * x % n) == n - 1 for _ in range(twos - 1)):
            return False
    return True


def mixed(keys: Array, salt: int) -> Array:
    """64 bits of each key that look random (splitmix64 of Steele, Lea and Flood, OOPSLA 2014).

    >>> int(mixed(np.array([1]), 0)[0]) != int(mixed(np.array([1]), 1)[0])
    True
    """
    found = np.array(keys, np.uint64, order="C")
    with np.errstate(over="ignore"):
        for x, shifted in _pieces(found.reshape(-1)):
            x += np.uint64((salt * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) % 2**64)
            for by, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
                np.right_shift(x, np.uint64(by), out=shifted)
                x ^= shifted
                x *= np.uint64(factor)
    return found


@dataclass(frozen=True)
class Prime:
    """One field. p: its prime, below 2^31.  below: the prime of the level below it, 0 of the lowest."""

    p: int
    below: int = 0

    def mul(self, a: Array, b: Array) -> Array:
        """The product of residues."""
        return self.reduced(a * b)

    def reduced(self, a: Array) -> Array:
        """The residues of an array of numbers from 0 on, which may be overwritten.

        >>> Prime(101).reduced(np.arange(10**4)).tolist() == [n % 101 for n in range(10**4)]
        True
        """
        flat = _flat(a)
        if flat is None:
            a %= self.p
            return a
        for part, quotient in _pieces(flat):
            # NumPy divides by one number with multiplications, and takes no remainder so
            np.floor_divide(part, np.uint64(self.p), out=quotient)
            quotient *= np.uint64(self.p)
            part -= quotient
        return a

    def add(self, a: Array, b: Array) -> Array:
        """The sum of residues."""
        return self._less(a + b)

    def neg(self, a: Array) -> Array:
        """The opposite of residues."""
        return self._less(self.p - a)

    def _less(self, a: Array) -> Array:
        """The residues of numbers below 2 p, which may be overwritten."""
        flat = _flat(a)
        if flat is None:
            a %= self.p
            return a
        for part, less in _pieces(flat):
            # below 0 it is a large number without a sign
            np.subtract(part, np.uint64(self.p), out=less)
            np.minimum(part, less, out=part)
        return a

    def power(self, a: Array, exponent: int) -> Array:
        """a to a power of at least 0, by squaring."""
        result = np.ones_like(a)
        while exponent:
            if exponent & 1:
                result = self.mul(result, a)
            a = self.mul(a, a)
            exponent >>= 1
        return result

    def inverse(self, a: Array) -> Array:
        """1 / a; of 0 it is 0. One power for all: products of pairs, of pairs of pairs, and back.

        >>> field = Prime(101)
        >>> field.mul(np.arange(1, 6), field.inverse(np.arange(1, 6))).tolist(), field.inverse(np.array([0])).tolist()
        ([1, 1, 1, 1, 1], [0])
        """
        flat = a.reshape(-1)
        zero = flat == 0
        if zero.any():
            return np.where(zero, 0, self.inverse(np.where(zero, 1, flat))).reshape(a.shape)
        rows, row = [], flat
        while row.size > 64:
            if row.size % 2:
                row = np.append(row, 1)
            rows.append(row)
            row = self.mul(row[0::2], row[1::2])
        found = self.power(row, self.p - 2)
        for row in reversed(rows):
            wide = np.empty_like(row)
            wide[0::2] = self.mul(found[: row.size // 2], row[1::2])
            wide[1::2] = self.mul(found[: row.size // 2], row[0::2])
            found = wide
        return found[: flat.size].reshape(a.shape)

    def exp(self, x: Array) -> Array:
        """g to residues of the level below."""
        low, high = _powers(self.p)
        found = np.empty(x.shape, np.int64)
        of = x.reshape(-1)
        for at, out in _spans(found.reshape(-1)):
            part = of[at]
            out[...] = low[part & (2**_HALF - 1)]
            out *= high[part >> _HALF]
        return self.reduced(found)

    def log(self, y: Array) -> tuple[Array, Array]:
        """(x with g^x = y or g^x = -y, where it was y), x being residues of the level below; of 0 anything.

        Baby steps and giant steps (Shanks 1971): one table of 2^20 powers, looked up 2^11 times at most.
        """
        square = self.power(y, (self.p - 1) // 2) == 1
        left = np.where(square, y, (self.p - y) % self.p).reshape(-1)
        keys, exponents, seen, step = _babies(self.p)
        found = np.full(left.size, -1, np.int64)
        open_ = np.flatnonzero(left != 0)
        left = left[open_]
        for giant in range(self.below // 2**_GIANT + 1):
            near = np.flatnonzero(seen[left & (seen.size - 1)])
            at = np.minimum(np.searchsorted(keys, left[near]), keys.size - 1)
            hit = keys[at] == left[near]
            done = near[hit]
            found[open_[done]] = (exponents[at[hit]] + giant * 2**_GIANT) % self.below
            if done.size:
                keep = np.ones(left.size, bool)
                keep[done] = False
                open_, left = open_[keep], left[keep]
            if not left.size:
                break
            left = left * step % self.p
        return np.maximum(found, 0).reshape(y.shape), square.reshape(y.shape)

    def matmul(self, a: Array, b: Array) -> Array:
        """Matrix products of residues, [.., M, K] by [.., K, N], exact: by both halves of b, in float64.

        Residues have a sign here, which makes them and their halves half as large.

        >>> int(Prime(2**31 - 1).matmul(np.full((1, 9), 2**31 - 2), np.full((9, 1), 2**31 - 2))[0, 0])
        9
        """
        # partial sums stay below 2^53, with room for the upper sums once they are residues
        half = max(2 ** (_SPLIT - 1), (self.p >> (_SPLIT + 1)) + 1)
        most = (2**53 - (self.p << (_SPLIT + 2))) // ((self.p // 2 + 1) * half)
        if a.shape[-1] > most:
            many = -(-a.shape[-1] // (a.shape[-1] // most + 1))
            starts = range(0, a.shape[-1], many)
            parts = [self.matmul(a[..., k : k + many], b[..., k : k + many, :]) for k in starts]
            total: Array = sum(parts[1:], parts[0]) % self.p
            return total
        batch, (m, k) = np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2:]
        matrices = prod(batch)
        left = np.broadcast_to(a, (*batch, m, k)).reshape(matrices, m, k)
        lower = self._signed(b)
        upper = (lower + 2 ** (_SPLIT - 1)) >> _SPLIT
        lower -= upper << _SPLIT
        halves = [
            np.broadcast_to(half.astype(np.float64), (*batch, *b.shape[-2:])).reshape(matrices, *b.shape[-2:])
            for half in (upper, lower)
        ]
        found = np.empty((matrices, m, b.shape[-1]), np.int64)
        # matrices, or rows of one, at once: sums stay in the processor's own memory
        wide = max(1, k, b.shape[-1])
        rows, many = max(1, _SUMS // wide), max(1, _SUMS // (wide * max(1, m)))
        for each in (slice(start, start + many) for start in range(0, matrices, many)):
            for some in (slice(start, start + rows) for start in range(0, m, rows)):
                part = self._signed(left[each, some]).astype(np.float64)
                high, low = (part @ half[each] for half in halves)
                self._together(high.reshape(-1), low.reshape(-1), found[each, some].reshape(-1))
        return found.reshape(*batch, *found.shape[1:])

    def _together(self, high: Array, low: Array, found: Array) -> None:
        """The residues of 2^15 high + low, of whole numbers; high is written over."""
        room = np.empty(min(_PIECE, found.size))
        for at, out in _spans(found):
            x, times = high[at], room[: out.size]
            self._near(x, times)
            x *= 2.0**_SPLIT
            x += low[at]
            self._near(x, times)
            out[...] = x
            # below 0 it is a large number without a sign
            whole, other = out.view(np.uint64), times.view(np.uint64)
            np.minimum(whole, np.add(whole, np.uint64(self.p), out=other), out=whole)
            np.minimum(whole, np.subtract(whole, np.uint64(self.p), out=other), out=whole)

    def _signed(self, a: Array) -> Array:
        """The residues from -p / 2 to p / 2."""
        return np.where(a > self.p // 2, a - self.p, a)

    def _near(self, x: Array, times: Array) -> None:
        """Takes multiples of p off whole numbers below 2^53, which leaves -p to 2 p. times: as much room."""
        np.multiply(x, 1.0 / self.p, out=times)
        np.floor(times, out=times)
        times *= self.p
        x -= times


def _flat(a: Array) -> Array | None:
    """All elements of a large array as one row of numbers without a sign, in place; None of others."""
    if a.size < _LARGE or not isinstance(a, np.ndarray) or not a.flags.forc:
        return None
    return (a if a.flags.c_contiguous else a.T).reshape(-1).view(np.uint64)


def _pieces(flat: Array) -> Iterator[tuple[Array, Array]]:
    """Pieces of a row that stay in the processor's own memory, each with room for as many numbers."""
    room = np.empty(min(_PIECE, flat.size), np.uint64)
    for k in range(0, flat.size, _PIECE):
        part = flat[k : k + _PIECE]
        yield part, room[: part.size]


def _spans(flat: Array) -> Iterator[tuple[slice, Array]]:
    """Where such pieces are in a row, and each of them."""
    for k in range(0, flat.size, _PIECE):
        at = slice(k, k + _PIECE)
        yield at, flat[at]


def generator(p: int) -> int:
    """A square that generates the squares of a field whose (p - 1) / 2 is prime."""
    return next(h * h % p for h in range(3, 100) if h * h % p not in (1, p - 1))


@lru_cache(maxsize=16)
def _powers(p: int) -> tuple[Array, Array]:
    """g^x for x below 2^16, and g^(x 2^16)."""

    def table(base: int) -> Array:
        row = np.ones(1, np.int64)
        while row.size < 2**_HALF:
            row = np.concatenate([row, row * pow(base, row.size, p) % p])
        return row

    base = generator(p)
    return table(base), table(pow(base, 2**_HALF, p))


@lru_cache(maxsize=4)
def _babies(p: int) -> tuple[Array, Array, Array, int]:
    """Sorted powers g^0 .. g^(2^20 - 1), their exponents, which low bits occur, and what a giant step multiplies by."""
    base = generator(p)
    row = np.ones(1, np.int64)
    while row.size < 2**_GIANT:
        row = np.concatenate([row, row * pow(base, row.size, p) % p])
    order = np.argsort(row)
    seen = np.zeros(2**24, bool)
    seen[row & (2**24 - 1)] = True
    return row[order], order, seen, pow(base, -(2**_GIANT), p)


@lru_cache(maxsize=64)
def logarithm(p: int, below: int, of: int) -> int:
    """x with g^x = of, for a number that is a square in the field."""
    found, square = Prime(p, below).log(np.array([of % p], np.int64))
    if not square[0]:
        raise ValueError(f"{of} is no square modulo {p}")
    return int(found[0])
