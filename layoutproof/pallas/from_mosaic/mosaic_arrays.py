"""Arrays moved, reduced and multiplied: MLIR's vector dialect, and Mosaic's own operations on vectors.

Operations and attributes as in jaxlib's `_tpu_ops_gen.py` and https://mlir.llvm.org/docs/Dialects/Vector.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.ir.program import (
    Array,
    Atom,
    Variable,
    element_type_named,
)
from layoutproof.pallas.from_mosaic import problems
from layoutproof.pallas.from_mosaic.mosaic_arith import spread
from layoutproof.pallas.from_mosaic.mosaic_equations import (
    Found,
    Make,
    MosaicOperation,
    Writer,
    literal,
    operands_of,
    result,
)

_DIMENSIONS = re.compile(r"\[([\d, ]*)\]")
_COMBINED = {
    "add": "add", "sum": "add", "mul": "mul", "maximumf": "max", "maxnumf": "max", "maxsi": "max", "maxui": "max",
    "max": "max", "minimumf": "min", "minnumf": "min", "minsi": "min", "minui": "min", "min": "min", "and": "and",
    "or": "or", "xor": "xor",
}  # fmt: skip
_REDUCED = {
    "add": "reduce_sum", "mul": "reduce_prod", "max": "reduce_max", "min": "reduce_min", "and": "reduce_and",
    "or": "reduce_or", "xor": "reduce_xor",
}  # fmt: skip


def _iota(on: Writer, operation: MosaicOperation) -> Found:
    aval, dimensions = result(operation), operation.numbers("dimensions") or (0,)
    if len(dimensions) != 1:
        raise UnsupportedOp(problems.IOTA())
    return [on.emit("iota", [], aval, dimension=dimensions[0])]


def _broadcast(on: Writer, operation: MosaicOperation) -> Found:
    return [spread(on, on.value(operation.operands[0]), result(operation))]


def _reshaped(on: Writer, operation: MosaicOperation) -> Found:
    aval = result(operation)
    return [on.emit("reshape", [on.value(operation.operands[0])], aval, new_sizes=aval.shape, dimensions=None)]


def _concatenated(on: Writer, operation: MosaicOperation) -> Found:
    found = operands_of(on, operation)
    return [on.emit("concatenate", found, result(operation), dimension=operation.number("dimension"))]


def _piece(on: Writer, operation: MosaicOperation) -> Found:
    (operand,) = operands_of(on, operation)
    aval = result(operation)
    starts, steps = operation.numbers("offsets"), operation.numbers("strides")
    left = [0] * (len(operand.aval.shape) - len(starts))
    return [on.emit("slice", [operand], aval, start_indices=(*starts, *left), strides=(*steps, *(1 for _ in left)))]


def _element(on: Writer, operation: MosaicOperation) -> Found:
    at = operation.numbers("static_position")
    if len(operation.operands) != 1:
        raise UnsupportedOp(problems.ELEMENT_OF_DATA())
    (operand,) = operands_of(on, operation)
    rest = operand.aval.shape[len(at) :]
    starts = (*at, *(0 for _ in rest))
    aval = result(operation)
    one = Array((*(1 for _ in at), *rest), aval.dtype)
    cut = on.emit("slice", [operand], one, start_indices=starts, strides=None)
    return [on.emit("reshape", [cut], aval, new_sizes=aval.shape, dimensions=None)]


def _rotated(on: Writer, operation: MosaicOperation) -> Found:
    if any(operation.attributes.get(name) is not None for name in ("stride", "stride_dimension")):
        raise UnsupportedOp(problems.ROTATION())
    operand, *shift = operands_of(on, operation)
    by = shift[0] if shift else literal(operation.number("amount"), element_type_named("s32"))
    return [on.emit("roll", [operand, by], result(operation), axis=operation.number("dimension"))]


def _repeated(on: Writer, operation: MosaicOperation) -> Found:
    (operand,) = operands_of(on, operation)
    axis, times = operation.number("dimension"), operation.number("times")
    return [on.emit("repeat", [operand], result(operation), axis=axis, repeats=times)]


def _transposed(on: Writer, operation: MosaicOperation) -> Found:
    (operand,) = operands_of(on, operation)
    return [on.emit("transpose", [operand], result(operation), permutation=operation.numbers("permutation"))]


def _gathered(on: Writer, operation: MosaicOperation) -> Found:
    return [on.emit("gather", operands_of(on, operation), result(operation))]


def _kind(operation: MosaicOperation) -> str:
    word = str(operation.attributes.get("kind", "")).partition("<")[2].strip(">")
    if word not in _COMBINED and word not in ("arg_max", "arg_min"):
        raise UnsupportedOp(problems.OPERATION_KIND(operation.name, word or "unknown"))
    return word


def _reduced(on: Writer, operation: MosaicOperation) -> Found:
    """A reduction; of the result and what it starts with, the same again."""
    operand, *start = operands_of(on, operation)
    axes = operation.numbers("reduction_dims") or operation.numbers("dimensions")
    if operation.name == "vector.reduction":
        axes = (0,)
    kind, aval = _COMBINED.get(_kind(operation), ""), result(operation)
    if not kind or not axes:
        raise UnsupportedOp(problems.OPERATION_FORM(operation.name))
    short = Array(tuple(n for k, n in enumerate(operand.aval.shape) if k not in axes), aval.dtype)
    found = on.emit(_REDUCED[kind], [operand], short, axes=axes)
    if short.shape != aval.shape:
        return [_kept(on, found, axes, aval)]
    return [on.emit(kind, [found, *start], aval) if start else found]


def _kept(on: Writer, found: Variable, axes: Sequence[int], aval: Array) -> Atom:
    """A reduction's result for every element that went into it."""
    to = tuple(k for k in range(len(aval.shape)) if k not in axes)
    return on.emit("broadcast_in_dim", [found], aval, shape=aval.shape, broadcast_dimensions=to)


