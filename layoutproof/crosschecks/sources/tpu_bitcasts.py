"""The TPU compiler, ahead of time: which reshapes and transposes of an array are free, and which move data.

Of each array with its default layout: two dimensions made one, one cut in two, the array as one line, dimensions of 1
left out, the transpose into the order that the case has; of a pair, the reshape from one to the other. Free is what a
compiled program calls a bitcast; everything else moves data. Ours is `bitcast` of the two default layouts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from layoutproof.compiler import libtpu
from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import LayoutError
from layoutproof.core.result import Verdict
from layoutproof.crosschecks.asking import BatchedProgram, Failed, of_programs
from layoutproof.crosschecks.case import Case
from layoutproof.crosschecks.source import Agree, Disagree, Outcome, Skipped
from layoutproof.crosschecks.tpu_cases import arrays as random_cases
from layoutproof.crosschecks.turns import turns
from layoutproof.hardware.tpu import default_layout
from layoutproof.layouts.xla.shape import XlaLayout
from layoutproof.questions.ask import ask

SMALLER = False
__all__ = ["SMALLER", "compare", "missing", "random_cases", "version"]

FEW = 8
"""Up to so many cases are compiled for every generation."""
TOGETHER = 24
"""Parameters of one program."""
MOST_BYTES = 1 << 22
"""Of one array: its moves are emitted, and larger ones take the compiler longer."""


@dataclass(frozen=True, slots=True)
class _Rearrangement:
    """how: "reshape" to the dims `what`, or "transpose" by the permutation `what`."""

    generation: str
    element: str
    dims: tuple[int, ...]
    how: str
    what: tuple[int, ...]

    @property
    def after(self) -> tuple[int, ...]:
        return self.what if self.how == "reshape" else tuple(self.dims[d] for d in self.what)

    def sides(self) -> tuple[str, str]:
        """Both arrays with the layouts that we say they have."""
        before, after = (
            f"{self.element}[{','.join(map(str, dims))}]"
            f"{default_layout(dims, ELEMENT_BITS[self.element], self.generation)}"
            for dims in (self.dims, self.after)
        )
        return before, after


def version() -> str:
    """The compiler's."""
    return libtpu.version()


def missing() -> str:
    """The missing packages for it."""
    return libtpu.missing()


def compare(cases: Sequence[Case]) -> Iterator[Outcome]:
    """Free or not, of every reshape and transpose of each case."""
    for part in turns(cases, FEW, TOGETHER):
        yield from _compare([case for case, _ in part], [list(_moves(case, names)) for case, names in part])


def _compare(cases: Sequence[Case], moves: Sequence[Sequence[_Rearrangement]]) -> Iterator[Outcome]:
    questions = sorted(
        ((k, move) for k, own in enumerate(moves) for move in own), key=lambda row: (row[1].generation, row[0])
    )
    groups = [list(rows) for _, rows in itertools.groupby(questions, key=lambda row: row[1].generation)]
    parts = [rows[at : at + TOGETHER] for rows in groups for at in range(0, len(rows), TOGETHER)]
    found = of_programs([BatchedProgram(part, _request) for part in parts], _unpack)
    said: dict[int, list[tuple[_Rearrangement, Any]]] = {}
    for (k, move), answer in zip(itertools.chain(*parts), itertools.chain(*found), strict=True):
        said.setdefault(k, []).append((move, answer))
    for k, case in enumerate(cases):
        yield _outcome(case, said.get(k, []))


def _outcome(case: Case, said: Sequence[tuple[_Rearrangement, Failed | Sequence[str]]]) -> Outcome:
    compared, failed = 0, ""
    for move, answer in said:
        if isinstance(answer, Failed):
            failed = failed or str(answer)
            continue
        sides, ours = move.sides(), _free(move)
        theirs = (answer[0], answer[1])
        if sides != theirs:
            what = f"default layouts of a {move.how} on {move.generation}"
            return Disagree(what, " -> ".join(sides), " -> ".join(theirs))
        if ours is None:
            continue
        if ours != (answer[2] == ""):
            shown = f"{' -> '.join(sides)}{f' by {move.what}' if move.how == 'transpose' else ''}"
            what = f"{move.how} on {move.generation}"
            return Disagree(what, f"{shown} is {_word(ours)}", _word(answer[2] == "") + f": {answer[2]}".rstrip(": "))
        compared += 1
    if compared:
        return Agree(compared, failed)
    return Skipped(failed or _why(case))


def _word(free: bool) -> str:
    return "a bitcast" if free else "moved"


def _free(move: _Rearrangement) -> bool | None:
    before, after = move.sides()
    if move.how == "transpose":
        verdict = ask("bitcast", before, after, permutation=move.what).verdict
    else:
        verdict = ask("bitcast", before, after).verdict
    return None if verdict is Verdict.UNKNOWN else verdict is Verdict.PROVED


def _why(case: Case) -> str:
    layouts = case.parsed if case.kind == "pair" else (case.parsed,)
    if not all(isinstance(layout, XlaLayout) for layout in layouts):
        return "no array in XLA's language"
    return "nothing to reshape or transpose: too large, too small, or of an element type without moves"


def _moves(case: Case, generations: Sequence[str]) -> Iterator[_Rearrangement]:
    layouts: Sequence[Any] = case.parsed if case.kind == "pair" else (case.parsed,)
    if not all(isinstance(layout, XlaLayout) for layout in layouts):
        return
    first = layouts[0]
    if any(type(extent) is not int for layout in layouts for extent in layout.dims):
        return
    bits, dims = ELEMENT_BITS[first.element_type], tuple(first.dims)
    # JAX makes truth values of 1 bit, and the compiler has no code that moves wide or sub-byte ones
    if bits not in (8, 16, 32) or 0 in dims or prod(dims) * 4 > MOST_BYTES:
        return
    wanted = [("reshape", tuple(layouts[1].dims))] if case.kind == "pair" else list(_ways(first))
    for generation in generations:
        for how, what in wanted:
            move = _Rearrangement(generation, first.element_type, dims, how, what)
            try:
                sides = move.sides()
            except LayoutError:
                continue
            if prod(move.after) == prod(dims) and sides[0]:
                yield move


def _ways(layout: XlaLayout) -> Iterator[tuple[str, tuple[int, ...]]]:
    dims: Any = tuple(layout.dims)
    seen = {dims}
    for k in range(len(dims) - 1):
        seen.add((*dims[:k], dims[k] * dims[k + 1], *dims[k + 2 :]))
    for k, extent in enumerate(dims):
        part = next((n for n in (8, 128, 2, 3, 5, 7) if extent % n == 0 and extent > n), 0)
        if part:
            seen.add((*dims[:k], extent // part, part, *dims[k + 1 :]))
    seen.add((prod(dims),))
    seen.add(tuple(extent for extent in dims if extent != 1))
    for after in sorted(seen - {dims}):
        yield "reshape", after
    order = tuple(reversed(layout.minor_to_major))
    if order != tuple(range(len(dims))):
        yield "transpose", order


def _request(some: Sequence[tuple[int, _Rearrangement]]) -> list[object]:
    rows = [[move.element, list(move.dims), move.how, list(move.what)] for _, move in some]
    return ["moved", some[0][1].generation, rows]


def _unpack(some: Sequence[tuple[int, _Rearrangement]], said: Any) -> list[Any] | None:
    """As it came; None where one is moved that we say is free: among others it may be moved for their sake."""
    if len(said) != len(some):
        return None
    alone = len(some) == 1
    free = alone or all(row[2] == "" or _free(move) is not True for row, (_, move) in zip(said, some, strict=True))
    return said if free else None
