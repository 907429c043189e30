"""Integers as machines hold them: every operation on every number of a narrow type gives what JAX gives."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402

from layoutproof.bodies.effects import Access  # noqa: E402
from layoutproof.core.finding import Finding  # noqa: E402
from layoutproof.core.numbers import INTS  # noqa: E402
from layoutproof.core.result import Verdict  # noqa: E402
from layoutproof.core.term import Term  # noqa: E402
from layoutproof.kernel.kernel import Kernel  # noqa: E402
from layoutproof.pallas.from_jax.jaxpr_terms import terms_of  # noqa: E402
from layoutproof.pallas.from_jax.trace import kernels_of  # noqa: E402
from tests.bodies.kernels import found  # noqa: E402

pytestmark = pytest.mark.slow

Operation = Callable[[Any], Any]

OPERATIONS: dict[str, Operation] = {
    "x + 100": lambda x: x + x.dtype.type(100),
    "x - 100": lambda x: x - x.dtype.type(100),
    "x * 3": lambda x: x * x.dtype.type(3),
    "-x": lambda x: -x,
    "abs(x)": jnp.abs,
    "sign(x)": jnp.sign,
    "x * x": jnp.square,
    "x ** 3": lambda x: lax.integer_pow(x, 3),
    "x // 7": lambda x: x // x.dtype.type(7),
    "x % 7": lambda x: x % x.dtype.type(7),
    "div(x, 7)": lambda x: lax.div(x, x.dtype.type(7)),
    "rem(x, 7)": lambda x: lax.rem(x, x.dtype.type(7)),
    "x << 0": lambda x: x << x.dtype.type(0),
    "x << 1": lambda x: x << x.dtype.type(1),
    "x << 7": lambda x: x << x.dtype.type(7),
    "x >> 3": lambda x: x >> x.dtype.type(3),
    "logical x >> 0": lambda x: lax.shift_right_logical(x, x.dtype.type(0)),
    "logical x >> 1": lambda x: lax.shift_right_logical(x, x.dtype.type(1)),
    "logical x >> 7": lambda x: lax.shift_right_logical(x, x.dtype.type(7)),
    "x & 12": lambda x: x & x.dtype.type(12),
    "x & 90": lambda x: x & x.dtype.type(90),
    "x | 5": lambda x: x | x.dtype.type(5),
    "x ^ 7": lambda x: x ^ x.dtype.type(7),
    "~x": lambda x: ~x,
    "clip(x, 3, 90)": lambda x: lax.clamp(x.dtype.type(3), x, x.dtype.type(90)),
    "min and max": lambda x: jnp.minimum(jnp.maximum(x, x.dtype.type(9)), x + x.dtype.type(50)),
    "where(x < 3, x + 100, x)": lambda x: jnp.where(x < x.dtype.type(3), x + x.dtype.type(100), x),
    "int8": lambda x: x.astype(jnp.int8),
    "uint8": lambda x: x.astype(jnp.uint8),
    "int16": lambda x: x.astype(jnp.int16),
    "uint16": lambda x: x.astype(jnp.uint16),
    "bool": lambda x: x.astype(jnp.bool_),
    "uint8 of x - 5": lambda x: (x - x.dtype.type(5)).astype(jnp.uint8),
}
NARROW = (jnp.int8, jnp.uint8, jnp.int16, jnp.uint16)


def of(operation: Operation, narrow: Any, i: Any) -> Any:
    """What an operation makes of a narrow number, as a number that everybody holds."""
    return operation(i.astype(narrow)).astype(jnp.int32)


def numbers(narrow: Any) -> np.ndarray[Any, Any]:
    """All numbers of a byte; of a type of 16 bits its ends, what is near them, and some between."""
    ends = np.iinfo(narrow)
    if ends.bits == 8:
        return np.arange(ends.min, ends.max + 1, dtype=np.int32)
    near = {end + k for end in (ends.min, -128, 0, 128, 256, ends.max) for k in range(-9, 10)}
    some = near | set(range(ends.min, ends.max, 1399))
    return np.array(sorted(n for n in some if ends.min <= n <= ends.max), dtype=np.int32)


@functools.cache
def wanted(narrow: Any) -> dict[str, dict[int, int]]:
    """What JAX says: operation -> number -> result."""
    asked = numbers(narrow)
    rows = jax.jit(jax.vmap(lambda i: [of(operation, narrow, i) for operation in OPERATIONS.values()]))(asked)
    return {
        name: dict(zip(asked.tolist(), row.tolist(), strict=True)) for name, row in zip(OPERATIONS, rows, strict=True)
    }


def differing(terms: dict[str, Term], narrow: Any, program: str = "i", before: int = 0) -> dict[str, str]:
    """Of operations whose terms say something else than JAX: the first number of which they do, and both results.

    before: how much less than the program's id a number is.
    """
    wrong: dict[str, str] = {}
    for name, term in terms.items():
        for i, value in wanted(narrow)[name].items():
            said = term.evaluate({program: i + before}, INTS)
            if said != value:
                wrong.setdefault(name, f"{i}: {said}, not {value}")
    return wrong


@pytest.mark.parametrize("narrow", NARROW)
def test_an_index_map_wraps_where_jax_does(narrow: Any) -> None:
    terms = {}
    # index maps have no powers
    for name in OPERATIONS.keys() - {"x ** 3"}:
        traced = jax.make_jaxpr(lambda i, f=OPERATIONS[name]: of(f, narrow, i))(jnp.int32(0))
        (terms[name],) = terms_of(traced, [Term("name", "i")])
    assert differing(terms, narrow) == {}


@pytest.mark.parametrize("narrow", NARROW)
def test_a_body_wraps_where_jax_does(narrow: Any) -> None:
    """The row to which each operation's result is stored, as the reader of bodies says it."""

    before = 1 << 16

    def body(o: Any) -> None:
        number = pl.program_id(0) - before
        for operation in OPERATIONS.values():
            o[pl.ds(of(operation, narrow, number), 1), :] = jnp.zeros((1, 128), jnp.float32)

    def call() -> Any:
        out = pl.BlockSpec((8, 128), lambda i: (0, 0))
        shape = jax.ShapeDtypeStruct((8, 128), jnp.float32)
        return pl.pallas_call(body, grid=(2 * before,), out_specs=out, out_shape=shape)()

    (kernel,) = kernels_of(call, [])
    assert isinstance(kernel, Kernel)
    assert kernel.body is not None
    stores = [e for e in kernel.body.effects if isinstance(e, Access) and e.kind == "write"]
    starts = [store.view.steps[0].slices[0].start for store in stores]
    terms = dict(zip(OPERATIONS, starts, strict=True))
    assert differing(terms, narrow, kernel.grid_names[0], before) == {}


