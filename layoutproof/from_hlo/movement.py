"""What moves elements and computes nothing."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from layoutproof.core.errors import LayoutError
from layoutproof.from_hlo import problems
from layoutproof.from_hlo.body import NOTHING, EquationList, Rule, Value
from layoutproof.from_hlo.constants import read_constant
from layoutproof.from_hlo.elementwise import converted
from layoutproof.from_hlo.shapes import numbers_of, read_shape
from layoutproof.from_hlo.sums import combiner
from layoutproof.hlotext.module import Instruction
from layoutproof.hlotext.texts import element_of, element_text, without_space
from layoutproof.ir.program import Array, Atom, Literal
from layoutproof.questions.evaluate import table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_PLACES = 2**22
"""Elements of a bitcast whose places are looked at one by one."""
_SLICE = re.compile(r"\[(\d+):(\d+)(?::(\d+))?\]")


class GatherNumbers(NamedTuple):
    """The dimensions of a gather, by the names that JAX has."""

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterNumbers(NamedTuple):
    """The dimensions of a scatter, likewise."""

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


def _constant(body: EquationList, at: Instruction, operands: list[Atom]) -> Value | None:
    aval = read_shape(at.shape)
    if isinstance(aval, tuple):
        return None
    value = read_constant(aval, at.inside)
    return body.unknown(at, [], "a constant that the text leaves out") if value is None else Literal(value, aval)


def _reshape(body: EquationList, at: Instruction, operands: list[Atom]) -> Value:
    out = read_shape(at.shape)
    return body.one("reshape", [converted(body, operands[0], out, at)], out, at, new_sizes=out.shape, dimensions=None)


def _transpose(body: EquationList, at: Instruction, operands: list[Atom]) -> Value:
    out = read_shape(at.shape)
    return body.one("transpose", [converted(body, operands[0], out, at)], out, at, permutation=at.dimensions or ())


def _broadcast(body: EquationList, at: Instruction, operands: list[Atom]) -> Value:
    out = read_shape(at.shape)
    return body.one(
        "broadcast_in_dim", [converted(body, operands[0], out, at)], out, at, shape=out.shape,
        broadcast_dimensions=at.dimensions or (), sharding=None,
    )  # fmt: skip


def _slice(body: EquationList, at: Instruction, operands: list[Atom]) -> Value:
    return _cut(body, at, operands, read_shape(at.shape))


def _slice_start(body: EquationList, at: Instruction, operands: list[Atom]) -> Value:
    """A slice that is made while something else runs: (operands, result, context)."""
    return tuple(operands), _cut(body, at, operands, read_shape(at.shape)[1]), NOTHING


def _cut(body: EquationList, at: Instruction, operands: list[Atom], out: Array) -> Atom:
    cut = [(int(a), int(b), int(c or 1)) for a, b, c in _SLICE.findall(at.attribute("slice"))]
    starts, limits, strides = zip(*cut, strict=True) if cut else ((), (), ())
    value = converted(body, operands[0], out, at)
    return body.one("slice", [value], out, at, start_indices=starts, limit_indices=limits, strides=strides)


def _reverse(body: EquationList, at: Instruction, operands: list[Atom]) -> Value:
    return body.one("rev", operands, read_shape(at.shape), at, dimensions=at.dimensions or ())


def _iota(body: EquationList, at: Instruction, operands: list[Atom]) -> Value:
    out = read_shape(at.shape)
    dim = int(at.attribute("iota_dimension") or 0)
    return body.one("iota", [], out, at, dtype=out.dtype, shape=out.shape, dimension=dim, sharding=None)


def _concatenate(body: EquationList, at: Instruction, operands: list[Atom]) -> Value:
    out = read_shape(at.shape)
    given = [converted(body, value, out, at) for value in operands]
    return body.one("concatenate", given, out, at, dimension=(at.dimensions or (0,))[0])


def _pad(body: EquationList, at: Instruction, operands: list[Atom]) -> Value:
    out = read_shape(at.shape)
    config = [tuple(map(int, part.split("_"))) for part in at.attribute("padding").split("x") if part]
    padding = tuple((*each, 0)[:3] for each in config)
    given = [converted(body, value, out, at) for value in operands]
    return body.one("pad", given, out, at, padding_config=padding)


def _dynamic_slice(body: EquationList, at: Instruction, operands: list[Atom]) -> Value:
    out = read_shape(at.shape)
    value, *starts = operands
    if (sizes := at.attribute("dynamic_slice_sizes")) and numbers_of(at, "dynamic_slice_sizes") != out.shape:
        raise LayoutError(problems.CUT_OUT(at.name, sizes, list(out.shape)), line=at.line)
    return body.one("dynamic_slice", [converted(body, value, out, at), *starts], out, at, slice_sizes=out.shape)


def _dynamic_update_slice(body: EquationList, at: Instruction, operands: list[Atom]) -> Value:
    out = read_shape(at.shape)
    value, update, *starts = operands
    given = [converted(body, each, out, at) for each in (value, update)]
    return body.one("dynamic_update_slice", [*given, *starts], out, at)


def _bitcast(body: EquationList, at: Instruction, operands: list[Atom]) -> Value | None:
    (value,) = operands
    source, out = value.aval, read_shape(at.shape)
    name, indices = element_of(at.operands[0])
    before, after = without_space(element_text(body.instructions[name].shape, indices)), without_space(at.shape)
    if source.dtype != out.dtype:
        return None
    if before == after:
        return value
    at_places = _places(before, after, source, out)
    if at_places is None:
        return body.unknown(at, operands, "a bitcast of so many elements")
    if (at_places == range(at_places.size)).all() and at_places.size == prod(source.shape):
        return body.one("reshape", [value], out, at, new_sizes=out.shape, dimensions=None)
    return body.one("rearranged", [value], out, at, places=at_places)


def _places(before: str, after: str, source: Array, out: Array) -> NDArray[np.int64] | None:
    """For each element after a bitcast, in row-major order, the place of it before; -1 of what was padding."""
    import numpy as np

    if max(prod(source.shape), prod(out.shape)) > MOST_PLACES:
        return None
    # a layout that the text leaves out is the row-major one
    first, second = (np.asarray(table(_with_layout(text))).reshape(-1) for text in (before, after))
    held = np.full(max(int(first.max(initial=-1)), int(second.max(initial=-1))) + 1, -1, np.int64)
    held[first] = np.arange(first.size)
    places: NDArray[np.int64] = held[second]
    return places


def _with_layout(text: str) -> str:
    shape = text.partition("{")[0]
    rank = len([n for n in shape.partition("[")[2].rstrip("]").split(",") if n])
    return text if "{" in text or not rank else f"{shape}{{{','.join(map(str, range(rank - 1, -1, -1)))}}}"


def _vectors_last(body: EquationList, at: Instruction, indices: Atom) -> Atom:
    """The indices of a gather or scatter with their vectors in the last dimension."""
    shape, where = indices.aval.shape, int(at.attribute("index_vector_dim"))
    if where == len(shape):
        aval = Array((*shape, 1), indices.aval.dtype)
        return body.one("reshape", [indices], aval, at, new_sizes=aval.shape, dimensions=None)
    if where == len(shape) - 1:
        return indices
    order = (*(k for k in range(len(shape)) if k != where), where)
    aval = Array(tuple(shape[k] for k in order), indices.aval.dtype)
    return body.one("transpose", [indices], aval, at, permutation=order)


def _gather(body: EquationList, at: Instruction, operands: list[Atom]) -> Value:
    value, indices = operands
    out = read_shape(at.shape)
    of = GatherNumbers(
        numbers_of(at, "offset_dims"), numbers_of(at, "collapsed_slice_dims"), numbers_of(at, "start_index_map"),
        numbers_of(at, "operand_batching_dims"), numbers_of(at, "start_indices_batching_dims"),
    )  # fmt: skip
    given = [converted(body, value, out, at), _vectors_last(body, at, indices)]
    return body.one(
        "gather", given, out, at, dimension_numbers=of, slice_sizes=numbers_of(at, "slice_sizes"), mode="clip",
        indices_are_sorted=False, unique_indices=False, fill_value=None,
    )  # fmt: skip


def _scatter(body: EquationList, at: Instruction, operands: list[Atom]) -> Value | None:
    out = read_shape(at.shape)
    if isinstance(out, tuple) or len(operands) != 3:
        return None
    kind = combiner(body, at.calls[0][1])
    names = {"add": "scatter-add", "second": "scatter"}
    if kind not in names:
        return None
    value, indices, updates = operands
    of = ScatterNumbers(
        numbers_of(at, "update_window_dims"), numbers_of(at, "inserted_window_dims"),
        numbers_of(at, "scatter_dims_to_operand_dims"), numbers_of(at, "input_batching_dims"),
        numbers_of(at, "scatter_indices_batching_dims"),
    )  # fmt: skip
    given = [converted(body, value, out, at), _vectors_last(body, at, indices), converted(body, updates, out, at)]
    return body.one(names[kind], given, out, at, dimension_numbers=of, mode=None)


RULES: dict[str, Rule] = {
    "constant": _constant,
    "reshape": _reshape,
    "transpose": _transpose,
    "broadcast": _broadcast,
    "slice": _slice,
    "slice-start": _slice_start,
    "slice-done": lambda body, at, operands: operands[0][1],
    "reverse": _reverse,
    "iota": _iota,
    "concatenate": _concatenate,
    "pad": _pad,
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update_slice,
    "bitcast": _bitcast,
    "gather": _gather,
    "scatter": _scatter,
}
