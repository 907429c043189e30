"""What JAX's interpreter shows of kernels that reach other devices: one case a process, since a wait may never end.

`python -m tests.bodies.run_device_pairs NAME right|wrong [SECONDS]` prints what it shows, as words: `equal` or
`differs` (from what is wanted), `nan`, `race`, `left` (a semaphore that counts something at the end), `hang`, `raised`.
"""

from __future__ import annotations

import os

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"

import contextlib
import io
import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.experimental.pallas import tpu as pltpu

from tests.bodies import device_pairs
from tests.bodies.truth.watch import LOOK, Watch

IDLE_LOOKS = 16
"""Looks in a row at which nothing else of the process wants to run, after which a run waits for ever."""


def mesh_of(axes: tuple[tuple[str, int], ...]) -> jax.sharding.Mesh:
    """A mesh of devices of this process."""
    extents, names = tuple(n for _, n in axes), tuple(a for a, _ in axes)
    return jax.sharding.Mesh(np.array(jax.devices()[: int(np.prod(extents))]).reshape(extents), names)


def signs(name: str, wrong: bool, seconds: float) -> set[str]:
    """What a run of a case shows."""
    case = device_pairs.CASES[name]
    how = pltpu.InterpretParams(detect_races=True, uninitialized_memory="nan")
    function = device_pairs.function_of(case, wrong, mesh_of(case.axes), how)
    x = np.random.default_rng(0).normal(size=(device_pairs.rows_of(case), 128)).astype(np.float32)
    return signs_of(function, x, None if case.want is None else case.want(x), seconds)


def signs_of(function: Callable[[Any], Any], x: np.ndarray, wanted: np.ndarray | None, seconds: float) -> set[str]:
    """What a run of a function shows, beside what is wanted of it. seconds: of processor time.

    After "hang" the process has to end: threads of the run wait in it.
    """
    done: list[np.ndarray] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            done.append(np.asarray(jax.jit(function)(x)))
        except BaseException as error:
            failed.append(error)

    said = io.StringIO()
    handler = logging.StreamHandler(said)
    logging.getLogger().addHandler(handler)
    with contextlib.redirect_stdout(said):
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        _wait_for(thread, seconds)
    logging.getLogger().removeHandler(handler)
    text = said.getvalue()
    found = {"race"} if "RACE DETECTED" in text else set()
    found |= {"left"} if "non-zero count" in text else set()
    if failed:
        return {*found, "raised", f"{failed[0]!r}"[-300:]}
    if not done:
        return {*found, "hang"}
    if np.isnan(done[0]).any():
        found.add("nan")
    elif wanted is not None:
        alike = np.allclose(done[0], wanted.reshape(done[0].shape), rtol=1e-5, atol=1e-5)
        found.add("equal" if alike else "differs")
    return found


def _wait_for(thread: threading.Thread, seconds: float) -> None:
    """Until a thread has ended, or all other threads of the process wait for ever, or too much time was used."""
    start = time.process_time()
    watch = Watch(os.getpid(), threading.get_native_id(), IDLE_LOOKS)
    while thread.is_alive() and time.process_time() - start < seconds:
        thread.join(LOOK)
        if watch.idle():
            return


if __name__ == "__main__":
    limit = float(sys.argv[3]) if len(sys.argv) > 3 else 60.0
    print(" ".join(sorted(signs(sys.argv[1], sys.argv[2] == "wrong", limit))), flush=True)
    os._exit(0)
