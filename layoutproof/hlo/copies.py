"""The data that a copy, a transpose or a reshape moves.

`copy` keeps every index and changes the layout: it moves data unless both layouts are the same map. A transpose or a
reshape that is no bitcast moves data too.
"""

from __future__ import annotations

from dataclasses import dataclass

from layoutproof.core.errors import LayoutError
from layoutproof.core.result import Point, Verdict
from layoutproof.hlo import problems
from layoutproof.hlo.shapes import ArrayShape, without_space
from layoutproof.questions.cached import ask

OPCODES = frozenset(("copy", "copy-start", "transpose", "reshape"))
"""The opcodes that are checked."""


@dataclass(frozen=True, slots=True)
class Move:
    """The effect of one such instruction on one array.

    kind: `relayout` (elements move), `space` (to another memory space, laid out as before), `same` (a second array
    just like the first), `free` (a transpose or reshape that moves no byte), `unknown`.
    size: bytes read and written together; 0 where free.  element: the smallest one that moves.
    """

    kind: str
    size: int
    reason: str = ""
    element: Point | None = None
    decided_by: str = ""


def judge(opcode: str, source: ArrayShape, target: ArrayShape, permutation: tuple[int, ...] | None) -> Move:
    """The effect of an instruction of `OPCODES`.

    >>> from layoutproof.hlo.shapes import read_array
    >>> one, other = read_array("f32[8,128]{1,0:T(8,128)S(1)}"), read_array("f32[8,128]{0,1:T(8,128)}")
    >>> judge("copy", one, other, None).kind, judge("copy", one, one, None).kind
    ('relayout', 'same')
    """
    size = source.padded + target.padded
    if source.layout is None or target.layout is None:
        return Move("unknown", size, source.unknown or target.unknown or problems.COPIED_WITHOUT_ELEMENTS())
    before, after = without_space(source.layout), without_space(target.layout)
    apart = "same" if source.space == target.space else "space"
    if before == after and opcode in ("copy", "copy-start"):
        return Move(apart, size, decided_by="the same text")
    if not source.elements and not target.elements:
        return Move("free", 0, "no elements")
    try:
        if opcode in ("copy", "copy-start"):
            found = ask("same_map", str(before), str(after))
            kept = apart
        else:
            options = {"permutation": list(permutation)} if opcode == "transpose" and permutation is not None else {}
            found = ask("bitcast", str(before), str(after), **options)
            kept = "free" if source.space == target.space else "space"
    except LayoutError as error:
        return Move("unknown", size, error.problem)
    if found.verdict is Verdict.PROVED:
        return Move(kept, 0 if kept == "free" else size, decided_by=found.decided_by)
    kind = "relayout" if found.verdict is Verdict.REFUTED else "unknown"
    return Move(kind, size, found.reason, found.counterexample, found.decided_by)
