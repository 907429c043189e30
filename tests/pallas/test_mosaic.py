"""A kernel read out of a lowered program is the kernel that tracing finds, and the same things hold of it."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import pytest

jax = pytest.importorskip("jax", reason="reading Mosaic kernels needs the extra [jax]")

from layoutproof.kernel.kernel import Kernel, Table, Unmodelled  # noqa: E402
from layoutproof.kernel.table_assumptions import with_assumptions  # noqa: E402
from layoutproof.pallas.findings import exit_code, judged  # noqa: E402
from layoutproof.pallas.from_jax.trace import kernels_of  # noqa: E402
from layoutproof.pallas.from_mosaic.mosaic_module import calls_in, kernels_in_hlo, kernels_of_calls  # noqa: E402
from tests.pallas.mosaic_texts import as_compiled, lowered, verdicts, windows  # noqa: E402
from tests.pallas.pitfalls import PITFALLS  # noqa: E402
from tests.pallas.wheel_ops import ops  # noqa: E402

pytestmark = pytest.mark.slow

REFUSED = {
    (13, "wrong"): "32-bit element types",  # what the body does, and not what the pitfall is about
    (13, "right"): "32-bit element types",
    (14, "wrong"): "divisible by",
    (15, "wrong"): "divisible by",
    (16, "wrong"): "block",
    (19, "wrong"): "All block dimensions must be Elements",
    (25, "wrong"): "trivial|ANY",
    (33, "wrong"): "Only single",
}
"""Pitfalls that JAX itself refuses to lower, and with what words."""

CASES = [(p.number, side) for p in PITFALLS for side in ("wrong", "right")]
OPS = {op.name: op for op in ops() if op.target != "triton"}


def pitfall(case: tuple[int, str]) -> Any:
    return getattr(PITFALLS[case[0] - 1], case[1])()


@functools.lru_cache(maxsize=1)
def pitfalls_read() -> dict[tuple[int, str], list[Kernel | Unmodelled]]:
    """What is read out of every pitfall's text; one child process for all of them."""
    calls = {}
    for case in CASES:
        if case not in REFUSED:
            (calls[case],) = calls_in(lowered(pitfall(case)), f"{case[0]} {case[1]}.mlir")
    found = kernels_of_calls(calls.values())
    assert len(found) == len(calls)
    return {case: [kernel] for case, kernel in zip(calls, found, strict=True)}


@functools.lru_cache(maxsize=1)
def wheel_read() -> dict[str, list[Kernel | Unmodelled]]:
    """What is read out of the texts of the wheel's operations."""
    calls = [call for op in OPS.values() for call in calls_in(lowered(op.build(), op.target), op.name)]
    found: dict[str, list[Kernel | Unmodelled]] = {}
    for kernel in kernels_of_calls(calls):
        found.setdefault(kernel.source.rpartition(":")[0], []).append(kernel)
    return found


