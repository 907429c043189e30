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
Of the body, numbers that say where, whether or how often it does something, and which elements a mask takes, are asked,
as a warning: the properties of bodies see them wrapped, and say what that spoils. Of masks those of int8 and int16 too.
A hash that means to wrap is right, and may be taken from uint32. Of kernels for Triton, the offsets of elements that
the body touches in an array of more than 2**31 elements of one byte.
Limits: In the body, numbers that depend on no tables and no data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from layoutproof.bodies.bit_terms import UnsupportedOp, signed_rest
from layoutproof.bodies.claims import asked, most, without_wraps
from layoutproof.bodies.effects import Body, Spot, View, views_of
from layoutproof.core.budget import budget
from layoutproof.core.claim import And, At, Claim, Formula, Outside, PlacePredicate
from layoutproof.core.errors import BudgetExceeded, Undecided
from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.operations import CONDITIONS
from layoutproof.core.result import Point
from layoutproof.core.size import surely_less
from layoutproof.core.term import Term, rebuilt, size_term
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.kernel.obligation import Obligation, Settled, for_each_operand, undecided
from layoutproof.kernel.windows import consistent, terms_map
from layoutproof.pallas.body_memory import program_ids
from layoutproof.pallas.triton_elements import offsets_in_int32

PAST_INT32 = Template(
    "pallas.index_int32_past_int32", "{operand} at program {program}: {text} is {value}, and int32 ends at {limit}"
)
WRAPS = Template("pallas.index_int32_wraps", "{what}: int{bits} ends at {limit}, and it goes on with {left}")


TARGET = False
BITS, LIMIT = 32, 1 << 31
MOST_WRAPS = 8
"""Numbers of one body that are asked whether they wrap."""
MASKS = 50_000
"""The budget for all that masks of one body are made of."""


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One per operand with windows, and a warning for each number that wraps where the body needs it."""
    of_maps = for_each_operand((o for o in kernel.operands if o.windowed), lambda operand: _of(kernel, operand))
    return (*of_maps, *_of_body(kernel), *offsets_in_int32(kernel))


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
        return PAST_INT32(operand.name, at["program"], text, value, LIMIT - 1)

    points = {"program": m.domain} | ({"reads": m.replicas} if reads else {})
    outside = Outside(At(inside, "program", reads), (2 * LIMIT,) * len(distinct))
    beside = (*consistent(kernel, operand, [("program", reads)]), *_counted(kernel, m))
    claim = Claim(points, And((*beside, outside)) if beside else outside, explain)
    yield Obligation(operand.name, claim, source=operand.source)


def _of_body(kernel: Kernel) -> Iterator[Obligation]:
    """Of each number that says where, whether or how often the body does something, or is in a mask: whether it wraps.

    The consequences are asked by the properties of bodies, which see it wrapped. Nothing is said where tables or
    unknowns decide it.
    """
    body: Body | None = kernel.body if kernel.body_reader is not None else None
    seen: set[Term] = set()
    for spot, terms, elements in () if body is None else (*_of_effects(body), *_of_masks(body)):
        assert body is not None
        spans = {loop.name: most(loop) for loop in spot.loops} | dict(elements)
        for whole in without_wraps(kernel, body, terms, spans)[0]:
            for part, bits in wrapped_in(whole):
                # conversions to fewer bits in places and guards are asked where the number is too large
                if part in seen or len(seen) >= MOST_WRAPS or (bits < BITS and not elements):
                    continue
                seen.add(part)
                with suppress(Undecided):
                    yield from _wraps(kernel, body, spot, part, bits, elements)


Asking = tuple[Spot, Sequence[Term], Mapping[str, int]]
"""Where numbers are used, numbers and conditions, and names of an element's coordinates in them with their extents."""


def _of_effects(body: Body) -> Iterator[Asking]:
    for effect in body.effects:
        views = views_of(replace(body, effects=(effect,)))
        yield effect.spot, [*effect.spot.path, *(term for view in views for term in places_in(view))], {}


def _of_masks(body: Body) -> list[Asking]:
    found: list[Asking] = []
    with budget(MASKS), suppress(BudgetExceeded, RecursionError):
        for mask in body.masks:
            names = [f"element[{k}]" for k in range(len(mask.value.dims))]
            with suppress(UnsupportedOp):
                said = mask.value.number(tuple(Term("name", name) for name in names))
                found.append((mask.spot, [said], dict(zip(names, mask.value.dims, strict=True))))
    return found


