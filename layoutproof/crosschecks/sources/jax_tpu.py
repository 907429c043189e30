"""JAX on a TPU: as on the CPU, index maps compiled for it, arrays packed and unpacked on it, element by element."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layoutproof.crosschecks.case import Case
from layoutproof.crosschecks.jax_asking import asked, jax_child, jax_version, tpu_missing
from layoutproof.crosschecks.source import Outcome
from layoutproof.crosschecks.sources.jax_cpu import BATCH, own


def version() -> str:
    """JAX's."""
    return jax_version("TPU")


def missing() -> str:
    """JAX, and the TPU."""
    return tpu_missing()


def compare(cases: Sequence[Case]) -> Iterator[Outcome]:
    """The table of each layout; of XLA's layouts each byte of a packed array too."""
    # a device maps far more addresses than it has memory
    child = jax_child("JAX on the TPU", memory=None, JAX_PLATFORMS="")
    return asked(child, "tables", "tpu", cases, BATCH, own)
