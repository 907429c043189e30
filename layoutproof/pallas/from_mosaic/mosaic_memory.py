"""References and what is done with them: slices and other views, loads, stores, copies, semaphores.

Operations and operands as in jaxlib's `_tpu_ops_gen.py` (0.10.2, 0.12.0); meaning by the lowering rules that write
them, jax/_src/pallas/mosaic/lowering.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from layoutproof.bodies import problems as body_problems
from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.ir.program import (
    Array,
    Atom,
    Bitcast,
    Indexed,
    Reshaped,
    Span,
)
from layoutproof.pallas.from_mosaic import problems
from layoutproof.pallas.from_mosaic.mosaic_equations import (
    ALLOCATIONS,
    Found,
    Make,
    MosaicOperation,
    MosaicView,
    Operands,
    Writer,
    aval_of,
    result,
    whole,
)
from layoutproof.pallas.from_mosaic.mosaic_types import shaped


def _sliced(on: Writer, operation: MosaicOperation) -> Found:
    reference, starts, sizes = operation.parts(3)
    seen = on.reference(reference[0])
    dims = shaped(operation.types[0])[0]
    dynamic = iter(sizes)
    given = [n if n is not None else on.value(next(dynamic)) for n in dims]
    if len(starts) != len(dims) or len(dims) != len(seen.dims):
        raise UnsupportedOp(problems.SLICE_RANK())
    spans = tuple(Span(_short(on.value(start)), size) for start, size in zip(starts, given, strict=True))
    return [replace(seen, dims=dims, steps=(*seen.steps, Indexed(spans)))]


def _short(atom: Atom) -> Atom | int:
    value = whole(atom)
    return atom if value is None else value


def _squeezed(on: Writer, operation: MosaicOperation) -> Found:
    """Dimensions of 1 left out; of a slice they become single indices."""
    seen = on.reference(operation.operands[0])
    dims = shaped(operation.types[0])[0]
    gone, at = [], 0
    for k, extent in enumerate(seen.dims):
        if at < len(dims) and extent == dims[at] and len(seen.dims) - k > 0 and not _must_go(seen.dims[k:], dims[at:]):
            at += 1
        elif extent == 1:
            gone.append(k)
        else:
            raise UnsupportedOp(problems.SQUEEZED_REFERENCE())
    if at != len(dims):
        raise UnsupportedOp(problems.SQUEEZED_REFERENCE())
    last = seen.steps[-1] if seen.steps else None
    if isinstance(last, Indexed) and all(isinstance(entry, Span) for entry in last.indices):
        entries = tuple(e.start if k in gone else e for k, e in enumerate(last.indices))
        return [replace(seen, dims=dims, steps=(*seen.steps[:-1], Indexed(entries)))]
    return [_in_shape(seen, dims)]


def _must_go(dims: Sequence[int | None], wanted: Sequence[int | None]) -> bool:
    """Whether the first dimension has to be left out, so that the rest can give what is wanted."""
    return dims[0] == 1 and [n for n in dims[1:] if n != 1] == [n for n in wanted if n != 1] and len(dims) > len(wanted)


def _in_shape(seen: MosaicView, dims: tuple[int | None, ...]) -> MosaicView:
    if None in dims or None in seen.dims or prod(n or 0 for n in dims) != prod(n or 0 for n in seen.dims):
        raise UnsupportedOp(body_problems.VIEW_OF_VIEW())
    if dims == seen.dims:
        return seen
    return replace(seen, dims=dims, steps=(*seen.steps, Reshaped(tuple(n or 0 for n in dims))))


def _viewed(on: Writer, operation: MosaicOperation) -> Found:
    return [_in_shape(on.reference(operation.operands[0]), shaped(operation.types[0])[0])]


def _as_other_type(on: Writer, operation: MosaicOperation) -> Found:
    seen = on.reference(operation.operands[0])
    aval = aval_of(operation.types[0])
    return [replace(seen, dims=shaped(operation.types[0])[0], steps=(*seen.steps, Bitcast(aval.dtype)))]


def _same_reference(on: Writer, operation: MosaicOperation) -> Found:
    """The same memory in another type; its division stays."""
    seen = on.reference(operation.operands[0])
    before, after = (shaped(text) for text in (operation.operand_types[0], operation.types[0]))
    if len(operation.operands) != 1 or before[:2] != after[:2]:
        raise UnsupportedOp(problems.MEMORY_DIVIDED(operation.name))
    return [seen]


def _allocated(on: Writer, operation: MosaicOperation) -> Found:
    made = on.emit("empty_ref", [], aval_of(operation.types[0]))
    return [MosaicView(made, made.aval.shape)]


def _address(
    on: Writer, seen: MosaicView, starts: Sequence[int], sizes: Sequence[int] | None, strides: Sequence[int]
) -> MosaicView:
    """The elements of a reference that an access means. sizes: None = one element, an index per dimension."""
    if len(starts) != len(seen.dims) or (sizes is not None and len(sizes) != len(starts)):
        raise UnsupportedOp(problems.ACCESS_RANK())
    at = [_short(on.value(n)) for n in starts]
    if sizes is None:
        entries: tuple[Any, ...] = tuple(at)
    else:
        steps = strides or [1] * len(at)
        entries = tuple(Span(start, size, step) for start, size, step in zip(at, sizes, steps, strict=True))
    return replace(seen, dims=(), steps=(*seen.steps, Indexed(entries)))


def _loaded(on: Writer, operation: MosaicOperation) -> Found:
    mask: tuple[int, ...] = ()
    if operation.name == "tpu.vector_load":
        (base,), starts, mask = operation.parts(3)
    else:
        base, *starts = operation.operands  # type: ignore[assignment]
    aval = result(operation)
    single = operation.name == "memref.load"
    seen = _address(on, on.reference(base), starts, None if single else aval.shape, operation.numbers("strides"))
    if mask:
        # masked-off elements are undefined
        leaves = Operands()
        reference = leaves.reference(seen)
        held = leaves.value(on.value(mask[0]))
        return [on.emit("masked_load", leaves.atoms, aval, args_tree=(reference, (), held, None))]
    leaves = Operands(seen.base)
    return [on.emit("get", leaves.atoms, aval, tree=leaves.steps(seen.steps))]


def _stored(on: Writer, operation: MosaicOperation) -> Found:
    mask: tuple[int, ...] = ()
    if operation.name == "tpu.vector_store":
        (value,), (base,), starts, mask = operation.parts(4)
    else:
        value, base, *starts = operation.operands  # type: ignore[assignment]
    held = on.value(value)
    single = operation.name == "memref.store"
    seen = _address(on, on.reference(base), starts, None if single else held.aval.shape, operation.numbers("strides"))
    adds = operation.attributes.get("add") is True
    before = Array(held.aval.shape, held.aval.dtype)
    if mask:
        if adds:
            raise UnsupportedOp(problems.SUM_UNDER_MASK())
        leaves = Operands()
        reference = leaves.reference(seen)
        parts = leaves.value(held), leaves.value(on.value(mask[0]))
        on.emit("masked_swap", leaves.atoms, before, args_tree=(reference, (), *parts))
        return []
    leaves = Operands(seen.base, held)
    tree = leaves.steps(seen.steps)
    if adds:
        on.emit("addupdate", leaves.atoms, None, tree=tree)
    else:
        on.emit("swap", leaves.atoms, before, tree=tree)
    return []


def _copy(on: Writer, operation: MosaicOperation) -> Found:
    source, sent, target, semaphore, *elsewhere = operation.parts(7)
    return _moved(on, "dma_start", source[0], target[0], semaphore, sent, elsewhere)


def _moved(
    on: Writer,
    name: str,
    source: int,
    target: int,
    semaphore: tuple[int, ...],
    sent: tuple[int, ...],
    elsewhere: Sequence[tuple[int, ...]],
) -> Found:
    if not semaphore:
        raise UnsupportedOp(problems.NO_SEMAPHORE())
    leaves = Operands()
    parts = [leaves.reference(on.reference(n)) for n in (source, target, semaphore[0])]
    sender = leaves.reference(on.reference(sent[0])) if sent else None
    device = leaves.value(on.value(next(n for part in elsewhere for n in part))) if any(elsewhere) else None
    on.emit(name, leaves.atoms, None, tree=(*parts, sender, device))
    return []


def _waited(on: Writer, operation: MosaicOperation) -> Found:
    """wait_dma2 of jax 0.10, and wait_dma of 0.12, which says which of its semaphores it waits for."""
    if operation.name == "tpu.wait_dma2":
        semaphore, source, target, *elsewhere = operation.parts(5)
        return _moved(on, "dma_wait", source[0], target[0], semaphore, (), elsewhere)
    source, sent, target, semaphore, *elsewhere = operation.parts(7)
    if operation.attributes.get("wait_target") is False:
        return _moved(on, "dma_wait", source[0], target[0], sent, (), elsewhere)
    return _moved(on, "dma_wait", source[0], target[0], semaphore, (), elsewhere)


def _signalled(on: Writer, operation: MosaicOperation) -> Found:
    (semaphore,), (amount,), device, core, _ = operation.parts(5)
    leaves = Operands()
    reference, by = leaves.reference(on.reference(semaphore)), leaves.value(on.value(amount))
    there = [leaves.value(on.value(part[0])) if part else None for part in (device, core)]
    on.emit("semaphore_signal", leaves.atoms, None, args_tree=(reference, (), by, *there))
    return []


def _awaited(on: Writer, operation: MosaicOperation) -> Found:
    semaphore, amount = operation.operands
    leaves = Operands()
    reference, by = leaves.reference(on.reference(semaphore)), leaves.value(on.value(amount))
    on.emit("semaphore_wait", leaves.atoms, None, args_tree=(reference, (), by))
    return []


def _count(on: Writer, operation: MosaicOperation) -> Found:
    seen = on.reference(operation.operands[0])
    return [on.emit("semaphore_read", [seen.base], result(operation))]


OPERATIONS: Mapping[str, Make] = {
    "tpu.memref_slice": _sliced,
    "tpu.memref_squeeze": _squeezed,
    "tpu.memref_reshape": _viewed,
    "tpu.memref_bitcast": _as_other_type,
    **dict.fromkeys(
        (
            "memref.cast", "memref.memory_space_cast", "tpu.erase_memref_layout", "tpu.assume_layout",
            "tpu.reinterpret_cast",
        ),
        _same_reference,
    ),
    **dict.fromkeys(ALLOCATIONS, _allocated),
    **dict.fromkeys(("vector.load", "memref.load", "tpu.vector_load", "tpu.strided_load"), _loaded),
    **dict.fromkeys(("vector.store", "memref.store", "tpu.vector_store", "tpu.strided_store"), _stored),
    "tpu.enqueue_dma": _copy,
    **dict.fromkeys(("tpu.wait_dma", "tpu.wait_dma2"), _waited),
    "tpu.sem_signal": _signalled,
    "tpu.sem_wait": _awaited,
    "tpu.sem_read": _count,
}  # fmt: skip
