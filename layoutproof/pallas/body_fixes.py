"""Possible fixes of a body: a mask on a load, a store before a read, another guard, another place.

Each is a text and the kernel with exactly that change to its effects; `pallas.repairs` asks all questions of it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Any, TypeGuard

from layoutproof.bodies.effects import (
    Access,
    Body,
    BodyReference,
    Effect,
    Loop,
    Signal,
    Slice,
    Spot,
    StartedCopy,
    View,
    Wait,
    places,
)
from layoutproof.bodies.order import outside, seen, start_of
from layoutproof.bodies.reading import EditedBody
from layoutproof.bodies.terms import names_in, renaming, replaced
from layoutproof.bodies.values import Value
from layoutproof.core.folding import all_of, negation, shifted
from layoutproof.core.numbers import INTS
from layoutproof.core.size import ceil_div
from layoutproof.core.term import ZERO, Term, every, rebuilt
from layoutproof.kernel.fixes import MOST, UNSURE, KernelFix, values_of
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.kernel.scalar_memory import every_table
from layoutproof.pallas import problems
from layoutproof.pallas.body_memory import program_ids

LONGEST = 60
"""Characters of a term that is shown in a fix."""
NEUTRAL = "0 is right in a sum; a maximum needs -jnp.inf, a minimum jnp.inf, a mean the true count"
"""The doubt about numbers where zeros stand for missing elements."""


def masked(kernel: Kernel, operand: Operand, k: int, doubt: str = "") -> Iterator[KernelFix]:
    """The fix that masks the padding of one dimension of an operand with 0. doubt: the remaining faults."""
    axis = seen(operand).index(k)
    # of a part of the window the mask is another one
    parts = any(_loads(e, operand) and e.view.steps for e in kernel.body.effects)
    words = problems.FIX_MASK(_inside(kernel, operand, k), operand.name)
    if parts:
        words = problems.FIX_MASK_PART(_inside(kernel, operand, k, "at"), operand.name, axis)

    def edit(body: Body) -> Body:
        loads = {e.name: e.view for e in body.effects if _loads(e, operand)}

        def change(part: Term) -> Term | None:
            if part.op != "leaf" or part.args[0] not in loads:
                return None
            at = places(loads[part.args[0]], part.args[1:])
            return part if at is None else all_of([part, negation(outside(operand, k, at[axis]))])

        return _with_undefined(body, lambda condition: replaced(condition, change))

    yield KernelFix(words, edited(kernel, edit), f"{NEUTRAL}{doubt}")


def padding_conditions(kernel: Kernel) -> Iterator[tuple[int, str]]:
    """The inputs whose blocks reach beyond their arrays: the number of the operand, and the Python that masks it."""
    for number, operand in enumerate(kernel.operands):
        if operand.role != "in" or not operand.block:
            continue
        for k in seen(operand):
            block, extent = operand.block[k], operand.dims[k]
            known = type(block.size) is int and type(extent) is int
            if block.low or (known and block.kind == "blocked" and extent % block.size):
                yield number, _inside(kernel, operand, k)


def _inside(kernel: Kernel, operand: Operand, k: int, at: str = "") -> str:
    """The condition that an element of the window is one of the array. at: its place, "" for that of a whole window."""
    axis = seen(operand).index(k)
    dims = ", ".join(str(operand.block[d].size) for d in seen(operand))
    iota = at or f"jax.lax.broadcasted_iota(jnp.int32, ({dims}{',' if len(seen(operand)) == 1 else ''}), {axis})"
    start = program_ids(kernel, start_of(operand, k))
    place = iota if start == "0" else f"{start} + {iota}"
    block, extent = operand.block[k], operand.dims[k]
    below, above = f"0 <= {place}", f"{place} < {extent}"
    if not block.low:
        return above
    # a halo below the array is left out from below, and one beyond its end from above
    return f"({below}) & ({above})" if _past(kernel, operand, k) else below


def _loads(effect: Effect, operand: Operand) -> TypeGuard[Access]:
    return isinstance(effect, Access) and effect.kind != "write" and effect.view.reference.name == operand.name


def _past(kernel: Kernel, operand: Operand, k: int) -> bool:
    """Whether some window may reach past the end of its array in a dimension."""
    values = values_of(kernel, operand.index[k])
    block, extent = operand.block[k], operand.dims[k]
    if values is None or type(block.size) is not int or type(extent) is not int:
        return True
    return values[1] - block.low + block.size > extent


def where_stored(
    kernel: Kernel, load: Access | StartedCopy, stores: Sequence[Access | StartedCopy]
) -> Iterator[KernelFix]:
    """The fix of a read in another slot than the store: both are places of one memory, and one index differs."""
    view = _read(load)
    for store in sorted(stores, key=lambda s: (s.spot.number > load.spot.number, -s.spot.number)):
        d = _other_slot(view, _stored(store))
        if d is None:
            continue
        old, new = (one.steps[0].slices[d].start for one in (view, _stored(store)))
        name = view.reference.name

        def change(at: Spot, seen_: View, piece: Slice, k: int, d: int = d, old: Term = old, new: Term = new) -> Slice:
            same = at.number == load.spot.number and seen_.reference is view.reference and k == d
            return replace(piece, start=new) if same and piece.start == old else piece

        words = problems.FIX_READ(name, line_of(load.spot), line_of(store.spot))
        if all(set(names_in(one)) <= set(kernel.grid_names) for one in (old, new)):
            words = problems.FIX_SLOT(*words.figures.values(), program_ids(kernel, new), d, program_ids(kernel, old))
        yield KernelFix(words, placed(kernel, change), "which of the two places is meant is not known")


def _read(effect: Access | StartedCopy) -> View:
    return effect.view if isinstance(effect, Access) else effect.source


def _stored(effect: Access | StartedCopy) -> View:
    return effect.view if isinstance(effect, Access) else effect.target


def _other_slot(one: View, other: View) -> int | None:
    """The one dimension in which two views of a reference take another index, None where they are not alike so."""
    if one.reference is not other.reference or len(one.steps) != 1 or len(other.steps) != 1:
        return None
    pairs = list(zip(one.steps[0].slices, other.steps[0].slices, strict=False))
    apart = [k for k, (a, b) in enumerate(pairs) if a.start != b.start]
    if len(apart) != 1 or any(a.size != b.size or a.single != b.single for a, b in pairs):
        return None
    return apart[0] if pairs[apart[0]][0].single else None


def longer(kernel: Kernel, store: Access | StartedCopy) -> Iterator[KernelFix]:
    """A loop that stores a part of memory in each turn, and ends before all is stored."""
    body, view = kernel.body, _stored(store)
    if len(view.steps) != 1 or view.steps[0].kind != "slices":
        return
    for loop in reversed(store.spot.loops):
        if loop.count is None or loop.count.op != "int" or _hands_on(body, loop):
            continue
        for extent, piece in zip(view.reference.dims, view.steps[0].slices, strict=True):
            start, turns = _plain(body, piece.start), int(loop.count.args[0])
            if loop.name not in names_in(start) or piece.size.op != "int" or piece.stride != 1:
                continue
            free = dict.fromkeys(names_in(start), 0)
            first, step = (int(start.evaluate({**free, loop.name: k}, INTS)) for k in (0, 1))
            step -= first
            needed = ceil_div(extent - first - int(piece.size.args[0]), step) + 1 if step > 0 else 0
            if needed > turns:
                words = problems.FIX_TURNS(_at(loop.source), needed, turns, view.reference.name)
                yield KernelFix(words, turning(kernel, loop, needed), "whether there is as much to do is not known")


def _hands_on(body: Body, loop: Loop) -> bool:
    """Whether a loop carries a value besides its counter: its final value depends on the trip count."""
    names = [name for name, one in body.carried.items() if one.loop is loop and not one.final]
    numbers = [body.definitions.get(name) for name in names]
    counts = all(n is not None and set(names_in(n)) == {loop.name} for n in numbers)
    return any(one.loop is loop for one in body.handed) or len(names) > 1 or not counts


def zeroed(kernel: Kernel, reference: BodyReference, axes: Sequence[int]) -> Iterator[KernelFix]:
    """Memory that is filled with zeros when the ids of a program along some axes are 0."""
    reader: Any = kernel.body_reader
    if not hasattr(reader, "beginning") or isinstance(reader, EditedBody):
        return
    conditions = tuple(Term("==", Term("name", kernel.grid_names[k]), ZERO) for k in axes)
    words = problems.FIX_ZEROS(reference.name)
    if axes:
        words = problems.FIX_ZEROS_FIRST(reference.name, first_of(kernel, axes))
    beginning = reader.beginning(kernel, ((reference.name, conditions),))
    yield KernelFix(words, replace(kernel, body_reader=beginning), NEUTRAL)


def first_of(kernel: Kernel, axes: Sequence[int]) -> str:
    """The condition that a program's ids along some axes are 0, as the body writes it."""
    found = [program_ids(kernel, Term("==", Term("name", kernel.grid_names[k]), ZERO)) for k in axes]
    return " & ".join(f"({one})" if len(found) > 1 else one for one in found)


