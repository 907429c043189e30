"""Products of matrices, reductions, cumulative sums, convolutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from operator import itemgetter
from typing import Any

import numpy as np

from layoutproof.values.elementwise import within
from layoutproof.values.known import Known, combined, moved

Array = np.ndarray[Any, Any]


def _dot_general(on: Any, equation: Any, operands: list[Any]) -> list[Any]:
    (contract_a, contract_b), (batch_a, batch_b) = equation.params["dimension_numbers"]
    a, b = operands
    shape = tuple(equation.outvars[0].aval.shape)

    def side(value: Any, contract: Sequence[int], batch: Sequence[int], first: bool) -> Any:
        free = [k for k in range(len(value.shape)) if k not in contract and k not in batch]
        order = [*batch, *free, *contract] if first else [*batch, *contract, *free]
        extents = [value.shape[k] for k in order]
        n, m = len(batch), len(free) if first else len(contract)
        flat = (prod(extents[:n]), prod(extents[n : n + m]), prod(extents[n + m :]))
        return moved(on.numbers, value, lambda r: np.transpose(r, order).reshape(flat))

    left, right = side(a, contract_a, batch_a, True), side(b, contract_b, batch_b, False)
    if isinstance(left, Known) and isinstance(right, Known):
        dtype = equation.outvars[0].aval.dtype
        wide = left.array.astype(dtype) if dtype.kind in "iu" else left.array.astype(np.float64)
        found: Any = Known(wide @ right.array.astype(wide.dtype), left.sampled or right.sampled)
    else:
        found = within(on, on.numbers.matmul(on.data(left), on.data(right)), equation)
    return [moved(on.numbers, found, lambda r: r.reshape(shape))]


def _rows(on: Any, value: Any, axes: Sequence[int]) -> Any:
    """The value with the axes as one, the last."""
    kept = [k for k in range(len(value.shape)) if k not in axes]
    order = [*kept, *axes]
    shape = (*(value.shape[k] for k in kept), prod(value.shape[k] for k in axes))
    return moved(on.numbers, value, lambda r: np.transpose(r, order).reshape(shape))


_REDUCED: dict[str, Callable[..., Array]] = {
    "reduce_sum": np.sum, "reduce_max": np.max, "reduce_min": np.min, "reduce_prod": np.prod,
    "reduce_and": np.bitwise_and.reduce, "reduce_or": np.bitwise_or.reduce, "reduce_xor": np.bitwise_xor.reduce,
}  # fmt: skip


def _reduce(name: str) -> Callable[[Any, Any, list[Any]], list[Any]]:
    def rule(on: Any, equation: Any, operands: list[Any]) -> list[Any]:
        rows = _rows(on, operands[0], tuple(equation.params["axes"]))
        if isinstance(rows, Known):
            dtype = {"dtype": rows.array.dtype} if name in ("reduce_sum", "reduce_prod") else {}
            return [Known(np.asarray(_REDUCED[name](rows.array, axis=-1, **dtype)), rows.sampled)]
        n = on.numbers
        if name == "reduce_sum":
            return [within(on, n.sum(rows), equation)]
        if name == "reduce_max":
            return [n.largest(rows)]
        if name == "reduce_min":
            return [n.neg(n.largest(n.neg(rows)))]
        if name == "reduce_prod":
            return [within(on, _product(n, rows), equation)]
        raise on.refuse(f"{name} of data")

    return rule


def _product(n: Any, rows: Any) -> Any:
    """The product along the last axis, by halves."""
    while rows.shape[-1] > 1:
        extent = rows.shape[-1]
        half = extent // 2
        both = n.mul(n.map(rows, lambda r, h=half: r[..., :h]), n.map(rows, lambda r, h=half: r[..., h : 2 * h]))
        rest = n.map(rows, lambda r, h=half: r[..., 2 * h :])
        rows = both if extent % 2 == 0 else n.combine([both, rest], lambda parts: np.concatenate(parts, -1))
    if rows.shape[-1] == 0:
        return n.constant(np.ones(rows.shape[:-1]))
    return n.map(rows, lambda r: r[..., 0])


_RUNNING: dict[str, Callable[..., Array]] = {
    "cumsum": np.cumsum, "cumprod": np.cumprod, "cummax": np.maximum.accumulate, "cummin": np.minimum.accumulate,
}  # fmt: skip


def _cumulative(name: str) -> Callable[[Any, Any, list[Any]], list[Any]]:
    """Along one axis; of n steps each is that of log2 n rounds that add what lies 1, 2, 4, .. before."""

    def rule(on: Any, equation: Any, operands: list[Any]) -> list[Any]:
        axis, back = int(equation.params["axis"]), bool(equation.params.get("reverse"))
        (value,) = operands
        if isinstance(value, Known):
            turned = np.flip(value.array, axis) if back else value.array
            out = _RUNNING[name](turned, axis=axis)
            out = out.astype(value.array.dtype)
            return [Known(np.flip(out, axis) if back else out, value.sampled)]
        n = on.numbers
        run = {
            "cumsum": n.add, "cumprod": n.mul,
            "cummax": lambda a, b: n.maximum(a, b), "cummin": lambda a, b: n.minimum(a, b),
        }[name]  # fmt: skip
        rows = n.map(value, lambda r: np.moveaxis(np.flip(r, axis) if back else r, axis, -1))
        step, extent = 1, rows.shape[-1]
        while step < extent:
            added = run(n.map(rows, lambda r, s=step: r[..., s:]), n.map(rows, lambda r, s=step: r[..., :-s]))
            head = n.map(rows, lambda r, s=step: r[..., :s])
            rows = n.combine([head, added], lambda parts: np.concatenate(parts, -1))
            step *= 2

        def restored(r: Array) -> Array:
            moved_back = np.moveaxis(r, -1, axis)
            return np.flip(moved_back, axis) if back else moved_back

        return [within(on, n.map(rows, restored), equation)]

    return rule


def _convolution(on: Any, equation: Any, operands: list[Any]) -> list[Any]:
    """A product of matrices: for each output element the places of what it is the sum of, as JAX itself finds them."""
    import jax
    from jax import lax

    left, right = operands
    params = equation.params
    if params.get("batch_group_count", 1) != 1:
        raise on.refuse("a convolution with groups of batches")
    groups = int(params["feature_group_count"])
    numbers = params["dimension_numbers"]
    lhs_spec, rhs_spec, out_spec = numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec
    image = np.arange(1, prod(left.shape) + 1, dtype=np.float64).reshape(left.shape)
    window = tuple(right.shape[k] for k in rhs_spec[2:])
    if image.size >= 2**24:
        raise on.refuse("a convolution of more than 2^24 elements")
    with jax.default_device(jax.devices("cpu")[0]), jax.ensure_compile_time_eval():
        found = lax.conv_general_dilated_patches(
            jax.numpy.asarray(image, np.float32), window, params["window_strides"], params["padding"],
            params["lhs_dilation"], params["rhs_dilation"],
            dimension_numbers=numbers,
            precision=lax.Precision.HIGHEST,
        )  # fmt: skip
    # [batch, features x window, spatial..] in the order of the output's dimensions
    at = np.moveaxis(np.asarray(found), [out_spec[0], out_spec[1]], [0, 1]).round().astype(np.int64)
    batch, rest, *space = at.shape
    features = left.shape[lhs_spec[1]]
    at = at.reshape(batch, features, rest // features, prod(space))
    n = on.numbers
    zero = Known(np.zeros((1,)))
    flat = combined(
        n, [moved(n, left, lambda r: r.reshape(-1)), zero], lambda parts: np.concatenate([parts[1], parts[0]])
    )
    patches = moved(n, flat, lambda r: r[at])
    kernel = moved(n, right, lambda r: np.transpose(r, rhs_spec).reshape(right.shape[rhs_spec[0]], -1))
    outs, per = right.shape[rhs_spec[0]] // groups, features // groups
    parts = []

    def mine(g: int) -> Callable[[Array], Array]:
        return lambda r: r[:, g * per : (g + 1) * per].reshape(batch, -1, prod(space))

    for g in range(groups):
        weights = moved(n, kernel, itemgetter((None, slice(g * outs, (g + 1) * outs))))
        parts.append(n.matmul(on.data(weights), on.data(moved(n, patches, mine(g)))))
    joined = parts[0] if groups == 1 else n.combine(parts, lambda p: np.concatenate(p, 1))
    shape = (batch, outs * groups, *space)
    whole = n.map(joined, lambda r: np.moveaxis(r.reshape(shape), [0, 1], [out_spec[0], out_spec[1]]))
    return [within(on, whole, equation)]


def _cumulative_logsumexp(on: Any, equation: Any, operands: list[Any]) -> list[Any]:
    (value,) = operands
    n = on.numbers
    grown = n.exp(on.data(value))
    (total,) = _cumulative("cumsum")(on, equation, [grown])
    return [n.log(total)]


def _first(name: str) -> Callable[[Any, Any, list[Any]], list[Any]]:
    """The first place of the greatest or smallest: of numbers; a point of a field has no order of data."""

    def rule(on: Any, equation: Any, operands: list[Any]) -> list[Any]:
        (value,) = operands
        if on.numbers.exact and not isinstance(value, Known):
            raise on.refuse("an order of data")
        (axis,) = equation.params["axes"]
        found = getattr(np, name)(value.array, axis)
        return [Known(found.astype(equation.params["index_dtype"]), not isinstance(value, Known) or value.sampled)]

    return rule


PRIMITIVES = {
    "argmax": _first("argmax"),
    "argmin": _first("argmin"),
    "dot_general": _dot_general,
    **{name: _reduce(name) for name in _REDUCED},
    **{name: _cumulative(name) for name in _RUNNING},
    "cumlogsumexp": _cumulative_logsumexp,
    "conv_general_dilated": _convolution,
}
