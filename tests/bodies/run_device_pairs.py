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

import jax
import numpy as np
from jax.experimental.pallas import tpu as pltpu

from tests.bodies import device_pairs


def signs(name: str, wrong: bool, seconds: float) -> set[str]:
    """What a run of a case shows."""
    case = device_pairs.CASES[name]
    extents, names = tuple(n for _, n in case.axes), tuple(a for a, _ in case.axes)
    mesh = jax.sharding.Mesh(np.array(jax.devices()[: int(np.prod(extents))]).reshape(extents), names)
    how = pltpu.InterpretParams(detect_races=True, uninitialized_memory="nan")
    function = jax.jit(device_pairs.function_of(case, wrong, mesh, how))
    x = np.random.default_rng(0).normal(size=(device_pairs.rows_of(case), 128)).astype(np.float32)
    done: list[np.ndarray] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            done.append(np.asarray(function(x)))
        except BaseException as error:
            failed.append(error)

    said = io.StringIO()
    logging.getLogger().addHandler(logging.StreamHandler(said))
    with contextlib.redirect_stdout(said):
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(seconds)
    text = said.getvalue()
    found = {"race"} if "RACE DETECTED" in text else set()
    found |= {"left"} if "non-zero count" in text else set()
    if failed:
        return {*found, "raised", f"{failed[0]!r:.200}"}
    if not done:
        return {*found, "hang"}
    if np.isnan(done[0]).any():
        found.add("nan")
    elif case.want is not None:
        wanted = case.want(x).reshape(done[0].shape)
        found.add("equal" if np.allclose(done[0], wanted, rtol=1e-5, atol=1e-5) else "differs")
    return found


if __name__ == "__main__":
    limit = float(sys.argv[3]) if len(sys.argv) > 3 else 60.0
    print(" ".join(sorted(signs(sys.argv[1], sys.argv[2] == "wrong", limit))), flush=True)
    os._exit(0)
