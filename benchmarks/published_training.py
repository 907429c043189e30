"""Bounds beside published times of training on several chips: `python benchmarks/published_training.py [--write]`.

The program has the layers of a step, which is less than the recipe computes and sends: a decoder by the sizes of LLaMA
(arXiv 2302.13971), grouped heads, a gated MLP, layers one loop, weights in float32 cut over one axis `fsdp` of the mesh
as the batch is, activations in bfloat16. A layer keeps its input, in the host's memory where the recipe does, and is
computed again for the gradient. Left out: the table and the head of the vocabulary, attention's scores (queries, keys
and values are multiplied by element), norms,
positions, the moments of the optimiser. A recipe that keeps projections for the gradient computes these once less,
which is less than the scores that it has and this has not.

A bound above a published time would be a wrong bound: the exit code is then 1, and 3 where a row does not compile.
`--write` makes the last section of docs/published_steps.md. The compiler is libtpu, ahead of time, and no TPU.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

from published import made_by, run  # noqa: E402

HEADING = "## Training on several chips"
SOURCE = "https://github.com/AI-Hypercomputer/tpu-recipes/blob/c8cfe2f689081d36701a101cd73a70965d80926b"
HEAD, LENGTH = 128, 8192
FLAGS = {"xla_jf_spmd_threshold_for_windowed_einsum_mib": "1000000"}
"""As the recipes of 8B have it ("no collective matmul"), for all rows: else a product is a loop over all chips that
adds to its result in HBM, which takes 2.5 TB a step of 8B on 16 chips, 4.0 TB on 32.
Source: AI-Hypercomputer/maxtext at e591f30cbb, benchmarks/xla_flags_library.py, line 202."""

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


def layers(weights: Mapping[str, Any], x: Any, kept: str = "device") -> Any:
    """A step of SGD on all layers. x: [batch, length, width].  kept: where inputs of layers are, `device` or `host`."""
    import jax
    import jax.numpy as jnp
    from jax.ad_checkpoint import checkpoint_name
    from jax.sharding import PartitionSpec as P

    def layer(x: Any, w: Mapping[str, Any]) -> tuple[Any, None]:
        def times(y: Any, name: str) -> Any:
            found = y @ w[name].astype(y.dtype)
            return jax.lax.with_sharding_constraint(found, P("fsdp", *[None] * (found.ndim - 1)))

        x = checkpoint_name(x, "input")
        heads = w["o"].shape[0]
        q, k, v = jnp.split(times(x, "qkv"), (heads, (heads + w["qkv"].shape[1]) // 2), axis=-1)
        x = x + times(q * jnp.tile(k * v, heads // k.shape[-1]), "o")
        gate, up = jnp.split(times(x, "gated"), 2, axis=-1)
        return x + times(jax.nn.silu(gate) * up, "down"), None

    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[], names_which_can_be_offloaded=["input"], offload_src="device",
        offload_dst="pinned_host",
    )  # fmt: skip

    def loss(weights: Mapping[str, Any]) -> Any:
        again = jax.checkpoint(layer, policy=policy) if kept == "host" else jax.checkpoint(layer)
        y, _ = jax.lax.scan(again, x, dict(weights))
        return (y.astype(jnp.float32) ** 2).mean()

    return jax.tree.map(lambda w, g: w - 3e-5 * g, dict(weights), jax.grad(loss)(dict(weights)))


LLAMA_8B = Decoder(layers=32, width=4096, inner=14336, heads=32, groups=8)
"""Source: AI-Hypercomputer/maxtext at e591f30cbb, src/maxtext/configs/models/llama3.1-8b.yml."""


LLAMA_70B = Decoder(layers=80, width=8192, inner=28672, heads=64, groups=8)
"""Source: the same, llama3.1-70b.yml."""
MODELS = {"8B": LLAMA_8B, "70B": LLAMA_70B}


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """A step of Llama 3.1, sequences of 8,192 tokens, weights fully sharded.

    model: of MODELS.  topology: of so many chips.  batch: sequences on one chip.  seconds: of a step.  kept: as of
    `layers`.  Source: AI-Hypercomputer/tpu-recipes. Of v6e: training/trillium/Llama3.1-MODEL-MaxText/v6e-CHIPS/
    README.md, line 55 of 8B and 41 of 70B, sizes from its line 67 or 53 on. Of 7x: training/ironwood/README.md, lines
    20 and 22, sizes in run_recipe.sh of llama3.1-70b/8k-bf16-tpu7x-TOPOLOGY/xpk. The topology of a v6e is that of the
    accelerator's name in Cloud TPU's page of it.
    """

    model: str
    target: str
    topology: str
    chips: int
    batch: int
    seconds: float
    kept: str = "device"


ROWS = (
    TrainingRow("8B", "v6e", "2x4", 8, 3, 3.443),
    TrainingRow("8B", "v6e", "4x4", 16, 3, 3.393),
    TrainingRow("8B", "v6e", "4x8", 32, 3, 3.495),
    TrainingRow("8B", "v6e", "8x16", 128, 4, 4.602),
    TrainingRow("8B", "v6e", "16x16", 256, 4, 4.546),
    TrainingRow("70B", "v6e", "8x8", 64, 2, 18.688, "host"),
    TrainingRow("70B", "v6e", "8x16", 128, 4, 34.786, "host"),
    TrainingRow("70B", "v6e", "16x16", 256, 5, 42.656, "host"),
    TrainingRow("70B", "7x", "4x4x4", 64, 4, 12.20),
    TrainingRow("70B", "7x", "4x8x8", 256, 4, 12.27),
)


def bound_of(row: TrainingRow) -> StepTime | None:
    """The least time of the program on the chips of a row; None, with a line, where it does not compile."""
    from layoutproof.hardware.tpu_chips import CHIPS
    from layoutproof.programs.compile import Asked, made
    from layoutproof.programs.step_time import step_time

    model = MODELS[row.model]
    weights = model.weights()
    shapes = {name: shape for name, (shape, _) in weights.items()}
    cut = ", ".join(f"'{name}': {spec}" for name, (_, spec) in weights.items())
    asked = Asked(
        "benchmarks/published_training.py:layers",
        (shapes, f"bf16[{row.batch * row.chips},{LENGTH},{model.width}]"), {"kept": f"'{row.kept}'"},
        target=row.target, topology=row.topology, mesh={"fsdp": row.chips * CHIPS[row.target].devices},
        ins=(f"{{{cut}}}", "P('fsdp', None, None)"), donate=(0,), flags=FLAGS,
    )  # fmt: skip
    (found,) = made([asked], 1800)
    if found.record is None:
        print(found.problem, file=sys.stderr)
        return None
    return step_time(found.record)


def section(rows: Sequence[tuple[TrainingRow, StepTime]]) -> Iterator[str]:
    """The lines of the section."""
    from layoutproof.core.amounts import seconds
    from layoutproof.programs.step_time import PICO

    yield f"{HEADING}\n"
    yield (
        f"{made_by('published_training.py')}. The times are those of Google's recipes of Llama 3.1 on "
        f"[v6e]({SOURCE}/training/trillium/Llama3.1-8B-MaxText/v6e-8/README.md#L55), one page for each number of "
        f"chips, and on [7x]({SOURCE}/training/ironwood/README.md#L20). Nothing was run here.\n"
    )
    yield (
        "The program is our own, with the published sizes, weights cut over all chips. It has less than the recipe: "
        "the layers without attention's scores, no vocabulary, SGD. Of 70B on v6e inputs of layers are kept in the "
        "host's memory, as there. What the matrix unit takes bounds the recipe's step too; HBM and links are those of "
        "our program.\n"
    )
    yield "| model | target | chips | topology | sequences a chip | published | bound | by | each term |"
    yield "|---|---|---:|---|---:|---:|---:|---|---|"
    for row, said in rows:
        terms = "; ".join(f"{name} {seconds(term.least)}" for name, term in said.terms.items())
        least = said.bound.least / PICO
        yield (
            f"| {row.model} | {row.target} | {row.chips} | {row.topology} | {row.batch} | {row.seconds:.3f} s | "
            f"{least:.3f} s ({100 * least / row.seconds:.0f} %) | {said.binds} | {terms} |"
        )
    over = sum(said.bound.least > row.seconds * PICO for row, said in rows)
    yield f"\nBounds above the published time: {over} of {len(rows)}.\n"


def main() -> int:
    """Prints the section, or writes it; the exit code is that of `published.run`."""
    from layoutproof.programs.step_time import PICO

    return run(
        __doc__ or "", ROWS, bound_of, lambda said: said.bound.least / PICO, section,
        lambda old, new: old.partition(HEADING)[0] + new,
    )  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
