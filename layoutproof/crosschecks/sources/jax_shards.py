"""Eight virtual CPU devices of JAX: real arrays cut over them, shard by shard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layoutproof.crosschecks.case import Case
from layoutproof.crosschecks.jax_asking import asked, jax_child, jax_missing, jax_version
from layoutproof.crosschecks.source import Outcome
from layoutproof.layouts.sharding import ShardedArray


def version() -> str:
    """JAX's."""
    return jax_version("8 virtual CPU devices")


def missing() -> str:
    """JAX."""
    return jax_missing()


def compare(cases: Sequence[Case]) -> Iterator[Outcome]:
    """Which element each device holds, and where in its shard; what `devices_indices_map` says of it too."""
    flags = "--xla_force_host_platform_device_count=8"
    child = jax_child("JAX on eight devices", JAX_PLATFORMS="cpu", XLA_FLAGS=flags)
    return asked(child, "shards", "cpu", cases, 50, own)


def own(case: Case) -> bool:
    """Arrays with a sharding only."""
    return isinstance(case.parsed, ShardedArray)
