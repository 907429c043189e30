"""Nothing is read of scratch, of an output's window or of fresh memory before it was written there.

Why it matters: such memory holds what was left in it. An accumulator that is zeroed at the wrong step, along the wrong
axis or never starts from garbage; interpret mode fills new memory with NaN or with zeros, and keeps it.
Refuted by: the smallest `program` (and `iteration`) that reads an `element` of the reference which nothing wrote
before: in this program or in an earlier one of the same run. A run is, for a window of an output, the consecutive
programs that have the same block; for scratch, all that one core runs: of a parallel dimension, whatever part it was
given, so that what is carried over such a dimension counts as not written; for `run_scoped`, one call of it. The window
of an output that shares its buffer with an input is not filled from it. Asked for each load; elements that a mask drops
before anything is stored of them are fine, and so are those of a window that go back to their own place until something
is stored there, if that happens before the window goes out (`out = where(mine, new, out)`, grouped rows). A copy counts
as written when it starts; `dma_order` asks if it is done.
Not asked of the buffers of `emit_pipeline`, which fills and empties them itself; asked of what its body sees of them.
Example: `acc += x` with acc zeroed under `program_id(0) == 0`, and the sum over program_id(1): program (1, 0) adds to
what (0, 1) left, which another core has.
Source: JAX's pages on grids and pipelining; `interpret_pallas_call.py` (jax 0.10.2) for what interpreters hide.
Fix: store it first, under `pl.when(pl.program_id(axis) == 0)` for the axis that the run goes along.
Incident: regions that were never written were read as numbers: https://github.com/pytorch/helion/issues/2839
Limits: The primitives that are modelled: docs/primitives.md. Memory that another kernel left is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from layoutproof.bodies.barriers import ends_in_its_segment, odd, segment
from layoutproof.bodies.claims import BodyClaim, not_modelled
from layoutproof.bodies.devices import has_devices
from layoutproof.bodies.effects import (
    Access,
    Body,
    BodyReference,
    Effect,
    Index,
    Spot,
    StartedCopy,
    View,
    adds_to,
    loads_of,
    places,
    writes_to,
)
from layoutproof.bodies.in_flight import filled, walked, walked_alike
from layoutproof.bodies.memory_state import States, conditions_of, inside
from layoutproof.bodies.order import operand_of
from layoutproof.bodies.recurrence import difference
from layoutproof.bodies.stored import Visit, stores_into, unstored
from layoutproof.bodies.terms import inlined, names_in
from layoutproof.bodies.touched import sizes_of
from layoutproof.bodies.values import Lost
from layoutproof.bodies.walk import Answer, BodyWalk, Origin
from layoutproof.core.errors import Undecided
from layoutproof.core.folding import TRUE, all_of, any_of, negation
from layoutproof.core.message import Template, message_of, restated
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Counterexample, Point, Verdict
from layoutproof.core.space import Space
from layoutproof.core.term import ZERO, Term
from layoutproof.kernel.fixes import LEFT, KernelFix, in_order
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Due, Obligation, Settled, by_rule, undecided
from layoutproof.pallas import problems
from layoutproof.pallas.body_fixes import first_of, guarded, longer, where_stored, zeroed
from layoutproof.pallas.body_memory import (
    Ask,
    Deciding,
    Place,
    Tables,
    corners,
    entries_needed,
    loading,
    named,
    none_left,
    places_to_try,
    program_ids,
    replayed,
    storing,
    tables_at,
    unbounded,
    why_unknown,
)
from layoutproof.pallas.device_problems import read_of_devices, written_on_devices
from layoutproof.pallas.thread_problems import reads_of_threads

FIX_HAPPEN = Template(
    "pallas.initialised_fix_happen",
    "let the store into {reference}{lines} happen under pl.when({condition}), and not under {said}",
)
SUBCORES = Template(
    "pallas.initialised_subcores", "reads element {element} of {name}, which no subcore of the core has written"
)
OTHER_SUBCORES = Template(
    "pallas.initialised_other_subcores",
    "what other subcores have written before the barriers is not known to be all of it",
)
WHETHER = Template("pallas.initialised_whether", "whether {name} is written before it is read: {why}")
VIEW = Template("pallas.initialised_view", "a view of {reference} in another element type")
NO_REPLAY = Template(
    "pallas.initialised_no_replay", "it is not at first, and no replay shows that anything is stored of it"
)
NOT_ALL = Template("pallas.initialised_not_all", "it is not all written, and a copy may take more than is used")
UNWRITTEN = Template("pallas.initialised_unwritten", "the body reads {shown}, which nothing has written {since}")
LOOK_AT_INPUT = Template("pallas.initialised_look_at_input", "look at what reads {name}: the values are in the input")
LOOK_AT_COPIES = Template(
    "pallas.initialised_look_at_copies", "look at the {parts}, {element} is not; at its slot, its rows, or its program"
)
LOOK_AT_STORES = Template(
    "pallas.initialised_look_at_stores",
    "look at the stores into {name}{lines}: none of them has filled {element} by then",
)
LOOK_AT_NOTHING = Template(
    "pallas.initialised_look_at_nothing", "look at where {name} is to be filled: nothing stores into it"
)


TARGET = False
BODY = True
SETTLED_BY = "write all of it before the read, in the same program and under no other condition"
PIPELINES = True
MOST_LINES = 6
"""Lines that a hint names."""
MOST_OPEN = 4
"""Loads of one line that are asked about after one whose answer is open: only a refutation would change that."""


def obligations(kernel: Kernel) -> tuple[Due, ...]:
    """One per line and reference that loads, or copies, memory that is not given.

    The copies of an unrolled loop are one question, and its answer is the worst of theirs.
    """
    body: Body | None = kernel.body
    if body is None:
        return ()
    if kernel.by_events:
        return reads_of_threads(kernel)
    deciding = Deciding()
    states = States(kernel, body, deciding.proves, deciding.holds, unwritten=True)

    copying = bool(kernel.subcores) and any(isinstance(effect, StartedCopy) for effect in body.effects)

    @cache
    def walks() -> bool:
        with suppress(Undecided, ArithmeticError):
            return walked(kernel)[0].whole
        return False

    def of(load: Access | StartedCopy, worst: Verdict) -> Obligation:
        sent = read_of_devices(kernel, _read(load).reference, load.spot)
        if sent is not None:
            return sent
        if _stored_around(body, load):
            return Obligation(_read(load).reference.name, by_rule(""), source=load.spot.source)
        shared, written = _read(load).reference.memory == "vmem_shared", by_rule("", "walk")
        if copying and not shared and walks() and _writes_before(kernel, body, load):
            # subcores are few, and mostly walked for `dma_order` too: what copies bring is known there
            return Obligation(_read(load).reference.name, written, source=load.spot.source)
        try:
            if shared:
                one = _of_core(kernel, body, states, deciding, load)
            else:
                one = _load(kernel, body, states, deciding, load, worst is Verdict.PROVED)
        except (Undecided, RecursionError) as reason:
            one = _open(load, message_of(reason))
        if _verdict(one) is not Verdict.PROVED and _read(load).reference.name in body.beyond:
            return _open(load, "something that is not modelled may write it")
        if _verdict(one) is Verdict.UNKNOWN and not shared:
            read = _read(load).reference
            if _writes_before(kernel, body, load) or written_on_devices(kernel, read, load.spot):
                return replace(one, claim=written)
        return one

    def of_line(loads: Sequence[Access | StartedCopy]) -> Obligation:
        # the first and the last of what is unrolled differ most from what is usual
        found, opened = of(loads[0], Verdict.PROVED), 0
        for load in (*loads[:0:-1][:1], *loads[1:-1]):
            opened += _verdict(found) is Verdict.UNKNOWN
            if _verdict(found) is Verdict.REFUTED or opened > MOST_OPEN:
                break
            found = min(found, of(load, _verdict(found)), key=_verdict)
        return found

    lines: dict[tuple[object, str], list[Access | StartedCopy]] = {}
    for effect in (each for one in body.effects for each in _reading(one)):
        reference = _read(effect).reference
        if reference.role in ("out", "scratch", "fresh") and not reference.pipeline:
            lines.setdefault((effect.spot.source or effect.spot.number, reference.name), []).append(effect)
    found: list[Due] = [partial(of_line, loads) for loads in lines.values()]
    if not found:
        found.append(Obligation(kernel.name, by_rule(""), source=kernel.source))
    return (*found, *not_modelled(kernel, body))


def _stored_around(body: Body, load: Access | StartedCopy) -> bool:
    """Whether a store to all of it comes before, in the same turns of all loops around it, wherever the load does."""
    for effect in body.effects[: load.spot.number]:
        if not isinstance(effect, Access) or effect.kind != "write" or effect.mask is not None or effect.queue:
            continue
        all_of_it = effect.view.reference == _read(load).reference and not effect.view.steps
        if all_of_it and effect.spot.happens_with(load.spot):
            return True
    return False


def _reading(effect: Effect) -> Iterator[Access | StartedCopy]:
    """The reads of an effect, as loads and copies: of a copy that adds its target, too."""
    if isinstance(effect, StartedCopy) or (isinstance(effect, Access) and effect.kind != "write"):
        yield effect
    if isinstance(effect, StartedCopy) and effect.adds:
        yield Access("read", effect.target, effect.spot)


def _of_core(kernel: Kernel, body: Body, states: States, deciding: Deciding, load: Access | StartedCopy) -> Obligation:
    """Of memory that the subcores of a core share: that its program, or others before a barrier, have written it."""
    view = _read(load)
    name = view.reference.name
    claim = reads_unwritten(states, load)
    if claim is not None and claim[1]:
        return Obligation(name, Settled(Verdict.PROVED, by=deciding.names()), source=load.spot.source)
    space = Space(tuple(f"element{k}" for k in range(len(view.reference.dims))), view.reference.dims)
    index = tuple(Term("name", n) for n in space.names)
    found, listed = inside(view, index), False
    if found is None:
        # of what a list places any part may be read, and perhaps not all
        steps = view.steps
        cut = next((k for k, step in enumerate(steps) if step.kind == "gather"), len(steps))
        found, listed = inside(View(view.reference, steps[:cut]), index), True
    if found is None:
        return _open(load, "which elements of it are read is not known")
    visit = Visit(space, True, all_of([*load.spot.path, *found[0]]), agree=kernel.grid_names[:1])
    ends = {e.spot.number: ends_in_its_segment(body, e) for e in body.effects if isinstance(e, StartedCopy)}
    here = segment(body, load.spot)
    before, every = [], []
    for effect in body.effects:
        stored = writes_to(effect)
        if stored is None or stored.reference is not view.reference or adds_to(effect):
            continue
        (store,) = stores_into(replace(body, effects=(effect,)), [name], index)
        every.append(store)
        common = [one for one, other in zip(effect.spot.loops, load.spot.loops, strict=False) if one is other]
        # in the same iteration of loops that all programs run equally often
        even = all(loop.count is not None and loop.count.op == "int" for loop in common)
        ahead = difference(here, segment(body, effect.spot))
        if even and ahead is not None and ahead > 0 and not odd(body) and ends.get(effect.spot.number, True):
            before.append(store)

    def explain(at: Point, on: Numbers) -> str:
        return SUBCORES(list(at["element"]), name)

    sure = unstored(kernel, body, visit, before, True, explain)
    if not sure.lost and deciding.proves(sure):
        return Obligation(name, Settled(Verdict.PROVED, by=deciding.names()), source=load.spot.source)
    open_ = _open(load, OTHER_SUBCORES())
    if listed:
        return open_
    can = unstored(kernel, body, visit, every, False, explain)
    return replace(open_, graver=(Obligation(name, can.claim, reads=bool(can.tables), source=load.spot.source),))


def _writes_before(kernel: Kernel, body: Body, load: Access | StartedCopy) -> bool:
    """Whether every program has, or those before it have, written all of the scratch that it loads, as a walk shows."""
    reference = _read(load).reference
    known = any(one is reference for one in filled(body))
    if reference.role != "scratch" or not known or has_devices(kernel):
        return False
    alike, stands_for_all = walked_alike(kernel)
    if stands_for_all and load.spot.number not in alike.unwritten:
        return True
    if any(type(extent) is not int for extent in kernel.grid):
        return False
    with suppress(Undecided, ArithmeticError):
        walk, _ = walked(kernel)
        return walk.whole and load.spot.number not in walk.unwritten
    return False


def _verdict(settled: Obligation) -> Verdict:
    return settled.claim.verdict if isinstance(settled.claim, Settled) else Verdict.UNKNOWN


def _read(load: Access | StartedCopy) -> View:
    """The view that a load or a copy reads."""
    return load.view if isinstance(load, Access) else load.source


def _open(load: Access | StartedCopy, why: str) -> Obligation:
    name = _read(load).reference.name
    return Obligation(name, undecided(WHETHER(name, why)), source=load.spot.source)


def reads_unwritten(states: States, load: Access | StartedCopy) -> tuple[BodyClaim | None, bool] | None:
    """Whether no load or copy ever reads what nothing has written: (the claim, proved); None for a view of other words.

    states: those that ask what is not written.
    """
    sizes = sizes_of(_read(load))
    index = tuple(Term("name", f"at{k}") for k in range(len(sizes)))
    there = [Term("<", k, size) for k, (size, _) in zip(index, sizes, strict=True) if size.op != "int"]
    elements = {f"at{k}": most for k, (_, most) in enumerate(sizes)}

    def part(count: int) -> Term:
        elements[f"part{len(elements)}"] = count
        return Term("name", list(elements)[-1])

    at = places(_read(load), index, part)
    if at is None:
        return None
    # a place outside is no element that could be written, and `body_in_bounds` asks about it
    for place, extent in zip(at, _read(load).reference.dims, strict=True):
        if any(name in states.body.unknowns for name in names_in(inlined(states.body.definitions, place))):
            there += [Term("<=", ZERO, place), Term("<", place, Term("int", extent))]
    return states.impossible(lambda: [*there, *_unwritten(states, load, at, index)], elements)


def _load(
    kernel: Kernel, body: Body, states: States, deciding: Deciding, load: Access | StartedCopy, thorough: bool
) -> Obligation:
    """thorough: whether it is asked if what is unwritten is used; where a replay shows that it is, it is refuted."""
    reference = _read(load).reference
    asked = reads_unwritten(states, load)
    if asked is None:
        return _open(load, VIEW(reference.name))
    claim, proved = asked
    kept = isinstance(load, Access) and load.kind == "read"
    if not proved and isinstance(load, Access) and kept:
        proved = thorough and _unused(kernel, body, deciding, load)
    if proved:
        return Obligation(reference.name, Settled(Verdict.PROVED, by=deciding.names()), source=load.spot.source)
    point = deciding.last.point if claim is not None and not claim.lost and deciding.last is not None else None
    if claim is None or (point is not None and "sizes" in point):
        return _open(load, why_unknown(states, claim, None))
    tables = tables_at(kernel, claim, point)
    walks = [BodyWalk(kernel, body, tables, unwritten=True, alone=alone) for alone in (False, True)]
    for walk in walks:
        for program, within, element in _tries(kernel, load, claim, point):
            loads = loading(load, program, within, element)
            origin = replayed(loads, [walk])
            if origin is None:
                continue
            shown = _Replay(loads, partial(BodyWalk, kernel, body, unwritten=True, alone=walk.alone), tables)
            if isinstance(load, Access) and kept:
                use = _use(kernel, body, load, walk, program, shown)
                if use is None:
                    return _open(load, NO_REPLAY())
                shown = _of_one_run(shown, use)
                origin = shown.origin() or origin
            if isinstance(load, StartedCopy) and not _handed_out(kernel, load):
                return _open(load, NOT_ALL())
            needed = entries_needed(shown.ask, shown.walk, shown.tables)
            open_ = unbounded(kernel, claim)
            if open_ and needed:
                return _open(load, problems.NOTHING_ASSUMED(" and ".join(open_)))
            return _refuted(kernel, load, origin, walk.alone, deciding, needed)
    return _open(load, why_unknown(states, claim, None))


def _tries(
    kernel: Kernel, load: Access | StartedCopy, claim: BodyClaim, point: Point | None
) -> Iterator[tuple[Place, Mapping[str, int], Place]]:
    """Programs, iterations and elements at which a load may read what was never written: the claim's, then corners."""
    dims = tuple(most for _, most in sizes_of(_read(load)))
    first = {loop.name: 0 for loop in load.spot.loops}
    if point is not None:
        where = named(claim, point)
        within = {name: where.get(name, 0) for name in first}
        yield tuple(point["program"]), within, tuple(where.get(f"at{k}", 0) for k in range(len(dims)))
    if not any(isinstance(e, StartedCopy) for e in kernel.body.effects):
        yield from ((program, first, element) for program, element in places_to_try(kernel, dims))


