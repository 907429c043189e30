"""Small real programs compiled as they are and with each candidate of `compile --try`: what helped and what did not.

    python benchmarks/advice.py                                       all of them, on v5e and v6e: half an hour
    python benchmarks/advice.py --only embedding --target v5e         one of them

Prints the table of docs/compiler.md. Every figure is the TPU compiler's own; none was measured on a chip.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

TARGETS = ("v5e", "v6e")


def transposed_weight(x: Any, w: Any) -> Any:
    return x @ w.T


def narrow(x: Any, bias: Any) -> Any:
    return (x + bias).sum(-1)


def kv_cache(cache: Any, new: Any, at: Any) -> Any:
    import jax

    return jax.lax.dynamic_update_slice(cache, new, (0, at, 0, 0))


def embedding(tokens: Any, table: Any) -> Any:
    return table[tokens] @ table.T


def optimizer(weight: Any, moment: Any, gradient: Any) -> Any:
    moment = 0.9 * moment + gradient
    return weight - 0.01 * moment, moment


def scan_transposed(x: Any, w: Any) -> Any:
    import jax
    import jax.numpy as jnp

    def layer(h: Any, each: Any) -> Any:
        y = jnp.tanh(h @ each.T)
        return y, y.T

    return jax.lax.scan(layer, x, w)


def rotations(points: Any, turns: Any) -> Any:
    import jax.numpy as jnp

    return jnp.einsum("nij,nj->ni", turns, points)


def convolution(x: Any, w: Any) -> Any:
    import jax

    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))


def heads(q: Any, k: Any, v: Any) -> Any:
    import jax
    import jax.numpy as jnp

    scores = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k), -1)
    return jnp.einsum("bhts,bshd->bthd", scores, v)


def turned(x: Any) -> Any:
    return (x * 2).T


def kernel_boundary(x: Any, w: Any) -> Any:
    import jax
    from jax.experimental import pallas as pl

    def body(a: Any, b: Any, o: Any) -> None:
        o[...] = jax.numpy.dot(a[...], b[...], preferred_element_type="float32").astype(o.dtype)

    weight = w.swapaxes(0, 1)
    return pl.pallas_call(
        body,
        grid=(weight.shape[1] // 256,),
        in_specs=[
            pl.BlockSpec((x.shape[0], x.shape[1]), lambda j: (0, 0)),
            pl.BlockSpec((weight.shape[0], 256), lambda j: (0, j)),
        ],
        out_specs=pl.BlockSpec((x.shape[0], 256), lambda j: (0, j)),
        out_shape=jax.ShapeDtypeStruct((x.shape[0], weight.shape[1]), x.dtype),
    )(x, weight)


def quantized(x: Any, w: Any, scale: Any) -> Any:
    return (x @ w.astype(x.dtype)) * scale


def cross_entropy(h: Any, table: Any, labels: Any) -> Any:
    import jax
    import jax.numpy as jnp

    def loss(table: Any) -> Any:
        logits = (h @ table.T).astype(jnp.float32)
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()

    return jax.grad(loss)(table)


PROGRAMS: dict[str, tuple[str, ...]] = {
    "transposed_weight": ("bf16[256,1024]", "bf16[4000,1024]"),
    "narrow": ("f32[16,4096,4]", "f32[4]"),
    "kv_cache": ("f32[64,2048,8,1]", "f32[64,1,8,1]", "s32[]"),
    "embedding": ("s32[512]", "bf16[50257,768]"),
    "optimizer": ("f32[2048,2048]", "f32[2048,2048]", "f32[2048,2048]"),
    "scan_transposed": ("bf16[256,512]", "bf16[8,512,512]"),
    "rotations": ("f32[20000,3]", "f32[20000,3,3]"),
    "convolution": ("f32[8,64,56,56]", "f32[64,64,3,3]"),
    "heads": ("bf16[4,512,8,64]", "bf16[4,512,8,64]", "bf16[4,512,8,64]"),
    "turned": ("f32[1024,4096]",),
    "kernel_boundary": ("bf16[256,1024]", "bf16[2048,1024]"),
    "quantized": ("bf16[128,4000]", "s8[4000,1000]", "f32[1000]"),
    "cross_entropy": ("bf16[1024,512]", "bf16[32003,512]", "s32[1024]"),
}
"""Function -> its arguments."""


def main() -> int:
    """Tries each, and prints what came of it."""
    from layoutproof.programs.advice import advice
    from layoutproof.programs.candidates import changes
    from layoutproof.programs.compile import Asked

    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--only", action="append", choices=PROGRAMS, help="a program by name; may be repeated")
    options.add_argument("--target", action="append", help="a generation; may be repeated")
    given = options.parse_args()
    print("| program | target | tried | helped | did not |\n|---|---|---:|---|---|", flush=True)
    for name in given.only or PROGRAMS:
        for target in given.target or TARGETS:
            found = advice(Asked(f"{__file__}:{name}", PROGRAMS[name], target=target))
            print(str(found) or found.findings, file=sys.stderr, flush=True)
            if found.before is None:
                print(f"| `{name}` | {target} | 0 | {found.findings[0].reason} | |", flush=True)
                continue
            was = found.before
            helped = [f"{t.candidate.what}: {changes(was, t.figures)}" for t in found.fixes if t.figures is not None]
            rest = [f"{t.candidate.kind} {t.verdict}" for t in found.tries if t.verdict != "helped"]
            row = (f"`{name}`", target, str(len(found.tries)), "<br>".join(helped), ", ".join(rest))
            print(f"| {' | '.join(row)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
