"""Loads and stores: `get`, `swap`, `addupdate`, their masked forms, and the views that they go through."""

from __future__ import annotations

from typing import Any

from layoutproof.bodies.bit_terms import UnsupportedOp, wrapped
from layoutproof.bodies.effects import Access, Mask, Reference, Slice, Step, View, places
from layoutproof.bodies.values import Index, Lost, Value, aligned, dims_of, hull, leaf, maybe
from layoutproof.core.element_types import ELEMENT_BITS, element_type
from layoutproof.core.folding import TRUE, all_of, any_of, negation
from layoutproof.core.term import ZERO, Term
from layoutproof.ir.program import Bitcast, Indexed, Other, Reshaped, Span, Transformed, Transposed, planted
from layoutproof.kernel.contents import entry as known_entry
from layoutproof.kernel.kernel import Table
from layoutproof.kernel.scalar_memory import every_table


def view_of(on: Any, value: Any) -> View:
    """A reference, or one that carries its own transforms. UnsupportedOp for anything else."""
    if isinstance(value, View):
        return value
    if isinstance(value, Transformed):
        return through(on, view_of(on, value.ref), value.transforms)
    raise UnsupportedOp(f"an address that is no reference but {type(value).__name__}")


def through(on: Any, view: View, transforms: Any) -> View:
    """A view through more transforms."""
    for transform in transforms if isinstance(transforms, tuple) else [transforms]:
        if transform is not None:
            view = View(view.reference, (*view.steps, _step(on, view, transform)))
    return view


def _step(on: Any, view: View, transform: Any) -> Step:
    dims = view.dims
    if dims is None:
        raise UnsupportedOp("a view of a view whose shape depends on data")
    if isinstance(transform, Indexed):
        slices = tuple(_slice(on, entry, extent) for entry, extent in zip(transform.indices, dims, strict=True))
        sizes = [piece.size for piece in slices if not piece.single]
        known = all(size.op == "int" for size in sizes)
        return Step("slices", dims, tuple(int(size.args[0]) for size in sizes) if known else None, slices)
    if isinstance(transform, Reshaped):
        return Step("reshape", dims, tuple(int(n) for n in transform.shape))
    if isinstance(transform, Transposed):
        order = tuple(int(d) for d in transform.permutation)
        return Step("transpose", dims, tuple(dims[d] for d in order), permutation=order)
    if isinstance(transform, Bitcast):
        return _bitcast(view, dims, element_type(transform.dtype))
    raise UnsupportedOp(f"a view through {named(transform)}")


def named(transform: Any) -> str:
    """What a view that nobody reads is called."""
    return transform.kind if isinstance(transform, Other) else type(transform).__name__