def _unwritten(states: States, load: Access | StartedCopy, at: Index, index: Index) -> list[Term]:
    """The conditions that a load happens, and that nothing was written where it reads."""
    parts: list[Term] = [*load.spot.path]
    if load.mask is not None:
        try:
            parts.append(load.mask.number(index))
        except Lost:
            parts.append(TRUE)
    return [*parts, states.unwritten_at(load, at)]


def _handed_out(kernel: Kernel, copy: StartedCopy) -> bool:
    """Whether a copy goes to an output that has nothing else to keep there; other copies may take more than is used."""
    target = copy.target.reference
    outputs = [kernel.outputs[b] for _, b in kernel.aliases]
    return target.role == "out" and all(kernel.operands[target.position] is not o for o in outputs)


def _unused(kernel: Kernel, body: Body, deciding: Deciding, load: Access) -> bool:
    """Whether nothing that is unwritten where a load reads is used."""
    return _dropped(kernel, body, deciding, load) or _replaced(kernel, body, deciding, load.view.reference)


def _dropped(kernel: Kernel, body: Body, deciding: Deciding, load: Access) -> bool:
    """Whether no store stores anything that is made of an unwritten element of a load."""
    states = States(kernel, body, deciding.holds, deciding.holds, unwritten=True, only=load.spot.number)
    return _confined(body, states, _stores(body))


