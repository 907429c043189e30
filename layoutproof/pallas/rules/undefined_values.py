"""Values that are not there, padding of partial blocks above all, never reach a valid element of an output.

Why it matters: the last block of a dimension that the block size does not divide is filled up with whatever was in
memory. One sum, maximum or product over it spoils rows that are valid; interpret mode pads with NaN for floats, a chip
with the numbers of the block before.
Refuted by: the smallest `program` and valid `element` of an output that is computed from padding when the block is
written back, with the load through which the padding came in.
So it is of an array that was never filled, `jax.lax.empty`, and `jnp.empty` where the installed JAX fills it with no
zeros (0.12); and of masked-off elements of a load without another value. Where an earlier kernel of the
function stores only a part of an output, its readers are asked as if nothing of it were filled: a violation is then
unknown, since another part may be read.
Exact on indices through elementwise operations, `where` on conditions that are known, broadcasts, reshapes, transposes,
slices, concatenations, rolls, cumulative operations, reductions and products of matrices; values that loops and
programs carry are bounded by invariants that are checked. `0 * undefined` is undefined, and so is a comparison with it.
Rows of padding that spoil nothing but rows of padding are fine. Memory that was never written is the business of
`initialised`. Example: K 200 at block 128, `acc += dot(x, y)` without a mask: program 1 sums 56 columns of padding.
Source: JAX's page "Grids and BlockSpecs": "padded on input and discarded on output"; the values are unspecified.
Fix: x = jnp.where(column < N, x, 0) with column = program_id * block + iota, on every operand of the sum or product.
Incident: the tail of K was read as garbage, 48 of 215 tuned configurations wrong:
https://github.com/pytorch/helion/issues/2031; an array of jnp.empty carried into a kernel was NaN in production:
https://github.com/vllm-project/tpu-inference/pull/3426
Limits: The primitives that are modelled: docs/primitives.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from math import prod

from layoutproof.bodies import problems
from layoutproof.bodies.claims import not_modelled
from layoutproof.bodies.effects import Access, Body, BodyReference, StartedCopy, stored_names
from layoutproof.bodies.memory_state import States
from layoutproof.bodies.order import (
    one_by_one,
    operand_of,
    other_block,
    outside,
    partly,
    seen,
    start_of,
    unfilled,
    valid,
)
from layoutproof.bodies.touched import sizes_of
from layoutproof.bodies.walk import Answer, BodyWalk, Origin
from layoutproof.core.errors import Undecided
from layoutproof.core.folding import any_of, negation
from layoutproof.core.message import Template, restated
from layoutproof.core.numbers import INTS
from layoutproof.core.result import Counterexample, Point, Verdict
from layoutproof.core.term import Term, reads
from layoutproof.kernel.fixes import KernelFix
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.kernel.obligation import Obligation, Settled, by_rule, undecided
from layoutproof.pallas import problems as pallas_problems
from layoutproof.pallas.body_fixes import masked
from layoutproof.pallas.body_memory import (
    Ask,
    Deciding,
    entries_needed,
    named,
    places_to_try,
    replayed,
    source_of,
    storing,
    tables_at,
    unbounded,
    why_unknown,
)
from layoutproof.pallas.missed_masks import missed
from layoutproof.pallas.thread_problems import defined_by_threads

UNKNOWN = Template("pallas.undefined_values_unknown", "{what}: {why}")
UNKNOWN_LONG = Template(
    "pallas.undefined_values_unknown_long", "{what}: {why}; a replay is too long: allow more steps (--effort 10)"
)
PIPELINE_LEAVES = Template(
    "pallas.undefined_values_pipeline_leaves",
    "what the body of a pipeline leaves in {reference} may come from padding of its windows, and is used outside of "
    "it: not followed",
)
FROM_OUTPUT = Template(
    "pallas.undefined_values_from_output", "{operand}{where} is computed from {origin}: {held} (outputs_stored)"
)
FROM = Template("pallas.undefined_values_from", "{operand}{where} is computed from {origin}{missed}")
MASKED_OUT = Template(
    "pallas.undefined_values_masked_out", "element {element} of {reference}, which the mask of the load leaves out"
)
UNINITIALISED = Template(
    "pallas.undefined_values_uninitialised", "element {element} of {reference}, which is uninitialised ({made})"
)
PADDING = Template(
    "pallas.undefined_values_padding",
    "padding of {operand}: dimension {dimension} ends at {extent}, and place {place} is read",
)
LOOK_AT_MASK = Template(
    "pallas.undefined_values_look_at_mask",
    "leave out by jnp.where, under the same condition, what the mask of the load leaves out",
)
LOOK_AT_STORE = Template(
    "pallas.undefined_values_look_at_store",
    "look at what {reference} is given: jnp.zeros, or store it before it is read",
)
LOOK_AT_PADDING = Template(
    "pallas.undefined_values_look_at_padding",
    "look at what is made of {reference} before its padding is left out by jnp.where",
)
STORED = Template("pallas.undefined_values_stored", "element {element} of {reference} is {origin}")
COPIED = Template("pallas.undefined_values_copied", "element {element} of what is copied to {reference} is {origin}")


TARGET = False
BODY = True
SETTLED_BY = "replace by jnp.where, on indices, what lies outside of an array, before it is used"
PIPELINES = True
Place = tuple[int, ...]


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One per output."""
    body: Body | None = kernel.body
    if body is None:
        return ()
    if kernel.by_events:
        return defined_by_threads(kernel)
    deciding = Deciding()
    states = States(kernel, body, deciding.proves, deciding.holds)
    found: list[Obligation] = []
    for reference in body.references:
        if reference.role != "out":
            continue
        try:
            operand = operand_of(kernel, reference)
            if operand is None:
                found += _copied(kernel, body, states, deciding, reference)
            else:
                found.append(_window(kernel, body, states, deciding, reference, operand))
        except (Undecided, RecursionError) as reason:
            found.append(Obligation(reference.name, undecided(f"{_what(reference)}: {reason}"), source=kernel.source))
    if not found:
        found.append(Obligation(kernel.name, by_rule(""), source=kernel.source))
    found += not_modelled(kernel, body)
    return (*found, *_handed_over(body))


