"""Loads and stores: `get`, `swap`, `addupdate`, their masked forms, and the views that they go through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from math import prod

from layoutproof.bodies import problems
from layoutproof.bodies.bit_terms import UnsupportedOp, wrapped
from layoutproof.bodies.effects import (
    Access,
    BodyReference,
    Effect,
    Mask,
    Slice,
    Spot,
    StartedCopy,
    View,
    ViewStep,
    Wait,
    adds_to,
    places,
    writes_to,
)
from layoutproof.bodies.integers import condition_of
from layoutproof.bodies.memory_state import inside
from layoutproof.bodies.other_devices import ELSEWHERE, through_devices
from layoutproof.bodies.passes import BodyValue, Pass, Rule, as_array
from layoutproof.bodies.row_major import reshaped
from layoutproof.bodies.values import Index, Lost, Value, aligned, dims_of, hull, leaf, left_out, maybe
from layoutproof.core.element_types import ELEMENT_BITS, element_type
from layoutproof.core.folding import TRUE, all_of, any_of, constant, fold, negation
from layoutproof.core.term import ZERO, Term
from layoutproof.ir.program import (
    Bitcast,
    Dtype,
    Equation,
    Indexed,
    MemRefType,
    Other,
    Reshaped,
    Span,
    Transform,
    Transformed,
    Transposed,
    Variable,
    axis_groups,
    element_type_named,
    planted,
)
from layoutproof.kernel.contents import entry as known_entry
from layoutproof.kernel.kernel import Kernel, Table
from layoutproof.kernel.scalar_memory import every_table

BATCH = "ExpandLeadingBatchDimensionsTransform"
PLACES = ("UnswizzleRef", "UntilingTransform", BATCH)
"""Transforms of memory of a GPU that say where its elements lie and change none: a reference has the shape that they
give, and is the same through them."""
ALIASED = "ExtractAliasedRef"
"""The transform that shows one of several arrays that have one place (`RefUnion`)."""
Lies = tuple[tuple[str, int, int] | None, tuple[int, ...], str, tuple[tuple[int, ...], ...], int, str, int]
"""Of an array in a place that it shares its bytes, its shape, its type, and how it lies there."""
_TENSOR_ROWS = 128
"""Rows of an array that has one in each lane of tensor memory."""
_INTEGERS = frozenset(("s8", "s16", "s32", "u8", "u16", "u32"))


def view_of(on: Pass, value: BodyValue | Transformed) -> View:
    """A reference, or one that carries its own transforms. UnsupportedOp for anything else."""
    if isinstance(value, View):
        return value
    if isinstance(value, Transformed):
        return through(on, view_of(on, value.ref), value.transforms)
    raise UnsupportedOp(problems.NO_REFERENCE(type(value).__name__))


def through(on: Pass, view: View, transforms: Transform | tuple[Transform | None, ...] | None) -> View:
    """A view through more transforms."""
    left = transforms if isinstance(transforms, tuple) else (transforms,)
    if (member := place_of(left)) is not None:
        alias, lies, left = member
        view = View(_member(on, view, alias, lies))
    for transform in left:
        if isinstance(transform, Other) and transform.kind in PLACES:
            if view.steps:
                raise UnsupportedOp(problems.VIEW_OF_PART(transform.kind))
        elif isinstance(transform, Other) and transform.kind in ELSEWHERE and on.kernel.remote:
            view = through_devices(on, view, transform)
        elif transform is not None:
            view = View(view.reference, (*view.steps, *_steps(on, view, transform)))
    return view


def _member(on: Pass, union: View, transform: Other, lies: Sequence[Transform | None]) -> BodyReference:
    """One of several arrays that have one place (`RefUnion`), each a reference of its own; one for equal ones."""
    around = union.reference
    if union.steps or around.memory not in ("shared", "tmem") or around.within or not on.kernel.by_events:
        raise UnsupportedOp(problems.VIEW_THROUGH(transform.kind))
    wanted = aliased(around, transform, lies)
    for one in on.references:
        if one.within is not None and as_it_lies(one) == as_it_lies(wanted):
            return one
    found = replace(wanted, name=on.named("scoped"))
    on.references.append(found)
    return found


def as_it_lies(reference: BodyReference) -> Lies:
    """What two equal arrays in one place have in common.

    Args:
        reference: One of the arrays.
    """
    one = reference
    return one.within, one.dims, one.dtype, one.tilings, one.swizzle, one.lanes, one.packing


def aliased(around: BodyReference, transform: Other, lies: Sequence[Transform | None]) -> BodyReference:
    """An array in a place that it shares with others (`RefUnion`), under the name of the place.

    Args:
        around: The place.
        transform: That of the array.
        lies: Those that say how it lies there.
    """
    parts, tensor = transform.parts, around.memory == "tmem"
    dtype, shape = element_type(parts["dtype"]), tuple(map(int, parts["shape"]))
    dims, tilings, swizzle = _lies(shape, lies)
    lanes, packing = parts["layout"] if tensor else ("", 0)
    size = int(parts["columns"]) if tensor else -(-prod(dims) * ELEMENT_BITS[dtype] // 8)
    first = int(parts["offset"])
    return replace(
        around,
        dims=dims,
        dtype=dtype,
        tilings=tilings,
        swizzle=swizzle,
        lanes=lanes,
        packing=packing,
        within=(around.name, first, first + size),
    )


def place_of(
    transforms: Sequence[Transform | None],
) -> tuple[Other, tuple[Transform | None, ...], tuple[Transform | None, ...]] | None:
    """Of a view of an array in a place that it shares: (its transform, how it lies, what is left); None of others.

    Args:
        transforms: Those of the view, from the place on.
    """
    first = transforms[0] if transforms else None
    if not isinstance(first, Other) or first.kind != ALIASED:
        return None
    lies = tuple(takewhile(lambda each: isinstance(each, Other) and each.kind in PLACES, transforms[1:]))
    return first, lies, tuple(transforms[1 + len(lies) :])


def _steps(on: Pass, view: View, transform: Transform) -> tuple[ViewStep, ...]:
    dims = view.dims
    if dims is None:
        raise UnsupportedOp(problems.VIEW_OF_VIEW())
    if isinstance(transform, Indexed) and any(map(_is_list, transform.indices)):
        return _gathered(on, transform, dims)
    return (_step(on, view, transform, dims),)


def _step(on: Pass, view: View, transform: Transform, dims: tuple[int, ...]) -> ViewStep:
    if isinstance(transform, Indexed):
        return _cut(dims, [_slice(on, entry, extent) for entry, extent in zip(transform.indices, dims, strict=True)])
    if isinstance(transform, Reshaped):
        return ViewStep("reshape", dims, tuple(int(n) for n in transform.shape))
    if isinstance(transform, Transposed):
        order = tuple(int(d) for d in transform.permutation)
        return ViewStep("transpose", dims, tuple(dims[d] for d in order), permutation=order)
    if isinstance(transform, Bitcast):
        return _bitcast(view, dims, element_type(transform.dtype))
    raise UnsupportedOp(problems.VIEW_THROUGH(named(transform)))


def _is_list(entry: Span | slice | Value | int) -> bool:
    """Whether an index is one for each of several parts: an array, memory that holds one, or `plsc.Indices`."""
    if isinstance(entry, Other) and "values" in entry.parts:
        return True
    return isinstance(entry, View | Transformed) or (isinstance(entry, Value) and bool(entry.dims))


def _gathered(on: Pass, transform: Indexed, dims: tuple[int, ...]) -> tuple[ViewStep, ...]:
    """A view of parts that lists of places choose; in other dimensions it is whole, or first a slice or an index."""
    picks: list[Value | None] = []
    lists: list[View] = []
    held: list[Value] = []
    beside: list[Slice] = []
    for entry, extent in zip(transform.indices, dims, strict=True):
        if not _is_list(entry):
            beside.append(_slice(on, entry, extent))
            picks += [] if beside[-1].single else [None]
            continue
        beside.append(Slice(ZERO, Term("int", extent)))
        one = entry.parts["values"] if isinstance(entry, Other) else entry
        if not isinstance(one, Value):
            lists.append(view_of(on, one))
            one = _listed(on, lists[-1])
        picks.append(one)
        ignored = entry.parts.get("ignored_value") if isinstance(entry, Other) else None
        held += [] if ignored is None else [_not_ignored(one, int(ignored))]
    chosen = [k for k, one in enumerate(picks) if one is not None]
    if on.kernel.platform == "triton" and chosen[0] > 0 and chosen == [*range(chosen[0], chosen[-1] + 1)]:
        # JAX puts such lists where they stand, and lowers them for Triton as if they came first
        raise UnsupportedOp(problems.LIST_AFTER_SLICE())
    cut = _cut(dims, beside)
    left = dims
    if not _all_of(cut):
        if cut.after is None or any(isinstance(entry, Other) for entry in transform.indices) or lists:
            raise UnsupportedOp(problems.LIST_BESIDE())
        left = cut.after
    found = _gather_of_shape(on, left, picks, lists)
    if len(held) > 1:
        raise UnsupportedOp(problems.TWO_LISTS())
    first = found[0] if not held else replace(found[0], held=held[0])
    return (*(() if left is dims else (cut,)), first, *found[1:])


def _cut(dims: tuple[int, ...], slices: Sequence[Slice]) -> ViewStep:
    """The step to some slices of something of shape `dims`."""
    sizes = [piece.size for piece in slices if not piece.single]
    known = all(size.op == "int" for size in sizes)
    return ViewStep("slices", dims, tuple(int(size.args[0]) for size in sizes) if known else None, tuple(slices))


def _gather_of_shape(
    on: Pass, dims: tuple[int, ...], picks: Sequence[Value | None], lists: Sequence[View]
) -> tuple[ViewStep, ...]:
    """The steps to parts whose places arrays say that are broadcast to one shape: their rows one after the other."""
    shapes = {one.dims for one in picks if one is not None}
    if lists or all(len(shape) == 1 for shape in shapes):
        return (gather(on, dims, picks, lists),)
    ranks = {len(shape) for shape in shapes}
    if len(ranks) > 1:
        raise UnsupportedOp(problems.LIST_RANK())
    shape = tuple(max(extents) for extents in zip(*shapes, strict=True))
    if any(n not in (1, most) for one in shapes for n, most in zip(one, shape, strict=True)):
        raise UnsupportedOp(problems.LIST_RANK())
    step = gather(on, dims, [None if one is None else _in_a_row(one, shape) for one in picks])
    assert step.after is not None
    return (step, ViewStep("reshape", step.after, (*shape, *step.after[1:])))


def _in_a_row(places: Value, shape: tuple[int, ...]) -> Value:
    """An array that is broadcast to a shape, as one of one dimension."""
    count = prod(shape)

    def at(index: Index) -> Index:
        return aligned(places, shape, reshaped(index, (count,), shape))

    doubt = None if places.defined else lambda index: places.undefined(at(index))
    return Value((count,), places.dtype, lambda index: places.number(at(index)), doubt, span=places.span)


def _not_ignored(places: Value, ignored: int) -> Value:
    """Which parts of a list of places are moved (`plsc.Indices`)."""
    value, doubt = Term("int", ignored), None if places.defined else places.undefined

    def moved(at: Index) -> Term:
        return negation(fold("==", places.number(at), value))

    return Value(places.dims, element_type_named("pred"), moved, doubt)


def _listed(on: Pass, view: View) -> Value:
    """The places that a copy reads out of memory."""
    if view.dims is None or view.dtype not in _INTEGERS:
        raise UnsupportedOp(problems.LIST_IN(view.dtype))
    access = Access("read", view, on.spot())
    on.effects.append(access)
    return loaded(on, view, access, view.dims, element_type_named(view.dtype))


def gather(on: Pass, dims: tuple[int, ...], picks: Sequence[Value | None], lists: Sequence[View] = ()) -> ViewStep:
    """The step to parts whose places some arrays of one dimension say, all of the same length.

    picks: for each dimension of what is seen, None = all of it.
    """
    lengths = {one.dims for one in picks if one is not None}
    if len(lengths) != 1 or len(next(iter(lengths))) != 1:
        raise UnsupportedOp(problems.LIST_RANK())
    ((length,),) = lengths
    if any(one is not None and getattr(one.dtype, "kind", "") not in ("i", "u") for one in picks):
        raise UnsupportedOp(problems.LIST_INTEGERS())
    some = on.witness(length)
    try:
        picked = tuple(None if one is None else one.number((some,)) for one in picks)
    except Lost as why:
        raise UnsupportedOp(problems.LIST_TERM(why)) from None
    kept = (extent for one, extent in zip(picks, dims, strict=True) if one is None)
    return ViewStep("gather", dims, (length, *kept), picks=tuple(picks), picked=picked, part=some, lists=tuple(lists))


def named(transform: Transform) -> str:
    """The name of a view that is not modelled."""
    return transform.kind if isinstance(transform, Other) else type(transform).__name__


def _bitcast(view: View, dims: tuple[int, ...], dtype: str) -> ViewStep:
    """The rows that share a word become rows of the other width: the last dimension but one grows or shrinks."""
    old, new = ELEMENT_BITS.get(view.dtype), ELEMENT_BITS.get(dtype)
    if old is None or new is None:
        raise UnsupportedOp(problems.VIEW_AS(view.dtype, dtype))
    if old == new:
        return ViewStep("reshape", dims, dims, dtype=dtype)
    if len(dims) < 2 or dims[-2] * old % new:
        raise UnsupportedOp(problems.VIEW_SHAPE_AS(view.dtype, list(dims), dtype))
    return ViewStep("bitcast", dims, (*dims[:-2], dims[-2] * old // new, dims[-1]), dtype=dtype)


def _slice(on: Pass, entry: Span | slice | Value | int, extent: int) -> Slice:
    if isinstance(entry, Span):
        return Slice(_term(on, entry.start), _term(on, entry.size), int(entry.stride))
    if isinstance(entry, slice):
        if entry.step not in (None, 1):
            raise UnsupportedOp(problems.SLICE_STEP())
        start = entry.start or 0
        return Slice(_term(on, start), _term(on, (extent if entry.stop is None else entry.stop) - start))
    if isinstance(entry, Value) and entry.dims:
        raise UnsupportedOp(problems.INDEX_ARRAY())
    return Slice(_term(on, entry), Term("int", 1), single=True)


def _term(on: Pass, value: Value | int) -> Term:
    if isinstance(value, Value):
        return on.scalar(value)
    return Term("int", int(value))


def loaded(on: Pass, view: View, access: Access, dims: tuple[int, ...], dtype: Dtype) -> Value:
    """The result of a load: entries of a table where nothing stores to it, else numbers of its own.

    Loading memory again to which nothing stores gives the same numbers.
    """
    reference, name = view.reference, access.name
    known = _put(on, view, access.spot)
    shown = known if isinstance(known, View) else view
    steady = reference.name in on.steady and access.mask is None
    same = on.same(("load", reference.name, *map(described, view.steps))) if steady else None
    if steady:
        name = on.first_loads.setdefault((same, *(loop.name for loop in access.spot.loops)), name)
    filled = next((t for t in every_table(on.kernel) if t.name == shown.reference.name), None)
    kind = getattr(dtype, "kind", "")
    integral = kind in ("i", "u", "b")

    def entry(index: Index) -> Index | None:
        table = on.constant.get(shown.reference.name)
        if table is None or ELEMENT_BITS[shown.dtype] != ELEMENT_BITS[shown.reference.dtype]:
            return None
        at = places(shown, index)
        return None if at is None else places(table, at)

    if integral and entry((ZERO,) * len(dims)) is None and not (isinstance(known, Value) and _is_said(known)):
        # now, not when an element is asked for: a term that the body does not name is the same number in every program
        low, high = (0, 2) if kind == "b" else (None, None)
        on.loads[name] = Table(name, dims or (1,), 8 * int(dtype.itemsize), low, high, signed=kind == "i")

    def number(index: Index) -> Term:
        if not integral:
            raise Lost(f"what {reference.name} holds")
        if isinstance(known, Value):
            with suppress(Lost):
                return known.number(index)
        if name in on.loads:
            return Term("read", Term("name", name), *(index or (ZERO,)))
        at = entry(index) or (ZERO,)
        read = None if filled is None else known_entry(filled, at)
        read = Term("read", Term("name", shown.reference.name), *at) if read is None else read
        # a module's numbers have no sign, and a view may give another one
        other = {"u": "i", "s": "u"}.get("" if filled is None else filled.dtype[:1]) == kind
        return wrapped(read, ELEMENT_BITS[shown.reference.dtype], kind == "i") if other else read

    if reference.name in on.whole:
        found = Value(dims, dtype, number)
    else:
        own = access.name
        found = Value(dims, dtype, number, lambda index: leaf(own, index), lambda index: [(TRUE, leaf(own, index))])
    found.same = same
    return found


def _writes(on: Pass, reference: BodyReference) -> Sequence[tuple[Effect, View]]:
    """The effects so far that change a reference, with what they change, in order; each effect is looked at once."""
    for effect in on.effects[on.writes_to_here :]:
        to = writes_to(effect)
        if to is not None:
            on.writes.setdefault(to.reference, []).append((effect, to))
    on.writes_to_here = len(on.effects)
    return on.writes.get(reference, ())


def _put(on: Pass, view: View, spot: Spot) -> View | Value | None:
    """The known contents of a view of memory: a part of a table, or the numbers; None where they are not known.

    Of some elements the numbers may be known, and not of others. A copy, which was waited for, or a store was the last
    to write there, in the same iteration or around its loop.
    """
    if not _may_be_known(on, view.reference):
        return None
    stores = reversed(_writes(on, view.reference))
    last, target = next(((e, to) for e, to in stores if not _apart(to, view)), (None, None))
    if last is None or target is None or _in_part(last) or ELEMENT_BITS.get(target.dtype) != ELEMENT_BITS[view.dtype]:
        return None
    around = last.spot.loops
    same = all(any(c is one for one in spot.path) for c in last.spot.path) and spot.loops[: len(around)] == around
    if not same or not _by_itself(on.kernel):
        return None
    if all(_all_of(step) for step in target.steps):
        rest = view.steps
    elif list(map(described, view.steps[: len(target.steps)])) == list(map(described, target.steps)):
        rest = view.steps[len(target.steps) :]
    else:
        rest = None
    found: View | Value | None = None
    if isinstance(last, Access) and isinstance(last.value, Value):
        found = _stored_there(last.value.number, target, view, rest) if last.value.dims == target.dims else None
    elif (
        isinstance(last, StartedCopy)
        and not last.device
        and last.mask is None
        and last.source.reference.name in on.constant
    ):
        source, slot = last.source, last.semaphore.reference
        arrived = any(isinstance(e, Wait) and e.semaphore.reference is slot for e in on.effects[last.spot.number :])
        if arrived and source.dims == target.dims and rest is not None:
            found = View(source.reference, (*source.steps, *rest))
        elif arrived and source.dims == target.dims:
            found = _stored_there(lambda index: _entry_at(on, source, index), target, view, rest)
    if found is not None and len(spot.loops) > len(around):
        on.forwarded.append((view.reference, spot.loops[len(around)], spot.number))
    return found


def _may_be_known(on: Pass, reference: BodyReference) -> bool:
    """Whether what was put into memory may be known where it is loaded: nothing else is there, or changes it."""
    fixed = reference.name in on.constant or reference.name in on.beyond
    return on.forwards and not fixed and reference.memory in ("vmem", "smem")


def _by_itself(kernel: Kernel) -> bool:
    """Whether programs find nothing that others have left: on subcores, and on a GPU."""
    return bool(kernel.subcores) or kernel.platform == "mosaic_gpu"


def _in_part(effect: Effect) -> bool:
    """Whether what an effect writes is not all that is there then."""
    return adds_to(effect) or getattr(effect, "mask", None) is not None


def _apart(one: View, other: View) -> bool:
    """Whether constants show that two views of one reference have no element in common."""
    if not (one.steps and other.steps) or not one.steps[0].kind == other.steps[0].kind == "slices":
        return False
    pairs = zip(one.steps[0].slices, other.steps[0].slices, strict=True)
    ends = [[_ends(piece) for piece in pair] for pair in pairs]
    return any(a is not None and b is not None and (a[1] <= b[0] or b[1] <= a[0]) for a, b in ends)


def _ends(piece: Slice) -> tuple[int, int] | None:
    """From where to where a slice reaches, where constants say it."""
    start, size = constant(piece.start), constant(piece.size)
    return None if start is None or size is None else (start, start + (size - 1) * piece.stride + 1)


def _stored_there(
    put: Callable[[Index], Term], target: View, view: View, rest: Sequence[ViewStep] | None
) -> Value | None:
    """The elements that a store has put where a view looks.

    put: the value at an element of its target.  rest: the steps of the view from the target on; None where each
    element is checked for being one of them.
    """
    if view.dims is None or view.dtype not in _INTEGERS:
        return None

    def number(index: Index) -> Term:
        if rest is not None:
            at = places(View(view.reference, tuple(rest)), index)
        else:
            place = places(view, index)
            found = None if place is None else inside(target, place)
            at = None if found is None or found[0] else found[1]
        if at is None:
            raise Lost(f"what {view.reference.name} holds")
        return put(at)

    return Value(view.dims, element_type_named(view.dtype), number)


def _entry_at(on: Pass, source: View, index: Index) -> Term:
    """The entry of a table that a part of it shows."""
    at = places(source, index)
    place = None if at is None else places(on.constant[source.reference.name], at)
    if place is None or source.dtype != source.reference.dtype:
        raise Lost(f"what {source.reference.name} holds")
    filled = next((t for t in every_table(on.kernel) if t.name == source.reference.name), None)
    known = None if filled is None else known_entry(filled, place)
    return Term("read", Term("name", source.reference.name), *place) if known is None else known


def _is_said(value: Value) -> bool:
    """Whether the number of every element is said by one term."""
    try:
        value.number(tuple(Term("name", f"at{k}") for k in range(len(value.dims))))
    except Lost:
        return False
    return True


def _all_of(step: ViewStep) -> bool:
    """Whether a step shows all that there is, as it is."""
    return step.kind == "slices" and all(
        piece.start is ZERO and piece.size == Term("int", extent) and piece.stride == 1 and not piece.single
        for piece, extent in zip(step.slices, step.dims, strict=True)
    )


def _get(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    view = through(on, view_of(on, operands[0]), planted(equation.params["tree"], operands[1:]))
    return [load(on, view, equation.outvars[0])]


def load(
    on: Pass, view: View, variable: Variable, mask: Value | None = None, other: Value | None = None, queue: str = ""
) -> Value:
    """The result of a load of a view: `other` where the mask does not hold, or undefined without it.

    queue: as of `effects.Access`.
    """
    access = Access("read", view, on.spot(), mask=mask, queue=queue)
    on.effects.append(access)
    dims = dims_of(variable.aval)
    value = loaded(on, view, access, dims, variable.aval.dtype)
    if mask is None:
        return value
    on.masks.append(Mask(mask, access.spot, (other, value)))
    return _masked(access.name, value, mask, other)


def truths(mask: Value | None) -> Value | None:
    """A mask whose elements are conditions, also where they are loaded; None = none."""
    if mask is None:
        return None
    undefined = None if mask.defined else mask.undefined
    found = Value(mask.dims, mask.dtype, lambda index: condition_of(mask.number(index)), undefined, span=mask.span)
    found.same, found.made = mask.same, mask.made
    return found


def described(step: ViewStep) -> tuple[object, ...]:
    """A step of a view, equal where it is the same one."""
    slices = tuple((piece.start, piece.size, piece.stride, piece.single) for piece in step.slices)
    return step.kind, step.dims, step.after, slices, step.permutation, step.dtype, step.picks


def _masked(name: str, value: Value, mask: Value, other: Value | None) -> Value:
    """A masked load: masked-off elements are `other`, or undefined."""

    def condition(index: Index) -> Term:
        try:
            return mask.number(aligned(mask, value.dims, index))
        except Lost as lost:
            return maybe(str(lost))

    def number(index: Index) -> Term:
        if other is None:
            return value.number(index)
        return Term(
            "select",
            mask.number(aligned(mask, value.dims, index)),
            value.number(index),
            other.number(aligned(other, value.dims, index)),
        )

    def undefined(index: Index) -> Term:
        held = condition(index)
        left = negation(held)
        none = left_out(name, index) if other is None else other.undefined(aligned(other, value.dims, index))
        rest = all_of([left, none])
        return any_of([mask.undefined(aligned(mask, value.dims, index)), all_of([held, value.undefined(index)]), rest])

    return Value(value.dims, value.dtype, number, undefined, span=None if other is None else hull([value, other]))


def _swap(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[Value]:
    reference, value, *rest = operands
    view = through(on, view_of(on, reference), planted(equation.params["tree"], rest))
    return _stored(on, view, as_array(value), None, equation.outvars[0])


def _stored(on: Pass, view: View, value: Value, mask: Value | None, variable: Variable) -> list[Value]:
    # a swap also gives the old contents, which are rarely used
    before = [Value(value.dims, value.dtype, problems.SWAP())]
    if on.is_used(variable):
        before = [load(on, view, variable, mask)]
    if mask is not None:
        on.masks.append(Mask(mask, on.spot()))
    on.effects.append(Access("write", view, on.spot(), value, mask))
    return before


def _added(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    reference, value, *rest = operands
    view = through(on, view_of(on, reference), planted(equation.params["tree"], rest))
    # `_addupdate_lowering_rule` of jax/_src/pallas/triton/lowering.py
    atomic = "add" if on.kernel.platform == "triton" else ""
    on.effects.append(Access("add", view, on.spot(), value, atomic=atomic))
    return []


def _masked_load(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    reference, transforms, mask, other = planted(equation.params["args_tree"], operands)
    if equation.params.get("is_volatile"):
        raise UnsupportedOp(problems.VOLATILE_LOAD())
    view = through(on, view_of(on, reference), transforms)
    return [load(on, view, equation.outvars[0], truths(mask), other)]


def _masked_swap(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[Value]:
    reference, transforms, value, mask = planted(equation.params["args_tree"], operands)
    view = through(on, view_of(on, reference), transforms)
    return _stored(on, view, value, truths(mask), equation.outvars[0])


def allocated(on: Pass, aval: MemRefType, transforms: Sequence[Transform] = ()) -> View:
    """Memory that the body allocates. transforms: through which it sees it. An accumulator of a GPU holds zeros."""
    memory = aval.memory
    dims, tilings, swizzle = _lies(dims_of(aval), transforms)
    role = "semaphore" if memory == "semaphore" else "fresh"
    name = on.named("scoped")
    dtype = element_type(aval.dtype)
    arrivals = int(getattr(aval.dtype, "num_arrivals", 0)) if dtype in ("barrier", "cluster_barrier") else 0
    axes = tuple(getattr(aval.dtype, "collective_axes", ())) if dtype == "cluster_barrier" else ()
    if getattr(aval.dtype, "leader_tracked", False):
        axes, arrivals = (), 0
    pipeline = on.scope == "pipeline"
    found = BodyReference(
        name,
        role,
        dims,
        dtype,
        memory,
        fresh_in=on.loops,
        pipeline=pipeline,
        arrivals=arrivals,
        across=axis_groups(axes),
        tilings=tilings,
        swizzle=swizzle,
        orders=bool(getattr(aval.dtype, "orders_tensor_core", False)),
        lanes=aval.lanes,
        packing=aval.packing,
    )
    on.references.append(found)
    if memory == "regs":
        zeros = Value(dims, aval.dtype, "a zero")
        on.effects.append(Access("write", View(found), on.spot(), zeros))
    return View(found)


def _lies(
    dims: tuple[int, ...], transforms: Sequence[Transform | None]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...], int]:
    """How memory lies: the extents that the body sees, the tiles, and the bytes of rows that are permuted."""
    tilings: list[tuple[int, ...]] = []
    swizzle = 0
    for transform in transforms:
        if not isinstance(transform, Other) or transform.kind not in PLACES:
            raise UnsupportedOp(problems.MEMORY_THROUGH("" if transform is None else named(transform)))
        if transform.kind == "UntilingTransform":
            tilings.append(tuple(map(int, transform.parts["tiling"])))
            dims = _untiled(dims, tilings[-1])
        elif transform.kind == BATCH:
            dims = batched(dims, tuple(map(int, transform.parts["batch_shape"])))
        else:
            swizzle = int(transform.parts["swizzle"])
    return dims, tuple(tilings), swizzle


def batched(dims: tuple[int, ...], batch: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of arrays of tensor memory that lie side by side in its columns. Of other rows it may be another one.

    >>> batched((128, 512), (2,))
    (2, 128, 256)
    """
    if len(dims) != 2 or dims[0] != _TENSOR_ROWS or dims[1] % prod(batch):
        raise UnsupportedOp(problems.MEMORY_THROUGH(BATCH))
    return (*batch, dims[0], dims[1] // prod(batch))


def _untiled(dims: tuple[int, ...], tiling: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an array whose last dimensions lie in tiles: the tiles' places, then those within tiles.

    >>> _untiled((2, 16, 1, 8, 64), (8, 64))
    (2, 128, 64)
    """
    outer = dims[: -2 * len(tiling)]
    tiles = dims[-2 * len(tiling) : -len(tiling)]
    if dims[-len(tiling) :] != tiling:
        raise UnsupportedOp(problems.TILED_MEMORY(dims, tiling))
    return (*outer, *(count * size for count, size in zip(tiles, tiling, strict=True)))


def _fresh(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    return [allocated(on, equation.outvars[0].aval)]


PRIMITIVES: dict[str, Rule] = {
    "empty_ref": _fresh,
    "get": _get,
    "swap": _swap,
    "addupdate": _added,
    "masked_load": _masked_load,
    "masked_swap": _masked_swap,
    "load": _masked_load,
}
