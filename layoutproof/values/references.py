"""Memory: references, views of them, loads, stores, copies that land when they are waited for, semaphores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike

from layoutproof.bodies.effects import BodyReference
from layoutproof.bodies.memory import BATCH, PLACES, aliased, as_it_lies, batched, named, place_of
from layoutproof.core.element_types import element_type
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
    axis_groups,
    planted,
)
from layoutproof.values.kinds import Shaped
from layoutproof.values.known import BitWords, Known, combined, moved, numpy_type
from layoutproof.values.memory import (
    CopyUnderWay,
    ElementView,
    HeldMemory,
    PhasedBarrier,
    Piece,
    Semaphore,
    SharedPlace,
    TensorMemory,
)
from layoutproof.values.one_place import OnePlace
from layoutproof.values.refusals import OutOfBounds
from layoutproof.values.state import DevicesTogether, Rule, Walking
from layoutproof.values.words import bits_of

Array = np.ndarray[Any, Any]


def fresh(
    on: Walking, aval: MemRefType, name: str = "", transforms: Sequence[Transform] = ()
) -> HeldMemory | Semaphore:
    """Memory that was never written; accumulators of a GPU hold zeros. transforms: through which it is seen."""
    shape = tuple(int(n) for n in aval.shape)
    if aval.memory == "semaphore":
        return _counters(on, aval.dtype, shape)
    if aval.memory == "regs":
        return HeldMemory(Known(np.zeros(shape, held_type(aval.dtype))), aval.dtype, name)
    layout = _laid(on, transforms)
    for transform in layout:
        shape = _untiled(on, shape, transform)
    missing = missing_of(on, shape, aval.dtype)
    if aval.memory == "tmem":
        return TensorMemory(unwritten(on, shape, aval.dtype), aval.dtype, name, missing, layout)
    return HeldMemory(unwritten(on, shape, aval.dtype), aval.dtype, name, missing, layout)


def held_type(dtype: Dtype) -> DTypeLike:
    """The type of known numbers: floats are held as float64."""
    return numpy_type(dtype) if dtype.kind in "iub" else np.dtype(np.float64)


def _counters(on: Walking, dtype: Dtype, shape: tuple[int, ...]) -> Semaphore:
    """Semaphores, or barriers of a GPU."""
    arrivals = getattr(dtype, "num_arrivals", None)
    if arrivals is None:
        return Semaphore(shape)
    axes = tuple(getattr(dtype, "collective_axes", ()))
    if getattr(dtype, "leader_tracked", False):
        raise on.refuse("a barrier that one program of a cluster tracks")
    return PhasedBarrier(shape, arrivals=int(arrivals), across=axis_groups(axes))


def _laid(on: Walking, transforms: Sequence[Transform]) -> tuple[Other, ...]:
    """The transforms of memory that a body allocates, which say where its elements lie and change none."""
    found = []
    for transform in transforms:
        if not isinstance(transform, Other) or transform.kind not in PLACES:
            raise on.refuse(f"memory through {named(transform)}")
        found.append(transform)
    return tuple(found)


def _untiled(on: Walking, shape: tuple[int, ...], transform: Other) -> tuple[int, ...]:
    """The shape in which memory that lies in tiles is seen: the tiles' places are before those within tiles.

    Batches of tensor memory are columns beside one another.
    """
    if transform.kind == BATCH:
        return batched(shape, tuple(map(int, transform.parts["batch_shape"])))
    if transform.kind != "UntilingTransform":
        return shape
    tiling = tuple(map(int, transform.parts["tiling"]))
    many = len(tiling)
    tiles = shape[-2 * many : -many]
    if len(tiles) != many or shape[-many:] != tiling:
        raise on.refuse(f"memory of {list(shape)} in tiles of {list(tiling)}")
    return (*shape[: -2 * many], *(count * size for count, size in zip(tiles, tiling, strict=True)))


def missing_of(on: Walking, shape: Sequence[int], dtype: Dtype) -> Array | None:
    """Which integers of memory that was never written are missing: all; floats are undefined by themselves."""
    if getattr(dtype, "kind", "f") not in "iub" or not prod(shape):
        return None
    on.complete = False
    return np.ones(tuple(shape), bool)


def unwritten(on: Walking, shape: Sequence[int], dtype: Dtype) -> Shaped:
    """The contents of uninitialised memory: any integers, undefined floats."""
    if getattr(dtype, "kind", "f") in "iub":
        return Known(on.numbers.garbage(shape, dtype))
    return on.numbers.undefined(shape)


def view_of(on: Walking, value: Shaped | Transformed) -> ElementView:
    """A reference, or one that carries its own transforms."""
    if isinstance(value, ElementView):
        return value
    if isinstance(value, HeldMemory | Semaphore):
        return ElementView(value, None, value.shape)
    if isinstance(value, Transformed):
        return through(on, view_of(on, value.ref), value.transforms)
    raise on.refuse(f"an address that is no reference but {type(value).__name__}")


def places_of(view: ElementView) -> Array:
    """The flat places of a view's elements, in its shape."""
    if view.places is not None:
        return view.places
    return np.arange(prod(view.memory.shape), dtype=np.int64).reshape(view.memory.shape)


