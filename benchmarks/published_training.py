"""Bounds beside published times of training on several chips: `python benchmarks/published_training.py [--write]`.

The program has the layers of a step, which is less than the recipe computes and sends: a decoder by the sizes of LLaMA
(arXiv 2302.13971), grouped heads, a gated MLP, layers one loop, weights in float32 cut over one axis `fsdp` of the mesh
as the batch is, activations in bfloat16. A layer keeps its input and is computed again for the gradient. Left out: the
table and the head of the vocabulary, attention's scores (queries, keys and values are multiplied by element), norms,
positions, the moments of the optimiser. A recipe that keeps projections for the gradient computes these once less,
which is less than the scores that it has and this has not.

A bound above a published time would be a wrong bound: the exit code is then 1, and 3 where a row does not compile.
`--write` makes the last section of docs/published_steps.md. The compiler is libtpu, ahead of time, and no TPU.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
PAGE = ROOT / "docs" / "published_steps.md"
HEADING = "## Training on several chips"
SOURCE = "https://github.com/AI-Hypercomputer/tpu-recipes/blob/c8cfe2f689081d36701a101cd73a70965d80926b"
HEAD, LENGTH = 128, 8192
FLAGS = {"xla_jf_spmd_threshold_for_windowed_einsum_mib": "1000000"}
"""As the recipes have it ("no collective matmul"): else a product is a loop over all chips that adds to its result in
HBM, which takes 2.5 TB a step on 16 chips, 4.0 TB on 32. Source: AI-Hypercomputer/maxtext at e591f30cbb,
benchmarks/xla_flags_library.py, line 202."""

if TYPE_CHECKING:
    from layoutproof.programs.step_time import StepTime


@dataclass(frozen=True, slots=True)
class Decoder:
    """Sizes of a model. width: of the stream.  inner: of the MLP.  heads, groups: of queries, of keys and values."""

    layers: int
    width: int
    inner: int
    heads: int
    groups: int

    def weights(self) -> dict[str, tuple[str, str]]:
        """Each with its shape and its sharding, which cuts the width of the stream, as `compile` takes them."""
        n, d, q = self.layers, self.width, self.heads * HEAD
        into, out = "P(None, 'fsdp', None)", "P(None, None, 'fsdp')"
        return {
            "qkv": (f"f32[{n},{d},{q + 2 * self.groups * HEAD}]", into),
            "o": (f"f32[{n},{q},{d}]", out),
            "gated": (f"f32[{n},{d},{2 * self.inner}]", into),
            "down": (f"f32[{n},{self.inner},{d}]", out),
        }


def layers(weights: Mapping[str, Any], x: Any) -> Any:
    """A step of SGD on all layers. x: [batch, length, width]."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    def layer(x: Any, w: Mapping[str, Any]) -> tuple[Any, None]:
        def times(y: Any, name: str) -> Any:
            found = y @ w[name].astype(y.dtype)
            return jax.lax.with_sharding_constraint(found, P("fsdp", *[None] * (found.ndim - 1)))

        heads = w["o"].shape[0]
        q, k, v = jnp.split(times(x, "qkv"), (heads, (heads + w["qkv"].shape[1]) // 2), axis=-1)
        x = x + times(q * jnp.tile(k * v, heads // k.shape[-1]), "o")
        gate, up = jnp.split(times(x, "gated"), 2, axis=-1)
        return x + times(jax.nn.silu(gate) * up, "down"), None

    def loss(weights: Mapping[str, Any]) -> Any:
        y, _ = jax.lax.scan(jax.checkpoint(layer), x, dict(weights))
        return (y.astype(jnp.float32) ** 2).mean()

    return jax.tree.map(lambda w, g: w - 3e-5 * g, dict(weights), jax.grad(loss)(dict(weights)))


LLAMA_8B = Decoder(layers=32, width=4096, inner=14336, heads=32, groups=8)
"""Source: AI-Hypercomputer/maxtext at e591f30cbb, src/maxtext/configs/models/llama3.1-8b.yml."""


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """A step of Llama 3.1 8B on v6e, sequences of 8,192 tokens, weights fully sharded.

    topology: of so many chips.  batch: sequences on one chip.  seconds: of a step.  Source: training/trillium/
    Llama3.1-8B-MaxText/v6e-CHIPS/README.md, line 55, of AI-Hypercomputer/tpu-recipes; sizes from its line 67 on. The
    topology is that of the accelerator's name in Cloud TPU's page of v6e.
    """

    topology: str
    chips: int
    batch: int
    seconds: float


ROWS = (
    TrainingRow("2x4", 8, 3, 3.443),
    TrainingRow("4x4", 16, 3, 3.393),
    TrainingRow("4x8", 32, 3, 3.495),
    TrainingRow("8x16", 128, 4, 4.602),
    TrainingRow("16x16", 256, 4, 4.546),
)


def bound_of(row: TrainingRow) -> StepTime | None:
    """The least time of the program on the chips of a row; None, with a line, where it does not compile."""
    from layoutproof.programs.compile import Asked, made
    from layoutproof.programs.step_time import step_time

    weights = LLAMA_8B.weights()
    shapes = {name: shape for name, (shape, _) in weights.items()}
    cut = ", ".join(f"'{name}': {spec}" for name, (_, spec) in weights.items())
    asked = Asked(
        "benchmarks/published_training.py:layers",
        (shapes, f"bf16[{row.batch * row.chips},{LENGTH},{LLAMA_8B.width}]"),
        target="v6e", topology=row.topology, mesh={"fsdp": row.chips}, ins=(f"{{{cut}}}", "P('fsdp', None, None)"),
        donate=(0,), flags=FLAGS,
    )  # fmt: skip
    (found,) = made([asked], 1800)
    if found.record is None or found.record.work is None:
        print(found.problem, file=sys.stderr)
        return None
    return step_time(found.record, found.record.work)


def section(rows: Sequence[tuple[TrainingRow, StepTime]]) -> Iterator[str]:
    """The lines of the section."""
    from layoutproof.core.amounts import seconds
    from layoutproof.programs.step_time import PICO

    libtpu, jax = (importlib.metadata.version(name) for name in ("libtpu", "jax"))
    yield f"{HEADING}\n"
    yield (
        f"`python benchmarks/published_training.py --write`, {datetime.date.today()}, libtpu {libtpu}, jax {jax}. The "
        f"times are those of Google's [recipes]({SOURCE}/training/trillium/Llama3.1-8B-MaxText/v6e-8/README.md#L55) "
        "of Llama 3.1 8B on v6e, one page for each number of chips. Nothing was run here.\n"
    )
    yield (
        "The program is our own, with the published sizes, weights cut over all chips. It has less than the recipe: "
        "the 32 layers without attention's scores, no vocabulary, SGD. What the matrix unit takes bounds the recipe's "
        "step too; HBM and links are those of our program.\n"
    )
    yield "| chips | topology | sequences a chip | published | bound | by | each term |"
    yield "|---:|---|---:|---:|---:|---|---|"
    for row, said in rows:
        terms = "; ".join(f"{name} {seconds(term.least)}" for name, term in said.terms.items())
        least = said.bound.least / PICO
        yield (
            f"| {row.chips} | {row.topology} | {row.batch} | {row.seconds:.3f} s | {least:.3f} s "
            f"({100 * least / row.seconds:.0f} %) | {said.binds} | {terms} |"
        )
    over = sum(said.bound.least > row.seconds * PICO for row, said in rows)
    yield f"\nBounds above the published time: {over} of {len(rows)}.\n"


def main() -> int:
    """Prints the section, or writes it; 1 where a bound is above a published time, 3 where a row has none."""
    from layoutproof.programs.step_time import PICO

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"write the section of docs/{PAGE.name}")
    given = parser.parse_args()
    os.environ["LAYOUTPROOF_CACHE"] = "off"
    os.chdir(ROOT)
    rows = []
    for row in ROWS:
        if (said := bound_of(row)) is not None:
            rows.append((row, said))
            print(row, said.words(), file=sys.stderr, flush=True)
    text = "\n".join(section(rows))
    if given.write:
        PAGE.write_text(PAGE.read_text("utf-8").partition(HEADING)[0] + text, "utf-8")
    else:
        print(text)
    if any(said.bound.least > row.seconds * PICO for row, said in rows):
        return 1
    return 0 if len(rows) == len(ROWS) else 3


if __name__ == "__main__":
    raise SystemExit(main())
