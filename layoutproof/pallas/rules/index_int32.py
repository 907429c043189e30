"""No index map computes a number that a signed 32-bit integer cannot hold, on its way or as the window's start.

Why it matters: JAX computes index maps in int32 and wraps silently; our own integers never overflow, so `proved`
elsewhere says nothing about this.
Refuted by: the smallest `program` for which a part of the index map, or block index times block size, leaves int32.
Grids of more programs than int32 counts are left out: the compiler takes none.
Narrower and unsigned integers of a traced index map wrap in its terms; there is nothing left to ask of them here.
Example: grid 2**20, index (i) -> (i * 4096,) is fine up to program 524287 and wraps at 524288.
Fix: divide before multiplying, or split the dimension.
Incident: index arithmetic of large tensors wrapped in Triton kernels: https://github.com/triton-lang/triton/issues/832
Refuted:
    layoutproof ask index_int32 "f32[32,128] blockspec (8, 128) (i) -> (i * 2147483647 - i * 2147483647, 0) grid (4,)"
Proved:
    layoutproof ask index_int32 "f32[32,128] blockspec (8, 128) (i) -> (i, 0) grid (4,)"
Of the body, numbers that say where, whether or how often it does something are asked, as a warning: the properties of
bodies see them wrapped, and say what that spoils. A hash that means to wrap is right, and may be taken from uint32.
Limits: In the body, what no tables and no data decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from layoutproof.bodies.claims import asked, most, without_wraps
from layoutproof.bodies.effects import Body, Spot, View, views_of
from layoutproof.core.claim import And, At, Claim, Formula, Outside, PlacePredicate
from layoutproof.core.errors import Undecided
from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.numbers import Numbers
from layoutproof.core.operations import CONDITIONS
from layoutproof.core.result import Point
from layoutproof.core.size import surely_less
from layoutproof.core.term import Term, size_term
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.kernel.obligation import Obligation, Settled, for_each_operand, undecided
from layoutproof.kernel.windows import consistent, terms_map
from layoutproof.pallas.body_memory import program_ids

TARGET = False
LIMIT = 1 << 31
MOST_WRAPS = 8
"""Numbers of one body that are asked whether they wrap."""


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One per operand with windows, and a warning for each number that wraps where the body needs it."""
    of_maps = for_each_operand((o for o in kernel.operands if o.windowed), lambda operand: _of(kernel, operand))
    return (*of_maps, *_of_body(kernel))


def unasked(kernel: Kernel) -> Settled:
    """Where no index map is asked for a block."""
    return undecided("no operand has windows")


def _of(kernel: Kernel, operand: Operand) -> Iterator[Obligation]:
    sizes = [size for size in operand.sizes if size is not None]
    parts = [part for term in (*operand.index, *sizes) for part in _parts(term)]
    for term, block in zip(operand.index, operand.block, strict=True):
        if block.kind == "blocked" and block.size != 1:
            parts.append(block.start(term, size=size_term(block.size)))
    distinct = list(dict.fromkeys(part for part in parts if part.op not in ("int", "name", "read")))
    if not distinct:
        return
    m = terms_map(kernel, operand, distinct)
    reads = "reads" if m.replicas.extents else ""

    def shifted(index: Index, replica: Index, on: Numbers) -> Index:
        # from -2**31 .. 2**31 - 1 to 0 .. 2**32 - 1
        return tuple(value + LIMIT for value in m.place(index, replica, on))

    inside = IndexMap(m.domain, m.range, shifted, m.replicas)

    def explain(at: Point, on: Numbers) -> str:
        values = m.place(at["program"], at.get("reads", ()), on)
        text, value = next((t, v) for t, v in zip(map(str, distinct), values, strict=True) if not -LIMIT <= v < LIMIT)
        return f"{operand.name} at program {at['program']}: {text} is {value}, and int32 ends at {LIMIT - 1}"

    points = {"program": m.domain} | ({"reads": m.replicas} if reads else {})
    outside = Outside(At(inside, "program", reads), (2 * LIMIT,) * len(distinct))
    beside = (*consistent(kernel, operand, [("program", reads)]), *_counted(kernel, m))
    claim = Claim(points, And((*beside, outside)) if beside else outside, explain)
    yield Obligation(operand.name, claim, source=operand.source)


def _of_body(kernel: Kernel) -> Iterator[Obligation]:
    """Of each number of 32 bits that says where, whether or how often the body does something, a warning if it wraps.

    What it spoils is asked by the properties of bodies, which see it wrapped. Nothing is said where tables, or what no
    term says, decide it.
    """
    body: Body | None = kernel.body if kernel.body_reader is not None else None
    seen: set[Term] = set()
    for effect in () if body is None else body.effects:
        assert body is not None
        views = views_of(replace(body, effects=(effect,)))
        terms = [*effect.spot.path, *(term for view in views for term in places_in(view))]
        spans = {loop.name: most(loop) for loop in effect.spot.loops}
        for whole in without_wraps(kernel, body, terms, spans)[0]:
            for part in wrapped_in(whole):
                if part in seen or len(seen) >= MOST_WRAPS:
                    continue
                seen.add(part)
                with suppress(Undecided):
                    yield from _wraps(kernel, body, effect.spot, part.args[0])