def index_of(on: Walking, entry: Shaped | Transformed | int) -> int | Array:
    """A known number or array of an index, which may stand in memory."""
    if isinstance(entry, HeldMemory | ElementView | Transformed):
        entry = load(on, view_of(on, entry))
    if isinstance(entry, Known):
        on.inside = on.inside and not entry.sampled
        if entry.array.dtype.kind not in "iub":
            raise on.refuse("a place in memory that is no integer")
        return entry.array if entry.shape else int(entry.array)
    if isinstance(entry, int | np.integer):
        return int(entry)
    if isinstance(entry, np.ndarray):
        return entry
    raise on.refuse("a place in memory that rests on data")


def through(
    on: Walking, view: ElementView, transforms: Transform | tuple[Transform | None, ...] | None, clip: bool = False
) -> ElementView:
    """A view through more transforms. clip: places outside become -1, for masked accesses."""
    steps = transforms if isinstance(transforms, tuple) else (transforms,)
    if (one := place_of(steps)) is not None:
        alias, lies, steps = one
        view = _aliased(on, view, alias, lies)
    for transform in _after_layout(on, view, steps):
        if transform is None:
            continue
        if view.words and not isinstance(transform, Bitcast):
            view = _of_words([through(on, word, transform, clip) for word in view.words], view.dtype)
        elif isinstance(transform, Indexed):
            view = _indexed(on, view, transform.indices, clip)
        elif isinstance(transform, Reshaped):
            shape = tuple(int(n) for n in transform.shape)
            view = ElementView(view.memory, places_of(view).reshape(shape), shape)
        elif isinstance(transform, Transposed):
            turned = np.transpose(places_of(view), tuple(transform.permutation))
            view = ElementView(view.memory, turned, turned.shape)
        elif isinstance(transform, Bitcast):
            view = _as_words(on, view, transform.dtype)
        else:
            raise on.refuse(f"a view through {named(transform)}")
    return view


def _aliased(on: Walking, view: ElementView, transform: Other, lies: Sequence[Transform | None]) -> ElementView:
    """One of several arrays that have one place (`RefUnion`)."""
    around = view.memory
    if view.at is not None or view.box is not None or not isinstance(around, HeldMemory) or around.layout:
        raise on.refuse(f"a part of memory through {transform.kind}")
    memory = "tmem" if isinstance(around, TensorMemory) else "shared"
    found = aliased(BodyReference("", "fresh", around.shape, element_type(around.dtype), memory), transform, lies)
    return view_of(on, member(on, around, found, transform.parts["dtype"]))


