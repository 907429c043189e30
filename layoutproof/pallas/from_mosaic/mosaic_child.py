"""Mosaic modules read in a child process, which contains crashes of the parser on bad bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from layoutproof.compiler.child import Child, ask
from layoutproof.core.document import JsonObject
from layoutproof.core.errors import LayoutError

PATIENCE = 60.0
"""Seconds for one module: a parser that takes longer hangs. A module takes milliseconds."""

MEMORY = 8 << 30
"""Bytes of address space: bytes that are no module can claim to hold any number of things."""

_WORKER = "layoutproof.pallas.from_mosaic.mosaic_worker"


def read_modules(
    bodies: Sequence[str], patience: float = PATIENCE, worker: str | Path = _WORKER
) -> tuple[JsonObject, ...]:
    """One answer for each module (base64 of MLIR bytecode or text): what `mosaic_worker` makes of it.

    A module that is none, that ends the child, or that it hangs on has `{"error": words}`; those after it are read by a
    new child.
    Raises LayoutError where jaxlib, or what is needed of it, is not installed.
    """
    return _answers(bodies, patience, worker)


def read_bodies(modules: Sequence[tuple[str, str]]) -> tuple[JsonObject, ...]:
    """One answer for each module and its locations: its functions with all that they do, or `{"error": words}`.

    As `read_modules`. locations: base64 of a module that tells them, "" for none.
    """
    return _answers([{"module": module, "locations": where} for module, where in modules], PATIENCE, _WORKER)


def _answers(requests: Sequence[object], patience: float, worker: str | Path) -> tuple[JsonObject, ...]:
    child = Child("jaxlib's reader of Mosaic modules", worker, seconds=patience, memory=MEMORY)
    found = []
    for answer in ask(child, requests, dict):
        if isinstance(answer.error, LayoutError):
            raise answer.error
        found.append({"error": answer.problem} if answer.value is None else answer.value)
    return tuple(found)