def _confined(body: Body, states: States, stores: Sequence[Access]) -> bool:
    """Whether nothing that is unwritten is stored by some stores, nor decides whether and where something happens."""
    # conditions and places use values, too
    seen = ((e.spot, e.view if isinstance(e, Access) else None) for e in body.effects)
    used = dict.fromkeys(term for spot, view in seen for term in conditions_of(spot, view))
    for doubt in states.doubts(used):
        if not states.impossible(lambda doubt=doubt: [states.resolved(doubt)], {})[1]:  # type: ignore[misc]
            return False
    for store in stores:
        dims = store.view.dims
        if dims is None:
            return False
        index = tuple(Term("name", f"at{k}") for k in range(len(dims)))

        def conditions(store: Access = store, index: Index = index) -> Sequence[Term]:
            parts: list[Term] = [*store.spot.path, states.resolved(store.value.undefined(index))]
            if store.mask is not None:
                with suppress(Lost):
                    parts.append(store.mask.number(index))
            return parts

        _, proved = states.impossible(conditions, {f"at{k}": n for k, n in enumerate(dims)})
        if not proved:
            return False
    return True


def _replaced(kernel: Kernel, body: Body, deciding: Deciding, reference: BodyReference) -> bool:
    """Whether unwritten elements of a window only go back into it, and none is left when the window goes out.

    Grouped rows are stored so: `out = where(mine, new, out)`, by one program after the other.
    """
    operand = operand_of(kernel, reference)
    copied = any(
        isinstance(e, StartedCopy) and reference in (e.source.reference, e.target.reference) for e in body.effects
    )
    if reference.role != "out" or operand is None or copied:
        return False
    smt = Deciding(("smt",))
    states = States(kernel, body, smt.proves, smt.proves, stale=reference.name)
    if not none_left(kernel, operand, reference, states):
        return False
    own = [store for store in _stores(body) if store.view.reference is reference]
    if not all(_goes_back(body, states, store) for store in own):
        return False
    if not _confined(body, states, [store for store in _stores(body) if store.view.reference is not reference]):
        return False
    deciding.by.update(smt.by)
    return True