def member(on: Walking, around: HeldMemory, reference: BodyReference, dtype: Dtype) -> HeldMemory:
    """The array of a place that a reference is; nobody has written it where nobody has written the place."""
    found = around.members.get(as_it_lies(reference))
    if found is None:
        kind = TensorMemory if isinstance(around, TensorMemory) else HeldMemory
        found = kind(unwritten(on, reference.dims, dtype), dtype, around.name, missing_of(on, reference.dims, dtype))
        for place, own in zip(_levels(around), _levels(found), strict=True):
            first = next((one.place for one in place.members.values() if one.place is not None), None)
            own.place = SharedPlace(around, reference, OnePlace() if first is None else first.doubts)
            own.place.doubts.add(reference)
            place.members[as_it_lies(reference)] = own
    return found


def _levels(memory: HeldMemory) -> list[HeldMemory]:
    """Memory, and of tensor memory what is in it once MMAs have ended."""
    return [memory, memory.settled] if isinstance(memory, TensorMemory) else [memory]


def _after_layout(
    on: Walking, view: ElementView, transforms: tuple[Transform | None, ...]
) -> tuple[Transform | None, ...]:
    """The transforms of memory of a GPU after those that say where its elements lie."""
    layout = getattr(view.memory, "layout", ())
    if not layout or view.at is not None or view.box is not None:
        return transforms
    if transforms[: len(layout)] != layout:
        raise on.refuse(f"memory that is seen without its {layout[0].kind}")
    return transforms[len(layout) :]


def _as_words(on: Walking, view: ElementView, dtype: Dtype) -> ElementView:
    """Elements as words: those that share one are rows that follow one another, the first in the lowest bits."""
    old = view.memory.dtype if view.dtype is None else view.dtype
    if element_type(dtype) == element_type(old):
        return view
    many, left = divmod(bits_of(dtype), bits_of(old))
    if view.words or not many or left or len(view.shape) < 2:
        raise on.refuse("a view of elements as narrower ones, or of words as others")
    at = places_of(view)
    # places that are left out, of masked accesses, are no elements of a word
    return _of_words(
        [ElementView(view.memory, at[..., k::many, :], at[..., k::many, :].shape) for k in range(many)], dtype
    )  # fmt: skip


def _of_words(words: Sequence[ElementView], dtype: Dtype | None) -> ElementView:
    return ElementView(words[0].memory, np.stack([places_of(w) for w in words]), words[0].shape, tuple(words), dtype)


def _indexed(on: Walking, view: ElementView, indices: Sequence[Span | Shaped | int], clip: bool) -> ElementView:
    """The part of a view that indices name. clip: whether elements outside are left out, else they end the walk."""
    pieces: list[Piece] = []
    indices, ignored = _listed(on, indices)
    for entry, extent in zip(indices, view.shape, strict=True):
        piece, outside = _span(on, entry, extent) if isinstance(entry, Span) else _elements(index_of(on, entry), extent)
        if outside and not clip:
            raise OutOfBounds(outside)
        on.inside = on.inside and not outside
        pieces.append(piece)
    if all(isinstance(p, slice) and p == slice(0, n, 1) for p, n in zip(pieces, view.shape, strict=True)):
        return view
    within = list(zip(pieces, view.shape, strict=True))
    if view.at is None and view.box is None and all(_is_box(p, n) for p, n in within):
        shown = tuple(len(range(n)[p]) for p, n in within if isinstance(p, slice))
        return ElementView(view.memory, None, shown, box=cast("tuple[slice | int, ...]", tuple(pieces)))
    spans = [isinstance(entry, Span) and not isinstance(p, slice) for p, entry in zip(pieces, indices, strict=True)]
    if any(spans) or (clip and any(not isinstance(p, slice) and _is_outside(p, n) for p, n in within)):
        found = _left_out(places_of(view), pieces, spans)
    else:
        found = np.asarray(places_of(view)[tuple(pieces)])
    found = _but(found, ignored)
    return ElementView(view.memory, found, found.shape)


def _but(places: Array, ignored: Array | None) -> Array:
    """Places of rows, -1 where a row is ignored."""
    return places if ignored is None else np.where(ignored.reshape(-1, *(1,) * (places.ndim - 1)), -1, places)


