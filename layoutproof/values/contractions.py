"""Products of matrices, reductions, cumulative sums, convolutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from layoutproof.ir.program import Dtype, Equation
from layoutproof.values.elementwise import within
from layoutproof.values.kinds import D, Data, Kind, NumberKind, Shaped
from layoutproof.values.known import Known, combined, moved, numpy_type
from layoutproof.values.state import Rule, Walking

Array = np.ndarray[Any, Any]

MOST_TAPS = 2**27
"""Elements that windows look at, each as often as it is looked at."""


def product(on: Walking, equation: Equation, left: Shaped, right: Shaped, shape: tuple[int, ...]) -> Shaped:
    """Products of matrices, in a shape. left: [batch, rows, summed].  right: [batch, summed, columns]."""
    if isinstance(left, Known) and isinstance(right, Known):
        dtype = equation.outvars[0].aval.dtype
        wide = left.array.astype(dtype) if dtype.kind in "iu" else left.array.astype(np.float64)
        found: Any = Known(wide @ right.array.astype(wide.dtype), left.sampled or right.sampled)
    else:
        found = within(on, on.numbers.matmul(on.data(left), on.data(right)), equation)
    return moved(on.numbers, found, lambda r: r.reshape(shape))


def _dot_general(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    (contract_a, contract_b), (batch_a, batch_b) = equation.params["dimension_numbers"]
    a, b = operands
    shape = tuple(equation.outvars[0].aval.shape)

    def side(value: Shaped, contract: Sequence[int], batch: Sequence[int], first: bool) -> Shaped:
        free = [k for k in range(len(value.shape)) if k not in contract and k not in batch]
        order = [*batch, *free, *contract] if first else [*batch, *contract, *free]
        extents = [value.shape[k] for k in order]
        n, m = len(batch), len(free) if first else len(contract)
        flat = (prod(extents[:n]), prod(extents[n : n + m]), prod(extents[n + m :]))
        return moved(on.numbers, value, lambda r: np.transpose(r, order).reshape(flat))

    left, right = side(a, contract_a, batch_a, True), side(b, contract_b, batch_b, False)
    return [product(on, equation, left, right, shape)]


def _rows(on: Walking, value: Shaped, axes: Sequence[int]) -> Shaped:
    """The value with the axes as one, the last."""
    kept = [k for k in range(len(value.shape)) if k not in axes]
    order = [*kept, *axes]
    shape = (*(value.shape[k] for k in kept), prod(value.shape[k] for k in axes))
    return moved(on.numbers, value, lambda r: np.transpose(r, order).reshape(shape))


_REDUCED: dict[str, Callable[..., Array]] = {
    "reduce_sum": np.sum, "reduce_max": np.max, "reduce_min": np.min, "reduce_prod": np.prod,
    "reduce_and": np.bitwise_and.reduce, "reduce_or": np.bitwise_or.reduce, "reduce_xor": np.bitwise_xor.reduce,
}  # fmt: skip


def _reduced(on: Walking, equation: Equation, name: str, rows: Shaped) -> Shaped:
    """A reduction along the last axis."""
    if isinstance(rows, Known):
        dtype = {"dtype": rows.array.dtype} if name in ("reduce_sum", "reduce_prod") else {}
        return Known(np.asarray(_REDUCED[name](rows.array, axis=-1, **dtype)), rows.sampled)
    n, data = on.numbers, on.data(rows)
    if name == "reduce_sum":
        return within(on, n.sum(data), equation)
    if name == "reduce_max":
        return n.largest(data)
    if name == "reduce_min":
        return n.neg(n.largest(n.neg(data)))
    if name == "reduce_prod":
        return within(on, _multiplied(n, data), equation)
    raise on.refuse(f"{name} of data")


def _reduce(name: str) -> Rule:
    def rule(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
        return [_reduced(on, equation, name, _rows(on, operands[0], tuple(equation.params["axes"])))]

    return rule


def _cut(n: NumberKind[D], rows: D, low: int, high: int | None) -> D:
    """Elements along the last axis."""
    return n.map(rows, lambda r: r[..., low:high])


def _multiplied(n: NumberKind[D], rows: D) -> D:
    """The product along the last axis, by halves."""
    while rows.shape[-1] > 1:
        extent = rows.shape[-1]
        half = extent // 2
        both = n.mul(_cut(n, rows, 0, half), _cut(n, rows, half, 2 * half))
        rest = _cut(n, rows, 2 * half, None)
        rows = both if extent % 2 == 0 else n.combine([both, rest], lambda parts: np.concatenate(parts, -1))
    if rows.shape[-1] == 0:
        return n.constant(np.ones(rows.shape[:-1]))
    return n.map(rows, lambda r: r[..., 0])


_RUNNING: dict[str, Callable[..., Array]] = {
    "cumsum": np.cumsum, "cumprod": np.cumprod, "cummax": np.maximum.accumulate, "cummin": np.minimum.accumulate,
}  # fmt: skip


def _ran(on: Walking, equation: Equation, name: str, value: Shaped, axis: int, back: bool) -> Shaped:
    """What runs along one axis; of n steps each is that of log2 n rounds that add what lies 1, 2, 4, .. before."""
    if isinstance(value, Known):
        turned = np.flip(value.array, axis) if back else value.array
        out = _RUNNING[name](turned, axis=axis)
        out = out.astype(value.array.dtype)
        return Known(np.flip(out, axis) if back else out, value.sampled)
    n = on.numbers
    run: Callable[[Data, Data], Data] = {
        "cumsum": n.add, "cumprod": n.mul,
        "cummax": lambda a, b: n.maximum(a, b), "cummin": lambda a, b: n.minimum(a, b),
    }[name]  # fmt: skip
    rows = n.map(on.data(value), lambda r: np.moveaxis(np.flip(r, axis) if back else r, axis, -1))
    step, extent = 1, rows.shape[-1]
    while step < extent:
        added = run(_cut(n, rows, step, None), _cut(n, rows, 0, -step))
        head = _cut(n, rows, 0, step)
        rows = n.combine([head, added], lambda parts: np.concatenate(parts, -1))
        step *= 2

    def restored(r: Array) -> Array:
        moved_back = np.moveaxis(r, -1, axis)
        return np.flip(moved_back, axis) if back else moved_back

    return within(on, n.map(rows, restored), equation)


def _cumulative(name: str) -> Rule:
    def rule(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
        axis, back = int(equation.params["axis"]), bool(equation.params.get("reverse"))
        return [_ran(on, equation, name, operands[0], axis, back)]

    return rule


def _taps(size: int, window: int, out: int, stride: int, low: int, base: int, dilation: int) -> tuple[Array, Array]:
    """Of one dimension: for each (place of the result, place in the window) the source's, and whether there is one."""
    at = np.arange(out)[:, None] * stride + np.arange(window) * dilation - low
    inside = (at >= 0) & (at < (size - 1) * base + 1) & (at % base == 0)
    return np.where(inside, at // base, size), inside


def _taken(on: Walking, value: Shaped, at: Array, axis: int, filling: float) -> Shaped:
    """Elements along an axis by their places; the one past the last is the filling."""
    if not (at >= value.shape[axis]).any():
        return moved(on.numbers, value, lambda r: np.take(r, at, axis))
    shape = tuple(1 if k == axis else n for k, n in enumerate(value.shape))
    beyond = Known(np.full(shape, filling))
    return combined(on.numbers, [value, beyond], lambda parts: np.take(np.concatenate(parts, axis), at, axis))


def _convolution(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """A product of matrices: each dimension of the window is summed over, or one in which each element of the result
    looks at one element of the window, as compilers write a product of several matrices, is a batch."""
    left, right = operands
    p = equation.params
    numbers = p["dimension_numbers"]
    lhs_spec, rhs_spec, out_spec = numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec
    groups, batches = int(p["feature_group_count"]), int(p.get("batch_group_count", 1))
    out = equation.outvars[0].aval
    zero = 0 if out.dtype.kind in "iu" else 0.0
    n = on.numbers
    left = moved(n, left, lambda r: np.transpose(r, lhs_spec))
    right = moved(n, right, lambda r: np.transpose(r, rhs_spec))
    rank = len(lhs_spec) - 2
    ones = (1,) * rank
    strides, bases = p["window_strides"] or ones, p["lhs_dilation"] or ones
    dilations, padding = p["rhs_dilation"] or ones, p["padding"]
    # dimensions of left and right, by what they are: each dimension of the window is one of left's or none
    of_left: list[str] = ["n", "c"]
    of_right: list[str] = ["f", "c"]
    extents: list[int] = []
    for k in range(rank):
        axis_left, axis_right = len(of_left), k + 2
        extent = out.shape[out_spec[k + 2]]
        extents.append(extent)
        window = right.shape[axis_right]
        at, inside = _taps(
            left.shape[axis_left], window, extent, strides[k], padding[k][0], bases[k], dilations[k]
        )  # fmt: skip
        if window > 1 and (inside.sum(1) == 1).all():
            which = inside.argmax(1)
            left = _taken(on, left, np.take_along_axis(at, which[:, None], 1)[:, 0], axis_left, zero)
            right = _taken(on, right, which, axis_right, zero)
            of_left.append(f"b{k}")
            of_right.append(f"b{k}")
            continue
        if prod(left.shape) // left.shape[axis_left] * at.size > MOST_TAPS:
            raise on.refuse(f"a convolution that looks at more than {MOST_TAPS:,} elements")
        left = _taken(on, left, at, axis_left, zero)
        of_left += [f"o{k}", f"k{k}"]
        of_right.append(f"k{k}")
    if groups > 1:
        left, of_left = _divided(n, left, of_left, "c", groups)
        right, of_right = _divided(n, right, of_right, "f", groups)
    if batches > 1:
        left, of_left = _divided(n, left, of_left, "n", batches)
        right, of_right = _divided(n, right, of_right, "f", batches)
    batch = [name for name in of_left if name in of_right and name[0] in "bg"]
    summed = [name for name in of_left if name in of_right and name[0] in "ck"]
    rows = [name for name in of_left if name not in of_right]
    sizes = dict(zip(of_right, right.shape, strict=True)) | dict(zip(of_left, left.shape, strict=True))

    def ordered(value: Shaped, names: list[str], *parts: list[str]) -> Shaped:
        order = [names.index(name) for part in parts for name in part]
        flat = tuple(prod(sizes[name] for name in part) for part in parts)
        return moved(n, value, lambda r: np.transpose(r, order).reshape(flat))

    names = [*batch, *rows, "f"]
    found = product(
        on, equation, ordered(left, of_left, batch, rows, summed), ordered(right, of_right, batch, summed, ["f"]),
        tuple(sizes[name] for name in names),
    )  # fmt: skip
    space = [f"b{k}" if f"b{k}" in names else f"o{k}" for k in range(rank)]
    order = [names.index(name) for name in ("n", *(["g"] if "g" in names else []), "f", *space)]
    shape = (sizes["n"], sizes["f"] * max(groups, batches), *extents)
    back = np.argsort(out_spec)
    return [moved(n, found, lambda r: np.transpose(np.transpose(r, order).reshape(shape), back))]


def _divided(numbers: Kind, value: Shaped, names: list[str], name: str, groups: int) -> tuple[Shaped, list[str]]:
    """A dimension as the group, outermost, and the place within it."""
    at = names.index(name)
    shape = (*value.shape[:at], groups, value.shape[at] // groups, *value.shape[at + 1 :])
    return moved(numbers, value, lambda r: r.reshape(shape)), [*names[:at], "g", *names[at:]]


def _identity(kind: str, dtype: Dtype) -> float:
    """The initial value of a reduction."""
    if kind in ("sum", "or", "xor"):
        return 0 if dtype.kind in "iub" else 0.0
    if kind == "prod":
        return 1 if dtype.kind in "iub" else 1.0
    if kind == "and":
        # every bit
        return True if dtype.kind == "b" else np.iinfo(numpy_type(dtype)).max if dtype.kind == "u" else -1
    if dtype.kind in "iu":
        return np.iinfo(numpy_type(dtype)).min if kind == "max" else np.iinfo(numpy_type(dtype)).max
    return -np.inf if kind == "max" else np.inf


def _spread(axis: int, shape: tuple[int, ...]) -> Callable[[Array], Array]:
    return lambda r: np.broadcast_to(np.expand_dims(r, axis), shape)


def _windowed(kind: str) -> Rule:
    """A reduction of windows, one dimension after the other: all of it, all up to each place, or those in a window."""

    def rule(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
        (value,) = operands
        p, out = equation.params, equation.outvars[0].aval
        ones = (1,) * len(out.shape)
        for k, window in enumerate(p["window_dimensions"]):
            size, extent = value.shape[k], out.shape[k]
            at, inside = _taps(
                size, window, extent, (p["window_strides"] or ones)[k], p["padding"][k][0],
                (p.get("base_dilation") or ones)[k], (p.get("window_dilation") or ones)[k],
            )  # fmt: skip
            held = [np.sort(row[there]) for row, there in zip(at, inside, strict=True)]
            count = np.array([len(row) for row in held])
            steps = np.arange(1, extent + 1)
            if kind in ("sum", "max", "min", "prod") and extent == size and window > 1:
                ups = (count == steps).all() and all(row[0] == 0 and row[-1] == len(row) - 1 for row in held)
                downs = (count == steps[::-1]).all() and all(row[-1] == size - 1 for row in held)
                if ups or downs:
                    value = _ran(on, equation, f"cum{kind}", value, k, bool(downs) and not ups)
                    continue
            if window > 1 and (count == size).all():
                whole = _reduced(on, equation, f"reduce_{kind}", _rows(on, value, (k,)))
                wide = tuple(out.shape[j] if j <= k else n for j, n in enumerate(value.shape))
                value = moved(on.numbers, whole, _spread(k, wide))
                continue
            if prod(value.shape) // max(size, 1) * at.size > MOST_TAPS:
                raise on.refuse(f"windows of more than {MOST_TAPS:,} elements")
            value = _taken(on, value, at, k, _identity(kind, out.dtype))
            value = _reduced(on, equation, f"reduce_{kind}", _rows(on, value, (k + 1,)))
        return [value]

    return rule


def _cumulative_logsumexp(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    (value,) = operands
    n = on.numbers
    grown = n.exp(on.data(value))
    (total,) = _cumulative("cumsum")(on, equation, [grown])
    return [n.log(on.data(total))]


def _foremost(on: Walking, rows: Shaped, least: bool, indices: Array | None = None) -> Known:
    """Along the last axis the place of the greatest, or of the least; of several that are equal the smallest one.

    indices: what stands for each place, None for the places themselves.
    """
    n = on.numbers
    sampled = not isinstance(rows, Known) or rows.sampled
    if isinstance(rows, Known):
        array = np.asarray(rows.array)
        best = (np.min if least else np.max)(array, -1, keepdims=True)
        which = np.isnan(array) | (array == best) if array.dtype.kind == "f" else array == best
    else:
        data = on.data(rows)
        which = n.foremost(n.neg(data) if least else data)
    if indices is None:
        return Known(which.argmax(-1), sampled)
    return Known(np.where(which, indices, np.iinfo(indices.dtype).max).min(-1).astype(indices.dtype), sampled)


def _first(least: bool) -> Rule:
    """The first place of the greatest or smallest: at a point of a field, of an order that is drawn."""

    def rule(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
        found = _foremost(on, _rows(on, operands[0], tuple(equation.params["axes"])), least)
        return [Known(found.array.astype(equation.params["index_dtype"]), found.sampled)]

    return rule


def _pair(least: bool) -> Rule:
    """The greatest or smallest, and the least of the integers that stand beside it."""

    def rule(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
        values, indices = (_rows(on, each, tuple(equation.params["axes"])) for each in operands)
        if not isinstance(indices, Known):
            raise on.refuse("an order of data, beside integers that are data")
        found = _foremost(on, values, least, indices.array)
        value = _reduced(on, equation, "reduce_min" if least else "reduce_max", values)
        return [value, Known(found.array, found.sampled or indices.sampled)]

    return rule


ORDERED: dict[str, Rule] = {
    "argmax": _first(False),
    "argmin": _first(True),
    "reduce_max_with": _pair(False),
    "reduce_min_with": _pair(True),
}
"""Primitives that depend on which of several numbers is the greatest."""

PRIMITIVES: dict[str, Rule] = {
    **ORDERED,
    "dot_general": _dot_general,
    **{name: _reduce(name) for name in _REDUCED},
    **{name: _cumulative(name) for name in _RUNNING},
    "cumlogsumexp": _cumulative_logsumexp,
    "conv_general_dilated": _convolution,
    **{f"reduce_window_{kind}": _windowed(kind) for kind in ("sum", "max", "min", "prod", "and", "or")},
}
