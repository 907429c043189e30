"""Mistakes that JAX and the TPU compiler let through: small Pallas calls, the property that must speak, and a twin.

`wrong` and `right` make the call; both are traced on shapes. Most were shown to compile, and to go wrong or not to be
noticed in JAX's interpreters, before this tool existed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

F32 = "float32"


@dataclass(frozen=True)
class Pitfall:
    """wrong, right: return (function, arguments). says: the property. severity: of its finding for `wrong`."""

    number: int
    what: str
    says: str
    severity: str
    wrong: Callable[[], Any]
    right: Callable[[], Any]
    assume: tuple[str, ...] = ()
    replay: bool = False


def summed(x: Any, o: Any, total: Any) -> None:
    """Adds up in scratch: what no body keeps anything in, the compiler drops."""
    import jax.numpy as jnp
    from jax.experimental import pallas as pl

    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        total[...] = jnp.zeros(total.shape, total.dtype)

    total[:8] = total[:8] + x[...]
    o[...] = total[:8]


def call(
    grid: tuple[Any, ...], index: Any, out_index: Any, *, x: tuple[int, ...] = (32, 128), out: Any = (32, 128),
    block: Any = (8, 128), out_block: Any = None, dtype: str = F32, table: int = 0, body: Any = None,
    semantics: Any = None, aliases: Any = None, scratch: Any = (), limit: int | None = None, space: str = "",
    batch: int = 0, buffers: int = 0,
) -> Any:  # fmt: skip
    """(function, arguments) of one call with one input and one output; `table` entries of scalar prefetch."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def copy(*refs: Any) -> None:
        refs = refs[1:] if table else refs
        refs[1][...] = jnp.broadcast_to(refs[0][...].reshape(-1)[0], refs[1].shape)

    more = {"pipeline_mode": pl.Buffered(buffers)} if buffers else {}
    kept = {"memory_space": getattr(pl, space)} if space else {}
    specs = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1 if table else 0,
        grid=grid,
        in_specs=[pl.BlockSpec(block, index, **more, **kept)],
        out_specs=pl.BlockSpec(block if out_block is None else out_block, out_index),
        scratch_shapes=[pltpu.VMEM(shape, jnp.float32) for shape in scratch],
    )
    kind = getattr(jnp, dtype)
    function = pl.pallas_call(
        body or copy,
        grid_spec=specs,
        out_shape=jax.ShapeDtypeStruct(out, kind),
        input_output_aliases=aliases or {},
        compiler_params=pltpu.CompilerParams(dimension_semantics=semantics, vmem_limit_bytes=limit),
    )
    arguments = [jax.ShapeDtypeStruct((table,), jnp.int32)] if table else []
    arguments.append(jax.ShapeDtypeStruct((batch, *x) if batch else x, kind))
    return (jax.vmap(function) if batch else function), tuple(arguments)


def element(*sizes: Any) -> tuple[Any, ...]:
    from jax.experimental import pallas as pl

    return tuple(pl.Element(*size) if isinstance(size, tuple) else size for size in sizes)


def at_least(low: int) -> Any:
    import jax.numpy as jnp

    return lambda i: (jnp.maximum(i - 1, low), 0)


def hinted(factor: int) -> Any:
    from jax.experimental import pallas as pl

    return lambda i: (pl.multiple_of(i * factor, 8), 0)


ROWS = lambda i: (i, 0)  # noqa: E731
GOOD = lambda: call((4,), ROWS, ROWS)  # noqa: E731