def _listed(on: Walking, indices: Sequence[Span | Shaped | int]) -> tuple[list[Span | Shaped | int], Array | None]:
    """Indices with the places of a `plsc.Indices`, and which are ignored; these are 0, which is never outside."""
    found, ignored = list(indices), None
    for k, entry in enumerate(indices):
        if not isinstance(entry, Other):
            continue
        if "values" not in entry.parts:
            raise on.refuse(f"an index that is a {entry.kind}")
        places, value = np.asarray(index_of(on, entry.parts["values"])), entry.parts.get("ignored_value")
        found[k] = places
        if value is None:
            continue
        if k or any(not isinstance(other, Span) for other in indices[1:]):
            raise on.refuse("a list of places of which some are ignored beside an index of another dimension")
        ignored = places == int(value)
        found[k] = np.where(ignored, 0, places)
    return found, ignored


def _span(on: Walking, span: Span, extent: int) -> tuple[Piece, str]:
    """The elements of a slice, and which are outside of an extent, in words; "" where none is."""
    start, size = (cast(int, index_of(on, part)) for part in (span.start, span.size))
    stride = int(span.stride or 1)
    last = start + (size - 1) * stride
    if size and (start < 0 or last >= extent):
        return start + stride * np.arange(size), f"elements {start} to {last} of {extent}"
    return slice(start, last + 1 if size else start, stride), ""


def _elements(at: int | Array, extent: int) -> tuple[Piece, str]:
    """An index, or an array of them, and which are outside of an extent, in words; "" where none is."""
    if not _is_outside(at, extent):
        return at, ""
    return at, f"element {at if np.ndim(at) == 0 else np.asarray(at).ravel()[:4].tolist()} of {extent}"


def _is_outside(at: int | Array, extent: int) -> bool:
    return bool(np.any((np.asarray(at) < 0) | (np.asarray(at) >= extent)))


def _is_box(piece: Piece, extent: int) -> bool:
    return isinstance(piece, slice) or (isinstance(piece, int) and 0 <= piece < extent)


def _left_out(base: Array, pieces: Sequence[Piece], spans: Sequence[bool]) -> Array:
    """The places of parts, -1 of those outside. spans: which pieces are slices that reach outside, as arrays.

    Other arrays are taken together, as NumPy does.
    """
    chosen: list[Piece] = list(pieces)
    for k, piece in enumerate(pieces):
        n = base.shape[k]
        if isinstance(piece, slice):
            continue
        inside = (np.asarray(piece) >= 0) & (np.asarray(piece) < n)
        if spans[k]:
            there = inside.reshape(-1, *(1,) * (base.ndim - k - 1))
            base, chosen[k] = np.where(there, np.take(base, np.clip(piece, 0, n - 1), axis=k), -1), slice(None)
        else:
            # one more element, which stands for what is outside
            base = np.concatenate([base, np.full_like(base.take([0], axis=k), -1)], axis=k)
            chosen[k] = np.where(inside, piece, n)
    return np.asarray(base[tuple(chosen)])


def load(on: Walking, view: ElementView) -> Shaped:
    """The contents."""
    memory = view.memory
    if view.words:
        return BitWords(tuple(load(on, word) for word in view.words), memory.dtype)
    if on.watch is not None:
        on.watch.loads(on, memory)
    _known(on, view)
    if isinstance(memory, HeldMemory) and memory.missing is not None:
        on.defined = on.defined and not bool(_part(memory.missing, view).any())
    whole = view.at is None and view.box is None
    if isinstance(memory, Semaphore) and not whole:
        raise on.refuse("what a semaphore counts")
    found: Shaped = memory.value if whole else memory.taken(on.numbers, view)
    if on.watch is not None:
        on.watch.read(on, found)
    return found


def _known(on: Walking, view: ElementView) -> None:
    """Raises where elements hold bits of another array that has the same place."""
    place = getattr(view.memory, "place", None)
    if place is not None and place.doubts.is_doubtful(place.reference, view.box, view.at):
        raise on.refuse("elements that hold bits of another array in the same place (RefUnion)")


