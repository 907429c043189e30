"""Bounds and models of time beside times that others have published: `python benchmarks/published_steps.py [--write]`.

A row is a program with its chip, its sizes and its time as its source states it. Beside it stand the least time that
`compile` says of it (`step_time_bound`), and for a Pallas kernel what the model of `search` says and the compiler's
cycles at the clock of the chip. A bound above a published time would be a wrong bound: the exit code is then 1.
`--write` makes docs/published_steps.md up to its first section, which `published_training.py` makes. The compiler is
libtpu, ahead of time: the extra tpu, and no TPU.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

from published import made_by, run  # noqa: E402

CLOCK = 197e12 / (4 * 2 * 128 * 128)
"""Hz of a v5e: its rate of products by what 4 matrix units of 128 x 128 do in a cycle."""
SOURCE = "https://docs.jax.dev/en/latest/pallas/tpu/matmul.html"
SMALL, LARGE = (128, 128, 128), (512, 1024, 1024)
"""bm, bk, bn."""


@dataclass(frozen=True, slots=True)
class PublishedStep:
    """A product of two bf16 matrices on one v5e, by JAX's page "Matrix Multiplication" (jax cec06d116c).

    kind: `xla`, or of the Pallas kernel `plain`, `transposed` (the second matrix is) or `relu`.  size: of all three
    dimensions.  blocks: bm, bk, bn; None for XLA's own.  seconds: as published, with the dispatch from Python.
    """

    kind: str
    size: int
    blocks: tuple[int, int, int] | None
    seconds: float


ROWS = (
    PublishedStep("xla", 1024, None, 0.00011943008983507753),
    PublishedStep("xla", 4096, None, 0.0008272899803705514),
    PublishedStep("xla", 8192, None, 0.006047147869830951),
    PublishedStep("plain", 1024, SMALL, 0.00029766598949208854),
    PublishedStep("plain", 4096, SMALL, 0.011771515250438824),
    PublishedStep("plain", 8192, SMALL, 0.09183577066054567),
    PublishedStep("plain", 1024, LARGE, 0.00012708659982308746),
    PublishedStep("plain", 4096, LARGE, 0.00088908776990138),
    PublishedStep("plain", 8192, LARGE, 0.006099433819763363),
    PublishedStep("transposed", 1024, SMALL, 0.0003029372810851783),
    PublishedStep("transposed", 4096, SMALL, 0.012017967159627005),
    PublishedStep("transposed", 8192, SMALL, 0.09500920018996112),
    PublishedStep("transposed", 1024, LARGE, 0.00012131539988331496),
    PublishedStep("transposed", 4096, LARGE, 0.0008790623804088682),
    PublishedStep("transposed", 8192, LARGE, 0.006107717020204291),
    PublishedStep("relu", 1024, SMALL, 0.00030103540048003196),
    PublishedStep("relu", 4096, SMALL, 0.011807117109419778),
    PublishedStep("relu", 8192, SMALL, 0.09181861146935262),
    PublishedStep("relu", 1024, LARGE, 0.00012622540001757442),
    PublishedStep("relu", 4096, LARGE, 0.000896632740041241),
    PublishedStep("relu", 8192, LARGE, 0.006130605939542875),
)


def product(x: Any, y: Any, kind: str, blocks: str) -> Any:
    """A product as the page describes it. blocks: as `128x128x128`, which is no value that is traced."""
    import jax.numpy as jnp

    if kind == "xla":
        return jnp.matmul(x, y)
    bm, bk, bn = map(int, blocks.split("x"))
    return kernel(x, y, bm, bk, bn, kind)


def kernel(x: Any, y: Any, bm: int, bk: int, bn: int, kind: str) -> Any:
    """A product by a kernel that sums over the last dimension of its grid."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    over = ((1,), (1 if kind == "transposed" else 0,)), ((), ())

    def body(x_ref: Any, y_ref: Any, o_ref: Any, sums: Any) -> None:
        @pl.when(pl.program_id(2) == 0)  # type: ignore[untyped-decorator]
        def _() -> None:
            sums[...] = jnp.zeros_like(sums)

        sums[...] += jax.lax.dot_general(x_ref[...], y_ref[...], over, preferred_element_type=jnp.float32)

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)  # type: ignore[untyped-decorator]
        def _() -> None:
            found = sums[...]
            o_ref[...] = (jax.nn.relu(found) if kind == "relu" else found).astype(o_ref.dtype)

    (m, k), n = x.shape, y.shape[0 if kind == "transposed" else 1]
    second = pl.BlockSpec((bk, bn), lambda i, j, k: (k, j))
    if kind == "transposed":
        second = pl.BlockSpec((bn, bk), lambda i, j, k: (j, k))
    return pl.pallas_call(
        body,
        grid=(m // bm, n // bn, k // bk),
        in_specs=[pl.BlockSpec((bm, bk), lambda i, j, k: (i, k)), second],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        scratch_shapes=[pltpu.VMEM((bm, bn), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )(x, y)


@dataclass(frozen=True, slots=True)
class FoundStep:
    """What this tool says of a row, in seconds.

    bound: the least.  binds: the term that is the largest.  model: by `search`, None for XLA's own kernel.
    cycles: by the compiler's schedule of the Pallas kernel, at the chip's clock; None where it gives none.
    """

    bound: float
    binds: str
    model: float | None = None
    cycles: float | None = None


def found(row: PublishedStep) -> FoundStep:
    """Compiles the program of a row for a v5e, and asks the model of it."""
    import layoutproof as lp
    from layoutproof.programs.step_time import PICO
    from layoutproof.programs.sweep import bound_of

    array, blocks = f"bf16[{row.size},{row.size}]", "x".join(map(str, row.blocks or ()))
    here = "benchmarks/published_steps.py"
    kind = f"'{row.kind}'"
    made = lp.compile(f"{here}:product", array, array, target="v5e", kind=kind, blocks=f"'{blocks}'")
    (record,) = made.records
    bound, binds = bound_of(record)
    assert bound is not None
    seconds = bound.least / PICO
    if row.blocks is None:
        return FoundStep(seconds, binds, cycles=None if record.cycles is None else record.cycles / CLOCK)
    tune = dict(zip(("bm", "bk", "bn"), map(str, row.blocks), strict=True))
    searched = lp.search(
        f"{here}:kernel", args=[array, array], kwargs={"kind": kind}, tune=tune, target="v5e", headroom="0%",
        compiling=True,
    )  # fmt: skip
    (best,) = searched.as_dict()["best"]  # type: ignore[typeddict-item]
    estimate = best["estimate"]
    cycles = None if estimate is None else estimate["cycles"] / CLOCK
    return FoundStep(seconds, binds, best["shapes"][0]["time"] / PICO, cycles)


def page(rows: Sequence[tuple[PublishedStep, FoundStep]]) -> Iterator[str]:
    """The lines of the page."""
    yield "# Times that others have published\n"
    yield (
        f"{made_by('published_steps.py')}. The times are those of JAX's page [Matrix Multiplication]({SOURCE}) (jax "
        "cec06d116c): products of square bf16 matrices on one v5e, 100 calls timed from Python, so each has the "
        "dispatch of a call in it. Nothing was run here. The kernels are written anew after the page's description.\n"
    )
    yield (
        "**Bound** is the claim `step_time_bound` of the compiled program, **model** the time by which `search` ranks "
        "block sizes, **cycles** the compiler's own schedule of the kernel at the clock of the chip "
        f"({CLOCK / 1e9:.3f} GHz, by its rate). Each stands with its share of the published time.\n"
    )
    yield "| program | n | bm, bk, bn | published | bound | by | model | cycles |"
    yield "|---|---:|---|---:|---:|---|---:|---:|"
    for row, said in rows:
        cells = [_share(each, row.seconds) for each in (said.bound, said.model, said.cycles)]
        blocks = ", ".join(map(str, row.blocks)) if row.blocks else "XLA's own"
        yield (
            f"| {row.kind} | {row.size} | {blocks} | {_milliseconds(row.seconds)} | {cells[0]} | {said.binds} | "
            f"{cells[1]} | {cells[2]} |"
        )
    over = [(row, said) for row, said in rows if said.bound > row.seconds]
    yield f"\nBounds above the published time: {len(over)} of {len(rows)}."
    for size in sorted({row.size for row, _ in rows}):
        shares = sorted(said.model / row.seconds for row, said in rows if row.size == size and said.model is not None)
        yield f"The model's share for n = {size}: {100 * shares[0]:.0f} % to {100 * shares[-1]:.0f} %."
    yield ""


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.3f} ms"


def _share(seconds: float | None, of: float) -> str:
    return "" if seconds is None else f"{_milliseconds(seconds)} ({100 * seconds / of:.0f} %)"


def main() -> int:
    """Prints the page, or writes it; the exit code is that of `published.run`."""
    return run(
        __doc__ or "", ROWS, found, lambda said: said.bound, page,
        lambda old, new: new + "".join(old.partition("## ")[1:]),
    )  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
