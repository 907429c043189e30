"""Whether a bitcast of a program moves no byte of what it stands for: a reshape in row-major order, with transposes.

The text of a bitcast does not say which transposes it stands for. Only those that keep the physical order of
dimensions can be free; with them, a bitcast is a reshape of the dimensions in physical order, which splits and merges
whole dimensions.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import prod

from layoutproof.core.errors import LayoutError
from layoutproof.core.result import Point, Verdict
from layoutproof.engine.read import read_layout
from layoutproof.jobs.cache import ask
from layoutproof.layouts.xla import XlaLayout


@lru_cache(maxsize=4096)
def implements(source: str, target: str) -> tuple[Verdict, str, Point | None]:
    """The verdict with its reason and the smallest element that moves, of a bitcast between two arrays' texts.

    >>> implements("f32[8,128]{1,0}", "f32[128,8]{0,1}")[0]
    <Verdict.PROVED: 'proved'>
    >>> implements("bf16[4,512,512]{1,2,0:T(8,128)(2,1)}", "bf16[4,8,512,64]{2,3,1,0:T(8,128)(2,1)}")[0]
    <Verdict.PROVED: 'proved'>
    >>> implements("f32[8,128]{1,0}", "f32[8,128]{0,1}")[1]
    '(0, 1) becomes (0, 1) and moves from byte 4 to byte 32'
    """
    try:
        first = ask("bitcast", source, target)
        if first.verdict is not Verdict.PROVED:
            one, other = (_in_physical_order(read_layout(text)) for text in (source, target))
            if one is not None and other is not None and _clean(one.dims, other.dims):
                second = ask("bitcast", str(one), str(other))
                if second.verdict is Verdict.PROVED or first.verdict is Verdict.UNKNOWN:
                    return second.verdict, second.reason, second.counterexample
    except LayoutError as error:
        return Verdict.UNKNOWN, error.problem, None
    return first.verdict, first.reason, first.counterexample


def _in_physical_order(layout: object) -> XlaLayout | None:
    """The same bytes with logical dimensions in their physical order, the most major first; None where it has none."""
    if not isinstance(layout, XlaLayout):
        return None
    order = layout.minor_to_major[::-1]
    descending = tuple(range(len(order) - 1, -1, -1))
    dims, dynamic = tuple(layout.dims[d] for d in order), tuple(layout.dynamic[d] for d in order)
    return replace(layout, dims=dims, dynamic=dynamic, minor_to_major=descending)


def _clean(before: tuple[object, ...], after: tuple[object, ...]) -> bool:
    """Whether a row-major reshape only splits and merges whole dimensions.

    >>> _clean((4, 512, 512), (4, 8, 64, 512)), _clean((8, 128), (128, 8))
    (True, False)
    """
    if not all(type(d) is int for d in (*before, *after)):
        return False
    left, right = ([d for d in reversed(dims) if type(d) is int and d != 1] for dims in (before, after))
    while left and right:
        one, other = [left.pop()], [right.pop()]
        while prod(one) != prod(other):
            group, rest = (one, left) if prod(one) < prod(other) else (other, right)
            if not rest:
                return False
            group.append(rest.pop())
        if len(one) > 1 and len(other) > 1:
            return False
    return not left and not right
