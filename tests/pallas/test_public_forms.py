"""Forms of public kernels about which first verdicts were wrong: what is right is proved, its wrong twin refuted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

jax = pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

from layoutproof.core.finding import Finding  # noqa: E402
from layoutproof.core.result import Verdict  # noqa: E402
from layoutproof.kernel.kernel import Kernel  # noqa: E402
from layoutproof.pallas.from_jax.trace import kernels_of  # noqa: E402
from layoutproof.pallas.judge import judge  # noqa: E402

pytestmark = pytest.mark.slow

PROVED, REFUTED, UNKNOWN = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN
ANY = pl.BlockSpec(memory_space=pl.ANY)


def _copy(*refs: Any) -> None:
    refs[-1][...] = refs[-2][...]


def _findings(
    question: str, function: Callable[..., Any], *args: Any, pipeline: bool = False, **how: Any
) -> list[Finding]:
    wanted = "emit_pipeline" if pipeline else "pallas_call"
    found: list[Finding] = []
    for call in kernels_of(function, args):
        assert isinstance(call, Kernel)
        if call.pipeline == wanted:
            found += judge(call, names=[question], **how)
    return found


def _worst(found: Sequence[Finding]) -> Verdict:
    return min((f.verdict for f in found), default=PROVED)


def _mapped(index: Callable[..., Any], grid: int = 8, rows: int = 64, tables: int = 0) -> Callable[..., Any]:
    """A kernel of `grid` programs whose input's block of 8 rows is `index`."""

    def function(*arguments: Any) -> Any:
        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=tables,
            grid=(grid,),
            in_specs=[pl.BlockSpec((8, 128), index)],
            out_specs=pl.BlockSpec((8, 128), lambda i, *t: (i, 0)),
        )
        shape = jax.ShapeDtypeStruct((8 * grid, 128), jnp.float32)
        return pl.pallas_call(_copy, grid_spec=spec, out_shape=shape)(*arguments)

    return function


def _x(*dims: int) -> Any:
    return jax.ShapeDtypeStruct(dims or (64, 128), jnp.float32)


@pytest.mark.parametrize(
    "index",
    [
        lambda i: (i.astype(jnp.uint32).astype(jnp.int32), 0),
        lambda i: (lax.shift_right_logical(i, 1), 0),
        lambda i: (lax.shift_right_logical(i - 8, 29), 0),
        # a hash: its products leave int32, as they may
        lambda i: ((i.astype(jnp.uint32) * jnp.uint32(2654435761) % jnp.uint32(8)).astype(jnp.int32), 0),
        lambda i: (jnp.maximum(i.astype(jnp.uint32), jnp.uint32(1)).astype(jnp.int32), 0),
    ],
)
def test_unsigned_numbers_of_an_index_map_leave_int32(index: Callable[..., Any]) -> None:
    assert _worst(_findings("index_int32", _mapped(index), _x())) is PROVED
    assert _worst(_findings("blocks_in_bounds", _mapped(index), _x())) is PROVED


