"""Whether XLA keeps the results of a call in VMEM which comes last in its program: whole programs put to libtpu.

    python benchmarks/vmem_last.py [--target v5e ..]

Each program has a call whose windows of results do not fit, and other operations. In "after", a control, there is one
after the call: there XLA may keep the results in VMEM, so that they need no windows, and the compiler takes it. Where
it takes one of the others, `hardware.tpu_memory` calls kernels refused that are not: exit code 1.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from layoutproof.compiler import libtpu

os.environ.update(libtpu.environment())

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from layoutproof.hardware.tpu_chips import CHIPS

BLOCKS = ((64, 32, "float32"), (1024, 256, "float32"), (4096, 512, "bfloat16"), (8192, 1024, "float32"))
"""Rows of a result, of its block, and its type."""


def call(x: Any, rows: int, block: int, dtype: str, many: int = 1, table: Any = None) -> Any:
    """A call with so many results of 1,024 columns, each with windows that are more than its limit."""

    def body(*references: Any) -> None:
        x, *outs = references[table is not None :]
        for out in outs:
            out[...] = jnp.full(out.shape, x[0, 0], jnp.float32).astype(out.dtype)

    size = block * 1024 * jnp.dtype(dtype).itemsize
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=int(table is not None),
        grid=(rows // block,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, *t: (t[0][i] if t else 0, 0))],
        out_specs=[pl.BlockSpec((block, 1024), lambda i, *t: (i, 0))] * many,
    )
    shape = jax.ShapeDtypeStruct((rows, 1024), dtype)
    limit = pltpu.CompilerParams(vmem_limit_bytes=int(1.7 * size * many) + 16384)
    made = pl.pallas_call(body, grid_spec=spec, out_shape=[shape] * many, compiler_params=limit)
    return made(*([] if table is None else [table]), x)


def _looped(x: Any) -> Any:
    return jax.lax.fori_loop(0, 5, lambda k, v: jnp.tanh(v @ v), jnp.ones((128, 128)) * x[0, 0])[:8]


PROGRAMS: dict[str, Callable[..., Any]] = {
    "alone": lambda x, t, w, made: made(x),
    "doubled": lambda x, t, w, made: made(x * 2),
    "table": lambda x, t, w, made: made(x, table=jnp.cumsum(t) % 2 * 0),
    "two": lambda x, t, w, made: made(x * 2, many=2),
    "nested": lambda x, t, w, made: jax.jit(lambda y: jax.jit(made)(jnp.sin(y)))(x),
    "chain": lambda x, t, w, made: made(call(x + 1, 512, 8, "float32")[0][:8, :128]),
    "matmul": lambda x, t, w, made: made((w @ w)[:8, :128].astype(jnp.float32)),
    "sorted": lambda x, t, w, made: made(jnp.sort(w.astype(jnp.float32), axis=0)[:8, :128]),
    "loop": lambda x, t, w, made: made(_looped(x)),
    "after": lambda x, t, w, made: [out + 1 for out in made(x * 2)],
}


def taken(target: str, program: str, rows: int, block: int, dtype: str) -> bool:
    """Whether the compiler takes a program. Another refusal than for VMEM is raised."""
    place = jax.sharding.SingleDeviceSharding(libtpu.device(CHIPS[target].topology))
    shapes = (((8, 128), "float32"), ((256,), "int32"), ((2048, 2048), "bfloat16"))
    args = [jax.ShapeDtypeStruct(dims, kind, sharding=place) for dims, kind in shapes]
    made = partial(PROGRAMS[program], made=partial(call, rows=rows, block=block, dtype=dtype))
    try:
        jax.jit(made).lower(*args).compile()
    except Exception as error:
        if "memory space vmem" not in str(error):
            raise
        return False
    return True


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", action="append", default=[])
    wrong = 0
    for target in parser.parse_args().target or ("v5e", "v6e", "7x", "v5p", "v4"):
        found = {program: sum(taken(target, program, *block) for block in BLOCKS) for program in PROGRAMS}
        kept = found.pop("after")
        said = ", ".join(f"{program} {many}" for program, many in found.items() if many) or "none"
        print(f"{target}: of {len(BLOCKS)} each it takes {said}; after: {kept}", flush=True)
        wrong += sum(found.values())
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