def others() -> dict[str, Any]:
    """Calls with what neither the pitfalls nor the wheel have."""
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def copy(*refs: Any) -> None:
        refs[-1][...] = refs[-2][...]

    def both(x: Any, one: Any, two: Any, room: Any, signal: Any) -> None:
        one[...] = x[...]
        two[...] = x[...]

    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    x = jax.ShapeDtypeStruct((32, 128), jnp.float32)
    cube = jax.ShapeDtypeStruct((3, 32, 128), jnp.float32)
    plane = pl.BlockSpec((None, 8, 128), lambda b, i: (b, i, 0))
    inside = pl.BlockSpec((None, pl.Element(16), pl.Element(128)), lambda b, i: (b, i * 8, 0))
    block = pl.BlockSpec((None, 16, 128), lambda b, i: (b, 0, 0))
    table = jax.ShapeDtypeStruct((4, 2), jnp.int32)
    prefetched = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=2,
        grid=(4, 2),
        in_specs=[pl.BlockSpec((8, 128), lambda i, j, t, u: (t[u[i, 0] % 4, j] // 2, j))],
        out_specs=pl.BlockSpec((8, 128), lambda i, j, t, u: (jnp.where(i + j > 2, i, t[j, i % 2]), j)),
    )
    wide = jax.ShapeDtypeStruct((32, 256), jnp.float32)
    two = pl.pallas_call(
        both,
        grid=(4,),
        in_specs=[rows],
        out_specs=[rows, rows],
        out_shape=[x, x],
        scratch_shapes=[pltpu.VMEM((16, 256), jnp.bfloat16), pltpu.SemaphoreType.DMA((3,))],
    )
    moves = pltpu.CompilerParams(dimension_semantics=("parallel",), vmem_limit_bytes=1 << 23)
    dynamic = lambda n, m, x: pl.pallas_call(  # noqa: E731
        copy, grid=(n, 2, m), in_specs=[pl.BlockSpec((8, 128), lambda i, j, k: (i + k, j))],
        out_specs=pl.BlockSpec((8, 128), lambda i, j, k: (i, j)), out_shape=wide, input_output_aliases={0: 0},
    )(x)  # fmt: skip
    number = jax.ShapeDtypeStruct((), jnp.int32)
    whole = lambda dtype: jax.ShapeDtypeStruct((64, 256), dtype)  # noqa: E731
    tiles = pl.BlockSpec((8, 128), lambda i, j: (i, j))
    byte = lambda dtype: pl.pallas_call(  # noqa: E731
        copy, grid=(8, 2), in_specs=[tiles], out_specs=tiles, out_shape=whole(dtype)
    )
    found = {f"elements {dtype}": (byte(dtype), (whole(dtype),)) for dtype in ("int8", "bfloat16", "uint32", "int16")}
    return found | {
        "squeezed": (pl.pallas_call(copy, grid=(3, 4), in_specs=[plane], out_specs=plane, out_shape=cube), (cube,)),
        "element": (
            pl.pallas_call(copy, grid=(3, 3), in_specs=[inside], out_specs=block, out_shape=cube), (cube,),
        ),
        "two tables": (pl.pallas_call(copy, grid_spec=prefetched, out_shape=wide), (table, table, wide)),
        "a result that nobody uses": (lambda x: two(x * 2)[0], (x,)),
        "limit": (
            pl.pallas_call(copy, grid=(4,), in_specs=[rows], out_specs=rows, out_shape=x, compiler_params=moves), (x,),
        ),
        "grid at run time": (dynamic, (number, number, wide)),
        "no grid": (pl.pallas_call(copy, out_shape=x), (x,)),
        "booleans": (
            pl.pallas_call(
                lambda m, o: o.__setitem__(..., m[...].astype(jnp.float32)),
                grid=(4,), in_specs=[rows], out_specs=rows, out_shape=x,
            ),
            (jax.ShapeDtypeStruct((32, 128), jnp.bool_),),
        ),
        "twice": (lambda a: byte("float32")(byte("float32")(a)), (whole("float32"),)),
    }  # fmt: skip


def given(table: Table) -> Table:
    """The table without what the code says of its entries."""
    if table.contents is None:
        return table
    return Table(table.name, table.dims, table.bits, signed=table.signed, dtype=table.dtype)


def agree(traced: Kernel, read: Kernel | Unmodelled, target: str, assume: tuple[str, ...]) -> None:
    """Grid, windows, block indices and verdicts are the same."""
    assert isinstance(read, Kernel)
    read = with_assumptions(read, assume, strict=False)
    # a module is given its tables: it does not hold which of them the code made, nor of what
    tables = tuple(map(given, traced.tables))
    scalars = tuple(table for table in traced.scalars if table.contents is None)
    traced = with_assumptions(replace(traced, tables=tables, scalars=scalars), assume, strict=False)
    for name, ours in fields(as_compiled(traced)).items():
        assert fields(as_compiled(read))[name] == ours, name
    assert windows(read) == windows(traced)
    assert verdicts(read, target) == verdicts(traced, target)


def fields(kernel: Kernel) -> dict[str, str]:
    return {name: str(getattr(kernel, name)) if name != "operands" else repr(kernel.operands) for name in FIELDS}


FIELDS = tuple(Kernel.__dataclass_fields__)


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]:02d} {c[1]}")
def test_both_ways_agree_on_pitfalls(case: tuple[int, str]) -> None:
    if case in REFUSED:
        with pytest.raises(Exception, match=REFUSED[case]):
            lowered(pitfall(case))
        return
    function, arguments = pitfall(case)
    assume = PITFALLS[case[0] - 1].assume
    (traced,) = kernels_of(function, arguments, assume=assume)
    assert isinstance(traced, Kernel)
    (read,) = pitfalls_read()[case]
    agree(traced, read, "v5e", assume)


