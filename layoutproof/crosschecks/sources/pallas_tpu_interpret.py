"""`pltpu.InterpretParams`: memory that starts as NaN, blocks visited again, races of cores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layoutproof.crosschecks.case import Case
from layoutproof.crosschecks.jax_asking import asked, jax_child, jax_missing, jax_version
from layoutproof.crosschecks.source import Outcome


def version() -> str:
    """JAX's."""
    return jax_version("InterpretParams")


def missing() -> str:
    """JAX."""
    return jax_missing()


def compare(cases: Sequence[Case]) -> Iterator[Outcome]:
    """Each kernel with a body that writes the program's own number."""
    child = jax_child("JAX's interpreter of kernels", JAX_PLATFORMS="cpu")
    return asked(child, "tpu_kernels", "cpu", cases, 10, own)


def own(case: Case) -> bool:
    """Kernels only."""
    return case.kind == "kernel"
