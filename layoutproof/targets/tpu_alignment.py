"""Whether the TPU compiler can prove that an Element window starts at a tile: its prover, not ours.

Measured on libtpu 0.0.42.1: "Couldn't prove that tiling (8) divides index returned by transform_indices". It follows
products, the branches of a select, and hints; it gives up at every sum, difference, minimum, maximum, division and
remainder, also where the result is a multiple. `pl.multiple_of(x, 8)` is believed although false, which is why
`element_alignment` asks for the truth as well.
"""

from __future__ import annotations

from layoutproof.core.numbers import INTS
from layoutproof.core.term import Term


def believes(term: Term, tile: int) -> bool:
    """Whether the compiler takes the value for a multiple of `tile`.

    A product is one when a factor is; only constant factors of one chain are multiplied with each other first.

    >>> from layoutproof.core.expression import parse_expression
    >>> [believes(parse_expression(t), 8) for t in ("i * 4 * 2", "8 * i + 8", "(7 - i) * 8", "(i * 2) * (i * 4)")]
    [True, False, True, False]
    """
    if _constant(term):
        # constants are folded before the compiler sees them
        return int(term.evaluate({}, INTS)) % tile == 0
    match term.op:
        case "*":
            return _constant_factor(term) % tile == 0 or any(believes(side, tile) for side in term.args)
        case "select":
            return believes(term.args[1], tile) and believes(term.args[2], tile)
        case "multiple_of":
            return bool(term.args[1].args[0] % tile == 0) or believes(term.args[0], tile)
    return False


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
