"""Tables of places against the memory's own speed, measured in the same run.

    python benchmarks/tables.py [--elements 26] [--device gpu] [--json]

A table of 2**26 offsets is 512 MiB. What is possible is to write that much into fresh memory once, which is timed
first; each table's time is shown as a ratio to it. All these maps are sums of one term per dimension.

With --device the tables are made by JAX on that device (`lp.table(.., device=)`), against a copy there of as much.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from table import show

import layoutproof as lp

TIMES = 5


def layouts(bits: int) -> dict[str, str]:
    """Maps of 2**bits elements."""
    rows, columns = 1 << bits // 2, 1 << bits - bits // 2
    turned = f"({rows // 8},8):({columns * 8},{columns})" if rows >= 8 else f"{rows}:{columns}"
    return {
        "row-major": f"f32[{rows},{columns}]{{1,0}}",
        "column-major": f"f32[{rows},{columns}]{{0,1}}",
        "tiles of a TPU": f"f32[{rows},{columns}]{{1,0:T(8,128)}}",
        "packed tiles of a TPU": f"bf16[{rows},{columns}]{{1,0:T(8,128)(2,1)}}",
        "tiles that do not divide": f"f32[{rows - 1},{columns - 3}]{{1,0:T(8,128)}}",
        "strides": f"f32[{rows},{columns}] strides ({columns + 7},1)",
        "CuTe, nested": f"(({turned.split(':')[0]}),{columns}):(({turned.split(':')[1]}),1)",
    }


def fastest(work: Callable[[], Any]) -> float:
    """The best of a few times, in microseconds: others use the machine too."""
    times = []
    for _ in range(TIMES):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", type=int, default=26, help="of a table, as a power of two")
    parser.add_argument("--device", help="a platform of JAX, e.g. gpu")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    count = 1 << asked.elements
    if asked.device is None:
        rows = [("table", "write as much once", fastest(lambda: np.full(count, 7, dtype=np.int64)))]
        rows += [
            ("table", name, fastest(lambda text=text: lp.table(text))) for name, text in layouts(asked.elements).items()
        ]
    else:
        import jax
        import jax.numpy as jnp

        device = jax.devices(asked.device)[0]
        with jax.default_device(device):
            held = jnp.zeros(count, jnp.int32).block_until_ready()
            copy = jax.jit(lambda x: x + 1)
            rows = [
                ("table", f"read and write as much once on {device}", fastest(lambda: copy(held).block_until_ready()))
            ]
        for name, text in layouts(asked.elements).items():
            made = fastest(lambda text=text: lp.table(text, device=device).block_until_ready())
            rows.append(("table", name, made))
    show(rows, asked.json)


if __name__ == "__main__":
    main()