def _wraps(kernel: Kernel, body: Body, spot: Spot, term: Term) -> Iterator[Obligation]:
    least, end = Term("int", -LIMIT), Term("int", LIMIT)
    outside = Term("or", Term("<", term, least), Term("<=", end, term))

    def explain(at: Point, on: Numbers, value: Callable[[Term], Any]) -> str:
        number = value(term)
        left = (number + LIMIT) % (2 * LIMIT) - LIMIT
        what = f"the body computes {program_ids(kernel, term)}, which is {number}"
        return f"{what}: int32 ends at {LIMIT - 1}, and it goes on with {left}"

    found = asked(kernel, body, [*spot.path, outside], spot.loops, explain=explain, extra=[term])
    if not found.lost and not found.tables:
        yield Obligation(kernel.name, found.claim, reads=False, severity="warning", source=spot.source)


def wrapped_in(whole: Term) -> list[Term]:
    """The parts that are numbers of 32 bits which may have wrapped, where more than their last bits is used."""
    found: list[Term] = []
    visited: set[tuple[Term, bool]] = set()
    todo = [(whole, False)]
    while todo:
        term, rest = todo.pop()
        if term.op in ("int", "name", "maybe", "leaf") or (term, rest) in visited:
            continue
        visited.add((term, rest))
        if term.op == "int32" and not rest:
            found.append(term)
        if term.op == "%" and _width(term.args[1]):
            todo.append((term.args[0], True))
            continue
        same = rest and term.op in ("+", "-", "*", "shl", "int32")
        todo += [(part, same) for part in term.args[term.op == "read" :]]
    return found


def places_in(view: View) -> list[Term]:
    """The numbers that say where a view lies."""
    return [term for step in view.steps for piece in step.slices for term in (piece.start, piece.size)]


def _counted(kernel: Kernel, m: IndexMap) -> tuple[Formula, ...]:
    """A grid counts its programs in int32 too: sizes for which it could not are nobody's."""
    doubtful = [k for k, extent in enumerate(kernel.grid) if not surely_less(extent, LIMIT)]
    if not doubtful or all(type(extent) is int for extent in kernel.grid):
        return ()
    program = IndexMap(m.domain, m.domain, lambda index, replica, on: index)

    def fits(places: tuple[Index, ...], on: Numbers) -> Any:
        held: Any = True
        for k in doubtful:
            held = on.logical_and(held, on.less(places[0][k], LIMIT - 1))
        return held

    return (PlacePredicate((At(program, "program"),), fits),)


def _parts(whole: Term) -> list[Term]:
    """The term and everything numeric inside of it that int32 has to hold, parts before wholes, each once."""
    found: list[Term] = []
    seen: set[tuple[Term, bool]] = set()
    todo: list[tuple[Term, bool, bool]] = [(whole, False, False)]
    while todo:
        # wraps: what is asked of the term is its rest by a power of two, which is the same after int32 wrapped
        term, wraps, done = todo.pop()
        if done:
            found.append(term)
        elif term.op not in ("int", "name") and (term, wraps) not in seen:
            seen.add((term, wraps))
            if term.op == "%" and _width(term.args[1]):
                # how machine integers are written: narrow or unsigned ones, and what a conversion leaves of a number
                todo.append((term.args[0], True, False))
                continue
            if term.op == "-" and _is_signed_rest(*term.args):
                todo.append((term.args[0], False, False))
                continue
            same = wraps and term.op in ("+", "-", "*", "shl")
            if not (same or term.op in CONDITIONS or _unsigned(term)):
                todo.append((term, wraps, True))
            todo += [(part, same, False) for part in reversed(term.args[term.op == "read" :])]
    return found


def _width(divisor: Term) -> int:
    """The bits of the integers that a rest by this number is, 0 = none that int32 wraps to."""
    value = divisor.args[0] if divisor.op == "int" else 0
    return value.bit_length() - 1 if 1 < value <= 2 * LIMIT and not value & (value - 1) else 0


def _is_signed_rest(left: Term, right: Term) -> bool:
    """Whether `left - right` is what so many bits, with a sign, hold of a number."""
    return left.op == "%" and right.op == "int" and 0 < 2 * right.args[0] == 1 << _width(left.args[1])


def _unsigned(term: Term) -> bool:
    """Whether a term is an unsigned number of 32 bits as it stands, so that int32 does not matter to it."""
    if term.op == "%" and _width(term.args[1]) == 32:
        return True
    parts = term.args[1:] if term.op == "select" else term.args
    return term.op in ("//", "%", "min", "max", "select", "truncdiv", "truncrem") and any(map(_unsigned, parts))
