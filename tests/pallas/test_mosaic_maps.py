"""Index maps read out of Mosaic modules compute what the user's Python computes, or are refused by name."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

jax = pytest.importorskip("jax", reason="reading Mosaic kernels needs the extra [jax]")

from layoutproof.bodies.bit_terms import UnsupportedOp  # noqa: E402
from layoutproof.core.message import message_of  # noqa: E402
from layoutproof.core.term import Term  # noqa: E402
from layoutproof.kernel.kernel import Kernel  # noqa: E402
from layoutproof.pallas.from_mosaic.mosaic_child import read_modules  # noqa: E402
from layoutproof.pallas.from_mosaic.mosaic_module import kernels_in_hlo  # noqa: E402
from layoutproof.pallas.from_mosaic.mosaic_terms import index_terms  # noqa: E402
from tests.pallas.mosaic_texts import lowered, value  # noqa: E402
from tests.said import Said, says  # noqa: E402

pytestmark = pytest.mark.slow

GRID = (5, 4)


def on_jax() -> dict[str, Any]:
    import jax.numpy as jnp

    lax = jax.lax
    return {
        "least": jnp.minimum, "most": jnp.maximum, "where": jnp.where, "quot": lambda a, b: lax.div(a, jnp.int32(b)),
        "rest": lambda a, b: lax.rem(a, jnp.int32(b)), "turn": lambda c, a, b: lax.cond(c, lambda: a, lambda: b),
        "inv": jnp.logical_not, "num": lambda c: c.astype(jnp.int32), "size": jnp.abs, "sgn": jnp.sign,
    }  # fmt: skip


ON_PYTHON: dict[str, Any] = {
    "least": min,
    "most": max,
    "where": lambda c, a, b: a if c else b,
    "turn": lambda c, a, b: a if c else b,
    "quot": lambda a, b: abs(a) // b * (1 if a >= 0 else -1),
    "rest": lambda a, b: abs(a) % b * (1 if a >= 0 else -1),
    "inv": lambda c: not c,
    "num": int,
    "size": abs,
    "sgn": lambda a: (a > 0) - (a < 0),
}


def expression(draw: random.Random, depth: int = 3) -> str:
    """A random index expression of i and j, in Python's own arithmetic and the words above."""
    if depth == 0 or draw.random() < 0.1:
        return draw.choice(["i", "j", "i", "j", str(draw.randint(0, 6))])
    one, two = expression(draw, depth - 1), expression(draw, depth - 1)
    number = draw.randint(1, 7)
    condition = f"({one}) {draw.choice(['<', '<=', '>', '>=', '==', '!='])} ({two})"
    if draw.random() < 0.3:
        condition = f"(({condition}) {draw.choice(['&', '|', '^'])} (i > {number}))"
    made = draw.choice(
        [
            f"({one}) + ({two})", f"({one}) - ({two})", f"({one}) * {number}", f"({one}) // {number}",
            f"({one}) % {number}", f"least({one}, {two})", f"most({one}, {two})", f"quot({one} + i - 3, {number})",
            f"rest({one} + i - 3, {number})", f"where({condition}, {one}, {two})", f"turn(i > j, i + {one}, j + {two})",
            f"num(inv({condition}) == (j > 1))", f"size({one} - i)", f"sgn(i - j) + ({one})", f"(i + ({one})) >> 1",
            f"(j + ({one})) & 7",
        ]
    )  # fmt: skip
    return f"({made})"


def kernel_with(texts: Sequence[str], names: dict[str, Any]) -> Kernel:
    """The kernel read back out of a call with one input for each index expression over JAX's `names`."""
    from jax.experimental import pallas as pl

    maps = [eval(f"lambda i, j: ({text}, 0)", names) for text in texts]
    array = jax.ShapeDtypeStruct((64, 128), "float32")
    call = pl.pallas_call(
        lambda *refs: None,
        grid=GRID,
        in_specs=[pl.BlockSpec((8, 128), index_map) for index_map in maps],
        out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, 0)),
        out_shape=array,
    )
    (kernel,) = kernels_in_hlo(lowered((call, [array] * len(texts))))
    assert isinstance(kernel, Kernel)
    return kernel


@pytest.mark.parametrize("seed", range(4))
def test_maps_are_what_python_computes(seed: int) -> None:
    draw = random.Random(seed)
    texts = [expression(draw) for _ in range(50)]
    kernel = kernel_with(texts, on_jax())
    assert [(t, o.unmodelled) for t, o in zip(texts, kernel.inputs, strict=True) if o.unmodelled] == []
    for text, operand in zip(texts, kernel.inputs, strict=True):
        for i in range(GRID[0]):
            for j in range(GRID[1]):
                expected = int(eval(text, ON_PYTHON, {"i": i, "j": j}))
                assert value(operand.index[0], {"g0": i, "g1": j}) == expected, (text, str(operand.index[0]), i, j)


