"""Invariants of numbers without a closed form: carried ones in every iteration, stored ones in every program.

Conditions of a few shapes are proposed, all at once, and those that a step may break are dropped until the rest is
inductive (Houdini: Flanagan and Leino, FME 2001). Every proposal about a carried number holds before the first
iteration by its shape. Each step is a claim like any other, within few solver steps: an unproved one is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from layoutproof.bodies.carried_on import one_place, stored_numbers
from layoutproof.bodies.claims import asked
from layoutproof.bodies.effects import Access, Body, KeptEntry, Loop
from layoutproof.bodies.order import first_of_core
from layoutproof.bodies.recurrence import difference
from layoutproof.bodies.terms import names_in
from layoutproof.bodies.wraps import unwrapped
from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.folding import FALSE, TRUE, all_of, any_of, constant, fold, linear, negation
from layoutproof.core.operations import INT32
from layoutproof.core.term import ONE, ZERO, Term, every
from layoutproof.kernel.kernel import Kernel, Table
from layoutproof.solvers.decide import proves

EFFORT = 1 / 30
"""Of the engines' step budgets, for each step of an induction."""
MOST_PROPOSED = 8
"""Conditions proposed of one number."""
MOST_ASKED = 200
"""Steps that are asked for one loop, and for what one body stores."""

Shape = Callable[[Term, Term], Term]
"""(the number, iterations done) -> condition."""


def kept(
    kernel: Kernel,
    body: Any,
    path: Sequence[Term],
    loops: Sequence[Loop],
    carried: Mapping[str, tuple[Term, Term]],
    condition: Term,
) -> dict[str, tuple[Shape, ...]]:
    """The invariants of carried numbers, which hold before every iteration, and after the last one.

    body: the body so far, an interpreter or a Body.  path: of the loop.  loops: around its body, itself last.
    carried: name -> (its start, its value after an iteration).  condition: of one more iteration.
    """
    counter = Term("name", loops[-1].name)
    starts = {name: start for name, (start, _) in carried.items()}
    low = {name: body.unknowns[name].low if name in body.unknowns else -INT32 for name in carried}
    alive = {name: list(_proposed(name, *ends, condition, starts, low[name])) for name, ends in carried.items()}
    about = _rests_on(carried, condition)
    asked_for = 0
    changed = set(carried)
    while changed:
        # a step is asked again where something was dropped that it may rest on
        again, changed = [name for name in carried if about[name] & changed], set()
        for name in again:
            following = carried[name][1]
            for shape in tuple(alive[name]):
                near = [(other, one) for other, shapes in alive.items() if other in about[name] for one in shapes]
                before = [one(Term("name", other), counter) for other, one in near]
                broken = negation(shape(following, Term("+", counter, ONE)))
                asked_for += 1
                if asked_for > MOST_ASKED:
                    return {}
                if not never(kernel, body, [*path, condition, *before, broken], loops):
                    alive[name].remove(shape)
                    changed.add(name)
    return {name: tuple(shapes) for name, shapes in alive.items()}


def _rests_on(carried: Mapping[str, tuple[Term, Term]], condition: Term) -> dict[str, set[str]]:
    """The carried numbers on which a step of each may rest: itself, and what it and the loop's condition speak of."""
    speaks = {name: {name, *names_in(following), *names_in(condition)} for name, (_, following) in carried.items()}
    found = {name: names & set(carried) for name, names in speaks.items()}
    growing = True
    while growing:
        more = {name: set[str]().union(*(found[other] for other in names)) for name, names in found.items()}
        growing, found = more != found, more
    return found


