"""Complex numbers, as two real ones each: arithmetic on them is arithmetic on these, by the rules of the reals.

A kernel knows none, and many references do: rotations by pairs, recurrences, Fourier transforms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from layoutproof.ir.program import Equation
from layoutproof.values import contractions, elementwise, movement
from layoutproof.values.kinds import Shaped
from layoutproof.values.known import Complex, Known, moved
from layoutproof.values.state import Rule, Walking

Array = np.ndarray[Any, Any]

LONGEST = 1024
"""Elements along an axis of a Fourier transform, which is computed as a product of matrices."""


def _of(on: Walking, equation: Equation, name: str, *values: Shaped) -> Shaped:
    """A primitive on real numbers."""
    (found,) = elementwise.PRIMITIVES[name](on, equation, list(values))
    return found


def _pair(value: Shaped) -> Complex:
    """A value as complex numbers."""
    return value if isinstance(value, Complex) else Complex(value, Known(np.zeros(value.shape)))


def _parts(rule: Rule) -> Rule:
    """Of what is the same for both parts: nothing is computed, or they are added."""

    def of(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
        whole = [
            _pair(o) if elementwise.kind_of(v.aval.dtype) == "c" else o
            for v, o in zip(equation.invars, operands, strict=True)
        ]
        real, imaginary = (
            rule(on, equation, [getattr(o, part) if isinstance(o, Complex) else o for o in whole])
            for part in ("real", "imaginary")
        )
        return [Complex(a, b) for a, b in zip(real, imaginary, strict=True)]

    return of


def _bilinear(
    on: Walking, equation: Equation, a: Shaped, b: Shaped, times: Callable[[Shaped, Shaped], Shaped]
) -> Complex:
    """A product of two, by one of reals."""
    a, b = _pair(a), _pair(b)
    return Complex(
        _of(on, equation, "sub", times(a.real, b.real), times(a.imaginary, b.imaginary)),
        _of(on, equation, "add", times(a.real, b.imaginary), times(a.imaginary, b.real)),
    )


def _product(rule: Rule) -> Rule:
    def of(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
        a, b = operands
        return [_bilinear(on, equation, a, b, lambda x, y: rule(on, equation, [x, y])[0])]

    return of


def _times(on: Walking, equation: Equation, a: Shaped, b: Shaped) -> Complex:
    return _bilinear(on, equation, a, b, lambda x, y: _of(on, equation, "mul", x, y))


def _conjugate(on: Walking, equation: Equation, z: Shaped) -> Complex:
    return Complex(_pair(z).real, _of(on, equation, "neg", _pair(z).imaginary))


def _squared(on: Walking, equation: Equation, z: Complex) -> Shaped:
    """|z|^2."""
    return _of(
        on, equation, "add", _of(on, equation, "mul", z.real, z.real),
        _of(on, equation, "mul", z.imaginary, z.imaginary),
    )  # fmt: skip


def _divided(on: Walking, equation: Equation, a: Shaped, b: Shaped) -> Complex:
    whole = _times(on, equation, a, _conjugate(on, equation, b))
    size = _squared(on, equation, _pair(b))
    return Complex(*(_of(on, equation, "div", part, size) for part in (whole.real, whole.imaginary)))


def _power(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    (z,), y = operands, int(equation.params["y"])
    found = _pair(Known(np.ones(z.shape)))
    for _ in range(abs(y)):
        found = _times(on, equation, found, z)
    return [found if y >= 0 else _divided(on, equation, _pair(Known(np.ones(z.shape))), found)]


def _exponential(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """e^(x + iy) = e^x (cos y + i sin y)."""
    z = _pair(operands[0])
    size = z.real
    grown = Known(np.exp(size.array)) if isinstance(size, Known) and not size.array.any() else on.numbers.exp(
        on.data(size)
    )  # fmt: skip
    return [Complex(*(_of(on, equation, "mul", grown, _of(on, equation, f, z.imaginary)) for f in ("cos", "sin")))]


def _logarithm(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    z = _pair(operands[0])
    size = _of(on, equation, "sqrt", _squared(on, equation, z))
    turned = on.numbers.function("atan2", on.data(z.imaginary), on.data(z.real))
    return [Complex(_of(on, equation, "log", size), turned)]


def _by_table(on: Walking, equation: Equation, value: Shaped, axis: int, table: Array) -> Shaped:
    """A product of real numbers with a table, along an axis. table: [elements, results]."""
    turned = moved(on.numbers, value, lambda r: np.moveaxis(r, axis, -1))
    rows = moved(on.numbers, turned, lambda r: r.reshape(1, -1, table.shape[0]))
    shape = (*turned.shape[:-1], table.shape[1])
    found = contractions.product(on, equation, rows, Known(table[None]), shape)
    return moved(on.numbers, found, lambda r: np.moveaxis(r, -1, axis))


def _turns(n: int) -> tuple[Array, Array]:
    """cos and sin of 2 pi j k / n: the same numbers wherever the angles are."""
    angles = np.outer(np.arange(n), np.arange(n)) % n * (2 * np.pi / n)
    cos, sin = (np.where(np.abs(t) < 1e-12, 0.0, t) for t in (np.cos(angles), np.sin(angles)))
    return cos, sin


def _fourier(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """A discrete Fourier transform along the last axes: a product with the roots of unity along each.

    Source: openxla/xla, docs/operation_semantics.md (Fft), as of 2026-11: IFFT and IRFFT divide by the lengths, RFFT
    gives the first n/2 + 1 of n numbers, IRFFT takes these.
    """
    kind = str(getattr(equation.params["fft_type"], "name", equation.params["fft_type"])).rsplit(".")[-1]
    lengths = [int(n) for n in equation.params["fft_lengths"]]
    if max(lengths) > LONGEST or min(lengths) < 1:
        raise on.refuse(f"a Fourier transform along {max(lengths):,} elements, more than {LONGEST:,}")
    z, back = _pair(operands[0]), kind.startswith("I")
    first = len(z.shape) - len(lengths)
    # the last axis, of which half is kept, comes first there and last back
    axes = list(enumerate(lengths, first))
    for axis, n in axes if back else axes[::-1]:
        cos, sin = _turns(n)
        sin = sin if back else -sin
        half = n // 2 + 1
        if axis == first + len(lengths) - 1 and kind == "IRFFT":
            # those that are left out are the conjugates of these
            often = np.where((np.arange(half) == 0) | (2 * np.arange(half) == n), 1.0, 2.0)[:, None]
            real = _by_table(on, equation, z.real, axis, often * cos[:half])
            other = _by_table(on, equation, z.imaginary, axis, often * sin[:half])
            z = _pair(_of(on, equation, "sub", real, other))
            continue
        if axis == first + len(lengths) - 1 and kind == "RFFT":
            cos, sin = cos[:, :half], sin[:, :half]
        z = Complex(
            _of(
                on, equation, "sub", _by_table(on, equation, z.real, axis, cos),
                _by_table(on, equation, z.imaginary, axis, sin),
            ),
            _of(
                on, equation, "add", _by_table(on, equation, z.real, axis, sin),
                _by_table(on, equation, z.imaginary, axis, cos),
            ),
        )  # fmt: skip
    if back:
        scale = Known(np.full((), 1 / np.prod(lengths)))
        z = Complex(*(_of(on, equation, "mul", part, scale) for part in (z.real, z.imaginary)))
    return [z.real if kind == "IRFFT" else z]


def _made(on: Walking, equation: Equation, operands: Sequence[Shaped]) -> list[Shaped]:
    return [Complex(*operands)]


MAKERS: dict[str, Rule] = {"complex": _made, "fft": _fourier}
"""Primitives that make complex numbers of real ones."""

_ALIKE = (
    "add", "add_any", "sub", "neg", "copy", "copy_p", "stop_gradient", "select_n", "optimization_barrier",
    "sharding_constraint", "name", "layout_constraint",
)  # fmt: skip
_ADDED = ("reduce_sum", "cumsum", "reduce_window_sum")

PRIMITIVES: dict[str, Rule] = {
    **{name: _parts(rule) for name, rule in movement.PRIMITIVES.items()},
    **{name: _parts(elementwise.PRIMITIVES[name]) for name in _ALIKE},
    **{name: _parts(contractions.PRIMITIVES[name]) for name in _ADDED},
    "convert_element_type": lambda on, e, operands: list(operands),
    "real": lambda on, e, operands: [operands[0].real],
    "imag": lambda on, e, operands: [operands[0].imaginary],
    "conj": lambda on, e, operands: [_conjugate(on, e, operands[0])],
    "abs": lambda on, e, operands: [_of(on, e, "sqrt", _squared(on, e, operands[0]))],
    "mul": lambda on, e, operands: [_times(on, e, *operands)],
    "square": lambda on, e, operands: [_times(on, e, operands[0], operands[0])],
    "div": lambda on, e, operands: [_divided(on, e, *operands)],
    "integer_pow": _power,
    "exp": _exponential,
    "log": _logarithm,
    "dot_general": _product(contractions.PRIMITIVES["dot_general"]),
    "conv_general_dilated": _product(contractions.PRIMITIVES["conv_general_dilated"]),
    "fft": _fourier,
}
"""The rules where an operand is complex."""
