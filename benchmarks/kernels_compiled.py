"""What the TPU compiler makes of kernels, held against its own compiled program: a table for docs/compiler.md.

    python benchmarks/kernels_compiled.py [--target v5e] [--cycles] [--only NAME]

Each kernel is compiled twice: once as `layoutproof kernels --compile` does, alone and with the compiler's files; and
once as a user does, `jax.jit(function).lower(..).compile()`, without any of that. `equal` says that the total of the
sentence is `used_scoped_memory_configs` of the user's program, to the byte, and the sum of its parts.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

bf16, f32 = jnp.bfloat16, jnp.float32


def shape(*dims: int, dtype: Any = bf16) -> Any:
    """An array of this shape."""
    return jax.ShapeDtypeStruct(dims, dtype)


def rows(body: Callable[..., None], x: Any, block: int, out: Any = None, scratch: Any = ()) -> Any:
    """A call over blocks of whole rows."""
    out = shape(*x.shape, dtype=x.dtype) if out is None else out
    specs = [
        pl.BlockSpec((each.shape[0] * block // x.shape[0], *each.shape[1:]), lambda i: (i, 0)) for each in (x, out)
    ]
    call = pl.pallas_call(
        body, grid=(x.shape[0] // block,), in_specs=specs[:1], out_specs=specs[1], out_shape=out, scratch_shapes=scratch
    )
    return call(x)


def accumulate(x: Any, y: Any, o: Any, acc: Any) -> None:
    """One step of a matrix product."""

    @pl.when(pl.program_id(2) == 0)
    def _() -> None:
        acc[...] = jnp.zeros_like(acc)

    acc[...] += jnp.dot(x[...], y[...], preferred_element_type=f32)

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _() -> None:
        o[...] = acc[...].astype(o.dtype)


def matmul(x: Any, y: Any, bm: int, bn: int, bk: int) -> Any:
    """A matrix product by blocks."""
    (m, k), n = x.shape, y.shape[1]
    return pl.pallas_call(
        accumulate,
        grid=(m // bm, n // bn, k // bk),
        in_specs=[pl.BlockSpec((bm, bk), lambda i, j, k: (i, k)), pl.BlockSpec((bk, bn), lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),
        out_shape=shape(m, n, dtype=x.dtype),
        scratch_shapes=[pltpu.VMEM((bm, bn), f32)],
    )(x, y)


def softmax(x: Any) -> Any:
    """Of each row."""

    def body(x: Any, o: Any) -> None:
        o[...] = jax.nn.softmax(x[...].astype(f32), axis=-1).astype(o.dtype)

    return rows(body, x, 256)


def layer_norm(x: Any) -> Any:
    """Of each row."""

    def body(x: Any, o: Any) -> None:
        v = x[...].astype(f32)
        centred = v - v.mean(-1, keepdims=True)
        o[...] = (centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-6)).astype(o.dtype)

    return rows(body, x, 256)


def gelu(x: Any) -> Any:
    """Of each element."""

    def body(x: Any, o: Any) -> None:
        o[...] = jax.nn.gelu(x[...].astype(f32)).astype(o.dtype)

    return rows(body, x, 256)


def cast(x: Any) -> Any:
    """To 8 bits."""

    def body(x: Any, o: Any) -> None:
        o[...] = x[...].astype(jnp.int32).astype(jnp.int8)

    return rows(body, x, 256, shape(*x.shape, dtype=jnp.int8))


def transpose(x: Any) -> Any:
    """Of a whole block."""

    def body(x: Any, o: Any) -> None:
        o[...] = x[...].T

    return pl.pallas_call(body, out_shape=shape(*x.shape[::-1], dtype=x.dtype))(x)


def concat(x: Any, at: int) -> Any:
    """Two parts of each row, the other way round."""

    def body(x: Any, o: Any) -> None:
        o[...] = jnp.concatenate([x[:, at:], x[:, :at]], axis=1)

    return pl.pallas_call(body, out_shape=shape(*x.shape, dtype=x.dtype))(x)


def reshape(x: Any) -> Any:
    """Another last dimension."""

    def body(x: Any, o: Any) -> None:
        o[...] = x[...].reshape(128, 128)

    return pl.pallas_call(body, out_shape=shape(128, 128, dtype=x.dtype))(x)


def summed(x: Any) -> Any:
    """Sums of rows in scratch."""

    def body(x: Any, o: Any, s: Any) -> None:
        s[...] = jnp.sum(x[...], axis=1, keepdims=True) + jnp.zeros_like(s)
        o[...] = x[...] + s[:, :1]

    return rows(body, x, 256, scratch=[pltpu.VMEM((256, 128), f32)])


def flash(q: Any, block: int) -> Any:
    """JAX's own flash attention."""
    from jax.experimental.pallas.ops.tpu.flash_attention import BlockSizes, flash_attention

    sizes = BlockSizes(block_q=block, block_k_major=block, block_k=block, block_b=1)
    return flash_attention(q, q, q, block_sizes=sizes)


