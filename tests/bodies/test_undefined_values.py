"""Padding of partial blocks in kernels as people write them: what is refuted where, with what to write instead."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof as lp
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge
from tests.pallas.wheel_ops import ops
from tests.said import Said

pytestmark = pytest.mark.slow


def asked(function: Any, *args: Any) -> list[Finding]:
    found: list[Finding] = []
    for kernel in kernels_of(function, args):
        assert isinstance(kernel, Kernel)
        found += judge(kernel, names=["undefined_values"])
    return found


def matmul(size: int, block: int, mask: bool) -> Any:
    """As people write it: `pl.cdiv` programs in every dimension, a scratch accumulator."""

    def body(x: Any, y: Any, o: Any, acc: Any) -> None:
        k = pl.program_id(2)

        @pl.when(k == 0)
        def _() -> None:
            acc[...] = jnp.zeros_like(acc)

        a, b = x[...], y[...]
        if mask:
            a = jnp.where(k * 512 + jax.lax.broadcasted_iota(jnp.int32, a.shape, 1) < size, a, 0)
            b = jnp.where(k * 512 + jax.lax.broadcasted_iota(jnp.int32, b.shape, 0) < size, b, 0)
        acc[...] += jnp.dot(a, b, preferred_element_type=jnp.float32)

        @pl.when(k == pl.num_programs(2) - 1)
        def _() -> None:
            o[...] = acc[...]

    return pl.pallas_call(
        body,
        grid=(pl.cdiv(size, block), pl.cdiv(size, block), pl.cdiv(size, 512)),
        in_specs=[
            pl.BlockSpec((block, 512), lambda i, j, k: (i, k)),
            pl.BlockSpec((512, block), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((block, block), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((size, size), jnp.float32),
        scratch_shapes=[pltpu.VMEM((block, block), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )


def arrays(*shapes: tuple[int, ...]) -> list[Any]:
    return [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]


def test_a_matmul_with_a_rest_in_k_is_refuted_at_the_first_program_that_stores_it() -> None:
    (found,) = asked(matmul(1000, 256, mask=False), *arrays((1000, 1000), (1000, 1000)))
    assert found.verdict is Verdict.REFUTED
    assert found.counterexample == {"program": (0, 0, 1), "element": (0, 0)}
    assert Said("pallas.undefined_values_padding", operand="args[0]", dimension=1, extent=1000, place=1000).of(
        found.reason
    )
    assert found.fix.startswith(
        "x = jnp.where(pl.program_id(2) * 512 + jax.lax.broadcasted_iota(jnp.int32, (256, 512), 1) < 1000, x, 0)"
    )


@pytest.mark.parametrize(("size", "mask"), [(1000, True), (1024, False)])
def test_a_matmul_that_masks_k_or_has_no_rest_is_proved(size: int, mask: bool) -> None:
    (found,) = asked(matmul(size, 256, mask), *arrays((size, size), (size, size)))
    assert found.verdict is Verdict.PROVED


@pytest.mark.parametrize("name", ["tpu.megablox.gmm 512x1000x1000", "tpu.flash_attention bias and segment ids"])
def test_kernels_of_the_wheel_that_mask_for_themselves_are_proved(name: str) -> None:
    op = next(op for op in ops() if op.name == name)
    function, args = op.build()
    found = asked(function, *args)
    assert {f.verdict for f in found} == {Verdict.PROVED}


@pytest.mark.parametrize(("mask", "verdict"), [(True, Verdict.PROVED), (False, Verdict.REFUTED)])
def test_what_decides_whether_something_is_stored_is_defined_too(mask: bool, verdict: Verdict) -> None:
    def body(x: Any, o: Any) -> None:
        v = x[...]
        if mask:
            v = jnp.where(jax.lax.broadcasted_iota(jnp.int32, v.shape, 1) < 200, v, 0)
        o[...] = jnp.zeros_like(o)

        @pl.when(jnp.sum(v) > 0)
        def _() -> None:
            o[...] = jnp.ones_like(o)

    call = pl.pallas_call(
        body,
        grid=(1,),
        in_specs=[pl.BlockSpec((8, 256), lambda i: (0, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
    )
    (found,) = asked(call, *arrays((8, 200)))
    assert found.verdict is verdict


@pytest.mark.parametrize(("rows", "verdict"), [(32, Verdict.PROVED), (30, Verdict.REFUTED)])
def test_whole_windows_are_defined_unless_something_is_stored_into_them(rows: int, verdict: Verdict) -> None:
    def body(x: Any, y: Any, o: Any) -> None:
        x[...] = y[...]
        o[...] = x[...]

    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    out = jax.ShapeDtypeStruct((32, 128), jnp.float32)
    call = pl.pallas_call(body, grid=(4,), in_specs=[block, block], out_specs=block, out_shape=out)
    assert {f.verdict for f in asked(call, *arrays((32, 128), (rows, 128)))} == {verdict}


@pytest.mark.parametrize(("numbers", "proved"), [(32, True), (30, False)])
@pytest.mark.parametrize("chosen", [False, True])
def test_a_number_that_decides_is_one_thing_and_whether_it_is_defined_another(
    chosen: bool, numbers: int, proved: bool
) -> None:
    """The last number of each block says what is stored; with 30 of them the last block has two that nobody wrote."""

    def body(t: Any, x: Any, o: Any) -> None:
        number = t[7]
        if chosen:
            o[...] = jnp.where(number > 0, x[...], 0.0)
            return
        o[...] = x[...]

        @pl.when(number > 0)
        def _() -> None:
            o[...] = x[...] + number.astype(jnp.float32)

    call = pl.pallas_call(
        body,
        grid=(4,),
        in_specs=[
            pl.BlockSpec((8,), lambda i: (i,), memory_space=pltpu.SMEM),
            pl.BlockSpec((8, 128), lambda i: (i, 0)),
        ],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
    )
    given = jax.ShapeDtypeStruct((numbers,), jnp.int32), jax.ShapeDtypeStruct((32, 128), jnp.float32)
    found = lp.kernels(call, *given, properties=["undefined_values"])
    assert (found.exit_code == 0) is proved


@pytest.mark.parametrize(("rows", "verdict"), [(32, Verdict.PROVED), (30, Verdict.UNKNOWN)])
def test_whether_a_gather_by_data_takes_padding_is_not_known(rows: int, verdict: Verdict) -> None:
    def body(x: Any, which: Any, o: Any) -> None:
        o[...] = jnp.take_along_axis(x[...], which[...].astype(jnp.int32), axis=0, mode="clip")

    block, out = pl.BlockSpec((8, 128), lambda i: (i, 0)), jax.ShapeDtypeStruct((32, 128), jnp.float32)
    call = pl.pallas_call(body, grid=(4,), in_specs=[block, block], out_specs=block, out_shape=out)
    (said,) = asked(call, jax.ShapeDtypeStruct((rows, 128), jnp.float32), out)
    assert said.verdict is verdict


def _sum(x: Any, o: Any) -> None:
    o[...] = jnp.broadcast_to(jnp.sum(x[...], axis=0, keepdims=True), o.shape)


def _of_windows(given: Any, out: Any, shape: tuple[int, ...], rows: int, grid: int = 4, body: Any = _sum) -> Finding:
    def fn(x: Any) -> Any:
        made = jax.ShapeDtypeStruct(shape, jnp.float32)
        return pl.pallas_call(body, grid=(grid,), in_specs=[given], out_specs=out, out_shape=made)(x)

    (found,) = asked(fn, *arrays((rows, 128)))
    return found


def test_padding_is_named_by_its_first_place() -> None:
    """Its last one was named, because a replay looks there first."""
    window = pl.BlockSpec((16, 128), lambda i: (0, 0))
    found = _of_windows(window, pl.BlockSpec((8, 128), lambda i: (0, 0)), (8, 128), 9, grid=1)
    assert Said("pallas.undefined_values_padding", operand="args[0]", dimension=0, extent=9, place=9).of(found.reason)


@pytest.mark.parametrize(
    ("padding", "index", "mask"),
    [
        (
            (8, 0),
            lambda i: (i * 8, 0),
            "jnp.where(0 <= pl.program_id(0) * 8 - 8 + jax.lax.broadcasted_iota(jnp.int32, (16, 128), 0), x",
        ),
        (
            (0, 8),
            lambda i: (i * 8, 0),
            "jnp.where(pl.program_id(0) * 8 + jax.lax.broadcasted_iota(jnp.int32, (16, 128), 0) < 32, x",
        ),
        ((8, 8), lambda i: (i * 8 + jnp.where(i == 3, 8, 0), 0), ") & ("),
    ],
)
def test_a_halo_is_masked_at_the_end_where_it_is(padding: tuple[int, int], index: Any, mask: str) -> None:
    """A row before the array was to be masked by the array's end, which leaves it in."""
    window = pl.BlockSpec((pl.Element(16, padding), pl.Element(128)), index)
    found = _of_windows(window, pl.BlockSpec((8, 128), lambda i: (i, 0)), (32, 128), 32)
    assert found.verdict is Verdict.REFUTED
    assert mask in found.fix


