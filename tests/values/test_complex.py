"""References of complex numbers, Fourier transforms, triangular systems, factorisations beside functions of reals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import layoutproof as lp
from layoutproof.core.errors import LayoutError

pytestmark = pytest.mark.slow

jax = pytest.importorskip("jax")
jnp = jax.numpy
lax = jax.lax
pl = pytest.importorskip("jax.experimental.pallas")
pltpu = pytest.importorskip("jax.experimental.pallas.tpu")

TURN = 10000.0 ** (-np.arange(0, 8, 2) / 8)


def _rotated(wrong: str = "") -> Any:
    """A kernel that rotates neighbours by an angle that grows with the row."""

    def body(x: Any, c: Any, s: Any, o: Any) -> None:
        v = x[...]
        even = lax.broadcasted_iota(jnp.int32, v.shape, 1) % 2 == 0
        left, right = pltpu.roll(v, 7, 1), pltpu.roll(v, 1, 1)
        turned = jnp.where(even, left, -right) if wrong == "sign" else jnp.where(even, -left, right)
        o[...] = v * c[...] + turned * s[...]

    def function(x: Any) -> Any:
        angles = jnp.arange(16)[:, None] * jnp.asarray(TURN, jnp.float32)
        spread = (lambda t: jnp.tile(t, (1, 2))) if wrong == "halves" else lambda t: jnp.repeat(t, 2, 1)
        block = pl.BlockSpec((8, 8), lambda i: (i, 0))
        shape = jax.ShapeDtypeStruct((16, 8), jnp.float32)
        return pl.pallas_call(body, grid=(2,), in_specs=[block] * 3, out_specs=block, out_shape=shape)(
            x, spread(jnp.cos(angles)), spread(jnp.sin(angles))
        )

    return function


def _of_rotated(x: Any) -> Any:
    pairs = x.reshape(16, 4, 2)
    turned = lax.complex(pairs[..., 0], pairs[..., 1]) * jnp.exp(1j * (jnp.arange(16)[:, None] * TURN))
    return jnp.stack([turned.real, turned.imag], -1).reshape(16, 8)


def _recurrence(wrong: str = "") -> Any:
    """h = (a + ib) h + x, of real numbers, step by step."""

    def function(a: Any, b: Any, x: Any) -> Any:
        re, im, found = jnp.zeros(8), jnp.zeros(8), []
        for k in range(6):
            before = re
            re = a * re - b * im + x[k]
            im = a * im + b * (re if wrong == "of the new one" else before)
            found.append(jnp.hypot(re, im) if wrong == "size" else re + im)
        return jnp.stack(found)

    return function


def _of_recurrence(a: Any, b: Any, x: Any) -> Any:
    def step(h: Any, row: Any) -> Any:
        h = lax.complex(a, b) * h + row
        return h, h

    h = lax.scan(step, jnp.zeros(8, jnp.complex64), x)[1]
    return h.real + h.imag


def _at_once(a: Any, b: Any, x: Any) -> Any:
    turns = jnp.broadcast_to(lax.complex(a, b), x.shape)
    h = lax.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (turns, x.astype(jnp.complex64)))[1]
    return h.real + h.imag


def _radix_two(wrong: str = "") -> Any:
    """A Fourier transform of eight numbers by halves."""

    def halves(re: list[Any], im: list[Any]) -> tuple[list[Any], list[Any]]:
        n = len(re)
        if n == 1:
            return re, im
        (a, b), (c, d) = halves(re[::2], im[::2]), halves(re[1::2], im[1::2])
        turns = [np.exp(-2j * np.pi * k / n) for k in range(n // 2)]
        cos = [float(np.round(t.real, 12)) for t in turns]
        sin = [float(np.round(t.imag, 12)) * (-1 if wrong == "turns back" and n == 4 else 1) for t in turns]
        e = [c[k] * cos[k] - d[k] * sin[k] for k in range(n // 2)]
        f = [c[k] * sin[k] + d[k] * cos[k] for k in range(n // 2)]
        return (
            [a[k] + e[k] for k in range(n // 2)] + [a[k] - e[k] for k in range(n // 2)],
            [b[k] + f[k] for k in range(n // 2)] + [b[k] - f[k] for k in range(n // 2)],
        )

    def function(x: Any, y: Any) -> Any:
        re, im = halves([x[:, k] for k in range(8)], [y[:, k] for k in range(8)])
        return jnp.stack(re, 1), jnp.stack(im, 1)

    return function


def _of_radix_two(x: Any, y: Any) -> Any:
    z = jnp.fft.fft(x + 1j * y)
    return z.real, z.imag


def _eliminated(wrong: str = "") -> Any:
    """A kernel that solves L X = B by rows."""

    def body(a: Any, b: Any, o: Any) -> None:
        found = jnp.zeros((6, 8), jnp.float32)
        for k in range(6):
            row = b[k : k + 1] - jnp.dot(a[k : k + 1], found)
            row = row if wrong == "diagonal" and k == 5 else row / a[k : k + 1, k : k + 1]
            found = jnp.where(lax.broadcasted_iota(jnp.int32, (6, 8), 0) == k, row, found)
        o[...] = found

    shape = jax.ShapeDtypeStruct((6, 8), jnp.float32)
    return lambda a, b: pl.pallas_call(body, out_shape=shape)(a, b)


def _factored(wrong: str = "") -> Any:
    """L with L L' = A + 1 of a symmetric A, column by column."""

    def function(x: Any) -> Any:
        a, columns = x @ x.T + jnp.eye(4), []
        for k in range(4):
            root = jnp.sqrt(a[k, k])
            column = jnp.where(jnp.arange(4) >= k, a[:, k] / root, 0)
            a = a if wrong == "not taken off" else a - jnp.outer(column, column)
            columns.append(column)
        return jnp.stack(columns, 0 if wrong == "rows" else 1)

    return function