@pytest.mark.parametrize(
    "index",
    [
        lambda i: (i * 1000000000 // 1000000000, 0),
        lambda i: (i * 1000000000 % 7, 0),
        lambda i: (lax.shift_right_logical(i * 1000000000 // 3, 1) % 8, 0),
        lambda i: (lax.shift_right_logical(i - 8, 1) * 3 % 7, 0),
    ],
)
def test_what_overflows_as_int32_is_still_refuted(index: Callable[..., Any]) -> None:
    assert _worst(_findings("index_int32", _mapped(index), _x())) is REFUTED


def _piped(
    blocks: tuple[int, ...],
    array: tuple[int, ...],
    semantics: Any = None,
    core_axis: str | None = None,
    parts: Sequence[tuple[int, int]] = ((0, -1),),
) -> Callable[..., Any]:
    """A kernel that copies parts (start, rows) of an array by a pipeline each."""

    def body(x: Any, o: Any) -> None:
        for start, rows in parts:
            many = array[0] if rows < 0 else rows
            grid = (-(-many // blocks[0]), *(-(-n // b) for n, b in zip(array[1:], blocks[1:], strict=True)))
            spec = pl.BlockSpec(blocks, lambda *index: index)
            run = pltpu.emit_pipeline(
                _copy, grid=grid, in_specs=[spec], out_specs=[spec], dimension_semantics=semantics
            )
            run(*((x, o) if rows < 0 else (x.at[pl.ds(start, rows)], o.at[pl.ds(start, rows)])))

    shape = jax.ShapeDtypeStruct(array, jnp.float32)
    return pl.pallas_call(body, in_specs=[ANY], out_specs=ANY, out_shape=shape, grid=(1,))


def test_a_pipelines_dimensions_are_parallel_in_any_order() -> None:
    semantics = (pltpu.ARBITRARY, pltpu.PARALLEL)
    found = _findings("parallel_prefix", _piped((8, 128), (32, 256), semantics), _x(32, 256), pipeline=True)
    assert _worst(found) is PROVED
    # of a call the order counts
    call = pl.pallas_call(
        _copy,
        grid=(4, 2),
        in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((32, 256), jnp.float32),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary", "parallel")),
    )
    assert _worst(_findings("parallel_prefix", call, _x(32, 256))) is REFUTED


@pytest.mark.parametrize(("parts", "verdict"), [(((0, 16), (16, 16)), PROVED), (((0, 16), (0, 16)), REFUTED)])
def test_pipelines_that_write_one_output_are_asked_together(parts: Sequence[tuple[int, int]], verdict: Verdict) -> None:
    function = _piped((8, 128), (32, 128), parts=parts)
    assert _worst(_findings("outputs_covered", function, _x(32, 128), pipeline=True)) is PROVED
    assert _worst(_findings("outputs_stored", function, _x(32, 128))) is verdict


def test_a_pipeline_of_a_whole_output_is_still_asked() -> None:
    def body(x: Any, o: Any) -> None:
        spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
        pltpu.emit_pipeline(_copy, grid=(3,), in_specs=[spec], out_specs=[spec])(x, o)

    shape = jax.ShapeDtypeStruct((32, 128), jnp.float32)
    function = pl.pallas_call(body, in_specs=[ANY], out_specs=ANY, out_shape=shape, grid=(1,))
    assert _worst(_findings("outputs_covered", function, _x(32, 128), pipeline=True)) is REFUTED
    assert _worst(_findings("outputs_stored", function, _x(32, 128))) is REFUTED


@pytest.mark.parametrize(
    ("index", "verdict"),
    [
        (lambda i, t: (lax.cond(i < 4, lambda: t[i] * 0, lambda: 0), 0), PROVED),
        (lambda i, t: (lax.cond(i < 5, lambda: t[i] * 0, lambda: 0), 0), REFUTED),
        (lambda i, t: (lax.cond(i < 4, lambda: 0, lambda: t[i - 4] * 0), 0), PROVED),
        (lambda i, t: (lax.cond(i < 4, lambda: 0, lambda: t[i] * 0), 0), REFUTED),
        (lambda i, t: (lax.switch(i // 4, [lambda: t[i] * 0, lambda: t[i - 4] * 0]), 0), PROVED),
        # both sides of a where are computed
        (lambda i, t: (jnp.where(i < 4, t[i] * 0, 0), 0), REFUTED),
    ],
)
def test_a_branch_that_is_not_taken_reads_nothing(index: Callable[..., Any], verdict: Verdict) -> None:
    function = _mapped(index, tables=1)
    found = _findings("table_reads", function, jax.ShapeDtypeStruct((4,), jnp.int32), _x())
    assert _worst(found) is verdict


def test_a_kind_of_block_without_rules_is_unknown() -> None:
    from dataclasses import replace

    from layoutproof.kernel.kernel import Block

    (call,) = kernels_of(_mapped(lambda i: (i, 0)), (_x(),))
    assert isinstance(call, Kernel)
    odd = replace(call.operands[0], block=(Block("?Indirect", 1), call.operands[0].block[1]), unmodelled="an Indirect")
    for pipeline in ("pallas_call", "emit_pipeline"):
        kernel = replace(call, operands=(odd, *call.operands[1:]), pipeline=pipeline)
        for question in ("legal_for_target", "block_shape", "blocks_in_bounds"):
            assert _worst(judge(kernel, names=[question], target="v6e")) is UNKNOWN, (pipeline, question)


def test_what_xla_copies_first_is_no_refusal() -> None:
    """s4[64,8] lies in columns by default on v5p: blocks of 32 rows pass, and of others like it some do not."""
    from layoutproof.core.errors import Unsupported
    from layoutproof.kernel.kernel import Block, Operand
    from layoutproof.pallas.judge import kernel_target

    narrow = Operand("x", "in", (64, 8), "s4", (Block("blocked", 32), Block("blocked", 8)), ())
    with pytest.raises(Unsupported, match="XLA copies this operand first"):
        kernel_target("v5p", "0.0.42.1").refuses_block(narrow)
    in_rows = Operand("x", "in", (64, 256), "s4", (Block("blocked", 32), Block("blocked", 256)), ())
    assert "Mosaic E2002" in kernel_target("v5p", "0.0.42.1").refuses_block(in_rows)


@pytest.mark.parametrize(
    ("dims", "block", "dtype", "v5e", "v6e"),
    [
        # what libtpu 0.0.52 says, ahead of time
        ((2048, 512), (4, 512), "float32", PROVED, PROVED),
        ((8, 4, 256), (1, 2, 128), "float32", PROVED, PROVED),
        ((6, 384), (2, 128), "float32", PROVED, PROVED),
        ((64, 256), (4, 128), "int8", PROVED, PROVED),
        ((64, 256), (2, 128), "int8", REFUTED, REFUTED),
        ((12, 64), (1, 64), "bfloat16", REFUTED, REFUTED),
        # v6e takes this one, and refuses (12, 32) of (12, 256)
        ((2048, 512), (8, 64), "float32", REFUTED, UNKNOWN),
    ],
)
def test_blocks_that_a_pipeline_copies(
    dims: tuple[int, ...], block: tuple[int, ...], dtype: str, v5e: Verdict, v6e: Verdict
) -> None:
    def body(x: Any, o: Any) -> None:
        spec = pl.BlockSpec(block, lambda *index: index)
        grid = tuple(n // b for n, b in zip(dims, block, strict=True))
        pltpu.emit_pipeline(_copy, grid=grid, in_specs=[spec], out_specs=[spec])(x, o)

    array = jax.ShapeDtypeStruct(dims, dtype)
    function = pl.pallas_call(body, in_specs=[ANY], out_specs=ANY, out_shape=array, grid=(1,))
    for target, verdict in (("v5e", v5e), ("v6e", v6e)):
        assert _worst(_findings("block_shape", function, array, pipeline=True, target=target)) is verdict, target
    if dims[0] == 2048:
        spec = pl.BlockSpec(block, lambda *index: index)
        grid = tuple(n // b for n, b in zip(dims, block, strict=True))
        call = pl.pallas_call(_copy, grid=grid, in_specs=[spec], out_specs=spec, out_shape=array)
        assert _worst(_findings("block_shape", call, array, target="v6e")) is REFUTED


@pytest.mark.parametrize(("step", "verdict"), [(2, PROVED), (3, REFUTED)])
def test_an_id_of_the_grid_around_a_pipeline_is_bounded_by_it(step: int, verdict: Verdict) -> None:
    def body(x: Any, o: Any) -> None:
        program = pl.program_id(0)
        spec = pl.BlockSpec((8, 128), lambda i: (program * step + i, 0))
        pltpu.emit_pipeline(_copy, grid=(2,), in_specs=[spec], out_specs=[spec])(x, o)

    array = jax.ShapeDtypeStruct((32, 128), jnp.float32)
    function = pl.pallas_call(body, in_specs=[ANY], out_specs=ANY, out_shape=array, grid=(2,))
    # it runs in each program of the grid, so that each id is that of one
    found = _findings("blocks_in_bounds", function, array, pipeline=True)
    assert _worst(found) is verdict
    if verdict is REFUTED:
        at = {str((f.counterexample or {})["reads"]) for f in found if f.verdict is REFUTED}
        assert at == {"{'outer_program_id0[0]': 1}"}
    assert _worst(_findings("index_int32", function, array, pipeline=True)) is PROVED
    assert _worst(_findings("outputs_covered", function, array, pipeline=True)) is PROVED
    assert _worst(_findings("outputs_stored", function, array)) is verdict


def _from(start: Callable[..., Any], interpret: Any = False) -> tuple[Callable[..., Any], Any, Any]:
    """A pipeline of two steps in each program: it moves the blocks from `start(table)` on, of four."""

    def body(table: Any, x: Any, o: Any) -> None:
        first = start(table)
        spec = pl.BlockSpec((8, 128), lambda i: (first + i, 0))
        pltpu.emit_pipeline(_copy, grid=(2,), in_specs=[spec], out_specs=[spec])(x, o)

    spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(2,), in_specs=[ANY], out_specs=ANY)
    array = jax.ShapeDtypeStruct((32, 128), jnp.float32)
    function = pl.pallas_call(body, grid_spec=spec, out_shape=array, interpret=interpret)
    return function, jax.ShapeDtypeStruct((2,), jnp.int32), array


@pytest.mark.parametrize(
    ("start", "verdict"),
    [
        (lambda t: pl.program_id(0) * 2, PROVED),
        (lambda t: pl.program_id(0) * 3, REFUTED),
        (lambda t: jnp.minimum(pl.program_id(0) * 3, 2), PROVED),
        (lambda t: jnp.minimum(pl.program_id(0) * 3, 3), REFUTED),
        (lambda t: (pl.program_id(0) + 3) // 2 * 2 - 2, PROVED),
        (lambda t: (pl.program_id(0) + 3) // 2 * 2 - 1, REFUTED),
        (lambda t: jnp.where(pl.program_id(0) > 0, 2, 0), PROVED),
        (lambda t: jnp.where(pl.program_id(0) > 0, 3, 0), REFUTED),
        # what it loads may be anything, and is held between two numbers
        (lambda t: jnp.clip(t[pl.program_id(0)], 0, 2), PROVED),
        (lambda t: jnp.clip(t[pl.program_id(0)], 0, 3), UNKNOWN),
        # what wraps is no multiple: 2**30 * 4 is 0 in 32 bits
        (lambda t: (pl.program_id(0) * 2**30) * 4 + pl.program_id(0) * 2, UNKNOWN),
    ],
)
def test_numbers_of_the_body_in_an_index_map(start: Callable[..., Any], verdict: Verdict) -> None:
    function, table, array = _from(start)
    assert _worst(_findings("blocks_in_bounds", function, table, array, pipeline=True)) is verdict


def test_jax_interpreter_shows_the_blocks_that_numbers_of_the_body_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    # its pipelines ask which chip they run on
    monkeypatch.setattr("jax._src.pallas.mosaic.tpu_info.get_device_kind", lambda: "TPU v6 lite")
    monkeypatch.setattr("jax._src.pallas.mosaic.tpu_info.get_num_device_cores", lambda: 1)
    x, table = jnp.arange(32 * 128, dtype=jnp.float32).reshape(32, 128), jnp.zeros(2, jnp.int32)
    right, _, _ = _from(lambda t: pl.program_id(0) * 2, interpret=pltpu.InterpretParams())
    assert bool((right(table, x) == x).all())
    wrong, _, _ = _from(lambda t: pl.program_id(0) * 3, interpret=pltpu.InterpretParams())
    with pytest.raises(Exception, match=r"Out-of-bounds read .*slice\(32, 40"):
        wrong(table, x)