def _proposed(
    name: str, start: Term, following: Term, condition: Term, starts: Mapping[str, Term], low: int
) -> Iterable[Shape]:
    """Conditions that hold at the start, of the shapes that real loops have, and that the type does not say.

    starts: of all that the loop hands on: one end of an interval that is halved ends where the other one starts.  low:
    the least number of the type.
    """
    own = Term("name", name)
    others = [starts[part.args[0]] for part in every(following) if part.op == "name" and part.args[0] in starts]
    turned = _turned_at(own, following)
    tops = [ONE, *_ends(name, condition), *turned, *_numbers(following), *(end for end in others if end is not start)]
    steps = sorted({s for s in _steps(own, following) if s})
    first = constant(start)
    found: list[Shape] = []
    if low < 0 and (first is None or first > 0):
        found.append(lambda v, t: Term("<=", Term("min", start, ZERO), v))
    if first is None or first > low:
        found.append(lambda v, t: Term("<=", start, v))
    found += [
        lambda v, t: Term("<=", v, start),
        *(_below(start, top) for top in _different(tops)),
        *(_within(start, step) for step in steps),
    ]
    return found[:MOST_PROPOSED]


def _below(start: Term, top: Term) -> Shape:
    return lambda v, t: Term("<=", v, Term("max", start, top))


def _within(start: Term, step: int) -> Shape:
    def shape(v: Term, t: Term) -> Term:
        reach = linear([(1, start), (step, t)])
        return Term("<=", v, reach) if step > 0 else Term("<=", reach, v)

    return shape


def _ends(name: str, condition: Term) -> list[Term]:
    """The terms with which a loop's condition compares a number."""
    found = []
    for part in every(condition):
        if part.op in ("<", "<=", "!=") and any(a.op == "name" and a.args[0] == name for a in part.args):
            found += [a for a in part.args if not (a.op == "name" and a.args[0] == name)]
    return found


def _turned_at(own: Term, following: Term) -> list[Term]:
    """The greatest numbers of a counter that begins anew where its next one is a certain number."""
    pairs = [pair for part in every(following) if part.op == "==" for pair in (part.args, part.args[::-1])]
    return [fold("-", top, ONE) for counted, top in pairs if difference(unwrapped(counted), own) is not None]


def _numbers(following: Term) -> list[Term]:
    """The constants that an iteration may hand on."""
    return [part for part in _cases(following) if part.op == "int"]


def _cases(term: Term) -> list[Term]:
    """The possible results of nested choices."""
    found, todo = [], [term]
    while todo:
        part = todo.pop()
        if part.op == "select":
            todo += part.args[1:]
        elif part.op in ("min", "max", "int32"):
            todo += part.args
        else:
            found.append(part)
    return found


def _steps(own: Term, following: Term) -> list[int]:
    return [step for case in _cases(unwrapped(following)) if (step := difference(case, own)) is not None]


def _different(terms: Iterable[Term]) -> list[Term]:
    return list(dict.fromkeys(terms))


def never(kernel: Kernel, body: Any, violation: Sequence[Term], loops: Sequence[Loop]) -> bool:
    """Whether it is shown that nothing makes all of this true."""
    try:
        return proves(asked(kernel, body, violation, loops).claim, ("isl", "smt"), effort=EFFORT)
    except (Undecided, LayoutError):
        return False


def kept_in_memory(kernel: Kernel, body: Body) -> dict[str, KeptEntry]:
    """Bounds that stores preserve for caller-initialised scalar memory, by the name of the load that sees them.

    An interval is kept if every store puts a number of it there, as long as every load has given one: then it holds of
    each load in each program, provided that the call was given numbers of the interval.
    """
    found: dict[str, KeptEntry] = {}
    for reference in body.references:
        seen = _loads(body, reference.name)
        filled = reference.role in ("in", "prefetch") and reference.memory == "smem"
        if not filled or not seen or reference.name in body.beyond:
            continue
        stores = stored_numbers(body.effects, reference.name)
        if stores is None:
            continue
        places = {one_place(e.view) for e, _ in stores} | {one_place(e.view) for e in seen.values()}
        if None in places:
            places = {None}
        sign = _keeps(kernel, body, seen, stores, None)
        least = _least(seen, stores)
        for place in places:
            of = [(e, value) for e, value in stores if place is None or one_place(e.view) == place]
            here = {name: e for name, e in seen.items() if place is None or one_place(e.view) == place}
            # where a number may fall below 0, the contents of one place may reach another
            among = (seen, stores) if not sign else (here, of)
            highs = tuple(high for high in sorted(_tops(of)) if _keeps(kernel, body, *among, high))
            if sign or highs or least is not None:
                found |= {name: KeptEntry(reference.name, highs, sign, least) for name in here}
    return found


