"""Eight virtual CPU devices of JAX: programs of several devices run in float64, and walked over here.

What is compared is what each device computes: of a program that XLA partitions, by its compiled text and our shardings;
and of a `shard_map` with every collective, by its jaxpr.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from math import prod

from layoutproof.compiler.child import Child
from layoutproof.crosschecks.case import Case, layout_case
from layoutproof.crosschecks.jax_asking import asked, jax_child, jax_missing, jax_version
from layoutproof.crosschecks.source import Outcome
from layoutproof.layouts.sharding import NamedSharding, ShardedArray


def version() -> str:
    """JAX's."""
    return jax_version("8 virtual CPU devices, float64")


def missing() -> str:
    """JAX."""
    return jax_missing()


def random_cases(count: int, seed: int) -> Iterator[Case]:
    """So many arrays over a mesh, mostly of axes of one size, in any order; the same seed gives the same ones."""
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        sizes = rng.choice(((2, 2), (2, 2, 2), (2, 2, 2), (4, 2), (2, 4), (8,)))
        names = rng.sample(range(len(sizes)), len(sizes))
        dims: list[list[int]] = [[] for _ in range(rng.randint(1, 3))]
        for k in names:
            where = rng.randrange(len(dims) + 1)
            if where < len(dims):
                dims[where].append(k)
        extents = [rng.choice((1, 2, 4, 8)) * prod(sizes[k] for k in axes) for axes in dims]
        mesh = ",".join(f"'{'abc'[k]}'={n}" for k, n in enumerate(sizes))
        shown = ", ".join("{" + ", ".join(f"'{'abc'[k]}'" for k in axes) + "}" for axes in dims)
        text = f"f32[{','.join(map(str, extents))}] sharded {{mesh[{mesh}], [{shown}]}}"
        yield layout_case(text, f"seed {seed} number {number}")


def compare(cases: Sequence[Case]) -> Iterator[Outcome]:
    """The results of each device."""
    return asked(eight("JAX on eight devices"), "programs", "cpu", cases, 10, own)


def eight(name: str) -> Child:
    """A process with eight devices and float64. name: of the question, in errors."""
    flags = "--xla_force_host_platform_device_count=8"
    return jax_child(name, JAX_PLATFORMS="cpu", JAX_ENABLE_X64="1", XLA_FLAGS=flags)


def own(case: Case) -> bool:
    """Arrays with a sharding over a mesh only."""
    return isinstance(case.parsed, ShardedArray) and isinstance(case.parsed.sharding, NamedSharding)
