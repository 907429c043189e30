"""Shared parts of the sources that ask XLA's parser: neighbours of a text, and the process that answers."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from layoutproof.compiler.child import Child, ask
from layoutproof.core.errors import LayoutError
from layoutproof.crosschecks.asking import Failed, told

CHILD = Child(
    "XLA's parser", "layoutproof.crosschecks.parsing", {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}, 30
)
MEASURED = "0.10."
"""How the versions of jaxlib begin whose readings of wrong texts mode "xla" has."""
NEIGHBOURS = 8
"""Texts with one character wrong that are asked besides each text."""


def version() -> str:
    """jaxlib's."""
    return f"jaxlib {importlib.metadata.version('jaxlib')}"


def missing() -> str:
    """jaxlib, where it is not installed."""
    return "" if importlib.util.find_spec("jaxlib") is not None else "no jaxlib (pip install jaxlib)"


def said(requests: Sequence[tuple[str, str]]) -> Iterator[Any]:
    """What XLA makes of each (job, text), None where it refuses it, or a Failed, in their order."""
    for answer in ask(CHILD, map(list, requests), dict):
        yield told(answer)


def neighbours(text: str) -> list[str]:
    """The text with one character dropped, doubled or exchanged, several times; the same ones for the same text."""
    if not importlib.metadata.version("jaxlib").startswith(MEASURED):
        return []
    rng = random.Random(text)
    found = []
    for _ in range(NEIGHBOURS):
        at = rng.randrange(len(text))
        new = rng.choice(["", text[at] * 2, rng.choice("0123 ,{}[]()'=<T:?ab*")])
        found.append(text[:at] + new + text[at + 1 :])
    return sorted({each for each in found if each not in (text, "") and "\n" not in each})


T = TypeVar("T")


def read_or_none(read: Callable[[str], T], text: str) -> T | None:
    """The parsed text, or None where it is refused."""
    try:
        return read(text)
    except LayoutError:
        return None


__all__ = ["Failed", "missing", "neighbours", "read_or_none", "said", "version"]