def _least(seen: Collection[str], stores: Sequence[tuple[Access, Term]]) -> int | None:
    """One more than the constants that are stored, where all else that is was loaded; None where something else is."""
    least = 1
    for _, value in stores:
        for case in _cases(value):
            if case.op == "int" and case.args[0] >= 0:
                least = max(least, int(case.args[0]) + 1)
            elif case.op != "read" or case.args[0].args[0] not in seen:
                return None
    return least


def keeps_range(kernel: Kernel, body: Body, name: str, low: int, high: int) -> bool:
    """Whether every store to a reference puts a number from low to high - 1 there, as long as all that is loaded is."""
    stores = stored_numbers(body.effects, name)
    return stores is not None and _keeps(kernel, body, _loads(body, name), stores, high, low)


def bounded_in_scratch(kernel: Kernel, body: Body) -> dict[str, Table]:
    """Loads of scratch in scalar memory with the interval that stores keep, by the name of the load.

    As nothing fills scratch, an interval holds only where the first program of each core stores before it loads.
    """
    found: dict[str, Table] = {}
    for reference in body.references:
        seen = {name: e for name, e in _loads(body, reference.name).items() if body.loads[name].low is None}
        if reference.role != "scratch" or reference.memory != "smem" or not seen or reference.name in body.beyond:
            continue
        stores = stored_numbers(body.effects, reference.name)
        if stores is None or not all(_stored_first(kernel, body, stores, load) for load in seen.values()):
            continue
        high = next((high for high in (*sorted(_tops(stores)), None) if _keeps(kernel, body, seen, stores, high)), 0)
        if high != 0:
            found |= {name: replace(body.loads[name], low=0, high=high or 1 << 31) for name in seen}
    return found


def _stored_first(kernel: Kernel, body: Body, stores: Sequence[tuple[Access, Term]], load: Access) -> bool:
    """Whether the first program of a core surely stores to what a load reads, before it loads."""
    place = one_place(load.view)
    if place is None:
        return False
    before = [
        all_of(store.spot.path)
        for store, _ in stores
        if one_place(store.view) == place
        and store.spot.number < load.spot.number
        and not store.spot.loops
        and store.mask is None
    ]
    missed = all_of([first_of_core(kernel), *map(negation, before)])
    return missed is FALSE or (bool(before) and never(kernel, body, [missed], ()))


def _loads(body: Body, name: str) -> dict[str, Access]:
    """The loads of a reference whose numbers a term may speak of, by their names."""
    loads = (e for e in body.effects if isinstance(e, Access) and e.kind == "read" and e.view.reference.name == name)
    return {load.name: load for load in loads if load.name in body.loads}


def _tops(stores: Sequence[tuple[Access, Term]]) -> set[int]:
    """Proposed exclusive bounds: one more than a stored number or a truth value; the divisor of a remainder."""
    numbers = {int(n.args[0]) + 1 for _, value in stores for n in _numbers(value) if n.args[0] >= 0}
    divisors = [part.args[1] for _, value in stores for part in every(value) if part.op in ("%", "truncrem")]
    return {2} | numbers | {int(by.args[0]) for by in divisors if by.op == "int" and by.args[0] > 0}


def _keeps(
    kernel: Kernel,
    body: Body,
    seen: Mapping[str, Access],
    stores: Sequence[tuple[Access, Term]],
    high: int | None,
    low: int = 0,
) -> bool:
    """Whether stored numbers lie from low to high - 1 (None: are at least low) as long as all loaded ones do."""
    bounded: dict[str, Table] = dict(body.loads)
    bounded |= {name: replace(body.loads[name], low=low, high=1 << 31 if high is None else high) for name in seen}
    held = replace(body, loads=bounded)
    for effect, value in stores:
        outside = [fold("<", value, Term("int", low))]
        if high is not None:
            outside.append(fold("<=", Term("int", high), value))
        broken = any_of(outside)
        if broken is TRUE and not effect.spot.path:
            return False
        if broken is not FALSE and not never(kernel, held, [all_of([*effect.spot.path, broken])], effect.spot.loops):
            return False
    return True