def guarded(kernel: Kernel, numbers: Sequence[int], before: Sequence[Term], after: Sequence[Term]) -> Kernel:
    """The kernel whose effects with these numbers happen under other conditions, where they happened under some."""
    gone, chosen = set(before), set(numbers)

    def edit(body: Body) -> Body:
        def path(effect: Effect) -> Effect:
            if effect.spot.number not in chosen:
                return effect
            kept = tuple(c for c in effect.spot.path if c not in gone)
            return replace(effect, spot=replace(effect.spot, path=(*kept, *after)))

        return replace(body, effects=tuple(map(path, body.effects)))

    return edited(kernel, edit)


def placed(kernel: Kernel, change: Callable[[Spot, View, Slice, int], Slice]) -> Kernel:
    """The kernel with other slices. change: of a spot, a view, a slice of it and its dimension -> the slice."""

    def edit(body: Body) -> Body:
        def view(spot: Spot, old: View) -> View:
            steps = tuple(
                replace(step, slices=tuple(change(spot, old, piece, d) for d, piece in enumerate(step.slices)))
                if step.kind == "slices"
                else step
                for step in old.steps
            )
            return replace(old, steps=steps)

        def effect(e: Effect) -> Effect:
            match e:
                case Access():
                    return replace(e, view=view(e.spot, e.view))
                case StartedCopy():
                    return replace(
                        e,
                        source=view(e.spot, e.source),
                        target=view(e.spot, e.target),
                        semaphore=view(e.spot, e.semaphore),
                    )
                case Wait() | Signal():
                    return replace(e, semaphore=view(e.spot, e.semaphore))
            return e

        return replace(body, effects=tuple(map(effect, body.effects)))

    return edited(kernel, edit)