def _goes_back(body: Body, states: States, store: Access) -> bool:
    """Whether a store stores nothing unwritten of its own reference but what was at the same place, as it was."""
    dims = store.view.dims
    if dims is None:
        return False
    index = tuple(Term("name", f"at{k}") for k in range(len(dims)))
    at = places(store.view, index)
    same = []
    for condition, source in store.value.passed(index):
        load = loads_of(body).get(source.args[0])
        if load is not None and load.view.reference is store.view.reference:
            there = places(load.view, source.args[1:])
            if at is not None and there is not None and list(map(str, at)) == list(map(str, there)):
                same.append(condition)

    def conditions() -> Sequence[Term]:
        return [*store.spot.path, states.resolved(store.value.undefined(index)), negation(any_of(same))]

    return states.impossible(conditions, {f"at{k}": n for k, n in enumerate(dims)})[1]


def _stores(body: Body) -> list[Access]:
    return [
        e
        for e in body.effects
        if isinstance(e, Access) and e.kind != "read" and e.value is not None and not e.value.defined
    ]


@dataclass(frozen=True)
class _Replay:
    """What a walk is asked under some tables; it says where the unwritten element is."""

    ask: Ask
    walk: Callable[[Tables], BodyWalk]
    tables: Tables

    def origin(self) -> Origin | None:
        return replayed(self.ask, [self.walk(self.tables)])