def _reduced_everywhere(on: Writer, operation: MosaicOperation) -> Found:
    (operand,) = operands_of(on, operation)
    axes, word = (operation.number("dim"),), _kind(operation)
    aval = result(operation)
    name = {"arg_max": "argmax", "arg_min": "argmin"}.get(word) or _REDUCED[_COMBINED[word]]
    short = Array(tuple(n for k, n in enumerate(operand.aval.shape) if k not in axes), aval.dtype)
    return [_kept(on, on.emit(name, [operand], short, axes=axes), axes, aval)]


def _place_of_most(on: Writer, operation: MosaicOperation) -> Found:
    (operand,) = operands_of(on, operation)
    name = {"arg_max": "argmax", "arg_min": "argmin"}.get(_kind(operation))
    if name is None:
        raise UnsupportedOp(problems.OPERATION_FORM(operation.name))
    return [on.emit(name, [operand], result(operation), axes=(operation.number("axis"),))]


def _scanned(on: Writer, operation: MosaicOperation) -> Found:
    operand, *mask = operands_of(on, operation)
    name = {"add": "cumsum", "max": "cummax", "min": "cummin"}.get(_COMBINED.get(_kind(operation), ""))
    if mask or name is None:
        raise UnsupportedOp(problems.OPERATION_FORM(operation.name))
    axis = operation.number("dimension") if "dimension" in operation.attributes else len(operand.aval.shape) - 1
    return [on.emit(name, [operand], result(operation), axis=axis, reverse=False)]


def _product(on: Writer, operation: MosaicOperation) -> Found:
    """A product of matrices, and the sum with what it starts with."""
    left, right, start = operands_of(on, operation)
    lists = [tuple(int(n) for n in text.split(",") if n.strip()) for text in _DIMENSIONS.findall(
        str(operation.attributes.get("dimension_numbers", ""))
    )]  # fmt: skip
    if len(lists) == 6:
        lists.append(())
    if len(lists) != 7:
        if any(operation.attributes.get(f"transpose_{side}") not in (None, False) for side in ("lhs", "rhs")):
            raise UnsupportedOp(problems.PRODUCT_FORM())
        lists = [(1,), (0,), (0,), (1,), (0, 0, 1, 1), (), ()]
    one, other, left_out, right_out, order, batch, also = lists
    return [_dot(on, operation, (left, right, start), (one, other), (batch, also), (left_out, right_out), order)]


