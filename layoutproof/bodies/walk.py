"""A literal walk of a body on plain ints: is one element of memory undefined (or not written) at one point of one run?

It goes back from the question, effect by effect, iteration by iteration, program by program, to the store that left
what is there, and asks what that stored. Nothing is approximated: where a number is not known the answer is None. It
replays what the engines refute, and is what the conditions of `memory_state` are tested against.

Of several ways in which something may be undefined (parts of a sum, the elements of a reduction) one is enough. Each
is looked at with half of the steps that are left, so that a long way hides no short one: a product of matrices is
undefined by its second operand without all of the softmax that the first one comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from layoutproof.bodies import problems
from layoutproof.bodies.effects import (
    Access,
    Body,
    BodyReference,
    Index,
    Loop,
    StartedCopy,
    View,
    adds_to,
    is_remote,
    loads_of,
    places,
)
from layoutproof.bodies.memory_state import doubt_of, inside
from layoutproof.bodies.order import filled_before, operand_of, padding, unfilled, valid
from layoutproof.bodies.terms import inlined
from layoutproof.bodies.values import LEFT_OUT, Lost
from layoutproof.core.budget import effort
from layoutproof.core.errors import BudgetExceeded
from layoutproof.core.folding import all_of, conjuncts
from layoutproof.core.numbers import INTS
from layoutproof.core.operations import INT32, apply
from layoutproof.core.term import Term, every
from layoutproof.kernel.kernel import Kernel, Operand

Place = tuple[int, ...]
Answer = bool | None
Iterations = Mapping[str, int]

MOST_STEPS = 300_000
"""Terms that are evaluated for one question, at effort 1."""
MOST_BY_CHANCE = 8
"""Iterations that are checked of a loop with an unknown trip count."""
MOST_QUESTIONS = 4
"""Questions of one walk that may take as many."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where something undefined was loaded from.

    effect: the load or copy that met it.  program, element: in whose window or scratch, and which.  iterations, reader:
    of the loops around the load, and the program that loads.  masked: whether it is what the mask of a load leaves out.
    """

    effect: Access | StartedCopy | None
    reference: BodyReference
    program: Place
    element: Place
    iterations: tuple[tuple[str, int], ...] = ()
    reader: Place = ()
    masked: bool = False


@dataclass(eq=False)
class BodyWalk:
    """One run. tables: (name of a table, indices) -> what it holds there, None = not known.

    unwritten: ask for unwritten elements, see `memory_state`.  alone: one core runs only the programs whose parallel
    ids are those of the program that is asked about; else one core runs all.  own: whether the contents that earlier
    programs left are ignored.  likely: the first values to try for "some k".
    over: whether steps were too few for an answer.
    """

    kernel: Kernel
    body: Body
    tables: Callable[[str, Place], int | None] = lambda name, at: None
    unwritten: bool = False
    alone: bool = False
    own: bool = False
    only: int = -1
    likely: int = -1
    steps: int = 0
    over: bool = False
    _limit: int = field(default=0, init=False)
    _cut: int = field(default=0, init=False)
    _known: dict[Any, tuple[Answer, Origin | None]] = field(default_factory=dict, init=False)
    _numbers: dict[Any, int | None] = field(default_factory=dict, init=False)
    _some: dict[Term, tuple[str, ...]] = field(default_factory=dict, init=False)
    _first: dict[str, int] = field(default_factory=dict, init=False)
    _end: dict[str, int] = field(default_factory=dict, init=False)
    _stores: dict[str, list[Access | StartedCopy]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._limit = MOST_STEPS * effort()
        for effect in self.body.effects:
            for loop in effect.spot.loops:
                self._first.setdefault(loop.name, effect.spot.number)
                self._end[loop.name] = effect.spot.number + 1
            if isinstance(effect, Access) and effect.kind != "read":
                self._stores.setdefault(effect.view.reference.name, []).append(effect)
            elif isinstance(effect, StartedCopy):
                self._stores.setdefault(effect.target.reference.name, []).append(effect)

    # the questions

    def left(self, reference: BodyReference, program: Place, element: Place) -> tuple[Answer, Origin | None]:
        """Whether an element is undefined when a program ends, and where that comes from."""
        return self._guarded(lambda: self._state(reference, len(self.body.effects), (), program, {}, element))

    def stores(
        self, effect: Access | StartedCopy, program: Place, within: Iterations, element: Place
    ) -> tuple[Answer, Origin | None]:
        """Whether a store or copy happens there and leaves something undefined at an element of its view."""

        def ask() -> tuple[Answer, Origin | None]:
            happens = self._happens(effect, program, within, element)
            if not happens:
                return happens, None
            if isinstance(effect, StartedCopy):
                return self._given(effect, element, program, within)
            return self._undefined(effect.value, element, program, within)

        return self._guarded(ask)

    def loads(
        self, effect: Access | StartedCopy, program: Place, within: Iterations, element: Place
    ) -> tuple[Answer, Origin | None]:
        """Whether a load happens there and reads something undefined at an element of its view."""

        def ask() -> tuple[Answer, Origin | None]:
            happens = self._happens(effect, program, within, element)
            if not happens:
                return happens, None
            if isinstance(effect, StartedCopy):
                return self._taken(effect, element, program, within)
            return self._leaf(effect.name, element, program, within)

        return self._guarded(ask)

    def _happens(self, effect: Access | StartedCopy, program: Place, within: Iterations, element: Place) -> Answer:
        """Whether an effect happens there, and its mask lets an element of its view through."""
        happens = self._all(effect.spot.path, program, within)
        if happens and effect.mask is not None:
            try:
                return self._holds(effect.mask.number(_ints(element)), program, within)
            except Lost:
                return None
        return happens

    def decides(self, load: Access | StartedCopy, program: Place) -> tuple[Answer, Origin | None]:
        """Whether something undefined that a load reads says whether an effect happens in a program; where it is."""

        def ask() -> tuple[Answer, Origin | None]:
            for effect in self.body.effects:
                first = {loop.name: 0 for loop in effect.spot.loops}
                ends = [self._runs(loop, 0) for loop in effect.spot.loops]
                for conditions in (effect.spot.path, *([end] for end in ends)):
                    origin = self._by_chance(conditions, program, first)
                    if origin is not None and origin.effect is load:
                        return True, origin
            return False, None

        return self._guarded(ask)

    def place(self, view: View, element: Place, program: Place, within: Iterations) -> Place | None:
        """Where an element of a view is in its reference; None where that is not known."""
        try:
            found = tuple(self._number(term, program, within) for term in places(view, _ints(element)) or ())
        except BudgetExceeded:
            return None
        known = tuple(n for n in found if n is not None)
        return known if len(known) == len(found) == len(view.reference.dims) else None

    def holds(self, condition: Term, program: Place) -> Answer:
        """Whether a condition over the grid's names holds of a program."""
        return self._holds(condition, program, {})

    def valid_at_end(self, operand: Operand, reference: BodyReference, program: Place, element: Place) -> Answer:
        """Whether a program is the last of its visit to a block, and the element is one of the array."""
        try:
            if self._holds(valid(self.kernel, operand, _ints(element)), program, {}) is not True:
                return False
        except BudgetExceeded:
            return None
        after = list(program)
        for k in reversed(range(len(after))):
            if after[k] + 1 < INTS.size(self.kernel.grid[k]):
                after[k] += 1
                try:
                    return not self._same_block(operand, program, tuple(after))
                except BudgetExceeded:
                    return None
            after[k] = 0
        return True

    def _guarded(self, ask: Callable[[], tuple[Answer, Origin | None]]) -> tuple[Answer, Origin | None]:
        most = MOST_STEPS * effort()
        self._limit = min(self.steps + most, MOST_QUESTIONS * most)
        try:
            return ask()
        except (BudgetExceeded, RecursionError):
            return None, None
        finally:
            self._limit = MOST_QUESTIONS * most

    def _apart(self, ask: Callable[[], tuple[Any, Origin | None]]) -> tuple[Any, Origin | None]:
        """One of several ways of which any will do, with half of the steps that are left; not known where they end."""
        limit = self._limit
        self._limit = self.steps + (limit - self.steps) // 2
        try:
            return ask()
        except BudgetExceeded:
            self._cut += 1
            return None, None
        finally:
            self._limit = limit

    def _remembered(self, key: object, ask: Callable[[], tuple[Answer, Origin | None]]) -> tuple[Answer, Origin | None]:
        """An answer, worked out once; one that steps were too few for is worked out again where it is asked again."""
        if key in self._known:
            return self._known[key]
        cut = self._cut
        self._known[key] = None, None
        try:
            found = ask()
        except BaseException:
            del self._known[key]
            raise
        if found[0] is None and self._cut > cut:
            del self._known[key]
        else:
            self._known[key] = found
        return found

    # memory

    def _state(
        self,
        reference: BodyReference,
        number: int,
        loops: tuple[Loop, ...],
        program: Place,
        within: Iterations,
        element: Place,
        reader: Access | StartedCopy | None = None,
    ) -> tuple[Answer, Origin | None]:
        key = (reference.name, number, program, _sorted(within), element)
        return self._remembered(
            key, lambda: self._looked_up(reference, number, loops, program, within, element, reader)
        )

    def _looked_up(
        self,
        reference: BodyReference,
        number: int,
        loops: tuple[Loop, ...],
        program: Place,
        within: Iterations,
        element: Place,
        reader: Access | StartedCopy | None,
    ) -> tuple[Answer, Origin | None]:
        index = _ints(element)
        for here, iterations, store, chance in self._backwards(reference, number, loops, program, within):
            if store is None:
                return self._found(reference, here, element, reader, within, program)
            hit, conditions = self._hits(store, index, here, iterations)
            if hit is False:
                continue
            if not isinstance(hit, tuple):
                origin = None if self.unwritten or conditions is None else self._by_chance(conditions, here, iterations)
                return (None if origin is None else True), origin
            if chance is not None:
                return True, chance
            given = self._given(store, hit, here, iterations)
            if adds_to(store) and (self.unwritten or given[0] is False):
                continue
            return given
        raise AssertionError("a way back ends at what was found")

    def _hits(
        self, store: Access | StartedCopy, index: Index, program: Place, within: Iterations
    ) -> tuple[Place | Literal[False] | None, list[Term] | None]:
        """The element of its view that a store writes at a place of the reference; False where it writes none there.

        None where that is not known, with the conditions on which it rests; None for these where no terms say them.
        """
        found = inside(store.view if isinstance(store, Access) else store.target, index)
        if found is None:
            return None, None
        conditions = [*store.spot.path, *found[0]]
        hit = self._all(conditions, program, within)
        if hit is False:
            return False, None
        place = tuple(self._number(term, program, within) for term in found[1])
        known = tuple(n for n in place if n is not None)
        if hit is None or len(known) < len(place):
            return None, conditions
        mask = getattr(store, "mask", None)
        if mask is not None:
            try:
                hit = self._holds(mask.number(_ints(known)), program, within)
            except Lost:
                hit = None
        return (known, None) if hit else (False if hit is False else None, conditions)

    def _found(
        self,
        reference: BodyReference,
        program: Place,
        element: Place,
        reader: Access | StartedCopy | None,
        within: Iterations,
        asker: Place,
    ) -> tuple[Answer, Origin | None]:
        """The initial contents of an element."""
        origin = Origin(reader, reference, program, element, _sorted(within), asker)
        if self.unwritten:
            return (False, None) if filled_before(self.kernel, reference) else (True, origin)
        operand = operand_of(self.kernel, reference)
        if unfilled(self.kernel, reference):
            first = not any(asker) or not self._shared(reference)
            return (True, origin) if first else (None, None)
        if operand is None or reference.role != "in":
            return False, None
        held = self._holds(padding(operand, _ints(element)), program, {})
        return held, origin if held else None

    def _shared(self, reference: BodyReference) -> bool:
        """Whether an input has the buffer of an output, into which programs before may have stored."""
        inputs = self.kernel.inputs
        return any(a >= 0 and inputs[a].name == reference.name for a, _ in self.kernel.aliases)

    def _given(
        self, store: Access | StartedCopy, index: Place, program: Place, within: Iterations
    ) -> tuple[Answer, Origin | None]:
        if self.unwritten:
            return False, None
        if is_remote(store):
            # it comes from another device
            return None, None
        if isinstance(store, StartedCopy):
            return self._taken(store, index, program, within)
        return self._undefined(store.value, index, program, within)

    def _taken(
        self, copy: StartedCopy, index: Place, program: Place, within: Iterations
    ) -> tuple[Answer, Origin | None]:
        """Whether an element that a copy reads is undefined."""
        at = places(copy.source, _ints(index))
        found = tuple(self._number(term, program, within) for term in at or ())
        if at is None or any(n is None for n in found):
            return None, None
        element = tuple(int(n) for n in found if n is not None)
        return self._state(copy.source.reference, copy.spot.number, copy.spot.loops, program, within, element, copy)

    def _undefined(self, value: Any, index: Place, program: Place, within: Iterations) -> tuple[Answer, Origin | None]:
        condition = value.undefined(_ints(index))
        return self._search(condition, program, within)

    def _backwards(
        self, reference: BodyReference, number: int, loops: tuple[Loop, ...], program: Place, within: Iterations
    ) -> Iterator[tuple[Place, Iterations, Access | StartedCopy | None, Origin | None]]:
        """Every store to a reference before a point, the last first, then what is found: no store.

        Each with where something undefined comes from that says whether the loop around it runs so often.
        """
        stores = self._stores.get(reference.name, [])
        fresh = reference.fresh_in if reference.role == "fresh" else None
        for at, s, chance in self._region(stores, number, loops, program, within, fresh):
            yield program, at, s, chance
        if fresh is None and stores and not self.own:
            operand = operand_of(self.kernel, reference)
            here: Place | None = program
            while here is not None:
                before = self._previous(here)
                if before is None:
                    break
                if operand is not None and not self._same_block(operand, before, here):
                    break
                here = before
                for at, s, chance in self._full(stores, 0, 0, len(self.body.effects), here, {}):
                    yield here, at, s, chance
            program = here if here is not None else program
        yield program, within, None, None

    def _region(
        self,
        stores: Sequence[Access | StartedCopy],
        number: int,
        loops: tuple[Loop, ...],
        program: Place,
        within: Iterations,
        fresh: tuple[Loop, ...] | None,
    ) -> Iterator[tuple[Iterations, Access | StartedCopy, Origin | None]]:
        """The stores of this program before a point, the last first."""
        start = self._first[loops[-1].name] if loops else 0
        yield from self._full(stores, len(loops), start, number, program, within)
        if not loops or (fresh is not None and len(fresh) >= len(loops)):
            return
        loop = loops[-1]
        outer = {k: v for k, v in within.items() if k != loop.name}
        if any(loop in s.spot.loops for s in stores):
            for t in range(within[loop.name] - 1, -1, -1):
                yield from self._full(stores, len(loops), start, self._end[loop.name], program, {**outer, loop.name: t})
        yield from self._region(stores, start, loops[:-1], program, outer, fresh)

    def _full(
        self,
        stores: Sequence[Access | StartedCopy],
        depth: int,
        start: int,
        end: int,
        program: Place,
        within: Iterations,
    ) -> Iterator[tuple[Iterations, Access | StartedCopy, Origin | None]]:
        """The stores from effect `start` to `end` inside `depth` loops, the last first."""
        chosen = [s for s in stores if start <= s.spot.number < end]
        while chosen:
            last = chosen[-1]
            if len(last.spot.loops) <= depth:
                yield within, chosen.pop(), None
                continue
            loop = last.spot.loops[depth]
            group = [s for s in chosen if len(s.spot.loops) > depth and s.spot.loops[depth] is loop]
            chosen = [s for s in chosen if s not in group]
            count = None if loop.count is None else self._number(loop.count, program, within)
            if count is None:
                yield from self._by_chance_in(loop, group, depth, end, program, within)
                raise BudgetExceeded(problems.LOOP_END())
            for t in range(count - 1, -1, -1):
                self._step()
                yield from self._full(group, depth + 1, 0, end, program, {**within, loop.name: t})

    def _by_chance_in(
        self,
        loop: Loop,
        group: Sequence[Access | StartedCopy],
        depth: int,
        end: int,
        program: Place,
        within: Iterations,
    ) -> Iterator[tuple[Iterations, Access | StartedCopy, Origin]]:
        """The stores of a loop of which something undefined says whether it runs at all, in its first iterations."""
        for t in range(0 if self.unwritten else 1 if loop.count is None else MOST_BY_CHANCE):
            here = {**within, loop.name: t}
            origin = self._by_chance([self._runs(loop, t)], program, here)
            if origin is None:
                return
            for at, store, chance in self._full(group, depth + 1, 0, end, program, here):
                yield at, store, chance or origin

    def _runs(self, loop: Loop, t: int) -> Term:
        """The condition that a loop has an iteration `t`, where it had those before."""
        if loop.count is None:
            return self.body.goes_on.get(loop.name, Term("maybe"))
        return Term("<", _int(t), loop.count)

    def _previous(self, program: Place) -> Place | None:
        """The program that ran before on the same core."""
        parallel = set(self.kernel.parallel()) if self.alone else set()
        found = list(program)
        for k in reversed(range(len(found))):
            if k in parallel:
                continue
            if found[k] > 0:
                found[k] -= 1
                return tuple(found)
            found[k] = int(INTS.size(self.kernel.grid[k])) - 1
        return None

    def _same_block(self, operand: Operand, one: Place, other: Place) -> bool:
        for term in operand.index:
            a, b = self._number(term, one, {}), self._number(term, other, {})
            if a is None or b is None:
                raise BudgetExceeded(problems.BLOCK_UNKNOWN())
            if a != b:
                return False
        return True

    # conditions

    def _step(self) -> None:
        self.steps += 1
        if self.steps > self._limit:
            self.over = True
            raise BudgetExceeded(problems.REPLAY_LENGTH())

    def _all(self, conditions: Sequence[Term], program: Place, within: Iterations) -> Answer:
        answer: Answer = True
        for condition in conditions:
            held = self._holds(condition, program, within)
            if held is False:
                return False
            answer = None if held is None else answer
        return answer

    def _holds(self, condition: Term, program: Place, within: Iterations) -> Answer:
        value = self._value(condition, program, within, {}, {})[0]
        return None if value is None else bool(value)

    def _number(self, term: Term, program: Place, within: Iterations) -> int | None:
        value = self._value(term, program, within, {}, {})[0]
        return None if value is None else int(value)

    def _by_chance(self, conditions: Sequence[Term], program: Place, within: Iterations) -> Origin | None:
        """Where something undefined comes from that alone says whether all of some conditions hold; None elsewhere."""
        found = None
        for condition in conditions:
            held = self._holds(condition, program, within)
            if held is None:
                origin = self._compared(condition, program, within)
                if origin is None:
                    return None
                found = found or origin
            elif not held:
                return None
        return found

    def _compared(self, condition: Term, program: Place, within: Iterations) -> Origin | None:
        """Where the one number comes from that a comparison rests on and nothing says, if it is undefined."""
        comparison = inlined(self.body.definitions, condition.args[0] if condition.op == "not" else condition)
        parts = every(comparison) if comparison.op in ("<", "<=", "==", "!=") else []
        if any(part.op in ("select", "maybe", "leaf") for part in parts):
            return None
        open_ = [part for part in parts if part.op == "name" and part.args[0] in self.body.unknowns]
        open_ += [part for part in parts if part.op == "read"]
        doubt = doubt_of(self.body, open_[0]) if len(open_) == 1 else None
        if doubt is None or not self._either(comparison, open_[0], program, within):
            return None
        undefined, origin = self._search(doubt, program, within)
        return origin if undefined else None

    def _either(self, comparison: Term, number: Term, program: Place, within: Iterations) -> bool:
        """Whether a comparison holds for one value of a number and not for another, of some that are tried."""
        name = str(number.args[0]) if number.op == "name" else ""
        unknown = self.body.unknowns.get(name)
        tried = {-INT32, 0, INT32 - 1} if unknown is None else {unknown.low, unknown.high - 1}
        told = [
            self._value(comparison, program, within, {name: value} if name else {}, {number: (value, None)})[0]
            for value in sorted(tried)
        ]
        # an open condition is kept
        return None in told or len(set(map(bool, told))) > 1

    def _search(
        self, condition: Term, program: Place, within: Iterations, bound: Mapping[str, int] | None = None
    ) -> tuple[Answer, Origin | None]:
        """Whether a condition holds for some values of the names for "some k" in it."""
        bound = bound or {}
        if condition.op == "or":
            answer: Answer = False
            for part in condition.args:
                if self.steps >= self._limit:
                    # each of a thousand ways would find that out by itself
                    self._step()
                held, origin = self._apart(lambda part=part: self._search(part, program, within, bound))  # type: ignore[misc]
                if held:
                    return True, origin
                answer = None if held is None else answer
            return answer, None
        free = self._free(condition, bound)
        if not free:
            value, origin = self._value(condition, program, within, bound, {})
            return (None if value is None else bool(value)), origin
        if condition.op == "and":
            return self._search_all(condition, program, within, bound)
        name = free[0]
        unsure = False
        for k in _tried(self.body.witnesses[name], self.likely):
            self._step()
            held, origin = self._apart(
                lambda k=k: self._search(condition, program, within, {**bound, name: k})  # type: ignore[misc]
            )
            if held:
                return True, origin
            unsure = unsure or held is None
        return (None if unsure else False), None

    def _search_all(
        self, condition: Term, program: Place, within: Iterations, bound: Mapping[str, int]
    ) -> tuple[Answer, Origin | None]:
        parts = conjuncts(condition)
        free = {part: self._free(part, bound) for part in parts}
        answer: Answer = True
        origin = None
        rest = []
        for part in parts:
            if free[part]:
                rest.append(part)
                continue
            held, found = self._search(part, program, within, bound)
            if held is False:
                return False, None
            answer = None if held is None else answer
            origin = origin or found
        while rest:
            # parts that share a name are searched together
            group, names = [rest[0]], set(free[rest[0]])
            while True:
                more = [p for p in rest if p not in group and names & set(free[p])]
                if not more:
                    break
                group += more
                names |= {n for p in more for n in free[p]}
            rest = [p for p in rest if p not in group]
            held, found = self._search_group(group, sorted(names), program, within, bound)
            if held is False:
                return False, None
            answer = None if held is None else answer
            origin = origin or found
        return answer, origin if answer else None

    def _search_group(
        self, group: list[Term], names: list[str], program: Place, within: Iterations, bound: Mapping[str, int]
    ) -> tuple[Answer, Origin | None]:
        if len(group) == 1 and group[0].op != "and":
            return self._search(group[0], program, within, bound)
        unsure = False
        for k in _tried(self.body.witnesses[names[0]], self.likely):
            self._step()
            held, origin = self._apart(
                lambda k=k: self._search(all_of(group), program, within, {**bound, names[0]: k})  # type: ignore[misc]
            )
            if held:
                return True, origin
            unsure = unsure or held is None
        return (None if unsure else False), None

    def _free(self, condition: Term, bound: Mapping[str, int]) -> list[str]:
        found = self._some.get(condition)
        if found is None:
            named = (part.args[0] for part in every(condition) if part.op == "name")
            found = self._some[condition] = tuple(dict.fromkeys(n for n in named if n in self.body.witnesses))
        return [name for name in found if name not in bound]

    def _value(
        self,
        term: Term,
        program: Place,
        within: Iterations,
        bound: Mapping[str, int],
        known: dict[Term, tuple[Any, Origin | None]],
    ) -> tuple[Any, Origin | None]:
        """A number or truth value, None where it is not known, and where something undefined comes from."""
        if term in known:
            return known[term]
        self._step()
        op, origin = term.op, None
        value: Any = None
        if op == "int":
            value = term.args[0]
        elif op == "name":
            value = self._named(term.args[0], program, within, bound)
        elif op == "maybe":
            value = None
        elif op in ("and", "or"):
            ends = op == "or"
            value = not ends
            for part in term.args:
                if ends:
                    one, found = self._apart(lambda part=part: self._value(part, program, within, bound, known))  # type: ignore[misc]
                else:
                    one, found = self._value(part, program, within, bound, known)
                if one is not None and bool(one) is ends:
                    value, origin = ends, found or origin
                    break
                value = None if one is None or value is None else value
                origin = origin or found
        elif op == "select":
            condition, _ = self._value(term.args[0], program, within, bound, known)
            if condition is not None:
                value, origin = self._value(term.args[1 if condition else 2], program, within, bound, known)
        else:
            values = []
            for part in term.args[op in ("leaf", "read") :]:
                one, found = self._value(part, program, within, bound, known)
                values.append(one)
                origin = origin or found
            if all(v is not None for v in values):
                if op == "leaf":
                    value, origin = self._leaf(str(term.args[0]), tuple(map(int, values)), program, within)
                elif op == "read":
                    name, at = str(term.args[0].args[0]), tuple(map(int, values))
                    value = self._loaded(name, at, program, within)
                    value = self.tables(name, at) if value is None else value
                elif not (op in ("//", "%") and values[1] == 0):
                    value = apply(op, INTS, values)
        known[term] = value, origin
        return value, origin

    def _named(self, name: str, program: Place, within: Iterations, bound: Mapping[str, int]) -> int | None:
        if name in bound:
            return bound[name]
        if name in within:
            return within[name]
        if name in self.kernel.grid_names:
            return program[self.kernel.grid_names.index(name)]
        if name in self.body.definitions:
            return self._value(self.body.definitions[name], program, within, bound, {})[0]  # type: ignore[no-any-return]
        return None

    def _loaded(self, name: str, index: Place, program: Place, within: Iterations) -> int | None:
        """The number that a load of memory gives that the body stores to, as the last store before it left it.

        None if unknown, and of what is read of a table.
        """
        load = loads_of(self.body).get(name)
        if load is None or any(loop.name not in within for loop in load.spot.loops):
            return None
        reference = load.view.reference
        # of what is given the tables know what is there
        if reference.name not in self._stores:
            return None
        here = {loop.name: within[loop.name] for loop in load.spot.loops}
        key = (name, index, program, _sorted(here))
        if key not in self._numbers:
            self._numbers[key] = None
            at = places(load.view, _ints(index) if load.view.dims else ())
            element = tuple(self._number(term, program, here) for term in at or ())
            if at is not None and None not in element:
                self._numbers[key] = self._last_number(load, _ints(n for n in element if n is not None), program, here)
        return self._numbers[key]

    def _last_number(self, load: Access, index: Index, program: Place, within: Iterations) -> int | None:
        """The number that the last store before a load has left at a place of the reference."""
        spot = load.spot
        ways = self._backwards(load.view.reference, spot.number, spot.loops, program, within)
        for here, iterations, store, chance in ways:
            if store is None or chance is not None:
                return None
            hit, _ = self._hits(store, index, here, iterations)
            if hit is False:
                continue
            if not isinstance(hit, tuple) or not isinstance(store, Access) or store.kind != "write":
                return None
            try:
                return self._number(store.value.number(_ints(hit)), here, iterations)
            except Lost:
                return None
        return None

    def _leaf(self, source: str, index: Place, program: Place, within: Iterations) -> tuple[Answer, Origin | None]:
        carried = self.body.carried.get(source)
        if carried is not None:
            loop = carried.loop
            if carried.final:
                count = None if loop.count is None else self._number(loop.count, program, within)
                if count is None:
                    return None, None
                outer, t = dict(within), count
            elif loop.name not in within:
                return None, None
            else:
                outer, t = {k: v for k, v in within.items() if k != loop.name}, within[loop.name]
            if t == 0:
                return self._undefined(carried.start, index, program, outer)
            key = (source, "carried", program, _sorted(outer), t, index)
            return self._remembered(
                key, lambda: self._undefined(carried.next, index, program, {**outer, loop.name: t - 1})
            )
        masked = source.startswith(LEFT_OUT)
        if masked and self.unwritten:
            return False, None
        effect = loads_of(self.body)[source.removeprefix(LEFT_OUT)]
        if any(loop.name not in within for loop in effect.spot.loops):
            # asked from outside of a loop, without an iteration
            return None, None
        if self.only >= 0 and effect.spot.number != self.only:
            return False, None
        at = places(effect.view, _ints(index))
        element: Index = at or ()
        ints = tuple(self._number(term, program, within) for term in element)
        if at is None or any(n is None for n in ints):
            return None, None
        reference = effect.view.reference
        place = tuple(int(n) for n in ints if n is not None)
        kept = {loop.name: within[loop.name] for loop in effect.spot.loops}
        if masked:
            # what a mask leaves out is mostly not there
            return True, Origin(effect, reference, program, place, _sorted(kept), program, masked=True)
        if any(not 0 <= n < extent for n, extent in zip(place, reference.dims, strict=True)):
            return None, None
        return self._state(reference, effect.spot.number, effect.spot.loops, program, kept, place, effect)


def _sorted(within: Iterations) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(within.items()))


@lru_cache(maxsize=4096)
def _int(number: int) -> Term:
    # one term per number: values remember what they said of an index by the identity of its terms
    return Term("int", number)


def _ints(numbers: Iterable[int]) -> Index:
    return tuple(map(_int, numbers))


def _tried(extent: int, likely: int) -> Iterator[int]:
    """Every k, the likely one first, then the last: that is where padding is."""
    if 0 <= likely < extent - 1:
        yield likely
    if extent:
        yield extent - 1
        yield from (k for k in range(extent - 1) if k != likely)