def _of_one_run(load: _Replay, use: _Replay) -> _Replay:
    """The load and the use of what it read under the same tables; the use alone where none of both show the load.

    A use under a condition on a table is one for those tables only.
    """

    def both(walk: BodyWalk) -> tuple[Answer, Origin | None]:
        answer, origin = load.ask(walk)
        return (answer, origin) if answer and replayed(use.ask, [walk]) is not None else (None, None)

    for tables in (load.tables, use.tables):
        one = _Replay(both, use.walk, tables)
        if one.origin() is not None:
            return one
    return use


def _use(kernel: Kernel, body: Body, load: Access, walk: BodyWalk, program: Place, shown: _Replay) -> _Replay | None:
    """What shows that something is made of an unwritten element, at the smallest such point; None where nothing does.

    program: one in which the load reads such an element; at corners of what it stores, where that point is none.
    """

    def decides(one: BodyWalk) -> tuple[Answer, Origin | None]:
        return one.decides(load, program)

    if replayed(decides, [walk]) is not None:
        return replace(shown, ask=decides)
    deciding = Deciding()
    states = States(kernel, body, deciding.proves, deciding.holds, unwritten=True, only=load.spot.number)
    for store in _stores(body):
        dims = store.view.dims
        if dims is None:
            continue
        index = tuple(Term("name", f"at{k}") for k in range(len(dims)))
        claim, proved = states.impossible(
            lambda store=store, index=index: [  # type: ignore[misc]
                *store.spot.path,
                states.resolved(store.value.undefined(index)),
            ],
            {f"at{k}": n for k, n in enumerate(dims)},
        )
        point: Any = deciding.last.point if claim is not None and not claim.lost and deciding.last is not None else None
        if proved or claim is None or (point is not None and "sizes" in point):
            continue
        inner = partial(BodyWalk, kernel, body, unwritten=True, alone=walk.alone, only=load.spot.number)
        tables = tables_at(kernel, claim, point)
        first = {loop.name: 0 for loop in store.spot.loops}
        tries = [(program, first, element) for element in corners(dims)]
        if point is not None:
            where = named(claim, point)
            element = tuple(where.get(f"at{k}", 0) for k in range(len(dims)))
            tries.insert(0, (tuple(point["program"]), {name: where.get(name, 0) for name in first}, element))
        for one, within, element in tries:
            use = _Replay(storing(store, one, within, element), inner, tables)
            if use.origin() is not None:
                return use
    return None