def _bitcast(view: View, dims: tuple[int, ...], dtype: str) -> Step:
    """The rows that share a word become rows of the other width: the last dimension but one grows or shrinks."""
    old, new = ELEMENT_BITS.get(view.dtype), ELEMENT_BITS.get(dtype)
    if old is None or new is None:
        raise UnsupportedOp(f"a view of {view.dtype} as {dtype}")
    if old == new:
        return Step("reshape", dims, dims, dtype=dtype)
    if len(dims) < 2 or dims[-2] * old % new:
        raise UnsupportedOp(f"a view of {view.dtype}{list(dims)} as {dtype}")
    return Step("bitcast", dims, (*dims[:-2], dims[-2] * old // new, dims[-1]), dtype=dtype)


def _slice(on: Any, entry: Any, extent: int) -> Slice:
    if isinstance(entry, Span):
        return Slice(_term(on, entry.start), _term(on, entry.size), int(entry.stride))
    if isinstance(entry, slice):
        if entry.step not in (None, 1):
            raise UnsupportedOp("a Python slice with a step")
        start = entry.start or 0
        return Slice(_term(on, start), _term(on, (extent if entry.stop is None else entry.stop) - start))
    if isinstance(entry, Value) and entry.dims:
        raise UnsupportedOp("an index that is an array")
    return Slice(_term(on, entry), Term("int", 1), single=True)


def _term(on: Any, value: Any) -> Term:
    if isinstance(value, Value):
        return on.scalar(value)  # type: ignore[no-any-return]
    return Term("int", int(value))


def loaded(on: Any, view: View, access: Access, dims: tuple[int, ...], dtype: Any) -> Value:
    """What a load gives: entries of a table where nothing stores to it, else numbers of its own.

    What is loaded again of memory to which nothing stores is what was loaded before.
    """
    reference, name = view.reference, access.name
    steady = reference.name in on.steady and access.mask is None
    same = on.same(("load", reference.name, *map(_described, view.steps))) if steady else None
    if steady:
        name = on.first_loads.setdefault((same, *(loop.name for loop in access.spot.loops)), name)
    filled = next((t for t in every_table(on.kernel) if t.name == reference.name), None)
    kind = getattr(dtype, "kind", "")
    integral = kind in ("i", "u", "b")

    def entry(index: Index) -> Index | None:
        if reference.name not in on.constant or ELEMENT_BITS[view.dtype] != ELEMENT_BITS[reference.dtype]:
            return None
        at = places(view, index)
        return None if at is None else places(on.constant[reference.name], at)

    if integral and entry((ZERO,) * len(dims)) is None:
        # at once, not when an element is asked for: what the body does not name is the same number in every program
        low, high = (0, 2) if kind == "b" else (None, None)
        on.loads[name] = Table(name, dims or (1,), 8 * int(dtype.itemsize), low, high, signed=kind == "i")

    def number(index: Index) -> Term:
        if not integral:
            raise Lost(f"what {reference.name} holds")
        if name in on.loads:
            return Term("read", Term("name", name), *(index or (ZERO,)))
        at = entry(index) or (ZERO,)
        read = None if filled is None else known_entry(filled, at)
        read = Term("read", Term("name", reference.name), *at) if read is None else read
        # a module's numbers have no sign, and a view may give another one
        other = {"u": "i", "s": "u"}.get("" if filled is None else filled.dtype[:1]) == kind
        return wrapped(read, ELEMENT_BITS[reference.dtype], kind == "i") if other else read

    if reference.name in on.whole:
        found = Value(dims, dtype, number)
    else:
        own = access.name
        found = Value(dims, dtype, number, lambda index: leaf(own, index), lambda index: [(TRUE, leaf(own, index))])
    found.same = same
    return found


def _get(on: Any, equation: Any, operands: list[Any]) -> list[Any]:
    view = through(on, view_of(on, operands[0]), planted(equation.params["tree"], operands[1:]))
    return [_load(on, view, equation.outvars[0])]


def _load(on: Any, view: View, variable: Any, mask: Value | None = None, other: Value | None = None) -> Value:
    access = Access("read", view, on.spot(), mask=mask)
    on.effects.append(access)
    dims = dims_of(variable.aval)
    value = loaded(on, view, access, dims, variable.aval.dtype)
    if mask is None:
        return value
    on.masks.append(Mask(mask, access.spot, (other, value)))
    return _masked(value, mask, other)


def _described(step: Step) -> tuple[Any, ...]:
    """A step of a view, equal where it is the same one."""
    slices = tuple((piece.start, piece.size, piece.stride, piece.single) for piece in step.slices)
    return step.kind, step.dims, step.after, slices, step.permutation, step.dtype


def _masked(value: Value, mask: Value, other: Value | None) -> Value:
    """A masked load: what the mask leaves out is `other`, or undefined."""

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
        rest = left if other is None else all_of([left, other.undefined(aligned(other, value.dims, index))])
        return any_of([mask.undefined(aligned(mask, value.dims, index)), all_of([held, value.undefined(index)]), rest])

    return Value(value.dims, value.dtype, number, undefined, span=None if other is None else hull([value, other]))


def _swap(on: Any, equation: Any, operands: list[Any]) -> list[Any]:
    reference, value, *rest = operands
    view = through(on, view_of(on, reference), planted(equation.params["tree"], rest))
    return _stored(on, view, value, None, equation.outvars[0])


def _stored(on: Any, view: View, value: Value, mask: Value | None, variable: Any) -> list[Any]:
    # a swap also gives what was there; nearly always nobody looks
    before = [Value(value.dims, value.dtype, "what a swap gives")]
    if on.is_used(variable):
        before = [_load(on, view, variable, mask)]
    if mask is not None:
        on.masks.append(Mask(mask, on.spot()))
    on.effects.append(Access("write", view, on.spot(), value, mask))
    return before


def _added(on: Any, equation: Any, operands: list[Any]) -> list[Any]:
    reference, value, *rest = operands
    view = through(on, view_of(on, reference), planted(equation.params["tree"], rest))
    on.effects.append(Access("add", view, on.spot(), value))
    return []


def _masked_load(on: Any, equation: Any, operands: list[Any]) -> list[Any]:
    reference, transforms, mask, other = planted(equation.params["args_tree"], operands)
    view = through(on, view_of(on, reference), transforms)
    return [_load(on, view, equation.outvars[0], mask, other)]


def _masked_swap(on: Any, equation: Any, operands: list[Any]) -> list[Any]:
    reference, transforms, value, mask = planted(equation.params["args_tree"], operands)
    view = through(on, view_of(on, reference), transforms)
    return _stored(on, view, value, mask, equation.outvars[0])


def allocated(on: Any, aval: Any) -> View:
    """Memory that the body allocates."""
    memory = aval.memory
    dims = dims_of(aval)
    role = "semaphore" if memory == "semaphore" else "fresh"
    name = on.named("scoped")
    dtype = element_type(aval.dtype)
    found = Reference(name, role, dims, dtype, memory, fresh_in=on.loops, pipeline=on.scope == "pipeline")
    on.references.append(found)
    return View(found)


def _fresh(on: Any, equation: Any, operands: list[Any]) -> list[Any]:
    return [allocated(on, equation.outvars[0].aval)]


PRIMITIVES = {
    "empty_ref": _fresh,
    "get": _get,
    "swap": _swap,
    "addupdate": _added,
    "masked_load": _masked_load,
    "masked_swap": _masked_swap,
    "load": _masked_load,
}