PITFALLS = (
    Pitfall(1, "output index past the end", "blocks_in_bounds", "error",
            lambda: call((4,), ROWS, ROWS, out=(24, 128)), GOOD, replay=True),
    Pitfall(2, "input index one too far", "blocks_in_bounds", "error", lambda: call((4,), lambda i: (i + 1, 0), ROWS),
         GOOD,
            replay=True),
    Pitfall(3, "input index below 0", "blocks_in_bounds", "error", lambda: call((4,), lambda i: (i - 1, 0), ROWS),
            lambda: call((4,), at_least(0), ROWS), replay=True),
    Pitfall(4, "a block of the output is never written", "outputs_covered", "error", lambda: call((3,), ROWS, ROWS),
         GOOD,
            replay=True),
    Pitfall(5, "the same with integers", "outputs_covered", "error", lambda: call((3,), ROWS, ROWS, dtype="int32"),
         GOOD,
            replay=True),
    Pitfall(6, "parallel programs write one block", "parallel_writes", "error",
            lambda: call((2,), ROWS, lambda i: (0, 0), out=(8, 128), semantics=("parallel",)),
            lambda: call((2,), ROWS, lambda i: (0, 0), out=(8, 128), semantics=("arbitrary",))),
    Pitfall(7, "the reduction axis is not innermost", "revisits", "error",
            lambda: call((2, 4), lambda k, i: (i, 0), lambda k, i: (i, 0)),
            lambda: call((4, 2), lambda i, k: (i, 0), lambda i, k: (i, 0)), replay=True),
    Pitfall(8, "blocks in turns", "revisits", "error", lambda: call((4,), ROWS, lambda i: (i % 2, 0), out=(16, 128)),
            lambda: call((4,), ROWS, lambda i: (i // 2, 0), out=(16, 128)), replay=True),
    Pitfall(9, "aliased buffers, the next block written", "alias_hazard", "error",
            lambda: call((3,), ROWS, lambda i: (i + 1, 0), aliases={0: 0}),
            lambda: call((4,), ROWS, ROWS, aliases={0: 0})),
    Pitfall(10, "a partial block is reduced without a mask", "partial_blocks", "info",
            lambda: call((4,), ROWS, ROWS, x=(30, 128), out=(30, 128)), GOOD),
    Pitfall(11, "a block larger than VMEM", "memory_budget", "error",
            lambda: call((2,), ROWS, ROWS, x=(65536, 1024), out=(65536, 1024), block=(32768, 1024)), GOOD),
    Pitfall(12, "scratch larger than VMEM", "memory_budget", "error",
            lambda: call((4,), ROWS, ROWS, scratch=[(65536, 128)], body=summed),
            lambda: call((4,), ROWS, ROWS, scratch=[(8, 128)], body=summed)),
    Pitfall(13, "8 rows of int8", "block_shape", "error", lambda: call((4,), ROWS, ROWS, dtype="int8"),
            lambda: call((4,), ROWS, ROWS, dtype="bfloat16")),
    Pitfall(14, "100 columns of 200", "block_shape", "error",
            lambda: call((4, 2), lambda i, j: (i, j), lambda i, j: (i, j), x=(32, 200), out=(32, 200), block=(8,
                 100)), GOOD),
    Pitfall(15, "7 rows of 28", "block_shape", "error",
            lambda: call((4,), ROWS, ROWS, x=(28, 128), out=(28, 128), block=(7, 128)), GOOD),
    Pitfall(16, "one dimension, 96 of 384", "block_shape", "error",
            lambda: call((4,), lambda i: (i,), lambda i: (i,), x=(384,), out=(384,), block=(96,)),
            lambda: call((3,), lambda i: (i,), lambda i: (i,), x=(384,), out=(384,), block=(128,))),
    Pitfall(17, "the reduction visits in turns with another", "revisits", "error",
            lambda: call((2, 2, 2), lambda a, b, c: (a, 0), lambda a, b, c: (c, 0), out=(16, 128)),
            lambda: call((2, 2, 2), lambda a, b, c: (a, 0), lambda a, b, c: (a, 0), out=(16, 128))),
    Pitfall(18, "an Element window past the end", "blocks_in_bounds", "error",
            lambda: call((4,), lambda i: (i * 8 + 8, 0), ROWS, block=element((8,), (128,)), out_block=(8, 128)),
            lambda: call((4,), lambda i: (i * 8, 0), ROWS, block=element((8,), (128,)), out_block=(8, 128))),
    Pitfall(19, "Element next to a plain block", "legal_for_target", "error",
            lambda: call((4,), lambda i: (i * 8, 0), ROWS, block=element((8,), 128), out_block=(8, 128)),
            lambda: call((4,), lambda i: (i * 8, 0), ROWS, block=element((8,), (128,)), out_block=(8, 128))),
    Pitfall(20, "an Element start that is no tile", "element_alignment", "error",
            lambda: call((4,), lambda i: (i * 3, 0), ROWS, block=element((8,), (128,)), out_block=(8, 128)),
            lambda: call((4,), lambda i: (i * 8, 0), ROWS, block=element((8,), (128,)), out_block=(8, 128))),
    Pitfall(21, "low padding", "block_shape", "error",
            lambda: call((4,), lambda i: (i * 8, 0), ROWS, block=element((8, (8, 0)), (128,)), out_block=(8, 128)),
            lambda: call((4,), lambda i: (i * 8, 0), ROWS, block=element((8, (0, 8)), (128,)), out_block=(8, 128))),
    Pitfall(22, "a false multiple_of", "element_alignment", "error",
            lambda: call((4,), hinted(4), ROWS, block=element((8,), (128,)), out_block=(8, 128)),
            lambda: call((4,), hinted(8), ROWS, block=element((8,), (128,)), out_block=(8, 128))),
    Pitfall(23, "vmap makes the dimension parallel, and all write one block", "alias_hazard", "error",
            lambda: call((3,), ROWS, lambda i: (i + 1, 0), aliases={0: 0}, batch=2),
            lambda: call((4,), ROWS, ROWS, aliases={0: 0}, batch=2)),
    Pitfall(24, "a table entry past the end", "blocks_in_bounds", "error",
            lambda: call((4,), lambda i, t: (t[i], 0), lambda i, t: (i, 0), table=4),
            lambda: call((4,), lambda i, t: (t[i] % 4, 0), lambda i, t: (i, 0), table=4),
                 assume=("0 <= prefetch0 < 5",)),
    Pitfall(25, "ANY with a window", "block_shape", "error", lambda: call((4,), ROWS, ROWS, space="ANY"), GOOD),
    Pitfall(26, "a table read past its end", "table_reads", "error",
            lambda: call((4,), lambda i, t: (t[i + 1], 0), lambda i, t: (i, 0), table=4),
            lambda: call((4,), lambda i, t: (t[i], 0), lambda i, t: (i, 0), table=4), assume=("0 <= prefetch0 < 4",)),
    Pitfall(27, "parallel after sequential", "parallel_prefix", "error",
            lambda: call((2, 2), lambda i, j: (2 * i + j, 0), lambda i, j: (2 * i + j, 0), semantics=("arbitrary",
                 "parallel")),
            lambda: call((2, 2), lambda i, j: (2 * i + j, 0), lambda i, j: (2 * i + j, 0),
                         semantics=("parallel", "arbitrary"))),
    Pitfall(28, "a grid that floor-divides", "outputs_covered", "error",
            lambda: call((33 // 8,), ROWS, ROWS, x=(33, 128), out=(33, 128)),
            lambda: call((-(-33 // 8),), ROWS, ROWS, x=(33, 128), out=(33, 128)), replay=True),
    Pitfall(29, "an element offset where a block index is expected", "blocks_in_bounds", "error",
            lambda: call((4,), lambda i: (i * 8, 0), ROWS), GOOD, replay=True),
    Pitfall(30, "a grid of 0", "grid_positive", "error", lambda: call((0,), ROWS, ROWS), GOOD),
    Pitfall(31, "index arithmetic beyond int32", "index_int32", "error",
            lambda: call((2**20,), lambda i: (i * 4096 // 4096, 0), lambda i: (i, 0), x=(2**23, 128), out=(2**23, 128)),
            lambda: call((2**20,), ROWS, ROWS, x=(2**23, 128), out=(2**23, 128))),
    Pitfall(32, "an operand that is laid out the other way round", "relayout", "warning",
            lambda: call((125,), ROWS, ROWS, x=(1000, 5), out=(1000, 5), block=(8, 5)), GOOD),
    Pitfall(33, "three buffers", "legal_for_target", "error", lambda: call((4,), ROWS, ROWS, buffers=3),
            lambda: call((4,), ROWS, ROWS, buffers=2)),
    Pitfall(34, "a negative grid", "grid_positive", "error", lambda: call((-1,), ROWS, ROWS), GOOD),
)  # fmt: skip