def edited(kernel: Kernel, edit: Callable[[Body], Body]) -> Kernel:
    """The kernel with a change of its body."""
    return replace(kernel, body_reader=EditedBody(kernel.body_reader, edit))


def _with_undefined(body: Body, change: Callable[[Term], Term]) -> Body:
    """The body whose values are undefined under other conditions."""
    known: dict[int, Any] = {}

    def of(value: object) -> object:
        if not isinstance(value, Value) or value.defined:
            return value
        if id(value) not in known:
            known[id(value)] = Value(
                value.dims,
                value.dtype,
                value.number,
                lambda index, value=value: change(value.undefined(index)),  # type: ignore[misc]
                value.passed,
            )
        return known[id(value)]

    return replace(
        body,
        effects=tuple(
            replace(e, value=of(e.value), mask=of(e.mask)) if isinstance(e, Access) else e for e in body.effects
        ),
        carried={name: replace(c, start=of(c.start), next=of(c.next)) for name, c in body.carried.items()},
        doubts={name: of(value) for name, value in body.doubts.items()},
    )


def inside(
    kernel: Kernel, body: Body, spot: Spot, view: View, d: int, extent: int, piece: Slice
) -> Iterator[KernelFix]:
    """Of a slice that leaves what it cuts in dimension d: one index too many first, a clamp last."""
    name = view.reference.name
    swapped = _swapped(kernel, spot, view)
    if swapped is not None:
        yield swapped
    values = range_of_term(kernel, body, spot, piece.start)
    if values is None or piece.size.op != "int":
        return
    low, high = values
    last = extent - 1 - (int(piece.size.args[0]) - 1) * piece.stride
    which = problems.FIRST_ELEMENT("index" if piece.single else "start", d, name)
    line = f" at line {spot.source.rpartition(':')[2]}" if spot.source else ""
    # as the code has it: `int32(x)` is x where nothing wraps
    plain = rebuilt(piece.start, lambda part, made: made.args[0] if part.op == "int32" else made)
    said = program_ids(kernel, plain)
    # counters of loops have no name in the code, and what wraps is long
    shown = (
        len(said) < LONGEST
        and not any(part.op.startswith("trunc") for part in every(plain))
        and set(names_in(piece.start)) <= {*kernel.grid_names, *(t.name for t in kernel.tables)}
    )

    def start(other: Term, anywhere: bool = False) -> Kernel:
        def change(at: Spot, seen_: View, old: Slice, k: int) -> Slice:
            same = anywhere or (at.source == spot.source and seen_.reference is view.reference and k == d)
            return replace(old, start=other) if same and old.start == piece.start else old

        return placed(kernel, change)

    moving = set(names_in(_plain(body, piece.start)))
    for loop in reversed(spot.loops):
        if loop.name in moving and loop.count is not None and loop.count.op == "int" and high > last:
            turns = int(loop.count.args[0]) - 1
            words = problems.FIX_LAST_TURN(_at(loop.source), turns, turns + 1)
            yield KernelFix(words, turning(kernel, loop, turns), "what the last turn did is then not done")
    effect = body.effects[spot.number]
    if (
        last >= 0
        and shown
        and (isinstance(effect, StartedCopy) or (isinstance(effect, Access) and effect.kind == "write"))
    ):
        conditions = [Term("<=", ZERO, piece.start)] if low < 0 else []
        conditions += [Term("<=", piece.start, Term("int", last))] if high > last else []
        parts = [program_ids(kernel, c) for c in conditions]
        when = parts[0] if len(parts) == 1 else " & ".join(f"({part})" for part in parts)
        doubt = "what is left out must not be needed"
        yield KernelFix(problems.FIX_GUARD(line, when), guarded(kernel, [spot.number], (), conditions), doubt)
    floored = replaced(piece.start, lambda part: Term("%", *part.args) if part.op == "truncrem" else None)
    if floored != piece.start:
        words = problems.FIX_MOD(which, line)
        yield KernelFix(words, start(floored), UNSURE)
    by = -low if low < 0 else last - high
    if by and low + by >= 0 and high + by <= last:
        other = shifted(piece.start, by)
        new = program_ids(kernel, shifted(plain, by))
        large = "large" if by < 0 else "small"
        words = problems.FIX_SHIFT(which, line, new, said, abs(by), large)
        if not shown:
            words = problems.FIX_TAKE(abs(by), "off" if by < 0 else "more for", which, line, large)
        yield KernelFix(words, start(other), UNSURE)
    rest = piece.start.op in ("%", "truncrem") and piece.start.args[1].op == "int"
    if rest and piece.start.args[1].args[0] > last + 1 > 0:
        other = Term(piece.start.op, piece.start.args[0], Term("int", last + 1))
        words = problems.FIX_REMAINDER(which, line, last + 1, piece.start.args[1])
        yield KernelFix(words, start(other, anywhere=True), UNSURE)
    if last >= 0:
        clamped = piece.start
        clamped = Term("max", clamped, ZERO) if low < 0 else clamped
        clamped = Term("min", clamped, Term("int", last)) if high > last else clamped
        doubt = "where it was outside it is then at the edge, and what is there is taken twice"
        ends = f"at most {last}" if low >= 0 else "at least 0" if high <= last else f"0 to {last}"
        call = f": {_clamp(low, high, last, said)}" if shown else ""
        yield KernelFix(problems.FIX_CLAMP(which, line, ends, call), start(clamped), doubt)


