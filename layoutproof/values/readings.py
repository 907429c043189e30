"""Numbers that a compiler, or Python, made of those of the source, read as what they were made of.

1 / f32(0.001) is 999.999939, which no simple number rounds to; 0.9 ** 8 neither. A number of the compiled text that the
source does not have is looked for among products, quotients and powers of those that it has, each read as the number
that it stands for. It counts where it is within 4 units in the last place of float32; a bfloat16, to which constants
are folded, where one number of the source rounds to it. So a reading never moves a number by more than rounding does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from layoutproof.ir.program import Program
from layoutproof.values.literals import FEW, Reading, literals, meant
from layoutproof.values.walked import numbers_in

CLOSE = 4 * 2.0**-24
"""How near, relatively, a number that was folded in float32 comes to it."""
POWERS = [sign * k for k in range(2, 33) for sign in (1, -1)]
"""Of one number, besides itself and what it divides 1 into."""
MOST = 64
"""Numbers of the source that are multiplied with one another."""


def _floats(program: Program) -> dict[int, set[float]]:
    """Bytes of a type -> the numbers of few arrays and single numbers of it."""
    found: dict[int, set[float]] = {}
    for dtype, arrays in numbers_in(program, lambda dtype: getattr(dtype, "kind", "") in "fV").items():
        if dtype is None or "int" in str(dtype):
            continue
        for array in arrays:
            numbers = np.unique(np.abs(array.astype(np.float64)))
            if numbers.size <= FEW:
                found.setdefault(min(int(dtype.itemsize), 4), set()).update(numbers[np.isfinite(numbers)].tolist())
    return found


def readings(compiled: Program, source: Program) -> Mapping[float, Reading]:
    """Of numbers of a compiled program that its source does not have, the product as which each is read."""
    theirs = sorted({x for numbers in _floats(source).values() for x in numbers} - {0.0})[:MOST]
    found: dict[float, Reading] = {}
    for width, numbers in _floats(compiled).items():
        for x in numbers - set(theirs):
            if meant(x) == x and not literals(np.array([x])).twos[0]:
                # as it is written it is a simple number
                continue
            made = _rounded(x, theirs) if width < 4 else _made(x, theirs)
            if made is not None:
                found[x] = made
                found[-x] = (*made, (-1.0, 1))
    return found


def both_ways(one: Program, other: Program) -> Mapping[float, Reading]:
    """Of numbers that only one of two compiled programs has, the product of the other's as which each is read."""
    found = dict(readings(one, other))
    made_of = {abs(n) for reading in found.values() for n, _ in reading}
    for x, reading in readings(other, one).items():
        # the reading of a number stands for itself
        if abs(x) not in made_of and x not in found and not any(abs(n) in found for n, _ in reading):
            found[x] = reading
    return found


def folded(one: Program, other: Program) -> Mapping[float, Reading]:
    """Of numbers that only one of two programs has, and that are nothing simple, such as 3 * 0.044715, which Python
    multiplied: the product of the other's numbers as which each is read."""
    return {x: made for x, made in both_ways(one, other).items() if literals(np.array([x])).twos[0]}


def _rounded(x: float, theirs: Sequence[float]) -> Reading | None:
    """The one number of the source that a bfloat16 is rounded from."""
    import ml_dtypes

    near = [t for t in theirs if float(np.float64(t).astype(ml_dtypes.bfloat16)) == x]
    return ((near[0], 1),) if len(near) == 1 else None


def _made(x: float, theirs: Sequence[float]) -> Reading | None:
    """The number of the source, or the product of powers, that a float32 is near to."""
    known = np.array([meant(t) for t in theirs])
    with np.errstate(all="ignore"):
        for power in (1, -1, *POWERS):
            hits = np.flatnonzero(np.abs(known**power - x) <= CLOSE * x)
            if hits.size:
                return ((theirs[int(hits[0])], power),)
        for p, q in ((1, 1), (1, -1), (-1, -1)):
            pairs = np.argwhere(np.abs(np.outer(known**p, known**q) - x) <= CLOSE * x)
            if pairs.size:
                return (theirs[int(pairs[0][0])], p), (theirs[int(pairs[0][1])], q)
    return None


def told(found: Mapping[float, Reading], many: int = 5) -> str:
    """The readings for people; "" for none."""
    words = []
    for x, reading in sorted(found.items()):
        if x > 0:
            words.append(f"{x:.9g} as " + " ".join(f"{n:.9g}" + (f"^{p}" if p != 1 else "") for n, p in reading))
    more = f", and {len(words) - many} more" if len(words) > many else ""
    return ", ".join(words[:many]) + more
