"""Kernels run for real: a `Kernel` as `pallas_call` of jax, in interpret mode on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from layoutproof.core.index_map import row_major
from layoutproof.core.term import Term
from layoutproof.crosschecks.compiling import TracedNumbers
from layoutproof.kernel.kernel import Block, Kernel, Operand

NEVER = np.iinfo(np.int32).min
"""What interpret mode leaves in an int32 output that no program writes."""


def written(kernel: Kernel, tables: Mapping[str, Any] | None = None) -> np.ndarray:
    """The only output after every program has filled its block with its row-major number."""
    (out,) = kernel.outputs
    grid = tuple(int(n) for n in kernel.grid)  # type: ignore[arg-type]

    def body(*refs: Any) -> None:
        ref = refs[-1]
        number = row_major(tuple(pl.program_id(k) for k in range(len(grid))), grid)
        ref[...] = jnp.full(ref.shape, number, dtype=jnp.int32)

    shape = jax.ShapeDtypeStruct(tuple(int(n) for n in out.dims), jnp.int32)  # type: ignore[arg-type]
    names = [table.name for table in kernel.tables]
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=len(names), grid=grid, in_specs=[], out_specs=_spec(kernel, out, names)
    )
    held = [jnp.asarray((tables or {})[name], dtype=jnp.int32) for name in names]
    return np.asarray(pl.pallas_call(body, grid_spec=spec, out_shape=shape, interpret=True)(*held))


def seen(kernel: Kernel, operand: Operand) -> np.ndarray:
    """What every program reads of an int32 array that holds its own positions: programs first, then the block."""
    grid = tuple(int(n) for n in kernel.grid)  # type: ignore[arg-type]
    dims = tuple(int(n) for n in operand.dims)  # type: ignore[arg-type]
    block = tuple(int(b.size) for b in operand.block if b.kind != "squeezed")  # type: ignore[arg-type]
    rank = len(grid)

    def body(x: Any, o: Any) -> None:
        o[...] = x[...]

    out = pl.BlockSpec((*(None,) * rank, *block), lambda *at: (*at, *(0,) * len(block)))
    call = pl.pallas_call(
        body,
        grid=grid,
        in_specs=[_spec(kernel, operand, [])],
        out_specs=out,
        out_shape=jax.ShapeDtypeStruct((*grid, *block), jnp.int32),
        interpret=True,
    )
    return np.asarray(call(jnp.arange(np.prod(dims), dtype=jnp.int32).reshape(dims)))


def _spec(kernel: Kernel, operand: Operand, tables: list[str]) -> Any:
    rank = len(kernel.grid)

    def index(*at: Any) -> tuple[Any, ...]:
        names: dict[str, Any] = dict(zip(kernel.grid_names, at[:rank], strict=True))
        held = dict(zip(tables, at[rank:], strict=True))
        return tuple(_evaluate(term, names, held) for term in operand.index)

    return pl.BlockSpec(tuple(_dimension(block) for block in operand.block), index)


def _evaluate(term: Term, names: Mapping[str, Any], tables: Mapping[str, Any]) -> Any:
    if term.op == "read":
        return tables[term.args[0].args[0]][tuple(_evaluate(a, names, tables) for a in term.args[1:])]
    if term.op in ("int", "name"):
        return term.evaluate(names, TracedNumbers())
    # evaluated operand by operand, so that reads inside of it find their tables
    parts = {f"part{k}": _evaluate(a, names, tables) for k, a in enumerate(term.args)}
    return Term(term.op, *(Term("name", name) for name in parts)).evaluate(parts, TracedNumbers())


def _dimension(block: Block) -> Any:
    if block.kind == "squeezed":
        return None
    return pl.Element(block.size, (block.low, block.high)) if block.kind == "element" else block.size
