"""Every primitive of a body is modelled, or named with the reason why not; new ones with the version of JAX."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import checkify
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof as lp
from layoutproof.bodies import interpreter, reductions
from layoutproof.core.result import Verdict
from tests.bodies.primitives_page import page

pytestmark = pytest.mark.slow

X = jax.ShapeDtypeStruct((32, 128), jnp.float32)

REAL = """
abs add and argmax axis_index bitcast broadcast_in_dim broadcast_to clamp concatenate cond convert_element_type div
dma_start dma_wait dot_general eq exp exp2 ge get get_barrier_semaphore gt iota jit le log log2 logistic lt masked_load
masked_swap max min mul multiple_of ne not num_programs or pad program_id reduce_max reduce_sum rem reshape run_scoped
scan select_n semaphore_signal semaphore_wait shift_left shift_right_logical sign slice sqrt stop_gradient sub swap
threefry2x32 tile transpose while xor
"""
"""What 62 real bodies use: all operations of the jax wheel, and vLLM's kernels for the TPU."""


def scattering(x: Any, o: Any) -> None:
    order = jnp.zeros((32, 128), jnp.int32).at[x[0, :32].astype(jnp.int32)].set(1)
    o[pl.ds(order[0, 0], 8), :] = x[pl.ds(0, 8), :]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (scattering, "the primitive scatter (places that depend on data)"),
    ],
)
def test_what_is_not_modelled_is_named_and_nothing_is_proved_of_it(body: Any, said: str) -> None:
    found = lp.kernels(pl.pallas_call(body, out_shape=X), X, properties=["body_in_bounds"])
    assert found.exit_code == 3
    assert min(f.verdict for f in found.findings) is Verdict.UNKNOWN
    assert any(said in f.reason for f in found.findings)


def test_a_primitive_that_nobody_knows_is_named_with_the_version_of_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    without = {name: make for name, make in interpreter.PRIMITIVES.items() if name != "swap"}
    monkeypatch.setattr(interpreter, "PRIMITIVES", without)

    def body(x: Any, o: Any) -> None:
        o[...] = x[...]

    found = lp.kernels(pl.pallas_call(body, out_shape=X), X, properties=["body_in_bounds"])
    assert found.exit_code == 3
    assert f"not modelled: the primitive swap of jax {jax.__version__} at test_primitives.py:" in str(found)


def test_what_real_bodies_use_is_modelled_or_refused_with_a_reason() -> None:
    missing = set(REAL.split()) - set(interpreter.PRIMITIVES) - set(interpreter.REFUSED)
    assert not missing
    assert not set(interpreter.PRIMITIVES) & set(interpreter.REFUSED)


def test_the_page_of_primitives_is_what_the_code_has() -> None:
    assert Path("docs/primitives.md").read_text() == page()


def test_a_form_that_nobody_knows_is_named_with_the_version_of_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    # another version may say the axes of a reduction otherwise; the loads and stores of the body stay proved
    def renamed(on: Any, equation: Any, operands: list[Any]) -> list[Any]:
        params = {k: v for k, v in equation.params.items() if k != "axes"}
        other = SimpleNamespace(primitive=equation.primitive, params=params, outvars=equation.outvars)
        return reductions.PRIMITIVES["reduce_sum"](on, other, operands)

    def body(x: Any, o: Any) -> None:
        o[...] = jnp.zeros((32, 128)) + jnp.sum(x[...], axis=0, keepdims=True)

    def asked() -> Any:
        rows = pl.BlockSpec((32, 128), lambda i: (i, 0))
        call = pl.pallas_call(body, grid=(1,), in_specs=[rows], out_specs=rows, out_shape=X)
        given = jax.ShapeDtypeStruct((20, 128), jnp.float32)
        return lp.kernels(call, given, properties=["body_in_bounds", "undefined_values"])

    assert asked().exit_code == 1
    monkeypatch.setattr(interpreter, "PRIMITIVES", {**interpreter.PRIMITIVES, "reduce_sum": renamed})
    found = asked()
    assert found.exit_code == 3
    assert f"the primitive reduce_sum in the form that jax {jax.__version__} has it, KeyError: 'axes'" in str(found)
    assert all(f.verdict is Verdict.PROVED for f in found.findings if f.question == "body_in_bounds")


@jax.custom_vjp
def _doubled(x: Any) -> Any:
    return x * 2


_doubled.defvjp(lambda x: (_doubled(x), None), lambda rest, g: (g * 2,))


@jax.custom_jvp
def _halved(x: Any) -> Any:
    return x / 2


_halved.defjvp(lambda x, t: (_halved(x[0]), t[0] / 2))


