"""The sweep of docs/programs.md: a step of a toy transformer of four layers, 24 points on 8, 64 and 256 chips of a v5e.

    python benchmarks/sweep.py --jobs 2 --resume rows.jsonl --svg sweep.svg

Topologies, meshes, batch sizes and remat policies; each point is compiled ahead of time by libtpu, which needs the
extra tpu and no TPU. Prints the table as Markdown, with the processor time. Nothing comes from the cache, so that the
times are those of compiling; `--resume` goes on with a run that was interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LAYERS, LENGTH, WIDTH, INNER = 4, 256, 256, 1024
WEIGHTS = {"up": f"f32[{LAYERS},{WIDTH},{INNER}]", "down": f"f32[{LAYERS},{INNER},{WIDTH}]"}
SHARDINGS = "{'up': P(None, None, 'model'), 'down': P(None, 'model', None)}"
AXES = {
    "topology": ["2x4", "8x8", "16x16"],
    "mesh": ["data=-1,model=1", "data=-1,model=8"],
    "batch": [32768, 262144],
    "policy": ["jax.checkpoint_policies.dots_saveable", "jax.checkpoint_policies.nothing_saveable"],
}


def step(weights: Mapping[str, Any], x: Any, policy: Any = None) -> tuple[Any, Any]:
    """A step of SGD on a toy: attention without projections, an MLP. policy: what a layer keeps for its gradient."""
    import jax
    import jax.numpy as jnp

    def layer(x: Any, w: Mapping[str, Any]) -> tuple[Any, None]:
        up, down = (w[name].astype(x.dtype) for name in ("up", "down"))
        scores = jnp.einsum("bqd,bkd->bqk", x, x) * WIDTH**-0.5
        x = x + jax.nn.softmax(scores, axis=-1) @ x
        return x + jax.nn.relu(x @ up) @ down, None

    def loss(weights: Mapping[str, Any]) -> Any:
        y, _ = jax.lax.scan(jax.checkpoint(layer, policy=policy), x, dict(weights))
        return (y.astype(jnp.float32) ** 2).mean()

    value, grads = jax.value_and_grad(loss)(weights)
    return value, jax.tree.map(lambda w, g: w - 1e-3 * g, weights, grads)


def main() -> int:
    """Prints the table; exit code 2 where a point is wrong by itself, 3 where one is unknown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--resume", metavar="FILE")
    parser.add_argument("--svg", metavar="FILE", type=Path)
    given = parser.parse_args()
    os.environ["LAYOUTPROOF_CACHE"] = "off"
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    import layoutproof as lp

    found = lp.sweep(
        "benchmarks/sweep.py:step", dict(WEIGHTS), f"bf16[batch,{LENGTH},{WIDTH}]", axes=AXES, target="v5e",
        in_specs=[SHARDINGS, "P('data')"], donate=[0], resume=given.resume, jobs=given.jobs,
    )  # fmt: skip
    print(found.markdown())
    if given.svg is not None:
        given.svg.write_text(found.svg(), "utf-8")
    return found.exit_code if found.exit_code in (2, 3) else 0


if __name__ == "__main__":
    raise SystemExit(main())