def _dot(
    on: Writer,
    operation: MosaicOperation,
    operands: tuple[Atom, Atom, Atom],
    contract: tuple[tuple[int, ...], tuple[int, ...]],
    batch: tuple[tuple[int, ...], tuple[int, ...]],
    free: tuple[tuple[int, ...], tuple[int, ...]],
    order: tuple[int, ...],
) -> Atom:
    left, right, start = operands
    aval = result(operation)
    # as dot_general has them: batch dimensions, then what is left of either side, in its order
    natural = [(0, d) for d in batch[0]] + [(0, d) for d in sorted(free[0])] + [(1, d) for d in sorted(free[1])]
    wanted = list(zip(order[::2], order[1::2], strict=True)) or natural
    wanted = [(0, batch[0][batch[1].index(d)]) if side == 1 and d in batch[1] else (side, d) for side, d in wanted]
    if sorted(wanted) != sorted(natural):
        raise UnsupportedOp(problems.PRODUCT_FORM())
    dims = tuple((left, right)[side].aval.shape[d] for side, d in natural)
    found = on.emit("dot_general", [left, right], Array(dims, aval.dtype), dimension_numbers=(contract, batch))
    if wanted != natural:
        order = tuple(natural.index(part) for part in wanted)
        found = on.emit("transpose", [found], Array(tuple(dims[k] for k in order), aval.dtype), permutation=order)
    return on.emit("add", [found, start], aval)


def _contracted(on: Writer, operation: MosaicOperation) -> Found:
    """vector.contract whose maps pick dimensions."""
    left, right, start = operands_of(on, operation)
    maps = [
        tuple(re.findall(r"d\d+", text.rpartition("->")[2])) for text in map(str, operation.attributes["indexing_maps"])
    ]
    if len(maps) != 3 or not operation.attributes.get("iterator_types"):
        raise UnsupportedOp(problems.CONTRACT_FORM())
    one, other, out = maps
    shared = [d for d in one if d in other]
    pairs = [(one.index(d), other.index(d), d in out) for d in shared]
    contract = tuple(a for a, _, kept in pairs if not kept), tuple(b for _, b, kept in pairs if not kept)
    batch = tuple(a for a, _, kept in pairs if kept), tuple(b for _, b, kept in pairs if kept)
    free = _left(one, shared), _left(other, shared)
    order = tuple(n for d in out for n in ((0, one.index(d)) if d in one else (1, other.index(d))))
    return [_dot(on, operation, (left, right, start), contract, batch, free, order)]


def _left(side: Sequence[str], shared: Sequence[str]) -> tuple[int, ...]:
    return tuple(k for k, d in enumerate(side) if d not in shared)


OPERATIONS: Mapping[str, Make] = {
    **dict.fromkeys(("tpu.iota", "vector.step"), _iota),
    **dict.fromkeys(("vector.broadcast", "vector.splat"), _broadcast),
    **dict.fromkeys(("vector.shape_cast", "tpu.reshape"), _reshaped),
    "tpu.concatenate": _concatenated,
    "vector.extract_strided_slice": _piece,
    "vector.extract": _element,
    **dict.fromkeys(("tpu.rotate", "tpu.dynamic_rotate"), _rotated),
    "tpu.repeat": _repeated,
    **dict.fromkeys(("tpu.transpose", "vector.transpose"), _transposed),
    **dict.fromkeys(("vector.multi_reduction", "vector.reduction", "tpu.reduce"), _reduced),
    "tpu.all_reduce": _reduced_everywhere,
    "tpu.reduce_index": _place_of_most,
    "tpu.scan": _scanned,
    "tpu.matmul": _product,
    "vector.contract": _contracted,
    **dict.fromkeys(("tpu.dynamic_gather", "tpu.gather"), _gathered),
}
