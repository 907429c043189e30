"""Bytes that collectives move, as `compile` says them of XLA's own texts, against what each was made to exchange."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layoutproof.crosschecks.case import Case
from layoutproof.crosschecks.jax_asking import asked, jax_missing, jax_version
from layoutproof.crosschecks.source import Outcome
from layoutproof.crosschecks.sources.jax_programs import eight, own, random_cases

__all__ = ["compare", "missing", "random_cases", "version"]


def version() -> str:
    """JAX's."""
    return jax_version("XLA:CPU's texts for 8 devices")


def missing() -> str:
    """JAX."""
    return jax_missing()


def compare(cases: Sequence[Case]) -> Iterator[Outcome]:
    """The bytes that each device receives by each collective."""
    return asked(eight("XLA for eight devices"), "moved_bytes", "cpu", cases, 10, own)