def _refuted(
    kernel: Kernel,
    load: Access | StartedCopy,
    origin: Origin,
    alone: bool,
    deciding: Deciding,
    needed: Mapping[str, object],
) -> Obligation:
    reference, spot = _read(load).reference, load.spot
    shown = f"{reference.name}{list(origin.element)}" if origin.element else reference.name
    operand = operand_of(kernel, reference)
    aliased = operand is not None and any(kernel.outputs[b] is operand for _, b in kernel.aliases)
    why = {"out": "in this visit to its block", "fresh": "since it was allocated"}.get(reference.role, "before")
    reason: str = UNWRITTEN(shown, why)
    if alone:
        more = "; another core may have run the programs before, which differ in a parallel dimension"
        reason = restated(f"{reason}{more}", reason)
    if aliased:
        reason = restated(f"{reason}; a window that shares its buffer with an input is not filled from it", reason)
    found: dict[str, Any] = {"program": origin.reader or origin.program, "element": origin.element}
    within = _iteration(spot, origin)
    if within:
        found["iteration"] = within
    found |= needed
    settled = Settled(Verdict.REFUTED, reason, _hint(kernel, load, origin, aliased), deciding.names(), found)

    def fixes(at: Counterexample) -> Iterator[KernelFix]:
        if not aliased:
            yield from _fixes(kernel, load, alone)

    return Obligation(reference.name, settled, source=spot.source, fixes=fixes)