A, HEADS = shape(2048, 2048), shape(1, 2, 2048, 128)
KERNELS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "matmul 256x256x512": (functools.partial(matmul, bm=256, bn=256, bk=512), (A, A)),
    "matmul 512x512x512": (functools.partial(matmul, bm=512, bn=512, bk=512), (A, A)),
    "matmul 512x512x2048": (functools.partial(matmul, bm=512, bn=512, bk=2048), (A, A)),
    "matmul 1024x1024x512": (functools.partial(matmul, bm=1024, bn=1024, bk=512), (A, A)),
    "matmul 1024x512x1024": (functools.partial(matmul, bm=1024, bn=512, bk=1024), (A, A)),
    "matmul f32 512x512x512": (functools.partial(matmul, bm=512, bn=512, bk=512), (shape(1024, 1024, dtype=f32),) * 2),
    "flash 128": (functools.partial(flash, block=128), (HEADS,)),
    "flash 512": (functools.partial(flash, block=512), (HEADS,)),
    "flash 1024": (functools.partial(flash, block=1024), (HEADS,)),
    "softmax 256x4096": (softmax, (shape(2048, 4096),)),
    "layer norm 256x4096": (layer_norm, (shape(2048, 4096),)),
    "gelu 256x2048": (gelu, (A,)),
    "cast to s8 256x2048": (cast, (shape(2048, 2048, dtype=f32),)),
    "transpose 512x512 f32": (transpose, (shape(512, 512, dtype=f32),)),
    "concat at lane 64": (functools.partial(concat, at=64), (shape(512, 128),)),
    "concat at lane 100 f32": (functools.partial(concat, at=100), (shape(512, 256, dtype=f32),)),
    "reshape 64x256 f32": (reshape, (shape(64, 256, dtype=f32),)),
    "sums of rows 256x1024": (summed, (shape(2048, 1024, dtype=f32),)),
    "matmul 512x1024x2048": (functools.partial(matmul, bm=512, bn=1024, bk=2048), (A, A)),
}
_CALL = re.compile(r'custom_call_target="tpu_custom_call".*?"used_scoped_memory_configs":\[([^\]]*)\]', re.DOTALL)


def used(text: str) -> int:
    """Bytes of VMEM of the only kernel of a compiled program."""
    [configs] = _CALL.findall(text)
    return sum(int(size) for size in re.findall(r'"memory_space":"1"[^}]*"size":"(\d+)"', configs))


def plain(request: dict[str, Any], tell: Any) -> Any:
    """The answering side: one kernel as its user compiles it."""
    from layoutproof.compiler import libtpu
    from layoutproof.hardware.tpu_chips import CHIPS
    from layoutproof.pallas.from_jax.adapter import device_of

    function, given = KERNELS[request["name"]]
    place = jax.sharding.SingleDeviceSharding(libtpu.device(CHIPS[request["target"]].topology))
    arrays = [jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=place) for each in given]
    try:
        with device_of(request["target"]):
            return used(jax.jit(function).lower(*arrays).compile().as_text())
    except Exception as error:
        found = re.search(r"Scoped allocation with size (\S+)", str(error))
        return found[1] if found else str(error)[:200]


def main() -> int:
    """Prints the table; 1 where a total is not what the compiler says."""
    from layoutproof.answers.of_kernels import calls_of
    from layoutproof.compiler import libtpu
    from layoutproof.compiler.child import Child, ask
    from layoutproof.mosaic.ask import asked, compiled

    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--target", default="v5e")
    options.add_argument("--cycles", action="store_true", help="with the compiler's estimates of cycles")
    options.add_argument("--only", action="append", help="a kernel by name; may be repeated")
    given = options.parse_args()
    names = [name for name in KERNELS if not given.only or name in given.only]
    os.environ["LAYOUTPROOF_CACHE"] = "off"
    questions = []
    for name in names:
        function, arrays = KERNELS[name]
        [call] = calls_of(function, arrays, {}, given.target, None, ())
        place = f"{Path(__file__).resolve()}:{_one.__name__}"
        questions.append(asked(place, [repr(name)], {}, call, 0, given.target, given.cycles))  # type: ignore[arg-type]
    child = Child(libtpu.WHAT, Path(__file__).resolve(), {**libtpu.ENVIRONMENT, "LAYOUTPROOF_PLAIN": "1"}, 300.0)
    theirs = ask(child, ({"name": name, "target": given.target} for name in names), lambda value: value)
    wrong = 0
    print(f"{libtpu.version()}, {given.target}\n")
    print("| kernel | total | windows | scratch | spills | slots x 4096 | user's program | equal | sentence | cycles |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, report, answer in zip(names, compiled(questions), theirs, strict=True):
        vmem, own = report.vmem, answer.value
        if vmem is None:
            print(f"| {name} | none: {report.problem or report.words[:80]} |")
            wrong += 1
            continue
        same = own == vmem.total or (bool(report.refused) and own == f"{vmem.total / 2**20:.2f}M")
        whole = sum(part.bytes for part in vmem.parts) == vmem.total
        wrong += not (same and whole)
        parts = " | ".join(str(vmem.of(kind)) for kind in ("window", "scratch", "spill"))
        cycles = report.estimate.cycles if given.cycles else ""
        print(
            f"| {name} | {vmem.total} | {parts} | {vmem.slots * 4096} | {own} | {'yes' if same and whole else 'NO'}",
            end="",
        )
        print(f" | {report.word}: {report.sentence} | {cycles} |", flush=True)
    print(f"\n{len(names)} kernels, {wrong} not equal")
    return 1 if wrong else 0


def _one(name: str) -> Any:
    function, arrays = KERNELS[name]
    return function(*(jnp.zeros(each.shape, each.dtype) for each in arrays))


if __name__ == "__main__":
    if os.environ.get("LAYOUTPROOF_PLAIN"):
        from layoutproof.compiler.serve import serve

        serve(plain)
        sys.exit(0)
    sys.exit(main())