def _clamp(low: int, high: int, last: int, said: str) -> str:
    call = f"jnp.maximum({said}, 0)" if low < 0 else said
    return f"jnp.minimum({call}, {last})" if high > last else call


def _plain(body: Body, term: Term) -> Term:
    """A term without carried names that are terms themselves."""
    for _ in body.definitions:
        if not any(name in body.definitions for name in names_in(term)):
            break
        term = replaced(term, renaming(body.definitions))
    return term


def _swapped(kernel: Kernel, spot: Spot, view: View) -> KernelFix | None:
    """Two indices of a view that stand in each other's place."""
    cut = [step for step in view.steps if step.kind == "slices"]
    if len(cut) != 1 or len(cut[0].slices) != 2 or not all(piece.single for piece in cut[0].slices):
        return None
    first, second = cut[0].slices

    def change(at: Spot, seen_: View, old: Slice, k: int) -> Slice:
        same = at.source == spot.source and seen_.reference is view.reference
        same = same and old.start == (first, second)[k].start
        return replace(old, start=(second, first)[k].start) if same else old

    both = ", ".join(program_ids(kernel, piece.start) for piece in (second, first))
    words = problems.FIX_SWAP(view.reference.name, _at(spot.source), both)
    return KernelFix(words, placed(kernel, change), UNSURE)


