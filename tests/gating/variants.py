"""Programs in pairs: one, and its nearest neighbour that computes something else, or the same written otherwise.

`python -m tests.gating.variants` compiles each for v5e with the libtpu that is installed, on the CPU, and writes
`tests/cases/variants.jsonl.gz`, which the tests of the gate read.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

KEPT = Path(__file__).resolve().parents[1] / "cases" / "variants.jsonl.gz"
Array = Any


def sgd(p: Array, g: Array) -> Array:
    return p - 1e-3 * g


def sgd_up(p: Array, g: Array) -> Array:
    return p + 1e-3 * g


def sgd_faster(p: Array, g: Array) -> Array:
    return p - 1e-2 * g


def sgd_called(params: Array, gradients: Array) -> Array:
    import jax

    return jax.jit(lambda a, b: a - 1e-3 * b)(params, gradients)


def adam(p: Array, g: Array, m: Array, v: Array) -> tuple[Array, Array, Array]:
    import jax.numpy as jnp

    mean, square = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 1e-3 * mean / (jnp.sqrt(square) + 1e-8), mean, square


def adam_old(p: Array, g: Array, m: Array, v: Array) -> tuple[Array, Array, Array]:
    import jax.numpy as jnp

    mean, square = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 1e-3 * m / (jnp.sqrt(square) + 1e-8), mean, square


def adam_other(p: Array, g: Array, m: Array, v: Array) -> tuple[Array, Array, Array]:
    import jax.numpy as jnp

    mean, square = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * m * m
    return p - 1e-3 * mean / (jnp.sqrt(square) + 1e-8), mean, square


def norm(x: Array) -> Array:
    import jax

    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)


def norm_of_x(x: Array) -> Array:
    import jax

    centred = x - x.mean(-1, keepdims=True)
    return x * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)


def norm_scoped(given: Array) -> Array:
    import jax

    with jax.named_scope("norm"):
        away = given - given.mean(-1, keepdims=True)
        return away * jax.lax.rsqrt((away * away).mean(-1, keepdims=True) + 1e-5)


def gated(x: Array, w: Array) -> Array:
    import jax
    import jax.numpy as jnp

    return jnp.exp(jax.nn.relu(x @ w))


def gated_not(x: Array, w: Array) -> Array:
    import jax.numpy as jnp

    return jnp.exp(x @ w)


def residual(x: Array, w: Array) -> Array:
    import jax.numpy as jnp

    y = jnp.tanh(x @ w)
    return jnp.tanh(y @ w) + y


def residual_of_x(x: Array, w: Array) -> Array:
    import jax.numpy as jnp

    y = jnp.tanh(x @ w)
    return jnp.tanh(y @ w) + x


def softmax(x: Array) -> Array:
    import jax

    return jax.nn.softmax(x, -1)


def softmax_down(x: Array) -> Array:
    import jax

    return jax.nn.softmax(x, 0)


ARRAYS = {"sgd": 2, "adam": 4, "norm": 1, "gated": 2, "residual": 2, "softmax": 1}
"""Arguments of a program and of its variants, each f32[512,512]."""
OTHERS = {
    "sgd_up": ("sgd", "operation"),
    "sgd_faster": ("sgd", "constant"),
    "adam_old": ("adam", "computation_differs"),
    "adam_other": ("adam", "computation_differs"),
    "norm_of_x": ("norm", "computation_differs"),
    "gated_not": ("gated", "computation_differs"),
    "residual_of_x": ("residual", "computation_differs"),
    "softmax_down": ("softmax", "computation_differs"),
}
"""What computes something else: of which program, and the class that says so."""
SAME = {"sgd_called": "sgd", "norm_scoped": "norm"}
"""What computes the same: of which program."""


def kept() -> dict[str, str]:
    """The compiled text of each."""
    rows = map(json.loads, gzip.decompress(KEPT.read_bytes()).splitlines())
    return {row["name"]: row["text"] for row in rows}


def main() -> None:
    """Compiles them all and writes the file."""
    os.environ["LAYOUTPROOF_CACHE"] = "off"
    from layoutproof.compiler.child import ask
    from layoutproof.programs.compile import Asked, child_of, request_of

    names = [*ARRAYS, *OTHERS, *SAME]
    asked = [
        Asked(f"{__spec__.name}:{name}", ("f32[512,512]",) * ARRAYS[name.split("_")[0]], target="v5e") for name in names
    ]
    answers = [*ask(child_of(asked[0], 300.0), map(request_of, asked), dict)]
    rows = []
    for name, answer in zip(names, answers, strict=True):
        assert answer.value is not None, answer.problem
        said = {key: answer.value[key] for key in ("compiler", "jax", "text")}
        # what is kept names no folder of the machine that made it
        said["text"] = re.sub(r'/[^"\s]*/(?=(?:tests|jax|layoutproof)/)', "", said["text"])
        rows.append(json.dumps({"name": name, "target": "v5e", **said}, sort_keys=True) + "\n")
    KEPT.write_bytes(gzip.compress("".join(rows).encode(), mtime=0))


if __name__ == "__main__":
    main()
