"""Functions with block sizes as keyword arguments, for searches that trace them."""

from __future__ import annotations

from typing import Any


def copy(x: Any, *, rows: int, columns: int = 128) -> Any:
    """Copies a matrix by blocks; blocks have to divide it, and it says so."""
    import jax
    from jax.experimental import pallas as pl

    if x.shape[0] % rows:
        raise ValueError(f"{x.shape[0]} rows are no multiple of {rows}")
    block = pl.BlockSpec((rows, columns), lambda i, j: (i, j))
    return pl.pallas_call(
        lambda a, b: b.__setitem__(..., a[...]),
        grid=(x.shape[0] // rows, x.shape[1] // columns),
        in_specs=[block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)


def truncated(x: Any, *, rows: int) -> Any:
    """Forgets the rows after the last whole block."""
    return _by_rows(x, rows)


def looked_up(table: Any, x: Any, *, rows: int) -> Any:
    """As many blocks as a table has entries, each the one that its entry says."""
    import jax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    steps = table.shape[0]
    grid = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(steps,),
        in_specs=[pl.BlockSpec((rows, 128), lambda i, t: (t[i], 0))],
        out_specs=pl.BlockSpec((rows, 128), lambda i, t: (i, 0)),
    )
    shape = jax.ShapeDtypeStruct((steps * rows, 128), x.dtype)
    return pl.pallas_call(lambda t, a, b: b.__setitem__(..., a[...]), grid_spec=grid, out_shape=shape)(table, x)


def by_hand(x: Any, *, rows: int) -> Any:
    """One operand stays where it is; the kernel copies from it by hand."""
    import jax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    block = pl.BlockSpec((rows, 128), lambda i: (i, 0))
    return pl.pallas_call(
        lambda a, b: pltpu.sync_copy(a.at[pl.ds(pl.program_id(0) * rows, rows)], b),
        grid=(x.shape[0] // rows,),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)


def seventeenth_row(x: Any, *, rows: int) -> Any:
    """Adds the row 16 of each block, which blocks of 8 and of 16 rows do not have."""
    import jax
    from jax.experimental import pallas as pl

    def body(a: Any, b: Any) -> None:
        b[...] = a[...] + a[pl.ds(16 + 0 * pl.program_id(0), 1), :]

    block = pl.BlockSpec((rows, 128), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(body, grid=(x.shape[0] // rows,), in_specs=[block], out_specs=block, out_shape=shape)(x)


def row_of_a_table(table: Any, x: Any, *, rows: int) -> Any:
    """Adds the row of each block that a table names: inside, if the table says so."""
    import jax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def body(t: Any, a: Any, b: Any) -> None:
        b[...] = a[...] + a[pl.ds(t[pl.program_id(0)], 1), :]

    block = pl.BlockSpec((rows, 128), lambda i, t: (i, 0))
    grid = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(x.shape[0] // rows,), in_specs=[block], out_specs=block
    )
    return pl.pallas_call(body, grid_spec=grid, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(table, x)


def summed(x: Any, *, rows: int) -> Any:
    """Two calls after one another."""
    return copy(copy(x, rows=rows), rows=rows)


def for_a_gpu(x: Any, *, rows: int) -> Any:
    """Written for another platform."""
    from jax.experimental.pallas import triton

    return _by_rows(x, rows, compiler_params=triton.CompilerParams(num_warps=4))


def nothing(x: Any, *, rows: int) -> Any:
    """No Pallas call at all."""
    return x * rows


def deep(x: Any, *, rows: int) -> Any:
    """Holds more than its windows show: a product of a block with itself, all of it at once."""
    import jax
    from jax.experimental import pallas as pl

    def body(a: Any, b: Any) -> None:
        scores = jax.numpy.dot(a[...], a[...].T, preferred_element_type="float32")
        b[...] = jax.numpy.dot(jax.numpy.exp(scores), a[...], preferred_element_type="float32")

    block = pl.BlockSpec((rows, 128), lambda i: (i, 0))
    return pl.pallas_call(
        body,
        grid=(x.shape[0] // rows,),
        in_specs=[block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct(x.shape, "float32"),
    )(x)


def _by_rows(x: Any, rows: int, **more: Any) -> Any:
    import jax
    from jax.experimental import pallas as pl

    block = pl.BlockSpec((rows, 128), lambda i: (i, 0))
    return pl.pallas_call(
        lambda a, b: b.__setitem__(..., a[...]),
        grid=(x.shape[0] // rows,),
        in_specs=[block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        **more,
    )(x)


def special(x: Any, *, rows: int, columns: int) -> Any:
    """One pair of block sizes is a name for another."""
    if rows == 64 and columns == 256:
        rows, columns = 512, 512
    return copy(x, rows=rows, columns=columns)


def checked(x: Any, *, rows: int, columns: int) -> Any:
    """Looks whether a size is a whole number before it compares it."""
    if isinstance(rows, int) and rows == 8:
        columns = 512
    return copy(x, rows=rows, columns=columns)


def shortened(x: Any, *, rows: int, columns: int) -> Any:
    """No block is taller than a quarter of the array."""
    return copy(x, rows=min(rows, x.shape[0] // 4), columns=columns)


def rounded_up(x: Any, *, rows: int, columns: int) -> Any:
    """The last blocks reach over the edge; what the block map does with a size is in a closure."""
    import jax
    from jax.experimental import pallas as pl

    last = pl.cdiv(x.shape[0], rows) - 1
    block = pl.BlockSpec((rows, columns), lambda i, j: (last - i, j))
    return pl.pallas_call(
        lambda a, b: b.__setitem__(..., a[...]),
        grid=(last + 1, pl.cdiv(x.shape[1], columns)),
        in_specs=[block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)


def keyed(x: Any, *, rows: int, columns: int) -> Any:
    """Sizes out of a dictionary and of a set."""
    taller = {8: 256, 64: 16}.get(rows, rows)
    return copy(x, rows=taller, columns=512 if columns in {128} else columns)


def by_bits(x: Any, *, rows: int, columns: int) -> Any:
    """Reads a size with the C library, with a loop and as text: each says something else."""
    import math

    wide = columns if math.log2(rows) % 2 else 128
    for _ in range(rows // 128):
        wide = 512
    return copy(x, rows=int(f"{rows}") if rows != 16 else 32, columns=wide)


def padded(x: Any, *, rows: int, columns: int) -> Any:
    """The array gets as many rows as blocks need."""
    import jax.numpy as jnp

    whole = -(-(x.shape[0] - 8) // rows) * rows
    return copy(jnp.pad(x[: x.shape[0] - 8], ((0, whole - x.shape[0] + 8), (0, 0))), rows=rows, columns=columns)


def loose_body(x: Any, *, rows: int, columns: int) -> Any:
    """A body that is given its sizes, refuses one, and allocates for another."""
    import functools

    import jax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def body(a: Any, b: Any, *, tall: int) -> None:
        if tall == 256:
            raise ValueError("no body for 256 rows")

        def within(c: Any) -> None:
            c[...] = a[...] + jax.lax.broadcast(1.0, (tall, columns))
            b[...] = c[...]

        if tall == 128:
            pl.run_scoped(within, pltpu.VMEM((tall, columns), "float32"))
        else:
            b[...] = a[...]

    block = pl.BlockSpec((rows, columns), lambda i, j: (i, j))
    return pl.pallas_call(
        functools.partial(body, tall=rows),
        grid=(x.shape[0] // rows, x.shape[1] // columns),
        in_specs=[block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)


def _over_blocks(x: Any, rows: int, columns: int, body: Any) -> Any:
    import jax
    from jax.experimental import pallas as pl

    block = pl.BlockSpec((rows, columns), lambda i, j: (i, j))
    return pl.pallas_call(
        body,
        grid=(x.shape[0] // rows, x.shape[1] // columns),
        in_specs=[block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)


def looks_at_shapes(x: Any, *, rows: int, columns: int) -> Any:
    """A body that asks its references how large they are, which nobody records."""

    def body(a: Any, b: Any) -> None:
        if a.shape == (512, 512):
            raise ValueError("too large")
        b[...] = a[...]

    return _over_blocks(x, rows, columns, body)


def mapped(x: Any, *, rows: int, columns: int) -> Any:
    """Index maps that compute with sizes, one of which is a constant."""
    import jax
    from jax.experimental import pallas as pl

    last = x.shape[1] // columns - 1
    whole = pl.BlockSpec((rows, columns), lambda i, j: (jax.numpy.where(i * rows < 4 * columns, i, 0), last))
    block = pl.BlockSpec((rows, columns), lambda i, j: (i, last - j))
    return pl.pallas_call(
        lambda a, b: b.__setitem__(..., a[...]),
        grid=(x.shape[0] // rows, last + 1),
        in_specs=[whole],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)


def twice(x: Any, *, rows: int, columns: int) -> Any:
    """A jitted function called with one size and with another: where they are equal, JAX traces it once."""
    import jax

    inner = jax.jit(_by_rows, static_argnames="rows")
    return inner(inner(x[:, :128], rows=rows), rows=columns)


def nested_memory(x: Any, *, rows: int, columns: int) -> Any:
    """A body that allocates one memory within another, both of a block's sizes; of the larger it may be too much."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    tall, flat = pltpu.VMEM((8 * rows, columns), "float32"), pltpu.VMEM((8, columns), "float32")

    def body(a: Any, b: Any) -> None:
        def outer(c: Any) -> None:
            def inner(d: Any) -> None:
                d[...] = a[:8, :]
                c[:8, :] = d[...]
                b[...] = a[...]

            pl.run_scoped(inner, pltpu.VMEM((8, columns), "float32"))

        def unused(d: Any, c: Any, semaphore: Any) -> None:
            outer(c)
            d[...] = a[:8, :]

        pl.run_scoped(unused, flat, tall, pltpu.SemaphoreType.DMA)

    return _over_blocks(x, rows, columns, body)


def memory_in_turn(x: Any, *, rows: int, columns: int) -> Any:
    """A body that allocates one memory after another, which share a place."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def body(a: Any, b: Any) -> None:
        def used(c: Any) -> None:
            c[...] = c[...] * 0
            b[...] = a[...]

        pl.run_scoped(used, pltpu.VMEM((16 * rows, 128), "float32"))
        pl.run_scoped(used, pltpu.VMEM((8, 64 * columns), "float32"))

    return _over_blocks(x, rows, columns, body)
