"""A child process that has XLA:CPU compile random reshards over eight devices, and prints texts and shardings.

Argument: a seed and how many. Output: one JSON list of {"before", "after", "shape", "text", "parameters"}, shardings as
HloSharding prints them.
"""

from __future__ import annotations

import json
import os
import random
import sys
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"


def spec(rng: random.Random, axes: list[str], rank: int) -> tuple[Any, ...]:
    """A random partition spec over some of the axes."""
    entries: list[tuple[str, ...]] = [()] * rank
    for axis in rng.sample(axes, rng.randint(0, len(axes))):
        k = rng.randrange(rank)
        entries[k] = (*entries[k], axis)
    return tuple(each or None for each in entries)


def main(seed: int, many: int) -> list[dict[str, Any]]:
    """The cases."""
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    rng, found = random.Random(seed), []
    for _ in range(many):
        sizes = rng.choice([(8,), (2, 4), (4, 2), (2, 2, 2)])
        axes = list("xyz"[: len(sizes)])
        mesh = Mesh(np.array(jax.devices()).reshape(sizes), axes)
        shape = tuple(rng.choice((8, 16, 24)) for _ in range(rng.randint(1, 3)))
        one, two = (NamedSharding(mesh, PartitionSpec(*spec(rng, axes, len(shape)))) for _ in range(2))
        given = jax.ShapeDtypeStruct(shape, np.float32, sharding=one)
        made = jax.jit(lambda x: jax.lax.sin(x), out_shardings=two).lower(given).compile()
        said = [str(each._to_xla_hlo_sharding(len(shape))) for each in (one, two)]
        told = {"before": said[0], "after": said[1], "shape": shape, "text": made.as_text()}
        # jax 0.12 prints no sharding of a parameter
        found.append({**told, "parameters": [said[0]]})
    return found


if __name__ == "__main__":
    json.dump(main(*map(int, sys.argv[1:])), sys.stdout)
