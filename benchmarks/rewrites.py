"""Fourteen copies and relayouts of public threads, each a function of our own that has it: cause, rewrite, figures.

    python benchmarks/rewrites.py                          all of them, on v6e: about half an hour on two cores
    python benchmarks/rewrites.py --only rope_heads        one of them

Prints the table of docs/compiler.md. Each function is compiled as it is and with each candidate; the line that moves
the data carries the word CAUSE. A twin is the same function without the fault: nothing may be found of it. Every figure
is the TPU compiler's own; none was measured on a chip.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

TARGET = "v6e"
HEADS, LANES = 8, 512


def _call(body: Any, grid: int, ins: Any, out: Any, dims: Any, dtype: str, *arrays: Any) -> Any:
    """A kernel whose operands have one block a program along dimension 0, or, with a block in brackets, one in all."""
    import jax
    from jax.experimental import pallas as pl

    def spec(block: Any) -> Any:
        if isinstance(block, list):
            return pl.BlockSpec(tuple(block), lambda i: (0,) * len(block))
        return pl.BlockSpec(block, lambda i: (i,) + (0,) * (len(block) - 1))

    return pl.pallas_call(
        body, grid=(grid,), in_specs=[spec(b) for b in ins], out_specs=spec(out),
        out_shape=jax.ShapeDtypeStruct(dims, dtype),
    )(*arrays)  # fmt: skip


def _rotated(x: Any, axis: int) -> Any:
    import jax.numpy as jnp
    from jax.experimental.pallas import tpu as pltpu

    left, right = jnp.split(x, [LANES - 128], axis=axis)
    return [left, right * 0.5 + pltpu.roll(right, 64, axis) * 0.25]


def rope_heads(x: Any, w: Any) -> Any:
    """The last lanes of each head are turned, and only then are the heads put side by side."""
    import jax.numpy as jnp

    def body(x: Any, w: Any, o: Any) -> None:
        turned = jnp.concatenate(_rotated(x[...].astype("float32"), 2), -1)
        flat = turned.reshape(32, HEADS * LANES)  # CAUSE
        o[...] = jnp.dot(flat.astype("bfloat16"), w[...], preferred_element_type="float32")

    n = w.shape[1]
    ins = [(32, HEADS, LANES), [HEADS * LANES, n]]
    return _call(body, x.shape[0] // 32, ins, (32, n), (x.shape[0], n), "float32", x, w)


def rope_flat(x: Any, w: Any) -> Any:
    import jax.numpy as jnp

    def body(x: Any, w: Any, o: Any) -> None:
        heads = [x[:, h * LANES : (h + 1) * LANES].astype("float32") for h in range(HEADS)]
        flat = jnp.concatenate([part for head in heads for part in _rotated(head, 1)], -1)
        o[...] = jnp.dot(flat.astype("bfloat16"), w[...], preferred_element_type="float32")

    n = w.shape[1]
    ins = [(32, HEADS * LANES), [HEADS * LANES, n]]
    return _call(body, x.shape[0] // 32, ins, (32, n), (x.shape[0], n), "float32", x, w)


def token_major(x: Any, scale: Any) -> Any:
    """Tokens come with their heads below each other, and leave with them side by side."""

    def body(x: Any, scale: Any, o: Any) -> None:
        o[...] = x[...].reshape(64, HEADS * LANES).astype("float32") * scale[...]  # CAUSE

    wide = HEADS * LANES
    return _call(body, x.shape[0] // 64, [(64, HEADS, LANES), [1, wide]], (64, wide), (x.shape[0], wide), "float32",
                 x, scale)  # fmt: skip


def token_flat(x: Any, scale: Any) -> Any:
    def body(x: Any, scale: Any, o: Any) -> None:
        o[...] = x[...].astype("float32") * scale[...]

    wide = HEADS * LANES
    return _call(body, x.shape[0] // 64, [(64, wide), [1, wide]], (64, wide), (x.shape[0], wide), "float32", x, scale)


def split_output(x: Any, w: Any) -> Any:
    """What a product gives is split into heads inside of the kernel."""
    import jax.numpy as jnp

    def body(x: Any, w: Any, o: Any) -> None:
        flat = jnp.dot(x[...], w[...], preferred_element_type="float32")
        o[...] = flat.astype("bfloat16").reshape(64, HEADS, 128)  # CAUSE

    wide = HEADS * 128
    ins = [(64, x.shape[1]), [x.shape[1], wide]]
    return _call(body, x.shape[0] // 64, ins, (64, HEADS, 128), (x.shape[0], HEADS, 128), "bfloat16", x, w)


def flat_output(x: Any, w: Any) -> Any:
    import jax.numpy as jnp

    def body(x: Any, w: Any, o: Any) -> None:
        o[...] = jnp.dot(x[...], w[...], preferred_element_type="float32").astype("bfloat16")

    wide = HEADS * 128
    return _call(body, x.shape[0] // 64, [(64, x.shape[1]), [x.shape[1], wide]], (64, wide), (x.shape[0], wide),
                 "bfloat16", x, w)  # fmt: skip


def transposed_block(x: Any) -> Any:
    """A block is transposed before it is used."""
    import jax

    def body(x: Any, o: Any) -> None:
        o[...] = jax.numpy.exp(x[...].T)  # CAUSE

    from jax.experimental import pallas as pl

    return pl.pallas_call(
        body, grid=(x.shape[0] // 256,), in_specs=[pl.BlockSpec((256, x.shape[1]), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((x.shape[1], 256), lambda i: (0, i)),
        out_shape=jax.ShapeDtypeStruct(x.shape[::-1], x.dtype),
    )(x)  # fmt: skip


def straight_block(x: Any) -> Any:
    import jax

    def body(x: Any, o: Any) -> None:
        o[...] = jax.numpy.exp(x[...])

    return _call(body, x.shape[0] // 256, [(256, x.shape[1])], (256, x.shape[1]), x.shape, "float32", x)


def packed_transpose(x: Any) -> Any:
    """Packed elements are transposed, then widened."""
    import jax
    from jax.experimental import pallas as pl

    def body(x: Any, o: Any) -> None:
        turned = x[...].T  # CAUSE
        o[...] = turned.astype("float32") * 2.0

    return pl.pallas_call(
        body, grid=(x.shape[0] // 256,), in_specs=[pl.BlockSpec((256, x.shape[1]), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((x.shape[1], 256), lambda i: (0, i)),
        out_shape=jax.ShapeDtypeStruct(x.shape[::-1], "float32"),
    )(x)  # fmt: skip


def packed_straight(x: Any) -> Any:
    def body(x: Any, o: Any) -> None:
        o[...] = x[...].astype("float32") * 2.0

    return _call(body, x.shape[0] // 256, [(256, x.shape[1])], (256, x.shape[1]), x.shape, "float32", x)


def queries(q: Any) -> Any:
    """Heads are split into packed groups, and then tokens and heads change places."""
    tokens, heads, lanes = q.shape
    return q.reshape(tokens, 4, heads // 8, 2, lanes).swapaxes(0, 1) * 2  # CAUSE


def queries_first(q: Any) -> Any:
    tokens, heads, lanes = q.shape
    return (q * 2).reshape(tokens, 4, heads // 8, 2, lanes)


def chunks(q: Any) -> Any:
    """[B, T, H, D] to [N, B, H, C, D] by a transposition, a reshape and another transposition."""
    import jax.numpy as jnp

    batch, length, heads, lanes = q.shape
    split = jnp.transpose(q, (0, 2, 1, 3)).reshape(batch, heads, length // 64, 64, lanes)
    return jnp.moveaxis(split, 2, 0) * 2  # CAUSE


def chunks_kept(q: Any) -> Any:
    batch, length, heads, lanes = q.shape
    return q.reshape(batch, length // 64, 64, heads, lanes) * 2


def cache_update(cache: Any, new: Any, at: Any) -> Any:
    """A cache that nobody needs afterwards is given, and not given away."""
    import jax

    return jax.lax.dynamic_update_slice(cache, new, (0, at, 0))  # CAUSE


def cache_read(cache: Any, at: Any) -> Any:
    import jax

    return jax.lax.dynamic_slice_in_dim(cache, at, 8, 1) * 2


def narrow_heads(cache: Any, scale: Any) -> Any:
    """Two heads of 16 lanes: most of each row of 128 lanes is padding."""
    return cache.astype("float32") * scale.reshape(1, 2, 1)  # CAUSE


def wide_heads(cache: Any) -> Any:
    return cache.astype("float32") * 2


def key_heads(k: Any, w: Any) -> Any:
    """Tokens and heads change places before a product over each head."""
    import jax.numpy as jnp

    turned = k.swapaxes(0, 1)  # CAUSE
    return jnp.concatenate([turned, jnp.einsum("htd,de->hte", turned, w)], -1)


def key_kept(k: Any, w: Any) -> Any:
    import jax.numpy as jnp

    return jnp.einsum("thd,de->the", k, w)


def kernel_operand(x: Any, y: Any) -> Any:
    """A kernel takes its operands row by row; the compiler holds a narrow array the other way."""

    def body(x: Any, y: Any, o: Any) -> None:
        o[...] = x[...] * y[...]

    return _call(body, x.shape[0] // 1000, [(1000, 5), (1000, 5)], (1000, 5), x.shape, "float32", x, y)  # CAUSE


def kernel_wide(x: Any, y: Any) -> Any:
    def body(x: Any, y: Any, o: Any) -> None:
        o[...] = x[...] * y[...]

    return _call(body, x.shape[0] // 1000, [(1000, 128), (1000, 128)], (1000, 128), x.shape, "float32", x, y)


def transposed_weights(x: Any, w: Any) -> Any:
    """Weights are transposed in every program, and could be held so."""
    import jax.numpy as jnp

    def body(x: Any, w: Any, o: Any) -> None:
        o[...] = jnp.dot(x[...], w[...].T, preferred_element_type="float32")  # CAUSE

    n = w.shape[0]
    return _call(body, x.shape[0] // 32, [(32, x.shape[1]), [*w.shape]], (32, n), (x.shape[0], n), "float32", x, w)


def straight_weights(x: Any, w: Any) -> Any:
    import jax.numpy as jnp

    def body(x: Any, w: Any, o: Any) -> None:
        o[...] = jnp.dot(x[...], w[...], preferred_element_type="float32")

    n = w.shape[1]
    return _call(body, x.shape[0] // 32, [(32, x.shape[1]), [*w.shape]], (32, n), (x.shape[0], n), "float32", x, w)


def _product(x: Any, w: Any) -> Any:
    """A kernel that multiplies, with columns of w for each program."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl

    def body(x: Any, w: Any, o: Any) -> None:
        o[...] = jnp.dot(x[...], w[...], preferred_element_type="float32")

    rows, n = x.shape[0], w.shape[1]
    return pl.pallas_call(
        body, grid=(n // 512,),
        in_specs=[pl.BlockSpec(x.shape, lambda i: (0, 0)), pl.BlockSpec((w.shape[0], 512), lambda i: (0, i))],
        out_specs=pl.BlockSpec((rows, 512), lambda i: (0, i)), out_shape=jax.ShapeDtypeStruct((rows, n), "float32"),
    )(x, w)  # fmt: skip


def swapped_weight(x: Any, w: Any) -> Any:
    """The weight is turned before the kernel, which takes rows: it is copied in each step."""
    import jax

    return jax.nn.silu(_product(x, w.swapaxes(0, 1)))  # CAUSE


def kept_weight(x: Any, w: Any) -> Any:
    import jax

    return jax.nn.silu(_product(x, w))


def _of_experts(x: Any, w: Any) -> Any:
    """A kernel that multiplies for each expert."""
    import jax.numpy as jnp

    def body(x: Any, w: Any, o: Any) -> None:
        o[...] = jnp.dot(x[0], w[0], preferred_element_type="float32")[None]

    (e, m, k), n = x.shape, w.shape[2]
    return _call(body, e, [(1, m, k), (1, k, n)], (1, m, n), (e, m, n), "float32", x, w)


def expert_weights(x: Any, w: Any) -> Any:
    """The weights of all experts are turned before the kernel."""
    import jax

    turned = w.swapaxes(1, 2)  # CAUSE
    return jax.nn.gelu(_of_experts(x, turned))


def expert_kept(x: Any, w: Any) -> Any:
    import jax

    return jax.nn.gelu(_of_experts(x, w))


@dataclass(frozen=True)
class Case:
    """thread: that has it.  args: of the function.  cause: the operation that moves data.  kinds: of the rewrites of
    which one has to be among those that helped.  twin: the function without the fault, with its arguments."""

    thread: str
    function: Callable[..., Any]
    args: tuple[str, ...]
    cause: str
    kinds: tuple[str, ...]
    twin: Callable[..., Any]
    twin_args: tuple[str, ...]
    kernel: bool = False


CASES: dict[str, Case] = {
    "rope_heads": Case(
        "vllm-project/tpu-inference#3606", rope_heads, ("bf16[256,8,512]", "bf16[4096,256]"), "reshape", ("first",),
        rope_flat, ("bf16[256,4096]", "bf16[4096,256]"), True,
    ),
    "token_major": Case(
        "vllm-project/tpu-inference#3618", token_major, ("bf16[1024,8,512]", "f32[1,4096]"), "reshape", ("outside",),
        token_flat, ("bf16[1024,4096]", "f32[1,4096]"), True,
    ),
    "split_output": Case(
        "pytorch/helion#2725", split_output, ("bf16[1024,256]", "bf16[256,1024]"), "reshape", ("outside",),
        flat_output, ("bf16[1024,256]", "bf16[256,1024]"), True,
    ),
    "transposed_block": Case(
        "vllm-project/tpu-inference#2725", transposed_block, ("f32[2048,512]",), "transpose", ("outside",),
        straight_block, ("f32[2048,512]",), True,
    ),
    "packed_transpose": Case(
        "vllm-project/tpu-inference#2925", packed_transpose, ("bf16[2048,512]",), "transpose",
        ("convert first", "outside"), packed_straight, ("bf16[2048,512]",), True,
    ),
    "transposed_weights": Case(
        "vllm-project/tpu-inference#2551", transposed_weights, ("bf16[512,512]", "bf16[512,512]"), "transpose",
        ("outside",), straight_weights, ("bf16[512,512]", "bf16[512,512]"), True,
    ),
    "queries": Case(
        "vllm-project/tpu-inference#3393", queries, ("bf16[2048,32,128]",), "transpose", ("rewrite",),
        queries_first, ("bf16[2048,32,128]",),
    ),
    "chunks": Case(
        "sgl-project/sglang-jax#826", chunks, ("bf16[2,2048,8,128]",), "transpose", ("rewrite",),
        chunks_kept, ("bf16[2,2048,8,128]",),
    ),
    "cache_update": Case(
        "sgl-project/sglang-jax#65", cache_update, ("bf16[64,2048,128]", "bf16[64,1,128]", "s32[]"),
        "dynamic_update_slice", ("donation",), cache_read, ("bf16[64,2048,128]", "s32[]"),
    ),
    "narrow_heads": Case(
        "vllm-project/tpu-inference#159", narrow_heads, ("bf16[2048,2,16]", "f32[2]"), "mul", ("reshape", "order"),
        wide_heads, ("bf16[4096,1024]",),
    ),
    "key_heads": Case(
        "vllm-project/tpu-inference#2653", key_heads, ("bf16[2048,8,128]", "bf16[128,128]"), "transpose",
        ("rewrite", "order"), key_kept, ("bf16[2048,8,128]", "bf16[128,128]"),
    ),
    "kernel_operand": Case(
        "pytorch/xla#6658", kernel_operand, ("f32[4000,5]", "f32[4000,5]"), "pallas_call", ("reshape",),
        kernel_wide, ("f32[4000,128]", "f32[4000,128]"),
    ),
    "swapped_weight": Case(
        "openxla/tokamax#1220", swapped_weight, ("bf16[256,2048]", "bf16[4096,2048]"), "transpose", ("order",),
        kept_weight, ("bf16[256,2048]", "bf16[2048,4096]"),
    ),
    "expert_weights": Case(
        "vllm-project/vllm#18923", expert_weights, ("bf16[8,64,1024]", "bf16[8,512,1024]"), "transpose", ("order",),
        expert_kept, ("bf16[8,64,1024]", "bf16[8,1024,512]"),
    ),
}  # fmt: skip
"""Name -> what it is."""


@dataclass(frozen=True)
class Found:
    """helped: kind -> the change and its figures in words, the best first.  causes: in words, with their lines."""

    helped: tuple[tuple[str, str, str], ...]
    causes: tuple[str, ...]
    problem: str = ""


def found(case: Case, twin: bool = False) -> Found:
    """What the tool says of a case, or of its twin."""
    function, args = (case.twin, case.twin_args) if twin else (case.function, case.args)
    place = f"{__file__}:{function.__name__}"
    if case.kernel:
        from layoutproof.answers.of_kernels import kernels

        answer = kernels(place, *args, target=TARGET, only="grid", compile=True, try_=True)
        (report,) = answer.calls[0].compiled
        tries = [each for each in report.rewrites if each.is_fix]
        helped = [(t.kind, f"{t.what}{' (if it is made so)' * (t.verdict == 'given')}", t.changes()) for t in tries]
        causes = [f"{t.operation} at {t.place}" for t in tries]
        return Found(tuple(helped), tuple(causes), report.problem or report.refused)
    from layoutproof.programs.advice import advice
    from layoutproof.programs.candidates import changes
    from layoutproof.programs.compile import Asked

    told = advice(Asked(place, args, target=TARGET))
    if told.before is None:
        return Found((), (), told.findings[0].reason)
    rows = [t for t in told.fixes if t.candidate.kind != "together" and t.figures is not None]
    helped = [(t.candidate.kind, t.candidate.what, changes(told.before, t.figures)) for t in rows if t.figures]
    causes = [words for t in rows for words in (*t.causes, t.candidate.cause) if words]
    return Found(tuple(helped), tuple(causes))


def line_of(case: Case) -> int:
    """The line of the case's function that moves the data."""
    import inspect

    lines, first = inspect.getsourcelines(case.function)
    return first + next(k for k, line in enumerate(lines) if "# CAUSE" in line)


def cause_is_right(case: Case, told: Found) -> bool:
    """Whether the operation and its line are named."""
    at = f"{Path(__file__).name}:{line_of(case)}"
    return any(case.cause in words and at in words for words in told.causes)


def main() -> int:
    """Asks of each case and of its twin, and prints what came of it."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--only", action="append", choices=CASES, help="a case by name; may be repeated")
    options.add_argument("--no-twins", action="store_true", help="leave out the twins")
    given = options.parse_args()
    print(
        "| case | thread | cause | right | rewrite that helped | figures | twin |\n|---|---|---|---|---|---|---|",
        flush=True,
    )
    right = 0
    for name in given.only or CASES:
        case = CASES[name]
        told = found(case)
        named = cause_is_right(case, told)
        best = next((row for row in told.helped if row[0] in case.kinds), None)
        right += named and best is not None
        twin = "-" if given.no_twins else str(len(found(case, True).helped))
        shown = best or ("", f"none of these: {told.problem or [row[:2] for row in told.helped]}", "")
        cells = [f"`{name}`", case.thread, case.cause, "yes" if named else "no", shown[1], shown[2], twin]
        print(f"| {' | '.join(cells)} |", flush=True)
        print(name, *told.helped, *told.causes, sep="\n  ", file=sys.stderr, flush=True)
    print(f"\n{right} of {len(given.only or CASES)} with the right cause and rewrite, on {TARGET}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
