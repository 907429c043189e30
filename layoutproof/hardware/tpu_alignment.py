"""Whether the TPU compiler can prove that an Element window starts at a tile: its prover, not ours.

"Couldn't prove that tiling (8) divides index returned by transform_indices". Measured on libtpu 0.0.42.1 and 0.0.50.1:
it follows products, the branches of a select, and hints; it gives up at every sum, difference, minimum, maximum,
division and remainder, also where the result is a multiple. From libtpu 0.0.51 on it also follows sums, differences,
minima, maxima and remainders whose parts are multiples, and what is left of the tile below a constant factor.
`pl.multiple_of(x, 8)` is believed although false, which is why `element_alignment` asks for the truth as well.
"""

from __future__ import annotations

from math import gcd

from layoutproof.core.numbers import INTS
from layoutproof.core.term import Term

_BOTH = ("+", "-", "min", "max", "%", "truncrem")


def believes(term: Term, tile: int, sums: bool = False) -> bool:
    """Whether the compiler takes the value for a multiple of `tile`. sums: as from libtpu 0.0.51 on.

    A product is one when a factor is; only constant factors of one chain are multiplied with each other first.

    >>> from layoutproof.core.expression import parse_expression
    >>> texts = ("i * 4 * 2", "8 * i + 8", "(7 - i) * 8", "(i * 2) * (i * 4)", "(i * 2 + 2) * 4")
    >>> [believes(parse_expression(t), 8) for t in texts]
    [True, False, True, False, False]
    >>> [believes(parse_expression(t), 8, sums=True) for t in texts]
    [True, True, True, False, True]
    """
    if _constant(term):
        # constants are folded before the compiler sees them
        return int(term.evaluate({}, INTS)) % tile == 0
    match term.op:
        case "*":
            if _constant_factor(term) % tile == 0 or any(believes(side, tile, sums) for side in term.args):
                return True
            known = [(int(a.evaluate({}, INTS)), b) for a, b in (term.args, term.args[::-1]) if _constant(a)]
            return sums and any(believes(b, tile // gcd(tile, a), sums) for a, b in known)
        case "select":
            return believes(term.args[1], tile, sums) and believes(term.args[2], tile, sums)
        case "multiple_of":
            return bool(term.args[1].args[0] % tile == 0) or believes(term.args[0], tile, sums)
    return sums and term.op in _BOTH and all(believes(side, tile, sums) for side in term.args)


def _constant(term: Term) -> bool:
    return term.op == "int" or (term.op not in ("name", "read") and all(_constant(a) for a in term.args))


def _constant_factor(term: Term) -> int:
    """The product of the constants in a chain such as x * 4 * 2."""
    if term.op != "*":
        return 1
    left, right = term.args
    if _constant(left):
        left, right = right, left
    if not _constant(right):
        return 1
    return _constant_factor(left) * int(right.evaluate({}, INTS))
