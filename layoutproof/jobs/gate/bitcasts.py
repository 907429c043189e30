"""Whether a bitcast of a program is what it stands for: a reshape in row-major order, with transposes.

The audit asks less (`jobs.hlo.bitcasts`): whether every element keeps its bytes. A program that changed is held to
more: a bitcast that reorders elements beyond transposes of whole dimensions is rare and worth a look.
"""

from __future__ import annotations

from functools import lru_cache

from layoutproof.core.errors import LayoutError
from layoutproof.core.result import Point, Verdict
from layoutproof.jobs.hlo.bitcasts import REORDERING, judge
from layoutproof.jobs.hlo.shapes import read_array


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
        found = judge(read_array(source), read_array(target))
    except LayoutError as error:
        return Verdict.UNKNOWN, error.problem, None
    if found.verdict is Verdict.PROVED and found.how == REORDERING:
        return Verdict.REFUTED, found.reason, found.element
    return found.verdict, found.reason, found.element