def _part(missing: Array, view: ElementView) -> Array:
    return missing[view.box] if view.box is not None else missing if view.at is None else missing.reshape(-1)[view.at]


def store(on: Walking, view: ElementView, value: Shaped, mask: Array | None = None, missing: bool = False) -> None:
    """Puts a value there; with a mask where it holds. missing: whether they are integers that were never written."""
    memory = view.memory
    if view.words:
        if not isinstance(value, BitWords) or value.dtype != memory.dtype or len(value.parts) != len(view.words):
            raise on.refuse("what is stored to a view of words is not their elements")
        for word, part in zip(view.words, value.elements(), strict=True):
            store(on, word, Known(np.zeros(word.shape)) if part is None else part, mask)
        return
    value = _held_in(memory, value, missing)
    if on.watch is not None and not on.watch.stores(on, memory, value):
        return
    memory.changed = True
    if memory.place is not None:
        at = view.at if mask is None else view.places
        memory.place.doubts.stores(memory.place.reference, view.box, at, mask)
    if view.at is None and view.box is None and mask is None:
        if isinstance(value, Known) and not isinstance(memory.value, Known):
            value = on.data(value)
        memory.value = moved(on.numbers, value, lambda r: np.broadcast_to(r, memory.shape))
        memory.missing = missing_of(on, memory.shape, memory.dtype) if missing else None
        return
    if (box := view.box) is not None and mask is None:

        def put_box(out: Array, part: Array) -> None:
            out[box] = part

        memory.put(on.numbers, value, put_box)
        if (left := _left(on, memory, missing)) is not None:
            left[box] = missing
        return
    at = places_of(view)
    chosen = (at >= 0) if mask is None else (np.broadcast_to(mask, at.shape) & (at >= 0))
    every = bool(chosen.all())
    flat = at.reshape(-1) if every else at[chosen]

    def put(out: Array, part: Array) -> None:
        given = np.broadcast_to(part, at.shape)
        out.reshape(-1)[flat] = given.reshape(-1) if every else given[chosen]

    memory.put(on.numbers, value, put)
    if (left := _left(on, memory, missing)) is not None:
        left.reshape(-1)[flat] = missing


def _held_in(memory: HeldMemory, value: Shaped, missing: bool) -> Shaped:
    """A value as memory holds it: words of one element each are elements, seen through another type.

    missing: whether they are integers that were never written, which may be any: 0 stands beside bits of data.
    """
    if missing and memory.holds_words:
        return Known(np.zeros(value.shape))
    if isinstance(value, BitWords) and len(value.parts) == 1 and value.dtype == memory.dtype:
        (part,) = value.elements()
        return Known(np.zeros(value.shape)) if part is None else part
    return value


def _left(on: Walking, memory: HeldMemory, missing: bool) -> Array | None:
    """Where it is kept which integers of memory were never written. missing: whether there are some from now on."""
    if missing and memory.missing is None:
        memory.missing = np.zeros(memory.shape, bool)
        on.complete = False
    return memory.missing


def touched(on: Walking, view: ElementView, written: bool) -> None:
    """Tells the walk that memory is read or written: what a copy in flight writes, or, where it is written, reads."""
    for copy in on.flying:
        into = _meet(view, copy.target)
        if into or (written and _meet(view, copy.source)):
            if on.ordered and on.inside:
                done, way = "written" if written else "read", "into" if into else "out of"
                on.race = (
                    f"{view.memory.name or 'memory'} is {done} at {on.place()} while a copy {way} it may be in flight, "
                    f"started at {copy.at}: not all bytes of its semaphore are waited for"
                )
            on.ordered = False
            return


def _meet(a: ElementView, b: ElementView) -> bool:
    if a.memory is not b.memory:
        return False
    if a.box is not None and b.box is not None:
        pairs = zip(a.box, b.box, a.memory.shape, strict=True)
        return all(not set(_along(x, n)).isdisjoint(_along(y, n)) for x, y, n in pairs)
    if a.places is None or b.places is None:
        return True
    # -1 is no place: something is left out there
    return bool(np.isin(a.places[a.places >= 0], b.places).any())