@pytest.mark.parametrize("name", OPS)
def test_both_ways_agree_on_the_wheel(name: str) -> None:
    op = OPS[name]
    function, arguments = op.build()
    traced = kernels_of(function, arguments, target=op.target, assume=op.assume)
    read = wheel_read()[name]
    assert len(read) == len(traced)
    for one, other in zip(traced, read, strict=True):
        assert isinstance(one, Kernel)
        agree(one, other, op.target, op.assume)


@pytest.mark.parametrize("name", others())
def test_both_ways_agree_on_what_is_left(name: str) -> None:
    built = others()[name]
    traced = kernels_of(*built)
    read = kernels_in_hlo(lowered(built), name)
    assert len(read) == len(traced) == (2 if name == "twice" else 1)
    for one, other in zip(traced, read, strict=True):
        assert isinstance(one, Kernel)
        agree(one, other, "v5e", ())


@pytest.mark.parametrize(("shift", "rows", "verdict"), [(0, 4, "unknown"), (1, 4, "refuted"), (0, 3, "refuted")])
def test_a_pipeline_in_a_body_is_judged_by_the_copies_that_it_makes(shift: int, rows: int, verdict: str) -> None:
    """Tracing finds the pipeline itself; a module holds the copies that became of it."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    x = jax.ShapeDtypeStruct((32, 128), "float32")
    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    moved = pl.BlockSpec((8, 128), lambda i: (i + shift, 0))
    still = pl.BlockSpec(memory_space=pl.ANY)

    def copy(a: Any, b: Any) -> None:
        b[...] = a[...]

    def kernel(a: Any, b: Any) -> None:
        pltpu.emit_pipeline(copy, grid=(rows,), in_specs=[moved], out_specs=[block])(a, b)

    def mixed(a: Any, c: Any, b: Any, d: Any) -> None:
        d[...] = c[...]
        kernel(a, b)

    only = pl.pallas_call(kernel, grid=(1,), in_specs=[still], out_specs=still, out_shape=x)
    both = pl.pallas_call(mixed, grid=(4,), in_specs=[still, block], out_specs=[still, block], out_shape=[x, x])
    for call, arguments in ((only, (x,)), (both, (x, x))):
        (read,) = kernels_in_hlo(lowered((call, arguments)))
        found = judged(read)
        assert found.verdict.value == verdict
        assert judged(read, only="grid").verdict.value == "unknown"
        bad = [f for f in found.findings if f.severity == "error"]
        wrong = {"body_in_bounds"} if shift else {"outputs_stored"} if rows < 4 else set()
        assert {f.question for f in bad if f.verdict.value == "refuted"} == wrong
        # which slot of its buffers a pipeline reads is a number that its loop hands on
        assert {f.question for f in bad if f.verdict.value == "unknown"} == {"initialised"}
        assert exit_code([found]) == (1 if wrong else 3)


def test_a_pipeline_over_a_partial_tile_is_no_error_and_not_proved() -> None:
    """Its last block is copied up to its last tile, rows 24:32 of 28: right, and a module does not say the block."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    x = jax.ShapeDtypeStruct((28, 128), "float32")
    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    still = pl.BlockSpec(memory_space=pl.ANY)

    def copy(a: Any, b: Any) -> None:
        b[...] = a[...]

    def kernel(a: Any, b: Any) -> None:
        pltpu.emit_pipeline(copy, grid=(4,), in_specs=[block], out_specs=[block])(a, b)

    call = pl.pallas_call(kernel, grid=(1,), in_specs=[still], out_specs=still, out_shape=x)
    (read,) = kernels_in_hlo(lowered((call, (x,))))
    found = judged(read)
    assert found.verdict.value == "unknown"
    assert any("partial" in f.reason for f in found.of("body_in_bounds"))
