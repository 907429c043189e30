"""The numbers that floating-point literals stand for.

f32(1 / sqrt(128)) is no square root in a field; 0.1 is meant as 1/10. A literal is read as the simplest number that
rounds to it in float32: a rational n/d with n d < 2^16, three decimal digits and a power of ten, a square root of a
simple rational, a simple rational times ln 2 or by it. What the code computes of such numbers alone, in float64, is
the rational that it is to all its digits. Any other is the binary number that is written, rounded to the 24 bits of
float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

Reading = tuple[tuple[float, int], ...]
"""A number of the code as a product: of (a number, its power)."""
MOST = 2**16
"""Numerator times denominator of a simple rational is below it."""
FEWER = 2**12
"""Likewise of a root that is looked for before others are; of one times a logarithm a fourth of it."""
CLOSE = 2.0**-24
"""How near, relatively, a number comes to one that is rounded to it in float32."""
EXACT = 2.0**-50
"""Likewise one that was computed of such numbers in float64."""
MOST_EXACT = 2**32
"""Numerator times denominator of a rational that is known to that many digits is below it: of 2^17 numbers of float32
about one is near such a one by chance."""
FEW = 64
"""Arrays of more different numbers than that are weights, not literals."""
_STEPS = 12
_LN2 = float(np.log(2.0))


@dataclass(frozen=True)
class LiteralNumbers:
    """numerator / denominator 2^twos 10^tens sqrt(root) ln(2)^logs, of each literal; root is squarefree or 1."""

    numerator: Array
    denominator: Array
    twos: Array
    tens: Array
    root: Array
    logs: Array

    def text(self, k: int) -> str:
        """One of them for people."""
        n, d, two, ten, root, log = (
            int(part[k]) for part in (self.numerator, self.denominator, self.twos, self.tens, self.root, self.logs)
        )
        words = [str(n) if d == 1 else f"{n}/{d}"]
        words += [f"2^{two}"] * bool(two) + [f"10^{ten}"] * bool(ten) + [f"sqrt({root})"] * (root != 1)
        words += ["ln(2)"] * (log == 1) + ["/ ln(2)"] * (log == -1)
        return " ".join(words)


DIGITS = 5
"""Of a number of the code in decimals, where it is nothing simpler."""


def _simple(x: Array, most: int = MOST, close: float = CLOSE) -> tuple[Array, Array, Array]:
    """(numerator, denominator, whether there is one) of the first convergent of a continued fraction that is close."""
    size = np.abs(x)
    rest = size.copy()
    h, h_before = np.ones(x.shape), np.zeros(x.shape)
    k, k_before = np.zeros(x.shape), np.ones(x.shape)
    numerator, denominator = np.zeros(x.shape, np.int64), np.ones(x.shape, np.int64)
    found = np.zeros(x.shape, bool)
    with np.errstate(all="ignore"):
        for _ in range(_STEPS):
            whole = np.floor(rest)
            h, h_before = whole * h + h_before, h
            k, k_before = whole * k + k_before, k
            good = ~found & (h * k < most) & (h > 0) & (np.abs(h - size * k) <= close * size * k)
            numerator = np.where(good, np.where(good, h, 0).astype(np.int64), numerator)
            denominator = np.where(good, np.where(good, k, 1).astype(np.int64), denominator)
            found |= good
            part = rest - whole
            rest = np.where(part > 1e-12, 1 / part, 0.0)
            if found.all():
                break
    return np.where(x < 0, -numerator, numerator), denominator, found


def literals(x: Array) -> LiteralNumbers:
    """The numbers that finite literals stand for. x: [n], of float64.

    >>> read = literals(np.array([0.0, 0.1, 128**-0.5, 1.4426950408889634, 1e-6, 3.0e7, -2.5]))
    >>> [read.text(k) for k in range(7)]
    ['0', '1/10', '1/16 sqrt(2)', '1 / ln(2)', '1 10^-6', '30000000', '-5/2']
    """
    n, d = np.zeros(x.size, np.int64), np.ones(x.size, np.int64)
    twos, tens = np.zeros(x.size, np.int64), np.zeros(x.size, np.int64)
    root, logs = np.ones(x.size, np.int64), np.zeros(x.size, np.int64)
    left = np.ones(x.size, bool)

    def take(which: Array, *columns: tuple[Array, Array]) -> None:
        for column, values in columns:
            column[which] = values[which]
        left[which] = False

    whole = np.abs(x) < 2.0**53
    whole &= np.where(whole, x, 0.5) == np.floor(np.where(whole, x, 0.5))
    take(whole, (n, np.where(whole, x, 0).astype(np.int64)))
    top, bottom, good = _simple(np.where(left, x, 1.0))
    take(left & good, (n, top), (d, bottom))

    def decimal(many: int) -> None:
        size = np.where(left, np.abs(x), 1.0)
        power = np.floor(np.log10(size)).astype(np.int64) - (many - 1)
        digits = np.round(size / 10.0**power)
        near = left & (np.abs(digits * 10.0**power - size) <= CLOSE * size) & (np.abs(power) < 60)
        take(near, (n, (np.sign(x) * digits).astype(np.int64)), (tens, power))
        while (trailing := near & (n % 10 == 0) & (n != 0)).any():
            n[trailing] //= 10
            tens[trailing] += 1

    if left.any():
        decimal(3)
    # simple roots first; 1 / sqrt(24) times log2 e is the scale of attention by powers of two
    for most, log in ((FEWER, 0), (FEWER // 4, -1), (FEWER // 4, 1), (MOST, 0)):
        if left.any():
            found = _root(x / _LN2**log, left, most)
            take(found[0], *zip((n, d, root), found[1:], strict=True), (logs, np.full(x.size, log)))
    for log in (1, -1):
        if left.any():
            top, bottom, good = _simple(np.where(left, x / _LN2**log, 1.0), 256)
            take(left & good, (n, top), (d, bottom), (logs, np.full(x.size, log)))
    if left.any():
        # 1 - 1e-5 is written so, and not as a root
        decimal(DIGITS)
    if left.any():
        top, bottom, good = _simple(np.where(left, x, 1.0), MOST_EXACT, EXACT)
        take(left & good, (n, top), (d, bottom))
    if left.any():
        mantissa, exponent = np.frexp(x)
        take(left, (n, np.round(mantissa * 2.0**24).astype(np.int64)), (twos, exponent.astype(np.int64) - 24))
    return LiteralNumbers(n, d, twos, tens, root, logs)


def _root(x: Array, among: Array, most: int) -> tuple[Array, Array, Array, Array]:
    """(which are the square roots of a simple rational, numerator, denominator, what stands below the root)."""
    # a square is twice as far from what it stands for, relatively
    top, bottom, good = _simple(np.where(among, x * x, 1.0), most, 2 * CLOSE)
    with np.errstate(all="ignore"):
        good &= among & (np.abs(np.sqrt(top / bottom) - np.abs(x)) <= CLOSE * np.abs(x))
    n, d, root = (np.ones(x.size, np.int64) for _ in range(3))
    for k in np.flatnonzero(good):
        inside, outside = _squarefree(int(top[k]) * int(bottom[k]))
        common = gcd(outside, int(bottom[k]))
        n[k], d[k], root[k] = np.sign(x[k]) * (outside // common), bottom[k] // common, inside
    return good, n, d, root


def _squarefree(n: int) -> tuple[int, int]:
    """(s, k) with n = s k^2 and s squarefree."""
    k, d = 1, 2
    while d * d <= n:
        while n % (d * d) == 0:
            n, k = n // (d * d), k * d
        d += 1
    return n, k


@lru_cache(maxsize=4096)
def meant(x: float) -> float:
    """The number that a literal stands for, as float64 has it.

    >>> meant(float(np.float32(0.1))), meant(128**-0.5) == 2**0.5 / 16
    (0.1, True)
    """
    read = literals(np.array([x]))
    n, d, two, ten, root, log = (
        float(part[0])
        for part in (read.numerator, read.denominator, read.twos, read.tens, read.root, read.logs)
    )  # fmt: skip
    scaled = n / d * 2.0**two * (10.0**ten if ten >= 0 else 1.0) / (1.0 if ten >= 0 else 10.0**-ten)
    return float(scaled * root**0.5 * np.log(2.0) ** log)


def computed(of: Callable[..., Array], parts: Sequence[Array]) -> Array:
    """What a rational function gives of numbers of the code, each being what it stands for.

    >>> computed(np.add, [np.array([float(np.float32(0.9))]), np.array(1 / 3000)]).tolist() == [0.9 + 1 / 3000]
    True
    """
    return np.asarray(of(*map(_all_meant, parts)))


def _all_meant(x: Array) -> Array:
    """Each number as what it stands for; as they are where they are weights."""
    if x.size == 1:
        number = float(x.reshape(())[()])
        return x if not np.isfinite(number) else np.full(x.shape, meant(number))
    if np.unique(x.reshape(-1)[: 16 * FEW]).size > FEW:
        return x
    distinct = np.unique(x)
    if distinct.size > FEW or not np.isfinite(distinct).all():
        return x
    found = np.array([meant(number) for number in distinct.tolist()])
    return x if np.array_equal(found, distinct) else found[np.searchsorted(distinct, x)]


def value_of(reading: Reading) -> float:
    """The number of a reading."""
    found = 1.0
    for number, power in reading:
        found *= (meant(abs(number)) * (-1 if number < 0 else 1)) ** power
    return found