def _wraps(
    kernel: Kernel, body: Body, spot: Spot, term: Term, bits: int, elements: Mapping[str, int]
) -> Iterator[Obligation]:
    limit = 1 << (bits - 1)
    least, end = Term("int", -limit), Term("int", limit)
    outside = Term("or", Term("<", term, least), Term("<=", end, term))

    def explain(at: Point, on: Numbers, value: Callable[[Term], int]) -> str:
        number = value(term)
        left = (number + limit) % (2 * limit) - limit
        what = f"the body computes {program_ids(kernel, rebuilt(term, _converted))}, which is {number}"
        return WRAPS(what, bits, limit - 1, left)

    place = [Term("name", name) for name in elements]
    found = asked(kernel, body, [*spot.path, outside], spot.loops, elements, explain, [term], place=place)
    if not found.lost and not found.tables:
        yield Obligation(kernel.name, found.claim, reads=False, severity="warning", source=spot.source)


def wrapped_in(whole: Term) -> list[tuple[Term, int]]:
    """The parts that so many bits hold what is left of, where more than the last of those bits is used, inner first."""
    found: list[tuple[Term, int]] = []
    visited: set[tuple[Term, int]] = set()
    # how many of a number's last bits are used, 0 = all
    todo = [(whole, 0)]
    while todo:
        term, last = todo.pop()
        if term.op in ("int", "name", "maybe", "leaf") or (term, last) in visited:
            continue
        visited.add((term, last))
        held = signed_rest(term)
        if held is not None:
            part, bits = held
            if (not last or last > bits) and not _unsigned(part):
                found.append(held)
            # a part that wraps at the same width is asked too; of one that wraps at a larger width, no more is left
            todo.append((part, last or (bits + 1 if bits < BITS else 0)))
            continue
        if term.op == "%" and _width(term.args[1]):
            todo.append((term.args[0], min(last or BITS, _width(term.args[1]))))
            continue
        same = last if term.op in ("+", "-", "*", "shl") else 0
        todo += [(part, same) for part in term.args[term.op == "read" :]]
    return found[::-1]


def _converted(part: Term, made: Term) -> Term:
    """A number wrapped to so many bits, as people write it."""
    held = signed_rest(made)
    return made if held is None else Term("name", f"int{held[1]}({held[0]})")


def places_in(view: View) -> list[Term]:
    """The numbers that say where a view lies."""
    sliced = [term for step in view.steps for piece in step.slices for term in (piece.start, piece.size)]
    return sliced + [term for step in view.steps for term in step.picked if term is not None]


def _counted(kernel: Kernel, m: IndexMap) -> tuple[Formula, ...]:
    """A grid counts its programs in int32 too: larger sizes cannot occur."""
    doubtful = [k for k, extent in enumerate(kernel.grid) if not surely_less(extent, LIMIT)]
    if not doubtful or all(type(extent) is int for extent in kernel.grid):
        return ()
    program = IndexMap(m.domain, m.domain, lambda index, replica, on: index)

    def fits(places: tuple[Index, ...], on: Numbers) -> object:
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
        # wraps: only the term's rest by a power of two is used, which is the same after int32 wrapped
        term, wraps, done = todo.pop()
        if done:
            found.append(term)
        elif term.op not in ("int", "name") and (term, wraps) not in seen:
            seen.add((term, wraps))
            if term.op == "%" and _width(term.args[1]):
                # how machine integers are written: narrow or unsigned ones, and what a conversion leaves of a number
                todo.append((term.args[0], True, False))
                continue
            held = signed_rest(term)
            if held is not None and held[1] <= BITS and term.op != "int32":
                todo.append((held[0], True, False))
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


def _unsigned(term: Term) -> bool:
    """Whether a term is an unsigned number of 32 bits as it stands, so that int32 does not matter to it."""
    if term.op == "%" and _width(term.args[1]) == 32:
        return True
    parts = term.args[1:] if term.op == "select" else term.args
    return term.op in ("//", "%", "min", "max", "select", "truncdiv", "truncrem") and any(map(_unsigned, parts))
