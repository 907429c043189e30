"""JAX on the CPU: index maps compiled for it, arrays packed and unpacked there, element by element."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layoutproof.crosschecks.case import Case
from layoutproof.crosschecks.jax_asking import asked, jax_child, jax_missing, jax_version
from layoutproof.crosschecks.source import Outcome

BATCH = 25
"""Cases of one compiled program."""


def version() -> str:
    """JAX's."""
    return jax_version("CPU")


def missing() -> str:
    """JAX."""
    return jax_missing()


def compare(cases: Sequence[Case]) -> Iterator[Outcome]:
    """The table of each layout; of XLA's layouts each byte of a packed array too."""
    child = jax_child("JAX on the CPU", JAX_PLATFORMS="cpu")
    return asked(child, "tables", "cpu", cases, BATCH, own)


def own(case: Case) -> bool:
    """Kernels are for the interpreters."""
    return case.kind == "layout"
