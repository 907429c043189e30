"""Integers as machines hold them, in terms: masks, shifts, and what wraps around at a width.

All of it is exact for two's complement: `x & 12` is `x // 4 % 4 * 4` for negative x too.
"""

from __future__ import annotations

from functools import reduce

from layoutproof.bodies import problems
from layoutproof.core.folding import constant, fold
from layoutproof.core.term import ZERO, Term

MOST_RUNS = 4
"""Runs of ones in a mask that are written out."""


class UnsupportedOp(Exception):
    """An index map does something that no term says; the text says what."""


def wrapped(term: Term, bits: int, signed: bool) -> Term:
    """The number that so many bits hold of a term.

    >>> str(wrapped(Term("int", 300), 8, True)), str(wrapped(Term("name", "i"), 8, False))
    ('44', 'i % 256')
    """
    half, whole = 1 << (bits - 1), Term("int", 1 << bits)
    if not signed:
        return fold("%", term, whole)
    value = constant(term)
    if value is not None and -half <= value < half:
        return term
    return fold("-", fold("%", fold("+", term, Term("int", half)), whole), Term("int", half))


def signed_rest(term: Term) -> tuple[Term, int] | None:
    """A number, and the bits with a sign that hold what the term is of it: of `wrapped`, or `int32(..)`; else None.

    >>> signed_rest(wrapped(Term("name", "i"), 8, True)), signed_rest(Term("name", "i"))
    ((Term(i), 8), None)
    """
    if term.op == "int32":
        return term.args[0], 32
    half = constant(term.args[1]) if term.op == "-" else None
    if half is None or half < 1 or half & (half - 1):
        return None
    rest = term.args[0]
    if rest.op != "%" or constant(rest.args[1]) != 2 * half:
        return None
    moved = rest.args[0]
    return (moved.args[0], half.bit_length()) if moved.op == "+" and constant(moved.args[1]) == half else None


def masked(term: Term, mask: int) -> Term:
    """`term & mask`. UnsupportedOp for masks with many holes.

    >>> [str(masked(Term("name", "i"), mask)) for mask in (3, 12, -4)]
    ['i % 4', 'shl(i // 4 % 4, 2)', 'i - i % 4']
    """
    if mask < 0:
        return fold("-", term, masked(term, ~mask))
    runs: list[Term] = []
    low = 0
    while mask >> low:
        if not mask >> low & 1:
            low += 1
            continue
        length = (~(mask >> low) & (mask >> low) + 1).bit_length() - 1
        part = fold("%", fold("//", term, Term("int", 1 << low)), Term("int", 1 << length))
        runs.append(part if low == 0 else fold("shl", part, Term("int", low)))
        low += length
    if len(runs) > MOST_RUNS:
        raise UnsupportedOp(problems.AND_RUNS(mask, len(runs)))
    return reduce(lambda left, right: fold("+", left, right), runs, ZERO)


def bitwise(name: str, operands: list[Term]) -> Term:
    """`and`, `or`, `xor` with a constant, and `not`, of whole numbers. UnsupportedOp where neither is a constant.

    >>> str(bitwise("or", [Term("name", "i"), Term("int", 1)])), str(bitwise("not", [Term("name", "i")]))
    ('i + 1 - i % 2', '(-1) - i')
    """
    if name == "not":
        return fold("-", Term("int", -1), operands[0])
    for term, other in (operands, operands[::-1]):
        mask = constant(other)
        if mask is None:
            continue
        both = masked(term, mask)
        if name == "and":
            return both
        twice = both if name == "or" else fold("*", Term("int", 2), both)
        return fold("-", fold("+", term, other), twice)
    raise UnsupportedOp(problems.BITWISE(name))


def shifted(term: Term, by: Term, bits: int, direction: str) -> Term:
    """A shift by a constant below the width; "left", "right", or "logical": zeros come in from the left."""
    count = constant(by)
    if count is None or not 0 <= count < bits:
        raise UnsupportedOp(problems.SHIFT(by, bits - 1))
    if direction == "left":
        # no product: the compiler's prover of alignment tells them apart
        return fold("shl", term, Term("int", count)) if count else term
    factor = Term("int", 1 << count)
    if direction == "logical" and count > 0:
        # of a negative number as if it were unsigned
        term = wrapped(term, bits, signed=False)
    return fold("//", term, factor)
