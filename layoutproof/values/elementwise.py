"""Arithmetic, comparisons, choices and conversions, element by element."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from layoutproof.core.element_types import ELEMENT_BITS, element_type, integer_range
from layoutproof.ir.program import Dtype, Equation
from layoutproof.values import words
from layoutproof.values.floats import Floats
from layoutproof.values.kinds import D, Data, NumberKind, Shaped, with_span
from layoutproof.values.known import BitWords, Complex, Known, are_known, combined, data_of, moved, numpy_type
from layoutproof.values.literals import computed
from layoutproof.values.state import Rule, Walking

Array = np.ndarray[Any, Any]


def _quotient(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return a / b
    # XLA: division by zero gives -1, and towards zero
    zero = b == 0
    safe = np.where(zero, 1, b)
    wide = np.abs(a.astype(object)) // np.abs(safe.astype(object)) if a.dtype.itemsize == 8 else None
    if wide is None:
        wide = np.abs(a.astype(np.int64)) // np.abs(safe.astype(np.int64))
    signed = np.where((a < 0) != (safe < 0), -wide, wide)
    return np.where(zero, -1, signed).astype(a.dtype)


def _remainder(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.fmod(a, b)
    zero = b == 0
    return np.where(zero, a, np.fmod(a, np.where(zero, 1, b))).astype(a.dtype)


def _shift(kind: str) -> Callable[[Array, Array], Array]:
    def of(a: Array, b: Array) -> Array:
        bits = 8 * a.dtype.itemsize
        far = (b < 0) | (b >= bits)
        by = np.where(far, 0, b).astype(a.dtype)
        if kind == "left":
            return np.where(far, 0, a << by).astype(a.dtype)
        if kind == "arithmetic":
            return np.where(far, np.where(a < 0, -1, 0), a >> by).astype(a.dtype)
        unsigned = np.dtype(f"u{a.dtype.itemsize}")
        return np.where(far, 0, (a.astype(unsigned) >> by.astype(unsigned)).astype(a.dtype)).astype(a.dtype)

    return of


def _plain(x: Array) -> Array:
    return x


_MATH: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "tanh": np.tanh,
    "exp2": np.exp2, "log2": np.log2, "log1p": np.log1p, "expm1": np.expm1, "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "sin": np.sin, "cos": np.cos, "floor": np.floor, "ceil": np.ceil, "is_finite": np.isfinite,
}  # fmt: skip

_KNOWN: dict[str, Callable[..., Array]] = {
    "add": np.add, "add_any": np.add, "sub": np.subtract, "mul": np.multiply, "div": _quotient, "rem": _remainder,
    "max": np.maximum, "min": np.minimum, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "not": np.invert, "neg": np.negative, "abs": np.abs, "sign": np.sign, "square": np.square,
    "one_minus_square": lambda x: 1 - x * x,
    "shift_left": _shift("left"), "shift_right_arithmetic": _shift("arithmetic"),
    "shift_right_logical": _shift("logical"),
    "copy": _plain, "copy_p": _plain, "stop_gradient": _plain, **_MATH,
}  # fmt: skip


def _is_integer(equation: Equation) -> bool:
    return getattr(equation.outvars[0].aval.dtype, "kind", "") in "iu"


def _logistic(n: NumberKind[D], x: D) -> D:
    return n.reciprocal(n.add(n.constant(np.ones(())), n.exp(n.neg(x))))


def _tanh(n: NumberKind[D], x: D) -> D:
    one = n.constant(np.ones(()))
    if not n.exact:
        return n.function("tanh", x)
    # 1 - 2 / (e^(2x) + 1)
    grown = n.exp(n.add(x, x))
    return n.sub(one, n.mul(n.constant(np.full((), 2.0)), n.reciprocal(n.add(grown, one))))


def _grown(sign: int) -> Callable[[NumberKind[D], D], D]:
    """(e^x + e^-x) / 2, or with the other sign."""

    def of(n: NumberKind[D], x: D) -> D:
        if not n.exact:
            return n.function("cosh" if sign > 0 else "sinh", x)
        up = n.exp(x)
        down = n.reciprocal(up)
        return _scaled(n, n.add(up, down if sign > 0 else n.neg(down)), 0.5)

    return of


def _tan(n: NumberKind[D], x: D) -> D:
    return n.div(n.function("sin", x), n.function("cos", x)) if n.exact else n.function("tan", x)


def _atanh(n: NumberKind[D], x: D) -> D:
    one = n.constant(np.ones(()))
    if not n.exact:
        return n.function("atanh", x)
    return _scaled(n, n.log(n.div(n.add(one, x), n.sub(one, x))), 0.5)


def _scaled(n: NumberKind[D], x: D, by: float) -> D:
    return n.mul(x, n.constant(np.full((), by)))


def _sign(n: NumberKind[D], x: D) -> D:
    zero = n.constant(np.zeros(()))
    up, down = n.less(zero, x), n.less(x, zero)
    return n.combine(
        [x, n.constant(np.where(up, 1.0, np.where(down, -1.0, 0.0)))],
        lambda parts: np.where(up | down, parts[1], parts[0]),
    )


_DATA: dict[str, Callable[..., Any]] = {
    "add": lambda n, a, b: n.add(a, b), "add_any": lambda n, a, b: n.add(a, b), "sub": lambda n, a, b: n.sub(a, b),
    "mul": lambda n, a, b: n.mul(a, b), "neg": lambda n, a: n.neg(a), "square": lambda n, a: n.mul(a, a),
    "one_minus_square": lambda n, a: n.sub(n.constant(np.ones(())), n.mul(a, a)),
    "exp": lambda n, a: n.exp(a), "log": lambda n, a: n.log(a), "sqrt": lambda n, a: n.sqrt(a),
    "rsqrt": lambda n, a: n.reciprocal(n.sqrt(a)),
    "exp2": lambda n, a: n.exp(_scaled(n, a, float(np.log(2)))),
    "log2": lambda n, a: _scaled(n, n.log(a), float(1 / np.log(2))),
    "log1p": lambda n, a: n.log(n.add(a, n.constant(np.ones(())))),
    "expm1": lambda n, a: n.sub(n.exp(a), n.constant(np.ones(()))),
    "logistic": _logistic, "tanh": _tanh, "sinh": _grown(-1), "cosh": _grown(1), "tan": _tan, "atanh": _atanh,
     "abs": lambda n, a: n.absolute(a), "sign": _sign,
    "erfc": lambda n, a: n.sub(n.constant(np.ones(())), n.function("erf", a)),
    "copy": lambda n, a: a, "copy_p": lambda n, a: a, "stop_gradient": lambda n, a: a,
    **{
        name: (lambda n, *args, name=name: n.function(name, *args))
        for name in (
            "sin", "cos", "asin", "acos", "atan", "asinh", "acosh", "atan2",
            "erf", "erf_inv", "lgamma", "digamma", "cbrt", "floor", "ceil", "rem", "nextafter",
        )
    },
}  # fmt: skip

_RATIONAL = ("add", "add_any", "sub", "mul", "div", "square", "one_minus_square")
"""Functions that are computed on numbers of the code by their meaning."""

_GROWN = ("exp", "expm1", "logistic", "tanh")
"""Functions that `exp` makes: their results have a place in the field."""

_COMPARED: dict[str, Callable[[Any, Any, Any], Array]] = {
    "eq": lambda n, a, b: n.equal(a, b), "ne": lambda n, a, b: ~n.equal(a, b),
    "lt": lambda n, a, b: n.less(a, b), "gt": lambda n, a, b: n.less(b, a),
    "le": lambda n, a, b: ~n.less(b, a) & ~n.is_nan(a) & ~n.is_nan(b),
    "ge": lambda n, a, b: ~n.less(a, b) & ~n.is_nan(a) & ~n.is_nan(b),
}  # fmt: skip


def _rule(name: str) -> Rule:
    def of(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
        if name in words.RULES and any(isinstance(o, BitWords) for o in operands):
            return [words.RULES[name](on, equation, operands)]
        if are_known(operands):
            if name in _KNOWN:
                return [_known(name, on, operands)]
            if name in _COMPARED or name not in _DATA:
                raise on.refuse(f"the primitive {name}")
        return [_of_data(name, on, equation, operands)]

    return of


def _known(name: str, on: Walking, operands: Sequence[Known]) -> Shaped:
    """A primitive on known numbers."""
    parts = [o.array for o in operands]
    with np.errstate(all="ignore"):
        if name in _RATIONAL and all(part.dtype.kind == "f" for part in parts):
            found = computed(_KNOWN[name], parts)
        else:
            found = np.asarray(_KNOWN[name](*parts))
    odd = np.isfinite(found) & ~np.isin(found, (0.0, 1.0))
    if name in _GROWN and on.numbers.exact and odd.any():
        # e is no literal: it is what exp makes of 1
        grown: Data = _DATA[name](on.numbers, on.data(operands[0]))
        return grown
    return Known(found, any(o.sampled for o in operands))


def _of_data(name: str, on: Walking, equation: Equation, operands: Sequence[Shaped]) -> Shaped:
    """A primitive on data."""
    n = on.numbers
    data = [on.data(o) for o in operands]
    if name in ("max", "min"):
        constant = any(isinstance(o, Known) for o in operands)
        shape = np.broadcast_shapes(*(d.shape for d in data))
        data = [n.map(d, lambda r: np.broadcast_to(r, shape)) for d in data]
        a, b = data
        return n.maximum(a, b, constant) if name == "max" else n.minimum(a, b, constant)
    if name in ("exp", "exp2", "expm1") and on.audit is not None:
        on.audit.exponent(on, data[0])
    if name in _COMPARED:
        return Known(_COMPARED[name](n, *data), True)
    if name == "is_finite":
        return Known(n.finite(data[0]), n.exact)
    if name in ("and", "or", "xor", "not", "shift_left", "shift_right_arithmetic", "shift_right_logical"):
        raise on.refuse(f"{name} of integers that are data")
    if name == "div":
        if _is_integer(equation):
            raise on.refuse("a division of integers that are data")
        return n.div(*data)
    return within(on, _DATA[name](n, *data), equation)


def within(on: Walking, value: Data, equation: Equation) -> Data:
    """A result, once it is sure that integers do not wrap; floats have no span."""
    dtype = equation.outvars[0].aval.dtype
    if getattr(dtype, "kind", "") not in ("i", "u"):
        return value if value.span is None else with_span(value, None)
    if value.span is None:
        raise on.refuse("integers that are data, whose range is unknown")
    found = _fitting(on, value, integer_range(8 * dtype.itemsize, dtype.kind == "i"))
    if found is None:
        raise on.refuse(f"{dtype} between {value.span[0]} and {value.span[1]}, which may wrap")
    return found


def _fitting(on: Walking, value: Data, between: tuple[int, int]) -> Data | None:
    """Integers, once it is sure that none wraps; None where one may. between: the least, and one above the greatest.

    The numbers of one draw of float64 are there: whether they wrap is seen, whatever other ones do.
    """
    low, high = between
    assert value.span is not None
    if low <= value.span[0] and value.span[1] < high:
        return value
    seen = on.numbers.seen(data_of(on.numbers, value)) if isinstance(on.numbers, Floats) else None
    return with_span(value, seen) if seen is not None and low <= seen[0] and seen[1] < high else None


def _select(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    which, *cases = operands
    if not isinstance(which, Known):
        raise on.refuse("a choice by integers that are data")
    chosen = which.array.astype(np.int64)
    shape = equation.outvars[0].aval.shape

    def pick(parts: Sequence[Array]) -> Array:
        full = [np.broadcast_to(p, shape) for p in parts]
        if len(full) == 2:
            return np.where(chosen != 0, full[1], full[0])
        return np.choose(np.broadcast_to(chosen, shape), full)

    if len(cases) == 2 and which.array.size and not which.sampled:
        if chosen.all():
            return (
                [cases[1]]
                if cases[1].shape == shape
                else [moved(on.numbers, cases[1], lambda r: np.broadcast_to(r, shape))]
            )
        if not chosen.any():
            return (
                [cases[0]]
                if cases[0].shape == shape
                else [moved(on.numbers, cases[0], lambda r: np.broadcast_to(r, shape))]
            )
    found = combined(on.numbers, cases, pick)
    if isinstance(found, Known) and which.sampled:
        found = Known(found.array, True)
    return [found]


def _clamp(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    low, x, high = operands
    if isinstance(low, Known) and isinstance(x, Known) and isinstance(high, Known):
        return [
            Known(
                np.minimum(np.maximum(x.array, low.array), high.array).astype(x.array.dtype),
                low.sampled or x.sampled or high.sampled,
            )
        ]
    (found,) = PRIMITIVES["max"](on, equation, [x, low])
    return [*PRIMITIVES["min"](on, equation, [found, high])]


def _integer_power(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    (x,), y = operands, int(equation.params["y"])
    if isinstance(x, Known):
        with np.errstate(all="ignore"):
            return [Known(np.asarray(x.array**y if y >= 0 else 1.0 / x.array**-y), x.sampled)]
    return [within(on, on.numbers.power(on.data(x), y), equation)]


def _power(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    x, y = operands
    if isinstance(x, Known) and isinstance(y, Known):
        with np.errstate(all="ignore"):
            return [Known(np.power(x.array, y.array), x.sampled or y.sampled)]
    n = on.numbers
    if isinstance(y, Known) and y.array.size and (y.array == y.array.flat[0]).all():
        by = float(y.array.flat[0])
        if by == int(by) and abs(by) <= 64:
            return [n.power(on.data(x), int(by))]
        if 2 * by == int(2 * by) and abs(by) <= 32:
            root = n.sqrt(on.data(x))
            return [n.power(root, int(2 * by))]
    return [n.function("pow", on.data(x), on.data(y))]


def _round(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    even = "EVEN" in str(equation.params.get("rounding_method", ""))
    (x,) = operands
    if isinstance(x, Known):
        return [Known(np.round(x.array) if even else np.trunc(x.array + np.copysign(0.5, x.array)), x.sampled)]
    return [on.numbers.function("round_to_even" if even else "round", on.data(x))]


def _convert(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    (x,) = operands
    source, dtype = equation.invars[0].aval.dtype, equation.outvars[0].aval.dtype
    return [converted(on, x, source, dtype)]


def converted(on: Walking, x: Shaped, source: Dtype, dtype: Dtype) -> Shaped:
    """A value as another element type. Between floats of 16 bits and more nothing changes, over the reals."""
    kind = kind_of(dtype)
    if kind == "c":
        return Complex(converted(on, x, source, np.dtype(np.float64)), Known(np.zeros(x.shape)))
    if isinstance(x, Known):
        if kind == "f":
            return Known(x.array.astype(np.float64), x.sampled)
        if kind == "b":
            return Known(x.array != 0, x.sampled)
        with np.errstate(all="ignore"):
            if x.array.dtype.kind == "f":
                info = np.iinfo(numpy_type(dtype) if dtype.kind in "iu" else np.int8)
                clipped = np.clip(
                    np.nan_to_num(np.trunc(x.array), posinf=info.max, neginf=info.min), info.min, info.max
                )
                return Known(clipped.astype(info.dtype), x.sampled)
            return Known(x.array.astype(numpy_type(dtype) if dtype.kind in "iub" else np.int8), x.sampled)
    if isinstance(x, BitWords):
        return words.converted(on, x, source, dtype)
    n, data = on.numbers, on.data(x)
    if kind == "b":
        return Known(~n.equal(data, n.constant(np.zeros(()))), True)
    if kind == "f":
        if ELEMENT_BITS.get(element_type(dtype), 32) < 16 and kind_of(source) == "f":
            return n.function(f"to {np.dtype(numpy_type(dtype)).name}", data)
        return with_span(data, None) if data.span is not None else data
    bits = ELEMENT_BITS[element_type(dtype)]
    low, high = integer_range(bits, not element_type(dtype).startswith("u"))
    if kind_of(source) == "f":
        return n.function(f"to {np.dtype(numpy_type(dtype)).name}", data, span=(low, high - 1))
    if data.span is not None and bits == ELEMENT_BITS[element_type(source)]:
        return _same_bits(on, data, (low, high))
    if data.span is None or (fitting := _fitting(on, data, (low, high))) is None:
        raise on.refuse(f"integers between {data.span} as {np.dtype(numpy_type(dtype)).name}, which may wrap")
    return fitting


def _same_bits(on: Walking, data: Data, between: tuple[int, int]) -> Data:
    """Integers as those with a sign, or without one, of the same bits. between: the least, one above the greatest."""
    n, (low, high) = on.numbers, between
    if (fitting := _fitting(on, data, between)) is not None:
        return fitting
    over, under = n.less(n.constant(np.array(high - 1.0)), data), n.less(data, n.constant(np.array(float(low))))
    turned = n.sub(data, n.constant((high - low) * (over.astype(np.float64) - under)))
    return with_span(turned, (low, high - 1))


def _bits(rows: bool) -> Rule:
    """Elements as those of another type with the same bits. rows: as of `words.as_elements`."""

    def rule(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
        (x,), source, dtype = operands, equation.invars[0].aval.dtype, equation.outvars[0].aval.dtype
        if source == dtype:
            return [x]
        if not isinstance(x, Known):
            return [words.as_elements(on, x, source, dtype, rows)]
        if np.dtype(source).itemsize != np.dtype(dtype).itemsize:
            raise on.refuse("bits as a type of another width")
        found = x.array.astype(source).view(dtype)
        return [Known(found.astype(np.float64) if kind_of(dtype) == "f" else found, x.sampled)]

    return rule


def narrowed(params: Mapping[str, Any]) -> str:
    """What `reduce_precision` makes of numbers, as a function's name; "" where it keeps as many bits as 16 have."""
    exponent, mantissa = int(params["exponent_bits"]), int(params["mantissa_bits"])
    return "" if 1 + exponent + mantissa >= 16 else f"to e{exponent}m{mantissa}"


def _reduce(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    (x,) = operands
    name = narrowed(equation.params)
    return [on.numbers.function(name, on.data(x))] if name else [x]


def kind_of(dtype: Dtype | type | None) -> str:
    """ "b", "i", "f" or "c"; for a type that is not NumPy's, by its name."""
    kind = getattr(dtype, "kind", "f")
    if kind in "iu":
        return "i"
    if kind == "V":
        return "i" if "int" in str(dtype) else "f"
    return str(kind)


def _same(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    return list(operands)


_NAMES = {*_KNOWN, *_DATA, *_COMPARED, "max", "min", "div", "is_finite"}

PRIMITIVES: dict[str, Rule] = {
    **{name: _rule(name) for name in _NAMES},
    "select_n": _select,
    "clamp": _clamp,
    "integer_pow": _integer_power,
    "pow": _power,
    "round": _round,
    "convert_element_type": _convert,
    "bitcast_convert_type": _bits(False),
    "bitcast": _bits(True),
    "reduce_precision": _reduce,
    **dict.fromkeys(
        (
            "optimization_barrier", "sharding_constraint", "pvary", "mesh_cast", "reshard", "name",
            "multiple_of", "layout_constraint", "pcast",
        ),
        _same,
    ),
}  # fmt: skip
