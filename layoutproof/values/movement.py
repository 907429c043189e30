"""Operations that only move elements: one function on arrays, for every kind of number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from layoutproof.ir.program import Equation
from layoutproof.values.kinds import Shaped
from layoutproof.values.known import Known, are_known, combined, moved
from layoutproof.values.state import Rule, Walking

Array = np.ndarray[Any, Any]


def _one(move: Callable[[Equation], Callable[[Array], Array]]) -> Rule:
    """The rule of what moves its first operand. move: equation -> array -> array."""

    def rule(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
        return [moved(on.numbers, operands[0], move(equation))]

    return rule


def _shaped(equation: Equation) -> Callable[[Array], Array]:
    shape = tuple(int(n) for n in equation.outvars[0].aval.shape)
    return lambda r: r.reshape(shape)


def _transposed(equation: Equation) -> Callable[[Array], Array]:
    order = equation.params["permutation"]
    return lambda r: np.transpose(r, order)


def _broadcast(equation: Equation) -> Callable[[Array], Array]:
    shape = tuple(int(n) for n in equation.params["shape"])
    at = tuple(equation.params["broadcast_dimensions"])

    def move(r: Array) -> Array:
        extents = [1] * len(shape)
        for k, dim in enumerate(at):
            extents[dim] = r.shape[k]
        return np.broadcast_to(r.reshape(extents), shape)

    return move


def _sliced(equation: Equation) -> Callable[[Array], Array]:
    p = equation.params
    strides = p["strides"] or (1,) * len(p["start_indices"])
    cut = tuple(slice(a, b, c) for a, b, c in zip(p["start_indices"], p["limit_indices"], strides, strict=True))
    return lambda r: r[cut]


def _reversed(equation: Equation) -> Callable[[Array], Array]:
    dims = tuple(equation.params["dimensions"])
    return lambda r: np.flip(r, dims)


def _iota(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    p = equation.params
    dtype = np.dtype(p["dtype"])
    shape, dim = tuple(p["shape"]), int(p["dimension"])
    kind = dtype if dtype.kind in "iu" else np.dtype(np.float64)
    row = np.arange(shape[dim], dtype=kind).reshape([-1 if k == dim else 1 for k in range(len(shape))])
    return [Known(np.broadcast_to(row, shape))]


def _concatenated(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    dim = int(equation.params["dimension"])
    return [combined(on.numbers, operands, lambda parts: np.concatenate(parts, dim))]


def _pad(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    config = equation.params["padding_config"]
    shape = tuple(equation.outvars[0].aval.shape)

    def move(parts: Sequence[Array]) -> Array:
        source, value = parts
        out = np.full(shape, value.reshape(()), source.dtype)
        target, taken = [], []
        for (low, _, inner), extent, n in zip(config, source.shape, shape, strict=True):
            at = low + np.arange(extent) * (inner + 1)
            inside = (at >= 0) & (at < n)
            target.append(at[inside])
            taken.append(np.flatnonzero(inside))
        out[np.ix_(*target)] = source[np.ix_(*taken)]
        return out

    return [combined(on.numbers, operands, move)] if shape else [operands[0]]


def numbers_of(on: Walking, operands: Sequence[Shaped], what: str) -> list[int]:
    """Single integers that are known."""
    if not are_known(operands):
        raise on.refuse(f"{what} that rests on data")
    on.inside = on.inside and not any(o.sampled for o in operands)
    return [int(o.array) for o in operands]


def _dynamic_slice(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    operand, *starts = operands
    sizes = equation.params["slice_sizes"]
    begins = numbers_of(on, starts, "a start")
    clamped = [min(max(b, 0), n - s) for b, n, s in zip(begins, operand.shape, sizes, strict=True)]
    cut = tuple(slice(b, b + s) for b, s in zip(clamped, sizes, strict=True))
    return [moved(on.numbers, operand, lambda r: r[cut])]


def _dynamic_update_slice(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    operand, update, *starts = operands
    begins = numbers_of(on, starts, "a start")
    clamped = [min(max(b, 0), n - s) for b, n, s in zip(begins, operand.shape, update.shape, strict=True)]
    cut = tuple(slice(b, b + s) for b, s in zip(clamped, update.shape, strict=True))

    def move(parts: Sequence[Array]) -> Array:
        out = np.array(parts[0])
        out[cut] = parts[1]
        return out

    return [combined(on.numbers, [operand, update], move)]


def places(operand: Shaped, indices: Array, params: dict[str, object]) -> Array:
    """For each element that a gather gives, the flat place that it comes from; -1 of what is filled."""
    import jax
    from jax import lax

    flat = np.arange(prod(operand.shape), dtype=np.int32).reshape(operand.shape)
    names = params["dimension_numbers"]
    if isinstance(names, tuple):
        # of another front end than JAX
        of = lax.GatherDimensionNumbers(**names._asdict())  # type: ignore[attr-defined]
        params = {**params, "dimension_numbers": of, "mode": lax.GatherScatterMode.from_any(params["mode"])}
    if params.get("mode") is not None and "FILL" in str(params["mode"]):
        params = {**params, "fill_value": -1}
    with jax.default_device(jax.devices("cpu")[0]), jax.ensure_compile_time_eval():
        found = lax.gather_p.bind(jax.numpy.asarray(flat), jax.numpy.asarray(indices), **params)
    return np.asarray(found).astype(np.int64)


def _gather(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    operand, indices = operands
    if not isinstance(indices, Known):
        raise on.refuse("a gather by data")
    at = places(operand, indices.array, dict(equation.params))
    outside = at < 0
    found = moved(on.numbers, operand, lambda r: r.reshape(-1)[np.where(outside, 0, at)])
    if outside.any():
        fill = equation.params.get("fill_value")
        dtype = equation.outvars[0].aval.dtype
        if isinstance(found, Known) and dtype.kind in "iub":
            value = fill if fill is not None else (np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max)
            return [Known(np.where(outside, value, found.array).astype(dtype), indices.sampled)]
        nan = Known(np.full((), np.nan if fill is None else float(fill)))
        found = combined(on.numbers, [found, nan], lambda parts: np.where(outside, parts[1], parts[0]))
    if isinstance(found, Known) and indices.sampled:
        found = Known(found.array, True)
    return [found]


def _scatter_places(operand: Shaped, indices: Array, updates: Shaped, params: dict[str, Any]) -> Array:
    """For each element of the updates the flat place where it goes, -1 of what is left out (JAX's transpose rule)."""
    from jax import lax

    numbers = params["dimension_numbers"]
    batching = tuple(getattr(numbers, "operand_batching_dims", ()))
    window = iter(numbers.update_window_dims)
    sizes = [
        1 if k in numbers.inserted_window_dims or k in batching else updates.shape[next(window)]
        for k in range(len(operand.shape))
    ]
    gather = lax.GatherDimensionNumbers(
        offset_dims=tuple(numbers.update_window_dims),
        collapsed_slice_dims=tuple(numbers.inserted_window_dims),
        start_index_map=tuple(numbers.scatter_dims_to_operand_dims),
        operand_batching_dims=batching,
        start_indices_batching_dims=tuple(getattr(numbers, "scatter_indices_batching_dims", ())),
    )
    mode = params.get("mode")
    fill = mode is None or "FILL" in str(mode) or "DROP" in str(mode)
    given = {
        "dimension_numbers": gather, "slice_sizes": tuple(sizes), "indices_are_sorted": False,
        "unique_indices": False, "fill_value": -1,
        "mode": lax.GatherScatterMode.FILL_OR_DROP if fill else mode,
    }  # fmt: skip
    return places(operand, indices, given)


def _scatter(kind: str) -> Rule:
    def rule(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
        operand, indices, updates = operands
        if not isinstance(indices, Known):
            raise on.refuse("a scatter by data")
        at = _scatter_places(operand, indices.array, updates, dict(equation.params))
        if kind == "add":
            if isinstance(operand, Known) and isinstance(updates, Known):
                out = operand.array.reshape(-1).copy()
                chosen = at.reshape(-1) >= 0
                np.add.at(out, at.reshape(-1)[chosen], updates.array.reshape(-1)[chosen])
                return [Known(out.reshape(operand.shape), operand.sampled or updates.sampled or indices.sampled)]
            return [on.numbers.accumulate(on.data(operand), at, on.data(updates))]
        chosen = at.reshape(-1) >= 0
        inside = at.reshape(-1)[chosen]
        if inside.size != np.unique(inside).size:
            raise on.refuse("a scatter of several values to one place")

        def move(parts: Sequence[Array]) -> Array:
            out = np.array(parts[0]).reshape(-1)
            out[inside] = parts[1].reshape(-1)[chosen]
            return out.reshape(parts[0].shape)

        return [combined(on.numbers, [operand, updates], move)]

    return rule


def _split(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    axis, sizes = int(equation.params["axis"]), equation.params["sizes"]
    ends = np.cumsum(sizes)[:-1]

    def part(k: int) -> Callable[[Array], Array]:
        return lambda r: np.split(r, ends, axis)[k]

    return [moved(on.numbers, operands[0], part(k)) for k in range(len(sizes))]


def _unstacked(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    axis = int(equation.params["axis"])

    def part(k: int) -> Callable[[Array], Array]:
        return lambda r: np.take(r, k, axis)

    return [moved(on.numbers, operands[0], part(k)) for k in range(len(equation.outvars))]


def _roll(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    value, shift = operands
    (by,) = numbers_of(on, [shift], "a shift")
    axis = int(equation.params["axis"])
    stride, along = equation.params.get("stride"), equation.params.get("stride_axis")
    if stride:
        assert along is not None
        rows = value.shape[along]

        def move(r: Array) -> Array:
            cut = [np.roll(np.take(r, [k], along), by + k * stride, axis) for k in range(rows)]
            return np.concatenate(cut, along)

        return [moved(on.numbers, value, move)]
    return [moved(on.numbers, value, lambda r: np.roll(r, by, axis))]


def _repeated(equation: Equation) -> Callable[[Array], Array]:
    axis, times = int(equation.params["axis"]), int(equation.params["repeats"])
    return lambda r: np.concatenate([r] * times, axis)


def _tiled(equation: Equation) -> Callable[[Array], Array]:
    reps = tuple(equation.params["reps"])
    return lambda r: np.tile(r, reps)


def _stacked(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    axis = int(equation.params.get("axis", 0))
    return [combined(on.numbers, operands, lambda parts: np.stack(parts, axis))]


def _rearranged(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """Each element from a place, as a compiler's own view of memory says; -1 is memory that was never written."""
    at, shape = equation.params["places"], tuple(equation.outvars[0].aval.shape)
    outside = at < 0
    if not outside.any():
        return [moved(on.numbers, operands[0], lambda r: r.reshape(-1)[at].reshape(shape))]
    nobody = _undefined(on, equation, [])[0]

    def move(parts: Sequence[Array]) -> Array:
        found = parts[0].reshape(-1)[np.where(outside, 0, at)]
        return np.where(outside, parts[1].reshape(-1), found).reshape(shape)

    return [combined(on.numbers, [operands[0], nobody], move)]


def _undefined(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """Memory that was never written."""
    out = equation.outvars[0].aval
    if out.dtype.kind in "iub":
        on.defined = on.complete = False
        return [Known(on.numbers.garbage(out.shape, out.dtype), True)]
    return [on.numbers.undefined(out.shape)]


PRIMITIVES: dict[str, Rule] = {
    "reshape": _one(_shaped),
    "squeeze": _one(_shaped),
    "expand_dims": _one(_shaped),
    "transpose": _one(_transposed),
    "broadcast_in_dim": _one(_broadcast),
    "broadcast_to": lambda on, e, operands: [
        moved(on.numbers, operands[0], lambda r: np.broadcast_to(r, e.outvars[0].aval.shape))
    ],
    "slice": _one(_sliced),
    "rev": _one(_reversed),
    "iota": _iota,
    "concatenate": _concatenated,
    "stack": _stacked,
    "pad": _pad,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    "scatter": _scatter(""),
    "scatter-add": _scatter("add"),
    "split": _split,
    "unstack": _unstacked,
    "roll": _roll,
    "repeat": _one(_repeated),
    "tile": _one(_tiled),
    "rearranged": _rearranged,
    "undefined": _undefined,
}