def _along(piece: slice | int, extent: int) -> range:
    """The elements of one dimension."""
    return range(extent)[piece] if isinstance(piece, slice) else range(piece, piece + 1)


def _get(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    view = through(on, view_of(on, operands[0]), planted(equation.params["tree"], operands[1:]))
    touched(on, view, False)
    return [load(on, _there(view))]


def _swap(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    reference, value, *rest = operands
    view = through(on, view_of(on, reference), planted(equation.params["tree"], rest))
    touched(on, view, True)
    before = load(on, view) if on.is_used(equation.outvars[0]) else value
    store(on, _there(view), value)
    return [before]


def _there(view: ElementView) -> ElementView:
    """A view of which all elements are touched. OutOfBounds where its array does not have one of its block."""
    if view.at is not None and bool((places_of(view) < 0).any()):
        raise OutOfBounds("an element of a block that its array does not have")
    return view


def _added(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    reference, value, *rest = operands
    view = through(on, view_of(on, reference), planted(equation.params["tree"], rest))
    touched(on, view, True)
    add_to(on, _there(view), value)
    return []


def mask_of(on: Walking, mask: Shaped | None, shape: Sequence[int]) -> Array | None:
    """Where a mask holds, None where there is none."""
    if mask is None:
        return None
    if not isinstance(mask, Known):
        raise on.refuse("a mask of data")
    return np.broadcast_to(mask.array.astype(bool), tuple(shape))


def _masked_load(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    reference, transforms, mask, other = planted(equation.params["args_tree"], operands)
    view = through(on, view_of(on, reference), transforms, clip=mask is not None)
    touched(on, view, False)
    held = mask_of(on, mask, view.shape)
    return [load(on, _there(view)) if held is None else masked_load(on, view, held, other)]


def masked_load(on: Walking, view: ElementView, held: Array, other: Shaped | None) -> Shaped:
    """The contents where a mask holds; elsewhere `other`, None = unknown."""
    if view.words:
        raise on.refuse("a masked load of words")
    if on.watch is not None:
        on.watch.loads(on, view.memory)
    _known(on, view)
    at = places_of(view)
    if (held & (at < 0)).any():
        raise OutOfBounds("an element that the mask holds lies outside")
    found = view.memory.taken(on.numbers, ElementView(view.memory, np.maximum(at, 0), at.shape))
    if on.watch is not None:
        on.watch.read(on, found)
    if other is None:
        other = unwritten(on, view.shape, view.memory.dtype)
        on.defined = on.defined and (bool(held.all()) or missing_of(on, view.shape, view.memory.dtype) is None)
    if view.memory.missing is not None:
        on.defined = on.defined and not bool((view.memory.missing.reshape(-1)[np.maximum(at, 0)] & held).any())
    return combined(on.numbers, [found, other], lambda parts: np.where(held, parts[0], parts[1]))


def _masked_swap(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    reference, transforms, value, mask = planted(equation.params["args_tree"], operands)
    view = through(on, view_of(on, reference), transforms, clip=mask is not None)
    touched(on, view, True)
    held = mask_of(on, mask, view.shape)
    at = places_of(view)
    if held is not None and (held & (at < 0)).any():
        raise OutOfBounds("an element that the mask holds lies outside")
    view = _there(view) if held is None else view
    before = value
    if on.is_used(equation.outvars[0]):
        if view.words or view.memory.missing is not None:
            raise on.refuse("what a masked store gives of what was there")
        before = view.memory.taken(on.numbers, ElementView(view.memory, np.maximum(at, 0), at.shape))
    store(on, view, value, held)
    return [before]


def _start(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    parts = planted(equation.params["tree"], operands)
    source, target, semaphore, _, device = parts
    if device is not None:
        return _sent(on, equation, parts)
    slot = _slot(on, semaphore)
    copy = CopyUnderWay(view_of(on, source), view_of(on, target), slot, bool(equation.params.get("add")), on.place())
    touched(on, copy.source, False)
    touched(on, copy.target, True)
    on.flying.append(copy)
    if not copy.add:
        # the contents are undefined until the wait
        _, into = _both_there(copy.source, copy.target)
        dtype = into.memory.dtype
        for view in into.words or (into,):
            store(on, view, unwritten(on, view.shape, dtype), missing=getattr(dtype, "kind", "f") in "iub")
    slot[0].waiting.setdefault(slot[1], []).append(copy)
    return []


def _slot(on: Walking, semaphore: Shaped | Transformed) -> tuple[Semaphore, int]:
    """A semaphore, with the place in it that is meant."""
    return _first_of(view_of(on, semaphore))


def _first_of(view: ElementView) -> tuple[Semaphore, int]:
    return view.memory, int(places_of(view).reshape(-1)[0])


def _sent(on: Walking, equation: Equation, parts: Sequence[Any]) -> list[Shaped]:
    """A copy to another device: it lands at once, as no effect touches its memory before the wait.

    That is a premise of the answer (`dma_order`, `device_races`).
    """
    source, target, semaphore, sent, device = parts
    lockstep = _lockstep(on)
    to = lockstep.number(on, equation, device)
    there = view_of(on, target)
    there = ElementView(lockstep.peer(on, to, there.memory), there.places, there.shape)
    come, place = _slot(on, semaphore)
    copy = CopyUnderWay(
        view_of(on, source), there, (lockstep.peer(on, to, come), place), bool(equation.params.get("add"))
    )
    touched(on, copy.source, False)
    land(on, copy)
    for slot in (copy.slot, _slot(on, sent)):
        slot[0].waiting.setdefault(slot[1], []).append(replace(copy, slot=slot, done=True))
    return []


def _lockstep(on: Walking) -> DevicesTogether:
    """The devices that run the kernel, one at a time."""
    if on.lockstep is None:
        raise on.refuse("a copy to another device, or a signal")
    on.ordered = False
    return on.lockstep


def _wait(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    source, target, semaphore, _, device = planted(equation.params["tree"], operands)
    if device is not None:
        _lockstep(on)
    slot = _slot(on, semaphore)
    waiting = slot[0].waiting.setdefault(slot[1], [])
    moving = view_of(on, source if target is None else target)
    size = prod(moving.shape)
    landed = 0
    while landed < size:
        if not waiting and on.lockstep is not None:
            on.lockstep.wait(on, lambda: bool(waiting))
        if not waiting:
            raise on.refuse("a wait for a copy that was not started")
        copy = waiting.pop(0)
        landed += prod(copy.target.shape)
        on.ordered = on.ordered and copy.target.memory.dtype == moving.memory.dtype
        land(on, copy)
    on.ordered = on.ordered and landed == size
    if not waiting:
        # while any byte of a slot is not waited for, any copy on it may run
        on.flying = [copy for copy in on.flying if copy.slot != slot]
    return []


def land(on: Walking, copy: CopyUnderWay) -> None:
    """The copy is done."""
    if copy.done:
        return
    source, target = _both_there(copy.source, copy.target)
    value = load(on, source)
    if tuple(value.shape) != target.shape:
        value = moved(on.numbers, value, lambda r: r.reshape(target.shape))
    if copy.add:
        add_to(on, target, value)
    else:
        if target.at is not None and np.unique(target.at).size < target.at.size:
            raise on.refuse("a copy that writes one place twice: their order is not defined")
        store(on, target, value)


def _both_there(source: ElementView, target: ElementView) -> tuple[ElementView, ElementView]:
    """Source and target of a copy without the elements that one of them leaves out."""
    if source.words or target.words or not any(v.at is not None and (v.at < 0).any() for v in (source, target)):
        return source, target
    out_of, into = (places_of(view).reshape(-1) for view in (source, target))
    chosen = (out_of >= 0) & (into >= 0)
    return (
        ElementView(source.memory, out_of[chosen], (int(chosen.sum()),)),
        ElementView(target.memory, into[chosen], (int(chosen.sum()),)),
    )


def add_to(on: Walking, view: ElementView, value: Shaped) -> None:
    """Adds elements to those of a view; where one is named twice it gets both. Places of -1 are left out."""
    if view.at is None or view.words:
        store(on, view, on.numbers.add(on.data(load(on, view)), on.data(value)))
        return
    at = view.at.reshape(-1)
    left = np.flatnonzero(at >= 0)
    while left.size:
        _, first = np.unique(at[left], return_index=True)
        turn, left = left[first], np.delete(left, first)
        part = ElementView(view.memory, at[turn], turn.shape)
        store(on, part, on.numbers.add(on.data(load(on, part)), on.data(elements_at(on, value, turn))))


def elements_at(on: Walking, value: Shaped, which: Array) -> Shaped:
    """The elements of a value at flat places."""
    return moved(on.numbers, value, lambda r: r.reshape(-1)[which])


def _run_scoped(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    jaxpr = equation.params["jaxpr"]
    transforms = equation.params.get("ref_transforms") or ((),) * len(jaxpr.invars)
    made: Sequence[Shaped] = [fresh(on, v.aval, "", own) for v, own in zip(jaxpr.invars, transforms, strict=True)]
    if on.lockstep is not None:
        made = on.lockstep.allocated(on, equation, made)
    found = list(on.run(jaxpr, [*operands, *made]))
    if any(part in made for c in on.flying for part in (c.source.memory, c.target.memory, c.slot[0])):
        on.ordered = False
    return found


def _nothing(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    if equation.outvars:
        raise on.refuse(f"the primitive {equation.primitive.name}")
    return []


def _signal(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """Semaphore counts beside copies are tracked where devices wait for one another."""
    on.ordered = False
    if on.lockstep is None:
        return _nothing(on, equation, operands)
    reference, transforms, amount, device = planted(equation.params["args_tree"], operands)[:4]
    view = through(on, view_of(on, reference), transforms)
    (counter, place), many = _first_of(view), _single(on, amount)
    if equation.primitive.name == "semaphore_wait":
        on.lockstep.wait(on, lambda: counter.counts.get(place, 0) >= many)
        counter.counts[place] -= many
        return []
    if device is not None:
        counter = on.lockstep.peer(on, on.lockstep.number(on, equation, device), counter)
    counter.counts[place] = counter.counts.get(place, 0) + many
    return []


def _single(on: Walking, amount: Shaped) -> int:
    if not isinstance(amount, Known):
        raise on.refuse("a signal of an amount that rests on data")
    on.inside = on.inside and not amount.sampled
    return int(amount.array)


def _barrier(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    return [_lockstep(on).barrier(on)]


def _fresh(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    return [fresh(on, equation.outvars[0].aval)]


def _new(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """A reference that JAX makes of a value."""
    return [HeldMemory(operands[0], equation.invars[0].aval.dtype)]


def _empty(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """`lax.empty`: an array that nobody has filled."""
    aval = equation.outvars[0].aval
    if getattr(aval.dtype, "kind", "f") in "iub":
        # which of its elements are stored later is known of memory alone
        raise on.refuse("an array of integers that nobody fills (lax.empty)")
    return [on.numbers.undefined(tuple(map(int, aval.shape)))]


def _frozen(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """What a reference holds at its end: nothing looks at it again."""
    return [load(on, view_of(on, operands[0]))]


PRIMITIVES: dict[str, Rule] = {
    "get": _get,
    "swap": _swap,
    "addupdate": _added,
    "masked_load": _masked_load,
    "load": _masked_load,
    "masked_swap": _masked_swap,
    "dma_start": _start,
    "dma_wait": _wait,
    "run_scoped": _run_scoped,
    "empty_ref": _fresh,
    "new_ref": _new,
    "ref": _new,
    "freeze": _frozen,
    "empty": _empty,
    "semaphore_signal": _signal,
    "semaphore_wait": _signal,
    "get_barrier_semaphore": _barrier,
    **dict.fromkeys(
        ("delay", "debug_print", "debug_callback", "trace_start", "trace_stop",
         "trace_value", "check"),
        _nothing,
    ),
}  # fmt: skip