@pytest.mark.parametrize(
    ("row", "grid", "program"),
    [
        # 64 * 2 is -128 in a byte, and so is abs(-128): the row is 256
        (lambda i: jnp.where((64 * i).astype(jnp.int8) < 0, 128 - of(jnp.abs, jnp.int8, 64 * i), 0), 4, 2),
        # 16 * 16 is 0 in a byte, and the row -256
        (lambda i: jnp.where(i < 16, 0, of(lambda x: lax.integer_pow(x, 2), jnp.uint8, i) - 256), 20, 16),
    ],
)
def test_what_wraps_is_out_of_bounds(row: Operation, grid: int, program: int) -> None:
    """In numbers that never wrap each row is one of the block's; one program less, and each is."""

    def body(x: Any, o: Any) -> None:
        o[pl.ds(row(pl.program_id(0)), 1), :] = jnp.zeros((1, 128), jnp.float32)

    def stores(programs: int) -> Finding:
        whole = ((128, 128), lambda i: (0, 0))
        asked = found("body_in_bounds", body, (programs,), x=(128, 128), shape=(128, 128), given=whole, out=whole)
        return min(asked, key=lambda finding: finding.verdict)

    wrong = stores(grid)
    assert wrong.verdict is Verdict.REFUTED
    assert wrong.counterexample is not None
    assert wrong.counterexample["program"] == (program,)
    assert stores(program).verdict is Verdict.PROVED
