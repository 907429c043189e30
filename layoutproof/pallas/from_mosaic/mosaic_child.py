"""Mosaic modules read in a child process: what its parser does with bad bytes, it does there."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from layoutproof.core.errors import LayoutError, shorten

PATIENCE = 60.0
"""Seconds for one round of modules: a parser that takes longer hangs. A module takes milliseconds."""

_WORKER = Path(__file__).with_name("mosaic_worker.py")


def read_modules(
    bodies: Sequence[str], patience: float = PATIENCE, worker: Path = _WORKER
) -> tuple[dict[str, Any], ...]:
    """One answer for each module (base64 of MLIR bytecode or text): what `mosaic_worker` makes of it.

    A module that is none, that ends the child, or that it hangs on has `{"error": words}`; those after it are read by a
    new child.
    Raises LayoutError where jaxlib, or what is needed of it, is not installed.
    """
    answers: list[dict[str, Any]] = []
    while len(answers) < len(bodies):
        left = bodies[len(answers) :]
        lines, ended = _ask(left, patience, worker)
        found = [json.loads(line) for line in lines]
        answers += found
        # after bytes that are no module a child ends itself: they may have spoilt its memory
        if len(found) < len(left) and not (found and "error" in found[-1]):
            answers.append({"error": f"jaxlib's reader of Mosaic modules {ended}"})
        missing = next((str(each["missing"]) for each in found if "missing" in each), "")
        if missing:
            words = f"reading Mosaic kernels needs jax: pip install jax ({shorten(missing, 200)})"
            raise LayoutError(words)
    return tuple(answers)


def _ask(bodies: Sequence[str], patience: float, worker: Path) -> tuple[list[str], str]:
    """(whole lines that one child wrote, how it ended). LayoutError where no child can be started."""
    try:
        # -P: modules beside the script must not shadow installed ones
        child = subprocess.Popen(
            [sys.executable, "-P", str(worker)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        raise LayoutError(f"a Python process to read Mosaic modules cannot be started: {error}") from None
    try:
        out, told = child.communicate(json.dumps(list(bodies)), timeout=patience)
        ended = _end(child.returncode, told)
    except subprocess.TimeoutExpired:
        child.kill()
        out, _ = child.communicate()
        ended = f"did not come to an end within {patience:g} s on it"
    except BaseException:
        child.kill()
        child.wait()
        raise
    return [line for line in out.splitlines(keepends=True) if line.endswith("\n")], ended


def _end(code: int, told: str) -> str:
    """
    >>> _end(-6, ""), _end(3, "no memory\\n")
    ('ended by SIGABRT on it', 'ended with exit code 3 on it: no memory')
    """
    last = next((f": {shorten(line.strip(), 200)}" for line in reversed(told.splitlines()) if line.strip()), "")
    if code < 0:
        known = {s.value: s.name for s in signal.Signals}
        return f"ended by {known.get(-code, f'signal {-code}')} on it{last}"
    return f"ended with exit code {code} on it{last}"
