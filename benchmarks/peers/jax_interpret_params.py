"""Pallas's interpreter of TPU memory (`InterpretParams`), beside the other one: kernels alone."""

from __future__ import annotations

import os
from typing import Any

from benchmarks.peers import jax
from benchmarks.peers.asking import Ask, NotAsked, answering

INSTALL, IMPORT = jax.INSTALL, jax.IMPORT


def asked(question: dict[str, Any]) -> Ask:
    """As of `jax`, without its shardings."""
    if "grid" not in question["layouts"][0]:
        raise NotAsked("it runs kernels")
    return jax.asked(question, jax.INTERPRETERS[1])


if __name__ == "__main__":
    os.environ |= {"JAX_PLATFORMS": "cpu"}
    answering(asked, "jax")