def _handed_over(body: Body) -> Iterator[Obligation]:
    """Memory that bodies of pipelines write and that is used outside of them, where a window of theirs has padding.

    The body of a pipeline is asked for itself, with its windows; the later uses of other memory are not.
    """
    if not any(isinstance(e, StartedCopy) and e.spot.scope == "pipeline" and _cut_short(e) for e in body.effects):
        return
    stored = {name for e in body.effects if e.spot.scope == "body" for name in stored_names([e])}
    used: dict[str, str] = {}
    for effect in body.effects:
        if effect.spot.scope:
            continue
        if isinstance(effect, Access) and effect.kind != "write":
            used.setdefault(effect.view.reference.name, effect.spot.source)
        elif isinstance(effect, StartedCopy):
            used.setdefault(effect.source.reference.name, effect.spot.source)
    for reference in body.references:
        if reference.name in stored and (reference.name in used or reference.role == "out"):
            what = PIPELINE_LEAVES(reference.name)
            source = used.get(reference.name, "")
            yield Obligation(reference.name, undecided(what), source=source)


def _cut_short(copy: StartedCopy) -> bool:
    """Whether a pipeline's copy into a window may leave a part of it as it was. Each slot has a semaphore."""
    window, slots = copy.target.reference, copy.semaphore.reference.dims
    dims = copy.target.dims
    return window.pipeline and (dims is None or prod(dims) * prod(slots) != prod(window.dims))


def _what(reference: BodyReference) -> str:
    return problems.WHETHER_DEFINED(reference.name)


