"""Small kernels of one input and one output, for tests of what is said of their bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from layoutproof.core.finding import Finding
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge

ROWS = ((8, 128), lambda i, *tables: (i, 0))
"""One block of 8 rows for each program."""

ANY = pl.BlockSpec(memory_space=pl.ANY)
X = jax.ShapeDtypeStruct((32, 128), jnp.float32)


def found(
    question: str,
    body: Callable[..., None],
    grid: Sequence[int] = (4,),
    x: tuple[int, ...] = (32, 128),
    given: Any = ROWS,
    out: Any = ROWS,
    shape: tuple[int, ...] = (32, 128),
    tables: Sequence[tuple[int, ...]] = (),
    scratch: Sequence[Any] = (),
    aliases: dict[int, int] | None = None,
    assume: Sequence[str] = (),
    strict_tables: bool = False,
) -> list[Finding]:
    """What is said of a kernel of f32, call by call."""

    def spec(block: Any) -> Any:
        return block if isinstance(block, pl.BlockSpec) else pl.BlockSpec(*block)

    def function(*arguments: Any) -> Any:
        grid_spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=len(tables),
            grid=tuple(grid),
            in_specs=[spec(given)],
            out_specs=spec(out),
            scratch_shapes=list(scratch),
        )
        made = jax.ShapeDtypeStruct(shape, jnp.float32)
        return pl.pallas_call(body, grid_spec=grid_spec, out_shape=made, input_output_aliases=aliases or {})(*arguments)

    arguments = [*(jax.ShapeDtypeStruct(t, jnp.int32) for t in tables), jax.ShapeDtypeStruct(x, jnp.float32)]
    findings: list[Finding] = []
    for call in kernels_of(function, arguments, assume=tuple(assume)):
        assert isinstance(call, Kernel)
        if call.pipeline == "pallas_call":
            findings += judge(call, names=[question], strict_tables=strict_tables)
    return findings


def scratched(apart: int, extra: int) -> Callable[..., Any]:
    """Two cores that copy 16 rows of an array around them through scratch; apart: how far apart these are.

    extra: how many buffers there are that nothing uses.
    """

    def halves(x: Any) -> Any:
        source, target = jax.new_ref(x), jax.new_ref(jnp.zeros_like(x))
        more = [pltpu.VMEM((8, 128), jnp.float32)] * extra
        scratch = [pltpu.VMEM((16, 128), jnp.float32), pltpu.SemaphoreType.DMA, *more]

        @pl.core_map(pltpu.create_tensorcore_mesh("core", num_cores=2), scratch_shapes=scratch)
        def _(buffer: Any, arrived: Any, *unused: Any) -> None:
            rows = pl.ds(jax.lax.axis_index("core") * apart, 16)
            pltpu.async_copy(source.at[rows], buffer, arrived).wait()
            pltpu.async_copy(buffer, target.at[rows], arrived).wait()

        return target[...]

    return halves