def test_python_division_is_read_back_as_such() -> None:
    kernel = kernel_with(["i // 3", "(i - j) % 4", "i + j // 2 - 1"], on_jax())
    assert [str(o.index[0]) for o in kernel.inputs] == ["g0 // 3", "(g0 - g1) % 4", "g0 + g1 // 2 - 1"]


REFUSED = {
    "i | 1": "the bitwise operation or",
    "i ^ 3": "the bitwise operation xor",
    "i // -2": Said("bodies.divisor_not_constant", divisor="-2"),
    "i // (j + 1)": Said("bodies.divisor_not_constant"),
    "jax.lax.fori_loop(0, 3, lambda a, b: b + 1, i)": "the operation scf.for",
    "jax.numpy.int32(jax.numpy.float32(i) * 1.5)": "the operation arith.sitofp",
    "i << j": "a shift by g1",
    "jax.numpy.int32(jax.numpy.int8(i))": "may wrap",
}


def test_what_is_no_integer_arithmetic_is_refused_by_name() -> None:
    kernel = kernel_with(tuple(REFUSED), {"jax": jax})
    for text, operand in zip(REFUSED, kernel.inputs, strict=True):
        assert says(REFUSED[text], operand.unmodelled), text


def terms(lines: str, results: str = "%0", types: str = "i32", tables: str = "") -> tuple[Term, ...]:
    """The results of a function of two program indices that is written as MLIR."""
    text = (
        f"module {{ func.func @f(%i: i32, %j: i32{tables}) -> ({types}) {{ {lines}\n return {results} : {types} }} }}"
    )
    body = base64.b64encode(text.encode()).decode()
    (module,) = read_modules([body])
    assert "error" not in module, json.dumps(module)
    functions = {f["attributes"]["sym_name"]: f for f in module["functions"]}
    return index_terms(functions, "f", [Term("name", "i"), Term("name", "j"), *(["t"] if tables else [])])


WRITTEN = {
    "%0 = arith.addi %i, %j : i32": "i + j",
    "%c = arith.constant 3 : i32 %0 = arith.floordivsi %i, %c : i32": "i // 3",
    "%c = arith.constant 3 : i32 %0 = arith.ceildivsi %i, %c : i32": "0 - (0 - i) // 3",
    "%b = arith.cmpi sge, %i, %j : i32 %0 = arith.select %b, %i, %j : i32": "select(j <= i, i, j)",
    "%b = arith.cmpi slt, %i, %j : i32 %0 = arith.extsi %b : i1 to i32": "select(i < j, -1, 0)",
    "%b = arith.cmpi ne, %i, %j : i32 %0 = scf.if %b -> i32 { scf.yield %i : i32 } else { scf.yield %j : i32 }": (
        "select(i != j, i, j)"
    ),
    "%c = arith.constant 4 : i32 %0 = tpu.assume_multiple %i, 4 : i32": "multiple_of(i, 4)",
}


@pytest.mark.parametrize("lines", WRITTEN)
def test_written_operations(lines: str) -> None:
    assert [str(term) for term in terms(lines)] == [WRITTEN[lines]]


UNREADABLE = {
    "%b = arith.cmpi ult, %i, %j : i32 %0 = arith.select %b, %i, %j : i32": "an unsigned comparison",
    "%0 = arith.divui %i, %j : i32": "the operation arith.divui",
    "%0 = arith.minui %i, %j : i32": "the operation arith.minui",
    "%w = arith.extsi %i : i32 to i64 %0 = arith.trunci %w : i64 to i32": Said("mosaic.conversion", old=64, new=32),
    "%a = arith.trunci %i : i32 to i8 %0 = arith.extsi %a : i8 to i32": Said("mosaic.conversion", old=32, new=8),
    "%c = arith.constant 2.0 : f32 %0 = arith.fptosi %c : f32 to i32": "no integer",
    '%0 = "stable_mosaic.func.call"(%i) {callee = @g} : (i32) -> i32': Said("mosaic.function_missing", name="g"),
    "%0 = func.call @f(%i, %j) : (i32, i32) -> i32": "too many calls",
    "%0 = arith.shli %i, %j : i32": "a shift by j",
}


@pytest.mark.parametrize("lines", UNREADABLE)
def test_unreadable_operations(lines: str) -> None:
    with pytest.raises(UnsupportedOp) as refused:
        terms(lines)
    assert says(UNREADABLE[lines], message_of(refused.value))


def test_an_expression_that_grows_is_refused() -> None:
    doubling = "%0 = arith.addi %i, %j : i32 " + " ".join(f"%{n + 1} = arith.addi %{n}, %{n} : i32" for n in range(200))
    with pytest.raises(UnsupportedOp, match="more than 5000 parts"):
        terms(doubling, "%200")


def test_tables_are_read() -> None:
    memory = ", %t: memref<4x2xi32, #tpu.memory_space<smem>>"
    lines = "%x = arith.index_cast %i : i32 to index %y = arith.index_cast %j : i32 to index"
    load = "%0 = memref.load %t[%x, %y] : memref<4x2xi32, #tpu.memory_space<smem>>"
    assert [str(term) for term in terms(f"{lines} {load}", tables=memory)] == ["t[i, j]"]
