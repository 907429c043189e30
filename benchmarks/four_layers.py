"""A training step of a transformer of four layers, 449 MB of arguments on each of 8 chips, held against counts by hand.

    python benchmarks/four_layers.py [--schedule]

Adam, remat of each layer, 29 arrays, mesh data=4,model=2 on a v5e of 2x4. Printed is a table: what the record says
beside what the compiler's own analysis does, the jaxpr and a count by hand. Exit code 1 where two differ that must not.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
LAYERS, WIDTH, INNER, WORDS, HEADS = 4, 2048, 8192, 24_000, 16
BATCH, LENGTH = 16, 1024
SHAPES = {
    "embed": (WORDS, WIDTH), "norm1": (LAYERS, WIDTH), "qkv": (LAYERS, WIDTH, 3 * WIDTH),
    "out": (LAYERS, WIDTH, WIDTH), "norm2": (LAYERS, WIDTH), "up": (LAYERS, WIDTH, INNER),
    "down": (LAYERS, INNER, WIDTH), "norm": (WIDTH,), "head": (WIDTH, WORDS),
}  # fmt: skip
CUT = {
    "embed": "P(('data', 'model'), None)", "norm1": "P()", "qkv": "P(None, 'data', 'model')",
    "out": "P(None, 'model', 'data')", "norm2": "P()", "up": "P(None, 'data', 'model')",
    "down": "P(None, 'model', 'data')", "norm": "P()", "head": "P('data', 'model')",
}  # fmt: skip


def step(weights: Any, mean: Any, square: Any, count: Any, words: Any) -> Any:
    """One step of Adam. words: [batch, length + 1]."""
    import jax
    import jax.numpy as jnp

    def normal(x: Any, scale: Any) -> Any:
        return x * jax.lax.rsqrt((x**2).mean(-1, keepdims=True) + 1e-6) * scale

    def layer(x: Any, w: Any) -> Any:
        b, t, d = x.shape
        split = (normal(x, w["norm1"]) @ w["qkv"]).reshape(b, t, 3, HEADS, d // HEADS)
        q, k, v = (split[:, :, n] for n in range(3))
        p = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k) * (d // HEADS) ** -0.5, -1)
        x = x + jnp.einsum("bhts,bshd->bthd", p, v).reshape(b, t, d) @ w["out"]
        return x + jax.nn.gelu(normal(x, w["norm2"]) @ w["up"]) @ w["down"], None

    def loss(weights: Any) -> Any:
        each = {name: value for name, value in weights.items() if len(SHAPES[name]) > 1 and SHAPES[name][0] == LAYERS}
        x, _ = jax.lax.scan(jax.checkpoint(layer), weights["embed"][words[:, :-1]], each)
        said = jax.nn.log_softmax(normal(x, weights["norm"]) @ weights["head"], -1)
        return -jnp.take_along_axis(said, words[:, 1:, None], -1).mean()

    found = jax.grad(loss)(weights)
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, found)
    square = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, square, found)
    count = count + 1
    new = jax.tree.map(lambda w, m, v: w - 1e-3 * m / (jnp.sqrt(v) + 1e-8), weights, mean, square)
    return new, mean, square, count


def by_hand() -> int:
    """Flops of products on all devices.

    A layer is computed, and twice that for its gradient; what the gradient needs, all but its last product, once more.
    """
    rows = BATCH * LENGTH
    last = 2 * rows * INNER * WIDTH
    layer = 2 * rows * WIDTH * (4 * WIDTH + 2 * INNER) + 4 * rows * LENGTH * WIDTH
    return LAYERS * (4 * layer - last) + 3 * 2 * rows * WIDTH * WORDS


def main() -> int:
    """Prints the table; 1 where two figures differ that must not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedule", action="store_true", help="also the cycles by the compiler's schedule")
    given = parser.parse_args()
    os.environ["LAYOUTPROOF_CACHE"] = "off"
    os.chdir(ROOT)
    import layoutproof as lp

    shapes = {name: f"f32[{','.join(map(str, dims))}]" for name, dims in SHAPES.items()}
    cut = f"{{{', '.join(f'{name!r}: {spec}' for name, spec in CUT.items())}}}"
    start = time.monotonic()
    made = lp.compile(
        "benchmarks/four_layers.py:step", shapes, shapes, shapes, "s32[]", f"s32[{BATCH},{LENGTH + 1}]", target="v5e",
        topology="2x4", mesh={"data": 4, "model": 2}, in_specs=(cut, cut, cut, "P()", "P('data', None)"),
        out_specs=(cut, cut, cut, "P()"), donate=(0, 1, 2, 3), seconds=1800, schedule=given.schedule,
    )  # fmt: skip
    if not made.records:
        print(made)
        return 1
    (record,) = made.records
    work, memory = record.work, record.memory
    assert work is not None
    results = sum(value.bytes or 0 for value in record.results)
    total = {"source": by_hand(), "here": work.product_flops.least * record.devices}
    print(made, f"\n{time.monotonic() - start:.0f} s of a clock\n", file=sys.stderr)
    print("| figure | the record | beside it | |\n|---|---:|---:|---|")
    rows = (
        ("arrays", len(record.parameters), 29, "by hand"),
        ("bytes of arguments, by their layouts", record.entry_bytes, memory.arguments, "the compiler's own"),
        ("flops of products in the source", work.source and work.source.least, total["source"], "by hand"),
    )
    for name, one, other, whose in rows:
        print(f"| {name} | {one:,} | {other:,} | {whose} |")
    print(f"| bytes of results, by their layouts | {results:,} | {memory.outputs:,} | with the compiler's table |")
    print(f"| flops of products on 8 devices | {total['here']:,} | {total['source']:,} | by hand |")
    print(f"| flops of one device | {work.flops.least:,} | {record.flops:,.0f} | the compiler's, a loop's body once |")
    print(f"| temporaries | {memory.temporaries:,} | | the compiler's own |")
    return int(any(one != other for _, one, other, _ in rows) or total["here"] < total["source"])


if __name__ == "__main__":
    raise SystemExit(main())