def _row(k: int) -> Any:
    return jnp.full((8,), k, jnp.int32)


OVER_ROWS = {
    "packed rows": lambda x: pltpu.bitcast(x, jnp.bfloat16).astype(jnp.float32)[:8],
    "packed and back": lambda x: pltpu.bitcast(pltpu.bitcast(x, jnp.bfloat16), jnp.float32),
    "sorted rows": lambda x: jnp.sort(x, axis=0),
    "sorted columns": lambda x: jnp.sort(x, axis=1),
    "order of rows": lambda x: jnp.argsort(x, axis=0).astype(jnp.float32),
    "largest columns": lambda x: jax.lax.top_k(x, 128)[0],
    "rolled more and more": lambda x: pltpu.roll(x, 1, 1, stride=1, stride_axis=0),
    "rolled over rows": lambda x: pltpu.roll(x, 1, 0, stride=1, stride_axis=1),
    "row 0": lambda x: jnp.take(x, _row(0), axis=0),
    "row 7": lambda x: jnp.take(x, _row(7), axis=0),
    "no row": lambda x: jnp.take(x, _row(9), axis=0, mode="fill", fill_value=0),
    "row by row": lambda x: jnp.take_along_axis(x, jax.lax.broadcasted_iota(jnp.int32, x.shape, 0), axis=0),
    "rows turned": lambda x: jnp.take_along_axis(x, 7 - jax.lax.broadcasted_iota(jnp.int32, x.shape, 0), axis=0),
    "columns turned": lambda x: jnp.take_along_axis(x, 127 - jax.lax.broadcasted_iota(jnp.int32, x.shape, 1), axis=1),
    "stacked": lambda x: jnp.stack([x[k] for k in range(8)]),
    "stacked the other way": lambda x: jnp.stack([x[7 - k] for k in range(8)]),
    "stacked behind": lambda x: jnp.stack([x[:, 0], x[:, 5]], axis=1),
    "stacked behind, turned": lambda x: jnp.stack([x[:, 0], x[::-1, 5]], axis=1),
    "words": lambda x: jax.lax.bitcast_convert_type(x, jnp.int32).astype(jnp.float32),
    "halves of words": lambda x: jax.lax.bitcast_convert_type(x, jnp.int16)[..., 1].astype(jnp.float32),
    "custom_vjp": lambda x: _doubled(x),
    "custom_jvp": lambda x: _halved(jnp.roll(x, 1, 0)),
    "checkpoint": jax.checkpoint(lambda x: jnp.sin(x)),
    "batched product": lambda x: jnp.einsum("bik,bjk->bij", x.reshape(2, 4, 128), x.reshape(2, 4, 128)).reshape(8, 4),
    "updated": lambda x: jax.lax.dynamic_update_slice(x, x[:2], (6, 0)),
}


