"""The state of memory: which elements of a reference are undefined, or not written yet, at any point of a body.

Conditions here over-approximate: an element that they exclude is defined. They are built forwards from the state on
entry (a window's padding, the contents that earlier programs left), store after store: a store replaces the elements of
its slice where its path holds; a loop leaves the union over its iterations, less the surely replaced elements.

The state that programs and iterations carry from those before them is summarised by inductive invariants: each is one
of a few candidates, the strongest first, that holds at the start and is kept by every step (an engine checks it; all
that are in use at once, so that one may rest on another). The candidates are the kernel's own guards and the padding of
windows of equal size. Where they are not enough, all that hold are used together.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

from layoutproof.bodies import problems
from layoutproof.bodies.claims import BodyClaim, asked
from layoutproof.bodies.effects import (
    Access,
    Body,
    BodyReference,
    Carried,
    Effect,
    Index,
    Loop,
    Spot,
    StartedCopy,
    Unknown,
    View,
    adds_to,
    is_remote,
    loads_of,
    places,
    writes_to,
)
from layoutproof.bodies.forward import Nest, forward, nested, nests_of, within
from layoutproof.bodies.order import (
    at_program,
    filled_before,
    first_of_core,
    following,
    operand_of,
    other_block,
    outside,
    padding,
    seen,
    unfilled,
)
from layoutproof.bodies.recurrence import difference
from layoutproof.bodies.row_major import quotient, reshaped
from layoutproof.bodies.terms import PARTS, inlined, names_in, parts_of, renaming, replaced
from layoutproof.bodies.values import LEFT_OUT, Lost, Value, aligned, leaf, maybe
from layoutproof.bodies.wraps import unwrapped
from layoutproof.core.budget import effort, spend, spent
from layoutproof.core.errors import BudgetExceeded, Undecided
from layoutproof.core.folding import FALSE, TRUE, all_of, any_of, fold, folded, linear, negation, shifted
from layoutproof.core.message import message_of
from layoutproof.core.term import ONE, ZERO, Term
from layoutproof.kernel.kernel import Kernel

MOST_PARTS = 4_000
"""Parts of one condition; beyond, it is over budget."""
MOST_CHECKS = 400
"""Checks of candidates for one kernel."""
MOST_GUARDS = 6

Store = Access | StartedCopy


@dataclass(eq=False)
class _Invariant:
    """Of one reference or carried value: candidates for the undefined elements on entry, over the names at0, at1, ..

    dims: of the reference or value.  starts: conditions that must imply the chosen one: at first, and after a step,
    each with its own names; the later ones are more work, and are made where the first does imply it.
    more: candidates that hold besides, and whether they were looked for.
    """

    dims: tuple[int, ...]
    candidates: list[Callable[[], Term]]
    starts: Callable[[], Iterable[tuple[Term, Mapping[str, Term]]]]
    chosen: int = 0
    checked: int = -1
    more: list[Callable[[], Term]] | None = None

    def term(self) -> Term:
        """The condition in use."""
        first = self.candidates[self.chosen]() if self.chosen < len(self.candidates) else TRUE
        return all_of([first, *(one() for one in self.more or ())])


class _Names:
    """Definitions of names: those of a body, which grow while its values are asked about elements, and new ones."""

    def __init__(self, body: Body) -> None:
        self.witnesses: ChainMap[str, int] = ChainMap({}, body.witnesses)  # type: ignore[arg-type]
        self.unknowns: ChainMap[str, Unknown] = ChainMap({}, body.unknowns)  # type: ignore[arg-type]
        self.loads: ChainMap[str, Any] = ChainMap({}, body.loads)  # type: ignore[arg-type]
        loops = (*(each.loop for each in body.carried.values()), *(nest.loop for nest in nests_of(body).values()))
        self.loops = {loop.name: loop for loop in loops}
        self._kinds: dict[str, str] = {}

    def some(self, extent: int) -> Term:
        """An arbitrary number below an extent."""
        name = self._new("k")
        self.witnesses[name] = extent
        return Term("name", name)

    def again(self, name: str) -> str:
        """A new name for what may be another number elsewhere; the name itself where it is one number everywhere."""
        if name in self.witnesses:
            other = self._new("k")
            self.witnesses[other] = self.witnesses[name]
        elif name in self.unknowns:
            if self.unknowns[name].fixed:
                return name
            other = self._new("any")
            self.unknowns[other] = replace(self.unknowns[name], name=other, facts=())
        elif name in self.loops:
            other = self._new("t")
            loop = self.loops[name]
            fixed = loop.count is not None and loop.count.op == "int"
            self.loops[other] = Loop(other, loop.count if fixed else None, loop.source)
        else:
            return name
        return other

    def loaded_again(self, name: str) -> Term:
        """A new name for what a load gives elsewhere."""
        other = self._new("load")
        self.loads[other] = replace(self.loads[name], name=other)
        return Term("name", other)

    def alike(self, term: Term) -> tuple[Term, tuple[object, ...]]:
        """A term with names that were made here called by their order in it, and what each of them stands for.

        Two terms for which this is the same differ in such names only.
        """
        called: dict[str, Term] = {}
        stands: list[object] = []
        for part in parts_of(term):
            name = part.args[0] if part.op == "name" else part.args[0].args[0] if part.op == "read" else ""
            if name in self._kinds and name not in called:
                kind = self._kinds[name]
                called[name] = Term("name", f"{kind} {len(called)}")
                stands.append((kind, self._said(kind, name)))

        def change(part: Term) -> Term | None:
            if part.op == "name":
                return called.get(part.args[0])
            if part.op == "read" and part.args[0].args[0] in called:
                return Term("read", called[part.args[0].args[0]], *part.args[1:])
            return None

        return replaced(term, change) if called else term, tuple(stands)

    def _said(self, kind: str, name: str) -> object:
        """All that a claim is told of a name that was made here."""
        if kind == "k":
            return self.witnesses[name]
        if kind == "any":
            return self.unknowns[name].low, self.unknowns[name].high
        if kind == "t":
            return self.loops[name].count
        table = self.loads[name]
        return tuple(getattr(table, each.name) for each in fields(table) if each.name != "name")

    def is_load(self, part: Term) -> bool:
        """Whether a part of a term is what a load gives."""
        return part.op == "read" and part.args[0].args[0] in self.loads

    def is_open(self, term: Term) -> bool:
        """Whether a term speaks of numbers that differ from iteration to iteration and that nothing says."""
        parts = parts_of(term)
        return any((part.op == "name" and part.args[0] in self.unknowns) or self.is_load(part) for part in parts)

    def _new(self, kind: str) -> str:
        name = f"{kind}_{len(self._kinds) + 1}"
        self._kinds[name] = kind
        return name


@dataclass(eq=False)
class States:
    """Conditions on memory of one kernel.

    proves: whether a claim is proved.  holds: the same of a candidate for an invariant, and of what is tried first.
    unwritten: ask what has not been written yet, in place of what is undefined: a store of anything then makes an
    element written, and padding is.  only: the number of the one load whose elements may be undefined, -1 = all.
    stale: the name of a reference of which nothing is defined at first, while all else is; "" = none.
    own: whether the contents that earlier programs left are ignored.
    reason: why the last question could not be asked.
    """

    kernel: Kernel
    body: Body
    proves: Callable[[BodyClaim], bool]
    holds: Callable[[BodyClaim], bool]
    unwritten: bool = False
    only: int = -1
    stale: str = ""
    own: bool = False
    reason: str = ""
    _stores: dict[str, list[Store]] = field(default_factory=dict)
    _invariants: dict[tuple[str, str], _Invariant] = field(default_factory=dict)
    _known: dict[Any, Term] = field(default_factory=dict)
    _doubts: dict[tuple[Term, ...], list[Term]] = field(default_factory=dict)
    _written_out: dict[Term, Term] = field(default_factory=dict)
    _uses: dict[tuple[Term, Index, tuple[str, ...]], Term] = field(default_factory=dict)
    _excluded: dict[Any, bool] = field(default_factory=dict)
    _generation: int = 0
    _checks: int = 0

    def __post_init__(self) -> None:
        self._names = _Names(self.body)
        for effect in self.body.effects:
            if isinstance(effect, Access | StartedCopy) and (view := writes_to(effect)) is not None:
                self._stores.setdefault(view.reference.name, []).append(effect)

    # used by properties

    def at_exit(self, reference: BodyReference) -> Term:
        """The condition for element (at0, ..) of a reference when a program ends."""
        return self.before(reference, len(self.body.effects), ())

    def copied(self, store: Store, index: Index) -> Term:
        """The condition that a store happens and leaves something undefined at an element of its view."""
        view = store.view if isinstance(store, Access) else store.target
        given = all_of([*store.spot.path, *_let_through(store, view, index), self._given(store, index, FALSE)])
        return any_of([given, self.doubted(store.spot, view)])

    def unwritten_at(self, load: Store, at: Index) -> Term:
        """The condition for a place that a load or a copy reads."""
        view = load.view if isinstance(load, Access) else load.source
        state = self.before(view.reference, load.spot.number, load.spot.loops)
        return self._used(state, at, load.spot.loops)

    def impossible(
        self, make: Callable[[], Sequence[Term]], elements: Mapping[str, int]
    ) -> tuple[BodyClaim | None, bool]:
        """Whether no program, iteration and element make all of some conditions true: (the claim, proved).

        make: gives the conditions, over the grid's names, loops and `elements`; asked again when invariants change.
        """
        try:
            make()
            self._settle()
            claim = self._asked(make(), elements)
            if claim is None or self.holds(claim):
                return claim, True
            if self._strengthen():
                claim = self._asked(make(), elements)
                if claim is None or self.holds(claim):
                    return claim, True
            # an unknown number cannot witness a violation
            return claim, not claim.lost and self.proves(claim)
        except (BudgetExceeded, RecursionError):
            raise
        except Undecided as reason:
            self.reason = message_of(reason)
            return None, False

    # conditions

    def before(self, reference: BodyReference, number: int, loops: tuple[Loop, ...]) -> Term:
        """The condition for element (at0, ..) of a reference before effect `number`, inside of `loops`."""
        key = (reference.name, number, loops[-1].name if loops else "")
        if key not in self._known:
            self._known[key] = self._before(reference, number, loops)
        return self._known[key]

    def resolved(self, condition: Term) -> Term:
        """A condition in which loads and carried values are replaced by what memory holds."""

        def change(part: Term) -> Term | None:
            if part.op == "leaf":
                return self._leaf(str(part.args[0]), part.args[1:])
            return folded(part)

        return self._small(replaced(condition, change))

    def _before(self, reference: BodyReference, number: int, loops: tuple[Loop, ...]) -> Term:
        parts = within(nested(self._stores.get(reference.name, ())), loops, number)
        state = forward(parts, self, _at(reference.dims), self._entry(reference, loops))
        if reference.memory == "vmem_shared" and not self.unwritten:
            # other subcores store there meanwhile
            return any_of([state, *(self._sent(one, _target(one)) for one in self._stores.get(reference.name, ()))])
        return state

    def _entry(self, reference: BodyReference, loops: tuple[Loop, ...]) -> Term:
        """The condition where an iteration of the innermost loop begins, or the program."""
        fresh = reference.role == "fresh"
        if not loops:
            if fresh or self.own or reference.name not in self._stores:
                return self.found(reference)
            return self._invariant(("program", reference.name), lambda: self._over_programs(reference))
        loop = loops[-1]
        if fresh and len(reference.fresh_in) >= len(loops):
            return self.found(reference)
        if any(loop in s.spot.loops for s in self._stores.get(reference.name, ())):
            return self._invariant((loop.name, reference.name), lambda: self._over_iterations(reference, loops))
        return self.before(reference, nests_of(self.body)[loop.name].first, loops[:-1])

    def found(self, reference: BodyReference) -> Term:
        """The condition before anything was stored."""
        if self.stale:
            return TRUE if reference.name == self.stale else FALSE
        operand = operand_of(self.kernel, reference)
        if self.unwritten:
            return FALSE if filled_before(self.kernel, reference) else TRUE
        if unfilled(self.kernel, reference):
            return TRUE
        if operand is not None and reference.role == "in":
            return padding(operand, _at(reference.dims))
        return FALSE

    # the domain: a state is the condition for element `at` of one reference, whose stores alone are gone over

    def effect(self, store: Effect, at: Index, state: Term) -> Term:
        """The condition after a store, from the one before."""
        assert isinstance(store, Access | StartedCopy)
        return self._small(self._after(store, at, state))

    def loop(self, nest: Nest, at: Index, state: Term) -> Term:
        """The condition after a loop: of elements stored by any iteration, and of those that surely none has
        replaced."""
        stores = [store for store in nest.effects if isinstance(store, Access | StartedCopy)]
        depth = len(nest.around)
        left = []
        for store in stores:
            counted = [_below(loop) for loop in store.spot.loops[depth:]]
            one = self._after(store, at, FALSE)
            if one is not FALSE:
                left.append(all_of([*counted, one]))
        gone = [self._surely(store, depth, at) for store in stores]
        return self._small(any_of([*left, all_of([*map(negation, gone), state])]))

    def _after(self, store: Store, at: Index, state: Term) -> Term:
        """The condition after a store, from the one before."""
        view = store.view if isinstance(store, Access) else store.target
        if is_remote(store) and not self.unwritten:
            return any_of([state, self._sent(store, view)])
        found = inside(view, at)
        if found is None:
            given = self._given(store, tuple(self._names.some(n) for n in view.dims or ()), state)
            return any_of([given, self.doubted(store.spot, view), state])
        within, index = found
        parts = [*store.spot.path, *within]
        adds = adds_to(store)
        given = self._given(store, index, state)
        if adds:
            return any_of([all_of([*parts, given]), state, self.doubted(store.spot, view)])
        mask = getattr(store, "mask", None)
        if mask is not None:
            try:
                parts.append(mask.number(aligned(mask, view.dims or (), index)))
            except Lost:
                return any_of([all_of([*parts, given]), state, self.doubted(store.spot, view)])
        here = all_of([folded(p) for p in parts])
        doubt = self.doubted(store.spot, view)
        return any_of([all_of([here, given]), all_of([negation(here), state]), doubt])

    def _sent(self, store: Store, view: View) -> Term:
        """The condition that what others put here is undefined: where any of them may put nothing such, none.

        Which element of what comes from where, and when, is not looked at.
        """
        anywhere = tuple(self._names.some(extent) for extent in view.dims or ())
        if view.dims is not None and self._given(store, anywhere, FALSE) is FALSE:
            return FALSE
        who = "device copies" if is_remote(store) else "subcore stores"
        return maybe(f"what another {who} into {view.reference.name}")

    def _given(self, store: Store, index: Index, state: Term) -> Term:
        """Whether the value stored at an element of the view is undefined."""
        if self.unwritten:
            return FALSE
        if isinstance(store, StartedCopy):
            at = places(store.source, index, self._names.some)
            source = store.source.reference
            before = self.before(source, store.spot.number, store.spot.loops)
            if at is None:
                at = tuple(self._names.some(n) for n in source.dims)
            return self._used(before, at, store.spot.loops)
        return self.resolved(store.value.undefined(index))

    def doubted(self, spot: Spot, view: View | None = None) -> Term:
        """The condition that something undefined decides whether or where an effect happens."""
        if self.unwritten and self.only < 0:
            return FALSE
        said = tuple(conditions_of(spot, view))
        if said not in self._doubts:
            self._doubts[said] = self.doubts(said)
        return any_of([self.resolved(doubt) for doubt in self._doubts[said]])

    def doubts(self, terms: Iterable[Term]) -> list[Term]:
        """The conditions, each once, that a number in some terms is undefined."""
        found: dict[Term, None] = {}
        for part in (part for term in terms for part in parts_of(self._plain(term))):
            doubt = doubt_of(self.body, part)
            if doubt is not None:
                found[doubt] = None
        return list(found)

    def _surely(self, store: Store, depth: int, at: Index) -> Term:
        """A condition under which an element is replaced by some iteration of the loops from `depth` on.

        From the innermost loop outwards, the range of each dimension that one iteration replaces is extended to all:
        for a start that moves by a constant, and for one that goes on where the iteration before has ended. For the
        last iteration whose start is not beyond a place has it, if the end of each is the start of the next.
        """
        if is_remote(store) or adds_to(store) or getattr(store, "mask", None) is not None:
            return FALSE
        view = store.view if isinstance(store, Access) else store.target
        if len(view.steps) > 1 or any(step.kind != "slices" for step in view.steps):
            return FALSE
        inner = store.spot.loops[depth:]
        goes_on = {self.body.goes_on.get(loop.name) for loop in inner}
        parts = [self._plain(p) for p in store.spot.path if p not in goes_on]
        moving: list[tuple[Term, Term, Term]] = []
        for place, piece in zip(at, view.steps[0].slices if view.steps else (), strict=False):
            start = self._plain(piece.start)
            if piece.size.op != "int":
                return FALSE
            if piece.stride == 1 and self._changes(start, inner, depth, store):
                # of a sum it does not matter: a place is no number that wraps
                begin = unwrapped(start) if _is_sum(unwrapped(start)) else start
                moving.append((place, begin, shifted(begin, piece.size.args[0])))
            else:
                parts += _within(place, start, piece.size, piece.stride)
        for k, loop in reversed([*enumerate(inner, depth)]):
            if any(self._changes(part, (loop,), k, store) for part in parts):
                return FALSE
            here = [one for one in moving if any(self._changes(end, (loop,), k, store) for end in one[1:])]
            moving = [one for one in moving if one not in here]
            if len(here) > 1:
                return FALSE
            handed = self._appended(loop, here[0][1:]) if here else None
            if handed is not None:
                moving.append((here[0][0], *handed))
                continue
            count = self._turns(loop, k, store)
            if count is None:
                return FALSE
            if not here:
                parts.append(fold("<", ZERO, count))
                continue
            ((place, begin, end),) = here
            size = _beyond(end, begin)
            reached = None if size is None else _reached(place, begin, size, 1, Loop(loop.name, count))
            if reached is None:
                return FALSE
            first, last = (replaced(begin, renaming({loop.name: t})) for t in (ZERO, count))
            if size == 1 and difference(replaced(begin, renaming({loop.name: ONE})), first) == 1:
                moving.append((place, first, self._ended(loop, last, begin)))
            else:
                parts += reached
        return all_of([*parts, *(c for place, begin, end in moving for c in _from_to(place, begin, end))])

    def _changes(self, term: Term, loops: Sequence[Loop], depth: int, store: Store) -> bool:
        """Whether a term of a store may be another number in another iteration of some loops, `depth` of which around.

        Values carried by a loop further out, and values loaded there, do not change.
        """
        around = store.spot.loops[:depth]
        held = {one.name for one in self.body.handed if one.loop in around}
        counters = {loop.name for loop in loops} | {loop.name for loop in store.spot.loops[depth:]}
        for part in parts_of(term):
            name = part.args[0] if part.op == "name" else ""
            if name in counters:
                return True
            if name in self._names.unknowns and name not in held and not self._names.unknowns[name].fixed:
                return True
            if self._names.is_load(part):
                load = loads_of(self.body).get(part.args[0].args[0])
                if load is None or any(loop not in around for loop in load.spot.loops):
                    return True
        return False

    def _turns(self, loop: Loop, depth: int, store: Store) -> Term | None:
        """How often a loop runs, as a number of one iteration around it; it may be below 0, then it does not."""
        if loop.count is not None:
            return loop.count if not self._changes(loop.count, (loop,), depth, store) else None
        left, right = self._compared(loop)
        if left is None or right is None or self._changes(right, (loop,), depth, store):
            return None
        first, second = (replaced(replaced(left, renaming({loop.name: t})), folded) for t in (ZERO, ONE))
        if difference(second, first) != 1 or self._changes(first, (loop,), depth, store):
            return None
        # a counter below a 32-bit number does not wrap, unless it has before
        return Term("-", right, first) if first.op in ("name", "int") else None

    def _compared(self, loop: Loop) -> tuple[Term | None, Term | None]:
        """The counter of a while loop, and its exclusive bound."""
        condition = self.body.goes_on.get(loop.name)
        plain = None if condition is None else self._plain(condition)
        if plain is None or plain.op != "<" or not _is_sum(unwrapped(plain.args[0])):
            return None, None
        return unwrapped(plain.args[0]), plain.args[1]

    def _ended(self, loop: Loop, last: Term, begin: Term) -> Term:
        """The final value of a number that moves by one: `last`, or the loop's bound where they are equal."""
        left, right = self._compared(loop)
        beyond = None if left is None else difference(begin, left)
        return last if right is None or beyond is None else shifted(right, beyond)

    def _appended(self, loop: Loop, ends: tuple[Term, Term]) -> tuple[Term, Term] | None:
        """From where to where all iterations go together, each from where the one before has ended; None where not."""
        for one in self.body.handed:
            by = _beyond(ends[0], Term("name", one.name)) if one.loop is loop else None
            if by is not None and _beyond(ends[1], self._plain(one.following)) == by:
                return shifted(self._plain(one.start), by), shifted(Term("name", one.after), by)
        return None

    def _plain(self, term: Term) -> Term:
        """A term with carried numbers written out over the loops' counters."""
        if term not in self._written_out:
            self._written_out[term] = inlined(self.body.definitions, term)
        return self._written_out[term]

    # loads and carried values

    def _leaf(self, source: str, index: Index) -> Term:
        carried = self.body.carried.get(source)
        if carried is not None:
            return self._handed_on(source, carried, index)
        if source.startswith(LEFT_OUT):
            # it is no memory, and cannot be written
            return FALSE if self.unwritten or self.stale else TRUE
        effect = loads_of(self.body).get(source)
        if effect is None:
            assert source not in self._names.loads, source
            return FALSE
        reference = effect.view.reference
        if self.only >= 0 and effect.spot.number != self.only:
            return FALSE
        at = places(effect.view, index, self._names.some)
        state = self.before(reference, effect.spot.number, effect.spot.loops)
        if at is None:
            at = tuple(self._names.some(n) for n in reference.dims)
        return self._used(state, at, effect.spot.loops)

    def _handed_on(self, name: str, carried: Carried, index: Index) -> Term:
        start: Value = carried.start
        loops = self._around(carried.loop)
        key = name if not carried.final else next(
            n for n, c in self.body.carried.items() if not c.final and c.start is start and c.next is carried.next
        )  # fmt: skip
        state = self._invariant(("carried", key), lambda: self._over_carried(carried))
        if carried.final:
            end = carried.loop.count
            if end is None:
                return self._used(state, index, loops)
            state = replaced(state, renaming({carried.loop.name: end}))
            return self._used(state, index, loops)
        return self._used(state, index, (*loops, carried.loop))

    def _around(self, loop: Loop) -> tuple[Loop, ...]:
        nest = nests_of(self.body).get(loop.name)
        return () if nest is None else nest.around

    # invariants

    def _invariant(self, key: tuple[str, str], make: Callable[[], _Invariant]) -> Term:
        if key not in self._invariants:
            self._invariants[key] = make()
        return self._invariants[key].term()

    def _settle(self) -> None:
        """Weakens invariants until all hold."""
        while True:
            waiting = [one for one in self._invariants.values() if one.checked != self._generation]
            if not waiting:
                return
            # dependencies were made later, and are settled first: a candidate may fail for another's sake
            for one in reversed(waiting):
                if (one.more or one.chosen < len(one.candidates)) and not self._holds(one):
                    if one.more:
                        one.more = []
                    else:
                        one.chosen += 1
                    self._generation += 1
                    self._known.clear()
                    break
                one.checked = self._generation

    def _strengthen(self) -> bool:
        """Adds to invariants what holds besides; whether there is any."""
        found = False
        for one in reversed([*self._invariants.values()]):
            if one.more is not None:
                continue
            one.more = []
            for candidate in one.candidates[one.chosen + 1 :]:
                one.more.append(candidate)
                self._known.clear()
                if self._holds(one):
                    found = True
                else:
                    one.more.pop()
            self._known.clear()
        return found

    def _holds(self, one: _Invariant) -> bool:
        self._checks += 1
        if self._checks > MOST_CHECKS * effort():
            raise BudgetExceeded(problems.MOST_CHECKS(MOST_CHECKS * effort()))
        term = one.term()
        for condition, called in one.starts():
            if condition is FALSE:
                continue
            there = replaced(replaced(term, renaming(called)), folded)
            if there is TRUE:
                continue
            try:
                excluded = self._excludes([condition, negation(there)], {f"at{k}": n for k, n in enumerate(one.dims)})
            except BudgetExceeded:
                raise
            except Undecided:
                return False
            if not excluded:
                return False
        return True

    def _excludes(self, conditions: Sequence[Term], elements: Mapping[str, int]) -> bool:
        """Whether it is shown that some conditions never hold together; asked once, whatever made names are called."""
        whole = self._whole(conditions)
        key = (*self._names.alike(whole), tuple(elements.items()))
        if key not in self._excluded:
            claim = self._claim(whole, elements)
            held = claim is None or self.holds(claim)
            if spent():
                # a question with more steps left may be told more
                return held
            self._excluded[key] = held
        return self._excluded[key]

    def _over_programs(self, reference: BodyReference) -> _Invariant:
        kernel = self.kernel
        operand = operand_of(kernel, reference)
        after, some, _ = following(kernel)
        called = dict(zip(kernel.grid_names, after, strict=True))

        def starts() -> Iterator[tuple[Term, Mapping[str, Term]]]:
            found = self.found(reference)
            yield all_of([first_of_core(kernel), found]), {}
            if operand is None:
                yield all_of([some, self.at_exit(reference)]), called
                return
            other = other_block(kernel, operand, after)
            yield all_of([some, other, at_program(kernel, found, after)]), called
            yield all_of([some, negation(other), self.at_exit(reference)]), called

        return _Invariant(reference.dims, [_same(term) for term in self._candidates(reference)], starts)

    def _candidates(self, reference: BodyReference) -> list[Term]:
        kernel = self.kernel
        guards = self._guards(reference)
        found = [FALSE]
        if self.unwritten:
            first = first_of_core(kernel)
            found += [first, *guards]
            reads = []
            for effect in self.body.effects:
                if isinstance(effect, Access) and effect.kind == "read" and effect.view.reference is reference:
                    here = inside(effect.view, _at(reference.dims))
                    if here is not None:
                        said = [*map(self._plain, (*effect.spot.path, *here[0]))]
                        own = all_of([term for term in said if self._of_programs(term)])
                        if own is not TRUE:
                            reads.append(negation(own))
            own_reads = list(dict.fromkeys(reads))[:MOST_GUARDS]
            for read in own_reads:
                found += [any_of([guard, read]) for guard in (first, *guards) if negation(guard) != read]
            if len(guards) > 1:
                found.append(any_of(guards))
        else:
            pads = self._padded(reference.dims, reference.memory) if not self.stale else []
            found += self._masks(reference) if reference.name == self.stale else []
            found += [*guards, *pads, *(any_of([guard, pad]) for pad in pads for guard in guards)]
        return found

    def _of_programs(self, term: Term) -> bool:
        """Whether a term speaks of programs, tables and elements alone."""
        free = {*self.kernel.grid_names}
        return not self._names.is_open(term) and all(n in free or n.startswith("at") for n in names_in(term))

    def _guards(self, reference: BodyReference) -> list[Term]:
        """Conditions over the programs alone under which something is stored to a reference."""
        found: dict[Term, None] = {}
        for store in self._stores.get(reference.name, ()):
            for condition in (*store.spot.path, all_of([*store.spot.path])):
                plain = self._plain(condition)
                own = set(names_in(plain)) <= set(self.kernel.grid_names)
                if own and plain is not TRUE and not self._names.is_open(plain):
                    found[plain] = None
        return [*found][:MOST_GUARDS]

    def _masks(self, reference: BodyReference) -> list[Term]:
        """Comparisons, and their opposites, that decide what of a reference a store replaces.

        Of rows that are filled one range after the other, those from the start of the next range on are not yet there.
        """
        found: dict[Term, None] = {}
        for store in self._stores.get(reference.name, ()):
            here = inside(store.view, _at(reference.dims)) if isinstance(store, Access) else None
            if here is None or not isinstance(store, Access):
                continue
            for part in parts_of(self._plain(store.value.undefined(here[1]))):
                if part.op in ("<", "<=", "==", "!=") and self._of_programs(part):
                    found[part] = None
        return [way for part in [*found][:MOST_GUARDS] for way in (part, negation(part))]

    def _padded(self, dims: Sequence[int], memory: str = "vmem") -> list[Term]:
        """Padding of windows of these dimensions, counted from the last: of outputs first, then of all."""
        at = _at(dims)
        ways: list[Term] = []
        for operands in (self.kernel.outputs, self.kernel.operands):
            parts = []
            for operand in operands:
                if not operand.windowed or operand.unmodelled:
                    continue
                shown = seen(operand)
                for back in range(1, min(len(shown), len(dims)) + 1):
                    k = shown[-back]
                    if operand.block[k].size == dims[-back]:
                        parts.append(outside(operand, k, at[-back]))
            one = any_of(parts)
            if one is not FALSE and all(str(one) != str(other) for other in ways):
                ways.append(one)
        return ways

    def _over_iterations(self, reference: BodyReference, loops: tuple[Loop, ...]) -> _Invariant:
        nest = nests_of(self.body)[loops[-1].name]
        before = partial(self.before, reference, nest.first, nest.around)
        left = partial(self.before, reference, nest.end, loops)
        # the state on entry may be there in the first iteration only
        return self._over_turns(loops[-1], loops, reference.dims, before, left, first=True)

    def _over_carried(self, carried: Carried) -> _Invariant:
        dims: tuple[int, ...] = carried.start.dims

        def undefined(value: Value) -> Term:
            return self.resolved(value.undefined(_at(dims)))

        before, left = partial(undefined, carried.start), partial(undefined, carried.next)
        return self._over_turns(carried.loop, self._around(carried.loop), dims, before, left)

    def _over_turns(
        self,
        loop: Loop,
        known: Sequence[Loop],
        dims: tuple[int, ...],
        before: Callable[[], Term],
        left: Callable[[], Term],
        first: bool = False,
    ) -> _Invariant:
        """known: loops whose counters a candidate may name.  before, left: the conditions on entry, and after an
        iteration."""
        counter = Term("name", loop.name)

        def starts() -> Iterator[tuple[Term, Mapping[str, Term]]]:
            yield before(), {loop.name: ZERO}
            yield all_of([_below(loop), left()]), {loop.name: Term("+", counter, ONE)}

        def entry() -> Term:
            state = before()
            return state if self._closed(state, known) else FALSE

        ways: list[Callable[[], Term]] = [_same(FALSE), entry]
        if first:
            ways.insert(1, lambda: all_of([Term("==", counter, ZERO), entry()]))
        if not self.unwritten:
            for pad in (*self._padded(dims), *self._left_out(dims, known)):
                ways += [_same(pad), _joined(entry, pad)]
        return _Invariant(dims, ways, starts)

    def _left_out(self, dims: Sequence[int], known: Sequence[Loop]) -> list[Term]:
        """What masks of loads leave out, as elements of something of these dimensions: of one row of mask each of them.

        known: loops whose counters may be named.
        """
        masks = {e.mask: None for e in self.body.effects if isinstance(e, Access) and e.kind == "read" and e.mask}
        found: dict[Term, None] = {}
        at = _at(dims)
        for mask in masks:
            wide = [n for n in mask.dims if n != 1]
            ways = [at] if mask.dims == tuple(dims) else []
            if len(wide) == 1 and not ways:
                ways = [tuple(at[k] if n != 1 else ZERO for n in mask.dims) for k, n in enumerate(dims) if n == wide[0]]
            for index in ways:
                try:
                    left = negation(mask.number(index))
                except Lost:
                    break
                if left is not FALSE and self._closed(left, known):
                    found[left] = None
        return [*found][:MOST_GUARDS]

    def _closed(self, state: Term, loops: Sequence[Loop]) -> bool:
        """Whether a condition speaks of programs, loops around it and elements only, so that it may be negated."""
        free = {*self.kernel.grid_names, *(loop.name for loop in loops)}
        for part in parts_of(state):
            if part.op in ("maybe", "leaf") or self._names.is_load(part):
                return False
            if part.op == "name" and part.args[0] not in free and not part.args[0].startswith("at"):
                return False
        return True

    # names

    def _used(self, state: Term, at: Index, loops: Sequence[Loop]) -> Term:
        """A condition for one element, with names of its own for all that is bound in it.

        The same condition for the same element is the same one, with the same names: no condition on memory is negated
        that has any, so two that hold can be shown by the same numbers.
        """
        key = (state, at, tuple(loop.name for loop in loops))
        if key not in self._uses:
            self._uses[key] = self._named_anew(state, at, loops)
        return self._uses[key]

    def _named_anew(self, state: Term, at: Index, loops: Sequence[Loop]) -> Term:
        keep = {*self.kernel.grid_names, *(loop.name for loop in loops), *self.body.definitions}
        new: dict[str, Term] = {f"at{k}": term for k, term in enumerate(at)}
        tables: dict[str, Term] = {}
        state = self._plain(state)
        for part in parts_of(state):
            if part.op == "name" and part.args[0] not in new and part.args[0] not in keep:
                new[part.args[0]] = Term("name", self._names.again(part.args[0]))
            elif self._names.is_load(part) and part.args[0].args[0] not in tables:
                tables[part.args[0].args[0]] = self._names.loaded_again(part.args[0].args[0])

        def change(part: Term) -> Term | None:
            if part.op == "name":
                return new.get(part.args[0])
            if part.op == "read" and part.args[0].args[0] in tables:
                return Term("read", tables[part.args[0].args[0]], *part.args[1:])
            return folded(part)

        return self._small(replaced(state, change))

    def _small(self, term: Term) -> Term:
        parts = len(parts_of(term))
        spend(1 + parts // PARTS)
        if parts > MOST_PARTS * effort():
            raise BudgetExceeded(problems.MOST_CONDITION_PARTS(MOST_PARTS * effort()))
        return term

    def _asked(self, conditions: Sequence[Term], elements: Mapping[str, int]) -> BodyClaim | None:
        """The claim that some conditions never hold together; None where that is plain."""
        return self._claim(self._whole(conditions), elements)

    def _whole(self, conditions: Sequence[Term]) -> Term:
        """All of some conditions as one, which `maybe` does not hinder."""
        return upper(replaced(self._plain(all_of([*conditions])), folded))

    def _claim(self, whole: Term, elements: Mapping[str, int]) -> BodyClaim | None:
        """The claim that a condition never holds; None where that is plain."""
        if whole is FALSE:
            return None
        names = names_in(whole)
        _, _, ahead = following(self.kernel)
        extents = {name: n for name, n in ahead.items() if name in names}
        known = self._names
        loops = [known.loops[name] for name in names if name in known.loops]
        body = replace(self.body, unknowns=known.unknowns, loads=known.loads, witnesses={})
        extents |= {name: known.witnesses[name] for name in names if name in known.witnesses}
        counts = [_below(loop) for loop in loops]
        plain = [loop if loop.count is None or loop.count.op == "int" else Loop(loop.name, None) for loop in loops]
        return asked(self.kernel, body, [*counts, whole], plain, {**elements, **extents})


def doubt_of(body: Body, part: Term) -> Term | None:
    """The condition that a number which no term says is undefined; None of other parts of terms."""
    if part.op == "name" and part.args[0] in body.doubts:
        doubt: Term = body.doubts[part.args[0]].undefined()
        return doubt
    if part.op == "name" and part.args[0] in body.carried:
        return leaf(part.args[0], ())
    if part.op == "read" and part.args[0].args[0] in body.loads:
        name = part.args[0].args[0]
        return leaf(name, () if loads_of(body)[name].view.dims == () else part.args[1:])
    return None


def conditions_of(spot: Spot, view: View | None = None) -> list[Term]:
    """The numbers and conditions that say whether and where an effect happens."""
    steps = view.steps if view is not None else ()
    picked = [term for step in steps for term in step.picked if term is not None]
    return [
        *spot.path,
        *(term for step in steps for piece in step.slices for term in (piece.start, piece.size)),
        *picked,
    ]


def upper(condition: Term) -> Term:
    """The condition with every `maybe` let stand in the way that makes it hold.

    >>> from layoutproof.bodies.values import maybe
    >>> upper(maybe("x")) is TRUE, upper(negation(maybe("x"))) is TRUE
    (True, True)
    """
    if not any(part.op == "maybe" for part in parts_of(condition)):
        return condition

    def bound(part: Term, high: bool) -> Term:
        if part.op == "and":
            return all_of([bound(a, high) for a in part.args])
        if part.op == "or":
            return any_of([bound(a, high) for a in part.args])
        if part.op == "not":
            return negation(bound(part.args[0], not high))
        if any(inner.op == "maybe" for inner in parts_of(part)):
            return TRUE if high else FALSE
        return part

    return bound(condition, True)


def reasons(condition: Term) -> tuple[str, ...]:
    """Why a condition is not known, each once."""
    return tuple(dict.fromkeys(str(part.args[0]) for part in parts_of(condition) if part.op == "maybe"))


def inside(view: View, at: Index, some: Callable[[int], Term] | None = None) -> tuple[list[Term], Index] | None:
    """The conditions that a place of a reference is in a view, and the element of the view; None for narrower ones.

    some: gives a name for "some k below a number": the part of those that a list places that is there.
    """
    conditions: list[Term] = []
    for step in view.steps:
        if step.kind == "slices":
            kept: list[Term] = []
            for place, piece, extent in zip(at, step.slices, step.dims, strict=True):
                if piece.single:
                    conditions.append(fold("==", place, piece.start))
                    continue
                whole = piece.size.op == "int" and piece.size.args[0] == extent and piece.stride == 1
                if whole and piece.start.op == "int" and piece.start.args[0] == 0:
                    kept.append(place)
                    continue
                conditions += _within(place, piece.start, piece.size, piece.stride)
                away = place if _is(piece.start, 0) else Term("-", place, piece.start)
                kept.append(away if piece.stride == 1 else Term("//", away, Term("int", piece.stride)))
            at = tuple(kept)
        elif step.kind == "gather" and step.after is not None and some is not None:
            part = some(step.after[0])
            pairs = list(zip(at, step.picks, strict=True))
            conditions += [fold("==", one.number((part,)), place) for place, one in pairs if one is not None]
            at = (part, *(place for place, one in pairs if one is None))
        elif step.kind == "reshape" and step.after is not None:
            at = reshaped(at, step.dims, step.after)
        elif step.kind == "transpose":
            at = tuple(at[d] for d in step.permutation)
        elif step.kind == "bitcast" and step.after is not None and step.after[-2] < step.dims[-2]:
            # wider elements: each holds all of some
            at = (*at[:-2], quotient("//", at[-2], step.dims[-2] // step.after[-2]), at[-1])
        else:
            return None
    return [c for c in conditions if c is not TRUE], at


def _target(store: Store) -> View:
    return store.view if isinstance(store, Access) else store.target


def _let_through(store: Store, view: View, index: Index) -> list[Term]:
    """The condition that a mask lets an element be stored, () where there is none, or no term says it."""
    if store.mask is None:
        return []
    try:
        return [store.mask.number(aligned(store.mask, view.dims or store.mask.dims, index))]
    except Lost:
        if isinstance(store, StartedCopy):
            raise
        return []


def _is(term: Term, number: int) -> bool:
    return bool(term.op == "int" and term.args[0] == number)


def _within(place: Term, start: Term, size: object, stride: int) -> list[Term]:
    """place is one of `size` places from start on."""
    extent = size if isinstance(size, Term) else Term("int", size)
    away = place if _is(start, 0) else Term("-", place, start)
    if stride == 1:
        end = fold("+", start, extent)
        return [fold("<=", start, place), fold("<", place, end)]
    by = Term("int", stride)
    reach = Term("int", extent.args[0] * stride) if extent.op == "int" else Term("*", extent, by)
    return [
        fold("<=", start, place),
        fold("<", away, reach),
        fold("==", Term("%", away, by), ZERO),
    ]


def _reached(place: Term, start: Term, size: int, stride: int, loop: Loop) -> list[Term] | None:
    """The conditions that some iteration's slice has a place: the last iteration that starts at or before it has.

    None where the start does not move by a constant step.
    """
    counter, count = Term("name", loop.name), loop.count
    ahead = replaced(start, renaming({loop.name: Term("+", counter, ONE)}))
    step = difference(ahead, start)
    if step is None or step == 0 or count is None or stride != 1:
        return None
    begin = replaced(start, renaming({loop.name: ZERO}))
    if step < 0:
        begin = linear([(1, begin), (step, Term("-", count, ONE))])
        step = -step
    away = Term("-", place, begin)
    at = Term("min", Term("//", away, Term("int", step)), Term("-", count, ONE))
    return [
        Term("<=", begin, place),
        Term("<", ZERO, count),
        Term("<", Term("-", away, fold("*", at, Term("int", step))), Term("int", size)),
    ]


def _is_sum(term: Term) -> bool:
    return all(part.op in ("+", "-", "int", "name") for part in parts_of(term))


def _from_to(place: Term, begin: Term, end: Term) -> list[Term]:
    return [fold("<=", begin, place), fold("<", place, end)]


def _beyond(term: Term, base: Term) -> int | None:
    """How far a term is beyond another one, by what is added to it; None where that is not plain."""
    by = 0
    while term is not base and term.op in ("+", "-") and term.args[1].op == "int":
        by += term.args[1].args[0] * (1 if term.op == "+" else -1)
        term = term.args[0]
    return by if term is base else difference(term, shifted(base, -by))


def _below(loop: Loop) -> Term:
    """The condition that a loop's counter is below its count, where its space does not say so."""
    if loop.count is None or loop.count.op == "int":
        return TRUE
    return Term("<", Term("name", loop.name), loop.count)


def _at(dims: Sequence[int]) -> Index:
    return tuple(Term("name", f"at{k}") for k in range(len(dims)))


def _same(term: Term) -> Callable[[], Term]:
    return lambda: term


def _joined(make: Callable[[], Term], term: Term) -> Callable[[], Term]:
    return lambda: any_of([make(), term])