def _window(
    kernel: Kernel, body: Body, states: States, deciding: Deciding, reference: BodyReference, operand: Operand
) -> Obligation:
    """For an output with windows: the contents of a window when the last program of a visit ends."""
    at = tuple(Term("name", f"at{k}") for k in range(len(reference.dims)))
    after, some = one_by_one(kernel)
    leaves = any_of([negation(some), other_block(kernel, operand, after)])
    elements = {f"at{k}": n for k, n in enumerate(reference.dims)}
    claim, proved = states.impossible(lambda: [states.at_exit(reference), valid(kernel, operand, at), leaves], elements)
    if proved:
        return Obligation(reference.name, Settled(Verdict.PROVED, by=deciding.names()), source=operand.source)
    point = deciding.last.point if claim is not None and not claim.lost and deciding.last is not None else None
    tries: list[tuple[Place, Place]] = []
    if point is not None and claim is not None and "sizes" not in point:
        where = named(claim, point)
        tries.append((tuple(point["program"]), tuple(where.get(f"at{k}", 0) for k in range(len(at)))))
    tables = tables_at(kernel, claim, point)
    walk = BodyWalk(kernel, body, tables)
    open_ = unbounded(kernel, claim) if claim is not None else []
    for program, element in [*tries, *places_to_try(kernel, reference.dims)]:
        if not walk.valid_at_end(operand, reference, program, element):
            continue

        def left(walk: BodyWalk, program: Place = program, element: Place = element) -> tuple[Answer, Origin | None]:
            return walk.left(reference, program, element)

        origin = replayed(left, [walk])
        if origin is None:
            continue
        needed = entries_needed(left, partial(BodyWalk, kernel, body), tables)
        if open_ and needed:
            what = pallas_problems.NOTHING_ASSUMED(" and ".join(open_))
            return Obligation(reference.name, undecided(what), source=source_of(origin, body) or operand.source)
        origin = _first(kernel, origin, left, walk)
        return _refuted(kernel, body, operand, program, element, origin, deciding, needed)
    why = why_unknown(states, claim, states.at_exit(reference))
    reason = (UNKNOWN_LONG if walk.over else UNKNOWN)(_what(reference), why)
    return Obligation(reference.name, undecided(reason), source=operand.source)


def _first(kernel: Kernel, found: Origin, ask: Ask, walk: BodyWalk) -> Origin:
    """The first place of padding that comes in where one was found; the found one where the first does not."""
    operand = operand_of(kernel, found.reference)
    k = _padded(kernel, operand, found) if operand is not None else None
    if operand is None or k is None:
        return found
    axis = seen(operand).index(k)
    place = _global(kernel, operand, found.program, found.element)[k]
    extent = operand.dims[k]
    begins = found.element[axis] - (place - extent) if type(extent) is int and place >= extent else 0
    if not 0 <= begins < found.element[axis]:
        return found
    again = replayed(ask, [replace(walk, likely=begins, steps=0)])
    same = again is not None and again.reference is found.reference and again.program == found.program
    return again if same and again is not None and again.element[axis] == begins else found


def _refuted(
    kernel: Kernel,
    body: Body,
    operand: Operand,
    program: Place,
    element: Place,
    origin: Origin,
    deciding: Deciding,
    needed: Mapping[str, object],
) -> Obligation:
    where = _global(kernel, operand, program, element)
    part = partly(kernel, origin.reference)
    if part:
        # not all of it is undefined: the read part and the stored part were not compared
        held = f"element {list(origin.element)} of {origin.reference.name}"
        reason = FROM_OUTPUT(operand.name, list(where), held, part)
        return Obligation(operand.name, undecided(reason), source=source_of(origin, body) or operand.source)
    reason = FROM(operand.name, list(where), _named(kernel, origin), _missed_words(kernel, origin))
    counterexample = {"program": program, "element": where, **needed}
    settled = Settled(Verdict.REFUTED, reason, _hint(kernel, origin), deciding.names(), counterexample)
    source = source_of(origin, body) or operand.source
    return Obligation(operand.name, settled, source=source, fixes=_fixes(kernel, origin))


def _global(kernel: Kernel, operand: Operand, program: Place, element: Place) -> Place:
    names = dict(zip(kernel.grid_names, program, strict=True))
    inner = dict(zip(seen(operand), element, strict=True))
    found = []
    for k in range(len(operand.dims)):
        start = start_of(operand, k)
        known = all(part in names for part in start.names()) and not reads((start,))
        found.append((start.evaluate(names, INTS) if known else 0) + inner.get(k, 0))
    return tuple(found)


def _named(kernel: Kernel, origin: Origin) -> str:
    """The padding that comes in, in words."""
    if origin.masked:
        return MASKED_OUT(list(origin.element), origin.reference.name)
    made = unfilled(kernel, origin.reference)
    if made:
        return UNINITIALISED(list(origin.element), origin.reference.name, made)
    operand = operand_of(kernel, origin.reference)
    shown = f"element {list(origin.element)} of the window of {origin.reference.name}"
    if operand is None:
        return shown
    k = _padded(kernel, operand, origin)
    if k is None:
        return f"{shown}, which is padding"
    place = _global(kernel, operand, origin.program, origin.element)[k]
    return PADDING(operand.name, k, operand.dims[k], place)


def _padded(kernel: Kernel, operand: Operand, origin: Origin) -> int | None:
    """The dimension of the array in which an element is padding; None where it is undefined for another reason."""
    if origin.masked:
        return None
    walk = BodyWalk(kernel, kernel.body)
    for k, entry in zip(seen(operand), origin.element, strict=True):
        if walk.holds(outside(operand, k, Term("int", entry)), origin.program):
            return k
    return None