def _at(source: str) -> str:
    return f" at line {source.rpartition(':')[2]}" if source else ""


def line_of(spot: Spot) -> str:
    """The line of a spot, in words."""
    return spot.source.rpartition(":")[2] or "?"


def range_of_term(kernel: Kernel, body: Body, spot: Spot, term: Term) -> tuple[int, int] | None:
    """The least and the greatest number of a term over programs, loops and entries of tables, tried at many of them."""
    spans: dict[str, tuple[int, int]] = {}
    for name, extent in zip(kernel.grid_names, kernel.grid, strict=True):
        if type(extent) is int:
            spans[name] = (0, extent)
    for loop in spot.loops:
        if loop.count is not None and loop.count.op == "int":
            spans[loop.name] = (0, int(loop.count.args[0]))
    tables = {table.name: table for table in every_table(kernel)}
    entries: dict[Term, Term] = {}
    for part in every(term):
        if part.op == "read":
            table = tables.get(part.args[0].args[0])
            if table is None or type(table.low) is not int or type(table.high) is not int:
                return None
            entries[part] = Term("name", str(part))
            spans[str(part)] = (table.low, table.high)
    plain = replaced(term, lambda part: entries.get(part))
    plain = _plain(body, plain)
    names = list(dict.fromkeys(names_in(plain)))
    if not set(names) <= set(spans):
        return None
    ranges = [_some(*spans[name]) for name in names]
    found = []
    for values in islice(product(*ranges), MOST + 1):
        found.append(int(plain.evaluate(dict(zip(names, values, strict=True)), INTS)))
    return (min(found), max(found)) if 0 < len(found) <= MOST else None


def _some(low: int, end: int) -> Sequence[int]:
    return range(low, end) if end - low <= 16 else (low, low + 1, low + 2, end - 2, end - 1)


def turning(kernel: Kernel, loop: Loop, turns: int) -> Kernel:
    """The kernel with a loop that runs so many times."""

    def edit(body: Body) -> Body:
        made = replace(loop, count=Term("int", turns))

        def loops(old: tuple[Loop, ...]) -> tuple[Loop, ...]:
            return tuple(made if one.name == loop.name else one for one in old)

        return replace(
            body,
            effects=tuple(replace(e, spot=replace(e.spot, loops=loops(e.spot.loops))) for e in body.effects),
            carried={n: replace(c, loop=made) if c.loop.name == loop.name else c for n, c in body.carried.items()},
            handed=tuple(replace(h, loop=made) if h.loop.name == loop.name else h for h in body.handed),
        )

    return edited(kernel, edit)