def test_no_element_outside_of_the_array_is_named() -> None:
    """What a program stores into a block outside of the array is dropped; `blocks_in_bounds` refutes the block."""

    def copy(x: Any, o: Any) -> None:
        o[...] = x[...]

    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    after = pl.BlockSpec((8, 128), lambda i: (i + 1, 0))
    assert _of_windows(rows, after, (30, 128), 30, body=copy).verdict is Verdict.PROVED
    # and of what is inside a sum still takes padding into it
    found = _of_windows(rows, after, (30, 128), 28)
    assert found.verdict is Verdict.PROVED
    found = _of_windows(rows, rows, (30, 128), 30)
    assert found.counterexample == {"program": (3,), "element": (24, 0)}


@pytest.mark.parametrize(
    ("used", "masked", "verdict"),
    [(1, False, Verdict.REFUTED), (1, True, Verdict.PROVED), (0, False, Verdict.PROVED)],
)
def test_a_part_of_a_packed_word_is_what_was_packed_there(used: int, masked: bool, verdict: Verdict) -> None:
    """The second half of the columns is cut short: it spoils what is made of the second part of the words alone."""

    def body(x: Any, o: Any) -> None:
        v = x[...]
        w = jnp.where(jax.lax.broadcasted_iota(jnp.int32, v.shape, 1) < 200, v, 0) if masked else v
        words = pltpu.pack_elementwise([w[:, :128], w[:, 128:]], packed_dtype=jnp.bfloat16)
        part = pltpu.unpack_elementwise(words, index=used, packed_dtype=jnp.bfloat16, unpacked_dtype=jnp.float32)
        o[...] = jnp.broadcast_to(part.sum(axis=1, keepdims=True), o.shape)

    block = pl.BlockSpec((8, 256), lambda i: (i, 0))
    out = pl.BlockSpec((8, 128), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct((16, 128), jnp.float32)
    call = pl.pallas_call(body, grid=(2,), in_specs=[block], out_specs=out, out_shape=shape)
    assert min(f.verdict for f in asked(call, jax.ShapeDtypeStruct((16, 200), jnp.float32))) is verdict


@pytest.mark.parametrize(
    ("kept", "used", "other", "verdict"),
    [
        (100, 100, None, Verdict.PROVED),
        (100, 90, None, Verdict.PROVED),
        (90, 100, None, Verdict.REFUTED),
        (100, 128, None, Verdict.REFUTED),
        (100, 128, 0.0, Verdict.PROVED),
    ],
)
def test_what_the_mask_of_a_load_leaves_out_is_undefined_and_may_not_be_used(
    kept: int, used: int, other: float | None, verdict: Verdict
) -> None:
    """It is told at the line of the load, as padding is."""

    def body(x: Any, o: Any, held: Any) -> None:
        at = jax.lax.broadcasted_iota(jnp.int32, (8, 128), 1)
        held[...] = pltpu.load(x, mask=at < kept) if other is None else jnp.where(at < kept, x[...], other)
        chosen = jnp.where(at < used, held[...], 0.0)
        o[...] = jnp.broadcast_to(chosen.sum(axis=1, keepdims=True), o.shape)

    shape = jax.ShapeDtypeStruct((8, 128), jnp.float32)
    call = pl.pallas_call(body, out_shape=shape, scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)])
    worst = min(asked(call, shape), key=lambda finding: finding.verdict)
    assert worst.verdict is verdict
    if verdict is Verdict.REFUTED:
        assert Said("pallas.undefined_values_masked_out", reference="args[0]").of(worst.reason)
        assert worst.file.endswith("test_undefined_values.py")