def _fixes(kernel: Kernel, origin: Origin) -> Callable[[Counterexample], Iterator[KernelFix]]:
    operand = operand_of(kernel, origin.reference)
    k = _padded(kernel, operand, origin) if operand is not None else None
    if operand is None or k is None:
        return lambda at: iter(())
    mask = missed(kernel, operand, k, origin)
    doubt = "" if mask is None else mask.doubt()
    return lambda at: masked(kernel, operand, k, f"; {doubt}" if doubt else "")


def _missed_words(kernel: Kernel, origin: Origin) -> str:
    """The mask that stands in the code and misses this padding, in words."""
    operand = operand_of(kernel, origin.reference)
    k = _padded(kernel, operand, origin) if operand is not None else None
    mask = None if operand is None or k is None else missed(kernel, operand, k, origin)
    return "" if mask is None else restated(f"; {mask.words()}", mask.words())


def _hint(kernel: Kernel, origin: Origin) -> str:
    if origin.masked:
        return LOOK_AT_MASK()
    if unfilled(kernel, origin.reference):
        return LOOK_AT_STORE(origin.reference.name)
    return LOOK_AT_PADDING(origin.reference.name)


def _copied(
    kernel: Kernel, body: Body, states: States, deciding: Deciding, reference: BodyReference
) -> Iterator[Obligation]:
    """For an output that the body copies to itself: the source of each copy."""
    stores = [
        e
        for e in body.effects
        if (isinstance(e, StartedCopy) and e.target.reference is reference)
        or (isinstance(e, Access) and e.kind != "read" and e.view.reference is reference)
    ]
    for store in stores:
        sizes = sizes_of(store.target if isinstance(store, StartedCopy) else store.view)
        dims = tuple(most for _, most in sizes)
        index = tuple(Term("name", f"at{k}") for k in range(len(dims)))
        elements = {f"at{k}": n for k, n in enumerate(dims)}
        there = [Term("<", at, size) for at, (size, _) in zip(index, sizes, strict=True) if size.op != "int"]
        claim, proved = states.impossible(
            lambda store=store, index=index, there=there: [*there, states.copied(store, index)],  # type: ignore[misc]
            elements,
        )
        if proved:
            yield Obligation(reference.name, Settled(Verdict.PROVED, by=deciding.names()), source=store.spot.source)
            continue
        point: Point | None = (
            deciding.last.point if claim is not None and not claim.lost and deciding.last is not None else None
        )
        if point is not None and claim is not None and "sizes" not in point and len(stores) == 1:
            where = named(claim, point)
            program = tuple(point["program"])
            element = tuple(where.get(f"at{k}", 0) for k in range(len(dims)))
            within = {loop.name: where.get(loop.name, 0) for loop in store.spot.loops}
            tables = tables_at(kernel, claim, point)
            stored = storing(store, program, within, element)
            walk = BodyWalk(kernel, body, tables)
            origin = replayed(stored, [walk])
            needed = {} if origin is None else entries_needed(stored, partial(BodyWalk, kernel, body), tables)
            if origin is not None and not (needed and unbounded(kernel, claim)):
                origin = _first(kernel, origin, stored, walk)
                shown, words = _shown(walk, store, program, within, element)
                told = words(list(shown), reference.name, _named(kernel, origin))
                more = _missed_words(kernel, origin)
                reason = restated(f"{told}{more}", told, missed=more)
                found = {"program": program, "element": shown, **needed}
                said = Settled(Verdict.REFUTED, reason, _hint(kernel, origin), deciding.names(), found)
                source = source_of(origin, body) or store.spot.source
                yield Obligation(reference.name, said, source=source, fixes=_fixes(kernel, origin))
                continue
        yield Obligation(
            reference.name,
            undecided(UNKNOWN(_what(reference), why_unknown(states, claim, None))),
            source=store.spot.source,
        )


def _shown(
    walk: BodyWalk, store: Access | StartedCopy, program: Place, within: Mapping[str, int], element: Place
) -> tuple[Place, Template]:
    """Where an element that is stored is in the array, and of one that is copied in the copy, with the words for it."""
    placed = walk.place(store.view, element, program, within) if isinstance(store, Access) else None
    return (element, COPIED) if placed is None else (placed, STORED)
