"""JAX on a GPU: as on the CPU, index maps compiled for it, arrays packed and unpacked on it, element by element."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layoutproof.crosschecks.case import Case
from layoutproof.crosschecks.jax_asking import asked, gpu_missing, jax_child, jax_version
from layoutproof.crosschecks.source import Outcome
from layoutproof.crosschecks.sources.jax_cpu import BATCH, own


def version() -> str:
    """JAX's."""
    return jax_version("GPU")


def missing() -> str:
    """JAX, and the GPU."""
    return gpu_missing()


def compare(cases: Sequence[Case]) -> Iterator[Outcome]:
    """The table of each layout; of XLA's layouts each byte of a packed array too."""
    # a device maps far more addresses than it has memory
    child = jax_child("JAX on the GPU", memory=None, JAX_PLATFORMS="", XLA_PYTHON_CLIENT_PREALLOCATE="false")
    return asked(child, "tables", "gpu", cases, BATCH, own)
