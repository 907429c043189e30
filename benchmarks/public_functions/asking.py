"""What the commands of this folder share: the calls by name, answers kept as lines of JSON, a process for each call."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from calls import CALLS, Call
from drawn_calls import DRAWN

EVERY = (*CALLS, *DRAWN)
SECONDS = 600
"""Of CPU that one call may take."""


def apart(command: Sequence[str], seconds: int = SECONDS) -> dict[str, Any]:
    """The answer of a command, its last line as JSON; what went wrong under `failed`.

    Args:
        command: What to run; nothing that an earlier run has kept is used.
        seconds: Of CPU that it may take; ten times as long by the clock.
    """

    def limited() -> None:
        # a loaded machine does not change CPU time
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))

    env = os.environ | {"LAYOUTPROOF_CACHE": "off"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=10 * seconds, preexec_fn=limited, env=env
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"no answer in {10 * seconds} s"}
    if done.returncode == -signal.SIGXCPU:
        return {"failed": f"no answer in {seconds} s of CPU time"}
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "Error: " in line]
        return {"failed": (errors or done.stderr.splitlines() or ["no words"])[-1][:300]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def without_paths(said: str) -> str:
    """What went wrong, without the folder of the checkouts.

    >>> without_paths("AttributeError: no TensorCoreMesh (/home/me/tokamax/gmm.py:12)")
    'AttributeError: no TensorCoreMesh'
    """
    return said.partition(" (/")[0].strip()


def last_pass(found: Mapping[str, Any]) -> Any:
    """What is said at last: after the advice, where anything is advised."""
    return found["after"] or found["before"]


def lines_of(path: Path | None) -> list[dict[str, Any]]:
    """The answers that are kept."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path and path.exists() else []


def named(calls: Sequence[Call]) -> list[tuple[Call, str]]:
    """Each call with its name, by which its answer is kept."""
    return [(call, f"{call.repository} {call.name}") for call in calls]
