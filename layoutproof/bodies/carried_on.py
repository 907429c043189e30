"""Numbers in scratch to which each program adds: where the rows of a group start, as the programs before have counted.

Each program adds another entry of a table, or a number; the first of a run of programs stores a number anew. Then what
a program loads is at most what it was at first and all that the programs before have added: with its own summand no
more than what all entries of the table come to, or than as many numbers as programs. So nothing has to be proposed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from layoutproof.bodies.effects import Access, Body, BodyReference, Effect, View, stored_names, writes_to
from layoutproof.bodies.integers import number_of
from layoutproof.bodies.recurrence import difference
from layoutproof.bodies.terms import inlined, names_in, renaming, replaced
from layoutproof.bodies.values import Lost
from layoutproof.bodies.wraps import unwrapped
from layoutproof.core.folding import TRUE, conjuncts, fold, linear
from layoutproof.core.operations import INT32
from layoutproof.core.term import ZERO, Term, reads
from layoutproof.kernel.kernel import Kernel
from layoutproof.solvers.interval import Interval, ends

MOST_WIDENED = 3
"""Times that the interval of what a place holds grows by what is stored of it again."""


@dataclass(frozen=True, slots=True, eq=False)
class CarriedOn:
    """A place of scratch to which each program of a run adds something at most once.

    loads: of the place, before that and after it.  low, high: the least and the largest number that is stored anew.
    summand: what a program adds.  varies: the ids, by position in the grid, in which the programs of a run differ.
    """

    before: tuple[Access, ...]
    after: tuple[Access, ...]
    low: int
    high: int
    summand: Term
    varies: tuple[int, ...]


def stored_numbers(effects: Iterable[Effect], name: str) -> list[tuple[Access, Term]] | None:
    """Every store to a reference and the number that it stores; None where one stores what no term says."""
    found = []
    for effect in effects:
        view = writes_to(effect)
        if view is None or view.reference.name != name:
            continue
        if not isinstance(effect, Access) or effect.kind == "add" or any(n != 1 for n in effect.value.dims):
            return None
        try:
            found.append((effect, number_of(effect.value.number((ZERO,) * len(effect.value.dims)))))
        except Lost:
            return None
    return found


def one_place(view: View) -> tuple[int, ...] | None:
    """The one element that a view is, where constants say so."""
    if len(view.steps) != 1 or view.steps[0].kind != "slices":
        return None
    slices = view.steps[0].slices
    single = all(s.start.op == "int" and s.size.op == "int" and s.size.args[0] == 1 for s in slices)
    return tuple(int(s.start.args[0]) for s in slices) if single else None


@dataclass(frozen=True, slots=True, eq=False)
class StoredPlace:
    """A place of scratch in scalar memory: its loads, and its stores with what they store."""

    loads: tuple[Access, ...]
    stores: tuple[tuple[Access, Term], ...]


def stored_places(kernel: Kernel, body: Body) -> Iterator[StoredPlace]:
    """The places of scratch in scalar memory that are loaded, and where terms say all that is stored."""
    if kernel.platform != "tpu" or kernel.subcores:
        return
    for reference in body.references:
        loads = [e for e in body.effects if _loads(body, e, reference)]
        if reference.role != "scratch" or reference.memory != "smem" or not loads or reference.name in body.beyond:
            continue
        stores = stored_numbers(body.effects, reference.name)
        places = [one_place(store.view) for store, _ in stores or ()]
        if stores is None or None in places:
            continue
        for place in dict.fromkeys(places):
            here = tuple(one for one, at in zip(stores, places, strict=True) if at == place)
            of = tuple(e for e in loads if isinstance(e, Access) and one_place(e.view) == place)
            if of:
                yield StoredPlace(of, here)


def carried_on(kernel: Kernel, body: Body) -> Iterator[CarriedOn]:
    """The places of scratch in scalar memory to which each program adds."""
    for place in stored_places(kernel, body):
        found = _carried(kernel, body, place.stores, place.loads)
        if found is not None:
            yield found


def between(
    kernel: Kernel, place: StoredPlace, within: Callable[[Term, Interval | None], object]
) -> tuple[int, int] | None:
    """The least and the greatest number that a place holds where it is loaded, None where that is not known.

    within: the interval of a stored number, if what is loaded of the place is in another one, None = is not known.
    """
    if _varies(kernel, [store for store, _ in place.stores], place.loads) is None:
        return None
    names = {load.name for load in place.loads}
    own = [value for _, value in place.stores if any(r.args[0].args[0] in names for r in reads((value,)))]
    given = [within(value, None) for _, value in place.stores if value not in own]
    held = _hull(given)
    for _ in range(MOST_WIDENED):
        wider = None if held is None else _hull([held, *(within(value, held) for value in own)])
        if held is None or wider is None:
            return None
        if (wider.low, wider.high) == (held.low, held.high):
            # what is loaded is stored again, and no other number
            return held.low, held.high
        held = wider
    return None


def _hull(intervals: Sequence[object]) -> Interval | None:
    """The interval of 32-bit integers in which all of some are; None where there are none, or larger numbers."""
    known = [one for one in intervals if one is not None and not isinstance(one, bool)]
    if not known or len(known) < len(intervals):
        return None
    low, high = min(ends(one)[0] for one in known), max(ends(one)[1] for one in known)
    return Interval(low, high) if low >= -INT32 and high < INT32 else None


def _loads(body: Body, effect: Effect, reference: BodyReference) -> bool:
    """Whether an effect is a load of a reference whose number a term may speak of."""
    if not isinstance(effect, Access) or effect.kind != "read" or effect.view.reference is not reference:
        return False
    return effect.mask is None and effect.name in body.loads and body.loads[effect.name].bits == 32


def _carried(
    kernel: Kernel, body: Body, stores: Sequence[tuple[Access, Term]], loads: Sequence[Access]
) -> CarriedOn | None:
    """The sum at one place, as its stores and loads say it; None where they say none."""
    anew = [(store, int(value.args[0])) for store, value in stores if value.op == "int"]
    adding = [(store, value) for store, value in stores if value.op != "int"]
    if len(adding) != 1 or not anew or adding[0][0].spot.loops or adding[0][0].mask is not None:
        return None
    store, value = adding[0]
    number = store.spot.number
    before = [load for load in loads if load.spot.number < number]
    own = next((load for load in before if not load.spot.loops and _names(value, load)), None)
    summand = None if own is None else _beside(value, own)
    varies = _varies(kernel, [one for one, _ in anew], loads)
    if own is None or summand is None or varies is None:
        return None
    summand = unwrapped(inlined(body.definitions, summand))
    stored = stored_names(body.effects)
    if set(names_in(summand)) - set(kernel.grid_names) or any(r.args[0].args[0] in stored for r in reads((summand,))):
        return None
    numbers = [n for _, n in anew]
    after = tuple(load for load in loads if load.spot.number > number)
    return CarriedOn(tuple(before), after, min(numbers), max(numbers), summand, varies)


def _names(value: Term, load: Access) -> bool:
    return any(read.args[0].args[0] == load.name for read in reads((value,)))


def _beside(value: Term, load: Access) -> Term | None:
    """What is added to the number that was loaded; None where that is not all that is done to it."""
    whole = unwrapped(value)
    parts: tuple[Term, ...] = whole.args if whole.op == "+" else ()
    others = [part for part in parts if not (part.op == "read" and part.args[0].args[0] == load.name)]
    if len(others) == 1 and not _names(others[0], load):
        return others[0]
    return None


def _varies(kernel: Kernel, anew: Sequence[Access], loads: Sequence[Access]) -> tuple[int, ...] | None:
    """The last dimensions of the grid in which the programs of a run differ, as few as there may be.

    The first program of each run that a core runs stores a number anew before all loads; a core has some ids of a
    parallel dimension, and of the others all.
    """
    first = min(load.spot.number for load in loads)
    sure = [one for one in anew if one.spot.number < first and not one.spot.loops and one.mask is None]
    paths = [{part for one in store.spot.path for part in conjuncts(one)} - {TRUE} for store in sure]
    parallel = set(kernel.parallel())
    begin: set[Term] = set()
    last = len(kernel.grid)
    for k in reversed(range(last + 1)):
        if k < last and k not in parallel:
            begin.add(fold("==", Term("name", kernel.grid_names[k]), ZERO))
        if any(path <= begin for path in paths):
            return tuple(range(k, last))
    return None


def own_entry(kernel: Kernel, at: Term, varies: Sequence[int], entries: int) -> Term | None:
    """The condition that no program of a run up to this one reads beyond a table, if each reads an entry of its own.

    None where two may read one. at: where a program reads.

    >>> kernel, i, j = Kernel("k", (3, 4), ("i", "j"), ()), Term("name", "i"), Term("name", "j")
    >>> own_entry(kernel, linear([(4, i), (1, j)]), (0, 1), 12) is TRUE, own_entry(kernel, j, (0, 1), 12)
    (True, None)
    >>> str(own_entry(kernel, linear([(1, j)], 1), (1,), 4))
    'j + 1 < 4'
    """
    names = [Term("name", name) for name in kernel.grid_names]
    found = [difference(replaced(at, renaming({str(n.args[0]): linear([(1, n)], 1)})), at) for n in names]
    steps = [step for step in found if step is not None]
    first = difference(at, linear(zip(steps, names, strict=False))) if len(steps) == len(names) else None
    if first is None:
        return None
    ends = [(0, step * (extent - 1)) for step, extent in zip(steps, kernel.grid, strict=True) if type(extent) is int]
    known = all(type(extent) is int for step, extent in zip(steps, kernel.grid, strict=True) if step)
    least, most = first + sum(min(pair) for pair in ends), first + sum(max(pair) for pair in ends)
    if known and least >= 0 and most < entries and _each_its_own(kernel, steps, varies):
        return TRUE
    # programs that differ in one id read entries in order
    forwards = [steps[k] > 0 for k in varies if kernel.grid[k] != 1] == [True] and min(steps) >= 0
    return fold("<", at, Term("int", entries)) if first >= 0 and forwards else None


def _each_its_own(kernel: Kernel, steps: Sequence[int], varies: Sequence[int]) -> bool:
    """Whether the places of programs of a run are different: each id moves further than those before it together."""
    reach = 0
    for step, extent in sorted((abs(steps[k]), int(kernel.grid[k])) for k in varies if kernel.grid[k] != 1):
        if step <= reach:
            return False
        reach += step * (extent - 1)
    return True


def programs_before(kernel: Kernel, varies: Sequence[int]) -> tuple[Term, int] | None:
    """How many programs of a run come before this one at most, and how many the run has; None where that is not known.

    >>> kernel = Kernel("k", (3, 4), ("i", "j"), ())
    >>> str(programs_before(kernel, (0, 1))[0]), programs_before(kernel, (1,))
    ('i * 4 + j', (Term(j), 4))
    """
    extents = [kernel.grid[k] for k in varies]
    if any(type(extent) is not int for extent in extents):
        return None
    sizes = [int(extent) for extent in extents]
    steps = [prod(sizes[k + 1 :]) for k in range(len(sizes))]
    names = [Term("name", kernel.grid_names[k]) for k in varies]
    return linear(zip(steps, names, strict=True)), prod(sizes)