@pytest.mark.parametrize("name", OVER_ROWS)
def test_what_is_undefined_after_a_primitive_is_what_changes_with_what_is_there(name: str) -> None:
    # of the last window of 8 rows, 4 are padding; the rows of the result that are kept are the first 4 of it
    function = OVER_ROWS[name]
    some = jax.random.normal(jax.random.key(0), (8, 128))
    run = jax.jit(function)
    one, other = (run(some.at[4:].set(jax.random.normal(jax.random.key(k), (4, 128)))) for k in (1, 2))
    changes = not jnp.array_equal(one[:4], other[:4], equal_nan=True)

    def body(x: Any, o: Any) -> None:
        o[...] = function(x[...])

    call = pl.pallas_call(
        body,
        grid=(3,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec(one.shape, lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((20, one.shape[1]), one.dtype),
    )
    found = lp.kernels(call, jax.ShapeDtypeStruct((20, 128), jnp.float32), properties=["undefined_values"])
    assert found.exit_code == int(changes)


@pytest.mark.parametrize(("rows", "exit_code"), [(20, 0), (24, 1)])
def test_words_made_of_padding_are_undefined(rows: int, exit_code: int) -> None:
    def body(x: Any, o: Any) -> None:
        words = pltpu.pack_elementwise([x[...], x[...]], packed_dtype=jnp.bfloat16)
        o[...] = pltpu.unpack_elementwise(words, index=1, packed_dtype=jnp.bfloat16, unpacked_dtype=jnp.float32)

    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    out = jax.ShapeDtypeStruct((rows, 128), jnp.float32)
    call = pl.pallas_call(body, grid=(3,), in_specs=[block], out_specs=block, out_shape=out)
    found = lp.kernels(call, jax.ShapeDtypeStruct((20, 128), jnp.float32), properties=["undefined_values"])
    assert found.exit_code == exit_code


@pytest.mark.parametrize(("rows", "exit_code"), [(8, 0), (7, 1)])
def test_rows_stored_through_wider_elements_are_written(rows: int, exit_code: int) -> None:
    def body(x: Any, o: Any, s: Any) -> None:
        s.bitcast(jnp.float32)[pl.ds(0, rows), :] = x[pl.ds(0, rows), :]
        o[...] = s[...]

    call = pl.pallas_call(
        body,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((16, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((64, 128), jnp.bfloat16),
        scratch_shapes=[pltpu.VMEM((16, 128), jnp.bfloat16)],
    )
    found = lp.kernels(call, X, properties=["initialised", "body_in_bounds"])
    assert found.exit_code == exit_code
    if exit_code:
        assert any((f.counterexample or {}).get("element") == (14, 0) for f in found.findings)


@pytest.mark.parametrize(
    ("shape", "stored", "proved"),
    [
        ((16, 128), [(slice(16),)], True),
        ((16, 128), [(slice(15),)], False),
        ((16, 128), [(slice(k, k + 1),) for k in range(16)], True),
        ((16, 128), [(slice(k, k + 1),) for k in range(0, 16, 2)], False),
        ((16, 128), [(slice(k, k + 1),) for k in range(1, 16, 2)], False),
        ((16, 128), [(slice(15),), (slice(15, 16), slice(128))], True),
        ((16, 128), [(slice(15),), (slice(15, 16), slice(127))], False),
        ((3, 16, 128), [(slice(3),)], True),
        ((3, 16, 128), [(slice(2),)], False),
        ((3, 16, 128), [(slice(3), slice(15))], False),
    ],
)
def test_rows_read_through_wider_elements_were_written_whole(
    shape: tuple[int, ...], stored: list[tuple[slice, ...]], proved: bool
) -> None:
    """Two rows of bf16 are one of f32, which is written when both are, in every column of every slab."""
    words = (*shape[:-2], shape[-2] // 2, shape[-1])

    def body(o: Any, s: Any) -> None:
        for box in stored:
            extents = [slice(*piece.indices(n)) for piece, n in zip(box, shape, strict=False)]
            sizes = [piece.stop - piece.start for piece in extents]
            at = tuple(pl.ds(piece.start, size) for piece, size in zip(extents, sizes, strict=True))
            s[at] = jnp.zeros((*sizes, *shape[len(box) :]), jnp.bfloat16)
        o[...] = s.bitcast(jnp.float32)[...]

    call = pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(words, jnp.float32),
        scratch_shapes=[pltpu.VMEM(shape, jnp.bfloat16)],
    )
    found = lp.kernels(call, properties=["initialised", "body_in_bounds"])
    assert (found.exit_code == 0) is proved


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize(
    ("kept", "proved"),
    [
        (lambda row, column: row < 16, True),
        (lambda row, column: (row != 1) | (column != 5), False),
        (lambda row, column: row % 2 == 0, False),
    ],
    ids=["all", "one left out", "even rows"],
)
def test_half_of_a_wider_element_that_a_mask_leaves_out_is_not_written(kept: Any, proved: bool, copied: bool) -> None:
    def body(o: Any, s: Any) -> None:
        row, column = (jax.lax.broadcasted_iota(jnp.int32, (16, 128), axis) for axis in (0, 1))
        pltpu.store(s, jnp.zeros((16, 128), jnp.bfloat16), mask=kept(row, column))
        if copied:
            pltpu.sync_copy(s.bitcast(jnp.float32), o)
        else:
            o[...] = s.bitcast(jnp.float32)[...]

    call = pl.pallas_call(
        body,
        out_specs=pl.BlockSpec(memory_space=pl.ANY) if copied else pl.BlockSpec(),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((16, 128), jnp.bfloat16)],
    )
    assert (lp.kernels(call, properties=["initialised"]).exit_code == 0) is proved


@pytest.mark.parametrize(("blocks", "exit_code"), [(3, 0), (4, 1)])
def test_a_check_in_an_index_map_is_no_part_of_it(blocks: int, exit_code: int) -> None:
    def rows(i: Any) -> Any:
        checkify.check(i.astype(jnp.float32) < 3.5, "too far")
        return i, 0

    def body(x: Any, o: Any) -> None:
        o[...] = x[...]

    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    out = jax.ShapeDtypeStruct((8 * blocks, 128), jnp.float32)
    call = pl.pallas_call(body, grid=(blocks,), in_specs=[pl.BlockSpec((8, 128), rows)], out_specs=block, out_shape=out)
    assert lp.kernels(call, jax.ShapeDtypeStruct((24, 128), jnp.float32)).exit_code == exit_code