def _iteration(spot: Spot, origin: Origin) -> tuple[int, ...]:
    at = dict(origin.iterations)
    return tuple(at[loop.name] for loop in spot.loops if loop.name in at)


def _hint(kernel: Kernel, load: Access | StartedCopy, origin: Origin, aliased: bool) -> str:
    name = _read(load).reference.name
    if aliased:
        return LOOK_AT_INPUT(name)
    into = [e for e in kernel.body.effects if isinstance(e, StartedCopy) and e.target.reference.name == name]
    if into:
        parts = f"copies into {name}{_lines(into)}: what they fill is not what is read"
        return LOOK_AT_COPIES(parts, list(origin.element))
    stores = [e for e in _writes(kernel.body, name) if e is not load]
    if stores:
        return LOOK_AT_STORES(name, _lines(stores), list(origin.element))
    return LOOK_AT_NOTHING(name)


def _lines(effects: Sequence[Access | StartedCopy]) -> str:
    found = list(dict.fromkeys(e.spot.source.rpartition(":")[2] for e in effects if e.spot.source))
    return f" at line{'s' if len(found) > 1 else ''} {', '.join(found[:MOST_LINES])}" if found else ""


def _writes(body: Body, name: str) -> list[Access]:
    return [e for e in body.effects if isinstance(e, Access) and e.kind != "read" and e.view.reference.name == name]


def _fixes(kernel: Kernel, load: Access | StartedCopy, alone: bool) -> Iterator[KernelFix]:
    """A store that is there under the guard of the first step; programs in order; zeros where nothing is stored yet."""
    reference, body = _read(load).reference, kernel.body
    into = [e for e in body.effects if isinstance(e, StartedCopy) and e.target.reference is reference]
    filled: list[Access | StartedCopy] = [*into, *_writes(body, reference.name)]
    yield from where_stored(kernel, load, filled)
    for store in filled:
        yield from longer(kernel, store)
    if into:
        # a store does not replace a missing copy
        return
    stores = _writes(body, reference.name)
    ways = _first_steps(kernel, reference)
    for store in stores:
        plain = store.value is None or store.value.defined
        if store.kind != "write" or store.view.steps or store.spot.loops or store.mask is not None or not plain:
            continue
        for axes in ways:
            after = [Term("==", Term("name", kernel.grid_names[k]), ZERO) for k in axes]
            old = " & ".join(program_ids(kernel, c) for c in store.spot.path) or "always"
            if not store.spot.path or not axes:
                continue
            first = first_of(kernel, axes)
            words = FIX_HAPPEN(reference.name, _lines([store]), first, old)
            alike = [s.spot.number for s in stores if [*map(id, s.spot.path)] == [*map(id, store.spot.path)]]
            doubt = "" if _is_number(store) else "what it stores then is of another step"
            yield KernelFix(words, guarded(kernel, alike, store.spot.path, after), doubt)
    if alone:
        parallel = tuple(k for k in kernel.parallel() if kernel.grid[k] != 1)
        doubt = LEFT if reference.role == "scratch" else ""
        for k in reversed(parallel):
            yield from in_order(kernel, (k,), doubt)
        yield from in_order(kernel, parallel, doubt)
    if not any(store.spot.number < load.spot.number and store is not load for store in stores):
        for axes in ways:
            yield from zeroed(kernel, reference, axes)


def _is_number(store: Access) -> bool:
    """Whether a store stores one number of the code."""
    value = store.value
    if value is None:
        return False
    try:
        return bool(value.number(tuple(ZERO for _ in value.dims)).op == "int")
    except Lost as lost:
        return str(lost).startswith("a number of the code")


def _first_steps(kernel: Kernel, reference: BodyReference) -> list[tuple[int, ...]]:
    """The axes along which the first step of a run may be said."""
    operand = operand_of(kernel, reference)
    if operand is not None:
        used = {name for term in operand.index for name in term.names()}
        return [tuple(k for k in kernel.counted if kernel.grid_names[k] not in used)]
    if reference.role != "scratch":
        return [()]
    inner = [k for k in kernel.counted if k not in kernel.parallel() and kernel.grid[k] != 1]
    return list(dict.fromkeys((tuple(inner[-1:]), tuple(inner))))