VECTORS = ("f32[8]", "f32[8]", "f32[6,8]")
PAIRS: dict[str, tuple[Any, Any, tuple[str, ...], tuple[str, ...]]] = {
    "rotation": (_rotated, _of_rotated, ("f32[16,8]",), ("sign", "halves")),
    "recurrence": (_recurrence, _of_recurrence, VECTORS, ("of the new one", "size")),
    "recurrence at once": (_recurrence, _at_once, VECTORS, ("of the new one",)),
    "transform": (_radix_two, _of_radix_two, ("f32[4,8]", "f32[4,8]"), ("turns back",)),
    "system": (
        _eliminated, lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True), ("f32[6,6]", "f32[6,8]"),
        ("diagonal",),
    ),
    "factors": (
        _factored, lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(4)), ("f32[4,4]",), ("not taken off", "rows"),
    ),
    "magnitude": (
        lambda wrong: lambda x, y: x * x + (x if wrong else y) * y,
        lambda x, y: jnp.abs(lax.complex(x, y)) ** 2, ("f32[8]", "f32[8]"), ("product",),
    ),
    "quotient": (
        lambda wrong: lambda x, y: (x if wrong else -y) / (x * x + y * y),
        lambda x, y: (1 / lax.complex(x, y)).imag, ("f32[8]", "f32[8]"), ("real part",),
    ),
    "product of matrices": (
        lambda wrong: lambda x, y: x @ x - (x @ y if wrong else y @ y),
        lambda x, y: (lax.complex(x, y) @ lax.complex(x, y)).real, ("f32[4,4]", "f32[4,4]"), ("mixed",),
    ),
    "transform of reals and back": (
        lambda wrong: lambda x: jnp.roll(x, 1, 1) if wrong else x,
        lambda x: jnp.fft.irfft(jnp.fft.rfft(x), 12), ("f32[4,12]",), ("rolled",),
    ),
    "transform of planes": (
        lambda wrong: lambda x: jnp.broadcast_to(x.mean() if wrong else x.sum(), (1,)),
        lambda x: jnp.fft.fft2(x)[0, :1].real, ("f32[4,6]",), ("mean",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_what_a_reference_of_other_means_computes(name: str) -> None:
    """The right one is sampled, each wrong one refuted."""
    made, reference, args, wrongs = PAIRS[name]
    assert lp.same(made(""), reference, *args).verdict.value == "sampled"
    for wrong in wrongs:
        assert lp.same(made(wrong), reference, *args).verdict.value == "refuted", wrong


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_every_form_of_a_triangular_system(left: bool, lower: bool, transposed: bool, unit: bool) -> None:
    """What is solved solves it: by the triangle that is read, turned as it is said, from the side that is said."""

    def back(a: Any, b: Any, half: bool = lower) -> Any:
        triangle = jnp.tril(a) if half else jnp.triu(a)
        triangle = jnp.where(jnp.eye(5, dtype=bool), 1, triangle) if unit else triangle
        triangle = jnp.swapaxes(triangle, 1, 2) if transposed else triangle
        x = lax.linalg.triangular_solve(a, b, left_side=left, lower=lower, transpose_a=transposed, unit_diagonal=unit)
        return triangle @ x if left else x @ triangle

    args = ("f32[2,5,5]", "f32[2,5,3]" if left else "f32[2,3,5]")
    assert lp.same(back, lambda a, b: b, *args).verdict.value == "sampled"
    assert lp.same(lambda a, b: back(a, b, not lower), lambda a, b: b, *args).verdict.value == "refuted"


def test_complex_arguments_and_results_are_named() -> None:
    """Nothing is drawn of them, and nothing of ours fails on them."""
    found = lp.same(lambda x: (1j * x).real, lambda x: -x.imag, "c64[8]")
    assert found.verdict.value == "unknown"
    assert "complex numbers" in found.reason
    assert "report" not in found.reason
    found = lp.same(lambda x: x * 1j, lambda x: 1j * x, "f32[8]")
    assert (found.verdict.value, "complex numbers" in found.reason) == ("unknown", True)


def test_what_jax_says_of_what_cannot_be_traced_names_the_argument_and_nothing_of_ours() -> None:
    """JAX names the function that was traced, which is one of ours around the user's."""

    def branches(n: int, x: Any) -> Any:
        return x if x.sum() > 0 else -x * n

    for function in (branches, lambda n, x: "text"):
        with pytest.raises(LayoutError) as raised:
            lp.same(function, lambda n, x: x * n, 3, "f32[8]")
        assert "trace.py" not in str(raised.value)
        assert "arrays[" not in str(raised.value)
        assert "docs.jax.dev" not in str(raised.value)
        assert ("args[1]" in str(raised.value)) == (function is branches)
